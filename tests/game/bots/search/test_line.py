"""The search's turn against the engine's: from any position by any rules, and along whole games."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz.bots.search.line import (
    CELL,
    EXTRA,
    FATE,
    HEAD,
    HEADING,
    HEALTH,
    LIVES,
    MOVE,
    SNAKES,
    TAIL,
    Line,
    is_over,
    load,
    play_turn,
)
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.rule_codes import rule_codes
from snake_pz.core.state import SnakeState, body_cells
from snake_pz.rules import Rules
from tests.support.recorded_games import (
    PRESETS,
    careful_actions,
    engine_at,
    preset_rules,
    random_actions,
    random_position,
    random_rules,
    seeds,
)

NOTHING_DRAWN = {"food_minimum": 0, "food_chance": 0.0, "shrink_every": 0}
"""What the search does not foresee."""


def cells_of(bits: np.ndarray) -> list[int]:
    return [int(cell) for cell in np.flatnonzero(np.unpackbits(bits[1:-1].view(np.uint8), bitorder="little"))]


def assert_same(line: Line, level: int, state: SnakeState, game: int) -> None:
    """A level of the line is this game."""
    living = [line.indices[i] for i in range(line.numbers[SNAKES]) if line.snakes[level, i, FATE] == LIVES]
    assert living == np.flatnonzero(state.alive[game]).tolist()
    for i in range(line.numbers[SNAKES]):
        if line.snakes[level, i, FATE] != LIVES:
            continue
        snake, fields = line.indices[i], line.snakes[level, i]
        path = line.paths[i, fields[TAIL] : fields[HEAD] + 1].tolist()
        assert [path[0]] * fields[EXTRA] + path == body_cells(state, game, snake)[::-1].tolist()
        assert path[-1] == fields[CELL]
        assert fields[HEALTH] == state.health[game, snake]
        assert fields[HEADING] == state.heading[game, snake]
    assert cells_of(line.occupied[level]) == np.flatnonzero(state.occupancy[game]).tolist()
    assert cells_of(line.food[level]) == np.flatnonzero(state.food[game]).tolist()


def assert_same_turn(engine: SnakeEngine, actions: np.ndarray) -> None:
    """Play a turn of every running game in the engine and in the search, and compare them."""
    codes = rule_codes(engine.rules)
    for game in np.flatnonzero(~engine.state.over):
        line = Line.empty(engine.state, 1)
        load(line, engine.state, codes, game)
        assert_same(line, 0, engine.state, game)
        for i in range(line.numbers[SNAKES]):
            line.snakes[0, i, MOVE] = actions[game, line.indices[i]]
        play_turn(line, codes, 0)
        after = SnakeEngine(engine.rules.replace(**NOTHING_DRAWN))
        after.load(engine.save(np.array([game])))
        after.step(actions[[game]])
        assert_same(line, 1, after.state, 0)
        assert is_over(line, codes, 1) == after.state.over[0]


@given(random_rules(), seeds)
@settings(max_examples=150, deadline=None)
def test_a_turn_from_any_position(rules: Rules, seed: int) -> None:
    random = Random(seed)
    engine = engine_at(rules, [random_position(random, rules) for _ in range(16)])
    assert_same_turn(engine, random_actions(random, rules, 16, invalid=0.0))


@given(preset_rules(), seeds)
@settings(max_examples=60, deadline=None)
def test_a_turn_of_every_preset(rules: Rules, seed: int) -> None:
    random = Random(seed)
    engine = engine_at(rules, [random_position(random, rules) for _ in range(12)])
    assert_same_turn(engine, random_actions(random, rules, 12, invalid=0.0))


@pytest.mark.parametrize("name", PRESETS)
def test_whole_games(name: str) -> None:
    engine, random = SnakeEngine(PRESETS[name](), 6, seed=0), Random(0)
    engine.reset()
    for _ in range(60):
        actions = careful_actions(engine, random, care=0.97) % 4
        assert_same_turn(engine, actions)
        engine.step(actions)


def test_a_line_of_several_turns_is_overwritten_by_the_next() -> None:
    engine = SnakeEngine(Rules.battlesnake(**NOTHING_DRAWN), seed=3)
    engine.reset()
    codes, line, random = rule_codes(engine.rules), Line.empty(engine.state, 30), Random(0)
    load(line, engine.state, codes, 0)
    for _ in range(20):
        ahead = SnakeEngine(engine.rules)
        ahead.load(engine.save())
        for level in range(random.randint(1, 30)):
            actions = careful_actions(ahead, random) % 4
            line.snakes[level, :, MOVE] = actions[0, line.indices]
            play_turn(line, codes, level)
            ahead.step(actions)
            assert_same(line, level + 1, ahead.state, 0)
            if ahead.state.over[0]:
                break
