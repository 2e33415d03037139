"""Corner cases of the rules as data, with what comes of them by each preset: docs/rules.md shows them, a test plays them.

A cell is written xy, counted from the top left; a snake head first, snakes A, B, C by `|`. `+` at the end of a snake: it ate on
the turn before, so its tail stays now if tails grow on the turn after (with growth on every turn all of them do, always).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snake_pz import Position, Rules, SnakeEngine, SnakeState
from snake_pz.core.state import CAUSES, Cell

PRESETS: dict[str, Rules] = {
    "classic": Rules.classic(),
    "standard": Rules.battlesnake("standard"),
    "royale": Rules.battlesnake("royale"),
    "solo": Rules.battlesnake("solo"),
    "wrapped": Rules.battlesnake("wrapped"),
    "constrictor": Rules.battlesnake("constrictor"),
    "geese": Rules.hungry_geese(),
}
"""By the names of the page's columns."""


class Case(NamedTuple):
    """One turn on a small board, by each preset."""

    section: str
    name: str
    snakes: str  # "32 22 12 | 44 45+"
    moves: str  # one of URDL for each snake
    outcomes: dict[str, str]  # by preset, "battlesnake" for those five, "all" for the rest; "-" where it cannot arise
    food: str = ""
    hazards: str = ""
    health: str = ""  # per snake; empty: full
    headings: str = ""  # one of URDL for each snake; empty: from the second segment to the head
    turn: int = 0  # turns played before
    board: tuple[int, int] = (7, 7)  # width and height
    spawns: bool = False  # whether food appears as by the preset; else none does
    tells: str = ""  # what the outcome tells beyond who lives: lengths, headings, food or ending


LONE = "A lives"
ALL_DIE, LONGER = "A and B die head-on", "A dies head-on with B; B lives"

CASES = [
    # ------------------------------------------------------------------------------------------------------------- tails
    Case(
        "Tails",
        "A enters the cell that B's tail leaves",
        "23 24 25 | 42 32 22",
        "UR",
        {"all": "A and B live", "constrictor": "A dies in the body of B; B lives"},
    ),
    Case(
        "Tails",
        "The same, and B eats on this turn",
        "23 24 25 | 42 32 22",
        "UR",
        {
            "classic": "A dies in the body of B; B eats",
            "battlesnake": "A lives; B eats",
            "constrictor": "A dies in the body of B; B eats",
            "geese": "A dies in the body of B; B eats",
        },
        food="52",
    ),
    Case(
        "Tails",
        "The same, and B ate on the turn before",
        "23 24 25 | 42 32 22+",
        "UR",
        {"all": "A and B live", "battlesnake": "A dies in the body of B; B lives"},
    ),
    Case(
        "Tails",
        "A enters the cell that its own tail leaves",
        "22 21 11 12",
        "L",
        {"all": "A lives", "constrictor": "A dies in its own body"},
    ),
    Case(
        "Tails",
        "The same, and A ate on the turn before",
        "22 21 11 12+",
        "L",
        {"all": "A lives", "battlesnake": "A dies in its own body"},
    ),
    Case("Tails", "A enters its own body", "22 21 11 12 13", "L", {"all": "A dies in its own body"}),
    # ----------------------------------------------------------------------------------------------------------- head-on
    Case("Head-on", "A and B, equally long", "22 12 02 | 42 52 62", "RL", {"all": ALL_DIE}),
    Case("Head-on", "B is longer", "22 12 02 | 42 52 62 63", "RL", {"all": LONGER, "geese": ALL_DIE}),
    Case(
        "Head-on",
        "Three, C is longest",
        "22 12 02 | 42 52 62 | 33 34 35 36",
        "RLU",
        {"all": "A and B die head-on with C; C lives", "geese": "A, B and C die head-on (by C, C, nobody)"},
    ),
    Case(
        "Head-on",
        "Three, B and C are longer than A",
        "22 12 02 | 42 52 62 63 | 33 34 35 36",
        "RLU",
        {"all": "A, B and C die head-on (by nobody, C, B)", "battlesnake": "A, B and C die head-on (by B, C, B)"},
    ),
    Case(
        "Head-on",
        "Three, equally long",
        "22 12 02 | 42 52 62 | 33 34 35",
        "RLU",
        {"all": "A, B and C die head-on (by nobody)", "battlesnake": "A, B and C die head-on (by B, A, A)"},
    ),
    Case("Head-on", "Swapping heads at length 1", "22 | 32", "RL", {"all": "A and B live", "constrictor": "-"}),
    Case(
        "Head-on",
        "Swapping heads at lengths 1 and 2",
        "22 | 32 42",
        "RL",
        {"all": "A dies in the body of B; B lives", "constrictor": "-"},
    ),
    Case(
        "Head-on",
        "Swapping heads at length 2",
        "22 12 | 32 42",
        "RL",
        {"all": "A dies in the body of B; B dies in the body of A", "constrictor": "-"},
    ),
    Case(
        "Head-on",
        "Swapping heads at length 3",
        "22 12 02 | 32 42 52",
        "RL",
        {"all": "A dies in the body of B; B dies in the body of A"},
    ),
    # -------------------------------------------------------------------------------------------- bodies of those that die
    Case(
        "Into the body of one that dies on this turn",
        "B dies at the wall",
        "52 53 54 | 61 51 41 31",
        "UR",
        {
            "all": "A lives; B dies at the wall",
            "wrapped": "A dies in the body of B; B lives",
            "geese": "A dies in the body of B; B lives",
        },
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B starves",
        "42 43 44 | 31 41 51 61",
        "UL",
        {"all": "A lives; B starves", "geese": "-"},
        health="100 1",
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B starves, and A comes to where its head is",
        "52 53 54 | 41",
        "UR",
        {"all": "A lives; B starves", "constrictor": "-"},
        health="100 1",
        turn=39,
        headings="UR",
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B dies in a hazard",
        "42 43 44 | 31 41 51 61",
        "UL",
        {"battlesnake": "A lives; B dies in a hazard", "all": "A dies in the body of B; B lives"},
        health="100 15",
        hazards="21",
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B hits the body of C",
        "42 43 44 | 31 41 51 61 | 10 20 21 22 23 24",
        "ULL",
        {"all": "A dies in the body of B; B dies in the body of C; C lives"},
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B dies head-on with C, which is longer",
        "42 43 44 | 31 41 51 61 | 11 12 13 14 15",
        "ULR",
        {
            "all": "A dies in the body of B; B dies head-on with C; C lives",
            "geese": "A dies in the body of B; B and C die head-on",
        },
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B hits its own body",
        "42 43 44 | 31 41 40 30 20 21 22",
        "UL",
        {"all": "A dies in the body of B; B dies in its own body", "geese": "A lives; B dies in its own body"},
    ),
    Case(
        "Into the body of one that dies on this turn",
        "B reverses",
        "32 33 34 | 41 31 21 11",
        "UL",
        {
            "classic": "A dies in the body of B; B lives",
            "battlesnake": "A dies in the body of B; B dies in its own body",
            "geese": "A lives; B dies of reversing",
        },
    ),
    # ---------------------------------------------------------------------------------------------------------- reversing
    Case(
        "Reversing",
        "At length 1",
        "31",
        "L",
        {"classic": "A goes straight on", "battlesnake": "A turns back", "constrictor": "-", "geese": "A dies of reversing"},
        headings="R",
        tells="headings",
    ),
    Case(
        "Reversing",
        "At length 2",
        "31 21",
        "L",
        {"classic": "A goes straight on", "battlesnake": "A turns back", "constrictor": "-", "geese": "A dies of reversing"},
        tells="headings",
    ),
    Case(
        "Reversing",
        "At length 3",
        "31 21 11",
        "L",
        {"classic": "A goes straight on", "battlesnake": "A dies in its own body", "geese": "A dies of reversing"},
        tells="headings",
    ),
    # --------------------------------------------------------------------------------------------------- food and growth
    Case(
        "Food and growth",
        "A snake of three eats",
        "32 22 12",
        "R",
        {"all": "A eats, 4 long", "constrictor": "A eats, 5 long"},
        food="42",
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A snake of three does not eat",
        "32 22 12",
        "R",
        {"all": "A lives, 3 long", "constrictor": "A lives, 5 long"},
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A snake curled up on one cell makes its first move",
        "33 33 33",
        "R",
        {"all": "A lives, 3 long"},
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A snake of one eats",
        "32",
        "R",
        {"all": "A eats, 2 long", "battlesnake": "A dies in its own body, 2 long", "constrictor": "-"},
        food="42",
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A snake of three eats with health 1, or when hunger takes a segment",
        "32 22 12",
        "R",
        {"all": "A eats, 4 long", "constrictor": "A eats, 5 long", "geese": "A eats, 3 long"},
        food="42",
        health="1",
        turn=39,
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A snake of three does not eat with health 1, or when hunger takes a segment",
        "32 22 12",
        "R",
        {"all": "A starves, 3 long", "constrictor": "A starves, 5 long", "geese": "A lives, 2 long"},
        health="1",
        turn=39,
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "A eats in a hazard, with health 1",
        "32 22 12",
        "R",
        {"all": "A eats"},
        food="42",
        hazards="42",
        health="1",
    ),
    Case(
        "Food and growth",
        "Two heads on one piece of food, equally long",
        "22 12 02 | 42 52 62",
        "RL",
        {"all": "A and B die head-on, 4 and 4 long", "constrictor": "A and B die head-on, 5 and 5 long"}
        | {"geese": "A and B die head-on, 4 and 3 long"},
        food="32",
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "Two heads on one piece of food, B is longer",
        "22 12 02 | 42 52 62 63",
        "RL",
        {
            "all": "A dies head-on with B; B eats, 4 and 5 long",
            "constrictor": "A dies head-on with B; B eats, 5 and 6 long",
            "geese": "A and B die head-on, 4 and 4 long",
        },
        food="32",
        tells="lengths",
    ),
    Case(
        "Food and growth",
        "The board is full, and A follows its tail",
        "00 10 11 01",
        "D",
        {"all": "A lives; no food on the board", "constrictor": "A dies in its own body; 1 food on the board"},
        board=(2, 2),
        spawns=True,
        tells="food",
    ),
    Case(
        "Food and growth",
        "A eats on the last free cell",
        "00 10 11",
        "D",
        {"all": "A eats; no food on the board"},
        food="01",
        board=(2, 2),
        spawns=True,
        tells="food",
    ),
    # ------------------------------------------------------------------------------------------------ the end of a game
    Case(
        "The end of a game",
        "B dies, only A is left",
        "11 10 00 | 51 50 60 61 62",
        "RR",
        {
            "all": "A lives; B dies in its own body; game over, places 1 and 2",
            "solo": "A lives; B dies in its own body; goes on",
        },
        tells="ending",
    ),
    Case(
        "The end of a game",
        "The last two die together, equally long",
        "11 10 00 01 02 | 51 50 60 61 62",
        "LR",
        {"all": "A and B die in their own bodies; game over, places 1 and 1"},
        tells="ending",
    ),
    Case(
        "The end of a game",
        "The last two die together, B is longer",
        "11 10 00 01 02 | 51 50 60 61 62 63",
        "LR",
        {
            "all": "A and B die in their own bodies; game over, places 1 and 1",
            "geese": "A and B die in their own bodies; game over, places 2 and 1",
        },
        tells="ending",
    ),
    Case(
        "The end of a game",
        "A plays alone, and lives",
        "32 22 12",
        "R",
        {"all": "A lives; goes on", "geese": "A lives; game over, place 1"},
        tells="ending",
    ),
    Case(
        "The end of a game",
        "Turn 199 has been played, B is longer",
        "31 21 11 | 34 24 14 04",
        "RR",
        {"all": "A and B live; goes on", "geese": "A and B live; game over, places 2 and 1"},
        turn=198,
        tells="ending",
    ),
]


def expected(case: Case, preset: str) -> str:
    """The outcome that a case claims for a preset, "-" where its position cannot arise."""
    names = [preset, "all"] if preset in ("classic", "geese") else [preset, "battlesnake", "all"]
    return next(case.outcomes[name] for name in names if name in case.outcomes)


def position(case: Case, rules: Rules) -> Position:
    """Where a case starts."""
    bodies = []
    for text in case.snakes.split("|"):
        body = cells(text.replace("+", ""))
        late = "+" in text and rules.growth == "next_turn"
        stays = late or (rules.growth == "every_turn" and len(set(body)) > 1)
        bodies.append(body + body[-1:] * stays)
    return Position(
        bodies,
        food=cells(case.food),
        health=[int(health) for health in case.health.split()] or None,
        hazards=cells(case.hazards),
        headings=["URDL".index(heading) for heading in case.headings] or None,
        turn=case.turn,
    )


def cells(text: str) -> list[Cell]:
    """ "32 22" as cells."""
    return [(int(cell[0]), int(cell[1])) for cell in text.split()]


def outcome(case: Case, preset: str) -> str:
    """What the engine makes of a case, in the words of the page."""
    snakes = len(case.snakes.split("|"))
    still = {} if case.spawns else {"food_minimum": 0, "food_chance": 0.0}
    rules = PRESETS[preset].replace(
        width=case.board[0], height=case.board[1], num_snakes=snakes, start="scattered", start_length=1, **still
    )
    engine = SnakeEngine(rules, seed=0)
    engine.load(SnakeState.from_positions(rules, [position(case, rules)]))
    before = engine.save()
    engine.step(np.array([["URDL".index(move) for move in case.moves]]))
    return _describe(case, before, engine.state)


def _describe(case: Case, before: SnakeState, state: SnakeState) -> str:
    verbs = [_verb(case, before, state, number) for number in range(state.alive.shape[1])]
    parts = []
    for verb in dict.fromkeys(verbs):
        numbers = [number for number, other in enumerate(verbs) if other == verb]
        parts.append(_sentence(verb, numbers, state))
    text = "; ".join(parts)
    if case.tells == "lengths":
        text += f", {_and([str(length) for length in state.length[0].tolist()])} long"
    if case.tells == "food":
        text += f"; {int(state.food_count[0]) or 'no'} food on the board"
    if case.tells == "ending":
        places = state.rank[0].tolist()
        over = f"game over, place{'s' * (len(places) > 1)} {_and([str(place) for place in places])}"
        text += f"; {over if state.over[0] else 'goes on'}"
    return text


def _verb(case: Case, before: SnakeState, state: SnakeState, number: int) -> str:
    if state.ate[0, number] and state.alive[0, number]:
        return "eats"
    if state.alive[0, number]:
        if case.tells == "headings":
            return "goes straight on" if state.heading[0, number] == before.heading[0, number] else "turns back"
        return "lives"
    cause, killer = CAUSES[state.cause[0, number]], int(state.killer[0, number])
    if cause == "body":
        return f"dies in the body of {'ABC'[killer]}"
    killers = {int(state.killer[0, other]) for other in np.flatnonzero(state.cause[0] == state.cause[0, number])}
    if cause == "head" and len(killers) == 1 and killer >= 0:
        return f"dies head-on with {'ABC'[killer]}"
    return {
        "wall": "dies at the wall",
        "self": "dies in its own body",
        "head": "dies head-on",
        "starvation": "starves",
        "hazard": "dies in a hazard",
        "reverse": "dies of reversing",
    }[cause]


def _sentence(verb: str, numbers: list[int], state: SnakeState) -> str:
    """A verb with its subjects; for several that die head-on by whom, unless there are but two and each by the other."""
    if len(numbers) == 1:
        return f"{'ABC'[numbers[0]]} {verb}"
    plural = {"lives": "live", "eats": "eat", "starves": "starve", "dies in its own body": "die in their own bodies"}
    text = f"{_and(['ABC'[number] for number in numbers])} {plural.get(verb, verb.replace('dies', 'die'))}"
    if verb == "dies head-on" and len(numbers) > 2:
        killers = [int(killer) for killer in state.killer[0, numbers]]
        names = ["nobody" if killer < 0 else "ABC"[killer] for killer in killers]
        text += f" (by {names[0] if len(set(names)) == 1 else ', '.join(names)})"
    return text


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
