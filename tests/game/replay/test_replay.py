"""Saving, restoring, copying and replaying games: what goes on, goes on equal."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_pz import Rules, SnakeEngine, snake_v0
from snake_pz.replay import Recorder, Replay
from snake_pz.replay.export import write_gif, write_html
from tests.support.recorded_games import read_games

PRESETS = {
    "classic": Rules.classic(),
    "wrapped": Rules.battlesnake("wrapped"),
    "constrictor": Rules.battlesnake("constrictor"),
    "royale": Rules.battlesnake("royale"),
    "geese": Rules.hungry_geese(),
}
presets = pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS.keys())


def _go_on(engine: SnakeEngine, turns: int, seed: int = 0) -> None:
    """Random moves that do not surely kill; games that are over start anew."""
    rng = np.random.default_rng(seed)
    for _ in range(turns):
        masks = engine.action_masks("absolute") * rng.random((*engine.state.alive.shape, 4))
        engine.step(masks.argmax(axis=2))
        engine.reset(np.flatnonzero(engine.state.over))


def _started(rules: Rules, games: int, turns: int) -> SnakeEngine:
    engine = SnakeEngine(rules, games, seed=5)
    engine.reset()
    _go_on(engine, turns, seed=9)
    return engine


@presets
def test_a_saved_game_goes_on_equal_for_a_thousand_turns(rules: Rules) -> None:
    engine = _started(rules, 6, 20)
    other = SnakeEngine(rules, 6, seed=99)
    other.reset()
    other.load(engine.save())
    _go_on(engine, 1000)
    _go_on(other, 1000)
    assert read_games(engine) == read_games(other)


def test_save_and_load_of_rows_leave_the_others_alone() -> None:
    engine = _started(PRESETS["classic"], 5, 10)
    before = read_games(engine)
    saved = engine.save(np.array([1, 3]))
    _go_on(engine, 30)
    after = read_games(engine)
    engine.load(saved, np.array([0, 4]))
    assert read_games(engine) == [before[1], *after[1:4], before[3]]


@presets
def test_a_copied_game_goes_on_like_its_source(rules: Rules) -> None:
    engine = _started(rules, 4, 15)
    kept = read_games(engine)
    engine.load(engine.save(np.array([0, 0])), np.array([2, 3]))
    assert read_games(engine) == [kept[0], kept[1], kept[0], kept[0]]
    moves = np.random.default_rng(0).integers(0, 4, (500, 1, rules.num_snakes)).repeat(4, axis=1)
    for move in moves:
        engine.step(move)
    games = read_games(engine)
    assert games[0] == games[2] == games[3]


def _steps(env: Any, steps: int) -> list[Any]:
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(steps):
        if env.agents:
            seen.append(env.step({agent: int(rng.integers(4)) for agent in env.agents}))
        else:
            seen.append(env.reset())
    return seen


@presets
def test_an_environment_goes_on_equal_from_its_state_its_pickle_and_its_copy(rules: Rules) -> None:
    env = snake_v0.parallel_env(rules=rules)
    env.reset(seed=3)
    env.step(dict.fromkeys(env.agents, 1))
    twin = snake_v0.parallel_env(rules=rules)
    views, infos = twin.set_state(env.get_state())
    assert list(views) == list(infos) == twin.agents == env.agents
    others = [twin, pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    expected = pickle.dumps(_steps(env, 1000))
    for other in others:
        assert pickle.dumps(_steps(other, 1000)) == expected


def test_set_state_shows_what_the_saved_game_showed() -> None:
    env = snake_v0.parallel_env()
    env.reset(seed=3)
    views, *_ = env.step(dict.fromkeys(env.agents, 1))
    state, alive = env.get_state(), list(env.agents)
    _steps(env, 50)
    again, infos = env.set_state(state)
    assert env.agents == alive
    for agent in alive:
        assert np.array_equal(again[agent], views[agent])
        assert infos[agent]["rank"] is None


def test_a_truncated_game_stays_truncated() -> None:
    env = snake_v0.parallel_env(max_cycles=2, edge="wrap")
    env.reset(seed=0)
    for _ in range(2):
        env.step(dict.fromkeys(env.agents, 0))
    assert env.set_state(env.get_state()) == ({}, {})


def test_a_game_that_goes_on_after_a_limit_has_no_ranks_yet() -> None:
    short = snake_v0.parallel_env(max_cycles=2, edge="wrap")
    short.reset(seed=0)
    for _ in range(2):
        *_, infos = short.step(dict.fromkeys(short.agents, 0))
    assert all(info["rank"] for info in infos.values())
    longer = snake_v0.parallel_env(max_cycles=9, edge="wrap")
    longer.set_state(short.get_state())
    *_, infos = longer.step(dict.fromkeys(longer.agents, 0))
    assert [info["rank"] for agent, info in infos.items() if agent in longer.agents] == [None] * len(longer.agents)
    assert longer.agents


def test_the_state_of_another_game_is_refused() -> None:
    env = snake_v0.parallel_env()
    with pytest.raises(ValueError, match="the same board and number of snakes"):
        env.set_state(snake_v0.parallel_env(num_snakes=2).get_state())


# -------------------------------------------------------------------------------------------------------------- replays


def _recorded(rules: Rules, seed: int = 11, turns: int = 300) -> tuple[Replay, list[Any]]:
    engine = SnakeEngine(rules, 1)
    engine.reset(seeds=[seed])
    recorder = Recorder(engine, seed)
    rng = np.random.default_rng(seed)
    games = read_games(engine)
    while not engine.state.over[0] and engine.state.turn[0] < turns:
        actions = (engine.action_masks("absolute") * rng.random((1, rules.num_snakes, 4))).argmax(axis=2)
        if engine.state.turn[0] == 3:
            actions[0, 0] = -1
        engine.step(actions)
        recorder.turn(actions)
        games += read_games(engine)
    return recorder.replay(), games


@presets
def test_a_replay_shows_the_game_that_was_played(rules: Rules, tmp_path: Path) -> None:
    replay, games = _recorded(rules)
    path = tmp_path / "new" / "game.jsonl"
    replay.save(path)
    loaded = Replay.load(path)
    assert (loaded.rules, loaded.seed, loaded.names, loaded.actions) == (rules, 11, replay.names, replay.actions)
    engine = SnakeEngine(rules, 1)
    shown = []
    for state in loaded.states():
        engine.load(state)
        shown += read_games(engine)
    assert shown == games
    assert list(tmp_path.rglob(".*")) == []


def test_names_may_hold_anything(tmp_path: Path) -> None:
    replay, _ = _recorded(PRESETS["classic"])
    names = ("\x1b]0;owned\x07", "</script>{killer}", "\ud800", "蛇")
    replay = dataclasses.replace(replay, names=names)
    replay.save(tmp_path / "game.jsonl")
    assert Replay.load(tmp_path / "game.jsonl").names == names
    write_html(replay, tmp_path / "game.html")
    write_gif(replay, tmp_path / "game.gif")
    page = (tmp_path / "game.html").read_text(encoding="utf-8")
    assert r"snake-pz: \x1b]0;owned\x07, &lt;/script&gt;{killer}, \ud800, 蛇" in page


def test_a_game_of_a_batch_can_be_recorded(tmp_path: Path) -> None:
    engine = SnakeEngine(PRESETS["classic"], 3)
    engine.reset(seeds=[1, 2, 3])
    recorder = Recorder(engine.game(1), 2, ["a", "b", "c", "d"])
    for _ in range(3):
        actions = np.ones((3, 4), np.int8)
        engine.step(actions)
        recorder.turn(actions[1])
    recorder.replay().save(tmp_path / "r.jsonl")
    assert Replay.load(tmp_path / "r.jsonl").names == ("a", "b", "c", "d")


def test_a_recording_that_broke_off_shows_what_there_is(tmp_path: Path) -> None:
    replay, _ = _recorded(PRESETS["classic"])
    path = tmp_path / "r.jsonl"
    replay.save(path)
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:6]))
    assert Replay.load(path).actions == replay.actions[:5]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (
            lambda lines: [*lines[:3], lines[3].replace('["', '["')[:2] + "xxxx" + lines[3][6:], *lines[4:]],
            "differs from its recording",
        ),
        (lambda lines: [lines[0].replace('"seed":11', '"seed":12'), *lines[1:]], "differs from its recording on turn 1"),
        (lambda lines: [lines[0].replace('"version":1', '"version":3'), *lines[1:]], "has version 3 of the format, expected 1"),
        (lambda lines: [lines[0].replace("snake-pz replay", "chess"), *lines[1:]], "is no snake-pz replay"),
        (lambda lines: [lines[0].replace('"width"', '"widht"'), *lines[1:]], "unknown rule 'widht'"),
        (lambda lines: [*lines[:3], '["u","0000"]', *lines[4:]], "turn 3 has no action for each of 4 snakes"),
        (lambda lines: [*lines[:3], *lines[4:]], "turns, but has"),
        (lambda lines: [*lines[:3], lines[-1], *lines[3:]], "damaged"),
        (lambda lines: [*lines[:-1], lines[-1].replace('"hash":"', '"hash":"0')], "lacks the hash, 32 hexadecimal digits"),
        (lambda lines: [*lines[:-1], lines[-1][: lines[-1].index('"hash"')] + '"hash":""}'], "lacks the hash"),
        (lambda lines: [lines[0].replace('"seed":11', '"seed":11.5'), *lines[1:]], "seed must be a whole number, got 11.5"),
        (lambda lines: [lines[0].replace('"seed":11', '"seed":Infinity'), *lines[1:]], "seed must be a whole number, got inf"),
        (lambda lines: [lines[0].replace('"seed":11', '"seed":-1'), *lines[1:]], "damaged .*seed must be between 0 and"),
        (lambda lines: [lines[0].replace('"snake_0"', "7"), *lines[1:]], "a name for each of 4 snakes"),
        (lambda lines: ["[" * 100_000], "is no snake-pz replay"),
        (lambda lines: ["not json"], "is no snake-pz replay"),
        (lambda lines: [], "is no snake-pz replay"),
    ],
)
def test_damaged_files_are_refused(edit: Any, text: str, tmp_path: Path) -> None:
    replay, _ = _recorded(PRESETS["classic"])
    path = tmp_path / "r.jsonl"
    replay.save(path)
    path.write_text("\n".join(edit(path.read_text().splitlines())))
    with pytest.raises(ValueError, match=text):
        Replay.load(path)


def test_only_the_start_of_a_game_can_be_recorded() -> None:
    engine = _started(PRESETS["classic"], 1, 3)
    with pytest.raises(ValueError, match="one game at its start"):
        Recorder(engine, int(engine.state.seed[0]))
    engine.reset(seeds=[4])
    with pytest.raises(ValueError, match="reset by seed 5"):
        Recorder(engine, 5)
    with pytest.raises(ValueError, match="a name for each of 4 snakes"):
        Recorder(engine, 4, ["a"])


def test_the_file_is_small_and_says_what_it_is(tmp_path: Path) -> None:
    replay, _ = _recorded(Rules.classic(edge="wrap", hunger="none", head_to_head="longest_survives"), turns=100)
    replay.save(tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["format"] == "snake-pz replay"
    assert len(lines) == len(replay.actions) + 2
    assert max(len(line) for line in lines[1:-1]) == len('["uuuu","1f3a"]')


def test_what_is_no_replay_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "game.gif").write_bytes(b"GIF89a\x80\xff")
    with pytest.raises(ValueError, match=r"game\.gif is no snake-pz replay: it is not even text"):
        Replay.load(tmp_path / "game.gif")
    with pytest.raises(FileNotFoundError, match="expected a file that --record"):
        Replay.load(tmp_path)
    (tmp_path / "game.jsonl").touch()
    with pytest.raises(FileNotFoundError, match=r"did you mean .*game\.jsonl\?"):
        Replay.load(tmp_path)
