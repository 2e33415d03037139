"""Frozen Stable-Baselines3 policies, loaded from a checkpoint or copied from a live model.

A checkpoint runs no code unless it is trusted, see `unpickling`.

Importing this module loads neither torch nor Stable-Baselines3; calling its functions does.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from adapters.opponents.checkpoint_file import LOAD_IT_YOURSELF, CheckpointFile, at_most_parameters
from adapters.opponents.unpickling import Trust, checked_trust, one_line

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

_Key = tuple[Path, tuple[int, ...], "torch.device", bool | frozenset[str]]
_loaded: weakref.WeakValueDictionary[_Key, BasePolicy] = weakref.WeakValueDictionary()
# by path, what tells apart files that were at it one after the other, device, and what they were trusted to ask for

NOT_TO_PLAY = ("device", "optimizer_class", "optimizer_kwargs")
"""Arguments of a policy that it needs to learn alone, and the device of other times."""

MASKED_LOGIT = -1e8
"""What MaskablePPO puts in the place of the logits of forbidden actions."""


def find_checkpoint(path: str | os.PathLike[str]) -> Path | None:
    """The file at the path or at the path with .zip, as SB3 finds it; None if neither exists."""
    for candidate in (Path(path), Path(f"{os.fspath(path)}.zip")):
        if candidate.is_file():
            return candidate
    return None


def is_onnx(path: str | os.PathLike[str]) -> bool:
    """Whether the file is an ONNX file and no checkpoint of Stable-Baselines3, by its name."""
    return os.fspath(path).endswith(".onnx")


def existing_checkpoint(path: str | os.PathLike[str], called: str = "") -> Path:
    """The file at the path, or at the path with .zip.

    Args:
        path: path of the checkpoint, with or without .zip.
        called: name of the checkpoint in the error; "": the path.

    Raises:
        FileNotFoundError: neither exists.
    """
    file = find_checkpoint(path)
    if file is None:
        raise FileNotFoundError(
            f"no checkpoint at {called or os.fspath(path)!r}: expected a file that SB3's save() or export_onnx wrote"
        )
    return file


def load_policy(
    path: str | os.PathLike[str],
    device: torch.device | str = "auto",
    trust: Trust = False,
    custom_objects: Mapping[str, Any] | None = None,
) -> BasePolicy:
    """The policy of an SB3 checkpoint, frozen and in evaluation mode.

    Only what the policy needs is read (its class, spaces and arguments), so nothing else in the file can fail; no algorithm,
    optimiser or environment is made. While a file's policy is in use, further calls return the same object, until the
    file changes: treat it as read-only.

    Args:
        path: path of the checkpoint, with or without .zip.
        device: device on which it predicts.
        trust: names that the file may ask for beside known classes, such as `my_package.MyExtractor`; True: anything.
        custom_objects: settings by name instead of those in the file, which are not read then, as for SB3's `load`.

    Raises:
        FileNotFoundError: neither the path nor the path with .zip is a file.
        ValueError: it is no SB3 checkpoint, it asks for what is neither known nor trusted, its policy cannot be rebuilt here,
            or the device does not exist.
    """
    file = existing_checkpoint(path)
    status = file.stat()
    where = find_device(device)
    # A copy may have the size and modification time of the original; st_ctime_ns cannot be set.
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    trusted = checked_trust(trust)
    key = (file.absolute(), version, where, trusted)
    if custom_objects:
        return _read_policy(file.absolute(), where, trusted, custom_objects)
    policy = _loaded.get(key)
    if policy is None:
        policy = _loaded[key] = _read_policy(file.absolute(), where, trusted, {})
    return policy


def find_device(device: torch.device | str) -> torch.device:
    """The device that SB3 uses for this value.

    Raises:
        ValueError: this machine has no such device.
    """
    import torch
    from stable_baselines3.common.utils import get_device

    try:
        found = get_device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:  # AssertionError if torch was built without it
        raise ValueError(f"there is no device {str(device)!r} here: {error}") from error
    return found


def _read_policy(
    path: Path, device: torch.device, trust: bool | frozenset[str], custom_objects: Mapping[str, Any]
) -> BasePolicy:
    import torch

    file = CheckpointFile(path, path, trust)
    file.data.update(custom_objects)
    policy_class, observation_space, action_space, kwargs = file.fields(
        "policy_class", "observation_space", "action_space", "policy_kwargs", without=NOT_TO_PLAY
    )
    if file.data.get("use_sde"):
        kwargs["use_sde"] = True
    size, weights = len(file.weights_bytes()), file.weights()
    bounds = nullcontext() if trust or custom_objects else at_most_parameters(size)
    try:
        with bounds, random_stream(torch.device("cpu"), 0):  # initial weights are drawn, only to be overwritten
            policy = _make_policy(policy_class, observation_space, action_space, kwargs)
        policy.load_state_dict(_with_extractors(weights, policy))
    except Exception as error:  # the class may be a user's
        raise ValueError(
            f"the policy in {path} cannot be rebuilt ({one_line(error)}); "
            f"is {policy_class!r} the class, in the version, that it was saved with? {LOAD_IT_YOURSELF}"
        ) from error
    return _freeze(policy, device)


def _make_policy(policy_class: Any, observation_space: Any, action_space: Any, kwargs: dict[str, Any]) -> BasePolicy:
    """Call the class with the arguments it takes: most take a learning rate schedule and an optimiser, ARS's neither."""
    parameters = list(inspect.signature(policy_class).parameters.values())
    names = {parameter.name for parameter in parameters}
    open_ended = any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in parameters)
    third = parameters[2] if len(parameters) > 2 else None
    takes_schedule = "lr_schedule" in names or open_ended or (third is not None and third.default is third.empty)
    if "optimizer_class" in names or open_ended:
        kwargs = {**kwargs, "optimizer_class": _no_optimizer}
    architecture = kwargs.get("net_arch")
    if isinstance(architecture, list) and len(architecture) == 1 and isinstance(architecture[0], dict):  # before SB3 1.8
        kwargs = {**kwargs, "net_arch": architecture[0]}
    schedule = [lambda _: 0.0] if takes_schedule else []
    policy: BasePolicy = policy_class(observation_space, action_space, *schedule, **kwargs)
    return policy


def _with_extractors(weights: dict[str, Any], policy: BasePolicy) -> dict[str, Any]:
    """With the features extractor under all the names that a policy has for it; before SB3 1.7 it had one."""
    named = any(key.startswith("pi_features_extractor.") for key in weights)
    if named or not getattr(policy, "share_features_extractor", False):
        return weights
    shared = {key: value for key, value in weights.items() if key.startswith("features_extractor.")}
    return weights | {f"{side}_{key}": value for side in ("pi", "vf") for key, value in shared.items()}


def _no_optimizer(*args: Any, **kwargs: Any) -> None:
    """Replaces the optimiser of a policy, which only plays and does not need one."""


def copy_policy(source: BaseAlgorithm | BasePolicy, device: torch.device | str = "auto") -> BasePolicy:
    """A copy of a live model's policy, frozen and in evaluation mode; the original is not touched."""
    import torch
    from stable_baselines3.common.distributions import Distribution

    policy: Any = getattr(source, "policy", source)
    policy = getattr(policy, "_orig_mod", policy)  # what torch.compile wraps
    # What deepcopy must not follow: optimisers are not needed, and tensors of the last gradient step cannot be copied.
    instead: dict[int, Any] = {}
    for module in policy.modules():
        for value in vars(module).values():
            if isinstance(value, torch.optim.Optimizer):
                instead[id(value)] = None
            elif isinstance(value, torch.Tensor) and not value.is_leaf:
                instead[id(value)] = value.detach().clone()
            elif isinstance(value, Distribution):  # made anew from the observations whenever it is used
                instead[id(value)] = blank = copy.copy(value)
                for name, part in vars(value).items():
                    if isinstance(part, torch.Tensor) or name in ("distribution", "distributions", "weights_dist"):
                        setattr(blank, name, None)
    return _freeze(copy.deepcopy(policy, instead), find_device(device))


def _freeze(policy: BasePolicy, device: torch.device) -> BasePolicy:
    return policy.to(device).eval().requires_grad_(False)


@contextmanager
def random_stream(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's random streams on the CPU and the device, and restore them afterwards."""
    import torch

    generators = [torch.default_generator]
    if device.type == "cuda":
        generators.append(torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index])
    states = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def discrete_actor(policy: BasePolicy) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """A short function from observations to logits, if it is certain to equal what `predict` computes; else None.

    The logits of MaskablePPO's policies are those before masking, which puts `MASKED_LOGIT` in the place of some.
    """
    from stable_baselines3.common.distributions import CategoricalDistribution
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.preprocessing import is_image_space

    bases: dict[type, type] = {ActorCriticPolicy: CategoricalDistribution}
    if "sb3_contrib.common.maskable.policies" in sys.modules:  # which a policy of this kind has loaded
        from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

        bases[MaskableActorCriticPolicy] = MaskableCategoricalDistribution
    base = next((base for base in bases if isinstance(policy, base)), None)
    steps = ("predict", "_predict", "get_distribution", "extract_features", "_get_action_dist_from_latent", "obs_to_tensor")
    if not (
        base is not None
        and type(getattr(policy, "action_dist", None)) is bases[base]
        and type(policy.observation_space) is spaces.Box
        and all(getattr(type(policy), step) is getattr(base, step) for step in steps)
    ):
        return None
    actor: Any = policy
    is_image = policy.normalize_images and is_image_space(policy.observation_space)

    def logits(observations: torch.Tensor) -> torch.Tensor:
        features = actor.pi_features_extractor(observations / 255.0 if is_image else observations.float())
        result: torch.Tensor = actor.action_net(actor.mlp_extractor.forward_actor(features))
        return result

    return logits
