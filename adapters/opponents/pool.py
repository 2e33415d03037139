"""OpponentPool: a folder of snapshots of a learner and bots, one of which is drawn for every game."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from adapters.opponents.members import BOT_NAME, NAME, Sampler, make_sampler, thinned
from adapters.opponents.members import Member as Member
from adapters.opponents.pool_files import MANIFEST, own_encoding, put, sha256, statistics_path, writers
from adapters.opponents.unpickling import Trust, checked_trust
from adapters.ratings import Rating
from snake_pz.files import locked, sweep, write_text

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

VERSION = 2
AGEING = 0.5
"""Factor for every member's `games` and `score` when a snapshot is added."""

_OURS = re.compile(r"snapshot_\d+(_.+)?\.(zip|onnx|pkl)|\.(snapshot_|manifest\.).*\d\.(zip|pkl|json)")
# the latter are temporary files of version 0.1.0


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number")  # for JSON, and for `_commit`


class PoolInUseError(RuntimeError):
    """Another process writes to the pool. Only one may."""


class PoolChangedError(ValueError):
    """A file or a member of the pool was changed by another process or by hand."""


class OpponentPool:
    """Snapshots of a learner and bots, in a folder. As an opponent, one of them is drawn for every game.

        pool = OpponentPool("runs/mine/pool")
        pool.add_bot("survivor")
        pool.add(model, step=model.num_timesteps)
        env.set_opponent(pool)

    **The folder** has a file for every snapshot, `snapshot_<step>.zip` (or `.onnx`), with its `VecNormalize` statistics beside
    it, and `manifest.json`. Files never change and the manifest is replaced atomically, so after a crash at any moment the pool
    opens, in the state before or after. All files called `snapshot_<number>...` belong to the pool: `add` removes those that
    are not in the manifest.

    **One process writes**, any number of others read and call `reload` to see changes. Their games reload by themselves when a
    snapshot they need is gone. Games that draw from the writer's object see additions at once. A second writer is refused: the
    folder is locked while one writes, and only an object that has read the latest manifest may write. (Some network file
    systems have no locks; there two writers at the same moment are not noticed.)

    **Names.** In infos, members of this object have their bare names, which `SelfPlayCallback` needs. If a pool is given by the
    path of its folder, they are called `<path as given>/<name>`; give one of two pools in the same game by its path.

    **Sampling.** Whenever games restart, a share `latest_share` of them gets the latest snapshot, the rest a member drawn by
    `sampler`: "latest", "uniform", `("recent", 10)` (the last ten with equal weights), "prioritized" (see `prioritized`), or a
    function from all members, bots first and then snapshots by step, to their weights. `PoolSource` says how a large pool is
    played with few members at a time.

    Args:
        folder: the folder, made when something is first added.
        sampler: how members are drawn.
        latest_share: share of the games with the latest snapshot, in addition to those from the sampler.
        per: "game": one member on all seats of the pool in a game; "seat": a member for each seat.
        max_loaded: number of members that each environment keeps in memory.
        max_active: number of members in an environment's games at once; each costs a forward pass per turn. At least 3 with a
            `latest_share` between 0 and 1. With 1, two are active while the one before finishes its games.
        trust: classes that the files may name beside known ones, as in `frozen`; not kept in the folder.
        keep: number of snapshots that stay on disk; None: all. The first and the latest always stay; of the others the one
            whose neighbours are closest in steps is removed first.

    Attributes:
        learner: data of the learner's trainer, anything that JSON can hold. Saved with the manifest.

    Raises:
        ValueError: an argument does not fit, or the manifest is damaged; from all methods that write: the folder has snapshots
            but no manifest, so they would be removed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        sampler: str | tuple[str, int] | Sampler = "prioritized",
        latest_share: float = 0.0,
        per: Literal["game", "seat"] = "game",
        max_loaded: int = 16,
        max_active: int = 4,
        keep: int | None = None,
        trust: Trust = False,
    ) -> None:
        if not 0 <= latest_share <= 1:
            raise ValueError(f"latest_share must be from 0 to 1, got {latest_share}")
        if per not in ("game", "seat"):
            raise ValueError(f'per must be "game" or "seat", got {per!r}')
        self.folder = Path(folder)
        self.latest_share = 1.0 if sampler == "latest" else float(latest_share)
        self.per = per
        least = 3 if 0 < self.latest_share < 1 else 1  # the latest, another, and one that finishes its games
        if max_active < least:
            raise ValueError(f"max_active must be >= {least} with latest_share={latest_share}, got {max_active}")
        if max_loaded < max_active:
            raise ValueError(
                f"max_loaded must be >= max_active, because active members are loaded, got {max_loaded} < {max_active}"
            )
        if keep is not None and keep < 2:
            raise ValueError(f"keep must be None or >= 2, because the first and the latest snapshot stay, got {keep}")
        self.max_loaded, self.max_active, self.keep = max_loaded, max_active, keep
        self.trust = checked_trust(trust)
        self.learner: dict[str, Any] = {}
        self._sampler = make_sampler(sampler)
        self._members: dict[str, Member] = {}  # in the order of `members`
        self._stamp: tuple[int, ...] | None = None  # of the manifest that was last read or written
        self.reload()

    def __repr__(self) -> str:
        """The folder and the number of members."""
        return f"OpponentPool({str(self.folder)!r}, members={len(self._members)})"

    @property
    def members(self) -> tuple[Member, ...]:
        """Bots first, then snapshots from the first to the latest."""
        return tuple(self._members.values())

    @property
    def names(self) -> Collection[str]:
        """The names of all members."""
        return self._members.keys()

    @property
    def latest(self) -> Member | None:
        """The latest snapshot, None if there is none."""
        members = self.members
        return members[-1] if members and members[-1].file else None

    def path(self, member: Member) -> Path:
        """The path of a snapshot's file.

        Raises:
            ValueError: the member is a bot.
        """
        if member.file is None:
            raise ValueError(f"{member.name!r} is a bot, which has no file")
        return self.folder / member.file

    def statistics(self, member: Member) -> Path | None:
        """The path of a member's `VecNormalize` statistics; None if it has none."""
        return None if member.statistics_sha256 is None else statistics_path(self.path(member))

    def add(
        self,
        model: BaseAlgorithm | str | os.PathLike[str],
        *,
        step: int,
        name: str | None = None,
        rating: Rating | tuple[float, float] | None = None,
        encoding: str | None = None,
    ) -> Member:
        """Add a snapshot, age the counts of all members, remove snapshots beyond `keep`, and save.

        Args:
            model: a model, saved with optimiser and `VecNormalize` statistics; or the path of a checkpoint, copied with the
                statistics beside it, or of an ONNX file with metadata.
            step: its training steps. The latest snapshot is the one with the most.
            name: its name in infos; None: `snapshot_<step>`.
            rating: its rating (mu, sigma).
            encoding: name of the encoding of yours that it was trained on, by which games find it after `register_encoding`.
                None: that of the model's environment, or one with its space.

        Raises:
            ValueError: the name is taken or not allowed, or the path is no checkpoint.
            TypeError: `model` is neither a model nor a path.
            FileNotFoundError: there is no such checkpoint.
            PoolInUseError: another process has written to the pool.
        """
        if step < 0:
            raise ValueError(f"step must be >= 0, got {step}")
        default = f"snapshot_{step}"
        name = self._new_name(name or default)
        save, save_statistics, spaces, suffix = writers(model, self.trust)
        checkpoint = self.folder / ((name if name == default else f"{default}_{name}") + suffix)
        with self._writing():
            hashes = put(checkpoint, save), put(statistics_path(checkpoint), save_statistics)
            aged = [replace(one, games=one.games * AGEING, score=one.score * AGEING) for one in self.members]
            known = own_encoding(model) if encoding is None else encoding
            rated = None if rating is None else Rating(*rating)
            added = Member(name, int(step), checkpoint.name, *hashes, *spaces, known, rated)
            self._commit(thinned([*aged, added], self.keep))
            self._sweep()
        return added

    def add_bot(self, name: str) -> Member:
        """Add a bot by name, or "champion", and save. Whether there is such a bot is checked only in the games.

        Raises:
            ValueError: the name is taken, or is a path.
            PoolInUseError: another process has written to the pool.
        """
        if not isinstance(name, str) or name.endswith((".zip", ".onnx")) or "/" in name or "\\" in name:
            raise ValueError(
                f"add_bot takes the name of a bot, such as 'greedy', got {name!r}: add(path, step=...) takes checkpoints"
            )
        bot = Member(self._new_name(name, BOT_NAME), 0)
        with self._writing():
            self._commit([*self._members.values(), bot])
        return bot

    def remove(self, name: str) -> Member:
        """Remove a member and its files, and save. In running games it plays to the end.

        Raises:
            ValueError: there is no such member; or it is the latest snapshot and `learner` has the state of a run that
                continues from it.
            PoolInUseError: another process has written to the pool.
        """
        member = self._named(name)
        if member == self.latest and self.learner:
            raise ValueError(
                f"{name!r} is the latest snapshot of the pool {self.folder}, and the run whose state is in `learner` continues "
                "from it: let the run add a later one first, or discard the state with learner = {}"
            )
        with self._writing():
            self._commit([one for one in self.members if one is not member])
            self._sweep()
        return member

    def record(self, name: str, score: float, games: int = 1) -> None:
        """Count games of the learner against a member.

        Args:
            name: name of the member.
            score: sum over the games of 1 if the learner was placed above the member, 0.5 for a tie, 0 if below.
            games: number of games.
        """
        member = self._named(name)
        if not 0 <= score <= games:
            raise ValueError(f"the score of {games} games must be from 0 to {games}, got {score}")
        self._members[name] = replace(member, games=member.games + games, score=member.score + float(score))

    def set_rating(self, name: str, rating: Rating | tuple[float, float]) -> None:
        """Set a member's rating, (mu, sigma)."""
        self._members[name] = replace(self._named(name), rating=Rating(*rating))

    def weights(self) -> NDArray[np.float64]:
        """The sampler's probabilities of all `members`, without `latest_share`.

        Raises:
            ValueError: a user's sampler does not return weights.
        """
        members = self.members
        weights = np.asarray(self._sampler(members), np.float64)
        if weights.shape != (len(members),) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError(
                f"a sampler must return a number >= 0 for each of {len(members)} members, not all zeros, got {weights.tolist()}"
            )
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    def verified(self, member: Member) -> Path:
        """The path of a snapshot's checkpoint, after a check that it and its statistics are the files that were added.

        Raises:
            FileNotFoundError: a file is missing.
            PoolChangedError: a file was changed.
        """
        checkpoint = self.path(member)
        for path, expected in ((checkpoint, member.sha256), (statistics_path(checkpoint), member.statistics_sha256)):
            if expected is not None and (found := sha256(path)) != expected:
                raise PoolChangedError(
                    f"{path} is not the file that was added to the pool: expected sha256 {expected}, got {found}; restore it"
                )
        return checkpoint

    def save(self) -> None:
        """Write the manifest with records, ratings and `learner`. `add`, `add_bot` and `remove` do it too.

        Raises:
            PoolInUseError: another process has written to the pool since it was opened or reloaded, or is writing now.
        """
        with self._writing():
            self._commit(list(self.members))

    def reload(self) -> bool:
        """Read the manifest if another process has replaced it. Records and ratings that were not saved are then lost.

        Returns:
            Whether it was read.

        Raises:
            ValueError: it is no manifest of a pool.
        """
        stamp = self._stamp_on_disk()
        if stamp is None or stamp == self._stamp:
            return False
        path = self.folder / MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
            if content["version"] > VERSION:
                raise ValueError(
                    f"version {content['version']!r:.80}, and this is for versions to {VERSION}: update the package"
                )
            members, learner = [Member.from_dict(one) for one in content["members"]], content["learner"]
            if not isinstance(learner, dict):
                raise TypeError(f"learner {learner!r:.80}")
            for what, words in (("name", [one.name for one in members]), ("file", [one.file for one in members if one.file])):
                ((word, times),) = Counter(map(str.casefold, words)).most_common(1) or [("", 0)]
                if times > 1:
                    raise ValueError(f"{times} members with the {what} {word!r:.80}")
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{path} is no manifest of an opponent pool ({error}): expected one that OpponentPool wrote"
            ) from error
        self._members, self.learner, self._stamp = {member.name: member for member in members}, learner, stamp
        return True

    def _named(self, name: str) -> Member:
        if name not in self._members:
            raise ValueError(f"no member of the pool is called {name!r}: there are {', '.join(self._members) or 'none'}")
        return self._members[name]

    def _new_name(self, name: str, allowed: re.Pattern[str] = NAME) -> str:
        if not allowed.fullmatch(name):
            raise ValueError(
                f"a member's name must begin with a letter or digit and have only letters, digits and _.-, got {name!r}"
            )
        if name.casefold() in {known.casefold() for known in self._members}:  # file names on macOS and Windows ignore case
            raise ValueError(f"the pool has a member {name!r} already: give another step or name")
        return name

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Lock the folder for writing, after a check that nobody else has written to it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.folder))
            except BlockingIOError as error:
                raise PoolInUseError(
                    f"another process is writing to the pool {self.folder}, only one may: give each process its own folder"
                ) from error
            self._check_alone()
            yield

    def _check_alone(self) -> None:
        if self._stamp_on_disk() != self._stamp:
            raise PoolInUseError(
                f"another process has written to the pool {self.folder}, only one may: reload() it and do not write, or give "
                "each process its own folder"
            )
        if self._stamp is None:
            ours = {member.file for member in self.members}
            files = [path for path in self.folder.glob("snapshot_*") if path.suffix in (".zip", ".onnx")]
            lost = [path for path in files if _OURS.fullmatch(path.name) and path.name not in ours]
            if len(lost) > 1:  # a crash in the first `add` leaves one; more must have been in a manifest
                raise ValueError(f"{self.folder} has snapshots but no {MANIFEST}: restore it, or give a new folder")

    def _commit(self, members: list[Member]) -> None:
        """Replace the members, in memory and on disk or in neither."""
        members = sorted(members, key=lambda member: (member.file is not None, member.step))
        content = {"version": VERSION, "members": [member.as_dict() for member in members], "learner": self.learner}
        before, self._members = self._members, {member.name: member for member in members}
        try:
            write_text(self.folder / MANIFEST, json.dumps(content, indent=1, allow_nan=False) + "\n")
            self._stamp = self._stamp_on_disk()
        except BaseException:
            if (stamp := self._stamp_on_disk()) == self._stamp:
                self._members = before
            else:  # interrupted after the replacement, which must be ours because the folder is locked
                self._stamp = stamp
            raise

    def _sweep(self) -> None:
        """Remove files of former members and of writers that crashed.

        Temporary files cannot belong to another writer, because writers have them only while the folder is locked.
        """
        snapshots = [member for member in self._members.values() if member.file is not None]
        needed = {self.path(member) for member in snapshots}
        needed |= {statistics_path(self.path(member)) for member in snapshots if member.statistics_sha256 is not None}
        sweep(self.folder)
        for path in self.folder.iterdir():
            if _OURS.fullmatch(path.name) and path not in needed:
                path.unlink(missing_ok=True)

    def _stamp_on_disk(self) -> tuple[int, ...] | None:
        try:
            status = (self.folder / MANIFEST).stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
