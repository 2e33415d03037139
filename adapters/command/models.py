"""The commands on files of models: `snake-pz export`, `snake-pz card` and `snake-pz bench onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapters.command.options import TRUST, trust_of
from adapters.command.terminal import command

if TYPE_CHECKING:
    from snake_pz.rules import Rules

MODEL = typer.Argument(help="A checkpoint, or champion.")
LICENSE = typer.Option("--license", help="Its licence, an SPDX identifier such as MIT.")
RULES = "classic, battlesnake, battlesnake:MODE or hungry_geese."
WIDTH = typer.Option(help="Cells in a row.")
HEIGHT = typer.Option(help="Cells in a column.")
NUM_SNAKES = typer.Option("--num-snakes", "--snakes", help="Snakes on the board.")
NAME = typer.Option("--name", help="What it is called. Default: the file's name.")


def export(
    model: Annotated[str, MODEL],
    file: Annotated[Path, typer.Argument(help="The ONNX file to write.")],
    vecnormalize: Annotated[
        Path | None, typer.Option(help="Statistics of its VecNormalize, where they are not found beside it.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help=f"{RULES} By which it plays, for the metadata. Default: those of its run, where known.")
    ] = None,
    width: Annotated[int | None, WIDTH] = None,
    height: Annotated[int | None, HEIGHT] = None,
    num_snakes: Annotated[int | None, NUM_SNAKES] = None,
    name: Annotated[str | None, NAME] = None,
    license: Annotated[str | None, LICENSE] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Write a checkpoint as an ONNX file, which plays without torch. Needs the extra `onnx`."""
    with command() as terminal:
        from adapters.opponents.onnx_export import export_onnx
        from snake_pz.files import check_writable

        check_writable(file)
        settings = _settings(_path(model))
        about: dict[str, Any] = {"name": name, "license": license, "training": settings}
        export_onnx(
            _path(model),
            file,
            vecnormalize=vecnormalize,
            trust=trust_of(trust),
            rules=_rules(model, settings, rules, width, height, num_snakes),
            about={key: value for key, value in about.items() if value is not None},
        )
        if file.is_file():
            terminal.say(f"wrote {file}, {file.stat().st_size / 1000:,.1f} kB")


def card(
    model: Annotated[str, typer.Argument(help="A checkpoint or ONNX file of the snake, or champion.")],
    out: Annotated[Path | None, typer.Option(help="The file to write. Default: beside the model, with the ending .md.")] = None,
    games: Annotated[int, typer.Option(help="How many to play against each bot, sampled and likeliest actions each.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the games.")] = 0,
    rules: Annotated[str | None, typer.Option(help=f"{RULES} Default: those of its run, or classic.")] = None,
    width: Annotated[int | None, WIDTH] = None,
    height: Annotated[int | None, HEIGHT] = None,
    num_snakes: Annotated[int | None, NUM_SNAKES] = None,
    name: Annotated[str | None, NAME] = None,
    license: Annotated[str | None, LICENSE] = None,
    notes: Annotated[Path | None, typer.Option(help="A Markdown file on how it came to be.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings of its training, JSON. Default: config.json beside the model.")
    ] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Measure a model against each bot and write its card, Markdown with the metadata that model hubs read."""
    with command() as terminal:
        from adapters.evaluation.card import write_card
        from snake_pz.files import check_writable

        path = _path(model)
        settings = _settings(path, config)
        target = out or path.with_suffix(".md")
        check_writable(target)
        written = write_card(
            path,
            target,
            rules=_rules(model, settings, rules, width, height, num_snakes),
            games=games,
            seed=seed,
            name=name,
            license=license,
            notes=notes.read_text(encoding="utf-8") if notes is not None else "",
            settings=settings,
            trust=trust_of(trust),
            say=terminal.say,
        )
        terminal.say(f"wrote {written}")


def bench_onnx(
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 3.0,
) -> None:
    """Forward passes of policies by torch and as ONNX files. Needs the extra `onnx`."""
    with command() as terminal:
        import torch

        from adapters.command.bench_onnx import bench_onnx as measure

        torch.set_num_threads(1)
        terminal.show(measure(seconds))


def _path(model: str) -> Path:
    from adapters.opponents.parse import CHAMPION

    return CHAMPION if model == "champion" else Path(model)


def _rules(
    model: str, settings: Any, rules: str | None, width: int | None, height: int | None, num_snakes: int | None
) -> Rules | None:
    """The rules that were asked for, else those of the model's run; None if neither is known."""
    from snake_pz.presets import preset

    board: dict[str, Any] = {"width": width, "height": height, "num_snakes": num_snakes}
    trained = settings if isinstance(settings, dict) and isinstance(settings.get("rules"), str) else {}
    if rules is None and not any(board.values()) and not trained and model != "champion":
        return None
    of_run = {name: trained.get(name) for name in board} if rules is None else {}
    given = {name: value if value is not None else of_run.get(name) for name, value in board.items()}
    return preset(rules or trained.get("rules", "classic"), **given)


def _settings(model: Path, config: Path | None = None) -> Any:
    """The settings of a model's training, from the file that is named or from the config.json of its run."""
    import json

    file = config or model.with_name("config.json")
    if config is None and not file.is_file():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} must hold settings as JSON ({error}): name another with --config") from error
