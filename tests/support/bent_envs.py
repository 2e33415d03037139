"""Parallel environments that bend the API or have spaces that SB3 cannot use, each in one way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from tests.support.scripted_env import ScriptedEnv


class Paid(ScriptedEnv):
    """Pays "agent_1" what `pay` says."""

    def pay(self) -> Any:
        raise NotImplementedError

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        return (observations, {**rewards, "agent_1": self.pay()}, *rest)


def paying(value: Any) -> type[Paid]:
    """An environment with this reward."""
    return type("Paying", (Paid,), {"pay": lambda self: value})


class Telling(ScriptedEnv):
    """Tells "agent_1" in `step` what `said` says."""

    said: Any = None

    def step(self, actions: dict[str, Any]) -> Any:
        *rest, infos = super().step(actions)
        return (*rest, {**infos, "agent_1": self.said})


def telling(value: Any) -> type[Telling]:
    """An environment with this info."""
    return type("Says", (Telling,), {"said": value})


class Seeing(ScriptedEnv):
    """All see `seen` in `space`."""

    space: spaces.Space[Any]
    seen: Any = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.space

    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        return dict.fromkeys(agents, self.seen)


def seeing(space: spaces.Space[Any], seen: Any) -> type[Seeing]:
    """An environment with this observation space and this observation."""
    return type("Sees", (Seeing,), {"space": space, "seen": seen})


def acting(space: spaces.Space[Any]) -> type[ScriptedEnv]:
    """An environment with this action space."""
    return type("Acts", (ScriptedEnv,), {"action_space": lambda self, agent: space})


class InfoAtReset(ScriptedEnv):
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observations, infos = super().reset(seed, options)
        return observations, dict.fromkeys(infos)


class ObservationsAlone(ScriptedEnv):
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed, options)[0]


class WithoutSeed(ScriptedEnv):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class FourValues(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, ends, _, infos = super().step(actions)
        return observations, rewards, ends, infos


class RewardForAll(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, _, *rest = super().step(actions)
        return (observations, 1.0, *rest)


class NeitherEnds(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, ends, *rest = super().step(actions)
        return (observations, rewards, {**ends, "agent_1": None}, *rest)


class HalfAMask(ScriptedEnv):
    def mask(self, agent: str) -> Any:
        return np.array([0.5, 1, 1])


class MasksFromStepAlone(ScriptedEnv):
    """Sound, but that nobody knows what the first action may be."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(masks="info", **kwargs)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observations, _ = super().reset(seed, options)
        return observations, {agent: {} for agent in self.agents}


BYTES = spaces.Box(0, 255, (3,), np.uint8)
POTS = spaces.MultiDiscrete([[3, 6], [2, 2]])
BENT: dict[str, tuple[Callable[[], ScriptedEnv], str]] = {
    "a vector as reward": (
        paying(np.array([1.0, 2.0])),
        r"reward of agent 'agent_1' must be one number, got array\(\[1\., 2\.\]\): make it one",
    ),
    "no reward": (paying(None), r"reward of agent 'agent_1' must be one number, got None"),
    "a word as reward": (paying("many"), r"reward of agent 'agent_1' must be one number, got 'many'"),
    "one reward for all": (RewardForAll, r"step of RewardForAll must return .*got 5 values: dict, float, dict, dict, dict"),
    "no info": (telling(None), r"info of agent 'agent_1' must be a dict, got None: return \{\}"),
    "no info at reset": (InfoAtReset, r"info of agent 'agent_0' must be a dict, got None"),
    "an info that holds a lock": (
        lambda: telling({"lock": threading.Lock()})(),
        r"info of agent 'agent_1' must be something that can be copied, got \{'lock'.*leave out",
    ),
    "observations alone from reset": (
        ObservationsAlone,
        r"reset of ObservationsAlone must return \(observations, infos\).*got one dict: return both",
    ),
    "reset without seed": (WithoutSeed, r"reset of WithoutSeed must take `seed`.*got reset\(\): define"),
    "four values from step": (FourValues, r"step of FourValues must return .*got 4 values: .*truncations"),
    "no termination": (NeitherEnds, r"termination of agent 'agent_1' must be True or False, got None"),
    "half a mask": (
        lambda: HalfAMask(masks="info"),
        r"mask of agent 'agent_0' must be of 1, allowed, and 0, forbidden, got array\(\[0.5",
    ),
    "two rows of numbers": (
        seeing(POTS, np.ones((2, 2))),
        r"'agent_0': observations .*one row.*\[\[3 6\] \[2 2\]\].*flatten_space",
    ),
    "the same in a dict": (
        seeing(spaces.Dict({"pots": POTS}), {"pots": np.ones((2, 2))}),
        r"'agent_0': observations .*in one row.*MultiDiscrete",
    ),
    "a number from 1": (seeing(spaces.Discrete(4, start=1), 2), r"'agent_0': observations must count from 0.*start=1"),
    "a Box of no axis": (
        seeing(spaces.Box(0, 1, ()), 0.5),
        r"'agent_0': observations of a Box must have a shape.* \(1,\)",
    ),
    "a tuple": (seeing(spaces.Tuple([BYTES]), (0,)), r"'agent_0': observations must be of a Box.*Tuple.*flatten_space"),
    "a masked tuple": (
        seeing(spaces.Dict({"observation": spaces.Tuple([BYTES]), "action_mask": BYTES}), {}),
        r"'agent_0': observations must be of a Box.*Tuple.*at 'observation' one Box in a wrapper",
    ),
    "floats in a Box of bytes": (
        seeing(BYTES, np.array([1.0, 0.2, 300.0])),
        r"'agent_0' must observe uint8.*got float64 with 0.2, which would become 0: mend",
    ),
    "large numbers in a Box of bytes": (seeing(BYTES, [1, 2, 300]), r"'agent_0' must observe uint8.*got int64 with 300, .*44"),
    "floats that overflow": (seeing(spaces.Box(0, 1, (2,)), [0, 1e300]), r"'agent_0' must observe float32.*1e\+300.*inf"),
    "words": (seeing(BYTES, ["a", "b", "c"]), r"'agent_0' must observe numbers.*got \['a', 'b', 'c'\]"),
    "nothing": (seeing(spaces.Box(0, 1, (1,)), [None]), r"'agent_0' must observe numbers.*got \[None\]"),
    "rows of unequal length": (seeing(BYTES, [[1], [2, 3]]), r"'agent_0' must observe an array of .*got \[\[1\], \[2, 3\]\]"),
    "a number that is too large": (
        seeing(spaces.Discrete(3), 3),
        r"'agent_0' must observe what is in.*Discrete\(3\), got 3",
    ),
    "two rows of actions": (
        acting(POTS),
        r"'agent_0': actions .*one row.*take MultiDiscrete\(\[3, 6, 2, 2\]\) and reshape",
    ),
    "two rows of bits": (acting(spaces.MultiBinary([2, 3])), r"'agent_0': actions must be in one row.*take MultiBinary\(6\)"),
    "actions from 1": (acting(spaces.Discrete(3, start=1)), r"'agent_0': actions must count from 0.*add the start in `step`"),
    "actions in a tuple": (acting(spaces.Tuple([BYTES])), r"'agent_0': actions must be of a Box, Discrete.*got Tuple"),
    "no actions": (acting(spaces.Box(0, 1, (0,))), r"'agent_0': actions must have at least one number"),
}
"""name -> (what makes the environment, what is said of it)."""
