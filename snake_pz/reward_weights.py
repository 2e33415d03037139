"""Rewards: weights of the events of a turn, as data, or a user's function. `core.rewards` computes rewards from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from snake_pz.rules import check_names

MAX_WEIGHT = 1e30
"""The largest weight, so that float32 holds the sum of all rewards of a turn."""


@dataclasses.dataclass(frozen=True)
class RewardWeights:
    """The reward for each event, paid on the turn of the event to the snake that it happens to.

    Raises:
        ValueError: a weight is not a number from -1e30 to 1e30.
    """

    food: float = 0.5
    """For eating."""
    death: float = -1.0
    """For dying, whatever the cause."""
    kill: float = 0.0
    """For each other snake that dies on this turn with this snake as its only killer."""
    win: float = 1.0
    """For first place when the game ends by the rules, divided equally among those who tie. Not paid in a game that one snake
    started alone, nor when an environment's `max_cycles` truncates the game."""
    rank: float = 0.0
    """Multiplied by a number from 1 (first) to -1 (last): evenly spaced over the places, the mean for tied places, so that the
    sum over all snakes is zero. Paid when the place is known: at death, or at the end of the game."""
    step: float = 0.0
    """For each turn that the snake begins alive."""

    def __post_init__(self) -> None:
        """Check every field."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_WEIGHT:  # nor is NaN
                raise ValueError(f"reward weight {field.name} must be a number from -1e30 to 1e30, got {value!r}")

    @cached_property
    def as_tuple(self) -> tuple[float, ...]:
        """The weights for the kernel, in the order of the fields."""
        return tuple(float(getattr(self, field.name)) for field in dataclasses.fields(self))


RewardFunction = Callable[[Any, Any, Any], Any]
"""A function (before, events, after) -> (E, N) rewards of all snakes of E games for one turn.

`before` and `after` are the `SnakeState`s of the games, `events` the `core.rewards.Events` between them; all are valid during
the call and read only. Rewards of snakes that did not begin the turn alive are ignored."""

Rewards = RewardWeights | RewardFunction

PRESETS: dict[str, RewardWeights] = {
    "shaped": RewardWeights(),
    "rank": RewardWeights(food=0.0, death=0.0, win=0.0, rank=1.0),
}
"""Named weights. `shaped` is the default; `rank` pays for the placement only and is zero-sum."""


def reward_weights(spec: Rewards | str | Mapping[str, float] | None) -> Rewards:
    """RewardWeights, or a function, from what users pass.

    Args:
        spec: RewardWeights, a name in PRESETS, a mapping of weights (the others as in `shaped`), None for `shaped`, or a
            RewardFunction.

    Raises:
        ValueError: an unknown preset or weight, or a weight that is not a number from -1e30 to 1e30.
    """
    if spec is None:
        return PRESETS["shaped"]
    if isinstance(spec, RewardWeights):
        return spec
    if isinstance(spec, str):
        if spec not in PRESETS:
            raise ValueError(f"rewards must be one of {', '.join(map(repr, PRESETS))}, RewardWeights or a dict, got {spec!r}")
        return PRESETS[spec]
    if isinstance(spec, Mapping):
        check_names("reward weight", spec, [field.name for field in dataclasses.fields(RewardWeights)])
        return RewardWeights(**spec)
    if callable(spec) and not isinstance(spec, type):
        return spec
    raise ValueError(
        f"rewards must be RewardWeights, a preset's name, a dict of weights or a function, got {type(spec).__name__}"
    )
