"""Who comes first to which cells: a flood from all heads at once, on words of bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots.search.bits import Bits, words_for
from snake_pz.bots.search.line import CELL, EXTRA, FATE, HEAD, LIVES, SNAKES, TAIL, Line, length_of
from snake_pz.core.kernel import inlined_kernel, int64
from snake_pz.core.rule_codes import Growth, RuleCodes
from snake_pz.rules import Rules

MAX_WIDTH = 63
"""Cells in a row so that neighbouring words are enough to shift a set by a row."""
MAX_CELLS = 640
"""Cells of a board: kernels are compiled for each number of words, up to 10."""

_PATIENCE = 3  # turns without a new cell that end the flood; tails may still give way
_ONE = np.uint64(1)


class Board(NamedTuple):
    """Sets of cells that depend on the size of the board alone."""

    every: Bits  # (W + 2,) all cells
    not_left: Bits  # (W + 2,) all but those of the first column
    not_right: Bits  # (W + 2,) all but those of the last column
    column: NDArray[np.int16]  # (K,)
    row: NDArray[np.int16]  # (K,)
    width: int
    height: int
    wrap: bool
    words: tuple[int, ...]  # W zeros, and
    snakes: tuple[int, ...]  # N zeros: their lengths are known when kernels are compiled, so that loops over them are unrolled

    @classmethod
    def of(cls, rules: Rules) -> Board:
        """The sets of these rules' board.

        Raises:
            ValueError: a board that is too large.
        """
        if rules.width > MAX_WIDTH or rules.num_cells > MAX_CELLS:
            raise ValueError(
                f"the searcher plays on boards of at most {MAX_CELLS} cells and {MAX_WIDTH} columns, got "
                f"{rules.width}x{rules.height}: use another player there"
            )
        row, column = np.divmod(np.arange(rules.num_cells), rules.width)
        return cls(
            every=_bits(column >= 0),
            not_left=_bits(column > 0),
            not_right=_bits(column < rules.width - 1),
            column=column.astype(np.int16),
            row=row.astype(np.int16),
            width=rules.width,
            height=rules.height,
            wrap=rules.edge == "wrap",
            words=(0,) * words_for(rules.num_cells),
            snakes=(0,) * rules.num_snakes,
        )


def _bits(cells: NDArray[np.bool_]) -> Bits:
    words = np.zeros(words_for(len(cells)) + 2, np.uint64)
    words[1:-1].view(np.uint8)[: -(-len(cells) // 8)] = np.packbits(cells, bitorder="little")
    return words


class Areas(NamedTuple):
    """The cells that each snake of a line reaches before the others, and scratch memory of `flood`.

    All sets are in one array, at places that are known when kernels are compiled, so that the compiler sees that they do not
    overlap and computes with vectors of one word of every snake. Word w of snake i is at w * N + i of its section.
    """

    memory: NDArray[np.uint64]  # OWN and FRESH ((W + 2) * N each), then FREE, NOT_LEFT, NOT_RIGHT (W + 2 each), BEATEN (N * N)
    lengths: NDArray[np.int64]  # (N,) segments of living snakes, 0 of dead ones
    tails: NDArray[np.int64]  # (N,) scratch: indices of the segments that leave next

    @classmethod
    def empty(cls, board: Board) -> Areas:
        """Areas on this board."""
        words, snakes = len(board.words), len(board.snakes)
        sections = 2 * (words + 2) * snakes, 3 * (words + 2), snakes * snakes
        memory = np.zeros(sum(sections), np.uint64)
        memory[sections[0] + words + 2 : sections[0] + 2 * (words + 2)] = board.not_left
        memory[sections[0] + 2 * (words + 2) : sections[0] + 3 * (words + 2)] = board.not_right
        return cls(memory, np.zeros(snakes, np.int64), np.zeros(snakes, np.int64))


@inlined_kernel
def area_word(board: Board, areas: Areas, w: int, i: int) -> np.uint64:
    """Word w, 1 to W, of the area of a living snake, the cell of its head included."""
    return np.uint64(areas.memory[w * len(board.snakes) + i])


@inlined_kernel
def flood(line: Line, r: RuleCodes, board: Board, areas: Areas, level: int, me: int) -> int:
    """Let all snakes spread at once. On each turn a tail leaves a cell, and all cells next to an area join it.

    Who is first has a cell; of several on one turn the longest, and of several longest ones nobody. An area also spreads after
    turns of waiting, since a snake can spend them inside of it.

    Returns:
        The turns after which snake `me` reaches food that is its own; 0 if there is none.
    """
    W, N, M = len(board.words), len(board.snakes), areas.memory
    OWN, FRESH, FREE = 0, (W + 2) * N, 2 * (W + 2) * N
    BEATEN = FREE + 3 * (W + 2)
    snakes, lengths, tails = line.snakes, areas.lengths, areas.tails
    count = line.numbers[SNAKES]
    for x in range((W + 2) * N):
        M[OWN + x] = np.uint64(0)
    for w in range(1, W + 1):
        M[FREE + w] = board.every[w] & ~line.occupied[level, w]
    for i in range(N):
        lengths[i] = 0
        if i < count and snakes[level, i, FATE] == LIVES:
            lengths[i] = length_of(line, level, i)
            tails[i] = int64(snakes[level, i, TAIL]) - int64(snakes[level, i, EXTRA])
            cell = int64(snakes[level, i, CELL])
            M[OWN + ((cell >> 6) + 1) * N + i] = _ONE << np.uint64(cell & 63)
    for j in range(N):
        for i in range(N):
            M[BEATEN + j * N + i] = ~np.uint64(0) if j != i and lengths[j] >= lengths[i] else np.uint64(0)
    way, turn, quiet = 0, 0, 0
    while quiet < _PATIENCE:
        turn += 1
        if r.growth != Growth.EVERY_TURN:
            for i in range(count):
                if lengths[i] > 0:
                    tail = tails[i]
                    tails[i] += 1
                    if snakes[level, i, TAIL] <= tail <= snakes[level, i, HEAD]:
                        cell = int64(line.paths[i, tail])
                        M[FREE + (cell >> 6) + 1] |= _ONE << np.uint64(cell & 63)
        _spread(board, M)
        grown, meals = np.uint64(0), np.uint64(0)
        for w in range(1, W + 1):
            taken = np.uint64(0)
            for i in range(N):
                taken |= M[FRESH + w * N + i]
            for i in range(N):
                beaten = np.uint64(0)
                for j in range(N):
                    beaten |= M[FRESH + w * N + j] & M[BEATEN + j * N + i]
                M[OWN + w * N + i] |= M[FRESH + w * N + i] & ~beaten
            M[FREE + w] &= ~taken
            grown |= taken
            meals |= M[OWN + w * N + me] & line.food[level, w]
        if way == 0 and meals != np.uint64(0):
            way = turn
        quiet = 0 if grown != np.uint64(0) else quiet + 1
    return way


@inlined_kernel
def _spread(board: Board, M: NDArray[np.uint64]) -> None:
    """Write the free cells next to each area to FRESH."""
    W, N = len(board.words), len(board.snakes)
    FRESH, FREE = (W + 2) * N, 2 * (W + 2) * N
    NOT_LEFT, NOT_RIGHT = FREE + W + 2, FREE + 2 * (W + 2)
    step, back = np.uint64(board.width), np.uint64(64 - board.width)
    for w in range(1, W + 1):
        for i in range(N):
            here, before, behind = M[w * N + i], M[w * N + i - N], M[w * N + i + N]
            cells = ((here << _ONE) | (before >> np.uint64(63))) & M[NOT_LEFT + w]
            cells |= ((here >> _ONE) | (behind << np.uint64(63))) & M[NOT_RIGHT + w]
            cells |= (here << step) | (before >> back) | (here >> step) | (behind << back)
            M[FRESH + w * N + i] = cells & M[FREE + w]
    if not board.wrap:
        return
    for w in range(1, W + 1):
        for i in range(N):
            here, before, behind = M[w * N + i], M[w * N + i - N], M[w * N + i + N]
            cells = ((here >> (step - _ONE)) | (behind << (back + _ONE))) & ~M[NOT_LEFT + w]
            cells |= ((here << (step - _ONE)) | (before >> (back + _ONE))) & ~M[NOT_RIGHT + w]
            M[FRESH + w * N + i] |= cells & M[FREE + w]
    first = board.width * (board.height - 1)  # cell of the bottom row
    w, shift = (first >> 6) + 1, np.uint64(first & 63)
    row = (_ONE << step) - _ONE
    for i in range(N):
        bottom = (M[w * N + i] >> shift) | ((M[w * N + i + N] << _ONE) << (np.uint64(63) - shift))
        top = M[N + i] & row
        M[FRESH + N + i] |= bottom & row & M[FREE + 1]
        M[FRESH + w * N + i] |= (top << shift) & M[FREE + w]
        M[FRESH + w * N + i + N] |= ((top >> _ONE) >> (np.uint64(63) - shift)) & M[FREE + w + 1]
