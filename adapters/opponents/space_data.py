"""Spaces as plain data, for files that are not pickles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

LARGEST_SPACE = 2**24
"""Numbers that an observation or action may have."""


def space_data(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """A space as data that JSON can hold.

    Args:
        space: a Box, Discrete, MultiDiscrete or MultiBinary, or a Dict of these.

    Raises:
        ValueError: another space.
    """
    match space:
        case spaces.Box():
            bounds = {name: _bound(getattr(space, name)) for name in ("low", "high")}
            return {"type": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
        case spaces.Discrete():
            return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {"type": "MultiDiscrete", "nvec": space.nvec.tolist()}
        case spaces.MultiBinary():
            return {"type": "MultiBinary", "n": list(space.shape)}
        case spaces.Dict():
            return {"type": "Dict", "spaces": {str(name): space_data(one) for name, one in space.items()}}
    raise ValueError(f"expected a Box, Discrete, MultiDiscrete or MultiBinary space, or a Dict of these, got {space}")


def space_from_data(data: Any, name: str = "space") -> gymnasium.Space[Any]:
    """The space that `space_data` made the data of.

    Args:
        data: the data, from anywhere.
        name: what it is called in errors.

    Raises:
        ValueError: it is no such data, or a space of more than `LARGEST_SPACE` numbers.
    """
    try:
        return _space(data)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, AssertionError) as error:
        raise ValueError(
            f"{name} must describe a space as its type, shape, dtype and bounds, got {data!r:.200}: {error}"
        ) from error


def _bound(values: NDArray[Any]) -> Any:
    """One number if all are alike, else nested lists; infinities as strings, which JSON has no numbers for."""
    if values.size and (values == values.flat[0]).all():
        return _plain(values.flat[0].item())
    return _nested(values.tolist())


def _nested(values: Any) -> Any:
    return [_nested(value) for value in values] if isinstance(values, list) else _plain(values)


def _plain(value: float) -> Any:
    return value if math.isfinite(value) else str(value)


def _space(data: Mapping[str, Any]) -> gymnasium.Space[Any]:
    match data["type"]:
        case "Box":
            shape, dtype = tuple(map(int, data["shape"])), np.dtype(str(data["dtype"]))
            if dtype.kind not in "fiub":
                raise ValueError(f"numbers of dtype {dtype}")
            _check_size(math.prod(shape))
            low, high = (np.broadcast_to(np.array(data[name], float).astype(dtype), shape) for name in ("low", "high"))
            return spaces.Box(low.copy(), high.copy(), shape, dtype.type)
        case "Discrete":
            return spaces.Discrete(int(data["n"]), start=int(data["start"]))
        case "MultiDiscrete":
            return spaces.MultiDiscrete(np.array(data["nvec"], np.int64))
        case "MultiBinary":
            shape = tuple(map(int, data["n"]))
            _check_size(math.prod(shape))
            return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
        case "Dict":
            return spaces.Dict({str(name): _space(one) for name, one in data["spaces"].items()})
    raise ValueError(f"there is no space {data['type']!r:.40}")


def _check_size(size: int) -> None:
    if not 0 < size <= LARGEST_SPACE:
        raise ValueError(f"a space must have 1 to {LARGEST_SPACE:,} numbers, got {size:,}")
