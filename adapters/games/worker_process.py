"""Games in worker processes: the worker's side, and what both sides agree on.

Requests come on standard input and replies leave on standard output as numbered, length-prefixed pickles; observations are
written into memory that both sides map. What environments print goes to standard error. A worker ends when its input does: the
parent is done with it, or has died, in whatever way.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.vector.utils import create_empty_array
from numpy.typing import NDArray

from snake_pz.players import Observations, map_arrays

PATIENCE = 5.0
"""Seconds that a worker has to end after its input has, before it is made to."""

HEADER = struct.Struct("<QQ")
"""Of a message: the number of the request, the bytes that follow."""

READY = b"snake-pz worker ready\n"
"""What a worker says first."""

FAREWELL = b""
"""The request to end."""


class Traits(NamedTuple):
    """What a worker says of its games at the start."""

    agents: tuple[str, ...]
    num_learners: int
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    render_mode: str | None
    has_mask_observations: bool


class Failure(NamedTuple):
    """An exception on its way from a worker to the parent."""

    error: bytes | None  # the pickled exception, None if it cannot be pickled
    summary: str
    traceback: str


def dump(message: Any) -> bytes:
    """Pickle it, what belongs to `__main__` or a notebook by value."""
    data: bytes = cloudpickle.dumps(message)
    return data


def write_message(stream: IO[bytes], number: int, payload: bytes) -> None:
    """Send a payload under the number of its request."""
    stream.write(HEADER.pack(number, len(payload)) + payload)  # at once: nothing can interrupt in between
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[int, bytes]:
    """The next (number, payload).

    Raises:
        EOFError: the stream ends before the message does.
    """
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    number, size = HEADER.unpack(header)
    payload = stream.read(size)
    if len(payload) < size:
        raise EOFError
    return number, payload


def share_observations(space: gymnasium.Space[Any], batch_size: int) -> tuple[Observations, str]:
    """Zeros (batch_size, *obs) in shared memory, and the name under which `open_observations` finds them until `unlink`.

    `multiprocessing.shared_memory` would start a process to track the memory and, before Python 3.13, one in each worker.
    """
    empty = create_empty_array(space, n=batch_size)
    size = _place(empty)[1]
    if sys.platform == "win32":
        name = f"snake_pz_{uuid.uuid4().hex}"
        return _place(empty, mmap.mmap(-1, size, tagname=name))[0], name
    try:
        memory, name = _map_new_file("/dev/shm", size)
    except OSError:  # there is none, or it is full, as a container's is soon
        memory, name = _map_new_file(tempfile.gettempdir(), size)
    return _place(empty, memory)[0], name


def open_observations(name: str, space: gymnasium.Space[Any], batch_size: int) -> Observations:
    """The same (batch_size, *obs) in another process."""
    empty = create_empty_array(space, n=batch_size)
    if sys.platform == "win32":
        return _place(empty, mmap.mmap(-1, _place(empty)[1], tagname=name))[0]
    with open(name, "r+b") as file:
        return _place(empty, mmap.mmap(file.fileno(), 0))[0]


def unlink(name: str) -> None:
    """Forget the name; the memory goes with the last process that has it mapped."""
    if sys.platform != "win32":
        os.unlink(name)


def _place(empty: Observations, memory: mmap.mmap | None = None) -> tuple[Observations, int]:
    """Arrays of the same shapes and dtypes one after the other in memory, and the bytes that they take."""
    size = 0

    def place(array: NDArray[Any]) -> NDArray[Any]:
        nonlocal size
        start = size
        size += max(1, -(-array.nbytes // 64)) * 64  # whole cache lines, and never nothing, which cannot be mapped
        return array if memory is None else np.ndarray(array.shape, array.dtype, memory, start)

    placed = map_arrays(place, empty)
    return placed, size


def _map_new_file(directory: str, size: int) -> tuple[mmap.mmap, str]:
    descriptor, name = tempfile.mkstemp(prefix="snake_pz_", dir=directory)
    try:
        with os.fdopen(descriptor, "r+b") as file:
            file.write(bytes(size))  # a file grown by truncate on a full disk would be a bus error later
            file.flush()
            return mmap.mmap(file.fileno(), size), name
    except BaseException:
        os.unlink(name)
        raise


# The worker process


def main() -> None:
    """Serve the parent at the other end of standard input and output until that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    inbox: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    server = _Server()
    try:
        with suppress(BrokenPipeError):
            replies.write(READY)
            replies.flush()
            while (message := inbox.get()) is not None:
                number, request = message
                write_message(replies, number, server.answer(request))
    finally:
        server.close()
    sys.stderr.flush()
    os._exit(0)  # as multiprocessing ends its children: without waiting for threads that an environment left


def _listen(requests: IO[bytes], inbox: SimpleQueue[tuple[int, bytes] | None]) -> None:
    """Pass requests on. After the last, end the process even if it is in a step that never returns."""
    with suppress(EOFError):
        while (message := read_message(requests))[1] != FAREWELL:
            inbox.put(message)
    inbox.put(None)
    time.sleep(PATIENCE)
    os._exit(1)


class _Server:
    """What a worker does when asked: the methods below, else those of its games."""

    _games: Any  # as `LocalGames`

    def answer(self, request: bytes) -> bytes:
        """Do what is requested; the pickled result or Failure."""
        try:
            method, args, kwargs = pickle.loads(request)
            result = getattr(self if hasattr(self, method) else self._games, method)(*args, **kwargs)
        except Exception as error:
            return _dump_failure(error)
        try:
            return dump(result)
        except Exception as error:
            error.add_note("What an environment hands out of a worker process must be picklable, unless num_workers=0")
            return _dump_failure(error)

    def start(self, make_games: Callable[..., Any], factories: list[Callable[[], Any]], first_game: int) -> Traits:
        games = self._games = make_games(factories, first_game=first_game)
        return Traits(*(getattr(games, name) for name in Traits._fields))

    def attach(self, name: str, batch_size: int, batch: slice) -> None:
        observations = open_observations(name, self._games.observation_space, batch_size)
        self._observations = map_arrays(lambda array: array[batch], observations)

    def reset(self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        infos: list[dict[str, Any]]
        observations, infos = self._games.reset(seeds, options)
        self._hand_over(observations)
        return infos

    def step(self, actions: NDArray[Any]) -> tuple[NDArray[np.float32], list[dict[str, Any]]]:
        observations, rewards, infos = self._games.step(actions)
        self._hand_over(observations)
        return rewards, infos

    def _hand_over(self, observations: Observations) -> None:
        if isinstance(observations, dict):
            for key, array in observations.items():
                self._observations[key][:] = array
        else:
            self._observations[:] = observations

    def close(self) -> None:
        if hasattr(self, "_games"):
            self._games.close()


def _dump_failure(error: Exception) -> bytes:
    pickled = None
    with suppress(Exception):
        pickled = dump(error)
    return dump(Failure(pickled, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))))
