"""A parallel environment on a line, for what the snake has not: continuous actions and Dict observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

STRIDE = 0.2


class LineEnv(ParallelEnv[str, Any, Any]):
    """Agents "agent_0"... walk on a line from -1 to 1; who comes near the target gets 1 and is out. Truncated after `limit`.

    Args:
        num_agents: how many walk.
        continuous: act with a force from -1 to 1; or else go left, stay or go right.
        as_dict: observe {"own", "others"}; or else a vector of the same numbers.
        limit: of steps.
    """

    def __init__(self, num_agents: int = 2, continuous: bool = True, as_dict: bool = False, limit: int = 12) -> None:
        self.metadata = {"name": "line_v0", "is_parallelizable": True}
        self.render_mode = None
        self.possible_agents = [f"agent_{i}" for i in range(num_agents)]
        self.agents: list[str] = []
        self.continuous, self.as_dict, self.limit = continuous, as_dict, limit
        self.rng = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        own = spaces.Box(-2, 2, (2,), np.float32)  # where it is, and how far it is to the target
        others = spaces.Box(-2, 2, (len(self.possible_agents) - 1,), np.float32)  # how far it is to each other
        if self.as_dict:
            return spaces.Dict({"own": own, "others": others})
        return spaces.Box(-2, 2, (2 + len(self.possible_agents) - 1,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-1, 1, (1,), np.float32) if self.continuous else spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.agents, self.time = list(self.possible_agents), 0
        self.target = self.rng.uniform(-1, 1)
        self.where = {agent: self.rng.uniform(-1, 1) for agent in self.agents}
        return {agent: self.observe(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        self.time += 1
        for agent, action in actions.items():
            force = float(action[0]) if self.continuous else int(action) - 1
            self.where[agent] = float(np.clip(self.where[agent] + STRIDE * force, -1, 1))
        there = {agent: abs(self.where[agent] - self.target) < STRIDE / 2 for agent in actions}
        over = self.time >= self.limit
        observations = {agent: self.observe(agent) for agent in actions}
        self.agents = [agent for agent in self.agents if not there[agent] and not over]
        return (
            observations,
            {agent: 1.0 if there[agent] else -abs(self.where[agent] - self.target) / self.limit for agent in actions},
            there,
            {agent: over and not there[agent] for agent in actions},
            {agent: {} for agent in actions},
        )

    def observe(self, agent: str) -> Any:
        here = self.where[agent]
        own = np.array([here, self.target - here], np.float32)
        others = np.array([self.where[other] - here for other in self.possible_agents if other != agent], np.float32)
        return {"own": own, "others": others} if self.as_dict else np.concatenate([own, others])
