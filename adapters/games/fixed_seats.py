"""FixedSeats: a ParallelEnv whose agents never leave; their ends are reported in the infos.

SuperSuit's vector classes need the same agents in every step. `FixedSeats` provides them without made-up observations, and
works around what `MarkovVectorEnv` does at the end of a game: it restarts only when every agent is done, overwrites the last
observation of agents that died earlier, and merges the new game's infos into those of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from gymnasium import Space
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from typing_extensions import override

from adapters.games.checked_env import AnyParallelEnv, CheckedEnv
from adapters.games.seating import first_seating, fresh_seed, next_game
from snake_pz.players import Observations


class SeatStep(NamedTuple):
    """The result of a step for a seat that was active before it."""

    terminated: bool
    truncated: bool
    final_observation: Observations | None  # the seat's real last observation if this step ended it
    info: dict[str, Any]  # the environment's info, with "action_mask" wherever the environment gives the mask


class FixedSeats(ParallelEnv[str, Observations, Any]):
    """One game with fixed seats, learner seats first, for `MarkovVectorEnv`, which restarts it whenever it ends.

    Every step returns every seat. A dead seat repeats its real last observation, gets reward 0 and its action is ignored. The
    returned flags are for SuperSuit: all False during a game; all terminated when it is over, which is when every learner seat
    is done or no agent is left. The real results are in the infos:

        infos[seat]["step"]   SeatStep of a seat that was active before the step; absent for other seats
        infos[seat]["reset"]  the environment's reset info of the new game, with "game_seed" and "agent" (who sits here)

    Observations, infos and the action masks in them are those of `CheckedEnv`.

    The k-th game after seeding with s is seeded by `next_game(s, k, N)`; without a seed, s is fresh entropy.

    Args:
        env: a PettingZoo parallel environment whose agents share one observation and one action space.
        game: index of this game in its batch, for messages.
        learners: the number of learner seats or "all", with agents shuffled over all seats in every game; or the names of the
            learning agents, which get the learner seats in this order, the others the enemy seats in the order of
            `possible_agents`.

    Raises:
        ValueError: `env` is no parallel environment, its spaces are not supported, or `learners` does not fit its agents; from
            `reset` and `step`: a result of the environment does not fit its API or its spaces.
        RuntimeError: from `reset` and `step`: the environment breaks PettingZoo's rules for `agents`.
    """

    def __init__(self, env: AnyParallelEnv, game: int = 0, learners: int | Literal["all"] | Sequence[str] = 1) -> None:
        self._checked = CheckedEnv(env)
        self.env = env
        self.game = game
        self.metadata = dict(getattr(env, "metadata", {}))
        self.render_mode: str | None = getattr(env, "render_mode", None)
        agents = list(env.possible_agents)
        own = self._checked.spaces
        self._seat_space = _shared_space("observation", {agent: spaces.observation for agent, spaces in own.items()})
        self._move_space = _shared_space("action", {agent: spaces.action for agent, spaces in own.items()})
        self.seating, self.num_learners, self._shuffled = first_seating(agents, learners)
        """The agents of the running game in seat order."""
        self.possible_agents = [f"seat_{seat}" for seat in range(len(agents))]
        self.agents = []
        self._alive: set[Any] = set()  # agents of the environment
        self._observations: dict[Any, Observations] = {}  # last real observation by agent
        self._env_seed = fresh_seed()
        self._games_started = 0
        self._closed = False

    @property
    def has_mask_observations(self) -> bool:
        """Whether action masks are in the observations, so that it is known before the first reset that there are masks."""
        return any(spaces.masked for spaces in self._checked.spaces.values())

    @override
    def observation_space(self, agent: str) -> Space[Any]:
        return self._seat_space

    @override
    def action_space(self, agent: str) -> Space[Any]:
        return self._move_space

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observations], dict[str, dict[str, Any]]]:
        """Start the next game.

        Args:
            seed: begins a new sequence of games; None continues the current one.
            options: for the environment's `reset`, unless empty.
        """
        if seed is not None:
            self._env_seed, self._games_started = seed, 0
        agents = list(self.env.possible_agents)
        game_seed, order = next_game(self._env_seed, self._games_started, len(agents))
        self._games_started += 1
        if self._shuffled:
            self.seating = [agents[i] for i in order]

        observations, infos = self._checked.reset(game_seed, options)
        self._alive = set(self.seating)
        self._check_agents("reset")
        self.agents = list(self.possible_agents)
        reset_infos = {}
        for seat, agent in zip(self.possible_agents, self.seating, strict=True):
            self._observe(agent, observations)
            reset_infos[seat] = {"reset": {**infos[agent], "game_seed": game_seed, "agent": agent}}
        return self._seat_observations(), reset_infos

    @override
    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Observations], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step. Actions of seats whose agents are dead are ignored.

        Raises:
            RuntimeError: the game is over or has not begun.
        """
        if not self.agents:
            raise RuntimeError(f"game {self.game} is over or has not begun: call reset() before step()")
        seat_of = dict(zip(self.seating, self.possible_agents, strict=True))
        acting = list(self.env.agents)  # in the environment's order, which may differ from the order of seats
        turn = self._checked.step({agent: actions[seat_of[agent]] for agent in acting})

        seat_rewards = dict.fromkeys(self.possible_agents, 0.0)
        seat_infos: dict[str, dict[str, Any]] = {seat: {} for seat in self.possible_agents}
        for agent in acting:
            seat = seat_of[agent]
            terminated, truncated = turn.terminations[agent], turn.truncations[agent]
            ended = terminated or truncated
            if ended:
                self._alive.discard(agent)
            if agent in turn.observations or not ended:  # without a last observation the one before is kept
                self._observe(agent, turn.observations)
            seat_rewards[seat] = turn.rewards[agent]
            final = self._observations[agent] if ended else None
            seat_infos[seat]["step"] = SeatStep(terminated, truncated, final, turn.infos[agent])
        self._check_agents("step")

        learners = self.seating[: self.num_learners]
        over = not self._alive or (bool(learners) and self._alive.isdisjoint(learners))
        if over:
            self.agents = []
        flags = dict.fromkeys(self.possible_agents, over)
        return self._seat_observations(), seat_rewards, flags, dict.fromkeys(self.possible_agents, False), seat_infos

    @override
    def render(self) -> Any:
        return self.env.render()

    @override
    def state(self) -> NDArray[Any]:
        return self.env.state()

    @override
    def close(self) -> None:
        """Close the environment. May be called again."""
        if not self._closed:
            self._closed = True
            self.env.close()

    def _seat_observations(self) -> dict[str, Observations]:
        return {seat: self._observations[agent] for seat, agent in zip(self.possible_agents, self.seating, strict=True)}

    def _observe(self, agent: Any, observations: dict[Any, Observations]) -> None:
        if agent not in observations:
            raise RuntimeError(f"game {self.game}: agent {agent!r} is alive, but the environment gave no observation for it")
        self._observations[agent] = observations[agent]

    def _check_agents(self, when: str) -> None:
        """Check PettingZoo's rule that `agents` are exactly those that are alive."""
        present = set(self.env.agents)
        if missing := self._alive - present:
            what = (
                "all possible_agents must be there after reset (a varying number of agents is not supported)"
                if when == "reset"
                else "an agent leaves `agents` only in the step that terminates or truncates it"
            )
            raise RuntimeError(f"game {self.game}: {_names(missing)} missing from `agents` after {when}: {what}")
        if returned := present - self._alive:
            raise RuntimeError(
                f"game {self.game}: {_names(returned)} in `agents` after {when} although dead or unknown: agents that return "
                "are not supported, and a terminated or truncated agent must leave `agents` in the same step"
            )


def _names(agents: set[Any]) -> str:
    return ", ".join(repr(agent) for agent in sorted(agents, key=str))


def _shared_space(kind: str, by_agent: dict[Any, Space[Any]]) -> Space[Any]:
    """The space of all agents; an error if they differ."""
    first = next(iter(by_agent))
    space = by_agent[first]
    if others := {agent for agent, other in by_agent.items() if other != space}:
        different = by_agent[min(others, key=str)]
        raise ValueError(
            f"all agents must have one {kind} space, but {first!r} has {space} and {_names(others)} "
            f"{'have others, such as' if len(others) > 1 else 'has'} {different}: make them equal first, for example with "
            f"supersuit.pad_{kind}{'s' if kind == 'observation' else '_space'}_v0, or train one model per agent in a SharedGame"
        )
    return space
