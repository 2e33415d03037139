"""report.html of a training run, made from the other files in its folder."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from adapters.opponents.pool import OpponentPool
from adapters.ratings import Ratings
from adapters.training.recipe import Recipe
from adapters.training.records import read_measured, read_progress
from snake_pz.escaping import printable
from snake_pz.files import write_text
from snake_pz.replay import Replay
from snake_pz.replay.page import render

COLOURS = {"random": "#56b4e9", "greedy": "#009e73", "survivor": "#d55e00"}
"""Colours of the bots, from the palette of Okabe and Ito, which colour-blind people can tell apart."""


def write_report(run: Path) -> Path:
    """Write `report.html` into the folder of a run: win rates, ratings, the pool, a game and the settings.

    The page needs no other file and no network. Parts whose files do not exist yet are left out.

    Raises:
        FileNotFoundError: the folder has no config.json.
        ValueError: config.json, eval.json or the pool's manifest is damaged.
    """
    recipe = Recipe.load(run / "config.json")
    pool = OpponentPool(run / "pool")
    rows = read_progress(run / "progress.csv")
    progress = [{name: float(value) for name, value in row.items() if value} for row in rows]
    measured = read_measured(run / "eval.json")
    chance = 1 / recipe.game_rules().num_snakes
    game, game_error = _game(run / "game.jsonl")
    page = render(
        "adapters.training",
        "report.html.j2",
        title=f"Training run {printable(run.resolve().name)}",
        steps=f"{measured[-1]['steps'] if measured else 0:,}",
        recipe=recipe,
        measured=_measured(measured, chance),
        selfplay_figure=_selfplay_figure(progress, pool, chance),
        members=_members(pool),
        game=game,
        game_error=game_error,
        settings=[(name, json.dumps(value)) for name, value in asdict(recipe).items()],
    )
    path = run / "report.html"
    write_text(path, page)
    return path


def _game(path: Path) -> tuple[Markup | None, str | None]:
    """HTML that plays the replay, or the error if it cannot be read; the report is written in any case."""
    if not path.exists():
        return None, None
    try:
        return Markup(Replay.load(path)._repr_html_()), None
    except ValueError as error:
        return None, str(error)


def _measured(measured: Sequence[dict[str, Any]], chance: float) -> dict[str, Any] | None:
    """Win rates over the steps, as figure and table; None if nothing was measured."""
    if not measured:
        return None
    steps = [entry["steps"] for entry in measured]
    figure = _figure(1)
    (axes,) = figure.axes
    for bot, colour in COLOURS.items():
        axes.plot(steps, [entry[bot] for entry in measured], "o-", color=colour, label=f"against {bot}")
    axes.axhline(chance, color="#8a95a8", linestyle=":", label="chance")
    axes.set(ylim=(0, 1), ylabel="win rate", xlabel="steps")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    rows = [(f"{entry['steps']:,}", *(f"{entry[bot]:.3f}" for bot in COLOURS)) for entry in measured]
    return {"figure": _svg(figure), "head": ("steps of PPO", *COLOURS), "rows": rows}


def _selfplay_figure(progress: Sequence[dict[str, float]], pool: OpponentPool, chance: float) -> Markup | None:
    """Win rates and ratings of the training games; None if there were none."""
    rows = [row for row in progress if "selfplay/rating" in row]
    if not rows:
        return None
    steps = [row["time/total_timesteps"] for row in rows]
    figure = _figure(2)
    left, right = figure.axes
    left.plot(steps, [row["selfplay/win_rate"] for row in rows], color="#9fb8d0", linewidth=1)
    left.plot(steps, _smooth([row["selfplay/win_rate"] for row in rows]), color="#0072b2")
    left.axhline(chance, color="#8a95a8", linestyle=":")
    left.set(ylim=(0, 1), ylabel="win rate in training", xlabel="steps")
    mu = [row["selfplay/rating"] for row in rows]
    wide = [1.96 * row["selfplay/rating_sigma"] for row in rows]
    right.plot(steps, mu, color="#0072b2", label="learner")
    low, high = ([m + sign * w for m, w in zip(mu, wide, strict=True)] for sign in (-1, 1))
    right.fill_between(steps, low, high, color="#0072b2", alpha=0.15, linewidth=0)
    rated = [(member.step, member.rating) for member in pool.members if member.file and member.games and member.rating]
    if rated:
        right.errorbar(
            [step for step, _ in rated],
            [rating.mu for _, rating in rated],
            yerr=[1.96 * rating.sigma for _, rating in rated],
            fmt="o", color="#e69f00", markersize=4, linewidth=1, label="snapshots",
        )  # fmt: skip
    ratings = Ratings.from_dict(pool.learner.get("ratings", {}))
    for bot, colour in COLOURS.items():
        if bot in ratings:
            right.axhline(ratings[bot].mu, color=colour, linestyle=":", label=bot)
    right.set(ylabel="rating", xlabel="steps")
    right.legend(frameon=False)
    return _svg(figure)


def _smooth(values: Sequence[float], share: float = 0.1) -> list[float]:
    """An exponential moving average."""
    smooth, average = [], values[0]
    for value in values:
        average += share * (value - average)
        smooth.append(average)
    return smooth


def _members(pool: OpponentPool) -> list[tuple[str, ...]]:
    """A row of cells for each member."""
    return [
        (
            member.name,
            "" if member.file is None else f"{member.step:,}",
            f"{member.rating.mu:.1f} ± {1.96 * member.rating.sigma:.1f}" if member.rating else "",
            f"{member.games:,.0f}",
            f"{member.score / member.games:.0%}" if member.games else "",
        )
        for member in pool.members
    ]


def _figure(columns: int) -> Any:
    from matplotlib.figure import Figure  # not pyplot, which would look for a display
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False)[0]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    return figure


def _svg(figure: Any) -> Markup:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    svg = text.getvalue()
    return Markup(svg[svg.index("<svg") :])
