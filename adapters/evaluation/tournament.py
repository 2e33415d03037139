"""Tournaments: many games among bots, checkpoints and whole pools, of the snake or of any parallel environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from adapters.evaluation.evaluate import resolve_players
from adapters.evaluation.standings import Played, Standings
from adapters.games.game_batch import GameBatch
from adapters.games.native import NativeGameBatch
from adapters.games.supersuit import SuperSuitGameBatch, env_factory
from adapters.opponents.lineup import Lineup
from adapters.opponents.pool import OpponentPool
from adapters.opponents.protocol import Opponent
from adapters.opponents.specs import Frozen, names_pool
from snake_pz.bots import BOTS
from snake_pz.replay import Recorder
from snake_pz.replay.recording import distinct_names

if TYPE_CHECKING:
    import torch

    from adapters.games.fixed_seats import AnyParallelEnv

NATIVE_ROWS = 1024
"""How many games of the snake are played side by side: many, so that every player has large batches to the end."""
ROWS = 16
"""How many of another environment are."""
REPLAYS = 10
"""How many games of a tournament are kept as replays, the first ones."""

Placement = Literal["auto", "rank", "survival", "return"] | Callable[..., Sequence[float]]


class Ended(NamedTuple):
    """A game that is over, by seat."""

    game: int
    agents: tuple[str, ...]
    returns: NDArray[np.float64]  # sum of rewards
    turns: NDArray[np.int64]  # played until the agent left
    infos: list[dict[str, Any]]  # what the environment said in the step in which it left


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
    placement: Placement = "auto",
    progress: bool = False,
    replays: str | os.PathLike[str] | None = None,
) -> Standings:
    """Let players play many games against each other.

        standings = tournament(["survivor", "greedy", "runs/snake/model.zip", "runs/snake/pool"], games=2000)
        print(standings["survivor"].rating.interval)
        standings.plot("standings.png")

    With as many players as seats every game seats each of them once. With fewer it seats each of them equally often, and who
    fills the seats that are left is drawn; with more those who play are drawn, all alike. Unless they are more than the seats
    all players have every seat equally often, up to rounding.

    Args:
        players: a list of whatever `make_sb3_env` takes as the opponent for one seat, at least two; an `OpponentPool` or the
            folder of one, in the list or alone, stands for all its members.
        games: how many to play.
        seed: of games, line-ups and players: the same seed, the same standings. None: fresh entropy.
        env: the game, as `make_sb3_env` has it; None is the snake of this package, which is played natively.
        env_kwargs: arguments for the environment's constructor.
        num_workers: in how many processes another environment than the snake is stepped.
        deterministic: whether policies take their likeliest action instead of sampling.
        device: where policies predict.
        placement: how the agents of a game are placed. "rank": as the environment says, which has the placement in the info of
            each agent's last step under "rank". "survival": who stays longest is first, those who leave in the same turn
            tie. "return": by the sum of rewards. "auto": "rank" where the environment says it, else "survival". Or a function
            `f(agents, returns, turns, infos)` of sequences by seat that gives a number for each, the least for the first.
        progress: show a bar.
        replays: a folder for replays of the first 10 games of the snake.

    Raises:
        ValueError: fewer than two players or seats, one that cannot play here, or an argument that does not fit.
        FileNotFoundError: there is no such checkpoint.
    """
    if not isinstance(games, (int, np.integer)) or games < 1:
        raise ValueError(f"games must be >= 1 and a whole number, got {games!r}")
    if replays is not None and env is not None:
        raise ValueError("replays are of the snake, which is played when env is None: leave one of the two out")
    if env is None and num_workers:
        raise ValueError(f"the snake is played natively, without workers, got num_workers={num_workers}: use 0")
    if not callable(placement) and placement not in ("auto", "rank", "survival", "return"):
        raise ValueError(f'placement must be "auto", "rank", "survival", "return" or a function, got {placement!r}')
    specs = [one for spec in (players if isinstance(players, (list, tuple)) else [players]) for one in _members(spec)]
    if len(specs) < 2:
        raise ValueError(
            f"a tournament needs at least two players, got {specs}: name another, a bot such as 'greedy' for example"
        )
    game_seeds, lineup_seeds, draws = np.random.SeedSequence(seed).spawn(3)
    rows = min(games, NATIVE_ROWS if env is None else max(ROWS, num_workers))
    game_batch: GameBatch
    if env is None:
        game_batch = NativeGameBatch(rows, env_kwargs=env_kwargs, learners=())
    else:
        game_batch = SuperSuitGameBatch([env_factory(env, env_kwargs)] * rows, learners=(), num_workers=num_workers)
    try:
        if game_batch.seats < 2:
            raise ValueError(f"a tournament needs games of at least two seats, got {game_batch.seats}: nobody is placed there")
        players = resolve_players(specs, game_batch, deterministic=deterministic, device=device)
        if several := [spec for spec, player in zip(specs, players, strict=True) if not isinstance(player, Opponent)]:
            raise ValueError(f"a pool or mixture is not one player: name one of its members, got {several[0]!r}")
        dealer = _Dealer([player for player in players if isinstance(player, Opponent)])
        names = distinct_names([player.name for player in dealer.players])
        lineup = Lineup([dealer] * game_batch.seats, game_batch)
        lineup.seed(lineup_seeds)
        line_ups = draw_line_ups(len(names), game_batch.seats, games, np.random.default_rng(draws))
        keep = None if replays is None else _Keeper(Path(replays), names, line_ups)
        played = Played(
            line_ups,
            ranks=np.zeros(line_ups.shape, np.int64),
            turns=np.zeros(line_ups.shape, np.int64),
            lengths=np.full(line_ups.shape, np.nan),
            causes=np.full(line_ups.shape, None, np.object_),
        )
        with tqdm(total=games, unit=" games", disable=None if progress else True) as bar:
            for ended in _play(game_batch, lineup, dealer, line_ups, game_seeds, keep):
                played.ranks[ended.game] = _ranks(ended, placement)
                played.turns[ended.game] = ended.turns
                for seat, info in enumerate(ended.infos):
                    if "cause" in info:
                        played.causes[ended.game, seat] = info["cause"]
                        played.lengths[ended.game, seat] = info.get("length", np.nan)
                bar.update()
        return Standings(names, [player.name for player in dealer.players], played)
    finally:
        game_batch.close()


def draw_line_ups(players: int, seats: int, games: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(games, seats) who sits where, see `tournament`."""
    block = seats if players <= seats else 1  # games that are one drawn order, turned by a seat each
    drawn = []
    for _ in range(-(-games // block)):
        order = rng.permutation(np.resize(rng.permutation(players), seats))
        drawn += [np.roll(order, turned) for turned in rng.permutation(block)]
    return np.array(drawn[:games])


class _Dealer:
    """A `Source` that seats whom it is told to.

    Attributes:
        players: by number.
        hand: (games, seats) the numbers of those who sit down next; None: anybody.
    """

    def __init__(self, players: Sequence[Opponent]) -> None:
        self.players = players
        self.hand: NDArray[np.int64] | None = None

    def ready(self) -> Sequence[Opponent]:
        return self.players

    def draw(
        self, games: int, seats: int, rng: np.random.Generator, seated: Sequence[Opponent]
    ) -> tuple[Sequence[Opponent], NDArray[np.intp]]:
        return self.players, np.zeros((games, seats), np.intp) if self.hand is None else self.hand

    def forget(self) -> None:
        pass


class _Keeper:
    """Keeps the first games as replays."""

    def __init__(self, folder: Path, names: Sequence[str], line_ups: NDArray[np.int64]) -> None:
        self._folder, self._names, self._line_ups = folder, names, line_ups
        self._recorders: dict[int, Recorder] = {}

    def began(self, game: int, game_batch: GameBatch, row: int) -> None:
        if game < REPLAYS:
            assert isinstance(game_batch, NativeGameBatch)
            names = distinct_names([self._names[player] for player in self._line_ups[game]])
            self._recorders[game] = game_batch.record(row, names)

    def ended(self, game: int) -> None:
        if game in self._recorders:
            self._recorders.pop(game).replay().save(self._folder / f"game_{game + 1:02}.jsonl")


def _members(spec: Any) -> list[Any]:
    """The player itself, or the members of a pool."""
    source = spec.source if isinstance(spec, Frozen) else spec
    if not names_pool(spec):
        return [spec]
    source = source if isinstance(source, OpponentPool) else OpponentPool(source)
    if not source.members:
        raise ValueError(f"the pool {str(source.folder)!r} is empty: add a snapshot or a bot first")
    members: list[Any] = [member.name if member.file is None else source.verified(member) for member in source.members]
    return [replace(spec, source=one) if isinstance(spec, Frozen) and one not in BOTS else one for one in members]


def _play(
    game_batch: GameBatch,
    lineup: Lineup,
    dealer: _Dealer,
    line_ups: NDArray[np.int64],
    seeds: np.random.SeedSequence,
    keep: _Keeper | None,
) -> Iterator[Ended]:
    """Play a game with each of the line-ups, as they end. A row that is free takes the next line-up."""
    games, rows = len(line_ups), game_batch.num_games
    native = isinstance(game_batch, NativeGameBatch)
    row_seeds = seeds.generate_state(rows, np.uint64).tolist()
    time_step = game_batch.reset(row_seeds, [{}] * rows)
    playing, following = np.arange(rows), rows  # the game of each row, -1 if there was none left; the next one
    dealer.hand = line_ups[:rows]
    lineup.restart(playing)
    if keep:
        for row in range(rows):
            keep.began(row, game_batch, row)
    shape = time_step.active.shape
    returns, turns = np.zeros(shape), np.zeros(shape, np.int64)
    infos: list[list[dict[str, Any]]] = [[{}] * game_batch.seats for _ in range(rows)]
    actions = np.zeros((*shape, *(game_batch.action_space.shape or ())), game_batch.action_space.dtype)
    while (playing >= 0).any():
        # The engine plays idle rows with any actions; other environments may insist on legal ones, so they are played on.
        acting = time_step.active & (playing >= 0)[:, None] if native else time_step.active
        lineup.act(actions, acting)
        turns += time_step.active
        time_step = game_batch.step(actions)
        returns += time_step.rewards
        for row, seat in np.argwhere(time_step.terminated | time_step.truncated).tolist():
            infos[row][seat] = time_step.infos.get((row, seat), {})
        over = np.flatnonzero(time_step.restarted)
        if not len(over):
            continue
        for row in over.tolist():
            if (game := int(playing[row])) >= 0:
                if keep:
                    keep.ended(game)
                yield Ended(game, game_batch.agents(row), returns[row].copy(), turns[row].copy(), infos[row])
                playing[row], following = (following, following + 1) if following < games else (-1, following)
                if keep and playing[row] >= 0:
                    keep.began(int(playing[row]), game_batch, row)
            infos[row] = [{}] * game_batch.seats
        returns[over], turns[over] = 0.0, 0
        again = over[playing[over] >= 0]
        dealer.hand = line_ups[playing[again]]
        lineup.restart(again)


def _ranks(ended: Ended, placement: Placement) -> NDArray[np.int64]:
    """(N,) 1 + how many are placed better."""
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
    ranks: NDArray[np.int64] = 1 + (worse[None, :] < worse[:, None]).sum(axis=1)
    return ranks
