"""The benchmarks: every row is there, and what they find is told."""

from __future__ import annotations

import os
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.command.bench import bench_opponents
from adapters.command.bench_onnx import bench_onnx
from adapters.command.bench_search import bench_search
from adapters.command.main import app
from adapters.command.soak import soak
from adapters.vec_env.curry import CurryVecEnv


@pytest.mark.slow
def test_bench_opponents_prints_every_row() -> None:
    tables = bench_opponents(0.01, games=(2, 4))
    text = " ".join("".join(str(cell) for column in table.columns for cell in column.cells) for table in tables)
    for row in ("random", "one checkpoint", "three checkpoints", "mixture of eight, ahead", "one predict per enemy and game"):
        assert row in text
    sizes = [float(cell) for cell in tables[-1].columns[1].cells]  # type: ignore[arg-type]
    assert sizes[0] > 1
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_bench_soak_counts_what_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert soak(steps=800, swap_every=100, num_games=8, say=lambda line: None)
    leaks: list[int] = []
    set_opponent = CurryVecEnv.set_opponent

    def leak(self: CurryVecEnv, spec: Any, when: Any = "restart") -> None:
        leaks.append(os.open(os.devnull, os.O_RDONLY))
        set_opponent(self, spec, when)

    monkeypatch.setattr(CurryVecEnv, "set_opponent", leak)
    try:
        assert not soak(steps=800, swap_every=100, num_games=8, say=lambda line: None)
    finally:
        for handle in leaks:
            os.close(handle)


def test_bench_engine_prints_every_row() -> None:
    done = CliRunner().invoke(app, ["bench", "engine", "--seconds", "0.1"])
    assert done.exit_code == 0, done.output
    for row in ("engine, 1,024 games, classic", "hungry_geese", "PettingZoo API", "rgb_array pictures", "native / supersuit"):
        assert row in done.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["soak", "--steps", "0"], "steps must be >= 1, got 0"),
        (["soak", "--swap-every", "0"], "swap_every must be >= 1, got 0"),
        (["engine", "--seconds", "inf"], "seconds must be <= 86400, got inf"),
        (["search", "--seconds", "0"], "seconds must be >= 0.01, got 0"),
        (["opponents", "--seconds", "nan"], "seconds must be <= 86400, got nan"),
        (["learners", "--seconds", "-1"], "seconds must be >= 0.01, got -1"),
        (["onnx", "--seconds", "0"], "seconds must be >= 0.01, got 0"),
    ],
)
def test_bad_numbers_are_one_sentence(arguments: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr


@pytest.mark.slow
def test_bench_onnx_measures_every_row() -> None:
    table = bench_onnx(0.02)
    assert table.row_count == 8
    assert all(float(cell) > 0 for column in (2, 3) for cell in table.columns[column].cells)


@pytest.mark.slow  # compiles the search for six pairs of board and number of snakes
def test_bench_search_measures_every_row() -> None:
    table = bench_search(0.01)
    assert table.row_count == 8
    speeds, depths = ([float(cell.replace(",", "")) for cell in table.columns[column].cells] for column in (1, 2))
    assert min(speeds) > 10_000
    assert 1 < min(depths) <= max(depths) < 60
