"""ManualPolicy: a person at the keyboard in a loop over the environment, as in PettingZoo's own environments."""

from __future__ import annotations

from typing import Any

from snake_pz.env import SnakeParallelEnv
from snake_pz.play.keyboard import Steering, key_codes


class ManualPolicy:
    """Steer one agent with the arrow keys or WASD. If no key was pressed it goes straight on.

    Escape closes the window while the game continues; backspace resets the environment. Two quick turns within a step are made
    one after the other. `snake_pz.play.session` offers pause, speed, several people and a sliding picture.

    Args:
        env: `snake_v0.env` or `snake_v0.parallel_env`, or a wrapper of one, with `render_mode="human"`: keys are read from its
            window.
        agent_id: index of the agent in `possible_agents`.
        show_obs: whether to print the agent's observations.

    Attributes:
        agent: name of the agent.
    """

    def __init__(self, env: Any, agent_id: int = 0, show_obs: bool = False) -> None:
        self.env, self.agent_id, self.show_obs = env, agent_id, show_obs
        self.agent: str = env.possible_agents[agent_id]
        self._steering = Steering()

    def __call__(self, observation: Any, agent: str) -> int:
        """The agent's next action, in the action space of the environment.

        Raises:
            ValueError: called for another agent.
        """
        import pygame

        if agent != self.agent:
            raise ValueError(f"agent must be {self.agent!r}, which this manual policy steers, got {agent!r}")
        if self.show_obs:
            print(observation)
        if pygame.display.get_init():
            for event in pygame.event.get(pygame.KEYDOWN):
                self._press(event.key)
        game: SnakeParallelEnv = self.env.unwrapped
        heading = int(game.get_state().heading[0, self.agent_id])
        turn = self._steering.next(heading)
        direction = max(heading, 0) if turn is None else turn
        return direction if game.action_set == "absolute" else (direction - max(heading, 0) + 1) % 4

    @property
    def available_agents(self) -> dict[str, int]:
        """Agent names and their ids."""
        return {agent: number for number, agent in enumerate(self.env.possible_agents)}

    def _press(self, key: int) -> None:
        import pygame

        if key == pygame.K_ESCAPE:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        elif key == pygame.K_BACKSPACE:
            self._steering.clear()
            self.env.reset()
        for keys in ("arrows", "WASD"):
            if key in key_codes(keys):
                self._steering.press(key_codes(keys).index(key))
