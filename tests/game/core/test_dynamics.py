"""The turn: named corner cases, any position against the oracle, symmetries, hazards that close in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Position, SnakeState, body_cells
from snake_pz.rules import Rules
from tests.support.corner_cases import BURNS, CASES, EVERY_TURN, FIRST, HEALS, SHRINKS, Case, bodies, play
from tests.support.oracle import Game
from tests.support.recorded_games import (
    assert_same_turn,
    assert_uniform,
    check_consistent,
    engine_at,
    preset_rules,
    random_actions,
    random_position,
    random_rules,
    read_game,
    read_games,
    seeds,
    turned,
)

# --------------------------------------------------------------------------------------------------------- named corners


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_corner_cases(case: Case) -> None:
    game = play(case)
    assert [snake.cause or "-" for snake in game.snakes] == case.causes.split()
    killers = ["-" if snake.killer < 0 else str(snake.killer) for snake in game.snakes]
    assert killers == (case.killers.split() or ["-"] * len(killers))
    if case.after:
        assert [snake.body for snake in game.snakes] == bodies(case.after)


def test_corner_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("growth", ["same_turn", "next_turn"])
def test_a_meal_is_eaten_by_all_heads_on_it_and_gone(growth: str) -> None:
    game = play(Case("", "22 12 02 | 42 52 62 63", "RL", "", food="32 44", healths="1 1", rules={"growth": growth}))
    assert [snake.ate for snake in game.snakes] == [True, True]
    assert [snake.health for snake in game.snakes] == [100, 100]
    assert [len(snake.body) for snake in game.snakes] == [4, 5]
    assert game.food == [(4, 4)]


def test_healths_after_hunger_and_hazards() -> None:
    assert play(Case("", "32 22 12", "R", "", healths="50")).snakes[0].health == 49
    assert play(Case("", "32 22 12", "R", "", healths="50", rules={"hunger": "none"})).snakes[0].health == 50
    assert play(Case("", "32 22 12", "R", "", healths="50", hazards="42 42", rules=BURNS)).snakes[0].health == 21
    assert play(Case("", "32 22 12", "R", "", healths="50", hazards="42 42", rules=HEALS)).snakes[0].health == 53
    assert play(Case("", "32 22 12", "R", "", healths="99", hazards="42 42", rules=HEALS)).snakes[0].health == 100
    assert play(Case("", "32 22 12", "R", "", healths="5", hazards="42 42", rules=BURNS)).snakes[0].health == 0
    assert play(Case("", "32 22 12", "R", "", healths="5", food="42", hazards="42", rules=BURNS)).snakes[0].health == 100


def test_a_hazard_beyond_int16_does_not_overflow() -> None:
    game = play(
        Case(
            "", "32 22 12", "R", "", healths="30000", hazards="42 " * 200, rules={"hazard_damage": 30_000, "max_health": 30_000}
        )
    )
    assert game.snakes[0].cause == "hazard"


def test_the_last_two_die_together() -> None:
    game = play(Case("", "22 12 02 | 42 52 62", "RL", ""))
    assert game.over
    assert game.just_ended
    assert [snake.rank for snake in game.snakes] == [1, 1]
    assert [snake.died for snake in game.snakes] == [1, 1]


def test_the_last_one_ends_the_game_at_once() -> None:
    game = play(Case("", "22 12 02 | 62 52 42", "RR", ""))
    assert game.over
    assert [snake.rank for snake in game.snakes] == [1, 2]


def test_ranks_of_those_who_die_together() -> None:
    game = play(Case("", "22 12 02 | 62 52 42 | 44 45 | 64 54", "RRUR", ""))
    assert [snake.rank for snake in game.snakes] == [0, 3, 0, 3]
    assert not game.over


def test_one_alone_plays_until_it_dies() -> None:
    assert not play(Case("", "22 12 02", "R", "")).over
    assert play(Case("", "62 52 42", "R", "")).over


def test_max_turns_ends_the_game_and_places_by_length() -> None:
    game = play(Case("", "22 12 02 | 24 14 04 | 36 26 16 06", "RRR", "", rules={"max_turns": 1}))
    assert game.over
    assert [snake.rank for snake in game.snakes] == [2, 2, 1]
    assert all(snake.alive for snake in game.snakes)
    assert not play(Case("", "22 12 02 | 24 14 04", "RR", "", rules={"max_turns": 2})).over


def test_max_turns_places_the_living_before_those_who_die_on_it() -> None:
    game = play(Case("", "62 52 42 32 | 24 14 04 | 64 54", "RRR", "", rules={"max_turns": 1, "tied_deaths": "by_length"}))
    assert [snake.rank for snake in game.snakes] == [2, 1, 3]


TIED = "22 12 02 03 | 42 52 | 64 54 55"


@pytest.mark.parametrize(("tied_deaths", "ranks"), [("share", [1, 1, 1]), ("by_length", [1, 3, 2])])
def test_who_dies_on_one_turn_shares_a_place_or_is_placed_by_length(tied_deaths: str, ranks: list[int]) -> None:
    rules = {"head_to_head": "all_die", "tied_deaths": tied_deaths}
    game = play(Case("", TIED, "RLR", "", rules=rules))
    assert [snake.rank for snake in game.snakes] == ranks
    alive = play(Case("", TIED + " | 06", "RLRR", "", rules=rules))
    assert [snake.rank for snake in alive.snakes] == [rank + 1 for rank in ranks[:3]] + [1]


def test_places_by_length_are_of_before_the_turn_and_shared_by_equal_ones() -> None:
    rules = {"head_to_head": "all_die", "tied_deaths": "by_length"}
    game = play(Case("", "22 12 | 42 52 53 | 64 54", "RLR", "", food="32", rules=rules | FIRST))
    assert [len(snake.body) for snake in game.snakes] == [3, 3, 2]
    assert [snake.rank for snake in game.snakes] == [2, 1, 2]
    hungry = play(Case("", "62 52 | 64", "RR", "", rules=rules | SHRINKS))
    assert [snake.rank for snake in hungry.snakes] == [1, 2]


@pytest.mark.parametrize(
    ("ends_with", "left_of_two", "left_of_one"), [("one", True, False), ("one_always", True, True), ("none", False, False)]
)
def test_how_many_snakes_alive_end_the_game(ends_with: str, left_of_two: bool, left_of_one: bool) -> None:
    rules = {"ends_with": ends_with}
    assert play(Case("", "22 12 02 | 62 52 42", "RR", "", rules=rules)).over == left_of_two
    assert play(Case("", "22 12 02", "R", "", rules=rules)).over == left_of_one
    assert play(Case("", "62 52", "R", "", rules=rules)).over
    assert play(Case("", "62 52 | 64 54", "RR", "", rules=rules)).over
    assert not play(Case("", "22 12 | 24 14", "RR", "", rules=rules)).over


def test_growth_on_every_turn_fills_up_health_and_clears_food() -> None:
    game = play(Case("", "32 22 12 | 62 52", "RR", "", food="42 55 65 65", healths="3 9", rules=EVERY_TURN))
    assert [snake.health for snake in game.snakes] == [100, 100]
    assert [snake.ate for snake in game.snakes] == [True, False]
    assert game.food == []


def test_the_food_that_growth_on_every_turn_clears_is_replaced() -> None:
    game = play(Case("", "32 22 12", "R", "", food="55 65", rules=EVERY_TURN | {"food_minimum": 2}))
    assert len(game.food) == 2


def test_contested_food_is_eaten_once() -> None:
    for growth in ("same_turn", "next_turn"):
        game = play(
            Case("", "22 12 | 42 52 | 33 34", "RLU", "", food="32 44", healths="5 6 7", rules=FIRST | {"growth": growth})
        )
        assert [snake.ate for snake in game.snakes] == [True, False, False]
        assert [snake.health for snake in game.snakes] == [100, 5, 6]
        assert game.food == [(4, 4)]


# ---------------------------------------------------------------------------------------- any position against the oracle


def one_turn(rules: Rules, seed: int, positions: int, overlapping: bool) -> None:
    random = Random(seed)
    engine = engine_at(rules, [random_position(random, rules, overlapping=overlapping) for _ in range(positions)])
    games = read_games(engine)
    assert_same_turn(engine, games, random_actions(random, rules, positions))
    check_consistent(engine.state, rules, played=False)


@given(random_rules(), seeds)
@settings(max_examples=250)
def test_a_turn_from_any_position(rules: Rules, seed: int) -> None:
    one_turn(rules, seed, 16, overlapping=False)


@given(random_rules(min_side=4, max_side=5, max_snakes=6, start="scattered"), seeds)
@settings(max_examples=150)
def test_a_turn_from_overlapping_bodies(rules: Rules, seed: int) -> None:
    one_turn(rules.replace(num_snakes=6), seed, 16, overlapping=True)


@given(preset_rules(), seeds, st.booleans())
@settings(max_examples=60)
def test_a_turn_of_every_preset(rules: Rules, seed: int, overlapping: bool) -> None:
    one_turn(rules, seed, 12, overlapping)


@pytest.mark.slow
@pytest.mark.parametrize("overlapping", [False, True])
def test_a_turn_from_very_many_positions(overlapping: bool) -> None:
    @given(random_rules(), seeds)
    @settings(max_examples=1500)
    def check(rules: Rules, seed: int) -> None:
        one_turn(rules, seed, 25, overlapping)

    check()


# ------------------------------------------------------------------------------------------------------------ symmetries


def permuted(position: Position, order: list[int]) -> Position:
    assert position.headings is not None
    assert position.health is not None
    assert position.alive is not None
    return position._replace(
        bodies=[position.bodies[k] for k in order],
        headings=[position.headings[k] for k in order],
        health=[position.health[k] for k in order],
        alive=[position.alive[k] for k in order],
    )


def contested(position: Position, after: Game) -> bool:
    """Whether several heads came to one piece of food, those of snakes that were removed for their move included."""
    assert position.alive is not None
    heads = [snake.head for snake, alive in zip(after.snakes, position.alive, strict=True) if alive]
    return any(heads.count(cell) > 1 for cell in position.food)


def check_permutation(rules: Rules, seed: int) -> None:
    """Two rules name the lowest index: who is responsible, and who eats what several reach. All else is permuted."""
    random = Random(seed)
    positions = [random_position(random, rules) for _ in range(8)]
    orders = [random.sample(range(rules.num_snakes), rules.num_snakes) for _ in positions]
    actions = random_actions(random, rules, 8)
    one = engine_at(rules, positions)
    other = engine_at(rules, [permuted(position, order) for position, order in zip(positions, orders, strict=True)])
    one.step(actions)
    other.step(np.take_along_axis(actions, np.array(orders), axis=1))
    for row, order in enumerate(orders):
        expected, result = read_game(one.state, rules, row), read_game(other.state, rules, row)
        if rules.contested_food == "lowest_index" and contested(positions[row], expected):
            continue
        expected.snakes = [expected.snakes[k] for k in order]
        for snake, permuted_snake in zip(expected.snakes, result.snakes, strict=True):
            if rules.tied_killer == "lowest_index":
                assert (snake.killer < 0) == (permuted_snake.killer < 0)
                snake.killer = permuted_snake.killer
            else:
                snake.killer = order.index(snake.killer) if snake.killer >= 0 else -1
        assert result == expected, (positions[row], order, actions[row])


@given(random_rules(), seeds)
@settings(max_examples=80)
def test_permuting_the_snakes_permutes_the_outcome(rules: Rules, seed: int) -> None:
    check_permutation(rules, seed)


@given(preset_rules(), seeds)
@settings(max_examples=40)
def test_permuting_the_snakes_of_a_preset_permutes_the_outcome(rules: Rules, seed: int) -> None:
    check_permutation(rules, seed)


def check_turning(rules: Rules, seed: int) -> None:
    random = Random(seed)
    for mirror in (False, True):
        positions = [random_position(random, rules) for _ in range(6)]
        actions = random_actions(random, rules, 6)
        for row, position in enumerate(positions):
            for snake, body in enumerate(position.bodies):
                if len(set(body[:2])) < 2 and not 0 <= actions[row, snake] < 4:
                    actions[row, snake] = 1  # that it would go up is no symmetry
        moved = [turned(rules, position, mirror=mirror) for position in positions]
        moved_rules, turn = moved[0][0], moved[0][2]
        one, other = engine_at(rules, positions), engine_at(moved_rules, [position for _, position, _ in moved])
        one.step(actions)
        other.step(np.array([[turn(int(action)) for action in row] for row in actions]))
        for row in range(len(positions)):
            expected, result = read_game(one.state, rules, row), read_game(other.state, moved_rules, row)
            expected.rules = moved_rules
            for snake in expected.snakes:
                after = turned(rules, Position(bodies=[snake.body, [snake.head]], headings=[snake.heading]), mirror=mirror)[1]
                assert after.headings is not None
                snake.body, snake.head, snake.heading = list(after.bodies[0]), after.bodies[1][0], after.headings[0]
                if not snake.body and not snake.just_died:  # there is none, and never was
                    snake.head = result.snakes[expected.snakes.index(snake)].head
            for name in ("food", "hazards"):
                there = turned(rules, Position(bodies=[getattr(expected, name)], headings=[]), mirror=mirror)[1]
                setattr(expected, name, sorted(there.bodies[0]))
            assert result == expected, (positions[row], actions[row], mirror)


@given(random_rules(food_minimum=0, food_chance=0.0, shrink_every=0), seeds)
@settings(max_examples=80)
def test_turning_and_mirroring_commute_with_a_turn(rules: Rules, seed: int) -> None:
    check_turning(rules, seed)


@given(preset_rules(), seeds)
@settings(max_examples=40)
def test_turning_and_mirroring_commute_with_a_turn_of_a_preset(rules: Rules, seed: int) -> None:
    """What is drawn at random, food and the sides that close in, is left out."""
    check_turning(rules.replace(food_minimum=0, food_chance=0.0, shrink_every=0), seed)


# --------------------------------------------------------------------------------------------------- hazards that close in


def closing_in(games: int, every: int, turns: int, width: int = 6, height: int = 5) -> Iterator[SnakeEngine]:
    """After each turn, games in which nothing but the hazards changes."""
    rules = Rules(width=width, height=height, num_snakes=1, start_length=1, edge="wrap", hunger="none", food_minimum=0)
    rules = rules.replace(food_initial=0, shrink_every=every)
    engine = engine_at(rules, [Position(bodies=[[(0, 0)]], seed=seed, headings=[1]) for seed in range(games)])
    for _ in range(turns):
        engine.step(np.ones((games, 1), int))
        yield engine


def test_hazards_close_in_line_by_line() -> None:
    before = np.zeros((20, 30), np.uint8)
    for turn, engine in enumerate(closing_in(20, 3, 40), start=1):
        now = engine.state.hazard.copy()
        assert (now >= before).all(), "a hazard vanished"
        changed = (now != before).any(axis=1)
        if turn % 3 != 0:
            assert not changed.any(), turn
        elif turn // 3 <= 5:
            assert changed.all(), "with five rows and lines no game is closed already"
        before = now
    assert now.all()


def test_each_side_closes_in_alike_and_for_itself() -> None:
    first, second = (engine.state.hazard.reshape(-1, 5, 6).copy() for engine in closing_in(8_000, 1, 2))
    corners = [(slice(1, -1), 0), (slice(1, -1), -1), (0, slice(1, -1)), (-1, slice(1, -1))]
    sides = np.array([first[:, rows, columns].all(axis=1) for rows, columns in corners])
    assert (sides.sum(axis=0) == 1).all()
    assert_uniform(sides.sum(axis=1), 8_000)
    boards = [board.tobytes() for board in second]
    orders = np.array([boards.count(board) for board in dict.fromkeys(boards)])
    assert sorted(np.round(orders / 500).tolist()) == [1] * 4 + [2] * 6, "two lines of one side, or one of each of two"


def test_damage_is_done_by_the_hazards_that_were_there() -> None:
    rules = Rules.battlesnake("royale", width=5, height=5, num_snakes=1, ends_with="none", shrink_every=1, food_minimum=0)
    rules = rules.replace(food_chance=0.0)
    engine = engine_at(rules, [Position(bodies=[[(1, 2), (2, 2), (3, 2)]], seed=seed) for seed in range(40)])
    for move, healths in ((3, {99}), (0, {98, 84})):
        before = engine.state.hazard.copy()
        engine.step(np.full((40, 1), move))
        cells = [body_cells(engine.state, game, 0)[0] for game in range(40)]
        burnt = before[np.arange(40), cells] > 0
        assert set(engine.state.health[:, 0].tolist()) == healths
        np.testing.assert_array_equal(engine.state.health[:, 0] < 90, burnt)


def test_hazards_of_the_position_are_forgotten_where_others_close_in() -> None:
    game = play(Case("", "32 22 12", "R", "", hazards="00 00 11", rules={"shrink_every": 5}))
    assert game.hazards == []


def test_state_of_another_capacity_plays_the_same() -> None:
    """The ring's length is no rule."""
    rules = Rules(width=5, height=5, num_snakes=2)
    positions = [Position(bodies=[[(1, 1), (1, 2)], [(3, 3)]]), Position(bodies=[[(0, 0)] * 60, [(3, 3)]])]
    long = SnakeState.from_positions(rules, positions)
    assert long.body.shape[2] > SnakeState.empty(rules, 1).body.shape[2]
    engine, short = SnakeEngine(rules, 2), engine_at(rules, positions[:1])
    engine.state = long
    for _ in range(3):
        engine.step(np.array([[1, 0], [1, 0]]))
        short.step(np.array([[1, 0]]))
        assert dataclasses.asdict(read_game(engine.state, rules, 0)) == dataclasses.asdict(read_game(short.state, rules, 0))
