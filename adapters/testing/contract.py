"""curried_env_test checks the contract of a curried VecEnv, as PettingZoo's `parallel_api_test` checks an environment."""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

from adapters.testing.reference import Facts, MakeParallelEnv, RawGame, Witness, measure, one_of, same, trajectory
from snake_pz.players import Observations

MakeVenv = Callable[[Any], VecEnv]

POINTS = {
    1: "episodes",
    2: "terminal observations",
    3: "truncation",
    4: "no ghost step",
    5: "seeds",
    6: "attribute calls",
    7: "nothing shared",
    8: "one batch per opponent",
    9: "frozen opponents",
    10: "changing opponents",
    12: "closing",
    13: "bad input",
    14: "spaces and action masks",
}
"""What the points of the contract are about; 11, how opponents sample, cannot be seen from outside."""


def curried_env_test(make_venv: MakeVenv, make_parallel_env: MakeParallelEnv, *, num_steps: int = 300, seed: int = 0) -> None:
    """Play a curried VecEnv and its raw environments side by side and compare them.

        def make_venv(opponent):
            return make_sb3_env(opponent, env=my_game.parallel_env, num_games=2)

        curried_env_test(make_venv, my_game.parallel_env)

    All agents play one fixed function of their observations. The raw environments are reset with the game seeds that the VecEnv
    reports; observations, rewards and ends must then be equal. The points are those of the contract, and of the error messages:

    - 1, `dones[e]` comes with the learner's own last step, with the exact "episode", and "is_success" where the environment
      says placements; the VecEnv counts as a `Monitor`.
    - 2, "terminal_observation" is the learner's real last one; 3, "TimeLimit.truncated" is truncated and not terminated.
    - 4, the step that ends a game returns the first observation of the next.
    - 5, `seed` fixes games, seating and opponents; games differ; "game_seed" reproduces one.
    - 6, attribute calls reach the environments of their `indices` alone.
    - 7, infos are distinct dicts; nothing returned changes later, and writing into it changes nothing.
    - 8, an opponent is called at most once a step, for the living seats it plays and with what these really see.
    - 9, a live policy plays as a frozen copy, and neither its training mode nor torch's random stream is touched.
    - 10, `set_opponent` waits for each game's restart unless told "now"; opponents hear which seats began anew.
    - 12, closing reaches every environment, may be repeated, and leaves no child process (told where there is /proc).
    - 13, bad actions and opponents are refused, and the games then go on as if nothing had been said.
    - 14, masks are unpacked from observations, and learners and opponents get the environment's own.

    Not checked, because it cannot be seen from outside: memory and the loading of checkpoints (8), and exit without close (12).

    Args:
        make_venv: a new VecEnv each time, of at least two games with one learner each and the opponent it is given (None in
            games of one agent) on every enemy seat. Its `reset_infos[e]` must have "game_seed" and "agent", the learner's name.
        make_parallel_env: a new environment each time, of the kind that each of these games plays.
        num_steps: number of steps to play; at least two games must end in each environment.
        seed: seed of the whole test.

    Raises:
        AssertionError: the contract is broken, or equally seeded environments differ. The message says how.
        ValueError, RuntimeError: the environment bends PettingZoo's API or has spaces that SB3 does not learn with, as
            `make_sb3_env` finds, too.
        ValueError: too few games or steps.
    """
    before = _children()
    facts = measure(make_parallel_env, num_steps, seed)
    with ExitStack() as stack:

        def open_venv(opponent: Any) -> VecEnv:
            venv = make_venv(opponent if len(facts.agents) > 1 else None)
            stack.callback(_close_quietly, venv)
            return venv

        side_by_side = _SideBySide(open_venv, make_parallel_env, facts)
        side_by_side.play(num_steps, seed)
        _check_attributes(side_by_side.venv, facts)
        _check_seeds(open_venv, facts, min(num_steps, 60), seed)
        _check_live_policy(open_venv, facts, min(num_steps, 30), seed)
        _check_close(side_by_side.venv)
    left = _children() - before
    _check(not left, 12, f"close must leave no process, but left {len(left)}")


def _check(holds: Any, point: int, sentence: str) -> None:
    if not holds:
        raise AssertionError(f"point {point} ({POINTS[point]}): {sentence}")


class _SideBySide:
    """A VecEnv and, for each of its environments, the raw environment."""

    def __init__(self, open_venv: MakeVenv, make_parallel_env: MakeParallelEnv, facts: Facts) -> None:
        self.next = Witness(facts)  # the opponent from the game's next restart on
        self.venv: Any = open_venv(self.next)
        self.facts, self.num_envs = facts, self.venv.num_envs
        self.action_space: Any = deepcopy(facts.action_space)
        if self.num_envs < 2:
            raise ValueError(f"make_venv must make at least two games, so that they can be told apart, got {self.num_envs}")
        self.games = [RawGame(make_parallel_env) for _ in range(self.num_envs)]
        self.sitting = [self.next] * self.num_envs
        self.game_seeds: list[int] = []
        self.ended = [0] * self.num_envs
        self.kept: list[tuple[Any, Any]] = []  # returned values, and copies made at that time

    def play(self, num_steps: int, seed: int) -> None:
        """Run all checks that need the raw environments."""
        venv, facts = self.venv, self.facts
        expected, got = (facts.observation_space, facts.action_space), (venv.observation_space, venv.action_space)
        _check(got == expected, 14, f"the spaces must be the environment's without masks, {expected}, got {got}")
        _check(all(venv.env_is_wrapped(Monitor)), 1, "env_is_wrapped(Monitor) must say True, since episodes are reported")
        actions = np.stack([self.action_space.sample()] * self.num_envs)
        _refuse(lambda: venv.step(actions), RuntimeError, "a step before the first reset")
        venv.seed(seed)
        self._begin(range(self.num_envs), self._keep(venv.reset()))
        for step in range(num_steps):
            if step == num_steps // 3 and len(facts.agents) > 1:
                self.next = Witness(facts)
                venv.set_opponent(self.next)
            elif step == num_steps // 2:
                self._check_refusals(actions)
            elif step == num_steps * 2 // 3 and len(facts.agents) > 1:
                self.next = Witness(facts)
                venv.set_opponent(self.next, when="now")
                self.sitting = [self.next] * self.num_envs
                self._check_cleared(self.num_envs, "in the middle of the games")
            self._step()
        if min(self.ended) < 2:
            raise ValueError(f"num_steps={num_steps} is too few: two games must end in each environment, {self.ended} did")
        different = len(set(self.game_seeds))
        _check(different == len(self.game_seeds), 5, f"{len(self.game_seeds)} games began with only {different} game seeds")
        _check(all(same(*pair) for pair in self.kept), 7, "what reset and step return must not change later, but it did")

    def _step(self) -> None:
        self._check_masks()
        players = list({id(witness): witness for witness in [*self.sitting, self.next]}.values())
        living: list[Counter[bytes]] = [Counter() for _ in players]
        for witness, game in zip(self.sitting, self.games, strict=True):
            living[players.index(witness)].update(game.enemies().values())
        for witness in players:
            witness.forget()
        observations, rewards, dones, infos = self._keep(
            self.venv.step(np.stack([game.seen[game.learner].move(self.action_space) for game in self.games]))
        )
        distinct = len({id(info) for info in infos}) == self.num_envs
        _check(distinct, 7, "infos must be one dict per environment, but some are shared")
        finals = []
        for env, game in enumerate(self.games):
            finals.append(game.step().observation)
            self._check_outcome(env, float(rewards[env]), bool(dones[env]), infos[env], observations)
        self._check_players(players, living)
        if dones.any():
            ended = np.flatnonzero(dones).tolist()
            for env in ended:
                self.ended[env] += 1
                self.sitting[env] = self.next
            self._begin(ended, observations)
            for env in ended:
                last = infos[env]["terminal_observation"]
                self._check_last(env, last, finals[env], one_of(observations, env))
            self._check_cleared(len(ended), "at a restart")

    def _begin(self, envs: Iterable[int], observations: Observations) -> None:
        """Restart the raw environments of games that have just restarted, and compare the starts."""
        told = self.venv.reset_infos
        distinct = len({id(info) for info in told}) == self.num_envs and all(isinstance(info, dict) for info in told)
        _check(distinct, 7, "reset_infos must be one dict per environment, but some are shared or no dict")
        for env in envs:
            seed, learner = told[env].get("game_seed"), told[env].get("agent")
            known = isinstance(seed, int) and learner in self.facts.agents
            _check(known, 5, f"reset_infos[{env}] must have game_seed and agent of its own new game, got {told[env]}")
            shown, game = one_of(observations, env), self.games[env]
            if not same(shown, game.begin(seed, learner)):
                again = game.outcome is not None and same(shown, game.outcome.observation)
                _check(not again, 4, f"environment {env} shows the end of its game again where its next game should begin")
                text = f"environment {env} must begin as reset(seed={seed}) of the raw environment does for {learner!r}"
                _check(False, 5, f"{text}, but differs")
            self.game_seeds.append(seed)

    def _check_outcome(self, env: int, reward: float, done: bool, info: dict[str, Any], observations: Observations) -> None:
        game = self.games[env]
        outcome, where = game.outcome, f"environment {env}, step {game.length} of {game.learner!r}"
        assert outcome is not None
        ended = outcome.terminated or outcome.truncated
        _check(done == ended, 1, f"{where}: dones must be {ended} as the agent's own end says, got {done}")
        _check(
            math.isclose(reward, outcome.reward, rel_tol=1e-6), 1, f"{where}: the reward must be {outcome.reward}, got {reward}"
        )
        cut = outcome.truncated and not outcome.terminated
        got = info.get("TimeLimit.truncated", False)
        _check(bool(got) == cut, 3, f"{where}: TimeLimit.truncated must be {cut}, got {got}")
        if not ended:
            _check("episode" not in info, 1, f"{where}: infos report an episode, though none has ended")
            text = f"{where}: what the learner sees must be what the raw environment shows it, but differs"
            _check(same(one_of(observations, env), outcome.observation), 4, text)
            return
        episode = info.get("episode", {})
        told, exact = (episode.get("r"), episode.get("l")), (game.total, game.length)
        right = told[1] == exact[1] and told[0] is not None and math.isclose(told[0], exact[0], rel_tol=1e-6, abs_tol=1e-6)
        _check(right, 1, f"{where}: the episode must have return and length {exact}, got {told}")
        success = info.get("is_success")
        _check(success == outcome.success, 1, f"{where}: is_success must be {outcome.success}, got {success}")
        _check("terminal_observation" in info, 2, f"{where}: terminal_observation is missing")

    def _check_last(self, env: int, last: Observations, real: Observations, following: Observations) -> None:
        if not same(last, real):
            arrays = last.values() if isinstance(last, dict) else [last]
            what = "something else"
            if not any(np.any(array) for array in arrays):
                what = "zeros"
            elif same(last, following):
                what = "the first of the next game"
            _check(False, 2, f"environment {env}: terminal_observation must be the learner's real last one, got {what}")

    def _check_players(self, players: list[Witness], living: list[Counter[bytes]]) -> None:
        """Check that each opponent was shown the living seats that it plays."""
        for player in players:
            _check(player.calls <= 1, 8, f"an opponent must be called at most once a step, was {player.calls} times")
        shown = [player.shown for player in players]
        if shown != living:
            asked, seats = [sum(one.values()) for one in shown], [sum(one.values()) for one in living]
            total = sum(shown, Counter()) == sum(living, Counter())
            text = f"opponents must change when their game restarts: the old and the new must play {seats} seats, got {asked}"
            _check(not total, 10, text)
            text = f"opponents must be shown the {sum(seats)} living enemy seats, got {sum(asked)} observations"
            _check(sum(asked) == sum(seats), 8, text)
            _check(False, 8, "opponents must be shown what their agents see and may do in the raw environment, but it differs")

    def _check_cleared(self, games: int, when: str) -> None:
        seats, got = games * (len(self.facts.agents) - 1), len(self.next.cleared)
        _check(got == seats, 10, f"an opponent that sits down {when} must hear of all {seats} seats by reset, heard of {got}")

    def _check_masks(self) -> None:
        if not self.facts.masked:
            _check(not self.venv.has_attr("action_masks"), 14, "action_masks must not exist if the environment gives none")
            return
        for env, (got, game) in enumerate(zip(self.venv.env_method("action_masks"), self.games, strict=True)):
            expected: Any = game.seen[game.learner].mask
            text = f"action_masks() of environment {env} must be {expected}, as the raw environment says, got {got}"
            _check(np.array_equal(got, expected), 14, text)

    def _check_refusals(self, actions: NDArray[Any]) -> None:
        """Check that bad actions and opponents are refused without any effect."""
        _refuse(lambda: self.venv.step(actions[:-1]), ValueError, "too few actions")
        if isinstance(self.action_space, spaces.Discrete):
            _refuse(lambda: self.venv.step(actions * 0 + self.action_space.n), ValueError, "actions outside the space")
        too_many: Any = [object()] * len(self.facts.agents)
        _refuse(partial(self.venv.set_opponent, too_many), (TypeError, ValueError), "a list of more opponents than enemy seats")
        if len(self.facts.agents) > 1:
            _refuse(partial(self.venv.set_opponent, object()), (TypeError, ValueError), "an object() as opponent")

    def _keep(self, returned: Any) -> Any:
        self.kept = [*self.kept[-50:], (returned, deepcopy(returned))]
        return returned


def _check_attributes(venv: VecEnv, facts: Facts) -> None:
    name, envs = "curried_env_test_mark", list(range(venv.num_envs))
    for env in envs:
        venv.set_attr(name, env, indices=env)
    got = venv.get_attr(name), venv.get_attr(name, [1, 0]), venv.get_attr(name, 1)
    _check(got == (envs, [1, 0], [1]), 6, f"set_attr and get_attr must keep to their indices, set {envs}, got {got}")
    _check(venv.has_attr(name), 6, "has_attr must find what set_attr has set")
    answers = venv.env_method("action_space", facts.agents[0], indices=[1])
    _check(answers == [facts.action_space], 6, f"env_method must give one answer per index, got {answers}")
    known = venv.get_attr("render_mode", 0)
    _check(known == [venv.render_mode], 6, f"render_mode must be the environment's, {known[0]!r}, got {venv.render_mode!r}")


def _check_seeds(open_venv: MakeVenv, facts: Facts, num_steps: int, seed: int) -> None:
    witnesses = [Witness(facts) for _ in range(5)]
    venvs = [open_venv(witness) for witness in witnesses]
    seeds = [venv.seed(number) for venv, number in zip(venvs, (seed, seed, seed, seed + 1), strict=False)]
    _check(seeds[0] == seeds[1] != seeds[3], 5, f"seed must return the same for the same number alone, got {seeds}")
    first, again, spoilt, other, unseeded = (trajectory(venv, num_steps, facts, spoil=venv is venvs[2]) for venv in venvs)
    _check(first == again, 5, "the same seed must play the same games, but they differ")
    _check(first == spoilt, 7, "writing into what was returned must change nothing, but the games went on otherwise")
    _check(first[0] != other[0], 5, "another seed must begin other games, but they are the same")
    _check(unseeded[0] not in (first[0], other[0]), 5, "without a seed games must be new, but they are those of a seed")
    told = [witness.seeds for witness in witnesses]
    reseeded = bool(told[0]) and told[0] == told[1] != told[3]
    _check(
        reseeded or len(facts.agents) == 1,
        5,
        "seed must reseed the opponents, to the same effect for the same number alone, but did not",
    )


class _Flatten(BaseFeaturesExtractor):
    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__(observation_space, get_flattened_obs_dim(observation_space))

    def forward(self, observations: Any) -> torch.Tensor:
        parts = list(observations.values()) if isinstance(observations, dict) else [observations]
        return torch.cat([part.flatten(start_dim=1) for part in parts], dim=1)


def _check_live_policy(open_venv: MakeVenv, facts: Facts, num_steps: int, seed: int) -> None:
    kind = _policy_class(facts.masked)
    if kind is None:
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = kind(
            facts.observation_space, facts.action_space, lambda _: 0.0, net_arch=[8], features_extractor_class=_Flatten
        )
    policy.set_training_mode(True)
    before, changed = open_venv(policy), open_venv(policy)
    for venv in (before, changed):
        venv.seed(seed)
    stream = torch.get_rng_state()
    expected = trajectory(before, num_steps, facts)
    _check(policy.training, 9, "a live policy's training mode must not be touched, but it was switched off")
    _check(torch.equal(stream, torch.get_rng_state()), 9, "opponents must not draw from torch's global random stream, but did")
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.normal_(std=5.0)
    played = trajectory(changed, num_steps, facts)
    _check(played == expected, 9, "a live policy must be copied when it is given, but what it learned later changed the games")


def _policy_class(masked: bool) -> Any:
    if not masked:
        return ActorCriticPolicy
    try:
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    except ImportError:  # sb3-contrib is an extra
        return None
    return MaskableActorCriticPolicy


def _check_close(venv: VecEnv) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for env in range(venv.num_envs):
            venv.set_attr("close", partial(Path.touch, Path(folder, str(env))), indices=env)
        try:
            venv.close()
            venv.close()
        except Exception as error:
            _check(False, 12, f"close must work, and work again, but raised {type(error).__name__}: {error}")
        closed = len(list(Path(folder).iterdir()))
    _check(closed == venv.num_envs, 12, f"close must reach all {venv.num_envs} environments, but reached {closed}")
    _refuse(venv.reset, RuntimeError, "reset after close")


def _close_quietly(venv: VecEnv) -> None:
    """Close without raising; `_check_close` reports failures."""
    with suppress(Exception):
        venv.close()


def _children() -> set[int]:
    """Process ids of this process's children, including dead ones that were not waited for."""
    children = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = status.read_text().partition(" ")
        except OSError:  # it ended meanwhile
            continue
        if int(rest.rpartition(")")[2].split()[1]) == os.getpid():
            children.add(int(pid))
    return children


def _refuse(call: Callable[[], Any], errors: type[Exception] | tuple[type[Exception], ...], what: str) -> None:
    try:
        call()
    except errors:
        return
    except Exception as error:
        _check(False, 13, f"{what} must be refused by a clear error, but raised {type(error).__name__}: {error}")
    _check(False, 13, f"{what} must be refused, but was accepted")
