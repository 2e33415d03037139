"""The rules of a game as data: one frozen dataclass, a field a rule. Nothing here plays; `dynamics` does."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

Edge = Literal["wall", "wrap"]
Growth = Literal["same_turn", "next_turn"]
HeadToHead = Literal["all_die", "longest_survives"]
Reverse = Literal["straight", "dies", "is_a_move"]
Hunger = Literal["none", "health"]
DyingBlock = Literal["collided", "all"]

MAX_SIDE = 128
"""Longest side of a board, in cells: a flat cell number must fit into int16."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """What one game is played by. Immutable; derive a variant with `rules.replace(field=value)`.

    Raises:
        ValueError: a field is out of its range, or the board is too small for its snakes.
    """

    width: int = 11
    """Cells in a row, 2 to 128."""
    height: int = 11
    """Cells in a column, 2 to 128."""
    num_snakes: int = 4
    """Snakes at the start, at least 1."""
    start_length: int = 3
    """Segments of each snake at the start, at least 1."""
    edge: Edge = "wall"
    """`wall`: a head that leaves the board dies. `wrap`: it comes in on the other side."""
    growth: Growth = "same_turn"
    """`same_turn`: the tail stays on the turn of eating. `next_turn`: the tail moves on and its new cell is then doubled, so
    that it stays on the turn after; a snake of one dies of it, its tail being where its head is."""
    head_to_head: HeadToHead = "longest_survives"
    """Several heads on one cell. `all_die`: nobody survives. `longest_survives`: the one longest does; equal ones die."""
    reverse: Reverse = "straight"
    """A move opposite to the last executed one. `straight`: the snake goes straight on. `dies`: it is removed before it moves.
    `is_a_move`: its head goes there, into its own neck if it is three long or longer."""
    dying_block: DyingBlock = "collided"
    """Which bodies of snakes that die this turn still stop a head. `collided`: of those that die by collision, head-on
    included; the bodies of those that die at a wall, of hunger, in a hazard or by reversing are gone. `all`: all of them."""
    food_initial: int = 3
    """Pieces of food on the board at the start (fewer if there are fewer free cells)."""
    food_minimum: int = 3
    """Pieces of food on the board at the end of every turn (fewer if there are fewer free cells)."""
    food_chance: float = 0.0
    """Probability, 0 to 1, that one more piece appears on a turn that needed none for the minimum."""
    hunger: Hunger = "health"
    """`none`. `health`: one unit a turn, full again on eating, dead at 0."""
    max_health: int = 100
    """Full health in turns, 1 to 30,000; it only matters with hunger or hazards."""
    hazard_damage: int = 0
    """Health lost on a turn that ends with the head on a hazard without food, for each time the cell is listed. There are only
    the hazards that a position was set up with."""
    max_turns: int | None = None
    """After this many turns the game ends by the rules: who lives is ranked by length. None: no such end."""

    def __post_init__(self) -> None:
        """Check every field."""
        for name, literal in _choices().items():
            if getattr(self, name) not in literal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, literal))}, got {getattr(self, name)!r}")
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if name == "max_turns" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{name} must be an int, got {value!r}")
            if value < low:
                raise ValueError(f"{name} must be >= {low}, got {value}")
            if value > high:
                raise ValueError(f"{name} must be <= {high}, got {value}")
        if isinstance(self.food_chance, bool) or not isinstance(self.food_chance, int | float):
            raise ValueError(f"food_chance must be a number, got {self.food_chance!r}")
        if not 0 <= self.food_chance <= 1:
            raise ValueError(f"food_chance must be between 0 and 1, got {self.food_chance}")
        most = sum(len(ring) // (self.start_length + 1) for ring in self.rings())
        if self.num_snakes > most:
            raise ValueError(
                f"a {self.width}x{self.height} board has room for at most {most} snakes of start_length {self.start_length}, "
                f"got num_snakes={self.num_snakes}: enlarge the board or lower num_snakes or start_length"
            )

    @classmethod
    def classic(cls, **changes: Any) -> Rules:
        """The default game: 11x11, walls, four snakes, the longest survives head-on, hunger of 100 turns."""
        return cls.from_fields(changes)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], base: Rules | None = None) -> Rules:
        """`base` (default: classic) with these fields changed.

        Raises:
            ValueError: a name that is no rule, with the nearest one that is.
        """
        check_names("rule", fields, [field.name for field in dataclasses.fields(cls)])
        return dataclasses.replace(base if base is not None else cls(), **fields)

    def replace(self, **changes: Any) -> Rules:
        """A copy with these fields changed."""
        return self.from_fields(changes, self)

    @property
    def num_cells(self) -> int:
        """Cells of the board."""
        return self.width * self.height

    def rings(self) -> list[list[int]]:
        """The board's concentric rectangles that are closed paths, outermost first, each as flat cells in clockwise order.

        Snakes start along these, equally spaced, so that on a square board two or four of them see the same game.
        """
        rings = []
        for inset in range(min(self.width, self.height) // 2):
            left, top, right, bottom = inset, inset, self.width - 1 - inset, self.height - 1 - inset
            path = [(x, top) for x in range(left, right)]
            path += [(right, y) for y in range(top, bottom)]
            path += [(x, bottom) for x in range(right, left, -1)]
            path += [(left, y) for y in range(bottom, top, -1)]
            rings.append([y * self.width + x for x, y in path])
        return rings


_RANGES: list[tuple[str, int, int]] = [
    ("width", 2, MAX_SIDE),
    ("height", 2, MAX_SIDE),
    ("num_snakes", 1, 1000),
    ("start_length", 1, 10_000),
    ("food_initial", 0, MAX_SIDE * MAX_SIDE),
    ("food_minimum", 0, MAX_SIDE * MAX_SIDE),
    ("max_health", 1, 30_000),
    ("hazard_damage", -30_000, 30_000),
    ("max_turns", 1, 2**30),
]


def _choices() -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(Rules)
    return {name: get_args(hint) for name, hint in hints.items() if getattr(hint, "__origin__", None) is Literal}


def check_names(kind: str, given: Mapping[str, Any], known: list[str]) -> None:
    """Refuse the first key of `given` that is not in `known`.

    Args:
        kind: what such a key is called in the message, "rule" for example.
        given: keys to check.
        known: all valid keys.

    Raises:
        ValueError: with the nearest valid key and the list of all of them.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"unknown {kind} {name!r}{hint}; the {kind}s are {', '.join(known)}")
