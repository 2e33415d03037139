"""Tournaments: who sits where, how games are placed, and what is made of it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import adapters.evaluation.tournament
from adapters import frozen, make_sb3_env, mixture
from adapters.command.main import app
from adapters.evaluation.move_times import MoveTimes
from adapters.evaluation.standings import Played, Standings
from adapters.evaluation.tournament import draw_line_ups, tournament
from adapters.opponents.parse import parse, players
from adapters.opponents.pool import OpponentPool
from snake_pz import snake_v0
from snake_pz.replay import Replay
from tests.support.scripted_env import SCRIPTS, ScriptedEnv
from tests.support.staying_env import Staying, stay


def straight(observations: Any) -> Any:
    return np.ones(len(observations), np.int64)  # of the relative actions


RELATIVE = {"actions": "relative"}


def by_hand() -> Standings:
    """Three games on three seats among a, b and c; in the last b sits twice."""
    return Standings(["a", "b", "c"], ["runs/a.zip", "b", "c"], by_hand_played())


def by_hand_played() -> Played:
    return Played(
        players=np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0]]),
        ranks=np.array([[1, 2, 2], [3, 1, 1], [1, 3, 2]]),
        turns=np.array([[9, 4, 4], [1, 8, 8], [6, 2, 5]]),
        lengths=np.array([[5, 3, 3], [3, 6, 7], [4, 3, 5]], np.float64),
        causes=np.array([[None, "wall", "self"], ["wall", None, None], [None, "wall", "head"]], np.object_),
        times=MoveTimes(np.full((3, 3), 0.25), np.full((3, 3), 10), np.array([[0, 0, 0], [0, 0, 0], [0, 4, 0]])),
    )


# Who sits where


@pytest.mark.parametrize(("games", "spread"), [(40, 0), (41, 1), (3, 1)])
def test_as_many_names_as_seats_all_play_every_game_and_every_seat_equally_often(games: int, spread: int) -> None:
    line_ups = draw_line_ups(4, 4, games, np.random.default_rng(0))
    assert all(sorted(line_up) == [0, 1, 2, 3] for line_up in line_ups.tolist())
    counts = np.array([np.bincount(line_ups[:, seat], minlength=4) for seat in range(4)])
    assert counts.max() - counts.min() == spread
    assert len({tuple(line_up) for line_up in line_ups.tolist()}) > min(games, 5) - 1  # not the same few orders again and again


def test_with_fewer_names_than_seats_each_sits_equally_often_in_every_game() -> None:
    line_ups = draw_line_ups(2, 4, 41, np.random.default_rng(0))
    assert all(sorted(line_up) == [0, 0, 1, 1] for line_up in line_ups.tolist())
    odd = draw_line_ups(3, 4, 400, np.random.default_rng(0))
    assert all(set(line_up) == {0, 1, 2} for line_up in odd.tolist())
    twice = Counter(np.bincount(line_up).argmax() for line_up in odd)
    assert min(twice.values()) > 90
    counts = np.array([np.bincount(odd[:, seat], minlength=3) for seat in range(4)])
    assert (counts.max(axis=0) - counts.min(axis=0)).max() == 0


def test_of_more_names_than_seats_different_ones_are_drawn_all_alike() -> None:
    line_ups = draw_line_ups(6, 4, 3000, np.random.default_rng(0))
    assert all(len(set(line_up)) == 4 for line_up in line_ups.tolist())
    for seat in range(4):
        assert np.bincount(line_ups[:, seat], minlength=6) == pytest.approx(500, abs=80)
    together = sum({0, 1} <= set(line_up) for line_up in line_ups.tolist())
    assert together == pytest.approx(3000 * 6 / 15, abs=100)


def test_recorded_games_show_everybody_on_the_seat_that_it_is_counted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters.evaluation.tournament, "NATIVE_NUM_GAMES", 3)  # so that games follow one another
    tournament([straight, "greedy", "greedy", "random"], games=12, env_kwargs=RELATIVE, replays=tmp_path / "replays")
    files = sorted((tmp_path / "replays").iterdir())
    assert [file.name for file in files] == [f"game_{number:02}.jsonl" for number in range(1, 11)]
    seats = set()
    for file in files:
        replay = Replay.load(file)
        assert sorted(replay.names) == ["greedy 1", "greedy 2", "random", "straight"]
        seat = replay.names.index("straight")
        seats.add(seat)
        *_, last = replay.states()
        assert last.over[0]
        assert last.cause[0, seat]
        moves = {letters[seat] for letters in replay.actions} - set("x-")
        assert len(moves) == 1
    assert seats == {0, 1, 2, 3}


# What is made of the games


def test_win_rates_and_means_by_hand() -> None:
    a, b, c = (by_hand()[name] for name in "abc")
    assert (a.games, b.games, c.games) == (3, 4, 2)
    assert a.win_rate == pytest.approx((1 + 0.5 + 0) / 3)
    assert b.win_rate == pytest.approx((0 + 0.5 + 1 + 0) / 4)
    assert c.win_rate == 0
    assert (a.mean_placement, b.mean_placement, c.mean_placement) == (pytest.approx(4 / 3), 7 / 4, 2.5)
    assert (b.mean_turns, b.mean_length) == (5.0, 17 / 4)
    assert a.deaths == {"head": pytest.approx(1 / 3)}
    assert b.deaths == {"wall": 0.5}
    assert c.deaths == {"self": 0.5, "wall": 0.5}


def test_times_of_moves_by_hand() -> None:
    """They are no part of the standings without a limit, which the same seed repeats exactly."""
    assert [(one.move_seconds, one.late) for one in by_hand()] == [(None, None)] * 3
    limited = Standings(["a", "b", "c"], ["runs/a.zip", "b", "c"], by_hand_played()._replace(move_time=0.01))
    assert (limited["b"].move_seconds, limited["b"].late) == (0.025, 0.1)
    assert limited["a"].late == 0
    shown = str(limited)
    assert {"ms", "late", "25.00", "10.0%"} <= set(shown.split())
    assert "died" not in shown


def test_payoff_by_hand() -> None:
    standings = by_hand()
    payoff, meetings = standings.as_json()["payoff"], standings.as_json()["meetings"]
    assert payoff["a"] == {"b": pytest.approx((1 + 0.5 + 0 + 1) / 4), "c": 1.0}
    assert payoff["b"] == {"a": pytest.approx((0 + 0.5 + 1 + 0) / 4), "c": pytest.approx((0.5 + 1) / 2)}
    assert payoff["c"] == {"a": 0.0, "b": 0.25}
    assert meetings == {"a": {"b": 4, "c": 2}, "b": {"a": 4, "c": 2}, "c": {"a": 2, "b": 2}}
    assert np.isnan(np.diag(standings.payoff)).all()
    assert standings.names == ("a", "b", "c")
    assert standings.payoff[0, 2] == 1.0


def test_the_best_rated_is_on_top() -> None:
    standings = tournament([stay(2), stay(6), stay(4)], games=30, env=Staying)
    assert standings.names == ("stays_6", "stays_4", "stays_2")
    assert np.array_equal(standings.payoff, [[np.nan, 1, 1], [0, np.nan, 1], [0, 0, np.nan]], equal_nan=True)
    mus = [standing.rating.mu for standing in standings.standings]
    assert mus == sorted(mus, reverse=True)


def test_json_has_everything_and_nothing_that_json_has_not(tmp_path: Path) -> None:
    standings = by_hand()
    standings.write_json(tmp_path / "new" / "standings.json")
    read = json.loads((tmp_path / "new" / "standings.json").read_text())
    assert read == json.loads(json.dumps(standings.as_json(), allow_nan=False))
    first = read["standings"][0]
    assert (first["name"], first["player"], first["games"]) == ("a", "runs/a.zip", 3)
    assert first["interval"] == pytest.approx(
        [first["rating"] - 1.96 * first["sigma"], first["rating"] + 1.96 * first["sigma"]]
    )
    shown = {
        "rating",
        "sigma",
        "interval",
        "win_rate",
        "mean_placement",
        "mean_turns",
        "mean_length",
        "deaths",
        "move_seconds",
        "late",
    }
    assert set(first) == {"name", "player", "games", *shown}
    assert read["games"] == 3


def test_csv_has_a_row_per_player(tmp_path: Path) -> None:
    by_hand().write_csv(tmp_path / "standings.csv")
    with (tmp_path / "standings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert float(rows[1]["above_c"]) == 0.75
    assert (rows[1]["above_b"], rows[1]["place"]) == ("", "2")
    assert float(rows[2]["died_of_self"]) == 0.5
    assert float(rows[0]["low"]) < float(rows[0]["rating"]) < float(rows[0]["high"])


def test_a_player_that_was_never_drawn_is_shown_without_numbers(tmp_path: Path) -> None:
    standings = tournament([stay(turns) for turns in range(1, 9)], games=1, env=Staying)
    idle = [standing for standing in standings.standings if standing.games == 0]
    assert len(idle) == 5
    assert all(math.isnan(one.win_rate) and one.rating.mu == 25 for one in idle)
    assert standings.as_json()["payoff"][idle[0].name][idle[1].name] is None
    assert standings.as_json()["standings"][standings.names.index(idle[0].name)]["win_rate"] is None
    standings.write_csv(tmp_path / "standings.csv")
    standings.plot(tmp_path / "standings.png")
    assert "nan" not in (tmp_path / "standings.csv").read_text()


def test_the_table_shows_intervals_and_what_short_names_stand_for() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(by_hand().table())
    text = console.export_text()
    a = by_hand()["a"]
    assert f"{a.rating.mu:.1f} ± {1.96 * a.rating.sigma:.1f}" in text
    assert "a = runs/a.zip" in text
    assert "wall 50%" in text


def test_names_with_brackets_are_shown_as_they_are() -> None:
    standings = Standings(["[red]a", "b [/x]", "c"], ["runs/[bold]a.zip", "b [/x]", "c"], by_hand_played())
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(standings.table())
    text = console.export_text()
    assert "[red]a = runs/[bold]a.zip" in text
    assert "b [/x]" in text


STRANGE = ["=HYPERLINK(1)", "\x1b]0;owned\x07", r"$\frac$ {killer} %s"]
UNREAD = "\udce8.zip"
"""A file's name that the locale cannot read."""


def test_names_may_hold_anything(tmp_path: Path) -> None:
    standings = Standings(STRANGE, STRANGE, by_hand_played())
    assert "\x1b" not in str(standings)
    assert r"\x1b]0;owned\x07" in str(standings)
    standings.write_csv(tmp_path / "standings.csv")
    with (tmp_path / "standings.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"] for row in rows} == {"'=HYPERLINK(1)", *STRANGE[1:]}
    assert {row["player"] for row in rows} == {"'=HYPERLINK(1)", *STRANGE[1:]}
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    standings.plot(tmp_path / "plot.png")  # $ and % begin no formula


def test_names_of_files_that_the_locale_cannot_read_lose_nothing(tmp_path: Path) -> None:
    names = [UNREAD, "greedy", "random"]
    standings = Standings(names, names, by_hand_played())
    for write, name in ((standings.write_csv, "a.csv"), (standings.write_json, "a.json"), (standings.plot, "a.png")):
        write(tmp_path / name)
    assert r"\udce8.zip" in (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert UNREAD in json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["payoff"]


def test_standings_print_as_their_table() -> None:
    text = str(by_hand())
    assert "3 games" in text
    assert "a = runs/a.zip" in text
    assert "\x1b" not in text  # no colours, wherever it is printed


def test_standings_are_gone_through_from_the_best() -> None:
    standings = by_hand()
    assert [standing.name for standing in standings] == list(standings.names)
    assert len(standings) == len(standings.names)


def test_the_table_breaks_no_bots_name_on_a_narrow_terminal() -> None:
    console = Console(width=80, file=io.StringIO())
    standings = Standings(["territorial", "b", "c"], ["territorial", "b", "c"], by_hand_played())
    console.print(standings.table())
    assert "territorial" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_name_that_nobody_has_is_told_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="no player is called 'nobody': there are a, b, c"):
        by_hand()["nobody"]


@pytest.mark.parametrize("names", [["a", "b"], [f"runs/pool/snapshot_{i}000000.zip" for i in range(20)]])
def test_the_plot_is_a_png_of_sensible_size(names: list[str], tmp_path: Path) -> None:
    line_ups = draw_line_ups(len(names), 4, 30, np.random.default_rng(0))
    ranks = line_ups.argsort(axis=1).argsort(axis=1) + 1
    nothing = np.full(line_ups.shape, None, np.object_)
    standings = Standings(
        names, names, Played(line_ups, ranks, ranks, np.full(line_ups.shape, np.nan), nothing, MoveTimes.none(*line_ups.shape))
    )
    standings.plot(tmp_path / "plot.png")
    content = (tmp_path / "plot.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert 600 < width < 4000
    assert 350 < height < 4000
    assert [file.name for file in tmp_path.iterdir()] == ["plot.png"]


# The snake


def test_four_players_of_known_order_get_it() -> None:
    standings = tournament([straight, "random", "greedy", "survivor"], games=500, env_kwargs=RELATIVE)
    assert standings.names == ("survivor", "greedy", "random", "straight")
    intervals = [standing.rating.interval for standing in standings.standings]
    assert all(better[0] > worse[1] for better, worse in itertools.pairwise(intervals)), intervals
    assert sum(standing.win_rate for standing in standings.standings) == pytest.approx(1)
    assert all(standing.games == 500 for standing in standings.standings)
    assert standings["straight"].deaths["wall"] > 0.5
    assert standings["survivor"].mean_length > standings["random"].mean_length  # type: ignore[operator]


def test_the_same_seed_gives_the_same_standings() -> None:
    first, again, other = (tournament(["greedy", "random", "greedy"], games=40, seed=seed).as_json() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_two_players_share_four_seats() -> None:
    standings = tournament(["random", "greedy"], games=60)
    assert standings.names == ("greedy", "random")
    assert standings["greedy"].games == 120
    assert standings["greedy"].win_rate + standings["random"].win_rate == pytest.approx(0.5)
    assert standings.as_json()["payoff"]["greedy"]["random"] > 0.9
    assert standings.as_json()["meetings"]["greedy"]["random"] == 60 * 4


def test_checkpoints_pools_and_bots_play_together(tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    env = make_sb3_env("random", num_games=1, env_kwargs={"num_snakes": 2, "observation": "egocentric", "actions": "relative"})
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    env.close()
    pool = OpponentPool(tmp_path / "pool")
    pool.add_bot("greedy")
    for step in (0, 1000):
        pool.add(model, step=step)
    model.save(tmp_path / "mine.zip")
    duel = {"num_snakes": 2}
    players = [tmp_path / "mine.zip", "survivor", str(tmp_path / "pool")]
    standings = tournament(players, games=30, env_kwargs=duel, device="cpu")
    assert set(standings.names) == {"mine", "survivor", "greedy", "snapshot_0", "snapshot_1000"}
    assert standings["snapshot_0"].player == str(tmp_path / "pool" / "snapshot_0.zip")
    assert {"survivor", "greedy"} == set(standings.names[:2])
    alone = tournament(frozen(pool, deterministic=True), games=2, env_kwargs=duel, device="cpu")
    assert set(alone.names) == {"greedy", "snapshot_0", "snapshot_1000"}


def test_a_checkpoint_and_a_bot_of_one_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stable_baselines3 import PPO

    monkeypatch.chdir(tmp_path)
    duel = {"num_snakes": 2, "observation": "egocentric", "actions": "relative"}
    env = make_sb3_env("random", num_games=1, env_kwargs=duel)
    PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu").save("greedy.zip")
    env.close()
    standings = tournament(["greedy", "greedy.zip"], games=20, env_kwargs=duel, device="cpu")
    assert {one.name: one.player for one in standings.standings} == {"greedy 1": "greedy", "greedy 2": "greedy.zip"}
    assert standings["greedy 1"].win_rate > 0.5  # the bot


# Any parallel environment


def test_every_game_of_any_environment_is_played_with_its_own_line_up() -> None:
    standings = tournament([stay(turns) for turns in (1, 3, 5, 7, 9)], games=50, env=Staying)  # on fewer rows than games
    assert standings.names == ("stays_9", "stays_7", "stays_5", "stays_3", "stays_1")
    for turns in (1, 3, 5, 7, 9):
        assert standings[f"stays_{turns}"].mean_turns == turns
        assert standings[f"stays_{turns}"].mean_length is None
    assert sum(standing.games for standing in standings.standings) == 150
    assert np.nanmin(standings.payoff[np.triu_indices(5, 1)]) == 1.0


def test_who_leaves_in_the_same_turn_ties() -> None:
    standings = tournament([stay(2), stay(2), stay(4)], games=12, env=Staying)
    payoff = standings.as_json()["payoff"]
    assert payoff["stays_2 1"]["stays_2 2"] == 0.5
    assert standings["stays_2 1"].mean_placement == 2.0
    assert standings["stays_2 1"].rating == pytest.approx(standings["stays_2 2"].rating)


def test_placement_is_what_the_environment_or_the_user_says() -> None:
    players = [stay(2), stay(5), stay(8)]
    kwargs: dict[str, Any] = {"games": 12, "env": Staying}
    early, late = ("stays_2", "stays_5", "stays_8"), ("stays_8", "stays_5", "stays_2")
    said = {**kwargs, "env_kwargs": {"says_rank": True}}
    assert tournament(players, **said).names == early
    assert tournament(players, **said, placement="rank").names == early
    assert tournament(players, **said, placement="survival").names == late
    assert tournament(players, **kwargs, placement="return").names == early

    def most_turns(agents: Any, returns: Any, turns: Any, infos: Any) -> Any:
        assert len(agents) == len(returns) == len(turns) == len(infos) == 3
        assert returns[0] == pytest.approx(1 - sum(range(turns[0] + 1)) / 8)
        return [-7 * turn for turn in turns]

    standings = tournament(players, **said, placement=most_turns)
    assert standings.names == late
    assert standings["stays_8"].mean_placement == 1.0
    with pytest.raises(ValueError, match='needs "rank" in the info'):
        tournament(players, **kwargs, placement="rank")
    with pytest.raises(ValueError, match="a number for each of 3 agents"):
        tournament(players, **kwargs, placement=lambda *_: [1, 2])


def test_only_agents_that_live_are_asked_and_never_for_illegal_moves() -> None:
    made: list[ScriptedEnv] = []

    def factory() -> ScriptedEnv:
        made.append(ScriptedEnv(SCRIPTS["mixed games"], masks="info"))
        return made[-1]

    standings = tournament(["random", "random"], games=20, env=factory)
    assert len(made) == 16
    assert standings.games == 20
    assert [env.illegal_moves for env in made] == [0] * 16
    assert [env.closed for env in made] == [1] * 16


@pytest.mark.slow
def test_workers_play_the_same_games() -> None:
    players = [stay(2), stay(5), "random"]
    here, there = (tournament(players, games=30, env=Staying, num_workers=workers).as_json() for workers in (0, 2))
    assert here == there


@pytest.mark.parametrize("env", ["snake_v0", snake_v0.parallel_env])
def test_the_snake_is_the_snake_by_whatever_name(env: Any) -> None:
    assert tournament(["greedy", "random"], games=6, env=env).as_json() == tournament(["greedy", "random"], games=6).as_json()


# What is refused, and the command


@pytest.mark.parametrize(
    ("players", "kwargs", "message"),
    [
        (["greedy"], {}, "at least two players"),
        (["greedy", "genius"], {}, "genius"),
        (["greedy", mixture({"greedy": 1})], {}, "not one player"),
        (["greedy", "random"], {"games": 0}, "games must be a whole number from 1 to 1,000,000, got 0"),
        (["greedy", "random"], {"games": 2.5}, "games must be a whole number from 1 to 1,000,000, got 2.5"),
        (["greedy", "random"], {"games": 10**9}, "games must be a whole number from 1 to 1,000,000, got 1000000000"),
        (["greedy", "random"], {"env_kwargs": {"num_snakes": 1}}, "at least two seats, got 1"),
        (["random", stay(2)], {"env": Staying, "env_kwargs": {"agents": 1}}, "at least two seats, got 1"),
        (["greedy", "random"], {"placement": "beauty"}, "placement must be"),
        (["greedy", "random"], {"num_workers": 2, "replays": "folder"}, "without workers"),
        (["greedy", "random"], {"env": Staying, "replays": "folder"}, "replays are of the snake"),
        (["greedy", "random"], {"env": Staying}, "the only bot that plays any environment"),
    ],
)
def test_what_does_not_fit_is_refused(players: list[Any], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tournament(players, **{"games": 1, **kwargs})


def test_replays_that_cannot_be_kept_are_told_before_the_games(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        tournament(["greedy", "random"], games=1, replays=tmp_path / "file" / "replays")
    tournament(["greedy", "random"], games=1, replays=tmp_path / "new" / "replays")
    assert [path.name for path in (tmp_path / "new" / "replays").iterdir()] == ["game_01.jsonl"]


def test_settings_reach_all_members_of_a_pool_but_bots(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    pool.add_bot("greedy")
    pool.add_bot("champion")
    assert players([frozen(pool, deterministic=True), "random"]) == [
        parse("greedy"),
        parse(frozen("champion", deterministic=True)),
        parse("random"),
    ]


def test_the_command_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    names = ("plot.png", "json.json", "csv.csv")
    files = [text for name in names for text in (f"--{name.split('.')[0]}", str(tmp_path / name))]
    result = CliRunner().invoke(
        app,
        ["tournament", "greedy", "random", "--games", "20", "--snakes", "2", "--replays", str(tmp_path / "replays"), *files],
    )
    assert result.exit_code == 0, result.output
    assert "20 games" in result.output
    assert "greedy" in result.output
    assert {file.name for file in tmp_path.iterdir()} == {*names, "replays"}
    written = json.loads((tmp_path / "json.json").read_text())
    assert [standing["name"] for standing in written["standings"]] == ["greedy", "random"]
    assert len(list((tmp_path / "replays").iterdir())) == 10
    expected = tournament(["greedy", "random"], games=20, env_kwargs={"num_snakes": 2}).as_json()
    assert written == json.loads(json.dumps(expected))


def test_the_command_prints_json_alone_if_asked_to() -> None:
    result = CliRunner().invoke(app, ["tournament", "greedy", "random", "--games", "4", "--json", "-"])
    assert json.loads(result.stdout)["games"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["greedy"], "at least two players"),
        (["greedy", "genius"], "genius"),
        (["greedy", "nowhere/model.zip"], "nowhere/model.zip"),
        (["greedy", "random", "--rules", "chess"], "chess"),
    ],
)
def test_the_command_says_in_a_sentence_what_is_wrong(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["tournament", *arguments])
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
