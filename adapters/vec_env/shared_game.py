"""Several learners with policies of their own in one simulation: unmodified Stable-Baselines3 models that play each other.

Each model's `learn()` runs as a coroutine (a greenlet) on the one thread. Where it steps its VecEnv, which is a port of the
shared games, it waits until all the others have chosen their actions too; then one turn is played for all of them.
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
from adapters.games.seating import row_seeds
from adapters.opponents.policy import PolicyOpponent
from adapters.vec_env.buffers import activate
from adapters.vec_env.build import make_curried_games
from adapters.vec_env.curry import CurryVecEnv
from adapters.vec_env.learner_env import LearnerGameBatch, SeatNames
from adapters.vec_env.sb3_internals import reset_when_learning
from snake_pz.players import SeatedPlayer

if TYPE_CHECKING:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm

    from adapters.games.fixed_seats import AnyParallelEnv

Agents = str | tuple[str, ...]
"""What names a learner in a dict: its agent; or its agents, or any one of them, where it plays several."""

T = TypeVar("T")


class _Reset(NamedTuple):
    """What a port asks for first; after that it hands over actions (E, its seats, *action)."""

    seeds: Sequence[int | None]
    options: Sequence[dict[str, Any]]


@dataclass(eq=False)
class _Learner:
    """A model that learns, and what becomes of it."""

    seats: NDArray[np.intp]  # those that it plays
    port: CurryVecEnv
    model: BaseAlgorithm
    coroutine: greenlet
    request: Any = None  # what it waits with for the next turn; None before its first
    frozen: SeatedPlayer | None = None  # what plays on for it once it has learnt


class SharedGame:
    """Games in which several Stable-Baselines3 models learn at once, each a policy of its own.

        game = SharedGame(learners=["snake_0", "snake_1", "snake_2"], opponent="greedy")
        ppo = PPO("MlpPolicy", game.port("snake_0"))
        dqn = DQN("MlpPolicy", game.port("snake_1", "snake_2"))  # one policy for two snakes
        game.learn({"snake_0": ppo, ("snake_1", "snake_2"): dqn}, 1_000_000)

    The models are ordinary ones, with their own algorithm, settings, logger, callbacks and checkpoints. A game restarts when
    all learners are out of it; rows that only wait for that are kept out of what is learnt from (see `adapters.buffers`),
    but count as timesteps. Agents may have different spaces, on the "supersuit" backend.

    Args:
        opponent: who plays the other seats, as for `make_sb3_env`; None if there are none. Opponents see and act as the agent
            they play does.
        learners: the names of the agents that learn. Agents never change seats.
        env: as all that follow, as for `make_sb3_env`.
        seed: fixes games, opponents and their actions, as the models' own seeds do, which `PPO(seed=...)` sets. Both together,
            for all models, make a run repeatable.

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
        seed: int | None = None,
    ) -> None:
        if isinstance(learners, (str, int)):
            raise ValueError(f"learners of a SharedGame must be a list of agent names, got {learners!r}")
        self.learners = tuple(learners)
        self._seed = seed  # until the first reset
        self._streams = np.random.SeedSequence(seed)  # of the frozen learners
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
            different_spaces=True,
        )
        self._who = ["learner"] * len(self.learners)  # by seat, for infos
        self._ports: dict[tuple[str, ...], CurryVecEnv] = {}
        self._time_step: TimeStep | None = None  # of the running games
        self._learning: dict[tuple[str, ...], _Learner] = {}  # by port, while learn() runs

    def port(self, *agents: str) -> CurryVecEnv:
        """The VecEnv of one learner, which plays one agent or several; the same when asked again.

        It is stepped within `learn`. Only where it is the game's only port, for all learners, is it a VecEnv like any other.
        Its opponents are the game's, and closing it does not close them.

        Raises:
            ValueError: these are no learners, or one of them is in another port already, or their spaces differ.
        """
        if agents in self._ports:
            return self._ports[agents]
        if not agents or len(set(agents)) < len(agents) or not set(agents) <= set(self.learners):
            raise ValueError(f"a port is for one or several of the learners {list(self.learners)}, got {list(agents)}")
        if taken := [other for other in self._ports if set(other) & set(agents)]:
            raise ValueError(f"an agent can be in one port only: there is one for {list(taken[0])}, got {list(agents)}")
        seats = self._seats(agents).tolist()
        others = [seat for seat in range(len(self.learners)) if seat not in seats]
        game_batch = LearnerGameBatch(
            self._game_batch,
            seats,
            reset=lambda seeds, options: self._submit(agents, _Reset(seeds, options)),
            step=partial(self._submit, agents),
        )
        company = SeatNames(lambda game: [*(self._who[seat] for seat in others), *self._lineup.names(game)])
        self._ports[agents] = CurryVecEnv(game_batch, company, _refuse_opponents)
        self._ports[agents].padded = len(self.learners) > 1
        return self._ports[agents]

    def set_opponent(self, spec: Any, when: Literal["restart", "now"] = "restart") -> None:
        """Put other opponents on the enemy seats, as `CurryVecEnv.set_opponent` does."""
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
        """Let each model learn with its own `learn()`, all of them at once, from new games.

        One that has done its steps, or whose callback ended it, plays on as it is then, sampling its actions, until the last
        is done. An exception in one, or KeyboardInterrupt, stops all (their `finally` blocks run) and is raised here; the
        models can be used and can learn on.

        Args:
            models: by the agents that `port` was given; one of them is enough. Each was made on its port.
            total_timesteps: of each model, which counts one for each of its agents in each game; or by agents.
            callbacks: by agents, whatever a model's `learn()` takes. To evaluate, give them an environment of their own.
            log_interval: as for the models' `learn()`; None is what each of them has by itself.
            progress_bar: show one, of the model that needs most turns.
            reset_num_timesteps: as for the models' `learn()`.

        Raises:
            ValueError: a model was not made on its port or cannot leave out the rows that wait, or a learner has no model.
            RuntimeError: learning is under way, or a callback resets a port or plays that of another model.
        """
        if self._learning:
            raise RuntimeError("these games are being learnt from already: learn() cannot be called by a callback")
        by_port = self._models(models)
        called = self._by_port(callbacks or {}, "callbacks")
        if isinstance(total_timesteps, Mapping):
            steps = self._by_port(total_timesteps, "total_timesteps")
            if missing := [agents for agents in by_port if agents not in steps]:
                raise ValueError(f"total_timesteps must say how many for every model, missing {missing}")
        else:
            steps = dict.fromkeys(by_port, total_timesteps)
        if len(self.learners) > 1:  # else no row ever waits
            for agents, model in by_port.items():
                activate(model, self._ports[agents].active)

        more: dict[str, Any] = {} if log_interval is None else {"log_interval": log_interval}
        learners: dict[tuple[str, ...], _Learner] = {}
        for agents, model in by_port.items():
            learn = partial(model.learn, steps[agents], reset_num_timesteps=reset_num_timesteps, **more)
            coroutine = greenlet(partial(learn, callback=called.get(agents), tb_log_name="+".join(agents)))
            learners[agents] = _Learner(self._seats(agents), self._ports[agents], model, coroutine)
            reset_when_learning(model)
            for seat in learners[agents].seats.tolist():
                self._who[seat] = type(model).__name__
        longest = max(by_port, key=lambda agents: steps[agents] / len(agents))
        with tqdm(total=steps[longest], unit=" steps", unit_scale=True, disable=not progress_bar) as bar:
            self._play(learners, lambda: bar.update(min(self._ports[longest].num_envs, bar.total - bar.n)))
        return self

    def close(self) -> None:
        """Close the games. Calling it again does nothing."""
        for port in self._ports.values():
            port.close()
        self._game_batch.close()

    # The coroutines

    def _play(self, learners: dict[tuple[str, ...], _Learner], after_turn: Callable[[], object]) -> None:
        """Play turn by turn until no model learns any more."""
        time_step: TimeStep | None = None
        try:
            self._learning = learners
            while True:
                for learner in learners.values():
                    if not learner.coroutine.dead:
                        # It goes on with the turn that it waits for, until it waits for the next one or is done.
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
                        learner.coroutine.throw()  # a GreenletExit where it waits
                except BaseException as another:  # of a callback that was to tidy up
                    error.add_note(f"When {type(learner.model).__name__} was stopped for this, it raised {another!r}")
            raise
        finally:
            self._learning = {}

    def _frozen(self, learner: _Learner) -> SeatedPlayer:
        """A copy of a model that has learnt, which plays on; it keeps no state of a game, or it could not have learnt here."""
        seen = learner.port.observation_space
        player = PolicyOpponent(learner.model, shown=[seen], device=learner.model.device)
        (stream,) = self._streams.spawn(1)
        player.seed(int(stream.generate_state(1)[0]))
        return SeatedPlayer(player, self._game_batch)

    def _submit(self, agents: tuple[str, ...], request: _Reset | NDArray[Any]) -> TimeStep:
        """What a port calls: the turn that comes of its request and those of the others."""
        learner = self._learning.get(agents)
        if learner is None and set(agents) == set(self.learners):  # nobody to wait for
            return self._reset([request]) if isinstance(request, _Reset) else self._step([(self._seats(agents), request)])
        if learner is None or getcurrent() is not learner.coroutine:
            raise RuntimeError(
                f"the port of {list(agents)} can be played only by its model, while SharedGame.learn lets all models learn: "
                "the others have to act too"
            )
        if isinstance(request, _Reset) and learner.request is not None:
            raise RuntimeError(
                f"the port of {list(agents)} cannot be reset while models learn, because others are playing these games: give "
                "EvalCallback and the like an environment of their own, such as the port of a SharedGame with one learner"
            )
        learner.request = request
        assert learner.coroutine.parent is not None
        time_step: TimeStep = learner.coroutine.parent.switch()
        return time_step

    # The games

    def _reset(self, resets: list[_Reset]) -> TimeStep:
        seeds = [self._seed, *(reset.seeds[0] for reset in resets)]  # of a port's, one says it all: one number drew them
        seeds_of_rows: list[int | None] = [None] * self._game_batch.num_games
        if any(seed is not None for seed in seeds):
            entropy = [number for at, seed in enumerate(seeds) if seed is not None for number in (at, seed)]
            rows, opponents, self._streams = np.random.SeedSequence(entropy).spawn(3)
            seeds_of_rows = [*row_seeds(rows, self._game_batch.num_games)]
            self._lineup.seed(opponents)
        options = [dict(ChainMap(*of_game)) for of_game in zip(*(reset.options for reset in resets), strict=True)]
        self._time_step = self._game_batch.reset(seeds_of_rows, options)
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

    # What is named by agents

    def _seats(self, agents: tuple[str, ...]) -> NDArray[np.intp]:
        return np.array([self.learners.index(agent) for agent in agents])

    def _by_port(self, by_agents: Mapping[Agents, T], what: str) -> dict[tuple[str, ...], T]:
        """The same by the agents of ports, in their order."""
        found: dict[tuple[str, ...], T] = {}
        for key, value in by_agents.items():
            names = {key} if isinstance(key, str) else set(key)
            fits = [port for port in self._ports if names == set(port) or (len(names) == 1 and names <= set(port))]
            if not fits:
                raise ValueError(f"{what}: {key!r} has no port in this game, whose ports are for {list(self._ports)}")
            if fits[0] in found:
                raise ValueError(f"{what}: {key!r} is the second entry for the port of {list(fits[0])}")
            found[fits[0]] = value
        return {agents: found[agents] for agents in self._ports if agents in found}

    def _models(self, models: Mapping[Agents, BaseAlgorithm]) -> dict[tuple[str, ...], BaseAlgorithm]:
        by_port = self._by_port(models, "models")
        learning = [agent for agents in by_port for agent in agents]
        if idle := [agent for agent in self.learners if agent not in learning]:
            raise ValueError(
                f"every learner needs a model, but there is none for {idle}: make one on its port, or take it out of the "
                "game's `learners`, so that an opponent plays it"
            )
        for agents, model in by_port.items():
            env = model.get_env()
            if env is None or env.unwrapped is not self._ports[agents]:
                raise ValueError(
                    f"the model of {list(agents)} must be made on its port of this game, {type(model).__name__}(..., "
                    f"game.port({', '.join(map(repr, agents))})), but its environment is {env}"
                )
        return by_port


def _refuse_opponents(spec: Any) -> Any:
    raise ValueError("the opponents of a port are those of its SharedGame: call set_opponent of that")
