"""When an answer has to leave so that it arrives in time: the game's timeout less the latency that was measured."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Any, NamedTuple

from adapters.serving.moves import key_of
from snake_pz.formats.battlesnake import Request
from snake_pz.formats.fields import field, whole

UNKNOWN = 0.1
"""Seconds that are left for the network before anything was measured."""
SPARE = 0.03
"""Seconds that are left beside the latency, which varies, and for this process to wake up and write."""
REMEMBERED = 20
"""Moves of a game whose greatest latency counts."""
LEAST = 0.2
"""Share of the timeout that the player has at least, whatever the latency."""


class _Game(NamedTuple):
    latencies: deque[float]  # seconds on the way, of the last moves
    took: float | None  # seconds here, of the last move
    asked_at: float


class Deadlines:
    """The time that there is for each move, game by game.

    A request says how long the last answer took as the game's engine saw it, `you.latency`. Less the time that it took here,
    that is the latency: what passed on the way.
    """

    def __init__(self) -> None:
        self._games: OrderedDict[Hashable, _Game] = OrderedDict()

    def seconds(self, request: Request) -> float:
        """How many seconds after its arrival this request for a move has to be answered.

        Raises:
            ValueError: it names no game and snake, or its timeout is no number of milliseconds.
        """
        timeout = whole(request, "game.timeout", 1, 3_600_000, 500) / 1000
        game = self._games.get(key_of(request))
        if game is not None and game.took is not None and (seen := _seconds(field(request, "you.latency", 0))) > 0:
            game.latencies.append(max(min(seen, timeout) - game.took, 0.0))
        latency = max(game.latencies) + SPARE if game is not None and game.latencies else UNKNOWN
        return max(timeout - latency, LEAST * timeout)

    def answered(self, request: Request, took: float) -> None:
        """Note that the answer to this request left after so many seconds."""
        key = key_of(request)
        game = self._games.pop(key, None)
        latencies = deque[float](maxlen=REMEMBERED) if game is None else game.latencies
        self._games[key] = _Game(latencies, took, time.monotonic())

    def end(self, request: Request) -> None:
        """Forget the game that a request is from."""
        self._games.pop(key_of(request), None)

    def forget_idle(self, seconds: float) -> None:
        """Forget the games that were not asked about for so long."""
        while self._games and next(iter(self._games.values())).asked_at < time.monotonic() - seconds:
            self._games.popitem(last=False)


def _seconds(latency: Any) -> float:
    """Milliseconds, which the API writes as a string, in seconds; 0 if it is no number."""
    try:
        return max(float(latency), 0.0) / 1000
    except (TypeError, ValueError):
        return 0.0
