"""The training run, in miniature, and the command in front of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from typer.testing import CliRunner

from adapters.command.main import app
from adapters.opponents.parse import parse
from adapters.opponents.pool import OpponentPool
from adapters.training import run as training
from adapters.training.recipe import Recipe, parse_opponent
from adapters.training.report import write_report
from adapters.training.run import FolderTakenError, resume, save_model, train
from snake_pz.files import locked
from snake_pz.replay import Replay

TINY = Recipe(
    total_timesteps=256, num_games=4, teacher_steps=0, n_steps=16, batch_size=32, snapshot_every=100,
    measure_every=128, measure_games=4, seed=1,
)  # fmt: skip


BINARY = sys.executable
"""A file that is no text."""


def quiet(line: str) -> None:
    """Say nothing."""


def test_a_run_leaves_everything_in_its_folder(tmp_path: Path) -> None:
    said: list[str] = []
    run = tmp_path / "run"
    result = train(run, TINY, said.append)
    assert json.loads((run / "eval.json").read_text()) == result
    assert [entry["steps"] for entry in result["measured"]] == [0, 128, 256]
    assert all(0 <= entry[bot] <= 1 for entry in result["measured"] for bot in ("random", "greedy", "survivor"))
    assert PPO.load(run / "model.zip").num_timesteps == 256
    assert [member.step for member in OpponentPool(run / "pool").members] == [0, 128, 256]
    with (run / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["time/total_timesteps"]) for row in rows] == [64, 128, 192, 256]
    assert {"train/loss", "rollout/ep_rew_mean", "selfplay/win_rate", "selfplay/rating"} <= set(rows[0])
    game = Replay.load(run / "game.jsonl")
    assert set(game.names) == {"PPO", "random", "greedy", "survivor"}
    with Image.open(run / "game.gif") as film:
        assert film.n_frames > 1
    assert (run / "game.html").read_text() == game.html()
    assert list((run / "tensorboard").rglob("events*"))
    assert {path.name for path in run.rglob(".*")} == {".lock"}  # of the pool; no temporary names are left
    assert said[0] == f"{run}: PPO for 256 steps"
    assert said[1].startswith("0 steps: wins ")
    assert "PPO's updates" in said[-2]


def test_the_report_shows_it_all_and_needs_nothing(tmp_path: Path) -> None:
    train(tmp_path, TINY, quiet)
    page = (tmp_path / "report.html").read_text()
    for text in ("Win rates against bots", "Self-play", "The pool", "A game", "Settings", "against survivor", "game.html"):
        assert text in page
    assert page.count("<svg") >= 2
    assert "snapshot" in page
    assert not re.search(r"(src|href)=[\"'](?!#|data:|game\.html)", page)
    assert not re.search(r"url\((?!#)", page)


@pytest.mark.slow
def test_config_json_reproduces_the_run(tmp_path: Path) -> None:
    first = train(tmp_path / "a", TINY, quiet)
    assert Recipe.load(tmp_path / "a" / "config.json") == TINY
    arguments = ["train", "--config", str(tmp_path / "a" / "config.json"), "--out", str(tmp_path / "b")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "b" / "eval.json").read_text()) == first


def test_a_run_without_a_seed_draws_one_and_keeps_it(tmp_path: Path) -> None:
    recipe = dataclasses.replace(TINY, total_timesteps=64, seed=None, opponent="random")
    train(tmp_path / "a", recipe, quiet)
    train(tmp_path / "b", recipe, quiet)
    seeds = [Recipe.load(tmp_path / name / "config.json").seed for name in "ab"]
    assert None not in seeds
    assert seeds[0] != seeds[1]


def test_who_plays_the_enemy_seats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "adapters.vec_env.curry.CurryVecEnv.set_opponent", lambda self, spec, when="restart": given.append(spec)
    )
    for name, opponent in (("a", "self"), ("b", {"self": 2, "survivor": 1}), ("c", "greedy")):
        train(tmp_path / name, dataclasses.replace(TINY, total_timesteps=64, opponent=opponent), quiet)
    own, mixed, bot = given
    assert isinstance(own.source, OpponentPool)
    assert mixed.members[0].source.folder == tmp_path / "b" / "pool"
    assert mixed.members[1] == parse("survivor")
    assert mixed.shares == pytest.approx((2 / 3, 1 / 3))
    assert bot == parse("greedy")


@pytest.mark.parametrize("learners", [2, 4, "all"])
def test_several_snakes_learn(tmp_path: Path, learners: int | str) -> None:
    result = train(tmp_path, dataclasses.replace(TINY, learners=learners, total_timesteps=512), quiet)
    assert result["measured"][-1]["steps"] == 512
    assert PPO.load(tmp_path / "model.zip").n_envs == 4 * (4 if learners == "all" else int(learners))


@pytest.mark.parametrize("rules", ["battlesnake", "hungry_geese"])
def test_every_rule_set_can_be_learned(tmp_path: Path, rules: str) -> None:
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=64, rules=rules, width=7, height=9, num_snakes=2), quiet)
    game = Replay.load(tmp_path / "game.jsonl")
    assert (game.rules.width, game.rules.height, game.rules.num_snakes) == (7, 9, 2)


class Interrupt(BaseCallback):
    """Ctrl-C, or for those who do not catch it a kill, in the middle of a rollout."""

    at = 150

    def __init__(self, *args: Any) -> None:
        super().__init__()

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.at:
            raise KeyboardInterrupt
        return True


def test_ctrl_c_keeps_what_was_learned_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(training, "Progress", Interrupt)
        result = train(tmp_path, TINY, said.append)
    assert result["measured"][-1]["steps"] == PPO.load(tmp_path / "model.zip").num_timesteps == 152
    assert f"interrupted after 152 steps; continue with --resume {tmp_path}" in said
    assert (tmp_path / "report.html").exists()
    result = resume(tmp_path, say=said.append)
    assert "going on after 152 steps, to 256, however long it takes; --minutes sets a limit" in said
    assert [entry["steps"] for entry in result["measured"]] == [0, 128, 152, 280]
    with (tmp_path / "progress.csv").open() as file:
        assert [int(row["time/total_timesteps"]) for row in csv.DictReader(file)] == [64, 128, 216, 280]


def test_a_killed_run_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", TINY, quiet)

    class Killed(BaseException):
        pass

    class Kill(Interrupt):
        def _on_step(self) -> bool:
            if self.num_timesteps >= self.at:
                raise Killed
            return True

    for at, run in ((40, lambda: train(tmp_path / "cut", TINY, quiet)), (150, lambda: resume(tmp_path / "cut", say=quiet))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "Progress", Kill)
            patch.setattr(Kill, "at", at)
            with pytest.raises(Killed):
                run()
    assert resume(tmp_path / "cut", say=quiet) == whole
    models = [PPO.load(tmp_path / name / "model.zip") for name in ("whole", "cut")]
    for one, other in zip(*(model.policy.state_dict().values() for model in models), strict=True):
        assert one.equal(other)
    pools = [OpponentPool(tmp_path / name / "pool") for name in ("whole", "cut")]
    assert pools[0].learner == pools[1].learner
    ends = []
    for name in ("whole", "cut"):
        with (tmp_path / name / "progress.csv").open() as file:
            rows = list(csv.DictReader(file))
        ends.append([{key: row[key] for key in row if not key.startswith(("time/", "selfplay/opponent_time"))} for row in rows])
    assert ends[0] == ends[1]
    assert len(ends[0]) == 4
    assert all(row["train/loss"] and row["rollout/ep_rew_mean"] for row in ends[0])  # the first ones after resuming, too


@pytest.mark.slow
def test_sigkill_twice_and_resume(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from adapters.command.main import app; app()", "train"]
    run = str(tmp_path / "run")
    reached = [0]
    for arguments in (
        ["--out", run, "--games", "8", "--snapshot-every", "512", "--teacher-steps", "0", "--seed", "1"],
        ["--resume", run],
    ):
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            pool = OpponentPool(tmp_path / "run" / "pool")
            if pool.latest is not None and pool.latest.step >= reached[-1] + 1024:
                break
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.wait()
        reached.append(OpponentPool(tmp_path / "run" / "pool").latest.step)
    pool = OpponentPool(tmp_path / "run" / "pool")
    ratings, games = pool.learner["ratings"], sum(member.games for member in pool.members)
    assert ratings
    assert games > 0
    assert pool.learner["steps"] == reached[-1]
    done = subprocess.run(
        [*command, "--resume", run, "--steps", str(reached[-1] + 1024)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"going on after {reached[-1]:,} steps" in done.stdout
    after = OpponentPool(tmp_path / "run" / "pool")
    assert after.latest.step == reached[-1] + 1024
    assert set(pool.learner["ratings"]) <= set(after.learner["ratings"])
    assert (tmp_path / "run" / "report.html").exists()


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    said: list[str] = []
    result = train(tmp_path, dataclasses.replace(TINY, total_timesteps=64), quiet)
    with pytest.raises(
        FolderTakenError,
        match=r"holds a run already \(config.json, pool, model.zip, eval.json, progress.csv\): go on with it by --resume",
    ):
        train(tmp_path, TINY, quiet)
    with pytest.raises(ValueError, match="holds no run to resume"):
        resume(tmp_path / "nowhere", say=quiet)
    for name in ("model.zip", "report.html", "game.jsonl"):  # as if it had been killed while it was writing these
        (tmp_path / name).unlink()
    assert resume(tmp_path, say=said.append) == result
    assert said[0] == "all 64 steps are done; --total-timesteps gives it more"
    assert all((tmp_path / name).exists() for name in ("model.zip", "report.html", "game.jsonl"))
    assert resume(tmp_path, total_timesteps=128, say=quiet)["measured"][-1]["steps"] == 128
    assert Recipe.load(tmp_path / "config.json").total_timesteps == 128
    (tmp_path / "config.json").unlink()
    with pytest.raises(FolderTakenError, match=r"holds a run already \(pool, model.zip, eval.json, progress.csv\)"):
        train(tmp_path, TINY, quiet)


def test_damaged_files_of_a_run_are_named_or_mended(tmp_path: Path) -> None:
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=128), quiet)
    with (tmp_path / "progress.csv").open("a") as file:
        file.write("1,2\0\0\n\0\0\0")
    resume(tmp_path, total_timesteps=192, say=quiet)
    with (tmp_path / "progress.csv").open() as file:
        assert [int(row["time/total_timesteps"]) for row in csv.DictReader(file)] == [64, 128, 192]
    damaged = {"steps": 1, "random": "much", "greedy": 0.5, "survivor": 0.5}
    for text in ("{}", '{"measured": [{"steps": 1}]}', '{"measured": [{"st', "[" * 10**5, json.dumps({"measured": [damaged]})):
        (tmp_path / "eval.json").write_text(text)
        with pytest.raises(ValueError, match=r"eval\.json is damaged"):
            resume(tmp_path, total_timesteps=256, say=quiet)
        with pytest.raises(ValueError, match=r"eval\.json is damaged"):
            write_report(tmp_path)
    (tmp_path / "eval.json").unlink()
    snapshot = OpponentPool(tmp_path / "pool").path(OpponentPool(tmp_path / "pool").latest)
    snapshot.write_bytes(snapshot.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"the last snapshot of the run in .* cannot be loaded"):
        resume(tmp_path, total_timesteps=256, say=quiet)


@pytest.mark.slow
def test_ctrl_c_while_it_is_taught_keeps_what_was_taught_and_the_run_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = dataclasses.replace(TINY, total_timesteps=64, teacher="greedy", teacher_steps=256)
    said: list[str] = []
    lessons = training.imitate

    def interrupted(model: Any, teacher: Any, steps: int, **kwargs: Any) -> None:
        lessons(model, teacher, steps // 2, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "imitate", interrupted)
        train(tmp_path / "run", recipe, said.append)
    assert f"interrupted during imitation; --resume {tmp_path / 'run'} begins with it again" in said
    assert said[-1] == f"{tmp_path / 'run'}: report.html, model.zip, game.html, game.gif, game.jsonl, eval.json"
    assert PPO.load(tmp_path / "run" / "model.zip").num_timesteps == 0
    result = resume(tmp_path / "run", say=quiet)
    assert result == train(tmp_path / "whole", recipe, quiet)
    learned, expected = (PPO.load(tmp_path / name / "model.zip").policy.state_dict() for name in ("run", "whole"))
    assert all(one.equal(other) for one, other in zip(learned.values(), expected.values(), strict=True))


def test_of_two_runs_that_begin_at_once_one_takes_the_next_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare = training._prepare

    def slow(out: Path, recipe: Recipe, trust: Any) -> Any:
        if not (out / "config.json").exists() and out.name == "snake":  # another run begins there meanwhile
            out.mkdir(parents=True)
            TINY.save(out / "config.json")
        return prepare(out, recipe, trust)

    monkeypatch.setattr(training, "_prepare", slow)
    TINY.save(tmp_path / "tiny.json")
    done = CliRunner().invoke(app, ["train", "--config", "tiny.json", "--steps", "64"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in Path("runs/snake").iterdir()} == {"config.json", ".lock"}
    assert Recipe.load(Path("runs/snake/config.json")) == TINY
    assert Path("runs/snake-2/model.zip").exists()


@pytest.mark.slow
@pytest.mark.parametrize("left", [[], [".lock"], ["config.json"], [".lock", "config.json"]])
def test_a_folder_that_a_kill_left_claimed_is_taken_by_the_next_run(
    left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path("runs/snake")
    run.mkdir(parents=True)
    for name in left:
        (run / name).touch()
    with pytest.raises(ValueError, match=r"holds no run to resume: expected a config\.json .*; --out begins one"):
        resume(run, say=quiet)
    dataclasses.replace(TINY, total_timesteps=64).save(tmp_path / "tiny.json")
    arguments = ["--out", str(run)] if len(left) == 1 else []
    done = CliRunner().invoke(app, ["train", "--config", "tiny.json", *arguments])
    assert done.exit_code == 0, done.output
    assert [path.name for path in Path("runs").iterdir()] == ["snake"]
    assert resume(run, total_timesteps=128, say=quiet)["measured"][-1]["steps"] == 128


def test_a_folder_whose_name_the_locale_cannot_read_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"this locale cannot read the name of the folder .*\\udce8': set PYTHONUTF8=1"):
        train(tmp_path / "\udce8", TINY, quiet)
    assert list(tmp_path.iterdir()) == []


def test_folders_of_runs_and_of_others_are_left_alone(tmp_path: Path) -> None:
    for number, name in enumerate(("config.json", "model.zip", "notes.txt"), 1):
        folder = tmp_path / ("snake" if number == 1 else f"snake-{number}")
        folder.mkdir()
        (folder / name).write_text("something")
    (tmp_path / "snake-4").touch()
    assert next(training.free_folders(tmp_path / "snake")) == tmp_path / "snake-5"


def test_a_folder_is_one_run_s_while_it_lasts(tmp_path: Path) -> None:
    train(tmp_path / "old", dataclasses.replace(TINY, total_timesteps=64), quiet)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "new").mkdir()
    with locked(tmp_path / "old"), locked(tmp_path / "new"):
        with pytest.raises(FolderTakenError, match=r"another process runs in .*old: wait until it has ended, or give another"):
            resume(tmp_path / "old", total_timesteps=128, say=quiet)
        with pytest.raises(FolderTakenError, match=r"another process runs in .*new:"):
            train(tmp_path / "new", TINY, quiet)
    assert {path: path.read_bytes() for path in before} == before
    assert [path.name for path in (tmp_path / "new").iterdir()] == [".lock"]


def test_a_run_whose_pool_has_lost_its_manifest_is_left_as_it_is(tmp_path: Path) -> None:
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=128), quiet)
    (tmp_path / "pool" / "manifest.json").rename(tmp_path / "manifest.json")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(ValueError, match=r"has snapshots but no manifest\.json: restore it"):
        resume(tmp_path, total_timesteps=256, say=quiet)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_two_processes_that_resume_one_run_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=64), quiet)
    prepare = training._prepare

    def meanwhile(out: Path, recipe: Recipe, trust: Any) -> Any:
        prepared = prepare(out, recipe, trust)
        OpponentPool(out / "pool").save()  # by the other process
        return prepared

    monkeypatch.setattr(training, "_prepare", meanwhile)
    done = CliRunner().invoke(app, ["train", "--resume", str(tmp_path), "--steps", "128"])
    assert done.exit_code == 2
    assert "snake-pz: another process has written to the pool" in " ".join(done.output.split())


@pytest.mark.slow
def test_a_run_that_was_killed_before_a_measurement_makes_up_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def measure(model: Any, recipe: Recipe, measured: Any = training.measure_against_bots) -> dict[str, float]:
        if model.num_timesteps == 128:
            raise Killed
        rates: dict[str, float] = measured(model, recipe)
        return rates

    with monkeypatch.context() as patch:
        patch.setattr(training, "measure_against_bots", measure)
        with pytest.raises(Killed):
            train(tmp_path / "run", TINY, quiet)
    assert resume(tmp_path / "run", say=quiet) == train(tmp_path / "whole", TINY, quiet)


@pytest.mark.slow
def test_a_game_that_cannot_be_shown_ends_no_training(tmp_path: Path) -> None:
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=64), quiet)
    (tmp_path / "game.jsonl").write_text("<no replay>")
    page = write_report(tmp_path).read_text()
    assert "It cannot be shown:" in page
    assert "is no snake-pz replay" in page
    assert resume(tmp_path, total_timesteps=256, say=quiet)["measured"][-1]["steps"] == 256
    assert "It cannot be shown:" not in (tmp_path / "report.html").read_text()


def test_nothing_is_said_of_time_where_nothing_was_learned(tmp_path: Path) -> None:
    said: list[str] = []
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=64), said.append)
    assert any("of training" in line for line in said)
    said.clear()
    resume(tmp_path, say=said.append)
    assert not any("of training" in line for line in said)


def test_lines_do_not_run_into_the_progress_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    recipe = dataclasses.replace(TINY, total_timesteps=128, measure_every=64, teacher="greedy", teacher_steps=256)
    said: list[str] = []
    train(tmp_path, recipe, lambda line: said.append(line) or print(line))  # type: ignore[func-returns-value]
    lines = screen.getvalue().split("\n")
    assert screen.getvalue().count("steps/s]") > 2  # bars were shown
    assert len(said) > 4
    for line in said:
        assert line in [shown.rpartition("\r")[2] for shown in lines]


def test_where_the_time_went_adds_up(tmp_path: Path) -> None:
    said: list[str] = []
    train(tmp_path, dataclasses.replace(TINY, total_timesteps=64, teacher="greedy", teacher_steps=256), said.append)
    shares = {name: int(share) for name, share in re.findall(r"([A-Za-z' ]+) (\d+)%", said[-2])}
    assert {name.strip() for name in shares} == {
        "imitation", "PPO's updates", "opponents", "the rest of the rollouts", "snapshots and measuring",
    }  # fmt: skip
    assert 97 <= sum(shares.values()) <= 103


def test_the_teacher_comes_first_and_once(tmp_path: Path) -> None:
    recipe = dataclasses.replace(TINY, teacher="greedy", teacher_steps=256, measure_every=10**6)
    said: list[str] = []
    whole = train(tmp_path / "whole", recipe, said.append)
    assert said[0] == f"{tmp_path / 'whole'}: imitating greedy for 256 steps, then PPO for 256 steps"
    assert re.match(r"plays as greedy would in \d+% of 256 steps", said[1])
    assert said[2].startswith("after imitating greedy: wins ")
    assert "256 steps of PPO, after 256 of imitating greedy" in (tmp_path / "whole" / "report.html").read_text()
    plain = train(tmp_path / "plain", dataclasses.replace(recipe, teacher_steps=0), quiet)
    firsts = [PPO.load(tmp_path / name / "pool" / "snapshot_0.zip").policy.state_dict() for name in ("whole", "plain")]
    assert any(not one.equal(other) for one, other in zip(firsts[0].values(), firsts[1].values(), strict=True))
    assert plain["measured"][-1]["steps"] == whole["measured"][-1]["steps"] == 256
    said.clear()
    resume(tmp_path / "whole", total_timesteps=320, say=said.append)
    assert not any("would do" in line for line in said)


def test_minutes_end_the_learning(tmp_path: Path) -> None:
    result = train(tmp_path, dataclasses.replace(TINY, total_timesteps=10**9, minutes=1e-4), quiet)
    assert result["measured"][-1]["steps"] < 10_000


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"num_games": 0}, "num_games must be >= 1, got 0"),
        ({"num_games": "8"}, "num_games must be an int, got '8'"),
        ({"num_games": 10**9}, "num_games must be <= 65536, got 1000000000"),
        ({"n_steps": 10**9}, "n_steps must be <= 65536, got 1000000000"),
        ({"total_timesteps": 10**30}, "total_timesteps must be <= 1000000000000, got 1"),
        ({"measure_games": 10**9}, "measure_games must be <= 100000, got 1000000000"),
        ({"minutes": float("inf")}, "minutes must be <= 10000000.0, got inf"),
        ({"minutes": float("nan")}, "minutes must be <= 10000000.0, got nan"),
        ({"ent_coef": float("inf")}, "ent_coef must be <= 1000, got inf"),
        ({"rewards": {"food": float("-inf")}}, "rewards must have a number for each name"),
        ({"minutes": 0}, "minutes must be >= 1e-09, got 0"),
        ({"learners": "both"}, "learners must be a number >= 1 or \"all\", got 'both'"),
        ({"rules": "chess"}, "rules must be one of"),
        ({"width": 1}, "width must be"),
        ({"rewards": {"fod": 1}}, "fod"),
        ({"rewards": None}, "rewards must have a number for each name, got None"),
        ({"opponent": 5}, "opponent must have a number for each name, got 5"),
        ({"opponent": {"self": "2"}}, "opponent must have a number for each name"),
        ({"opponent": {"self": -1}}, "opponent must have a number for each name"),
        ({"teacher_steps": "x"}, "teacher_steps must be an int, got 'x'"),
        ({"learning_rate": "a"}, "learning_rate must be a number, got 'a'"),
        ({"gamma": 7}, "gamma must be <= 1, got 7"),
        ({"ent_coef": None}, "ent_coef must be a number, got None"),
        ({"seed": 2**40}, "seed must be <= 4294967295, got 1099511627776"),
        ({"seed": 1.5}, "seed must be an int, got 1.5"),
        ({"learners": True}, "learners must be a number >= 1"),
        ({"batch_size": 1}, "batch_size must be >= 2, got 1"),
        ({"n_steps": 1}, "n_steps must be >= 2, got 1"),
    ],
)
def test_a_recipe_checks_itself(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        dataclasses.replace(TINY, **change)


def test_fewer_steps_bring_fewer_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Recipe] = []
    monkeypatch.setattr(training, "train", lambda out, recipe, say, **settings: ran.append(recipe))
    plain = Recipe()
    lessons = dataclasses.replace(TINY, teacher_steps=64)
    lessons.save(tmp_path / "tiny.json")
    for arguments, expected in (
        (["--steps", "300000"], plain.teacher_steps // 10),
        (["--steps", "30000000"], plain.teacher_steps),
        (["--steps", "300000", "--teacher-steps", "7"], 7),
        (["--config", str(tmp_path / "tiny.json"), "--steps", "64"], 64),
    ):
        assert CliRunner().invoke(app, ["train", *arguments]).exit_code == 0
        assert ran[-1].teacher_steps == expected


def test_opponents_on_the_command_line() -> None:
    assert parse_opponent(["self"]) == "self"
    assert parse_opponent(["self=3", "survivor"]) == {"self": 3.0, "survivor": 1.0}
    assert parse_opponent(["runs/a=b/pool=0.5"]) == {"runs/a=b/pool": 0.5}
    with pytest.raises(ValueError, match="NAME=SHARE, such as self=2, got 'self=much'"):
        parse_opponent(["self=much"])
    with pytest.raises(ValueError, match="named once, got 'greedy' twice"):
        parse_opponent(["greedy=1", "greedy=2"])


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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--opponent", "missing.zip"], "no checkpoint at 'missing.zip'"),
        (["--opponent", "greddy"], "did you mean 'greedy'?"),
        (["--opponent", "self=2", "--opponent", "greddy=1"], "did you mean 'greedy'?"),
        (["--total-timesteps", "0"], "total_timesteps must be >= 1, got 0"),
        (["--num-games", "0"], "num_games must be >= 1, got 0"),
        (["--learners", "some"], "learners must be a number >= 1"),
        (["--learners", "5"], "learners must be from 0 to 4"),
        (["--teacher", "nobody"], "nobody"),
        (["--teacher-steps", "-1"], "teacher_steps must be >= 0, got -1"),
        (["--config", "nowhere.json"], "nowhere.json"),
        (["--config", BINARY], "is no recipe: expected the JSON of a config.json"),
        (["--out", BINARY], "expected a folder to keep the run in, got the file"),
        (["--learners", "4", "--opponent", "greedy"], "--opponent has no seat where all 4 snakes learn"),
        (["--learners", "all", "--opponent", "greedy"], "--opponent has no seat where all 4 snakes learn"),
        (["--seed", "-1"], "seed must be >= 0, got -1"),
        (["--resume", "nowhere", "--games", "8"], "only --total-timesteps and --minutes go with --resume"),
        (["--device", "banana"], "banana"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(arguments: list[str], text: str, tmp_path: Path) -> None:
    out = [] if "--resume" in arguments else ["--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["train", *out, *arguments])
    assert done.exit_code == 2, done.output
    assert text in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert "Traceback" not in done.output
    assert not (tmp_path / "run" / "config.json").exists()


def test_the_command_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--quick", "--steps", "64", "--games", "2", "--learners", "2", "--teacher", "greedy", "--teacher-steps", "256"]
    for folder in ("snake", "snake-2"):
        done = CliRunner().invoke(app, ["train", *arguments])
        assert done.exit_code == 0, done.output
        assert (tmp_path / "runs" / folder / "model.zip").is_file()
