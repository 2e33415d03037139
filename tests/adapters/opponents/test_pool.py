"""OpponentPool: the folder and what survives a crash, who plays how often, and playing in games."""

import gc
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from adapters import frozen, make_sb3_env, mixture
from adapters.evaluation.evaluate import play_games
from adapters.opponents import checkpoints
from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.members import Member, prioritized, recent, uniform
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool import OpponentPool, PoolInUseError
from adapters.opponents.pool_files import is_pool
from adapters.opponents.pool_source import PoolSource
from adapters.opponents.protocol import Source
from adapters.ratings import Rating
from snake_pz.files import LOCK
from tests.support.array_games import OBSERVATIONS, Games, Scribe
from tests.support.scripted_env import SCRIPTS, ScriptedEnv
from tests.support.toys import VECTOR, WORLD, Toy, act, observe, resolve_seats


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A small checkpoint with little in it."""
    path = tmp_path_factory.mktemp("small") / "small.zip"
    PPO("MlpPolicy", Toy(), n_steps=8, batch_size=8, policy_kwargs={"net_arch": [4]}, device="cpu", seed=0).save(path)
    return path


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK)


# ---------------------------------------------------------------- the folder


def test_a_pool_opens_as_it_was_left(trained, tmp_path):
    model, path = trained("ppo")
    pool = OpponentPool(tmp_path / "pool")
    assert (pool.members, pool.latest, is_pool(tmp_path / "pool")) == ((), None, False)
    survivor = pool.add_bot("survivor")
    second = pool.add(path, step=200, name="copied")
    first = pool.add(model, step=100)
    pool.record("survivor", 1.5, games=3)
    pool.record("copied", 1)
    pool.learner = {"steps": 200, "mood": ["good", None]}
    pool.save()

    assert (survivor.name, survivor.file, survivor.sha256) == ("survivor", None, None)
    assert (first.name, first.step, first.file) == ("snapshot_100", 100, "snapshot_100.zip")
    assert (second.name, second.file) == ("copied", "snapshot_200_copied.zip")
    assert first.observation_space == second.observation_space == str(VECTOR)
    assert second.action_space == "Discrete(4)"
    assert [member.name for member in pool.members] == ["survivor", "snapshot_100", "copied"]
    assert pool.latest.name == "copied"
    assert pool.path(second) == tmp_path / "pool" / "snapshot_200_copied.zip"
    assert pool.path(second).read_bytes() == path.read_bytes()
    assert files(pool.folder) == ["manifest.json", "snapshot_100.zip", "snapshot_200_copied.zip"]
    again = OpponentPool(tmp_path / "pool")
    assert (again.members, again.learner) == (pool.members, pool.learner)
    assert set(again.names) == {"survivor", "snapshot_100", "copied"}
    assert json.loads((pool.folder / "manifest.json").read_text())["members"][0] == {
        "name": "survivor", "step": 0, "games": 3, "score": 1.5,
    }  # fmt: skip


def test_ratings_are_kept_as_pairs_or_as_ratings(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path)
    pool.add(checkpoint, step=1, rating=(30, 2.5))
    pool.add_bot("greedy")
    pool.set_rating("greedy", Rating(20.125, 1 / 3))
    pool.save()
    greedy, snapshot = OpponentPool(tmp_path).members
    assert snapshot.rating == Rating(30, 2.5)
    assert greedy.rating == Rating(20.125, 1 / 3)


def test_a_model_is_saved_with_its_optimiser_and_its_statistics(tmp_path, monkeypatch):
    env = VecNormalize(make_sb3_env("random", num_games=2, env_kwargs={"observation": "board"}), norm_reward=True)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [4]}, device="cpu").learn(16)
    pool = OpponentPool(tmp_path)
    member = pool.add(model, step=16)
    assert files(tmp_path) == ["manifest.json", "snapshot_16.zip", "snapshot_16_vecnormalize.pkl"]
    assert member.statistics_sha256 is not None
    loaded = PPO.load(pool.path(member), device="cpu")
    assert loaded.policy.optimizer.state_dict()["state"].keys() == model.policy.optimizer.state_dict()["state"].keys() != set()
    copied = OpponentPool(tmp_path / "copy").add(pool.path(member), step=3)
    assert (copied.sha256, copied.statistics_sha256) == (member.sha256, member.statistics_sha256)
    games = make_sb3_env(pool, num_games=2, device="cpu")
    (opponent,) = games.lineup.opponents
    assert opponent.preprocessing.steps  # normalised
    verified = pool.verified
    with monkeypatch.context() as patched:  # thinned out between a look at the files and their loading
        patched.setattr(pool, "verified", lambda member: (verified(member), pool.statistics(member).rename(tmp_path / "x"))[0])
        with pytest.raises(FileNotFoundError, match=r"snapshot_16_vecnormalize\.pkl"):
            make_sb3_env(pool, num_games=2)
    (tmp_path / "snapshot_16_vecnormalize.pkl").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"snapshot_16_vecnormalize\.pkl is not the file that was added to the pool"):
        make_sb3_env(pool, num_games=2)


def test_a_file_that_is_not_the_one_that_was_added_is_refused(checkpoint, trained, tmp_path):
    pool = OpponentPool(tmp_path / "pool")
    pool.add(checkpoint, step=1)
    pool.path(pool.latest).write_bytes(trained("ppo")[1].read_bytes())
    with pytest.raises(
        ValueError, match=r"snapshot_1\.zip is not the file that was added to the pool: expected sha256 \w+, got"
    ):
        resolve_seats(pool, enemy_agents=None, num_enemies=1, **WORLD)


def test_what_a_pool_does_not_take(checkpoint, trained, tmp_path):
    pool = OpponentPool(tmp_path / "pool")
    pool.add(checkpoint, step=5)
    pool.add_bot("greedy")
    before = files(pool.folder), pool.members
    text = tmp_path / "text.zip"
    text.write_text("hello")
    wrong = [
        (lambda: pool.add(checkpoint, step=5), ValueError, "has a member 'snapshot_5' already: give another step or name"),
        (lambda: pool.add(checkpoint, step=6, name="Greedy"), ValueError, "has a member 'Greedy' already"),
        (lambda: pool.add(checkpoint, step=6, name="../up"), ValueError, r"letters, digits and _\.-, got '\.\./up'"),
        (lambda: pool.add_bot("snapshot_5"), ValueError, "has a member 'snapshot_5' already"),
        (lambda: pool.add_bot("gen3.zip"), ValueError, r"add_bot takes the name .*, got 'gen3\.zip': add\(path, step"),
        (lambda: pool.add_bot("runs/x"), ValueError, "add_bot takes the name of a bot, such as 'greedy', got 'runs/x'"),
        (lambda: pool.add_bot(tmp_path / "x"), ValueError, "add_bot takes the name of a bot, such as 'greedy', got .*Path"),
        (lambda: pool.remove("nobody"), ValueError, "no member of the pool is called 'nobody': there are greedy, snap"),
        (lambda: pool.add(checkpoint, step=-1), ValueError, "step must be >= 0, got -1"),
        (lambda: pool.add(tmp_path / "nothing", step=6), FileNotFoundError, "no checkpoint at '.*nothing'"),
        (lambda: pool.add(text, step=6), ValueError, r"text\.zip is no SB3 checkpoint"),
        (lambda: pool.add(trained("ppo")[0].policy, step=6), TypeError, "takes SB3 models and the paths of checkpoints, got A"),
        (lambda: pool.record("nobody", 1), ValueError, "no member of the pool is called 'nobody': there are greedy, snap"),
        (lambda: pool.record("greedy", 2), ValueError, "the score of 1 games must be from 0 to 1, got 2"),
        (lambda: pool.path(pool.members[0]), ValueError, "'greedy' is a bot, which has no file"),
        (lambda: OpponentPool(tmp_path, sampler="best"), ValueError, "sampler must be .*, got 'best'"),
        (lambda: OpponentPool(tmp_path, sampler=("recent", 0)), ValueError, "window of a sampler must be >= 1, got 0"),
        (lambda: OpponentPool(tmp_path, per="turn"), ValueError, 'per must be "game" or "seat", got \'turn\''),
        (lambda: OpponentPool(tmp_path, latest_share=2), ValueError, "latest_share must be from 0 to 1, got 2"),
        (lambda: OpponentPool(tmp_path, max_loaded=3), ValueError, "max_loaded must be >= max_active, .*, got 3 < 4"),
        (lambda: OpponentPool(tmp_path, max_active=0), ValueError, "max_active must be >= 1"),
        (lambda: OpponentPool(tmp_path, max_active=2, latest_share=0.5), ValueError, "must be >= 3 with latest_share=0.5"),
        (lambda: OpponentPool(tmp_path, keep=1), ValueError, "keep must be None or >= 2"),
    ]  # fmt: skip
    for do, error, words in wrong:
        with pytest.raises(error, match=words):
            do()
    assert (files(pool.folder), pool.members) == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 99, "members": [], "learner": {}}', '{"members": 3}'])
def test_a_manifest_of_anything_else_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match=r"manifest\.json is no manifest of an opponent pool \("):
        OpponentPool(tmp_path)


@pytest.mark.parametrize(
    ("entry", "learner", "words"),
    [
        ({"step": "1"}, {}, "step '1' of member 'a'"),
        ({"step": 1.5}, {}, "step 1.5 of member 'a'"),
        ({"step": 1, "games": None}, {}, "games None"),
        ({"step": 1, "score": math.nan}, {}, "NaN is no number"),
        ({"step": 1}, {"kept": [-math.inf]}, "-Infinity is no number"),
        ({"step": 1, "rating": {"mu": "x", "sigma": 1}}, {}, r"rating \['x', 1\] of member 'a'"),
        ({"step": 1, "rating": {"mu": 1e5, "sigma": 1}}, {}, r"rating \[100000.0, 1\] of member 'a'"),
        ({"step": 1, "rating": []}, {}, ""),
        ({"step": 1, "name": 5}, {}, r"member \{'name': 5"),
        ({"step": 1, "name": "../a"}, {}, r"member \{'name': '../a'"),
        ({"step": 1, "name": "\x1b]0;"}, {}, r"member \{'name': '\\x1b"),
        ({"step": -1}, {}, "step -1 of member 'a'"),
        ({"step": 2**63}, {}, "step 9223372036854775808"),
        ({"step": 1, "games": -2.0}, {}, "games -2.0"),
        ({"step": 1, "games": 10**400}, {}, "int too large"),
        ({"step": 1, "games": 1.0, "score": 2.0}, {}, "score 2.0"),
        ({"step": 1, "rating": {"mu": 25.0, "sigma": -1.0}}, {}, r"rating \[25.0, -1.0\]"),
        ({"step": 1, "file": "snapshot_1.zip"}, {}, "sha256 None of member 'a'"),
        ({"step": 1, "file": "snapshot_1.zip", "sha256": "no hash"}, {}, "sha256 'no hash'"),
        ({"step": 1, "file": "../snapshot_1.zip", "sha256": "0" * 64}, {}, r"file '../snapshot_1.zip'"),
        ({"step": 1, "file": "notes.txt", "sha256": "0" * 64}, {}, r"file 'notes.txt'"),
        ({"step": 1, "file": "snapshot_1.zip", "sha256": "0" * 64, "statistics_sha256": 3}, {}, "statistics_sha256 3"),
        ({"step": 1}, [], r"learner \[\]"),
        ({"step": 1}, "x", "learner 'x'"),
    ],
)
def test_a_manifest_with_what_is_no_number_is_refused(tmp_path, entry, learner, words):
    content = {"version": 1, "members": [{"name": "a", **entry}], "learner": learner}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"manifest\.json is no manifest of an opponent pool \({words}"):
        OpponentPool(tmp_path)


SNAPSHOT = {"step": 1, "file": "snapshot_1.zip", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"version": 2, "learner": {}, "members": ' + "[" * 10**5, "recursion"),
        ('{"version": 2, "learner": {}, "members": [{"name": "a", "step": 0}, {"name": "A", "step": 0}]}', "2 .* name 'a'"),
        (
            json.dumps({"version": 2, "learner": {}, "members": [{"name": name, **SNAPSHOT} for name in ("a", "b")]}),
            "2 .* file 'snapshot_1.zip'",
        ),
    ],
    ids=["nested", "one name", "one file"],
)
def test_a_manifest_that_would_lose_files_is_refused_and_nothing_deleted(tmp_path, content, words):
    (tmp_path / "manifest.json").write_text(content)
    (tmp_path / "snapshot_1.zip").write_bytes(b"kept")
    with pytest.raises(ValueError, match=rf"(?s)no manifest of an opponent pool \(.*{words}"):
        OpponentPool(tmp_path)
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip"]


def test_thinning_keeps_the_first_and_the_latest_and_spreads_the_rest(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, keep=5)
    pool.add_bot("greedy")
    for step in range(0, 170, 10):
        pool.add(checkpoint, step=step)
        kept = [member.step for member in pool.members if member.file]
        assert {0, step} <= {*kept}
        assert len(kept) == min(5, step // 10 + 1)
        assert files(tmp_path) == sorted(["manifest.json", *(f"snapshot_{one}.zip" for one in kept)])
        if step >= 40:
            gaps = np.diff(kept)
            assert gaps.max() <= 5 * gaps[:-1].min(), kept
    assert pool.members[0].name == "greedy"
    assert OpponentPool(tmp_path).members == pool.members


def test_of_the_others_the_one_goes_whose_neighbours_are_closest(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, keep=4)
    for step in (0, 100, 130, 190, 300):
        pool.add(checkpoint, step=step)
    assert [member.step for member in pool.members] == [0, 100, 190, 300]  # 130 had 100 and 190 for neighbours


def test_counts_age_when_a_snapshot_comes(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path)
    pool.add_bot("greedy")
    pool.add(checkpoint, step=1)
    pool.record("snapshot_1", 3, games=4)
    pool.record("greedy", 1)
    pool.add(checkpoint, step=2)
    assert [(member.games, member.score) for member in pool.members] == [(0.5, 0.5), (2, 1.5), (0, 0)]


def test_a_reader_sees_what_was_written_when_it_reloads(checkpoint, tmp_path):
    writer = OpponentPool(tmp_path)
    writer.add(checkpoint, step=1)
    reader = OpponentPool(tmp_path)
    assert not reader.reload()
    writer.add(checkpoint, step=2)
    assert len(reader.members) == 1
    assert reader.reload()
    assert reader.members == writer.members
    assert not reader.reload()
    assert not writer.reload()  # its own words are no news


def test_two_writers_are_one_too_many(checkpoint, tmp_path):
    one, other = OpponentPool(tmp_path), OpponentPool(tmp_path)
    one.add(checkpoint, step=1)
    for write in (lambda: other.add(checkpoint, step=2), lambda: other.add_bot("greedy"), other.save):
        with pytest.raises(PoolInUseError, match=r"another process has written to the pool .*, only one may: reload\(\) it"):
            write()
    assert other.members == ()
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip"]


def test_while_one_writes_nobody_else_does(checkpoint, tmp_path):
    one, other = OpponentPool(tmp_path / "pool"), OpponentPool(tmp_path / "pool")

    class Model:
        observation_space, action_space = VECTOR, WORLD["action_space"]
        refused = 0

        def get_vec_normalize_env(self):
            return None

        def save(self, path):  # in the middle of this neither has seen a manifest of the other's
            for write in (lambda: other.add(checkpoint, step=2), lambda: other.add_bot("greedy"), other.save):
                with pytest.raises(
                    PoolInUseError, match=r"another process is writing to the pool .*: give each process its own"
                ):
                    write()
                self.refused += 1
            shutil.copyfile(checkpoint, path)

    model = Model()
    one.add(model, step=1)
    assert model.refused == 3
    assert files(one.folder) == ["manifest.json", "snapshot_1.zip"]
    assert one.add_bot("greedy").name == "greedy"  # it does not stand in its own way
    assert other.reload()
    other.add(checkpoint, step=2)  # and afterwards the folder is free
    assert OpponentPool(one.folder).members == other.members
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        OpponentPool(tmp_path / "new").add(tmp_path / "nothing", step=1)
    assert not (tmp_path / "new").exists()


def test_a_pool_prints_as_its_folder(tmp_path):
    pool = OpponentPool(tmp_path / "pool")
    pool.add_bot("greedy")
    assert repr(pool) == f"OpponentPool({str(tmp_path / 'pool')!r}, members=1)"


def test_a_pool_is_written_where_folders_cannot_be_locked(checkpoint, tmp_path, monkeypatch):
    import fcntl

    def flock(handle, operation):
        raise OSError(9, "Bad file descriptor")  # what NFS says

    monkeypatch.setattr(fcntl, "flock", flock)
    pool = OpponentPool(tmp_path)
    pool.add(checkpoint, step=1)
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip"]


# ---------------------------------------------------------------- removing


def test_a_member_can_be_removed(trained, checkpoint, tmp_path, monkeypatch):
    pool = OpponentPool(tmp_path)
    pool.add_bot("greedy")
    for step in (1, 2, 3):
        pool.add(checkpoint, step=step)
        shutil.copyfile(checkpoint, tmp_path / f"snapshot_{step}_vecnormalize.pkl")  # of nobody, and swept away
    pool.record("snapshot_3", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda source, target: os.stat("no space left"))
        with pytest.raises(OSError, match="no space left"):
            pool.remove("snapshot_2")
    assert len(pool.members) == len(OpponentPool(tmp_path).members) == 4  # the manifest is first, and then the files
    assert pool.verified(pool.members[2]).is_file()
    assert pool.remove("snapshot_2").step == 2
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip", "snapshot_3.zip"]
    assert pool.remove("greedy").file is None
    assert [member.name for member in OpponentPool(tmp_path).members] == ["snapshot_1", "snapshot_3"]
    assert OpponentPool(tmp_path).latest.games == 1
    pool.remove("snapshot_3")  # nobody goes on from it
    pool.learner = {"steps": 1}
    with pytest.raises(ValueError, match=r"'snapshot_1' is the latest snapshot .*, and the run whose state is in `learner`"):
        pool.remove("snapshot_1")
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip"]
    pool.learner = {}
    pool.remove("snapshot_1")
    assert files(tmp_path) == ["manifest.json"]
    with pytest.raises(ValueError, match="is empty: add a snapshot or a bot first"):
        resolve_seats(pool, enemy_agents=None, num_enemies=1, **WORLD)


def test_who_is_removed_sits_down_no_more_and_its_name_may_be_anothers(checkpoint, trained, tmp_path):
    writer = OpponentPool(tmp_path, sampler="uniform")
    for step in (1, 2):
        writer.add(checkpoint, step=step)
    reader = OpponentPool(tmp_path, sampler=("recent", 1))
    settings = {"shown": [VECTOR], "make_bot": Scribe, "device": "cpu"}
    own, others = PoolSource(writer, **settings), PoolSource(reader, **settings)
    rng = np.random.default_rng(0)

    def drawn(source):
        return {opponent.name: opponent for opponent in source.draw(50, 3, rng, [])[0]}

    before = drawn(own)
    others._loaded.clear()
    writer.remove("snapshot_2")
    assert set(drawn(own)) == {"snapshot_1"}
    writer.add(trained("ppo")[1], step=2)
    after = drawn(own)
    assert after["snapshot_1"].policy is before["snapshot_1"].policy
    assert after["snapshot_2"].policy is not before["snapshot_2"].policy
    assert drawn(others)["snapshot_2"].policy is after["snapshot_2"].policy  # who reads finds another file, and reloads


# ---------------------------------------------------------------- crashes


def test_a_failure_at_any_step_of_adding_changes_nothing(trained, tmp_path, monkeypatch):
    model = trained("ppo")[0]
    pool = OpponentPool(tmp_path, keep=2)
    for step in (1, 2):
        pool.add(model, step=step)
    pool.record("snapshot_1", 1)
    pool.save()
    before, listed = pool.members, files(tmp_path)
    replace_file = os.replace
    steps = []

    def replace_and_count(source, target):
        steps.append(target)
        replace_file(source, target)

    for fails_at in range(2):  # the checkpoint, the manifest
        calls = []

        def fail(source, target, calls=calls, fails_at=fails_at):
            if len(calls) == fails_at:
                raise OSError("no space left")
            calls.append(target)
            replace_file(source, target)

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no space left"):
            pool.add(model, step=3)
        monkeypatch.undo()
        assert pool.members == before
        assert OpponentPool(tmp_path).members == before
    assert set(listed) < set(files(tmp_path))  # a checkpoint that no manifest names
    monkeypatch.setattr(os, "replace", replace_and_count)
    pool.add(model, step=3)
    assert len(steps) == 2
    assert [member.step for member in OpponentPool(tmp_path).members] == [1, 3]
    assert files(tmp_path) == ["manifest.json", "snapshot_1.zip", "snapshot_3.zip"]


@pytest.mark.parametrize(("latest_share", "max_active"), [(0.5, 3), (0.0, 2)])
def test_all_who_sit_may_be_removed(tmp_path, latest_share, max_active):
    pool = OpponentPool(tmp_path, latest_share=latest_share, max_active=max_active, max_loaded=max_active, per="seat")
    for name in ("a", "b", "c", "d"):
        pool.add_bot(name)
    source = PoolSource(pool, shown=[VECTOR], make_bot=lambda name: Scribe(0, name), device="cpu")
    rng, seated = np.random.default_rng(0), []
    while len(seated) < max_active:
        seated += [one for one in source.draw(64, 3, rng, seated)[0] if one not in seated]
    for opponent in seated:
        pool.remove(opponent.name)
    coming, _ = source.draw(64, 3, rng, seated)
    assert {opponent.name for opponent in coming} <= set(pool.names)


def test_an_interruption_when_the_manifest_is_there_already_loses_nothing(checkpoint, tmp_path, monkeypatch):
    pool = OpponentPool(tmp_path)
    pool.add(checkpoint, step=1)

    def replaced(source, target, rename=os.replace):
        rename(source, target)
        if os.path.basename(target) == "manifest.json":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replaced)
        with pytest.raises(KeyboardInterrupt):
            pool.add(checkpoint, step=2)
    assert [member.step for member in pool.members] == [member.step for member in OpponentPool(tmp_path).members] == [1, 2]
    pool.add(checkpoint, step=3)
    assert [member.step for member in OpponentPool(tmp_path).members] == [1, 2, 3]


def test_leftovers_of_a_crash_are_ignored_and_removed_by_the_next_add(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path)
    pool.add(checkpoint, step=1)
    leftovers = [
        "snapshot_2.zip", "snapshot_2_vecnormalize.pkl", "snapshot_3_best.zip", ".snapshot_4.1234.zip",
        ".snapshot_4_vecnormalize.1234.pkl", ".manifest.77.json", "snapshot_1_vecnormalize.pkl",
        ".snapshot_4.0123456789abcdef.part.zip", ".manifest.fedcba9876543210.part.json",
    ]  # fmt: skip
    own = ["notes.txt", "champion.zip", "snapshot_of_my_dog.zip", ".hidden.zip", "snapshot_9.txt"]
    for name in [*leftovers, *own]:
        (tmp_path / name).write_bytes(b"half")
    pool = OpponentPool(tmp_path)
    assert [member.step for member in pool.members] == [1]
    added = pool.add(checkpoint, step=2)
    assert added.statistics_sha256 is None  # those that lay there were of nobody
    assert files(tmp_path) == sorted(["manifest.json", "snapshot_1.zip", "snapshot_2.zip", *own])


def test_snapshots_without_their_manifest_are_not_swept_away(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path)
    for step in (1, 2):
        pool.add(checkpoint, step=step)
    manifest = (tmp_path / "manifest.json").rename(tmp_path / "manifest.bak")
    before = files(tmp_path)
    pool = OpponentPool(tmp_path)
    for write in (lambda: pool.add(checkpoint, step=3), lambda: pool.add_bot("greedy"), pool.save):
        with pytest.raises(ValueError, match=r"has snapshots but no manifest\.json: restore it, or give a new folder"):
            write()
    assert files(tmp_path) == before
    manifest.rename(tmp_path / "manifest.json")
    assert OpponentPool(tmp_path).add(checkpoint, step=3).step == 3


def test_the_very_first_add_may_crash_before_there_is_a_manifest(checkpoint, tmp_path):
    (tmp_path / "snapshot_1.zip").write_bytes(b"half")
    pool = OpponentPool(tmp_path)
    pool.add(checkpoint, step=2)
    assert files(tmp_path) == ["manifest.json", "snapshot_2.zip"]


WRITER = """
import sys
from pathlib import Path
from adapters.opponents.pool import OpponentPool
folder, checkpoint = map(Path, sys.argv[1:])
pool = OpponentPool(folder, keep=5)
step = max([member.step for member in pool.members], default=0)
while True:
    step += 1
    pool.learner = {"step": step}
    pool.add(checkpoint, step=step)
    print(step, flush=True)
"""


@pytest.mark.slow
def test_a_writer_may_be_killed_at_any_moment(checkpoint, tmp_path):
    folder, rng, last = tmp_path / "pool", np.random.default_rng(0), 0
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(folder), str(checkpoint)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd()) as writer:
            said = int(writer.stdout.readline())
            assert said == last + 1  # it went on where the one before was stopped
            time.sleep(rng.uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
            said = int((["", *writer.stdout.read().split()])[-1] or said)
        pool = OpponentPool(folder)
        last = pool.latest.step
        assert last in (said, said + 1)  # it may have been killed before it said so
        assert pool.learner == {"step": last}
        assert len(pool.members) == min(5, last)
        for member in pool.members:
            assert pool.verified(member).is_file()


# ---------------------------------------------------------------- who plays how often


def member(name, step=1, score=0.0, games=0.0):
    return Member(name, step, f"{name}.zip", "", games=games, score=score)


def test_the_weights_of_the_samplers():
    three = [member("a"), member("b", score=3, games=4), member("c", score=0, games=2)]
    assert [one.learner_score for one in three] == [1 / 2, 4 / 6, 1 / 4]
    np.testing.assert_allclose(prioritized(three), [1 / 4, 1 / 9, 9 / 16])
    assert uniform(three) == [1, 1, 1]
    assert recent(2)(three) == [0, 1, 1]
    assert recent(9)(three) == [1, 1, 1]


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
        ("latest", [0, 0, 1]),
        (("recent", 2), [0, 1 / 2, 1 / 2]),
        (["recent", 1], [0, 0, 1]),
        ("prioritized", [9 / 22, 4 / 22, 9 / 22]),  # 1/4, 1/9, 1/4
        (lambda members: [one.step for one in members], [0, 1 / 3, 2 / 3]),
    ],
)
def test_the_words_for_samplers(checkpoint, tmp_path, sampler, expected):
    pool = OpponentPool(tmp_path, sampler=sampler)
    pool.add(checkpoint, step=20)
    pool.add(checkpoint, step=10)
    pool.add_bot("greedy")
    pool.record("snapshot_10", 3, games=4)
    np.testing.assert_allclose(pool.weights(), expected)


@pytest.mark.parametrize("weights", [[1], [0, 0], [1, -1], [1, np.nan], None])
def test_what_a_sampler_must_return(tmp_path, weights):
    pool = OpponentPool(tmp_path, sampler=lambda members: weights)
    pool.add_bot("greedy")
    pool.add_bot("random")
    with pytest.raises(ValueError, match="a sampler must return a number >= 0 for each of 2 members, not all zeros, got"):
        pool.weights()


class Table:
    """Games that are only a table of who sits where, played with a source for as long as it likes."""

    def __init__(self, pool, games, seats=3, seed=0):
        self.games, self.seats, self.pool = games, seats, pool
        self.source = PoolSource(pool, shown=[OBSERVATIONS], make_bot=lambda name: Scribe(0, name))
        self.rng, self.drawn = np.random.default_rng(seed), np.random.default_rng(seed + 1)
        self.sitting = [[] for _ in range(games)]
        self.played = Counter()
        self.restart(range(games))

    def restart(self, games):
        on = [opponent for game in set(range(self.games)) - set(games) for opponent in self.sitting[game]]
        opponents, which = self.source.draw(len(games), self.seats, self.rng, on)
        assert which.shape == (len(games), self.seats)
        for game, row in zip(games, which.tolist(), strict=True):
            self.sitting[game] = [opponents[one] for one in row]
            self.played.update(opponent.name for opponent in self.sitting[game])

    def go_on(self, times):
        for _ in range(times):
            self.restart(sorted({*self.drawn.integers(self.games, size=2).tolist()}))
            yield (
                {opponent.name for row in self.sitting for opponent in row},
                {id(opponent) for row in self.sitting for opponent in row},
            )


mixture_bot = Scribe(0, "other")


def bots(folder, number, **settings):
    pool = OpponentPool(folder, **settings)
    for one in range(number):
        pool.add_bot(f"bot{one}")
    return pool


def test_while_all_fit_each_game_draws_from_all(tmp_path):
    table = Table(bots(tmp_path, 4, sampler=lambda members: [1, 2, 3, 4]), games=20_000)
    np.testing.assert_allclose([table.played[f"bot{one}"] / 60_000 for one in range(4)], [0.1, 0.2, 0.3, 0.4], atol=0.015)
    assert isinstance(table.source, Source)


@pytest.mark.parametrize("per", ["game", "seat"])
def test_seats_of_a_game_draw_together_or_each_for_itself(tmp_path, per):
    table = Table(bots(tmp_path, 3, per=per, sampler="uniform"), games=3000)
    alike = np.mean([len({id(opponent) for opponent in row}) == 1 for row in table.sitting])
    assert alike == (1 if per == "game" else pytest.approx(1 / 9, abs=0.02))


@pytest.mark.parametrize("latest_share", [0, 0.3])
@pytest.mark.parametrize("max_active", [3, 4, 8])
@pytest.mark.parametrize("games", [1, 16])
@pytest.mark.parametrize("per", ["game", "seat"])
def test_only_so_many_sit_at_once_and_yet_all_get_to_play(tmp_path, latest_share, max_active, games, per):
    settings = {"max_active": max_active, "max_loaded": max_active, "latest_share": latest_share, "per": per}
    table = Table(bots(tmp_path, 20, sampler="uniform", **settings), games)
    most = 0
    for names, objects in table.go_on(6000):
        assert len(names) == len(objects) <= max_active
        most = max(most, len(names))
    assert len(table.played) == 20
    if games > 1:
        assert most == max_active


def test_the_limit_is_for_all_seats_of_a_pool_however_it_is_named(tmp_path):
    pool = bots(tmp_path, 20, sampler="uniform", max_active=3, per="seat")
    settings = {**WORLD, "make_bot": lambda name: Scribe(0, name)}
    spec = [pool, mixture({pool: 1, mixture_bot: 1}, per="seat"), pool]
    lineup = OpponentLineup(resolve_seats(spec, enemy_agents=None, num_enemies=3, **settings), Games(num_games=12))
    rng, played = np.random.default_rng(0), set()
    for _ in range(3000):
        lineup.restart(rng.choice(12, size=3, replace=False))
        sitting = {id(one): one.name for one in lineup.opponents if one is not mixture_bot}
        assert len(sitting) <= 3
        played.update(sitting.values())
    assert len(played) == 20


def test_with_one_active_two_sit_only_while_the_one_before_finishes(tmp_path):
    table = Table(bots(tmp_path, 20, sampler="uniform", max_active=1), games=8)
    seen = Counter(len(names) for names, _ in table.go_on(4000))
    assert set(seen) == {1, 2}
    assert len(table.played) == 20
    latest = Table(bots(tmp_path / "latest", 20, sampler="latest", max_active=1), games=8)
    assert {tuple(names) for names, _ in latest.go_on(200)} == {("bot19",)}


def test_in_the_long_run_shares_are_those_of_the_sampler(tmp_path):
    pool = bots(tmp_path, 10, sampler=lambda members: np.arange(1, 11))
    table = Table(pool, games=8, seats=1)
    for _ in table.go_on(20_000):
        pass
    shares = np.array([table.played[f"bot{one}"] for one in range(10)]) / table.played.total()
    np.testing.assert_allclose(shares, np.arange(1, 11) / 55, atol=0.035)


@pytest.mark.parametrize("number", [3, 20])
def test_the_latest_has_its_share(tmp_path, number):
    pool = bots(tmp_path, number, sampler=lambda members: [1.0] * (len(members) - 1) + [0.0], latest_share=0.4)
    table = Table(pool, games=50, seats=1)
    for _ in table.go_on(10_000):
        pass
    assert table.played[f"bot{number - 1}"] / table.played.total() == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(("sampler", "share"), [("latest", 0.0), ("uniform", 0.5)])
def test_a_new_latest_takes_over(tmp_path, sampler, share):
    pool = bots(tmp_path, 10, sampler=sampler, latest_share=share)
    table = Table(pool, games=16)
    for number in range(10, 30):
        pool.add_bot(f"bot{number}")
        for names, _ in table.go_on(300):
            assert len(names) <= 4
        assert f"bot{number}" in names
        assert names == {f"bot{number}"} or sampler != "latest"


def test_a_pool_that_grows_too_large_while_all_sit_stays_within_its_limit(tmp_path):
    pool = bots(tmp_path, 4, sampler="uniform", per="seat")
    table = Table(pool, games=16)
    for number in range(4, 40):
        pool.add_bot(f"bot{number}")
        for names, _ in table.go_on(40):
            assert len(names) <= 4
    assert len(table.played) > 20


def test_places_wait_while_somebody_finishes(tmp_path):
    source = Table(bots(tmp_path, 20, sampler="uniform", per="seat"), games=1).source
    rng, seated = np.random.default_rng(0), []
    while len(seated) < 4:  # three places, and one who has lost its place and sits on
        seated = {id(one): one for one in [*seated, *source.draw(8, 3, rng, seated)[0]]}.values()
    for _ in range(100):
        drawn, _ = source.draw(8, 3, rng, list(seated))
        assert {opponent.name for opponent in drawn} == {*source._places}
        assert len({*source._places}) == 3
    (last,) = [opponent for opponent in seated if opponent.name not in source._places]
    assert last.name not in {opponent.name for opponent in drawn}
    others = [opponent for opponent in seated if opponent is not last]
    assert last not in source.draw(8, 3, rng, others)[0]
    assert len({opponent.name for opponent in others} & {*source._places}) == 2  # and then it goes on


def test_the_one_drawn_least_recently_goes_from_memory(tmp_path):
    wanted, made = "bot0", []
    pool = bots(tmp_path, 3, sampler=lambda members: [one.name == wanted for one in members], max_active=1, max_loaded=2)
    source = PoolSource(pool, shown=[], make_bot=lambda name: made.append(name) or Scribe(0, name))
    made.clear()
    for wanted in ("bot0", "bot1", "bot0", "bot2", "bot0"):
        source.forget()
        assert [opponent.name for opponent in source.draw(1, 1, np.random.default_rng(0), [])[0]] == [wanted]
    assert made == ["bot0", "bot1", "bot2"]


def test_who_was_thinned_out_loses_its_place(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, keep=6, max_active=3, sampler="uniform", per="seat")
    for step in range(6):
        pool.add(checkpoint, step=step)
    source = PoolSource(pool, shown=[VECTOR], make_bot=Scribe, device="cpu")
    rng = np.random.default_rng(0)
    for step in range(6, 30):
        pool.add(checkpoint, step=step)
        assert {opponent.name for opponent in source.draw(4, 3, rng, [])[0]} <= {*pool.names}


def test_who_was_thinned_out_finishes_and_sits_down_no_more(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, keep=2, sampler="uniform", per="seat")
    for step in (1, 2):
        pool.add(checkpoint, step=step)
    source = PoolSource(pool, shown=[VECTOR], make_bot=Scribe, device="cpu")
    rng = np.random.default_rng(0)
    opponents, _ = source.draw(50, 3, rng, [])
    assert {opponent.name for opponent in opponents} == {"snapshot_1", "snapshot_2"}
    pool.add(checkpoint, step=3)
    gone = next(opponent for opponent in opponents if opponent.name == "snapshot_2")
    for _ in range(20):
        opponents, _ = source.draw(5, 3, rng, [gone])
        assert {opponent.name for opponent in opponents} == {"snapshot_1", "snapshot_3"}
    assert act(gone).shape == (64,)


# ---------------------------------------------------------------- memory


@pytest.mark.slow
def test_however_many_members_play_only_so_many_are_in_memory(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, sampler="uniform", max_loaded=4, max_active=3)
    for step in range(200):
        pool.add(checkpoint, step=step)
    games = Games(num_games=8)
    games.view = lambda observation_space, action_space: None
    world = {**WORLD, "observation_space": VECTOR}
    lineup = OpponentLineup(resolve_seats(pool, enemy_agents=None, num_enemies=3, **world), games)
    rng, played = np.random.default_rng(0), set()
    gc.collect()
    gc.disable()  # nothing waits for the collector: policies go when nobody holds them
    try:
        for _ in range(20_000):
            lineup.restart(rng.choice(8, size=2, replace=False))
            played.update(lineup.names(0))
            assert len(lineup.opponents) <= 3
            assert len(checkpoints._loaded) <= 4
            if len(played) == 150:
                break
    finally:
        gc.enable()
    assert len(played) == 150


def test_members_stay_in_memory_while_they_are_wanted(checkpoint, tmp_path, monkeypatch):
    reads = []
    read = checkpoints._read_policy
    monkeypatch.setattr(checkpoints, "_read_policy", lambda *args: reads.append(args) or read(*args))
    pool = OpponentPool(tmp_path, sampler="uniform", max_loaded=6, max_active=2, per="seat")
    for step in range(6):
        pool.add(checkpoint, step=step)
    gc.collect()
    reads.clear()
    source = PoolSource(pool, shown=[VECTOR], make_bot=Scribe, device="cpu")
    rng = np.random.default_rng(0)
    for _ in range(200):
        source.draw(16, 1, rng, [])
    assert len(reads) == 6


# ---------------------------------------------------------------- in games

RULES = {"width": 7, "height": 7, "max_cycles": 30}


def world_of(env):
    """The arguments of `resolve_seats` for one seat of these games."""
    game_batch = env.game_batch
    spaces = {"observation_space": game_batch.observation_space, "action_space": game_batch.action_space}
    return {**WORLD, **spaces, "other_spaces": game_batch.other_spaces, "enemy_agents": None, "num_enemies": 1}


@pytest.fixture(scope="module")
def snakes(tmp_path_factory):
    """A folder with three small snakes and a bot."""
    folder = tmp_path_factory.mktemp("snakes") / "pool"
    pool = OpponentPool(folder)
    pool.add_bot("greedy")
    env = make_sb3_env("random", num_games=2, env_kwargs=RULES)
    for step in (10, 20, 30):
        model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [4]}, device="cpu", seed=step)
        pool.add(model, step=step)
    return folder


def told(env, steps=150):
    """Who sat in the games that ended, and how long these were."""
    env.reset()
    rng = np.random.default_rng(0)
    said = []
    for _ in range(steps):
        _, _, dones, infos = env.step(rng.integers(env.action_space.n, size=env.num_envs))
        said += [(tuple(infos[one]["opponents"].values()), infos[one]["episode"]["l"]) for one in np.flatnonzero(dones)]
    return said


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_a_pool_plays_by_word_or_as_an_object(snakes, backend, monkeypatch):
    monkeypatch.chdir(snakes.parent)
    made = []
    prefixes = {OpponentPool(snakes): "", snakes: f"{snakes}{os.sep}", "pool": f"pool{os.sep}", "./pool/": "./pool/"}
    for word, prefix in prefixes.items():
        env = make_sb3_env(word, num_games=4, env_kwargs=RULES, backend=backend, seed=3, device="cpu")
        games = told(env)
        assert all(name.startswith(prefix) for names, _ in games for name in names)
        made.append([(tuple(name.removeprefix(prefix) for name in names), length) for names, length in games])
    assert made[0] == made[1] == made[2] == made[3]
    names = {names for names, _ in made[0]}
    assert names == {(name,) * 3 for name in ("greedy", "snapshot_10", "snapshot_20", "snapshot_30")}


def test_members_of_two_pools_are_told_apart_by_path(snakes, tmp_path):
    copy = shutil.copytree(snakes, tmp_path / "copy")
    spec = [OpponentPool(snakes), frozen(copy, deterministic=True), mixture({str(copy): 1})]
    for names, _ in told(make_sb3_env(spec, num_games=4, env_kwargs=RULES, seed=0, device="cpu")):
        own, *others = names
        assert own in OpponentPool(snakes).names
        assert {os.path.dirname(name) for name in others} == {str(copy)}
        assert {os.path.basename(name) for name in others} <= {*OpponentPool(snakes).names}


def test_the_champion_may_be_a_member(tmp_path):
    pool = OpponentPool(tmp_path / "pool", sampler="uniform")
    pool.add_bot("champion")
    env = make_sb3_env(pool, num_games=2, env_kwargs={"max_cycles": 10}, seed=0, device="cpu")
    assert {names for names, _ in told(env, 20)} == {("champion",) * 3}
    (champion,) = env.lineup.opponents
    assert champion.policy is resolve_seats("champion", **world_of(env))[0].policy
    env.set_opponent(frozen(pool.folder, deterministic=True), when="now")
    assert env.lineup.names(0) == (str(pool.folder / "champion"),) * 3
    (champion,) = env.lineup.opponents
    observations = np.repeat(observe(champion.observation_space, rows=1), 64, axis=0)
    assert len({*act(champion, observations).tolist()}) == 1
    with pytest.raises(ValueError, match=r"'champion' of the pool '.*pool' was trained to see Box.*, but these games show"):
        make_sb3_env(pool, num_games=1, env_kwargs={"width": 7, "height": 7})


def test_a_pool_sits_beside_others(snakes):
    pool = OpponentPool(snakes, sampler="uniform")
    env = make_sb3_env([pool, "survivor", pool], num_games=8, env_kwargs=RULES, seed=0)
    members = ["greedy", "snapshot_10", "snapshot_20", "snapshot_30"]
    assert {names for names, _ in told(env)} == {(name, "survivor", name) for name in members}
    env.set_opponent(mixture({pool: 1, "survivor": 1}))
    seen = Counter(names for names, _ in told(env, 400))
    assert set(seen) == {(name,) * 3 for name in [*members, "survivor"]}
    assert seen[("survivor",) * 3] / seen.total() == pytest.approx(0.5, abs=0.15)
    env.set_opponent(mixture({snakes: 1, "survivor": 1}, per="seat"), "now")
    for names, _ in told(env, 100):
        assert len({*names} - {"survivor"}) <= 1  # the pool draws for the game, the mixture for the seat
    by_agent = {"snake_1": pool, "snake_2": "random", "snake_3": frozen(pool, deterministic=True)}
    env = make_sb3_env(by_agent, learners=["snake_0"], num_games=4, env_kwargs=RULES, seed=0)
    names = [names for names, _ in told(env)]
    assert {middle for _, middle, _ in names} == {"random"}
    assert any(left != right for left, _, right in names)


def test_settings_reach_the_members(snakes):
    settings = {"enemy_agents": None, "num_enemies": 2, **WORLD}
    env = make_sb3_env("random", num_games=2, env_kwargs=RULES)
    settings |= {"observation_space": env.observation_space, "action_space": env.action_space}
    pool = OpponentPool(snakes, sampler="latest")
    observations = np.repeat(observe(env.observation_space, rows=1), 64, axis=0)
    for spec, alike in ((pool, False), (frozen(pool, deterministic=True), True), (frozen(pool, device="meta"), None)):
        one, two = resolve_seats(spec, **settings)
        assert one is two
        (opponent,), _ = one.draw(1, 1, np.random.default_rng(0), [])
        assert isinstance(opponent, PolicyOpponent)
        assert opponent.policy.device.type == ("meta" if alike is None else "cpu")
        if alike is not None:
            assert (len({*act(opponent, observations).tolist()}) == 1) == alike
    with pytest.raises(ValueError, match=r"of a pool have their own names, statistics and spaces, got .*'name': 'x'"):
        frozen(pool, name="x")


def test_a_pool_that_cannot_play_is_refused_at_once(snakes, checkpoint, tmp_path):
    empty = tmp_path / "folder"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"'.*folder' is a folder, but not a pool's: .* a folder with a manifest\.json"):
        make_sb3_env(str(empty), num_games=1)
    pool = OpponentPool(empty)
    with pytest.raises(ValueError, match=r"the pool '.*folder' is empty: add a snapshot or a bot first"):
        make_sb3_env(pool, num_games=1)
    with pytest.raises(ValueError, match=r"'snapshot_30' of the pool '.*' was trained to see Box.*, but these games show"):
        make_sb3_env(snakes, num_games=1, env_kwargs={"width": 9, "height": 9})
    pool.add_bot("gready")
    with pytest.raises(ValueError, match="gready"):
        make_sb3_env(pool, num_games=1)
    env = make_sb3_env("random", num_games=2, env_kwargs=RULES, seed=0)
    other = OpponentPool(tmp_path / "other")
    other.add(checkpoint, step=1)
    with pytest.raises(ValueError, match="was trained to see"):
        env.set_opponent(other)
    assert {names for names, _ in told(env)} == {("random",) * 3}


def test_who_is_added_joins_the_running_games(checkpoint, tmp_path):
    pool = OpponentPool(tmp_path, sampler="latest")
    pool.add_bot("random")
    env = make_sb3_env(pool, num_games=4, env_kwargs=RULES, seed=0)
    assert {names for names, _ in told(env, 40)} == {("random",) * 3}
    small = PPO("MlpPolicy", env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [4]}, device="cpu")
    pool.add(small, step=8)
    assert told(env, 40)[-1][0] == ("snapshot_8",) * 3


def test_a_reader_survives_that_a_file_is_thinned_away(snakes, tmp_path):
    writer = OpponentPool(tmp_path, keep=2)
    source = OpponentPool(snakes)
    for member in source.members[1:3]:
        writer.add(source.path(member), step=member.step)
    reader = OpponentPool(tmp_path, max_loaded=1, max_active=1, sampler="uniform")
    env = make_sb3_env(reader, num_games=1, env_kwargs=RULES, seed=0, device="cpu")
    for step in (100, 200, 300):
        writer.add(source.path(source.latest), step=step)
    assert reader.latest.step == 20
    assert {name for names, _ in told(env, 400) for name in names} >= {"snapshot_10", "snapshot_300"}
    assert [member.step for member in reader.members] == [10, 300]
    writer.path(writer.latest).unlink()
    with pytest.raises(FileNotFoundError, match="snapshot_300"):
        make_sb3_env(OpponentPool(tmp_path), num_games=1, env_kwargs=RULES)


def test_after_seeding_a_used_environment_plays_like_a_fresh_one(snakes):
    settings = {"num_games": 6, "env_kwargs": RULES, "device": "cpu"}
    spec = mixture({OpponentPool(snakes, sampler="uniform", max_active=3, max_loaded=3, per="seat"): 3, "survivor": 1})

    def games(used):
        env = make_sb3_env(spec, **settings)
        if used:
            env.seed(1)
            told(env, 100)
            env.set_opponent("random")
            told(env, 20)
            env.set_opponent(spec)
            told(env, 70)
        env.seed(7)
        return told(env, 250)

    fresh = games(used=False)
    assert fresh == games(used=True)
    assert len({name for names, _ in fresh for name in names}) > 3  # with two places and a bot, so places changed hands


def test_a_pool_plays_any_environment(tmp_path):
    def game():
        return ScriptedEnv(SCRIPTS["one by one"])

    env = make_sb3_env("random", env=game, num_games=2)
    pool = OpponentPool(tmp_path, sampler="uniform", per="seat")
    pool.add_bot("random")
    for step in (1, 2):
        pool.add(PPO("MlpPolicy", env, n_steps=8, batch_size=16, device="cpu"), step=step)
    env = make_sb3_env(pool, env=game, num_games=3, seed=0, device="cpu")
    assert {name for names, _ in told(env) for name in names} == {"random", "snapshot_1", "snapshot_2"}


def test_a_pool_may_be_measured(snakes):
    results = play_games(["greedy", snakes, "random", snakes], games=10, seed=0, env_kwargs=RULES)
    assert results.ranks.shape == (10, 4)
