"""Write docs/rules.md from `Rules`, the corner cases and the recorded transitions that the tests run.

    python tests/support/rules_page.py            writes the page
    python tests/support/rules_page.py --check    exits 1 if the page differs from what this writes

`test_rules_page` plays every case and compares the page, so neither can disagree with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from snake_pz import Rules
from snake_pz.rules import MAX_SIDE
from tests.support.official_rules import read
from tests.support.preset_cases import CASES, PRESETS, Case, expected, position

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
CONSTRUCTORS = {name: f'Rules.battlesnake("{name}")' for name in PRESETS} | {
    "classic": "Rules.classic()",
    "geese": "Rules.hungry_geese()",
}
ACROSS = 6  # positions side by side

INTRODUCTION = """\
# The rules

<!-- Written by tests/support/rules_page.py; edit that, or the tables' sources, and run it. -->

Rules are data: an immutable `Rules` with one field per rule. A preset is a set of values, and any field can be changed:

```python
from snake_pz import Rules, snake_v0

rules = Rules.battlesnake("royale", width=7, height=7, num_snakes=2)
env = snake_v0.parallel_env(rules=rules)
print(rules.replace(edge="wrap").edge)
```

- `Rules.classic()` is the default game.
- `Rules.battlesnake(mode)` is Battlesnake as its official engine plays it (`github.com/BattlesnakeOfficial/rules`, commit
  87e094e), in the modes `standard`, `wrapped`, `constrictor`, `solo` and `royale`.
- `Rules.hungry_geese()` is Hungry Geese as Kaggle plays it (`kaggle-environments` 1.33.2).

Commands take presets as `--rules classic`, `battlesnake`, `battlesnake:wrapped` (or another mode) and `hungry_geese`, and have
options for the board and the number of snakes: `--width`, `--height`, `--num-snakes`. All other fields are set in Python, as in
`make_sb3_env("greedy", env_kwargs={"rules": rules})`.

## A turn

All snakes move at the same time; outcomes are judged on the board after all moves. No outcome depends on a snake's index, with
two exceptions that the official engines have: contested food in Hungry Geese, and in Battlesnake which of several equally long
snakes is the *killer*. The stages of a turn:

1. **Move.** Each head moves one cell, and each tail leaves its cell, unless the snake eats on this turn and `growth` is
   `same_turn`. Reversals and invalid moves are handled here; with `own_body="at_once"`, so is a head in its own body.
2. **Hunger.** Each snake loses 1 health, or on some turns a segment.
3. **Hazard.** A head on a hazard loses health, once for each time the cell is listed, unless there is food on the cell. A snake
   that has no health left dies of the hazard, even if it was starving.
4. **Eat.** Every head on food eats and has full health again, which saves a snake at health 0. With `growth="next_turn"` the
   tail's cell is doubled now, so the tail stays on the following turn.
5. **Die.** First snakes without health, off the board, or removed during the move. Then collisions, all judged on the same
   board; the first of these that applies to a head is the cause: its own body, the body of another snake, another head. Bodies
   of snakes that die in a collision on this turn still block others; bodies of snakes that die otherwise are removed first.
6. **Board.** In `constrictor` food is removed, health is full and every tail that is not yet doubled is doubled; in `royale`
   hazards are set anew; food appears.
7. **End.** The game is over if too few snakes are left or `max_turns` have been played. A snake that dies on a later turn is
   placed better; snakes alive at the end are placed by length.

## Presets

The fields in which presets differ; all fields are listed [below](#every-rule).

"""

QUIRKS = f"""\
## Kept as the official engines have it

- **Battlesnake.** A snake of length 1 that eats dies in its own doubled tail. Reversing is a move like any other, deadly from
  length 3 on. Food listed twice on a cell lengthens a snake by two. A hazard with negative damage heals, even a starving snake.
- **Battlesnake, constrictor.** There is no food at the start, because the ruleset clears what the map placed; later the map
  continues to spawn food, and food that is not eaten on the next turn is removed. The first move adds no length. Dead snakes
  grow once more, which shows only in their last bodies.
- **Battlesnake, royale.** The damage of a turn comes from the hazards as they were before the turn. Hazards that were set up
  are cleared on each turn before the first row or column is due.
- **Battlesnake, food.** Only its four neighbours are near a head, and even in `wrapped` not those across the edge. Food may
  appear on hazards and on bodies of dead snakes. The official chance of 15 spawns on 14 turns of 100; hence
  `food_chance=0.14`.
- **Hungry Geese.** Contested food goes to the goose with the lowest index. Two geese of length 1 may swap cells. A goose that
  reverses is removed before it moves, at any length; its first action cannot reverse. A goose in its own body dies before
  hunger shortens it, and blocks nobody.

## Different from the official engines

- A game ends on the turn that decides it. Battlesnake's engine reports the end one call later.
- Random numbers differ: cells of food and sides of `royale` have the same distribution, not the same values. A game is a
  function of its rules, its seed and its actions.
- A game of Battlesnake with one snake lasts until it dies, as in `solo`, unless `ends_with="one_always"`.
- Snakes start on the points of Battlesnake's standard map on square boards of side 7 or more with up to 8 snakes. Elsewhere
  they start curled up on rings, without the map's food.
- Battlesnake has only a winner; here every snake has a place, and snakes that die on the same turn share one. In Hungry Geese
  those are placed by their length before that turn, as in its rewards.
- Sides are 2 to {MAX_SIDE} cells. A cell holds at most 255 segments or pieces of food. With `growth="same_turn"` a snake grows
  by one segment, however often a cell is listed as food.

## Corner cases

The tests play every row with every preset. Presets that agree throughout a table share a column. Numbers refer to the
[positions](#positions) below. A dash: the position cannot arise. In `constrictor` every tail is already doubled when the turn
begins, so no tail leaves its cell, and bodies are one segment longer than drawn. `solo` is meant for one snake; the tables show
what it does with more.

"""

PROOF = """\
## Proof

`tests/data/` holds recorded results of the official engines for thousands of positions: from games, random ones, and some
written by hand ([formats](../tests/data/README.md)). This command replays such files through the engine, prints the number of
agreements for each kind of event, and exits 0 only if all agree:

```bash
python tests/support/official_rules.py tests/data/*.jsonl.gz
```

It compares bodies (also of dead snakes), health, food and its order, causes of death and killers, hazards, and whether the game
is over; for geese also status and reward. All agree. Where food, hazards and snakes appear is random; `test_spawning.py` in
`tests/game/core` tests the distributions.

"""

POSITIONS = """\
## Positions

`A` is a head and `a` its body, `+` the tail of a snake that ate on the turn before, `*` food, `#` a hazard. Arrows are moves.
Where two segments share a cell, the one nearer to its head is drawn.

"""


@functools.cache
def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION, _presets(), QUIRKS]
    for section in dict.fromkeys(case.section for case in CASES):
        parts.append(f"### {section}\n\n{_cases([case for case in CASES if case.section == section])}\n")
    parts += [POSITIONS, _positions(), PROOF, _records(), "\n## Every rule\n\n", _fields()]
    return "".join(parts)


def _table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def _value(value: object) -> str:
    return f"`{value!r}`".replace("'", '"')


def _presets() -> str:
    rows = [["rule", *(f"`{CONSTRUCTORS[name]}`" for name in PRESETS)]]
    for field in dataclasses.fields(Rules):
        values = [_value(getattr(rules, field.name)) for rules in PRESETS.values()]
        if len(set(values)) > 1:
            rows.append([f"`{field.name}`", *values])
    return _table(rows) + "\n"


def _cases(cases: list[Case]) -> str:
    """A table in which presets with equal columns share one."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for preset in PRESETS:
        columns.setdefault(tuple(expected(case, preset) for case in cases), []).append(preset)
    rows = [["", "case", *(", ".join(presets) for presets in columns.values())]]
    for number, case in enumerate(cases):
        rows.append([str(CASES.index(case) + 1), case.name, *(column[number] for column in columns)])
    return _table(rows)


def _positions() -> str:
    """All boards, some side by side."""
    drawings = [_drawing(number, case) for number, case in enumerate(CASES, 1)]
    lines = ["```text"]
    for first in range(0, len(drawings), ACROSS):
        row = drawings[first : first + ACROSS]
        height = max(len(drawing) for drawing in row)
        for line in range(height):
            parts = [drawing[line] if line < len(drawing) else "" for drawing in row]
            lines.append("".join(part.ljust(18) for part in parts).rstrip())
        lines.append("")
    return "\n".join([*lines[:-1], "```", ""]) + "\n"


def _drawing(number: int, case: Case) -> list[str]:
    """A caption, then the rows of the board."""
    width, height = case.board
    here = position(case, Rules.classic(num_snakes=1))
    rows = [["."] * width for _ in range(height)]
    for x, y in here.hazards:
        rows[y][x] = "#"
    for x, y in here.food:
        rows[y][x] = "*"
    grown = ["+" in text for text in case.snakes.split("|")]
    for name, body, ate in zip("ABC", here.bodies, grown, strict=False):
        for place, (x, y) in reversed(list(enumerate(body))):
            rows[y][x] = name if place == 0 else "+" if ate and place == len(body) - 1 else name.lower()
    arrows = "".join(f" {name}{'↑→↓←'['URDL'.index(move)]}" for name, move in zip("ABC", case.moves, strict=False))
    return [f"{number:>2}{arrows}", *(" ".join(row) for row in rows)]


def _records() -> str:
    rows = [["file", "records"]]
    for path in sorted((ROOT / "tests" / "data").glob("*.jsonl.gz")):
        rows.append([f"`{path.name}`", str(len(read(path)))])
    return _table(rows)


def _fields() -> str:
    """Every field of `Rules` with its default and its docstring."""
    body = ast.parse((ROOT / "snake_pz" / "rules.py").read_text()).body
    rules = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == "Rules")
    rows = [["rule", "default", "what"]]
    for node, following in zip(rules.body, rules.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert isinstance(following, ast.Expr), f"{node.target.id} has no docstring"
            assert isinstance(following.value, ast.Constant), f"{node.target.id} has no docstring"
            text = re.sub(r"\s+", " ", str(following.value.value))
            rows.append([f"`{node.target.id}`", _value(getattr(Rules(), node.target.id)), text])
    return _table(rows)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            print("docs/rules.md is not up to date: run python tests/support/rules_page.py")
            return 1
    elif arguments:
        print(__doc__)
        return 2
    else:
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
