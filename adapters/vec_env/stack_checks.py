"""What stands on top of a VecEnv with several learners: a model's buffer is bound to its mask, what cannot work is rejected."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvWrapper

from adapters.vec_env.buffers import WITHOUT_MEMORY, ActiveBuffer, ActiveMask, ActiveReplay, twin_of
from adapters.vec_env.sb3_internals import SETUP


def check(venv: VecEnv, active: ActiveMask, *, padded: bool, warn: bool) -> bool:
    """To be called by `reset` of a VecEnv.

    Args:
        venv: the VecEnv.
        active: its mask, which the buffer of the model that learns on it is bound to.
        padded: whether it has several learners, so that there will be padding.
        warn: whether to warn of a buffer that would store it.

    Returns:
        Whether it warned.

    Raises:
        ValueError: a wrapper or an algorithm that takes padding for steps and cannot be told otherwise.
    """
    warned = False
    for caller in {id(caller): caller for caller in _callers(venv)}.values():
        if isinstance(caller, BaseAlgorithm):
            buffer = getattr(caller, "rollout_buffer", None) or getattr(caller, "replay_buffer", None)
            if isinstance(buffer, ActiveBuffer):
                buffer.bind(active)
            if padded:
                warned |= _check_algorithm(caller, buffer, warn)
        elif padded:
            _check_wrapper(caller)
    return warned


def _callers(venv: VecEnv) -> Iterator[VecEnvWrapper | BaseAlgorithm]:
    """The wrappers that are resetting this VecEnv at this moment, and the model that is about to learn on it; some come twice.

    SB3 tells a VecEnv nothing of what is on top of it. But all of that is on the call stack when it is reset: `learn` calls
    `_setup_learn`, which calls `reset` of the outermost wrapper, and so on down to here.
    """
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        caller = frame.f_locals.get("self") if frame.f_code.co_name in (SETUP, "reset") else None
        if isinstance(caller, VecEnvWrapper) and caller.unwrapped is venv:
            yield caller
        if isinstance(caller, BaseAlgorithm) and caller.env is not None and caller.env.unwrapped is venv:
            yield caller


def _check_wrapper(wrapper: VecEnvWrapper) -> None:
    if isinstance(wrapper, VecMonitor):
        raise ValueError(
            "VecMonitor would count the steps in which a learner only waits for the end of its game, and overwrite the exact "
            "episode infos that make_sb3_env gives: leave it out, `infos` have 'episode' without it"
        )
    if isinstance(wrapper, VecFrameStack):
        raise ValueError(
            "VecFrameStack would mix frames of two games, because with several learners a new game does not begin right after "
            "done: stack frames inside the environment instead, for example with supersuit.frame_stack_v2"
        )


def _check_algorithm(model: BaseAlgorithm, buffer: object, warn: bool) -> bool:
    """Whether it warned."""
    algorithm, kind = type(model).__name__, type(buffer)
    if kind.__module__ == "sb3_contrib.common.recurrent.buffers":
        raise ValueError(
            f"{algorithm} cannot learn with several learners: its buffer would store the steps in which a learner only waits "
            f"for the end of its game, and cannot be chosen: use learners=1; or {WITHOUT_MEMORY}"
        )
    if isinstance(buffer, ActiveReplay) and (n_steps := getattr(model, "n_steps", 1)) > 1:
        raise ValueError(f"{kind.__name__} knows single steps alone, got {algorithm}(n_steps={n_steps}): use n_steps=1")
    if buffer is None or isinstance(buffer, ActiveBuffer) or not warn:
        return False
    name = "rollout_buffer" if hasattr(model, "rollout_buffer") else "replay_buffer"
    twin = twin_of(kind)
    mend = (
        f"make it with {name}_class=adapters.{twin.__name__}, {name}_kwargs={{'active': env.active}}"
        if twin
        else "there is none like it that leaves them out, so use another or learners=1"
    )
    warnings.warn(
        f"{algorithm} learns with several learners, but its {kind.__name__} also stores the steps in which a learner only "
        f"waits for the end of its game: {mend}",
        stacklevel=2,
    )
    return True
