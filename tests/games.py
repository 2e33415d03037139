"""Random rules, positions and players for the tests, and the state of an engine read as a game of the oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random
from typing import Any, get_args

import hypothesis.strategies as st
import numpy as np

from snake_pz.engine import SnakeEngine
from snake_pz.rewards import RewardWeights
from snake_pz.rules import DyingBlock, Edge, Growth, HeadToHead, Hunger, Reverse, Rules
from snake_pz.state import CAUSES, Position, SnakeState, body_cells
from tests import oracle
from tests.oracle import DIRECTIONS, Cell, Game, Snake, beside

WEIGHTS = RewardWeights(food=0.5, death=-1.0, kill=0.25, win=2.0, rank=3.0, step=-0.125)
"""No two components cancel each other."""


@st.composite
def random_rules(draw: st.DrawFn, *, min_side: int = 2, max_side: int = 9, max_snakes: int = 6, **fixed: Any) -> Rules:
    """Rules with every field drawn, unless fixed; small numbers, so that everything happens soon."""
    side = st.integers(min_side, max_side)
    width, height = draw(side), draw(side)
    ring = 2 * (width + height) - 4
    start_length = draw(st.integers(1, min(4, ring - 1)))
    inner = range(min(width, height) // 2)
    room = sum((2 * (width + height - 4 * k) - 4) // (start_length + 1) for k in inner)
    fields = {
        "width": width,
        "height": height,
        "start_length": start_length,
        "num_snakes": draw(st.integers(1, min(max_snakes, room))),
        "edge": draw(st.sampled_from(get_args(Edge))),
        "growth": draw(st.sampled_from(get_args(Growth))),
        "head_to_head": draw(st.sampled_from(get_args(HeadToHead))),
        "reverse": draw(st.sampled_from(get_args(Reverse))),
        "dying_block": draw(st.sampled_from(get_args(DyingBlock))),
        "hunger": draw(st.sampled_from(get_args(Hunger))),
        "food_initial": draw(st.integers(0, 6)),
        "food_minimum": draw(st.integers(0, 4)),
        "food_chance": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "max_health": draw(st.sampled_from([1, 2, 5, 20, 100])),
        "hazard_damage": draw(st.sampled_from([0, 0, 1, 3, 14, -2, 200])),
        "max_turns": draw(st.sampled_from([None, None, 1, 12])),
    }
    return Rules(**(fields | fixed))


seeds = st.integers(0, 2**32 - 1)


# ------------------------------------------------------------------------------------------------------------ positions


def random_position(random: Random, rules: Rules, *, overlapping: bool = False) -> Position:
    """Bodies of all lengths, many of them close together, some stacked or missing, food and hazards anywhere."""
    taken: set[Cell] = set()
    walks = [_walk(random, rules, set() if overlapping else taken) for _ in range(rules.num_snakes)]
    bodies = [body for body, _ in walks]
    food = _some_cells(random, rules, 3)
    food += [cell for cell in food if random.random() < 0.2]
    return Position(
        bodies=bodies,
        food=[cell for k, cell in enumerate(food) if food[:k].count(cell) < 3],
        health=[min(random.choice([0, 1, 1, 2, 3, 100, 100]), rules.max_health) for _ in bodies],
        hazards=_some_cells(random, rules, 4) * random.choice([1, 1, 2, 4]),
        headings=[heading for _, heading in walks],
        turn=random.choice([0, 1, 11]),
        seed=random.getrandbits(64),
    )


def _walk(random: Random, rules: Rules, taken: set[Cell]) -> tuple[list[Cell], int]:
    """A body that crosses neither itself nor the cells taken, which it joins, and the heading that led to it."""
    free = [(x, y) for x in range(rules.width) for y in range(rules.height) if (x, y) not in taken]
    if not free or random.random() < 0.08:
        return [], 0
    body = [random.choice(free)]
    taken.add(body[0])
    heading = random.randrange(4)
    length = random.choice([1, 2, 2, 3, 4, 5, 8, 30])
    while len(body) < min(length, rules.num_cells - 2):
        steps = [direction for direction in range(4) if beside(rules, body[-1], direction) in free]
        steps = [direction for direction in steps if beside(rules, body[-1], direction) not in taken]
        if not steps or random.random() < 0.05:
            break
        direction = random.choice(steps)
        if len(body) == 1:
            heading = (direction + 2) % 4
        body.append(beside(rules, body[-1], direction))
        taken.add(body[-1])
    if random.random() < 0.3:  # as after eating, or as at the start of other snake games
        body += [body[-1]] * min(random.choice([1, 1, 2]), max(rules.num_cells - 2 - len(body), 0))
    return body, heading


def _some_cells(random: Random, rules: Rules, most: int) -> list[Cell]:
    number = random.randint(0, most * max(1, rules.num_cells // 12))
    return [(random.randrange(rules.width), random.randrange(rules.height)) for _ in range(number)]


def turned(rules: Rules, position: Position, *, mirror: bool) -> tuple[Rules, Position, Callable[[int], int]]:
    """The same after a quarter turn clockwise, or a reflection of left and right; the last maps directions."""

    def move(cell: Cell) -> Cell:
        x, y = cell
        return (rules.width - 1 - x, y) if mirror else (rules.height - 1 - y, x)

    def turn(direction: int) -> int:
        return -direction % 4 if mirror else (direction + 1) % 4

    assert position.headings is not None
    sides = {} if mirror else {"width": rules.height, "height": rules.width}
    moved = position._replace(
        bodies=[[move(cell) for cell in body] for body in position.bodies],
        food=[move(cell) for cell in position.food],
        hazards=[move(cell) for cell in position.hazards],
        headings=[turn(heading) for heading in position.headings],
    )
    return dataclasses.replace(rules, **sides), moved, turn


# -------------------------------------------------------------------------------------------------------------- reading


def read_game(state: SnakeState, rules: Rules, game: int) -> Game:
    """One game of a state. The head of a snake that left the board is put outside of it."""

    def cells(counts: np.ndarray) -> list[Cell]:
        return sorted((int(cell) % rules.width, int(cell) // rules.width) for cell in np.repeat(np.arange(counts.size), counts))

    def snake(number: int) -> Snake:
        flat = [int(cell) for cell in body_cells(state, game, number)]
        body = [(cell % rules.width, cell // rules.width) for cell in flat]
        heading = int(state.heading[game, number])
        if flat and flat[0] < 0:
            behind = int(state.body[game, number, (state.head[game, number] - 1) % state.body.shape[2]])
            step = DIRECTIONS[heading]
            body[0] = (behind % rules.width + step[0], behind // rules.width + step[1])
        return Snake(
            body=body,
            heading=heading,
            health=int(state.health[game, number]),
            alive=bool(state.alive[game, number]),
            cause=CAUSES[state.cause[game, number]],
            killer=int(state.killer[game, number]),
            died=int(state.died[game, number]),
            rank=int(state.rank[game, number]),
            ate=bool(state.ate[game, number]),
            just_died=bool(state.just_died[game, number]),
        )

    return Game(
        rules=rules,
        snakes=[snake(number) for number in range(rules.num_snakes)],
        food=cells(state.food[game]),
        hazards=cells(state.hazard[game]),
        turn=int(state.turn[game]),
        entrants=int(state.entrants[game]),
        over=bool(state.over[game]),
        just_ended=bool(state.just_ended[game]),
    )


def check_consistent(state: SnakeState, rules: Rules, *, played: bool = True) -> None:
    """What always holds of a state, and, for games that were played from the start, of their boards."""
    for game in range(len(state.over)):
        occupancy = np.zeros(rules.num_cells, int)
        for number in range(rules.num_snakes):
            if state.alive[game, number]:
                np.add.at(occupancy, body_cells(state, game, number), 1)
        np.testing.assert_array_equal(state.occupancy[game], occupancy, "occupancy is not the bodies of the living")
    np.testing.assert_array_equal(state.food_count, state.food.sum(axis=1), "food_count is not the food")
    assert not (state.alive & (state.cause != 0)).any(), "alive with a cause of death"
    assert (state.alive == (state.died < 0)).all() or not played, "dead without a turn of death"
    if played:
        most = 1 if rules.growth == "same_turn" else 2  # a tail just doubled
        assert state.occupancy.max() <= most, "living bodies overlap"
        assert state.food.max() <= 1, "two pieces on one cell"
        assert not (state.food.astype(bool) & (state.occupancy > 0)).any(), "food under a body"
        free = ((state.occupancy == 0) & (state.food == 0)).sum(axis=1)
        short = np.maximum(rules.food_minimum - state.food_count, 0)
        begun = ~state.over & (state.turn > 0)
        np.testing.assert_array_equal(short[begun] > 0, (free[begun] == 0) & (short[begun] > 0), "food missing")


def engine_at(rules: Rules, positions: list[Position]) -> SnakeEngine:
    """An engine with these games."""
    engine = SnakeEngine(rules, len(positions), seed=0)
    engine.load(SnakeState.from_positions(rules, positions))
    return engine


def read_games(engine: SnakeEngine) -> list[Game]:
    return [read_game(engine.state, engine.rules, row) for row in range(engine.num_games)]


def assert_same_views(engine: SnakeEngine, games: list[Game], row: int) -> None:
    """The masks and, for snakes that see something new, all encodings agree with the oracle; all else is left alone."""
    game, snakes = games[row], engine.rules.num_snakes
    for name, view in oracle.VIEWS.items():
        out = engine.observe(name)
        out[:] = 77
        engine.observe(name, out, np.array([row]))
        for number, snake in enumerate(game.snakes):
            expected = view(game, number) if snake.alive or snake.just_died else np.full(out.shape[2:], 77)
            np.testing.assert_array_equal(out[row, number], expected, f"{name} of snake {number} in {game}")
        assert (np.delete(out, row, axis=0) == 77).all(), "wrote into a game that was not asked for"
    for name in ("absolute", "relative"):
        mask = engine.action_masks(name)
        assert mask[row].tolist() == [oracle.action_mask(game, number, name == "relative") for number in range(snakes)], (
            f"{name} masks in {game}"
        )


def assert_same_turn(engine: SnakeEngine, games: list[Game], actions: np.ndarray) -> None:
    """Play a turn in the engine and in the oracle, and compare everything but observations and masks."""
    befores = [repr(game) for game in games]
    engine.step(actions)
    paid = engine.rewards(WEIGHTS)
    for row, game in enumerate(games):
        result = read_game(engine.state, engine.rules, row)
        oracle.play(game, actions[row].tolist())
        oracle.take_food(game, result.food)
        oracle.finish(game)
        assert result == game, f"after {actions[row].tolist()} in {befores[row]}"
        np.testing.assert_allclose(paid[row], oracle.rewards(game, WEIGHTS), rtol=1e-6, err_msg=f"rewards in {game}")
