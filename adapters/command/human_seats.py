"""The players of a game with people: people on the first seats, then their opponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from adapters.opponents.parse import by_seat, parse
from adapters.opponents.parsed import Mixture, Pool
from adapters.opponents.resolver import resolver_for_rules
from adapters.opponents.unpickling import Trust
from snake_pz import Rules
from snake_pz.play.keyboard import Person

if TYPE_CHECKING:
    from snake_pz.players import Player


def seat_humans(
    rules: Rules, humans: int, opponents: Sequence[str] | None = None, *, device: str = "auto", trust: Trust = False
) -> list[Player]:
    """A player for each snake: people on the first seats, opponents on the others.

    Args:
        rules: rules of the game.
        humans: people at the keyboard, 1 (arrows or WASD) or 2 (one arrows, one WASD).
        opponents: a bot's name or a checkpoint each, by seat; one alone plays all seats. None: "greedy", if any are left.
        device: where policies predict.
        trust: what checkpoints may ask for beside known classes, as in `make_sb3_env`.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: too few snakes, opponents without a seat, not one opponent per seat, an unknown opponent, or a pool.
    """
    if not 1 <= humans <= 2:
        raise ValueError(f"humans must be 1 or 2, got {humans}")
    if humans > rules.num_snakes:
        raise ValueError(f"{humans} people need as many snakes, got {rules.num_snakes}: raise --snakes")
    if opponents and humans == rules.num_snakes:
        raise ValueError(
            f"opponents have no seat where people play all the snakes, {humans} of {rules.num_snakes}, got "
            f"{', '.join(map(repr, opponents))}: leave them out, or raise --snakes"
        )
    opponents = opponents or ["greedy"]
    parsed = [parse(one) for one in opponents]
    if several := [one for one, meant in zip(opponents, parsed, strict=True) if isinstance(meant, (Pool, Mixture))]:
        raise ValueError(f"a pool or mixture is not one player, got {several[0]!r}: name the file of one of its snapshots")
    people: list[Player]
    if humans == 1:
        people = [Person("you", rules, ("arrows", "WASD"))]
    else:
        people = [Person("player 1", rules, ("arrows",)), Person("player 2", rules, ("WASD",))]
    resolver = resolver_for_rules(rules, device=device, trust=trust)
    seats = by_seat(parsed[0] if len(parsed) == 1 else parsed, None, rules.num_snakes - humans)
    return [*people, *cast("list[Player]", [resolver.make(one) for one in seats])]  # a command line names no sources
