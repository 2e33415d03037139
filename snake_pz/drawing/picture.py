"""The picture of one game on a pygame surface in memory: board, snakes, side panel, at any size and between turns.

A `state` in this file is one game, E = 1. Nothing here needs a display; functions import pygame when called.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from snake_pz.core.state import CAUSES, OFF_BOARD, SnakeState, body_cells
from snake_pz.drawing.sprites import (
    DARK_CELL,
    FAINT,
    FRAME,
    LIGHT_CELL,
    PAPER,
    TEXT,
    Colour,
    Shape,
    apple,
    colour_of,
    disc,
    hazard,
    head,
    load_pygame,
    mark,
    sprite,
    stripe_of,
    text_line,
)
from snake_pz.rules import Rules

if TYPE_CHECKING:
    import pygame

HEADINGS = ((0, -1), (1, 0), (0, 1), (-1, 0))
BODY_WIDTH, TAIL_WIDTH, BLUNT_WIDTH, TAPER = 0.68, 0.2, 0.51, 3.0
"""In cells: width of a body, width of the tip of its tail, of a doubled tail, and length over which the body tapers."""

FATES = {
    "": "not playing",
    "wall": "hit the wall",
    "self": "bit itself",
    "body": "ran into {killer}",
    "head": "met {killer} head-on",
    "starvation": "starved",
    "hazard": "died in a hazard",
    "reverse": "turned back on itself",
    "invalid": "made no move",
}
"""Words for each of `state.CAUSES`."""


class Layout(NamedTuple):
    """Where things are in a picture. All numbers are pixels, except `columns` and `rows`."""

    columns: int
    rows: int
    wrap: bool
    cell: int  # side of a cell
    left: int  # left edge of the board
    top: int  # top edge of the board
    panel: int  # left edge of the panel
    font: int  # height of its text
    width: int  # width of the picture
    height: int  # height of the picture


def default_cell(rules: Rules) -> int:
    """Pixels per cell that make the board's longer side about 450 pixels, on large boards up to 800."""
    longest = max(rules.width, rules.height)
    return min(max(452 // longest, min(14, 800 // longest)), 64)


def make_layout(rules: Rules, cell: int) -> Layout:
    """The layout for this many pixels per cell: board left, panel right, sides multiples of 16 pixels, as video needs them."""
    board_width, board_height = rules.width * cell, rules.height * cell
    font = max(11, round(max(board_width, board_height) / 24))
    panel = board_width + 2 * font
    height = max(board_height + 2 * font, round(font * (4.7 + 2.5 * min(rules.num_snakes, 4))))
    width, height = -(-(panel + 15 * font) // 16) * 16, -(-height // 16) * 16
    return Layout(
        columns=rules.width, rows=rules.height, wrap=rules.edge == "wrap", cell=cell, left=font,
        top=(height - board_height) // 2, panel=panel, font=font, width=width, height=height,
    )  # fmt: skip


def describe(state: SnakeState, snake: int, names: Sequence[str]) -> str:
    """The status of a snake in words: alive, its place, or how and when it died."""
    rank, died, killer = (int(array[0, snake]) for array in (state.rank, state.died, state.killer))
    if state.alive[0, snake]:
        if not state.over[0] or rank == 0:
            return "alive"
        first = int((state.rank[0] == 1).sum())
        return ("wins" if first == 1 else "shares the win") if rank == 1 else f"alive, place {rank}"
    fate = FATES[CAUSES[state.cause[0, snake]]].replace("{killer}", names[killer] if killer >= 0 else "several")
    return f"{fate}, turn {died}" if died >= 0 else fate


def draw_game(
    state: SnakeState, rules: Rules, layout: Layout, names: Sequence[str],
    before: SnakeState | None = None, progress: float = 1.0,
) -> pygame.Surface:  # fmt: skip
    """The picture of one game on a new surface of the layout's size.

    Args:
        state: the game.
        rules: its rules.
        layout: where things are.
        names: one per snake.
        before: the game a turn earlier, to draw the snakes between the two turns; None: as they are in `state`.
        progress: the part of the turn that has passed, 0 to 1.
    """
    load_pygame()
    canvas = _background(layout).copy()
    if before is None or progress >= 1:
        before, progress = None, 1.0
    board = canvas.subsurface((layout.left, layout.top, layout.columns * layout.cell, layout.rows * layout.cell))
    for cell in np.flatnonzero(state.hazard[0]).tolist():
        _blit(board, layout, hazard(int(state.hazard[0, cell])), *_place(layout, cell))
    for cell, size in _food(state, before, progress):
        _blit(board, layout, apple(size * (1 if layout.cell > 20 else 1.35)), *_place(layout, cell))
    dying = np.flatnonzero(state.just_died[0]).tolist()
    if before is not None and dying:
        layer = _transparent(board)
        for snake in dying:
            _draw_dying(layer, layout, state, snake, before, progress)
        layer.set_alpha(round(255 * (1 - progress)))
        board.blit(layer, (0, 0))
    for snake in np.flatnonzero(state.alive[0]).tolist():
        _draw_snake(board, layout, snake, _body(state, snake, before, progress), max(int(state.heading[0, snake]), 0))
    if progress >= 0.5:  # from here on the dying are drawn where they were stopped
        for snake in dying:
            x, y = place_of_death(state, snake, layout.columns)
            _blit(canvas, layout, mark(snake), layout.left + round(x * layout.cell), layout.top + round(y * layout.cell))
    _draw_panel(canvas, state, rules, layout, names)
    return canvas


# --------------------------------------------------------------------------------------------------------------- board


@lru_cache(maxsize=16)
def _background(layout: Layout) -> pygame.Surface:
    """What no turn changes: background, checkered board, and its edge, which is solid for walls and dashed for wrapping."""
    import pygame

    surface = pygame.Surface((layout.width, layout.height), 0, 32)
    surface.fill(PAPER)
    size, left, top = layout.cell, layout.left, layout.top
    board = pygame.Rect(left, top, layout.columns * size, layout.rows * size)
    thick = max(2, layout.font // 4)
    if layout.wrap:
        dash, thin = max(size // 2, 2), max(1, thick // 2)
        for x in range(board.left + (size - dash) // 2, board.right, size):
            surface.fill(FRAME, (x, board.top - thick, dash, thin))
            surface.fill(FRAME, (x, board.bottom + thick - thin, dash, thin))
        for y in range(board.top + (size - dash) // 2, board.bottom, size):
            surface.fill(FRAME, (board.left - thick, y, thin, dash))
            surface.fill(FRAME, (board.right + thick - thin, y, thin, dash))
    else:
        pygame.draw.rect(surface, FRAME, board.inflate(2 * thick, 2 * thick), border_radius=thick)
    for row, column in itertools.product(range(layout.rows), range(layout.columns)):
        shade = DARK_CELL if (row + column) % 2 else LIGHT_CELL
        surface.fill(shade, (left + column * size, top + row * size, size, size))
    return surface


def _place(layout: Layout, cell: int) -> tuple[int, int]:
    """(x, y) of the top left pixel of a cell on the board."""
    row, column = divmod(cell, layout.columns)
    return column * layout.cell, row * layout.cell


def _blit(surface: pygame.Surface, layout: Layout, shapes: tuple[Shape, ...], x: int, y: int) -> None:
    """Draw a sprite of the size of a cell."""
    surface.blit(sprite(shapes, layout.cell, layout.cell), (x, y))


def _food(state: SnakeState, before: SnakeState | None, progress: float) -> Iterator[tuple[int, float]]:
    """Cells and sizes of food. Food being eaten is shown until half of the turn has passed; new food grows."""
    there = np.flatnonzero(state.food[0]).tolist()
    if before is None:
        yield from ((cell, 1.0) for cell in there)
        return
    grown = round(8 * progress) / 8
    for cell in there:
        yield cell, 1.0 if before.food[0, cell] else grown
    if progress < 0.5:
        yield from ((cell, 1.0) for cell in np.flatnonzero((before.food[0] > 0) & (state.food[0] == 0)).tolist())


class _Body(NamedTuple):
    """A body to draw: a stretch of a path. Positions along the path are in cells from its start."""

    path: list[int]  # cells, successive ones different
    head: float  # position of the head
    tail: float  # position of the tip of the tail
    tip: float  # width of the tip in cells


def _standing(state: SnakeState, snake: int) -> _Body:
    """The body after a turn; its tip is blunt if the last two segments are on one cell."""
    cells = body_cells(state, 0, snake).tolist()
    path = [cell for cell, _ in itertools.groupby(cells)]
    return _Body(path, 0, len(path) - 1, BLUNT_WIDTH if cells[-2:-1] == cells[-1:] else TAIL_WIDTH)


def _body(state: SnakeState, snake: int, before: SnakeState | None, progress: float) -> _Body:
    """The body between two turns; as it is in `state` if it cannot have moved there from `before` in one turn."""
    now = _standing(state, snake)
    if before is None or not before.alive[0, snake]:
        return now
    earlier = _standing(before, snake)
    trail = now.path[:1] + earlier.path
    if now.path[:1] == earlier.path[:1] or now.path != trail[: len(now.path)]:
        return now
    rest = 1 - progress
    tail = now.tail + (len(trail) - 1 - now.tail) * rest
    return _Body(trail, rest, tail, now.tip + (earlier.tip - now.tip) * rest)


def _draw_snake(board: pygame.Surface, layout: Layout, snake: int, body: _Body, heading: int) -> None:
    """Draw a joined body that tapers towards its tail, then the head over it."""
    size, taper = layout.cell, min(TAPER, body.tail - body.head)
    narrows = body.tail - taper  # the position from which it tapers
    for colour, scale in ((colour_of(snake), 1.0), (stripe_of(snake), 0.25)):
        if colour is None:
            continue
        tip, full = scale * body.tip * size, round(scale * BODY_WIDTH * size)
        full += (size - full) % 2  # the same parity as a cell, so that it can be centred
        for k, (cell, following) in enumerate(itertools.pairwise(body.path)):
            dx, dy = _step(layout, cell, following)
            start, end = max(k, body.head), min(k + 1, body.tail)
            corners = _corners(layout, cell, following)
            middle = min(max(start, narrows), end)
            if start < middle:
                _draw_bar(board, layout, colour, corners, dx, dy, start - k, middle - k, full)
            if middle < end:
                widths = [tip + (full - tip) * (body.tail - at) / taper for at in (middle, end)]
                _draw_cone(board, layout, colour, corners, dx, dy, middle - k, end - k, *widths)
    on = int(body.head)
    following = body.path[min(on + 1, len(body.path) - 1)]
    dx, dy = _step(layout, body.path[on], following)
    ahead = round((body.head - on) * size)
    for x, y in _corners(layout, body.path[on], following):
        _blit(board, layout, head(snake, heading), x + dx * ahead, y + dy * ahead)


def _draw_dying(
    board: pygame.Surface, layout: Layout, state: SnakeState, snake: int, before: SnakeState, progress: float
) -> None:
    """Draw a snake that dies on this turn, moving half a cell towards where it is stopped, or not at all off the board."""
    heading = max(int(state.heading[0, snake]), 0)
    if state.length[0, snake] > 0 and state.body[0, snake, state.head[0, snake]] != OFF_BOARD:
        body = _body(state, snake, before, progress / 2)
    else:
        body = _standing(before, snake)
    _draw_snake(board, layout, snake, body, heading)


def _transparent(surface: pygame.Surface) -> pygame.Surface:
    """A transparent surface of the same size."""
    import pygame

    return pygame.Surface(surface.get_size(), pygame.SRCALPHA, 32)


def _step(layout: Layout, cell: int, following: int) -> tuple[int, int]:
    """(dx, dy) from a cell to its neighbour, across the seam if that is the way; (0, 0) if the cells are no neighbours."""
    dx, dy = following % layout.columns - cell % layout.columns, following // layout.columns - cell // layout.columns
    if layout.wrap and abs(dx) + abs(dy) != 1:
        dx = {layout.columns - 1: -1, 1 - layout.columns: 1}.get(dx, dx)
        dy = {layout.rows - 1: -1, 1 - layout.rows: 1}.get(dy, dy)
    return (dx, dy) if abs(dx) + abs(dy) == 1 else (0, 0)


def _corners(layout: Layout, cell: int, following: int) -> list[tuple[int, int]]:
    """Pixels (x, y) where a stroke from a cell to its neighbour starts; across a seam two, one of them outside the board."""
    size, (x, y), (to_x, to_y) = layout.cell, _place(layout, cell), _place(layout, following)
    dx, dy = _step(layout, cell, following)
    beyond = (to_x - dx * size, to_y - dy * size)
    return [(x, y)] if (dx, dy) == (0, 0) or beyond == (x, y) else [(x, y), beyond]


def _draw_bar(
    board: pygame.Surface, layout: Layout, colour: Colour, corners: list[tuple[int, int]],
    dx: int, dy: int, start: float, end: float, width: int,
) -> None:  # fmt: skip
    """Draw a stroke with round ends; `start` and `end` are positions from one cell's middle (0) to the next one's (1)."""
    size, bounds = layout.cell, board.get_rect()
    first, last, across = round(start * size), round(end * size), (size - width) // 2
    for x, y in corners:
        if dx:
            bar = (x + size // 2 + (first if dx > 0 else -last), y + across, last - first, width)
        else:
            bar = (x + across, y + size // 2 + (first if dy > 0 else -last), width, last - first)
        if dx or dy:
            board.fill(colour, bounds.clip(bar))  # pygame would shift, not clip, what lies outside on the left or above
        for stop in (first, last):
            _blit(board, layout, (disc(0, 0, width / 2 / size, colour),), x + dx * stop, y + dy * stop)


def _draw_cone(
    board: pygame.Surface, layout: Layout, colour: Colour, corners: list[tuple[int, int]],
    dx: int, dy: int, start: float, end: float, wide: float, narrow: float,
) -> None:  # fmt: skip
    """Draw a stroke whose width in pixels changes linearly, as discs close enough together for a smooth edge."""
    size = layout.cell
    first, last = round(start * size), round(end * size)
    for stop in {*range(first, last, max(1, size // 12)), last}:
        width = wide + (narrow - wide) * (stop - first) / max(last - first, 1)
        shapes = (disc(0, 0, round(2 * width) / 4 / size, colour),)  # rounded to half pixels: few sprites to cache
        for x, y in corners:
            _blit(board, layout, shapes, x + dx * stop, y + dy * stop)


def place_of_death(state: SnakeState, snake: int, columns: int) -> tuple[float, float]:
    """Where a snake was stopped: before the body or head that it ran into, on the edge of the board, or at its head.

    Args:
        state: the game on the turn on which the snake dies.
        snake: index of the snake.
        columns: columns of the board.

    Returns:
        (x, y) in cells; (0, 0) is the first cell.
    """
    at = int(state.head[0, snake])
    dx, dy = HEADINGS[max(state.heading[0, snake], 0)]
    cell, back = int(state.body[0, snake, at]), 0.0
    if cell == OFF_BOARD:
        cell, back = int(state.body[0, snake, at - 1]), -0.5
    elif CAUSES[state.cause[0, snake]] in ("self", "body", "head"):
        back = 0.75
    y, x = divmod(cell, columns)
    return x - back * dx, y - back * dy


# --------------------------------------------------------------------------------------------------------------- panel


def _write(
    canvas: pygame.Surface, text: str, size: int, colour: Colour, left: int, right: int, y: float, *, flush_right: bool = False
) -> None:
    """Draw a line of text between two columns of pixels, vertically centred on `y`."""
    line = text_line(text, size, colour, right - left)
    canvas.blit(line, (right - line.get_width() if flush_right else left, round(y - line.get_height() / 2)))


def _draw_panel(canvas: pygame.Surface, state: SnakeState, rules: Rules, layout: Layout, names: Sequence[str]) -> None:
    """Draw the turn and a row per snake: two lines each, or one where there are many snakes."""
    font, left, right = layout.font, layout.panel, layout.width - layout.font
    small = round(0.85 * font)
    _write(canvas, f"Turn {state.turn[0]}", round(1.5 * font), TEXT, left, right, 1.7 * font)
    if state.over[0]:
        _write(canvas, "game over", font, TEXT, left, right, 1.7 * font, flush_right=True)
    _write(canvas, "length", small, FAINT, left, right, 3.2 * font, flush_right=True)
    top = 4.2 * font
    room, snakes = layout.height - 0.5 * font - top, rules.num_snakes
    row = min(max(room / snakes, 1.5 * font), 3.0 * font)
    shown = snakes if snakes * row <= room + 1 else int(room / row) - 1
    for snake in range(shown):
        _draw_row(canvas, state, rules, layout, names, snake, top + row * (snake + 0.5), row >= 2.4 * font)
    if shown < snakes:
        _write(canvas, f"and {snakes - shown} more", small, FAINT, left, right, top + row * (shown + 0.5))


def _draw_row(
    canvas: pygame.Surface, state: SnakeState, rules: Rules, layout: Layout, names: Sequence[str],
    snake: int, y: float, two_lines: bool,
) -> None:  # fmt: skip
    """Draw a snake's row: head (a mark if it is dead), name, length, and in the second line health or status."""
    font, right = layout.font, layout.width - layout.font
    small, left, bar_right = round(0.85 * font), layout.panel + round(2.6 * font), right - 3 * font
    alive = bool(state.alive[0, snake])
    colour = TEXT if alive else FAINT
    icon = round((1.9 if two_lines else 1.3) * font)
    canvas.blit(sprite(head(snake, 1) if alive else mark(snake), icon, icon), (layout.panel, round(y - icon / 2)))
    name = names[snake] if alive or two_lines else f"{names[snake]}: {CAUSES[state.cause[0, snake]]}"
    upper, lower = (y - 0.55 * font, y + 0.7 * font) if two_lines else (y, y)
    _write(canvas, name, font, colour, left, bar_right, upper)
    _write(canvas, str(state.length[0, snake]), font, colour, bar_right, right, upper, flush_right=True)
    if not two_lines:
        return
    if alive and rules.uses_health and not state.over[0]:
        health, height = int(state.health[0, snake]), max(3, font // 3)
        bar = (left, round(lower - height / 2), bar_right - left, height)
        canvas.fill(LIGHT_CELL, bar)
        canvas.fill(colour_of(snake), (*bar[:2], bar[2] * health // rules.max_health, height))
        _write(canvas, str(health), small, FAINT, bar_right, right, lower, flush_right=True)
    else:
        _write(canvas, describe(state, snake, names), small, colour, left, right, lower)
