"""`Rules` as numbers and tables for kernels."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.state import OFF_BOARD
from snake_pz.rules import Rules

# Codes of the rules with named values. The names are those of rules.py in upper case.
Start = IntEnum("Start", ["RINGS", "BATTLESNAKE", "SCATTERED"], start=0)
Edge = IntEnum("Edge", ["WALL", "WRAP"], start=0)
Growth = IntEnum("Growth", ["SAME_TURN", "NEXT_TURN", "EVERY_TURN"], start=0)
HeadToHead = IntEnum("HeadToHead", ["ALL_DIE", "LONGEST_SURVIVES"], start=0)
TiedKiller = IntEnum("TiedKiller", ["NOBODY", "LOWEST_INDEX"], start=0)
OwnBody = IntEnum("OwnBody", ["WITH_OTHERS", "AT_ONCE"], start=0)
Reverse = IntEnum("Reverse", ["STRAIGHT", "DIES", "IS_A_MOVE"], start=0)
InvalidMove = IntEnum("InvalidMove", ["STRAIGHT", "DIES"], start=0)
DyingBlock = IntEnum("DyingBlock", ["COLLIDED", "ALL"], start=0)
ContestedFood = IntEnum("ContestedFood", ["ALL_EAT", "LOWEST_INDEX"], start=0)
Hunger = IntEnum("Hunger", ["NONE", "HEALTH", "SEGMENT"], start=0)
EndsWith = IntEnum("EndsWith", ["ONE", "ONE_ALWAYS", "NONE"], start=0)
TiedDeaths = IntEnum("TiedDeaths", ["SHARE", "BY_LENGTH"], start=0)


class RuleCodes(NamedTuple):
    """The fields of `Rules` with named values as codes, and tables derived from them."""

    neighbours: NDArray[np.int16]  # (K, 4) the next cell up, right, down, left; OFF_BOARD outside
    ring_cells: NDArray[np.int16]  # (sum of ring lengths,) cells of the start rings, see Rules.rings
    spot_ring: NDArray[np.int16]  # (N, 2) per start spot: first index and length of its ring in ring_cells
    spot_place: NDArray[np.int16]  # (N,) per start spot: index on its ring
    points: NDArray[np.int16]  # (8,) Battlesnake's corner and cardinal points; (0,) on boards without them
    width: int
    height: int
    start_length: int
    start: Annotated[int, Start]
    edge: Annotated[int, Edge]
    growth: Annotated[int, Growth]
    max_length: int  # 0: none
    head_to_head: Annotated[int, HeadToHead]
    tied_killer: Annotated[int, TiedKiller]
    own_body: Annotated[int, OwnBody]
    reverse: Annotated[int, Reverse]
    invalid_move: Annotated[int, InvalidMove]
    dying_block: Annotated[int, DyingBlock]
    food_initial: int
    food_minimum: int
    food_chance: float
    food_near_heads: bool
    contested_food: Annotated[int, ContestedFood]
    hunger: Annotated[int, Hunger]
    hunger_every: int
    uses_health: bool
    max_health: int
    hazard_damage: int
    shrink_every: int
    max_turns: int  # 0: none
    ends_with: Annotated[int, EndsWith]
    tied_deaths: Annotated[int, TiedDeaths]


@lru_cache(maxsize=64)
def rule_codes(rules: Rules) -> RuleCodes:
    """The numbers and tables of these rules. They are shared between engines: do not write into them."""
    cells, spots, places = _start_spots(rules)
    tables: dict[str, Any] = {
        "neighbours": _neighbours(rules),
        "ring_cells": cells,
        "spot_ring": spots,
        "spot_place": places,
        "points": _battlesnake_points(rules),
    }
    kinds = get_type_hints(RuleCodes, include_extras=True)
    numbers = {name: _number(kinds[name], getattr(rules, name)) for name in RuleCodes._fields if name not in tables}
    return RuleCodes(**tables, **numbers)


def _number(kind: Any, value: Any) -> Any:
    """The value of a rule in a field of this type. Codes are plain ints, which numba recognises faster than enum members."""
    if isinstance(value, str):
        _, codes = get_args(kind)
        return int(codes[value.upper()])
    return kind(value or 0)


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
    """Start spots: equally spaced on one ring near the third line if it has room for all, else on as many rings as needed."""
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
    """Corner points, then cardinal points, of Battlesnake's standard map; empty on boards without them."""
    side = rules.width
    if rules.start != "battlesnake" or side != rules.height or side < 7 or rules.num_snakes > 8:
        return np.zeros(0, np.int16)
    near, middle, far = 1, (side - 1) // 2, side - 2
    corners = [(near, near), (near, far), (far, near), (far, far)]
    cardinals = [(near, middle), (middle, near), (middle, far), (far, middle)]
    return np.array([y * side + x for x, y in corners + cardinals], np.int16)
