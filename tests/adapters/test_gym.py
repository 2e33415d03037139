"""Gymnasium's faces: one game as an Env, many as a VectorEnv."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_for_sb3
from stable_baselines3.common.env_util import make_vec_env

from adapters import make_gym_env, make_gym_vec, make_sb3_env
from tests.support.cue_env import CueEnv
from tests.support.scripted_env import ScriptedEnv

SNAKE = "snake_pz/SnakeVsBots-v0"


def play(env: Any, seed: int, steps: int = 60) -> list[Any]:
    """What an Env gives for a fixed series of actions, resets included."""
    rng, seen = np.random.default_rng(seed), [env.reset(seed=seed)]
    for _ in range(steps):
        seen.append(env.step(int(rng.integers(env.action_space.n))))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


def test_the_checkers_of_gymnasium_and_sb3_have_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(SNAKE, opponent="random").unwrapped)
        check_env(gymnasium.make(SNAKE, opponent="greedy", render_mode="rgb_array").unwrapped)
        check_for_sb3(gymnasium.make(SNAKE))
        check_env(make_gym_env("random", env=CueEnv), skip_render_check=True)


def test_an_env_is_the_game_of_the_vec_env() -> None:
    env, venv = make_gym_env("greedy"), make_sb3_env("greedy", num_games=1, seed=5)
    observation, info = env.reset(seed=5)
    assert np.array_equal(observation, venv.reset()[0])
    assert info == venv.reset_infos[0]
    over = 0
    for action in np.random.default_rng(0).integers(0, 4, 100):
        observation, reward, terminated, truncated, info = env.step(int(action))
        observations, rewards, dones, infos = venv.step(np.array([action]))
        assert (reward, terminated or truncated) == (rewards[0], dones[0])
        assert not {"terminal_observation", "episode", "TimeLimit.truncated"} & set(info)
        if dones[0]:
            over += 1
            assert np.array_equal(observation, infos[0]["terminal_observation"])
            assert truncated == infos[0]["TimeLimit.truncated"]
            assert all(info[name] == infos[0][name] for name in ("placements", "agent", "is_success"))
            assert env.action_masks().dtype == np.bool_
            with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
                env.step(0)
            observation, info = env.reset()
            assert info == venv.reset_infos[0]
        assert np.array_equal(observation, observations[0])
        assert np.array_equal(env.action_masks(), venv.action_masks()[0])
    assert over > 3


def test_equal_seeds_give_equal_games_and_a_reset_in_between_goes_on() -> None:
    first, second = (play(make_gym_env("random"), 3) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one[0], other[0])
        assert one[1:] == other[1:]
    env = make_gym_env("random")
    seeds = [env.reset(seed=1)[1]["game_seed"], env.reset()[1]["game_seed"], env.reset(seed=1)[1]["game_seed"]]
    assert seeds[0] == seeds[2] != seeds[1]


def test_truncation_is_no_termination() -> None:
    env = make_gym_env("random", env=partial(ScriptedEnv, limit=5))
    env.reset(seed=0)
    for _ in range(20):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            break
    assert (terminated, truncated) == (False, True)


def test_a_vector_env_is_the_vec_env_with_restarts_in_the_same_step() -> None:
    envs, venv = gymnasium.make_vec(SNAKE, num_envs=4, opponent="greedy", flatten=False), make_sb3_env("greedy", num_games=4)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.spec is not None
    assert envs.spec.id == SNAKE
    venv.seed(2)
    observations, infos = envs.reset(seed=2)
    assert np.array_equal(observations, venv.reset())
    assert infos["game_seed"].tolist() == [info["game_seed"] for info in venv.reset_infos]
    ended = 0
    for actions in np.random.default_rng(0).integers(0, 4, (60, 4)):
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        expected, paid, dones, said = venv.step(actions)
        assert np.array_equal(observations, expected)
        assert np.array_equal(rewards, paid)
        assert np.array_equal(terminations | truncations, dones)
        for env in np.flatnonzero(dones):
            ended += 1
            assert np.array_equal(infos["final_obs"][env], said[env]["terminal_observation"])
            assert infos["final_info"]["placements"]["snake_0"][env] == said[env]["placements"]["snake_0"]
            assert infos["game_seed"][env] == venv.reset_infos[env]["game_seed"]
        assert ("final_obs" in infos) == dones.any()
    assert ended > 5


def test_flat_observations_are_the_planes_between_0_and_1() -> None:
    flat, planes = (gymnasium.make_vec(SNAKE, num_envs=3, flatten=flatten) for flatten in (True, False))
    one, other = flat.reset(seed=1)[0], planes.reset(seed=1)[0]
    assert one.dtype == np.float32
    assert flat.observation_space.contains(one)
    assert np.array_equal(one, other.reshape(3, -1) / np.float32(255))
    with pytest.raises(ValueError, match=r"flatten=True is for uint8 planes, got Box.*gymnasium\.wrappers\.FlattenObservation"):
        make_gym_vec("random", env=ScriptedEnv, flatten=True)


def test_gymnasiums_own_statistics_work_on_it() -> None:
    envs = RecordEpisodeStatistics(gymnasium.make_vec(SNAKE, num_envs=8, opponent="random"))
    envs.reset(seed=0)
    returns: list[float] = []
    for _ in range(60):
        *_, infos = envs.step(envs.action_space.sample())
        if "episode" in infos:
            returns += infos["episode"]["r"][infos["_episode"]].tolist()
    assert len(returns) > 8
    assert -1 in returns


def test_ordinary_algorithms_and_opponents_swapped_in_between() -> None:
    venv = make_vec_env(SNAKE, n_envs=2, env_kwargs={"opponent": "random", "width": 7, "height": 7}, seed=0)
    model = PPO("MlpPolicy", venv, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(64)
    planes = make_gym_vec("random", num_envs=2, env_kwargs={"width": 7, "height": 7})
    planes.set_opponent("greedy", when="now")
    planes.reset(seed=0)
    *_, infos = planes.step(np.array([0, 0]))
    while "final_info" not in infos:
        *_, infos = planes.step(np.array([0, 0]))
    assert "greedy" in {name for names in infos["final_info"]["opponents"].values() for name in names if name != 0}
    assert model.num_timesteps == 64


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="options cannot have 'reset_mask'"):
        make_gym_vec("random", num_envs=2).reset(options={"reset_mask": np.array([True, False])})
    env = make_gym_env("random")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions must"):
        env.step(4)
    with pytest.raises(TypeError, match="learner"):
        make_gym_env("random", learners=2)  # type: ignore[call-arg]


def test_the_id_is_found_by_the_name_of_its_package() -> None:
    code = "import gymnasium; print(gymnasium.make('snake_pz:snake_pz/SnakeVsBots-v0').observation_space.shape)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(847,)"
