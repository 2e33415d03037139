"""NativeGameBatch where it differs from the SuperSuit path: encodings by player, seating, attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from adapters.games.game_batch import TimeStep
from adapters.games.native import NativeGameBatch
from adapters.opponents.lineup import OpponentLineup
from snake_pz import Rules, make_bot, snake_v0
from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.core.observations import OBSERVATIONS

RULES = Rules.classic()


def _start(game_batch: NativeGameBatch, seed: int = 1) -> TimeStep:
    return game_batch.reset(range(seed, seed + game_batch.num_games), [{}] * game_batch.num_games)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("actions", ["absolute", "relative"])
def test_every_view_shows_and_plays_what_an_environment_of_these_spaces_does(observation: str, actions: str) -> None:
    game_batch = NativeGameBatch(3, learners=["snake_0"])  # named learners: seats are snakes
    time_step = _start(game_batch)
    view = game_batch.view(observation_space(RULES, observation), action_space(actions))
    games = [snake_v0.parallel_env(observation=observation, actions=actions) for _ in range(3)]
    views = [env.reset(seed=time_step.reset_infos[game, 0]["game_seed"])[0] for game, env in enumerate(games)]
    rng = np.random.default_rng(0)
    for _ in range(5):
        seen = view.observations()
        for game, env in enumerate(games):
            for agent in env.agents:
                assert np.array_equal(seen[game, env.possible_agents.index(agent)], views[game][agent])
        chosen = rng.integers(action_space(actions).n, size=(3, 4))
        rows = np.divmod(np.arange(12), 4)
        time_step = game_batch.step(view.decode(chosen.reshape(-1), *rows).reshape(3, 4))
        for game, env in enumerate(games):
            if env.agents:
                views[game] = env.step({agent: chosen[game, env.possible_agents.index(agent)] for agent in env.agents})[0]
        if time_step.restarted.any():
            break


def test_unknown_spaces_are_refused_with_both_named() -> None:
    game_batch = NativeGameBatch(1)
    with pytest.raises(ValueError, match=r"cannot play on a 11x11 board") as error:
        game_batch.view(observation_space(Rules(width=19, height=19), "board"), spaces.Discrete(4))
    assert "(7, 19, 19)" in str(error.value)
    assert "(7, 11, 11)" in str(error.value)


def test_an_encoding_is_written_once_a_turn_and_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    game_batch = NativeGameBatch(2)
    _start(game_batch)
    written: list[str] = []
    observe = type(game_batch._engine).observe
    monkeypatch.setattr(
        type(game_batch._engine),
        "observe",
        lambda self, name, *rest: (written.append(name.name), observe(self, name, *rest))[1],
    )
    view = game_batch.view(observation_space(RULES, "single"), action_space("relative"))
    for _ in range(3):
        view.observations()
    assert written == ["single"]
    written.clear()
    game_batch.step(np.zeros((2, 4), np.int64))
    assert written == ["board"]  # the learner's


def test_seats_are_shuffled_over_the_snakes_so_that_the_learner_is_each_as_often() -> None:
    game_batch = NativeGameBatch(400)
    _start(game_batch)
    learners = [game_batch.agents(game)[0] for game in range(400)]
    counts = [learners.count(f"snake_{i}") for i in range(4)]
    assert min(counts) > 70  # 100 expected, standard deviation 8.7


def test_named_learners_keep_their_snake() -> None:
    game_batch = NativeGameBatch(5, learners=["snake_2"])
    for seed in range(3):
        _start(game_batch, seed)
        assert {game_batch.agents(game) for game in range(5)} == {("snake_2", "snake_0", "snake_1", "snake_3")}


def _play(game_batch: NativeGameBatch, turns: int) -> list[TimeStep]:
    lineup = OpponentLineup([make_bot("greedy", RULES)] * (game_batch.seats - game_batch.num_learners), game_batch)
    lineup.seed(np.random.SeedSequence(0))
    time_step = _start(game_batch)
    lineup.restart(np.arange(game_batch.num_games))
    played = []
    for _ in range(turns):
        actions = np.zeros((game_batch.num_games, game_batch.seats), np.int64)
        lineup.act(actions, time_step.active)
        time_step = game_batch.step(actions)
        lineup.restart(np.flatnonzero(time_step.restarted))
        played.append(time_step)
    return played


def test_without_learners_a_game_goes_on_to_its_end_and_all_seats_are_reported() -> None:
    for time_step in _play(NativeGameBatch(20, learners=0), 300):
        for game in np.flatnonzero(time_step.restarted):
            ended = time_step.terminated[game] | time_step.truncated[game]
            assert ended.any()
            info = next(time_step.infos[game, seat] for seat in np.flatnonzero(ended))
            assert sorted(info["placements"]) == ["snake_0", "snake_1", "snake_2", "snake_3"]
            assert min(info["placements"].values()) == 1


def test_games_that_do_not_restart_stay_as_they_ended() -> None:
    played = _play(NativeGameBatch(20, learners=0, restart=False), 520)
    assert not any(time_step.restarted.any() for time_step in played)
    assert not played[-1].active.any()
    assert np.array_equal(played[-1].observations, played[-2].observations)


def test_survivors_of_an_abandoned_game_share_first_place() -> None:
    for time_step in _play(NativeGameBatch(30), 60):
        for game in np.flatnonzero(time_step.restarted):
            info = time_step.infos[game, 0]
            if info["cause"] is not None and info["rank"] > 1:
                placements = sorted(info["placements"].values())
                assert placements[: info["rank"] - 1] == [1] * (info["rank"] - 1)


def test_attributes_are_those_of_the_running_game() -> None:
    game_batch = NativeGameBatch(3, env_kwargs={"render_mode": "rgb_array"})
    time_step = _start(game_batch)
    assert game_batch.get_attr("rules", [0, 2]) == [RULES, RULES]
    assert game_batch.get_attr("agents", [1]) == [["snake_0", "snake_1", "snake_2", "snake_3"]]
    env = snake_v0.parallel_env()
    env.reset(seed=time_step.reset_infos[1, 0]["game_seed"])
    assert np.array_equal(game_batch.env_method("state", [1])[0], env.state())
    pictures = game_batch.render([0, 1])
    assert pictures[0].shape == pictures[1].shape
    assert not np.array_equal(pictures[0], pictures[1])


def test_max_cycles_can_be_changed_per_game() -> None:
    game_batch = NativeGameBatch(2, env_kwargs={"edge": "wrap"})
    _start(game_batch)
    game_batch.set_attr("max_cycles", 1, [1])
    time_step = game_batch.step(np.zeros((2, 4), np.int64))
    assert time_step.truncated.any(axis=1).tolist() == [False, True]
    assert time_step.restarted.tolist() == [False, True]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.set_attr("rules", RULES, [0]), "rules of native games is fixed"),
        (lambda m: m.env_method("step", [0], {}), "step of a single native game"),
        (lambda m: m.env_method("reset", [0]), "reset of a single native game"),
        (lambda m: m.env_method("set_state", [0], None), "set_state of a single native game"),
    ],
)
def test_calls_that_would_break_the_games_are_refused(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(NativeGameBatch(1))
