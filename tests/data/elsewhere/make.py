"""Makes the files of a folder here with the Stable-Baselines3 that is installed: `python make.py FOLDER`."""

import sys
import zipfile
from pathlib import Path

import numpy as np
import stable_baselines3
import torch
from sb3_contrib import ARS, QRDQN, TQC, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

OLD = stable_baselines3.__version__.startswith("1.")
if OLD:
    import gym
    from gym import spaces
else:
    import gymnasium as gym
    from gymnasium import spaces

VECTOR = spaces.Box(-1, 1, (3,), np.float32)
FOUR = spaces.Discrete(4)
FORCE = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
BOTH = spaces.Dict({"b": VECTOR, "a": spaces.Discrete(3)})
ROWS = 32


class Toy(gym.Env):
    """Random observations, episodes of ten steps."""

    def __init__(self, observation_space=VECTOR, action_space=FOUR):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, seed=None, options=None):
        self.turn = 0
        observation = self.observation_space.sample()
        return observation if OLD else (observation, {})

    def step(self, action):
        self.turn += 1
        observation, reward, over = self.observation_space.sample(), float(np.sum(action)), self.turn == 10
        return (observation, reward, over, {}) if OLD else (observation, reward, False, over, {})

    def action_masks(self):
        return np.array([True, False, True, True])


ON = {"n_steps": 16, "device": "cpu", "seed": 0}
OFF = {"learning_starts": 16, "buffer_size": 40, "batch_size": 8, "device": "cpu", "seed": 0}
PAIR = spaces.MultiDiscrete([2, 3])


def mlp(**more):
    return {"policy_kwargs": {"net_arch": [6], **more}}


MODELS = {
    "a2c": lambda: A2C("MlpPolicy", Toy(), **ON, **mlp()),
    "ars": lambda: ARS("MlpPolicy", Toy(), n_delta=1, device="cpu", seed=0, **mlp()),
    "ars_linear": lambda: ARS("LinearPolicy", Toy(action_space=FORCE), n_delta=1, device="cpu", seed=0),
    "ddpg": lambda: DDPG("MlpPolicy", Toy(action_space=FORCE), **OFF, **mlp()),
    "dqn": lambda: DQN("MlpPolicy", Toy(), **OFF, **mlp()),
    "maskable": lambda: MaskablePPO("MlpPolicy", Toy(), batch_size=16, **ON, **mlp()),
    "ppo": lambda: PPO("MlpPolicy", Toy(), batch_size=16, **ON, **mlp()),
    "ppo_binary": lambda: PPO("MlpPolicy", Toy(action_space=spaces.MultiBinary(3)), batch_size=16, **ON, **mlp()),
    "ppo_dict": lambda: PPO("MultiInputPolicy", Toy(BOTH), batch_size=16, **ON, **mlp()),
    "ppo_pair": lambda: PPO("MlpPolicy", Toy(action_space=PAIR), batch_size=16, **ON, **mlp(activation_fn=torch.nn.ReLU)),
    "ppo_sde": lambda: PPO("MlpPolicy", Toy(action_space=FORCE), use_sde=True, batch_size=16, **ON, **mlp()),
    "qrdqn": lambda: QRDQN("MlpPolicy", Toy(), **OFF, **mlp(n_quantiles=5)),
    "recurrent": lambda: RecurrentPPO("MlpLstmPolicy", Toy(), batch_size=16, **ON, **mlp(lstm_hidden_size=4)),
    "sac": lambda: SAC("MlpPolicy", Toy(action_space=FORCE), **OFF, **mlp()),
    "td3": lambda: TD3("MlpPolicy", Toy(action_space=FORCE), **OFF, **mlp()),
    "tqc": lambda: TQC("MlpPolicy", Toy(action_space=FORCE), **OFF, **mlp(n_critics=1)),
    "trpo": lambda: TRPO("MlpPolicy", Toy(), batch_size=16, **ON, **mlp()),
}


def observe():
    """(ROWS, ...) by part of the observation, the same in every version."""
    rng = np.random.default_rng(0)
    return {
        "": rng.uniform(-1, 1, (ROWS, 3)).astype(np.float32),
        "a": rng.integers(3, size=ROWS),
        "b": rng.uniform(-1, 1, (ROWS, 3)).astype(np.float32),
    }


def save(model, folder, name, statistics=None):
    """Write the checkpoint, deflated, and what the model answers, in the version that made it."""
    path = folder / (name + ".zip")
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    seen = observe()
    shown = {"a": seen["a"], "b": seen["b"]} if name == "ppo_dict" else seen[""]
    if statistics is not None:
        shown = statistics.normalize_obs(5 * shown + 3)
    return model.predict(shown, deterministic=True)[0]


def make_lively(model):
    """Have the answers depend on what is seen, and not on what was learned in a few steps."""
    for name, parameter in model.policy.named_parameters():
        parameter.data *= 0 if "bias" in name else 3


if not OLD and stable_baselines3.__version__ > "2.4":
    from sb3_contrib import CrossQ

    MODELS["crossq"] = lambda: CrossQ("MlpPolicy", Toy(action_space=FORCE), **OFF, **mlp())


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    answers = {}
    for name, make in MODELS.items():
        torch.manual_seed(1)
        model = make()
        model.learn(32)
        make_lively(model)
        answers[name] = save(model, folder, name)
    env = VecNormalize(DummyVecEnv([Toy]))
    model = PPO("MlpPolicy", env, batch_size=16, **ON, **mlp())
    model.learn(64)
    env.obs_rms.mean += 3
    env.obs_rms.var *= 25
    make_lively(model)
    answers["ppo_normalized"] = save(model, folder, "ppo_normalized", env)
    env.save(str(folder / "ppo_normalized_vecnormalize.pkl"))
    np.savez_compressed(folder / "answers.npz", **answers)


main()
