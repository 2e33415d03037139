"""Games to the end: who wins, and what they look like."""

from __future__ import annotations

import numpy as np
import pytest

from adapters.evaluate import Results, film_game, play_games


def test_wins_are_shared_by_those_who_tie() -> None:
    results = Results(
        ranks=np.array([[1, 2, 3, 4], [1, 1, 3, 3], [2, 2, 2, 1]], np.int16),
        lengths=np.zeros((3, 4), np.int32),
        turns=np.zeros(3, np.int32),
    )
    assert results.wins.tolist() == [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1]]
    assert results.win_rates.tolist() == [0.5, pytest.approx(1 / 6), 0, pytest.approx(1 / 3)]


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
    with pytest.raises(ValueError, match="4"):
        play_games(["greedy"], games=1)


def test_a_film_has_a_picture_for_each_turn_and_the_start() -> None:
    frames = list(film_game(["survivor"] * 4, seed=1, env_kwargs={"max_cycles": 12}))
    results = play_games(["survivor"] * 4, games=1, seed=1, env_kwargs={"max_cycles": 12})
    assert len(frames) == results.turns[0] + 1
    assert len({frame.shape for frame in frames}) == 1
    assert not np.array_equal(frames[0], frames[-1])
