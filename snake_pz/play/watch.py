"""A replay in a window: play, pause, step back and on, scrub, change the speed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from snake_pz.drawing import render, sprites
from snake_pz.ranges import FPS, check_number
from snake_pz.replay import Replay

if TYPE_CHECKING:
    import pygame

SPEEDS = (1, 2, 4, 8, 15, 30, 60)
"""Turns per second to choose from."""

BAR = 56
"""Height of the bar below the picture in pixels."""


def watch(replay: Replay, fps: float = 8) -> None:
    """Show a replay until its window is closed.

    Args:
        replay: the replay.
        fps: initial turns per second, 0.1 to 1000.

    Raises:
        NoDisplayError: there is no display to open a window on.
        ValueError: `fps` out of range.
    """
    Viewer(replay, fps).run()


class Viewer:
    """The window and the position in the replay. It plays from the start and stops at the end.

    Keys: space plays and pauses, left and right step back and on, home and end go to the first and last turn, + and - change
    the speed, escape and q close. A click on the picture plays and pauses; the mouse on the bar goes to any turn.

    Args:
        replay: the replay.
        fps: initial turns per second, 0.1 to 1000.

    Attributes:
        position: position in turns; at a fraction the snakes are drawn between two turns.
        playing: whether the position advances by itself.
        fps: turns per second.
        closed: whether the window was closed.

    Raises:
        ValueError: `fps` out of range.
    """

    def __init__(self, replay: Replay, fps: float = 8) -> None:
        check_number("fps", fps, FPS)
        self.replay = replay
        self.fps = fps
        self.position = 0.0
        self.playing = True
        self.closed = False
        self._states = list(replay.states())
        self._scrubbing = False

    @property
    def turns(self) -> int:
        """The last turn."""
        return len(self._states) - 1

    @property
    def turn(self) -> int:
        """The turn that is shown, or from which the snakes are moving on."""
        return int(self.position)

    def run(self) -> None:
        """Open the window and show the replay until it is closed.

        Raises:
            NoDisplayError: there is no display to open a window on.
        """
        screen = render.open_window(self.replay.rules, "snake-pz: " + ", ".join(self.replay.names), 1.25)
        import pygame

        pygame.key.set_repeat(300, 60)
        before = time.perf_counter()
        try:
            while not self.closed:
                for event in pygame.event.get():
                    self.handle(event)
                now = time.perf_counter()
                self.advance(min(now - before, 0.25))
                before = now
                self.draw(pygame.display.get_surface() or screen)
                pygame.display.flip()
                time.sleep(max(1 / 60 - (time.perf_counter() - now), 0))
        finally:
            pygame.key.set_repeat()
            pygame.display.quit()

    def handle(self, event: pygame.event.Event) -> None:
        """Respond to an event of the keyboard, the mouse or the window."""
        import pygame

        if event.type in (pygame.QUIT, pygame.WINDOWCLOSE):
            self.closed = True
        elif event.type == pygame.KEYDOWN:
            self._press(event)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            screen = pygame.display.get_surface()
            self._scrubbing = event.pos[1] >= screen.get_height() - BAR
            if self._scrubbing:
                self._scrub(screen, event.pos[0])
            else:
                self.play(not self.playing)
        elif event.type == pygame.MOUSEMOTION and self._scrubbing:
            self._scrub(pygame.display.get_surface(), event.pos[0])
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            self._scrubbing = False

    def play(self, on: bool) -> None:
        """Play, from the start if at the end, or pause at the turn that is shown."""
        if on and self.position >= self.turns:
            self.position = 0.0
        self.playing = on
        if not on:
            self.position = float(self.turn)

    def go(self, turn: int) -> None:
        """Pause at a turn, clipped to those that the replay has."""
        self.playing = False
        self.position = float(min(max(turn, 0), self.turns))

    def advance(self, seconds: float) -> None:
        """Advance by this many seconds if playing."""
        if self.playing:
            self.position = min(self.position + seconds * self.fps, float(self.turns))
            self.playing = self.position < self.turns

    def draw(self, screen: pygame.Surface) -> None:
        """Draw the picture and the bar."""
        import pygame

        width, height = screen.get_size()
        picture = screen.subsurface((0, 0, width, max(height - BAR, 1)))
        state, before, progress = self._states[self.turn], None, self.position - self.turn
        if progress > 0:
            before, state = state, self._states[self.turn + 1]
        render.draw_on(picture, state, self.replay.rules, names=self.replay.names, before=before, progress=progress or 1.0)

        screen.fill(sprites.PAPER, (0, height - BAR, width, BAR))
        left, right = _track(width)
        middle = height - BAR // 2 - 8
        at = left + round((right - left) * self.position / max(self.turns, 1))
        pygame.draw.line(screen, sprites.LIGHT_CELL, (left, middle), (right, middle), 6)
        pygame.draw.line(screen, sprites.colour_of(0), (left, middle), (at, middle), 6)
        pygame.draw.circle(screen, sprites.TEXT, (at, middle), 8)
        if self.playing:
            screen.fill(sprites.TEXT, (16, middle - 8, 5, 16))
            screen.fill(sprites.TEXT, (26, middle - 8, 5, 16))
        else:
            pygame.draw.polygon(screen, sprites.TEXT, ((17, middle - 9), (32, middle), (17, middle + 9)))
        says = f"{self.turn + (progress > 0)} of {self.turns}   {self.fps:g}/s"
        line = sprites.text_line(says, 20, sprites.TEXT, width - right - 16)
        screen.blit(line, line.get_rect(midleft=(right + 18, middle)))
        keys = "space: play, pause    arrows: step    home, end    + -: speed    esc: close"
        line = sprites.text_line(keys, 16, sprites.FAINT, right - left)
        screen.blit(line, line.get_rect(midtop=((left + right) // 2, middle + 13)))

    def _press(self, event: pygame.event.Event) -> None:
        import pygame

        if event.key in (pygame.K_ESCAPE, pygame.K_q):
            self.closed = True
        elif event.key == pygame.K_SPACE:
            self.play(not self.playing)
        elif event.key in (pygame.K_LEFT, pygame.K_RIGHT):
            self.go(self.turn + (1 if event.key == pygame.K_RIGHT else -1))
        elif event.key in (pygame.K_HOME, pygame.K_END):
            self.go(self.turns if event.key == pygame.K_END else 0)
        elif event.key in (pygame.K_PLUS, pygame.K_EQUALS, pygame.K_KP_PLUS) or event.unicode == "+":
            self.fps = min((speed for speed in SPEEDS if speed > self.fps), default=self.fps)
        elif event.key in (pygame.K_MINUS, pygame.K_KP_MINUS):
            self.fps = max((speed for speed in SPEEDS if speed < self.fps), default=self.fps)

    def _scrub(self, screen: pygame.Surface, x: int) -> None:
        left, right = _track(screen.get_width())
        self.go(round((x - left) / (right - left) * self.turns))


def _track(width: int) -> tuple[int, int]:
    """Left and right end of the bar's track in pixels."""
    return 52, max(width - 150, 60)
