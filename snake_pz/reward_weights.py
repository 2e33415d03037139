"""RewardWeights: what the events of a turn are worth, as data. `core.rewards` pays it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property

from snake_pz.rules import check_names


@dataclasses.dataclass(frozen=True)
class RewardWeights:
    """What each event is worth. Every component is paid only on the turn of its event, and only to the snake it befalls."""

    food: float = 0.5
    """For eating."""
    death: float = -1.0
    """For dying, whatever the cause."""
    kill: float = 0.0
    """For each snake that dies on this turn and for which this one alone is responsible; not for its own death."""
    win: float = 1.0
    """For first place when the game ends by the rules, shared equally by those who tie for it. Not paid in a game that one
    snake started alone, nor when an environment's `max_cycles` cuts the game short."""
    rank: float = 0.0
    """Times a number from 1 (first) to -1 (last), evenly spaced and for ties the mean of the places they share, so that it
    sums to zero over all snakes. Paid when the place is settled: at death, or at the end."""
    step: float = 0.0
    """For each turn begun alive."""

    def __post_init__(self) -> None:
        """Check every field."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"reward weight {field.name} must be a finite number, got {value!r}")

    @cached_property
    def as_tuple(self) -> tuple[float, ...]:
        """The weights for the kernel, in the order of the fields."""
        return tuple(float(getattr(self, field.name)) for field in dataclasses.fields(self))


PRESETS: dict[str, RewardWeights] = {
    "shaped": RewardWeights(),
    "rank": RewardWeights(food=0.0, death=0.0, win=0.0, rank=1.0),
}
"""`shaped` is the default. `rank` is zero-sum over the placements and nothing else."""


def reward_weights(spec: RewardWeights | str | Mapping[str, float] | None) -> RewardWeights:
    """RewardWeights from what users write: an instance, a preset's name, a mapping of weights (others as in `shaped`), None.

    Raises:
        ValueError: no such preset or weight.
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
    raise ValueError(f"rewards must be RewardWeights, a preset's name or a dict of weights, got {type(spec).__name__}")
