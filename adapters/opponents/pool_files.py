"""The files in an opponent pool's folder: their paths, writing and hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from adapters.opponents.checkpoints import existing_checkpoint, is_onnx, load_policy
from adapters.opponents.onnx_file import read_onnx
from adapters.opponents.statistics import check_none_missing, find_statistics, load_statistics
from adapters.opponents.unpickling import Trust
from snake_pz.files import replacing

MANIFEST = "manifest.json"


def is_pool(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder is an opponent pool's."""
    return (Path(folder) / MANIFEST).is_file()


Writer = Callable[[Path], Any]


def writers(model: Any, trust: Trust) -> tuple[Writer, Writer | None, tuple[str, str], str]:
    """What writes a model's file, what its statistics if it has some, its spaces in words, and the file's suffix.

    Raises:
        ValueError: it is the path of no checkpoint, or of one that asks for what is neither known nor trusted; or it was
            trained under `VecNormalize`, and the statistics are missing; or an ONNX file does not say what its spaces are.
        TypeError: it is neither a model nor a path.
        FileNotFoundError: there is no such checkpoint.
    """
    if isinstance(model, (str, os.PathLike)):
        source = existing_checkpoint(model)
        if is_onnx(source):
            about = read_onnx(source)[1]
            if about is None:
                raise ValueError(
                    f"a pool takes ONNX files whose metadata say what their spaces are, got {os.fspath(model)!r} without: let "
                    'it play beside the pool, mixture({pool: 3, frozen("file.onnx", observation=..., actions=...): 1})'
                )
            spaces = str(about.observation_space), str(about.action_space)
            return partial(shutil.copyfile, source), None, spaces, source.suffix
        policy, beside = load_policy(source, "cpu", trust), find_statistics(source, trust)
        if beside is None:
            check_none_missing(source, str(source))
        else:
            load_statistics(beside, trust)
        spaces = str(policy.observation_space), str(policy.action_space)
        return partial(shutil.copyfile, source), None if beside is None else partial(shutil.copyfile, beside), spaces, ".zip"
    if hasattr(model, "get_vec_normalize_env") and hasattr(model, "save"):
        normalize = model.get_vec_normalize_env()
        if normalize is None:
            check_none_missing(model, f"the {type(model).__name__}")
        return model.save, normalize and normalize.save, (str(model.observation_space), str(model.action_space)), ".zip"
    raise TypeError(f"a pool takes SB3 models and the paths of checkpoints, got {type(model).__name__}: {model!r:.80}")


def own_encoding(model: Any) -> str | None:
    """The name of the encoding that a live model's snakes are seen in; None if it is built in, or unknown as after `close`."""
    environment = model.get_env() if hasattr(model, "get_env") else None
    try:
        encoding = None if environment is None else environment.get_attr("encoding", 0)[0]
    except (AttributeError, RuntimeError):  # another game; a closed one
        return None
    from snake_pz.core.encodings import Encoding, is_built_in

    return encoding.name if isinstance(encoding, Encoding) and not is_built_in(encoding) else None


def put(path: Path, write: Writer | None) -> str | None:
    """Write a file atomically and return its hash; with None, remove what a crash may have left at the path."""
    if write is None:
        path.unlink(missing_ok=True)
        return None
    with replacing(path) as temporary:
        write(temporary)
    return sha256(path)


def statistics_path(checkpoint: Path) -> Path:
    """The path of a checkpoint's `VecNormalize` statistics: the first name that `find_statistics` looks for."""
    return checkpoint.with_name(f"{checkpoint.stem}_vecnormalize.pkl")


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
