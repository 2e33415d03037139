"""CheckedEnv: checks that an environment keeps to PettingZoo's parallel API and has spaces that SB3 supports.

An error is one sentence that names the agent, what was expected, what came and what to do.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv

from snake_pz.players import Observations

AnyParallelEnv = ParallelEnv[Any, Any, Any]
Infos = dict[Any, dict[str, Any]]

BASIC = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
NUMBERS = "biuf"
"""Kinds of numeric numpy dtypes."""
ATOMS = frozenset({bool, int, float, str, bytes, type(None)})
"""Types whose values nobody can change."""

FLATTEN = (
    "make them one Box, for example by supersuit.observation_lambda_v0(env, lambda seen, space: flatten(space, seen), "
    "flatten_space) with the two functions of gymnasium.spaces"
)
FLATTEN_MASKED = (
    "make what is at 'observation' one Box in a wrapper, for example with flatten and flatten_space of gymnasium.spaces"
)


class AgentSpaces(NamedTuple):
    """The spaces of one agent."""

    observation: Space[Any]  # without the action mask
    action: Space[Any]
    masked: bool  # whether observations contain an action mask


class Turn(NamedTuple):
    """The result of one step, by the agents that acted."""

    observations: dict[Any, Observations]  # only of agents that got one
    rewards: dict[Any, float]
    terminations: dict[Any, bool]
    truncations: dict[Any, bool]
    infos: Infos


class CheckedEnv:
    """A parallel environment whose results are checked and converted to one form.

    An observation is an array, or a dict of arrays, with the shape and dtype of its space. Action masks, from
    `infos[agent]["action_mask"]` or from Dict observations {"observation", "action_mask"}, are int8 under "action_mask" of the
    info. Observations and infos are copies, because environments reuse their buffers.

    Args:
        env: the environment.

    Attributes:
        spaces: spaces by agent.

    Raises:
        ValueError: `env` is no parallel environment, or SB3 does not support a space; from `reset` and `step`: a result does
            not fit the API or the spaces.
    """

    def __init__(self, env: AnyParallelEnv) -> None:
        check_parallel(env)
        self._env = env
        self._name = type(env.unwrapped).__name__
        self.spaces = {agent: _agent_spaces(env, agent) for agent in env.possible_agents}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[Any, Observations], Infos]:
        """Start a game. Empty options are not passed on."""
        answer = self._env.reset(seed=seed, **({"options": options} if options else {}))
        if not _are_dicts(answer, 2):
            raise ValueError(
                f"reset of {self._name} must return (observations, infos), two dicts by agent, got {_kinds(answer)}: return "
                "both, infos as {agent: {}} if there is nothing to say"
            )
        return self._receive(self.spaces, *answer)

    def step(self, actions: dict[Any, Any]) -> Turn:
        """Play one step with the actions of all agents that are alive."""
        answer: Any = self._env.step(actions)
        if not _are_dicts(answer, 5):
            raise ValueError(
                f"step of {self._name} must return (observations, rewards, terminations, truncations, infos), five dicts by "
                f"agent, got {_kinds(answer)}: return all five, with ends by the rules in terminations and ends by a limit in "
                "truncations"
            )
        seen, rewards, terminations, truncations, infos = answer
        return Turn(
            rewards={agent: _reward(rewards.get(agent, 0.0), agent) for agent in actions},
            terminations={agent: _flag(terminations.get(agent, False), agent, "termination") for agent in actions},
            truncations={agent: _flag(truncations.get(agent, False), agent, "truncation") for agent in actions},
            **dict(zip(("observations", "infos"), self._receive(actions, seen, infos), strict=True)),
        )

    def _receive(
        self, agents: Iterable[Any], seen: Mapping[Any, Any], infos: Mapping[Any, Any]
    ) -> tuple[dict[Any, Observations], Infos]:
        observations, own_infos = {}, {agent: _copy_info(infos.get(agent, {}), agent) for agent in agents}
        for agent, info in own_infos.items():
            space, action_space, masked = self.spaces[agent]
            if agent in seen:
                observation = seen[agent]
                if masked:
                    _check_keys(observation, ("action_mask", "observation"), f"agent {agent!r}")
                    observation, info["action_mask"] = observation["observation"], observation["action_mask"]
                observations[agent] = _own_copy(observation, space, f"agent {agent!r}")
            if info.get("action_mask") is not None:
                info["action_mask"] = _mask(info["action_mask"], action_space, agent)
        return observations, own_infos


def check_parallel(env: object) -> None:
    """Raise a ValueError if `env` is not a parallel environment that can be played here."""
    if isinstance(env, AECEnv):
        raise ValueError(
            f"expected a PettingZoo parallel environment, got the AEC environment {env}: use its module's parallel_env(), "
            "or convert it with pettingzoo.utils.conversions.aec_to_parallel"
        )
    if not isinstance(env, ParallelEnv):
        raise ValueError(f"expected a PettingZoo parallel environment, got {type(env).__module__}.{type(env).__qualname__}")
    if not getattr(env, "possible_agents", None):
        raise ValueError(f"expected {env} to list its agents in `possible_agents`, which is missing or empty: define it")
    for layer in _layers(env):
        if type(layer).__name__ == "black_death_par":
            raise ValueError(
                f"supersuit.black_death_v3 around {layer.unwrapped} hides when agents die, so that episodes would not end at "
                "the right step: leave it out, it is not needed here"
            )
        takes = _parameters(layer.reset)
        if not any(one.name == "seed" or one.kind is one.VAR_KEYWORD for one in takes):
            raise ValueError(
                f"reset of {type(layer).__name__} must take `seed` and `options`, got reset({', '.join(map(str, takes))}): "
                "define reset(self, seed=None, options=None) and draw all that is random from np.random.default_rng(seed)"
            )


def mask_length(action_space: Space[Any]) -> int:
    """The length A of an action mask, as sb3-contrib flattens it; 0 for spaces that cannot be masked."""
    if isinstance(action_space, spaces.Discrete):
        return int(action_space.n)
    if isinstance(action_space, spaces.MultiDiscrete):
        return int(action_space.nvec.sum())
    if isinstance(action_space, spaces.MultiBinary):
        return 2 * int(np.prod(action_space.shape))
    return int(getattr(action_space, "mask_length", 0))  # that of `CommonActions`


# Spaces


def _layers(env: Any) -> Iterator[Any]:
    """The environment and the parallel environments that it wraps, from the outside in."""
    while isinstance(env, ParallelEnv):
        yield env
        env = getattr(env, "env", None)


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    """The parameters of a function; any keyword if Python cannot tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("anything", inspect.Parameter.VAR_KEYWORD)]


def _agent_spaces(env: AnyParallelEnv, agent: Any) -> AgentSpaces:
    shown, action = env.observation_space(agent), env.action_space(agent)
    masked = isinstance(shown, spaces.Dict) and set(shown.spaces) == {"observation", "action_mask"}
    inner = shown["observation"] if isinstance(shown, spaces.Dict) and masked else shown
    parts = list(inner.spaces.values()) if isinstance(inner, spaces.Dict) else [inner]
    mend = FLATTEN_MASKED if masked else FLATTEN
    if not parts or not all(isinstance(part, BASIC) for part in parts):
        raise ValueError(
            f"agent {agent!r}: observations must be of a Box, Discrete, MultiDiscrete or MultiBinary space or of a Dict of "
            f"these, as SB3 has them, alone or as Dict(observation=..., action_mask=...), got {_line(shown)}: {mend}"
        )
    for part in parts:
        if problem := _unseen(part):
            raise ValueError(f"agent {agent!r}: observations {problem}, as SB3 has them, got {_line(part)}: {mend}")
    if problem := _unplayable(action):
        raise ValueError(f"agent {agent!r}: actions {problem}")
    return AgentSpaces(inner, action, masked)


def _unseen(space: Space[Any]) -> str:
    """What SB3 requires that this observation space does not meet; "" if nothing."""
    if isinstance(space, spaces.Box) and 0 in (space.shape or (0,)):
        return "of a Box must have a shape such as (1,), of at least one number"
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        return "must count from 0"
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim != 1:
        return "of a MultiDiscrete must be in one row"
    return ""


def _unplayable(space: Space[Any]) -> str:
    """Why SB3 does not support this action space; "" if it does."""
    if not isinstance(space, BASIC):
        return f"must be of a Box, Discrete, MultiDiscrete or MultiBinary space, as SB3 has them, got {_line(space)}"
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        return f"must count from 0, as SB3 does, got {_line(space)} with start {space.start}: add the start in `step`"
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim != 1:
        row = f"MultiDiscrete({space.nvec.ravel().tolist()})"
        return f"must be in one row, as SB3 has them, got {_line(space)}: take {row} and reshape the action in `step`"
    if isinstance(space, spaces.MultiBinary) and not isinstance(space.n, (int, np.integer)):
        row = f"MultiBinary({int(np.prod(space.shape))})"
        return f"must be in one row, as SB3 has them, got {_line(space)}: take {row} and reshape the action in `step`"
    if isinstance(space, spaces.Box) and 0 in space.shape:
        return f"must have at least one number, got {_line(space)}"
    return ""


# What reset and step answer


def _are_dicts(answer: Any, number: int) -> bool:
    return isinstance(answer, (tuple, list)) and len(answer) == number and all(isinstance(one, Mapping) for one in answer)


def _kinds(answer: Any) -> str:
    if isinstance(answer, (tuple, list)):
        return f"{len(answer)} values: {', '.join(type(one).__name__ for one in answer)}"
    return f"one {type(answer).__name__}"


def _line(value: Any) -> str:
    """The repr of a value on one line."""
    return " ".join(repr(value).split())


def _short(value: Any) -> str:
    text = _line(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _single(value: Any) -> Any:
    """The single number that a value is or holds; None if it is none."""
    try:
        array = np.asarray(value)
    except Exception:  # arrays of other libraries raise their own
        return None
    return array.item() if array.size == 1 and array.dtype.kind in NUMBERS else None


def _reward(value: Any, agent: Any) -> float:
    if type(value) is float:
        return value
    number = _single(value)
    if number is None:
        raise ValueError(
            f"the reward of agent {agent!r} must be one number, got {_short(value)}: make it one, of several for example a "
            "weighted sum"
        )
    return float(number)


def _flag(value: Any, agent: Any, which: str) -> bool:
    if value is True or value is False:
        return value
    number = _single(value)
    if number is None:
        raise ValueError(f"the {which} of agent {agent!r} must be True or False, got {_short(value)}: return one of them")
    return bool(number)


def _copy_info(info: Any, agent: Any) -> dict[str, Any]:
    if not isinstance(info, Mapping):
        raise ValueError(
            f"the info of agent {agent!r} must be a dict, got {_short(info)}: return {{}} if there is nothing to say"
        )
    try:
        return {key: _copy(value) for key, value in info.items()}
    except Exception as error:
        raise ValueError(
            f"the info of agent {agent!r} must be something that can be copied, got {_short(info)} ({type(error).__name__}: "
            f"{error}): leave out what holds locks, files, windows and the like"
        ) from error


def _copy(value: Any) -> Any:
    """A deep copy; by a shorter way of what most infos hold."""
    if type(value) in ATOMS:
        return value
    if type(value) is np.ndarray and value.dtype.kind in NUMBERS:
        return value.copy()
    return deepcopy(value)


def _mask(value: Any, action_space: Space[Any], agent: Any) -> NDArray[np.int8]:
    mask, length = np.asarray(value), mask_length(action_space)
    if mask.shape != (length,):
        raise ValueError(
            f"the action mask of agent {agent!r} must have shape ({length},) for {_line(action_space)}, got {mask.shape}: give "
            "one entry for each action, for a MultiDiscrete one after the other"
        )
    if mask.dtype.kind not in NUMBERS or not _zeros_and_ones(mask):
        raise ValueError(f"the action mask of agent {agent!r} must be of 1, allowed, and 0, forbidden, got {_short(value)}")
    return mask.astype(np.int8)


def _zeros_and_ones(mask: NDArray[Any]) -> bool:
    if mask.dtype.itemsize == 1:  # a few bytes, which numpy would take longer over
        return not mask.tobytes().strip(b"\x00\x01")
    return bool(np.all((mask == 0) | (mask == 1)))


def _check_keys(observation: Any, keys: Iterable[str], whose: str) -> None:
    if not isinstance(observation, Mapping) or observation.keys() != set(keys):
        got = sorted(observation) if isinstance(observation, Mapping) else type(observation).__name__
        raise ValueError(f"{whose} must observe a dict of {sorted(keys)}, as its observation space says, got {got}")


def _own_copy(observation: Any, space: Space[Any], whose: str) -> Observations:
    """The observation as a new array, or dict of arrays, with the dtype of its space."""
    if isinstance(space, spaces.Dict):
        _check_keys(observation, space.spaces, whose)
        return {key: _own_copy(observation[key], part, f"{whose} at {key!r}") for key, part in space.spaces.items()}
    try:
        array = np.asarray(observation)
    except Exception as error:
        raise ValueError(f"{whose} must observe an array of {_line(space)}, got {_short(observation)} ({error})") from error
    if array.shape != space.shape:
        raise ValueError(
            f"{whose} must observe arrays of shape {space.shape}, as its observation space says, got {array.shape}"
        )
    copy = array.copy() if array.dtype == space.dtype else _cast(array, space, whose)
    if not isinstance(space, spaces.Box) and not space.contains(copy):
        raise ValueError(
            f"{whose} must observe what is in its space, {_line(space)}, got {_short(observation)}: mend one of them"
        )
    return copy


def _cast(array: NDArray[Any], space: Space[Any], whose: str) -> NDArray[Any]:
    """Convert an array to the dtype of the space, which may round floats but not change anything else."""
    assert space.dtype is not None
    if array.dtype.kind not in NUMBERS:
        raise ValueError(
            f"{whose} must observe numbers, as its observation space {_line(space)} says, got {_short(array.tolist())}"
        )
    with np.errstate(all="ignore"):
        copy = array.astype(space.dtype)
    kept = np.isfinite(copy) == np.isfinite(array) if space.dtype.kind == "f" else copy == array
    if not np.all(kept):
        lost = ~np.asarray(kept)
        raise ValueError(
            f"{whose} must observe {space.dtype}, as its observation space {_line(space)} says, got {array.dtype} with "
            f"{array[lost][0]}, which would become {copy[lost][0]}: mend one of them"
        )
    return copy
