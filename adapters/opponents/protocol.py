"""The protocols of this package: an opponent, a source that opponents are drawn from, and the line-up of all enemy seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from snake_pz.players import Player

Opponent = Player
"""A player on an enemy seat."""


@runtime_checkable
class Source(Protocol):
    """Draws the opponents for some enemy seats whenever games restart."""

    def ready(self) -> Sequence[Opponent]:
        """Opponents that keep their random stream while they sit on no seat. Others are known only after a draw."""
        ...

    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        """Draw opponents for games that have just restarted.

        Args:
            games: number of games.
            seats: number of this source's seats per game.
            rng: the only source of randomness.
            seated: opponents that sit in other running games, or were already drawn for these games.

        Returns:
            Opponents, and (games, seats) the index of the opponent on each seat. An opponent that is in `seated` is returned as
            the same object, so that it costs one call of `act`.
        """
        ...

    def forget(self) -> None:
        """Clear the state of earlier draws, because the games are seeded: later draws must not depend on it."""
        ...


class Lineup(Protocol):
    """The opponents on the enemy seats of a `GameBatch`.

    Attributes:
        seconds: wall-clock time that callers have spent in `foresee` and `act` so far.
    """

    seconds: float

    @property
    def opponents(self) -> tuple[Opponent, ...]:
        """The opponents in running games and those of `Source.ready`, each once. Of a pool only those in running games."""
        ...

    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Write the actions of the active enemy seats for the current time step.

        Args:
            actions: (E, N, *action) as `GameBatch.step` takes them, written for active enemy seats only.
            active: (E, N) `active` of the current `TimeStep`.
        """
        ...

    def foresee(self, active: NDArray[np.bool_]) -> None:
        """Begin what may be done for the current time step before `act` is called, which gives the same actions without it.

        Args:
            active: as for the next `act`.
        """
        ...

    def close(self) -> None:
        """End what `foresee` has begun. May be called again."""
        ...

    def restart(self, games: NDArray[np.intp]) -> None:
        """Draw the opponents of games that have just restarted and clear their recurrent state."""
        ...

    def set_opponents(self, seats: Sequence[Opponent | Source], when: Literal["restart", "now"] = "restart") -> None:
        """Replace the opponents.

        Args:
            seats: an opponent or a source per enemy seat, in seat order.
            when: "restart" replaces the opponents of each game when it restarts; "now" replaces them in the running games and
                clears the recurrent state of seats whose opponent changes.

        Raises:
            ValueError: an opponent cannot play these games, or opponents cannot be changed from here. The line-up is then
                unchanged.
        """
        ...

    def seed(self, sequence: np.random.SeedSequence) -> None:
        """Seed the draws and all opponents, later ones included.

        Once all games have restarted, draws and actions depend only on the sequence, the opponents that were set and the
        members of their sources.
        """
        ...

    def names(self, game: int) -> tuple[str, ...]:
        """The names of the opponents in a running game, in enemy-seat order."""
        ...
