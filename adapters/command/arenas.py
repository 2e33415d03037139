"""The commands for other arenas: `snake-pz serve battlesnake`, `snake-pz bench serve`, `snake-pz import`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from adapters.command.options import TRUST, WHO, trust_of
from adapters.command.terminal import command

serve_app = typer.Typer(help="Serve a player to games that other programs run.", no_args_is_help=True)


@serve_app.callback()
def serve() -> None:
    """Serve a player to games that other programs run."""  # with a callback, `battlesnake` is said although it is the only one


@serve_app.command()
def battlesnake(
    player: Annotated[str, typer.Option(help=f"Who plays: {WHO}.")] = "champion",
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0: all, so that other machines reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    author: Annotated[str, typer.Option(help="Your name at Battlesnake.")] = "",
    color: Annotated[str, typer.Option(help="Of the snake, #rrggbb.")] = "#3e8e41",
    head: Annotated[str, typer.Option(help="The name of one of Battlesnake's heads.")] = "default",
    tail: Annotated[str, typer.Option(help="The name of one of its tails.")] = "default",
    sample: Annotated[
        bool, typer.Option("--sample", help="Checkpoints draw their moves; else they make the likeliest.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where checkpoints predict: auto, cpu, cuda, ...")] = "auto",
    rate: Annotated[float, typer.Option(help="Requests per second that one host may make.")] = 500.0,
    idle: Annotated[float, typer.Option(help="Seconds after which a game that nobody asks about is forgotten.")] = 600.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log moves only where the player was late or failed.")] = False,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Serve Battlesnake's API; the log goes to standard output as JSON lines. Needs the extra `serve`."""
    with command():
        from adapters.serving.moves import MoveMaker

        try:
            from adapters.serving.battlesnake_server import Limits, Look
            from adapters.serving.battlesnake_server import serve as serve_battlesnake
        except ModuleNotFoundError as error:
            raise OSError(f"serving needs starlette and uvicorn ({error}): pip install 'snake-pz[serve]'") from None

        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda *_: sys.exit(0))
        maker = MoveMaker(player, device=device, deterministic=not sample, trust=trust_of(trust))
        look, limits = Look(author, color, head, tail), Limits(rate, idle)
        serve_battlesnake(maker, host=host, port=port, look=look, limits=limits, level="info" if quiet else "debug")


def bench_serve(
    player: Annotated[str, typer.Option(help=f"Who plays: {WHO}.")] = "champion",
    games: Annotated[int, typer.Option(min=1, help="At once.")] = 4,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = 10.0,
) -> None:
    """Moves per second of one Battlesnake server on one core, and how long each takes. Needs the extra `serve`."""
    with command() as terminal:
        from adapters.command.bench_serve import bench_serve as measure

        terminal.show(measure(player, games, seconds))


def import_recorded(
    game: Annotated[Path, typer.Argument(help="Frames or lines of Battlesnake, or an episode of Kaggle's geese.")],
    record: Annotated[Path | None, typer.Option(help="Where to write the replay. Default: GAME.replay.jsonl.")] = None,
) -> None:
    """Make a replay of a game that another program recorded, checked against the rules turn by turn, for `watch`."""
    with command() as terminal:
        from snake_pz.replay.importing import import_game, read_recorded

        recorded = read_recorded(game)
        replay, differences = import_game(recorded)
        path = game.with_suffix(".replay.jsonl") if record is None else record
        replay.save(path)
        for difference in differences:
            terminal.say(difference)
        length = f"{len(replay.actions)} of {len(recorded.moves)} turns"
        terminal.say(f"wrote {path}: {length}" if differences else f"wrote {path}: {length}, all as by the rules")
