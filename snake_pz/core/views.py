"""Views of an engine's games in each encoding and action set."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from snake_pz.core.actions import action_space, to_absolute
from snake_pz.core.encodings import Encoding, encoding_for
from snake_pz.core.encodings import encoding as as_encoding
from snake_pz.core.engine import SnakeEngine
from snake_pz.players import ShowsStates, States, View


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
    def encoded(self, encoding: Any, action_space: gymnasium.Space[Any]) -> EngineView:
        own = as_encoding(encoding)
        return EngineView(self.engine, *encoding_for(self.engine.rules, own.space_for(self.engine.rules), action_space, own))

    @override
    def states(self, games: NDArray[np.intp], seats: NDArray[np.intp]) -> States:
        return States(self.engine.state, games, seats)


class EngineView(View):
    """The games of an engine in one encoding and one action set."""

    def __init__(self, engine: SnakeEngine, encoding: Encoding, actions: str) -> None:
        self._engine, self._encoding, self._actions = engine, encoding, actions
        self.observation_space: gymnasium.Space[Any] = encoding.space_for(engine.rules)
        self.action_space: gymnasium.Space[Any] = action_space(actions)

    @override
    def observations(self) -> NDArray[Any]:
        return self._engine.observe(self._encoding)

    @override
    def action_masks(self) -> NDArray[np.int8]:
        return self._engine.action_masks(self._actions)

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        if self._actions == "absolute":
            return actions
        return to_absolute(actions, self._engine.state.heading[games, seats])
