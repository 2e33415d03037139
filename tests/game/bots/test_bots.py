"""Scripted players: what they choose in positions written out, and how strong they are."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from snake_pz.bots import BOTS, Bot, make_bot
from snake_pz.bots.kernels import KERNELS
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Position
from snake_pz.presets import PRESETS, preset
from snake_pz.rules import Rules
from tests.support.bot_positions import (
    DOWN,
    FAR_AWAY,
    GOING_UP,
    LEFT,
    RIGHT,
    TWO,
    UP,
    choices,
    midgame,
    seeded,
    views,
    win_rate,
)

THINKING = ("greedy", "survivor", "territorial")
HASTY = ("greedy", "survivor")  # where nothing threatens it is the way to food alone that counts
PRUDENT = ("survivor", "territorial")


# ------------------------------------------------------------------------------------------------------------ the moves


@pytest.mark.parametrize("name", HASTY)
def test_goes_to_the_nearest_food(name: str) -> None:
    assert choices(name, TWO, Position([GOING_UP, FAR_AWAY], food=[(5, 2), (9, 5)])) == {UP}
    assert choices(name, TWO, Position([GOING_UP, FAR_AWAY], food=[(5, 0), (9, 5)])) == {RIGHT}
    assert choices(name, TWO, Position([GOING_UP, FAR_AWAY], food=[(3, 3)])) == {UP, LEFT}


def test_greedy_without_food_takes_any_safe_move() -> None:
    assert choices("greedy", TWO, Position([GOING_UP, FAR_AWAY])) == {UP, LEFT, RIGHT}


@pytest.mark.parametrize("name", THINKING)
def test_does_not_run_into_walls_or_bodies(name: str) -> None:
    wall = Position([[(5, 0), (5, 1), (5, 2)], FAR_AWAY], food=[(8, 0)])
    assert choices(name, TWO, wall) == {RIGHT}
    body = Position([GOING_UP, [(9, 4), (8, 4), (7, 4), (6, 4), (5, 4), (4, 4), (3, 4)]], food=[(5, 3)])
    assert choices(name, TWO, body) <= {LEFT, RIGHT}


@pytest.mark.parametrize("name", THINKING)
def test_follows_its_own_tail(name: str) -> None:
    coiled = [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert choices(name, TWO, Position([coiled, FAR_AWAY], food=[(5, 5)])) == {DOWN}


@pytest.mark.parametrize("name", HASTY)
@pytest.mark.parametrize("reverse", ["straight", "dies"])
def test_a_snake_of_two_does_not_turn_back(name: str, reverse: str) -> None:
    rules = TWO.replace(reverse=reverse)
    behind = Position([[(5, 5), (5, 6)], FAR_AWAY], food=[(5, 8)])
    assert choices(name, rules, behind) == {UP, LEFT, RIGHT}
    assert choices(name, rules.replace(reverse="is_a_move"), behind) == {DOWN}


@pytest.mark.parametrize("name", THINKING)
def test_keeps_off_a_tail_that_may_stay(name: str) -> None:
    ahead = [(5, 2), (5, 3), (5, 4)]
    eats = Position([GOING_UP, ahead], food=[(5, 1)])
    assert choices(name, TWO, eats) == {LEFT, RIGHT}
    assert choices(name, TWO.replace(growth="next_turn"), eats) == {UP}
    assert choices(name, TWO, Position([GOING_UP, ahead], food=[(5, 0)])) == {UP}


@pytest.mark.parametrize("name", THINKING)
def test_avoids_a_head_on_it_does_not_survive(name: str) -> None:
    for longer in (3, 4):
        opposite = [(5, 3), (5, 2), (5, 1), (5, 0)][:longer]
        assert choices(name, TWO, Position([GOING_UP, opposite], food=[(5, 4)])) == {LEFT, RIGHT}


@pytest.mark.parametrize("name", THINKING)
def test_a_shorter_snake_is_no_danger_unless_all_die(name: str) -> None:
    shorter = Position([GOING_UP, [(5, 3), (5, 2)]], food=[(5, 4)])
    assert choices(name, TWO, shorter) == {UP}
    assert choices(name, TWO.replace(head_to_head="all_die"), shorter) == {LEFT, RIGHT}


@pytest.mark.parametrize("name", PRUDENT)
def test_seeks_a_head_on_that_it_wins(name: str) -> None:
    contested = [(6, 4), (7, 4)]  # may come to (5, 4) or (6, 5)
    assert choices(name, TWO, Position([GOING_UP, contested], food=[(3, 5)])) == {UP}
    assert choices("greedy", TWO, Position([GOING_UP, contested], food=[(3, 5)])) == {LEFT}


POCKET = Rules.classic(width=7, height=7, num_snakes=1)
# Up the second column from the bottom, leaving a free column of seven on its left for its fifteen segments.
POCKET_BODY = [(1, y) for y in range(7)] + [(x, 6) for x in range(2, 7)] + [(6, 5), (6, 4), (6, 3)]


@pytest.mark.parametrize("name", PRUDENT)
def test_stays_out_of_a_pocket_smaller_than_its_body(name: str) -> None:
    tempting = Position([POCKET_BODY], food=[(0, 0), (6, 0)])
    assert choices(name, POCKET, tempting) == {RIGHT}
    assert choices("greedy", POCKET, tempting) == {LEFT}


@pytest.mark.parametrize("name", PRUDENT)
def test_enters_a_pocket_that_opens_in_time(name: str) -> None:
    opens = Position([POCKET_BODY[:7]], food=[(0, 0), (6, 0)])  # the tail at the bottom is long gone when it gets there
    assert choices(name, POCKET, opens) == {LEFT}


@pytest.mark.parametrize("name", PRUDENT)
def test_enters_a_pocket_rather_than_starve(name: str) -> None:
    assert choices(name, POCKET, Position([POCKET_BODY], food=[(0, 0), (6, 0)], health=[1])) == {LEFT}


@pytest.mark.parametrize("name", PRUDENT)
def test_risks_a_head_on_rather_than_be_shut_in(name: str) -> None:
    rules = POCKET.replace(width=11, num_snakes=2)
    body = [(1, y) for y in range(7)] + [(x, 6) for x in range(2, 9)] + [(8, 5)]
    as_long = [(x, 0) for x in range(3, 11)] + [(10, y) for y in range(1, 7)] + [(9, 6)]
    assert choices(name, rules, Position([body, as_long])) == {RIGHT}
    assert choices("greedy", rules, Position([body, as_long])) == {LEFT}


@pytest.mark.parametrize("name", HASTY)
def test_keeps_out_of_a_hazard_that_kills(name: str) -> None:
    rules = TWO.replace(hazard_damage=15)
    towards = Position([GOING_UP, FAR_AWAY], food=[(5, 2)], hazards=[(5, 4)], health=[16, 100])
    assert choices(name, rules, towards) == {LEFT, RIGHT}
    assert choices(name, rules, towards._replace(hazards=[(5, 4)] * 3, health=[46, 100])) == {LEFT, RIGHT}
    assert choices(name, rules, towards._replace(food=[(5, 4)])) == {UP}
    assert choices("greedy", rules, towards._replace(health=[17, 100])) == {UP}


@pytest.mark.parametrize("name", PRUDENT)
def test_goes_round_a_hazard(name: str) -> None:
    rules = TWO.replace(hazard_damage=15)
    assert choices(name, rules, Position([GOING_UP, FAR_AWAY], food=[(3, 3)], hazards=[(5, 4)])) == {LEFT}


@pytest.mark.parametrize("name", HASTY)
def test_goes_over_the_edge_of_a_torus(name: str) -> None:
    rules = TWO.replace(edge="wrap")
    assert choices(name, rules, Position([[(0, 5), (1, 5), (2, 5)], FAR_AWAY], food=[(9, 5)])) == {LEFT}
    assert choices(name, rules, Position([[(5, 10), (5, 9), (5, 8)], FAR_AWAY], food=[(5, 1)])) == {DOWN}
    assert choices(name, TWO, Position([[(0, 5), (1, 5), (2, 5)], FAR_AWAY], food=[(9, 5)])) == {UP, DOWN}
    across = Position([[(0, 5), (1, 5), (2, 5)], [(9, 5), (8, 5), (7, 5)]], food=[(10, 5)])
    assert choices(name, rules, across) == {UP, DOWN}


@pytest.mark.parametrize("name", HASTY)
def test_knows_the_edge_of_a_padded_board(name: str) -> None:
    rules = Rules.classic(width=5, height=5, num_snakes=2)
    other = [(0, 0), (0, 1), (0, 2)]
    assert choices(name, rules, Position([[(4, 2), (3, 2), (2, 2)], other], food=[(4, 4)])) == {DOWN}
    assert choices(name, rules, Position([[(4, 4), (4, 3), (4, 2)], other])) == {LEFT}
    torus = rules.replace(edge="wrap")
    assert choices(name, torus, Position([[(4, 2), (3, 2), (2, 2)], [(1, 4), (2, 4), (3, 4)]], food=[(0, 2)])) == {RIGHT}


@pytest.mark.parametrize("name", THINKING)
def test_any_move_but_back_when_all_are_deadly(name: str) -> None:
    trapped = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2)]
    assert choices(name, TWO, Position([trapped, FAR_AWAY])) == {UP, DOWN, LEFT}
    assert choices(name, TWO.replace(reverse="is_a_move"), Position([trapped, FAR_AWAY])) == {UP, RIGHT, DOWN, LEFT}


@pytest.mark.parametrize("name", KERNELS)
def test_a_snake_that_has_left_the_board_may_be_asked(name: str) -> None:
    bot = seeded(name, TWO, 0)
    assert set(bot.act(np.zeros((100, 7, 11, 11), np.uint8)).tolist()) == {UP, RIGHT, DOWN, LEFT}


def test_random_ignores_what_it_sees() -> None:
    bot = seeded("random", TWO, 0)
    view = views(TWO, Position([[(0, 0), (1, 0), (2, 0)], FAR_AWAY]))[:1]
    counts = np.bincount(bot.act(np.repeat(view, 4000, axis=0)), minlength=4)
    assert counts.min() > 900


RULES: dict[str, dict[str, Any]] = {
    "classic": {},
    "small": {"width": 5, "height": 5, "num_snakes": 2},
    "narrow": {"width": 13, "height": 4, "num_snakes": 2},
    "torus": {"edge": "wrap", "width": 8, "height": 6},
    "short": {"start_length": 2, "reverse": "dies"},
    "reversing": {"start_length": 2, "reverse": "is_a_move", "head_to_head": "all_die", "growth": "next_turn"},
    "hungry": {"max_health": 6, "food_minimum": 6},
    "many": {"width": 19, "height": 19, "num_snakes": 8},
    "patient": {"max_health": 2000, "hunger": "none"},
}


def moves_against_masks(bot: Bot, rules: Rules, turns: int, *, masked: bool) -> tuple[int, int]:
    """Over so many turns of 32 games among one bot: moves that its mask forbade, though it allowed another; all moves."""
    engine = SnakeEngine(rules, 32, seed=0)
    engine.reset()
    actions = np.zeros(engine.state.alive.shape, np.int64)
    against = moves = 0
    for _ in range(turns):
        acting = engine.state.alive & ~engine.state.over[:, None]
        masks = engine.action_masks("absolute")
        actions[acting] = bot.act(engine.observe("board")[acting], np.flatnonzero(acting), masks[acting] if masked else None)
        chosen = np.take_along_axis(masks, actions[:, :, None], axis=2)[:, :, 0]
        against += int((chosen[acting] == 0).sum())
        moves += int(acting.sum())
        engine.step(actions)
        if engine.state.over.any():
            engine.reset(np.flatnonzero(engine.state.over))
    return against, moves


@pytest.mark.parametrize("name", THINKING)
@pytest.mark.parametrize("rules", PRESETS)
def test_no_move_against_the_mask_under_any_preset(name: str, rules: str) -> None:
    against, moves = moves_against_masks(seeded(name, preset(rules), 0), preset(rules), 200, masked=True)
    assert against == 0
    assert moves > 5000


SNAKES_OF_ONE: dict[str, dict[str, Any]] = {
    "straight": {"reverse": "straight"},
    "dies": {"reverse": "dies"},
    "a move": {"reverse": "is_a_move"},
    "famine": {"reverse": "dies", "hunger": "segment", "hunger_every": 3, "food_minimum": 8},
    "hazards": {"reverse": "dies", "shrink_every": 5, "hazard_damage": 30},
    "two rows": {"reverse": "dies", "height": 2},
}


@pytest.mark.parametrize("name", THINKING)
@pytest.mark.parametrize("variant", SNAKES_OF_ONE)
def test_no_move_against_the_mask_by_snakes_of_one(name: str, variant: str) -> None:
    rules = Rules.classic(start="scattered", start_length=1, edge="wrap", **SNAKES_OF_ONE[variant])
    against, moves = moves_against_masks(seeded(name, rules, 0), rules, 100, masked=True)
    assert against == 0
    assert moves > 2000


@pytest.mark.parametrize("name", THINKING)
@pytest.mark.parametrize("variant", RULES)
def test_longer_snakes_see_by_themselves_what_surely_kills(name: str, variant: str) -> None:
    rules = Rules.classic(**RULES[variant])
    assert moves_against_masks(seeded(name, rules, 0), rules, 150, masked=False)[0] == 0


@pytest.mark.parametrize("name", THINKING)
def test_takes_what_the_mask_allows_though_it_looks_deadly(name: str) -> None:
    # Hunger takes a second segment of each snake on the next turn, of which the planes know nothing.
    rules = Rules.hungry_geese(num_snakes=2)
    trapped = Position([[(0, 0)], [(1, 0), (1, 1), (0, 1), (10, 1), (10, 0), (10, 6), (0, 6), (1, 6)]])
    view = np.repeat(views(rules, trapped)[:1], 100, axis=0)
    for allowed in range(4):
        mask = np.zeros((100, 4), np.int8)
        mask[:, allowed] = 1
        assert set(seeded(name, rules, 0).act(view, None, mask).tolist()) == {allowed}


@pytest.mark.parametrize("name", THINKING)
def test_where_all_moves_are_deadly_hopes_that_another_dies(name: str) -> None:
    corner = Position([[(0, 0), (1, 0), (2, 0)], [(0, 3), (0, 2), (0, 1), (1, 1)]])
    assert choices(name, TWO, corner) == {DOWN}


# --------------------------------------------------------------------------------------------------- rows, seeds, names


@pytest.mark.parametrize("name", KERNELS)
def test_a_batch_equals_its_rows(name: str) -> None:
    engine, acting = midgame(Rules.classic(), 16, 12)
    view, slots = engine.observe("board")[acting], np.flatnonzero(acting)
    together = seeded(name, engine.rules, 5).act(view, slots)
    single = [seeded(name, engine.rules, 5).act(view[b : b + 1], slots[b : b + 1])[0] for b in range(len(view))]
    assert together.tolist() == single
    order = np.random.default_rng(0).permutation(len(view))
    assert seeded(name, engine.rules, 5).act(view[order], slots[order]).tolist() == together[order].tolist()


@pytest.mark.parametrize("name", THINKING)
def test_the_number_of_a_snake_does_not_matter(name: str) -> None:
    bodies = [GOING_UP, [(5, 3), (5, 2), (5, 1)], [(2, 5), (1, 5), (0, 5), (0, 6)], [(8, 8), (8, 9)]]
    rules = Rules.classic()
    for snake in range(4):
        shifted = bodies[snake:] + bodies[:snake]
        for other in range(4):
            here = choices(name, rules, Position(bodies, food=[(3, 3), (9, 9)]), other)
            assert choices(name, rules, Position(shifted, food=[(3, 3), (9, 9)]), (other - snake) % 4) == here


@pytest.mark.parametrize("name", KERNELS)
def test_a_seed_fixes_what_a_bot_does(name: str) -> None:
    engine, acting = midgame(Rules.classic(food_minimum=0, food_initial=0), 32, 3)
    view = engine.observe("board")[acting]

    def stream(bot: Bot) -> list[list[int]]:
        return [bot.act(view).tolist() for _ in range(5)]

    bot = seeded(name, engine.rules, 7)
    expected = stream(bot)
    np.random.seed(0)  # noqa: NPY002 -- the global stream is nobody's business
    assert stream(seeded(name, engine.rules, 7)) == expected
    assert stream(seeded(name, engine.rules, 8)) != expected
    bot.seed(7)
    bot.act(view)
    bot.reset(np.arange(4))
    assert stream(pickle.loads(pickle.dumps(bot)))[:4] == stream(copy.deepcopy(bot))[:4] == expected[1:]
    assert len(np.unique(expected, axis=0)) > 1
    assert stream(make_bot(name, engine.rules)) != stream(make_bot(name, engine.rules))


@pytest.mark.parametrize("name", BOTS)
def test_a_pickled_bot_has_no_kernel_in_it(name: str) -> None:
    """It would be compiled again, and play as the version that pickled it."""
    assert b"numba" not in pickle.dumps(make_bot(name, TWO))


@pytest.mark.parametrize("name", KERNELS)
def test_spaces_and_results(name: str) -> None:
    bot = make_bot(name, TWO)
    assert bot.name == name
    assert bot.observation_space.shape == (7, 11, 11)
    assert bot.action_space.n == 4
    assert bot.uses_masks == (name != "random")
    view = np.asfortranarray(views(TWO, Position([GOING_UP, FAR_AWAY])))
    before = view.copy()
    actions = bot.act(view, np.arange(2), np.ones((2, 4), np.int8))
    assert actions.shape == (2,)
    assert all(bot.action_space.contains(action) for action in actions)
    assert (view == before).all()
    assert bot.act(view[:0]).shape == (0,)


def test_unknown_bot() -> None:
    with pytest.raises(ValueError, match=r"unknown bot 'survivr' \(did you mean 'survivor'\?\); the bots are random, greedy"):
        make_bot("survivr", TWO)


def test_observations_of_another_game() -> None:
    bot = make_bot("greedy", TWO)
    with pytest.raises(ValueError, match=r"needs observations \(B, 7, 11, 11\) uint8.*got \(1, 7, 13, 13\) uint8"):
        bot.act(np.zeros((1, 7, 13, 13), np.uint8))
    with pytest.raises(ValueError, match="float32"):
        bot.act(np.zeros((1, 7, 11, 11), np.float32))


def test_masks_of_other_actions() -> None:
    for masks in (np.ones((2, 3), np.int8), np.ones((2, 4))):
        with pytest.raises(ValueError, match=r"needs masks \(2, 4\) of integers, got \(2, "):
            make_bot("greedy", TWO).act(np.zeros((2, 7, 11, 11), np.uint8), None, masks)


@pytest.mark.parametrize("slots", [np.arange(1), np.zeros((2, 1), int), [0.7, 1.2]])
def test_slots_of_other_rows(slots: Any) -> None:
    with pytest.raises(ValueError, match=r"needs slots \(2,\) of integers, got \("):
        make_bot("random", TWO).act(np.zeros((2, 7, 11, 11), np.uint8), slots)


@pytest.mark.parametrize("seed", [1.5, -1])
def test_seeds_that_are_none(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be "):
        make_bot("random", TWO).seed(seed)


# ------------------------------------------------------------------------------------------------------------- strength


def test_greedy_beats_random() -> None:
    assert win_rate("greedy", "random", 400) >= 0.95


def test_survivor_beats_greedy() -> None:
    assert win_rate("survivor", "greedy", 400) >= 0.4
    assert win_rate("greedy", "survivor", 400) <= 0.2


@pytest.mark.slow
def test_strength_over_many_games() -> None:
    assert win_rate("greedy", "random", 4000) >= 0.97
    assert win_rate("survivor", "greedy", 4000) >= 0.45
    assert win_rate("greedy", "survivor", 4000) <= 0.15
    assert win_rate("survivor", "random", 4000) >= 0.98
    assert win_rate("survivor", "greedy", 2000, Rules.classic(edge="wrap")) >= 0.4
