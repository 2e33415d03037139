"""Named corner cases of a turn, to be read; `test_dynamics` plays them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snake_pz.core.state import Position
from snake_pz.rules import Rules
from tests.support.oracle import Cell, Game
from tests.support.recorded_games import assert_same_turn, check_consistent, engine_at, read_games


class Case(NamedTuple):
    """One turn on a 7x7 board, without hunger unless healths are given. A cell is written xy, a snake head first."""

    name: str
    snakes: str  # "32 22 12 | 44 45"
    moves: str  # one of URDL for each snake, X is none of them
    causes: str  # what each dies of, "-" for who lives
    killers: str = ""  # number of the responsible snake, "-" for nobody; empty: nobody at all
    food: str = ""
    healths: str = ""
    hazards: str = ""
    headings: str = ""  # one of URDL for each snake, - before its first move; empty: from the neck to the head
    after: str = ""  # the snakes after the turn, also the dead; empty: not compared
    rules: dict[str, Any] = {}  # noqa: RUF012  # a NamedTuple's default, never written to


ALL_DIE, ALL_BLOCK, LATE = {"head_to_head": "all_die"}, {"dying_block": "all"}, {"growth": "next_turn"}
WRAP, DIES, MOVES = {"edge": "wrap"}, {"reverse": "dies"}, {"reverse": "is_a_move"}
BURNS, HEALS = {"hazard_damage": 14}, {"hazard_damage": -2}
NAMES_ONE, AT_ONCE, FIRST = {"tied_killer": "lowest_index"}, {"own_body": "at_once"}, {"contested_food": "lowest_index"}
SHRINKS, EVERY_TURN = {"hunger": "segment", "hunger_every": 1}, {"growth": "every_turn"}
INVALID_DIES = {"invalid_move": "dies"}

CASES = [
    Case("a step", "32 22 12", "U", "-", after="31 32 22"),
    Case("own tail leaves", "22 21 11 12", "L", "-", after="12 22 21 11"),
    Case("own tail that ate last turn", "22 21 11 12 12", "L", "self", "0"),
    Case("own body", "22 21 11 12 13", "L", "self", "0"),
    Case("own body of one that eats", "22 21 11 12 13", "L", "self", "0", food="12", after="12 22 21 11 12 13"),
    Case("the tail of another leaves", "23 24 25 | 42 32 22", "UR", "- -"),
    Case("the tail of one that eats now", "23 24 25 | 42 32 22", "UR", "body -", "1 -", food="52"),
    Case("the tail of one that eats now, late growth", "23 24 25 | 42 32 22", "UR", "- -", food="52", rules=LATE),
    Case("the tail of one that ate last turn", "23 24 25 | 42 32 22 22", "UR", "body -", "1 -", rules=LATE),
    Case(
        "the tail of one that eats now and dies of it",
        "23 24 25 | 42 32 22 | 62 63 64",
        "URL",
        "body head head",
        "1 2 1",
        food="52",
    ),
    Case("growth", "32 22 12", "R", "-", food="42", after="42 32 22 12"),
    Case("late growth", "32 22 12", "R", "-", food="42", after="42 32 22 22", rules=LATE),
    Case("late growth the turn after", "32 22 12 12", "R", "-", after="42 32 22 12", rules=LATE),
    Case("food listed twice grows once", "32 22 12", "R", "-", food="42 42", after="42 32 22 12"),
    Case("food listed twice, late growth", "32 22 12", "R", "-", food="42 42", after="42 32 22 22 22", rules=LATE),
    Case("a snake of one that eats, late growth", "32", "R", "self", "0", food="42", after="42 42", rules=LATE),
    Case("a snake of one that eats", "32", "R", "-", food="42", after="42 32"),
    Case("wall", "62 52 42", "R", "wall"),
    Case("across the seam", "62 52 42", "R", "-", after="02 62 52", rules=WRAP),
    Case("food across the seam", "20 21 22", "U", "-", food="26", after="26 20 21 22", rules=WRAP),
    Case("head-on, equal", "22 12 02 | 42 52 62", "RL", "head head", "1 0"),
    Case("head-on, equal, nobody survives", "22 12 02 | 42 52 62", "RL", "head head", "1 0", rules=ALL_DIE),
    Case("head-on, unequal", "22 12 02 | 42 52 62 63", "RL", "head -", "1 -"),
    Case("head-on, unequal, nobody survives", "22 12 02 | 42 52 62 63", "RL", "head head", "1 0", rules=ALL_DIE),
    Case("head-on, three-way, one longest", "22 12 02 | 42 52 62 | 33 34 35 36", "RLU", "head head -", "2 2 -"),
    Case("head-on, three-way, two longest", "22 12 02 | 42 52 62 63 | 33 34 35 36", "RLU", "head head head", "- 2 1"),
    Case("head-on, three-way, equal", "22 12 02 | 42 52 62 | 33 34 35", "RLU", "head head head", "- - -"),
    Case("head-on, three-way, different lengths", "22 12 | 42 52 62 | 33 34 35 36", "RLU", "head head -", "2 2 -"),
    Case(
        "head-on, three-way, nobody survives", "22 12 | 42 52 62 | 33 34 35 36", "RLU", "head head head", "2 2 1", rules=ALL_DIE
    ),
    Case(
        "two heads on one food, equal",
        "22 12 02 | 42 52 62",
        "RL",
        "head head",
        "1 0",
        food="32",
        after="32 22 12 02 | 32 42 52 62",
    ),
    Case("two heads on one food, unequal", "22 12 02 | 42 52 62 63", "RL", "head -", "1 -", food="32"),
    Case(
        "two heads on one food, late growth",
        "22 12 | 42 52 62",
        "RL",
        "head -",
        "1 -",
        food="32",
        after="32 22 22 | 32 42 52 52",
        rules=LATE,
    ),
    Case("swapping heads at length 1", "22 | 32", "RL", "- -", after="32 | 22"),
    Case("swapping heads at length 2", "22 12 | 32 42", "RL", "body body", "1 0"),
    Case("swapping heads at length 3", "22 12 02 | 32 42 52", "RL", "body body", "1 0"),
    Case("swapping heads at lengths 1 and 2", "22 | 32 42", "RL", "body -", "1 -"),
    Case("swapping heads at length 2, unequal", "22 12 | 32 42 52", "RL", "body body", "1 0"),
    Case("following a head of length 1", "22 12 | 32", "RU", "- -"),
    Case("following a head of length 2", "22 12 | 32 33", "RU", "body -", "1 -"),
    Case("a body and a head on one cell", "23 24 25 26 | 32 22 12 02 | 21 20", "URD", "body - body", "1 - 1"),
    Case("in two equally long bodies on one cell", "12 02 03 | 42 32 22 21 | 21 22 23 24", "RRU", "body - -", "- - -"),
    Case("in two bodies on one cell", "12 02 03 | 42 32 22 21 | 21 22 23 24 25", "RRU", "body - -", "2 - -"),
    Case("into one that dies at a wall", "23 24 25 | 02 12 22 32", "UL", "- wall"),
    Case("into one that dies at a wall and blocks", "23 24 25 | 02 12 22 32", "UL", "body wall", "1 -", rules=ALL_BLOCK),
    Case("into one that starves", "23 24 25 | 42 32 22 12", "UR", "- starvation", healths="9 1"),
    Case(
        "into one that starves and blocks",
        "23 24 25 | 42 32 22 12",
        "UR",
        "body starvation",
        "1 -",
        healths="9 1",
        rules=ALL_BLOCK,
    ),
    Case(
        "into one that dies of a hazard", "23 24 25 | 42 32 22 12", "UR", "- hazard", hazards="52", healths="9 15", rules=BURNS
    ),
    Case("into one that dies of a collision", "23 24 25 | 32 22 12 02 | 43 42 41", "URD", "body body -", "1 2 -"),
    Case("into one that dies of itself", "15 16 26 | 22 21 11 12 13 14", "UL", "- self", "- 1"),
    Case("into the body of one that dies of itself", "04 05 06 | 22 21 11 12 13 14 24", "RL", "body self", "1 1"),
    Case("into one that dies head-on", "23 24 25 | 32 22 12 | 52 53 54", "URL", "body head head", "1 2 1"),
    Case("head-on with one that starves", "22 12 02 | 42 52 62", "RL", "- starvation", healths="9 1"),
    Case(
        "head-on with one that starves and blocks",
        "22 12 | 42 52 62",
        "RL",
        "head starvation",
        "1 -",
        healths="9 1",
        rules=ALL_BLOCK,
    ),
    Case("head-on with a shorter one that starves", "22 12 02 | 42 52", "RL", "- starvation", healths="9 1", rules=ALL_BLOCK),
    Case("into one that reverses", "23 24 25 | 42 32 22", "UL", "- reverse", rules=DIES),
    Case("into one that reverses and blocks", "23 24 25 | 42 32 22", "UL", "body reverse", "1 -", rules=DIES | ALL_BLOCK),
    Case("reversing at length 1 goes straight", "32", "L", "-", headings="R", after="42"),
    Case("reversing at length 2 goes straight", "32 22", "L", "-", after="42 32"),
    Case("reversing at length 3 goes straight", "32 22 12", "L", "-", after="42 32 22"),
    Case("reversing goes straight into a wall", "62 52 42", "L", "wall"),
    Case("reversing at length 1 dies", "32", "L", "reverse", headings="R", after="32", rules=DIES),
    Case("reversing at length 2 dies", "32 22", "L", "reverse", after="32 22", rules=DIES),
    Case("reversing at length 3 dies", "32 22 12", "L", "reverse", after="32 22 12", rules=DIES),
    Case("reversing onto food dies and eats nothing", "32", "L", "reverse", headings="R", food="22", after="32", rules=DIES),
    Case("reversing at length 1 is a move", "32", "L", "-", headings="R", after="22", rules=MOVES),
    Case("reversing at length 2 is a move", "32 22", "L", "-", after="22 32", rules=MOVES),
    Case("reversing at length 3 is a move", "32 22 12", "L", "self", "0", after="22 32 22", rules=MOVES),
    Case("reversing at length 2 onto a doubled tail", "32 22 22", "L", "self", "0", rules=MOVES | LATE),
    Case("a turn is no reversal", "32 22 12", "U", "-", after="31 32 22", rules=DIES),
    Case("hunger", "32 22 12", "R", "-", healths="2"),
    Case("starving", "32 22 12", "R", "starvation", healths="1"),
    Case("eating at health 1", "32 22 12", "R", "-", food="42", healths="1"),
    Case("starving at a wall", "62 52 42", "R", "starvation", healths="1"),
    Case("starving in another", "23 24 25 | 42 32 22 12", "UR", "starvation -", healths="1 9"),
    Case("eating at health 1 in another", "23 24 25 | 42 32 22 12", "UR", "body -", "1 -", food="22", healths="1 9"),
    Case("a hazard", "32 22 12", "R", "-", hazards="42", healths="16", rules=BURNS),
    Case("a hazard that kills", "32 22 12", "R", "hazard", hazards="42", healths="15", rules=BURNS),
    Case("a hazard listed twice", "32 22 12", "R", "hazard", hazards="42 42", healths="29", rules=BURNS),
    Case("a hazard listed twice, enough health", "32 22 12", "R", "-", hazards="42 42", healths="30", rules=BURNS),
    Case("a hazard to one that starves", "32 22 12", "R", "hazard", hazards="42", healths="1", rules=BURNS),
    Case("a hazard with food", "32 22 12", "R", "-", hazards="42", healths="1", food="42", rules=BURNS),
    Case("a hazard under the body", "32 22 12", "R", "-", hazards="32 22 12", healths="2", rules=BURNS),
    Case("a hazard that heals", "32 22 12", "R", "-", hazards="42", healths="1", rules=HEALS),
    Case("a hazard that is none", "32 22 12", "R", "-", hazards="42", healths="2"),
    Case("starving on a hazard that is none", "32 22 12", "R", "hazard", hazards="42", healths="1"),
    Case("a hazard without hunger", "32 22 12", "R", "hazard", hazards="42", healths="14", rules=BURNS | {"hunger": "none"}),
    Case("without hunger", "32 22 12", "R", "-", healths="1", rules={"hunger": "none"}),
    Case("at health 0 without hunger", "32 22 12", "R", "-", healths="0", rules={"hunger": "none"}),
    Case("at health 0 where hazards are", "32 22 12", "R", "starvation", healths="0", rules={"hunger": "none"} | BURNS),
    Case("a reversal is not burnt", "32 22 12", "L", "reverse", hazards="32 22", healths="2", rules=BURNS | DIES),
    Case("curled up, up", "33 33 33", "U", "-", after="32 33 33", rules=DIES),
    Case("curled up, down", "33 33 33", "D", "-", after="34 33 33", rules=DIES),
    Case("curled up, headed", "33 33 33", "D", "reverse", headings="U", after="33 33 33", rules=DIES),
    Case("no direction goes straight", "32 22 12", "X", "-", after="42 32 22"),
    Case("no direction goes straight across the seam", "02 62 52", "X", "-", after="12 02 62", rules=WRAP),
    Case("no direction goes straight up across the seam", "26 20 21", "X", "-", after="25 26 20", rules=WRAP),
    Case("no direction goes straight into a wall", "62 52", "X", "wall"),
    Case("no direction, curled up", "33 33 33", "X", "-", after="32 33 33"),
    Case("no direction at length 1", "32", "X", "-", headings="R", after="31"),
    Case("no direction at length 1, headed down", "32", "X", "-", headings="D", after="33"),
    Case("no direction at length 1, headed down, up is death", "32", "X", "reverse", headings="D", after="32", rules=DIES),
    Case("no direction dies", "32 22 12", "X", "invalid", after="32 22 12", rules=INVALID_DIES),
    Case("no direction dies and does not block", "23 24 25 | 42 32 22", "UX", "- invalid", rules=INVALID_DIES),
    Case("no direction dies and blocks", "23 24 25 | 42 32 22", "UX", "body invalid", "1 -", rules=INVALID_DIES | ALL_BLOCK),
    Case("the longest allowed eats", "32 22 12", "R", "-", food="42", after="42 32 22", rules={"max_length": 3}),
    Case("longer than allowed", "32 22 12 02 03", "R", "-", after="42 32", rules={"max_length": 2}),
    Case(
        "the longest allowed eats, late growth", "32 22", "R", "-", food="42", after="42 32 32", rules=LATE | {"max_length": 2}
    ),
    Case("longer than allowed by its last meal", "32 22 22", "U", "-", after="31 32", rules=LATE | {"max_length": 2}),
    Case(
        "the longest allowed eats where its tail is",
        "22 21 11 12",
        "L",
        "-",
        food="12",
        after="12 22 21 11",
        rules={"max_length": 4},
    ),
    Case(
        "the longest allowed eats where its tail is, at once",
        "22 21 11 12",
        "L",
        "self",
        "0",
        food="12",
        after="12 22 21 11",
        rules={"max_length": 4} | AT_ONCE,
    ),
    Case("own tail leaves, at once", "22 21 11 12", "L", "-", rules=AT_ONCE),
    Case("own body, at once", "22 21 11 12 13", "L", "self", "0", after="12 22 21 11 12", rules=AT_ONCE),
    Case("own body at a wall, at once", "62 52 42", "R", "wall", rules=AT_ONCE),
    Case("into one that hits itself at once", "04 05 06 | 22 21 11 12 13 14 24", "RL", "- self", "- 1", rules=AT_ONCE),
    Case(
        "into one that hits itself at once and blocks",
        "04 05 06 | 22 21 11 12 13 14 24",
        "RL",
        "body self",
        "1 1",
        rules=AT_ONCE | ALL_BLOCK,
    ),
    Case("head-on with one that hits itself at once", "02 03 | 22 21 11 12 13", "RL", "- self", "- 1", rules=AT_ONCE),
    Case(
        "eating in one's own body at once",
        "22 21 11 12 13",
        "L",
        "self",
        "0",
        food="12",
        after="12 22 21 11 12 13",
        rules=AT_ONCE,
    ),
    Case("hunger takes the tail", "32 22 12", "R", "-", after="42 32", rules=SHRINKS),
    Case("hunger on another turn", "32 22 12", "R", "-", after="42 32 22", rules=SHRINKS | {"hunger_every": 2}),
    Case("hunger at length 1", "32", "R", "starvation", after="", rules=SHRINKS),
    Case("hunger at length 1 at a wall", "62", "R", "starvation", rules=SHRINKS),
    Case("hunger at a wall", "62 52", "R", "wall", rules=SHRINKS),
    Case("hunger at length 1 with food", "32", "R", "-", food="42", after="42", rules=SHRINKS),
    Case("hunger at length 1 with food, late growth", "32", "R", "starvation", food="42", rules=SHRINKS | LATE),
    Case("hunger and food", "32 22 12", "R", "-", food="42", after="42 32 22", rules=SHRINKS),
    Case("hunger of one that reverses", "32 22 12", "L", "reverse", after="32 22 12", rules=SHRINKS | DIES),
    Case("hunger frees a cell", "23 24 25 | 42 32 22 12", "UR", "- -", after="22 23 | 52 42 32", rules=SHRINKS),
    Case("hunger frees an own cell", "22 21 11 12 13", "L", "-", after="12 22 21 11", rules=SHRINKS),
    Case(
        "hunger frees no own cell at once", "22 21 11 12 13", "L", "self", "0", after="12 22 21 11 12", rules=SHRINKS | AT_ONCE
    ),
    Case("onto one that hunger left nothing", "12 02 03 | 42", "RL", "- -", rules=SHRINKS | {"hunger_every": 2}),
    Case(
        "head-on with one that hunger left nothing", "22 12 02 | 42", "RL", "- starvation", rules=SHRINKS | ALL_DIE | ALL_BLOCK
    ),
    Case(
        "head-on, three-way, two longest, the first named",
        "22 12 02 | 42 52 62 63 | 33 34 35 36",
        "RLU",
        "head head head",
        "1 2 1",
        rules=NAMES_ONE,
    ),
    Case(
        "head-on, three-way, equal, the first named",
        "22 12 02 | 42 52 62 | 33 34 35",
        "RLU",
        "head head head",
        "1 0 0",
        rules=NAMES_ONE,
    ),
    Case(
        "in two equally long bodies on one cell, the first named",
        "42 32 22 21 | 12 02 03 | 21 22 23 24",
        "RRU",
        "- body -",
        "- 0 -",
        rules=NAMES_ONE,
    ),
    Case(
        "in two bodies on one cell, the longest named",
        "42 32 22 21 | 12 02 03 | 21 22 23 24 25",
        "RRU",
        "- body -",
        "- 2 -",
        rules=NAMES_ONE,
    ),
    Case("contested food", "22 12 | 42 52", "RL", "- head", "- 0", food="32", after="32 22 12 | 32 42", rules=FIRST),
    Case(
        "contested food, late growth",
        "22 12 | 42 52",
        "RL",
        "- head",
        "- 0",
        food="32",
        after="32 22 22 | 32 42",
        rules=FIRST | LATE,
    ),
    Case("contested food, nobody survives", "22 12 | 42 52", "RL", "head head", "1 0", food="32", rules=FIRST | ALL_DIE),
    Case(
        "contested food listed twice",
        "22 12 | 42 52",
        "RL",
        "- head",
        "- 0",
        food="32 32",
        after="32 22 12 | 32 42",
        rules=FIRST,
    ),
    Case("contested food of one that is removed", "22 12 | 33 43", "LU", "reverse -", food="32 21", rules=FIRST | DIES),
    Case(
        "contested food of one that hits itself at once",
        "22 21 11 12 13 | 02 01",
        "LR",
        "self -",
        "0 -",
        food="12",
        after="12 22 21 11 12 13 | 12 02",
        rules=FIRST | AT_ONCE,
    ),
    Case("contested food at health 1", "22 12 | 42 52", "RL", "- starvation", food="32", healths="1 1", rules=FIRST),
    Case("uncontested food at health 1", "22 12 | 42 52", "RU", "- -", food="32", healths="1 9", rules=FIRST),
    Case("contested food on a hazard", "22 12", "R", "-", food="32", hazards="32", healths="1", rules=FIRST | BURNS),
    Case("growth on every turn", "32 22 12", "R", "-", after="42 32 22 22", rules=EVERY_TURN),
    Case("growth on every turn, the tail doubled", "32 22 12 12", "R", "-", after="42 32 22 12 12", rules=EVERY_TURN),
    Case("growth on every turn, curled up", "33 33 33", "R", "-", after="43 33 33", rules=EVERY_TURN),
    Case("growth on every turn at length 1", "32", "R", "-", after="42", rules=EVERY_TURN),
    Case("growth on every turn with food", "32 22 12", "R", "-", food="42 55", after="42 32 22 22", rules=EVERY_TURN),
    Case("growth on every turn of one that dies", "62 52 42", "R", "wall", after="72 62 52 52", rules=EVERY_TURN),
    Case("growth on every turn, own tail", "22 21 11 12", "L", "-", after="12 22 21 11 11", rules=EVERY_TURN),
    Case("growth on every turn, own doubled tail", "22 21 11 12 12", "L", "self", "0", rules=EVERY_TURN),
]


def cells(text: str) -> list[Cell]:
    return [(int(cell[0]), int(cell[1])) for cell in text.split()]


def bodies(text: str) -> list[list[Cell]]:
    return [cells(snake) for snake in text.split("|")]


def play(case: Case) -> Game:
    """The game after the turn, in which engine and oracle agree."""
    snakes = bodies(case.snakes)
    fields = {"width": 7, "height": 7, "num_snakes": len(snakes), "food_initial": 0, "food_minimum": 0}
    if not case.healths:
        fields["hunger"] = "none"
    position = Position(
        bodies=snakes,
        food=cells(case.food),
        hazards=cells(case.hazards),
        health=[int(health) for health in case.healths.split()] or None,
        headings=["URDL".find(heading) for heading in case.headings] or None,
    )
    engine = engine_at(Rules(**(fields | case.rules)), [position])
    games = read_games(engine)
    assert_same_turn(engine, games, np.array([["URDL".find(move) for move in case.moves]]))
    check_consistent(engine.state, engine.rules, played=False)
    return games[0]
