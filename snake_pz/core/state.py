"""SnakeState: E games as a struct of arrays, without behaviour. `dynamics` changes it; `observations` and `render` read it.

Letters: E games, N snakes, L ring capacity (a power of two), K = height * width cells. A cell is the flat number
y * width + x, where y = 0 is the top row. Headings and absolute actions are 0 up, 1 right, 2 down, 3 left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.ranges import game_seed, whole_number
from snake_pz.rules import Rules


class Cause(IntEnum):
    """Causes of death: the codes of `SnakeState.cause`."""

    ALIVE = 0
    WALL = 1  # left the board
    SELF = 2  # own body
    BODY = 3  # body of another snake
    HEAD = 4  # head-on
    STARVATION = 5  # no health or no segment left
    HAZARD = 6  # no health left on a hazard
    REVERSE = 7  # reversed, under rules that kill for it
    INVALID = 8  # action that is no direction, under rules that kill for it


CAUSES = ("", *(cause.name.lower() for cause in Cause if cause))
"""Names of `Cause` by code; empty for a living snake."""


class Direction(IntEnum):
    """Headings and absolute actions."""

    UP = 0
    RIGHT = 1
    DOWN = 2
    LEFT = 3


NO_HEADING = -1
"""Heading of a curled up snake that has not moved yet."""

OFF_BOARD = -1
"""Cell of a head that has left the board."""

LAST_TURN = 2**30
"""The last turn from which a game can be continued; turns are counted in int32."""

Cell = tuple[int, int]
"""(x, y), y = 0 is the top row."""


class Position(NamedTuple):
    """One game written by hand, for tests and puzzles. Cells are (x, y)."""

    bodies: Sequence[Sequence[Cell]]  # per snake, head first; of a dead snake empty or any cells, also outside the board
    food: Sequence[Cell] = ()  # a cell may be listed more than once
    health: Sequence[int] | None = None  # per snake; None: full
    hazards: Sequence[Cell] = ()  # a cell may be listed more than once
    headings: Sequence[int] | None = None  # per snake; None: from neck to head, NO_HEADING if both are on one cell
    alive: Sequence[bool] | None = None  # per snake; None: those with a body
    turn: int = 0
    seed: int = 0
    over: bool = False


class SnakeState(NamedTuple):
    """The whole state of E games, random streams included. Arrays are C-contiguous and written in place."""

    body: NDArray[np.int16]  # (E, N, L) ring of up to L - 1 cells; segment k is [(head - k) % L]; OFF_BOARD: head outside
    head: NDArray[np.int32]  # (E, N) ring index of the head
    length: NDArray[np.int32]  # (E, N) segments; of a dead snake as at its death
    length_before: NDArray[np.int32]  # (E, N) segments before this turn
    heading: NDArray[np.int8]  # (E, N) last executed direction, NO_HEADING before the first move of a curled up snake
    health: NDArray[np.int16]  # (E, N) turns until starvation, 0 to max_health
    alive: NDArray[np.bool_]  # (E, N)
    cause: NDArray[np.int8]  # (E, N) Cause
    killer: NDArray[np.int16]  # (E, N) the responsible snake, itself for `self`; -1 for nobody, or several equally
    died: NDArray[np.int32]  # (E, N) turn of death, -1 while alive
    rank: NDArray[np.int16]  # (E, N) 1 + number of snakes placed better; 0 until known
    ate: NDArray[np.bool_]  # (E, N) whether it ate on this turn
    just_died: NDArray[np.bool_]  # (E, N) whether it died on this turn
    occupancy: NDArray[np.uint8]  # (E, K) segments of living snakes on each cell, at most 255
    food: NDArray[np.uint8]  # (E, K) pieces of food
    hazard: NDArray[np.uint8]  # (E, K) how often the cell is listed as a hazard
    food_count: NDArray[np.int32]  # (E,) pieces of food on the board
    turn: NDArray[np.int32]  # (E,) turns played
    entrants: NDArray[np.int16]  # (E,) snakes that started
    over: NDArray[np.bool_]  # (E,) whether the game has ended; a step then changes nothing
    just_ended: NDArray[np.bool_]  # (E,) whether it ended on this turn
    seed: NDArray[np.uint64]  # (E,) all randomness of a game is a function of (seed, turn)

    @classmethod
    def empty(cls, rules: Rules, num_games: int, capacity: int = 0) -> SnakeState:
        """E games that are over, without snakes or food. `capacity` raises L for longer bodies."""
        games, snakes, cells = num_games, rules.num_snakes, rules.num_cells
        longest = cells if rules.start == "rings" else cells + rules.start_length - 1  # may eat while still curled up
        ring = 1 << (max(longest, rules.start_length, capacity) + 1).bit_length()
        return cls(
            body=np.zeros((games, snakes, ring), np.int16),
            head=np.zeros((games, snakes), np.int32),
            length=np.zeros((games, snakes), np.int32),
            length_before=np.zeros((games, snakes), np.int32),
            heading=np.full((games, snakes), NO_HEADING, np.int8),
            health=np.zeros((games, snakes), np.int16),
            alive=np.zeros((games, snakes), np.bool_),
            cause=np.zeros((games, snakes), np.int8),
            killer=np.full((games, snakes), -1, np.int16),
            died=np.full((games, snakes), -1, np.int32),
            rank=np.zeros((games, snakes), np.int16),
            ate=np.zeros((games, snakes), np.bool_),
            just_died=np.zeros((games, snakes), np.bool_),
            occupancy=np.zeros((games, cells), np.uint8),
            food=np.zeros((games, cells), np.uint8),
            hazard=np.zeros((games, cells), np.uint8),
            food_count=np.zeros(games, np.int32),
            turn=np.zeros(games, np.int32),
            entrants=np.zeros(games, np.int16),
            over=np.ones(games, np.bool_),
            just_ended=np.zeros(games, np.bool_),
            seed=np.zeros(games, np.uint64),
        )

    @classmethod
    def from_positions(cls, rules: Rules, positions: Sequence[Position]) -> SnakeState:
        """E = len(positions) running games.

        Raises:
            ValueError: a position has another number of snakes than the rules, a cell that is none of the board, or a number
                out of range. `SnakeEngine.load` checks that the parts fit together.
        """
        longest = max((len(body) for position in positions for body in position.bodies), default=0)
        state = cls.empty(rules, len(positions), longest)
        for game, position in enumerate(positions):
            _set_up(state, rules, game, position)
        return state

    def map(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> SnakeState:
        """The state with `change` applied to every array."""
        return SnakeState._make(change(array) for array in self.arrays())

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in the order of the fields."""
        return tuple(self)


def body_cells(state: SnakeState, game: int, snake: int) -> NDArray[np.int16]:
    """(length,) flat cells of one snake, head first."""
    ring = state.body.shape[2]
    places = (state.head[game, snake] - np.arange(state.length[game, snake])) % ring
    cells: NDArray[np.int16] = state.body[game, snake, places]
    return cells


def head_cells(state: SnakeState) -> NDArray[np.int64]:
    """(E, N) flat cells of all heads; of a dead snake as at its death, OFF_BOARD if it left the board."""
    places = state.head[..., None].astype(np.int64)
    return np.take_along_axis(state.body, places, axis=2)[..., 0].astype(np.int64)


def read_only(state: SnakeState) -> SnakeState:
    """The same arrays, which cannot be written through it: what users' code is given."""

    def protected(array: NDArray[Any]) -> NDArray[Any]:
        view = array.view()
        view.flags.writeable = False
        return view

    return state.map(protected)


def _flat(rules: Rules, cell: Cell, inside: bool = True) -> int:
    try:
        x, y = map(index, cell)
    except (TypeError, ValueError):
        raise ValueError(f"a cell is (x, y) in whole numbers, got {cell!r}") from None
    if not (0 <= x < rules.width and 0 <= y < rules.height):
        if not inside:
            return OFF_BOARD
        raise ValueError(f"cell ({x}, {y}) is outside the {rules.width}x{rules.height} board")
    return y * rules.width + x


def _set_up(state: SnakeState, rules: Rules, game: int, position: Position) -> None:
    if len(position.bodies) != rules.num_snakes:
        raise ValueError(f"a position needs a body for each of the {rules.num_snakes} snakes, got {len(position.bodies)}")
    for name, low, high in (
        ("alive", 0, 1),
        ("headings", NO_HEADING, 3),
        ("health", -(2**15), rules.max_health),
    ):  # the dead may have less than none
        values = getattr(position, name)
        if values is not None and (
            len(values) != rules.num_snakes or not all(low <= value <= high and value == int(value) for value in values)
        ):
            raise ValueError(
                f"{name} must have a whole number from {low} to {high} for each of {rules.num_snakes} snakes, got {values}"
            )
    for snake, cells in enumerate(position.bodies):
        alive = bool(cells) if position.alive is None else position.alive[snake]
        body = [_flat(rules, cell, alive) for cell in cells]
        if alive and not body:
            raise ValueError(f"snake {snake} is alive and so needs a body")
        state.length[game, snake] = len(body)
        if body:
            state.head[game, snake] = len(body) - 1
            state.body[game, snake, : len(body)] = body[::-1]
        state.alive[game, snake] = alive
        if alive:
            np.add.at(state.occupancy[game], body, 1)
        state.heading[game, snake] = heading_of(rules, cells) if position.headings is None else position.headings[snake]
        state.health[game, snake] = rules.max_health if position.health is None else position.health[snake]
    for what, cells in (("food", position.food), ("hazards", position.hazards)):
        most = max(Counter(cells).values(), default=0)
        if most > 255:
            raise ValueError(f"{what} may list a cell at most 255 times, got {most}")
    np.add.at(state.food[game], [_flat(rules, cell) for cell in position.food], 1)
    np.add.at(state.hazard[game], [_flat(rules, cell) for cell in position.hazards], 1)
    state.food_count[game] = len(position.food)
    state.turn[game] = whole_number("turn", position.turn, 0, LAST_TURN)
    state.seed[game] = game_seed(position.seed)
    state.entrants[game] = rules.num_snakes
    state.over[game] = position.over


def heading_of(rules: Rules, cells: Sequence[Cell]) -> int:
    """The direction from the second cell to the first, across a seam too; NO_HEADING without two different cells."""
    if len(cells) < 2 or cells[0] == cells[1]:
        return NO_HEADING
    dx, dy = cells[0][0] - cells[1][0], cells[0][1] - cells[1][1]
    if rules.edge == "wrap" and max(abs(dx), abs(dy)) > 1:
        dx, dy = (dx + 1) % rules.width - 1, (dy + 1) % rules.height - 1
    if dy == 0:
        return 1 if dx == 1 else 3
    return 0 if dy == -1 else 2
