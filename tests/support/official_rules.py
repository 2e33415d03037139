"""Replay what was recorded from the official engines of Battlesnake and Hungry Geese, and count how much holds.

    python tests/support/official_rules.py FILE.jsonl.gz ...

Prints for every file how many of its records hold, in all and by kind of event (see `official_events`), and the first ones that
do not. Exits 0 only if every record of every file is reproduced, 1 if not, 2 without files.

A transition holds if the engine, put before it, comes to the same: bodies (of the dead too), health, food in its order, cause
of death, by whom, hazards, whether the game is over; for geese also status, reward and how much food appeared, on free cells. A
start position holds if the engine can start so (see `official_starts`). The formats are described in tests/data/README.md;
files may be packed or not, and mix both engines. Records that share rules are replayed as one batch.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from snake_pz import Position, Rules, SnakeEngine, SnakeState
from snake_pz.core.state import CAUSES, Cell, body_cells
from tests.support.official_events import events
from tests.support.official_starts import start_faults

Record = dict[str, Any]
OUTSIDE = (-1, -1)
"""Any cell off the board of a snake that is out."""
INVALID_ACTION = -1
BATTLESNAKE_MOVES = {"up": 0, "right": 1, "down": 2, "left": 3}
GEESE_MOVES = {"NORTH": 0, "EAST": 1, "SOUTH": 2, "WEST": 3}
BATTLESNAKE_CAUSES = {
    "wall-collision": "wall",
    "out-of-health": "starvation",
    "hazard": "hazard",
    "snake-collision": "body",
    "snake-self-collision": "self",
    "head-collision": "head",
}


class Outcome(NamedTuple):
    """One record: what is wrong with it, [] if it holds, and what kinds of event it shows."""

    record: Record
    faults: list[str]
    events: set[str]


def read(path: Path) -> list[Record]:
    """The records of a file of JSON lines, packed by gzip or not.

    Raises:
        ValueError: a line that is no record of a transition or a start position.
    """
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    records = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
    for number, record in enumerate(records, 1):
        if not (isinstance(record, dict) and ("geese" in record or "snakes" in record)):
            raise ValueError(f"record {number} is neither a transition nor a start position")
    return records


def replay(records: Iterable[Record]) -> Iterator[Outcome]:
    """Check every record, in any order: transitions that share rules are played together."""
    batches: dict[Rules, list[Record]] = defaultdict(list)
    for record in records:
        if "after" in record:
            batches[(geese_rules if "geese" in record else battlesnake_rules)(record)].append(record)
        else:
            yield Outcome(record, start_faults(record), {"start_position"})
    for rules, batch in batches.items():
        geese = "geese" in batch[0]
        position, actions, faults = (
            (geese_position, _geese_actions, _geese_faults)
            if geese
            else (battlesnake_position, _battlesnake_actions, _battlesnake_faults)
        )
        engine = SnakeEngine(rules, len(batch), seed=0)
        engine.state = SnakeState.from_positions(rules, [position(record) for record in batch])
        before = engine.save()
        engine.step(np.array([actions(record) for record in batch], np.int64).reshape(len(batch), rules.num_snakes))
        for game, record in enumerate(batch):
            yield Outcome(record, faults(record, before, engine.state, rules, game), events(record))


# --------------------------------------------------------------------------------------------------------- Battlesnake
# The origin of the records is the bottom left corner and y grows upwards; here it is the top left one.


def battlesnake_rules(record: Record) -> Rules:
    settings = record["settings"]
    changes = {
        "width": record["width"],
        "height": record["height"],
        "num_snakes": len(record["snakes"]),
        "start": "scattered",  # positions are set up; this one fits any board
        "food_minimum": 0,
        "food_chance": 0.0,
        "hazard_damage": settings["damagePerTurn"],
        "ends_with": "none" if settings.get("solo") or record["ruleset"] == "solo" else "one_always",
    }
    if record["ruleset"] == "royale":
        changes["shrink_every"] = settings["shrinkEveryNTurns"]
    return Rules.battlesnake(record["ruleset"], **changes)


def battlesnake_position(record: Record) -> Position:
    alive = [snake["cause"] == "" for snake in record["snakes"]]
    solo = record["settings"].get("solo") or record["ruleset"] == "solo"
    return Position(
        bodies=[_cells(record, snake["body"]) for snake in record["snakes"]],
        food=_cells(record, record["food"]),
        health=[snake["health"] for snake in record["snakes"]],
        hazards=_cells(record, record["hazards"]),
        alive=alive,
        turn=record["turn"],
        over=sum(alive) <= (0 if solo else 1),
    )


def battlesnake_request(record: Record) -> dict[str, Any]:
    """The request in which the official engine would show a recorded position."""

    def points(cells: list[list[int]]) -> list[dict[str, int]]:
        return [{"x": x, "y": y} for x, y in cells]

    settings = record["settings"]
    snakes = [
        {"id": snake["id"], "name": snake["id"], "health": snake["health"], "body": points(snake["body"])}
        for snake in record["snakes"]
        if not snake["cause"]
    ]
    return {
        "game": {
            "id": record["game"],
            "ruleset": {
                "name": record["ruleset"],
                "version": "v1.2.3",
                "settings": {
                    "foodSpawnChance": settings["foodSpawnChance"],
                    "minimumFood": settings["minimumFood"],
                    "hazardDamagePerTurn": settings["damagePerTurn"],
                    "royale": {"shrinkEveryNTurns": settings["shrinkEveryNTurns"]},
                },
            },
            "map": "standard",
            "timeout": 500,
        },
        "turn": record["turn"],
        "board": {
            "height": record["height"],
            "width": record["width"],
            "food": points(record["food"]),
            "hazards": points(record["hazards"]),
            "snakes": snakes,
        },
    }


def _battlesnake_actions(record: Record) -> list[int]:
    return [BATTLESNAKE_MOVES.get(record["moves"].get(snake["id"], "up"), INVALID_ACTION) for snake in record["snakes"]]


def _cells(record: Record, cells: list[list[int]]) -> list[Cell]:
    return [(x, record["height"] - 1 - y) for x, y in cells]


def _battlesnake_faults(record: Record, before: SnakeState, state: SnakeState, rules: Rules, game: int) -> list[str]:
    after, faults = record["after"], []
    ids = [snake["id"] for snake in record["snakes"]]
    if [snake["id"] for snake in after["snakes"]] != ids:
        return ["other snakes, or in another order"]
    for number, (earlier, snake) in enumerate(zip(record["snakes"], after["snakes"], strict=True)):
        name, ours = snake["id"], _body(before, state, rules, game, number)
        if _on_board(rules, _cells(record, snake["body"]), earlier["cause"] != "") != ours:
            faults.append(f"body of {name}: expected {_cells(record, snake['body'])}, got {ours}")
        if snake["health"] != state.health[game, number]:
            faults.append(f"health of {name}: expected {snake['health']}, got {state.health[game, number]}")
        killer = int(state.killer[game, number])
        death = (CAUSES[state.cause[game, number]], ids[killer] if killer >= 0 else "")
        if earlier["cause"] and death == ("", ""):  # a position does not tell of what a snake died that is out
            death = (BATTLESNAKE_CAUSES[earlier["cause"]], earlier["by"])
        expected = (BATTLESNAKE_CAUSES.get(snake["cause"], snake["cause"]), snake["by"])
        if expected != death:
            faults.append(f"death of {name}: expected {expected}, got {death}")
    food = _counts(state.food[game], rules)
    left = [cell for cell in _cells(record, record["food"]) if cell in food]
    if _cells(record, after["food"]) != left or Counter(left) != food:
        faults.append(f"food: expected {_cells(record, after['food'])}, got {sorted(food.elements())}")
    over = (bool(before.over[game]), bool(state.over[game]))
    if (after["over"], after["over_next"]) != over:
        faults.append(f"over before, after: expected {(after['over'], after['over_next'])}, got {over}")
    return faults + _hazard_faults(record, state, rules, game)


def _hazard_faults(record: Record, state: SnakeState, rules: Rules, game: int) -> list[str]:
    ours = _counts(state.hazard[game], rules)
    theirs = Counter(_cells(record, record["after"].get("hazards", record["hazards"])))
    if record["ruleset"] != "royale" or record["after"]["over"]:
        return [] if ours == theirs else [f"hazards: expected {sorted(theirs.elements())}, got {sorted(ours.elements())}"]
    lines = (record["turn"] + 1) // rules.shrink_every  # which sides is drawn at random
    return [
        f"hazards: {whose} are not {lines} outer lines: {sorted(cells.elements())}"
        for whose, cells in (("ours", ours), ("the record's", theirs))
        if not _are_outer_lines(rules, set(cells), lines) or max(cells.values(), default=1) > 1
    ]


def _are_outer_lines(rules: Rules, cells: set[Cell], lines: int) -> bool:
    """Whether these cells are so many lines taken from the sides of the board."""
    free = {(x, y) for x in range(rules.width) for y in range(rules.height)} - cells
    if not free:
        return lines >= min(rules.width, rules.height)
    left, top = min(x for x, _ in free), min(y for _, y in free)
    right, bottom = max(x for x, _ in free), max(y for _, y in free)
    taken = left + top + rules.width - 1 - right + rules.height - 1 - bottom
    return len(free) == (right - left + 1) * (bottom - top + 1) and taken == lines


# ------------------------------------------------------------------------------------------------------- Hungry Geese


def geese_rules(record: Record) -> Rules:
    return Rules.hungry_geese(
        width=record["columns"],
        height=record["rows"],
        num_snakes=len(record["geese"]),
        food_initial=0,
        food_minimum=record["min_food"],
        hunger_every=record["hunger_rate"],
        max_length=record["max_length"],
        max_turns=record["episode_steps"] - 1,
    )


def geese_position(record: Record) -> Position:
    width = record["columns"]
    last = record["last_actions"] if record["step"] > 1 else [None] * len(record["geese"])  # none on the first step
    return Position(
        bodies=[[(cell % width, cell // width) for cell in goose] for goose in record["geese"]],
        food=[(cell % width, cell // width) for cell in record["food"]],
        headings=[-1 if action is None else GEESE_MOVES.get(action, -1) for action in last],
        alive=[status == "ACTIVE" for status in record["status"]],
        turn=record["step"] - 1,
        over=not any(status == "ACTIVE" for status in record["status"]),
    )


def _geese_actions(record: Record) -> list[int]:
    return [GEESE_MOVES.get(action, INVALID_ACTION) for action in record["actions"]]


def _geese_faults(record: Record, before: SnakeState, state: SnakeState, rules: Rules, game: int) -> list[str]:
    after, faults, width = record["after"], [], rules.width
    for number, goose in enumerate(after["geese"]):
        ours = [y * width + x for x, y in _body(before, state, rules, game, number)] if state.alive[game, number] else []
        if goose != ours:
            faults.append(f"goose {number}: expected {goose}, got {ours}")
        if after["status"][number] != (status := _geese_status(record, state, game, number)):
            faults.append(f"status of {number}: expected {after['status'][number]}, got {status}")
        if after["reward"][number] != (reward := _geese_reward(record, state, rules, game, number)):
            faults.append(f"reward of {number}: expected {after['reward'][number]}, got {reward}")
    kept, spawned = after["food_before_spawn"], after["food"][len(after["food_before_spawn"]) :]
    food = Counter(y * width + x for x, y in _counts(state.food[game], rules).elements())
    ours_new, earlier = food - Counter(kept), iter(record["food"])
    in_order = all(cell in earlier for cell in kept) and after["food"][: len(kept)] == kept
    if not in_order or Counter(kept) - food or ours_new.total() != len(spawned):
        faults.append(f"food: expected {kept} and {len(spawned)} more, got {sorted(food.elements())}")
    taken = {cell for goose in after["geese"] for cell in goose} | set(kept)
    for whose, new in (("our", ours_new), ("the record's", Counter(spawned))):
        if taken & set(new) or max(new.values(), default=1) > 1 or not set(new) <= set(range(rules.num_cells)):
            faults.append(f"{whose} new food {sorted(new.elements())} is not on free cells")
    return faults


def _geese_status(record: Record, state: SnakeState, game: int, number: int) -> str:
    """The environment's word for what became of a goose; the last one alive is done at once."""
    if record["actions"][number] not in GEESE_MOVES:
        return "INVALID"  # even if it was out before
    if record["status"][number] != "ACTIVE":
        return str(record["status"][number])
    return "ACTIVE" if state.alive[game, number] and not state.over[game] else "DONE"


def _geese_reward(record: Record, state: SnakeState, rules: Rules, game: int, number: int) -> int | None:
    """(k + 1) * (max_length + 1) + length of those that live after step k; the others keep what they had."""
    if record["actions"][number] not in GEESE_MOVES:
        return None
    if not state.alive[game, number]:
        earlier: int | None = record["reward"][number]
        return earlier
    assert rules.max_length is not None
    return (int(state.turn[game]) + 1) * (rules.max_length + 1) + int(state.length[game, number])


# --------------------------------------------------------------------------------------------------------------- both


def _body(before: SnakeState, after: SnakeState, rules: Rules, game: int, number: int) -> list[Cell]:
    """Cells, head first. The head of a snake that has just left the board is put beside it; OFF_BOARD stands for others."""
    flat = body_cells(after, game, number).tolist()
    cells = [(cell % rules.width, cell // rules.width) if cell >= 0 else OUTSIDE for cell in flat]
    if cells and cells[0] == OUTSIDE and after.just_died[game, number]:
        head = int(body_cells(before, game, number)[0])
        right, down = ((0, -1), (1, 0), (0, 1), (-1, 0))[after.heading[game, number]]
        cells[0] = (head % rules.width + right, head // rules.width + down)
    return cells


def _on_board(rules: Rules, cells: list[Cell], was_out: bool) -> list[Cell]:
    """The same, but that cells outside the board are all one if they belong to a snake that was out before the turn."""
    return [cell if not was_out or _inside(rules, cell) else OUTSIDE for cell in cells]


def _inside(rules: Rules, cell: Cell) -> bool:
    return 0 <= cell[0] < rules.width and 0 <= cell[1] < rules.height


def _counts(counts: np.ndarray[Any, Any], rules: Rules) -> Counter[Cell]:
    return Counter({(int(cell) % rules.width, int(cell) // rules.width): int(counts[cell]) for cell in np.flatnonzero(counts)})


def report(path: Path) -> bool:
    """Check a file and print how many of its records hold, by kind of event; whether all do."""
    totals: Counter[str] = Counter()
    held: Counter[str] = Counter()
    broken: list[Outcome] = []
    try:
        outcomes = list(replay(read(path)))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        print(f"{path.name}: cannot be replayed: {type(error).__name__}: {error}")
        return False
    for outcome in outcomes:
        totals.update(outcome.events)
        if outcome.faults:
            broken.append(outcome)
        else:
            held.update(outcome.events)
    print(f"{path.name}: {len(outcomes) - len(broken)} of {len(outcomes)} records hold")
    for event, total in sorted(totals.items()):
        print(f"    {event:44} {held[event]:6} of {total}{'' if held[event] == total else '  <-- not all'}")
    for outcome in broken[:5]:
        name = " ".join(str(outcome.record.get(key)) for key in ("game", "source", "turn", "step") if key in outcome.record)
        print(f"  {name or 'start position'}: {'; '.join(outcome.faults)}")
    return bool(outcomes) and not broken


def main(paths: list[str]) -> int:
    """Check these files; 0 if every record of each holds, 1 if not, 2 without files."""
    if not paths:
        print(__doc__)
        return 2
    reports = [report(Path(path)) for path in paths]  # all of them, also after one that fails
    return 0 if all(reports) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
