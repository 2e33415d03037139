"""RecurrentPPO as an opponent: what it remembers is kept per game and seat, whoever else is in the batch."""

import numpy as np
import pytest
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from adapters import make_sb3_env
from adapters.opponents.policy import PolicyOpponent
from tests.support.toys import FORCE, FOUR, LSTM, VECTOR, Toy, observe

VARIANTS = {
    "two": {},
    "shared": {"shared_lstm": True, "enable_critic_lstm": False},
    "actor only": {"enable_critic_lstm": False},
    "layers": {"n_lstm_layers": 2},
}
SETTINGS = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "device": "cpu", "seed": 0}


def make(space=VECTOR, actions=FOUR, **kwargs):
    model = RecurrentPPO("MlpLstmPolicy", Toy(space, actions), policy_kwargs=LSTM | kwargs, **SETTINGS)
    model.policy.lstm_actor.weight_hh_l0.data *= 5  # what was matters
    return model


@pytest.mark.parametrize("source", ["checkpoint", "live"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_slot_plays_as_if_it_were_alone(variant, source, tmp_path):
    model = make(actions=FORCE, **VARIANTS[variant]).learn(16)  # continuous: any difference shows
    model.save(tmp_path / "m.zip")
    opponent = PolicyOpponent(tmp_path / "m.zip" if source == "checkpoint" else model, deterministic=True, device="cpu")
    states = dict.fromkeys(range(12))
    rng = np.random.default_rng(0)
    for turn in range(8):
        slots = rng.permutation(12)[: rng.integers(1, 12)]  # the dead are skipped, batches vary
        if turn == 4:
            restarted = slots[:2]
            opponent.reset(restarted)
            states |= dict.fromkeys(restarted.tolist())
        observations = observe(VECTOR, seed=turn, rows=len(slots))
        actions = opponent.act(observations, slots, None)
        for row, slot in enumerate(slots.tolist()):
            alone, states[slot] = model.predict(observations[row : row + 1], states[slot], deterministic=True)
            np.testing.assert_allclose(actions[row], alone[0], atol=1e-5, err_msg=f"slot {slot}, turn {turn}")


def test_what_was_seen_matters():
    opponent = PolicyOpponent(make(actions=FORCE), deterministic=True, device="cpu")
    one, slots = observe(VECTOR, rows=1), np.array([3])
    first, second = opponent.act(one, slots, None), opponent.act(one, slots, None)
    assert not np.allclose(first, second, atol=1e-4)
    opponent.reset(slots)
    np.testing.assert_array_equal(opponent.act(one, slots, None), first)


def test_one_checkpoint_in_two_lists_of_opponents_remembers_twice(tmp_path):
    make(actions=FORCE).save(tmp_path / "m.zip")
    one, two = (PolicyOpponent(tmp_path / "m.zip", deterministic=True, device="cpu") for _ in range(2))
    assert one.policy is two.policy
    observation, slots = observe(VECTOR, rows=1), np.array([0])
    first = one.act(observation, slots, None)
    one.act(observation, slots, None)
    np.testing.assert_array_equal(two.act(observation, slots, None), first)


def test_a_model_saved_with_one_game_plays_in_sixteen_and_is_reset_with_them(tmp_path):
    rules = {"width": 7, "height": 7, "max_cycles": 9}
    one = make_sb3_env("random", num_games=1, env_kwargs=rules)
    RecurrentPPO("MlpLstmPolicy", one, policy_kwargs=LSTM, **SETTINGS).learn(8).save(tmp_path / "lstm.zip")
    env = make_sb3_env(tmp_path / "lstm.zip", num_games=16, env_kwargs=rules, device="cpu", seed=1)
    (opponent,) = env.lineup.opponents
    memory = opponent._states
    env.reset()
    restarts = 0
    for _ in range(30):
        acted = env.time_step.active[:, 1:]
        _, _, dones, _ = env.step(np.random.default_rng(0).integers(4, size=16))
        states = memory.read(np.arange(64)).reshape(16, 4, -1).any(axis=2)
        assert not states[dones].any()
        assert states[~dones][:, 1:][acted[~dones]].all()
        assert not states[:, 0].any()  # the learner's
        restarts += dones.sum()
    assert restarts > 16


def test_a_newcomer_in_the_middle_of_a_game_remembers_nothing(tmp_path):
    make(actions=FOUR).save(tmp_path / "m.zip")
    env = make_sb3_env("random", num_games=2, seed=0, env_kwargs={"edge": "wrap"})
    make(env.observation_space, FOUR).save(tmp_path / "m.zip")
    env.reset()
    env.set_opponent([tmp_path / "m.zip", "random", "random"], "now")
    newcomer = next(one for one in env.lineup.opponents if isinstance(one, PolicyOpponent))
    env.step(np.zeros(2, int))
    assert newcomer._states.read(np.array([1, 5])).any(axis=(1, 2, 3)).all()
    assert not newcomer._states.read(np.array([0, 2, 3, 4, 6, 7])).any()
    env.set_opponent(["random", "random", "random"], "now")
    env.step(np.zeros(2, int))
    assert newcomer not in env.lineup.opponents


def test_it_learns_and_normalises_as_any_other_model():
    venv = VecNormalize(DummyVecEnv([lambda: Toy(VECTOR, FORCE)]))
    model = RecurrentPPO("MlpLstmPolicy", venv, policy_kwargs=LSTM, **SETTINGS).learn(8)
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    observations, slots, state = observe(VECTOR, rows=3), np.arange(3), None
    for _ in range(3):
        expected, state = model.predict(venv.normalize_obs(observations), state, deterministic=True)
        np.testing.assert_allclose(opponent.act(observations, slots, None), expected, atol=1e-5)
