"""Every Python block of the README and of docs/ runs as written, but that a million steps are made a few hundred."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import adapters
from adapters.command.main import app

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


def test_the_public_names_are_those_that_the_pages_use() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert not re.findall(r"^(?:from|import) adapters\..*$", code, re.MULTILINE)
    imports = re.findall(r"^from adapters import (.+)$", code, re.MULTILINE)
    imported = {name.strip() for names in imports for name in names.split(",")}
    assert imported <= set(adapters.__all__)
    assert [name for name in adapters.__all__ if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_the_pages_give_them(page: Path) -> None:
    for line in re.findall(
        r"snake-pz ((?:train|play|watch|tournament|bench|serve|import|export|card)\b[^`\n|#]*)", page.read_text()
    ):
        words = line.split()
        command = words[:2] if words[0] in ("bench", "serve") and len(words) > 1 else words[:1]
        known = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "300", "TERM": "dumb"}).output
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", line):
            assert re.search(rf"{option}\b", known), f"{page.name}: snake-pz {' '.join(command)} has no {option}"


def test_there_is_something_to_run() -> None:
    assert "```python" in PAGES[0].read_text()
