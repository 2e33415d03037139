"""Replays: rules, seed and actions of one game. Loading one plays the game again and checks it against the recorded hashes.

The file is JSON lines. The first is a header with "format", "version", "rules", "seed" and "names". Then one line per turn such
as ["uurd", "1f3a"]: a letter for each snake (up, right, down, left, x for an invalid action, - for a dead snake) and 4
hexadecimal digits of a hash of the game after this turn and all earlier turns. The last line is {"turns": ..., "hash": ...}
with all 32 digits; it is missing if the recording was cut short.

A game of another program, version 2, has its "start" in the header, and in a turn's line, third, the flat cells on which food
and hazards appeared after the turn: ["uurd", "1f3a", [[17], []]].
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import Position, SnakeState, body_cells
from snake_pz.files import write_text
from snake_pz.ranges import game_seed
from snake_pz.replay.given import Drawn, drawn_of_json, lay, start_as_json, start_of_json, undrawn
from snake_pz.replay.page import frame, page
from snake_pz.rules import Rules

FORMAT, VERSION, VERSION_GIVEN = "snake-pz replay", 1, 2
LETTERS = "urdlx-"
"""Letters of the actions 0 to 3, of an invalid action, and of no action."""


class Recorder:
    """Record one game while it is played.

    Args:
        engine: engine with one game, reset with `seed` and not yet stepped; of a batch use `SnakeEngine.game`.
        seed: seed of the game.
        names: names of the players by snake; None: `snake_0`, `snake_1`, ...
        start: the start of a game of another program, which was loaded into an engine of rules that are `undrawn`.

    Raises:
        ValueError: not one game at its start, or not one name per snake.
    """

    def __init__(
        self, engine: SnakeEngine, seed: int, names: Sequence[str] | None = None, start: Position | None = None
    ) -> None:
        turn = 0 if start is None else start.turn
        if engine.num_games != 1 or engine.state.turn[0] != turn or int(engine.state.seed[0]) != seed:
            raise ValueError(f"a recording needs one game at its start that was reset by seed {seed}")
        self.rules, self.seed = engine.rules, seed
        self.names = _names(engine.rules, names)
        self._engine, self._start, self._begun = engine, start, turn
        self._actions: list[str] = []
        self._drawn: list[Drawn] = []
        self._hashes: list[str] = []
        self._digest = _first_digest(engine.state)

    def turn(self, actions: NDArray[Any], drawn: Drawn | None = None) -> None:
        """Record the turn that the engine has just played; do nothing if the game was over before.

        Args:
            actions: (N,) or (1, N) absolute directions given to the engine.
            drawn: of a game of another program, what was laid on the board after the turn.
        """
        state = self._engine.state
        if state.turn[0] == self._begun + len(self._actions):
            return
        acted = state.alive[0] | state.just_died[0]
        moves = [
            LETTERS[int(move) if 0 <= move <= 3 else 4] if acts else LETTERS[5]
            for move, acts in zip(np.ravel(actions), acted, strict=True)
        ]
        self._digest = _digest(self._digest, state)
        self._actions.append("".join(moves))
        self._hashes.append(self._digest)
        self._drawn += [] if self._start is None else [drawn or Drawn()]

    def replay(self) -> Replay:
        """The replay of the game so far."""
        return Replay(
            self.rules, self.seed, self.names, tuple(self._actions), tuple(self._hashes), self._start, tuple(self._drawn)
        )


@dataclasses.dataclass(frozen=True)
class Replay:
    """A recorded game.

    Attributes:
        rules: rules of the game.
        seed: seed of the game.
        names: names of the players by snake.
        actions: for each turn a string with a letter of LETTERS for each snake.
        hashes: for each turn the first digits of a hash of the game after it and all earlier turns.
        start: the start of a game of another program; None: that of the seed.
        drawn: what appeared in such a game after each turn; of other games empty.
    """

    rules: Rules
    seed: int
    names: tuple[str, ...]
    actions: tuple[str, ...]
    hashes: tuple[str, ...]
    start: Position | None = None
    drawn: tuple[Drawn, ...] = ()

    def states(self) -> Iterator[SnakeState]:
        """Play the game again.

        Yields:
            The game (E = 1, a copy) at its start and after every turn.

        Raises:
            ValueError: the game differs from its recording, because the file was edited or this version plays differently.
        """
        for state in self._play():
            yield state.map(np.copy)

    def _play(self) -> Iterator[SnakeState]:
        """As `states`, but the engine's own state, which changes."""
        if self.start is None:
            engine = SnakeEngine(self.rules, 1)
            engine.reset(seeds=[self.seed])
        else:
            engine = SnakeEngine(undrawn(self.rules), 1)
            engine.load(SnakeState.from_positions(engine.rules, [self.start]))
        digest = _first_digest(engine.state)
        yield engine.state
        for turn, (letters, expected) in enumerate(zip(self.actions, self.hashes, strict=True), 1):
            moves = [LETTERS.index(letter) for letter in letters]
            engine.step(np.array([[move if move < 4 else -1 for move in moves]], np.int8))
            if self.drawn:
                lay(engine.state, self.drawn[turn - 1])
            digest = _digest(digest, engine.state)
            if not digest.startswith(expected):
                raise ValueError(
                    f"the game differs from its recording on turn {turn}: expected {expected}, got {digest[: len(expected)]}; "
                    "the file was changed, or this version plays by other rules"
                )
            yield engine.state

    def html(self) -> str:
        """An HTML document that plays the game and needs no other file."""
        return page(self.states(), self.rules, self.names)

    def _repr_html_(self) -> str:
        """The same document in a frame, for notebooks."""
        return frame(self.html())

    def save(self, path: str | Path) -> None:
        """Write the file. It appears whole or not at all."""
        header = {
            "format": FORMAT,
            "version": VERSION if self.start is None else VERSION_GIVEN,
            "rules": dataclasses.asdict(self.rules),
            "seed": self.seed,
            "names": self.names,
        }
        if self.start is not None:
            header["start"] = start_as_json(self.rules, self.start)
        lines: list[Any] = [header]
        for turn, (letters, digest) in enumerate(zip(self.actions, self.hashes, strict=True)):
            drawn = self.drawn[turn] if self.drawn else Drawn()
            lines.append([letters, digest[:4], *([drawn] if any(drawn) else [])])
        lines.append({"turns": len(self.actions), "hash": self.hashes[-1] if self.hashes else ""})
        write_text(Path(path), "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    @classmethod
    def load(cls, path: str | Path) -> Replay:
        """Read a file and play the game again to check it.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is no replay, has another version of the format, or its game differs from the recording.
        """
        if not Path(path).is_file():
            inside = Path(path) / "game.jsonl"  # as in the folder of a training run
            hint = f"did you mean {inside}?" if inside.is_file() else "expected a file that --record or Replay.save wrote"
            raise FileNotFoundError(f"no replay at {str(path)!r}: {hint}")
        try:
            lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
            header = lines[0]
            if header.get("format") != FORMAT:
                raise ValueError(f"its format is {header.get('format')!r}")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no {FORMAT}: it is not even text") from error
        except (json.JSONDecodeError, IndexError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no {FORMAT}: {error}") from error
        if header.get("version") not in (VERSION, VERSION_GIVEN):
            raise ValueError(
                f"{path} has version {header.get('version')!r} of the format, expected {VERSION} or {VERSION_GIVEN}"
            )
        try:
            rules = Rules.from_fields(header["rules"])
            names = _names(rules, header["names"])
            ends = len(lines) > 1 and isinstance(lines[-1], dict)
            start = start_of_json(rules, header["start"]) if header["version"] == VERSION_GIVEN else None
            turns: list[tuple[str, str]] = []
            found: list[Drawn] = []
            for letters, digest, *more in lines[1 : -1 if ends else None]:
                turns.append((letters, digest))
                if start is not None:
                    found.append(drawn_of_json(rules, *more))
                elif more:
                    raise ValueError(f"turn {len(turns)} has more than an action for each snake and a hash")
            if not all(re.fullmatch("[0-9a-f]{4}", digest) for _, digest in turns):
                raise ValueError("a turn lacks its 4 hexadecimal digits")
            broken = [
                k for k, (letters, _) in enumerate(turns, 1) if len(letters) != rules.num_snakes or set(letters) - set(LETTERS)
            ]
            if broken:
                raise ValueError(f"turn {broken[0]} has no action for each of {rules.num_snakes} snakes")
            hashes = [digest for _, digest in turns]
            if ends:
                if lines[-1]["turns"] != len(turns):
                    raise ValueError(f"it should have {lines[-1]['turns']} turns, but has {len(turns)}")
                if turns and not re.fullmatch("[0-9a-f]{32}", lines[-1]["hash"]):
                    raise ValueError("its last line lacks the hash, 32 hexadecimal digits")
                hashes[-1:] = [lines[-1]["hash"]] if turns else []
            if type(header["seed"]) is not int:
                raise ValueError(f"its seed must be a whole number, got {header['seed']!r}")
            letters = tuple(letters for letters, _ in turns)
            replay = cls(rules, game_seed(header["seed"]), names, letters, tuple(hashes), start, tuple(found))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{path} is a damaged {FORMAT}: {error}") from error
        for _ in replay._play():  # without copies, which take longer than the turns
            pass
        return replay


def _names(rules: Rules, names: Sequence[str] | None) -> tuple[str, ...]:
    found = tuple(names) if names is not None else tuple(f"snake_{i}" for i in range(rules.num_snakes))
    if len(found) != rules.num_snakes or not all(isinstance(name, str) for name in found):
        raise ValueError(f"expected a name for each of {rules.num_snakes} snakes, got {list(found)}")
    return found


def _first_digest(state: SnakeState) -> str:
    return _digest("", state)


def _digest(before: str, state: SnakeState) -> str:
    """32 hexadecimal digits for the game and, through `before`, all earlier turns; independent of the layout of the arrays."""
    digest = hashlib.blake2b(before.encode(), digest_size=16)
    # A truncated game ranks its living snakes without being over; these ranks are no outcome of play.
    state = state._replace(rank=np.where(state.alive & ~state.over[:, None], 0, state.rank))
    for name in ("turn", "alive", "heading", "health", "length", "cause", "killer", "rank", "food", "hazard", "over"):
        digest.update(np.ascontiguousarray(getattr(state, name)).astype("<i8").tobytes())
    for snake in np.flatnonzero(state.alive[0]):
        digest.update(body_cells(state, 0, int(snake)).astype("<i8").tobytes())
    return digest.hexdigest()


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names short enough to show: paths as file names without suffix, equal names numbered."""
    short = [Path(name).stem if name.endswith(".zip") or "/" in name or "\\" in name else name for name in names]
    often, seen = Counter(short), Counter[str]()
    shown = []
    for name in short:
        seen[name] += 1
        shown.append(f"{name} {seen[name]}" if often[name] > 1 else name)
    return shown
