"""Who may sit on an enemy seat: frozen policies, functions, uniform play; and `resolve`, which makes one of what a user names.

Stable-Baselines3 checkpoints are pickles: loading one can run any code its author put into it. Load only what you trust.

Importing this module loads neither torch nor Stable-Baselines3; making a `PolicyOpponent` does.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from adapters.policies import copy_policy, discrete_actor, find_checkpoint, is_transposed, load_policy, random_stream

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

EPSILON = 0.05
"""How often an opponent trained by DQN or QRDQN moves at random when it samples."""

Observations = NDArray[Any]
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


class PolicyOpponent:
    """A frozen Stable-Baselines3 policy with a random stream of its own.

    Neither making one nor letting it act touches a live model's training mode, its parameters or torch's global random
    stream, and what the model learns later does not reach it. When sampling, policies trained by DQN and QRDQN are
    epsilon-greedy (`EPSILON`, drawn per row); TD3's and DDPG's are deterministic by nature.

    Args:
        source: the path of a checkpoint (a pickle: load only what you trust), or a live model or policy, which is copied.
        observation_space: what the games show. It may differ from the policy's own space in one way: images with the
            channels last, which SB3's `VecTransposeImage` put first when the policy was trained.
        deterministic: play the likeliest action instead of sampling.
        device: as for SB3, where "auto" is a GPU if there is one.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the file is no SB3 checkpoint, or its policy cannot be rebuilt or cannot play here (recurrent ones).
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BaseAlgorithm | BasePolicy,
        *,
        observation_space: gymnasium.Space[Any] | None = None,
        deterministic: bool = False,
        device: torch.device | str = "auto",
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            self.name, policy = os.fspath(source), load_policy(source, device)
        else:
            self.name, policy = type(source).__name__, copy_policy(source, device)
        if hasattr(policy, "lstm_actor"):
            raise ValueError(
                f"{self.name}: recurrent policies cannot play as opponents yet; train one without an LSTM, or wrap the "
                "model in an object with the methods of adapters.opponents.Opponent"
            )
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.uses_masks = "action_masks" in inspect.signature(policy.predict).parameters  # MaskablePPO
        self._deterministic = deterministic
        self._policy, self._device = policy, policy.device
        self._epsilon = EPSILON if hasattr(policy, "q_net") or hasattr(policy, "quantile_net") else 0.0
        self._uses_sde = not deterministic and getattr(getattr(policy, "actor", policy), "use_sde", False)
        self._actor = discrete_actor(policy)
        self._rng = np.random.default_rng()
        self._transposes = observation_space is not None and is_transposed(policy.observation_space, observation_space)
        if self._transposes and observation_space is not None:
            self.observation_space = observation_space

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One batched forward pass; see `Opponent.act`."""
        import torch

        if self._transposes:
            observations = np.ascontiguousarray(np.moveaxis(observations, -1, 1))
        with torch.inference_mode():
            if self._actor is None:
                return self._predict(observations, action_masks)
            logits: NDArray[Any] = self._actor(torch.as_tensor(observations, device=self._device)).cpu().numpy()
        if not self._deterministic:  # the Gumbel-max trick: the argmax is then a draw from the softmax of the logits
            logits = logits - np.log(self._rng.standard_exponential(logits.shape))
        actions: Actions = logits.argmax(axis=1)
        return actions

    def reset(self, slots: Slots) -> None:
        """Nothing is remembered."""

    def seed(self, seed: int) -> None:
        """See `Opponent.seed`."""
        self._rng = np.random.default_rng(seed)

    def _predict(self, observations: Observations, action_masks: Masks | None) -> Actions:
        """What the policy's own `predict` says, drawn from our stream."""
        policy: Any = self._policy
        masks = {"action_masks": action_masks} if self.uses_masks else {}
        with random_stream(self._device, int(self._rng.integers(2**63))):
            if self._uses_sde:
                policy.reset_noise(len(observations))  # else every row of every turn would share one noise
            actions, _ = policy.predict(observations, deterministic=self._deterministic, **masks)
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
        expected = (len(observations), *(self.action_space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"opponent {self.name!r} must return actions of shape {expected}, one per row of the observations, "
                f"got {actions.shape}"
            )
        if not _all_in(actions, self.action_space):
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
    """Uniform play over the whole action space; action masks are ignored."""

    name = "random"

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        self.observation_space = observation_space
        self.action_space = copy.deepcopy(action_space)  # the original's random stream belongs to someone else
        self.seed(int(np.random.SeedSequence().generate_state(1)[0]))

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """See `Opponent.act`."""
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, size=len(slots))
        return np.stack([space.sample() for _ in slots])

    def reset(self, slots: Slots) -> None:
        """Nothing is remembered."""

    def seed(self, seed: int) -> None:
        """See `Opponent.seed`."""
        self._rng = np.random.default_rng(seed)
        self.action_space.seed(seed)


def resolve(
    spec: Any,
    *,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    make_bot: Callable[[str], Opponent],
    device: torch.device | str = "auto",
    deterministic: bool = False,
) -> Opponent:
    """The opponent that a user's word for it means.

    Args:
        spec: the path of an SB3 checkpoint (a string that ends in .zip, has a path separator or names a file, with or
            without its .zip; or any PathLike), any other string as a bot's name, a live SB3 model or policy, a function
            on batches of observations, or an object that is an `Opponent` already and is used as it is.
        observation_space: what the learner sees; a function sees the same.
        action_space: how the learner acts; a function acts the same.
        make_bot: makes the bot of a name, and raises a ValueError that lists the names if there is none.
        device: where policies run.
        deterministic: whether policies play their likeliest action instead of sampling.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        TypeError: spec is none of these.
        ValueError: the checkpoint cannot be used, or there is no such bot.
    """
    if isinstance(spec, str) and not _is_path(spec):
        try:
            return make_bot(spec)
        except ValueError as error:
            raise ValueError(f"{error} (a checkpoint's path would end in .zip)") from error
    if isinstance(spec, Opponent) and not isinstance(spec, type):
        return spec
    if isinstance(spec, (str, os.PathLike)) or _is_live(spec):
        return PolicyOpponent(spec, observation_space=observation_space, deterministic=deterministic, device=device)
    if callable(spec) and not isinstance(spec, type):
        return CallableOpponent(spec, observation_space=observation_space, action_space=action_space)
    got = f"the class {spec.__name__}" if isinstance(spec, type) else f"{type(spec).__name__}: {spec!r:.80}"
    raise TypeError(
        "opponent must be the path of an SB3 checkpoint, a bot's name, a live SB3 model or policy, a function "
        f"f(observations) -> actions or an Opponent, or a list or dict of these by seat; got {got}"
    )


def resolve_seats(
    spec: Any,
    *,
    enemy_agents: Sequence[str] | None,
    num_enemies: int,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    make_bot: Callable[[str], Opponent],
    device: torch.device | str = "auto",
    deterministic: bool = False,
) -> list[Opponent]:
    """One opponent per enemy seat; what is given twice is one object, so that it costs one forward pass.

    Args:
        spec: one spec for every seat, a list with one per enemy seat in seat order, or a dict by agent name.
        enemy_agents: the agents on the enemy seats, in seat order; None if learners are not named, so that agents change seats.
        num_enemies: how many enemy seats there are.
        observation_space: this and all that follow: see `resolve`.
        action_space: how the learner acts.
        make_bot: makes the bot of a name.
        device: where policies run.
        deterministic: whether policies play their likeliest action instead of sampling.

    Raises:
        ValueError: a list of another length, a dict of other agents or without named learners; and as `resolve` does.
    """
    if isinstance(spec, Mapping):
        if enemy_agents is None:
            raise ValueError(
                "a dict of opponents by agent name needs learners given by name too, such as learners=['snake_0']; "
                "give a list in enemy-seat order, or name the learners"
            )
        missing, unknown = [a for a in enemy_agents if a not in spec], [a for a in spec if a not in enemy_agents]
        if missing or unknown:
            raise ValueError(
                f"the dict of opponents must have exactly the enemy agents {list(enemy_agents)} as keys; "
                f"missing {missing}, unknown {unknown}"
            )
        specs = [spec[agent] for agent in enemy_agents]
    elif isinstance(spec, (list, tuple)):
        if len(spec) != num_enemies:
            raise ValueError(f"a list of opponents must have {num_enemies} entries, one per enemy seat, got {len(spec)}")
        specs = list(spec)
    else:
        specs = [spec] * num_enemies
    made: dict[Any, Opponent] = {}
    for one in specs:
        if _identity(one) not in made:
            made[_identity(one)] = resolve(
                one,
                observation_space=observation_space,
                action_space=action_space,
                make_bot=make_bot,
                device=device,
                deterministic=deterministic,
            )
    return [made[_identity(one)] for one in specs]


def _all_in(actions: Actions, space: gymnasium.Space[Any]) -> bool:
    """Whether every row is in the space, without a Python call per row for the usual spaces."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = space.n if isinstance(space, spaces.Discrete) else space.nvec
        return actions.dtype.kind in "iu" and bool(((actions >= space.start) & (actions < space.start + sizes)).all())
    if isinstance(space, spaces.Box):
        return actions.dtype.kind in "iuf" and bool(((actions >= space.low) & (actions <= space.high)).all())
    return all(space.contains(action) for action in actions)


def _is_live(spec: Any) -> bool:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    return isinstance(getattr(spec, "_orig_mod", spec), (BaseAlgorithm, BasePolicy))


def _is_path(text: str) -> bool:
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    return text.endswith(".zip") or any(separator in text for separator in separators) or find_checkpoint(text) is not None


def _identity(spec: Any) -> Any:
    """Equal for specs that mean the same opponent."""
    if isinstance(spec, str) and not _is_path(spec):
        return spec
    if isinstance(spec, (str, os.PathLike)):
        return (find_checkpoint(spec) or Path(spec)).absolute()
    return id(spec)
