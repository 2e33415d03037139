"""ONNX files: written from any policy, they play like it; read from anywhere, they are arithmetic and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from gymnasium import spaces
from onnx import TensorProto, helper
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from adapters import MoveMaker, OpponentPool, frozen, make_sb3_env, mixture, play_games
from adapters.opponents import OnnxOpponent, PolicyOpponent, export_onnx, onnx_file, onnx_opponent
from adapters.opponents.parse import CHAMPION, players
from adapters.opponents.space_data import space_data, space_from_data
from snake_pz import Rules, SnakeEngine
from snake_pz.core.encodings import observation_space
from snake_pz.formats import battlesnake
from tests.support.toys import BOARD, FOUR, MODELS, PICTURE, SLOTS, WORLD, Toy, act, observe, resolve

ALL = [name for name in MODELS if name != "recurrent"]


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("onnx"), {}

    def file(name):
        if name not in made:
            made[name] = export_onnx(trained(name)[1], folder / f"{name}.onnx")
        return made[name]

    return file


@pytest.fixture(scope="module")
def champion(tmp_path_factory):
    return export_onnx(CHAMPION, tmp_path_factory.mktemp("champion") / "champion.onnx", about={"license": "MIT"})


@pytest.mark.parametrize("name", ALL)
def test_a_file_plays_what_the_checkpoint_plays(trained, exported, name):
    model, path = trained(name)
    player, policy = OnnxOpponent(exported(name), deterministic=True), PolicyOpponent(path, deterministic=True, device="cpu")
    assert (player.observation_space, player.action_space) == (model.observation_space, model.action_space)
    assert player.uses_masks == policy.uses_masks == (name == "maskable")
    found, expected = act(player), act(policy)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ppo", "a2c", "maskable", "dqn"])
def test_sampling_a_file_is_sampling_the_checkpoint(trained, exported, name):
    player, policy = OnnxOpponent(exported(name)), PolicyOpponent(trained(name)[1], device="cpu")
    seen = observe(player.observation_space, rows=1)[0]
    many = np.repeat(seen[None], 4000, axis=0)
    shares = []
    for one in (player, policy):
        one.seed(1)
        shares.append(np.bincount(one.act(many, np.arange(4000), None), minlength=4) / 4000)
    np.testing.assert_allclose(*shares, atol=0.04)
    player.seed(5)
    first = act(player)
    player.seed(5)
    assert (act(player) == first).all()


def test_multidiscrete_samples_each_part_and_heeds_masks(exported):
    player = OnnxOpponent(exported("ppo-multi"))
    player.uses_masks = True
    masks = np.tile(np.array([0, 1, 1, 0, 1], np.int8), (len(SLOTS), 1))
    chosen = act(player, masks=masks)
    assert (chosen[:, 0] == 1).all()
    assert {0, 2} == set(chosen[:, 1])


def test_forbidden_actions_are_not_played(exported):
    player = OnnxOpponent(exported("maskable"))
    masks = np.tile(np.array([0, 1, 0, 1], np.int8), (len(SLOTS), 1))
    assert set(act(player, masks=masks)) <= {1, 3}


def test_a_recurrent_policy_is_refused(trained, tmp_path):
    with pytest.raises(ValueError, match="is recurrent, which is not exported"):
        export_onnx(trained("recurrent")[1], tmp_path / "r.onnx")
    assert not list(tmp_path.iterdir())


def test_a_policy_that_does_more_in_predict_is_refused(tmp_path):
    class Contrary(ActorCriticPolicy):
        def _predict(self, observation, deterministic=False):
            return 3 - super()._predict(observation, deterministic)

    model = PPO(Contrary, Toy(), n_steps=16, batch_size=16, device="cpu", seed=0)
    with pytest.raises(ValueError, match=r"of 64 observations its graph plays \d+ differently"):
        export_onnx(model, tmp_path / "c.onnx")
    assert not list(tmp_path.iterdir())


def test_normalisation_is_in_the_graph(tmp_path):
    env = VecNormalize(DummyVecEnv([Toy]))
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, device="cpu", seed=0).learn(64)
    env.obs_rms.mean += 0.3
    model.save(tmp_path / "m.zip")
    env.save(tmp_path / "m_vecnormalize.pkl")
    seen = observe(env.observation_space)
    expected = model.predict(env.normalize_obs(seen), deterministic=True)[0]
    assert (model.predict(seen, deterministic=True)[0] != expected).any()
    for source in (model, tmp_path / "m.zip"):
        player = OnnxOpponent(export_onnx(source, tmp_path / "m.onnx"), deterministic=True)
        assert (act(player, seen) == expected).all()


def test_transposition_is_in_the_graph(tmp_path):
    model = PPO("CnnPolicy", Toy(PICTURE), n_steps=16, batch_size=16, device="cpu", seed=0)
    file = export_onnx(model, tmp_path / "p.onnx", observation_space=PICTURE)
    player = OnnxOpponent(file, deterministic=True)
    seen = observe(PICTURE)
    assert player.observation_space == PICTURE
    assert (act(player, seen) == model.predict(seen, deterministic=True)[0]).all()


def test_stacked_frames_have_no_place_in_a_graph(tmp_path):
    small, stack = spaces.Box(-1, 1, (2,), np.float32), spaces.Box(-1, 1, (6,), np.float32)
    model = PPO("MlpPolicy", Toy(stack), n_steps=16, batch_size=16, device="cpu", seed=0)
    with pytest.raises(ValueError, match="several frames"):
        export_onnx(model, tmp_path / "s.onnx", observation_space=small)
    file = export_onnx(model, tmp_path / "s.onnx")
    player, policy = (
        kind(source, shown=[small], deterministic=True) for kind, source in ((OnnxOpponent, file), (PolicyOpponent, model))
    )
    for seed in range(3):  # frames are put together outside of it, as for the policy itself
        seen = observe(small, seed)
        assert (act(player, seen) == act(policy, seen)).all()


def test_the_champion_plays_alike_without_torch(champion):
    rules = Rules()
    engine = SnakeEngine(rules, 250)
    engine.reset(seeds=np.arange(250))
    seen, rng = [], np.random.default_rng(0)
    for _ in range(12):
        seen.append(engine.observe("egocentric").reshape(1000, *observation_space(rules, "egocentric").shape).copy())
        engine.step(rng.integers(4, size=(250, 4)))
    views = np.concatenate(seen)[:10_000]
    player, policy = OnnxOpponent(champion, deterministic=True), PolicyOpponent(CHAMPION, deterministic=True, device="cpu")
    slots = np.arange(len(views))
    assert (player.act(views, slots, None) == policy.act(views, slots, None)).mean() > 0.9999
    assert champion.stat().st_size < 700_000
    assert player.about.more["license"] == "MIT"

    code = f"""
import sys
from adapters import play_games, tournament
results = play_games([{str(champion)!r}, "greedy", "greedy", "greedy"], games=20, seed=1)
assert results.win_rates[0] > 0.5, results
assert not {{"torch", "stable_baselines3"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_file_stands_wherever_an_opponent_is_named(champion):
    env = make_sb3_env(mixture({str(champion): 1}), num_games=2, seed=0)
    env.reset()
    infos = [info for _ in range(40) for info in env.step(np.zeros(2, int))[3] if "opponents" in info]
    assert {name for info in infos for name in info["opponents"].values()} == {str(champion)}
    engine = SnakeEngine(rules := Rules.battlesnake(num_snakes=2))
    engine.reset(seeds=[1])
    request = battlesnake.request(rules, engine.state, 0, 0)
    assert MoveMaker(champion, deterministic=True).move(request) == MoveMaker(CHAMPION, deterministic=True).move(request)
    results = play_games([frozen(champion, name="it"), "greedy"], games=2, env_kwargs={"num_snakes": 2})
    assert results.names == ("it", "greedy")


def graph(nodes, inputs, outputs, initializers=(), domain=""):
    opsets = [helper.make_opsetid("", 18)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    made = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(made, opset_imports=opsets, ir_version=9)


def linear(shape=(6, 3), batch="batch", dtype=TensorProto.FLOAT, output=TensorProto.FLOAT):
    """A foreign file: one matrix, no metadata."""
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["f"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["m"]),
        helper.make_node("Cast", ["m"], ["y"], to=output),
    ]
    sides = (batch, shape[0]) if isinstance(shape[0], int) and shape[0] == 6 else (batch, 7, 11, 11)
    ends = [helper.make_tensor_value_info("x", dtype, sides)], [helper.make_tensor_value_info("y", output, (batch, shape[1]))]
    return graph(nodes, *ends, [onnx.numpy_helper.from_array(weights, "w")])


def saved(model, path):
    onnx.save(model, path)
    return path


def test_a_file_of_another_program_plays_by_its_shapes_or_by_what_is_said(tmp_path):
    file = saved(linear((847, 4)), tmp_path / "other.onnx")
    told = resolve(frozen(file, observation=BOARD, actions=FOUR, deterministic=True), **WORLD)
    seen = observe(BOARD)
    weights = onnx.numpy_helper.to_array(onnx.load(file).graph.initializer[0])
    assert (act(told, seen) == (seen.reshape(len(seen), -1).astype(np.float32) @ weights).argmax(axis=1)).all()
    assert play_games([file, "random"], games=2, env_kwargs={"num_snakes": 2}).names[0] == "other"
    named = frozen(str(file), observation="board", actions="absolute")
    assert play_games([named, "random"], games=2, env_kwargs={"num_snakes": 2}).wins.shape == (2, 2)
    with pytest.raises(ValueError, match="must be one of 'board', 'egocentric', 'single' or a space, got 'bord'"):
        play_games([frozen(str(file), observation="bord"), "random"], games=2, env_kwargs={"num_snakes": 2})
    with pytest.raises(ValueError, match="say which it is, frozen"):
        play_games([file, "random"], games=2, env_kwargs={"num_snakes": 2, "width": 9})


def test_integers_are_actions(tmp_path):
    file = saved(linear((6, 1), output=TensorProto.INT64), tmp_path / "a.onnx")
    with pytest.raises(ValueError, match="say it, frozen"):
        resolve(str(file), **WORLD)
    numbers = spaces.Box(-9, 9, (1,), np.int64)
    assert act(resolve(frozen(file, actions=numbers), **WORLD)).shape == (len(SLOTS), 1)


def value(name, shape=("batch", 6), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def loop():
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"])],
        "b",
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
        [value("d", [], TensorProto.BOOL)],
    )
    return graph([helper.make_node("Loop", ["n", ""], ["y"], body=body)], [value("x")], [value("y", (1,))])


def hidden_in_a_branch():
    node = helper.make_node("Evil", ["x"], ["z"], domain="mine")
    inner = helper.make_graph([node], "b", [], [value("z", None)])
    branches = helper.make_node("If", ["q"], ["y"], then_branch=inner, else_branch=inner)
    return graph([branches], [value("x")], [value("y", ("batch", 4))])


def of_another_domain():
    model = linear()
    return graph(model.graph.node, model.graph.input, model.graph.output, domain="com.microsoft")


def endless():
    """Three thousand products of matrices."""
    size, many, ends = 600, 3000, linear((6, 4)).graph
    products = [helper.make_node("MatMul", [f"m{i}", "w"], [f"m{i + 1}"]) for i in range(many)]
    first, last = helper.make_node("Pad", ["x", "p"], ["m0"]), helper.make_node("Slice", [f"m{many}", "a", "b", "s"], ["y"])
    numbers = {"p": [0, 0, 0, size - 6], "a": [0], "b": [4], "s": [1], "w": np.eye(size, dtype=np.float32)}
    tensors = [onnx.numpy_helper.from_array(np.array(number), name) for name, number in numbers.items()]
    return graph([first, *products, last], ends.input, ends.output, tensors)


def elsewhere(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    return model


def says(text):
    model = linear()
    entry = model.metadata_props.add()
    entry.key, entry.value = "snake_pz", text
    return model


KNOWN = {"format": 1, "observation_space": space_data(WORLD["observation_space"]), "action_space": space_data(FOUR)}


def about(**changes):
    return says(json.dumps({**KNOWN, "output": "logits", "uses_masks": False, **changes}))


VAST = {"type": "Box", "shape": [1 << 20, 1 << 20], "dtype": "float32", "low": 0, "high": 1}
REFUSED = {
    "no model": (lambda: b"no model", "is no ONNX model"),
    "nothing": (lambda: b"", "is no ONNX model"),
    "a checkpoint": (CHAMPION.read_bytes, "is no ONNX model"),
    "weights in another file": (lambda: elsewhere(linear()), "keeps weights in other files"),
    "operators of others": (hidden_in_a_branch, r"operators that are not ONNX's own: mine\.Evil"),
    "a domain of others": (of_another_domain, r"not ONNX's own: com\.microsoft"),
    "a loop": (loop, "may repeat without bound: Loop"),
    "one row": (lambda: linear((6, 4), batch=1), "takes batches of 1 only"),
    "another width": (lambda: linear((6, 5)), "say it, frozen"),
    "metadata of no format": (lambda: says("{}"), "the metadata 'snake_pz' of .* cannot be used .*expected format 1"),
    "metadata that are no JSON": (lambda: says("{"), "the metadata 'snake_pz' of"),
    "metadata without spaces": (lambda: says('{"format": 1}'), "the metadata 'snake_pz' of"),
    "metadata of a vast space": (lambda: about(observation_space=VAST), "observation_space must describe a space"),
    "metadata of another output": (lambda: about(output="wishes"), "output must be one of logits, q_values, actions"),
    "an output of another shape": (about, r"must be logits of shape \('B', 4\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_files_are_refused_in_words(tmp_path, case):
    make, message = REFUSED[case]
    content = make()
    file = tmp_path / "bad.onnx"
    file.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    with pytest.raises(ValueError, match=message):
        resolve(str(file), **WORLD)


def test_size_and_time_are_bounded(tmp_path, monkeypatch, exported):
    file = exported("ppo")
    monkeypatch.setattr(onnx_opponent, "PATIENCE", 0.0)
    slow = saved(endless(), tmp_path / "slow.onnx")
    with pytest.raises(ValueError, match="its first forward pass failed within 0 seconds"):
        resolve(str(slow), **WORLD)
    monkeypatch.setattr(onnx_file, "LARGEST_FILE", 100)
    with pytest.raises(ValueError, match="at most"):
        OnnxOpponent(file)


def test_what_a_file_cannot_have_is_said(tmp_path, exported):
    file = exported("ppo")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at 'none\.onnx'"):
        resolve("none.onnx", **WORLD)
    with pytest.raises(ValueError, match="an ONNX file has its normalisation inside"):
        frozen(file, vecnormalize="s.pkl")
    with pytest.raises(ValueError, match="observation and actions are for ONNX files"):
        frozen("gen3.zip", observation="board")
    with pytest.raises(ValueError, match="a pool takes ONNX files whose metadata say"):
        OpponentPool(tmp_path / "pool").add(saved(linear(), tmp_path / "silent.onnx"), step=0)


def test_a_pool_keeps_onnx_files_beside_checkpoints(champion, tmp_path):
    pool = OpponentPool(tmp_path / "pool", sampler="uniform", keep=2)
    for step, file in enumerate([champion, champion, CHAMPION]):
        pool.add(file, step=step, name=f"m{step}")
    assert [member.file for member in pool.members] == ["snapshot_0_m0.onnx", "snapshot_2_m2.zip"]
    assert sorted(path.name for path in pool.folder.glob("snapshot*")) == ["snapshot_0_m0.onnx", "snapshot_2_m2.zip"]
    pool = OpponentPool(pool.folder)
    env = make_sb3_env(pool, num_games=16, seed=0)
    env.reset()
    infos = [info for _ in range(20) for info in env.step(np.zeros(16, int))[3] if "opponents" in info]
    assert {name for info in infos for name in info["opponents"].values()} == {"m0", "m2"}
    assert len(players(pool)) == 2
    pool.remove("m2")
    with pytest.raises(ValueError, match=r"'m0' of the pool .* was trained to see"):
        make_sb3_env(pool, num_games=1, env_kwargs={"width": 13})


def test_without_the_extra_the_error_says_which(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'snake-pz\[onnx\]'"):
        OnnxOpponent(exported("ppo"))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3, 2), np.float32),
        spaces.Box(np.array([-2, -np.inf], np.float32), np.array([2, np.inf], np.float32)),
        spaces.Box(0, 255, (2, 2, 1), np.uint8),
        spaces.Discrete(5, start=2),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
        spaces.MultiBinary((2, 2)),
        spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 1, (1,))),
    ],
    ids=str,
)
def test_spaces_survive_as_json(space):
    assert space_from_data(json.loads(json.dumps(space_data(space), allow_nan=False))) == space


def test_a_space_without_data_is_refused():
    with pytest.raises(ValueError, match="expected a Box"):
        space_data(spaces.Text(3))
