"""Output of the command: results on standard output, errors on standard error."""

from __future__ import annotations

import copy
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
    from rich.console import RenderableType
    from rich.table import Table

WRONG, UNSAID = 2, 1
"""Exit codes: the user can mend something; standard output could not be written."""


@contextmanager
def command() -> Iterator[Terminal]:
    """Context in which a command runs. Errors that a user can mend become one sentence on standard error, without a traceback.

    Yields:
        The terminal to print results to.

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
    """Standard output. A failure to write never ends the work.

    Characters outside its encoding are written as escapes. If nothing can be written, one sentence on standard error says so,
    and further output is lost.

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
        """Print a table. Columns are laid out for its cells as they are written, escapes included."""
        from rich.console import Console  # takes a tenth of a second, which `--help` does not need

        draft = _Draft()
        Console(file=draft, highlight=False).print(_encodable(table, draft.encoding))
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
            if not isinstance(error, BrokenPipeError):  # as by `| head`
                complain(f"standard output cannot be written: {error.strerror or error}")
            _discard_output()


class _Draft(io.StringIO):
    """Text for standard output. Rich adapts to the real standard output; errors in writing are those of `Terminal.write`."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has a variable
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout is not None and sys.stdout.isatty()


def _encodable(table: Table, encoding: str) -> Table:
    """The table, with escapes for characters in its cells that are outside the encoding."""
    from rich.text import Text

    def escaped(cell: RenderableType) -> RenderableType:
        text = cell.plain if isinstance(cell, Text) else cell
        if not isinstance(text, str) or (written := text.encode(encoding, "backslashreplace").decode(encoding)) == text:
            return cell
        return Text(written, cell.style) if isinstance(cell, Text) else written

    shown = copy.copy(table)
    shown.columns, shown.rows = [column.copy() for column in table.columns], []
    for row, cells in zip(table.rows, zip(*(column.cells for column in table.columns), strict=True), strict=True):
        shown.add_row(*map(escaped, cells), style=row.style, end_section=row.end_section)
    return shown


def complain(sentence: str) -> None:
    """Print an error on standard error."""
    from snake_pz.escaping import printable  # it may contain names from files

    line = "\n".join(map(printable, f"snake-pz: {sentence}".split("\n")))
    with suppress(OSError):
        typer.secho(_wrapped(line, sys.stderr), fg="red", err=True)


def _sentence(error: Exception) -> str | None:
    """The sentence for the user; None for an error that a user cannot mend."""
    if isinstance(error, RuntimeError):
        from adapters.opponents.pool import PoolInUseError

        return str(error) if isinstance(error, PoolInUseError) else None
    if isinstance(error, ImportError):
        return f"{error}: install what is missing, or snake-pz anew, which brings all that it needs"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for so much at once ({error or 'no more is known'}): ask for less"
    return str(error)


def _wrapped(line: str, stream: TextIO | None) -> str:
    """The text, broken between words if it goes to a terminal. Long words such as paths stay whole."""
    if stream is None or not stream.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def _discard_output() -> None:
    """Discard buffered output, which would make Python fail again at exit."""
    with suppress(OSError):  # there need not be a file below it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
