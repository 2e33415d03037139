"""Checkpoints with other contents than Stable-Baselines3 writes."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any


def rewrite(path: Path, target: Path, members: dict[str, bytes] | None = None, compression: int = 0, **entries: Any) -> Path:
    """Copy a checkpoint with other files in it, and with other values for entries of its `data`, or without them (None)."""
    members = members or {}
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", compression) as new:
        for name in old.namelist():
            content = members.get(name, old.read(name))
            if name == "data" and name not in members:
                data = json.loads(content) | entries
                content = json.dumps({key: value for key, value in data.items() if value is not None}).encode()
            new.writestr(name, content)
    return target


def pickled(blob: bytes) -> dict[str, str]:
    """A pickle as it is in `data`."""
    return {":type:": "<class 'alien.Thing'>", ":serialized:": base64.b64encode(blob).decode()}
