"""Battlesnake and Hungry Geese against every recorded transition, and that the harness notices what is wrong."""

from __future__ import annotations

import copy
import functools
import gzip
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.official_events import events
from tests.support.official_rules import main, read, replay, report

DATA = Path(__file__).resolve().parents[2] / "data"
FILES = sorted(DATA.glob("*.jsonl.gz"))
SIZES = {
    "bs_constrictor": 1584,
    "bs_initial_boards": 144,
    "bs_invalid_moves": 66,
    "bs_royale": 1608,
    "bs_solo": 1586,
    "bs_standard": 1586,
    "bs_wrapped": 1620,
    "hg_hungry_geese": 2050,
    "hg_initial_states": 35,
}

Record = dict[str, Any]

recorded = functools.cache(read)
"""The records of a file, parsed once: a test that changes one changes a copy."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_every_record_holds(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(path), capsys.readouterr().out
    number = SIZES[path.name.split(".")[0]]
    assert capsys.readouterr().out.startswith(f"{path.name}: {number} of {number} records hold\n")


def test_the_data_are_those_described() -> None:
    assert {path.name.split(".")[0] for path in FILES} == set(SIZES)
    sums = dict(line.split() for line in (DATA / "README.md").read_text().splitlines() if line.endswith((".gz", ".json")))
    names = {name: digest for digest, name in sums.items()}
    assert set(names) == {path.name for path in DATA.iterdir() if path.is_file()} - {"README.md"}
    for name, digest in names.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest, name


# ----------------------------------------------------------------------------------------- the harness notices mistakes


def record(name: str, condition: Callable[[Record], bool]) -> Record:
    """A copy of the first record of a file that meets a condition."""
    return copy.deepcopy(next(found for found in recorded(DATA / f"{name}.jsonl.gz") if condition(found)))


def causes(found: Record) -> list[tuple[str, str]]:
    """Of what each snake dies that dies in a record, and by whom."""
    pairs = zip(found["snakes"], found["after"]["snakes"], strict=True)
    return [(later["cause"], later["by"]) for earlier, later in pairs if later["cause"] and not earlier["cause"]]


def dies(found: Record) -> bool:
    return any(by for _, by in causes(found))


def has_dead(found: Record) -> bool:
    return any(snake["cause"] for snake in found["snakes"]) and not found["after"]["over"]


def first_dead(found: Record) -> Record:
    """What a record says of a snake that dies in it, or was out before it."""
    return next(snake for snake in found["after"]["snakes"] if snake["cause"])


def leaves_board(found: Record) -> bool:
    return any(cause == "wall-collision" for cause, _ in causes(found))


def kept_food(found: Record) -> bool:
    return len({tuple(cell) for cell in found["after"]["food"]}) > 1


def set_item(where: Any, key: Any, value: Any) -> None:
    assert where[key] != value, "that would change nothing"
    where[key] = value


BATTLESNAKE_MISTAKES: dict[str, tuple[str, Callable[[Record], bool], Callable[[Record, Record], None]]] = {
    "body: another head": ("bs_standard", dies, lambda r, a: set_item(a["snakes"][0]["body"], 0, [9, 9])),
    "body: a segment more": ("bs_standard", dies, lambda r, a: a["snakes"][0]["body"].append(a["snakes"][0]["body"][-1])),
    "body: a segment less": ("bs_standard", dies, lambda r, a: a["snakes"][0]["body"].pop()),
    "body: left elsewhere": (
        "bs_standard",
        leaves_board,
        lambda r, a: set_item(next(snake for snake in a["snakes"] if snake["cause"] == "wall-collision")["body"], 0, [-1, -1]),
    ),
    "body of one that was out": ("bs_constrictor", has_dead, lambda r, a: first_dead(r)["body"].pop()),
    "health": ("bs_standard", dies, lambda r, a: set_item(a["snakes"][0], "health", a["snakes"][0]["health"] + 1)),
    "health of one that was out": ("bs_constrictor", has_dead, lambda r, a: set_item(first_dead(r), "health", 99)),
    "cause": ("bs_standard", dies, lambda r, a: set_item(first_dead(r), "cause", "out-of-health")),
    "cause of one that was out": ("bs_wrapped", has_dead, lambda r, a: set_item(first_dead(r), "cause", "hazard")),
    "nobody dies": ("bs_standard", dies, lambda r, a: [snake.update(cause="", by="") for snake in a["snakes"]]),
    "by": ("bs_standard", dies, lambda r, a: set_item(next(s for s in a["snakes"] if s["by"]), "by", "")),
    "by of one that was out": ("bs_solo", has_dead, lambda r, a: set_item(first_dead(r), "by", "nobody")),
    "food gone": ("bs_standard", kept_food, lambda r, a: a["food"].pop()),
    "food there": ("bs_standard", kept_food, lambda r, a: a["food"].append([0, 0])),
    "food twice": ("bs_royale", kept_food, lambda r, a: a["food"].append(a["food"][0])),
    "food in another order": ("bs_solo", kept_food, lambda r, a: a["food"].reverse()),
    "over": ("bs_standard", dies, lambda r, a: set_item(a, "over", True)),
    "not over": ("bs_solo", lambda r: r["after"]["over"], lambda r, a: set_item(a, "over", False)),
    "over next": ("bs_wrapped", lambda r: not r["after"]["over_next"], lambda r, a: set_item(a, "over_next", True)),
    "not over next": ("bs_wrapped", lambda r: r["after"]["over_next"], lambda r, a: set_item(a, "over_next", False)),
    "hazards: a cell more": (
        "bs_royale",
        lambda r: not r["after"]["hazards"] and not r["after"]["over"],
        lambda r, a: a["hazards"].append([1, 1]),
    ),
    "hazards: a cell less": ("bs_royale", lambda r: len(r["after"]["hazards"]) > 9, lambda r, a: a["hazards"].pop()),
    "hazards: a cell twice": (
        "bs_royale",
        lambda r: len(r["after"]["hazards"]) > 9 and not r["after"]["over"],
        lambda r, a: a["hazards"].append(a["hazards"][0]),
    ),
    "hazards after the end": (
        "bs_royale",
        lambda r: r["after"]["over"] and not r["hazards"],
        lambda r, a: a["hazards"].extend([0, y] for y in range(r["height"])),
    ),
    "snakes in another order": ("bs_standard", dies, lambda r, a: a["snakes"].reverse()),
}


@pytest.mark.parametrize("mistake", BATTLESNAKE_MISTAKES)
def test_a_wrong_battlesnake_record_does_not_hold(mistake: str) -> None:
    name, condition, spoil = BATTLESNAKE_MISTAKES[mistake]
    assert_noticed(record(name, condition), spoil)


def spawned(found: Record) -> bool:
    return len(found["after"]["food"]) > len(found["after"]["food_before_spawn"]) > 1


def living(found: Record) -> bool:
    return bool(found["after"]["geese"][0]) and "ACTIVE" in found["after"]["status"]


def goose_dies(found: Record) -> bool:
    return bool(found["geese"][0]) and not found["after"]["geese"][0]


def swap_first(items: list[Any]) -> None:
    items[0], items[1] = items[1], items[0]


GEESE_MISTAKES: dict[str, tuple[Callable[[Record], bool], Callable[[Record, Record], None]]] = {
    "body": (living, lambda r, a: a["geese"][0].append(0)),
    "it lives": (goose_dies, lambda r, a: a["geese"][0].append(r["geese"][0][0])),
    "it dies": (living, lambda r, a: a["geese"][0].clear()),
    "status": (living, lambda r, a: set_item(a["status"], 0, "DONE")),
    "status of one that dies": (goose_dies, lambda r, a: set_item(a["status"], 0, "ACTIVE")),
    "reward": (living, lambda r, a: set_item(a["reward"], 0, a["reward"][0] - 1)),
    "reward of one that dies": (
        lambda r: goose_dies(r) and r["after"]["reward"][0] is not None,
        lambda r, a: set_item(a["reward"], 0, a["reward"][0] + 1),
    ),
    "reward is none": (living, lambda r, a: set_item(a["reward"], 0, None)),
    "food eaten": (spawned, lambda r, a: (a["food_before_spawn"].pop(0), a["food"].pop(0))),
    "food in another order": (spawned, lambda r, a: (swap_first(a["food_before_spawn"]), swap_first(a["food"]))),
    "food in two orders": (spawned, lambda r, a: swap_first(a["food"])),
    "a piece more": (spawned, lambda r, a: a["food"].append(next(iter(set(range(77)) - set(a["food"]))))),
    "a piece less": (spawned, lambda r, a: a["food"].pop()),
    "new food under a goose": (
        lambda r: spawned(r) and living(r),
        lambda r, a: set_item(a["food"], -1, a["geese"][0][0]),
    ),
    "new food off the board": (spawned, lambda r, a: set_item(a["food"], -1, 10_000)),
}


@pytest.mark.parametrize("mistake", GEESE_MISTAKES)
def test_a_wrong_geese_record_does_not_hold(mistake: str) -> None:
    condition, spoil = GEESE_MISTAKES[mistake]
    assert_noticed(record("hg_hungry_geese", lambda found: found["rows"] == 7 and condition(found)), spoil)


START_MISTAKES: dict[str, tuple[str, Callable[[Record], Any]]] = {
    "another cell": ("bs_initial_boards", lambda r: set_item(r["snakes"][0], "body", [[2, 2]] * 3)),
    "two segments": ("bs_initial_boards", lambda r: r["snakes"][0]["body"].pop()),
    "health": ("bs_initial_boards", lambda r: set_item(r["snakes"][0], "health", 99)),
    "no food in the centre": ("bs_initial_boards", lambda r: set_item(r["food"], -1, [0, 4])),
    "food too far": ("bs_initial_boards", lambda r: set_item(r["food"], 0, [3, 2])),
    "a piece less": ("bs_initial_boards", lambda r: r["food"].pop(0)),
    "hazards": ("bs_initial_boards", lambda r: r["hazards"].append([0, 0])),
    "food in constrictor": ("bs_initial_boards", lambda r: set_item(r["after_init"]["constrictor"], "food", [[3, 3]])),
    "constrictor grows": (
        "bs_initial_boards",
        lambda r: r["after_init"]["constrictor"]["snakes"][0]["body"].append(r["snakes"][0]["body"][0]),
    ),
    "over": ("bs_initial_boards", lambda r: set_item(r["after_init"]["solo"], "over", True)),
    "a goose of two": ("hg_initial_states", lambda r: r["geese"][0].append(0)),
    "two geese on a cell": ("hg_initial_states", lambda r: set_item(r["geese"], 0, r["geese"][1])),
    "food under a goose": ("hg_initial_states", lambda r: set_item(r["food"], 0, r["geese"][1][0])),
    "too little food": ("hg_initial_states", lambda r: r["food"].pop()),
    "status": ("hg_initial_states", lambda r: set_item(r["status"], 0, "DONE")),
    "reward": ("hg_initial_states", lambda r: set_item(r["reward"], 0, 1)),
}


@pytest.mark.parametrize("mistake", START_MISTAKES)
def test_a_wrong_start_does_not_hold(mistake: str) -> None:
    name, spoil = START_MISTAKES[mistake]
    assert_noticed(record(name, lambda found: True), lambda found, _: spoil(found))


def assert_noticed(right: Record, spoil: Callable[[Record, Record], Any]) -> None:
    wrong = copy.deepcopy(right)
    spoil(wrong, wrong.get("after", {}))
    assert wrong != right
    faults = {json.dumps(outcome.record): outcome.faults for outcome in replay([right, wrong])}
    assert faults[json.dumps(right)] == []
    assert faults[json.dumps(wrong)] != []


# ------------------------------------------------------------------------------------------------ files and exit codes


def write(path: Path, records: list[Record], *, pack: bool = False) -> str:
    content = "".join(json.dumps(found) + "\n" for found in records).encode()
    path.write_bytes(gzip.compress(content) if pack else content)
    return str(path)


@pytest.fixture(scope="module")
def few() -> list[Record]:
    """Records of both engines and of all kinds, mixed."""
    return [found for path in FILES for found in read(path)[::97]]


def test_files_of_both_engines_packed_or_not(few: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / "a.jsonl", few), write(tmp_path / "b.jsonl.gz", few[::-1], pack=True)]
    assert main(files) == 0
    out = capsys.readouterr().out
    assert f"a.jsonl: {len(few)} of {len(few)} records hold" in out
    assert f"b.jsonl.gz: {len(few)} of {len(few)} records hold" in out
    assert out.count("death_hunger") == out.count("death_starve") == out.count("start_position") == 2, "kinds of all formats"


def test_every_file_is_reported_and_one_mistake_fails_all(
    few: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = copy.deepcopy(few)
    number, spoilt = next((k, found) for k, found in enumerate(wrong) if "settings" in found)
    spoilt["after"]["snakes"][0]["health"] += 1
    files = [write(tmp_path / f"{k}.jsonl", records) for k, records in enumerate([wrong, few, wrong[:number]])]
    assert main(files) == 1
    out = capsys.readouterr().out
    assert f"0.jsonl: {len(few) - 1} of {len(few)} records hold" in out
    assert f"{spoilt['game']} {spoilt['source']} {spoilt['turn']}: health of {spoilt['snakes'][0]['id']}: expected" in out
    for event in events(spoilt):
        assert any(line.split()[:1] == [event] and "not all" in line for line in out.splitlines())
    assert f"1.jsonl: {len(few)} of {len(few)} records hold" in out
    assert f"2.jsonl: {number} of {number} records hold" in out


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]\n", b'{"a": 1}\n', b"\x1f\x8bno", b'{"snakes": [], "after": {}}\n', b'{"geese": [[1]]}\n']
)
def test_what_is_no_record_fails_without_a_traceback(
    content: bytes, few: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    good = write(tmp_path / "good.jsonl", few[:1])
    assert main([str(tmp_path / "bad.jsonl"), str(tmp_path / "missing.jsonl"), good]) == 1
    out = capsys.readouterr().out
    assert "bad.jsonl: cannot be replayed: " in out or "bad.jsonl: 0 of 0 records hold" in out
    assert "missing.jsonl: cannot be replayed: FileNotFoundError" in out
    assert "good.jsonl: 1 of 1 records hold" in out


def test_as_a_script(few: list[Record], tmp_path: Path) -> None:
    script = str(DATA.parent / "support" / "official_rules.py")
    spoilt = copy.deepcopy(few[-1])
    spoilt["status"] = []
    runs = [[], [write(tmp_path / "right.jsonl", few[:1])], [write(tmp_path / "wrong.jsonl", [spoilt])]]
    done = [subprocess.run([sys.executable, script, *files], cwd=tmp_path, stdout=subprocess.DEVNULL) for files in runs]
    assert [process.returncode for process in done] == [2, 0, 1]


# ------------------------------------------------------------------------------------------------------- kinds of event

EVENT_COUNTS = {
    "bs_standard": {
        "eat_at_hp1": 26,
        "enter_tail_of_eater_now": 58,
        "head_3way": 36,
        "through_old_dead_body": 185,
        "plain": 151,
    },
    "bs_wrapped": {"wrap": 613, "wrap_enter_tail": 70, "swap_2_2": 5, "body_multi_hit": 1, "death_starve": 124},
    "bs_constrictor": {"constrictor_grow": 1349, "constrictor_grow_dead": 816, "hit_stacked_tail_own": 111, "plain": 303},
    "bs_solo": {"already_over": 42, "heal_saves_starving": 7, "hazard_damage_survived": 141, "ends_game": 145},
    "bs_royale": {"royale_shrink_now": 179, "royale_hazards_cleared": 80, "hazard_but_food": 108, "last_all_die": 47},
    "hg_hungry_geese": {
        "death_hunger": 158,
        "swap_1_1": 44,
        "head_on_unequal": 120,
        "max_length_cut": 127,
        "hunger_shortens": 416,
    },
}
"""Some of the counts that whoever recorded the transitions gave for them."""


@pytest.mark.parametrize("name", EVENT_COUNTS)
def test_kinds_of_event_are_counted_as_recorded(name: str) -> None:
    counts = Counter(event for found in recorded(DATA / f"{name}.jsonl.gz") for event in events(found))
    assert {event: counts[event] for event in EVENT_COUNTS[name]} == EVENT_COUNTS[name]
