"""Imitation: the policy comes to do what the teacher would do, and the values what the games return."""

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from adapters.evaluate import play_games
from adapters.imitation import imitate
from adapters.networks import snake_policy_kwargs
from adapters.sb3 import make_sb3_env
from snake_pz import Rules, make_bot

torch.set_num_threads(1)

ENV = {"observation": "egocentric", "actions": "relative"}


def learner(opponent="random", games=32, **changes):
    env = make_sb3_env(opponent, env_kwargs={**ENV, **changes}, num_games=games, seed=0)
    return PPO("CnnPolicy", env, n_steps=32, batch_size=128, policy_kwargs=snake_policy_kwargs(), seed=0, device="cpu")


class Climber:
    """Always up, on the board as it lies; notes what it was asked and which way the snakes were heading."""

    name = "climber"
    uses_masks = False
    observation_space = make_bot("random", Rules()).observation_space
    action_space = make_bot("random", Rules()).action_space

    def __init__(self, matches):
        self.matches = matches
        self.asked, self.headings = [], []

    def act(self, observations, slots=None, action_masks=None):
        games, seats = np.divmod(slots, self.matches.seats)
        self.asked.append((observations.shape, slots.tolist()))
        self.headings.append(self.matches.headings(games, seats).copy())
        return np.zeros(len(observations), np.int64)

    def seed(self, seed):
        pass

    def reset(self, slots):
        pass


def test_the_policy_does_what_the_teacher_says():
    model = learner()
    first = []
    last = imitate(model, make_bot("greedy", Rules()), 20_000, each=first.append)
    assert last.steps == 20_480
    assert len(first) == 20
    assert last.agreement > first[0].agreement + 0.1
    assert last.cross_entropy < first[0].cross_entropy - 0.15


def test_the_teacher_sees_its_own_encoding_and_its_advice_becomes_the_learners_actions():
    model = learner(games=4)
    teacher = Climber(model.get_env().unwrapped.matches)
    advised = []
    add = model.rollout_buffer.add

    def adding(observations, actions, *rest):
        advised.append(actions.copy())
        add(observations, actions, *rest)

    model.rollout_buffer.add = adding
    imitate(model, teacher, 1)
    assert teacher.asked[0] == ((4, 7, 11, 11), [0, 4, 8, 12])
    headings = np.concatenate(teacher.headings)
    assert set(headings.tolist()) >= {0, 1, 2, 3}
    # Up is straight on for who heads up, to the left of right, to the right of left; who heads down cannot say it
    expected = np.select([headings == 1, headings == 3], [0, 2], 1)
    can = headings != 2
    np.testing.assert_array_equal(np.concatenate(advised)[can, 0], expected[can])


def test_the_values_learn_too():
    model = learner(rewards={"step": 1.0, "death": 0.0, "food": 0.0, "win": 0.0})
    imitate(model, make_bot("greedy", Rules()), 15_000)
    seen = model.get_env().reset()
    values = model.policy.predict_values(torch.as_tensor(seen)).detach().numpy()
    assert values.mean() > 2


def test_the_optimizer_and_the_count_of_steps_stay_those_of_a_new_model():
    model = learner(games=4)
    imitate(model, make_bot("greedy", Rules()), 1)
    assert not model.policy.optimizer.state
    assert model.num_timesteps == 0
    model.learn(128)


def test_the_same_seed_teaches_the_same():
    weights = []
    for _ in range(2):
        model = learner(games=4)
        teacher = make_bot("survivor", Rules())
        teacher.seed(1)
        imitate(model, teacher, 300)
        weights.append(next(model.policy.parameters()).detach().clone())
    assert torch.equal(*weights)


def test_other_vec_envs_are_refused():
    import gymnasium

    model = PPO("MlpPolicy", DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match="make_sb3_env"):
        imitate(model, make_bot("greedy", Rules()), 1)


@pytest.mark.slow
def test_it_beats_what_it_has_never_met_after_a_few_seconds():
    model = learner("survivor", games=64)
    imitate(model, make_bot("territorial", Rules()), 80_000)
    results = play_games([model, "random", "random", "random"], games=100, env_kwargs=ENV, device="cpu")
    assert results.win_rates[0] > 0.7
