"""One game as a single HTML file that plays it in a browser, without network, server or Python.

The page does not know the rules: it gets what happened, compactly. Snakes are a start and moves, numbers are runs with a
constant slope, food and hazards are changes. Colours and sizes are those of `drawing`.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from snake_pz.core.state import SnakeState, body_cells
from snake_pz.drawing import picture, sprites
from snake_pz.escaping import printable
from snake_pz.rules import Rules


def page(states: Iterable[SnakeState], rules: Rules, names: Sequence[str]) -> str:
    """The HTML document of one game.

    Args:
        states: the game (E = 1) at its start and after every turn.
        rules: its rules.
        names: names of the players by snake.

    Raises:
        ValueError: there are no states.
    """
    return render(
        "snake_pz.replay",
        "page.html.j2",
        title=f"snake-pz: {', '.join(map(printable, names))}",
        game=game_data(states, rules, names),
    )


def render(package: str, template: str, **values: Any) -> str:
    """Render a jinja2 template of a package. Values are escaped; `tojson` makes data safe inside a script element.

    Args:
        package: package of the template, such as "snake_pz.replay".
        template: file name of the template.
        values: variables of the template.
    """
    environment = Environment(loader=PackageLoader(package, ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template(template).render(values)


def frame(document: str, height: int = 640) -> str:
    """An iframe that shows a document inside another page, such as a notebook, isolated from it.

    Args:
        document: the HTML document.
        height: height of the frame in pixels.
    """
    return (
        f'<iframe srcdoc="{html.escape(document)}" sandbox="allow-scripts" title="a game of snake-pz" '
        f'style="width: 100%; max-width: 1000px; height: {height}px; border: 0"></iframe>'
    )


def game_data(states: Iterable[SnakeState], rules: Rules, names: Sequence[str]) -> dict[str, Any]:
    """The data that the page gets. Arguments as for `page`.

    Returns:
        "snakes": for each "start" (cells from tail to head), "moves" (a digit per turn); "path" (number of cells it covers),
        "length", "health" and "blunt" (whether the tail is doubled) as `runs`; "fates" [turn, words, ...], "died" (turn or -1)
        and "mark" (x, y of its death or None). "food" is [turn, cell, ...], where each entry adds or removes the cell's food.
        "hazards" is [turn, cell, times, ...]. "look" has the colours, sizes and shapes of pictures.

    Raises:
        ValueError: there are no states.
    """
    snakes = [_Snake(snake) for snake in range(rules.num_snakes)]
    food: list[int] = []
    hazards: list[int] = []
    nothing = np.zeros(rules.num_cells, np.uint8)
    before_food, before_hazard = nothing, nothing
    turns, over = -1, False
    for turns, state in enumerate(states):
        there, hazard = state.food[0] > 0, state.hazard[0]
        for cell in np.flatnonzero(there != (before_food > 0)).tolist():
            food += [turns, cell]
        for cell in np.flatnonzero(hazard != before_hazard).tolist():
            hazards += [turns, cell, int(hazard[cell])]
        before_food, before_hazard = state.food[0], hazard
        over = bool(state.over[0])
        for snake in snakes:
            snake.take(state, turns, rules, names)
    if turns < 0:
        raise ValueError("a page needs a game with at least its start")
    return {
        "width": rules.width,
        "height": rules.height,
        "wrap": rules.edge == "wrap",
        "health": rules.max_health if rules.uses_health else 0,
        "turns": turns,
        "over": over,
        "names": list(names),
        "snakes": [snake.packed() for snake in snakes],
        "food": food,
        "hazards": hazards,
        "look": {
            "colours": [[_css(colour) for colour in sprites.colours(snake.number)] for snake in snakes],
            "heads": [_shapes(sprites.head(snake.number, 0)) for snake in snakes],
            "marks": [_shapes(sprites.mark(snake.number)) for snake in snakes],
            "food": _shapes(sprites.apple(1.0)),
            "hazards": {times: _shapes(sprites.hazard(times)) for times in sorted(set(hazards[2::3]))},
            "cells": [_css(sprites.LIGHT_CELL), _css(sprites.DARK_CELL)],
            "frame": _css(sprites.FRAME),
            "body": picture.BODY_WIDTH,
            "tail": picture.TAIL_WIDTH,
            "blunt": picture.BLUNT_WIDTH,
            "taper": picture.TAPER,
        },
    }


class _Snake:
    """The data of one snake, collected turn by turn."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.start: list[int] = []
        self.heading = 0
        self.moves: list[str] = []
        self.numbers: dict[str, list[int]] = {"path": [], "length": [], "health": [], "blunt": []}
        self.fates: list[Any] = []
        self.died = -1
        self.mark: tuple[float, float] | None = None

    def take(self, state: SnakeState, turn: int, rules: Rules, names: Sequence[str]) -> None:
        alive = bool(state.alive[0, self.number])
        cells = body_cells(state, 0, self.number).tolist() if alive else []
        path = [cell for cell, _ in itertools.groupby(cells)]
        heading = int(state.heading[0, self.number])
        if turn == 0:
            self.start, self.heading = path[::-1], max(heading, 0)
        elif alive:
            self.moves.append(str(heading))
        if not alive and self.died < 0:
            self.died = turn
            if state.just_died[0, self.number]:
                self.mark = picture.place_of_death(state, self.number, rules.width)
        self.numbers["path"].append(len(path))
        self.numbers["length"].append(int(state.length[0, self.number]))
        self.numbers["health"].append(int(state.health[0, self.number]))
        self.numbers["blunt"].append(int(cells[-2:-1] == cells[-1:]))
        fate = picture.describe(state, self.number, names)
        if self.fates[-1:] != [fate]:
            self.fates += [turn, fate]

    def packed(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "heading": self.heading,
            "moves": "".join(self.moves),
            "died": self.died,
            "mark": self.mark,
            "fates": self.fates,
            **{name: runs(values) for name, values in self.numbers.items()},
        }


def runs(values: Sequence[int]) -> list[int]:
    """Numbers as runs with a constant slope: [start, value, slope, ...], `start` being the index of a run's first value."""
    packed: list[int] = []
    start = 0
    while start < len(values):
        slope = values[start + 1] - values[start] if start + 2 < len(values) else 0
        end = start + 1
        while end < len(values) and values[end] == values[start] + slope * (end - start):
            end += 1
        packed += [start, values[start], slope]
        start = end
    return packed


def _css(colour: sprites.Colour | None) -> str | None:
    return None if colour is None else "#" + bytes(colour).hex()


def _shapes(shapes: Sequence[sprites.Shape]) -> list[Any]:
    return [[*(round(number, 4) for number in ends), _css(colour), opacity] for *ends, colour, opacity in shapes]
