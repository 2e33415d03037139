"""The reference of `curried_env_test`: raw environments whose agents all play one fixed function of what they see."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from adapters.games.checked_env import AnyParallelEnv, mask_length
from adapters.games.fixed_seats import FixedSeats
from adapters.placements import win_share
from snake_pz.players import Observations, Player, map_arrays

MakeParallelEnv = Callable[[], AnyParallelEnv]


class Facts(NamedTuple):
    """Properties of an environment."""

    agents: list[Any]
    observation_space: gymnasium.Space[Any]  # of the observation proper, without masks
    action_space: gymnasium.Space[Any]
    masked: bool


class Seen(NamedTuple):
    """Observation and mask that an agent acts on."""

    observation: Observations
    mask: NDArray[np.int8] | None

    def key(self) -> bytes:
        """A fingerprint of the observation and mask."""
        digest = hashlib.blake2b(digest_size=16)
        leaves = self.observation if isinstance(self.observation, dict) else {"": self.observation}
        for name in sorted(leaves):
            digest.update(leaves[name].tobytes())
        if self.mask is not None:
            digest.update(self.mask.tobytes())
        return digest.digest()

    def move(self, space: gymnasium.Space[Any]) -> Any:
        """The action of every agent with this observation: legal, arbitrary and always the same."""
        space.seed(int.from_bytes(self.key()[:4], "big"))
        if self.mask is not None and isinstance(space, spaces.Discrete):
            return space.sample(mask=self.mask)
        if self.mask is not None and isinstance(space, spaces.MultiDiscrete):
            return space.sample(mask=tuple(np.split(self.mask, np.cumsum(space.nvec)[:-1])))
        return space.sample()


def one_of(observations: Observations, index: int) -> Observations:
    """One observation of a batch."""
    return map_arrays(functools.partial(np.take, indices=index, axis=0), observations)


def same(one: Any, other: Any) -> bool:
    """Whether two nested structures of arrays and numbers are equal; NaN equals NaN."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.shape == np.shape(other) and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return bool(one == other) or (one != one and other != other)


class Witness(Player):
    """An `Opponent` that plays `Seen.move` and records its calls."""

    name = "witness"
    uses_masks = True

    def __init__(self, facts: Facts) -> None:
        self.observation_space, self.action_space = facts.observation_space, facts.action_space
        self._space = copy.deepcopy(facts.action_space)
        self.seeds: list[int] = []
        self.forget()

    def forget(self) -> None:
        """Clear the records."""
        self.calls = 0
        self.shown: Counter[bytes] = Counter()  # keys of observations it was shown
        self.cleared: set[int] = set()  # slots

    @override
    def act(self, observations: Observations, slots: NDArray[np.intp], action_masks: NDArray[np.int8] | None) -> NDArray[Any]:
        masks = [None] * len(slots) if action_masks is None else list(action_masks)
        seen = [Seen(one_of(observations, index), mask) for index, mask in enumerate(masks)]
        self.calls += 1
        self.shown.update(one.key() for one in seen)
        return np.stack([one.move(self._space) for one in seen])

    @override
    def reset(self, slots: NDArray[np.intp]) -> None:
        self.cleared.update(np.asarray(slots).tolist())

    @override
    def seed(self, seed: int) -> None:
        self.seeds.append(seed)


class Outcome(NamedTuple):
    """Result of a step of a raw environment for its learner."""

    observation: Observations  # the last real observation
    reward: np.float32
    terminated: bool
    truncated: bool
    success: float | None  # share of the win; None unless the environment reports placements


class RawGame:
    """A raw environment, all of whose agents play `Seen.move`."""

    def __init__(self, make_parallel_env: MakeParallelEnv) -> None:
        self.env = make_parallel_env()
        agents = list(self.env.possible_agents)
        space = self.env.observation_space(agents[0])
        self._masks_in_dict = isinstance(space, spaces.Dict) and space.spaces.keys() == {"observation", "action_mask"}
        inner = space["observation"] if isinstance(space, spaces.Dict) and self._masks_in_dict else space
        self.facts = Facts(agents, inner, self.env.action_space(agents[0]), self._masks_in_dict)
        self._space = copy.deepcopy(self.facts.action_space)
        self.seen: dict[Any, Seen] = {}  # of the living
        self.learner: Any = agents[0]
        self.outcome: Outcome | None = None  # of the last step
        self.length, self.total = 0, 0.0

    def begin(self, seed: int, learner: Any) -> Observations:
        """Start a game and return what its learner sees."""
        self.learner, self.length, self.total = learner, 0, 0.0
        observations, infos = self.env.reset(seed=seed)
        masks_in_info = any(info.get("action_mask") is not None for info in infos.values())
        self.facts = self.facts._replace(masked=self.facts.masked or masks_in_info)
        self.seen = {agent: self._unpack(observations[agent], infos.get(agent, {})) for agent in self.env.agents}
        return self.seen[learner].observation

    def step(self) -> Outcome:
        """Play one step of all living agents."""
        moves = {agent: self.seen[agent].move(self._space) for agent in self.env.agents}
        observations, rewards, terminations, truncations, infos = self.env.step(moves)
        seen = {**self.seen, **{agent: self._unpack(one, infos.get(agent, {})) for agent, one in observations.items()}}
        self.seen = {agent: seen[agent] for agent in self.env.agents}
        me = self.learner
        reward = np.float32(rewards[me])
        self.length, self.total = self.length + 1, self.total + float(reward)
        self.outcome = Outcome(
            seen[me].observation, reward, bool(terminations[me]), bool(truncations[me]), self._success(infos.get(me, {}))
        )
        return self.outcome

    def enemies(self) -> dict[Any, bytes]:
        """What the living agents other than the learner see."""
        return {agent: one.key() for agent, one in self.seen.items() if agent != self.learner}

    def _success(self, info: dict[str, Any]) -> float | None:
        placements = info.get("placements")
        if "is_success" not in info and isinstance(placements, dict) and self.learner in placements:
            return win_share(placements, self.learner)
        success: float | None = info.get("is_success")
        return success

    def _unpack(self, observation: Any, info: dict[str, Any]) -> Seen:
        """Copies, for environments that reuse their buffers."""
        mask = info.get("action_mask")
        if self._masks_in_dict:
            observation, mask = observation["observation"], observation["action_mask"]
        if mask is None and self.facts.masked:
            mask = np.ones(mask_length(self.facts.action_space))
        space = self.facts.observation_space
        if isinstance(space, spaces.Dict):
            own: Observations = {key: np.array(observation[key], part.dtype) for key, part in space.spaces.items()}
        else:
            own = np.array(observation, space.dtype)
        return Seen(own, None if mask is None else np.array(mask, np.int8))


def _try_out(make_parallel_env: MakeParallelEnv, num_steps: int, seed: int | None) -> None:
    """Play steps for the checks that `make_sb3_env` makes of every environment."""
    game = FixedSeats(make_parallel_env(), learners="all")
    masked = False
    for _ in range(num_steps):
        if not game.agents:
            observations, infos = game.reset(seed)
            seed = None  # the games after it go on from there
            masks = {seat: info["reset"].get("action_mask") for seat, info in infos.items()}
            masked = masked or any(mask is not None for mask in masks.values())
        moves = {seat: Seen(seen, masks[seat]).move(game.action_space(seat)) for seat, seen in observations.items()}
        observations, _, _, _, infos = game.step(moves)
        masks = {seat: info["step"].info.get("action_mask") if "step" in info else None for seat, info in infos.items()}
        if not masked and (given := [seat for seat, mask in masks.items() if mask is not None]):
            agent = game.seating[game.possible_agents.index(given[0])]
            raise AssertionError(
                f"agent {agent!r} has an action mask in the infos of step, but nobody had one in those of reset: give them "
                "there too, for the first action, all ones if all are allowed"
            )
    game.close()


def measure(make_parallel_env: MakeParallelEnv, num_steps: int, seed: int) -> Facts:
    """What the environment is like.

    Raises:
        ValueError, RuntimeError: the environment bends PettingZoo's API or has spaces that SB3 does not learn with.
        AssertionError: it gives action masks, but not for the first action; or two equally seeded copies play
            different games.
    """
    _try_out(make_parallel_env, num_steps, seed)
    one, other = RawGame(make_parallel_env), RawGame(make_parallel_env)
    for game in (one, other):
        game.begin(seed, game.learner)
    for step in range(num_steps):
        if [seen.key() for seen in one.seen.values()] != [seen.key() for seen in other.seen.values()]:
            raise AssertionError(
                f"the environment does not repeat itself: two copies after reset(seed={seed}), given the same actions, differ "
                f"after {step} steps; draw all its random numbers from a generator that reset makes of the seed"
            )
        if one.learner not in one.seen:
            break
        one.step()
        other.step()
    one.env.close()
    other.env.close()
    return one.facts


def trajectory(venv: Any, num_steps: int, facts: Facts, *, spoil: bool = False) -> list[Any]:
    """Fingerprints of all results by step; on request, returned arrays are overwritten in between."""
    space = copy.deepcopy(facts.action_space)
    observations, happened = venv.reset(), []
    result: tuple[Any, ...] = (observations, [], [], [])
    for _ in range(num_steps):
        masks = np.array(venv.env_method("action_masks"), np.int8) if facts.masked else [None] * venv.num_envs
        seen = [Seen(one_of(result[0], env), mask) for env, mask in enumerate(masks)]
        actions = np.stack([one.move(space) for one in seen])
        seeds = [info.get("game_seed") for info in venv.reset_infos]
        finals = [Seen(info["terminal_observation"], None).key() for info in result[3] if "terminal_observation" in info]
        happened.append(([one.key() for one in seen], seeds, finals, *(np.array(flags).tolist() for flags in result[1:3])))
        if spoil:
            _overwrite(result)
        result = venv.step(actions)
    return happened


def _overwrite(value: Any) -> None:
    if isinstance(value, np.ndarray) and value.ndim:
        value[...] = 1
    elif isinstance(value, (tuple, list)):
        for part in value:
            _overwrite(part)
    elif isinstance(value, dict):
        for part in value.values():
            _overwrite(part)
        value.clear()
