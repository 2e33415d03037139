"""Output of a run while it lasts: progress bars, lines beside them, and how its time is divided."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from adapters.training.selfplay import SelfPlayCallback
from adapters.vec_env.curry import CurryVecEnv


def progress_bar(steps: int, **more: Any) -> tqdm:
    """A progress bar, shown only on a terminal."""
    bar: tqdm = tqdm(total=steps, unit=" steps", unit_scale=True, mininterval=1.0, disable=None, **more)
    return bar


def beside_bars(say: Callable[[str], None]) -> Callable[[str], None]:
    """Wrap `say` so that its lines do not run into a progress bar."""

    def said(line: str) -> None:
        with tqdm.external_write_mode():
            say(line)

    return said


class Clock(BaseCallback):
    """Measures how time is divided, and ends training at a time limit. Must come after the callback that adds snapshots."""

    def __init__(self, self_play: SelfPlayCallback, env: CurryVecEnv, seconds: float | None) -> None:
        super().__init__()
        self.self_play, self.env, self.seconds = self_play, env, seconds
        self.rollouts = self.updates = 0.0  # seconds
        self._acted_before = 0.0  # of opponents, before learning began

    def _on_training_start(self) -> None:
        self._started = self._since = self._now()  # the latter is the last start or end of a rollout
        self._acted_before = self.env.lineup.seconds

    def _on_rollout_start(self) -> None:
        self.updates += self._lap()

    def _on_rollout_end(self) -> None:
        self.rollouts += self._lap()

    def _on_step(self) -> bool:
        return self.seconds is None or self._now() - self._started < self.seconds

    def _lap(self) -> float:
        """Seconds since the last call."""
        before, self._since = self._since, self._now()
        return self._since - before

    def _now(self) -> float:
        """A clock in seconds that stands still while a snapshot is added and measured."""
        return time.perf_counter() - self.self_play.seconds

    def summary(self, taught: float) -> str:
        """One line about how time was divided.

        Args:
            taught: seconds of imitation.
        """
        opponents = self.env.lineup.seconds - self._acted_before if self.rollouts else 0.0
        parts = {
            "imitation": taught,
            "PPO's updates": self.updates,
            "opponents": opponents,
            "the rest of the rollouts": max(self.rollouts - opponents, 0.0),
            "snapshots and measuring": self.self_play.seconds,
        }
        total = max(sum(parts.values()), 1e-9)
        return f"{total:.0f} s of training: " + ", ".join(f"{name} {part / total:.0%}" for name, part in parts.items())


class Progress(BaseCallback):
    """Updates a progress bar. SB3's own callback warns that it is experimental."""

    def __init__(self, bar: tqdm) -> None:
        super().__init__()
        self.bar = bar

    def _on_step(self) -> bool:
        self.bar.update(self.num_timesteps - self.bar.n)
        return True
