"""Read untrusted pickles without running code: known classes and plain data, nothing else unless it is trusted.

`pickle` imports and calls what a file names. This module does neither: it records each call as data, and a second pass builds
from these records the objects that `known_classes` supports: arrays, spaces, schedules, statistics. Classes that a file only
names, such as those of policies, must be on a list there. Functions are never on it.
"""

from __future__ import annotations

import importlib
import io
import pickle
import pickletools
from collections.abc import Callable, Collection
from functools import reduce
from typing import Any, ClassVar

LARGEST = 64 * 2**20
"""Bytes that a pickle may have."""
MOST_STEPS = 500_000
"""Instructions that a pickle may have, each of which may make an object."""

_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray)

Trust = bool | Collection[str]
"""What a file may load beside what is known: names as `my_package.MyExtractor`; True: anything, so that it can run any code."""


class UnreadableError(ValueError):
    """A pickle that is damaged, too large, or of objects that cannot be built."""


def checked_trust(trust: Trust) -> bool | frozenset[str]:
    """The same, so that it can be compared and hashed; no names are False.

    Raises:
        TypeError: it is neither a bool nor names.
    """
    if isinstance(trust, bool):
        return trust
    if isinstance(trust, str) or not all(isinstance(name, str) for name in trust):
        raise TypeError(f"trust must be a list of names, such as ['my_package.MyExtractor'], or True, got {trust!r}")
    return frozenset(trust) or False


class _NoteClass(type):
    """A class that stands for the name in a file; calling it records the call."""

    name: tuple[str, str]  # module, and name in it

    def __call__(cls, *args: Any, **kwargs: Any) -> Note:
        note: Note = cls.__new__(cls, *args, **kwargs)  # type: ignore[arg-type]  # all classes of this one are Note's
        note.called = True
        return note


class Note(metaclass=_NoteClass):
    """Record of an object that a pickle would have made: the call, and the changes to its result.

    Attributes:
        args: arguments of the call.
        kwargs: keyword arguments of the call.
        called: whether the class or function itself was called, not only the class's `__new__`.
        states: states that would have been set, in order.
        items: items that would have been appended.
        pairs: keys and values that would have been set.
    """

    __slots__ = ("args", "called", "items", "kwargs", "pairs", "states")
    name: ClassVar[tuple[str, str]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    called: bool
    states: list[Any]
    items: list[Any]
    pairs: list[tuple[Any, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Note:
        """Record a call of `__new__`."""
        note = super().__new__(cls)
        note.args, note.kwargs, note.called = args, kwargs, False
        note.states, note.items, note.pairs = [], [], []
        return note

    def __call__(self, *args: Any, **kwargs: Any) -> Note:
        """Record that the result of the call would have been called."""
        note: Note = type(self)(self, *args, **kwargs)
        return note

    def __setstate__(self, state: Any) -> None:
        self.states.append(state)

    def append(self, item: Any) -> None:
        """Record an item."""
        self.items.append(item)

    def extend(self, items: Any) -> None:
        """Record several items."""
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs.append((key, value))

    @property
    def state(self) -> dict[str, Any]:
        """The attributes it would have been given.

        Raises:
            ValueError: they are none.
        """
        if len(self.states) != 1 or not isinstance(self.states[0], dict):
            raise ValueError(f"{_dotted(self.name)} without its attributes")
        state: dict[str, Any] = self.states[0]
        return state


class _Unpickler(pickle.Unpickler):
    """Reads any pickle as notes and plain data."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self._classes: dict[tuple[str, str], _NoteClass] = {}

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = (module_name, global_name)
        if name not in self._classes:
            self._classes[name] = _NoteClass("Note", (Note,), {"__slots__": (), "name": name})
        return self._classes[name]


Maker = Callable[["Reader", Note], Any]


class Reader:
    """Reads pickles and collects the names in them that are neither known nor trusted.

    Args:
        trust: names that are imported and called as a pickle says, as if they were known; True: `pickle` reads it all.

    Attributes:
        unknown: the collected names, in order.
    """

    def __init__(self, trust: bool | frozenset[str]) -> None:
        from adapters.opponents.known_classes import MAKERS, find_class

        self._trust, self._makers, self._find_class = trust, MAKERS, find_class
        self.unknown: dict[str, None] = {}
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity: the note, and what it became; or _BEING_MADE

    def read(self, content: bytes, without: Collection[str] = ()) -> Any:
        """What a pickle holds; of no use if it has added to `unknown`.

        Args:
            content: the pickle.
            without: keys that are left out of it, unread, if it is a dict.

        Raises:
            UnreadableError: it cannot be made here.
        """
        unknown = len(self.unknown)
        try:
            if self._trust is True:
                import cloudpickle

                read = cloudpickle.loads(content)
            else:
                check_size(content)
                read = _Unpickler(content).load()
            if type(read) is dict:
                read = {key: value for key, value in read.items() if key not in without}
            return read if self._trust is True else self.make(read)
        except Exception as error:  # a pickle can raise anything
            if len(self.unknown) > unknown:
                return None
            raise UnreadableError(one_line(error)) from error
        finally:
            self._made.clear()

    def make(self, noted: Any) -> Any:
        """Build the object of a note, or data that contains notes.

        Raises:
            ValueError: it refers to itself, or is of an unknown kind.
        """
        if type(noted) in _PLAIN:
            return noted
        if id(noted) not in self._made:
            self._made[id(noted)] = (noted, _BEING_MADE)
            self._made[id(noted)] = (noted, self._make(noted))
        made = self._made[id(noted)][1]
        if made is _BEING_MADE:
            raise ValueError("it refers to itself")
        return made

    def _make(self, noted: Any) -> Any:
        if isinstance(noted, _NoteClass):
            return self._class(noted.name)
        if isinstance(noted, Note):
            return self._object(noted)
        if type(noted) is dict:
            return {self.make(key): self.make(value) for key, value in noted.items()}
        if type(noted) in (list, tuple, set, frozenset):
            return type(noted)([self.make(one) for one in noted])
        raise ValueError(f"it holds a {type(noted).__name__}")

    def _class(self, name: tuple[str, str]) -> Any:
        found = _import(name) if self._trusts(name) else self._find_class(name)
        if found is None:
            self.unknown[_dotted(name)] = None
        return found

    def _object(self, note: Note) -> Any:
        if self._trusts(note.name):
            return self.rebuild(_import(note.name), note)
        if (maker := self._makers.get(note.name)) is not None:
            return maker(self, note)
        self.unknown[_dotted(note.name)] = None
        self.make([*note.args, *note.kwargs.values(), *note.states, *note.items, *note.pairs])  # for more names
        return None

    def rebuild(self, make: Any, note: Note) -> Any:
        """Do what the pickle says, with this class or function."""
        args, kwargs = self.make(note.args), self.make(note.kwargs)
        made = make(*args, **kwargs) if note.called else make.__new__(make, *args, **kwargs)
        for state in self.make(note.states):
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
                continue
            for attributes in state if isinstance(state, tuple) else [state]:
                for key, value in (attributes or {}).items():
                    object.__setattr__(made, key, value)
        for item in self.make(note.items):
            made.append(item)
        for key, value in self.make(note.pairs):
            made[key] = value
        return made

    def _trusts(self, name: tuple[str, str]) -> bool:
        return isinstance(self._trust, Collection) and _dotted(name) in self._trust


_BEING_MADE = object()


def refusal(file: Any, names: Collection[str], whose: str = "") -> str:
    """The error message for names that are neither known nor trusted."""
    listed = ", ".join(names)
    if any(name.split(".")[0] == "cloudpickle" for name in names):
        mend = (
            "it holds code of its own, as of a class or function of a script or notebook: if you trust its author, "
            "trust=True lets it run, on the command line --trust all"
        )
    else:
        mend = (
            f"if you trust its author, give frozen({str(file)!r}, trust={sorted(names)!r}) or, on the command line, "
            f"{' '.join(f'--trust {name}' for name in names)}"
        )
    return f"{whose}{file} asks for {listed}, which could run any code and is not on the list of known classes; {mend}"


def one_line(error: Exception) -> str:
    """The type of an error and the first line of its message."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first:.300}"


def check_size(content: bytes) -> None:
    """Refuse a pickle that would take much more memory than its size.

    Raises:
        ValueError: it is too large, or has opcodes that no pickle of data has.
    """
    if len(content) > LARGEST:
        raise ValueError(f"expected at most {LARGEST // 2**20} MiB, got {len(content) / 2**20:,.0f}")
    for number, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        if number > MOST_STEPS:
            raise ValueError(f"expected at most {MOST_STEPS:,} instructions")
        if instruction.name.startswith("EXT") or ("PUT" in instruction.name and int(argument or 0) > len(content)):
            raise ValueError(f"expected the pickle of data, got the instruction {instruction.name} {argument}")


def _import(name: tuple[str, str]) -> Any:
    module, inside = name
    return reduce(getattr, inside.split("."), importlib.import_module(module))


def _dotted(name: tuple[str, str]) -> str:
    return ".".join(name)
