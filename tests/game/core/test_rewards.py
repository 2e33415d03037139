"""Rewards: each component on the turn of its event, sums over games against a log of events, what is refused."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.rewards import Events
from snake_pz.core.state import Position, SnakeState
from snake_pz.reward_weights import PRESETS, RewardWeights, reward_weights
from snake_pz.rules import Rules
from tests.support.recorded_games import PRESETS as RULE_SETS
from tests.support.recorded_games import (
    assert_same_turn,
    careful_actions,
    engine_at,
    preset_rules,
    random_rules,
    read_games,
    seeds,
)

NOTHING = RewardWeights(food=0, death=0, kill=0, win=0, rank=0, step=0)
RULES = Rules(width=7, height=7, num_snakes=3, food_initial=0, food_minimum=0)
HEAD_ON = Position(bodies=[[(2, 2), (1, 2), (0, 2)], [(4, 2), (5, 2), (6, 2), (6, 3)], [(0, 6), (0, 5)]])


def paid(engine: SnakeEngine, **weights: float) -> list[float]:
    return engine.rewards(dataclasses.replace(NOTHING, **weights))[0].tolist()


# ---------------------------------------------------------------------------------------------------------- components


def test_food() -> None:
    engine = engine_at(RULES, [HEAD_ON._replace(food=[(2, 1), (4, 3)])])
    engine.step(np.array([[0, 0, 1]]))
    assert paid(engine, food=0.5) == [0.5, 0, 0]
    engine.step(np.array([[0, 0, 1]]))
    assert paid(engine, food=0.5) == [0, 0, 0]


def test_food_of_one_that_dies_by_it() -> None:
    engine = engine_at(RULES, [HEAD_ON._replace(food=[(3, 2)])])
    engine.step(np.array([[1, 3, 1]]))
    assert paid(engine, food=0.5, death=-2) == [-1.5, 0.5, 0]


def test_death_and_kill_and_step() -> None:
    engine = engine_at(RULES, [HEAD_ON])
    engine.step(np.array([[1, 3, 1]]))
    assert paid(engine, death=-1) == [-1, 0, 0]
    assert paid(engine, kill=0.25) == [0, 0.25, 0]
    assert paid(engine, step=-0.5) == [-0.5, -0.5, -0.5]
    engine.step(np.array([[1, 0, 1]]))
    assert paid(engine, death=-1, kill=0.25) == [0, 0, 0]
    assert paid(engine, step=-0.5) == [0, -0.5, -0.5]


def test_two_kills_on_one_turn_and_those_of_one_that_dies() -> None:
    rules = RULES.replace(num_snakes=4)
    bodies = [[(2, 3), (1, 3)], [(4, 3), (5, 3)], [(3, 4), (3, 5), (3, 6)], [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)]]
    engine = engine_at(rules, [Position(bodies=bodies)])
    engine.step(np.array([[1, 3, 0, 1]]))
    assert paid(engine, kill=1) == [0, 0, 2, 0], "one's own death is no kill"
    assert paid(engine, death=1) == [1, 1, 0, 1]
    both = engine_at(RULES, [HEAD_ON._replace(bodies=[HEAD_ON.bodies[0], HEAD_ON.bodies[1][:3], HEAD_ON.bodies[2]])])
    both.step(np.array([[1, 3, 1]]))
    assert paid(both, kill=1) == [1, 1, 0]


def test_nobody_is_paid_for_a_death_that_several_share() -> None:
    engine = engine_at(RULES, [HEAD_ON._replace(bodies=[[(2, 2), (1, 2)], [(4, 2), (5, 2), (6, 2)], [(3, 3), (3, 4), (3, 5)]])])
    engine.step(np.array([[1, 3, 0]]))
    assert paid(engine, kill=1) == [0, 1, 1], "the two longest killed each other; the third is nobody's"


def test_win_and_rank() -> None:
    engine = engine_at(RULES, [HEAD_ON])
    engine.step(np.array([[1, 3, 1]]))
    assert paid(engine, win=1) == [0, 0, 0]
    assert paid(engine, rank=1) == [-1, 0, 0], "the last place is settled at death"
    engine.step(np.array([[1, 3, 2]]))
    assert engine.state.over.all()
    assert paid(engine, win=1) == [0, 1, 0]
    assert paid(engine, rank=1) == [0, 1, 0]
    assert engine.state.rank.tolist() == [[3, 1, 2]]
    engine.step(np.array([[1, 3, 3]]))
    assert paid(engine, win=1, rank=1, step=1, death=1, food=1, kill=1) == [0, 0, 0]


def test_who_ties_shares() -> None:
    engine = engine_at(RULES, [HEAD_ON._replace(bodies=[[(2, 2), (1, 2)], [(4, 2), (5, 2)], [(0, 6), (0, 5)]])])
    engine.step(np.array([[1, 3, 3]]))
    assert paid(engine, win=1) == pytest.approx([1 / 3] * 3)
    assert paid(engine, rank=1) == [0, 0, 0]
    engine = engine_at(RULES, [HEAD_ON._replace(bodies=[[(2, 2), (1, 2)], [(4, 2), (5, 2)], [(0, 6), (0, 5)]])])
    engine.step(np.array([[1, 3, 1]]))
    assert paid(engine, win=1) == [0, 0, 1]
    assert paid(engine, rank=1) == [-0.5, -0.5, 1]


def test_the_last_turn_pays_who_lives_by_length() -> None:
    engine = engine_at(RULES.replace(max_turns=1), [HEAD_ON])
    engine.step(np.array([[0, 0, 1]]))
    assert paid(engine, win=1) == [0, 1, 0]
    assert paid(engine, rank=2) == [0, 2, -2]
    assert paid(engine, death=-1) == [0, 0, 0]
    tied = engine_at(
        RULES.replace(max_turns=1), [HEAD_ON._replace(bodies=[*HEAD_ON.bodies[:2], [(0, 6), (0, 5), (0, 4), (0, 3)]])]
    )
    tied.step(np.array([[0, 0, 1]]))
    assert paid(tied, win=1) == [0, 0.5, 0.5]
    assert paid(tied, rank=1) == [-1, 0.5, 0.5]


def test_one_alone_has_nothing_to_win() -> None:
    engine = engine_at(RULES.replace(num_snakes=1), [Position(bodies=[[(0, 0), (1, 0)]])])
    engine.step(np.array([[3]]))
    assert engine.state.over.all()
    assert paid(engine, win=1, rank=1) == [0]
    assert paid(engine, death=-1, step=0.25) == [-0.75]


def test_settled_ranks_are_not_paid() -> None:
    engine = engine_at(RULES, [HEAD_ON])
    engine.step(np.array([[0, 0, 1]]))
    engine.rank_survivors()
    assert paid(engine, win=1, rank=1) == [0, 0, 0]


def test_rewards_of_a_batch() -> None:
    engine = engine_at(RULES, [HEAD_ON, HEAD_ON])
    engine.step(np.array([[0, 0, 1], [1, 3, 1]]))
    assert engine.rewards(dataclasses.replace(NOTHING, death=-1)).tolist() == [[0, 0, 0], [-1, 0, 0]]
    assert engine.rewards(NOTHING).dtype == np.float32


# ------------------------------------------------------------------------------------------------------------- sums


COMPONENTS = {name: dataclasses.replace(NOTHING, **{name: 1.0}) for name in dataclasses.asdict(NOTHING)}


def check_sums(rules: Rules, seed: int) -> None:
    """Whole games; each component is paid on the turns of its events alone, as a log kept by the oracle has them."""
    random = Random(seed)
    engine = SnakeEngine(rules.replace(max_turns=min(rules.max_turns or 40, 40)), 4, seed=seed)
    engine.reset()
    games = read_games(engine)
    assert not any(engine.rewards(weights).any() for weights in COMPONENTS.values()), "paid before the first turn"
    shape = engine.state.alive.shape
    sums = {name: np.zeros(shape) for name in COMPONENTS}
    log = {name: np.zeros(shape) for name in ("food", "death", "kill", "step")}
    totals = {name: np.zeros(shape) for name in PRESETS}
    while not engine.state.over.all():
        before = [[snake.alive and not game.over for snake in game.snakes] for game in games]
        assert_same_turn(engine, games, careful_actions(engine, random))
        died = np.array([[snake.just_died for snake in game.snakes] for game in games])
        now = {
            "food": np.array([[snake.ate for snake in game.snakes] for game in games]),
            "death": died,
            "kill": np.zeros(shape),
            "step": np.array(before),
        }
        for row, game in enumerate(games):
            for number, snake in enumerate(game.snakes):
                if snake.just_died and snake.killer not in (-1, number):
                    now["kill"][row, snake.killer] += 1
        paid = {name: engine.rewards(weights) for name, weights in COMPONENTS.items()}
        for name, events in now.items():
            np.testing.assert_array_equal(paid[name], events, name)
            log[name] += events
        ended = np.array([game.just_ended for game in games])[:, None]
        assert not paid["win"][~ended[:, 0]].any(), "a win before the end"
        assert not paid["rank"][~(died | (ended & np.array(before)))].any(), "a place that is not settled"
        for name in sums:
            sums[name] += paid[name]
        for name in totals:
            totals[name] += engine.rewards(PRESETS[name])
    state, entrants = engine.state, rules.num_snakes
    np.testing.assert_array_equal(sums["death"], ~state.alive)
    np.testing.assert_allclose(totals["shaped"], 0.5 * log["food"] - log["death"] + sums["win"], atol=1e-5)
    np.testing.assert_allclose(totals["rank"], sums["rank"], atol=1e-5)
    if entrants == 1:
        assert not sums["win"].any()
        assert not sums["rank"].any()
        return
    first = state.rank == 1
    np.testing.assert_allclose(sums["win"], first / first.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(sums["rank"].sum(axis=1), 0, atol=1e-5)
    assert (np.abs(sums["rank"]) <= 1).all()
    for ranks, worth in zip(state.rank.tolist(), sums["rank"].tolist(), strict=True):
        for rank, paid_for_it in zip(ranks, worth, strict=True):
            shared = [1 + k for k in range(entrants) if sorted(ranks)[k] == rank]  # the places that have this rank
            assert min(shared) == rank
            expected = sum(1 - 2 * (place - 1) / (entrants - 1) for place in shared) / len(shared)
            assert paid_for_it == pytest.approx(expected, abs=1e-5)


@given(random_rules(max_side=7), seeds)
@settings(max_examples=60)
def test_sums_over_games_agree_with_the_log(rules: Rules, seed: int) -> None:
    check_sums(rules, seed)


@given(preset_rules(), seeds)
@settings(max_examples=30)
def test_sums_over_games_of_every_preset_agree_with_the_log(rules: Rules, seed: int) -> None:
    check_sums(rules, seed)


@given(random_rules(max_side=7, tied_deaths="by_length", head_to_head="all_die", max_snakes=8), seeds)
@settings(max_examples=30)
def test_sums_where_ties_are_placed_by_length(rules: Rules, seed: int) -> None:
    check_sums(rules, seed)


# -------------------------------------------------------------------------------------------------- places of the presets


@pytest.mark.parametrize("name", [name for name in RULE_SETS if name != "solo"])
def test_places_of_those_who_die_together(name: str) -> None:
    """They share a place, and what it is worth; geese are placed by length, and share only where they are equally long."""
    rules = RULE_SETS[name](width=7, height=7, num_snakes=4, food_minimum=0, food_chance=0.0)
    bodies = [
        [(0, 0), (0, 1), (0, 2)],
        [(2, 0), (3, 0), (4, 0)],
        [(5, 5), (5, 6)],
        [(3, 5), (3, 4), (2, 4), (2, 5), (2, 6), (3, 6)],
    ]
    engine = engine_at(rules, [Position(bodies=bodies)])
    engine.step(np.array([[1, 3, 0, 3]]))
    assert engine.state.alive.tolist() == [[False, False, True, False]]
    assert engine.state.over.all()
    if rules.tied_deaths == "share":
        assert engine.state.rank.tolist() == [[2, 2, 1, 2]]
        worth = [-1 / 3, -1 / 3, 1, -1 / 3]
    else:
        assert name == "hungry_geese"
        assert engine.state.rank.tolist() == [[3, 3, 1, 2]]
        worth = [-2 / 3, -2 / 3, 1, 1 / 3]
    assert engine.rewards(PRESETS["rank"])[0].tolist() == pytest.approx(worth)
    assert engine.rewards(PRESETS["shaped"])[0].tolist() == [-1, -1, 1, -1]


@pytest.mark.parametrize("name", RULE_SETS)
def test_the_last_turn_of_every_preset_pays_by_length(name: str) -> None:
    rules = RULE_SETS[name](width=7, height=7, num_snakes=3, food_minimum=0, food_chance=0.0, max_turns=12, hunger_every=50)
    bodies = [[(0, 1), (0, 2)], [(2, 1), (2, 2), (2, 3), (2, 4)], [(4, 1), (4, 2), (4, 3), (4, 4)]]
    engine = engine_at(rules, [Position(bodies=bodies, turn=10)])
    engine.step(np.array([[0, 0, 0]]))
    assert not engine.state.over.any()
    assert not engine.rewards(PRESETS["rank"]).any()
    engine.step(np.array([[1, 1, 1]]))
    assert engine.state.over.all()
    assert engine.state.rank.tolist() == [[3, 1, 1]]
    assert engine.rewards(PRESETS["rank"])[0].tolist() == [-1, 0.5, 0.5]
    assert engine.rewards(PRESETS["shaped"])[0].tolist() == [0, 0.5, 0.5]


def test_max_turns_pays_who_dies_on_the_last_turn_for_their_places_too() -> None:
    rules = RULES.replace(num_snakes=4, max_turns=1, tied_deaths="by_length")
    bodies = [[(0, 2), (1, 2)], [(0, 4), (1, 4), (2, 4)], [(5, 5), (5, 6)], [(3, 3), (3, 4), (3, 5), (3, 6)]]
    engine = engine_at(rules, [Position(bodies=bodies)])
    engine.step(np.array([[3, 3, 1, 1]]))
    assert engine.state.rank.tolist() == [[4, 3, 2, 1]]
    assert paid(engine, rank=3) == pytest.approx([-3, -1, 1, 3])
    assert paid(engine, win=1, death=-1) == [-1, -1, 0, 1]


# -------------------------------------------------------------------------------------------------------------- what fits


def test_presets() -> None:
    assert reward_weights(None) == reward_weights("shaped") == RewardWeights() == PRESETS["shaped"]
    assert reward_weights("rank") == dataclasses.replace(NOTHING, rank=1.0)
    assert reward_weights({"food": 2}) == dataclasses.replace(RewardWeights(), food=2)
    weights = RewardWeights(kill=3.0)
    assert reward_weights(weights) is weights


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("shpaed", "rewards must be one of 'shaped', 'rank'"),
        ({"fodo": 1.0}, r"unknown reward weight 'fodo' \(did you mean 'food'\?\)"),
        ({"food": "much"}, "reward weight food must be a number from -1e30 to 1e30, got 'much'"),
        ({"win": float("nan")}, "reward weight win must be a number from -1e30 to 1e30"),
        ({"step": float("inf")}, "reward weight step must be a number from -1e30 to 1e30"),
        ({"death": True}, "reward weight death must be a number from -1e30 to 1e30"),
        ({"rank": 1e31}, "reward weight rank must be a number from -1e30 to 1e30, got 1e.31"),
        ({"rank": -(10**400)}, "reward weight rank must be a number from -1e30 to 1e30"),
        (3.0, "rewards must be RewardWeights, a preset's name, a dict of weights or a function, got float"),
    ],
)
def test_refuses(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reward_weights(spec)


# ---------------------------------------------------------------------------------------------------------- functions


def _as_weights(before: SnakeState, events: Events, after: SnakeState) -> np.ndarray:
    return events.ate * 0.5 - events.died * 1.0 + events.kills * 0.25 + events.won * 2.0 + events.moved * 0.125


@settings(max_examples=60, deadline=None)
@given(rules=random_rules(), seed=seeds)
def test_a_function_of_the_events_pays_what_weights_pay(rules: Rules, seed: int) -> None:
    engines = SnakeEngine(rules, 3, seed=seed), SnakeEngine(rules, 3, seed=seed)
    random, weights = Random(seed), RewardWeights(food=0.5, death=-1, kill=0.25, win=2, step=0.125)
    for engine in engines:
        engine.reset()
    for _ in range(30):
        living, actions = engines[0].state.alive.copy(), careful_actions(engines[0], random, 0.7)
        expected, got = engines[0].paid_step(actions, weights), engines[1].paid_step(actions, _as_weights)
        np.testing.assert_allclose(got, np.where(living, expected, 0))  # weights pay the dead for kills of their bodies


def test_a_function_sees_the_game_before_and_after() -> None:
    engine, turns = engine_at(RULES, [HEAD_ON]), []

    def pays(before: SnakeState, events: Events, after: SnakeState) -> np.ndarray:
        turns.append((before.turn.tolist(), after.turn.tolist(), events.died.tolist(), events.kills.tolist()))
        with pytest.raises(ValueError, match="read-only"):
            after.health[:] = 1
        return np.ones(after.alive.shape)

    assert engine.paid_step(np.array([[1, 3, 1]]), pays).tolist() == [[1, 1, 1]]
    assert engine.paid_step(np.array([[1, 0, 1]]), pays).tolist() == [[0, 1, 1]]  # the first is dead
    assert turns == [([0], [1], [[True, False, False]], [[0, 1, 0]]), ([1], [2], [[False] * 3], [[0, 0, 0]])]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(3), r"must return numbers of shape \(games, snakes\) = \(1, 3\), got float64 \(3,\)"),
        (np.array([["a"] * 3]), "must return numbers of shape"),
        (np.array([[0, np.nan, 0]]), "must return finite numbers, got nan for snake 1"),
        (np.array([[0, 0, 1e60]]), "must return finite numbers, got 1e.60 for snake 2"),
    ],
)
def test_a_function_that_pays_no_numbers_is_refused(answer: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        engine_at(RULES, [HEAD_ON]).paid_step(np.array([[0, 0, 1]]), lambda before, events, after: answer)
