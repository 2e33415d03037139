"""The classes that untrusted files may name, and how `unpickling` builds their objects.

Classes that are only named are those of policies, what policies are made of, and buffers. Objects are arrays, numbers, spaces,
collections, and Stable-Baselines3's schedules, noise and `VecNormalize` statistics. Spaces are made anew by Gymnasium's own
constructors, from bounds and numbers alone: so those of Gym are read too, and random streams begin anew.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecNormalize

    from adapters.opponents.unpickling import Maker, Note, Reader

NAMED = {
    "adapters.networks": "GridCNN Outlook ReachabilityFeatures SnakeNet",
    "adapters.buffers": "ActiveDictReplayBuffer ActiveDictRolloutBuffer ActiveReplayBuffer ActiveRolloutBuffer",
    "adapters.maskable_buffers": "ActiveMaskableDictRolloutBuffer ActiveMaskableRolloutBuffer",
    "adapters.vec_env.buffers": "ActiveDictReplayBuffer ActiveDictRolloutBuffer ActiveReplayBuffer ActiveRolloutBuffer",
    "adapters.vec_env.maskable_buffers": "ActiveMaskableDictRolloutBuffer ActiveMaskableRolloutBuffer",
    "numpy": "bool bool_ float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "sb3_contrib.ars.policies": "ARSLinearPolicy ARSPolicy",
    "sb3_contrib.common.maskable.buffers": "MaskableDictRolloutBuffer MaskableRolloutBuffer",
    "sb3_contrib.common.maskable.policies": (
        "MaskableActorCriticCnnPolicy MaskableActorCriticPolicy MaskableMultiInputActorCriticPolicy"
    ),
    "sb3_contrib.common.recurrent.buffers": "RecurrentDictRolloutBuffer RecurrentRolloutBuffer",
    "sb3_contrib.common.recurrent.policies": (
        "RecurrentActorCriticCnnPolicy RecurrentActorCriticPolicy RecurrentMultiInputActorCriticPolicy"
    ),
    "sb3_contrib.crossq.policies": "CrossQPolicy",
    "sb3_contrib.qrdqn.policies": "CnnPolicy MultiInputPolicy QRDQNPolicy",
    "sb3_contrib.tqc.policies": "CnnPolicy MultiInputPolicy TQCPolicy",
    "stable_baselines3.common.buffers": "DictReplayBuffer DictRolloutBuffer NStepReplayBuffer ReplayBuffer RolloutBuffer",
    "stable_baselines3.common.policies": "ActorCriticCnnPolicy ActorCriticPolicy MultiInputActorCriticPolicy",
    "stable_baselines3.common.sb2_compat.rmsprop_tf_like": "RMSpropTFLike",
    "stable_baselines3.common.torch_layers": "CombinedExtractor FlattenExtractor NatureCNN",
    "stable_baselines3.dqn.policies": "CnnPolicy DQNPolicy MultiInputPolicy",
    "stable_baselines3.her.her_replay_buffer": "HerReplayBuffer",
    "stable_baselines3.sac.policies": "CnnPolicy MultiInputPolicy SACPolicy",
    "stable_baselines3.td3.policies": "CnnPolicy MultiInputPolicy TD3Policy",
}
"""By module: classes that may be named. Those of `torch.nn.modules` and `torch.optim` may be, too."""

CALLED = {
    "collections": "OrderedDict deque",
    "stable_baselines3.common.type_aliases": "TrainFrequencyUnit",
    "stable_baselines3.her.goal_selection_strategy": "GoalSelectionStrategy",
}
"""By module: classes that are called as the pickle says, with what is itself known."""

OBJECTS = {
    "stable_baselines3.common.noise": "NormalActionNoise OrnsteinUhlenbeckActionNoise VectorizedActionNoise",
    "stable_baselines3.common.running_mean_std": "RunningMeanStd",
    "stable_baselines3.common.type_aliases": "TrainFreq",
    "stable_baselines3.common.utils": "ConstantSchedule FloatSchedule LinearSchedule",
}
"""By module: classes whose objects are given the attributes that the pickle says; their constructors are not called."""


def find_class(name: tuple[str, str]) -> type | None:
    """The class with this module and name; None if files may not name it."""
    module, inside = name
    if inside in NAMED.get(module, "").split():
        found: type = getattr(importlib.import_module(module), inside)
        return found
    if module.startswith(("torch.nn.modules.", "torch.optim.")):
        import torch

        kind = getattr(sys.modules.get(module), inside, None)
        if isinstance(kind, type) and issubclass(kind, (torch.nn.Module, torch.optim.Optimizer)) and kind.__module__ == module:
            return kind
    return None


# numpy


def _dtype(reader: Reader, note: Note) -> np.dtype[Any]:
    """A dtype of numbers. With object dtypes a file could forge the memory addresses of elements."""
    code = note.args[0]
    if not isinstance(code, str) or not re.fullmatch(r"[biufc]\d{1,2}", code):
        raise ValueError(f"an array of {code!r:.40}, expected numbers")
    order: Any = note.states[-1][1] if note.states else "="
    return np.dtype(code).newbyteorder(order)


def _numbers(data: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    if not isinstance(data, (bytes, bytearray)) or not isinstance(dtype, np.dtype):
        raise ValueError(f"an array of {type(data).__name__}, expected bytes")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if order == "F" else "C").copy(order="K")


def _array(reader: Reader, note: Note) -> NDArray[Any]:
    """Since numpy has had `__reduce__`: an empty array that is given its state."""
    _, shape, dtype, is_fortran, data = reader.make(note.states[-1])
    return _numbers(data, dtype, shape, "F" if is_fortran else "C")


def _array_of_buffer(reader: Reader, note: Note) -> NDArray[Any]:
    """An array from a buffer, as in pickle's protocol 5."""
    data, dtype, shape, order, *axes = reader.make(note.args)
    array = _numbers(data, dtype, shape, order)
    return array.transpose(axes[0]) if axes and axes[0] is not None else array


def _scalar(reader: Reader, note: Note) -> Any:
    dtype, data = reader.make(note.args)
    return _numbers(data, dtype, (), "C")[()]


def _generator(reader: Reader, note: Note) -> np.random.Generator:
    """A fresh generator: loaders do not need the state of a stream, and numpy does not check it."""
    return np.random.default_rng()


# Gymnasium's spaces, and Gym's


def _whole(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise ValueError(f"expected a whole number, got {number!r:.40}")
    return int(number)


def _part(reader: Reader, note: Note, name: str) -> Any:
    return reader.make(note.state[name])


def _dtype_of(reader: Reader, note: Note) -> np.dtype[Any]:
    dtype = reader.make(note.state["dtype"]) if note.state.get("dtype") is not None else np.dtype(np.int64)
    if not isinstance(dtype, (np.dtype, type)):
        raise ValueError(f"expected a dtype, got {dtype!r:.40}")
    return np.dtype(dtype)


def _box(reader: Reader, note: Note) -> spaces.Box:
    dtype = _dtype_of(reader, note)
    low, high = (np.asarray(_part(reader, note, limit), dtype) for limit in ("low", "high"))
    return spaces.Box(low, high, dtype=dtype)


def _discrete(reader: Reader, note: Note) -> spaces.Discrete[Any]:
    n, start, dtype = _part(reader, note, "n"), reader.make(note.state.get("start", 0)), _dtype_of(reader, note)
    if dtype == np.int64:
        return spaces.Discrete(_whole(n), start=_whole(start))
    return spaces.Discrete(_whole(n), start=_whole(start), dtype=dtype.type)  # which Gymnasium has not always known


def _multi_discrete(reader: Reader, note: Note) -> spaces.MultiDiscrete[Any]:
    start = reader.make(note.state.get("start"))
    nvec = np.asarray(_part(reader, note, "nvec"))
    return spaces.MultiDiscrete(nvec, dtype=_dtype_of(reader, note).type, start=start)


def _multi_binary(reader: Reader, note: Note) -> spaces.MultiBinary:
    n = _part(reader, note, "n")
    return spaces.MultiBinary([_whole(one) for one in n] if isinstance(n, (list, tuple, np.ndarray)) else _whole(n))


def _dict(reader: Reader, note: Note) -> spaces.Dict:
    return spaces.Dict(list(_part(reader, note, "spaces").items()))  # in this order, in which features are put together


# Stable-Baselines3


def _statistics(reader: Reader, note: Note) -> VecNormalize:
    """What it was trained with; nothing of the environments that it was around."""
    from stable_baselines3.common.running_mean_std import RunningMeanStd
    from stable_baselines3.common.vec_env import VecNormalize

    keys = (
        "observation_space", "action_space", "num_envs", "training", "norm_obs", "norm_obs_keys", "norm_reward", "obs_rms",
        "ret_rms", "clip_obs", "clip_reward", "gamma", "epsilon",
    )  # fmt: skip
    state = {key: reader.make(note.state[key]) for key in keys if key in note.state}
    numbers = [state[key] for key in ("clip_obs", "clip_reward", "epsilon", "gamma")]
    means = state["obs_rms"] if isinstance(state.get("obs_rms"), Mapping) else {"": state.get("obs_rms")}
    if not (
        isinstance(state["observation_space"], spaces.Space)
        and all(isinstance(number, Real) for number in numbers)
        and all(isinstance(mean, RunningMeanStd) for mean in [*means.values(), state["ret_rms"]] if mean is not None)
        and all(isinstance(part, np.ndarray) for mean in means.values() if mean is not None for part in (mean.mean, mean.var))
    ):
        raise ValueError("VecNormalize without the statistics that it writes")
    statistics = VecNormalize.__new__(VecNormalize)
    statistics.__setstate__(state)
    return statistics


def _as_said(reader: Reader, note: Note) -> Any:
    module, name = note.name
    if note.called and name not in CALLED.get(module, ""):
        raise ValueError(f"{name} called with arguments of the file's")
    return reader.rebuild(getattr(importlib.import_module(module), name), note)


def _active_mask(reader: Reader, note: Note) -> Any:
    """Of no VecEnv, as it is pickled."""
    module, name = note.name
    return getattr(importlib.import_module(module), name)()


def _makers() -> dict[tuple[str, str], Maker]:
    makers: dict[tuple[str, str], Maker] = {
        (module, name): _as_said for table in (CALLED, OBJECTS) for module in table for name in table[module].split()
    }
    makers["adapters.buffers", "Rows"] = makers["adapters.vec_env.buffers", "ActiveMask"] = _active_mask
    makers["numpy", "dtype"] = _dtype
    for core in ("numpy.core", "numpy._core"):  # numpy 1, numpy 2
        makers[f"{core}.multiarray", "_reconstruct"] = _array
        makers[f"{core}.multiarray", "scalar"] = _scalar
        makers[f"{core}.numeric", "_frombuffer"] = _array_of_buffer
    for constructor in ("__generator_ctor", "__randomstate_ctor"):
        makers["numpy.random._pickle", constructor] = _generator
    for gym in ("gym.spaces", "gymnasium.spaces"):
        makers[f"{gym}.box", "Box"] = _box
        makers[f"{gym}.discrete", "Discrete"] = _discrete
        makers[f"{gym}.multi_discrete", "MultiDiscrete"] = _multi_discrete
        makers[f"{gym}.multi_binary", "MultiBinary"] = _multi_binary
        makers[f"{gym}.dict", "Dict"] = _dict
    makers["stable_baselines3.common.vec_env.vec_normalize", "VecNormalize"] = _statistics
    return makers


MAKERS = _makers()
"""By module and name: what makes an object that a file says how to make."""
