"""Parallel environments that are quick to learn, whose agents leave at different times; with spaces alike or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

NUM_CUES = 4
CUE = spaces.Box(0, 1, (NUM_CUES,), np.float32)


class CueEnv(ParallelEnv[str, Any, Any]):
    """Agents "agent_0"... each see a cue, one of `NUM_CUES`, and get 1 for naming it; who errs is out. Truncated after `limit`.

    Who guesses gets 1/3 on average, who has learnt gets `limit`.
    """

    def __init__(self, num_agents: int = 3, limit: int = 10) -> None:
        self.metadata = {"name": "cues_v0", "is_parallelizable": True}
        self.render_mode = None
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.limit = limit
        self.games = 0
        self.cues: dict[str, int] = {}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return CUE

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(NUM_CUES)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.rng = np.random.default_rng(seed)
        self.agents, self.time, self.games = list(self.possible_agents), 0, self.games + 1
        return self.observe(), {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        assert list(actions) == self.agents
        self.time += 1
        right = {agent: self.is_right(agent, action) for agent, action in actions.items()}
        over = self.time >= self.limit
        observations = self.observe()
        self.agents = [agent for agent in self.agents if right[agent] and not over]
        return (
            observations,
            {agent: float(one) for agent, one in right.items()},
            {agent: not one for agent, one in right.items()},
            dict.fromkeys(right, over),
            {agent: {} for agent in right},
        )

    def observe(self) -> dict[str, Any]:
        self.cues = {agent: int(self.rng.integers(NUM_CUES)) for agent in self.agents}
        return {agent: np.eye(NUM_CUES, dtype=np.float32)[cue] for agent, cue in self.cues.items()}

    def is_right(self, agent: str, action: Any) -> bool:
        assert self.action_space(agent).contains(action)
        return int(action) == self.cues[agent]


class UnlikeEnv(CueEnv):
    """The same, but each of four agents sees and acts in its own way.

    "agent_0" sees the cue, "agent_1" a Dict with it and a number and acts with two floats, of which the first should be above
    zero exactly if the cue is above 1, "agent_2" may say only one of two things, the right one or another, and sees which,
    "agent_3" is like "agent_0".
    """

    SEEN: Mapping[str, spaces.Space[Any]] = {
        "agent_0": CUE,
        "agent_1": spaces.Dict({"cue": CUE, "time": spaces.Discrete(100)}),
        "agent_2": spaces.Dict(
            {"observation": spaces.Box(0, 99, (2,), np.int16), "action_mask": spaces.Box(0, 1, (6,), np.int8)}
        ),
        "agent_3": CUE,
    }
    DONE: Mapping[str, spaces.Space[Any]] = {
        "agent_0": spaces.Discrete(NUM_CUES),
        "agent_1": spaces.Box(-1, 1, (2,), np.float32),
        "agent_2": spaces.Discrete(6),
        "agent_3": spaces.Discrete(NUM_CUES),
    }

    def __init__(self) -> None:
        super().__init__(num_agents=4)
        self.illegal_moves = 0

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.SEEN[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.DONE[agent]

    def observe(self) -> dict[str, Any]:
        observations = super().observe()
        if "agent_1" in observations:
            observations["agent_1"] = {"cue": observations["agent_1"], "time": self.time}
        if "agent_2" in observations:
            seen = np.array([self.cues["agent_2"], self.time], np.int16)
            observations["agent_2"] = {"observation": seen, "action_mask": self.mask()}
        return observations

    def mask(self) -> NDArray[np.int8]:
        return np.isin(np.arange(6), [self.cues["agent_2"], 5]).astype(np.int8)

    def is_right(self, agent: str, action: Any) -> bool:
        if agent == "agent_1":
            assert self.action_space(agent).contains(action)
            return bool(action[0] > 0) == (self.cues[agent] > 1)
        if agent == "agent_2":
            self.illegal_moves += not self.mask()[action]
        return super().is_right(agent, action)
