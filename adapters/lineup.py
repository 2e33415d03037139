"""Who sits on the enemy seats of which game, and one forward pass per distinct opponent for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapters.matches import Matches, View
from adapters.opponents import Opponent


class _Player(NamedTuple):
    """A distinct opponent and the games as it sees them."""

    opponent: Opponent
    view: View
    uses_masks: bool


class Lineup:
    """The enemy seats of E games, filled by opponents.

    Opponents act in batches: all living seats of all games on which the same opponent object sits become one call of its
    `act`. An opponent's slot, which names the row its recurrent state belongs to, is `game * seats + seat`.

    Args:
        opponents: one per enemy seat, in enemy-seat order; the same object may stand several times.
        matches: the games.

    Raises:
        ValueError: not one opponent per enemy seat, or one whose spaces these games cannot serve.
    """

    def __init__(self, opponents: Sequence[Opponent], matches: Matches) -> None:
        self._matches = matches
        self._games, self._seats, self._learners = matches.num_games, matches.seats, matches.num_learners
        self._players: dict[int, _Player] = {}  # by the number that stands for it in the tables; only those still needed
        self._added = 0
        self._seeds: np.random.SeedSequence | None = None
        self._next = self._row(opponents)  # (N,) who sits down when a game restarts; -1 on the learner's seats
        self._table = np.tile(self._next, (self._games, 1))  # (E, N) who sits in the running games
        self._swapping = False  # whether some running game may differ from _next

    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Fill in what the active enemy seats do in the present turn.

        Args:
            actions: (E, N, *action) as `Matches.step` takes them, written in place on active enemy seats only.
            active: (E, N) seats that act, from the present `Turn`.
        """
        for number, (opponent, view, uses_masks) in self._players.items():
            slots = np.flatnonzero((self._table == number) & active)
            if not len(slots):
                continue
            observations = _rows(view.observations(), slots)
            masks = view.action_masks() if uses_masks else None
            chosen = opponent.act(observations, slots, None if masks is None else _rows(masks, slots))
            games, seats = np.divmod(slots, self._seats)
            actions[games, seats] = view.decode(chosen, games, seats)

    def restart(self, games: NDArray[np.intp]) -> None:
        """Seat the next opponents in these games, which have just restarted, and clear the state opponents keep of them."""
        if not len(games):
            return
        if self._swapping:
            self._table[games] = self._next
            self._forget_unused()
        restarted = np.zeros(self._table.shape, dtype=np.bool_)
        restarted[games] = True
        self._reset(restarted)

    def set_opponents(self, opponents: Sequence[Opponent], when: Literal["restart", "now"] = "restart") -> None:
        """Change who plays.

        Args:
            opponents: one per enemy seat, as for the constructor.
            when: "restart" leaves each running game its opponents until it restarts; "now" swaps them in the middle of
                the game, clearing the state of those that are new on their seat.

        Raises:
            ValueError: as the constructor does; the line-up is then unchanged.
        """
        if when not in ("restart", "now"):
            raise ValueError(f'when must be "restart" or "now", got {when!r}')
        self._next = self._row(opponents)
        self._swapping = True
        if when == "now":
            changed = self._table != self._next
            self._table[:] = self._next
            self._reset(changed)
        self._forget_unused()

    def seed(self, sequence: np.random.SeedSequence) -> None:
        """Reseed every opponent, those about to sit down first; opponents set later are seeded from `sequence` as well."""
        self._seeds = sequence
        for number in dict.fromkeys([*self._next[self._learners :].tolist(), *self._players]):
            self._seed(self._players[number].opponent)

    def names(self, game: int) -> tuple[str, ...]:
        """Who sits on the enemy seats of a running game, in enemy-seat order."""
        return tuple(self._players[number].opponent.name for number in self._table[game, self._learners :].tolist())

    def _row(self, opponents: Sequence[Opponent]) -> NDArray[np.intp]:
        """(N,) the numbers of these opponents by seat; new ones get their view, a number and a seed."""
        enemies = self._seats - self._learners
        if len(opponents) != enemies:
            raise ValueError(f"expected {enemies} opponents, one per enemy seat, got {len(opponents)}")
        numbers = {id(player.opponent): number for number, player in self._players.items()}
        added: dict[int, _Player] = {}
        for opponent in opponents:
            if id(opponent) not in numbers:
                number = numbers[id(opponent)] = self._added + len(added)
                added[number] = _Player(opponent, self._view(opponent), getattr(opponent, "uses_masks", False))
        self._added += len(added)
        self._players.update(added)
        for player in added.values():
            self._seed(player.opponent)
        return np.array([-1] * self._learners + [numbers[id(opponent)] for opponent in opponents], dtype=np.intp)

    def _view(self, opponent: Opponent) -> View:
        try:
            return self._matches.view(opponent.observation_space, opponent.action_space)
        except ValueError as error:
            raise ValueError(f"opponent {opponent.name!r} cannot play in these games: {error}") from error

    def _seed(self, opponent: Opponent) -> None:
        if self._seeds is not None:
            opponent.seed(int(self._seeds.spawn(1)[0].generate_state(1)[0]))

    def _reset(self, where: NDArray[np.bool_]) -> None:
        """Tell the opponents on these seats, (E, N), that what they remember of them is over."""
        for number, player in self._players.items():
            slots = np.flatnonzero(where & (self._table == number))
            if len(slots):
                player.opponent.reset(slots)

    def _forget_unused(self) -> None:
        """Let go of opponents that sit nowhere and will not, and end the swap once every game has made it."""
        needed = {*np.unique(self._table).tolist(), *self._next.tolist()}
        self._players = {number: player for number, player in self._players.items() if number in needed}
        self._swapping = bool((self._table != self._next).any())


def _rows(array: NDArray[Any], slots: NDArray[np.intp]) -> NDArray[Any]:
    """(E, N, ...) -> (B, ...): a copy of the rows that the slots name."""
    return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)
