"""Observations of Kaggle's Hungry Geese against the recorded states of its environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_pz import Rules, SnakeEngine, SnakeState
from snake_pz.formats import hungry_geese
from tests.support.official_rules import geese_position, geese_rules, read

DATA = Path(__file__).resolve().parents[2] / "data"
COMPETITION = {"columns": 11, "rows": 7, "hunger_rate": 40, "min_food": 2, "max_length": 99, "episodeSteps": 200}


def shown(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The observation and configuration of a recorded state."""
    configuration = {key: record[key] for key in ("rows", "columns", "hunger_rate", "min_food", "max_length")}
    observation = {"geese": record["geese"], "food": record["food"], "step": record["step"] - 1, "index": 0}
    return observation, configuration | {"episodeSteps": record["episode_steps"]}


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_states_are_read_and_written(every: int) -> None:
    records = [record for record in read(DATA / "hg_hungry_geese.jsonl.gz") if any(record["geese"])]
    for record in records[::every]:
        observation, configuration = shown(record)
        rules = hungry_geese.rules(observation, configuration)
        assert rules.replace(food_initial=0) == geese_rules(record)
        state = SnakeState.from_positions(rules, [hungry_geese.position(observation, configuration)])
        recorded = SnakeState.from_positions(rules, [geese_position(record)])
        for name in ("alive", "body", "length", "occupancy", "food", "food_count", "turn"):
            np.testing.assert_array_equal(getattr(state, name), getattr(recorded, name), err_msg=name)
        again = hungry_geese.observation(state, 0, 0)
        assert (again["geese"], sorted(again["food"])) == (record["geese"], sorted(record["food"]))
        assert again["step"] == record["step"] - 1
        assert hungry_geese.configuration(rules) == configuration


def test_the_step_before_shows_where_geese_of_one_cell_came_from() -> None:
    rules = Rules.hungry_geese()
    engine = SnakeEngine(rules, 1, seed=3)
    engine.reset()
    rng, previous, single = np.random.default_rng(1), None, 0
    for _ in range(30):
        observation = hungry_geese.observation(engine.state, 0, 0)
        position = hungry_geese.position(observation, COMPETITION, previous)
        state = SnakeState.from_positions(rules, [position])
        alive = engine.state.alive[0]
        np.testing.assert_array_equal(state.heading[0, alive], engine.state.heading[0, alive])
        single += int((engine.state.length[0, alive] == 1).sum())
        previous = observation
        masks = engine.action_masks("absolute")[0].astype(float)
        engine.step(np.array([[rng.choice(4, p=row / row.sum()) for row in masks]]))
        if engine.state.over[0]:
            break
    assert single > 20


def test_defaults_are_those_of_the_competition() -> None:
    observation = {"geese": [[0], [20], [40], [60]], "food": [5, 6], "step": 0}
    assert hungry_geese.rules(observation, {}) == hungry_geese.rules(observation, COMPETITION) == Rules.hungry_geese()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"geese": None}, "geese is missing"),
        ({"geese": [0, 1]}, "geese must be a list of at most 16384 entries, got 0"),
        ({"geese": [[77]]}, "cell must be a whole number from 0 to 76, got 77"),
        ({"geese": [[]] * 65}, "geese must be a list of at most 64 entries, got 65 entries"),
        ({"food": [True]}, "cell must be a whole number"),
        ({"step": "soon"}, "step must be a whole number from 0"),
    ],
)
def test_what_is_no_observation_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        hungry_geese.position({"geese": [[0], [20]], "food": [], "step": 0} | change, COMPETITION)


def test_a_step_before_with_other_geese_is_refused() -> None:
    two, three = ({"geese": [[7 * k] for k in range(number)], "food": [], "step": 1} for number in (2, 3))
    with pytest.raises(ValueError, match="the step before must have the same 2 geese, got 3"):
        hungry_geese.position(two, COMPETITION, three)
