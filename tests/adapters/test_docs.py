"""Every Python block of the README and of docs/ runs as written, but that a million steps are made a few hundred."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks, 1):
        code = re.sub(r"\b\d{1,3}(_000)+\b", "256", block)
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)


def test_there_is_something_to_run() -> None:
    assert "```python" in PAGES[0].read_text()
