"""Who sits on the enemy seats of which game, and one forward pass per distinct opponent for all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.game_batch import GameBatch
from adapters.opponents.protocol import Lineup, Opponent, Source
from snake_pz.players import SeatedPlayer


class _Plan(NamedTuple):
    """Who sits down when a game restarts."""

    fixed: NDArray[np.intp]  # (N,) numbers of players by seat; -1 on the learner's seats and on those of sources
    sources: list[tuple[Source, NDArray[np.intp]]]  # and the seats of each
    ready: list[int]  # the numbers of all that are kept while they sit nowhere, each once, in the order of seeding


class OpponentLineup(Lineup):
    """The enemy seats of E games, filled by opponents.

    Opponents act in batches: all living seats of all games on which the same opponent object sits become one call of its
    `act`. An opponent's slot, which names the row its recurrent state belongs to, is `game * seats + seat`.

    A seat may have a source instead of one opponent, such as a mixture or a pool. Whenever its game restarts the source says
    who sits down, by a random stream of the line-up's own; seats with the same source object are asked for together.

    Args:
        seats: an opponent, or a source of opponents, per enemy seat, in enemy-seat order; the same object may stand several
            times.
        game_batch: the games.

    Raises:
        ValueError: not one entry per enemy seat, or an opponent whose spaces these games cannot serve; the latter also by
            `restart`, if a source comes up with it then.
    """

    def __init__(self, seats: Sequence[Opponent | Source], game_batch: GameBatch) -> None:
        self.seconds = 0.0
        self._game_batch = game_batch
        self._games, self._seats, self._learners = game_batch.num_games, game_batch.seats, game_batch.num_learners
        self._players: dict[int, SeatedPlayer] = {}  # by the number that stands for it in the tables; only those still needed
        self._added = 0
        self._seeds: np.random.SeedSequence | None = None
        self._rng = np.random.default_rng()
        self._plan = self._planned(seats)
        self._table = self._drawn(self._plan, self._games, [])  # (E, N) who sits in the running games

    @property
    @override
    def opponents(self) -> tuple[Opponent, ...]:
        return tuple(player.player for player in self._players.values())

    @override
    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None:
        started = time.perf_counter()
        for number, player in self._players.items():
            slots = np.flatnonzero((self._table == number) & active)
            if len(slots):
                games, seats = np.divmod(slots, self._seats)
                actions[games, seats] = player.act(slots)
        self.seconds += time.perf_counter() - started

    @override
    def restart(self, games: NDArray[np.intp]) -> None:
        if not len(games):
            return
        self._table[games] = -1
        self._forget_unused()  # first, so that who comes back is seeded like a newcomer, whether it sat here before or not
        self._table[games] = self._drawn(self._plan, len(games), self._seated())
        restarted = np.zeros(self._table.shape, dtype=np.bool_)
        restarted[games] = True
        self._reset(restarted)

    @override
    def set_opponents(self, seats: Sequence[Opponent | Source], when: Literal["restart", "now"] = "restart") -> None:
        if when not in ("restart", "now"):
            raise ValueError(f'when must be "restart" or "now", got {when!r}')
        plan = self._planned(seats)
        if when == "now":
            before, self._table = self._table, self._drawn(plan, self._games, [])
            self._reset(before != self._table)
        self._plan = plan
        self._forget_unused()

    @override
    def seed(self, sequence: np.random.SeedSequence) -> None:
        self._seeds = sequence
        self._rng = np.random.default_rng(sequence.spawn(1)[0])
        for number in self._plan.ready:
            self._seed(self._players[number].player, sequence)
        (aside,) = sequence.spawn(1)  # for those that only finish their games: how many they are is history
        for number, player in self._players.items():
            if number not in self._plan.ready:
                self._seed(player.player, aside)
        for source, _ in self._plan.sources:
            source.forget()

    @override
    def names(self, game: int) -> tuple[str, ...]:
        return tuple(self._players[number].player.name for number in self._table[game, self._learners :].tolist())

    def _planned(self, seats: Sequence[Opponent | Source]) -> _Plan:
        """The plan for these seats; opponents that are new get their view, a number and a seed."""
        enemies = self._seats - self._learners
        if len(seats) != enemies:
            raise ValueError(f"expected {enemies} opponents, one per enemy seat, got {len(seats)}")
        single: dict[int, Opponent] = {}  # by seat
        sources: dict[int, tuple[Source, list[int]]] = {}  # and its seats, by id
        for seat, entry in enumerate(seats, self._learners):
            if isinstance(entry, Opponent):
                single[seat] = entry
            else:
                sources.setdefault(id(entry), (entry, []))[1].append(seat)
        ready = [*single.values(), *(opponent for source, _ in sources.values() for opponent in source.ready())]
        numbers = self._numbered(ready)
        fixed = np.full(self._seats, -1, dtype=np.intp)
        fixed[list(single)] = numbers[: len(single)]
        return _Plan(fixed, [(source, np.array(where)) for source, where in sources.values()], list(dict.fromkeys(numbers)))

    def _drawn(self, plan: _Plan, games: int, seated: list[Opponent]) -> NDArray[np.intp]:
        """(games, N) who sits down in so many games, while these sit on in the others."""
        table = np.tile(plan.fixed, (games, 1))
        for source, seats in plan.sources:
            opponents, which = source.draw(games, len(seats), self._rng, seated)
            used = sorted(_values(which))
            coming = [opponents[one] for one in used]
            numbers = np.empty(len(opponents), np.intp)
            numbers[used] = self._numbered(coming)
            table[:, seats] = numbers[which]
            seated = seated + coming
        return table

    def _numbered(self, opponents: Sequence[Opponent]) -> list[int]:
        """The number of each opponent, which for new ones is a new one."""
        numbers = {id(player.player): number for number, player in self._players.items()}
        added: dict[int, SeatedPlayer] = {}
        for opponent in opponents:
            if id(opponent) not in numbers:
                number = numbers[id(opponent)] = self._added + len(added)
                added[number] = SeatedPlayer(opponent, self._game_batch)
        self._added += len(added)
        self._players.update(added)
        if self._seeds is not None:
            for player in added.values():
                self._seed(player.player, self._seeds)
        return [numbers[id(opponent)] for opponent in opponents]

    def _seated(self) -> list[Opponent]:
        """Everyone who sits in a running game."""
        return [self._players[number].player for number in sorted(_values(self._table)) if number >= 0]

    def _seed(self, opponent: Opponent, sequence: np.random.SeedSequence) -> None:
        opponent.seed(int(sequence.spawn(1)[0].generate_state(1)[0]))

    def _reset(self, where: NDArray[np.bool_]) -> None:
        """Tell the opponents on these seats, (E, N), that what they remember of them is over."""
        for number, player in self._players.items():
            slots = np.flatnonzero(where & (self._table == number))
            if len(slots):
                player.player.reset(slots)

    def _forget_unused(self) -> None:
        """Let go of opponents that sit nowhere and are not kept for later."""
        if len(self._players) > len(self._plan.ready):
            needed = _values(self._table).union(self._plan.ready)
            self._players = {number: player for number, player in self._players.items() if number in needed}


def _values(array: NDArray[np.intp]) -> set[int]:
    """The different numbers in it; for arrays as small as these a set is faster than `np.unique`."""
    return set(array.ravel().tolist())
