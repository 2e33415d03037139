"""Replays in a window, as films, as text, and the command in front of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from adapters.command.main import app
from snake_pz import Rules
from snake_pz.drawing import render, sprites
from snake_pz.drawing.picture import default_cell, make_layout
from snake_pz.play.watch import BAR, Viewer
from snake_pz.replay import Replay, export
from tests.support.recordings import long_game, recorded

CLASSIC = Rules.classic()
SMALL = Rules.classic(width=7, height=7, num_snakes=2)


# ----------------------------------------------------------------------------------------------------------- the window


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield render.open_window(CLASSIC, "test")
    import pygame

    pygame.display.quit()


def _press(viewer: Viewer, *keys: str) -> None:
    import pygame

    for key in keys:
        viewer.handle(pygame.event.Event(pygame.KEYDOWN, key=getattr(pygame, f"K_{key}"), unicode="", mod=0))


def _mouse(viewer: Viewer, kind: str, x: int, y: int) -> None:
    import pygame

    viewer.handle(pygame.event.Event(getattr(pygame, kind), pos=(x, y), button=1, buttons=(1, 0, 0), rel=(0, 0)))


def test_keys_pause_step_jump_and_change_the_speed(screen: Any) -> None:
    viewer = Viewer(recorded(CLASSIC), fps=8)
    last = viewer.turns
    viewer.advance(1.0)
    assert (viewer.turn, viewer.playing) == (8, True)
    viewer.advance(0.06)
    _press(viewer, "SPACE")
    viewer.advance(5.0)
    assert (viewer.position, viewer.playing) == (8, False)  # a pause is at a turn, not between two
    _press(viewer, "RIGHT", "RIGHT", "LEFT")
    assert viewer.position == 9
    _press(viewer, "END", "RIGHT")
    assert viewer.position == last
    _press(viewer, "HOME", "LEFT")
    assert viewer.position == 0
    _press(viewer, "PLUS")
    assert viewer.fps == 15
    _press(viewer, "MINUS", "MINUS", "MINUS", "MINUS", "MINUS", "MINUS")
    assert viewer.fps == 1
    _press(viewer, *["EQUALS"] * 9)
    assert viewer.fps == 60
    _press(viewer, "SPACE")
    viewer.advance(1000.0)
    assert (viewer.position, viewer.playing) == (last, False)
    _press(viewer, "SPACE")
    assert (viewer.position, viewer.playing) == (0, True)
    _press(viewer, "ESCAPE")
    assert viewer.closed


def test_the_mouse_scrubs_on_the_bar_and_pauses_on_the_board(screen: Any) -> None:
    viewer = Viewer(recorded(CLASSIC))
    width, height = screen.get_size()
    _mouse(viewer, "MOUSEBUTTONDOWN", width * 2, height - BAR // 2)
    assert (viewer.position, viewer.playing) == (viewer.turns, False)
    _mouse(viewer, "MOUSEMOTION", width // 2, 5)  # held, the pointer may leave the bar
    assert 0 < viewer.position < viewer.turns
    _mouse(viewer, "MOUSEMOTION", 0, height - 5)
    assert viewer.position == 0
    _mouse(viewer, "MOUSEBUTTONUP", 0, height - 5)
    _mouse(viewer, "MOUSEMOTION", width // 2, height - 5)
    assert viewer.position == 0
    _mouse(viewer, "MOUSEBUTTONDOWN", width // 2, 50)
    assert viewer.playing
    _mouse(viewer, "MOUSEBUTTONDOWN", width // 2, 50)
    assert not viewer.playing


def test_it_draws_the_turn_and_where_it_is(screen: Any) -> None:
    import pygame.surfarray

    replay = recorded(CLASSIC)
    viewer = Viewer(replay)
    states = list(replay.states())
    width, height = screen.get_size()
    for turn in (0, 20, viewer.turns):
        viewer.go(turn)
        viewer.draw(screen)
        shown = pygame.surfarray.array3d(screen)
        expected = pygame.Surface((width, height - BAR))
        render.draw_on(expected, states[turn], CLASSIC, names=replay.names)
        assert np.array_equal(shown[:, : height - BAR], pygame.surfarray.array3d(expected))
    bar = shown[:, height - BAR :].copy()
    viewer.go(0)
    viewer.draw(screen)
    assert not np.array_equal(pygame.surfarray.array3d(screen)[:, height - BAR :], bar)
    viewer.position = 20.5
    viewer.draw(screen)
    between = pygame.surfarray.array3d(screen)[:, : height - BAR]
    render.draw_on(expected, states[21], CLASSIC, names=replay.names, before=states[20], progress=0.5)
    assert np.array_equal(between, pygame.surfarray.array3d(expected))


@pytest.mark.parametrize("closing", ["QUIT", "WINDOWCLOSE"])
def test_the_window_shows_the_game_until_it_is_closed(closing: str, screen: Any) -> None:
    import pygame

    turns: list[int] = []

    class ClosedAtTheEnd(Viewer):
        def draw(self, screen: pygame.Surface) -> None:
            super().draw(screen)
            turns.append(self.turn)
            if not self.playing:
                pygame.event.post(pygame.event.Event(getattr(pygame, closing)))

    ClosedAtTheEnd(recorded(SMALL), fps=1000).run()
    assert turns[0] == 0 or len(turns) == 1
    assert turns == sorted(turns)
    assert turns[-1] == len(recorded(SMALL).actions)
    assert pygame.display.get_surface() is None


def test_a_window_of_any_size_can_be_drawn_on(screen: Any) -> None:
    import pygame

    viewer = Viewer(recorded(SMALL))
    for size in ((1600, 300), (60, 60), (300, 1200)):
        viewer.draw(pygame.Surface(size))


def test_no_speed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fps must be >= 0\.1, got 0"):
        Viewer(recorded(SMALL), fps=0)


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_gif_has_every_turn_and_goes_round(tmp_path: Path) -> None:
    replay = recorded(CLASSIC)
    export.write_gif(replay, tmp_path / "new" / "game.gif", fps=10)
    cell = min(default_cell(CLASSIC), export.GIF_CELL)
    layout = make_layout(CLASSIC, cell)
    with Image.open(tmp_path / "new" / "game.gif") as film:
        assert film.info["loop"] == 0
        assert film.size == (layout.width, layout.height)
        assert film.n_frames == len(replay.actions) + 1  # no two turns look alike
        for turn, picture in enumerate(export.pictures(replay, cell)):
            film.seek(turn)
            assert film.info["duration"] == (100 if turn < len(replay.actions) else 2000)
            error = np.abs(np.asarray(film.convert("RGB")).astype(int) - picture)
            assert error.max() < 70
            assert error.mean() < 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["game.gif"]


def test_a_gif_of_a_long_game_is_small(tmp_path: Path) -> None:
    export.write_gif(long_game(), tmp_path / "game.gif")
    assert (tmp_path / "game.gif").stat().st_size < 3_000_000


@pytest.mark.parametrize("fps", [0, -1, 51])
def test_speeds_that_a_gif_cannot_have_are_refused(fps: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fps of a GIF must be"):
        export.write_gif(recorded(SMALL), tmp_path / "game.gif", fps=fps)


def test_a_film_has_every_turn(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="MP4 needs the extra video")
    replay = recorded(SMALL)
    export.write_mp4(replay, tmp_path / "game.mp4", fps=10)
    frames, seconds = ffmpeg.count_frames_and_secs(str(tmp_path / "game.mp4"))
    pictures = list(export.pictures(replay))
    assert seconds == pytest.approx(frames / 10, abs=0.01)
    decode = [ffmpeg.get_ffmpeg_exe(), "-i", str(tmp_path / "game.mp4"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    shown = np.frombuffer(subprocess.run(decode, capture_output=True, check=True).stdout, np.uint8)
    shown = shown.reshape(-1, *pictures[0].shape)
    assert len(shown) == len(pictures) + 20
    for frame, picture in zip(shown, pictures, strict=False):
        assert np.abs(frame.astype(int) - picture).mean() < 8
    with pytest.raises(ValueError, match=r"fps must be >= 0\.1, got 0"):
        export.write_mp4(replay, tmp_path / "game.mp4", fps=0)


def test_text_has_every_turn() -> None:
    replay = recorded(SMALL)
    texts = list(export.texts(replay))
    assert [text.splitlines()[0].split(",")[0] for text in texts] == [f"turn {k}" for k in range(len(replay.actions) + 1)]
    assert "survivor 1" in texts[0]


# ---------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """The replays for which a window was opened; none is."""
    shown: list[Replay] = []
    monkeypatch.setattr("snake_pz.play.watch.watch", lambda replay, fps: shown.append(replay))
    return shown


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["watch", *map(str, arguments)])


def test_a_replay_is_shown_or_written(opened: list[Replay], tmp_path: Path) -> None:
    replay = recorded(SMALL)
    path = tmp_path / "game.jsonl"
    replay.save(path)
    assert _run(path).exit_code == 0
    assert [shown.actions for shown in opened] == [replay.actions]
    done = _run(path, "--html", tmp_path / "game.html", "--gif", tmp_path / "game.gif", "--record", tmp_path / "copy.jsonl")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "game.html").read_text() == replay.html()
    assert (tmp_path / "game.gif").read_bytes().startswith(b"GIF89a")
    assert (tmp_path / "copy.jsonl").read_bytes() == path.read_bytes()
    assert f"wrote {tmp_path / 'game.html'}" in done.output
    assert len(opened) == 1  # no window, since something was written
    done = _run(path, "--ansi", "--window")
    assert done.exit_code == 0
    assert done.output.count("\nturn ") == len(replay.actions)
    assert len(opened) == 2


def test_a_game_among_players_is_the_same_for_the_same_seed(opened: list[Replay], tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = _run("--players", "greedy", "survivor", "greedy", "--seed", 5, "--record", tmp_path / name, "--width", 9)
        assert done.exit_code == 0, done.output
    first = Replay.load(tmp_path / "a")
    assert first == Replay.load(tmp_path / "b")
    assert sorted(first.names) == ["greedy 1", "greedy 2", "survivor"]
    assert (first.rules.width, first.rules.height, first.rules.num_snakes) == (9, 11, 3)
    assert _run("--players", "random", "random", "--rules", "hungry_geese", "--max-cycles", 3).exit_code == 0
    assert opened[0].rules == Rules.hungry_geese(num_snakes=2)
    assert len(opened[0].actions) <= 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["a.jsonl", "b.jsonl"], "watch shows one replay, got 2"),
        (["--players", "greddy", "random"], "did you mean 'greedy'?"),
        (["--players", "random", "random", "--rules", "chess"], "rules must be one of"),
        (["--players", "random", "random", "--fps", "0"], "fps must be >= 0.1, got 0"),
        (["--players", "random", "random", "--ansi", "--fps", "1e-300"], "fps must be >= 0.1, got 1e-300"),
        (["--players", "random", "random", "--mp4", "x.mp4", "--fps", "inf"], "fps must be <= 1000, got inf"),
        (["--players", "random", "random", "--record", "x", "--gif", "x.gif", "--fps", "nan"], "must be <= 1000, got nan"),
        (
            ["--players", "random", "random", "--record", "x", "--gif", "x.gif", "--fps", "60"],
            "fps of a GIF must be <= 50, got 60",
        ),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(
    arguments: list[str], text: str, opened: list[Replay], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = _run(*arguments)
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_missing_encoder_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    done = _run("--players", "random", "random", "--mp4", tmp_path / "game.mp4")
    assert done.exit_code == 2
    assert "pip install 'snake-pz[video]'" in " ".join(done.output.split())


@pytest.mark.parametrize("arguments", [["play"], ["watch", "--players", "random", "random", "--gif", "game.gif"]])
def test_a_missing_pygame_is_one_sentence(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygame"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygame", None)
    monkeypatch.setattr("snake_pz.drawing.sprites.load_pygame", sprites.load_pygame.__wrapped__)
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pygame" in done.stderr
    assert "install what is missing" in done.stderr


def test_no_display_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_window(*arguments: Any) -> None:
        raise render.NoDisplayError("nothing to see")

    monkeypatch.setattr("snake_pz.play.watch.render.open_window", no_window)
    done = _run("--players", "random", "random")
    assert done.exit_code == 2
    assert "there is no display to open a window on: say --html FILE" in " ".join(done.output.split())
