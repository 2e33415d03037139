"""People as players: the keys, a queue of turns for each person, and the player object that takes its moves from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.core.actions import action_space
from snake_pz.core.observations import BOARD_PLANES, TTL_STEP, observation_space
from snake_pz.core.state import NO_HEADING
from snake_pz.rules import Rules

KEYS: dict[str, tuple[str, ...]] = {
    "arrows": ("K_UP", "K_RIGHT", "K_DOWN", "K_LEFT"),
    "WASD": ("K_w", "K_d", "K_s", "K_a"),
    "start": ("K_SPACE", "K_RETURN", "K_KP_ENTER"),
    "pause": ("K_SPACE",),
    "step": ("K_PERIOD", "K_KP_PERIOD"),
    "faster": ("K_PLUS", "K_EQUALS", "K_KP_PLUS"),
    "slower": ("K_MINUS", "K_KP_MINUS"),
    "restart": ("K_r",),
    "again": ("K_r", "K_RETURN", "K_KP_ENTER"),
    "quit": ("K_ESCAPE",),
}
"""All keys, by pygame's names: those that steer, in the order up, right, down, left, and those of the game."""

CAPS: dict[str, tuple[str, ...]] = {"arrows": ("left", "up", "down", "right"), "WASD": ("W", "A", "S", "D")}
"""What is on the keys that steer."""

MOST_TURNS = 4
"""Turns that are kept; what is pressed beyond is too far ahead to be meant."""

_OWN_BODY, _OWN_HEAD = BOARD_PLANES.index("own body"), BOARD_PLANES.index("own head")
_STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))


@cache
def key_codes(what: str) -> tuple[int, ...]:
    """The codes that events carry for an entry of KEYS."""
    import pygame

    return tuple(getattr(pygame, name) for name in KEYS[what])


class Steering:
    """The turns that somebody has asked for and that have not been made yet."""

    def __init__(self) -> None:
        self._turns: deque[int] = deque()

    def press(self, direction: int) -> None:
        """Ask for an absolute direction."""
        if len(self._turns) < MOST_TURNS and (not self._turns or self._turns[-1] != direction):
            self._turns.append(direction)

    def next(self, heading: int) -> int | None:
        """The next turn to make, None for none.

        What is no turn of a snake that last moved in this direction, back or straight on, is passed over. So a quick turn back
        is two keys, each made on a turn of its own.

        Args:
            heading: the direction last executed; NO_HEADING if there was none.
        """
        while self._turns:
            direction = self._turns.popleft()
            if heading == NO_HEADING or (direction - heading) % 2 == 1:
                return direction
        return None

    def clear(self) -> None:
        """Forget them."""
        self._turns.clear()


class Person:
    """A person at the keyboard as a player like any other, of one snake.

    Without a key it goes straight on; a curled up snake that has not moved yet goes where it is safe.

    Args:
        name: what others call it.
        rules: of the games it will play.
        keys: entries of KEYS that steer.

    Attributes:
        observation_space: the `board` encoding of these rules.
        action_space: Discrete(4), the absolute directions.
    """

    uses_masks = True

    def __init__(self, name: str, rules: Rules, keys: Sequence[str] = ("arrows",)) -> None:
        self.name, self.keys = name, tuple(keys)
        self.observation_space: gymnasium.Space[Any] = observation_space(rules, "board")
        self.action_space: gymnasium.Space[Any] = action_space("absolute")
        self._rules = rules
        self._steering = Steering()
        self._heading: int | None = None  # as last executed; None before the first move

    def press(self, key: int) -> bool:
        """Take a key, pygame's code for it, if it is one of this person's."""
        for keys in self.keys:
            if key in key_codes(keys):
                self._steering.press(key_codes(keys).index(key))
                return True
        return False

    def act(
        self, observations: NDArray[np.uint8], slots: NDArray[np.intp], action_masks: NDArray[np.int8] | None
    ) -> NDArray[np.int64]:
        """The move of the one snake, (1,)."""
        if len(observations) != 1:
            raise ValueError(f"a person plays one snake, {self.name!r} got {len(observations)}")
        heading = self._heading if self._heading is not None else heading_on_board(observations[0], self._rules)
        move = self._steering.next(heading)
        if move is None:
            move = heading
        if move == NO_HEADING:
            move = int(action_masks[0].argmax()) if action_masks is not None else 0
        self._heading = move
        return np.array([move], np.int64)

    def reset(self, slots: NDArray[np.intp]) -> None:
        """A new game: no turn is waiting."""
        self._steering.clear()
        self._heading = None

    def seed(self, seed: int) -> None:
        """There is nothing random about it."""


def heading_on_board(board: NDArray[np.uint8], rules: Rules) -> int:
    """Where the own snake heads in a `board` observation, from its neck to its head; NO_HEADING where these coincide.

    Of a snake longer than a plane can tell, 26 and more, it may be any direction away from its body.
    """
    at = np.argwhere(board[_OWN_HEAD])
    if not len(at):
        return NO_HEADING
    y, x = at[0].tolist()
    for direction, (dx, dy) in enumerate(_STEPS):
        neck_x, neck_y = x - dx, y - dy
        if rules.edge == "wrap":
            neck_x, neck_y = neck_x % rules.width, neck_y % rules.height
        if 0 <= neck_x < rules.width and 0 <= neck_y < rules.height:
            here, there = int(board[_OWN_BODY, y, x]), int(board[_OWN_BODY, neck_y, neck_x])
            if there > 0 and here - there <= TTL_STEP:
                return direction
    return NO_HEADING
