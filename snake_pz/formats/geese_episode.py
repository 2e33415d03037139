"""Recorded games of Kaggle's geese: the JSON of an episode, as `Environment.toJSON` and the competition's site write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snake_pz.formats import hungry_geese
from snake_pz.formats.fields import field, items
from snake_pz.formats.hungry_geese import MOST_GEESE, MOVES
from snake_pz.formats.recorded import INVALID, RecordedGame

MOST_STEPS = 100_000
"""More steps than any episode has."""


def recorded_episode(episode: Mapping[str, Any]) -> RecordedGame:
    """The game of an episode.

    Raises:
        ValueError: a field is missing or out of its range, or it is an episode of another game.
    """
    if (game := field(episode, "name", "hungry_geese")) != "hungry_geese":
        raise ValueError(f"the episode must be of hungry_geese, got {game!r}")
    configuration = field(episode, "configuration", {})
    steps = [items({"step": step}, "step", MOST_GEESE) for step in items(episode, "steps", MOST_STEPS)]
    if not steps or not all(steps):
        raise ValueError("an episode has at least one step, and an entry for each agent in each")
    # what all geese see is written for the first one only, and the number of the step not always
    shown = [{**field(step[0], "observation"), "step": number} for number, step in enumerate(steps)]
    rules = hungry_geese.rules(shown[0], configuration)
    before = [None, *shown[:-1]]
    positions = [hungry_geese.position(now, configuration, then) for now, then in zip(shown, before, strict=True)]
    moves = [[_move(agent) for agent in items({"agents": step}, "agents", rules.num_snakes)] for step in steps[1:]]
    if any(len(turn) != rules.num_snakes for turn in moves):
        raise ValueError(f"each step must have an entry for each of {rules.num_snakes} geese")
    teams = field(episode, "info.TeamNames", [])
    names = [str(name) for name in teams] if len(teams) == rules.num_snakes else [f"goose {k}" for k in range(rules.num_snakes)]
    return RecordedGame(rules, names, positions, moves)


def _move(agent: Any) -> int:
    """What an agent did; nothing valid if it failed or took too long."""
    action = field(agent, "action", None)
    failed = field(agent, "status", "") in ("INVALID", "ERROR", "TIMEOUT")
    return MOVES.index(action) if action in MOVES and not failed else INVALID
