"""Scripted players: `random`, `greedy`, `survivor`, `territorial` and `searcher`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from snake_pz.bots.bot import Bot
    from snake_pz.bots.make import make_bot
    from snake_pz.bots.search.searcher import Searcher

__all__ = ["BOTS", "Bot", "Searcher", "is_bot", "make_bot"]

BOTS = ("random", "greedy", "survivor", "territorial", "searcher")
"""The names that `make_bot` takes, weakest first. A budget may follow the last one: "searcher:4600", "searcher:2ms"."""


def is_bot(word: str) -> bool:
    """Whether a word is a bot's name, with or without a budget."""
    return word.partition(":")[0] in BOTS


__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submod_attrs={"bot": ["Bot"], "make": ["make_bot"], "search.searcher": ["Searcher"]}
)
