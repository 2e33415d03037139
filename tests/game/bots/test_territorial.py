"""The bot `territorial`: what it weighs against what, in positions written out, and how strong it is."""

from __future__ import annotations

import pytest

from adapters.evaluation.evaluate import play_games
from adapters.evaluation.tournament import tournament
from snake_pz.core.state import Cell, Position
from snake_pz.presets import preset
from snake_pz.rules import Rules
from tests.support.bot_positions import DOWN, FAR_AWAY, GOING_UP, LEFT, RIGHT, TWO, UP, choices

HUNGRY = 50


def chosen(*bodies: list[Cell], food: Cell | None = None, health: int = 100, rules: Rules = TWO) -> set[int]:
    """What the first snake may do."""
    full = [rules.max_health] * (len(bodies) - 1)
    return choices("territorial", rules, Position(bodies, food=[food] if food else [], health=[health, *full]))


def up_to(x: int, y: int, length: int = 3) -> list[Cell]:
    """A straight snake whose head there heads up."""
    return [(x, y + k) for k in range(length)]


def test_goes_where_it_reaches_most_cells_before_the_other() -> None:
    assert chosen(up_to(2, 5), up_to(10, 5)) == {RIGHT}
    assert chosen(up_to(8, 5), up_to(0, 5)) == {LEFT}
    assert choices("survivor", TWO, Position([up_to(2, 5), up_to(10, 5)])) == {UP, LEFT, RIGHT}


def test_alone_all_is_its_own() -> None:
    assert chosen(GOING_UP, rules=TWO.replace(num_snakes=1)) == {UP, LEFT, RIGHT}


def test_territory_before_food_unless_hungry() -> None:
    snakes = GOING_UP, up_to(0, 2, 2)
    assert chosen(*snakes, food=(6, 1)) == {LEFT}
    assert chosen(*snakes, food=(6, 1), health=55) == {LEFT}  # level 140 of 255
    assert chosen(*snakes, food=(6, 1), health=54) == {UP}


def test_what_it_needs_to_live_comes_before_territory() -> None:
    snakes = up_to(2, 5), up_to(6, 8, 3)
    assert chosen(*snakes, food=(0, 1), health=19) == {RIGHT}
    assert chosen(*snakes, food=(0, 1), health=18) == {LEFT}  # seven turns to food after a move to the right, ten to spare


def test_a_snake_that_hunger_would_end_comes_to_eat() -> None:
    rules = Rules.hungry_geese(num_snakes=2)

    def moves(*snake: Cell, rules: Rules = rules) -> set[int]:
        return chosen(list(snake), [(5, 3)], food=(2, 0), rules=rules)

    assert moves((2, 3), rules=rules.replace(hunger="none")) == {LEFT}
    assert moves((2, 3)) == {UP}
    assert moves((2, 3), (2, 4)) == {LEFT}
    assert moves((2, 3), (2, 4), rules=rules.replace(hunger_every=5)) == {UP}


def in_front_of_a_hazard(damage: int, *others: Cell, food: Cell, x: int = 2, health: int = 100) -> set[int]:
    """What it does with a hazard on its right, where most cells are to be had."""
    position = Position([up_to(x, 5), list(others)], food=[food], hazards=[(x + 1, 5)], health=[health, 100])
    return choices("territorial", TWO.replace(hazard_damage=damage), position)


def test_goes_round_a_hazard_even_if_that_costs_cells() -> None:
    assert in_front_of_a_hazard(2, *up_to(5, 7), x=1, food=(1, 1)) == {RIGHT}
    assert in_front_of_a_hazard(14, *up_to(5, 7), x=1, food=(1, 1)) == {UP}


def test_crosses_a_hazard_only_with_health_enough_to_reach_food() -> None:
    assert in_front_of_a_hazard(2, *up_to(10, 5), food=(5, 2), health=19) == {RIGHT}  # six steps, ten to spare
    assert in_front_of_a_hazard(2, *up_to(10, 5), food=(5, 2), health=18) == {UP}


def test_who_is_longest_wants_food_more() -> None:
    assert chosen(up_to(2, 5), up_to(6, 8, 2), food=(0, 1), health=HUNGRY) == {LEFT}
    assert chosen(up_to(2, 5), up_to(6, 8, 3), food=(0, 1), health=HUNGRY) == {RIGHT}


def test_food_that_another_reaches_first_is_worth_less() -> None:
    assert chosen(up_to(5, 3, 8), up_to(9, 6), food=(6, 4), health=HUNGRY) == {RIGHT}


def test_who_is_as_long_or_longer_takes_what_both_reach_at_once() -> None:
    assert chosen(GOING_UP, up_to(8, 6, 2)) != chosen(GOING_UP, up_to(8, 6, 4))


def test_only_what_it_reaches_by_that_move_counts() -> None:
    assert chosen(up_to(2, 5), up_to(3, 6), food=(6, 4), health=HUNGRY) == {LEFT}


def test_keeps_as_many_cells_as_it_is_long() -> None:
    # On the right the other snake is first at nearly everything, the food too; on the left is a column of seven.
    rules = TWO.replace(width=7, height=7)
    assert chosen([(1, y) for y in range(6, -1, -1)], [(2, 5), (2, 4), (2, 3)], food=(5, 0), health=50, rules=rules) == {LEFT}


def test_seeks_a_head_on_that_it_wins_even_if_that_costs_cells() -> None:
    assert chosen(GOING_UP, up_to(4, 6, 2), food=(6, 1)) == {LEFT}


def test_caution_comes_before_appetite_on_the_largest_boards() -> None:
    # Its own body halves the board. The food is on the left, where a head-on would kill it; on the right there is none.
    rules = TWO.replace(width=128, height=128, head_to_head="all_die")
    wall = [*up_to(64, 1, 127), *((x, 127) for x in range(65, 95))]
    lid = [(x, 0) for x in range(63, 128)]
    assert chosen(wall, lid, food=(10, 10), health=HUNGRY, rules=rules) == {RIGHT}


@pytest.mark.parametrize("reverse", ["straight", "dies"])
def test_a_snake_of_two_does_not_turn_back(reverse: str) -> None:
    rules = TWO.replace(reverse=reverse)
    snakes = up_to(5, 5, 2), FAR_AWAY
    assert DOWN not in chosen(*snakes, food=(5, 8), health=HUNGRY, rules=rules)
    assert chosen(*snakes, food=(5, 8), health=HUNGRY, rules=rules.replace(reverse="is_a_move")) == {DOWN}


def test_knows_the_edges_of_a_torus_and_of_a_padded_board() -> None:
    torus = TWO.replace(edge="wrap")
    assert chosen([(0, 5), (1, 5), (2, 5)], FAR_AWAY, food=(9, 5), health=HUNGRY, rules=torus) == {LEFT}
    assert chosen([(5, 10), (5, 9), (5, 8)], FAR_AWAY, food=(5, 1), health=HUNGRY, rules=torus) == {DOWN}
    small = TWO.replace(width=5, height=5)
    assert chosen([(4, 2), (3, 2), (2, 2)], up_to(0, 0), food=(4, 4), health=HUNGRY, rules=small) == {DOWN}
    assert chosen([(4, 4), (4, 3), (4, 2)], up_to(0, 0), rules=small) == {LEFT}


@pytest.mark.parametrize(
    "rules",
    [
        *(Rules.battlesnake(mode) for mode in ("standard", "wrapped", "royale", "constrictor", "solo")),
        Rules.hungry_geese(),
        Rules.classic(width=2, height=2, num_snakes=1, start_length=1),
        Rules.classic(start_length=1),
    ],
    ids=["standard", "wrapped", "royale", "constrictor", "solo", "geese", "tiny", "ones"],
)
def test_plays_every_set_of_rules(rules: Rules) -> None:
    n = rules.num_snakes
    played = play_games(["territorial"] + ["random"] * (n - 1), games=200, env_kwargs={"rules": rules})
    alone = play_games(["random"] * n, games=200, env_kwargs={"rules": rules})
    if n > 1:  # what is behind a snake of one the observation does not say: then nobody is safe
        assert played.win_rates[0] > (0.8 if rules.start_length > 1 else 0.4)
    elif rules.width > 2:
        assert played.turns.mean() > 2 * alone.turns.mean()


# ------------------------------------------------------------------------------------------------------------- strength


def test_beats_survivor() -> None:
    assert play_games(["territorial"] + ["survivor"] * 3, games=400).win_rates[0] > 0.45  # 0.54 over 4,000; 0.25 is chance


@pytest.mark.slow
def test_survivor_does_not_beat_it() -> None:
    assert play_games(["survivor"] + ["territorial"] * 3, games=400).win_rates[0] < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["classic", "battlesnake"])
def test_seldom_starves_in_duels(rules: str) -> None:
    standings = tournament(["territorial", "territorial"], games=200, env_kwargs={"rules": preset(rules, num_snakes=2)})
    starved = [standing.deaths.get("starvation", 0.0) for standing in standings.standings]
    assert sum(starved) / 2 < 0.03  # 0.01 and 0.001 over 2,000 games


@pytest.mark.slow
def test_strength_over_many_games() -> None:
    assert play_games(["territorial"] + ["survivor"] * 3, games=2000).win_rates[0] > 0.5
    assert play_games(["territorial"] + ["greedy"] * 3, games=2000).win_rates[0] > 0.78
    assert play_games(["territorial"] + ["random"] * 3, games=1000).win_rates[0] > 0.99
