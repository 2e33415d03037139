"""Views of an engine's games in each encoding and action set."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from snake_pz.core.actions import action_space, to_absolute
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.observations import OBSERVATIONS, encoding_of, observation_space
from snake_pz.players import ShowsStates, States, View
from snake_pz.rules import Rules


def encoding_for(rules: Rules, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> tuple[str, str]:
    """The names of the encoding and action set that have these spaces on this board.

    Raises:
        ValueError: there are none; the message lists the spaces of this board.
    """
    encoding = encoding_of(rules, observations, actions)
    if encoding is None:
        raise ValueError(
            f"a player trained to see {observations} and to act in {actions} cannot play on a "
            f"{rules.width}x{rules.height} board, whose encodings are "
            + ", ".join(f"{name} {observation_space(rules, name)}" for name in OBSERVATIONS)
            + " with Discrete(4) or Discrete(3): use one trained on this board"
        )
    return encoding


class EngineGames(ShowsStates):
    """The games of an engine. Seats are snakes; actions are absolute directions."""

    def __init__(self, engine: SnakeEngine) -> None:
        self.engine = engine

    @property
    @override
    def seats(self) -> int:
        return self.engine.rules.num_snakes

    @override
    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> EngineView:
        return EngineView(self.engine, *encoding_for(self.engine.rules, observation_space, action_space))

    @override
    def states(self, games: NDArray[np.intp], seats: NDArray[np.intp]) -> States:
        return States(self.engine.state, games, seats)


class EngineView(View):
    """The games of an engine in one encoding and one action set."""

    def __init__(self, engine: SnakeEngine, observation: str, actions: str) -> None:
        self._engine, self._observation, self._actions = engine, observation, actions
        self.observation_space: gymnasium.Space[Any] = observation_space(engine.rules, observation)
        self.action_space: gymnasium.Space[Any] = action_space(actions)

    @override
    def observations(self) -> NDArray[np.uint8]:
        return self._engine.observe(self._observation)

    @override
    def action_masks(self) -> NDArray[np.int8]:
        return self._engine.action_masks(self._actions)

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        if self._actions == "absolute":
            return actions
        return to_absolute(actions, self._engine.state.heading[games, seats])
