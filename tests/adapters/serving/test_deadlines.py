"""How long a player may think."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.serving import deadlines
from adapters.serving.deadlines import LEAST, SPARE, UNKNOWN, Deadlines


def request(game: str = "g", latency: Any = "0", timeout: int = 500) -> dict[str, Any]:
    return {"game": {"id": game, "timeout": timeout}, "you": {"id": "me", "latency": latency}}


def test_the_timeout_less_the_latency_that_was_measured() -> None:
    times = Deadlines()
    assert times.seconds(request()) == pytest.approx(0.5 - UNKNOWN)
    times.answered(request(), 0.040)
    assert times.seconds(request(latency="110")) == pytest.approx(0.5 - 0.070 - SPARE), "110 ms there, 40 of them here"
    times.answered(request(), 0.040)
    assert times.seconds(request(latency="50")) == pytest.approx(0.5 - 0.070 - SPARE), "the greatest of the last moves"
    assert times.seconds(request("other")) == pytest.approx(0.5 - UNKNOWN), "games may be far apart"
    times.end(request())
    assert times.seconds(request(latency="50")) == pytest.approx(0.5 - UNKNOWN)


def test_the_latency_of_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "REMEMBERED", 3)
    times = Deadlines()
    for latency in ("400", "20", "20", "20"):
        times.answered(request(), 0.01)
        seconds = times.seconds(request(latency=latency))
    assert seconds == pytest.approx(0.5 - 0.01 - SPARE)


def test_a_latency_that_leaves_no_time_leaves_the_player_some() -> None:
    times = Deadlines()
    times.answered(request(), 0.01)
    assert times.seconds(request(latency="99999")) == pytest.approx(LEAST * 0.5)


@pytest.mark.parametrize("latency", [None, "", "soon", -5, [], {}])
def test_a_latency_that_is_none_is_no_measurement(latency: Any) -> None:
    times = Deadlines()
    times.answered(request(), 0.01)
    assert times.seconds(request(latency=latency)) == pytest.approx(0.5 - UNKNOWN)


def test_idle_games_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: now[0])
    times = Deadlines()
    times.answered(request(), 0.01)
    now[0] += 50
    times.answered(request("other"), 0.01)
    times.forget_idle(40)
    assert times.seconds(request(latency="100")) == pytest.approx(0.5 - UNKNOWN)
    assert times.seconds(request("other", latency="100")) == pytest.approx(0.5 - 0.09 - SPARE)


def test_a_timeout_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"game\.timeout must be a whole number from 1"):
        Deadlines().seconds(request(timeout=0))
