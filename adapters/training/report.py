"""report.html of a training run: one file that shows how it went, made from what else is in the folder."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.opponents.pool import OpponentPool
from adapters.ratings import Ratings
from adapters.training.recipe import Recipe
from snake_pz.files import replacing
from snake_pz.replay import Replay

COLOURS = {"random": "#56b4e9", "greedy": "#009e73", "survivor": "#d55e00"}
"""Of the bots; from the palette of Okabe and Ito, which colour-blind people can tell apart."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 1000px; margin: 24px auto; padding: 0 16px;
  color: #1a2029; background: #fff; }}
h1 {{ font-size: 24px; margin: 0 0 4px; }} h2 {{ font-size: 18px; margin: 28px 0 8px; }}
p {{ margin: 4px 0 12px; }} .faint {{ color: #5d687a; }}
svg {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid #e3e7ed; }}
th:first-child, td:first-child {{ text-align: left; }}
.scroll {{ overflow-x: auto; }}
.settings td, .settings th {{ text-align: left; }}
iframe {{ border: 0; width: 100%; }}
</style>
<h1>{title}</h1>
<p class="faint">{lead}</p>
{body}
</html>
"""


def write_report(run: Path) -> Path:
    """Write `report.html` into the folder of a run: win rates, ratings, the pool, a game and the settings.

    It needs nothing beside it and no network. What the run has not written yet is left out.

    Raises:
        FileNotFoundError: the folder has no config.json.
    """
    recipe = Recipe.load(run / "config.json")
    pool = OpponentPool(run / "pool")
    progress = _progress(run / "progress.csv")
    measured = json.loads((run / "eval.json").read_text())["measured"] if (run / "eval.json").exists() else []
    chance = 1 / recipe.game_rules().num_snakes
    parts = []
    if measured:
        parts += ["<h2>Win rates against bots</h2>", _measured_figure(measured, chance), _measured_table(measured)]
    if any("selfplay/rating" in row for row in progress):
        parts += [
            "<h2>Self-play</h2>",
            "<p>Left: how often the learner was first in its training games, whose opponents change. Right: ratings from "
            "placements in these games, with 95 % intervals; a dot is a snapshot in the pool. At every snapshot all games "
            "begin anew, and the first to end are mostly lost: hence the dips.</p>",
            _selfplay_figure(progress, pool, chance),
        ]
    if pool.members:
        parts += ["<h2>The pool</h2>", _pool_table(pool)]
    if (run / "game.jsonl").exists():
        parts += ["<h2>A game</h2>", *_game(run / "game.jsonl")]
    parts += ["<h2>Settings</h2>", "<p>config.json; <code>snake-pz train --config config.json</code> runs it again.</p>"]
    rows = [(name, json.dumps(value)) for name, value in asdict(recipe).items()]
    parts.append(f'<div class="settings">{_table(("setting", "value"), rows)}</div>')
    steps = measured[-1]["steps"] if measured else 0
    lessons = f", after {recipe.teacher_steps:,} of imitating {recipe.teacher}" if recipe.teacher_steps else ""
    page = _PAGE.format(
        title=f"Training run {html.escape(run.resolve().name)}",
        lead=f"{steps:,} steps of PPO{lessons}; {len(pool.members)} members in the pool, seed {recipe.seed}",
        body="\n".join(parts),
    )
    path = run / "report.html"
    with replacing(path) as temporary:
        temporary.write_text(page)
    return path


def _game(path: Path) -> list[str]:
    """A page that plays it, or why there is none: other rules or damage are no reason to be without a report."""
    try:
        page = Replay.load(path)._repr_html_()
    except ValueError as error:
        return [f"<p>It cannot be shown: {html.escape(str(error))}</p>"]
    return ['<p>After the training, against the bots. By itself: <a href="game.html">game.html</a>.</p>', page]


def _progress(path: Path) -> list[dict[str, float]]:
    """The rows of a progress.csv, without what is empty."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]


def _measured_figure(measured: Sequence[dict[str, Any]], chance: float) -> str:
    steps = [entry["steps"] for entry in measured]
    figure = _figure(1)
    (axes,) = figure.axes
    for bot, colour in COLOURS.items():
        axes.plot(steps, [entry[bot] for entry in measured], "o-", color=colour, label=f"against {bot}")
    axes.axhline(chance, color="#8a95a8", linestyle=":", label="chance")
    axes.set(ylim=(0, 1), ylabel="win rate", xlabel="steps")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return _svg(figure)


def _measured_table(measured: Sequence[dict[str, Any]]) -> str:
    rows = [(f"{entry['steps']:,}", *(f"{entry[bot]:.3f}" for bot in COLOURS)) for entry in measured]
    return _table(("steps of PPO", *COLOURS), rows)


def _selfplay_figure(progress: Sequence[dict[str, float]], pool: OpponentPool, chance: float) -> str:
    rows = [row for row in progress if "selfplay/rating" in row]
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


def _pool_table(pool: OpponentPool) -> str:
    rows = [
        (
            member.name,
            "" if member.file is None else f"{member.step:,}",
            f"{member.rating.mu:.1f} ± {1.96 * member.rating.sigma:.1f}" if member.rating else "",
            f"{member.games:,.0f}",
            f"{member.score / member.games:.0%}" if member.games else "",
        )
        for member in pool.members
    ]
    return _table(("member", "steps", "rating", "recent games", "learner was above"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return '<div class="scroll"><table>' + "".join(lines) + "</table></div>"


def _figure(columns: int) -> Any:
    from matplotlib.figure import Figure  # not pyplot, which would look for a display
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False)[0]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    return figure


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
