"""The rules of the game, slow and plain: a specification to read, and what `snake_pz` is tested against.

Lists of (x, y) and dataclasses, no arrays and no tricks. y = 0 is the top row; directions are 0 up, 1 right, 2 down, 3 left.
A turn is `play(game, actions)`, then new hazards and food, then `finish(game)`. Where these appear is random, so `take_hazards`
and `take_food` only check that what appeared may appear, and take it over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from snake_pz.reward_weights import RewardWeights
from snake_pz.rules import Rules

Cell = tuple[int, int]
DIRECTIONS: list[Cell] = [(0, -1), (1, 0), (0, 1), (-1, 0)]

NOBODY = -1
"""No killer, or several that are equally responsible."""

NO_HEADING = -1
"""The heading of a curled up snake that has not moved yet."""


@dataclass
class Snake:
    body: list[Cell]  # head first; a dead snake keeps its last, the head of one that left the board lies outside
    head: Cell  # body[0]; where it was, of one that hunger left no segment
    heading: int  # the last executed direction, or NO_HEADING
    health: int
    length_before: int = 0  # segments before this turn
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


def mortal(rules: Rules) -> bool:
    """Whether health can run out."""
    return rules.hunger == "health" or rules.hazard_damage != 0


def inside(rules: Rules, cell: Cell) -> bool:
    return 0 <= cell[0] < rules.width and 0 <= cell[1] < rules.height


def ahead(cell: Cell, direction: int) -> Cell:
    return cell[0] + DIRECTIONS[direction][0], cell[1] + DIRECTIONS[direction][1]


def beside(rules: Rules, cell: Cell, direction: int) -> Cell:
    """The next cell in a direction, which lies outside if the board has walls and ends here."""
    x, y = ahead(cell, direction)
    return (x % rules.width, y % rules.height) if rules.edge == "wrap" else (x, y)


# ------------------------------------------------------------------------------------------------------------- the turn


def play(game: Game, actions: list[int]) -> None:
    """One turn, up to and including the growth after it. A game that is over only forgets the events of its last turn."""
    game.just_ended = False
    for snake in game.snakes:
        snake.ate = snake.just_died = False
        snake.length_before = len(snake.body)
    if game.over:
        return
    game.turn += 1
    meals = _move(game, actions)
    _hunger(game)
    _hazard(game)
    _eat(game, meals)
    _eliminate(game)
    _grow_after(game)


def executed(rules: Rules, snake: Snake, action: int) -> int | str:
    """The direction of a move as it is executed, or the cause of death of one that is removed for it."""
    if action not in (0, 1, 2, 3):
        if rules.invalid_move == "dies":
            return "invalid"
        action = straight_on(rules, snake)
    if snake.heading == NO_HEADING or action != (snake.heading + 2) % 4 or rules.reverse == "is_a_move":
        return action
    return snake.heading if rules.reverse == "straight" else "reverse"


def straight_on(rules: Rules, snake: Snake) -> int:
    """From the second segment through the head, if that is one step, rather not across a seam; else up."""
    if len(snake.body) < 2:
        return 0
    head, neck = snake.body[:2]
    steps = [direction for direction in range(4) if beside(rules, neck, direction) == head]
    direct = [direction for direction in steps if ahead(neck, direction) == head]
    return (direct + steps + [0])[0]


def _move(game: Game, actions: list[int]) -> list[int]:
    """Each head goes one cell on. The tail leaves, unless it grows on the very turn of eating. Returns who is on food."""
    rules, meals = game.rules, []
    for number in game.living:
        snake = game.snakes[number]
        direction = executed(rules, snake, actions[number])
        if isinstance(direction, str):
            snake.cause = direction  # removed before it moves
            continue
        snake.heading = direction
        snake.head = beside(rules, snake.head, direction)
        taken = rules.contested_food == "lowest_index" and any(game.snakes[other].head == snake.head for other in meals)
        if snake.head in game.food and not taken:
            meals.append(number)
        stays = rules.growth == "same_turn" and number in meals
        snake.body = [snake.head, *(snake.body if stays else snake.body[:-1])]
        if rules.own_body == "at_once" and snake.head in snake.body[1:]:
            snake.cause, snake.killer = "self", number
        snake.body = snake.body[: rules.max_length]
    return meals


def _hunger(game: Game) -> None:
    """Each snake loses a unit of health, or, every so many turns, its tail; who has no segment left starves."""
    rules = game.rules
    for number in game.living:
        snake = game.snakes[number]
        if rules.hunger == "health":
            snake.health -= 1
        if rules.hunger == "segment" and game.turn % rules.hunger_every == 0 and snake.cause == "":
            snake.body = snake.body[:-1]
            if not snake.body:
                snake.cause = "starvation"


def _hazard(game: Game) -> None:
    """Each listing of the head's cell costs health (or heals), none if food lies there.

    At 0 that is the cause, be it that the snake was starving and the hazard did no damage.
    """
    rules = game.rules
    for number in game.living:
        snake = game.snakes[number]
        listings = game.hazards.count(snake.head)
        if snake.cause == "" and mortal(rules) and listings > 0 and snake.head not in game.food:
            snake.health = min(max(snake.health - rules.hazard_damage * listings, 0), rules.max_health)
            if snake.health == 0:
                snake.cause = "hazard"


def _eat(game: Game, meals: list[int]) -> None:
    """Who is on food eats: full health, which saves a starving snake; late growth doubles its tail for each piece.

    Who is out already does not, but where food goes to the lowest index, that one has taken it as it moved.
    """
    rules = game.rules
    for number in meals:
        snake = game.snakes[number]
        snake.ate = snake.cause == "" or rules.contested_food == "lowest_index"
        if snake.cause == "":
            snake.health = rules.max_health
            if rules.growth != "same_turn":
                snake.body = snake.body + [snake.body[-1]] * game.food.count(snake.head)
    eaten = [game.snakes[number].head for number in meals if game.snakes[number].ate]
    game.food = [cell for cell in game.food if cell not in eaten]


def _eliminate(game: Game) -> None:
    """Who is out of health, over the edge or out by its move is out first; then collisions are judged on the same board."""
    rules = game.rules
    living = game.living
    for number in living:
        snake = game.snakes[number]
        if snake.cause == "" and snake.health <= 0 and mortal(rules):
            snake.cause = "starvation"
        if snake.cause == "" and not inside(rules, snake.head):
            snake.cause = "wall"
    judged = [number for number in living if game.snakes[number].cause == ""]
    blocking = living if rules.dying_block == "all" else judged
    verdicts = {number: _collision(game, number, blocking) for number in judged}
    for number, (cause, killer) in verdicts.items():
        game.snakes[number].cause, game.snakes[number].killer = cause, killer
    dying = [game.snakes[number] for number in living if game.snakes[number].cause != ""]
    for snake in dying:
        snake.alive, snake.just_died, snake.died = False, True, game.turn
        snake.rank = 1 + len(living) - len(dying)
        if rules.tied_deaths == "by_length":
            snake.rank += sum(other.length_before > snake.length_before for other in dying)


def _collision(game: Game, number: int, blocking: list[int]) -> tuple[str, int]:
    """The first that holds of own body, another's body, another's head; and who is responsible."""
    snake, head = game.snakes[number], game.snakes[number].head
    if head in snake.body[1:]:
        return "self", number
    others = [other for other in blocking if other != number]
    bodies = [other for other in others if head in game.snakes[other].body[1:]]
    if bodies:
        return "body", _longest(game, bodies)
    heads = [other for other in others if [head] == game.snakes[other].body[:1]]
    if game.rules.head_to_head == "longest_survives":
        heads = [other for other in heads if len(game.snakes[other].body) >= len(snake.body)]
    return ("head", _longest(game, heads)) if heads else ("", NOBODY)


def _longest(game: Game, numbers: list[int]) -> int:
    """The longest of these snakes; if several are, nobody, for no snake's number may matter, unless the rules name one."""
    longest = max(len(game.snakes[number].body) for number in numbers)
    found = [number for number in numbers if len(game.snakes[number].body) == longest]
    return found[0] if len(found) == 1 or game.rules.tied_killer == "lowest_index" else NOBODY


def _grow_after(game: Game) -> None:
    """Growth on every turn: no food is left, everybody in full health, tails doubled that are not; of the dead as well."""
    if game.rules.growth != "every_turn":
        return
    game.food = []
    for snake in game.snakes:
        snake.health = game.rules.max_health
        if len(snake.body) >= 2 and snake.body[-1] != snake.body[-2]:
            snake.body = [*snake.body, snake.body[-1]]


def take_hazards(game: Game, after: list[Cell]) -> None:
    """Check that these may be the hazards after a turn, and take them over.

    Where hazards close in, the cells without are a rectangle, smaller than the board by a line for each time; others are
    forgotten.
    """
    rules = game.rules
    if game.over or rules.shrink_every == 0:
        assert after == game.hazards, "hazards changed"
        return
    lines = game.turn // rules.shrink_every
    assert len(after) == len(set(after)), "a hazard twice"
    safe = {(x, y) for x in range(rules.width) for y in range(rules.height)} - set(after)
    if safe:
        xs, ys = {x for x, _ in safe}, {y for _, y in safe}
        assert len(safe) == len(xs) * len(ys), "the cells without hazard are no rectangle"
        assert max(xs) - min(xs) + 1 + max(ys) - min(ys) + 1 == rules.width + rules.height - lines, "not one line each time"
    else:
        assert lines >= min(rules.width, rules.height), "too many hazards"
    game.hazards = after


def free_cells(game: Game) -> set[Cell]:
    """Where food may appear after a turn: on no body of the living, no food and, if the rules say so, beside no head."""
    board = {(x, y) for x in range(game.rules.width) for y in range(game.rules.height)}
    taken = {cell for number in game.living for cell in game.snakes[number].body} | set(game.food)
    if not game.rules.food_near_heads:
        for x, y in [game.snakes[number].head for number in game.living]:
            taken |= {(x + dx, y + dy) for dx, dy in DIRECTIONS}
    return board - taken


def take_food(game: Game, after: list[Cell]) -> None:
    """Check that this may be the food on the board after a turn, and take it over."""
    assert not Counter(game.food) - Counter(after), "food vanished"
    new = list((Counter(after) - Counter(game.food)).elements())
    if game.over:
        assert not new, "food in a game that is over"
        return
    free = free_cells(game)
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
    """End the game if too few snakes are left or the last turn is played; place who lives by length."""
    if game.over:
        return
    enough = {"one": 0 if game.entrants == 1 else 1, "one_always": 1, "none": 0}[game.rules.ends_with]
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
