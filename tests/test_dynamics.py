"""The turn: named corner cases, any position against the oracle, symmetries, where food and snakes appear."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings

from snake_pz.engine import SnakeEngine
from snake_pz.rules import Rules
from snake_pz.state import Position, SnakeState, body_cells
from tests.games import (
    assert_same_turn,
    check_consistent,
    engine_at,
    random_position,
    random_rules,
    read_game,
    read_games,
    seeds,
    turned,
)
from tests.oracle import Cell, Game, beside

# --------------------------------------------------------------------------------------------------------- named corners


class Case(NamedTuple):
    """One turn on a 7x7 board, without hunger unless healths are given. A cell is written xy, a snake head first."""

    name: str
    snakes: str  # "32 22 12 | 44 45"
    moves: str  # one of URDL for each snake
    causes: str  # what each dies of, "-" for who lives
    killers: str = ""  # number of the responsible snake, "-" for nobody; empty: nobody at all
    food: str = ""
    healths: str = ""
    hazards: str = ""
    headings: str = ""  # one of URDL for each snake; empty: from the neck to the head
    after: str = ""  # the snakes after the turn, also the dead; empty: not compared
    rules: dict[str, Any] = {}  # noqa: RUF012  # a NamedTuple's default, never written to


ALL_DIE, ALL_BLOCK, LATE = {"head_to_head": "all_die"}, {"dying_block": "all"}, {"growth": "next_turn"}
WRAP, DIES, MOVES = {"edge": "wrap"}, {"reverse": "dies"}, {"reverse": "is_a_move"}
BURNS, HEALS = {"hazard_damage": 14}, {"hazard_damage": -2}

CASES = [
    Case("a step", "32 22 12", "U", "-", after="31 32 22"),
    Case("own tail leaves", "22 21 11 12", "L", "-", after="12 22 21 11"),
    Case("own tail that ate last turn", "22 21 11 12 12", "L", "self", "0"),
    Case("own body", "22 21 11 12 13", "L", "self", "0"),
    Case("own body of one that eats", "22 21 11 12 13", "L", "self", "0", food="12", after="12 22 21 11 12 13"),
    Case("the tail of another leaves", "23 24 25 | 42 32 22", "UR", "- -"),
    Case("the tail of one that eats now", "23 24 25 | 42 32 22", "UR", "body -", "1 -", food="52"),
    Case("the tail of one that eats now, late growth", "23 24 25 | 42 32 22", "UR", "- -", food="52", rules=LATE),
    Case("the tail of one that ate last turn", "23 24 25 | 42 32 22 22", "UR", "body -", "1 -", rules=LATE),
    Case(
        "the tail of one that eats now and dies of it",
        "23 24 25 | 42 32 22 | 62 63 64",
        "URL",
        "body head head",
        "1 2 1",
        food="52",
    ),
    Case("growth", "32 22 12", "R", "-", food="42", after="42 32 22 12"),
    Case("late growth", "32 22 12", "R", "-", food="42", after="42 32 22 22", rules=LATE),
    Case("late growth the turn after", "32 22 12 12", "R", "-", after="42 32 22 12", rules=LATE),
    Case("food listed twice grows once", "32 22 12", "R", "-", food="42 42", after="42 32 22 12"),
    Case("food listed twice, late growth", "32 22 12", "R", "-", food="42 42", after="42 32 22 22 22", rules=LATE),
    Case("a snake of one that eats, late growth", "32", "R", "self", "0", food="42", after="42 42", rules=LATE),
    Case("a snake of one that eats", "32", "R", "-", food="42", after="42 32"),
    Case("wall", "62 52 42", "R", "wall"),
    Case("across the seam", "62 52 42", "R", "-", after="02 62 52", rules=WRAP),
    Case("food across the seam", "20 21 22", "U", "-", food="26", after="26 20 21 22", rules=WRAP),
    Case("head-on, equal", "22 12 02 | 42 52 62", "RL", "head head", "1 0"),
    Case("head-on, equal, nobody survives", "22 12 02 | 42 52 62", "RL", "head head", "1 0", rules=ALL_DIE),
    Case("head-on, unequal", "22 12 02 | 42 52 62 63", "RL", "head -", "1 -"),
    Case("head-on, unequal, nobody survives", "22 12 02 | 42 52 62 63", "RL", "head head", "1 0", rules=ALL_DIE),
    Case("head-on, three-way, one longest", "22 12 02 | 42 52 62 | 33 34 35 36", "RLU", "head head -", "2 2 -"),
    Case("head-on, three-way, two longest", "22 12 02 | 42 52 62 63 | 33 34 35 36", "RLU", "head head head", "- 2 1"),
    Case("head-on, three-way, equal", "22 12 02 | 42 52 62 | 33 34 35", "RLU", "head head head", "- - -"),
    Case("head-on, three-way, different lengths", "22 12 | 42 52 62 | 33 34 35 36", "RLU", "head head -", "2 2 -"),
    Case(
        "head-on, three-way, nobody survives", "22 12 | 42 52 62 | 33 34 35 36", "RLU", "head head head", "2 2 1", rules=ALL_DIE
    ),
    Case(
        "two heads on one food, equal",
        "22 12 02 | 42 52 62",
        "RL",
        "head head",
        "1 0",
        food="32",
        after="32 22 12 02 | 32 42 52 62",
    ),
    Case("two heads on one food, unequal", "22 12 02 | 42 52 62 63", "RL", "head -", "1 -", food="32"),
    Case(
        "two heads on one food, late growth",
        "22 12 | 42 52 62",
        "RL",
        "head -",
        "1 -",
        food="32",
        after="32 22 22 | 32 42 52 52",
        rules=LATE,
    ),
    Case("swapping heads at length 1", "22 | 32", "RL", "- -", after="32 | 22"),
    Case("swapping heads at length 2", "22 12 | 32 42", "RL", "body body", "1 0"),
    Case("swapping heads at length 3", "22 12 02 | 32 42 52", "RL", "body body", "1 0"),
    Case("swapping heads at lengths 1 and 2", "22 | 32 42", "RL", "body -", "1 -"),
    Case("swapping heads at length 2, unequal", "22 12 | 32 42 52", "RL", "body body", "1 0"),
    Case("following a head of length 1", "22 12 | 32", "RU", "- -"),
    Case("following a head of length 2", "22 12 | 32 33", "RU", "body -", "1 -"),
    Case("a body and a head on one cell", "23 24 25 26 | 32 22 12 02 | 21 20", "URD", "body - body", "1 - 1"),
    Case("in two equally long bodies on one cell", "12 02 03 | 42 32 22 21 | 21 22 23 24", "RRU", "body - -", "- - -"),
    Case("in two bodies on one cell", "12 02 03 | 42 32 22 21 | 21 22 23 24 25", "RRU", "body - -", "2 - -"),
    Case("into one that dies at a wall", "23 24 25 | 02 12 22 32", "UL", "- wall"),
    Case("into one that dies at a wall and blocks", "23 24 25 | 02 12 22 32", "UL", "body wall", "1 -", rules=ALL_BLOCK),
    Case("into one that starves", "23 24 25 | 42 32 22 12", "UR", "- starvation", healths="9 1"),
    Case(
        "into one that starves and blocks",
        "23 24 25 | 42 32 22 12",
        "UR",
        "body starvation",
        "1 -",
        healths="9 1",
        rules=ALL_BLOCK,
    ),
    Case(
        "into one that dies of a hazard", "23 24 25 | 42 32 22 12", "UR", "- hazard", hazards="52", healths="9 15", rules=BURNS
    ),
    Case("into one that dies of a collision", "23 24 25 | 32 22 12 02 | 43 42 41", "URD", "body body -", "1 2 -"),
    Case("into one that dies of itself", "15 16 26 | 22 21 11 12 13 14", "UL", "- self", "- 1"),
    Case("into the body of one that dies of itself", "04 05 06 | 22 21 11 12 13 14 24", "RL", "body self", "1 1"),
    Case("into one that dies head-on", "23 24 25 | 32 22 12 | 52 53 54", "URL", "body head head", "1 2 1"),
    Case("head-on with one that starves", "22 12 02 | 42 52 62", "RL", "- starvation", healths="9 1"),
    Case(
        "head-on with one that starves and blocks",
        "22 12 | 42 52 62",
        "RL",
        "head starvation",
        "1 -",
        healths="9 1",
        rules=ALL_BLOCK,
    ),
    Case("head-on with a shorter one that starves", "22 12 02 | 42 52", "RL", "- starvation", healths="9 1", rules=ALL_BLOCK),
    Case("into one that reverses", "23 24 25 | 42 32 22", "UL", "- reverse", rules=DIES),
    Case("into one that reverses and blocks", "23 24 25 | 42 32 22", "UL", "body reverse", "1 -", rules=DIES | ALL_BLOCK),
    Case("reversing at length 1 goes straight", "32", "L", "-", headings="R", after="42"),
    Case("reversing at length 2 goes straight", "32 22", "L", "-", after="42 32"),
    Case("reversing at length 3 goes straight", "32 22 12", "L", "-", after="42 32 22"),
    Case("reversing goes straight into a wall", "62 52 42", "L", "wall"),
    Case("reversing at length 1 dies", "32", "L", "reverse", headings="R", after="32", rules=DIES),
    Case("reversing at length 2 dies", "32 22", "L", "reverse", after="32 22", rules=DIES),
    Case("reversing at length 3 dies", "32 22 12", "L", "reverse", after="32 22 12", rules=DIES),
    Case("reversing onto food dies and eats nothing", "32", "L", "reverse", headings="R", food="22", after="32", rules=DIES),
    Case("reversing at length 1 is a move", "32", "L", "-", headings="R", after="22", rules=MOVES),
    Case("reversing at length 2 is a move", "32 22", "L", "-", after="22 32", rules=MOVES),
    Case("reversing at length 3 is a move", "32 22 12", "L", "self", "0", after="22 32 22", rules=MOVES),
    Case("reversing at length 2 onto a doubled tail", "32 22 22", "L", "self", "0", rules=MOVES | LATE),
    Case("a turn is no reversal", "32 22 12", "U", "-", after="31 32 22", rules=DIES),
    Case("hunger", "32 22 12", "R", "-", healths="2"),
    Case("starving", "32 22 12", "R", "starvation", healths="1"),
    Case("eating at health 1", "32 22 12", "R", "-", food="42", healths="1"),
    Case("starving at a wall", "62 52 42", "R", "starvation", healths="1"),
    Case("starving in another", "23 24 25 | 42 32 22 12", "UR", "starvation -", healths="1 9"),
    Case("eating at health 1 in another", "23 24 25 | 42 32 22 12", "UR", "body -", "1 -", food="22", healths="1 9"),
    Case("a hazard", "32 22 12", "R", "-", hazards="42", healths="16", rules=BURNS),
    Case("a hazard that kills", "32 22 12", "R", "hazard", hazards="42", healths="15", rules=BURNS),
    Case("a hazard listed twice", "32 22 12", "R", "hazard", hazards="42 42", healths="29", rules=BURNS),
    Case("a hazard listed twice, enough health", "32 22 12", "R", "-", hazards="42 42", healths="30", rules=BURNS),
    Case("a hazard to one that starves", "32 22 12", "R", "hazard", hazards="42", healths="1", rules=BURNS),
    Case("a hazard with food", "32 22 12", "R", "-", hazards="42", healths="1", food="42", rules=BURNS),
    Case("a hazard under the body", "32 22 12", "R", "-", hazards="32 22 12", healths="2", rules=BURNS),
    Case("a hazard that heals", "32 22 12", "R", "-", hazards="42", healths="1", rules=HEALS),
    Case("a hazard that is none", "32 22 12", "R", "-", hazards="42", healths="2"),
    Case("a hazard without hunger", "32 22 12", "R", "hazard", hazards="42", healths="14", rules=BURNS | {"hunger": "none"}),
    Case("without hunger", "32 22 12", "R", "-", healths="1", rules={"hunger": "none"}),
    Case("at health 0 without hunger", "32 22 12", "R", "-", healths="0", rules={"hunger": "none"}),
    Case("at health 0 where hazards are", "32 22 12", "R", "starvation", healths="0", rules={"hunger": "none"} | BURNS),
    Case("a reversal is not burnt", "32 22 12", "L", "reverse", hazards="32 22", healths="2", rules=BURNS | DIES),
]


def cells(text: str) -> list[Cell]:
    return [(int(cell[0]), int(cell[1])) for cell in text.split()]


def bodies(text: str) -> list[list[Cell]]:
    return [cells(snake) for snake in text.split("|")]


def play(case: Case) -> Game:
    """The game after the turn, in which engine and oracle agree."""
    snakes = bodies(case.snakes)
    fields = {"width": 7, "height": 7, "num_snakes": len(snakes), "food_initial": 0, "food_minimum": 0}
    if not case.healths:
        fields["hunger"] = "none"
    position = Position(
        bodies=snakes,
        food=cells(case.food),
        hazards=cells(case.hazards),
        health=[int(health) for health in case.healths.split()] or None,
        headings=["URDL".index(heading) for heading in case.headings] or None,
    )
    engine = engine_at(Rules(**(fields | case.rules)), [position])
    games = read_games(engine)
    assert_same_turn(engine, games, np.array([["URDL".index(move) for move in case.moves]]))
    check_consistent(engine.state, engine.rules, played=False)
    return games[0]


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


# ---------------------------------------------------------------------------------------- any position against the oracle


def one_turn(rules: Rules, seed: int, positions: int, overlapping: bool) -> None:
    random = Random(seed)
    engine = engine_at(rules, [random_position(random, rules, overlapping=overlapping) for _ in range(positions)])
    games = read_games(engine)
    actions = [[random.randrange(4) for _ in range(rules.num_snakes)] for _ in range(positions)]
    assert_same_turn(engine, games, np.array(actions))
    check_consistent(engine.state, rules, played=False)


@given(random_rules(), seeds)
@settings(max_examples=120)
def test_a_turn_from_any_position(rules: Rules, seed: int) -> None:
    one_turn(rules, seed, 12, overlapping=False)


@given(random_rules(min_side=4, max_side=5, num_snakes=6, start_length=1), seeds)
@settings(max_examples=80)
def test_a_turn_from_overlapping_bodies(rules: Rules, seed: int) -> None:
    one_turn(rules, seed, 12, overlapping=True)


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
    return position._replace(
        bodies=[position.bodies[k] for k in order],
        headings=[position.headings[k] for k in order],
        health=[position.health[k] for k in order],
    )


@given(random_rules(), seeds)
@settings(max_examples=60)
def test_permuting_the_snakes_permutes_the_outcome(rules: Rules, seed: int) -> None:
    random = Random(seed)
    positions = [random_position(random, rules) for _ in range(8)]
    orders = [random.sample(range(rules.num_snakes), rules.num_snakes) for _ in positions]
    actions = np.array([[random.randrange(4) for _ in range(rules.num_snakes)] for _ in positions])
    one = engine_at(rules, positions)
    other = engine_at(rules, [permuted(position, order) for position, order in zip(positions, orders, strict=True)])
    one.step(actions)
    other.step(np.take_along_axis(actions, np.array(orders), axis=1))
    for row, order in enumerate(orders):
        expected, result = read_game(one.state, rules, row), read_game(other.state, rules, row)
        expected.snakes = [expected.snakes[k] for k in order]
        for snake in expected.snakes:
            snake.killer = order.index(snake.killer) if snake.killer >= 0 else -1
        assert result == expected, (positions[row], order, actions[row])


@given(random_rules(food_minimum=0, food_chance=0.0), seeds)
@settings(max_examples=60)
def test_turning_and_mirroring_commute_with_a_turn(rules: Rules, seed: int) -> None:
    random = Random(seed)
    for mirror in (False, True):
        positions = [random_position(random, rules) for _ in range(6)]
        actions = [[random.randrange(4) for _ in range(rules.num_snakes)] for _ in positions]
        moved = [turned(rules, position, mirror=mirror) for position in positions]
        moved_rules, turn = moved[0][0], moved[0][2]
        one, other = engine_at(rules, positions), engine_at(moved_rules, [position for _, position, _ in moved])
        one.step(np.array(actions))
        other.step(np.array([[turn(action) for action in row] for row in actions]))
        for row in range(len(positions)):
            expected, result = read_game(one.state, rules, row), read_game(other.state, moved_rules, row)
            expected.rules = moved_rules
            for snake in expected.snakes:
                after = turned(rules, Position(bodies=[snake.body], headings=[snake.heading]), mirror=mirror)[1]
                assert after.headings is not None
                snake.body, snake.heading = list(after.bodies[0]), after.headings[0]
            for name in ("food", "hazards"):
                there = turned(rules, Position(bodies=[getattr(expected, name)], headings=[]), mirror=mirror)[1]
                setattr(expected, name, sorted(there.bodies[0]))
            assert result == expected, (positions[row], actions[row], mirror)


# ------------------------------------------------------------------------------------------------------------------ food


def spawned(rules: Rules, position: Position, actions: list[int], games: int, first_seed: int = 0) -> np.ndarray:
    """(K,) how often each cell has food after one turn, over games of consecutive seeds."""
    engine = engine_at(rules, [position._replace(seed=first_seed + k) for k in range(games)])
    engine.step(np.tile(actions, (games, 1)))
    return engine.state.food.sum(axis=0, dtype=int)


def assert_uniform(counts: np.ndarray, pieces: int) -> None:
    """Pearson's chi-square, at most five standard deviations above its mean. Pieces of one game lie on different cells, which
    only makes it smaller."""
    expected = pieces / counts.size
    freedom = counts.size - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom), counts


@pytest.mark.parametrize("covered", [3, 22], ids=["wide-open", "nearly-full"])
def test_food_is_uniform_over_the_free_cells(covered: int) -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=1)
    path = [(x if y % 2 == 0 else 4 - x, y) for y in range(5) for x in range(5)]
    body = path[:covered][::-1]
    counts = spawned(rules, Position(bodies=[body]), [1], 20_000)
    free = sorted(set(path) - {path[covered], *body[:-1]})
    assert counts.sum() == 20_000
    assert_uniform(np.array([counts[y * 5 + x] for x, y in free]), 20_000)


def test_several_pieces_are_uniform_and_on_different_cells() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=6)
    counts = spawned(rules, Position(bodies=[[(2, 2)]]), [0], 5_000)
    assert counts.sum() == 30_000
    assert_uniform(np.delete(counts, 1 * 5 + 2), 30_000)


def test_pairs_of_pieces_are_uniform_on_a_nearly_full_board() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=2)
    path = [(x if y % 2 == 0 else 4 - x, y) for y in range(5) for x in range(5)]
    engine = engine_at(rules, [Position(bodies=[path[:22][::-1]], seed=k) for k in range(6_000)])
    engine.step(np.ones((6_000, 1), int))  # on along the path, so that its two last cells and its first one are free
    pairs = [tuple(np.flatnonzero(food)) for food in engine.state.food]
    assert len(set(pairs)) == 3
    assert_uniform(np.array([pairs.count(pair) for pair in set(pairs)]), 6_000)


def test_food_of_one_game_is_uniform_over_its_turns() -> None:
    rules = Rules(width=2, height=5, num_snakes=1, start_length=1, edge="wrap", hunger="none", food_initial=0)
    engine = SnakeEngine(rules.replace(food_minimum=1), seed=3)
    engine.reset()
    pieces = np.zeros(rules.num_cells, int)
    random = np.random.default_rng(0)
    for _ in range(8_000):
        before = engine.state.food[0].copy()
        engine.step(random.integers(4, size=(1, 1)))
        engine.state.length[:] = 1  # eaten or not, it stays a point, so that every cell but its own is free
        engine.state.occupancy[:] = 0
        engine.state.occupancy[0, body_cells(engine.state, 0, 0)] = 1
        engine.state.over[:], engine.state.alive[:], engine.state.cause[:] = False, True, 0
        pieces += (engine.state.food[0] > 0) & (before == 0)
    assert_uniform(pieces, pieces.sum())


def test_the_chance_of_food() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=1, food_chance=0.3)
    enough = Position(bodies=[[(2, 2)]], food=[(4, 4)])
    assert spawned(rules, enough, [0], 20_000).sum() == pytest.approx(20_000 * 1.3, abs=5 * np.sqrt(20_000 * 0.3 * 0.7))
    assert spawned(rules, Position(bodies=[[(2, 2)]]), [0], 1_000).sum() == 1_000, "no chance on a turn that fills up"
    assert spawned(rules.replace(food_chance=1.0), enough, [0], 1_000).sum() == 2_000
    assert spawned(rules.replace(food_chance=0.0), enough, [0], 1_000).sum() == 1_000


def test_food_of_the_start_is_uniform() -> None:
    rules = Rules(width=4, height=4, num_snakes=1, start_length=1, food_initial=1)
    engine = SnakeEngine(rules, 20_000, seed=0)
    engine.reset()
    assert (engine.state.food_count == 1).all()
    starts = engine.state.occupancy.sum(axis=0, dtype=int)
    counts = engine.state.food.sum(axis=0, dtype=int)
    for group in (starts > 0, starts == 0):  # cells where snakes start are free less often
        assert_uniform(counts[group], counts[group].sum())


@pytest.mark.parametrize("growth", ["same_turn", "next_turn"])
@pytest.mark.parametrize("food_minimum", [1, 3, 100])
def test_a_board_that_fills_up(growth: str, food_minimum: int) -> None:
    """Along a closed path over all cells. The snake eats until there is no room and then follows its tail for ever, or, where
    growth is late, runs into the tail that its last meal has doubled."""
    rules = Rules(width=4, height=4, num_snakes=1, start_length=3, growth=growth, hunger="none", food_minimum=food_minimum)
    down = [(0, y) for y in range(4)]
    back = [(x, y) for x, ys in ((1, (3, 2, 1)), (2, (1, 2, 3)), (3, (3, 2, 1, 0))) for y in ys] + [(2, 0), (1, 0)]
    path = down + back
    steps = {
        cell: next(d for d in range(4) if beside(rules, cell, d) == after)
        for cell, after in zip(path, path[1:] + path[:1], strict=True)
    }
    engine = engine_at(rules, [Position(bodies=[path[2::-1]])])
    games = read_games(engine)
    for _ in range(400):
        assert_same_turn(engine, games, np.array([[steps[games[0].snakes[0].body[0]]]]))
        check_consistent(engine.state, rules)
    snake = games[0].snakes[0]
    assert snake.cause == ("" if growth == "same_turn" else "self")
    assert len(set(snake.body)) == 16
    assert len(snake.body) == (16 if growth == "same_turn" else 17)
    assert games[0].food == ([] if growth == "same_turn" else games[0].food)


@pytest.mark.parametrize("growth", ["same_turn", "next_turn"])
def test_a_body_grows_as_long_as_its_ring_has_room(growth: str) -> None:
    """Only a body set up in a heap gets that long."""
    rules = Rules.classic(width=7, height=2, num_snakes=1, start_length=1, growth=growth, food_initial=0, food_minimum=0)
    path = [(x, 0) for x in range(7)] + [(x, 1) for x in range(6, -1, -1)]
    engine = engine_at(rules, [Position(bodies=[path[:1] * 14], food=path[1:], headings=[1])])
    for direction in [1] * 6 + [2] + [3] * 6:
        engine.step(np.array([[direction]]))
        check_consistent(engine.state, rules, played=False)
    assert engine.state.alive.all()
    assert engine.state.length[0, 0] == engine.state.body.shape[2] - 1
    assert engine.state.food_count.tolist() == [0]


def test_food_fills_a_board_and_no_more() -> None:
    rules = Rules(width=6, height=3, num_snakes=2, food_initial=100, food_minimum=100)
    engine = SnakeEngine(rules, 5, seed=1)
    engine.reset()
    assert (engine.state.food_count == 12).all()
    check_consistent(engine.state, rules)
    engine.step(np.zeros((5, 2), int))
    check_consistent(engine.state, rules)


# ---------------------------------------------------------------------------------------------------------------- starts


def follow_the_ring(rules: Rules, game: Game) -> list[int]:
    """The direction of each snake to the next cell of the ring it starts on."""
    rings = [[(cell % rules.width, cell // rules.width) for cell in ring] for ring in rules.rings()]
    directions = []
    for snake in game.snakes:
        head = snake.body[0]
        ring = next(ring for ring in rings if head in ring)
        at = ring.index(head)
        ahead = [
            direction for direction in range(4) if beside(rules, head, direction) in (ring[at - 1], ring[(at + 1) % len(ring)])
        ]
        behind = snake.body[1] if len(snake.body) > 1 else beside(rules, head, (snake.heading + 2) % 4)
        directions.append(next(direction for direction in ahead if beside(rules, head, direction) != behind))
    return directions


def check_start(rules: Rules, games: int, seed: int) -> None:
    engine = SnakeEngine(rules, games, seed=seed)
    engine.reset()
    state = engine.state
    check_consistent(state, rules)
    assert state.occupancy.max() == 1
    assert (state.occupancy.sum(axis=1) == rules.num_snakes * rules.start_length).all()
    free = rules.num_cells - rules.num_snakes * rules.start_length
    assert (state.food_count == min(rules.food_initial, free)).all()
    assert (state.health == rules.max_health).all()
    before = read_games(engine)
    for game in before:
        for snake in game.snakes:
            for ahead, behind in zip(snake.body, snake.body[1:], strict=False):
                assert abs(ahead[0] - behind[0]) + abs(ahead[1] - behind[1]) == 1
            if len(snake.body) > 1 and min(rules.width, rules.height) > 2:
                assert beside(rules, snake.body[1], snake.heading) == snake.body[0]
    actions = [follow_the_ring(rules, game) for game in before]
    for row, game in enumerate(before):
        for snake, direction in zip(game.snakes, actions[row], strict=True):
            x, y = beside(rules, snake.body[0], direction)
            assert state.occupancy[row, y * rules.width + x] == 0, "two snakes start without a free cell between them"
    engine.step(np.array(actions))
    assert state.alive.all(), "a snake cannot survive its first move"


@given(random_rules(max_snakes=30, reverse="dies", max_health=100, growth="same_turn"), seeds)
@settings(max_examples=100)
@example(Rules(width=2, height=2, num_snakes=1, reverse="dies"), 0)
@example(Rules(width=4, height=4, num_snakes=4, reverse="dies"), 0)
@example(Rules(width=64, height=3, num_snakes=30, reverse="dies"), 0)
@example(Rules(width=16, height=16, num_snakes=22, start_length=1, reverse="dies"), 0)
@example(Rules(width=8, height=29, num_snakes=116, start_length=1, reverse="dies"), 0)
def test_every_snake_can_survive_its_first_move(rules: Rules, seed: int) -> None:
    check_start(rules, 3, seed)


def most_snakes(width: int, height: int, start_length: int) -> int:
    rings = Rules(width=width, height=height, num_snakes=1, start_length=1).rings()
    return sum(len(ring) // (start_length + 1) for ring in rings)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 9), (3, 3), (5, 4), (11, 11), (19, 7), (64, 64), (128, 2)])
@pytest.mark.parametrize("start_length", [1, 2, 3])
def test_as_many_snakes_as_fit(width: int, height: int, start_length: int) -> None:
    most = most_snakes(width, height, start_length)
    rules = Rules(width=width, height=height, num_snakes=min(most, 1000), start_length=start_length, reverse="is_a_move")
    check_start(rules, 2, 0)
    with pytest.raises(ValueError, match=f"room for at most {most} snakes" if most < 1000 else "num_snakes must be <= 1000"):
        rules.replace(num_snakes=most + 1)


@pytest.mark.slow
def test_starts_of_every_size() -> None:
    for width in range(2, 40):
        for height in range(2, 40, 3):
            for start_length in (1, 2, 3, 5):
                most = most_snakes(width, height, start_length)
                for num_snakes in {1, 2, 3, 4, 5, 7, most // 2, most - 1, most}:
                    if 1 <= num_snakes <= most:
                        rules = Rules(
                            width=width, height=height, num_snakes=num_snakes, start_length=start_length, reverse="is_a_move"
                        )
                        check_start(rules, 1, width + height)


@pytest.mark.parametrize("side", [5, 7, 8, 11, 19])
@pytest.mark.parametrize("num_snakes", [2, 4])
def test_the_start_is_fair_on_a_square(side: int, num_snakes: int) -> None:
    """Turned by 360 degrees divided by the number of snakes, each stands where another stood and heads where it headed."""
    rules = Rules(width=side, height=side, num_snakes=num_snakes)
    engine = SnakeEngine(rules, 20, seed=2)
    engine.reset()
    for game in read_games(engine):
        position = Position(bodies=[snake.body for snake in game.snakes], headings=[snake.heading for snake in game.snakes])
        moved = position
        for _ in range(4 // num_snakes):
            moved = turned(rules, moved, mirror=False)[1]
        assert moved.headings is not None
        assert position.headings is not None
        there = sorted(zip(map(list, moved.bodies), moved.headings, strict=True))
        assert there == sorted(zip(map(list, position.bodies), position.headings, strict=True))


def test_starts_are_shuffled() -> None:
    """Every snake starts at every spot, and in both directions around the board."""
    engine = SnakeEngine(Rules.classic(), 4_000, seed=0)
    engine.reset()
    heads = np.array([[body_cells(engine.state, game, snake)[0] for snake in range(4)] for game in range(4_000)])
    for snake in range(4):
        counts = np.bincount(heads[:, snake], minlength=121)
        assert_uniform(counts[counts > 0], 4_000)
        assert (counts > 0).sum() == 24, "the ring near the third line of 11x11"
        assert_uniform(np.bincount(engine.state.heading[:, snake], minlength=4), 4_000)
    ring = engine.rules.rings()[2]
    necks = np.array([[body_cells(engine.state, game, snake)[1] for snake in range(4)] for game in range(4_000)])
    clockwise = np.array(
        [
            [ring.index(head) == (ring.index(neck) + 1) % 24 for head, neck in zip(*pair, strict=True)]
            for pair in zip(heads, necks, strict=True)
        ]
    )
    assert (clockwise == clockwise[:, :1]).all(), "all in one direction, or they would meet"
    assert_uniform(np.bincount(clockwise[:, 0], minlength=2), 4_000)


def test_the_order_around_the_board_is_shuffled() -> None:
    engine = SnakeEngine(Rules.classic(), 6_000, seed=0)
    engine.reset()
    ring = engine.rules.rings()[2]
    places = [[ring.index(body_cells(engine.state, game, snake)[0]) for snake in range(4)] for game in range(6_000)]
    orders = [tuple(np.argsort([(place - game[0]) % len(ring) for place in game])) for game in places]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6, "who follows the first snake, and who follows next"
    assert_uniform(np.array(counts), 6_000)


def test_ranks_killers_and_events_are_forgotten_on_reset() -> None:
    rules = Rules.classic()
    engine, fresh = SnakeEngine(rules, 1), SnakeEngine(rules, 1)
    engine.reset(seeds=[1])
    while not engine.state.over.all():
        engine.step(np.zeros((1, 4), int))
    engine.state.hazard[:] = 3
    engine.reset(seeds=[7])
    fresh.reset(seeds=[7])
    assert read_games(engine) == read_games(fresh)
    check_consistent(engine.state, rules)


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
