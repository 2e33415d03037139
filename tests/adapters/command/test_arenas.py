"""The commands for other arenas, as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.command.main import app
from adapters.serving.battlesnake_client import BattlesnakeClient
from snake_pz import Rules, SnakeEngine
from snake_pz.formats import battlesnake

SERVE = ["serve", "battlesnake"]


@pytest.mark.slow
def test_a_server_answers_what_it_was_asked_before_it_ends_on_sigterm() -> None:
    rules = Rules.battlesnake()
    engine = SnakeEngine(rules, seed=0)
    engine.reset()
    asked = battlesnake.request(rules, engine.state, 0, 0, timeout=60_000)
    words = [sys.executable, "-m", "snake_pz", *SERVE, "--player", "searcher:1500ms", "--port", "0", "--author", "me"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert started["event"] == "serving"
        assert started["url"].startswith("http://127.0.0.1:")
        answers: list[dict[str, Any]] = []

        def ask() -> None:
            with BattlesnakeClient(started["url"], 60) as client:
                assert client.get("/")["author"] == "me"
                answers.append(client.post("/move", asked))

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.7)
        process.send_signal(signal.SIGTERM)
        asking.join()
        log = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert process.wait(20) == 0
    assert [line["event"] for line in log] == ["move", "stopped"]
    assert answers == [{"move": log[0]["move"]}]
    assert (log[0]["by"], log[0]["turn"]) == ("player", 0)
    assert log[0]["ms"] > 1400


@pytest.mark.slow
def test_bench_serve_measures_a_server() -> None:
    done = CliRunner().invoke(app, ["bench", "serve", "--player", "greedy", "--games", "2", "--seconds", "0.5"])
    assert done.exit_code == 0, done.output
    row = [cell.strip() for cell in done.output.splitlines()[-2].strip("│").split("│")]
    assert row[:2] == ["greedy", "2"]
    assert float(row[2]) > 10
    assert float(row[3]) <= float(row[4]) <= float(row[5])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--player", "greddy"], "the bots are"),
        (["--player", "nowhere.zip"], "no checkpoint at 'nowhere.zip'"),
        (["--color", "green"], "color must be #rrggbb"),
        (["--rate", "0"], "rate must be >= 0.1, got 0"),
        (["--host", "203.0.113.1"], "cannot listen at 203.0.113.1 port"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(options: list[str], text: str, tmp_path: Path) -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        done = CliRunner().invoke(app, [*SERVE, "--port", "0", *options])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())


def test_serving_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "adapters.serving.battlesnake_server"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        done = CliRunner().invoke(app, SERVE)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert done.exit_code == 2
    assert "pip install 'snake-pz[serve]'" in " ".join(done.output.split())


def test_a_game_is_imported_and_shown(tmp_path: Path) -> None:
    rules = Rules.battlesnake(num_snakes=2)
    engine = SnakeEngine(rules)
    engine.reset(seeds=[1])
    lines = [battlesnake.request(rules, engine.state, 0, 0)]
    for _ in range(2):
        engine.step(engine.action_masks("absolute").argmax(axis=2))
        lines.append(battlesnake.request(rules, engine.state, 0, 0))
    (tmp_path / "game.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = CliRunner().invoke(app, ["import", str(tmp_path / "game.log")])
    assert done.exit_code == 0, done.output
    assert done.output.endswith("game.replay.jsonl: 2 of 2 turns, all as by the rules\n")
    lines[2]["board"]["snakes"][0]["health"] = 1
    (tmp_path / "game.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = CliRunner().invoke(app, ["import", str(tmp_path / "game.log"), "--record", str(tmp_path / "a.jsonl")])
    assert done.output.splitlines()[0] == "turn 2: 0 has health 1, by the rules 98"
    assert done.output.endswith("a.jsonl: 1 of 2 turns\n")
    shown = CliRunner().invoke(app, ["watch", str(tmp_path / "a.jsonl"), "--ansi", "--fps", "1000"])
    assert shown.exit_code == 0
