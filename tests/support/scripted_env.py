"""A parallel environment whose deaths are scripted and whose every number says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

Script = Mapping[int, tuple[int, str]]
"""agent index -> (step of its end counted from 1, "terminated" | "truncated" | "both")."""

NUM_ACTIONS = 3
DRAWN = np.float64(2**-32)


class ScriptedEnv(ParallelEnv[str, Any, Any]):
    """Agents "agent_0"... end as the script of the game says; agents that no script ends are truncated at `limit`.

    An observation is [agent, step, game, seed / 2**32, random number of this step, the agent's last action (-1 before one)].
    The reward of agent i at step t is (i + 1) + t / 64, exact in float32. Observations and infos are in buffers that are
    reused. An environment that is stepped with other agents than `agents`, or with none, raises an AssertionError.

    Args:
        scripts: game k follows scripts[k % len(scripts)].
        masks: None, "info" or "observation": agent i may not play action (i + step) % NUM_ACTIONS.
        box_actions: actions are two floats instead of one of NUM_ACTIONS; the observation then holds their sum.
    """

    def __init__(
        self,
        scripts: Sequence[Script] = ({},),
        *,
        num_agents: int = 4,
        limit: int = 7,
        masks: str | None = None,
        box_actions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.metadata = {"name": "scripted_v0", "render_modes": ["rgb_array"], "is_parallelizable": True}
        self.render_mode = render_mode
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.scripts, self.limit, self.masks, self.box_actions = scripts, limit, masks, box_actions
        self._space: spaces.Space[Any] = spaces.Box(-1.0, np.inf, (6,), np.float64)
        if masks == "observation":
            mask_space = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
            self._space = spaces.Dict({"observation": self._space, "action_mask": mask_space})
        self._actions: spaces.Space[Any] = spaces.Box(-1, 1, (2,), np.float32) if box_actions else spaces.Discrete(NUM_ACTIONS)
        self._buffers = {agent: np.zeros(6) for agent in self.possible_agents}
        self._trace: list[int] = []
        self.game, self.time, self.seed = -1, 0, 0
        self.closed, self.resets, self.steps = 0, 0, 0
        self.difficulty = 1
        self.last_options: dict[str, Any] | None = None
        self.last_actions: dict[str, Any] = {}
        self.illegal_moves = 0

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The same for all."""
        return self._space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The same for all."""
        return self._actions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the next scripted game."""
        self.seed = 0 if seed is None else seed
        self.rng = np.random.default_rng(seed)
        self.last_options = options
        self.resets += 1
        self.game, self.time = self.game + 1, 0
        self.agents = list(self.possible_agents)
        return self._observe(self.agents, dict.fromkeys(self.agents, -1.0)), self._infos(self.agents)

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one step of the script."""
        assert self.agents, "step on an environment without agents"
        assert list(actions) == self.agents, f"actions of {list(actions)}, expected those of {self.agents}"
        self._count_illegal(actions)
        self.steps += 1
        self.time += 1
        self.last_actions = dict(actions)
        acting, script = self.agents, self.scripts[self.game % len(self.scripts)]
        index = {agent: self.possible_agents.index(agent) for agent in acting}
        ends = {agent: script.get(index[agent], (self.limit, "truncated")) for agent in acting}
        ended = {agent: how if self.time >= when else "" for agent, (when, how) in ends.items()}
        self.agents = [agent for agent in acting if not ended[agent]]
        rewards = {agent: index[agent] + 1 + self.time / 64 for agent in acting}
        terminations = {agent: ended[agent] in ("terminated", "both") for agent in acting}
        truncations = {agent: ended[agent] in ("truncated", "both") for agent in acting}
        observations = self._observe(acting, {agent: float(np.sum(actions[agent])) for agent in acting})
        return observations, rewards, terminations, truncations, self._infos(acting)

    def mask(self, agent: str) -> NDArray[np.int8]:
        """The mask of the agent's next action."""
        mask = np.ones(NUM_ACTIONS, dtype=np.int8)
        mask[(self.possible_agents.index(agent) + self.time) % NUM_ACTIONS] = 0
        return mask

    def describe(self, word: str, times: int = 1) -> str:
        """A method to call from outside."""
        return " ".join([f"{word}-{self.difficulty}"] * times)

    def render(self) -> NDArray[np.uint8]:
        """A picture that tells game and time."""
        return np.full((4, 5, 3), (self.game * 16 + self.time) % 256, dtype=np.uint8)

    def close(self) -> None:
        """Count how often it is closed."""
        self.closed += 1

    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        drawn = self.rng.random()
        for buffer in self._buffers.values():
            buffer[:] = -1.0  # whoever kept the last observation sees it spoilt
        for agent in agents:
            index = self.possible_agents.index(agent)
            self._buffers[agent][:] = [index, self.time, self.game, self.seed * DRAWN, drawn, last_actions[agent]]
        if self.masks == "observation":
            return {agent: {"observation": self._buffers[agent], "action_mask": self.mask(agent)} for agent in agents}
        return {agent: self._buffers[agent] for agent in agents}

    def _infos(self, agents: list[str]) -> dict[str, Any]:
        self._trace[:] = [self.time]
        masks = {agent: {"action_mask": self.mask(agent)} if self.masks == "info" else {} for agent in agents}
        return {agent: {"agent_name": agent, "trace": self._trace, **masks[agent]} for agent in agents}

    def _count_illegal(self, actions: dict[str, Any]) -> None:
        if self.masks:
            self.illegal_moves += sum(not self.mask(agent)[action] for agent, action in actions.items())


class DictEnv(ScriptedEnv):
    """The same, observed as a Dict of numbers, who the agent is, and a picture of the step."""

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The same for all."""
        return spaces.Dict(
            {
                "numbers": super().observation_space(agent),
                "me": spaces.Discrete(len(self.possible_agents)),
                "picture": spaces.Box(0, 255, (1, 36, 36), np.uint8),
            }
        )

    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        numbers, picture = super()._observe(agents, last_actions), np.full((1, 36, 36), self.time, np.uint8)
        return {
            agent: {"numbers": numbers[agent], "me": self.possible_agents.index(agent), "picture": picture} for agent in agents
        }


SCRIPTS: dict[str, Sequence[Script]] = {
    "one by one": [{0: (2, "terminated"), 1: (3, "terminated"), 2: (5, "terminated"), 3: (5, "terminated")}],
    "last first": [{3: (1, "terminated"), 2: (2, "terminated"), 1: (4, "terminated"), 0: (6, "terminated")}],
    "all at once": [dict.fromkeys(range(4), (3, "terminated"))],
    "truncation only": [{}],
    "both flags": [{0: (2, "both"), 1: (4, "both"), 2: (4, "truncated"), 3: (4, "terminated")}],
    "one step": [dict.fromkeys(range(4), (1, "terminated"))],
    "mixed games": [
        {0: (1, "terminated"), 1: (2, "truncated"), 2: (6, "terminated")},
        {2: (1, "truncated"), 3: (1, "both")},
        dict.fromkeys(range(4), (4, "terminated")),
        {1: (3, "terminated")},
    ],
}
"""Death scripts for tests; agents are shuffled over seats, so the learner is each of them in turn."""
