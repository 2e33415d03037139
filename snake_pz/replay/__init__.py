"""Recorded games: rules, seed and actions, from which every turn can be played again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snake_pz.replay.recording import Recorder, Replay

__all__ = ["Recorder", "Replay"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from snake_pz.replay import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
