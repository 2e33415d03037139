"""The bots' decisions: kernels on batches of `board` observations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots.verdicts import (
    CLOCK,
    FOOD,
    LONGER,
    OTHER_HEADS,
    TAKEN,
    UNTOLD,
    BotRules,
    Cells,
    Masks,
    Planes,
    damage,
    distance,
    endurance,
    judge,
    look,
    meets_shorter,
    occupied_for,
    own_length,
)
from snake_pz.core.kernel import int64, kernel
from snake_pz.core.observations import TTL_STEP
from snake_pz.core.randomness import below, draw, turn_key

# Weights of `survivor`, in steps to the nearest food. Costs of verdicts and of a dead end are lexicographic: on every board the
# smaller terms together are less than the next larger one.
_VERDICT_COST = np.array([0.0, 1e5, 1e8, 1e9, 1e10, 1e11, 1e12])  # by verdict
_SHUT_IN = 1e6  # cost of reaching no more cells than the snake is long
_WON_HEAD_ON = 5.0  # reward for a cell where a shorter snake may collide
_FULL_HAZARD = 20.0  # cost of a hazard that takes full health; smaller damage in proportion

# Weights of `territorial`, in place of the steps to food, `_WON_HEAD_ON` and `_FULL_HAZARD`. Larger boards scale its
# lexicographic costs.
_TERRITORY = 4.0  # reward for each cell that it reaches first
_CRAMPED = 50.0  # cost of each cell by which these are fewer than the snake is long
_APPETITE = 0.7  # cost of each step to food
_LEADER_EATS = 2.8  # factor of that cost while no other snake is as long
_HUNGRY_EATS = 8.0  # factor of that cost while hungry
_HUNGRY_BELOW = 140  # level of the clock
_FAMINE = 60.0  # cost of each turn without which it would not live long enough to reach food with `_SPARE` turns to spare
_SPARE = 10  # turns for detours
_HARM = 400.0  # cost of a hazard that takes full health; smaller damage in proportion
_LATE = 20.0  # steps added to food that others reach first
_KILL = 10.5  # reward for a cell where a shorter snake may collide
_LADDER_CELLS = 700  # cells of a board up to which costs are not scaled


@kernel
def _random(planes: Planes, masks: Masks, r: BotRules, slots: NDArray[np.intp], seed: np.uint64, call: int, out: Cells) -> None:
    key = turn_key(seed, call)
    for b in range(planes.shape[0]):
        out[b] = below(draw(key, slots[b]), 4)


@kernel
def _greedy(planes: Planes, masks: Masks, r: BotRules, slots: NDArray[np.intp], seed: np.uint64, call: int, out: Cells) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, num_foods, num_heads = look(planes, b, foods, heads)
        judge(planes, masks, b, r, head, heads[:num_heads], verdicts)
        for direction in range(4):
            scores[direction] = -verdicts[direction] * 1e6
            if verdicts[direction] >= TAKEN or num_foods == 0:
                continue
            nearest = cells
            for k in range(num_foods):
                nearest = min(nearest, distance(r, r.neighbours[head, direction], foods[k]))
            scores[direction] -= nearest
        out[b] = _best(scores, draw(key, slots[b]))


@kernel
def _survivor(
    planes: Planes, masks: Masks, r: BotRules, slots: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    arrival, queue = np.empty(cells, np.int64), np.empty(cells, np.int64)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, _, num_heads = look(planes, b, foods, heads)
        judge(planes, masks, b, r, head, heads[:num_heads], verdicts)
        length = own_length(planes, b, head) if head >= 0 else 0
        for direction in range(4):
            scores[direction] = -_VERDICT_COST[verdicts[direction]]
            if verdicts[direction] >= TAKEN:
                continue
            cell = int64(r.neighbours[head, direction])
            space, way = _flood(planes, b, r.neighbours, cell, length + 1, arrival, queue)
            scores[direction] += space - _SHUT_IN if space <= length else -way
            if meets_shorter(planes, b, r, cell):
                scores[direction] += _WON_HEAD_ON
            if planes[b, FOOD, cell] == 0:
                scores[direction] -= _FULL_HAZARD * max(damage(planes, b, r, cell), 0) / r.max_health
        out[b] = _best(scores, draw(key, slots[b]))


@kernel
def _territorial(
    planes: Planes, masks: Masks, r: BotRules, slots: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    ladder = max(1.0, cells / _LADDER_CELLS)
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    arrival, queue, ours = np.empty(cells, np.int64), np.empty(cells, np.int64), np.empty(cells, np.bool_)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, _, num_heads = look(planes, b, foods, heads)
        others = heads[:num_heads]
        judge(planes, masks, b, r, head, others, verdicts)
        length = own_length(planes, b, head) if head >= 0 else 0
        appetite = _appetite(planes, b, others)
        turns_left = endurance(planes, b, r, head, length) if head >= 0 else 0
        for direction in range(4):
            scores[direction] = -_VERDICT_COST[verdicts[direction]] * ladder
            if verdicts[direction] >= TAKEN:
                continue
            cell = int64(r.neighbours[head, direction])
            lost = max(damage(planes, b, r, cell), 0) if planes[b, FOOD, cell] == 0 else 0
            space, way = _flood(planes, b, r.neighbours, cell, length + 1, arrival, queue)
            if space <= length:
                scores[direction] += space - _SHUT_IN * ladder
            else:
                own, own_way = _claim(planes, b, r.neighbours, head, cell, others, arrival, queue, ours)
                steps = own_way if own_way > 0 else way + _LATE
                scores[direction] += _TERRITORY * own - appetite * steps
                scores[direction] -= _CRAMPED * max(length - own, 0)
                scores[direction] -= _FAMINE * max(steps + _SPARE + lost - turns_left, 0)
            if meets_shorter(planes, b, r, cell):
                scores[direction] += _KILL
            scores[direction] -= _HARM * lost / r.max_health
        out[b] = _best(scores, draw(key, slots[b]))


@kernel
def _appetite(planes: Planes, b: int, heads: Cells) -> float:
    """Cost that `territorial` gives to a step to food."""
    appetite = _APPETITE * _LEADER_EATS
    for head in heads:
        if planes[b, OTHER_HEADS, head] == LONGER:
            appetite = _APPETITE
    # The clock is the same on all cells of the board; cell 0 is never padding.
    return appetite * _HUNGRY_EATS if planes[b, CLOCK, 0] < _HUNGRY_BELOW else appetite


@kernel
def _best(scores: NDArray[np.float64], bits: np.uint64) -> int:
    """The direction with the highest score; equal ones are equally likely."""
    best, ties = scores.max(), 0
    for direction in range(4):
        ties += scores[direction] == best
    skip = below(bits, ties)
    for direction in range(4):
        if scores[direction] == best:
            if skip == 0:
                return direction
            skip -= 1
    return 0


@kernel
def _flood(
    planes: Planes, b: int, neighbours: NDArray[np.int16], start: int, enough: int, arrival: Cells, queue: Cells
) -> tuple[int, int]:
    """Breadth-first search from a cell that the head enters on the next turn; body cells are free once they have been left.

    Args:
        planes: (B, 7, cells).
        b: index of the observation.
        neighbours: (cells, 4).
        start: the cell.
        enough: number of reachable cells from which the exact number does not matter.
        arrival: (cells,) scratch.
        queue: (cells,) scratch.

    Returns:
        Number of reachable cells, exact below `enough`; turns to the nearest food, or the number of cells if none is reachable.
    """
    cells = planes.shape[2]
    arrival[:] = 0
    arrival[start] = 1
    queue[0] = start
    first, last, way = 0, 1, cells
    while first < last and (last < enough or way == cells):
        cell = queue[first]
        first += 1
        if way == cells and planes[b, FOOD, cell] > 0:
            way = arrival[cell]
        for direction in range(4):
            near = int64(neighbours[cell, direction])
            if near < 0 or arrival[near] > 0:
                continue
            taken = occupied_for(planes, b, near)
            if taken < UNTOLD and taken <= TTL_STEP * (arrival[cell] + 1):
                arrival[near] = arrival[cell] + 1
                queue[last] = near
                last += 1
    return last, way


@kernel
def _claim(
    planes: Planes,
    b: int,
    neighbours: NDArray[np.int16],
    head: int,
    start: int,
    heads: Cells,
    arrival: Cells,
    queue: Cells,
    ours: NDArray[np.bool_],
) -> tuple[int, int]:
    """Breadth-first search from all heads at once, with the own first move given. A cell belongs to the head that is first.

    On the same turn, snakes that are as long as the own one or longer come first, then the own one, then shorter ones.

    Args:
        planes: (B, 7, cells).
        b: index of the observation.
        neighbours: (cells, 4).
        head: cell of the own head.
        start: the neighbour that the own head moves to.
        heads: cells of the other heads.
        arrival: (cells,) scratch.
        queue: (cells,) scratch.
        ours: (cells,) scratch.

    Returns:
        Number of own cells; turns to the nearest food among them, 0 if there is none.
    """
    arrival[:] = -1
    last = 0
    for longer in (True, False):  # earlier in the queue means first to take a cell
        if not longer and arrival[head] < 0:
            queue[last], arrival[head], ours[head] = head, 0, True
            last += 1
        for other in heads:
            if (planes[b, OTHER_HEADS, other] == LONGER) == longer and arrival[other] < 0:
                queue[last], arrival[other], ours[other] = other, 0, False
                last += 1
    first, own, way = 0, 0, 0
    while first < last:
        cell = queue[first]
        first += 1
        if ours[cell] and cell != head:
            own += 1
            if way == 0 and planes[b, FOOD, cell] > 0:
                way = arrival[cell]
        for direction in range(4):
            near = int64(neighbours[cell, direction])
            if near < 0 or arrival[near] >= 0 or (cell == head and near != start):
                continue
            taken = occupied_for(planes, b, near)
            if taken < UNTOLD and taken <= TTL_STEP * (arrival[cell] + 1):
                arrival[near], ours[near] = arrival[cell] + 1, ours[cell]
                queue[last] = near
                last += 1
    return own, way


KERNELS: dict[str, Callable[..., None]] = {
    "random": _random,
    "greedy": _greedy,
    "survivor": _survivor,
    "territorial": _territorial,
}
"""Kernels by name of the bot: (planes (B, 7, cells), masks (B, 4), rules, slots (B,), seed, call, out (B,)) -> None."""
