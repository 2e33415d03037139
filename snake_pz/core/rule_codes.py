"""`Rules` as numbers and tables for the kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from snake_pz import rules as names
from snake_pz.core.state import OFF_BOARD
from snake_pz.rules import Rules

# Codes of the rules with named values: the place of the value in its Literal in rules.py.
SAME_TURN, NEXT_TURN, EVERY_TURN = range(3)  # growth
ALL_DIE, LONGEST_SURVIVES = range(2)  # head_to_head
NOBODY, LOWEST_INDEX = range(2)  # tied_killer
WITH_OTHERS, AT_ONCE = range(2)  # own_body
STRAIGHT, DIES, IS_A_MOVE = range(3)  # reverse, invalid_move
COLLIDED, ALL = range(2)  # dying_block
ALL_EAT, FIRST_EATS = range(2)  # contested_food
NO_HUNGER, HEALTH, SEGMENT = range(3)  # hunger
RINGS, BATTLESNAKE, SCATTERED = range(3)  # start
ONE, ONE_ALWAYS, NONE = range(3)  # ends_with
SHARE, BY_LENGTH = range(2)  # tied_deaths

UP, RIGHT, DOWN, LEFT = range(4)


class RuleCodes(NamedTuple):
    """The fields of `Rules`, named values as codes, and tables made of them."""

    neighbours: NDArray[np.int16]  # (K, 4) the cell a step up, right, down, left; OFF_BOARD outside
    ring_cells: NDArray[np.int16]  # (sum of ring lengths,) the start rings, see Rules.rings
    spot_ring: NDArray[np.int16]  # (N, 2) per start spot: first index and length of its ring in ring_cells
    spot_place: NDArray[np.int16]  # (N,) where on its ring
    points: NDArray[np.int16]  # (8,) Battlesnake's corner and cardinal points; (0,) where its map has none
    width: int
    height: int
    start_length: int
    start: int
    wrap: int
    growth: int
    max_length: int  # 0: none
    head_to_head: int
    tied_killer: int
    own_body: int
    reverse: int
    invalid_move: int
    dying_block: int
    food_initial: int
    food_minimum: int
    food_chance: float
    food_near_heads: int
    contested_food: int
    hunger: int
    hunger_every: int
    uses_health: int
    max_health: int
    hazard_damage: int
    shrink_every: int
    max_turns: int  # 0: none
    ends_with: int
    tied_deaths: int


@lru_cache(maxsize=64)
def rule_codes(rules: Rules) -> RuleCodes:
    """The numbers and tables of these rules. Shared between engines: do not write into them."""
    cells, spots, places = _start_spots(rules)

    def code(literal: Any, value: str) -> int:
        return get_args(literal).index(value)

    return RuleCodes(
        neighbours=_neighbours(rules),
        ring_cells=cells,
        spot_ring=spots,
        spot_place=places,
        points=_battlesnake_points(rules),
        width=rules.width,
        height=rules.height,
        start_length=rules.start_length,
        start=code(names.Start, rules.start),
        wrap=code(names.Edge, rules.edge),
        growth=code(names.Growth, rules.growth),
        max_length=rules.max_length or 0,
        head_to_head=code(names.HeadToHead, rules.head_to_head),
        tied_killer=code(names.TiedKiller, rules.tied_killer),
        own_body=code(names.OwnBody, rules.own_body),
        reverse=code(names.Reverse, rules.reverse),
        invalid_move=code(names.InvalidMove, rules.invalid_move),
        dying_block=code(names.DyingBlock, rules.dying_block),
        food_initial=rules.food_initial,
        food_minimum=rules.food_minimum,
        food_chance=float(rules.food_chance),
        food_near_heads=int(rules.food_near_heads),
        contested_food=code(names.ContestedFood, rules.contested_food),
        hunger=code(names.Hunger, rules.hunger),
        hunger_every=rules.hunger_every,
        uses_health=int(rules.uses_health),
        max_health=rules.max_health,
        hazard_damage=rules.hazard_damage,
        shrink_every=rules.shrink_every,
        max_turns=rules.max_turns or 0,
        ends_with=code(names.EndsWith, rules.ends_with),
        tied_deaths=code(names.TiedDeaths, rules.tied_deaths),
    )


def _neighbours(rules: Rules) -> NDArray[np.int16]:
    y, x = np.divmod(np.arange(rules.num_cells), rules.width)
    table = np.empty((rules.num_cells, 4), np.int16)
    for direction, (dx, dy) in enumerate(((0, -1), (1, 0), (0, 1), (-1, 0))):
        to_x, to_y = x + dx, y + dy
        cell = to_y % rules.height * rules.width + to_x % rules.width
        inside = (to_x == to_x % rules.width) & (to_y == to_y % rules.height)
        table[:, direction] = cell if rules.edge == "wrap" else np.where(inside, cell, OFF_BOARD)
    return table


def _start_spots(rules: Rules) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int16]]:
    """Where snakes start: equally spaced on one ring near the third line if it has the room, else on as many as it takes."""
    rings = rules.rings()
    room = rules.ring_room()
    if len(room) != len(rings):  # scattered
        room = [0] * len(rings)
    single = [k for k in (2, 1, 0) if k < len(rings) and room[k] >= rules.num_snakes]
    counts = [0] * len(rings)
    if single:
        counts[single[0]] = rules.num_snakes
    else:
        for k in range(len(rings)):
            counts[k] = min(room[k], rules.num_snakes - sum(counts))
    starts = np.cumsum([0] + [len(ring) for ring in rings])
    spots = [(starts[k], len(rings[k])) for k, count in enumerate(counts) for _ in range(count)]
    places = [j * len(ring) // count for ring, count in zip(rings, counts, strict=True) for j in range(count)]
    cells = np.array([cell for ring in rings for cell in ring], np.int16)
    return cells, np.array(spots, np.int16).reshape(-1, 2), np.array(places, np.int16)


def _battlesnake_points(rules: Rules) -> NDArray[np.int16]:
    """The corner points, then the cardinal points, of Battlesnake's standard map."""
    side = rules.width
    if rules.start != "battlesnake" or side != rules.height or side < 7 or rules.num_snakes > 8:
        return np.zeros(0, np.int16)
    near, middle, far = 1, (side - 1) // 2, side - 2
    corners = [(near, near), (near, far), (far, near), (far, far)]
    cardinals = [(near, middle), (middle, near), (middle, far), (far, middle)]
    return np.array([y * side + x for x, y in corners + cardinals], np.int16)
