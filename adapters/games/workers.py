"""Games in worker processes, for slow environments: the parent's side.

A worker is a new Python process: nothing is forked, the user's `__main__` is neither run nor imported, and cloudpickle sends
functions and classes of `__main__` or of a notebook by value. It inherits `sys.path`, the working directory, `-W` options and
environment variables. Opponents stay in the parent, so workers do not load torch.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.games.worker_process import (
    FAREWELL,
    PATIENCE,
    READY,
    Failure,
    Traits,
    dump,
    read_message,
    share_observations,
    unlink,
    write_message,
)
from snake_pz.players import Observations, map_arrays


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker as text; the `__cause__` of the exception that is raised in the parent."""


class WorkerGames:
    """`LocalGames` divided among worker processes that step in parallel.

    An exception of an environment is raised here, with the worker's traceback as its cause, after every worker has answered.
    The workers keep running; after a failed step some games have advanced and others have not, so only `reset` may follow. If a
    worker ends by itself (killed, out of memory, `exit()` in an environment), all workers are stopped.

    Calling `close` is optional: when this object is collected or the program ends in any way, the workers close their
    environments and end, at the latest after `PATIENCE` seconds.

    Args:
        make_games: `make_games(factories, first_game=...)` makes the games of one worker, in the worker. Pickled.
        factories: one per game, pickled, called in the workers.
        num_workers: 1 to the number of games. Each worker gets a contiguous block of games, of sizes as equal as possible.

    Raises:
        ValueError: `num_workers` is out of range, the factories cannot be pickled, or games of two workers differ in agents,
            spaces or render mode; and any exception of `make_games`.
        RuntimeError: from every method: a worker has ended by itself, or all have been stopped.
    """

    def __init__(self, make_games: Callable[..., Any], factories: Sequence[Callable[[], Any]], num_workers: int) -> None:
        if not 1 <= num_workers <= len(factories):
            raise ValueError(f"num_workers must be <= num_games, got {num_workers} workers for {len(factories)} games")
        bounds = [len(factories) * k // num_workers for k in range(num_workers + 1)]
        self._ranges = [range(first, end) for first, end in pairwise(bounds)]
        starts = [_dump_start(make_games, factories[games.start : games.stop], games.start) for games in self._ranges]
        self._requests = 0
        self._workers: list[_Worker] = []
        self._stop = weakref.finalize(self, _stop, self._workers, os.getpid())
        try:
            for index, games in enumerate(self._ranges):
                self._workers.append(_Worker(f"worker {index} (games {games.start} to {games.stop - 1})"))
            self._take_traits(self._exchange(starts))
            self._observations = self._share_observations()
        except BaseException:
            self._stop()
            raise

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[Observations, list[dict[str, Any]]]:
        """As in `LocalGames`."""
        answers = self._all("reset", *((seeds[g.start : g.stop], options[g.start : g.stop]) for g in self._ranges))
        return map_arrays(np.copy, self._observations), [info for infos in answers for info in infos]

    def step(self, actions: NDArray[Any]) -> tuple[Observations, NDArray[np.float32], list[dict[str, Any]]]:
        """As in `LocalGames`."""
        answers = self._all("step", *((actions[batch],) for batch in self._batches))
        rewards = np.concatenate([rewards for rewards, _ in answers])
        return map_arrays(np.copy, self._observations), rewards, [info for _, infos in answers for info in infos]

    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        """Pickled copies of an attribute of the environments of these games."""
        return self._per_game("get_attr", games, before=(name,))

    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """Set an attribute to a pickled copy of `value`."""
        self._per_game("set_attr", games, before=(name, value))

    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method of the environments of these games."""
        return self._per_game("env_method", games, before=(name,), after=args, keywords=kwargs)

    def render(self, games: Sequence[int]) -> list[Any]:
        """The results of `render` of these games."""
        return self._per_game("render", games)

    def close(self) -> None:
        """Close every environment and end the workers, at the latest after `PATIENCE` seconds. May be called again.

        Warns of workers that could not close their environments, for example because they hang in a step.
        """
        if not self._stop.alive:
            return
        patience = threading.Timer(PATIENCE, _kill, self._workers)
        patience.daemon = True
        patience.start()
        answers: dict[_Worker, Any] = {}
        try:
            for worker in self._workers:
                worker.write_without_waiting()
            asked = self._send([dump(("close", (), {}))] * len(self._workers))
            for worker in asked:
                worker.dismiss()
            for worker in asked:
                with suppress(EOFError):
                    answers[worker] = pickle.loads(worker.receive(self._requests))
        finally:
            self._stop()
            patience.cancel()
        for worker in self._workers:
            if worker not in answers and worker.process.returncode != 0:
                warnings.warn(f"{worker.name} {worker.end()} without closing its environments", stacklevel=2)
        _raise_failures(answers)

    def _take_traits(self, traits: list[Traits]) -> None:
        for worker, other in zip(self._workers, traits, strict=True):
            if other != traits[0]:
                raise ValueError(f"the games of all workers must be alike, but {worker.name} has {other} and not {traits[0]}")
        self.agents, self.num_learners, self.observation_space, self.action_space = traits[0][:4]
        self.render_mode, self.has_mask_observations = traits[0][4:]
        seats = len(self.agents)
        self._batches = [slice(games.start * seats, games.stop * seats) for games in self._ranges]

    def _share_observations(self) -> Observations:
        """(B, *obs) in memory shared with the workers, each of which writes its part."""
        observations, name = share_observations(self.observation_space, self._batches[-1].stop)
        try:
            self._all("attach", *((name, self._batches[-1].stop, batch) for batch in self._batches))
        finally:
            unlink(name)
        return observations

    def _all(self, method: str, *arguments: tuple[Any, ...]) -> list[Any]:
        """Call a method in every worker with the arguments for it; returns the answers."""
        return self._exchange([dump((method, args, {})) for args in arguments])

    def _per_game(
        self,
        method: str,
        games: Sequence[int],
        before: tuple[Any, ...] = (),
        after: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Call a method for these games with arguments before and after `games`; returns the answers in their order."""
        places = [[place for place, game in enumerate(games) if game in mine] for mine in self._ranges]
        requests = [
            dump((method, (*before, [games[place] - mine.start for place in own], *after), keywords or {})) if own else None
            for mine, own in zip(self._ranges, places, strict=True)
        ]
        answers: dict[int, Any] = {}
        for own, answer in zip(places, self._exchange(requests), strict=True):
            answers.update(zip(own, answer or [None] * len(own), strict=True))
        return [answers[place] for place in range(len(games))]

    def _exchange(self, requests: Sequence[bytes | None]) -> list[Any]:
        """Send the workers their pickled requests and receive the answers; None for workers without a request."""
        payloads: dict[_Worker, bytes] = {}
        for worker in self._send(requests):
            try:
                payloads[worker] = worker.receive(self._requests)
            except EOFError as error:
                self._stop()
                how = str(error) or worker.end()
                raise RuntimeError(f"{worker.name} {how}: all workers are stopped, make a new environment") from error
        answers: dict[_Worker, Any] = {worker: pickle.loads(payload) for worker, payload in payloads.items()}
        _raise_failures(answers)
        return [answers.get(worker) for worker in self._workers]

    def _send(self, requests: Sequence[bytes | None]) -> list[_Worker]:
        """Send the workers their pickled requests; returns the workers that have one."""
        if not self._stop.alive:
            raise RuntimeError("the worker processes have been stopped: make a new environment")
        self._requests += 1
        asked = [(worker, request) for worker, request in zip(self._workers, requests, strict=True) if request is not None]
        for worker, request in asked:
            with suppress(OSError):  # a worker that has ended is noticed when its answer is read
                write_message(worker.requests, self._requests, request)
        return [worker for worker, _ in asked]


class _Worker:
    """The parent's side of one worker process."""

    def __init__(self, name: str) -> None:
        self.name = name
        path = ascii([entry for entry in sys.path if isinstance(entry, str)])
        code = f"import sys; sys.path[:] = {path}; from adapters.games.worker_process import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, *(f"-W{option}" for option in sys.warnoptions), "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that Ctrl-C in the terminal interrupts only the parent
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
            env={"PYGAME_HIDE_SUPPORT_PROMPT": "1", **os.environ},  # the parent prints it already
        )
        self.requests: Any = self.process.stdin
        self.replies: Any = self.process.stdout
        self._ready = False
        self._whole = True  # False: interrupted in the middle of a message

    def receive(self, number: int) -> bytes:
        """The answer to this request. Answers to earlier requests, left unread after an interrupt, are skipped.

        Raises:
            EOFError: the worker has ended, or an interrupt came in the middle of an answer.
        """
        while not self._ready:  # start-up files of the Python installation may print before
            line = self.replies.readline()
            if not line:
                raise EOFError
            self._ready = line.endswith(READY)
        answered = 0
        while answered != number:
            if not self._whole:
                raise EOFError("was interrupted in the middle of an answer")
            self.replies.peek(1)  # an interrupt while waiting for the first byte loses nothing
            self._whole = False
            answered, payload = read_message(self.replies)
            self._whole = True
        return payload

    def write_without_waiting(self) -> None:
        """Make writes non-blocking, because a stopped worker reads nothing. Data that does not fit into the pipe is lost."""
        if sys.platform != "win32":
            os.set_blocking(self.requests.fileno(), False)

    def dismiss(self) -> None:
        """Tell it to end after its requests. The end of its input is not enough while a fork holds the pipe open."""
        with suppress(OSError):
            write_message(self.requests, 0, FAREWELL)

    def end(self) -> str:
        """How it ended, as text. Only after it has ended."""
        code = self.process.returncode
        return f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"


def _stop(workers: list[_Worker], owner: int) -> None:
    """End all worker processes."""
    if os.getpid() != owner:  # in a fork of the parent
        return
    for worker in workers:
        worker.write_without_waiting()
        worker.dismiss()
        for stream in (worker.requests, worker.replies):
            with suppress(OSError):
                stream.close()
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(worker)
            worker.process.wait()


def _kill(*workers: _Worker) -> None:
    """Kill processes and their children: a fork would keep the pipe of answers open, and reading would not end."""
    for worker in workers:
        if worker.process.poll() is None:
            if sys.platform == "win32":
                worker.process.kill()
            else:
                with suppress(ProcessLookupError):
                    os.killpg(worker.process.pid, signal.SIGKILL)


def _raise_failures(answers: dict[_Worker, Any]) -> None:
    for worker, answer in answers.items():
        if isinstance(answer, Failure):
            _raise(worker, answer)


def _raise(worker: _Worker, failure: Failure) -> None:
    """Raise a worker's exception with its traceback as cause."""
    cause = WorkerTraceback(f"in {worker.name}:\n\n{failure.traceback}")
    error: BaseException | None = None
    if failure.error is not None:
        with suppress(Exception):
            error = pickle.loads(failure.error)
    raise (error if isinstance(error, Exception) else RuntimeError(f"{worker.name}: {failure.summary}")) from cause


def _dump_start(make_games: Callable[..., Any], factories: Sequence[Callable[[], Any]], first_game: int) -> bytes:
    try:
        return dump(("start", (make_games, list(factories), first_game), {}))
    except Exception as error:
        raise ValueError(
            f"worker processes get a pickled copy of the function that makes the environment, but it cannot be pickled "
            f"({type(error).__name__}: {error}): create locks, files, windows and the like inside the function that is passed "
            "as `env` instead of referring to them, or use num_workers=0"
        ) from error
