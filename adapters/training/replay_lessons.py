"""Lessons from recorded games: what each snake saw, what it did, and what it got for it from then on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.core.actions import action_count, to_absolute
from snake_pz.core.encodings import Encoding, encoding_for
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.state import SnakeState
from snake_pz.replay import Replay
from snake_pz.replay.recording import LETTERS
from snake_pz.reward_weights import Rewards


class Lessons(NamedTuple):
    """B moves of recorded games."""

    observations: NDArray[np.uint8]  # (B, *obs)
    actions: NDArray[np.int64]  # (B,)
    returns: NDArray[np.float32]  # (B,) discounted rewards until the snake is out or the recording ends


def lessons_of(
    replays: Iterable[Replay],
    observation_space: gymnasium.Space[object],
    action_space: gymnasium.Space[object],
    rewards: Rewards,
    gamma: float,
    players: Collection[str] | None = None,
) -> Lessons:
    """The moves of recorded games in these spaces.

    Invalid moves are left out, and those that an action set does not have: a relative one cannot reverse.

    Args:
        replays: the games.
        observation_space: of an encoding of their boards.
        action_space: of an action set.
        rewards: weights or function of the rewards.
        gamma: discount for each turn.
        players: names of those whose moves count; None: all.

    Raises:
        ValueError: a game whose board has no such encoding, or no move is left.
    """
    found: list[Lessons] = []
    for number, replay in enumerate(replays):
        try:
            encoding, action_set = encoding_for(replay.rules, observation_space, action_space)
        except ValueError as error:
            raise ValueError(f"replay {number} has games of another kind: {error}") from error
        found.append(_lessons(replay, encoding, action_set, rewards, gamma, players))
    if not sum(len(one.actions) for one in found):
        names = sorted({name for replay in replays for name in replay.names})[:20]
        raise ValueError(f"there is no move to learn from, by {'anybody' if players is None else list(players)} among {names}")
    return Lessons(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _lessons(
    replay: Replay, encoding: Encoding, action_set: str, rewards: Rewards, gamma: float, players: Collection[str] | None
) -> Lessons:
    engine = SnakeEngine(replay.rules, 1)
    counted = np.array([players is None or name in players for name in replay.names])
    everyone, choices = np.arange(len(counted)), np.arange(action_count(action_set))
    turns, snakes, observations, actions, paid = [], [], [], [], []
    moves = [np.array([LETTERS.index(letter) for letter in letters]) for letters in replay.actions]
    before: SnakeState | None = None
    for turn, state in enumerate(replay.states()):
        engine.load(state)
        paid.append(engine.rewards(rewards, before=before or state)[0])
        before = engine.save()
        if turn == len(moves):
            break
        headings = state.heading[0]
        directions = (
            np.tile(choices[:, None], len(counted))
            if action_set == "absolute"
            else np.stack([to_absolute(np.full(len(counted), choice), headings) for choice in choices])
        )
        equal = directions == moves[turn]  # (A, N)
        learned = everyone[counted & state.alive[0] & equal.any(axis=0)]
        turns += [turn] * len(learned)
        snakes += learned.tolist()
        actions += equal.argmax(axis=0)[learned].tolist()
        observations.append(engine.observe(encoding)[0, learned])
    returns = np.zeros((len(moves) + 1, len(counted)), np.float64)
    for turn in range(len(moves) - 1, -1, -1):
        returns[turn] = paid[turn + 1] + gamma * returns[turn + 1]
    shape = (0, *engine.observe(encoding).shape[2:])
    seen = np.concatenate(observations) if observations else np.zeros(shape, np.uint8)
    return Lessons(seen, np.array(actions, np.int64), returns[turns, snakes].astype(np.float32))
