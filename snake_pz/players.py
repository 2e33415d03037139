"""Who plays, how a player sees games, and SeatedPlayer: observing, masking, acting and decoding are here and nowhere else.

Nothing in this file knows the snake: the games may be of any kind that can be seen through a `View`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Observations = Any
"""Observations of many seats: one array (..., *obs), or a dict of such arrays by key if the space is a Dict."""

Actions = NDArray[Any]
Slots = NDArray[np.intp]
Masks = NDArray[np.int8]


def map_arrays(function: Callable[[NDArray[Any]], NDArray[Any]], observations: Observations) -> Observations:
    """`function` of the array of observations, or of each array if they are of a Dict space."""
    if isinstance(observations, dict):
        return {key: function(array) for key, array in observations.items()}
    return function(observations)


@runtime_checkable
class Player(Protocol):
    """Who plays any number of seats at once.

    A player that sets `uses_masks = True` is handed action masks where the games have them; others get None.
    """

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One action per row.

        Args:
            observations: (B, *obs), the player's own to keep or overwrite.
            slots: (B,) which seat of which game each row is, the same number from step to step.
            action_masks: (B, A) 1 = allowed, or None.

        Returns:
            (B, *action) in `action_space`.
        """
        ...

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted: forget what was remembered of them."""
        ...

    def seed(self, seed: int) -> None:
        """Start the player's own random stream anew."""
        ...


class View(Protocol):
    """E running games of N seats in one pair of spaces: what a player with these spaces sees and how its actions are read."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def observations(self) -> Observations:
        """(E, N, *obs) of the present time step; written once a step however often it is asked for. Read it, do not keep it."""
        ...

    def action_masks(self) -> Masks | None:
        """(E, N, A) of the present time step, or None if the games give no masks."""
        ...

    def decode(self, actions: Actions, games: NDArray[np.intp], seats: NDArray[np.intp]) -> Actions:
        """(B, *action) of this view, one per row (games[i], seats[i]) -> the actions that the games take."""
        ...


class Viewed(Protocol):
    """Games that can be seen in several pairs of spaces."""

    @property
    def seats(self) -> int:
        """N."""
        ...

    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """The games as a player with these spaces sees them.

        Raises:
            ValueError: these games cannot be seen so; the text names both pairs of spaces.
        """
        ...


class SeatedPlayer:
    """A player in these games.

    A slot is `game * seats + seat`; it also names the row that the player's recurrent state belongs to.

    Args:
        player: who plays.
        games: the games.

    Attributes:
        player: as given.
        uses_masks: whether it is handed action masks where the games have them.

    Raises:
        ValueError: these games cannot be seen by it.
    """

    def __init__(self, player: Player, games: Viewed) -> None:
        self.player = player
        self.uses_masks: bool = getattr(player, "uses_masks", False)
        self._seats = games.seats
        try:
            self._view = games.view(player.observation_space, player.action_space)
        except ValueError as error:
            raise ValueError(f"player {player.name!r} cannot play in these games: {error}") from error

    def act(self, slots: Slots) -> Actions:
        """What the player does on these seats in the present time step.

        Args:
            slots: (B,) which seats.

        Returns:
            (B, *action) as the games take them.

        Raises:
            ValueError: the player returned anything but B actions of its action space.
        """

        def rows(array: NDArray[Any]) -> NDArray[Any]:
            """(E, N, ...) -> (B, ...), a copy."""
            return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)

        masks = self._view.action_masks() if self.uses_masks else None
        observations = map_arrays(rows, self._view.observations())
        chosen = self.player.act(observations, slots, None if masks is None else rows(masks))
        _check_actions(self.player, chosen, len(slots))
        return self._view.decode(chosen, *np.divmod(slots, self._seats))


def within(actions: Actions, space: gymnasium.Space[Any]) -> bool:
    """Whether every row of actions is in the space, without a Python call per row for the usual spaces."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = space.n if isinstance(space, spaces.Discrete) else space.nvec
        return actions.dtype.kind in "iu" and bool(((actions >= space.start) & (actions < space.start + sizes)).all())
    if isinstance(space, spaces.Box):
        return actions.dtype.kind in "iuf" and bool(((actions >= space.low) & (actions <= space.high)).all())
    return all(space.contains(action) for action in actions)


def _check_actions(player: Player, actions: Any, rows: int) -> None:
    """Reject actions whose shape or dtype numpy would broadcast or cast, or that are out of the space."""
    space = player.action_space
    expected = (rows, *(space.shape or ()))
    if not isinstance(actions, np.ndarray) or actions.shape != expected:
        raise ValueError(
            f"player {player.name!r} must return an array of actions of shape {expected}, got "
            f"{getattr(actions, 'shape', type(actions).__name__)}"
        )
    if isinstance(space, spaces.Discrete) and not within(actions, space):
        last = space.start + space.n - 1
        raise ValueError(f"player {player.name!r} must return integers from {space.start} to {last}, got {actions.tolist()}")
