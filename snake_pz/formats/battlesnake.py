"""Battlesnake's API, version 1: the requests that its games send to a snake (docs.battlesnake.com/api).

In a request the origin is the bottom left corner and y grows upwards; here it is the top left one and y grows downwards. Snakes
that are out are not listed, so `position` takes the ids of all snakes of the game to keep each in its place. Squads, latencies,
shouts and customizations have no meaning for the rules and are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from snake_pz.core.state import Cell, Position, SnakeState, body_cells
from snake_pz.formats.fields import field, items, short, whole
from snake_pz.rules import MAX_SIDE, Battlesnake, Rules

Request = Mapping[str, Any]
"""The JSON body of a request, as dicts and lists."""

MOVES = ("up", "right", "down", "left")
"""Names of the absolute directions 0 to 3."""
MOST_SNAKES = 64
"""More snakes than any game of the API has; a request with more is refused."""

_RULESETS: dict[str, tuple[Battlesnake, dict[str, Any]]] = {
    **{mode: (mode, {}) for mode in get_args(Battlesnake)},
    "wrapped_constrictor": ("constrictor", {"edge": "wrap"}),
}
_FOODLESS_MAP = "empty"
_MOST = MAX_SIDE * MAX_SIDE


def rules(request: Request, num_snakes: int | None = None) -> Rules:
    """The rules of the game that a request is from.

    Args:
        request: of `/start`, `/move` or `/end`.
        num_snakes: snakes that the game began with. None: as many as are listed, right only where none is out.

    Returns:
        Those of `Rules.battlesnake` with the board and the settings of the request. The food chance is a hundredth of
        `foodSpawnChance` - 1, as the official engine draws it. What maps other than `standard`, `empty` and `royale` add during
        a game is not part of them.

    Raises:
        ValueError: an unknown ruleset, or a field that is missing or out of its range.
    """
    name = field(request, "game.ruleset.name")
    if not isinstance(name, str) or name not in _RULESETS:
        raise ValueError(f"game.ruleset.name must be one of {', '.join(map(repr, _RULESETS))}, got {short(name)}")
    mode, changes = _RULESETS[name]
    game_map = field(request, "game.map", "standard")
    settings = field(request, "game.ruleset.settings", {})
    chance = whole(settings, "foodSpawnChance", 0, 100, 15)
    fields: dict[str, Any] = {
        "width": whole(request, "board.width", 2, MAX_SIDE),
        "height": whole(request, "board.height", 2, MAX_SIDE),
        "num_snakes": len(ids(request)) if num_snakes is None else num_snakes,
        "food_minimum": whole(settings, "minimumFood", 0, _MOST, 1),
        "food_chance": max(chance - 1, 0) / 100,
        "hazard_damage": whole(settings, "hazardDamagePerTurn", -30_000, 30_000, 14),
    }
    if game_map == _FOODLESS_MAP:
        fields |= {"food_minimum": 0, "food_chance": 0.0}
    if mode == "royale" or game_map == "royale":
        fields["shrink_every"] = whole(settings, "royale.shrinkEveryNTurns", 0, 2**30, 25)
    return _rules(mode, tuple((fields | changes).items()))


@lru_cache(maxsize=64)  # every request of a game has the same
def _rules(mode: Battlesnake, fields: tuple[tuple[str, Any], ...]) -> Rules:
    return Rules.battlesnake(mode, **dict(fields))


def ids(request: Request) -> list[str]:
    """The ids of the snakes that are listed, in the order of the request.

    Raises:
        ValueError: a snake without an id, or two with the same.
    """
    found = [str(field(snake, "id")) for snake in items(request, "board.snakes", MOST_SNAKES)]
    if len(set(found)) != len(found):
        raise ValueError(f"board.snakes must have an id each, got {short(found)}")
    return found


def position(request: Request, all_ids: Sequence[str] | None = None) -> Position:
    """The position that a request shows.

    Args:
        request: of `/start`, `/move` or `/end`.
        all_ids: the ids of the snakes that the game began with; one that is not listed is out. None: those that are listed.

    Returns:
        A position with the snakes in the order of `all_ids`.

    Raises:
        ValueError: a field is missing or out of its range, or a snake is listed that `all_ids` does not name.
    """
    height, listed = whole(request, "board.height", 2, MAX_SIDE), ids(request)
    order = listed if all_ids is None else list(all_ids)
    if strangers := set(listed) - set(order):
        raise ValueError(f"board.snakes lists {short(sorted(strangers))}, who did not start in this game")
    snakes = dict(zip(listed, field(request, "board.snakes"), strict=True))
    return Position(
        bodies=[_cells(snakes[snake], "body", height) if snake in snakes else [] for snake in order],
        food=_cells(request, "board.food", height, []),
        health=[whole(snakes[snake], "health", 0, 100) if snake in snakes else 0 for snake in order],
        hazards=_cells(request, "board.hazards", height, []),
        turn=whole(request, "turn", 0, 2**30),
    )


def _cells(data: Any, path: str, height: int, *default: Any) -> list[Cell]:
    cells = items(data, path, _MOST, *default)
    return [(whole(cell, "x", 0, MAX_SIDE - 1), height - 1 - whole(cell, "y", 0, MAX_SIDE - 1)) for cell in cells]


def request(
    rules: Rules,
    state: SnakeState,
    row: int,
    snake: int,
    *,
    game_id: str = "game",
    names: Sequence[str] | None = None,
    timeout: int = 500,
) -> dict[str, Any]:
    """The request that a snake gets in this position: what `rules` and `position` read.

    Args:
        rules: of the game, as `Rules.battlesnake` makes them.
        state: of E games.
        row: the game.
        snake: who gets the request, alive or not.
        game_id: id of the game.
        names: of all snakes, also their ids; None: "0", "1" and so on.
        timeout: milliseconds that the snake has for its answer.

    Raises:
        ValueError: rules that no ruleset of the API has.
    """
    names = [str(number) for number in range(rules.num_snakes)] if names is None else names
    listed = {number: _snake(rules, state, row, number, names[number]) for number in range(rules.num_snakes)}
    return {
        "game": {
            "id": game_id,
            "ruleset": {
                "name": _ruleset(rules),
                "version": "v1.2.3",
                "settings": {
                    "foodSpawnChance": round(100 * rules.food_chance) + (rules.food_chance > 0),
                    "minimumFood": rules.food_minimum,
                    "hazardDamagePerTurn": rules.hazard_damage,
                    "royale": {"shrinkEveryNTurns": rules.shrink_every},
                },
            },
            "map": "royale" if rules.shrink_every else "standard",
            "timeout": timeout,
            "source": "",
        },
        "turn": int(state.turn[row]),
        "board": {
            "height": rules.height,
            "width": rules.width,
            "food": _points(rules, _listed(state.food[row])),
            "hazards": _points(rules, _listed(state.hazard[row])),
            "snakes": [listed[number] for number in np.flatnonzero(state.alive[row]).tolist()],
        },
        "you": listed[snake],
    }


def _ruleset(rules: Rules) -> str:
    """The name of the ruleset that has these rules, whatever its settings."""
    for name, (mode, changes) in _RULESETS.items():
        settings = ("width", "height", "num_snakes", "food_minimum", "food_chance", "hazard_damage", "shrink_every", "start")
        given: dict[str, Any] = {key: getattr(rules, key) for key in settings}
        shrinks = mode == "royale"
        if shrinks == (rules.shrink_every > 0) and Rules.battlesnake(mode, **(given | changes)) == rules:
            return name
    raise ValueError(f"no ruleset of Battlesnake's API has these rules: expected those of Rules.battlesnake, got {rules}")


def _snake(rules: Rules, state: SnakeState, row: int, number: int, name: str) -> dict[str, Any]:
    body = _points(rules, [cell for cell in body_cells(state, row, number).tolist() if cell >= 0])
    return {
        "id": name,
        "name": name,
        "latency": "0",
        "health": int(state.health[row, number]),
        "body": body,
        "head": body[0] if body else None,
        "length": len(body),
        "shout": "",
        "squad": "",
        "customizations": {"color": "#888888", "head": "default", "tail": "default"},
    }


def _listed(counts: np.ndarray[Any, Any]) -> list[int]:
    """(K,) counts -> the cells, each as often as it counts."""
    cells: list[int] = np.repeat(np.arange(len(counts)), counts).tolist()
    return cells


def _points(rules: Rules, cells: Sequence[int]) -> list[dict[str, int]]:
    return [{"x": cell % rules.width, "y": rules.height - 1 - cell // rules.width} for cell in cells]
