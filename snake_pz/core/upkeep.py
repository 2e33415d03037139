"""Changes of the board between two moves: kernels for tails that grow on every turn, hazards and food.

Helpers take single arrays, because passing the whole tuple to a helper costs more than its work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.randomness import below, draw, turn_key, unit
from snake_pz.core.rule_codes import RuleCodes
from snake_pz.core.state import SnakeState

_TRIES = 8  # draws of a cell for a piece of food before free cells are counted
_FEW = 8  # pieces placed without counting


@kernel
def double_tail(
    body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], occupancy: NDArray[np.uint8], e: int, i: int
) -> None:
    """Add a segment on the tail's cell, unless the ring is full."""
    ring_mask = body.shape[2] - 1
    if length[e, i] < ring_mask:
        tail = body[e, i, (heads[e, i] - length[e, i] + 1) & ring_mask]
        body[e, i, (heads[e, i] - length[e, i]) & ring_mask] = tail
        length[e, i] += 1
        occupancy[e, tail] += 1


@kernel
def grow(s: SnakeState, r: RuleCodes) -> None:
    """Growth on every turn: remove food, restore health, and double tails that are not doubled yet.

    As in Battlesnake's engine, this includes dead snakes, where it shows only in their last bodies.
    """
    body, heads, length = s.body, s.head, s.length
    ring_mask = body.shape[2] - 1
    for e in range(s.alive.shape[0]):
        if s.over[e]:
            continue
        for cell in range(s.food.shape[1]):
            s.food[e, cell] = 0
        s.food_count[e] = 0
        for i in range(s.alive.shape[1]):
            s.health[e, i] = r.max_health
            tail = (heads[e, i] - length[e, i] + 1) & ring_mask
            if length[e, i] < 2 or body[e, i, tail] == body[e, i, (tail + 1) & ring_mask]:
                continue
            if s.alive[e, i]:
                double_tail(body, heads, length, s.occupancy, e, i)
            elif length[e, i] < ring_mask:
                body[e, i, (tail - 1) & ring_mask] = body[e, i, tail]
                length[e, i] += 1


@kernel
def shrink(s: SnakeState, r: RuleCodes) -> None:
    """Set hazards to the outer lines due by now, one more after every `shrink_every` turns, each on a side drawn at random."""
    for e in range(s.over.shape[0]):
        if s.over[e]:
            continue
        left, right, top, bottom = 0, r.width, 0, r.height
        key = turn_key(s.seed[e], -2)
        for line in range(s.turn[e] // r.shrink_every):
            side = below(draw(key, line), 4)
            left += side == 0
            right -= side == 1
            top += side == 2
            bottom -= side == 3
            if left >= right or top >= bottom:
                break
        for y in range(r.height):
            for x in range(r.width):
                s.hazard[e, y * r.width + x] = x < left or x >= right or y < top or y >= bottom


@kernel
def _free(
    alive: NDArray[np.bool_],
    body: NDArray[np.int16],
    heads: NDArray[np.int32],
    food: NDArray[np.uint8],
    occupancy: NDArray[np.uint8],
    e: int,
    cell: int,
    width: int,
    apart: bool,
) -> bool:
    """Whether food may appear on the cell. `apart`: cells beside a head are not allowed."""
    if occupancy[e, cell] > 0 or food[e, cell] > 0:
        return False
    if apart:
        for i in range(alive.shape[1]):
            head = int64(body[e, i, heads[e, i]])
            if alive[e, i] and abs(head % width - cell % width) + abs(head // width - cell // width) == 1:
                return False
    return True


@kernel
def place_food(
    alive: NDArray[np.bool_],
    body: NDArray[np.int16],
    heads: NDArray[np.int32],
    food: NDArray[np.uint8],
    occupancy: NDArray[np.uint8],
    food_count: NDArray[np.int32],
    e: int,
    key: np.uint64,
    pieces: int,
    width: int,
    apart: bool,
) -> None:
    """Place food on free cells, each equally likely: first by a few tries, then by counting free cells.

    Fewer pieces are placed if there are fewer free cells. The cost is linear in pieces, cells and snakes.

    Args:
        alive: (E, N), as the following five an array of SnakeState.
        body: (E, N, L).
        heads: (E, N).
        food: (E, K), changed.
        occupancy: (E, K).
        food_count: (E,), changed.
        e: the game.
        key: key of the random draws.
        pieces: number of pieces.
        width: width of the board.
        apart: whether cells beside a head are not allowed.
    """
    cells = food.shape[1]
    for index in range(min(pieces, _FEW)):
        chosen = -1
        for attempt in range(_TRIES):
            cell = below(draw(key, index * 16 + attempt), cells)
            if _free(alive, body, heads, food, occupancy, e, cell, width, apart):
                chosen = cell
                break
        if chosen < 0:
            _place_by_counting(alive, body, heads, food, occupancy, food_count, e, key, index, pieces, width, apart)
            return
        food[e, chosen] += 1
        food_count[e] += 1
    if pieces > _FEW:
        _place_by_counting(alive, body, heads, food, occupancy, food_count, e, key, _FEW, pieces, width, apart)


@kernel
def _place_by_counting(
    alive: NDArray[np.bool_],
    body: NDArray[np.int16],
    heads: NDArray[np.int32],
    food: NDArray[np.uint8],
    occupancy: NDArray[np.uint8],
    food_count: NDArray[np.int32],
    e: int,
    key: np.uint64,
    first: int,
    pieces: int,
    width: int,
    apart: bool,
) -> None:
    """Place the pieces from number `first` on as `place_food` does, by lists of the free cells and of their number in each row.

    The lists are worth their cost if a free cell is hard to find or many pieces are missing.
    """
    cells = food.shape[1]
    free, in_row = np.empty(cells, np.bool_), np.zeros(cells // width, np.int64)
    for cell in range(cells):
        free[cell] = occupancy[e, cell] == 0 and food[e, cell] == 0
    if apart:
        for i in range(alive.shape[1]):
            if alive[e, i]:
                head = int64(body[e, i, heads[e, i]])
                if head >= width:
                    free[head - width] = False
                if head < cells - width:
                    free[head + width] = False
                if head % width > 0:
                    free[head - 1] = False
                if head % width < width - 1:
                    free[head + 1] = False
    left = 0
    for cell in range(cells):
        in_row[cell // width] += free[cell]
        left += free[cell]
    for index in range(first, pieces):
        if left == 0:
            return
        chosen = -1
        for attempt in range(_TRIES):
            cell = below(draw(key, index * 16 + attempt), cells)
            if free[cell]:
                chosen = cell
                break
        if chosen < 0:
            skip, row = below(draw(key, index * 16 + _TRIES), left), 0
            while skip >= in_row[row]:
                skip -= in_row[row]
                row += 1
            chosen = row * width
            while not free[chosen] or skip > 0:
                skip -= free[chosen]
                chosen += 1
        free[chosen] = False
        in_row[chosen // width] -= 1
        left -= 1
        food[e, chosen] += 1
        food_count[e] += 1


@kernel
def spawn_food(s: SnakeState, r: RuleCodes) -> None:
    """Refill food to the minimum; if none is missing, add a piece with probability `food_chance`."""
    alive, body, heads, food, occupancy, food_count = s.alive, s.body, s.head, s.food, s.occupancy, s.food_count
    apart = not r.food_near_heads
    for e in range(s.over.shape[0]):
        missing = r.food_minimum - food_count[e]
        if s.over[e] or (missing <= 0 and r.food_chance == 0.0):
            continue
        key = turn_key(s.seed[e], s.turn[e])
        if missing <= 0 and unit(draw(key, -1)) < r.food_chance:
            missing = 1
        if missing > 0:
            place_food(alive, body, heads, food, occupancy, food_count, e, key, missing, r.width, apart)
