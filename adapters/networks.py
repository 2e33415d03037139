"""Networks for small boards, fast on one CPU thread.

    PPO("CnnPolicy", env, policy_kwargs=policy_kwargs())

`GridCNN` takes any image. `SnakeNet` knows what the snake's `egocentric` encoding means and learns several times as fast.
A checkpoint names the class by this module, so it loads wherever the package is installed.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from snake_pz.core.observations import EGOCENTRIC_PLANES, TTL_STEP


class GridCNN(BaseFeaturesExtractor):
    """Three 3x3 convolutions with padding and one linear layer, for images (C, H, W) with the channels first.

    It takes boards from 1x1 up; SB3's own `NatureCNN` needs 36x36. With the default channels and strides:

        board     after the convolutions    parameters (7 planes)
        7x7       32 x 2 x 2                 37 k
        11x11     32 x 3 x 3                 58 k
        39x39     32 x 10 x 10              430 k

    Why these: milliseconds on one thread of a laptop-class core, for a whole policy with a head of 64 (forward of 24 and
    192 observations; forward and backward of 512), and how well the policy imitated "the free neighbour nearest to a food" on
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


class ReachabilityFeatures(nn.Module):
    """Reachability after left, straight and right, computed from the snake's `egocentric` view. It has no weights.

    For each of the three moves and each of the next turns: the number of cells reachable by then, entering cells once bodies
    have left them (their levels tell when); the number of these that no other snake reaches first, a tie going to the snake
    only if it is longer; and whether there is food among them. For each move also whether a longer or a shorter snake may enter
    the same cell.

    A row of the view is packed into one integer, so that one step in all directions takes five shifts for a whole batch.

    Args:
        turns: number of turns to look ahead; the view is cut to 2 * turns + 1 cells a side.

    Raises:
        ValueError: above 11 turns: the floats that a row is packed with are exact for 24 cells.
    """

    bits: torch.Tensor
    free_by: torch.Tensor
    scale: torch.Tensor

    def __init__(self, turns: int = 7) -> None:
        super().__init__()
        if not 1 <= turns <= 11:
            raise ValueError(f"turns must be from 1 to 11, got {turns}")
        self.turns, self.side = turns, 2 * turns + 1
        self.width = 2 * 6 * turns + 6
        self._dtype = torch.int16 if self.side < 16 else torch.int32
        ahead = torch.arange(1, turns + 1)
        self.register_buffer("bits", 2.0 ** torch.arange(self.side), persistent=False)
        self.register_buffer("free_by", ((TTL_STEP * (ahead + 0.5)) / 255)[:, None, None, None], persistent=False)
        self.register_buffer("scale", (0.5 / ahead**1.5)[:, None, None], persistent=False)

    @torch.no_grad()
    def forward(self, view: torch.Tensor) -> torch.Tensor:
        """(B, 6, S, S) levels from 0 to 1, S at least `side` -> (B, width), mostly from 0 to 1."""
        centre, half, turns, side, batch = view.shape[-1] // 2, self.turns, self.turns, self.side, len(view)
        if view.shape[-1] < side:
            raise ValueError(f"to look {turns} turns ahead takes a view of {side} cells a side or more, got {view.shape[-1]}")
        inside = slice(centre - half, centre + half + 1)
        if torch.onnx.is_in_onnx_export():
            return self._on_grids(view[:, :5, inside, inside])
        # Rows first and the batch last: then a step up or down moves whole blocks of memory.
        own, others, heads, food, walls = view[:, :5, inside, inside].permute(1, 2, 0, 3)
        taken = torch.maximum(torch.maximum(own, others), walls.floor()).contiguous()  # hazards are below 1
        bits = self.bits.float()
        cells = bits.new_empty(turns + 3, side, batch, side)
        torch.le(taken, self.free_by, out=cells[:turns])
        for number, (plane, level) in enumerate(((food, 0.5), (heads, 0.75), (heads, 0.25)), turns):
            torch.gt(plane, level, out=cells[number])
        with torch.autocast(view.device.type, enabled=False):  # half the precision would lose cells
            *free, food, long_heads, all_heads = (cells @ bits).to(self._dtype)  # (side, B) each
        # Cells reached: by us after each of the three moves, before others; the same regardless of others; by heads of
        # snakes as long or longer; by shorter ones.
        reached = torch.zeros(side, 8, batch, dtype=self._dtype, device=view.device)
        longer, shorter = 6, 7
        reached[:, longer], reached[:, shorter] = long_heads, all_heads & ~long_heads
        ours = torch.empty(turns, side, 6, batch, dtype=self._dtype, device=view.device)
        for turn in range(turns):
            wider = (reached << 1) | (reached >> 1) | reached
            wider[1:] |= reached[:-1]
            wider[:-1] |= reached[1:]
            if turn == 0:
                wider[half, 0:6:3] = 1 << (half - 1)
                wider[half - 1, 1:6:3] = 1 << half
                wider[half, 2:6:3] = 1 << (half + 1)
                ways = wider[:, 3:6] & free[0][:, None]
                meets = [(ways & wider[:, None, who]).amax(0) for who in (longer, shorter)]
            wider &= free[turn][:, None]
            if turn > 0:
                wider[:, :3] &= ~(wider[:, longer] | reached[:, shorter])[:, None]
            ours[turn], reached = wider[:, :6], wider
        counts = _count_bits(ours).sum(1, dtype=self._dtype) * self.scale
        fed = (ours & food[:, None]).amax(1).clamp(max=1)
        return torch.cat([counts.flatten(0, 1), fed.flatten(0, 1), torch.cat(meets).clamp(max=1)]).t()

    def _on_grids(self, view: torch.Tensor) -> torch.Tensor:
        """The same from (B, 5, side, side) with sets of cells as grids of 0.0 and 1.0, which ONNX has all operations for."""
        half = self.turns
        own, others, heads, food, walls = (view[:, plane] for plane in range(5))
        taken = torch.maximum(torch.maximum(own, others), walls.floor())
        longer, shorter = ((heads > 0.75).float(), ((heads > 0.25) & (heads <= 0.75)).float())
        steps = torch.zeros(1, 3, self.side, self.side, device=view.device)
        steps[0, 0, half, half - 1] = steps[0, 1, half - 1, half] = steps[0, 2, half, half + 1] = 1.0
        counts, fed, meets = [], [], []
        for turn in range(self.turns):
            free = (taken <= self.free_by[turn].flatten()).float()[:, None]
            if turn == 0:
                rivals = torch.stack([longer, shorter], dim=1)
                beside = _one_step(rivals)
                before_others = anyway = steps * free
                meets = [(anyway * beside[:, who, None]).amax((2, 3)) for who in (0, 1)]
                rivals_before, rivals = rivals, beside * free
            else:
                rivals_before, rivals = rivals, _one_step(rivals) * free
                first = 1 - torch.maximum(rivals[:, :1], rivals_before[:, 1:])
                before_others, anyway = _one_step(before_others) * free * first, _one_step(anyway) * free
            ours = torch.cat([before_others, anyway], dim=1)
            counts.append(ours.sum((2, 3)) * self.scale[turn].flatten())
            fed.append((ours * (food > 0.5).float()[:, None]).amax((2, 3)))
        return torch.cat([*counts, *fed, *meets], dim=1)


def _one_step(cells: torch.Tensor) -> torch.Tensor:
    """(B, K, S, S) grids of 0.0 and 1.0 -> the same with all neighbours of their cells."""
    pool = nn.functional.max_pool2d
    return torch.maximum(pool(cells, (3, 1), 1, (1, 0)), pool(cells, (1, 3), 1, (0, 1)))


def _count_bits(numbers: torch.Tensor) -> torch.Tensor:
    """Number of set bits of each non-negative integer."""
    numbers = numbers - (numbers >> 1).bitwise_and_(0x55555555)
    numbers = (numbers & 0x33333333).add_((numbers >> 2).bitwise_and_(0x33333333))
    numbers.add_(numbers >> 4).bitwise_and_(0x0F0F0F0F)
    for step in (8, 16) if numbers.dtype == torch.int32 else (8,):
        numbers.add_(numbers >> step)
    return numbers.bitwise_and_(0x3F)


Outlook = ReachabilityFeatures
"""The name of the class in files of before."""


class SnakeNet(BaseFeaturesExtractor):
    """Features of the snake's `egocentric` encoding: near cells in detail, far ones averaged, and `ReachabilityFeatures`.

    The middle of the view, where the next turns happen, goes through 3x3 convolutions with padding; beside each level they see
    whether there is anything at all, for a tail that leaves next turn has a level of 10 in 255. The whole view is averaged over
    blocks.

    Args:
        observation_space: the egocentric one, (6, S, S).
        features_dim: width of the linear layer that takes it all.
        channels: output channels of each convolution.
        strides: stride of each convolution.
        near: cells a side of the middle.
        blocks: how many blocks a side the whole view is averaged over, at most.
        turns: of the `ReachabilityFeatures`; fewer where the view is smaller.

    Raises:
        ValueError: another encoding, or channels and strides differ in length.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        features_dim: int = 128,
        channels: tuple[int, ...] = (16, 32),
        strides: tuple[int, ...] = (2, 2),
        near: int = 13,
        blocks: int = 7,
        turns: int = 7,
    ) -> None:
        shape = observation_space.shape or ()
        planes = len(EGOCENTRIC_PLANES)
        if len(shape) != 3 or shape[0] != planes or shape[1] != shape[2] or shape[1] % 2 == 0:
            raise ValueError(
                f"SnakeNet needs the egocentric encoding, a Box ({planes}, S, S) with odd S, got {observation_space}"
            )
        if len(channels) != len(strides):
            raise ValueError(f"channels and strides must be of one length, got {channels} and {strides}")
        super().__init__(observation_space, features_dim)
        side = shape[1]
        self.reachability = ReachabilityFeatures(min(turns, side // 2))
        near = min(near, side)
        self._near = slice((side - near) // 2, (side + near) // 2)
        layers: list[nn.Module] = []
        width = 2 * planes
        for out, stride in zip(channels, strides, strict=True):
            layers += [nn.Conv2d(width, out, kernel_size=3, stride=stride, padding=1), nn.ReLU()]
            width = out
        self.cnn = nn.Sequential(*layers, nn.Flatten())
        self.blocks = nn.Sequential(nn.AvgPool2d(-(-side // blocks), ceil_mode=True), nn.Flatten())
        with torch.no_grad():
            inputs = self._parts(torch.zeros(1, *shape)).shape[1]
        self.linear = nn.Sequential(nn.Linear(inputs, features_dim), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(B, 6, S, S) float from 0 to 1 -> (B, features_dim) float."""
        features: torch.Tensor = self.linear(self._parts(observations))
        return features

    def _parts(self, view: torch.Tensor) -> torch.Tensor:
        near = view[:, :, self._near, self._near].contiguous()
        seen = torch.cat([near, near.sign()], dim=1)
        return torch.cat([self.reachability(view), self.cnn(seen), self.blocks(view)], dim=1)


def policy_kwargs(features_dim: int = 128, heads: int = 64) -> dict[str, Any]:
    """The `policy_kwargs` for PPO or A2C with "CnnPolicy": `GridCNN`, and one hidden layer each for policy and value."""
    return _policy_kwargs(GridCNN, heads, features_dim=features_dim)


def snake_policy_kwargs(heads: int = 64, **settings: Any) -> dict[str, Any]:
    """The same with `SnakeNet`, for the egocentric encoding; `settings` are those of the network."""
    return _policy_kwargs(SnakeNet, heads, **settings)


def _policy_kwargs(network: type[BaseFeaturesExtractor], heads: int, **settings: Any) -> dict[str, Any]:
    return {
        "features_extractor_class": network,
        "features_extractor_kwargs": settings,
        "net_arch": {"pi": [heads], "vf": [heads]},
    }
