"""SuperSuitGameBatch: games of any PettingZoo parallel environment, through SuperSuit's vector classes.

ConcatVecEnv (all games, or those of one worker) -> MarkovVectorEnv (one game, one row per seat) -> FixedSeats -> environment.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
import pettingzoo
from gymnasium.vector.utils import concatenate, create_empty_array
from numpy.typing import NDArray
from supersuit.vector.concat_vec_env import ConcatVecEnv
from supersuit.vector.markov_vector_wrapper import MarkovVectorEnv
from typing_extensions import override

from adapters.games.checked_env import AnyParallelEnv, check_parallel, mask_length
from adapters.games.common_spaces import CommonSpaces, OwnSpaces, OwnView, have_different_spaces, own_spaces
from adapters.games.fixed_seats import FixedSeats, SeatStep
from adapters.games.game_batch import GameBatch, GameSeat, TimeStep
from adapters.games.space_words import hidden_difference
from adapters.games.workers import WorkerGames
from snake_pz.players import Observations, View, map_arrays
from snake_pz.rules import Rules

EnvFactory = Callable[[], AnyParallelEnv]


class SuperSuitGameBatch(GameBatch, View):
    """`GameBatch` with one environment per game, which is also the one `View` of these games unless agents' spaces differ.

    Args:
        factories: one per game, from `env_factory`. They are called here or in the workers.
        learners: as in `FixedSeats`.
        num_workers: number of worker processes; 0 plays in this process.
        different_spaces: whether agents may have different spaces. These games and their `TimeStep`s are then in
            `CommonSpaces`, and `view` takes any agent's own spaces. Needs named learners.
        snake_rules: the rules, if the factories make the snake.

    Raises:
        ValueError: a factory returns no parallel environment, or that of another game; and as from `FixedSeats` and
            `WorkerGames`.
    """

    def __init__(
        self,
        factories: Sequence[EnvFactory],
        *,
        learners: int | Sequence[str] = 1,
        num_workers: int = 0,
        different_spaces: bool = False,
        snake_rules: Rules | None = None,
    ) -> None:
        self.snake_rules = snake_rules
        make_games = partial(LocalGames, learners=learners, different_spaces=different_spaces)
        self._games: LocalGames | WorkerGames
        self._games = WorkerGames(make_games, factories, num_workers) if num_workers else make_games(factories)
        self.num_games = len(factories)
        self.seats = len(self._games.agents)
        self.num_learners = self._games.num_learners
        self.observation_space = self._games.observation_space
        self.other_spaces: Sequence[gymnasium.Space[Any]] = ()
        self.action_space = self._games.action_space
        self.render_mode = self._games.render_mode
        self._agents = [self._games.agents] * self.num_games
        self._has_masks = self._games.has_mask_observations
        self._time_step: TimeStep | None = None

    @override
    def reset(self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]) -> TimeStep:
        observations, infos = self._games.reset(seeds, options)
        self._time_step = self._assemble(observations, np.zeros(len(infos), dtype=np.float32), infos)
        return self._time_step

    @override
    def step(self, actions: NDArray[Any]) -> TimeStep:
        observations, rewards, infos = self._games.step(actions.reshape(self.num_games * self.seats, *actions.shape[2:]))
        self._time_step = self._assemble(observations, rewards, infos)
        return self._time_step

    @override
    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """These games themselves, or an `OwnView` if agents have different spaces.

        Raises:
            ValueError: no agent has these spaces.
        """
        if own_spaces(self.action_space) is not None:
            return OwnView(self, self, OwnSpaces(observation_space, action_space))
        if observation_space != self.observation_space or action_space != self.action_space:
            raise ValueError(
                f"a player trained to see {observation_space} and to act in {action_space} cannot play games that show "
                f"{self.observation_space} and take {self.action_space}"
                f"{hidden_difference(observation_space, self.observation_space)}"
                f"{hidden_difference(action_space, self.action_space)}: use one trained on an environment with these spaces"
            )
        return self

    @override
    def observations(self) -> Observations:
        return self._present().observations

    @override
    def action_masks(self) -> NDArray[np.int8] | None:
        return self._present().action_masks

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        return actions

    @override
    def agents(self, game: int) -> tuple[str, ...]:
        return self._agents[game]

    @override
    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        return self._games.get_attr(name, games)

    @override
    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """Set an attribute of the outermost wrapper that has it, else of the innermost environment."""
        self._games.set_attr(name, value, games)

    @override
    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        return self._games.env_method(name, games, *args, **kwargs)

    @override
    def render(self, games: Sequence[int]) -> list[Any]:
        return self._games.render(games)

    @override
    def close(self) -> None:
        self._games.close()

    def _present(self) -> TimeStep:
        if self._time_step is None:
            raise RuntimeError("no game has begun: call reset() first")
        return self._time_step

    def _assemble(self, observations: Observations, rewards: NDArray[np.float32], infos: list[dict[str, Any]]) -> TimeStep:
        """Convert SuperSuit's batch, ordered by game and seat, to a TimeStep."""
        shape = (self.num_games, self.seats)
        terminated, truncated, active = (np.zeros(shape, dtype=np.bool_) for _ in range(3))
        restarted = np.zeros(self.num_games, dtype=np.bool_)
        finals: list[Observations] = []
        masks: dict[GameSeat, NDArray[np.int8]] = {}
        step_infos: dict[GameSeat, dict[str, Any]] = {}
        reset_infos: dict[GameSeat, dict[str, Any]] = {}
        for index, info in enumerate(infos):
            key = game, _seat = divmod(index, self.seats)
            step: SeatStep | None = info.get("step")
            reset: dict[str, Any] | None = info.get("reset")
            latest = reset
            if step is not None:
                terminated[key], truncated[key] = step.terminated, step.truncated
                if step.final_observation is not None:
                    finals.append(step.final_observation)
                else:
                    active[key] = True
                    latest = reset if reset is not None else step.info
                step_infos[key] = step.info
            if reset is not None:
                restarted[game] = active[key] = True
                reset_infos[key] = reset
            if latest is not None and latest.get("action_mask") is not None:
                masks[key] = latest["action_mask"]
        for game in np.flatnonzero(restarted).tolist():
            self._agents[game] = tuple(reset_infos[game, seat]["agent"] for seat in range(self.seats))
        return TimeStep(
            observations=map_arrays(lambda array: array.reshape(*shape, *array.shape[1:]), observations),
            rewards=rewards.reshape(shape),
            terminated=terminated,
            truncated=truncated,
            active=active,
            restarted=restarted,
            final_observations=self._stack(finals),
            action_masks=self._mask_array(masks),
            infos=step_infos,
            reset_infos=reset_infos,
        )

    def _stack(self, observations: list[Observations]) -> Observations:
        """Stack single observations to (K, *obs)."""
        stacked: Observations = create_empty_array(self.observation_space, n=len(observations))
        return concatenate(self.observation_space, observations, stacked) if observations else stacked

    def _mask_array(self, masks: dict[GameSeat, NDArray[np.int8]]) -> NDArray[np.int8] | None:
        """(E, N, A) masks, all ones for seats without a mask; None until a game gives the first mask."""
        self._has_masks = self._has_masks or bool(masks)
        if not self._has_masks:
            return None
        array = np.ones((self.num_games, self.seats, mask_length(self.action_space)), dtype=np.int8)
        for key, mask in masks.items():
            array[key] = mask
        return array


class LocalGames:
    """Games behind one `ConcatVecEnv`, in the process of their environments.

    A batch B is ordered by game and seat. `games` in arguments are indices into `factories`.

    Args:
        factories: one per game.
        first_game: index of the first game among the games of all workers, for messages.
        learners: as in `FixedSeats`.
        different_spaces: as in `SuperSuitGameBatch`.
    """

    def __init__(
        self,
        factories: Sequence[EnvFactory],
        *,
        first_game: int = 0,
        learners: int | Sequence[str] = 1,
        different_spaces: bool = False,
    ) -> None:
        self._seats: list[FixedSeats] = []
        with ExitStack() as on_error:
            on_error.callback(self.close)
            for game, factory in enumerate(factories, first_game):
                env = factory()
                check_parallel(env)
                if any(env.unwrapped is seats.env.unwrapped for seats in self._seats):
                    raise ValueError(
                        f"every game needs its own environment, but the factory returned the same object for game {game} and "
                        "an earlier one: make a new environment in each call"
                    )
                if different_spaces and have_different_spaces(env):
                    env = CommonSpaces(env)
                self._seats.append(FixedSeats(env, game, learners))
            on_error.pop_all()
        seats = self._seats[0]
        self.agents = tuple(seats.seating)
        self.num_learners = seats.num_learners
        self.observation_space = seats.observation_space("seat_0")
        self.action_space = seats.action_space("seat_0")
        self.render_mode = seats.render_mode
        self.has_mask_observations = seats.has_mask_observations
        self._venv = ConcatVecEnv([lambda seats=seats: MarkovVectorEnv(seats) for seats in self._seats])

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[Observations, list[dict[str, Any]]]:
        """Restart all games; returns (B, *obs) and B infos."""
        # One by one, because `ConcatVecEnv.reset` would seed with seed + i.
        results = [
            venv.reset(seed=seed, options=option)
            for venv, seed, option in zip(self._venv.vec_envs, seeds, options, strict=True)
        ]
        observations, infos = zip(*results, strict=True)
        return self._venv.concat_obs(observations), [info for of_game in infos for info in of_game]

    def step(self, actions: NDArray[Any]) -> tuple[Observations, NDArray[np.float32], list[dict[str, Any]]]:
        """Play one step with (B, *action); returns (B, *obs), (B,) rewards and B infos."""
        observations, rewards, _, _, infos = self._venv.step(actions)
        return observations, rewards, infos

    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        """As in `GameBatch`."""
        return [getattr(_layer_with(self._seats[game].env, name), name) for game in games]

    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """As in `SuperSuitGameBatch`."""
        for game in games:
            setattr(_layer_with(self._seats[game].env, name), name, value)

    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """As in `GameBatch`."""
        return [method(*args, **kwargs) for method in self.get_attr(name, games)]

    def render(self, games: Sequence[int]) -> list[Any]:
        """As in `GameBatch`."""
        return [self._seats[game].render() for game in games]

    def close(self) -> None:
        """Close every environment, even if one of them raises."""
        with ExitStack() as stack:
            for seats in self._seats:
                stack.callback(seats.close)


def env_factory(env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str, env_kwargs: dict[str, Any] | None) -> EnvFactory:
    """A factory without arguments, for `SuperSuitGameBatch`.

    Args:
        env: a function or class that makes a parallel environment; an id in PettingZoo's registry; or a parallel environment,
            which is copied for every game by cloudpickle and never stepped itself.
        env_kwargs: arguments for the function, class or registered environment.

    Raises:
        ValueError: `env` is none of these or cannot be copied; from the factory: an unknown argument.
    """
    if isinstance(env, str):
        registered = pettingzoo.spec("parallel", env)  # looked up here: a worker process has not registered what this one has
        return _with_kwargs(lambda **kwargs: pettingzoo.make("parallel", registered, **kwargs), env_kwargs)
    if inspect.ismodule(env):
        raise ValueError(f"expected an environment or a function that makes one, got the module {env.__name__}: "
                         f"pass {env.__name__.rpartition('.')[2]}.parallel_env")  # fmt: skip
    if callable(env) and not isinstance(env, pettingzoo.ParallelEnv):
        return _with_kwargs(env, env_kwargs)
    check_parallel(env)
    if env_kwargs:
        raise ValueError(
            f"env_kwargs {sorted(env_kwargs)} cannot change an environment that exists already: pass the function that makes it"
        )
    try:
        blob = cloudpickle.dumps(env)
    except Exception as error:
        raise ValueError(
            f"each game needs a copy of {env}, but it cannot be pickled ({type(error).__name__}: {error}): pass the function "
            "that makes it instead"
        ) from error
    return lambda: pickle.loads(blob)


def _with_kwargs(make: Callable[..., AnyParallelEnv], env_kwargs: dict[str, Any] | None) -> EnvFactory:
    kwargs = dict(env_kwargs or {})
    if not kwargs:
        return make

    def factory() -> AnyParallelEnv:
        try:
            return make(**kwargs)
        except TypeError as error:
            known = ", ".join(_keywords(make) or _refused_by(error)) or "what the environment's constructor takes"
            raise ValueError(f"env_kwargs {sorted(kwargs)} do not fit ({error}): use some of {known}") from error

    return factory


def _keywords(make: Callable[..., Any]) -> list[str]:
    """The keywords of `make`; [] if it takes any."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return []
    return [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _refused_by(error: TypeError) -> list[str]:
    """The keywords of the function that refused one, where functions in between take any.

    Its name is in Python's message, "Game.__init__() got an unexpected keyword argument"; the function itself is a variable of
    the last frame.
    """
    name, called, _ = str(error).partition("() ")
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if not called or traceback is None:
        return []
    frame = traceback.tb_frame
    for known in [*frame.f_locals.values(), *frame.f_globals.values()]:
        for callee in (known, getattr(known, "__init__", None)):
            if callable(callee) and getattr(callee, "__qualname__", "") == name:
                return [keyword for keyword in _keywords(callee) if keyword != "self"]
    return []


def _layer_with(env: Any, name: str) -> Any:
    """The outermost layer of an environment that has the attribute itself; the innermost if none has."""
    layer = env
    while True:
        if name in getattr(layer, "__dict__", ()) or hasattr(type(layer), name):
            return layer
        inner = getattr(layer, "__dict__", {}).get("env", getattr(layer, "__dict__", {}).get("aec_env"))
        if inner is None:
            return layer
        layer = inner
