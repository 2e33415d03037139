"""What users write for opponents: `frozen`, `mixture`, and `parse`, the one place that reads it.

The result is plain data (`parsed`), from which `resolver` makes the opponents. Importing this module and parsing load neither
torch nor Stable-Baselines3. The file system is read once per word.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adapters.opponents.checkpoints import find_checkpoint, is_onnx
from adapters.opponents.parsed import Bot, Checkpoint, Frozen, Function, Live, Mixture, Parsed, Pool, Ready, Same, Settings
from adapters.opponents.pool import OpponentPool
from adapters.opponents.pool_files import is_pool
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.unpickling import Trust, checked_trust
from snake_pz.bots import is_bot

if TYPE_CHECKING:
    import gymnasium
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    from snake_pz.core.encodings import Encoding


CHAMPION = Path(__file__).parent / "champions" / "classic_11x11.zip"
"""The checkpoint "champion". The card beside it says how it was trained, `parse` says where it can play."""


def is_reserved(word: str) -> bool:
    """Whether a string never names a file or folder, whatever is in the current directory; "./greedy" and "greedy.zip" do."""
    return word == "champion" or is_bot(word)


def frozen(
    source: str | os.PathLike[str] | BaseAlgorithm | BasePolicy | OpponentPool,
    *,
    deterministic: bool | None = None,
    device: torch.device | str | None = None,
    vecnormalize: str | os.PathLike[str] | None = None,
    name: str | None = None,
    trust: Trust | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    observation: str | gymnasium.Space[Any] | None = None,
    actions: str | gymnasium.Space[Any] | None = None,
    encode: Encoding | str | None = None,
) -> Frozen:
    """An opponent with its own settings, for use wherever an opponent is named.

        make_sb3_env(opponent=["gen3.zip", frozen("gen3.zip", deterministic=True), "greedy"])

    Args:
        source: path of a checkpoint, a live model or policy, or a pool or its folder. For a pool the settings apply to all its
            snapshots, and `vecnormalize`, `name` and `custom_objects` are not allowed.
        deterministic: whether it plays the likeliest action instead of sampling; None: as set for the environment.
        device: device on which it predicts; None: as set for the environment.
        vecnormalize: file of the `VecNormalize` statistics it was trained with. Needed only if the file is not beside the
            checkpoint under one of the names of `find_statistics`.
        name: its name in infos; None: the path, or the class of a live model.
        trust: classes that its files may name beside known ones, such as `["my_package.MyExtractor"]`, which are imported and
            called as the files say; True: anything, so that a file may run any code; None: as set for the environment.
        custom_objects: settings of a checkpoint by name, such as "policy_class" or "policy_kwargs", instead of those in the
            file, which are not read then, as for SB3's `load`.
        observation: what an ONNX file without metadata takes: "board", "egocentric" or "single" of the snake, or a space. Not
            needed if the shape of its input tells.
        actions: what it gives: "absolute" or "relative" of the snake, or a space. Not needed if the shape of its output tells.
        encode: the encoding of the snake that it was trained on, an `Encoding` or the name of a registered one, for a policy
            whose encoding is code of yours; None: the encoding of these games that has its space.

    Raises:
        TypeError: `source` is none of these, or `trust` no names.
        ValueError: a setting that such an opponent cannot have.
    """
    trusted = None if trust is None else checked_trust(trust)
    given = Frozen(
        source, Settings(deterministic, device, vecnormalize, name, trusted, custom_objects, observation, actions, encode)
    )
    parse(given)  # raises here rather than where the opponent is used
    return given


def mixture(weights: Mapping[Any, float], per: Literal["game", "seat"] = "game") -> Mixture:
    """Opponents one of which is drawn for every game. For all enemy seats, or as an entry of a list or dict by seat.

        make_sb3_env(opponent=mixture({"greedy": 1, "gen2.zip": 1, "gen3.zip": 3}))
        make_sb3_env(opponent=["survivor", "greedy", mixture({"gen2.zip": 1, "gen3.zip": 1})])
        make_sb3_env(opponent=mixture({pool: 3, "survivor": 1}))  # members of a pool in three games of four

    Args:
        weights: weights >= 0 by opponent. An opponent is drawn with a probability proportional to its weight.
        per: "game" draws one opponent for all seats with this mixture, "seat" draws for each seat separately. The pool's own
            `per` decides which of its members sit on the seats that it is drawn for.

    Raises:
        ValueError: no weight above 0, a weight that is negative or no number, weights too large to add up, or another `per`.
        TypeError: `weights` is no mapping, or contains a mixture.
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
        raise ValueError(f"a mixture needs an opponent with a weight above 0, got {dict(weights)}")
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


def parse(word: Any, *, own_pool: OpponentPool | None = None) -> Parsed:
    """Parse what a user writes for the opponent on one seat.

    Args:
        word: one of
            - the path of an SB3 checkpoint or an ONNX file: any PathLike, or a string that is not `is_reserved` and ends in
              .zip or .onnx, has a path separator or names a file, with or without its .zip;
            - the path of a pool's folder, or an `OpponentPool`;
            - "champion", the checkpoint that comes with this package. It plays on boards whose longer side is 11, with any
              rules and number of snakes. It was trained and measured on the classic 11x11 board with four snakes and is weaker
              elsewhere;
            - any other string, as the name of a bot;
            - a live SB3 model or policy;
            - any of these except bots in `frozen(...)`, or several in `mixture(...)`;
            - a function on batches of observations;
            - an `Opponent` or a `Source`;
            - a result of this function.
        own_pool: the pool meant by the path of its folder, even if the folder does not exist yet.

    Raises:
        TypeError: the word is none of these.
        ValueError: a folder that is no pool's; or an `OpponentPool` other than `own_pool`, whose members could not be told from
            those of `own_pool` by name.
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
        return Bot(word) if is_bot(word) else _path(word, Settings(), own_pool) or Bot(word)
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
    """Parse what a user writes for all enemy seats: one word, a list in seat order or a dict by agent."""
    if isinstance(words, Mapping):
        return {agent: parse(word, own_pool=own_pool) for agent, word in words.items()}
    if isinstance(words, (list, tuple)):
        return [parse(word, own_pool=own_pool) for word in words]
    return None if words is None else parse(words, own_pool=own_pool)


def by_seat(words: Any, enemy_agents: Sequence[str] | None, num_enemies: int) -> list[Any]:
    """One word per enemy seat.

    Args:
        words: one for every seat, a list in seat order, or a dict by agent.
        enemy_agents: the agents on the enemy seats in seat order; None if agents change seats.
        num_enemies: number of enemy seats.

    Raises:
        ValueError: a list of another length, a dict with other agents, or a dict although agents change seats.
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
    """Parse a word or a list of words, with every pool replaced by its members.

    Raises:
        ValueError: a pool is empty or one of its files was changed; and as from `parse`.
        FileNotFoundError: a file of a pool is missing.
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
    _check_settings(source, settings)
    if isinstance(source, str) and source == "champion":
        return Checkpoint(CHAMPION, replace(settings, name=settings.name or "champion"))
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not is_bot(source)):
        return _path(source, settings, own_pool) or _missing(source, settings)
    if not isinstance(source, str) and _is_live(source):
        return Live(source, settings)
    raise TypeError(
        f"frozen() takes the path of an SB3 checkpoint, a live SB3 model or policy or a pool, got {_described(source)}"
    )


def _path(text: str | os.PathLike[str], settings: Settings, own_pool: OpponentPool | None) -> Checkpoint | Pool | None:
    """The checkpoint or pool at a path; a missing checkpoint if the text looks like a path; else None."""
    path = Path(text)
    if own_pool is not None and path.resolve() == own_pool.folder.resolve():
        return _pool(own_pool, settings, own_pool)
    if is_pool(path):
        return _pool(path.absolute(), settings, own_pool, os.path.join(text, ""))
    if (file := find_checkpoint(path)) is not None:
        return Checkpoint(file.absolute(), settings, _label(text))
    inside = path / "pool"
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    looks_like_one = (
        isinstance(text, os.PathLike) or text.endswith((".zip", ".onnx")) or any(part in text for part in separators)
    )
    if path.is_dir() and (looks_like_one or is_pool(inside)):
        raise ValueError(
            f"{os.fspath(text)!r} is a folder, but not a pool's: "
            + (f"did you mean {inside}?" if is_pool(inside) else "expected a checkpoint, or a folder with a manifest.json")
        )
    return _missing(text, settings) if looks_like_one else None


def _missing(text: str | os.PathLike[str], settings: Settings) -> Checkpoint:
    return Checkpoint(Path(text).absolute(), settings, _label(text))


def _label(text: str | os.PathLike[str]) -> str:
    """The path as given, with "./" before the name of a bot."""
    name = os.fspath(text)
    return os.path.join(os.curdir, name) if is_reserved(name) else name


def _pool(source: OpponentPool | Path, settings: Settings, own_pool: OpponentPool | None, prefix: str = "") -> Pool:
    if own_pool is not None and isinstance(source, OpponentPool) and source is not own_pool:
        raise ValueError(
            f"the only OpponentPool among the opponents may be the learner's own, {str(own_pool.folder)!r}, because members of "
            f"another could not be told from its own by name, got that of {str(source.folder)!r}: give its path instead"
        )
    single = ("vecnormalize", "name", "custom_objects", "observation", "actions")
    if given := {name: value for name in single if (value := getattr(settings, name)) not in (None, {})}:
        raise ValueError(f"the members of a pool have their own names, statistics and spaces, got {given}: leave these out")
    return Pool(source, settings, prefix)


def _check_settings(source: Any, settings: Settings) -> None:
    """Refuse settings that mean nothing for this opponent, because it would play unlike what was asked for."""
    if isinstance(source, (str, os.PathLike)) and is_onnx(source):
        if settings.vecnormalize is not None or settings.custom_objects:
            raise ValueError(
                "an ONNX file has its normalisation inside, and no settings of Stable-Baselines3: leave out vecnormalize and "
                "custom_objects, and give them when it is exported"
            )
    elif settings.observation is not None or settings.actions is not None:
        raise ValueError("observation and actions are for ONNX files; checkpoints and models have spaces of their own")


def _is_live(thing: Any) -> bool:
    if "stable_baselines3" not in sys.modules:  # then there can be no model
        return False
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    return isinstance(getattr(thing, "_orig_mod", thing), (BaseAlgorithm, BasePolicy))


def _described(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"{type(thing).__name__}: {thing!r:.80}"
