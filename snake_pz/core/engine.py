"""SnakeEngine: E games at once. It owns their state; whoever runs the loop decides when a game starts anew."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_pz.core import observations
from snake_pz.core.actions import action_count, write_masks
from snake_pz.core.dynamics import rank_survivors, step_games
from snake_pz.core.kernel import kernel
from snake_pz.core.observations import write_observations
from snake_pz.core.rewards import pay, write_rewards
from snake_pz.core.rule_codes import RuleCodes, rule_codes
from snake_pz.core.starts import reset_games
from snake_pz.core.state import SnakeState
from snake_pz.reward_weights import RewardWeights
from snake_pz.rules import Rules


@kernel
def _turn(
    s: SnakeState,
    r: RuleCodes,
    actions: NDArray[np.int8],
    weights: tuple[float, ...],
    encoding: int,
    relative: bool,
    rows: NDArray[np.intp],
    views: NDArray[np.uint8],
    masks: NDArray[np.int8],
    rewards: NDArray[np.float32],
) -> None:
    step_games(s, r, actions)
    pay(s, weights, rewards)
    write_observations(s, r, encoding, rows, views)
    write_masks(s, r, relative, rows, masks)


_NO_SEEDS = np.zeros(0, np.uint64)


class SnakeEngine:
    """E games of one set of rules, stepped together by compiled kernels. Not thread-safe.

    A fresh engine has no running games: call `reset` first. There is no auto-reset: a game that is over stays as it is
    until its row is reset, and stepping it changes nothing. A batch of E games equals E single games bit for bit.

    Args:
        rules: what is played; see `Rules`.
        num_games: E, at least 1.
        seed: of the games' own seeds, through `numpy.random.SeedSequence`; None: fresh entropy. Equal seeds give equal games.

    Attributes:
        state: the games, see `SnakeState`. Read it freely; write it only by `reset`, `step` and `load`.
    """

    def __init__(self, rules: Rules, num_games: int = 1, *, seed: int | None = None) -> None:
        if num_games < 1:
            raise ValueError(f"num_games must be >= 1, got {num_games}")
        self.rules = rules
        self.num_games = num_games
        self.state = SnakeState.empty(rules, num_games)
        self.state.seed[:] = np.random.SeedSequence(seed).generate_state(num_games, np.uint64)
        self._codes = rule_codes(rules)
        self._all = np.arange(num_games)

    def reset(self, rows: NDArray[np.intp] | None = None, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        """Start games anew.

        Args:
            rows: (B,) which; None: all.
            seeds: (B,) one per row, 0 to 2**64 - 1, the same seed always gives the same start and, with the same actions,
                the same game; None: each row goes on with its own stream of seeds.

        Raises:
            ValueError: a row that is none, not one seed per row, or a seed out of range.
        """
        rows = self._rows(rows)
        if seeds is None:
            numbers = _NO_SEEDS
        else:
            if len(seeds) != len(rows):
                raise ValueError(f"reset needs one seed per game, got {len(seeds)} seeds for {len(rows)} games")
            for seed in seeds:
                if not 0 <= int(seed) < 2**64:
                    raise ValueError(f"seed must be between 0 and 2**64 - 1, got {seed}")
            numbers = np.array(seeds, np.uint64)
        if len(rows):
            reset_games(self.state, self._codes, rows, numbers)

    def step(self, actions: NDArray[Any]) -> None:
        """Play one turn of every game that is not over.

        Args:
            actions: (E, N) integers, absolute directions 0 up, 1 right, 2 down, 3 left; entries of snakes that are out are
                ignored. Not checked beyond the shape, for a batch is stepped millions of times a second: another number
                is an invalid move, see `Rules.invalid_move`.

        Raises:
            ValueError: another shape.
        """
        step_games(self.state, self._codes, self._directions(actions))

    def turn(
        self,
        actions: NDArray[Any],
        observation: str,
        action_set: str,
        weights: RewardWeights,
        views: NDArray[np.uint8],
        masks: NDArray[np.int8],
        rewards: NDArray[np.float32],
    ) -> None:
        """`step`, `rewards`, `observe` and `action_masks` of all games in one call, for those who need all four.

        With few games the calls cost more than the work.
        """
        encoding, relative = observations.OBSERVATIONS.index(observation), action_set == "relative"
        actions = self._directions(actions)
        _turn(self.state, self._codes, actions, weights.as_tuple, encoding, relative, self._all, views, masks, rewards)

    def observe(
        self, observation: str, out: NDArray[np.uint8] | None = None, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.uint8]:
        """What every snake sees.

        Args:
            observation: an encoding's name, see `observations`.
            out: (E, N, *shape) uint8 to write into; None: a new one. What a snake sees that died on an earlier turn is left
                as it is, so a buffer used again repeats its last real view.
            rows: (B,) games to write; None: all.

        Returns:
            `out`.
        """
        if out is None:
            out = np.zeros((*self.state.alive.shape, *observations.observation_shape(self.rules, observation)), np.uint8)
        else:
            self._check_buffer(out, observations.observation_shape(self.rules, observation), np.uint8)
        observations.observe(self.state, self._codes, observation, self._rows(rows), out)
        return out

    def action_masks(
        self, actions: str, out: NDArray[np.int8] | None = None, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.int8]:
        """(E, N, A) int8 masks of the next action, 1 where the move does not surely kill; see `actions.write_masks`."""
        if out is None:
            out = np.ones((*self.state.alive.shape, action_count(actions)), np.int8)
        else:
            self._check_buffer(out, (action_count(actions),), np.int8)
        write_masks(self.state, self._codes, actions == "relative", self._rows(rows), out)
        return out

    def rewards(self, weights: RewardWeights, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """(E, N) what the last turn paid; zero in games that were over before it."""
        if out is None:
            out = np.zeros(self.state.alive.shape, np.float32)
        else:
            self._check_buffer(out, (), np.float32)
        write_rewards(self.state, weights, out)
        return out

    def rank_survivors(self, rows: NDArray[np.intp] | None = None) -> None:
        """Place the living of these games (None: all) by length, as if they ended now: what a truncated game counts as."""
        rank_survivors(self.state, self._rows(rows))

    def _check_buffer(self, out: NDArray[Any], inner: tuple[int, ...], dtype: type[np.generic]) -> None:
        """Refuse a buffer that a kernel would write beyond."""
        shape = (*self.state.alive.shape, *inner)
        if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
            raise ValueError(
                f"out must be a C-contiguous array of shape {shape} and type {dtype.__name__}, got {out.shape} {out.dtype}"
            )

    def _directions(self, actions: NDArray[Any]) -> NDArray[np.int8]:
        """(E, N) actions as the kernels take them; a kernel is compiled anew for every other type."""
        actions = np.asarray(actions)
        if actions.shape != self.state.alive.shape:
            raise ValueError(f"actions must have shape {self.state.alive.shape} (games, snakes), got {actions.shape}")
        return actions if actions.dtype == np.int8 else actions.clip(-1, 4).astype(np.int8)

    def _rows(self, rows: NDArray[np.intp] | None) -> NDArray[np.intp]:
        """Games as the kernels take them, which check nothing: a row that is none would be written into foreign memory."""
        if rows is None:
            return self._all
        rows = np.asarray(rows)
        if rows.dtype == np.bool_ or (rows.size and not 0 <= rows.min() <= rows.max() < self.num_games):
            raise ValueError(f"rows must be numbers of games, 0 to {self.num_games - 1}, got {rows.tolist()}")
        return rows.astype(np.intp, copy=False)

    def game(self, row: int) -> SnakeEngine:
        """One game of this batch as an engine of its own, on the same memory: what happens to one happens to the other.

        Raises:
            ValueError: there is no such game.
        """
        self._rows(np.array([row]))
        one = copy.copy(self)
        one.num_games, one._all = 1, np.arange(1)
        one.state = self.state.map(lambda array: array[row : row + 1])
        return one

    def save(self, rows: NDArray[np.intp] | None = None) -> SnakeState:
        """A copy of these games (None: all), random streams included."""
        rows = self._rows(rows)
        return self.state.map(lambda array: array[rows])

    def load(self, saved: SnakeState, rows: NDArray[np.intp] | None = None) -> None:
        """Put saved games into these rows (None: all).

        Raises:
            ValueError: games of another board or number of snakes, or not one game per row.
        """
        rows = self._rows(rows)
        for name, own, other in zip(SnakeState._fields, self.state.arrays(), saved.arrays(), strict=True):
            if own.shape[1:] != other.shape[1:] or len(rows) != len(other):
                raise ValueError(
                    f"cannot load {name} of shape {other.shape} into {len(rows)} games of shape {own.shape[1:]}: "
                    "the saved games need the same board and number of snakes, and one row each"
                )
        for own, other in zip(self.state.arrays(), saved.arrays(), strict=True):
            own[rows] = other
