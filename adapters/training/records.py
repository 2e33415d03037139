"""Records of a run: `eval.json`, win rates against bots, and `progress.csv`, a row of logs per update."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import CSVOutputFormat, Logger, TensorBoardOutputFormat
from typing_extensions import override

from snake_pz.files import write_text

BASELINE_BOTS = ("random", "greedy", "survivor")
"""The bots that a run is measured against, a board full of each."""

STEPS = "time/total_timesteps"


def write_measured(path: Path, measured: Sequence[dict[str, Any]]) -> None:
    """Write an eval.json."""
    write_text(path, json.dumps({"measured": measured}, indent=2) + "\n")


def read_measured(path: Path) -> list[dict[str, Any]]:
    """Read an eval.json: "steps" and a win rate per bot for each measurement; [] if there is no file.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        measured = [{name: entry[name] for name in ("steps", *BASELINE_BOTS)} for entry in content["measured"]]
        for entry in measured:
            if type(entry["steps"]) is not int or not all(0 <= entry[bot] <= 1 for bot in BASELINE_BOTS):
                raise ValueError(f"{entry!r:.80}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): remove it to continue without the earlier measurements") from error
    return measured


def read_progress(path: Path) -> Iterator[dict[str, str]]:
    """The complete rows of a progress.csv, if it exists. The last row of a crashed run may be incomplete."""
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        for row in csv.DictReader(line.replace("\0", "") for line in file):
            if _is_whole(row):
                yield row


def _is_whole(row: dict[Any, Any]) -> bool:
    try:
        return (
            None not in row and bool(row[STEPS]) and all(value == "" or math.isfinite(float(value)) for value in row.values())
        )
    except (KeyError, TypeError, ValueError):
        return False


def open_logger(out: Path, up_to: int) -> Logger:
    """A logger to progress.csv, of which rows up to a number of steps are kept, and to TensorBoard."""
    path, temporary = out / "progress.csv", out / ".progress.csv"
    rows = [row for row in read_progress(path) if float(row[STEPS]) <= up_to]
    table = CSVOutputFormat(os.fspath(temporary))
    for row in rows:
        table.write(row, {})
    os.replace(temporary, path)
    return Logger(folder=os.fspath(out), output_formats=[table, TensorBoardOutputFormat(os.fspath(out / "tensorboard"))])


class LogRows(BaseCallback):
    """Writes a row of logs after each rollout and its update; for `learn(log_interval=None)`.

    SB3 writes it between the two, so that a row has the losses of the update before, and the first row of a resumed run none.
    Must come before the callback that adds snapshots, so that a run resumed from a snapshot finds the row of its last update.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = 0
        self._due = False

    @override
    def _on_rollout_end(self) -> None:
        self._due = True

    @override
    def _on_rollout_start(self) -> None:
        self._write()

    @override
    def _on_training_end(self) -> None:
        self._write()

    @override
    def _on_step(self) -> bool:
        return True

    def _write(self) -> None:
        if self._due:
            self._due = False
            self._rows += 1
            model: Any = self.model
            model.dump_logs(self._rows)
