"""How the bots choose: compiled functions on batches of `board` observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.observations import BOARD_PLANES, TTL_STEP
from snake_pz.core.randomness import below, draw, turn_key
from snake_pz.core.rule_codes import rule_codes
from snake_pz.rules import Rules


class BoardCodes(NamedTuple):
    """What the kernels need of the rules. Cells count along the rows of the padded board of the observation."""

    neighbours: NDArray[np.int16]  # (cells of the padded board, 4) the cell a step up, right, down, left; -1 outside
    row: int  # cells of a row of the padded board
    width: int  # of the game's own board, as is height
    height: int
    wrap: bool
    tails_may_stay: bool  # a snake that eats does not move its tail on
    longest_survives: bool
    may_reverse: bool  # a move back is one like any other
    hunger: int  # health lost each turn
    hazard_damage: int
    max_health: int


def board_codes(rules: Rules, shape: tuple[int, ...]) -> BoardCodes:
    """The codes of these rules, for observations of this shape."""
    row = shape[2]
    y, x = np.divmod(np.arange(rules.num_cells), rules.width)
    cell = y * row + x
    own = rule_codes(rules).neighbours
    neighbours = np.full((shape[1] * row, 4), -1, np.int16)
    neighbours[cell] = np.where(own < 0, -1, cell[own])
    return BoardCodes(
        neighbours=neighbours,
        row=row,
        width=rules.width,
        height=rules.height,
        wrap=rules.edge == "wrap",
        tails_may_stay=rules.growth == "same_turn",
        longest_survives=rules.head_to_head == "longest_survives",
        may_reverse=rules.reverse == "is_a_move",
        hunger=int(rules.hunger == "health"),
        hazard_damage=rules.hazard_damage,
        max_health=rules.max_health,
    )


_OWN, _OWN_HEAD, _OTHERS, _OTHER_HEADS, _FOOD, _OBSTACLES, _CLOCK = range(len(BOARD_PLANES))
_LONGER = 255  # level of the head of a snake that is as long or longer
_UNTOLD = 255  # level of a body cell that is taken for longer than the plane can say
_HAZARD_STEP = 64  # level of one listing of a hazard

_SAFE, _RISKY, _STARVING, _TAKEN, _DEADLY, _BACK, _FORBIDDEN = range(7)

# Weights of `survivor`, in steps of the way to food. Those of the verdicts and of being shut in are the rungs of a ladder: all
# that is below a rung never adds up to it, on no board.
_VERDICT_COST = np.array([0.0, 1e5, 1e8, 1e9, 1e10, 1e11, 1e12])  # by verdict
_SHUT_IN = 1e6
_WON_HEAD_ON = 5.0  # for going where a shorter snake may meet us
_FULL_HAZARD = 20.0  # for a hazard that takes the whole health, in proportion for a lesser one

# Weights of `territorial`, in place of the way to food and of `_WON_HEAD_ON`. Boards of more cells stretch its ladder.
_TERRITORY = 4.0  # for a cell that it reaches before the others
_CRAMPED = 50.0  # for a cell of those that it has less than it is long
_APPETITE = 0.7  # for a step of the way to food,
_LEADER_EATS = 2.8  # times that while nobody is as long
_HUNGRY_EATS = 8.0  # times that while hungry
_HUNGRY_BELOW = 140  # level of the clock
_LATE = 20.0  # steps that food counts as farther away if others are there first
_KILL = 10.5
_LADDER_CELLS = 1000


# Kernels work on planes (B, 7, cells) and masks (B, 4): the rows of a batch one after another, b is the row; scratch arrays are
# made once a batch.

Planes = NDArray[np.uint8]
Masks = NDArray[np.int8]
Cells = NDArray[np.int64]


@kernel
def _random(
    planes: Planes, masks: Masks, board: BoardCodes, rows: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    for b in range(planes.shape[0]):
        out[b] = below(draw(key, rows[b]), 4)


@kernel
def _greedy(
    planes: Planes, masks: Masks, board: BoardCodes, rows: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, num_foods, num_heads = _look(planes, b, foods, heads)
        _judge(planes, masks, b, board, head, heads[:num_heads], verdicts)
        for direction in range(4):
            scores[direction] = -verdicts[direction] * 1e6
            if verdicts[direction] >= _TAKEN or num_foods == 0:
                continue
            nearest = cells
            for k in range(num_foods):
                nearest = min(nearest, _distance(board, board.neighbours[head, direction], foods[k]))
            scores[direction] -= nearest
        out[b] = _best(scores, draw(key, rows[b]))


@kernel
def _survivor(
    planes: Planes, masks: Masks, board: BoardCodes, rows: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    arrival, queue = np.empty(cells, np.int64), np.empty(cells, np.int64)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, _, num_heads = _look(planes, b, foods, heads)
        _judge(planes, masks, b, board, head, heads[:num_heads], verdicts)
        length = _own_length(planes, b, head) if head >= 0 else 0
        for direction in range(4):
            scores[direction] = -_VERDICT_COST[verdicts[direction]]
            if verdicts[direction] >= _TAKEN:
                continue
            cell = int64(board.neighbours[head, direction])
            space, way = _flood(planes, b, board.neighbours, cell, length + 1, arrival, queue)
            scores[direction] += space - _SHUT_IN if space <= length else -way
            if _meets_shorter(planes, b, board, cell):
                scores[direction] += _WON_HEAD_ON
            if planes[b, _FOOD, cell] == 0:
                scores[direction] -= _FULL_HAZARD * max(_damage(planes, b, board, cell), 0) / board.max_health
        out[b] = _best(scores, draw(key, rows[b]))


@kernel
def _territorial(
    planes: Planes, masks: Masks, board: BoardCodes, rows: NDArray[np.intp], seed: np.uint64, call: int, out: Cells
) -> None:
    key = turn_key(seed, call)
    cells = planes.shape[2]
    ladder = max(1.0, cells / _LADDER_CELLS)
    foods, heads = np.empty(cells, np.int64), np.empty(cells, np.int64)
    arrival, queue, ours = np.empty(cells, np.int64), np.empty(cells, np.int64), np.empty(cells, np.bool_)
    verdicts, scores = np.empty(4, np.int64), np.empty(4)
    for b in range(planes.shape[0]):
        head, _, num_heads = _look(planes, b, foods, heads)
        others = heads[:num_heads]
        _judge(planes, masks, b, board, head, others, verdicts)
        length = _own_length(planes, b, head) if head >= 0 else 0
        appetite = _appetite(planes, b, others)
        for direction in range(4):
            scores[direction] = -_VERDICT_COST[verdicts[direction]] * ladder
            if verdicts[direction] >= _TAKEN:
                continue
            cell = int64(board.neighbours[head, direction])
            space, way = _flood(planes, b, board.neighbours, cell, length + 1, arrival, queue)
            if space <= length:
                scores[direction] += space - _SHUT_IN * ladder
            else:
                own, own_way = _claim(planes, b, board.neighbours, head, cell, others, arrival, queue, ours)
                scores[direction] += _TERRITORY * own - appetite * (own_way if own_way > 0 else way + _LATE)
                scores[direction] -= _CRAMPED * max(length - own, 0)
            if _meets_shorter(planes, b, board, cell):
                scores[direction] += _KILL
            if planes[b, _FOOD, cell] == 0:
                scores[direction] -= _FULL_HAZARD * max(_damage(planes, b, board, cell), 0) / board.max_health
        out[b] = _best(scores, draw(key, rows[b]))


@kernel
def _appetite(planes: Planes, b: int, heads: Cells) -> float:
    """What `territorial` gives for a step less to food."""
    appetite = _APPETITE * _LEADER_EATS
    for head in heads:
        if planes[b, _OTHER_HEADS, head] == _LONGER:
            appetite = _APPETITE
    # The clock is the same everywhere on the board, and the first cell always is on it.
    return appetite * _HUNGRY_EATS if planes[b, _CLOCK, 0] < _HUNGRY_BELOW else appetite


@kernel
def _best(scores: NDArray[np.float64], bits: np.uint64) -> int:
    """The direction of the highest score; among equal ones each equally likely."""
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
def _look(planes: Planes, b: int, foods: Cells, heads: Cells) -> tuple[int, int, int]:
    """Write the cells of food and of the other heads.

    Returns:
        The cell of the own head, -1 if it is off the board; how many foods; how many other heads.
    """
    head, num_foods, num_heads = -1, 0, 0
    for cell in range(planes.shape[2]):
        if planes[b, _OWN_HEAD, cell] > 0:
            head = cell
        if planes[b, _FOOD, cell] > 0:
            foods[num_foods] = cell
            num_foods += 1
        if planes[b, _OTHER_HEADS, cell] > 0:
            heads[num_heads] = cell
            num_heads += 1
    return head, num_foods, num_heads


@kernel
def _own_length(planes: Planes, b: int, head: int) -> int:
    """Segments of the own body; where the head's level cannot say, the cells it covers."""
    if planes[b, _OWN, head] < _UNTOLD:
        return int64(planes[b, _OWN, head]) // TTL_STEP
    length = 0
    for cell in range(planes.shape[2]):
        if planes[b, _OWN, cell] > 0:
            length += 1
    return length


@kernel
def _taken(planes: Planes, b: int, cell: int) -> int:
    """Level of the body on a cell, whosever it is: TTL_STEP for each turn until it is free."""
    return int64(max(planes[b, _OWN, cell], planes[b, _OTHERS, cell]))


@kernel
def _damage(planes: Planes, b: int, board: BoardCodes, cell: int) -> int:
    """Health that the hazards on a cell take."""
    return board.hazard_damage * (int64(planes[b, _OBSTACLES, cell]) // _HAZARD_STEP)


@kernel
def _distance(board: BoardCodes, a: int, b: int) -> int:
    """Steps between two cells of an empty board."""
    dx, dy = abs(a % board.row - b % board.row), abs(a // board.row - b // board.row)
    if board.wrap:
        dx, dy = min(dx, board.width - dx), min(dy, board.height - dy)
    return dx + dy


@kernel
def _judge(planes: Planes, masks: Masks, b: int, board: BoardCodes, head: int, heads: Cells, verdicts: Cells) -> None:
    """Write the verdict on each direction; all are deadly for a snake that has left the board.

    The mask comes before the planes: these do not show the heading of a snake of one, nor on which turn hunger takes a tail.
    """
    if head < 0:
        verdicts[:] = _DEADLY
        return
    starves = board.hunger > 0 or board.hazard_damage != 0
    # The least health that shows as this level; it is exact up to 255 units.
    health = -(-int64(planes[b, _CLOCK, head]) * board.max_health // 255)
    for direction in range(4):
        cell = int64(board.neighbours[head, direction])
        if masks[b, direction] == 0:
            verdicts[direction] = _FORBIDDEN
        elif cell < 0:
            verdicts[direction] = _DEADLY
        elif not board.may_reverse and planes[b, _OWN, cell] > 0 and planes[b, _OWN, cell] == planes[b, _OWN, head] - TTL_STEP:
            verdicts[direction] = _BACK  # into the neck: it is no move of its own, or it kills
        elif planes[b, _OWN, cell] > TTL_STEP:
            verdicts[direction] = _DEADLY
        elif planes[b, _OTHERS, cell] > TTL_STEP:
            verdicts[direction] = _TAKEN  # unless its snake dies on this very turn
        elif starves and planes[b, _FOOD, cell] == 0 and health - board.hunger - _damage(planes, b, board, cell) <= 0:
            verdicts[direction] = _STARVING
        elif _loses_head_on(planes, b, board, cell) or _tail_may_stay(planes, b, board, cell, heads):
            verdicts[direction] = _RISKY
        else:
            verdicts[direction] = _SAFE


@kernel
def _loses_head_on(planes: Planes, b: int, board: BoardCodes, cell: int) -> bool:
    """Whether a snake that we would not survive may come to the cell next."""
    for direction in range(4):
        near = board.neighbours[cell, direction]
        level = planes[b, _OTHER_HEADS, near] if near >= 0 else 0
        if level == _LONGER or (level > 0 and not board.longest_survives):
            return True
    return False


@kernel
def _meets_shorter(planes: Planes, b: int, board: BoardCodes, cell: int) -> bool:
    """Whether a snake that would not survive us may come to the cell next."""
    if not board.longest_survives:
        return False
    for direction in range(4):
        near = board.neighbours[cell, direction]
        if near >= 0 and 0 < planes[b, _OTHER_HEADS, near] < _LONGER:
            return True
    return False


@kernel
def _tail_may_stay(planes: Planes, b: int, board: BoardCodes, cell: int, heads: Cells) -> bool:
    """Whether the cell is the tail of another snake that may eat next and then keeps it there.

    Whose tail it is the planes do not say: any head that is near enough for its length may be at the other end.
    """
    if not board.tails_may_stay or planes[b, _OTHERS, cell] == 0:
        return False
    for head in heads:
        level = int64(planes[b, _OTHERS, head])
        if level < _UNTOLD and _distance(board, cell, head) > level // TTL_STEP - 1:
            continue
        for direction in range(4):
            near = board.neighbours[head, direction]
            if near >= 0 and planes[b, _FOOD, near] > 0:
                return True
    return False


@kernel
def _flood(
    planes: Planes, b: int, neighbours: NDArray[np.int16], start: int, enough: int, arrival: Cells, queue: Cells
) -> tuple[int, int]:
    """Walk everywhere from a cell that is reached on the next turn, onto bodies as soon as they have left.

    Args:
        planes: (B, 7, cells).
        b: the row.
        neighbours: (cells, 4).
        start: the cell.
        enough: number of cells beyond which the exact number does not matter.
        arrival: (cells,) scratch.
        queue: (cells,) scratch.

    Returns:
        Cells that can be reached, at least `enough` if there are so many; turns until the nearest food, the number of cells of
        the board if none can be reached.
    """
    cells = planes.shape[2]
    arrival[:] = 0
    arrival[start] = 1
    queue[0] = start
    first, last, way = 0, 1, cells
    while first < last and (last < enough or way == cells):
        cell = queue[first]
        first += 1
        if way == cells and planes[b, _FOOD, cell] > 0:
            way = arrival[cell]
        for direction in range(4):
            near = int64(neighbours[cell, direction])
            if near < 0 or arrival[near] > 0:
                continue
            taken = _taken(planes, b, near)
            if taken < _UNTOLD and taken <= TTL_STEP * (arrival[cell] + 1):
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
    """Walk everywhere from all heads at once, we by way of one cell; a cell belongs to whose head is there first.

    Of those who come at the same time it is the first who is as long as we are or longer, then we, then the shorter.

    Args:
        planes: (B, 7, cells).
        b: the row.
        neighbours: (cells, 4).
        head: our head.
        start: the cell next to it that we go to.
        heads: those of the others.
        arrival: (cells,) scratch.
        queue: (cells,) scratch.
        ours: (cells,) scratch.

    Returns:
        How many cells are ours; turns until we are at the nearest food among them, 0 if there is none.
    """
    arrival[:] = -1
    last = 0
    for longer in (True, False):  # whoever is first in the queue is first to take a cell
        if not longer and arrival[head] < 0:
            queue[last], arrival[head], ours[head] = head, 0, True
            last += 1
        for other in heads:
            if (planes[b, _OTHER_HEADS, other] == _LONGER) == longer and arrival[other] < 0:
                queue[last], arrival[other], ours[other] = other, 0, False
                last += 1
    first, own, way = 0, 0, 0
    while first < last:
        cell = queue[first]
        first += 1
        if ours[cell] and cell != head:
            own += 1
            if way == 0 and planes[b, _FOOD, cell] > 0:
                way = arrival[cell]
        for direction in range(4):
            near = int64(neighbours[cell, direction])
            if near < 0 or arrival[near] >= 0 or (cell == head and near != start):
                continue
            taken = _taken(planes, b, near)
            if taken < _UNTOLD and taken <= TTL_STEP * (arrival[cell] + 1):
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
"""By the bot's name, weakest first: (planes (B, 7, cells), masks (B, 4), board, rows (B,), seed, call, out (B,)) -> None."""
