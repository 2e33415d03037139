"""States from outside: what no game can be in is refused, and what is accepted plays on inside its arrays."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz import snake_v0
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.observations import OBSERVATIONS
from snake_pz.core.state import LAST_TURN, Cause, Position, SnakeState
from snake_pz.reward_weights import RewardWeights
from snake_pz.rules import Rules
from tests.support.recorded_games import careful_actions, preset_rules, random_rules, seeds

RULES = Rules.classic()


def saved(turns: int = 6, rules: Rules = RULES, games: int = 2) -> tuple[SnakeEngine, SnakeState]:
    """An engine and its state after some turns."""
    engine = SnakeEngine(rules, games, seed=1)
    engine.reset()
    for turn in range(turns):
        engine.step(careful_actions(engine, Random(turn)))
    return engine, engine.save()


def tail(state: SnakeState, game: int, snake: int) -> tuple[int, int, int]:
    """The place of the last segment in `SnakeState.body`."""
    return game, snake, int(state.head[game, snake] - state.length[game, snake] + 1) % state.body.shape[2]


@given(random_rules(), seeds)
@settings(max_examples=40)
def test_states_of_play_are_accepted(rules: Rules, seed: int) -> None:
    _accepts_its_own(rules, seed)


@given(preset_rules(), seeds)
@settings(max_examples=20)
def test_states_of_every_preset_are_accepted(rules: Rules, seed: int) -> None:
    _accepts_its_own(rules, seed)


def _accepts_its_own(rules: Rules, seed: int) -> None:
    engine, other = SnakeEngine(rules, 3, seed=seed), SnakeEngine(rules, 3)
    other.load(engine.save())  # no game has begun
    engine.reset()
    for turn in range(20):
        other.load(engine.save())
        engine.step(careful_actions(engine, Random(turn), care=0.8))
    engine.rank_survivors()
    other.load(engine.save())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("body", 121, "body must be between -1 and 120, got 121"),
        ("body", -2, "body must be between -1 and 120, got -2"),
        ("body", -1, "alive outside the board"),
        ("head", -1, "head must be between 0 and 127, got -1"),
        ("head", 128, "head must be between 0 and 127, got 128"),
        ("length", 128, "length must be between 0 and 127, got 128"),
        ("length", 0, "alive without a segment"),
        ("length_before", -1, "length_before must be between 0 and 127, got -1"),
        ("heading", 4, "heading must be between -1 and 3, got 4"),
        ("health", 101, "health must be between -32768 and 100, got 101"),
        ("health", -1, "alive with health below 0"),
        ("cause", 9, "cause must be between 0 and 8, got 9"),
        ("cause", 1, "alive with a cause or turn of death"),
        ("died", 3, "alive with a cause or turn of death"),
        ("just_died", True, "alive with a cause or turn of death"),
        ("killer", 4, "killer must be between -1 and 3, got 4"),
        ("rank", 5, "rank must be between 0 and 4, got 5"),
        ("occupancy", 3, "occupancy is not the number of segments"),
        ("food", 1, "food_count is not the number of pieces"),
        ("food_count", -1, "food_count is not the number of pieces"),
        ("turn", LAST_TURN + 1, "turn must be between 0 and 1073741824, got 1073741825"),
        ("turn", 2**31 - 1, "turn must be between 0 and 1073741824"),
        ("turn", -1, "turn must be between 0 and 1073741824, got -1"),
        ("entrants", 5, "entrants must be between 0 and 4, got 5"),
        ("just_ended", True, "just ended is not over"),
    ],
)
def test_impossible_numbers_are_refused(name: str, value: Any, text: str) -> None:
    engine, state = saved()
    before = engine.save()
    getattr(state, name)[1] = value
    with pytest.raises(ValueError, match=f"this is no state of a game with these rules: .*{text}"):
        engine.load(state)
    for own, expected in zip(engine.state.arrays(), before.arrays(), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_a_body_with_a_gap_is_refused() -> None:
    engine, state = saved()
    state.body[tail(state, 0, 0)] = np.flatnonzero(state.occupancy[0] == 0)[-1]
    with pytest.raises(ValueError, match="segments do not adjoin"):
        engine.load(state)


@pytest.mark.parametrize("edge", ["wall", "wrap"])
def test_a_body_across_the_seam_needs_a_board_that_wraps(edge: Any) -> None:
    rules = Rules.classic(num_snakes=1, edge=edge)
    engine = SnakeEngine(rules)
    for body in ([(0, 4), (10, 4)], [(4, 10), (4, 0)]):
        state = SnakeState.from_positions(rules, [Position(bodies=[body])])
        if edge == "wrap":
            engine.load(state)
        else:
            with pytest.raises(ValueError, match="segments do not adjoin"):
                engine.load(state)
    with pytest.raises(ValueError, match="segments do not adjoin"):  # the next number, at the other end of the next row
        engine.load(SnakeState.from_positions(rules, [Position(bodies=[[(0, 4), (10, 3)]])]))


def test_the_state_of_a_board_turned_by_a_quarter_is_refused() -> None:
    """Its arrays have the same shapes."""
    _, state = saved(rules=Rules.classic(width=14, height=10))
    with pytest.raises(ValueError, match="segments do not adjoin"):
        SnakeEngine(Rules.classic(width=10, height=14), 2).load(state)


def test_more_segments_than_a_cell_counts_are_refused() -> None:
    rules = Rules.classic(num_snakes=1, width=30, height=30)
    engine = SnakeEngine(rules)
    engine.load(SnakeState.from_positions(rules, [Position(bodies=[[(0, 0)] * 255])]))
    with pytest.raises(ValueError, match=r"occupancy is not .* 255 at most"):
        engine.load(SnakeState.from_positions(rules, [Position(bodies=[[(0, 0)] * 256])]))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda state: None, "expected a SnakeState, as .* return it, got NoneType"),
        (tuple, "expected a SnakeState, as .* return it, got tuple"),
        (lambda state: state._replace(head=None), "head of a SnakeState must be an array of int32 with 2 .* got NoneType"),
        (
            lambda state: state.map(lambda array: array.astype(float)),
            "body of a SnakeState must be an array of int16 .* float64",
        ),
        (lambda state: state._replace(turn=state.turn[:1]), r"cannot load turn of shape \(1,\)"),
        (lambda state: state.map(lambda array: array[:1]), "cannot load 1 games into 2 rows: they need one row each"),
    ],
)
def test_other_things_than_a_state_are_refused(change: Any, text: str) -> None:
    engine, state = saved()
    with pytest.raises(ValueError, match=text):
        engine.load(change(state))


def test_the_environment_refuses_as_the_engine_does() -> None:
    env = snake_v0.parallel_env()
    views, _ = env.reset(seed=0)
    state = env.get_state()
    state.head[0, 0] = 10**6
    with pytest.raises(ValueError, match="head must be between 0 and 127, got 1000000"):
        env.set_state(state)
    assert env.agents == list(views), "the game that is running is not lost"


def test_the_last_turn_plays_on() -> None:
    engine, state = saved()
    state.turn[:] = LAST_TURN
    engine.load(state)
    engine.step(np.zeros((2, 4), int))
    assert engine.state.turn.tolist() == [LAST_TURN + 1] * 2
    assert set(engine.state.cause.ravel().tolist()) <= set(Cause)


@pytest.mark.parametrize("name", SnakeState._fields)
@given(random_rules(max_side=7), seeds)
@settings(max_examples=8)
def test_damaged_states_are_refused_or_play_on(name: str, rules: Rules, seed: int) -> None:
    """With bounds checked (NUMBA_BOUNDSCHECK=1) this finds an access outside of an array; without, the worst of them crash."""
    random = np.random.default_rng(seed)
    engine, whole = saved(5, rules)
    for value in (0, 1, -1, 5, -(2**62), 2**62):
        state = whole.map(np.copy)
        array = getattr(state, name).reshape(-1)
        limits = (0, 1) if array.dtype == bool else (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
        array[random.integers(array.size, size=3)] = np.clip(value, *limits)
        try:
            engine.load(state)
        except ValueError:
            continue
        for turn in range(4):
            engine.step(careful_actions(engine, Random(turn)))
            engine.rewards(RewardWeights(kill=1.0, rank=1.0))
            for encoding in OBSERVATIONS:
                engine.observe(encoding)
