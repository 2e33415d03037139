"""GridCNN: sizes, both ways of sharing it, and a checkpoint that another process loads."""

import base64
import json
import zipfile

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO

from adapters.networks import GridCNN, policy_kwargs

torch.set_num_threads(1)


def images(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.parametrize("shape", [(7, 7, 7), (7, 11, 11), (5, 21, 21), (1, 39, 39), (1, 7, 12), (3, 39, 39)])
def test_every_board_becomes_128_features(shape):
    network = GridCNN(images(*shape))
    assert network.features_dim == 128
    assert network(torch.zeros(3, *shape)).shape == (3, 128)


def test_every_cell_of_the_board_reaches_the_features():
    torch.manual_seed(0)
    observation = torch.rand(1, 2, 11, 11, requires_grad=True)
    GridCNN(images(2, 11, 11))(observation).sum().backward()
    assert observation.grad.abs().sum(dim=(0, 1)).min() > 0


def test_channels_and_strides_are_arguments():
    network = GridCNN(images(7, 11, 11), features_dim=32, channels=(8, 16), strides=(1, 2))
    assert network(torch.zeros(2, 7, 11, 11)).shape == (2, 32)
    assert network.linear[0].in_features == 16 * 6 * 6
    with pytest.raises(ValueError, match="of one length"):
        GridCNN(images(7, 11, 11), channels=(8, 16), strides=(1,))


def test_other_observations_are_refused():
    with pytest.raises(ValueError, match="channels, height, width"):
        GridCNN(spaces.Box(-1, 1, (6,), np.float32))


def test_making_it_leaves_the_numpy_stream_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    GridCNN(images(7, 11, 11))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


class Board(gymnasium.Env):
    observation_space = images(7, 11, 11)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, True, {}


def test_ppo_learns_with_it_saves_and_loads(tmp_path):
    kwargs = policy_kwargs(heads=32)
    model = PPO("CnnPolicy", Board(), policy_kwargs=kwargs, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    assert isinstance(model.policy.features_extractor, GridCNN)
    assert model.policy.mlp_extractor.policy_net[0].out_features == 32
    model.learn(16)
    model.save(tmp_path / "model.zip")
    observations = np.random.default_rng(0).integers(0, 256, (5, 7, 11, 11), dtype=np.uint8)
    expected, _ = model.predict(observations, deterministic=True)
    loaded, _ = PPO.load(tmp_path / "model.zip", device="cpu").predict(observations, deterministic=True)
    np.testing.assert_array_equal(loaded, expected)


def test_a_checkpoint_names_the_class_and_does_not_contain_it(tmp_path):
    model = PPO("CnnPolicy", Board(), policy_kwargs=policy_kwargs(), n_steps=16, batch_size=16, device="cpu")
    model.save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        data = json.loads(archive.read("data"))
    pickled = base64.b64decode(data["policy_kwargs"][":serialized:"])
    assert b"adapters.networks" in pickled
    assert len(pickled) < 500
