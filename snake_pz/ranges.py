"""Ranges of numbers that users set, as data, and their check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """The values allowed for a numeric setting.

    Attributes:
        low: smallest value.
        high: largest value.
        whole: whether the value must be an int.
        optional: whether the value may be None.
    """

    low: float
    high: float = math.inf
    whole: bool = True
    optional: bool = False


FPS = Range(0.1, 1000, whole=False)
"""Turns per second at which a game may be shown or written."""


def check_ranges(settings: Any, ranges: Mapping[str, Range]) -> None:
    """Check the attributes of `settings` that have a range.

    Raises:
        ValueError: a value is out of its range or of the wrong type.
    """
    for name, allowed in ranges.items():
        check_number(name, getattr(settings, name), allowed)


def check_number(name: str, value: Any, allowed: Range) -> None:
    """Check one number.

    Raises:
        ValueError: it is out of its range or of the wrong type.
    """
    if value is None and allowed.optional:
        return
    if isinstance(value, bool) or not isinstance(value, int if allowed.whole else (int, float)):
        raise ValueError(f"{name} must be {'an int' if allowed.whole else 'a number'}, got {value!r}")
    if value < allowed.low:
        raise ValueError(f"{name} must be >= {allowed.low}, got {value}")
    if not value <= allowed.high:  # nor is NaN
        raise ValueError(f"{name} must be <= {allowed.high}, got {value}")
