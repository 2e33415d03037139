"""Sets of cells as bits of 64-bit words.

A set is a row (W + 2,) uint64: cell c is bit c % 64 of word c // 64 + 1. The first and the last word are always 0, so that
words can be shifted into each other without asking which is the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from snake_pz.core.kernel import inlined_kernel

Bits = NDArray[np.uint64]
"""(..., W + 2) sets."""


def words_for(cells: int) -> int:
    """W, the words that hold a bit for each cell."""
    return -(-cells // 64)


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones = cast("Callable[[np.uint64], np.uint64]", _ones)
"""The number of bits that are set in a word, by the processor's own instruction."""


@inlined_kernel
def holds(bits: Bits, row: int, cell: int) -> bool:
    """Whether a cell is in a set."""
    return bool((bits[row, (cell >> 6) + 1] >> np.uint64(cell & 63)) & np.uint64(1) != np.uint64(0))


@inlined_kernel
def put(bits: Bits, row: int, cell: int) -> None:
    """Put a cell into a set."""
    bits[row, (cell >> 6) + 1] |= np.uint64(1) << np.uint64(cell & 63)


@inlined_kernel
def remove(bits: Bits, row: int, cell: int) -> None:
    """Take a cell out of a set."""
    bits[row, (cell >> 6) + 1] &= ~(np.uint64(1) << np.uint64(cell & 63))
