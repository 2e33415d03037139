"""Moves for games that other programs run: Battlesnake's requests, the observations of Kaggle's geese.

    best_move("champion", request) -> "up"

`MoveMaker` answers many games at once, with one forward pass for all that share their rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

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
            directions[numbers] = batch[0].table.act([(one.row, one.snake, one.position) for one in batch])
        return [one.names[direction] for one, direction in zip(seen, directions.tolist(), strict=True)]

    def end(self, asked: Asked) -> None:
        """Forget the game that a request is from, as its last one, `/end`, says."""
        self._forget(_key(asked))

    def _see(self, asked: Asked, configuration: Mapping[str, Any]) -> _Seen:
        key = _key(asked)
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
            game = _Game(table, table.sit(), snakes, asked)
        self._games[key] = game._replace(last=asked)
        self._games.move_to_end(key)
        while len(self._games) > self._most_games:
            self._forget(next(iter(self._games)))
        return _Seen(game.table, game.row, snake, position, names)

    def _table(self, rules: Rules) -> _Table:
        if rules not in self._tables:
            self._tables[rules] = _Table(rules, self._player(rules))
        return self._tables[rules]

    def _player(self, rules: Rules) -> Player:
        made = resolver_for_rules(rules, **self._settings).make(self._word)
        if isinstance(made, Source):
            raise ValueError(f"a pool or mixture is not one player, got {self._word!r}: name the file of one of its snapshots")
        return made

    def _forget(self, key: Hashable) -> None:
        game = self._games.pop(key, None)
        if game is not None and game.table.leave(game.row):
            del self._tables[game.table.rules]


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

    def leave(self, row: int) -> bool:
        """Give a row back; whether no game is left."""
        self._free.append(row)
        return len(self._free) == self._engine.num_games

    def act(self, asked: Sequence[tuple[int, int, Position]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Directions (B,) of snakes in the positions of their rows."""
        rows = np.array([row for row, _, _ in asked])
        self._engine.load(SnakeState.from_positions(self.rules, [position for _, _, position in asked]), rows)
        snakes = np.array([snake for _, snake, _ in asked])
        return self._seated.act(rows * self.rules.num_snakes + snakes)

    def _grow(self, num_games: int) -> None:
        """Make room for so many games; rows, and so what the player remembers of them, keep their numbers."""
        known = num_games // 2
        self._engine = SnakeEngine(self.rules, num_games)
        self._seated = SeatedPlayer(self._player, EngineGames(self._engine))
        self._free += reversed(range(known, num_games))


def _key(asked: Asked) -> Hashable:
    """What tells the games and snakes apart. Kaggle's geese have no name for a game: an agent plays one at a time."""
    if not isinstance(asked, Mapping):
        raise ValueError(f"expected a request of Battlesnake's API or an observation of Hungry Geese, got {short(asked)}")
    if "geese" in asked:
        return "geese", hungry_geese.index(asked)
    return str(field(asked, "game.id")), str(field(asked, "you.id"))
