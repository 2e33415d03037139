"""One turn of the game: numba kernels on `SnakeState`, pure rules, nothing else.

A turn is a row of stages, judged for all snakes together: move, hunger, hazard, eat, eliminate; then food appears. Every
random number is a function of (game seed, turn, draw), so a game is its rules, its seed and its actions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from snake_pz.rules import DyingBlock, Edge, Growth, HeadToHead, Hunger, Reverse, Rules
from snake_pz.state import ALIVE, BODY, HAZARD, HEAD, OFF_BOARD, REVERSE, SELF, STARVATION, WALL

# Codes of the rules with named values: the place of the value in its Literal in rules.py.
SAME_TURN = get_args(Growth).index("same_turn")
ALL_DIE = get_args(HeadToHead).index("all_die")
STRAIGHT, DIES = get_args(Reverse).index("straight"), get_args(Reverse).index("dies")
HEALTH = get_args(Hunger).index("health")
COLLIDED = get_args(DyingBlock).index("collided")
WRAP = get_args(Edge).index("wrap")

UP, RIGHT, DOWN, LEFT = range(4)


class RuleCodes(NamedTuple):
    """`Rules` as numbers and tables for the kernels."""

    neighbours: NDArray[np.int16]  # (K, 4) the cell a step up, right, down, left; OFF_BOARD outside
    ring_cells: NDArray[np.int16]  # (sum of ring lengths,) the start rings, see Rules.rings
    spot_ring: NDArray[np.int16]  # (N, 2) per start spot: first index and length of its ring in ring_cells
    spot_place: NDArray[np.int16]  # (N,) how many cells along its ring
    width: int
    height: int
    wrap: int
    growth: int
    head_to_head: int
    reverse: int
    dying_block: int
    hunger: int
    max_health: int
    hazard_damage: int
    start_length: int
    food_initial: int
    food_minimum: int
    food_chance: float
    max_turns: int  # 0: none


@lru_cache(maxsize=64)
def rule_codes(rules: Rules) -> RuleCodes:
    """The numbers and tables of these rules. Shared between engines: do not write into them."""
    cells, spots, places = _start_spots(rules)
    return RuleCodes(
        neighbours=_neighbours(rules),
        ring_cells=cells,
        spot_ring=spots,
        spot_place=places,
        width=rules.width,
        height=rules.height,
        wrap=int(rules.edge == "wrap"),
        growth=get_args(Growth).index(rules.growth),
        head_to_head=get_args(HeadToHead).index(rules.head_to_head),
        reverse=get_args(Reverse).index(rules.reverse),
        dying_block=get_args(DyingBlock).index(rules.dying_block),
        hunger=get_args(Hunger).index(rules.hunger),
        max_health=rules.max_health,
        hazard_damage=rules.hazard_damage,
        start_length=rules.start_length,
        food_initial=rules.food_initial,
        food_minimum=rules.food_minimum,
        food_chance=float(rules.food_chance),
        max_turns=rules.max_turns or 0,
    )


def _neighbours(rules: Rules) -> NDArray[np.int16]:
    y, x = np.divmod(np.arange(rules.num_cells), rules.width)
    table = np.empty((rules.num_cells, 4), np.int16)
    for direction, (dx, dy) in enumerate(((0, -1), (1, 0), (0, 1), (-1, 0))):
        to_x, to_y = x + dx, y + dy
        cell = to_y % rules.height * rules.width + to_x % rules.width
        inside = (to_x == to_x % rules.width) & (to_y == to_y % rules.height)
        table[:, direction] = cell if rules.edge == "wrap" else np.where(inside, cell, OFF_BOARD)
    return table


def _start_spots(rules: Rules) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int16]]:
    """Where snakes start: equally spaced on one ring near the third line if it has the room, else on as many as it takes."""
    rings = rules.rings()
    room = [len(ring) // (rules.start_length + 1) for ring in rings]
    single = [k for k in (2, 1, 0) if k < len(rings) and room[k] >= rules.num_snakes]
    counts = [0] * len(rings)
    if single:
        counts[single[0]] = rules.num_snakes
    else:
        for k in range(len(rings)):
            counts[k] = min(room[k], rules.num_snakes - sum(counts))
    starts = np.cumsum([0] + [len(ring) for ring in rings])
    spots = [(starts[k], len(rings[k])) for k, count in enumerate(counts) for _ in range(count)]
    places = [j * len(ring) // count for ring, count in zip(rings, counts, strict=True) for j in range(count)]
    cells = np.array([cell for ring in rings for cell in ring], np.int16)
    return cells, np.array(spots, np.int16).reshape(-1, 2), np.array(places, np.int16)


# ---------------------------------------------------------------------------------------------------------- randomness


@njit(cache=True, nogil=True)
def mix(x: Any) -> Any:
    """A bijection of 64-bit numbers whose output bits all depend on all input bits.

    The finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def turn_key(seed: Any, turn: Any) -> Any:
    """The key of all draws of one turn of one game."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    return mix(mix(np.uint64(seed) + golden) ^ mix((np.uint64(turn) + np.uint64(1)) * golden))


@njit(cache=True, nogil=True)
def draw(key: Any, index: Any) -> Any:
    """The index-th 64-bit number of a key."""
    return mix(np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(index) + np.uint64(1)))


@njit(cache=True, nogil=True)
def below(bits: Any, bound: Any) -> Any:
    """A number in 0..bound-1 from 64 random bits; its bias is under bound / 2**32."""
    return np.int64(((np.uint64(bits) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def unit(bits: Any) -> Any:
    """A number in [0, 1) from 64 random bits, 53 of them used."""
    return np.float64(np.uint64(bits) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


# -------------------------------------------------------------------------------------------------------------- stages
# Each stage runs over all games that are not over. Helpers take the arrays they need: handing on the whole tuple costs numba
# more than the work itself.


@njit(cache=True, nogil=True)
def _move(s: Any, r: Any, actions: Any) -> None:
    """Every living snake's head goes one cell on; its tail leaves unless it grows on this very turn."""
    alive, heading, cause, body, heads, length, occupancy, food = (
        s.alive, s.heading, s.cause, s.body, s.head, s.length, s.occupancy, s.food
    )  # fmt: skip
    ring_mask = body.shape[2] - 1
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        for i in range(alive.shape[1]):
            if not alive[e, i]:
                continue
            direction = np.int64(actions[e, i]) & 3
            if direction == (heading[e, i] + 2) & 3:
                if r.reverse == STRAIGHT:
                    direction = np.int64(heading[e, i])
                elif r.reverse == DIES:
                    cause[e, i] = REVERSE
                    continue
            head = heads[e, i]
            cell = r.neighbours[body[e, i, head], direction]
            if r.growth == SAME_TURN and cell >= 0 and food[e, cell] > 0 and length[e, i] < ring_mask:
                length[e, i] += 1
            else:
                occupancy[e, body[e, i, (head - length[e, i] + 1) & ring_mask]] -= 1
            head = (head + 1) & ring_mask
            heads[e, i] = head
            body[e, i, head] = cell
            heading[e, i] = direction
            if cell >= 0:
                occupancy[e, cell] += 1


@njit(cache=True, nogil=True)
def _hunger(s: Any, r: Any) -> None:
    """Every living snake loses a unit of health."""
    if r.hunger != HEALTH:
        return
    for e in range(s.alive.shape[0]):
        if not s.over[e]:
            for i in range(s.alive.shape[1]):
                if s.alive[e, i]:
                    s.health[e, i] -= 1


@njit(cache=True, nogil=True)
def _hazard(s: Any, r: Any) -> None:
    """A head on a hazard costs health, once for each listing of the cell; food there protects."""
    if r.hazard_damage == 0:
        return
    for e in range(s.alive.shape[0]):
        for i in range(s.alive.shape[1]):
            cell = s.body[e, i, s.head[e, i]]
            if s.over[e] or not s.alive[e, i] or s.cause[e, i] == REVERSE or cell < 0:
                continue
            if s.hazard[e, cell] == 0 or s.food[e, cell] > 0:
                continue
            health = s.health[e, i] - r.hazard_damage * s.hazard[e, cell]
            s.health[e, i] = min(max(health, 0), r.max_health)
            if health <= 0:
                s.cause[e, i] = HAZARD


@njit(cache=True, nogil=True)
def _eat(s: Any, r: Any) -> None:
    """Every head on food eats, several heads on one piece all do; a starving snake is saved by it."""
    alive, cause, body, heads, length, food, ate = s.alive, s.cause, s.body, s.head, s.length, s.food, s.ate
    ring_mask = body.shape[2] - 1
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        eaten = False
        for i in range(alive.shape[1]):
            if not alive[e, i] or cause[e, i] != ALIVE:
                continue
            head = heads[e, i]
            cell = body[e, i, head]
            if cell < 0 or food[e, cell] == 0:
                continue
            eaten = True
            ate[e, i] = True
            s.health[e, i] = r.max_health
            if r.growth != SAME_TURN:
                for _ in range(food[e, cell]):
                    if length[e, i] < ring_mask:
                        tail = body[e, i, (head - length[e, i] + 1) & ring_mask]
                        body[e, i, (head - length[e, i]) & ring_mask] = tail
                        length[e, i] += 1
                        s.occupancy[e, tail] += 1
        if eaten:
            for i in range(alive.shape[1]):
                if ate[e, i]:
                    cell = body[e, i, heads[e, i]]
                    s.food_count[e] -= food[e, cell]
                    food[e, cell] = 0


@njit(cache=True, nogil=True)
def _leave_board(body: Any, heads: Any, length: Any, occupancy: Any, e: Any, i: Any) -> None:
    """Take a body off the occupancy; the ring keeps it for the snake's last view."""
    ring_mask = body.shape[2] - 1
    for k in range(length[e, i]):
        cell = body[e, i, (heads[e, i] - k) & ring_mask]
        if cell >= 0:
            occupancy[e, cell] -= 1


@njit(cache=True, nogil=True)
def _in_body(body: Any, heads: Any, length: Any, e: Any, i: Any, cell: Any) -> Any:
    """Whether a segment of snake i other than its head lies on the cell."""
    ring_mask = body.shape[2] - 1
    for k in range(1, length[e, i]):
        if body[e, i, (heads[e, i] - k) & ring_mask] == cell:
            return True
    return False


@njit(cache=True, nogil=True)
def _removed_first(cause: Any) -> Any:
    """Whether a snake dies of something that is judged before collisions."""
    return cause == WALL or cause == STARVATION or cause == HAZARD or cause == REVERSE


@njit(cache=True, nogil=True)
def _collide(s: Any, r: Any, e: Any, i: Any) -> None:
    """Judge the head of snake i on the moved board: the first that holds of own body, another's body, another's head.

    Responsible is the longest snake it meets so; nobody where several are equally long, for no snake's number may matter.
    """
    alive, cause, body, heads, length = s.alive, s.cause, s.body, s.head, s.length
    cell = body[e, i, heads[e, i]]
    if _in_body(body, heads, length, e, i, cell):
        cause[e, i] = SELF
        s.killer[e, i] = i
        return
    body_length, body_killer, head_length, head_killer = 0, -1, 0, -1
    for j in range(alive.shape[1]):
        if j == i or not alive[e, j] or (r.dying_block == COLLIDED and _removed_first(cause[e, j])):
            continue
        long = length[e, j]
        if _in_body(body, heads, length, e, j, cell):
            body_killer = -1 if long == body_length else (j if long > body_length else body_killer)
            body_length = max(long, body_length)
        elif body[e, j, heads[e, j]] == cell and (r.head_to_head == ALL_DIE or long >= length[e, i]):
            head_killer = -1 if long == head_length else (j if long > head_length else head_killer)
            head_length = max(long, head_length)
    if body_length > 0:
        cause[e, i] = BODY
        s.killer[e, i] = body_killer
    elif head_length > 0:
        cause[e, i] = HEAD
        s.killer[e, i] = head_killer


@njit(cache=True, nogil=True)
def _eliminate(s: Any, r: Any) -> None:
    """Judge who dies: first of health, at the wall or by reversing, then of collisions; all on the same moved board."""
    alive, cause, body, heads, length, occupancy = s.alive, s.cause, s.body, s.head, s.length, s.occupancy
    snakes = alive.shape[1]
    starves = r.hunger == HEALTH or r.hazard_damage != 0
    for e in range(alive.shape[0]):
        if s.over[e]:
            continue
        for i in range(snakes):
            if not alive[e, i]:
                continue
            if cause[e, i] == ALIVE:
                if starves and s.health[e, i] <= 0:
                    cause[e, i] = STARVATION
                elif body[e, i, heads[e, i]] == OFF_BOARD:
                    cause[e, i] = WALL
            if cause[e, i] != ALIVE and r.dying_block == COLLIDED:
                _leave_board(body, heads, length, occupancy, e, i)
        for i in range(snakes):
            if alive[e, i] and cause[e, i] == ALIVE and occupancy[e, body[e, i, heads[e, i]]] > 1:
                _collide(s, r, e, i)
        survivors = 0
        for i in range(snakes):
            if alive[e, i] and cause[e, i] == ALIVE:
                survivors += 1
        for i in range(snakes):
            if alive[e, i] and cause[e, i] != ALIVE:
                if not (_removed_first(cause[e, i]) and r.dying_block == COLLIDED):
                    _leave_board(body, heads, length, occupancy, e, i)
                alive[e, i] = False
                s.just_died[e, i] = True
                s.died[e, i] = s.turn[e]
                s.rank[e, i] = survivors + 1


@njit(cache=True, nogil=True)
def _place_food(food: Any, occupancy: Any, food_count: Any, e: Any, key: Any, index: Any) -> Any:
    """Put one piece on a free cell, each equally likely: a few tries, then the free cells counted. False if there is none."""
    cells = food.shape[1]
    chosen = -1
    for attempt in range(8):
        cell = below(draw(key, index * 16 + attempt), cells)
        if occupancy[e, cell] == 0 and food[e, cell] == 0:
            chosen = cell
            break
    if chosen < 0:
        free = 0
        for cell in range(cells):
            if occupancy[e, cell] == 0 and food[e, cell] == 0:
                free += 1
        if free == 0:
            return False
        skip = below(draw(key, index * 16 + 8), free)
        for cell in range(cells):
            if occupancy[e, cell] == 0 and food[e, cell] == 0:
                if skip == 0:
                    chosen = cell
                    break
                skip -= 1
    food[e, chosen] = 1
    food_count[e] += 1
    return True


@njit(cache=True, nogil=True)
def _spawn_food(s: Any, r: Any) -> None:
    """Fill up to the minimum; on a turn that needed nothing one more may appear by chance."""
    for e in range(s.over.shape[0]):
        missing = r.food_minimum - s.food_count[e]
        if s.over[e] or (missing <= 0 and r.food_chance == 0.0):
            continue
        key = turn_key(s.seed[e], s.turn[e])
        if missing <= 0 and unit(draw(key, -1)) < r.food_chance:
            missing = 1
        for index in range(missing):
            if not _place_food(s.food, s.occupancy, s.food_count, e, key, index):
                break


@njit(cache=True, nogil=True)
def _rank_living(alive: Any, length: Any, rank: Any, e: Any) -> None:
    """Place who lives in a game by length, equal ones together."""
    for i in range(alive.shape[1]):
        if alive[e, i]:
            better = 0
            for j in range(alive.shape[1]):
                if alive[e, j] and length[e, j] > length[e, i]:
                    better += 1
            rank[e, i] = better + 1


# --------------------------------------------------------------------------------------------------------- whole games


@njit(cache=True, nogil=True)
def _begin(s: Any) -> None:
    """Forget the events of the last turn; count this one."""
    for e in range(s.over.shape[0]):
        for i in range(s.alive.shape[1]):
            s.ate[e, i] = False
            s.just_died[e, i] = False
        s.just_ended[e] = False
        if not s.over[e]:
            s.turn[e] += 1


@njit(cache=True, nogil=True)
def _end(s: Any, r: Any) -> None:
    """End the games that are decided: one snake left, none if one started alone, or the last turn played."""
    for e in range(s.over.shape[0]):
        last = np.int64(0)
        if s.over[e]:
            continue
        for i in range(s.alive.shape[1]):
            last += s.alive[e, i]
        if last == 0 or (last == 1 and s.entrants[e] > 1) or (r.max_turns > 0 and s.turn[e] >= r.max_turns):
            s.over[e] = True
            s.just_ended[e] = True
            _rank_living(s.alive, s.length, s.rank, e)


@njit(cache=True, nogil=True)
def step_games(s: Any, r: Any, actions: Any) -> None:
    """Play one turn of every game that is not over.

    Args:
        s: SnakeState, changed in place.
        r: RuleCodes.
        actions: (E, N) integers, absolute directions 0 to 3; those of dead snakes are ignored.
    """
    _begin(s)
    _move(s, r, actions)
    _hunger(s, r)
    _hazard(s, r)
    _eat(s, r)
    _eliminate(s, r)
    _spawn_food(s, r)
    _end(s, r)


@njit(cache=True, nogil=True)
def settle_ranks(s: Any, rows: Any) -> None:
    """Place the living of these games (B,) by length, as if they ended now."""
    for e in rows:
        _rank_living(s.alive, s.length, s.rank, e)


@njit(cache=True, nogil=True)
def reset_games(s: Any, r: Any, rows: Any, seeds: Any) -> Any:
    """Start these games anew.

    Args:
        s: SnakeState, changed in place.
        r: RuleCodes.
        rows: (B,) games.
        seeds: (B,) uint64, or of length 0: each game's seed follows from its last one.
    """
    snakes, ring_mask = s.alive.shape[1], s.body.shape[2] - 1
    for b in range(rows.shape[0]):
        e = rows[b]
        s.seed[e] = seeds[b] if seeds.shape[0] > 0 else draw(s.seed[e], -2)
        s.occupancy[e] = 0
        s.food[e] = 0
        s.hazard[e] = 0
        s.food_count[e] = 0
        s.turn[e] = 0
        s.entrants[e] = snakes
        s.over[e] = False
        s.just_ended[e] = False
        key = turn_key(s.seed[e], np.int64(-1))
        clockwise = draw(key, 0) & np.uint64(1) == 0
        shift = unit(draw(key, 1))
        for i in range(snakes):
            s.rank[e, i] = i  # a shuffled list of spots for a moment
        for i in range(snakes - 1, 0, -1):
            j = below(draw(key, 2 + i), i + 1)
            s.rank[e, i], s.rank[e, j] = s.rank[e, j], s.rank[e, i]
        for i in range(snakes):
            spot = s.rank[e, i]
            first, size = np.int64(r.spot_ring[spot, 0]), np.int64(r.spot_ring[spot, 1])
            at = np.int64(shift * size) + np.int64(r.spot_place[spot])
            # Segment k lies k places behind the head, seen in the direction of travel.
            for k in range(r.start_length):
                place = (at - k) % size
                cell = r.ring_cells[first + (place if clockwise else size - 1 - place)]
                s.body[e, i, r.start_length - 1 - k] = cell
                s.occupancy[e, cell] += 1
            s.head[e, i] = (r.start_length - 1) & ring_mask
            s.length[e, i] = r.start_length
            place = (at - 1) % size
            s.heading[e, i] = UP
            behind = r.ring_cells[first + (place if clockwise else size - 1 - place)]
            for direction in range(4):
                if r.neighbours[behind, direction] == s.body[e, i, s.head[e, i]]:
                    s.heading[e, i] = direction
            s.health[e, i] = r.max_health
            s.alive[e, i] = True
            s.cause[e, i] = ALIVE
            s.killer[e, i] = -1
            s.died[e, i] = -1
            s.rank[e, i] = 0
            s.ate[e, i] = False
            s.just_died[e, i] = False
        for index in range(r.food_initial):
            if not _place_food(s.food, s.occupancy, s.food_count, e, turn_key(s.seed[e], 0), index):
                break


@njit(cache=True, nogil=True)
def write_masks(s: Any, r: Any, relative: Any, rows: Any, out: Any) -> Any:
    """Which moves do not surely kill: into the wall, into a segment that cannot leave, out of health, a reversal that dies.

    A move is judged as it would be executed: a reversal that goes straight counts as straight. All ones if every move dies
    or the snake is out.

    Args:
        s: SnakeState, only read.
        r: RuleCodes.
        relative: whether the actions are left, straight, right rather than up, right, down, left.
        rows: (B,) games.
        out: (E, N, A) int8, written for these games.
    """
    ring_mask = s.body.shape[2] - 1
    for e in rows:
        for i in range(s.alive.shape[1]):
            some = False
            for action in range(out.shape[2]):
                out[e, i, action] = 1
                if not s.alive[e, i] or s.over[e]:
                    continue
                heading = np.int64(s.heading[e, i])
                direction = (heading + action - 1) % 4 if relative else action
                if direction == (heading + 2) % 4:
                    if r.reverse == STRAIGHT:
                        direction = heading
                    elif r.reverse == DIES:
                        out[e, i, action] = 0
                        continue
                cell = r.neighbours[s.body[e, i, s.head[e, i]], direction]
                if cell < 0:
                    out[e, i, action] = 0
                    continue
                leaving = 0
                if s.occupancy[e, cell] > 0:
                    for j in range(s.alive.shape[1]):
                        if s.alive[e, j] and s.body[e, j, (s.head[e, j] - s.length[e, j] + 1) & ring_mask] == cell:
                            leaving += 1
                food = s.food[e, cell] > 0
                health = s.health[e, i] - (1 if r.hunger == HEALTH else 0) - r.hazard_damage * s.hazard[e, cell]
                starves = health <= 0 and not food and (r.hunger == HEALTH or r.hazard_damage != 0)
                if s.occupancy[e, cell] > leaving or starves:
                    out[e, i, action] = 0
                    continue
                some = True
            if not some:
                for action in range(out.shape[2]):
                    out[e, i, action] = 1
