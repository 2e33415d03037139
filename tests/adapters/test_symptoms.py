"""What people report of SuperSuit, PettingZoo, SB3 and RLlib glued together, and must not happen here: symptom by symptom.

Most have their test where the part is tested that prevents them; the others are below.

    an extra step after everyone died
        vec_env/test_curry.py::test_contract_4_no_ghost_step
    a crash when an agent dies
        vec_env/test_curry.py::test_contract_every_step_equals_the_raw_environment
    death that is not done, lengths too long
        vec_env/test_curry.py::test_contract_1_dones_and_episodes_are_exact
    zero observations in a rollout buffer
        vec_env/test_curry.py::test_rollout_boundaries_on_deaths
    terminal_observation missing, zero or of the next game
        vec_env/test_curry.py::test_contract_2_terminal_observation_is_the_real_last_one
    TimeLimit.truncated missing, or true on termination
        vec_env/test_curry.py::test_contract_3_time_limit_truncated_only_without_termination
    seed raising
        test_symptoms.py::test_seed_does_not_raise_however_the_vec_env_is_wrapped
    seed ignored
        vec_env/test_curry.py::test_contract_5_the_same_seed_gives_the_same_trajectories
    copies identical
        vec_env/test_curry.py::test_contract_5_games_differ_seeded_or_not
    copies identical across workers
        games/test_workers.py::test_unseeded_games_differ_within_and_across_workers
    attribute calls failing or ignoring indices
        vec_env/test_curry.py::test_contract_6_attribute_calls_with_indices
    nested reset_infos
        test_symptoms.py::test_reset_infos_are_flat_one_dict_per_environment
    one info dict for all
        vec_env/test_curry.py::test_contract_7_infos_are_distinct_and_arrays_never_change
    arrays that change later
        vec_env/test_curry.py::test_contract_7_infos_are_distinct_and_arrays_never_change
    close never reaching the environment
        vec_env/test_curry.py::test_close_reaches_every_environment_once
    zombies after double close
        games/test_workers.py::test_close_reaches_every_environment_once_and_ends_the_processes
    zombies after an exception or without close
        games/test_workers.py::test_no_ending_of_a_script_leaves_a_process
    a worker's error without its cause
        games/test_workers.py::test_an_exception_comes_back_as_it_is_with_the_worker_s_traceback
    a snapshot that changes as the learner learns
        opponents/test_policy.py::test_a_snapshot_does_not_learn_with_the_learner
    opponents swapped mid-game
        vec_env/test_curry.py::test_contract_10_opponents_change_when_their_game_restarts_or_now
    opponents that flip the training mode
        opponents/test_policy.py::test_a_live_models_training_mode_is_left_alone
    opponents that shift the random stream
        opponents/test_policy.py::test_global_random_streams_do_not_notice
    a policy useless in another seat
        test_symptoms.py::test_a_policy_plays_any_seat_as_it_learned_in_all
    a model saved with 1 environment failing in 16, LSTM included
        test_symptoms.py::test_a_model_of_one_environment_learns_and_plays_in_sixteen
    a dead agent's last reward repeated
        games/test_fixed_seats.py::test_the_dead_repeat_their_last_observation_without_reward
    a rollout boundary that falls on a death
        vec_env/test_curry.py::test_rollout_boundaries_on_deaths
    an agent that comes back
        test_symptoms.py::test_agents_that_come_back_or_never_come_are_one_clear_error
    a varying number of agents per reset
        test_symptoms.py::test_agents_that_come_back_or_never_come_are_one_clear_error
    a corrupt or foreign pickle in a checkpoint
        opponents/test_checkpoints.py::test_what_is_no_policy_in_a_checkpoint_may_be_broken_or_foreign
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

from adapters.sb3 import make_sb3_env
from tests.support.scripted_env import SCRIPTS, ScriptedEnv

torch.set_num_threads(1)

PLACES = re.findall(r"([\w/]*test_\w+\.py)::(\w+)", __doc__)


@pytest.mark.parametrize(("file", "test"), PLACES, ids=[f"{file}-{test}" for file, test in PLACES])
def test_the_table_names_tests_that_there_are(file: str, test: str) -> None:
    assert f"\ndef {test}(" in (Path(__file__).parent / file).read_text()


def test_the_table_is_complete() -> None:
    assert len(PLACES) == 29


def scripted(opponent: Any = "random", num_games: int = 3, **kwargs: Any) -> Any:
    return make_sb3_env(
        opponent, env=ScriptedEnv, num_games=num_games, env_kwargs={"scripts": SCRIPTS["mixed games"], **kwargs}
    )


@pytest.mark.filterwarnings("ignore:The environment is already wrapped with a `Monitor`:UserWarning")
@pytest.mark.parametrize(
    "wrap", [lambda venv: venv, VecMonitor, VecNormalize, lambda venv: VecFrameStack(VecNormalize(venv), 2)]
)
def test_seed_does_not_raise_however_the_vec_env_is_wrapped(wrap: Any) -> None:
    def first() -> Any:
        venv = wrap(scripted())
        assert len(venv.seed(7)) == 3
        return venv.reset()

    assert np.array_equal(first(), first())


@pytest.mark.parametrize("env", [ScriptedEnv, None], ids=["supersuit", "native"])
def test_reset_infos_are_flat_one_dict_per_environment(env: Any) -> None:
    venv = make_sb3_env("random", env=env, num_games=3)
    venv.reset()
    for _ in range(30):
        assert [type(info) for info in venv.reset_infos] == [dict] * 3
        for info in venv.reset_infos:
            assert isinstance(info["game_seed"], int)
            assert isinstance(info["agent"], str)
            assert not any(isinstance(value, dict) for value in info.values())
        venv.step(np.zeros(3, np.int64))


@pytest.mark.parametrize("env", [ScriptedEnv, None], ids=["supersuit", "native"])
def test_a_policy_plays_any_seat_as_it_learned_in_all(env: Any, tmp_path: Path) -> None:
    """One policy learns as each agent in turn, so its checkpoint may sit on every seat, beside itself and in the learner's."""
    venv = make_sb3_env("random", env=env, num_games=16, seed=0)
    learned_as = Counter()
    for _ in range(25):
        venv.reset()
        learned_as.update(info["agent"] for info in venv.reset_infos)
    assert len(learned_as) == 4
    assert min(learned_as.values()) > 60  # 100 expected, standard deviation 8.7
    PPO("MlpPolicy", venv, n_steps=2, batch_size=32, device="cpu").save(tmp_path / "one")
    for agent in learned_as:
        games = make_sb3_env(tmp_path / "one.zip", env=env, learners=[agent], num_games=2)
        model = PPO.load(tmp_path / "one", env=games, device="cpu", n_steps=2, batch_size=4)
        model.learn(4)


@pytest.mark.parametrize(("algorithm", "policy"), [(PPO, "MlpPolicy"), (RecurrentPPO, "MlpLstmPolicy")])
def test_a_model_of_one_environment_learns_and_plays_in_sixteen(algorithm: Any, policy: str, tmp_path: Path) -> None:
    model = algorithm(policy, scripted(num_games=1), n_steps=8, batch_size=8, n_epochs=1, device="cpu")
    model.learn(16)
    model.save(tmp_path / "small")
    sixteen = scripted(tmp_path / "small.zip", num_games=16)
    again = algorithm.load(tmp_path / "small", env=sixteen, device="cpu")
    again.learn(16 * 16)
    assert len(again.ep_info_buffer) > 16
    again.save(tmp_path / "large")
    algorithm.load(tmp_path / "large", env=scripted(tmp_path / "large.zip", num_games=1), device="cpu").learn(16)


class ComesBack(ScriptedEnv):
    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        if self.time == 4:
            self.agents = list(self.possible_agents)
        return result


class FewerEachReset(ScriptedEnv):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        result = super().reset(seed, options)
        self.agents = self.agents[: 4 - self.game]
        return result


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ComesBack, r"game 0: 'agent_1' in `agents` after step although dead.*agents that return are not supported"),
        (
            FewerEachReset,
            r"game 0: 'agent_3' missing from `agents` after reset.*a varying number of agents is not supported",
        ),
    ],
)
def test_agents_that_come_back_or_never_come_are_one_clear_error(kind: Any, message: str) -> None:
    venv = make_sb3_env(
        "random", env=kind, num_games=2, learners=["agent_0"], env_kwargs={"scripts": [{1: (2, "terminated")}], "limit": 6}
    )
    model = PPO("MlpPolicy", venv, n_steps=8, batch_size=16, device="cpu")
    with pytest.raises(RuntimeError, match=message):
        model.learn(64)
