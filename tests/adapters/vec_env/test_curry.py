"""CurryVecEnv: the contract that an SB3 user may rely on, point by point, against the raw environment played side by side."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_masked
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

from adapters.opponents.policy import PolicyOpponent
from adapters.sb3 import make_sb3_env
from adapters.vec_env.curry import CurryVecEnv
from snake_pz import snake_v0
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, ScriptedEnv

torch.set_num_threads(1)


def reply(observations: NDArray[Any]) -> NDArray[np.int64]:
    """An opponent without randomness that moves differently in different situations."""
    flat = observations.reshape(len(observations), -1).astype(np.float64)
    return (flat @ np.arange(1, flat.shape[1] + 1) * 997).astype(np.int64) % NUM_ACTIONS


@dataclass
class Backend:
    """One environment on one backend: how to curry it, and the same environment raw."""

    make: Callable[..., CurryVecEnv]
    raw: Callable[[], ParallelEnv[str, Any, Any]]
    longest: int = 7  # steps of a game
    all_infos: bool = True  # those of every step, not of the last alone
    made: list[CurryVecEnv] = field(default_factory=list)

    def __call__(self, opponent: Any = reply, **kwargs: Any) -> CurryVecEnv:
        self.made.append(self.make(opponent, **kwargs))
        return self.made[-1]


def at_most(num_workers: int, kwargs: dict[str, Any]) -> int:
    return min(num_workers, kwargs.get("num_games", 8))


def supersuit_backend(name: str, workers: int = 0) -> Backend:
    def raw() -> ScriptedEnv:
        return ScriptedEnv(SCRIPTS[name], render_mode="rgb_array")

    def make(opponent: Any, **kwargs: Any) -> CurryVecEnv:
        return make_sb3_env(opponent, env=raw, num_workers=at_most(workers, kwargs), **kwargs)

    return Backend(make, raw)


def snake_backend(backend: Any, workers: int = 0) -> Backend:
    rules = {"width": 7, "height": 7, "max_cycles": 12, "render_mode": "rgb_array"}

    def make(opponent: Any, **kwargs: Any) -> CurryVecEnv:
        return make_sb3_env(opponent, backend=backend, env_kwargs=rules, num_workers=at_most(workers, kwargs), **kwargs)

    return Backend(make, lambda: snake_v0.parallel_env(**rules), longest=12, all_infos=backend == "supersuit")


BACKENDS = {
    **{f"scripted, {name}": lambda name=name: supersuit_backend(name) for name in SCRIPTS},
    "snake, supersuit": lambda: snake_backend("supersuit"),
    "snake, native": lambda: snake_backend("native"),
    "scripted, mixed games, 2 workers": lambda: supersuit_backend("mixed games", workers=2),
    "snake, supersuit, 2 workers": lambda: snake_backend("supersuit", workers=2),
}


SLOW = {"snake, supersuit, 2 workers"}  # each worker loads numba


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in BACKENDS])
def make_venv(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend = BACKENDS[request.param]()
    yield backend
    for venv in backend.made:
        venv.close()


@dataclass
class Played:
    """One game as its raw environment, and what its learner should be told."""

    raw: ParallelEnv[str, Any, Any]
    learner: str = ""
    total: float = 0.0
    length: int = 0

    def begin(self, venv: CurryVecEnv, env: int) -> NDArray[Any]:
        self.learner = venv.game_batch.agents(env)[0]
        self.total, self.length = 0.0, 0
        observations, _ = self.raw.reset(seed=venv.reset_infos[env]["game_seed"])
        self.seen = {agent: observation.copy() for agent, observation in observations.items()}
        return self.seen[self.learner]

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        moves = {agent: action if agent == self.learner else reply(self.seen[agent][None])[0] for agent in self.raw.agents}
        observations, rewards, terminations, truncations, infos = self.raw.step(moves)
        self.seen = {agent: observation.copy() for agent, observation in observations.items()}
        me = self.learner
        self.total += np.float32(rewards[me])
        self.length += 1
        return self.seen[me], rewards[me], terminations[me], truncations[me], copy.deepcopy(infos[me])


def side_by_side(make_venv: Backend, steps: int = 80, num_games: int = 3) -> Any:
    """Play; yield after each step (venv's return, per environment what the raw environment said, and the venv)."""
    venv = make_venv(num_games=num_games, seed=4)
    games = [Played(make_venv.raw()) for _ in range(num_games)]
    observations = venv.reset()
    for env, game in enumerate(games):
        assert np.array_equal(observations[env], game.begin(venv, env))
    rng = np.random.default_rng(0)
    for _ in range(steps):
        actions = rng.integers(venv.action_space.n, size=num_games)
        learners = [game.learner for game in games]
        result = venv.step(actions)
        expected = [game.step(action) for game, action in zip(games, actions, strict=True)]
        totals = [(game.total, game.length) for game in games]
        first = {env: games[env].begin(venv, env) for env in np.flatnonzero(result[2])}
        yield result, expected, totals, first, learners
    venv.close()


def test_contract_every_step_equals_the_raw_environment(make_venv: Backend) -> None:
    finished = 0
    for (observations, rewards, dones, infos), expected, _, first, _ in side_by_side(make_venv):
        for env, (observation, reward, terminated, truncated, info) in enumerate(expected):
            assert rewards[env] == np.float32(reward)
            assert dones[env] == (terminated or truncated)
            assert np.array_equal(observations[env], first.get(env, observation))
            if make_venv.all_infos or dones[env]:
                for key in info.keys() - {"action_mask"}:
                    assert infos[env][key] == info[key]
        finished += dones.sum()
    assert finished >= 20


def test_contract_1_dones_and_episodes_are_exact(make_venv: Backend) -> None:
    for (_, _, dones, infos), expected, totals, _, _ in side_by_side(make_venv):
        for env, (total, length) in enumerate(totals):
            ended = expected[env][2] or expected[env][3]
            assert dones[env] == ended == ("episode" in infos[env])
            if ended:
                episode = infos[env]["episode"]
                assert (episode["r"], episode["l"]) == (total, length)
                assert type(episode["r"]) is float
                assert type(episode["l"]) is int
                assert episode["t"] >= 0


def test_contract_1_is_monitored_and_nothing_else(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    assert venv.env_is_wrapped(Monitor) == [True] * 3
    assert venv.env_is_wrapped(Monitor, indices=1) == [True]
    assert venv.env_is_wrapped(VecMonitor) == [False] * 3


def test_contract_2_terminal_observation_is_the_real_last_one(make_venv: Backend) -> None:
    for (observations, _, dones, infos), expected, _, _, _ in side_by_side(make_venv):
        for env in range(3):
            assert ("terminal_observation" in infos[env]) == dones[env]
            if dones[env]:
                assert np.array_equal(infos[env]["terminal_observation"], expected[env][0])
                assert not np.array_equal(infos[env]["terminal_observation"], observations[env])


def test_contract_3_time_limit_truncated_only_without_termination(make_venv: Backend) -> None:
    for (_, _, _, infos), expected, _, _, _ in side_by_side(make_venv):
        for env, (_, _, terminated, truncated, _) in enumerate(expected):
            assert infos[env]["TimeLimit.truncated"] is bool(truncated and not terminated)


def test_contract_4_no_ghost_step(make_venv: Backend) -> None:
    steps = 0
    for (_, _, dones, infos), *_ in side_by_side(make_venv, steps=60):
        steps += sum(infos[env]["episode"]["l"] for env in np.flatnonzero(dones))
    # every step belongs to an episode, but for those under way (ScriptedEnv fails if it is stepped without agents)
    assert 3 * 60 - 3 * make_venv.longest < steps <= 3 * 60


def rollout(venv: CurryVecEnv, steps: int = 40) -> list[Any]:
    rng = np.random.default_rng(3)
    seen: list[Any] = [venv.reset(), [info["game_seed"] for info in venv.reset_infos]]
    for _ in range(steps):
        observations, rewards, dones, infos = venv.step(rng.integers(venv.action_space.n, size=venv.num_envs))
        seen += [observations, rewards, dones, [info.get("terminal_observation") for info in infos]]
        seen.append([info["game_seed"] for info in venv.reset_infos])
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def test_contract_5_the_same_seed_gives_the_same_trajectories(make_venv: Backend) -> None:
    venv = make_venv("random", num_games=3, seed=9)
    first = rollout(venv)
    assert same(first, rollout(make_venv("random", num_games=3, seed=9)))
    assert not same(first, rollout(make_venv("random", num_games=3, seed=10)))
    venv.seed(9)
    again = rollout(venv)
    assert same(first[1], again[1])
    assert not same(first[:2], rollout(venv)[:2]), "a reset without a seed must go on, not repeat"


def test_contract_5_both_backends_play_the_same_games() -> None:
    backends = snake_backend("native"), snake_backend("supersuit"), snake_backend("supersuit", workers=2)
    native, *supersuit = (rollout(backend(num_games=3, seed=9), 100) for backend in backends)
    assert all(same(native, other) for other in supersuit)


def test_contract_5_games_differ_seeded_or_not(make_venv: Backend) -> None:
    for seed in (None, 1):
        games = [rollout(make_venv(num_games=4, seed=seed), steps=30) for _ in range(2)]
        seeds = [{tuple(row) for row in zip(*game[1::5], strict=True)} for game in games]
        assert len(seeds[0]) == 4
        assert (seeds[0] == seeds[1]) == (seed is not None)


def test_contract_5_ppo_seed_reseeds_everything(make_venv: Backend) -> None:
    def learned() -> NDArray[Any]:
        model = PPO("MlpPolicy", make_venv("random", num_games=2), n_steps=16, batch_size=32, n_epochs=1, seed=3, device="cpu")
        model.learn(64)
        return model.rollout_buffer.observations

    assert np.array_equal(learned(), learned())


def test_contract_5_seed_returns_one_seed_per_environment_and_acts_at_the_next_reset(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    seeds = venv.seed(5)
    assert len(set(seeds)) == 3
    assert seeds == venv.seed(5) != venv.seed(6)
    assert all(seed is not None for seed in venv.seed(None))
    assert venv.seed(None) != venv.seed(None)
    venv.seed(5)
    venv.reset()
    first = [info["game_seed"] for info in venv.reset_infos]
    venv.step(np.zeros(3, dtype=np.int64))
    venv.seed(5)
    venv.step(np.zeros(3, dtype=np.int64))
    venv.reset()
    assert [info["game_seed"] for info in venv.reset_infos] == first


def test_contract_6_render_mode_and_images_and_monitor_in_the_parent(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    assert venv.render_mode == "rgb_array"
    assert venv.get_attr("render_mode", 1) == ["rgb_array"]
    venv.reset()
    images = venv.get_images()
    assert len(images) == 3
    assert images[0] is not None
    assert images[0].ndim == 3
    tiled = venv.render("rgb_array")
    assert tiled is not None
    assert tiled.shape[0] == 2 * images[0].shape[0]
    assert np.array_equal(venv.env_method("render", indices=2)[0], images[2])


def test_contract_7_infos_are_distinct_and_arrays_never_change(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    kept: list[tuple[Any, Any]] = []
    observations = venv.reset()
    kept.append((observations, observations.copy()))
    for _ in range(30):
        assert len({id(info) for info in venv.reset_infos}) == 3
        result = venv.step(np.zeros(3, dtype=np.int64))
        assert len({id(info) for info in result[3]}) == 3
        kept.append((result, copy.deepcopy(result)))
    for now, then in kept:
        np.testing.assert_equal(now, then)


def test_contract_7_what_the_caller_writes_into_changes_no_later_step(make_venv: Backend) -> None:
    clean, spoilt = (make_venv(num_games=3, seed=2) for _ in range(2))
    assert np.array_equal(clean.reset(), spoilt.reset())
    for _ in range(20):
        actions = np.ones(3, dtype=np.int64)
        expected = clean.step(actions)
        spoilt.step_async(actions)
        actions[:] = 2  # a caller's array that changes while the step is under way
        result = spoilt.step_wait()
        np.testing.assert_equal([*result[:3]], [*expected[:3]])
        result[0][:] = 0
        result[1][:] = 99
        for info in result[3]:
            info.clear()


class Counting:
    """An Opponent that counts its calls and remembers what it was told."""

    def __init__(self, name: str, venv: CurryVecEnv, action: int = 0) -> None:
        self.name, self.action = name, action
        self.observation_space, self.action_space = venv.observation_space, venv.action_space
        self.calls, self.rows, self.seeds, self.resets = 0, 0, [], []

    def act(self, observations: NDArray[Any], slots: NDArray[np.intp], action_masks: Any) -> NDArray[np.int64]:
        self.calls += 1
        self.rows += len(observations)
        return np.full(len(observations), self.action)

    def reset(self, slots: NDArray[np.intp]) -> None:
        self.resets.append(slots.tolist())

    def seed(self, seed: int) -> None:
        self.seeds.append(seed)


def test_contract_8_one_call_per_distinct_opponent_over_living_seats(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    one, two = Counting("one", venv), Counting("two", venv)
    venv.set_opponent([one, two, one])
    venv.reset()
    for step in range(1, 20):
        active = venv.time_step.active
        rows = one.rows, two.rows
        venv.step(np.zeros(3, dtype=np.int64))
        assert (one.rows - rows[0], two.rows - rows[1]) == (active[:, [1, 3]].sum(), active[:, 2].sum())
        assert one.calls <= step
        assert two.calls <= step


def test_contract_9_live_opponents_are_frozen_and_leave_the_learner_alone(make_venv: Backend) -> None:
    venv = make_venv(num_games=2, seed=1)
    model = PPO("MlpPolicy", venv, n_steps=8, batch_size=16, device="cpu")
    venv.set_opponent(model, when="now")
    (opponent,) = venv.lineup.opponents
    venv.reset()
    model.policy.set_training_mode(True)
    state = torch.get_rng_state()
    for _ in range(5):
        venv.step(np.zeros(2, dtype=np.int64))
    assert model.policy.training
    assert torch.equal(state, torch.get_rng_state())
    assert isinstance(opponent, PolicyOpponent)
    before = copy.deepcopy(opponent.policy.state_dict())
    model.learn(64)
    after = opponent.policy.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not all(torch.equal(before[key], value) for key, value in model.policy.state_dict().items())


@pytest.mark.parametrize("when", ["restart", "now"])
def test_contract_10_opponents_change_when_their_game_restarts_or_now(make_venv: Backend, when: Any) -> None:
    venv = make_venv(num_games=3, seed=0)
    old, new = Counting("old", venv), Counting("new", venv)
    venv.set_opponent(old)
    venv.reset()
    venv.set_opponent(new, when=when)
    expected = ["new" if when == "now" else "old"] * 3
    for _ in range(12):
        assert [venv.lineup.names(game) for game in range(3)] == [(name,) * 3 for name in expected]
        dones = venv.step(np.zeros(3, dtype=np.int64))[2]
        expected = ["new" if done else name for name, done in zip(expected, dones, strict=True)]
    assert expected == ["new"] * 3
    assert new.resets


def test_contract_11_opponents_sample_by_default_and_deterministic_does_not(make_venv: Backend) -> None:
    model = PPO("MlpPolicy", make_venv(num_games=2), device="cpu")
    for deterministic in (False, True):
        venv = make_venv(model, num_games=1, deterministic=deterministic, seed=0)
        (opponent,) = venv.lineup.opponents
        rows = np.repeat(venv.reset(), 200, axis=0)
        actions = opponent.act(rows, np.arange(200), None)
        assert (len(set(actions.tolist())) == 1) == deterministic


def test_contract_12_close_is_idempotent_and_final(make_venv: Backend) -> None:
    venv = make_venv(num_games=2)
    venv.reset()
    venv.close()
    venv.close()
    for call in (venv.reset, lambda: venv.step(np.zeros(2, dtype=np.int64)), lambda: venv.set_opponent(reply)):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_contract_13_bad_actions_are_refused_at_once(make_venv: Backend) -> None:
    venv = make_venv(num_games=3)
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        venv.step(np.zeros(3, dtype=np.int64))
    venv.reset()
    for actions, message in [
        (np.zeros(2, dtype=np.int64), r"shape \(3,\).*got \(2,\)"),
        (np.zeros((3, 1), dtype=np.int64), r"shape \(3,\).*got \(3, 1\)"),
        (np.array([0, 1, 99]), r"integers within Discrete.*99"),
        (np.array([0, -1, 1]), r"integers within Discrete.*-1"),
        (np.zeros(3), r"integers within Discrete.*float64"),
    ]:
        with pytest.raises(ValueError, match=message):
            venv.step(actions)
    venv.step_async(np.zeros(3, dtype=np.int64))
    with pytest.raises(RuntimeError, match="under way"):
        venv.step_async(np.zeros(3, dtype=np.int64))
    venv.step_wait()
    with pytest.raises(RuntimeError, match="step_async"):
        venv.step_wait()


def test_contract_13_a_bad_opponent_is_refused_and_the_old_ones_play_on(make_venv: Backend) -> None:
    venv = make_venv(num_games=2)
    venv.reset()
    with pytest.raises(FileNotFoundError, match=r"nowhere\.zip"):
        venv.set_opponent("nowhere.zip")
    with pytest.raises(ValueError, match="no_such_bot"):
        venv.set_opponent("no_such_bot")
    with pytest.raises(ValueError, match="'restart' or 'now', got 'later'"):
        venv.set_opponent("random", when="later")
    with pytest.raises(ValueError, match="3 entries"):
        venv.set_opponent(["random", "random"])
    venv.step(np.zeros(2, dtype=np.int64))


# The attribute calls, on the scripted environment


def scripted(opponent: Any = reply, num_games: int = 3, **kwargs: Any) -> CurryVecEnv:
    return make_sb3_env(opponent, env=ScriptedEnv, num_games=num_games, env_kwargs=kwargs)


def test_contract_6_attribute_calls_with_indices() -> None:
    venv = scripted()
    venv.set_attr("difficulty", 4, indices=[0, 2])
    venv.set_attr("difficulty", 6, indices=1)
    assert venv.get_attr("difficulty") == [4, 6, 4]
    assert venv.get_attr("difficulty", indices=[2, 1]) == [4, 6]
    assert venv.get_attr("difficulty", np.int64(-1)) == [4]
    assert venv.env_method("describe", "a", times=2, indices=range(2)) == ["a-4 a-4", "a-6 a-6"]
    assert venv.has_attr("difficulty")
    assert not venv.has_attr("colour")
    with pytest.raises(IndexError, match="below 3"):
        venv.get_attr("difficulty", 3)


def test_contract_6_set_options_are_for_the_next_reset_only() -> None:
    venv = scripted()
    venv.set_options([{"map": 1}, {"map": 2}, {}])
    venv.reset()
    assert venv.get_attr("last_options") == [{"map": 1}, {"map": 2}, None]
    venv.set_options({"map": 5})
    venv.reset()
    assert venv.get_attr("last_options") == [{"map": 5}] * 3
    venv.reset()
    assert venv.get_attr("last_options") == [None] * 3
    with pytest.raises(ValueError, match="list of 3 dicts, got a list of 2"):
        venv.set_options([{}, {}])


def test_contract_5_game_seed_reproduces_one_game() -> None:
    venv = scripted(num_games=2)
    observations = venv.reset()
    for env, info in enumerate(venv.reset_infos):
        raw, _ = ScriptedEnv().reset(seed=info["game_seed"])
        assert np.array_equal(observations[env], raw[info["agent"]])


def test_contract_5_line_up_and_opponents_are_reseeded() -> None:
    venv = scripted()
    opponent = Counting("x", venv)
    venv.set_opponent(opponent)
    for seed in (1, 1, 2):
        venv.seed(seed)
        venv.reset()
    first, again, other = opponent.seeds[-3:]
    assert first == again != other


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_contract_14_masks_reach_sb3_contrib(masks: str) -> None:
    venv = scripted("random", masks=masks)
    assert is_masking_supported(venv), "sb3-contrib asks before the first reset"
    venv.reset()
    for _ in range(12):
        action_masks = get_action_masks(venv)
        assert action_masks.shape == (3, NUM_ACTIONS)
        assert action_masks.dtype == bool
        assert np.array_equal(action_masks, venv.action_masks())
        assert np.array_equal(venv.get_attr("action_masks", 1)[0](), action_masks[1])
        for env, mask_of in enumerate(venv.get_attr("mask")):
            assert np.array_equal(action_masks[env], mask_of(venv.game_batch.agents(env)[0]))
        venv.step(action_masks.argmax(axis=1))
    model = MaskablePPO("MlpPolicy", venv, n_steps=16, batch_size=48, n_epochs=1, device="cpu")
    model.learn(96)
    evaluate_masked(model, scripted("random", masks=masks), n_eval_episodes=4)


def test_contract_14_without_masks_it_says_so() -> None:
    venv = scripted()
    venv.reset()
    assert not is_masking_supported(venv)
    with pytest.raises(AttributeError, match="no action masks"):
        venv.action_masks()
    assert not is_masking_supported(make_sb3_env(noise, env=ScriptedEnv, env_kwargs={"box_actions": True}))


def noise(observations: NDArray[Any]) -> NDArray[np.float32]:
    return np.full((len(observations), 2), 0.25, dtype=np.float32)


def test_box_actions() -> None:
    venv = make_sb3_env(noise, env=ScriptedEnv, env_kwargs={"box_actions": True}, num_games=2)
    venv.reset()
    observations = venv.step(np.array([[0.5, 0.25], [-0.5, 0.0]]))[0]
    assert observations[:, 5].tolist() == [0.75, -0.5]
    for env, taken in enumerate(venv.get_attr("last_actions")):
        assert [taken[agent].tolist() for agent in venv.game_batch.agents(env)[1:]] == [[0.25, 0.25]] * 3


def test_images_without_a_render_mode_warn_as_sb3_does() -> None:
    venv = scripted(num_games=2)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert venv.get_images() == [None, None]


def test_close_reaches_every_environment_once() -> None:
    venv = scripted()
    environments = venv.game_batch.get_attr("closed", range(3))
    venv.close()
    venv.close()
    assert environments == [0] * 3
    assert venv.game_batch.get_attr("closed", range(3)) == [1] * 3


# Several learners


@dataclass
class Together:
    """One game as its raw environment, seat by seat."""

    raw: ParallelEnv[str, Any, Any]
    agents: tuple[str, ...] = ()
    turn: int = 0

    def begin(self, venv: CurryVecEnv, game: int) -> NDArray[Any]:
        self.agents, self.turn = venv.game_batch.agents(game), 0
        self.left: dict[str, int] = {}  # the turn in which each agent left
        self.infos: dict[str, dict[str, Any]] = {}  # of the agents' last steps
        self.totals = dict.fromkeys(self.agents, 0.0)
        observations, _ = self.raw.reset(seed=venv.reset_infos[game * venv.game_batch.num_learners]["game_seed"])
        self.seen = {agent: observation.copy() for agent, observation in observations.items()}
        return self.shown()

    def shown(self) -> NDArray[Any]:
        return np.array([self.seen[agent] for agent in self.agents])

    def step(self, actions: NDArray[Any]) -> tuple[dict[str, float], dict[str, tuple[bool, bool]]]:
        moves = dict(zip(self.agents, actions, strict=False))
        moves = {agent: moves[agent] if agent in moves else reply(self.seen[agent][None])[0] for agent in self.raw.agents}
        observations, rewards, terminations, truncations, infos = self.raw.step(moves)
        self.turn += 1
        self.infos |= copy.deepcopy(infos)
        self.seen |= {agent: observation.copy() for agent, observation in observations.items()}
        ended = {a: (terminations[a], truncations[a]) for a in moves if terminations[a] or truncations[a]}
        self.left |= dict.fromkeys(ended, self.turn)
        for agent, reward in rewards.items():
            self.totals[agent] += np.float32(reward)
        return rewards, ended

    def by_survival(self) -> dict[str, int]:
        stayed = [self.left.get(agent, 1000) for agent in self.agents]
        return {agent: 1 + sum(other > mine for other in stayed) for agent, mine in zip(self.agents, stayed, strict=True)}


@pytest.mark.parametrize("learners", [2, "all", ["2", "0"]])
def test_several_learners_every_step_equals_the_raw_environment(make_venv: Backend, learners: Any) -> None:
    if isinstance(learners, list):
        learners = [make_venv.raw().possible_agents[int(number)] for number in learners]
    venv = make_venv(None if learners == "all" else reply, learners=learners, num_games=3, seed=4)
    games = [Together(make_venv.raw()) for _ in range(3)]
    k = venv.game_batch.num_learners
    assert venv.num_envs == 3 * k
    observations = venv.reset().reshape(3, k, *venv.observation_space.shape)
    for number, game in enumerate(games):
        assert np.array_equal(observations[number], game.begin(venv, number)[:k])
        assert learners in (2, "all") or game.agents[:2] == tuple(learners)
    rng = np.random.default_rng(0)
    padded = finished = 0
    for _ in range(80):
        actions = rng.integers(venv.action_space.n, size=(3, k))
        observations, rewards, dones, infos = venv.step(actions.flatten())
        observations = observations.reshape(3, k, *observations.shape[1:])
        for number, game in enumerate(games):
            learning = game.agents[:k]
            gone = set(game.left)
            real_rewards, ended = game.step(actions[number])
            for seat, agent in enumerate(learning):
                row, info = number * k + seat, infos[number * k + seat]
                assert rewards[row] == np.float32(real_rewards.get(agent, 0.0))
                assert dones[row] == (agent in ended) == ("episode" in info) == ("terminal_observation" in info)
                assert venv.active.acted[row] == (agent not in gone)
                padded += agent in gone
                if agent in ended:
                    terminated, truncated = ended[agent]
                    assert np.array_equal(info["terminal_observation"], game.seen[agent])
                    assert info["TimeLimit.truncated"] == (truncated and not terminated)
                    assert (info["episode"]["r"], info["episode"]["l"]) == (game.totals[agent], game.turn)
                    assert info["agent"] == agent
                    assert set(info["opponents"]) == set(game.agents[k:])
                    assert info["placements"] == game.infos[agent].get("placements", game.by_survival())
            if set(learning) <= set(game.left):
                finished += 1
                game.begin(venv, number)
            assert np.array_equal(observations[number], game.shown()[:k])
    assert finished > 10
    raw = games[0].raw
    together = isinstance(raw, ScriptedEnv) and all(
        len({script.get(agent, (raw.limit, ""))[0] for agent in range(4)}) == 1 for script in raw.scripts
    )
    assert (padded == 0) == together


def test_several_learners_change_seats_unless_they_are_named() -> None:
    for learners, fixed in ((2, False), ("all", False), (["agent_3", "agent_1"], True)):
        venv = make_sb3_env(None if learners == "all" else reply, env=ScriptedEnv, learners=learners, num_games=6, seed=0)
        venv.reset()
        seated = {venv.game_batch.agents(game)[: venv.game_batch.num_learners] for game in range(6)}
        assert (len(seated) == 1) == fixed


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_without_enemies_nobody_can_be_set(backend: Any) -> None:
    venv = make_sb3_env(learners="all", backend=backend, num_games=2, seed=0)
    assert venv.reset().shape[0] == venv.num_envs == 8
    for spec in ("random", None, []):
        with pytest.raises(ValueError, match="no seat for an opponent: all 4 agents"):
            venv.set_opponent(spec)
    venv.step(np.zeros(8, dtype=np.int64))


def test_survivors_of_a_game_that_is_cut_short_share_first_place() -> None:
    scripts = [{0: (2, "terminated"), 1: (1, "terminated"), 2: (2, "truncated")}]
    venv = make_sb3_env(reply, env=ScriptedEnv, env_kwargs={"scripts": scripts}, learners=["agent_0"], num_games=1)
    venv.reset()
    venv.step(np.zeros(1, int))
    info = venv.step(np.zeros(1, int))[3][0]
    assert info["placements"] == {"agent_3": 1, "agent_0": 2, "agent_2": 2, "agent_1": 4}


class Ranks(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        *rest, infos = super().step(actions)
        return (*rest, {agent: {**info, "placements": "mine"} for agent, info in infos.items()})


def test_placements_are_those_of_an_environment_that_has_its_own() -> None:
    venv = make_sb3_env(reply, env=Ranks, num_games=1)
    venv.reset()
    infos = [venv.step(np.zeros(1, int))[3][0] for _ in range(7)]
    assert infos[-1]["placements"] == "mine"
    assert "is_success" not in infos[-1]


# Success


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_success_is_the_share_of_the_win_by_the_snake_s_placements(backend: Any) -> None:
    rules = {"width": 5, "height": 5, "num_snakes": 2, "max_cycles": 8}
    venv = make_sb3_env("random", env_kwargs=rules, backend=backend, num_games=16, seed=0)
    venv.reset()
    seen = set()
    for _ in range(60):
        dones, infos = venv.step(np.zeros(16, int))[2:]
        for done, info in zip(dones, infos, strict=True):
            assert done == ("is_success" in info)
            if done:
                ranks = list(info["placements"].values())
                won = info["placements"][info["agent"]] == 1
                assert info["is_success"] == (1 / ranks.count(1) if won else 0.0)
                seen.add(info["is_success"])
    assert seen == {0.0, 0.5, 1.0}


class Placed(ScriptedEnv):
    """The first two agents share first place; the environment may also say itself who was successful."""

    says: bool | None = None

    def step(self, actions: dict[str, Any]) -> Any:
        *rest, infos = super().step(actions)
        said = {"placements": dict(zip(self.possible_agents, (1, 1, 3, 4), strict=True))}
        if self.says is not None:
            said["is_success"] = self.says
        return (*rest, {agent: {**info, **said} for agent, info in infos.items()})


class Successful(Placed):
    says = True


@pytest.mark.parametrize(("env", "success"), [(Placed, [0.5, 0.0]), (Successful, [True, True]), (ScriptedEnv, [None, None])])
def test_success_is_known_where_the_environment_says_it_or_placements(env: Any, success: Any) -> None:
    venv = make_sb3_env(reply, env=env, learners=["agent_1", "agent_3"], num_games=1)
    venv.reset()
    infos = [venv.step(np.zeros(2, int))[3] for _ in range(7)][-1]
    assert [info.get("is_success") for info in infos] == success


# SB3 itself


class Remember(BaseCallback):
    """Keeps the rollout buffer's raw material."""

    def __init__(self) -> None:
        super().__init__()
        self.dones: list[NDArray[np.bool_]] = []

    def _on_step(self) -> bool:
        self.dones.append(self.locals["dones"].copy())
        return True


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("n_steps", [2, 3, 4, 5])
def test_rollout_boundaries_on_deaths(name: str, n_steps: int) -> None:
    venv = supersuit_backend(name)(num_games=2)
    model = PPO("MlpPolicy", venv, n_steps=n_steps, batch_size=2 * n_steps, n_epochs=1, device="cpu", gamma=0.5)
    starts = []

    class Boundary(Remember):
        def _on_rollout_end(self) -> None:
            starts.append(model.rollout_buffer.episode_starts.astype(bool).copy())
            observations = model.rollout_buffer.observations
            assert (observations[..., 1:5] >= 0).all(), "a padded observation"
            assert np.array_equal(observations[..., 1] == 0, starts[-1]), "a game starts exactly where an episode does"

    callback = Boundary()
    model.learn(24 * n_steps, callback=callback)
    dones = np.array(callback.dones)
    assert np.array_equal(np.concatenate(starts)[1:], dones[:-1])
    assert starts[0][0].all()
    assert [episode["l"] for episode in model.ep_info_buffer]
    assert dones.any()


def test_truncation_bootstraps_and_termination_does_not() -> None:
    rewards = {}
    for how in ("truncated", "terminated", "both"):
        venv = make_sb3_env(reply, env=lambda how=how: ScriptedEnv([dict.fromkeys(range(4), (2, how))]), num_games=1, seed=0)
        model = PPO("MlpPolicy", venv, n_steps=2, batch_size=2, n_epochs=1, device="cpu", gamma=0.5)
        with torch.no_grad():
            for parameter in model.policy.value_net.parameters():
                parameter.fill_(0.0)
            model.policy.value_net.bias.fill_(10.0)
        model.learn(2)
        agent = model.rollout_buffer.observations[0, 0]
        rewards[how] = model.rollout_buffer.rewards[1, 0] - (agent + 1 + 2 / 64)
    assert rewards == {"truncated": pytest.approx(5.0), "terminated": pytest.approx(0.0), "both": pytest.approx(0.0)}


@pytest.mark.parametrize("algorithm", [PPO, A2C, DQN])
def test_algorithms_learn_unmodified(make_venv: Backend, algorithm: Any) -> None:
    kwargs = {
        DQN: {"learning_starts": 10, "buffer_size": 200},
        PPO: {"n_steps": 8, "batch_size": 32},
        A2C: {"n_steps": 8},
    }[algorithm]
    model = algorithm("MlpPolicy", make_venv("random", num_games=4), device="cpu", seed=0, **kwargs)
    model.learn(200)
    assert len(model.ep_info_buffer) > 5
    mean, _ = evaluate_policy(model, make_venv("random", num_games=2), n_eval_episodes=5)
    assert np.isfinite(mean)


def test_dqn_s_buffer_holds_the_real_next_observations() -> None:
    venv = supersuit_backend("mixed games")(num_games=2)
    model = DQN("MlpPolicy", venv, learning_starts=1000, buffer_size=400, device="cpu")
    model.learn(120)
    buffer = model.replay_buffer
    size = buffer.size()
    observations, following = buffer.observations[:size], buffer.next_observations[:size]
    assert np.array_equal(following[..., 1], observations[..., 1] + 1), "the next observation is one step later"
    assert np.array_equal(following[..., [0, 2]], observations[..., [0, 2]]), "of the same agent in the same game"


def test_a_model_saved_and_loaded_as_its_own_opponent(make_venv: Backend, tmp_path: Any) -> None:
    venv = make_venv("random", num_games=2)
    model = PPO("MlpPolicy", venv, n_steps=8, batch_size=16, device="cpu")
    model.learn(32)
    model.save(tmp_path / "one")
    venv.set_opponent(tmp_path / "one.zip")
    model.learn(32)
    other = make_venv(str(tmp_path / "one"), num_games=5)
    assert PPO.load(tmp_path / "one", env=other, device="cpu").learn(40).num_timesteps >= 40


# The front door


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"num_games": 0}, ValueError, "num_games must be >= 1, got 0"),
        ({"num_games": "8"}, ValueError, "num_games must be a whole number, got '8'"),
        ({"num_games": True}, ValueError, "num_games must be a whole number, got True"),
        ({"seed": 1.5}, ValueError, r"seed must be a whole number, got 1\.5"),
        ({"seed": -1}, ValueError, "seed must be >= 0, got -1"),
        ({"num_workers": 1.5}, ValueError, "num_workers must be a whole number, got 1.5"),
        ({"learners": "all"}, ValueError, "opponent must be None where all 4 agents learn, got 'random'"),
        ({"learners": 4}, ValueError, "opponent must be None where all 4 agents learn"),
        ({"opponent": None}, ValueError, "must not be None, because 3 of 4 seats have no learner.*learners='all'"),
        ({"opponent": None, "learners": ["agent_0", "agent_1"]}, ValueError, "2 of 4 seats"),
        ({"learners": 5}, ValueError, "learners must be from 0 to 4"),
        ({"learners": "most"}, ValueError, r"'all' or a list of agent names, got 'most'"),
        ({"learners": 0}, ValueError, "learners must be >= 1"),
        ({"learners": []}, ValueError, "empty list"),
        ({"learners": "agent_0"}, ValueError, r"write \['agent_0'\]"),
        ({"learners": ["agent_7"]}, ValueError, "agent_7"),
        ({"num_workers": 3}, ValueError, "num_workers must be <= num_games, got 3 workers for 2 games"),
        ({"num_workers": -1}, ValueError, "num_workers must be >= 0"),
        ({"num_workers": 2, "env": None, "backend": "native"}, ValueError, "native.*num_workers=2"),
        ({"backend": "native"}, ValueError, "native.*snake"),
        ({"backend": "jax"}, ValueError, "'auto', 'native' or 'supersuit', got 'jax'"),
        ({"env_kwargs": {"limti": 1}}, ValueError, "limti.*limit"),
        ({"opponent": "greedy"}, ValueError, "'random', got 'greedy'"),
        ({"opponent": {"agent_1": "random"}}, ValueError, "learners"),
    ],
)
def test_front_door_refuses(kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments = {"opponent": "random", "env": ScriptedEnv, "num_games": 2, **kwargs}
    with pytest.raises(error, match=message):
        make_sb3_env(arguments.pop("opponent"), **arguments)


def test_front_door_named_learner_and_opponents_by_name() -> None:
    venv = make_sb3_env({"agent_0": "random", "agent_1": reply, "agent_3": reply}, env=ScriptedEnv, learners=["agent_2"])
    assert venv.num_envs == 8
    assert (venv.reset()[:, 0] == 2).all()
    assert {info["agent"] for info in venv.reset_infos} == {"agent_2"}
    assert venv.lineup.names(0) == ("random", "reply", "reply")


def test_front_door_closes_what_it_made_when_it_fails() -> None:
    made: list[ScriptedEnv] = []

    def factory() -> ScriptedEnv:
        made.append(ScriptedEnv())
        return made[-1]

    with pytest.raises(FileNotFoundError):
        make_sb3_env("missing.zip", env=factory, num_games=2)
    assert [env.closed for env in made] == [1, 1]


def test_an_environment_without_enemies() -> None:
    venv = make_sb3_env(env=ScriptedEnv, env_kwargs={"num_agents": 1}, num_games=2)
    venv.reset()
    assert venv.step(np.zeros(2, dtype=np.int64))[0].shape == (2, 6)


def test_importing_adapters_loads_no_torch_and_has_the_facade() -> None:
    code = """
import sys, adapters
assert not {"torch", "stable_baselines3", "pygame"} & set(sys.modules), "heavy imports"
assert set(adapters.__all__) <= set(dir(adapters))
for name in adapters.__all__:
    getattr(adapters, name)
from adapters import make_sb3_env
try:
    adapters.nothing
except AttributeError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert "nothing" in result.stdout


def test_spaces_are_the_environment_s() -> None:
    venv = scripted(masks="observation")
    assert isinstance(venv.observation_space, spaces.Box)
    assert venv.action_space == spaces.Discrete(NUM_ACTIONS)


class SpeaksMonitor(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        *rest, infos = super().step(actions)
        return (*rest, {agent: {**info, "episode": {"r": 1e9, "l": 1}} for agent, info in infos.items()})


def test_contract_1_an_episode_that_the_environment_reports_is_not_taken_for_ours() -> None:
    venv = make_sb3_env(reply, env=SpeaksMonitor, num_games=1)
    venv.reset()
    lengths = [info["episode"]["l"] for _ in range(14) for info in venv.step(np.zeros(1, int))[3] if "episode" in info]
    assert lengths == [7, 7]
