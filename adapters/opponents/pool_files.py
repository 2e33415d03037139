"""The files of an opponent pool's folder: where they are, how they are written, and their hashes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from adapters.opponents.checkpoints import existing_checkpoint, load_policy
from adapters.opponents.preprocessing import find_statistics
from snake_pz.files import replacing

MANIFEST = "manifest.json"

DEEPEST = 100
"""Levels of nesting in a manifest, which is also written from deep within a training run."""


def is_pool(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder is an opponent pool's."""
    return (Path(folder) / MANIFEST).is_file()


def read_manifest(path: Path) -> Any:
    """The JSON of a manifest that can be written again.

    Raises:
        ValueError: it is no JSON, has numbers that JSON has not, or is nested too deep.
        RecursionError: it is nested too deep even to be read.
    """
    content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    if (depth := _depth(content)) > DEEPEST:
        raise ValueError(f"{depth} levels of nesting, at most {DEEPEST}")
    return content


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


Writer = Callable[[Path], Any]


def writers(model: Any) -> tuple[Writer, Writer | None, tuple[str, str]]:
    """What writes a model's checkpoint, what its statistics if it has some, and its spaces in words."""
    if isinstance(model, (str, os.PathLike)):
        source = existing_checkpoint(model)
        policy, beside = load_policy(source, "cpu"), find_statistics(source)
        spaces = str(policy.observation_space), str(policy.action_space)
        return partial(shutil.copyfile, source), None if beside is None else partial(shutil.copyfile, beside), spaces
    if hasattr(model, "get_vec_normalize_env") and hasattr(model, "save"):
        normalize = model.get_vec_normalize_env()
        return model.save, normalize and normalize.save, (str(model.observation_space), str(model.action_space))
    raise TypeError(f"a pool takes SB3 models and the paths of checkpoints, got {type(model).__name__}: {model!r:.80}")


def put(path: Path, write: Writer | None) -> str | None:
    """Have a file written as a whole, and its hash; or nothing in its place, should a crash have left something there."""
    if write is None:
        path.unlink(missing_ok=True)
        return None
    with replacing(path) as temporary:
        write(temporary)
    return sha256(path)


def statistics_path(checkpoint: Path) -> Path:
    """Where a checkpoint's `VecNormalize` statistics are: under the name that `find_statistics` looks for first."""
    return checkpoint.with_name(f"{checkpoint.stem}_vecnormalize.pkl")


def sha256(path: Path) -> str:
    """Of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
