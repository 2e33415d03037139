"""A training run: PPO by self-play, kept in one folder, from which it can be resumed."""

from __future__ import annotations

import dataclasses
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import LinearSchedule

from adapters.evaluation.evaluate import play_games, record_game
from adapters.networks import policy_kwargs, snake_policy_kwargs
from adapters.opponents.checkpoints import find_device
from adapters.opponents.models import load_model
from adapters.opponents.parse import mixture
from adapters.opponents.pool import OpponentPool
from adapters.opponents.unpickling import Trust
from adapters.sb3 import make_sb3_env
from adapters.training.imitation import Imitation, imitate
from adapters.training.progress import Clock, Progress, beside_bars, progress_bar
from adapters.training.recipe import Recipe
from adapters.training.records import BASELINE_BOTS, LogRows, open_logger, read_measured, write_measured
from adapters.training.report import write_report
from adapters.training.selfplay import SelfPlayCallback
from adapters.vec_env.buffers import ActiveRolloutBuffer
from adapters.vec_env.curry import CurryVecEnv
from snake_pz import make_bot
from snake_pz.files import LOCK, locked, replacing
from snake_pz.replay.export import write_gif, write_html


class FolderTakenError(FileExistsError):
    """A new run is to be kept where there is one, or a file."""


FILES = (
    "report.html", "model.zip", "pool", "game.html", "game.gif", "game.jsonl", "eval.json", "progress.csv", "tensorboard",
)  # fmt: skip
"""Files that a run leaves in its folder beside config.json, the most interesting first."""


def train(out: Path, recipe: Recipe, say: Callable[[str], None] = print, *, trust: Trust = False) -> dict[str, Any]:
    """Train, measure and write everything to a folder.

    Writes `config.json` (the recipe; it reproduces the run), `pool/` (snapshots), `model.zip`, `progress.csv` and
    `tensorboard/` (logs), `eval.json` (win rates against bots over the steps), a game against bots (`game.html`, `game.gif` and
    the replay `game.jsonl`) and `report.html`. Files are written whole or not at all. Ctrl-C ends the learning, not the run:
    the model is saved and measured. After any end `resume` continues the run.

    Args:
        out: the folder, made if missing.
        recipe: the settings.
        say: prints a line for the user.
        trust: classes that opponents' files may name beside known ones, as in `frozen`; not kept in the folder.

    Returns:
        The content of `eval.json`.

    Raises:
        FolderTakenError: the folder holds a run, or is a file.
        ValueError: the recipe's opponent cannot be resolved.
        FileNotFoundError: the recipe's opponent is a missing checkpoint.
    """
    _check_free(out)
    say = beside_bars(say)
    recipe = recipe.seeded()
    model, env, pool = _prepare(out, recipe, trust)  # before anything is written, so that bad input leaves no files
    with closing(env), _claimed(out):
        _check_free(out)
        recipe.save(out / "config.json")
        lessons = f"imitating {recipe.teacher} for {recipe.teacher_steps:,} steps, then " if recipe.teacher_steps else ""
        limit = f", {recipe.minutes:g} minutes at most" if recipe.minutes else ""
        say(f"{out}: {lessons}PPO for {recipe.total_timesteps:,} steps{limit}")
        return _run(out, recipe, model, env, pool, say)


def resume(
    out: Path,
    *,
    total_timesteps: int | None = None,
    minutes: float | None = None,
    say: Callable[[str], None] = print,
    trust: Trust = False,
) -> dict[str, Any]:
    """Continue the run in a folder from its last snapshot, as if it had never stopped.

    A run that has done all its steps only gets the measurements and files that are missing.

    Args:
        out: the folder.
        total_timesteps: total number of steps of the run; None: as in its recipe.
        minutes: limit of training time from now; None: no limit.
        say: prints a line for the user.
        trust: classes that files of the run and its opponents may name beside known ones. Those of `train` need none.

    Returns:
        The content of `eval.json`.

    Raises:
        ValueError: the folder holds no run, or one of its files is damaged or missing.
        FolderTakenError: another process is running it.
    """
    say = beside_bars(say)
    if not _has_recipe(out):
        raise ValueError(f"{out} holds no run to resume: expected a config.json that `snake-pz train` wrote; --out begins one")
    with _claimed(out):
        recipe = Recipe.load(out / "config.json")
        recipe = dataclasses.replace(
            recipe, total_timesteps=recipe.total_timesteps if total_timesteps is None else total_timesteps, minutes=minutes
        )
        model, env, pool = _prepare(out, recipe, trust)
        with closing(env):
            pool.save()  # raises if the manifest of the snapshots is missing, before anything else is written
            recipe.save(out / "config.json")
            done = model.num_timesteps
            limit = f", {minutes:g} minutes at most" if minutes else ", however long it takes; --minutes sets a limit"
            more = f"going on after {done:,} steps, to {recipe.total_timesteps:,}{limit}"
            say(more if done < recipe.total_timesteps else f"all {done:,} steps are done; --total-timesteps gives it more")
            return _run(out, recipe, model, env, pool, say)


def free_folders(wanted: Path) -> Iterator[Path]:
    """`wanted`, wanted-2, wanted-3, ..., without those that exist, except where a run was killed at its very start."""
    for number in itertools.count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not folder.exists() or (folder.is_dir() and not _has_recipe(folder) and _holds_nothing(folder)):
            yield folder


def _holds_nothing(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {"config.json", LOCK}


def _has_recipe(out: Path) -> bool:
    """Whether the folder holds a run. An empty config.json is none: version 0.1.0 left it when killed at the start."""
    path = out / "config.json"
    return path.exists() and (not path.is_file() or path.stat().st_size > 0)


def _check_free(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise FolderTakenError(f"expected a folder to keep the run in, got the file {out}")
    found = ["config.json"] * _has_recipe(out)
    found += [name for name in ("pool", "model.zip", "eval.json", "progress.csv") if (out / name).exists()]
    if found:
        raise FolderTakenError(
            f"{out} holds a run already ({', '.join(found)}): go on with it by --resume {out}, or give another folder"
        )


@contextmanager
def _claimed(out: Path) -> Iterator[None]:
    """Lock the folder for this process. The lock ends with the process, in whatever way that ends."""
    try:
        str(out).encode()
    except UnicodeEncodeError:  # with which TensorBoard would end the run, after the policy has been taught
        raise ValueError(f"this locale cannot read the name of the folder {str(out)!r}: set PYTHONUTF8=1") from None
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(out))
        except BlockingIOError:
            raise FolderTakenError(f"another process runs in {out}: wait until it has ended, or give another folder") from None
        yield


def _prepare(out: Path, recipe: Recipe, trust: Trust) -> tuple[PPO, CurryVecEnv, OpponentPool]:
    """The learner, new or from the last snapshot, its games and its pool."""
    find_device(recipe.device)  # first, because it is a cheap check
    pool = OpponentPool(out / "pool", per="seat", trust=trust)
    env = make_sb3_env(
        None if recipe.everyone_learns else _opponent(recipe, "random"),  # replaced by the pool when it has a member
        env_kwargs=recipe.env_kwargs(),
        num_games=recipe.num_games,
        learners=recipe.learners,
        device=recipe.device,
        trust=trust,
        seed=recipe.seed,
    )
    if pool.latest is not None:
        try:
            return load_model(PPO, pool.verified(pool.latest), env, device=recipe.device, trust=trust), env, pool
        except (OSError, ValueError) as error:
            env.close()
            raise ValueError(f"the last snapshot of the run in {out} cannot be loaded: {error}") from error
    shared: dict[str, Any] = {}
    if env.game_batch.num_learners > 1:
        shared = {"rollout_buffer_class": ActiveRolloutBuffer, "rollout_buffer_kwargs": {"active": env.active}}
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=recipe.n_steps,
        # PPO warns of batches of different sizes
        batch_size=_largest_divisor(recipe.n_steps * env.num_envs, recipe.batch_size),
        n_epochs=recipe.n_epochs,
        learning_rate=LinearSchedule(recipe.learning_rate, recipe.learning_rate / 10, 1.0),
        gamma=recipe.gamma,
        gae_lambda=recipe.gae_lambda,
        ent_coef=recipe.ent_coef,
        policy_kwargs=snake_policy_kwargs() if recipe.observation == "egocentric" else policy_kwargs(),
        seed=recipe.seed,
        device=recipe.device,
        **shared,
    )
    return model, env, pool


def _largest_divisor(number: int, limit: int) -> int:
    """The largest divisor from 2 to the limit; the number itself if there is none."""
    return next((divisor for divisor in range(min(number, limit), 1, -1) if number % divisor == 0), number)


def _run(
    out: Path, recipe: Recipe, model: PPO, env: CurryVecEnv, pool: OpponentPool, say: Callable[[str], None]
) -> dict[str, Any]:
    began_at = None if pool.latest is None else model.num_timesteps
    kept = [] if began_at is None else read_measured(out / "eval.json")
    measured = [entry for entry in kept if entry["steps"] <= model.num_timesteps]

    def measure(steps: int) -> None:
        if not measured or steps > measured[-1]["steps"]:
            measured.append({"steps": steps, **measure_against_bots(model, recipe)})
            write_measured(out / "eval.json", measured)
            rates = ", ".join(f"{measured[-1][bot]:.2f} against {bot}" for bot in BASELINE_BOTS)
            when = f"{steps:,} steps" if steps or not recipe.teacher_steps else f"after imitating {recipe.teacher}"
            say(f"{when}: wins {rates} (chance is {1 / recipe.game_rules().num_snakes:.2f})")

    def after_snapshot(member: Any) -> None:
        if not measured or member.step // recipe.measure_every > measured[-1]["steps"] // recipe.measure_every:
            measure(member.step)
            if 0 < member.step < recipe.total_timesteps:
                write_report(out)

    self_play = SelfPlayCallback(
        pool,
        snapshot_every=recipe.snapshot_every,
        opponent=_opponent(recipe, pool),
        seed=recipe.seed,
        after_snapshot=after_snapshot,
    )
    started = time.perf_counter()
    interrupted = False
    try:
        if pool.latest is None and recipe.teacher_steps:
            _teach(model, recipe, say)
    except KeyboardInterrupt:
        interrupted = True
    taught = time.perf_counter() - started
    clock = Clock(self_play, env, None if recipe.minutes is None else 60 * recipe.minutes - taught)
    if model.num_timesteps < recipe.total_timesteps and not interrupted:
        if pool.latest is not None:  # it may not have been measured before a kill
            after_snapshot(pool.latest)
        model.set_logger(open_logger(out, up_to=model.num_timesteps))
        with progress_bar(recipe.total_timesteps, initial=model.num_timesteps) as bar:
            try:
                model.learn(
                    recipe.total_timesteps - model.num_timesteps,
                    callback=[LogRows(), self_play, clock, Progress(bar)],
                    reset_num_timesteps=False,
                    log_interval=None,  # type: ignore[arg-type]  # never, see LogRows
                )
            except KeyboardInterrupt:
                interrupted = True
                self_play.snapshot()
            finally:
                model.logger.close()
    save_model(model, out / "model.zip")
    if interrupted and pool.latest is None:
        say(f"interrupted during imitation; --resume {out} begins with it again")
    elif interrupted:
        say(f"interrupted after {model.num_timesteps:,} steps; continue with --resume {out}")
    measure(model.num_timesteps)
    players = [model, *itertools.islice(itertools.cycle(BASELINE_BOTS), recipe.game_rules().num_snakes - 1)]
    game = record_game(players, seed=recipe.seed, env_kwargs=recipe.env_kwargs(), device=recipe.device)
    game.save(out / "game.jsonl")
    write_html(game, out / "game.html")
    write_gif(game, out / "game.gif")
    write_report(out)
    if model.num_timesteps != began_at:
        say(clock.summary(taught))
    say(f"{out}: {', '.join(name for name in FILES if (out / name).exists())}")
    return {"measured": measured}


def _teach(model: PPO, recipe: Recipe, say: Callable[[str], None]) -> None:
    """Train the new policy to imitate the recipe's teacher."""
    teacher = make_bot(recipe.teacher, recipe.env_kwargs()["rules"])
    teacher.seed(recipe.seed or 0)
    started = time.perf_counter()
    with progress_bar(recipe.teacher_steps, desc=f"imitating {recipe.teacher}") as bar:

        def go_on(so_far: Imitation) -> bool:
            bar.update(so_far.steps - bar.n)
            return recipe.minutes is None or time.perf_counter() - started < 60 * recipe.minutes / 3

        result = imitate(model, teacher, recipe.teacher_steps, batch_size=max(recipe.batch_size // 2, 1), each=go_on)
    say(f"plays as {recipe.teacher} would in {result.agreement:.0%} of {result.steps:,} steps")


def _opponent(recipe: Recipe, own: Any) -> Any:
    """The recipe's opponent, with `own` in place of "self"."""
    if isinstance(recipe.opponent, str):
        return own if recipe.opponent == "self" else recipe.opponent
    return mixture({own if name == "self" else name: share for name, share in recipe.opponent.items()}, per="seat")


def measure_against_bots(model: BaseAlgorithm, recipe: Recipe) -> dict[str, float]:
    """The model's win rate against a board full of each bot of `BASELINE_BOTS`. Changes neither the model nor its games."""
    rates = {}
    for bot in BASELINE_BOTS:
        results = play_games(
            [model, *[bot] * (recipe.game_rules().num_snakes - 1)],
            games=recipe.measure_games,
            seed=recipe.seed,
            env_kwargs=recipe.env_kwargs(),
            device=recipe.device,
        )
        rates[bot] = round(float(results.win_rates[0]), 4)
    return rates


def save_model(model: BaseAlgorithm, path: Path) -> None:
    """Save a model by write-and-rename. Ctrl-C takes effect after that."""
    with _interrupts_wait(), replacing(path) as temporary:
        model.save(temporary)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay SIGINT until the end. Outside the main thread, where signals cannot be handled, does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt
