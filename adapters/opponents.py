"""Who may sit on an enemy seat: frozen policies, functions, uniform play; and what a seat's opponents are drawn from.

Stable-Baselines3 checkpoints are pickles, and so are the `VecNormalize` statistics beside them: loading one can run any code
its author put into it. Load only what you trust.

Importing this module loads neither torch nor Stable-Baselines3; making a `PolicyOpponent` does.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from adapters.matches import Observations
from adapters.policies import MASKED_LOGIT, copy_policy, discrete_actor, find_checkpoint, load_policy, random_stream
from adapters.preprocessing import Preprocessing, SlotMemory, copy_statistics, find_statistics, load_statistics

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.vec_env import VecNormalize

EPSILON = 0.05
"""How often an opponent trained by DQN or QRDQN moves at random when it samples."""

Actions = NDArray[Any]
Slots = NDArray[np.intp]
Masks = NDArray[np.int8]


@runtime_checkable
class Opponent(Protocol):
    """Who plays enemy seats, any number of them at once.

    An opponent that sets `uses_masks = True` is handed action masks where the games have them; others get None.
    """

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One action per row.

        Args:
            observations: (B, *obs), the opponent's own to keep or overwrite.
            slots: (B,) which seat of which game each row is, the same number from turn to turn.
            action_masks: (B, A) 1 = allowed, or None.

        Returns:
            (B, *action) in `action_space`.
        """
        ...

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted: forget what was remembered of them."""
        ...

    def seed(self, seed: int) -> None:
        """Start the opponent's own random stream anew."""
        ...


@runtime_checkable
class Source(Protocol):
    """What says who sits down whenever games restart, on the enemy seats that it stands for."""

    def ready(self) -> Sequence[Opponent]:
        """Those that are kept, each with its random stream, while they sit nowhere; others come with a draw."""
        ...

    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        """Who sits down in games that have just restarted.

        Args:
            games: how many they are.
            seats: how many seats of each are this source's.
            rng: draw from this alone.
            seated: everyone who sits in a game that goes on, or was drawn for these games already.

        Returns:
            Opponents, and (games, seats) which of them sits where. Who comes back is the same object as long as it is in
            `seated`, so that it stays one call of `act`.
        """
        ...

    def forget(self) -> None:
        """The games are seeded: what is drawn from now on must not depend on what was drawn before."""
        ...


class PolicyOpponent:
    """A frozen Stable-Baselines3 policy with a random stream of its own.

    Neither making one nor letting it act touches a live model's training mode, its parameters or torch's global random
    stream, and what the model learns later does not reach it. When sampling, policies trained by DQN and QRDQN are
    epsilon-greedy (`EPSILON`, drawn per row); TD3's and DDPG's are deterministic by nature. MaskablePPO's take no forbidden
    action. The state of RecurrentPPO's is kept per slot.

    A policy that was trained under `VecNormalize`, `VecFrameStack` or `VecTransposeImage` sees what it saw then, see
    `Preprocessing`. A live model brings its statistics; those of a checkpoint are in a file beside it, see
    `find_statistics`. They are frozen too, and no other opponent's.

    Args:
        source: the path of a checkpoint (a pickle: load only what you trust), or a live model or policy, which is copied.
        shown: the observation spaces that the games can show, the preferred first; none: the policy's own.
        deterministic: play the likeliest action instead of sampling.
        device: as for SB3, where "auto" is a GPU if there is one.
        vecnormalize: the file of the statistics, a pickle too, where they are not found by themselves.
        name: what the opponent is called; None: the path, or the class of what is live.

    Attributes:
        observation_space: one of `shown`, or the policy's own if it fits none of them.

    Raises:
        FileNotFoundError: there is no such checkpoint, or no such file of statistics.
        ValueError: the file is no SB3 checkpoint, or its policy cannot be rebuilt, or the statistics do not fit.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BaseAlgorithm | BasePolicy,
        *,
        shown: Sequence[gymnasium.Space[Any]] = (),
        deterministic: bool = False,
        device: torch.device | str = "auto",
        vecnormalize: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> None:
        policy: Any
        if isinstance(source, (str, os.PathLike)):
            self.name, policy = name or os.fspath(source), load_policy(source, device)
        else:
            self.name, policy = name or type(source).__name__, copy_policy(source, device)
        statistics = _statistics(source) if vecnormalize is None else load_statistics(vecnormalize)
        self._preprocessing = Preprocessing(policy.observation_space, shown, statistics, f"opponent {self.name!r}")
        self.observation_space: gymnasium.Space[Any] = self._preprocessing.observation_space
        self.action_space: gymnasium.Space[Any] = policy.action_space
        self.uses_masks = "action_masks" in inspect.signature(policy.predict).parameters  # MaskablePPO
        self._deterministic = deterministic
        self.policy, self._device = policy, policy.device
        self._epsilon = EPSILON if hasattr(policy, "q_net") or hasattr(policy, "quantile_net") else 0.0
        self._uses_sde = not deterministic and getattr(getattr(policy, "actor", policy), "use_sde", False)
        self._actor = discrete_actor(policy)
        self._states: SlotMemory | None = None  # of each slot: hidden and cell state, (2, layers, width)
        if hasattr(policy, "lstm_actor"):
            layers, _, width = policy.lstm_hidden_state_shape
            self._states = SlotMemory((2, layers, width), np.float32)
        self._rng = np.random.default_rng()

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One batched forward pass; see `Opponent.act`."""
        import torch

        observations = self._preprocessing.apply(observations, slots)
        with torch.inference_mode():
            if self._actor is None:
                return self._predict(observations, slots, action_masks)
            logits: NDArray[Any] = self._actor(torch.as_tensor(observations, device=self._device)).cpu().numpy()
        if self.uses_masks and action_masks is not None:
            logits = np.where(action_masks, logits, MASKED_LOGIT)
        if not self._deterministic:  # the Gumbel-max trick: the argmax is then a draw from the softmax of the logits
            logits = logits - np.log(self._rng.standard_exponential(logits.shape))
        actions: Actions = logits.argmax(axis=1)
        return actions

    def reset(self, slots: Slots) -> None:
        """See `Opponent.reset`."""
        self._preprocessing.reset(slots)
        if self._states is not None:
            self._states.clear(slots)

    def seed(self, seed: int) -> None:
        """See `Opponent.seed`."""
        self._rng = np.random.default_rng(seed)

    def _predict(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """What the policy's own `predict` says, drawn from our stream."""
        policy: Any = self.policy
        more: dict[str, Any] = {"action_masks": action_masks} if self.uses_masks else {}
        if self._states is not None:
            more["state"] = tuple(self._states.read(slots).transpose(1, 2, 0, 3))  # (layers, B, width) each
        with random_stream(self._device, int(self._rng.integers(2**63))):
            if self._uses_sde:
                policy.reset_noise(len(slots))  # else every row of every turn would share one noise
            actions, state = policy.predict(observations, deterministic=self._deterministic, **more)
        if self._states is not None:
            self._states.write(slots, np.stack(state).transpose(2, 0, 1, 3))
        if self._epsilon and not self._deterministic:
            explores = self._rng.random(len(actions)) < self._epsilon
            actions[explores] = self._rng.integers(policy.action_space.n, size=int(explores.sum()))
        return np.asarray(actions)


class CallableOpponent:
    """A function `f(observations) -> actions` on batches: (B, *obs) -> (B, *action).

    Its randomness is its own: reseeding the games does not reach it.

    Raises:
        ValueError: from `act`, if the function returns anything but B actions of the action space.
    """

    def __init__(
        self,
        function: Callable[[Observations], Actions],
        *,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.observation_space, self.action_space = observation_space, action_space
        self._function = function

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """See `Opponent.act`."""
        actions = np.asarray(self._function(observations))
        expected = (len(slots), *(self.action_space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"opponent {self.name!r} must return actions of shape {expected}, one per row of the observations, "
                f"got {actions.shape}"
            )
        if not within(actions, self.action_space):
            extent = f"from {actions.min()} to {actions.max()}" if actions.dtype.kind in "biuf" else "of no number"
            raise ValueError(
                f"opponent {self.name!r} must return actions in {self.action_space}, got {actions.dtype} values {extent}"
            )
        return actions

    def reset(self, slots: Slots) -> None:
        """Nothing is remembered."""

    def seed(self, seed: int) -> None:
        """The function's randomness is its own."""


class RandomOpponent:
    """Uniform play over the actions that are allowed; over all where none is, or without `uses_masks`, or without masks."""

    name = "random"

    def __init__(
        self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], *, uses_masks: bool = True
    ) -> None:
        self.uses_masks = uses_masks
        self.observation_space = observation_space
        self.action_space = copy.deepcopy(action_space)  # the original's random stream belongs to someone else
        self.seed(int(np.random.SeedSequence().generate_state(1)[0]))

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """See `Opponent.act`."""
        space = self.action_space
        if action_masks is not None:
            return self._allowed(action_masks)
        if isinstance(space, spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, size=len(slots))
        return np.stack([space.sample() for _ in slots])

    def reset(self, slots: Slots) -> None:
        """Nothing is remembered."""

    def seed(self, seed: int) -> None:
        """See `Opponent.seed`."""
        self._rng = np.random.default_rng(seed)
        self.action_space.seed(seed)

    def _allowed(self, action_masks: Masks) -> Actions:
        """One allowed choice for each number of the action, whose masks stand side by side as sb3-contrib has them."""
        space = self.action_space
        ends = np.cumsum(_choices(space))
        lots = self._rng.random(action_masks.shape) + (action_masks > 0)
        chosen = np.stack([part.argmax(axis=1) for part in np.split(lots, ends[:-1], axis=1)], axis=1)
        return chosen.reshape(-1, *(space.shape or ())) + getattr(space, "start", 0)


def _choices(space: gymnasium.Space[Any]) -> list[int]:
    """How many choices there are for each number of an action that can be masked."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    return [2] * int(np.prod(space.shape or ()))


def _statistics(source: Any) -> VecNormalize | None:
    """The observation statistics that a checkpoint has beside it, or a live model around its environment."""
    if isinstance(source, (str, os.PathLike)):
        checkpoint = find_checkpoint(source)
        path = checkpoint and find_statistics(checkpoint)
        return load_statistics(path) if path else None
    environment = getattr(source, "get_vec_normalize_env", None)  # a policy has none
    return copy_statistics(environment()) if environment is not None else None


def within(actions: Actions, space: gymnasium.Space[Any]) -> bool:
    """Whether every row of actions is in the space, without a Python call per row for the usual spaces."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = space.n if isinstance(space, spaces.Discrete) else space.nvec
        return actions.dtype.kind in "iu" and bool(((actions >= space.start) & (actions < space.start + sizes)).all())
    if isinstance(space, spaces.Box):
        return actions.dtype.kind in "iuf" and bool(((actions >= space.low) & (actions <= space.high)).all())
    return all(space.contains(action) for action in actions)
