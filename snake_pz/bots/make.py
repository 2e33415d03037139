"""Bots by name."""

from __future__ import annotations

from snake_pz.bots import BOTS
from snake_pz.bots.bot import Bot
from snake_pz.bots.search.searcher import Searcher
from snake_pz.rules import Rules, check_names


def make_bot(name: str, rules: Rules) -> Bot | Searcher:
    """The bot with this name for games with these rules.

    Args:
        name: one of `BOTS`; "searcher" may have a budget for each move, in evaluations or milliseconds: "searcher:4600",
            "searcher:2ms".
        rules: rules of the games to play.

    Raises:
        ValueError: an unknown name, a budget that is none, or a board that is too large for the searcher.
    """
    kind, colon, _ = name.partition(":")
    check_names("bot", {kind: rules}, list(BOTS))
    if kind == "searcher":
        return Searcher(name, rules)
    if colon:
        raise ValueError(f"only the searcher takes a budget, got {name!r}: write {kind!r}")
    return Bot(name, rules)
