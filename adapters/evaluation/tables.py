"""Tables as text."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table


def as_text(table: Table, width: int = 100) -> str:
    """A table as plain text.

    Args:
        table: the table.
        width: of the text at most, in characters.
    """
    console = Console(width=width, file=io.StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
