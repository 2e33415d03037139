"""Scripted players: `random`, `greedy`, `survivor` and `territorial`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from snake_pz.bots.bot import Bot, make_bot

__all__ = ["BOTS", "Bot", "make_bot"]

BOTS = ("random", "greedy", "survivor", "territorial")
"""The names that `make_bot` takes, weakest first."""

__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"bot": ["Bot", "make_bot"]})
