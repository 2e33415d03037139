"""Replays: recorded games that can be played again from their rules, seed and actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from snake_pz.replay.recording import Recorder, Replay

__all__ = ["Recorder", "Replay"]

__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"recording": ["Recorder", "Replay"]})
