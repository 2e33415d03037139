"""A toy environment, and small models of every algorithm trained on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import sb3_contrib as contrib
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3

from adapters.networks import policy_kwargs
from adapters.opponents.parse import by_seat
from adapters.opponents.resolver import Resolver
from adapters.opponents.simple import RandomOpponent

torch.set_num_threads(1)

VECTOR = spaces.Box(-1, 1, (6,), np.float32)
BOARD = spaces.Box(0, 255, (7, 11, 11), np.uint8)
PICTURE = spaces.Box(0, 255, (40, 48, 3), np.uint8)
FOUR = spaces.Discrete(4)
FORCE = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
B = 64
SLOTS = np.arange(B)


class Toy(gymnasium.Env[Any, Any]):
    """Random observations, rewards that depend on the action, episodes of ten steps."""

    def __init__(self, observation_space: spaces.Space[Any] = VECTOR, action_space: spaces.Space[Any] = FOUR) -> None:
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        return self.observation_space.sample(), float(np.sum(action)), False, self.turn == 10, {}

    def action_masks(self) -> np.ndarray:
        return np.array([True, False, True, False])


ON: dict[str, Any] = {"n_steps": 16, "device": "cpu", "seed": 0}
OFF: dict[str, Any] = {"learning_starts": 16, "buffer_size": 100, "batch_size": 8, "device": "cpu", "seed": 0}
LSTM: dict[str, Any] = {"lstm_hidden_size": 8, "net_arch": [], "ortho_init": False}
MODELS: dict[str, Callable[[], Any]] = {
    "ppo": lambda: PPO("MlpPolicy", Toy(), batch_size=16, n_epochs=1, **ON),
    "ppo-box": lambda: PPO("MlpPolicy", Toy(action_space=FORCE), batch_size=16, n_epochs=1, **ON),
    "ppo-sde": lambda: PPO("MlpPolicy", Toy(action_space=FORCE), use_sde=True, batch_size=16, n_epochs=1, **ON),
    "ppo-multi": lambda: PPO("MlpPolicy", Toy(action_space=spaces.MultiDiscrete([2, 3])), batch_size=16, n_epochs=1, **ON),
    "ppo-grid": lambda: PPO("CnnPolicy", Toy(BOARD), policy_kwargs=policy_kwargs(), batch_size=16, n_epochs=1, **ON),
    "ppo-dict": lambda: PPO("MultiInputPolicy", Toy(spaces.Dict(a=VECTOR, b=FOUR)), batch_size=16, n_epochs=1, **ON),
    "a2c": lambda: A2C("MlpPolicy", Toy(), **ON),
    "dqn": lambda: DQN("MlpPolicy", Toy(), **OFF),
    "qrdqn": lambda: contrib.QRDQN("MlpPolicy", Toy(), **OFF),
    "sac": lambda: SAC("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "sac-sde": lambda: SAC("MlpPolicy", Toy(action_space=FORCE), use_sde=True, **OFF),
    "td3": lambda: TD3("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "ddpg": lambda: DDPG("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "tqc": lambda: contrib.TQC("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "recurrent": lambda: contrib.RecurrentPPO("MlpLstmPolicy", Toy(), policy_kwargs=LSTM, batch_size=16, n_epochs=1, **ON),
    "maskable": lambda: contrib.MaskablePPO("MlpPolicy", Toy(), batch_size=16, n_epochs=1, **ON),
}


class Trained:
    """name -> (model after 32 steps, its checkpoint), made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, tuple[Any, Path]] = {}

    def __call__(self, name: str) -> tuple[Any, Path]:
        if name not in self.made:
            model = MODELS[name]().learn(32)
            model.save(self.folder / f"{name}.zip")
            self.made[name] = model, self.folder / f"{name}.zip"
        return self.made[name]


def observe(space: spaces.Space[Any], seed: int = 0, rows: int = B) -> Any:
    rng = np.random.default_rng(seed)
    if isinstance(space, spaces.Dict):
        return {key: observe(one, seed, rows) for key, one in space.items()}
    if isinstance(space, spaces.Discrete):
        return rng.integers(space.n, size=rows)
    if space.dtype == np.uint8:
        return rng.integers(0, 256, (rows, *space.shape), dtype=np.uint8)
    return rng.uniform(-1, 1, (rows, *space.shape)).astype(np.float32)


def act(opponent: Any, observations: Any = None, masks: Any = None) -> np.ndarray:
    observations = observe(opponent.observation_space) if observations is None else observations
    return opponent.act(observations, SLOTS, masks)


def make_bot(name: str) -> RandomOpponent:
    if name not in ("random", "greedy"):
        raise ValueError(f"unknown bot {name!r}: there are greedy, random")
    return RandomOpponent(VECTOR, FOUR)


WORLD: dict[str, Any] = {"observation_space": VECTOR, "action_space": FOUR, "make_bot": make_bot, "device": "cpu"}
"""The settings of a `Resolver`."""


def resolve(word: Any, **world: Any) -> Any:
    """The opponent that a word means."""
    return Resolver(**world).make(word)


def resolve_seats(words: Any, *, enemy_agents: Any = None, num_enemies: int, **world: Any) -> list[Any]:
    """The opponents on the enemy seats."""
    resolver = Resolver(**world)
    return [resolver.make(word) for word in by_seat(words, enemy_agents, num_enemies)]
