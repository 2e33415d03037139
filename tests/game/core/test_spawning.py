"""Where food, hazards and snakes appear, as distributions: against the counts and boards recorded from the official engines."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_pz import Position, Rules, SnakeEngine, SnakeState
from snake_pz.core.state import Cell
from tests.support.official_rules import read
from tests.support.official_starts import at_corner, start_faults

DATA = Path(__file__).resolve().parents[2] / "data"
STATS: dict[str, Any] = json.loads((DATA / "bs_spawn_stats.json").read_text())
SIGMAS = 4.5
"""How far a count may be from what is expected, in standard deviations: over thousands of counts, 1 in 100 goes beyond."""


def assert_share(count: int, draws: int, share: float, what: object) -> None:
    """A count of so many independent draws agrees with a known probability."""
    deviation = math.sqrt(draws * share * (1 - share))
    assert abs(count - draws * share) <= SIGMAS * deviation, f"{what}: {count} of {draws}, expected {share:.4f} of them"


def assert_same_shares(
    ours: Mapping[Any, int], our_draws: int, recorded: Mapping[Any, int], draws: int, what: object = ""
) -> None:
    """Each outcome is as frequent in ours as in the record, and the same ones occur."""
    assert set(ours) == set(recorded), f"{what}: other outcomes, {set(ours) ^ set(recorded)}"
    for key in ours:
        share = (ours[key] + recorded[key]) / (our_draws + draws)
        deviation = math.sqrt(share * (1 - share) * (1 / our_draws + 1 / draws))
        difference = ours[key] / our_draws - recorded[key] / draws
        assert abs(difference) <= SIGMAS * deviation, f"{what}: {key} {ours[key]} of {our_draws}, {recorded[key]} of {draws}"


def assert_chi_square(statistic: float, freedom: int, what: object = "") -> None:
    """Not beyond its mean by more than so many standard deviations, by the approximation of Wilson and Hilferty."""
    spread = 2 / (9 * freedom)
    assert ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread) <= SIGMAS, f"{what}: {statistic}, {freedom}"


def assert_uniform(counts: np.ndarray[Any, Any], what: object = "") -> None:
    expected = counts.sum() / counts.size
    assert_chi_square(float(((counts - expected) ** 2 / expected).sum()), counts.size - 1, what)


def counted(values: Any) -> Counter[int]:
    return Counter(np.asarray(values).tolist())


def flat(rules: Rules, cell: Cell) -> int:
    """A recorded cell, which counts from the bottom left corner, as a number."""
    return (rules.height - 1 - cell[1]) * rules.width + cell[0]


def recorded_cell(rules: Rules, cell: int) -> str:
    return f"{cell % rules.width},{rules.height - 1 - cell // rules.width}"


# ----------------------------------------------------------------------------------------------- food after a turn

BOARD = STATS["food"]["position_histogram"]


def turn_before(games: int, food: list[Cell], **rules: Any) -> tuple[SnakeEngine, np.ndarray[Any, Any]]:
    """So many games a turn before the recorded 7x7 board, and the moves that lead to it: food then appears as it was drawn."""
    fields = Rules.battlesnake(width=7, height=7, num_snakes=3, hazard_damage=0, **rules)

    def cell(recorded: list[int]) -> Cell:
        return recorded[0], fields.height - 1 - recorded[1]

    bodies = [[cell(part) for part in snake["body"]] for snake in BOARD["snakes"]]
    alive = [snake["cause"] == "" for snake in BOARD["snakes"]]
    earlier = [[*body[1:], body[-1]] if lives else body for body, lives in zip(bodies, alive, strict=True)]
    steps = {(0, -1): 0, (1, 0): 1, (0, 1): 2, (-1, 0): 3}
    actions = [steps.get((body[0][0] - body[1][0], body[0][1] - body[1][1]), 0) for body in bodies]
    position = Position(earlier, food=food, hazards=[cell(part) for part in BOARD["hazards"]], alive=alive)
    engine = SnakeEngine(fields, games, seed=2024)
    one = SnakeState.from_positions(fields, [position])
    state = one.map(lambda array: np.repeat(array, games, axis=0))
    state.seed[:] = engine.state.seed
    engine.load(state)
    return engine, np.tile(actions, (games, 1))


def test_food_lands_on_the_recorded_cells_equally_often() -> None:
    """Not on living bodies, food or beside living heads; on hazards and dead bodies it does."""
    draws = 200_000
    engine, actions = turn_before(draws, [(6, 6)], food_minimum=0, food_chance=1.0)
    engine.step(actions)
    rules = engine.rules
    for number, snake in enumerate(BOARD["snakes"]):
        length, head = engine.state.length[0, number], engine.state.head[0, number]
        body = [int(engine.state.body[0, number, head - k]) for k in range(length)]
        assert body == [flat(rules, cell) for cell in snake["body"]], "this is the recorded board"
    assert (engine.state.food_count == 2).all()
    counts = engine.state.food.sum(axis=0, dtype=int)
    assert counts[flat(rules, (6, 0))] == draws, "the one piece that lay there"
    ours = {recorded_cell(rules, cell): int(counts[cell]) for cell in np.flatnonzero(counts) if counts[cell] < draws}
    assert len(ours) == 36
    recorded = BOARD["cell_counts"]
    assert_same_shares(ours, draws, recorded, BOARD["draws"])
    assert_uniform(np.array(list(ours.values())), "ours")
    assert_uniform(np.array(list(recorded.values())), "recorded")
    both = [(ours[cell] - recorded[cell]) ** 2 / (ours[cell] + recorded[cell]) for cell in recorded]
    assert draws == BOARD["draws"]
    assert_chi_square(sum(both), len(both) - 1, "two samples")


SETTINGS = sorted({(c["foodSpawnChance"], c["minimumFood"], c["food_before"]) for c in STATS["food"]["spawn_counts"]})


@pytest.mark.parametrize(("chance", "minimum", "before"), SETTINGS)
def test_food_appears_as_often_as_recorded(chance: int, minimum: int, before: int) -> None:
    """Below the minimum all that is missing; else one piece with the official chance less one, in percent."""
    draws = 20_000
    share = max(chance - 1, 0) / 100
    food = [(6, 6), (6, 5), (6, 3)][:before]
    engine, actions = turn_before(draws, food, food_minimum=minimum, food_chance=share)
    engine.step(actions)
    ours = counted(engine.state.food_count - before)
    key = {"foodSpawnChance": chance, "minimumFood": minimum, "food_before": before}
    records = [c for c in STATS["food"]["spawn_counts"] if key.items() <= c.items()]
    assert len(records) == 2
    for found in records:
        recorded = {int(pieces): count for pieces, count in found["new_food_counts"].items()}
        assert_same_shares(ours, draws, recorded, found["turns"], found)
        if before >= minimum:
            assert_share(recorded.get(1, 0), found["turns"], share, found)
    if before >= minimum:
        assert_share(ours[1], draws, share, key)
    else:
        assert ours == {minimum - before: draws}


def test_the_preset_has_the_official_chance() -> None:
    """Which tells 14 turns of 100 from 15 by more than ten deviations."""
    draws, rules = 200_000, Rules.battlesnake()
    engine, actions = turn_before(draws, [(6, 6)], food_minimum=rules.food_minimum, food_chance=rules.food_chance)
    engine.step(actions)
    assert_share(int((engine.state.food_count == 2).sum()), draws, (15 - 1) / 100, "pieces")


def test_food_over_whole_games_appears_as_often_as_recorded() -> None:
    """With anybody's moves: on each turn that needs none the same chance, on others what is missing."""
    found = STATS["food"]["whole_games_11x11_4_snakes_minimumFood1_foodSpawnChance15"]["new_food_counts"]
    engine = SnakeEngine(Rules.battlesnake(), 4_000, seed=9)
    engine.reset()
    random = np.random.default_rng(5)
    enough: Counter[int] = Counter()
    below: Counter[int] = Counter()
    for _ in range(60):
        playing = ~engine.state.over
        earlier = engine.state.food_count.copy()
        masks = engine.action_masks("absolute") * random.random((*engine.state.alive.shape, 4))
        engine.step(masks.argmax(axis=2))
        left = earlier - _food_eaten(engine)
        new = engine.state.food_count - left
        enough += counted(new[playing & (left >= 1)])
        below += counted(new[playing & (left < 1)])
    recorded = {int(pieces): count for pieces, count in found["food_at_least_minimum"].items()}
    assert_same_shares(enough, enough.total(), recorded, sum(recorded.values()))
    assert set(below) == {1} == {int(pieces) for pieces in found["food_below_minimum"]}
    assert below[1] > 30


def _food_eaten(engine: SnakeEngine) -> np.ndarray[Any, Any]:
    """(E,) pieces eaten on the last turn: several snakes share one piece."""
    state = engine.state
    heads = np.take_along_axis(state.body, state.head[..., None], axis=2)[..., 0]
    eaten = np.zeros((engine.num_games, engine.rules.num_cells), bool)
    game, snake = np.nonzero(state.ate)
    eaten[game, heads[game, snake]] = True
    return eaten.sum(axis=1)


# ----------------------------------------------------------------------------------------------------- Battlesnake's start


@pytest.mark.parametrize("found", STATS["initial_boards"], ids=lambda found: f"{found['size']}-{found['snakes']}")
def test_battlesnake_starts_as_often_as_recorded(found: dict[str, Any]) -> None:
    """Heads, food, whose food lies on which side, how much, and which group of points the first snake takes."""
    side, snakes, boards = found["size"], found["snakes"], 6_000
    rules = Rules.battlesnake(width=side, height=side, num_snakes=snakes)
    engine = SnakeEngine(rules, boards, seed=31)
    engine.reset()
    state = engine.state
    what = f"{side}x{side}, {snakes} snakes"
    assert (state.body[:, :, :3] == state.body[:, :, :1]).all()
    assert (state.length == 3).all()
    heads = state.body[:, :, 0].astype(int)
    recorded_boards = found["boards"]

    ours = {recorded_cell(rules, cell): count for cell, count in counted(heads.ravel()).items()}
    assert_same_shares(ours, boards, found["head_counts"], recorded_boards, f"{what}, heads")

    food = state.food.sum(axis=0, dtype=int)
    ours = {recorded_cell(rules, cell): int(food[cell]) for cell in np.flatnonzero(food)}
    assert_same_shares(ours, boards, found["food_cell_counts"], recorded_boards, f"{what}, food")

    numbers = {str(pieces): count for pieces, count in counted(state.food_count).items()}
    assert_same_shares(numbers, boards, found["food_number_counts"], recorded_boards, f"{what}, pieces")

    first = Counter("corner" if at_corner(side, (head % side, head // side)) else "cardinal" for head in heads[:, 0].tolist())
    assert_same_shares(first, boards, found["first_snake_kind"], recorded_boards, f"{what}, first snake")
    assert_share(first["corner"], boards, 0.5, f"{what}, first snake")

    offsets: Counter[str] = Counter()
    centre = (side - 1) // 2 * (side + 1)
    for right in (-1, 1):
        for up in (-1, 1):
            beside = heads + right - up * side
            # food in the centre is nobody's own, though on 7x7 it is diagonal to no head either
            offsets[f"{right},{up}"] = int((np.take_along_axis(state.food, beside, axis=1) * (beside != centre)).sum())
    own = {offset: count for offset, count in offsets.items() if count}
    draws = boards * snakes
    assert_same_shares(own, draws, found["food_offset_from_own_head_counts"], recorded_boards * snakes, f"{what}, offsets")


@pytest.mark.parametrize("side", [7, 11, 19])
def test_the_first_group_is_taken_whole_before_the_other(side: int) -> None:
    engine = SnakeEngine(Rules.battlesnake(width=side, height=side, num_snakes=8), 1_000, seed=4)
    engine.reset()
    heads = engine.state.body[:, :, 0].astype(int)
    corner = np.isin(heads % side, (1, side - 2)) & np.isin(heads // side, (1, side - 2))
    assert (corner[:, :4] == corner[:, :1]).all()
    assert (corner[:, 4:] == ~corner[:, :1]).all()
    assert all(len(set(row)) == 8 for row in heads.tolist())
    for seat in range(8):
        assert_uniform(np.unique(heads[:, seat], return_counts=True)[1], f"cells of snake {seat}")


def test_constrictor_starts_without_food_which_appears_on_the_first_turn() -> None:
    """The official ruleset clears the map's food at turn zero; the map then goes on to spawn after every turn."""
    engine = SnakeEngine(Rules.battlesnake("constrictor"), 50, seed=0)
    engine.reset()
    assert (engine.state.food_count == 0).all()
    assert not engine.state.food.any()
    assert (engine.state.health == 100).all()
    assert (engine.state.length == 3).all()
    engine.step(np.zeros((50, 4), np.int64))
    assert (engine.state.food_count == 1).all()


@pytest.mark.parametrize("name", ["bs_initial_boards", "hg_initial_states"])
def test_every_recorded_start_is_possible_here(name: str) -> None:
    for record in read(DATA / f"{name}.jsonl.gz"):
        assert start_faults(record) == []


# -------------------------------------------------------------------------------------------------- Hungry Geese's start


@pytest.mark.parametrize(("width", "height", "geese"), [(11, 7, 4), (3, 3, 8), (5, 4, 1)])
def test_geese_and_their_food_start_anywhere(width: int, height: int, geese: int) -> None:
    rules = Rules.hungry_geese(width=width, height=height, num_snakes=geese)
    games, cells = 20_000, width * height
    engine = SnakeEngine(rules, games, seed=6)
    engine.reset()
    heads = engine.state.body[:, :, 0].astype(int)
    assert (engine.state.length == 1).all()
    assert (engine.state.occupancy.sum(axis=1) == geese).all()
    assert engine.state.occupancy.max() == 1
    for number in range(geese):
        assert_uniform(np.bincount(heads[:, number], minlength=cells), f"goose {number}")
    if geese > 1:
        assert_uniform(np.bincount((heads[:, 1] - heads[:, 0]) % cells, minlength=cells)[1:], "between two geese")
    assert (engine.state.food_count == min(2, cells - geese)).all()
    assert not (engine.state.food.astype(bool) & (engine.state.occupancy > 0)).any()
    assert_uniform(engine.state.food.sum(axis=0, dtype=int), "food")


def test_recorded_geese_start_anywhere() -> None:
    """The few recorded starts by the standard rules are as spread out as they should be."""
    records = [record for record in read(DATA / "hg_initial_states.jsonl.gz") if (record["rows"], record["n"]) == (7, 4)]
    cells = np.array([cell for record in records for goose in record["geese"] for cell in goose])
    assert len(cells) == 48
    assert_uniform(np.bincount(cells // 11, minlength=7), "rows")
    assert_uniform(np.bincount(cells % 11, minlength=11), "columns")


def test_new_food_of_geese_lands_on_any_free_cell() -> None:
    """Also right beside a head, where Battlesnake's does not."""
    rules = Rules.hungry_geese(width=5, height=4, num_snakes=2, food_initial=0, food_minimum=1)
    games = 40_000
    position = Position([[(1, 1), (0, 1)], [(3, 3)]], turn=4)
    engine = SnakeEngine(rules, games, seed=3)
    state = SnakeState.from_positions(rules, [position]).map(lambda array: np.repeat(array, games, axis=0))
    state.seed[:] = engine.state.seed
    engine.load(state)
    engine.step(np.tile([1, 0], (games, 1)))
    counts = engine.state.food.sum(axis=0, dtype=int)
    taken = [1 * 5 + 2, 1 * 5 + 1, 2 * 5 + 3]
    assert (counts[taken] == 0).all()
    assert_uniform(np.delete(counts, taken))


# ----------------------------------------------------------------------------------------------------- royale's hazards


def sides_taken(engine: SnakeEngine) -> np.ndarray[Any, Any]:
    """(E, 4) lines taken from the left, the right, the top and the bottom."""
    free = engine.state.hazard.reshape(-1, engine.rules.height, engine.rules.width) == 0
    columns, rows = free.any(axis=1), free.any(axis=2)
    return np.stack([line.argmax(axis=1) for line in (columns, columns[:, ::-1], rows, rows[:, ::-1])], axis=1)


def test_royale_takes_lines_from_sides_drawn_uniformly_and_independently() -> None:
    torus = {"edge": "wrap", "start": "scattered", "food_minimum": 0, "food_chance": 0.0}  # who goes straight on lives on
    rules = Rules.battlesnake("royale", shrink_every=2, num_snakes=1, hazard_damage=0, **torus)
    games = 8_000
    engine = SnakeEngine(rules, games, seed=12)
    engine.reset()
    drawn, earlier = [], np.zeros((games, 4), int)
    for turn in range(1, 9):
        engine.step(np.ones((games, 1), np.int64))
        taken = sides_taken(engine)
        assert (taken.sum(axis=1) == turn // 2).all(), "one line more every second turn"
        assert (engine.state.hazard <= 1).all()
        assert (taken >= earlier).all(), "what is taken stays taken"
        if turn % 2 == 0:
            drawn.append((taken - earlier).argmax(axis=1))
        earlier = taken
    assert engine.state.alive.all()
    for line, sides in enumerate(drawn):
        assert_uniform(np.bincount(sides, minlength=4), f"line {line}")
    for first, second in itertools.pairwise(drawn):
        assert_uniform(np.bincount(first * 4 + second, minlength=16), "two lines in a row")
    assert_uniform(np.bincount(drawn[0] * 4 + drawn[3], minlength=16), "lines apart")


def test_recorded_royale_takes_sides_as_uniformly() -> None:
    """One line each, in the recorded games and positions whose first line has just been drawn."""
    sides: Counter[str] = Counter()
    for record in read(DATA / "bs_royale.jsonl.gz"):
        turn, every = record["turn"] + 1, record["settings"]["shrinkEveryNTurns"]
        if turn // every != 1 or record["after"]["over"]:
            continue
        xs, ys = ({cell[axis] for cell in record["after"]["hazards"]} for axis in (0, 1))
        sides["column" if len(xs) == 1 else "row"] += 1
        sides["low" if (xs if len(xs) == 1 else ys) == {0} else "high"] += 1
    total = sides["column"] + sides["row"]
    assert total > 100
    assert sides["low"] + sides["high"] == total
    assert min(sides.values()) > total / 4
