"""How many moves a Battlesnake server makes, and how long each takes: `snake-pz bench serve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.table import Table

from adapters.command.bench import SECONDS
from adapters.serving.battlesnake_client import BattlesnakeClient
from snake_pz import Rules, SnakeEngine, make_bot
from snake_pz.formats import battlesnake
from snake_pz.ranges import check_number

_TURNS = 100


def bench_serve(player: str = "champion", games: int = 4, seconds: float = 10.0) -> Table:
    """Games side by side, in each of which the server moves one snake and is asked again as soon as it has answered.

    The server is a process of its own and has one core, where the system can pin it. The requests are of games that
    `territorial` plays with itself; the time to make them is not counted.

    Args:
        player: who plays.
        games: games at once.
        seconds: how long to measure.

    Returns:
        A table: moves per second, and milliseconds until an answer was there.
    """
    check_number("seconds", seconds, SECONDS)
    sequences = [_requests(seed) for seed in range(games)]
    waits: list[list[float]] = [[] for _ in range(games)]
    failed: list[BaseException] = []
    with _server(player) as url:
        begun = time.perf_counter()

        def play(number: int) -> None:
            try:
                with BattlesnakeClient(url) as client:
                    game = 0
                    while time.perf_counter() < begun + seconds:
                        game_id = {
                            "id": f"{number}-{game}",
                            **{k: v for k, v in sequences[number][0]["game"].items() if k != "id"},
                        }
                        game += 1
                        client.post("/start", sequences[number][0] | {"game": game_id})
                        for request in sequences[number]:
                            asked = time.perf_counter()
                            client.post("/move", request | {"game": game_id})
                            waits[number].append(time.perf_counter() - asked)
                        client.post("/end", sequences[number][-1] | {"game": game_id})
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=play, args=(number,)) for number in range(games)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - begun
        if failed:
            raise failed[0]
        with BattlesnakeClient(url) as client:
            health = client.get("/healthz")
    milliseconds = 1000 * np.concatenate([np.array(one) for one in waits])
    table = Table("player", "games", "moves/s", "median ms", "99 % ms", "most ms", "not the player's")
    table.title = "Moves of one server"
    half, most = np.percentile(milliseconds, [50, 99])
    others = health["late"] + health["errors"]
    figures = f"{len(milliseconds) / took:,.0f}", f"{half:.1f}", f"{most:.1f}", f"{milliseconds.max():.1f}"
    table.add_row(player, str(games), *figures, str(others))
    return table


@contextmanager
def _server(player: str) -> Iterator[str]:
    """The URL of a server in a process of its own."""
    words = ["serve", "battlesnake", "--player", player, "--port", "0", "--quiet", "--rate", "100000", "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, "-m", "snake_pz", *words], stdout=subprocess.PIPE, env=environment) as process:
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise OSError("the server did not start; what it said is above")
            threading.Thread(target=process.stdout.read, daemon=True).start()  # a full pipe would stop it
            yield json.loads(line)["url"]
        finally:
            process.terminate()


def _requests(seed: int) -> list[dict[str, Any]]:
    """What the first snake is asked in a game of bots, until it dies."""
    rules = Rules.battlesnake()
    engine, bot = SnakeEngine(rules), make_bot("territorial", rules)
    bot.seed(seed)
    engine.reset(seeds=[seed])
    views, slots = engine.observe("board"), np.arange(rules.num_snakes)
    requests: list[dict[str, Any]] = []
    while engine.state.alive[0, 0] and not engine.state.over[0] and len(requests) < _TURNS:
        requests.append(battlesnake.request(rules, engine.state, 0, 0))
        engine.step(bot.act(views[0], slots, engine.action_masks("absolute")[0])[None])
        engine.observe("board", views)
    return requests
