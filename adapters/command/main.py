"""The `snake-pz` command: parses, calls, prints."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.command.arenas import bench_serve, import_recorded, serve_app
from adapters.command.models import bench_onnx, card, export
from adapters.command.options import TRUST, WHO, seconds_of, trust_of
from adapters.command.terminal import command
from adapters.training.recipe import Recipe, parse_opponent

app = typer.Typer(no_args_is_help=True)
bench_app = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")
app.add_typer(serve_app, name="serve")
bench_app.command(name="serve")(bench_serve)
bench_app.command(name="onnx")(bench_onnx)
app.command()(export)
app.command()(card)
app.command(name="import")(import_recorded)
NUM_SNAKES = typer.Option("--num-snakes", "--snakes", help="Snakes on the board, people included.")


def _default(setting: str, text: str) -> str:
    """A help text that ends with the recipe's default."""
    field = next(field for field in dataclasses.fields(Recipe) if field.name == setting)
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if isinstance(default, dict):
        default = " ".join(f"{name}={share:g}" for name, share in default.items())
    return f"{text} Default: {default:,}." if isinstance(default, int) else f"{text} Default: {default}."


def _print_version(asked: bool) -> None:
    if asked:
        from snake_pz import __version__

        typer.echo(f"snake-pz {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Import this first: a module that registers encodings of your own."),
    ] = None,
) -> None:
    """Multi-snake for PettingZoo, self-play for Stable-Baselines3."""
    if modules:
        with command():
            sys.path.insert(0, "")  # the current folder, as for `python -m`
            for module in modules:
                importlib.import_module(module)


@app.command()
def train(
    out: Annotated[
        Path | None, typer.Option(help="Folder for everything the run writes. Default: the next free runs/snake.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder, with its own settings.")] = None,
    config: Annotated[Path | None, typer.Option(help="A config.json whose settings to start from.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A run of at most three minutes on two cores.")] = False,
    total_timesteps: Annotated[
        int | None,
        typer.Option(
            "--total-timesteps", "--steps", help=_default("total_timesteps", "Steps of PPO, over all games together.")
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop learning after so many minutes, measurements apart.")] = None,
    num_games: Annotated[
        int | None, typer.Option("--num-games", "--games", help=_default("num_games", "Games side by side."))
    ] = None,
    learners: Annotated[str | None, typer.Option(help=_default("learners", "Snakes of a game that learn, or all."))] = None,
    opponent: Annotated[
        list[str] | None,
        typer.Option(
            help=_default(
                "opponent",
                f"self (the run's own snapshots), {WHO} or a pool; several times, NAME=SHARE, for a mixture.",
            )
        ),
    ] = None,
    teacher: Annotated[
        str | None, typer.Option(help=_default("teacher", "The bot that the policy is taught to play like first."))
    ] = None,
    teacher_steps: Annotated[
        int | None,
        typer.Option(
            help=_default("teacher_steps", "For how many steps; 0: not at all. By default less where --total-timesteps is.")
        ),
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help=_default("rules", "classic, battlesnake, battlesnake:MODE or hungry_geese."))
    ] = None,
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    num_snakes: Annotated[int | None, NUM_SNAKES] = None,
    snapshot_every: Annotated[int | None, typer.Option(help=_default("snapshot_every", "Steps between snapshots."))] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything. Default: drawn, and kept in config.json.")] = None,
    device: Annotated[str | None, typer.Option(help=_default("device", "auto, cpu, cuda, ..."))] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Train by self-play with PPO; keeps snapshots, win rates, ratings, a game to look at and a report of it all."""
    given: dict[str, Any] = {
        "total_timesteps": total_timesteps,
        "minutes": minutes,
        "num_games": num_games,
        "learners": int(learners) if learners and learners.isdecimal() else learners,
        "teacher": teacher,
        "teacher_steps": teacher_steps,
        "rules": rules,
        "width": width,
        "height": height,
        "num_snakes": num_snakes,
        "snapshot_every": snapshot_every,
        "seed": seed,
        "device": device,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    with command() as terminal:
        import torch

        from adapters.training import run as training

        torch.set_num_threads(1)  # such small networks are slower on more threads
        if opponent:
            changes["opponent"] = parse_opponent(opponent)
        if resume is not None:
            if refused := sorted(set(changes) - {"total_timesteps", "minutes"}) + [
                name for name, on in (("out", out), ("config", config), ("quick", quick)) if on
            ]:
                raise ValueError(
                    f"a resumed run keeps its settings; only --total-timesteps and --minutes go with --resume, got {refused}"
                )
            training.resume(resume, total_timesteps=total_timesteps, minutes=minutes, say=terminal.say, trust=trust_of(trust))
            return
        if config is not None and quick:
            raise ValueError("--config and --quick are two recipes: give one")
        recipe = Recipe.quick() if quick else Recipe.load(config) if config is not None else Recipe()
        if config is None and total_timesteps is not None and 0 < total_timesteps < recipe.total_timesteps:
            lessons = recipe.teacher_steps * total_timesteps // recipe.total_timesteps  # a third of the time, as ever
            changes.setdefault("teacher_steps", lessons)
        recipe = dataclasses.replace(recipe, **changes)
        if opponent and recipe.everyone_learns:
            raise ValueError(
                f"--opponent has no seat where all {recipe.game_rules().num_snakes} snakes learn: take fewer --learners "
                "or more --num-snakes"
            )
        for folder in training.free_folders(Path("runs/snake")) if out is None else [out]:
            try:
                training.train(folder, recipe, terminal.say, trust=trust_of(trust))
                return
            except training.FolderTakenError:
                if out is not None:  # else another process was quicker, and the next one is tried
                    raise


@app.command()
def play(
    opponent: Annotated[
        list[str] | None,
        typer.Option(help=f"Who plays the other snakes: {WHO}; given several times: by seat."),
    ] = None,
    humans: Annotated[int, typer.Option(help="People at this keyboard: 1 (arrows or WASD) or 2 (arrows, WASD).")] = 1,
    rules: Annotated[str, typer.Option(help="classic, battlesnake, battlesnake:MODE or hungry_geese.")] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    num_snakes: Annotated[int | None, NUM_SNAKES] = None,
    fps: Annotated[float, typer.Option(help="Turns per second; + and - change it.")] = 6,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the first game and its opponents.")] = None,
    record: Annotated[Path | None, typer.Option(help="Keep the game here as a replay, later ones beside it.")] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Play against bots and checkpoints, or against each other."""
    with command() as terminal:
        from adapters.command.human_seats import seat_humans
        from snake_pz.play.local_match import LocalMatch
        from snake_pz.play.session import Session
        from snake_pz.presets import preset

        chosen = preset(rules, width=width, height=height, num_snakes=num_snakes)
        players = seat_humans(chosen, humans, opponent, trust=trust_of(trust))
        session = Session(LocalMatch(chosen, players), fps=fps, seed=seed, record=record)
        session.run()
        for path in session.recordings:
            terminal.say(f"recorded {path}")


@app.command()
def watch(
    what: Annotated[list[str], typer.Argument(metavar="REPLAY|PLAYER...", help="A replay; with --players, one per snake.")],
    players: Annotated[bool, typer.Option("--players", help="Play a game among bots and checkpoints.")] = False,
    rules: Annotated[
        str, typer.Option(help="Of that game: classic, battlesnake, battlesnake:MODE or hungry_geese.")
    ] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    max_cycles: Annotated[int, typer.Option(help="Turns after which that game is cut short.")] = 500,
    seed: Annotated[int | None, typer.Option(min=0, help="Of that game and its players.")] = None,
    fps: Annotated[float, typer.Option(help="Turns per second.")] = 8,
    record: Annotated[Path | None, typer.Option(help="Write the replay, a few kilobytes.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that plays it in any browser.")] = None,
    gif: Annotated[Path | None, typer.Option(help="Write a GIF.")] = None,
    mp4: Annotated[Path | None, typer.Option(help="Write a film; needs the extra `video`.")] = None,
    ansi: Annotated[bool, typer.Option("--ansi", help="Show it in the terminal.")] = False,
    window: Annotated[bool, typer.Option("--window", help="Open the window although something is written.")] = False,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Watch a replay, or a game among players: `watch game.jsonl`, `watch --players greedy greedy survivor model.zip`."""
    with command() as terminal:
        from snake_pz.drawing.render import NoDisplayError
        from snake_pz.play.watch import watch as open_window
        from snake_pz.ranges import FPS, check_number
        from snake_pz.replay import Replay, export

        check_number("fps", fps, FPS)
        if gif:
            check_number("fps of a GIF", fps, export.GIF_FPS)
        if mp4:
            export.check_mp4()
        _check_writable(record, html, gif, mp4)
        if players:
            from adapters.evaluation.evaluate import record_game
            from snake_pz.presets import preset

            chosen = preset(rules, width=width, height=height, num_snakes=len(what))
            env_kwargs = {"rules": chosen, "max_cycles": max_cycles}
            replay = record_game(what, seed=seed, env_kwargs=env_kwargs, trust=trust_of(trust))
        elif len(what) == 1:
            replay = Replay.load(what[0])
        else:
            raise ValueError(f"watch shows one replay, got {len(what)}; for a game among players say --players")
        written = _write_all(
            (record, replay.save),
            (html, lambda path: export.write_html(replay, path)),
            (gif, lambda path: export.write_gif(replay, path, fps)),
            (mp4, lambda path: export.write_mp4(replay, path, fps)),
        )
        for path in written:
            terminal.say(f"wrote {path}, {path.stat().st_size / 1000:,.1f} kB")
        if ansi:
            drawn_over = sys.stdout.isatty()  # a file or pipe gets one turn after the other
            for turn, text in enumerate(export.texts(replay)):
                terminal.write(f"\x1b[H\x1b[J{text}\n" if drawn_over else f"{text}\n" if turn == 0 else f"\n{text}\n")
                time.sleep(1 / fps if drawn_over else 0)
        if window or not (ansi or record or html or gif or mp4):
            try:
                open_window(replay, fps)
            except NoDisplayError as error:
                raise OSError("there is no display to open a window on: say --html FILE, --gif FILE or --ansi") from error


def _check_writable(*targets: Path | None) -> None:
    """Check before long work that its results can be written."""
    from snake_pz.files import check_writable

    for target in targets:
        if target is not None:
            check_writable(target)


def _write_all(*writers: tuple[Path | None, Callable[[Path], None]]) -> Sequence[Path]:
    """Write to the given paths and return those that are files, not pipes or devices."""
    for path, write in writers:
        if path is not None:
            write(path)
    return [path for path, _ in writers if path is not None and path.is_file()]


@app.command()
def tournament(
    players: Annotated[list[str], typer.Argument(help=f"At least two, each {WHO} or a pool.")],
    games: Annotated[int, typer.Option(help="How many to play.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of games, line-ups and players.")] = 0,
    rules: Annotated[str, typer.Option(help="classic, battlesnake, battlesnake:MODE or hungry_geese.")] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    num_snakes: Annotated[int | None, NUM_SNAKES] = None,
    max_cycles: Annotated[int, typer.Option(help="Turns after which a game is cut short.")] = 500,
    move_time: Annotated[
        str | None, typer.Option(help="Time for a move, such as 5ms: what a searcher takes; of others, who is late is shown.")
    ] = None,
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Checkpoints take their likeliest action.")] = False,
    device: Annotated[str, typer.Option(help="Where checkpoints predict: auto, cpu, cuda, ...")] = "auto",
    plot: Annotated[Path | None, typer.Option(help="Write a PNG of ratings and of who was placed above whom.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the standings; - prints them instead of the table.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row per player.")] = None,
    replays: Annotated[Path | None, typer.Option(help="A folder for replays of the first 10 games.")] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Rate players by many games among them: `tournament survivor greedy random model.zip --games 2000`."""
    with command() as terminal:
        from adapters.evaluation.tournament import tournament as play_tournament
        from snake_pz.presets import preset

        printed = json == Path("-")
        document = None if printed else json
        _check_writable(document, csv, plot)
        standings = play_tournament(
            players,
            games=games,
            seed=seed,
            env_kwargs={"rules": preset(rules, width=width, height=height, num_snakes=num_snakes), "max_cycles": max_cycles},
            move_time=None if move_time is None else seconds_of(move_time),
            deterministic=deterministic,
            device=device,
            trust=trust_of(trust),
            progress=True,
            replays=replays,
        )
        written: Sequence[Path] = ()
        try:
            written = _write_all((document, standings.write_json), (csv, standings.write_csv), (plot, standings.plot))
        finally:  # if a file cannot be written now, they are seen here at least
            if printed:
                terminal.write(standings.json())
            else:
                terminal.show(standings.table())
        if not printed:
            for path in written:
                terminal.say(f"wrote {path}")


@bench_app.command()
def engine(
    seconds: Annotated[float, typer.Option(help="How long to measure each row.")] = 3.0,
) -> None:
    """Steps per second of the engine, the PettingZoo API and both backends, side by side in one run."""
    with command() as terminal:
        from adapters.command.bench import bench_engine

        terminal.show(bench_engine(seconds))


@bench_app.command()
def search(
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 3.0,
) -> None:
    """Evaluations per second of the searcher, in duels and among four, by rules and size of the board."""
    with command() as terminal:
        from adapters.command.bench_search import bench_search

        terminal.show(bench_search(seconds))


@bench_app.command()
def opponents(
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 3.0,
) -> None:
    """What opponents cost a rollout: random, checkpoints, a mixture, and one predict per enemy for comparison."""
    with command() as terminal:
        from adapters.command.bench import bench_opponents

        for table in bench_opponents(seconds):
            terminal.show(table)


@bench_app.command()
def learners(
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 10.0,
) -> None:
    """Samples to learn from per second: one policy in all four seats against one learner with three checkpoints."""
    with command() as terminal:
        from adapters.command.bench import bench_learners

        terminal.show(bench_learners(seconds))


@bench_app.command()
def soak(
    steps: Annotated[int, typer.Option(help="Over all games together.")] = 300_000,
    swap_every: Annotated[int, typer.Option(help="Steps between two swaps of the enemies.")] = 10_000,
) -> None:
    """Step for a long time while enemies are swapped. Fails if memory grows by 3 % or a file stays open."""
    with command() as terminal:
        from adapters.command.soak import soak as step_for_long

        if not step_for_long(steps, swap_every, say=terminal.say):
            raise typer.Exit(1)
