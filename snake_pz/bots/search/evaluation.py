"""What a position is worth to one of its snakes, in hundredths of a cell of area."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots.search.area import Areas, Board, area_word, flood
from snake_pz.bots.search.bits import ones
from snake_pz.bots.search.line import CELL, FATE, HEALTH, LIVES, SNAKES, TAIL, TURN, Line, length_of
from snake_pz.core.kernel import inlined_kernel, int64
from snake_pz.core.rule_codes import Growth, Hunger, RuleCodes

DECIDED = 500_000
"""Values of at least this much, either way, are of games that are over for the snake."""
_END = 1_000_000  # the game is won or lost; a turn later is worth _LATER
_LATER = 1_000
_SHARED = 700_000  # lost together with all who were left: better than alone, worse than any position that goes on
_PLACE = 5_000  # each place by which the snake is behind the first when the turns run out, each tie half of it

_ENDLESS = 1_000_000  # turns left where nobody starves


class Weights(NamedTuple):
    """What counts how much, in hundredths of a cell."""

    cell: int = 100  # each own cell
    rivals_cell: int = 100  # each cell of the rivals, on average over them
    lead: int = 3_000  # each segment longer than the longest rival
    most_lead: int = 8  # segments of lead that count
    segment: int = 100  # each own segment
    way: int = 150  # each turn to the own food; half while ahead, six times while hungry
    late: int = 6  # turns added to food in nobody's or another's area
    hungry: int = 45  # turns left without food
    meal: int = 40  # each cell of food in the own area
    starves: int = 20_000  # food is too far away
    starves_by: int = 300  # each turn of the way to it
    starves_below: int = 30  # turns left without food
    short: int = 800  # each cell by which the own area is smaller than the own body
    rivals_short: int = 400  # the same of each rival
    tail: int = 300  # the own tail lies in the own area
    kill: int = 1_500  # each rival that has died


@inlined_kernel
def outcome(line: Line, r: RuleCodes, level: int, me: int) -> int:
    """What a game is worth that is over, or over for the snake."""
    living, better, equal = 0, 0, 0
    mine = length_of(line, level, me)
    for i in range(line.numbers[SNAKES]):
        if line.snakes[level, i, FATE] == LIVES:
            living += 1
            if i != me:
                better += length_of(line, level, i) > mine
                equal += length_of(line, level, i) == mine
    if line.snakes[level, me, FATE] != LIVES:
        return (-_END if living > 0 or line.numbers[SNAKES] == 1 else -_SHARED) + _LATER * level
    if better == 0 and equal == 0:
        return _END - _LATER * level
    return -DECIDED - _PLACE * (2 * better + equal)


@inlined_kernel
def evaluate(line: Line, r: RuleCodes, board: Board, areas: Areas, weights: Weights, level: int, me: int) -> int:
    """What a game is worth that goes on and in which the snake lives."""
    lengths: NDArray[np.int64] = areas.lengths
    way = flood(line, r, board, areas, level, me)
    static = r.growth == Growth.EVERY_TURN  # no tail ever leaves: there is room for as many turns as there are cells
    length, mine = lengths[me], _size(board, areas, me)
    rivals, others, longest, value = 0, 0, 0, 0
    for i in range(line.numbers[SNAKES]):
        if i == me:
            continue
        if lengths[i] == 0:
            value += weights.kill
            continue
        area = _size(board, areas, i)
        rivals += 1
        others += area
        longest = max(longest, lengths[i])
        if area < lengths[i] and not static:
            value += weights.rivals_short * (lengths[i] - area)
    value += weights.cell * mine
    if mine < length and not static:
        value -= weights.short * (length - mine)
    tail = int64(line.paths[me, line.snakes[level, me, TAIL]])
    if (area_word(board, areas, (tail >> 6) + 1, me) >> np.uint64(tail & 63)) & np.uint64(1) != np.uint64(0):
        value += weights.tail
    ahead = False
    if rivals > 0:
        value -= weights.rivals_cell * others // rivals
        ahead = length > longest
        if not static:
            value += weights.lead * min(max(length - longest, -weights.most_lead), weights.most_lead)
    if static:
        return value
    return int64(value) + weights.segment * int64(length) + _food(line, r, board, areas, weights, level, me, way, ahead)


@inlined_kernel
def _size(board: Board, areas: Areas, i: int) -> int:
    """Cells of an area, the head's included."""
    cells = 0
    for w in range(1, len(board.words) + 1):
        cells += int64(ones(area_word(board, areas, w, i)))
    return cells


@inlined_kernel
def _food(
    line: Line, r: RuleCodes, board: Board, areas: Areas, weights: Weights, level: int, me: int, way: int, ahead: bool
) -> int:
    """What food in reach is worth, and the lack of it."""
    meals = 0
    for w in range(1, len(board.words) + 1):
        meals += int64(ones(area_word(board, areas, w, me) & line.food[level, w]))
    if way == 0:
        way = _nearest_food(line, board, level, me)
        if way == 0:
            return 0
        way += weights.late
    left = turns_left(line, r, level, me)
    value = weights.meal * meals
    if left < weights.hungry:
        value -= 6 * weights.way * way
    else:
        value -= (weights.way // 2 if ahead else weights.way) * way
    if left < weights.starves_below and way > left:
        value -= weights.starves + weights.starves_by * way
    return value


@inlined_kernel
def turns_left(line: Line, r: RuleCodes, level: int, me: int) -> int:
    """The turns after which the snake starves without food."""
    if r.hunger == Hunger.HEALTH:
        return int64(line.snakes[level, me, HEALTH])
    if r.hunger == Hunger.SEGMENT:
        turn = int64(line.numbers[TURN]) + level
        return length_of(line, level, me) * r.hunger_every - turn % r.hunger_every
    return _ENDLESS


@inlined_kernel
def _nearest_food(line: Line, board: Board, level: int, me: int) -> int:
    """Turns from the head to the nearest food on an empty board; 0 if there is no food."""
    head = int64(line.snakes[level, me, CELL])
    nearest = 0
    for w in range(1, len(board.words) + 1):
        word = line.food[level, w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            word ^= lowest
            steps = distance(board, head, (w - 1) * 64 + int64(ones(lowest - np.uint64(1))))
            if nearest == 0 or steps < nearest:
                nearest = steps
    return nearest


@inlined_kernel
def distance(board: Board, a: int, b: int) -> int:
    """Steps between two cells of an empty board."""
    dx = abs(int64(board.column[a]) - int64(board.column[b]))
    dy = abs(int64(board.row[a]) - int64(board.row[b]))
    if board.wrap:
        dx, dy = min(dx, board.width - dx), min(dy, board.height - dy)
    return dx + dy
