"""SharedGame: several unmodified Stable-Baselines3 models that learn from the same games.

Each model's `learn()` runs as a coroutine (a greenlet) on one thread. When it steps its VecEnv, which shows its own seats of
the shared games, it waits until all other models have chosen their actions; then one turn is played for all.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from greenlet import getcurrent, greenlet
from numpy.typing import NDArray
from tqdm import tqdm

from adapters.games.game_batch import TimeStep
from adapters.games.seating import env_seeds
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.unpickling import Trust
from adapters.vec_env.buffers import activate
from adapters.vec_env.build import make_curried_games
from adapters.vec_env.curry import CurryVecEnv
from adapters.vec_env.learner_env import LearnerGameBatch, SeatNames
from adapters.vec_env.sb3_internals import reset_when_learning
from snake_pz.players import SeatedPlayer
from snake_pz.ranges import seed_sequence

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm

    from adapters.games.checked_env import AnyParallelEnv

Agents = str | tuple[str, ...]
"""A learner as a key of a dict: its agent; for a learner of several agents all of them or any one."""

T = TypeVar("T")


class _Reset(NamedTuple):
    """A learner's first request. All later ones are actions (E, its seats, *action)."""

    seeds: Sequence[int | None]
    options: Sequence[dict[str, Any]]


@dataclass(eq=False)
class _Learner:
    """A model that learns."""

    seats: NDArray[np.intp]  # its seats
    env: CurryVecEnv
    model: BaseAlgorithm
    coroutine: greenlet
    request: Any = None  # its request for the next turn; None before the first
    frozen: SeatedPlayer | None = None  # plays its seats after it has finished


class SharedGame:
    """Games in which several Stable-Baselines3 models learn together, each with its own policy.

        game = SharedGame(learners=["snake_0", "snake_1", "snake_2"], opponent="greedy")
        ppo = PPO("MlpPolicy", game.learner_env("snake_0"))
        dqn = DQN("MlpPolicy", game.learner_env("snake_1", "snake_2"))  # one policy for two snakes
        game.learn({"snake_0": ppo, ("snake_1", "snake_2"): dqn}, 1_000_000)

    The models are unmodified, each with its own algorithm, settings, logger, callbacks and checkpoints. A game restarts when
    all learners are out of it. The steps in which a model only waits for that are padding, which is not stored (see
    `adapters.vec_env.buffers`) but counted as timesteps. On the "supersuit" backend agents may have different spaces.

    Args:
        opponent: the opponents on the other seats, as in `make_sb3_env`; None if there are no other seats. An opponent has the
            spaces of the agent that it plays.
        learners: names of the learning agents. Agents never change seats.
        env: the game, as in `make_sb3_env`.
        env_kwargs: arguments for the environment's constructor.
        num_games: number of games played side by side.
        backend: as in `make_sb3_env`.
        num_workers: as in `make_sb3_env`.
        deterministic: as in `make_sb3_env`.
        device: as in `make_sb3_env`.
        trust: as in `make_sb3_env`.
        seed: seed of games, opponents and their actions. A run repeats exactly if all models are seeded too, `PPO(seed=...)`.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        opponent: Any = None,
        *,
        learners: Sequence[str],
        env: AnyParallelEnv | Callable[..., AnyParallelEnv] | str | None = None,
        env_kwargs: dict[str, Any] | None = None,
        num_games: int = 8,
        backend: Literal["auto", "native", "supersuit"] = "auto",
        num_workers: int = 0,
        deterministic: bool = False,
        device: torch.device | str = "auto",
        trust: Trust = False,
        seed: int | None = None,
    ) -> None:
        if isinstance(learners, (str, int)):
            raise ValueError(f"learners of a SharedGame must be a list of agent names, got {learners!r}")
        self.learners = tuple(learners)
        self._seed = seed  # until the first reset
        self._streams = seed_sequence(seed)  # of the frozen learners
        self._game_batch, self._lineup, self._resolve = make_curried_games(
            opponent,
            env=env,
            env_kwargs=env_kwargs,
            num_games=num_games,
            learners=list(learners),
            backend=backend,
            num_workers=num_workers,
            deterministic=deterministic,
            device=device,
            trust=trust,
            different_spaces=True,
        )
        self._who = ["learner"] * len(self.learners)  # by seat, for infos
        self._learner_envs: dict[tuple[str, ...], CurryVecEnv] = {}
        self._time_step: TimeStep | None = None  # of the running games
        self._learning: dict[tuple[str, ...], _Learner] = {}  # by agents, while learn() runs

    def learner_env(self, *agents: str) -> CurryVecEnv:
        """The VecEnv of one learner that plays these agents, the same object on every call.

        It can be stepped only by its model during `learn`, unless it plays all learning agents. Closing it does not close the
        games.

        Raises:
            ValueError: the agents are not learners, one of them has another VecEnv, or their spaces differ.
        """
        if agents in self._learner_envs:
            return self._learner_envs[agents]
        if not agents or len(set(agents)) < len(agents) or not set(agents) <= set(self.learners):
            raise ValueError(f"learner_env takes one or several of the learners {list(self.learners)}, got {list(agents)}")
        if taken := [other for other in self._learner_envs if set(other) & set(agents)]:
            raise ValueError(f"an agent has one VecEnv only: there is one for {list(taken[0])}, got {list(agents)}")
        seats = self._seats(agents).tolist()
        others = [seat for seat in range(len(self.learners)) if seat not in seats]
        game_batch = LearnerGameBatch(
            self._game_batch,
            seats,
            reset=lambda seeds, options: self._submit(agents, _Reset(seeds, options)),
            step=partial(self._submit, agents),
        )
        names = SeatNames(lambda game: [*(self._who[seat] for seat in others), *self._lineup.names(game)])
        self._learner_envs[agents] = CurryVecEnv(game_batch, names, _refuse_opponents)
        self._learner_envs[agents].padded = len(self.learners) > 1
        return self._learner_envs[agents]

    port = learner_env  # its former name

    def set_opponent(self, spec: Any, when: Literal["restart", "now"] = "restart") -> None:
        """Replace the opponents, as `CurryVecEnv.set_opponent`."""
        self._lineup.set_opponents(self._resolve(spec), when)

    def learn(
        self,
        models: Mapping[Agents, BaseAlgorithm],
        total_timesteps: int | Mapping[Agents, int],
        *,
        callbacks: Mapping[Agents, Any] | None = None,
        log_interval: int | None = None,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
    ) -> SharedGame:
        """Run `learn()` of all models together, from new games.

        A model that has finished its steps or was ended by its callback plays on frozen, sampling its actions, until the last
        model has finished. An exception in one model, or KeyboardInterrupt, stops all (their `finally` blocks run) and is
        raised here; the models stay usable and can continue learning.

        Args:
            models: the models by agents, each made on the `learner_env` of these agents.
            total_timesteps: steps of each model, counted per agent and game; or a dict by agents.
            callbacks: callbacks by agents. Callbacks that evaluate need their own environment.
            log_interval: as for the models' `learn()`; None for the default of each model.
            progress_bar: whether to show the progress of the model that needs most turns.
            reset_num_timesteps: as for the models' `learn()`.

        Raises:
            ValueError: a model was not made on its VecEnv or cannot leave out padding, or a learner has no model.
            RuntimeError: `learn` is running, or a callback resets a model's VecEnv or steps that of another model.
        """
        if self._learning:
            raise RuntimeError("learn() is running already: it cannot be called by a callback")
        models_by_agents = self._models(models)
        called = self._by_agents(callbacks or {}, "callbacks")
        if isinstance(total_timesteps, Mapping):
            steps = self._by_agents(total_timesteps, "total_timesteps")
            if missing := [agents for agents in models_by_agents if agents not in steps]:
                raise ValueError(f"total_timesteps must say how many for every model, missing {missing}")
        else:
            steps = dict.fromkeys(models_by_agents, total_timesteps)
        if len(self.learners) > 1:
            for agents, model in models_by_agents.items():  # one learner alone has no padding
                activate(model, self._learner_envs[agents].active)

        more: dict[str, Any] = {} if log_interval is None else {"log_interval": log_interval}
        learners: dict[tuple[str, ...], _Learner] = {}
        for agents, model in models_by_agents.items():
            learn = partial(model.learn, steps[agents], reset_num_timesteps=reset_num_timesteps, **more)
            coroutine = greenlet(partial(learn, callback=called.get(agents), tb_log_name="+".join(agents)))
            learners[agents] = _Learner(self._seats(agents), self._learner_envs[agents], model, coroutine)
            reset_when_learning(model)
            for seat in learners[agents].seats.tolist():
                self._who[seat] = type(model).__name__
        longest = max(models_by_agents, key=lambda agents: steps[agents] / len(agents))
        with tqdm(total=steps[longest], unit=" steps", unit_scale=True, disable=not progress_bar) as bar:
            self._play(learners, lambda: bar.update(min(self._learner_envs[longest].num_envs, bar.total - bar.n)))
        return self

    def close(self) -> None:
        """Close the games. May be called again."""
        for env in self._learner_envs.values():
            env.close()
        self._game_batch.close()

    # The coroutines

    def _play(self, learners: dict[tuple[str, ...], _Learner], after_turn: Callable[[], object]) -> None:
        """Play turn by turn until all models have finished."""
        time_step: TimeStep | None = None
        try:
            self._learning = learners
            while True:
                for learner in learners.values():
                    if not learner.coroutine.dead:
                        # Runs until it requests the next turn or has finished.
                        learner.coroutine.switch(*([] if time_step is None else [time_step]))
                        if learner.coroutine.dead:
                            learner.frozen = self._frozen(learner)
                waiting = [learner for learner in learners.values() if not learner.coroutine.dead]
                if not waiting:
                    return
                if time_step is None:
                    time_step = self._reset([learner.request for learner in waiting])
                else:
                    time_step = self._step([(learner.seats, learner.request) for learner in waiting])
                    after_turn()
        except BaseException as error:
            for learner in learners.values():
                try:
                    if not learner.coroutine.dead:
                        learner.coroutine.throw()  # GreenletExit
                except BaseException as another:  # from a callback that cleans up
                    error.add_note(f"When {type(learner.model).__name__} was stopped for this, it raised {another!r}")
            raise
        finally:
            self._learning = {}

    def _frozen(self, learner: _Learner) -> SeatedPlayer:
        """A frozen copy of a model that has finished, to play its seats. It is not recurrent: such models cannot learn here."""
        seen = learner.env.observation_space
        player = PolicyOpponent(learner.model, shown=[seen], device=learner.model.device)
        (stream,) = self._streams.spawn(1)
        player.seed(int(stream.generate_state(1)[0]))
        return SeatedPlayer(player, self._game_batch)

    def _submit(self, agents: tuple[str, ...], request: _Reset | NDArray[Any]) -> TimeStep:
        """Called by a learner's VecEnv: wait for the requests of all others and return the turn that results."""
        learner = self._learning.get(agents)
        if learner is None and set(agents) == set(self.learners):  # there are no others
            return self._reset([request]) if isinstance(request, _Reset) else self._step([(self._seats(agents), request)])
        if learner is None or getcurrent() is not learner.coroutine:
            raise RuntimeError(
                f"the VecEnv of {list(agents)} can be stepped only by its model during SharedGame.learn, because the other "
                "learners have to act too"
            )
        if isinstance(request, _Reset) and learner.request is not None:
            raise RuntimeError(
                f"the VecEnv of {list(agents)} cannot be reset while models learn, because others play these games: give "
                "EvalCallback and the like an environment of their own, such as that of a SharedGame with one learner"
            )
        learner.request = request
        assert learner.coroutine.parent is not None
        time_step: TimeStep = learner.coroutine.parent.switch()
        return time_step

    # The games

    def _reset(self, resets: list[_Reset]) -> TimeStep:
        seeds = [self._seed, *(reset.seeds[0] for reset in resets)]  # the seeds of all games follow from the first
        seeds_of_games: list[int | None] = [None] * self._game_batch.num_games
        if any(seed is not None for seed in seeds):
            entropy = [number for at, seed in enumerate(seeds) if seed is not None for number in (at, seed)]
            games, opponents, self._streams = np.random.SeedSequence(entropy).spawn(3)
            seeds_of_games = [*env_seeds(games, self._game_batch.num_games)]
            self._lineup.seed(opponents)
        options = [dict(ChainMap(*of_game)) for of_game in zip(*(reset.options for reset in resets), strict=True)]
        self._time_step = self._game_batch.reset(seeds_of_games, options)
        self._seed = None
        self._lineup.restart(np.arange(self._game_batch.num_games))
        return self._time_step

    def _step(self, actions: list[tuple[NDArray[np.intp], NDArray[Any]]]) -> TimeStep:
        assert self._time_step is not None
        before, (_, some) = self._time_step, actions[0]
        joint = np.zeros((self._game_batch.num_games, self._game_batch.seats, *some.shape[2:]), some.dtype)
        for seats, chosen in actions:
            joint[:, seats] = chosen
        slots = np.arange(before.active.size).reshape(before.active.shape)
        for learner in self._learning.values():
            acting = slots[:, learner.seats][before.active[:, learner.seats]]
            if learner.frozen is not None and len(acting):
                joint[np.divmod(acting, self._game_batch.seats)] = learner.frozen.act(acting)
        self._lineup.act(joint, before.active)
        self._time_step = self._game_batch.step(joint)
        self._lineup.restart(np.flatnonzero(self._time_step.restarted))
        return self._time_step

    # Dicts by agents

    def _seats(self, agents: tuple[str, ...]) -> NDArray[np.intp]:
        return np.array([self.learners.index(agent) for agent in agents])

    def _by_agents(self, by_agents: Mapping[Agents, T], what: str) -> dict[tuple[str, ...], T]:
        """The same dict with all agents of a VecEnv as keys, in the order of the VecEnvs."""
        found: dict[tuple[str, ...], T] = {}
        for key, value in by_agents.items():
            names = {key} if isinstance(key, str) else set(key)
            fits = [
                agents for agents in self._learner_envs if names == set(agents) or (len(names) == 1 and names <= set(agents))
            ]
            if not fits:
                raise ValueError(
                    f"{what}: {key!r} has no VecEnv in this game, whose learner_envs are for {list(self._learner_envs)}"
                )
            if fits[0] in found:
                raise ValueError(f"{what}: {key!r} is the second entry for the VecEnv of {list(fits[0])}")
            found[fits[0]] = value
        return {agents: found[agents] for agents in self._learner_envs if agents in found}

    def _models(self, models: Mapping[Agents, BaseAlgorithm]) -> dict[tuple[str, ...], BaseAlgorithm]:
        models_by_agents = self._by_agents(models, "models")
        learning = [agent for agents in models_by_agents for agent in agents]
        if idle := [agent for agent in self.learners if agent not in learning]:
            raise ValueError(
                f"every learner needs a model, but there is none for {idle}: make one on its learner_env, or take it out of "
                "the game's `learners`, so that an opponent plays it"
            )
        for agents, model in models_by_agents.items():
            env = model.get_env()
            if env is None or env.unwrapped is not self._learner_envs[agents]:
                raise ValueError(
                    f"the model of {list(agents)} must be made on its VecEnv of this game, {type(model).__name__}(..., "
                    f"game.learner_env({', '.join(map(repr, agents))})), but its environment is {env}"
                )
        return models_by_agents


def _refuse_opponents(spec: Any) -> Any:
    raise ValueError("the opponents of a learner_env are those of its SharedGame: call set_opponent of that")
