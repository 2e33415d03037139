"""The policy that comes with the package: an ordinary checkpoint, small, and as strong as its card says."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from typer.testing import CliRunner

from adapters import frozen, make_sb3_env
from adapters.command.main import app
from adapters.evaluation.evaluate import play_games
from adapters.opponents.parse import CHAMPION
from snake_pz import Rules

torch.set_num_threads(1)

ENV: dict[str, Any] = {"observation": "egocentric", "actions": "relative"}


def test_it_is_an_ordinary_checkpoint_of_under_two_megabytes_with_a_card() -> None:
    assert CHAMPION.stat().st_size < 2_000_000
    env = make_sb3_env("champion", env_kwargs=ENV, num_games=4, seed=0)
    model = PPO.load(CHAMPION, env, device="cpu", custom_objects={"n_steps": 8, "batch_size": 16})
    model.learn(64, reset_num_timesteps=False)  # and one can learn on from it
    card = CHAMPION.with_suffix(".md").read_text(encoding="utf-8")
    assert hashlib.sha256(CHAMPION.read_bytes()).hexdigest() in card
    env.close()


def test_it_plays_under_its_name_whatever_the_learner_sees() -> None:
    env = make_sb3_env(["champion", frozen("champion", deterministic=True), "random"], num_games=2)
    assert env.lineup.names(0) == ("champion", "champion", "random")
    assert len(env.lineup.opponents) == 3
    env.close()
    with pytest.raises(ValueError, match=r"'champion' cannot play in these games.*7x7 board"):
        make_sb3_env("champion", env_kwargs={"width": 7, "height": 7})


@pytest.mark.parametrize(
    "rules", [Rules(height=5), Rules.hungry_geese(), Rules(edge="wrap"), Rules.battlesnake(num_snakes=2), Rules(num_snakes=8)]
)
def test_its_spaces_alone_decide_where_it_plays(rules: Rules) -> None:
    env = make_sb3_env("champion", env_kwargs={"rules": rules}, num_games=2, seed=0)
    env.reset()
    env.step(np.zeros(2, np.int64))
    assert set(env.lineup.names(0)) == {"champion"}
    env.close()


def test_a_file_of_that_name_is_another_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "champion.zip").write_bytes(b"no checkpoint")
    make_sb3_env("champion", num_games=1).close()
    with pytest.raises(ValueError, match=r"champion\.zip is no SB3 checkpoint"):
        make_sb3_env("champion.zip", num_games=1)


def test_it_can_be_watched() -> None:
    done = CliRunner().invoke(app, ["watch", "--players", "champion", "random", "--max-cycles", "5", "--ansi"])
    assert done.exit_code == 0, done.output
    assert "champion" in done.output


@pytest.mark.slow
@pytest.mark.parametrize(("bot", "least"), [("random", 0.97), ("greedy", 0.70), ("survivor", 0.42)])
def test_it_is_as_strong_as_its_card_says(bot: str, least: float) -> None:
    results = play_games(["champion", bot, bot, bot], games=400, seed=5, device="cpu")
    assert results.win_rates[0] > least
