"""Scripted players on batches of `board` observations: `random`, `greedy`, `survivor` and `territorial`.

They use the snake's observation, its action mask and the rules. Each move gets a verdict, from worst to best: forbidden by the
mask; back into the neck, if that is executed as another move or kills; deadly (a wall, or an own segment that stays); taken
(a segment of another snake, which stays unless that snake dies on this turn); starving (no health left); risky (another head
may enter the cell and this snake would die, or another tail may stay because its snake eats); safe.

- `random` draws from all four moves, ignoring observation and mask. It is the baseline.
- `greedy` takes the best verdict, then the move nearest to food by distance on an empty board.
- `survivor` also searches the board from each possible cell, treating body cells as free once they will have been left, and
  goes for the food nearest by that search. A dead end is worse to it than a risky move and better than a starving one.
- `territorial` also prefers moves after which it reaches the most cells before any other snake. It goes for food when hungry,
  and whatever cells that costs when it would otherwise hardly live to reach any. It is the strongest, and takes several times
  as long as `survivor`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from snake_pz.bots.kernels import KERNELS
from snake_pz.bots.verdicts import bot_rules
from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.players import Player
from snake_pz.ranges import seed_sequence
from snake_pz.rules import Rules, check_names


class Bot(Player):
    """A scripted player for games with the same rules, any number of snakes at once.

    It has no memory between turns. Its move is a function of the observation, the action mask and, among equally good moves, of
    (seed, number of calls since seeding, slot); it depends on neither the snake's index nor the rest of the batch. No bot but
    `random` makes a move that the mask forbids while another is allowed.

    Args:
        name: one of `KERNELS`.
        rules: rules of the games to play.

    Attributes:
        name: as given.
        observation_space: the `board` encoding of these rules.
        action_space: Discrete(4), the absolute directions 0 up, 1 right, 2 down, 3 left.
        uses_masks: whether it uses action masks; all but `random` do.

    Raises:
        ValueError: an unknown name.
    """

    def __init__(self, name: str, rules: Rules) -> None:
        check_names("bot", {name: rules}, list(KERNELS))
        self.name = self._kernel = name  # the former may be changed, as pools do
        self.uses_masks = name != "random"
        board = observation_space(rules, "board")
        self._shape = board.shape
        self.observation_space: gymnasium.Space[Any] = board
        self.action_space: gymnasium.Space[Any] = action_space("absolute")
        self._rules = bot_rules(rules, board.shape)
        self._start(seed_sequence(None))

    @override
    def seed(self, seed: int) -> None:
        """Seed the bot's own random stream. A new bot is seeded from fresh entropy."""
        self._start(seed_sequence(seed))

    @override
    def act(
        self,
        observations: NDArray[np.uint8],
        slots: NDArray[np.intp] | None = None,
        action_masks: NDArray[np.int8] | None = None,
    ) -> NDArray[np.int64]:
        """One move per row.

        Args:
            observations: (B, *observation_space.shape) uint8.
            slots: (B,) the snake and game of each row as one number, the same from turn to turn; it selects the row's random
                numbers. None: 0 to B - 1.
            action_masks: (B, 4) 1 = allowed. None: the bot judges by the observation alone, which does not show the heading of
                a snake of length 1, so such a snake may reverse where that kills.

        Returns:
            (B,) int64 absolute directions. Equally good moves, for example if all are deadly, are equally likely.

        Raises:
            ValueError: observations, slots or masks of another shape or type.
        """
        shape, observations = self._shape, np.asarray(observations)
        if observations.shape[1:] != shape or observations.dtype != np.uint8:
            raise ValueError(
                f"the bot {self.name!r} needs observations (B, {', '.join(map(str, shape))}) uint8, the 'board' encoding of "
                f"its rules, got {observations.shape} {observations.dtype}"
            )
        masks = np.ones((len(observations), 4), np.int8) if action_masks is None else np.asarray(action_masks)
        if masks.shape != (len(observations), 4) or masks.dtype.kind not in "biu":
            raise ValueError(
                f"the bot {self.name!r} needs masks ({len(observations)}, 4) of integers, got {masks.shape} {masks.dtype}"
            )
        slots = np.arange(len(observations)) if slots is None else np.asarray(slots)
        if slots.shape != (len(observations),) or (slots.size and slots.dtype.kind not in "iu"):
            raise ValueError(
                f"the bot {self.name!r} needs slots ({len(observations)},) of integers, got {slots.shape} {slots.dtype}"
            )
        slots = slots.astype(np.intp, copy=False)
        actions = np.empty(len(observations), np.int64)
        planes = np.ascontiguousarray(observations).reshape(len(observations), shape[0], shape[1] * shape[2])
        choose = KERNELS[self._kernel]  # not kept: a pickled bot would bring along its kernel, to be compiled again
        choose(planes, np.ascontiguousarray(masks, np.int8), self._rules, slots, self._seed, self._calls, actions)
        self._calls += 1
        return actions

    @override
    def reset(self, slots: NDArray[np.intp]) -> None:
        """Do nothing: a bot has no memory of its games."""

    def _start(self, sequence: np.random.SeedSequence) -> None:
        self._seed = sequence.generate_state(1, np.uint64)[0]
        self._calls = 0
