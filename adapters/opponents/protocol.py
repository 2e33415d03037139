"""Who may sit on an enemy seat, and what says who sits down: the two protocols of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adapters.games.game_batch import Observations

Actions = NDArray[Any]


Slots = NDArray[np.intp]


Masks = NDArray[np.int8]


@runtime_checkable
class Opponent(Protocol):
    """Who plays enemy seats, any number of them at once.

    An opponent that sets `uses_masks = True` is handed action masks where the games have them; others get None.
    """

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One action per row.

        Args:
            observations: (B, *obs), the opponent's own to keep or overwrite.
            slots: (B,) which seat of which game each row is, the same number from turn to turn.
            action_masks: (B, A) 1 = allowed, or None.

        Returns:
            (B, *action) in `action_space`.
        """
        ...

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted: forget what was remembered of them."""
        ...

    def seed(self, seed: int) -> None:
        """Start the opponent's own random stream anew."""
        ...


@runtime_checkable
class Source(Protocol):
    """What says who sits down whenever games restart, on the enemy seats that it stands for."""

    def ready(self) -> Sequence[Opponent]:
        """Those that are kept, each with its random stream, while they sit nowhere; others come with a draw."""
        ...

    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        """Who sits down in games that have just restarted.

        Args:
            games: how many they are.
            seats: how many seats of each are this source's.
            rng: draw from this alone.
            seated: everyone who sits in a game that goes on, or was drawn for these games already.

        Returns:
            Opponents, and (games, seats) which of them sits where. Who comes back is the same object as long as it is in
            `seated`, so that it stays one call of `act`.
        """
        ...

    def forget(self) -> None:
        """The games are seeded: what is drawn from now on must not depend on what was drawn before."""
        ...
