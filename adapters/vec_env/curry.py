"""CurryVecEnv: the learner seats of all games as a Stable-Baselines3 VecEnv; a line-up plays the other seats."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from typing_extensions import override

from adapters.games.game_batch import GameBatch, TimeStep
from adapters.games.seating import env_seeds
from adapters.opponents.protocol import Lineup, Opponent, Source
from adapters.placements import ranks, win_share
from adapters.vec_env import stack_checks
from adapters.vec_env.buffers import ActiveMask
from snake_pz.players import Observations, map_arrays
from snake_pz.ranges import seed_sequence

Indices = int | Iterable[int] | None
NO_MASKS = "these games have no action masks: an environment that has some must give them in the infos of reset, too"
STILL_IN = np.iinfo(np.int64).max


class CurryVecEnv(VecEnv):
    """E games seen from their learner seats. Environment e is seat e % num_learners of game e // num_learners.

    `dones[e]` is True in the learner's own last step. `infos[e]` of that step has

    - "terminal_observation": the learner's real last observation,
    - "TimeLimit.truncated": whether it was truncated and not terminated,
    - "episode": the exact sum of rewards `r`, the length `l` in steps, and the seconds `t` since the VecEnv was made, as from a
      `Monitor`,
    - "agent": the learner's name in the game, and "opponents": {agent: name of its opponent},
    - "placements": {agent: rank} as the environment reports it, else by survival: agents still in the game share first place,
      the others follow in the reverse order of leaving it,
    - "is_success", if the environment reports it or placements: 1.0 for first place, 1/m if m agents share it, else 0.0. SB3's
      success rates are its mean, the share of games won.

    With one learner the next observation is then the first of a new game. `reset_infos[e]` are the new game's infos, with
    "game_seed".

    With several learners a game restarts when the last of them is done. Until then the steps of the others are padding: the
    observation repeats, the reward is 0, the action is ignored, `dones` is False. The first step of the new game follows
    without another done. `active` tells padding from real steps. SB3's own buffers would store padding; the `Active` buffers of
    `adapters` leave it out. `reset` binds the buffer of the model that learns on this VecEnv, new or loaded, to `active`. SB3's
    `num_timesteps` and the statistics of `VecNormalize` count padding; `active.total` does not.

    `seed(s)` takes effect at the next `reset()` and fixes all games, the seating, the line-up and its opponents. Without a seed
    every game has fresh entropy, and a reset continues the current random streams.

    While the learner chooses its actions, opponents' networks may run in another thread, see `OpponentLineup`. Equal seeds give
    equal trajectories either way. By default it is done where it pays; `lineup.ahead.wanted = False` turns it off, True on. An
    error in that thread is raised by `step`, once; `close` ends the thread.

    Args:
        game_batch: the games. They are closed with this VecEnv.
        lineup: the opponents on the enemy seats of these games.
        resolve: converts the argument of `set_opponent` to one opponent or source per enemy seat.

    Attributes:
        active: which environments acted in the last step.
        time_step: the current time step of all seats; None before the first reset.
        padded: whether steps may be padding, as with several learners.

    Raises:
        ValueError: from `step`: actions of another shape, or outside a discrete space; from `reset`: a wrapper or algorithm
            that cannot be used with several learners (see `stack_checks.check`).
        RuntimeError: from `step` before `reset`, and from both after `close`.
    """

    def __init__(
        self,
        game_batch: GameBatch,
        lineup: Lineup,
        resolve: Callable[[Any], Sequence[Opponent | Source]] | None = None,
    ) -> None:
        if game_batch.num_learners < 1:
            raise ValueError(f"a VecEnv needs at least one learner seat, got games with {game_batch.num_learners}")
        self.game_batch = game_batch
        self.lineup = lineup
        self._resolve = resolve
        self.time_step: TimeStep | None = None  # of the running games
        self._joint_actions: NDArray[Any] | None = None  # between step_async and step_wait
        self._lineup_seed: np.random.SeedSequence | None = None
        self._closed = False
        self._started = time.time()
        num_envs = game_batch.num_games * game_batch.num_learners
        self._view = game_batch.view(game_batch.observation_space, game_batch.action_space)
        self._game_seats = np.divmod(np.arange(num_envs), game_batch.num_learners)  # (num_envs,) each
        self._agents: list[tuple[str, ...]] = [()] * game_batch.num_games  # by game, in seat order
        self._returns = np.zeros(num_envs, dtype=np.float64)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._left = np.full((game_batch.num_games, game_batch.seats), STILL_IN)  # the step in which each seat left
        self._warned = False
        self.padded = game_batch.num_learners > 1
        self.active = ActiveMask(num_envs)
        super().__init__(num_envs, game_batch.observation_space, game_batch.action_space)
        with suppress(AttributeError, KeyError):
            self.metadata["render_fps"] = game_batch.get_attr("metadata", [0])[0]["render_fps"]  # of VecVideoRecorder's films

    # The running games

    @override
    def reset(self) -> Observations:
        """Restart all games; returns observations (num_envs, *obs)."""
        self._check_open()
        learners = self.game_batch.num_learners
        self._warned |= stack_checks.check(
            self,
            self.active,
            padded=self.padded,
            channels_first=self.game_batch.snake_rules is not None,
            warn=not self._warned,
        )
        if self._lineup_seed is not None:
            self.lineup.seed(self._lineup_seed)
        time_step = self.game_batch.reset(self._seeds[::learners], self._options[::learners])
        self._lineup_seed = None
        self._reset_seeds()
        self._reset_options()
        self.time_step, self._joint_actions = time_step, None
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._take_restarts(time_step)
        self.lineup.restart(np.arange(self.game_batch.num_games))
        self.lineup.foresee(time_step.active)
        return map_arrays(self._of_learners, time_step.observations)

    @override
    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the learner's actions (num_envs, *action) and ask the line-up for those of the enemy seats."""
        self._check_open()
        if self.time_step is None:
            raise RuntimeError("no game has begun: call reset() before step()")
        if self._joint_actions is not None:
            raise RuntimeError("a step is under way already: call step_wait() before the next step_async()")
        own = self._view.decode(self._checked_actions(actions), *self._game_seats)
        games, seats, learners = self.game_batch.num_games, self.game_batch.seats, self.game_batch.num_learners
        joint = np.zeros((games, seats, *own.shape[1:]), dtype=own.dtype)
        joint[:, :learners] = own.reshape(games, learners, *own.shape[1:])
        self.lineup.act(joint, self.time_step.active)
        self._joint_actions = joint

    @override
    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play one turn; returns observations (num_envs, *obs), rewards and dones (num_envs,) and infos."""
        self._check_open()
        before, joint = self.time_step, self._joint_actions
        if before is None or joint is None:
            raise RuntimeError("no step is under way: call step_async() before step_wait()")
        self.time_step = self._joint_actions = (
            None  # if the step fails, some games may have advanced: then only a reset is possible
        )
        time_step = self.time_step = self.game_batch.step(joint)
        rewards = self._of_learners(time_step.rewards)
        dones = self._of_learners(time_step.terminated | time_step.truncated)
        self._returns += rewards
        acted = self._of_learners(before.active)
        self._lengths += acted
        self.active.step(acted, acted & (self._lengths == 1))
        self._left[time_step.terminated | time_step.truncated] = self.active.steps
        infos = self._step_infos(time_step, dones)
        self._returns[dones] = 0.0
        self._lengths[dones] = 0
        self._take_restarts(time_step)
        if time_step.restarted.any():
            self.lineup.restart(np.flatnonzero(time_step.restarted))
        self.lineup.foresee(time_step.active)
        return map_arrays(self._of_learners, time_step.observations), rewards, dones, infos

    @override
    def close(self) -> None:
        """Close all environments. May be called again."""
        if not self._closed:
            self._closed = True
            self.lineup.close()
            self.game_batch.close()

    # Opponents, seeds, masks

    def set_opponent(self, spec: Any, when: Literal["restart", "now"] = "restart") -> None:
        """Replace the opponents.

        Args:
            spec: as `opponent` of `make_sb3_env`.
            when: "restart": in each game when it restarts; "now": in the running games.

        Raises:
            ValueError: another `when`, `spec` cannot be resolved, or all agents learn. The opponents then stay.
            RuntimeError: closed, or made without `resolve`.
        """
        self._check_open()
        if when not in ("restart", "now"):
            raise ValueError(f"when must be 'restart' or 'now', got {when!r}")
        if self.game_batch.seats == self.game_batch.num_learners:
            raise ValueError(f"there is no seat for an opponent: all {self.game_batch.seats} agents of these games learn")
        if self._resolve is None:
            raise RuntimeError("this CurryVecEnv was built without `resolve`: call lineup.set_opponents with Opponent objects")
        self.lineup.set_opponents(self._resolve(spec), when)

    @override
    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed games, seating, line-up and opponents, from the next reset on.

        Args:
            seed: a whole number of at least 0; None for fresh entropy.

        Returns:
            The seed of every environment, from which `next_game` derives those of its games; the same for learners of one game.

        Raises:
            ValueError: `seed` is not a whole number of at least 0.
        """
        games, self._lineup_seed = seed_sequence(seed).spawn(2)
        seeds = env_seeds(games, self.game_batch.num_games)
        self._seeds = [seed for seed in seeds for _ in range(self.game_batch.num_learners)]
        return list(self._seeds)

    @override
    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Set the options for the environments' next `reset`: one dict for all, or a list with one per environment."""
        if isinstance(options, list) and len(options) != self.num_envs:
            raise ValueError(f"options must be one dict or a list of {self.num_envs} dicts, got a list of {len(options)}")
        super().set_options(options)

    def action_masks(self) -> NDArray[np.bool_]:
        """(num_envs, A) masks of the learner's next actions, True = allowed.

        Raises:
            AttributeError: these games have no masks.
        """
        masks = self._present_turn("action_masks()").action_masks
        if masks is None:
            raise AttributeError(NO_MASKS)
        return self._of_learners(masks).astype(np.bool_)

    # The attribute calls of VecEnv

    @override
    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environments. "render_mode" and "action_masks" are answered here."""
        envs = self._env_indices(indices)
        if attr_name == "render_mode":
            stack_checks.check_images()
            return [self.game_batch.render_mode] * len(envs)
        if attr_name == "action_masks":
            self._check_masks_offered()
            return [partial(self._action_mask, env) for env in envs]
        return self._per_env(envs, partial(self.game_batch.get_attr, attr_name))

    @override
    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the environments."""
        self._check_open()
        self.game_batch.set_attr(attr_name, value, self._games_of(self._env_indices(indices)))

    @override
    def env_method(self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any) -> list[Any]:
        """Call a method of the environments, once per game. "action_masks" is answered here."""
        envs = self._env_indices(indices)
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[env] for env in envs]
        if method_name == "render" and not method_args and not method_kwargs:
            return self._per_env(envs, self.game_batch.render)
        return self._per_env(envs, lambda games: self.game_batch.env_method(method_name, games, *method_args, **method_kwargs))

    @override
    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None) -> list[bool]:
        """True for `Monitor`, because infos have "episode"; False for other wrappers."""
        return [issubclass(wrapper_class, Monitor)] * len(self._env_indices(indices))

    @override
    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """One RGB array per environment."""
        if self.render_mode != "rgb_array":
            warnings.warn(f"images need render_mode='rgb_array', but the environments have {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        return self._per_env(list(range(self.num_envs)), self.game_batch.render)

    # Helpers

    def _of_learners(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy (num_envs, ...) of the learner seats of an array (E, N, ...)."""
        return array[:, : self.game_batch.num_learners].copy().reshape(self.num_envs, *array.shape[2:])

    def _step_infos(self, time_step: TimeStep, dones: NDArray[np.bool_]) -> list[dict[str, Any]]:
        learners = self.game_batch.num_learners
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for (game, seat), said in time_step.infos.items():
            if seat < learners:
                infos[game * learners + seat].update(said)
        for info in infos:
            info["TimeLimit.truncated"] = False
            info.pop("episode", None)  # SB3 would take an environment's own entries for ours
            info.pop("terminal_observation", None)
        ended = time_step.terminated | time_step.truncated
        final_index = (np.cumsum(ended) - 1).reshape(ended.shape)  # index in final_observations
        for env in np.flatnonzero(dones).tolist():
            key = divmod(env, learners)
            infos[env]["TimeLimit.truncated"] = bool(time_step.truncated[key] and not time_step.terminated[key])
            take_last = partial(np.take, indices=final_index[key], axis=0)
            infos[env]["terminal_observation"] = map_arrays(take_last, time_step.final_observations)
            infos[env]["episode"] = {
                "r": float(self._returns[env]),
                "l": int(self._lengths[env]),
                "t": round(time.time() - self._started, 6),
            }
            game, seat = key
            agents = self._agents[game]
            infos[env]["agent"] = agents[seat]
            infos[env]["opponents"] = dict(zip(agents[learners:], self.lineup.names(game), strict=True))
            placements = infos[env].get("placements")
            if placements is None:
                infos[env]["placements"] = self._survival(game)
            elif isinstance(placements, Mapping) and agents[seat] in placements:
                infos[env].setdefault("is_success", win_share(placements, agents[seat]))
        return infos

    def _survival(self, game: int) -> dict[str, int]:
        """Ranks by survival: 1 + number of agents that stayed longer."""
        return dict(zip(self._agents[game], ranks(-self._left[game]).tolist(), strict=True))

    def _take_restarts(self, time_step: TimeStep) -> None:
        learners = self.game_batch.num_learners
        self._left[time_step.restarted] = STILL_IN
        for game in np.flatnonzero(time_step.restarted).tolist():
            self._agents[game] = self.game_batch.agents(game)
            for seat in range(learners):
                self.reset_infos[game * learners + seat] = dict(time_step.reset_infos.get((game, seat), {}))

    def _checked_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """A copy of the actions in the action space's dtype, checked."""
        array, space = np.asarray(actions), self.action_space
        expected = (self.num_envs, *(space.shape or ()))
        if array.shape != expected:
            raise ValueError(f"actions must have shape {expected}, one action per environment, got {array.shape}")
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
            high = space.n if isinstance(space, spaces.Discrete) else getattr(space, "nvec", 2)
            kinds = "iubf" if isinstance(space, spaces.MultiBinary) else "iub"  # SB3 gives bits as floats
            if array.dtype.kind not in kinds or np.any((array < 0) | (array >= high) | (array % 1 != 0)):
                raise ValueError(f"actions must be integers within {space}, got {array.tolist()} of dtype {array.dtype}")
        return array.astype(space.dtype)

    def _check_masks_offered(self) -> None:
        # sb3-contrib asks before the first reset, when masks in infos are not known yet: discrete spaces then count as masked.
        offered = isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))
        if not offered or (self.time_step is not None and self.time_step.action_masks is None):
            raise AttributeError(NO_MASKS)

    def _action_mask(self, env: int) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self.action_masks()[env]
        return mask

    def _env_indices(self, indices: Indices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        envs = [int(indices)] if isinstance(indices, (int, np.integer)) else [int(index) for index in indices]
        if outside := [env for env in envs if not -self.num_envs <= env < self.num_envs]:
            raise IndexError(f"indices must be below {self.num_envs}, the number of environments, got {outside}")
        return [env % self.num_envs for env in envs]

    def _games_of(self, envs: list[int]) -> list[int]:
        """The games of these environments, each once."""
        return list(dict.fromkeys(env // self.game_batch.num_learners for env in envs))

    def _per_env(self, envs: list[int], ask: Callable[[list[int]], list[Any]]) -> list[Any]:
        """Ask each game once; returns one answer per environment."""
        self._check_open()
        games = self._games_of(envs)
        answers = dict(zip(games, ask(games), strict=True))
        return [answers[env // self.game_batch.num_learners] for env in envs]

    def _present_turn(self, call: str) -> TimeStep:
        self._check_open()
        if self.time_step is None:
            raise RuntimeError(f"no game has begun: call reset() before {call}")
        return self.time_step

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this VecEnv is closed: make a new one")
