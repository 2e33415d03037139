"""Encodings: what a snake observes, by name or as an object. `board`, `egocentric` and `single` are built in, users add theirs.

A checkpoint keeps its spaces and not its encoding. The built-in encodings of a board have different spaces, so that the spaces
say which it was trained on; an encoding of a user needs a space of its own, or has to be named (`adapters.frozen(encode=...)`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from snake_pz.core import observations
from snake_pz.core.actions import ACTIONS, action_space
from snake_pz.core.rule_codes import RuleCodes
from snake_pz.core.state import SnakeState, read_only
from snake_pz.rules import Rules

Space = spaces.Space[Any]

_NAME = re.compile(r"[A-Za-z0-9][\w.:\-]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class Encoding:
    """What each snake of many games observes.

        def health(state, rules):  # (E, N, 1)
            return state.health[..., None] / rules.max_health

        make_sb3_env("greedy", env_kwargs={"observation": Encoding("health", Box(0, 1, (1,)), health)})

    Give either `write`, in plain numpy, or `kernel`, which numba has compiled.

    Args:
        name: letters, digits and `_.:-`. Pools and `register_encoding` know the encoding by it.
        space: the space of one snake's observation, or a function from the rules to it.
        write: (state, rules) -> (E, N, *shape) observations of all snakes. The state has E games, any of the caller's, and is
            read only. Rows of snakes that died on an earlier turn are ignored: they keep their last observation.
        kernel: (state, rule codes, rows, out) -> None writes the games `rows` (B,) into `out` (E, N, *shape). It leaves alone
            the rows of snakes that are neither `alive` nor `just_died`.

    Raises:
        ValueError: another name, both or none of `write` and `kernel`.
    """

    name: str
    space: spaces.Box | Callable[[Rules], spaces.Box]
    write: Callable[[SnakeState, Rules], Any] | None = None
    kernel: Callable[[SnakeState, RuleCodes, NDArray[np.intp], NDArray[Any]], None] | None = None

    def __post_init__(self) -> None:
        """Check the name and that there is one writer."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(f"the name of an encoding must be of letters, digits and _.:-, got {self.name!r}")
        if (self.write is None) == (self.kernel is None):
            raise ValueError(
                f"encoding {self.name!r} needs one of write= and kernel=, got {'none' if not self.write else 'both'}"
            )
        if not callable(self.write or self.kernel):
            raise ValueError(f"encoding {self.name!r} needs a function that writes, got {self.write or self.kernel!r}")

    def space_for(self, rules: Rules) -> spaces.Box:
        """The space of one snake's observation under these rules.

        Raises:
            ValueError: it is no Box.
        """
        space = self.space if isinstance(self.space, spaces.Space) else self.space(rules)
        if not isinstance(space, spaces.Box):
            raise ValueError(
                f"the space of encoding {self.name!r} must be a Box, or a function from Rules to one, got {space!r:.80}"
            )
        return space

    def fill(self, state: SnakeState, rules: Rules, rows: NDArray[np.intp], out: NDArray[Any], space: spaces.Box) -> None:
        """Write these games (B,) with `write` into `out` (E, N, *shape), except snakes that died on an earlier turn.

        Raises:
            ValueError: `write` did not return observations of B games in the space.
        """
        assert self.write is not None
        part = read_only(state if len(rows) == len(state.over) else state.map(lambda array: array[rows]))
        batch = np.asarray(self.write(part, rules))
        expected = (*part.alive.shape, *space.shape)
        if batch.shape != expected:
            raise ValueError(
                f"encoding {self.name!r} must write (games, snakes, *shape of its space) = {expected}, got {batch.shape}"
            )
        games, snakes = np.nonzero(part.alive | part.just_died)
        seen = batch[games, snakes]
        if not _within(seen, space):
            raise ValueError(
                f"encoding {self.name!r} must write numbers of its space {space}, got {batch.dtype} "
                + (f"from {seen.min()} to {seen.max()}" if seen.dtype.kind in "biuf" else "")
            )
        out[rows[games], snakes] = seen

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Built-in encodings are pickled by name."""
        if is_built_in(self):
            return encoding, (self.name,)
        return super().__reduce_ex__(protocol)


def _within(seen: NDArray[Any], space: spaces.Box) -> bool:
    """Whether the cast of these observations to the space's dtype keeps them, up to rounding of floats, and they are in it."""
    if seen.dtype.kind not in "biuf" or (seen.dtype.kind == "f" and np.dtype(space.dtype).kind != "f"):
        return False
    return bool(((seen >= space.low) & (seen <= space.high)).all())


def _built_in(name: str, kernel: Callable[..., None]) -> Encoding:
    return Encoding(
        name, lambda rules: spaces.Box(0, 255, observations.observation_shape(rules, name), np.uint8), kernel=kernel
    )


_BUILT_IN = {name: _built_in(name, kernel) for name, kernel in observations.WRITERS.items()}
_registered: dict[str, Encoding] = {}


def is_built_in(encoding: Encoding) -> bool:
    """Whether it comes with this package, so that everybody has it."""
    return _BUILT_IN.get(encoding.name) is encoding


def encoding(spec: Encoding | str) -> Encoding:
    """The encoding of this name, or as given.

    Raises:
        ValueError: no encoding has this name, or it is no encoding; or an own encoding has the name of a built-in one.
    """
    if isinstance(spec, Encoding):
        if _BUILT_IN.get(spec.name, spec) is not spec:
            raise ValueError(f"{spec.name!r} is the name of a built-in encoding: give your own another")
        return spec
    found = (_BUILT_IN.get(spec) or _registered.get(spec)) if isinstance(spec, str) else None
    if found is None:
        raise ValueError(
            f"observation must be one of {', '.join(map(repr, [*_BUILT_IN, *_registered]))}, got {spec!r}: pass an encoding of "
            "your own as an Encoding, or register_encoding(...) it"
        )
    return found


def register_encoding(own: Encoding) -> Encoding:
    """Make an own encoding known by its name and by its space, in this process: as `observation=`, to opponents and pools.

    Registering the name again replaces the encoding.

    Returns:
        The encoding.

    Raises:
        ValueError: it is no Encoding, or has the name of a built-in one.
    """
    if not isinstance(own, Encoding):
        raise ValueError(f"register_encoding takes an Encoding, got {type(own).__name__}")
    _registered[own.name] = encoding(own)
    return own


def known_encodings() -> list[Encoding]:
    """The built-in and the registered encodings."""
    return [*_BUILT_IN.values(), *_registered.values()]


def observation_space(rules: Rules, spec: Encoding | str) -> spaces.Box:
    """The space of one snake's observation in this encoding.

    Raises:
        ValueError: an unknown encoding.
    """
    return encoding(spec).space_for(rules)


def check_distinct(own: Encoding, rules: Rules) -> None:
    """Reject an own encoding in a space of a built-in one, because opponents are shown the encoding of their space.

    Raises:
        ValueError: it is.
    """
    for other in _BUILT_IN.values():
        if other is not own and other.space_for(rules) == own.space_for(rules):
            raise ValueError(
                f"encoding {own.name!r} has the space of {other.name!r} on a {rules.width}x{rules.height} board, so that "
                "nobody could tell which of both a checkpoint was trained on: change its shape, dtype or bounds, for example "
                "by one more plane"
            )


def encoding_for(rules: Rules, observation: Space, actions: Space, own: Encoding | None = None) -> tuple[Encoding, str]:
    """The encoding and the name of the action set that have these spaces on this board.

    Args:
        rules: rules of the games.
        observation: space of the observations.
        actions: space of the actions.
        own: encoding of the games, which goes before registered ones.

    Raises:
        ValueError: there are none, or several; the message lists the spaces of this board.
    """
    known = [one for one in known_encodings() if one is not own]
    shown = [(one, one.space_for(rules)) for one in ([own] if own else []) + known]
    found = [one for one, space in shown if space == observation]
    action_set = next((name for name in ACTIONS if action_space(name) == actions), None)
    if not found or action_set is None:
        raise ValueError(
            f"a player trained to see {observation} and to act in {actions} cannot play on a "
            f"{rules.width}x{rules.height} board, whose encodings are "
            + ", ".join(f"{one.name} {space}" for one, space in shown)
            + " with Discrete(4) or Discrete(3): use one trained on this board, or, if it was trained on an encoding of your "
            "own, name that: frozen(..., encode=...)"
        )
    if len(found) > 1 and found[0] is not own:
        raise ValueError(
            f"several encodings have the space {observation}: {', '.join(one.name for one in found)}; say which one the player "
            "was trained on: frozen(..., encode=...)"
        )
    return found[0], action_set
