"""The endurance test of `snake-pz bench soak`: memory and open files while enemies are swapped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from adapters.command.bench import fresh_checkpoints
from adapters.sb3 import make_sb3_env
from snake_pz.ranges import Range, check_number

STEPS = Range(1, 10**12)
"""How many steps there may be, in all and between two swaps."""


def soak(steps: int = 300_000, swap_every: int = 10_000, num_games: int = 64, say: Callable[[str], None] = print) -> bool:
    """Step for a long time while the enemies are swapped repeatedly, and check that memory and open files stay constant.

    Args:
        steps: total over all games.
        swap_every: steps between two swaps, each to a newly written checkpoint.
        num_games: number of games side by side.
        say: called with a line for the user every ten swaps.

    Returns:
        Whether the resident memory grew by less than 3 % after the first third, and no file handle was left open.

    Raises:
        ValueError: `steps` or `swap_every` out of range.
    """
    check_number("steps", steps, STEPS)
    check_number("swap_every", swap_every, STEPS)
    import torch

    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "enemy.zip"
        source = fresh_checkpoints(Path(folder), {}, 2)
        env = make_sb3_env("random", num_games=num_games, seed=0)
        env.reset()
        rng = np.random.default_rng(0)
        readings: list[tuple[int, float, int]] = []
        for done in range(0, steps, num_games):
            if done // swap_every != (done - num_games) // swap_every:
                shutil.copyfile(source[done // swap_every % 2], path)
                env.set_opponent(str(path))
                readings.append((done, _resident_megabytes(), len(os.listdir("/proc/self/fd"))))
                if len(readings) % 10 == 1:
                    say(f"{done:>9,} steps: {readings[-1][1]:.0f} MB, {readings[-1][2]} open files")
            env.step(rng.integers(0, 4, num_games))
        env.close()
    warm = readings[len(readings) // 3 :]
    growth = warm[-1][1] / warm[0][1] - 1
    handles = warm[-1][2] - warm[0][2]
    say(f"after warm-up: memory {growth:+.1%} (at most 3 %), open files {handles:+d}")
    return growth < 0.03 and handles <= 0


def _resident_megabytes() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
