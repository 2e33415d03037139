"""Mixtures: who sits where is drawn when a game restarts, from the line-up's own stream, and is told when it ends."""

import numpy as np
import pytest
from stable_baselines3 import PPO

from adapters import frozen, make_sb3_env, mixture
from adapters.evaluation.evaluate import play_games
from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.mixture_source import MixtureSource
from tests.support.array_games import Games, Scribe, play
from tests.support.scripted_env import SCRIPTS, ScriptedEnv

ALL = np.arange(3000)


def lineup(entries, num_games=3000, seed=0):
    made = OpponentLineup(entries, games := Games(num_games))
    made.games = games
    made.seed(np.random.SeedSequence(seed))
    made.restart(np.arange(num_games))
    return made


def act(made):
    return play(made, made.games)


def mixed(*members, shares=(0.25, 0.75), per="game"):
    return MixtureSource(members, shares, per)


def test_per_game_one_opponent_takes_all_seats_of_the_mixture():
    one = mixed(Scribe(1), Scribe(2))
    table = act(lineup([one] * 3))[:, 1:] - 1000
    assert (table == table[:, :1]).all()
    assert (table[:, 0] == 2).mean() == pytest.approx(0.75, abs=0.03)


def test_per_seat_every_seat_draws_for_itself():
    one = mixed(Scribe(1), Scribe(2), per="seat")
    table = act(lineup([one] * 3))[:, 1:] - 1000
    np.testing.assert_allclose((table == 2).mean(axis=0), 0.75, atol=0.03)
    pairs = (table[:, 0] == 2) & (table[:, 1] == 2)
    assert pairs.mean() == pytest.approx(0.75**2, abs=0.03)


def test_mixtures_and_single_opponents_side_by_side():
    fixed, a, b = Scribe(1), Scribe(2), Scribe(3)
    together = mixed(a, b, shares=(0.5, 0.5))
    table = act(lineup([together, fixed, together]))[:, 1:] - 1000
    assert (table[:, 1] == 1).all()
    assert (table[:, 0] == table[:, 2]).all()
    assert {*table[:, 0].tolist()} == {2, 3}
    apart = [mixed(a, b, shares=(0.5, 0.5)), fixed, mixed(a, b, shares=(0.5, 0.5))]
    table = act(lineup(apart))[:, 1:]
    assert (table[:, 0] == table[:, 2]).mean() == pytest.approx(0.5, abs=0.03)


def test_each_opponent_acts_once_for_all_games_and_seats():
    a, b, c = Scribe(1), Scribe(2), Scribe(3)
    made = lineup([mixed(a, b, per="seat"), c, mixed(c, a, per="seat")], num_games=50)
    act(made)
    assert [len(scribe.calls) for scribe in (a, b, c)] == [1, 1, 1]
    assert sorted(slot for scribe in (a, b, c) for slot in scribe.calls[0][1]) == [s for s in range(200) if s % 4]


def test_draws_change_at_restart_and_only_then():
    a, b = Scribe(1), Scribe(2)
    made = lineup([mixed(a, b, per="seat")] * 3, num_games=200)
    before = act(made)
    np.testing.assert_array_equal(act(made), before)
    a.resets.clear()
    b.resets.clear()
    made.restart(np.arange(50))
    after = act(made)
    np.testing.assert_array_equal(after[50:], before[50:])
    assert (after[:50] != before[:50]).any(axis=1).mean() > 0.5
    where = {1: a, 2: b}
    for number, scribe in where.items():  # everyone in a restarted game forgets, who came and who stayed
        assert scribe.resets == [np.flatnonzero((after == 1000 + number) & (np.arange(200) < 50)[:, None]).tolist()]


def test_draws_follow_the_seed():
    def table(seed):
        made = lineup([mixed(Scribe(1), Scribe(2), per="seat")] * 3, num_games=30, seed=seed)
        made.restart(np.array([3, 4, 5]))
        return act(made)

    np.testing.assert_array_equal(table(1), table(1))
    assert not np.array_equal(table(1), table(2))


def test_a_swap_to_a_mixture_waits_for_each_game_or_comes_now():
    old, a, b = Scribe(9), Scribe(1), Scribe(2)
    made = lineup([old] * 3, num_games=100)
    made.set_opponents([mixed(a, b)] * 3)
    assert (act(made)[:, 1:] == 1009).all()
    made.restart(np.arange(40))
    table = act(made)[:, 1:]
    assert {*table[:40].ravel().tolist()} == {1001, 1002}
    assert (table[40:] == 1009).all()
    made.set_opponents([mixed(a, b)] * 3, "now")
    table = act(made)[:, 1:]
    assert {*table.ravel().tolist()} == {1001, 1002}
    assert {opponent.number for opponent in made.opponents} == {1, 2}


def test_members_that_nobody_drew_are_kept_and_seeded():
    common, rare = Scribe(1), Scribe(2)
    made = lineup([mixed(common, rare, shares=(1 - 1e-12, 1e-12))] * 3, num_games=5)
    assert len(rare.seeds) == 1
    made.restart(np.arange(5))
    assert len(made.opponents) == 2
    made.set_opponents([common] * 3)
    assert len(made.opponents) == 1


# ---------------------------------------------------------------- through the front door


def finished(env, steps=60):
    """The infos of learners' last steps."""
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        sitting = [env.lineup.names(game) for game in range(env.num_envs)]
        _, _, dones, infos = env.step(rng.integers(env.action_space.n, size=env.num_envs))
        for game in np.flatnonzero(dones):
            assert tuple(infos[game]["opponents"].values()) == sitting[game]
            yield infos[game]


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_the_end_of_a_game_says_who_sat_where(backend):
    rules = {"width": 7, "height": 7, "max_cycles": 30}
    opponents = {"snake_0": "greedy", "snake_1": mixture({"random": 1, "survivor": 1}), "snake_3": "random"}
    env = make_sb3_env(opponents, num_games=4, learners=["snake_2"], backend=backend, env_kwargs=rules, seed=0)
    seen = list(finished(env))
    for info in seen:
        assert info["agent"] == "snake_2"
        assert info["opponents"].keys() == opponents.keys()
        assert (info["opponents"]["snake_0"], info["opponents"]["snake_3"]) == ("greedy", "random")
        if backend == "native":
            assert info["placements"].keys() == {"snake_2", *opponents}
            assert info["placements"]["snake_2"] == info["rank"] or info["rank"] is None
    assert {info["opponents"]["snake_1"] for info in seen} == {"random", "survivor"}


@pytest.mark.parametrize("backend", ["native", "supersuit"])
def test_it_speaks_of_the_game_that_ended_though_seats_are_shuffled(backend):
    bots = ["greedy", "random", "survivor"]
    env = make_sb3_env(bots, num_games=3, backend=backend, env_kwargs={"width": 7, "height": 7, "max_cycles": 20}, seed=3)
    env.reset()
    seats = [env.game_batch.agents(game) for game in range(3)]
    ended = 0
    for _ in range(60):
        _, _, dones, infos = env.step(np.zeros(3, int))
        assert not any("opponents" in infos[game] or "agent" in infos[game] for game in np.flatnonzero(~dones))
        for game in np.flatnonzero(dones):
            assert infos[game]["agent"] == seats[game][0]
            assert infos[game]["opponents"] == dict(zip(seats[game][1:], bots, strict=True))
            seats[game] = env.game_batch.agents(game)
            ended += 1
    assert ended > 5
    assert len(set(seats)) > 1


def test_both_backends_draw_alike():
    rules = {"width": 7, "height": 7, "max_cycles": 30}
    spec = mixture({"random": 1, "greedy": 2, "survivor": 1}, per="seat")

    def told(backend):
        env = make_sb3_env(spec, num_games=3, backend=backend, env_kwargs=rules, seed=5)
        return [(info["opponents"], info["episode"]["l"]) for info in finished(env)]

    assert told("native") == told("supersuit")


def test_checkpoints_play_in_a_mixture_with_one_forward_each(tmp_path):
    env = make_sb3_env("random", num_games=2)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [8]}, device="cpu")
    model.save(tmp_path / "gen3.zip")
    best = frozen(tmp_path / "gen3.zip", deterministic=True, device="cpu", name="best")
    spec = mixture({"greedy": 1, best: 2, tmp_path / "gen3.zip": 1}, per="seat")
    env = make_sb3_env(spec, num_games=8, device="cpu", seed=0)
    env.reset()
    calls = []
    for opponent in env.lineup.opponents:
        act = opponent.act
        opponent.act = lambda *args, act=act, name=opponent.name: calls.append(name) or act(*args)
    env.step(np.zeros(8, int))
    assert sorted(calls) == sorted(["greedy", "best", str(tmp_path / "gen3.zip")])
    env.set_opponent(["greedy", "survivor", mixture({"random": 1})])
    names = [tuple(info["opponents"].values()) for info in finished(env, 40)]
    assert ("greedy", "survivor", "random") in names


def test_a_mixture_plays_any_environment():
    env = make_sb3_env(
        mixture({"random": 1, lambda observations: np.ones(len(observations), int): 1}),
        env=lambda: ScriptedEnv(SCRIPTS["one by one"]),
        num_games=3,
        seed=0,
    )
    names = {tuple(info["opponents"].values()) for info in finished(env)}
    assert names == {("random",) * 3, ("<lambda>",) * 3}


def test_a_mixture_may_be_measured():
    results = play_games(["greedy", "random", "random", mixture({"survivor": 1, "random": 1})], games=20, seed=0)
    assert results.ranks.shape == (20, 4)
