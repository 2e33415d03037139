"""What a user writes for the opponents: words, frozen(...), mixture(...), lists and dicts of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from adapters.opponents import parse as parsing
from adapters.opponents.mixture_source import MixtureSource
from adapters.opponents.parse import frozen, mixture, parse, parse_all
from adapters.opponents.parsed import Bot, Checkpoint, Pool, Ready
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool import OpponentPool
from adapters.opponents.protocol import Source
from adapters.opponents.simple import RandomOpponent
from tests.support.toys import FOUR, VECTOR, WORLD, act, resolve, resolve_seats


def seats(spec, agents=None, num_enemies=3, **world):
    return resolve_seats(spec, enemy_agents=agents, num_enemies=num_enemies, **{**WORLD, **world})


def test_words_for_a_checkpoint(trained, monkeypatch):
    _, path = trained("ppo")
    monkeypatch.chdir(path.parent)
    for spec in ("ppo.zip", "ppo", path, str(path), Path("ppo"), f".{os.sep}ppo", str(path.with_suffix(""))):
        assert isinstance(resolve(spec, **WORLD), PolicyOpponent), spec
    assert resolve("ppo.zip", **WORLD).name == "ppo.zip"


def test_words_for_a_bot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(resolve("greedy", **WORLD), RandomOpponent)
    with pytest.raises(ValueError, match=r"unknown bot 'gready': there are greedy, random .*path would end in \.zip"):
        resolve("gready", **WORLD)


def test_a_word_for_a_bot_never_means_what_lies_in_the_current_directory(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("greedy.zip", "random", "champion.zip"):
        shutil.copyfile(trained("ppo")[1], name)
    OpponentPool("survivor").add_bot("greedy")
    bot, dotted, zipped, path = seats(["greedy", "./greedy", "greedy.zip", Path("greedy")], num_enemies=4)
    assert isinstance(bot, RandomOpponent)
    assert isinstance(seats("random")[0], RandomOpponent)
    assert isinstance(zipped, PolicyOpponent)
    assert dotted is zipped is path
    assert resolve(Path("greedy"), **WORLD).name == f".{os.sep}greedy"
    monkeypatch.setattr(parsing, "CHAMPION", tmp_path / "ours.zip")
    for champion in ("champion", frozen("champion")):
        with pytest.raises(FileNotFoundError, match=r"ours\.zip"):
            seats(champion)
    assert seats(frozen("champion.zip", name="mine"))[0].name == "mine"
    assert parse("survivor") == Bot("survivor")
    assert isinstance(parse("./survivor"), Pool)
    Path("searcher:5").mkdir()
    assert parse("searcher:5") == Bot("searcher:5")
    with pytest.raises(TypeError, match=r"frozen\(\) takes the path .*, got str: 'greedy'"):
        frozen("greedy")


def test_the_folder_of_a_run_is_told_from_that_of_its_pool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    OpponentPool("runs/x/pool").add_bot("greedy")
    monkeypatch.chdir("runs")
    for spec in ("x", f".{os.sep}x", Path("x")):
        with pytest.raises(ValueError, match=r"x' is a folder, but not a pool's: did you mean x.pool\?"):
            seats(spec)


def test_live_models_policies_and_opponents(trained):
    model, _ = trained("ppo")
    assert resolve(model, **WORLD).name == "PPO"
    assert resolve(model.policy, **WORLD).name == "ActorCriticPolicy"
    mine = RandomOpponent(VECTOR, FOUR)
    assert resolve(mine, **WORLD) is mine


class Turns:
    """Seats one opponent after the other."""

    def __init__(self, *opponents):
        self.opponents, self.next = opponents, 0

    def ready(self):
        return self.opponents

    def draw(self, games, seats, rng, seated):
        which = (self.next + np.arange(games)) % len(self.opponents)
        self.next += games
        return self.opponents, np.repeat(which[:, None], seats, axis=1)

    def forget(self):
        self.next = 0


def test_a_source_of_ones_own_is_asked_who_sits_down():
    first, second = RandomOpponent(VECTOR, FOUR), RandomOpponent(VECTOR, FOUR)
    source = Turns(first, second)
    assert isinstance(source, Source)
    assert seats(source) == [source] * 3
    assert seats(mixture({source: 1}))[0].members == (source,)


class Complete(RandomOpponent):
    observation_space, action_space = VECTOR, FOUR


@pytest.mark.parametrize("spec", [None, 3, PPO, Complete, b"x.zip", {1, 2}])
def test_other_types_are_refused(spec):
    with pytest.raises(TypeError, match=r"opponent must be the path of an SB3 checkpoint, a bot's name, .*; got"):
        resolve(spec, **WORLD)


def test_one_for_all_seats_is_one_object(trained):
    for spec in ("greedy", trained("ppo")[1], trained("ppo")[0], lambda observations: observations):
        one, two, three = seats(spec)
        assert one is two is three


def test_a_list_is_in_seat_order_and_the_same_thing_twice_is_one_object(trained, monkeypatch):
    model, path = trained("ppo")
    monkeypatch.chdir(path.parent)
    made = seats([path, "greedy", "ppo", "random", "ppo.zip", "greedy", model, model], num_enemies=8)
    assert [opponent.name for opponent in made][:2] == [str(path), "random"]
    assert made[0] is made[2] is made[4]
    assert made[1] is made[5]
    assert made[1] is not made[3]
    assert made[6] is made[7]
    assert len({id(opponent) for opponent in made}) == 4


def test_a_dict_is_by_agent(trained):
    path = trained("ppo")[1]
    made = seats({"snake_3": "random", "snake_1": path, "snake_2": "random"}, agents=["snake_1", "snake_2", "snake_3"])
    assert isinstance(made[0], PolicyOpponent)
    assert made[1] is made[2]


def test_wrong_shapes_of_specs_are_told():
    with pytest.raises(ValueError, match="a list of opponents must have 3 entries, one per enemy seat, got 2"):
        seats(["greedy", "greedy"])
    with pytest.raises(ValueError, match="needs learners given by name too"):
        seats({"snake_1": "greedy"})
    with pytest.raises(ValueError, match=r"missing \['snake_2'\], unknown \['snake_7'\]"):
        seats({"snake_1": "greedy", "snake_7": "greedy"}, agents=["snake_1", "snake_2"], num_enemies=2)


def test_deterministic_and_device_reach_the_policies(trained):
    opponents = seats([trained("ppo")[1]] * 3, deterministic=True)
    np.testing.assert_array_equal(act(opponents[0]), act(opponents[0]))
    assert opponents[0].policy.device == torch.device("cpu")


def test_importing_opponents_and_lineups_loads_no_torch():
    code = "import sys, adapters.opponents.lineup, adapters.opponents.parse; print({'torch', 'stable_baselines3'} & {*sys.modules})"  # noqa: E501
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "set()"


# ---------------------------------------------------------------- settings of one's own


def test_a_frozen_opponent_has_settings_of_its_own(trained):
    path = trained("ppo")[1]
    best, same, sampled, called = seats(
        [frozen(path, deterministic=True), frozen(str(path), deterministic=True), path, frozen(path, name="last year's")],
        num_enemies=4,
    )
    assert best is same
    assert len({id(opponent) for opponent in (best, sampled, called)}) == 3
    assert best.policy is sampled.policy  # the checkpoint is loaded once
    np.testing.assert_array_equal(act(best), act(best))
    assert not np.array_equal(act(sampled), act(sampled))
    assert (best.name, called.name) == (str(path), "last year's")


def test_the_settings_of_one_go_before_those_of_all(trained):
    path = trained("ppo")[1]
    sampled, best = seats([frozen(path, deterministic=False), path], num_enemies=2, deterministic=True)
    assert not np.array_equal(act(sampled), act(sampled))
    np.testing.assert_array_equal(act(best), act(best))
    assert resolve(frozen(path, device="meta"), **WORLD).policy.device == torch.device("meta")
    assert resolve(frozen(path), **WORLD).policy.device == torch.device("cpu")


def test_without_settings_frozen_changes_nothing(trained):
    model, path = trained("ppo")
    one, two, three, four = seats([path, frozen(path), model, frozen(model)], num_enemies=4)
    assert one is two
    assert three is four


@pytest.mark.parametrize("source", [None, PPO, lambda observations: observations, RandomOpponent(VECTOR, FOUR)])
def test_frozen_takes_checkpoints_models_and_pools_only(source):
    with pytest.raises(
        TypeError, match=r"frozen\(\) takes the path of an SB3 checkpoint, a live SB3 model or policy or a pool, got"
    ):
        frozen(source)


# ---------------------------------------------------------------- the pool of one's own


def test_the_path_of_the_own_pool_means_that_pool_wherever_it_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, other, bot = OpponentPool("own"), OpponentPool("other"), RandomOpponent(VECTOR, FOUR)
    for path in ("own", "./own/", Path("own"), tmp_path / "other" / ".." / "own"):  # it need not be there yet
        assert parse(path, own_pool=own) == Pool(own)
        assert parse_all([path, "greedy"], own_pool=own) == [Pool(own), Bot("greedy")]
        assert parse_all({"a": path, "b": bot}, own_pool=own) == {"a": Pool(own), "b": Ready(bot)}
        mixed = parse(mixture({path: 1, "./other": 3}, per="seat"), own_pool=own)
        assert (mixed.members, mixed.shares, mixed.per) == (
            (Pool(own), Checkpoint(tmp_path / "other")),
            (0.25, 0.75),
            "seat",
        )
        best = parse(frozen(path, deterministic=True), own_pool=own)
        assert (best.source, best.settings.deterministic) == (own, True)
    for word in (own, "greedy", "other", bot, act):
        assert parse(word, own_pool=own) == parse(word)
    assert parse_all(None, own_pool=own) is None
    assert parse("greedy", own_pool=OpponentPool("greedy")) == Bot("greedy")  # which never means a folder
    for words in (other, [other, "greedy"], {"a": other}, mixture({other: 1, own: 1}), frozen(other), OpponentPool("own"),
                  [mixture({frozen(other): 1})]):  # fmt: skip
        with pytest.raises(ValueError, match=r"the only OpponentPool .* may be the learner's own, 'own', .*: give its path"):
            parse_all(words, own_pool=own)


# ---------------------------------------------------------------- mixtures


def test_a_mixture_is_resolved_with_all_else_so_that_nobody_is_there_twice(trained):
    model, path = trained("ppo")
    champions = mixture({path: 1, model: 1, "greedy": 2}, per="seat")
    first, second, greedy, other = seats([champions, champions, "greedy", mixture({str(path): 1, "random": 0})], num_enemies=4)
    assert first is second
    assert isinstance(first, MixtureSource)
    assert isinstance(first, Source)
    assert first.shares == (0.25, 0.25, 0.5)
    assert first.per == "seat"
    assert [type(member) for member in first.members] == [PolicyOpponent, PolicyOpponent, RandomOpponent]
    assert first.members[2] is greedy
    assert other.members == (first.members[0],)  # who has no weight is not even loaded
    assert other.per == "game"
    assert seats(champions)[0] is not first


def test_mixtures_of_frozen_opponents_and_by_agent(trained):
    path = trained("ppo")[1]
    mixed = mixture({path: 1, frozen(path, deterministic=True): 1})
    one, two = seats({"a": mixed, "b": mixed}, agents=["a", "b"], num_enemies=2)
    assert one is two
    assert len({id(member) for member in one.members}) == 2


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: mixture({}), ValueError, r"needs an opponent with a weight above 0, got \{\}"),
        (lambda: mixture({"greedy": 0}), ValueError, "needs an opponent with a weight above 0"),
        (lambda: mixture({"greedy": 1, "random": -1}), ValueError, r"numbers >= 0, got \{'random': -1\}"),
        (lambda: mixture({"greedy": float("nan")}), ValueError, "numbers >= 0"),
        (lambda: mixture({"greedy": float("inf")}), ValueError, "numbers >= 0"),
        (lambda: mixture({"greedy": 10**400}), ValueError, "numbers >= 0"),
        (lambda: mixture({"greedy": "a"}), ValueError, r"weights of a mixture must be numbers >= 0, got \{'greedy': 'a'\}"),
        (lambda: mixture({"greedy": "1"}), ValueError, "numbers >= 0"),
        (
            lambda: mixture({"greedy": None, "random": [1]}),
            ValueError,
            r"numbers >= 0, got \{'greedy': None, 'random': \[1\]\}",
        ),
        (lambda: mixture({"greedy": 1e308, "random": 1e308}), ValueError, "too large to add up: give smaller ones, got .*1e"),
        (lambda: mixture({"greedy": 1}, per="turn"), ValueError, 'per must be "game" or "seat", got \'turn\''),
        (lambda: mixture(["greedy"]), TypeError, "takes a dict of weights by opponent, got list"),
        (lambda: mixture({mixture({"greedy": 1}): 1}), TypeError, "a mixture cannot be part of a mixture"),
        (lambda: seats(mixture({"gready": 1})), ValueError, "unknown bot 'gready'"),
        (lambda: seats({"greedy": 1, "random": 3}), ValueError, r"write mixture\(\{...\}\)"),
    ],
)
def test_mistakes_in_mixtures_are_told(make, error, text):
    with pytest.raises(error, match=text):
        make()
