"""Moves for games that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import PPO

from adapters import export_onnx, frozen, make_sb3_env, mixture
from adapters.opponents.resolver import resolver_for_rules
from adapters.serving import moves
from adapters.serving.moves import MoveMaker, best_move
from snake_pz import Rules, SnakeEngine, make_bot
from snake_pz.core.views import EngineGames
from snake_pz.formats import battlesnake, hungry_geese
from snake_pz.players import SeatedPlayer

BATTLESNAKE = Rules.battlesnake(num_snakes=3)
GEESE = Rules.hungry_geese()


def engine(rules: Rules, games: int = 1, seed: int = 0) -> SnakeEngine:
    started = SnakeEngine(rules, games, seed=seed)
    started.reset()
    return started


def request(games: SnakeEngine, snake: int, row: int = 0) -> dict[str, Any]:
    return battlesnake.request(games.rules, games.state, row, snake, game_id=f"game {row}")


@pytest.mark.parametrize("rules", [BATTLESNAKE, GEESE], ids=["battlesnake", "geese"])
def test_a_whole_game_is_played_as_at_home(rules: Rules) -> None:
    """Survivor moves by request as in the engine, but for the lots that it draws among equally good moves."""
    games, makers = engine(rules, seed=3), [MoveMaker("survivor") for _ in range(rules.num_snakes)]
    turns = 0
    while not games.state.over[0] and turns < 60:
        masks, actions = games.action_masks("absolute")[0], np.zeros((1, rules.num_snakes), np.int64)
        for snake in np.flatnonzero(games.state.alive[0]).tolist():
            if rules is GEESE:
                move = makers[snake].move(hungry_geese.observation(games.state, 0, snake))
                actions[0, snake] = hungry_geese.MOVES.index(move)
            else:
                actions[0, snake] = battlesnake.MOVES.index(makers[snake].move(request(games, snake)))
            assert masks[snake, actions[0, snake]], "survivor makes no move that surely kills"
        games.step(actions)
        turns += 1
    assert turns > 20


class Remembers:
    """A player that tells by its moves how often its slot was asked since its game began."""

    name = "remembers"
    uses_masks = False

    def __init__(self) -> None:
        bot = make_bot("greedy", BATTLESNAKE)
        self.observation_space, self.action_space = bot.observation_space, bot.action_space
        self.counts: dict[int, int] = {}
        self.batches: list[int] = []

    def act(self, observations: Any, slots: Any, action_masks: Any) -> Any:
        self.batches.append(len(slots))
        for slot in slots.tolist():
            self.counts[slot] = self.counts.get(slot, -1) + 1
        return np.array([self.counts[slot] % 4 for slot in slots.tolist()])

    def reset(self, slots: Any) -> None:
        for slot in slots.tolist():
            self.counts.pop(slot, None)

    def seed(self, seed: int) -> None:
        """It draws nothing."""


def test_games_and_snakes_keep_their_slots_and_are_answered_in_one_batch() -> None:
    player, games = Remembers(), engine(BATTLESNAKE, 5)
    maker = MoveMaker(player)
    asked = [request(games, snake, row) for row in range(5) for snake in (0, 2)]
    for turn in range(6):
        expected = battlesnake.MOVES[turn % 4]
        assert maker.moves(asked) == [expected] * 10
        asked = asked[::-1]
    assert player.batches == [10] * 6
    maker.end(asked[0])
    assert maker.move(asked[0]) == "up", "a game that ended is begun anew"
    assert maker.move(asked[1]) == battlesnake.MOVES[6 % 4]


def test_more_games_than_are_remembered_are_played_all_the_same() -> None:
    games = engine(BATTLESNAKE, 4)
    maker = MoveMaker(Remembers(), most_games=2)
    for row in (0, 1, 2):
        assert maker.move(request(games, 0, row)) == "up"
    assert maker.move(request(games, 0, 2)) == "right"
    assert maker.move(request(games, 0, 0)) == "up", "forgotten"


def test_snakes_that_are_out_keep_their_place() -> None:
    games, maker = engine(BATTLESNAKE), MoveMaker("greedy")
    first = request(games, 2)
    maker.move(first)
    later = request(games, 2)
    later["board"]["snakes"] = later["board"]["snakes"][1:]
    later["turn"] = 1
    assert maker.move(later) in battlesnake.MOVES


def test_geese_of_one_cell_do_not_turn_back() -> None:
    """The maker remembers the step before, which alone shows the heading; a new game has none."""
    observation = {"geese": [[38], [0]], "food": [37], "step": 5, "index": 0}  # food on the left
    assert MoveMaker("greedy").move(observation) == "WEST"
    maker = MoveMaker("greedy")
    maker.move(observation | {"geese": [[37], [0]], "step": 4})
    assert maker.move(observation) != "WEST", "it came from there"
    maker.move(observation | {"step": 0})
    assert maker.move(observation | {"step": 0}) == "WEST"


def test_a_checkpoint_of_any_encoding_makes_the_move_that_it_makes_at_home() -> None:
    env = make_sb3_env("random", num_games=1, env_kwargs={"rules": BATTLESNAKE, "observation": "single"}, seed=0)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    env.close()
    games = engine(BATTLESNAKE)
    player: Any = resolver_for_rules(BATTLESNAKE, deterministic=True).make(frozen(model))
    expected = SeatedPlayer(player, EngineGames(games)).act(np.arange(3))
    moves = [best_move(model.policy, request(games, snake)) for snake in range(3)]
    assert [battlesnake.MOVES.index(move) for move in moves] == expected.tolist()


def test_an_onnx_file_moves_as_its_checkpoint_does(tmp_path: Path) -> None:
    env = make_sb3_env("random", num_games=1, env_kwargs={"rules": GEESE, "observation": "single"}, seed=0)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    env.close()
    export_onnx(model, tmp_path / "goose.onnx")
    games = engine(GEESE, 6)
    observations = [hungry_geese.observation(games.state, game, game % 4) for game in range(6)]
    moves = [MoveMaker(str(tmp_path / "goose.onnx"), deterministic=True).move(seen) for seen in observations]
    assert moves == [MoveMaker(frozen(model), deterministic=True).move(seen) for seen in observations]


def test_what_is_no_request_is_refused() -> None:
    games = engine(BATTLESNAKE)
    with pytest.raises(ValueError, match=r"expected a request of Battlesnake's API or .*, got 'up'"):
        best_move("greedy", "up")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"game.id is missing"):
        best_move("greedy", {})
    with pytest.raises(ValueError, match=r"you.id must be one of board.snakes, got 'nobody'"):
        best_move("greedy", request(games, 0) | {"you": {"id": "nobody"}})
    with pytest.raises(ValueError, match=r"a snake that is out has no move"):
        best_move("greedy", {"geese": [[], [3]], "food": [], "step": 1, "index": 0})
    with pytest.raises(ValueError, match=r"index must be a whole number from 0 to 1, got 2"):
        best_move("greedy", {"geese": [[5], [3]], "food": [], "step": 1, "index": 2})


def test_a_mixture_is_not_one_player() -> None:
    with pytest.raises(ValueError, match="a pool or mixture is not one player"):
        best_move(mixture({"greedy": 1, "random": 1}), request(engine(BATTLESNAKE), 0))


def test_players_of_rules_that_come_again_are_kept_and_those_of_many_rules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_UNUSED_TABLES", 1)
    monkeypatch.setattr(moves, "_MOST_TABLES", 3)
    made: list[Rules] = []
    real = MoveMaker._player

    def player(self: MoveMaker, rules: Rules) -> Any:
        made.append(rules)
        return real(self, rules)

    monkeypatch.setattr(MoveMaker, "_player", player)
    maker, boards = MoveMaker("greedy"), [BATTLESNAKE.replace(width=side) for side in (7, 8, 9, 10)]
    asked = [request(engine(rules), 0) | {"game": request(engine(rules), 0)["game"] | {"id": str(rules)}} for rules in boards]
    for one in (asked[0], asked[0], asked[1], asked[0]):
        maker.begin(one)
        maker.end(one)
    assert made == boards[:2]
    for one in asked[:3]:
        maker.begin(one)
    with pytest.raises(ValueError, match="may have 3 sets of rules at most"):
        maker.begin(asked[3])
    maker.end(asked[1])
    maker.end(asked[2])
    maker.begin(asked[3])
    assert maker.num_games == 2


def test_idle_games_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(moves.time, "monotonic", lambda: now[0])
    games, maker = engine(BATTLESNAKE, 2), MoveMaker(Remembers())
    maker.move(request(games, 0, 0))
    now[0] = 50.0
    maker.move(request(games, 0, 1))
    maker.forget_idle(40)
    assert maker.num_games == 1
    assert maker.move(request(games, 0, 1)) == "right"


def test_a_player_that_is_prepared_begins_its_first_game_afresh() -> None:
    player = Remembers()
    maker = MoveMaker(player)
    maker.prepare(BATTLESNAKE)
    assert (player.batches, maker.num_games) == ([1], 0)
    maker.begin(request(engine(BATTLESNAKE), 0))
    assert maker.move(request(engine(BATTLESNAKE), 0)) == "up"
