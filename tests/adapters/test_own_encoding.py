"""Encodings and rewards of users: everybody plays as before, and policies are shown what they were trained on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from stable_baselines3 import PPO
from typer.testing import CliRunner

from adapters import OpponentPool, frozen, make_sb3_env, tournament
from adapters.command.human_seats import seat_humans
from adapters.command.main import app
from adapters.games.native import NativeGameBatch
from snake_pz import Encoding, Rules, SnakeState, head_cells, register_encoding, snake_v0
from snake_pz.core import encodings
from snake_pz.core.actions import action_space
from snake_pz.play.local_match import LocalMatch
from tests.support.cue_env import CueEnv

CONFUSED = 9
"""A number that `write_number` never shows."""


def write_number(state: SnakeState, rules: Rules) -> Any:
    """Which snake it is, and where its head is."""
    return np.stack([np.broadcast_to(np.arange(rules.num_snakes), state.alive.shape), head_cells(state)], axis=-1)


def write_other(state: SnakeState, rules: Rules) -> Any:
    return np.full((*state.alive.shape, 2), CONFUSED)


SPACE = Box(-1, 1000, (2,), np.float32)
OWN, OTHER = Encoding("own", SPACE, write_number), Encoding("other", SPACE, write_other)


def pay(before: SnakeState, events: Any, after: SnakeState) -> Any:
    return after.turn[:, None] + 10 * events.moved


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_registered", {})


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    env = make_sb3_env("random", env_kwargs={"observation": OWN}, num_games=1)
    PPO("MlpPolicy", env, n_steps=2, batch_size=2, device="cpu").save(tmp_path / "own.zip")
    return tmp_path / "own.zip"


def shown_to(monkeypatch: pytest.MonkeyPatch, play: Callable[[], object]) -> np.ndarray:
    """All observations of shape (B, 2) that networks are given while `play` is called."""
    seen: list[np.ndarray] = []
    flatten = torch.nn.Flatten.forward
    monkeypatch.setattr(
        torch.nn.Flatten, "forward", lambda self, x: (seen.append(x.numpy()) if x.shape[1:] == (2,) else 0, flatten(self, x))[1]
    )
    play()
    return np.concatenate(seen)


def turns(env: Any, count: int = 3) -> list[Any]:
    results = [env.reset()]
    for _ in range(count):
        results += env.step(np.zeros(env.num_envs, int))[:3]
    return results


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_learners_see_the_encoding_and_get_the_rewards(backend: Any) -> None:
    kwargs = {"observation": OWN, "rewards": pay}
    env = make_sb3_env("random", env_kwargs=kwargs, num_games=3, learners=["snake_2"], backend=backend, seed=1)
    observations, *steps = turns(env)
    assert (observations[:, 0] == 2).all()
    assert steps[1].tolist() == [11, 11, 11]
    assert steps[4].tolist() == [12, 12, 12]
    env.close()


def test_everybody_else_plays_as_before() -> None:
    opponents, games = ["survivor", "champion", "greedy"], []
    for kwargs in ({}, {"observation": OWN, "rewards": pay}):
        env = make_sb3_env(opponents, env_kwargs=kwargs, num_games=4, learners=["snake_0"], device="cpu", seed=5)
        turns(env, 8)
        games.append(np.stack(env.env_method("state")))
        env.close()
    np.testing.assert_array_equal(*games)


def test_a_policy_is_shown_the_encoding_that_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"if it was trained on an encoding of your own, name that: frozen\(\.\.\., encode="):
        make_sb3_env(trained, num_games=1)
    words = ["greedy", frozen(trained, encode=OWN, device="cpu"), "greedy"]
    env = make_sb3_env(words, num_games=2, learners=["snake_0"], seed=0)
    seen = shown_to(monkeypatch, lambda: turns(env))
    assert (seen[:, 0] == 2).all()  # the second enemy seat is the third snake
    assert len(seen) == 6


def test_a_name_is_enough_once_it_is_registered(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="got 'own': pass an encoding of your own as an Encoding, or register_encoding"):
        make_sb3_env(frozen(trained, encode="own"), num_games=1)
    register_encoding(OWN)
    assert CONFUSED not in shown_to(monkeypatch, lambda: turns(make_sb3_env(trained, num_games=1, seed=0)))[:, 0]
    register_encoding(OTHER)
    with pytest.raises(ValueError, match="several encodings have the space"):
        make_sb3_env(trained, num_games=1)
    turns(make_sb3_env(frozen(trained, encode="own"), num_games=1, seed=0))


def test_a_pool_remembers_the_encoding_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_sb3_env("random", env_kwargs={"observation": OWN}, num_games=1)
    model = PPO("MlpPolicy", env, n_steps=2, batch_size=2, device="cpu")
    pool = OpponentPool(tmp_path / "pool")
    assert pool.add(model, step=1).encoding == "own"
    assert OpponentPool(tmp_path / "pool").members == pool.members
    with pytest.raises(ValueError, match=r"'snapshot_1' of the pool .* cannot play here: .*got 'own': .*register_encoding"):
        make_sb3_env(str(pool.folder), env_kwargs={"observation": OTHER}, num_games=1)
    turns(make_sb3_env(str(pool.folder), env_kwargs={"observation": OWN}, num_games=1, seed=0))  # the games have it
    register_encoding(OWN)
    there = make_sb3_env(str(pool.folder), env_kwargs={"observation": OTHER}, num_games=1, seed=0)
    assert CONFUSED not in shown_to(monkeypatch, lambda: turns(there))[:, 0]


def test_a_pool_of_built_in_encodings_has_no_names(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", make_sb3_env("random", num_games=1), n_steps=2, batch_size=2, device="cpu")
    assert OpponentPool(tmp_path / "pool").add(model, step=1).encoding is None


def test_it_is_rated_and_meets_people(trained: Path) -> None:
    register_encoding(OWN)
    standings = tournament([trained, "champion", "greedy"], games=8, device="cpu")
    assert len(standings.standings) == 3
    people = seat_humans(Rules(), 1, [str(trained)], device="cpu")
    match = LocalMatch(Rules(), people)
    match.start(0)
    match.decide([1, 2, 3])
    match.turn()
    assert match.engine.state.turn[0] == 1


def test_encodings_are_for_the_snake(trained: Path) -> None:
    with pytest.raises(ValueError, match=r"encode= is for the snake of this package, which these games are not"):
        make_sb3_env(frozen(trained, encode=OWN), env=CueEnv, num_games=1)
    with pytest.raises(ValueError, match=r"only bot .* an Encoding or a function of rewards, see docs/own-encoding\.md"):
        make_sb3_env("greedy", env=lambda: snake_v0.parallel_env(), num_games=1)


def test_an_encoding_in_the_space_of_a_built_in_one_is_refused() -> None:
    own = Encoding("own", Box(0, 255, (7, 11, 11), np.uint8), lambda state, rules: np.zeros((1, 4, 7, 11, 11), np.uint8))
    with pytest.raises(ValueError, match="encoding 'own' has the space of 'board' on a 11x11 board"):
        NativeGameBatch(1, env_kwargs={"observation": own})


def test_views_of_an_encoding_have_both_action_sets() -> None:
    games = NativeGameBatch(2)
    games.reset([1, 2], [{}, {}])
    view = games.encoded(OWN, action_space("relative"))
    assert sorted(view.observations()[0, :, 0]) == [0, 1, 2, 3]
    assert view.action_masks().shape == (2, 4, 3)


def test_the_command_imports_what_registers_it(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "my_encoding", None)
    del sys.modules["my_encoding"]  # and again after the test
    lines = ["import gymnasium, numpy, snake_pz", "space = gymnasium.spaces.Box(-1, 1000, (2,))"]
    lines += ["write = lambda state, rules: numpy.zeros((*state.alive.shape, 2))"]
    lines += ["snake_pz.register_encoding(snake_pz.Encoding('own', space, write))"]
    Path("my_encoding.py").write_text("\n".join(lines))
    words = ["tournament", "own.zip", "greedy", "--games", "4", "--json", "-"]
    assert CliRunner().invoke(app, words).exit_code != 0
    result = CliRunner().invoke(app, ["--import", "my_encoding", *words])
    assert result.exit_code == 0, result.output
    assert "no_such_module" in CliRunner().invoke(app, ["--import", "no_such_module", *words]).output
