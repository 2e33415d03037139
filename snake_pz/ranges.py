"""Ranges of numbers that users set, and their checks."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


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


def whole_number(name: str, value: Any, low: float, high: float = math.inf) -> int:
    """`value` as an int; it may be one of numpy's, but no bool.

    Raises:
        ValueError: it is not a whole number from `low` to `high`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if not low <= number <= high:
        raise ValueError(
            f"{name} must be " + (f">= {low}" if high == math.inf else f"between {low} and {high}") + f", got {value}"
        )
    return number


def game_seed(seed: Any) -> int:
    """The seed of one game as an int.

    Raises:
        ValueError: it is not a whole number from 0 to 2**64 - 1.
    """
    number = whole_number("seed", seed, -math.inf)
    if not 0 <= number < 2**64:
        raise ValueError(f"seed must be between 0 and 2**64 - 1, got {seed}")
    return number


def seed_sequence(seed: int | None) -> np.random.SeedSequence:
    """Where a stream of seeds begins; None: with fresh entropy.

    Raises:
        ValueError: the seed is not a whole number of at least 0.
    """
    return np.random.SeedSequence(None if seed is None else whole_number("seed", seed, 0))
