"""The rules of a game as data: one frozen dataclass, a field a rule. Nothing here plays; `dynamics` does."""

from __future__ import annotations

import dataclasses
import difflib
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
    start: Start = "rings"
    """Where snakes start. `rings`: stretched out along concentric rectangles, equally spaced, all going round the same way.
    `battlesnake`: curled up on the corner and the cardinal points of Battlesnake's standard map, with its food, but none with
    growth on `every_turn` (on boards that are not square, smaller than 7 or with more than 8 snakes: on the rings, without
    that food). `scattered`: curled up on random cells."""
    edge: Edge = "wall"
    """`wall`: a head that leaves the board dies. `wrap`: it comes in on the other side."""
    growth: Growth = "same_turn"
    """`same_turn`: the tail stays on the turn of eating. `next_turn`: the tail moves on and its new cell is then doubled, so
    that it stays on the turn after; a snake of one dies of it, its tail being where its head is. `every_turn`: as `next_turn`,
    and after each turn every tail is doubled that is not so already, every snake is in full health and the food that nobody
    ate is gone. A snake of one has no tail to double."""
    max_length: int | None = None
    """A longer snake loses its tail as it moves. None: no such limit."""
    head_to_head: HeadToHead = "longest_survives"
    """Several heads on one cell. `all_die`: nobody survives. `longest_survives`: the one longest does; equal ones die."""
    tied_killer: TiedKiller = "nobody"
    """Who is responsible for a death if several are and none is longest. `nobody`, or the one with the `lowest_index`."""
    own_body: OwnBody = "with_others"
    """When a head in its own body is judged. `with_others`: with the other collisions. `at_once`: as it moves, before hunger
    shortens it, and it counts as one that dies by its move."""
    reverse: Reverse = "straight"
    """A move opposite to the last executed one. `straight`: the snake goes straight on. `dies`: it is removed before it moves.
    `is_a_move`: its head goes there, into its own neck if it is three long or longer. A curled up snake that has not moved yet
    cannot reverse."""
    invalid_move: InvalidMove = "straight"
    """A move that is no direction. `straight`: from the second segment through the head, up where these coincide. `dies`: the
    snake is removed before it moves. The environment refuses such moves."""
    dying_block: DyingBlock = "collided"
    """Which bodies of snakes that die this turn still stop a head. `collided`: of those that die by collision, head-on
    included; the bodies of those that die at a wall, of hunger, in a hazard or by their move are gone. `all`: all of them."""
    food_initial: int = 3
    """Pieces of food on the board at the start (fewer if there are fewer free cells)."""
    food_minimum: int = 3
    """Pieces of food on the board at the end of every turn (fewer if there are fewer free cells)."""
    food_chance: float = 0.0
    """Probability, 0 to 1, that one more piece appears on a turn that needed none for the minimum."""
    food_near_heads: bool = True
    """Whether food may appear, after a turn, right beside a head, seams not counted."""
    contested_food: ContestedFood = "all_eat"
    """Several heads on one piece. `all_eat`, or the one with the `lowest_index` takes it, be it one that dies at once."""
    hunger: Hunger = "health"
    """`none`. `health`: one unit a turn, full again on eating, dead at 0. `segment`: a tail every `hunger_every` turns, dead
    when nothing is left."""
    hunger_every: int = 40
    """Turns between two losses by `segment` hunger, at least 1."""
    max_health: int = 100
    """Full health in turns, 1 to 30,000; it only matters with hunger or hazards."""
    hazard_damage: int = 0
    """Health lost on a turn that ends with the head on a hazard without food, for each time the cell is listed; negative heals.
    Who is out of health then dies of the hazard, starving or not. There are the hazards that a position was set up with, and
    those of `shrink_every`."""
    shrink_every: int = 0
    """After every so many turns one more outer line, drawn at random, is hazard. 0: never."""
    max_turns: int | None = None
    """After this many turns the game ends by the rules: who lives is ranked by length. None: no such end."""
    ends_with: EndsWith = "one"
    """How many snakes alive end the game. `one`, but `none` if one snake started alone; `one_always`, also then; or `none`."""
    tied_deaths: TiedDeaths = "share"
    """Placement of those that die on the same turn. They `share` a place, or are ranked `by_length` before that turn."""

    def __post_init__(self) -> None:
        """Check every field."""
        for name, literal in _choices().items():
            if getattr(self, name) not in literal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, literal))}, got {getattr(self, name)!r}")
        check_ranges(self, _RANGES)
        if not isinstance(self.food_near_heads, bool):
            raise ValueError(f"food_near_heads must be True or False, got {self.food_near_heads!r}")
        if self.start != "rings" and self.start_length > 251:  # a cell counts at most 255 segments, and four heads may come
            raise ValueError(f"start_length must be <= 251 where snakes start curled up, got {self.start_length}")
        most = sum(self.ring_room())
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
    def battlesnake(cls, mode: Battlesnake = "standard", **changes: Any) -> Rules:
        """Battlesnake, as the official engine plays it (github.com/BattlesnakeOfficial/rules, commit 87e094e).

        Its settings by default: food at least 1 and a chance of 15 (which spawns on 14 turns of 100), 14 damage a hazard, in
        `royale` one more line of hazard every 25 turns; 11x11, four snakes, in `solo` one. Quirks of that engine are kept: a
        snake of length 1 that eats dies in its own doubled tail, the first move of `constrictor` adds no length. Its games end
        here on the turn that decides them; the official engine says so when it is called once more.

        Raises:
            ValueError: no such mode, or a field that is no rule.
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
        """Hungry Geese, as Kaggle plays it (kaggle-environments 1.33.2): 11x7, a torus, four geese, 200 states.

        Contested food goes to the goose of the lowest index, the one rule here that depends on a snake's number.

        Raises:
            ValueError: a field that is no rule.
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

    @property
    def uses_health(self) -> bool:
        """Whether health can run out: there is that hunger, or hazards do damage."""
        return self.hunger == "health" or self.hazard_damage != 0

    def ring_room(self) -> list[int]:
        """How many snakes can start on each of `rings()`, with a free cell between them; scattered ones anywhere."""
        if self.start == "scattered":
            return [self.num_cells]
        apart = self.start_length + 1 if self.start == "rings" else 2
        return [len(ring) // apart for ring in self.rings()]

    def rings(self) -> list[list[int]]:
        """The board's concentric rectangles that are closed paths, outermost first, each as flat cells in clockwise order.

        Snakes start along these, equally spaced, so that on a square board two or four of them that fit on one see the same
        game.
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
