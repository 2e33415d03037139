"""Forward passes by torch and by onnxruntime: `snake-pz bench onnx`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.table import Table
from stable_baselines3 import PPO

from adapters.command.bench import SECONDS, measure
from adapters.networks import policy_kwargs
from adapters.opponents.onnx_export import export_onnx
from adapters.opponents.onnx_opponent import OnnxOpponent
from adapters.opponents.parse import CHAMPION
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.protocol import Opponent
from adapters.sb3 import make_sb3_env
from snake_pz.ranges import check_number

ROWS = (1, 8, 64, 256)
"""Observations in a forward pass."""


def bench_onnx(seconds: float = 3.0) -> Table:
    """The champion and a `GridCNN` for `board` on 11x11, each as a checkpoint and as an ONNX file, on the CPU.

    Args:
        seconds: processor time to measure each number.

    Returns:
        A table: milliseconds of a forward pass by torch and by onnxruntime, and how many times as fast the latter is.
    """
    check_number("seconds", seconds, SECONDS)
    grid = PPO("CnnPolicy", make_sb3_env("random", num_games=1), policy_kwargs=policy_kwargs(), device="cpu")
    players: dict[str, tuple[Opponent, Opponent]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("champion", CHAMPION), ("GridCNN", grid)):
            file = export_onnx(source, Path(folder) / "model.onnx")
            players[name] = PolicyOpponent(source, device="cpu"), OnnxOpponent(file)
    runs = {
        f"{name}, {rows} {kind}": _passes(player, rows)
        for name, both in players.items()
        for rows in ROWS
        for kind, player in zip(("torch", "onnx"), both, strict=True)
    }
    speeds = measure(runs, seconds)
    table = Table("policy", "rows", "torch, ms", "onnxruntime, ms", "ratio", title="A forward pass, one thread each")
    for name in players:
        for rows in ROWS:
            torch_ms, onnx_ms = (1000 / speeds[f"{name}, {rows} {kind}"] for kind in ("torch", "onnx"))
            table.add_row(name, str(rows), f"{torch_ms:.2f}", f"{onnx_ms:.2f}", f"{torch_ms / onnx_ms:.2f}x")
    return table


def _passes(player: Opponent, rows: int) -> Callable[[], int]:
    space = player.observation_space
    seen = np.random.default_rng(0).integers(0, 256, (rows, *(space.shape or ())), np.uint8)
    slots = np.arange(rows)

    def run() -> int:
        for _ in range(10):
            player.act(seen, slots, None)
        return 10

    return run
