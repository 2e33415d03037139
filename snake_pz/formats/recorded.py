"""A whole game that another program recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from snake_pz.core.state import Position
from snake_pz.rules import Rules

INVALID, UNKNOWN = -1, None
"""Of moves: none of the four directions, and one that the recording does not tell."""


class RecordedGame(NamedTuple):
    """What a recording says, turn by turn."""

    rules: Rules
    names: Sequence[str]  # of the players by snake
    positions: Sequence[Position]  # at the start and after every turn; the body of a snake that is out may be empty
    moves: Sequence[Sequence[int | None]]  # of every turn by snake: absolute directions, INVALID or UNKNOWN
