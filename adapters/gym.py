"""The curried games for tools that expect Gymnasium: one game as an `Env`, many as a `VectorEnv`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

from adapters.opponents.unpickling import Trust
from adapters.sb3 import make_sb3_env
from adapters.vec_env.curry import CurryVecEnv
from snake_pz.players import Observations, map_arrays

if TYPE_CHECKING:
    import torch

    from adapters.games.checked_env import AnyParallelEnv

_OF_SB3 = ("terminal_observation", "TimeLimit.truncated", "episode")
"""Infos that Gymnasium has in other places, or whose names its wrappers claim."""


def make_gym_env(
    opponent: Any = None,
    *,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    learner: str | None = None,
    flatten: bool = False,
    backend: Literal["auto", "native", "supersuit"] = "auto",
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
) -> CurryEnv:
    """Make a Gymnasium environment of one game, in which the caller plays one seat and `opponent` the others.

    Args:
        opponent: who plays the other seats, as in `make_sb3_env`.
        env: the game, as in `make_sb3_env`; None is the snake.
        env_kwargs: arguments for the environment's constructor.
        learner: the agent that learns; None shuffles the agents over the seats in every game.
        flatten: see `CurryEnv`.
        backend: as in `make_sb3_env`.
        deterministic: opponents take their likeliest action, if they are not told otherwise.
        device: where checkpoints and models predict.
        trust: what the opponents' files may ask for beside known classes, as in `make_sb3_env`.

    Raises:
        ValueError: an argument does not fit.
        FileNotFoundError: there is no such checkpoint.
    """
    options = {"backend": backend, "deterministic": deterministic, "device": device, "trust": trust}
    return CurryEnv(_one_learner(opponent, env, env_kwargs, learner, 1, options), flatten=flatten)


def make_gym_vec(
    opponent: Any = None,
    *,
    num_envs: int = 8,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    learner: str | None = None,
    flatten: bool = False,
    backend: Literal["auto", "native", "supersuit"] = "auto",
    num_workers: int = 0,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
) -> CurryVectorEnv:
    """Make a Gymnasium vector environment of `num_envs` games played side by side; arguments as for `make_gym_env`.

    Raises:
        ValueError: an argument does not fit.
        FileNotFoundError: there is no such checkpoint.
    """
    options = {"backend": backend, "num_workers": num_workers, "deterministic": deterministic, "device": device, "trust": trust}
    return CurryVectorEnv(_one_learner(opponent, env, env_kwargs, learner, num_envs, options), flatten=flatten)


def snake_vs_bots(
    opponent: Any = "greedy", *, render_mode: str | None = None, flatten: bool = True, **env_kwargs: Any
) -> CurryEnv:
    """`gymnasium.make("snake_pz/SnakeVsBots-v0")`: the snake against bots, or whomever `make_sb3_env` takes as `opponent`.

    Args:
        opponent: who plays the other seats.
        render_mode: of the snake: "human", "rgb_array", "ansi" or None.
        flatten: whether observations are vectors, which most single-agent tools expect, and not planes.
        **env_kwargs: arguments for the snake's constructor, such as `width=7`.
    """
    return make_gym_env(opponent, env_kwargs={"render_mode": render_mode, **env_kwargs}, flatten=flatten)


def snake_vs_bots_vec(
    num_envs: int = 1,
    opponent: Any = "greedy",
    *,
    render_mode: str | None = None,
    flatten: bool = True,
    **env_kwargs: Any,
) -> CurryVectorEnv:
    """`gymnasium.make_vec("snake_pz/SnakeVsBots-v0", num_envs=64)`; arguments as for `snake_vs_bots`."""
    env_kwargs = {"render_mode": render_mode, **env_kwargs}
    return make_gym_vec(opponent, num_envs=num_envs, env_kwargs=env_kwargs, flatten=flatten)


class CurryEnv(gymnasium.Env[Any, Any]):
    """One game seen from its learner's seat.

    `reset(seed=s)` fixes the game, who sits where, the line-up and its opponents. `step` returns the learner's real last
    observation when it is out, and the game is then over for the caller. Infos are the environment's; in the last step they
    also have "agent", "opponents", "placements" and "is_success", as `CurryVecEnv` describes them.

    Args:
        venv: one game with one learner. It is closed with this environment.
        flatten: whether observations, which must then be uint8 planes, are float32 vectors between 0 and 1.

    Raises:
        ValueError: by the constructor, when `venv` has more than one environment or its observations are no uint8 planes; by
            `step`, when the action is outside its space.
        RuntimeError: by `step`, when no game is running.
    """

    def __init__(self, venv: CurryVecEnv, flatten: bool = False) -> None:
        if venv.num_envs != 1:
            raise ValueError(f"one game with one learner makes an Env, got {venv.num_envs} environments")
        self.venv = venv
        self.metadata = _metadata(venv)
        self.observation_space, self._present = _presentation(venv.observation_space, flatten)
        self.action_space = venv.action_space
        self._running = False
        self._next: Observations | None = None  # first observation of the game that began when the previous one ended

    @property
    @override
    def render_mode(self) -> str | None:  # type: ignore[override]
        """That of the environment. Stable-Baselines3 asks for it when it puts wrappers around this one."""
        mode: str | None = self.venv.get_attr("render_mode")[0]
        return mode

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new game.

        Args:
            seed: fixes everything random from here on; None goes on with the streams as they are.
            options: handed to the environment's `reset`.

        Returns:
            The learner's first observation and the environment's infos, with "game_seed".
        """
        super().reset(seed=seed)
        if seed is not None:
            self.venv.seed(seed)
        first = self._next
        if first is None or seed is not None or options:
            self.venv.set_options(options)
            first = self.venv.reset()
        self._next, self._running = None, True
        return self._of_one(first), dict(self.venv.reset_infos[0])

    @override
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one turn: observation, reward, terminated, truncated, infos."""
        if not self._running:
            raise RuntimeError("no game is running: call reset() before step()")
        observations, rewards, dones, infos = self.venv.step(np.asarray(action)[None])
        terminated, truncated = _flags(self.venv)
        if dones[0]:
            self._running, self._next = False, observations
            observation = self._present(infos[0]["terminal_observation"])
        else:
            observation = self._of_one(observations)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), _without_sb3(infos[0])

    @override
    def render(self) -> Any:
        """What the environment draws in its `render_mode`; None without one."""
        return None if self.render_mode is None else self.venv.env_method("render")[0]

    def action_masks(self) -> NDArray[np.bool_]:
        """(A,) True = allowed, of the next action, as sb3-contrib's MaskablePPO asks for them.

        Raises:
            AttributeError: this game gives no masks.
        """
        masks: NDArray[np.bool_] = self.venv.action_masks()[0]
        return masks

    def set_opponent(self, spec: Any, when: Literal["restart", "now"] = "restart") -> None:
        """Put other opponents on the enemy seats, see `CurryVecEnv.set_opponent`."""
        self.venv.set_opponent(spec, when)

    @override
    def close(self) -> None:
        """Close the game. Calling it again does nothing."""
        self.venv.close()

    def _of_one(self, observations: Observations) -> Any:
        return self._present(map_arrays(lambda array: array[0], observations))


class CurryVectorEnv(VectorEnv[Any, Any, Any]):
    """Games played side by side, each seen from its learner's seat.

    A game restarts in the step in which it ends (`AutoresetMode.SAME_STEP`): `step` then returns the first observation of the
    new game and its infos, and `infos["final_obs"]` and `infos["final_info"]` have the last ones of the old.

    Args:
        venv: the games, with one learner each. They are closed with this environment.
        flatten: whether observations, which must then be uint8 planes, are float32 vectors between 0 and 1.

    Raises:
        ValueError: by the constructor, when games have several learners or the observations are no uint8 planes; by `step`,
            when actions are outside their space; by `reset`, when only some games are to be reset.
        RuntimeError: by `step` before `reset`.
    """

    def __init__(self, venv: CurryVecEnv, flatten: bool = False) -> None:
        if venv.padded:
            raise ValueError(
                f"games of a VectorEnv must have one learner, got {venv.game_batch.num_learners}: games restart with their "
                "last learner, and Gymnasium has no word for those that wait"
            )
        self.venv = venv
        self.num_envs = venv.num_envs
        self.render_mode = venv.render_mode
        self.metadata = {**_metadata(venv), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self._present = _presentation(venv.observation_space, flatten)
        self.single_action_space = venv.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start all games anew.

        Args:
            seed: fixes everything random in all games from here on; None goes on with the streams as they are.
            options: handed to the environments' `reset`.

        Returns:
            The learners' first observations (num_envs, *obs), and infos, with "game_seed".
        """
        if options and "reset_mask" in options:
            raise ValueError("options cannot have 'reset_mask': games restart by themselves, a reset is one of all games")
        super().reset(seed=seed)
        if seed is not None:
            self.venv.seed(seed)
        self.venv.set_options(options)
        observations = self.venv.reset()
        infos: dict[str, Any] = {}
        for env, info in enumerate(self.venv.reset_infos):
            infos = self._add_info(infos, info, env)
        return self._present(observations), infos

    @override
    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one turn of all games: observations, rewards, terminations, truncations (num_envs,) each, infos."""
        observations, rewards, dones, all_infos = self.venv.step(np.asarray(actions))
        terminations, truncations = _flags(self.venv)
        infos: dict[str, Any] = {}
        for env, info in enumerate(all_infos):
            own = _without_sb3(info)
            if dones[env]:
                last = self._present(info["terminal_observation"])
                infos = self._add_info(infos, {"final_obs": last, "final_info": own}, env)
                own = self.venv.reset_infos[env]
            if own:
                infos = self._add_info(infos, own, env)
        return self._present(observations), rewards.astype(np.float64), terminations, truncations, infos

    @override
    def render(self) -> tuple[Any, ...] | None:
        """What each environment draws in its `render_mode`; None without one."""
        return None if self.render_mode is None else tuple(self.venv.env_method("render"))

    def action_masks(self) -> NDArray[np.bool_]:
        """(num_envs, A) True = allowed, of the next actions.

        Raises:
            AttributeError: these games give no masks.
        """
        return self.venv.action_masks()

    def set_opponent(self, spec: Any, when: Literal["restart", "now"] = "restart") -> None:
        """Put other opponents on the enemy seats, see `CurryVecEnv.set_opponent`."""
        self.venv.set_opponent(spec, when)

    @override
    def close_extras(self, **kwargs: Any) -> None:
        self.venv.close()


def _one_learner(
    opponent: Any, env: Any, env_kwargs: dict[str, Any] | None, learner: str | None, num_games: int, options: dict[str, Any]
) -> CurryVecEnv:
    learners: int | list[str] = 1 if learner is None else [learner]
    return make_sb3_env(opponent, env=env, env_kwargs=env_kwargs, num_games=num_games, learners=learners, **options)


def _metadata(venv: CurryVecEnv) -> dict[str, Any]:
    said = venv.get_attr("metadata", [0])[0]
    return {key: said[key] for key in ("render_modes", "render_fps") if key in said}


def _presentation(space: gymnasium.Space[Any], flatten: bool) -> tuple[gymnasium.Space[Any], Callable[[Observations], Any]]:
    """The space that the caller sees, and a function that converts observations, single or batched, to it."""
    if not flatten:
        return space, lambda observations: observations
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        raise ValueError(
            f"flatten=True is for uint8 planes, got {space}: leave it out and wrap the environment, as in "
            "gymnasium.wrappers.FlattenObservation"
        )
    ndim = len(space.shape)

    def flat(observations: Any) -> NDArray[np.float32]:
        batch = observations.shape[: observations.ndim - ndim]
        scaled: NDArray[np.float32] = observations.reshape(*batch, -1).astype(np.float32) / np.float32(255)
        return scaled

    return spaces.Box(0.0, 1.0, (int(np.prod(space.shape)),), np.float32), flat


def _flags(venv: CurryVecEnv) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(num_envs,) terminated and truncated in the step just made; an agent that is both is terminated."""
    time_step = venv.time_step
    assert time_step is not None
    terminated = time_step.terminated[:, 0].copy()
    return terminated, time_step.truncated[:, 0] & ~terminated


def _without_sb3(info: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in info.items() if key not in _OF_SB3} if len(info) > 1 else {}
