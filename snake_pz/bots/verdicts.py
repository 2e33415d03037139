"""Reading a `board` observation: the rules that bots need, distances and dangers, and a verdict on each move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.observations import BOARD_PLANES, TTL_STEP
from snake_pz.core.rule_codes import rule_codes
from snake_pz.rules import Rules

Planes = NDArray[np.uint8]
"""(B, 7, cells) `board` observations with flat boards. Kernels take the index b of the observation too."""

Masks = NDArray[np.int8]
"""(B, 4) action masks."""

Cells = NDArray[np.int64]
"""Flat cells of the padded board, numbers per cell, or scratch memory for them."""


class BotRules(NamedTuple):
    """The rules that bots need, with cells numbered on the padded board of the observation."""

    neighbours: NDArray[np.int16]  # (cells, 4) the next cell up, right, down, left; -1 outside the board
    row: int  # cells in a row of the padded board
    width: int  # of the board without padding
    height: int  # of the board without padding
    wrap: bool
    tails_may_stay: bool  # whether a snake's tail stays on the turn on which it eats
    longest_survives: bool
    may_reverse: bool  # whether reversing is a move like any other
    hunger: int  # health lost on each turn
    segment_every: int  # turns from one loss of a tail segment to the next; 0: hunger takes none
    hazard_damage: int
    max_health: int


def bot_rules(rules: Rules, shape: tuple[int, ...]) -> BotRules:
    """The part of these rules that bots need, for observations of this shape (C, H, W)."""
    row = shape[2]
    y, x = np.divmod(np.arange(rules.num_cells), rules.width)
    cell = y * row + x
    own = rule_codes(rules).neighbours
    neighbours = np.full((shape[1] * row, 4), -1, np.int16)
    neighbours[cell] = np.where(own < 0, -1, cell[own])
    return BotRules(
        neighbours=neighbours,
        row=row,
        width=rules.width,
        height=rules.height,
        wrap=rules.edge == "wrap",
        tails_may_stay=rules.growth == "same_turn",
        longest_survives=rules.head_to_head == "longest_survives",
        may_reverse=rules.reverse == "is_a_move",
        hunger=int(rules.hunger == "health"),
        segment_every=rules.hunger_every if rules.hunger == "segment" else 0,
        hazard_damage=rules.hazard_damage,
        max_health=rules.max_health,
    )


OWN, OWN_HEAD, OTHERS, OTHER_HEADS, FOOD, OBSTACLES, CLOCK = range(len(BOARD_PLANES))
LONGER = 255  # level of the head of a snake that is as long or longer
UNTOLD = 255  # level of a body cell that stays occupied for longer than the plane encodes
HAZARD_STEP = 64  # level of one listing of a hazard
_FOR_EVER = 1 << 30  # turns

SAFE, RISKY, STARVING, TAKEN, DEADLY, BACK, FORBIDDEN = range(7)


@kernel
def look(planes: Planes, b: int, foods: Cells, heads: Cells) -> tuple[int, int, int]:
    """Find food and heads. `foods` and `heads` (cells,) are written: the cells of food and of the other heads.

    Returns:
        The cell of the own head, -1 if it is off the board; the number of foods; the number of other heads.
    """
    head, num_foods, num_heads = -1, 0, 0
    for cell in range(planes.shape[2]):
        if planes[b, OWN_HEAD, cell] > 0:
            head = cell
        if planes[b, FOOD, cell] > 0:
            foods[num_foods] = cell
            num_foods += 1
        if planes[b, OTHER_HEADS, cell] > 0:
            heads[num_heads] = cell
            num_heads += 1
    return head, num_foods, num_heads


@kernel
def own_length(planes: Planes, b: int, head: int) -> int:
    """Segments of the own body; if it is too long for the head's level, the number of cells it covers."""
    if planes[b, OWN, head] < UNTOLD:
        return int64(planes[b, OWN, head]) // TTL_STEP
    length = 0
    for cell in range(planes.shape[2]):
        if planes[b, OWN, cell] > 0:
            length += 1
    return length


@kernel
def occupied_for(planes: Planes, b: int, cell: int) -> int:
    """Level of any body on a cell: TTL_STEP for each turn until the cell is free."""
    return int64(max(planes[b, OWN, cell], planes[b, OTHERS, cell]))


@kernel
def least_health(planes: Planes, b: int, r: BotRules, head: int) -> int:
    """The least health that the clock's level can mean; exact if max_health is at most 255."""
    return -(-int64(planes[b, CLOCK, head]) * r.max_health // 255)


@kernel
def endurance(planes: Planes, b: int, r: BotRules, head: int, length: int) -> int:
    """Turns for which the snake surely lives without eating."""
    if r.hunger > 0:
        return least_health(planes, b, r, head) - 1
    if r.segment_every > 0:
        return (length - 1) * r.segment_every
    return _FOR_EVER


@kernel
def damage(planes: Planes, b: int, r: BotRules, cell: int) -> int:
    """Health lost on a cell by its hazards."""
    return r.hazard_damage * (int64(planes[b, OBSTACLES, cell]) // HAZARD_STEP)


@kernel
def distance(r: BotRules, a: int, b: int) -> int:
    """Steps between two cells of an empty board."""
    dx, dy = abs(a % r.row - b % r.row), abs(a // r.row - b // r.row)
    if r.wrap:
        dx, dy = min(dx, r.width - dx), min(dy, r.height - dy)
    return dx + dy


@kernel
def judge(planes: Planes, masks: Masks, b: int, r: BotRules, head: int, heads: Cells, verdicts: Cells) -> None:
    """Write the verdict on each direction into `verdicts` (4,). All are deadly for a snake that has left the board.

    The mask takes precedence over the planes, which show neither the heading of a snake of length 1 nor the turns on which
    hunger takes a tail.
    """
    if head < 0:
        verdicts[:] = DEADLY
        return
    starves = r.hunger > 0 or r.hazard_damage != 0
    health = least_health(planes, b, r, head)
    for direction in range(4):
        cell = int64(r.neighbours[head, direction])
        if masks[b, direction] == 0:
            verdicts[direction] = FORBIDDEN
        elif cell < 0:
            verdicts[direction] = DEADLY
        elif not r.may_reverse and planes[b, OWN, cell] > 0 and planes[b, OWN, cell] == planes[b, OWN, head] - TTL_STEP:
            verdicts[direction] = BACK  # into the neck: executed as another move, or deadly
        elif planes[b, OWN, cell] > TTL_STEP:
            verdicts[direction] = DEADLY
        elif planes[b, OTHERS, cell] > TTL_STEP:
            verdicts[direction] = TAKEN  # deadly unless the other snake dies on this turn
        elif starves and planes[b, FOOD, cell] == 0 and health - r.hunger - damage(planes, b, r, cell) <= 0:
            verdicts[direction] = STARVING
        elif _loses_head_on(planes, b, r, cell) or _tail_may_stay(planes, b, r, cell, heads):
            verdicts[direction] = RISKY
        else:
            verdicts[direction] = SAFE


@kernel
def _loses_head_on(planes: Planes, b: int, r: BotRules, cell: int) -> bool:
    """Whether another head may enter the cell on the next turn and this snake would die."""
    for direction in range(4):
        near = r.neighbours[cell, direction]
        level = planes[b, OTHER_HEADS, near] if near >= 0 else 0
        if level == LONGER or (level > 0 and not r.longest_survives):
            return True
    return False


@kernel
def meets_shorter(planes: Planes, b: int, r: BotRules, cell: int) -> bool:
    """Whether the head of a shorter snake may enter the cell on the next turn and would die."""
    if not r.longest_survives:
        return False
    for direction in range(4):
        near = r.neighbours[cell, direction]
        if near >= 0 and 0 < planes[b, OTHER_HEADS, near] < LONGER:
            return True
    return False


@kernel
def _tail_may_stay(planes: Planes, b: int, r: BotRules, cell: int, heads: Cells) -> bool:
    """Whether the cell is the tail of another snake that may eat on the next turn, so that its tail stays.

    The planes do not show whose tail it is: it may belong to any head whose length reaches as far as the cell.
    """
    if not r.tails_may_stay or planes[b, OTHERS, cell] == 0:
        return False
    for head in heads:
        level = int64(planes[b, OTHERS, head])
        if level < UNTOLD and distance(r, cell, head) > level // TTL_STEP - 1:
            continue
        for direction in range(4):
            near = r.neighbours[head, direction]
            if near >= 0 and planes[b, FOOD, near] > 0:
                return True
    return False
