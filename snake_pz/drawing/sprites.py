"""Colours, shapes, and the sprites and lines of text made of them.

Sprites are anti-aliased and cached by shapes and size. Nothing here needs a display; functions import pygame when called.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from snake_pz.escaping import printable

if TYPE_CHECKING:
    import pygame

Colour = tuple[int, int, int]
Shape = tuple[float, float, float, float, float, Colour, float]
"""A stroke with round ends: x0, y0, x1, y1, radius, colour, opacity 0 to 1. It is a disc if both ends coincide."""

PALETTE: tuple[Colour, ...] = (
    (86, 180, 233), (230, 159, 0), (0, 158, 115), (204, 121, 167), (240, 228, 66), (213, 94, 0), (0, 114, 178), (222, 222, 222),
)  # fmt: skip
"""Colours of snakes 0 to 7, distinguishable with any colour vision: Okabe and Ito, "Color Universal Design", 2008, with a light
grey in place of black. Snakes 8 to 15 have the same colours with a dark stripe, later ones with a stripe of another colour."""

PAPER, LIGHT_CELL, DARK_CELL = (16, 20, 27), (35, 42, 54), (31, 37, 48)
FRAME, TEXT, FAINT, INK, WHITE = (126, 138, 158), (232, 236, 242), (138, 149, 168), (12, 15, 20), (255, 255, 255)
APPLE, LEAF, HAZARD_TAPE = (236, 72, 72), (120, 190, 80), (214, 178, 94)


@cache
def load_pygame() -> None:
    """Import the parts of pygame that drawing uses, without its greeting on stdout and its warnings about packages."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pygame.font
        import pygame.surfarray

        pygame.font.init()
        pygame.font.Font(None, 12)  # the first font imports more modules, with warnings of their own


@lru_cache(maxsize=1024)
def sprite(shapes: tuple[Shape, ...], unit: int, side: int) -> pygame.Surface:
    """Shapes painted over each other on a transparent square, with the origin in its middle.

    Args:
        shapes: lengths in units; the lowest shape first.
        unit: pixels per unit.
        side: side of the square in pixels. Even if `unit` is even, so that the middle of the square is the middle of a cell.
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
def text_line(text: str, size: int, colour: Colour, room: int) -> pygame.Surface:
    """A line of text, made printable, `size` pixels high and at most `room` wide; longer text is cut and ends in dots."""
    import pygame

    pygame.font.init()
    font = pygame.font.Font(None, size)  # not cached: a font would not survive a pygame.quit() elsewhere
    shown = text = printable(text[:1000])
    while text and font.size(shown)[0] > room:
        text = text[:-1]
        shown = text + "..."
    return font.render(shown, True, colour)


def disc(x: float, y: float, radius: float, colour: Colour, opacity: float = 1.0) -> Shape:
    """A filled circle."""
    return x, y, x, y, radius, colour, opacity


def colour_of(snake: int) -> Colour:
    """Colour of a snake's body."""
    return PALETTE[snake % len(PALETTE)]


def stripe_of(snake: int) -> Colour | None:
    """Colour of the stripe along a snake's body, None without a stripe."""
    style = snake // len(PALETTE)
    return (None, INK)[style] if style < 2 else colour_of(snake + (style - 2) % 7 + 1)


def colours(snake: int) -> tuple[Colour, Colour | None]:
    """Colours of a snake's body and of its stripe, None without a stripe."""
    return colour_of(snake), stripe_of(snake)


@lru_cache(maxsize=1024)
def head(snake: int, heading: int) -> tuple[Shape, ...]:
    """A snake's head, its eyes looking in the direction `heading`. The unit is a cell."""
    shapes: list[Shape] = [(0, 0.08, 0, -0.06, 0.41, colour_of(snake), 1.0)]
    stripe = stripe_of(snake)
    if stripe is not None:
        shapes.append((0, 0.5, 0, 0.12, 0.085, stripe, 1.0))
    for x in (-0.19, 0.19):
        shapes += [disc(x, -0.14, 0.16, INK, 0.35), disc(x, -0.14, 0.145, WHITE), disc(x, -0.185, 0.085, INK)]
    for _ in range(heading):  # a quarter turn to the right each
        shapes = [(-y0, x0, -y1, x1, *look) for x0, y0, x1, y1, *look in shapes]  # type: ignore[misc]
    return tuple(shapes)


def mark(snake: int) -> tuple[Shape, ...]:
    """The mark where a snake died: a cross on a disc. The unit is a cell."""
    a = 0.13
    strokes = ((-a, -a, a, a, 0.055, INK, 1.0), (-a, a, a, -a, 0.055, INK, 1.0))
    return disc(0, 0, 0.36, INK, 0.8), disc(0, 0, 0.31, colour_of(snake)), *strokes


@lru_cache(maxsize=256)
def hazard(times: int) -> tuple[Shape, ...]:
    """A hazard: stripes across a cell, more opaque if the cell is listed more often. The unit is a cell."""
    opacity = min(0.25 + 0.15 * times, 1.0)
    stripes = [(at - 1, 1.0, at + 1, -1.0, 0.06, HAZARD_TAPE, opacity) for at in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    return disc(0, 0, 1, HAZARD_TAPE, 0.08), *stripes


@lru_cache(maxsize=16)
def apple(size: float) -> tuple[Shape, ...]:
    """A piece of food; `size` is 1 for full size. The unit is a cell."""
    whole = disc(0, 0.05, 0.27, APPLE), (0.02, -0.2, 0.12, -0.3, 0.055, LEAF, 1.0), disc(-0.1, -0.04, 0.06, WHITE, 0.7)
    return tuple(
        (x0 * size, y0 * size, x1 * size, y1 * size, radius * size, colour, opacity)
        for x0, y0, x1, y1, radius, colour, opacity in whole
    )
