"""Multi-snake: a PettingZoo parallel environment on a batch engine.

The public names are loaded on first use, so importing this package loads neither numba nor pygame.
"""

from typing import TYPE_CHECKING

import gymnasium as _gymnasium
import lazy_loader
from pettingzoo import register as _register

if TYPE_CHECKING:
    from snake_pz.bots import BOTS, make_bot
    from snake_pz.core.encodings import Encoding, register_encoding
    from snake_pz.core.engine import SnakeEngine
    from snake_pz.core.state import Position, SnakeState, body_cells, head_cells
    from snake_pz.env import SnakeParallelEnv
    from snake_pz.reward_weights import RewardWeights
    from snake_pz.rules import Rules

__version__ = "0.1.0"

__all__ = [
    "BOTS",
    "Encoding",
    "Position",
    "RewardWeights",
    "Rules",
    "SnakeEngine",
    "SnakeParallelEnv",
    "SnakeState",
    "body_cells",
    "head_cells",
    "make_bot",
    "register_encoding",
]

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=["snake_v0"],
    submod_attrs={
        "bots": ["BOTS", "make_bot"],
        "core.encodings": ["Encoding", "register_encoding"],
        "core.engine": ["SnakeEngine"],
        "core.state": ["Position", "SnakeState", "body_cells", "head_cells"],
        "env": ["SnakeParallelEnv"],
        "reward_weights": ["RewardWeights"],
        "rules": ["Rules"],
    },
)

_register("parallel", "snake_v0", entry_point="snake_pz.snake_v0:parallel_env")
_register("aec", "snake_v0", entry_point="snake_pz.snake_v0:env")
_gymnasium.register(
    "snake_pz/SnakeVsBots-v0", entry_point="adapters.gym:snake_vs_bots", vector_entry_point="adapters.gym:snake_vs_bots_vec"
)
