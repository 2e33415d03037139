"""SeatedPlayer: an opponent in one batch of games. Observing, masking, acting and decoding are here and nowhere else."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adapters.games.game_batch import GameBatch, map_arrays
from adapters.opponents.protocol import Actions, Opponent, Slots
from adapters.opponents.simple import within


class SeatedPlayer:
    """An opponent and these games as it sees them.

    A slot is `game * seats + seat`; it also names the row that the opponent's recurrent state belongs to.

    Args:
        opponent: who plays.
        games: the games.

    Attributes:
        opponent: as given.
        uses_masks: whether it is handed action masks where the games have them.

    Raises:
        ValueError: these games cannot be seen by it.
    """

    def __init__(self, opponent: Opponent, games: GameBatch) -> None:
        self.opponent = opponent
        self.uses_masks: bool = getattr(opponent, "uses_masks", False)
        self._seats = games.seats
        try:
            self._view = games.view(opponent.observation_space, opponent.action_space)
        except ValueError as error:
            raise ValueError(f"opponent {opponent.name!r} cannot play in these games: {error}") from error

    def act(self, slots: Slots) -> Actions:
        """What it does on these seats in the present time step.

        Args:
            slots: (B,) which seats.

        Returns:
            (B, *action) as `GameBatch.step` takes them.

        Raises:
            ValueError: it returned anything but B actions of its action space.
        """

        def rows(array: NDArray[Any]) -> NDArray[Any]:
            """(E, N, ...) -> (B, ...), a copy."""
            return array.reshape(-1, *array.shape[2:]).take(slots, axis=0)

        masks = self._view.action_masks() if self.uses_masks else None
        chosen = self.opponent.act(map_arrays(rows, self._view.observations()), slots, None if masks is None else rows(masks))
        _check_actions(self.opponent, chosen, len(slots))
        return self._view.decode(chosen, *np.divmod(slots, self._seats))


def _check_actions(opponent: Opponent, actions: Any, rows: int) -> None:
    """Reject actions whose shape or dtype numpy would broadcast or cast, or that are out of the space."""
    space = opponent.action_space
    expected = (rows, *(space.shape or ()))
    if not isinstance(actions, np.ndarray) or actions.shape != expected:
        raise ValueError(
            f"opponent {opponent.name!r} must return an array of actions of shape {expected}, got "
            f"{getattr(actions, 'shape', type(actions).__name__)}"
        )
    if isinstance(space, gymnasium.spaces.Discrete) and not within(actions, space):
        last = space.start + space.n - 1
        raise ValueError(
            f"opponent {opponent.name!r} must return integers from {space.start} to {last}, got {actions.tolist()}"
        )
