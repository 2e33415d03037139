"""The picture of a tournament: who was placed above whom, and beside it the ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure  # not pyplot, which would look for a display
from numpy.typing import NDArray

from snake_pz.escaping import printable
from snake_pz.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from adapters.ratings import Rating

COLOURS = "RdBu"
"""Red to blue over white: told apart by colour-blind people too."""
INK, FAINT = "#1a2029", "#5d687a"
CELL = 0.55
"""Inches."""


def draw(path: Path, title: str, names: Sequence[str], ratings: Sequence[Rating], payoff: NDArray[np.float64]) -> None:
    """Write the picture as a PNG; a row per player in both halves.

    Args:
        path: of the file.
        title: above all.
        names: of the P players, the best rated first, as in what follows.
        ratings: of each.
        payoff: (P, P) how often the one of the row was placed above the one of the column; NaN where they did not meet.
    """
    names = [printable(name).replace("$", r"\$") for name in names]  # between two of which it would read formulas
    players = len(names)
    side, longest = _side(players), _width(names)
    figure = Figure(figsize=(side + longest + 4.2, side + 0.75 * longest + 1.5), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(side, 3.4))
    _draw_payoff(left, names, payoff)
    _draw_ratings(right, ratings)
    left.set_yticks(range(players), names)
    left.set_ylim(players - 0.5, -0.5)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")


def _draw_payoff(axes: Axes, names: Sequence[str], payoff: NDArray[np.float64]) -> None:
    players = len(names)
    axes.set_title("row placed above column, % of meetings", loc="left", fontsize=10, color=INK)
    axes.set_facecolor("#e9ecf1")  # seen where two never met
    axes.imshow(np.ma.masked_invalid(payoff), cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(payoff):
        if not np.isnan(share):
            colour = "white" if abs(share - 0.5) > 0.28 else INK
            axes.text(column, row, _percent(share), ha="center", va="center", color=colour, fontsize=10)
    axes.set_xticks(range(players), names, rotation=0 if players <= 4 else 45, ha="center" if players <= 4 else "right")
    axes.tick_params(length=0, labelcolor=INK)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(players + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(players + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)


def _draw_ratings(axes: Axes, ratings: Sequence[Rating]) -> None:
    axes.set_title("rating, 95 % interval", loc="left", fontsize=10, color=INK)
    mus = [rating.mu for rating in ratings]
    wide = [1.96 * rating.sigma for rating in ratings]
    rows = range(len(mus))
    axes.errorbar(mus, rows, xerr=wide, fmt="o", color="#2166ac", capsize=3, markersize=5, linewidth=1.5)
    for row, mu, half in zip(rows, mus, wide, strict=True):
        axes.annotate(f"{mu:.1f}", (mu + half, row), (6, 0), textcoords="offset points", va="center", color=INK, fontsize=9)
    axes.margins(x=0.18)
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(length=0, labelcolor=FAINT)
    axes.tick_params(axis="y", which="both", labelleft=False, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _side(players: int) -> float:
    """Of the heat map, in inches."""
    return max(2.6, CELL * players)


def _width(names: Sequence[str]) -> float:
    """Of the longest name, in inches."""
    return 0.085 * max(len(name) for name in names)


def _percent(share: float) -> str:
    """Never 0 or 100 for what was not always so."""
    shown = f"{100 * share:.0f}"
    if shown == "100" and share < 1:
        return ">99"
    return "<1" if shown == "0" and share > 0 else shown
