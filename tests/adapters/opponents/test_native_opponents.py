"""Checkpoints of other encodings, action sets and wrappers in native games: each sees and moves as it was trained."""

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize, VecTransposeImage

from adapters import make_sb3_env
from adapters.games.native import NativeGameBatch
from adapters.networks import policy_kwargs
from snake_pz import snake_v0
from snake_pz.core.actions import to_absolute

RULES = {"width": 7, "height": 7, "max_cycles": 15}
SMALL = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "device": "cpu", "seed": 0}


def save(path, wrap=lambda venv: venv, policy="MlpPolicy", steps=16, **env_kwargs):
    """A checkpoint of a model trained in such games, and its environment."""
    venv = wrap(make_sb3_env("random", num_games=2, env_kwargs={**RULES, **env_kwargs}, seed=0))
    kwargs = policy_kwargs(16, 8) if policy == "CnnPolicy" else {"net_arch": [8]}
    model = PPO(policy, venv, policy_kwargs=kwargs, **SMALL).learn(steps)
    model.save(path)
    return model, venv


def open_games(path, **env_kwargs):
    """Three games with the checkpoint on every enemy seat; the opponent, and what its policy saw, slots, moves of each turn."""
    env = make_sb3_env(path, num_games=3, env_kwargs={**RULES, **env_kwargs}, deterministic=True, device="cpu", seed=2)
    (opponent,) = env.lineup.opponents
    turns = []
    actor, act = opponent._actor, opponent.act

    def watched_actor(observations):
        turns.append([observations.numpy().copy()])
        return actor(observations)

    def watched_act(observations, slots, masks):
        moves = act(observations, slots, masks)
        turns[-1] += [slots, moves]
        return moves

    opponent._actor, opponent.act = watched_actor, watched_act
    env.lineup.ahead.wanted = False  # ahead, logits come without a call of `act`
    return env, opponent, turns


LEARNERS = [{"observation": "board", "actions": "absolute"}, {"observation": "egocentric", "actions": "relative"}]


@pytest.mark.parametrize("trained_in", [*LEARNERS, {"observation": "single", "actions": "relative"}], ids=str)
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_checkpoint_of_any_encoding_and_action_set_plays_any_learner(tmp_path, trained_in, learner):
    model, _ = save(tmp_path / "m.zip", policy="CnnPolicy", **trained_in)
    env, opponent, turns = open_games(tmp_path / "m.zip", **learner)
    assert opponent.observation_space == model.observation_space
    env.reset()
    assert env.observation_space.shape == env.reset().shape[1:]
    joint = []
    step = env.game_batch.step
    env.game_batch.step = lambda actions: joint.append(actions.copy()) or step(actions)
    for _ in range(25):
        games, seats = np.divmod(np.flatnonzero(env.time_step.active & ([False] + [True] * 3)), 4)
        shown = env.game_batch.observations(trained_in["observation"])[games, seats]
        headings = env.game_batch.headings(games, seats)
        env.step(np.zeros(3, int))
        if len(games):
            saw, slots, moves = turns[-1]
            np.testing.assert_array_equal(saw, shown)
            np.testing.assert_array_equal(slots, games * 4 + seats)
            np.testing.assert_array_equal(moves, model.predict(shown, deterministic=True)[0])
            expected = moves if trained_in["actions"] == "absolute" else to_absolute(moves, headings)
            np.testing.assert_array_equal(joint[-1][games, seats], expected)


@pytest.mark.filterwarnings("ignore:Treating image space as channels-last")  # SB3 of (21, 7, 7), which it transposes
@pytest.mark.parametrize(("trained_in", "policy"), [("single", "CnnPolicy"), ("board", "MlpPolicy")])
def test_stacked_frames_are_each_snakes_own_and_begin_with_its_game(tmp_path, trained_in, policy):
    stack = lambda venv: VecFrameStack(venv, 3)  # noqa: E731
    save(
        tmp_path / "m.zip",
        stack if trained_in == "single" else lambda venv: VecTransposeImage(stack(venv)),  # as SB3 alone did
        policy,
        observation=trained_in,
    )
    env, opponent, turns = open_games(tmp_path / "m.zip", observation="board")
    planes = opponent.observation_space.shape[0]
    assert planes == {"single": 1, "board": 7}[trained_in]
    env.reset()
    history: dict[int, list] = {}
    restarts = 0
    for _ in range(25):
        now = env.game_batch.observations(trained_in).reshape(12, *opponent.observation_space.shape).copy()
        before = len(turns)
        _, _, dones, _ = env.step(np.zeros(3, int))
        for row, slot in enumerate(turns[-1][1].tolist() if len(turns) > before else []):
            frames = history.setdefault(slot, [np.zeros_like(now[0])] * 2)
            frames.append(now[slot])
            stacked = np.concatenate(frames[-3:])
            stacked = stacked if policy == "CnnPolicy" else np.moveaxis(stacked, -1, 0)
            np.testing.assert_array_equal(turns[-1][0][row], stacked, err_msg=f"slot {slot}")
        for game in np.flatnonzero(dones).tolist():
            restarts += 1
            for slot in range(4 * game, 4 * game + 4):
                history.pop(slot, None)
    assert restarts > 3


def test_normalised_and_stacked_by_a_live_model_that_trains_on(tmp_path):
    model, venv = save(tmp_path / "m.zip", lambda venv: VecFrameStack(VecNormalize(venv), 2), observation="single")
    env = venv.unwrapped
    env.set_opponent(model, "now")
    (opponent,) = env.lineup.opponents
    assert opponent.observation_space == env.observation_space
    statistics = opponent.preprocessing.steps[0].statistics
    mean, count = statistics.obs_rms.mean.copy(), statistics.obs_rms.count
    model.learn(32, reset_num_timesteps=False)
    np.testing.assert_array_equal(statistics.obs_rms.mean, mean)
    assert statistics.obs_rms.count == count < venv.obs_rms.count


def test_a_checkpoint_of_another_board_is_refused(tmp_path):
    save(tmp_path / "m.zip", width=9, height=9)
    with pytest.raises(ValueError, match=r"player '.*m\.zip' cannot play in these games: .*cannot play on a 7x7 board"):
        open_games(tmp_path / "m.zip")


def test_a_live_model_under_an_unknown_wrapper_is_refused_by_what_it_sees():
    from gymnasium import spaces
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class Halves(VecEnvWrapper):
        def __init__(self, venv):
            super().__init__(venv, spaces.Box(0, 1, venv.observation_space.shape, np.float32))

        def reset(self):
            return self.venv.reset() / 255

        def step_wait(self):
            return self.venv.step_wait()

    venv = Halves(make_sb3_env("random", num_games=2, env_kwargs=RULES))
    model = PPO("MlpPolicy", venv, **SMALL)
    with pytest.raises(ValueError, match=r"player 'PPO' cannot play in these games: a player trained to see .*float32"):
        venv.unwrapped.set_opponent(model)


@pytest.mark.parametrize("backend", ["native", "supersuit"])
@pytest.mark.parametrize("kwargs", [{}, {"observation": "single"}, {"observation": "egocentric", "actions": "relative"}])
def test_random_plays_games_of_every_encoding(backend, kwargs):
    env = make_sb3_env("random", env_kwargs=kwargs, num_games=2, backend=backend, seed=0)
    env.reset()
    for _ in range(5):
        env.step(np.ones(2, np.int64))
    env.close()


@pytest.mark.parametrize("env", [snake_v0.parallel_env, "snake_v0", "snake-v0", "snake"])
def test_the_snake_is_played_natively_by_all_its_names(env):
    kwargs = {"width": 7, "height": 9, "num_snakes": 2}
    venv = make_sb3_env("greedy", env=env, env_kwargs=kwargs, num_games=2, seed=1)
    plain = make_sb3_env("greedy", env_kwargs=kwargs, num_games=2, seed=1)
    assert isinstance(venv.game_batch, NativeGameBatch)
    first = plain.reset()
    assert np.array_equal(venv.reset(), first)
    slow = make_sb3_env("greedy", env=env, env_kwargs=kwargs, num_games=2, seed=1, backend="supersuit")
    assert not isinstance(slow.game_batch, NativeGameBatch)
    assert np.array_equal(slow.reset(), first)
    for one in (venv, plain, slow):
        one.close()


def test_workers_play_the_snake_with_its_bots():
    venv = make_sb3_env("greedy", env=snake_v0.parallel_env, num_games=2, num_workers=1)
    venv.reset()
    venv.step(np.zeros(2, np.int64))
    venv.close()
