"""Play whole games among any players: win rates, and recordings of single games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adapters.evaluation.move_times import MoveTimes, check_move_time
from adapters.evaluation.play_out import NUM_GAMES, Placement, check_games, check_placement, play_out, ranks_of
from adapters.evaluation.results import Results
from adapters.games.build import make_games, means_snake
from adapters.games.game_batch import GameBatch
from adapters.games.native import NativeGameBatch
from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.resolver import opponents_for
from adapters.opponents.unpickling import Trust
from snake_pz.ranges import seed_sequence
from snake_pz.replay.recording import Replay, distinct_names

if TYPE_CHECKING:
    import torch

    from adapters.games.checked_env import AnyParallelEnv

MOST_GAMES = 100_000
"""How many games `play_games` plays at most: those of the snake are all in memory at once."""


def play_games(
    players: Sequence[Any],
    *,
    games: int = 400,
    seed: int | None = 0,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    num_workers: int = 0,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
    placement: Placement = "auto",
    move_time: float | None = None,
) -> Results:
    """Play whole games. In each, the players are shuffled over the seats.

        print(play_games([model, "greedy", "greedy", "greedy"]))  # a table of win rates with intervals

    Args:
        players: one per seat, each whatever `make_sb3_env` takes as opponent for one seat; in games of the snake they may have
            different encodings and action sets.
        games: G, number of games, at most 100,000; games of the snake are played side by side.
        seed: of games, seating and players; None: fresh entropy.
        env: the game, as in `make_sb3_env`; None is the snake.
        env_kwargs: arguments of the environment's constructor; for the snake, rules and max_cycles for example.
        num_workers: number of worker processes that step the games; the snake needs none.
        deterministic: whether policies play their likeliest action instead of sampling.
        device: where policies predict.
        trust: what the players' files may ask for beside known classes, as in `make_sb3_env`.
        placement: how the agents of a game are placed, as in `tournament`.
        move_time: seconds that a move may take, as in `tournament`.

    Raises:
        ValueError: not one player per seat, a player that cannot play this game, or an invalid argument.
        FileNotFoundError: there is no such checkpoint.
    """
    check_games(games, MOST_GAMES)
    check_placement(placement)
    check_move_time(move_time)
    num_games = games if means_snake(env) and not num_workers else min(games, max(NUM_GAMES, num_workers))
    game_batch = make_games(
        env, env_kwargs=env_kwargs, num_games=num_games, learners=0, num_workers=num_workers, restart=num_games < games
    )
    try:
        seated = _seated(players, game_batch, deterministic, device, trust)
        lineup = OpponentLineup(seated, game_batch, move_time=move_time)
        shape = (games, game_batch.seats)
        ranks, lengths, turns = np.zeros(shape, np.int16), np.full(shape, -1, np.int32), np.zeros(games, np.int32)
        causes, times = np.full(shape, None, np.object_), MoveTimes.none(*shape)
        seeds, lineup_seeds = seed_sequence(seed).spawn(2)
        lineup.seed(lineup_seeds)
        for ended in play_out(game_batch, lineup, games, seeds, move_time=move_time):
            ranks[ended.game] = ranks_of(ended, placement)
            lengths[ended.game] = [info.get("length", -1) for info in ended.infos]
            causes[ended.game] = [info.get("cause") for info in ended.infos]
            turns[ended.game] = ended.turns.max()
            times.put(ended.game, ended.times)
        snakes = game_batch.snake_rules is not None
        names = tuple(_names(seated))
        return Results(ranks, lengths if snakes else None, turns, names, causes if snakes else None, times)
    finally:
        game_batch.close()


def record_game(
    players: Sequence[Any],
    *,
    seed: int | None = 0,
    env_kwargs: dict[str, Any] | None = None,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
) -> Replay:
    """Record one whole game of the snake: the first game that `play_games` plays with these arguments.

    Players are named after what they were made from, checkpoints after their file; equal names are numbered.

    Raises:
        ValueError: not one player per snake, or one that cannot play on this board.
        FileNotFoundError: there is no such checkpoint.
    """
    game_batch = make_games(env_kwargs=env_kwargs, num_games=1, learners=0, restart=False)
    assert isinstance(game_batch, NativeGameBatch)
    lineup = OpponentLineup(_seated(players, game_batch, deterministic, device, trust), game_batch)
    seeds, lineup_seeds = seed_sequence(seed).spawn(2)
    lineup.seed(lineup_seeds)
    recorders = []

    def record(game: int, index: int) -> None:
        recorders.append(game_batch.record(index, distinct_names(lineup.names(index))))

    list(play_out(game_batch, lineup, 1, seeds, after_start=record))
    return recorders[0].replay()


def _seated(
    players: Sequence[Any], game_batch: GameBatch, deterministic: bool, device: Any, trust: Trust
) -> list[Opponent | Source]:
    if len(players) != game_batch.seats:
        if game_batch.snake_rules is None:
            raise ValueError(f"expected {game_batch.seats} players, one per seat, got {len(players)}")
        raise ValueError(
            f"expected {game_batch.seats} players, one per snake, got {len(players)}: "
            f"say env_kwargs={{'num_snakes': {len(players)}}} for as many snakes, or the same of the rules"
        )
    return opponents_for(game_batch, list(players), deterministic=deterministic, device=device, trust=trust)


def _names(players: Sequence[Opponent | Source]) -> list[str]:
    """Short, distinct names of the players; a source, which is not a single player, is named by its kind."""
    return distinct_names([one.name if isinstance(one, Opponent) else _kind(one) for one in players])


def _kind(source: Source) -> str:
    return type(source).__name__.removesuffix("Source").lower() or "source"
