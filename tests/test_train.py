"""The training run, in miniature, and the command in front of it."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from typer.testing import CliRunner

from adapters import train as training
from adapters.bench import bench_opponents, bench_soak
from adapters.cli import app
from adapters.curry import CurryVecEnv
from adapters.train import Recipe, save_model, train
from snake_pz.replay import Replay

TINY = Recipe(steps=256, games=4, snapshot_every=100, eval_games=4, seed=1)


def test_a_run_leaves_everything_in_its_folder(tmp_path: Path) -> None:
    said: list[str] = []
    result = train(tmp_path / "run", TINY, said.append)
    run = tmp_path / "run"
    assert json.loads((run / "eval.json").read_text()) == result
    assert set(result["before"]) == set(result["after"]) == {"random", "greedy", "survivor"}
    assert all(0 <= rate <= 1 for rate in [*result["before"].values(), *result["after"].values()])
    assert result["steps"] == PPO.load(run / "model.zip").num_timesteps >= TINY.steps
    steps = sorted(int(path.stem.split("_")[1]) for path in (run / "checkpoints").iterdir())
    assert steps == [100, 200]
    game = Replay.load(run / "game.jsonl")
    assert set(game.names) == {"PPO", "random", "greedy", "survivor"}
    with Image.open(run / "game.gif") as film:
        assert film.n_frames > 1
    assert (run / "game.html").read_text() == game.html()
    assert list((run / "tensorboard").rglob("events*"))
    assert not list(run.rglob(".*"))  # no temporary names are left
    assert any("before training" in line for line in said)


def test_equal_seeds_give_equal_runs(tmp_path: Path) -> None:
    rates = [train(tmp_path / name, TINY, lambda line: None) for name in ("a", "b")]
    assert rates[0] == rates[1]


def test_self_play_puts_each_checkpoint_into_the_enemy_seats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr("adapters.curry.CurryVecEnv.set_opponent", lambda self, spec, when="restart": given.append(spec))
    train(tmp_path, TINY, lambda line: None)
    paths = [tmp_path / "checkpoints" / f"snake_{steps}.zip" for steps in (100, 200)]
    assert given == [[path, path, "survivor"] for path in paths]
    given.clear()
    train(tmp_path, dataclasses.replace(TINY, opponent="greedy"), lambda line: None)
    assert given == []


def test_ctrl_c_keeps_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupt(training.Snapshots):
        def _on_step(self) -> bool:
            if self.num_timesteps >= 128:
                raise KeyboardInterrupt
            return super()._on_step()

    monkeypatch.setattr(training, "Snapshots", Interrupt)
    result = train(tmp_path, TINY, lambda line: None)
    assert result["interrupted"] is True
    assert PPO.load(tmp_path / "model.zip").num_timesteps == result["steps"] == 128
    assert (tmp_path / "checkpoints" / "snake_100.zip").is_file()


def test_a_checkpoint_is_whole_or_not_there(tmp_path: Path) -> None:
    class Broken(PPO):
        def save(self, path: Any, *args: Any, **kwargs: Any) -> None:
            Path(path).write_bytes(b"half")
            raise OSError("disk full")

    path = tmp_path / "model.zip"
    path.write_bytes(b"the last good one")
    with pytest.raises(OSError, match="disk full"):
        save_model(Broken.__new__(Broken), path)
    assert path.read_bytes() == b"the last good one"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_waits_until_a_checkpoint_is_there(tmp_path: Path) -> None:
    class Interrupted:
        def save(self, path: Path) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            path.write_bytes(b"model")

    with pytest.raises(KeyboardInterrupt):
        save_model(Interrupted(), tmp_path / "model.zip")  # type: ignore[arg-type]
    assert (tmp_path / "model.zip").read_bytes() == b"model"


def test_snapshots_come_once_per_interval_however_large_a_step_is(tmp_path: Path) -> None:
    class Model:
        num_timesteps = 0

        def save(self, path: Path) -> None:
            path.write_bytes(b"model")

    snapshots = training.Snapshots(tmp_path, 100)
    assert isinstance(snapshots, BaseCallback)
    snapshots.model = Model()  # type: ignore[assignment]
    for steps in range(0, 1000, 70):
        snapshots.num_timesteps = steps
        snapshots._on_step()
    assert len(list(tmp_path.iterdir())) == 9


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--opponent", "missing.zip"], "no checkpoint at 'missing.zip'"),
        (["--opponent", "greddy"], "did you mean 'greedy'?"),
        (["--steps", "0"], "steps must be >= 1, got 0"),
        (["--games", "0"], "games must be >= 1, got 0"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(arguments: list[str], text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "run"), *arguments])
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_the_command_trains(tmp_path: Path) -> None:
    arguments = ["--steps", "64", "--games", "2", "--snapshot-every", "64", "--opponent", "random", "--seed", "1"]
    done = CliRunner().invoke(app, ["train", "--out", str(tmp_path), *arguments])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model.zip").is_file()


def test_bench_opponents_prints_every_row() -> None:
    tables = bench_opponents(0.01, games=(2, 4))
    text = " ".join("".join(str(cell) for column in table.columns for cell in column.cells) for table in tables)
    for row in ("random", "one checkpoint", "three checkpoints", "mixture of eight", "one predict per enemy and game"):
        assert row in text
    sizes = [float(cell) for cell in tables[-1].columns[1].cells]  # type: ignore[arg-type]
    assert sizes[0] > 1
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_bench_soak_counts_what_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench_soak(steps=800, swap_every=100, num_games=8, say=lambda line: None)
    leaks: list[int] = []
    set_opponent = CurryVecEnv.set_opponent

    def leak(self: CurryVecEnv, spec: Any, when: Any = "restart") -> None:
        leaks.append(os.open(os.devnull, os.O_RDONLY))
        set_opponent(self, spec, when)

    monkeypatch.setattr(CurryVecEnv, "set_opponent", leak)
    try:
        assert not bench_soak(steps=800, swap_every=100, num_games=8, say=lambda line: None)
    finally:
        for handle in leaks:
            os.close(handle)


def test_bench_engine_prints_every_row() -> None:
    done = CliRunner().invoke(app, ["bench", "engine", "--seconds", "0.1"])
    assert done.exit_code == 0, done.output
    for row in ("engine, 1,024 games, classic", "hungry_geese", "PettingZoo API", "native / supersuit"):
        assert row in done.output
