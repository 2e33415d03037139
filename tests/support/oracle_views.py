"""What a snake sees and which of its moves are masked, slow and plain; the second part of `oracle`."""

from __future__ import annotations

from tests.support.oracle import DIRECTIONS, Cell, Game, Snake, beside, executed, inside, mortal

# ---------------------------------------------------------------------------------------------------------------- masks


def action_mask(game: Game, number: int, relative: bool) -> list[int]:
    """1 where the move does not surely kill, as far as the board before the turn tells; all ones if every one does."""
    snake = game.snakes[number]
    directions = [(seen_heading(snake) + turn) % 4 for turn in (-1, 0, 1)] if relative else [0, 1, 2, 3]
    if not snake.alive or game.over:
        return [1] * len(directions)
    mask = [int(_may_live(game, snake, direction)) for direction in directions]
    return mask if any(mask) else [1] * len(directions)


def seen_heading(snake: Snake) -> int:
    """What `straight on` and `ahead` refer to: up, as long as a snake has not moved."""
    return max(snake.heading, 0)


def _may_live(game: Game, snake: Snake, direction: int) -> bool:
    rules = game.rules
    move = executed(rules, snake, direction)
    if isinstance(move, str):
        return False
    cell = beside(rules, snake.head, move)
    if not inside(rules, cell):
        return False
    hungry = rules.hunger == "segment" and (game.turn + 1) % rules.hunger_every == 0
    for other in (game.snakes[number] for number in game.living):
        stay = len(other.body) - 1  # of its segments, the tail leaves
        if other is not snake or rules.own_body == "with_others":
            stay = min(stay, (rules.max_length or stay + 1) - 1) - hungry
        if cell in other.body[: max(stay, 0)]:
            return False
    length = min(len(snake.body) + (rules.growth == "same_turn" and cell in game.food), rules.max_length or len(snake.body) + 1)
    if hungry and length <= 1:
        return False
    health = snake.health - (rules.hunger == "health") - rules.hazard_damage * game.hazards.count(cell)
    return cell in game.food or not mortal(rules) or health > 0


# --------------------------------------------------------------------------------------------------------- observations
# Planes are lists of rows. A snake sees the living and itself, also at the moment of its death.

TTL_STEP, LONGER, SHORTER, WALL = 10, 255, 128, 255


def board_view(game: Game, number: int) -> list[list[list[int]]]:
    """`board`: own body, own head, other bodies, other heads, food, walls and hazards, clock; at least 7 cells a side."""
    width, height = max(game.rules.width, 7), max(game.rules.height, 7)
    cells = [[(x, y) for x in range(width)] for y in range(height)]
    return [[[_level(game, number, plane, cell) for cell in row] for row in cells] for plane in range(7)]


def egocentric_view(game: Game, number: int) -> list[list[list[int]]]:
    """`egocentric`: the planes of `board` without the own head, seen from the head, which is in the centre and heads up."""
    rules, snake = game.rules, game.snakes[number]
    (x, y), (forward_x, forward_y) = snake.head, DIRECTIONS[seen_heading(snake)]
    right_x, right_y = DIRECTIONS[(seen_heading(snake) + 1) % 4]
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
        return _clock(game, snake)
    if not inside(rules, cell):
        return WALL if plane == 5 else 0
    if plane == 0:
        return _time_to_live([snake], cell)
    if plane == 1:
        return 255 if [cell] == snake.body[:1] else 0
    if plane == 2:
        return _time_to_live(others, cell)
    if plane == 3:
        lengths = [len(other.body) for other in others if other.body[0] == cell]
        return 0 if not lengths else LONGER if max(lengths) >= len(snake.body) else SHORTER
    if plane == 4:
        return 255 if cell in game.food else 0
    return min(64 * game.hazards.count(cell), 192) if rules.hazard_damage != 0 else 0


def _clock(game: Game, snake: Snake) -> int:
    """The turns that the snake can go on for without eating, 255 where all of them are left."""
    rules = game.rules
    left = [max(snake.health, 0)] if mortal(rules) else []
    if rules.max_turns is not None:
        left.append(max(rules.max_turns - game.turn, 0))
    most = rules.max_health if mortal(rules) else rules.max_turns
    return 255 if most is None else 255 * min(left) // most


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
    if [cell] == snake.body[:1]:
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
