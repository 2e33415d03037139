"""Rules: defaults, variants, rings, and one clear sentence for each mistake."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from snake_pz.rules import Rules, check_names


def test_classic_is_the_default() -> None:
    rules = Rules.classic()
    assert rules == Rules()
    assert dataclasses.asdict(rules) == {
        "width": 11,
        "height": 11,
        "num_snakes": 4,
        "start_length": 3,
        "start": "rings",
        "edge": "wall",
        "growth": "same_turn",
        "max_length": None,
        "head_to_head": "longest_survives",
        "tied_killer": "nobody",
        "own_body": "with_others",
        "reverse": "straight",
        "invalid_move": "straight",
        "dying_block": "collided",
        "food_initial": 3,
        "food_minimum": 3,
        "food_chance": 0.0,
        "food_near_heads": True,
        "contested_food": "all_eat",
        "hunger": "health",
        "hunger_every": 40,
        "max_health": 100,
        "hazard_damage": 0,
        "shrink_every": 0,
        "max_turns": None,
        "ends_with": "one",
        "tied_deaths": "share",
    }


def differences(rules: Rules, base: Rules) -> dict[str, Any]:
    """The fields in which rules differ from others."""
    fields = dataclasses.asdict(base)
    return {name: value for name, value in dataclasses.asdict(rules).items() if value != fields[name]}


def test_battlesnake() -> None:
    standard = Rules.battlesnake()
    assert standard == Rules.battlesnake("standard")
    assert differences(standard, Rules.classic()) == {
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
    assert differences(Rules.battlesnake("wrapped"), standard) == {"edge": "wrap"}
    assert differences(Rules.battlesnake("constrictor"), standard) == {"growth": "every_turn"}
    assert differences(Rules.battlesnake("solo"), standard) == {"num_snakes": 1, "ends_with": "none"}
    assert differences(Rules.battlesnake("royale"), standard) == {"shrink_every": 25}
    assert Rules.battlesnake("royale", width=19, shrink_every=7) == Rules.battlesnake("royale").replace(
        width=19, shrink_every=7
    )
    with pytest.raises(
        ValueError, match="mode must be one of 'standard', 'wrapped', 'constrictor', 'solo', 'royale', got 'duel'"
    ):
        Rules.battlesnake("duel")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown rule 'colour'"):
        Rules.battlesnake("solo", colour=1)


def test_hungry_geese() -> None:
    assert differences(Rules.hungry_geese(), Rules.classic()) == {
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
    assert Rules.hungry_geese(num_snakes=8).num_snakes == 8


def test_variants() -> None:
    rules = Rules.classic(width=19, edge="wrap")
    assert (rules.width, rules.height, rules.edge) == (19, 11, "wrap")
    assert rules.num_cells == 209
    assert rules.replace(width=11, edge="wall") == Rules.classic()
    assert Rules.from_fields({"max_turns": 5}, rules) == rules.replace(max_turns=5)
    assert Rules.from_fields({}, rules) == rules
    assert hash(rules.replace()) == hash(rules)
    assert pickle.loads(pickle.dumps(rules)) == rules
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.width = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_snakes": 0}, "num_snakes must be >= 1, got 0"),
        ({"num_snakes": 1001}, "num_snakes must be <= 1000, got 1001"),
        ({"width": 1}, "width must be >= 2, got 1"),
        ({"height": 0}, "height must be >= 2, got 0"),
        ({"width": 129}, "width must be <= 128, got 129"),
        ({"height": 1000}, "height must be <= 128, got 1000"),
        ({"width": 11.0}, r"width must be an int, got 11\.0"),
        ({"width": "11"}, "width must be an int, got '11'"),
        ({"height": True}, "height must be an int, got True"),
        ({"num_snakes": None}, "num_snakes must be an int, got None"),
        ({"start_length": 0}, "start_length must be >= 1, got 0"),
        ({"food_initial": -1}, "food_initial must be >= 0, got -1"),
        ({"food_minimum": -1}, "food_minimum must be >= 0, got -1"),
        ({"food_chance": 1.5}, r"food_chance must be <= 1, got 1\.5"),
        ({"food_chance": -0.1}, r"food_chance must be >= 0, got -0\.1"),
        ({"food_chance": float("nan")}, "food_chance must be <= 1, got nan"),
        ({"food_chance": True}, "food_chance must be a number, got True"),
        ({"food_chance": "often"}, "food_chance must be a number, got 'often'"),
        ({"max_health": 0}, "max_health must be >= 1, got 0"),
        ({"max_health": 30_001}, "max_health must be <= 30000, got 30001"),
        ({"hazard_damage": -30_001}, "hazard_damage must be >= -30000"),
        ({"max_turns": 0}, "max_turns must be >= 1, got 0"),
        ({"max_turns": 1.5}, r"max_turns must be an int, got 1\.5"),
        ({"edge": "torus"}, "edge must be one of 'wall', 'wrap', got 'torus'"),
        ({"growth": None}, "growth must be one of 'same_turn', 'next_turn', 'every_turn', got None"),
        ({"head_to_head": "random"}, "head_to_head must be one of 'all_die', 'longest_survives'"),
        ({"reverse": True}, "reverse must be one of 'straight', 'dies', 'is_a_move', got True"),
        ({"hunger": "HEALTH"}, "hunger must be one of 'none', 'health', 'segment', got 'HEALTH'"),
        ({"start": "corners"}, "start must be one of 'rings', 'battlesnake', 'scattered', got 'corners'"),
        ({"tied_killer": None}, "tied_killer must be one of 'nobody', 'lowest_index', got None"),
        ({"own_body": ""}, "own_body must be one of 'with_others', 'at_once', got ''"),
        ({"invalid_move": "is_a_move"}, "invalid_move must be one of 'straight', 'dies', got 'is_a_move'"),
        ({"contested_food": "none"}, "contested_food must be one of 'all_eat', 'lowest_index', got 'none'"),
        ({"ends_with": 1}, "ends_with must be one of 'one', 'one_always', 'none', got 1"),
        ({"tied_deaths": "length"}, "tied_deaths must be one of 'share', 'by_length', got 'length'"),
        ({"food_near_heads": 1}, "food_near_heads must be True or False, got 1"),
        ({"max_length": 0}, "max_length must be >= 1, got 0"),
        ({"max_length": 2.0}, r"max_length must be an int, got 2\.0"),
        ({"hunger_every": 0}, "hunger_every must be >= 1, got 0"),
        ({"shrink_every": -1}, "shrink_every must be >= 0, got -1"),
        ({"shrink_every": None}, "shrink_every must be an int, got None"),
        ({"start": "battlesnake", "start_length": 252}, "start_length must be <= 251 where snakes start curled up, got 252"),
        ({"start": "scattered", "start_length": 252}, "start_length must be <= 251 where snakes start curled up, got 252"),
        ({"start": "battlesnake", "width": 2, "height": 2}, "a 2x2 board has room for at most 2 snakes of start_length 3"),
        ({"start": "scattered", "width": 2, "height": 3, "num_snakes": 7}, "a 2x3 board has room for at most 6 snakes"),
        ({"dying_block": []}, r"dying_block must be one of 'collided', 'all', got \[\]"),
        (
            {"width": 3, "height": 3},
            "a 3x3 board has room for at most 2 snakes of start_length 3, got num_snakes=4: enlarge the board or lower",
        ),
        ({"width": 4, "height": 4, "num_snakes": 5}, "a 4x4 board has room for at most 4 snakes"),
        ({"start_length": 200, "num_snakes": 1}, "a 11x11 board has room for at most 0 snakes of start_length 200"),
        (
            {"num_snake": 2},
            r"unknown rule 'num_snake' \(did you mean 'num_snakes'\?\); the rules are width, height, num_snakes",
        ),
        ({"heigth": 2}, r"unknown rule 'heigth' \(did you mean 'height'\?\)"),
        ({"zzz": 2}, "unknown rule 'zzz'; the rules are width"),
    ],
)
def test_refuses(fields: dict[str, Any], message: str) -> None:
    for make in (Rules.classic, Rules.classic().replace):
        with pytest.raises(ValueError, match=message):
            make(**fields)


def test_limits_are_within() -> None:
    for fields in (
        {"width": 2, "num_snakes": 1},
        {"width": 128, "height": 128, "num_snakes": 1000},
        {"max_health": 30_000},
        {"max_turns": 1},
    ):
        Rules.classic(**fields)


def test_check_names() -> None:
    check_names("colour", {"red": 1}, ["red", "green"])
    with pytest.raises(ValueError, match=r"^unknown colour 'rad' \(did you mean 'red'\?\); the colours are red, green$"):
        check_names("colour", {"red": 1, "rad": 2}, ["red", "green"])


@pytest.mark.parametrize(("width", "height"), [(2, 2), (2, 5), (3, 3), (5, 4), (11, 11), (6, 9)])
def test_rings_are_closed_paths_that_share_no_cell(width: int, height: int) -> None:
    rings = Rules(width=width, height=height, num_snakes=1, start_length=1).rings()
    assert len(rings) == min(width, height) // 2
    cells = [cell for ring in rings for cell in ring]
    assert len(set(cells)) == len(cells)
    assert rings[0][:2] == [0, 1], "clockwise from the corner"
    for inset, ring in enumerate(rings):
        path = [(cell % width, cell // width) for cell in ring]
        for (x, y), (to_x, to_y) in zip(path, path[1:] + path[:1], strict=True):
            assert abs(to_x - x) + abs(to_y - y) == 1
            assert min(x, y, width - 1 - x, height - 1 - y) == inset
    if width % 2 == 0 or height % 2 == 0:
        assert min(width, height) % 2 == 1 or len(cells) == width * height
