"""Games that other programs recorded become replays, checked against the rules turn by turn."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Cell, Position, SnakeState, body_cells
from snake_pz.formats.battlesnake_export import recorded_frames, recorded_lines
from snake_pz.formats.geese_episode import recorded_episode
from snake_pz.formats.recorded import RecordedGame
from snake_pz.replay.given import Drawn, lay, undrawn
from snake_pz.replay.recording import Recorder, Replay

MOST_BYTES = 256_000_000
"""A longer file is no game."""
_MOST_TRIES = 4**6


class Imported(NamedTuple):
    """A game of another program.

    Attributes:
        replay: the game, as far as it goes by the rules.
        differences: what is otherwise in the recording on the first turn that does not; none if all of it went by them.
    """

    replay: Replay
    differences: tuple[str, ...]


def read_recorded(path: str | Path) -> RecordedGame:
    """A game in a file: Battlesnake's frames, the lines of its command-line client, or an episode of Kaggle's geese.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is none of these, or a field is missing or out of its range.
    """
    path = Path(path)
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} must have at most {MOST_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        text = path.read_text(encoding="utf-8")
        try:
            documents = [json.loads(text)]
        except json.JSONDecodeError:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    first: Any = documents[0] if documents else None
    try:
        if not documents or not all(isinstance(one, dict) for one in documents):
            raise ValueError("expected an object")
        if len(documents) > 1:
            return recorded_lines(documents)
        if "steps" in first:
            return recorded_episode(first)
        if "frames" in {key.lower() for key in first}:
            return recorded_frames(first)
        raise ValueError(f"expected Battlesnake's frames or an episode with steps, got an object with {sorted(first)[:8]}")
    except ValueError as error:
        raise ValueError(f"{path} is no game that can be imported: {error}") from None


def import_game(recorded: RecordedGame) -> Imported:
    """Play a recorded game by the rules, as far as both agree.

    What appeared on the board is taken from the recording. Moves that it does not tell, as those with which a snake went out,
    are those with which the turn ends as recorded.

    Raises:
        ValueError: its start is no position of a game.
    """
    rules, start = recorded.rules, recorded.positions[0]
    engine = SnakeEngine(undrawn(rules), 1)
    engine.load(SnakeState.from_positions(engine.rules, [start]))
    recorder = Recorder(engine, 0, recorded.names, start)
    differences: tuple[str, ...] = ()
    for moves, after in zip(recorded.moves, recorded.positions[1:], strict=True):
        before = engine.save()
        if before.over[0]:
            differences = _after_the_end(recorded, before, after)
            if differences:
                break
            continue
        for tried in islice(_tries(moves), _MOST_TRIES):
            engine.load(before)
            engine.step(np.array([tried], np.int8))
            drawn = Drawn(_missing(engine, "food", after.food), _missing(engine, "hazard", after.hazards))
            lay(engine.state, drawn)
            differences = tuple(_differences(engine.state, recorded, after))
            if not differences:
                break
        if differences:
            break
        recorder.turn(np.array(tried), drawn)
    return Imported(dataclasses.replace(recorder.replay(), rules=rules), differences)


def _tries(moves: Sequence[int | None]) -> Iterator[tuple[int, ...]]:
    """The moves of a turn, with all directions for those that are not known."""
    return product(*(range(4) if move is None else (move,) for move in moves))


def _missing(engine: SnakeEngine, what: str, cells: Sequence[Cell]) -> tuple[int, ...]:
    """Flat cells that a recording lists more often than the board."""
    width, there = engine.rules.width, getattr(engine.state, what)[0]
    listed = Counter(y * width + x for x, y in cells)
    return tuple(cell for cell, times in sorted(listed.items()) for _ in range(times - int(there[cell])))


def _differences(state: SnakeState, recorded: RecordedGame, after: Position) -> Iterator[str]:
    """What a position has otherwise than the state, in words."""
    width, turn = recorded.rules.width, int(state.turn[0])

    def words(flat: Sequence[int]) -> str:
        return " ".join(f"({cell % width}, {cell // width})" for cell in flat)

    for snake, name in enumerate(recorded.names):
        alive, listed = bool(state.alive[0, snake]), bool(after.bodies[snake])
        if alive != listed:
            yield f"turn {turn}: {name} is {'in' if listed else 'out'}, by the rules {'in' if alive else 'out'}"
        elif alive:
            body, expected = [y * width + x for x, y in after.bodies[snake]], body_cells(state, 0, snake).tolist()
            if body != expected:
                yield f"turn {turn}: {name} is on {words(body)}, by the rules on {words(expected)}"
            health = int(state.health[0, snake])
            if after.health is not None and after.health[snake] != health:
                yield f"turn {turn}: {name} has health {after.health[snake]}, by the rules {health}"
    for what, field, cells in (("food", "food", after.food), ("hazard", "hazards", after.hazards)):
        listed_cells = Counter(y * width + x for x, y in cells)
        there = np.repeat(np.arange(state.food.shape[1]), getattr(state, what)[0]).tolist()
        if gone := sorted((Counter(there) - listed_cells).elements()):
            yield f"turn {turn}: no {field} on {words(gone)}, by the rules there is"


def _after_the_end(recorded: RecordedGame, over: SnakeState, after: Position) -> tuple[str, ...]:
    """What goes on after the game is over by the rules. The official engine may list the last position again."""
    moved = [
        name
        for snake, name in enumerate(recorded.names)
        if over.alive[0, snake]
        and [y * recorded.rules.width + x for x, y in after.bodies[snake]] != body_cells(over, 0, snake).tolist()
    ]
    return tuple(f"turn {after.turn}: {name} moves, by the rules the game is over" for name in moved)
