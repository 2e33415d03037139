"""Policies: what is read from a checkpoint, and the short way to their actions."""

import gc
import os
import weakref
import zipfile

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from adapters.networks import policy_kwargs
from adapters.opponents import checkpoints
from adapters.opponents.policy import PolicyOpponent
from tests.support.checkpoint_files import pickled, rewrite
from tests.support.toys import BOARD, MODELS, PICTURE, SLOTS, VECTOR, WORLD, Toy, act, observe, resolve

# ---------------------------------------------------------------- the short way agrees with predict


class HalfMaskable(MaskableActorCriticPolicy):
    def get_distribution(self, obs, action_masks=None):
        return super().get_distribution(obs * -50, action_masks)


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
    actor = checkpoints.discrete_actor(model.policy)
    with torch.no_grad():
        logits = actor(torch.as_tensor(observations))
        expected = model.policy.get_distribution(torch.as_tensor(observations)).distribution.probs
    np.testing.assert_allclose(logits.softmax(1), expected, atol=1e-5)
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    assert opponent._actor is not None
    chosen = opponent.act(observations, SLOTS[:40], None)
    np.testing.assert_array_equal(chosen, model.predict(observations, deterministic=True)[0])


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "free"])
@pytest.mark.parametrize(("policy", "space"), [("MlpPolicy", VECTOR), ("MlpPolicy", BOARD), ("CnnPolicy", PICTURE)])
def test_the_short_way_of_a_maskable_policy_is_what_predict_computes(policy, space, masked):
    torch.manual_seed(1)
    model = MaskablePPO(policy, Toy(space), policy_kwargs={"ortho_init": False}, n_steps=16, batch_size=16, device="cpu")
    observations = observe(model.observation_space, rows=40)
    masks = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(np.int8) if masked else None  # rows of zeros too
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    assert opponent._actor is not None
    opponent.policy.predict = lambda *_, **__: pytest.fail("took the long way")
    expected, _ = model.predict(observations, deterministic=True, action_masks=masks)
    np.testing.assert_array_equal(opponent.act(observations, SLOTS[:40], masks), expected)


def test_a_maskable_policy_is_drawn_from_by_its_masked_probabilities(trained):
    model, path = trained("maskable")
    opponent = PolicyOpponent(path, device="cpu")
    opponent.seed(0)
    one = observe(VECTOR, rows=1)
    for mask in ([1, 0, 1, 1], [0, 0, 0, 0]):
        masks = np.tile(np.array(mask, np.int8), (20_000, 1))
        with torch.no_grad():
            expected = model.policy.get_distribution(torch.as_tensor(one), masks[:1]).distribution.probs[0].numpy()
        drawn = opponent.act(np.repeat(one, 20_000, axis=0), np.arange(20_000), masks)
        np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, expected, atol=0.015)


def test_the_short_way_computes_no_values(trained):
    opponent = PolicyOpponent(trained("ppo")[0], device="cpu")
    opponent.policy.value_net.register_forward_hook(lambda *_: pytest.fail("the value head was computed"))
    opponent.policy.mlp_extractor.value_net.register_forward_hook(lambda *_: pytest.fail("the value head was computed"))
    act(opponent)


@pytest.mark.parametrize(("algorithm", "policy"), [(PPO, HalfImages), (MaskablePPO, HalfMaskable)])
def test_a_policy_of_ones_own_takes_the_long_way(algorithm, policy):
    model = algorithm(policy, Toy(), n_steps=16, batch_size=16, device="cpu", seed=0)
    model.policy.action_net.weight.data *= 100
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    assert opponent._actor is None
    observations = observe(VECTOR)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


# ---------------------------------------------------------------- checkpoint files


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
    with pytest.raises(ValueError, match=r"a\.zip asks for alien_package\.Thing, .* trust=\['alien_package\.Thing'\]"):
        PolicyOpponent(alien, device="cpu")
    for trust in (["alien_package.Thing"], True):
        expected = r"policy_class in .*a\.zip cannot be unpickled .*alien_package.* must be importable"
        with pytest.raises(ValueError, match=expected):
            PolicyOpponent(alien, device="cpu", trust=trust)


def test_weights_of_another_shape_are_refused_with_the_class(trained, tmp_path):
    other = rewrite(trained("ppo")[1], tmp_path / "o.zip", policy_kwargs={"net_arch": [3]})
    with pytest.raises(ValueError, match=r"policy in .*o\.zip cannot be rebuilt \(RuntimeError: .*ActorCriticPolicy"):
        PolicyOpponent(other, device="cpu")


def test_a_missing_checkpoint_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at '.*nothing\.zip': expected a file that SB3's save"):
        resolve(str(tmp_path / "nothing.zip"), **WORLD)
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at 'gone\.zip'"):
        resolve("gone.zip", **WORLD)


def test_a_device_that_is_not_there_is_told(trained):
    model, path = trained("ppo")
    for source in (path, model):
        with pytest.raises(ValueError, match="there is no device 'bogus' here: "):
            PolicyOpponent(source, device="bogus")
        with pytest.raises(ValueError, match="there is no device 'None' here: "):
            PolicyOpponent(source, device=None)


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
    assert first.policy is second.policy
    assert first._rng is not second._rng  # the weights are shared, the randomness is not
    model.policy.action_net.bias.data[:] = torch.tensor([0.0, 0.0, 50.0, 0.0])
    model.save(path)
    os.utime(path, ns=(path.stat().st_mtime_ns + 10**9,) * 2)  # file systems with coarse clocks
    assert (act(PolicyOpponent(path, device="cpu")) == 2).all()
    assert len(reads) == 2
    assert not (act(first) == 2).all()


@pytest.mark.parametrize("way", ["a new file", "into the same file"])
def test_another_file_of_equal_size_and_time_is_read(tmp_path, way):
    path, other = tmp_path / "model.zip", tmp_path / "other.zip"
    model = MODELS["ppo"]()
    model.save(path)
    held = PolicyOpponent(path, device="cpu")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w", zipfile.ZIP_STORED) as changed:
        state = {**torch.load(archive.open("policy.pth")), "action_net.bias": torch.tensor([0.0, 0.0, 50.0, 0.0])}
        for name in archive.namelist():
            with changed.open(name, "w") as file:
                torch.save(state, file) if name == "policy.pth" else file.write(archive.read(name))
    before = path.stat()
    with other.open("ab") as file:  # a comment of an archive may follow it
        file.truncate(max(other.stat().st_size, before.st_size))
    if other.stat().st_size > before.st_size:
        pytest.fail("the two differ in size")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    if way == "a new file":
        os.replace(other, path)
    else:
        path.write_bytes(other.read_bytes())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert held.policy is not PolicyOpponent(path, device="cpu").policy
    assert (act(PolicyOpponent(path, device="cpu")) == 2).all()


def test_a_policy_is_in_memory_as_long_as_an_opponent_plays_it(trained):
    path = trained("ppo")[1]
    first, second = (PolicyOpponent(path, deterministic=True, device="cpu") for _ in range(2))
    before, policy = act(first), weakref.ref(first.policy)
    del first
    gc.collect()
    np.testing.assert_array_equal(act(second), before)
    assert PolicyOpponent(path, device="cpu").policy is second.policy
    del second
    gc.collect()
    assert policy() is None
