"""Players, views of games, and SeatedPlayer: the one place where a player observes, is given masks, acts and is decoded.

Nothing here is specific to the snake: it serves any games that offer a `View`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

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
    """Apply `function` to the array of observations, or to each array of a Dict space's observations."""
    if isinstance(observations, dict):
        return {key: function(array) for key, array in observations.items()}
    return function(observations)


class States(NamedTuple):
    """What a player that sees states is given in place of observations: whole games, and which of their seats it plays."""

    state: Any  # of E games, for the snake a SnakeState; valid until the next step, read only
    games: NDArray[np.intp]  # (B,) of each row, 0 to E - 1
    seats: NDArray[np.intp]  # (B,) of each row, as the state numbers them


@runtime_checkable
class Player(Protocol):
    """A player of any number of seats at once.

    A player with the attribute `uses_masks = True` is given action masks if the games have them; all others get None. One with
    the attribute `sees_states = True` is given `States` in place of observations; it plays only in games that show them. One
    with an attribute `encoding` that is not None is given observations in that encoding of the state, whatever the games' own
    is, and plays only in games that show their states.
    """

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One action per row.

        Args:
            observations: (B, *obs), which the player may keep or overwrite; or `States` of B rows, see above.
            slots: (B,) the seat and game of each row as one number, the same from step to step.
            action_masks: (B, A) int8, 1 = allowed, or None.

        Returns:
            (B, *action) in `action_space`.
        """
        ...

    def reset(self, slots: Slots) -> None:
        """Clear recurrent state of these slots (B,), whose games restarted."""
        ...

    def seed(self, seed: int) -> None:
        """Seed the player's own random stream."""
        ...


@runtime_checkable
class TakesTime(Protocol):
    """A player that thinks for as long as it is given."""

    def limit_move_time(self, seconds: float) -> None:
        """Take at most so many seconds of wall-clock time for each move from now on."""
        ...


class View(Protocol):
    """E running games of N seats in one observation space and one action space."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def observations(self) -> Observations:
        """(E, N, *obs) of the current time step, written once per step. Valid until the next step; read only."""
        ...

    def action_masks(self) -> Masks | None:
        """(E, N, A) int8 of the current time step, or None if the games have no masks."""
        ...

    def decode(self, actions: Actions, games: NDArray[np.intp], seats: NDArray[np.intp]) -> Actions:
        """Convert actions of this view to actions of the games.

        Args:
            actions: (B, *action) in `action_space`.
            games: (B,) the game of each row.
            seats: (B,) the seat of each row.

        Returns:
            (B, *action) in the games' own action space.
        """
        ...


class Viewed(Protocol):
    """Games that offer views in several pairs of spaces."""

    @property
    def seats(self) -> int:
        """N, seats per game."""
        ...

    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """A view of the games in these spaces.

        Raises:
            ValueError: there is none; the text names these spaces and those of the games.
        """
        ...


@runtime_checkable
class ShowsStates(Viewed, Protocol):
    """Games that show their whole state."""

    def encoded(self, encoding: Any, action_space: gymnasium.Space[Any]) -> View:
        """A view in this encoding of the state and this action space.

        Raises:
            ValueError: the games have no such encoding or action space.
        """
        ...

    def states(self, games: NDArray[np.intp], seats: NDArray[np.intp]) -> States:
        """The present state, seen from these seats (B,) of these games (B,)."""
        ...


class SeatedPlayer:
    """A player seated in games.

    A slot is `game * seats + seat`; the player's recurrent state is kept by slot.

    Args:
        player: the player.
        games: the games.

    Attributes:
        player: as given.
        uses_masks: whether the player is given action masks if the games have them.

    Raises:
        ValueError: the games have no view in the player's spaces, or do not show the states that it needs.
    """

    def __init__(self, player: Player, games: Viewed) -> None:
        self.player = player
        self.uses_masks: bool = getattr(player, "uses_masks", False)
        self._seats = games.seats
        encoding, sees_states = getattr(player, "encoding", None), getattr(player, "sees_states", False)
        if (sees_states or encoding is not None) and not isinstance(games, ShowsStates):
            raise ValueError(
                f"player {player.name!r} cannot play in these games: it sees whole states, which only the snake's native "
                "games show: leave out wrappers, workers and other backends, or seat another player"
            )
        self._states = games if sees_states and isinstance(games, ShowsStates) else None
        try:
            if encoding is not None and isinstance(games, ShowsStates):
                self._view = games.encoded(encoding, player.action_space)
                if self._view.observation_space != player.observation_space:
                    raise ValueError(
                        f"it sees {player.observation_space}, but its encoding writes {self._view.observation_space} here"
                    )
            else:
                self._view = games.view(player.observation_space, player.action_space)
        except ValueError as error:
            raise ValueError(f"player {player.name!r} cannot play in these games: {error}") from error

    def act(self, slots: Slots) -> Actions:
        """The player's actions for the current time step.

        Args:
            slots: (B,) the seats to act for.

        Returns:
            (B, *action) in the games' own action space.

        Raises:
            ValueError: the player did not return B actions of its action space.
        """
        return self.decoded(self.player.act(self.observed(slots), slots, self.action_masks(slots)), slots)

    def observed(self, slots: Slots) -> Observations:
        """(B, *obs) the player's observations on these seats (B,), a copy; or `States`."""
        if self._states is not None:
            return self._states.states(*np.divmod(slots, self._seats))
        return map_arrays(lambda array: _rows(array, slots), self._view.observations())

    def action_masks(self, slots: Slots) -> Masks | None:
        """(B, A) the masks on these seats (B,); None if the player uses none or the games have none."""
        masks = self._view.action_masks() if self.uses_masks else None
        return None if masks is None else _rows(masks, slots)

    def decoded(self, chosen: Actions, slots: Slots) -> Actions:
        """Check the player's actions on these seats (B,) and convert them, as `act` returns them."""
        _check_actions(self.player, chosen, len(slots))
        return self._view.decode(chosen, *np.divmod(slots, self._seats))


def _rows(array: NDArray[Any], slots: Slots) -> NDArray[Any]:
    """(E, N, ...) -> (B, ...), a copy."""
    return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)


def within(actions: Actions, space: gymnasium.Space[Any]) -> bool:
    """Whether every row of `actions` is in the space. Vectorised for Discrete, MultiDiscrete and Box."""
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = space.n if isinstance(space, spaces.Discrete) else space.nvec
        return actions.dtype.kind in "iu" and bool(((actions >= space.start) & (actions < space.start + sizes)).all())
    if isinstance(space, spaces.Box):
        return actions.dtype.kind in "iuf" and bool(((actions >= space.low) & (actions <= space.high)).all())
    return all(space.contains(action) for action in actions)


def _check_actions(player: Player, actions: Any, rows: int) -> None:
    """Reject actions that numpy would broadcast or cast, and Discrete actions out of range."""
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
