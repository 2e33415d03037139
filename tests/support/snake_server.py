"""A server of Battlesnake's API in a thread of the tests' own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from adapters.serving.battlesnake_server import Limits, Look, battlesnake_server, listening_socket
from adapters.serving.moves import MoveMaker
from adapters.serving.timely import TimelyMoves
from snake_pz import Rules


@contextmanager
def served(player: Any, look: Look | None = None, limits: Limits | None = None) -> Iterator[str]:
    """The URL of a server of this player, which ends as one does on SIGTERM."""
    with stoppable(player, look, limits) as (url, _):
        yield url


@contextmanager
def stoppable(player: Any, look: Look | None = None, limits: Limits | None = None) -> Iterator[tuple[str, uvicorn.Server]]:
    """The URL of a server, and the server, to be told to exit."""
    bot = MoveMaker("survivor")
    bot.prepare(Rules.battlesnake())  # kernels are compiled before anybody waits
    moves = TimelyMoves(MoveMaker(player, deterministic=True, device="cpu"), bot)
    server = battlesnake_server(moves, look, limits)
    with listening_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", server
        finally:
            server.should_exit = True
            thread.join()
