"""What happens in a recorded transition: kinds of event, read from the record alone, so that each can be counted.

The names are explained in tests/data/README.md.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

Record = dict[str, Any]
Cell = tuple[int, int]

GEESE_STEPS = {"NORTH": (-1, 0), "EAST": (0, 1), "SOUTH": (1, 0), "WEST": (0, -1)}
STEPS = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}
DEATHS = {
    "wall-collision": "wall",
    "out-of-health": "starve",
    "hazard": "hazard",
    "snake-collision": "body",
    "snake-self-collision": "self",
    "head-collision": "head",
}
GONE = {"wall", "starve", "hazard"}
"""Bodies of snakes that die of these stop nobody."""
BACKGROUND = {
    "dead_snake_present",
    "royale_hazards_set",
    "constrictor_grow",
    "constrictor_no_grow_stacked",
    "constrictor_food_removed",
    "dead_goose_present",
    "food_spawned",
    "food_spawned_2plus",
}
"""What happens so often that a transition with nothing else is still `plain`."""


def events(record: Record) -> set[str]:
    """The kinds of event that a transition shows; `plain` if none."""
    found = (_geese_events if "geese" in record else _battlesnake_events)(record)
    return found if found - BACKGROUND else found | {"plain"}


def _length_class(length: int) -> str:
    return f"{length}" if length < 3 else "3plus"


# --------------------------------------------------------------------------------------------------------- Battlesnake


class _Snake(NamedTuple):
    """One that was alive before the turn."""

    before: list[Cell]
    head: Cell  # after the move, off the board if it left
    body: list[Cell]  # after moving and eating, before constrictor's growth
    health: int  # before
    later: int  # health after the turn
    meals: int
    death: str  # "" if it lives on
    wrapped: bool

    @property
    def tail(self) -> Cell:
        """The cell that its last segment was on."""
        return self.before[-1]


def _battlesnake_events(record: Record) -> set[str]:
    found = set()
    before, after = record["snakes"], record["after"]
    if any(snake["cause"] for snake in before):
        found.add("dead_snake_present")
    if after["over"]:
        return found | {"already_over"}
    snakes = _living(record)
    found |= _feeding(record, snakes) | _hazards(record, snakes)
    for number, snake in enumerate(snakes):
        found |= _movement(snake) | _meetings(snake, [other for k, other in enumerate(snakes) if k != number])
        if not snake.death and any(snake.head in map(tuple, dead["body"]) for dead in before if dead["cause"]):
            found.add("through_old_dead_body")
    deaths, left = sum(bool(snake.death) for snake in snakes), sum(not snake.death for snake in snakes)
    if deaths > 1:
        found |= {"multi_death"} | ({"last_all_die"} if left == 0 else set())
    if deaths and left == 1:
        found.add("one_survivor")
    if after["over_next"]:
        found.add("ends_game")
    if record["ruleset"] == "constrictor":
        found |= _constriction(record, snakes)
    if record["ruleset"] == "royale":
        turn, every = record["turn"] + 1, record["settings"]["shrinkEveryNTurns"]
        if turn >= every:
            found.add("royale_hazards_set")
        elif record["hazards"]:
            found.add("royale_hazards_cleared")
        if turn % every == 0:
            found.add("royale_shrink_now")
    return found


def _living(record: Record) -> list[_Snake]:
    food = Counter(map(tuple, record["food"]))
    snakes = []
    for snake, later in zip(record["snakes"], record["after"]["snakes"], strict=True):
        if snake["cause"]:
            continue
        body, head = [tuple(cell) for cell in snake["body"]], tuple(later["body"][0])
        moved = [head, *body[:-1]]
        step = (head[0] - body[0][0], head[1] - body[0][1])
        meals = food[head]
        snakes.append(
            _Snake(
                before=body,
                head=head,
                body=moved + moved[-1:] * meals,
                health=snake["health"],
                later=later["health"],
                meals=meals,
                death=DEATHS.get(later["cause"], later["cause"]),
                wrapped=abs(step[0]) + abs(step[1]) > 1 or step != STEPS.get(record["moves"][snake["id"]], step),
            )
        )
    return snakes


def _movement(snake: _Snake) -> set[str]:
    """What a snake shows whoever else is there."""
    found, length = set(), len(snake.before)
    if snake.death:
        found.add(f"death_{snake.death}")
    if length == 1:
        found.add("move_len1")
    elif snake.head == snake.before[1] and snake.before[0] != snake.before[1]:
        found.add(f"reverse_len{length}" if length < 4 else "reverse_len4plus")
    if not snake.death and length > 1 and snake.head == snake.tail:
        found.add("enter_vacating_tail_own")
        if snake.wrapped:
            found.add("wrap_enter_tail")
    if snake.death == "self" and snake.before[-2:].count(snake.head) == 2:
        found.add("hit_stacked_tail_own")
    if snake.wrapped:
        found.add("wrap")
        if snake.death in ("body", "head"):
            found.add(f"wrap_death_{snake.death}")
        if snake.meals:
            found.add("wrap_eat")
    return found


def _meetings(snake: _Snake, others: list[_Snake]) -> set[str]:
    """What a snake shows together with the other living ones."""
    found = set()
    solid = [other for other in others if other.death not in GONE]
    hit = [other for other in solid if snake.head in other.body[1:]]
    opponents = [other for other in solid if other.head == snake.head]
    for other in others:
        if other.head == snake.before[0] and other.before[0] == snake.head:
            pair = sorted((len(snake.before), len(other.before)))
            found.add("swap_" + "_".join(map(_length_class, pair)))
        if snake.death == "body" and other.before[0] == snake.head:
            found.add("hit_just_left_head_cell")
        if not snake.death and snake.head == other.tail != other.before[-2:][0]:
            found.add("enter_vacating_tail_other")
            if other.meals:
                found.add("enter_tail_of_eater_now")
            if snake.wrapped:
                found.add("wrap_enter_tail")
        if not snake.death and other.death in GONE and snake.head in other.body:
            found.add(f"through_body_of_dying_{other.death}")
        if not snake.death and other.death in ("starve", "hazard") and other.head == snake.head:
            found.add("shares_head_cell_with_starved_or_hazard_dead")
    if snake.death == "body":
        found |= {f"hit_body_of_dying_{other.death}" for other in hit if other.death}
        if len(hit) > 1:
            found.add("body_multi_hit")
        if any(other.before[-2:].count(snake.head) == 2 for other in hit):
            found.add("hit_stacked_tail_other")
    if snake.death == "head":
        longest = max((len(other.body) for other in opponents), default=0)
        found.add("head_equal" if longest == len(snake.body) else "head_shorter_dies")
        if sum(len(other.body) == longest for other in opponents) > 1:
            found.add("head_tie_attribution")
    if opponents and not snake.death:
        found.add("head_win")
    if len(opponents) > 1 and snake.death not in GONE:
        found.add("head_3way")
    return found


def _feeding(record: Record, snakes: list[_Snake]) -> set[str]:
    found = set()
    heads = Counter(snake.head for snake in snakes if snake.meals)
    for snake in snakes:
        if not snake.meals:
            continue
        found |= {"eat"} | ({"constrictor_eat"} if record["ruleset"] == "constrictor" else set())
        if snake.health == 1:
            found.add("eat_at_hp1")
        if len(snake.before) == 1:
            found.add("eat_at_len1")
        if snake.meals > 1:
            found.add("double_food")
        if heads[snake.head] > 1:
            found.add("two_heads_one_food" if heads[snake.head] == 2 else "three_heads_one_food")
    return found


def _hazards(record: Record, snakes: list[_Snake]) -> set[str]:
    found, damage = set(), record["settings"]["damagePerTurn"]
    listed = Counter(map(tuple, record["hazards"]))
    for snake in snakes:
        times = listed[snake.head]
        outside = not (0 <= snake.head[0] < record["width"] and 0 <= snake.head[1] < record["height"])
        if outside and snake.health <= 1:
            found.add("starve_and_wall")
        if not times:
            continue
        if snake.meals:
            found.add("hazard_but_food")
            continue
        found.add("hazard_entered" if times == 1 else "hazard_stacked")
        if damage >= 0 and snake.death != "hazard":
            found.add("hazard_damage_survived")
        if damage < 0:
            found.add("heal")
            if snake.health <= 1:
                found.add("heal_saves_starving")
        if snake.health <= 1 and snake.death == "hazard":
            found.add("starving_in_hazard_is_hazard")
    return found


def _constriction(record: Record, snakes: list[_Snake]) -> set[str]:
    found = set()
    if set(map(tuple, record["food"])) - {snake.head for snake in snakes}:
        found.add("constrictor_food_removed")
    living = iter(snakes)
    for snake, later in zip(record["snakes"], record["after"]["snakes"], strict=True):
        body = [tuple(cell) for cell in snake["body"]] if snake["cause"] else next(living).body
        if len(later["body"]) > len(body):
            found.add("constrictor_grow_dead" if later["cause"] else "constrictor_grow")
        elif len(body) > 1 and body[-1] == body[-2]:
            found.add("constrictor_no_grow_stacked")
    return found


# ------------------------------------------------------------------------------------------------------- Hungry Geese


class _Goose(NamedTuple):
    """One that was ACTIVE before the step."""

    before: list[int]
    head: int  # where it moved to, or would have
    body: list[int]  # after moving, eating and hunger
    ate: bool
    too_late: bool  # for a piece of food that a lower index took
    cut: bool  # lost its tail to max_length
    wrapped: bool
    death: str  # "" if it lives on


def _geese_events(record: Record) -> set[str]:
    found = set()
    step, after = record["step"], record["after"]
    if "DONE" in record["status"] or "INVALID" in record["status"]:
        found.add("dead_goose_present")
    if step == 1:
        found |= {"first_step", "first_step_no_reversal_check"}
    if any(action not in GEESE_STEPS for action in record["actions"]):
        found.add("invalid_action")
    geese, hungry = _active(record), step % record["hunger_rate"] == 0
    for number, goose in enumerate(geese):
        found |= _goose_alone(goose, hungry)
        found |= _goose_meetings(goose, [other for k, other in enumerate(geese) if k != number], hungry)
        if goose.death.startswith("reverse") and goose.head in after["food_before_spawn"]:
            found.add("reverse_onto_food_not_eaten")
        if goose.death == "head_on" and goose.head in record["food"]:
            found.add("head_on_on_food")
    deaths, left = sum(bool(goose.death) for goose in geese), sum(not goose.death for goose in geese)
    if deaths > 1:
        found |= {"multi_death"} | ({"simultaneous_last_deaths"} if left == 0 else set())
    if deaths == 1 and left == 0:
        found.add("last_goose_dies_alone")
    if "ACTIVE" not in after["status"]:
        found |= {"episode_ends"} | ({"last_goose_done"} if left == 1 else set())
    if step >= record["episode_steps"] - 1:
        found |= {"step_limit"} | ({"step_limit_with_2plus_active"} if left > 1 else set())
    return found | _head_on(geese) | _geese_food(record)


def _geese_food(record: Record) -> set[str]:
    found, after = set(), record["after"]
    kept, spawned = len(after["food_before_spawn"]), len(after["food"]) - len(after["food_before_spawn"])
    if spawned:
        found |= {"food_spawned"} | ({"food_spawned_2plus"} if spawned > 1 else set())
    if kept > record["min_food"]:
        found.add("food_above_minimum")
    if len(after["food"]) < record["min_food"]:
        found.add("food_spawn_limited_by_space")
    return found


def _active(record: Record) -> list[_Goose]:
    """The geese as they are when collisions are judged, by the stages of `Hungry Geese` up to then."""
    rows, columns, step, food = record["rows"], record["columns"], record["step"], list(record["food"])
    geese = []
    for number, status in enumerate(record["status"]):
        if status != "ACTIVE":
            continue
        before, action = record["geese"][number], record["actions"][number]
        last = record["last_actions"][number] if step > 1 else None
        lives = bool(record["after"]["geese"][number])
        down, right = GEESE_STEPS.get(action, (0, 0))
        y, x = before[0] // columns + down, before[0] % columns + right
        head, wrapped = y % rows * columns + x % columns, not (0 <= y < rows and 0 <= x < columns)
        goose = _Goose(before, head, [], False, False, False, wrapped, "")
        if action not in GEESE_STEPS:
            geese.append(goose._replace(death="invalid"))
        elif last in GEESE_STEPS and GEESE_STEPS[last] == (-down, -right):
            geese.append(goose._replace(death=f"reverse_len{_length_class(len(before))}"))
        else:
            ate = head in food
            body = list(before) if ate else before[:-1]
            if ate:
                food.remove(head)
            hit, cut = head in body, len(body) >= record["max_length"]
            body = [head, *body[: record["max_length"] - 1]]
            if step % record["hunger_rate"] == 0:
                body.pop()
            death = "self" if hit else "hunger" if not body else "" if lives else "collision"
            too_late = not ate and head in record["food"]
            geese.append(goose._replace(body=body, ate=ate, too_late=too_late, cut=cut, death=death))
    return [goose._replace(death=_collision(goose, geese)) if goose.death == "collision" else goose for goose in geese]


def _collision(goose: _Goose, geese: list[_Goose]) -> str:
    standing = [other for other in geese if other.death in ("", "collision")]
    return "body" if any(goose.head in other.body[1:] for other in standing) else "head_on"


def _goose_alone(goose: _Goose, hungry: bool) -> set[str]:
    """What a goose shows whoever else is there."""
    found, length = set(), len(goose.before)
    if goose.death:
        found.add(f"death_{goose.death}")
    if goose.wrapped:
        found.add("wrap")
    if goose.death == "invalid" or goose.death.startswith("reverse"):
        return found
    if goose.ate:
        found |= {"eat"} | ({"eat_at_len1"} if length == 1 else set()) | ({"hunger_and_eat"} if hungry else set())
    if goose.too_late:
        found.add("food_already_taken_by_lower_index")
    if goose.cut:
        found.add("max_length_cut")
    if hungry and goose.death != "self":
        found.add("hunger_shortens")
    if not goose.death and length > 1 and goose.head == goose.before[-1]:
        found.add("enter_own_vacated_tail")
    return found


def _goose_meetings(goose: _Goose, others: list[_Goose], hungry: bool) -> set[str]:
    """What a goose shows together with the other active ones."""
    found = set()
    dies = goose.death in ("body", "head_on")
    for other in others:
        removed = other.death.split("_")[0]
        if other.head == goose.before[0] and other.before[0] == goose.head:
            pair = sorted((len(goose.before), len(other.before)))
            found.add("swap_" + "_".join(map(_length_class, pair)))
        if goose.death == "body" and other.before[0] == goose.head:
            found.add("hit_just_left_head_cell")
        if goose.death == "body" and other.ate and goose.head == other.body[-1] == other.before[-1]:
            found.add("hit_tail_of_eater")
        if goose.death == "body" and other.death in ("body", "head_on") and goose.head in other.body[1:]:
            found.add("hit_body_of_goose_dying_by_collision")
        if dies and other.death in ("body", "head_on") and other.head == goose.head:
            found.add("death_head_on")
        if goose.death:
            continue
        if other.before[-1] == goose.head and len(other.before) > 1 and removed in ("", "body", "head"):
            found.add("hunger_frees_tail_of_eater" if hungry and other.ate else "enter_vacated_tail_other")
        if hungry and not other.ate and goose.head in other.before[1:][-2:-1] and removed in ("", "body", "head"):
            found.add("hunger_frees_cell")
        if removed in ("invalid", "reverse", "self", "hunger") and goose.head in other.before:
            found.add("through_body_of_goose_dying_by_" + ("starve" if removed == "hunger" else removed))
        if removed == "self" and goose.head == other.head:
            found.add("shares_cell_with_self_hit_head")
    return found


def _head_on(geese: list[_Goose]) -> set[str]:
    """What the cells show on which heads met."""
    found = set()
    for cell in {goose.head for goose in geese}:
        lengths = [len(goose.body) for goose in geese if goose.head == cell and goose.death in ("body", "head_on")]
        if len(lengths) > 1:
            found.add("head_on_equal" if len(set(lengths)) == 1 else "head_on_unequal")
        if len(lengths) > 2:
            found.add("head_on_3plus")
    return found
