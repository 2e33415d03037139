"""The games of a `SharedGame` as one of its learners sees them, for the learner's VecEnv."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.common_spaces import OwnSpaces, OwnView, own_spaces
from adapters.games.game_batch import GameBatch, TimeStep
from adapters.opponents.protocol import Lineup, Opponent, Source
from snake_pz.players import Observations, View, map_arrays


class LearnerGameBatch(GameBatch):
    """Shared games with the seats of one learner first; all other seats are enemy seats.

    Reset and step go through two functions that return after all other learners have acted.

    Args:
        shared: the games. Their agents never change seats.
        seats: the seats of this learner.
        reset: (seeds, options), one each per game -> first time step of `shared`.
        step: actions (E, len(seats), *action) as `shared` takes them -> next time step of `shared`.

    Raises:
        ValueError: the agents on these seats have different spaces.
    """

    def __init__(
        self,
        shared: GameBatch,
        seats: Sequence[int],
        reset: Callable[[Sequence[int | None], Sequence[dict[str, Any]]], TimeStep],
        step: Callable[[NDArray[Any]], TimeStep],
    ) -> None:
        self._shared, self._reset, self._step = shared, reset, step
        self.seats, self.num_games, self.num_learners = shared.seats, shared.num_games, len(seats)
        self._order = np.array([*seats, *(seat for seat in range(shared.seats) if seat not in seats)])  # seat -> shared seat
        self._seat_of = np.argsort(self._order)  # shared seat -> seat
        spaces = OwnSpaces(shared.observation_space, shared.action_space)
        if own := own_spaces(shared.action_space):
            spaces, *others = [own[agent] for agent in self.agents(0)[: len(seats)]]
            if any(other != spaces for other in others):
                raise ValueError(
                    f"agents {list(self.agents(0)[: len(seats)])} have different spaces, so that one policy cannot play them "
                    "all: give each a learner_env of its own"
                )
        self.observation_space, self.action_space = spaces
        self.other_spaces: Sequence[gymnasium.Space[Any]] = ()
        self.render_mode, self.snake_rules = shared.render_mode, shared.snake_rules
        self._view = shared.view(*spaces)

    @override
    def reset(self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]) -> TimeStep:
        return self._own(self._reset(seeds, options))

    @override
    def step(self, actions: NDArray[Any]) -> TimeStep:
        """Play one turn, after all learners have acted. Only the actions of this learner's seats are used."""
        return self._own(self._step(actions[:, : self.num_learners]))

    @override
    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> View:
        """A view in the spaces of this learner's agents.

        Raises:
            ValueError: other spaces.
        """
        if observation_space != self.observation_space or action_space != self.action_space:
            raise ValueError(
                f"these seats show {self.observation_space} and take {self.action_space}, got {observation_space} and "
                f"{action_space}"
            )
        return _LearnerView(self._view, self._order)

    @override
    def agents(self, game: int) -> tuple[str, ...]:
        agents = self._shared.agents(game)
        return tuple(agents[seat] for seat in self._order.tolist())

    @override
    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        return self._shared.get_attr(name, games)

    @override
    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        self._shared.set_attr(name, value, games)

    @override
    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        return self._shared.env_method(name, games, *args, **kwargs)

    @override
    def render(self, games: Sequence[int]) -> list[Any]:
        return self._shared.render(games)

    @override
    def close(self) -> None:
        """Do nothing: the games are shared."""

    def _own(self, time_step: TimeStep) -> TimeStep:
        """Convert a time step of the shared games to this learner's seat order and spaces."""
        order = self._order
        ended = time_step.terminated | time_step.truncated
        final_index = (np.cumsum(ended) - 1).reshape(ended.shape)[:, order][ended[:, order]]
        own: Callable[[Observations], Observations] = lambda observations: observations  # noqa: E731
        masks = time_step.action_masks
        if isinstance(self._view, OwnView):
            own, masks = self._view.own, self._view.own_masks(masks)
        return TimeStep(
            observations=map_arrays(lambda array: array[:, order], own(time_step.observations)),
            rewards=time_step.rewards[:, order],
            terminated=time_step.terminated[:, order],
            truncated=time_step.truncated[:, order],
            active=time_step.active[:, order],
            restarted=time_step.restarted.copy(),
            final_observations=map_arrays(lambda array: array[final_index], own(time_step.final_observations)),
            action_masks=None if masks is None else masks[:, order],
            infos={(game, int(self._seat_of[seat])): info for (game, seat), info in time_step.infos.items()},
            reset_infos={(game, int(self._seat_of[seat])): info for (game, seat), info in time_step.reset_infos.items()},
        )


class _LearnerView(View):
    """A view of the shared games in a learner's seat order."""

    def __init__(self, view: View, order: NDArray[np.intp]) -> None:
        self.observation_space, self.action_space = view.observation_space, view.action_space
        self._view, self._order = view, order

    @override
    def observations(self) -> Observations:
        return map_arrays(lambda array: array[:, self._order], self._view.observations())

    @override
    def action_masks(self) -> NDArray[np.int8] | None:
        masks = self._view.action_masks()
        return None if masks is None else masks[:, self._order]

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        return self._view.decode(actions, games, self._order[seats])


class SeatNames(Lineup):
    """The names of all other players in the games of one learner. They act where the shared games are stepped.

    Args:
        names: returns the names of a game's players on other seats, in this learner's seat order.
    """

    def __init__(self, names: Callable[[int], Sequence[str]]) -> None:
        self.seconds = 0.0
        self._names = names

    @property
    @override
    def opponents(self) -> tuple[Opponent, ...]:
        return ()

    @override
    def act(self, actions: NDArray[Any], active: NDArray[np.bool_]) -> None: ...

    @override
    def foresee(self, active: NDArray[np.bool_]) -> None: ...

    @override
    def close(self) -> None: ...

    @override
    def restart(self, games: NDArray[np.intp]) -> None: ...

    @override
    def set_opponents(self, seats: Sequence[Opponent | Source], when: Literal["restart", "now"] = "restart") -> None:
        raise ValueError("the opponents of one learner's games are those of its SharedGame: call set_opponent of that")

    @override
    def seed(self, sequence: np.random.SeedSequence) -> None: ...

    @override
    def names(self, game: int) -> tuple[str, ...]:
        return tuple(self._names(game))
