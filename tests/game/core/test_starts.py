"""How games start: on rings, on Battlesnake's points, scattered; shuffled and fair; as many snakes as fit."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import NO_HEADING, Position, body_cells
from snake_pz.rules import Rules
from tests.support.oracle import Game, beside
from tests.support.recorded_games import (
    PRESETS,
    assert_uniform,
    check_consistent,
    random_rules,
    read_games,
    room,
    seeds,
    turned,
)


def follow_the_ring(rules: Rules, game: Game) -> list[int]:
    """The direction of each snake to the next cell of the ring it starts on."""
    rings = [[(cell % rules.width, cell // rules.width) for cell in ring] for ring in rules.rings()]
    directions = []
    for snake in game.snakes:
        head = snake.body[0]
        ring = next(ring for ring in rings if head in ring)
        at = ring.index(head)
        ahead = [
            direction for direction in range(4) if beside(rules, head, direction) in (ring[at - 1], ring[(at + 1) % len(ring)])
        ]
        if snake.heading == NO_HEADING:
            directions.append(next(direction for direction in ahead if beside(rules, head, direction) == ring[at - 1]))
            continue
        behind = snake.body[1] if len(snake.body) > 1 else beside(rules, head, (snake.heading + 2) % 4)
        directions.append(next(direction for direction in ahead if beside(rules, head, direction) != behind))
    return directions


def check_start(rules: Rules, games: int, seed: int) -> None:
    """A start on the rings, from which every snake can survive its first move."""
    engine = SnakeEngine(rules, games, seed=seed)
    engine.reset()
    state = engine.state
    check_consistent(state, rules)
    assert (state.occupancy.sum(axis=1) == rules.num_snakes * rules.start_length).all()
    free = rules.num_cells - (state.occupancy > 0).sum(axis=1)
    assert (state.food_count == np.minimum(rules.food_initial, free)).all()
    assert not ((state.food > 0) & (state.occupancy > 0)).any()
    assert (state.health == rules.max_health).all()
    assert not state.hazard.any()
    assert not state.over.any()
    before = read_games(engine)
    for game in before:
        for snake in game.snakes:
            if rules.start != "rings":
                assert set(snake.body) == {snake.head}, "not curled up"
                assert snake.heading == NO_HEADING
                continue
            for ahead, behind in zip(snake.body, snake.body[1:], strict=False):
                assert abs(ahead[0] - behind[0]) + abs(ahead[1] - behind[1]) == 1
            if len(snake.body) > 1 and min(rules.width, rules.height) > 2:
                assert beside(rules, snake.body[1], snake.heading) == snake.body[0]
    actions = [follow_the_ring(rules, game) for game in before]
    for row, game in enumerate(before):
        for snake, direction in zip(game.snakes, actions[row], strict=True):
            x, y = beside(rules, snake.body[0], direction)
            assert state.occupancy[row, y * rules.width + x] == 0, "two snakes start without a free cell between them"
    engine.step(np.array(actions))
    assert state.alive.all(), "a snake cannot survive its first move"


MILD = {"reverse": "dies", "max_health": 100, "growth": "same_turn", "hunger": "health", "hazard_damage": 0}


@given(random_rules(max_snakes=30, start="rings", **MILD), seeds)
@settings(max_examples=100)
@example(Rules(width=2, height=2, num_snakes=1, reverse="dies"), 0)
@example(Rules(width=4, height=4, num_snakes=4, reverse="dies"), 0)
@example(Rules(width=64, height=3, num_snakes=30, reverse="dies"), 0)
@example(Rules(width=16, height=16, num_snakes=22, start_length=1, reverse="dies"), 0)
@example(Rules(width=8, height=29, num_snakes=116, start_length=1, reverse="dies"), 0)
def test_every_snake_can_survive_its_first_move(rules: Rules, seed: int) -> None:
    check_start(rules, 3, seed)


@given(random_rules(max_snakes=30, start="battlesnake", **MILD), seeds)
@settings(max_examples=60)
def test_snakes_curl_up_on_rings_where_battlesnake_has_no_map(rules: Rules, seed: int) -> None:
    if rules.width == rules.height >= 7 and rules.num_snakes <= 8:
        rules = rules.replace(height=rules.height - 1)
    check_start(rules.replace(num_snakes=min(rules.num_snakes, room("battlesnake", rules.width, rules.height, 1))), 3, seed)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 9), (3, 3), (5, 4), (11, 11), (19, 7), (64, 64), (128, 2)])
@pytest.mark.parametrize("start_length", [1, 2, 3])
def test_as_many_snakes_as_fit(width: int, height: int, start_length: int) -> None:
    most = room("rings", width, height, start_length)
    rules = Rules(width=width, height=height, num_snakes=min(most, 1000), start_length=start_length, reverse="is_a_move")
    check_start(rules, 2, 0)
    with pytest.raises(ValueError, match=f"room for at most {most} snakes" if most < 1000 else "num_snakes must be <= 1000"):
        rules.replace(num_snakes=most + 1)


@pytest.mark.slow
def test_starts_of_every_size() -> None:
    for width in range(2, 40):
        for height in range(2, 40, 3):
            for start_length in (1, 2, 3, 5):
                most = room("rings", width, height, start_length)
                for num_snakes in {1, 2, 3, 4, 5, 7, most // 2, most - 1, most}:
                    if 1 <= num_snakes <= most:
                        rules = Rules(
                            width=width, height=height, num_snakes=num_snakes, start_length=start_length, reverse="is_a_move"
                        )
                        check_start(rules, 1, width + height)


@pytest.mark.parametrize("side", [5, 7, 8, 11, 19])
@pytest.mark.parametrize("num_snakes", [2, 4])
def test_the_start_is_fair_on_a_square(side: int, num_snakes: int) -> None:
    """Turned by 360 degrees divided by the number of snakes, each stands where another stood and heads where it headed."""
    rules = Rules(width=side, height=side, num_snakes=num_snakes)
    engine = SnakeEngine(rules, 20, seed=2)
    engine.reset()
    for game in read_games(engine):
        position = Position(bodies=[snake.body for snake in game.snakes], headings=[snake.heading for snake in game.snakes])
        moved = position
        for _ in range(4 // num_snakes):
            moved = turned(rules, moved, mirror=False)[1]
        assert moved.headings is not None
        assert position.headings is not None
        there = sorted(zip(map(list, moved.bodies), moved.headings, strict=True))
        assert there == sorted(zip(map(list, position.bodies), position.headings, strict=True))


def test_starts_are_shuffled() -> None:
    """Every snake starts at every spot, and in both directions around the board."""
    engine = SnakeEngine(Rules.classic(), 4_000, seed=0)
    engine.reset()
    heads = np.array([[body_cells(engine.state, game, snake)[0] for snake in range(4)] for game in range(4_000)])
    for snake in range(4):
        counts = np.bincount(heads[:, snake], minlength=121)
        assert_uniform(counts[counts > 0], 4_000)
        assert (counts > 0).sum() == 24, "the ring near the third line of 11x11"
        assert_uniform(np.bincount(engine.state.heading[:, snake], minlength=4), 4_000)
    ring = engine.rules.rings()[2]
    necks = np.array([[body_cells(engine.state, game, snake)[1] for snake in range(4)] for game in range(4_000)])
    clockwise = np.array(
        [
            [ring.index(head) == (ring.index(neck) + 1) % 24 for head, neck in zip(*pair, strict=True)]
            for pair in zip(heads, necks, strict=True)
        ]
    )
    assert (clockwise == clockwise[:, :1]).all(), "all in one direction, or they would meet"
    assert_uniform(np.bincount(clockwise[:, 0], minlength=2), 4_000)


def test_the_order_around_the_board_is_shuffled() -> None:
    engine = SnakeEngine(Rules.classic(), 6_000, seed=0)
    engine.reset()
    ring = engine.rules.rings()[2]
    places = [[ring.index(body_cells(engine.state, game, snake)[0]) for snake in range(4)] for game in range(6_000)]
    orders = [tuple(np.argsort([(place - game[0]) % len(ring) for place in game])) for game in places]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6, "who follows the first snake, and who follows next"
    assert_uniform(np.array(counts), 6_000)


@pytest.mark.parametrize("name", PRESETS)
def test_the_game_before_is_forgotten_on_reset(name: str) -> None:
    rules = PRESETS[name](width=7, height=7, max_turns=60)
    engine, fresh = SnakeEngine(rules, 1), SnakeEngine(rules, 1)
    engine.reset(seeds=[1])
    while not engine.state.over.all():
        engine.step(np.array([[1, 2, 1, 2]])[:, : rules.num_snakes])
    engine.state.hazard[:] = 3
    engine.reset(seeds=[7])
    fresh.reset(seeds=[7])
    assert read_games(engine) == read_games(fresh)
    check_consistent(engine.state, rules)


# ------------------------------------------------------------------------------------------------------- other starts


def start_of(rules: Rules, games: int) -> tuple[SnakeEngine, np.ndarray]:
    """Games just started, all of whose snakes are curled up, and the (E, N) cells of their heads."""
    engine = SnakeEngine(rules, games, seed=1)
    engine.reset()
    check_consistent(engine.state, rules)
    for body in ((engine.state, game, snake) for game in range(5) for snake in range(rules.num_snakes)):
        assert len(set(body_cells(*body).tolist())) == 1, "not curled up"
    assert (engine.state.length == rules.start_length).all()
    assert (engine.state.heading == NO_HEADING).all()
    return engine, np.take_along_axis(engine.state.body, engine.state.head[..., None], axis=2)[..., 0].astype(int)


def battlesnake_points(side: int) -> tuple[set[int], set[int]]:
    near, middle, far = 1, (side - 1) // 2, side - 2
    corners = {y * side + x for x in (near, far) for y in (near, far)}
    return corners, {middle * side + near, middle * side + far, near * side + middle, far * side + middle}


@pytest.mark.parametrize("side", [7, 8, 11, 19])
@pytest.mark.parametrize("num_snakes", [1, 4, 5, 8])
def test_battlesnake_starts_on_its_points(side: int, num_snakes: int) -> None:
    """A whole group first, either one as often, each of its points as often for every snake."""
    _, heads = start_of(Rules.battlesnake(width=side, height=side, num_snakes=num_snakes), 4_000)
    corners, cardinals = battlesnake_points(side)
    first = np.isin(heads, list(corners))[:, 0]
    assert_uniform(np.bincount(first, minlength=2), 4_000)
    for group, games in ((corners, first), (cardinals, ~first)):
        assert np.isin(heads[games, :4], list(group)).all(), "the first four are not of one group"
        assert not np.isin(heads[games, 4:], list(group)).any(), "the others are of the same group"
        for snake in range(num_snakes):
            counts = np.bincount(heads[games if snake < 4 else ~games, snake], minlength=side * side)[sorted(group)]
            assert_uniform(counts, counts.sum())
    assert all(len(set(row)) == num_snakes for row in heads.tolist())


@pytest.mark.parametrize(("side", "num_snakes"), [(7, 1), (7, 4), (7, 5), (9, 8), (10, 5), (11, 8), (12, 4), (19, 8)])
def test_the_food_of_the_map_of_battlesnake(side: int, num_snakes: int) -> None:
    """One piece in the centre and, but for small boards with many snakes, one diagonal to each head, away from the centre."""
    engine, heads = start_of(Rules.battlesnake(width=side, height=side, num_snakes=num_snakes), 3_000)
    middle = (side - 1) // 2
    own = num_snakes <= 4 or side >= 11
    offsets: Counter[tuple[int, int, int]] = Counter()
    for game in range(3_000):
        food = {(int(cell) % side, int(cell) // side) for cell in np.flatnonzero(engine.state.food[game])}
        assert (middle, middle) in food
        food.remove((middle, middle))
        assert len(food) == (num_snakes if own else 0)
        assert not food & {(x, y) for x in (0, side - 1) for y in (0, side - 1)}, "food in a corner"
        for head in heads[game].tolist() if own else []:
            x, y = head % side, head // side
            near = [(fx, fy) for fx, fy in food if abs(fx - x) == abs(fy - y) == 1]
            outwards = [
                (fx, fy)
                for fx, fy in near
                if (x != middle and abs(fx - middle) > abs(x - middle)) or (y != middle and abs(fy - middle) > abs(y - middle))
            ]
            assert outwards, "no food beside a head"
            if len(outwards) == 1:
                offsets[head, outwards[0][0] - x, outwards[0][1] - y] += 1
    if num_snakes <= 4 and side > 7:  # nobody else's food is near enough to be mistaken for it
        for head in {head for head, _, _ in offsets}:
            counts = [count for (there, _, _), count in offsets.items() if there == head]
            assert len(counts) == 2, "two cells are allowed at each point"
            assert_uniform(np.array(counts), sum(counts))


def test_where_battlesnake_has_no_map_food_comes_with_the_first_turn() -> None:
    engine, _ = start_of(Rules.battlesnake(width=11, height=9), 20)
    assert not engine.state.food.any()
    engine.step(np.zeros((20, 4), int))
    assert (engine.state.food_count == 1).all()


def test_geese_are_scattered_uniformly_on_different_cells() -> None:
    engine, heads = start_of(Rules.hungry_geese(width=5, height=3), 9_000)
    assert all(len(set(row)) == 4 for row in heads.tolist())
    for snake in range(4):
        assert_uniform(np.bincount(heads[:, snake], minlength=15), 9_000)
    pairs = np.bincount(heads[:, 0] * 15 + heads[:, 3], minlength=225)
    assert_uniform(np.delete(pairs, np.arange(0, 225, 16)), 9_000)
    assert (engine.state.food_count == 2).all()
    assert_uniform(engine.state.food.sum(axis=0, dtype=int), 18_000)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 3), (5, 4), (19, 7), (64, 64), (128, 2)])
def test_as_many_scattered_snakes_as_there_are_cells(width: int, height: int) -> None:
    most = width * height
    rules = Rules.hungry_geese(width=width, height=height, num_snakes=min(most, 1000))
    engine, heads = start_of(rules, 5)
    assert all(len(set(row)) == min(most, 1000) for row in heads.tolist())
    assert (engine.state.food_count == min(2, max(most - 1000, 0))).all()
    with pytest.raises(ValueError, match=f"room for at most {most} snakes" if most < 1000 else "num_snakes must be <= 1000"):
        rules.replace(num_snakes=most + 1)


@pytest.mark.parametrize("start", ["battlesnake", "scattered"])
def test_a_snake_may_start_as_a_high_heap(start: str) -> None:
    rules = Rules(width=7, height=7, num_snakes=2, start=start, start_length=251)  # type: ignore[arg-type]
    engine, _ = start_of(rules, 5)
    assert engine.state.occupancy.max() == 251
    with pytest.raises(ValueError, match="start_length must be <= 251 where snakes start curled up, got 252"):
        rules.replace(start_length=252)


def test_a_heap_has_room_to_grow() -> None:
    """A snake that starts as 60 segments on one of 56 cells may eat on every turn until it has covered the board."""
    rules = Rules(width=8, height=7, num_snakes=1, start="scattered", start_length=60, edge="wrap", hunger="none")
    engine = SnakeEngine(rules.replace(food_initial=55, food_minimum=0), seed=0)
    engine.reset()
    for turn in range(1, 56):
        engine.step(np.array([[2 if turn % 8 == 0 else 1]]))
        check_consistent(engine.state, engine.rules)
    assert engine.state.alive.all()
    assert engine.state.length.tolist() == [[60 + 55]]
    assert engine.state.occupancy.sum() == 60 + 55
