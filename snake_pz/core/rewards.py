"""Rewards of the last turn of each game."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import kernel
from snake_pz.core.state import SnakeState, read_only
from snake_pz.reward_weights import RewardFunction


class Events(NamedTuple):
    """What happened to E games of N snakes on the last turn."""

    moved: NDArray[np.bool_]  # (E, N) began the turn alive, in a game that was not over
    ate: NDArray[np.bool_]  # (E, N)
    died: NDArray[np.bool_]  # (E, N)
    kills: NDArray[np.int64]  # (E, N) other snakes that died on this turn with this snake as their only killer
    won: NDArray[np.float64]  # (E, N) 1 for first place if the game ended on this turn, 1/m for each of m that tie, else 0
    ended: NDArray[np.bool_]  # (E,) the game ended on this turn


def events(before: SnakeState, after: SnakeState) -> Events:
    """The events between two states of the same games, one turn apart."""
    moved = before.alive & ~before.over[:, None]
    died, snakes = after.just_died & moved, np.arange(moved.shape[1])
    killers = np.where(died & (after.killer != snakes), after.killer, -1)
    ended = after.just_ended & ~before.over
    first = ended[:, None] & (after.rank == 1) & (after.entrants > 1)[:, None]
    return Events(
        moved=moved,
        ate=after.ate & moved,
        died=died,
        kills=(killers[:, :, None] == snakes).sum(axis=1),
        won=first / np.maximum(first.sum(axis=1, keepdims=True), 1),
        ended=ended,
    )


def pay_by(function: RewardFunction, before: SnakeState, after: SnakeState, out: NDArray[np.float32]) -> None:
    """Write what a user's function pays for the last turn into `out` (E, N): zero for snakes that did not move.

    Raises:
        ValueError: it did not return a finite number for each snake of each game.
    """
    happened = events(before, after)
    rewards = np.asarray(function(read_only(before), happened, read_only(after)))
    if rewards.shape != out.shape or rewards.dtype.kind not in "biuf":
        raise ValueError(
            f"a reward function must return numbers of shape (games, snakes) = {out.shape}, got {rewards.dtype} {rewards.shape}"
        )
    with np.errstate(over="ignore"):  # to infinity, which is refused
        out[:] = np.where(happened.moved, rewards, 0)
    if not np.isfinite(out).all():
        game, snake = np.argwhere(~np.isfinite(out))[0].tolist()
        raise ValueError(f"a reward function must return finite numbers, got {rewards[game, snake]} for snake {snake}")


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
