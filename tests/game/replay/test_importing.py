"""Games that other programs recorded, as replays."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from snake_pz import Rules, SnakeEngine, make_bot
from snake_pz.core.state import SnakeState, body_cells
from snake_pz.formats import battlesnake, hungry_geese
from snake_pz.formats.battlesnake_export import recorded_frames
from snake_pz.formats.geese_episode import recorded_episode
from snake_pz.replay import Replay
from snake_pz.replay.export import write_html
from snake_pz.replay.importing import import_game, read_recorded
from snake_pz.rules import Battlesnake
from tests.support.official_rules import battlesnake_request, read

DATA = Path(__file__).resolve().parents[2] / "data"


def played(rules: Rules, seed: int, each: Callable[[SnakeEngine, np.ndarray[Any, Any]], None]) -> SnakeEngine:
    """A game of bots; `each` is called at its start, with no moves, and after every turn."""
    engine, bot = SnakeEngine(rules), make_bot("greedy", rules)
    bot.seed(seed)
    engine.reset(seeds=[seed])
    each(engine, np.full(rules.num_snakes, -1))
    while not engine.state.over[0] and engine.state.turn[0] < 120:
        masks = engine.action_masks("absolute")[0]
        moves = bot.act(engine.observe("board")[0], np.arange(rules.num_snakes), masks)
        engine.step(moves[None])
        each(engine, moves)
    return engine


def frames(rules: Rules, seed: int) -> tuple[dict[str, Any], SnakeEngine]:
    """An export of a game, as the official engine writes it."""
    listed: list[dict[str, Any]] = []
    known: list[dict[str, Any]] = []

    def point(cell: int) -> dict[str, int]:
        return {"X": cell % rules.width, "Y": rules.height - 1 - cell // rules.width}

    def each(engine: SnakeEngine, moves: np.ndarray[Any, Any]) -> None:
        state, snakes = engine.state, []
        for number in range(rules.num_snakes):
            body = [point(cell) for cell in body_cells(state, 0, number).tolist()]
            death = None
            if state.just_died[0, number]:
                head = known[number]["Body"][0]
                steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
                x, y = steps[moves[number]]
                moved = {"X": head["X"] + x, "Y": head["Y"] + y}
                if rules.edge == "wrap":
                    moved = {"X": moved["X"] % rules.width, "Y": moved["Y"] % rules.height}
                death = {"Cause": "snake-collision", "Turn": int(state.turn[0]), "EliminatedBy": ""}
                body = [moved, *known[number]["Body"][:-1]]
            elif not state.alive[0, number]:
                snakes.append(known[number])
                continue
            snakes.append(
                {
                    "ID": f"gs_{number}",
                    "Name": f"snake {number}",
                    "Body": body,
                    "Health": int(state.health[0, number]),
                    "Death": death,
                    "Latency": "12",
                    "Squad": "",
                }
            )
        known[:] = snakes
        counts = {"Food": state.food[0], "Hazards": state.hazard[0]}
        cells = {what: [point(cell) for cell in np.flatnonzero(count).tolist()] for what, count in counts.items()}
        listed.append({"Turn": int(state.turn[0]), "Snakes": copy.deepcopy(snakes), **cells})

    engine = played(rules, seed, each)
    settings = battlesnake.request(rules, engine.state, 0, 0)["game"]["ruleset"]
    ruleset = {
        "name": settings["name"],
        "foodSpawnChance": str(settings["settings"]["foodSpawnChance"]),
        "minimumFood": str(settings["settings"]["minimumFood"]),
        "damagePerTurn": str(settings["settings"]["hazardDamagePerTurn"]),
        "shrinkEveryNTurns": str(rules.shrink_every),
    }
    game = {"ID": "some-game", "Width": rules.width, "Height": rules.height, "Ruleset": ruleset, "Map": "standard"}
    return {"Game": game, "Frames": listed}, engine


def assert_is(replay: Replay, engine: SnakeEngine) -> None:
    """The replay ends as the game did."""
    *_, last = replay.states()
    for name in ("alive", "length", "health", "rank", "turn", "over", "food", "hazard", "occupancy"):
        np.testing.assert_array_equal(getattr(last, name), getattr(engine.state, name), err_msg=name)


@pytest.mark.parametrize("ruleset", get_args(Battlesnake))
def test_frames_become_a_replay_that_is_the_game_turn_for_turn(ruleset: str, tmp_path: Path) -> None:
    rules = Rules.battlesnake(ruleset, **({"shrink_every": 5} if ruleset == "royale" else {}))  # type: ignore[arg-type]
    for seed in range(3):
        export, engine = frames(rules, seed)
        (tmp_path / "game.json").write_text(json.dumps(export))
        replay, differences = import_game(read_recorded(tmp_path / "game.json"))
        assert differences == ()
        assert replay.rules == rules.replace(food_chance=rules.food_chance)
        assert replay.names == tuple(f"snake {number}" for number in range(rules.num_snakes))
        assert len(replay.actions) == engine.state.turn[0] > 5
        assert_is(replay, engine)
        replay.save(tmp_path / "game.jsonl")
        again = Replay.load(tmp_path / "game.jsonl")
        assert_is(again, engine)
        assert [turn for turn in again.drawn if any(turn)]
    write_html(again, tmp_path / "game.html")


def test_lines_of_the_command_line_client_become_a_replay(tmp_path: Path) -> None:
    """Snakes that are out are not listed there, so their last moves are found by the rules."""
    rules, lines = Rules.battlesnake(), []

    def each(engine: SnakeEngine, moves: np.ndarray[Any, Any]) -> None:
        if engine.state.alive[0].any():
            alive = int(np.flatnonzero(engine.state.alive[0])[0])
            lines.append(battlesnake.request(rules, engine.state, 0, alive))

    engine = played(rules, 4, each)
    text = [lines[0]["game"], *lines, {"winnerId": "", "winnerName": "", "isDraw": False}]
    (tmp_path / "out.log").write_text("".join(json.dumps(line) + "\n" for line in text))
    replay, differences = import_game(read_recorded(tmp_path / "out.log"))
    assert differences == ()
    assert len(replay.actions) == engine.state.turn[0]
    assert not engine.state.alive[0].all()
    assert_is(replay, engine)


@pytest.mark.parametrize("ruleset", ["standard", "wrapped", "constrictor", "royale", "solo"])
def test_turns_of_the_official_engine_are_imported_without_a_difference(ruleset: str) -> None:
    records = [record for record in read(DATA / f"bs_{ruleset}.jsonl.gz") if record["source"] == "game"]
    records = [one for one in records if not one["after"]["over"] and one["turn"] > 0][::9]
    assert len(records) > 30
    for record in records:
        first = battlesnake_request(record)
        after = record | record["after"] | {"turn": record["turn"] + 1}
        second = battlesnake_request(after)
        recorded = recorded_frames(
            {
                "Game": {
                    "ID": record["game"],
                    "Width": record["width"],
                    "Height": record["height"],
                    "Ruleset": {"name": record["ruleset"], **record["settings"]},
                },
                "Frames": [
                    {"turn": one["turn"], **one["board"], "snakes": [s | died for s, died in snakes]}
                    for one, snakes in (
                        (first, [(snake, {}) for snake in first["board"]["snakes"]]),
                        (second, listed(after, {snake["id"] for snake in first["board"]["snakes"]})),
                    )
                ],
            }
        )
        replay, differences = import_game(recorded)
        assert differences == (), record
        assert len(replay.actions) == 1
        *_, last = replay.states()
        assert sum(last.alive[0]) == len(second["board"]["snakes"])


def listed(record: dict[str, Any], names: set[str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """All snakes of a record, those that are out with their death."""
    request = battlesnake_request(record | {"snakes": [snake | {"cause": ""} for snake in record["snakes"]]})
    deaths = [{"death": {"Cause": snake["cause"]} if snake["cause"] else None} for snake in record["snakes"]]
    return [one for one in zip(request["board"]["snakes"], deaths, strict=True) if one[0]["id"] in names]


def episode(rules: Rules, seed: int) -> tuple[dict[str, Any], SnakeEngine]:
    """An episode as Kaggle writes it."""
    steps: list[Any] = []

    def each(engine: SnakeEngine, moves: np.ndarray[Any, Any]) -> None:
        shown = hungry_geese.observation(engine.state, 0, 0)
        steps.append(
            [
                {
                    "action": hungry_geese.MOVES[max(moves[goose], 0)],
                    "observation": shown if goose == 0 else {},
                    "status": "ACTIVE",
                }
                for goose in range(rules.num_snakes)
            ]
        )

    engine = played(rules, seed, each)
    info = {"TeamNames": ["a", "b", "c", "d"]}
    return {"name": "hungry_geese", "configuration": hungry_geese.configuration(rules), "steps": steps, "info": info}, engine


def test_an_episode_of_geese_becomes_a_replay(tmp_path: Path) -> None:
    for seed in range(3):
        found, engine = episode(Rules.hungry_geese(), seed)
        (tmp_path / "episode.json").write_text(json.dumps(found))
        replay, differences = import_game(read_recorded(tmp_path / "episode.json"))
        assert differences == ()
        assert replay.names == ("a", "b", "c", "d")
        assert len(replay.actions) == engine.state.turn[0] > 5
        assert_is(replay, engine)
        replay.save(tmp_path / "game.jsonl")
        again = Replay.load(tmp_path / "game.jsonl")
        assert (again.actions, again.drawn) == (replay.actions, replay.drawn)
        assert_is(again, engine)


def test_an_episode_of_the_official_environment_is_imported_turn_for_turn(tmp_path: Path) -> None:
    """One of its geese makes moves that are none."""
    (tmp_path / "episode.json").write_bytes(gzip.decompress((DATA / "hg_episode.json.gz").read_bytes()))
    recorded = read_recorded(tmp_path / "episode.json")
    replay, differences = import_game(recorded)
    assert differences == ()
    assert len(replay.actions) == len(recorded.moves) == 51
    assert any("x" in turn for turn in replay.actions)
    for state, position in zip(replay.states(), recorded.positions, strict=True):
        bodies = [[(int(cell) % 11, int(cell) // 11) for cell in body_cells(state, 0, goose)] for goose in range(4)]
        assert [body if alive else [] for body, alive in zip(bodies, state.alive[0], strict=True)] == position.bodies


def test_differences_are_named_and_the_replay_ends_before_them() -> None:
    export, _ = frames(Rules.battlesnake(), 1)
    for change, text in [
        (lambda frame: frame["Snakes"][0].update(Health=55), "turn 4: snake 0 has health 55, by the rules 9"),
        (lambda frame: frame["Snakes"][1]["Body"].pop(), "turn 4: snake 1 is on ("),
        (lambda frame: frame["Snakes"][2].update(Death={"Cause": "x"}), "turn 4: snake 2 is out, by the rules in"),
        (lambda frame: frame["Food"].clear(), "turn 4: no food on ("),
    ]:
        changed = copy.deepcopy(export)
        change(changed["Frames"][4])
        replay, differences = import_game(recorded_frames(changed))
        assert len(replay.actions) == 3
        assert differences[0].startswith(text)


def test_a_game_that_goes_on_after_its_end_differs_there() -> None:
    export, engine = frames(Rules.battlesnake(), 1)
    last = export["Frames"][-1]
    again = last | {"Turn": last["Turn"] + 1}
    replay, differences = import_game(recorded_frames(export | {"Frames": [*export["Frames"], again]}))
    assert (len(replay.actions), differences) == (engine.state.turn[0], ())
    moved = copy.deepcopy(again)
    alive = next(snake for snake in moved["Snakes"] if snake["Death"] is None)
    alive["Body"] = [alive["Body"][1], *alive["Body"][:-1]]
    _, differences = import_game(recorded_frames(export | {"Frames": [*export["Frames"], moved]}))
    assert differences == (f"turn {moved['Turn']}: {alive['Name']} moves, by the rules the game is over",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is no game that can be imported: expected an object|is no JSON"),
        ("nonsense", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "expected an object"),
        ("{}", r"expected Battlesnake's frames or an episode with steps, got an object with \[\]"),
        ('{"Game": {"Width": 11, "Height": 11}, "Frames": []}', "at least its start"),
        ('{"Game": {"Width": 11, "Height": 11}, "Frames": [{"Turn": 0, "Snakes": 5}]}', "snakes must be a list"),
        ('{"steps": []}', "at least one step"),
        ('{"steps": [[{"observation": {"geese": [[99]], "food": []}}]]}', "cell must be a whole number from 0 to 76, got 99"),
        ('{"name": "connectx", "steps": []}', "must be of hungry_geese, got 'connectx'"),
    ],
)
def test_files_that_are_no_games_are_refused(text: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "game.json").write_text(text)
    with pytest.raises(ValueError, match=error):
        read_recorded(tmp_path / "game.json")


def test_damaged_replays_of_such_games_are_refused(tmp_path: Path) -> None:
    export, _ = frames(Rules.battlesnake(), 1)
    replay, _ = import_game(recorded_frames(export))
    replay.save(tmp_path / "game.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "game.jsonl").read_text().splitlines()]
    assert lines[0]["version"] == 2
    spawned = next(number for number, line in enumerate(lines) if isinstance(line, list) and len(line) == 3)
    for change, text in [
        (lambda: lines[0]["start"]["food"].append(121), "cell must be a whole number from 0 to 120, got 121"),
        (lambda: lines[0].pop("start"), "damaged"),
        (lambda: lines[spawned].append(5), "damaged"),
        (lambda: lines[spawned][2][0].append(-1), "cell must be a whole number from 0"),
        (lambda: lines[spawned].pop(), "differs from its recording on turn"),
    ]:
        kept = copy.deepcopy(lines)
        change()
        (tmp_path / "bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lines[:] = kept
        with pytest.raises(ValueError, match=text):
            Replay.load(tmp_path / "bad.jsonl")
    assert isinstance(next(replay.states()), SnakeState)
    assert recorded_episode(episode(Rules.hungry_geese(), 0)[0]).names == ["a", "b", "c", "d"]
