"""Checkpoints of other versions of Stable-Baselines3, and of Gym: they load and answer as where they were made."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import ARS
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from adapters import frozen, load_model
from adapters.games.space_words import hidden_difference
from adapters.opponents.checkpoints import load_policy
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.preprocessing import Preprocessing
from adapters.opponents.statistics import load_statistics
from tests.support.checkpoint_files import pickled, rewrite
from tests.support.toys import ON, PICTURE, VECTOR, WORLD, Toy, act, observe, resolve

DATA = Path(__file__).parents[2] / "data" / "elsewhere"
FILES = sorted(DATA.glob("*/*.zip"))
ROWS = 32


def seen(name: str) -> Any:
    """What `make.py` there shows, before it is normalised."""
    rng = np.random.default_rng(0)
    vectors, numbers = rng.uniform(-1, 1, (ROWS, 3)).astype(np.float32), rng.integers(3, size=ROWS)
    if name == "ppo_dict":
        return {"a": numbers, "b": rng.uniform(-1, 1, (ROWS, 3)).astype(np.float32)}
    return 5 * vectors + 3 if name == "ppo_normalized" else vectors


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_of_elsewhere_answers_as_it_did_there(path: Path) -> None:
    with np.load(path.parent / "answers.npz") as answers:
        expected = answers[path.stem]
    opponent = PolicyOpponent(path, deterministic=True, device="cpu")
    answered = opponent.act(seen(path.stem), np.arange(ROWS), None)
    np.testing.assert_allclose(answered, expected, rtol=1e-5, atol=1e-5)
    assert len(np.unique(expected, axis=0)) > 1
    assert isinstance(opponent.action_space, spaces.Space)


def test_every_family_is_there() -> None:
    names = {path.stem for path in FILES}
    for folder in ("sb3_1_8", "sb3_2_3", "sb3_2_9"):
        assert names - {path.stem for path in (DATA / folder).glob("*.zip")} <= {"crossq"}
    assert b"gym.spaces" in zipfile.ZipFile(DATA / "sb3_1_8" / "ppo.zip").read("data").replace(b"Z3ltLnNwYWNlcy", b"gym.spaces")
    assert "gym" not in sys.modules


def test_a_model_of_gyms_time_learns_on() -> None:
    env = DummyVecEnv([lambda: Toy(spaces.Box(-1, 1, (3,)))])
    path = DATA / "sb3_1_8" / "ppo.zip"
    with pytest.raises(
        ValueError, match=r"clip_range in .*ppo\.zip asks for cloudpickle.*or give such a setting by custom_objects"
    ):
        load_model(PPO, path, env, device="cpu")
    model = load_model(PPO, path, env, device="cpu", custom_objects={"clip_range": 0.2})
    model.learn(16, reset_num_timesteps=False)
    with pytest.warns(UserWarning, match="DQN model saved with SB3 < 2.4.0"):
        load_model(DQN, DATA / "sb3_2_3" / "dqn.zip", env, device="cpu")


def test_statistics_of_gyms_time_fit_the_games() -> None:
    statistics = load_statistics(DATA / "sb3_1_8" / "ppo_normalized_vecnormalize.pkl")
    assert statistics is not None
    shown = spaces.Box(-1, 1, (3,), np.float64)  # as the bounds are, which is what counts
    way = Preprocessing(spaces.Box(-1, 1, (3,), np.float32), [shown], statistics)
    assert way.observation_space == shown
    with pytest.raises(ValueError, match="expected statistics of these games"):
        Preprocessing(spaces.Box(-1, 1, (3,), np.float32), [spaces.Box(-2, 1, (3,))], statistics)


@pytest.mark.parametrize("policy", ["MlpPolicy", "LinearPolicy"])
def test_a_policy_of_ars_plays_from_its_file(policy: str, tmp_path: Path) -> None:
    model = ARS(policy, Toy(), n_delta=1, device="cpu", seed=0)
    model.save(tmp_path / "ars.zip")
    opponent = resolve(tmp_path / "ars.zip", **WORLD, deterministic=True)
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


class Renamed(ActorCriticPolicy):
    """Its third argument is a schedule, called otherwise; optimisers are not for the caller to choose."""

    def __init__(
        self, observation_space: Any, action_space: Any, schedule: Any, net_arch: Any = None, use_sde: bool = False
    ) -> None:
        super().__init__(observation_space, action_space, schedule, net_arch=net_arch)


def test_a_policy_is_made_by_its_own_signature(tmp_path: Path) -> None:
    model = PPO(Renamed, Toy(), policy_kwargs={"net_arch": [5]}, batch_size=16, **ON)
    model.save(tmp_path / "own.zip")
    opponent = PolicyOpponent(tmp_path / "own.zip", deterministic=True, device="cpu", trust=[f"{__name__}.Renamed"])
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


def test_settings_of_before_sb3_1_8_are_understood(tmp_path: Path) -> None:
    """`net_arch` was a list around a dict, `device` an argument of policies, and the extractor had one name of three."""
    model = PPO("CnnPolicy", Toy(PICTURE), batch_size=16, **ON)
    model.save(tmp_path / "now.zip")
    weights = {key: value for key, value in model.policy.state_dict().items() if not key.startswith(("pi_", "vf_"))}
    assert len(weights) < len(model.policy.state_dict())
    content = io.BytesIO()
    torch.save(weights, content)
    old = rewrite(
        tmp_path / "now.zip",
        tmp_path / "old.zip",
        {"policy.pth": content.getvalue()},
        policy_kwargs={"net_arch": [{"pi": [], "vf": []}], "device": "cuda:7"},
    )
    loaded = load_policy(old, "cpu").state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in model.policy.state_dict().items())


def test_custom_objects_stand_in_for_what_cannot_be_read(trained: Any, tmp_path: Path) -> None:
    model, path = trained("ppo")
    alien = rewrite(path, tmp_path / "a.zip", policy_class=pickled(b"calien_package\nThing\n."))
    with pytest.raises(ValueError, match=r"policy_class in .*a\.zip asks for alien_package\.Thing"):
        resolve(alien, **WORLD)
    word = frozen(alien, custom_objects={"policy_class": ActorCriticPolicy}, deterministic=True)
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(resolve(word, **WORLD), observations), model.predict(observations, deterministic=True)[0])
    assert word != frozen(alien, deterministic=True)


def test_a_file_that_cannot_be_read_says_what_works(trained: Any, tmp_path: Path) -> None:
    broken = rewrite(trained("ppo")[1], tmp_path / "b.zip", observation_space=pickled(b"\x80\x05junk"))
    with pytest.raises(
        ValueError, match=r"observation_space in .*b\.zip cannot be unpickled.*pass the live model in place of the path"
    ):
        PolicyOpponent(broken, device="cpu")
    with pytest.raises(ValueError, match=r"b\.zip cannot be rebuilt.*pass the live model in place of the path"):
        PolicyOpponent(rewrite(trained("ppo")[1], tmp_path / "b.zip", policy_kwargs={"net_arch": [3]}), device="cpu")


def long_box(raised: int) -> spaces.Box:
    """Printed with dots where it is raised."""
    low = np.arange(2000) % 2
    low[raised] += 1
    return spaces.Box(low, np.full(2000, 5), dtype=np.int64)


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (long_box(1000), long_box(1001), r"differ in low\[1000\], 1 against 0\)"),
        (spaces.Dict(a=long_box(1000)), spaces.Dict(a=long_box(1001)), r"differ in 'a': low\[1000\], 1 against 0\)"),
        (spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([2, 3], dtype=np.int32), "differ in dtype, int64 against int32"),
        (VECTOR, VECTOR, ""),
        (VECTOR, PICTURE, ""),
    ],
)
def test_spaces_that_print_alike_say_in_what_they_differ(one: Any, other: Any, text: str) -> None:
    found = hidden_difference(one, other)
    assert re.search(text, found) if text else found == ""


def test_a_misfit_that_prints_alike_is_told() -> None:
    statistics = VecNormalize(DummyVecEnv([lambda: Toy(long_box(1000))]))
    with pytest.raises(
        ValueError, match=r"printed alike, but differ in low\[1000\], 1 against 0\): expected statistics of these"
    ):
        Preprocessing(VECTOR, [long_box(1001)], statistics)
