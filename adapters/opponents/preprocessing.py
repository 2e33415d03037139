"""Conversion of the games' observations to those that a policy was trained on: normalise, stack frames, transpose images.

SB3 saves a policy's spaces, not the wrappers between them and the environment. Which of `VecNormalize`, `VecFrameStack` and
`VecTransposeImage` there were, and in which order, is found from the spaces and from the statistics that were saved.

Loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.space_words import hidden_difference
from snake_pz.players import Observations

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecNormalize

Slots = NDArray[np.intp]


class SlotMemory:
    """An array per slot, zeros until it is written.

    Args:
        shape: shape of one slot's array.
        dtype: dtype of the arrays.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type[np.generic]) -> None:
        self._arrays = np.zeros((0, *shape), dtype)

    def read(self, slots: Slots) -> NDArray[Any]:
        """(B, *shape), a copy."""
        self._make_room(slots)
        return self._arrays[slots]

    def write(self, slots: Slots, arrays: NDArray[Any]) -> None:
        """Keep (B, *shape)."""
        self._make_room(slots)
        self._arrays[slots] = arrays

    def clear(self, slots: Slots) -> None:
        """Set to zeros."""
        self._arrays[slots[slots < len(self._arrays)]] = 0

    def _make_room(self, slots: Slots) -> None:
        missing = int(slots.max(initial=-1)) + 1 - len(self._arrays)
        if missing > 0:
            more = np.zeros((missing, *self._arrays.shape[1:]), self._arrays.dtype)
            self._arrays = np.concatenate([self._arrays, more])


class Step(Protocol):
    """One frozen wrapper: from space `shown` to `space`."""

    space: gymnasium.Space[Any]

    def apply(self, observations: Observations, slots: Slots) -> Observations:
        """(B, *shown) -> (B, *space), in the turn that the slots are in."""
        ...

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted."""
        ...


class Normalize(Step):
    """`VecNormalize` with fixed statistics, observations only."""

    def __init__(self, statistics: VecNormalize) -> None:
        self.space: gymnasium.Space[Any] = statistics.observation_space
        self.statistics = statistics

    @override
    def apply(self, observations: Observations, slots: Slots) -> Observations:
        return self.statistics.normalize_obs(observations)

    @override
    def reset(self, slots: Slots) -> None: ...


class StackFrames(Step):
    """`VecFrameStack`: the last frames of each slot, zeros for those before its game began.

    Args:
        shown: the space of a frame.
        frames: number of stacked frames.
        axis: axis of the frame along which they are stacked, 0 or -1.
    """

    def __init__(self, shown: spaces.Box, frames: int, axis: int) -> None:
        low, high = (np.repeat(limit, frames, axis=axis) for limit in (shown.low, shown.high))
        self.space: gymnasium.Space[Any] = spaces.Box(low, high, dtype=shown.dtype)
        self.axis = axis
        self._batch_axis = 1 if axis == 0 else -1
        self._older = np.arange(shown.shape[axis], low.shape[axis])
        self._stacks = SlotMemory(low.shape, shown.dtype)

    @override
    def apply(self, observations: Observations, slots: Slots) -> Observations:
        older = self._stacks.read(slots).take(self._older, axis=self._batch_axis)
        stacks = np.concatenate([older, observations], axis=self._batch_axis, dtype=older.dtype, casting="unsafe")
        self._stacks.write(slots, stacks)
        return stacks

    @override
    def reset(self, slots: Slots) -> None:
        self._stacks.clear(slots)


class PutChannelsFirst(Step):
    """`VecTransposeImage`."""

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.space = space

    @override
    def apply(self, observations: Observations, slots: Slots) -> Observations:
        return np.ascontiguousarray(np.moveaxis(observations, -1, 1))

    @override
    def reset(self, slots: Slots) -> None: ...


class Preprocessing:
    """The steps from the games' observations to those that a policy was trained on.

    Args:
        trained_on: the policy's observation space.
        shown: spaces of the games, preferred first; the shortest sequence of steps is used.
        statistics: `VecNormalize` statistics of the policy's training; None if it had none.
        whose: name of the policy in errors.

    Attributes:
        observation_space: the member of `shown` that the steps start from; `trained_on` if no steps lead there, so that seating
            the policy reports the mismatch.
        transposes_stacks: whether frames are stacked along the first axis, as channels, and then transposed as if channels were
            last, so that the policy saw scrambled images.
        remembers: whether what a slot shows depends on what it showed before.

    Raises:
        ValueError: the statistics fit neither the games nor the policy; or there are none and the policy was trained on
            normalised images.
    """

    def __init__(
        self,
        trained_on: gymnasium.Space[Any],
        shown: Sequence[gymnasium.Space[Any]] = (),
        statistics: VecNormalize | None = None,
        whose: str = "the policy",
    ) -> None:
        ways = [(space, way) for space in shown or [trained_on] for way in _ways(space, trained_on, statistics)]
        if not ways:
            _check_normalized(trained_on, shown, statistics, whose)
        self.steps: Sequence[Step]
        self.observation_space, self.steps = min(ways, key=lambda way: len(way[1]), default=(trained_on, []))
        self.remembers = any(isinstance(step, StackFrames) for step in self.steps)
        neighbours = zip(self.steps, self.steps[1:], strict=False)
        self.transposes_stacks = any(
            isinstance(step, StackFrames) and step.axis == 0 and isinstance(after, PutChannelsFirst)
            for step, after in neighbours
        )

    def apply(self, observations: Observations, slots: Slots) -> Observations:
        """(B, *observation_space) -> (B, *trained_on). Call it once per turn and slot, because frames are remembered."""
        for step in self.steps:
            observations = step.apply(observations, slots)
        return observations

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted."""
        for step in self.steps:
            step.reset(slots)


def _ways(
    shown: gymnasium.Space[Any], trained_on: gymnasium.Space[Any], statistics: VecNormalize | None
) -> Iterator[list[Step]]:
    """Each sequence of steps that leads from one space to the other and uses the statistics, if there are any."""
    if statistics is None and shown == trained_on:
        yield []
    else:
        for step, rest in _next_steps(shown, trained_on, statistics):
            for way in _ways(step.space, trained_on, rest):
                yield [step, *way]


def _next_steps(
    shown: gymnasium.Space[Any], trained_on: gymnasium.Space[Any], statistics: VecNormalize | None
) -> Iterator[tuple[Step, VecNormalize | None]]:
    """Possible next wrappers, each with the statistics that remain to be used."""
    if statistics is not None and _takes(statistics, shown):
        yield Normalize(statistics), None
    if isinstance(shown, spaces.Box) and isinstance(trained_on, spaces.Box) and shown.shape:
        frames, left = divmod(int(np.prod(trained_on.shape)), int(np.prod(shown.shape)) or 1)
        if frames > 1 and not left:
            for axis in (0, -1) if len(shown.shape) > 1 else (-1,):
                yield StackFrames(shown, frames, axis), statistics
        if _is_image(shown) and np.argmin(shown.shape) != 0:  # SB3's rule, though (14, 11, 11) be channels first
            height, width, channels = shown.shape
            yield PutChannelsFirst(spaces.Box(0, 255, (channels, height, width), np.uint8)), statistics


def _is_image(space: gymnasium.Space[Any]) -> bool:
    """Whether Stable-Baselines3 takes observations for images; this is its `is_image_space` without loading it."""
    return (
        isinstance(space, spaces.Box)
        and len(space.shape) == 3
        and space.dtype == np.uint8
        and bool((space.low == 0).all() and (space.high == 255).all())
    )


def _takes(statistics: VecNormalize, shown: gymnasium.Space[Any]) -> bool:
    """Whether the statistics are of this space, by shape and bounds; statistics of images do not keep the dtype uint8."""
    of = statistics.observation_space
    if isinstance(shown, spaces.Box) and isinstance(of, spaces.Box):
        same_bounds = shown.shape == of.shape and np.allclose(shown.low, of.low) and np.allclose(shown.high, of.high)
        return same_bounds or (_is_image(shown) and shown.shape == of.shape)
    return shown == of


def _check_normalized(
    trained_on: gymnasium.Space[Any],
    shown: Sequence[gymnasium.Space[Any]],
    statistics: VecNormalize | None,
    whose: str,
) -> None:
    """Raise an error about the statistics if no steps lead from the games to the policy."""
    if statistics is not None:
        alike = "".join(hidden_difference(statistics.observation_space, space) for space in shown)
        raise ValueError(
            f"{whose} sees {trained_on} and its VecNormalize statistics are of {statistics.observation_space}, but these games "
            f"show {' or '.join(map(str, shown))}{alike}: expected statistics of these games, "
            "from the run that trained the policy"
        )
    if (
        isinstance(trained_on, spaces.Box)
        and len(trained_on.shape) == 3
        and trained_on.dtype == np.float32
        and np.all(trained_on.high == -trained_on.low)
        and any(_is_image(space) for space in shown)
    ):
        raise ValueError(
            f"{whose} sees {trained_on}, images as VecNormalize makes them, but there are no statistics to make them with: "
            "save those of its run beside the checkpoint, vec_normalize.save('<checkpoint>_vecnormalize.pkl'), or name their "
            "file, frozen(..., vecnormalize=path)"
        )
