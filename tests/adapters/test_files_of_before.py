"""Files that the package wrote before it was restructured: they load, they play alike and they go on alike.

What each file in `data/before` is, and how it was made, is told in the README there. What is expected came from the code that
wrote them, by the functions of this module that are not tests.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import VecNormalize

from adapters import OpponentPool, make_sb3_env
from adapters.buffers import ActiveReplayBuffer, ActiveRolloutBuffer
from adapters.evaluation.evaluate import play_games
from adapters.evaluation.tournament import tournament
from adapters.networks import SnakeNet
from adapters.opponents import PolicyOpponent
from adapters.opponents.statistics import find_statistics
from adapters.training.run import resume
from adapters.training.selfplay import SelfPlayCallback
from snake_pz import Rules
from snake_pz.replay import Replay
from tests.support.continuous_toy import LineEnv

torch.set_num_threads(1)

DATA = Path(__file__).parents[1] / "data" / "before"
TOLERANCE = float(os.environ.get("TOLERANCE_OF_BEFORE", "1e-5"))
"""Of floats, for other processors round otherwise; on the machine that made the files 0 will do."""

ROWS = 16
BOTS = ["greedy", "random", "survivor", "territorial"]
RULES = {"classic": Rules.classic(), "battlesnake": Rules.battlesnake(), "hungry_geese": Rules.hungry_geese()}

BOARD = {"width": 7, "height": 7, "num_snakes": 2}
GREY = {**BOARD, "observation": "single"}
TURNING = {**BOARD, "observation": "egocentric", "actions": "relative"}
LEAGUE = {"width": 7, "height": 7, "num_snakes": 3, "observation": "single"}
ON_SNAKE = {
    "ppo": (PPO, {"opponent": "greedy", "env_kwargs": BOARD}),
    "ppo_snakenet": (PPO, {"opponent": "greedy", "env_kwargs": TURNING}),
    "ppo_normalized": (PPO, {"opponent": "greedy", "env_kwargs": GREY}),
    "ppo_all": (PPO, {"learners": "all", "env_kwargs": GREY}),
    "a2c": (A2C, {"opponent": "greedy", "env_kwargs": GREY}),
    "dqn": (DQN, {"opponent": "greedy", "env_kwargs": GREY}),
    "dqn_all": (DQN, {"learners": "all", "env_kwargs": GREY}),
    "qrdqn": (QRDQN, {"opponent": "greedy", "env_kwargs": GREY}),
    "maskable": (MaskablePPO, {"opponent": "greedy", "env_kwargs": GREY}),
    "recurrent": (RecurrentPPO, {"opponent": "greedy", "env_kwargs": GREY}),
}
ON_LINE = {
    "sac": (SAC, {"opponent": "random", "env": LineEnv}),
    "ppo_dict": (PPO, {"opponent": "random", "env": LineEnv, "env_kwargs": {"continuous": False, "as_dict": True}}),
}
CHECKPOINTS = {**ON_SNAKE, **ON_LINE}
"""By file name: the algorithm, and the games it learned in."""

POOLS = {
    "as it is": {},
    "by seat": {"per": "seat", "sampler": "uniform"},
    "latest in half of the games": {"latest_share": 0.5},
    "one at a time": {"max_active": 1, "max_loaded": 1},
}


def games_of(name, num_games=4):
    """The games that a checkpoint learned in, its statistics around them if it has some."""
    env = make_sb3_env(**CHECKPOINTS[name][1], num_games=num_games, device="cpu", seed=5)
    statistics = DATA / f"{name}_vecnormalize.pkl"
    return VecNormalize.load(str(statistics), env) if statistics.exists() else env


def league(opponent, num_games=4):
    return make_sb3_env(opponent, env_kwargs=LEAGUE, num_games=num_games, device="cpu", seed=5)


def batches(kept):
    """The batches of observations in an .npz and their masks, as `act` takes them one after the other."""
    parts = {key.partition(".")[2]: rows for key, rows in kept.items() if key.startswith("observations")}
    turns = len(next(iter(parts.values())))
    masks = kept.get("masks", [None] * turns)
    for turn in range(turns):
        yield parts[""][turn].copy() if "" in parts else {key: rows[turn] for key, rows in parts.items()}, masks[turn]


def acted(name, kept, **settings):
    """(turns, rows, ...) what the checkpoint does as an opponent on these observations."""
    shown = games_of(name, num_games=1).unwrapped.observation_space
    opponent = PolicyOpponent(DATA / f"{name}.zip", shown=[shown], device="cpu", **settings)
    opponent.seed(7)
    return np.array([opponent.act(observations, np.arange(ROWS), masks) for observations, masks in batches(kept)])


def learned_on(name, steps=160):
    """A fingerprint of the weights after learning on for some steps."""
    env = games_of(name)
    model = CHECKPOINTS[name][0].load(DATA / f"{name}.zip", env, device="cpu")
    model.set_random_seed(11)
    model.learn(steps, reset_num_timesteps=False)
    env.close()
    return {"steps": model.num_timesteps, "weights": fingerprint(model)}


def fingerprint(model):
    """Three numbers for each array of weights."""
    weights = {key: value.double() for key, value in model.policy.state_dict().items()}
    return {key: [float(x) for x in (w.mean(), w.abs().mean(), w.flatten()[-1])] for key, w in weights.items()}


def plain_results(players, **settings):
    results = play_games(players, device="cpu", **settings)
    return {name: getattr(results, name).tolist() for name in ("ranks", "lengths", "turns")}


def checkpoint_results(name):
    """Games of a checkpoint against a bot."""
    return plain_results([DATA / f"{name}.zip", "greedy"], games=8, seed=4, env_kwargs={"rules": Rules.classic(**BOARD)})


def bot_results(rules):
    return plain_results(BOTS, games=20, seed=3, env_kwargs={"rules": RULES[rules]})


def trajectory(backend):
    """Hashes of all that a learner gets to see in 60 steps."""
    env = make_sb3_env("greedy", num_games=4, seed=5, backend=backend)
    rng, seen, ends = np.random.default_rng(1), hashlib.sha256(env.reset().tobytes()), []
    for _ in range(60):
        observations, rewards, dones, infos = env.step(rng.integers(env.action_space.n, size=env.num_envs))
        for array in (observations, rewards, dones):
            seen.update(array.tobytes())
        for info in (info for info in infos if "episode" in info):
            ends.append([info["agent"], info["opponents"], info["placements"], info["episode"]["r"], info["episode"]["l"]])
    env.close()
    return {"seen": seen.hexdigest(), "episodes": len(ends), "ends": hashlib.sha256(json.dumps(ends).encode()).hexdigest()}


def standings():
    played = tournament(["survivor", "greedy", "random"], games=40, seed=2)
    return [[one.name, one.rating.mu, one.rating.sigma, one.win_rate, one.mean_turns] for one in played.standings]


def pool_contents(pool):
    return {"members": [member.as_dict() for member in pool.members], "learner": pool.learner}


def drawn(opponent):
    """Who sits on the enemy seats of 64 games, at the start and after some of them have restarted."""
    env = league(opponent, num_games=64)
    env.reset()
    names = [[env.lineup.names(game) for game in range(64)]]
    for _ in range(25):
        env.step(np.zeros(64, int))
    names.append([env.lineup.names(game) for game in range(64)])
    env.close()
    return names


def league_after(folder):
    """What self-play of 512 more steps leaves in the pool, and the learner's weights."""
    pool = OpponentPool(folder)
    env = league("random")
    model = PPO.load(pool.path(pool.latest), env, device="cpu")
    model.learn(512, callback=SelfPlayCallback(pool, snapshot_every=256, seed=11), reset_num_timesteps=False)
    env.close()
    content = pool_contents(pool)
    for member in content["members"]:
        member.pop("sha256", None)  # of a file with times in it
    return {**content, "weights": fingerprint(model)}


def run_result(folder, measured):
    """What a run that is over has in its folder."""
    content = pool_contents(OpponentPool(folder / "pool"))
    for member in content["members"]:
        member.pop("sha256", None)
    last = (folder / "progress.csv").read_text().splitlines()
    row = dict(zip(last[0].split(","), last[-1].split(","), strict=True))
    clocks = ("time/", "selfplay/opponent_time")
    logged = {key: float(row[key]) for key in sorted(row) if row[key] and not key.startswith(clocks)}
    return {**content, **measured, "rows": len(last), "logged": logged, "game": (folder / "game.jsonl").read_text()}


def assert_alike(found, expected, where="it"):
    """Equal, but for what `TOLERANCE` grants to floats."""
    if isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE), f"{where}: {found} for {expected}"
    elif isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key, value in expected.items():
            assert_alike(found[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_alike(found[number], value, f"{where}[{number}]")
    else:
        assert found == expected, where


@pytest.fixture(scope="module")
def expected():
    return json.loads((DATA / "expected.json").read_text())


def kept_for(name):
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("deterministic", [True, False], ids=["likeliest", "sampled"])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_of_before_acts_alike(name, deterministic):
    kept = kept_for(name)
    actions = acted(name, kept, deterministic=deterministic)
    answers = kept["deterministic" if deterministic else "sampled"]
    assert actions.dtype == answers.dtype
    np.testing.assert_allclose(actions, answers, rtol=0, atol=TOLERANCE if answers.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", ON_SNAKE)
def test_a_checkpoint_of_before_plays_alike(name, expected):
    assert_alike(checkpoint_results(name), expected["checkpoints"][name]["games"])


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_of_before_learns_on_alike(name, expected):
    assert_alike(learned_on(name), expected["checkpoints"][name]["learned on"])


def test_what_checkpoints_of_before_name_is_what_there_is_now():
    assert PPO.load(DATA / "ppo_all.zip", device="cpu").rollout_buffer_class is ActiveRolloutBuffer
    assert DQN.load(DATA / "dqn_all.zip", device="cpu").replay_buffer_class is ActiveReplayBuffer
    assert type(PPO.load(DATA / "ppo_snakenet.zip", device="cpu").policy.features_extractor) is SnakeNet


def test_statistics_of_before_are_found_and_matter():
    assert find_statistics(DATA / "ppo_normalized.zip") == DATA / "ppo_normalized_vecnormalize.pkl"
    kept = kept_for("ppo_normalized")
    raw = PPO.load(DATA / "ppo_normalized.zip", device="cpu").predict(kept["observations"][0], deterministic=True)[0]
    assert not np.array_equal(raw, kept["deterministic"][0])


# ---------------------------------------------------------------- pools and runs


def test_a_pool_of_before_opens_as_it_was_left(expected):
    pool = OpponentPool(DATA / "pool")
    assert_alike(pool_contents(pool), expected["pool"]["contents"])
    assert_alike(pool.weights().tolist(), expected["pool"]["weights"])
    assert [pool.verified(member).name for member in pool.members[1:]] == ["snapshot_0.zip", "snapshot_512.zip"]


@pytest.mark.parametrize("settings", POOLS)
def test_a_pool_of_before_seats_the_same_members(settings, expected):
    found = drawn(OpponentPool(DATA / "pool", **POOLS[settings]))
    assert found == [[tuple(names) for names in when] for when in expected["pool"]["drawn"][settings]]


def test_a_pool_of_before_seats_the_same_members_if_given_by_its_path(expected):
    found = drawn(DATA / "pool")
    names = expected["pool"]["drawn"]["as it is"]
    assert found == [[tuple(os.path.join(DATA / "pool", name) for name in game) for game in when] for when in names]


def test_self_play_goes_on_alike_from_a_pool_of_before(tmp_path, expected):
    shutil.copytree(DATA / "pool", tmp_path / "pool")
    assert_alike(league_after(tmp_path / "pool"), expected["pool"]["learned on"])


def test_a_run_of_before_goes_on_as_if_it_had_never_stopped(tmp_path, expected):
    run = tmp_path / "run"
    shutil.copytree(DATA / "run", run)
    said = []
    measured = resume(run, say=said.append)
    assert said[0].startswith("going on after 512 steps, to 1,536")
    found, before = run_result(run, measured), expected["run"]
    for result in (found, before):  # the losses of a row were those of the update before, and success was not logged
        kept = result["logged"].items()
        result["logged"] = {key: value for key, value in kept if not key.startswith(("train/", "rollout/success_rate"))}
    assert_alike(found, before)
    found = PPO.load(run / "model.zip", device="cpu").policy.state_dict()
    with np.load(DATA / "run_whole.npz") as whole:
        assert list(found) == list(whole)
        for key, weights in whole.items():
            np.testing.assert_allclose(found[key].numpy(), weights, rtol=TOLERANCE, atol=TOLERANCE, err_msg=key)


# ---------------------------------------------------------------- games


@pytest.mark.parametrize("rules", ["classic", "hungry_geese"])
def test_a_replay_of_before_loads_and_is_written_alike(rules, tmp_path, expected):
    path = DATA / f"game_{rules}.jsonl"
    replay = Replay.load(path)  # which plays it, and compares what every turn comes to
    assert replay.hashes[-1] == expected["replays"][rules]
    assert (replay.rules, set(replay.names)) == (RULES[rules], set(BOTS))
    replay.save(tmp_path / "loaded.jsonl")
    assert path.read_text() == (tmp_path / "loaded.jsonl").read_text()


@pytest.mark.parametrize("rules", RULES)
def test_bots_play_alike(rules, expected):
    assert_alike(bot_results(rules), expected["bots"][rules])


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_a_learner_sees_the_same(backend, expected):
    assert trajectory(backend) == expected["trajectories"][backend]


def test_a_tournament_ends_alike(expected):
    assert_alike(standings(), expected["tournament"])
