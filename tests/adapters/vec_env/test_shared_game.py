"""Several learners in one simulation: what each is told, what it learns from, and how they start, stop and go on together."""

from __future__ import annotations

import base64
import json
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

from adapters.opponents.parse import mixture
from adapters.opponents.simple import RandomOpponent
from adapters.sb3 import make_sb3_env
from adapters.vec_env.shared_game import SharedGame
from snake_pz import snake_v0
from tests.support.cue_env import CueEnv, UnlikeEnv
from tests.support.scripted_env import SCRIPTS, ScriptedEnv

torch.set_num_threads(1)

ON: dict[str, Any] = {"n_steps": 16, "device": "cpu"}
OFF: dict[str, Any] = {"learning_starts": 32, "buffer_size": 5000, "batch_size": 32, "device": "cpu"}
SNAKE: dict[str, Any] = {"width": 7, "height": 7, "max_cycles": 20}
AGENTS = ["agent_0", "agent_1", "agent_2"]


def ppo(venv: Any, **more: Any) -> PPO:
    return PPO("MlpPolicy", venv, **{**ON, "batch_size": 48, "n_epochs": 1, **more})


def a2c(venv: Any, **more: Any) -> A2C:
    return A2C("MlpPolicy", venv, **{**ON, **more})


def dqn(venv: Any, **more: Any) -> DQN:
    return DQN("MlpPolicy", venv, **{**OFF, **more})


@pytest.fixture
def make_game() -> Iterator[Callable[..., SharedGame]]:
    games: list[SharedGame] = []

    def make(env: Any = None, **kwargs: Any) -> SharedGame:
        games.append(SharedGame(env=env, **{"num_games": 3, "device": "cpu", **kwargs}))
        return games[-1]

    yield make
    for game in games:
        game.close()


def cue_game(make_game: Callable[..., SharedGame], **kwargs: Any) -> tuple[SharedGame, dict[str, Any]]:
    """A game of three, and a model of each kind."""
    game = make_game(CueEnv, learners=AGENTS, **kwargs)
    return game, {name: make(game.learner_env(name)) for name, make in zip(AGENTS, [ppo, a2c, dqn], strict=True)}


def weights(model: Any) -> NDArray[Any]:
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.policy.parameters()])


class Each(BaseCallback):
    """Calls a function of the callback at each step."""

    def __init__(self, function: Callable[[Any], bool | None]) -> None:
        super().__init__()
        self.function = function

    def _on_step(self) -> bool:
        return self.function(self) is not False


def last_infos(callback: Any) -> list[dict[str, Any]]:
    """Of the rows that are done in this step."""
    return [info for info, done in zip(callback.locals["infos"], callback.locals["dones"], strict=True) if done]


# What a learner's VecEnv says


def scripted() -> ScriptedEnv:
    return ScriptedEnv(SCRIPTS["mixed games"], masks="info")


def snake() -> Any:
    return snake_v0.parallel_env(**SNAKE, actions="relative")


def moves(observation: Any, choices: int = 3) -> int:
    flat = np.asarray(observation, np.float64).ravel()
    return int(flat @ np.arange(1, len(flat) + 1) * 997) % choices


@pytest.mark.parametrize(
    ("raw", "settings", "names"),
    [
        pytest.param(scripted, {"env": scripted}, ("agent_2", "agent_0"), id="scripted"),
        pytest.param(snake, {"env_kwargs": {**SNAKE, "actions": "relative"}}, ("snake_2", "snake_0"), id="snake"),
    ],
)
def test_a_learner_env_shows_its_own_agents(make_game: Any, raw: Any, settings: Any, names: Any) -> None:
    """Agents in another order than the environment's, against the environment itself."""
    prefix = names[0][:-1]
    game = make_game(
        learners=[f"{prefix}{i}" for i in (0, 2)],
        opponent=lambda observations: np.array([moves(one) for one in observations]),
        num_games=2,
        **settings,
    )
    venv = game.learner_env(*names)
    envs = [raw() for _ in range(2)]
    seen: list[dict[str, Any]] = [{}, {}]
    rows = venv.reset()
    deaths = 0

    def restart(at: int) -> None:
        seen[at] = {k: v.copy() for k, v in envs[at].reset(seed=venv.reset_infos[2 * at]["game_seed"])[0].items()}

    for at in range(2):
        restart(at)
    for _ in range(60):
        chosen = []
        for at, env in enumerate(envs):
            for column, name in enumerate(names):
                np.testing.assert_array_equal(rows[2 * at + column], seen[at][name])
                chosen.append(moves(seen[at][name]))
                if name in env.agents and venv.get_attr("action_masks"):
                    mask = venv.action_masks()[2 * at + column]
                    if isinstance(env, ScriptedEnv):
                        np.testing.assert_array_equal(mask, env.mask(name).astype(bool))
        rows, rewards, dones, infos = venv.step(np.array(chosen))
        for at, env in enumerate(envs):
            acting = list(env.agents)
            said = env.step({agent: moves(seen[at][agent]) for agent in acting})
            for agent, observation in said[0].items():
                seen[at][agent] = observation.copy()
            for column, name in enumerate(names):
                row = 2 * at + column
                ended = name in acting and (said[2][name] or said[3][name])
                assert dones[row] == ended
                assert rewards[row] == (np.float32(said[1][name]) if name in acting else 0)
                if ended:
                    deaths += 1
                    np.testing.assert_array_equal(infos[row]["terminal_observation"], seen[at][name])
                    assert infos[row]["agent"] == name
                    assert infos[row]["opponents"] == dict.fromkeys((f"{prefix}{i}" for i in (1, 3)), "<lambda>")
            if not set(env.agents) & set(names):
                restart(at)
    assert deaths > 10


def test_each_learner_hears_of_itself(make_game: Any) -> None:
    game = make_game(ScriptedEnv, env_kwargs={"scripts": SCRIPTS["mixed games"]}, learners=AGENTS, opponent="random")
    models = {name: make(game.learner_env(name)) for name, make in zip(AGENTS, [ppo, a2c, dqn], strict=True)}
    heard: dict[str, list[Any]] = {name: [] for name in AGENTS}

    def listen(name: str) -> Each:
        def hear(callback: Any) -> None:
            heard[name].extend(last_infos(callback))

        return Each(hear)

    game.learn(models, 300, callbacks={name: listen(name) for name in AGENTS})
    kinds = {"agent_0": "PPO", "agent_1": "A2C", "agent_2": "DQN", "agent_3": "random"}
    for index, name in enumerate(AGENTS):
        assert heard[name]
        for info in heard[name]:
            agent, time, played = (int(number) for number in info["terminal_observation"][:3])
            script = SCRIPTS["mixed games"][played % len(SCRIPTS["mixed games"])]
            assert (agent, time) == (index, script.get(index, (7, ""))[0])
            assert info["episode"]["l"] == time
            assert info["agent"] == name
            assert info["opponents"] == {other: kind for other, kind in kinds.items() if other != name}
            assert set(info["placements"]) == set(kinds)


# What is learnt from


class Trained(BaseCallback):
    """What a model observed where it acted, and what of that reached an optimiser step."""

    def __init__(self, end: Callable[[NDArray[Any]], int]) -> None:
        super().__init__()
        self.end = end
        self.acted: Counter[Any] = Counter()
        self.waited = 0
        self.trained: Counter[Any] = Counter()

    def _on_training_start(self) -> None:
        if isinstance(self.model, DQN):
            sample = self.model.replay_buffer.sample
            self.model.replay_buffer.sample = lambda *args, **kwargs: self.learn(sample(*args, **kwargs))
        else:
            evaluate = self.model.policy.evaluate_actions
            self.model.policy.evaluate_actions = lambda obs, actions: self.count(obs) or evaluate(obs, actions)

    def learn(self, batch: Any) -> Any:
        self.count(batch.observations)
        return batch

    def count(self, observations: torch.Tensor) -> None:
        self.trained.update(tuple(row) for row in observations.float().numpy().tolist())

    def _on_step(self) -> bool:
        for row in self.model._last_obs.astype(np.float32):
            if row[1] < self.end(row):
                self.acted[tuple(row.tolist())] += 1
            else:
                self.waited += 1
        return True


def test_no_row_that_waits_is_learnt_from(make_game: Any) -> None:
    scripts = SCRIPTS["mixed games"]

    def end(row: NDArray[Any]) -> int:
        agent, played = int(row[0]), int(row[2])
        return scripts[played % len(scripts)].get(agent, (7, ""))[0]

    game = make_game(ScriptedEnv, env_kwargs={"scripts": scripts, "num_agents": 3}, learners=AGENTS)
    models = {name: make(game.learner_env(name)) for name, make in zip(AGENTS, [ppo, a2c, dqn], strict=True)}
    counts = {name: Trained(end) for name in AGENTS}
    game.learn(models, 480, callbacks=counts)
    for count in counts.values():
        assert count.waited > 50
        assert count.trained
    for name in AGENTS[:2]:
        assert counts[name].trained == counts[name].acted  # each once, and nothing else
    assert set(counts["agent_2"].trained) <= set(counts["agent_2"].acted)


def test_one_policy_may_play_several_agents(make_game: Any) -> None:
    game = make_game(learners=["snake_0", "snake_1", "snake_2"], opponent=mixture({"greedy": 1, "random": 1}), env_kwargs=SNAKE)
    alone, both = dqn(game.learner_env("snake_1")), ppo(game.learner_env("snake_2", "snake_0"))
    assert (alone.n_envs, both.n_envs) == (3, 6)
    heard: list[dict[str, Any]] = []
    told = Each(lambda callback: heard.extend(last_infos(callback)))
    game.learn({"snake_1": alone, "snake_0": both}, {("snake_0", "snake_2"): 400, "snake_1": 200}, callbacks={"snake_0": told})
    assert alone.num_timesteps >= 200
    assert both.num_timesteps >= 400
    assert {info["agent"] for info in heard} == {"snake_0", "snake_2"}
    assert all(info["opponents"]["snake_1"] == "DQN" for info in heard)
    assert {info["opponents"]["snake_3"] for info in heard} == {"greedy", "random"}


def test_opponents_hear_of_every_new_game(make_game: Any) -> None:
    class Listening(RandomOpponent):
        heard: ClassVar[Counter[int]] = Counter()

        def reset(self, slots: NDArray[np.intp]) -> None:
            self.heard.update(slots.tolist())

    opponent = Listening(CueEnv().observation_space("agent_2"), CueEnv().action_space("agent_2"))
    game = make_game(CueEnv, learners=AGENTS[:2], opponent=opponent)
    models = {name: ppo(game.learner_env(name)) for name in AGENTS[:2]}
    game.learn(models, 96)
    begun = game.learner_env("agent_0").get_attr("games")
    assert min(begun) > 5
    assert opponent.heard == {2 + 3 * at: games for at, games in enumerate(begun)}


@pytest.mark.slow
def test_three_algorithms_learn_together(make_game: Any) -> None:
    """All three beat what they were, and the same seeds make the same weights."""

    def learnt() -> dict[str, Any]:
        game = make_game(CueEnv, learners=AGENTS, num_games=8, seed=1)
        models = {
            "agent_0": PPO("MlpPolicy", game.learner_env("agent_0"), n_steps=128, batch_size=256, n_epochs=4, seed=2,
                           device="cpu"),
            "agent_1": A2C("MlpPolicy", game.learner_env("agent_1"), seed=3, device="cpu"),
            "agent_2": DQN("MlpPolicy", game.learner_env("agent_2"), learning_starts=500, exploration_fraction=0.3,
                           target_update_interval=500, learning_rate=1e-3, seed=4, device="cpu"),
        }  # fmt: skip
        untrained = {name: score(game, models, name) for name in models}
        game.learn(models, 30_000)
        for name in models:
            assert untrained[name] < 3
            assert score(game, models, name) > 6, f"{name}, untrained {untrained[name]}"
        return models

    def score(game: SharedGame, models: dict[str, Any], name: str) -> float:
        """The mean reward of a game, of ten at the most."""
        others = {other: model for other, model in models.items() if other != name}
        alone = make_game(CueEnv, learners=[name], opponent=others, seed=5)
        mean, _ = evaluate_policy(models[name], alone.learner_env(name), n_eval_episodes=40)
        return float(mean)

    first, second = learnt(), learnt()
    for name in first:
        np.testing.assert_array_equal(weights(first[name]), weights(second[name]))


def test_seeds_fix_everything(make_game: Any) -> None:
    def learnt(seed: int | None, game_seed: int | None) -> list[NDArray[Any]]:
        game = make_game(learners=["snake_0", "snake_1", "snake_2"], opponent="random", env_kwargs=SNAKE, seed=game_seed)
        models = {
            "snake_2": ppo(game.learner_env("snake_2"), seed=seed),
            "snake_0": dqn(game.learner_env("snake_0"), seed=seed),
            "snake_1": a2c(game.learner_env("snake_1"), seed=seed),
        }
        game.learn(models, {"snake_0": 300, "snake_1": 150, "snake_2": 200})  # some play on, frozen
        return [weights(model) for model in models.values()]

    def same(first: list[NDArray[Any]], second: list[NDArray[Any]]) -> list[bool]:
        return [np.array_equal(one, other) for one, other in zip(first, second, strict=True)]

    assert all(same(learnt(1, None), learnt(1, None)))  # the models' seeds are enough
    assert all(same(learnt(1, 2), learnt(1, 2)))
    assert not any(same(learnt(1, 2), learnt(1, 3)))


def test_the_games_seed_fixes_games(make_game: Any) -> None:
    def seeds(**kwargs: Any) -> list[int]:
        game = make_game(CueEnv, learners=["agent_0"], opponent="random", **kwargs)
        game.learner_env("agent_0").reset()
        return [info["game_seed"] for info in game.learner_env("agent_0").reset_infos]

    assert seeds(seed=1) == seeds(seed=1) != seeds(seed=2)
    assert seeds() != seeds()
    with pytest.raises(ValueError, match="seed must be >= 0, got -1"):
        seeds(seed=-1)


# Ending and going on


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_in_one_stops_all(make_game: Any, error: type[BaseException]) -> None:
    tidied: list[str] = []

    class TidyPPO(PPO):
        def learn(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().learn(*args, **kwargs)
            finally:
                tidied.append("agent_0")
                self.env.reset()  # cannot be, and must not wait for ever

    def break_down(callback: Any) -> None:
        if callback.num_timesteps >= 60:
            raise error("broken")

    game, models = cue_game(make_game)
    models["agent_0"] = TidyPPO("MlpPolicy", game.learner_env("agent_0"), batch_size=48, **ON)
    with pytest.raises(error, match="broken") as raised:
        game.learn(models, 1000, callbacks={"agent_1": Each(break_down)})
    assert "break_down" in "".join(traceback.format_tb(raised.value.__traceback__))
    assert tidied == ["agent_0"]
    assert "cannot be reset while models learn" in raised.value.__notes__[0]
    before = {name: weights(model) for name, model in models.items()}
    assert [model.num_timesteps for model in models.values()][1] == 60
    game.learn({**models, "agent_0": ppo(game.learner_env("agent_0"))}, 200, reset_num_timesteps=False)
    assert models["agent_1"].num_timesteps >= 260
    assert not np.array_equal(before["agent_1"], weights(models["agent_1"]))


def test_what_goes_wrong_while_stopping_is_noted(make_game: Any) -> None:
    class BadPPO(PPO):
        def learn(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().learn(*args, **kwargs)
            finally:
                raise OSError("disk full")

    game, models = cue_game(make_game)
    models["agent_0"] = BadPPO("MlpPolicy", game.learner_env("agent_0"), batch_size=48, **ON)
    with pytest.raises(ZeroDivisionError) as raised:
        game.learn(models, 100, callbacks={"agent_2": Each(lambda callback: 1 // 0)})
    assert "disk full" in raised.value.__notes__[0]


def test_an_exception_of_the_environment_stops_all(make_game: Any) -> None:
    class Broken(CueEnv):
        def step(self, actions: Any) -> Any:
            if self.time == 3:
                raise ZeroDivisionError("the environment")
            return super().step(actions)

        def is_right(self, agent: str, action: Any) -> bool:
            return True

    game = make_game(Broken, learners=AGENTS)
    models = {name: ppo(game.learner_env(name)) for name in AGENTS}
    with pytest.raises(ZeroDivisionError, match="the environment"):
        game.learn(models, 1000)
    assert [model.num_timesteps for model in models.values()] == [9, 9, 9]


class Always(PPO):
    """Does the same whatever it sees, and does not learn."""

    def always(self, action: int) -> Always:
        with torch.no_grad():
            self.policy.action_net.weight[:] = 0
            self.policy.action_net.bias[:] = -50
            self.policy.action_net.bias[action] = 50
        return self

    def train(self) -> None:
        pass


@pytest.mark.parametrize("ends", ["steps", "callback"])
def test_who_has_learnt_plays_on(make_game: Any, ends: str) -> None:
    game = make_game(ScriptedEnv, env_kwargs={"scripts": SCRIPTS["mixed games"], "num_agents": 3}, learners=AGENTS)
    early = Always("MlpPolicy", game.learner_env("agent_1"), batch_size=48, **ON).always(2)
    models = {"agent_0": a2c(game.learner_env("agent_0")), "agent_1": early, "agent_2": dqn(game.learner_env("agent_2"))}
    played: list[Any] = []

    def watch(callback: Any) -> None:
        if callback.num_timesteps == 150:
            early.always(0)  # it is a copy that plays on
        if callback.num_timesteps > 30:
            played.extend(taken.get("agent_1") for taken in game.learner_env("agent_0").get_attr("last_actions"))

    callbacks = {"agent_0": Each(watch)}
    if ends == "callback":
        callbacks["agent_1"] = Each(lambda callback: callback.num_timesteps < 48)
    game.learn(models, {"agent_0": 300, "agent_1": 48 if ends == "steps" else 300, "agent_2": 240}, callbacks=callbacks)
    assert early.num_timesteps == 48
    assert models["agent_0"].num_timesteps >= 300
    assert played.count(2) > 100
    assert set(played) == {2, None}


def test_what_plays_on_samples(make_game: Any) -> None:
    played: Counter[Any] = Counter()

    class Watched(CueEnv):
        def step(self, actions: Any) -> Any:
            played.update(int(actions[agent]) for agent in actions if agent == "agent_0")
            return super().step(actions)

    game = make_game(Watched, learners=AGENTS[:2], opponent="random")
    models = {"agent_0": ppo(game.learner_env("agent_0")), "agent_1": ppo(game.learner_env("agent_1"))}
    game.learn(models, {"agent_0": 0, "agent_1": 300})
    assert models["agent_0"].num_timesteps == 0
    assert len(played) == 4


def test_learning_again_goes_on(make_game: Any) -> None:
    game, models = cue_game(make_game)
    game.learn(models, 96)
    game.learn(models, dict.fromkeys(models, 48), reset_num_timesteps=False)
    assert [model.num_timesteps for model in models.values()] == [144, 144, 144]
    game.learn(models, 48)
    assert [model.num_timesteps for model in models.values()] == [48, 48, 48]


def test_a_learner_env_may_be_wrapped(make_game: Any) -> None:
    game = make_game(CueEnv, learners=AGENTS[:2], opponent="random")
    models = {"agent_0": ppo(VecNormalize(game.learner_env("agent_0"))), "agent_1": dqn(game.learner_env("agent_1"))}
    game.learn(models, {"agent_0": 48, "agent_1": 96})
    assert models["agent_0"].num_timesteps == 48


def test_checkpoints_are_ordinary(make_game: Any, tmp_path: Path) -> None:
    game, models = cue_game(make_game)
    game.learn(models, 60)
    for name, model in models.items():
        model.save(tmp_path / name)
        with zipfile.ZipFile(tmp_path / f"{name}.zip") as archive:
            data = json.loads(archive.read("data"))
        pickles = [
            base64.b64decode(value[":serialized:"])
            for value in data.values()
            if isinstance(value, dict) and ":serialized:" in value
        ]
        assert len(pickles) > 3
        assert not [one for one in pickles if b"adapters" in one]
        loaded = type(model).load(tmp_path / name, device="cpu")
        np.testing.assert_array_equal(weights(loaded), weights(model))
        alone = make_game(CueEnv, learners=[name], opponent=str(tmp_path / f"{name}.zip"))
        loaded.set_env(alone.learner_env(name))
        loaded.learn(60)  # and learns on, without learn() of the game


def test_a_progress_bar_shows_the_longest(make_game: Any, capsys: pytest.CaptureFixture[str]) -> None:
    game, models = cue_game(make_game)
    game.learn(models, {"agent_0": 48, "agent_1": 100, "agent_2": 60}, progress_bar=True)
    assert "100/100" in capsys.readouterr().err
    game.learn(models, 48)
    assert capsys.readouterr().err == ""


def test_logs_are_named_by_agents(make_game: Any, tmp_path: Path) -> None:
    game = make_game(CueEnv, learners=AGENTS)
    models = {
        ("agent_0", "agent_2"): ppo(game.learner_env("agent_0", "agent_2"), tensorboard_log=str(tmp_path)),
        "agent_1": ppo(game.learner_env("agent_1"), tensorboard_log=str(tmp_path)),
    }
    game.learn(models, 48, log_interval=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent_0+agent_2_1", "agent_1_1"]


# Agents of different spaces


def unlike_models(game: SharedGame) -> dict[str, Any]:
    return {
        "agent_0": dqn(game.learner_env("agent_0")),
        "agent_1": SAC("MultiInputPolicy", game.learner_env("agent_1"), **OFF),
        "agent_2": MaskablePPO("MlpPolicy", game.learner_env("agent_2"), batch_size=48, **ON),
    }


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_agents_may_have_different_spaces(make_game: Any, num_workers: int, tmp_path: Path) -> None:
    game = make_game(UnlikeEnv, learners=AGENTS, opponent="random", num_workers=num_workers)
    models = unlike_models(game)
    for name, model in models.items():
        seen = UnlikeEnv.SEEN[name]
        assert model.observation_space == (seen if name != "agent_2" else seen["observation"])
        assert model.action_space == UnlikeEnv.DONE[name]
    said: list[Any] = []

    def listen(callback: Any) -> None:
        said.extend(info["terminal_observation"] for info in last_infos(callback))

    game.learn(models, {"agent_0": 150, "agent_1": 150, "agent_2": 48}, callbacks=dict.fromkeys(["agent_1"], Each(listen)))
    assert {tuple(sorted(one)) for one in said} == {("cue", "time")}
    assert all(one["cue"].sum() == 1 and one["time"] > 0 for one in said)  # it is shown a cue once more when it is out
    assert game.learner_env("agent_0").get_attr("illegal_moves") == [0, 0, 0]

    # What has learnt one agent plays that one, and no other.
    models["agent_2"].save(tmp_path / "agent_2")
    checkpoint = str(tmp_path / "agent_2.zip")
    others = {"agent_1": models["agent_1"], "agent_2": checkpoint, "agent_3": models["agent_0"]}
    alone = make_game(UnlikeEnv, learners=["agent_0"], opponent=others)
    evaluate_policy(models["agent_0"], alone.learner_env("agent_0"), n_eval_episodes=10)
    assert alone.learner_env("agent_0").get_attr("illegal_moves") == [0, 0, 0]
    with pytest.raises(ValueError, match="agent 'agent_3' sees"):
        make_game(UnlikeEnv, learners=["agent_0"], opponent={**others, "agent_3": checkpoint})
    with pytest.raises(ValueError, match="agent 'agent_1' sees"):
        alone.set_opponent({**others, "agent_1": mixture({checkpoint: 1, "random": 1})})


def test_functions_see_what_the_agent_sees_that_they_play(make_game: Any) -> None:
    shapes: list[Any] = []

    def speak(observations: Any) -> NDArray[Any]:
        shapes.append(observations.shape[1:])
        return np.zeros(len(observations), int)

    def push(observations: Any) -> NDArray[Any]:
        shapes.append({key: value.shape[1:] for key, value in observations.items()})
        return np.ones((len(observations["cue"]), 2), np.float32)

    game = make_game(UnlikeEnv, learners=["agent_2"], opponent={"agent_0": speak, "agent_3": speak, "agent_1": push})
    venv = game.learner_env("agent_2")
    venv.reset()
    np.testing.assert_array_equal(venv.action_masks().sum(axis=1), [2, 2, 2])
    venv.step(np.array([5, 5, 5]))
    assert shapes == [(4,), {"cue": (4,), "time": ()}] or shapes == [{"cue": (4,), "time": ()}, (4,)]


def test_one_policy_cannot_play_agents_of_different_spaces(make_game: Any) -> None:
    game = make_game(UnlikeEnv, learners=["agent_0", "agent_1", "agent_3"], opponent="random")
    with pytest.raises(ValueError, match=r"different spaces.*a learner_env of its own"):
        game.learner_env("agent_0", "agent_1")
    assert game.learner_env("agent_3", "agent_0").num_envs == 6
    with pytest.raises(ValueError, match="SharedGame"):
        make_sb3_env("random", env=UnlikeEnv, learners=["agent_0"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simple_speaker_listener_v4", "simple_tag_v3"])
def test_particles_learn_together(make_game: Any, name: str) -> None:
    env = pytest.importorskip(f"mpe2.{name}").parallel_env
    agents = env().possible_agents
    game = make_game(env, learners=agents)
    teams: dict[tuple[str, ...], Any] = {}
    for agent in agents:
        team = tuple(other for other in agents if other.split("_")[0] == agent.split("_")[0])
        teams[team] = (ppo if len(teams) else dqn)(game.learner_env(*team)) if team not in teams else teams[team]
    game.learn(teams, 300)
    assert all(model.num_timesteps >= 300 for model in teams.values())


# What is refused


def test_errors(make_game: Any) -> None:
    with pytest.raises(ValueError, match="list of agent names, got 'all'"):
        make_game(CueEnv, learners="all")
    with pytest.raises(ValueError, match="nobody"):
        make_game(CueEnv, learners=["nobody"], opponent="random")
    game, models = cue_game(make_game)
    with pytest.raises(ValueError, match=r"one or several of the learners.*got \['agent_7'\]"):
        game.learner_env("agent_7")
    with pytest.raises(ValueError, match="one VecEnv only"):
        game.learner_env("agent_0", "agent_1")
    assert game.learner_env("agent_0") is models["agent_0"].get_env()
    with pytest.raises(ValueError, match=r"needs a model, but there is none for \['agent_1'\]"):
        game.learn({"agent_0": models["agent_0"], "agent_2": models["agent_2"]}, 100)
    with pytest.raises(ValueError, match="'agent_9' has no VecEnv"):
        game.learn({**models, "agent_9": models["agent_0"]}, 100)
    with pytest.raises(ValueError, match="second entry"):
        game.learn({**models, ("agent_0",): models["agent_0"]}, 100)
    with pytest.raises(ValueError, match=r"model of \['agent_0'\] must be made on its VecEnv"):
        game.learn({**models, "agent_0": models["agent_1"]}, 100)
    with pytest.raises(ValueError, match=r"missing \[\('agent_2',\)\]"):
        game.learn(models, {"agent_0": 1, "agent_1": 1})
    with pytest.raises(ValueError, match="callbacks: 'agent_5' has no VecEnv"):
        game.learn(models, 10, callbacks={"agent_5": None})
    with pytest.raises(ValueError, match="RecurrentPPO"):
        game.learn({**models, "agent_0": RecurrentPPO("MlpLstmPolicy", game.learner_env("agent_0"), batch_size=48, **ON)}, 100)
    with pytest.raises(ValueError, match="VecFrameStack would mix frames"):
        game.learn({**models, "agent_1": a2c(VecFrameStack(game.learner_env("agent_1"), 2))}, 100)
    with pytest.raises(ValueError, match="opponents of a learner_env"):
        game.learner_env("agent_0").set_opponent("random")
    assert [model.num_timesteps for model in models.values()] == [0, 0, 0]
    with pytest.raises(RuntimeError, match=r"SharedGame\.learn"):
        models["agent_0"].learn(100)


def test_a_callback_cannot_play_the_games(make_game: Any) -> None:
    game, models = cue_game(make_game)
    with pytest.raises(RuntimeError, match=r"EvalCallback.*environment of their own"):
        game.learn(models, 100, callbacks={"agent_0": EvalCallback(game.learner_env("agent_0"), eval_freq=5, verbose=0)})
    with pytest.raises(RuntimeError, match="only by its model"):
        game.learn(models, 100, callbacks={"agent_0": Each(lambda callback: game.learner_env("agent_1").reset())})
    with pytest.raises(RuntimeError, match="already"):
        game.learn(models, 100, callbacks={"agent_0": Each(lambda callback: game.learn(models, 1))})
    game.learn(models, 48)


def test_evaluation_has_games_of_its_own(make_game: Any) -> None:
    game, models = cue_game(make_game)
    aside = make_game(CueEnv, learners=["agent_0"], opponent="random", num_games=2)
    evaluation = EvalCallback(aside.learner_env("agent_0"), eval_freq=10, n_eval_episodes=4, verbose=0)
    game.learn(models, 96, callbacks={"agent_0": evaluation})
    assert evaluation.last_mean_reward > -np.inf
