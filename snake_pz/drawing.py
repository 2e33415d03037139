"""The picture of one game on a pygame surface in memory: board, snakes, side panel, at any size.

All shapes are anti-aliased sprites, painted once for each size and colour and blitted from then on. Nothing here needs a
display or touches one; pygame is imported inside the functions.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from snake_pz.rules import Rules
from snake_pz.state import CAUSES, OFF_BOARD, SnakeState, body_cells

if TYPE_CHECKING:
    import pygame

Colour = tuple[int, int, int]
Shape = tuple[float, float, float, float, float, Colour, float]
"""A stroke with round ends: x0, y0, x1, y1, radius (a disc where both ends coincide), colour, opacity 0 to 1."""

PALETTE: tuple[Colour, ...] = (
    (86, 180, 233), (230, 159, 0), (0, 158, 115), (204, 121, 167), (240, 228, 66), (213, 94, 0), (0, 114, 178), (222, 222, 222),
)  # fmt: skip
"""Colours of snakes 0 to 7, told apart with any colour vision: Okabe and Ito, "Color Universal Design", 2008, with a light
grey for their black. Snakes 8 to 15 wear the same with a dark stripe, all later ones with a stripe of another colour."""

PAPER, LIGHT_CELL, DARK_CELL = (16, 20, 27), (35, 42, 54), (31, 37, 48)
FRAME, TEXT, FAINT, INK, WHITE = (126, 138, 158), (232, 236, 242), (138, 149, 168), (12, 15, 20), (255, 255, 255)
APPLE, LEAF, HAZARD_TAPE = (236, 72, 72), (120, 190, 80), (214, 178, 94)

HEADINGS = ((0, -1), (1, 0), (0, 1), (-1, 0))
BODY_WIDTH, TAIL_WIDTH, TAPER = 0.68, 0.2, 3.0
"""Of a cell: the width of a body, of the tip of its tail, and the length over which one becomes the other."""

FATES = {
    "": "not playing",
    "wall": "hit the wall",
    "self": "bit itself",
    "body": "ran into {killer}",
    "head": "met {killer} head-on",
    "starvation": "starved",
    "hazard": "died in a hazard",
    "reverse": "turned back on itself",
}
"""What each of `state.CAUSES` is called."""


class Layout(NamedTuple):
    """Where things are in a picture, all in pixels but the board's columns and rows."""

    columns: int
    rows: int
    wrap: bool
    cell: int
    left: int  # of the board
    top: int
    panel: int  # left of the panel
    font: int
    width: int  # of the picture
    height: int


def default_cell(rules: Rules) -> int:
    """Pixels a cell that make a board about 450 pixels long, up to 800 if its cells would be too small to see."""
    longest = max(rules.width, rules.height)
    return min(max(452 // longest, min(14, 800 // longest)), 64)


def make_layout(rules: Rules, cell: int) -> Layout:
    """Board on the left, panel on the right, text as large as suits the board; whole blocks of 16 pixels, for video."""
    board_width, board_height = rules.width * cell, rules.height * cell
    font = max(11, round(max(board_width, board_height) / 24))
    panel = board_width + 2 * font
    height = max(board_height + 2 * font, round(font * (4.7 + 2.5 * min(rules.num_snakes, 4))))
    width, height = -(-(panel + 15 * font) // 16) * 16, -(-height // 16) * 16
    return Layout(
        columns=rules.width, rows=rules.height, wrap=rules.edge == "wrap", cell=cell, left=font,
        top=(height - board_height) // 2, panel=panel, font=font, width=width, height=height,
    )  # fmt: skip


def has_health(rules: Rules) -> bool:
    """Whether health means anything in this game."""
    return rules.hunger == "health" or rules.hazard_damage != 0


def describe(state: SnakeState, game: int, snake: int, names: Sequence[str]) -> str:
    """How it stands with a snake, in words."""
    rank, died, killer = (int(array[game, snake]) for array in (state.rank, state.died, state.killer))
    if state.alive[game, snake]:
        if not state.over[game] or rank == 0:
            return "alive"
        first = int((state.rank[game] == 1).sum())
        return ("wins" if first == 1 else "shares the win") if rank == 1 else f"alive, place {rank}"
    fate = FATES[CAUSES[state.cause[game, snake]]].replace("{killer}", names[killer] if killer >= 0 else "several")
    return f"{fate}, turn {died}" if died >= 0 else fate


@cache
def load_pygame() -> None:
    """Import what is used of pygame, without its greeting on stdout and its warnings about packages."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pygame.font
        import pygame.surfarray

        pygame.font.init()
        pygame.font.Font(None, 12)  # the first one imports more, with warnings of its own


def draw_game(state: SnakeState, rules: Rules, game: int, layout: Layout, names: Sequence[str]) -> pygame.Surface:
    """The picture of one game on a new surface of the layout's size."""
    load_pygame()
    canvas = _background(layout).copy()
    board = canvas.subsurface((layout.left, layout.top, layout.columns * layout.cell, layout.rows * layout.cell))
    for cell in np.flatnonzero(state.hazard[game]).tolist():
        _blit(board, layout, _hazard(int(state.hazard[game, cell])), *_place(layout, cell))
    for cell in np.flatnonzero(state.food[game]).tolist():
        _blit(board, layout, _FOOD, *_place(layout, cell))
    for snake in np.flatnonzero(state.alive[game]).tolist():
        _draw_snake(board, layout, snake, body_cells(state, game, snake).tolist(), int(state.heading[game, snake]))
    for snake in np.flatnonzero(state.just_died[game]).tolist():
        _blit(canvas, layout, _mark(snake), *_place_of_death(state, game, snake, layout))
    _draw_panel(canvas, state, rules, game, layout, names)
    return canvas


# ------------------------------------------------------------------------------------------------------------- sprites


@lru_cache(maxsize=1024)
def _sprite(shapes: tuple[Shape, ...], unit: int, side: int) -> pygame.Surface:
    """Shapes painted over each other on a transparent square of `side` pixels, the origin in its middle.

    Args:
        shapes: in units, the lowest first.
        unit: pixels.
        side: pixels; even if `unit` is, so that the middle of the square is the middle of a cell.
    """
    import pygame

    y, x = (np.indices((side, side)) + 0.5 - side / 2) / unit
    rgb, alpha = np.zeros((side, side, 3)), np.zeros((side, side, 1))
    for x0, y0, x1, y1, radius, colour, opacity in shapes:
        dx, dy = x1 - x0, y1 - y0
        along = np.clip(((x - x0) * dx + (y - y0) * dy) / max(dx * dx + dy * dy, 1e-9), 0, 1)
        distance = np.hypot(x - x0 - along * dx, y - y0 - along * dy)
        cover = (np.clip((radius - distance) * unit + 0.5, 0, 1) * opacity)[..., None]
        total = cover + alpha * (1 - cover)
        rgb = (np.array(colour) * cover + rgb * alpha * (1 - cover)) / np.maximum(total, 1e-9)
        alpha = total
    surface = pygame.Surface((side, side), pygame.SRCALPHA, 32)
    pygame.surfarray.pixels3d(surface)[:] = np.rint(rgb).transpose(1, 0, 2)
    pygame.surfarray.pixels_alpha(surface)[:] = np.rint(alpha[..., 0] * 255).T
    return surface


@lru_cache(maxsize=4096)
def _text(text: str, size: int, colour: Colour, room: int) -> pygame.Surface:
    """A line of text at most `room` pixels wide, cut with dots where it is longer."""
    import pygame

    pygame.font.init()
    font = pygame.font.Font(None, size)  # made anew each time: a font kept would not survive a pygame.quit() by others
    shown = text
    while text and font.size(shown)[0] > room:
        text = text[:-1]
        shown = text + "..."
    return font.render(shown, True, colour)


def _disc(x: float, y: float, radius: float, colour: Colour, opacity: float = 1.0) -> Shape:
    return x, y, x, y, radius, colour, opacity


def _colour(snake: int) -> Colour:
    return PALETTE[snake % len(PALETTE)]


def _stripe(snake: int) -> Colour | None:
    style = snake // len(PALETTE)
    return (None, INK)[style] if style < 2 else _colour(snake + (style - 2) % 7 + 1)


@lru_cache(maxsize=1024)
def _head(snake: int, heading: int) -> tuple[Shape, ...]:
    """A head in units of a cell: skull, stripe, eyes looking ahead."""
    shapes: list[Shape] = [(0, 0.08, 0, -0.06, 0.41, _colour(snake), 1.0)]
    stripe = _stripe(snake)
    if stripe is not None:
        shapes.append((0, 0.5, 0, 0.12, 0.085, stripe, 1.0))
    for x in (-0.19, 0.19):
        shapes += [_disc(x, -0.14, 0.16, INK, 0.35), _disc(x, -0.14, 0.145, WHITE), _disc(x, -0.185, 0.085, INK)]
    for _ in range(heading):  # a quarter turn to the right each
        shapes = [(-y0, x0, -y1, x1, *look) for x0, y0, x1, y1, *look in shapes]  # type: ignore[misc]
    return tuple(shapes)


def _mark(snake: int) -> tuple[Shape, ...]:
    """Of a death, in units of a cell: a cross on a disc."""
    a = 0.13
    strokes = ((-a, -a, a, a, 0.055, INK, 1.0), (-a, a, a, -a, 0.055, INK, 1.0))
    return _disc(0, 0, 0.36, INK, 0.8), _disc(0, 0, 0.31, _colour(snake)), *strokes


@lru_cache(maxsize=256)
def _hazard(times: int) -> tuple[Shape, ...]:
    """Tape across a cell, the more opaque the more often the cell is listed."""
    opacity = min(0.25 + 0.15 * times, 1.0)
    stripes = [(at - 1, 1.0, at + 1, -1.0, 0.06, HAZARD_TAPE, opacity) for at in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    return _disc(0, 0, 1, HAZARD_TAPE, 0.08), *stripes


_FOOD: tuple[Shape, ...] = (
    _disc(0, 0.05, 0.27, APPLE),
    (0.02, -0.2, 0.12, -0.3, 0.055, LEAF, 1.0),
    _disc(-0.1, -0.04, 0.06, WHITE, 0.7),
)


# --------------------------------------------------------------------------------------------------------------- board


@lru_cache(maxsize=16)
def _background(layout: Layout) -> pygame.Surface:
    """What never changes: the paper, the checkered board and its edge, solid for a wall and dashed where the board wraps."""
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
    """A sprite of the size of a cell."""
    surface.blit(_sprite(shapes, layout.cell, layout.cell), (x, y))


def _draw_snake(board: pygame.Surface, layout: Layout, snake: int, cells: list[int], heading: int) -> None:
    """A joined body that tapers to its tail, bluntly where the last two segments lie on one cell, and the head over it."""
    path = [cell for cell, _ in itertools.groupby(cells)]
    size = layout.cell
    tip_width = 0.75 * BODY_WIDTH if cells[-2:-1] == cells[-1:] else TAIL_WIDTH
    taper = min(TAPER, len(path) - 1)
    for colour, scale in ((_colour(snake), 1.0), (_stripe(snake), 0.25)):
        if colour is None:
            continue
        tip, body = scale * tip_width * size, round(scale * BODY_WIDTH * size)
        body += (size - body) % 2  # in the middle of a cell to the pixel
        for k, (cell, following) in enumerate(itertools.pairwise(path)):
            to_tip = len(path) - 1 - k  # cells
            start, end = (tip + (body - tip) * min(rest / taper, 1.0) for rest in (to_tip, to_tip - 1))
            (x, y), (to_x, to_y) = _place(layout, cell), _place(layout, following)
            dx, dy = _step(layout, cell, following)
            _draw_link(board, layout, colour, x, y, dx, dy, start, end)
            if (x + dx * size, y + dy * size) != (to_x, to_y):  # across the seam: the other half comes in from outside
                _draw_link(board, layout, colour, to_x - dx * size, to_y - dy * size, dx, dy, start, end)
    _blit(board, layout, _head(snake, heading), *_place(layout, path[0]))


def _step(layout: Layout, cell: int, following: int) -> tuple[int, int]:
    """(dx, dy) from a cell to its neighbour, out of the board where that is across the seam; (0, 0) for no neighbour."""
    dx, dy = following % layout.columns - cell % layout.columns, following // layout.columns - cell // layout.columns
    if layout.wrap and abs(dx) + abs(dy) != 1:
        dx = {layout.columns - 1: -1, 1 - layout.columns: 1}.get(dx, dx)
        dy = {layout.rows - 1: -1, 1 - layout.rows: 1}.get(dy, dy)
    return (dx, dy) if abs(dx) + abs(dy) == 1 else (0, 0)


def _draw_link(
    board: pygame.Surface, layout: Layout, colour: Colour, x: int, y: int, dx: int, dy: int, start: float, end: float
) -> None:
    """A stroke with round ends from one cell's middle to the next one's; `start` and `end` are its widths in pixels."""
    size = layout.cell
    stops: Sequence[int] = (0, size)
    if start == end:
        width = round(start)
        across = (size - width) // 2
        if dx:
            board.fill(colour, (min(x, x + dx * size) + size // 2, y + across, size, width))
        elif dy:
            board.fill(colour, (x + across, min(y, y + dy * size) + size // 2, width, size))
    else:
        stops = range(0, size + 1, max(1, size // 12))  # so close that discs make a smooth edge
    for stop in stops:
        width_here = start + (end - start) * stop / size
        _blit(board, layout, (_disc(0, 0, width_here / 2 / size, colour),), x + dx * stop, y + dy * stop)


def _place_of_death(state: SnakeState, game: int, snake: int, layout: Layout) -> tuple[int, int]:
    """Where in the picture a snake was stopped: short of what it ran into, else where its head is."""
    size, at = layout.cell, int(state.head[game, snake])
    dx, dy = HEADINGS[state.heading[game, snake]]
    cell = int(state.body[game, snake, at])
    x, y = _place(layout, cell)
    if cell == OFF_BOARD:
        x, y = _place(layout, int(state.body[game, snake, at - 1]))
        x, y = x + dx * size // 2, y + dy * size // 2
    elif CAUSES[state.cause[game, snake]] in ("self", "body", "head"):
        x, y = x - dx * size * 3 // 4, y - dy * size * 3 // 4
    return layout.left + x, layout.top + y


# --------------------------------------------------------------------------------------------------------------- panel


def _write(
    canvas: pygame.Surface, text: str, size: int, colour: Colour, left: int, right: int, y: float, *, flush_right: bool = False
) -> None:
    """A line of text between two columns of pixels, its middle at height `y`."""
    line = _text(text, size, colour, right - left)
    canvas.blit(line, (right - line.get_width() if flush_right else left, round(y - line.get_height() / 2)))


def _draw_panel(
    canvas: pygame.Surface, state: SnakeState, rules: Rules, game: int, layout: Layout, names: Sequence[str]
) -> None:
    """Turn, and a row per snake, as high as there is room for: two lines, or one if there are many snakes."""
    font, left, right = layout.font, layout.panel, layout.width - layout.font
    small = round(0.85 * font)
    _write(canvas, f"Turn {state.turn[game]}", round(1.5 * font), TEXT, left, right, 1.7 * font)
    if state.over[game]:
        _write(canvas, "game over", font, TEXT, left, right, 1.7 * font, flush_right=True)
    _write(canvas, "length", small, FAINT, left, right, 3.2 * font, flush_right=True)
    top = 4.2 * font
    room, snakes = layout.height - 0.5 * font - top, rules.num_snakes
    row = min(max(room / snakes, 1.5 * font), 3.0 * font)
    shown = snakes if snakes * row <= room + 1 else int(room / row) - 1
    for snake in range(shown):
        _draw_row(canvas, state, rules, game, layout, names, snake, top + row * (snake + 0.5), row >= 2.4 * font)
    if shown < snakes:
        _write(canvas, f"and {snakes - shown} more", small, FAINT, left, right, top + row * (shown + 0.5))


def _draw_row(
    canvas: pygame.Surface, state: SnakeState, rules: Rules, game: int, layout: Layout, names: Sequence[str],
    snake: int, y: float, two_lines: bool,
) -> None:  # fmt: skip
    """Of a snake: its head, or a mark if it is dead, name, length, and its health or what became of it."""
    font, right = layout.font, layout.width - layout.font
    small, left, bar_right = round(0.85 * font), layout.panel + round(2.6 * font), right - 3 * font
    alive = bool(state.alive[game, snake])
    colour = TEXT if alive else FAINT
    icon = round((1.9 if two_lines else 1.3) * font)
    canvas.blit(_sprite(_head(snake, 1) if alive else _mark(snake), icon, icon), (layout.panel, round(y - icon / 2)))
    name = names[snake] if alive or two_lines else f"{names[snake]}: {CAUSES[state.cause[game, snake]]}"
    upper, lower = (y - 0.55 * font, y + 0.7 * font) if two_lines else (y, y)
    _write(canvas, name, font, colour, left, bar_right, upper)
    _write(canvas, str(state.length[game, snake]), font, colour, bar_right, right, upper, flush_right=True)
    if not two_lines:
        return
    if alive and has_health(rules) and not state.over[game]:
        health, height = int(state.health[game, snake]), max(3, font // 3)
        bar = (left, round(lower - height / 2), bar_right - left, height)
        canvas.fill(LIGHT_CELL, bar)
        canvas.fill(_colour(snake), (*bar[:2], bar[2] * health // rules.max_health, height))
        _write(canvas, str(health), small, FAINT, bar_right, right, lower, flush_right=True)
    else:
        _write(canvas, describe(state, game, snake, names), small, colour, left, right, lower)
