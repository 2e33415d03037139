"""Write policies as ONNX files, which play without torch and without this package.

Needs the extra `onnx`.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from adapters.opponents.onnx_file import KEY, About, import_onnx
from adapters.opponents.onnx_opponent import OnnxOpponent
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.preprocessing import Normalize, PutChannelsFirst, Step
from adapters.opponents.unpickling import Trust
from snake_pz.files import replacing
from snake_pz.rules import Rules

OPSET = 18
"""The version of ONNX's operators that is written."""
CHECKED = 64
"""Random observations on which the file must play like the policy."""


def export_onnx(
    source: Any,
    path: str | os.PathLike[str],
    *,
    observation_space: gymnasium.Space[Any] | None = None,
    vecnormalize: str | os.PathLike[str] | None = None,
    trust: Trust = False,
    rules: Rules | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Write a policy as an ONNX file.

    The graph takes `observations`, or an input for each key of a Dict space, with a batch axis first and in the dtypes of the
    observation space. It gives `logits` (B, n), `q_values` (B, n) or the likeliest `actions` (B, *shape), and `value` (B,) if
    the policy has a value function. `VecNormalize` statistics and a transposition of images are part of the graph. The spaces
    and the rest of `About` are in the file's metadata under "snake_pz".

    The file is checked before it gets its name: on random observations it must choose the policy's own actions.

    Args:
        source: path of a checkpoint, or a live model.
        path: path of the file to write.
        observation_space: what the games show, if that differs from what the policy was trained on by `VecNormalize` or
            `VecTransposeImage`; None: what it was trained on, before `VecNormalize`.
        vecnormalize: file of the statistics, if they are not found as for opponents.
        trust: what the checkpoint may ask for beside known classes, as for `frozen`.
        rules: the rules by which it plays the snake, which are added to the metadata with the names of its encoding and action
            set; None: not known, or another game.
        about: more metadata, such as "name" or "license".

    Returns:
        The path.

    Raises:
        ValueError: the policy is recurrent, has a class of its own whose actions the graph does not reproduce, sees stacked
            frames of `observation_space`, or does not fit the rules.
        FileNotFoundError: there is no such checkpoint.
        ImportError: the extra `onnx` is not installed.
    """
    onnx = import_onnx("onnx")
    shown = () if observation_space is None else (observation_space,)
    player = PolicyOpponent(source, shown=shown, deterministic=True, device="cpu", vecnormalize=vecnormalize, trust=trust)
    graph = _Graph(player)
    more = _more(source, player) | _of_the_snake(player, rules) | dict(about or {})
    known = About(player.observation_space, player.action_space, graph.output, player.uses_masks, more)
    names = list(player.observation_space) if isinstance(player.observation_space, spaces.Dict) else ["observations"]
    example = _batch(player.observation_space, 2)
    outputs = [graph.output, "value"] if graph.has_value else [graph.output]
    target = Path(path)
    with replacing(target) as temporary:
        with warnings.catch_warnings():
            # The exporter that traces writes one small file in seconds; its successor takes several times as long.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                graph,
                tuple(torch.as_tensor(example[name] if isinstance(example, dict) else example) for name in names),
                temporary,
                input_names=names,
                output_names=outputs,
                dynamic_axes={name: {0: "batch"} for name in [*names, *outputs]},
                opset_version=OPSET,
                dynamo=False,
            )
        model = onnx.load(temporary)
        entry = model.metadata_props.add()
        entry.key, entry.value = KEY, known.as_json()
        onnx.save(model, temporary)
        _check_same(player, temporary, os.fspath(source) if isinstance(source, (str, os.PathLike)) else player.name)
    return target


class _Graph(nn.Module):
    """Observations as the games show them -> what the file gives.

    Attributes:
        output: the kind of the first output.
        has_value: whether there is a second one.
    """

    def __init__(self, player: PolicyOpponent) -> None:
        super().__init__()
        policy = player.policy
        if hasattr(policy, "lstm_actor"):
            raise ValueError(f"{player.name!r} is recurrent, which is not exported: a file has no place for its memory")
        self._policy: Any = policy
        self._keys = list(player.observation_space) if isinstance(player.observation_space, spaces.Dict) else None
        self._steps = nn.ModuleList([_module(step, player.name) for step in player.preprocessing.steps])
        self._squashes = bool(getattr(policy, "squash_output", False))
        continuous = isinstance(policy.action_space, spaces.Box)
        self.has_value = hasattr(policy, "value_net") and hasattr(policy, "mlp_extractor")
        if self.has_value:
            self.output = "actions" if continuous else "logits"
        elif hasattr(policy, "q_net") or hasattr(policy, "quantile_net"):
            self.output = "q_values"
        else:
            self.output = "actions"
        if continuous:
            self._low, self._high = (torch.as_tensor(bound) for bound in (policy.action_space.low, policy.action_space.high))

    def forward(self, *inputs: torch.Tensor) -> Any:
        seen: Any = dict(zip(self._keys, inputs, strict=True)) if self._keys else inputs[0]
        for step in self._steps:
            seen = step(seen)
        policy = self._policy
        if self.has_value:
            features = policy.extract_features(seen)
            shared = not isinstance(features, tuple)
            actor, critic = (features, features) if shared else features
            result = policy.action_net(policy.mlp_extractor.forward_actor(actor))
            value = policy.value_net(policy.mlp_extractor.forward_critic(critic)).flatten()
            return (self._bounded(torch.tanh(result) if self._squashes else result), value)
        if hasattr(policy, "q_net"):
            return policy.q_net(seen)
        if hasattr(policy, "quantile_net"):
            return policy.quantile_net(seen).mean(dim=1)
        return self._bounded(policy._predict(seen, deterministic=True))

    def _bounded(self, result: torch.Tensor) -> torch.Tensor:
        """Actions within a Box, as `predict` gives them; others as they are."""
        if not isinstance(self._policy.action_space, spaces.Box):
            return result
        result = result.reshape(-1, *self._policy.action_space.shape)
        if self._squashes:
            return self._low + 0.5 * (result + 1.0) * (self._high - self._low)
        return torch.clamp(result, self._low, self._high)


class _Normalized(nn.Module):
    """`VecNormalize` with fixed statistics."""

    def __init__(self, step: Normalize) -> None:
        super().__init__()
        self._clip = float(step.statistics.clip_obs)
        of = step.statistics.obs_rms
        self._keys = list(of) if isinstance(of, dict) else None
        for name, rms in (of if isinstance(of, dict) else {"": of}).items():
            self.register_buffer(f"mean_{name}", torch.as_tensor(rms.mean))
            self.register_buffer(f"spread_{name}", torch.as_tensor(np.sqrt(rms.var + step.statistics.epsilon)))

    def forward(self, seen: Any) -> Any:
        if self._keys is None:
            return self._one(seen, "")
        return {name: self._one(part, name) if name in self._keys else part for name, part in seen.items()}

    def _one(self, seen: torch.Tensor, name: str) -> torch.Tensor:
        mean, spread = getattr(self, f"mean_{name}"), getattr(self, f"spread_{name}")
        return torch.clamp((seen.double() - mean) / spread, -self._clip, self._clip).float()


class _ChannelsFirst(nn.Module):
    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return seen.permute(0, 3, 1, 2)


def _module(step: Step, name: str) -> nn.Module:
    if isinstance(step, Normalize):
        return _Normalized(step)
    if isinstance(step, PutChannelsFirst):
        return _ChannelsFirst()
    raise ValueError(
        f"{name!r} sees several frames of these games, stacked, which a file has no memory for: leave out observation_space, "
        "and give the file stacked frames"
    )


def _more(source: Any, player: PolicyOpponent) -> dict[str, Any]:
    from stable_baselines3 import __version__ as sb3_version

    from snake_pz import __version__

    policy = type(player.policy)
    return {
        "name": Path(source).stem if isinstance(source, (str, os.PathLike)) else type(source).__name__,
        "policy": f"{policy.__module__}.{policy.__qualname__}",
        "written_with": {"snake-pz": __version__, "stable-baselines3": sb3_version, "torch": torch.__version__},
    }


def _of_the_snake(player: PolicyOpponent, rules: Rules | None) -> dict[str, Any]:
    if rules is None:
        return {}
    from snake_pz.core.encodings import encoding_for

    try:
        encoding, action_set = encoding_for(rules, player.observation_space, player.action_space)
    except ValueError as error:
        raise ValueError(
            f"{player.name!r} sees {player.observation_space} and acts in {player.action_space}, which is no encoding of "
            f"a board of {rules.width}x{rules.height}: give the rules that it was trained by, or none"
        ) from error
    return {"encoding": encoding.name, "actions": action_set, "rules": dataclasses.asdict(rules)}


def _check_same(player: PolicyOpponent, file: Path, called: str) -> None:
    seen = _batch(player.observation_space, CHECKED)
    slots = np.arange(CHECKED)
    expected = np.asarray(player.act(seen, slots, None))
    found = np.asarray(OnnxOpponent(file, deterministic=True).act(seen, slots, None))
    if player.action_space.dtype is not None and np.issubdtype(player.action_space.dtype, np.floating):
        same = np.isclose(found, expected, rtol=1e-3, atol=1e-4).reshape(CHECKED, -1).all(axis=1)
    else:
        same = (found == expected).reshape(CHECKED, -1).all(axis=1)
    if same.mean() < 0.98:  # two actions may be as likely as makes no difference to floats
        policy = type(player.policy)
        raise ValueError(
            f"{called} cannot be exported: of {CHECKED} observations its graph plays {int((~same).sum())} differently; does "
            f"{policy.__module__}.{policy.__qualname__} do more in predict() than Stable-Baselines3's policies?"
        )


def _batch(space: gymnasium.Space[Any], rows: int) -> Any:
    """Random observations, the same each time."""
    space.seed(0)
    if isinstance(space, spaces.Dict):
        samples: list[Any] = [space.sample() for _ in range(rows)]
        return {name: np.stack([sample[name] for sample in samples]) for name in space}
    return np.stack([space.sample() for _ in range(rows)])
