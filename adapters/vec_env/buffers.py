"""Buffers for Stable-Baselines3 that leave out padding.

With several learners in a game, an environment of the VecEnv is done when its learner dies, while the others play on. Until the
game restarts its steps are padding: the observation repeats, the reward is 0, the action is ignored. SB3's buffers would store
them. These buffers leave them out, using the `ActiveMask` of the VecEnv:

    env = make_sb3_env(learners="all")
    PPO("CnnPolicy", env, rollout_buffer_class=ActiveRolloutBuffer, rollout_buffer_kwargs={"active": env.active})

Advantages and returns of real steps equal those of SB3: generalised advantage estimation runs backwards along an environment
and is cut where the next step is an episode start. The first padded step is one, because its environment was done just before,
so nothing computed for padding reaches a real step. (`episode_start` is also set where an environment's next game begins.)
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer, DictRolloutBuffer, ReplayBuffer, RolloutBuffer
from typing_extensions import override

from snake_pz.players import Observations, map_arrays


class ActiveMask:
    """Which environments of a VecEnv acted in its last step.

    Pickles as an empty mask without a VecEnv, because SB3 saves the arguments of a model's buffers. When `learn` resets the
    VecEnv, the buffer of its model is bound to the mask of that VecEnv.

    Attributes:
        acted: (num_envs,) whether it acted in the last step; otherwise the step is padding. All False before the first step.
        began: (num_envs,) whether it acted and this was the first step of its game.
        steps: number of steps so far.
        total: number of real steps of all environments so far. SB3's `num_timesteps` counts padding too.
    """

    def __init__(self, num_envs: int = 0) -> None:
        self.acted: NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        self.began: NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        self.steps = 0
        self.total = 0

    def step(self, acted: NDArray[np.bool_], began: NDArray[np.bool_]) -> None:
        """Record a step of the VecEnv."""
        self.acted, self.began = acted, began
        self.steps += 1
        self.total += int(np.count_nonzero(acted))

    def __reduce__(self) -> tuple[type[ActiveMask], tuple[()]]:
        return ActiveMask, ()


class ActiveBuffer:
    """The common part of all these buffers: the mask, and the check that it belongs to the step that is added."""

    active: ActiveMask
    _added = 0  # number of the step that was added last

    def bind(self, active: ActiveMask) -> None:
        """Use this mask from now on."""
        self.active, self._added = active, active.steps

    def _mask_of_step(self, num_envs: int) -> ActiveMask:
        active = self.active
        if len(active.acted) != num_envs:
            what = f"that of {len(active.acted)} environments" if len(active.acted) else "the empty mask of a loaded model"
            raise ValueError(
                f"{type(self).__name__} needs the active mask of the VecEnv whose {num_envs} environments it stores, got "
                f"{what}: pass `active` of the VecEnv of make_sb3_env, or let `learn` reset that VecEnv, which binds it"
            )
        if active.steps == self._added:
            raise ValueError(
                f"{type(self).__name__} was given a step, but the VecEnv whose mask it has made none: the model learns on "
                "another one; let `learn` reset that, which binds its mask, or call `buffer.bind(env.active)`"
            )
        self._added = active.steps
        return active


class ActiveRollout(ActiveBuffer, RolloutBuffer):
    """The common part of the rollout buffers.

    `get` yields minibatches of at most `batch_size` steps and nearly equal size, because the number of real steps varies and a
    last minibatch of one or two steps would get a whole gradient step (and gives NaN in MaskablePPO). Once `get` has begun, the
    arrays hold real steps only.

    Args:
        active: `CurryVecEnv.active` of the VecEnv whose steps are stored.
    """

    acted: NDArray[np.bool_]  # (buffer_size, n_envs)

    def __init__(self, *args: Any, active: ActiveMask, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bind(active)

    @override
    def reset(self) -> None:
        """Begin a new rollout."""
        self.acted = np.zeros((self.buffer_size, self.n_envs), np.bool_)
        super().reset()

    @override
    def add(
        self,
        obs: Observations,
        action: NDArray[Any],
        reward: NDArray[Any],
        episode_start: NDArray[Any],
        value: torch.Tensor,
        log_prob: torch.Tensor,
        **more: Any,
    ) -> None:
        """Add a step of all environments."""
        active = self._mask_of_step(self.n_envs)
        self.acted[self.pos] = active.acted
        super().add(obs, action, reward, np.logical_or(episode_start, active.began), value, log_prob, **more)

    @override
    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Yield minibatches of the real steps in random order; one with all steps if `batch_size` is None."""
        assert self.full, "a rollout must be complete before it is read"
        if not self.generator_ready:
            kept = np.flatnonzero(self.swap_and_flatten(self.acted))
            for name in ("observations", "actions", "values", "log_probs", "advantages", "returns", "action_masks"):
                if name in self.__dict__:  # only some buffers have action masks
                    self.__dict__[name] = map_arrays(lambda array: self.swap_and_flatten(array)[kept], self.__dict__[name])
            self.generator_ready = True
        number = len(self.values)
        batches = 1 if batch_size is None else -(-number // batch_size)
        order = np.random.permutation(number)  # noqa: NPY002  # the stream that SB3 seeds and draws from
        for indices in np.array_split(order, batches):
            yield self._get_samples(indices)


class ActiveRolloutBuffer(ActiveRollout, RolloutBuffer):
    """SB3's `RolloutBuffer`, for PPO and A2C, without padding."""


class ActiveDictRolloutBuffer(ActiveRollout, DictRolloutBuffer):
    """SB3's `DictRolloutBuffer` without padding."""


class ActiveReplay(ActiveBuffer, ReplayBuffer):
    """The common part of the replay buffers. Only real transitions are stored, of all environments in one sequence.

    Args:
        active: `CurryVecEnv.active` of the VecEnv whose steps are stored.
        others: as in SB3's replay buffers.

    Raises:
        ValueError: `optimize_memory_usage` or n-step returns, which need the steps of an environment side by side.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_steps: int = 1,
        gamma: float = 0.99,
        *,
        active: ActiveMask,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                f"{type(self).__name__} cannot take the next observation from the next transition, because that belongs to "
                "another environment, got optimize_memory_usage=True: leave it out"
            )
        if n_steps != 1:
            raise ValueError(f"{type(self).__name__} supports only single steps, got n_steps={n_steps}: leave it out")
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            handle_timeout_termination=handle_timeout_termination,
        )
        self.num_rows = n_envs  # of the VecEnv (the name in saved buffers); for SB3 this is a buffer of one environment
        self.bind(active)

    @override
    def add(
        self,
        obs: Observations,
        next_obs: Observations,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add a step of all environments. Only those that acted are stored."""
        which = np.flatnonzero(self._mask_of_step(self.num_rows).acted)[-self.buffer_size :]
        where = (self.pos + np.arange(len(which))) % self.buffer_size
        self._store(self.observations, obs, where, which)
        self._store(self.next_observations, next_obs, where, which)
        self.actions[where, 0] = action.reshape(self.num_rows, self.action_dim)[which]
        self.rewards[where, 0] = reward[which]
        self.dones[where, 0] = done[which]
        if self.handle_timeout_termination:
            self.timeouts[where, 0] = [infos[env_id].get("TimeLimit.truncated", False) for env_id in which]
        self.full |= self.pos + len(which) >= self.buffer_size
        self.pos = (self.pos + len(which)) % self.buffer_size

    def _store(self, stored: Observations, given: Observations, where: NDArray[np.intp], which: NDArray[np.intp]) -> None:
        pairs = [(stored[key], given[key]) for key in stored] if isinstance(stored, dict) else [(stored, given)]
        for to, of in pairs:
            to[where, 0] = np.asarray(of).reshape(self.num_rows, *to.shape[2:])[which]


class ActiveReplayBuffer(ActiveReplay, ReplayBuffer):
    """SB3's `ReplayBuffer`, for DQN, SAC and TD3, without padding."""


class ActiveDictReplayBuffer(ActiveReplay, DictReplayBuffer):
    """SB3's `DictReplayBuffer` without padding."""


def activate(model: BaseAlgorithm, active: ActiveMask) -> None:
    """Replace a model's buffer by the one of this module that leaves out padding.

    `rollout_buffer_class` and `replay_buffer_class` are not changed, so saved models stay as they were.

    Args:
        model: a model with a rollout or replay buffer of SB3, or of this module, which is then bound to `active`.
        active: the mask of the VecEnv that it learns on.

    Raises:
        ValueError: there is no buffer for this one, or it already holds transitions.
    """
    name = "rollout_buffer" if getattr(model, "rollout_buffer", None) is not None else "replay_buffer"
    buffer = getattr(model, name, None)
    if isinstance(buffer, ActiveBuffer):
        buffer.bind(active)
        return
    twin = None if buffer is None else twin_of(type(buffer))
    if buffer is None or twin is None:
        raise ValueError(
            f"{type(model).__name__} cannot leave out padding: that needs a plain rollout or replay buffer of SB3 "
            f"(recurrent, n-step and prioritised ones are not supported), got {type(buffer).__name__}; " + WITHOUT_MEMORY
        )
    spaces_and_device = {
        "observation_space": buffer.observation_space,
        "action_space": buffer.action_space,
        "device": buffer.device,
        "n_envs": buffer.n_envs,
    }
    if isinstance(buffer, ReplayBuffer):
        if buffer.size():
            raise ValueError(
                f"the replay buffer of {type(model).__name__} already holds {buffer.size()} steps, some of which may be "
                f"padding: make the model with replay_buffer_class={twin.__name__}, or give it an empty buffer"
            )
        made = twin(
            buffer.buffer_size * buffer.n_envs,
            **spaces_and_device,
            optimize_memory_usage=buffer.optimize_memory_usage,
            handle_timeout_termination=buffer.handle_timeout_termination,
            active=active,
        )
    else:
        made = twin(buffer.buffer_size, **spaces_and_device, gae_lambda=buffer.gae_lambda, gamma=buffer.gamma, active=active)
    setattr(model, name, made)


LEAVES_OUT_PADDING = "leaves_out_padding"
"""The attribute of a model that learned with a buffer of this module; it is in the model's file, and nothing else of it is."""


def follow(model: BaseAlgorithm, active: ActiveMask, *, padded: bool) -> None:
    """Let a model that is about to learn leave out padding if it was made to do so, and its file be one without this package.

    Its settings then name no buffer, for which SB3 takes its own; a model that is loaded from the file gets the one of this
    module when it learns on a VecEnv with padding again.

    Args:
        model: the model.
        active: the mask of the VecEnv that it learns on.
        padded: whether steps may be padding.
    """
    name = "rollout_buffer" if getattr(model, "rollout_buffer", None) is not None else "replay_buffer"
    buffer = getattr(model, name, None)
    if padded and getattr(model, LEAVES_OUT_PADDING, False) and twin_of(type(buffer)) is not None:
        activate(model, active)
    elif isinstance(buffer, ActiveBuffer):
        buffer.bind(active)
        if type(buffer).__module__.startswith("adapters."):  # and is no subclass of somebody's own
            kwargs = getattr(model, f"{name}_kwargs", None) or {}
            setattr(model, f"{name}_kwargs", {key: kwargs[key] for key in kwargs if key not in ("active", "rows")})
            setattr(model, f"{name}_class", None)
            setattr(model, LEAVES_OUT_PADDING, True)


def twin_of(kind: type) -> type[Any] | None:
    """The class that does the same as a buffer class of SB3, without padding; None if there is none."""
    homes = {
        "stable_baselines3.common.buffers": "adapters.vec_env.buffers",
        "sb3_contrib.common.maskable.buffers": "adapters.vec_env.maskable_buffers",  # by name, because sb3-contrib is an extra
    }
    home = homes.get(kind.__module__)
    twin: type[Any] | None = getattr(import_module(home), f"Active{kind.__name__}", None) if home else None
    return twin


FRAMES_INSIDE = (
    "stack frames inside the environment, for example with supersuit.frame_stack_v2 (stack_dim=0 where the channels come first)"
)
"""What to do instead of `VecFrameStack`."""

WITHOUT_MEMORY = f"use PPO, A2C, MaskablePPO, DQN or the like, and where a policy needs to remember {FRAMES_INSIDE}"
"""What to do instead of a recurrent policy."""
