"""Fields of JSON that came from outside, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_MISSING = object()


def field(data: Any, path: str, default: Any = _MISSING) -> Any:
    """The value at a path of keys.

    Args:
        data: what JSON became in Python.
        path: keys joined by dots, `game.ruleset.name`.
        default: the value if a key is missing or null.

    Raises:
        ValueError: a key is missing and there is no default.
    """
    value = data
    for key in path.split("."):
        if not isinstance(value, (dict, Mapping)) or value.get(key) is None:  # a dict is found out ten times as fast
            if default is _MISSING:
                raise ValueError(f"{path} is missing")
            return default
        value = value[key]
    return value


def whole(data: Any, path: str, low: int, high: int, default: Any = _MISSING) -> int:
    """The whole number at a path, see `field`.

    Raises:
        ValueError: it is missing without a default, no whole number, or not from `low` to `high`.
    """
    value = field(data, path, default)
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1 or not low <= value <= high:
        raise ValueError(f"{path} must be a whole number from {low} to {high}, got {short(value)}")
    return int(value)


def items(data: Any, path: str, most: int, default: Any = _MISSING) -> Sequence[Any]:
    """The list at a path, see `field`.

    Raises:
        ValueError: it is missing without a default, no list, or has more than `most` entries.
    """
    value = field(data, path, default)
    if not isinstance(value, (list, tuple)) or len(value) > most:
        got = f"{len(value)} entries" if isinstance(value, (list, tuple)) else short(value)
        raise ValueError(f"{path} must be a list of at most {most} entries, got {got}")
    return value


def short(value: Any) -> str:
    """Its text, in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
