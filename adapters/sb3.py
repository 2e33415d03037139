"""make_sb3_env: the front door. It only wires the other parts together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from adapters.curry import CurryVecEnv
from adapters.lineup import Lineup
from adapters.matches import Matches
from adapters.opponents import Opponent, RandomOpponent
from adapters.specs import Mixture, resolve_seats

if TYPE_CHECKING:
    import torch

    from adapters.seats import AnyParallelEnv


def make_sb3_env(
    opponent: Any,
    *,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    num_games: int = 8,
    learners: int | Literal["all"] | Sequence[str] = 1,
    backend: Literal["auto", "native", "supersuit"] = "auto",
    num_workers: int = 0,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    seed: int | None = None,
) -> CurryVecEnv:
    """Make a Stable-Baselines3 VecEnv in which the learner plays one seat of each game and `opponent` the others.

        env = make_sb3_env(opponent="checkpoints/snake_1000000.zip")
        PPO("CnnPolicy", env).learn(1_000_000)
        env.set_opponent("checkpoints/snake_2000000.zip")

    Args:
        opponent: who plays the other seats. The path of a checkpoint that SB3 saved (a pickle: load only what you trust); a
            live model or policy, which is copied and so does not learn on; the name of a bot ("random", and for the snake
            also "greedy" and "survivor"); a function `f(observations) -> actions` on batches; an `Opponent`; `frozen(...)`, a
            checkpoint or model with settings of its own; `mixture({...})`, drawn anew for every game; a list of these in the
            order of the enemy seats, or a dict by agent name if `learners` are named.
        env: the game; None is the snake of this package. A function or class that makes a PettingZoo parallel environment,
            such an environment (copied for every game), or its id in PettingZoo's registry.
        env_kwargs: arguments for the environment's constructor.
        num_games: how many games run side by side; the VecEnv's `num_envs`.
        learners: 1 shuffles the agents over the seats in every game, so that the policy learns to play any of them. A list
            with one agent's name: that agent always learns.
        backend: "native" steps all snake games at once, "supersuit" takes any environment; "auto" is "native" if and only
            if `env` is None.
        num_workers: in how many worker processes "supersuit" steps the games; 0 is in this one. Workers pay where an
            environment is slow; `env` and what it refers to must be picklable. `WorkerGames` says more.
        deterministic: opponents take their likeliest action instead of sampling, if they are not told otherwise.
        device: where checkpoints and models predict; "auto" is the GPU if there is one.
        seed: fixes games, seating, opponents and their actions, as `seed()` of the VecEnv does. PPO(seed=...) does it too.

    Returns:
        A `CurryVecEnv`, whose contract is there. It closes its environments when closed.

    Raises:
        ValueError: an argument does not fit; the text says what was expected, what came and how to mend it.
        FileNotFoundError: there is no such checkpoint.
        NotImplementedError: more than one learner.
    """
    if num_games < 1:
        raise ValueError(f"num_games must be >= 1, got {num_games}")
    _check_learners(learners)
    native = _is_native(backend, env)
    _check_workers(num_workers, native)
    matches = _make_matches(native, env, env_kwargs, num_games, learners, num_workers)
    try:

        def resolve(spec: Any) -> list[Opponent | Mixture]:
            return resolve_seats(
                spec,
                enemy_agents=None if isinstance(learners, int) else matches.agents(0)[matches.num_learners :],
                num_enemies=matches.seats - matches.num_learners,
                observation_space=matches.observation_space,
                other_spaces=matches.other_spaces,
                action_space=matches.action_space,
                make_bot=_bot_maker(matches, is_snake=env is None),
                device=device,
                deterministic=deterministic,
            )

        venv = CurryVecEnv(matches, Lineup(resolve(opponent), matches), resolve)
        if seed is not None:
            venv.seed(seed)
    except BaseException:
        matches.close()
        raise
    return venv


def _check_learners(learners: int | str | Sequence[str]) -> None:
    if isinstance(learners, str) and learners != "all":
        raise ValueError(f"learners must be a number, 'all' or a list of agent names, got {learners!r}: write [{learners!r}]")
    if isinstance(learners, int) and learners < 1:
        raise ValueError(f"learners must be >= 1, got {learners}")
    if not isinstance(learners, (int, str)) and len(learners) == 0:
        raise ValueError("learners must name the agent that learns, got an empty list")
    if learners == "all" or (learners if isinstance(learners, int) else len(learners)) > 1:
        raise NotImplementedError(f"only one agent per game can learn so far, got learners={learners!r}: use 1")


def _is_native(backend: str, env: object) -> bool:
    if backend not in ("auto", "native", "supersuit"):
        raise ValueError(f"backend must be 'auto', 'native' or 'supersuit', got {backend!r}")
    if backend == "native" and env is not None:
        raise ValueError(f"backend 'native' plays only the snake of this package, got env={env!r}: use 'auto' or 'supersuit'")
    return backend == "native" or (backend == "auto" and env is None)


def _check_workers(num_workers: int, native: bool) -> None:
    if num_workers < 0:
        raise ValueError(f"num_workers must be >= 0, got {num_workers}")
    if num_workers > 0 and native:
        raise ValueError(f"backend 'native' steps all games in one call, without workers, got num_workers={num_workers}: use 0")


def _make_matches(
    native: bool,
    env: Any,
    env_kwargs: dict[str, Any] | None,
    num_games: int,
    learners: int | Sequence[str],
    num_workers: int,
) -> Matches:
    if native:
        from adapters.native_matches import NativeMatches

        return NativeMatches(num_games, env_kwargs=env_kwargs, learners=learners)

    from adapters.supersuit_matches import SuperSuitMatches, env_factory

    if env is None:
        from snake_pz import snake_v0

        env = snake_v0.parallel_env
    return SuperSuitMatches([env_factory(env, env_kwargs)] * num_games, learners=learners, num_workers=num_workers)


def _bot_maker(matches: Matches, *, is_snake: bool) -> Callable[[str], Opponent]:
    def make_bot(name: str) -> Opponent:
        if is_snake:
            from snake_pz import bots

            bot = bots.make_bot(name, matches.get_attr("rules", [0])[0])
            if name == "random":
                try:
                    matches.view(bot.observation_space, bot.action_space)
                except ValueError:  # it looks at nothing, so it plays whatever these games show
                    return RandomOpponent(matches.observation_space, matches.action_space, uses_masks=False)
            return bot
        if name != "random":
            raise ValueError(f"the only bot that plays any environment is 'random', got {name!r}")
        return RandomOpponent(matches.observation_space, matches.action_space)

    return make_bot
