"""What always holds of the state of games with given rules. Kernels check nothing, so states from outside are checked here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_pz.core.state import LAST_TURN, NO_HEADING, OFF_BOARD, Cause, Direction, SnakeState
from snake_pz.rules import Rules


def check_state(state: Any, rules: Rules, like: SnakeState) -> None:
    """Reject what is no state of games with these rules: kernels would read and write outside of its arrays.

    Args:
        state: (E, ...) what should be a SnakeState.
        rules: rules of the games.
        like: a state of such games, of any number of them, for shapes and types.

    Raises:
        ValueError: it is no SnakeState, an array has another shape or type, or its values cannot come from such games.
    """
    _check_layout(state, like)
    for name, (low, high) in _limits(rules, like).items():
        array = getattr(state, name)
        wrong = array[(array < low) | (array > high)]
        if wrong.size:
            raise _impossible(f"{name} must be between {low} and {high}, got {wrong[0]}")
    _check_snakes(state, rules)
    if (state.food.sum(axis=1, dtype=np.int64) != state.food_count).any():
        raise _impossible("food_count is not the number of pieces in food")
    if (state.just_ended & ~state.over).any():
        raise _impossible("a game that has just ended is not over")


def _check_layout(state: Any, like: SnakeState) -> None:
    """Compare types and shapes with those of another state."""
    if not isinstance(state, SnakeState):
        raise ValueError(f"expected a SnakeState, as save() or get_state() return it, got {type(state).__name__}")
    for name, array, own in zip(SnakeState._fields, state.arrays(), like.arrays(), strict=True):
        if not isinstance(array, np.ndarray) or array.dtype != own.dtype or array.ndim != own.ndim:
            raise ValueError(
                f"{name} of a SnakeState must be an array of {own.dtype} with {own.ndim} dimensions, got "
                + (f"{array.dtype} with {array.ndim}" if isinstance(array, np.ndarray) else type(array).__name__)
            )
        if array.shape[1:] != own.shape[1:] or len(array) != len(state.over):
            raise ValueError(
                f"cannot load {name} of shape {array.shape} into games of shape {own.shape[1:]}: the saved games need the same "
                "board and number of snakes, and the same longest body"
            )


def _limits(rules: Rules, like: SnakeState) -> dict[str, tuple[int, int]]:
    """The least and the largest value in each array that does not have to agree with another one."""
    snakes, ring = rules.num_snakes, like.body.shape[2]
    return {
        "body": (OFF_BOARD, rules.num_cells - 1),
        "head": (0, ring - 1),
        "length": (0, ring - 1),
        "length_before": (0, ring - 1),
        "heading": (NO_HEADING, max(Direction)),
        "health": (-(2**15), rules.max_health),  # below 0 only of the dead, as other engines have it
        "cause": (Cause.ALIVE, max(Cause)),
        "killer": (-1, snakes - 1),
        "died": (-1, LAST_TURN),
        "rank": (0, snakes),
        "turn": (0, LAST_TURN),
        "entrants": (0, snakes),
    }


def _check_snakes(state: SnakeState, rules: Rules) -> None:
    """Check what the arrays say of living snakes, their bodies and the board."""
    alive = state.alive
    for fault, found in (
        ("without a segment", state.length < 1),
        ("with a cause or turn of death", (state.cause != Cause.ALIVE) | (state.died >= 0) | state.just_died),
        ("with health below 0", state.health < 0),
    ):
        if (alive & found).any():
            raise _impossible(f"a snake is alive {fault}")
    longest = int(np.max(state.length, where=alive, initial=1))
    steps = np.arange(longest)
    cells = np.take_along_axis(state.body, (state.head[..., None] - steps) % state.body.shape[2], axis=2)  # (E, N, longest)
    used = alive[..., None] & (steps < state.length[..., None])
    if (cells[used] == OFF_BOARD).any():
        raise _impossible("a snake is alive outside the board")
    pairs = used[..., 1:]
    if not _adjoin(cells[..., :-1][pairs], cells[..., 1:][pairs], rules).all():
        raise _impossible("a snake is alive whose segments do not adjoin")
    games = np.broadcast_to(np.arange(len(alive))[:, None, None], used.shape)
    flat = games[used] * rules.num_cells + cells[used]
    covered = np.bincount(flat, minlength=state.occupancy.size).reshape(state.occupancy.shape)
    if (covered != state.occupancy).any():
        raise _impossible("occupancy is not the number of segments of living snakes on each cell, which is 255 at most")


def _adjoin(ahead: NDArray[np.int16], behind: NDArray[np.int16], rules: Rules) -> NDArray[np.bool_]:
    """Whether each cell is one step from the other, across a seam too, or the same."""
    distance = np.zeros(len(ahead), np.int64)
    for steps, size in zip(
        (ahead % rules.width - behind % rules.width, ahead // rules.width - behind // rules.width),
        (rules.width, rules.height),
        strict=True,
    ):
        away = np.abs(steps)
        distance += np.minimum(away, size - away) if rules.edge == "wrap" else away
    near: NDArray[np.bool_] = distance <= 1
    return near


def _impossible(fault: str) -> ValueError:
    return ValueError(f"this is no state of a game with these rules: {fault}")
