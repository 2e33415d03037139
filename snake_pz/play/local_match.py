"""One game after another among players of any encoding, one turn at a time, without clock, window or keyboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import SnakeState
from snake_pz.core.views import EngineGames
from snake_pz.players import Player, SeatedPlayer
from snake_pz.replay.recording import Recorder, distinct_names
from snake_pz.rules import Rules


class LocalMatch:
    """Players on one board. Not thread-safe, but `decide` only reads the game.

    Args:
        rules: rules of the games.
        players: one per snake. The same object may occur several times; it then decides for all its snakes in one call.

    Attributes:
        engine: the engine with the one game.
        names: names of the players, short and all different.
        before: the game one turn earlier, None at the start.
        recorder: recorder of the running game.

    Raises:
        ValueError: not one player per snake, or a player that cannot play on this board.
    """

    def __init__(self, rules: Rules, players: Sequence[Player]) -> None:
        if len(players) != rules.num_snakes:
            raise ValueError(f"expected a player for each of {rules.num_snakes} snakes, got {len(players)}")
        self.rules, self.players = rules, list(players)
        self.names = distinct_names([player.name for player in players])
        self.engine = SnakeEngine(rules, 1)
        self.before: SnakeState | None = None
        self.recorder: Recorder | None = None
        games = EngineGames(self.engine)
        self._seated = {id(player): SeatedPlayer(player, games) for player in players}
        self._actions = np.zeros((1, rules.num_snakes), np.int8)

    def start(self, seed: int) -> None:
        """Start a game, and reset and seed its players. Equal seeds and equal moves of people give equal games."""
        self.engine.reset(seeds=[seed])
        self.before = None
        self.recorder = Recorder(self.engine, seed, self.names)
        groups = self._groups(range(self.rules.num_snakes))
        seeds = np.random.SeedSequence(seed).generate_state(len(groups))
        for seats, own_seed in zip(groups, seeds.tolist(), strict=True):
            self.players[seats[0]].reset(np.array(seats))
            self.players[seats[0]].seed(own_seed)

    def decide(self, seats: Iterable[int]) -> None:
        """Ask the players on these seats for the next moves of their living snakes."""
        state = self.engine.state
        for own in self._groups(seat for seat in seats if state.alive[0, seat]):
            self._actions[0, own] = self._seated[id(self.players[own[0]])].act(np.array(own))

    def turn(self) -> None:
        """Play a turn with the moves that `decide` asked for."""
        self.before = self.engine.save()
        self.engine.step(self._actions)
        if self.recorder is not None:
            self.recorder.turn(self._actions)

    def _groups(self, seats: Iterable[int]) -> list[list[int]]:
        """These seats grouped by player object."""
        groups: dict[int, list[int]] = {}
        for seat in seats:
            groups.setdefault(id(self.players[seat]), []).append(seat)
        return list(groups.values())
