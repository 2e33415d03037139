"""Stable-Baselines3 guesses which side of an image holds the channels: where it would guess wrong, somebody is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import supersuit
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize, VecTransposeImage

from adapters import ActiveRolloutBuffer
from adapters.gym import make_gym_env
from adapters.networks import policy_kwargs
from adapters.sb3 import make_sb3_env
from snake_pz import snake_v0
from tests.support.scripted_env import ScriptedEnv

torch.set_num_threads(1)

SMALL = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "device": "cpu"}
STACKED = r"VecFrameStack has stacked 2 frames .*\(14, 11, 11\).* to \(11, 14, 11\).*VecTransposeImage\(env, skip=True\)"


def snakes(**kwargs: Any) -> Any:
    return make_sb3_env("random", num_games=2, **kwargs)


def convolve(env: Any, policy: str = "CnnPolicy", **kwargs: Any) -> PPO:
    return PPO(policy, env, policy_kwargs=policy_kwargs(8, 8), **SMALL, **kwargs)


class Painted(ScriptedEnv):
    """Images of any shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.picture = spaces.Box(0, 255, shape, np.uint8)

    def observation_space(self, agent: str) -> Any:
        return self.picture

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.painted(super().reset(seed, options)[0]), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        seen, *rest = super().step(actions)
        return self.painted(seen), *rest

    def painted(self, agents: Any) -> dict[str, Any]:
        return {agent: np.zeros(self.picture.shape, np.uint8) for agent in agents}


def painted(*shape: int, stack: bool = False) -> Any:
    def make() -> Any:
        return supersuit.frame_stack_v2(Painted(shape), 2, stack_dim=0) if stack else Painted(shape)

    return make_sb3_env("random", env=make, num_games=2)


def test_stacked_frames_of_the_snake_are_never_transposed(tmp_path: Any) -> None:
    env = VecFrameStack(snakes(), 2)
    with pytest.warns(UserWarning, match="Treating image space"), pytest.raises(ValueError, match=STACKED):
        convolve(env)
    model = convolve(VecTransposeImage(env, skip=True)).learn(32)  # as the error says
    assert model.observation_space.shape == (14, 11, 11)
    model.save(tmp_path / "stacked.zip")
    with pytest.warns(UserWarning, match="Treating image space"), pytest.raises(ValueError, match=STACKED):
        PPO.load(tmp_path / "stacked.zip", env)
    PPO.load(tmp_path / "stacked.zip", VecTransposeImage(env, skip=True)).learn(16)


def test_what_a_policy_saw_is_what_it_sees_as_an_opponent(tmp_path: Any) -> None:
    env = VecTransposeImage(VecFrameStack(snakes(), 2), skip=True)
    model = convolve(env)
    model.save(tmp_path / "stacked.zip")
    env.unwrapped.set_opponent(tmp_path / "stacked.zip", "now")
    (opponent,) = env.unwrapped.lineup.opponents
    frames = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 11, 11), np.uint8)
    slots = np.arange(5)
    seen = [opponent.preprocessing.apply(frame, slots) for frame in frames]
    np.testing.assert_array_equal(seen[1], np.concatenate([*frames], axis=1))


def test_stacked_frames_in_a_dict_are_never_transposed() -> None:
    class Dicts(Painted):
        def observation_space(self, agent: str) -> Any:
            return spaces.Dict({"picture": self.picture})

        def painted(self, agents: Any) -> dict[str, Any]:
            return {agent: {"picture": seen} for agent, seen in super().painted(agents).items()}

    env = VecFrameStack(make_sb3_env("random", env=lambda: Dicts((4, 8, 7)), num_games=2), 2)
    with pytest.raises(ValueError, match=r"\(8, 8, 7\).*transpose them to \(7, 8, 8\)"):
        PPO("MultiInputPolicy", env, **SMALL)
    VecTransposeImage(env, skip=True).reset()


def test_fewer_channels_than_cells_need_nothing_and_normalised_frames_are_stacked_by_hand() -> None:
    assert convolve(VecFrameStack(snakes(env_kwargs={"width": 15, "height": 15}), 2)).observation_space.shape == (14, 15, 15)
    stacked = VecFrameStack(VecNormalize(snakes()), 2, channels_order="first")
    assert convolve(stacked).observation_space.shape == (14, 11, 11)


def test_whoever_transposes_by_hand_is_believed_and_its_opponents_are_told() -> None:
    with pytest.warns(UserWarning, match="Treating image space"):
        env = VecTransposeImage(VecFrameStack(snakes(), 2))
    model = convolve(env)
    assert model.observation_space.shape == (11, 14, 11)
    with pytest.warns(
        UserWarning, match=r"'PPO' plays as it was trained.*VecTransposeImage\(VecFrameStack\(env, n_stack\), skip=True"
    ):
        env.unwrapped.set_opponent(model)
    env.unwrapped.set_opponent(PPO("MlpPolicy", env, **SMALL))


def test_the_gymnasium_face_tells_too() -> None:
    env = make_vec_env(make_gym_env, 1, env_kwargs={"opponent": "random", "env_kwargs": {"width": 11, "height": 11}})
    stacked = VecFrameStack(env, 2)
    with pytest.warns(UserWarning, match="Treating image space"), pytest.raises(ValueError, match=STACKED):
        convolve(stacked)
    convolve(VecTransposeImage(stacked, skip=True))


# Other environments, of which it is not known where the channels are


@pytest.mark.filterwarnings("ignore:Treating image space")
@pytest.mark.parametrize("shape", [(9, 8, 8), (9, 8, 10)])
def test_images_that_may_be_channels_first_are_transposed_with_a_warning(shape: Any) -> None:
    env = painted(*shape)
    with pytest.warns(
        UserWarning, match=r"the model transposes images .*VecTransposeImage\(env, skip=True\).*VecTransposeImage\(env\)"
    ):
        convolve(env)
    assert convolve(VecTransposeImage(env, skip=True)).observation_space.shape == shape
    assert convolve(VecTransposeImage(env)).observation_space.shape == (shape[2], *shape[:2])


def test_frames_stacked_inside_the_environment_and_images_as_sb3_expects_them_need_a_word_at_most() -> None:
    with pytest.warns(UserWarning, match="Treating image space"), pytest.warns(UserWarning, match="transposes images"):
        convolve(painted(5, 8, 8, stack=True))
    assert convolve(VecTransposeImage(painted(5, 8, 8, stack=True), skip=True)).learn(16).observation_space.shape == (10, 8, 8)
    for shape, seen in [((8, 9, 3), (3, 8, 9)), ((3, 8, 9), (3, 8, 9))]:
        assert convolve(painted(*shape)).learn(16).observation_space.shape == seen


def test_square_boards_with_many_channels_last_are_taken_as_they_are_with_a_warning() -> None:
    env = painted(8, 8, 20)
    with pytest.warns(UserWarning, match=r"PPO takes images of shape \(8, 8, 20\) to have 8 channels"):
        convolve(env).learn(16)
    convolve(VecTransposeImage(painted(8, 8, 20), skip=True)).learn(16)
    PPO("MlpPolicy", painted(8, 8, 20), **SMALL).learn(16)  # which sees the same numbers in another order
    snakes7 = snakes(env_kwargs={"width": 9, "height": 7})
    assert snakes7.observation_space.shape == (7, 7, 9)
    convolve(snakes7).learn(16)


def test_several_learners_stack_frames_inside_the_environment() -> None:
    def make() -> Any:
        return supersuit.frame_stack_v2(snake_v0.parallel_env(), 2, stack_dim=0)

    env = VecTransposeImage(make_sb3_env(env=make, num_games=2, learners="all"), skip=True)
    buffer = {"rollout_buffer_class": ActiveRolloutBuffer, "rollout_buffer_kwargs": {"active": env.unwrapped.active}}
    assert convolve(env, **buffer).learn(16).observation_space.shape == (14, 11, 11)


def test_a_model_that_is_given_another_vec_env_is_told_as_well() -> None:
    model = convolve(VecTransposeImage(VecFrameStack(snakes(), 2), skip=True))
    with pytest.warns(UserWarning, match="Treating image space"), pytest.raises(ValueError, match=STACKED):
        model.set_env(VecFrameStack(snakes(), 2))
