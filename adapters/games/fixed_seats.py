"""A ParallelEnv whose agents never leave: death becomes data.

SuperSuit's vector classes want as many agents at every step as at the first. `FixedSeats` gives them that without inventing
observations, and works around what `MarkovVectorEnv` does at the end of a game: it restarts only when every agent is done,
overwrites the last observation of agents that died earlier, and merges the new game's infos over the old one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv

from adapters.games.seating import first_seating, fresh_seed, next_game
from snake_pz.players import Observations

AnyParallelEnv = ParallelEnv[Any, Any, Any]


class SeatStep(NamedTuple):
    """What one step did to a seat that was active before it."""

    terminated: bool
    truncated: bool
    final_observation: Observations | None  # the seat's real last observation if this step ended it
    info: dict[str, Any]  # the environment's info, with "action_mask" in it however the environment gives it


class FixedSeats(ParallelEnv[str, Observations, Any]):
    """One game with a fixed order of seats, the learner's first, restarting without end under `MarkovVectorEnv`.

    Every step returns every seat. A dead seat repeats its real last observation, gets reward 0 and ignores its action. The
    flags returned are SuperSuit's, not the game's: all False during a game, all terminated when it is over, which is as
    soon as every learner seat is done or no agent is left. What really happened is in the infos:

        infos[seat]["step"]   SeatStep of a seat that was active before the step; absent for the others
        infos[seat]["reset"]  the environment's reset info of the new game, with "game_seed" and "agent" (who sits here)

    Action masks, from `infos[agent]["action_mask"]` or from a Dict observation {"observation", "action_mask"} (the seat then
    observes the inner space), are under "action_mask" of either as int8. Observations and infos are copies.

    The k-th game after seeding with s is seeded by `next_game(s, k, N)`; without a seed, s is fresh entropy.

    Args:
        env: a PettingZoo parallel environment whose agents share one observation and one action space.
        game: the index of this game among its like, for messages.
        learners: how many seats learn, or "all" (agents are then shuffled over all seats in every game), or which agents do
            (they sit on the learner seats in this order, the others on the enemy seats in the order of `possible_agents`).

    Raises:
        ValueError: `env` is no parallel environment, its spaces are not supported, or `learners` does not fit its agents.
        RuntimeError: by `reset` and `step`, when the environment breaks PettingZoo's rules about who is in `agents`.
    """

    def __init__(self, env: AnyParallelEnv, game: int = 0, learners: int | Literal["all"] | Sequence[str] = 1) -> None:
        check_parallel(env)
        self.env = env
        self.game = game
        self.metadata = dict(getattr(env, "metadata", {}))
        self.render_mode: str | None = getattr(env, "render_mode", None)
        agents = list(env.possible_agents)
        observation_space = _shared_space("observation", {agent: env.observation_space(agent) for agent in agents})
        self._seat_space, self._masked = inner_space(observation_space)
        self._move_space = _shared_space("action", {agent: env.action_space(agent) for agent in agents})
        check_action_space(self._move_space)
        self.seating, self.num_learners, self._shuffled = first_seating(agents, learners)
        """The agents in seat order, as seated in the running game."""
        self.possible_agents = [f"seat_{seat}" for seat in range(len(agents))]
        self.agents = []
        self._alive: set[Any] = set()  # agents of the environment
        self._observations: dict[Any, Observations] = {}  # of every agent, the real last one
        self._env_seed = fresh_seed()
        self._games_started = 0
        self._closed = False

    @property
    def has_mask_observations(self) -> bool:
        """Whether action masks come in the observations, so that they are known to exist before the first reset."""
        return self._masked

    def observation_space(self, agent: str) -> Space[Any]:
        """The same space for every seat."""
        return self._seat_space

    def action_space(self, agent: str) -> Space[Any]:
        """The same space for every seat."""
        return self._move_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observations], dict[str, dict[str, Any]]]:
        """Start the next game.

        Args:
            seed: begins a new sequence of games; None goes on with the present one.
            options: handed to the environment if not empty.
        """
        if seed is not None:
            self._env_seed, self._games_started = seed, 0
        agents = list(self.env.possible_agents)
        game_seed, order = next_game(self._env_seed, self._games_started, len(agents))
        self._games_started += 1
        if self._shuffled:
            self.seating = [agents[i] for i in order]

        observations, infos = self.env.reset(seed=game_seed, **({"options": options} if options else {}))
        self._alive = set(self.seating)
        self._check_agents("reset")
        self.agents = list(self.possible_agents)
        reset_infos = {}
        for seat, agent in zip(self.possible_agents, self.seating, strict=True):
            self._observations[agent], info = self._receive(agent, observations, infos)
            reset_infos[seat] = {"reset": {**info, "game_seed": game_seed, "agent": agent}}
        return self._seat_observations(), reset_infos

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Observations], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step with the actions of the seats whose agents live; the others are ignored.

        Raises:
            RuntimeError: the game is over or was never begun.
        """
        if not self.agents:
            raise RuntimeError(f"game {self.game} is over or was never begun: call reset() before step()")
        seat_of = dict(zip(self.seating, self.possible_agents, strict=True))
        acting = list(self.env.agents)  # in the environment's own order, which need not be that of the seats
        observations, rewards, terminations, truncations, infos = self.env.step({a: actions[seat_of[a]] for a in acting})

        seat_rewards = dict.fromkeys(self.possible_agents, 0.0)
        seat_infos: dict[str, dict[str, Any]] = {seat: {} for seat in self.possible_agents}
        for agent in acting:
            seat = seat_of[agent]
            terminated, truncated = bool(terminations.get(agent, False)), bool(truncations.get(agent, False))
            ended = terminated or truncated
            if ended:
                self._alive.discard(agent)
            if agent in observations or not ended:
                self._observations[agent], info = self._receive(agent, observations, infos)
            else:  # an environment that shows its dead nothing: their last real observation stands
                info = deepcopy(dict(infos.get(agent, {})))
            seat_rewards[seat] = float(rewards.get(agent, 0.0))
            seat_infos[seat]["step"] = SeatStep(terminated, truncated, self._observations[agent] if ended else None, info)
        self._check_agents("step")

        learners = self.seating[: self.num_learners]
        over = not self._alive or (bool(learners) and self._alive.isdisjoint(learners))
        if over:
            self.agents = []
        flags = dict.fromkeys(self.possible_agents, over)
        return self._seat_observations(), seat_rewards, flags, dict.fromkeys(self.possible_agents, False), seat_infos

    def render(self) -> Any:
        """What the environment draws."""
        return self.env.render()

    def state(self) -> NDArray[Any]:
        """The environment's global state."""
        return self.env.state()

    def close(self) -> None:
        """Close the environment, once."""
        if not self._closed:
            self._closed = True
            self.env.close()

    def _seat_observations(self) -> dict[str, Observations]:
        return {seat: self._observations[agent] for seat, agent in zip(self.possible_agents, self.seating, strict=True)}

    def _receive(
        self, agent: Any, observations: dict[Any, Any], infos: dict[Any, dict[str, Any]]
    ) -> tuple[Observations, dict[str, Any]]:
        """One agent's observation and info as our own copies (environments reuse their buffers), masks moved to the info."""
        if agent not in observations:
            raise RuntimeError(f"game {self.game}: agent {agent!r} is alive, but the environment gave no observation for it")
        observation, info = observations[agent], deepcopy(dict(infos.get(agent, {})))
        if self._masked:
            observation, info["action_mask"] = observation["observation"], observation["action_mask"]
        if info.get("action_mask") is not None:
            mask = np.array(info["action_mask"], dtype=np.int8)
            if mask.shape != (mask_length(self._move_space),):
                raise ValueError(
                    f"the action mask of agent {agent!r} must have shape ({mask_length(self._move_space)},) "
                    f"for {self._move_space}, got {mask.shape}"
                )
            info["action_mask"] = mask
        return _own_copy(observation, self._seat_space, f"agent {agent!r}"), info

    def _check_agents(self, when: str) -> None:
        """Hold the environment to PettingZoo's rule: `agents` are exactly those that live."""
        present = set(self.env.agents)
        if missing := self._alive - present:
            what = (
                "all possible_agents must be there after reset (a number of agents that changes is not supported)"
                if when == "reset"
                else "an agent leaves `agents` only in the step that terminates or truncates it"
            )
            raise RuntimeError(f"game {self.game}: {_names(missing)} missing from `agents` after {when}: {what}")
        if returned := present - self._alive:
            raise RuntimeError(
                f"game {self.game}: {_names(returned)} in `agents` after {when} though dead or unknown: agents that come back "
                "are not supported, and a terminated or truncated agent must leave `agents` in that very step"
            )


def check_parallel(env: object) -> None:
    """Raise a ValueError that tells how to mend it if `env` is not a parallel environment."""
    if isinstance(env, AECEnv):
        raise ValueError(
            f"expected a PettingZoo parallel environment, got the AEC environment {env}: use its module's parallel_env(), "
            "or convert it with pettingzoo.utils.conversions.aec_to_parallel"
        )
    if not isinstance(env, ParallelEnv):
        raise ValueError(f"expected a PettingZoo parallel environment, got {type(env).__module__}.{type(env).__qualname__}")
    if not getattr(env, "possible_agents", None):
        raise ValueError(f"expected {env} to list its agents in `possible_agents`, which is missing or empty: define it")
    layer: Any = env
    while layer is not None:
        if type(layer).__name__ == "black_death_par":
            raise ValueError(
                f"supersuit.black_death_v3 around {layer.unwrapped} hides when agents die, so that no episode would end where "
                "it ends: leave it out, the dead are taken care of here"
            )
        layer = getattr(layer, "env", None)


def mask_length(action_space: Space[Any]) -> int:
    """The length A of an action mask, as sb3-contrib flattens it; 0 for spaces that cannot be masked."""
    if isinstance(action_space, spaces.Discrete):
        return int(action_space.n)
    if isinstance(action_space, spaces.MultiDiscrete):
        return int(action_space.nvec.sum())
    if isinstance(action_space, spaces.MultiBinary):
        return 2 * int(np.prod(action_space.shape))
    return int(getattr(action_space, "mask_length", 0))  # that of `CommonActions`


def _names(agents: set[Any]) -> str:
    return ", ".join(repr(agent) for agent in sorted(agents, key=str))


def _shared_space(kind: str, by_agent: dict[Any, Space[Any]]) -> Space[Any]:
    """The one space that all agents have."""
    first = next(iter(by_agent))
    space = by_agent[first]
    if others := {agent for agent, other in by_agent.items() if other != space}:
        different = by_agent[min(others, key=str)]
        raise ValueError(
            f"all agents must have one {kind} space, but {first!r} has {space} and {_names(others)} "
            f"{'have others, such as' if len(others) > 1 else 'has'} {different}: make them equal first, for example with "
            f"supersuit.pad_{kind}{'s' if kind == 'observation' else '_space'}_v0, or let each learn by itself in a SharedGame"
        )
    return space


def inner_space(space: Space[Any]) -> tuple[Space[Any], bool]:
    """The space of the observation proper, and whether a mask comes with it."""
    masked = isinstance(space, spaces.Dict) and set(space.spaces) == {"observation", "action_mask"}
    inner = space["observation"] if isinstance(space, spaces.Dict) and masked else space
    parts = list(inner.spaces.values()) if isinstance(inner, spaces.Dict) else [inner]
    basic = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    if not parts or not all(isinstance(part, basic) for part in parts):
        raise ValueError(
            "observations must be of a Box, Discrete, MultiDiscrete or MultiBinary space or of a Dict of these, as SB3 has "
            f"them, alone or as Dict(observation=..., action_mask=...), got {space}: flatten them first, for example with "
            "supersuit.flatten_v0 or a wrapper of your own"
        )
    return inner, masked


def _own_copy(observation: Any, space: Space[Any], whose: str) -> Observations:
    """The observation as a new array, or dict of arrays, in the dtype of its space."""
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, dict) or observation.keys() != space.spaces.keys():
            got = sorted(observation) if isinstance(observation, dict) else type(observation).__name__
            raise ValueError(f"{whose} must observe a dict of {sorted(space.spaces)}, as its observation space says, got {got}")
        return {key: _own_copy(observation[key], part, f"{whose} at {key!r}") for key, part in space.spaces.items()}
    copy = np.array(observation, dtype=space.dtype)
    if copy.shape != space.shape:
        raise ValueError(f"{whose} must observe arrays of shape {space.shape}, as its observation space says, got {copy.shape}")
    return copy


def check_action_space(space: Space[Any]) -> None:
    """Raise a ValueError that tells how to mend it if SB3 could not act in this space."""
    if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        raise ValueError(
            f"actions must be of a Box, Discrete, MultiDiscrete or MultiBinary space, as SB3 has them, got {space}"
        )
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        raise ValueError(f"actions must count from 0, as SB3 does, got {space} with start {space.start}")
