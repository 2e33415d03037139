"""Recorded games of Battlesnake: frames of its engine and lines of its command-line client.

Frames are `{"Game": {...}, "Frames": [{"Turn": 0, "Snakes": [...], "Food": [...], "Hazards": [...]}, ...]}`; a snake that is
out stays listed, with its `Death`. The client's `--output` has a line for the game, one for each turn as a request of the API,
and one for the result; whoever is out is no longer listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from snake_pz.core.state import Position
from snake_pz.formats import battlesnake
from snake_pz.formats.battlesnake import MOST_SNAKES
from snake_pz.formats.fields import field, items
from snake_pz.formats.recorded import UNKNOWN, RecordedGame
from snake_pz.rules import Rules

MOST_TURNS = 100_000
"""More turns than any game has."""

_STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))


def recorded_frames(export: Mapping[str, Any]) -> RecordedGame:
    """The game of an object with `Game` and `Frames`.

    Raises:
        ValueError: a field is missing or out of its range.
    """
    low = _lower(export)
    game, frames = field(low, "game"), items(low, "frames", MOST_TURNS)
    settings = field(game, "ruleset", {})
    numbers = {key: int(value) for key, value in settings.items() if re.fullmatch("-?[0-9]{1,9}", str(value))}
    asked = {
        "id": str(field(game, "id", "")),
        "map": field(game, "map", "standard"),
        "ruleset": {
            "name": field(game, "rulesetname", field(settings, "name", "standard")),
            "settings": {
                "foodSpawnChance": numbers.get("foodspawnchance"),
                "minimumFood": numbers.get("minimumfood"),
                "hazardDamagePerTurn": numbers.get("damageperturn", numbers.get("hazarddamageperturn")),
                "royale": {"shrinkEveryNTurns": numbers.get("shrinkeverynturns")},
            },
        },
    }
    board = {"width": field(game, "width"), "height": field(game, "height")}
    requests, last = [], []
    for frame in frames:
        snakes = items(frame, "snakes", MOST_SNAKES)
        living = [snake for snake in snakes if field(snake, "death", False) is False]
        what = {"snakes": living, "food": field(frame, "food", []), "hazards": field(frame, "hazards", [])}
        requests.append({"game": asked, "turn": field(frame, "turn"), "board": board | what})
        last.append({str(field(snake, "id")): snake for snake in snakes})
    return _game(requests, last)


def recorded_lines(lines: Sequence[Mapping[str, Any]]) -> RecordedGame:
    """The game of the lines of the command-line client.

    Raises:
        ValueError: a field is missing or out of its range.
    """
    requests = [line for line in lines if "board" in line]
    if len(requests) > MOST_TURNS:
        raise ValueError(f"a game has at most {MOST_TURNS} turns, got {len(requests)}")
    return _game(requests, [{str(field(s, "id")): s for s in field(line, "board.snakes")} for line in requests])


def _game(requests: Sequence[Mapping[str, Any]], listed: Sequence[Mapping[str, Any]]) -> RecordedGame:
    """The game of requests, and of all snakes that each frame lists, those that are out too."""
    if not requests:
        raise ValueError("a recorded game has at least its start, got no frame")
    ids = battlesnake.ids(requests[0])
    rules = battlesnake.rules(requests[0], len(ids))
    positions = [battlesnake.position(request, ids) for request in requests]
    moves = []
    for before, after, snakes in zip(positions, positions[1:], listed[1:], strict=False):
        moves.append([_move(rules, before, after, number, snakes.get(snake)) for number, snake in enumerate(ids)])
    names = [str(field(listed[0][snake], "name", snake)) for snake in ids]
    return RecordedGame(rules, names, positions, moves)


def _move(rules: Rules, before: Position, after: Position, number: int, listed: Any) -> int | None:
    """From head to head; of a snake that has just gone out from where its body is listed, maybe outside the board."""
    if not before.bodies[number]:
        return UNKNOWN
    head = before.bodies[number][0]
    if after.bodies[number]:
        there = after.bodies[number][0]
    else:
        body = items(listed, "body", rules.num_cells + 2, []) if listed is not None else []
        if not body or not all(isinstance(body[0].get(key), int) for key in "xy"):
            return UNKNOWN
        there = body[0]["x"], rules.height - 1 - body[0]["y"]
    for direction, (x, y) in enumerate(_STEPS):
        reached = head[0] + x, head[1] + y
        wrapped = reached[0] % rules.width, reached[1] % rules.height
        if there in ((reached, wrapped) if rules.edge == "wrap" else (reached,)):
            return direction
    return UNKNOWN


def _lower(value: Any) -> Any:
    """The same with keys in small letters: programs write them in either way."""
    if isinstance(value, Mapping):
        return {str(key).lower(): _lower(item) for key, item in value.items()}
    return [_lower(item) for item in value] if isinstance(value, (list, tuple)) else value
