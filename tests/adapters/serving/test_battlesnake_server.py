"""The server of Battlesnake's API, over real connections."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.opponents.resolver import resolver_for_rules
from adapters.serving import bounds, deadlines, timely
from adapters.serving.battlesnake_client import BattlesnakeClient
from adapters.serving.battlesnake_server import Limits, Look, prepared
from adapters.serving.log import JsonLines
from adapters.serving.moves import MoveMaker
from snake_pz import Rules, SnakeEngine, make_bot
from snake_pz.core.views import EngineGames
from snake_pz.formats import battlesnake
from snake_pz.players import SeatedPlayer
from tests.support.official_rules import battlesnake_request, read
from tests.support.snake_server import served, stoppable

DATA = Path(__file__).resolve().parents[2] / "data"
RULES = Rules.battlesnake(num_snakes=2)


def a_request(game: str = "g", snake: int = 0, timeout: int = 500) -> dict[str, Any]:
    engine = SnakeEngine(RULES, 1)
    engine.reset(seeds=[3])
    return battlesnake.request(RULES, engine.state, 0, snake, game_id=game, timeout=timeout)


class Scripted:
    """A player that does what it is told before it moves down the board, or as often as its slot was asked."""

    name = "scripted"

    def __init__(self, first: Callable[[], object] = lambda: None) -> None:
        bot = make_bot("greedy", RULES)
        self.observation_space, self.action_space = bot.observation_space, bot.action_space
        self.first, self.batches = first, []
        self.counts: dict[int, int] = {}

    def act(self, observations: Any, slots: Any, action_masks: Any) -> Any:
        self.batches.append(len(slots))
        self.first()
        for slot in slots.tolist():
            self.counts[slot] = self.counts.get(slot, -1) + 1
        return np.array([self.counts[slot] % 4 for slot in slots.tolist()])

    def reset(self, slots: Any) -> None:
        for slot in slots.tolist():
            self.counts.pop(slot, None)

    def seed(self, seed: int) -> None:
        """It draws nothing."""


def test_it_says_who_it_is_and_that_it_is_well() -> None:
    with served("greedy", Look("somebody", "#00ff7f", "evil", "bolt")) as url, BattlesnakeClient(url, 60) as client:
        known = client.get("/")
        assert known.pop("version")
        assert known == {"apiversion": "1", "author": "somebody", "color": "#00ff7f", "head": "evil", "tail": "bolt"}
        assert client.get("/healthz") == {"status": "ok", "games": 0, "moves": 0, "late": 0, "errors": 0, "refused": 0}


@pytest.mark.parametrize("ruleset", ["standard", "royale"])
def test_recorded_games_are_answered_as_at_home(ruleset: str) -> None:
    """What the official engine asked, turn after turn, of a player that draws nothing."""
    records = [record for record in read(DATA / f"bs_{ruleset}.jsonl.gz") if record["source"] == "game"]
    games = [list(game) for _, game in groupby(records, key=lambda record: str(record["game"]))]
    games = [game for game in games if len(game) > 3 and game[0]["width"] == game[0]["height"] == 11][:6]
    assert len(games) == 6
    asked = []
    for game in games:
        me = battlesnake_request(game[0])["board"]["snakes"][0]
        requests = [battlesnake_request(record) | {"you": me} for record in game]
        asked.append([one for one in requests if me["id"] in battlesnake.ids(one)])
    home = MoveMaker("champion", deterministic=True, device="cpu")
    expected = [[home.move(one) for one in requests] for requests in asked]  # first, for that compiles what it needs
    assert sum(map(len, expected)) > 12
    with served("champion") as url, BattlesnakeClient(url, 60) as client:
        for requests, moves in zip(asked, expected, strict=True):
            assert client.post("/start", requests[0]) == {}
            for one, move in zip(requests, moves, strict=True):
                assert client.post("/move", one | {"game": one["game"] | {"timeout": 60_000}}) == {"move": move}
            assert client.get("/healthz")["games"] == 1
            assert client.post("/end", requests[-1]) == {}
            health = client.get("/healthz")
            assert (health["games"], health["late"] + health["errors"]) == (0, 0)


@pytest.mark.slow
def test_a_game_between_four_servers_is_the_engine_s_game() -> None:
    """Each snake has a server of its own; the result is that of the same players at home."""
    rules, seed = Rules.battlesnake(), 11
    words = ["champion", "searcher:100", "champion", "searcher:300"]

    def start() -> SnakeEngine:
        engine = SnakeEngine(rules)
        engine.reset(seeds=[seed])
        return engine

    home = start()
    resolver = resolver_for_rules(rules, deterministic=True, device="cpu")
    players = [SeatedPlayer(resolver.make(word), EngineGames(home)) for word in words]  # type: ignore[arg-type]
    while not home.state.over[0]:
        actions = np.zeros((1, 4), np.int64)
        for snake in np.flatnonzero(home.state.alive[0]).tolist():
            actions[0, snake] = players[snake].act(np.array([snake]))[0]
        home.step(actions)

    away, number = start(), iter(range(4))
    with (
        served(words[0]) as a,
        served(words[1]) as b,
        served(words[2]) as c,
        served(words[3]) as d,
    ):
        clients = [BattlesnakeClient(url, 60) for url in (a, b, c, d)]

        def asked(snake: int) -> dict[str, Any]:
            return battlesnake.request(rules, away.state, 0, snake, game_id="duel", timeout=60_000)

        for snake in number:
            clients[snake].post("/start", asked(snake))
        while not away.state.over[0]:
            actions = np.zeros((1, 4), np.int64)
            for snake in np.flatnonzero(away.state.alive[0]).tolist():
                actions[0, snake] = battlesnake.MOVES.index(clients[snake].post("/move", asked(snake))["move"])
            away.step(actions)
        for snake, client in enumerate(clients):
            client.post("/end", asked(snake))
            client.close()
    assert away.state.turn[0] > 20
    for name, array in away.state._asdict().items():
        np.testing.assert_array_equal(array, getattr(home.state, name), err_msg=name)


def at_once(url: str, requests: list[dict[str, Any]]) -> list[str]:
    """The moves of requests on a connection each."""
    moves = [""] * len(requests)

    def ask(number: int) -> None:
        with BattlesnakeClient(url, 60) as client:
            moves[number] = client.post("/move", requests[number])["move"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return moves


def test_games_at_once_go_into_one_prediction_and_are_remembered_apart() -> None:
    player = Scripted(lambda: time.sleep(0.05))
    with served(player) as url:
        games = [a_request(f"game {number}", timeout=20_000) for number in range(8)]
        for turn in range(4):
            assert at_once(url, games[: 8 - turn]) == [battlesnake.MOVES[turn]] * (8 - turn)
    assert sum(player.batches) == 8 + 7 + 6 + 5
    assert len(player.batches) <= 12, "eight one by one would be 26"


def test_a_player_that_hangs_is_answered_for_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timely, "STUCK", 0.8)
    monkeypatch.setattr(deadlines, "UNKNOWN", 0.6)  # much to spare, where other tests run beside this one
    hangs = threading.Event()
    player = Scripted(hangs.wait)
    asked = a_request(timeout=1000)
    engine = SnakeEngine(RULES, 1)
    engine.reset(seeds=[3])
    allowed = engine.action_masks("absolute")[0, 0]
    try:
        with served(player) as url, BattlesnakeClient(url, 60) as client:
            begun = time.perf_counter()
            move = client.post("/move", asked)["move"]
            assert 0.3 < time.perf_counter() - begun < 1
            assert allowed[battlesnake.MOVES.index(move)]
            time.sleep(0.6)
            with pytest.raises(OSError, match=r"status 503.*stuck"):
                client.get("/healthz")
            begun = time.perf_counter()
            client.post("/move", asked)
            assert time.perf_counter() - begun < 0.35, "nobody waits for one that is stuck"
            hangs.set()
            time.sleep(0.2)
            assert client.get("/healthz")["late"] == 2
            assert client.post("/move", asked) == {"move": "right"}, "it is back, and had been asked once"
    finally:
        hangs.set()


def test_a_player_that_fails_is_answered_for_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("no idea")

    player = Scripted(fail)
    with served(player) as url, BattlesnakeClient(url, 60) as client, caplog.at_level(logging.DEBUG, "snake_pz.serving"):
        assert client.post("/move", a_request())["move"] in battlesnake.MOVES
        player.first = lambda: None
        assert client.post("/move", a_request()) == {"move": "up"}
        assert client.get("/healthz")["errors"] == 1
    failed, moved = (json.loads(JsonLines().format(record)) for record in caplog.records if record.msg == "move")
    assert (failed["level"], failed["by"], failed["error"]) == ("warning", "error", "RuntimeError: no idea")
    assert {key: moved[key] for key in ("event", "game", "snake", "turn", "move", "by")} == {
        "event": "move",
        "game": "g",
        "snake": "0",
        "turn": 0,
        "move": "up",
        "by": "player",
    }
    assert moved["ms"] < moved["deadline_ms"] == 400


def test_one_request_that_cannot_be_answered_does_not_spoil_the_others() -> None:
    """A game that was begun with other snakes is wrong for the player alone, which is asked for several at once."""
    player = Scripted(lambda: time.sleep(0.05))
    maker = MoveMaker(player)
    good, bad = a_request("good", timeout=20_000), a_request("bad", timeout=20_000)
    moves = timely.TimelyMoves(maker, MoveMaker("survivor"))
    questions = [timely._Question(good, timely.Future()), timely._Question(bad | {"you": {"id": "nobody"}}, timely.Future())]
    moves._answer(questions)
    moves.close()
    assert questions[0].answer.result() == "up"
    with pytest.raises(ValueError, match=r"you\.id must be one of"):
        questions[1].answer.result()


def test_moves_are_finished_when_it_is_told_to_end() -> None:
    begun = threading.Event()

    def think() -> None:
        begun.set()
        time.sleep(0.4)

    answers: list[Any] = []
    with stoppable(Scripted(think)) as (url, server):
        asking = threading.Thread(target=lambda: answers.append(at_once(url, [a_request(timeout=5000)])))
        asking.start()
        begun.wait()
        server.should_exit = True
        asking.join()
    assert answers == [["up"]]


def ask(url: str, body: bytes, path: str = "/move", method: str = "POST") -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request(method, path, body)
    response = connection.getresponse()
    status, text = response.status, response.read().decode()
    connection.close()
    return status, json.loads(text)


def test_what_is_no_request_is_refused_and_named(caplog: pytest.LogCaptureFixture) -> None:
    request = a_request()
    with served("greedy") as url, caplog.at_level(logging.WARNING, "snake_pz.serving"):
        for body, text in [
            (b"", "the body must be JSON"),
            (b"\xff\xfe", "the body must be JSON"),
            (b"[" * 100_000, "the body must be JSON"),
            (b"[]", "the body must be a JSON object"),
            (b"{}", "game.id is missing"),
            (json.dumps(request | {"turn": -1}).encode(), "turn must be a whole number from 0"),
            (json.dumps(request | {"turn": 1e999}).encode(), "turn must be a whole number from 0"),
            (json.dumps(request | {"you": {"id": "7"}}).encode(), "you.id must be one of board.snakes, got '7'"),
        ]:
            for path in ("/move", "/start") if body[:1] == b"{" else ("/move", "/start", "/end"):
                status, answer = ask(url, body, path)
                assert status == 400
                assert answer["error"].startswith(text)
        assert ask(url, b" " * (bounds.MOST_BYTES + 1))[0] == 413
        assert ask(url, b"", "/nowhere")[0] == 404
        assert ask(url, b"", "/move", "GET")[0] == 405
        assert ask(url, json.dumps(request).encode())[0] == 200
    assert len(caplog.records) == 5 * 2 + 4 * 3 + 3 - 2
    assert "413" in JsonLines().format(caplog.records[-3])


def test_a_body_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_SECONDS", 0.1)
    with served("greedy") as url, socket.create_connection(tuple(url.removeprefix("http://").split(":")), timeout=5) as slow:
        slow.sendall(b"POST /move HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_a_host_that_asks_too_often_has_to_wait() -> None:
    with served("greedy", limits=Limits(rate=2)) as url:
        answers = [ask(url, json.dumps(a_request()).encode()) for _ in range(12)]
        refused = [answer for status, answer in answers if status == 429]
        assert 4 <= len(refused) <= 10
        assert refused[0] == {"error": "too many requests"}
        time.sleep(0.8)
        assert ask(url, b"", "/healthz", "GET")[1]["refused"] == len(refused)


def test_games_that_nobody_asks_about_are_forgotten() -> None:
    with served("greedy", limits=Limits(idle=1)) as url, BattlesnakeClient(url, 60) as client:
        client.post("/move", a_request())
        assert client.get("/healthz")["games"] == 1
        time.sleep(1.7)
        assert client.get("/healthz")["games"] == 0


def test_looks_and_limits_are_checked() -> None:
    with pytest.raises(ValueError, match=r"color must be #rrggbb in hexadecimal digits, got 'green'"):
        Look(color="green")
    with pytest.raises(ValueError, match=r"tail must be a name of letters, digits and -, such as default, got '<b>'"):
        Look(tail="<b>")
    with pytest.raises(ValueError, match=r"rate must be >= 0.1, got 0"):
        Limits(rate=0)


def test_a_player_is_made_before_anybody_asks() -> None:
    with pytest.raises(ValueError, match="the bots are"):
        prepared(MoveMaker("greddy"))
    with pytest.raises(ValueError, match="cannot play on a 11x11 board"):
        prepared(MoveMaker(Elsewhere()))
    prepared(MoveMaker(Scripted()))


class Elsewhere(Scripted):
    """A player of another board."""

    def __init__(self) -> None:
        bot = make_bot("greedy", Rules.battlesnake(width=8, height=8))
        super().__init__()
        self.observation_space = bot.observation_space
