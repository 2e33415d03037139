"""Pickles that would make a file, in every way that a pickle can be made to, and files that would fill the memory."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from torch import nn


class Reduced:
    """Pickled as a call of any function."""

    def __init__(self, function: Any, *args: Any, more: tuple[Any, ...] = ()) -> None:
        self.call = (function, args, *more)

    def __reduce__(self) -> Any:
        return self.call


def text(value: str) -> bytes:
    """The instruction that puts a string on the stack."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def called(module: str, name: str, *args: str) -> bytes:
    """A pickle of protocol 4 that calls what has this name with strings."""
    return b"\x80\x04" + text(module) + text(name) + b"\x93(" + b"".join(map(text, args)) + b"tR."


def stored(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def by_value(marker: Path) -> bytes:
    """A function of a script, whose code is in the pickle."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def touch():\n    open({os.fspath(marker)!r}, 'w').close()", scope)
    touch: Callable[[], None] = scope["touch"]
    return cloudpickle.dumps(Reduced(touch))


def class_by_value(marker: Path) -> bytes:
    """A class of a notebook, which opens a file when it is made."""
    scope: dict[str, Any] = {"__name__": "__main__", "nn": nn}
    exec(f"class Mine(nn.Module):\n    def __init__(self):\n        open({os.fspath(marker)!r}, 'w').close()", scope)
    return cloudpickle.dumps(scope["Mine"])


def pickles(marker: Path, folder: Path) -> dict[str, bytes]:
    """By what is done: pickles that would make the file `marker`; `folder` is for files that some of them need."""
    path = os.fspath(marker)
    touch = Reduced(os.system, f"touch '{path}'")
    second = folder / "second.pkl"
    second.write_bytes(pickle.dumps(touch))
    weights = folder / "second.pth"
    torch.save(touch, weights)
    array = folder / "second.npy"
    np.save(array, np.array([touch], object), allow_pickle=True)
    inner = pickle.dumps(touch)
    objects = np.array([touch], object)
    statistics = RunningMeanStd(shape=(1,))
    statistics.mean = touch  # type: ignore[assignment]
    policies, utilities = "stable_baselines3.common.policies", "stable_baselines3.common.save_util"
    code = f"open({path!r}, 'w')"
    return {
        "reduce": pickle.dumps(touch),
        "reduce, protocol 0": pickle.dumps(touch, 0),
        "reduce, protocol 2": pickle.dumps(touch, 2),
        "open": pickle.dumps(Reduced(open, path, "w")),
        "eval": called("builtins", "eval", code),
        "an object made with arguments": pickle.dumps(Reduced(__import__("logging").FileHandler, path)),
        "inst": b"(" + text(f"touch '{path}'") + b"ios\nsystem\n.",
        "obj": b"(cos\nsystem\n" + text(f"touch '{path}'") + b"o.",
        "newobj": b"\x80\x04" + text("logging") + text("FileHandler") + b"\x93" + text(path) + b"\x85\x81}b.",
        "build, its state set by a function": pickle.dumps(Reduced(str, code, more=({}, None, None, exec))),
        "build, on a class": b"\x80\x04" + text(policies) + text("ActorCriticPolicy") + b"\x93" + b"N}" + text("forward")
        + text("os") + text("system") + b"\x93s\x86b.",
        "nested": pickle.dumps({"features_extractor_kwargs": {"deep": [(touch,)]}}),
        "a key": pickle.dumps({touch: 1}),
        "getattr": (
            b"\x80\x04" + text("builtins") + text("getattr") + b"\x93" + text("os") + text("_wrap_close.close.__globals__")
            + b"\x93" + text("get") + b"\x86R" + text("system") + b"\x85R" + text(f"touch '{path}'") + b"\x85R."
        ),
        "a path through a known module": called(policies, "th.hub.os.system", f"touch '{path}'"),
        "globals of a known class": called("adapters.networks", "GridCNN.__init__.__globals__.get", "torch"),
        "a function of a known module: load_from_pkl": called(utilities, "load_from_pkl", os.fspath(second)),
        "a function of a known module: open_path": called(utilities, "open_path_str", path, "w"),
        "numpy: objects in an array": pickle.dumps(objects, 4),
        "numpy: load": pickle.dumps(Reduced(np.load, os.fspath(array), None, True)),
        "numpy: runstring": pickle.dumps(Reduced(np.testing._private.utils.runstring, code, {})),
        "numpy: fromregex": called("numpy", "genfromtxt", path),
        "numpy: memmap": pickle.dumps(Reduced(np.memmap, path, "uint8", "w+", 0, (4,))),
        "torch: load": called("torch", "load", os.fspath(weights)),
        "torch: load of serialization": called("torch.serialization", "load", os.fspath(weights)),
        "torch: hub": called("torch.hub", "load", os.fspath(folder), "x"),
        "torch: save": called("torch", "save", "x", path),
        "torch: a function beside modules": called("torch.nn.modules.module", "warnings.sys.modules.get", "os"),
        "torch: storage": called("torch.storage", "_load_from_bytes", stored(touch).decode("latin1")),
        "torch: a module with a hook": pickle.dumps(Reduced(nn.Linear, 1, 1, more=({"_forward_hooks": {0: touch}},))),
        "pickle in a pickle": pickle.dumps(Reduced(pickle.loads, inner)),
        "cloudpickle in a pickle": pickle.dumps(Reduced(cloudpickle.loads, inner)),
        "code of its own": by_value(marker),
        "a class of its own": class_by_value(marker),
        "partial": pickle.dumps(__import__("functools").partial(os.system, f"touch '{path}'")),
        "runpy": called("runpy", "run_path", path),
        "statistics in statistics": pickle.dumps(statistics),
    }  # fmt: skip


HARMLESS = {
    "build, on a class",  # changes the class
    "globals of a known class",  # gives a module away
    "torch: hub",  # would fetch
    "torch: load",  # by torch's own default
    "torch: load of serialization",
    "torch: storage",
    "numpy: load",
    "numpy: fromregex",
    "torch: a function beside modules",
    "a class of its own",  # until somebody makes an object of it
    "runpy",  # finds nothing to run
    "partial",  # until somebody calls it
    "newobj",  # until somebody initialises it
    "a key",  # cannot be one
}
"""Those of `pickles` by which `pickle` itself makes no file."""


def zeros(megabytes: int) -> bytes:
    return bytes(megabytes * 2**20)


def lying(archive: Path) -> None:
    """Say of every entry of a zip that it is 100 bytes long when it is inflated."""
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        entries = file.infolist()
    where = content.rfind(b"PK\x05\x06")
    (directory,) = struct.unpack_from("<I", content, where + 16)
    for entry in entries:
        struct.pack_into("<I", content, entry.header_offset + 22, 100)
        struct.pack_into("<I", content, directory + 24, 100)
        name, extra, comment = struct.unpack_from("<HHH", content, directory + 28)
        directory += 46 + name + extra + comment
    archive.write_bytes(content)
