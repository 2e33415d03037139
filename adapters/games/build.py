"""make_games: the GameBatch for the environment and the backend that a user asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from adapters.games.game_batch import GameBatch
from snake_pz.ranges import whole_number

if TYPE_CHECKING:
    from adapters.games.checked_env import AnyParallelEnv
    from snake_pz.rules import Rules

Backend = Literal["auto", "native", "supersuit"]
Learners = int | Literal["all"] | Sequence[str]


def make_games(
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    *,
    env_kwargs: dict[str, Any] | None = None,
    num_games: int,
    learners: Learners = 1,
    backend: Backend = "auto",
    num_workers: int = 0,
    different_spaces: bool = False,
    restart: bool = True,
) -> GameBatch:
    """Make games that are stepped together.

    Args:
        env: None, `snake_v0.parallel_env` or the snake's id in PettingZoo's registry for the snake of this package; else a
            function or class that makes a PettingZoo parallel environment, an environment (copied for every game), or the id
            of one.
        env_kwargs: arguments for the environment's constructor.
        num_games: number of games played side by side.
        learners: the number of learning agents per game, "all", or their names. With a number, agents change seats in every
            game.
        backend: "native" steps all snake games in one engine, "supersuit" takes any environment; "auto" is "native" for the
            snake without workers.
        num_workers: number of processes in which "supersuit" steps the games; 0 is this process.
        different_spaces: whether agents may have different spaces, see `SuperSuitGameBatch`.
        restart: whether games restart when they end. With False, games of the native backend stay as they ended; other
            backends restart in any case.

    Raises:
        ValueError: an argument does not fit; the text says what was expected, what came and how to mend it.
    """
    num_games, num_workers = whole_number("num_games", num_games, 1), whole_number("num_workers", num_workers, 0)
    is_snake = means_snake(env)
    native = _is_native(backend, env, is_snake, num_workers)
    _check_workers(num_workers, native)
    if native:
        from adapters.games.native import NativeGameBatch

        return NativeGameBatch(num_games, env_kwargs=env_kwargs, learners=learners, restart=restart)

    from adapters.games.supersuit import SuperSuitGameBatch, env_factory

    rules: Rules | None = None
    if env is None or is_snake:
        from snake_pz import SnakeParallelEnv

        env = SnakeParallelEnv
        rules = SnakeParallelEnv(**(env_kwargs or {})).rules
    factory = env_factory(env, env_kwargs)
    return SuperSuitGameBatch(
        [factory] * num_games,
        learners=learners,
        num_workers=num_workers,
        different_spaces=different_spaces,
        snake_rules=rules,
    )


def means_snake(env: object) -> bool:
    """Whether `env` is the snake of this package: None, its factory, or one of its ids in PettingZoo's registry."""
    if env is None or (isinstance(env, str) and env in ("snake", "snake_v0", "snake-v0")):
        return True
    from snake_pz import snake_v0

    return env is snake_v0.parallel_env


def check_learners(learners: Learners) -> None:
    """Reject values that leave a VecEnv without a learner."""
    if isinstance(learners, str) and learners != "all":
        raise ValueError(f"learners must be a number, 'all' or a list of agent names, got {learners!r}: write [{learners!r}]")
    if isinstance(learners, int) and learners < 1:
        raise ValueError(f"learners must be >= 1, got {learners}")
    if not isinstance(learners, (int, str)) and len(learners) == 0:
        raise ValueError("learners must name the agents that learn, got an empty list")


def _is_native(backend: str, env: object, is_snake: bool, num_workers: int) -> bool:
    if backend not in ("auto", "native", "supersuit"):
        raise ValueError(f"backend must be 'auto', 'native' or 'supersuit', got {backend!r}")
    if backend == "native" and not is_snake:
        raise ValueError(f"backend 'native' plays only the snake of this package, got env={env!r}: use 'auto' or 'supersuit'")
    return backend == "native" or (backend == "auto" and is_snake and not num_workers)


def _check_workers(num_workers: int, native: bool) -> None:
    if num_workers > 0 and native:
        raise ValueError(
            f"backend 'native' steps all games in this process, got num_workers={num_workers}: use 0, or backend='supersuit'"
        )
