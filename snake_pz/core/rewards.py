"""RewardWeights: what a turn's events are worth, as (E, N) float32."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from snake_pz.core.state import SnakeState
from snake_pz.rules import check_names


@dataclasses.dataclass(frozen=True)
class RewardWeights:
    """What each event is worth. Every component is paid only on the turn of its event, and only to the snake it befalls."""

    food: float = 0.5
    """For eating."""
    death: float = -1.0
    """For dying, whatever the cause."""
    kill: float = 0.0
    """For each snake that dies on this turn and for which this one alone is responsible; not for its own death."""
    win: float = 1.0
    """For first place when the game ends by the rules, shared equally by those who tie for it. Not paid in a game that one
    snake started alone, nor when an environment's `max_cycles` cuts the game short."""
    rank: float = 0.0
    """Times a number from 1 (first) to -1 (last), evenly spaced and for ties the mean of the places they share, so that it
    sums to zero over all snakes. Paid when the place is settled: at death, or at the end."""
    step: float = 0.0
    """For each turn begun alive."""

    def __post_init__(self) -> None:
        """Check every field."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise ValueError(f"reward weight {field.name} must be a finite number, got {value!r}")

    @cached_property
    def codes(self) -> tuple[float, ...]:
        """The weights for the kernel, in the order of the fields."""
        return tuple(float(getattr(self, field.name)) for field in dataclasses.fields(self))


PRESETS: dict[str, RewardWeights] = {
    "shaped": RewardWeights(),
    "rank": RewardWeights(food=0.0, death=0.0, win=0.0, rank=1.0),
}
"""`shaped` is the default. `rank` is zero-sum over the placements and nothing else."""


def reward_weights(spec: RewardWeights | str | Mapping[str, float] | None) -> RewardWeights:
    """RewardWeights from what users write: an instance, a preset's name, a mapping of weights (others as in `shaped`), None.

    Raises:
        ValueError: no such preset or weight.
    """
    if spec is None:
        return PRESETS["shaped"]
    if isinstance(spec, RewardWeights):
        return spec
    if isinstance(spec, str):
        if spec not in PRESETS:
            raise ValueError(f"rewards must be one of {', '.join(map(repr, PRESETS))}, RewardWeights or a dict, got {spec!r}")
        return PRESETS[spec]
    if isinstance(spec, Mapping):
        check_names("reward weight", spec, [field.name for field in dataclasses.fields(RewardWeights)])
        return RewardWeights(**spec)
    raise ValueError(f"rewards must be RewardWeights, a preset's name or a dict of weights, got {type(spec).__name__}")


def write_rewards(state: SnakeState, weights: RewardWeights, out: NDArray[np.float32]) -> None:
    """Write what the last turn of each game paid into `out` (E, N)."""
    pay(state, weights.codes, out)


@njit(cache=True, nogil=True)
def pay(s: Any, weights: Any, out: Any) -> None:
    """The kernel of `write_rewards`; `weights` in the order of the fields of RewardWeights."""
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
