"""Text from anywhere obeys nobody: neither in terminals nor in spreadsheets."""

from __future__ import annotations

import pytest

from snake_pz.escaping import printable, spreadsheet_cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("greedy 蛇 ± é", "greedy 蛇 ± é"),
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("two\nlines\r\t", r"two\nlines\r\t"),
        ("\u202eturned", r"\u202eturned"),
        ("\x9b2J\x7f\x00", r"\x9b2J\x7f\x00"),
        ("\udcff", r"\udcff"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_spreadsheet_cell() -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"):
        assert spreadsheet_cell(text) == f"'{text}"
    for cell in ("greedy", "a=1", "", -1.5, 3, None):
        assert spreadsheet_cell(cell) == cell
