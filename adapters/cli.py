"""The `snake-pz` command: parses, calls, prints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

app = typer.Typer(help="Multi-snake for PettingZoo, self-play for Stable-Baselines3.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")
console = Console()


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="Folder for everything the run writes.")] = Path("runs/snake"),
    steps: Annotated[int | None, typer.Option(help="Steps to learn, over all games together.")] = None,
    games: Annotated[int | None, typer.Option(help="Games side by side.")] = None,
    opponent: Annotated[str | None, typer.Option(help="self, a bot (random, greedy, survivor) or a checkpoint.")] = None,
    snapshot_every: Annotated[int | None, typer.Option(help="Steps between checkpoints (with self: new enemies).")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, ...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A run of at most three minutes on two cores.")] = False,
) -> None:
    """Train by self-play with PPO; keeps checkpoints, win rates, logs and a film of a game."""
    import torch

    from adapters.train import QUICK, Recipe
    from adapters.train import train as run

    given: dict[str, Any] = {
        "steps": steps,
        "games": games,
        "opponent": opponent,
        "snapshot_every": snapshot_every,
        "seed": seed,
        "device": device,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    torch.set_num_threads(1)  # networks this small are slower on more
    with _clear_errors():
        run(out, dataclasses.replace(QUICK if quick else Recipe(), **changes), console.print)


@app.command()
def play(
    opponent: Annotated[
        list[str] | None,
        typer.Option(help="A bot (random, greedy, survivor), a checkpoint or champion; given several times: by seat."),
    ] = None,
    humans: Annotated[int, typer.Option(help="People at this keyboard: 1 (arrows or WASD) or 2 (arrows, WASD).")] = 1,
    rules: Annotated[str, typer.Option(help="classic, battlesnake or hungry_geese.")] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    snakes: Annotated[int | None, typer.Option(help="Snakes, people included.")] = None,
    fps: Annotated[float, typer.Option(help="Turns per second; + and - change it.")] = 6,
    seed: Annotated[int | None, typer.Option(help="Of the first game and its opponents.")] = None,
    record: Annotated[Path | None, typer.Option(help="Keep the game here as a replay, later ones beside it.")] = None,
) -> None:
    """Play against bots and checkpoints, or against each other."""
    from adapters.people import preset, seat_people
    from snake_pz.play import Session
    from snake_pz.table import Table

    with _clear_errors():
        chosen = preset(rules, width=width, height=height, num_snakes=snakes)
        session = Session(Table(chosen, seat_people(chosen, humans, opponent or ["greedy"])), fps=fps, seed=seed, record=record)
    session.run()
    for path in session.recordings:
        console.print(f"recorded {path}", markup=False, soft_wrap=True)


@app.command()
def watch(
    what: Annotated[list[str], typer.Argument(metavar="REPLAY|PLAYER...", help="A replay; with --players, one per snake.")],
    players: Annotated[bool, typer.Option("--players", help="Play a game among bots and checkpoints.")] = False,
    rules: Annotated[str, typer.Option(help="Of that game: classic, battlesnake or hungry_geese.")] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    max_cycles: Annotated[int, typer.Option(help="Turns after which that game is cut short.")] = 500,
    seed: Annotated[int | None, typer.Option(help="Of that game and its players.")] = None,
    fps: Annotated[float, typer.Option(help="Turns per second.")] = 8,
    record: Annotated[Path | None, typer.Option(help="Write the replay, a few kilobytes.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that plays it in any browser.")] = None,
    gif: Annotated[Path | None, typer.Option(help="Write a GIF.")] = None,
    mp4: Annotated[Path | None, typer.Option(help="Write a film; needs the extra `video`.")] = None,
    ansi: Annotated[bool, typer.Option("--ansi", help="Show it in the terminal.")] = False,
    window: Annotated[bool, typer.Option("--window", help="Open the window although something is written.")] = False,
) -> None:
    """Watch a replay, or a game among players: `watch game.jsonl`, `watch --players greedy greedy survivor model.zip`."""
    from snake_pz import export
    from snake_pz.render import NoDisplayError
    from snake_pz.replay import Replay
    from snake_pz.watch import watch as open_window

    with _clear_errors():
        if fps <= 0:
            raise ValueError(f"fps must be above 0, got {fps}")
        if mp4:
            export.check_mp4()
        if players:
            from adapters.evaluate import record_game
            from adapters.people import preset

            chosen = preset(rules, width=width, height=height, num_snakes=len(what))
            replay = record_game(what, seed=seed, env_kwargs={"rules": chosen, "max_cycles": max_cycles})
        elif len(what) == 1:
            replay = Replay.load(what[0])
        else:
            raise ValueError(f"watch shows one replay, got {len(what)}; for a game among players say --players")
        writers: list[tuple[Path | None, Callable[[Path], None]]] = [
            (record, replay.save),
            (html, lambda path: export.write_html(replay, path)),
            (gif, lambda path: export.write_gif(replay, path, fps)),
            (mp4, lambda path: export.write_mp4(replay, path, fps)),
        ]
        if ansi:
            for turn, text in enumerate(export.texts(replay)):
                # a terminal is drawn over; a file or pipe gets one after the other
                typer.echo(f"\x1b[H\x1b[J{text}" if console.is_terminal else text if turn == 0 else f"\n{text}")
                time.sleep(1 / fps if console.is_terminal else 0)
        for path, write in writers:
            if path is not None:
                write(path)
                console.print(f"wrote {path}, {path.stat().st_size / 1000:,.1f} kB", markup=False, soft_wrap=True)
        if window or not (ansi or any(path for path, _ in writers)):
            try:
                open_window(replay, fps)
            except NoDisplayError as error:
                raise OSError("there is no display to open a window on: say --html FILE, --gif FILE or --ansi") from error


@bench_app.command()
def engine(
    seconds: Annotated[float, typer.Option(help="How long to measure each row.")] = 3.0,
) -> None:
    """Steps per second of the engine, the PettingZoo API and both backends, side by side in one run."""
    from adapters.bench import bench_engine

    console.print(bench_engine(seconds))


@bench_app.command()
def opponents(
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 3.0,
) -> None:
    """What opponents cost a rollout: random, checkpoints, a mixture, and one predict per enemy for comparison."""
    from adapters.bench import bench_opponents

    for table in bench_opponents(seconds):
        console.print(table)


@bench_app.command()
def soak(
    steps: Annotated[int, typer.Option(help="Over all games together.")] = 300_000,
    swap_every: Annotated[int, typer.Option(help="Steps between two swaps of the enemies.")] = 10_000,
) -> None:
    """Step for long while enemies are swapped; fails if memory grows by 3 % or a file stays open."""
    from adapters.bench import bench_soak

    if not bench_soak(steps, swap_every, say=console.print):
        raise typer.Exit(1)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """What a user can mend is one sentence, not a traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        console.print(f"[red]snake-pz: {escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(2) from error
