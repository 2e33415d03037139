"""People as players: the keys, a queue of turns per person, and the Player that takes its moves from the queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.core.observations import BOARD_PLANES, TTL_STEP
from snake_pz.core.state import NO_HEADING
from snake_pz.players import Player
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
"""All keys by pygame's names: keys that steer, in the order up, right, down, left, and keys of the session."""

CAPS: dict[str, tuple[str, ...]] = {"arrows": ("left", "up", "down", "right"), "WASD": ("W", "A", "S", "D")}
"""Labels of the keys that steer, in the order in which they are shown."""

MOST_TURNS = 4
"""Turns that a queue holds; further ones are dropped as unintended."""

_OWN_BODY, _OWN_HEAD = BOARD_PLANES.index("own body"), BOARD_PLANES.index("own head")
_STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))


@cache
def key_codes(what: str) -> tuple[int, ...]:
    """Codes that pygame's events carry for the keys of an entry of KEYS."""
    import pygame

    return tuple(getattr(pygame, name) for name in KEYS[what])


class Steering:
    """A queue of turns that a person has asked for and that have not been made yet."""

    def __init__(self) -> None:
        self._turns: deque[int] = deque()

    def press(self, direction: int) -> None:
        """Add an absolute direction to the queue."""
        if len(self._turns) < MOST_TURNS and (not self._turns or self._turns[-1] != direction):
            self._turns.append(direction)

    def next(self, heading: int) -> int | None:
        """Take the next turn from the queue; None if there is none.

        Directions that are straight ahead or back are skipped, so reversing takes two keys, each made on a turn of its own.

        Args:
            heading: the direction last executed; NO_HEADING if there was none.
        """
        while self._turns:
            direction = self._turns.popleft()
            if heading == NO_HEADING or (direction - heading) % 2 == 1:
                return direction
        return None

    def clear(self) -> None:
        """Empty the queue."""
        self._turns.clear()


class Person(Player):
    """A person at the keyboard, as the player of one snake.

    If no key was pressed the snake goes straight on; a curled up snake that has not moved yet makes a move that is not masked.

    Args:
        name: name that others see.
        rules: rules of the games to play.
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
        self._heading: int | None = None  # last executed; None before the first move

    def press(self, key: int) -> bool:
        """Take a key, given by pygame's code.

        Returns:
            Whether it is one of this person's keys.
        """
        for keys in self.keys:
            if key in key_codes(keys):
                self._steering.press(key_codes(keys).index(key))
                return True
        return False

    @override
    def act(
        self, observations: NDArray[np.uint8], slots: NDArray[np.intp], action_masks: NDArray[np.int8] | None
    ) -> NDArray[np.int64]:
        """(1,) the move of the one snake.

        Raises:
            ValueError: not one row.
        """
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

    @override
    def reset(self, slots: NDArray[np.intp]) -> None:
        self._steering.clear()
        self._heading = None

    @override
    def seed(self, seed: int) -> None:
        """Do nothing: a person has no random stream."""


def heading_on_board(board: NDArray[np.uint8], rules: Rules) -> int:
    """The own snake's heading in a `board` observation, from neck to head; NO_HEADING if both are on one cell.

    For a snake of 26 segments or more, longer than a plane encodes, it may be any direction away from the snake's body.
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
