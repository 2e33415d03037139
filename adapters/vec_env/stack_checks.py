"""Checks of the wrappers and models on top of a VecEnv, and the binding of a model's buffer to the learners' mask."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor, VecTransposeImage, is_vecenv_wrapped
from stable_baselines3.common.vec_env.base_vec_env import VecEnvWrapper

from adapters.vec_env.buffers import FRAMES_INSIDE, WITHOUT_MEMORY, ActiveBuffer, ActiveMask, ActiveReplay, follow, twin_of
from adapters.vec_env.sb3_internals import SETUP, being_transposed

CHANNELS_FIRST = "VecTransposeImage(env, skip=True) around the VecEnv"
"""What tells Stable-Baselines3 that the channels of images come first already."""


def check(venv: VecEnv, active: ActiveMask, *, padded: bool, channels_first: bool, warn: bool) -> bool:
    """Check the wrappers and the model that are resetting a VecEnv. Called by its `reset`.

    Args:
        venv: the VecEnv.
        active: its mask, which the model's buffer is bound to.
        padded: whether steps may be padding.
        channels_first: whether the channels of its images are known to be first.
        warn: whether to warn of a buffer that would store padding, and of images whose channels may be last.

    Returns:
        Whether it warned.

    Raises:
        ValueError: a wrapper or an algorithm that would take padding for steps.
    """
    warned = False
    for caller in {id(caller): caller for caller in _callers(venv)}.values():
        if isinstance(caller, BaseAlgorithm):
            follow(caller, active, padded=padded)
            buffer = getattr(caller, "rollout_buffer", None) or getattr(caller, "replay_buffer", None)
            if warn and not channels_first and (space := _untransposed(caller)):
                warned = True
                warnings.warn(
                    f"{type(caller).__name__} takes images of shape {space.shape} to have {space.shape[0]} channels, because "
                    f"Stable-Baselines3 takes the smallest side, the first of equals, for the channels. If they are the last "
                    f"side, put them first in the environment; if they are the first, say so with {CHANNELS_FIRST}",
                    stacklevel=2,
                )
            if padded:
                warned |= _check_algorithm(caller, buffer, warn)
        elif padded:
            _check_wrapper(caller)
    return warned


def _callers(venv: VecEnv) -> Iterator[VecEnvWrapper | BaseAlgorithm]:
    """The wrappers and the model that are resetting this VecEnv, some of them twice.

    A VecEnv has no reference to its wrappers or its model, but they are on the call stack of its `reset`: `learn` calls
    `_setup_learn`, which calls `reset` of the outermost wrapper, and so on.
    """
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        caller = frame.f_locals.get("self") if frame.f_code.co_name in (SETUP, "reset") else None
        if isinstance(caller, VecEnvWrapper) and caller.unwrapped is venv:
            yield caller
        if isinstance(caller, BaseAlgorithm) and caller.env is not None and caller.env.unwrapped is venv:
            yield caller


def check_images() -> None:
    """Check whether a model is about to transpose images whose channels are first already.

    To be called when an environment is asked for its `render_mode`, which the `VecTransposeImage` that a model makes by
    itself does. Stable-Baselines3 takes the smallest side for the channels. Boards are small, so that stacked frames soon have
    more channels than cells a side.

    Raises:
        ValueError: the images are frames that `VecFrameStack` stacked along their first side.
    """
    env = being_transposed()
    if env is None:
        return
    for key, space in _images(env.observation_space):
        smallest = int(np.argmin(space.shape))
        if smallest == 0:
            continue
        seen = VecTransposeImage.transpose_image(np.empty(space.shape, np.bool_)).shape
        if frames := _frames_stacked_first(env, key):
            raise ValueError(
                f"VecFrameStack has stacked {frames} frames to images of shape {space.shape}, channels first, and the model "
                f"would transpose them to {seen}, because Stable-Baselines3 takes the smallest side for the channels: say that "
                f"they are first, with {CHANNELS_FIRST}"
            )
        if smallest == 1:  # and not the last side: which one the channels are cannot be told
            warnings.warn(
                f"the model transposes images of shape {space.shape} to {seen}, as if their channels were the last side. If "
                f"they are the first, say so with {CHANNELS_FIRST}; if they are the last, with VecTransposeImage(env)",
                stacklevel=2,
            )


def _images(space: gymnasium.Space[Any]) -> Iterator[tuple[str | None, spaces.Box]]:
    """The images in an observation, by key; the key is None where the observation is one."""
    for key, part in space.items() if isinstance(space, spaces.Dict) else [(None, space)]:
        if isinstance(part, spaces.Box) and is_image_space(part):
            yield key, part


def _frames_stacked_first(env: VecEnv, key: str | None) -> int:
    """How many frames a `VecFrameStack` among these wrappers stacks along the first side of this image; 0 if none does."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecFrameStack):
            stack = env.stacked_obs if key is None else env.stacked_obs.sub_stacked_observations[key]
            return stack.n_stack if stack.channels_first else 0
        env = env.venv
    return 0


def _untransposed(model: BaseAlgorithm) -> spaces.Box | None:
    """Images that a convolutional policy takes as they are, although their shape is that of square boards, channels last."""
    env = model.env
    if env is None or is_vecenv_wrapped(env, VecTransposeImage) or model.policy.features_extractor_class is FlattenExtractor:
        return None
    alike = (space for _, space in _images(env.observation_space) if space.shape[0] == space.shape[1] < space.shape[2])
    return next(alike, None)


def _check_wrapper(wrapper: VecEnvWrapper) -> None:
    if isinstance(wrapper, VecMonitor):
        raise ValueError(
            "VecMonitor would count the steps in which a learner only waits for the end of its game, and overwrite the exact "
            "episode infos of make_sb3_env: leave it out, `infos` have 'episode' without it"
        )
    if isinstance(wrapper, VecFrameStack):
        raise ValueError(
            "VecFrameStack would mix frames of two games, because with several learners a new game does not begin right after "
            f"done: {FRAMES_INSIDE}"
        )


def _check_algorithm(model: BaseAlgorithm, buffer: object, warn: bool) -> bool:
    """Check the model's buffer; returns whether it warned."""
    algorithm, kind = type(model).__name__, type(buffer)
    if kind.__module__ == "sb3_contrib.common.recurrent.buffers":
        raise ValueError(
            f"{algorithm} cannot learn with several learners: its buffer would store the steps in which a learner only waits "
            f"for the end of its game, and cannot be chosen: use learners=1; or {WITHOUT_MEMORY}"
        )
    if isinstance(buffer, ActiveReplay) and (n_steps := getattr(model, "n_steps", 1)) > 1:
        raise ValueError(f"{kind.__name__} supports only single steps, got {algorithm}(n_steps={n_steps}): use n_steps=1")
    if buffer is None or isinstance(buffer, ActiveBuffer) or not warn:
        return False
    name = "rollout_buffer" if hasattr(model, "rollout_buffer") else "replay_buffer"
    twin = twin_of(kind)
    mend = (
        f"make it with {name}_class=adapters.{twin.__name__}, {name}_kwargs={{'active': env.active}}"
        if twin
        else "no buffer like it leaves them out, so use another or learners=1"
    )
    warnings.warn(
        f"{algorithm} learns with several learners, but its {kind.__name__} also stores the steps in which a learner only "
        f"waits for the end of its game: {mend}",
        stacklevel=2,
    )
    return True
