"""Ratings of players from their placements in games of any number of players."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from openskill.models import BradleyTerryFull

DRIFT = 25 / 300
"""How far a player's strength may move from one game to the next, unless said otherwise: openskill's own choice."""


class Rating(NamedTuple):
    """Estimate of a player's strength: a normal distribution, at first the prior.

    Only differences have a meaning: a player rated 5.9 higher is placed above the other in 73 % of games, 11.8 higher in
    88 %, 17.7 higher in 95 % (the odds are exp(difference / (sqrt(2) * 25 / 6))).
    """

    mu: float = 25.0
    sigma: float = 25 / 3

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that contains the strength with 95 % probability."""
        return self.mu - 1.96 * self.sigma, self.mu + 1.96 * self.sigma


class Ratings:
    """Ratings by player's name, updated game by game.

    The method is algorithm 1 of Weng and Lin ("A Bayesian Approximation Method for Online Ranking", JMLR 12, 2011): Bradley and
    Terry's model for all pairs of a game, as implemented by the library openskill. Of its models it is the one whose scale does
    not depend on the number of players, so that games of two and of eight can be mixed. A tie is half a win for each.

    In simulated tournaments of games of four the intervals covered the true strength in 95 % of cases or more. With few games
    for many players they cover less, because the ratings have not yet moved apart.

    Args:
        drift: standard deviation by which strengths may move from game to game, on the scale of `Rating`. 0 for players that do
            not learn: their intervals shrink with every game. Above 0, old games lose weight; no interval grows wider than
            that of `Rating()`, the prior.

    Raises:
        ValueError: drift is negative.
    """

    def __init__(self, drift: float = DRIFT) -> None:
        if not drift >= 0:
            raise ValueError(f"drift must be >= 0, got {drift}")
        self._model = BradleyTerryFull(tau=drift)
        self._ratings: dict[str, Rating] = {}

    def __getitem__(self, name: str) -> Rating:
        """A player's rating; the prior for a player that has not played."""
        return self._ratings.get(name, Rating())

    def __contains__(self, name: str) -> bool:
        """Whether this player has been rated."""
        return name in self._ratings

    def rate(self, names: Sequence[str], ranks: Sequence[float]) -> None:
        """Update the ratings with one game.

        A player on several seats counts as several players with the same rating; its new rating is the mean of theirs. A game
        with a single player, on any number of seats, changes nothing.

        Args:
            names: the player on each seat.
            ranks: the placement of each seat, lower is better, equal is a tie.

        Raises:
            ValueError: not one rank per name.
        """
        if len(names) != len(ranks):
            raise ValueError(f"expected a rank for each of {len(names)} names, got {len(ranks)}")
        if len(set(names)) < 2:
            return
        teams = [[self._model.rating(*self[name])] for name in names]
        became: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for name, (after,) in zip(names, self._model.rate(teams, ranks=[float(rank) for rank in ranks]), strict=True):
            became[name].append((after.mu, min(after.sigma, Rating().sigma)))
        for name, seats in became.items():
            self._ratings[name] = Rating(*(sum(values) / len(seats) for values in zip(*seats, strict=True)))

    def as_dict(self) -> dict[str, list[float]]:
        """[mu, sigma] by name, for JSON."""
        return {name: list(rating) for name, rating in self._ratings.items()}

    @classmethod
    def from_dict(cls, ratings: Mapping[str, Any], drift: float = DRIFT) -> Ratings:
        """Continue with the ratings that `as_dict` returned.

        Raises:
            ValueError: it is not such a dict.
        """
        if not isinstance(ratings, Mapping) or not all(map(is_rating, ratings.values())):
            raise ValueError(f"ratings must be [mu, sigma] by name, numbers of at most 1000, got {ratings!r:.200}")
        restored = cls(drift)
        restored._ratings = {name: Rating(float(mu), float(sigma)) for name, (mu, sigma) in ratings.items()}
        return restored


def is_rating(pair: Any) -> bool:
    """Whether this is a [mu, sigma] that `Ratings` can continue with; games lead to values far below the limit of 1,000."""
    return (
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(type(number) in (int, float) for number in pair)
        and -1000 <= pair[0] <= 1000
        and 0 <= pair[1] <= 1000
    )
