"""How a game starts: numba kernels that set up `SnakeState`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.randomness import below, draw, turn_key, unit
from snake_pz.core.rule_codes import Growth, RuleCodes, Start
from snake_pz.core.state import NO_HEADING, Cause, SnakeState
from snake_pz.core.upkeep import place_food


@kernel
def reset_games(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp], seeds: NDArray[np.uint64]) -> None:
    """Start new games.

    Args:
        s: the games, changed in place.
        r: their rules.
        rows: (B,) games to start.
        seeds: (B,) uint64; or (0,): each game's seed is derived from its previous one.
    """
    _clear(s, r, rows, seeds)
    if r.start == Start.SCATTERED:
        _scatter(s, r, rows)
    elif r.points.shape[0] > 0:
        _take_points(s, r, rows)
    else:
        _take_rings(s, r, rows)
    alive, body, heads, food, occupancy, food_count = s.alive, s.body, s.head, s.food, s.occupancy, s.food_count
    for e in rows:
        key = turn_key(s.seed[e], 0)
        place_food(alive, body, heads, food, occupancy, food_count, e, key, r.food_initial, r.width, False)


@kernel
def _clear(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp], seeds: NDArray[np.uint64]) -> None:
    """Clear the board and make every snake alive, with its initial length and health but no cells."""
    for b in range(rows.shape[0]):
        e = rows[b]
        s.seed[e] = seeds[b] if seeds.shape[0] > 0 else draw(s.seed[e], -2)
        for cell in range(s.food.shape[1]):
            s.occupancy[e, cell] = 0
            s.food[e, cell] = 0
            s.hazard[e, cell] = 0
        s.food_count[e] = 0
        s.turn[e] = 0
        s.entrants[e] = s.alive.shape[1]
        s.over[e] = False
        s.just_ended[e] = False
        for i in range(s.alive.shape[1]):
            s.length[e, i] = r.start_length
            s.length_before[e, i] = r.start_length
            s.head[e, i] = r.start_length - 1
            s.heading[e, i] = NO_HEADING
            s.health[e, i] = r.max_health
            s.alive[e, i] = True
            s.cause[e, i] = Cause.ALIVE
            s.killer[e, i] = -1
            s.died[e, i] = -1
            s.rank[e, i] = 0
            s.ate[e, i] = False
            s.just_died[e, i] = False


@kernel
def _shuffle(items: NDArray[np.int64], first: int, last: int, key: np.uint64) -> None:
    """Shuffle items[first:last] by Fisher and Yates."""
    for i in range(last - 1, first, -1):
        j = first + below(draw(key, 2 + i), i + 1 - first)
        items[i], items[j] = items[j], items[i]


@kernel
def _curl_up(body: NDArray[np.int16], occupancy: NDArray[np.uint8], e: int, i: int, cell: int, length: int) -> None:
    for k in range(length):
        body[e, i, k] = cell
    occupancy[e, cell] += length


@kernel
def _scatter(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp]) -> None:
    """Place snakes curled up on different cells, every choice equally likely."""
    cells = s.food.shape[1]
    for e in rows:
        key = turn_key(s.seed[e], -1)
        for i in range(s.alive.shape[1]):
            skip = below(draw(key, 2 + i), cells - i)
            for cell in range(cells):
                if s.occupancy[e, cell] == 0:
                    if skip == 0:
                        _curl_up(s.body, s.occupancy, e, i, cell, r.start_length)
                        break
                    skip -= 1


@kernel
def _take_rings(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp]) -> None:
    """Place snakes equally spaced on the rings, all shifted by the same fraction of their ring, in the same direction."""
    body, occupancy, heading, neighbours, ring_cells = s.body, s.occupancy, s.heading, r.neighbours, r.ring_cells
    snakes, length = s.alive.shape[1], r.start_length
    spots = np.empty(snakes, np.int64)
    for e in rows:
        key = turn_key(s.seed[e], -1)
        clockwise = draw(key, 0) & np.uint64(1) == 0
        shift = unit(draw(key, 1))
        for i in range(snakes):
            spots[i] = i
        _shuffle(spots, 0, snakes, key)
        for i in range(snakes):
            first, size = int64(r.spot_ring[spots[i], 0]), int64(r.spot_ring[spots[i], 1])
            at = int64(shift * size) + int64(r.spot_place[spots[i]])
            place = at % size
            head = ring_cells[first + (place if clockwise else size - 1 - place)]
            if r.start != Start.RINGS:
                _curl_up(body, occupancy, e, i, head, length)
                continue
            for k in range(length):  # segment k lies k places behind the head, seen in the direction of travel
                place = (at - k) % size
                cell = ring_cells[first + (place if clockwise else size - 1 - place)]
                body[e, i, length - 1 - k] = cell
                occupancy[e, cell] += 1
            place = (at - 1) % size
            behind = ring_cells[first + (place if clockwise else size - 1 - place)]
            for direction in range(4):
                if neighbours[behind, direction] == head:
                    heading[e, i] = direction


@kernel
def _take_points(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp]) -> None:
    """Place snakes and food as on Battlesnake's standard map: corner or cardinal points first, each group shuffled.

    Food: one piece diagonal to each head, farther from the centre than the head on at least one axis and not in a corner of the
    board (none on boards under 11x11 with more than four snakes), and one piece in the centre. No food if tails grow on every
    turn, because that rule removes uneaten food, at the start too.
    """
    snakes, side = s.alive.shape[1], r.width
    middle = (side - 1) // 2
    order = np.empty(8, np.int64)
    for e in rows:
        key = turn_key(s.seed[e], -1)
        cardinals_first = draw(key, 0) & np.uint64(1) == 0
        for k in range(8):
            order[k] = r.points[(k + 4) % 8 if cardinals_first else k]
        _shuffle(order, 0, 4, key)
        _shuffle(order, 4, 8, key)
        for i in range(snakes):
            _curl_up(s.body, s.occupancy, e, i, order[i], r.start_length)
        if r.growth == Growth.EVERY_TURN:
            continue
        if snakes <= 4 or side >= 11:
            for i in range(snakes):
                cell = _food_beside(s.food, e, order[i], side, middle, draw(key, 16 + i))
                if cell >= 0:
                    s.food[e, cell] = 1
                    s.food_count[e] += 1
        s.food[e, middle * side + middle] = 1
        s.food_count[e] += 1


@kernel
def _food_beside(food: NDArray[np.uint8], e: int, head: int, side: int, middle: int, bits: np.uint64) -> int:
    """A random cell of those that `_take_points` allows for the food of the snake with this head; -1 if there is none."""
    x, y = head % side, head // side
    for count in range(4, 0, -1):  # the number of allowed cells is unknown: try 4, 3, ... until it is the right one
        skip, found = below(bits, count), 0
        chosen = -1
        for corner in range(4):
            to_x, to_y = x - 1 + 2 * (corner & 1), y - 1 + (corner & 2)
            outwards = (x != middle and abs(to_x - middle) > abs(x - middle)) or (
                y != middle and abs(to_y - middle) > abs(y - middle)
            )
            in_corner = (to_x == 0 or to_x == side - 1) and (to_y == 0 or to_y == side - 1)
            if outwards and not in_corner and food[e, to_y * side + to_x] == 0:
                if found == skip:
                    chosen = to_y * side + to_x
                found += 1
        if found == count:
            return chosen
    return -1
