"""Alpha-beta search on a line, with an explicit stack, so that it can stop after any number of evaluations and go on later.

The search is paranoid: the snake for which it searches chooses first, then the rivals that matter, nearest first, each knowing
the choices before and choosing what is worst for that snake. All moves of a turn are then played at once. It deepens
iteratively: turn by turn, until the evaluations are spent, the game is decided or the line is full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_pz.bots.search.area import Areas, Board
from snake_pz.bots.search.bits import Bits, holds
from snake_pz.bots.search.evaluation import DECIDED, Weights, distance, evaluate, outcome
from snake_pz.bots.search.line import (
    CELL,
    EXTRA,
    FATE,
    HEAD,
    HEADING,
    LIVES,
    MOVE,
    SNAKES,
    TAIL,
    TURN,
    Line,
    is_over,
    length_of,
    load,
    play_turn,
)
from snake_pz.core.kernel import inlined_kernel, int64, lean_kernel
from snake_pz.core.rule_codes import Hunger, Reverse, RuleCodes
from snake_pz.core.state import SnakeState

DEPTH = 60
"""The most turns that a search looks ahead."""

_NEAR = 6  # steps from head to head within which one of several rivals chooses its moves; the others go straight on
_RIVALS = 3  # that choose at most
_TURNS = 6  # turns played for each evaluation that may be spent: turns that end the game cost no evaluation
_TABLE = 1 << 14  # entries of the table of best moves
_INFINITE = 2_000_000
_ABOVE = -1

ALPHA, BETA, BEST, CHOICE, COUNT, NEXT, PARENT, NODE_FIELDS = range(8)
"""Fields of a node: the window, the best value so far and its place among the moves, the number of moves, the next one's place,
the node before."""

ME, MOVERS, NODE, ITERATION, EVALUATIONS, TURNS, DONE, MOVED, VALUE, ALLOWED, REGISTERS = range(11)
"""`Tree.registers`: the snake's index in the line, the number of snakes that choose, the present node, the depth that is being
searched, evaluations and turns spent, whether all is done, the best move, what it is worth, and the moves that the mask
allows, as bits."""


class Tree(NamedTuple):
    """A search and all its memory. A node is number level * N + place among the movers."""

    line: Line
    areas: Areas
    weights: Weights
    movers: NDArray[np.int64]  # (N,) indices of the snakes that choose, in their order
    chooses: NDArray[np.bool_]  # (N,) whether a snake is among them
    nodes: NDArray[np.int64]  # (D * N, NODE_FIELDS)
    moves: NDArray[np.int8]  # (D * N, 4) directions, best first
    keys: Bits  # (D * N,) what the table knows the node by: the moves that led to it
    table_keys: Bits  # (_TABLE,)
    table_moves: NDArray[np.int8]  # (_TABLE,) the best move that was found at the node with this key
    history: NDArray[np.int64]  # (N, K, 4) how often a move was best, by snake and cell of its head, weighted by depth
    registers: NDArray[np.int64]  # (REGISTERS,)

    @classmethod
    def empty(cls, state: SnakeState, board: Board) -> Tree:
        """A search of games like those of this state."""
        snakes, cells = state.body.shape[1], state.food.shape[1]
        nodes = DEPTH * snakes
        return cls(
            line=Line.empty(state, DEPTH),
            areas=Areas.empty(board),
            weights=Weights(),
            movers=np.zeros(snakes, np.int64),
            chooses=np.zeros(snakes, np.bool_),
            nodes=np.zeros((nodes, NODE_FIELDS), np.int64),
            moves=np.zeros((nodes, 4), np.int8),
            keys=np.zeros(nodes, np.uint64),
            table_keys=np.zeros(_TABLE, np.uint64),
            table_moves=np.zeros(_TABLE, np.int8),
            history=np.zeros((snakes, cells, 4), np.int64),
            registers=np.zeros(REGISTERS, np.int64),
        )


@lean_kernel
def begin(tree: Tree, s: SnakeState, r: RuleCodes, board: Board, e: int, snake: int, masks: NDArray[np.int8], row: int) -> None:
    """Start the search for the best move of a living snake of game e. A move without a choice is found at once.

    Moves that its mask, a row of (B, 4), forbids are left out: where a rival can kill it anyway, they would look no worse.
    """
    line, registers = tree.line, tree.registers
    load(line, s, r, e)
    me = 0
    while line.indices[me] != snake:
        me += 1
    registers[:] = 0
    registers[ME] = me
    tree.table_keys[:] = np.uint64(0)
    tree.history[:] = 0
    _choose_movers(tree, board)
    tree.keys[0] = np.uint64(0x9E3779B97F4A7C15)
    for move in range(4):
        registers[ALLOWED] += masks[row, move] << move
    count = _list_moves(tree, r, 0, 0, me)
    registers[MOVED] = tree.moves[0, 0]
    registers[DONE] = count == 1
    registers[ITERATION] = 1
    registers[NODE] = _ABOVE


@lean_kernel
def deepen(tree: Tree, r: RuleCodes, board: Board, evaluations: int) -> bool:
    """Go on with the search until this many evaluations are spent in all; whether it is done before.

    One turn is looked ahead in any case.

    `MOVED` is the best move then: of the last depth that was searched wholly, or a better one of the depth that was not.
    """
    line, registers, nodes, snakes = tree.line, tree.registers, tree.nodes, tree.line.snakes
    me, width = registers[ME], snakes.shape[1]
    while not registers[DONE]:
        spent = registers[EVALUATIONS] >= evaluations or registers[TURNS] >= _TURNS * evaluations
        if spent and registers[ITERATION] > 1:
            break
        node = registers[NODE]
        level, place = (node // width, node % width) if node != _ABOVE else (0, 0)
        parent, opens, value = node, node == _ABOVE, 0
        if not opens and (nodes[node, NEXT] == nodes[node, COUNT] or nodes[node, ALPHA] >= nodes[node, BETA]):
            _remember(tree, node, level, tree.movers[place], registers[ITERATION] - level)
            value, parent = nodes[node, BEST], nodes[node, PARENT]
            if parent == _ABOVE:
                registers[ITERATION] += 1
                registers[DONE] = abs(value) >= DECIDED or registers[ITERATION] > DEPTH
                registers[NODE] = _ABOVE
                continue
        elif not opens:
            snakes[level, tree.movers[place], MOVE] = tree.moves[node, nodes[node, NEXT]]
            nodes[node, NEXT] += 1
            place += 1
            while place < registers[MOVERS] and snakes[level, tree.movers[place], FATE] != LIVES:
                place += 1
            opens = place < registers[MOVERS]
            if not opens:
                play_turn(line, r, level)
                registers[TURNS] += 1
                level, place = level + 1, 0
                if snakes[level, me, FATE] != LIVES or is_over(line, r, level):
                    value = outcome(line, r, level, me)
                elif level < registers[ITERATION]:
                    opens = True
                else:
                    value = evaluate(line, r, board, tree.areas, tree.weights, level, me)
                    registers[EVALUATIONS] += 1
        if opens:
            registers[NODE] = _open(tree, r, level, place, parent)
        else:
            registers[NODE] = parent
            _back_up(tree, parent, value, parent % width == 0)
    return bool(registers[DONE])


@lean_kernel
def search(
    tree: Tree,
    s: SnakeState,
    r: RuleCodes,
    board: Board,
    games: NDArray[np.intp],
    snakes: NDArray[np.intp],
    masks: NDArray[np.int8],
    evaluations: int,
    out: NDArray[np.int64],
) -> None:
    """Find a move for each of B snakes.

    Args:
        tree: memory.
        s: the games, only read.
        r: their rules.
        board: their board.
        games: (B,) game of each snake.
        snakes: (B,) index of each snake.
        masks: (B, 4) their action masks.
        evaluations: to spend on each.
        out: (B,) absolute directions, written; 0 for dead snakes.
    """
    for b in range(games.shape[0]):
        out[b] = 0
        if s.alive[games[b], snakes[b]]:
            begin(tree, s, r, board, games[b], snakes[b], masks, b)
            deepen(tree, r, board, evaluations)
            out[b] = tree.registers[MOVED]


@inlined_kernel
def _choose_movers(tree: Tree, board: Board) -> None:
    """The snake itself, then its only rival or those of its rivals that are near, nearest first."""
    line, movers, registers = tree.line, tree.movers, tree.registers
    count, me = line.numbers[SNAKES], registers[ME]
    movers[0] = me
    number = 1
    tree.chooses[:] = False
    tree.chooses[me] = True
    head = int64(line.snakes[0, me, CELL])
    for steps in range(board.width + board.height if count == 2 else _NEAR + 1):
        for i in range(count):
            if i != me and number <= _RIVALS and distance(board, head, int64(line.snakes[0, i, CELL])) == steps:
                movers[number] = i
                number += 1
                tree.chooses[i] = True
    registers[MOVERS] = number


@inlined_kernel
def _open(tree: Tree, r: RuleCodes, level: int, place: int, parent: int) -> int:
    """Set up a node to try its moves; its number."""
    line, nodes = tree.line, tree.nodes
    node: int = level * line.snakes.shape[1] + place
    if place == 0:
        for i in range(line.numbers[SNAKES]):
            if line.snakes[level, i, FATE] == LIVES and not tree.chooses[i]:
                line.snakes[level, i, MOVE] = _straight_on(line, r, level, i)
    nodes[node, ALPHA] = -_INFINITE if parent == _ABOVE else nodes[parent, ALPHA]
    nodes[node, BETA] = _INFINITE if parent == _ABOVE else nodes[parent, BETA]
    nodes[node, BEST] = -_INFINITE if place == 0 else _INFINITE
    nodes[node, CHOICE] = -1
    nodes[node, NEXT] = 0
    nodes[node, PARENT] = parent
    if parent != _ABOVE:
        tree.keys[node] = _key_of(tree.keys[parent], int64(tree.moves[parent, nodes[parent, NEXT] - 1]))
    nodes[node, COUNT] = _list_moves(tree, r, level, node, tree.movers[place])
    return node


@inlined_kernel
def _key_of(key: np.uint64, move: int) -> np.uint64:
    """The key of the node that a move leads to."""
    key = (key ^ np.uint64(move + 1)) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(31))


@inlined_kernel
def _back_up(tree: Tree, node: int, value: int, mine: bool) -> None:
    """Tell a node what its last move is worth. `mine`: it is the snake's own choice, else a rival's."""
    nodes, registers = tree.nodes, tree.registers
    if mine:
        if value > nodes[node, BEST]:
            nodes[node, BEST] = value
            nodes[node, CHOICE] = nodes[node, NEXT] - 1
            nodes[node, ALPHA] = max(nodes[node, ALPHA], value)
            if node == 0:
                registers[MOVED] = tree.moves[0, nodes[0, CHOICE]]
                registers[VALUE] = value
    elif value < nodes[node, BEST]:
        nodes[node, BEST] = value
        nodes[node, CHOICE] = nodes[node, NEXT] - 1
        nodes[node, BETA] = min(nodes[node, BETA], value)


@inlined_kernel
def _remember(tree: Tree, node: int, level: int, i: int, depth: int) -> None:
    """Note the best move of a node, to try it first there, and in similar places early."""
    if tree.nodes[node, CHOICE] < 0:
        return
    move = tree.moves[node, tree.nodes[node, CHOICE]]
    entry = int64(tree.keys[node] & np.uint64(_TABLE - 1))
    tree.table_keys[entry] = tree.keys[node]
    tree.table_moves[entry] = move
    tree.history[i, tree.line.snakes[level, i, CELL], move] += depth * depth


@inlined_kernel
def _list_moves(tree: Tree, r: RuleCodes, level: int, node: int, i: int) -> int:
    """List the moves of a snake that do not certainly kill it, or one that does; how many there are.

    First comes what was best here when it was searched less deeply, then what was best elsewhere from this cell, then straight.
    """
    line, moves = tree.line, tree.moves
    heading, cell = int64(line.snakes[level, i, HEADING]), int64(line.snakes[level, i, CELL])
    entry = int64(tree.keys[node] & np.uint64(_TABLE - 1))
    first = int64(tree.table_moves[entry]) if tree.table_keys[entry] == tree.keys[node] else -1
    count = 0
    for turned in range(4):  # straight, right, back, left
        move = (max(heading, 0) + turned) & 3
        if not _is_open(line, r, level, i, move) or (node == 0 and (tree.registers[ALLOWED] >> move) & 1 == 0):
            continue
        rank = int64(tree.history[i, cell, move]) if move != first else 1 << 62
        at = count
        while at > 0 and moves[node, at - 1] != first and rank > tree.history[i, cell, moves[node, at - 1]]:
            moves[node, at] = moves[node, at - 1]
            at -= 1
        moves[node, at] = move
        count += 1
    if count == 0:
        moves[node, 0] = max(heading, 0)
        while node == 0 and (tree.registers[ALLOWED] >> int64(moves[0, 0])) & 1 == 0:
            moves[0, 0] = (moves[0, 0] + 1) & 3
        count = 1
    return count


@inlined_kernel
def _straight_on(line: Line, r: RuleCodes, level: int, i: int) -> int:
    """The move straight on, or if it certainly kills another one that does not."""
    heading = max(int64(line.snakes[level, i, HEADING]), 0)
    for turned in range(4):
        move = (heading + turned) & 3
        if _is_open(line, r, level, i, move):
            return move
    return heading


@inlined_kernel
def _is_open(line: Line, r: RuleCodes, level: int, i: int, move: int) -> bool:
    """Whether a move is one of its own, and leads neither off the board nor to a segment that stays if nobody eats or dies."""
    heading = int64(line.snakes[level, i, HEADING])
    if heading >= 0 and move == (heading + 2) & 3 and r.reverse != Reverse.IS_A_MOVE:
        return False
    cell = int64(r.neighbours[int64(line.snakes[level, i, CELL]), move])
    if cell < 0:
        return False
    if not holds(line.occupied, level, cell):
        return True
    shortened = r.hunger == Hunger.SEGMENT and (line.numbers[TURN] + level + 1) % r.hunger_every == 0
    for j in range(line.numbers[SNAKES]):
        if line.snakes[level, j, FATE] != LIVES:
            continue
        leaving = 1 + shortened - int64(line.snakes[level, j, EXTRA])
        if r.max_length > 0:
            leaving += max(length_of(line, level, j) - r.max_length, 0)
        tail = int64(line.snakes[level, j, TAIL])
        for k in range(tail, min(tail + leaving, int64(line.snakes[level, j, HEAD]) + 1)):
            if line.paths[j, k] == cell:
                return True
    return False
