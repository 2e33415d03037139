"""Overlays on a game that people play: the cards at start and end, the countdown, notes.

They are made of lines of text, keys and snakes' heads. Functions import pygame when called.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from snake_pz.core.state import OFF_BOARD, SnakeState
from snake_pz.drawing import picture, sprites
from snake_pz.drawing.sprites import FAINT, FRAME, INK, PAPER, TEXT, WHITE, Colour, Shape, disc
from snake_pz.play.keyboard import CAPS, Person
from snake_pz.play.local_match import LocalMatch
from snake_pz.rules import Rules

if TYPE_CHECKING:
    import pygame


class Key(NamedTuple):
    """A key with its label."""

    cap: str


class Face(NamedTuple):
    """A snake's head, or its mark of death."""

    snake: int
    alive: bool = True


class Quiet(NamedTuple):
    """Text in a faint colour."""

    text: str


Part = str | Key | Face | Quiet
Line = tuple[Part, ...]
"""Parts from left to right."""

CARD, KEY_FACE = (24, 30, 40), (58, 68, 86)
SHOWN = 10
"""Most rows of a card."""

_OR = Quiet("or")
_ARROWS = {"up": 0, "right": 1, "down": 2, "left": 3}
_WIDEST_TEXT = 16
"""Width of one part at most, in heights of a line."""

PLAYING_KEYS: tuple[Line, ...] = (
    (Key("Space"), Quiet("pause"), Key("."), Quiet("a single turn while paused"), Key("+"), Key("-"), Quiet("speed")),
    (Key("R"), Quiet("new game"), Key("Esc"), Quiet("quit")),
)


def start_card(match: LocalMatch, description: str, size: tuple[int, int]) -> pygame.Surface:
    """The card before a game: players, their colours and their keys.

    Args:
        match: the match.
        description: a line about the game.
        size: (width, height) in pixels that the card may have.
    """
    rows: list[tuple[Line, ...]] = []
    for snake, (name, player) in enumerate(zip(match.names, match.players, strict=True)):
        keys: list[Part] = []
        for which in player.keys if isinstance(player, Person) else ():
            keys += [*([_OR] if keys else []), *(Key(cap) for cap in CAPS[which])]
        rows.append(((Face(snake), name), tuple(keys) or (Quiet("plays by itself"),)))
    footer = (
        *PLAYING_KEYS,
        (),
        (
            "Press",
            Key("Space"),
            "to start",
        ),
    )
    return card(("Snake",), ((Quiet(description),),), _shortened(rows, len(rows)), footer, *size)


def result_card(match: LocalMatch, size: tuple[int, int]) -> pygame.Surface:
    """The card after a game: placements, lengths and causes of death.

    Args:
        match: the match, whose game is over.
        size: (width, height) in pixels that the card may have.
    """
    state, names = match.engine.state, match.names
    ranks = state.rank[0].tolist()
    first = [snake for snake, rank in enumerate(ranks) if rank == 1]
    if len(ranks) == 1:
        title = "Game over"
    elif len(first) == 1:
        winner = names[first[0]]
        title = "You win" if winner == "you" else f"{winner} wins"
    else:
        title = "A draw"
    order = sorted(range(len(ranks)), key=lambda snake: (ranks[snake], snake))
    if len(order) > SHOWN:  # keep all people and the best of the others
        others = [snake for snake in order if not isinstance(match.players[snake], Person)]
        hidden = set(others[len(others) - (len(order) - SHOWN + 1) :])
        order = [snake for snake in order if snake not in hidden]
    rows: list[tuple[Line, ...]] = []
    for snake in order:
        place: Line = (str(ranks[snake]),) if len(ranks) > 1 else ()
        face = Face(snake, bool(state.alive[0, snake]))
        length: Line = (Quiet("length"), str(state.length[0, snake]))
        rows.append((place, (face, names[snake]), length, (Quiet(picture.describe(state, snake, names)),)))
    footer = ((), (Key("R"), Quiet("play again"), Key("Esc"), Quiet("quit")))
    return card((title,), ((Quiet(f"after {state.turn[0]} turns"),),), _shortened(rows, len(ranks)), footer, *size)


def _shortened(rows: Sequence[tuple[Line, ...]], snakes: int) -> tuple[tuple[Line, ...], ...]:
    """The rows that are shown; the last one tells how many snakes are left out."""
    if snakes <= SHOWN:
        return tuple(rows)
    return (*rows[: SHOWN - 1], ((Quiet(f"and {snakes - SHOWN + 1} more"),),))


@lru_cache(maxsize=16)
def card(
    title: Line, under: tuple[Line, ...], rows: tuple[tuple[Line, ...], ...], footer: tuple[Line, ...], width: int, height: int
) -> pygame.Surface:
    """A card with a table, its text as large as fits into this many pixels; 10 pixels high if nothing fits."""
    import pygame

    for size in range(max(min(height // 12, 26), 10), 9, -1):
        head = [line(title, round(1.8 * size)), *(line(parts, size) for parts in under)]
        cells = [[line(parts, size) for parts in row] for row in rows]
        foot = [line(parts, size) for parts in footer]
        columns = max((len(row) for row in rows), default=0)
        widths = [max(row[k].get_width() for row in cells if k < len(row)) for k in range(columns)]
        if any(len(row) == 1 for row in cells):  # "and 20 more" goes across
            widths[0] = max(row[0].get_width() for row in cells if len(row) > 1)
        gap, pad = size, round(1.2 * size)
        inner = max(sum(widths) + gap * (columns - 1), *(part.get_width() for part in head + foot))
        across = inner + 2 * pad
        steps = [round(2.2 * size), *[round(1.7 * size)] * len(under), *[round(1.75 * size)] * len(rows)]
        steps += [round((1.75 if parts else 0.7) * size) for parts in footer]
        down = sum(steps) + 2 * pad + size
        if across <= width and down <= height:
            break
    surface = pygame.Surface((across, down), pygame.SRCALPHA, 32)
    pygame.draw.rect(surface, (*CARD, 238), surface.get_rect(), border_radius=size)
    pygame.draw.rect(surface, (*FRAME, 255), surface.get_rect(), width=max(1, size // 12), border_radius=size)
    y = pad
    for part, step in zip(head, steps, strict=False):
        surface.blit(part, (pad, y + (step - part.get_height()) // 2))
        y += step
    y += size // 2
    for row in cells:
        x = pad
        for k, part in enumerate(row):
            surface.blit(part, (x, y + (round(1.75 * size) - part.get_height()) // 2))
            x += widths[k] + gap
        y += round(1.75 * size)
    y += size // 2
    for part, step in zip(foot, steps[len(head) + len(cells) :], strict=True):
        surface.blit(part, (pad, y + (step - part.get_height()) // 2))
        y += step
    return surface


@lru_cache(maxsize=512)
def line(parts: Line, size: int) -> pygame.Surface:
    """Parts from left to right on a transparent surface, with text `size` pixels high."""
    import pygame

    surfaces = [_part(part, size) for part in parts]
    gaps = [_gap(part, following, size) for part, following in itertools.pairwise(parts)]
    height = max((surface.get_height() for surface in surfaces), default=size)
    width = sum(surface.get_width() for surface in surfaces) + sum(gaps)
    whole = pygame.Surface((max(width, 1), height), pygame.SRCALPHA, 32)
    x = 0
    for surface, gap in zip(surfaces, [*gaps, 0], strict=False):
        whole.blit(surface, (x, (height - surface.get_height()) // 2))
        x += surface.get_width() + gap
    return whole


def _gap(part: Part, following: Part, size: int) -> int:
    """Pixels between two parts: little between a key and its meaning, more before the next key."""
    if not isinstance(following, Key) or isinstance(part, str) or part == _OR:
        return size // 2
    return size // 4 if isinstance(part, Key) else round(1.2 * size)


def _part(part: Part, size: int) -> pygame.Surface:
    import pygame

    if isinstance(part, Face):
        side = round(1.5 * size)
        return sprites.sprite(sprites.head(part.snake, 1) if part.alive else sprites.mark(part.snake), side, side)
    if not isinstance(part, Key):
        text, colour = (part.text, FAINT) if isinstance(part, Quiet) else (part, TEXT)
        return sprites.text_line(text, size, colour, _WIDEST_TEXT * size * (2 if isinstance(part, Quiet) else 1))
    side = round(1.4 * size)
    inner = (
        sprites.sprite(_arrow(_ARROWS[part.cap]), side, side)
        if part.cap in _ARROWS
        else sprites.text_line(part.cap, round(0.9 * size), WHITE, 9 * size)
    )
    width = side if inner.get_width() <= side - 4 or part.cap in _ARROWS else inner.get_width() + size
    key = pygame.Surface((width, side), pygame.SRCALPHA, 32)
    pygame.draw.rect(key, INK, key.get_rect(), border_radius=max(2, size // 4))
    face = key.get_rect().inflate(-2, -2)
    face.height -= max(1, size // 10)
    pygame.draw.rect(key, KEY_FACE, face, border_radius=max(2, size // 4))
    key.blit(inner, inner.get_rect(center=face.center))
    return key


@lru_cache(maxsize=4)
def _arrow(direction: int) -> tuple[Shape, ...]:
    tip = (0.0, -0.24)
    strokes: list[Shape] = [(x, y, *tip, 0.055, WHITE, 1.0) for x, y in ((0.0, 0.22), (-0.17, -0.06), (0.17, -0.06))]
    for _ in range(direction):
        strokes = [(-y0, x0, -y1, x1, radius, colour, opacity) for x0, y0, x1, y1, radius, colour, opacity in strokes]
    return tuple(strokes)


def shade(screen: pygame.Surface, opacity: float) -> None:
    """Darken the screen."""
    import pygame

    veil = pygame.Surface(screen.get_size(), pygame.SRCALPHA, 32)
    veil.fill((*PAPER, round(255 * opacity)))
    screen.blit(veil, (0, 0))


def draw_centred(screen: pygame.Surface, picture: pygame.Surface, area: pygame.Rect) -> None:
    """Draw a picture in the middle of an area, moved so that it lies within the screen."""
    screen.blit(picture, picture.get_rect(center=area.center).clamp(screen.get_rect()))


def draw_note(screen: pygame.Surface, board: pygame.Rect, parts: Line) -> None:
    """Draw a line of text at the lower edge of the board."""
    import pygame

    size = max(12, min(board.width, board.height) // 24)
    text = line(parts, size)
    while text.get_width() + 2 * size > screen.get_width() and size > 9:
        size -= 1
        text = line(parts, size)
    plate = pygame.Surface((text.get_width() + 2 * size, round(2.4 * size)), pygame.SRCALPHA, 32)
    pygame.draw.rect(plate, (*CARD, 230), plate.get_rect(), border_radius=plate.get_height() // 2)
    pygame.draw.rect(plate, FRAME, plate.get_rect(), width=1, border_radius=plate.get_height() // 2)
    plate.blit(text, text.get_rect(center=plate.get_rect().center))
    screen.blit(plate, plate.get_rect(midbottom=(board.centerx, board.bottom - size)).clamp(screen.get_rect()))


def draw_countdown(screen: pygame.Surface, board: pygame.Rect, number: int) -> None:
    """Draw a large number in the middle of the board."""
    side = min(board.width, board.height) // 3 // 2 * 2
    plate = sprites.sprite((disc(0, 0, 0.46, CARD, 0.85),), side, side)
    screen.blit(plate, plate.get_rect(center=board.center))
    text = sprites.text_line(str(number), round(0.8 * side), TEXT, side)
    screen.blit(text, text.get_rect(center=board.center))


def draw_tags(screen: pygame.Surface, board: pygame.Rect, state: SnakeState, rules: Rules, tags: dict[int, str]) -> None:
    """Draw rings and labels around the heads of some snakes, so that people find theirs.

    Args:
        screen: the surface.
        board: the area of the board on it.
        state: the game.
        rules: its rules.
        tags: labels by snake.
    """
    import pygame

    cell = board.width // rules.width
    side, size = 2 * max(22, round(0.85 * cell)), min(max(12, cell // 2), 22)
    for snake, text in tags.items():
        at = int(state.body[0, snake, state.head[0, snake]])
        if not state.alive[0, snake] or at == OFF_BOARD:
            continue
        row, column = divmod(at, rules.width)
        middle = (board.left + column * cell + cell // 2, board.top + row * cell + cell // 2)
        ring = sprites.sprite(_ring(sprites.colour_of(snake)), side, side)
        screen.blit(ring, ring.get_rect(center=middle))
        label = line((text,), size)
        plate = pygame.Surface((label.get_width() + size, round(1.5 * size)), pygame.SRCALPHA, 32)
        pygame.draw.rect(plate, (*CARD, 235), plate.get_rect(), border_radius=size // 2)
        plate.blit(label, label.get_rect(center=plate.get_rect().center))
        above = middle[1] - side // 2 - plate.get_height() >= board.top
        place = plate.get_rect(midbottom=(middle[0], middle[1] - side // 2))
        if not above:
            place = plate.get_rect(midtop=(middle[0], middle[1] + side // 2))
        screen.blit(plate, place.clamp(board))


@lru_cache(maxsize=64)
def _ring(colour: Colour) -> tuple[Shape, ...]:
    turn = np.linspace(0, 2 * np.pi, 49)
    x, y = 0.46 * np.cos(turn), 0.46 * np.sin(turn)
    return tuple((float(x[k]), float(y[k]), float(x[k + 1]), float(y[k + 1]), 0.03, colour, 1.0) for k in range(48))
