"""What changes on the board between two moves: numba kernels for tails that grow on every turn, hazards and food.

As everywhere in kernels, helpers take the arrays they need: handing on the whole tuple costs numba more than the work itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.randomness import below, draw, turn_key, unit
from snake_pz.core.rule_codes import RuleCodes
from snake_pz.core.state import SnakeState


@kernel
def double_tail(
    body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], occupancy: NDArray[np.uint8], e: int, i: int
) -> None:
    """Lay one more segment where the tail is; not beyond what the ring holds."""
    ring_mask = body.shape[2] - 1
    if length[e, i] < ring_mask:
        tail = body[e, i, (heads[e, i] - length[e, i] + 1) & ring_mask]
        body[e, i, (heads[e, i] - length[e, i]) & ring_mask] = tail
        length[e, i] += 1
        occupancy[e, tail] += 1


@kernel
def grow(s: SnakeState, r: RuleCodes) -> None:
    """Growth on every turn: no food is left, health is full, and tails are doubled that are not so already.

    Those of the dead too, which shows nowhere but in their last bodies, as Battlesnake's engine has it.
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
    """Make one more outer line hazard after every so many turns, each time a side drawn at random; forget other hazards."""
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
    """Whether food may appear on the cell; `apart`: not beside a head."""
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
    """Put pieces on free cells, each equally likely: a few tries, then the free cells counted; fewer if there are fewer.

    The first six are arrays of a SnakeState, e the game; `apart`: none may appear beside a head.
    """
    cells = food.shape[1]
    for index in range(pieces):
        chosen = -1
        for attempt in range(8):
            cell = below(draw(key, index * 16 + attempt), cells)
            if _free(alive, body, heads, food, occupancy, e, cell, width, apart):
                chosen = cell
                break
        if chosen < 0:
            free = 0
            for cell in range(cells):
                free += _free(alive, body, heads, food, occupancy, e, cell, width, apart)
            if free == 0:
                return
            skip = below(draw(key, index * 16 + 8), free)
            for cell in range(cells):
                if _free(alive, body, heads, food, occupancy, e, cell, width, apart):
                    if skip == 0:
                        chosen = cell
                        break
                    skip -= 1
        food[e, chosen] += 1
        food_count[e] += 1


@kernel
def spawn_food(s: SnakeState, r: RuleCodes) -> None:
    """Fill up to the minimum; on a turn that needed nothing one more may appear by chance."""
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
