"""Where food appears, boards that are full or nearly so, and every size of board, for every preset."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.randomness import below, draw, turn_key
from snake_pz.core.rule_codes import rule_codes
from snake_pz.core.state import Position, SnakeState, body_cells
from snake_pz.core.upkeep import spawn_food
from snake_pz.rules import Rules
from tests.support.oracle import beside
from tests.support.recorded_games import (
    PRESETS,
    assert_same_turn,
    assert_same_views,
    assert_uniform,
    careful_actions,
    check_consistent,
    engine_at,
    preset,
    read_games,
    seeds,
)


def spawned(rules: Rules, position: Position, actions: list[int], games: int, first_seed: int = 0) -> np.ndarray:
    """(K,) how often each cell has food after one turn, over games of consecutive seeds."""
    engine = engine_at(rules, [position._replace(seed=first_seed + k) for k in range(games)])
    engine.step(np.tile(actions, (games, 1)))
    return engine.state.food.sum(axis=0, dtype=int)


@pytest.mark.parametrize("covered", [3, 22], ids=["wide-open", "nearly-full"])
def test_food_is_uniform_over_the_free_cells(covered: int) -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=1)
    path = [(x if y % 2 == 0 else 4 - x, y) for y in range(5) for x in range(5)]
    body = path[:covered][::-1]
    counts = spawned(rules, Position(bodies=[body]), [1], 20_000)
    free = sorted(set(path) - {path[covered], *body[:-1]})
    assert counts.sum() == 20_000
    assert_uniform(np.array([counts[y * 5 + x] for x, y in free]), 20_000)


def test_several_pieces_are_uniform_and_on_different_cells() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=6)
    counts = spawned(rules, Position(bodies=[[(2, 2)]]), [0], 5_000)
    assert counts.sum() == 30_000
    assert_uniform(np.delete(counts, 1 * 5 + 2), 30_000)


def placed(rules: Rules, state: SnakeState, key: np.uint64) -> list[int]:
    """The cells of the food that appears, by the words of the rule: a few draws of any cell, then one of the free cells."""
    width, cells = rules.width, rules.num_cells
    free = [cell for cell in range(cells) if state.occupancy[0, cell] == 0 and state.food[0, cell] == 0]
    if not rules.food_near_heads:
        heads = [int(body_cells(state, 0, i)[0]) for i in np.flatnonzero(state.alive[0])]
        free = [c for c in free if all(abs(c % width - h % width) + abs(c // width - h // width) != 1 for h in heads)]
    found: list[int] = []
    for piece in range(rules.food_minimum - int(state.food_count[0])):
        tries = [int(below(np.uint64(draw(key, piece * 16 + k)), cells)) for k in range(8)]
        cell = next((cell for cell in tries if cell in free), None)
        if cell is None:
            if not free:
                break
            cell = free[int(below(np.uint64(draw(key, piece * 16 + 8)), len(free)))]
        free.remove(cell)
        found.append(cell)
    return found


@given(st.integers(2, 9), st.integers(2, 9), st.floats(0, 1), st.booleans(), seeds)
@settings(max_examples=60)
def test_food_falls_where_its_draws_say(width: int, height: int, share: float, near: bool, seed: int) -> None:
    """Replays depend on it: few pieces and many, on boards that are empty and full."""
    random = np.random.default_rng(seed)
    pieces = int(share * width * height)
    rules = Rules(width=width, height=height, num_snakes=2, start="scattered", start_length=1, food_initial=0,
                  food_minimum=pieces, food_near_heads=near, hunger="none", edge="wrap")  # fmt: skip
    cells = [(int(c) % width, int(c) // width) for c in random.permutation(width * height)]
    many = int(random.integers(0, pieces + 1))
    engine = engine_at(rules, [Position(bodies=[cells[:1], cells[1:2]], food=cells[2 : 2 + many], turn=4, seed=seed)])
    before = engine.save()
    spawn_food(engine.state, rule_codes(rules))
    new = (engine.state.food[0] > 0) & (before.food[0] == 0)
    assert sorted(placed(rules, before, np.uint64(turn_key(np.uint64(seed), 4)))) == np.flatnonzero(new).tolist()
    assert engine.state.food.max(initial=0) <= 1
    assert engine.state.food_count[0] == engine.state.food.sum()


def test_the_most_food_among_the_most_snakes_takes_no_time() -> None:
    """The cost is linear; if every piece looked at every cell and every snake, this would take minutes."""
    rules = Rules(width=128, height=128, num_snakes=1000, start="scattered", start_length=1, food_initial=0,
                  food_minimum=128 * 128, food_near_heads=False)  # fmt: skip
    engine = SnakeEngine(rules, seed=0)
    engine.reset()
    engine.step(np.zeros((1, 1000), np.int8))
    free = (engine.state.occupancy[0] == 0) & (engine.state.food[0] == 0)
    heads = {int(body_cells(engine.state, 0, i)[0]) for i in np.flatnonzero(engine.state.alive[0])}
    beside_heads = {h + d for h in heads for d in (-128, 128, *([-1] if h % 128 else []), *([1] if h % 128 < 127 else []))}
    assert set(np.flatnonzero(free).tolist()) <= beside_heads


def test_pairs_of_pieces_are_uniform_on_a_nearly_full_board() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=2)
    path = [(x if y % 2 == 0 else 4 - x, y) for y in range(5) for x in range(5)]
    engine = engine_at(rules, [Position(bodies=[path[:22][::-1]], seed=k) for k in range(6_000)])
    engine.step(np.ones((6_000, 1), int))  # on along the path, so that its two last cells and its first one are free
    pairs = [tuple(np.flatnonzero(food)) for food in engine.state.food]
    assert len(set(pairs)) == 3
    assert_uniform(np.array([pairs.count(pair) for pair in set(pairs)]), 6_000)


def test_food_of_one_game_is_uniform_over_its_turns() -> None:
    rules = Rules(width=2, height=5, num_snakes=1, start_length=1, edge="wrap", hunger="none", food_initial=0)
    engine = SnakeEngine(rules.replace(food_minimum=1), seed=3)
    engine.reset()
    pieces = np.zeros(rules.num_cells, int)
    random = np.random.default_rng(0)
    for _ in range(8_000):
        before = engine.state.food[0].copy()
        engine.step(random.integers(4, size=(1, 1)))
        engine.state.length[:] = 1  # eaten or not, it stays a point, so that every cell but its own is free
        engine.state.occupancy[:] = 0
        engine.state.occupancy[0, body_cells(engine.state, 0, 0)] = 1
        engine.state.over[:], engine.state.alive[:], engine.state.cause[:] = False, True, 0
        pieces += (engine.state.food[0] > 0) & (before == 0)
    assert_uniform(pieces, pieces.sum())


@pytest.mark.parametrize("covered", [3, 14], ids=["wide-open", "nearly-full"])
def test_food_away_from_heads_is_uniform(covered: int) -> None:
    """Neither on bodies nor right beside the heads of the living; beside those of the dead, and across seams."""
    rules = Rules(width=5, height=5, num_snakes=3, start_length=1, food_initial=0, food_minimum=1, edge="wrap")
    path = [(x if y % 2 == 0 else 4 - x, y) for y in range(5) for x in range(5)]
    position = Position(
        bodies=[path[:covered][::-1], [(0, 4), (1, 4)], [(3, 3)]], headings=[1, 3, -1], alive=[True, True, False], food=[]
    )
    head, other = path[covered], (0, 3)
    counts = spawned(rules.replace(food_near_heads=False), position, [1, 0, 0], 20_000)
    taken = {head, *path[1:covered], other, (0, 4)}
    taken |= {beside(rules.replace(edge="wall"), cell, direction) for cell in (head, other) for direction in range(4)}
    free = sorted(set(path) - taken)
    assert counts.sum() == 20_000
    assert_uniform(np.array([counts[y * 5 + x] for x, y in free]), 20_000)


def test_as_much_food_as_there_are_cells_away_from_heads() -> None:
    rules = Rules(width=3, height=3, num_snakes=2, start_length=1, food_initial=0, food_minimum=9, food_near_heads=False)
    position = Position(bodies=[[(1, 2)], [(0, 0)]], headings=[0, 1])
    engine = engine_at(rules, [position])
    engine.step(np.array([[0, 2]]))
    check_consistent(engine.state, rules)
    assert np.flatnonzero(engine.state.food[0]).tolist() == [2, 8], "the corners that no head is beside"
    rules = rules.replace(width=2, height=2, num_snakes=1)
    engine = engine_at(rules, [Position(bodies=[[(0, 0), (0, 1)]], food=[(0, 1)])])
    engine.step(np.array([[1]]))
    check_consistent(engine.state, rules)
    assert np.flatnonzero(engine.state.food[0]).tolist() == [2], "the only other free cell is beside the head"


def test_the_chance_of_food() -> None:
    rules = Rules(width=5, height=5, num_snakes=1, start_length=1, food_initial=0, food_minimum=1, food_chance=0.3)
    enough = Position(bodies=[[(2, 2)]], food=[(4, 4)])
    assert spawned(rules, enough, [0], 20_000).sum() == pytest.approx(20_000 * 1.3, abs=5 * np.sqrt(20_000 * 0.3 * 0.7))
    assert spawned(rules, Position(bodies=[[(2, 2)]]), [0], 1_000).sum() == 1_000, "no chance on a turn that fills up"
    assert spawned(rules.replace(food_chance=1.0), enough, [0], 1_000).sum() == 2_000
    assert spawned(rules.replace(food_chance=0.0), enough, [0], 1_000).sum() == 1_000


def test_food_of_the_start_is_uniform() -> None:
    rules = Rules(width=4, height=4, num_snakes=1, start_length=1, food_initial=1)
    engine = SnakeEngine(rules, 20_000, seed=0)
    engine.reset()
    assert (engine.state.food_count == 1).all()
    starts = engine.state.occupancy.sum(axis=0, dtype=int)
    counts = engine.state.food.sum(axis=0, dtype=int)
    for group in (starts > 0, starts == 0):  # cells where snakes start are free less often
        assert_uniform(counts[group], counts[group].sum())


@pytest.mark.parametrize("growth", ["same_turn", "next_turn", "every_turn"])
@pytest.mark.parametrize("food_minimum", [1, 3, 100])
def test_a_board_that_fills_up(growth: str, food_minimum: int) -> None:
    """Along a closed path over all cells. The snake eats until there is no room and then follows its tail for ever, or, where
    growth is late, runs into the tail that its last meal has doubled."""
    rules = Rules(width=4, height=4, num_snakes=1, start_length=3, growth=growth, hunger="none", food_minimum=food_minimum)
    down = [(0, y) for y in range(4)]
    back = [(x, y) for x, ys in ((1, (3, 2, 1)), (2, (1, 2, 3)), (3, (3, 2, 1, 0))) for y in ys] + [(2, 0), (1, 0)]
    path = down + back
    steps = {
        cell: next(d for d in range(4) if beside(rules, cell, d) == after)
        for cell, after in zip(path, path[1:] + path[:1], strict=True)
    }
    engine = engine_at(rules, [Position(bodies=[path[2::-1]])])
    games = read_games(engine)
    for _ in range(400):
        assert_same_turn(engine, games, np.array([[steps[games[0].snakes[0].body[0]]]]))
        check_consistent(engine.state, rules)
    snake = games[0].snakes[0]
    assert snake.cause == ("" if growth == "same_turn" else "self")
    assert len(set(snake.body)) == 16
    assert len(snake.body) == {"same_turn": 16, "next_turn": 17, "every_turn": 18}[growth]
    assert games[0].food == ([] if growth == "same_turn" else games[0].food)


@pytest.mark.parametrize("growth", ["same_turn", "next_turn"])
def test_a_body_grows_as_long_as_its_ring_has_room(growth: str) -> None:
    """Only a body set up in a heap gets that long."""
    rules = Rules.classic(width=7, height=2, num_snakes=1, start_length=1, growth=growth, food_initial=0, food_minimum=0)
    path = [(x, 0) for x in range(7)] + [(x, 1) for x in range(6, -1, -1)]
    engine = engine_at(rules, [Position(bodies=[path[:1] * 14], food=path[1:], headings=[1])])
    for direction in [1] * 6 + [2] + [3] * 6:
        engine.step(np.array([[direction]]))
        check_consistent(engine.state, rules, played=False)
    assert engine.state.alive.all()
    assert engine.state.length[0, 0] == engine.state.body.shape[2] - 1
    assert engine.state.food_count.tolist() == [0]


def test_food_fills_a_board_and_no_more() -> None:
    rules = Rules(width=6, height=3, num_snakes=2, food_initial=100, food_minimum=100)
    engine = SnakeEngine(rules, 5, seed=1)
    engine.reset()
    assert (engine.state.food_count == 12).all()
    check_consistent(engine.state, rules)
    engine.step(np.zeros((5, 2), int))
    check_consistent(engine.state, rules)


# ------------------------------------------------------------------------------------------------------- every preset

BOARDS = [(2, 2), (3, 2), (3, 3), (5, 4), (2, 9), (11, 11), (19, 7), (64, 64), (128, 2)]


def play_through(rules: Rules, turns: int) -> None:
    """Two games of careful players, against the oracle where the board is small enough for it."""
    engine = SnakeEngine(rules, 2, seed=0)
    engine.reset()
    check_consistent(engine.state, rules)
    games = read_games(engine)
    small = rules.num_snakes <= 12 and rules.num_cells <= 200
    for turn in range(turns):
        actions = careful_actions(engine, Random(turn), care=0.97)
        if small:
            assert_same_turn(engine, games, actions)
        else:
            engine.step(actions)
        check_consistent(engine.state, rules)
        if engine.state.over.all():
            break
    if rules.num_cells <= 30:
        for row in range(2):
            assert_same_views(engine, read_games(engine), row)


@pytest.mark.parametrize(("width", "height"), BOARDS)
@pytest.mark.parametrize("name", PRESETS)
def test_one_snake_some_and_as_many_as_fit(name: str, width: int, height: int) -> None:
    for most in (1, None, 1000):
        play_through(preset(name, width, height, most), 25)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 3), (5, 4), (7, 7)])
@pytest.mark.parametrize("name", PRESETS)
def test_boards_full_of_food(name: str, width: int, height: int) -> None:
    for most in (1, None, 1000):
        rules = preset(name, width, height, most)
        play_through(rules.replace(food_initial=width * height, food_minimum=width * height), 60)
        play_through(rules.replace(food_initial=width * height, food_chance=1.0), 60)


@pytest.mark.parametrize("name", PRESETS)
def test_boards_full_of_snakes(name: str) -> None:
    """One snake covers all cells of which it can; there is room for food only behind its tail, if at all."""
    rules = preset(name, 6, 6, 1).replace(food_minimum=5)
    path = [(x if y % 2 == 0 else 5 - x, y) for y in range(6) for x in range(6)]
    for covered in (33, 34, 35):
        engine = engine_at(rules, [Position(bodies=[path[:covered][::-1]])])
        games = read_games(engine)
        head, after = path[covered - 1], path[covered]
        direction = next(d for d in range(4) if beside(rules, head, d) == after)
        assert_same_turn(engine, games, np.array([[direction]]))
        check_consistent(engine.state, rules)
        assert engine.state.alive.all()


@pytest.mark.parametrize("name", PRESETS)
def test_the_largest_board(name: str) -> None:
    for most in (1, 1000):
        rules = preset(name, 128, 128, most).replace(food_minimum=300)
        play_through(rules, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_presets_on_boards_of_all_sizes(name: str) -> None:
    for width in range(2, 65, 5):
        for height in (2, 3, 4, 7, 10, 31, 64):
            for most in (1, 2, None, 50, 1000):
                play_through(preset(name, width, height, most), 15)
