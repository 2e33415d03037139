"""What the command says: on standard output what it was asked for, on standard error what went wrong."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

import typer

if TYPE_CHECKING:
    from rich.table import Table

WRONG, UNSAID = 2, 1
"""Exit codes: the user can mend something; standard output could not be written."""


@contextmanager
def command() -> Iterator[Terminal]:
    """In here a command does its work: what a user can mend is one sentence on standard error, and not a traceback.

    Yields:
        Where to say what came of it.

    Raises:
        typer.Exit: with WRONG or UNSAID.
    """
    terminal = Terminal()
    try:
        yield terminal
    except (ValueError, OSError, ImportError, MemoryError, RuntimeError) as error:
        if (sentence := _sentence(error)) is None:
            raise
        complain(sentence)
        raise typer.Exit(WRONG) from error
    if terminal.failed:
        raise typer.Exit(UNSAID)


class Terminal:
    """Standard output, which ends no work.

    What its encoding has not is written as escapes. If it cannot be written at all this is said once, on standard error, and
    what else is to be said is lost.

    Attributes:
        failed: whether something could not be written.
    """

    def __init__(self) -> None:
        self.failed = False
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")

    def say(self, line: str) -> None:
        """Print a line; on a terminal it is broken between words."""
        self.write(_wrapped(line, sys.stdout) + "\n")

    def show(self, table: Table) -> None:
        """Print a table."""
        from rich.console import Console  # a tenth of a second, which `--help` can do without

        draft = _Draft()
        Console(file=draft, highlight=False).print(table)
        self.write(draft.getvalue())

    def write(self, text: str) -> None:
        """Print text as it is."""
        if sys.stdout is None or self.failed:  # it is None where it was closed when Python started
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            self.failed = True
            if not isinstance(error, BrokenPipeError):  # as by `| head`, which has seen enough
                complain(f"standard output cannot be written: {error.strerror or error}")
            _discard_output()


class _Draft(io.StringIO):
    """What is to be written to standard output: rich draws for what that is, and its errors are `Terminal.write`'s."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has a variable
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout is not None and sys.stdout.isatty()


def complain(sentence: str) -> None:
    """Print on standard error what is wrong."""
    from snake_pz.escaping import printable  # there may be names from files in it

    line = "\n".join(map(printable, f"snake-pz: {sentence}".split("\n")))
    with suppress(OSError):
        typer.secho(_wrapped(line, sys.stderr), fg="red", err=True)


def _sentence(error: Exception) -> str | None:
    """What to tell the user; None where there is nothing that a user can mend."""
    if isinstance(error, RuntimeError):
        from adapters.opponents.pool import PoolInUseError

        return str(error) if isinstance(error, PoolInUseError) else None
    if isinstance(error, ImportError):
        return f"{error}: install what is missing, or snake-pz anew, which brings all that it needs"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for so much at once ({error or 'no more is known'}): ask for less"
    return str(error)


def _wrapped(line: str, stream: TextIO | None) -> str:
    """Broken between words where it goes to a terminal. Longer words, such as paths, stay whole, to be copied."""
    if stream is None or not stream.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _discard_output() -> None:
    """Send what standard output still holds nowhere, or Python would fail once more when it ends."""
    with suppress(OSError):  # there need not be a file below it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
