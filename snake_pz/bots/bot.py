"""Scripted players on batches of `board` observations: `random`, `greedy`, `survivor` and `territorial`.

They know what a snake sees, its action mask and the rules, nothing else. A move has one of seven verdicts: forbidden by the
mask, back into the neck where that is no move of its own, deadly (wall, own body that cannot have left), taken (another's body,
which stays unless its snake dies on this very turn), starving (no health left), risky (another head may come to the same cell
and this snake would die, or another's tail may stay because its snake eats), safe.

`random` ignores everything, the mask too: it is the yardstick. `greedy` takes the best verdict, then the nearest food as the
crow flies. `survivor` also floods the board from each cell it could go to, a body's cells being free from the turn on which
they will have been left, and puts not being shut in before everything but certain death. `territorial` moreover goes where it
reaches most cells before anybody else, and for food when it is hungry; it is the strongest, and takes several times as long as
`survivor`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.bots import BOTS
from snake_pz.bots.kernels import KERNELS, board_codes
from snake_pz.core.actions import action_space
from snake_pz.core.observations import observation_space
from snake_pz.rules import Rules, check_names


class Bot:
    """A scripted player of games of one set of rules, any number of snakes at once.

    It keeps nothing between turns. What it does is a function of the observation, the action mask and, among equally good
    moves, of (seed, number of the call since seeding, slot): neither the snake's number nor the rest of the batch matters. All
    but `random` make no move that the mask forbids.

    Args:
        name: one of `BOTS`.
        rules: of the games it will play.

    Attributes:
        name: as given.
        observation_space: the `board` encoding of these rules.
        action_space: Discrete(4), the absolute directions 0 up, 1 right, 2 down, 3 left.
        uses_masks: whether it looks at action masks; all but `random` do.

    Raises:
        ValueError: no such bot.
    """

    def __init__(self, name: str, rules: Rules) -> None:
        check_names("bot", {name: rules}, list(BOTS))
        self.name = name
        self.uses_masks = name != "random"
        board = observation_space(rules, "board")
        self._shape = board.shape
        self.observation_space: gymnasium.Space[Any] = board
        self.action_space: gymnasium.Space[Any] = action_space("absolute")
        self._board = board_codes(rules, board.shape)
        self._choose = KERNELS[name]
        self._start(np.random.SeedSequence())

    def seed(self, seed: int) -> None:
        """Start the bot's own random stream anew; a fresh bot has one from fresh entropy."""
        self._start(np.random.SeedSequence(seed))

    def act(
        self,
        observations: NDArray[np.uint8],
        slots: NDArray[np.intp] | None = None,
        action_masks: NDArray[np.int8] | None = None,
    ) -> NDArray[np.int64]:
        """One move per row.

        Args:
            observations: (B, *observation_space.shape) uint8.
            slots: (B,) which snake of which game each row is, the same number from turn to turn: names the row's random
                numbers. None: the rows are numbered.
            action_masks: (B, 4) 1 = allowed. None: the bot judges by the observation alone, which does not show the heading of
                a snake of one, so that where reversing kills it may reverse.

        Returns:
            (B,) absolute directions. Any direction where no move is better than another, as where all are deadly.

        Raises:
            ValueError: observations or masks of another shape, observations of another type.
        """
        shape = self._shape
        if observations.shape[1:] != shape or observations.dtype != np.uint8:
            raise ValueError(
                f"the bot {self.name!r} needs observations (B, {', '.join(map(str, shape))}) uint8, the 'board' encoding of "
                f"its rules, got {observations.shape} {observations.dtype}"
            )
        masks = np.ones((len(observations), 4), np.int8) if action_masks is None else action_masks
        if masks.shape != (len(observations), 4):
            raise ValueError(f"the bot {self.name!r} needs action masks ({len(observations)}, 4), got {masks.shape}")
        rows = np.arange(len(observations)) if slots is None else np.asarray(slots, np.intp)
        actions = np.empty(len(observations), np.int64)
        planes = np.ascontiguousarray(observations).reshape(len(observations), shape[0], shape[1] * shape[2])
        self._choose(planes, np.ascontiguousarray(masks, np.int8), self._board, rows, self._seed, self._calls, actions)
        self._calls += 1
        return actions

    def reset(self, slots: NDArray[np.intp]) -> None:
        """The games of these slots restarted: nothing was remembered of them."""

    def _start(self, sequence: np.random.SeedSequence) -> None:
        self._seed = sequence.generate_state(1, np.uint64)[0]
        self._calls = 0


def make_bot(name: str, rules: Rules) -> Bot:
    """The bot of this name for games of these rules.

    Raises:
        ValueError: no such bot.
    """
    return Bot(name, rules)
