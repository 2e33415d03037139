"""The action sets of a snake, their conversion to directions, and action masks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.rule_codes import Growth, Hunger, OwnBody, Reverse, RuleCodes
from snake_pz.core.state import SnakeState

ACTIONS = ("absolute", "relative")


def action_count(name: str) -> int:
    """The number of actions of an action set.

    Raises:
        ValueError: an unknown action set.
    """
    if name not in ACTIONS:
        raise ValueError(f"actions must be one of {', '.join(map(repr, ACTIONS))}, got {name!r}")
    return 4 if name == "absolute" else 3


def action_space(name: str) -> gymnasium.spaces.Discrete:
    """`absolute`: Discrete(4) up, right, down, left. `relative`: Discrete(3) left, straight, right, seen from the heading."""
    return gymnasium.spaces.Discrete(action_count(name))


def to_absolute(actions: NDArray[Any], headings: NDArray[np.int8]) -> NDArray[Any]:
    """Convert relative actions (B,) and the headings (B,) they refer to into absolute directions (B,)."""
    absolute: NDArray[Any] = (np.maximum(headings, 0) + actions - 1) % 4
    return absolute


@kernel
def _leaving(s: SnakeState, r: RuleCodes, shortened: bool, e: int, i: int, cell: int) -> int:
    """The number of segments, of all snakes, that leave the cell before the head of snake i is judged there, if nobody eats."""
    alive, body, heads, length = s.alive, s.body, s.head, s.length
    ring_mask = body.shape[2] - 1
    leaving = 0
    for j in range(alive.shape[1]):
        if not alive[e, j]:
            continue
        last = 1
        if j != i or r.own_body != OwnBody.AT_ONCE:
            last += shortened + (max(length[e, j] - r.max_length, 0) if r.max_length > 0 else 0)
        for k in range(max(length[e, j] - last, 0), length[e, j]):
            leaving += body[e, j, (heads[e, j] - k) & ring_mask] == cell
    return leaving


@kernel
def write_masks(s: SnakeState, r: RuleCodes, relative: bool, rows: NDArray[np.intp], out: NDArray[np.int8]) -> None:
    """Mask moves that certainly kill: at a wall, on a segment that cannot leave, of hunger or hazards, or by a reversal.

    A move is judged as it would be executed (a reversal that goes straight as straight), on the current board: other bodies are
    assumed to stay, except for segments that leave in any case. All ones if every move kills or the snake is dead.

    Args:
        s: the games, only read.
        r: their rules.
        relative: whether the action set is `relative`.
        rows: (B,) games to write.
        out: (E, N, A) int8, 1 = allowed, written for these games.
    """
    ring_mask = s.body.shape[2] - 1
    for e in rows:
        shortened = r.hunger == Hunger.SEGMENT and (s.turn[e] + 1) % r.hunger_every == 0
        more_leave = shortened or r.max_length > 0
        for i in range(s.alive.shape[1]):
            some = False
            for action in range(out.shape[2]):
                out[e, i, action] = 1
                if not s.alive[e, i] or s.over[e]:
                    continue
                heading = int64(s.heading[e, i])
                if heading < 0:
                    heading = 0
                direction = (heading + action - 1) % 4 if relative else action
                if s.heading[e, i] >= 0 and direction == (heading + 2) % 4:
                    if r.reverse == Reverse.STRAIGHT:
                        direction = heading
                    elif r.reverse == Reverse.DIES:
                        out[e, i, action] = 0
                        continue
                cell = r.neighbours[s.body[e, i, s.head[e, i]], direction]
                if cell < 0:
                    out[e, i, action] = 0
                    continue
                leaving = 0
                if s.occupancy[e, cell] > 0 and more_leave:
                    leaving = _leaving(s, r, shortened, e, i, cell)
                elif s.occupancy[e, cell] > 0:
                    for j in range(s.alive.shape[1]):
                        if s.alive[e, j] and s.body[e, j, (s.head[e, j] - s.length[e, j] + 1) & ring_mask] == cell:
                            leaving += 1
                food = s.food[e, cell] > 0
                health = s.health[e, i] - (1 if r.hunger == Hunger.HEALTH else 0) - r.hazard_damage * s.hazard[e, cell]
                starves = health <= 0 and not food and r.uses_health
                if shortened:
                    long = s.length[e, i] + (food and r.growth == Growth.SAME_TURN)
                    starves = starves or long == 1 or r.max_length == 1
                if s.occupancy[e, cell] > leaving or starves:
                    out[e, i, action] = 0
                    continue
                some = True
            if not some:
                for action in range(out.shape[2]):
                    out[e, i, action] = 1
