"""The protocols of this package: who may sit on an enemy seat, what says who sits down, and all enemy seats together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from snake_pz.players import Player

Opponent = Player
"""Who may sit on an enemy seat."""


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


class Lineup(Protocol):
    """Who sits on the enemy seats of a `GameBatch`.

    Attributes:
        seconds: how long `act` has taken so far, all calls together.
    """

    seconds: float

    @property
    def opponents(self) -> tuple[Opponent, ...]:
        """Everyone who sits in a running game or is kept to sit down next, each once; of a pool, those who sit."""
        ...

    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Fill in what the active enemy seats do in the present time step.

        Args:
            actions: (E, N, *action) as `GameBatch.step` takes them, written in place on active enemy seats only.
            active: (E, N) seats that act, from the present `TimeStep`.
        """
        ...

    def restart(self, games: NDArray[np.intp]) -> None:
        """Seat the next opponents in these games, which have just restarted, and clear the state opponents keep of them."""
        ...

    def set_opponents(self, seats: Sequence[Opponent | Source], when: Literal["restart", "now"] = "restart") -> None:
        """Change who plays.

        Args:
            seats: an opponent or a source of opponents per enemy seat, in seat order.
            when: "restart" leaves each running game its opponents until it restarts; "now" swaps them in the middle of
                the game, clearing the state of those that are new on their seat.

        Raises:
            ValueError: an opponent cannot play these games, or the opponents cannot be changed from here; the line-up is then
                unchanged.
        """
        ...

    def seed(self, sequence: np.random.SeedSequence) -> None:
        """Reseed the draws and every opponent; those that come later get seeds from it as well.

        Once all games have restarted everything depends on the sequence, on the opponents that were set and on what their
        sources hold, and not on what was before.
        """
        ...

    def names(self, game: int) -> tuple[str, ...]:
        """Who sits on the enemy seats of a running game, in enemy-seat order."""
        ...
