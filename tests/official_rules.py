"""Replay transitions recorded from the official engines of Battlesnake and Hungry Geese, and count how many hold.

    python tests/official_rules.py FILE.jsonl.gz ...

prints a line per file and event kind, and exits 0 only if every transition of every file is reproduced: bodies, health, food,
cause of death, by whom, the end of the game; for geese also status and reward. The formats are described in
tests/data/README.md. Records that share rules are replayed as one batch.
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

from snake_pz import Position, Rules, SnakeEngine, SnakeState
from snake_pz.state import CAUSES, body_cells

Record = dict[str, Any]
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
    """One transition: what is wrong with it, [] if it holds, and what kinds of event it shows."""

    record: Record
    faults: list[str]
    events: set[str]


def read(path: Path) -> list[Record]:
    """The records of a file of JSON lines, packed by gzip or not."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.decode().splitlines() if line.strip()]


def replay(records: Iterable[Record]) -> Iterator[Outcome]:
    """Play every record through the engine, those that share rules together."""
    batches: dict[Rules, list[Record]] = defaultdict(list)
    for record in records:
        batches[(_geese_rules if "geese" in record else _battlesnake_rules)(record)].append(record)
    for rules, batch in batches.items():
        geese = "geese" in batch[0]
        position, actions = (_geese_position, _geese_actions) if geese else (_battlesnake_position, _battlesnake_actions)
        engine = SnakeEngine(rules, len(batch), seed=0)
        state = SnakeState.from_positions(rules, [position(record) for record in batch])
        engine.state = state
        before = state.map(np.copy)
        engine.step(np.array([actions(record) for record in batch], np.int64).reshape(len(batch), rules.num_snakes))
        for game, record in enumerate(batch):
            compare = _geese_faults if geese else _battlesnake_faults
            yield Outcome(
                record, compare(record, engine.state, rules, game), _events(record, before, engine.state, rules, game)
            )


# --------------------------------------------------------------------------------------------------------- Battlesnake
# The origin of the records is the bottom left corner and y grows upwards; here it is the top left one.


def _battlesnake_rules(record: Record) -> Rules:
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


def _battlesnake_position(record: Record) -> Position:
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


def _battlesnake_actions(record: Record) -> list[int]:
    return [BATTLESNAKE_MOVES.get(record["moves"].get(snake["id"], "up"), INVALID_ACTION) for snake in record["snakes"]]


def _cells(record: Record, cells: list[list[int]]) -> list[tuple[int, int]]:
    return [(x, record["height"] - 1 - y) for x, y in cells]


def _battlesnake_faults(record: Record, state: SnakeState, rules: Rules, game: int) -> list[str]:
    after, faults = record["after"], []
    ids = [snake["id"] for snake in record["snakes"]]
    for number, (earlier, snake) in enumerate(zip(record["snakes"], after["snakes"], strict=True)):
        body = [(x, rules.height - 1 - y) for x, y in snake["body"]]
        ours = _body(state, rules, game, number)
        if [cell for cell in body if _inside(rules, cell)] != [cell for cell in ours if cell is not None] or len(body) != len(
            ours
        ):
            faults.append(f"body of {snake['id']}: expected {body}, got {ours}")
        if snake["health"] != state.health[game, number]:
            faults.append(f"health of {snake['id']}: expected {snake['health']}, got {state.health[game, number]}")
        cause, killer = CAUSES[state.cause[game, number]], int(state.killer[game, number])
        if earlier["cause"] == "":
            expected = (BATTLESNAKE_CAUSES.get(snake["cause"], snake["cause"]), snake["by"])
            got = (cause, ids[killer] if killer >= 0 else "")
            if expected != got:
                faults.append(f"death of {snake['id']}: expected {expected}, got {got}")
    if Counter(_cells(record, after["food"])) != _counts(state.food[game], rules):
        faults.append(f"food: expected {after['food']}, got {_counts(state.food[game], rules)}")
    if after["over_next"] != state.over[game]:
        faults.append(f"over: expected {after['over_next']}, got {state.over[game]}")
    if "hazards" in after and not after["over"]:
        lines = (record["turn"] + 1) // rules.shrink_every  # which sides is drawn at random
        for whose, cells in (
            ("ours", _counts(state.hazard[game], rules)),
            ("the record's", Counter(_cells(record, after["hazards"]))),
        ):
            if not _are_outer_lines(rules, set(cells), lines) or max(cells.values(), default=1) > 1:
                faults.append(f"hazards: {whose} are not {lines} outer lines")
    elif Counter(_cells(record, after.get("hazards", record["hazards"]))) != _counts(state.hazard[game], rules):
        faults.append("hazards changed")
    return faults


def _are_outer_lines(rules: Rules, cells: set[tuple[int, int]], lines: int) -> bool:
    """Whether these cells are so many lines taken from the sides of the board."""
    free = {(x, y) for x in range(rules.width) for y in range(rules.height)} - cells
    if not free:
        return lines >= min(rules.width, rules.height)
    left, top = min(x for x, _ in free), min(y for _, y in free)
    right, bottom = max(x for x, _ in free), max(y for _, y in free)
    taken = left + top + rules.width - 1 - right + rules.height - 1 - bottom
    return len(free) == (right - left + 1) * (bottom - top + 1) and taken == lines


# ------------------------------------------------------------------------------------------------------- Hungry Geese


def _geese_rules(record: Record) -> Rules:
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


def _geese_position(record: Record) -> Position:
    width = record["columns"]
    last = record["last_actions"] or [None] * len(record["geese"])
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


def _geese_faults(record: Record, state: SnakeState, rules: Rules, game: int) -> list[str]:
    after, faults, width = record["after"], [], rules.width
    for number, goose in enumerate(after["geese"]):
        ours = [y * width + x for x, y in _body(state, rules, game, number)] if state.alive[game, number] else []  # type: ignore[misc]
        if ours != goose:
            faults.append(f"goose {number}: expected {goose}, got {ours}")
        if after["status"][number] != (status := _geese_status(record, state, game, number)):
            faults.append(f"status of {number}: expected {after['status'][number]}, got {status}")
        if after["reward"][number] != (reward := _geese_reward(record, state, rules, game, number)):
            faults.append(f"reward of {number}: expected {after['reward'][number]}, got {reward}")
    food = [y * width + x for x, y in _counts(state.food[game], rules).elements()]
    kept, new = Counter(after["food_before_spawn"]), Counter(food) - Counter(after["food_before_spawn"])
    if kept - Counter(food) or sum(new.values()) != len(after["food"]) - len(after["food_before_spawn"]):
        faults.append(f"food: expected {after['food_before_spawn']} and {len(after['food'])} in all, got {food}")
    taken = {cell for goose in after["geese"] for cell in goose} | set(after["food_before_spawn"])
    if taken & set(new) or max(new.values(), default=1) > 1:
        faults.append(f"new food {sorted(new)} on cells that are not free")
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


def _body(state: SnakeState, rules: Rules, game: int, number: int) -> list[tuple[int, int] | None]:
    """Cells, head first; None for a head that has left the board."""
    flat = body_cells(state, game, number).tolist()
    return [None if cell < 0 else (cell % rules.width, cell // rules.width) for cell in flat]


def _inside(rules: Rules, cell: tuple[int, int]) -> bool:
    return 0 <= cell[0] < rules.width and 0 <= cell[1] < rules.height


def _counts(counts: np.ndarray[Any, Any], rules: Rules) -> Counter[tuple[int, int]]:
    return Counter({(int(cell) % rules.width, int(cell) // rules.width): int(counts[cell]) for cell in np.flatnonzero(counts)})


def _events(record: Record, before: SnakeState, after: SnakeState, rules: Rules, game: int) -> set[str]:
    """What kinds of event a transition shows, read from the record itself."""
    events: set[str] = set()
    if "geese" in record:
        statuses = zip(record["status"], record["after"]["status"], record["after"]["geese"], strict=True)
        died = sum(status == "ACTIVE" and not goose for status, _, goose in statuses)
        if record["step"] % record["hunger_rate"] == 0:
            events.add("hunger step")
        if len(record["after"]["food"]) > len(record["after"]["food_before_spawn"]):
            events.add("food spawned")
        if "INVALID" in record["after"]["status"]:
            events.add("invalid action")
        if not any(status == "ACTIVE" for status in record["after"]["status"]):
            events.add("ends the game")
        if record["last_actions"] is None or record["step"] == 1:
            events.add("first step")
    else:
        pairs = list(zip(record["snakes"], record["after"]["snakes"], strict=True))
        died = sum(earlier["cause"] == "" and later["cause"] != "" for earlier, later in pairs)
        if record["after"]["over"]:
            events.add("already over")
        elif record["after"]["over_next"]:
            events.add("ends the game")
        if any(earlier["cause"] for earlier, _ in pairs):
            events.add("dead snake present")
        if record["hazards"]:
            events.add("hazards present")
    if before.hazard[game].any() and (after.health[game] < before.health[game] - 1).any():
        events.add("hazard damage")
    ring = body_cells
    for number in range(rules.num_snakes):
        if not before.alive[game, number]:
            continue
        if after.just_died[game, number]:
            events.add(f"death: {CAUSES[after.cause[game, number]]}")
        if after.ate[game, number]:
            events.add("eat")
        length = int(before.length[game, number])
        events.add(f"length {length}" if length < 3 else "length 3 or more")
        if len(set(ring(before, game, number).tolist())) < length:
            events.add("stacked segments")
    if died > 1:
        events.add("several die")
    if died and not after.alive[game].any():
        events.add("the last die")
    return events or {"plain"}


def report(path: Path) -> bool:
    """Replay a file and print how many of its transitions hold, by event kind; whether all do."""
    totals: Counter[str] = Counter()
    held: Counter[str] = Counter()
    broken: list[Outcome] = []
    outcomes = list(replay(read(path)))
    for outcome in outcomes:
        totals.update(outcome.events)
        if outcome.faults:
            broken.append(outcome)
        else:
            held.update(outcome.events)
    print(f"{path.name}: {len(outcomes) - len(broken)} of {len(outcomes)} transitions hold")
    for event, total in sorted(totals.items()):
        print(f"    {event:24} {held[event]:6} of {total}")
    for outcome in broken[:5]:
        print(f"  {outcome.record['game']} ({outcome.record['source']}): {'; '.join(outcome.faults)}")
    return bool(outcomes) and not broken


def main(paths: list[str]) -> int:
    """Replay these files; 0 if every transition of each holds, 2 without files."""
    if not paths:
        print(__doc__)
        return 2
    reports = [report(Path(path)) for path in paths]
    return 0 if all(reports) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
