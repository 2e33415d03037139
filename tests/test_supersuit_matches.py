"""SuperSuitMatches: what SuperSuit's rows become, and how environments are made, reached and closed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import supersuit
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper, parallel_to_aec

from adapters.matches import Matches, Turn, next_game
from adapters.supersuit_matches import SuperSuitMatches, env_factory
from snake_pz import snake_v0
from tests import scripted_env
from tests.scripted_env import NUM_ACTIONS, SCRIPTS, ScriptedEnv

NO_OPTIONS: list[dict[str, Any]] = [{}, {}, {}]


def make(games: int = 3, learners: Any = 1, **kwargs: Any) -> SuperSuitMatches:
    return SuperSuitMatches([lambda: ScriptedEnv(**kwargs)] * games, learners=learners)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("learners", [0, 1, 2, 4])
def test_turns_equal_the_environments_played_side_by_side(name: str, learners: int) -> None:
    matches = make(learners=learners, scripts=SCRIPTS[name])
    raws = [ScriptedEnv(SCRIPTS[name]) for _ in range(3)]
    seeds = [11, 12, 13]
    started = [0, 0, 0]
    last: dict[tuple[int, int], NDArray[Any]] = {}
    rng = np.random.default_rng(1)

    def begin(game: int, turn: Turn) -> None:
        game_seed = next_game(seeds[game], started[game], 1)[0]
        started[game] += 1
        observations, infos = raws[game].reset(seed=game_seed)
        for seat, agent in enumerate(matches.agents(game)):
            last[game, seat] = observations[agent].copy()
            assert turn.reset_infos[game, seat] == {**infos[agent], "game_seed": game_seed, "agent": agent}
            assert turn.active[game, seat]
            assert np.array_equal(turn.observations[game, seat], last[game, seat])

    turn = matches.reset(seeds, NO_OPTIONS)
    assert turn.restarted.all()
    assert not turn.infos
    assert not len(turn.final_observations)
    assert not turn.rewards.any()
    for game in range(3):
        begin(game, turn)
    for _ in range(40):
        before, agents = turn, [matches.agents(game) for game in range(3)]
        actions = rng.integers(NUM_ACTIONS, size=(3, 4))
        turn = matches.step(actions)
        finals = []
        for game, raw in enumerate(raws):
            acting = list(raw.agents)
            seat_of = {agent: seat for seat, agent in enumerate(agents[game])}
            assert before.active[game].tolist() == [agent in acting for agent in agents[game]]
            result = raw.step({agent: actions[game, seat_of[agent]] for agent in acting})
            for agent, seat in sorted(seat_of.items(), key=lambda item: item[1]):
                ended = result[2].get(agent, False), result[3].get(agent, False)
                assert turn.rewards[game, seat] == result[1].get(agent, 0.0)
                assert (turn.terminated[game, seat], turn.truncated[game, seat]) == ended
                assert turn.infos.get((game, seat)) == result[4].get(agent)
                if agent in result[0]:
                    last[game, seat] = result[0][agent].copy()
                if any(ended):
                    finals.append(last[game, seat])
            over = not any(agent in raw.agents for agent in agents[game][: learners or 4])
            assert turn.restarted[game] == over
            if over:
                begin(game, turn)
            else:
                assert turn.active[game].tolist() == [agent in raw.agents for agent in agents[game]]
                for seat in range(4):
                    assert np.array_equal(turn.observations[game, seat], last[game, seat])
        assert len(turn.final_observations) == len(finals)
        assert all(np.array_equal(*pair) for pair in zip(turn.final_observations, finals, strict=True))
        assert set(turn.reset_infos) == {(game, seat) for game in np.flatnonzero(turn.restarted) for seat in range(4)}


def test_turns_never_change_afterwards() -> None:
    matches = make(scripts=SCRIPTS["mixed games"])
    turns = [matches.reset([1, 2, 3], NO_OPTIONS)]
    kept = []
    for _ in range(12):
        kept.append([np.array(value) for value in turns[-1][:7]])
        turns.append(matches.step(np.zeros((3, 4), dtype=np.int64)))
    for turn, copies in zip(turns[:-1], kept, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(turn[:7], copies, strict=True))


def test_is_a_matches_with_the_environment_s_spaces() -> None:
    matches: Matches = make(learners=["agent_3"], render_mode="rgb_array")
    assert (matches.num_games, matches.seats, matches.num_learners, matches.render_mode) == (3, 4, 1, "rgb_array")
    assert matches.observation_space.shape == (6,)
    assert matches.action_space == spaces.Discrete(NUM_ACTIONS)
    assert matches.agents(2) == ("agent_3", "agent_0", "agent_1", "agent_2")


def test_unseeded_games_differ_and_none_goes_on() -> None:
    matches = make()
    seeds = [info["game_seed"] for _ in range(4) for info in matches.reset([None] * 3, NO_OPTIONS).reset_infos.values()]
    assert len(set(seeds)) == 12

    def sequence() -> list[int]:
        first = matches.reset([7, 8, 9], NO_OPTIONS)
        then = matches.reset([None] * 3, NO_OPTIONS)
        return [turn.reset_infos[game, 0]["game_seed"] for turn in (first, then) for game in range(3)]

    assert sequence() == sequence()


def test_box_actions_reach_the_agents() -> None:
    matches = make(box_actions=True)
    matches.reset([1, 2, 3], NO_OPTIONS)
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 4, 2)).astype(np.float32)
    turn = matches.step(actions)
    assert np.allclose(turn.observations[..., 5], actions.sum(-1))
    for game, taken in enumerate(matches.get_attr("last_actions", range(3))):
        for seat, agent in enumerate(matches.agents(game)):
            assert np.array_equal(taken[agent], actions[game, seat])
            assert taken[agent].dtype == np.float32


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_masks_are_those_of_the_next_action_and_ones_for_the_dead(masks: str) -> None:
    matches = make(masks=masks, scripts=SCRIPTS["mixed games"], learners=2)
    turn = matches.reset([1, 2, 3], NO_OPTIONS)
    for _ in range(20):
        assert turn.action_masks is not None
        assert turn.action_masks.shape == (3, 4, NUM_ACTIONS)
        assert turn.action_masks.dtype == np.int8
        for game, mask_of in enumerate(matches.get_attr("mask", range(3))):
            for seat, agent in enumerate(matches.agents(game)):
                expected = mask_of(agent) if turn.active[game, seat] else np.ones(NUM_ACTIONS)
                assert np.array_equal(turn.action_masks[game, seat], expected)
        turn = matches.step(np.argmax(turn.action_masks, axis=-1))
    assert matches.get_attr("illegal_moves", range(3)) == [0, 0, 0]


def test_no_masks() -> None:
    matches = make()
    assert matches.reset([None] * 3, NO_OPTIONS).action_masks is None
    assert matches.action_masks() is None


def test_options_are_per_game() -> None:
    matches = make()
    matches.reset([None] * 3, [{"map": 1}, {}, {"map": 3}])
    assert matches.get_attr("last_options", range(3)) == [{"map": 1}, None, {"map": 3}]


def test_attribute_calls_reach_the_environment_of_each_game() -> None:
    matches = make()
    matches.set_attr("difficulty", 5, [0, 2])
    assert matches.get_attr("difficulty", range(3)) == [5, 1, 5]
    assert matches.env_method("describe", [2, 1], "hard", times=2) == ["hard-5 hard-5", "hard-1 hard-1"]
    matches.reset([None] * 3, NO_OPTIONS)
    assert matches.get_attr("possible_agents", [1]) == [[f"agent_{i}" for i in range(4)]]
    assert matches.get_attr("game", [0]) == [0]
    assert matches.get_attr("seed", [0]) != [None]
    with pytest.raises(AttributeError, match="colour"):
        matches.get_attr("colour", [0])


def test_attribute_calls_look_through_wrappers() -> None:
    inner: list[ScriptedEnv] = []

    def factory() -> BaseParallelWrapper[str, Any, Any]:
        inner.append(ScriptedEnv())
        return BaseParallelWrapper(BaseParallelWrapper(inner[-1]))

    matches = SuperSuitMatches([factory] * 2)
    matches.set_attr("difficulty", 7, [1])
    matches.set_attr("brand_new", True, [0])
    assert [env.difficulty for env in inner] == [1, 7]
    assert inner[0].brand_new is True
    assert matches.env_method("describe", [0, 1], "x") == ["x-1", "x-7"]


def test_render_is_per_game() -> None:
    matches = make(render_mode="rgb_array")
    matches.reset([None] * 3, NO_OPTIONS)
    matches.step(np.zeros((3, 4), dtype=np.int64))
    pictures = matches.render([2, 0])
    assert len(pictures) == 2
    assert pictures[0].shape == (4, 5, 3)
    assert pictures[0][0, 0, 0] == 1


def test_close_reaches_every_environment_exactly_once() -> None:
    matches = make()
    closed = matches.get_attr("closed", range(3))
    matches.close()
    matches.close()
    assert closed == [0, 0, 0]
    assert matches.get_attr("closed", range(3)) == [1, 1, 1]


def test_close_goes_on_when_one_environment_fails_to() -> None:
    class Fails(ScriptedEnv):
        def close(self) -> None:
            super().close()
            raise OSError("display lost")

    matches = SuperSuitMatches([ScriptedEnv, Fails, ScriptedEnv])
    with pytest.raises(OSError, match="display lost"):
        matches.close()
    assert matches.get_attr("closed", range(3)) == [1, 1, 1]


def test_view_is_the_environment_s_own_or_an_error_that_names_both() -> None:
    matches = make()
    view = matches.view(matches.observation_space, spaces.Discrete(NUM_ACTIONS))
    turn = matches.reset([None] * 3, NO_OPTIONS)
    assert np.array_equal(view.observations(), turn.observations)
    assert view.action_masks() is None
    actions = np.array([2, 1])
    assert np.array_equal(view.decode(actions, np.array([0, 1]), np.array([3, 2])), actions)
    with pytest.raises(ValueError, match=r"Box\(0.0, 1.0, \(9,\).*Discrete\(5\).*\(6,\).*Discrete\(3\)"):
        matches.view(spaces.Box(0, 1, (9,)), spaces.Discrete(5))


def test_an_instance_is_copied_for_every_game_and_never_stepped() -> None:
    env = ScriptedEnv(limit=3)
    env.difficulty = 9
    matches = SuperSuitMatches([env_factory(env, None)] * 2)
    matches.reset([1, 2], NO_OPTIONS[:2])
    matches.step(np.zeros((2, 4), dtype=np.int64))
    matches.set_attr("difficulty", 4, [0])
    matches.close()
    assert (env.resets, env.steps, env.closed, env.difficulty) == (0, 0, 0, 9)
    assert matches.get_attr("difficulty", [0, 1]) == [4, 9]
    assert matches.get_attr("steps", [0, 1]) == [1, 1]


def test_a_registered_environment_by_its_id() -> None:
    env = env_factory("butterfly/knights_archers_zombies_v11", {"num_knights": 1})()
    assert len(env.possible_agents) == 3
    env.close()


def unpicklable() -> ScriptedEnv:
    env = ScriptedEnv()
    env.lock = threading.Lock()
    return env


@pytest.mark.parametrize(
    ("env", "kwargs", "message"),
    [
        (parallel_to_aec(ScriptedEnv()), None, r"AEC environment.*parallel_env\(\).*aec_to_parallel"),
        (unpicklable(), None, r"cannot be pickled.*pass the function"),
        (ScriptedEnv(), {"limit": 3}, r"env_kwargs \['limit'\].*pass the function"),
        (scripted_env, None, r"module tests.scripted_env: pass scripted_env.parallel_env"),
        (3, None, r"expected a PettingZoo parallel environment, got builtins.int"),
        (supersuit.black_death_v3(snake_v0.parallel_env()), None, r"black_death_v3 around .* hides when agents die"),
    ],
)
def test_what_is_no_environment_is_refused_at_once(env: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        env_factory(env, kwargs)


@pytest.mark.parametrize(
    ("factory", "kwargs", "message"),
    [
        (ScriptedEnv, {"limti": 3}, r"limti.*use some of scripts, num_agents, limit, masks"),
        ("butterfly/knights_archers_zombies_v11", {"num_kinghts": 3}, r"num_kinghts"),
        (lambda: parallel_to_aec(ScriptedEnv()), None, "AEC environment"),
        (lambda: "environment", None, "got builtins.str"),
    ],
)
def test_what_a_factory_makes_is_checked(factory: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuperSuitMatches([env_factory(factory, kwargs)])


def test_a_factory_that_gives_the_same_object_twice_is_refused_and_what_was_made_is_closed() -> None:
    env = ScriptedEnv()
    with pytest.raises(ValueError, match="game 1 the same object"):
        SuperSuitMatches([lambda: env] * 3)
    assert env.closed == 1


def test_views_need_a_running_game() -> None:
    with pytest.raises(RuntimeError, match="call reset"):
        make().observations()
