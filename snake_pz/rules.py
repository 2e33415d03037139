"""The rules of a game as data: one frozen dataclass with one field per rule. `core.dynamics` plays by them."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

from snake_pz.ranges import Range, check_ranges

Edge = Literal["wall", "wrap"]
Growth = Literal["same_turn", "next_turn", "every_turn"]
HeadToHead = Literal["all_die", "longest_survives"]
TiedKiller = Literal["nobody", "lowest_index"]
OwnBody = Literal["with_others", "at_once"]
Reverse = Literal["straight", "dies", "is_a_move"]
InvalidMove = Literal["straight", "dies"]
DyingBlock = Literal["collided", "all"]
ContestedFood = Literal["all_eat", "lowest_index"]
Hunger = Literal["none", "health", "segment"]
Start = Literal["rings", "battlesnake", "scattered"]
EndsWith = Literal["one", "one_always", "none"]
TiedDeaths = Literal["share", "by_length"]
Battlesnake = Literal["standard", "wrapped", "constrictor", "solo", "royale"]

MAX_SIDE = 128
"""Longest side of a board, in cells: a flat cell number must fit into int16."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of a game. Immutable: `rules.replace(field=value)` makes a variant.

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
    start: Start = "rings"
    """Where snakes start. `rings`: stretched out along concentric rectangles, equally spaced, all in the same sense of
    rotation. `battlesnake`: curled up (all segments on one cell) on the corner and cardinal points of Battlesnake's standard
    map, with that map's food, or without food if `growth` is `every_turn`; on boards that are not square, smaller than 7x7 or
    have more than 8 snakes: curled up on the rings, without that food. `scattered`: curled up on random cells."""
    edge: Edge = "wall"
    """`wall`: a snake whose head leaves the board dies. `wrap`: the head enters on the opposite side."""
    growth: Growth = "same_turn"
    """`same_turn`: the tail stays on the turn on which the snake eats. `next_turn`: the tail moves on that turn and its new
    cell is doubled (holds two segments), so the tail stays on the following turn; a snake of length 1 dies of this, because its
    tail is where its head is. `every_turn`: as `next_turn`, and at the end of every turn each tail that is not yet doubled is
    doubled, health is full, and uneaten food is removed. A snake of length 1 has no tail to double."""
    max_length: int | None = None
    """Segments beyond this number are cut from the tail as the snake moves. None: no limit."""
    head_to_head: HeadToHead = "longest_survives"
    """Several heads on one cell. `all_die`: all these snakes die. `longest_survives`: the single longest survives; if several
    are longest, all die."""
    tied_killer: TiedKiller = "nobody"
    """The killer where several snakes are responsible for a death and none of them is the longest: `nobody`, or the longest one
    with the `lowest_index`."""
    own_body: OwnBody = "with_others"
    """When a head in its own body is judged. `with_others`: with all other collisions. `at_once`: during the move, before
    hunger shortens the snake, which then counts as dead by its move."""
    reverse: Reverse = "straight"
    """A move opposite to the last executed one. `straight`: the snake goes straight on. `dies`: it is removed before it moves.
    `is_a_move`: the head goes there, into the snake's own neck from length 3 on. A curled up snake that has not moved yet
    cannot reverse."""
    invalid_move: InvalidMove = "straight"
    """An action that is no direction. `straight`: the snake moves from its second segment through its head, or up if both are
    on one cell. `dies`: it is removed before it moves. The environment rejects such actions."""
    dying_block: DyingBlock = "collided"
    """Which snakes that die on this turn still block other heads with their bodies. `collided`: those that die in a collision,
    head-on included; bodies of snakes that die at a wall, of hunger, in a hazard or by their move are removed first. `all`: all
    of them."""
    food_initial: int = 3
    """Pieces of food at the start, fewer if there are fewer free cells."""
    food_minimum: int = 3
    """Pieces of food to which the board is refilled after every turn, fewer if there are fewer free cells."""
    food_chance: float = 0.0
    """Probability, 0 to 1, that one more piece appears after a turn that needed none for the minimum."""
    food_near_heads: bool = True
    """Whether food that appears after a turn may lie directly beside a head. Neighbours across a seam do not count."""
    contested_food: ContestedFood = "all_eat"
    """Several heads on one piece of food. `all_eat`: each of these snakes eats. `lowest_index`: only the one with the lowest
    index does, even if it dies on that turn."""
    hunger: Hunger = "health"
    """`none`: no hunger. `health`: every turn costs 1 health, eating restores full health, a snake at 0 dies. `segment`: every
    `hunger_every` turns each snake loses a tail segment and dies if none is left."""
    hunger_every: int = 40
    """Turns from one loss by `segment` hunger to the next, at least 1."""
    max_health: int = 100
    """Full health in turns, 1 to 30,000; used only with `health` hunger or hazards."""
    hazard_damage: int = 0
    """Health lost on a turn that ends with the head on a hazard without food, once for each time the cell is listed as a
    hazard; a negative number heals. A snake that has no health left then dies of the hazard, even if it was starving. Hazards
    come from the position a game was set up with, and from `shrink_every`."""
    shrink_every: int = 0
    """Turns after which one more outer row or column, drawn at random, becomes a hazard, again and again. 0: never."""
    max_turns: int | None = None
    """Turns after which the game ends by the rules, with living snakes ranked by length. None: no limit."""
    ends_with: EndsWith = "one"
    """How few living snakes end the game. `one`: one, or none if a snake started alone. `one_always`: one, even then. `none`:
    the game ends when no snake is alive."""
    tied_deaths: TiedDeaths = "share"
    """Ranks of snakes that die on the same turn. `share`: they share a rank. `by_length`: ranked by length before that turn."""

    def __post_init__(self) -> None:
        """Check every field."""
        for name, literal in _choices().items():
            if getattr(self, name) not in literal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, literal))}, got {getattr(self, name)!r}")
        check_ranges(self, _RANGES)
        if not isinstance(self.food_near_heads, bool):
            raise ValueError(f"food_near_heads must be True or False, got {self.food_near_heads!r}")
        if self.start != "rings" and self.start_length > 251:  # a cell counts at most 255 segments; four heads may enter it
            raise ValueError(f"start_length must be <= 251 where snakes start curled up, got {self.start_length}")
        most = sum(self.ring_room())
        if self.num_snakes > most:
            raise ValueError(
                f"a {self.width}x{self.height} board has room for at most {most} snakes of start_length {self.start_length}, "
                f"got num_snakes={self.num_snakes}: enlarge the board or lower num_snakes or start_length"
            )

    @classmethod
    def classic(cls, **changes: Any) -> Rules:
        """The default game: 11x11 with walls, four snakes, the longest survives head-on, starvation after 100 turns."""
        return cls.from_fields(changes)

    @classmethod
    def battlesnake(cls, mode: Battlesnake = "standard", **changes: Any) -> Rules:
        """Battlesnake as its official engine plays it (github.com/BattlesnakeOfficial/rules, commit 87e094e).

        Defaults are the official ones: at least 1 piece of food and a food chance of 15 (which spawns on 14 turns of 100), 14
        damage per hazard, in `royale` one more hazard line every 25 turns; 11x11, four snakes, one in `solo`. Quirks of that
        engine are kept: a snake of length 1 that eats dies in its own doubled tail; the first move in `constrictor` adds no
        length. One difference: a game ends on the turn that decides it, which the official engine reports one call later.

        Raises:
            ValueError: an unknown mode or field, or a value out of its range.
        """
        if mode not in get_args(Battlesnake):
            raise ValueError(f"mode must be one of {', '.join(map(repr, get_args(Battlesnake)))}, got {mode!r}")
        fields: dict[str, Any] = {
            "start": "battlesnake",
            "growth": "next_turn",
            "tied_killer": "lowest_index",
            "reverse": "is_a_move",
            "food_initial": 0,
            "food_minimum": 1,
            "food_chance": 0.14,
            "food_near_heads": False,
            "hazard_damage": 14,
        }
        by_mode: dict[str, dict[str, Any]] = {
            "standard": {},
            "wrapped": {"edge": "wrap"},
            "constrictor": {"growth": "every_turn"},
            "solo": {"num_snakes": 1, "ends_with": "none"},
            "royale": {"shrink_every": 25},
        }
        return cls.from_fields(fields | by_mode[mode] | changes)

    @classmethod
    def hungry_geese(cls, **changes: Any) -> Rules:
        """Hungry Geese as Kaggle plays it (kaggle-environments 1.33.2): 11x7, wrapping edges, four geese, 200 states.

        Contested food goes to the goose with the lowest index, the only outcome in this game that depends on an index.

        Raises:
            ValueError: an unknown field, or a value out of its range.
        """
        fields: dict[str, Any] = {
            "width": 11,
            "height": 7,
            "start": "scattered",
            "start_length": 1,
            "edge": "wrap",
            "max_length": 99,
            "head_to_head": "all_die",
            "own_body": "at_once",
            "reverse": "dies",
            "invalid_move": "dies",
            "food_initial": 2,
            "food_minimum": 2,
            "contested_food": "lowest_index",
            "hunger": "segment",
            "max_turns": 199,
            "ends_with": "one_always",
            "tied_deaths": "by_length",
        }
        return cls.from_fields(fields | changes)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], base: Rules | None = None) -> Rules:
        """`base` (default: classic) with these fields changed.

        Raises:
            ValueError: an unknown field, with the nearest known one, or a value out of its range.
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

    @property
    def uses_health(self) -> bool:
        """Whether health can run out, by `health` hunger or by hazards."""
        return self.hunger == "health" or self.hazard_damage != 0

    def ring_room(self) -> list[int]:
        """How many snakes can start on each of `rings()` with a free cell between them; if `scattered`, on the whole board."""
        if self.start == "scattered":
            return [self.num_cells]
        apart = self.start_length + 1 if self.start == "rings" else 2
        return [len(ring) // apart for ring in self.rings()]

    def rings(self) -> list[list[int]]:
        """Concentric rectangles of the board that are closed paths, outermost first, each as flat cells in clockwise order.

        Snakes start on them, equally spaced: two or four snakes on one ring of a square board start from equivalent positions.
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


_RANGES = {
    "width": Range(2, MAX_SIDE),
    "height": Range(2, MAX_SIDE),
    "num_snakes": Range(1, 1000),
    "start_length": Range(1, 10_000),
    "food_initial": Range(0, MAX_SIDE * MAX_SIDE),
    "food_minimum": Range(0, MAX_SIDE * MAX_SIDE),
    "food_chance": Range(0, 1, whole=False),
    "max_length": Range(1, MAX_SIDE * MAX_SIDE, optional=True),
    "max_health": Range(1, 30_000),
    "hunger_every": Range(1, 2**30),
    "hazard_damage": Range(-30_000, 30_000),
    "shrink_every": Range(0, 2**30),
    "max_turns": Range(1, 2**30, optional=True),
}


@functools.cache  # evaluating annotations takes longer than all checks
def _choices() -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(Rules)
    return {name: get_args(hint) for name, hint in hints.items() if getattr(hint, "__origin__", None) is Literal}


def check_names(kind: str, given: Mapping[str, Any], known: list[str]) -> None:
    """Reject keys of `given` that are not in `known`.

    Args:
        kind: word for such a key in the message, "rule" for example.
        given: keys to check.
        known: all valid keys.

    Raises:
        ValueError: a key is unknown; the message has the nearest valid key and all valid keys.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"unknown {kind} {name!r}{hint}; the {kind}s are {', '.join(known)}")
