"""Opponents: the checkpoint and live model of every algorithm, frozen, with their own randomness; functions; uniform play."""

import copy

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from adapters.opponents import checkpoints
from adapters.opponents.policy import EPSILON, PolicyOpponent
from adapters.opponents.protocol import Opponent
from adapters.opponents.simple import CallableOpponent, RandomOpponent
from tests.support.toys import FORCE, FOUR, MODELS, SLOTS, VECTOR, WORLD, B, Toy, act, observe, resolve

# ---------------------------------------------------------------- every algorithm, from a checkpoint and live


@pytest.mark.parametrize("source", ["checkpoint", "live"])
@pytest.mark.parametrize("name", MODELS)
def test_a_deterministic_opponent_plays_what_the_model_predicts(trained, name, source):
    model, path = trained(name)
    opponent = PolicyOpponent(path if source == "checkpoint" else model, deterministic=True, device="cpu")
    observations = observe(model.observation_space)
    expected, _ = model.predict(observations, deterministic=True)
    actions = act(opponent, observations)
    assert actions.shape == expected.shape
    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-5)
    assert (opponent.observation_space, opponent.action_space) == (model.observation_space, model.action_space)
    assert isinstance(opponent, Opponent)


@pytest.mark.parametrize("source", ["checkpoint", "live"])
@pytest.mark.parametrize("name", MODELS)
def test_a_sampling_opponent_repeats_itself_by_its_seed_only(trained, name, source):
    model, path = trained(name)
    opponent = PolicyOpponent(path if source == "checkpoint" else model, device="cpu")
    opponent.seed(1)
    first = [act(opponent), act(opponent)]
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    opponent.seed(1)
    opponent.reset(SLOTS)  # what a recurrent one remembers
    again = [act(opponent), act(opponent)]
    np.testing.assert_array_equal(first, again)
    assert all(model.action_space.contains(action) for action in first[0])
    if name in ("td3", "ddpg"):
        np.testing.assert_array_equal(first[0], first[1])
    else:
        assert not np.array_equal(first[0], first[1])
        opponent.seed(2)
        opponent.reset(SLOTS)
        assert not np.array_equal(act(opponent), first[0])


@pytest.mark.parametrize("name", ["ppo", "ppo-box", "ppo-sde", "sac", "dqn", "maskable", "recurrent"])
def test_global_random_streams_do_not_notice(trained, name):
    model, path = trained(name)
    checkpoints._loaded.clear()
    torch.manual_seed(5)
    model.action_space.seed(5)

    def streams():
        return [torch.get_rng_state(), np.random.get_state()[1], str(model.action_space.np_random.bit_generator.state)]  # noqa: NPY002

    before = copy.deepcopy(streams())
    for opponent in (PolicyOpponent(path, device="cpu"), PolicyOpponent(model, device="cpu")):
        act(opponent)
        opponent.seed(3)
        act(opponent)
    for after, expected in zip(streams(), before, strict=True):
        np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["ppo", "dqn", "sac"])
def test_a_live_models_training_mode_is_left_alone(trained, name, training):
    model, _ = trained(name)
    model.policy.set_training_mode(training)
    modes = [module.training for module in model.policy.modules()]
    opponent = PolicyOpponent(model, device="cpu")
    act(opponent)
    assert [module.training for module in model.policy.modules()] == modes
    assert all(parameter.requires_grad for parameter in model.policy.action_net.parameters()) if name == "ppo" else True
    assert not any(module.training for module in opponent.policy.modules())
    assert not any(parameter.requires_grad for parameter in opponent.policy.parameters())


@pytest.mark.parametrize("name", ["ppo", "ppo-sde", "a2c", "dqn", "qrdqn", "sac", "td3", "maskable", "recurrent"])
def test_a_snapshot_does_not_learn_with_the_learner(name):
    model = MODELS[name]().learn(32)  # with tensors of the last gradient step still about
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    weights = {key: value.clone() for key, value in opponent.policy.state_dict().items()}
    model.learn(32, reset_num_timesteps=False)
    assert any(not torch.equal(value, model.policy.state_dict()[key]) for key, value in weights.items())
    assert all(torch.equal(value, opponent.policy.state_dict()[key]) for key, value in weights.items())
    expected, _ = model.predict(observe(model.observation_space), deterministic=True)
    act(opponent)
    assert expected.shape == act(opponent).shape


@pytest.mark.parametrize("name", ["ppo", "sac", "dqn", "qrdqn", "recurrent"])
def test_no_optimiser_is_kept(trained, name):
    model, path = trained(name)
    for opponent in (PolicyOpponent(path, device="cpu"), PolicyOpponent(model, device="cpu")):
        for module in opponent.policy.modules():
            assert getattr(module, "optimizer", None) is None
    assert model.policy.state_dict() is not None


def test_a_policy_without_its_model_is_enough(trained):
    model, _ = trained("ppo")
    opponent = PolicyOpponent(model.policy, deterministic=True, device="cpu")
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


class Hoarder(ActorCriticPolicy):
    """Keeps a tensor that gradients flow through, which deepcopy refuses."""

    def extract_features(self, obs, features_extractor=None):
        self.kept = super().extract_features(obs, features_extractor) * self.action_net.bias.sum()
        return super().extract_features(obs, features_extractor)


def test_tensors_with_a_gradient_do_not_hinder_the_copy():
    model = PPO(Hoarder, Toy(), n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(16)
    assert not model.policy.kept.is_leaf
    assert PolicyOpponent(model, device="cpu").policy.kept.is_leaf


def test_a_compiled_policy_is_unwrapped(trained):
    class Compiled:  # as torch.compile wraps, without the time it takes
        _orig_mod = trained("ppo")[0].policy

    assert type(checkpoints.copy_policy(Compiled(), "cpu")) is ActorCriticPolicy
    assert isinstance(resolve(Compiled(), **WORLD), PolicyOpponent)


# ---------------------------------------------------------------- sampling


@pytest.mark.parametrize("name", ["ppo", "ppo-grid", "a2c"])
def test_actions_are_drawn_from_the_policys_probabilities(trained, name):
    model, path = trained(name)
    opponent = PolicyOpponent(path, device="cpu")
    opponent.seed(0)
    one = observe(model.observation_space, rows=1)
    with torch.no_grad():
        expected = model.policy.get_distribution(torch.as_tensor(one)).distribution.probs[0].numpy()
    drawn = opponent.act(np.repeat(one, 20_000, axis=0), np.arange(20_000), None)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, expected, atol=0.015)


@pytest.mark.parametrize("name", ["dqn", "qrdqn"])
def test_value_based_opponents_explore_row_by_row(trained, name):
    model, path = trained(name)
    opponent = PolicyOpponent(path, device="cpu")
    opponent.seed(0)
    observations = np.repeat(observe(VECTOR, rows=1), 20_000, axis=0)
    greedy, _ = model.predict(observations[:1], deterministic=True)
    off = opponent.act(observations, np.arange(20_000), None) != greedy[0]
    assert off.mean() == pytest.approx(EPSILON * 3 / 4, abs=0.006)


def test_continuous_noise_is_the_policys(trained):
    model, path = trained("ppo-box")
    opponent = PolicyOpponent(path, device="cpu")
    opponent.seed(0)
    observations = np.repeat(observe(VECTOR, rows=1), 20_000, axis=0)
    actions = opponent.act(observations, np.arange(20_000), None)
    torch.manual_seed(0)
    expected, _ = model.predict(observations)
    np.testing.assert_allclose(actions.mean(0), expected.mean(0), atol=0.05)
    np.testing.assert_allclose(actions.std(0), expected.std(0), atol=0.05)


def test_state_dependent_exploration_differs_between_rows_and_turns(trained):
    opponent = PolicyOpponent(trained("ppo-sde")[1], device="cpu")
    observations = np.repeat(observe(VECTOR, rows=1), B, axis=0)
    first, second = act(opponent, observations), act(opponent, observations)
    assert len(np.unique(first, axis=0)) > B / 2
    assert not np.array_equal(first, second)


def test_masks_bind_a_maskable_policy_and_no_other(trained):
    maskable, plain = (PolicyOpponent(trained(name)[1], device="cpu") for name in ("maskable", "ppo"))
    masks = np.tile(np.array([0, 1, 0, 1], np.int8), (B, 1))
    assert maskable.uses_masks
    assert not plain.uses_masks
    assert {*act(maskable, masks=masks).tolist()} == {1, 3}
    assert {*act(plain).tolist()} == {0, 1, 2, 3}


# ---------------------------------------------------------------- functions and uniform play


def test_a_function_plays():
    opponent = resolve(lambda observations: (observations[:, 0] > 0).astype(int), **WORLD)
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), observations[:, 0] > 0)
    assert isinstance(opponent, CallableOpponent)
    assert opponent.name == "<lambda>"


@pytest.mark.parametrize(
    ("result", "space", "text"),
    [
        (np.zeros(3, int), FOUR, r"actions of shape \(64,\), one per row of the observations, got \(3,\)"),
        (0, FOUR, r"actions of shape \(64,\).*, got \(\)"),
        (np.full(B, 4), FOUR, r"actions in Discrete\(4\), got int64 values from 4 to 4"),
        (np.full(B, -1), FOUR, r"actions in Discrete\(4\), got int64 values from -1 to -1"),
        (np.zeros(B), FOUR, r"actions in Discrete\(4\), got float64 values from 0.0 to 0.0"),
        (np.full(B, "up"), FOUR, r"actions in Discrete\(4\), got <U2 values of no number"),
        (np.zeros((B, 1)), FORCE, r"actions of shape \(64, 2\)"),
        (np.full((B, 2), 11.0), FORCE, r"actions in Box.* from 11.0 to 11.0"),
        (np.full((B, 2), np.nan), FORCE, r"actions in Box.* from nan to nan"),
        (np.full((B, 2), 2), spaces.MultiDiscrete([2, 3]), r"actions in MultiDiscrete.* from 2 to 2"),
        (np.full((B, 2), 2, np.int8), spaces.MultiBinary(2), r"actions in MultiBinary.* from 2 to 2"),
    ],
)
def test_a_functions_mistakes_are_told(result, space, text):
    def mine(observations):
        return result

    opponent = CallableOpponent(mine, observation_space=VECTOR, action_space=space)
    with pytest.raises(ValueError, match=f"opponent 'mine' must return {text}"):
        act(opponent)


@pytest.mark.parametrize(
    ("result", "space"),
    [
        (np.full(B, 3), FOUR),
        (np.full(B, 5), spaces.Discrete(2, start=4)),
        ([1] * B, FOUR),
        (np.full((B, 2), 1.5), FORCE),
        (np.full((B, 2), 1), spaces.MultiDiscrete([2, 3])),
    ],
)
def test_good_actions_pass(result, space):
    opponent = CallableOpponent(lambda _: result, observation_space=VECTOR, action_space=space)
    np.testing.assert_array_equal(act(opponent), result)


SPACES = [FOUR, spaces.Discrete(3, start=5), FORCE, spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3)]


@pytest.mark.parametrize("space", SPACES)
def test_random_covers_the_space_evenly_by_its_seed(space):
    opponent = RandomOpponent(VECTOR, space)
    opponent.seed(7)
    drawn = opponent.act(observe(VECTOR), np.arange(4000), None)
    assert drawn.shape == (4000, *space.shape)
    assert all(space.contains(action) for action in drawn[:100])
    if isinstance(space, spaces.Discrete):
        counts = np.bincount(drawn - space.start, minlength=space.n)
        assert counts.min() > 0.85 * 4000 / space.n
    opponent.seed(7)
    np.testing.assert_array_equal(opponent.act(observe(VECTOR), np.arange(4000), None), drawn)
    assert not np.array_equal(opponent.act(observe(VECTOR), np.arange(4000), None), drawn)
    assert isinstance(opponent, Opponent)


@pytest.mark.parametrize("space", [FOUR, spaces.Discrete(3, start=5), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3)])
def test_random_keeps_to_the_masks_and_is_even_within_them(space):
    opponent = RandomOpponent(VECTOR, space)
    opponent.seed(1)
    sizes = {"Discrete": lambda: [space.n], "MultiDiscrete": lambda: space.nvec, "MultiBinary": lambda: [2] * 3}
    sizes = sizes[type(space).__name__]()
    mask = np.concatenate([[0] + [1] * (size - 1) for size in sizes]).astype(np.int8)
    drawn = opponent.act(observe(VECTOR), np.arange(3000), np.tile(mask, (3000, 1)))
    assert all(space.contains(action) for action in drawn[:100])
    columns = (drawn - getattr(space, "start", 0)).reshape(3000, -1).T
    for column, size in zip(columns, sizes, strict=True):
        counts = np.bincount(column, minlength=size)
        assert counts[0] == 0
        assert counts[1:].min() > 0.85 * 3000 / (size - 1)
    opponent.seed(1)
    np.testing.assert_array_equal(opponent.act(observe(VECTOR), np.arange(3000), np.tile(mask, (3000, 1))), drawn)


def test_random_plays_on_where_nothing_is_allowed():
    masks = np.zeros((400, 4), np.int8)
    masks[::2, 1] = 1
    drawn = RandomOpponent(VECTOR, FOUR).act(observe(VECTOR), np.arange(400), masks)
    assert {*drawn[::2].tolist()} == {1}
    assert {*drawn[1::2].tolist()} == {0, 1, 2, 3}


def test_random_does_not_draw_from_the_games_own_space():
    space = spaces.Box(0, 1, (2,), np.float32, seed=3)
    before = str(space.np_random.bit_generator.state)
    opponent = RandomOpponent(VECTOR, space)
    act(opponent)
    opponent.seed(1)
    assert str(space.np_random.bit_generator.state) == before
