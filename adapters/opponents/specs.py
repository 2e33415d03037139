"""What a user writes for the opponents, and what it means: `frozen`, `mixture`, `resolve`.

Importing this module loads neither torch nor Stable-Baselines3; resolving a checkpoint or a live model does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from adapters.opponents.checkpoints import find_checkpoint
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool import OpponentPool, is_pool
from adapters.opponents.pool_source import PoolSource
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.simple import CallableOpponent
from snake_pz.bots import BOTS

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy


CHAMPION = Path(__file__).parent / "champions" / "classic_11x11.zip"
"""Who "champion" is; the text beside it says how it came to be. See `resolve` for where it can play."""

WORDS = frozenset({*BOTS, "champion"})
"""Strings that never name a file or folder, whatever lies in the current directory: "./greedy" and "greedy.zip" do."""


@dataclass(frozen=True)
class Frozen:
    """A checkpoint, live model or pool with settings of its own, see `frozen`; None leaves a setting to the environment."""

    source: Any
    deterministic: bool | None = None
    device: torch.device | str | None = None
    vecnormalize: str | os.PathLike[str] | None = None
    name: str | None = None


def frozen(
    source: str | os.PathLike[str] | BaseAlgorithm | BasePolicy | OpponentPool,
    *,
    deterministic: bool | None = None,
    device: torch.device | str | None = None,
    vecnormalize: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Frozen:
    """An opponent with settings of its own, wherever an opponent is named.

        make_sb3_env(opponent=["gen3.zip", frozen("gen3.zip", deterministic=True), "greedy"])

    Args:
        source: the path of a checkpoint (a pickle: load only what you trust), or a live model or policy; or a pool or its
            folder, all whose members but bots play so, and to which the settings below `device` do not apply.
        deterministic: play the likeliest action instead of sampling; None: as the environment has it.
        device: where it predicts; None: as the environment has it.
        vecnormalize: the file of the `VecNormalize` statistics that it was trained with (a pickle too), if it is not beside the
            checkpoint under a name that is looked for.
        name: what infos call it; None: the path, or the class of what is live.

    Raises:
        TypeError: source is none of these.
        ValueError: a setting does not apply to a pool.
    """
    is_bot = isinstance(source, str) and source in BOTS
    if is_bot or (not isinstance(source, (str, os.PathLike, OpponentPool)) and not _is_live(source)):
        raise TypeError(
            f"frozen() takes the path of an SB3 checkpoint, a live SB3 model or policy or a pool, got {_described(source)}"
        )
    if names_pool(source) and (vecnormalize is not None or name is not None):
        raise ValueError(f"the members of a pool have names and statistics of their own, got {vecnormalize=}, {name=}")
    return Frozen(source, deterministic, device, vecnormalize, name)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Opponents that a seat is drawn from whenever a game restarts, see `mixture`; once resolved, a `Source`.

    Attributes:
        members: who, as named by the user; once resolved, each an `Opponent` or a `Source`.
        shares: how likely each of them is; they add up to 1.
        per: "game": the seats with this mixture get one of the members together; "seat": each gets its own.
    """

    members: tuple[Any, ...]
    shares: tuple[float, ...]
    per: Literal["game", "seat"]

    def ready(self) -> Sequence[Opponent]:
        """See `Source.ready`."""
        return [
            opponent
            for number, member in enumerate(self.members)
            for opponent in ([member] if number not in self._sources else self._sources[number].ready())
        ]

    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        """See `Source.draw`."""
        drawn = rng.choice(len(self.members), (games, 1 if self.per == "game" else seats), p=self.shares)
        drawn = np.broadcast_to(drawn, (games, seats))
        if not self._sources:
            return self.members, drawn
        opponents = list(self.members)  # of these, the sources are not drawn but asked
        which = drawn.copy()
        for number, source in self._sources.items():
            rows = np.flatnonzero((drawn == number).any(axis=1))
            if len(rows):
                coming, theirs = source.draw(len(rows), seats, rng, seated)
                which[rows] = np.where(drawn[rows] == number, theirs + len(opponents), which[rows])
                opponents += coming
                seated = [*seated, *coming]
        return opponents, which

    def forget(self) -> None:
        """See `Source.forget`."""
        for source in self._sources.values():
            source.forget()

    @cached_property
    def _sources(self) -> dict[int, Source]:
        """The members that are sources, by their number."""
        return {number: member for number, member in enumerate(self.members) if not isinstance(member, Opponent)}


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
    if any(isinstance(spec, Mixture) for spec in weights):
        raise TypeError("a mixture cannot be part of a mixture: write its opponents with their weights into the outer one")
    if wrong := {spec: weight for spec, weight in weights.items() if not _is_weight(weight)}:
        raise ValueError(f"the weights of a mixture must be numbers >= 0, got {wrong}")
    playing = {spec: float(weight) for spec, weight in weights.items() if weight > 0}
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


def with_own_pool(spec: Any, pool: OpponentPool) -> Any:
    """The same opponents, with the pool itself in the place of the path of its folder.

    Raises:
        ValueError: another `OpponentPool` is among them, whose members would be called as those of this one.
    """
    if isinstance(spec, Mixture):
        return replace(spec, members=tuple(with_own_pool(member, pool) for member in spec.members))
    if isinstance(spec, Frozen):
        return replace(spec, source=with_own_pool(spec.source, pool))
    if isinstance(spec, Mapping):
        return {agent: with_own_pool(one, pool) for agent, one in spec.items()}
    if isinstance(spec, (list, tuple)):
        return [with_own_pool(one, pool) for one in spec]
    if isinstance(spec, OpponentPool) and spec is not pool:
        raise ValueError(
            f"the only OpponentPool among the opponents may be the learner's own, {str(pool.folder)!r}, for members of another "
            f"are called like its own, got that of {str(spec.folder)!r}: give it by its path, {str(spec.folder)!r}"
        )
    is_path = isinstance(spec, os.PathLike) or (isinstance(spec, str) and spec not in WORDS)
    return pool if is_path and Path(spec).resolve() == pool.folder.resolve() else spec


def resolve(
    spec: Any,
    *,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    make_bot: Callable[[str], Opponent],
    device: torch.device | str = "auto",
    deterministic: bool = False,
    other_spaces: Sequence[gymnasium.Space[Any]] = (),
) -> Opponent:
    """The opponent that a user's word for it means.

    Args:
        spec: the path of an SB3 checkpoint (a string that ends in .zip, has a path separator or names a file, with or
            without its .zip, and is none of `WORDS`; or any PathLike), "champion" for the one that comes with this package,
            any other string as a bot's name, a live SB3 model or policy, any of these but bots `frozen` with settings of its
            own, a function on batches of observations, or an object that is an `Opponent` already and is used as it is. Its
            spaces alone decide where the champion can play, which is any board whose longer side is 11, whatever the rules and
            however many snakes; it was trained and measured on the classic 11x11 board with four snakes only, and elsewhere
            it is weaker.
        observation_space: what the learner sees; a function sees the same.
        action_space: how the learner acts; a function acts the same.
        make_bot: makes the bot of a name, and raises a ValueError that lists the names if there is none.
        device: where policies run.
        deterministic: whether policies play their likeliest action instead of sampling.
        other_spaces: what else the games can show to a policy that was trained on it.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        TypeError: spec is none of these.
        ValueError: the checkpoint cannot be used, or there is no such bot.
    """
    if _is_champion(spec):
        spec = Frozen(CHAMPION, name="champion")
    elif isinstance(spec, Frozen) and _is_champion(spec.source):
        spec = replace(spec, source=CHAMPION, name=spec.name or "champion")
    if isinstance(spec, str) and not _is_path(spec):
        try:
            return make_bot(spec)
        except ValueError as error:
            raise ValueError(f"{error} (beside them there is 'champion'; a checkpoint's path would end in .zip)") from error
    if isinstance(spec, Opponent) and not isinstance(spec, type):
        return spec
    if isinstance(spec, (Frozen, str, os.PathLike)) or _is_live(spec):
        policy = spec if isinstance(spec, Frozen) else Frozen(spec)
        is_file = isinstance(policy.source, os.PathLike) and os.fspath(policy.source) in WORDS
        return PolicyOpponent(
            os.path.join(os.curdir, policy.source) if is_file else policy.source,  # not to be called as the bot is
            shown=[observation_space, *other_spaces],
            deterministic=deterministic if policy.deterministic is None else policy.deterministic,
            device=device if policy.device is None else policy.device,
            vecnormalize=policy.vecnormalize,
            name=policy.name,
        )
    if callable(spec) and not isinstance(spec, type):
        return CallableOpponent(spec, observation_space=observation_space, action_space=action_space)
    raise TypeError(
        "opponent must be the path of an SB3 checkpoint, a bot's name, a live SB3 model or policy, frozen(...) of these, a "
        "function f(observations) -> actions or an Opponent, or an OpponentPool, or a mixture, list or dict of these for the "
        "seats; "
        f"got {_described(spec)}"
    )


def resolve_seats(
    spec: Any,
    *,
    enemy_agents: Sequence[str] | None,
    num_enemies: int,
    **settings: Any,
) -> list[Opponent | Source]:
    """Who is on each enemy seat; what is given twice is one object, so that it costs one forward pass.

    Args:
        spec: one spec for every seat, a list with one per enemy seat in seat order, or a dict by agent name; each what
            `resolve` takes, an `OpponentPool` or the path of its folder, or a `mixture` of such. A pool's members are called by
            their names; if it is given by its path, `<path as given>/<name>`.
        enemy_agents: the agents on the enemy seats, in seat order; None if learners are not named, so that agents change seats.
        num_enemies: how many enemy seats there are.
        settings: those of `resolve`.

    Returns:
        One entry per enemy seat; the members of mixtures are resolved too.

    Raises:
        ValueError: a list of another length, a dict of other agents or without named learners, or an empty pool; and as
            `resolve` does.
    """
    made: dict[Any, Opponent | Source] = {}

    def make(one: Any) -> Opponent | Source:
        key = _identity(one)
        if key not in made:
            if isinstance(one, Mixture):
                made[key] = replace(one, members=tuple(make(member) for member in one.members))
            elif names_pool(one):
                made[key] = _pool_source(one, **settings)
            else:
                made[key] = resolve(one, **settings)
        return made[key]

    return [make(one) for one in by_seat(spec, enemy_agents, num_enemies)]


def _pool_source(
    spec: Any,
    *,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    make_bot: Callable[[str], Opponent],
    device: torch.device | str = "auto",
    deterministic: bool = False,
    other_spaces: Sequence[gymnasium.Space[Any]] = (),
) -> PoolSource:
    """What seats the members of a pool in these games, by the settings of `resolve`."""
    given = spec if isinstance(spec, Frozen) else Frozen(spec)
    is_path = not isinstance(given.source, OpponentPool)
    shown = [observation_space, *other_spaces]
    settings: dict[str, Any] = {
        "deterministic": deterministic if given.deterministic is None else given.deterministic,
        "device": device if given.device is None else given.device,
    }
    return PoolSource(
        OpponentPool(given.source) if is_path else given.source,
        shown=shown,
        make_bot=lambda name: (
            PolicyOpponent(CHAMPION, shown=shown, name=name, **settings) if _is_champion(name) else make_bot(name)
        ),
        prefix=os.path.join(given.source, "") if is_path else "",
        **settings,
    )


def by_seat(spec: Any, enemy_agents: Sequence[str] | None, num_enemies: int) -> list[Any]:
    """One spec per enemy seat."""
    if isinstance(spec, Mapping):
        if enemy_agents is None:
            raise ValueError(
                "a dict of opponents by agent name needs learners given by name too, such as learners=['snake_0']; "
                "give a list in enemy-seat order, or name the learners; for a dict of weights write mixture({...})"
            )
        missing, unknown = [a for a in enemy_agents if a not in spec], [a for a in spec if a not in enemy_agents]
        if missing or unknown:
            raise ValueError(
                f"the dict of opponents must have exactly the enemy agents {list(enemy_agents)} as keys; "
                f"missing {missing}, unknown {unknown}"
            )
        return [spec[agent] for agent in enemy_agents]
    if isinstance(spec, (list, tuple)):
        if len(spec) != num_enemies:
            raise ValueError(f"a list of opponents must have {num_enemies} entries, one per enemy seat, got {len(spec)}")
        return list(spec)
    return [spec] * num_enemies


def _is_live(spec: Any) -> bool:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    return isinstance(getattr(spec, "_orig_mod", spec), (BaseAlgorithm, BasePolicy))


def _is_champion(spec: Any) -> bool:
    return isinstance(spec, str) and spec == "champion"


def _is_path(text: str) -> bool:
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    return text not in WORDS and (
        text.endswith(".zip")
        or any(separator in text for separator in separators)
        or find_checkpoint(text) is not None
        or is_pool(text)
        or is_pool(Path(text) / "pool")  # a run's folder, which is not one, but whose user is to hear so
    )


def names_pool(spec: Any) -> bool:
    """Whether it names an opponent pool.

    Raises:
        ValueError: it names a folder of anything else.
    """
    source = spec.source if isinstance(spec, Frozen) else spec
    if not isinstance(source, (str, os.PathLike)) or (isinstance(source, str) and not _is_path(source)):
        return isinstance(source, OpponentPool)
    if is_pool(source):
        return True
    if Path(source).is_dir() and find_checkpoint(source) is None:
        inside = Path(source) / "pool"
        raise ValueError(
            f"{os.fspath(source)!r} is a folder, but no pool: "
            + (f"did you mean {inside}?" if is_pool(inside) else "expected a checkpoint, or a folder with a manifest.json")
        )
    return False


def _identity(spec: Any) -> Any:
    """Equal for specs that mean the same opponent."""
    if isinstance(spec, str) and not _is_path(spec):
        return spec
    policy = spec if isinstance(spec, Frozen) else Frozen(spec)
    source = policy.source
    is_file = isinstance(source, (str, os.PathLike))
    if isinstance(source, str) and source in WORDS:
        return policy
    if not is_file:
        return replace(policy, source=id(source))
    return replace(policy, source=(Path(source) if is_pool(source) else find_checkpoint(source) or Path(source)).absolute())


def _described(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"{type(thing).__name__}: {thing!r:.80}"
