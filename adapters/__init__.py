"""Stable-Baselines3 environments from multi-agent games: your agent learns, opponents play the other seats.

The names below are loaded when they are first used, so that importing this package loads neither torch nor
Stable-Baselines3.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adapters.buffers import ActiveDictReplayBuffer, ActiveDictRolloutBuffer, ActiveReplayBuffer, ActiveRolloutBuffer, Rows
    from adapters.curry import CurryVecEnv
    from adapters.lineup import Lineup
    from adapters.maskable_buffers import ActiveMaskableDictRolloutBuffer, ActiveMaskableRolloutBuffer
    from adapters.matches import Matches, Turn, View
    from adapters.opponents import Opponent
    from adapters.pool import OpponentPool
    from adapters.sb3 import make_sb3_env
    from adapters.specs import frozen, mixture, resolve
    from adapters.testing import curried_env_test
    from adapters.together import SharedGame

_HOMES = {
    "ActiveDictReplayBuffer": "adapters.buffers",
    "ActiveDictRolloutBuffer": "adapters.buffers",
    "ActiveMaskableDictRolloutBuffer": "adapters.maskable_buffers",
    "ActiveMaskableRolloutBuffer": "adapters.maskable_buffers",
    "ActiveReplayBuffer": "adapters.buffers",
    "ActiveRolloutBuffer": "adapters.buffers",
    "CurryVecEnv": "adapters.curry",
    "Lineup": "adapters.lineup",
    "Matches": "adapters.matches",
    "Opponent": "adapters.opponents",
    "OpponentPool": "adapters.pool",
    "Rows": "adapters.buffers",
    "SharedGame": "adapters.together",
    "Turn": "adapters.matches",
    "View": "adapters.matches",
    "curried_env_test": "adapters.testing",
    "frozen": "adapters.specs",
    "make_sb3_env": "adapters.sb3",
    "mixture": "adapters.specs",
    "resolve": "adapters.specs",
}

__all__ = [
    "ActiveDictReplayBuffer",
    "ActiveDictRolloutBuffer",
    "ActiveMaskableDictRolloutBuffer",
    "ActiveMaskableRolloutBuffer",
    "ActiveReplayBuffer",
    "ActiveRolloutBuffer",
    "CurryVecEnv",
    "Lineup",
    "Matches",
    "Opponent",
    "OpponentPool",
    "Rows",
    "SharedGame",
    "Turn",
    "View",
    "curried_env_test",
    "frozen",
    "make_sb3_env",
    "mixture",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
