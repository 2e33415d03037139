"""curried_env_test on scripted deaths, on the snake on every backend, and on environments of others."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import supersuit
import torch

from adapters import curried_env_test
from adapters.sb3 import make_sb3_env
from snake_pz import snake_v0
from tests.support.scripted_env import SCRIPTS, DictEnv, ScriptedEnv

torch.set_num_threads(1)

with warnings.catch_warnings():  # Box2D is made by a SWIG whose deprecation warnings, raised as errors, crash the interpreter
    warnings.simplefilter("ignore")
    multiwalker_v9 = pytest.importorskip("pettingzoo.sisl.multiwalker_v9")


def conforms(
    make_parallel_env: Callable[[], Any], num_steps: int, num_workers: int = 0, num_games: int = 2, **kwargs: Any
) -> None:
    def make_venv(opponent: Any) -> Any:
        return make_sb3_env(opponent, env=make_parallel_env, num_games=num_games, num_workers=num_workers, **kwargs)

    curried_env_test(make_venv, make_parallel_env, num_steps=num_steps)


# Scripted deaths


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(
    "kind",
    [
        ScriptedEnv,
        DictEnv,
        partial(ScriptedEnv, masks="info"),
        partial(ScriptedEnv, masks="observation"),
        partial(ScriptedEnv, box_actions=True),
        partial(ScriptedEnv, num_agents=9),
        partial(ScriptedEnv, num_agents=1),
    ],
    ids=["plain", "dict", "masks in info", "masks in observation", "box actions", "nine agents", "one agent"],
)
def test_conformance_of_scripted_deaths(name: str, kind: Any) -> None:
    conforms(partial(kind, SCRIPTS[name]), num_steps=60)


@pytest.mark.parametrize("agent", range(4))
@pytest.mark.parametrize("how", ["terminated", "truncated", "both"])
@pytest.mark.parametrize("when", [1, 5], ids=["first", "last"])
def test_conformance_of_each_learner_ending_first_and_last(agent: int, how: str, when: int) -> None:
    script = dict.fromkeys(range(4), (3, "terminated")) | {agent: (when, how)}
    conforms(partial(ScriptedEnv, [script]), num_steps=40, learners=[f"agent_{agent}"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ScriptedEnv, DictEnv, partial(ScriptedEnv, masks="info")], ids=["plain", "dict", "masks"])
def test_conformance_of_scripted_deaths_in_workers(kind: Any) -> None:
    conforms(partial(kind, SCRIPTS["mixed games"]), num_steps=60, num_games=3, num_workers=2)


# The snake


SNAKES: dict[str, dict[str, Any]] = {
    "board": {},
    "egocentric, relative": {"observation": "egocentric", "actions": "relative"},
    "grey": {"observation": "single"},
    "two snakes, wrapped": {"num_snakes": 2, "edge": "wrap"},
    "masks in the observation": {"mask_in_observation": True},
}


@pytest.mark.parametrize("name", SNAKES)
@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_conformance_of_the_snake(name: str, backend: Any) -> None:
    snake_conforms(name, backend)


@pytest.mark.slow
def test_conformance_of_the_snake_in_workers() -> None:
    snake_conforms("masks in the observation", "supersuit", num_workers=2)


def snake_conforms(name: str, backend: Any, num_workers: int = 0) -> None:
    kwargs = {"width": 7, "height": 7, "max_cycles": 30, **SNAKES[name]}

    def make_venv(opponent: Any) -> Any:
        return make_sb3_env(opponent, backend=backend, num_workers=num_workers, num_games=3, env_kwargs=kwargs)

    curried_env_test(make_venv, partial(snake_v0.parallel_env, **kwargs), num_steps=150)


# Environments of others


def knights_archers_zombies() -> Any:
    from pettingzoo.butterfly import knights_archers_zombies_v11

    return knights_archers_zombies_v11.parallel_env(max_cycles=60)


def pistonball() -> Any:
    from pettingzoo.butterfly import pistonball_v6

    return pistonball_v6.parallel_env(max_cycles=8)


def multiwalker(**kwargs: Any) -> Any:
    return multiwalker_v9.parallel_env(max_cycles=40, **kwargs)


def particles(name: str, **kwargs: Any) -> Any:
    pytest.importorskip("mpe2", reason="mpe2 is installed by .ci/run, without the pygame-ce that would overwrite pygame")
    return importlib.import_module(f"mpe2.{name}").parallel_env(max_cycles=15, **kwargs)


def padded_adversary() -> Any:
    return supersuit.pad_observations_v0(supersuit.pad_action_space_v0(particles("simple_adversary_v3")))


def padded_speaker_and_listener() -> Any:
    return supersuit.pad_observations_v0(supersuit.pad_action_space_v0(particles("simple_speaker_listener_v4")))


OTHERS: dict[str, tuple[Callable[[], Any], int]] = {
    "multiwalker": (multiwalker, 150),
    "multiwalker that lose their fallen": (partial(multiwalker, terminate_on_fall=False, remove_on_fall=True), 150),
}
SLOW: dict[str, tuple[Callable[[], Any], int]] = {  # or of mpe2, which CI has only with the slow ones
    "knights_archers_zombies": (knights_archers_zombies, 300),
    "pistonball": (pistonball, 30),
    "simple_spread": (partial(particles, "simple_spread_v3"), 80),
    "simple_spread, continuous": (partial(particles, "simple_spread_v3", continuous_actions=True), 80),
    "simple_adversary, padded": (padded_adversary, 80),
    "simple_speaker_listener, padded": (padded_speaker_and_listener, 80),
}


@pytest.mark.parametrize("name", OTHERS)
def test_conformance_of_environments_of_others(name: str) -> None:
    conforms(*OTHERS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_conformance_of_slow_environments_of_others(name: str) -> None:
    make_parallel_env, num_steps = SLOW[name]
    make_parallel_env().close()  # skips if it is not installed
    conforms(make_parallel_env, num_steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["knights_archers_zombies", "multiwalker"])
def test_conformance_of_environments_of_others_in_workers(name: str) -> None:
    make_parallel_env, num_steps = (OTHERS | SLOW)[name]
    conforms(make_parallel_env, num_steps, num_workers=2)


@pytest.mark.slow
def test_conformance_agents_whose_spaces_differ_are_refused_with_the_way_out() -> None:
    adversary = partial(particles, "simple_adversary_v3")
    with pytest.raises(
        ValueError, match=r"one observation space.*adversary_0.*\(8,\).*'agent_0', 'agent_1'.*pad_observations_v0"
    ):
        make_sb3_env("random", env=adversary, num_games=2, learners=["agent_0"])
