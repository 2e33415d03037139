"""A parallel environment in which agents stay as long as they like, and players that stay so long."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Staying(ParallelEnv[str, Any, Any]):
    """An agent sees how many turns were played and stays as long as its action is 1; leaving pays 1, minus 1/8 per turn."""

    metadata = {"name": "staying_v0"}  # noqa: RUF012
    render_mode = None

    def __init__(self, agents: int = 3, says_rank: bool = False) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents: list[str] = []
        self.says_rank = says_rank

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(0, np.inf, (1,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        self.agents, self.turn = list(self.possible_agents), 0
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        self.turn += 1
        left = {agent: action == 0 for agent, action in actions.items()}
        result = (
            self._seen(),
            {agent: 1.0 * left[agent] - self.turn / 8 for agent in actions},
            left,
            dict.fromkeys(actions, self.turn == 20),
            {agent: {"rank": self.turn} if self.says_rank else {} for agent in actions},  # early leavers are the best
        )
        self.agents = [agent for agent in self.agents if not left[agent] and self.turn < 20]
        return result

    def _seen(self) -> dict[str, Any]:
        return {agent: np.array([self.turn], np.float32) for agent in self.agents}


def stay(turns: int) -> Any:
    def player(observations: Any) -> Any:
        return (observations[:, 0] + 1 < turns).astype(np.int64)

    player.__name__ = f"stays_{turns}"
    return player
