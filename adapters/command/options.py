"""Options that several commands have."""

from __future__ import annotations

import re

import typer

WHO = "a bot (random, greedy, survivor, territorial, searcher), champion (trained on the classic 11x11 board), a checkpoint"

TRUST = typer.Option(
    "--trust",
    metavar="NAME",
    help="A class that checkpoints may ask for beside known ones, as my_package.MyExtractor; all: they may run any code.",
)


def seconds_of(time: str) -> float:
    """The value of `--move-time`, such as 5ms or 0.5s, in seconds.

    Raises:
        ValueError: it is no time.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", time)
    if not found:
        raise ValueError(f"a time for a move must be a number of milliseconds or seconds such as 5ms or 0.5s, got {time!r}")
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def trust_of(names: list[str] | None) -> bool | list[str]:
    """The value of `--trust` as the functions take it."""
    return True if names and "all" in names else names or False
