"""Imitation of recorded games."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from adapters import make_sb3_env, record_game, snake_policy_kwargs
from adapters.training.imitation import imitate
from adapters.training.replay_lessons import lessons_of
from snake_pz import RewardWeights, Rules, SnakeEngine, make_bot
from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.replay import Recorder, Replay
from snake_pz.replay.importing import import_game, read_recorded
from snake_pz.replay.recording import LETTERS

torch.set_num_threads(1)
DATA = Path(__file__).resolve().parents[2] / "data"
WEIGHTS = RewardWeights(food=0.5, death=-1.0, win=2.0)


def a_game(seed: int = 3, turns: int = 1000) -> Replay:
    """A game of three of greedy and one that makes no valid move on some turns."""
    rules, rng = Rules(width=7, height=7), np.random.default_rng(seed)
    engine, bot = SnakeEngine(rules), make_bot("greedy", rules)
    bot.seed(seed)
    engine.reset(seeds=[seed])
    recorder = Recorder(engine, seed, ["a", "b", "c", "d"])
    while not engine.state.over[0] and engine.state.turn[0] < turns:
        moves = bot.act(engine.observe("board")[0], np.arange(4), engine.action_masks("absolute")[0])
        moves[3] = -1 if rng.random() < 0.2 else moves[3]
        engine.step(moves[None])
        recorder.turn(moves)
    return recorder.replay()


def spaces(rules: Rules, encoding: str, actions: str) -> tuple[Any, Any]:
    return observation_space(rules, encoding), action_space(actions)


@pytest.mark.parametrize(("encoding", "actions"), [("board", "absolute"), ("egocentric", "relative")])
def test_lessons_are_what_was_seen_done_and_paid(encoding: str, actions: str) -> None:
    replay = a_game()
    found = lessons_of([replay], *spaces(replay.rules, encoding, actions), WEIGHTS, 0.9, ["a", "d"])
    engine, rows, paid = SnakeEngine(replay.rules), [], []
    for state, letters in zip(replay.states(), [*replay.actions, "----"], strict=True):
        engine.load(state)
        paid.append(engine.rewards(WEIGHTS)[0].copy())
        for snake in (0, 3):
            if (direction := LETTERS.index(letters[snake])) < 4:
                chosen = direction if actions == "absolute" else (direction - int(state.heading[0, snake]) + 1) % 4
                rows.append((len(paid) - 1, snake, chosen, engine.observe(encoding)[0, snake].copy()))
    assert {letter for letters in replay.actions for letter in letters[3]} > {"x"}
    assert len(rows) == len(found.actions) > 20
    for (turn, snake, chosen, seen), got, action, returned in zip(rows, *found, strict=True):
        np.testing.assert_array_equal(got, seen)
        assert action == chosen
        later = [reward[snake] for reward in paid[turn + 1 :]]
        assert returned == pytest.approx(sum(0.9**k * reward for k, reward in enumerate(later)), abs=1e-5)


def test_imported_games_are_lessons_too(tmp_path: Path) -> None:
    """A game of the official environment of Hungry Geese teaches a policy for those rules."""
    (tmp_path / "episode.json").write_bytes(gzip.decompress((DATA / "hg_episode.json.gz").read_bytes()))
    replay, _ = import_game(read_recorded(tmp_path / "episode.json"))
    found = lessons_of([replay], *spaces(replay.rules, "board", "absolute"), WEIGHTS, 0.9)
    valid = sum(letter in "urdl" for letters in replay.actions for letter in letters)
    assert len(found.actions) == valid > 100
    model = learner(rules=Rules.hungry_geese())
    result = imitate(model, replays=[replay], players=["goose 0", "goose 2"], epochs=1)
    assert 60 < result.steps < valid


def learner(**changes: Any) -> PPO:
    env_kwargs = {"observation": "egocentric", "actions": "relative", **changes}
    env = make_sb3_env("random", env_kwargs=env_kwargs, num_games=4, seed=0)
    return PPO("CnnPolicy", env, n_steps=32, batch_size=64, policy_kwargs=snake_policy_kwargs(), seed=0, device="cpu")


@pytest.mark.slow
def test_the_policy_does_what_the_players_did() -> None:
    replays = [record_game(["greedy"] * 4, seed=seed) for seed in range(8)]
    model, seen = learner(), []
    last = imitate(model, replays=replays, epochs=4, batch_size=64, each=seen.append)
    assert [one.steps for one in seen] == [last.steps // 4 * k for k in range(1, 5)]
    assert last.agreement > seen[0].agreement + 0.1
    assert last.cross_entropy < seen[0].cross_entropy - 0.15
    model.learn(128)


def test_what_cannot_be_learned_from_is_refused() -> None:
    replay, model = record_game(["greedy"] * 4, seed=1), learner()
    with pytest.raises(ValueError, match="replays are in place of teacher and steps"):
        imitate(model, make_bot("greedy", Rules()), replays=[replay])
    with pytest.raises(ValueError, match="imitation needs a teacher and steps, or replays"):
        imitate(model)
    with pytest.raises(ValueError, match=r"no move to learn from, by \['nobody'\] among \['greedy"):
        imitate(model, replays=[replay], players=["nobody"])
    with pytest.raises(ValueError, match="no move to learn from, by anybody"):
        imitate(model, replays=[])
    with pytest.raises(ValueError, match=r"replay 1 has games of another kind: .* 7x7 board"):
        imitate(model, replays=[replay, a_game()])
    env = VecNormalize(learner().get_env())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without VecNormalize"):
        imitate(PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu"), replays=[replay])
