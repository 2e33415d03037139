"""Whole games against the oracle; batches, seeds, saving, and what the engine refuses."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import CAUSES, SnakeState
from snake_pz.reward_weights import RewardWeights
from snake_pz.rules import Rules
from tests.support import oracle, oracle_views
from tests.support.oracle import Game
from tests.support.recorded_games import (
    PRESETS,
    WEIGHTS,
    assert_same_turn,
    assert_same_views,
    careful_actions,
    check_consistent,
    preset_rules,
    random_rules,
    read_games,
    room,
    seeds,
)


def assert_same_state(one: SnakeState, other: SnakeState) -> None:
    for name, array, expected in zip(SnakeState._fields, one, other, strict=True):
        np.testing.assert_array_equal(array, expected, name)


# --------------------------------------------------------------------------------------------------- against the oracle


def whole_games(rules: Rules, seed: int, num_games: int, turns: int, *, views: bool = False, care: float = 0.9) -> list[Game]:
    random = Random(seed)
    engine = SnakeEngine(rules, num_games, seed=seed)
    engine.reset()
    games = read_games(engine)
    for turn in range(turns):
        if views:
            assert_same_views(engine, games, turn % num_games)
        assert_same_turn(engine, games, careful_actions(engine, random, care))
        check_consistent(engine.state, rules)
        if engine.state.over.all():
            break
    if views:
        for row in range(num_games):
            assert_same_views(engine, games, row)
    return games


@given(random_rules(), seeds)
@settings(max_examples=100)
def test_whole_games(rules: Rules, seed: int) -> None:
    whole_games(rules, seed, 3, 40)


@given(random_rules(), seeds)
@settings(max_examples=25)
def test_whole_games_with_what_is_seen(rules: Rules, seed: int) -> None:
    whole_games(rules, seed, 2, 15, views=True)


@given(preset_rules(), seeds)
@settings(max_examples=40)
def test_whole_games_of_every_preset(rules: Rules, seed: int) -> None:
    whole_games(rules, seed, 2, 40)


@given(preset_rules(), seeds)
@settings(max_examples=12)
def test_whole_games_of_every_preset_with_what_is_seen(rules: Rules, seed: int) -> None:
    whole_games(rules, seed, 1, 15, views=True)


@pytest.mark.parametrize("name", PRESETS)
def test_long_games_of_every_preset(name: str) -> None:
    """On the preset's own board, with players who seldom err."""
    games = whole_games(PRESETS[name](), 3, 3, 250, care=0.999)
    assert max(game.turn for game in games) > 20


def test_whole_games_of_classic() -> None:
    games = whole_games(Rules.classic(food_minimum=12), 0, 12, 300, care=0.998)
    assert len({snake.cause for game in games for snake in game.snakes}) >= 4, "these games are of one kind"
    assert max(len(snake.body) for game in games for snake in game.snakes) > 15


@pytest.mark.slow
def test_very_many_whole_games() -> None:
    @given(random_rules(), seeds)
    @settings(max_examples=1000)
    def check(rules: Rules, seed: int) -> None:
        whole_games(rules, seed, 3, 60, views=seed % 8 == 0)

    check()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 64), (3, 3), (3, 17), (20, 5), (64, 64)])
@pytest.mark.parametrize("edge", ["wall", "wrap"])
@pytest.mark.parametrize("growth", ["same_turn", "next_turn"])
def test_whole_games_of_many_sizes(width: int, height: int, edge: Any, growth: Any) -> None:
    for num_snakes in (1, 2, 6):
        for start_length in (1, 3):
            rules = Rules(
                width=width,
                height=height,
                num_snakes=min(num_snakes, room("rings", width, height, start_length)),
                start_length=start_length,
                edge=edge,
                growth=growth,
                food_minimum=width * height // 4,
            )
            whole_games(rules, 1, 4, 100)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 3), (2, 33), (64, 64), (128, 128)])
def test_boards_of_every_size(width: int, height: int) -> None:
    rules = Rules(width=width, height=height, num_snakes=1 if width == 2 == height else 2, food_minimum=5, edge="wrap")
    engine = SnakeEngine(rules, 2, seed=0)
    engine.reset()
    games = read_games(engine)
    for turn in range(5):
        assert_same_turn(engine, games, careful_actions(engine, Random(turn)))
        check_consistent(engine.state, rules)
    for name in oracle_views.VIEWS:
        engine.observe(name)


# --------------------------------------------------------------------------------------------------------------- batches


@given(random_rules(max_side=7), seeds)
@settings(max_examples=40)
def test_a_batch_equals_single_games(rules: Rules, seed: int) -> None:
    random = Random(seed)
    game_seeds = [random.getrandbits(64) for _ in range(5)]
    batch = SnakeEngine(rules, 5)
    singles = [SnakeEngine(rules) for _ in game_seeds]
    batch.reset(seeds=game_seeds)
    for single, game_seed in zip(singles, game_seeds, strict=True):
        single.reset(seeds=[game_seed])
    for turn in range(12):
        if turn == 6:
            batch.reset(np.array([1, 3]))
            singles[1].reset()
            singles[3].reset()
        actions = careful_actions(batch, random)
        batch.step(actions)
        for row, single in enumerate(singles):
            single.step(actions[row : row + 1])
        for row, single in enumerate(singles):
            assert_same_state(batch.save(np.array([row])), single.state)
            np.testing.assert_array_equal(batch.rewards(WEIGHTS)[row], single.rewards(WEIGHTS)[0])
        if turn % 4 == 3:
            for name in oracle_views.VIEWS:
                views = batch.observe(name)
                for row, single in enumerate(singles):
                    np.testing.assert_array_equal(views[row], single.observe(name)[0])


def test_resetting_rows_leaves_the_others_alone() -> None:
    engine = SnakeEngine(Rules.classic(), 6, seed=0)
    engine.reset()
    engine.step(careful_actions(engine, Random(0)))
    before = engine.save()
    engine.reset(np.array([4, 1]), seeds=[9, 8])
    for row in (0, 2, 3, 5):
        assert_same_state(engine.save(np.array([row])), SnakeState(*(array[[row]] for array in before)))
    assert engine.state.turn.tolist() == [1, 0, 1, 1, 0, 1]
    assert engine.state.seed[[4, 1]].tolist() == [9, 8], "seeds in the order of the rows"
    engine.reset(np.zeros(0, np.intp), seeds=[])
    assert engine.state.turn.tolist() == [1, 0, 1, 1, 0, 1]


def test_one_game_of_a_batch_shares_its_memory() -> None:
    batch = SnakeEngine(Rules.classic(), 3, seed=0)
    batch.reset()
    actions = careful_actions(batch, Random(0))
    expected = SnakeEngine(batch.rules, 3)
    expected.load(batch.save())
    expected.step(actions)
    one = batch.game(1)
    one.step(actions[1:2])
    assert batch.state.turn.tolist() == [0, 1, 0]
    assert_same_state(one.state, expected.save(np.array([1])))
    np.testing.assert_array_equal(one.observe("board")[0], expected.observe("board")[1])


# ----------------------------------------------------------------------------------------------------------------- seeds


def play_out(engine: SnakeEngine, turns: int = 30) -> SnakeState:
    random = Random(5)
    for _ in range(turns):
        engine.step(careful_actions(engine, random))
    return engine.save()


def test_the_same_seed_plays_the_same() -> None:
    def played(seed: int | None, **reset: Any) -> SnakeState:
        engine = SnakeEngine(Rules.classic(), 3, seed=seed)
        engine.reset(**reset)
        return play_out(engine)

    assert_same_state(played(1), played(1))
    assert_same_state(played(1, seeds=[7, 8, 2**64 - 1]), played(2, seeds=np.array([7, 8, 2**64 - 1], np.uint64)))
    assert (played(1).food != played(2).food).any()
    assert (played(None).food != played(None).food).any()


def test_different_games_differ() -> None:
    engine = SnakeEngine(Rules.classic(), 200, seed=0)
    engine.reset()
    assert len(set(engine.state.seed.tolist())) == 200
    starts = {state.tobytes() for state in engine.state.food}
    engine.reset()
    starts |= {state.tobytes() for state in engine.state.food}
    assert len(starts) > 395, "games of one batch, and one game after another, start alike"
    engine.reset(seeds=range(200))
    assert len({state.tobytes() for state in engine.state.food}) > 195, "consecutive seeds start alike"


def test_a_row_goes_on_with_its_own_stream_of_seeds() -> None:
    one, other = SnakeEngine(Rules.classic(), 2, seed=4), SnakeEngine(Rules.classic(), 2, seed=4)
    seen = []
    for _ in range(50):
        one.reset()
        seen += one.state.seed.tolist()
    for _ in range(50):
        other.reset(np.array([1]))
        play_out(other, 1)
    assert one.state.seed[1] == other.state.seed[1], "what is played, and when others start anew, changes a game's seeds"
    assert len(set(seen)) == 100


def test_the_start_does_not_depend_on_the_game_before() -> None:
    one, other = SnakeEngine(Rules.classic(), seed=0), SnakeEngine(Rules.classic(), seed=1)
    one.reset()
    play_out(one, 40)
    one.reset(seeds=[3])
    other.reset(seeds=[3])
    assert read_games(one) == read_games(other)
    play_out(one)
    play_out(other)
    assert read_games(one) == read_games(other)


# ---------------------------------------------------------------------------------------------------------------- saving


@given(random_rules(max_side=7), seeds)
@settings(max_examples=30)
def test_saved_games_go_on_equal(rules: Rules, seed: int) -> None:
    engine = SnakeEngine(rules, 3, seed=seed)
    engine.reset()
    play_out(engine, 4)
    saved = engine.save()
    first = play_out(engine, 10)
    assert saved.turn.max() <= 4, "saving did not copy"
    kept = SnakeState(*(array.copy() for array in saved))
    other = SnakeEngine(rules, 3, seed=seed + 1)
    other.load(saved)
    assert_same_state(play_out(other, 10), first)
    assert_same_state(saved, kept)


def test_loading_into_rows() -> None:
    engine = SnakeEngine(Rules.classic(), 4, seed=0)
    engine.reset()
    play_out(engine, 3)
    before, saved = engine.save(), engine.save(np.array([3, 0]))
    engine.load(saved, np.array([1, 2]))
    after = engine.save()
    for row, origin in enumerate([0, 3, 0, 3]):
        assert_same_state(engine.save(np.array([row])), SnakeState(*(array[[origin]] for array in before)))
    saved.food[:] = 9
    assert_same_state(engine.state, after)


# ------------------------------------------------------------------------------------------------------------- game over


def test_a_game_that_is_over_does_not_change() -> None:
    engine = SnakeEngine(Rules.classic(), 6, seed=0)
    engine.reset()
    while not engine.state.over.any():
        engine.step(np.zeros((6, 4), int))
    over = engine.state.over.copy()
    rows = np.flatnonzero(over)
    assert engine.state.just_ended[rows].all()
    before = engine.save()
    seen = {name: engine.observe(name) for name in oracle_views.VIEWS}
    engine.step(careful_actions(engine, Random(1)))
    for name, array, old in zip(SnakeState._fields, engine.state, before, strict=True):
        if name in ("ate", "just_died", "just_ended"):
            assert not array[rows].any(), f"{name} is of the last turn"
        elif name == "length_before":
            np.testing.assert_array_equal(array[rows], engine.state.length[rows])
        else:
            np.testing.assert_array_equal(array[rows], old[rows], name)
    assert (engine.rewards(WEIGHTS)[rows] == 0).all()
    for name, view in seen.items():
        kept = view.copy()
        engine.observe(name, view)
        dead = ~engine.state.alive[rows]
        np.testing.assert_array_equal(view[rows][dead], kept[rows][dead])
    assert (engine.action_masks("absolute")[rows] == 1).all()


def test_a_fresh_engine_has_no_running_games() -> None:
    engine = SnakeEngine(Rules.classic(), 2)
    assert engine.state.over.all()
    engine.step(np.zeros((2, 4), int))
    assert (engine.state.turn == 0).all()
    assert (engine.rewards(WEIGHTS) == 0).all()


def test_what_a_dead_snake_saw_last_is_kept() -> None:
    rules = Rules(width=7, height=7, num_snakes=3, food_initial=2, food_minimum=2)
    engine = SnakeEngine(rules, 5, seed=3)
    engine.reset()
    views = {name: engine.observe(name) for name in oracle_views.VIEWS}
    for turn in range(30):
        engine.step(careful_actions(engine, Random(turn), care=0.8))
        for name, view in views.items():
            before = view.copy()
            engine.observe(name, view)
            earlier = ~(engine.state.alive | engine.state.just_died)
            np.testing.assert_array_equal(view[earlier], before[earlier])
            fresh = engine.observe(name)
            np.testing.assert_array_equal(view[~earlier], fresh[~earlier])
            assert (fresh[earlier] == 0).all()
    assert not engine.state.alive.all()


# ----------------------------------------------------------------------------------------------------------------- ranks


def test_settling_places_the_living_by_length() -> None:
    rules = Rules(width=9, height=9, num_snakes=4)
    engine = SnakeEngine(rules, 6, seed=0)
    engine.reset()
    play_out(engine, 25)
    assert engine.state.alive.sum() > 6
    games = read_games(engine)
    engine.rank_survivors(np.array([0, 1, 2]))
    for row, game in enumerate(games):
        if row < 3:
            oracle.settle(game)
        assert engine.state.rank[row].tolist() == [snake.rank for snake in game.snakes]
    engine.rank_survivors()
    assert (engine.state.rank > 0).all()


@given(random_rules(max_side=7, max_turns=12), seeds)
@settings(max_examples=30)
def test_every_place_is_known_when_a_game_is_over(rules: Rules, seed: int) -> None:
    engine = SnakeEngine(rules, 4, seed=seed)
    engine.reset()
    play_out(engine, 12)
    assert engine.state.over.all()
    for ranks in engine.state.rank.tolist():
        assert sorted(ranks) == sorted(1 + sum(other < rank for other in ranks) for rank in ranks)


# ---------------------------------------------------------------------------------------------------------------- errors


def test_engine_refuses() -> None:
    with pytest.raises(ValueError, match="num_games must be >= 1, got 0"):
        SnakeEngine(Rules.classic(), 0)
    with pytest.raises(ValueError, match=r"num_games must be a whole number, got 1\.5"):
        SnakeEngine(Rules.classic(), 1.5)  # type: ignore[arg-type]
    for seed, text in ((1.5, r"a whole number, got 1\.5"), (-1, ">= 0, got -1")):
        with pytest.raises(ValueError, match=f"seed must be {text}"):
            SnakeEngine(Rules.classic(), seed=seed)  # type: ignore[arg-type]
    engine = SnakeEngine(Rules.classic(), 3, seed=0)
    with pytest.raises(ValueError, match="one seed per game, got 2 seeds for 3 games"):
        engine.reset(seeds=[1, 2])
    with pytest.raises(ValueError, match=r"between 0 and 2\*\*64 - 1, got -1"):
        engine.reset(seeds=[1, 2, -1])
    with pytest.raises(ValueError, match=r"between 0 and 2\*\*64 - 1, got 18446744073709551616"):
        engine.reset(seeds=[1, 2, 2**64])
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 1\.5"):
        engine.reset(seeds=[1, 2, 1.5])  # type: ignore[list-item]
    engine.reset()
    before = engine.save()
    for shape in [(3, 3), (4, 3), (12,), (3, 4, 1)]:
        with pytest.raises(ValueError, match=r"actions must have shape \(3, 4\)"):
            engine.step(np.zeros(shape, int))
    for action in (0.0, np.inf, np.nan, True):
        with pytest.raises(ValueError, match=r"actions must be integers, got (float64|bool)"):
            engine.step(np.full((3, 4), action))
    with pytest.raises(ValueError, match=r"observation must be one of 'board', 'egocentric', 'single', got 'bord'"):
        engine.observe("bord")
    with pytest.raises(ValueError, match=r"actions must be one of 'absolute', 'relative', got 'rel'"):
        engine.action_masks("rel")
    assert_same_state(engine.state, before)


@pytest.mark.parametrize("rows", [[3], [0, -1], [True, False, True], [0, 100], [0.7], [[0, 1]], 0])
def test_engine_refuses_rows_that_are_none(rows: Any) -> None:
    engine = SnakeEngine(Rules.classic(), 3, seed=0)
    engine.reset()
    before = engine.save()
    calls = [engine.reset, engine.rank_survivors]
    calls += [lambda rows: engine.observe("board", None, rows), lambda rows: engine.action_masks("absolute", None, rows)]
    for call in calls:
        with pytest.raises(ValueError, match="rows must be numbers of games, 0 to 2, got "):
            call(np.array(rows))
    assert_same_state(engine.state, before)


@pytest.mark.parametrize("none", [4, 5, -2, -(2**40), 2**40 + 1])
@pytest.mark.parametrize("invalid_move", ["straight", "dies"])
def test_all_numbers_that_are_no_direction_are_the_same_invalid_move(none: int, invalid_move: Any) -> None:
    rules = Rules.classic(invalid_move=invalid_move)
    one, other = SnakeEngine(rules, 4, seed=0), SnakeEngine(rules, 4, seed=0)
    one.reset()
    other.reset()
    for turn in range(6):
        actions = careful_actions(one, Random(turn))
        actions[turn % 4, turn % 3] = -1
        one.step(actions)
        other.step(np.where(actions < 0, none, actions))
    assert_same_state(one.state, other.state)
    assert (one.state.cause == CAUSES.index("invalid")).any() == (invalid_move == "dies")


@pytest.mark.parametrize("rules", [Rules.classic(num_snakes=3), Rules.classic(width=12), Rules.classic(width=10)])
def test_engine_refuses_games_of_other_rules(rules: Rules) -> None:
    engine, other = SnakeEngine(Rules.classic(), 2, seed=0), SnakeEngine(rules, 2)
    engine.reset()
    before = engine.save()
    with pytest.raises(ValueError, match="same board and number of snakes"):
        engine.load(other.save())
    with pytest.raises(ValueError, match="one row each"):
        engine.load(before, np.array([0]))
    assert_same_state(engine.state, before)


@pytest.mark.slow  # each type is compiled
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_actions_of_any_integer_type(dtype: Any) -> None:
    one, other = SnakeEngine(Rules.classic(), 4, seed=0), SnakeEngine(Rules.classic(), 4, seed=0)
    one.reset()
    other.reset()
    for turn in range(3):
        actions = careful_actions(one, Random(turn))
        one.step(actions)
        other.step(actions.astype(dtype))
    assert_same_state(one.state, other.state)


def test_rewards_are_written_where_the_caller_says() -> None:
    engine = SnakeEngine(Rules.classic(), 2, seed=0)
    engine.reset()
    engine.step(np.zeros((2, 4), int))
    out = np.full((2, 4), 9, np.float32)
    assert engine.rewards(RewardWeights(step=1.0), out) is out
    np.testing.assert_array_equal(out, engine.rewards(RewardWeights(step=1.0)))
    views = np.full((2, 4, 7, 11, 11), 9, np.uint8)
    assert engine.observe("board", views) is views
    np.testing.assert_array_equal(views, engine.observe("board"))
    masks = np.full((2, 4, 3), 9, np.int8)
    assert engine.action_masks("relative", masks, np.array([1])) is masks
    assert (masks[0] == 9).all()
    np.testing.assert_array_equal(masks[1], engine.action_masks("relative")[1])


@given(random_rules(max_side=6), seeds)
@settings(max_examples=15)
def test_a_turn_is_the_four_calls_in_one(rules: Rules, seed: int) -> None:
    one, other = SnakeEngine(rules, 3, seed=seed), SnakeEngine(rules, 3, seed=seed)
    one.reset()
    other.reset()
    random = Random(seed)
    for turn in range(8):
        name, action_set = random.choice(["board", "egocentric", "single"]), random.choice(["absolute", "relative"])
        actions = careful_actions(one, random)
        views, masks, rewards = one.observe(name), one.action_masks(action_set), one.rewards(WEIGHTS)
        one.turn(actions, name, action_set, WEIGHTS, views, masks, rewards)
        other_views = other.observe(name)
        other.step(actions)
        other.observe(name, other_views)
        assert_same_state(one.state, other.state)
        np.testing.assert_array_equal(views, other_views, f"turn {turn}")
        np.testing.assert_array_equal(masks, other.action_masks(action_set))
        np.testing.assert_array_equal(rewards, other.rewards(WEIGHTS))


def buffers(games: int) -> dict[str, np.ndarray]:
    """Arrays for the `board` encoding, absolute actions and rewards of the classic game."""
    shapes = {"views": ((7, 11, 11), np.uint8), "masks": ((4,), np.int8), "rewards": ((), np.float32)}
    return {name: np.zeros((games, 4, *shape), dtype) for name, (shape, dtype) in shapes.items()}


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("name", ["views", "masks", "rewards"])
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array[:1],
        lambda array: array[:, :3].copy(),
        lambda array: array.astype(np.float64),
        lambda array: np.repeat(array, 2, axis=0)[::2],
        lambda array: read_only(array.copy()),
        lambda array: array.tolist(),
    ],
)
def test_buffers_that_a_kernel_would_write_beyond_are_refused(name: str, change: Any) -> None:
    engine, weights = SnakeEngine(Rules.classic(), 2, seed=1), RewardWeights()
    engine.reset()
    calls = {
        "views": lambda out: engine.observe("board", out),
        "masks": lambda out: engine.action_masks("absolute", out),
        "rewards": lambda out: engine.rewards(weights, out),
    }
    good = buffers(2)
    wrong = change(good[name])
    with pytest.raises(ValueError, match="out must be a C-contiguous writable array of shape"):
        calls[name](wrong)
    before = engine.save()
    engine.turn(np.zeros((2, 4), int), "board", "absolute", weights, **good)
    engine.load(before)
    for _ in range(2):  # what was refused once is not taken for checked
        with pytest.raises(ValueError, match=f"{name} must be a C-contiguous writable array of shape"):
            engine.turn(np.zeros((2, 4), int), "board", "absolute", weights, **{**good, name: wrong})
    assert_same_state(engine.state, before)


def test_a_turn_refuses_what_it_does_not_know() -> None:
    engine, good = SnakeEngine(Rules.classic(), 2, seed=1), buffers(2)
    engine.reset()
    engine.turn(np.zeros((2, 4), int), "board", "absolute", RewardWeights(), **good)
    for arguments, text in (
        (("bord", "absolute", RewardWeights()), "observation must be one of"),
        (("board", "absolut", RewardWeights()), "actions must be one of"),
        (("board", "absolute", "shaped"), "rewards must be RewardWeights or a function, got str"),
        (("single", "absolute", RewardWeights()), "views must be"),
        (("board", "relative", RewardWeights()), "masks must be"),
    ):
        with pytest.raises(ValueError, match=text):
            engine.turn(np.zeros((2, 4), int), *arguments, **good)
    with pytest.raises(ValueError, match="rewards must be RewardWeights or a function, got str"):
        engine.rewards("shaped")  # type: ignore[arg-type]


def test_a_game_of_a_batch_takes_buffers_of_one_game() -> None:
    engine, weights, good = SnakeEngine(Rules.classic(), 2, seed=1), RewardWeights(), buffers(2)
    engine.reset()
    engine.turn(np.zeros((2, 4), int), "board", "absolute", weights, **good)
    one = engine.game(0)
    with pytest.raises(ValueError, match="views must be"):
        one.turn(np.zeros((1, 4), int), "board", "absolute", weights, **good)
    one.turn(np.zeros((1, 4), int), "board", "absolute", weights, **buffers(1))
