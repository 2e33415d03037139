"""What a run records of its course."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from adapters.training.records import open_logger, read_measured, read_progress, write_measured

ENTRY = {"steps": 64, "random": 1.0, "greedy": 0.5, "survivor": 0}


def test_measurements_go_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    assert read_measured(path) == []
    write_measured(path, [ENTRY])
    assert read_measured(path) == [ENTRY]


@pytest.mark.parametrize("change", [{"steps": "64"}, {"steps": True}, {"greedy": 7}, {"greedy": math.nan}, {"greedy": None}])
def test_what_is_no_measurement_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    write_measured(tmp_path / "eval.json", [{**ENTRY, **change}])
    with pytest.raises(ValueError, match=r"eval\.json is damaged .*: remove it"):
        read_measured(tmp_path / "eval.json")


def test_eval_json_is_utf_8(tmp_path: Path) -> None:
    (tmp_path / "eval.json").write_bytes('{"measured": "±"}'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"eval\.json is damaged"):
        read_measured(tmp_path / "eval.json")


def test_only_whole_rows_of_logs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    assert list(read_progress(path)) == []
    path.write_bytes(b"time/total_timesteps,train/loss\n64,\n128,0.5\n192,x\n256\n,1\n320,inf\n384,0.5,7\n448,\0\0")
    assert [row["time/total_timesteps"] for row in read_progress(path)] == ["64", "128", "448"]
    path.write_bytes(b"\0\0\n")
    assert list(read_progress(path)) == []


def test_rows_of_steps_that_are_done_again_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text("time/total_timesteps,train/loss\n64,0.5\n128,0.25\n192,0.125\n")
    logger = open_logger(tmp_path, up_to=128)
    for name, value in {"time/total_timesteps": 130, "train/loss": 0.75}.items():
        logger.record(name, value)
    logger.dump()
    logger.close()
    rows = [(row["time/total_timesteps"], row["train/loss"]) for row in read_progress(tmp_path / "progress.csv")]
    assert rows == [("64", "0.5"), ("128", "0.25"), ("130", "0.75")]
