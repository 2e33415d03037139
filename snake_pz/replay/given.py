"""What a game of another program was given: its start, and what appeared on its board turn by turn.

An engine elsewhere draws otherwise than ours, so a replay of its game says what was drawn, and nothing is drawn when it is
played again: `undrawn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snake_pz.core.state import Cell, Position, SnakeState
from snake_pz.formats.fields import items, whole
from snake_pz.rules import MAX_SIDE, Rules

_MOST = MAX_SIDE * MAX_SIDE


class Drawn(NamedTuple):
    """What appeared after one turn, as flat cells; a cell may be listed more than once."""

    food: tuple[int, ...] = ()
    hazards: tuple[int, ...] = ()


def undrawn(rules: Rules) -> Rules:
    """The same rules, by which nothing appears of itself."""
    return rules.replace(food_minimum=0, food_chance=0.0, shrink_every=0)


def lay(state: SnakeState, drawn: Drawn) -> None:
    """Put on the board of a single game what appeared."""
    np.add.at(state.food[0], list(drawn.food), 1)
    np.add.at(state.hazard[0], list(drawn.hazards), 1)
    state.food_count[0] += len(drawn.food)


def start_as_json(rules: Rules, start: Position) -> dict[str, Any]:
    """A start for a header; `start_of_json` reads it."""

    def flat(cells: Sequence[Cell]) -> list[int]:
        return [y * rules.width + x for x, y in cells]

    return {
        "bodies": [flat(body) for body in start.bodies],
        "food": flat(start.food),
        "hazards": flat(start.hazards),
        "health": start.health,
        "headings": start.headings,
        "turn": start.turn,
    }


def start_of_json(rules: Rules, data: Any) -> Position:
    """What `start_as_json` wrote, or somebody else.

    Raises:
        ValueError: a field is missing or out of its range.
    """

    def cells(listed: Any) -> list[Cell]:
        return [(cell % rules.width, cell // rules.width) for cell in flat_cells(rules, listed)]

    def numbers(name: str, low: int, high: int) -> list[int] | None:
        if data.get(name) is None:
            return None
        return [whole({name: one}, name, low, high) for one in items(data, name, rules.num_snakes)]

    return Position(
        bodies=[cells(body) for body in items(data, "bodies", rules.num_snakes)],
        food=cells(items(data, "food", _MOST)),
        hazards=cells(items(data, "hazards", _MOST)),
        health=numbers("health", 0, rules.max_health),
        headings=numbers("headings", -1, 3),
        turn=whole(data, "turn", 0, 2**30),
    )


def drawn_of_json(rules: Rules, data: Any = ((), ())) -> Drawn:
    """What appeared after a turn.

    Raises:
        TypeError, ValueError: not two lists of cells of the board.
    """
    food, hazards = data
    return Drawn(tuple(flat_cells(rules, food)), tuple(flat_cells(rules, hazards)))


def flat_cells(rules: Rules, listed: Any) -> list[int]:
    """Cells of the board, checked.

    Raises:
        ValueError: no list, or one of something else.
    """
    return [whole({"cell": cell}, "cell", 0, rules.num_cells - 1) for cell in items({"cells": listed}, "cells", _MOST)]
