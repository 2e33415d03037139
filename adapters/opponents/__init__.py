"""Who plays the enemy seats: what users write for opponents, what it means, and how they act.

The names below are loaded when they are first used: importing this package loads neither torch nor Stable-Baselines3.
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
