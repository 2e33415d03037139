"""The built-in encodings: shapes, and the kernels that write them. All are uint8, 0 to 255, channels first.

- `board` (7, H, W): the board as it is.
- `egocentric` (6, S, S), S = 2 * max(W, H) - 1: shifted and turned so that the snake's head is in the centre and its heading is
  up. The whole board is always in view; outside walls everything is wall, a board that wraps repeats.
- `single` (1, H, W): grey levels.

They have different shapes, so a checkpoint's spaces identify the one it was trained on. Boards smaller than
the number of planes are padded with wall on the right and below, because Stable-Baselines3 takes the smallest dimension of an
image for its channels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.rule_codes import Edge, RuleCodes
from snake_pz.core.state import SnakeState
from snake_pz.rules import Rules

OBSERVATIONS = ("board", "egocentric", "single")

BOARD_PLANES = ("own body", "own head", "other bodies", "other heads", "food", "walls and hazards", "clock")
"""Planes of `board`. Bodies, heads included: TTL_STEP for each turn until the cell is free, at most 255. Own head: 255. Other
heads: 255 if that snake is as long or longer, 128 if it is shorter. Food: 255. Hazards: 64 per listing, at most 192; walls 255.
Clock: the same value on every cell, for the most turns that the snake can play without eating: its health if health can run
out, the turns left if the rules limit them, the smaller of both if both apply. 255 means full health, or all turns if health
cannot run out; it is always 255 if neither applies."""
EGOCENTRIC_PLANES = ("own body", "other bodies", "other heads", "food", "walls and hazards", "clock")
"""Planes of `egocentric`, with values as in BOARD_PLANES. There is none for the own head, which is always in the centre."""
GREY_LEVELS = {
    "hazard": 20,
    "food": 50,
    "other body": 90,
    "shorter head": 130,
    "longer head": 170,
    "own body": 210,
    "own head": 255,
}
"""Levels of `single`. An empty cell is 0; walls are not shown."""

TTL_STEP = 10
"""Step of a body plane per turn until the cell is free; lengths up to 25 can be distinguished."""

_LONGER, _SHORTER, _WALL = 255, 128, 255


def observation_shape(rules: Rules, name: str) -> tuple[int, int, int]:
    """Shape (C, H, W) of one snake's observation in this encoding.

    Raises:
        ValueError: an unknown encoding.
    """
    side = max(2 * max(rules.width, rules.height) - 1, len(EGOCENTRIC_PLANES) + 1)
    planes = len(BOARD_PLANES)
    shapes = {
        "board": (planes, max(rules.height, planes), max(rules.width, planes)),
        "egocentric": (len(EGOCENTRIC_PLANES), side, side),
        "single": (1, rules.height, rules.width),
    }
    if name not in OBSERVATIONS:
        raise ValueError(f"observation must be one of {', '.join(map(repr, OBSERVATIONS))}, got {name!r}")
    return shapes[name]


# A viewer v sees living snakes, and itself on the turn of its death. Arrays are taken out of the state first: passing the whole
# tuple to a helper makes a kernel ten times slower.


@kernel
def _clock(uses_health: bool, max_health: int, max_turns: int, health: int, turn: int) -> np.uint8:
    """The level of the clock plane, see BOARD_PLANES."""
    full = max_health if uses_health else max(max_turns, 1)
    left = int64(health) if uses_health else full
    if left < 0:
        left = 0
    if max_turns > 0:
        left = min(left, max(max_turns - turn, 0))
    return np.uint8(255 * left // full)


@kernel
def _find_food(food: NDArray[np.uint8], pieces: NDArray[np.int32], e: int, found: NDArray[np.int64]) -> int:
    """Write the cells with food in game e into the first entries of `found`, and return their number."""
    left, count = pieces[e], 0
    for cell in range(food.shape[1]):
        if left <= 0:
            break
        if food[e, cell] > 0:
            left -= food[e, cell]
            found[count] = cell
            count += 1
    return count


@kernel
def _write_board(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp], out: NDArray[np.uint8]) -> None:
    alive, died, body, heads, length, food = s.alive, s.just_died, s.body, s.head, s.length, s.food
    snakes, ring_mask = alive.shape[1], body.shape[2] - 1
    width, padded_height, padded_width = r.width, out.shape[3], out.shape[4]
    flat = out.reshape(out.shape[0], snakes, out.shape[2], padded_height * padded_width)
    padded = padded_width > width or padded_height > r.height
    fed = np.empty(food.shape[1], np.int64)
    for e in rows:
        for v in range(snakes):
            if not (alive[e, v] or died[e, v]):
                continue
            clock = _clock(r.uses_health, r.max_health, r.max_turns, s.health[e, v], s.turn[e])
            for plane in range(6):
                for cell in range(flat.shape[3]):
                    flat[e, v, plane, cell] = 0
            for cell in range(flat.shape[3]):
                flat[e, v, 6, cell] = clock
            if padded:
                for y in range(padded_height):
                    for x in range(padded_width):
                        if x >= width or y >= r.height:
                            out[e, v, 5, y, x] = _WALL
        for j in range(snakes):
            if not (alive[e, j] or died[e, j]):
                continue
            long = length[e, j]
            for k in range(long - 1, -1, -1):  # tail first: on a shared cell the segment that leaves last counts
                at = int64(body[e, j, (heads[e, j] - k) & ring_mask])
                if at < 0:
                    continue
                if padded_width != width:
                    at = at // width * padded_width + at % width
                level = min((long - k) * TTL_STEP, 255)
                for v in range(snakes):
                    if v == j:
                        flat[e, v, 0, at] = level
                        if k == 0:
                            flat[e, v, 1, at] = 255
                    elif alive[e, j] and (alive[e, v] or died[e, v]):
                        flat[e, v, 2, at] = level
                        if k == 0:
                            flat[e, v, 3, at] = _LONGER if long >= length[e, v] else _SHORTER
        for piece in range(_find_food(food, s.food_count, e, fed)):
            to = fed[piece] if padded_width == width else fed[piece] // width * padded_width + fed[piece] % width
            for v in range(snakes):
                if alive[e, v] or died[e, v]:
                    flat[e, v, 4, to] = 255
        if r.hazard_damage != 0:
            for cell in range(food.shape[1]):
                if s.hazard[e, cell] > 0:
                    to = cell if padded_width == width else cell // width * padded_width + cell % width
                    for v in range(snakes):
                        if alive[e, v] or died[e, v]:
                            flat[e, v, 5, to] = min(64 * int64(s.hazard[e, cell]), 192)


@kernel
def _write_egocentric(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp], out: NDArray[np.uint8]) -> None:
    alive, died, body, heads, length, food = s.alive, s.just_died, s.body, s.head, s.length, s.food
    snakes, ring_mask = alive.shape[1], body.shape[2] - 1
    side = out.shape[3]
    centre, middle = side // 2, side * side // 2
    flat = out.reshape(out.shape[0], snakes, out.shape[2], side * side)
    # Lists of cells and levels: a row for the body of each snake, for the other heads, for food and for hazards.
    kinds, others, fed, hazards = snakes + 3, snakes, snakes + 1, snakes + 2
    planes = np.ones(kinds, np.int64)
    planes[others], planes[fed], planes[hazards] = 2, 3, 4
    cells = np.empty((kinds, max(food.shape[1], body.shape[2])), np.int64)
    levels = np.empty(cells.shape, np.uint8)
    levels[fed] = 255
    counts = np.empty(kinds, np.int64)
    for e in rows:
        counts[:] = 0
        for j in range(snakes):
            if not (alive[e, j] or died[e, j]):
                continue
            for k in range(length[e, j] - 1, -1, -1):  # tail first: on a shared cell the segment that leaves last counts
                at = int64(body[e, j, (heads[e, j] - k) & ring_mask])
                if at >= 0:
                    cells[j, counts[j]], levels[j, counts[j]] = at, min((length[e, j] - k) * TTL_STEP, 255)
                    counts[j] += 1
        counts[fed] = _find_food(food, s.food_count, e, cells[fed])
        if r.hazard_damage != 0:
            for cell in range(food.shape[1]):
                if s.hazard[e, cell] > 0:
                    cells[hazards, counts[hazards]] = cell
                    levels[hazards, counts[hazards]] = min(64 * int64(s.hazard[e, cell]), 192)
                    counts[hazards] += 1
        for v in range(snakes):
            if not (alive[e, v] or died[e, v]):
                continue
            heading = max(int64(s.heading[e, v]), 0)
            at = int64(body[e, v, heads[e, v]])
            if at >= 0:
                head_x, head_y = at % r.width, at // r.width
            else:  # outside the board: one step from the previous cell, which the ring still holds
                behind = int64(body[e, v, (heads[e, v] - 1) & ring_mask])
                head_x = behind % r.width + (1 if heading == 1 else (-1 if heading == 3 else 0))
                head_y = behind // r.width + (1 if heading == 2 else (-1 if heading == 0 else 0))
            # Steps in the flat view for right and down on the board, and the rectangle of the board in the view.
            right, down = 1, side
            first_x, last_x, first_y, last_y = -head_x, r.width - 1 - head_x, -head_y, r.height - 1 - head_y
            if heading == 1:
                right, down = -side, 1
                first_x, last_x, first_y, last_y = first_y, last_y, -last_x, -first_x
            elif heading == 2:
                right, down = -1, -side
                first_x, last_x, first_y, last_y = -last_x, -first_x, -last_y, -first_y
            elif heading == 3:
                right, down = side, -1
                first_x, last_x, first_y, last_y = -last_y, -first_y, first_x, last_x
            view = flat[e, v]
            view[:4] = 0
            view[4] = 0 if r.edge == Edge.WRAP else _WALL
            view[5] = _clock(r.uses_health, r.max_health, r.max_turns, s.health[e, v], s.turn[e])
            if r.edge == Edge.WALL:
                for y in range(max(first_y, -centre), min(last_y, centre) + 1):
                    for x in range(max(first_x, -centre), min(last_x, centre) + 1):
                        out[e, v, 4, centre + y, centre + x] = 0
            counts[others] = 0
            for j in range(snakes):
                if j != v and alive[e, j]:
                    cells[others, counts[others]] = body[e, j, heads[e, j]]
                    levels[others, counts[others]] = _LONGER if length[e, j] >= length[e, v] else _SHORTER
                    counts[others] += 1
            for kind in range(kinds):
                if kind < snakes and kind != v and not alive[e, kind]:
                    continue
                plane = planes[kind] if kind != v else 0
                for number in range(counts[kind]):
                    level = levels[kind, number]
                    row = int64(np.uint32(cells[kind, number]) // np.uint32(r.width))  # much faster than 64-bit division
                    x, y = cells[kind, number] - row * r.width - head_x, row - head_y
                    if r.edge == Edge.WALL:
                        if abs(x) <= centre and abs(y) <= centre:  # may fail for a viewer whose head has left the board
                            view[plane, middle + x * right + y * down] = level
                    else:
                        for dy in range(y - (y + centre) // r.height * r.height, centre + 1, r.height):  # every repetition
                            for dx in range(x - (x + centre) // r.width * r.width, centre + 1, r.width):
                                view[plane, middle + dx * right + dy * down] = level


_GREY_HAZARD, _GREY_FOOD, _GREY_OTHER, _GREY_SHORTER, _GREY_LONGER, _GREY_OWN, _GREY_HEAD = GREY_LEVELS.values()


@kernel
def _write_single(s: SnakeState, r: RuleCodes, rows: NDArray[np.intp], out: NDArray[np.uint8]) -> None:
    alive, died, body, heads, length, food = s.alive, s.just_died, s.body, s.head, s.length, s.food
    snakes, ring_mask, cells = alive.shape[1], body.shape[2] - 1, food.shape[1]
    flat = out.reshape(out.shape[0], snakes, cells)
    for e in rows:
        for v in range(snakes):
            if not (alive[e, v] or died[e, v]):
                continue
            for cell in range(cells):
                level = _GREY_HAZARD if r.hazard_damage != 0 and s.hazard[e, cell] > 0 else 0
                flat[e, v, cell] = _GREY_FOOD if food[e, cell] > 0 else level
            for own in range(2):  # the own body last, so that it shows on a cell shared with another body at death
                for j in range(snakes):
                    if (j == v) != (own == 1) or not (alive[e, j] or (j == v and died[e, j])):
                        continue
                    for k in range(length[e, j] - 1, -1, -1):
                        at = int64(body[e, j, (heads[e, j] - k) & ring_mask])
                        if at < 0:
                            continue
                        if own == 1:
                            flat[e, v, at] = _GREY_HEAD if k == 0 else _GREY_OWN
                        elif k == 0:
                            flat[e, v, at] = _GREY_LONGER if length[e, j] >= length[e, v] else _GREY_SHORTER
                        else:
                            flat[e, v, at] = _GREY_OTHER


WRITERS: dict[str, Callable[[SnakeState, RuleCodes, NDArray[np.intp], NDArray[np.uint8]], None]] = {
    "board": _write_board,
    "egocentric": _write_egocentric,
    "single": _write_single,
}
"""Kernels by name of the encoding: (state, rules, rows, out) -> None, arguments as those of `write_observations`."""


@kernel
def write_observations(s: SnakeState, r: RuleCodes, encoding: int, rows: NDArray[np.intp], out: NDArray[np.uint8]) -> None:
    """Write the observations of all snakes of these games, for kernels; from Python the kernels in WRITERS are faster.

    Args:
        s: the games, only read.
        r: their rules.
        encoding: index into OBSERVATIONS.
        rows: (B,) games to write.
        out: (E, N, *shape of `observation_space`) uint8. Entries of snakes that died on an earlier turn are left as they are,
            so that a reused buffer repeats their last observation.
    """
    if encoding == 0:
        _write_board(s, r, rows, out)
    elif encoding == 1:
        _write_egocentric(s, r, rows, out)
    else:
        _write_single(s, r, rows, out)
