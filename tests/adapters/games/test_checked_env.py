"""Environments that bend the API are refused by one sentence, from every door; and what is sound is taken as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import supersuit
from gymnasium import spaces
from gymnasium.spaces import flatten, flatten_space
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper
from stable_baselines3 import PPO

from adapters import curried_env_test
from adapters.games.checked_env import CheckedEnv, mask_length
from adapters.games.common_spaces import CommonSpaces
from adapters.sb3 import make_sb3_env
from tests.support.bent_envs import BENT, BYTES, POTS, MasksFromStepAlone, acting, paying, seeing
from tests.support.scripted_env import ScriptedEnv

bent = pytest.mark.parametrize(("kind", "says"), BENT.values(), ids=BENT)


def learn(env: Any) -> PPO:
    venv = make_sb3_env("random", env=env, num_games=2)
    policy = "MultiInputPolicy" if isinstance(venv.observation_space, spaces.Dict) else "MlpPolicy"
    return PPO(policy, venv, n_steps=8, batch_size=8, n_epochs=1, device="cpu").learn(16)


@bent
def test_make_sb3_env_refuses_what_bends_the_api(kind: Callable[[], ScriptedEnv], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        learn(kind)


@bent
def test_curried_env_test_says_the_same_before_it_plays(kind: Callable[[], ScriptedEnv], says: str) -> None:
    def make_venv(opponent: Any) -> Any:
        raise AssertionError("played before it checked")

    with pytest.raises(ValueError, match=says):
        curried_env_test(make_venv, kind, num_steps=20)


@bent
def test_agents_of_different_spaces_are_checked_alike(kind: Callable[[], ScriptedEnv], says: str) -> None:
    def play() -> None:
        env = CommonSpaces(kind())
        env.reset(seed=0)
        env.step({agent: np.zeros(env.action_space(agent).shape) for agent in env.agents})

    with pytest.raises(ValueError, match=says):
        play()


@pytest.mark.parametrize("reward", [3, np.float64(3), np.array(3), np.array([3.0]), [3], True], ids=repr)
def test_rewards_of_one_number_are_taken(reward: Any) -> None:
    env = CheckedEnv(paying(reward)())
    env.reset(0, None)
    paid = env.step(dict.fromkeys(env.spaces, 0)).rewards["agent_1"]
    assert type(paid) is float
    assert paid == float(np.array(reward).item())


@pytest.mark.parametrize(
    ("space", "seen"),
    [
        (spaces.Box(0, 255, (3,), np.uint8), np.array([1.0, 255.0, 0.0])),
        (spaces.Box(0, 1, (2,), np.float32), np.array([0.1, np.nan])),
        (spaces.Box(0, 1, (2,), np.float32), [0, 1]),
        (spaces.MultiBinary([2, 2]), np.eye(2, dtype=bool)),
        (spaces.Discrete(3), np.int8(2)),
        (spaces.MultiDiscrete([3, 6]), [2, 5]),
    ],
    ids=str,
)
def test_observations_that_lose_nothing_are_cast(space: Any, seen: Any) -> None:
    observations, _ = CheckedEnv(seeing(space, seen)()).reset(0, None)
    own = observations["agent_0"]
    assert isinstance(own, np.ndarray)
    assert own.dtype == space.dtype
    assert np.allclose(own, seen, equal_nan=True)
    learn(seeing(space, np.nan_to_num(seen)))


@pytest.mark.parametrize("number", [0, 1, 2.5])
def test_what_was_answered_does_not_change_with_the_environment_s_buffers(number: float) -> None:
    env = CheckedEnv(ScriptedEnv())
    observations, infos = env.reset(0, None)
    before = copy.deepcopy((observations, infos))
    env.step(dict.fromkeys(env.spaces, 0))
    np.testing.assert_equal((observations, infos), before)


# Following the advice


@pytest.mark.parametrize(
    ("space", "seen"),
    [
        (spaces.Tuple([spaces.Discrete(2), BYTES]), (1, np.array([1, 2, 3], np.uint8))),
        (spaces.Dict({"a": spaces.Dict({"b": BYTES})}), {"a": {"b": np.array([1, 2, 3], np.uint8)}}),
        (POTS, np.array([[1, 2], [1, 0]])),
        (spaces.Dict({"pots": POTS}), {"pots": np.array([[1, 2], [1, 0]])}),
        (spaces.Discrete(4, start=-1), -1),
        (spaces.Box(0, 1, (), np.float32), np.float32(0.5)),
    ],
    ids=["tuple", "nested dict", "two rows", "two rows in a dict", "from below zero", "no axis"],
)
def test_what_the_error_says_of_observations_helps(space: Any, seen: Any) -> None:
    advice = r"supersuit.observation_lambda_v0\(env, lambda seen, space: flatten\(space, seen\), flatten_space\)"
    with pytest.raises(ValueError, match=advice):
        learn(seeing(space, seen))

    def mended() -> Any:
        env = seeing(space, seen)()
        return supersuit.observation_lambda_v0(env, lambda seen, space: flatten(space, seen), flatten_space)

    model = learn(mended)
    assert np.array_equal(model.rollout_buffer.observations[0], flatten(space, seen))


class FlatObservation(BaseParallelWrapper[str, Any, Any]):
    def observation_space(self, agent: str) -> Any:
        space = self.env.observation_space(agent)
        return spaces.Dict({**space, "observation": flatten_space(space["observation"])})

    def flat(self, seen: dict[str, Any]) -> dict[str, Any]:
        space = self.env.observation_space("agent_0")["observation"]
        return {agent: {**one, "observation": flatten(space, one["observation"])} for agent, one in seen.items()}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        observations, infos = self.env.reset(seed, options)
        return self.flat(observations), infos

    def step(self, actions: Any) -> Any:
        observations, *rest = self.env.step(actions)
        return (self.flat(observations), *rest)


def test_what_the_error_says_of_masked_observations_helps() -> None:
    space = spaces.Dict({"observation": spaces.Tuple([BYTES]), "action_mask": spaces.MultiBinary(3)})
    seen = {"observation": (np.array([1, 2, 3], np.uint8),), "action_mask": np.array([1, 0, 1])}
    venv = make_sb3_env("random", env=lambda: FlatObservation(seeing(space, seen)()), num_games=2)
    assert venv.reset().tolist() == [[1, 2, 3]] * 2
    assert venv.action_masks().tolist() == [[True, False, True]] * 2


class Reshapes(ScriptedEnv):
    def __init__(self, space: Any, shape: tuple[int, ...] = (), start: int = 0) -> None:
        super().__init__()
        self._actions, self.shape, self.start = space, shape, start
        self.played: list[NDArray[Any]] = []

    def step(self, actions: dict[str, Any]) -> Any:
        self.played += [np.reshape(action, self.shape) + self.start for action in actions.values()]
        return super().step(actions)


@pytest.mark.parametrize(
    ("asked", "taken", "shape", "start"),
    [
        (POTS, spaces.MultiDiscrete([3, 6, 2, 2]), (2, 2), 0),
        (spaces.MultiBinary([2, 3]), spaces.MultiBinary(6), (2, 3), 0),
        (spaces.Discrete(3, start=1), spaces.Discrete(3), (), 1),
    ],
    ids=str,
)
def test_what_the_error_says_of_actions_helps(asked: Any, taken: Any, shape: tuple[int, ...], start: int) -> None:
    with pytest.raises(ValueError, match="actions must"):
        learn(acting(asked))
    model = learn(lambda: Reshapes(taken, shape, start))
    model.get_env().set_opponent(model, when="now")
    model.learn(16)
    played = model.get_env().get_attr("played", 0)[0]
    assert len(played) > 16
    assert all(asked.contains(action.astype(asked.dtype)[()]) for action in played)


def test_bits_are_whole_numbers() -> None:
    venv = make_sb3_env("random", env=lambda: Reshapes(spaces.MultiBinary(2), (2,)), num_games=2)
    venv.reset()
    for bits in ([[0.5, 0], [0, 1]], [[0, 2], [0, 1]]):
        with pytest.raises(ValueError, match=r"integers within MultiBinary"):
            venv.step(np.array(bits, np.float32))
    venv.step(np.eye(2, dtype=np.float32))


# Masks


def test_masks_that_begin_with_the_first_step_are_taken_by_those_who_can_wait() -> None:
    venv = make_sb3_env("random", env=MasksFromStepAlone, num_games=2)
    venv.reset()
    with pytest.raises(AttributeError, match=r"no action masks.*in the infos of reset"):
        venv.action_masks()
    venv.step(np.zeros(2, np.int64))
    assert (venv.action_masks().sum(axis=1) == 2).all()


def test_masks_that_begin_with_the_first_step_are_named_by_curried_env_test() -> None:
    with pytest.raises(AssertionError, match=r"'agent_\d' has an action mask in the infos of step, but nobody.*reset"):
        curried_env_test(lambda opponent: pytest.fail("played"), MasksFromStepAlone, num_steps=60)


def test_mask_length() -> None:
    lengths = [
        mask_length(s) for s in (spaces.Discrete(4), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3), spaces.Box(0, 1))
    ]
    assert lengths == [4, 5, 6, 0]
