"""Ratings from placements."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from adapters.ratings import Rating, Ratings


def test_who_is_placed_above_is_rated_above() -> None:
    ratings = Ratings()
    for _ in range(10):
        ratings.rate(["a", "b", "c"], [2, 1, 3])
    assert ratings["b"].mu > ratings["a"].mu > ratings["c"].mu
    assert ratings["a"].mu == pytest.approx(25.0)
    assert all(ratings[name].sigma < Rating().sigma for name in "abc")


def test_the_interval_holds_95_percent() -> None:
    assert Rating(10.0, 2.0).interval == (pytest.approx(6.08), pytest.approx(13.92))


def test_who_has_not_played_has_a_rating_that_says_nothing() -> None:
    ratings = Ratings()
    assert ratings["anybody"] == Rating(25.0, 25 / 3)
    assert "anybody" not in ratings
    ratings.rate(["anybody", "b"], [1, 2])
    assert "anybody" in ratings


def test_ties_bring_players_together() -> None:
    ratings = Ratings.from_dict({"strong": [30.0, 4.0], "weak": [20.0, 4.0]})
    ratings.rate(["strong", "weak"], [1, 1])
    assert 20 < ratings["weak"].mu < ratings["strong"].mu < 30
    equal = Ratings()
    equal.rate(["a", "b", "c"], [1, 1, 1])
    assert equal["a"] == equal["b"] == equal["c"]
    assert equal["a"].mu == pytest.approx(25.0)


def test_the_order_of_seats_and_the_size_of_ranks_do_not_matter() -> None:
    start = {"a": [25.0, 8.0], "b": [27.0, 5.0], "c": [22.0, 3.0], "d": [30.0, 4.0]}
    expected = Ratings.from_dict(start)
    expected.rate("abcd", [1, 2, 2, 4])
    for order in itertools.permutations(range(4)):
        ratings = Ratings.from_dict(start)
        ratings.rate(["abcd"[i] for i in order], [(1, 5, 5, 9)[i] for i in order])
        for name in "abcd":
            assert ratings[name] == pytest.approx(expected[name])


def test_players_that_do_not_learn_become_ever_more_certain() -> None:
    fixed, moving = Ratings(drift=0), Ratings()
    rng = np.random.default_rng(0)
    for _ in range(2000):
        ranks = rng.permutation(4).tolist()
        fixed.rate("abcd", ranks)
        moving.rate("abcd", ranks)
    assert fixed["a"].sigma < 0.6
    assert moving["a"].sigma > 1.0
    with pytest.raises(ValueError, match="drift must be >= 0"):
        Ratings(drift=-1)


def test_no_game_makes_a_rating_say_less_than_nothing() -> None:
    """As after very many games between two whose outcome is certain, in which nothing is learned and strengths may drift."""
    ratings = Ratings.from_dict({"strong": [125.0, 8.3], "weak": [-75.0, 8.3]})
    for _ in range(300):
        ratings.rate(["strong", "weak"], [1, 2])
    assert ratings["strong"].sigma == ratings["weak"].sigma == Rating().sigma


@pytest.mark.parametrize(("size", "games"), [(2, 2000), (4, 1000), (8, 1000)])
def test_the_scale_is_the_same_whatever_the_size_of_a_game(size: int, games: int) -> None:
    """Placements drawn as Plackett and Luce have them, in which one is above the other with odds of e."""
    ratings, rng = Ratings(drift=0), np.random.default_rng(1)
    strength = {"strong": 1.0, **{f"weak{i}": 0.0 for i in range(size - 1)}}
    for _ in range(games):
        performance = np.array(list(strength.values())) + rng.gumbel(size=size)
        ratings.rate(list(strength), (-performance).argsort().argsort().tolist())
    weak = np.mean([ratings[name].mu for name in strength if name != "strong"])
    assert ratings["strong"].mu - weak == pytest.approx(2**0.5 * 25 / 6, abs=1.5)


def test_a_name_on_several_seats_is_one_player() -> None:
    ratings = Ratings()
    ratings.rate(["a", "b", "a", "b"], [1, 2, 3, 4])
    assert ratings["a"].mu > 25 > ratings["b"].mu
    assert ratings["a"].mu + ratings["b"].mu == pytest.approx(50.0)
    alone = Ratings()
    alone.rate(["a", "a", "a"], [1, 2, 3])
    assert "a" not in alone
    even = Ratings()
    even.rate(["a", "b", "b", "a"], [1, 2, 3, 4])
    assert even["a"].mu == pytest.approx(even["b"].mu)


def test_ratings_go_through_json() -> None:
    ratings = Ratings()
    ratings.rate(["a", "b"], [1, 2])
    restored = Ratings.from_dict(json.loads(json.dumps(ratings.as_dict())))
    for games in (ratings, restored):
        games.rate(["b", "a", "c"], [1, 2, 2])
    assert restored.as_dict() == ratings.as_dict()


def test_a_rank_for_every_name_is_asked_for() -> None:
    with pytest.raises(ValueError, match="a rank for each of 2 names, got 3"):
        Ratings().rate(["a", "b"], [1, 2, 3])


@pytest.mark.parametrize("kept", [[], {"a": 25.0}, {"a": [25.0, None]}, {"a": [25.0, float("inf")]}, {"a": [1e5, 8.0]}])
def test_what_are_no_ratings_is_refused(kept: Any) -> None:
    with pytest.raises(ValueError, match=r"ratings must be \[mu, sigma\] by name, numbers of at most 1000, got"):
        Ratings.from_dict(kept)
