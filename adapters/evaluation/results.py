"""Results: what games among players who keep their column came to."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from adapters.evaluation.move_times import MoveTimes
from adapters.evaluation.tables import as_text
from adapters.placements import win_shares
from snake_pz.escaping import printable


class Results(NamedTuple):
    """What G games among N players came to; column j is the j-th player, wherever it sat. Printed, it is a short table."""

    ranks: NDArray[np.int16]  # (G, N) placement, 1 is best, shared by those who tie; truncated games are ranked by length
    lengths: NDArray[np.int32] | None  # (G, N) segments at death or at the end; None where the game has no snakes
    turns: NDArray[np.int32]  # (G,) turns that the game took
    names: tuple[str, ...]  # of the N players, short and all different
    causes: NDArray[np.object_] | None  # (G, N) of each death, such as "self"; None if it lived; None where there are no snakes
    times: MoveTimes  # (G, N) of the moves of each player

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

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """(N,) of the win rates; NaN for a single game. They vanish if all games are alike: `win_intervals` do not."""
        games = len(self.ranks)
        errors: NDArray[np.float64] = self.wins.std(axis=0) / np.sqrt(games - 1 if games > 1 else np.nan)
        return errors

    @property
    def deaths(self) -> tuple[dict[str, float], ...]:
        """Of each player the share of its games by cause of its death, most frequent first; empty where there are no snakes."""
        if self.causes is None:
            return ({},) * len(self.names)
        return tuple(shares_of_causes(column) for column in self.causes.T)

    @property
    def move_seconds(self) -> NDArray[np.float64]:
        """(N,) mean wall-clock time of a move; NaN if none was timed."""
        moves = self.times.moves.sum(axis=0)
        return np.where(moves > 0, self.times.seconds.sum(axis=0) / np.maximum(moves, 1), np.nan)

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


def shares_of_causes(causes: NDArray[np.object_]) -> dict[str, float]:
    """The share of games (G,) by cause of death, most frequent first; None is none."""
    counted = Counter(cause for cause in causes if cause is not None)
    return {cause: count / len(causes) for cause, count in counted.most_common()}


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
