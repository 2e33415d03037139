"""SelfPlayCallback: self-play of any Stable-Baselines3 algorithm against a pool of past selves, in any game."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import set_random_seed

from adapters.opponents.parse import parse_all
from adapters.opponents.pool import Member, OpponentPool
from adapters.opponents.statistics import read_statistics
from adapters.placements import pair_scores, win_share
from adapters.ratings import Ratings
from adapters.vec_env.curry import CurryVecEnv
from adapters.vec_env.learner_env import LearnerGameBatch
from adapters.vec_env.sb3_internals import restart_games

TABLE_KEY = 33
"""Longest key in SB3's table, which indents keys by 3, cuts them to 36 characters and fails if two are then equal."""

LEARNER = "learner"
"""The learner's name in `pool.learner["ratings"]`."""


class _Tally(NamedTuple):
    """A number of games and the sum of their scores."""

    games: int = 0
    won: float = 0.0

    def plus(self, share: float) -> _Tally:
        return _Tally(self.games + 1, self.won + share)

    @property
    def rate(self) -> float:
        return self.won / self.games


class SelfPlayCallback(BaseCallback):
    """Add snapshots of the learner to a pool, let them play against it, and log ratings and win rates.

        pool = OpponentPool("runs/mine/pool")
        env = make_sb3_env("random", num_games=64)
        PPO("CnnPolicy", env, policy_kwargs=policy_kwargs()).learn(
            2_000_000, callback=SelfPlayCallback(pool, snapshot_every=50_000)
        )

    When training starts, the learner becomes the first member unless the pool has snapshots, and `opponent` takes the enemy
    seats. A snapshot with optimiser, `VecNormalize` statistics and rating is added at the first start of a rollout after every
    `snapshot_every` steps, which is after the update, and at the end of training. `OpponentPool` draws the opponents.

    Results come from placements in finished games, never from rewards. A training game ends when its learners are out, so it is
    only known which opponents were placed below, beside or above the learner. Each of these pairs is one game in the member's
    record and one match for the ratings (`Ratings`, openskill). The learner's rating keeps changing; a snapshot keeps the
    rating it was added with until it plays.

    A result counts for the member with the name in the infos. Members of a pool that is given by the path of its folder are
    called `<path as given>/<name>`, so pools of other runs can be given by their paths: their members are rated and logged
    under these names and do not affect records and weights of `pool`. The path of the folder of `pool` means `pool`.

    With a `seed`, all random streams and all games restart at the start and after every snapshot, from the seed and the number
    of the snapshot. A run that is resumed from its last snapshot (load the model from `pool.path(pool.latest)`, learn with
    `reset_num_timesteps=False`) then equals one that was never stopped, with on-policy algorithms: checkpoints do not contain
    replay buffers.

    Logged under `selfplay/`, over the games since the last log: `win_rate` (first places, ties count 1/m),
    `win_rate_as/<agent>` by the learner's agent, `above/<opponent>` (how often the learner was placed above it, ties count
    1/2), `rating`, `rating_sigma`, `members`, and `opponent_time`, the share of wall-clock time in which opponents acted. SB3's
    table on the terminal leaves out opponents and agents with long names.

    Args:
        pool: the pool for the snapshots. This callback keeps "steps", "segment" and "ratings" in `pool.learner`.
        snapshot_every: steps between snapshots, as SB3 counts them.
        opponent: the opponents on the enemy seats, as in `make_sb3_env`; None: the pool. With `mixture({pool: 3, "survivor":
            1})` a quarter of the games are against a bot. Other pools by their paths.
        seed: as above; None: random streams continue.
        after_snapshot: called with every new member, before training continues.

    Raises:
        ValueError: `snapshot_every` below 1, or damaged data in `pool.learner`; when training starts: not a VecEnv of
            `make_sb3_env`, a pool of a learner with more steps, or another `OpponentPool` in `opponent`.
    """

    def __init__(
        self,
        pool: OpponentPool,
        *,
        snapshot_every: int,
        opponent: Any = None,
        seed: int | None = None,
        after_snapshot: Callable[[Member], None] | None = None,
    ) -> None:
        super().__init__()
        if snapshot_every < 1:
            raise ValueError(f"snapshot_every must be >= 1, got {snapshot_every}")
        self.pool = pool
        self.snapshot_every = snapshot_every
        self.opponent = pool if opponent is None else opponent
        self.seed = seed
        self.after_snapshot = after_snapshot
        self.ratings, self._segment = _kept(pool)
        self.seconds = 0.0
        """Wall-clock time of snapshots so far, `after_snapshot` included."""
        self._begins = True  # whether the next rollout is the first of its segment
        self._next = 0  # steps at which the next snapshot is due
        self._won = _Tally()  # since the last log, as everything in `_clear`

    def snapshot(self) -> Member | None:
        """Add the learner to the pool; returns None if it has not learned since the last snapshot."""
        latest = self.pool.latest
        if latest is not None and latest.step >= self.num_timesteps:
            return None
        start = time.perf_counter()
        if latest is not None:
            self._segment += 1
        self._keep()
        member = self.pool.add(self.model, step=self.num_timesteps, rating=self.ratings[LEARNER])
        self._begins = True
        self._next = (self.num_timesteps // self.snapshot_every + 1) * self.snapshot_every
        if self.after_snapshot is not None:
            self.after_snapshot(member)
        self.seconds += time.perf_counter() - start
        return member

    def _on_training_start(self) -> None:
        self._env = _curried(self.training_env)
        opponent = parse_all(self.opponent, own_pool=self.pool)
        if self.pool.latest is not None and self.pool.latest.step > self.num_timesteps:
            raise ValueError(
                f"the pool in {self.pool.folder} is of a learner with {self.pool.latest.step:,} steps, this one has "
                f"{self.num_timesteps:,}: continue with that one (load {self.pool.path(self.pool.latest)} and learn with "
                "reset_num_timesteps=False), or give a pool in a new folder"
            )
        self._next = (self.num_timesteps // self.snapshot_every + 1) * self.snapshot_every
        self._begins = True
        self.snapshot()
        if self._env.game_batch.seats > self._env.game_batch.num_learners:
            self._env.set_opponent(opponent)
        self._clear()

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next:
            self.snapshot()
        if self._begins:
            self._begins = False
            if self.seed is not None:
                self._begin_anew(self.seed)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info and "placements" in info:
                self._take(info["agent"], info["opponents"], info["placements"])
        return True

    def _on_rollout_end(self) -> None:
        if not self._won.games:
            return
        rating = self.ratings[LEARNER]
        record = self.logger.record
        record("selfplay/win_rate", self._won.rate)
        record("selfplay/rating", rating.mu)
        record("selfplay/rating_sigma", rating.sigma)
        record("selfplay/members", len(self.pool.members))
        record("selfplay/opponent_time", (self._env.lineup.seconds - self._acted) / (time.perf_counter() - self._since))
        for agent, tally in self._as_agent.items():
            key = f"win_rate_as/{agent}"
            record(f"selfplay/{key}", tally.rate, exclude=_off_table(key))
        for name, tally in self._against.items():  # names change all the time, so not in CSV, which has a column per name
            key = f"above/{name}"
            record(f"selfplay/{key}", tally.rate, exclude=("csv", *_off_table(key)))
        self._keep()
        self._clear()

    def _on_training_end(self) -> None:
        self.snapshot()

    def _take(self, agent: str, opponents: Mapping[str, str], placements: Mapping[str, int]) -> None:
        """Count a finished game of a learner."""
        own, won = placements[agent], win_share(placements, agent)
        self._won = self._won.plus(won)
        self._as_agent[agent] = self._as_agent[agent].plus(won)
        for other, name in opponents.items():
            score = float(pair_scores(own, placements[other]))
            self._against[name] = self._against[name].plus(score)
            self.ratings.rate([LEARNER, name], [own, placements[other]])
            if name in self.pool.names:
                self.pool.record(name, score)

    def _keep(self) -> None:
        """Store in the pool what a resumed run needs. It is saved with the next snapshot."""
        for member in self.pool.members:
            if member.name in self.ratings:
                self.pool.set_rating(member.name, self.ratings[member.name])
        self.pool.learner = {"steps": self.num_timesteps, "segment": self._segment, "ratings": self.ratings.as_dict()}

    def _clear(self) -> None:
        self._won = _Tally()
        self._as_agent: dict[str, _Tally] = defaultdict(_Tally)
        self._against: dict[str, _Tally] = defaultdict(_Tally)
        self._since, self._acted = time.perf_counter(), self._env.lineup.seconds

    def _begin_anew(self, seed: int) -> None:
        """Restart all random streams and all games from the seed and the number of snapshots."""
        (fresh,) = np.random.SeedSequence(seed, spawn_key=(self._segment,)).generate_state(1).tolist()
        model: Any = self.model
        set_random_seed(fresh, using_cuda=model.device.type == "cuda")
        model.action_space.seed(fresh)
        self.training_env.seed(fresh)
        normalize = model.get_vec_normalize_env()
        path = self.pool.statistics(self.pool.latest) if self.pool.latest is not None else None
        if normalize is not None and path is not None:  # the reset of a resumed run has changed them
            kept = read_statistics(path, self.pool.trust)
            normalize.obs_rms, normalize.ret_rms = kept.obs_rms, kept.ret_rms
        restart_games(model, self.training_env)


def _kept(pool: OpponentPool) -> tuple[Ratings, int]:
    """The ratings and the number of the segment in a pool."""
    segment = pool.learner.get("segment", 0)
    damaged = f"the manifest of the pool in {pool.folder} is damaged: learner"
    if type(segment) is not int or segment < 0:
        raise ValueError(f"{damaged}['segment'] must be a whole number >= 0, got {segment!r:.80}")
    try:
        return Ratings.from_dict(pool.learner.get("ratings", {})), segment
    except ValueError as error:
        raise ValueError(f"{damaged}['ratings']{str(error).removeprefix('ratings')}") from error


def _off_table(key: str) -> tuple[str, ...]:
    """Outputs that exclude this key under `selfplay/`: the terminal if it is too long for SB3's table."""
    return ("stdout",) if len(key) > TABLE_KEY else ()


def _curried(env: Any) -> CurryVecEnv:
    inner = env.unwrapped
    if not isinstance(inner, CurryVecEnv):
        raise ValueError(f"SelfPlayCallback needs a model on a VecEnv of make_sb3_env, got {type(inner).__name__}")
    if isinstance(inner.game_batch, LearnerGameBatch):
        raise ValueError(
            "SelfPlayCallback cannot change the opponents of a SharedGame, which belong to all its models: use "
            "SharedGame(opponent=pool), and add snapshots to the pool between two calls of learn()"
        )
    return inner
