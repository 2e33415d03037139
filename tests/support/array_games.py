"""Games that are only arrays, and an opponent that writes down what it is asked."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

OBSERVATIONS = spaces.Box(-1e9, 1e9, (2,), np.float64)


ACTIONS = spaces.Discrete(1000)


class Games:
    """E games of N seats whose observation in (game, seat) is [game, seat]; actions are decoded by adding 1000."""

    class View:
        def __init__(self, games):
            self.games = games

        def observations(self):
            return self.games.array

        def action_masks(self):
            return self.games.masks

        def decode(self, actions, games, seats):
            self.games.decoded.append((games.copy(), seats.copy()))
            return actions + 1000

    def __init__(self, num_games=4, seats=4, num_learners=1):
        self.num_games, self.seats, self.num_learners = num_games, seats, num_learners
        self.array = np.stack(np.indices((num_games, seats)), axis=-1).astype(np.float64)
        self.masks = np.ones((num_games, seats, 3), np.int8)
        self.masks[..., 1] = 0

        self.decoded = []  # games and seats of each call of `decode`

    def view(self, observation_space, action_space):
        if (observation_space, action_space) != (OBSERVATIONS, ACTIONS):
            raise ValueError(f"these games show {OBSERVATIONS}, not {observation_space}")
        return self.View(self)


class Scribe:
    """Plays its own number and writes down what it is asked."""

    observation_space, action_space = OBSERVATIONS, ACTIONS

    def __init__(self, number, name=None):
        self.number, self.name = number, name or f"scribe{number}"
        self.calls, self.resets, self.seeds = [], [], []

    def act(self, observations, slots, action_masks):
        self.calls.append((observations.copy(), slots.copy(), action_masks))
        observations[:] = -1  # it may: the rows are its own
        return np.full(len(observations), self.number)

    def reset(self, slots):
        self.resets.append(sorted(slots.tolist()))

    def seed(self, seed):
        self.seeds.append(seed)


class MaskedScribe(Scribe):
    uses_masks = True


def play(lineup, games, active=None):
    actions = np.full((games.num_games, games.seats), -7)
    lineup.act(actions, np.ones(actions.shape, bool) if active is None else active)
    return actions
