"""Stable-Baselines3 environments from multi-agent games: your agent learns, opponents play the other seats.

The names below are loaded when they are first used, so that importing this package loads neither torch nor
Stable-Baselines3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from adapters.evaluation.evaluate import play_games, record_game
    from adapters.evaluation.tournament import tournament
    from adapters.gym import make_gym_env, make_gym_vec
    from adapters.networks import policy_kwargs, snake_policy_kwargs
    from adapters.opponents.models import load_model
    from adapters.opponents.onnx_export import export_onnx
    from adapters.opponents.parse import frozen, mixture
    from adapters.opponents.pool import OpponentPool
    from adapters.opponents.protocol import Opponent, Source
    from adapters.sb3 import make_sb3_env
    from adapters.serving.moves import MoveMaker, best_move
    from adapters.testing.contract import curried_env_test
    from adapters.training.data_parallel import DataParallel, run_processes, seed_of_rank
    from adapters.training.imitation import imitate
    from adapters.training.selfplay import SelfPlayCallback
    from adapters.vec_env.buffers import (
        ActiveDictReplayBuffer,
        ActiveDictRolloutBuffer,
        ActiveReplayBuffer,
        ActiveRolloutBuffer,
    )
    from adapters.vec_env.curry import CurryVecEnv
    from adapters.vec_env.maskable_buffers import ActiveMaskableDictRolloutBuffer, ActiveMaskableRolloutBuffer
    from adapters.vec_env.shared_game import SharedGame

__all__ = [
    "ActiveDictReplayBuffer",
    "ActiveDictRolloutBuffer",
    "ActiveMaskableDictRolloutBuffer",
    "ActiveMaskableRolloutBuffer",
    "ActiveReplayBuffer",
    "ActiveRolloutBuffer",
    "CurryVecEnv",
    "DataParallel",
    "MoveMaker",
    "Opponent",
    "OpponentPool",
    "SelfPlayCallback",
    "SharedGame",
    "Source",
    "best_move",
    "curried_env_test",
    "export_onnx",
    "frozen",
    "imitate",
    "load_model",
    "make_gym_env",
    "make_gym_vec",
    "make_sb3_env",
    "mixture",
    "play_games",
    "policy_kwargs",
    "record_game",
    "run_processes",
    "seed_of_rank",
    "snake_policy_kwargs",
    "tournament",
]

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "evaluation.evaluate": ["play_games", "record_game"],
        "evaluation.tournament": ["tournament"],
        "gym": ["make_gym_env", "make_gym_vec"],
        "networks": ["policy_kwargs", "snake_policy_kwargs"],
        "opponents.models": ["load_model"],
        "opponents.onnx_export": ["export_onnx"],
        "opponents.pool": ["OpponentPool"],
        "opponents.protocol": ["Opponent", "Source"],
        "opponents.parse": ["frozen", "mixture"],
        "sb3": ["make_sb3_env"],
        "serving.moves": ["MoveMaker", "best_move"],
        "testing.contract": ["curried_env_test"],
        "training.data_parallel": ["DataParallel", "run_processes", "seed_of_rank"],
        "training.imitation": ["imitate"],
        "training.selfplay": ["SelfPlayCallback"],
        "vec_env.buffers": ["ActiveDictReplayBuffer", "ActiveDictRolloutBuffer", "ActiveReplayBuffer", "ActiveRolloutBuffer"],
        "vec_env.curry": ["CurryVecEnv"],
        "vec_env.maskable_buffers": ["ActiveMaskableDictRolloutBuffer", "ActiveMaskableRolloutBuffer"],
        "vec_env.shared_game": ["SharedGame"],
    },
)
