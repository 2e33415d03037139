"""A session of games with people at the keyboard: the window, the clock and the keys of the session.

Players that are no people decide in a thread of their own, so that the window responds however long they take.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from snake_pz.drawing import render
from snake_pz.drawing.sprites import PAPER
from snake_pz.play import screens
from snake_pz.play.keyboard import Person, key_codes
from snake_pz.play.local_match import LocalMatch
from snake_pz.play.screens import Key, Quiet
from snake_pz.ranges import seed_sequence
from snake_pz.rules import Rules

if TYPE_CHECKING:
    import pygame

SPEEDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 60)
"""Turns per second that + and - choose from."""

COUNTDOWN = 3.0
"""Seconds of countdown before a game."""

AFTERGLOW, NOTE_TIME, PATIENCE = 0.8, 2.5, 0.7
"""Seconds from the end of a game to its result card, that a note is shown, and of waiting until a note says so."""

FRAMES = 60
"""Pictures per second."""

Phase = Literal["loading", "start", "countdown", "playing", "over"]


class Session:
    """A window and the games played in it.

    Call `frame` until it returns False, or `run`, which does so at a steady pace.

    Args:
        match: the players; each `Person` among them is at the keyboard.
        fps: initial turns per second, 0.1 to 60.
        seed: seed of the first game, 0 to 2**64 - 1; seeds of later games follow from it. None: fresh entropy.
        record: path of the replay of the first game; later games go beside it with a number in the name. None: no replays.
        clock: monotonic time in seconds.

    Attributes:
        match: as given.
        fps: turns per second.
        phase: phase of the session.
        paused: whether a countdown or game is paused.
        recordings: paths of the replays written.

    Raises:
        ValueError: `fps` or `seed` out of range.
        NoDisplayError: there is no display to open a window on.
    """

    def __init__(
        self,
        match: LocalMatch,
        *,
        fps: float = 6,
        seed: int | None = None,
        record: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not 0.1 <= fps <= SPEEDS[-1]:
            raise ValueError(f"fps must be between 0.1 and {SPEEDS[-1]} turns per second, got {fps:g}")
        if seed is not None and not 0 <= seed < 2**64:
            raise ValueError(f"seed must be between 0 and 2**64 - 1, got {seed}")
        self.match, self.fps = match, fps
        self.phase: Phase = "loading"
        self.paused = False
        self.recordings: list[Path] = []
        self._people = {seat: player for seat, player in enumerate(match.players) if isinstance(player, Person)}
        self._others = [seat for seat in range(len(match.players)) if seat not in self._people]
        self._seed = seed
        self._seeds = seed_sequence(seed)
        self._record = record
        self._games = 0
        self._clock, self._now = clock, clock()
        self._elapsed = 0.0  # seconds since the last turn, without pauses
        self._countdown = 0.0  # seconds left
        self._steps = 0  # single turns asked for during a pause
        self._restart = self._closed = False
        self._slides = True  # whether snakes slide during the last turn
        self._note: tuple[screens.Line, float] = ((), 0.0)  # and the time when it ends
        self._thinking = _Background()
        self._screen = render.open_window(match.rules, "snake-pz", 1.5)
        self._thinking.start(self._warm_up)

    def run(self) -> None:
        """Run the session until the window is closed."""
        import pygame

        pace = pygame.time.Clock()
        try:
            while self.frame():
                pace.tick(FRAMES)
        finally:
            self.close()

    def frame(self) -> bool:
        """Handle events, advance to the current time, and draw.

        Returns:
            False once the window is closed.

        Raises:
            Exception: an exception that a player raised.
        """
        import pygame

        now = self._clock()
        passed, self._now = min(now - self._now, 0.25), now  # a window does not draw while it is dragged
        for event in pygame.event.get():
            self._handle(event)
        if self._closed:
            return False
        self._thinking.check()
        self._advance(passed)
        self._draw()
        return True

    def close(self) -> None:
        """Close the window and save the replay of the running game. May be called again."""
        import pygame

        self._closed = True
        pygame.display.quit()
        self._save()
        self._thinking.stop()

    # ---------------------------------------------------------------------------------------------------------- keyboard

    def _handle(self, event: pygame.event.Event) -> None:
        import pygame

        if event.type in (pygame.QUIT, pygame.WINDOWCLOSE):
            self._closed = True
        elif event.type == pygame.WINDOWFOCUSLOST and self.phase in ("countdown", "playing"):
            self.paused = True
        elif event.type == pygame.KEYDOWN:
            self._press(event.key)

    def _press(self, key: int) -> None:
        running = self.phase in ("countdown", "playing")
        if key in key_codes("quit"):
            self._closed = True
        elif key in key_codes("faster") or key in key_codes("slower"):
            self._change_speed(key in key_codes("faster"))
        elif self.phase == "start" and key in key_codes("start"):
            self._count_down()
        elif (running and key in key_codes("restart")) or (self.phase == "over" and key in key_codes("again")):
            self._restart = True
        elif running and key in key_codes("pause"):
            self.paused = not self.paused
        elif self.phase == "playing" and self.paused and key in key_codes("step"):
            self._steps += 1
        elif running:
            for person in self._people.values():
                person.press(key)

    def _change_speed(self, faster: bool) -> None:
        if faster:
            self.fps = next((speed for speed in SPEEDS if speed > self.fps), self.fps)
        else:
            self.fps = next((speed for speed in reversed(SPEEDS) if speed < self.fps), self.fps)
        self._say((f"{self.fps:g} turns a second",))

    # -------------------------------------------------------------------------------------------------------------- time

    def _advance(self, passed: float) -> None:
        """Advance by this many seconds."""
        if not self.paused:
            self._elapsed += passed
        idle = not self._thinking.busy
        if self.phase == "loading" and idle:
            self._begin()
            self.phase = "start"
        elif self._restart and idle:
            self._save()
            self._begin()
            self._count_down()
        elif self.phase == "countdown" and not self.paused:
            self._countdown -= passed
            if self._countdown <= 0:
                self.phase, self._elapsed = "playing", 0.0
        elif self.phase == "playing" and idle and (self._steps if self.paused else self._elapsed * self.fps >= 1):
            self._turn()

    def _begin(self) -> None:
        """Start the next game, and let the players that are no people decide."""
        first = self._seed if self._seed is not None and self._games == 0 else None
        self.match.start(first if first is not None else int(self._seeds.spawn(1)[0].generate_state(1)[0]))
        self._games += 1
        self._restart, self.paused, self._steps, self._slides = False, False, 0, True
        self._think()

    def _count_down(self) -> None:
        self.phase, self._countdown = "countdown", COUNTDOWN

    def _think(self) -> None:
        if self.match.engine.state.alive[0, self._others].any():
            self._thinking.start(lambda: self.match.decide(self._others))

    def _warm_up(self) -> None:
        """Play a turn of a game that is discarded, so that everything is compiled and loaded before the clock runs."""
        self.match.start(0)
        self.match.decide(range(len(self.match.players)))
        self.match.turn()

    def _turn(self) -> None:
        """Play a turn with the moves of people as they are now, and of the others as they decided before."""
        self.match.decide(self._people)
        self.match.turn()
        late = self._elapsed - 1 / self.fps
        self._elapsed = late if not self.paused and late < 0.5 / self.fps else 0.0
        self._steps = max(self._steps - 1, 0)
        self._slides = not self.paused
        state = self.match.engine.state
        if state.over[0]:
            self.phase, self.paused = "over", False
            self._save()
            return
        if state.just_died[0, list(self._people)].any() and not state.alive[0, list(self._people)].any():
            self._say(("Watch on, or", Key("R"), "for a new game"))
        self._think()

    def _save(self) -> None:
        """Save the replay of the game so far, unless that was done."""
        recorder, self.match.recorder = self.match.recorder, None
        if self._record is None or recorder is None or not self._games:
            return
        replay = recorder.replay()
        if replay.actions:
            number = len(self.recordings) + 1
            path = self._record if number == 1 else self._record.with_stem(f"{self._record.stem}-{number}")
            replay.save(path)
            self.recordings.append(path)

    # ----------------------------------------------------------------------------------------------------------- picture

    def _say(self, parts: screens.Line) -> None:
        self._note = parts, self._now + NOTE_TIME

    def _draw(self) -> None:
        import pygame

        screen = pygame.display.get_surface() or self._screen
        match, state = self.match, self.match.engine.state
        if self.phase == "loading":
            screen.fill(PAPER)
            screens.draw_centred(screen, screens.line((Quiet("getting ready ..."),), 20), screen.get_rect())
            pygame.display.flip()
            return
        before = match.before if self._slides else None
        progress = min(self._elapsed * self.fps, 1.0)
        board = render.draw_on(screen, state, match.rules, names=match.names, before=before, progress=progress)
        if self.phase == "start":
            screens.shade(screen, 0.55)
            card = screens.start_card(match, describe(match.rules, self.fps), screen.get_size())
            screens.draw_centred(screen, card, screen.get_rect())
        elif self.phase == "countdown":
            tags = {seat: match.names[seat] for seat in self._people}
            screens.draw_countdown(screen, board, max(1, int(np.ceil(self._countdown))))
            screens.draw_tags(screen, board, state, match.rules, tags)
        elif self.phase == "over" and self._elapsed >= AFTERGLOW:
            screens.draw_centred(screen, screens.result_card(match, screen.get_size()), board)
        self._draw_note(screen, board)
        pygame.display.flip()

    def _draw_note(self, screen: pygame.Surface, board: pygame.Rect) -> None:
        note, until = self._note
        if self.paused:
            screens.draw_note(
                screen,
                board,
                ("Paused", Key("Space"), Quiet("go on"), Key("."), Quiet("one turn"), Key("R"), Quiet("new game")),
            )
        elif self._now < until:
            screens.draw_note(screen, board, note)
        elif self._restart or (self.phase == "playing" and self._elapsed > 1 / self.fps + PATIENCE):
            screens.draw_note(screen, board, (Quiet("thinking ..."),))


def describe(rules: Rules, fps: float) -> str:
    """The rules and the speed in a line."""
    edge = "walls" if rules.edge == "wall" else "wraps around"
    snakes = "1 snake" if rules.num_snakes == 1 else f"{rules.num_snakes} snakes"
    return f"{rules.width} x {rules.height}, {edge}, {snakes}, {fps:g} turns a second"


class _Background:
    """Run jobs one after the other in a daemon thread."""

    def __init__(self) -> None:
        self.busy = False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="players")
        self._thread.start()

    def start(self, job: Callable[[], None]) -> None:
        """Start a job. Not allowed while `busy`."""
        self.busy = True
        self._jobs.put(job)

    def check(self) -> None:
        """Raise the exception of the last job, if there was one."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self, patience: float = 2.0) -> None:
        """End the thread; wait at most `patience` seconds for a running job."""
        self._jobs.put(None)
        self._thread.join(patience)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except BaseException as error:
                self._error = error
            self.busy = False
