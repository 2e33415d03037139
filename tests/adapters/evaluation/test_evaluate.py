"""Games to the end: who wins, and what they look like."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.evaluation.evaluate import play_games, record_game
from adapters.evaluation.move_times import MoveTimes
from adapters.evaluation.results import Results, wilson
from adapters.games.native import NativeGameBatch
from adapters.opponents.parse import mixture
from snake_pz import snake_v0
from snake_pz.replay import Replay
from tests.support.staying_env import Staying, stay


def test_wins_are_shared_by_those_who_tie() -> None:
    results = Results(
        ranks=np.array([[1, 2, 3, 4], [1, 1, 3, 3], [2, 2, 2, 1]], np.int16),
        lengths=np.zeros((3, 4), np.int32),
        turns=np.zeros(3, np.int32),
        names=("a", "b", "c", "d"),
        causes=None,
        times=MoveTimes.none(3, 4),
    )
    assert results.wins.tolist() == [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1]]
    assert results.win_rates.tolist() == [0.5, pytest.approx(1 / 6), 0, pytest.approx(1 / 3)]


def test_standard_errors_and_deaths_by_hand() -> None:
    results = Results(
        ranks=np.array([[1, 2], [1, 2], [2, 1], [1, 1]], np.int16),
        lengths=None,
        turns=np.zeros(4, np.int32),
        names=("a", "b"),
        causes=np.array([[None, "self"], [None, "wall"], ["head", None], [None, "self"]], np.object_),
        times=MoveTimes(np.full((4, 2), 0.5), np.array([[10, 0], [10, 0], [20, 0], [10, 0]]), np.zeros((4, 2), np.int64)),
    )
    assert results.standard_errors == pytest.approx(np.array([1, 1, 0, 0.5]).std(ddof=1) / 2)
    assert results.deaths == ({"head": 0.25}, {"self": 0.5, "wall": 0.25})
    assert results.move_seconds[0] == 2 / 50
    assert np.isnan(results.move_seconds[1])
    assert results._replace(causes=None).deaths == ({}, {})


def test_games_say_what_everybody_died_of_and_how_long_it_thought() -> None:
    def slow(observations: Any) -> Any:
        time.sleep(0.01)
        return np.zeros(len(observations), np.int64)

    results = play_games([slow, "greedy"], games=3, env_kwargs={"num_snakes": 2, "width": 7, "height": 7}, move_time=1e-5)
    assert sum(results.deaths[0].values()) == pytest.approx(1)
    assert results.times.moves.tolist() == [[turns - 1] * 2 for turns in results.turns]
    assert results.move_seconds[0] >= 0.01 / 3
    assert results.times.late[:, 0].tolist() == (results.turns - 1).tolist()
    other = play_games(["random"] * 2, games=2, env=Staying, env_kwargs={"agents": 2})
    assert other.causes is None


@pytest.mark.parametrize("move_time", [0, -1.0, float("nan"), "5ms", True, 1e9])
def test_what_is_no_time_for_a_move_is_refused(move_time: Any) -> None:
    with pytest.raises(ValueError, match="move_time must be None or a number of seconds from"):
        play_games(["greedy"] * 4, games=1, move_time=move_time)


def test_every_game_is_played_to_its_end_and_the_better_bot_wins() -> None:
    results = play_games(["greedy", "random", "random", "random"], games=100)
    assert results.wins.sum(axis=1) == pytest.approx(1.0)
    assert (results.ranks >= 1).all()
    assert (results.turns >= 1).all()
    assert (results.lengths >= 3).all()
    assert results.win_rates[0] > 0.9


def test_players_keep_their_column_wherever_they_sit() -> None:
    last = play_games(["random", "random", "random", "greedy"], games=50)
    assert last.win_rates[3] > 0.9


def test_equal_seeds_give_equal_results() -> None:
    first, second, other = (play_games(["greedy"] * 4, games=20, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.ranks, second.ranks)
    assert not np.array_equal(first.ranks, other.ranks)


def test_truncated_games_are_ranked_by_length() -> None:
    results = play_games(["greedy"] * 4, games=30, env_kwargs={"max_cycles": 10, "edge": "wrap"})
    cut = results.turns == 10
    assert cut.any()
    for ranks, lengths in zip(results.ranks[cut], results.lengths[cut], strict=True):
        assert lengths[ranks == 1].min() >= lengths[ranks != 1].max(initial=0) or len(set(ranks)) == 1


def test_the_wrong_number_of_players_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 4 players, one per snake, got 1: say env_kwargs=\{'num_snakes': 1\}"):
        play_games(["greedy"], games=1)
    with pytest.raises(ValueError, match=r"expected 4 players, one per snake, got 8: say env_kwargs=\{'num_snakes': 8\}"):
        record_game(["greedy"] * 8)
    assert len(record_game(["greedy"] * 8, env_kwargs={"num_snakes": 8}).names) == 8
    with pytest.raises(ValueError, match=r"expected 3 players, one per seat, got 2$"):
        play_games(["random"] * 2, games=1, env=Staying, env_kwargs={"agents": 3})


@pytest.mark.parametrize("games", [0, -1, 2.5, True, float("inf"), 10**9])
def test_what_is_no_number_of_games_is_refused(games: Any) -> None:
    with pytest.raises(ValueError, match="games must be a whole number from 1 to 100,000, got"):
        play_games(["greedy"] * 4, games=games)


def test_results_print_as_a_short_table_with_intervals() -> None:
    results = Results(
        ranks=np.array([[1, 2, 3]] * 90 + [[2, 1, 2]] * 10, np.int16),
        lengths=np.full((100, 3), [9, 4, 3], np.int32),
        turns=np.full(100, 50, np.int32),
        names=("[x]/\x1bmodel", "greedy", "random"),
        causes=None,
        times=MoveTimes.none(100, 3),
    )
    text = str(results)
    assert [line.split() for line in text.splitlines() if "%" in line or "games" in line] == [
        ["100", "games", "of", "50.0", "turns"],
        ["player", "wins", "95", "%", "placed", "length"],
        ["[x]/\\x1bmodel", "90.0%", "82.6%", "to", "94.5%", "1.10", "9.0"],
        ["greedy", "10.0%", "5.5%", "to", "17.4%", "1.90", "4.0"],
        ["random", "0.0%", "0.0%", "to", "3.7%", "2.90", "3.0"],
    ]
    assert "length" not in str(results._replace(lengths=None))


def test_players_in_results_have_short_names_of_their_own() -> None:
    results = play_games(["greedy", "random", "random", mixture({"survivor": 1, "random": 1})], games=2)
    assert results.names == ("greedy", "random 1", "random 2", "mixture")


def test_intervals_of_win_rates_hold_the_truth_in_95_percent_of_cases() -> None:
    rng = np.random.default_rng(0)
    for truth in (0.02, 0.25, 0.7):
        low, high = wilson(rng.binomial(200, truth, 20_000) / 200, 200).T
        assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(0.95, abs=0.02)


def test_a_recorded_game_is_the_first_that_is_played(tmp_path: Path) -> None:
    for seed, kwargs in ((1, {"max_cycles": 12}), (2, {"width": 7, "height": 7})):
        players = ["survivor", "greedy", "greedy", "random"]
        replay = record_game(players, seed=seed, env_kwargs=kwargs)
        results = play_games(players, games=1, seed=seed, env_kwargs=kwargs)
        assert len(replay.actions) == results.turns[0]
        assert sorted(replay.names) == ["greedy 1", "greedy 2", "random", "survivor"]
        last = list(replay.states())[-1]
        lengths = dict(zip(replay.names, last.length[0].tolist(), strict=True))
        assert [lengths[name] for name in ("survivor", "greedy 1", "greedy 2", "random")] == results.lengths[0].tolist()
        replay.save(tmp_path / "game.jsonl")
        loaded = Replay.load(tmp_path / "game.jsonl")
        assert (loaded.actions, loaded.hashes[-1]) == (replay.actions, replay.hashes[-1])


def test_any_game_of_a_batch_can_be_recorded() -> None:
    game_batch = NativeGameBatch(3, learners=0, restart=True)
    game_batch.reset([1, 2, 3], [{}] * 3)
    recorder = game_batch.record(1, ["a", "b", "c", "d"])
    turns = 0
    for _ in range(500):
        time_step = game_batch.step(np.zeros((3, 4), np.int64))
        turns += 1
        if time_step.restarted[1]:
            break
    game_batch.step(np.zeros((3, 4), np.int64))
    replay = recorder.replay()
    assert len(replay.actions) == turns
    *_, last = replay.states()
    assert last.over[0]
    with pytest.raises(ValueError, match="one game at its start"):
        game_batch.record(1, ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="a name for each of 4 seats"):
        game_batch.record(1, ["a"])


def test_checkpoints_are_called_by_their_files_name(tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    from adapters import make_sb3_env

    env = make_sb3_env("random", num_games=1, env_kwargs={"num_snakes": 2})
    PPO("MlpPolicy", env, n_steps=8, batch_size=8).save(tmp_path / "champion.zip")
    env.close()
    replay = record_game([tmp_path / "champion.zip", "random"], env_kwargs={"num_snakes": 2})
    assert sorted(replay.names) == ["champion", "random"]


@pytest.mark.parametrize("env", ["snake_v0", snake_v0.parallel_env])
def test_the_snake_is_the_snake_by_whatever_name(env: Any) -> None:
    here, there = (play_games(["greedy"] * 4, games=6, env=game) for game in (None, env))
    assert np.array_equal(here.ranks, there.ranks)
    assert np.array_equal(here.lengths, there.lengths)


def test_workers_play_the_snake_too() -> None:
    rules = {"width": 7, "height": 7, "num_snakes": 2}
    here, there = (play_games(["greedy", "random"], games=8, env_kwargs=rules, num_workers=n) for n in (1, 2))
    assert np.array_equal(here.ranks, there.ranks)
    assert here.win_rates[0] > 0.5


def test_games_of_any_environment() -> None:
    """More games than rows; who stays longer is placed above, wherever it sits."""

    results = play_games([stay(2), stay(5), stay(5)], games=40, env=Staying, env_kwargs={"agents": 3})
    assert results.lengths is None
    assert results.ranks.tolist() == [[3, 1, 1]] * 40
    assert results.win_rates.tolist() == [0, 0.5, 0.5]
    assert results.turns.tolist() == [5] * 40
