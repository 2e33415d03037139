"""The time that moves take, and who is late."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LATE = 1.5
"""A move is late if it takes this many times its limit: clocks are looked at now and then, and processes have to wait."""


class MoveTimes(NamedTuple):
    """What the moves of some seats took, one entry for each seat; see `OpponentLineup.took` for what is measured."""

    seconds: NDArray[np.float64]  # of wall-clock time, of all moves that were timed
    moves: NDArray[np.int64]  # that were timed
    late: NDArray[np.int64]  # of these, that took more than `LATE` times the limit; 0 without a limit

    @classmethod
    def none(cls, *shape: int) -> MoveTimes:
        """Of seats that have not moved."""
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    def add(self, took: NDArray[np.float64], limit: float | None) -> None:
        """Count a move of each seat that `took` so many seconds, or NaN."""
        timed = np.isfinite(took)
        self.seconds[timed] += took[timed]
        self.moves[...] += timed
        if limit is not None:
            self.late[...] += timed & (np.where(timed, took, 0.0) > LATE * limit)

    def take(self, where: Any) -> MoveTimes:
        """A copy of these entries."""
        return MoveTimes(*(array[where].copy() for array in self))

    def put(self, where: Any, other: MoveTimes) -> None:
        """Replace these entries."""
        for array, new in zip(self, other, strict=True):
            array[where] = new


def check_move_time(seconds: Any) -> None:
    """Refuse what is no limit for a move.

    Raises:
        ValueError: it is neither None nor a number of seconds.
    """
    number = isinstance(seconds, (int, float, np.integer, np.floating)) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 1e-6 <= seconds <= 3600):
        raise ValueError(f"move_time must be None or a number of seconds from 0.000001 to 3600, got {seconds!r}")
