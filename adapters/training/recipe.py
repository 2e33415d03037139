"""Recipe: every setting of a training run, checked, and as the config.json that reproduces it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snake_pz import make_bot
from snake_pz.core.rewards import RewardWeights
from snake_pz.files import replacing
from snake_pz.presets import preset

Shares = Mapping[str, float]


@dataclass(frozen=True)
class Recipe:
    """The settings of a run.

    Attributes:
        steps: how many steps to learn, over all games and learner seats together, as SB3 counts them.
        minutes: stop earlier, after so many minutes of training, of which the teacher gets a third at most; None: when the
            steps are done.
        games: how many games run side by side.
        learners: how many snakes of each game the learner plays, "all" of them or a number.
        opponent: who plays the other snakes: a bot, the path of a checkpoint or pool, or "self", the pool of the run's own
            snapshots; or a dict of these with shares, drawn for each seat and game by itself.
        rules: classic, battlesnake, battlesnake:MODE or hungry_geese.
        width: cells in a row; None: what the rules say, as for the next two.
        height: cells in a column.
        snakes: snakes on the board.
        observation: what the learner sees. The default turns with the snake.
        actions: how it moves.
        rewards: those of `RewardWeights` that differ from its defaults.
        teacher: the bot whose play the policy is taught before it learns for itself, see `imitation`.
        teacher_steps: for how many steps; 0: not at all.
        rollout: steps of each game between two updates.
        batch_size: samples of one gradient step.
        epochs: how often each sample is used.
        learning_rate: at the start; it falls linearly to a tenth of it.
        gamma: discount of one step.
        gae_lambda: of the generalised advantage estimate.
        ent_coef: weight of the entropy bonus.
        snapshot_every: steps between two members of the pool.
        measure_every: steps between two measurements against the bots; the first is before and the last after the training.
        measure_games: games against three of each bot in one measurement.
        seed: of everything; None: drawn when the run starts, and then in its config.json.
        device: where the learner and its opponents run, as SB3 has it.

    Raises:
        ValueError: a number out of its range, rules or rewards that there are not.
    """

    steps: int = 3_000_000
    minutes: float | None = None
    games: int = 128
    learners: int | str = 1
    opponent: str | Shares = dataclasses.field(default_factory=lambda: {"survivor": 13, "self": 4, "greedy": 3})
    rules: str = "classic"
    width: int | None = None
    height: int | None = None
    snakes: int | None = None
    observation: str = "egocentric"
    actions: str = "relative"
    rewards: Shares = dataclasses.field(default_factory=lambda: {"food": 0.3, "win": 2.0})
    teacher: str = "territorial"
    teacher_steps: int = 1_400_000
    rollout: int = 64
    batch_size: int = 1024
    epochs: int = 2
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
        for name, (kind, low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name in ("minutes", "width", "height", "snakes", "seed"):
                continue
            is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                what = "whole number" if kind is int else "number"
                upper = f" to {high:,}" if high < math.inf else ""
                raise ValueError(f"{name} must be a {what} from {low}{upper}, got {value!r}")
        if self.learners != "all" and (
            isinstance(self.learners, bool) or not isinstance(self.learners, int) or self.learners < 1
        ):
            raise ValueError(f'learners must be a number >= 1 or "all", got {self.learners!r}')
        _check_shares("rewards", self.rewards, low=-math.inf)
        if not isinstance(self.opponent, str):
            _check_shares("opponent", self.opponent, low=0.0)
        make_bot(self.teacher, self.env_kwargs()["rules"])

    def env_kwargs(self) -> dict[str, Any]:
        """The keywords of `snake_v0.parallel_env`."""
        known = [field.name for field in dataclasses.fields(RewardWeights)]
        if unknown := sorted(set(self.rewards) - set(known)):
            raise ValueError(f"rewards may have {', '.join(known)}, got {unknown}")
        changes = {"width": self.width, "height": self.height, "num_snakes": self.snakes}
        return {
            "rules": preset(self.rules, **changes),
            "observation": self.observation,
            "actions": self.actions,
            "rewards": RewardWeights(**self.rewards),
        }

    @property
    def num_snakes(self) -> int:
        """On the board, as the rules say it where the recipe does not."""
        snakes: int = self.env_kwargs()["rules"].num_snakes
        return snakes

    @property
    def everyone_learns(self) -> bool:
        """Whether no snake is left for an opponent."""
        return self.learners in ("all", self.num_snakes)

    def seeded(self) -> Recipe:
        """The same with a seed that stands."""
        if self.seed is not None:
            return self
        return dataclasses.replace(self, seed=int(np.random.SeedSequence().generate_state(1)[0]))

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no recipe, or has a setting that there is not.
        """
        try:
            settings = json.loads(path.read_text())
        except ValueError as error:  # no JSON, or no text
            raise ValueError(f"{path} is no recipe: expected the JSON of a config.json, got {error}") from error
        known = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(settings, dict) or (set(settings) - set(known)):
            unknown = sorted(set(settings) - set(known)) if isinstance(settings, dict) else type(settings).__name__
            raise ValueError(f"{path} is no recipe of this version: unknown settings {unknown}; known are {', '.join(known)}")
        return cls(**settings)


_RANGES: dict[str, tuple[type, float, float]] = {
    "steps": (int, 1, math.inf),
    "minutes": (float, 1e-9, math.inf),
    "games": (int, 1, math.inf),
    "width": (int, 1, math.inf),  # what the rules allow, they say themselves
    "height": (int, 1, math.inf),
    "snakes": (int, 1, math.inf),
    "teacher_steps": (int, 0, math.inf),
    "rollout": (int, 2, math.inf),
    "batch_size": (int, 2, math.inf),
    "epochs": (int, 1, math.inf),
    "learning_rate": (float, 1e-12, 1.0),
    "gamma": (float, 0.0, 1.0),
    "gae_lambda": (float, 0.0, 1.0),
    "ent_coef": (float, 0.0, math.inf),
    "snapshot_every": (int, 1, math.inf),
    "measure_every": (int, 1, math.inf),
    "measure_games": (int, 1, math.inf),
    "seed": (int, 0, 2**32 - 1),
}
"""What kind of number each setting is, its least and its greatest value."""


def _check_shares(name: str, shares: Any, low: float) -> None:
    if not isinstance(shares, Mapping) or not all(
        isinstance(key, str) and isinstance(share, (int, float)) and low <= share < math.inf for key, share in shares.items()
    ):
        raise ValueError(f"{name} must have a number for each name, got {shares!r}")


def parse_opponent(words: Sequence[str]) -> str | Shares:
    """A recipe's opponent from the words of a command line: one name, or NAME=SHARE each (a share is 1 if not given).

    Raises:
        ValueError: a share that is no number, or the same name twice.
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


QUICK = Recipe(
    steps=500_000, teacher_steps=500_000, snapshot_every=100_000, measure_every=500_000, measure_games=200, seed=0
)  # fmt: skip
"""At most three minutes on two cores."""
