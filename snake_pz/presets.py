"""The rule sets that have a name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from snake_pz.rules import Battlesnake, Rules

PRESETS: dict[str, Callable[..., Rules]] = {
    "classic": Rules.classic,
    "battlesnake": Rules.battlesnake,
    **{f"battlesnake:{mode}": partial(Rules.battlesnake, mode) for mode in get_args(Battlesnake)},
    "hungry_geese": Rules.hungry_geese,
}
"""Rules by the names that users give them."""


def preset(name: str, **changes: Any) -> Rules:
    """The rules of this name, with those fields changed that are not None.

    Raises:
        ValueError: no such rules, or a field out of its range.
    """
    if name not in PRESETS:
        raise ValueError(f"rules must be one of {', '.join(map(repr, PRESETS))}, got {name!r}")
    return PRESETS[name](**{field: value for field, value in changes.items() if value is not None})
