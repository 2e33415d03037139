"""Files of strangers run no code: hostile ones by every door, and what is known, trusted or too large."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from typer.testing import CliRunner

from adapters import OpponentPool, frozen, load_model, make_sb3_env
from adapters.command.main import app
from adapters.opponents.checkpoints import load_policy
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.statistics import load_statistics
from adapters.opponents.unpickling import MOST_STEPS, Reader, UnreadableError
from adapters.training.run import resume
from tests.support import hostile
from tests.support.checkpoint_files import pickled, rewrite
from tests.support.toys import MODELS, ON, VECTOR, WORLD, Toy, act, observe, resolve

BEFORE = Path(__file__).parents[2] / "data" / "before"
KINDS = list(hostile.pickles(Path("marker"), Path("/tmp")))
REFUSED = r"asks for .*is not on the list of known classes|cannot be unpickled|cannot be rebuilt|must hold|no SB3 checkpoint"


class Scaled(FlattenExtractor):
    """Somebody's own."""

    def __init__(self, observation_space: Any, scale: float = 1.0) -> None:
        super().__init__(observation_space)
        self.scale = scale

    def forward(self, observations: Any) -> Any:
        return super().forward(observations) * self.scale


OWN = f"{__name__}.Scaled"
KNOWN_EXTRACTOR = {"features_extractor_class": Scaled, "features_extractor_kwargs": {"scale": 3.0}}


@pytest.fixture
def marker(tmp_path: Path) -> Any:
    path = tmp_path / "marker"
    yield path
    assert not path.exists(), "code of the file has run"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model with a class of somebody's own, and its checkpoint."""
    model = PPO("MlpPolicy", Toy(), policy_kwargs=KNOWN_EXTRACTOR, batch_size=16, **ON)
    path = tmp_path_factory.mktemp("own") / "own.zip"
    model.save(path)
    return model, path


# ---------------------------------------------------------------- hostile files


@pytest.mark.parametrize("kind", KINDS)
def test_no_pickle_runs_code(kind: str, marker: Path, tmp_path: Path) -> None:
    blob = hostile.pickles(marker, tmp_path)[kind]
    forward, called = ActorCriticPolicy.forward, Reader(trust=False)
    try:
        called.read(blob)
    except UnreadableError:
        return
    assert called.unknown, "it was read as if nothing were in it"
    assert ActorCriticPolicy.forward is forward


RUN_THEM = """
import os, pathlib, pickle, sys
for path in pathlib.Path(sys.argv[1]).glob("*.hostile"):
    try:
        pickle.loads(path.read_bytes())
    except BaseException:
        pass
    if os.path.exists(sys.argv[2]):
        print(path.stem)
        os.unlink(sys.argv[2])
"""


def test_pickle_itself_runs_them(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for kind, blob in hostile.pickles(marker, tmp_path).items():
        if kind not in hostile.HARMLESS:
            (tmp_path / f"{kind.replace(':', '')}.hostile").write_bytes(blob)
    command = [sys.executable, "-W", "ignore", "-c", RUN_THEM, str(tmp_path), str(marker)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert set(ran) == {kind.replace(":", "") for kind in KINDS if kind not in hostile.HARMLESS}


@pytest.mark.parametrize("field", ["policy_class", "observation_space", "action_space", "policy_kwargs"])
@pytest.mark.parametrize("kind", ["reduce", "nested", "code of its own", "numpy: objects in an array"])
def test_a_hostile_checkpoint_is_refused_by_its_names(
    field: str, kind: str, marker: Path, trained: Any, tmp_path: Path
) -> None:
    blob = pickled(hostile.pickles(marker, tmp_path)[kind])
    path = rewrite(trained("ppo")[1], tmp_path / "hostile.zip", **{field: blob})
    names = {"code of its own": "cloudpickle", "numpy: objects in an array": "O8|system"}.get(kind, r"(posix|nt|os)\.system")
    with pytest.raises(ValueError, match=rf"hostile\.zip .*({names})"):
        PolicyOpponent(path, device="cpu")


def hostile_statistics(marker: Path, env: Any) -> bytes:
    env.obs_rms.mean = hostile.Reduced(__import__("os").system, f"touch '{marker}'")
    return pickle.dumps(env)


def test_no_door_runs_code(marker: Path, trained: Any, tmp_path: Path) -> None:
    blob = pickled(hostile.pickles(marker, tmp_path)["reduce"])
    path = rewrite(trained("ppo")[1], tmp_path / "hostile.zip", policy_kwargs=blob)
    pool = OpponentPool(tmp_path / "pool")
    doors: dict[str, Any] = {
        "make_sb3_env": lambda: make_sb3_env(path, env_kwargs={"width": 7, "height": 7, "num_snakes": 2}, num_games=1),
        "frozen": lambda: resolve(frozen(path), **WORLD),
        "a pool's add": lambda: pool.add(path, step=1),
        "load_model": lambda: load_model(PPO, path),
        "load_policy": lambda: load_policy(path, "cpu"),
    }
    for door in doors.values():
        with pytest.raises(ValueError, match=r"hostile\.zip asks for (posix|nt)\.system"):
            door()
    for command in (
        ["play", "--opponent", str(path)],
        ["watch", "--players", str(path), "greedy", "--ansi"],
        ["tournament", str(path), "greedy", "--games", "1"],
        ["train", "--opponent", str(path), "--out", str(tmp_path / "run")],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2
        assert "system, which could run any code and is not on the list" in " ".join(done.output.split())


@pytest.mark.parametrize("door", ["sit", "resume"])
def test_a_hostile_pool_runs_no_code(door: str, marker: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(BEFORE / "run", run)
    snapshot, manifest = run / "pool" / "snapshot_512.zip", run / "pool" / "manifest.json"
    blob = pickled(hostile.pickles(marker, tmp_path)["reduce"])
    rewrite(BEFORE / "run" / "pool" / "snapshot_512.zip", snapshot, learning_rate=blob, policy_kwargs=blob)
    content = json.loads(manifest.read_text())
    content["members"][-1]["sha256"] = hashlib.sha256(snapshot.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(content))
    league = {"width": 7, "height": 7, "num_snakes": 3, "observation": "egocentric", "actions": "relative"}
    doors = {
        "resume": lambda: resume(run, say=lambda line: None),
        "sit": lambda: make_sb3_env(run / "pool", env_kwargs=league, num_games=1),
    }
    with pytest.raises(ValueError, match=r"snapshot_512\.zip asks for (posix|nt)\.system"):
        doors[door]()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_statistics_are_refused(kind: str, marker: Path, trained: Any, tmp_path: Path) -> None:
    shutil.copyfile(trained("ppo")[1], tmp_path / "a.zip")
    (tmp_path / "a_vecnormalize.pkl").write_bytes(hostile.pickles(marker, tmp_path)[kind])
    with pytest.raises(ValueError, match=REFUSED):
        PolicyOpponent(tmp_path / "a.zip", device="cpu")
    with pytest.raises(ValueError, match=REFUSED):
        OpponentPool(tmp_path / "pool").add(tmp_path / "a.zip", step=0)


def test_code_inside_real_statistics_does_not_run(marker: Path, tmp_path: Path) -> None:
    path = tmp_path / "vec_normalize.pkl"
    path.write_bytes(hostile_statistics(marker, VecNormalize(DummyVecEnv([Toy]))))
    with pytest.raises(ValueError, match=r"vec_normalize\.pkl asks for (posix|nt)\.system"):
        load_statistics(path)


@pytest.mark.parametrize("name", ["policy.pth", "pytorch_variables.pth", "policy.optimizer.pth"])
def test_code_in_weights_does_not_run(name: str, marker: Path, trained: Any, tmp_path: Path) -> None:
    code = hostile.stored(hostile.Reduced(__import__("os").system, f"touch '{marker}'"))
    path = rewrite(trained("ppo")[1], tmp_path / "hostile.zip", {name: code})
    if name == "policy.pth":
        with pytest.raises(
            ValueError, match=r"policy\.pth in .*hostile\.zip cannot be read .*expected weights and nothing else"
        ):
            PolicyOpponent(path, device="cpu")
    with pytest.raises(ValueError, match=r"hostile\.zip cannot be (loaded|read)"):
        load_model(PPO, path)


def test_what_a_file_says_in_plain_text_neither_writes_nor_imports(trained: Any, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    path = rewrite(trained("ppo")[1], tmp_path / "a.zip", tensorboard_log=str(logs))
    model = load_model(PPO, path, DummyVecEnv([Toy]), device="cpu")
    model.learn(16)
    assert not logs.exists()
    mine = load_model(PPO, path, DummyVecEnv([Toy]), device="cpu", tensorboard_log=str(logs))
    assert mine.tensorboard_log == str(logs)
    naming = rewrite(path, tmp_path / "b.zip", env="antigravity:Fly-v0")
    with pytest.raises(ValueError, match=r"b\.zip names an environment, which no model's save\(\) writes"):
        load_model(PPO, naming, device="cpu")
    assert "antigravity" not in sys.modules


# ---------------------------------------------------------------- files that would fill the memory


@pytest.mark.parametrize("name", ["data", "policy.pth"])
def test_a_bomb_in_a_checkpoint_is_not_inflated(name: str, trained: Any, tmp_path: Path) -> None:
    path = rewrite(trained("ppo")[1], tmp_path / "bomb.zip", {name: hostile.zeros(300)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"in .*bomb\.zip has 300 MiB, expected at most"):
        PolicyOpponent(path, device="cpu")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_inflated_bit_by_bit_is_refused(compression: int, trained: Any, tmp_path: Path) -> None:
    path = rewrite(trained("ppo")[1], tmp_path / "a.zip", {}, compression)
    with pytest.raises(ValueError, match=r"a\.zip is no SB3 checkpoint \(data is compressed by method"):
        PolicyOpponent(path, device="cpu")


def test_a_bomb_that_lies_is_not_inflated(trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rewrite(trained("ppo")[1], tmp_path / "bomb.zip", {"policy.pth": hostile.zeros(20)}, zipfile.ZIP_DEFLATED)
    hostile.lying(path)
    with pytest.raises(ValueError, match=r"bomb\.zip is no SB3 checkpoint"):
        PolicyOpponent(path, device="cpu")


def test_a_bomb_inside_the_weights_is_not_inflated(trained: Any, tmp_path: Path) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", hostile.zeros(300))
    path = rewrite(trained("ppo")[1], tmp_path / "bomb.zip", {"policy.pth": inner.read_bytes()})
    for load in (lambda: PolicyOpponent(path, device="cpu"), lambda: load_model(PPO, path)):
        with pytest.raises(ValueError, match=r"policy\.pth in .*bomb\.zip has 300 MiB, expected at most 256"):
            load()


def test_statistics_that_are_too_large_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "vec_normalize.pkl"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)
    with pytest.raises(ValueError, match=r"vec_normalize\.pkl has 300 MiB, expected at most 64"):
        load_statistics(path)


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"\x80\x04N" + b"r\xff\xff\xff\xff.", "LONG_BINPUT"),
        (b"\x80\x04(" + b"}" * (MOST_STEPS + 1) + b"l.", "at most 500,000 instructions"),
        (b"\x80\x04\x82\x01.", "EXT1"),
        (b"\x80\x04]q\x00h\x00a.", "refers to itself"),
        (b"\x80\x04" + b"]" * 5000 + b"a" * 4999 + b".", "RecursionError"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.", "ValueError"),
    ],
)
def test_a_small_pickle_cannot_become_large(blob: bytes, text: str) -> None:
    with pytest.raises(UnreadableError, match=text):
        Reader(trust=False).read(blob)


@pytest.mark.parametrize("kwargs", [{"net_arch": [40_000, 40_000]}, {"net_arch": {"pi": [10**8], "vf": []}}])
def test_settings_cannot_ask_for_more_than_there_are_weights(kwargs: Any, trained: Any, tmp_path: Path) -> None:
    path = rewrite(trained("ppo")[1], tmp_path / "wide.zip", policy_kwargs=kwargs)
    for load in (lambda: PolicyOpponent(path, device="cpu"), lambda: load_model(PPO, path)):
        with pytest.raises(ValueError, match=r"more than .* parameters"):
            load()


def test_a_dtype_cannot_point_into_memory() -> None:
    """numpy itself believes a dtype of objects whose flags say that its elements are bytes: they would be addresses."""
    state = (3, "|", None, None, None, -1, -1, 0)
    dtype = hostile.Reduced(np.dtype, "O8", False, True, more=(state,))
    empty = hostile.Reduced(np._core.multiarray._reconstruct, np.ndarray, (0,), b"b", more=((1, (1,), dtype, False, b"A" * 8),))
    with pytest.raises(UnreadableError, match="an array of 'O8', expected numbers"):
        Reader(trust=False).read(pickle.dumps(empty))


# ---------------------------------------------------------------- what is read


ARRAYS = {
    "C": np.arange(6.0).reshape(2, 3),
    "F": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "axes": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    "strided": np.arange(12, dtype=np.int16)[::2],
    "empty": np.zeros((0, 3), np.float32),
    "bool": np.array([True, False]),
    "big-endian": np.arange(3, dtype=">i4"),
    "scalar": np.float32(3.5),
}


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_as_they_were(name: str, protocol: int) -> None:
    array = ARRAYS[name]
    for blob in (pickle.dumps(array, protocol), pickle.dumps(array, protocol).replace(b"numpy._core", b"numpy.core")):
        try:
            read = Reader(trust=False).read(blob)
        except UnreadableError:  # the length of the name is in the pickle
            continue
        assert type(read) is type(array)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)


SPACES = [
    VECTOR,
    spaces.Box(0, 255, (2, 3), np.uint8),
    spaces.Box(np.array([-np.inf, 0]), np.array([1, np.inf]), dtype=np.float64),
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiBinary(4),
    spaces.MultiBinary([2, 3]),
    spaces.Dict([("b", VECTOR), ("a", spaces.Discrete(2))]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_are_read_as_they_were(space: Any) -> None:
    space.seed(3)
    for protocol in (2, 4, 5):
        read = Reader(trust=False).read(pickle.dumps(space, protocol)) if protocol > 2 else space
        assert read == space
        assert str(read) == str(space)
        if isinstance(space, spaces.Dict):
            assert list(read) == list(space)


@pytest.mark.parametrize("name", MODELS)
def test_every_algorithm_loads_by_the_safe_door_to_learn_on(name: str, trained: Any) -> None:
    model, path = trained(name)
    loaded = load_model(type(model), path, model.get_env(), device="cpu")
    assert type(loaded.policy) is type(model.policy)
    assert loaded.num_timesteps == model.num_timesteps
    for key, weights in model.policy.state_dict().items():
        assert torch.equal(loaded.policy.state_dict()[key], weights), key
    loaded.learn(16, reset_num_timesteps=False)


def test_noise_and_schedules_come_along(tmp_path: Path) -> None:
    noise = NormalActionNoise(np.zeros(2), np.full(2, 0.1))
    force = spaces.Box(-1, 1, (2,))
    model: Any = SAC("MlpPolicy", Toy(action_space=force), action_noise=noise, buffer_size=10, device="cpu")
    model.save(tmp_path / "sac.zip")
    loaded: Any = load_model(SAC, tmp_path / "sac.zip", device="cpu")
    np.testing.assert_array_equal(loaded.action_noise._sigma, np.full(2, 0.1))
    dqn: Any = DQN("MlpPolicy", Toy(), buffer_size=10, device="cpu", exploration_fraction=0.5)
    dqn.save(tmp_path / "dqn.zip")
    assert load_model(DQN, tmp_path / "dqn.zip", device="cpu").exploration_schedule(0.5) == dqn.exploration_schedule(0.5)


def test_a_schedule_of_ones_own_is_named_and_can_be_given(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", Toy(), learning_rate=lambda left: left * 1e-3, batch_size=16, **ON)
    path = tmp_path / "own.zip"
    model.save(path)
    PolicyOpponent(path, device="cpu")  # which needs no learning rate
    with pytest.raises(ValueError, match=r"own\.zip asks for cloudpickle.*holds code of its own.*trust=True"):
        load_model(PPO, path)
    assert load_model(PPO, path, custom_objects={"learning_rate": 1e-3}).lr_schedule(1) == 1e-3
    assert load_model(PPO, path, trust=True).lr_schedule(0.5) == 0.5e-3


def test_a_model_of_another_algorithm_is_one_sentence(trained: Any) -> None:
    with pytest.raises(ValueError, match=r"ppo\.zip cannot be loaded as a DQN \("):
        load_model(DQN, trained("ppo")[1])


# ---------------------------------------------------------------- what is trusted


def test_a_class_of_ones_own_is_named_and_can_be_trusted(own: Any, tmp_path: Path) -> None:
    model, path = own
    observations = observe(VECTOR)
    expected = model.predict(observations, deterministic=True)[0]
    with pytest.raises(
        ValueError, match=rf"own\.zip asks for {OWN}, .*give frozen\('.*own\.zip', trust=\['{OWN}'\]\).*--trust"
    ):
        resolve(path, **WORLD)
    with pytest.raises(ValueError, match="asks for"):
        resolve(frozen(path, trust=["another.Class"]), **WORLD)
    for word, world in (
        (frozen(path, trust=[OWN]), {}),
        (frozen(path, trust=True), {}),
        (path, {"trust": [OWN]}),
        (path, {"trust": True}),
    ):
        opponent = resolve(word, **WORLD, **world, deterministic=True)
        assert opponent.policy.features_extractor.scale == 3.0
        np.testing.assert_array_equal(act(opponent, observations), expected)
    with pytest.raises(ValueError, match="asks for"):
        resolve(frozen(path, trust=False), **WORLD, trust=True)
    with pytest.raises(ValueError, match="asks for"):
        load_model(PPO, path)
    assert load_model(PPO, path, trust=[OWN]).policy.features_extractor.scale == 3.0


def test_a_pool_is_trusted_as_a_whole(own: Any, tmp_path: Path) -> None:
    _, path = own
    with pytest.raises(ValueError, match="asks for"):
        OpponentPool(tmp_path / "pool").add(path, step=1)
    pool = OpponentPool(tmp_path / "pool", trust=[OWN])
    pool.add(path, step=1)
    for word in (pool, frozen(tmp_path / "pool", trust=[OWN])):
        assert resolve(word, **WORLD) is not None
    assert resolve(tmp_path / "pool", **WORLD, trust=[OWN]) is not None
    with pytest.raises(ValueError, match="asks for"):
        resolve(tmp_path / "pool", **WORLD)


def test_trusted_objects_are_made_as_the_file_says() -> None:
    class_name = f"{__name__}.Point"
    one = Point(3)
    one.seen = np.random.default_rng(0)
    reader = Reader(frozenset({class_name}))
    read = reader.read(pickle.dumps({"a": one, "b": [one]}))
    assert not reader.unknown
    assert read["a"].x == 3
    assert read["b"][0] is read["a"]
    assert isinstance(read["a"].seen, np.random.Generator)


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


@pytest.mark.parametrize("trust", ["my_package.MyExtractor", [1], 3])
def test_trust_is_a_list_of_names(trust: Any, own: Any) -> None:
    with pytest.raises(TypeError, match=r"trust must be a list of names|not iterable"):
        frozen(own[1], trust=trust)
