"""One game as a picture, as text, or in a window. Reads a `SnakeState`, never writes one.

Pictures are drawn into memory: they need no display and touch none. pygame is imported when the first one is asked for, not
before.
"""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from snake_pz import drawing
from snake_pz.rules import Rules
from snake_pz.state import SnakeState, body_cells

if TYPE_CHECKING:
    import pygame


def rgb_array(
    state: SnakeState, rules: Rules, game: int = 0, *, cell_size: int | None = None, names: Sequence[str] | None = None
) -> NDArray[np.uint8]:
    """A picture of one game: the board, and beside it turn, names, lengths, health and causes of death.

    A snake that dies on this turn leaves a mark where it was stopped; its body is gone. Equal states give equal pixels.

    Args:
        state: E games.
        rules: what they are played by.
        game: which of them.
        cell_size: pixels a cell, 4 to 256; None: as many as make the board's longer side about 450,
            up to 800 on large boards.
        names: per snake; None: snake_0, snake_1, and so on.

    Returns:
        (h, w, 3) uint8, h and w multiples of 16, the same for all states of these rules at this `cell_size`.

    Raises:
        ValueError: a `cell_size` out of range, or not one name per snake.
    """
    if cell_size is not None and not 4 <= cell_size <= 256:
        raise ValueError(f"cell_size must be between 4 and 256 pixels, got {cell_size}")
    layout = drawing.make_layout(rules, cell_size or drawing.default_cell(rules))
    canvas = drawing.draw_game(state, rules, game, layout, _names(rules, names))
    import pygame.surfarray

    pixels = pygame.surfarray.pixels3d(canvas)  # (w, h, 3), a view
    picture = np.empty((pixels.shape[1], pixels.shape[0], 3), np.uint8)
    for channel in range(3):  # three times as fast as one transposing copy
        picture[..., channel] = pixels[..., channel].T
    return picture


def ansi(state: SnakeState, rules: Rules, game: int = 0, *, names: Sequence[str] | None = None) -> str:
    r"""One game as plain text: two characters a cell and a line for each snake.

    Heads are capital letters followed by their heading (`^ > v <`), bodies small letters, food `*`, free cells `.`; `~` behind
    any of them is a hazard. The border is `#` where it is a wall, `:` where the board wraps around.

    Args:
        state: E games.
        rules: what they are played by.
        game: which of them.
        names: per snake; None: snake_0, snake_1, and so on.
    """
    names = _names(rules, names)
    first = np.where(state.food[game] > 0, "*", ".").astype("<U1")
    second = np.where(state.hazard[game] > 0, "~", " ").astype("<U1")
    lines = []
    longest = max(len(name) for name in names)
    for snake, name in enumerate(names):
        letter = string.ascii_lowercase[snake % 26]
        if state.alive[game, snake]:
            cells = body_cells(state, game, snake)
            first[cells] = letter
            first[cells[0]] = letter.upper()
            second[cells[0]] = "^>v<"[state.heading[game, snake]]
        health = f"  health {state.health[game, snake]:3}" if drawing.has_health(rules) else ""
        fate = drawing.describe(state, game, snake, names)
        lines.append(f"{letter.upper()} {name:{longest}}  length {state.length[game, snake]:3}{health}  {fate}")
    edge = "#" if rules.edge == "wall" else ":"
    rows = np.char.add(first, second).reshape(rules.height, rules.width)
    board = [f"{edge} {''.join(row)}{edge}" for row in rows]
    border = edge * (2 * rules.width + 3) if rules.edge == "wall" else (edge + " ") * (rules.width + 1) + edge
    over = ", game over" if state.over[game] else ""
    return "\n".join([f"turn {state.turn[game]}{over}", border, *board, border, *lines])


class Window:
    """A window that shows one game after each turn, opened by the first `show`.

    pygame has one window per process: two `Window`s draw into the same one. Closing it, by `close()` or by the user, ends it
    for good, and later calls of `show` return at once. Keyboard events are left in pygame's queue for whoever plays.

    Args:
        fps: calls of `show` per second at most, each waits for its time; 0: no waiting.
        title: of the window.

    Attributes:
        closed: whether it was closed, by `close` or by the user.
    """

    def __init__(self, fps: float = 10, title: str = "snake-pz") -> None:
        if fps < 0:
            raise ValueError(f"fps must be >= 0, got {fps}")
        self.fps = fps
        self.title = title
        self.closed = False
        self._clock: pygame.time.Clock | None = None

    def show(self, state: SnakeState, rules: Rules, game: int = 0, *, names: Sequence[str] | None = None) -> None:
        """Draw the game as large as the window allows and wait until its time is over.

        Raises:
            RuntimeError: there is no display to open a window on.
            ValueError: not one name per snake.
        """
        if self.closed:
            return
        names = _names(rules, names)
        drawing.load_pygame()
        import pygame

        screen = pygame.display.get_surface() if pygame.display.get_init() else None
        if screen is None:
            screen = self._open(rules)
        self._clock = self._clock or pygame.time.Clock()
        events = pygame.event.get(exclude=(pygame.KEYDOWN, pygame.KEYUP))  # a full queue would drop the closing of the window
        if any(event.type in (pygame.QUIT, pygame.WINDOWCLOSE) for event in events):
            self.close()
            return
        picture = drawing.draw_game(state, rules, game, _fitting(rules, *screen.get_size()), names)
        screen.fill(drawing.PAPER)
        screen.blit(picture, picture.get_rect(center=screen.get_rect().center))
        pygame.display.flip()
        self._clock.tick(self.fps)

    def close(self) -> None:
        """Close the window. May be called at any time, and again."""
        if self._clock is not None:
            import pygame

            pygame.display.quit()
        self._clock = None
        self.closed = True

    def _open(self, rules: Rules) -> pygame.Surface:
        import pygame

        try:
            pygame.display.init()
            # Without any display SDL may fall back on a driver that draws where nobody sees it.
            if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("SDL found no screen")
            width, height = pygame.display.get_desktop_sizes()[0]
            fitting = _fitting(rules, width * 9 // 10, height * 8 // 10)
            layout = drawing.make_layout(rules, min(fitting.cell, drawing.default_cell(rules)))
            screen = pygame.display.set_mode((layout.width, layout.height), pygame.RESIZABLE)
        except pygame.error as error:
            pygame.display.quit()
            raise RuntimeError(
                f"cannot open a window, there is no display ({error}): use render_mode='rgb_array' or 'ansi', or set "
                "SDL_VIDEODRIVER=dummy to run without seeing anything"
            ) from None
        pygame.display.set_caption(self.title)
        return screen


@lru_cache(maxsize=64)
def _fitting(rules: Rules, width: int, height: int) -> drawing.Layout:
    """The largest layout within these pixels, or the smallest there is."""
    for cell in range(max(width // rules.width, 4), 4, -1):
        layout = drawing.make_layout(rules, cell)
        if layout.width <= width and layout.height <= height:
            return layout
    return drawing.make_layout(rules, 4)


def _names(rules: Rules, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return [f"snake_{snake}" for snake in range(rules.num_snakes)]
    if len(names) != rules.num_snakes:
        raise ValueError(f"names must have one for each of the {rules.num_snakes} snakes, got {len(names)}")
    return names
