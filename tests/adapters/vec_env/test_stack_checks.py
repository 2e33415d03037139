"""What Stable-Baselines3 and sb3-contrib put on top of a VecEnv, unmodified: a test each that a broken contract fails."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
    VecVideoRecorder,
)

from adapters.sb3 import make_sb3_env
from adapters.vec_env.curry import CurryVecEnv
from tests.support.scripted_env import SCRIPTS, DictEnv, ScriptedEnv

torch.set_num_threads(1)

AGENT, STEP, GAME = 0, 1, 2  # columns of a scripted observation


def scripted(name: str = "mixed games", num_games: int = 2, opponent: Any = "random", **kwargs: Any) -> CurryVecEnv:
    return make_sb3_env(opponent, env=ScriptedEnv, env_kwargs={"scripts": SCRIPTS[name], **kwargs}, num_games=num_games, seed=3)


def still(venv: Any) -> NDArray[np.int64]:
    return np.zeros(venv.num_envs, np.int64)


# Wrappers


def test_vec_monitor_counts_the_episodes_that_we_count(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):  # so it is: nobody needs VecMonitor here
        venv = VecMonitor(scripted(), str(tmp_path / "log"), info_keywords=("agent_name",))
    plain = scripted()
    venv.reset()
    plain.reset()
    episodes = 0
    for _ in range(40):
        monitored, ours = venv.step(still(venv))[3], plain.step(still(plain))[3]
        for one, other in zip(monitored, ours, strict=True):
            assert ("episode" in one) == ("episode" in other)
            if "episode" in one:
                episodes += 1
                assert one["episode"]["l"] == other["episode"]["l"]
                assert one["episode"]["r"] == pytest.approx(other["episode"]["r"])
    venv.close()
    assert len((tmp_path / "log.monitor.csv").read_text().splitlines()) == episodes + 2


def test_vec_normalize_normalizes_terminal_observations_and_forgets_returns_at_the_end() -> None:
    venv = VecNormalize(scripted("one by one"), gamma=0.5)
    venv.reset()
    for _ in range(30):
        _, _, dones, infos = venv.step(still(venv))
        assert (venv.returns[dones] == 0).all()
        assert (venv.returns[~dones] > 0).all()
        for env in np.flatnonzero(dones):
            terminal = venv.unnormalize_obs(infos[env]["terminal_observation"])
            assert np.allclose(terminal[STEP], infos[env]["episode"]["l"], atol=1e-4)
    assert venv.obs_rms.count > 50


def test_vec_frame_stack_holds_frames_of_one_game_alone() -> None:
    venv = VecFrameStack(scripted(), 3)
    venv.reset()
    ends = 0
    for _ in range(40):
        observations, _, dones, infos = venv.step(still(venv))
        frames = observations.reshape(2, 3, 6)
        for env in range(2):
            stacks = [frames[env]]
            if dones[env]:
                ends += 1
                assert not frames[env, :2].any(), "a new game starts with an empty stack"
                stacks = [infos[env]["terminal_observation"].reshape(3, 6)]
            for stack in stacks:
                filled = stack[stack.any(axis=1)]
                assert len(set(map(tuple, filled[:, [AGENT, GAME]]))) == 1
                assert np.array_equal(np.diff(filled[:, STEP]), np.ones(len(filled) - 1))
    assert ends > 10


def test_vec_check_nan_lets_sound_games_pass_and_finds_a_nan() -> None:
    class Broken(ScriptedEnv):
        def step(self, actions: dict[str, Any]) -> Any:
            observations, rewards, *rest = super().step(actions)
            return (observations, dict.fromkeys(rewards, np.nan if self.time == 4 else 1.0), *rest)

    venv = VecCheckNan(scripted(), raise_exception=True)
    venv.reset()
    for _ in range(20):
        venv.step(still(venv))
    broken = VecCheckNan(make_sb3_env("random", env=Broken, num_games=2), raise_exception=True)
    broken.reset()
    for _ in range(3):
        broken.step(still(broken))
    with pytest.raises(ValueError, match="found nan in rewards"):
        broken.step(still(broken))


class Picture(ScriptedEnv):
    """Images with the channels last."""

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(0, 255, (40, 36, 3), np.uint8)

    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        picture = np.zeros((40, 36, 3), np.uint8)
        picture[..., 1], picture[0, :, 2] = self.time + 1, 7
        return dict.fromkeys(agents, picture)


def test_vec_transpose_image_transposes_terminal_observations_too(tmp_path: Path) -> None:
    games = make_sb3_env("random", env=Picture, num_games=2, env_kwargs={"limit": 3})
    venv = VecTransposeImage(games)
    assert venv.reset().shape == (2, 3, 40, 36)
    for _ in range(3):
        observations, _, dones, infos = venv.step(still(venv))
    assert dones.all()
    assert observations.shape == (2, 3, 40, 36)
    assert observations[0, 1, 5, 5] == 1
    for info in infos:
        assert info["terminal_observation"].shape == (3, 40, 36)
        assert info["terminal_observation"][1, 5, 5] == 4
    model = PPO("CnnPolicy", games, n_steps=4, batch_size=8, n_epochs=1, device="cpu")
    model.learn(16)
    model.save(tmp_path / "pictures")
    games.set_opponent(tmp_path / "pictures.zip", when="now")
    model.learn(16)


def test_vec_video_recorder_films_all_games_as_they_go_on(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="VecVideoRecorder writes its films with moviepy")
    kwargs = {"width": 7, "height": 7, "render_mode": "rgb_array"}
    games = make_sb3_env("greedy", num_games=2, seed=0, env_kwargs=kwargs)
    venv = VecVideoRecorder(games, str(tmp_path), lambda step: step == 0, video_length=20)
    assert venv.frames_per_sec == 10
    venv.reset()
    for _ in range(19):
        venv.step(np.ones(2, np.int64))
        assert np.array_equal(venv.recorded_frames[-1], games.render("rgb_array"))
    assert len({frame.tobytes() for frame in venv.recorded_frames}) > 10
    for _ in range(2):
        venv.step(np.ones(2, np.int64))
    venv.close()
    (film,) = tmp_path.glob("*.mp4")
    assert film.stat().st_size > 1000


# Evaluation and callbacks


def test_evaluate_policy_counts_whole_episodes_of_the_learner_without_a_warning() -> None:
    model = PPO("MlpPolicy", scripted(), device="cpu")
    returns, lengths = evaluate_policy(model, scripted("one by one"), n_eval_episodes=12, return_episode_rewards=True)
    ends = {2: 0, 3: 1, 5: 2}  # "one by one" ends agents 0 and 1 at steps 2 and 3, and both others at 5
    for total, length in zip(returns, lengths, strict=True):
        possible = [sum(agent + 1 + step / 64 for step in range(1, length + 1)) for agent in (ends[length], 3)]
        assert total in [pytest.approx(value) for value in possible]


def test_eval_callback_and_checkpoint_callback(tmp_path: Path) -> None:
    venv = scripted()
    evaluation = EvalCallback(
        scripted("one by one"), n_eval_episodes=4, eval_freq=16, log_path=str(tmp_path), best_model_save_path=str(tmp_path)
    )
    checkpoints = CheckpointCallback(16, str(tmp_path), "snake")
    model = PPO("MlpPolicy", venv, n_steps=16, batch_size=32, n_epochs=1, device="cpu")
    model.learn(64, callback=[evaluation, checkpoints])
    logged = np.load(tmp_path / "evaluations.npz")
    assert set(logged["ep_lengths"].ravel().tolist()) <= {2, 3, 5}
    assert logged["timesteps"].tolist() == [32, 64]
    for saved in ("snake_32_steps.zip", "best_model.zip"):
        venv.set_opponent(tmp_path / saved, when="now")
        model.learn(32, reset_num_timesteps=False)


def test_success_rate_is_the_share_of_games_won(tmp_path: Path) -> None:
    rules = {"width": 7, "height": 7, "num_snakes": 2}
    make = partial(make_sb3_env, "random", env_kwargs=rules, num_games=4)
    evaluation = EvalCallback(make(seed=1), n_eval_episodes=40, eval_freq=16, log_path=str(tmp_path), verbose=0)
    model = PPO("MlpPolicy", make(seed=0), n_steps=16, batch_size=64, n_epochs=1, device="cpu", seed=0)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(64, callback=evaluation)
    model.logger.close()
    with open(tmp_path / "progress.csv") as file:
        logged = [row["eval/success_rate"] for row in csv.DictReader(file) if row["eval/success_rate"]]
    (won,) = np.load(tmp_path / "evaluations.npz")["successes"]
    assert [float(rate) for rate in logged] == [pytest.approx(won.mean())]
    assert set(won) <= {0.0, 0.5, 1.0}
    assert 0 < won.mean() < 1
    assert len(model.ep_success_buffer) > 0  # of which SB3 logs rollout/success_rate


# Algorithms


class Starts(BaseCallback):
    """What an on-policy rollout buffer holds, checked as it is filled."""

    def __init__(self) -> None:
        super().__init__()
        self.games = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer
        observations = buffer.observations.reshape(buffer.buffer_size, buffer.n_envs, -1)
        starts = buffer.episode_starts.astype(bool)
        assert np.array_equal(observations[..., STEP] == 0, starts), "episodes start where games do"
        following, running = observations[1:], ~starts[1:]
        assert np.array_equal(following[running][:, STEP], observations[:-1][running][:, STEP] + 1)
        assert np.array_equal(following[running][:, [AGENT, GAME]], observations[:-1][running][:, [AGENT, GAME]])
        paid = observations[:-1][running][:, AGENT] + 1 + following[running][:, STEP] / 64
        assert np.allclose(buffer.rewards[:-1][running], paid)
        self.games += int(starts.sum())


@pytest.mark.parametrize("name", ["mixed games", "one step", "truncation only"])
@pytest.mark.parametrize("algorithm", [PPO, A2C, MaskablePPO, RecurrentPPO])
def test_on_policy_algorithms_fill_their_buffer_with_whole_games(algorithm: Any, name: str) -> None:
    masks = {"masks": "observation"} if algorithm is MaskablePPO else {}
    kwargs = {A2C: {"n_steps": 10}}.get(algorithm, {"n_steps": 10, "batch_size": 20, "n_epochs": 1})
    policy = "MlpLstmPolicy" if algorithm is RecurrentPPO else "MlpPolicy"
    model = algorithm(policy, scripted(name, **masks), device="cpu", seed=0, **kwargs)
    starts = Starts()
    model.learn(120, callback=starts)
    assert starts.games >= 12
    assert {episode["l"] for episode in model.ep_info_buffer} <= set(range(1, 8))


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_maskable_ppo_never_plays_an_illegal_move_nor_does_its_checkpoint(masks: str, tmp_path: Path) -> None:
    """ScriptedEnv counts the illegal moves of all its agents."""
    venv = scripted(masks=masks)
    model = MaskablePPO("MlpPolicy", venv, n_steps=10, batch_size=20, n_epochs=1, device="cpu", seed=0)
    model.save(tmp_path / "masked")
    games = scripted(masks=masks, opponent=tmp_path / "masked.zip")
    model.set_env(games)
    model.learn(100)
    assert games.get_attr("illegal_moves") == [0, 0]
    assert sum(games.get_attr("steps")) >= 100


@pytest.mark.parametrize("name", ["mixed games", "one step", "truncation only"])
@pytest.mark.parametrize("algorithm", [DQN, QRDQN])
def test_replay_buffers_hold_the_real_next_observation_at_death_and_at_truncation(algorithm: Any, name: str) -> None:
    model = algorithm("MlpPolicy", scripted(name), learning_starts=20, buffer_size=400, device="cpu", seed=0)
    model.learn(160)
    buffer = model.replay_buffer
    size = buffer.size()
    observations, following = buffer.observations[:size], buffer.next_observations[:size]
    assert np.array_equal(following[..., STEP], observations[..., STEP] + 1)
    assert np.array_equal(following[..., [AGENT, GAME]], observations[..., [AGENT, GAME]])
    assert np.allclose(buffer.rewards[:size], observations[..., AGENT] + 1 + following[..., STEP] / 64)
    cut = buffer.timeouts[:size].astype(bool)
    limit = following[..., STEP] == 7
    if name == "truncation only":
        assert np.array_equal(buffer.dones[:size].astype(bool), limit)
        assert np.array_equal(cut, limit)
    if name == "one step":
        assert buffer.dones[:size].all()
        assert not cut.any()


def test_multi_input_policy_learns_from_dict_observations_and_plays_as_opponent(tmp_path: Path) -> None:
    venv = make_sb3_env("random", env=DictEnv, env_kwargs={"scripts": SCRIPTS["mixed games"]}, num_games=2, seed=0)
    model = PPO("MultiInputPolicy", venv, n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    model.learn(48)
    numbers = model.rollout_buffer.observations["numbers"]
    pictures = model.rollout_buffer.observations["picture"][..., 0, 0, 0].reshape(8, 2)
    assert np.array_equal(numbers.reshape(8, 2, 6)[..., STEP], pictures)
    model.save(tmp_path / "dict")
    venv.set_opponent([tmp_path / "dict.zip", model, lambda seen: np.zeros(len(seen["me"]), np.int64)], when="now")
    model.learn(48)
    replay = DQN("MultiInputPolicy", venv, learning_starts=10, buffer_size=100, device="cpu")
    replay.learn(60)
    stored = replay.replay_buffer
    following, before = stored.next_observations["numbers"][:30], stored.observations["numbers"][:30]
    assert np.array_equal(following[..., STEP], before[..., STEP] + 1)


def test_recurrent_ppo_clears_its_state_where_games_start() -> None:
    model = RecurrentPPO("MlpLstmPolicy", scripted("one by one"), n_steps=12, batch_size=12, n_epochs=1, device="cpu")
    model.learn(24)
    venv = model.get_env()
    observations, states, starts = venv.reset(), None, np.ones(2, bool)
    for _ in range(10):
        _, states = model.predict(observations, states, starts, deterministic=True)
        fresh = model.predict(observations, None, np.ones(2, bool), deterministic=True)[1]
        for env in np.flatnonzero(starts):
            assert np.allclose(states[0][:, env], fresh[0][:, env])
        observations, _, starts, _ = venv.step(still(venv))
        assert np.array_equal(observations[:, STEP] == 0, starts)


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_contract_14_masks_reach_maskable_ppo_on_both_backends(backend: Any) -> None:
    kwargs = {"width": 7, "height": 7, "mask_in_observation": True}
    venv = make_sb3_env("random", backend=backend, env_kwargs=kwargs, num_games=3, seed=0)
    plain = make_sb3_env("random", backend=backend, env_kwargs={"width": 7, "height": 7}, num_games=3)
    assert venv.observation_space == plain.observation_space
    model = MaskablePPO("MlpPolicy", venv, n_steps=16, batch_size=48, n_epochs=1, device="cpu", seed=0)
    model.learn(96)
    masks = model.rollout_buffer.action_masks.reshape(-1, 4).astype(bool)
    actions = model.rollout_buffer.actions.reshape(-1).astype(int)
    assert not masks.all()
    assert masks[np.arange(len(actions)), actions].all()


def test_both_backends_show_masks_in_the_observation_alike() -> None:
    kwargs = {"width": 7, "height": 7, "mask_in_observation": True}
    native, supersuit = (
        make_sb3_env("random", backend=backend, env_kwargs=kwargs, num_games=3, seed=0) for backend in ("native", "supersuit")
    )
    assert np.array_equal(native.reset(), supersuit.reset())
    rng = np.random.default_rng(0)
    for _ in range(60):
        assert np.array_equal(native.action_masks(), supersuit.action_masks())
        actions = rng.integers(4, size=3)
        for one, other in zip(native.step(actions)[:3], supersuit.step(actions)[:3], strict=True):
            assert np.array_equal(one, other)
