"""Encodings of users: what they write is what snakes see, in every place; what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from snake_pz import Encoding, Rules, SnakeEngine, SnakeParallelEnv, SnakeState, head_cells, register_encoding
from snake_pz.core import encodings
from snake_pz.core.encodings import encoding, encoding_for, observation_space
from snake_pz.core.observations import WRITERS

RULES = Rules(width=7, height=6, num_snakes=3)


def write_clock(state: SnakeState, rules: Rules) -> Any:
    """The turn, the cell of the head and the size of the board."""
    turn = np.broadcast_to(state.turn[:, None], state.alive.shape)
    return np.stack([turn, head_cells(state), np.full(state.alive.shape, rules.num_cells)], axis=-1)


CLOCK = Encoding("clock", Box(-1, 1000, (3,), np.int32), write_clock)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_registered", {})


def test_snakes_see_what_is_written_and_the_dead_keep_their_last_observation() -> None:
    engine = SnakeEngine(RULES, 4, seed=0)
    engine.reset()
    seen = engine.observe(CLOCK)
    died_before = False
    for _ in range(12):
        before, dead = seen.copy(), ~engine.state.alive
        engine.step(np.ones((4, 3), np.int8))
        engine.observe(CLOCK, seen)
        assert seen.dtype == np.int32
        expected = np.where(dead[..., None], before, write_clock(engine.state, RULES))
        np.testing.assert_array_equal(seen, expected)
        died_before |= bool(dead.any())
    assert died_before


def test_only_the_rows_asked_for_are_written() -> None:
    engine = SnakeEngine(RULES, 4, seed=0)
    engine.reset()
    out = np.full((4, 3, 3), 7, np.int32)
    engine.observe(CLOCK, out, np.array([3, 1]))
    np.testing.assert_array_equal(out[[1, 3]], write_clock(engine.state, RULES)[[1, 3]])
    assert (out[[0, 2]] == 7).all()


def test_a_kernel_may_write() -> None:
    own = Encoding("grey", lambda rules: Box(0, 255, (1, rules.height, rules.width), np.uint8), kernel=WRITERS["single"])
    engine = SnakeEngine(RULES, 2, seed=0)
    engine.reset()
    np.testing.assert_array_equal(engine.observe(own), engine.observe("single"))


@pytest.mark.parametrize("make", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)), lambda env: env])
def test_the_environment_shows_it(make: Any) -> None:
    env = make(SnakeParallelEnv(rules=RULES, observation=CLOCK, mask_in_observation=True))
    observations, _ = env.reset(seed=3)
    for turn in range(3):
        for agent in env.agents:
            seen = observations[agent]["observation"]
            assert seen[0] == turn
            assert seen[2] == RULES.num_cells
            assert env.observation_space(agent).contains(observations[agent])
        observations, *_ = env.step(dict.fromkeys(env.agents, 0))


def test_built_in_encodings_stay_themselves() -> None:
    assert pickle.loads(pickle.dumps(encoding("board"))) is encoding("board")
    assert copy.deepcopy(encoding("single")) is encoding("single")


def test_a_registered_encoding_goes_by_name_and_space() -> None:
    with pytest.raises(ValueError, match=r"got 'clock': pass an encoding of your own as an Encoding, or register_encoding"):
        SnakeParallelEnv(observation="clock")
    assert register_encoding(CLOCK) is CLOCK
    assert SnakeParallelEnv(rules=RULES, observation="clock").encoding is CLOCK
    assert encoding_for(RULES, CLOCK.space_for(RULES), Discrete(3)) == (CLOCK, "relative")


def test_a_space_of_two_encodings_belongs_to_that_of_the_games() -> None:
    register_encoding(CLOCK)
    twin = register_encoding(Encoding("twin", CLOCK.space, write_clock))
    with pytest.raises(ValueError, match=r"several encodings have the space .*: clock, twin; .* frozen\(\.\.\., encode="):
        encoding_for(RULES, CLOCK.space_for(RULES), Discrete(4))
    assert encoding_for(RULES, CLOCK.space_for(RULES), Discrete(4), own=twin) == (twin, "absolute")


def written(answer: Any, **box: Any) -> None:
    space = Box(**{"low": 0, "high": 255, "shape": (2,), "dtype": np.uint8} | box)
    engine = SnakeEngine(RULES, 2, seed=0)
    engine.reset()
    engine.observe(Encoding("own", space, lambda state, rules: answer))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((2, 3)), r"'own' must write \(games, snakes, \*shape of its space\) = \(2, 3, 2\), got \(2, 3\)"),
        (np.zeros((2, 3, 2)), "must write numbers of its space .*, got float64"),
        (np.full((2, 3, 2), 256), "must write numbers of its space .*, got int64 from 256 to 256"),
        (np.full((2, 3, 2), "a"), "must write numbers of its space"),
    ],
)
def test_what_does_not_fit_the_space_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(answer)


def test_not_a_number_is_refused() -> None:
    written(np.zeros((2, 3, 2)), dtype=np.float32)
    with pytest.raises(ValueError, match="must write numbers of its space"):
        written(np.full((2, 3, 2), np.nan), low=-np.inf, high=np.inf, dtype=np.float32)


def test_the_state_cannot_be_written() -> None:
    def cheat(state: SnakeState, rules: Rules) -> Any:
        state.health[:] = 100
        return np.zeros((*state.health.shape, 1))

    engine = SnakeEngine(RULES, 2, seed=0)
    engine.reset()
    with pytest.raises(ValueError, match="read-only"):
        engine.observe(Encoding("cheat", Box(0, 1, (1,)), cheat))


def test_what_is_no_encoding_is_refused() -> None:
    for name in ("", "a b", "../x", 3):
        with pytest.raises(ValueError, match="the name of an encoding must be of letters"):
            Encoding(name, Box(0, 1, (1,)), write_clock)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs one of write= and kernel=, got none"):
        Encoding("own", Box(0, 1, (1,)))
    with pytest.raises(ValueError, match="needs one of write= and kernel=, got both"):
        Encoding("own", Box(0, 1, (1,)), write_clock, WRITERS["single"])
    with pytest.raises(ValueError, match="needs a function that writes, got 3"):
        Encoding("own", Box(0, 1, (1,)), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the space of encoding 'own' must be a Box"):
        observation_space(RULES, Encoding("own", Discrete(3), write_clock))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'board' is the name of a built-in encoding"):
        register_encoding(Encoding("board", Box(0, 1, (1,)), write_clock))
    with pytest.raises(ValueError, match="register_encoding takes an Encoding, got function"):
        register_encoding(write_clock)  # type: ignore[arg-type]
