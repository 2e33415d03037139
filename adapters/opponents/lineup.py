"""OpponentLineup: the opponents on all enemy seats, with one forward pass per distinct opponent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.game_batch import GameBatch
from adapters.opponents.ahead import Ahead
from adapters.opponents.protocol import Lineup, Opponent, Source
from snake_pz.players import SeatedPlayer, TakesTime


class _Plan(NamedTuple):
    """The opponents and sources for games that restart."""

    fixed: NDArray[np.intp]  # (N,) numbers of players by seat; -1 on learner seats and on seats of sources
    sources: list[tuple[Source, NDArray[np.intp]]]  # with the seats of each
    ready: list[int]  # numbers of fixed opponents and those of `Source.ready`, each once, in the order of seeding


class OpponentLineup(Lineup):
    """The opponents on the enemy seats of E games.

    Each distinct opponent object acts in one call for all active seats that it has in all games. Its recurrent state is kept by
    slot, `game * seats + seat`.

    A seat may have a source, such as a mixture or a pool, that draws an opponent whenever the game restarts, with a random
    stream of the line-up. Seats with the same source object are drawn together.

    After `foresee` the networks of opponents that say `infers_ahead` run in another thread, until `act` waits for them. Only
    what depends on observations alone is done there. Drawing actions, remembering, and all other opponents, users' own
    functions among them, are left to the thread that calls `act`. So equal seeds give equal actions either way, and what was
    foreseen is dropped without a trace if opponents or games change before they act.

    Args:
        seats: an opponent or a source per enemy seat, in seat order. The same object may be on several seats.
        game_batch: the games.
        move_time: seconds that a move may take. Players that can stop in time, `TakesTime`, are told.

    Attributes:
        ahead: the thread, and the rule by which it is used.
        took: (E, N) wall-clock seconds that each seat's move took in the last call of `act`. A player moves in all of its games
            at once: it is the time of its call, divided by the moves. NaN for seats that did not move, for moves that were
            foreseen, and in a player's first call, in which it may compile or load.

    Raises:
        ValueError: not one entry per enemy seat, or the games have no view in an opponent's spaces; the latter also from
            `restart`, for an opponent that a source draws.
    """

    def __init__(self, seats: Sequence[Opponent | Source], game_batch: GameBatch, *, move_time: float | None = None) -> None:
        self._move_time = move_time
        self.seconds = 0.0
        self.ahead = Ahead()
        self.took = np.full((game_batch.num_games, game_batch.seats), np.nan)
        self._game_batch = game_batch
        self._games, self._seats, self._learners = game_batch.num_games, game_batch.seats, game_batch.num_learners
        self._players: dict[int, SeatedPlayer] = {}  # by their number in `_table`; only those still needed
        self._added = 0
        self._warm: set[int] = set()  # numbers of players that have moved
        self._seeds: np.random.SeedSequence | None = None
        self._rng = np.random.default_rng()
        self._plan = self._planned(seats)
        self._table = self._drawn(self._plan, self._games, [])  # (E, N) numbers of the players in the running games

    @property
    @override
    def opponents(self) -> tuple[Opponent, ...]:
        return tuple(player.player for player in self._players.values())

    @override
    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None:
        started, inference = time.perf_counter(), 0.0
        jobs, foreseen = self.ahead.take(), []
        self.took[:] = np.nan
        for number, player, slots in self._acting(active):
            opponent: Any = player.player
            if number in jobs and np.array_equal(jobs[number].slots, slots):
                foreseen.append((player, jobs[number]))
                continue
            before = time.perf_counter()
            self._write(actions, slots, player.act(slots))
            seconds = time.perf_counter() - before
            if number in self._warm:
                self.took.ravel()[slots] = seconds / len(slots)
            self._warm.add(number)
            if getattr(opponent, "infers_ahead", False):
                inference += seconds
        for player, job in reversed(foreseen):  # so that the last ones, which have not begun, run here
            opponent = player.player
            chosen = opponent.choose(job.result(), player.action_masks(job.slots))
            self._write(actions, job.slots, player.decoded(chosen, job.slots))
        self.ahead.timed(inference)
        self.seconds += time.perf_counter() - started

    @override
    def foresee(self, active: NDArray[np.bool_]) -> None:
        started = time.perf_counter()
        self.ahead.drop()
        if self.ahead.due():
            for number, player, slots in self._acting(active):
                opponent: Any = player.player
                if getattr(opponent, "infers_ahead", False):
                    self.ahead.begin(number, slots, partial(opponent.infer, player.observed(slots), slots))
        self.seconds += time.perf_counter() - started

    @override
    def close(self) -> None:
        self.ahead.close()

    @override
    def restart(self, games: NDArray[np.intp]) -> None:
        if not len(games):
            return
        self.ahead.drop()
        self._table[games] = -1
        self._forget_unused()  # before the draw, so that seeding does not depend on who sat here before
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
            self.ahead.drop()
        self._plan = plan
        self._forget_unused()

    @override
    def seed(self, sequence: np.random.SeedSequence) -> None:
        self._seeds = sequence
        self._rng = np.random.default_rng(sequence.spawn(1)[0])
        for number in self._plan.ready:
            self._seed(self._players[number].player, sequence)
        (aside,) = sequence.spawn(1)  # for opponents that only finish their games, whose number depends on the past
        for number, player in self._players.items():
            if number not in self._plan.ready:
                self._seed(player.player, aside)
        for source, _ in self._plan.sources:
            source.forget()

    @override
    def names(self, game: int) -> tuple[str, ...]:
        return tuple(self._players[number].player.name for number in self._table[game, self._learners :].tolist())

    def _acting(self, active: NDArray[np.bool_]) -> Iterator[tuple[int, SeatedPlayer, NDArray[np.intp]]]:
        """The players of active seats, each with its number and the slots that it acts for."""
        for number, player in self._players.items():
            slots = np.flatnonzero((self._table == number) & active)
            if len(slots):
                yield number, player, slots

    def _write(self, actions: NDArray[Any], slots: NDArray[np.intp], chosen: NDArray[Any]) -> None:
        games, seats = np.divmod(slots, self._seats)
        actions[games, seats] = chosen

    def _planned(self, seats: Sequence[Opponent | Source]) -> _Plan:
        """The plan for these seats. New opponents get a view, a number and a seed."""
        enemies = self._seats - self._learners
        if len(seats) != enemies:
            raise ValueError(f"expected {enemies} opponents, one per enemy seat, got {len(seats)}")
        single: dict[int, Opponent] = {}  # by seat
        sources: dict[int, tuple[Source, list[int]]] = {}  # by id, with the seats
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
        """(games, N) numbers of the players for games that restart, while `seated` play on in the others."""
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
        """The numbers of these opponents; new ones get a new number."""
        numbers = {id(player.player): number for number, player in self._players.items()}
        added: dict[int, SeatedPlayer] = {}
        for opponent in opponents:
            if id(opponent) not in numbers:
                number = numbers[id(opponent)] = self._added + len(added)
                added[number] = SeatedPlayer(opponent, self._game_batch)
                if self._move_time is not None and isinstance(opponent, TakesTime):
                    opponent.limit_move_time(self._move_time)
        self._added += len(added)
        self._players.update(added)
        if self._seeds is not None:
            for player in added.values():
                self._seed(player.player, self._seeds)
        return [numbers[id(opponent)] for opponent in opponents]

    def _seated(self) -> list[Opponent]:
        """The opponents in running games."""
        return [self._players[number].player for number in sorted(_values(self._table)) if number >= 0]

    def _seed(self, opponent: Opponent, sequence: np.random.SeedSequence) -> None:
        opponent.seed(int(sequence.spawn(1)[0].generate_state(1)[0]))

    def _reset(self, where: NDArray[np.bool_]) -> None:
        """Clear the recurrent state of these seats (E, N)."""
        for number, player in self._players.items():
            slots = np.flatnonzero(where & (self._table == number))
            if len(slots):
                player.player.reset(slots)

    def _forget_unused(self) -> None:
        """Drop opponents that sit on no seat and are not `ready`."""
        if len(self._players) > len(self._plan.ready):
            needed = _values(self._table).union(self._plan.ready)
            self._players = {number: player for number, player in self._players.items() if number in needed}


def _values(array: NDArray[np.intp]) -> set[int]:
    """The distinct numbers of an array; for arrays as small as these a set is faster than `np.unique`."""
    return set(array.ravel().tolist())
