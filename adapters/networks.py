"""A convolutional network for small boards, made to be quick on one CPU thread.

    PPO("CnnPolicy", env, policy_kwargs=policy_kwargs())

A checkpoint names the class by this module, so it loads wherever the package is installed.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class GridCNN(BaseFeaturesExtractor):
    """Three 3x3 convolutions with padding and one linear layer, for images (C, H, W) with the channels first.

    It takes boards from 1x1 up; SB3's own `NatureCNN` needs 36x36. With the default channels and strides:

        board     after the convolutions    parameters (7 planes)
        7x7       32 x 2 x 2                 37 k
        11x11     32 x 3 x 3                 58 k
        39x39     32 x 10 x 10              430 k

    Why these: milliseconds on one thread of a laptop-class core, for a whole policy with a head of 64 (forward of 24 and
    192 rows; forward and backward of 512), and how well the policy imitated "the free neighbour nearest to a food" on
    random 11x11 boards after 5 and 10 s of supervised training.

        channels    strides    7x11x11: 24   192   512+   1x39x39: 24   192    right after 5 s, 10 s
        16 32 32    1 2 1             0.37  1.80  18.0            2.4  25.0    0.72  0.89
        16 32 32    1 2 2             0.26  1.08  13.0            1.2  14.7    0.78  0.90
        32 32 32    2 2 1             0.24  0.80   8.3            0.9   7.0    0.83  0.91   the default
        16 32 32    2 2 1             0.22  0.68   6.1            0.7   4.6    0.78  0.90
        32 32       2 2               0.17  0.63   6.3            0.6   5.5

    The `channels_last` memory format changed less than 10 % either way at these sizes, so it is not used.

    Args:
        observation_space: a Box of shape (C, H, W).
        features_dim: width of the linear layer.
        channels: output channels of each convolution.
        strides: stride of each convolution.

    Raises:
        ValueError: the observations are not three-dimensional, or channels and strides differ in length.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        features_dim: int = 128,
        channels: tuple[int, ...] = (32, 32, 32),
        strides: tuple[int, ...] = (2, 2, 1),
    ) -> None:
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 3:
            raise ValueError(f"GridCNN needs observations in a Box of shape (channels, height, width), got {observation_space}")
        if len(channels) != len(strides):
            raise ValueError(f"channels and strides must be of one length, got {channels} and {strides}")
        super().__init__(observation_space, features_dim)
        layers: list[nn.Module] = []
        width = observation_space.shape[0]
        for out, stride in zip(channels, strides, strict=True):
            layers += [nn.Conv2d(width, out, kernel_size=3, stride=stride, padding=1), nn.ReLU()]
            width = out
        self.cnn = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            flat = self.cnn(torch.zeros(1, *observation_space.shape)).shape[1]
        self.linear = nn.Sequential(nn.Linear(flat, features_dim), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) float -> (B, features_dim) float."""
        features: torch.Tensor = self.linear(self.cnn(observations))
        return features


def policy_kwargs(features_dim: int = 128, heads: int = 64) -> dict[str, Any]:
    """The `policy_kwargs` for PPO or A2C with "CnnPolicy": `GridCNN`, and one hidden layer each for policy and value."""
    return {
        "features_extractor_class": GridCNN,
        "features_extractor_kwargs": {"features_dim": features_dim},
        "net_arch": {"pi": [heads], "vf": [heads]},
    }
