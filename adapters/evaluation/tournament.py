"""Tournaments among bots, checkpoints and whole pools, in the snake or any parallel environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm
from typing_extensions import override

from adapters.evaluation.move_times import MoveTimes, check_move_time
from adapters.evaluation.play_out import (
    NATIVE_NUM_GAMES,
    NUM_GAMES,
    Placement,
    check_games,
    check_placement,
    play_out,
    ranks_of,
)
from adapters.evaluation.standings import Played, Standings
from adapters.games.build import make_games, means_snake
from adapters.games.game_batch import GameBatch
from adapters.games.native import NativeGameBatch
from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.parse import players as parsed_players
from adapters.opponents.parsed import Frozen, Mixture
from adapters.opponents.pool import OpponentPool
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.resolver import opponents_for
from adapters.opponents.unpickling import Trust
from snake_pz.files import check_writable
from snake_pz.ranges import seed_sequence
from snake_pz.replay.recording import Recorder, distinct_names

if TYPE_CHECKING:
    import torch

    from adapters.games.checked_env import AnyParallelEnv

MOST_GAMES = 1_000_000
"""How many games a tournament has at most: what happened in each is kept until the end."""

REPLAYS = 10
"""How many games of a tournament are kept as replays, the first ones."""


def tournament(
    players: Sequence[Any] | OpponentPool | Frozen | os.PathLike[str],
    *,
    games: int,
    seed: int | None = 0,
    env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
    env_kwargs: dict[str, Any] | None = None,
    num_workers: int = 0,
    deterministic: bool = False,
    device: torch.device | str = "auto",
    trust: Trust = False,
    placement: Placement = "auto",
    move_time: float | None = None,
    progress: bool = False,
    replays: str | os.PathLike[str] | None = None,
) -> Standings:
    """Let players play many games against each other.

        standings = tournament(["survivor", "greedy", "runs/snake/model.zip", "runs/snake/pool"], games=2000)
        print(standings["survivor"].rating.interval)
        standings.plot("standings.png")

    With as many players as seats, every game seats each player once. With fewer, every game seats all of them equally often and
    the remaining seats are drawn. With more, the players of each game are drawn with equal probability. Unless there are more
    players than seats, all players have every seat equally often, up to rounding.

    Args:
        players: a list of whatever `make_sb3_env` takes as the opponent for one seat, at least two; an `OpponentPool` or the
            folder of one, in the list or alone, stands for all its members.
        games: number of games, at most a million.
        seed: of games, line-ups and players: the same seed, the same standings. None: fresh entropy.
        env: the game, as in `make_sb3_env`; None is the snake, which is played natively.
        env_kwargs: arguments of the environment's constructor.
        num_workers: number of worker processes that step an environment other than the snake.
        deterministic: whether policies play their likeliest action instead of sampling.
        device: where policies predict.
        trust: what the players' files may ask for beside known classes, as in `make_sb3_env`.
        placement: how the agents of a game are placed. "rank": by "rank" in the info of each agent's last step. "survival": the
            agent that stays longest is first; agents that leave on the same turn tie. "return": by the sum of rewards. "auto":
            "rank" if the environment gives it, else "survival". Or a function `f(agents, returns, turns, infos)` of sequences
            by seat that returns one number per seat, the lowest for first place.
        move_time: seconds of wall-clock time that a move may take. A player that can stop in time, with a method
            `limit_move_time(seconds)`, is told: a searcher without a budget of its own plays the best move that it has found by
            then. Nobody is interrupted: of the others it is said how many of their moves were late, `Standing.late`, and what
            they play counts all the same. A player moves in all games at once; a move takes that time, divided by the games.
            None: any time.
        progress: whether to show a progress bar.
        replays: folder in which to save replays of the first 10 games of the snake.

    Raises:
        ValueError: fewer than two players or seats, a player that cannot play this game, or an invalid argument.
        FileNotFoundError: there is no such checkpoint.
        OSError: `replays` cannot be written.
    """
    check_games(games, MOST_GAMES)
    check_placement(placement)
    check_move_time(move_time)
    native = means_snake(env) and not num_workers
    if replays is not None and not native:
        raise ValueError(
            f"replays are of the snake, played without workers, got env={env!r}, num_workers={num_workers}: leave replays out"
        )
    everyone = parsed_players(players)
    if len(everyone) < 2:
        raise ValueError(
            f"a tournament needs at least two players, got {players!r}: name another, a bot such as 'greedy' for example"
        )
    if several := [one for one in everyone if isinstance(one, Mixture)]:
        raise ValueError(f"a mixture is not one player: name one of its members, got {several[0]!r}")
    game_seeds, lineup_seeds, draws = seed_sequence(seed).spawn(3)
    num_games = min(games, NATIVE_NUM_GAMES if native else max(NUM_GAMES, num_workers))
    game_batch = make_games(env, env_kwargs=env_kwargs, num_games=num_games, learners=(), num_workers=num_workers)
    try:
        seats = game_batch.seats
        if seats < 2:
            raise ValueError(f"a tournament needs games of at least two seats, got {seats}: nobody is placed there")
        made = opponents_for(game_batch, everyone, seats=len(everyone), deterministic=deterministic, device=device, trust=trust)
        dealer = _Dealer([player for player in made if isinstance(player, Opponent)])
        names = distinct_names([player.name for player in dealer.players])
        lineup = OpponentLineup([dealer] * seats, game_batch, move_time=move_time)
        lineup.seed(lineup_seeds)
        line_ups = draw_line_ups(len(names), seats, games, np.random.default_rng(draws))
        keep = None if replays is None else _Keeper(Path(replays), names, line_ups, game_batch)
        played = Played(
            line_ups,
            ranks=np.zeros(line_ups.shape, np.int64),
            turns=np.zeros(line_ups.shape, np.int64),
            lengths=np.full(line_ups.shape, np.nan),
            causes=np.full(line_ups.shape, None, np.object_),
            times=MoveTimes.none(*line_ups.shape),
            move_time=move_time,
        )

        def deal(numbers: NDArray[np.intp]) -> None:
            dealer.hand = line_ups[numbers]

        watching: dict[str, Any] = {} if keep is None else {"after_start": keep.began}
        with tqdm(total=games, unit=" games", disable=None if progress else True) as bar:
            rated = play_out(game_batch, lineup, games, game_seeds, move_time=move_time, before_start=deal, **watching)
            for ended in rated:
                if keep is not None:
                    keep.ended(ended.game)
                played.ranks[ended.game] = ranks_of(ended, placement)
                played.turns[ended.game] = ended.turns
                played.times.put(ended.game, ended.times)
                for seat, info in enumerate(ended.infos):
                    if "cause" in info:
                        played.causes[ended.game, seat] = info["cause"]
                        played.lengths[ended.game, seat] = info.get("length", np.nan)
                bar.update()
        return Standings(names, [player.name for player in dealer.players], played)
    finally:
        game_batch.close()


def draw_line_ups(players: int, seats: int, games: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(games, seats) number of the player on each seat, distributed as `tournament` says."""
    block = seats if players <= seats else 1  # games that are one drawn order, turned by a seat each
    drawn = []
    for _ in range(-(-games // block)):
        order = rng.permutation(np.resize(rng.permutation(players), seats))
        drawn += [np.roll(order, turned) for turned in rng.permutation(block)]
    return np.array(drawn[:games])


class _Dealer(Source):
    """A `Source` that seats given players.

    Attributes:
        players: by number.
        hand: (games, seats) numbers of the players to seat next; None: any player.
    """

    def __init__(self, players: Sequence[Opponent]) -> None:
        self.players = players
        self.hand: NDArray[np.int64] | None = None

    @override
    def ready(self) -> Sequence[Opponent]:
        return self.players

    @override
    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        return self.players, np.zeros((games, seats), np.intp) if self.hand is None else self.hand

    @override
    def forget(self) -> None:
        pass


class _Keeper:
    """Saves replays of the first games."""

    def __init__(self, folder: Path, names: Sequence[str], line_ups: NDArray[np.int64], game_batch: GameBatch) -> None:
        assert isinstance(game_batch, NativeGameBatch)
        check_writable(folder / _file_name(0))  # before an hour's games
        self._folder, self._names = folder, names
        self._line_ups, self._game_batch = line_ups, game_batch
        self._recorders: dict[int, Recorder] = {}

    def began(self, game: int, index: int) -> None:
        if game < REPLAYS:
            names = distinct_names([self._names[player] for player in self._line_ups[game]])
            self._recorders[game] = self._game_batch.record(index, names)

    def ended(self, game: int) -> None:
        if game in self._recorders:
            self._recorders.pop(game).replay().save(self._folder / _file_name(game))


def _file_name(game: int) -> str:
    return f"game_{game + 1:02}.jsonl"
