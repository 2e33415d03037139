"""SnakeState: positions set up as written, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from snake_pz.core.state import CAUSES, NO_HEADING, OFF_BOARD, Position, SnakeState, body_cells
from snake_pz.rules import Rules
from tests.support.recorded_games import check_consistent, engine_at, read_game

RULES = Rules(width=5, height=4, num_snakes=2, max_health=60)


def test_a_position_is_set_up_as_written() -> None:
    position = Position(
        bodies=[[(1, 0), (0, 0), (0, 0)], [(4, 3)]],
        food=[(2, 2), (2, 2), (3, 0)],
        health=[5, 60],
        hazards=[(4, 0), (4, 0), (4, 0)],
        headings=[2, 3],
        turn=17,
        seed=2**64 - 1,
    )
    state = SnakeState.from_positions(RULES, [Position(bodies=[[(2, 2)], []]), position])
    check_consistent(state, RULES, played=False)
    assert body_cells(state, 1, 0).tolist() == [1, 0, 0]
    assert body_cells(state, 1, 1).tolist() == [19]
    assert np.flatnonzero(state.occupancy[1]).tolist() == [0, 1, 19]
    assert state.occupancy[1, 0] == 2
    assert (state.food[1, 12], state.food[1, 3], state.food_count.tolist()) == (2, 1, [0, 3])
    assert (state.hazard[1, 4], state.hazard.sum()) == (3, 3)
    assert state.health.tolist() == [[60, 60], [5, 60]]
    assert state.heading.tolist() == [[NO_HEADING, NO_HEADING], [2, 3]]
    assert state.alive.tolist() == [[True, False], [True, True]]
    assert (state.turn.tolist(), state.seed.tolist(), state.entrants.tolist()) == ([0, 17], [0, 2**64 - 1], [2, 2])
    assert not state.over.any()


def test_a_snake_may_be_set_up_dead() -> None:
    """Anywhere, as the records of other engines have it: one that left the board too."""
    state = SnakeState.from_positions(RULES, [Position(bodies=[[(1, 0), (0, 0)], [(4, 3)]], alive=[False, True])])
    assert state.alive.tolist() == [[False, True]]
    assert np.flatnonzero(state.occupancy[0]).tolist() == [19]
    assert body_cells(state, 0, 0).tolist() == [1, 0]
    outside = SnakeState.from_positions(RULES, [Position(bodies=[[(5, 0), (4, 0)], [(4, 3)]], alive=[False, True], over=True)])
    assert body_cells(outside, 0, 0).tolist() == [OFF_BOARD, 4]
    assert outside.over.tolist() == [True]


@pytest.mark.parametrize("edge", ["wall", "wrap"])
@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 5), (5, 2), (3, 3), (5, 5)])
def test_headings_follow_from_the_neck(width: int, height: int, edge: str) -> None:
    rules = Rules.classic(width=width, height=height, num_snakes=1, start_length=1, edge=edge)

    def heading(head: tuple[int, int], neck: tuple[int, int]) -> int:
        return int(SnakeState.from_positions(rules, [Position(bodies=[[head, neck]])]).heading[0, 0])

    assert (heading((0, 0), (0, 1)), heading((0, 1), (0, 0))) == (0, 2), "rather not across a seam"
    assert (heading((1, 0), (0, 0)), heading((0, 0), (1, 0))) == (1, 3)
    if edge == "wrap" and height > 2:
        assert (heading((0, 0), (0, height - 1)), heading((0, height - 1), (0, 0))) == (2, 0)
    if edge == "wrap" and width > 2:
        assert (heading((0, 0), (width - 1, 0)), heading((width - 1, 0), (0, 0))) == (1, 3)
    assert heading((1, 1), (1, 1)) == NO_HEADING


def test_refuses() -> None:
    with pytest.raises(ValueError, match="a body for each of the 2 snakes, got 1"):
        SnakeState.from_positions(RULES, [Position(bodies=[[(0, 0)]])])
    for cell in [(5, 0), (0, 4), (-1, 0), (0, -1)]:
        for position in (
            Position(bodies=[[(0, 0)], [cell]]),
            Position(bodies=[[(0, 0)], []], food=[cell]),
            Position(bodies=[[(0, 0)], []], hazards=[cell]),
        ):
            with pytest.raises(ValueError, match=rf"cell \({cell[0]}, {cell[1]}\) is outside the 5x4 board"):
                SnakeState.from_positions(RULES, [position])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"health": [61, 5]}, "health must have a whole number from -32768 to 60 for each of 2 snakes, got [61, 5]"),
        ({"health": [5]}, "health must have a whole number from -32768 to 60 for each of 2 snakes, got [5]"),
        ({"headings": [0, 4]}, "headings must have a whole number from -1 to 3 for each of 2 snakes, got [0, 4]"),
        ({"alive": [True]}, "alive must have"),
        ({"headings": [0, 0.5]}, "headings must have a whole number from -1 to 3"),
        ({"turn": 2**30 + 1}, "turn must be between 0 and 1073741824, got 1073741825"),
        ({"turn": 0.5}, "turn must be a whole number, got 0.5"),
        ({"seed": -1}, "seed must be between 0 and 2**64 - 1, got -1"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"food": [(0.5, 0)]}, "a cell is (x, y) in whole numbers, got (0.5, 0)"),
        ({"hazards": [(0,)]}, "a cell is (x, y) in whole numbers, got (0,)"),
    ],
)
def test_refuses_what_no_snake_can_have(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        SnakeState.from_positions(RULES, [Position(bodies=[[(0, 0)], [(2, 2)]], **change)])


def test_room_for_long_bodies() -> None:
    state = SnakeState.from_positions(RULES, [Position(bodies=[[(0, 0)] * 100, []])])
    assert state.length[0, 0] == 100
    assert state.body.shape[2] > 100
    assert SnakeState.empty(RULES, 3).body.shape[2] > RULES.num_cells + 1, "a body that fills the board has room to grow"


@pytest.mark.parametrize("side", [(2, 2), (3, 2), (7, 2), (5, 3), (31, 2), (128, 128)])
def test_the_ring_has_room_for_a_body_longer_than_the_board(side: tuple[int, int]) -> None:
    rules = Rules(width=side[0], height=side[1], num_snakes=1, start_length=1)
    ring = SnakeState.empty(rules, 1).body.shape[2]
    assert ring >= rules.num_cells + 2
    assert ring & (ring - 1) == 0


def test_an_empty_state_is_over() -> None:
    state = SnakeState.empty(RULES, 3)
    assert state.over.all()
    assert not state.alive.any()
    assert all(len(array) == 3 and array.flags.c_contiguous for array in state)


def test_a_head_that_leaves_the_board() -> None:
    engine = engine_at(RULES, [Position(bodies=[[(0, 1)], [(4, 3)]])])
    engine.step(np.array([[3, 0]]))
    assert body_cells(engine.state, 0, 0).tolist() == [OFF_BOARD]
    assert read_game(engine.state, RULES, 0).snakes[0].body == [(-1, 1)]
    assert CAUSES[engine.state.cause[0, 0]] == "wall"


def test_a_living_snake_needs_a_body_and_a_cell_holds_255_pieces() -> None:
    rules = Rules.classic(num_snakes=1)
    with pytest.raises(ValueError, match="snake 0 is alive and so needs a body"):
        SnakeState.from_positions(rules, [Position(bodies=[[]], alive=[True])])
    with pytest.raises(ValueError, match="food may list a cell at most 255 times, got 256"):
        SnakeState.from_positions(rules, [Position(bodies=[[(0, 0)]], food=[(1, 1)] * 256)])
