"""The seam of this package: E games of N seats, stepped together, as arrays.

Everything above this file (opponents, line-ups, the curried VecEnv) knows games only through `GameBatch`; everything below it
(SuperSuit, the native engine) only has to produce `TimeStep`s. Shapes use E games, N seats, A discrete actions; `*obs` and
`*action` are the shapes of one observation and one action. Seats 0..num_learners-1 are the learner's, the rest are enemy seats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.players import Observations, View
from snake_pz.rules import Rules

GameSeat = tuple[int, int]
"""(game, seat): how sparse per-seat dictionaries are keyed."""


class TimeStep(NamedTuple):
    """What one reset or one step of all games came to. The arrays are the receiver's and never change afterwards."""

    observations: Observations  # (E, N, *obs) what each seat acts on next; an inactive seat repeats its last real one
    rewards: NDArray[np.float32]  # (E, N) zero where the seat was inactive
    terminated: NDArray[np.bool_]  # (E, N) this seat was ended by the rules at this very step
    truncated: NDArray[np.bool_]  # (E, N) this seat was ended by the limit at this very step
    active: NDArray[np.bool_]  # (E, N) seats that act next
    restarted: NDArray[np.bool_]  # (E,) the game is over, a new one has begun: observations and active are of that one
    final_observations: Observations  # (K, *obs) real last observation of each seat in terminated | truncated, row-major
    action_masks: NDArray[np.int8] | None  # (E, N, A) 1 = allowed, for the next action; None if the games give no masks
    infos: dict[GameSeat, dict[str, Any]]  # sparse: what the environment said of this step
    reset_infos: dict[GameSeat, dict[str, Any]]  # sparse: what it said on restarting; has "game_seed" for every new game


class GameBatch(Protocol):
    """E games of N seats, stepped together, learner seats first.

    A game restarts in the very step in which its last learner seat ends (with no learner seats: in which its last seat
    ends). `observation_space` and `action_space` are the learner's, the same for all learner seats; `other_spaces` are the
    observation spaces that views can have besides. `snake_rules` are those of the snake if it is what is played, so that its
    bots can play; None for any other environment.
    """

    num_games: int
    seats: int
    num_learners: int
    observation_space: gymnasium.Space[Any]
    other_spaces: Sequence[gymnasium.Space[Any]]
    action_space: gymnasium.Space[Any]
    render_mode: str | None
    snake_rules: Rules | None

    def reset(self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]) -> TimeStep:
        """Start all games anew.

        Args:
            seeds: one per game. An int fixes this game and all that follow it at the same index; None goes on
                with the stream of that index (fresh entropy at first).
            options: one dict per game, handed to the environment's own `reset`.
        """
        ...

    def step(self, actions: NDArray[Any]) -> TimeStep:
        """Play one turn; actions (E, N, *action) as `View.decode` returns them, those of inactive seats are ignored."""
        ...

    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """The games as a player with these spaces sees them.

        Raises:
            ValueError: these games cannot be seen so; the text names both pairs of spaces.
        """
        ...

    def agents(self, game: int) -> tuple[str, ...]:
        """The environment's agent names in seat order, as seated in the running game."""
        ...

    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        """An attribute of the environments of these games."""
        ...

    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """Set it."""
        ...

    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method of the environments of these games; one result per game."""
        ...

    def render(self, games: Sequence[int]) -> list[Any]:
        """One result of the environment's `render` per game."""
        ...

    def close(self) -> None:
        """Close every environment. Calling it again does nothing."""
        ...
