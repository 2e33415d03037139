"""The decorator of kernels, the functions that numba compiles.

Compiled kernels are cached where numba caches: in `NUMBA_CACHE_DIR`, beside the sources, or in the user's cache folder, in the
first of these that can be written. The names of the files contain a digest of the whole package, because a compiled kernel
contains the kernels of other files that it calls. Where nothing can be written, kernels are compiled in every process.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, SupportsInt, TypeVar, cast

import numpy as np
from numba import config, njit
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from typing_extensions import override

Function = TypeVar("Function", bound=Callable[..., Any])

int64 = cast("Callable[[SupportsInt], int]", np.int64)
"""Convert an array element to the int64 that kernels compute with, so that helpers are compiled for one type only."""

_COMPILING = "snake_pz: compiling, once for this version; this takes up to a minute"
_NOT_CACHED = (
    "snake_pz: compiled code cannot be kept, so every process takes up to a minute to compile; "
    "set NUMBA_CACHE_DIR to a folder that can be written"
)
_UNCOUNTED: dict[str, Any] = {"_nrt": False}  # numba's own name for it, in all versions that are supported
_OUTDATED = 30 * 24 * 3600.0  # seconds after which the compiled code of another version is deleted


def kernel(function: Function) -> Function:
    """Compile a function on its first call with each set of argument types, cached on disk. It runs without the GIL."""
    return _compiled(function)


def lean_kernel(function: Function) -> Function:
    """A kernel that does not count references to arrays, for work on tuples of them; it must not allocate memory."""
    return _compiled(function, **_UNCOUNTED)


def inlined_kernel(function: Function) -> Function:
    """A lean kernel that is compiled into each of its callers, so that passing a tuple of arrays to it costs nothing."""
    return _compiled(function, forceinline=True, **_UNCOUNTED)


def _compiled(function: Function, **options: Any) -> Function:
    compiled: Any = njit(nogil=True, **options)(function)
    try:
        compiled._cache = _Cache(function)
    except RuntimeError:  # numba found no folder that can be written
        _notice.cached = False
    _notice.kernels.add(compiled)
    return cast("Function", compiled)


def digest_of(package: Path, settings: object) -> str:
    """A digest of all Python sources of a package, their places in it, and the settings that they are compiled with."""
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=8)
    for source in sorted(package.rglob("*.py")):
        text = source.read_bytes()
        digest.update(f"{source.relative_to(package).as_posix()} {len(text)} ".encode() + text)
    return digest.hexdigest()


_VERSION = digest_of(Path(__file__).parents[1], vars(config)["BOUNDSCHECK"])


class _CacheFiles(CompileResultCacheImpl):
    """Names of cache files with the digest of the package, so that versions neither share nor overwrite files."""

    @override
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}-{_VERSION}"


class _Cache(FunctionCache):
    """Numba's cache of one function, without which a kernel still runs: what cannot be read or written is compiled again."""

    _impl_class = _CacheFiles

    @override
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(sig, target_context)
        return None

    @override
    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
            _sweep(Path(self.cache_path))
        except OSError:
            _notice.cached = False
            _notice.say_not_cached()


@functools.cache
def _sweep(folder: Path) -> None:
    """Delete the compiled code of other versions that is old. A version takes a few megabytes."""
    for file in folder.glob("*.nb[ic]"):
        with suppress(OSError):  # another process deleted it, or is using it
            if _VERSION not in file.name and file.stat().st_mtime < time.time() - _OUTDATED:
                file.unlink()


class _Notice(event.Listener):
    """Tells people at a terminal, by a line that stays as long as it takes, that kernels are being compiled.

    Attributes:
        kernels: the functions whose compilation is told.
        cached: whether compiled code can be kept. If not, standard error says so once, terminal or not.
    """

    def __init__(self) -> None:
        self.kernels: set[Any] = set()
        self.cached = True
        self._said = False
        self._depth = 0  # compiling a kernel compiles those that it calls

    @override
    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in self.kernels:
            self._depth += 1
            if not self.cached:
                self.say_not_cached()
            elif self._depth == 1:
                _write(f"\r{_COMPILING}", only_to_terminal=True)

    @override
    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in self.kernels:
            self._depth -= 1
            if self.cached and self._depth == 0:
                _write(f"\r{' ' * len(_COMPILING)}\r", only_to_terminal=True)

    def say_not_cached(self) -> None:
        """Say once that compiled code cannot be kept."""
        if not self._said:
            self._said = True
            _write(f"{_NOT_CACHED}\n")


def _write(text: str, *, only_to_terminal: bool = False) -> None:
    """Write to standard error, which may be missing, closed or full: nothing depends on it."""
    with suppress(AttributeError, OSError, ValueError):
        if sys.stderr.isatty() or not only_to_terminal:
            sys.stderr.write(text)
            sys.stderr.flush()


_notice = _Notice()
event.register("numba:compile", _notice)
