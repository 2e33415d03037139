"""Moves for games that other programs run: Battlesnake's requests, the observations of Kaggle's geese.

    best_move("champion", request) -> "up"

`MoveMaker` answers many games at once, with one forward pass for all that share their rules.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapters.opponents.protocol import Source
from adapters.opponents.resolver import resolver_for_rules
from adapters.opponents.unpickling import Trust
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Position, SnakeState
from snake_pz.core.views import EngineGames
from snake_pz.formats import battlesnake, hungry_geese
from snake_pz.formats.fields import field, short
from snake_pz.players import Player, SeatedPlayer
from snake_pz.rules import Rules

Asked = Mapping[str, Any]
"""A request of Battlesnake's API, or an observation of Hungry Geese."""

_UNUSED_TABLES = 8
"""Players of rules that no game has at the moment, kept because the next games are likely to have them again."""
_MOST_TABLES = 64
"""Each has a player of its own in memory."""


class MoveMaker:
    """A player of games that other programs run, any number side by side.

    Each game keeps its place from its first request on, so that recurrent players and those that see stacked frames remember
    it. Under each set of rules there is one player.

    Args:
        player: a word for an opponent, as in `make_sb3_env`, that means one player; or a player.
        device: where policies predict.
        deterministic: whether policies play their likeliest move instead of sampling.
        trust: which classes a checkpoint may name beside the known ones, see `frozen`.
        most_games: games to remember; beyond them, the one is forgotten that was not asked about for longest.

    Raises:
        FileNotFoundError, TypeError, ValueError: by the first request, as `make_sb3_env` does for such an opponent.
    """

    def __init__(
        self,
        player: Any,
        *,
        device: str = "auto",
        deterministic: bool = False,
        trust: Trust = False,
        most_games: int = 1000,
    ) -> None:
        self._word = player
        self._settings: dict[str, Any] = {"device": device, "deterministic": deterministic, "trust": trust}
        self._most_games = most_games
        self._games: OrderedDict[Hashable, _Game] = OrderedDict()
        self._tables: dict[Rules, _Table] = {}

    def move(self, asked: Asked, configuration: Mapping[str, Any] | None = None) -> str:
        """The player's move: `up`, `right`, `down` or `left`, of geese `NORTH`, `EAST`, `SOUTH` or `WEST`.

        Args:
            asked: a request with `you`, or an observation with `index`.
            configuration: of the geese's game; None: that of the competition.

        Raises:
            ValueError: it is no such request or observation.
        """
        return self.moves([asked], configuration)[0]

    def moves(self, asked: Sequence[Asked], configuration: Mapping[str, Any] | None = None) -> list[str]:
        """Moves of several games or snakes, in one batch for each set of rules.

        Args:
            asked: requests or observations, one for each snake.
            configuration: of the geese's games; None: that of the competition.

        Raises:
            ValueError: one is no request or observation. Nobody has moved then.
        """
        seen = [self._see(one, configuration or {}) for one in asked]
        directions = np.zeros(len(seen), np.int64)
        batches: dict[int, list[int]] = {}
        for number, one in enumerate(seen):
            batches.setdefault(id(one.table), []).append(number)
        for numbers in batches.values():
            batch = [seen[number] for number in numbers]
            table = batch[0].table
            state = SnakeState.from_positions(table.rules, [one.position for one in batch])
            directions[numbers] = table.act(state, np.array([one.row for one in batch]), np.array([one.snake for one in batch]))
        return [one.names[direction] for one, direction in zip(seen, directions.tolist(), strict=True)]

    def prepare(self, rules: Rules) -> None:
        """Make the player for games with these rules and have it move once, which compiles and loads whatever it needs.

        Raises:
            FileNotFoundError, TypeError, ValueError: as the first request of such a game would.
        """
        started, table = SnakeEngine(rules, seed=0), self._table(rules)
        started.reset()
        row = table.sit()
        table.act(started.save(), np.array([row]), np.array([0]))
        table.leave(row)

    def begin(self, asked: Asked) -> None:
        """Make room and, if need be, a player for the game that a request is from, so that its first move takes no longer.

        Raises:
            FileNotFoundError, TypeError, ValueError: as `move`.
        """
        self._see(asked, {})

    def end(self, asked: Asked) -> None:
        """Forget the game that a request is from, as its last one, `/end`, says."""
        self._forget(key_of(asked))

    def forget_idle(self, seconds: float) -> None:
        """Forget the games that were not asked about for so long."""
        while self._games and next(iter(self._games.values())).asked_at < time.monotonic() - seconds:
            self._forget(next(iter(self._games)))

    @property
    def num_games(self) -> int:
        """Games that are remembered, each snake's counted apart."""
        return len(self._games)

    def _see(self, asked: Asked, configuration: Mapping[str, Any]) -> _Seen:
        key = key_of(asked)
        game = self._games.get(key)
        if "geese" in asked:
            rules = hungry_geese.rules(asked, configuration)
            before = None if game is None or game.table.rules != rules else game.last
            goes_on = before is not None and hungry_geese.step(asked) == hungry_geese.step(before) + 1
            position = hungry_geese.position(asked, configuration, before if goes_on else None)
            names, snake, snakes = hungry_geese.MOVES, hungry_geese.index(asked), []
        else:
            snakes = battlesnake.ids(asked) if game is None else game.snakes
            rules = battlesnake.rules(asked, len(snakes))
            goes_on = game is not None and game.table.rules == rules
            position = battlesnake.position(asked, snakes)
            names, you = battlesnake.MOVES, str(field(asked, "you.id"))
            if you not in battlesnake.ids(asked):
                raise ValueError(f"you.id must be one of board.snakes, got {short(you)}")
            snake = snakes.index(you)
        if not position.bodies[snake]:
            raise ValueError("a snake that is out has no move")
        if game is None or not goes_on:
            self._forget(key)
            table = self._table(rules)
            game = _Game(table, table.sit(), snakes, asked, 0.0)
        self._games[key] = game._replace(last=asked, asked_at=time.monotonic())
        self._games.move_to_end(key)
        while len(self._games) > self._most_games:
            self._forget(next(iter(self._games)))
        return _Seen(game.table, game.row, snake, position, names)

    def _table(self, rules: Rules) -> _Table:
        if rules not in self._tables:
            for unused in [known for known, table in self._tables.items() if table.empty][:-_UNUSED_TABLES]:
                del self._tables[unused]
            if len(self._tables) >= _MOST_TABLES:
                raise ValueError(f"the games at a time may have {_MOST_TABLES} sets of rules at most: end some of them first")
            self._tables[rules] = _Table(rules, self._player(rules))
        return self._tables[rules]

    def _player(self, rules: Rules) -> Player:
        made = resolver_for_rules(rules, **self._settings).make(self._word)
        if isinstance(made, Source):
            raise ValueError(f"a pool or mixture is not one player, got {self._word!r}: name the file of one of its snapshots")
        return made

    def _forget(self, key: Hashable) -> None:
        game = self._games.pop(key, None)
        if game is not None:
            game.table.leave(game.row)


def best_move(player: Any, asked: Asked, configuration: Mapping[str, Any] | None = None) -> str:
    """The move of a player, likeliest if it is a policy; see `MoveMaker`, of which one is kept for each word.

    Args:
        player: a word for an opponent, as in `make_sb3_env`, or a player.
        asked: a request of Battlesnake's API, or an observation of Hungry Geese.
        configuration: of the geese's game; None: that of the competition.

    Returns:
        `up`, `right`, `down` or `left`; of geese `NORTH`, `EAST`, `SOUTH` or `WEST`.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        TypeError: `player` is no word for an opponent.
        ValueError: the player cannot play this game, or it is no request or observation.
    """
    return _maker(player).move(asked, configuration)


@lru_cache(maxsize=8)
def _maker(player: Any) -> MoveMaker:
    return MoveMaker(player, deterministic=True)


class _Game(NamedTuple):
    """A snake in a game that goes on."""

    table: _Table
    row: int
    snakes: list[str]  # ids of all that started; of Battlesnake only
    last: Asked
    asked_at: float  # seconds of `time.monotonic`


class _Seen(NamedTuple):
    """What a request comes to."""

    table: _Table
    row: int
    snake: int
    position: Position
    names: Sequence[str]


class _Table:
    """The games with the same rules, rows of one engine, and who plays in them."""

    def __init__(self, rules: Rules, player: Player) -> None:
        self.rules, self._player = rules, player
        self._free: list[int] = []
        self._grow(1)

    def sit(self) -> int:
        """A row for a new game."""
        if not self._free:
            self._grow(2 * self._engine.num_games)
        row = self._free.pop()
        self._player.reset(row * self.rules.num_snakes + np.arange(self.rules.num_snakes))
        return row

    def leave(self, row: int) -> None:
        """Give a row back."""
        self._free.append(row)

    @property
    def empty(self) -> bool:
        """Whether no game is left."""
        return len(self._free) == self._engine.num_games

    def act(self, state: SnakeState, rows: NDArray[np.intp], snakes: NDArray[np.intp]) -> NDArray[np.int64]:
        """Directions (B,) of snakes (B,) in the games (B,) of a state, which have these rows (B,)."""
        self._engine.load(state, rows)
        return self._seated.act(rows * self.rules.num_snakes + snakes)

    def _grow(self, num_games: int) -> None:
        """Make room for so many games; rows, and so what the player remembers of them, keep their numbers."""
        known = num_games // 2
        self._engine = SnakeEngine(self.rules, num_games)
        self._seated = SeatedPlayer(self._player, EngineGames(self._engine))
        self._free += reversed(range(known, num_games))


def key_of(asked: Asked) -> Hashable:
    """What tells the games and snakes apart. Kaggle's geese have no name for a game: an agent plays one at a time.

    Raises:
        ValueError: it is neither a request nor an observation.
    """
    if not isinstance(asked, Mapping):
        raise ValueError(f"expected a request of Battlesnake's API or an observation of Hungry Geese, got {short(asked)}")
    if "geese" in asked:
        return "geese", hungry_geese.index(asked)
    return game_and_snake(asked)


def game_and_snake(request: Asked) -> tuple[str, str]:
    """The ids of the game and the snake that a request of Battlesnake's API is for.

    Raises:
        ValueError: it names none.
    """
    return str(field(request, "game.id")), str(field(request, "you.id"))
