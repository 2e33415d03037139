"""The benchmarks of `snake-pz bench`. Rows of a table are measured in turn in one process, so that ratios are reliable."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.parse import mixture
from adapters.opponents.policy import PolicyOpponent
from adapters.sb3 import make_sb3_env
from adapters.vec_env.sb3_internals import set_up_learning
from snake_pz import Rules, SnakeEngine, make_bot, snake_v0
from snake_pz.drawing.render import rgb_array
from snake_pz.ranges import Range, check_number
from snake_pz.rules import Battlesnake

SECONDS = Range(0.01, 86_400, whole=False)
"""How long one number may be measured."""

ROUNDS = 5
"""Each row is measured this many times, all rows in turn; the median counts."""


def bench_engine(seconds: float = 3.0) -> Table:
    """The engine with `board` written under each rule set, the PettingZoo API, pictures, 64 curried games on either backend.

    All snakes move at random; in the pictures they play as `greedy`. The time includes restarting games that are over.

    Args:
        seconds: approximate total time for each row.

    Returns:
        A table: game-steps per second and the target.
    """
    check_number("seconds", seconds, SECONDS)
    modes = get_args(Battlesnake)
    presets = {
        "classic": Rules.classic(),
        **{f"battlesnake {mode}": Rules.battlesnake(mode, num_snakes=4) for mode in modes},
        "hungry_geese": Rules.hungry_geese(),
    }
    runs = {name: engine_steps(1024, rules) for name, rules in presets.items()}
    runs |= {
        "api": api_steps(),
        "pictures": pictures(),
        "native": curried_steps("native"),
        "supersuit": curried_steps("supersuit"),
    }
    speeds = measure(runs, seconds)
    table = Table("what", "game-steps/s", "target", title="Per second of one core, random moves")
    for name in presets:
        target = ">= 1,000,000" if name == "classic" else ">= 700,000"
        table.add_row(f"engine, 1,024 games, {name}", f"{speeds[name]:,.0f}", target)
    table.add_row("PettingZoo API, one game, classic", f"{speeds['api']:,.0f}", ">= 40,000")
    table.add_row("rgb_array pictures, one game, classic", f"{speeds['pictures']:,.0f}", ">= 400")
    table.add_row("make_sb3_env native, 64 games", f"{speeds['native']:,.0f}", "")
    table.add_row("make_sb3_env supersuit, 64 games", f"{speeds['supersuit']:,.0f}", "")
    table.add_row("native / supersuit", f"{speeds['native'] / speeds['supersuit']:.1f}x", ">= 15x")
    return table


def measure(
    runs: dict[str, Callable[[], int]], seconds: float, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Steps of each run per second.

    Args:
        runs: each plays for a moment and returns how many steps it made.
        seconds: about how long each is measured in all.
        clock: the seconds; by default this process's processor time, which depends little on other programs.
    """
    for run in runs.values():
        run()  # compile, fill caches
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start, steps = clock(), 0
            while (elapsed := clock() - start) < seconds / ROUNDS:
                steps += run()
            speeds[name].append(steps / elapsed)
    return {name: statistics.median(values) for name, values in speeds.items()}


def engine_steps(num_games: int, rules: Rules | None = None) -> Callable[[], int]:
    """A run of 20 steps of the engine with `board` observations written."""
    engine = SnakeEngine(rules or Rules.classic(), num_games, seed=0)
    engine.reset()
    moves = np.random.default_rng(0).integers(0, 4, (16, num_games, engine.rules.num_snakes)).astype(np.int8)
    views = engine.observe("board")

    def run() -> int:
        for k in range(20):
            engine.step(moves[k % 16])
            engine.reset(np.flatnonzero(engine.state.over))
            engine.observe("board", views)
        return 20 * num_games

    return run


def api_steps() -> Callable[[], int]:
    """A run of 200 steps of `parallel_env`."""
    env = snake_v0.parallel_env()
    env.reset(seed=0)
    moves = np.random.default_rng(0).integers(0, 4, (200, 4)).tolist()

    def run() -> int:
        for row in moves:
            if not env.agents:
                env.reset()
            env.step(dict(zip(env.agents, row, strict=False)))
        return len(moves)

    return run


def pictures() -> Callable[[], int]:
    """A run of 10 turns of one game, each drawn as an `rgb_array`."""
    engine = SnakeEngine(Rules.classic(), 1, seed=0)
    bot = make_bot("greedy", engine.rules)
    bot.seed(0)
    engine.reset()
    views = engine.observe("board")

    def run() -> int:
        for _ in range(10):
            engine.step(bot.act(views[0])[None])
            engine.reset(np.flatnonzero(engine.state.over))
            engine.observe("board", views)
            rgb_array(engine.state, engine.rules)
        return 10

    return run


def curried_steps(backend: str, num_games: int = 64) -> Callable[[], int]:
    """A run of 4 steps of a curried VecEnv against random opponents."""
    env = make_sb3_env("random", num_games=num_games, backend=backend, seed=0)  # type: ignore[arg-type]
    env.reset()
    moves = np.random.default_rng(0).integers(0, 4, (16, num_games))

    def run() -> int:
        for k in range(4):
            env.step(moves[k])
        return 4 * num_games

    return run


# ----------------------------------------------------------------------------------------------------------- opponents

AHEAD = ", ahead"
"""What ends the names of rows in which opponents may infer ahead."""

BOARDS: dict[str, dict[str, Any]] = {
    "11x11 board": {},
    "39x39 single": {"width": 39, "height": 39, "observation": "single"},
}


def bench_opponents(seconds: float = 3.0, games: Sequence[int] = (8, 16, 32, 64)) -> list[Table]:
    """What opponents cost: rollouts of PPO, the learner's own forward passes included, one torch thread.

    Enemies are random, one checkpoint in three seats, three checkpoints, or a mixture of eight; and, for comparison, that one
    checkpoint with one `predict` per enemy, and with one per enemy and game. Rows "ahead" have the opponents' networks run in
    a thread of their own where the rule of `Ahead` says so; others never. The networks are untrained. The clock is the wall's,
    because two threads share the work: the figures are good on a machine with an idle core for each.

    Args:
        seconds: approximate time for each number.
        games: numbers of games side by side.

    Returns:
        For each board a table of milliseconds per step of all games and of ratios to random enemies; then the memory of the
        opponents' policies.
    """
    check_number("seconds", seconds, SECONDS)
    import torch

    torch.set_num_threads(1)
    tables = []
    with TemporaryDirectory() as folder:
        for board, env_kwargs in BOARDS.items():
            paths = fresh_checkpoints(Path(folder) / board.replace(" ", "_"), env_kwargs, 8)
            batched: dict[str, Any] = {
                "one checkpoint": paths[0],
                "three checkpoints": paths[:3],
                "mixture of eight": mixture(dict.fromkeys(paths, 1), per="game"),
            }
            enemies: dict[str, Any] = {
                "random": "random",
                **batched,
                **{f"{name}{AHEAD}": spec for name, spec in batched.items()},
                "one predict per enemy": [_Predicts(paths[0], by_row=False) for _ in range(3)],
                "one predict per enemy and game": [_Predicts(paths[0], by_row=True) for _ in range(3)],
            }
            table = Table("enemies", *(f"{number} games" for number in games), title=f"ms a step, x random: {board}")
            speeds = {
                number: measure(
                    {name: _rollout(spec, number, env_kwargs, ahead=name.endswith(AHEAD)) for name, spec in enemies.items()},
                    seconds,
                    clock=time.perf_counter,
                )
                for number in games
            }
            for name in enemies:
                cells = [
                    f"{1000 / speeds[number][name]:.2f}  {speeds[number]['random'] / speeds[number][name]:.2f}x"
                    for number in games
                ]
                table.add_row(name, *cells)
            tables.append(table)
        table = Table("games", "MB in the policies of a mixture of eight", title="Memory: flat in the number of games")
        for number in games:
            table.add_row(str(number), f"{_policy_megabytes(paths, number, env_kwargs):.2f}")
        tables.append(table)
    return tables


def fresh_checkpoints(folder: Path, env_kwargs: dict[str, Any], number: int) -> list[str]:
    """Write checkpoints of untrained networks into the folder and return their paths."""
    from stable_baselines3 import PPO

    from adapters.networks import policy_kwargs

    folder.mkdir(exist_ok=True)
    env = make_sb3_env("random", env_kwargs=env_kwargs, num_games=1)
    paths = []
    for seed in range(number):
        paths.append(str(folder / f"{seed}.zip"))
        PPO("CnnPolicy", env, policy_kwargs=policy_kwargs(), n_steps=8, batch_size=8, seed=seed).save(paths[-1])
    env.close()
    return paths


def _rollout(spec: Any, num_games: int, env_kwargs: dict[str, Any], *, ahead: bool) -> Callable[[], int]:
    """A run of 16 steps of PPO's own rollout."""
    from stable_baselines3 import PPO

    from adapters.networks import policy_kwargs

    env = make_sb3_env(spec, env_kwargs=env_kwargs, num_games=num_games, seed=0)
    if not ahead and isinstance(env.lineup, OpponentLineup):
        env.lineup.ahead.wanted = False
    model = PPO("CnnPolicy", env, policy_kwargs=policy_kwargs(), n_steps=16, batch_size=16, seed=0)
    callback = set_up_learning(model, 16)

    def run() -> int:
        model.collect_rollouts(env, callback, model.rollout_buffer, 16)
        return 16

    return run


class _Predicts:
    """A checkpoint played without this package's batching: by the model's own `predict`, per enemy or per row."""

    def __init__(self, path: str, *, by_row: bool) -> None:
        from stable_baselines3 import PPO

        self._model, self._by_row = PPO.load(path, device="cpu"), by_row
        self.name = "predict"
        self.observation_space, self.action_space = self._model.observation_space, self._model.action_space

    def act(self, observations: NDArray[Any], slots: NDArray[np.intp], action_masks: NDArray[np.int8] | None) -> NDArray[Any]:
        if not self._by_row:
            return self._model.predict(observations)[0]
        return np.array([self._model.predict(observation)[0] for observation in observations])

    def reset(self, slots: NDArray[np.intp]) -> None:
        pass

    def seed(self, seed: int) -> None:
        pass


def _policy_megabytes(paths: list[str], num_games: int, env_kwargs: dict[str, Any]) -> float:
    """Megabytes of parameters and buffers of all policies in these games, each tensor counted once."""
    env = make_sb3_env(mixture(dict.fromkeys(paths, 1), per="game"), env_kwargs=env_kwargs, num_games=num_games, seed=0)
    env.reset()
    env.step(np.zeros(num_games, np.int64))
    policies = [opponent.policy for opponent in env.lineup.opponents if isinstance(opponent, PolicyOpponent)]
    tensors = {
        tensor.data_ptr(): tensor.numel() * tensor.element_size()
        for policy in policies
        for tensor in [*policy.parameters(), *policy.buffers()]
    }
    env.close()
    return float(sum(tensors.values())) / 1e6


# ------------------------------------------------------------------------------------------------------------ learners


def bench_learners(seconds: float = 10.0, num_games: int = 64) -> Table:
    """Samples to learn from per second: one shared policy in all four seats against one learner with three checkpoints.

    Both are PPO as `snake-pz train` sets it, with the same network, minibatches and epochs, and rollouts so long that an update
    has about the same number of samples; one torch thread. Rows of agents that are out and wait for the end
    of their game are not counted. The networks are untrained and stay so, by a learning rate of 0, so that both play alike.

    All seats learning saves the forward passes of opponents, and an update costs the same per sample whoever collected it.
    The first column shows the gain in collecting samples, the second the gain in the whole loop.

    Args:
        seconds: approximate time for each number.
        num_games: side by side.

    Returns:
        A table: samples collected per second, samples learnt from per second of the whole loop, and their ratios.
    """
    check_number("seconds", seconds, SECONDS)
    import torch

    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        paths = fresh_checkpoints(Path(folder), TRAINED_ON, 3)
        one, every = "one learner, three checkpoints", "one policy in all four seats"
        loops = {one: _Loop(paths, 1, num_games), every: _Loop(None, "all", num_games)}
        speeds = measure(
            {
                **{f"{name}, rollouts": loop.collect for name, loop in loops.items()},
                **{f"{name}, whole loop": loop.learn for name, loop in loops.items()},
            },
            seconds,
        )
    columns = ["rollouts", "whole loop"]
    table = Table("who learns", *columns, title=f"Samples to learn from per second of one core, {num_games} games, PPO")
    for name in loops:
        table.add_row(name, *(f"{speeds[f'{name}, {column}']:,.0f}" for column in columns))
    ratios = [speeds[f"{every}, {column}"] / speeds[f"{one}, {column}"] for column in columns]
    table.add_row("ratio", f"{ratios[0]:.2f}x (target >= 2.5x)", f"{ratios[1]:.2f}x")
    return table


class _Loop:
    """PPO on `num_games` games, a rollout or a rollout and an update at a time."""

    def __init__(self, opponent: Any, learners: Any, num_games: int) -> None:
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import Logger

        from adapters.networks import policy_kwargs
        from adapters.training.recipe import Recipe
        from adapters.vec_env.buffers import ActiveRolloutBuffer

        recipe = Recipe()
        self._env = make_sb3_env(opponent, learners=learners, env_kwargs=TRAINED_ON, num_games=num_games, seed=0)
        self._model = PPO(
            "CnnPolicy",
            self._env,
            policy_kwargs=policy_kwargs(),
            n_steps=max(2, 2 * round(recipe.n_steps * num_games / self._samples_per_step() / 2)),  # whole minibatches to SB3
            batch_size=recipe.batch_size,
            n_epochs=recipe.n_epochs,
            learning_rate=0.0,
            rollout_buffer_class=ActiveRolloutBuffer,
            rollout_buffer_kwargs={"active": self._env.active},
            seed=0,
        )
        self._model.set_logger(Logger(None, []))
        self._callback = set_up_learning(self._model, 1)

    def _samples_per_step(self) -> float:
        """Average number of rows that act in a step of random players, which untrained networks are."""
        env, rng = self._env, np.random.default_rng(0)
        env.reset()
        before = env.active.total
        for _ in range(200):
            env.step(rng.integers(3, size=env.num_envs))
        return (env.active.total - before) / 200

    def collect(self) -> int:
        """Play a rollout and return its number of samples."""
        before = self._env.active.total
        self._model.collect_rollouts(self._env, self._callback, self._model.rollout_buffer, self._model.n_steps)
        return self._env.active.total - before

    def learn(self) -> int:
        """Play a rollout, update the policy, and return the number of samples."""
        samples = self.collect()
        self._model.train()
        return samples


TRAINED_ON = {"observation": "egocentric", "actions": "relative"}
"""What `snake-pz train` learns from."""
