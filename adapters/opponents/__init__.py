"""Opponents: what users write for them, how they are made, and how they play the enemy seats.

The public names are loaded on first use, so importing this package loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from adapters.opponents.lineup import OpponentLineup
    from adapters.opponents.onnx_export import export_onnx
    from adapters.opponents.onnx_opponent import OnnxOpponent
    from adapters.opponents.parse import frozen, mixture
    from adapters.opponents.policy import PolicyOpponent
    from adapters.opponents.pool import OpponentPool
    from adapters.opponents.protocol import Lineup, Opponent, Source
    from adapters.opponents.simple import CallableOpponent, RandomOpponent

__all__ = [
    "CallableOpponent", "Lineup", "OnnxOpponent", "Opponent", "OpponentLineup", "OpponentPool", "PolicyOpponent",
    "RandomOpponent", "Source", "export_onnx", "frozen", "mixture",
]  # fmt: skip

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lineup": ["OpponentLineup"],
        "onnx_export": ["export_onnx"],
        "onnx_opponent": ["OnnxOpponent"],
        "policy": ["PolicyOpponent"],
        "pool": ["OpponentPool"],
        "protocol": ["Lineup", "Opponent", "Source"],
        "simple": ["CallableOpponent", "RandomOpponent"],
        "parse": ["frozen", "mixture"],
    },
)
