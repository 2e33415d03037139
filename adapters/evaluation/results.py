"""Results: what games among players who keep their column came to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from adapters.evaluation.tables import as_text
from adapters.placements import win_shares
from snake_pz.escaping import printable


class Results(NamedTuple):
    """What G games among N players came to; column j is the j-th player, wherever it sat. Printed, it is a short table."""

    ranks: NDArray[np.int16]  # (G, N) placement, 1 is best, shared by those who tie; truncated games are ranked by length
    lengths: NDArray[np.int32] | None  # (G, N) segments at death or at the end; None where the game has no snakes
    turns: NDArray[np.int32]  # (G,) turns that the game took
    names: tuple[str, ...]  # of the N players, short and all different

    @property
    def wins(self) -> NDArray[np.float64]:
        """(G, N) 1 for first place, 1/m for each of m who tie for it."""
        return win_shares(self.ranks)

    @property
    def win_rates(self) -> NDArray[np.float64]:
        """(N,) the mean of `wins`; 1/N is chance."""
        rates: NDArray[np.float64] = self.wins.mean(axis=0)
        return rates

    @property
    def win_intervals(self) -> NDArray[np.float64]:
        """(N, 2) between which win rates the players' own are with 95 % probability, see `wilson`."""
        return wilson(self.win_rates, len(self.ranks))

    def __str__(self) -> str:
        """The table as text."""
        return as_text(self.table())

    def table(self) -> Table:
        """Win rates with their intervals, and means, for a terminal."""
        games = len(self.ranks)
        table = Table(title=f"{games:,} games of {self.turns.mean():.1f} turns", box=box.SIMPLE_HEAD)
        table.add_column("player", overflow="fold")
        for head in ("wins", "95 %", "placed", *(() if self.lengths is None else ("length",))):
            table.add_column(head, justify="right", no_wrap=True)
        for player, name in enumerate(self.names):
            low, high = self.win_intervals[player]
            table.add_row(
                Text(printable(name)),
                f"{self.win_rates[player]:.1%}",
                f"{low:.1%} to {high:.1%}",
                f"{self.ranks[:, player].mean():.2f}",
                *(() if self.lengths is None else (f"{self.lengths[:, player].mean():.1f}",)),
            )
        return table


def wilson(rates: NDArray[np.float64], games: int, z: float = 1.96) -> NDArray[np.float64]:
    """Wilson's score intervals of rates, which neither leave [0, 1] nor vanish at its ends.

    They are those of games that are won or lost; where first places are shared the truth is closer.

    Args:
        rates: (N,) shares of the games.
        games: how many.
        z: the normal distribution's quantile; 1.96 is for 95 %.

    Returns:
        (N, 2) the lower and the upper ends.
    """
    shrink = 1 + z**2 / games
    centre = (rates + z**2 / (2 * games)) / shrink
    half = z / shrink * np.sqrt(rates * (1 - rates) / games + z**2 / (4 * games**2))
    return np.stack([centre - half, centre + half], axis=-1)
