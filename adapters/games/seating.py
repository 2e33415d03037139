"""The seating of agents: learner seats, the shuffle of every game, and the seeds they are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np


def fresh_seed() -> int:
    """An environment seed from the operating system's entropy."""
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy


def first_seating(agents: list[Any], learners: int | Literal["all"] | Sequence[str]) -> tuple[list[Any], int, bool]:
    """The seating before the first game.

    Args:
        agents: all agents.
        learners: the number of learning agents, "all", or their names.

    Returns:
        The agents in seat order, the number of learner seats, and whether agents are shuffled over the seats in every game.

    Raises:
        ValueError: `learners` is out of range, or names an unknown agent or one agent twice.
    """
    if learners == "all":
        return list(agents), len(agents), True
    if isinstance(learners, int):
        if not 0 <= learners <= len(agents):
            raise ValueError(f"learners must be from 0 to {len(agents)}, the number of agents, got {learners}")
        return list(agents), learners, True
    if isinstance(learners, str):
        raise ValueError(f"learners must be a number, 'all' or a list of agent names, got {learners!r}: write [{learners!r}]")
    names = list(learners)
    if unknown := [name for name in names if name not in agents]:
        raise ValueError(f"learners must be among the agents {agents}, got {unknown}")
    if len(set(names)) != len(names):
        raise ValueError(f"learners must name each agent once, got {names}")
    return names + [agent for agent in agents if agent not in names], len(names), False


def next_game(env_seed: int, game: int, seats: int) -> tuple[int, list[int]]:
    """The seed and the shuffle of one game of an environment, from `SeedSequence(env_seed, spawn_key=(game,))`.

    Args:
        env_seed: seed of the environment.
        game: number of the game since the environment was seeded, from 0.
        seats: N.

    Returns:
        The 32-bit seed for the environment's `reset`, and the index of the agent on each seat, for games that shuffle them.
    """
    game_seed, *keys = np.random.SeedSequence(env_seed, spawn_key=(game,)).generate_state(1 + seats, np.uint32).tolist()
    return game_seed, sorted(range(seats), key=keys.__getitem__)


def env_seeds(sequence: np.random.SeedSequence, num_games: int) -> list[int]:
    """The 64-bit seeds of `num_games` environments, for `GameBatch.reset`."""
    seeds: list[int] = sequence.generate_state(num_games, np.uint64).tolist()
    return seeds
