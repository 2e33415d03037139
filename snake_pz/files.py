"""Files that appear whole or not at all, and folders that one process has for itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, in a folder made if need be, that becomes `path` when all went well.

    What was written is on the disk before the name is: after a loss of power there is the old file or the new one.
    """
    temporary = _beside(path)
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere folders cannot be opened, and need not be
        with suppress(OSError):  # some file systems refuse it; the file is there all the same
            _flush(path.parent)


def check_writable(path: Path) -> None:
    """Find out before long work that its result can be written; the folder is made if need be.

    Raises:
        OSError: it cannot, and why.
    """
    if path.is_dir():
        raise IsADirectoryError(f"expected the name of a file to write, got the folder {path}")
    temporary = _beside(path)
    temporary.touch()
    temporary.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a lock on the folder that goes when its process does; none where the system has no such locks.

    Raises:
        BlockingIOError: somebody else has it.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle, owner = os.open(folder, os.O_RDONLY), os.getpid()
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # as on some network file systems
            pass
        yield
    finally:
        if os.getpid() == owner:  # and not a child that has come out here too
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # closing would not do it if the process has forked meanwhile
        os.close(handle)


def _beside(path: Path) -> Path:
    """A name for a temporary file in the same folder, which is there after this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")


def _flush(path: Path) -> None:
    """Have the disk hold what a file contains, or which files a folder has."""
    # Windows flushes only what is open for writing; folders open only for reading
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
