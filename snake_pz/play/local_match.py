"""One game after another among player objects of any encoding, one turn at a time. Knows no clock, window or keyboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.core.actions import to_absolute
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.observations import encoding_of
from snake_pz.core.state import SnakeState
from snake_pz.replay.recording import Recorder, distinct_names
from snake_pz.rules import Rules


class Player(Protocol):
    """Who plays: bots, people, and whatever else has these. One that sets `uses_masks = True` is handed action masks."""

    name: str
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def act(self, observations: Any, slots: NDArray[np.intp], action_masks: Any) -> Any:
        """(B, *obs) -> (B,) actions; slots name the snakes."""
        ...

    def reset(self, slots: NDArray[np.intp]) -> None:
        """Their game starts anew."""
        ...

    def seed(self, seed: int) -> None:
        """Start the own random stream anew."""
        ...


class LocalMatch:
    """The players around one board. Not thread-safe, but `decide` only reads the game.

    Args:
        rules: what is played.
        players: one per snake; the same object may stand several times and then decides for all its snakes at once.

    Attributes:
        engine: with the one game.
        names: of the players, short and all different.
        before: the game a turn ago, None at its start.
        recorder: of the running game.

    Raises:
        ValueError: not one player per snake, or one that cannot play on this board.
    """

    def __init__(self, rules: Rules, players: Sequence[Player]) -> None:
        if len(players) != rules.num_snakes:
            raise ValueError(f"expected a player for each of {rules.num_snakes} snakes, got {len(players)}")
        self.rules, self.players = rules, list(players)
        self.names = distinct_names([player.name for player in players])
        self.engine = SnakeEngine(rules, 1)
        self.before: SnakeState | None = None
        self.recorder: Recorder | None = None
        self._encodings = {id(player): _encoding(player, rules) for player in players}
        self._actions = np.zeros((1, rules.num_snakes), np.int8)

    def start(self, seed: int) -> None:
        """Begin a game; the same seed gives the same game among players who do the same, and seeds all of them."""
        self.engine.reset(seeds=[seed])
        self.before = None
        self.recorder = Recorder(self.engine, seed, self.names)
        groups = self._groups(range(self.rules.num_snakes))
        seeds = np.random.SeedSequence(seed).generate_state(len(groups))
        for seats, own_seed in zip(groups, seeds.tolist(), strict=True):
            self.players[seats[0]].reset(np.array(seats))
            self.players[seats[0]].seed(own_seed)

    def decide(self, seats: Iterable[int]) -> None:
        """Ask those of these players whose snakes are alive for their next move."""
        state = self.engine.state
        for rows in self._groups(seat for seat in seats if state.alive[0, seat]):
            player = self.players[rows[0]]
            observation, actions = self._encodings[id(player)]
            views = self.engine.observe(observation)[0, rows]
            masks = self.engine.action_masks(actions)[0, rows] if getattr(player, "uses_masks", False) else None
            chosen = np.asarray(player.act(views, np.array(rows), masks))
            self._actions[0, rows] = to_absolute(chosen, state.heading[0, rows]) if actions == "relative" else chosen

    def turn(self) -> None:
        """Play what was decided."""
        self.before = self.engine.save()
        self.engine.step(self._actions)
        if self.recorder is not None:
            self.recorder.turn(self._actions)

    def _groups(self, seats: Iterable[int]) -> list[list[int]]:
        """These seats by player object."""
        groups: dict[int, list[int]] = {}
        for seat in seats:
            groups.setdefault(id(self.players[seat]), []).append(seat)
        return list(groups.values())


def _encoding(player: Player, rules: Rules) -> tuple[str, str]:
    """The encoding and the action set that a player's spaces are."""
    encoding = encoding_of(rules, player.observation_space, player.action_space)
    if encoding is None:
        raise ValueError(
            f"{player.name!r} sees {player.observation_space} and acts in {player.action_space}, which is no encoding of a "
            f"{rules.width}x{rules.height} board: play on the board that it was trained on"
        )
    return encoding
