"""Inference ahead: opponents' networks run in a thread of their own while the learner chooses its actions."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PAYS = 0.0005
"""Inference of one time step must take so many seconds to be worth a thread: below, handing it over costs what it saves."""

SAMPLE = 8
"""So many time steps are inferred by the caller and timed; the fastest counts."""

PERIOD = 2048
"""Time steps until inference is timed again, because opponents change."""


class Job(NamedTuple):
    """The inference of one opponent for one time step."""

    slots: NDArray[np.intp]
    infer: Callable[[], Any]
    future: Future[Any]

    def result(self) -> Any:
        """What the job returns, or raises."""
        return self.infer() if self.future.cancel() else self.future.result()


class Ahead:
    """Inference that runs ahead in one thread, and the rule by which it does.

    A job is a function without side effects, so one that is not needed is dropped. A job that has not begun when it is needed
    is run by the caller, who then has nothing else to do. Its exception is raised where it is needed, once.

    Attributes:
        wanted: whether to run ahead; None: where it pays, by the constants of this module, and where a core is free: the
            process may use more cores than torch has threads, and no autocast is on, which is of one thread.
    """

    def __init__(self) -> None:
        self.wanted: bool | None = None
        self._executor: ThreadPoolExecutor | None = None  # made when needed, its thread too
        self._jobs: dict[int, Job] = {}
        self._steps = 0
        self._fastest: float | None = None  # seconds, in the present sample

    def begin(self, number: int, slots: NDArray[np.intp], infer: Callable[[], Any]) -> None:
        """Begin a job.

        Args:
            number: of the opponent.
            slots: (B,) what it acts for.
            infer: the job.
        """
        import torch

        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="opponents")
        self._jobs[number] = Job(slots, infer, self._executor.submit(_with_threads, infer, torch.get_num_threads()))

    def take(self) -> dict[int, Job]:
        """The jobs that were begun since the last call."""
        jobs, self._jobs = self._jobs, {}
        return jobs

    def drop(self) -> None:
        """Forget all jobs."""
        for job in self.take().values():
            job.future.cancel()

    def due(self) -> bool:
        """Whether the inference of the coming time step should run ahead."""
        if self.wanted is not None:
            return self.wanted
        self._steps += 1
        if self._steps % PERIOD == 1:
            self._fastest = None
        sampled = self._steps % PERIOD == 0 or self._steps % PERIOD > SAMPLE
        return sampled and self._fastest is not None and self._fastest >= PAYS and core_is_free()

    def timed(self, seconds: float) -> None:
        """Take the time of the inference of a time step that did not run ahead."""
        if seconds:
            self._fastest = seconds if self._fastest is None else min(self._fastest, seconds)

    def close(self) -> None:
        """End the thread. It is made anew when needed."""
        self.drop()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the thread, which cannot be copied or pickled, and its jobs."""
        return {**self.__dict__, "_executor": None, "_jobs": {}}


def core_is_free() -> bool:
    """Whether torch leaves a core to another thread here."""
    import torch

    return torch.get_num_threads() < usable_cores() and not torch.is_autocast_enabled("cpu")


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _with_threads(infer: Callable[[], Any], threads: int) -> Any:
    """Run `infer` with as many threads of torch as the caller has: the number is each thread's own, and sums depend on it."""
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    return infer()
