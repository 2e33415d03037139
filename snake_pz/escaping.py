"""Text from anywhere, such as the names in a file, made harmless for what shows it."""

from __future__ import annotations

from typing import TypeVar

Cell = TypeVar("Cell")


def printable(text: str) -> str:
    r"""The same on one line and without anything that a terminal obeys or cannot show: such characters as `\x1b` writes them.

    Printable is what `str.isprintable` says: no control characters, no marks that turn the direction of writing, no surrogates.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def spreadsheet_cell(value: Cell) -> Cell | str:
    """The same, but text that spreadsheets would take for a formula begins with an apostrophe, by which they know text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
