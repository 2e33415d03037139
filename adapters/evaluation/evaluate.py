"""Games of the snake among any players, to the end: who wins how often, and recordings of single games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapters.games.game_batch import GameBatch
from adapters.games.native import NativeGameBatch
from adapters.opponents.lineup import Lineup
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.simple import RandomOpponent
from adapters.opponents.specs import resolve_seats
from snake_pz import bots
from snake_pz.replay import Replay
from snake_pz.replay.recording import distinct_names


class Results(NamedTuple):
    """What G games among N players came to; column j is the j-th player, wherever it sat."""

    ranks: NDArray[np.int16]  # (G, N) placement, 1 is best, shared by those who tie; truncated games are ranked by length
    lengths: NDArray[np.int32]  # (G, N) segments at death or at the end
    turns: NDArray[np.int32]  # (G,) turns that the game took

    @property
    def wins(self) -> NDArray[np.float64]:
        """(G, N) 1 for first place, 1/m for each of m who tie for it."""
        first = self.ranks == 1
        shares: NDArray[np.float64] = first / first.sum(axis=1, keepdims=True)
        return shares

    @property
    def win_rates(self) -> NDArray[np.float64]:
        """(N,) the mean of `wins`; 1/N is chance."""
        rates: NDArray[np.float64] = self.wins.mean(axis=0)
        return rates


def play_games(
    players: Sequence[Any],
    *,
    games: int = 400,
    seed: int | None = 0,
    env_kwargs: dict[str, Any] | None = None,
    deterministic: bool = False,
    device: Any = "auto",
) -> Results:
    """Play games to the end, all at once, players shuffled over the snakes in each.

    Args:
        players: one per snake, each whatever `make_sb3_env` takes as opponent for one seat; they may have different
            encodings and action sets.
        games: G, how many.
        seed: of games, seating and players; None: fresh entropy.
        env_kwargs: keywords of `snake_v0.parallel_env`: rules, max_cycles.
        deterministic: whether policies take their likeliest action instead of sampling.
        device: where policies predict.

    Raises:
        ValueError: not one player per snake, or a player that cannot play on this board.
    """
    game_batch, lineup = _seat(players, games, env_kwargs, deterministic, device)
    ranks = np.zeros((games, game_batch.seats), np.int16)
    lengths = np.zeros((games, game_batch.seats), np.int32)
    turns = np.zeros(games, np.int32)
    for infos in _turns(game_batch, lineup, seed):
        for (game, player), info in infos.items():
            ranks[game, player], lengths[game, player] = info["rank"], info["length"]
            turns[game] = info["turn"]
    return Results(ranks, lengths, turns)


def record_game(
    players: Sequence[Any],
    *,
    seed: int | None = 0,
    env_kwargs: dict[str, Any] | None = None,
    deterministic: bool = False,
    device: Any = "auto",
) -> Replay:
    """Play one game to its end, the first that `play_games` plays with these arguments, and take it down.

    Players are called what they were made of, checkpoints by their file's name; namesakes are numbered.
    """
    game_batch, lineup = _seat(players, 1, env_kwargs, deterministic, device)
    turns = _turns(game_batch, lineup, seed)
    next(turns)
    recorder = game_batch.record(0, distinct_names(lineup.names(0)))
    for _ in turns:
        pass
    return recorder.replay()


def resolve_players(
    players: Sequence[Any], game_batch: GameBatch, *, deterministic: bool, device: Any
) -> list[Opponent | Source]:
    """The players that can play these games, as many as there are words for them; the same object for the same word.

    Raises:
        ValueError: one that cannot.
        FileNotFoundError: there is no such checkpoint.
    """

    def make_bot(name: str) -> Opponent:
        if isinstance(game_batch, NativeGameBatch):
            return bots.make_bot(name, game_batch.get_attr("rules", [0])[0])
        if name != "random":
            raise ValueError(f"the only bot that plays any environment is 'random', got {name!r}")
        return RandomOpponent(game_batch.observation_space, game_batch.action_space)

    return resolve_seats(
        list(players),
        enemy_agents=None,
        num_enemies=len(players),
        observation_space=game_batch.observation_space,
        other_spaces=game_batch.other_spaces,
        action_space=game_batch.action_space,
        make_bot=make_bot,
        device=device,
        deterministic=deterministic,
    )


def _seat(
    players: Sequence[Any], games: int, env_kwargs: dict[str, Any] | None, deterministic: bool, device: Any
) -> tuple[NativeGameBatch, Lineup]:
    game_batch = NativeGameBatch(games, env_kwargs=env_kwargs, learners=0, restart=False)
    if len(players) != game_batch.seats:
        raise ValueError(f"expected {game_batch.seats} players, one per snake, got {len(players)}")
    return game_batch, Lineup(resolve_players(players, game_batch, deterministic=deterministic, device=device), game_batch)


def _turns(game_batch: NativeGameBatch, lineup: Lineup, seed: int | None) -> Iterator[dict[tuple[int, int], dict[str, Any]]]:
    """Play all games to the end; the infos of each turn, those of the start (none) first."""
    game_seeds, lineup_seeds = np.random.SeedSequence(seed).spawn(2)
    lineup.seed(lineup_seeds)
    row_seeds = game_seeds.generate_state(game_batch.num_games, np.uint64).tolist()
    time_step = game_batch.reset(row_seeds, [{}] * game_batch.num_games)
    lineup.restart(np.arange(game_batch.num_games))
    yield time_step.infos
    actions = np.zeros(time_step.active.shape, np.int64)
    while time_step.active.any():
        lineup.act(actions, time_step.active)
        time_step = game_batch.step(actions)
        yield time_step.infos
