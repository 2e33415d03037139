"""Recipe: all settings of a training run, checked, with the config.json that reproduces it.

The game is imported where it is used, because `snake-pz --help` shows the defaults and would otherwise take twice as long.
"""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snake_pz.rules import Rules

Shares = Mapping[str, float]

MOST_STEPS = 10**12
"""Upper limit of steps. No run reaches it, so more are a mistake."""


@dataclass(frozen=True)
class Recipe:
    """The settings of a run.

    Attributes:
        total_timesteps: steps of PPO, over all games and learner seats, as SB3 counts them.
        minutes: limit of training time, at most a third of it for imitation; None: no limit.
        num_games: number of games played side by side.
        learners: number of snakes per game that learn, or "all".
        opponent: the opponents: a bot, the path of a checkpoint or pool, or "self", the pool of the run's own snapshots; or a
            dict of these with shares, drawn for each seat and game.
        rules: classic, battlesnake, battlesnake:MODE or hungry_geese.
        width: cells in a row; None: as in the rules.
        height: cells in a column; None: as in the rules.
        num_snakes: snakes on the board; None: as in the rules.
        observation: the learner's encoding. The default turns with the snake.
        actions: the learner's action set.
        rewards: the `RewardWeights` that differ from the defaults.
        teacher: the bot that is imitated before PPO, see `imitation`.
        teacher_steps: steps of imitation; 0: none.
        n_steps: steps of each game between two updates.
        batch_size: samples per gradient step.
        n_epochs: how often each sample is used.
        learning_rate: at the start; it falls linearly to a tenth.
        gamma: discount factor.
        gae_lambda: parameter of generalised advantage estimation.
        ent_coef: weight of the entropy bonus.
        snapshot_every: steps between two snapshots for the pool.
        measure_every: steps between two measurements against bots. The first is before and the last after the training.
        measure_games: games against each bot in one measurement.
        seed: seed of everything; None: drawn when the run starts, and written to its config.json.
        device: device of the learner and its opponents, as for SB3.

    Raises:
        ValueError: a number out of its range, or unknown rules, rewards or teacher.
    """

    total_timesteps: int = 3_000_000
    minutes: float | None = None
    num_games: int = 128
    learners: int | str = 1
    opponent: str | Shares = dataclasses.field(default_factory=lambda: {"survivor": 13, "self": 4, "greedy": 3})
    rules: str = "classic"
    width: int | None = None
    height: int | None = None
    num_snakes: int | None = None
    observation: str = "egocentric"
    actions: str = "relative"
    rewards: Shares = dataclasses.field(default_factory=lambda: {"food": 0.3, "win": 2.0})
    teacher: str = "territorial"
    teacher_steps: int = 1_400_000
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 2
    learning_rate: float = 5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    ent_coef: float = 0.003
    snapshot_every: int = 200_000
    measure_every: int = 1_000_000
    measure_games: int = 400
    seed: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        """Check the numbers and the names."""
        from snake_pz.bots import BOTS
        from snake_pz.ranges import Range, check_ranges
        from snake_pz.rules import check_names

        check_ranges(
            self,
            {
                "total_timesteps": Range(1, MOST_STEPS),
                "minutes": Range(1e-9, 1e7, whole=False, optional=True),
                "num_games": Range(1, 65_536),
                "width": Range(1, optional=True),  # checked further by the rules
                "height": Range(1, optional=True),
                "num_snakes": Range(1, optional=True),
                "teacher_steps": Range(0, MOST_STEPS),
                "n_steps": Range(2, 65_536),
                "batch_size": Range(2, 2**24),
                "n_epochs": Range(1, 10_000),
                "learning_rate": Range(1e-12, 1, whole=False),
                "gamma": Range(0, 1, whole=False),
                "gae_lambda": Range(0, 1, whole=False),
                "ent_coef": Range(0, 1000, whole=False),
                "snapshot_every": Range(1, MOST_STEPS),
                "measure_every": Range(1, MOST_STEPS),
                "measure_games": Range(1, 100_000),
                "seed": Range(0, 2**32 - 1, optional=True),
            },
        )
        if self.learners != "all" and (
            isinstance(self.learners, bool) or not isinstance(self.learners, int) or self.learners < 1
        ):
            raise ValueError(f'learners must be a number >= 1 or "all", got {self.learners!r}')
        _check_shares("rewards", self.rewards, low=-math.inf)
        if not isinstance(self.opponent, str):
            _check_shares("opponent", self.opponent, low=0.0)
        check_names("bot", {self.teacher.partition(":")[0]: self.rules}, list(BOTS))
        self.env_kwargs()

    def env_kwargs(self) -> dict[str, Any]:
        """The keywords of `snake_v0.parallel_env`."""
        from snake_pz.reward_weights import RewardWeights

        known = [field.name for field in dataclasses.fields(RewardWeights)]
        if unknown := sorted(set(self.rewards) - set(known)):
            raise ValueError(f"rewards may have {', '.join(known)}, got {unknown}")
        return {
            "rules": self.game_rules(),
            "observation": self.observation,
            "actions": self.actions,
            "rewards": RewardWeights(**self.rewards),
        }

    def game_rules(self) -> Rules:
        """The named rules with the recipe's board and number of snakes."""
        from snake_pz.presets import preset

        return preset(self.rules, width=self.width, height=self.height, num_snakes=self.num_snakes)

    @property
    def everyone_learns(self) -> bool:
        """Whether all snakes learn, so that there is no opponent."""
        return self.learners in ("all", self.game_rules().num_snakes)

    @classmethod
    def quick(cls) -> Recipe:
        """A recipe that takes at most three minutes on two cores."""
        return cls(
            total_timesteps=500_000,
            teacher_steps=500_000,
            snapshot_every=100_000,
            measure_every=500_000,
            measure_games=200,
            seed=0,
        )

    def seeded(self) -> Recipe:
        """The same recipe, with a seed drawn if it has none."""
        if self.seed is not None:
            return self
        return dataclasses.replace(self, seed=secrets.randbits(32))

    def save(self, path: Path) -> None:
        """Write it as JSON, by write-and-rename."""
        from snake_pz.files import write_text

        write_text(path, json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Read a file of `save`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is no recipe, or has unknown settings.
        """
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # no JSON, or no text
            raise ValueError(f"{path} is no recipe: expected the JSON of a config.json, got {error}") from error
        known = [field.name for field in dataclasses.fields(cls)]
        if isinstance(settings, dict):
            settings = {_FORMER_NAMES.get(name, name): value for name, value in settings.items()}
        if not isinstance(settings, dict) or (set(settings) - set(known)):
            unknown = sorted(set(settings) - set(known)) if isinstance(settings, dict) else type(settings).__name__
            raise ValueError(f"{path} is no recipe of this version: unknown settings {unknown}; known are {', '.join(known)}")
        return cls(**settings)


_FORMER_NAMES = {
    "steps": "total_timesteps",
    "games": "num_games",
    "snakes": "num_snakes",
    "rollout": "n_steps",
    "epochs": "n_epochs",
}
"""Names of settings in version 0.1.0, with the present ones."""


def _check_shares(name: str, shares: Any, low: float) -> None:
    if not isinstance(shares, Mapping) or not all(
        isinstance(key, str) and isinstance(share, (int, float)) and math.isfinite(share) and share >= low
        for key, share in shares.items()
    ):
        raise ValueError(f"{name} must have a number for each name, got {shares!r}")


def parse_opponent(words: Sequence[str]) -> str | Shares:
    """Parse a recipe's opponent from words of the command line.

    Args:
        words: one name, or several NAME=SHARE; without =SHARE the share is 1.

    Raises:
        ValueError: a share is no number, or a name is given twice.
    """
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    shares: dict[str, float] = {}
    for word in words:
        name, _, share = word.rpartition("=") if "=" in word else (word, "", "1")
        if name in shares:
            raise ValueError(f"each opponent of a mixture is named once, got {name!r} twice")
        try:
            shares[name] = float(share)
        except ValueError as error:
            raise ValueError(f"an opponent of a mixture is NAME=SHARE, such as self=2, got {word!r}") from error
    return shares
