"""SuperSuitGameBatch: what SuperSuit's rows become, and how environments are made, reached and closed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import supersuit
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper, parallel_to_aec

from adapters.games.game_batch import GameBatch, TimeStep
from adapters.games.seating import next_game
from adapters.games.supersuit import SuperSuitGameBatch, env_factory
from snake_pz import snake_v0
from tests.support import scripted_env
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, ScriptedEnv

NO_OPTIONS: list[dict[str, Any]] = [{}, {}, {}]


def make(games: int = 3, learners: Any = 1, **kwargs: Any) -> SuperSuitGameBatch:
    return SuperSuitGameBatch([lambda: ScriptedEnv(**kwargs)] * games, learners=learners)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("learners", [0, 1, 2, 4])
def test_turns_equal_the_environments_played_side_by_side(name: str, learners: int) -> None:
    game_batch = make(learners=learners, scripts=SCRIPTS[name])
    raws = [ScriptedEnv(SCRIPTS[name]) for _ in range(3)]
    seeds = [11, 12, 13]
    started = [0, 0, 0]
    last: dict[tuple[int, int], NDArray[Any]] = {}
    rng = np.random.default_rng(1)

    def begin(game: int, time_step: TimeStep) -> None:
        game_seed = next_game(seeds[game], started[game], 1)[0]
        started[game] += 1
        observations, infos = raws[game].reset(seed=game_seed)
        for seat, agent in enumerate(game_batch.agents(game)):
            last[game, seat] = observations[agent].copy()
            assert time_step.reset_infos[game, seat] == {**infos[agent], "game_seed": game_seed, "agent": agent}
            assert time_step.active[game, seat]
            assert np.array_equal(time_step.observations[game, seat], last[game, seat])

    time_step = game_batch.reset(seeds, NO_OPTIONS)
    assert time_step.restarted.all()
    assert not time_step.infos
    assert not len(time_step.final_observations)
    assert not time_step.rewards.any()
    for game in range(3):
        begin(game, time_step)
    for _ in range(40):
        before, agents = time_step, [game_batch.agents(game) for game in range(3)]
        actions = rng.integers(NUM_ACTIONS, size=(3, 4))
        time_step = game_batch.step(actions)
        finals = []
        for game, raw in enumerate(raws):
            acting = list(raw.agents)
            seat_of = {agent: seat for seat, agent in enumerate(agents[game])}
            assert before.active[game].tolist() == [agent in acting for agent in agents[game]]
            result = raw.step({agent: actions[game, seat_of[agent]] for agent in acting})
            for agent, seat in sorted(seat_of.items(), key=lambda item: item[1]):
                ended = result[2].get(agent, False), result[3].get(agent, False)
                assert time_step.rewards[game, seat] == result[1].get(agent, 0.0)
                assert (time_step.terminated[game, seat], time_step.truncated[game, seat]) == ended
                assert time_step.infos.get((game, seat)) == result[4].get(agent)
                if agent in result[0]:
                    last[game, seat] = result[0][agent].copy()
                if any(ended):
                    finals.append(last[game, seat])
            over = not any(agent in raw.agents for agent in agents[game][: learners or 4])
            assert time_step.restarted[game] == over
            if over:
                begin(game, time_step)
            else:
                assert time_step.active[game].tolist() == [agent in raw.agents for agent in agents[game]]
                for seat in range(4):
                    assert np.array_equal(time_step.observations[game, seat], last[game, seat])
        assert len(time_step.final_observations) == len(finals)
        assert all(np.array_equal(*pair) for pair in zip(time_step.final_observations, finals, strict=True))
        assert set(time_step.reset_infos) == {(game, seat) for game in np.flatnonzero(time_step.restarted) for seat in range(4)}


def test_turns_never_change_afterwards() -> None:
    game_batch = make(scripts=SCRIPTS["mixed games"])
    turns = [game_batch.reset([1, 2, 3], NO_OPTIONS)]
    kept = []
    for _ in range(12):
        kept.append([np.array(value) for value in turns[-1][:7]])
        turns.append(game_batch.step(np.zeros((3, 4), dtype=np.int64)))
    for time_step, copies in zip(turns[:-1], kept, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(time_step[:7], copies, strict=True))


def test_is_a_matches_with_the_environment_s_spaces() -> None:
    game_batch: GameBatch = make(learners=["agent_3"], render_mode="rgb_array")
    assert (game_batch.num_games, game_batch.seats, game_batch.num_learners, game_batch.render_mode) == (3, 4, 1, "rgb_array")
    assert game_batch.observation_space.shape == (6,)
    assert game_batch.action_space == spaces.Discrete(NUM_ACTIONS)
    assert game_batch.agents(2) == ("agent_3", "agent_0", "agent_1", "agent_2")


def test_unseeded_games_differ_and_none_goes_on() -> None:
    game_batch = make()
    seeds = [info["game_seed"] for _ in range(4) for info in game_batch.reset([None] * 3, NO_OPTIONS).reset_infos.values()]
    assert len(set(seeds)) == 12

    def sequence() -> list[int]:
        first = game_batch.reset([7, 8, 9], NO_OPTIONS)
        then = game_batch.reset([None] * 3, NO_OPTIONS)
        return [time_step.reset_infos[game, 0]["game_seed"] for time_step in (first, then) for game in range(3)]

    assert sequence() == sequence()


def test_box_actions_reach_the_agents() -> None:
    game_batch = make(box_actions=True)
    game_batch.reset([1, 2, 3], NO_OPTIONS)
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 4, 2)).astype(np.float32)
    time_step = game_batch.step(actions)
    assert np.allclose(time_step.observations[..., 5], actions.sum(-1))
    for game, taken in enumerate(game_batch.get_attr("last_actions", range(3))):
        for seat, agent in enumerate(game_batch.agents(game)):
            assert np.array_equal(taken[agent], actions[game, seat])
            assert taken[agent].dtype == np.float32


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_masks_are_those_of_the_next_action_and_ones_for_the_dead(masks: str) -> None:
    game_batch = make(masks=masks, scripts=SCRIPTS["mixed games"], learners=2)
    time_step = game_batch.reset([1, 2, 3], NO_OPTIONS)
    for _ in range(20):
        assert time_step.action_masks is not None
        assert time_step.action_masks.shape == (3, 4, NUM_ACTIONS)
        assert time_step.action_masks.dtype == np.int8
        for game, mask_of in enumerate(game_batch.get_attr("mask", range(3))):
            for seat, agent in enumerate(game_batch.agents(game)):
                expected = mask_of(agent) if time_step.active[game, seat] else np.ones(NUM_ACTIONS)
                assert np.array_equal(time_step.action_masks[game, seat], expected)
        time_step = game_batch.step(np.argmax(time_step.action_masks, axis=-1))
    assert game_batch.get_attr("illegal_moves", range(3)) == [0, 0, 0]


def test_no_masks() -> None:
    game_batch = make()
    assert game_batch.reset([None] * 3, NO_OPTIONS).action_masks is None
    assert game_batch.action_masks() is None


def test_options_are_per_game() -> None:
    game_batch = make()
    game_batch.reset([None] * 3, [{"map": 1}, {}, {"map": 3}])
    assert game_batch.get_attr("last_options", range(3)) == [{"map": 1}, None, {"map": 3}]


def test_attribute_calls_reach_the_environment_of_each_game() -> None:
    game_batch = make()
    game_batch.set_attr("difficulty", 5, [0, 2])
    assert game_batch.get_attr("difficulty", range(3)) == [5, 1, 5]
    assert game_batch.env_method("describe", [2, 1], "hard", times=2) == ["hard-5 hard-5", "hard-1 hard-1"]
    game_batch.reset([None] * 3, NO_OPTIONS)
    assert game_batch.get_attr("possible_agents", [1]) == [[f"agent_{i}" for i in range(4)]]
    assert game_batch.get_attr("game", [0]) == [0]
    assert game_batch.get_attr("seed", [0]) != [None]
    with pytest.raises(AttributeError, match="colour"):
        game_batch.get_attr("colour", [0])


def test_attribute_calls_look_through_wrappers() -> None:
    inner: list[ScriptedEnv] = []

    def factory() -> BaseParallelWrapper[str, Any, Any]:
        inner.append(ScriptedEnv())
        return BaseParallelWrapper(BaseParallelWrapper(inner[-1]))

    game_batch = SuperSuitGameBatch([factory] * 2)
    game_batch.set_attr("difficulty", 7, [1])
    game_batch.set_attr("brand_new", True, [0])
    assert [env.difficulty for env in inner] == [1, 7]
    assert inner[0].brand_new is True
    assert game_batch.env_method("describe", [0, 1], "x") == ["x-1", "x-7"]


def test_render_is_per_game() -> None:
    game_batch = make(render_mode="rgb_array")
    game_batch.reset([None] * 3, NO_OPTIONS)
    game_batch.step(np.zeros((3, 4), dtype=np.int64))
    pictures = game_batch.render([2, 0])
    assert len(pictures) == 2
    assert pictures[0].shape == (4, 5, 3)
    assert pictures[0][0, 0, 0] == 1


def test_close_reaches_every_environment_exactly_once() -> None:
    game_batch = make()
    closed = game_batch.get_attr("closed", range(3))
    game_batch.close()
    game_batch.close()
    assert closed == [0, 0, 0]
    assert game_batch.get_attr("closed", range(3)) == [1, 1, 1]


def test_close_goes_on_when_one_environment_fails_to() -> None:
    class Fails(ScriptedEnv):
        def close(self) -> None:
            super().close()
            raise OSError("display lost")

    game_batch = SuperSuitGameBatch([ScriptedEnv, Fails, ScriptedEnv])
    with pytest.raises(OSError, match="display lost"):
        game_batch.close()
    assert game_batch.get_attr("closed", range(3)) == [1, 1, 1]


def test_view_is_the_environment_s_own_or_an_error_that_names_both() -> None:
    game_batch = make()
    view = game_batch.view(game_batch.observation_space, spaces.Discrete(NUM_ACTIONS))
    time_step = game_batch.reset([None] * 3, NO_OPTIONS)
    assert np.array_equal(view.observations(), time_step.observations)
    assert view.action_masks() is None
    actions = np.array([2, 1])
    assert np.array_equal(view.decode(actions, np.array([0, 1]), np.array([3, 2])), actions)
    with pytest.raises(ValueError, match=r"Box\(0.0, 1.0, \(9,\).*Discrete\(5\).*\(6,\).*Discrete\(3\)"):
        game_batch.view(spaces.Box(0, 1, (9,)), spaces.Discrete(5))


def test_an_instance_is_copied_for_every_game_and_never_stepped() -> None:
    env = ScriptedEnv(limit=3)
    env.difficulty = 9
    game_batch = SuperSuitGameBatch([env_factory(env, None)] * 2)
    game_batch.reset([1, 2], NO_OPTIONS[:2])
    game_batch.step(np.zeros((2, 4), dtype=np.int64))
    game_batch.set_attr("difficulty", 4, [0])
    game_batch.close()
    assert (env.resets, env.steps, env.closed, env.difficulty) == (0, 0, 0, 9)
    assert game_batch.get_attr("difficulty", [0, 1]) == [4, 9]
    assert game_batch.get_attr("steps", [0, 1]) == [1, 1]


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
        (scripted_env, None, r"module tests.support.scripted_env: pass scripted_env.parallel_env"),
        (3, None, r"expected a PettingZoo parallel environment, got builtins.int"),
        (supersuit.black_death_v3(snake_v0.parallel_env()), None, r"black_death_v3 around .* hides when agents die"),
    ],
)
def test_what_is_no_environment_is_refused_at_once(env: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        env_factory(env, kwargs)


def pass_on(**kwargs: Any) -> ScriptedEnv:
    made_by = ScriptedEnv
    return (lambda **more: made_by(**more))(**kwargs)


@pytest.mark.parametrize(
    ("factory", "kwargs", "message"),
    [
        (ScriptedEnv, {"limti": 3}, r"limti.*use some of scripts, num_agents, limit, masks"),
        (pass_on, {"limti": 3}, r"limti.*use some of scripts, num_agents, limit, masks"),
        (
            "butterfly/knights_archers_zombies_v11",
            {"num_kinghts": 3},
            r"num_kinghts.*use some of spawn_delay, num_archers, num_knights",
        ),
        (lambda: parallel_to_aec(ScriptedEnv()), None, "AEC environment"),
        (lambda: "environment", None, "got builtins.str"),
    ],
)
def test_what_a_factory_makes_is_checked(factory: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuperSuitGameBatch([env_factory(factory, kwargs)])


def test_a_factory_that_gives_the_same_object_twice_is_refused_and_what_was_made_is_closed() -> None:
    env = ScriptedEnv()
    with pytest.raises(ValueError, match="the same object for game 1"):
        SuperSuitGameBatch([lambda: env] * 3)
    assert env.closed == 1


def test_views_need_a_running_game() -> None:
    with pytest.raises(RuntimeError, match="call reset"):
        make().observations()
