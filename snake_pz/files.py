"""Files that appear whole or not at all, output that goes where it is sent, and folders that one process has for itself."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".lock"
"""The file in a folder that `locked` locks. It stays, for whoever waits for it must find the same one."""

ABANDONED = 3600.0
"""Seconds after which a temporary file that nobody has written to is one of a process that was killed."""

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.part(\.[^.]*)?", re.DOTALL)
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name, unique to this call, whose content becomes that of `path` when all went well.

    A file is replaced in one go: what was written is on the disk before the name is, so that after a loss of power there is the
    old file or the new one. Its folder is made if need be. A link stays, and what it leads to is replaced. What is no file,
    such as a pipe or a device, stays too: the content is copied into it.

    Raises:
        OSError: it cannot be written, and why.
    """
    if _is_stream(path):
        with tempfile.TemporaryDirectory(prefix="snake-pz-") as folder:
            temporary = Path(folder) / path.name
            yield temporary
            _copy_into(temporary, path)
        return
    target = _followed(path)
    with _called(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, untouched=ABANDONED)
    # with the suffix of `path`, by which some libraries go; and the name short enough for any file system
    temporary = target.with_name(f".{path.stem[:40]}.{secrets.token_hex(8)}.part{path.suffix}")
    try:
        with _called(path, temporary):
            yield temporary
            with suppress(OSError):  # there is none, or the file system has no modes
                shutil.copymode(target, temporary)
            _flush(temporary)
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere folders cannot be opened, and need not be
        with suppress(OSError):  # some file systems refuse it; the file is there all the same
            _flush(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a file by `replacing`, in UTF-8 and with the same line ends on every system.

    Surrogates, which UTF-8 has not, are written as escapes: Python makes them of file names that its locale cannot read.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode(errors="backslashreplace"))


def check_writable(path: Path) -> None:
    """Find out before long work that its result can be written. Nothing is made or changed.

    Raises:
        OSError: it cannot, and why.
    """
    if path.is_dir():
        raise IsADirectoryError(f"expected the name of a file to write, got the folder {path}")
    target = path if _is_stream(path) else _followed(path)
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if target is not path:
        folder = next(parent for parent in target.parents if parent.exists())
        with _called(path), tempfile.TemporaryFile(dir=folder):
            pass


def sweep(folder: Path, untouched: float = 0.0) -> None:
    """Remove temporary files that killed processes have left in a folder.

    Args:
        folder: whose files.
        untouched: seconds that nobody has written to them; 0 where nobody else can be writing, as in a locked folder.
    """
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:  # a folder may be written to and not read
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):  # somebody else's, or just gone
                    if now - entry.stat().st_mtime >= untouched:
                        os.unlink(entry.path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a lock on the folder, by its file `.lock`, that goes when its process does.

    Where the file system has no locks, as some network file systems have none, nobody is kept out.

    Raises:
        BlockingIOError: somebody else has it.
        OSError: the folder cannot be written.
    """
    from filelock import lock_descriptor, unlock_descriptor  # takes as long as the rest of the package

    handle, owner = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666), os.getpid()
    try:
        held = True
        with suppress(OSError):  # no locks here
            held = lock_descriptor(handle, blocking=False)
        if not held:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process has locked the folder", str(folder))
        yield
    finally:
        if os.getpid() == owner:  # and not a child that has come out here too
            with suppress(OSError):
                unlock_descriptor(handle)  # closing would not do it if the process has forked meanwhile
        os.close(handle)


def _is_stream(path: Path) -> bool:
    """Whether something is there that is no file, or is one that the process has open already."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _descriptor(path: Path) -> int | None:
    """Of the open file that a path such as /dev/stdout stands for."""
    text = os.fspath(path)
    if match := re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", text):
        return int(match[1])
    return _STREAMS.get(text)


def _copy_into(file: Path, stream: Path) -> None:
    descriptor = _descriptor(stream)
    if descriptor is not None:
        sys.stdout.flush()  # what was printed before comes before it
    # An open file goes on where it is, which opening its path anew would not do.
    with (
        _called(stream),
        file.open("rb") as source,
        open(stream if descriptor is None else os.dup(descriptor), "wb") as sink,
    ):
        shutil.copyfileobj(source, sink)


def _followed(path: Path) -> Path:
    """What a link leads to, whether or not it is there; or the path itself."""
    return Path(os.path.realpath(path))


@contextmanager
def _called(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Let errors speak of the file that the user named."""
    try:
        yield
    except OSError as error:
        if temporary is None or error.filename in (temporary, str(temporary)):
            error.filename, error.filename2 = str(path), None
        raise


def _flush(path: Path) -> None:
    """Have the disk hold what a file contains, or which files a folder has."""
    # Windows flushes only what is open for writing; folders open only for reading
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
