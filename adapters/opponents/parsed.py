"""Opponents as plain data: the results of `frozen`, `mixture` and `parse`.

Equal values mean the same opponent; its label does not matter. Importing this module loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adapters.opponents.pool import OpponentPool

if TYPE_CHECKING:
    import torch

    from snake_pz.core.encodings import Encoding


@dataclass(frozen=True)
class Settings:
    """The settings of one policy; None leaves a setting to the environment.

    Attributes:
        deterministic: whether it plays the likeliest action instead of sampling.
        device: device on which it predicts.
        vecnormalize: file of its `VecNormalize` statistics; None looks for one beside the checkpoint.
        name: its name in infos.
        trust: classes that its files may name beside known ones; True: anything.
        custom_objects: settings of a checkpoint instead of those in its file.
        observation: what an ONNX file takes: the name of an encoding of the snake, or a space.
        actions: what it gives: the name of an action set of the snake, or a space.
        encode: the encoding that it was trained on, or its name; None: the one with its space.
    """

    deterministic: bool | None = None
    device: torch.device | str | None = None
    vecnormalize: str | os.PathLike[str] | None = None
    name: str | None = None
    trust: bool | frozenset[str] | None = None
    custom_objects: Mapping[str, Any] | None = field(default=None, hash=False)
    observation: Any = field(default=None, hash=False)
    actions: Any = field(default=None, hash=False)
    encode: Encoding | str | None = None


@dataclass(frozen=True)
class Frozen:
    """A checkpoint, live model or pool with settings of its own, from `frozen`."""

    source: Any
    settings: Settings


@dataclass(frozen=True)
class Mixture:
    """Opponents one of which is drawn whenever a game restarts, from `mixture`.

    Attributes:
        members: the opponents, as written or parsed.
        shares: their probabilities; they sum to 1.
        per: "game": all seats with this mixture get the same member; "seat": each seat gets its own.
        identity: distinguishes mixtures that are written alike, which are drawn independently.
    """

    members: tuple[Any, ...] = field(compare=False)
    shares: tuple[float, ...] = field(compare=False)
    per: Literal["game", "seat"] = field(compare=False)
    identity: object = field(default_factory=object, repr=False)


@dataclass(frozen=True)
class Bot:
    """A scripted player by name. Whether it exists is known only in the games."""

    name: str


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint file, which may be missing.

    Attributes:
        file: its absolute path.
        settings: settings of this opponent.
        label: its name in infos unless the settings have one.
    """

    file: Path
    settings: Settings = Settings()
    label: str = field(default="", compare=False)


@dataclass(frozen=True)
class Same:
    """An object as opponent, equal only to the same object, whatever its `==` says."""

    thing: Any = field(compare=False)
    settings: Settings = Settings()
    identity: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Set the identity."""
        object.__setattr__(self, "identity", id(self.thing))


class Live(Same):
    """A Stable-Baselines3 model or policy in memory."""


class Function(Same):
    """A function on batches of observations."""


class Ready(Same):
    """An `Opponent` or a `Source`."""


@dataclass(frozen=True)
class Pool:
    """A pool, one member of which is drawn for every game.

    Attributes:
        source: the pool, or the absolute path of its folder.
        settings: settings of its snapshots.
        prefix: prefix of its members' names in infos.
    """

    source: OpponentPool | Path
    settings: Settings = Settings()
    prefix: str = field(default="", compare=False)

    def opened(self) -> OpponentPool:
        """The pool, opened if only its folder is given."""
        return self.source if isinstance(self.source, OpponentPool) else OpponentPool(self.source)


Parsed = Bot | Checkpoint | Live | Function | Ready | Pool | Mixture
