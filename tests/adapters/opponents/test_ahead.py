"""Inference ahead: equal actions with and without it, what runs in which thread, errors, the rule, the end of the thread."""

from __future__ import annotations

import copy
import threading
import time
import traceback
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import VecFrameStack

from adapters.networks import policy_kwargs
from adapters.opponents import ahead
from adapters.opponents.parse import frozen, mixture
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool import OpponentPool
from adapters.sb3 import make_sb3_env
from adapters.vec_env.curry import CurryVecEnv

torch.set_num_threads(1)
SMALL: dict[str, Any] = {"width": 15, "height": 15, "num_snakes": 3}
LSTM: dict[str, Any] = {"lstm_hidden_size": 8, "net_arch": [], "ortho_init": False}


class OwnExtractor(FlattenExtractor):
    """A user's network."""


def env(opponent: Any = "random", wanted: bool | None = True, **more: Any) -> CurryVecEnv:
    made = make_sb3_env(opponent, env_kwargs=SMALL, num_games=4, seed=3, **more)
    made.lineup.ahead.wanted = wanted
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Untrained checkpoints of several algorithms, and a pool."""
    folder, games = tmp_path_factory.mktemp("ahead"), env()
    small: dict[str, Any] = {"n_steps": 8, "batch_size": 8, "device": "cpu"}
    models = {
        "a": PPO("CnnPolicy", games, policy_kwargs=policy_kwargs(), seed=0, **small),
        "b": PPO("MlpPolicy", games, seed=1, **small),
        "masked": MaskablePPO("MlpPolicy", games, seed=2, **small),
        "recurrent": RecurrentPPO("MlpLstmPolicy", games, policy_kwargs=LSTM, seed=3, **small),
        "dqn": DQN("MlpPolicy", games, buffer_size=10, seed=4, device="cpu"),
        "stacked": PPO("MlpPolicy", VecFrameStack(games, 2), seed=5, **small),
        "own": PPO("MlpPolicy", games, policy_kwargs={"features_extractor_class": OwnExtractor}, seed=6, **small),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.zip")
    pool = OpponentPool(folder / "pool", per="seat")
    for step, name in enumerate(("a", "b"), 1):
        pool.add(models[name], step=step)
    paths: dict[str, Any] = {name: str(folder / f"{name}.zip") for name in models}
    return {**paths, "pool": pool, "live": models["b"], "own": models["own"]}


LINEUPS = [
    "a",
    "a b",
    "live",
    "masked",
    "recurrent a",
    "dqn a",
    "stacked a",
    "own",
    "pool",
    "mixture",
    "function a",
    "likeliest",
]


def lineup(name: str, files: dict[str, Any]) -> Any:
    if name == "mixture":
        return mixture({files["a"]: 1, files["b"]: 1, "greedy": 1}, per="seat")
    if name == "likeliest":
        return frozen(files["a"], deterministic=True)
    members = {**files, "function": straight_on}
    made = [members[word] for word in name.split()]
    return made if len(made) > 1 else made[0]


def straight_on(observations: NDArray[Any]) -> NDArray[np.int64]:
    assert threading.current_thread() is threading.main_thread()
    return observations.reshape(len(observations), -1).sum(axis=1).astype(np.int64) % 4


def played(games: CurryVecEnv, files: dict[str, Any], steps: int = 30) -> list[Any]:
    """All that a learner sees while opponents change, games are seeded anew, and it draws from torch's random stream."""
    seen: list[Any] = [games.reset()]
    torch.manual_seed(0)
    for step in range(steps):
        if step == 8:
            games.set_opponent([files["b"], "greedy"], when="now")
        if step == 12:
            games.set_opponent([files["b"], files["masked"]])
        if step == 20:
            games.seed(5)
            seen.append(games.reset())
        time.sleep(0.001 * (step % 2))  # so that jobs have begun, or have not
        observations, rewards, dones, infos = games.step(torch.randint(4, (4,)).numpy())
        seen += [observations, rewards, dones, [info.get("opponents") for info in infos]]
    games.close()
    return seen


@pytest.mark.filterwarnings("ignore:opponent")
@pytest.mark.parametrize("name", LINEUPS)
def test_actions_are_the_same(name: str, files: dict[str, Any]) -> None:
    serial, overlapped = (played(env(lineup(name, files), wanted), files) for wanted in (False, True))
    for one, other in zip(serial, overlapped, strict=True):
        np.testing.assert_equal(one, other)


def test_learning_is_the_same(files: dict[str, Any]) -> None:
    weights = []
    for wanted in (False, True):
        games = env([files["a"], files["recurrent"]], wanted)
        model = PPO("MlpPolicy", games, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu").learn(128)
        weights.append(torch.nn.utils.parameters_to_vector(model.policy.parameters()))
        games.close()
    assert torch.equal(*weights)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which opponents infer."""
    seen: list[threading.Thread] = []
    infer = PolicyOpponent.infer

    def spied(self: PolicyOpponent, *rows: Any) -> Any:
        seen.append(threading.current_thread())
        return infer(self, *rows)

    monkeypatch.setattr(PolicyOpponent, "infer", spied)
    return seen


def until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("not within two seconds")


def test_inference_begins_before_the_learner_acts_and_ends_with_the_games(
    files: dict[str, Any], threads: list[threading.Thread]
) -> None:
    games = env(files["a"])
    games.reset()
    until(lambda: threads)
    (thread,) = threads
    assert thread is not threading.main_thread()
    assert thread.is_alive()
    games.step(np.zeros(4, np.int64))
    games.close()
    games.close()
    assert not thread.is_alive()


def test_what_has_not_begun_is_done_by_whoever_waits(files: dict[str, Any], threads: list[threading.Thread]) -> None:
    games, held = env(files["a"]), threading.Event()
    games.lineup.ahead.begin(99, np.arange(1), held.wait)
    games.reset()
    games.step(np.zeros(4, np.int64))
    held.set()
    games.close()
    assert threads[0] is threading.main_thread()


@pytest.mark.parametrize("name", ["own", "stacked", "recurrent", "dqn"])
def test_what_is_not_a_function_of_observations_stays_in_the_callers_thread(
    name: str, files: dict[str, Any], threads: list[threading.Thread]
) -> None:
    games = env(files[name])
    games.reset()
    time.sleep(0.02)
    assert not threads
    games.step(np.zeros(4, np.int64))
    assert set(threads) <= {threading.main_thread()}
    games.close()


def test_an_act_of_ones_own_is_called(files: dict[str, Any]) -> None:
    class Own(PolicyOpponent):
        def act(self, observations: Any, slots: Any, action_masks: Any) -> NDArray[Any]:
            return 0 * super().act(observations, slots, action_masks)

    assert PolicyOpponent(files["a"]).infers_ahead
    assert not Own(files["a"]).infers_ahead


def test_an_error_arrives_once_with_its_traceback(files: dict[str, Any]) -> None:
    games = env(files["a"])
    games.reset()
    opponent: Any = games.lineup.opponents[0]
    actor = opponent._actor

    def breaks(observations: Any) -> Any:
        raise ArithmeticError("no more")

    opponent._actor = breaks
    games.step_async(np.zeros(4, np.int64))  # with what began before
    games.step_wait()
    with pytest.raises(ArithmeticError, match="no more") as error:
        games.step(np.zeros(4, np.int64))
    assert "breaks" in [frame.name for frame in traceback.extract_tb(error.value.__traceback__)]
    opponent._actor = actor
    games.step(np.zeros(4, np.int64))
    games.close()


def test_games_with_a_thread_are_copied_and_pickled_without_it(files: dict[str, Any]) -> None:
    games = env(files["a"])
    games.reset()
    for other in (copy.deepcopy(games.lineup), cloudpickle.loads(cloudpickle.dumps(games.lineup))):
        assert other.ahead.wanted
        assert not other.ahead.take()
        other.close()
    games.close()


def test_the_thread_has_the_callers_number_of_torch_threads(files: dict[str, Any]) -> None:
    thread = ahead.Ahead()
    try:
        for number in (2, 1):
            torch.set_num_threads(number)
            thread.begin(0, np.arange(1), torch.get_num_threads)
            assert thread.take()[0].future.result() == number
    finally:
        torch.set_num_threads(1)
        thread.close()


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> ahead.Ahead:
    """After a sample in which inference took 1 ms, on two cores."""
    monkeypatch.setattr(ahead, "usable_cores", lambda: 2)
    thread = ahead.Ahead()
    for step in range(ahead.SAMPLE):
        assert not thread.due()
        thread.timed(0.001 if step else 1.0)
    return thread


def test_the_rule_is_the_time_that_inference_takes(sampled: ahead.Ahead) -> None:
    assert sampled.due()
    sampled.timed(0.0)  # nothing was inferred by the caller
    assert sampled.due()
    sampled.timed(ahead.PAYS / 2)
    assert not sampled.due()


def test_the_time_is_taken_again_and_again(sampled: ahead.Ahead) -> None:
    due = [sampled.due() for _ in range(ahead.PERIOD)]
    assert sum(due) == ahead.PERIOD - ahead.SAMPLE
    assert not sampled.due()  # nobody timed it
    sampled.timed(0.001)
    assert sampled.due()


def test_off_without_a_free_core(sampled: ahead.Ahead, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.autocast("cpu"):
        assert not sampled.due()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not sampled.due()
    monkeypatch.undo()
    monkeypatch.setattr(ahead, "usable_cores", lambda: 1)
    assert not sampled.due()


def test_the_sample_is_taken_of_what_infers(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[float] = []
    monkeypatch.setattr(ahead.Ahead, "timed", lambda self, seconds: taken.append(seconds))
    games = env([files["a"], straight_on], None)
    games.reset()
    games.step(np.zeros(4, np.int64))
    games.set_opponent(straight_on, when="now")
    games.step(np.zeros(4, np.int64))
    games.close()
    assert taken[0] > 0 == taken[1]


def test_the_cores_are_those_that_the_process_may_use() -> None:
    assert 1 <= ahead.usable_cores() <= (ahead.os.cpu_count() or 1)
