"""Requests of Battlesnake's API against the recorded positions of its engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_pz import Rules, SnakeEngine, SnakeState
from snake_pz.formats import battlesnake
from tests.support.official_rules import battlesnake_position, battlesnake_request, battlesnake_rules, read

DATA = Path(__file__).resolve().parents[2] / "data"
RULESETS = ("standard", "wrapped", "constrictor", "solo", "royale")


def is_of_a_game(record: dict[str, Any]) -> bool:
    return record["source"] == "game" and any(not snake["cause"] for snake in record["snakes"])


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ruleset", RULESETS)
def test_recorded_positions_are_read_and_written(ruleset: str, every: int) -> None:
    """Request -> position -> request: nothing is lost, and the state is that of the recorded position."""
    records = [record for record in read(DATA / f"bs_{ruleset}.jsonl.gz") if is_of_a_game(record)]
    assert len(records) > 100
    for record in records[::every]:
        asked, names = json.loads(json.dumps(battlesnake_request(record))), [snake["id"] for snake in record["snakes"]]
        rules = battlesnake.rules(asked, len(names))
        assert (rules.width, rules.height, rules.num_snakes) == (record["width"], record["height"], len(names))
        state = SnakeState.from_positions(rules, [battlesnake.position(asked, names)])
        recorded = SnakeState.from_positions(battlesnake_rules(record), [battlesnake_position(record)])
        alive = recorded.alive[0]
        assert (state.alive[0] == alive).all()
        for name in ("food", "hazard", "occupancy", "turn", "food_count"):
            np.testing.assert_array_equal(getattr(state, name), getattr(recorded, name), err_msg=name)
        for name in ("health", "heading", "length"):
            np.testing.assert_array_equal(getattr(state, name)[0, alive], getattr(recorded, name)[0, alive], err_msg=name)
        who = int(np.flatnonzero(alive)[0])
        again = battlesnake.request(rules, state, 0, who, names=names)
        assert again["you"]["id"] == names[who]
        assert again["turn"] == asked["turn"]
        ours, theirs = again["board"], asked["board"]
        assert (ours["width"], ours["height"]) == (theirs["width"], theirs["height"])
        for what in ("food", "hazards"):
            assert sorted(map(str, ours[what])) == sorted(map(str, theirs[what]))
        assert [{key: snake[key] for key in ("id", "name", "health", "body")} for snake in ours["snakes"]] == theirs["snakes"]
        assert battlesnake.rules(again, len(names)) == rules


@pytest.mark.parametrize("ruleset", RULESETS)
def test_what_is_written_of_a_running_game_is_read_again(ruleset: str) -> None:
    rules = Rules.battlesnake(ruleset, num_snakes=3)
    engine = SnakeEngine(rules, 1, seed=5)
    engine.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        if engine.state.over[0]:
            engine.reset()
        for snake in np.flatnonzero(engine.state.alive[0]):
            asked = battlesnake.request(rules, engine.state, 0, int(snake))
            assert battlesnake.rules(asked, 3) == rules
            copy = SnakeEngine(rules, 1)
            copy.load(SnakeState.from_positions(rules, [battlesnake.position(asked, ["0", "1", "2"])]))
            np.testing.assert_array_equal(copy.observe("board")[0, snake], engine.observe("board")[0, snake])
            np.testing.assert_array_equal(copy.action_masks("absolute")[0, snake], engine.action_masks("absolute")[0, snake])
        masks = engine.action_masks("absolute")[0].astype(float)
        engine.step(np.array([[rng.choice(4, p=row / row.sum()) for row in masks]]))


def test_the_directions_are_those_of_the_api() -> None:
    """`up` is y + 1 in a request."""
    rules = Rules.battlesnake(num_snakes=2)
    engine = SnakeEngine(rules, 1, seed=0)
    for number, (dx, dy) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        engine.reset(seeds=[1])
        before = battlesnake.request(rules, engine.state, 0, 0)["you"]["head"]
        engine.step(np.array([[number, number]]))
        after = battlesnake.request(rules, engine.state, 0, 0)["you"]["head"]
        assert (after["x"] - before["x"], after["y"] - before["y"]) == (dx, dy), battlesnake.MOVES[number]


def minimal() -> dict[str, Any]:
    body = [{"x": 1, "y": 2}, {"x": 1, "y": 1}, {"x": 1, "y": 0}]
    return {
        "game": {"id": "g", "ruleset": {"name": "standard"}},
        "turn": 3,
        "board": {"height": 11, "width": 11, "snakes": [{"id": "a", "health": 90, "body": body}]},
    }


def test_what_a_request_may_leave_out() -> None:
    """Old engines send no settings, no map, no hazards and no squad."""
    rules, position = battlesnake.rules(minimal()), battlesnake.position(minimal())
    assert rules == Rules.battlesnake(num_snakes=1)
    assert position.bodies == [[(1, 8), (1, 9), (1, 10)]]
    assert list(position.hazards) == list(position.food) == []


def test_the_rulesets_and_settings_of_the_api() -> None:
    asked = minimal()
    asked["game"]["ruleset"] = {
        "name": "wrapped_constrictor",
        "settings": {"foodSpawnChance": 26, "minimumFood": 2, "hazardDamagePerTurn": 30, "squad": {}},
    }
    rules = battlesnake.rules(asked, 4)
    assert (rules.edge, rules.growth, rules.num_snakes) == ("wrap", "every_turn", 4)
    assert (rules.food_chance, rules.food_minimum, rules.hazard_damage) == (0.25, 2, 30)
    asked["game"] |= {"ruleset": {"name": "standard", "settings": {"royale": {"shrinkEveryNTurns": 7}}}, "map": "royale"}
    assert battlesnake.rules(asked).shrink_every == 7
    asked["game"] |= {"ruleset": {"name": "standard"}, "map": "empty"}
    assert (battlesnake.rules(asked).food_minimum, battlesnake.rules(asked).food_chance) == (0, 0.0)


def test_hazards_are_counted_as_often_as_they_are_listed() -> None:
    asked = minimal()
    asked["board"]["hazards"] = [{"x": 0, "y": 10}] * 3
    state = SnakeState.from_positions(battlesnake.rules(asked), [battlesnake.position(asked)])
    assert state.hazard[0, 0] == 3


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("game.ruleset.name", "chess", "game.ruleset.name must be one of 'standard'.*, got 'chess'"),
        ("game.ruleset.name", ["x"], "game.ruleset.name must be one of"),
        ("board.width", 10**9, "board.width must be a whole number from 2 to 128, got 1000000000"),
        ("board.width", None, "board.width is missing"),
        ("board.snakes", "none", "board.snakes must be a list of at most 64 entries, got 'none'"),
        ("board.snakes", [{"id": "a"}, {"id": "a"}], "board.snakes must have an id each"),
        ("board.food", [{"x": 0.5, "y": 0}], "x must be a whole number"),
        ("board.food", [[0, 0]], "x is missing"),
        ("board.food", [{"x": 0, "y": 0}] * 20_000, "at most 16384 entries, got 20000 entries"),
        ("turn", -1, "turn must be a whole number from 0"),
        ("turn", float("nan"), "turn must be a whole number"),
        ("game.ruleset.settings", {"foodSpawnChance": 200}, "foodSpawnChance must be a whole number from 0 to 100"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(path: str, value: Any, said: str) -> None:
    asked = minimal()
    *keys, last = path.split(".")
    inner = asked
    for key in keys:
        inner = inner.setdefault(key, {})
    inner[last] = value
    with pytest.raises(ValueError, match=said):
        (battlesnake.rules(asked, 1), battlesnake.position(asked))


def test_a_snake_that_did_not_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\['a'\], who did not start in this game"):
        battlesnake.position(minimal(), ["b"])


def test_rules_without_a_name_in_the_api_are_not_written() -> None:
    engine = SnakeEngine(Rules.classic(), 1, seed=0)
    engine.reset()
    with pytest.raises(ValueError, match=r"no ruleset of Battlesnake's API has these rules"):
        battlesnake.request(engine.rules, engine.state, 0, 0)
