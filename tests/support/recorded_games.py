"""Random rules, positions and players for the tests, and the state of an engine read as a game of the oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, get_args

import hypothesis.strategies as st
import numpy as np

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import CAUSES, Position, SnakeState, body_cells
from snake_pz.reward_weights import RewardWeights
from snake_pz.rules import (
    Battlesnake,
    ContestedFood,
    DyingBlock,
    Edge,
    EndsWith,
    Growth,
    HeadToHead,
    InvalidMove,
    OwnBody,
    Reverse,
    Rules,
    Start,
    TiedDeaths,
    TiedKiller,
)
from tests.support import oracle, oracle_views
from tests.support.oracle import DIRECTIONS, NO_HEADING, Cell, Game, Snake, beside

WEIGHTS = RewardWeights(food=0.5, death=-1.0, kill=0.25, win=2.0, rank=3.0, step=-0.125)
"""No two components cancel each other."""


PRESETS: dict[str, Callable[..., Rules]] = {
    "classic": Rules.classic,
    **{mode: partial(Rules.battlesnake, mode) for mode in get_args(Battlesnake)},
    "hungry_geese": Rules.hungry_geese,
}
"""Every preset by name; called with the fields to change."""


def room(start: str, width: int, height: int, start_length: int) -> int:
    """How many snakes can start: on rings with a free cell between them, or scattered over all cells."""
    if start == "scattered":
        return width * height
    apart = start_length + 1 if start == "rings" else 2
    return sum((2 * (width - 2 * k + height - 2 * k) - 4) // apart for k in range(min(width, height) // 2))


def preset(name: str, width: int, height: int, most: int | None = None) -> Rules:
    """A preset on another board, with its own number of snakes or `most`, or as many as there is room for."""
    rules = PRESETS[name]()
    places = room(rules.start, width, height, rules.start_length)
    return rules.replace(width=width, height=height, num_snakes=min(most or rules.num_snakes, places, 1000))


@st.composite
def preset_rules(draw: st.DrawFn) -> Rules:
    """Any preset on its own board or a small one, sooner hungry, shrunk and over."""
    name = draw(st.sampled_from(list(PRESETS)))
    if draw(st.booleans()):
        return PRESETS[name]()
    rules = preset(name, draw(st.integers(3, 8)), draw(st.integers(3, 8)), draw(st.integers(1, 5)))
    sooner: dict[str, Any] = {"max_health": 6}
    if rules.hunger == "segment":
        sooner |= {"hunger_every": 3, "max_length": 4, "max_turns": 15}
    if rules.shrink_every:
        sooner |= {"shrink_every": 2}
    return rules.replace(**sooner)


@st.composite
def random_rules(draw: st.DrawFn, *, min_side: int = 2, max_side: int = 9, max_snakes: int = 6, **fixed: Any) -> Rules:
    """Rules with every field drawn, unless fixed; small numbers, so that everything happens soon."""
    side = st.integers(min_side, max_side)
    width, height = draw(side), draw(side)
    ring = 2 * (width + height) - 4
    start_length = fixed.get("start_length") or draw(st.integers(1, min(4, ring - 1)))
    start = fixed.get("start") or draw(st.sampled_from(("rings", "rings", *get_args(Start))))
    places = room(start, width, height, start_length)
    fields = {
        "width": width,
        "height": height,
        "start_length": start_length,
        "num_snakes": draw(st.integers(1, min(max_snakes, places))),
        "start": start,
        "edge": draw(st.sampled_from(get_args(Edge))),
        "growth": draw(st.sampled_from(("same_turn", *get_args(Growth)))),
        "max_length": draw(st.sampled_from([None, None, None, 1, 2, 4])),
        "head_to_head": draw(st.sampled_from(get_args(HeadToHead))),
        "tied_killer": draw(st.sampled_from(get_args(TiedKiller))),
        "own_body": draw(st.sampled_from(get_args(OwnBody))),
        "reverse": draw(st.sampled_from(get_args(Reverse))),
        "invalid_move": draw(st.sampled_from(get_args(InvalidMove))),
        "dying_block": draw(st.sampled_from(get_args(DyingBlock))),
        "hunger": draw(st.sampled_from(["none", "health", "health", "segment", "segment"])),
        "hunger_every": draw(st.sampled_from([1, 2, 3, 5, 12])),
        "food_initial": draw(st.integers(0, 6)),
        "food_minimum": draw(st.integers(0, 4)),
        "food_chance": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "food_near_heads": draw(st.booleans()),
        "contested_food": draw(st.sampled_from(get_args(ContestedFood))),
        "max_health": draw(st.sampled_from([1, 2, 5, 20, 100])),
        "hazard_damage": draw(st.sampled_from([0, 0, 1, 3, 14, -2, 200])),
        "shrink_every": draw(st.sampled_from([0, 0, 0, 1, 2, 5])),
        "max_turns": draw(st.sampled_from([None, None, 1, 12])),
        "ends_with": draw(st.sampled_from(get_args(EndsWith))),
        "tied_deaths": draw(st.sampled_from(get_args(TiedDeaths))),
    }
    assert set(fields) == {field.name for field in dataclasses.fields(Rules)}, "a rule is not drawn"
    return Rules(**(fields | fixed))


seeds = st.integers(0, 2**32 - 1)


# ------------------------------------------------------------------------------------------------------------ positions


def random_position(random: Random, rules: Rules, *, overlapping: bool = False) -> Position:
    """Bodies of all lengths, many of them close together, some stacked, dead or missing, food and hazards anywhere."""
    taken: set[Cell] = set()
    bodies, headings, alive = [], [], []
    for _ in range(rules.num_snakes):
        dead = random.random() < 0.08
        body, heading = _walk(random, rules, set() if overlapping or dead else taken)
        bodies.append(body)
        headings.append(heading)
        alive.append(bool(body) and not dead)
    food = _some_cells(random, rules, 3)
    food += [cell for cell in food if random.random() < 0.2]
    return Position(
        bodies=bodies,
        food=[cell for k, cell in enumerate(food) if food[:k].count(cell) < 3],
        health=[min(random.choice([0, 1, 1, 2, 3, 100, 100]), rules.max_health) for _ in bodies],
        hazards=_some_cells(random, rules, 4) * random.choice([1, 1, 2, 4]),
        headings=headings,
        alive=alive,
        turn=random.choice([0, 1, 11]),
        seed=random.getrandbits(64),
    )


def random_actions(random: Random, rules: Rules, games: int, invalid: float = 0.06) -> np.ndarray:
    """(E, N) moves, some of them none."""
    none = [-1, 4, 5, -3, 2**40, -(2**40)]
    actions = [
        [random.choice(none) if random.random() < invalid else random.randrange(4) for _ in range(rules.num_snakes)]
        for _ in range(games)
    ]
    return np.array(actions, np.int64)


def careful_actions(engine: SnakeEngine, random: Random, care: float = 0.9) -> np.ndarray:
    """(E, N) moves that mostly do not kill at once, so that games last; now and then none at all."""
    masks = engine.action_masks("absolute")
    careless = [0, 1, 2, 3, 0, 1, 2, 3, -1]
    actions = [[random.choice(np.flatnonzero(mask) if random.random() < care else careless) for mask in game] for game in masks]
    return np.array(actions, np.int64).reshape(masks.shape[:2])


def _walk(random: Random, rules: Rules, taken: set[Cell]) -> tuple[list[Cell], int]:
    """A body that crosses neither itself nor the cells taken, which it joins, and the heading that led to it."""
    free = [(x, y) for x in range(rules.width) for y in range(rules.height) if (x, y) not in taken]
    if not free or random.random() < 0.06:
        return [], NO_HEADING
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
    if len(set(body)) == 1 and random.random() < 0.3:
        heading = NO_HEADING
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
        if direction not in range(4):  # NO_HEADING, or an invalid move
            return direction
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
        at = int(state.body[game, number, state.head[game, number]])
        head = (at % rules.width, at // rules.width)
        if at < 0:
            behind = int(state.body[game, number, (state.head[game, number] - 1) % state.body.shape[2]])
            step = DIRECTIONS[heading]
            head = (behind % rules.width + step[0], behind // rules.width + step[1])
        return Snake(
            body=[head, *body[1:]] if body else [],
            head=head,
            heading=heading,
            health=int(state.health[game, number]),
            length_before=int(state.length_before[game, number]),
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
    living, ended = state.alive, state.over
    assert (state.length[living] >= 1).all(), "alive without a segment"
    assert ((state.killer == np.arange(rules.num_snakes)) == (state.cause == CAUSES.index("self"))).all(), "killed by itself"
    if played:
        stack = 1 if rules.growth == "same_turn" else 2  # a tail just doubled
        most = stack if rules.start == "rings" else max(rules.start_length + 1, stack)
        assert state.occupancy.max() <= most, "living bodies overlap"
        assert state.food.max() <= 1, "two pieces on one cell"
        begun = state.turn > 0
        assert not (state.food.astype(bool) & (state.occupancy > 0))[begun].any(), "food under a body"
        for game in np.flatnonzero(begun & ~ended & (state.food_count < rules.food_minimum)):
            assert not oracle.free_cells(read_game(state, rules, game)), "food missing"
        assert ((state.rank > 0) == (~living | ended[:, None])).all(), "places known too early or not at all"
        assert ((state.health[living] > 0) & (state.health[living] <= rules.max_health)).all(), "alive out of health"
        assert (state.heading[begun] >= 0)[living[begun]].all(), "moved without a heading"
        if rules.max_length is not None and rules.growth == "same_turn":
            assert (state.length[begun] <= rules.max_length)[living[begun]].all(), "too long"


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
    for name, view in oracle_views.VIEWS.items():
        out = engine.observe(name)
        out[:] = 77
        engine.observe(name, out, np.array([row]))
        for number, snake in enumerate(game.snakes):
            expected = view(game, number) if snake.alive or snake.just_died else np.full(out.shape[2:], 77)
            np.testing.assert_array_equal(out[row, number], expected, f"{name} of snake {number} in {game}")
        assert (np.delete(out, row, axis=0) == 77).all(), "wrote into a game that was not asked for"
    for name in ("absolute", "relative"):
        mask = engine.action_masks(name)
        assert mask[row].tolist() == [oracle_views.action_mask(game, number, name == "relative") for number in range(snakes)], (
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
        oracle.take_hazards(game, result.hazards)
        oracle.take_food(game, result.food)
        oracle.finish(game)
        assert result == game, f"{result} after {actions[row].tolist()} in {befores[row]}"
        np.testing.assert_allclose(paid[row], oracle.rewards(game, WEIGHTS), rtol=1e-6, err_msg=f"rewards in {game}")


def assert_uniform(counts: np.ndarray, pieces: int) -> None:
    """Pearson's chi-square, at most five standard deviations above its mean. Pieces of one game lie on different cells, which
    only makes it smaller."""
    expected = pieces / counts.size
    freedom = counts.size - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom), counts
