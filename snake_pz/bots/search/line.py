"""Line: one game and the turns that a search plays ahead of it, and the turn itself.

The turn is that of `core.dynamics` without what is drawn at random (food that appears, hazards that close in), on a state that
is never undone: level t holds the game after t turns, and playing another move at a level overwrites the levels above it.
`tests/game/bots/search` compares both turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots.search.bits import Bits, holds, put, remove, words_for
from snake_pz.core.kernel import inlined_kernel, int64, lean_kernel
from snake_pz.core.rule_codes import (
    ContestedFood,
    DyingBlock,
    EndsWith,
    Growth,
    HeadToHead,
    Hunger,
    OwnBody,
    Reverse,
    RuleCodes,
)
from snake_pz.core.state import SnakeState

HEAD, TAIL, EXTRA, HEALTH, HEADING, MOVE, FATE, CELL, ATE, FIELDS = range(10)
"""Fields of a snake. HEAD, TAIL: indices of its path; EXTRA: segments on the cell of the tail beside the tail; MOVE: its
direction on the next turn; FATE: see below; CELL: of its head; ATE: whether it took the food of that cell in the last turn.
Its length is HEAD - TAIL + 1 + EXTRA. Only FATE is defined once it is dead."""

DEAD, LIVES, GONE, COLLIDED = range(4)
"""Fates. Only the first two outlast a turn: GONE dies before collisions are judged, COLLIDED in one."""

SNAKES, TURN, ENTRANTS, LONGEST, NUMBERS = range(5)
"""`Line.numbers`: living snakes at the root, turn of the root, snakes that started, most segments that a snake can have."""


class Line(NamedTuple):
    """One game (level 0), and the turns ahead of it (levels 1 to D). Snakes that are dead at the root are left out.

    A snake's path is the cells that its head has been on, tail first: the same memory for all levels, each of which says where
    in it head and tail are. Segments share a cell at the tail alone (curled up, or doubled by growth), so they are counted.
    """

    snakes: NDArray[np.int32]  # (D + 1, N, FIELDS)
    paths: NDArray[np.int16]  # (N, L + D) cells; of a head outside the board OFF_BOARD
    occupied: Bits  # (D + 1, W + 2) cells with a segment of a living snake
    food: Bits  # (D + 1, W + 2)
    pieces: NDArray[np.uint8]  # (K,) pieces of food on each cell at the root
    hazard: NDArray[np.uint8]  # (K,) how often each cell is listed as a hazard
    indices: NDArray[np.int64]  # (N,) of the snakes in the state that was loaded
    numbers: NDArray[np.int64]  # (NUMBERS,)

    @classmethod
    def empty(cls, state: SnakeState, depth: int) -> Line:
        """A line of D = depth turns for games like those of this state."""
        _, snakes, ring = state.body.shape
        cells = state.food.shape[1]
        words = words_for(cells) + 2
        return cls(
            snakes=np.zeros((depth + 1, snakes, FIELDS), np.int32),
            paths=np.zeros((snakes, ring + depth), np.int16),
            occupied=np.zeros((depth + 1, words), np.uint64),
            food=np.zeros((depth + 1, words), np.uint64),
            pieces=np.zeros(cells, np.uint8),
            hazard=np.zeros(cells, np.uint8),
            indices=np.zeros(snakes, np.int64),
            numbers=np.zeros(NUMBERS, np.int64),
        )


@lean_kernel
def load(line: Line, s: SnakeState, r: RuleCodes, e: int) -> None:
    """Make game e level 0."""
    snakes, paths = line.snakes, line.paths
    ring_mask = s.body.shape[2] - 1
    for word in range(line.food.shape[1]):
        line.food[0, word] = line.occupied[0, word] = np.uint64(0)
    for cell in range(s.food.shape[1]):
        line.pieces[cell], line.hazard[cell] = s.food[e, cell], s.hazard[e, cell]
        if s.food[e, cell] > 0:
            put(line.food, 0, cell)
    i = 0
    for snake in range(s.alive.shape[1]):
        if not s.alive[e, snake]:
            continue
        head, length = int64(s.head[e, snake]), int64(s.length[e, snake])
        extra = 0
        tail = s.body[e, snake, (head - length + 1) & ring_mask]
        while extra + 1 < length and s.body[e, snake, (head - length + 2 + extra) & ring_mask] == tail:
            extra += 1
        for k in range(length - extra):
            cell = int64(s.body[e, snake, (head - length + 1 + extra + k) & ring_mask])
            paths[i, k] = cell
            put(line.occupied, 0, cell)
        snakes[0, i, HEAD] = length - extra - 1
        snakes[0, i, TAIL] = 0
        snakes[0, i, EXTRA] = extra
        snakes[0, i, HEALTH] = s.health[e, snake]
        snakes[0, i, HEADING] = s.heading[e, snake]
        snakes[0, i, MOVE] = 0
        snakes[0, i, FATE] = LIVES
        snakes[0, i, CELL] = s.body[e, snake, head]
        snakes[0, i, ATE] = False
        line.indices[i] = snake
        i += 1
    line.numbers[SNAKES] = i
    line.numbers[TURN] = s.turn[e]
    line.numbers[ENTRANTS] = s.entrants[e]
    line.numbers[LONGEST] = ring_mask


@inlined_kernel
def length_of(line: Line, level: int, i: int) -> int:
    """Segments of a living snake."""
    snakes = line.snakes
    return int64(snakes[level, i, HEAD]) - int64(snakes[level, i, TAIL]) + 1 + int64(snakes[level, i, EXTRA])


@inlined_kernel
def _drop_tail(line: Line, level: int, i: int) -> None:
    snakes = line.snakes
    if snakes[level, i, EXTRA] > 0:
        snakes[level, i, EXTRA] -= 1
        return
    tail = int64(snakes[level, i, TAIL])
    if tail < snakes[level, i, HEAD]:  # the last segment is the head, which is not in `occupied` during a turn
        remove(line.occupied, level, int64(line.paths[i, tail]))
    snakes[level, i, TAIL] = tail + 1


@inlined_kernel
def _leave_board(line: Line, level: int, i: int) -> None:
    """Remove a dead body but for its head."""
    for k in range(line.snakes[level, i, TAIL], line.snakes[level, i, HEAD]):
        remove(line.occupied, level, int64(line.paths[i, k]))


@inlined_kernel
def _in_body(line: Line, level: int, i: int, cell: int) -> bool:
    """Whether a segment of snake i other than its head lies on the cell."""
    for k in range(line.snakes[level, i, TAIL], line.snakes[level, i, HEAD]):
        if line.paths[i, k] == cell:
            return True
    return False


@inlined_kernel
def _move(line: Line, r: RuleCodes, level: int, i: int) -> None:
    """Move snake i from this level to the next one, where the bodies of the snakes before it have moved already."""
    snakes, occupied = line.snakes, line.occupied
    after = level + 1
    head, tail, extra = int64(snakes[level, i, HEAD]), int64(snakes[level, i, TAIL]), int64(snakes[level, i, EXTRA])
    direction, heading, cell = int64(snakes[level, i, MOVE]), int64(snakes[level, i, HEADING]), int64(snakes[level, i, CELL])
    snakes[after, i, HEAD] = head
    snakes[after, i, TAIL] = tail
    snakes[after, i, EXTRA] = extra
    snakes[after, i, HEALTH] = snakes[level, i, HEALTH]
    snakes[after, i, HEADING] = heading
    snakes[after, i, FATE] = LIVES
    snakes[after, i, CELL] = cell
    snakes[after, i, ATE] = False
    if heading >= 0 and direction == (heading + 2) & 3:
        if r.reverse == Reverse.STRAIGHT:
            direction = heading
        elif r.reverse == Reverse.DIES:
            snakes[after, i, FATE] = GONE
            remove(occupied, after, cell)
            return
    to = int64(r.neighbours[cell, direction])
    meal = to >= 0 and holds(line.food, level, to)
    if meal and r.contested_food == ContestedFood.LOWEST_INDEX:
        for j in range(i):
            if snakes[after, j, FATE] != DEAD and snakes[after, j, ATE] and snakes[after, j, CELL] == to:
                meal = False
        snakes[after, i, ATE] = meal
    grows = r.growth == Growth.SAME_TURN and meal and head - tail + 1 + extra < line.numbers[LONGEST]
    snakes[after, i, HEAD] = head + 1  # first, so that the old head is a body segment
    if not grows:
        _drop_tail(line, after, i)
    line.paths[i, head + 1] = to
    snakes[after, i, HEADING] = direction
    snakes[after, i, CELL] = to
    if r.own_body == OwnBody.AT_ONCE and to >= 0 and holds(occupied, after, to) and _in_body(line, after, i, to):
        snakes[after, i, FATE] = GONE
    if r.max_length > 0:
        while length_of(line, after, i) > r.max_length:
            _drop_tail(line, after, i)


@inlined_kernel
def _live(line: Line, r: RuleCodes, level: int, i: int, turn: int) -> None:
    """Hunger, hazard and food of snake i after its move to this level, and what it dies of before collisions are judged."""
    snakes = line.snakes
    cell, health = int64(snakes[level, i, CELL]), int64(snakes[level, i, HEALTH])
    lives = snakes[level, i, FATE] == LIVES
    if r.hunger == Hunger.HEALTH:
        health -= 1
    elif r.hunger == Hunger.SEGMENT and lives and turn % r.hunger_every == 0:
        _drop_tail(line, level, i)
        lives = length_of(line, level, i) > 0
    food = cell >= 0 and holds(line.food, level - 1, cell)
    if r.uses_health and lives and cell >= 0 and not food and line.hazard[cell] > 0:
        health = min(max(health - r.hazard_damage * int64(line.hazard[cell]), 0), r.max_health)
        lives = health > 0
    if food and lives and (r.contested_food != ContestedFood.LOWEST_INDEX or snakes[level, i, ATE]):
        health = r.max_health
        snakes[level, i, ATE] = True
        if r.growth != Growth.SAME_TURN:
            more = min(int64(line.pieces[cell]), line.numbers[LONGEST] - length_of(line, level, i))
            snakes[level, i, EXTRA] += more
    if snakes[level, i, ATE]:
        remove(line.food, level, cell)
    if not lives or cell < 0 or (r.uses_health and health <= 0):
        snakes[level, i, FATE] = GONE
    snakes[level, i, HEALTH] = health


@inlined_kernel
def _on_own_tail(line: Line, level: int, i: int) -> bool:
    """Whether snake i, of length 1, has eaten, so that its tail is doubled where its head is."""
    return bool(line.snakes[level, i, TAIL] == line.snakes[level, i, HEAD] and line.snakes[level, i, EXTRA] > 0)


@inlined_kernel
def _collides(line: Line, r: RuleCodes, level: int, i: int) -> bool:
    """Whether the head of snake i meets a body, or another head that it does not survive."""
    snakes = line.snakes
    cell, length = int64(snakes[level, i, CELL]), length_of(line, level, i)
    if holds(line.occupied, level, cell) or _on_own_tail(line, level, i):
        return True
    for j in range(line.numbers[SNAKES]):
        if j == i or snakes[level, j, CELL] != cell or snakes[level, j, FATE] == DEAD:
            continue
        if snakes[level, j, FATE] == GONE and r.dying_block == DyingBlock.COLLIDED:
            continue
        other = length_of(line, level, j)
        if _on_own_tail(line, level, j) or (other > 0 and (r.head_to_head == HeadToHead.ALL_DIE or other >= length)):
            return True
    return False


@inlined_kernel
def play_turn(line: Line, r: RuleCodes, level: int) -> None:
    """Play the moves of a level; what comes of them is the next level."""
    snakes, occupied, food = line.snakes, line.occupied, line.food
    count = line.numbers[SNAKES]
    after = level + 1
    turn = line.numbers[TURN] + after
    for word in range(occupied.shape[1]):
        occupied[after, word] = occupied[level, word]
        food[after, word] = food[level, word]
    for i in range(count):
        if snakes[level, i, FATE] == LIVES:
            _move(line, r, level, i)
        else:
            snakes[after, i, FATE] = DEAD
    for i in range(count):
        if snakes[after, i, FATE] != DEAD:
            _live(line, r, after, i, turn)
    if r.dying_block == DyingBlock.COLLIDED:
        for i in range(count):
            if snakes[after, i, FATE] == GONE:
                _leave_board(line, after, i)
    for i in range(count):
        if snakes[after, i, FATE] == LIVES and _collides(line, r, after, i):
            snakes[after, i, FATE] = COLLIDED
    for i in range(count):
        fate = snakes[after, i, FATE]
        if fate == COLLIDED or (fate == GONE and r.dying_block != DyingBlock.COLLIDED):
            _leave_board(line, after, i)
        if fate != LIVES:
            snakes[after, i, FATE] = DEAD
    for i in range(count):
        if snakes[after, i, FATE] == LIVES:
            put(occupied, after, int64(snakes[after, i, CELL]))
    if r.growth == Growth.EVERY_TURN:
        _grow(line, r, after)


@inlined_kernel
def _grow(line: Line, r: RuleCodes, level: int) -> None:
    """Growth on every turn: remove food, restore health, double tails that are not doubled yet."""
    snakes = line.snakes
    for word in range(line.food.shape[1]):
        line.food[level, word] = np.uint64(0)
    for i in range(line.numbers[SNAKES]):
        if snakes[level, i, FATE] != LIVES:
            continue
        snakes[level, i, HEALTH] = r.max_health
        length = length_of(line, level, i)
        if snakes[level, i, EXTRA] == 0 and 2 <= length < line.numbers[LONGEST]:
            snakes[level, i, EXTRA] = 1


@inlined_kernel
def is_over(line: Line, r: RuleCodes, level: int) -> bool:
    """Whether the game ends on the turn that led to this level."""
    living = 0
    for i in range(line.numbers[SNAKES]):
        living += line.snakes[level, i, FATE] == LIVES
    enough = r.ends_with != EndsWith.NONE and (r.ends_with == EndsWith.ONE_ALWAYS or line.numbers[ENTRANTS] > 1)
    return living == 0 or (living == 1 and enough) or (r.max_turns > 0 and line.numbers[TURN] + level >= r.max_turns)
