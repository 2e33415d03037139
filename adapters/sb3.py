"""make_sb3_env: the front door. It only wires the other parts together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from adapters.games.common_spaces import OwnSpaces, own_spaces
from adapters.games.game_batch import GameBatch
from adapters.opponents.lineup import Lineup
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.simple import RandomOpponent
from adapters.opponents.specs import by_seat, resolve_seats
from adapters.vec_env.curry import CurryVecEnv

if TYPE_CHECKING:
    import torch

    from adapters.games.fixed_seats import AnyParallelEnv


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
        opponent: who plays the other seats. The path of a checkpoint that SB3 saved (a pickle: load only what you trust); a
            live model or policy, which is copied and so does not learn on; the name of a bot ("random", and for the snake
            also "greedy", "survivor" and "territorial") or "champion"; a function `f(observations) -> actions` on batches;
            an `Opponent`; `frozen(...)`, a checkpoint or model with settings of its own; an `OpponentPool` or its folder;
            `mixture({...})`, drawn anew for every game; a list of these in the order of the enemy seats, or a dict by agent
            name if `learners` are named. None if all agents learn.
        env: the game; None is the snake of this package, as is `snake_v0.parallel_env`. A function or class that makes a
            PettingZoo parallel environment, such an environment (copied for every game), or its id in PettingZoo's registry.
        env_kwargs: arguments for the environment's constructor; for the snake its encoding, actions, rewards and rules, such as
            `{"observation": "egocentric", "width": 19, "height": 19, "num_snakes": 8}`.
        num_games: how many games run side by side. The VecEnv's `num_envs` is this times the number of learners.
        learners: how many agents of a game learn, or "all". They are shuffled over the seats in every game, so that the policy
            learns to play any of them. A list of agents' names: these always learn.
        backend: "native" steps all snake games at once, "supersuit" takes any environment; "auto" is "native" for the
            snake without workers.
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
    """
    game_batch, lineup, resolve = make_games(
        opponent,
        env=env,
        env_kwargs=env_kwargs,
        num_games=num_games,
        learners=learners,
        backend=backend,
        num_workers=num_workers,
        deterministic=deterministic,
        device=device,
    )
    try:
        venv = CurryVecEnv(game_batch, lineup, resolve)
        if seed is not None:
            venv.seed(seed)
    except BaseException:
        game_batch.close()
        raise
    return venv


def make_games(
    opponent: Any,
    *,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None,
    env_kwargs: dict[str, Any] | None,
    num_games: int,
    learners: int | Literal["all"] | Sequence[str],
    backend: Literal["auto", "native", "supersuit"],
    num_workers: int,
    deterministic: bool,
    device: torch.device | str,
    different_spaces: bool = False,
) -> tuple[GameBatch, Lineup, Callable[[Any], list[Opponent | Source]]]:
    """What `make_sb3_env` makes a VecEnv of: the games, who plays their enemy seats, and what resolves others for these.

    With `different_spaces` the agents may have spaces of their own, see `SuperSuitGameBatch`; the rest is as there.
    """
    for name, number in (("num_games", num_games), ("num_workers", num_workers)):
        if not isinstance(number, int):
            raise ValueError(f"{name} must be a whole number, got {number!r}")
    if num_games < 1:
        raise ValueError(f"num_games must be >= 1, got {num_games}")
    _check_learners(learners)
    is_snake = env is None or _means_snake(env)
    if is_snake and (backend == "native" or not num_workers):
        env = None
    native = _is_native(backend, env)
    _check_workers(num_workers, native)
    game_batch = _make_matches(native, env, env_kwargs, num_games, learners, num_workers, different_spaces)

    def resolve(spec: Any) -> list[Opponent | Source]:
        agents = game_batch.agents(0)[game_batch.num_learners :]
        _check_opponent(spec, len(agents), game_batch.seats)
        resolved: dict[int, Opponent | Source] = {}
        entries = by_seat(spec, None if isinstance(learners, int) else agents, len(agents))
        for spaces, seats in _alike(game_batch, agents):
            made = resolve_seats(
                [entries[seat] for seat in seats],
                enemy_agents=None,
                num_enemies=len(seats),
                observation_space=spaces.observation,
                other_spaces=game_batch.other_spaces,
                action_space=spaces.action,
                make_bot=_bot_maker(game_batch, spaces, is_snake=is_snake),
                device=device,
                deterministic=deterministic,
            )
            if own_spaces(game_batch.action_space):
                _check_own_spaces(made, [agents[seat] for seat in seats], spaces)
            resolved.update(zip(seats, made, strict=True))
        return [resolved[seat] for seat in range(len(agents))]

    try:
        return game_batch, Lineup(resolve(opponent), game_batch), resolve
    except BaseException:
        game_batch.close()
        raise


def _check_learners(learners: int | str | Sequence[str]) -> None:
    if isinstance(learners, str) and learners != "all":
        raise ValueError(f"learners must be a number, 'all' or a list of agent names, got {learners!r}: write [{learners!r}]")
    if isinstance(learners, int) and learners < 1:
        raise ValueError(f"learners must be >= 1, got {learners}")
    if not isinstance(learners, (int, str)) and len(learners) == 0:
        raise ValueError("learners must name the agents that learn, got an empty list")


def _check_opponent(opponent: Any, enemies: int, seats: int) -> None:
    if opponent is None and enemies:
        raise ValueError(
            f"opponent must say who plays the {enemies} of {seats} seats on which nobody learns, got None: give one, such as "
            "'random', or learners='all'"
        )
    if opponent is not None and not enemies:
        raise ValueError(
            f"opponent must be None where all {seats} agents learn, got {opponent!r}: leave it out, or take fewer learners"
        )


def _is_native(backend: str, env: object) -> bool:
    if backend not in ("auto", "native", "supersuit"):
        raise ValueError(f"backend must be 'auto', 'native' or 'supersuit', got {backend!r}")
    if backend == "native" and env is not None:
        raise ValueError(f"backend 'native' plays only the snake of this package, got env={env!r}: use 'auto' or 'supersuit'")
    return backend == "native" or (backend == "auto" and env is None)


def _means_snake(env: object) -> bool:
    """Whether it makes the snake of this package: its class, or a name that PettingZoo's registry knows it by."""
    from snake_pz import snake_v0

    return env is snake_v0.parallel_env or (isinstance(env, str) and env in ("snake", "snake_v0", "snake-v0"))


def _check_workers(num_workers: int, native: bool) -> None:
    if num_workers < 0:
        raise ValueError(f"num_workers must be >= 0, got {num_workers}")
    if num_workers > 0 and native:
        raise ValueError(
            f"backend 'native' steps all games in one call, without workers, got num_workers={num_workers}: use 0, or "
            "backend='supersuit'"
        )


def _make_matches(
    native: bool,
    env: Any,
    env_kwargs: dict[str, Any] | None,
    num_games: int,
    learners: int | Literal["all"] | Sequence[str],
    num_workers: int,
    different_spaces: bool,
) -> GameBatch:
    if native:
        from adapters.games.native import NativeGameBatch

        return NativeGameBatch(num_games, env_kwargs=env_kwargs, learners=learners)

    from adapters.games.supersuit import SuperSuitGameBatch, env_factory

    if env is None:
        from snake_pz import snake_v0

        env = snake_v0.parallel_env
    return SuperSuitGameBatch(
        [env_factory(env, env_kwargs)] * num_games,
        learners=learners,
        num_workers=num_workers,
        different_spaces=different_spaces,
    )


def _alike(game_batch: GameBatch, agents: Sequence[str]) -> list[tuple[OwnSpaces, list[int]]]:
    """The spaces that these agents have, and the numbers of those that have them."""
    shared = OwnSpaces(game_batch.observation_space, game_batch.action_space)
    own = own_spaces(game_batch.action_space) or dict.fromkeys(agents, shared)
    groups: list[tuple[OwnSpaces, list[int]]] = []
    for number, agent in enumerate(agents):
        for spaces, numbers in groups:
            if spaces == own[agent]:
                numbers.append(number)
                break
        else:
            groups.append((own[agent], [number]))
    return groups


def _check_own_spaces(made: Sequence[Opponent | Source], agents: Sequence[str], spaces: OwnSpaces) -> None:
    for agent, entry in zip(agents, made, strict=True):
        for one in entry.ready() if isinstance(entry, Source) else [entry]:
            if (one.observation_space, one.action_space) != spaces:
                raise ValueError(
                    f"opponent {one.name!r} sees {one.observation_space} and acts in {one.action_space}, but agent {agent!r} "
                    f"sees {spaces.observation} and acts in {spaces.action}: seat somebody there who was trained for it"
                )


def _bot_maker(game_batch: GameBatch, spaces: OwnSpaces, *, is_snake: bool) -> Callable[[str], Opponent]:
    def make_bot(name: str) -> Opponent:
        if is_snake:
            from snake_pz import bots

            bot = bots.make_bot(name, game_batch.get_attr("rules", [0])[0])
            if name == "random":
                try:
                    game_batch.view(bot.observation_space, bot.action_space)
                except ValueError:  # it looks at nothing, so it plays whatever these games show
                    return RandomOpponent(spaces.observation, spaces.action, uses_masks=False)
            return bot
        if name != "random":
            raise ValueError(f"the only bot that plays any environment is 'random', got {name!r}")
        return RandomOpponent(spaces.observation, spaces.action)

    return make_bot
