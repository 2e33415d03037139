"""Evaluations per second of the searcher: `snake-pz bench search`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.table import Table

from adapters.command.bench import SECONDS, measure
from snake_pz import Rules, SnakeEngine, SnakeState, make_bot
from snake_pz.bots.search.alphabeta import EVALUATIONS, ITERATION, Tree, begin, deepen
from snake_pz.bots.search.area import Board
from snake_pz.core.rule_codes import rule_codes
from snake_pz.ranges import check_number

BUDGET = 2_000
"""Evaluations for each position."""

_GAMES = 48
_TURNS = 100  # a position is taken from each game after at most this many turns


def bench_search(seconds: float = 3.0) -> Table:
    """Searches of one snake from positions of games that `territorial` plays with itself.

    Args:
        seconds: approximate total time for each row.

    Returns:
        A table: evaluations per second, turns looked ahead with 2,000 evaluations, and the target.
    """
    check_number("seconds", seconds, SECONDS)
    games = {
        "duel, classic": (Rules.classic(num_snakes=2), ">= 2,000,000"),
        "duel, battlesnake": (Rules.battlesnake(num_snakes=2), ">= 2,000,000"),
        "four snakes, classic": (Rules.classic(), ">= 1,200,000"),
        "four snakes, battlesnake": (Rules.battlesnake(), ">= 1,200,000"),
        "four snakes, battlesnake wrapped": (Rules.battlesnake("wrapped"), ""),
        "four snakes, hungry_geese": (Rules.hungry_geese(), ""),
        "four snakes, 19x19": (Rules.classic(width=19, height=19), ""),
        "four snakes, 25x25": (Rules.classic(width=25, height=25), ""),
    }
    depths: dict[str, float] = {}
    speeds = measure({name: _searches(rules, depths, name) for name, (rules, _) in games.items()}, seconds)
    title = f"Evaluations of one core; turns looked ahead with {BUDGET:,} evaluations"
    table = Table("what", "evaluations/s", "turns", "target", title=title)
    for name, (_, target) in games.items():
        table.add_row(name, f"{speeds[name]:,.0f}", f"{depths[name]:.1f}", target)
    return table


def _searches(rules: Rules, depths: dict[str, float], name: str) -> Callable[[], int]:
    """A run of one search from each position, which counts evaluations and notes the mean depth."""
    state, codes, board = _positions(rules), rule_codes(rules), Board.of(rules)
    tree, masks = Tree.empty(state, board), np.ones((1, 4), np.int8)

    def run() -> int:
        evaluations, turns = 0, []
        for game in np.flatnonzero(~state.over).tolist():
            begin(tree, state, codes, board, game, int(state.alive[game].argmax()), masks, 0)
            deepen(tree, codes, board, BUDGET)
            evaluations += int(tree.registers[EVALUATIONS])
            if tree.registers[EVALUATIONS]:
                turns.append(tree.registers[ITERATION] - 1)
        depths[name] = float(np.mean(turns))
        return evaluations

    return run


def _positions(rules: Rules) -> SnakeState:
    engine, bot = SnakeEngine(rules, _GAMES, seed=0), make_bot("territorial", rules)
    bot.seed(0)
    engine.reset()
    last = np.random.default_rng(0).integers(0, _TURNS, _GAMES)
    views, kept = engine.observe("board"), engine.save()
    slots = np.arange(_GAMES * rules.num_snakes)
    for turn in range(_TURNS):
        masks = engine.action_masks("absolute").reshape(-1, 4)
        engine.step(bot.act(views.reshape(-1, *views.shape[2:]), slots, masks).reshape(_GAMES, -1))
        engine.observe("board", views)
        going = np.flatnonzero((last >= turn) & ~engine.state.over)
        for array, present in zip(kept.arrays(), engine.state.arrays(), strict=True):
            array[going] = present[going]
    return kept
