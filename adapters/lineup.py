"""Who sits on the enemy seats of which game, and one forward pass per distinct opponent for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adapters.matches import Matches, View, map_arrays
from adapters.opponents import Opponent
from adapters.specs import Mixture


class _Player(NamedTuple):
    """A distinct opponent and the games as it sees them."""

    opponent: Opponent
    view: View
    uses_masks: bool


class _Draw(NamedTuple):
    """Seats that are filled by lot whenever a game restarts."""

    seats: NDArray[np.intp]
    numbers: NDArray[np.intp]  # those of the players to draw from
    shares: NDArray[np.float64]  # how likely each is
    together: bool  # one player for all these seats of a game


class _Plan(NamedTuple):
    """Who sits down when a game restarts."""

    fixed: NDArray[np.intp]  # (N,) numbers of players by seat; -1 on the learner's seats and on those that are drawn
    draws: list[_Draw]

    def players(self) -> list[int]:
        """The number of everyone who may sit down."""
        numbers = np.concatenate([self.fixed, *(draw.numbers for draw in self.draws)])
        return [number for number in numbers.tolist() if number >= 0]

    def table(self, games: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """(games, N) who sits down in so many games."""
        table = np.tile(self.fixed, (games, 1))
        for seats, numbers, shares, together in self.draws:
            table[:, seats] = rng.choice(numbers, (games, 1 if together else len(seats)), p=shares)
        return table


class Lineup:
    """The enemy seats of E games, filled by opponents.

    Opponents act in batches: all living seats of all games on which the same opponent object sits become one call of its
    `act`. An opponent's slot, which names the row its recurrent state belongs to, is `game * seats + seat`.

    A seat may have a mixture of opponents instead of one. Whenever its game restarts one of them is drawn, from a random
    stream of the line-up's own; seats with the same mixture object and `per="game"` draw together.

    Args:
        seats: an opponent, or a mixture of opponents, per enemy seat, in enemy-seat order; the same object may stand several
            times.
        matches: the games.

    Raises:
        ValueError: not one entry per enemy seat, or an opponent whose spaces these games cannot serve.
    """

    def __init__(self, seats: Sequence[Opponent | Mixture], matches: Matches) -> None:
        self._matches = matches
        self._games, self._seats, self._learners = matches.num_games, matches.seats, matches.num_learners
        self._players: dict[int, _Player] = {}  # by the number that stands for it in the tables; only those still needed
        self._added = 0
        self._seeds: np.random.SeedSequence | None = None
        self._rng = np.random.default_rng()
        self._plan = self._planned(seats)
        self._table = self._plan.table(self._games, self._rng)  # (E, N) who sits in the running games
        self._leaving = False  # whether some player sits on in a running game, but is not in the plan

    @property
    def opponents(self) -> tuple[Opponent, ...]:
        """Everyone who sits in a running game or may sit down next, each once."""
        return tuple(player.opponent for player in self._players.values())

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
            observations = map_arrays(partial(_rows, slots=slots), view.observations())
            masks = view.action_masks() if uses_masks else None
            chosen = opponent.act(observations, slots, None if masks is None else _rows(masks, slots))
            _check_actions(opponent, chosen, len(slots))
            games, seats = np.divmod(slots, self._seats)
            actions[games, seats] = view.decode(chosen, games, seats)

    def restart(self, games: NDArray[np.intp]) -> None:
        """Seat the next opponents in these games, which have just restarted, and clear the state opponents keep of them."""
        if not len(games):
            return
        self._table[games] = self._plan.table(len(games), self._rng)
        if self._leaving:
            self._forget_unused()
        restarted = np.zeros(self._table.shape, dtype=np.bool_)
        restarted[games] = True
        self._reset(restarted)

    def set_opponents(self, seats: Sequence[Opponent | Mixture], when: Literal["restart", "now"] = "restart") -> None:
        """Change who plays.

        Args:
            seats: an opponent or a mixture per enemy seat, as for the constructor.
            when: "restart" leaves each running game its opponents until it restarts; "now" swaps them in the middle of
                the game, clearing the state of those that are new on their seat.

        Raises:
            ValueError: as the constructor does; the line-up is then unchanged.
        """
        if when not in ("restart", "now"):
            raise ValueError(f'when must be "restart" or "now", got {when!r}')
        self._plan = self._planned(seats)
        if when == "now":
            before, self._table = self._table, self._plan.table(self._games, self._rng)
            self._reset(before != self._table)
        self._forget_unused()

    def seed(self, sequence: np.random.SeedSequence) -> None:
        """Reseed the draws and every opponent, those about to sit down first; those set later get seeds from it as well."""
        self._seeds = sequence
        self._rng = np.random.default_rng(sequence.spawn(1)[0])
        for number in dict.fromkeys([*self._plan.players(), *self._players]):
            self._seed(self._players[number].opponent)

    def names(self, game: int) -> tuple[str, ...]:
        """Who sits on the enemy seats of a running game, in enemy-seat order."""
        return tuple(self._players[number].opponent.name for number in self._table[game, self._learners :].tolist())

    def _planned(self, seats: Sequence[Opponent | Mixture]) -> _Plan:
        """The plan for these seats; opponents that are new get their view, a number and a seed."""
        enemies = self._seats - self._learners
        if len(seats) != enemies:
            raise ValueError(f"expected {enemies} opponents, one per enemy seat, got {len(seats)}")
        numbers = self._numbered([one for entry in seats for one in (entry.members if isinstance(entry, Mixture) else [entry])])
        fixed = np.full(self._seats, -1, dtype=np.intp)
        drawn: dict[Mixture, list[int]] = {}
        for seat, entry in enumerate(seats, self._learners):
            if isinstance(entry, Mixture):
                drawn.setdefault(entry, []).append(seat)
            else:
                fixed[seat] = numbers[id(entry)]
        draws = [
            _Draw(
                np.array(where),
                np.array([numbers[id(member)] for member in entry.members]),
                np.array(entry.shares),
                entry.per == "game",
            )
            for entry, where in drawn.items()
        ]
        return _Plan(fixed, draws)

    def _numbered(self, opponents: Sequence[Opponent]) -> dict[int, int]:
        """The number of each opponent by its `id`, which for new ones is a new one."""
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
        return numbers

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
        """Let go of opponents that sit nowhere and will not."""
        planned = set(self._plan.players())
        needed = planned.union(np.unique(self._table).tolist())
        self._players = {number: player for number, player in self._players.items() if number in needed}
        self._leaving = not planned.issuperset(self._players)


def _rows(array: NDArray[Any], slots: NDArray[np.intp]) -> NDArray[Any]:
    """(E, N, ...) -> (B, ...): a copy of the rows that the slots name."""
    return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)


def _check_actions(opponent: Opponent, actions: Any, rows: int) -> None:
    """Refuse what numpy would spread over other seats, round, or let out of the space."""
    space = opponent.action_space
    expected = (rows, *(space.shape or ()))
    if not isinstance(actions, np.ndarray) or actions.shape != expected:
        raise ValueError(
            f"opponent {opponent.name!r} must return an array of actions of shape {expected}, got "
            f"{getattr(actions, 'shape', type(actions).__name__)}"
        )
    if isinstance(space, gymnasium.spaces.Discrete) and (
        actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() >= space.n
    ):
        raise ValueError(f"opponent {opponent.name!r} must return integers from 0 to {space.n - 1}, got {actions.tolist()}")
