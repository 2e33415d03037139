"""Results of a tournament, as numbers, table, files and picture."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from adapters.evaluation.move_times import MoveTimes
from adapters.evaluation.results import shares_of_causes
from adapters.evaluation.tables import as_text
from adapters.placements import pair_scores, win_shares
from adapters.ratings import Rating, Ratings
from snake_pz.escaping import printable, spreadsheet_cell
from snake_pz.files import write_text


class Played(NamedTuple):
    """Results of G games of N seats each, in the order in which they are rated."""

    players: NDArray[np.int64]  # (G, N) number of the player on each seat
    ranks: NDArray[np.int64]  # (G, N) its placement, 1 is best, shared on a tie
    turns: NDArray[np.int64]  # (G, N) turns that it played
    lengths: NDArray[np.float64]  # (G, N) segments at its end; NaN where the game has no snakes
    causes: NDArray[np.object_]  # (G, N) of its death; None if it lived to the end, or where the game has no snakes
    times: MoveTimes  # (G, N) of its moves
    move_time: float | None = None  # seconds that a move could take


class Standing(NamedTuple):
    """Results of one player. If it had several seats in one game, each counts as a game."""

    name: str  # short, unique in this tournament
    player: str  # full name, for example the path of a checkpoint
    rating: Rating
    win_rate: float  # share of first places, 1/m for each of m that tie; NaN without games
    games: int
    mean_placement: float  # 1 is best; NaN without games
    mean_turns: float  # played; NaN without games
    mean_length: float | None  # segments at the end; None where the game has no snakes
    deaths: dict[str, float]  # share of its games by cause of its death, most frequent first
    move_seconds: (
        float | None
    )  # of wall-clock time of a move, on average, see `OpponentLineup.took`; measured with a limit only
    late: float | None  # share of its moves that took over 1.5 times the limit; None without a limit

    def as_json(self) -> dict[str, Any]:
        """The same for JSON, without NaN."""
        fields = {
            **self._asdict(),
            "rating": self.rating.mu,
            "sigma": self.rating.sigma,
            "interval": list(self.rating.interval),
        }
        return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in fields.items()}


class Standings:
    """Results of the players of a tournament, highest rating first.

        for standing in standings:
            print(standing.name, standing.win_rate)
        print(standings["greedy"].rating.interval)

    Attributes:
        standings: one per player.
        payoff: (P, P) in the order of `standings`: share of pairs of seats in the same game in which the row's player was
            placed above the column's, ties counting half; NaN for players that did not meet.
        meetings: (P, P) number of such pairs.
        games: number of games.

    Args:
        names: short, distinct names of the players, by number.
        players: full names, for example paths of checkpoints.
        played: results of the games.
    """

    def __init__(self, names: Sequence[str], players: Sequence[str], played: Played) -> None:
        self.games = len(played.ranks)
        ratings = Ratings(drift=0)
        for seated, ranks in zip(played.players.tolist(), played.ranks.tolist(), strict=True):
            ratings.rate([names[player] for player in seated], ranks)
        shares = win_shares(played.ranks)
        order = sorted(range(len(names)), key=lambda number: (-ratings[names[number]].mu, number))
        self.standings = tuple(
            _standing(names[number], players[number], ratings[names[number]], played, shares, played.players == number)
            for number in order
        )
        payoff, self.meetings = _payoff(played, len(names))
        self.payoff: NDArray[np.float64] = payoff[np.ix_(order, order)]
        self.meetings = self.meetings[np.ix_(order, order)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players, highest rating first."""
        return tuple(standing.name for standing in self.standings)

    def __iter__(self) -> Iterator[Standing]:
        """Iterate over the standings, highest rating first."""
        return iter(self.standings)

    def __len__(self) -> int:
        """Number of players."""
        return len(self.standings)

    def __getitem__(self, name: str) -> Standing:
        """The standing of the player with this name.

        Raises:
            KeyError: no player has this name.
        """
        if name not in self.names:
            raise KeyError(f"no player is called {name!r}: there are {', '.join(self.names)}")
        return self.standings[self.names.index(name)]

    def __str__(self) -> str:
        """The table as text, 100 characters wide."""
        return as_text(self.table())

    def table(self) -> Table:
        """The standings for a terminal."""
        snakes = any(standing.mean_length is not None for standing in self.standings)
        longer = {one.name: one.player for one in self.standings if one.name != one.player}
        caption = "\n".join(f"{printable(name)} = {printable(player)}" for name, player in longer.items())
        table = Table(
            title=f"{self.games:,} games",
            box=box.SIMPLE_HEAD,
            caption=Text(caption, "table.caption") if caption else None,  # in a plain string [brackets] would be markup
            caption_justify="left",
        )
        table.add_column("", justify="right")
        table.add_column("player", overflow="fold", min_width=min(max(len(printable(name)) for name in self.names), 16))
        for head in ("rating, 95 %", "wins", "placed", "games", "length" if snakes else "turns"):
            table.add_column(head, justify="right", no_wrap=True)
        timed = any(standing.late is not None for standing in self.standings)
        if timed:
            table.add_column("ms", justify="right", no_wrap=True)
            table.add_column("late", justify="right", no_wrap=True)
        elif snakes:  # for both there is no room
            table.add_column("died of")
        for place, one in enumerate(self.standings, 1):
            length = one.mean_length if snakes else one.mean_turns
            table.add_row(
                f"{place}",
                Text(printable(one.name)),
                f"{one.rating.mu:.1f} ± {1.96 * one.rating.sigma:.1f}",
                _shown(one.win_rate, ".1%"),
                _shown(one.mean_placement, ".2f"),
                f"{one.games:,}",
                _shown(length, ".1f"),
                *(
                    [_shown(None if one.move_seconds is None else 1000 * one.move_seconds, ".2f"), _shown(one.late, ".1%")]
                    if timed
                    else ()
                ),
                *(
                    [Text(", ".join(f"{printable(cause)} {share:.0%}" for cause, share in list(one.deaths.items())[:2]))]
                    if snakes and not timed
                    else ()
                ),
            )
        return table

    def as_json(self) -> dict[str, Any]:
        """All results, for JSON: `standings` is a list, highest rating first; `payoff` and `meetings` are by name and name."""
        return {
            "games": self.games,
            "standings": [standing.as_json() for standing in self.standings],
            "payoff": self._by_names([[None if math.isnan(share) else share for share in row] for row in self.payoff.tolist()]),
            "meetings": self._by_names(self.meetings.tolist()),
        }

    def json(self) -> str:
        """The same as text."""
        return json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n"

    def write_json(self, path: str | Path) -> None:
        """Write `as_json` to a file, which is replaced only when it is complete."""
        write_text(Path(path), self.json())

    def write_csv(self, path: str | Path) -> None:
        """Write a row per player, with a column `died_of_<cause>` per cause and `above_<name>` per opponent.

        Names that a spreadsheet would take for formulas begin with an apostrophe.
        """
        causes = sorted({cause for standing in self.standings for cause in standing.deaths})
        heads = ("place", "name", "player", "rating", "sigma", "low", "high")
        means = ("win_rate", "games", "mean_placement", "mean_turns", "mean_length", "move_seconds", "late")
        rows: list[list[Any]] = [
            [*heads, *means, *(f"died_of_{cause}" for cause in causes), *(f"above_{name}" for name in self.names)]
        ]
        for place, one in enumerate(self.standings, 1):
            row = [place, one.name, one.player, *one.rating, *one.rating.interval, *(getattr(one, mean) for mean in means)]
            row += [one.deaths.get(cause, 0.0) for cause in causes]
            row += self.payoff[place - 1].tolist()
            rows.append(["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row])
        file = io.StringIO(newline="")
        csv.writer(file).writerows([spreadsheet_cell(cell) for cell in row] for row in rows)
        write_text(Path(path), file.getvalue())

    def plot(self, path: str | Path) -> None:
        """Write a PNG of the payoff table and the ratings."""
        from adapters.evaluation.standings_plot import draw  # loads matplotlib

        ratings = [standing.rating for standing in self.standings]
        draw(Path(path), f"{len(self.names)} players, {self.games:,} games", self.names, ratings, self.payoff)

    def _by_names(self, table: Sequence[Sequence[Any]]) -> dict[str, dict[str, Any]]:
        """The entries of a (P, P) table by name and name, without the diagonal."""
        return {
            above: {below: entry for below, entry in zip(self.names, row, strict=True) if below != above}
            for above, row in zip(self.names, table, strict=True)
        }


def _standing(
    name: str, player: str, rating: Rating, played: Played, shares: NDArray[np.float64], own: NDArray[np.bool_]
) -> Standing:
    """The standing of the player on the seats where `own`, (G, N), is true."""
    games = int(own.sum())

    def mean(values: NDArray[Any]) -> float:
        return float(values[own].mean()) if games else math.nan

    length = mean(played.lengths)
    times = played.times.take(own)
    moves = int(times.moves.sum())
    timed = moves > 0 and played.move_time is not None  # else the same seed would not give the same standings
    return Standing(
        name,
        player,
        rating,
        win_rate=mean(shares),
        games=games,
        mean_placement=mean(played.ranks),
        mean_turns=mean(played.turns),
        mean_length=None if math.isnan(length) else length,
        deaths=shares_of_causes(played.causes[own]),
        move_seconds=float(times.seconds.sum()) / moves if timed else None,
        late=float(times.late.sum()) / moves if timed else None,
    )


def _payoff(played: Played, players: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(P, P) shares of placements above, and numbers of meetings."""
    above = np.zeros((players, players))
    meetings = np.zeros((players, players), np.int64)
    for seat in range(played.ranks.shape[1]):
        for other in range(played.ranks.shape[1]):
            if seat != other:
                pairs = played.players[:, seat], played.players[:, other]
                np.add.at(above, pairs, pair_scores(played.ranks[:, seat], played.ranks[:, other]))
                np.add.at(meetings, pairs, 1)
    np.fill_diagonal(meetings, 0)
    return np.where(meetings > 0, above / np.maximum(meetings, 1), np.nan), meetings


def _shown(value: float | None, form: str) -> str:
    return "" if value is None or math.isnan(value) else format(value, form)
