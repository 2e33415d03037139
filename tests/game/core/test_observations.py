"""What snakes see: examples to read, any position against the oracle, symmetries, spaces and masks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from snake_pz.core import observations
from snake_pz.core.actions import ACTIONS, action_space, to_absolute
from snake_pz.core.encodings import observation_space
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.observations import BOARD_PLANES, EGOCENTRIC_PLANES, GREY_LEVELS, OBSERVATIONS
from snake_pz.core.state import Position
from snake_pz.rules import Rules
from tests.support.recorded_games import (
    PRESETS,
    assert_same_views,
    engine_at,
    preset,
    preset_rules,
    random_actions,
    random_position,
    random_rules,
    read_games,
    seeds,
    turned,
)

RULES = Rules(width=7, height=7, num_snakes=3, food_initial=0, food_minimum=0, hazard_damage=5)
POSITION = Position(
    bodies=[[(3, 2), (2, 2), (2, 3)], [(5, 1), (5, 2), (5, 3), (5, 4)], [(0, 6), (1, 6)]],
    food=[(3, 0), (6, 6)],
    health=[50, 100, 7],
    hazards=[(0, 0), (6, 0), (6, 0), *[(6, 3)] * 5],
)


def grid(text: str) -> list[list[int]]:
    return [[0 if level == "." else int(level) for level in row.split()] for row in text.strip().splitlines()]


# -------------------------------------------------------------------------------------------------------------- examples


def test_board() -> None:
    view = engine_at(RULES, [POSITION]).observe("board")[0]
    planes = dict(zip(BOARD_PLANES, view[0].tolist(), strict=True))
    assert planes["own body"] == grid("""
        . . .  .  . . .
        . . .  .  . . .
        . . 20 30 . . .
        . . 10 .  . . .
        . . .  .  . . .
        . . .  .  . . .
        . . .  .  . . .
    """)
    assert planes["own head"] == grid("""
        . . . .   . . .
        . . . .   . . .
        . . . 255 . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . .
    """)
    assert planes["other bodies"] == grid("""
        .  .  . . . .  .
        .  .  . . . 40 .
        .  .  . . . 30 .
        .  .  . . . 20 .
        .  .  . . . 10 .
        .  .  . . . .  .
        20 10 . . . .  .
    """)
    assert planes["other heads"] == grid("""
        .   . . . . .   .
        .   . . . . 255 .
        .   . . . . .   .
        .   . . . . .   .
        .   . . . . .   .
        .   . . . . .   .
        128 . . . . .   .
    """)
    assert planes["food"] == grid("""
        . . . 255 . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . .
        . . . .   . . 255
    """)
    assert planes["walls and hazards"] == grid("""
        64 . . . . . 128
        .  . . . . . .
        .  . . . . . .
        .  . . . . . 192
        .  . . . . . .
        .  . . . . . .
        .  . . . . . .
    """)
    assert (view[:, 6, 3, 3].tolist(), view[0, 6].min()) == ([255 * 50 // 100, 255, 255 * 7 // 100], 127)


def test_egocentric() -> None:
    """The first snake heads right: what lies right of it is above, what lies below it is on the right."""
    view = engine_at(RULES, [POSITION]).observe("egocentric")[0, 0]
    assert view.shape == (6, 13, 13)
    planes = dict(zip(EGOCENTRIC_PLANES, view.tolist(), strict=True))
    own = np.zeros((13, 13), int)
    own[6, 6], own[7, 6], own[7, 7] = 30, 20, 10
    assert planes["own body"] == own.tolist()
    others = np.zeros((13, 13), int)
    others[4, 5:9] = [40, 30, 20, 10]  # two columns ahead, from one row to the left on
    others[9, 10], others[8, 10] = 20, 10
    assert planes["other bodies"] == others.tolist()
    heads = np.zeros((13, 13), int)
    heads[4, 5], heads[9, 10] = 255, 128
    assert planes["other heads"] == heads.tolist()
    food = np.zeros((13, 13), int)
    food[6, 4], food[3, 10] = 255, 255
    assert planes["food"] == food.tolist()
    walls = np.full((13, 13), 255)
    walls[3:10, 4:11] = 0  # three columns ahead and behind, two rows to the left and four to the right
    walls[9, 4], walls[3, 4], walls[3, 7] = 64, 128, 192
    assert planes["walls and hazards"] == walls.tolist()
    assert planes["clock"] == np.full((13, 13), 127).tolist()


def test_single() -> None:
    view = engine_at(RULES, [POSITION]).observe("single")[0]
    assert view[0, 0].tolist() == grid("""
        20  .  .   50  . .   20
        .   .  .   .   . 170 .
        .   .  210 255 . 90  .
        .   .  210 .   . 90  20
        .   .  .   .   . 90  .
        .   .  .   .   . .   .
        130 90 .   .   . .   50
    """)
    levels = list(GREY_LEVELS.values())
    assert len(set(levels)) == len(levels)
    assert 0 not in levels


def test_egocentric_of_a_board_that_wraps_goes_on() -> None:
    rules = Rules(width=5, height=4, num_snakes=1, edge="wrap", food_initial=0)
    view = engine_at(rules, [Position(bodies=[[(0, 0)]], food=[(4, 3)])]).observe("egocentric")[0, 0]
    assert view.shape == (6, 9, 9)
    assert not view[4].any()
    assert np.argwhere(view[3]).tolist() == [[3, 3], [3, 8], [7, 3], [7, 8]], (
        "one up and one left, and again every 4 and 5 cells"
    )
    assert np.argwhere(view[0]).tolist() == [[0, 4], [4, 4], [8, 4]]


@pytest.mark.parametrize("heading", range(4))
def test_egocentric_of_a_head_beyond_the_wall(heading: int) -> None:
    """What lay behind is seen from one step outside; there all is wall, the centre too."""
    dx, dy = [(0, -1), (1, 0), (0, 1), (-1, 0)][heading]
    rules = Rules(width=5, height=5, num_snakes=1, food_initial=0, food_minimum=0)
    edge = (2 + 2 * dx, 2 + 2 * dy)
    body = [edge, (edge[0] - dx, edge[1] - dy), (edge[0] - 2 * dx, edge[1] - 2 * dy)]
    engine = engine_at(rules, [Position(bodies=[body])])
    engine.step(np.array([[heading]]))
    view = engine.observe("egocentric")[0, 0]
    own = np.zeros((9, 9), int)
    own[5, 4], own[6, 4] = 20, 10
    assert view[0].tolist() == own.tolist()
    assert (view[4, :5] == 255).all()
    assert (view[4, 5:, 2:7] == 0).all()
    assert (view[4, :, :2] == 255).all()


def test_time_to_live_counts_doubled_tails_and_saturates() -> None:
    rules = Rules(width=9, height=9, num_snakes=1, food_initial=0, food_minimum=0)
    path = [(x if y % 2 == 0 else 8 - x, y) for y in range(9) for x in range(9)]
    engine = engine_at(rules, [Position(bodies=[path[:40]]), Position(bodies=[[(4, 4), (4, 5), (4, 5), (4, 5)]])])
    view = engine.observe("board")[:, 0, 0]
    assert [view[0, y, x] for x, y in path[14:17]] == [255, 250, 240]
    assert [view[1, 4, 4], view[1, 5, 4]] == [40, 30]


def test_time_to_live_is_the_time_to_live() -> None:
    """A cell is free after as many turns as it says, if the snake eats nothing."""
    rules = Rules(width=9, height=9, num_snakes=1, food_initial=0, food_minimum=0, reverse="is_a_move")
    engine = engine_at(rules, [Position(bodies=[[(2, 8), (3, 8), (4, 8), (5, 8), (5, 8)]])])
    lives = engine.observe("board")[0, 0, 0] // observations.TTL_STEP
    for turn in range(1, 6):
        engine.step(np.array([[0]]))
        occupied = engine.state.occupancy[0].reshape(9, 9) > 0
        assert (occupied[lives > 0] == (lives > turn)[lives > 0]).all()


def test_a_snake_sees_its_own_death_and_not_those_who_die_with_it() -> None:
    rules = Rules(width=7, height=7, num_snakes=3, food_initial=0, food_minimum=0)
    engine = engine_at(rules, [Position(bodies=[[(2, 2), (1, 2)], [(4, 2), (5, 2)], [(0, 6), (1, 6)]])])
    engine.step(np.array([[1, 3, 0]]))
    view = engine.observe("board")[0]
    assert np.argwhere(view[0, 0]).tolist() == [[2, 2], [2, 3]]
    assert np.argwhere(view[0, 2]).tolist() == np.argwhere(view[2, 0]).tolist() == [[5, 0], [6, 0]]
    assert not view[2, 2].any()


def test_the_longest_health() -> None:
    engine = engine_at(RULES.replace(max_health=30_000), [POSITION._replace(health=[30_000, 20_000, 117])])
    assert engine.observe("board")[0, :, 6, 0, 0].tolist() == [255, 170, 0]
    assert engine.observe("egocentric")[0, :, 5, 0, 0].tolist() == [255, 170, 0]


def clock(turn: int, health: int, **changes: object) -> int:
    """The same in both encodings that have it, everywhere."""
    rules = Rules(width=7, height=7, num_snakes=1, max_health=50).replace(**changes)
    engine = engine_at(rules, [Position(bodies=[[(3, 3)]], health=[health], turn=turn)])
    board, egocentric = engine.observe("board")[0, 0, 6], engine.observe("egocentric")[0, 0, 5]
    assert set(board.ravel().tolist()) == set(egocentric.ravel().tolist()) == {board[0, 0]}
    return int(board[0, 0])


def test_clock() -> None:
    """Health where it can run out, the turns left where they end the game, whichever is less."""
    assert clock(0, 50) == 255
    assert clock(7, 20) == 255 * 20 // 50
    assert clock(7, 0) == 0
    assert clock(7, 20, hunger="none") == clock(7, 20, hunger="segment") == 255, "nothing runs out"
    assert clock(7, 20, hunger="none", hazard_damage=3) == 255 * 20 // 50
    assert clock(0, 20, hunger="none", max_turns=30) == 255, "all turns are left"
    assert clock(6, 20, hunger="segment", max_turns=30) == 255 * 24 // 30
    assert clock(30, 20, hunger="none", max_turns=30) == clock(31, 20, hunger="none", max_turns=30) == 0
    assert clock(0, 20, max_turns=30) == 255 * 20 // 50, "more turns than health are left"
    assert clock(25, 20, max_turns=30) == 255 * 5 // 50, "more health than turns is left"


def test_the_clock_of_geese_shows_how_many_turns_are_left() -> None:
    engine = SnakeEngine(Rules.hungry_geese(num_snakes=1, ends_with="none", hunger_every=1000), seed=0)
    engine.reset()
    levels = []
    while not engine.state.over.all():
        levels.append(int(engine.observe("board")[0, 0, 6, 0, 0]))
        engine.step(np.array([[1]]))
    assert levels == [255 * (199 - turn) // 199 for turn in range(199)]


def test_a_starved_snake_sees_from_where_its_head_was() -> None:
    rules = Rules(width=7, height=7, num_snakes=2, hunger="segment", hunger_every=1, food_initial=0, food_minimum=0)
    engine = engine_at(rules, [Position(bodies=[[(2, 2)], [(5, 2), (5, 3)]], headings=[1, 0])])
    engine.step(np.array([[1, 0]]))
    assert engine.state.length.tolist() == [[0, 1]]
    board, egocentric = engine.observe("board")[0], engine.observe("egocentric")[0, 0]
    assert not board[0, :2].any()
    assert np.argwhere(board[0, 3]).tolist() == np.argwhere(board[0, 2]).tolist() == [[1, 5]]
    assert np.argwhere(egocentric[1]).tolist() == [[6 - 2, 6 - 1]], "two ahead and one to the left of (3, 2)"


def test_the_view_before_the_first_move_heads_up() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, food_initial=0, food_minimum=0, reverse="dies")
    engine = engine_at(rules, [Position(bodies=[[(1, 1)] * 3], food=[(1, 0)])])
    assert engine.state.heading.tolist() == [[-1]]
    assert np.argwhere(engine.observe("egocentric")[0, 0, 3]).tolist() == [[3, 4]]
    assert engine.action_masks("absolute").tolist() == [[[1, 1, 1, 1]]], "it cannot reverse"
    assert engine.action_masks("relative").tolist() == [[[1, 1, 1]]]
    assert to_absolute(np.arange(3), np.full(3, -1, np.int8)).tolist() == [3, 0, 1]


# ---------------------------------------------------------------------------------------------------- against the oracle


def check_views(rules: Rules, seed: int) -> None:
    random = Random(seed)
    engine = engine_at(rules, [random_position(random, rules) for _ in range(3)])
    for _ in range(2):
        games = read_games(engine)
        for row in range(3):
            assert_same_views(engine, games, row)
        engine.step(random_actions(random, rules, 3))


@given(random_rules(), seeds)
@settings(max_examples=100)
@example(Rules(width=2, height=2, num_snakes=2, start_length=1), 0)
@example(Rules(width=3, height=9, num_snakes=5, edge="wrap", reverse="dies"), 0)
def test_views_and_masks_of_any_position(rules: Rules, seed: int) -> None:
    check_views(rules, seed)


@given(random_rules(max_side=5, hunger="segment"), seeds)
@settings(max_examples=40)
def test_views_and_masks_of_snakes_that_lose_segments(rules: Rules, seed: int) -> None:
    check_views(rules, seed)


@given(preset_rules(), seeds)
@settings(max_examples=30)
def test_views_and_masks_of_every_preset(rules: Rules, seed: int) -> None:
    check_views(rules, seed)


@pytest.mark.slow
def test_views_and_masks_of_very_many_positions() -> None:
    @given(random_rules(), seeds)
    @settings(max_examples=800)
    def check(rules: Rules, seed: int) -> None:
        random = Random(seed)
        engine = engine_at(rules, [random_position(random, rules) for _ in range(2)])
        for turn in range(3):
            games = read_games(engine)
            assert_same_views(engine, games, turn % 2)
            engine.step(random_actions(random, rules, 2))

    check()


# ------------------------------------------------------------------------------------------------------------ symmetries


@given(random_rules(), seeds)
@settings(max_examples=60)
def test_views_of_a_turned_and_a_mirrored_board(rules: Rules, seed: int) -> None:
    """`egocentric` and relative masks do not change when the board is turned, the others turn with it; all are mirrored."""
    random = Random(seed)
    position = random_position(random, rules)
    assert position.headings is not None
    position = position._replace(headings=[max(heading, 0) for heading in position.headings])  # without one it looks up
    engine = engine_at(rules, [position])
    for mirror in (False, True):
        moved_rules, moved_position, turn = turned(rules, position, mirror=mirror)
        other = engine_at(moved_rules, [moved_position])
        width, height = rules.width, rules.height

        def flip(view: np.ndarray, mirror: bool = mirror) -> np.ndarray:
            return view[..., ::-1] if mirror else np.rot90(view, -1, (-2, -1))

        expected = engine.observe("egocentric")
        np.testing.assert_array_equal(other.observe("egocentric"), flip(expected) if mirror else expected)
        np.testing.assert_array_equal(other.observe("single"), flip(engine.observe("single")))
        moved_board = other.observe("board")[..., : moved_rules.height, : moved_rules.width]
        np.testing.assert_array_equal(moved_board, flip(engine.observe("board")[..., :height, :width]))
        relative, absolute = engine.action_masks("relative"), engine.action_masks("absolute")
        np.testing.assert_array_equal(other.action_masks("relative"), relative[..., ::-1] if mirror else relative)
        np.testing.assert_array_equal(
            other.action_masks("absolute")[..., [turn(direction) for direction in range(4)]], absolute
        )


@given(random_rules(), seeds)
@settings(max_examples=30)
def test_views_do_not_depend_on_the_order_of_snakes(rules: Rules, seed: int) -> None:
    random = Random(seed)
    position = random_position(random, rules)
    order = random.sample(range(rules.num_snakes), rules.num_snakes)
    assert position.headings is not None
    assert position.health is not None
    assert position.alive is not None
    shuffled = position._replace(
        alive=[position.alive[k] for k in order],
        bodies=[position.bodies[k] for k in order],
        headings=[position.headings[k] for k in order],
        health=[position.health[k] for k in order],
    )
    one, other = engine_at(rules, [position]), engine_at(rules, [shuffled])
    for name in OBSERVATIONS:
        np.testing.assert_array_equal(other.observe(name)[0], one.observe(name)[0, order])


# ---------------------------------------------------------------------------------------------------------------- spaces


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 9), (7, 7), (11, 11), (6, 20), (128, 128)])
def test_spaces(width: int, height: int) -> None:
    rules = Rules(width=width, height=height, num_snakes=1)
    engine = SnakeEngine(rules, seed=0)
    engine.reset()
    for name in OBSERVATIONS:
        space = observation_space(rules, name)
        view = engine.observe(name)
        assert view.shape == (1, 1, *space.shape)
        assert space.contains(view[0, 0])
        if min(space.shape[1:]) > 1:
            assert is_image_space(space)
            assert is_image_space_channels_first(space)
    assert observation_space(rules, "board").shape == (7, max(height, 7), max(width, 7))
    assert observation_space(rules, "egocentric").shape == (6, *[max(2 * max(width, height) - 1, 7)] * 2)
    assert observation_space(rules, "single").shape == (1, height, width)
    assert (action_space("absolute").n, action_space("relative").n) == (4, 3)
    assert ACTIONS == ("absolute", "relative")


def test_small_boards_are_padded_with_wall() -> None:
    rules = Rules(width=4, height=3, num_snakes=1, food_initial=100)
    engine = SnakeEngine(rules, seed=0)
    engine.reset()
    view = engine.observe("board")[0, 0]
    inside = np.zeros((7, 7), bool)
    inside[:3, :4] = True
    assert (view[5] == np.where(inside, 0, 255)).all()
    assert not view[:5, ~inside].any()
    assert ((view[0] > 0) | (view[4] > 0))[inside].all()


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"observation must be one of 'board', 'egocentric', 'single', got 'grey'"):
        observation_space(Rules(), "grey")
    with pytest.raises(ValueError, match=r"actions must be one of 'absolute', 'relative', got 'diagonal'"):
        action_space("diagonal")


# --------------------------------------------------------------------------------------------------------------- actions


def test_relative_actions() -> None:
    headings = np.arange(4, dtype=np.int8)
    turns = [to_absolute(np.full(4, action), headings).tolist() for action in range(3)]
    assert turns == [[3, 0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 0]]


def mask(position: Position, action_set: str = "absolute", **changes: object) -> list[int]:
    rules = Rules.classic(width=5, height=5, num_snakes=len(position.bodies), food_initial=0, food_minimum=0).replace(**changes)
    return engine_at(rules, [position]).action_masks(action_set)[0, 0].tolist()


def test_masks_of_walls_bodies_and_tails() -> None:
    corner = Position(bodies=[[(0, 0), (1, 0), (1, 1), (0, 1)]])
    assert mask(corner) == [0, 0, 1, 0], (
        "its own tail leaves; straight on is the wall, and so is the reversal that goes straight"
    )
    assert mask(corner, "relative") == [1, 0, 0]
    assert mask(corner, edge="wrap") == [1, 1, 1, 1]
    assert mask(corner, edge="wrap", reverse="is_a_move") == [1, 0, 1, 1]
    assert mask(corner, edge="wrap", reverse="dies") == [1, 0, 1, 1]
    doubled = Position(bodies=[[(0, 0), (1, 0), (1, 1), (0, 1), (0, 1)]])
    assert mask(doubled) == [1, 1, 1, 1], "every move dies"
    other = Position(bodies=[[(2, 2), (2, 3)], [(1, 1), (2, 1), (3, 1), (3, 2)], [(1, 2)]])
    assert mask(other) == [0, 1, 0, 1], "a neck kills, tails and single heads leave, and a reversal goes straight"
    assert mask(other, reverse="is_a_move") == [0, 1, 1, 1], "the own neck is the tail"


def test_masks_of_hunger_and_hazards() -> None:
    starving = Position(bodies=[[(2, 2), (2, 3)]], food=[(1, 2)], health=[1])
    assert mask(starving) == [0, 0, 0, 1]
    assert mask(starving, hunger="none") == [1, 1, 1, 1]
    burning = Position(bodies=[[(2, 2), (2, 3)]], hazards=[(1, 2), (1, 2), (2, 1)], health=[11])
    assert mask(burning, hazard_damage=5) == [1, 1, 1, 0]
    assert mask(burning, hazard_damage=10) == [0, 1, 0, 0]
    assert mask(burning._replace(food=[(1, 2), (2, 1)]), hazard_damage=10) == [1, 1, 1, 1]


def test_masks_of_lost_segments() -> None:
    """Where hunger takes segments or lengths are limited, more of a body than its tail may leave."""
    other = Position(bodies=[[(2, 2), (2, 3)], [(1, 1), (1, 2), (1, 3), (1, 4)], [(3, 0), (3, 1), (3, 2)]], turn=39)
    assert mask(other, hunger="segment", hunger_every=41) == [1, 1, 1, 0], "the tail of the third leaves"
    shorter = other._replace(bodies=[other.bodies[0], other.bodies[1][:3], [*other.bodies[2], (3, 3)]])
    assert mask(shorter, hunger="segment", hunger_every=41) == [1, 0, 1, 0]
    assert mask(shorter, hunger="segment", hunger_every=40) == [1, 1, 1, 1]
    assert mask(shorter, hunger="none", max_length=4) == [1, 0, 1, 0]
    assert mask(shorter, hunger="none", max_length=3) == [1, 1, 1, 0]
    own = Position(bodies=[[(2, 2), (2, 3), (1, 3), (1, 2), (1, 1)]], turn=39)
    assert mask(own, hunger="segment", hunger_every=40) == [1, 1, 1, 1]
    assert mask(own, hunger="segment", hunger_every=40, own_body="at_once") == [1, 1, 1, 0]
    assert mask(own, hunger="none", max_length=4, own_body="at_once") == [1, 1, 1, 0]
    single = Position(bodies=[[(2, 2)]], food=[(2, 1)], turn=39)
    assert mask(single, hunger="segment", hunger_every=40) == [1, 0, 0, 0], "who does not eat has no segment left"
    assert mask(single, hunger="segment", hunger_every=40, max_length=1) == [1, 1, 1, 1], "every move dies"
    assert mask(single, hunger="segment", hunger_every=41) == [1, 1, 1, 1]


def test_moves_that_a_mask_forbids_kill() -> None:
    """Unless the body in the way dies on the same turn; so here bodies of the dying block, and all heads move on."""
    deaths = 0
    for seed in range(300):
        random = Random(seed)
        rules = Rules(
            width=5,
            height=5,
            num_snakes=3,
            start_length=2,
            dying_block="all",
            reverse=random.choice(["straight", "is_a_move"]),
        )
        engine = engine_at(rules, [random_position(random, rules)])
        alive, masks = engine.state.alive[0].copy(), engine.action_masks("absolute")[0]
        actions = [random.randrange(4) for _ in range(3)]
        engine.step(np.array([actions]))
        for snake, action in enumerate(actions):
            if alive[snake] and not masks[snake, action]:
                deaths += 1
                assert not engine.state.alive[0, snake]
    assert deaths > 50


@pytest.mark.parametrize("name", PRESETS)
def test_moves_that_a_mask_forbids_kill_in_every_preset(name: str) -> None:
    """But for bodies that vanish on the same turn: where nobody else dies, who made a forbidden move does."""
    deaths = 0
    for seed in range(300):
        random = Random(seed)
        rules = preset(name, 5, 5, 3)
        if rules.hunger == "segment":
            rules = rules.replace(hunger_every=3)
        engine = engine_at(rules, [random_position(random, rules)])
        alive, masks = engine.state.alive[0].copy(), engine.action_masks("absolute")[0]
        actions = [random.choice(np.flatnonzero(mask)) for mask in masks]
        snake = random.randrange(rules.num_snakes)
        if masks[snake].all() or not alive[snake]:
            continue
        actions[snake] = random.choice(np.flatnonzero(masks[snake] == 0))
        engine.step(np.array([actions]))
        if not np.delete(engine.state.just_died[0], snake).any():
            deaths += 1
            assert engine.state.just_died[0, snake]
    assert deaths > 20
