"""FixedSeats: agents that never leave, death as data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from adapters.games.fixed_seats import FixedSeats, SeatStep
from adapters.games.seating import next_game
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, DictEnv, ScriptedEnv

SEATS = [f"seat_{seat}" for seat in range(4)]


def still(seats: FixedSeats) -> dict[str, int]:
    return dict.fromkeys(seats.possible_agents, 0)


def steps_of(infos: dict[str, dict[str, Any]]) -> dict[str, SeatStep]:
    return {seat: info["step"] for seat, info in infos.items() if "step" in info}


@pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")  # pettingzoo.test imports by it
@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("learners", [0, 1, 4])
def test_passes_pettingzoo_api_test(name: str, learners: int) -> None:
    from pettingzoo.test import parallel_api_test

    parallel_api_test(FixedSeats(ScriptedEnv(SCRIPTS[name]), learners=learners), num_cycles=50)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_step_equals_the_environment(name: str) -> None:
    seats, raw = FixedSeats(ScriptedEnv(SCRIPTS[name])), ScriptedEnv(SCRIPTS[name])
    rng = np.random.default_rng(0)
    for game in range(8):
        observations, infos = seats.reset(seed=5 if game == 0 else None)
        game_seed = next_game(5, game, 1)[0]
        raw_observations, raw_infos = raw.reset(seed=game_seed)
        last = {}
        for seat, agent in zip(SEATS, seats.seating, strict=True):
            assert infos[seat]["reset"] == {**raw_infos[agent], "game_seed": game_seed, "agent": agent}
            assert np.array_equal(observations[seat], raw_observations[agent])
            last[agent] = raw_observations[agent].copy()
        while seats.agents:
            actions = {seat: rng.integers(NUM_ACTIONS) for seat in SEATS}
            acting = list(raw.agents)
            observations, rewards, terminations, truncations, infos = seats.step(actions)
            by_agent = dict(zip(seats.seating, SEATS, strict=True))
            expected = raw.step({agent: actions[by_agent[agent]] for agent in acting})
            last.update({agent: value.copy() for agent, value in expected[0].items()})
            assert set(steps_of(infos)) == {by_agent[agent] for agent in acting}
            for agent, seat in by_agent.items():
                assert np.array_equal(observations[seat], last[agent])
                assert rewards[seat] == expected[1].get(agent, 0.0)
            for agent in acting:
                step = steps_of(infos)[by_agent[agent]]
                assert (step.terminated, step.truncated) == (expected[2][agent], expected[3][agent])
                assert step.info == expected[4][agent]
                ended = step.terminated or step.truncated
                assert (step.final_observation is not None) == ended
                assert not ended or np.array_equal(step.final_observation, last[agent])
            over = seats.seating[0] not in raw.agents
            assert list(terminations.values()) == [over] * 4
            assert not any(truncations.values())
            assert seats.agents == ([] if over else SEATS)


def test_the_dead_repeat_their_last_observation_without_reward() -> None:
    seats = FixedSeats(ScriptedEnv([{2: (1, "terminated")}]), learners=["agent_0"])
    seats.reset(seed=1)
    observations, *_, infos = seats.step(still(seats))
    death = observations["seat_2"].copy()
    assert infos["seat_2"]["step"].terminated
    assert death[0] == 2
    assert death[1] == 1
    for _ in range(3):
        observations, rewards, _, _, infos = seats.step(still(seats))
        assert np.array_equal(observations["seat_2"], death)
        assert rewards["seat_2"] == 0.0
        assert rewards["seat_1"] > 0.0
        assert infos["seat_2"] == {}


def test_survivors_of_an_abandoned_game_are_neither_terminated_nor_truncated() -> None:
    seats = FixedSeats(ScriptedEnv([{0: (2, "terminated")}]), learners=["agent_0"])
    seats.reset(seed=1)
    seats.step(still(seats))
    *_, terminations, truncations, infos = seats.step(still(seats))
    assert all(terminations.values())
    assert not any(truncations.values())
    assert seats.agents == []
    assert [(step.terminated, step.truncated) for step in steps_of(infos).values()] == [(True, False)] + [(False, False)] * 3


def test_a_game_lasts_until_its_last_learner_is_done() -> None:
    script = [{0: (2, "terminated"), 1: (4, "terminated"), 2: (1, "terminated"), 3: (6, "terminated")}]
    lengths = {}
    for learners in (["agent_0"], ["agent_0", "agent_1"], [], ["agent_3", "agent_2"]):
        seats = FixedSeats(ScriptedEnv(script), learners=learners)
        seats.reset(seed=0)
        while seats.agents:
            seats.step(still(seats))
        lengths[tuple(learners)] = seats.env.time
    assert list(lengths.values()) == [2, 4, 6, 6]


def test_step_after_the_end_or_before_reset_is_refused() -> None:
    seats = FixedSeats(ScriptedEnv([{}], limit=1))
    with pytest.raises(RuntimeError, match="call reset"):
        seats.step(still(seats))
    seats.reset()
    seats.step(still(seats))
    with pytest.raises(RuntimeError, match="call reset"):
        seats.step(still(seats))


def test_seeds_fix_the_row_and_games_differ() -> None:
    def games(seed: int | None, count: int = 6) -> list[tuple[int, tuple[str, ...]]]:
        seats = FixedSeats(ScriptedEnv())
        rows = []
        for game in range(count):
            _, infos = seats.reset(seed=seed if game == 0 else None)
            rows.append((infos["seat_0"]["reset"]["game_seed"], tuple(seats.seating)))
        return rows

    assert games(3) == games(3)
    assert len({seed for seed, _ in games(3) + games(4) + games(None) + games(None)}) == 24


def test_a_number_of_learners_shuffles_and_names_do_not() -> None:
    shuffled, named = FixedSeats(ScriptedEnv()), FixedSeats(ScriptedEnv(), learners=["agent_2", "agent_1"])
    first = set()
    for game in range(60):
        shuffled.reset(seed=0 if game == 0 else None)
        named.reset()
        first.add(shuffled.seating[0])
        assert sorted(shuffled.seating) == shuffled.env.possible_agents
        assert named.seating == ["agent_2", "agent_1", "agent_0", "agent_3"]
    assert first == set(shuffled.env.possible_agents)


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_masks_reach_the_infos_however_they_come(masks: str) -> None:
    seats = FixedSeats(ScriptedEnv(masks=masks))
    assert isinstance(seats.observation_space("seat_0"), spaces.Box)
    _, infos = seats.reset(seed=0)
    for seat, agent in zip(SEATS, seats.seating, strict=True):
        assert np.array_equal(infos[seat]["reset"]["action_mask"], seats.env.mask(agent))
    observations, *_, infos = seats.step(still(seats))
    for seat, agent in zip(SEATS, seats.seating, strict=True):
        assert np.array_equal(infos[seat]["step"].info["action_mask"], seats.env.mask(agent))
        assert observations[seat].shape == (6,)


def test_options_reach_the_environment_at_the_reset_they_are_given() -> None:
    seats = FixedSeats(ScriptedEnv())
    seats.reset(options={"map": 3})
    assert seats.env.last_options == {"map": 3}
    seats.reset()
    assert seats.env.last_options is None


def test_infos_are_copies() -> None:
    seats = FixedSeats(ScriptedEnv())
    kept = [seats.reset()[1]["seat_0"]["reset"]["trace"]]
    kept += [seats.step(still(seats))[-1]["seat_0"]["step"].info["trace"] for _ in range(3)]
    assert kept == [[0], [1], [2], [3]]


def test_close_reaches_the_environment_once() -> None:
    seats = FixedSeats(ScriptedEnv())
    seats.close()
    seats.close()
    assert seats.env.closed == 1


class DifferentSpaces(ScriptedEnv):
    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(0, 1, (9,)) if agent == "agent_2" else super().observation_space(agent)


class DifferentActions(ScriptedEnv):
    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(9) if agent in ("agent_1", "agent_2") else super().action_space(agent)


class NestedObservations(ScriptedEnv):
    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Dict({"map": spaces.Box(0, 1, (3,)), "more": spaces.Dict({"me": spaces.Discrete(3)})})


class WithoutKeys(DictEnv):
    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        return {agent: {"me": 1} for agent in agents}


class WithoutDict(DictEnv):
    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        return dict.fromkeys(agents, np.zeros(6))


class OddPicture(DictEnv):
    def _observe(self, agents: list[str], last_actions: dict[str, float]) -> dict[str, Any]:
        seen = super()._observe(agents, last_actions)
        return {agent: {**one, "picture": one["picture"][0]} for agent, one in seen.items()}


class CountsFromOne(ScriptedEnv):
    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(3, start=1)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (DifferentSpaces(), r"one observation space.*agent_2.*pad_observations_v0"),
        (DifferentActions(), r"one action space.*agent_1', 'agent_2.*pad_action_space_v0"),
        (NestedObservations(), r"observations must be of a Box.*Dict"),
        (CountsFromOne(), r"count from 0"),
    ],
)
def test_spaces_that_do_not_fit_are_refused(env: ScriptedEnv, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FixedSeats(env)


@pytest.mark.parametrize(
    ("learners", "message"),
    [
        (5, "from 0 to 4, the number of agents, got 5"),
        (["agent_9"], r"among the agents.*got \['agent_9'\]"),
        (["agent_1", "agent_1"], "each agent once"),
        ("agent_1", r"write \['agent_1'\]"),
    ],
)
def test_learners_that_do_not_fit_are_refused(learners: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FixedSeats(ScriptedEnv(), learners=learners)


class ComesBack(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        if self.time == 3:
            self.agents = [*self.agents, "agent_1"]
        return result


class StaysDead(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        self.agents = list(self.possible_agents)
        return result


class Vanishes(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        self.agents = self.agents[1:]
        return result


class FewerEachReset(ScriptedEnv):
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        result = super().reset(seed, options)
        self.agents = self.agents[:-1]
        return result


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ComesBack, r"'agent_1' in `agents` after step.*agents that return"),
        (StaysDead, r"'agent_1' in `agents` after step.*must leave"),
        (Vanishes, r"'agent_0' missing from `agents` after step"),
        (FewerEachReset, r"'agent_3' missing from `agents` after reset"),
    ],
)
def test_environments_that_break_the_rules_are_named(kind: type[ScriptedEnv], message: str) -> None:
    seats = FixedSeats(kind([{1: (2, "terminated")}]), game=3, learners=["agent_0"])

    def play() -> None:
        seats.reset()
        for _ in range(5):
            seats.step(still(seats))

    with pytest.raises(RuntimeError, match=message) as error:
        play()
    assert "game 3" in str(error.value)


class WrongShape(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, *rest = super().step(actions)
        return ({agent: value[:4] for agent, value in observations.items()}, *rest)


class ShowsTheDeadNothing(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, *rest = super().step(actions)
        return ({agent: observations[agent] for agent in self.agents}, *rest)


class WrongMask(ScriptedEnv):
    def mask(self, agent: str) -> Any:
        return np.ones(5, dtype=np.int8)


def test_observations_of_another_shape_are_refused() -> None:
    seats = FixedSeats(WrongShape())
    seats.reset()
    with pytest.raises(ValueError, match=r"shape \(6,\).*got \(4,\)"):
        seats.step(still(seats))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (WithoutKeys, r"'agent_0' must observe a dict of \['me', 'numbers', 'picture'\].*got \['me'\]"),
        (WithoutDict, r"a dict of \['me', 'numbers', 'picture'\].*got ndarray"),
        (OddPicture, r"'agent_0' at 'picture' must observe arrays of shape \(1, 36, 36\).*got \(36, 36\)"),
    ],
)
def test_dict_observations_that_do_not_fit_their_space_are_refused(kind: type[DictEnv], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FixedSeats(kind(), learners=["agent_0"]).reset()


def test_dict_observations_are_copied_through_and_through() -> None:
    seats = FixedSeats(DictEnv([{2: (1, "terminated")}]), learners=["agent_0"])
    first, _ = seats.reset(seed=1)
    later = [seats.step(still(seats))[0] for _ in range(3)]
    assert [seen["seat_1"]["numbers"][1] for seen in [first, *later]] == [0, 1, 2, 3]
    assert [seen["seat_1"]["picture"][0, 0, 0] for seen in [first, *later]] == [0, 1, 2, 3]
    assert [seen["seat_2"]["picture"][0, 0, 0] for seen in [first, *later]] == [0, 1, 1, 1]


def test_masks_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(3,\).*got \(5,\)"):
        FixedSeats(WrongMask(masks="info")).reset()


def test_without_an_observation_at_death_the_last_real_one_stands() -> None:
    seats = FixedSeats(ShowsTheDeadNothing([{0: (3, "terminated")}]), learners=["agent_0"])
    seats.reset()
    seats.step(still(seats))
    before, *_ = seats.step(still(seats))
    *_, infos = seats.step(still(seats))
    assert np.array_equal(infos["seat_0"]["step"].final_observation, before["seat_0"])
