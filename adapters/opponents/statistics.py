"""The `VecNormalize` statistics of a policy: where they are, whether they are missing, and what is in them.

A file of statistics runs no code unless it is trusted, see `unpickling`. Importing this module loads neither torch nor
Stable-Baselines3; calling its functions does.
"""

from __future__ import annotations

import copy
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adapters.opponents.checkpoint_file import CheckpointFile
from adapters.opponents.checkpoints import find_checkpoint
from adapters.opponents.unpickling import LARGEST, Reader, Trust, UnreadableError, checked_trust, refusal

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecNormalize

OF_A_FOLDER = ("vec_normalize.pkl", "vecnormalize.pkl", "vecnorm.pkl")
"""Names of statistics that do not say of which checkpoint they are; the first is that of SB3's documentation and of its hub."""

_warned: set[Any] = set()  # files whose statistics are known to be missing


def find_statistics(checkpoint: Path, trust: Trust = False) -> Path | None:
    """The file with the `VecNormalize` statistics of a checkpoint's run, None if there is none.

    Looked for as, in this order, with `snake_1000_steps.zip` in `ppo/Snake-v1_2` for an example:

        snake_1000_steps_vecnormalize.pkl    what this project calls it; also ..._vec_normalize.pkl and ..._vecnorm.pkl
        snake_vecnormalize_1000_steps.pkl    SB3's `CheckpointCallback(save_vecnormalize=True)`
        best_vecnormalize.pkl                for a checkpoint called best...; also best_vec_normalize.pkl and best_vecnorm.pkl
        vec_normalize.pkl                    SB3's documentation and hub, see `OF_A_FOLDER`
        Snake-v1/vecnormalize.pkl            rl-baselines3-zoo: in a folder named as the environment, which names the run's

    Those of `OF_A_FOLDER` are not taken for a checkpoint that was trained without `VecNormalize`, as far as it tells.
    """
    folder, stem = checkpoint.parent, checkpoint.stem
    names = [f"{stem}_{name}" for name in ("vecnormalize.pkl", "vec_normalize.pkl", "vecnorm.pkl")]
    if steps := re.fullmatch(r"(.+)_(\d+_steps)", stem):
        names.append(f"{steps[1]}_vecnormalize_{steps[2]}.pkl")
    if stem.startswith("best"):
        names += [f"best_{name}" for name in OF_A_FOLDER]
    zoo = [path for path in folder.glob("*/vecnormalize.pkl") if folder.absolute().name.startswith(f"{path.parent.name}_")]
    for path in [*(folder / name for name in (*names, *OF_A_FOLDER)), *zoo]:
        if path.is_file() and (path.name not in OF_A_FOLDER or path in zoo or _can_be_of(path, checkpoint, trust)):
            return path
    return None


def _can_be_of(statistics: Path, checkpoint: Path, trust: Trust) -> bool:
    """Whether the checkpoint does not say that it was trained on observations as they are."""
    on_policy, last, original = _last_seen(checkpoint)
    if last is None:
        return True  # it says nothing
    if on_policy or original is None:
        return _normalized(on_policy, last, original)
    normalize = read_statistics(statistics, trust)
    try:
        return _distance(normalize.normalize_obs(original), last) < _distance(original, last)
    except (TypeError, ValueError, KeyError, AttributeError):  # of another shape
        return False


def _last_seen(checkpoint: Path) -> tuple[bool, Any, Any]:
    """Whether it is of an on-policy algorithm, the last observations, and these before they were normalised; None: unknown."""
    try:
        file = CheckpointFile(checkpoint, checkpoint)
        last, original = file.fields("_last_obs", "_last_original_obs")
    except ValueError:
        return False, None, None
    return "gae_lambda" in file.data, last, original


def _normalized(on_policy: bool, last: Any, original: Any) -> bool:
    """Whether the last observations were normalised, for certain: on-policy algorithms keep the others only if so."""
    arrays = last.values() if isinstance(last, dict) else [last]
    return on_policy and original is not None and any(np.asarray(array).dtype.kind == "f" for array in arrays)


def _distance(one: Any, other: Any) -> float:
    if isinstance(one, dict):
        return sum(_distance(one[key], other[key]) for key in one)
    if np.shape(one) != np.shape(other):
        raise ValueError(f"expected the shape {np.shape(one)}, got {np.shape(other)}")
    return float(np.abs(np.asarray(one, np.float64) - other).mean())


def check_none_missing(source: Any, whose: str) -> None:
    """Check that a policy without statistics was not trained with some.

    Args:
        source: the path of a checkpoint, or a live model or policy.
        whose: names it in the error.

    Raises:
        ValueError: it was; an algorithm that is not on-policy does not tell.
    """
    if isinstance(source, (str, os.PathLike)):
        checkpoint = find_checkpoint(source)
        seen = (False, None, None) if checkpoint is None else _last_seen(checkpoint)
        beside = "" if checkpoint is None else f"{checkpoint.stem}_vecnormalize.pkl beside it"
        mend = f"save them as {beside}, or name their file, frozen({os.fspath(source)!r}, vecnormalize=...)"
    else:
        last, original = getattr(source, "_last_obs", None), getattr(source, "_last_original_obs", None)
        seen = (hasattr(source, "gae_lambda"), original if last is None else last, original)
        mend = "load it with the VecNormalize around its environment, or name their file, frozen(model, vecnormalize=...)"
    if seen[1] is not None and _normalized(*seen):
        raise ValueError(
            f"{whose} was trained under VecNormalize, but there are no statistics to show it what it saw then, so it may play "
            f"as if it had learned nothing: {mend}. (If only rewards were normalised nothing is lost)"
        )


def warn_if_missing(source: Any, whose: str) -> None:
    """Warn where `check_none_missing` raises, once for each file."""
    try:
        check_none_missing(source, whose)
    except ValueError as error:
        key = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else None
        if key is None or key not in _warned:
            _warned.add(key)
            warnings.warn(str(error), stacklevel=2)


def load_statistics(path: str | os.PathLike[str], trust: Trust = False) -> VecNormalize | None:
    """The statistics in a file that `VecNormalize.save` wrote, frozen; None if they leave observations alone.

    Args:
        path: where it is.
        trust: names that the file may ask for beside known classes; True: anything.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds something else, or asks for what is neither known nor trusted.
    """
    statistics = read_statistics(path, trust)
    return _frozen(statistics)


def read_statistics(path: str | os.PathLike[str], trust: Trust = False) -> VecNormalize:
    """The same as they are, around no environments."""
    from stable_baselines3.common.vec_env import VecNormalize

    trusted = checked_trust(trust)
    if (size := os.stat(path).st_size) > LARGEST and trusted is not True:
        raise ValueError(
            f"{path} has {size / 2**20:,.0f} MiB, expected at most {LARGEST // 2**20} of statistics: if you trust its author, "
            "trust=True lifts the limit"
        )
    reader = Reader(trusted)
    try:
        statistics = reader.read(Path(path).read_bytes())
    except UnreadableError as error:
        raise ValueError(f"{path} cannot be unpickled ({error}): save it anew") from error
    if reader.unknown:
        raise ValueError(refusal(path, reader.unknown))
    if not isinstance(statistics, VecNormalize):
        raise ValueError(f"{path} must hold a VecNormalize, as its save() writes it, got a {type(statistics).__name__}")
    return statistics


def copy_statistics(statistics: VecNormalize | None) -> VecNormalize | None:
    """The statistics that a live wrapper has by now, frozen; None if there is none or it leaves observations alone."""
    return None if statistics is None else _frozen(copy.deepcopy(statistics))  # which leaves its environments out


def _frozen(statistics: VecNormalize) -> VecNormalize | None:
    statistics.training = False
    statistics.old_obs = statistics.old_reward = np.array([])  # the last batch of its own environments
    return statistics if statistics.norm_obs else None
