"""Games to record, the same every time."""

from __future__ import annotations

from functools import cache

import numpy as np

from snake_pz import Rules, SnakeEngine, make_bot
from snake_pz.replay import Recorder, Replay


@cache
def recorded(rules: Rules, seed: int = 3, turns: int = 500) -> Replay:
    """A game of survivors, to its end or to this turn."""
    engine, bot = SnakeEngine(rules, 1), make_bot("survivor", rules)
    engine.reset(seeds=[seed])
    bot.seed(seed)
    recorder = Recorder(engine, seed, [f"survivor {snake + 1}" for snake in range(rules.num_snakes)])
    slots = np.arange(rules.num_snakes)
    while not engine.state.over[0] and engine.state.turn[0] < turns:
        actions = bot.act(engine.observe("board")[0], slots, engine.action_masks("absolute")[0])
        engine.step(actions[None])
        recorder.turn(actions)
    return recorder.replay()


LONG = Rules.classic(edge="wrap", hunger="none", max_length=20)
LONG_SEED = 10


def long_game() -> Replay:
    """500 turns of four snakes on 11x11."""
    return recorded(LONG, LONG_SEED)
