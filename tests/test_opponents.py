"""Opponents: the checkpoint and live model of every algorithm, frozen, with randomness of their own; and `resolve`."""

import base64
import copy
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import sb3_contrib as contrib
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.policies import ActorCriticPolicy

from adapters import policies
from adapters.networks import policy_kwargs
from adapters.opponents import EPSILON, CallableOpponent, Opponent, PolicyOpponent, RandomOpponent, resolve, resolve_seats

torch.set_num_threads(1)

VECTOR = spaces.Box(-1, 1, (6,), np.float32)
BOARD = spaces.Box(0, 255, (7, 11, 11), np.uint8)
PICTURE = spaces.Box(0, 255, (40, 48, 3), np.uint8)
FOUR = spaces.Discrete(4)
FORCE = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
B = 64
SLOTS = np.arange(B)


class Toy(gymnasium.Env):
    """Random observations, rewards that depend on the action, episodes of ten steps."""

    def __init__(self, observation_space=VECTOR, action_space=FOUR):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.turn += 1
        return self.observation_space.sample(), float(np.sum(action)), False, self.turn == 10, {}

    def action_masks(self):
        return np.array([True, False, True, False])


ON = {"n_steps": 16, "device": "cpu", "seed": 0}
OFF = {"learning_starts": 16, "buffer_size": 100, "batch_size": 8, "device": "cpu", "seed": 0}
MODELS = {
    "ppo": lambda: PPO("MlpPolicy", Toy(), batch_size=16, n_epochs=1, **ON),
    "ppo-box": lambda: PPO("MlpPolicy", Toy(action_space=FORCE), batch_size=16, n_epochs=1, **ON),
    "ppo-sde": lambda: PPO("MlpPolicy", Toy(action_space=FORCE), use_sde=True, batch_size=16, n_epochs=1, **ON),
    "ppo-multi": lambda: PPO("MlpPolicy", Toy(action_space=spaces.MultiDiscrete([2, 3])), batch_size=16, n_epochs=1, **ON),
    "ppo-grid": lambda: PPO("CnnPolicy", Toy(BOARD), policy_kwargs=policy_kwargs(), batch_size=16, n_epochs=1, **ON),
    "ppo-dict": lambda: PPO("MultiInputPolicy", Toy(spaces.Dict(a=VECTOR, b=FOUR)), batch_size=16, n_epochs=1, **ON),
    "a2c": lambda: A2C("MlpPolicy", Toy(), **ON),
    "dqn": lambda: DQN("MlpPolicy", Toy(), **OFF),
    "qrdqn": lambda: contrib.QRDQN("MlpPolicy", Toy(), **OFF),
    "sac": lambda: SAC("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "sac-sde": lambda: SAC("MlpPolicy", Toy(action_space=FORCE), use_sde=True, **OFF),
    "td3": lambda: TD3("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "ddpg": lambda: DDPG("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "tqc": lambda: contrib.TQC("MlpPolicy", Toy(action_space=FORCE), **OFF),
    "maskable": lambda: contrib.MaskablePPO("MlpPolicy", Toy(), batch_size=16, n_epochs=1, **ON),
}


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """name -> (model after 32 steps, its checkpoint), made when first asked for."""
    folder, made = tmp_path_factory.mktemp("checkpoints"), {}

    def get(name):
        if name not in made:
            model = MODELS[name]().learn(32)
            model.save(folder / f"{name}.zip")
            made[name] = model, folder / f"{name}.zip"
        return made[name]

    return get


def observe(space, seed=0, rows=B):
    rng = np.random.default_rng(seed)
    if isinstance(space, spaces.Dict):
        return {key: observe(one, seed, rows) for key, one in space.items()}
    if isinstance(space, spaces.Discrete):
        return rng.integers(space.n, size=rows)
    if space.dtype == np.uint8:
        return rng.integers(0, 256, (rows, *space.shape), dtype=np.uint8)
    return rng.uniform(-1, 1, (rows, *space.shape)).astype(np.float32)


def act(opponent, observations=None, masks=None):
    observations = observe(opponent.observation_space) if observations is None else observations
    return opponent.act(observations, SLOTS, masks)


def make_bot(name):
    if name not in ("random", "greedy"):
        raise ValueError(f"unknown bot {name!r}: there are greedy, random")
    return RandomOpponent(VECTOR, FOUR)


WORLD = {"observation_space": VECTOR, "action_space": FOUR, "make_bot": make_bot, "device": "cpu"}


def seats(spec, agents=None, num_enemies=3, **world):
    return resolve_seats(spec, enemy_agents=agents, num_enemies=num_enemies, **{**WORLD, **world})


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
    again = [act(opponent), act(opponent)]
    np.testing.assert_array_equal(first, again)
    assert all(model.action_space.contains(action) for action in first[0])
    if name in ("td3", "ddpg"):
        np.testing.assert_array_equal(first[0], first[1])
    else:
        assert not np.array_equal(first[0], first[1])
        opponent.seed(2)
        assert not np.array_equal(act(opponent), first[0])


@pytest.mark.parametrize("name", ["ppo", "ppo-box", "ppo-sde", "sac", "dqn", "maskable"])
def test_global_random_streams_do_not_notice(trained, name):
    model, path = trained(name)
    policies._read_policy.cache_clear()
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
    assert not any(module.training for module in opponent._policy.modules())
    assert not any(parameter.requires_grad for parameter in opponent._policy.parameters())


@pytest.mark.parametrize("name", ["ppo", "ppo-sde", "a2c", "dqn", "qrdqn", "sac", "td3", "maskable"])
def test_a_snapshot_does_not_learn_with_the_learner(name):
    model = MODELS[name]().learn(32)  # with tensors of the last gradient step still about
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    weights = {key: value.clone() for key, value in opponent._policy.state_dict().items()}
    model.learn(32, reset_num_timesteps=False)
    assert any(not torch.equal(value, model.policy.state_dict()[key]) for key, value in weights.items())
    assert all(torch.equal(value, opponent._policy.state_dict()[key]) for key, value in weights.items())
    expected, _ = model.predict(observe(model.observation_space), deterministic=True)
    act(opponent)
    assert expected.shape == act(opponent).shape


@pytest.mark.parametrize("name", ["ppo", "sac", "dqn", "qrdqn"])
def test_no_optimiser_is_kept(trained, name):
    model, path = trained(name)
    for opponent in (PolicyOpponent(path, device="cpu"), PolicyOpponent(model, device="cpu")):
        for module in opponent._policy.modules():
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
    assert PolicyOpponent(model, device="cpu")._policy.kept.is_leaf


def test_a_compiled_policy_is_unwrapped(trained):
    class Compiled:  # as torch.compile wraps, without the time it takes
        _orig_mod = trained("ppo")[0].policy

    assert type(policies.copy_policy(Compiled(), "cpu")) is ActorCriticPolicy
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


# ---------------------------------------------------------------- the short way agrees with predict


class HalfImages(ActorCriticPolicy):
    """A policy that changes what it sees: no short way for it."""

    def extract_features(self, obs, features_extractor=None):
        return super().extract_features(obs * 0.5, features_extractor)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
@pytest.mark.parametrize(
    ("policy", "space", "kwargs"),
    [
        ("MlpPolicy", VECTOR, {}),
        ("MlpPolicy", BOARD, {}),
        ("CnnPolicy", PICTURE, {}),
        ("CnnPolicy", BOARD, policy_kwargs()),
        ("CnnPolicy", spaces.Box(0, 1, (7, 11, 11), np.float32), policy_kwargs() | {"normalize_images": False}),
        ("MlpPolicy", BOARD, {"normalize_images": False, "net_arch": []}),
    ],
    ids=["vector", "flat-board", "nature", "grid", "unit-images", "raw-board"],
)
def test_the_short_way_is_what_predict_computes(policy, space, kwargs, shared):
    torch.manual_seed(1)
    kwargs = {**kwargs, "share_features_extractor": shared, "ortho_init": False}  # lively logits
    model = PPO(policy, Toy(space), policy_kwargs=kwargs, n_steps=16, batch_size=16, device="cpu")
    observations = observe(model.observation_space, rows=40)
    actor = policies.discrete_actor(model.policy)
    with torch.no_grad():
        logits = actor(torch.as_tensor(observations))
        expected = model.policy.get_distribution(torch.as_tensor(observations)).distribution.probs
    np.testing.assert_allclose(logits.softmax(1), expected, atol=1e-5)
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    assert opponent._actor is not None
    chosen = opponent.act(observations, SLOTS[:40], None)
    np.testing.assert_array_equal(chosen, model.predict(observations, deterministic=True)[0])


def test_the_short_way_computes_no_values(trained):
    opponent = PolicyOpponent(trained("ppo")[0], device="cpu")
    opponent._policy.value_net.register_forward_hook(lambda *_: pytest.fail("the value head was computed"))
    opponent._policy.mlp_extractor.value_net.register_forward_hook(lambda *_: pytest.fail("the value head was computed"))
    act(opponent)


def test_a_policy_of_ones_own_takes_the_long_way():
    model = PPO(HalfImages, Toy(), n_steps=16, batch_size=16, device="cpu", seed=0)
    model.policy.action_net.weight.data *= 100
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    assert opponent._actor is None
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


# ---------------------------------------------------------------- images with the channels last


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_policy_that_sb3_trained_on_transposed_images_plays_where_they_are_not(tmp_path, algorithm):
    small = {"policy_kwargs": {"features_extractor_kwargs": {"features_dim": 16}}, "device": "cpu"}
    if algorithm == "ppo":
        model = PPO("CnnPolicy", Toy(PICTURE), n_steps=16, batch_size=16, **small)
    else:
        model = DQN("CnnPolicy", Toy(PICTURE), buffer_size=10, **small)
    assert model.observation_space.shape == (3, 40, 48)
    model.save(tmp_path / "picture.zip")
    opponent = resolve(tmp_path / "picture.zip", **WORLD | {"observation_space": PICTURE}, deterministic=True)
    assert opponent.observation_space == PICTURE
    observations = observe(PICTURE)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])
    elsewhere = resolve(tmp_path / "picture.zip", **WORLD | {"observation_space": BOARD})
    assert elsewhere.observation_space == model.observation_space


def test_a_board_with_channels_first_is_never_turned(trained):
    assert not policies.is_transposed(BOARD, BOARD)
    assert not policies.is_transposed(spaces.Box(0, 255, (11, 7, 11), np.uint8), BOARD)


# ---------------------------------------------------------------- checkpoint files


def rewrite(path, target, **entries):
    """Copy a checkpoint with other values for entries of its `data`, or without them (None)."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "data":
                data = json.loads(content) | entries
                content = json.dumps({key: value for key, value in data.items() if value is not None})
            new.writestr(name, content)
    return target


def pickled(blob):
    return {":type:": "<class 'alien.Thing'>", ":serialized:": base64.b64encode(blob).decode()}


def test_what_is_no_policy_in_a_checkpoint_may_be_broken_or_foreign(trained, tmp_path):
    model, path = trained("ppo")
    alien = pickled(b"calien_package\nThing\n.")
    junk = pickled(b"\x80\x05junk")
    broken = rewrite(path, tmp_path / "b.zip", lr_schedule=alien, rollout_buffer_class=junk, _last_obs=alien)
    observations = observe(VECTOR)
    opponent = PolicyOpponent(broken, deterministic=True, device="cpu")
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


def test_a_policy_class_that_cannot_be_imported_is_named(trained, tmp_path):
    alien = rewrite(trained("ppo")[1], tmp_path / "a.zip", policy_class=pickled(b"calien_package\nThing\n."))
    with pytest.raises(ValueError, match=r"policy_class in .*a\.zip cannot be unpickled .*alien_package.* must be importable"):
        PolicyOpponent(alien, device="cpu")


def test_weights_of_another_shape_are_refused_with_the_class(trained, tmp_path):
    other = rewrite(trained("ppo")[1], tmp_path / "o.zip", policy_kwargs={"net_arch": [3]})
    with pytest.raises(ValueError, match=r"policy in .*o\.zip cannot be rebuilt \(RuntimeError: .*ActorCriticPolicy"):
        PolicyOpponent(other, device="cpu")


def test_a_missing_checkpoint_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at '.*nothing\.zip': expected the path of a file"):
        resolve(str(tmp_path / "nothing.zip"), **WORLD)
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at 'gone\.zip'"):
        resolve("gone.zip", **WORLD)


@pytest.mark.parametrize("kind", ["text", "empty", "cut", "foreign", "list"])
def test_a_file_that_is_no_checkpoint_is_refused(trained, tmp_path, kind):
    path = tmp_path / "x.zip"
    whole = trained("ppo")[1].read_bytes()
    if kind in ("foreign", "list"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data" if kind == "list" else "hello.txt", "[]")
            archive.writestr("policy.pth", "")
    else:
        path.write_bytes({"text": b"hello", "empty": b"", "cut": whole[: len(whole) // 2]}[kind])
    with pytest.raises(ValueError, match=r"x\.zip is no SB3 checkpoint \(.+\): expected a zip file that the model's save"):
        PolicyOpponent(path, device="cpu")


def test_a_recurrent_policy_is_refused_in_one_sentence(tmp_path):
    model = contrib.RecurrentPPO("MlpLstmPolicy", Toy(), n_steps=16, batch_size=16, device="cpu")
    model.save(tmp_path / "lstm.zip")
    for source in (model, tmp_path / "lstm.zip"):
        with pytest.raises(ValueError, match="recurrent policies cannot play as opponents yet"):
            PolicyOpponent(source, device="cpu")


def test_a_file_is_read_once_and_again_when_it_changes(tmp_path, monkeypatch):
    reads = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **kwargs: reads.append(args) or load(*args, **kwargs))
    path = tmp_path / "model.zip"
    model = MODELS["ppo"]()
    model.save(path)
    first = PolicyOpponent(path, deterministic=True, device="cpu")
    second = PolicyOpponent(str(path), device="cpu")
    assert len(reads) == 1
    assert first._policy is second._policy
    assert first._rng is not second._rng  # the weights are shared, the randomness is not
    model.policy.action_net.bias.data[:] = torch.tensor([0.0, 0.0, 50.0, 0.0])
    model.save(path)
    os.utime(path, ns=(path.stat().st_mtime_ns + 10**9,) * 2)  # file systems with coarse clocks
    assert (act(PolicyOpponent(path, device="cpu")) == 2).all()
    assert len(reads) == 2
    assert not (act(first) == 2).all()


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


def test_random_does_not_draw_from_the_games_own_space():
    space = spaces.Box(0, 1, (2,), np.float32, seed=3)
    before = str(space.np_random.bit_generator.state)
    opponent = RandomOpponent(VECTOR, space)
    act(opponent)
    opponent.seed(1)
    assert str(space.np_random.bit_generator.state) == before


# ---------------------------------------------------------------- resolve


def test_words_for_a_checkpoint(trained, monkeypatch):
    _, path = trained("ppo")
    monkeypatch.chdir(path.parent)
    for spec in ("ppo.zip", "ppo", path, str(path), Path("ppo"), f".{os.sep}ppo", str(path.with_suffix(""))):
        assert isinstance(resolve(spec, **WORLD), PolicyOpponent), spec
    assert resolve("ppo.zip", **WORLD).name == "ppo.zip"


def test_words_for_a_bot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(resolve("greedy", **WORLD), RandomOpponent)
    with pytest.raises(ValueError, match=r"unknown bot 'gready': there are greedy, random .*path would end in \.zip"):
        resolve("gready", **WORLD)


def test_live_models_policies_and_opponents(trained):
    model, _ = trained("ppo")
    assert resolve(model, **WORLD).name == "PPO"
    assert resolve(model.policy, **WORLD).name == "ActorCriticPolicy"
    mine = RandomOpponent(VECTOR, FOUR)
    assert resolve(mine, **WORLD) is mine


class Complete(RandomOpponent):
    observation_space, action_space = VECTOR, FOUR


@pytest.mark.parametrize("spec", [None, 3, PPO, Complete, b"x.zip", {1, 2}])
def test_other_types_are_refused(spec):
    with pytest.raises(TypeError, match=r"opponent must be the path of an SB3 checkpoint, a bot's name, .*; got"):
        resolve(spec, **WORLD)


def test_one_for_all_seats_is_one_object(trained):
    for spec in ("greedy", trained("ppo")[1], trained("ppo")[0], lambda observations: observations):
        one, two, three = seats(spec)
        assert one is two is three


def test_a_list_is_in_seat_order_and_the_same_thing_twice_is_one_object(trained, monkeypatch):
    model, path = trained("ppo")
    monkeypatch.chdir(path.parent)
    made = seats([path, "greedy", "ppo", "random", "ppo.zip", "greedy", model, model], num_enemies=8)
    assert [opponent.name for opponent in made][:2] == [str(path), "random"]
    assert made[0] is made[2] is made[4]
    assert made[1] is made[5]
    assert made[1] is not made[3]
    assert made[6] is made[7]
    assert len({id(opponent) for opponent in made}) == 4


def test_a_dict_is_by_agent(trained):
    path = trained("ppo")[1]
    made = seats({"snake_3": "random", "snake_1": path, "snake_2": "random"}, agents=["snake_1", "snake_2", "snake_3"])
    assert isinstance(made[0], PolicyOpponent)
    assert made[1] is made[2]


def test_wrong_shapes_of_specs_are_told():
    with pytest.raises(ValueError, match="a list of opponents must have 3 entries, one per enemy seat, got 2"):
        seats(["greedy", "greedy"])
    with pytest.raises(ValueError, match="needs learners given by name too"):
        seats({"snake_1": "greedy"})
    with pytest.raises(ValueError, match=r"missing \['snake_2'\], unknown \['snake_7'\]"):
        seats({"snake_1": "greedy", "snake_7": "greedy"}, agents=["snake_1", "snake_2"], num_enemies=2)


def test_deterministic_and_device_reach_the_policies(trained):
    opponents = seats([trained("ppo")[1]] * 3, deterministic=True)
    np.testing.assert_array_equal(act(opponents[0]), act(opponents[0]))
    assert opponents[0]._policy.device == torch.device("cpu")


def test_importing_opponents_and_lineups_loads_no_torch():
    code = "import adapters.opponents, adapters.lineup, sys; print({'torch', 'stable_baselines3'} & {*sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "set()"
