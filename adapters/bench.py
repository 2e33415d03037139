"""The benchmarks behind `snake-pz bench`: rows of one table are measured in turn in one process, so that their ratios hold."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import get_args

import numpy as np
from rich.table import Table

from adapters.sb3 import make_sb3_env
from snake_pz import Rules, SnakeEngine, snake_v0
from snake_pz.rules import Battlesnake

ROUNDS = 5
"""Each row is measured this many times, all rows in turn; the median counts."""


def bench_engine(seconds: float = 3.0) -> Table:
    """The engine with `board` written under each rule set, the PettingZoo API, and stepping 64 curried games on either backend.

    Everybody moves at random and games restart when they are over, which is part of what is timed.

    Args:
        seconds: about how long each row is measured in all.

    Returns:
        A table: game-steps per second and the target.
    """
    modes = get_args(Battlesnake)
    presets = {
        "classic": Rules.classic(),
        **{f"battlesnake {mode}": Rules.battlesnake(mode, num_snakes=4) for mode in modes},
        "hungry_geese": Rules.hungry_geese(),
    }
    runs = {name: engine_steps(1024, rules) for name, rules in presets.items()}
    runs |= {"api": api_steps(), "native": curried_steps("native"), "supersuit": curried_steps("supersuit")}
    speeds = measure(runs, seconds)
    table = Table("what", "game-steps/s", "target", title="Per second of one core, random moves")
    for name in presets:
        target = ">= 1,000,000" if name == "classic" else ">= 700,000"
        table.add_row(f"engine, 1,024 games, {name}", f"{speeds[name]:,.0f}", target)
    table.add_row("PettingZoo API, one game, classic", f"{speeds['api']:,.0f}", ">= 40,000")
    table.add_row("make_sb3_env native, 64 games", f"{speeds['native']:,.0f}", "")
    table.add_row("make_sb3_env supersuit, 64 games", f"{speeds['supersuit']:,.0f}", "")
    table.add_row("native / supersuit", f"{speeds['native'] / speeds['supersuit']:.1f}x", ">= 15x")
    return table


def measure(runs: dict[str, Callable[[], int]], seconds: float) -> dict[str, float]:
    """Steps of each run per second of this process's processor time, which other programs on the machine hardly change.

    Args:
        runs: each plays for a moment and returns how many steps it made.
        seconds: about how long each is measured in all.
    """
    for run in runs.values():
        run()  # compile, fill caches
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start, steps = time.process_time(), 0
            while (elapsed := time.process_time() - start) < seconds / ROUNDS:
                steps += run()
            speeds[name].append(steps / elapsed)
    return {name: statistics.median(values) for name, values in speeds.items()}


def engine_steps(num_games: int, rules: Rules | None = None) -> Callable[[], int]:
    """A run of 20 steps of the engine with `board` observations written."""
    engine = SnakeEngine(rules or Rules.classic(), num_games, seed=0)
    engine.reset()
    moves = np.random.default_rng(0).integers(0, 4, (16, num_games, engine.rules.num_snakes)).astype(np.int8)
    views = engine.observe("board")

    def run() -> int:
        for k in range(20):
            engine.step(moves[k % 16])
            engine.reset(np.flatnonzero(engine.state.over))
            engine.observe("board", views)
        return 20 * num_games

    return run


def api_steps() -> Callable[[], int]:
    """A run of 200 steps of `parallel_env`."""
    env = snake_v0.parallel_env()
    env.reset(seed=0)
    moves = np.random.default_rng(0).integers(0, 4, (200, 4)).tolist()

    def run() -> int:
        for row in moves:
            if not env.agents:
                env.reset()
            env.step(dict(zip(env.agents, row, strict=False)))
        return len(moves)

    return run


def curried_steps(backend: str, num_games: int = 64) -> Callable[[], int]:
    """A run of 4 steps of a curried VecEnv against random opponents."""
    env = make_sb3_env("random", num_games=num_games, backend=backend, seed=0)  # type: ignore[arg-type]
    env.reset()
    moves = np.random.default_rng(0).integers(0, 4, (16, num_games))

    def run() -> int:
        for k in range(4):
            env.step(moves[k])
        return 4 * num_games

    return run
