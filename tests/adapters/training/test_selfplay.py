"""SelfPlayCallback: snapshots into the pool, results by placement, logs, and runs that go on as if never stopped."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HumanOutputFormat, KVWriter, Logger
from stable_baselines3.common.vec_env import VecNormalize

from adapters import make_sb3_env
from adapters.opponents.parse import frozen, mixture
from adapters.opponents.pool import OpponentPool
from adapters.opponents.statistics import find_statistics
from adapters.training.selfplay import LEARNER, SelfPlayCallback
from adapters.vec_env.buffers import ActiveRolloutBuffer
from adapters.vec_env.shared_game import SharedGame

torch.set_num_threads(1)

SMALL: dict[str, Any] = {"width": 7, "height": 7, "num_snakes": 3}
SETTINGS: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 32,
    "n_epochs": 1,
    "seed": 3,
    "policy_kwargs": {"net_arch": [8]},
    "device": "cpu",
}


def small_env(opponent: Any = "random", num_games: int = 4, **more: Any) -> Any:
    return make_sb3_env(opponent, num_games=num_games, env_kwargs=SMALL, seed=5, **more)


def learner(env: Any) -> PPO:
    return PPO("MlpPolicy", env, **SETTINGS)


class Written(KVWriter):
    """Everything that was logged."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None:
        pass


def test_the_learner_is_added_when_due_and_then_plays(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path, sampler="latest")
    env = small_env()
    seen: list[set[str]] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            seen.append({opponent.name for opponent in env.lineup.opponents})
            return True

    learner(env).learn(320, callback=[SelfPlayCallback(pool, snapshot_every=100), Watch()])
    assert [member.step for member in pool.members] == [0, 128, 256, 320]
    first, second, third, _ = (member.name for member in pool.members)
    assert seen[0] == {"random"}  # games that have begun go on
    assert first in seen[20]
    assert second in seen[40]
    assert third in seen[-1]
    assert PPO.load(pool.path(pool.members[1])).num_timesteps == 128
    env.close()


def test_a_mixture_gives_bots_their_share(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    env = small_env(num_games=64)
    callback = SelfPlayCallback(pool, snapshot_every=10_000, opponent=mixture({pool: 1, "greedy": 1}, per="seat"))
    learner(env).learn(4096, callback=callback)
    names = [name for game in range(64) for name in env.lineup.names(game)]
    assert 40 < names.count("greedy") < 88  # of 128
    assert set(names) == {"greedy", pool.members[0].name}
    env.close()


def test_results_are_placements_of_the_learner_against_each_seat(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    callback = SelfPlayCallback(pool, snapshot_every=1000)
    env = small_env()
    model = learner(env)
    callback.init_callback(model)
    callback.on_training_start({}, {})
    name = pool.members[0].name
    callback.locals = {
        "infos": [
            {},
            {
                "episode": {"r": -7.0},  # the reward says nothing
                "agent": "snake_1",
                "opponents": {"snake_0": name, "snake_2": "greedy"},
                "placements": {"snake_0": 2, "snake_1": 1, "snake_2": 1},
            },
            {
                "episode": {"r": 7.0},
                "agent": "snake_2",
                "opponents": {"snake_0": name, "snake_1": name},
                "placements": {"snake_0": 1, "snake_1": 3, "snake_2": 2},
            },
        ]
    }
    assert callback.on_step()
    writer = Written()
    model.set_logger(Logger(None, [writer]))
    callback.on_rollout_end()
    model.logger.dump()
    (row,) = writer.rows
    assert row["selfplay/win_rate"] == 0.25  # one of two games, shared by two
    assert row["selfplay/win_rate_as/snake_1"] == 0.5
    assert row["selfplay/win_rate_as/snake_2"] == 0
    assert row[f"selfplay/above/{name}"] == pytest.approx(2 / 3)
    assert row["selfplay/above/greedy"] == 0.5
    assert row["selfplay/members"] == 1
    assert 0 <= row["selfplay/opponent_time"] < 1
    assert pool.members[0].games == 3
    assert pool.members[0].score == 2
    assert callback.ratings[LEARNER].mu > callback.ratings[name].mu
    assert row["selfplay/rating"] == callback.ratings[LEARNER].mu
    env.close()


def foreign(folder: Path) -> OpponentPool:
    """Another run's pool, whose members are called as this one's will be."""
    pool, env = OpponentPool(folder), small_env()
    pool.add(learner(env), step=0)
    env.close()
    return pool


def test_other_runs_pools_are_told_from_the_own(tmp_path: Path) -> None:
    others = [foreign(tmp_path / name / "pool") for name in ("r0", "r1")]
    paths = [str(other.folder) for other in others]
    theirs = {str(other.folder / "snapshot_0") for other in others}
    met: Counter[str] = Counter()

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                met.update(info["opponents"].values() if "episode" in info else ())
            return True

    pool = OpponentPool(tmp_path / "own" / "pool", per="seat")
    env = small_env(paths[0])
    spec = mixture({str(pool.folder): 2, paths[0]: 1, paths[1]: 1}, per="seat")
    callback = SelfPlayCallback(pool, snapshot_every=10_000, opponent=spec)
    model = learner(env)
    model.set_logger(Logger(None, [table := HumanOutputFormat(StringIO()), written := Written()]))
    model.learn(640, callback=[callback, Watch()])
    env.close()
    assert set(met) == {"snapshot_0", *theirs}
    assert pool.members[0].games == met["snapshot_0"] / 2  # that was added when training ended, so this has aged
    assert set(callback.ratings.as_dict()) == {LEARNER, "snapshot_0", *theirs}
    assert theirs <= {key.removeprefix("selfplay/above/") for row in written.rows for key in row}
    assert "above/snapshot_0" in table.file.getvalue()  # and names that are too long for it are left out
    again = SelfPlayCallback(OpponentPool(pool.folder), snapshot_every=10_000, opponent=spec)
    assert again.ratings.as_dict() == callback.ratings.as_dict()


def test_agents_of_long_names_do_not_break_the_table(tmp_path: Path) -> None:
    names = [f"adversary_predator_agent_{number}" for number in range(2)]

    class Renamed(BaseCallback):
        """As if the learner's games had been over under these names."""

        def _on_step(self) -> bool:
            for name in names:
                callback._take(name, {}, {name: 1})
            return True

    env = small_env()
    callback = SelfPlayCallback(OpponentPool(tmp_path), snapshot_every=10_000)
    model = learner(env)
    model.set_logger(Logger(None, [table := HumanOutputFormat(StringIO()), written := Written()]))
    model.learn(64, callback=[callback, Renamed()])
    env.close()
    assert {f"selfplay/win_rate_as/{name}" for name in names} <= set(written.rows[0])
    assert "win_rate" in table.file.getvalue()
    assert "adversary" not in table.file.getvalue()


def test_another_pool_is_given_by_its_path(tmp_path: Path) -> None:
    other, pool = foreign(tmp_path / "r0" / "pool"), OpponentPool(tmp_path / "own")
    env = small_env()
    for opponent in (other, [other, pool], mixture({pool: 3, frozen(other): 1})):
        callback = SelfPlayCallback(pool, snapshot_every=64, opponent=opponent)
        with pytest.raises(ValueError, match=r"got that of '.*pool': give its path"):
            learner(env).learn(64, callback=callback)
    assert not pool.folder.exists()
    learner(env).learn(64, callback=SelfPlayCallback(pool, snapshot_every=64, opponent=other.folder))
    env.close()


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ({"ratings": []}, r"\['ratings'\] must be \[mu, sigma\] by name, .*, got \[\]"),
        ({"ratings": {"learner": 25.0}}, r"\['ratings'\] must be .*, got \{'learner': 25.0\}"),
        ({"ratings": {"learner": "12"}}, r"\['ratings'\] must be"),
        ({"ratings": {"learner": [25.0, None]}}, r"\['ratings'\] must be"),
        ({"ratings": {"learner": [25.0, 1e300]}}, r"\['ratings'\] must be"),
        ({"ratings": {"learner": [25.0, True]}}, r"\['ratings'\] must be"),
        ({"segment": "x"}, r"\['segment'\] must be a whole number >= 0, got 'x'"),
        ({"segment": None}, r"\['segment'\] must be a whole number"),
    ],
)
def test_what_a_damaged_manifest_has_kept_is_told(tmp_path: Path, kept: dict[str, Any], words: str) -> None:
    content = {"version": 1, "members": [], "learner": {"ratings": {}, "segment": 3, **kept}}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"the manifest of the pool in .*{tmp_path.name} is damaged: learner{words}"):
        SelfPlayCallback(OpponentPool(tmp_path), snapshot_every=9)


def test_a_snapshot_starts_with_the_learners_rating(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    env = small_env()
    callback = SelfPlayCallback(pool, snapshot_every=100)
    learner(env).learn(320, callback=callback)
    newest = pool.members[-1]
    assert newest.rating == callback.ratings[LEARNER]
    assert newest.rating != pool.members[0].rating
    env.close()


def test_normalisation_goes_along(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path, sampler="latest")
    env = VecNormalize(small_env(), norm_reward=False)
    learner(env).learn(256, callback=SelfPlayCallback(pool, snapshot_every=100))
    assert all(find_statistics(pool.path(member)) for member in pool.members)
    again = make_sb3_env(pool, num_games=2, env_kwargs=SMALL)
    again.reset()
    for _ in range(20):
        again.step(np.zeros(2, np.int64))
    again.close()
    env.close()


def test_off_policy_learners_play_themselves_too(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    env = small_env()
    model = DQN("MlpPolicy", env, learning_starts=10, buffer_size=1000, seed=0, policy_kwargs={"net_arch": [8]}, device="cpu")
    model.learn(600, callback=SelfPlayCallback(pool, snapshot_every=200, seed=1))
    assert [member.step for member in pool.members] == [0, 208, 400, 608]
    env.close()


class Stop(BaseCallback):
    """What a kill does: nothing is called after it."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.at:
            raise KeyboardInterrupt
        return True


def weights(model: PPO) -> list[np.ndarray]:
    return [value.numpy() for value in model.policy.state_dict().values()]


@pytest.mark.parametrize(("learners", "normalize"), [(1, False), (2, False), (1, True)])
def test_a_stopped_run_that_goes_on_equals_one_that_never_stopped(tmp_path: Path, learners: int, normalize: bool) -> None:
    def run(folder: Path, stops: list[int]) -> tuple[PPO, OpponentPool]:
        for stop in [*stops, 10_000]:
            pool = OpponentPool(folder, per="seat", max_active=2)
            env = small_env(learners=learners)
            active = env.active
            if normalize:
                kept = pool.statistics(pool.latest) if pool.latest else None
                env = VecNormalize.load(str(kept), env) if kept else VecNormalize(env)
            buffer: dict[str, Any] = {}
            if learners > 1:
                buffer = {"rollout_buffer_class": ActiveRolloutBuffer, "rollout_buffer_kwargs": {"active": active}}
            model = PPO("MlpPolicy", env, **buffer, **SETTINGS)
            if pool.latest is not None:
                model = PPO.load(pool.path(pool.latest), env, device="cpu")
            opponent = mixture({pool: 2, "greedy": 1}, per="seat")
            callback = SelfPlayCallback(pool, snapshot_every=130, opponent=opponent, seed=11)
            with suppress(KeyboardInterrupt):
                model.learn(640 - model.num_timesteps, callback=[callback, Stop(stop)], reset_num_timesteps=False)
            env.close()
        return model, pool

    whole, whole_pool = run(tmp_path / "whole", [])
    torch.rand(7)  # the other run begins with other global streams
    np.random.rand(7)  # noqa: NPY002
    pieces, pieces_pool = run(tmp_path / "pieces", [70, 300, 301, 500])
    assert whole.num_timesteps == pieces.num_timesteps == 640
    for one, other in zip(weights(whole), weights(pieces), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [(m.name, m.step, m.rating, m.games, m.score) for m in whole_pool.members] == [
        (m.name, m.step, m.rating, m.games, m.score) for m in pieces_pool.members
    ]
    assert whole_pool.learner == pieces_pool.learner
    assert whole_pool.learner["ratings"][LEARNER]


def test_bad_input(tmp_path: Path) -> None:
    pool = OpponentPool(tmp_path)
    with pytest.raises(ValueError, match="snapshot_every must be >= 1, got 0"):
        SelfPlayCallback(pool, snapshot_every=0)
    with pytest.raises(ValueError, match="VecEnv of make_sb3_env, got DummyVecEnv"):
        PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).learn(16, callback=SelfPlayCallback(pool, snapshot_every=9))
    env = small_env()
    learner(env).learn(128, callback=SelfPlayCallback(pool, snapshot_every=64))
    with pytest.raises(ValueError, match="is of a learner with 128 steps, this one has 0"):
        learner(env).learn(64, callback=SelfPlayCallback(pool, snapshot_every=64))
    env.close()
    game = SharedGame(learners=["snake_0", "snake_1"], opponent="random", env_kwargs=SMALL, num_games=2)
    models = {name: PPO("MlpPolicy", game.port(name), **SETTINGS) for name in game.learners}
    with pytest.raises(ValueError, match=r"cannot change the opponents of a SharedGame.*SharedGame\(opponent=pool\)"):
        game.learn(models, 64, callbacks={"snake_0": SelfPlayCallback(OpponentPool(tmp_path / "other"), snapshot_every=9)})
    game.close()


@pytest.mark.slow
def test_self_play_on_knights_archers_zombies(tmp_path: Path) -> None:
    from pettingzoo.butterfly import knights_archers_zombies_v11

    pool = OpponentPool(tmp_path)
    env = make_sb3_env(
        "random", env=knights_archers_zombies_v11.parallel_env, env_kwargs={"max_cycles": 200}, num_games=8, seed=0
    )
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=256, n_epochs=2, seed=0, device="cpu")
    writer = Written()
    model.set_logger(Logger(None, [writer]))
    model.learn(20_000, callback=SelfPlayCallback(pool, snapshot_every=5_000))
    assert [member.step for member in pool.members] == [0, 5120, 10240, 15360, 20480]
    assert sum(member.games for member in pool.members) > 0
    assert any("selfplay/win_rate" in row for row in writer.rows)
    env.close()
