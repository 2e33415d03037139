"""Action masks: MaskablePPO learns by them, and whoever uses them sends no forbidden move."""

import numpy as np
import pytest
from sb3_contrib import MaskablePPO

from adapters import make_sb3_env
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.simple import RandomOpponent
from snake_pz import Rules, bots
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, ScriptedEnv

RULES = {"width": 7, "height": 7, "max_cycles": 40}
SMALL = {"policy_kwargs": {"net_arch": [8]}, "n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu", "seed": 0}


def watch(env):
    """[forbidden moves, moves that could have been] of the learner and of opponents that use masks, counted as they come."""
    counted = np.zeros(2, int)

    def count(actions, masks):
        counted[:] += (masks[np.arange(len(actions)), actions] == 0).sum(), (masks == 0).any(axis=1).sum()

    step, acts = env.step_async, {}

    def checked_step(actions):
        count(actions, env.action_masks())
        step(actions)

    for number, opponent in enumerate(env.lineup.opponents):
        if getattr(opponent, "uses_masks", False):
            acts[number] = opponent.act

            def act(observations, slots, masks, number=number):
                actions = acts[number](observations, slots, masks)
                count(actions, masks)
                return actions

            opponent.act = act
    env.step_async = checked_step
    return counted


@pytest.mark.parametrize(("backend", "actions"), [("native", "absolute"), ("native", "relative"), ("supersuit", "absolute")])
def test_contract_14_maskable_ppo_learns_the_snake_against_itself(backend, actions, tmp_path):
    kwargs = {"backend": backend, "env_kwargs": {**RULES, "actions": actions}, "num_games": 4, "device": "cpu", "seed": 0}
    env = make_sb3_env("random", **kwargs)
    assert watch(env).sum() == 0
    MaskablePPO("MlpPolicy", env, **SMALL).learn(64).save(tmp_path / "maskable.zip")
    env = make_sb3_env(tmp_path / "maskable.zip", **kwargs)
    counted = watch(env)
    model = MaskablePPO("MlpPolicy", env, **SMALL)
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    assert counted[0] == 0
    assert counted[1] > 50
    assert any(not value.equal(model.policy.state_dict()[key]) for key, value in before.items())


@pytest.mark.parametrize(("own", "learners"), [("relative", "absolute"), ("absolute", "relative")])
def test_an_opponents_masks_are_of_its_own_actions(own, learners, tmp_path):
    env = make_sb3_env("random", num_games=4, env_kwargs={**RULES, "actions": own})
    MaskablePPO("MlpPolicy", env, **SMALL).save(tmp_path / "maskable.zip")
    env = make_sb3_env(tmp_path / "maskable.zip", num_games=4, env_kwargs={**RULES, "actions": learners}, device="cpu", seed=0)
    counted = watch(env)
    env.reset()
    for _ in range(15):
        env.step(env.action_masks().argmax(axis=1))
    assert counted[0] == 0
    assert counted[1] > 50


@pytest.mark.parametrize(
    ("backend", "observation", "actions"),
    [("native", "board", "absolute"), ("native", "egocentric", "relative"), ("supersuit", "board", "absolute")],
)
def test_bots_are_told_what_kills(backend, observation, actions):
    kwargs = {"rules": Rules.hungry_geese(), "observation": observation, "actions": actions}
    env = make_sb3_env(list(bots.BOTS[1:4]), backend=backend, env_kwargs=kwargs, num_games=4, device="cpu", seed=0)
    counted = watch(env)
    env.reset()
    for _ in range(150):
        env.step(env.action_masks().argmax(axis=1))
    assert counted[0] == 0
    assert counted[1] > 500


@pytest.mark.parametrize("masks", ["info", "observation"])
def test_contract_14_nobody_moves_against_the_masks_of_any_environment(masks, tmp_path):
    def make(opponent):
        script = SCRIPTS["one by one"]
        return make_sb3_env(opponent, env=lambda: ScriptedEnv(script, masks=masks), num_games=3, device="cpu", seed=0)

    env = make("random")
    model = MaskablePPO("MlpPolicy", env, **{**SMALL, "batch_size": 48}).learn(48)
    model.save(tmp_path / "maskable.zip")
    assert env.get_attr("illegal_moves") == [0, 0, 0]
    env = make(["random", tmp_path / "maskable.zip", model])
    assert all(opponent.uses_masks for opponent in env.lineup.opponents)
    model.set_env(env)
    model.learn(96)
    assert env.get_attr("illegal_moves") == [0, 0, 0]
    assert min(env.get_attr("steps")) > 30

    env = make(lambda observations: np.zeros(len(observations), int))  # the environment does count
    env.reset()
    for _ in range(20):
        env.step(env.action_masks().argmax(axis=1))
    assert min(env.get_attr("illegal_moves")) > 0


def test_the_snakes_random_bot_stays_uniform():
    env = make_sb3_env("random", env_kwargs=RULES)
    (opponent,) = env.lineup.opponents
    assert isinstance(opponent, bots.Bot)
    assert not getattr(opponent, "uses_masks", False)


def test_random_elsewhere_uses_masks_where_there_are_any():
    env = make_sb3_env("random", env=ScriptedEnv, num_games=2)
    (opponent,) = env.lineup.opponents
    assert isinstance(opponent, RandomOpponent)
    env.reset()
    moves: set[int] = set()
    for _ in range(10):
        env.step(np.zeros(2, int))
        for game in env.get_attr("last_actions"):
            moves |= {int(move) for move in game.values()}
    assert moves == set(range(NUM_ACTIONS))


def test_a_policy_that_knows_no_masks_is_given_none(trained):
    assert not PolicyOpponent(trained("ppo")[1], device="cpu").uses_masks
