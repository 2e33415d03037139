"""MixtureSource: draws one of several opponents for every game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.opponents.protocol import Opponent, Source


class MixtureSource(Source):
    """The source of a `mixture`.

    Args:
        members: opponents, or sources that draw one.
        shares: their probabilities; they sum to 1.
        per: "game": all seats with this mixture get the same member; "seat": each seat gets its own.
    """

    def __init__(self, members: Sequence[Opponent | Source], shares: Sequence[float], per: Literal["game", "seat"]) -> None:
        self.members, self.shares, self.per = tuple(members), tuple(shares), per
        self._sources = {number: one for number, one in enumerate(members) if not isinstance(one, Opponent)}

    @override
    def ready(self) -> Sequence[Opponent]:
        return [opponent for one in self.members for opponent in ([one] if isinstance(one, Opponent) else one.ready())]

    @override
    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        drawn = rng.choice(len(self.members), (games, 1 if self.per == "game" else seats), p=self.shares)
        drawn = np.broadcast_to(drawn, (games, seats))
        opponents: list[Opponent] = list(self.members)  # type: ignore[arg-type]  # `which` names none of the sources
        which = drawn.copy()
        for number, source in self._sources.items():
            which_games = np.flatnonzero((drawn == number).any(axis=1))
            if len(which_games):
                coming, theirs = source.draw(len(which_games), seats, rng, seated)
                which[which_games] = np.where(drawn[which_games] == number, theirs + len(opponents), which[which_games])
                opponents += coming
                seated = [*seated, *coming]
        return opponents, which

    @override
    def forget(self) -> None:
        for source in self._sources.values():
            source.forget()
