"""What a policy sees is what it saw in training: under VecNormalize, VecFrameStack and VecTransposeImage, in any order."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecFrameStack, VecNormalize, VecTransposeImage

from adapters import OpponentPool
from adapters.opponents.parse import frozen
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.preprocessing import Preprocessing, SlotMemory
from adapters.opponents.statistics import copy_statistics, find_statistics
from tests.support.toys import BOARD, ON, PICTURE, SLOTS, VECTOR, WORLD, Toy, act, observe, resolve, resolve_seats

SMALL = spaces.Box(0, 255, (8, 9, 3), np.uint8)
PLANES = spaces.Box(0, 255, (3, 9, 8), np.uint8)
TABLE = spaces.Box(-2, 2, (3, 4), np.float32)
WIDE = spaces.Box(-np.inf, np.inf, (6,), np.float64)


class Recorder(VecEnvWrapper):
    """Keeps what the environments show before anything is made of it."""

    def reset(self):
        self.seen, self.dones = self.venv.reset(), np.ones(self.num_envs, bool)
        self.seen = self.seen.copy()
        return self.seen.copy()

    def step_wait(self):
        observations, rewards, dones, infos = self.venv.step_wait()
        self.seen, self.dones = observations.copy(), dones
        return observations, rewards, dones, infos


class Uneven(Toy):
    """Episodes that end at different times, of numbers that need normalising."""

    length = 3

    def __init__(self, space):
        super().__init__(space)
        Uneven.length += 1
        self.length = 3 + Uneven.length % 4

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, self.turn >= self.length, info


def stack(frames, order=None):
    return lambda venv: VecFrameStack(venv, frames, channels_order=order)


CHAINS = {
    "nothing": (VECTOR, []),
    "normalise": (VECTOR, [VecNormalize]),
    "normalise unbounded": (WIDE, [VecNormalize]),
    "normalise images": (BOARD, [VecNormalize]),
    "stack numbers": (VECTOR, [stack(3)]),
    "stack tables": (TABLE, [stack(2)]),
    "stack tables by rows": (TABLE, [stack(2, "first")]),
    "stack planes": (PLANES, [stack(4)]),
    "stack planes last": (PLANES, [stack(2, "last")]),
    "transpose": (SMALL, [VecTransposeImage]),
    "stack, transpose": (SMALL, [stack(2), VecTransposeImage]),
    "stack, transpose by mistake": (PLANES, [stack(4), VecTransposeImage]),  # (12, 9, 8): SB3 wants fewer channels than rows
    "transpose, stack": (SMALL, [VecTransposeImage, stack(2)]),
    "normalise, stack": (VECTOR, [VecNormalize, stack(3)]),
    "stack, normalise": (VECTOR, [stack(3), VecNormalize]),
    "normalise images, stack": (PLANES, [VecNormalize, stack(4)]),
    "stack, normalise images": (PLANES, [stack(4), VecNormalize]),
    "transpose, normalise": (SMALL, [VecTransposeImage, VecNormalize]),
    "stack, transpose, normalise": (SMALL, [stack(2), VecTransposeImage, VecNormalize]),
    "normalise dicts": (spaces.Dict(a=VECTOR, b=TABLE), [VecNormalize]),
}


def wrapped(space, wrappers, num_envs=4):
    venv = Recorder(DummyVecEnv([lambda: Uneven(space)] * num_envs))
    for wrapper in wrappers:
        venv = wrapper(venv)
    venv.seed(0)
    return venv


def statistics_of(venv):
    while isinstance(venv, VecEnvWrapper):
        if isinstance(venv, VecNormalize):
            return venv
        venv = venv.venv
    return None


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_seen_is_what_sb3s_wrappers_show(name):
    space, wrappers = CHAINS[name]
    venv = wrapped(space, wrappers)
    recorder = venv
    while not isinstance(recorder, Recorder):
        recorder = recorder.venv
    normalize = statistics_of(venv)
    venv.reset()
    for _ in range(20):
        venv.step(np.zeros(4, int))
    if normalize is not None:
        normalize.training = False
    seen = venv.reset()
    preprocessing = Preprocessing(venv.observation_space, [space], copy_statistics(normalize))
    assert preprocessing.observation_space == space
    slots, rng = np.array([7, 2, 40, 3]), np.random.default_rng(0)
    for _ in range(15):
        preprocessing.reset(slots[recorder.dones])
        order = rng.permutation(4)  # the slots name the rows, not their order
        raw = recorder.seen
        shown = {key: rows[order] for key, rows in raw.items()} if isinstance(raw, dict) else raw[order]
        made = preprocessing.apply(shown, slots[order])
        for key, expected in seen.items() if isinstance(seen, dict) else [(None, seen)]:
            rows = made if key is None else made[key]
            assert rows.dtype == expected.dtype
            np.testing.assert_array_equal(rows, expected[order])
        seen, *_ = venv.step(np.zeros(4, int))


def test_the_space_that_needs_least_is_taken():
    single, board = spaces.Box(0, 255, (1, 9, 9), np.uint8), spaces.Box(0, 255, (7, 9, 9), np.uint8)
    assert Preprocessing(board, [single, board]).observation_space == board  # not seven frames of the other
    four = spaces.Box(0, 255, (4, 9, 9), np.uint8)
    assert Preprocessing(four, [board, single]).observation_space == single
    assert Preprocessing(four, [board]).observation_space == four  # nothing fits: whoever seats it finds out


def test_frames_are_kept_per_slot_while_others_are_skipped():
    shown = spaces.Box(0, 99, (1,), np.float32)
    stacks = Preprocessing(spaces.Box(0, 99, (3,), np.float32), [shown])

    def see(**values):
        slots = np.array([int(slot[1:]) for slot in values])
        return stacks.apply(np.array([[value] for value in values.values()], np.float32), slots).tolist()

    assert see(s5=1, s0=9) == [[0, 0, 1], [0, 0, 9]]
    assert see(s0=8) == [[0, 9, 8]]
    assert see(s1=4, s5=2) == [[0, 0, 4], [0, 1, 2]]
    stacks.reset(np.array([0, 77]))
    assert see(s0=7, s5=3) == [[0, 0, 7], [1, 2, 3]]


def test_a_memory_grows_with_its_slots_and_gives_copies():
    memory = SlotMemory((2,), np.float32)
    memory.clear(np.array([3]))
    assert memory.read(np.array([3, 1])).tolist() == [[0, 0], [0, 0]]
    memory.write(np.array([3]), np.array([[1, 2]]))
    memory.write(np.array([9]), np.array([[5, 6]]))
    read = memory.read(np.array([9, 3, 0]))
    read[:] = -1
    assert memory.read(np.array([9, 3, 0])).tolist() == [[5, 6], [1, 2], [0, 0]]
    memory.clear(np.array([3, 500]))
    assert memory.read(np.array([9, 3])).tolist() == [[5, 6], [0, 0]]
    assert memory.read(np.array([], np.intp)).shape == (0, 2)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_policy_that_sb3_trained_on_transposed_images_plays_where_they_are_not(tmp_path, algorithm):
    small = {"policy_kwargs": {"features_extractor_kwargs": {"features_dim": 16}}, "device": "cpu"}
    if algorithm == "ppo":
        model = PPO("CnnPolicy", Toy(PICTURE), n_steps=16, batch_size=16, **small)
    else:
        model = DQN("CnnPolicy", Toy(PICTURE), buffer_size=10, **small)
    assert model.observation_space.shape == (3, 40, 48)
    model.save(tmp_path / "picture.zip")
    opponent = resolve(tmp_path / "picture.zip", **WORLD | {"observation_space": PICTURE}, deterministic=True)
    assert opponent.observation_space == PICTURE
    observations = observe(PICTURE)
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])
    elsewhere = resolve(tmp_path / "picture.zip", **WORLD | {"observation_space": BOARD})
    assert elsewhere.observation_space == model.observation_space


# ---------------------------------------------------------------- statistics beside checkpoints and around live models


def trained_on(space=VECTOR, **normalize):
    """A model trained under VecNormalize on numbers far from zero, and the wrapper."""
    venv = VecNormalize(DummyVecEnv([lambda: gymnasium.wrappers.TransformObservation(Toy(space), shifted, space)]), **normalize)
    model = PPO("MlpPolicy", venv, batch_size=16, n_epochs=1, policy_kwargs={"ortho_init": False}, **ON).learn(48)
    model.policy.action_net.bias.data[:] = 0
    return model, venv


def shifted(observation):
    return observation * 0.1 + 0.7 if observation.dtype == np.float32 else observation // 2


def expected_actions(model, venv, observations):
    return model.predict(venv.normalize_obs(observations), deterministic=True)[0]


@pytest.fixture(scope="module")
def normalized():
    return trained_on()


@pytest.mark.parametrize(
    ("checkpoint", "statistics"),
    [
        ("snake_1000000.zip", "snake_1000000_vecnormalize.pkl"),
        ("rl_model_1000_steps.zip", "rl_model_1000_steps_vecnormalize.pkl"),
        ("rl_model_1000_steps.zip", "rl_model_vecnormalize_1000_steps.pkl"),
        ("logs/ppo/Snake-v1_2/Snake-v1.zip", "logs/ppo/Snake-v1_2/Snake-v1/vecnormalize.pkl"),
        ("logs/ppo/Snake-v1_2_5f/best_model.zip", "logs/ppo/Snake-v1_2_5f/Snake-v1/vecnormalize.pkl"),
    ],
)
def test_statistics_beside_a_checkpoint_are_applied(normalized, tmp_path, monkeypatch, checkpoint, statistics):
    model, venv = normalized
    (tmp_path / statistics).parent.mkdir(parents=True, exist_ok=True)
    model.save(tmp_path / checkpoint)
    venv.save(tmp_path / statistics)
    (tmp_path / "other_vecnormalize.pkl").write_bytes(b"somebody else's")
    observations = shifted(observe(VECTOR))
    expected = expected_actions(model, venv, observations)
    assert not np.array_equal(expected, model.predict(observations, deterministic=True)[0])
    opponent = PolicyOpponent(tmp_path / checkpoint, deterministic=True, device="cpu")
    np.testing.assert_array_equal(act(opponent, observations), expected)
    np.testing.assert_array_equal(act(opponent, observations), expected)  # frozen
    monkeypatch.chdir((tmp_path / checkpoint).parent)
    name = checkpoint.rpartition("/")[2]
    relative = resolve(name.removesuffix(".zip"), **WORLD, deterministic=True)
    np.testing.assert_array_equal(act(relative, observations), expected)


def test_the_names_are_those_that_sb3_writes(tmp_path):
    venv = VecNormalize(DummyVecEnv([Toy]))
    callback = CheckpointCallback(16, tmp_path, name_prefix="my_run", save_vecnormalize=True)
    PPO("MlpPolicy", venv, batch_size=16, n_epochs=1, **ON).learn(16, callback=callback)
    (checkpoint,) = tmp_path.glob("*.zip")
    assert find_statistics(checkpoint).name == "my_run_vecnormalize_16_steps.pkl"


def test_one_folder_of_another_run_is_not_taken_for_the_zoos(normalized, tmp_path):
    (tmp_path / "run_1" / "Other-v1").mkdir(parents=True)
    normalized[1].save(tmp_path / "run_1" / "Other-v1" / "vecnormalize.pkl")
    assert find_statistics(tmp_path / "run_1" / "model.zip") is None


def test_statistics_go_to_their_opponent_only(normalized, trained, tmp_path):
    model, venv = normalized
    model.save(tmp_path / "a.zip")
    venv.save(tmp_path / "a_vecnormalize.pkl")
    plain_model, plain_path = trained("ppo")
    observations = shifted(observe(VECTOR))
    settings = {**WORLD, "deterministic": True, "enemy_agents": None, "num_enemies": 2}
    with_them, without = resolve_seats([tmp_path / "a.zip", plain_path], **settings)
    np.testing.assert_array_equal(act(with_them, observations), expected_actions(model, venv, observations))
    np.testing.assert_array_equal(act(without, observations), plain_model.predict(observations, deterministic=True)[0])


def test_a_live_model_brings_a_copy_of_its_statistics():
    model, venv = trained_on()
    observations = shifted(observe(VECTOR))
    expected = expected_actions(model, venv, observations)
    opponent = PolicyOpponent(model, deterministic=True, device="cpu")
    np.testing.assert_array_equal(act(opponent, observations), expected)
    venv.obs_rms.mean += 100
    assert venv.training
    np.testing.assert_array_equal(act(opponent, observations), expected)
    assert not np.array_equal(expected_actions(model, venv, observations), expected)


def test_statistics_of_rewards_alone_change_nothing(tmp_path):
    model, _ = trained_on(norm_obs=False)
    model.save(tmp_path / "a.zip")
    VecNormalize(DummyVecEnv([lambda: Toy(TABLE)]), norm_obs=False).save(tmp_path / "a_vecnormalize.pkl")
    observations = shifted(observe(VECTOR))
    for source in (model, tmp_path / "a.zip"):
        opponent = PolicyOpponent(source, deterministic=True, device="cpu")
        np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


def test_statistics_can_be_named(normalized, tmp_path):
    model, venv = normalized
    model.save(tmp_path / "a.zip")
    venv.save(tmp_path / "vec_normalize.pkl")
    observations = shifted(observe(VECTOR))
    for source in (tmp_path / "a.zip", model.policy):  # which has no environment
        opponent = resolve(frozen(source, vecnormalize=tmp_path / "vec_normalize.pkl", deterministic=True), **WORLD)
        np.testing.assert_array_equal(act(opponent, observations), expected_actions(model, venv, observations))
    with pytest.raises(FileNotFoundError, match=r"nowhere\.pkl"):
        resolve(frozen(tmp_path / "a.zip", vecnormalize=tmp_path / "nowhere.pkl"), **WORLD)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"junk", r"a_vecnormalize\.pkl cannot be unpickled \(ValueError: .*save it anew"),
        (b"calien_package\nThing\n.", r"a_vecnormalize\.pkl asks for alien_package\.Thing, .*not on the list of known classes"),
        (pickle.dumps([1, 2]), r"a_vecnormalize\.pkl must hold a VecNormalize, as its save\(\) writes it, got a list"),
    ],
)
def test_a_file_that_holds_no_statistics_is_refused(trained, tmp_path, content, text):
    trained("ppo")[0].save(tmp_path / "a.zip")
    (tmp_path / "a_vecnormalize.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=text):
        resolve(tmp_path / "a.zip", **WORLD)


def test_statistics_of_other_games_are_refused(trained, tmp_path):
    trained("ppo")[0].save(tmp_path / "a.zip")
    VecNormalize(DummyVecEnv([lambda: Toy(TABLE)])).save(tmp_path / "a_vecnormalize.pkl")
    with pytest.raises(
        ValueError, match=r"opponent '.*a\.zip' sees Box.*\(6,\).*VecNormalize statistics are of .*\(3, 4\).*show .*\(6,\)"
    ):
        resolve(tmp_path / "a.zip", **WORLD)


def test_a_policy_of_normalised_images_without_statistics_is_told_where_they_belong(tmp_path):
    model, venv = trained_on(BOARD)
    model.save(tmp_path / "a.zip")
    settings = {**WORLD, "observation_space": BOARD, "deterministic": True}
    with pytest.raises(ValueError, match=r"a\.zip' sees .*images as VecNormalize makes them.*<checkpoint>_vecnormalize\.pkl"):
        resolve(tmp_path / "a.zip", **settings)
    venv.save(tmp_path / "a_vecnormalize.pkl")
    opponent = resolve(tmp_path / "a.zip", **settings)
    assert opponent.observation_space == BOARD
    observations = observe(BOARD) // 2
    np.testing.assert_array_equal(act(opponent, observations), expected_actions(model, venv, observations))


def test_many_slots_cost_no_more_than_their_rows(normalized):
    opponent = PolicyOpponent(normalized[0], device="cpu")
    assert opponent.preprocessing.steps[0].statistics.old_obs.size == 0
    assert act(opponent).shape == SLOTS.shape


# ---------------------------------------------------------------- statistics that are lost


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("model.zip", "vec_normalize.pkl"),
        ("model.zip", "vecnormalize.pkl"),
        ("model.zip", "model_vec_normalize.pkl"),
        ("best_model.zip", "best_vecnorm.pkl"),
        ("best_model.zip", "best_vecnormalize.pkl"),
    ],
)
@pytest.mark.parametrize("off_policy", [False, True], ids=["ppo", "dqn"])
def test_statistics_are_found_under_the_names_that_others_use(checkpoint, name, off_policy, tmp_path):
    model, venv = trained_off_policy() if off_policy else trained_on()
    model.save(tmp_path / checkpoint)
    venv.save(tmp_path / name)
    observations = shifted(observe(VECTOR))
    opponent = PolicyOpponent(tmp_path / checkpoint, deterministic=True, device="cpu")
    np.testing.assert_array_equal(act(opponent, observations), expected_actions(model, venv, observations))


def trained_off_policy():
    venv = VecNormalize(DummyVecEnv([lambda: Shifted(VECTOR)] * 2))
    model = DQN("MlpPolicy", venv, learning_starts=8, buffer_size=100, batch_size=8, device="cpu", seed=0)
    return model.learn(40), venv


class Shifted(Toy):
    """Numbers that need normalising."""

    def reset(self, **more):
        observation, info = super().reset(**more)
        return shifted(observation), info

    def step(self, action):
        observation, *rest = super().step(action)
        return shifted(observation), *rest


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_statistics_of_a_folder_are_not_those_of_a_policy_that_had_none(name, normalized, trained, tmp_path):
    model, path = trained(name)
    (tmp_path / "a.zip").write_bytes(path.read_bytes())
    normalized[1].save(tmp_path / "vec_normalize.pkl")
    assert find_statistics(tmp_path / "a.zip") is None
    observations = observe(VECTOR)
    opponent = PolicyOpponent(tmp_path / "a.zip", deterministic=True, device="cpu")
    np.testing.assert_array_equal(act(opponent, observations), model.predict(observations, deterministic=True)[0])


def test_lost_statistics_are_told_once(normalized, tmp_path, recwarn):
    model, venv = normalized
    model.save(tmp_path / "a.zip")
    text = (
        r"opponent '.*a\.zip' was trained under VecNormalize.*: save them as a_vecnormalize\.pkl beside it, or name their file"
    )
    with pytest.warns(UserWarning, match=text):
        PolicyOpponent(tmp_path / "a.zip", device="cpu")
    PolicyOpponent(tmp_path / "a.zip", device="cpu")
    assert not recwarn.list
    with pytest.raises(ValueError, match=r"a\.zip was trained under VecNormalize"):
        OpponentPool(tmp_path / "pool").add(tmp_path / "a.zip", step=0)
    assert not (tmp_path / "pool" / "manifest.json").exists()
    venv.save(tmp_path / "vec_normalize.pkl")
    member = OpponentPool(tmp_path / "pool").add(tmp_path / "a.zip", step=0)
    assert member.statistics_sha256 is not None


def test_a_live_model_without_its_environment_is_told(normalized, tmp_path):
    normalized[0].save(tmp_path / "a.zip")
    model = PPO.load(tmp_path / "a.zip", device="cpu")
    with pytest.warns(UserWarning, match=r"'PPO' was trained under VecNormalize.*: load it with the VecNormalize around"):
        PolicyOpponent(model, device="cpu")
    with pytest.raises(ValueError, match="the PPO was trained under VecNormalize"):
        OpponentPool(tmp_path / "pool").add(model, step=0)
    normalized[1].save(tmp_path / "s.pkl")
    PolicyOpponent(model, device="cpu", vecnormalize=tmp_path / "s.pkl")
