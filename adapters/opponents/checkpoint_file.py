"""Read the file of a model's `save`, a zip of settings, partly pickled, and of weights, within size limits."""

from __future__ import annotations

import base64
import binascii
import io
import json
import threading
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from adapters.opponents.unpickling import Reader, UnreadableError, one_line, refusal

if TYPE_CHECKING:
    import torch

LARGEST_SETTINGS = 64 * 2**20
"""Bytes that a checkpoint's settings, its entry `data`, may have."""
LOAD_IT_YOURSELF = "if Stable-Baselines3 loads it, as with custom_objects, pass the live model in place of the path"
"""What to do about a file that cannot be read here."""
LARGEST_WEIGHTS = 256 * 2**20
"""Bytes that one of its entries of weights may have."""


class CheckpointFile:
    """The content of a checkpoint, read on demand.

    Args:
        file: its path, or an open file of the same content.
        path: name of the file in errors.
        trust: as in `frozen`, checked; True also lifts the size limits.

    Attributes:
        data: the settings, by name; those that JSON cannot hold as pickles, see `fields`.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, file: Path | BinaryIO, path: Path, trust: bool | frozenset[str] = False) -> None:
        self._file, self.path, self._trust = file, path, trust
        try:
            self.data: dict[str, Any] = json.loads(self._entry("data", LARGEST_SETTINGS))
            if not isinstance(self.data, dict):
                raise TypeError(f"its settings are a {type(self.data).__name__}")
        except (zipfile.BadZipFile, KeyError, TypeError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
            raise self._no_checkpoint(error) from error

    def fields(self, *names: str, without: Collection[str] = ()) -> list[Any]:
        """Settings, unpickled.

        Args:
            names: of the settings.
            without: keys that are left out of those that are dicts.

        Raises:
            ValueError: there is no such setting, it cannot be read, or it asks for what is neither known nor trusted.
        """
        reader, found, asking = Reader(self._trust), [], []
        for name in names:
            if name not in self.data:
                raise self._no_checkpoint(KeyError(name))
            known = len(reader.unknown)
            try:
                found.append(self._field(name, reader, without))
                asking += [name] if len(reader.unknown) > known else []
            except UnreadableError as error:
                raise ValueError(
                    f"{name} in {self.path} cannot be unpickled ({error}); the modules that the policy's classes come "
                    f"from must be importable here, in the versions it was saved with; {LOAD_IT_YOURSELF}"
                ) from error
        if reader.unknown:
            raise ValueError(refusal(self.path, reader.unknown, f"{', '.join(asking)} in "))
        return found

    def settings(self, *, optional: Collection[str], without: Collection[str]) -> dict[str, Any]:
        """All settings that are pickles, with what is in them; None for those of `optional` that cannot be read.

        Raises:
            ValueError: one cannot be read, or asks for what is neither known nor trusted.
        """
        read: dict[str, Any] = {}
        needed = [name for name, value in self.data.items() if _is_pickle(value) and name not in without]
        for name in [name for name in needed if name in optional]:
            try:
                (read[name],) = self.fields(name)
            except ValueError:
                read[name] = None
        needed = [name for name in needed if name not in optional]
        try:
            return read | dict(zip(needed, self.fields(*needed), strict=True))
        except ValueError as error:
            raise ValueError(f"{error}; or give such a setting by custom_objects") from error

    def all_weights(self) -> list[bytes]:
        """The bytes of all entries of weights, each within its bound."""
        with zipfile.ZipFile(self._file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".pth")]
        return [self.weights_bytes(name) for name in names]

    def _field(self, name: str, reader: Reader, without: Collection[str]) -> Any:
        value = self.data[name]
        if not _is_pickle(value):
            return {key: one for key, one in value.items() if key not in without} if isinstance(value, dict) else value
        try:
            content = base64.b64decode(value[":serialized:"])
        except (TypeError, binascii.Error) as error:
            raise UnreadableError(str(error)) from error
        return reader.read(content, without)

    def weights(self, name: str = "policy.pth") -> Any:
        """One entry of weights, on the CPU.

        Raises:
            ValueError: it is too large, or holds something else.
        """
        import torch

        content = self.weights_bytes(name)
        try:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # a pickle can raise anything
            raise ValueError(
                f"{name} in {self.path} cannot be read ({one_line(error)}): expected weights and nothing else"
            ) from error

    def weights_bytes(self, name: str = "policy.pth") -> bytes:
        """The same as it is in the file, itself a zip within bounds unless torch before 1.6 wrote it.

        Raises:
            ValueError: there is none, or it is too large.
        """
        try:
            content = self._entry(name, LARGEST_WEIGHTS)
            if content[:2] == b"PK":
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    self._check_size(sum(entry.file_size for entry in archive.infolist()), name, LARGEST_WEIGHTS)
        except (zipfile.BadZipFile, KeyError) as error:
            raise self._no_checkpoint(error) from error
        return content

    def _entry(self, name: str, limit: int) -> bytes:
        with zipfile.ZipFile(self._file) as archive:
            entry = archive.getinfo(name)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{name} is compressed by method {entry.compress_type}")
            self._check_size(entry.file_size, name, limit)
            with archive.open(entry) as file:
                return file.read(entry.file_size)  # which inflates no more, whatever there is

    def _check_size(self, size: int, name: str, limit: int) -> None:
        if size > limit and self._trust is not True:
            raise ValueError(
                f"{name} in {self.path} has {size / 2**20:,.0f} MiB, expected at most {limit // 2**20}: if you trust its "
                "author, trust=True lifts the limit"
            )

    def _no_checkpoint(self, error: Exception) -> ValueError:
        return ValueError(f"{self.path} is no SB3 checkpoint ({error}): expected a zip file that the model's save() wrote")


def _is_pickle(value: Any) -> bool:
    """Whether a setting is a pickle, which JSON could not hold."""
    return isinstance(value, dict) and ":serialized:" in value


@contextmanager
def at_most_parameters(number: int) -> Iterator[None]:
    """Context in which this thread cannot create more parameters than the limit; excess is refused before memory is allocated.

    Raises:
        ValueError: there would be more parameters.
    """
    from torch.nn.modules.module import register_module_parameter_registration_hook

    thread, made = threading.get_ident(), 0

    def count(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal made
        if parameter is None or threading.get_ident() != thread:
            return
        made += parameter.numel()
        if made > number:
            raise ValueError(f"its settings ask for more than {number:,} parameters, but its weights have no more bytes")

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()
