"""curried_env_test catches every breach of the contract, each by a sentence of its own: VecEnvs broken in one way."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from adapters import curried_env_test
from adapters.sb3 import make_sb3_env
from adapters.testing.contract import POINTS
from snake_pz import snake_v0
from snake_pz.env import SnakeParallelEnv
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, ScriptedEnv

torch.set_num_threads(1)


def raw() -> ScriptedEnv:
    return ScriptedEnv(SCRIPTS["mixed games"], render_mode="rgb_array")


def masked() -> ScriptedEnv:
    return ScriptedEnv(SCRIPTS["mixed games"], masks="observation")


def snake() -> SnakeParallelEnv:
    return snake_v0.parallel_env(width=7, height=7, num_snakes=2, max_cycles=12)


def curry(opponent: Any, make_parallel_env: Callable[[], Any] = raw) -> Any:
    return make_sb3_env(opponent, env=make_parallel_env, num_games=3)


class Mutant(VecEnvWrapper):
    """The VecEnv as it should be; subclasses break it."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.last: Any = None

    @property
    def reset_infos(self) -> Any:
        return self.venv.reset_infos

    @reset_infos.setter
    def reset_infos(self, infos: Any) -> None:
        pass

    def reset(self) -> Any:
        self.last = None
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.breaks(*self.venv.step_wait())

    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return observations, rewards, dones, infos

    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        self.venv.set_opponent(spec, when)


# 1: episodes


class DoneOneStepLate(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        late = np.zeros_like(dones) if self.last is None else self.last
        self.last = dones
        return observations, rewards, late, infos


class RewardOfTheLastStep(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        late = np.zeros_like(rewards) if self.last is None else self.last
        self.last = rewards
        return observations, late, dones, infos


class InEveryInfo(Mutant):
    """Changes infos of ended games by `change`."""

    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for env in np.flatnonzero(dones):
            self.change(infos[env], observations[env])
        return observations, rewards, dones, infos

    def change(self, info: dict[str, Any], following: Any) -> None:
        raise NotImplementedError


class EpisodeTooLong(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["episode"]["l"] += 1


class EpisodeReturnOff(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["episode"]["r"] += 0.01


class NoEpisode(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        del info["episode"]


class EpisodeBeforeTheEnd(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for info in infos:
            info.setdefault("episode", {"r": 0.0, "l": 1, "t": 0.0})
        return observations, rewards, dones, infos


class AlwaysSuccessful(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["is_success"] = 1.0


class NotMonitored(Mutant):
    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


# 2 and 3: what infos say of the end


class NoTerminalObservation(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        del info["terminal_observation"]


class ZeroTerminalObservation(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["terminal_observation"] = np.zeros_like(following)


class TerminalObservationOfTheNextGame(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["terminal_observation"] = following.copy()


class TerminalObservationOfSomebodyElse(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["terminal_observation"] = info["terminal_observation"] + 1


class NeverTruncated(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["TimeLimit.truncated"] = False


class TruncationForgotten(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        del info["TimeLimit.truncated"]


class AlwaysTruncated(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        info["TimeLimit.truncated"] = True


# 4: no ghost step


class GhostStep(InEveryInfo):
    def change(self, info: dict[str, Any], following: Any) -> None:
        following[:] = info["terminal_observation"]


class StaleObservation(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        stale = observations if self.last is None else np.where(dones[:, None], observations, self.last)
        self.last = observations
        return stale, rewards, dones, infos


# 5: seeds


class SeedIgnored(Mutant):
    def seed(self, seed: int | None = None) -> Any:
        self.venv.seed(None)
        return [seed] * self.num_envs


class SeedReturnsAnything(Mutant):
    def seed(self, seed: int | None = None) -> Any:
        self.venv.seed(seed)
        return self.venv.seed(None)


class EverySeedIsOne(Mutant):
    def seed(self, seed: int | None = None) -> Any:
        self.venv.seed(1)
        return [seed] * self.num_envs


class SeededWithoutBeingAsked(Mutant):
    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        venv.seed(0)


class OpponentsNotReseeded(Mutant):
    def __init__(self, venv: Any) -> None:
        super().__init__(venv)
        venv.lineup.seed = lambda sequence: None


class CopiesAreIdentical(Mutant):
    def seed(self, seed: int | None = None) -> Any:
        seeds = self.venv.seed(seed)
        self.venv._seeds = [seeds[0]] * self.num_envs
        return seeds


class WrongGameSeed(Mutant):
    @property
    def reset_infos(self) -> Any:
        return [{**info, "game_seed": info.get("game_seed", 0) + 1} for info in self.venv.reset_infos]

    @reset_infos.setter
    def reset_infos(self, infos: Any) -> None:
        pass


class NestedResetInfos(WrongGameSeed):
    @property
    def reset_infos(self) -> Any:
        return [{"seat_0": info} for info in self.venv.reset_infos]

    @reset_infos.setter
    def reset_infos(self, infos: Any) -> None:
        pass


# 6: attribute calls


class SetAttrOnAll(Mutant):
    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        self.venv.set_attr(name, value)


class GetAttrOfAll(Mutant):
    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return self.venv.get_attr(name)


class MethodOfAll(Mutant):
    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return self.venv.env_method(name, *args, **kwargs)


class HasNothing(Mutant):
    def has_attr(self, name: str) -> bool:
        return False


class NoRenderMode(Mutant):
    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.render_mode = None


# 7: nothing shared


class OneInfoForAll(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return observations, rewards, dones, [infos[0]] * self.num_envs


class OneResetInfoForAll(WrongGameSeed):
    @property
    def reset_infos(self) -> Any:
        return [self.venv.reset_infos[0]] * self.num_envs

    @reset_infos.setter
    def reset_infos(self, infos: Any) -> None:
        pass


class ReusedBuffer(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        if self.last is None:
            self.last = np.empty_like(observations)
        self.last[:] = observations
        return self.last, rewards, dones, infos


class ReusedInfo(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        self.last = self.last or {"steps": 0}
        self.last["steps"] += 1
        infos[0]["so far"] = self.last
        return observations, rewards, dones, infos


class ReadsWhatItReturned(Mutant):
    def breaks(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        if self.last is not None and not np.array_equal(*self.last):
            rewards = rewards + 1
        self.last = observations, observations.copy()
        return observations, rewards, dones, infos


# 8 to 10: opponents


@dataclass
class Passing:
    """An opponent that passes everything on; subclasses change something."""

    to: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.to, name)

    def act(self, observations: Any, slots: Any, action_masks: Any) -> Any:
        return self.to.act(observations, slots, action_masks)

    def reset(self, slots: Any) -> None:
        self.to.reset(slots)

    def seed(self, seed: int) -> None:
        self.to.seed(seed)


class Blind(Passing):
    def act(self, observations: Any, slots: Any, action_masks: Any) -> Any:
        return self.to.act(np.zeros_like(observations), slots, action_masks)


def one_call_per_seat(opponent: Any) -> Any:
    return curry([Passing(opponent) for _ in range(3)] if not isinstance(opponent, BasePolicy) else opponent)


def blind_opponents(opponent: Any) -> Any:
    return curry(Blind(opponent) if not isinstance(opponent, BasePolicy) else opponent)


class TheDeadPlayOn(Mutant):
    def __init__(self, venv: Any) -> None:
        super().__init__(venv)
        act = venv.lineup.act
        venv.lineup.act = lambda actions, active: act(actions, np.ones_like(active))


def live(opponent: Any, predict: Callable[[Any], Any], make_parallel_env: Any = raw) -> Any:
    """A live policy's `predict` in its stead."""
    return curry(predict if isinstance(opponent, BasePolicy) else opponent, make_parallel_env)


def flips_training_mode(opponent: Any) -> Any:
    return live(opponent, lambda seen: opponent.predict(seen)[0])


def draws_from_the_global_stream(opponent: Any) -> Any:
    return live(opponent, lambda seen: (opponent.predict(seen)[0], opponent.set_training_mode(True))[0])


def learns_on(opponent: Any) -> Any:
    def predict(seen: Any) -> Any:
        actions = opponent.predict(seen, deterministic=True)[0]
        opponent.set_training_mode(True)
        return actions

    return live(opponent, predict, snake)


class SwapsInTheMiddle(Mutant):
    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        self.venv.set_opponent(spec, "now")


class NeverSwaps(Mutant):
    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        self.venv._resolve(spec)


class NowIsLater(Mutant):
    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        self.venv.set_opponent(spec)


class RestartsUntold(Mutant):
    def __init__(self, venv: Any) -> None:
        super().__init__(venv)
        venv.lineup._reset = lambda where: None


# 12 and 13: closing, bad input


class CloseDoesNotReach(Mutant):
    def close(self) -> None:
        self.venv._closed = True


class CloseOnlyOnce(Mutant):
    def close(self) -> None:
        self.venv._check_open()
        self.venv.close()


class LeavesAProcess(Mutant):
    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        PROCESSES.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))


PROCESSES: list[subprocess.Popen[bytes]] = []


class OpenAfterClose(Mutant):
    def reset(self) -> Any:
        self.venv._closed = False
        return super().reset()


class StepBeforeReset(Mutant):
    def step_async(self, actions: Any) -> None:
        if self.venv.time_step is None:
            self.venv.reset()
        self.venv.step_async(actions)


class ForgivesActions(Mutant):
    def step_async(self, actions: Any) -> None:
        self.venv.step_async(np.asarray(actions) % NUM_ACTIONS)


class FailsInItsOwnWay(Mutant):
    def step_async(self, actions: Any) -> None:
        if len(actions) != self.num_envs:
            raise KeyError("seat_2")
        self.venv.step_async(actions)


class ForgivesOpponents(Mutant):
    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        try:
            super().set_opponent(spec, when)
        except (TypeError, ValueError):
            return


class RestartsOnNonsense(Mutant):
    def set_opponent(self, spec: Any, when: Any = "restart") -> None:
        try:
            super().set_opponent(spec, when)
        except (TypeError, ValueError):
            self.venv.reset()
            raise


# 14: masks


class MasksUnpackedNot(Mutant):
    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.observation_space = spaces.Dict({"observation": venv.observation_space})


class EverythingAllowed(Mutant):
    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        if name == "action_masks":
            return [np.ones(NUM_ACTIONS, bool)] * self.num_envs
        return self.venv.env_method(name, *args, indices=indices, **kwargs)


class MasksWhereNoneAre(Mutant):
    def has_attr(self, name: str) -> bool:
        return True


class Unmasked(Passing):
    uses_masks = False


def opponents_without_masks(opponent: Any) -> Any:
    return curry(Unmasked(opponent) if not isinstance(opponent, BasePolicy) else opponent, masked)


BREACHES = [
    (DoneOneStepLate, 1, "dones must be True as the agent's own end says, got False"),
    (RewardOfTheLastStep, 1, "the reward must be"),
    (EpisodeTooLong, 1, "the episode must have return and length"),
    (EpisodeReturnOff, 1, "the episode must have return and length"),
    (NoEpisode, 1, "got (None, None)"),
    (EpisodeBeforeTheEnd, 1, "report an episode, though none has ended"),
    (AlwaysSuccessful, 1, "is_success must be None, got 1.0"),
    (NotMonitored, 1, "env_is_wrapped(Monitor) must say True"),
    (NoTerminalObservation, 2, "terminal_observation is missing"),
    (ZeroTerminalObservation, 2, "got zeros"),
    (TerminalObservationOfTheNextGame, 2, "got the first of the next game"),
    (TerminalObservationOfSomebodyElse, 2, "got something else"),
    (NeverTruncated, 3, "TimeLimit.truncated must be True, got False"),
    (TruncationForgotten, 3, "TimeLimit.truncated must be True, got False"),
    (AlwaysTruncated, 3, "TimeLimit.truncated must be False, got True"),
    (GhostStep, 4, "shows the end of its game again where its next game should begin"),
    (StaleObservation, 4, "what the learner sees must be what the raw environment shows it"),
    (SeedIgnored, 5, "the same seed must play the same games"),
    (SeedReturnsAnything, 5, "seed must return the same for the same number alone"),
    (EverySeedIsOne, 5, "another seed must begin other games"),
    (SeededWithoutBeingAsked, 5, "without a seed games must be new"),
    (OpponentsNotReseeded, 5, "seed must reseed the opponents"),
    (CopiesAreIdentical, 5, "game seeds"),
    (WrongGameSeed, 5, "must begin as reset(seed="),
    (NestedResetInfos, 5, "must have game_seed and agent"),
    (SetAttrOnAll, 6, "set_attr and get_attr must keep to their indices"),
    (GetAttrOfAll, 6, "set_attr and get_attr must keep to their indices"),
    (MethodOfAll, 6, "env_method must give one answer per index"),
    (HasNothing, 6, "has_attr must find what set_attr has set"),
    (NoRenderMode, 6, "render_mode must be the environment's, 'rgb_array', got None"),
    (OneInfoForAll, 7, "infos must be one dict per environment"),
    (OneResetInfoForAll, 7, "reset_infos must be one dict per environment"),
    (ReusedBuffer, 7, "must not change later"),
    (ReusedInfo, 7, "must not change later"),
    (ReadsWhatItReturned, 7, "writing into what was returned"),
    (one_call_per_seat, 8, "at most once a step, was 3 times"),
    (TheDeadPlayOn, 8, "living enemy seats, got"),
    (blind_opponents, 8, "what their agents see and may do in the raw environment"),
    (flips_training_mode, 9, "training mode"),
    (draws_from_the_global_stream, 9, "torch's global random stream"),
    (learns_on, 9, "what it learned later changed the games"),
    (SwapsInTheMiddle, 10, "must change when their game restarts"),
    (NeverSwaps, 10, "sits down at a restart must hear of all"),
    (NowIsLater, 10, "sits down in the middle of the games must hear"),
    (RestartsUntold, 10, "sits down at a restart must hear of all 3 seats by reset, heard of 0"),
    (CloseDoesNotReach, 12, "close must reach all 3 environments, but reached 0"),
    (CloseOnlyOnce, 12, "close must work, and work again, but raised RuntimeError"),
    (LeavesAProcess, 12, "close must leave no process, but left"),
    (OpenAfterClose, 13, "reset after close must be refused, but was accepted"),
    (StepBeforeReset, 13, "a step before the first reset must be refused"),
    (ForgivesActions, 13, "actions outside the space must be refused, but was accepted"),
    (FailsInItsOwnWay, 13, "too few actions must be refused by a clear error, but raised KeyError"),
    (ForgivesOpponents, 13, "a list of more opponents than enemy seats must be refused"),
    (RestartsOnNonsense, 1, "the reward must be"),
    (MasksUnpackedNot, 14, "the spaces must be the environment's without masks"),
    (EverythingAllowed, 14, "action_masks() of environment 0 must be"),
    (opponents_without_masks, 8, "what their agents see and may do"),
    (MasksWhereNoneAre, 14, "action_masks must not exist"),
]
RAW = {MasksUnpackedNot: masked, EverythingAllowed: masked, opponents_without_masks: masked, learns_on: snake}


@pytest.mark.parametrize(("breach", "point", "sentence"), BREACHES, ids=lambda value: getattr(value, "__name__", ""))
def test_every_breach_of_the_contract_is_named(breach: Any, point: int, sentence: str) -> None:
    make_parallel_env = RAW.get(breach, raw)
    make_venv = (lambda opponent: breach(curry(opponent, make_parallel_env))) if isinstance(breach, type) else breach
    with pytest.raises(AssertionError) as error:
        curried_env_test(make_venv, make_parallel_env, num_steps=60)
    for process in PROCESSES:
        process.communicate(b"\n")
    PROCESSES.clear()
    assert re.match(rf"point {point} \({POINTS[point]}\): [^\n]*{re.escape(sentence)}", str(error.value)), error.value


def test_every_point_has_a_breach() -> None:
    assert {point for _, point, _ in BREACHES} == set(POINTS)


@pytest.mark.parametrize("make_parallel_env", [raw, masked])
def test_the_unbroken_one_passes(make_parallel_env: Any) -> None:
    curried_env_test(lambda opponent: Mutant(curry(opponent, make_parallel_env)), make_parallel_env, num_steps=60)


class Unrepeatable(ScriptedEnv):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=np.random.SeedSequence().entropy % 2**32, options=options)


def test_an_environment_that_does_not_repeat_itself_is_told_apart_from_a_broken_vec_env() -> None:
    with pytest.raises(AssertionError, match=r"the environment does not repeat itself.*generator that reset makes"):
        curried_env_test(lambda opponent: curry(opponent, Unrepeatable), Unrepeatable, num_steps=60)


def test_too_little_to_tell_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"num_steps=4 is too few.*two games"):
        curried_env_test(curry, raw, num_steps=4)
    with pytest.raises(ValueError, match="at least two games, so that they can be told apart, got 1"):
        curried_env_test(lambda opponent: make_sb3_env(opponent, env=raw, num_games=1), raw)
