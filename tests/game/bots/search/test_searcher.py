"""The searcher: positions with one right move by each set of rules, budgets, determinism, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from snake_pz.bots import make_bot
from snake_pz.bots.search.alphabeta import EVALUATIONS, ITERATION, MOVED, VALUE, Tree, begin, deepen
from snake_pz.bots.search.area import Board
from snake_pz.bots.search.searcher import Searcher
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.rule_codes import rule_codes
from snake_pz.core.state import Position, SnakeState
from snake_pz.play.local_match import LocalMatch
from snake_pz.players import SeatedPlayer, States
from snake_pz.presets import preset
from snake_pz.rules import Rules

UP, RIGHT, DOWN, LEFT = range(4)
ALL = np.ones((1, 4), np.int8)
WITH_FOOD = ["classic", "battlesnake", "battlesnake:wrapped", "battlesnake:royale", "hungry_geese"]
EVERY = [*WITH_FOOD, "battlesnake:constrictor"]


def rules_of(name: str, width: int = 7, height: int = 7, **changes: Any) -> Rules:
    """A preset for a duel on a small board."""
    return preset(name, width=width, height=height, num_snakes=2, **changes)


def move(rules: Rules, position: Position, budget: str = "500") -> int:
    """The move that the searcher makes for the first snake."""
    state = SnakeState.from_positions(rules, [position])
    (found,) = make_bot(f"searcher:{budget}", rules).act(States(state, np.array([0]), np.array([0])))
    return int(found)


def cells(text: str) -> list[tuple[int, int]]:
    """Cells written xy."""
    return [(int(cell[0]), int(cell[1])) for cell in text.split()]


@pytest.mark.parametrize("name", EVERY)
def test_it_does_not_enter_a_pocket(name: str) -> None:
    """Right of the head is a pocket of two cells, shut by the own body; left of it is the rest."""
    own = cells("33 34 35 45 55 54 53 52 42 32 22")
    position = Position(bodies=[own, cells("06 05 04")], food=cells("44 43"), headings=[UP, UP])
    assert move(rules_of(name), position) == LEFT


CORNERED = Position(bodies=[cells("13 12 22 32 33"), cells("02 01 00 10")])
"""The second snake can only move down, to a cell that the first may enter too."""

CORNERED_ACROSS_THE_SEAM = Position(bodies=[cells("13 12 22 32 42 43"), cells("02 01 61 62 63")])


@pytest.mark.parametrize(
    "name", ["classic", "battlesnake", "battlesnake:royale", "battlesnake:wrapped", "battlesnake:constrictor"]
)
def test_the_longer_one_takes_a_head_on(name: str) -> None:
    position = CORNERED_ACROSS_THE_SEAM if name == "battlesnake:wrapped" else CORNERED
    assert move(rules_of(name), position) == LEFT


@pytest.mark.parametrize("name", EVERY)
def test_it_takes_no_head_on_in_which_it_dies(name: str) -> None:
    """The one that is no longer leaves it, by the same rules; and even the longer one where all die."""
    position = CORNERED if rules_of(name).edge == "wall" else CORNERED_ACROSS_THE_SEAM
    own, other = position.bodies
    assert move(rules_of(name, head_to_head="all_die"), position) != LEFT
    assert move(rules_of(name), position._replace(bodies=[own[: len(other)], other])) != LEFT


@pytest.mark.parametrize("name", ["classic", "battlesnake", "battlesnake:royale"])
def test_it_follows_its_tail_while_it_is_shut_in(name: str) -> None:
    """Up is a dead end of one cell; turning round on four cells lasts until the other snake has left."""
    around = cells("05 04 03 13 23 22 21 20 10 10 10 10")
    position = Position(bodies=[cells("01 02 12 11"), around], headings=[UP, DOWN])
    assert move(rules_of(name), position) == RIGHT


@pytest.mark.parametrize("name", ["battlesnake:wrapped", "hungry_geese"])
def test_it_follows_its_tail_while_another_lies_all_around(name: str) -> None:
    """The same without walls: the dead end above leads over the seam into the other snake, which lies all around."""
    around = cells("06 16 26 20 30 31 32 33 23 13 03 02 01 00 00 00 00 00")
    position = Position(bodies=[cells("11 12 22 21"), around], headings=[UP, LEFT])
    assert move(rules_of(name), position) == RIGHT


@pytest.mark.parametrize("health", [3, 4])
@pytest.mark.parametrize("name", ["classic", "battlesnake", "battlesnake:wrapped", "battlesnake:royale"])
def test_it_eats_before_it_starves(name: str, health: int) -> None:
    position = Position(
        bodies=[cells("33 32 31"), cells("66 65 64")], food=cells("36"), health=[health, 90], headings=[DOWN, DOWN]
    )
    assert move(rules_of(name), position) == DOWN


def test_a_goose_eats_before_it_loses_its_last_segment() -> None:
    position = Position(bodies=[cells("33"), cells("60 61")], food=cells("35"), headings=[LEFT, UP], turn=37)
    assert move(rules_of("hungry_geese"), position) == DOWN


@pytest.mark.parametrize(("health", "right"), [(40, DOWN), (12, None)])
@pytest.mark.parametrize("name", ["battlesnake", "battlesnake:royale", "battlesnake:wrapped"])
def test_it_crosses_a_hazard_only_if_it_lives(name: str, health: int, right: int | None) -> None:
    """Food lies behind a row of hazards. With little health crossing is death."""
    rules = rules_of(name, hazard_damage=14)
    hazards = [(x, 4) for x in range(7)]
    position = Position(
        bodies=[cells("33 32 31"), cells("00 01 02")],
        food=cells("35"),
        health=[health, 90],
        hazards=hazards,
        headings=[DOWN, UP],
    )
    if right is None:
        assert move(rules, position) != DOWN
    else:
        assert move(rules, position) == right


@pytest.mark.parametrize("name", EVERY)
def test_the_only_move_is_found_without_a_search(name: str) -> None:
    rules = rules_of(name)
    position = Position(bodies=[cells("00 10 20 30"), cells("66 65 64")], headings=[LEFT, DOWN])
    if rules.edge == "wall":
        assert move(rules, position, "1") == DOWN


def seats(state: SnakeState) -> States:
    return States(state, *np.nonzero(state.alive))


def midgame(rules: Rules, turns: int, games: int = 6) -> SnakeEngine:
    engine, bot = SnakeEngine(rules, games, seed=1), make_bot("searcher:50", rules)
    engine.reset()
    for _ in range(turns):
        actions = np.zeros(engine.state.alive.shape, np.int8)
        seen = seats(engine.state)
        actions[seen.games, seen.seats] = bot.act(seen)
        engine.step(actions)
    return engine


def test_a_batch_equals_its_rows_and_a_seed_changes_nothing() -> None:
    engine = midgame(Rules.classic(), 12)
    seen, bot = seats(engine.state), make_bot("searcher:300", engine.rules)
    before = engine.save()
    together = bot.act(seen)
    bot.seed(3)
    single = [bot.act(States(seen.state, seen.games[k : k + 1], seen.seats[k : k + 1]))[0] for k in range(len(seen.games))]
    assert together.tolist() == single
    for array, old in zip(engine.state.arrays(), before.arrays(), strict=True):
        np.testing.assert_array_equal(array, old, "it only looks")


def test_two_slices_of_a_search_equal_one_search() -> None:
    """A budget of time pauses the search now and then, which must not change what it finds."""
    engine = midgame(Rules.battlesnake(), 15, 3)
    codes, board = rule_codes(engine.rules), Board.of(engine.rules)
    whole, sliced = Tree.empty(engine.state, board), Tree.empty(engine.state, board)
    for game in range(3):
        snake = int(np.flatnonzero(engine.state.alive[game])[0])
        begin(whole, engine.state, codes, board, game, snake, ALL, 0)
        deepen(whole, codes, board, 3000)
        begin(sliced, engine.state, codes, board, game, snake, ALL, 0)
        for spent in range(100, 3001, 100):
            deepen(sliced, codes, board, spent)
        for register in (MOVED, VALUE, EVALUATIONS):
            assert whole.registers[register] == sliced.registers[register]


def test_the_least_budget_looks_one_turn_ahead() -> None:
    engine = midgame(Rules.classic(), 20, 3)
    codes, board = rule_codes(engine.rules), Board.of(engine.rules)
    tree = Tree.empty(engine.state, board)
    for game in range(3):
        begin(tree, engine.state, codes, board, game, int(np.flatnonzero(engine.state.alive[game])[0]), ALL, 0)
        assert deepen(tree, codes, board, 1) or tree.registers[ITERATION] == 2


def test_a_budget_in_milliseconds_is_kept_roughly() -> None:
    engine = midgame(Rules.classic(), 5, 2)
    seen = seats(engine.state)
    assert set(make_bot("searcher:0.5ms", engine.rules).act(seen).tolist()) <= {UP, RIGHT, DOWN, LEFT}


def test_a_limit_for_moves_is_the_budget_of_a_searcher_without_one() -> None:
    free, given = Searcher("searcher", Rules()), Searcher("searcher:500", Rules())
    for bot in (free, given):
        bot.limit_move_time(0.005)
    assert free.budget == (0, 5)
    assert given.budget == (500, 0)


@pytest.mark.parametrize("name", EVERY)
def test_no_move_that_the_mask_forbids(name: str) -> None:
    rules = preset(name)
    bot = make_bot("searcher:100", rules)
    match = LocalMatch(rules, [bot] * rules.num_snakes)
    turns = 0
    for seed in range(3):
        match.start(seed)
        while not match.engine.state.over[0] and match.engine.state.turn[0] < 150:
            masks = match.engine.action_masks("absolute")[0]
            match.decide(range(rules.num_snakes))
            for snake in np.flatnonzero(match.engine.state.alive[0]):
                assert masks[snake, match._actions[0, snake]] == 1
            match.turn()
            turns += 1
    assert turns > 40


def test_dead_snakes_may_be_asked() -> None:
    rules = rules_of("classic")
    state = SnakeState.from_positions(rules, [Position(bodies=[cells("33 32"), []])])
    assert make_bot("searcher", rules).act(States(state, np.array([0, 0]), np.array([0, 1])))[1] == 0


@pytest.mark.parametrize("budget", ["", "0", "-3", "2s", "1.5", "0ms", "1e3"])
def test_budgets_that_are_none(budget: str) -> None:
    with pytest.raises(ValueError, match="'searcher:4600' or 'searcher:2ms'"):
        make_bot(f"searcher:{budget}", Rules())


def test_other_bots_take_no_budget() -> None:
    with pytest.raises(ValueError, match="only the searcher takes a budget, got 'greedy:5': write 'greedy'"):
        make_bot("greedy:5", Rules())


@pytest.mark.parametrize(("width", "height"), [(64, 5), (26, 25)])
def test_boards_that_are_too_large(width: int, height: int) -> None:
    with pytest.raises(ValueError, match=f"at most 640 cells and 63 columns, got {width}x{height}"):
        make_bot("searcher", Rules(width=width, height=height))


NONE = np.zeros(0, np.intp)


@pytest.mark.parametrize(
    ("seen", "fault"),
    [
        (np.zeros((1, 7, 11, 11), np.uint8), "sees the state of its games, not observations: .* got ndarray"),
        (States("state", NONE, NONE), "cannot see this state: expected a SnakeState, .* got str"),
        (States(SnakeEngine(Rules(width=7, height=7)).state, NONE, NONE), "cannot see this state: .* same board"),
    ],
)
def test_what_it_cannot_see(seen: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        make_bot("searcher", Rules()).act(seen)


def test_a_state_that_cannot_be() -> None:
    engine = midgame(Rules.classic(), 1, 1)
    engine.state.body[0, 0, engine.state.head[0, 0]] = 500
    with pytest.raises(ValueError, match=r"cannot see this state: .*body must be between -1 and 120, got 500"):
        make_bot("searcher", Rules()).act(seats(engine.state))


def test_a_copy_is_small_and_plays_alike() -> None:
    engine = midgame(Rules.classic(), 8, 2)
    bot, seen = make_bot("searcher:100", engine.rules), seats(engine.state)
    moves = bot.act(seen)
    assert len(pickle.dumps(bot)) < 100_000
    assert pickle.loads(pickle.dumps(bot)).act(seen).tolist() == moves.tolist()


def test_masks_that_are_none() -> None:
    engine = midgame(Rules.classic(), 1, 1)
    with pytest.raises(ValueError, match=r"needs masks \(4, 4\)"):
        make_bot("searcher", Rules()).act(seats(engine.state), None, ALL)


def test_rows_that_are_not_there() -> None:
    state = SnakeEngine(Rules(), 2).state
    with pytest.raises(ValueError, match="seats must have a whole number from 0 to 3"):
        make_bot("searcher", Rules()).act(States(state, np.array([0]), np.array([4])))
    with pytest.raises(ValueError, match="games must have a whole number from 0 to 1"):
        make_bot("searcher", Rules()).act(States(state, np.array([-1]), np.array([0])))


def test_games_that_do_not_show_their_state() -> None:
    class Games:
        seats = 4

        def view(self, observation_space: Any, action_space: Any) -> Any:
            raise AssertionError

    with pytest.raises(ValueError, match="'searcher' cannot play in these games: it sees whole states"):
        SeatedPlayer(make_bot("searcher", Rules()), Games())


def test_it_has_a_name_and_spaces() -> None:
    bot = make_bot("searcher:2.5ms", Rules())
    assert isinstance(bot, Searcher)
    assert bot.name == "searcher:2.5ms"
    assert bot.budget == (0, 2.5)
    assert make_bot("searcher", Rules()).budget == (500, 0)  # type: ignore[union-attr]
    assert bot.observation_space.shape == (7, 11, 11)
    assert bot.sees_states
