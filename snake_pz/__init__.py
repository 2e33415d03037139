"""Multi-snake: a PettingZoo parallel environment and the batch engine under it."""

from pettingzoo import register as _register

from snake_pz.bots import BOTS, make_bot
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.rewards import RewardWeights
from snake_pz.core.state import Position, SnakeState
from snake_pz.env import SnakeParallelEnv
from snake_pz.rules import Rules

__version__ = "0.1.0"

__all__ = ["BOTS", "Position", "RewardWeights", "Rules", "SnakeEngine", "SnakeParallelEnv", "SnakeState", "make_bot"]

_register("parallel", "snake_v0", entry_point="snake_pz.snake_v0:parallel_env")
_register("aec", "snake_v0", entry_point="snake_pz.snake_v0:env")
