"""Scripted players: `random`, `greedy`, `survivor` and `territorial`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snake_pz.bots.bot import Bot
    from snake_pz.rules import Rules

__all__ = ["BOTS", "Bot", "make_bot"]

BOTS = ("random", "greedy", "survivor", "territorial")
"""The names that `make_bot` takes, weakest first."""


def make_bot(name: str, rules: Rules) -> Bot:
    """The bot of this name for games of these rules.

    Raises:
        ValueError: no such bot.
    """
    from snake_pz.bots.bot import Bot  # which loads numba

    return Bot(name, rules)


def __getattr__(name: str) -> Any:
    if name == "Bot":
        from snake_pz.bots.bot import Bot

        return Bot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
