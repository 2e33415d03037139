"""Rewards: each component on the turn of its event, sums over games against a log of events, what is refused."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz.engine import SnakeEngine
from snake_pz.rewards import PRESETS, RewardWeights, reward_weights
from snake_pz.rules import Rules
from snake_pz.state import Position
from tests.games import engine_at, random_rules, seeds

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
    engine.settle_ranks()
    assert paid(engine, win=1, rank=1) == [0, 0, 0]


def test_rewards_of_a_batch() -> None:
    engine = engine_at(RULES, [HEAD_ON, HEAD_ON])
    engine.step(np.array([[0, 0, 1], [1, 3, 1]]))
    assert engine.rewards(dataclasses.replace(NOTHING, death=-1)).tolist() == [[0, 0, 0], [-1, 0, 0]]
    assert engine.rewards(NOTHING).dtype == np.float32


# ------------------------------------------------------------------------------------------------------------- sums


@given(random_rules(max_side=7, max_turns=40), seeds)
@settings(max_examples=50)
def test_sums_over_games_agree_with_the_log(rules: Rules, seed: int) -> None:
    """The log is kept from what the state says between turns: lengths, who lives, who is named responsible."""
    random = Random(seed)
    engine = SnakeEngine(rules, 4, seed=seed)
    engine.reset()
    shape = engine.state.alive.shape
    sums = {field.name: np.zeros(shape) for field in dataclasses.fields(RewardWeights)}
    meals, steps = np.zeros(shape), np.zeros(shape)
    while not engine.state.over.all():
        running, alive, length = ~engine.state.over, engine.state.alive.copy(), engine.state.length.copy()
        masks = engine.action_masks("absolute")
        actions = [
            [random.choice(np.flatnonzero(mask) if random.random() < 0.9 else [0, 1, 2, 3]) for mask in game] for game in masks
        ]
        engine.step(np.array(actions))
        for name, total in sums.items():
            total += engine.rewards(dataclasses.replace(NOTHING, **{name: 1.0}))
        meals += engine.state.length > length
        steps += alive & running[:, None]
    state, entrants = engine.state, rules.num_snakes
    np.testing.assert_array_equal(sums["food"], meals)
    np.testing.assert_array_equal(sums["step"], steps)
    np.testing.assert_array_equal(sums["death"], ~state.alive)
    others = state.killer != np.arange(entrants)
    kills = [[((state.killer[game] == snake) & others[game]).sum() for snake in range(entrants)] for game in range(4)]
    np.testing.assert_array_equal(sums["kill"], kills)
    if entrants == 1:
        assert not sums["win"].any()
        assert not sums["rank"].any()
        return
    first = state.rank == 1
    np.testing.assert_allclose(sums["win"], first / first.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(sums["rank"].sum(axis=1), 0, atol=1e-5)
    assert (np.abs(sums["rank"]) <= 1).all()
    for ranks, worth in zip(state.rank, sums["rank"], strict=True):
        order = np.argsort(ranks, kind="stable")
        assert (np.diff(worth[order]) <= 1e-6).all(), "a worse place is not paid more"
        assert ((np.diff(ranks[order]) == 0) == (np.abs(np.diff(worth[order])) < 1e-6)).all(), "equal places are paid alike"


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
        ({"food": "much"}, "reward weight food must be a finite number, got 'much'"),
        ({"win": float("nan")}, "reward weight win must be a finite number"),
        ({"step": float("inf")}, "reward weight step must be a finite number"),
        ({"death": True}, "reward weight death must be a finite number"),
        (3.0, "rewards must be RewardWeights, a preset's name or a dict of weights, got float"),
    ],
)
def test_refuses(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reward_weights(spec)
