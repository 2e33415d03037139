"""All uses of private names of Stable-Baselines3 in this project. Tested with its versions below 3."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv, VecTransposeImage

SETUP = "_setup_learn"
"""The method in which `learn` resets the model's VecEnv."""

WRAP = "_wrap_env"
"""The method in which a model that is made, loaded or given a VecEnv puts `VecTransposeImage` around it."""


def being_transposed() -> VecEnv | None:
    """Find the VecEnv around which a model is putting `VecTransposeImage`; None if no model is.

    To be called while an environment is asked for its `render_mode`, which every wrapper does when it is made.
    """
    frame, transposes = sys._getframe(), False
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        if frame.f_code.co_name == WRAP:
            env: VecEnv = frame.f_locals["env"]
            return env if transposes else None
        transposes |= isinstance(frame.f_locals.get("self"), VecTransposeImage)
    return None


def reset_when_learning(model: BaseAlgorithm) -> None:
    """Make the next `learn` reset the model's VecEnv, which it otherwise does only the first time."""
    model._last_obs = None


def restart_games(model: Any, env: VecEnv) -> None:
    """Reset the VecEnv during `learn`, between two rollouts, and let the model continue from the first observations."""
    model._last_obs = env.reset()
    model._last_episode_starts = np.ones(env.num_envs, dtype=bool)
    if model._vec_normalize_env is not None:
        model._last_original_obs = model._vec_normalize_env.get_original_obs()


def set_up_learning(model: BaseAlgorithm, total_timesteps: int) -> BaseCallback:
    """Do what `learn` does before its first rollout; returns the callback for `collect_rollouts`."""
    return model._setup_learn(total_timesteps, CallbackList([]))[1]
