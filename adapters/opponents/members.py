"""Members of an opponent pool, the samplers that draw them, and the choice of snapshots to keep."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapters.ratings import Rating, is_rating

NAME = re.compile(r"[A-Za-z0-9][\w.\-]*", re.ASCII)
"""Names that a snapshot can have."""

BOT_NAME = re.compile(NAME.pattern + r"(:\w[\w.]*)?", re.ASCII)
"""Names that a bot can have: a budget may follow."""

_FILE = re.compile(r"snapshot_\d+(_.+)?\.(zip|onnx)", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Member:
    """A snapshot or a bot in a pool.

    Attributes:
        name: its name in infos, after the pool's path if the pool is given by its path.
        step: training steps when it was added; 0 for bots.
        file: name of the checkpoint or ONNX file in the folder; None for bots.
        sha256: hash of that file in hexadecimal digits.
        statistics_sha256: hash of the `VecNormalize` statistics beside it; None if it has none.
        observation_space: as text.
        action_space: as text.
        encoding: name of the user's encoding that it was trained on; None: one with its space.
        rating: its rating, None if it was never set.
        games: number of games that the learner played against it. `games` and `score` are halved whenever a snapshot is added,
            because they are about an earlier learner.
        score: number of games in which the learner was placed above it; ties count 1/2.
    """

    name: str
    step: int
    file: str | None = None
    sha256: str | None = None
    statistics_sha256: str | None = None
    observation_space: str | None = None
    action_space: str | None = None
    encoding: str | None = None
    rating: Rating | None = None
    games: float = 0.0
    score: float = 0.0

    @property
    def learner_score(self) -> float:
        """How often the learner is placed above it, smoothed: (score + 1) / (games + 2)."""
        return (self.score + 1) / (self.games + 2)

    def as_dict(self) -> dict[str, Any]:
        """All attributes that are not None, for JSON."""
        rating = None if self.rating is None else self.rating._asdict()
        return {key: value for key, value in {**asdict(self), "rating": rating}.items() if value is not None}

    @classmethod
    def from_dict(cls, entry: Any) -> Member:
        """Read a result of `as_dict` from a file that may hold anything.

        Raises:
            TypeError: the entry is no member, or an attribute has another type.
            ValueError: a name, hash or number is out of range.
        """
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("name"), str) or not BOT_NAME.fullmatch(name):
            raise TypeError(f"member {entry!r:.80}")
        if "statistics" in entry:  # as version 1 called it
            entry = {"statistics_sha256" if key == "statistics" else key: value for key, value in entry.items()}
        rating = None if entry.get("rating") is None else Rating(**entry["rating"])
        member = cls(**{**entry, "rating": rating})
        high = {"step": 2**63 - 1, "score": member.games}
        numbers = {"step": member.step, "games": member.games, "score": member.score}
        for key, number in numbers.items():
            if type(number) not in ((int,) if key == "step" else (int, float)) or not math.isfinite(number):
                raise TypeError(f"{key} {number!r:.80} of member {name!r:.80}")
            if not 0 <= number <= high.get(key, math.inf):
                raise ValueError(f"{key} {number!r:.80} of member {name!r:.80}")
        if rating is not None and not is_rating(rating):
            raise ValueError(f"rating {list(rating)!r:.80} of member {name!r:.80}")
        words = {
            "file": (member.file, _FILE, True),
            "sha256": (member.sha256, _SHA256, member.file is None),
            "statistics_sha256": (member.statistics_sha256, _SHA256, True),
            "encoding": (member.encoding, BOT_NAME, True),
        }
        for key, (word, form, optional) in words.items():
            if not (word is None and optional) and not (isinstance(word, str) and form.fullmatch(word)):
                raise ValueError(f"{key} {word!r:.80} of member {name!r:.80}")
        return member


def thinned(members: Sequence[Member], keep: int | None) -> list[Member]:
    """The members with at most `keep` snapshots; the one whose neighbours are closest in steps is removed first."""
    kept = list(members)
    snapshots = sorted((member for member in members if member.file is not None), key=lambda member: member.step)
    while keep is not None and len(snapshots) > keep:
        gaps = [after.step - before.step for before, after in zip(snapshots, snapshots[2:], strict=False)]
        kept.remove(snapshots.pop(1 + int(np.argmin(gaps))))
    return kept


Sampler = Callable[[Sequence[Member]], Any]
"""A function from all members, bots first and then snapshots by step, to a weight >= 0 for each."""


def uniform(members: Sequence[Member]) -> list[float]:
    """Equal weights."""
    return [1.0] * len(members)


def recent(window: int) -> Sampler:
    """Equal weights for the last `window` members, 0 for the others."""
    if window < 1:
        raise ValueError(f"the window of a sampler must be >= 1, got {window}")
    return lambda members: [float(number >= len(members) - window) for number in range(len(members))]


def prioritized(members: Sequence[Member]) -> list[float]:
    """Prioritized fictitious self-play: larger weights for members that the learner loses to.

    A member's weight is f_hard(p) = (1 - p)^2, where p is the probability that the learner beats it, here
    `Member.learner_score`. From Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement learning",
    Nature 575 (2019).
    """
    return [(1 - member.learner_score) ** 2 for member in members]


def make_sampler(sampler: str | tuple[str, int] | Sampler) -> Sampler:
    """The named sampler, or a function as it is.

    Raises:
        ValueError: neither a known name nor a function.
    """
    named: dict[Any, Sampler] = {"latest": recent(1), "uniform": uniform, "prioritized": prioritized}
    if callable(sampler):
        return sampler
    if isinstance(sampler, str) and sampler in named:
        return named[sampler]
    if isinstance(sampler, (tuple, list)) and len(sampler) == 2 and sampler[0] == "recent":
        return recent(sampler[1])
    raise ValueError(
        f'sampler must be "latest", "uniform", "prioritized", ("recent", window) or a function of the members, got {sampler!r}'
    )
