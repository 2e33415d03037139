"""A server of Battlesnake's API, version 1 (docs.battlesnake.com/api): one player, any number of games at once."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.serving.bounds import RateBound, read_json
from adapters.serving.deadlines import Deadlines
from adapters.serving.log import log_config, say
from adapters.serving.moves import MoveMaker, game_and_snake
from adapters.serving.timely import TimelyMoves
from snake_pz import __version__
from snake_pz.ranges import Range, check_ranges
from snake_pz.rules import Rules

BOARDS = (11, 7, 19)
"""Sides of the official boards, the commonest first."""
_MOST_CONNECTIONS = 1000
_KEEP_ALIVE = 60
"""Seconds for which a connection is kept while nobody asks: a turn takes as long as the slowest snake."""
_SWEEP_EVERY = 30.0  # seconds


@dataclasses.dataclass(frozen=True)
class Look:
    """How a snake looks on the board: `GET /`.

    Attributes:
        author: the name of who made it.
        color: `#rrggbb`.
        head: name of one of Battlesnake's heads.
        tail: name of one of its tails.

    Raises:
        ValueError: no such colour, or what cannot be such a name.
    """

    author: str = ""
    color: str = "#3e8e41"
    head: str = "default"
    tail: str = "default"

    def __post_init__(self) -> None:
        """Check it."""
        if not re.fullmatch("#[0-9a-fA-F]{6}", self.color):
            raise ValueError(f"color must be #rrggbb in hexadecimal digits, got {self.color!r}")
        for name in ("head", "tail"):
            if not re.fullmatch("[A-Za-z0-9-]{1,64}", getattr(self, name)):
                raise ValueError(
                    f"{name} must be a name of letters, digits and -, such as default, got {getattr(self, name)!r}"
                )


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a server grants.

    Attributes:
        rate: requests per second that one host may make.
        idle: seconds after which a game that nobody asks about is forgotten.

    Raises:
        ValueError: a number out of its range.
    """

    rate: float = 500.0
    idle: float = 600.0

    def __post_init__(self) -> None:
        """Check them."""
        check_ranges(self, {"rate": Range(0.1, 1e6, whole=False), "idle": Range(1, 1e6, whole=False)})


class _Endpoints:
    """What each request comes to."""

    def __init__(self, moves: TimelyMoves, look: Look, limits: Limits) -> None:
        self._moves, self._look, self._idle = moves, look, limits.idle
        self._rate = RateBound(limits.rate)
        self._deadlines = Deadlines()
        self._counts = Counter({"moves": 0, "late": 0, "errors": 0, "refused": 0})

    async def info(self, request: Request) -> Response:
        self._check_rate(request)
        return JSONResponse({"apiversion": "1", **dataclasses.asdict(self._look), "version": __version__})

    async def health(self, request: Request) -> Response:
        """Whether the player answers. While it is stuck the bot moves, and this is 503: start the server anew."""
        self._check_rate(request)
        stuck = self._moves.stuck
        answer = {"status": "stuck" if stuck else "ok", "games": self._moves.num_games, **self._counts}
        return JSONResponse(answer, 503 if stuck else 200)

    async def start(self, request: Request) -> Response:
        asked = await self._read(request)
        self._moves.begin(asked)
        game, snake = game_and_snake(asked)
        say("start", logging.DEBUG, game=game, snake=snake)
        return JSONResponse({})

    async def move(self, request: Request) -> Response:
        arrived = time.perf_counter()
        asked = await self._read(request)
        seconds = self._deadlines.seconds(asked)
        answer = await self._moves.move(asked, arrived + seconds)
        took = time.perf_counter() - arrived
        self._deadlines.answered(asked, took)
        self._counts["moves"] += 1
        level, more = logging.DEBUG, {}
        if answer.by != "player":
            self._counts["late" if answer.by == "late" else "errors"] += 1
            level, more = logging.WARNING, {"error": answer.error} if answer.error else {}
        game, snake = game_and_snake(asked)
        milliseconds = {"ms": round(1000 * took, 1), "deadline_ms": round(1000 * seconds)}
        say(
            "move",
            level,
            game=game,
            snake=snake,
            turn=asked.get("turn"),
            move=answer.move,
            by=answer.by,
            **milliseconds,
            **more,
        )
        return JSONResponse({"move": answer.move})

    async def end(self, request: Request) -> Response:
        asked = await self._read(request)
        self._moves.end(asked)
        self._deadlines.end(asked)
        game, snake = game_and_snake(asked)
        say("end", logging.DEBUG, game=game, snake=snake, turn=asked.get("turn"))
        return JSONResponse({})

    async def sweep(self) -> None:
        """Forget games that nobody ended."""
        while True:
            await asyncio.sleep(min(_SWEEP_EVERY, self._idle / 2))
            self._moves.forget_idle(self._idle)
            self._deadlines.forget_idle(self._idle)

    async def refuse(self, request: Request, error: Exception) -> Response:
        """The answer to what was no request of the API, or one too many."""
        status, text = (error.status_code, error.detail) if isinstance(error, HTTPException) else (400, str(error))
        self._counts["refused"] += 1
        if status != 429:  # they may be very many
            say("refused", logging.WARNING, path=request.url.path, status=status, error=text)
        headers = {"Retry-After": "1"} if status == 429 else None
        return JSONResponse({"error": text}, status, headers)

    async def _read(self, request: Request) -> dict[str, Any]:
        self._check_rate(request)
        return await read_json(request)

    def _check_rate(self, request: Request) -> None:
        if not self._rate.allows("" if request.client is None else request.client.host):
            raise HTTPException(429, "too many requests")


def battlesnake_server(
    moves: TimelyMoves, look: Look | None = None, limits: Limits | None = None, logs: dict[str, Any] | None = None
) -> uvicorn.Server:
    """The server, to be run on a socket that listens, see `listening_socket`.

    Args:
        moves: makes the moves; it is closed when the server ends.
        look: how the snake looks.
        limits: what is granted to those who ask.
        logs: settings of `logging`; None: as they are.
    """
    endpoints = _Endpoints(moves, look or Look(), limits or Limits())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(endpoints.sweep())
        yield
        sweeping.cancel()
        moves.close()
        say("stopped")

    app = Starlette(
        routes=[
            Route("/", endpoints.info),
            Route("/healthz", endpoints.health),
            *(Route(f"/{name}", getattr(endpoints, name), methods=["POST"]) for name in ("start", "move", "end")),
        ],
        exception_handlers={ValueError: endpoints.refuse, HTTPException: endpoints.refuse},
        lifespan=lifespan,
    )
    config = uvicorn.Config(
        app,
        log_config=logs,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        lifespan="on",
        ws="none",
    )
    return uvicorn.Server(config)


def prepared(player: MoveMaker) -> None:
    """Have a player move once on each official board that it can play on, so that no game waits for compiling and loading.

    Raises:
        FileNotFoundError, TypeError: as `MoveMaker.move`.
        ValueError: as `MoveMaker.move`, about the commonest board, if it can play on none.
    """
    errors = []
    for side in BOARDS:
        try:
            player.prepare(Rules.battlesnake(width=side, height=side))
        except ValueError as error:
            errors.append(error)
    if len(errors) == len(BOARDS):
        raise errors[0]


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens. Its protocol is said, for asyncio turns off Nagle's algorithm, 40 ms a move, only where it is."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_MOST_CONNECTIONS)
    except OSError as error:
        listening.close()
        raise OSError(f"cannot listen at {host} port {port}: {error.strerror or error}") from error
    return listening


def serve(
    player: MoveMaker, *, host: str, port: int, look: Look | None = None, limits: Limits | None = None, level: str = "debug"
) -> None:
    """Serve until SIGINT or SIGTERM, which let moves that are being made be answered.

    Args:
        player: makes the moves.
        host: address to listen at.
        port: its port; 0: any that is free, which the log says.
        look: how the snake looks.
        limits: what is granted to those who ask.
        level: of the log: `debug`, with every move, or `info`.

    Raises:
        OSError: the address cannot be listened at.
        FileNotFoundError, TypeError, ValueError: the player cannot be made or cannot play on an official board.
    """
    bot = MoveMaker("survivor")
    with listening_socket(host, port) as listening:
        prepared(bot)
        prepared(player)
        server = battlesnake_server(TimelyMoves(player, bot), look, limits, log_config(level))
        address, bound = listening.getsockname()[:2]
        say("serving", url=f"http://[{address}]:{bound}" if ":" in host else f"http://{address}:{bound}")
        server.run([listening])
