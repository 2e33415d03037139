"""make_curried_games: the parts of a VecEnv, that is its games, their line-up and how `set_opponent` resolves opponents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from adapters.games.build import Backend, Learners, check_learners, make_games
from adapters.games.game_batch import GameBatch
from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.protocol import Lineup, Opponent, Source
from adapters.opponents.resolver import opponents_for
from adapters.opponents.unpickling import Trust

if TYPE_CHECKING:
    import torch

    from adapters.games.checked_env import AnyParallelEnv


class CurriedGames(NamedTuple):
    """Games with opponents on their enemy seats."""

    game_batch: GameBatch
    lineup: Lineup
    resolve: Callable[[Any], list[Opponent | Source]]  # from the argument of `set_opponent` to one entry per enemy seat


def make_curried_games(
    opponent: Any,
    *,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None,
    env_kwargs: dict[str, Any] | None,
    num_games: int,
    learners: Learners,
    backend: Backend,
    num_workers: int,
    deterministic: bool,
    device: torch.device | str,
    trust: Trust,
    different_spaces: bool = False,
) -> CurriedGames:
    """Make the parts of a VecEnv. Arguments are those of `make_sb3_env` and `make_games`.

    Raises:
        ValueError: an argument does not fit.
        FileNotFoundError: a checkpoint is missing.
    """
    check_learners(learners)
    game_batch = make_games(
        env,
        env_kwargs=env_kwargs,
        num_games=num_games,
        learners=learners,
        backend=backend,
        num_workers=num_workers,
        different_spaces=different_spaces,
    )
    named = not isinstance(learners, int)

    def resolve(words: Any) -> list[Opponent | Source]:
        _check_opponent(words, game_batch.seats - game_batch.num_learners, game_batch.seats)
        return opponents_for(game_batch, words, named=named, device=device, deterministic=deterministic, trust=trust)

    try:
        return CurriedGames(game_batch, OpponentLineup(resolve(opponent), game_batch), resolve)
    except BaseException:
        game_batch.close()
        raise


def _check_opponent(opponent: Any, enemies: int, seats: int) -> None:
    if opponent is None and enemies:
        raise ValueError(
            f"opponent must not be None, because {enemies} of {seats} seats have no learner: give one, such as 'random', or "
            "learners='all'"
        )
    if opponent is not None and not enemies:
        raise ValueError(
            f"opponent must be None where all {seats} agents learn, got {opponent!r}: leave it out, or take fewer learners"
        )
