"""Placements: ranks, what first place is worth, and who was above whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def ranks(worse: NDArray[Any]) -> NDArray[np.int64]:
    """(..., N) a number for each, the least is the best -> (..., N) 1 + how many are better; equal ones tie."""
    ranked: NDArray[np.int64] = 1 + (worse[..., None, :] < worse[..., :, None]).sum(axis=-1)
    return ranked


def win_shares(ranks: NDArray[Any]) -> NDArray[np.float64]:
    """(..., N) ranks of the players of a game -> 1 for first place, 1/m for each of m who tie for it."""
    first = ranks == 1
    shares: NDArray[np.float64] = first / first.sum(axis=-1, keepdims=True)
    return shares


def win_share(placements: Mapping[str, int], agent: str) -> float:
    """The share of the win that an agent has by the {agent: rank} of its game: 1 for first place, 1/m for each of m who tie."""
    first = [other for other, rank in placements.items() if rank == 1]
    return 1 / len(first) if agent in first else 0.0


def pair_scores(own: Any, other: Any) -> Any:
    """1 where the own rank is above the other, 0.5 for a tie, 0 below; numbers or arrays."""
    return 0.5 + 0.5 * np.sign(np.subtract(other, own))
