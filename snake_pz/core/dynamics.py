"""One turn of the game: the rules, as kernels on `SnakeState`.

A turn is a sequence of stages, each judged for all snakes together: move, hunger, hazard, eat, eliminate. Then the board
changes (tails that grow on every turn, hazards that close in, new food), and the game may end.

Each stage loops over all games that are not over. Helpers take single arrays, because passing the whole tuple to a helper costs
more than its work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.kernel import int64, kernel
from snake_pz.core.rule_codes import (
    ContestedFood,
    DyingBlock,
    EndsWith,
    Growth,
    HeadToHead,
    Hunger,
    InvalidMove,
    OwnBody,
    Reverse,
    RuleCodes,
    TiedDeaths,
    TiedKiller,
)
from snake_pz.core.state import OFF_BOARD, Cause, Direction, SnakeState
from snake_pz.core.upkeep import double_tail, grow, shrink, spawn_food


@kernel
def _begin(s: SnakeState) -> None:
    """Clear the events of the last turn and the ranks of living snakes, which a truncation may have set; count this turn."""
    for e in range(s.over.shape[0]):
        for i in range(s.alive.shape[1]):
            s.ate[e, i] = False
            s.just_died[e, i] = False
            s.length_before[e, i] = s.length[e, i]
            if s.alive[e, i] and not s.over[e]:
                s.rank[e, i] = 0
        s.just_ended[e] = False
        if not s.over[e]:
            s.turn[e] += 1


@kernel
def _straight_on(
    neighbours: NDArray[np.int16], body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], e: int, i: int
) -> int:
    """The direction from the second segment through the head; up if both are on one cell or there is only one segment."""
    found = int64(Direction.UP)
    if length[e, i] >= 2:
        head, neck = body[e, i, heads[e, i]], body[e, i, (heads[e, i] - 1) & (body.shape[2] - 1)]
        for direction in range(4):
            if neighbours[neck, direction] == head:
                found = direction
                if (head > neck) == (
                    direction == Direction.RIGHT or direction == Direction.DOWN
                ):  # not across a seam; on a side of two cells both directions fit
                    break
    return found


@kernel
def _in_body(body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], e: int, i: int, cell: int) -> bool:
    """Whether a segment of snake i other than its head lies on the cell."""
    ring_mask = body.shape[2] - 1
    for k in range(1, length[e, i]):
        if body[e, i, (heads[e, i] - k) & ring_mask] == cell:
            return True
    return False


@kernel
def _drop_tail(
    body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], occupancy: NDArray[np.uint8], e: int, i: int
) -> None:
    cell = body[e, i, (heads[e, i] - length[e, i] + 1) & (body.shape[2] - 1)]
    if cell >= 0:
        occupancy[e, cell] -= 1
    length[e, i] -= 1


@kernel
def _move(s: SnakeState, r: RuleCodes, actions: NDArray[np.int8]) -> None:
    """Move every living snake's head one cell, and its tail unless it grows on this turn."""
    alive, heading, cause, body, heads, length = s.alive, s.heading, s.cause, s.body, s.head, s.length
    occupancy, food = s.occupancy, s.food
    ring_mask = body.shape[2] - 1
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        for i in range(alive.shape[1]):
            if not alive[e, i]:
                continue
            direction = int64(actions[e, i])
            if direction < 0 or direction > 3:
                if r.invalid_move == InvalidMove.DIES:
                    cause[e, i] = Cause.INVALID
                    continue
                direction = _straight_on(r.neighbours, body, heads, length, e, i)
            if heading[e, i] >= 0 and direction == (heading[e, i] + 2) & 3:
                if r.reverse == Reverse.STRAIGHT:
                    direction = int64(heading[e, i])
                elif r.reverse == Reverse.DIES:
                    cause[e, i] = Cause.REVERSE
                    continue
            cell = r.neighbours[body[e, i, heads[e, i]], direction]
            meal = cell >= 0 and food[e, cell] > 0
            if meal and r.contested_food == ContestedFood.LOWEST_INDEX:
                for j in range(i):
                    if s.ate[e, j] and body[e, j, heads[e, j]] == cell:
                        meal = False
                s.ate[e, i] = meal
            grows = r.growth == Growth.SAME_TURN and meal and length[e, i] < ring_mask
            if not grows:
                _drop_tail(body, heads, length, occupancy, e, i)
            heads[e, i] = (heads[e, i] + 1) & ring_mask
            body[e, i, heads[e, i]] = cell
            length[e, i] += 1
            heading[e, i] = direction
            if cell >= 0:
                occupancy[e, cell] += 1
            if r.own_body == OwnBody.AT_ONCE and cell >= 0 and _in_body(body, heads, length, e, i, cell):
                cause[e, i] = Cause.SELF
                s.killer[e, i] = i
            if r.max_length > 0:
                while length[e, i] > r.max_length:
                    _drop_tail(body, heads, length, occupancy, e, i)


@kernel
def _hunger(s: SnakeState, r: RuleCodes) -> None:
    """Take 1 health from every living snake, or on some turns a tail segment; a snake without segments starves."""
    for e in range(s.alive.shape[0]):
        if s.over[e]:
            continue
        if r.hunger == Hunger.HEALTH:
            for i in range(s.alive.shape[1]):
                if s.alive[e, i]:
                    s.health[e, i] -= 1
        elif r.hunger == Hunger.SEGMENT and s.turn[e] % r.hunger_every == 0:
            for i in range(s.alive.shape[1]):
                if s.alive[e, i] and s.cause[e, i] == Cause.ALIVE:
                    _drop_tail(s.body, s.head, s.length, s.occupancy, e, i)
                    if s.length[e, i] == 0:
                        s.cause[e, i] = Cause.STARVATION


@kernel
def _hazard(s: SnakeState, r: RuleCodes) -> None:
    """Take health from snakes with the head on a hazard, once for each listing of the cell, unless there is food on it."""
    alive, cause, body, heads, food, hazard = s.alive, s.cause, s.body, s.head, s.food, s.hazard
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        for i in range(alive.shape[1]):
            cell = body[e, i, heads[e, i]]
            if not alive[e, i] or cause[e, i] != Cause.ALIVE or cell < 0 or hazard[e, cell] == 0 or food[e, cell] > 0:
                continue
            health = s.health[e, i] - r.hazard_damage * hazard[e, cell]
            s.health[e, i] = min(max(health, 0), r.max_health)
            if health <= 0:
                cause[e, i] = Cause.HAZARD


@kernel
def _eat(s: SnakeState, r: RuleCodes) -> None:
    """Let every head on food eat, or of several on one piece the one that took it in `_move`. Eating saves a starving snake."""
    alive, cause, body, heads, food, ate = s.alive, s.cause, s.body, s.head, s.food, s.ate
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        eaten = False
        for i in range(alive.shape[1]):
            if ate[e, i]:
                eaten = True
            if (
                not alive[e, i]
                or cause[e, i] != Cause.ALIVE
                or (r.contested_food == ContestedFood.LOWEST_INDEX and not ate[e, i])
            ):
                continue
            cell = body[e, i, heads[e, i]]
            if cell < 0 or food[e, cell] == 0:
                continue
            eaten = True
            ate[e, i] = True
            s.health[e, i] = r.max_health
            if r.growth != Growth.SAME_TURN:
                for _ in range(food[e, cell]):
                    double_tail(body, heads, s.length, s.occupancy, e, i)
        if eaten:
            for i in range(alive.shape[1]):
                if ate[e, i]:
                    cell = body[e, i, heads[e, i]]
                    s.food_count[e] -= food[e, cell]
                    food[e, cell] = 0


@kernel
def _leave_board(
    body: NDArray[np.int16], heads: NDArray[np.int32], length: NDArray[np.int32], occupancy: NDArray[np.uint8], e: int, i: int
) -> None:
    """Remove a body from the occupancy. The ring keeps it for the snake's last observation."""
    ring_mask = body.shape[2] - 1
    for k in range(length[e, i]):
        cell = body[e, i, (heads[e, i] - k) & ring_mask]
        if cell >= 0:
            occupancy[e, cell] -= 1


@kernel
def _collide(s: SnakeState, r: RuleCodes, e: int, i: int) -> None:
    """Judge the head of snake i after all moves: the first that applies of own body, another body, another head.

    The killer is the longest snake that it meets in this way; of several equally long nobody, or the one with the lowest index.
    """
    alive, cause, body, heads, length = s.alive, s.cause, s.body, s.head, s.length
    cell = body[e, i, heads[e, i]]
    if _in_body(body, heads, length, e, i, cell):
        cause[e, i] = Cause.SELF
        s.killer[e, i] = i
        return
    body_length, body_killer, head_length, head_killer = 0, -1, 0, -1
    for j in range(alive.shape[1]):
        if j == i or not alive[e, j] or (r.dying_block == DyingBlock.COLLIDED and s.just_died[e, j]):
            continue
        long = length[e, j]
        if _in_body(body, heads, length, e, j, cell):
            if long > body_length:
                body_length, body_killer = long, j
            elif long == body_length and r.tied_killer != TiedKiller.LOWEST_INDEX:
                body_killer = -1
        elif body[e, j, heads[e, j]] == cell and (r.head_to_head == HeadToHead.ALL_DIE or long >= length[e, i]):
            if long > head_length:
                head_length, head_killer = long, j
            elif long == head_length and r.tied_killer != TiedKiller.LOWEST_INDEX:
                head_killer = -1
    if body_length > 0:
        cause[e, i] = Cause.BODY
        s.killer[e, i] = body_killer
    elif head_length > 0:
        cause[e, i] = Cause.HEAD
        s.killer[e, i] = head_killer


@kernel
def _eliminate(s: SnakeState, r: RuleCodes) -> None:
    """Decide which snakes die: first without health, at the wall or by their move, then in collisions on the same board."""
    alive, cause, body, heads, length, occupancy = s.alive, s.cause, s.body, s.head, s.length, s.occupancy
    snakes = alive.shape[1]
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        for i in range(snakes):
            if not alive[e, i]:
                continue
            if cause[e, i] == Cause.ALIVE:
                if r.uses_health and s.health[e, i] <= 0:
                    cause[e, i] = Cause.STARVATION
                elif body[e, i, heads[e, i]] == OFF_BOARD:
                    cause[e, i] = Cause.WALL
            if cause[e, i] != Cause.ALIVE:
                s.just_died[e, i] = True
                if r.dying_block == DyingBlock.COLLIDED:
                    _leave_board(body, heads, length, occupancy, e, i)
        for i in range(snakes):
            if alive[e, i] and cause[e, i] == Cause.ALIVE and occupancy[e, body[e, i, heads[e, i]]] > 1:
                _collide(s, r, e, i)
        survivors = 0
        for i in range(snakes):
            if alive[e, i] and cause[e, i] == Cause.ALIVE:
                survivors += 1
        for i in range(snakes):
            if alive[e, i] and cause[e, i] != Cause.ALIVE:
                if not (s.just_died[e, i] and r.dying_block == DyingBlock.COLLIDED):
                    _leave_board(body, heads, length, occupancy, e, i)
                alive[e, i] = False
                s.just_died[e, i] = True
                s.died[e, i] = s.turn[e]
        for i in range(snakes):
            if s.just_died[e, i]:
                s.rank[e, i] = survivors + 1
                if r.tied_deaths == TiedDeaths.BY_LENGTH:
                    for j in range(snakes):
                        if s.just_died[e, j] and s.length_before[e, j] > s.length_before[e, i]:
                            s.rank[e, i] += 1


@kernel
def _rank_living(alive: NDArray[np.bool_], length: NDArray[np.int32], rank: NDArray[np.int16], e: int) -> None:
    """Rank the living snakes of a game by length; equally long ones share a rank."""
    for i in range(alive.shape[1]):
        if alive[e, i]:
            better = 0
            for j in range(alive.shape[1]):
                if alive[e, j] and length[e, j] > length[e, i]:
                    better += 1
            rank[e, i] = better + 1


@kernel
def rank_survivors(s: SnakeState, rows: NDArray[np.intp]) -> None:
    """Rank the living snakes of these games (B,) by length, as if the games ended now."""
    for e in rows:
        _rank_living(s.alive, s.length, s.rank, e)


@kernel
def _end(s: SnakeState, r: RuleCodes) -> None:
    """End the games that have too few snakes left or have reached `max_turns`."""
    for e in range(s.over.shape[0]):
        if s.over[e]:
            continue
        left = 0
        for i in range(s.alive.shape[1]):
            left += s.alive[e, i]
        enough = r.ends_with != EndsWith.NONE and (r.ends_with == EndsWith.ONE_ALWAYS or s.entrants[e] > 1)
        if left == 0 or (left == 1 and enough) or (r.max_turns > 0 and s.turn[e] >= r.max_turns):
            s.over[e] = True
            s.just_ended[e] = True
            _rank_living(s.alive, s.length, s.rank, e)


@kernel
def step_games(s: SnakeState, r: RuleCodes, actions: NDArray[np.int8]) -> None:
    """Play one turn of every game that is not over.

    Args:
        s: the games, changed in place.
        r: their rules.
        actions: (E, N) int8, absolute directions 0 to 3; any other number is an invalid move. Those of dead snakes are ignored.
    """
    _begin(s)
    _move(s, r, actions)
    if r.hunger != Hunger.NONE:
        _hunger(s, r)
    if r.uses_health:
        _hazard(s, r)
    _eat(s, r)
    _eliminate(s, r)
    if r.growth == Growth.EVERY_TURN:
        grow(s, r)
    if r.shrink_every > 0:
        shrink(s, r)
    spawn_food(s, r)
    _end(s, r)
