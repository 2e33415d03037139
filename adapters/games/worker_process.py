"""Games in worker processes: the worker's side and the protocol of both sides.

Requests arrive on standard input and answers leave on standard output as numbered, length-prefixed pickles. Observations are
written into shared memory. Output of environments goes to standard error. A worker ends when its input ends, which also happens
when the parent dies.
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
"""Seconds between the end of a worker's input and its forced end."""

HEADER = struct.Struct("<QQ")
"""Header of a message: number of the request, and bytes that follow."""

READY = b"snake-pz worker ready\n"
"""First output of a worker."""

FAREWELL = b""
"""Request to end."""


class Traits(NamedTuple):
    """Properties of a worker's games, sent at the start."""

    agents: tuple[str, ...]
    num_learners: int
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    render_mode: str | None
    has_mask_observations: bool


class Failure(NamedTuple):
    """An exception in a worker, for the parent."""

    error: bytes | None  # pickled exception; None if it cannot be pickled
    summary: str
    traceback: str


def dump(message: Any) -> bytes:
    """Pickle a message; functions and classes of `__main__` or a notebook by value."""
    data: bytes = cloudpickle.dumps(message)
    return data


def write_message(stream: IO[bytes], number: int, payload: bytes) -> None:
    """Send a payload with the number of its request."""
    stream.write(HEADER.pack(number, len(payload)) + payload)  # one call, which an interrupt cannot split
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[int, bytes]:
    """Read the next (number, payload).

    Raises:
        EOFError: the stream ends before the end of the message.
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
    """Zeros (batch_size, *obs) in shared memory, and the name for `open_observations`, valid until `unlink`.

    Not by `multiprocessing.shared_memory`, which starts a process to track the memory and, before Python 3.13, one per worker.
    """
    empty = create_empty_array(space, n=batch_size)
    size = _place(empty)[1]
    if sys.platform == "win32":
        name = f"snake_pz_{uuid.uuid4().hex}"
        return _place(empty, mmap.mmap(-1, size, tagname=name))[0], name
    try:
        memory, name = _map_new_file("/dev/shm", size)
    except OSError:  # missing or full; small in containers
        memory, name = _map_new_file(tempfile.gettempdir(), size)
    return _place(empty, memory)[0], name


def open_observations(name: str, space: gymnasium.Space[Any], batch_size: int) -> Observations:
    """Map the observations of `share_observations` in another process."""
    empty = create_empty_array(space, n=batch_size)
    if sys.platform == "win32":
        return _place(empty, mmap.mmap(-1, _place(empty)[1], tagname=name))[0]
    with open(name, "r+b") as file:
        return _place(empty, mmap.mmap(file.fileno(), 0))[0]


def unlink(name: str) -> None:
    """Remove the name; the memory is freed with the last process that maps it."""
    if sys.platform != "win32":
        os.unlink(name)


def _place(empty: Observations, memory: mmap.mmap | None = None) -> tuple[Observations, int]:
    """Place arrays of the same shapes and dtypes in memory, and return them with the number of bytes needed."""
    size = 0

    def place(array: NDArray[Any]) -> NDArray[Any]:
        nonlocal size
        start = size
        size += max(1, -(-array.nbytes // 64)) * 64  # whole cache lines; at least one, because 0 bytes cannot be mapped
        return array if memory is None else np.ndarray(array.shape, array.dtype, memory, start)

    placed = map_arrays(place, empty)
    return placed, size


def _map_new_file(directory: str, size: int) -> tuple[mmap.mmap, str]:
    descriptor, name = tempfile.mkstemp(prefix="snake_pz_", dir=directory)
    try:
        with os.fdopen(descriptor, "r+b") as file:
            file.write(bytes(size))  # not truncate: on a full disk writing would then be a bus error
            file.flush()
            return mmap.mmap(file.fileno(), size), name
    except BaseException:
        os.unlink(name)
        raise


# The worker process


def main() -> None:
    """Answer requests on standard input until it ends."""
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
    os._exit(0)  # does not wait for threads that an environment has started, as in multiprocessing


def _listen(requests: IO[bytes], inbox: SimpleQueue[tuple[int, bytes] | None]) -> None:
    """Pass requests on. `PATIENCE` seconds after the last, end the process even if a step never returns."""
    with suppress(EOFError):
        while (message := read_message(requests))[1] != FAREWELL:
            inbox.put(message)
    inbox.put(None)
    time.sleep(PATIENCE)
    os._exit(1)


class _Server:
    """The methods that the parent can call: those below, and those of the games."""

    _games: Any  # with the methods of `LocalGames`

    def answer(self, request: bytes) -> bytes:
        """Execute a request and return the pickled result or Failure."""
        try:
            method, args, kwargs = pickle.loads(request)
            result = getattr(self if hasattr(self, method) else self._games, method)(*args, **kwargs)
        except Exception as error:
            return _dump_failure(error)
        try:
            return dump(result)
        except Exception as error:
            error.add_note("Everything that leaves a worker process must be picklable, unless num_workers=0")
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
