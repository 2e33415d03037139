"""Several learners with one policy: no padding is learnt from, and what is learnt from the rest is what SB3 would compute."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

import adapters
from adapters.command.bench import bench_learners
from adapters.networks import policy_kwargs
from adapters.sb3 import make_sb3_env
from adapters.vec_env.buffers import ActiveBuffer, ActiveMask, ActiveReplayBuffer, ActiveRolloutBuffer, activate
from adapters.vec_env.curry import CurryVecEnv
from tests.support.scripted_env import SCRIPTS, DictEnv, ScriptedEnv

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")  # how many rows act nobody knows

AGENT, STEP, GAME = 0, 1, 2  # columns of a scripted observation
LIMIT = 7  # turns of a scripted game


def scripted(
    name: str = "mixed games", learners: Any = "all", env: Any = ScriptedEnv, num_games: int = 2, **more: Any
) -> CurryVecEnv:
    opponent = None if learners == "all" else "random"
    kwargs = {"scripts": SCRIPTS[name], "limit": LIMIT, **more}
    return make_sb3_env(opponent, env=env, env_kwargs=kwargs, learners=learners, num_games=num_games, seed=3)


def snakes(learners: Any = "all", num_games: int = 3, **more: Any) -> CurryVecEnv:
    opponent = None if learners == "all" else "random"
    kwargs = {"width": 7, "height": 7, "max_cycles": 5, **more}
    return make_sb3_env(opponent, env_kwargs=kwargs, learners=learners, num_games=num_games, seed=3)


def is_padding(observations: np.ndarray, name: str = "mixed games") -> np.ndarray:
    """Of scripted observations, (B, 6): whether the agent's game went on without it from there."""
    scripts = SCRIPTS[name]
    ends = [scripts[int(game) % len(scripts)].get(int(agent), (LIMIT, ""))[0] for agent, game in observations[:, [AGENT, GAME]]]
    return observations[:, STEP] >= ends


ON: dict[str, Any] = {"n_steps": 5, "device": "cpu", "seed": 0}
OFF: dict[str, Any] = {"learning_starts": 20, "buffer_size": 300, "batch_size": 16, "device": "cpu", "seed": 0}
CASES: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "PPO": (PPO, "ActiveRolloutBuffer", {**ON, "batch_size": 7, "n_epochs": 2}, {}),
    "PPO, Dict": (PPO, "ActiveDictRolloutBuffer", {**ON, "batch_size": 7, "n_epochs": 2}, {"env": DictEnv}),
    "A2C": (A2C, "ActiveRolloutBuffer", ON, {}),
    "A2C, Dict": (A2C, "ActiveDictRolloutBuffer", ON, {"env": DictEnv}),
    "MaskablePPO": (MaskablePPO, "ActiveMaskableRolloutBuffer", {**ON, "batch_size": 7, "n_epochs": 2}, {"masks": "info"}),
    "MaskablePPO, Dict": (
        MaskablePPO,
        "ActiveMaskableDictRolloutBuffer",
        {**ON, "batch_size": 7, "n_epochs": 2},
        {"masks": "info", "env": DictEnv},
    ),
    "DQN": (DQN, "ActiveReplayBuffer", OFF, {}),
    "DQN, Dict": (DQN, "ActiveDictReplayBuffer", OFF, {"env": DictEnv}),
    "QRDQN": (QRDQN, "ActiveReplayBuffer", OFF, {}),
    "SAC": (SAC, "ActiveReplayBuffer", OFF, {"box_actions": True}),
    "TD3": (TD3, "ActiveReplayBuffer", OFF, {"box_actions": True}),
}


def make_model(algorithm: Any, venv: Any, buffer: str | None = None, **kwargs: Any) -> Any:
    policy = "MultiInputPolicy" if isinstance(venv.observation_space, spaces.Dict) else "MlpPolicy"
    if buffer is not None:
        kind = "rollout_buffer" if "Rollout" in buffer else "replay_buffer"
        kwargs |= {f"{kind}_class": getattr(adapters, buffer), f"{kind}_kwargs": {"active": venv.unwrapped.active}}
    return algorithm(policy, venv, **kwargs)


def watch(model: Any) -> list[np.ndarray]:
    """A list that gets the observations of every batch that a gradient is computed for."""
    seen: list[np.ndarray] = []

    def remember(module: Any, inputs: tuple[Any, ...]) -> None:
        (given,) = inputs
        if torch.is_grad_enabled():
            seen.append((given["numbers"] if isinstance(given, dict) else given).numpy().copy())

    parts = [getattr(model.policy, name, None) for name in ("q_net", "quantile_net", "critic")]
    network = next((part for part in parts if part is not None), model.policy)
    network.features_extractor.register_forward_pre_hook(remember)
    return seen


@pytest.mark.parametrize("learners", ["all", 2])
@pytest.mark.parametrize("case", CASES)
def test_no_padding_reaches_an_optimiser_step(case: str, learners: Any) -> None:
    algorithm, buffer, kwargs, env_kwargs = CASES[case]
    venv = scripted(learners=learners, **env_kwargs)
    model = make_model(algorithm, venv, buffer, **kwargs)
    seen = watch(model)
    rollouts = 8
    model.learn(rollouts * 5 * venv.num_envs)
    rows = np.concatenate(seen)
    assert not is_padding(rows).any()
    assert venv.active.total < venv.active.steps * venv.num_envs, "there was padding"
    if "n_steps" in kwargs:  # every real step is learnt from, as often as the algorithm says
        assert len(rows) == venv.active.total * kwargs.get("n_epochs", 1)
        assert venv.active.steps == rollouts * 5


@pytest.mark.parametrize("case", ["PPO", "DQN", "MaskablePPO, Dict"])
def test_sb3s_own_buffers_would_learn_from_padding_and_a_warning_says_so_once(case: str) -> None:
    algorithm, buffer, kwargs, env_kwargs = CASES[case]
    venv = scripted(**env_kwargs)
    model = make_model(algorithm, venv, **kwargs)
    seen = watch(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.learn(200)
        model.learn(200)
    (said,) = [str(warning.message) for warning in caught if "several learners" in str(warning.message)]
    assert re.search(rf"_buffer_class=adapters\.{buffer}, r\w+_buffer_kwargs=.*env\.active", said)
    assert is_padding(np.concatenate(seen)).any()


@pytest.mark.parametrize("name", SCRIPTS)
def test_rows_say_who_acted_and_whose_game_began(name: str) -> None:
    venv = scripted(name)
    assert not venv.active.acted.any()
    observations = venv.reset()
    total = 0
    for _ in range(40):
        acted = ~is_padding(observations, name)
        began = acted & (observations[:, STEP] == 0)
        kept = venv.active.acted
        before = kept.copy()
        observations = venv.step(np.zeros(venv.num_envs, np.int64))[0]
        assert np.array_equal(venv.active.acted, acted)
        assert np.array_equal(venv.active.began, began)
        assert np.array_equal(kept, before), "what was given out does not change"
        total += acted.sum()
    assert venv.active.total == total
    assert venv.active.steps == 40


def test_rows_are_pickled_without_their_vec_env() -> None:
    venv = snakes()
    venv.reset()
    venv.step(np.zeros(venv.num_envs, np.int64))
    pickled = pickle.dumps(venv.active)
    assert len(pickled) < 100
    empty = pickle.loads(pickled)
    assert empty.acted.shape == empty.began.shape == (0,)
    assert (empty.steps, empty.total) == (0, 0)


# Advantages


class ByHand(BaseCallback):
    """Computes the advantage and the return of every real step from what the VecEnv returned, agent by agent.

    Which rows are padding it knows from `dones` and from the seeds of the games alone.
    """

    def __init__(self, gamma: float, lam: float) -> None:
        super().__init__()
        self.gamma, self.lam = gamma, lam
        self.out: np.ndarray | None = None  # rows whose game goes on without them
        self.cases: set[str] = set()

    def value(self, observation: np.ndarray) -> float:
        with torch.no_grad():
            return float(self.model.policy.predict_values(self.model.policy.obs_to_tensor(observation[None])[0]))

    def seeds(self) -> list[int]:
        return [info["game_seed"] for info in self.training_env.reset_infos]

    def _on_rollout_start(self) -> None:
        self.segments: list[list[dict[str, Any]]] = []
        self.running: dict[int, list[dict[str, Any]]] = {}  # by row
        if self.out is None:
            self.out = np.zeros(self.training_env.num_envs, bool)
        self.playing = self.seeds()
        self.time = 0
        self.fresh = {row: self.model._last_episode_starts[row] for row in range(len(self.out))}

    def _on_step(self) -> bool:
        dones, infos = self.locals["dones"], self.locals["infos"]
        after = self.seeds()
        for row in range(len(dones)):
            if not self.out[row]:
                step = {"at": (self.time, row), "reward": float(self.locals["rewards"][row]), "end": 0.0}
                step["value"] = self.value(self.model._last_obs[row])
                step["observation"] = self.model._last_obs[row]
                self.running.setdefault(row, []).append(step)
                if dones[row]:
                    if infos[row]["TimeLimit.truncated"]:
                        step["end"] = self.value(infos[row]["terminal_observation"])
                    self.segments.append(self.running.pop(row))
            self.out[row] = (self.out[row] or dones[row]) and after[row] == self.playing[row]
        self.playing = after
        self.time += 1
        return True

    def _on_rollout_end(self) -> None:
        expected: dict[tuple[int, int], tuple[float, float]] = {}
        finished = [(segment, segment[-1]["end"]) for segment in self.segments]
        cut = [(segment, self.value(self.locals["new_obs"][row])) for row, segment in self.running.items()]
        for segment, following in finished + cut:
            advantage = 0.0
            for step in reversed(segment):
                delta = step["reward"] + self.gamma * following - step["value"]
                advantage = delta + self.gamma * self.lam * advantage
                expected[step["at"]] = advantage, advantage + step["value"]
                following = step["value"]
        buffer = self.model.rollout_buffer
        self.cases |= {"cut short"} if cut else set()
        self.cases |= {"death at the boundary"} if self.locals["dones"].any() else set()
        self.cases |= {"padding at the boundary"} if self.out.any() else set()
        self.cases |= {"truncated"} if any(end for _, end in finished) else set()
        assert {tuple(at) for at in np.argwhere(buffer.acted).tolist()} == set(expected)
        for at, (advantage, returned) in expected.items():
            assert buffer.advantages[at] == pytest.approx(advantage, abs=1e-4)
            assert buffer.returns[at] == pytest.approx(returned, abs=1e-4)
        (batch,) = buffer.get()
        assert sorted(batch.advantages.tolist()) == pytest.approx(sorted(a for a, _ in expected.values()), abs=1e-4)
        assert sorted(batch.returns.tolist()) == pytest.approx(sorted(r for _, r in expected.values()), abs=1e-4)
        assert len(batch.observations) == len(batch.actions) == len(batch.old_log_prob) == len(expected)
        self.check_rewards()

    def check_rewards(self) -> None:
        """Scripted rewards come from the raw environment's own formula."""
        for segment in [*self.segments, *self.running.values()] if self.model.observation_space.shape == (6,) else []:
            for step in segment:
                agent, turn = step["observation"][[AGENT, STEP]]
                assert step["reward"] == np.float32(agent + 1 + (turn + 1) / 64)


@pytest.mark.parametrize("n_steps", [2, 3, 5, 9])
@pytest.mark.parametrize("name", [*SCRIPTS, "snake"])
def test_advantages_and_returns_are_those_computed_by_hand(name: str, n_steps: int) -> None:
    venv = snakes() if name == "snake" else scripted(name)
    settings = {
        "n_steps": n_steps,
        "batch_size": 16,
        "n_epochs": 1,
        "gamma": 0.9,
        "gae_lambda": 0.8,
        "device": "cpu",
        "seed": 0,
    }
    model = make_model(PPO, venv, "ActiveRolloutBuffer", **settings)
    by_hand = ByHand(0.9, 0.8)
    model.learn(10 * n_steps * venv.num_envs, callback=by_hand)
    if (name, n_steps) in [("snake", 5), ("mixed games", 5)]:
        assert by_hand.cases == {"cut short", "death at the boundary", "padding at the boundary", "truncated"}


@pytest.mark.parametrize("algorithm", [A2C, MaskablePPO])
def test_advantages_of_other_algorithms(algorithm: Any) -> None:
    kwargs = {"batch_size": 16} if algorithm is MaskablePPO else {}
    venv = scripted(masks="info")
    buffer = "ActiveMaskableRolloutBuffer" if algorithm is MaskablePPO else "ActiveRolloutBuffer"
    model = make_model(algorithm, venv, buffer, n_steps=5, gamma=0.9, gae_lambda=0.8, device="cpu", seed=0, **kwargs)
    model.learn(10 * 5 * venv.num_envs, callback=ByHand(0.9, 0.8))


def test_a_new_game_is_an_episode_start_however_long_ago_the_last_one_ended() -> None:
    venv = scripted()
    model = make_model(PPO, venv, "ActiveRolloutBuffer", n_steps=30, batch_size=16, device="cpu")
    late = []

    class Look(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            buffer = model.rollout_buffer
            steps, starts = buffer.observations[..., STEP], buffer.episode_starts.astype(bool)
            assert starts[buffer.acted & (steps == 0)].all()
            assert not starts[buffer.acted & (steps > 0)].any()
            late.append((buffer.acted[1:] & starts[1:] & ~buffer.acted[:-1]).sum())

    model.learn(30, callback=Look())
    assert late[0] > 3


def test_logged_explained_variance_is_of_real_steps_alone() -> None:
    venv = scripted()
    model = make_model(PPO, venv, "ActiveRolloutBuffer", **CASES["PPO"][2])
    model.learn(5 * venv.num_envs)
    buffer = model.rollout_buffer
    assert buffer.values.size == buffer.returns.size == venv.active.total < 5 * venv.num_envs
    from stable_baselines3.common.utils import explained_variance

    logged = model.logger.name_to_value["train/explained_variance"]
    assert logged == pytest.approx(explained_variance(buffer.values.flatten(), buffer.returns.flatten()))


def test_minibatches_are_of_nearly_one_size_and_no_larger_than_asked_for() -> None:
    rows = ActiveMask(3)
    buffer = ActiveRolloutBuffer(3, spaces.Box(0, 9, (1,)), spaces.Discrete(2), device="cpu", n_envs=3, active=rows)
    nothing, one = np.zeros(3, bool), torch.ones(3)
    for step in range(3):
        rows.step(np.array([True, step < 2, True]), nothing)
        buffer.add(np.full((3, 1), step), np.zeros((3, 1)), np.ones(3), nothing, one, one)
    buffer.compute_returns_and_advantage(one, nothing)
    for size, expected in [(None, [8]), (8, [8]), (7, [4, 4]), (3, [3, 3, 2]), (100, [8])]:
        batches = [batch.observations.flatten().tolist() for batch in buffer.get(size)]
        assert [len(batch) for batch in batches] == expected
        assert sorted(np.concatenate(batches).tolist()) == [0, 0, 0, 1, 1, 1, 2, 2]


# Replay


@pytest.mark.parametrize("env", [ScriptedEnv, DictEnv])
def test_a_replay_buffer_holds_real_transitions_one_after_the_other(env: Any) -> None:
    venv = scripted(env=env)
    buffer = "ActiveDictReplayBuffer" if env is DictEnv else "ActiveReplayBuffer"
    model = make_model(DQN, venv, buffer, learning_starts=10_000, buffer_size=100, device="cpu")
    model.learn(80)
    stored = model.replay_buffer
    assert stored.size() == venv.active.total < 80
    model.learn(400)
    assert stored.full
    assert stored.size() == 100
    batch = stored.sample(500)
    of: Callable[[Any], np.ndarray] = lambda given: (given["numbers"] if env is DictEnv else given).numpy()  # noqa: E731
    before, after = of(batch.observations), of(batch.next_observations)
    assert np.array_equal(after[:, STEP], before[:, STEP] + 1)
    assert np.array_equal(after[:, [AGENT, GAME, 3]], before[:, [AGENT, GAME, 3]]), "of the same agent in the same game"
    assert np.array_equal(after[:, 5], batch.actions[:, 0].numpy())
    assert batch.rewards[:, 0].numpy() == pytest.approx(before[:, AGENT] + 1 + after[:, STEP] / 64)
    scripts = SCRIPTS["mixed games"]
    ends = [scripts[int(game) % 4].get(int(agent), (LIMIT, "truncated")) for agent, game in before[:, [AGENT, GAME]]]
    done = [step == when and how != "truncated" for step, (when, how) in zip(after[:, STEP], ends, strict=True)]
    assert batch.dones[:, 0].numpy().astype(bool).tolist() == done
    assert 0 < sum(done) < 500


def test_a_ring_smaller_than_a_step_keeps_the_last_rows() -> None:
    rows = ActiveMask(4)
    buffer = ActiveReplayBuffer(3, spaces.Discrete(9), spaces.Discrete(2), device="cpu", n_envs=4, active=rows)
    for first in (0, 4):
        rows.step(np.array([True, True, False, True]), np.zeros(4, bool))
        seen = np.arange(first, first + 4)
        buffer.add(seen, seen, np.zeros(4), np.ones(4), np.zeros(4), [{}] * 4)
    rows.step(np.array([False, False, True, False]), np.zeros(4, bool))
    buffer.add(np.array([0, 0, 8, 0]), seen, np.zeros(4), np.ones(4), np.zeros(4), [{}] * 4)
    assert buffer.full
    assert sorted(buffer.observations.flatten().tolist()) == [5, 7, 8]


def test_what_replay_cannot_do_is_refused() -> None:
    venv = scripted()
    with pytest.raises(ValueError, match="optimize_memory_usage=True: leave it out"):
        make_model(DQN, venv, "ActiveReplayBuffer", optimize_memory_usage=True)
    with pytest.raises(ValueError, match="n_steps=3"):
        DQN(
            "MlpPolicy",
            venv,
            replay_buffer_class=ActiveReplayBuffer,
            replay_buffer_kwargs={"active": venv.active, "n_steps": 3, "gamma": 0.9},
        )
    with pytest.warns(UserWarning, match="`n_steps=3` is ignored"):
        model = make_model(DQN, venv, "ActiveReplayBuffer", n_steps=3)
    with pytest.raises(ValueError, match=r"DQN\(n_steps=3\): use n_steps=1"):
        model.learn(10)


# Saving, loading, other environments


@pytest.mark.parametrize("case", ["PPO", "MaskablePPO", "DQN"])
def test_a_saved_model_learns_on(case: str, tmp_path: Path) -> None:
    algorithm, buffer, kwargs, env_kwargs = CASES[case]
    venv = scripted(**env_kwargs)
    make_model(algorithm, venv, buffer, **kwargs).learn(60).save(tmp_path / "model")
    other = scripted(num_games=3, **env_kwargs)
    model = algorithm.load(tmp_path / "model", env=other)
    name = "rollout_buffer" if "Rollout" in buffer else "replay_buffer"
    assert getattr(model, f"{name}_kwargs") == {}
    assert type(getattr(model, name)).__module__.startswith(("stable_baselines3", "sb3_contrib"))
    seen = watch(model)
    with warnings.catch_warnings(category=UserWarning, action="error"):  # of a buffer that stores padding
        warnings.filterwarnings("ignore", "You have specified a mini-batch size")
        model.learn(200)
    assert isinstance(getattr(model, name), ActiveBuffer)
    assert not is_padding(np.concatenate(seen)).any()
    for learners, num_games in ((2, 6), (1, 12)):  # and once more elsewhere, also where there is no padding
        another = scripted(learners=learners, num_games=num_games, **env_kwargs)
        model.set_env(another)
        model.learn(200)
        assert not is_padding(np.concatenate(seen)).any()
        assert another.active.total > 0


@pytest.mark.parametrize("case", ["PPO", *(pytest.param(name, marks=pytest.mark.slow) for name in ("MaskablePPO", "DQN"))])
def test_a_saved_model_loads_where_this_package_is_not(case: str, tmp_path: Path) -> None:
    algorithm, buffer, kwargs, env_kwargs = CASES[case]
    make_model(algorithm, scripted(**env_kwargs), buffer, **kwargs).learn(60).save(tmp_path / "model")
    home = "sb3_contrib" if case == "MaskablePPO" else "stable_baselines3"
    code = (
        "import sys; sys.modules['adapters'] = sys.modules['snake_pz'] = None\n"
        f"from {home} import {case}; {case}.load({os.fspath(tmp_path / 'model')!r}, device='cpu')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_buffer_of_ones_own_stays_in_the_file(tmp_path: Path) -> None:
    venv = scripted()
    kwargs = {"rollout_buffer_class": OwnBuffer, "rollout_buffer_kwargs": {"active": venv.active}}
    model = PPO("MlpPolicy", venv, n_steps=5, device="cpu", **kwargs).learn(40)
    model.save(tmp_path / "model")
    assert PPO.load(tmp_path / "model", device="cpu").rollout_buffer_class is OwnBuffer


class OwnBuffer(ActiveRolloutBuffer):
    pass


def test_a_saved_replay_buffer_is_filled_on(tmp_path: Path) -> None:
    venv = scripted()
    make_model(DQN, venv, "ActiveReplayBuffer", **OFF).learn(60).save_replay_buffer(tmp_path / "buffer.pkl")
    model = make_model(DQN, venv, "ActiveReplayBuffer", **OFF)
    model.load_replay_buffer(tmp_path / "buffer.pkl")
    size = model.replay_buffer.size()
    before = venv.active.total
    model.learn(60)
    assert model.replay_buffer.size() == size + venv.active.total - before


def test_rows_of_nothing_or_of_another_vec_env_are_refused() -> None:
    venv, other = scripted(), scripted()
    model = make_model(PPO, venv, "ActiveRolloutBuffer", **CASES["PPO"][2])
    model.learn(40)
    model.rollout_buffer.active = ActiveMask()
    with pytest.raises(ValueError, match=r"needs the active mask of the VecEnv whose 8 environments.*empty mask"):
        model.learn(40, reset_num_timesteps=False)
    model.rollout_buffer.bind(other.active)
    with pytest.raises(ValueError, match="learns on another one"):
        model.learn(40, reset_num_timesteps=False)


# Above the VecEnv


def test_recurrent_ppo_is_refused() -> None:
    model = RecurrentPPO("MlpLstmPolicy", scripted(), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match=r"RecurrentPPO cannot learn.*learners=1.*frame_stack_v2"):
        model.learn(10)
    RecurrentPPO("MlpLstmPolicy", scripted(learners=1), n_steps=8, batch_size=8, device="cpu").learn(16)


@pytest.mark.filterwarnings("ignore:The environment is already wrapped with a `Monitor`")
@pytest.mark.parametrize(
    ("wrap", "message"), [(VecMonitor, "VecMonitor would"), (partial(VecFrameStack, n_stack=2), "VecFrameStack would")]
)
def test_wrappers_that_count_padding_are_refused(wrap: Any, message: str) -> None:
    wrapped = VecNormalize(wrap(scripted()))
    with pytest.raises(ValueError, match=message):
        make_model(PPO, wrapped, "ActiveRolloutBuffer", **CASES["PPO"][2]).learn(10)
    with pytest.raises(ValueError, match=message):
        wrapped.reset()
    wrap(scripted(learners=1)).reset()


def test_vec_normalize_is_allowed() -> None:
    venv = VecNormalize(scripted())
    for case in ("PPO", "DQN"):
        algorithm, buffer, kwargs, _ = CASES[case]
        model = make_model(algorithm, venv, buffer, **kwargs).learn(200)
        assert isinstance(model.rollout_buffer if case == "PPO" else model.replay_buffer, ActiveBuffer)


def test_evaluation_counts_every_learner_s_episodes() -> None:
    venv = scripted("one by one")
    model = make_model(PPO, venv, "ActiveRolloutBuffer", **CASES["PPO"][2])
    rewards, lengths = evaluate_policy(model, scripted("one by one"), n_eval_episodes=16, return_episode_rewards=True)
    assert sorted(lengths) == [2] * 4 + [3] * 4 + [5] * 8
    assert len(rewards) == 16


# Activating a model that has SB3's own buffer


@pytest.mark.parametrize("case", CASES)
def test_activate_exchanges_the_buffer_alone(case: str) -> None:
    algorithm, buffer, kwargs, env_kwargs = CASES[case]
    venv = scripted(**env_kwargs)
    model = make_model(algorithm, venv, **kwargs)
    name = "rollout_buffer" if "Rollout" in buffer else "replay_buffer"
    plain, classes = getattr(model, name), getattr(model, f"{name}_class")
    activate(model, venv.active)
    made = getattr(model, name)
    assert type(made) is getattr(adapters, buffer)
    assert getattr(model, f"{name}_class") is classes
    settings = ("gamma", "gae_lambda", "device", "observation_space", "action_space", "handle_timeout_termination")
    for setting in settings:
        assert getattr(made, setting, None) == getattr(plain, setting, None)
    assert made.buffer_size == (plain.buffer_size if name == "rollout_buffer" else plain.buffer_size * venv.num_envs)
    seen = watch(model)
    model.learn(100)
    assert not is_padding(np.concatenate(seen)).any()
    activate(model, venv.active)
    assert getattr(model, name) is made


def test_activate_refuses_what_it_cannot_do() -> None:
    venv = scripted(learners=1)
    recurrent = RecurrentPPO("MlpLstmPolicy", venv, n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match=r"RecurrentPPO cannot leave out padding.*RecurrentRolloutBuffer"):
        activate(recurrent, venv.active)
    n_steps = DQN("MlpPolicy", venv, n_steps=3, buffer_size=100, device="cpu")
    assert isinstance(n_steps.replay_buffer, NStepReplayBuffer)
    with pytest.raises(ValueError, match="NStepReplayBuffer"):
        activate(n_steps, venv.active)
    used = DQN("MlpPolicy", venv, buffer_size=100, device="cpu").learn(10)
    with pytest.raises(ValueError, match=r"already holds .*replay_buffer_class=ActiveReplayBuffer"):
        activate(used, venv.active)


# Learning


@pytest.mark.slow
def test_bench_learners_prints_every_row() -> None:
    table = bench_learners(0.01, num_games=2)
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert [row[0] for row in rows] == ["one learner, three checkpoints", "one policy in all four seats", "ratio"]
    assert rows[2][1].endswith("(target >= 2.5x)")


@pytest.mark.slow
def test_four_snakes_learn_together_to_stay_alive() -> None:
    rules = {"width": 7, "height": 7, "observation": "egocentric", "actions": "relative"}

    def lengths(model: Any) -> float:
        games = make_sb3_env(learners="all", num_games=16, env_kwargs=rules, seed=1)
        return float(np.mean(evaluate_policy(model, games, 200, deterministic=False, return_episode_rewards=True)[1]))

    venv = make_sb3_env(learners="all", num_games=16, env_kwargs=rules, seed=0)
    model = PPO(
        "CnnPolicy",
        venv,
        n_steps=32,
        batch_size=256,
        n_epochs=4,
        learning_rate=1e-3,
        policy_kwargs=policy_kwargs(),
        rollout_buffer_class=ActiveRolloutBuffer,
        rollout_buffer_kwargs={"active": venv.active},
        device="cpu",
        seed=0,
    )
    untrained = lengths(model)
    model.learn(40_000)
    assert lengths(model) > 2 * untrained
