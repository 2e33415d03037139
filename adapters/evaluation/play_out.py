"""Games played to their end: the one loop under `play_games`, `record_game` and `tournament`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapters.evaluation.move_times import MoveTimes
from adapters.games.game_batch import GameBatch
from adapters.games.native import NativeGameBatch
from adapters.games.seating import env_seeds
from adapters.opponents.lineup import OpponentLineup
from adapters.placements import ranks

NATIVE_NUM_GAMES = 1024
"""How many games of the snake are played side by side: many, so that every player has large batches to the end."""
NUM_GAMES = 16
"""How many of another environment are."""

Placement = Literal["auto", "rank", "survival", "return"] | Callable[..., Sequence[float]]


class Ended(NamedTuple):
    """A game that is over, by seat."""

    game: int  # its number
    agents: tuple[str, ...]
    returns: NDArray[np.float64]  # sum of rewards
    turns: NDArray[np.int64]  # played until the agent left
    infos: list[dict[str, Any]]  # what the environment said in the step in which it left
    times: MoveTimes  # of its moves


def play_out(
    game_batch: GameBatch,
    lineup: OpponentLineup,
    games: int,
    seeds: np.random.SeedSequence,
    *,
    move_time: float | None = None,
    before_start: Callable[[NDArray[np.intp]], object] = lambda numbers: None,
    after_start: Callable[[int, int], object] = lambda number, index: None,
) -> Iterator[Ended]:
    """Play so many games to the end and yield each as it ends, whatever its length; the next one then takes its place.

    Args:
        game_batch: games without learners, at most as many as are to be played.
        lineup: who plays.
        games: how many.
        seeds: what the seeds of the environments are drawn from.
        move_time: seconds that a move of this line-up may take, see `MoveTimes`. None: any time.
        before_start: called with the numbers of games that are about to get their players.
        after_start: called with the number of a game that has begun, and its index in the batch.
    """
    num_games = game_batch.num_games
    native = isinstance(game_batch, NativeGameBatch)
    time_step = game_batch.reset(list(env_seeds(seeds, num_games)), [{}] * num_games)
    playing = np.arange(num_games)  # the number of the game that runs at each index; -1: none was left
    following = num_games  # the number of the next game
    before_start(playing)
    lineup.restart(playing)
    for index in range(num_games):
        after_start(index, index)
    agents = [game_batch.agents(index) for index in range(num_games)]  # of the running games
    shape = time_step.active.shape
    returns, turns, times = np.zeros(shape), np.zeros(shape, np.int64), MoveTimes.none(*shape)
    infos: list[list[dict[str, Any]]] = [[{}] * game_batch.seats for _ in range(num_games)]
    actions = np.zeros((*shape, *(game_batch.action_space.shape or ())), game_batch.action_space.dtype)
    while (playing >= 0).any():
        active = time_step.active
        # The engine steps idle games with any actions; other environments may insist on legal ones, so they are played on.
        lineup.act(actions, active & (playing >= 0)[:, None] if native else active)
        turns += active
        times.add(lineup.took, move_time)
        time_step = game_batch.step(actions)
        returns += time_step.rewards
        for index, seat in np.argwhere(time_step.terminated | time_step.truncated).tolist():
            infos[index][seat] = time_step.infos.get((index, seat), {})
        over = np.flatnonzero(active.any(axis=1) & (time_step.restarted | ~time_step.active.any(axis=1)))
        for index in over.tolist():
            if (game := int(playing[index])) >= 0:
                of_game = returns[index].copy(), turns[index].copy(), infos[index], times.take(index)
                yield Ended(game, agents[index], *of_game)
                playing[index], following = (following, following + 1) if following < games else (-1, following)
                if playing[index] >= 0:
                    after_start(int(playing[index]), index)
            agents[index], infos[index] = game_batch.agents(index), [{}] * game_batch.seats
        returns[over], turns[over] = 0.0, 0
        times.put(over, MoveTimes.none())
        if len(again := over[playing[over] >= 0]):
            before_start(playing[again])
            lineup.restart(again)


def check_games(games: Any, most: int) -> None:
    """Refuse what is no number of games from 1 to `most`."""
    if isinstance(games, bool) or not isinstance(games, (int, np.integer)) or not 1 <= games <= most:
        raise ValueError(f"games must be a whole number from 1 to {most:,}, got {games!r}")


def check_placement(placement: Placement) -> None:
    """Refuse what says nothing of how agents are placed."""
    if not callable(placement) and placement not in ("auto", "rank", "survival", "return"):
        raise ValueError(f'placement must be "auto", "rank", "survival", "return" or a function, got {placement!r}')


def ranks_of(ended: Ended, placement: Placement) -> NDArray[np.int64]:
    """(N,) 1 + how many are placed better; see `tournament` for the placements."""
    worse: NDArray[np.float64]  # the less, the better
    if callable(placement):
        worse = np.asarray(placement(ended.agents, ended.returns, ended.turns, ended.infos), np.float64)
        if worse.shape != ended.returns.shape or np.isnan(worse).any():
            raise ValueError(f"placement must return a number for each of {len(ended.returns)} agents, got {worse.tolist()}")
    elif placement == "return":
        worse = -ended.returns
    else:
        said = [info.get("rank") for info in ended.infos]
        if placement == "rank" and None in said:
            raise ValueError(
                'placement "rank" needs "rank" in the info of the last step of every agent, got '
                f'{dict(zip(ended.agents, said, strict=True))}: use "survival", "return" or a function'
            )
        by_rank = placement == "rank" or (placement == "auto" and None not in said)
        worse = np.array(said, np.float64) if by_rank else -ended.turns.astype(np.float64)
    return ranks(worse)
