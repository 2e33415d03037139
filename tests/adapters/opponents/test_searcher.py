"""The searcher, which sees states, through every door: environments, games to the end, tournaments, pools, boards of people."""

import numpy as np
import pytest
from typer.testing import CliRunner

from adapters import make_sb3_env, mixture
from adapters.command.human_seats import seat_humans
from adapters.command.main import app
from adapters.evaluation.evaluate import play_games, record_game
from adapters.evaluation.tournament import tournament
from adapters.opponents.pool import OpponentPool
from adapters.training.imitation import imitate
from adapters.training.recipe import Recipe
from snake_pz import Rules, make_bot, snake_v0
from snake_pz.play.local_match import LocalMatch
from snake_pz.players import States
from snake_pz.replay import Replay
from tests.support.scripted_env import ScriptedEnv

DUEL = {"rules": Rules(width=7, height=7, num_snakes=2), "max_cycles": 60}


def rollout(env, seed, steps=40):
    env.seed(seed)
    rows = [env.reset().copy()]
    for _ in range(steps):
        rows.append(env.step(env.action_masks().argmax(axis=1))[0].copy())
    return np.array(rows)


def test_an_environment_of_learners_with_any_encoding():
    for encoding in ({}, {"observation": "egocentric", "actions": "relative"}):
        env = make_sb3_env("searcher:50", env_kwargs=encoding, num_games=3)
        first = rollout(env, 3)
        np.testing.assert_array_equal(first, rollout(env, 3))
        assert (first != rollout(env, 4)).any()


def test_it_moves_the_snake_of_its_seat():
    """Seats are shuffled; each row is asked for the snake that sits there."""
    env = make_sb3_env("searcher:50", num_games=4, seed=0)
    (bot,) = env.lineup.opponents
    asked = []
    act = bot.act
    bot.act = lambda seen, slots, masks: asked.append((seen.games.copy(), seen.seats.copy(), slots)) or act(seen, slots, masks)
    env.reset()
    env.step(env.action_masks().argmax(axis=1))
    ((games, snakes, slots),) = asked
    names = [env.game_batch.agents(game)[slot % 4] for game, slot in zip(games.tolist(), slots.tolist(), strict=True)]
    assert games.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert names == [f"snake_{snake}" for snake in snakes]
    assert snakes.tolist() != [1, 2, 3] * 4


def test_games_to_the_end_repeat_by_seed():
    results = [play_games(["searcher:100", "greedy"], games=12, seed=seed, env_kwargs=DUEL) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(results[0].ranks, results[1].ranks)
    np.testing.assert_array_equal(results[0].turns, results[1].turns)
    assert (results[0].turns != results[2].turns).any()
    assert results[0].win_rates[0] > 0.8
    assert set(record_game(["searcher:50", "searcher:5"], env_kwargs=DUEL).names) == {"searcher:50", "searcher:5"}


def test_tournaments_mixtures_and_pools(tmp_path):
    pool = OpponentPool(tmp_path / "pool")
    pool.add_bot("searcher:20")
    pool.add_bot("greedy")
    standings = tournament([pool, "searcher:200"], games=24, env_kwargs=DUEL)
    assert {standing.name for standing in standings} == {"searcher:20", "greedy", "searcher:200"}
    assert standings["greedy"].win_rate < standings["searcher:200"].win_rate
    assert OpponentPool(tmp_path / "pool").members[0].name == "searcher:20"
    env = make_sb3_env(mixture({OpponentPool(tmp_path / "pool"): 1, "searcher": 1}), num_games=4, env_kwargs=DUEL, seed=0)
    env.reset()
    env.step(env.action_masks().argmax(axis=1))
    assert {opponent.name for opponent in env.lineup.opponents} >= {"searcher"}


def test_a_tournament_limits_the_time_for_a_move(tmp_path):
    """A searcher without a budget takes the time, also if a pool draws it; one with a budget and other bots do not."""
    pool = OpponentPool(tmp_path / "pool")
    pool.add_bot("searcher")
    standings = tournament([pool, "searcher:1", "greedy"], games=6, env_kwargs=DUEL, move_time=0.004)
    assert standings["searcher"].move_seconds > 0.001
    assert standings["searcher"].move_seconds > 3 * standings["searcher:1"].move_seconds
    assert all(0 <= standing.late <= 1 for standing in standings)
    assert tournament(["searcher:1", "greedy"], games=2, env_kwargs=DUEL)["greedy"].late is None


def test_the_command_limits_the_time_for_a_move(tmp_path):
    board = ["--snakes", "2", "--width", "7", "--height", "7"]
    words = ["tournament", "searcher", "random", "--games", "4", *board, "--move-time"]
    shown = CliRunner().invoke(app, [*words, "2ms"])
    assert shown.exit_code == 0
    assert {"ms", "late"} <= set(shown.output.split())
    refused = CliRunner().invoke(app, [*words, "2"])
    assert refused.exit_code == 2
    assert "such as 5ms or 0.5s, got '2'" in refused.output


def test_watching_a_game_among_searchers(tmp_path):
    board = ["--width", "7", "--height", "7", "--max-cycles", "10", "--seed", "1"]
    words = ["watch", "--players", "searcher:5", "greedy", *board, "--record"]
    assert CliRunner().invoke(app, [*words, str(tmp_path / "game.jsonl")]).exit_code == 0
    assert Replay.load(tmp_path / "game.jsonl").names == ("searcher:5", "greedy")


def test_people_play_against_it():
    rules = DUEL["rules"]
    match = LocalMatch(rules, seat_humans(rules, 1, ["searcher:100"]))
    match.start(0)
    match.decide([1])
    match.turn()
    assert match.names == ["you", "searcher:100"]


def test_it_teaches():
    from stable_baselines3 import PPO

    env = make_sb3_env("random", num_games=2, env_kwargs=DUEL)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, policy_kwargs={"net_arch": [8]}, device="cpu")
    imitate(model, make_bot("searcher:20", DUEL["rules"]), 64)
    assert Recipe(teacher="searcher:20").teacher == "searcher:20"


def test_a_loop_over_the_pettingzoo_environment():
    env = snake_v0.parallel_env(**DUEL)
    bot = make_bot("searcher:100", env.rules)
    env.reset(seed=1)
    while env.agents:
        snakes = np.array([env.possible_agents.index(agent) for agent in env.agents])
        moves = bot.act(States(env.get_state(), np.zeros(len(snakes), np.intp), snakes))
        env.step(dict(zip(env.agents, moves.tolist(), strict=True)))


@pytest.mark.parametrize("kwargs", [{"backend": "supersuit"}, {"num_workers": 1}])
def test_other_backends_show_no_states(kwargs):
    with pytest.raises(ValueError, match="'searcher' cannot play in these games: it sees whole states"):
        make_sb3_env("searcher", num_games=1, **kwargs)


def test_other_environments_have_no_searcher():
    with pytest.raises(ValueError, match="the only bot that plays any environment is 'random', got 'searcher:5'"):
        make_sb3_env("searcher:5", env=ScriptedEnv)


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "least"), [(Rules.classic, 0.93), (Rules.battlesnake, 0.93)])
def test_it_beats_the_strongest_of_the_others(rules, least):
    """Measured: 0.99 in duels."""
    results = play_games(["searcher:300", "territorial"], games=60, env_kwargs={"rules": rules(num_snakes=2)})
    assert results.win_rates[0] >= least
