"""The rules of the game, slow and plain: a specification to read, and what `snake_pz` is tested against.

Lists of (x, y) and dataclasses, no arrays and no tricks. y = 0 is the top row; directions are 0 up, 1 right, 2 down, 3 left.
A turn is `play(game, actions)`, then new food, then `finish(game)`. Where food appears is random, so `take_food` only checks
that what appeared may appear, and takes it over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from snake_pz.rewards import RewardWeights
from snake_pz.rules import Rules

Cell = tuple[int, int]
DIRECTIONS: list[Cell] = [(0, -1), (1, 0), (0, 1), (-1, 0)]

NOBODY = -1
"""No killer, or several that are equally responsible."""


@dataclass
class Snake:
    body: list[Cell]  # head first; a dead snake keeps its last, the head of one that left the board lies outside
    heading: int  # the last executed direction
    health: int
    alive: bool = True
    cause: str = ""
    killer: int = NOBODY
    died: int = -1  # the turn
    rank: int = 0  # 1 + number of snakes placed better; 0: not known yet
    ate: bool = False  # on this turn
    just_died: bool = False  # on this turn


@dataclass
class Game:
    rules: Rules
    snakes: list[Snake]
    food: list[Cell] = field(default_factory=list)  # sorted; a cell may be listed more than once
    hazards: list[Cell] = field(default_factory=list)  # sorted; a cell may be listed more than once
    turn: int = 0
    entrants: int = 0  # snakes that started
    over: bool = False
    just_ended: bool = False  # on this turn

    @property
    def living(self) -> list[int]:
        return [number for number, snake in enumerate(self.snakes) if snake.alive]


def inside(rules: Rules, cell: Cell) -> bool:
    return 0 <= cell[0] < rules.width and 0 <= cell[1] < rules.height


def beside(rules: Rules, cell: Cell, direction: int) -> Cell:
    """The next cell in a direction, which lies outside if the board has walls and ends here."""
    x, y = cell[0] + DIRECTIONS[direction][0], cell[1] + DIRECTIONS[direction][1]
    return (x % rules.width, y % rules.height) if rules.edge == "wrap" else (x, y)


# ------------------------------------------------------------------------------------------------------------- the turn


def play(game: Game, actions: list[int]) -> None:
    """One turn, up to and including the eliminations. A game that is over only forgets the events of its last turn."""
    game.just_ended = False
    for snake in game.snakes:
        snake.ate = snake.just_died = False
    if game.over:
        return
    game.turn += 1
    _move(game, actions)
    _hunger(game)
    _hazard(game)
    _eat(game)
    _eliminate(game)


def _move(game: Game, actions: list[int]) -> None:
    """Each head goes one cell on. The tail leaves, unless it grows on the very turn of eating."""
    rules = game.rules
    for number in game.living:
        snake, direction = game.snakes[number], actions[number]
        if direction == (snake.heading + 2) % 4 and rules.reverse == "straight":
            direction = snake.heading
        if direction == (snake.heading + 2) % 4 and rules.reverse == "dies":
            snake.cause = "reverse"  # removed before it moves
            continue
        snake.heading = direction
        head = beside(rules, snake.body[0], direction)
        stays = rules.growth == "same_turn" and head in game.food
        snake.body = [head, *(snake.body if stays else snake.body[:-1])]


def _hunger(game: Game) -> None:
    """Each snake loses a unit of health."""
    if game.rules.hunger == "health":
        for number in game.living:
            game.snakes[number].health -= 1


def _hazard(game: Game) -> None:
    """Each listing of the head's cell costs health (or heals), none if food lies there. At 0 that is the cause."""
    rules = game.rules
    for number in game.living:
        snake = game.snakes[number]
        listings = game.hazards.count(snake.body[0])
        if snake.cause == "" and rules.hazard_damage != 0 and listings > 0 and snake.body[0] not in game.food:
            snake.health = min(max(snake.health - rules.hazard_damage * listings, 0), rules.max_health)
            if snake.health == 0:
                snake.cause = "hazard"


def _eat(game: Game) -> None:
    """Each head on food eats: full health, which saves a starving snake; late growth doubles its tail for each piece."""
    eaters = [game.snakes[number] for number in game.living if game.snakes[number].body[0] in game.food]
    eaters = [snake for snake in eaters if snake.cause == ""]
    for snake in eaters:
        snake.ate = True
        snake.health = game.rules.max_health
        if game.rules.growth == "next_turn":
            snake.body += [snake.body[-1]] * game.food.count(snake.body[0])
    game.food = [cell for cell in game.food if all(cell != snake.body[0] for snake in eaters)]


def _eliminate(game: Game) -> None:
    """Who is out of health, over the edge or has reversed is out first; then all collisions are judged on the same board."""
    rules = game.rules
    living = game.living
    for number in living:
        snake = game.snakes[number]
        if snake.cause == "" and snake.health <= 0 and (rules.hunger == "health" or rules.hazard_damage != 0):
            snake.cause = "starvation"
        if snake.cause == "" and not inside(rules, snake.body[0]):
            snake.cause = "wall"
    judged = [number for number in living if game.snakes[number].cause == ""]
    blocking = living if rules.dying_block == "all" else judged
    verdicts = {number: _collision(game, number, blocking) for number in judged}
    for number, (cause, killer) in verdicts.items():
        game.snakes[number].cause, game.snakes[number].killer = cause, killer
    dying = [number for number in living if game.snakes[number].cause != ""]
    for number in dying:
        snake = game.snakes[number]
        snake.alive, snake.just_died, snake.died = False, True, game.turn
        snake.rank = 1 + len(living) - len(dying)


def _collision(game: Game, number: int, blocking: list[int]) -> tuple[str, int]:
    """The first that holds of own body, another's body, another's head; and who is responsible."""
    snake, head = game.snakes[number], game.snakes[number].body[0]
    if head in snake.body[1:]:
        return "self", number
    others = [other for other in blocking if other != number]
    bodies = [other for other in others if head in game.snakes[other].body[1:]]
    if bodies:
        return "body", _longest(game, bodies)
    heads = [other for other in others if head == game.snakes[other].body[0]]
    if game.rules.head_to_head == "longest_survives":
        heads = [other for other in heads if len(game.snakes[other].body) >= len(snake.body)]
    return ("head", _longest(game, heads)) if heads else ("", NOBODY)


def _longest(game: Game, numbers: list[int]) -> int:
    """The longest of these snakes; nobody if several are, for no snake's number may matter."""
    longest = max(len(game.snakes[number].body) for number in numbers)
    found = [number for number in numbers if len(game.snakes[number].body) == longest]
    return found[0] if len(found) == 1 else NOBODY


def take_food(game: Game, after: list[Cell]) -> None:
    """Check that this may be the food on the board after a turn, and take it over."""
    assert not Counter(game.food) - Counter(after), "food vanished"
    new = list((Counter(after) - Counter(game.food)).elements())
    if game.over:
        assert not new, "food in a game that is over"
        return
    covered = {cell for number in game.living for cell in game.snakes[number].body}
    board = {(x, y) for x in range(game.rules.width) for y in range(game.rules.height)}
    free = board - covered - set(game.food)
    assert len(new) == len(set(new)), "two new pieces on one cell"
    assert set(new) <= free, "new food on a cell that is not free"
    missing = game.rules.food_minimum - len(game.food)
    if missing > 0:
        assert len(new) == min(missing, len(free)), "the minimum is not kept"
    elif game.rules.food_chance == 1:
        assert len(new) == min(1, len(free)), "certain food did not come"
    else:
        assert len(new) <= (game.rules.food_chance > 0), "food that nobody asked for"
    game.food = sorted(after)


def finish(game: Game) -> None:
    """End the game if one snake is left, none if it started alone, or the last turn is played; place who lives by length."""
    if game.over:
        return
    enough = 0 if game.entrants == 1 else 1
    if len(game.living) <= enough or game.turn >= (game.rules.max_turns or float("inf")):
        game.over = game.just_ended = True
        settle(game)


def settle(game: Game) -> None:
    """Place who lives by length, equal ones together."""
    lengths = [len(game.snakes[number].body) for number in game.living]
    for number in game.living:
        game.snakes[number].rank = 1 + sum(length > len(game.snakes[number].body) for length in lengths)


# -------------------------------------------------------------------------------------------------------------- rewards


def rewards(game: Game, weights: RewardWeights) -> list[float]:
    """What the turn just played pays each snake."""
    paid = []
    for number, snake in enumerate(game.snakes):
        began_alive = snake.just_died or (snake.alive and (game.just_ended or not game.over))
        placed = snake.just_died or (snake.alive and game.just_ended)
        kills = [other for other in game.snakes if other.just_died and other.killer == number and other is not snake]
        reward = weights.step * began_alive + weights.food * snake.ate + weights.death * snake.just_died
        reward += weights.kill * len(kills)
        if placed and game.entrants > 1:
            tied = sum(other.rank == snake.rank for other in game.snakes)
            shared_places = range(snake.rank, snake.rank + tied)
            worth = [1 - 2 * (place - 1) / (game.entrants - 1) for place in shared_places]  # 1 for the first, -1 for the last
            reward += weights.rank * sum(worth) / tied
            if game.just_ended and snake.rank == 1:
                reward += weights.win / tied
        paid.append(reward)
    return paid


# ---------------------------------------------------------------------------------------------------------------- masks


def action_mask(game: Game, number: int, relative: bool) -> list[int]:
    """1 where the move does not surely kill, as far as the board before the turn tells; all ones if every one does."""
    snake = game.snakes[number]
    directions = [(snake.heading + turn) % 4 for turn in (-1, 0, 1)] if relative else [0, 1, 2, 3]
    if not snake.alive or game.over:
        return [1] * len(directions)
    mask = [int(_may_live(game, snake, direction)) for direction in directions]
    return mask if any(mask) else [1] * len(directions)


def _may_live(game: Game, snake: Snake, direction: int) -> bool:
    rules = game.rules
    if direction == (snake.heading + 2) % 4:
        if rules.reverse == "dies":
            return False
        if rules.reverse == "straight":
            direction = snake.heading
    cell = beside(rules, snake.body[0], direction)
    if not inside(rules, cell):
        return False
    if any(cell in game.snakes[number].body[:-1] for number in game.living):  # tails leave
        return False
    mortal = rules.hunger == "health" or rules.hazard_damage != 0
    health = snake.health - (rules.hunger == "health") - rules.hazard_damage * game.hazards.count(cell)
    return cell in game.food or not mortal or health > 0


# --------------------------------------------------------------------------------------------------------- observations
# Planes are lists of rows. A snake sees the living and itself, also at the moment of its death.

TTL_STEP, LONGER, SHORTER, WALL = 10, 255, 128, 255


def board_view(game: Game, number: int) -> list[list[list[int]]]:
    """`board`: own body, own head, other bodies, other heads, food, walls and hazards, health; at least 7 cells a side."""
    width, height = max(game.rules.width, 7), max(game.rules.height, 7)
    cells = [[(x, y) for x in range(width)] for y in range(height)]
    return [[[_level(game, number, plane, cell) for cell in row] for row in cells] for plane in range(7)]


def egocentric_view(game: Game, number: int) -> list[list[list[int]]]:
    """`egocentric`: the planes of `board` without the own head, seen from the head, which is in the centre and heads up."""
    rules, snake = game.rules, game.snakes[number]
    (x, y), (forward_x, forward_y) = snake.body[0], DIRECTIONS[snake.heading]
    right_x, right_y = DIRECTIONS[(snake.heading + 1) % 4]
    reach = max(rules.width, rules.height, 4) - 1  # 7 cells a side at least
    cells = []
    for ahead in range(reach, -reach - 1, -1):
        row = []
        for aside in range(-reach, reach + 1):
            cell = (x + ahead * forward_x + aside * right_x, y + ahead * forward_y + aside * right_y)
            row.append((cell[0] % rules.width, cell[1] % rules.height) if rules.edge == "wrap" else cell)
        cells.append(row)
    return [[[_level(game, number, plane, cell) for cell in row] for row in cells] for plane in (0, 2, 3, 4, 5, 6)]


def _level(game: Game, number: int, plane: int, cell: Cell) -> int:
    """What a plane of `board` shows of a cell, which may lie outside."""
    rules, snake = game.rules, game.snakes[number]
    others = [game.snakes[other] for other in game.living if other != number]
    if plane == 6:
        return 255 * max(snake.health, 0) // rules.max_health
    if not inside(rules, cell):
        return WALL if plane == 5 else 0
    if plane == 0:
        return _time_to_live([snake], cell)
    if plane == 1:
        return 255 if cell == snake.body[0] else 0
    if plane == 2:
        return _time_to_live(others, cell)
    if plane == 3:
        lengths = [len(other.body) for other in others if other.body[0] == cell]
        return 0 if not lengths else LONGER if max(lengths) >= len(snake.body) else SHORTER
    if plane == 4:
        return 255 if cell in game.food else 0
    return min(64 * game.hazards.count(cell), 192) if rules.hazard_damage != 0 else 0


def _time_to_live(snakes: list[Snake], cell: Cell) -> int:
    """For each turn until the last segment here has left, if nobody eats: the tail leaves on the next turn."""
    turns = [len(snake.body) - k for snake in snakes for k, segment in enumerate(snake.body) if segment == cell]
    return min(TTL_STEP * max(turns, default=0), 255)


def single_view(game: Game, number: int) -> list[list[list[int]]]:
    """`single`: grey levels."""
    rules = game.rules
    return [[[_grey(game, number, (x, y)) for x in range(rules.width)] for y in range(rules.height)]]


def _grey(game: Game, number: int, cell: Cell) -> int:
    snake = game.snakes[number]
    others = [game.snakes[other] for other in game.living if other != number]
    if cell == snake.body[0]:
        return 255
    if cell in snake.body:
        return 210
    heads = [len(other.body) for other in others if other.body[0] == cell]
    if heads:
        return 170 if max(heads) >= len(snake.body) else 130
    if any(cell in other.body for other in others):
        return 90
    if cell in game.food:
        return 50
    return 20 if cell in game.hazards and game.rules.hazard_damage != 0 else 0


VIEWS = {"board": board_view, "egocentric": egocentric_view, "single": single_view}
