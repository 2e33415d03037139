"""What users write for an opponent, and what it means, as plain data: `frozen`, `mixture`, `parse`.

A word is read here alone. Importing this module and reading a word load neither torch nor Stable-Baselines3; the file system is
looked at once for each word. `adapters.opponents.resolver` makes opponents of what was read.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adapters.opponents.checkpoints import find_checkpoint
from adapters.opponents.pool import OpponentPool
from adapters.opponents.pool_files import is_pool
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.unpickling import Trust, checked_trust
from snake_pz.bots import BOTS

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy


CHAMPION = Path(__file__).parent / "champions" / "classic_11x11.zip"
"""Who "champion" is; the text beside it says how it came to be. See `parse` for where it can play."""

WORDS = frozenset({*BOTS, "champion"})
"""Strings that never name a file or folder, whatever lies in the current directory: "./greedy" and "greedy.zip" do."""


# What users write


@dataclass(frozen=True)
class Settings:
    """How a policy plays; None leaves a setting to the environment.

    Attributes:
        deterministic: play the likeliest action instead of sampling.
        device: where it predicts.
        vecnormalize: the file of its `VecNormalize` statistics, where it is not found by itself.
        name: what infos call it.
        trust: what its files may ask for beside known classes.
    """

    deterministic: bool | None = None
    device: torch.device | str | None = None
    vecnormalize: str | os.PathLike[str] | None = None
    name: str | None = None
    trust: bool | frozenset[str] | None = None


@dataclass(frozen=True)
class Frozen:
    """A checkpoint, live model or pool with settings of its own, see `frozen`."""

    source: Any
    settings: Settings


def frozen(
    source: str | os.PathLike[str] | BaseAlgorithm | BasePolicy | OpponentPool,
    *,
    deterministic: bool | None = None,
    device: torch.device | str | None = None,
    vecnormalize: str | os.PathLike[str] | None = None,
    name: str | None = None,
    trust: Trust | None = None,
) -> Frozen:
    """An opponent with settings of its own, wherever an opponent is named.

        make_sb3_env(opponent=["gen3.zip", frozen("gen3.zip", deterministic=True), "greedy"])

    Args:
        source: the path of a checkpoint, or a live model or policy; or a pool or its folder, all whose members but bots play
            so, and to which `vecnormalize` and `name` do not apply.
        deterministic: play the likeliest action instead of sampling; None: as the environment has it.
        device: where it predicts; None: as the environment has it.
        vecnormalize: the file of the `VecNormalize` statistics that it was trained with, if it is not beside the checkpoint
            under a name that is looked for.
        name: what infos call it; None: the path, or the class of what is live.
        trust: what the files may ask for beside known classes: names, such as `["my_package.MyExtractor"]`, which are imported
            and called as the files say; True: anything, so that a file may run any code; None: as the environment has it.

    Raises:
        TypeError: source is none of these, or trust no names.
        ValueError: a setting does not apply to a pool.
    """
    given = Frozen(source, Settings(deterministic, device, vecnormalize, name, None if trust is None else checked_trust(trust)))
    parse(given)  # so that a mistake is told where it is made
    return given


@dataclass(frozen=True)
class Mixture:
    """Opponents that a seat is drawn from whenever a game restarts, see `mixture`.

    Attributes:
        members: as they were written, or parsed.
        shares: how likely each of them is; they add up to 1.
        per: "game": the seats with this mixture get one of the members together; "seat": each gets its own.
        identity: of the mixture that was written: two that are written alike draw apart.
    """

    members: tuple[Any, ...] = field(compare=False)
    shares: tuple[float, ...] = field(compare=False)
    per: Literal["game", "seat"] = field(compare=False)
    identity: object = field(default_factory=object, repr=False)


def mixture(weights: Mapping[Any, float], per: Literal["game", "seat"] = "game") -> Mixture:
    """Opponents drawn anew for every game, for all enemy seats or as an entry of a list or dict of them by seat.

        make_sb3_env(opponent=mixture({"greedy": 1, "gen2.zip": 1, "gen3.zip": 3}))
        make_sb3_env(opponent=["survivor", "greedy", mixture({"gen2.zip": 1, "gen3.zip": 1})])

    Past selves in most of the games, for a pool may be in it (on which seats the pool seats whom is then its own matter):

        make_sb3_env(opponent=mixture({pool: 3, "survivor": 1}))

    Args:
        weights: by opponent, each whatever may stand for one seat, how often it plays in proportion to the others.
        per: "game" seats one of them on all seats that have this mixture; "seat" draws for each seat by itself.

    Raises:
        ValueError: no weight is above zero, one is negative or no number, or they are too large to add up; or `per` is neither.
        TypeError: weights is no mapping, or a mixture is in it.
    """
    if per not in ("game", "seat"):
        raise ValueError(f'per must be "game" or "seat", got {per!r}')
    if not isinstance(weights, Mapping):
        raise TypeError(f"mixture() takes a dict of weights by opponent, got {_described(weights)}")
    if any(isinstance(word, Mixture) for word in weights):
        raise TypeError("a mixture cannot be part of a mixture: write its opponents with their weights into the outer one")
    if wrong := {word: weight for word, weight in weights.items() if not _is_weight(weight)}:
        raise ValueError(f"the weights of a mixture must be numbers >= 0, got {wrong}")
    playing = {word: float(weight) for word, weight in weights.items() if weight > 0}
    if not playing:
        raise ValueError(f"a mixture needs an opponent of a weight above 0, got {dict(weights)}")
    try:
        total = math.fsum(playing.values())
    except OverflowError as error:
        raise ValueError(f"the weights of a mixture are too large to add up: give smaller ones, got {playing}") from error
    return Mixture(tuple(playing), tuple(weight / total for weight in playing.values()), per)


def _is_weight(weight: Any) -> bool:
    try:
        return not isinstance(weight, (str, bytes)) and 0 <= float(weight) < math.inf
    except (TypeError, ValueError, OverflowError):
        return False


# What it means. Equal values mean the same opponent; how it is shown does not matter.


@dataclass(frozen=True)
class Bot:
    """A scripted player, by its name; whether there is one turns out in the games."""

    name: str


@dataclass(frozen=True)
class Checkpoint:
    """A file, which need not be there.

    Attributes:
        file: absolute.
        settings: its own.
        label: what infos call it if the settings do not say.
    """

    file: Path
    settings: Settings = Settings()
    label: str = field(default="", compare=False)


@dataclass(frozen=True)
class Same:
    """Something that means itself alone, whatever `==` says of it: equal if it is the same object."""

    thing: Any = field(compare=False)
    settings: Settings = Settings()
    identity: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Note which object it is."""
        object.__setattr__(self, "identity", id(self.thing))


class Live(Same):
    """A model or policy of Stable-Baselines3 in memory."""


class Function(Same):
    """A function on batches of observations."""


class Ready(Same):
    """An `Opponent` or a `Source` already."""


@dataclass(frozen=True)
class Pool:
    """All members of a pool, one drawn for every game.

    Attributes:
        source: the pool itself, or its folder, absolute.
        settings: of its snapshots.
        prefix: what its members' names begin with in infos.
    """

    source: OpponentPool | Path
    settings: Settings = Settings()
    prefix: str = field(default="", compare=False)

    def opened(self) -> OpponentPool:
        """The pool itself."""
        return self.source if isinstance(self.source, OpponentPool) else OpponentPool(self.source)


Parsed = Bot | Checkpoint | Live | Function | Ready | Pool | Mixture


def parse(word: Any, *, own_pool: OpponentPool | None = None) -> Parsed:
    """What a word for the opponent on one seat means.

    Args:
        word: the path of an SB3 checkpoint (a string that ends in .zip, has a path separator or names a file, with or without
            its .zip, and is none of `WORDS`; or any PathLike) or of a pool's folder; "champion" for the one that comes with
            this package; any other string as a bot's name; an `OpponentPool`; a live SB3 model or policy; any of these but
            bots `frozen` with settings of its own; a `mixture`; a function on batches of observations; an `Opponent` or a
            `Source`, used as it is; or what this function returned. The champion plays on any board whose longer side is 11,
            whatever the rules and however many snakes; it was trained and measured on the classic 11x11 board with four snakes
            only, and elsewhere it is weaker.
        own_pool: what the path of its folder means, whether the folder is there yet or not.

    Raises:
        TypeError: the word is none of these.
        ValueError: it is a folder, but none of a pool; or another `OpponentPool` than `own_pool`, whose members would be called
            as those of this one.
    """
    if isinstance(word, Mixture):
        return replace(word, members=tuple(parse(member, own_pool=own_pool) for member in word.members))
    if isinstance(word, Pool):
        return _pool(word.source, word.settings, own_pool, word.prefix)
    if isinstance(word, (Bot, Checkpoint, Same)):
        return word  # type: ignore[return-value]  # Same itself is never made
    if isinstance(word, Frozen):
        return _frozen(word, own_pool)
    if isinstance(word, str) and word != "champion":
        return Bot(word) if word in BOTS else _path(word, Settings(), own_pool) or Bot(word)
    if isinstance(word, (str, os.PathLike, OpponentPool)) or _is_live(word):
        return _frozen(Frozen(word, Settings()), own_pool)
    if isinstance(word, (Opponent, Source)) and not isinstance(word, type):
        return Ready(word)
    if callable(word) and not isinstance(word, type):
        return Function(word)
    raise TypeError(
        "opponent must be the path of an SB3 checkpoint, a bot's name, a live SB3 model or policy, frozen(...) of these, a "
        "function f(observations) -> actions or an Opponent, or an OpponentPool, or a mixture, list or dict of these for the "
        f"seats; got {_described(word)}"
    )


def parse_all(words: Any, *, own_pool: OpponentPool | None = None) -> Any:
    """The same for whatever stands for the enemy seats: one word, a list in seat order or a dict by agent."""
    if isinstance(words, Mapping):
        return {agent: parse(word, own_pool=own_pool) for agent, word in words.items()}
    if isinstance(words, (list, tuple)):
        return [parse(word, own_pool=own_pool) for word in words]
    return None if words is None else parse(words, own_pool=own_pool)


def by_seat(words: Any, enemy_agents: Sequence[str] | None, num_enemies: int) -> list[Any]:
    """One word per enemy seat.

    Args:
        words: one for every seat, a list with one per enemy seat in seat order, or a dict by agent name.
        enemy_agents: the agents on the enemy seats, in seat order; None if learners are not named, so that agents change seats.
        num_enemies: how many enemy seats there are.

    Raises:
        ValueError: a list of another length, or a dict of other agents or without named learners.
    """
    if isinstance(words, Mapping):
        if enemy_agents is None:
            raise ValueError(
                "a dict of opponents by agent name needs learners given by name too, such as learners=['snake_0']; "
                "give a list in enemy-seat order, or name the learners; for a dict of weights write mixture({...})"
            )
        missing, unknown = [a for a in enemy_agents if a not in words], [a for a in words if a not in enemy_agents]
        if missing or unknown:
            raise ValueError(
                f"the dict of opponents must have exactly the enemy agents {list(enemy_agents)} as keys; "
                f"missing {missing}, unknown {unknown}"
            )
        return [words[agent] for agent in enemy_agents]
    if isinstance(words, (list, tuple)):
        if len(words) != num_enemies:
            raise ValueError(f"a list of opponents must have {num_enemies} entries, one per enemy seat, got {len(words)}")
        return list(words)
    return [words] * num_enemies


def players(words: Any) -> list[Parsed]:
    """Everyone that these words mean, one after the other: of a pool each member.

    Args:
        words: one, or a list of them.

    Raises:
        ValueError: a pool is empty, a file in it is another than the one that was added; and as `parse` does.
        FileNotFoundError: a file of a pool is gone.
    """
    everyone: list[Parsed] = []
    for word in words if isinstance(words, (list, tuple)) else [words]:
        parsed = parse(word)
        if not isinstance(parsed, Pool):
            everyone.append(parsed)
            continue
        pool = parsed.opened()
        if not pool.members:
            raise ValueError(f"the pool {str(pool.folder)!r} is empty: add a snapshot or a bot first")
        settings = replace(parsed.settings, trust=pool.trust or None) if parsed.settings.trust is None else parsed.settings
        for member in pool.members:
            if member.file is not None:
                everyone.append(parse(Frozen(pool.verified(member), settings)))
            else:
                everyone.append(parse(Frozen(member.name, settings) if member.name == "champion" else member.name))
    return everyone


def _frozen(given: Frozen, own_pool: OpponentPool | None) -> Parsed:
    source, settings = given.source, given.settings
    if isinstance(source, OpponentPool):
        return _pool(source, settings, own_pool)
    if isinstance(source, str) and source == "champion":
        return Checkpoint(CHAMPION, replace(settings, name=settings.name or "champion"))
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source not in BOTS):
        return _path(source, settings, own_pool) or _missing(source, settings)
    if not isinstance(source, str) and _is_live(source):
        return Live(source, settings)
    raise TypeError(
        f"frozen() takes the path of an SB3 checkpoint, a live SB3 model or policy or a pool, got {_described(source)}"
    )


def _path(text: str | os.PathLike[str], settings: Settings, own_pool: OpponentPool | None) -> Checkpoint | Pool | None:
    """What is at a path, or would be; None if nothing is and the text does not look like one."""
    path = Path(text)
    if own_pool is not None and path.resolve() == own_pool.folder.resolve():
        return _pool(own_pool, settings, own_pool)
    if is_pool(path):
        return _pool(path.absolute(), settings, own_pool, os.path.join(text, ""))
    if (file := find_checkpoint(path)) is not None:
        return Checkpoint(file.absolute(), settings, _label(text))
    inside = path / "pool"
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    looks_like_one = isinstance(text, os.PathLike) or text.endswith(".zip") or any(part in text for part in separators)
    if path.is_dir() and (looks_like_one or is_pool(inside)):
        raise ValueError(
            f"{os.fspath(text)!r} is a folder, but no pool: "
            + (f"did you mean {inside}?" if is_pool(inside) else "expected a checkpoint, or a folder with a manifest.json")
        )
    return _missing(text, settings) if looks_like_one else None


def _missing(text: str | os.PathLike[str], settings: Settings) -> Checkpoint:
    return Checkpoint(Path(text).absolute(), settings, _label(text))


def _label(text: str | os.PathLike[str]) -> str:
    """The path as it was given, but not as a bot is called."""
    name = os.fspath(text)
    return os.path.join(os.curdir, name) if name in WORDS else name


def _pool(source: OpponentPool | Path, settings: Settings, own_pool: OpponentPool | None, prefix: str = "") -> Pool:
    if own_pool is not None and isinstance(source, OpponentPool) and source is not own_pool:
        raise ValueError(
            f"the only OpponentPool among the opponents may be the learner's own, {str(own_pool.folder)!r}, for members of "
            f"another are called like its own, got that of {str(source.folder)!r}: give it by its path, {str(source.folder)!r}"
        )
    if settings.vecnormalize is not None or settings.name is not None:
        raise ValueError(
            "the members of a pool have names and statistics of their own, got "
            f"vecnormalize={settings.vecnormalize!r}, name={settings.name!r}"
        )
    return Pool(source, settings, prefix)


def _is_live(thing: Any) -> bool:
    if "stable_baselines3" not in sys.modules:  # then nobody has a model of it
        return False
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    return isinstance(getattr(thing, "_orig_mod", thing), (BaseAlgorithm, BasePolicy))


def _described(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"{type(thing).__name__}: {thing!r:.80}"
