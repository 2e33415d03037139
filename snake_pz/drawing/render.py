"""One game as a picture, as text, or in a window.

Pictures are drawn in memory and need no display. pygame is imported for the first picture, not before.
"""

from __future__ import annotations

import os
import string
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.state import SnakeState, body_cells
from snake_pz.drawing import picture, sprites
from snake_pz.escaping import printable
from snake_pz.rules import Rules

if TYPE_CHECKING:
    import pygame


def rgb_array(
    state: SnakeState, rules: Rules, *, cell_size: int | None = None, names: Sequence[str] | None = None
) -> NDArray[np.uint8]:
    """A picture of one game: the board, and beside it the turn and each snake's name, length, health and status.

    A snake that dies on this turn is shown as a mark where it was stopped, without its body. Equal states give equal pixels.

    Args:
        state: one game, E = 1.
        rules: its rules.
        cell_size: pixels per cell, 4 to 256; None: as many as make the board's longer side about 450 pixels, on large boards
            up to 800.
        names: one per snake; None: snake_0, snake_1, and so on.

    Returns:
        (h, w, 3) uint8. h and w are multiples of 16 and depend on the rules and `cell_size` only.

    Raises:
        ValueError: a `cell_size` out of range, not one game, or not one name per snake.
    """
    if cell_size is not None and not 4 <= cell_size <= 256:
        raise ValueError(f"cell_size must be between 4 and 256 pixels, got {cell_size}")
    layout = picture.make_layout(rules, cell_size or picture.default_cell(rules))
    canvas = picture.draw_game(state, rules, layout, _names(state, rules, names))
    import pygame.surfarray

    pixels = pygame.surfarray.pixels3d(canvas)  # (w, h, 3), a view
    image = np.empty((pixels.shape[1], pixels.shape[0], 3), np.uint8)
    for channel in range(3):  # three times as fast as one transposed copy
        image[..., channel] = pixels[..., channel].T
    return image


def ansi(state: SnakeState, rules: Rules, *, names: Sequence[str] | None = None) -> str:
    r"""One game as plain text: the board with two characters per cell, then a line for each snake.

    Heads are capital letters followed by their heading (`^ > v <`), bodies small letters, food `*`, free cells `.`; a `~` after
    any of them is a hazard. The border is `#` for walls and `:` if the board wraps. Names are made printable.

    Args:
        state: one game, E = 1.
        rules: its rules.
        names: one per snake; None: snake_0, snake_1, and so on.

    Raises:
        ValueError: not one game, or not one name per snake.
    """
    names = [printable(name) for name in _names(state, rules, names)]
    first = np.where(state.food[0] > 0, "*", ".").astype("<U1")
    second = np.where(state.hazard[0] > 0, "~", " ").astype("<U1")
    lines = []
    longest = max(len(name) for name in names)
    for snake, name in enumerate(names):
        letter = string.ascii_lowercase[snake % 26]
        if state.alive[0, snake]:
            cells = body_cells(state, 0, snake)
            first[cells] = letter
            first[cells[0]] = letter.upper()
            second[cells[0]] = "^>v<"[max(state.heading[0, snake], 0)]
        health = f"  health {state.health[0, snake]:3}" if rules.uses_health else ""
        fate = picture.describe(state, snake, names)
        lines.append(f"{letter.upper()} {name:{longest}}  length {state.length[0, snake]:3}{health}  {fate}")
    edge = "#" if rules.edge == "wall" else ":"
    rows = np.char.add(first, second).reshape(rules.height, rules.width)
    board = [f"{edge} {''.join(row)}{edge}" for row in rows]
    border = edge * (2 * rules.width + 3) if rules.edge == "wall" else (edge + " ") * (rules.width + 1) + edge
    over = ", game over" if state.over[0] else ""
    return "\n".join([f"turn {state.turn[0]}{over}", border, *board, border, *lines])


class NoDisplayError(OSError):
    """There is no display to open a window on."""


def open_window(rules: Rules, title: str, scale: float = 1.0) -> pygame.Surface:
    """Open the window of this process, or return it if it is open already.

    Args:
        rules: rules of the game to show; with the display they determine the size.
        title: title of the window.
        scale: size of the picture relative to `rgb_array`, as far as the display has room.

    Raises:
        NoDisplayError: there is no display.
    """
    sprites.load_pygame()
    import pygame

    screen = pygame.display.get_surface() if pygame.display.get_init() else None
    if screen is not None:
        return screen
    try:
        pygame.display.init()
        # Without a display SDL may fall back to a driver that draws off screen.
        if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
            raise pygame.error("SDL found no screen")
        width, height = pygame.display.get_desktop_sizes()[0]
        fitting = _fitting(rules, width * 9 // 10, height * 8 // 10)
        layout = picture.make_layout(rules, min(fitting.cell, round(scale * picture.default_cell(rules))))
        screen = pygame.display.set_mode((layout.width, layout.height), pygame.RESIZABLE)
    except pygame.error as error:
        pygame.display.quit()
        raise NoDisplayError(
            f"cannot open a window, there is no display ({error}); SDL_VIDEODRIVER=dummy runs without one"
        ) from None
    pygame.display.set_caption(printable(title))
    pygame.display.set_icon(sprites.sprite(sprites.head(0, 1), 32, 32))
    return screen


def draw_on(
    screen: pygame.Surface,
    state: SnakeState,
    rules: Rules,
    *,
    names: Sequence[str] | None = None,
    before: SnakeState | None = None,
    progress: float = 1.0,
) -> pygame.Rect:
    """Fill a surface with the picture of one game, as large as fits.

    Args:
        screen: the surface.
        state: one game, E = 1.
        rules: its rules.
        names: one per snake; None: snake_0, snake_1, and so on.
        before: the game a turn earlier, to draw the snakes between the two turns; None: as they are in `state`.
        progress: the part of the turn that has passed, 0 to 1.

    Returns:
        The area of the board on the surface.

    Raises:
        ValueError: not one game, or not one name per snake.
    """
    layout = _fitting(rules, *screen.get_size())
    drawn = picture.draw_game(state, rules, layout, _names(state, rules, names), before, progress)
    place = drawn.get_rect(center=screen.get_rect().center)
    screen.fill(sprites.PAPER)
    screen.blit(drawn, place)
    return drawn.get_rect(
        x=place.x + layout.left, y=place.y + layout.top, w=layout.columns * layout.cell, h=layout.rows * layout.cell
    )


class Window:
    """A window that shows one game turn by turn, with snakes sliding between turns. The first `show` opens it.

    pygame has one window per process: two `Window`s draw into the same one. Once closed, by `close` or by the user, it stays
    closed, and `show` returns at once. Keyboard events stay in pygame's queue for those who play.

    Args:
        fps: most calls of `show` per second; `show` waits accordingly. 0: no waiting. Above 30 snakes do not slide.
        title: title of the window.

    Attributes:
        closed: whether it was closed, by `close` or by the user.

    Raises:
        ValueError: `fps` below 0.
    """

    def __init__(self, fps: float = 10, title: str = "snake-pz") -> None:
        if fps < 0:
            raise ValueError(f"fps must be >= 0, got {fps}")
        self.fps = fps
        self.title = title
        self.closed = False
        self._open = False
        self._last: SnakeState | None = None  # the state shown last
        self._due = 0.0  # the earliest end of the next `show`, by time.perf_counter

    def show(self, state: SnakeState, rules: Rules, *, names: Sequence[str] | None = None) -> None:
        """Draw the game as large as the window allows, and wait as long as `fps` says.

        Args:
            state: one game, E = 1.
            rules: its rules.
            names: one per snake; None: snake_0, snake_1, and so on.

        Raises:
            NoDisplayError: there is no display to open a window on.
            ValueError: not one game, or not one name per snake.
        """
        if self.closed:
            return
        names = _names(state, rules, names)
        try:
            screen = open_window(rules, self.title)
        except NoDisplayError as error:
            raise NoDisplayError(f"{error}; render_mode='rgb_array' and 'ansi' need no window") from None
        self._open = True
        import pygame

        state = state.map(lambda array: array.copy())
        before, self._last = self._last, state
        if before is not None and (before.body.shape != state.body.shape or not follows(before, state)):
            before = None
        start = time.perf_counter()
        while True:
            events = pygame.event.get(exclude=(pygame.KEYDOWN, pygame.KEYUP))  # a full queue would drop the closing event
            if any(event.type in (pygame.QUIT, pygame.WINDOWCLOSE) for event in events):
                self.close()
                return
            now = time.perf_counter()
            if now >= self._due or 0 < self.fps <= 30:
                progress = (now - start) / (self._due - start) if now < self._due else 1.0
                draw_on(pygame.display.get_surface() or screen, state, rules, names=names, before=before, progress=progress)
                pygame.display.flip()
            if now >= self._due:
                break
            time.sleep(max(min(1 / 60, self._due - time.perf_counter()), 0))
        self._due = now + 1 / self.fps if self.fps else 0.0

    def close(self) -> None:
        """Close the window. May be called at any time and more than once."""
        if self._open:
            import pygame

            pygame.display.quit()
        self._open = False
        self.closed = True


def follows(before: SnakeState, after: SnakeState) -> bool:
    """Whether `after` may be the turn after `before`: the next turn number and the same seed."""
    return bool(after.turn[0] == before.turn[0] + 1 and after.seed[0] == before.seed[0])


@lru_cache(maxsize=64)
def _fitting(rules: Rules, width: int, height: int) -> picture.Layout:
    """The largest layout that fits into this many pixels; the smallest layout if none fits."""
    for cell in range(max(width // rules.width, 4), 4, -1):
        layout = picture.make_layout(rules, cell)
        if layout.width <= width and layout.height <= height:
            return layout
    return picture.make_layout(rules, 4)


def _names(state: SnakeState, rules: Rules, names: Sequence[str] | None) -> Sequence[str]:
    """One name per snake of the one game."""
    if len(state.turn) != 1:
        raise ValueError(f"state must be one game, got {len(state.turn)}: `SnakeEngine.game(k).state` is one of a batch")
    if names is None:
        return [f"snake_{snake}" for snake in range(rules.num_snakes)]
    if len(names) != rules.num_snakes:
        raise ValueError(f"names must have one for each of the {rules.num_snakes} snakes, got {len(names)}")
    return names
