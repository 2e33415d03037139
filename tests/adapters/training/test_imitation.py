"""Imitation: the policy comes to do what the teacher would do, and the values what the games return."""

import itertools

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from adapters import ActiveRolloutBuffer
from adapters.evaluation.evaluate import play_games
from adapters.networks import policy_kwargs, snake_policy_kwargs
from adapters.opponents.policy import PolicyOpponent
from adapters.sb3 import make_sb3_env
from adapters.training.imitation import imitate
from snake_pz import Rules, make_bot
from tests.support.scripted_env import SCRIPTS, ScriptedEnv
from tests.support.toys import LSTM

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")  # how many rows act nobody knows

ENV = {"observation": "egocentric", "actions": "relative"}


def learner(opponent="random", games=32, **changes):
    env = make_sb3_env(opponent, env_kwargs={**ENV, **changes}, num_games=games, seed=0)
    return PPO("CnnPolicy", env, n_steps=32, batch_size=128, policy_kwargs=snake_policy_kwargs(), seed=0, device="cpu")


def small(learners=1, wrapper=lambda env: env, policy="MlpPolicy", steps=40, **kwargs):
    """A model on three short games of 7x7, some of which end by their limit."""
    env = make_sb3_env("random", env_kwargs={"width": 7, "height": 7, "max_cycles": 8}, num_games=3, learners=learners, seed=3)
    buffer = (
        {"rollout_buffer_class": ActiveRolloutBuffer, "rollout_buffer_kwargs": {"active": env.active}} if learners > 1 else {}
    )
    return PPO(policy, wrapper(env), n_steps=steps, batch_size=30, seed=3, device="cpu", **buffer, **kwargs)


def scripted(learners=1):
    """A model on two games of four whose deaths are scripted, with masks."""
    kwargs = {"scripts": SCRIPTS["mixed games"], "masks": "info"}
    env = make_sb3_env("random", env=ScriptedEnv, env_kwargs=kwargs, num_games=2, learners=learners, seed=3)
    buffer = (
        {"rollout_buffer_class": ActiveRolloutBuffer, "rollout_buffer_kwargs": {"active": env.active}} if learners > 1 else {}
    )
    return PPO("MlpPolicy", env, n_steps=40, batch_size=30, seed=3, device="cpu", **buffer)


def bot(name="greedy"):
    """For the games of `small`."""
    made = make_bot(name, Rules(width=7, height=7))
    made.seed(1)
    return made


def rollout_of(model, run):
    """What is in the model's buffer once the first rollout of `run` is complete."""
    buffer, rollouts = model.rollout_buffer, []
    compute = buffer.compute_returns_and_advantage

    def computing(*args, **kwargs):
        compute(*args, **kwargs)
        rollouts.append({name: value.copy() for name, value in vars(buffer).items() if isinstance(value, np.ndarray)})

    buffer.compute_returns_and_advantage = computing
    run()
    return rollouts[0]


class Witness:
    """Moves at random and writes down, in one list with what the games do, what it is asked and told."""

    name = "witness"
    uses_masks = True

    def __init__(self, games):
        self.games, self.events = games, []
        game_batch = games.game_batch
        self.observation_space, self.action_space = game_batch.observation_space, game_batch.action_space
        self.learners = np.arange(game_batch.num_games * game_batch.seats).reshape(-1, game_batch.seats)[
            :, : game_batch.num_learners
        ]
        self.sight = game_batch.view(self.observation_space, self.action_space)
        self.rng = np.random.default_rng(0)
        reset, step = game_batch.reset, game_batch.step
        game_batch.reset = lambda *args: self.noted(reset(*args))
        game_batch.step = lambda *args: self.noted(step(*args))

    def noted(self, time_step):
        if time_step.restarted.any():
            self.events.append(("restarted", self.learners[time_step.restarted].ravel().tolist()))
        return time_step

    def act(self, observations, slots, action_masks):
        self.events.append(("asked", slots.tolist()))
        time_step = self.games.time_step
        active = time_step.active.ravel().nonzero()[0]
        assert slots.tolist() == np.intersect1d(active, self.learners).tolist()  # whoever waits for the end is left alone
        game, seat = np.divmod(slots, self.games.game_batch.seats)
        np.testing.assert_array_equal(action_masks, self.sight.action_masks()[game, seat])
        np.testing.assert_array_equal(observations, time_step.observations[game, seat])
        return self.rng.integers(self.action_space.n, size=len(slots))

    def reset(self, slots):
        self.events.append(("reset", slots.tolist()))

    def seed(self, seed):
        pass


class Climber:
    """Always up, on the board as it lies; notes what it was asked and which way the snakes were heading."""

    name = "climber"
    uses_masks = False
    observation_space = make_bot("random", Rules()).observation_space
    action_space = make_bot("random", Rules()).action_space

    def __init__(self, game_batch):
        self.game_batch = game_batch
        self.asked, self.headings = [], []

    def act(self, observations, slots=None, action_masks=None):
        games, seats = np.divmod(slots, self.game_batch.seats)
        self.asked.append((observations.shape, slots.tolist()))
        self.headings.append(self.game_batch.headings(games, seats).copy())
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
    teacher = Climber(model.get_env().unwrapped.game_batch)
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


@pytest.mark.parametrize("learners", [1, 3])
@pytest.mark.parametrize("wrapper", [lambda env: env, VecNormalize], ids=["plain", "VecNormalize"])
def test_a_rollout_is_what_ppo_itself_would_learn_from_but_for_the_actions(learners, wrapper):
    """Truncated games bootstrapped, episodes begun where they begin, the same rows left out."""
    model = small(learners, wrapper)
    expected = rollout_of(model, lambda: model.learn(1))
    model, cut = small(learners, wrapper), []
    base = model.get_env().unwrapped
    step_wait = base.step_wait

    def stepping():
        result = step_wait()
        cut.extend(info["TimeLimit.truncated"] for info in result[3] if "terminal_observation" in info)
        return result

    base.step_wait = stepping
    taught = rollout_of(model, lambda: imitate(model, bot(), 1))
    assert {False, True} <= set(cut)
    assert expected.keys() == taught.keys()
    assert (expected.pop("actions") != taught.pop("actions")).any()
    for name, array in expected.items():
        np.testing.assert_array_equal(taught[name], array, err_msg=name)


@pytest.mark.parametrize("learners", [1, 3])
def test_nothing_is_learnt_from_padding(learners):
    model = small(learners)
    rows, buffer = model.get_env().unwrapped.active, model.rollout_buffer
    get, served = buffer.get, []

    def getting(batch_size):
        for batch in get(batch_size):
            served.append(batch.returns)
            yield batch

    buffer.get = getting
    imitate(model, bot(), 1, epochs=1)
    assert sum(map(len, served)) == rows.total
    assert (rows.total < 40 * 3 * learners) == (learners > 1)


@pytest.mark.parametrize("make", [small, scripted])
@pytest.mark.parametrize("learners", [1, 3])
def test_the_teacher_sees_masks_and_is_told_of_every_restart_before_it_is_asked_again(make, learners):
    model = make(learners)
    witness = Witness(model.get_env().unwrapped)
    imitate(model, witness, 1)
    events = witness.events
    assert events[:2] == [("restarted", witness.learners.ravel().tolist()), ("reset", witness.learners.ravel().tolist())]
    resets = [slots for what, slots in events if what == "reset"]
    assert len(resets) > 3
    assert min(map(len, resets)) == learners  # the games of one restart without the others
    for (what, slots), (then, of) in itertools.pairwise(events):
        assert (what == "restarted") == (then == "reset")
        if then == "reset":
            assert of == slots
    assert sum(what == "asked" for what, _ in events) == 40


def test_a_teacher_that_uses_no_masks_gets_none():
    model = small()
    teacher, masks = bot(), []
    teacher.uses_masks = False
    act = teacher.act
    teacher.act = lambda observations, slots, action_masks: masks.append(action_masks) or act(observations, slots)
    imitate(model, teacher, 1)
    assert set(masks) == {None}


def test_a_recurrent_teacher_remembers_the_running_game_and_no_other():
    model = small()
    env = model.get_env()
    teacher = PolicyOpponent(RecurrentPPO("MlpLstmPolicy", env, n_steps=8, batch_size=8, policy_kwargs=LSTM, device="cpu"))
    memory, fresh = teacher._states, []
    act = teacher.act

    def acting(observations, slots, action_masks):
        fresh.append((env.unwrapped._lengths == 0, ~memory.read(slots).any(axis=(1, 2, 3))))
        return act(observations, slots, action_masks)

    teacher.act = acting
    teacher.act(env.reset(), np.array([0, 4, 8]), None)  # it has played before
    fresh.clear()
    imitate(model, teacher, 1)
    began, forgot = (np.array(which) for which in zip(*fresh, strict=True))
    np.testing.assert_array_equal(began, forgot)
    assert began.sum() > 6


@pytest.mark.parametrize("ended", ["by itself", "by each", "by Ctrl-C in each", "by Ctrl-C in a step", "by Ctrl-C in a lesson"])
def test_a_model_that_goes_on_learning_begins_with_new_games(ended):
    model = small()
    model.learn(1)
    env, teacher = model.get_env(), bot()

    def interrupt(*args):
        raise KeyboardInterrupt

    each = {"by each": lambda _: False, "by Ctrl-C in each": interrupt}.get(ended)
    with pytest.MonkeyPatch.context() as patch:
        if ended == "by Ctrl-C in a step":
            patch.setattr(env.game_batch, "step", interrupt)
        if ended == "by Ctrl-C in a lesson":
            patch.setattr(model.rollout_buffer, "get", interrupt)
        if "Ctrl-C" in ended:
            with pytest.raises(KeyboardInterrupt):
                imitate(model, teacher, 1, each=each)
        else:
            imitate(model, teacher, 1, each=each)
    resets, reset = [], env.reset
    env.reset = lambda: resets.append(reset()) or resets[-1]
    learned = rollout_of(model, lambda: model.learn(1, reset_num_timesteps=False))
    assert len(resets) == 1
    np.testing.assert_array_equal(learned["observations"][0], resets[0].reshape(learned["observations"][0].shape))
    assert learned["episode_starts"][0].all()


def test_a_loaded_model_learns_from_the_rows_of_its_new_games(tmp_path):
    model = small(2)
    model.save(tmp_path / "model.zip")
    model = PPO.load(tmp_path / "model.zip", small(2).get_env())
    assert imitate(model, bot(), 1).steps == 240
    model.set_env(small(2).get_env())
    assert imitate(model, bot(), 1).steps == 240


@pytest.mark.parametrize("shared", [True, False])
def test_actor_and_critic_may_have_features_of_their_own(shared):
    model = small(policy="CnnPolicy", policy_kwargs=policy_kwargs() | {"share_features_extractor": shared})
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    get, expected = model.rollout_buffer.get, []

    def getting(batch_size):
        for batch in get(batch_size):
            _, log_probs, _ = model.policy.evaluate_actions(batch.observations, batch.actions.flatten())
            expected.append(-log_probs.mean().item())
            yield batch

    model.rollout_buffer.get = getting
    result = imitate(model, bot(), 1)
    assert result.cross_entropy == pytest.approx(np.mean(expected), rel=1e-5)
    assert all((value != before[name]).any() for name, value in model.policy.state_dict().items())


ALGORITHMS = {
    "A2C": lambda env: A2C("MlpPolicy", env, device="cpu"),
    "DQN": lambda env: DQN("MlpPolicy", env, buffer_size=10, device="cpu"),
    "MaskablePPO": lambda env: MaskablePPO("MlpPolicy", env, device="cpu"),
    "RecurrentPPO": lambda env: RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=LSTM, device="cpu"),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_other_algorithms_are_refused(algorithm):
    env = small().get_env()
    model = ALGORITHMS[algorithm](env)
    with pytest.raises(ValueError, match=f"needs PPO with an ActorCriticPolicy, got {algorithm} with .*: use PPO"):
        imitate(model, bot(), 1)
    assert env.time_step is None  # nothing was played


def test_a_maskable_model_goes_on_from_a_plain_one_as_the_refusal_says():
    plain = small()
    imitate(plain, bot(), 1)
    maskable = MaskablePPO("MlpPolicy", plain.get_env(), device="cpu")
    maskable.policy.load_state_dict(plain.policy.state_dict())
    seen, _ = plain.policy.obs_to_tensor(plain.get_env().reset())
    expected = plain.policy.get_distribution(seen).distribution.probs
    torch.testing.assert_close(maskable.policy.get_distribution(seen).distribution.probs, expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be >= 1, got 0"),
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0 .* got learning_rate=0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be > 0 .* got learning_rate=nan"),
        ({"value_weight": -1.0}, "value_weight >= 0, got .* value_weight=-1.0"),
    ],
)
def test_numbers_out_of_range_are_refused(wrong, message):
    model = small()
    with pytest.raises(ValueError, match=message):
        imitate(model, bot(), **{"steps": 1} | wrong)
    assert model.get_env().time_step is None


def test_a_buffer_that_would_store_padding_is_refused():
    model = PPO("MlpPolicy", small(2).get_env(), n_steps=8, device="cpu")
    with pytest.raises(ValueError, match=r"got RolloutBuffer: .*rollout_buffer_class=adapters.ActiveRolloutBuffer"):
        imitate(model, bot(), 1)


def test_actions_that_are_not_discrete_are_refused():
    env = make_sb3_env("random", env=ScriptedEnv, env_kwargs={"box_actions": True}, num_games=2)
    with pytest.raises(ValueError, match="discrete actions, got Box"):
        imitate(PPO("MlpPolicy", env, n_steps=8, device="cpu"), bot(), 1)


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
