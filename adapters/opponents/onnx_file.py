"""Read ONNX files from anywhere: plain arithmetic within size limits, and what they say about themselves.

Needs the extra `onnx`. Loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium

from adapters.opponents.space_data import space_data, space_from_data
from adapters.opponents.unpickling import one_line

if TYPE_CHECKING:
    import onnx

LARGEST_FILE = 256 * 2**20
"""Bytes that a file may have."""
FORMAT = 1
"""The version of the metadata that `export_onnx` writes."""
KEY = "snake_pz"
"""The metadata's key in the file."""
STANDARD = ("", "ai.onnx")
"""The domain of ONNX's standard operators, by its two names."""
WITHOUT_BOUND = ("Loop", "Scan", "SequenceMap")
"""Standard operators that repeat others, and so may never end. No feed-forward policy needs them."""
KINDS = ("logits", "q_values", "actions")
"""What the first output of a file may be."""


class About(NamedTuple):
    """What a file says about its policy.

    Attributes:
        observation_space: what the graph takes, after a batch axis.
        action_space: the actions.
        output: one of `KINDS`: `logits` of a Discrete, MultiDiscrete (one after the other) or MultiBinary space; `q_values` of
            a Discrete one; or the likeliest `actions` themselves.
        uses_masks: whether forbidden actions are to be left out.
        more: for people: names, rules, versions, licence.
    """

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    output: str
    uses_masks: bool
    more: dict[str, Any]

    def as_json(self) -> str:
        """The metadata as `read_onnx` expects it."""
        known = {
            "format": FORMAT,
            "observation_space": space_data(self.observation_space),
            "action_space": space_data(self.action_space),
            "output": self.output,
            "uses_masks": self.uses_masks,
        }
        return json.dumps(known | self.more)


def read_onnx(path: Path) -> tuple[bytes, About | None]:
    """The content of a file, checked, and what it says about its policy; None if it says nothing.

    Raises:
        ValueError: it is too large, no ONNX model, refers to other files, uses operators that are not ONNX's own or may
            repeat without bound, or its metadata is wrong.
        ImportError: the extra `onnx` is not installed.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"an ONNX file must have at most {LARGEST_FILE // 2**20} MiB, got more in {path}")
    onnx = import_onnx("onnx")
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # of protobuf, which says no more
        raise ValueError(f"{path} is no ONNX model ({one_line(error)})") from error
    if not model.graph.node:
        raise ValueError(f"{path} is no ONNX model: it has no operators")
    _check(model, path)
    found = [entry.value for entry in model.metadata_props if entry.key == KEY]
    return content, _about(found[0], path) if found else None


def import_onnx(name: str) -> Any:
    """The module `onnx` or `onnxruntime`.

    Raises:
        ImportError: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"ONNX files need the extra `onnx`, pip install 'snake-pz[onnx]' ({error})") from error


def _about(text: str, path: Path) -> About:
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"expected format {FORMAT}, got {text!r:.80}")
        known = {name: data.pop(name) for name in ("observation_space", "action_space", "output", "uses_masks")}
        if known["output"] not in KINDS:
            raise ValueError(f"output must be one of {', '.join(KINDS)}, got {known['output']!r:.80}")
        if not isinstance(known["uses_masks"], bool):
            raise ValueError(f"uses_masks must be true or false, got {known['uses_masks']!r:.80}")
        for name in ("observation_space", "action_space"):
            known[name] = space_from_data(known[name], name)
    except (ValueError, KeyError, RecursionError) as error:
        raise ValueError(f"the metadata {KEY!r} of {path} cannot be used ({one_line(error)})") from error
    return About(**known, more=data)


def _check(model: onnx.ModelProto, path: Path) -> None:
    messages = list(_messages(model))
    nodes = [one for one in messages if one.DESCRIPTOR.name == "NodeProto"]
    foreign = {f"{node.domain}.{node.op_type}" for node in nodes if node.domain not in STANDARD}
    foreign |= {opset.domain for opset in model.opset_import if opset.domain not in STANDARD}
    if foreign:
        raise ValueError(f"{path} uses operators that are not ONNX's own: {', '.join(sorted(foreign))}")
    if endless := sorted({node.op_type for node in nodes if node.op_type in WITHOUT_BOUND}):
        raise ValueError(f"{path} uses operators that may repeat without bound: {', '.join(endless)}")
    tensors = [one for one in messages if one.DESCRIPTOR.name == "TensorProto"]
    if any(tensor.data_location or tensor.external_data for tensor in tensors):
        raise ValueError(
            f"{path} keeps weights in other files, which are not read: save it as one file, "
            "such as by onnx.save(onnx.load(path), path)"
        )


def _messages(message: Any) -> Iterator[Any]:
    """A protobuf message and all messages in it: graphs within graphs, functions, tensors wherever they are."""
    waiting = [message]
    while waiting:
        one = waiting.pop()
        yield one
        for field, value in one.ListFields():
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else value
