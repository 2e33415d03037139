"""SnakeEngine: E games stepped together. It owns their state; the caller decides when a game restarts."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy import typing as npt
from numpy.typing import NDArray

from snake_pz.core.actions import action_count, write_masks
from snake_pz.core.dynamics import rank_survivors, step_games
from snake_pz.core.encodings import Encoding, encoding
from snake_pz.core.kernel import kernel
from snake_pz.core.observations import OBSERVATIONS, write_observations
from snake_pz.core.rewards import pay, pay_by
from snake_pz.core.rule_codes import RuleCodes, rule_codes
from snake_pz.core.starts import reset_games
from snake_pz.core.state import SnakeState
from snake_pz.core.state_check import check_state
from snake_pz.ranges import game_seed, seed_sequence, whole_number
from snake_pz.reward_weights import Rewards, RewardWeights
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
    """E games of the same rules, stepped together by compiled kernels. Not thread-safe.

    A new engine has no running games: call `reset` first. There is no auto-reset: a game that is over stays as it is until its
    row is reset, and stepping it changes nothing. A batch of E games equals E single games bit for bit.

    Args:
        rules: rules of all games.
        num_games: E, at least 1.
        seed: seed from which the games' seeds are derived by `numpy.random.SeedSequence`; None: fresh entropy. Equal seeds give
            equal games.

    Attributes:
        rules: as given.
        num_games: E.
        state: the games. Read it at any time; change it only through methods of the engine.

    Raises:
        ValueError: `num_games` is not an integer of at least 1, or `seed` not one of at least 0.
    """

    def __init__(self, rules: Rules, num_games: int = 1, *, seed: int | None = None) -> None:
        self.rules = rules
        self.num_games = whole_number("num_games", num_games, 1)
        self.state = SnakeState.empty(rules, self.num_games)
        self.state.seed[:] = seed_sequence(seed).generate_state(self.num_games, np.uint64)
        self._codes = rule_codes(rules)
        self._all = np.arange(self.num_games)
        self._turn_arguments: tuple[Any, ...] = (None,) * 6  # those that `turn` has checked
        self._encodings: dict[Encoding | str, tuple[Encoding, spaces.Box]] = {}  # those that were used, with their spaces

    def reset(self, rows: NDArray[np.intp] | None = None, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        """Start new games.

        Args:
            rows: (B,) indices of the games to start; None: all.
            seeds: (B,) one per row, 0 to 2**64 - 1. Equal seeds give equal starts and, with equal actions, equal games. None:
                each row takes the next seed of its own stream.

        Raises:
            ValueError: a row that is no game, not one seed per row, or a seed that is not an integer in this range.
        """
        rows = self._rows(rows)
        if seeds is None:
            numbers = _NO_SEEDS
        else:
            if len(seeds) != len(rows):
                raise ValueError(f"reset needs one seed per game, got {len(seeds)} seeds for {len(rows)} games")
            numbers = np.array([game_seed(seed) for seed in seeds], np.uint64)
        if len(rows):
            reset_games(self.state, self._codes, rows, numbers)

    def step(self, actions: NDArray[Any]) -> None:
        """Play one turn of every game that is not over.

        Args:
            actions: (E, N) integers, absolute directions 0 up, 1 right, 2 down, 3 left; entries of dead snakes are ignored. Any
                other number is an invalid move, handled by `Rules.invalid_move`.

        Raises:
            ValueError: another shape, or numbers that are not integers.
        """
        step_games(self.state, self._codes, self._directions(actions))

    def paid_step(self, actions: NDArray[Any], rewards: Rewards, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """`step`, and the rewards of the turn.

        Args:
            actions: (E, N) as for `step`.
            rewards: weights of the events, or a function, see `reward_weights.RewardFunction`.
            out: array to write into; None: a new array.

        Returns:
            (E, N) float32; zero in games that were over before.

        Raises:
            ValueError: actions as for `step`; neither weights nor a function, or one that does not return finite (E, N)
                numbers; or an `out` of another shape, type or layout.
        """
        _check_rewards(rewards)
        before = None if isinstance(rewards, RewardWeights) else self.save()
        self.step(actions)
        return self.rewards(rewards, out, before=before)

    def turn(
        self,
        actions: NDArray[Any],
        observation: Encoding | str,
        action_set: str,
        weights: Rewards,
        views: NDArray[Any],
        masks: NDArray[np.int8],
        rewards: NDArray[np.float32],
    ) -> None:
        """`step`, `rewards`, `observe` and `action_masks` of all games in one call, which saves time with few games.

        Args:
            actions: (E, N) as for `step`.
            observation: the encoding.
            action_set: `absolute` or `relative`, for the masks.
            weights: weights or function of the rewards, as for `paid_step`.
            views: (E, N, *shape) of the encoding's dtype, written.
            masks: (E, N, A) int8, written.
            rewards: (E, N) float32, written.

        Raises:
            ValueError: as from `paid_step` and `observe`, an unknown action set, or an array to write of another shape, type or
                layout.
        """
        checked = self._turn_arguments  # a reference keeps numpy from resizing an array that was checked
        if not (
            observation is checked[0]
            and action_set is checked[1]
            and weights is checked[2]
            and views is checked[3]
            and masks is checked[4]
            and rewards is checked[5]
        ):
            space = self._encoding(observation)[1]
            self._check_buffer("views", views, space.shape, space.dtype)
            self._check_buffer("masks", masks, (action_count(action_set),), np.int8)
            self._check_buffer("rewards", rewards, (), np.float32)
            _check_rewards(weights)
            self._turn_arguments = (observation, action_set, weights, views, masks, rewards)
        if observation not in OBSERVATIONS or not isinstance(weights, RewardWeights):  # code of the user
            self.paid_step(actions, weights, rewards)
            self.observe(observation, views)
            self.action_masks(action_set, masks)
            return
        number, relative = OBSERVATIONS.index(observation), action_set == "relative"
        actions = self._directions(actions)
        _turn(self.state, self._codes, actions, weights.as_tuple, number, relative, self._all, views, masks, rewards)

    def observe(
        self, observation: Encoding | str, out: NDArray[Any] | None = None, rows: NDArray[np.intp] | None = None
    ) -> NDArray[Any]:
        """Observations of all snakes.

        Args:
            observation: the encoding or its name, see `encodings`.
            out: (E, N, *shape) of the encoding's dtype to write into; None: a new array. Entries of snakes that died on an
                earlier turn are left as they are, so a reused buffer repeats their last real observation.
            rows: (B,) games to write; None: all.

        Returns:
            `out`.

        Raises:
            ValueError: an unknown encoding or one that does not write what it says, an `out` of another shape, type or layout,
                or a row out of range.
        """
        own, space = self._encoding(observation)
        if out is None:
            out = np.zeros((*self.state.alive.shape, *space.shape), space.dtype)
        else:
            self._check_buffer("out", out, space.shape, space.dtype)
        if own.kernel is None:
            own.fill(self.state, self.rules, self._rows(rows), out, space)
        else:
            own.kernel(self.state, self._codes, self._rows(rows), out)
        return out

    def action_masks(
        self, actions: str, out: NDArray[np.int8] | None = None, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.int8]:
        """(E, N, A) int8 masks of the next actions, 1 for a move that does not certainly kill, see `actions.write_masks`.

        Args:
            actions: `absolute` or `relative`.
            out: array to write into; None: a new array.
            rows: (B,) games to write; None: all.

        Raises:
            ValueError: an unknown action set, an `out` of another shape, type or layout, or a row out of range.
        """
        if out is None:
            out = np.ones((*self.state.alive.shape, action_count(actions)), np.int8)
        else:
            self._check_buffer("out", out, (action_count(actions),), np.int8)
        write_masks(self.state, self._codes, actions == "relative", self._rows(rows), out)
        return out

    def rewards(
        self, rewards: Rewards, out: NDArray[np.float32] | None = None, *, before: SnakeState | None = None
    ) -> NDArray[np.float32]:
        """(E, N) float32 rewards of the last turn; zero in games that were over before it.

        Args:
            rewards: weights of the events, or a function.
            out: array to write into; None: a new array.
            before: the games one turn earlier, needed by functions.

        Raises:
            ValueError: neither weights nor a function, a function without `before` or one that does not return finite (E, N)
                numbers, or an `out` of another shape, type or layout.
        """
        _check_rewards(rewards)
        if out is None:
            out = np.zeros(self.state.alive.shape, np.float32)
        else:
            self._check_buffer("out", out, (), np.float32)
        if isinstance(rewards, RewardWeights):
            pay(self.state, rewards.as_tuple, out)
        elif before is None:
            raise ValueError("a function of rewards needs the games one turn earlier: call paid_step, or pass before=")
        else:
            pay_by(rewards, before, self.state, out)
        return out

    def rank_survivors(self, rows: NDArray[np.intp] | None = None) -> None:
        """Rank the living snakes of these games (None: all) by length, as if the games ended now. For truncated games."""
        rank_survivors(self.state, self._rows(rows))

    def _encoding(self, observation: Encoding | str) -> tuple[Encoding, spaces.Box]:
        if observation not in self._encodings:
            own = encoding(observation)
            self._encodings[observation] = own, own.space_for(self.rules)
        return self._encodings[observation]

    def _check_buffer(self, name: str, out: NDArray[Any], inner: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        """Reject a buffer that a kernel could not write or would overrun."""
        shape = (*self.state.alive.shape, *inner)
        if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype or not out.flags.carray:
            got = f"{out.shape} {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
            raise ValueError(
                f"{name} must be a C-contiguous writable array of shape {shape} and type {np.dtype(dtype)}, got {got}"
            )

    def _directions(self, actions: NDArray[Any]) -> NDArray[np.int8]:
        """Actions as (E, N) int8, the one type that kernels are compiled for."""
        actions = np.asarray(actions)
        if actions.shape != self.state.alive.shape:
            raise ValueError(f"actions must have shape {self.state.alive.shape} (games, snakes), got {actions.shape}")
        if actions.dtype == np.int8:
            return actions
        if actions.dtype.kind not in "iu":
            raise ValueError(f"actions must be integers, got {actions.dtype}")
        return actions.clip(-1, 4).astype(np.int8)

    def _rows(self, rows: NDArray[np.intp] | None) -> NDArray[np.intp]:
        """Checked indices of games: kernels check nothing and would write out of bounds."""
        if rows is None:
            return self._all
        rows = np.asarray(rows)
        if rows.ndim != 1 or (
            rows.size and (rows.dtype.kind not in "iu" or not 0 <= rows.min() <= rows.max() < self.num_games)
        ):
            raise ValueError(f"rows must be numbers of games, 0 to {self.num_games - 1}, got {rows.tolist()}")
        return rows.astype(np.intp, copy=False)

    def game(self, row: int) -> SnakeEngine:
        """One game of this batch as an engine of its own that shares its memory.

        Args:
            row: index of the game.

        Raises:
            ValueError: a row out of range.
        """
        self._rows(np.array([row]))
        one = copy.copy(self)
        one.num_games, one._all, one._turn_arguments = 1, np.arange(1), (None,) * 6
        one.state = self.state.map(lambda array: array[row : row + 1])
        return one

    def save(self, rows: NDArray[np.intp] | None = None) -> SnakeState:
        """A copy of these games (None: all), random streams included.

        Raises:
            ValueError: a row out of range.
        """
        rows = self._rows(rows)
        return self.state.map(lambda array: array[rows])

    def load(self, saved: SnakeState, rows: NDArray[np.intp] | None = None) -> None:
        """Replace the games of these rows (None: all) by saved games.

        Raises:
            ValueError: no SnakeState or one that no game with these rules can be in, not one game per row, or a row out of
                range.
        """
        rows = self._rows(rows)
        check_state(saved, self.rules, self.state)
        if len(rows) != len(saved.over):
            raise ValueError(f"cannot load {len(saved.over)} games into {len(rows)} rows: they need one row each")
        for own, other in zip(self.state.arrays(), saved.arrays(), strict=True):
            own[rows] = other


def _check_rewards(rewards: Rewards) -> None:
    if not callable(rewards) and not isinstance(rewards, RewardWeights):
        raise ValueError(f"rewards must be RewardWeights or a function, got {type(rewards).__name__}")
