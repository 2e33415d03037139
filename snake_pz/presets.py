"""Rule sets by name."""

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
"""Constructors of rules by the name that users type."""


def preset(name: str, **changes: Any) -> Rules:
    """The named rules with the given fields changed; None leaves a field as it is.

    Raises:
        ValueError: an unknown name or field, or a value out of its range.
    """
    if name not in PRESETS:
        raise ValueError(f"rules must be one of {', '.join(map(repr, PRESETS))}, got {name!r}")
    return PRESETS[name](**{field: value for field, value in changes.items() if value is not None})
