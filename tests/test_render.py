"""Pictures, text and the window, of positions written out by hand."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from snake_pz import drawing, render
from snake_pz.drawing import APPLE, HEADINGS, PALETTE, make_layout
from snake_pz.rules import Rules
from snake_pz.state import BODY, WALL, Position, SnakeState

RULES = Rules(width=7, height=5, num_snakes=2)
BENT = [(4, 1), (3, 1), (2, 1), (2, 2), (2, 3), (1, 3), (0, 3)]
SHORT = [(6, 4), (6, 3), (6, 2)]


def position(rules=RULES, **changes):
    fields = {"bodies": [BENT, SHORT], "food": [(5, 1)], **changes}
    return SnakeState.from_positions(rules, [Position(**fields)])


def middle(picture, rules, x, y, dx=0.0, dy=0.0, cell_size=None):
    """The pixel in the middle of a cell, or a part of a cell beside it."""
    layout = make_layout(rules, cell_size or drawing.default_cell(rules))
    row = layout.top + (y + 0.5 + dy) * layout.cell
    column = layout.left + (x + 0.5 + dx) * layout.cell
    return tuple(picture[int(row), int(column)].tolist())


def board_of(picture, rules):
    layout = make_layout(rules, drawing.default_cell(rules))
    return picture[
        layout.top : layout.top + layout.rows * layout.cell, layout.left : layout.left + layout.columns * layout.cell
    ]


def show_colours(picture):
    return {tuple(colour) for colour in np.unique(picture.reshape(-1, 3), axis=0).tolist()}


# ------------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("width", "height", "snakes"), [(2, 4, 1), (7, 7, 4), (11, 11, 4), (20, 6, 8), (39, 39, 8), (128, 128, 30)]
)
def test_shape(width, height, snakes):
    rules = Rules(width=width, height=height, num_snakes=snakes, start_length=2)
    for cell_size in (None, 4, 9):
        picture = render.rgb_array(SnakeState.empty(rules, 1), rules, cell_size=cell_size)
        assert picture.dtype == np.uint8
        assert picture.flags.c_contiguous
        assert picture.flags.writeable
        assert picture.shape[2] == 3
        assert picture.shape[0] % 16 == picture.shape[1] % 16 == 0
    assert render.rgb_array(SnakeState.empty(rules, 1), rules).shape[1] < 1500


def test_equal_states_give_equal_pixels_and_are_left_alone():
    state = position()
    before = pickle.dumps(state)
    first, second = render.rgb_array(state, RULES), render.rgb_array(copy.deepcopy(state), RULES)
    assert np.array_equal(first, second)
    first[:] = 0
    assert np.array_equal(second, render.rgb_array(state, RULES))
    assert pickle.dumps(state) == before


def test_game_is_the_row_of_the_batch():
    states = SnakeState.from_positions(RULES, [Position([BENT, SHORT]), Position([BENT[:3], SHORT])])
    assert not np.array_equal(render.rgb_array(states, RULES, 0), render.rgb_array(states, RULES, 1))
    assert np.array_equal(
        render.rgb_array(states, RULES, 1), render.rgb_array(position(bodies=[BENT[:3], SHORT], food=()), RULES)
    )


def test_what_differs_is_seen():
    pictures = [
        render.rgb_array(state, RULES)
        for state in (
            position(),
            position(food=[(5, 2)]),
            position(hazards=[(0, 0)]),
            position(hazards=[(0, 0), (0, 0)]),
            position(bodies=[BENT[:-1], SHORT]),
            position(bodies=[[*BENT, BENT[-1]], SHORT]),
            position(bodies=[BENT[::-1], SHORT]),
            position(bodies=[SHORT, BENT]),
            position(health=[50, 100]),
            position(turn=7),
        )
    ]
    pictures.append(render.rgb_array(position(), RULES, names=["a", "b"]))
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


@pytest.mark.parametrize("cell_size", [15, 16, 40])
def test_bodies_have_their_colour_in_the_middle_of_every_cell_and_between(cell_size):
    picture = render.rgb_array(position(), RULES, cell_size=cell_size)
    for snake, body in enumerate((BENT, SHORT)):
        for (x, y), (to_x, to_y) in itertools.pairwise(body):
            dx, dy = (to_x - x) / 2, (to_y - y) / 2
            assert middle(picture, RULES, x, y, dx, dy, cell_size) == PALETTE[snake]
            assert middle(picture, RULES, to_x, to_y, cell_size=cell_size) == PALETTE[snake]
    assert middle(picture, RULES, 3, 2, cell_size=cell_size) not in PALETTE, "cells beside a body stay free"


def test_every_snake_of_many_looks_different():
    rules = Rules(width=24, height=24, num_snakes=24)
    looks = set()
    for snake in range(24):
        bodies = [[(5, 5), (4, 5), (3, 5), (2, 5), (1, 5)] if k == snake else [] for k in range(24)]
        looks.add(board_of(render.rgb_array(position(rules, bodies=bodies), rules), rules).tobytes())
    assert len(looks) == 24
    assert len(set(PALETTE)) == 8


def test_heads_look_where_they_go():
    rules = Rules(width=5, height=5, num_snakes=1)
    layout = make_layout(rules, drawing.default_cell(rules))
    views = []
    for heading, (dx, dy) in enumerate(HEADINGS):
        picture = render.rgb_array(position(rules, bodies=[[(2, 2)]], headings=[heading], food=()), rules)
        views.append(picture.tobytes())
        cell = board_of(picture, rules)[2 * layout.cell : 3 * layout.cell, 2 * layout.cell : 3 * layout.cell].astype(int)
        eyes = np.argwhere(cell.min(axis=2) > 240).mean(axis=0) - (layout.cell - 1) / 2
        assert np.sign(np.rint(eyes / 2)).tolist() == [dy, dx], "the whites of the eyes are in the front half"
    assert len(set(views)) == 4


def test_tails_taper_and_doubled_ones_are_blunt():
    def width_at_tail(body):
        row = board_of(render.rgb_array(position(bodies=[body, []], food=()), RULES), RULES)
        column = row[:, int((body[-1][0] + 0.5) * make_layout(RULES, drawing.default_cell(RULES)).cell)]
        return int((column == PALETTE[0]).all(axis=1).sum())

    body = [(5, 2), (4, 2), (3, 2), (2, 2), (1, 2)]
    assert 0 < 2 * width_at_tail(body) < width_at_tail([*body, body[-1]])


def test_stacked_and_scattered_segments_draw():
    start = position(bodies=[[(1, 1)] * 3, [(4, 4)]])
    assert middle(render.rgb_array(start, RULES), RULES, 1, 1, dy=0.2) == PALETTE[0]
    scattered = position(bodies=[[(0, 0), (3, 3), (6, 0)], SHORT])
    picture = render.rgb_array(scattered, RULES)
    assert middle(picture, RULES, 3, 3) == PALETTE[0]
    assert middle(picture, RULES, 2, 2) not in PALETTE


def test_food_and_hazards_are_seen():
    with_food, without = render.rgb_array(position(), RULES), render.rgb_array(position(food=()), RULES)
    assert middle(with_food, RULES, 5, 1, dy=0.1) == APPLE
    assert APPLE not in show_colours(without)
    assert middle(render.rgb_array(position(hazards=[(6, 0)]), RULES), RULES, 6, 0) != middle(without, RULES, 6, 0)


def test_a_body_across_the_seam_is_joined_to_the_edge_on_both_sides():
    wrap = RULES.replace(edge="wrap")
    picture = render.rgb_array(
        position(wrap, bodies=[[(1, 2), (0, 2), (6, 2), (5, 2), (5, 3), (5, 4), (5, 0), (5, 1)], []]), wrap
    )
    for x, y, dx, dy in ((0, 2, -0.49, 0), (6, 2, 0.49, 0), (5, 4, 0, 0.49), (5, 0, 0, -0.49)):
        assert middle(picture, wrap, x, y, dx, dy) == PALETTE[0]
    for x in (2, 3, 4):
        assert middle(picture, wrap, x, 2) not in PALETTE, "nothing is drawn across the board"
    layout = make_layout(wrap, drawing.default_cell(wrap))
    outside = np.concatenate([picture[:, : layout.left].reshape(-1, 3), picture[: layout.top, : layout.panel].reshape(-1, 3)])
    assert PALETTE[0] not in {tuple(colour) for colour in outside.tolist()}


def test_a_seam_of_a_narrow_board():
    wrap = Rules(width=2, height=4, num_snakes=1, start_length=1, edge="wrap")
    picture = render.rgb_array(position(wrap, bodies=[[(0, 1), (1, 1)]], food=()), wrap)
    assert middle(picture, wrap, 0, 1, dx=0.5) == PALETTE[0]
    assert middle(picture, wrap, 1, 1, dx=0.49) != PALETTE[0]


def test_edges_tell_walls_from_seams():
    wrap = RULES.replace(edge="wrap")
    wall_picture, wrap_picture = render.rgb_array(position(), RULES), render.rgb_array(position(wrap), wrap)
    assert np.array_equal(board_of(wall_picture, RULES), board_of(wrap_picture, wrap))
    assert not np.array_equal(wall_picture, wrap_picture)


def dead(state, snake, cause, killer=-1):
    """The position with a snake that died on this turn."""
    state.alive[0, snake] = False
    state.cause[0, snake] = cause
    state.killer[0, snake] = killer
    state.died[0, snake] = state.turn[0]
    state.just_died[0, snake] = True
    return state


def test_the_dead_are_gone_and_leave_a_mark_for_one_turn():
    state = dead(position(turn=3), 0, BODY, 1)
    picture = render.rgb_array(state, RULES)
    for x, y in BENT[2:]:
        assert middle(picture, RULES, x, y) not in PALETTE
    assert PALETTE[0] in show_colours(board_of(picture, RULES)), "the mark"
    state.just_died[:] = False
    assert PALETTE[0] not in show_colours(board_of(render.rgb_array(state, RULES), RULES))


def test_a_death_at_the_wall_is_marked_there():
    state = dead(position(), 1, WALL)
    state.head[0, 1] += 1
    state.body[0, 1, state.head[0, 1]] = -1
    picture = render.rgb_array(state, RULES)
    assert middle(picture, RULES, 6, 4, dx=0.2, dy=0.42) == PALETTE[1]
    assert middle(picture, RULES, 6, 3) not in PALETTE


def test_bad_input():
    with pytest.raises(ValueError, match="cell_size must be between 4 and 256 pixels, got 3"):
        render.rgb_array(position(), RULES, cell_size=3)
    with pytest.raises(ValueError, match="names must have one for each of the 2 snakes, got 1"):
        render.rgb_array(position(), RULES, names=["a"])
    with pytest.raises(ValueError, match="fps must be >= 0, got -1"):
        render.Window(fps=-1)


def test_long_names_stay_in_their_panel():
    picture = render.rgb_array(position(), RULES, names=["W" * 200, "{killer}"])
    layout = make_layout(RULES, drawing.default_cell(RULES))
    assert (picture[:, -layout.font :] == drawing.PAPER).all()


def run(code, **environment):
    """A fresh process without any display variable."""
    clean = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=clean | environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


SETUP = """
import sys
from snake_pz import render
from snake_pz.rules import Rules
from snake_pz.state import SnakeState
rules = Rules()
state = SnakeState.empty(rules, 1)
"""


def test_importing_loads_no_pygame_and_neither_does_text():
    assert run(SETUP + "render.ansi(state, rules); render.Window().close(); print('pygame' in sys.modules)") == "False\n"


def test_a_picture_needs_no_display_and_prints_nothing():
    code = "import pygame; render.rgb_array(state, rules); print(pygame.display.get_init())"
    assert run(SETUP + "render.rgb_array(state, rules);" + code).split()[-1] == "False"
    assert run(SETUP + "print(render.rgb_array(state, rules).shape)") == "(496, 784, 3)\n"


# ----------------------------------------------------------------------------------------------------------------- text


def test_ansi():
    state = position(food=[(5, 1), (0, 0)], hazards=[(0, 0), (6, 0), (1, 3)], health=[97, 5], turn=12)
    assert render.ansi(state, RULES, names=["me", "you"]) == "\n".join(
        [
            "turn 12",
            "#################",
            "# *~. . . . . .~#",
            "# . . a a A>* . #",
            "# . . a . . . b #",
            "# a a~a . . . b #",
            "# . . . . . . Bv#",
            "#################",
            "A me   length   7  health  97  alive",
            "B you  length   3  health   5  alive",
        ]
    )


def test_ansi_of_a_lost_game_that_wraps_without_hunger():
    rules = RULES.replace(edge="wrap", hunger="none")
    state = dead(position(rules, food=(), turn=8), 0, BODY, 1)
    state.over[0] = True
    state.rank[0] = 2, 1
    text = render.ansi(state, rules).splitlines()
    assert text[:3] == ["turn 8, game over", ": : : : : : : : :", ": . . . . . . . :"]
    assert text[-2:] == ["A snake_0  length   7  ran into snake_1, turn 8", "B snake_1  length   3  wins"]
    assert {len(line) for line in text[1:-2]} == {17}


# --------------------------------------------------------------------------------------------------------------- window


@pytest.fixture
def pygame(monkeypatch) -> Iterator[object]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    drawing.load_pygame()
    import pygame

    yield pygame
    pygame.quit()


def test_window_shows_the_picture_of_its_own_size(pygame):
    window = render.Window(fps=0)
    assert not pygame.display.get_init(), "it opens with the first show"
    window.show(position(), RULES)
    screen = pygame.display.get_surface()
    shown = pygame.surfarray.array3d(screen).transpose(1, 0, 2)
    cell_size = render._fitting(RULES, *screen.get_size()).cell
    assert cell_size >= drawing.default_cell(RULES)
    assert np.array_equal(shown, render.rgb_array(position(), RULES, cell_size=cell_size))
    window.close()
    window.close()
    assert not pygame.display.get_init()
    window.show(position(), RULES)
    assert not pygame.display.get_init(), "closed for good"


@pytest.mark.parametrize("size", [(1200, 500), (400, 900), (100, 60)])
def test_window_keeps_the_aspect_when_resized(pygame, size):
    window = render.Window(fps=0)
    window.show(position(), RULES)
    pygame.display.set_mode(size, pygame.RESIZABLE)
    window.show(position(), RULES)
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)
    assert shown.shape[:2] == size[::-1]
    if size != (100, 60):
        assert (shown[0] == drawing.PAPER).all()
        assert PALETTE[0] in show_colours(shown)
        assert PALETTE[1] in show_colours(shown)
    window.close()


@pytest.mark.parametrize("event", ["QUIT", "WINDOWCLOSE"])
def test_closing_the_window_ends_it_and_nothing_else(pygame, event):
    window = render.Window(fps=0)
    window.show(position(), RULES)
    pygame.event.post(pygame.event.Event(getattr(pygame, event)))
    window.show(position(), RULES)
    assert window.closed
    assert not pygame.display.get_init()
    window.show(position(), RULES)
    window.close()
    again = render.Window(fps=0)
    again.show(position(), RULES)
    assert not again.closed
    again.close()


def test_window_leaves_the_keys_to_the_player(pygame):
    window = render.Window(fps=0)
    window.show(position(), RULES)
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_LEFT))
    pygame.event.post(pygame.event.Event(pygame.MOUSEMOTION))
    window.show(position(), RULES)
    assert [event.key for event in pygame.event.get()] == [pygame.K_LEFT]
    window.close()


def test_window_paces(pygame):
    window = render.Window(fps=50)
    window.show(position(), RULES)
    start = time.perf_counter()
    for _ in range(5):
        window.show(position(), RULES)
    assert time.perf_counter() - start > 0.08
    window.close()


def test_pictures_and_windows_survive_pygame_quit_and_leave_a_display_alone(pygame):
    before = render.rgb_array(position(), RULES)
    window = render.Window(fps=0)
    window.show(position(), RULES)
    pygame.quit()
    assert np.array_equal(render.rgb_array(position(), RULES), before)
    render.rgb_array(position(), RULES, names=["not", "cached"])
    window.show(position(), RULES)
    screen = pygame.display.set_mode((320, 200), depth=16)
    assert np.array_equal(render.rgb_array(position(), RULES), before)
    drawing._sprite.cache_clear()
    drawing._background.cache_clear()
    drawing._text.cache_clear()
    assert np.array_equal(render.rgb_array(position(), RULES), before)
    assert pygame.display.get_surface() is screen
    assert screen.get_size() == (320, 200)


def test_no_display_is_one_clear_sentence():
    code = """
try:
    render.Window().show(state, rules)
except RuntimeError as error:
    print(error)
"""
    said = run(SETUP + code, SDL_VIDEODRIVER="x11").strip()
    assert said.startswith("cannot open a window, there is no display (")
    assert "render_mode='rgb_array'" in said
    if sys.platform == "linux":
        assert run(SETUP + code).strip().startswith("cannot open a window, there is no display (SDL found no screen)")


@pytest.mark.slow
def test_pictures_are_drawn_fast():
    rules = Rules()
    body = [(x, y) for y in range(0, 10, 2) for x in (range(1, 11) if y % 4 == 0 else range(10, 0, -1))]
    bodies = [body[:12], body[14:26], body[28:40], [(1, 10), (2, 10), (3, 10)]]
    states = [position(rules, bodies=bodies, turn=turn) for turn in range(200)]
    render.rgb_array(states[0], rules)
    start = time.process_time()
    for state in states:
        render.rgb_array(state, rules)
    assert len(states) / (time.process_time() - start) >= 400, "frames a second of processor time"
