"""Positions written out, and what bots choose in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots import Bot, make_bot
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Position, SnakeState
from snake_pz.rules import Rules

UP, RIGHT, DOWN, LEFT = range(4)
FAR_AWAY = [(10, 8), (10, 9), (10, 10)]  # the other snake, where it is not in the way


GOING_UP = [(5, 5), (5, 6), (5, 7)]


TWO = Rules.classic(num_snakes=2)


def views(rules: Rules, position: Position) -> NDArray[np.uint8]:
    """(N, 7, H, W) what each snake sees."""
    view: NDArray[np.uint8] = _at(rules, position).observe("board")[0]
    return view


def _at(rules: Rules, position: Position) -> SnakeEngine:
    engine = SnakeEngine(rules)
    engine.load(SnakeState.from_positions(rules, [position]))
    return engine


def choices(name: str, rules: Rules, position: Position, snake: int = 0) -> set[int]:
    """Every move the bot makes there in 100 draws."""
    bot = make_bot(name, rules)
    bot.seed(0)
    engine = _at(rules, position)
    view, mask = engine.observe("board")[0, snake], engine.action_masks("absolute")[0, snake]
    return set(bot.act(np.tile(view, (100, 1, 1, 1)), None, np.tile(mask, (100, 1))).tolist())


def seeded(name: str, rules: Rules, seed: int) -> Bot:
    bot = make_bot(name, rules)
    bot.seed(seed)
    return bot


def midgame(rules: Rules, num_games: int, turns: int, seed: int = 0) -> tuple[SnakeEngine, NDArray[np.bool_]]:
    """Games some turns old, and (E, N) who acts in them."""
    engine = SnakeEngine(rules, num_games, seed=seed)
    engine.reset()
    bot = seeded("survivor", rules, seed)
    shape = engine.state.alive.shape
    for _ in range(turns):
        engine.step(bot.act(engine.observe("board").reshape(-1, *bot.observation_space.shape)).reshape(shape))
    return engine, engine.state.alive & ~engine.state.over[:, None]


def win_rate(one: str, three: str, num_games: int, rules: Rules | None = None) -> float:
    """How often the bot `one` comes first against three of the other; ties count 1/m, truncated games rank by length."""
    rules = Rules.classic() if rules is None else rules
    engine = SnakeEngine(rules, num_games, seed=1)
    engine.reset()
    bots = seeded(one, rules, 2), seeded(three, rules, 3)
    view = engine.observe("board")
    actions = np.zeros(engine.state.alive.shape, np.int64)
    for _ in range(500):
        playing = engine.state.alive & ~engine.state.over[:, None]
        if not playing.any():
            break
        masks = engine.action_masks("absolute")
        for bot, seats in zip(bots, (slice(0, 1), slice(1, None)), strict=True):
            acting = np.zeros_like(playing)
            acting[:, seats] = playing[:, seats]
            actions[acting] = bot.act(view[acting], np.flatnonzero(acting), masks[acting])
        engine.step(actions)
        engine.observe("board", view)
    engine.rank_survivors()
    first = engine.state.rank == 1
    return float((first[:, 0] / first.sum(axis=1)).mean())
