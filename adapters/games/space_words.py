"""What two spaces differ in, where their descriptions are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces


def hidden_difference(one: Space[Any], other: Space[Any]) -> str:
    """A clause for the end of a sentence about two spaces, "" unless they differ and are printed alike."""
    if one == other or str(one) != str(other):
        return ""
    return f" (these are printed alike, but differ in {_difference(one, other)})"


def _difference(one: Space[Any], other: Space[Any]) -> str:
    if type(one) is not type(other):
        return f"their class, {type(one).__module__} against {type(other).__module__}"
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict) and list(one) == list(other):
        key = next(key for key in one if one[key] != other[key])
        return f"{key!r}: {_difference(one[key], other[key])}"
    for name in ("shape", "dtype", "low", "high", "nvec", "start", "n", "spaces"):
        first, second = getattr(one, name, None), getattr(other, name, None)
        if not np.array_equal(np.asarray(first, object), np.asarray(second, object)):
            if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.shape == second.shape:
                where = tuple(np.argwhere(first != second)[0].tolist())
                return f"{name}{list(where)}, {first[where]} against {second[where]}"
            return f"{name}, {first} against {second}"
    return "what they are equal by"
