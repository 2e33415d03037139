"""Rewards of the last turn of each game."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import kernel
from snake_pz.core.state import SnakeState


@kernel
def pay(s: SnakeState, weights: tuple[float, ...], out: NDArray[np.float32]) -> None:
    """Write the rewards of the last turn into `out` (E, N). `weights` are in the order of the fields of RewardWeights."""
    food, death, kill, win, rank, step = weights
    snakes = s.alive.shape[1]
    for e in range(s.over.shape[0]):
        ended, entrants = s.just_ended[e], s.entrants[e]
        running = s.turn[e] > 0 and (ended or not s.over[e])
        for i in range(snakes):
            reward = 0.0
            died = s.just_died[e, i]
            if running and (s.alive[e, i] or died):
                reward += step
            if s.ate[e, i]:
                reward += food
            if died:
                reward += death
            if kill != 0.0:
                for j in range(snakes):
                    if j != i and s.just_died[e, j] and s.killer[e, j] == i:
                        reward += kill
            if entrants > 1 and (died or (ended and s.alive[e, i])) and (rank != 0.0 or win != 0.0):
                tied = 0
                for j in range(snakes):
                    if s.rank[e, j] == s.rank[e, i]:
                        tied += 1
                place = s.rank[e, i] + 0.5 * (tied - 1)
                reward += rank * (entrants + 1 - 2.0 * place) / (entrants - 1)
                if ended and s.rank[e, i] == 1:
                    reward += win / tied
            out[e, i] = reward
