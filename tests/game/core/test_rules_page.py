"""docs/rules.md: the engine gives the outcomes that it shows, and it is what its script writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import rules_page
from tests.support.preset_cases import CASES, PRESETS, Case, expected, outcome
from tests.support.rules_page import PAGE, main, page


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.section}: {case.name}")
def test_the_engine_gives_the_outcomes_of_the_page(case: Case) -> None:
    shown = {preset: expected(case, preset) for preset in PRESETS}
    assert {preset: outcome(case, preset) for preset in PRESETS if shown[preset] != "-"} == {
        preset: text for preset, text in shown.items() if text != "-"
    }
    assert set(case.outcomes) <= {*PRESETS, "all", "battlesnake"}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/support/rules_page.py"
    assert main(["--check"]) == 0


def test_the_page_shows_every_case_and_every_rule_that_differs() -> None:
    text = page()
    for number, case in enumerate(CASES, 1):
        assert f"| {number} | {case.name} |" in text
        assert all(f" {expected(case, preset)} |" in text for preset in PRESETS)
    assert len({(case.section, case.name) for case in CASES}) == len(CASES)
    classic = PRESETS["classic"]
    for rules in PRESETS.values():
        for name, value in vars(rules).items():
            assert value == getattr(classic, name) or text.count(f"| `{name}` |") == 2, "among the presets and among all"


def test_check_notices_a_page_that_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_page, "PAGE", tmp_path / "rules.md")
    assert main(["--check"]) == 1, "no page"
    assert main([]) == 0
    assert main(["--check"]) == 0
    (tmp_path / "rules.md").write_text(page().replace("A lives", "A dies", 1), encoding="utf-8")
    assert main(["--check"]) == 1
    assert main(["--help"]) == 2


@pytest.mark.slow
def test_as_a_script(tmp_path: Path) -> None:
    command = [sys.executable, rules_page.__file__, "--check"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
