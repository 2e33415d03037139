"""The interface between backends and everything above: E games of N seats, stepped together, as arrays.

Opponents, line-ups and VecEnvs know games only through `GameBatch`; backends (SuperSuit, the native engine) only have to return
`TimeStep`s. Letters in shapes: E games, N seats, A discrete actions; `*obs` and `*action` are the shapes of one observation and
one action. Seats 0 to num_learners - 1 are learner seats, the others enemy seats.
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
"""(game, seat): the key of sparse dictionaries."""


class TimeStep(NamedTuple):
    """The result of one reset or one step of all games. The arrays belong to the receiver and never change afterwards."""

    observations: Observations  # (E, N, *obs) for the next actions; an inactive seat repeats its last real observation
    rewards: NDArray[np.float32]  # (E, N) zero where the seat was inactive
    terminated: NDArray[np.bool_]  # (E, N) the rules ended this seat in this step
    truncated: NDArray[np.bool_]  # (E, N) a time limit ended this seat in this step
    active: NDArray[np.bool_]  # (E, N) seats that act next
    restarted: NDArray[np.bool_]  # (E,) the game ended and a new one began; `observations` and `active` are of the new one
    final_observations: Observations  # (K, *obs) real last observation of each seat in terminated | truncated, row-major
    action_masks: NDArray[np.int8] | None  # (E, N, A) 1 = allowed, for the next actions; None if the games have no masks
    infos: dict[GameSeat, dict[str, Any]]  # sparse: the environment's infos of this step
    reset_infos: dict[GameSeat, dict[str, Any]]  # sparse: the environment's infos of resets, with "game_seed"


class GameBatch(Protocol):
    """E games of N seats, stepped together, learner seats first.

    A game restarts in the step in which its last learner seat ends (without learner seats: its last seat).

    Attributes:
        num_games: E.
        seats: N.
        num_learners: learner seats per game.
        observation_space: of all learner seats.
        other_spaces: further observation spaces that views can have.
        action_space: of all learner seats.
        render_mode: of the environments.
        snake_rules: the rules if the game is the snake, for its bots; None for any other environment.
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
        """Restart all games.

        Args:
            seeds: one per game. An int fixes this game and all later ones at the same index; None continues the stream of that
                index, which begins with fresh entropy.
            options: one dict per game for the environment's own `reset`.
        """
        ...

    def step(self, actions: NDArray[Any]) -> TimeStep:
        """Play one turn.

        Args:
            actions: (E, N, *action) as `View.decode` returns them. Those of inactive seats are ignored.
        """
        ...

    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """A view of the games in these spaces.

        Raises:
            ValueError: there is none; the text names these spaces and those of the games.
        """
        ...

    def agents(self, game: int) -> tuple[str, ...]:
        """The environment's names of the agents of the running game, in seat order."""
        ...

    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        """An attribute of the environments of these games."""
        ...

    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """Set an attribute of the environments of these games."""
        ...

    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method of the environments of these games; one result per game."""
        ...

    def render(self, games: Sequence[int]) -> list[Any]:
        """The results of the environments' `render`, one per game."""
        ...

    def close(self) -> None:
        """Close every environment. May be called again."""
        ...
