"""The commands on files of models: `snake-pz export`, `snake-pz card` and `snake-pz bench onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.command.options import TRUST, trust_of
from adapters.command.terminal import command

MODEL = typer.Argument(help="A checkpoint, or champion.")
LICENSE = typer.Option("--license", help="Its licence, an SPDX identifier such as MIT.")
NAME = typer.Option("--name", help="What it is called. Default: the file's name.")


def export(
    model: Annotated[str, MODEL],
    file: Annotated[Path, typer.Argument(help="The ONNX file to write.")],
    vecnormalize: Annotated[
        Path | None, typer.Option(help="Statistics of its VecNormalize, where they are not found beside it.")
    ] = None,
    name: Annotated[str | None, NAME] = None,
    license: Annotated[str | None, LICENSE] = None,
    trust: Annotated[list[str] | None, TRUST] = None,
) -> None:
    """Write a checkpoint as an ONNX file, which plays without torch. Needs the extra `onnx`."""
    with command() as terminal:
        from adapters.opponents.onnx_export import export_onnx
        from snake_pz.files import check_writable

        check_writable(file)
        about: dict[str, Any] = {"name": name, "license": license, "training": _settings(_path(model))}
        known = {key: value for key, value in about.items() if value is not None}
        export_onnx(_path(model), file, vecnormalize=vecnormalize, trust=trust_of(trust), about=known)
        if file.is_file():
            terminal.say(f"wrote {file}, {file.stat().st_size / 1000:,.1f} kB")


def card(
    model: Annotated[str, typer.Argument(help="A checkpoint or ONNX file of the snake, or champion.")],
    out: Annotated[Path | None, typer.Option(help="The file to write. Default: beside the model, with the ending .md.")] = None,
    games: Annotated[int, typer.Option(help="How many to play against each bot, sampled and likeliest actions each.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the games.")] = 0,
    rules: Annotated[str, typer.Option(help="classic, battlesnake, battlesnake:MODE or hungry_geese.")] = "classic",
    width: Annotated[int | None, typer.Option(help="Cells in a row.")] = None,
    height: Annotated[int | None, typer.Option(help="Cells in a column.")] = None,
    num_snakes: Annotated[int | None, typer.Option("--num-snakes", "--snakes", help="Snakes on the board.")] = None,
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
        from snake_pz.presets import preset

        path = _path(model)
        target = out or path.with_suffix(".md")
        check_writable(target)
        written = write_card(
            path,
            target,
            rules=preset(rules, width=width, height=height, num_snakes=num_snakes),
            games=games,
            seed=seed,
            name=name,
            license=license,
            notes=notes.read_text(encoding="utf-8") if notes is not None else "",
            settings=_settings(path, config),
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
