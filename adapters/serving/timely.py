"""Moves in time: a player in a thread of its own, and a bot whose move is taken if the player has none by the deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Literal, NamedTuple

from adapters.serving.moves import Asked, MoveMaker

GATHER = 0.003
"""Seconds for which the player waits for further questions after the first, so that games at the same time go together."""
STUCK = 10.0
"""Seconds after which a player that has not come back counts as stuck."""


class Answer(NamedTuple):
    """A move and where it is from."""

    move: str
    by: Literal["player", "late", "error"]  # the player; or the bot, because the player was late or failed
    error: str = ""


class _Question(NamedTuple):
    asked: Asked
    answer: Future[str]


class TimelyMoves:
    """A player's moves, each within its time.

    The player moves in one thread: what is asked at about the same time, or while it thinks, goes into one prediction.
    Questions whose time is over by then are not put to it. Whoever asks is in an event loop; the bot moves there, before the
    player is asked, so that its move is ready whatever the player does.

    Args:
        player: makes the player's moves, in that thread alone from now on.
        bot: makes the moves that are taken where the player is late or fails, quickly.
    """

    def __init__(self, player: MoveMaker, bot: MoveMaker) -> None:
        self._player, self._bot = player, bot
        self._queue: SimpleQueue[_Question | Callable[[], None] | None] = SimpleQueue()
        self._busy_since: float | None = None
        self._thread = threading.Thread(
            target=self._play, name="player", daemon=True
        )  # one that hangs must not keep the process
        self._thread.start()

    def begin(self, asked: Asked) -> None:
        """Make ready for a game.

        Raises:
            ValueError: it is no request.
        """
        self._bot.begin(asked)
        self._put(lambda: self._player.begin(asked))

    async def move(self, asked: Asked, until: float) -> Answer:
        """The player's move, or the bot's.

        Args:
            asked: a request for a move.
            until: when to have it, in seconds of `time.perf_counter`.

        Raises:
            ValueError: it is no request.
        """
        ready = self._bot.move(asked)
        answer: Future[str] = Future()
        if not self._put(_Question(asked, answer)):
            return Answer(ready, "late")
        try:
            async with asyncio.timeout(until - time.perf_counter()):
                return Answer(await asyncio.wrap_future(answer), "player")
        except TimeoutError:
            return Answer(ready, "late")
        except Exception as error:  # of the player, which may be anybody's
            return Answer(ready, "error", f"{type(error).__name__}: {error}")

    def end(self, asked: Asked) -> None:
        """Forget a game.

        Raises:
            ValueError: it is no request.
        """
        self._bot.end(asked)
        self._put(lambda: self._player.end(asked))

    def forget_idle(self, seconds: float) -> None:
        """Forget the games that were not asked about for so long."""
        self._bot.forget_idle(seconds)
        self._put(lambda: self._player.forget_idle(seconds))

    @property
    def num_games(self) -> int:
        """Games that are remembered."""
        return self._bot.num_games

    @property
    def stuck(self) -> bool:
        """Whether the player has not come back for `STUCK` seconds, or never will."""
        since = self._busy_since
        return not self._thread.is_alive() or (since is not None and time.monotonic() - since > STUCK)

    def close(self) -> None:
        """Let the player go once it has answered what it was asked."""
        self._queue.put(None)
        self._thread.join(1.0)

    def _put(self, one: _Question | Callable[[], None]) -> bool:
        """Hand something to the player's thread; not if it is stuck, for the queue would grow for ever."""
        if self.stuck:
            return False
        self._queue.put(one)
        return True

    def _play(self) -> None:
        while True:
            found = [self._queue.get()]
            until = time.monotonic() + GATHER
            with suppress(Empty):
                while True:
                    found.append(self._queue.get(timeout=max(until - time.monotonic(), 0)))
            self._busy_since = time.monotonic()
            for one in found:
                if callable(one):
                    _do(one)
            self._answer([one for one in found if isinstance(one, _Question) and one.answer.set_running_or_notify_cancel()])
            self._busy_since = None
            if None in found:
                return

    def _answer(self, questions: list[_Question]) -> None:
        """Have the player move in all of these games at once; if that fails, one by one, so that none spoils the others."""
        if not questions:
            return
        try:
            moves = self._player.moves([one.asked for one in questions])
        except Exception as error:
            if len(questions) == 1:
                questions[0].answer.set_exception(error)
            else:
                for one in questions:
                    self._answer([one])
        else:
            for one, move in zip(questions, moves, strict=True):
                one.answer.set_result(move)


def _do(task: Callable[[], None]) -> None:
    try:
        task()
    except Exception:  # whoever asks for a move in this game gets to know
        return
