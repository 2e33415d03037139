"""NativeGameBatch: snake games on a SnakeEngine, stepped in a few compiled calls without Python code per game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.game_batch import GameBatch, GameSeat, TimeStep
from adapters.games.seating import first_seating, fresh_seed, next_game
from snake_pz.core.actions import action_space, to_absolute
from snake_pz.core.encodings import Encoding, check_distinct, encoding_for, known_encodings
from snake_pz.core.encodings import encoding as as_encoding
from snake_pz.core.engine import SnakeEngine
from snake_pz.env import KEYWORDS, SnakeParallelEnv, snake_infos
from snake_pz.players import States, View
from snake_pz.replay import Recorder
from snake_pz.rules import Rules


class NativeGameBatch(GameBatch):
    """`GameBatch` of the snake. With equal seeds it plays the same games as `SuperSuitGameBatch` with `snake_v0`.

    Players may have any encoding and action set of the snake, independently of the learner: their spaces select it. Each
    encoding is written once per turn, and only if a player needs it. Only learner seats get infos (without learners, all
    seats): at resets and in their last step. They are the environment's infos and `turn`.

    Args:
        num_games: E, at least 1.
        env_kwargs: keywords of `snake_v0.parallel_env`.
        learners: as in `FixedSeats`.
        restart: whether games restart when they end; otherwise they stay as they ended, without an active seat.

    Raises:
        ValueError: a keyword is unknown or out of its range, an own encoding has the space of a built-in one, or `learners`
            does not fit the snakes.
    """

    def __init__(
        self,
        num_games: int,
        *,
        env_kwargs: dict[str, Any] | None = None,
        learners: int | Literal["all"] | Sequence[str] = 1,
        restart: bool = True,
    ) -> None:
        self._env = SnakeParallelEnv(**(env_kwargs or {}))
        self._rules, self._encoding = self._env.rules, self._env.encoding
        check_distinct(self._encoding, self._rules)
        self.snake_rules: Rules | None = self._rules
        self._names = self._env.possible_agents
        self._restarts = restart
        seating, self.num_learners, self._shuffled = first_seating(self._names, learners)
        self.num_games = num_games
        self.seats = len(self._names)
        self._reported = self.num_learners or self.seats  # seats that get infos and whose end ends the game
        self.render_mode = self._env.render_mode

        self._engine = SnakeEngine(self._rules, num_games)
        self._seating = np.tile(np.array([self._names.index(name) for name in seating]), (num_games, 1))  # (E, N) seat -> snake
        self._slots = self._seating + self.seats * np.arange(num_games)[:, None]  # the same, numbered over all games
        self._env_seeds = [fresh_seed() for _ in range(num_games)]
        self._started = [0] * num_games
        self._max_cycles = np.full(num_games, self._env.max_cycles)
        self._active = np.zeros((num_games, self.seats), np.bool_)
        self._recorders: dict[int, Recorder] = {}  # by game
        self._games: dict[int, SnakeParallelEnv] = {}  # for attribute calls, made on demand
        self._views: dict[tuple[Encoding, str], NativeView] = {}
        self._buffers: dict[Encoding, NDArray[Any]] = {}  # (E, N, *obs) in snake order
        self._written: dict[Encoding, NDArray[Any]] = {}  # the same in seat order, of the current turn
        self._masks: dict[str, NDArray[np.int8]] = {}  # by action set: (E, N, A) in seat order, of the current turn
        self._own = self._view(self._encoding, self._env.action_set)
        self.observation_space: gymnasium.Space[Any] = self._own.observation_space
        self.action_space: gymnasium.Space[Any] = self._own.action_space
        self.other_spaces: Sequence[gymnasium.Space[Any]] = [
            one.space_for(self._rules) for one in known_encodings() if one is not self._encoding
        ]

    @override
    def reset(self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]) -> TimeStep:
        """Restart all games. `options` are ignored; the snake has none."""
        for game, seed in enumerate(seeds):
            if seed is not None:
                self._env_seeds[game], self._started[game] = seed, 0
        self._written.clear()
        reset_infos = self._restart(np.arange(self.num_games))
        nothing = np.zeros(self._active.shape, np.bool_)
        observations = self.observations(self._encoding)
        return TimeStep(
            observations=observations,
            rewards=np.zeros(self._active.shape, np.float32),
            terminated=nothing,
            truncated=nothing.copy(),
            active=self._active.copy(),
            restarted=np.ones(self.num_games, np.bool_),
            final_observations=observations[:0, 0],
            action_masks=self._own.action_masks(),
            infos={},
            reset_infos=reset_infos,
        )

    @override
    def step(self, actions: NDArray[Any]) -> TimeStep:
        """Play one turn.

        Args:
            actions: (E, N) absolute directions, as `NativeView.decode` returns them.
        """
        directions = np.empty(self._seating.shape, np.int8)
        np.put_along_axis(directions, self._seating, actions.astype(np.int8), axis=1)
        rewards = self._by_seat(self._engine.paid_step(directions, self._env.reward_weights))
        self._written.clear()
        self._masks.clear()

        state, before = self._engine.state, self._active
        for game, recorder in self._recorders.items():
            if before[game].any():
                recorder.turn(directions[game])
        cut = ~state.over & (state.turn >= self._max_cycles)
        if cut.any():
            self._engine.rank_survivors(np.flatnonzero(cut))
        terminated = self._by_seat(state.just_died | state.just_ended[:, None]) & before
        truncated = before & ~terminated & cut[:, None]
        ended = terminated | truncated
        self._active = before & ~ended
        over = self._restarts & ~np.any(self._active[:, : self._reported], axis=1)

        observations = self.observations(self._encoding)
        final_observations = observations[ended]
        infos: dict[GameSeat, dict[str, Any]] = {}
        reset_infos: dict[GameSeat, dict[str, Any]] = {}
        if ended.any():
            for game, seat in np.argwhere(ended[:, : self._reported]).tolist():
                infos[game, seat] = self._final_info(game, seat)
            if over.any():
                reset_infos = self._restart(np.flatnonzero(over))
        return TimeStep(
            observations=observations,
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            active=self._active.copy(),
            restarted=over,
            final_observations=final_observations,
            action_masks=self._own.action_masks(),
            infos=infos,
            reset_infos=reset_infos,
        )

    @override
    def view(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> NativeView:
        """A view in the encoding and the action set with these spaces.

        Raises:
            ValueError: there are none on this board, or several.
        """
        return self._view(*encoding_for(self._rules, observation_space, action_space, self._encoding))

    def encoded(self, encoding: Any, action_space: gymnasium.Space[Any]) -> NativeView:
        """A view in this encoding, see `ShowsStates`."""
        own = as_encoding(encoding)
        return self._view(*encoding_for(self._rules, own.space_for(self._rules), action_space, own))

    def states(self, games: NDArray[np.intp], seats: NDArray[np.intp]) -> States:
        """The engine's state, and the snakes on these seats (B,) of these games (B,), see `ShowsStates`."""
        return States(self._engine.state, games, self._seating[games, seats])

    def observations(self, encoding: Encoding) -> NDArray[Any]:
        """(E, N, *obs) of the current turn in seat order, in this encoding."""
        if encoding not in self._written:
            buffer = self._buffers[encoding] = self._engine.observe(encoding, self._buffers.get(encoding))
            self._written[encoding] = self._in_seat_order(buffer)
        return self._written[encoding]

    def record(self, game: int, names: Sequence[str]) -> Recorder:
        """Record a game that has just begun, until it ends.

        Args:
            game: index of the game.
            names: the players' names in seat order.

        Raises:
            ValueError: the game has begun before, or not one name per seat.
        """
        if len(names) != self.seats:
            raise ValueError(f"a recording needs a name for each of {self.seats} seats, got {list(names)}")
        by_snake = [name for _, name in sorted(zip(self._seating[game].tolist(), names, strict=True))]
        engine = self._engine.game(game)
        self._recorders[game] = Recorder(engine, int(engine.state.seed[0]), by_snake)
        return self._recorders[game]

    @override
    def agents(self, game: int) -> tuple[str, ...]:
        return tuple(self._names[snake] for snake in self._seating[game])

    @override
    def get_attr(self, name: str, games: Sequence[int]) -> list[Any]:
        """An attribute of the `SnakeParallelEnv`s that show these games."""
        return [getattr(self._game(game), name) for game in games]

    @override
    def set_attr(self, name: str, value: Any, games: Sequence[int]) -> None:
        """Set an attribute of these environments. Of their constructor's arguments only `max_cycles` can be changed.

        Raises:
            ValueError: another argument of the constructor.
        """
        if name in [*KEYWORDS, "possible_agents", "agents"] and name != "max_cycles":
            raise ValueError(f"{name} of native games is fixed when they are made: pass it in env_kwargs")
        for game in games:
            setattr(self._game(game), name, value)
            self._max_cycles[game] = self._game(game).max_cycles

    @override
    def env_method(self, name: str, games: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method of these environments.

        Raises:
            ValueError: `reset`, `step` or `set_state`, which would change the game without the VecEnv.
        """
        if name in ("reset", "step", "set_state"):
            raise ValueError(f"{name} of a single native game would change it without the VecEnv: call that of the VecEnv")
        return [getattr(self._game(game), name)(*args, **kwargs) for game in games]

    @override
    def render(self, games: Sequence[int]) -> list[Any]:
        return self.env_method("render", games)

    @override
    def close(self) -> None:
        """Close the windows of environments that were rendered."""
        for game in self._games.values():
            game.close()

    def headings(self, games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[np.int8]:
        """(B,) headings of the snakes on these seats."""
        headings: NDArray[np.int8] = self._engine.state.heading[games, self._seating[games, seats]]
        return headings

    def action_masks(self, actions: str) -> NDArray[np.int8]:
        """(E, N, A) for the next actions in seat order, for this action set."""
        if actions not in self._masks:
            self._masks[actions] = self._in_seat_order(self._engine.action_masks(actions))
        return self._masks[actions]

    def _in_seat_order(self, by_snake: NDArray[Any]) -> NDArray[Any]:
        return by_snake.reshape(-1, *by_snake.shape[2:]).take(self._slots, axis=0)

    def _by_seat(self, by_snake: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(by_snake, self._seating, axis=1)

    def _view(self, encoding: Encoding, actions: str) -> NativeView:
        key = (encoding, actions)
        if key not in self._views:
            self._views[key] = NativeView(self, self._rules, encoding, actions)
        return self._views[key]

    def _restart(self, games: NDArray[np.intp]) -> dict[GameSeat, dict[str, Any]]:
        """Restart these games and return their reset infos."""
        infos: dict[GameSeat, dict[str, Any]] = {}
        seeds = []
        for game in games.tolist():
            game_seed, order = next_game(self._env_seeds[game], self._started[game], self.seats)
            self._started[game] += 1
            self._recorders.pop(game, None)
            seeds.append(game_seed)
            if self._shuffled:
                self._seating[game] = order
            for seat, snake in enumerate(self._seating[game, : self._reported].tolist()):
                infos[game, seat] = {"game_seed": game_seed, "agent": self._names[snake]}
        self._slots = self._seating + self.seats * np.arange(self.num_games)[:, None]
        self._engine.reset(games, seeds)
        self._masks.clear()
        self._active[games] = True
        for encoding, written in self._written.items():  # of this turn, not yet returned
            buffer = self._engine.observe(encoding, self._buffers[encoding], games)
            written[games] = buffer[games[:, None], self._seating[games]]
        return infos

    def _final_info(self, game: int, seat: int) -> dict[str, Any]:
        (info,) = snake_infos(self._engine.state, game, [int(self._seating[game, seat])], self._names)
        info["turn"] = int(self._engine.state.turn[game])
        return info

    def _game(self, game: int) -> SnakeParallelEnv:
        if game not in self._games:
            self._games[game] = self._env.bind(self._engine.game(game))
        self._games[game].sync()
        return self._games[game]


class NativeView(View):
    """The games in one encoding and one action set."""

    def __init__(self, game_batch: NativeGameBatch, rules: Rules, encoding: Encoding, actions: str) -> None:
        self._game_batch, self._encoding, self._actions = game_batch, encoding, actions
        self.observation_space: gymnasium.Space[Any] = encoding.space_for(rules)
        self.action_space: gymnasium.Space[Any] = action_space(actions)

    @override
    def observations(self) -> NDArray[Any]:
        return self._game_batch.observations(self._encoding)

    @override
    def action_masks(self) -> NDArray[np.int8]:
        return self._game_batch.action_masks(self._actions)

    @override
    def decode(self, actions: NDArray[Any], games: NDArray[np.intp], seats: NDArray[np.intp]) -> NDArray[Any]:
        if self._actions == "absolute":
            return actions
        return to_absolute(actions, self._game_batch.headings(games, seats))
