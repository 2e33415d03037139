"""Ratings of players from who was placed above whom in games of any number of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from openskill.models import BradleyTerryFull

DRIFT = 25 / 300
"""How far a player's strength may move from one game to the next, unless said otherwise: openskill's own choice."""


class Rating(NamedTuple):
    """What is believed of a player's strength: a normal distribution, at first one that says nothing.

    Only differences mean something: a player who is rated 5.9 higher is placed above the other in 73 % of games, 11.8 higher in
    88 %, 17.7 higher in 95 % (the odds are exp(difference / (sqrt(2) * 25 / 6))).
    """

    mu: float = 25.0
    sigma: float = 25 / 3

    @property
    def interval(self) -> tuple[float, float]:
        """Where the strength is with 95 % probability."""
        return self.mu - 1.96 * self.sigma, self.mu + 1.96 * self.sigma


class Ratings:
    """Ratings by player's name, brought up to date game by game.

    They are those of Weng and Lin ("A Bayesian Approximation Method for Online Ranking", JMLR 12, 2011), algorithm 1: Bradley
    and Terry's model for all pairs of a game, as the library openskill has it. Of its models it is the one whose scale does not
    depend on how many play a game, so that games of two and of eight go together. A tie is half a win for either.

    In simulated tournaments among four the intervals covered the truth in 95 % of cases or more. With few games for many
    players they cover less, for the ratings are then still on their way apart.

    Args:
        drift: how far strengths may move from game to game, on the scale of `Rating`. 0 for players that do not learn: their
            intervals shrink as long as they play. With more than 0 old games are forgotten by and by, at most until nothing is
            known: games whose outcome was certain say nothing, and no interval grows wider than that of `Rating()`.

    Raises:
        ValueError: drift is negative.
    """

    def __init__(self, drift: float = DRIFT) -> None:
        if not drift >= 0:
            raise ValueError(f"drift must be >= 0, got {drift}")
        self._model = BradleyTerryFull(tau=drift)
        self._ratings: dict[str, Rating] = {}

    def __getitem__(self, name: str) -> Rating:
        """A player's rating; that of one who has not played says nothing."""
        return self._ratings.get(name, Rating())

    def __contains__(self, name: str) -> bool:
        """Whether this player has a rating of its own."""
        return name in self._ratings

    def rate(self, names: Sequence[str], ranks: Sequence[float]) -> None:
        """Take one game into account.

        A player who has several seats of a game plays from each as if it were somebody else with the same rating, and then
        has the mean of what became of these. A game with a single player, on however many seats, says nothing.

        Args:
            names: who sat there.
            ranks: how each seat was placed: less is better, equal is a tie.

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
        """What `as_dict` gave, to go on with.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(ratings, Mapping) or not all(map(is_rating, ratings.values())):
            raise ValueError(f"ratings must be [mu, sigma] by name, numbers of at most 1000, got {ratings!r:.200}")
        restored = cls(drift)
        restored._ratings = {name: Rating(float(mu), float(sigma)) for name, (mu, sigma) in ratings.items()}
        return restored


def is_rating(pair: Any) -> bool:
    """Whether it is a [mu, sigma] that `Ratings` can go on with: a thousand of either is far beyond what games lead to."""
    return (
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(type(number) in (int, float) for number in pair)
        and -1000 <= pair[0] <= 1000
        and 0 <= pair[1] <= 1000
    )
