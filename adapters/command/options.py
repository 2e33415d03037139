"""Options that several commands have."""

from __future__ import annotations

import typer

WHO = "a bot (random, greedy, survivor, territorial, searcher), champion (trained on the classic 11x11 board), a checkpoint"

TRUST = typer.Option(
    "--trust",
    metavar="NAME",
    help="A class that checkpoints may ask for beside known ones, as my_package.MyExtractor; all: they may run any code.",
)


def trust_of(names: list[str] | None) -> bool | list[str]:
    """The value of `--trust` as the functions take it."""
    return True if names and "all" in names else names or False
