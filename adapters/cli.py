"""The `snake-pz` command: parses, calls, prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
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
