"""The environment: PettingZoo's own tests with warnings as errors, and what they do not look at."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import random
import subprocess
import sys
import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import (
    api_test,
    max_cycles_test,
    parallel_api_test,
    parallel_seed_test,
    performance_benchmark,
    render_test,
    seed_test,
    state_test,
)
from pettingzoo.test.save_obs_test import test_save_obs as save_obs_test

from snake_pz import RewardWeights, Rules, snake_v0
from snake_pz.core.state import CAUSES
from snake_pz.env import SnakeParallelEnv

VARIANTS: list[dict[str, Any]] = [
    {},
    {"observation": "egocentric", "actions": "relative"},
    {"observation": "single", "num_snakes": 2, "edge": "wrap"},
    {"width": 5, "height": 6, "num_snakes": 1, "hunger": "none"},
    {"rules": Rules(width=19, height=19, num_snakes=8, head_to_head="all_die"), "rewards": "rank"},
]
variants = pytest.mark.parametrize("kwargs", VARIANTS, ids=[str(k) for k in range(len(VARIANTS))])


@variants
def test_parallel_api(kwargs: dict[str, Any]) -> None:
    parallel_api_test(snake_v0.parallel_env(**kwargs), num_cycles=300)


@variants
def test_aec_api(kwargs: dict[str, Any]) -> None:
    api_test(snake_v0.env(**kwargs), num_cycles=100)


def test_parallel_api_with_masks_in_observations() -> None:
    parallel_api_test(snake_v0.parallel_env(mask_in_observation=True), num_cycles=300)


def test_aec_api_with_masks_in_observations() -> None:
    with warnings.catch_warnings():
        for text in ("Observation is not a NumPy array", "Observation space for each agent probably should be"):
            warnings.filterwarnings("ignore", message=text, category=UserWarning)
        api_test(snake_v0.env(mask_in_observation=True), num_cycles=100)


@variants
def test_seeds(kwargs: dict[str, Any]) -> None:
    seed_test(lambda: snake_v0.env(**kwargs), num_cycles=50)
    parallel_seed_test(lambda: snake_v0.parallel_env(**kwargs), num_cycles=50)


@variants
def test_state(kwargs: dict[str, Any]) -> None:
    state_test(snake_v0.env(**kwargs), snake_v0.parallel_env(**kwargs))


def test_render() -> None:
    render_test(snake_v0.env)


def test_max_cycles() -> None:
    # It counts on nearly everybody being alive after four random moves: nobody can die here.
    lives: dict[str, Any] = {"num_snakes": 2, "start_length": 1, "edge": "wrap", "width": 19, "height": 19}
    lives |= {"food_initial": 0, "food_minimum": 0}
    module = SimpleNamespace(parallel_env=partial(snake_v0.parallel_env, **lives), env=partial(snake_v0.env, **lives))
    max_cycles_test(module)


def test_performance_benchmark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("time.time", lambda: next(clock))  # its five seconds pass in five calls
    performance_benchmark(snake_v0.env())


def test_save_obs_says_what_does_not_apply(capsys: pytest.CaptureFixture[str]) -> None:
    # PettingZoo saves pictures with 1 or 3 channels last; ours come first, as Stable-Baselines3 wants them.
    save_obs_test(snake_v0.env())
    assert "3D observations can only have 1 or 3 channels" in capsys.readouterr().out


def test_is_registered_with_pettingzoo() -> None:
    assert isinstance(pettingzoo.make("parallel", "snake_v0", width=7, height=7).unwrapped, SnakeParallelEnv)
    assert isinstance(pettingzoo.make("aec", "snake_v0"), pettingzoo.AECEnv)


def _play(env: SnakeParallelEnv, steps: int, rng: np.random.Generator, disturb: bool) -> str:
    """A hash of everything that many steps over many games return."""
    digest = hashlib.sha256()
    for step in range(steps):
        if disturb:
            random.seed(step)
            np.random.seed(step)  # noqa: NPY002  the global stream is what must not matter
            np.random.random(3)  # noqa: NPY002
        if not env.agents:
            outcome: Any = env.reset()
        else:
            outcome = env.step({agent: int(rng.integers(4)) for agent in env.agents})
        digest.update(pickle.dumps(outcome))
    return digest.hexdigest()


def test_ten_thousand_steps_are_equal_whatever_the_global_streams_do() -> None:
    hashes = []
    for disturb in (False, True):
        env = snake_v0.parallel_env()
        env.reset(seed=7)
        hashes.append(_play(env, 10_000, np.random.default_rng(3), disturb))
    assert hashes[0] == hashes[1]


def test_seeds_give_different_games_and_so_do_fresh_environments() -> None:
    starts = set()
    for seed in range(20):
        env = snake_v0.parallel_env()
        env.reset(seed=seed)
        starts.add(env.state().tobytes())
    for _ in range(20):
        env = snake_v0.parallel_env()
        env.reset()
        starts.add(env.state().tobytes())
    assert len(starts) == 40


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])
def test_copies_keep_the_running_game(copier: Any) -> None:
    env = snake_v0.parallel_env()
    env.reset(seed=3)
    for _ in range(3):
        env.step(dict.fromkeys(env.agents, 0))
    twin = copier(env)
    assert twin.agents == env.agents
    assert twin.observation_space("snake_0") == env.observation_space("snake_0")
    assert _play(env, 300, np.random.default_rng(1), False) == _play(twin, 300, np.random.default_rng(1), False)


def test_a_dead_snake_leaves_with_its_last_view_and_the_winner_terminates() -> None:
    env = snake_v0.parallel_env(num_snakes=2, rewards=RewardWeights(food=0, death=-1, win=2, step=0))
    env.reset(seed=0)
    left: dict[str, dict[str, Any]] = {}
    last = {}
    while env.agents:
        before = list(env.agents)
        views, rewards, terminations, truncations, infos = env.step(dict.fromkeys(before, 0))  # up, into the wall
        assert list(views) == list(rewards) == list(terminations) == list(truncations) == list(infos) == before
        for agent in before:
            if terminations[agent]:
                left[agent], last[agent] = infos[agent], rewards[agent]
                assert views[agent].any()
                assert agent not in env.agents
    assert env.step({}) == ({}, {}, {}, {}, {})
    ranks = sorted(info["rank"] for info in left.values())
    if ranks == [1, 2]:
        loser, winner = (next(a for a in left if left[a]["rank"] == r) for r in (2, 1))
        assert left[loser]["cause"] in CAUSES
        assert left[loser]["cause"]
        assert left[winner]["cause"] is None
        assert (last[loser], last[winner]) == (-1.0, 2.0)
    else:  # both at once: they share the win
        assert ranks == [1, 1]
        assert set(last.values()) == {0.0}


@pytest.mark.parametrize("max_cycles", [12, 500])
def test_who_leaves_is_told_the_placements(max_cycles: int) -> None:
    for seed in range(20):
        env = snake_v0.parallel_env(max_cycles=max_cycles)
        env.reset(seed=seed)
        ranks: dict[str, int] = {}
        while env.agents:
            before = env.agents
            *_, infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
            ranks |= {agent: infos[agent]["rank"] for agent in before if agent not in env.agents}
            for agent in before:
                assert ("placements" in infos[agent]) == (agent not in env.agents)
                if agent not in env.agents:
                    assert infos[agent]["placements"] == {other: ranks.get(other, 1) for other in env.possible_agents}


def test_returned_arrays_never_change() -> None:
    env = snake_v0.parallel_env(mask_in_observation=True)
    views, infos = env.reset(seed=0)
    kept = pickle.dumps((views, infos))
    for _ in range(5):
        env.step(dict.fromkeys(env.agents, 1))
    assert pickle.dumps((views, infos)) == kept


def test_truncation_ranks_by_length_and_pays_no_win() -> None:
    env = snake_v0.parallel_env(max_cycles=1, edge="wrap")
    env.reset(seed=0)
    _, rewards, terminations, truncations, infos = env.step(dict.fromkeys(env.agents, 0))
    assert not any(terminations.values())
    assert all(truncations.values())
    assert env.agents == []
    best = max(info["length"] for info in infos.values())
    for agent, info in infos.items():
        assert (info["rank"] == 1) == (info["length"] == best)
        assert rewards[agent] in (0.0, 0.5)


def test_infos_say_what_happened() -> None:
    env = snake_v0.parallel_env()
    _, infos = env.reset(seed=0)
    for info in infos.values():
        mask = info.pop("action_mask")
        assert mask.dtype == np.int8
        assert mask.shape == (4,)
        assert info == {"cause": None, "killer": None, "length": 3, "health": 100, "rank": None}


def test_relative_actions_turn_with_the_snake() -> None:
    for action, turn in ((0, -1), (1, 0), (2, 1)):
        env = snake_v0.parallel_env(num_snakes=1, actions="relative")
        env.reset(seed=0)
        heading = int(env._engine.state.heading[0, 0])
        env.step({"snake_0": action})
        assert env._engine.state.heading[0, 0] == (heading + turn) % 4


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"num_snakes": 0}, "num_snakes must be >= 1, got 0"),
        ({"widht": 7}, "unknown keyword 'widht' (did you mean 'width'?)"),
        ({"width": 3, "height": 3}, "room for at most 2 snakes of start_length 3, got num_snakes=4"),
        ({"observation": "pixels"}, "observation must be one of 'board', 'egocentric', 'single', got 'pixels'"),
        ({"actions": "diagonal"}, "actions must be one of 'absolute', 'relative', got 'diagonal'"),
        ({"rewards": "much"}, "rewards must be one of 'shaped', 'rank'"),
        ({"rewards": {"fod": 1}}, "unknown reward weight 'fod' (did you mean 'food'?)"),
        ({"max_cycles": 0}, "max_cycles must be an int >= 1, got 0"),
        ({"render_mode": "gif"}, "render_mode must be one of 'human', 'rgb_array', 'ansi' or None, got 'gif'"),
        ({"rules": {"width": 7}}, "rules must be Rules"),
        ({"edge": "cliff"}, "edge must be one of 'wall', 'wrap', got 'cliff'"),
    ],
)
def test_bad_arguments_are_refused_at_once(kwargs: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        snake_v0.parallel_env(**kwargs)
    assert text in str(error.value)


def test_bad_actions_are_refused_at_once() -> None:
    env = snake_v0.parallel_env()
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"got none for 'snake_3'"):
        env.step({"snake_0": 0, "snake_1": 0, "snake_2": 0})
    for wrong in (4, -1, 0.5, None, "up", float("inf"), float("nan"), 10**30):
        with pytest.raises(ValueError, match=r"action of 'snake_0' must be an integer from 0 to 3"):
            env.step({**dict.fromkeys(env.agents, 0), "snake_0": wrong})
    with pytest.raises(ValueError, match=r"seed must be between 0 and 2\*\*64 - 1, got -1"):
        env.reset(seed=-1)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 1\.5"):
        env.reset(seed=1.5)


def test_importing_the_game_loads_no_framework_and_no_window() -> None:
    names = "('torch', 'pygame', 'stable_baselines3', 'supersuit')"
    code = f"import sys, snake_pz, snake_pz.snake_v0; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
