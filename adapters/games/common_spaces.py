"""Common spaces for agents with different spaces, because SuperSuit's vector classes need the same for all agents.

`CommonSpaces` wraps an environment: all agents then observe a Dict with a part for each of the different observation spaces,
and act with one vector of numbers. Above the games an `OwnView` converts between these and one agent's own spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray
from pettingzoo.utils.wrappers.base_parallel import BaseParallelWrapper
from typing_extensions import override

from adapters.games.checked_env import AnyParallelEnv, CheckedEnv, Infos, mask_length
from adapters.games.game_batch import GameBatch
from snake_pz.players import Observations, View


class OwnSpaces(NamedTuple):
    """The spaces of one agent, without the action mask if it is part of the observation."""

    observation: Space[Any]
    action: Space[Any]


class CommonActions(spaces.Box):
    """Vectors whose first numbers are the action of an agent. float64 holds every action that SB3 uses exactly.

    Args:
        own: the spaces by agent.

    Attributes:
        own: as given.
        mask_length: length of the longest action mask; shorter ones are padded.
    """

    def __init__(self, own: dict[Any, OwnSpaces]) -> None:
        width = max(_size(action) for _, action in own.values())
        super().__init__(-np.inf, np.inf, (width,), np.float64)
        self.own = own
        self.mask_length = max(mask_length(action) for _, action in own.values())


def own_spaces(action_space: Space[Any]) -> dict[Any, OwnSpaces] | None:
    """The spaces by agent, from the action space of games in `CommonSpaces`; None for other games."""
    return action_space.own if isinstance(action_space, CommonActions) else None


def have_different_spaces(env: AnyParallelEnv) -> bool:
    """Whether the agents of an environment have different spaces."""
    first, *others = [(env.observation_space(agent), env.action_space(agent)) for agent in env.possible_agents]
    return any(other != first for other in others)


class CommonSpaces(BaseParallelWrapper[Any, Any, Any]):
    """A parallel environment whose agents all have one observation space, a Dict, and one action space, `CommonActions`.

    The parts of an observation that are for other spaces are zeros. Action masks are in the infos, padded with ones.

    Raises:
        ValueError: SB3 does not support an agent's spaces.
    """

    def __init__(self, env: AnyParallelEnv) -> None:
        super().__init__(env)
        self._checked = CheckedEnv(env)
        own = self._checked.spaces
        self._actions = CommonActions({agent: OwnSpaces(spaces.observation, spaces.action) for agent, spaces in own.items()})
        self._numbers = {agent: _number(self._actions.own, space) for agent, (space, _) in self._actions.own.items()}
        parts = [_parts(self._numbers[agent], space) for agent, (space, _) in self._actions.own.items()]
        self._observations = spaces.Dict({key: space for by_key in parts for key, space in by_key.items()})
        self._nothing = {key: np.zeros(space.shape or (), space.dtype) for key, space in self._observations.items()}

    @property
    @override
    def agents(self) -> list[Any]:  # type: ignore[override]
        return self.env.agents

    @override
    def observation_space(self, agent: Any) -> Space[Any]:
        return self._observations

    @override
    def action_space(self, agent: Any) -> Space[Any]:
        return self._actions

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, dict[str, Any]]]:
        return self._in_common(*self._checked.reset(seed, options))

    @override
    def step(
        self, actions: dict[Any, Any]
    ) -> tuple[dict[Any, Any], dict[Any, float], dict[Any, bool], dict[Any, bool], dict[Any, dict[str, Any]]]:
        own = {agent: _taken_out(action, self._actions.own[agent].action) for agent, action in actions.items()}
        turn = self._checked.step(own)
        observations, infos = self._in_common(turn.observations, turn.infos)
        return observations, turn.rewards, turn.terminations, turn.truncations, infos

    def _in_common(self, observations: dict[Any, Observations], infos: Infos) -> tuple[dict[Any, Any], Infos]:
        common = {
            agent: {**self._nothing, **_parts(self._numbers[agent], observation)} for agent, observation in observations.items()
        }
        for info in infos.values():
            if info.get("action_mask") is not None:
                info["action_mask"] = self._padded(info["action_mask"])
        return common, infos

    def _padded(self, mask: NDArray[np.int8]) -> NDArray[np.int8]:
        padded = np.ones(self._actions.mask_length, np.int8)
        padded[: len(mask)] = mask
        return padded


class OwnView(View):
    """A view of games in `CommonSpaces` in the own spaces of some agents.

    Args:
        games: a view of the games in the common spaces.
        game_batch: the games. Their agents never change seats.
        spaces: the spaces of at least one agent.

    Raises:
        ValueError: no agent has these spaces.
    """

    def __init__(self, games: View, game_batch: GameBatch, spaces: OwnSpaces) -> None:
        own = own_spaces(games.action_space)
        assert own is not None
        agents = game_batch.agents(0)
        self._served = np.array([own[agent] == spaces for agent in agents])  # by seat
        if not self._served.any():
            raise ValueError(
                f"a player trained to see {spaces.observation} and to act in {spaces.action} fits none of the agents, which "
                "have " + "; ".join(f"{agent}: {own[agent].observation}, {own[agent].action}" for agent in agents)
            )
        self.observation_space, self.action_space = spaces
        self._games, self._agents, self._number = games, agents, _number(own, spaces.observation)

    @override
    def observations(self) -> Observations:
        """(E, N, *obs) of the current time step, zeros for agents with other spaces."""
        return self.own(self._games.observations())

    def own(self, observations: Observations) -> Observations:
        """The part of common observations that is for these agents."""
        if isinstance(self.observation_space, spaces.Dict):
            return {name: observations[f"{self._number}/{name}"] for name in self.observation_space}
        return observations[str(self._number)]

    @override
    def action_masks(self) -> NDArray[np.int8] | None:
        return self.own_masks(self._games.action_masks())

    def own_masks(self, masks: NDArray[np.int8] | None) -> NDArray[np.int8] | None:
        """Common masks without their padding; None if the action space cannot be masked."""
        length = mask_length(self.action_space)
        return None if masks is None or length == 0 else masks[..., :length]

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        """Convert (B, *action) of these agents to (B, width) of the common space.

        Raises:
            ValueError: an agent on these seats has other spaces.
        """
        if not self._served[seats].all():
            seat = seats[~self._served[seats]][0]
            raise ValueError(
                f"agent {self._agents[seat]!r} cannot be played by a player trained to see {self.observation_space} and to act "
                f"in {self.action_space}: give this seat an opponent that was trained for this agent"
            )
        common = np.zeros((len(actions), *(self._games.action_space.shape or ())))
        common[:, : _size(self.action_space)] = actions.reshape(len(actions), -1)
        return common


def _number(own: Mapping[Any, OwnSpaces], observation_space: Space[Any]) -> int:
    """The index of an observation space among the spaces of the agents, the same for equal ones."""
    return [spaces.observation for spaces in own.values()].index(observation_space)


def _parts(number: int, of: Any) -> dict[str, Any]:
    """The parts of an observation or space by their keys in the common one."""
    if isinstance(of, Mapping):
        return {f"{number}/{name}": part for name, part in of.items()}
    return {str(number): of}


def _size(action_space: Space[Any]) -> int:
    """The number of numbers in an action."""
    return int(np.prod(action_space.shape or ()))


def _taken_out(action: NDArray[Any], space: Space[Any]) -> Any:
    """An agent's own action from a common one; a NumPy scalar if it is a single number."""
    return action[: _size(space)].reshape(space.shape or ()).astype(space.dtype)[()]
