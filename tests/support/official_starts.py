"""Whether the engine can start as the official ones were recorded to, by comparison with many of its own starts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from snake_pz import Rules, SnakeEngine
from snake_pz.core.state import Cell

Record = dict[str, Any]
GAMES = 4096
"""Starts that a recorded one is compared with, enough for each possible cell to be among them."""


class Starts(NamedTuple):
    """What the engine's own starts by one set of rules look like. Cells count from the bottom left corner, as recorded."""

    heads: list[set[Cell]]  # per snake
    groups: set[tuple[bool, ...]]  # whether each snake starts at a corner point
    foods: dict[Cell, set[Cell]]  # food diagonal to a head
    food_counts: set[int]
    common_food: set[Cell]  # where there is food in all of them


@lru_cache(maxsize=64)
def starts(rules: Rules) -> Starts:
    """Many starts, looked through."""
    engine = SnakeEngine(rules, GAMES, seed=0)
    engine.reset()
    heads = engine.state.body[:, :, rules.start_length - 1].astype(int)
    found = Starts([set() for _ in range(rules.num_snakes)], set(), {}, set(engine.state.food_count.tolist()), set())
    for game in range(GAMES):
        cells = [_cell(rules, head) for head in heads[game]]
        food = {_cell(rules, cell) for cell in np.flatnonzero(engine.state.food[game])}
        for number, head in enumerate(cells):
            found.heads[number].add(head)
            found.foods.setdefault(head, set()).update(cell for cell in food if diagonal(head, cell))
        found.groups.add(tuple(at_corner(rules.width, head) for head in cells))
    found.common_food.update(_cell(rules, cell) for cell in np.flatnonzero(engine.state.food.all(axis=0)))
    return found


def _cell(rules: Rules, cell: int) -> Cell:
    return int(cell) % rules.width, rules.height - 1 - int(cell) // rules.width


def diagonal(head: Cell, cell: Cell) -> bool:
    """Whether two cells touch at a corner."""
    return abs(head[0] - cell[0]) == 1 == abs(head[1] - cell[1])


def at_corner(side: int, head: Cell) -> bool:
    """Whether this is one of Battlesnake's corner points, not a cardinal one."""
    return head[0] in (1, side - 2) and head[1] in (1, side - 2)


def start_faults(record: Record) -> list[str]:
    """Why the engine cannot start like this; [] if it can."""
    return (_geese_faults if "geese" in record else _battlesnake_faults)(record)


def _battlesnake_faults(record: Record) -> list[str]:
    snakes, faults = record["snakes"], []
    board = {"width": record["width"], "height": record["height"], "num_snakes": len(snakes)}
    own = starts(Rules.battlesnake(**board))
    heads = [tuple(snake["body"][0]) for snake in snakes]
    for number, snake in enumerate(snakes):
        if heads[number] not in own.heads[number]:
            faults.append(f"no snake {number} starts at {heads[number]}")
        if snake["body"] != [list(heads[number])] * 3 or snake["health"] != 100:
            faults.append(f"snake {snake['id']} is not three segments on one cell in full health")
    if tuple(at_corner(record["width"], head) for head in heads) not in own.groups or len(set(heads)) < len(heads):
        faults.append(f"no such choice of corner and cardinal points: {heads}")
    food = [tuple(cell) for cell in record["food"]]  # in the order of the snakes, the centre last
    if own.food_counts != {len(food)} or set(food[-1:]) != own.common_food & set(food[-1:]):
        faults.append(f"food: {food} is not what lies there at the start")
    for head, cell in zip(heads, food[:-1], strict=False):
        if cell not in own.foods.get(head, ()):
            faults.append(f"no food at {cell} for a snake at {head}")
    if record["hazards"] or record["turn"]:
        faults.append("hazards at the start, or a turn has passed")
    for ruleset, after in record["after_init"].items():
        rules = Rules.battlesnake(ruleset, **board)
        faults += _init_faults(rules, ruleset, record, record if after["same"] else after, after["over"])
    return faults


def _init_faults(rules: Rules, ruleset: str, record: Record, board: Record, over: bool) -> list[str]:
    """Compare with the engine's start by a ruleset what that ruleset made of a board at turn zero."""
    engine = SnakeEngine(rules, 1, seed=0)
    engine.reset()
    state = engine.state
    expected = (
        [(len(snake["body"]), snake["health"], snake["cause"] == "") for snake in board["snakes"]],
        (len(board["food"]), len(board["hazards"]), over),
    )
    got = (
        list(zip(state.length[0].tolist(), state.health[0].tolist(), state.alive[0].tolist(), strict=True)),
        (int(state.food_count[0]), int(state.hazard.sum()), bool(state.over[0])),
    )
    same_bodies = [snake["body"] for snake in board["snakes"]] == [snake["body"] for snake in record["snakes"]]
    if expected == got and same_bodies:
        return []
    return [f"start by {ruleset}: expected (lengths, healths, alive), (food, hazards, over) {expected}, got {got}"]


def _geese_faults(record: Record) -> list[str]:
    faults, number = [], record["n"]
    rules = Rules.hungry_geese(
        width=record["columns"], height=record["rows"], num_snakes=number,
        food_initial=record["min_food"], food_minimum=record["min_food"],
    )  # fmt: skip
    engine = SnakeEngine(rules, 1, seed=0)
    engine.reset()
    state, food = engine.state, record["food"]
    taken = [cell for goose in record["geese"] for cell in goose] + food
    if [len(goose) for goose in record["geese"]] != state.length[0].tolist():
        faults.append(f"geese {record['geese']}, but ours have lengths {state.length[0].tolist()}")
    if len(food) != state.food_count[0]:
        faults.append(f"food {food}, but we have {state.food_count[0]} pieces")
    if len(set(taken)) < len(taken) or not set(taken) <= set(range(rules.num_cells)):
        faults.append("geese and food are not on different cells of the board")
    if (record["status"], record["reward"], record["step"]) != (["ACTIVE"] * number, [0] * number, 0):
        faults.append("not everybody is ACTIVE without reward at step 0")
    return faults
