"""What a policy was trained to see, made of what the games show: statistics applied, frames stacked, channels put first.

SB3 saves a policy's spaces, not the wrappers between them and the environment. Which of `VecNormalize`, `VecFrameStack` and
`VecTransposeImage` there were, and in which order, is found from the spaces and from the statistics that were saved.

A file of statistics runs no code unless it is trusted, see `unpickling`.

Importing this module loads neither torch nor Stable-Baselines3; calling its functions does.
"""

from __future__ import annotations

import copy
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.space_words import hidden_difference
from adapters.opponents.unpickling import LARGEST, Reader, Trust, UnreadableError, checked_trust, refusal
from snake_pz.players import Observations

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecNormalize

Slots = NDArray[np.intp]


class SlotMemory:
    """An array for every slot, zeros until something is written.

    Args:
        shape: of the array of one slot.
        dtype: of all.
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
        """Back to zeros."""
        self._arrays[slots[slots < len(self._arrays)]] = 0

    def _make_room(self, slots: Slots) -> None:
        missing = int(slots.max(initial=-1)) + 1 - len(self._arrays)
        if missing > 0:
            more = np.zeros((missing, *self._arrays.shape[1:]), self._arrays.dtype)
            self._arrays = np.concatenate([self._arrays, more])


class Step(Protocol):
    """One wrapper, frozen: from `shown`, what comes in, to `space`, what comes out."""

    space: gymnasium.Space[Any]

    def apply(self, observations: Observations, slots: Slots) -> Observations:
        """(B, *shown) -> (B, *space), in the turn that the slots are in."""
        ...

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted."""
        ...


class Normalize(Step):
    """`VecNormalize` that has stopped learning, observations only."""

    def __init__(self, statistics: VecNormalize) -> None:
        self.space: gymnasium.Space[Any] = statistics.observation_space
        self._statistics = statistics

    @override
    def apply(self, observations: Observations, slots: Slots) -> Observations:
        return self._statistics.normalize_obs(observations)

    @override
    def reset(self, slots: Slots) -> None: ...


class StackFrames(Step):
    """`VecFrameStack`: the last frames of every slot, zeros for those before its game began.

    Args:
        shown: the space of a frame.
        frames: how many are stacked.
        axis: of the frame along which they are, 0 or -1.
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
    """The way from what games show to what a policy was trained on.

    Args:
        trained_on: the policy's observation space.
        shown: what the games can show, the preferred first; the shortest way is taken.
        statistics: those that the policy was trained with, None if it was trained without.
        whose: names the policy in errors.

    Attributes:
        observation_space: which of `shown` it starts from; `trained_on` if no way leads there from any, so that whoever
            seats the policy finds the misfit.
        transposes_stacks: whether frames are stacked along their first side, as channels, and then transposed as if these were
            the last: what the policy saw were no longer pictures.

    Raises:
        ValueError: there are statistics, and they fit neither the games nor the policy; or there are none, and the policy was
            trained on normalised images.
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
        self._steps: Sequence[Step]
        self.observation_space, self._steps = min(ways, key=lambda way: len(way[1]), default=(trained_on, []))
        neighbours = zip(self._steps, self._steps[1:], strict=False)
        self.transposes_stacks = any(
            isinstance(step, StackFrames) and step.axis == 0 and isinstance(after, PutChannelsFirst)
            for step, after in neighbours
        )

    def apply(self, observations: Observations, slots: Slots) -> Observations:
        """(B, *observation_space) -> (B, *trained_on); once a turn for every slot, for frames are remembered."""
        for step in self._steps:
            observations = step.apply(observations, slots)
        return observations

    def reset(self, slots: Slots) -> None:
        """The games of these slots restarted."""
        for step in self._steps:
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
    """What could have been the next wrapper, and the statistics that are then still to be used."""
    from stable_baselines3.common.preprocessing import is_image_space
    from stable_baselines3.common.vec_env import VecTransposeImage

    if statistics is not None and _takes(statistics, shown):
        yield Normalize(statistics), None
    if isinstance(shown, spaces.Box) and isinstance(trained_on, spaces.Box) and shown.shape:
        frames, left = divmod(int(np.prod(trained_on.shape)), int(np.prod(shown.shape)) or 1)
        if frames > 1 and not left:
            for axis in (0, -1) if len(shown.shape) > 1 else (-1,):
                yield StackFrames(shown, frames, axis), statistics
        if is_image_space(shown) and np.argmin(shown.shape) != 0:  # SB3's rule, though (14, 11, 11) be channels first
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the height is the smallest side: this is only one way that is tried
                transposed = VecTransposeImage.transpose_space(shown)
            yield PutChannelsFirst(transposed), statistics


def _takes(statistics: VecNormalize, shown: gymnasium.Space[Any]) -> bool:
    """Whether these are statistics of this space, by shape and bounds. Those of images forget that they were of uint8."""
    from stable_baselines3.common.preprocessing import is_image_space

    of = statistics.observation_space
    if isinstance(shown, spaces.Box) and isinstance(of, spaces.Box):
        same_bounds = shown.shape == of.shape and np.allclose(shown.low, of.low) and np.allclose(shown.high, of.high)
        return same_bounds or (is_image_space(shown) and shown.shape == of.shape)
    return shown == of


def _check_normalized(
    trained_on: gymnasium.Space[Any],
    shown: Sequence[gymnasium.Space[Any]],
    statistics: VecNormalize | None,
    whose: str,
) -> None:
    """Tell what is wrong about statistics, where no way was found from the games to the policy."""
    from stable_baselines3.common.preprocessing import is_image_space

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
        and any(is_image_space(space) for space in shown)
    ):
        raise ValueError(
            f"{whose} sees {trained_on}, images as VecNormalize makes them, but there are no statistics to make them with: "
            "save those of its run beside the checkpoint, vec_normalize.save('<checkpoint>_vecnormalize.pkl'), or name their "
            "file, frozen(..., vecnormalize=path)"
        )


def find_statistics(checkpoint: Path) -> Path | None:
    """The file with the `VecNormalize` statistics of a checkpoint's run, None if there is none.

    Looked for as, in this order, with `snake_1000_steps.zip` in `ppo/Snake-v1_2` for an example:

        snake_1000_steps_vecnormalize.pkl    what this project calls it
        snake_vecnormalize_1000_steps.pkl    SB3's `CheckpointCallback(save_vecnormalize=True)`
        Snake-v1/vecnormalize.pkl            rl-baselines3-zoo: in a folder named as the environment, which names the run's
    """
    folder, stem = checkpoint.parent, checkpoint.stem
    names = [f"{stem}_vecnormalize.pkl"]
    if steps := re.fullmatch(r"(.+)_(\d+_steps)", stem):
        names.append(f"{steps[1]}_vecnormalize_{steps[2]}.pkl")
    zoo = [path for path in folder.glob("*/vecnormalize.pkl") if folder.absolute().name.startswith(f"{path.parent.name}_")]
    return next((path for path in [*(folder / name for name in names), *zoo] if path.is_file()), None)


def load_statistics(path: str | os.PathLike[str], trust: Trust = False) -> VecNormalize | None:
    """The statistics in a file that `VecNormalize.save` wrote, frozen; None if they leave observations alone.

    Args:
        path: where it is.
        trust: names that the file may ask for beside known classes; True: anything.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds something else, or asks for what is neither known nor trusted.
    """
    statistics = read_statistics(path, trust)
    return _frozen(statistics)


def read_statistics(path: str | os.PathLike[str], trust: Trust = False) -> VecNormalize:
    """The same as they are, around no environments."""
    from stable_baselines3.common.vec_env import VecNormalize

    trusted = checked_trust(trust)
    if (size := os.stat(path).st_size) > LARGEST and trusted is not True:
        raise ValueError(
            f"{path} has {size / 2**20:,.0f} MiB, expected at most {LARGEST // 2**20} of statistics: if you trust its author, "
            "trust=True lifts the limit"
        )
    reader = Reader(trusted)
    try:
        statistics = reader.read(Path(path).read_bytes())
    except UnreadableError as error:
        raise ValueError(f"{path} cannot be unpickled ({error}): save it anew") from error
    if reader.unknown:
        raise ValueError(refusal(path, reader.unknown))
    if not isinstance(statistics, VecNormalize):
        raise ValueError(f"{path} must hold a VecNormalize, as its save() writes it, got a {type(statistics).__name__}")
    return statistics


def copy_statistics(statistics: VecNormalize | None) -> VecNormalize | None:
    """The statistics that a live wrapper has by now, frozen; None if there is none or it leaves observations alone."""
    return None if statistics is None else _frozen(copy.deepcopy(statistics))  # which leaves its environments out


def _frozen(statistics: VecNormalize) -> VecNormalize | None:
    statistics.training = False
    statistics.old_obs = statistics.old_reward = np.array([])  # the last batch of its own environments
    return statistics if statistics.norm_obs else None
