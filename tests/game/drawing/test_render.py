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
from functools import partial

import numpy as np
import pytest

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Cause, Position, SnakeState
from snake_pz.drawing import render, sprites
from snake_pz.drawing.picture import HEADINGS, _background, default_cell, draw_game, make_layout
from snake_pz.drawing.sprites import APPLE, PALETTE
from snake_pz.rules import Rules

RULES = Rules(width=7, height=5, num_snakes=2)
BENT = [(4, 1), (3, 1), (2, 1), (2, 2), (2, 3), (1, 3), (0, 3)]
SHORT = [(6, 4), (6, 3), (6, 2)]


def position(rules=RULES, **changes):
    fields = {"bodies": [BENT, SHORT], "food": [(5, 1)], **changes}
    return SnakeState.from_positions(rules, [Position(**fields)])


def middle(picture, rules, x, y, dx=0.0, dy=0.0, cell_size=None):
    """The pixel in the middle of a cell, or a part of a cell beside it."""
    layout = make_layout(rules, cell_size or default_cell(rules))
    row = layout.top + (y + 0.5 + dy) * layout.cell
    column = layout.left + (x + 0.5 + dx) * layout.cell
    return tuple(picture[int(row), int(column)].tolist())


def board_of(picture, rules):
    layout = make_layout(rules, default_cell(rules))
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


def test_a_picture_shows_one_game_of_a_batch(pygame):
    engine = SnakeEngine(RULES, 2)
    engine.load(SnakeState.from_positions(RULES, [Position([BENT, SHORT]), Position([BENT[:3], SHORT])]))
    alone = position(bodies=[BENT[:3], SHORT], food=())
    assert np.array_equal(render.rgb_array(engine.game(1).state, RULES), render.rgb_array(alone, RULES))
    assert render.ansi(engine.game(1).state, RULES) == render.ansi(alone, RULES)
    for draw in (render.rgb_array, render.ansi, partial(render.draw_on, pygame.Surface((300, 200))), render.Window().show):
        with pytest.raises(ValueError, match=r"state must be one game, got 2: .*SnakeEngine\.game"):
            draw(engine.state, RULES)


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
    layout = make_layout(rules, default_cell(rules))
    views = []
    for heading, (dx, dy) in enumerate(HEADINGS):
        image = render.rgb_array(position(rules, bodies=[[(2, 2)]], headings=[heading], food=()), rules)
        views.append(image.tobytes())
        cell = board_of(image, rules)[2 * layout.cell : 3 * layout.cell, 2 * layout.cell : 3 * layout.cell].astype(int)
        eyes = np.argwhere(cell.min(axis=2) > 240).mean(axis=0) - (layout.cell - 1) / 2
        assert np.sign(np.rint(eyes / 2)).tolist() == [dy, dx], "the whites of the eyes are in the front half"
    assert len(set(views)) == 4


def test_tails_taper_and_doubled_ones_are_blunt():
    def width_at_tail(body):
        row = board_of(render.rgb_array(position(bodies=[body, []], food=()), RULES), RULES)
        column = row[:, int((body[-1][0] + 0.5) * make_layout(RULES, default_cell(RULES)).cell)]
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
    layout = make_layout(wrap, default_cell(wrap))
    outside = np.concatenate([picture[:, : layout.left].reshape(-1, 3), picture[: layout.top, : layout.panel].reshape(-1, 3)])
    assert PALETTE[0] not in {tuple(colour) for colour in outside.tolist()}


def test_a_seam_of_a_narrow_board():
    wrap = Rules(width=2, height=4, num_snakes=1, start_length=1, edge="wrap")
    picture = render.rgb_array(position(wrap, bodies=[[(0, 1), (1, 1)]], food=()), wrap)
    assert middle(picture, wrap, 0, 1, dx=0.5) == PALETTE[0]
    assert middle(picture, wrap, 1, 1, dx=0.49) != PALETTE[0]


def test_a_bend_at_a_seam_stays_in_its_cell():
    wrap = RULES.replace(edge="wrap")
    for bent in (
        [(6, 2), (0, 2), (0, 3), (0, 4), (1, 4), (2, 4), (3, 4)],
        [(2, 4), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1), (5, 2)],
    ):
        picture = render.rgb_array(position(wrap, bodies=[bent, []], food=()), wrap)
        (x, y), (to_x, to_y) = bent[1:3]
        dx, dy = to_x - x, to_y - y
        assert middle(picture, wrap, x, y) == PALETTE[0]
        assert middle(picture, wrap, x, y, dx=0.45 * dy, dy=0.45 * dx) not in PALETTE


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
    state = dead(position(turn=3), 0, Cause.BODY, 1)
    picture = render.rgb_array(state, RULES)
    for x, y in BENT[2:]:
        assert middle(picture, RULES, x, y) not in PALETTE
    assert PALETTE[0] in show_colours(board_of(picture, RULES)), "the mark"
    state.just_died[:] = False
    assert PALETTE[0] not in show_colours(board_of(render.rgb_array(state, RULES), RULES))


def test_a_death_at_the_wall_is_marked_there():
    state = dead(position(), 1, Cause.WALL)
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
    layout = make_layout(RULES, default_cell(RULES))
    assert (picture[:, -layout.font :] == sprites.PAPER).all()


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
from snake_pz.drawing import render
from snake_pz.rules import Rules
from snake_pz.core.state import SnakeState
rules = Rules()
state = SnakeState.empty(rules, 1)
"""


def test_importing_loads_no_pygame_and_neither_does_text():
    assert run(SETUP + "render.ansi(state, rules); render.Window().close(); print('pygame' in sys.modules)") == "False\n"


def test_a_picture_needs_no_display_and_prints_nothing():
    code = "import pygame; render.rgb_array(state, rules); print(pygame.display.get_init())"
    assert run(SETUP + "render.rgb_array(state, rules);" + code).split()[-1] == "False"
    assert run(SETUP + "print(render.rgb_array(state, rules).shape)") == "(496, 784, 3)\n"


# ---------------------------------------------------------------------------------------------------------------- slide


def sliding(before, after, progress, rules=RULES, names=None):
    """The picture on the way from one to the other."""
    layout = make_layout(rules, default_cell(rules))
    canvas = draw_game(after, rules, layout, ["a"] * rules.num_snakes, before, progress)
    import pygame.surfarray

    return pygame.surfarray.array3d(canvas).transpose(1, 0, 2)


AHEAD = [(5, 1), *BENT[:-1]]


def test_a_slide_starts_and_ends_as_the_snakes_stand():
    before, after = position(food=()), position(bodies=[AHEAD, SHORT], food=())
    body = [board_of(sliding(before, after, progress), RULES) for progress in (0.0, 1.0)]
    heading = position(food=())
    assert np.array_equal(body[0], board_of(render.rgb_array(heading, RULES), RULES))
    assert np.array_equal(body[1], board_of(render.rgb_array(after, RULES), RULES))


def test_half_way_head_and_tail_are_between_two_cells():
    before, after = position(food=()), position(bodies=[AHEAD, SHORT], food=())
    picture = sliding(before, after, 0.5)
    assert middle(picture, RULES, 4, 1, dx=0.5, dy=0.3) == PALETTE[0], "the head is as wide as it is there"
    assert middle(picture, RULES, 5, 1, dx=0.3) not in PALETTE
    assert middle(picture, RULES, 0, 3, dx=0.5) == PALETTE[0], "the tip of the tail"
    assert middle(picture, RULES, 0, 3) not in PALETTE
    assert np.array_equal(picture[:, -200:], sliding(None, after, 1)[:, -200:])
    eating = sliding(before, position(bodies=[[(5, 1), *BENT], SHORT], food=()), 0.5)
    assert middle(eating, RULES, 0, 3) == PALETTE[0], "the tail stays where it eats"


def test_a_curled_up_snake_and_a_snake_of_one_slide_too():
    for before, after in (([(2, 2)] * 3, [(3, 2), (2, 2), (2, 2)]), ([(2, 2)], [(3, 2)])):
        picture = sliding(position(bodies=[before, []], food=()), position(bodies=[after, []], food=(), headings=[1, 1]), 0.5)
        assert middle(picture, RULES, 2, 2, dx=0.5, dy=0.3) == PALETTE[0]
        assert middle(picture, RULES, 3, 2, dx=0.2) not in PALETTE


def test_a_slide_across_a_seam_is_seen_on_both_sides():
    wrap = RULES.replace(edge="wrap")
    before, after = [(6, 1), (5, 1), (4, 1)], [(0, 1), (6, 1), (5, 1)]
    picture = sliding(position(wrap, bodies=[before, []]), position(wrap, bodies=[after, []]), 0.5, wrap)
    assert middle(picture, wrap, 6, 1, dx=0.49, dy=0.3) == PALETTE[0]
    assert middle(picture, wrap, 0, 1, dx=-0.49, dy=0.3) == PALETTE[0]
    assert middle(picture, wrap, 3, 1) not in PALETTE


def test_what_cannot_have_come_from_there_stands_still():
    before, after = position(bodies=[SHORT, BENT], food=()), position(food=())
    assert np.array_equal(sliding(before, after, 0.3), sliding(None, after, 1))


def test_food_stays_until_it_is_eaten_and_grows():
    before, after = position(food=[(5, 1)]), position(bodies=[[(5, 1), *BENT], SHORT], food=[(0, 0)])
    early, late = sliding(before, after, 0.2), sliding(before, after, 0.9)
    assert APPLE in show_colours(early[:, : early.shape[1] // 2])
    assert middle(early, RULES, 0, 0, dy=0.2) != APPLE
    assert middle(late, RULES, 0, 0, dy=0.2) == APPLE
    assert middle(late, RULES, 5, 1, dx=0.3) != APPLE


@pytest.mark.parametrize("cause", [Cause.WALL, Cause.BODY])
def test_the_dying_fade_and_are_marked_at_the_end(cause):
    before, after = position(food=()), position(food=())
    if cause == Cause.WALL:
        after.body[0, 0, after.head[0, 0] + 1] = -1
        after.head[0, 0] += 1
    dead(after, 0, cause, 1)
    early, late, gone = (sliding(before, after, progress) for progress in (0.25, 0.9, 1.0))
    brightness = [middle(picture, RULES, 2, 2)[2] for picture in (early, late, gone)]
    assert brightness[0] > brightness[1] > brightness[2]
    assert PALETTE[0] not in show_colours(board_of(early, RULES))
    assert PALETTE[0] in show_colours(board_of(late, RULES)), "the mark"


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


NAMES = ["\x1b]0;owned\x07", "two\nlines\0\ud800"]


def test_names_give_a_terminal_no_orders():
    lines = render.ansi(position(), RULES, names=NAMES).splitlines()
    assert r"A \x1b]0;owned\x07  " in lines[-2]
    assert r"B two\nlines\x00\ud800  " in lines[-1]


def test_names_may_be_drawn_whatever_they_hold():
    shown = render.rgb_array(position(), RULES, names=NAMES)
    assert (shown == render.rgb_array(position(), RULES, names=[r"\x1b]0;owned\x07", r"two\nlines\x00\ud800"])).all()
    window = render.Window(fps=0, title=NAMES[1])
    window.show(position(), RULES, names=NAMES)
    window.close()


def test_ansi_of_a_snake_that_has_not_moved_heads_up():
    rules = Rules.battlesnake(num_snakes=2)
    engine = SnakeEngine(rules, seed=0)
    engine.reset()
    assert render.ansi(engine.state, rules).count("^") == 2


def test_ansi_of_a_lost_game_that_wraps_without_hunger():
    rules = RULES.replace(edge="wrap", hunger="none")
    state = dead(position(rules, food=(), turn=8), 0, Cause.BODY, 1)
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
    sprites.load_pygame()
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
    assert cell_size >= default_cell(RULES)
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
        assert (shown[0] == sprites.PAPER).all()
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


def test_window_slides_from_turn_to_turn_and_from_nowhere_else(pygame, monkeypatch):
    drawn = []

    def draw_on(*args, before=None, progress=1.0, real=render.draw_on, **kwargs):
        drawn.append((before is not None, progress))
        return real(*args, before=before, progress=progress, **kwargs)

    monkeypatch.setattr(render, "draw_on", draw_on)
    window = render.Window(fps=20)
    state = position(food=())
    window.show(state, RULES)
    assert drawn == [(False, 1.0)]
    following = position(bodies=[AHEAD, SHORT], food=(), turn=1)
    for array, new in zip(state.arrays(), following.arrays(), strict=True):
        array[...] = new  # the engine writes in place
    window.show(state, RULES)
    assert {before for before, _ in drawn[1:]} == {True}
    assert [progress for _, progress in drawn[1:]] == sorted(progress for _, progress in drawn[1:])
    assert drawn[-1] == (True, 1.0)
    for other in (position(turn=5), position(turn=6, seed=1), position(Rules(width=9, height=9, num_snakes=2), turn=7, seed=1)):
        drawn.clear()
        window.show(other, RULES if other.food.shape[1] == 35 else Rules(width=9, height=9, num_snakes=2))
        assert not any(before for before, _ in drawn)
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
    sprites.sprite.cache_clear()
    _background.cache_clear()
    sprites.text_line.cache_clear()
    assert np.array_equal(render.rgb_array(position(), RULES), before)
    assert pygame.display.get_surface() is screen
    assert screen.get_size() == (320, 200)


def test_no_display_is_one_clear_sentence():
    code = """
try:
    render.Window().show(state, rules)
except OSError as error:
    print(error)
"""
    said = run(SETUP + code, SDL_VIDEODRIVER="x11").strip()
    assert said.startswith("cannot open a window, there is no display (")
    assert "render_mode='rgb_array'" in said
    if sys.platform == "linux":
        assert run(SETUP + code).strip().startswith("cannot open a window, there is no display (SDL found no screen)")


# ----------------------------------------------------------------------------------------------------------- recordings


def test_record_video_parallel_takes_the_pictures_of_render(tmp_path):
    pytest.importorskip("moviepy", reason="RecordVideoParallel writes its films with moviepy")
    from pettingzoo.utils.wrappers import RecordVideoParallel

    from snake_pz import snake_v0

    env = snake_v0.parallel_env(width=7, height=7, num_snakes=2, render_mode="rgb_array")
    recorder = RecordVideoParallel(env, str(tmp_path / "films"), episode_trigger=lambda episode: episode == 0)
    assert recorder.frames_per_sec == env.metadata["render_fps"]
    recorder.reset(seed=3)
    pictures = [env.render()]
    for _ in range(4):
        recorder.step(dict.fromkeys(env.agents, 1))
        pictures.append(env.render())
    assert all(np.array_equal(*pair) for pair in zip(recorder.recorded_frames, pictures, strict=True))
    assert np.array_equal(pictures[2], render.rgb_array(replayed(3, [1, 1], 2), env.rules))
    recorder.close()
    assert [film.suffix for film in (tmp_path / "films").iterdir()] == [".mp4"]


def test_vec_video_recorder_takes_the_pictures_of_render(tmp_path):
    pytest.importorskip("moviepy", reason="VecVideoRecorder writes its films with moviepy")
    from stable_baselines3.common.vec_env import VecVideoRecorder

    from adapters import make_sb3_env
    from snake_pz import snake_v0

    kwargs = {"width": 7, "height": 7, "num_snakes": 2, "render_mode": "rgb_array"}
    for env in (None, snake_v0.parallel_env):
        games = make_sb3_env("random", env=env, num_games=1, seed=0, env_kwargs=kwargs)
        recorder = VecVideoRecorder(games, str(tmp_path), lambda step: step == 0, video_length=3)
        recorder.reset()
        pictures = [games.get_images()[0]]
        for _ in range(2):
            recorder.step(np.ones(1, np.int64))
            pictures.append(games.get_images()[0])
        assert all(np.array_equal(*pair) for pair in zip(recorder.recorded_frames, pictures, strict=True))
        states = games.env_method("get_state")
        assert np.array_equal(pictures[-1], render.rgb_array(states[0], games.get_attr("rules")[0]))
        recorder.close()


def replayed(seed, moves, turns):
    """The game of that seed after so many of the same moves."""
    from snake_pz import SnakeEngine

    engine = SnakeEngine(Rules(width=7, height=7, num_snakes=2), 1)
    engine.reset(seeds=[seed])
    for _ in range(turns):
        engine.step(np.array([moves]))
    return engine.state
