"""Opponents without a network: user functions and uniform play."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from typing_extensions import override

from snake_pz.players import Actions, Masks, Observations, Player, Slots, within


class CallableOpponent(Player):
    """A user's function `f(observations) -> actions` on batches: (B, *obs) -> (B, *action).

    `seed` does not affect randomness inside the function.

    Args:
        function: the function. Its `__name__` is the opponent's name.
        observation_space: of the observations it is given.
        action_space: of the actions it returns.

    Raises:
        ValueError: from `act`: the function does not return B actions of the action space.
    """

    def __init__(
        self,
        function: Callable[[Observations], Actions],
        *,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.observation_space, self.action_space = observation_space, action_space
        self._function = function

    @override
    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        actions = np.asarray(self._function(observations))
        expected = (len(slots), *(self.action_space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"opponent {self.name!r} must return actions of shape {expected}, one per row of the observations, "
                f"got {actions.shape}"
            )
        if not within(actions, self.action_space):
            extent = f"from {actions.min()} to {actions.max()}" if actions.dtype.kind in "biuf" else "of no number"
            raise ValueError(
                f"opponent {self.name!r} must return actions in {self.action_space}, got {actions.dtype} values {extent}"
            )
        return actions

    @override
    def reset(self, slots: Slots) -> None: ...

    @override
    def seed(self, seed: int) -> None: ...


class RandomOpponent(Player):
    """Uniform play over the allowed actions; over all actions if none is allowed, or without masks or `uses_masks`."""

    name = "random"

    def __init__(
        self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], *, uses_masks: bool = True
    ) -> None:
        self.uses_masks = uses_masks
        self.observation_space = observation_space
        self.action_space = copy.deepcopy(action_space)  # its random stream must not be shared
        self.seed(int(np.random.SeedSequence().generate_state(1)[0]))

    @override
    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        space = self.action_space
        if action_masks is not None:
            return self._allowed(action_masks)
        if isinstance(space, spaces.Discrete):
            return self._rng.integers(space.start, space.start + space.n, size=len(slots))
        return np.stack([space.sample() for _ in slots])

    @override
    def reset(self, slots: Slots) -> None: ...

    @override
    def seed(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.action_space.seed(seed)

    def _allowed(self, action_masks: Masks) -> Actions:
        """One allowed choice for each number of the action; masks are concatenated as in sb3-contrib."""
        space = self.action_space
        ends = np.cumsum(_choices(space))
        lots = self._rng.random(action_masks.shape) + (action_masks > 0)
        chosen = np.stack([part.argmax(axis=1) for part in np.split(lots, ends[:-1], axis=1)], axis=1)
        return chosen.reshape(-1, *(space.shape or ())) + getattr(space, "start", 0)


def _choices(space: gymnasium.Space[Any]) -> list[int]:
    """The number of choices for each number of an action that can be masked."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    return [2] * int(np.prod(space.shape or ()))
