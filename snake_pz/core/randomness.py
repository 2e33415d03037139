"""Counter-based random numbers: every draw is a function of (game seed, turn, index), so a game is rules, seed and actions."""

from __future__ import annotations

import numpy as np

from snake_pz.core.kernel import int64, kernel


@kernel
def mix(x: np.uint64) -> np.uint64:
    """A bijection of 64-bit numbers whose output bits all depend on all input bits.

    The finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def turn_key(seed: np.uint64, turn: int) -> np.uint64:
    """The key of all draws of one turn of one game."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    return mix(mix(np.uint64(seed) + golden) ^ mix((np.uint64(turn) + np.uint64(1)) * golden))


@kernel
def draw(key: np.uint64, index: int) -> np.uint64:
    """The index-th 64-bit number of a key."""
    return mix(np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(index) + np.uint64(1)))


@kernel
def below(bits: np.uint64, bound: int) -> int:
    """A number in 0..bound-1 from 64 random bits; its bias is under bound / 2**32."""
    return int64(((np.uint64(bits) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def unit(bits: np.uint64) -> float:
    """A number in [0, 1) from 64 random bits, 53 of them used."""
    return np.float64(np.uint64(bits) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
