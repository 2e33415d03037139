"""Placements: ranks, shares of the win, and scores of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def ranks(worse: NDArray[Any]) -> NDArray[np.int64]:
    """Ranks (..., N), that is 1 + number of better players, from numbers (..., N) of which the smallest is the best."""
    ranked: NDArray[np.int64] = 1 + (worse[..., None, :] < worse[..., :, None]).sum(axis=-1)
    return ranked


def win_shares(ranks: NDArray[Any]) -> NDArray[np.float64]:
    """Shares of the win (..., N) from the ranks (..., N) of a game: 1 for first place, 1/m if m players share it, else 0."""
    first = ranks == 1
    shares: NDArray[np.float64] = first / first.sum(axis=-1, keepdims=True)
    return shares


def win_share(placements: Mapping[str, int], agent: str) -> float:
    """An agent's share of the win from {agent: rank}: 1 for first place, 1/m if m agents share it, else 0."""
    first = [other for other, rank in placements.items() if rank == 1]
    return 1 / len(first) if agent in first else 0.0


def pair_scores(own: Any, other: Any) -> Any:
    """1 if the own rank is better than the other, 0.5 for a tie, 0 if worse. Numbers or arrays."""
    return 0.5 + 0.5 * np.sign(np.subtract(other, own))
