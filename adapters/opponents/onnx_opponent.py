"""Policies in ONNX files as opponents, without torch."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from adapters.opponents.onnx_file import About, import_onnx, read_onnx
from adapters.opponents.policy import EPSILON
from adapters.opponents.preprocessing import Preprocessing
from adapters.opponents.unpickling import one_line
from snake_pz.players import Actions, Masks, Observations, Player, Slots

if TYPE_CHECKING:
    from snake_pz.core.encodings import Encoding

PATIENCE = 10.0
"""Seconds that the first forward pass of a file may take."""
MASKED = -1e8


class OnnxOpponent(Player):
    """The policy of an ONNX file, on the CPU, with a random stream of its own.

    It plays like the checkpoint that `export_onnx` made it of. Logits are sampled, and masked first if the policy takes masks;
    Q-values are played epsilon-greedily (`EPSILON`) when sampling; actions are played as the graph gives them, so continuous
    policies are deterministic. Normalisation and transposition are in the graph; frames are stacked here, as for checkpoints.

    A file of another program has no metadata. Its first input is then given the observations as numbers of the input's dtype,
    and its output is taken for logits, or for actions if it has integers or the action space is a Box.

    Args:
        file: path of the file.
        shown: the observation spaces that the games can show, the preferred first; none: the policy's own.
        observation_space: what the graph takes; None: as the metadata say, or the only one of `shown` that has its shape.
        action_space: the actions; None: as the metadata say, or the only one of `actions` that has as many.
        actions: action spaces that the games know.
        deterministic: play the likeliest action instead of sampling.
        name: what the opponent is called; None: the path.
        encoding: the encoding of the snake that it is shown, as for `PolicyOpponent`.

    Raises:
        ValueError: the file cannot be read, see `read_onnx`; its inputs and outputs do not fit the spaces; or its first
            forward pass fails or takes longer than `PATIENCE`.
        ImportError: the extra `onnx` is not installed.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        shown: Sequence[gymnasium.Space[Any]] = (),
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        actions: Sequence[gymnasium.Space[Any]] = (),
        deterministic: bool = False,
        name: str | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        path = Path(file)
        self.encoding = encoding
        self.name = name or os.fspath(file)
        content, about = read_onnx(path)
        self._session = _session(content, path)
        if about is None or observation_space is not None or action_space is not None:
            about = _guess(self._session, path, about, observation_space, action_space, shown, actions)
        self.about = about
        self._inputs = _check_inputs(self._session, about.observation_space, path)
        self._output = self._session.get_outputs()[0].name
        self._preprocessing = Preprocessing(about.observation_space, shown, None, f"opponent {self.name!r}")
        self.observation_space: gymnasium.Space[Any] = self._preprocessing.observation_space
        self.action_space: gymnasium.Space[Any] = about.action_space
        self.uses_masks = about.uses_masks
        self._deterministic = deterministic
        self._rng = np.random.default_rng()
        self._check_output(path)

    @override
    def act(self, observations: Observations, slots: Slots, action_masks: Masks | None) -> Actions:
        """One batched forward pass, as `Opponent.act`."""
        outputs = self._forward(self._preprocessing.apply(observations, slots))
        match self.action_space, self.about.output:
            case spaces.Discrete(), "logits":
                return self._choose(outputs, action_masks)
            case spaces.MultiDiscrete(nvec=sizes), "logits":
                ends = np.cumsum(sizes)[:-1]
                masks = [None] * len(sizes) if action_masks is None else np.split(action_masks, ends, axis=1)
                columns = np.split(outputs, ends, axis=1)
                return np.stack([self._choose(*pair) for pair in zip(columns, masks, strict=True)], axis=1)
            case spaces.MultiBinary(), _:
                chance = 0.5 if self._deterministic else self._rng.random(outputs.shape)
                bits: Actions = (1 / (1 + np.exp(-outputs.astype(float))) > chance).astype(np.int8)
                return bits
            case spaces.Discrete(n=count), "q_values":
                best: Actions = outputs.argmax(axis=1)
                if not self._deterministic:
                    explores = self._rng.random(len(best)) < EPSILON
                    best[explores] = self._rng.integers(count, size=int(explores.sum()))
                return best
        return outputs.astype(self.action_space.dtype, copy=False)

    @override
    def reset(self, slots: Slots) -> None:
        self._preprocessing.reset(slots)

    @override
    def seed(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _choose(self, logits: NDArray[Any], masks: Masks | None) -> Actions:
        if self.uses_masks and masks is not None:
            logits = np.where(masks, logits, MASKED)
        if not self._deterministic:  # the Gumbel-max trick, as in `PolicyOpponent`
            logits = logits - np.log(self._rng.standard_exponential(logits.shape))
        actions: Actions = logits.argmax(axis=1)
        return actions

    def _forward(self, observations: Observations, options: Any = None) -> NDArray[Any]:
        parts = observations if isinstance(observations, dict) else {next(iter(self._inputs)): observations}
        given = {name: np.ascontiguousarray(parts[name], dtype) for name, dtype in self._inputs.items()}
        outputs: NDArray[Any] = self._session.run([self._output], given, options)[0]
        return outputs

    def _check_output(self, path: Path) -> None:
        """One forward pass of two rows, stopped if it takes too long."""
        space = self.about.observation_space
        rows: Any = [space.sample(), space.sample()]
        two = (
            {key: np.stack([row[key] for row in rows]) for key in rows[0]} if isinstance(space, spaces.Dict) else np.stack(rows)
        )
        options = import_onnx("onnxruntime").RunOptions()
        timer = threading.Timer(PATIENCE, lambda: setattr(options, "terminate", True))
        timer.start()
        try:
            outputs = self._forward(two, options)
        except Exception as error:
            late = f" within {PATIENCE:g} seconds" if options.terminate else ""
            raise ValueError(f"{path} cannot be played: its first forward pass failed{late} ({one_line(error)})") from error
        finally:
            timer.cancel()
        expected = (2, *_output_shape(self.about))
        if outputs.shape != expected or outputs.dtype.kind not in "fiub":
            raise ValueError(
                f"the first output of {path} must be {self.about.output} of shape {('B', *expected[1:])} for "
                f"{self.action_space}, got {outputs.dtype} of shape {('B', *outputs.shape[1:])}"
            )


def _session(content: bytes, path: Path) -> Any:
    runtime = import_onnx("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # policies are small
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of onnxruntime, which has a class for each cause
        raise ValueError(f"{path} cannot be played by onnxruntime {runtime.__version__} ({one_line(error)})") from error


def _guess(
    session: Any,
    path: Path,
    about: About | None,
    observation_space: gymnasium.Space[Any] | None,
    action_space: gymnasium.Space[Any] | None,
    shown: Sequence[gymnasium.Space[Any]],
    actions: Sequence[gymnasium.Space[Any]],
) -> About:
    """What is known of a file that does not say all itself: what was given, else what its shapes tell."""
    if about is not None:
        return about._replace(
            observation_space=observation_space or about.observation_space, action_space=action_space or about.action_space
        )
    first, output = session.get_inputs()[0], session.get_outputs()[0]
    if observation_space is None:
        fitting = [space for space in shown if list(space.shape or ()) == list(first.shape[1:])]
        if len(fitting) != 1:
            raise ValueError(
                f"{path} takes observations of shape {_words(first.shape[1:])}, and these games show "
                f"{' or '.join(map(str, shown)) or 'none that are known'}: say which it is, "
                f"frozen({path.name!r}, observation=...)"
            )
        observation_space = fitting[0]
    integers = "int" in output.type
    if action_space is None:
        fitting = [space for space in actions if not integers and [_count(space)] == list(output.shape[1:])]
        if len(fitting) != 1:
            raise ValueError(
                f"{path} has no metadata that say what its output of shape {_words(output.shape[1:])} means: say it, "
                f"frozen({path.name!r}, actions=...), for example 'relative' or a space"
            )
        action_space = fitting[0]
    kind = "actions" if integers or isinstance(action_space, spaces.Box) else "logits"
    return About(observation_space, action_space, kind, uses_masks=False, more={})


def _words(shape: Sequence[Any]) -> str:
    return f"({', '.join(str(side) for side in shape)})"


def _count(space: gymnasium.Space[Any]) -> int:
    """How many numbers an output has for an action of a space."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    return math.prod(space.shape or ())


def _output_shape(about: About) -> tuple[int, ...]:
    space = about.action_space
    if about.output == "actions" and not isinstance(space, spaces.MultiBinary):
        return tuple(space.shape or ())
    return (_count(space),)


def _check_inputs(session: Any, space: gymnasium.Space[Any], path: Path) -> dict[str, Any]:
    """Name and dtype of each input, those of a Dict by its keys.

    Raises:
        ValueError: they do not fit the space.
    """
    inputs = session.get_inputs()
    parts = dict(space.items()) if isinstance(space, spaces.Dict) else {inputs[0].name: space}
    if sorted(one.name for one in inputs) != sorted(parts):
        raise ValueError(f"{path} must take {sorted(parts)} for {space}, got {sorted(one.name for one in inputs)}")
    for one in inputs:
        batch, *sides = one.shape
        if isinstance(batch, int):
            raise ValueError(f"{path} takes batches of {batch} only: export it with a dynamic first axis")
        wanted = list(parts[one.name].shape or ())
        if len(sides) != len(wanted) or any(isinstance(a, int) and a != b for a, b in zip(sides, wanted, strict=True)):
            raise ValueError(f"{path} takes {one.name} of shape {_words(sides)}, expected {_words(wanted)} for {space}")
    dtypes = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool"}
    names = {one.name: one.type.removeprefix("tensor(").removesuffix(")") for one in inputs}
    try:
        return {name: np.dtype(dtypes.get(dtype, dtype)) for name, dtype in names.items()}
    except TypeError as error:
        raise ValueError(f"{path} must take numbers, got {names}") from error
