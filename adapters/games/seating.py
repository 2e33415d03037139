"""Who sits where: the learner seats, the shuffle of every game, and the seeds that these are drawn from."""

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
    """Who sits where before the first game, how many of them learn, and whether they are shuffled in each game."""
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
    """What the game-th game of an environment is drawn from.

    Args:
        env_seed: the environment's own seed.
        game: 0 for the first game after the environment was seeded.
        seats: N.

    Returns:
        (game_seed, order): the 32-bit number that the environment's `reset` gets, and a permutation of the agents' numbers by
        seat, for games whose agents are shuffled. Both come from `SeedSequence(env_seed, spawn_key=(game,))`.
    """
    game_seed, *keys = np.random.SeedSequence(env_seed, spawn_key=(game,)).generate_state(1 + seats, np.uint32).tolist()
    return game_seed, sorted(range(seats), key=keys.__getitem__)


def env_seeds(sequence: np.random.SeedSequence, num_games: int) -> list[int]:
    """The seeds of so many environments, 64 bits each, as `GameBatch.reset` takes them."""
    seeds: list[int] = sequence.generate_state(num_games, np.uint64).tolist()
    return seeds
