"""Opponents: what users write for them, how they are made, and how they play the enemy seats.

The public names are loaded on first use, so importing this package loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from adapters.opponents.lineup import OpponentLineup
    from adapters.opponents.parse import frozen, mixture
    from adapters.opponents.policy import PolicyOpponent
    from adapters.opponents.pool import OpponentPool
    from adapters.opponents.protocol import Lineup, Opponent, Source
    from adapters.opponents.simple import CallableOpponent, RandomOpponent

__all__ = [
    "CallableOpponent", "Lineup", "Opponent", "OpponentLineup", "OpponentPool", "PolicyOpponent", "RandomOpponent", "Source",
    "frozen", "mixture",
]  # fmt: skip

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lineup": ["OpponentLineup"],
        "policy": ["PolicyOpponent"],
        "pool": ["OpponentPool"],
        "protocol": ["Lineup", "Opponent", "Source"],
        "simple": ["CallableOpponent", "RandomOpponent"],
        "parse": ["frozen", "mixture"],
    },
)
