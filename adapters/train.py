"""The training run: PPO against bots, a checkpoint, or its own last checkpoint, with everything worth keeping in one folder."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from adapters.curry import CurryVecEnv
from adapters.evaluate import play_games, record_game
from adapters.networks import policy_kwargs
from adapters.sb3 import make_sb3_env
from snake_pz.export import write_gif, write_html
from snake_pz.files import replacing

YARDSTICKS = ("random", "greedy", "survivor")
"""The bots, three of a kind, that a run is measured against before and after."""

ENV_KWARGS: dict[str, Any] = {"observation": "egocentric", "actions": "relative"}
"""What the learner sees and does: turning with the snake, it needs a fraction of the steps that the board as it lies takes."""


@dataclass(frozen=True)
class Recipe:
    """The settings of a run.

    Attributes:
        steps: how many steps to learn, over all games together.
        games: how many games run side by side.
        opponent: "self", or whatever `make_sb3_env` takes. "self": two enemies are the learner's last checkpoint and one is
            the bot `survivor`, for against itself alone a learner plateaus on what it has never met.
        snapshot_every: steps between checkpoints, which with "self" become the enemies.
        seed: of everything; None: fresh entropy.
        device: where the learner and its enemies run.
        eval_games: games against each yardstick, before and after.
    """

    steps: int = 2_000_000
    games: int = 64
    opponent: Any = "self"
    snapshot_every: int = 200_000
    seed: int | None = None
    device: str = "auto"
    eval_games: int = 400

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("steps", "games", "snapshot_every", "eval_games"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")


QUICK = Recipe(steps=200_000, snapshot_every=40_000, eval_games=200, seed=0)
"""At most three minutes on two cores."""


def train(out: Path, recipe: Recipe, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Train, measure and keep everything in a folder.

    Writes `model.zip`, `checkpoints/snake_<steps>.zip`, `eval.json` (win rates before and after), `tensorboard/` and a game
    against the yardsticks: `game.html` plays it, `game.gif` shows it, `game.jsonl` is its replay. Files are complete or not
    there. Ctrl-C ends the training, not the run: what was learned is saved and measured.

    Args:
        out: the folder, made if it is not there.
        recipe: the settings.
        say: takes a line for the user.

    Returns:
        What `eval.json` has.

    Raises:
        ValueError: the recipe's opponent cannot be resolved.
        FileNotFoundError: it is a checkpoint that is not there.
    """
    out.mkdir(parents=True, exist_ok=True)
    checkpoints = out / "checkpoints"
    own = recipe.opponent == "self"
    env = make_sb3_env(
        "random" if own else recipe.opponent,
        env_kwargs=ENV_KWARGS,
        num_games=recipe.games,
        device=recipe.device,
        seed=recipe.seed,
    )
    n_steps = max(min(4096, recipe.steps) // recipe.games // 8 * 8, 8)
    with _closing(env):
        model = PPO(
            "CnnPolicy",
            env,
            n_steps=n_steps,
            batch_size=max(n_steps * recipe.games // 8, 2),
            n_epochs=4,
            learning_rate=7e-4,
            gamma=0.99,
            gae_lambda=0.95,
            ent_coef=0.01,
            policy_kwargs=policy_kwargs(),
            tensorboard_log=str(out / "tensorboard"),
            seed=recipe.seed,
            device=recipe.device,
        )
        result: dict[str, Any] = {"steps": 0, "before": measure(model, recipe, say, "before training")}
        snapshots = Snapshots(checkpoints, recipe.snapshot_every, (lambda path: [path, path, "survivor"]) if own else None)
        try:
            with tqdm(total=recipe.steps, unit=" steps", unit_scale=True, mininterval=1.0) as bar:
                model.learn(recipe.steps, callback=[snapshots, Progress(bar)])
        except KeyboardInterrupt:
            say(f"interrupted after {model.num_timesteps:,} steps")
            result["interrupted"] = True
        save_model(model, out / "model.zip")
        result["steps"] = model.num_timesteps
        result["after"] = measure(model, recipe, say, "after training")
    with replacing(out / "eval.json") as temporary:
        temporary.write_text(json.dumps(result, indent=2))
    game = record_game([model, *YARDSTICKS], seed=recipe.seed, env_kwargs=ENV_KWARGS, device=recipe.device)
    game.save(out / "game.jsonl")
    write_html(game, out / "game.html")
    write_gif(game, out / "game.gif")
    say(f"{out}: model.zip, checkpoints, eval.json, game.html, game.gif, game.jsonl, tensorboard")
    return result


def measure(model: BaseAlgorithm, recipe: Recipe, say: Callable[[str], None], when: str) -> dict[str, float]:
    """The model's win rate against three of each yardstick; 0.25 is chance."""
    rates = {}
    for bot in YARDSTICKS:
        results = play_games(
            [model, bot, bot, bot],
            games=recipe.eval_games,
            seed=recipe.seed,
            env_kwargs=ENV_KWARGS,
            device=recipe.device,
        )
        rates[bot] = round(float(results.win_rates[0]), 4)
    say(f"{when}: wins " + ", ".join(f"{rate:.2f} against three {bot}" for bot, rate in rates.items()) + " (chance is 0.25)")
    return rates


class Snapshots(BaseCallback):
    """Save the learner every so many steps, and let the enemies become what was saved.

    Args:
        folder: of the checkpoints, `snake_<steps>.zip`.
        every: steps.
        enemies: from the path of a checkpoint, who plays the enemy seats as each game restarts; None: they stay.
    """

    def __init__(self, folder: Path, every: int, enemies: Callable[[Path], Any] | None = None) -> None:
        super().__init__()
        self.folder, self.every, self.enemies = folder, every, enemies
        self._next = every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            self._next += self.every * ((self.num_timesteps - self._next) // self.every + 1)
            path = self.folder / f"snake_{self.num_timesteps}.zip"
            save_model(self.model, path)
            if self.enemies is not None:
                env = self.training_env.unwrapped
                assert isinstance(env, CurryVecEnv)
                env.set_opponent(self.enemies(path))
        return True


class Progress(BaseCallback):
    """Move a bar. SB3's own warns that it is experimental."""

    def __init__(self, bar: tqdm) -> None:
        super().__init__()
        self.bar = bar

    def _on_step(self) -> bool:
        self.bar.update(self.num_timesteps - self.bar.n)
        return True


def save_model(model: BaseAlgorithm, path: Path) -> None:
    """`model.save`, but the file appears whole or not at all; Ctrl-C waits until it is there."""
    with _interrupts_wait(), replacing(path) as temporary:
        model.save(temporary)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let SIGINT be raised only at the end; where signals cannot be handled, outside the main thread, change nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


@contextmanager
def _closing(env: CurryVecEnv) -> Iterator[None]:
    try:
        yield
    finally:
        env.close()
