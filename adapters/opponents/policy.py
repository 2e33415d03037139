"""Who may sit on an enemy seat: frozen policies, functions, uniform play; and what a seat's opponents are drawn from.

Checkpoints and the statistics beside them run no code unless they are trusted, see `unpickling`.

Importing this module loads neither torch nor Stable-Baselines3; making a `PolicyOpponent` does.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.opponents.checkpoints import (
    MASKED_LOGIT,
    copy_policy,
    discrete_actor,
    find_checkpoint,
    load_policy,
    random_stream,
)
from adapters.opponents.preprocessing import Preprocessing, SlotMemory
from adapters.opponents.statistics import copy_statistics, find_statistics, load_statistics, warn_if_missing
from adapters.opponents.unpickling import Trust
from snake_pz.players import Actions, Masks, Observations, Player, Slots

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.vec_env import VecNormalize

    from snake_pz.core.encodings import Encoding

KNOWN_PACKAGES = ("torch", "stable_baselines3", "sb3_contrib", "adapters")
"""Networks made of their classes may infer in another thread."""

EPSILON = 0.05
"""Probability of a random action of opponents trained by DQN or QRDQN when they sample."""


class PolicyOpponent(Player):
    """A frozen Stable-Baselines3 policy with a random stream of its own.

    Neither making one nor letting it act touches a live model's training mode, its parameters or torch's global random
    stream, and what the model learns later does not reach it. When sampling, policies trained by DQN and QRDQN are
    epsilon-greedy (`EPSILON`, drawn per row); TD3's and DDPG's are deterministic by nature. MaskablePPO's take no forbidden
    action. The state of RecurrentPPO's is kept per slot.

    A policy that was trained under `VecNormalize`, `VecFrameStack` or `VecTransposeImage` sees what it saw then, see
    `Preprocessing`. A live model brings its statistics; those of a checkpoint are in a file beside it, see
    `find_statistics`. They are frozen too, and no other opponent's.

    Args:
        source: the path of a checkpoint, or a live model or policy, which is copied.
        shown: the observation spaces that the games can show, the preferred first; none: the policy's own.
        deterministic: play the likeliest action instead of sampling.
        device: as for SB3, where "auto" is a GPU if there is one.
        vecnormalize: the file of the statistics, where they are not found by themselves.
        name: what the opponent is called; None: the path, or the class of what is live.
        trust: what these files may ask for beside known classes, as for `frozen`.
        custom_objects: settings of the checkpoint by name, instead of those in the file, as for `frozen`.
        encoding: the encoding of the games' states that it is shown, whose space is then the only one in `shown`; None: the one
            that has its observation space.

    Attributes:
        observation_space: one of `shown`, or the policy's own if it fits none of them.
        policy: the policy itself; read-only.
        preprocessing: the steps from `observation_space` to what the policy was trained on.
        infers_ahead: whether `infer` depends on its arguments alone, so that it may run in another thread: on the CPU, for
            policies of A2C, PPO and MaskablePPO with discrete actions, without stacked frames, whose networks are made of
            classes of torch, Stable-Baselines3 and this package, and not of a subclass with an `act` of its own. Others have
            memory, use torch's random stream, or run code that was not written for threads.

    Raises:
        FileNotFoundError: there is no such checkpoint, or no such file of statistics.
        ValueError: the file is no SB3 checkpoint, asks for what is neither known nor trusted, or its policy cannot be rebuilt;
            or the statistics do not fit.
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
        trust: Trust = False,
        custom_objects: Mapping[str, Any] | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        from stable_baselines3.common.torch_layers import FlattenExtractor

        policy: Any
        if isinstance(source, (str, os.PathLike)):
            self.name, policy = name or os.fspath(source), load_policy(source, device, trust, custom_objects)
        else:
            self.name, policy = name or type(source).__name__, copy_policy(source, device)
        whose = f"opponent {self.name!r}"
        found, statistics = _statistics(source, trust) if vecnormalize is None else (True, load_statistics(vecnormalize, trust))
        self.preprocessing = Preprocessing(policy.observation_space, shown, statistics, whose)
        if not found:
            warn_if_missing(source, whose)
        self.observation_space: gymnasium.Space[Any] = self.preprocessing.observation_space
        self.action_space: gymnasium.Space[Any] = policy.action_space
        self.encoding = encoding
        if self.preprocessing.transposes_stacks and policy.features_extractor_class is not FlattenExtractor:
            warnings.warn(
                f"opponent {self.name!r} plays as it was trained, on stacked frames that Stable-Baselines3 transposed although "
                "their channels were first, so that its convolutions see no pictures: train it anew with "
                "VecTransposeImage(VecFrameStack(env, n_stack), skip=True)",
                stacklevel=2,
            )
        self.uses_masks = "action_masks" in inspect.signature(policy.predict).parameters  # MaskablePPO
        self._deterministic = deterministic
        self.policy, self._device = policy, policy.device
        self._epsilon = EPSILON if hasattr(policy, "q_net") or hasattr(policy, "quantile_net") else 0.0
        self._uses_sde = not deterministic and getattr(getattr(policy, "actor", policy), "use_sde", False)
        self._actor = discrete_actor(policy)
        self.infers_ahead = (
            self._actor is not None
            and type(self).act is PolicyOpponent.act
            and not self.preprocessing.remembers
            and self._device.type == "cpu"
            and all(type(module).__module__.split(".")[0] in KNOWN_PACKAGES for module in policy.modules())
        )
        self._states: SlotMemory | None = None  # of each slot: hidden and cell state, (2, layers, width)
        if hasattr(policy, "lstm_actor"):
            layers, _, width = policy.lstm_hidden_state_shape
            self._states = SlotMemory((2, layers, width), np.float32)
        self._rng = np.random.default_rng()

    @override
    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One batched forward pass, as `Opponent.act`."""
        import torch

        if self._actor is not None:
            return self.choose(self.infer(observations, slots), action_masks)
        with torch.inference_mode():
            return self._predict(self.preprocessing.apply(observations, slots), slots, action_masks)

    def infer(self, observations: Observations, slots: Slots) -> NDArray[Any]:
        """(B, A) logits; only of a policy for which `infers_ahead` can be true."""
        import torch

        assert self._actor is not None
        observations = self.preprocessing.apply(observations, slots)
        with torch.inference_mode():
            logits: NDArray[Any] = self._actor(torch.as_tensor(observations, device=self._device)).cpu().numpy()
        return logits

    def choose(self, logits: NDArray[Any], action_masks: Masks | None) -> Actions:
        """(B,) actions from logits (B, A), drawn from this opponent's random stream unless it is deterministic."""
        if self.uses_masks and action_masks is not None:
            logits = np.where(action_masks, logits, MASKED_LOGIT)
        if not self._deterministic:  # the Gumbel-max trick: the argmax is then a draw from the softmax of the logits
            logits = logits - np.log(self._rng.standard_exponential(logits.shape))
        actions: Actions = logits.argmax(axis=1)
        return actions

    @override
    def reset(self, slots: Slots) -> None:
        self.preprocessing.reset(slots)
        if self._states is not None:
            self._states.clear(slots)

    @override
    def seed(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _predict(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """The policy's own `predict`, with this opponent's random stream."""
        policy: Any = self.policy
        more: dict[str, Any] = {"action_masks": action_masks} if self.uses_masks else {}
        if self._states is not None:
            more["state"] = tuple(self._states.read(slots).transpose(1, 2, 0, 3))  # (layers, B, width) each
        with random_stream(self._device, int(self._rng.integers(2**63))):
            if self._uses_sde:
                policy.reset_noise(len(slots))  # otherwise all rows of all turns would have the same noise
            actions, state = policy.predict(observations, deterministic=self._deterministic, **more)
        if self._states is not None:
            self._states.write(slots, np.stack(state).transpose(2, 0, 1, 3))
        if self._epsilon and not self._deterministic:
            explores = self._rng.random(len(actions)) < self._epsilon
            actions[explores] = self._rng.integers(policy.action_space.n, size=int(explores.sum()))
        return np.asarray(actions)


def _statistics(source: Any, trust: Trust) -> tuple[bool, VecNormalize | None]:
    """Whether there are statistics beside a checkpoint, or around a live model; and those of observations."""
    if isinstance(source, (str, os.PathLike)):
        checkpoint = find_checkpoint(source)
        path = checkpoint and find_statistics(checkpoint, trust)
        if path:
            return True, load_statistics(path, trust)
    else:
        environment = getattr(source, "get_vec_normalize_env", None)  # a policy has none
        wrapper = None if environment is None else environment()
        if wrapper is not None:
            return True, copy_statistics(wrapper)
    return False, None
