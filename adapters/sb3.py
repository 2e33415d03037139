"""make_sb3_env: the front door for Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from adapters.opponents.unpickling import Trust
from adapters.vec_env.build import make_curried_games
from adapters.vec_env.curry import CurryVecEnv

if TYPE_CHECKING:
    import torch

    from adapters.games.checked_env import AnyParallelEnv


def make_sb3_env(
    opponent: Any = None,
    *,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    num_games: int = 8,
    learners: int | Literal["all"] | Sequence[str] = 1,
    backend: Literal["auto", "native", "supersuit"] = "auto",
    num_workers: int = 0,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
    seed: int | None = None,
) -> CurryVecEnv:
    """Make a Stable-Baselines3 VecEnv in which the learner plays one seat of each game and `opponent` the others.

        env = make_sb3_env(opponent="checkpoints/snake_1000000.zip")
        PPO("CnnPolicy", env, policy_kwargs=policy_kwargs()).learn(1_000_000)  # from adapters.networks, for small boards
        env.set_opponent("checkpoints/snake_2000000.zip")

    Several agents of a game can learn one policy together. SB3 then needs a buffer that leaves out those that wait for the
    others to end the game (see `adapters.buffers`; there is one for each of SB3's own):

        env = make_sb3_env(learners="all")
        PPO(..., env, rollout_buffer_class=ActiveRolloutBuffer, rollout_buffer_kwargs={"active": env.active})

    Args:
        opponent: who plays the other seats. The path of a checkpoint that SB3 saved; a live model or policy, which is copied
            and so does not learn on; the name of a bot ("random", and for the snake also "greedy", "survivor",
            "territorial" and "searcher") or "champion"; a function `f(observations) -> actions` on batches; an `Opponent` or a
            `Source` of them; `frozen(...)`, a checkpoint or model with settings of its own; an `OpponentPool` or its folder;
            `mixture({...})`, drawn anew for every game; a list of these in the order of the enemy seats, or a dict by agent
            name if `learners` are named. None if all agents learn.
        env: the game; None is the snake of this package, as is `snake_v0.parallel_env`. A function or class that makes a
            PettingZoo parallel environment, such an environment (copied for every game), or its id in PettingZoo's registry.
        env_kwargs: arguments for the environment's constructor; for the snake its encoding, actions, rewards and rules, such as
            `{"observation": "egocentric", "width": 19, "height": 19, "num_snakes": 8}`, and `max_cycles`, the turns after which
            a game is truncated (500). An encoding may be an `Encoding` and `rewards` a function, see docs/own-encoding.md.
        num_games: how many games run side by side. The VecEnv's `num_envs` is this times the number of learners.
        learners: how many agents of a game learn, or "all". They are shuffled over the seats in every game, so that the policy
            learns to play any of them. A list of agents' names: these always learn.
        backend: "native" steps all snake games at once, "supersuit" takes any environment; "auto" is "native" for the
            snake without workers.
        num_workers: in how many worker processes "supersuit" steps the games; 0 is in this one. Workers pay where an
            environment is slow; `env` and what it refers to must be picklable. `WorkerGames` says more.
        deterministic: opponents take their likeliest action instead of sampling, if they are not told otherwise.
        device: where checkpoints and models predict; "auto" is the GPU if there is one.
        trust: what the opponents' files may ask for beside known classes: names, such as `["my_package.MyExtractor"]`, or True
            for anything, so that a file may run any code. See `frozen`, which gives it to one opponent.
        seed: fixes games, seating, opponents and their actions, as `seed()` of the VecEnv does. PPO(seed=...) does it too.

    Returns:
        A `CurryVecEnv`, whose contract is there. It closes its environments when closed.

    Raises:
        ValueError: an argument does not fit; the text says what was expected, what came and how to mend it.
        FileNotFoundError: there is no such checkpoint.
    """
    games = make_curried_games(
        opponent,
        env=env,
        env_kwargs=env_kwargs,
        num_games=num_games,
        learners=learners,
        backend=backend,
        num_workers=num_workers,
        deterministic=deterministic,
        device=device,
        trust=trust,
    )
    try:
        venv = CurryVecEnv(*games)
        if seed is not None:
            venv.seed(seed)
    except BaseException:
        games.game_batch.close()
        raise
    return venv
