"""load_model: load whole models from untrusted files, to continue learning."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from adapters.opponents.checkpoint_file import CheckpointFile, at_most_parameters
from adapters.opponents.checkpoints import existing_checkpoint
from adapters.opponents.unpickling import Trust, checked_trust, one_line

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

Algorithm = TypeVar("Algorithm", bound="BaseAlgorithm")

MADE_ANEW = (
    "lr_schedule", "exploration_schedule", "_last_obs", "_last_original_obs", "_last_episode_starts", "ep_info_buffer",
    "ep_success_buffer",
)  # fmt: skip
"""Settings that `load` or `learn` makes anew where they are None."""

NOT_FROM_FILES = "tensorboard_log"
"""The setting that a file does not decide: in which folder `learn` writes."""


def load_model(
    algorithm: type[Algorithm],
    path: str | os.PathLike[str],
    env: VecEnv | None = None,
    *,
    device: torch.device | str = "auto",
    trust: Trust = False,
    custom_objects: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Algorithm:
    """Load a model as `algorithm.load` does, but run no code from the file unless it is trusted.

        model = load_model(PPO, "someone.zip", env, tensorboard_log="logs")

    The log folder is not taken from the file. A learning rate that is a function other than one of Stable-Baselines3's
    schedules is unknown: pass it in `custom_objects`, or trust the file.

    Args:
        algorithm: a class of Stable-Baselines3 or sb3-contrib.
        path: the checkpoint, with or without its .zip.
        env: environment to learn on.
        device: device to learn on.
        trust: what the file may ask for beside known classes: names, such as `["my_package.MyExtractor"]`; True: anything.
        custom_objects: settings by name, instead of those in the file, which are then not read.
        **settings: settings that replace those in the file.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: the file asks for what is neither known nor trusted, cannot be read, is of another algorithm, or does
            not fit `env`.
    """
    found, trusted = existing_checkpoint(path), checked_trust(trust)
    content = found.read_bytes()
    file = CheckpointFile(io.BytesIO(content), found, trusted)
    given = dict(custom_objects or {})
    if trusted is not True:
        if "env" in file.data:  # by whose name SB3 would import a module
            raise ValueError(
                f"{found} names an environment, which no model's save() writes: load it with trust=True if you must"
            )
        given = {NOT_FROM_FILES: None} | file.settings(optional=MADE_ANEW, without=given) | given
    bounds = nullcontext() if trusted else at_most_parameters(sum(map(len, file.all_weights())))
    try:
        with bounds:
            return algorithm.load(io.BytesIO(content), env, device=device, custom_objects=given, **settings)
    except ValueError:
        raise
    except Exception as error:  # what is in the file may be anything
        raise ValueError(f"{found} cannot be loaded as a {algorithm.__name__} ({one_line(error)})") from error
