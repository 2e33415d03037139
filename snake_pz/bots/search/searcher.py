"""The player that searches."""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from snake_pz.bots.search.alphabeta import MOVED, Tree, begin, deepen, search
from snake_pz.bots.search.area import Board
from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.core.rule_codes import rule_codes
from snake_pz.core.state import SnakeState
from snake_pz.core.state_check import check_state
from snake_pz.players import Player, States
from snake_pz.rules import Rules

EVALUATIONS = 500
"""The budget where none is given: some 0.2 ms a move."""

_SLICE = 256  # evaluations between two looks at the clock
_BUDGET = re.compile(r"searcher(?::(?P<number>\d+(?:\.\d+)?)(?P<unit>ms)?)?")


class Budget(NamedTuple):
    """What may be spent on one move; one of both is 0."""

    evaluations: int
    milliseconds: float

    @classmethod
    def parse(cls, name: str) -> Budget:
        """The budget in a name such as "searcher:4600" or "searcher:2ms".

        Raises:
            ValueError: it is none.
        """
        found = _BUDGET.fullmatch(name)
        number = float(found["number"] or EVALUATIONS) if found else 0.0
        in_time = bool(found and found["unit"])
        if not 0 < number < 1e12 or (not in_time and number != int(number)):
            raise ValueError(
                "the searcher's budget must be a number of evaluations or of milliseconds for each move, such as "
                f"'searcher:4600' or 'searcher:2ms', got {name!r}"
            )
        return cls(0, number) if in_time else cls(int(number), 0.0)


class Searcher(Player):
    """A player that looks ahead: alpha-beta, see `alphabeta`, on the state of the game, by the rules of the game.

    It knows all that is on the board and nothing of what will be drawn: food that appears, hazards that close in. With a budget
    in evaluations its move is a function of the state alone. It has no memory between turns and draws nothing at random. It
    searches without the GIL; one object must not be used by two threads at once.

    Args:
        name: "searcher", with a budget for each move behind a colon, or without: 500 evaluations.
        rules: rules of the games to play.

    Attributes:
        name: as given.
        sees_states: it is given `States` of a `SnakeState` in place of observations.
        uses_masks: it is given action masks.
        observation_space: the `board` encoding of these rules, which it does not look at.
        action_space: Discrete(4), the absolute directions 0 up, 1 right, 2 down, 3 left.
        budget: for each move.

    Raises:
        ValueError: a budget that is none, or a board of more than 640 cells or 63 columns.
    """

    sees_states = True
    uses_masks = True

    def __init__(self, name: str, rules: Rules) -> None:
        self.name = name
        self.budget = Budget.parse(name)
        self._given = ":" in name
        self.observation_space: gymnasium.Space[Any] = observation_space(rules, "board")
        self.action_space: gymnasium.Space[Any] = action_space("absolute")
        self._rules = rules
        self._codes = rule_codes(rules)
        self._board = Board.of(rules)
        self._like = SnakeState.empty(rules, 1)
        self._known: SnakeState | None = None
        self._tree: Tree | None = None

    @override
    def act(
        self,
        observations: Any,
        slots: NDArray[np.intp] | None = None,
        action_masks: NDArray[np.int8] | None = None,
    ) -> NDArray[np.int64]:
        """One move per row.

        Args:
            observations: `States`: games with the rules of this player, and the snakes (B,) that it moves.
            slots: not used.
            action_masks: (B, 4) 1 = allowed. None: all are; then where it expects to die anyway it may do so by its own move.

        Returns:
            (B,) int64 absolute directions; 0 for dead snakes.

        Raises:
            ValueError: no `States` of such games, or no such masks.
        """
        state, games, snakes = self._checked(observations)
        masks = np.ones((len(games), 4), np.int8) if action_masks is None else np.asarray(action_masks)
        if masks.shape != (len(games), 4) or masks.dtype.kind not in "biu" or not (masks != 0).any(axis=1).all():
            raise ValueError(
                f"player {self.name!r} needs masks ({len(games)}, 4) of integers that allow a move in each row, got "
                f"{masks.tolist()}"
            )
        masks = (masks != 0).astype(np.int8)
        tree = self._tree = self._tree or Tree.empty(self._like, self._board)
        moves = np.zeros(len(games), np.int64)
        if self.budget.evaluations:
            search(tree, state, self._codes, self._board, games, snakes, masks, self.budget.evaluations, moves)
            return moves
        for row, (game, snake) in enumerate(zip(games.tolist(), snakes.tolist(), strict=True)):
            if state.alive[game, snake]:
                moves[row] = self._search_for(tree, state, game, snake, masks, row)
        return moves

    def limit_move_time(self, seconds: float) -> None:
        """Take so much time for each move from now on, unless a budget was given with the name."""
        if not self._given:
            self.budget = Budget(0, 1000 * seconds)

    @override
    def reset(self, slots: NDArray[np.intp]) -> None:
        """Do nothing: the searcher has no memory of its games."""

    @override
    def seed(self, seed: int) -> None:
        """Do nothing: the searcher draws nothing at random."""

    def _search_for(self, tree: Tree, state: SnakeState, game: int, snake: int, masks: NDArray[np.int8], row: int) -> int:
        """A move that takes the budget's milliseconds, or less if no more can be found."""
        began = time.perf_counter()
        begin(tree, state, self._codes, self._board, game, snake, masks, row)
        spent, elapsed = _SLICE, 0.0
        # another slice, if it fits in
        while elapsed * (spent / (spent - _SLICE) if elapsed else 1.0) < self.budget.milliseconds / 1000:
            if deepen(tree, self._codes, self._board, spent):
                break
            elapsed = time.perf_counter() - began
            spent += _SLICE
        return int(tree.registers[MOVED])

    def _checked(self, seen: Any) -> tuple[SnakeState, NDArray[np.intp], NDArray[np.intp]]:
        """The parts of what it is given, which kernels do not check. A state object is checked once: games write in it."""
        if not isinstance(seen, States):
            raise ValueError(
                f"player {self.name!r} sees the state of its games, not observations: expected snake_pz.players.States, got "
                f"{type(seen).__name__}"
            )
        if seen.state is not self._known:
            try:
                check_state(seen.state, self._rules, self._like)
            except ValueError as error:
                raise ValueError(f"player {self.name!r} cannot see this state: {error}") from error
            self._known = seen.state
        games, snakes = np.asarray(seen.games), np.asarray(seen.seats)
        for name, numbers, end in (("games", games, len(seen.state.over)), ("seats", snakes, self._rules.num_snakes)):
            outside = numbers.size and (numbers.dtype.kind not in "iu" or not 0 <= numbers.min() <= numbers.max() < end)
            if games.ndim != 1 or numbers.shape != games.shape or outside:
                raise ValueError(f"{name} must have a whole number from 0 to {end - 1} for each row, got {numbers.tolist()}")
        return seen.state, games.astype(np.intp), snakes.astype(np.intp)

    def __getstate__(self) -> dict[str, Any]:
        """Without its memory, which it makes anew: a copy of it is as large as one that has not played."""
        return {**self.__dict__, "_tree": None, "_known": None}
