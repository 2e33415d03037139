"""PoolSource: draws members of a pool for the games of one environment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.space_words import hidden_difference
from adapters.opponents.checkpoints import is_onnx
from adapters.opponents.members import Member
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool import OpponentPool, PoolChangedError
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.unpickling import Trust

if TYPE_CHECKING:
    import torch

    from snake_pz.core.encodings import Encoding

Sight = tuple["Encoding | None", Sequence[gymnasium.Space[Any]]]
"""The encoding that a policy is shown, None: that of its space; and the spaces that it may have."""

T = TypeVar("T")

TURNOVER = 32
"""Least number of games between two changes of a place of a large pool."""


class PoolSource(Source):
    """The source of a pool's members. Every environment in which a pool plays has its own.

    If all members fit in the pool's `max_active`, each game draws from all of them. A larger pool is played through a few
    *places*: each place holds a member that the sampler drew, and each game draws one of the places with equal probability, so
    that in the long run members play as often as the sampler's weights say. After at least `TURNOVER` games, and only while
    fewer than `max_active` members play or have a place, the oldest place is drawn again; its former member finishes its games.
    So there are `max_active - 1` places for the sampler, one less with a `latest_share`, which has its own place for the latest
    snapshot. A newer snapshot takes that place as soon as there is room.

    At most `max_loaded` members are kept in memory: all that play or have a place, and those drawn last.

    Args:
        pool: the pool.
        shown: observation spaces of the games, the preferred first.
        make_bot: makes a bot by name, or "champion".
        prefix: prefix of members' names in infos.
        deterministic: whether snapshots play their likeliest action instead of sampling.
        device: device on which they predict.
        trust: what their files may ask for beside known classes, as for `frozen`.
        encoded: the encoding that a snapshot of an encoding of this name (or None) is shown, None for one of `shown`; and the
            spaces of the games in that encoding.

    Raises:
        ValueError: the pool is empty, or a member does not fit these games. Of snapshots with equal spaces only the latest is
            checked.
    """

    def __init__(
        self,
        pool: OpponentPool,
        *,
        shown: Sequence[gymnasium.Space[Any]],
        make_bot: Callable[[str], Opponent],
        prefix: str = "",
        deterministic: bool = False,
        device: torch.device | str = "auto",
        trust: Trust = False,
        encoded: Callable[[str | None], Sight] | None = None,
    ) -> None:
        self._pool = pool
        self._shown, self._make_bot, self._prefix = list(shown), make_bot, prefix
        self._encoded: Callable[[str | None], Sight] = encoded or (lambda name: (None, self._shown))
        self._deterministic, self._device, self._trust = deterministic, device, trust
        self._loaded: OrderedDict[str, Opponent] = OrderedDict()  # by name, the last drawn at the end
        self._hashes: dict[str, str | None] = {}  # of the files of loaded members
        self._limit = max(2, pool.max_active)
        self._own_places = 0 if pool.latest_share == 1 else self._limit - 1 - (pool.latest_share > 0)
        self.forget()
        self._retrying(self._load_one_of_each_kind)
        self._evict(())

    @override
    def ready(self) -> Sequence[Opponent]:
        return ()

    @override
    def forget(self) -> None:
        self._places: list[str] = []  # names of members, the oldest place first
        self._latest: str | None = None  # name of the member with `latest_share`
        self._dealt = 0  # games since the last change

    @override
    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        """Draw members for games that have just restarted, as `Source.draw`.

        Raises:
            ValueError: the pool is empty, or a drawn member does not fit these games or its file was changed.
            FileNotFoundError: the file of a drawn member is missing, although it is in the manifest.
        """
        there = {id(opponent) for opponent in seated}
        sitting = {name for name, opponent in self._loaded.items() if id(opponent) in there}

        def drawn() -> tuple[list[str], NDArray[np.intp]]:
            names, shares = self._candidates(rng, sitting.intersection(self._pool.names))
            table = rng.choice(len(names), (games, 1 if self._pool.per == "game" else seats), p=shares)
            used, which = np.unique(table, return_inverse=True)
            coming = [names[one] for one in used.tolist()]
            for name in coming:
                self._load(name)
            return coming, np.broadcast_to(which.reshape(table.shape), (games, seats))

        coming, which = self._retrying(drawn)
        self._dealt += games
        self._evict({*sitting, *coming})
        return [self._loaded[name] for name in coming], which

    def _candidates(self, rng: np.random.Generator, sitting: Collection[str]) -> tuple[list[str], list[float]]:
        """The members that restarting games can get and their probabilities, while `sitting` play in other games."""
        members, share = self._members(), self._pool.latest_share
        names = [member.name for member in members]
        if len({*names, *sitting}) <= self._limit:
            self.forget()
            weights = (1 - share) * self._pool.weights()
            weights[-1] += share
            return names, weights.tolist()
        self._places = [name for name in self._places if name in names]
        if share > 0:
            self._seat_latest(names, sitting)
        if len(self._places) == self._own_places and self._dealt >= TURNOVER and self._has_room(self._places[1:], sitting):
            del self._places[:1]
        while len(self._places) < self._own_places:
            self._places.append(self._drawn_for_a_place(names, rng, sitting))
            self._dealt = 0
        shares = [(1 - share) / len(self._places)] * len(self._places) if self._places else []
        return ([*self._places, self._latest], [*shares, share]) if self._latest else (self._places, shares)

    def _seat_latest(self, names: list[str], sitting: Collection[str]) -> None:
        """Give the latest snapshot its place; while there is no room, the latest of those that play already."""
        latest, there = names[-1], {*self._places, *sitting}
        if len({latest, *there}) <= self._limit:
            self._latest = latest
        elif self._latest not in names:
            self._latest = max(sorted(there), key=lambda name: names.index(name) if name in names else -1)

    def _drawn_for_a_place(self, names: list[str], rng: np.random.Generator, sitting: Collection[str]) -> str:
        weights = dict(zip(names, self._pool.weights().tolist(), strict=True))
        if not self._has_room(self._places, sitting):  # when the pool has just become too large for all to play
            there = sorted(self._in_use(self._places, sitting))
            weights = {name: weights.get(name, 0.0) for name in there}
        shares = np.array(list(weights.values())) if any(weights.values()) else np.ones(len(weights))
        return list(weights)[rng.choice(len(weights), p=shares / shares.sum())]

    def _has_room(self, places: Sequence[str], sitting: Collection[str]) -> bool:
        """Whether one more member can play, beside those with these places and those in games."""
        return len(self._in_use(places, sitting)) < self._limit

    def _in_use(self, places: Sequence[str], sitting: Collection[str]) -> set[str]:
        return {*places, *sitting, *([self._latest] if self._latest else [])}

    def _members(self) -> tuple[Member, ...]:
        members = self._pool.members
        if not members and self._pool.reload():
            members = self._pool.members
        if not members:
            raise ValueError(f"the pool {str(self._pool.folder)!r} is empty: add a snapshot or a bot first")
        return members

    def _load_one_of_each_kind(self) -> None:
        """Check that the members can play here, without loading all of them."""
        kinds = {
            (one.observation_space, one.action_space, one.encoding) if one.file else one.name: one.name
            for one in self._members()
        }
        for name in kinds.values():
            self._load(name)

    def _load(self, name: str) -> None:
        """Load a member if necessary, and mark it as the last drawn."""
        member = next((member for member in self._pool.members if member.name == name), None)
        if member is None:
            raise PoolChangedError(f"the pool {str(self._pool.folder)!r} no longer has a member {name!r}")
        if name not in self._loaded or self._hashes[name] != member.sha256:  # the latter if the name was reused
            self._loaded[name], self._hashes[name] = self._made(member), member.sha256
        self._loaded.move_to_end(name)

    def _made(self, member: Member) -> Opponent:
        try:
            encoding, shown = self._encoded(member.encoding)
        except ValueError as error:
            raise ValueError(f"{member.name!r} of the pool {str(self._pool.folder)!r} cannot play here: {error}") from error
        opponent = self._make_bot(member.name) if member.file is None else self._policy(member, encoding, shown)
        has_own_spaces = member.file is not None or isinstance(opponent, PolicyOpponent)  # the latter: the champion
        if has_own_spaces and opponent.observation_space not in shown:
            alike = "".join(hidden_difference(opponent.observation_space, space) for space in shown)
            raise ValueError(
                f"{member.name!r} of the pool {str(self._pool.folder)!r} was trained to see {opponent.observation_space}, "
                f"but these games show {' or '.join(map(str, shown))}{alike}: expected a pool of these games"
            )
        opponent.name = self._prefix + member.name
        return opponent

    def _policy(self, member: Member, encoding: Encoding | None, shown: Sequence[gymnasium.Space[Any]]) -> Opponent:
        file = self._pool.verified(member)
        if is_onnx(file):
            from adapters.opponents.onnx_opponent import OnnxOpponent

            return OnnxOpponent(file, shown=shown, encoding=encoding, deterministic=self._deterministic, name=member.name)
        return PolicyOpponent(
            file,
            shown=shown,
            encoding=encoding,
            deterministic=self._deterministic,
            device=self._device,
            vecnormalize=self._pool.statistics(member),
            name=member.name,
            trust=self._trust,
        )

    def _evict(self, needed: Collection[str]) -> None:
        """Unload the members drawn least recently, except those needed by games and those with a place."""
        kept = self._in_use(self._places, needed)
        for name in [name for name in self._loaded if name not in kept][: max(0, len(self._loaded) - self._pool.max_loaded)]:
            del self._loaded[name], self._hashes[name]

    def _retrying(self, act: Callable[[], T]) -> T:
        """Call `act`, and again if another process has meanwhile removed a member or its file from the pool."""
        while True:
            try:
                return act()
            except (FileNotFoundError, PoolChangedError):
                if not self._pool.reload():
                    raise
