"""The commands on files of models: export and card."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from adapters.command.main import app
from adapters.opponents import OnnxOpponent
from adapters.opponents.parse import CHAMPION


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_export_writes_a_file_that_plays(tmp_path) -> None:
    file = tmp_path / "it.onnx"
    assert "wrote" in run("export", "champion", file, "--license", "MIT", "--name", "it")
    about = OnnxOpponent(file).about.more
    assert (about["name"], about["license"], about["encoding"], about["actions"]) == ("it", "MIT", "egocentric", "relative")
    assert about["rules"]["width"] == 11
    model = tmp_path / "model.zip"
    model.write_bytes(CHAMPION.read_bytes())
    (tmp_path / "config.json").write_text('{"rules": "battlesnake", "num_snakes": 3}', encoding="utf-8")
    run("export", model, file)
    rules = OnnxOpponent(file).about.more["rules"]
    assert (rules["growth"], rules["num_snakes"]) == ("next_turn", 3)


@pytest.mark.slow
def test_a_card_says_what_is_known(tmp_path) -> None:
    model = tmp_path / "model.zip"
    model.write_bytes(CHAMPION.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({"gamma": 0.99}), encoding="utf-8")
    (tmp_path / "notes.md").write_text("It learned *much*.", encoding="utf-8")
    output = run("card", model, "--games", 6, "--license", "MIT", "--name", 'my "snake"', "--notes", tmp_path / "notes.md")
    assert len(re.findall(r"^[01]\.\d{3} against (?:random|greedy|survivor|territorial)", output, re.MULTILINE)) == 8
    card = (tmp_path / "model.md").read_text(encoding="utf-8")
    head, page = card.removeprefix("---\n").split("\n---\n", 1)
    assert 'license: "mit"' in head
    assert '- name: "my \\"snake\\""' in head
    values = [float(value) for value in re.findall(r"value: ([\d.]+)", head)]
    assert len(values) == 4
    assert values[0] == 1.0  # against random
    (row,) = re.findall(r"^\| actions sampled.*\|$", page, re.MULTILINE)
    assert [float(value) for value in re.findall(r" (\d\.\d{3}) \(", row)] == values
    for expected in (
        "It learned *much*.",
        '"gamma": 0.99',
        "592,263 bytes",
        "Stable-Baselines3 2.9.2",
        "`egocentric`",
        "`relative`",
    ):
        assert expected in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["card", "champion", "--width", "9", "--height", "9"], "plays? on|fit|sees"),
        (["card", "none.zip"], "no checkpoint at"),
        (["export", "none.zip", "it.onnx"], "no checkpoint at"),
        (["export", "champion", "it.onnx", "--width", "7", "--height", "7"], "no encoding of a board of 7x7"),
        (["card", "champion", "--games", "0"], "games must be"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, monkeypatch, arguments, words) -> None:
    monkeypatch.chdir(tmp_path)
    more = ["--out", "card.md"] if arguments[0] == "card" else []
    result = CliRunner().invoke(app, [*arguments, *more])
    assert result.exit_code == 2
    assert re.search(words, result.output.replace("\n", " ")), result.output
    assert not list(tmp_path.iterdir())
