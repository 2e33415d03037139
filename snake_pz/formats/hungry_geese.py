"""Kaggle's Hungry Geese: the observation and configuration that its games give to an agent (kaggle-environments 1.33.2).

A cell is `row * columns + column` from the top left corner, as here; a goose lists its cells head first, and none if it is out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from snake_pz.core.state import Cell, Position, SnakeState, body_cells, heading_of
from snake_pz.formats.fields import items, whole
from snake_pz.rules import MAX_SIDE, Rules

Observation = Mapping[str, Any]
"""`geese`, `food`, `step` and `index`, as an agent gets them."""
Configuration = Mapping[str, Any]
"""`rows`, `columns`, `hunger_rate`, `min_food`, `max_length` and `episodeSteps`; defaults are the competition's."""

MOVES = ("NORTH", "EAST", "SOUTH", "WEST")
"""Names of the absolute directions 0 to 3."""
MOST_GEESE = 64
"""More geese than any game has; an observation with more is refused."""

_MOST = MAX_SIDE * MAX_SIDE


def rules(observation: Observation, configuration: Configuration) -> Rules:
    """The rules of the game that an observation is from.

    Raises:
        ValueError: a field is missing or out of its range.
    """
    food = whole(configuration, "min_food", 0, _MOST, 2)
    return Rules.hungry_geese(
        width=whole(configuration, "columns", 2, MAX_SIDE, 11),
        height=whole(configuration, "rows", 2, MAX_SIDE, 7),
        num_snakes=len(items(observation, "geese", MOST_GEESE)),
        food_initial=food,
        food_minimum=food,
        hunger_every=whole(configuration, "hunger_rate", 1, 2**30, 40),
        max_length=whole(configuration, "max_length", 1, _MOST, 99),
        max_turns=whole(configuration, "episodeSteps", 2, 2**30, 200) - 1,
    )


def index(observation: Observation) -> int:
    """The goose that the observation is for."""
    return whole(observation, "index", 0, len(items(observation, "geese", MOST_GEESE)) - 1)


def step(observation: Observation) -> int:
    """Turns that were played before."""
    return whole(observation, "step", 0, 2**30)


def position(observation: Observation, configuration: Configuration, previous: Observation | None = None) -> Position:
    """The position that an observation shows.

    Args:
        observation: of this step.
        configuration: of the game.
        previous: the observation of the step before. It shows where geese of one cell came from, which may not go back; None:
            they have no heading, and each of their moves counts as free.

    Raises:
        ValueError: a field is missing or out of its range.
    """
    of_game = rules(observation, configuration)
    geese = _geese(observation, of_game)
    before = geese if previous is None else _geese(previous, of_game)
    if len(before) != len(geese):
        raise ValueError(f"the step before must have the same {len(geese)} geese, got {len(before)}")
    return Position(
        bodies=geese,
        food=[_cell(of_game, cell) for cell in items(observation, "food", _MOST)],
        headings=[
            heading_of(of_game, goose if len(goose) > 1 else [*goose, *earlier[:1]])
            for goose, earlier in zip(geese, before, strict=True)
        ],
        turn=step(observation),
    )


def _geese(observation: Observation, of_game: Rules) -> list[list[Cell]]:
    geese = items(observation, "geese", MOST_GEESE)
    listed = [items({"geese": goose}, "geese", _MOST) for goose in geese]
    return [[_cell(of_game, cell) for cell in goose] for goose in listed]


def _cell(of_game: Rules, cell: Any) -> Cell:
    number = whole({"cell": cell}, "cell", 0, of_game.num_cells - 1)
    return number % of_game.width, number // of_game.width


def observation(state: SnakeState, row: int, goose: int) -> dict[str, Any]:
    """The observation that a goose gets in this position: what `rules` and `position` read.

    Args:
        state: of E games.
        row: the game.
        goose: who gets it.
    """
    alive = state.alive[row]
    return {
        "remainingOverageTime": 60,
        "index": goose,
        "step": int(state.turn[row]),
        "geese": [body_cells(state, row, number).tolist() if alive[number] else [] for number in range(len(alive))],
        "food": np.repeat(np.arange(state.food.shape[1]), state.food[row]).tolist(),
    }


def configuration(of_game: Rules) -> dict[str, Any]:
    """The configuration of a game with these rules, which are those of `Rules.hungry_geese`."""
    assert of_game.max_turns is not None
    assert of_game.max_length is not None
    return {
        "columns": of_game.width,
        "rows": of_game.height,
        "hunger_rate": of_game.hunger_every,
        "min_food": of_game.food_minimum,
        "max_length": of_game.max_length,
        "episodeSteps": of_game.max_turns + 1,
    }
