"""Lineup on games that are only arrays: who acts for which rows, swaps, restarts, seeds."""

import gc
import weakref

import numpy as np
import pytest
from gymnasium import spaces

from adapters.opponents.lineup import OpponentLineup
from adapters.opponents.mixture_source import MixtureSource
from tests.support.array_games import Games, MaskedScribe, Scribe, play


def test_one_opponent_everywhere_is_one_call():
    games, scribe = Games(), Scribe(5)
    actions = play(OpponentLineup([scribe] * 3, games), games)
    assert len(scribe.calls) == 1
    observations, slots, _ = scribe.calls[0]
    assert observations.shape == (12, 2)
    np.testing.assert_array_equal(slots, observations @ [4, 1])  # slot = game * seats + seat
    np.testing.assert_array_equal(actions[:, 0], -7)
    np.testing.assert_array_equal(actions[:, 1:], 1005)


def test_the_games_observations_are_not_handed_out_to_be_written_on():
    games = Games()
    before = games.array.copy()
    play(OpponentLineup([Scribe(5)] * 3, games), games)
    np.testing.assert_array_equal(games.array, before)


def test_dict_observations_are_dicts_of_rows():
    games, a, b = Games(), Scribe(1), Scribe(2)
    numbers = games.array
    games.array = {"where": numbers, "what": numbers[..., :1] * 10}
    a.act = lambda observations, slots, masks: a.calls.append(observations) or np.full(len(slots), 1)
    b.act = lambda observations, slots, masks: np.full(len(slots), 2)
    actions = play(OpponentLineup([a, b, a], games), games)
    np.testing.assert_array_equal(a.calls[0]["where"], [[g, s] for g in range(4) for s in (1, 3)])
    np.testing.assert_array_equal(a.calls[0]["what"], [[10 * g] for g in range(4) for s in (1, 3)])
    np.testing.assert_array_equal(actions[:, 1:], np.tile([1001, 1002, 1001], (4, 1)))


def test_distinct_opponents_act_once_each_on_their_own_seats():
    games, a, b = Games(), Scribe(1), Scribe(2)
    actions = play(OpponentLineup([a, b, a], games), games)
    assert len(a.calls) == len(b.calls) == 1
    assert a.calls[0][1].dtype == np.intp
    np.testing.assert_array_equal(actions, np.tile([-7, 1001, 1002, 1001], (4, 1)))


def test_seats_that_are_not_active_are_skipped_and_left_as_they_are():
    games, a, b = Games(), Scribe(1), Scribe(2)
    active = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]], bool)
    actions = play(OpponentLineup([a, b, a], games), games, active)
    np.testing.assert_array_equal(a.calls[0][1], [1, 3, 9])
    assert b.calls == []  # nobody to act for: no call at all
    np.testing.assert_array_equal(actions != -7, active & [False, True, True, True])


def test_actions_are_decoded_by_the_view_with_their_games_and_seats():
    games = Games(num_games=2)
    lineup = OpponentLineup([Scribe(1)] * 3, games)
    play(lineup, games)
    ((decoded_games, decoded_seats),) = games.decoded
    np.testing.assert_array_equal(decoded_games, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(decoded_seats, [1, 2, 3, 1, 2, 3])


def test_actions_with_a_shape_are_written_whole():
    class Moves(Scribe):
        def act(self, observations, slots, action_masks):
            return np.stack([slots, -slots], axis=1)

    games, moves = Games(num_games=2, seats=2), Moves(0)
    lineup = OpponentLineup([moves], games)
    moves.action_space = spaces.MultiDiscrete([4, 4])
    actions = np.zeros((2, 2, 2), int)
    lineup.act(actions, np.ones((2, 2), bool))
    np.testing.assert_array_equal(actions, [[[0, 0], [1001, 999]], [[0, 0], [1003, 997]]])


WRONG = [0, np.zeros(1), np.zeros((1, 1), int), np.array([0.5]), np.array([-1]), np.array([4]), None]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_an_opponent_returns_is_checked_and_it_is_named(wrong):
    class Wrong(Scribe):
        def act(self, observations, slots, action_masks):
            return wrong

    games, opponent = Games(num_games=1, seats=2), Wrong(0)
    lineup = OpponentLineup([opponent], games)
    opponent.name, opponent.action_space = "the wrong one", spaces.Discrete(4)
    with pytest.raises(ValueError, match="player 'the wrong one' must return"):
        lineup.act(np.zeros((1, 2), int), np.ones((1, 2), bool))


def test_integers_are_counted_from_the_start_of_the_space():
    class Above(Scribe):
        def act(self, observations, slots, action_masks):
            return np.array([self.number])

    games, opponent = Games(num_games=1, seats=2), Above(12)
    lineup = OpponentLineup([opponent], games)
    opponent.action_space = spaces.Discrete(3, start=10)
    assert play(lineup, games).tolist() == [[-7, 1012]]
    opponent.number = 2
    with pytest.raises(ValueError, match=r"must return integers from 10 to 12, got \[2\]"):
        play(lineup, games)


def test_the_seconds_that_opponents_take_are_counted(monkeypatch):
    games, scribe = Games(), Scribe(1)
    lineup = OpponentLineup([scribe] * 3, games)
    assert lineup.seconds == 0
    clock = iter([10.0, 10.1, 10.4, 10.5, 20.0, 20.1, 21.1, 22.0])
    monkeypatch.setattr("adapters.opponents.lineup.time.perf_counter", lambda: next(clock))
    play(lineup, games)
    assert np.isnan(lineup.took).all()  # the first call may compile
    play(lineup, games)
    assert lineup.seconds == 2.5
    moved = np.isfinite(lineup.took)
    assert lineup.took[moved].sum() == pytest.approx(1.0)
    assert moved[:, 1:].all()


def test_masks_go_to_opponents_that_use_them():
    games, plain, masked = Games(), Scribe(1), MaskedScribe(2)
    games.masks[2, 2] = 7
    play(OpponentLineup([plain, masked, plain], games), games)
    assert plain.calls[0][2] is None
    np.testing.assert_array_equal(masked.calls[0][2], [[1, 0, 1], [1, 0, 1], [7, 7, 7], [1, 0, 1]])
    games.masks = None
    play(OpponentLineup([plain, masked, plain], games), games)
    assert masked.calls[1][2] is None


def test_restart_resets_the_opponents_of_those_games_only():
    games, a, b = Games(), Scribe(1), Scribe(2)
    lineup = OpponentLineup([a, b, a], games)
    lineup.restart(np.array([], np.intp))
    lineup.restart(np.array([1, 3]))
    assert a.resets == [[5, 7, 13, 15]]
    assert b.resets == [[6, 14]]


def test_a_swap_at_restart_waits_for_each_game():
    games, old, new = Games(num_games=3), Scribe(1), Scribe(2)
    lineup = OpponentLineup([old] * 3, games)
    lineup.set_opponents([new, old, new], "restart")
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], 1001)
    assert new.resets == []
    lineup.restart(np.array([1]))
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], [[1001] * 3, [1002, 1001, 1002], [1001] * 3])
    assert lineup.names(0) == ("scribe1",) * 3
    assert lineup.names(1) == ("scribe2", "scribe1", "scribe2")
    assert new.resets == [[5, 7]]
    assert old.resets == [[6]]
    lineup.restart(np.array([0, 1, 2]))
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], np.tile([1002, 1001, 1002], (3, 1)))


def test_a_swap_now_changes_running_games_and_resets_only_newcomers():
    games, old, new = Games(num_games=2), Scribe(1), Scribe(2)
    lineup = OpponentLineup([old] * 3, games)
    lineup.set_opponents([new, old, new], "now")
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], np.tile([1002, 1001, 1002], (2, 1)))
    assert new.resets == [[1, 3, 5, 7]]
    assert old.resets == []


def test_a_second_swap_before_the_restart_replaces_the_first():
    games, first, second, third = Games(num_games=1), Scribe(1), Scribe(2), Scribe(3)
    lineup = OpponentLineup([first] * 3, games)
    lineup.set_opponents([second] * 3)
    lineup.set_opponents([third] * 3)
    lineup.restart(np.array([0]))
    np.testing.assert_array_equal(play(lineup, games)[0, 1:], 1003)
    assert second.calls == []


def test_opponents_that_sit_nowhere_are_let_go():
    games = Games(num_games=2)
    old = Scribe(1)
    lineup = OpponentLineup([old] * 3, games)
    gone = weakref.ref(old)
    del old
    lineup.set_opponents([Scribe(2)] * 3, "restart")
    lineup.restart(np.array([0]))
    gc.collect()
    assert gone() is not None  # still plays in game 1
    lineup.restart(np.array([1]))
    gc.collect()
    assert gone() is None


def test_a_bad_swap_changes_nothing():
    games, old = Games(), Scribe(1)
    lineup = OpponentLineup([old] * 3, games)
    alien = Scribe(2, "alien.zip")
    alien.observation_space = spaces.Box(0, 1, (9,), np.float32)
    with pytest.raises(ValueError, match=r"player 'alien.zip' cannot play in these games: these games show Box"):
        lineup.set_opponents([Scribe(3), Scribe(3), alien], "now")
    with pytest.raises(ValueError, match="expected 3 opponents, one per enemy seat, got 2"):
        lineup.set_opponents([Scribe(3)] * 2)
    with pytest.raises(ValueError, match="when must be"):
        lineup.set_opponents([Scribe(3)] * 3, "later")
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], 1001)
    assert len(lineup.opponents) == 1


def test_seeds_are_fixed_by_the_sequence_and_reach_later_opponents():
    def seeds(entropy):
        games, a, b, c = Games(), Scribe(1), Scribe(2), Scribe(3)
        lineup = OpponentLineup([a, b, a], games)
        assert a.seeds == []  # fresh entropy until somebody asks
        lineup.seed(np.random.SeedSequence(entropy))
        lineup.set_opponents([c, b, c])
        assert len(a.seeds) == len(b.seeds) == len(c.seeds) == 1
        return a.seeds + b.seeds + c.seeds

    first = seeds(1)
    assert first == seeds(1)
    assert len({*first}) == 3
    assert not {*first} & {*seeds(2)}


def test_a_seed_depends_on_who_plays_next_and_not_on_who_leaves():
    fresh = Scribe(2)
    OpponentLineup([fresh] * 3, Games()).seed(np.random.SeedSequence(1))
    games, old, new = Games(), Scribe(1), Scribe(2)
    lineup = OpponentLineup([old] * 3, games)
    lineup.set_opponents([new] * 3, "restart")
    lineup.seed(np.random.SeedSequence(1))
    assert new.seeds == fresh.seeds
    assert len(old.seeds) == 1


class Deck:
    """A source that deals its cards one after the other and notes what it is told."""

    def __init__(self, *cards):
        self.cards, self.dealt, self.told, self.forgotten = cards, 0, [], 0

    def ready(self):
        return ()

    def draw(self, games, seats, rng, seated):
        self.told.append((games, seats, [opponent.number for opponent in seated]))
        which = (self.dealt + np.arange(games)) % len(self.cards)
        self.dealt += games
        return self.cards, np.repeat(which[:, None], seats, axis=1)

    def forget(self):
        self.forgotten, self.dealt = self.forgotten + 1, 0


def test_a_source_is_told_who_sits_where_games_go_on():
    a, b, c, fixed = Scribe(1), Scribe(2), Scribe(3), Scribe(9)
    games, deck, other = Games(num_games=2), Deck(a, b, c), Deck(b)
    lineup = OpponentLineup([deck, fixed, deck], games)
    assert deck.told == [(2, 2, [])]  # both its seats together, in games of which none goes on
    assert lineup.names(0) == ("scribe1", "scribe9", "scribe1")
    lineup.restart(np.array([0]))
    assert deck.told[1:] == [(1, 2, [9, 2])]
    assert [lineup.names(game)[0] for game in range(2)] == ["scribe3", "scribe2"]
    assert a not in lineup.opponents  # it sits nowhere and the deck does not have it ready
    np.testing.assert_array_equal(play(lineup, games)[:, 1:], [[1003, 1009, 1003], [1002, 1009, 1002]])
    lineup.set_opponents([deck, other, fixed])
    lineup.restart(np.array([1]))
    assert other.told == [(1, 1, [9, 3, 1])]  # whom the deck has dealt for this very game, too
    assert lineup.names(1) == ("scribe1", "scribe2", "scribe9")


def test_sources_in_a_mixture_are_told_of_each_other():
    one, other = Deck(Scribe(1)), Deck(Scribe(2))
    OpponentLineup([MixtureSource((one, other), (0.5, 0.5), "seat")] * 3, Games(num_games=50))
    assert one.told[0][2] == []
    assert other.told[0][2] == [1]


def test_who_comes_back_starts_anew_and_who_stays_does_not():
    a, b = Scribe(1), Scribe(2)
    lineup = OpponentLineup([Deck(a, b)] * 3, Games(num_games=2))
    lineup.seed(np.random.SeedSequence(1))
    lineup.restart(np.arange(2))
    a.seeds.clear()
    b.seeds.clear()
    lineup.restart(np.array([1]))  # a comes and sits in game 0 already; b leaves
    assert (a.seeds, b.seeds) == ([], [])
    lineup.restart(np.array([1]))
    assert len(b.seeds) == 1


def test_a_source_that_comes_up_with_a_misfit_is_told_so():
    alien = Scribe(2, "alien.zip")
    alien.observation_space = spaces.Box(0, 1, (9,), np.float32)
    lineup = OpponentLineup([Scribe(1)] * 3, Games())
    with pytest.raises(ValueError, match=r"player 'alien.zip' cannot play in these games"):
        lineup.set_opponents([Deck(alien)] * 3, "now")
    assert lineup.names(0) == ("scribe1",) * 3
    lineup.restart(np.arange(4))
    assert lineup.names(0) == ("scribe1",) * 3


def history(lineup, games, swaps):
    """Much that happened before the seeding."""
    lineup.seed(np.random.SeedSequence(99))
    for number, swap in enumerate(swaps):
        lineup.set_opponents(swap)
        lineup.restart(np.arange(number % games.num_games))
        play(lineup, games)


@pytest.mark.parametrize("kind", ["fixed", "mixture", "source", "source in a mixture"])
def test_after_seeding_nothing_depends_on_what_was_before(kind):
    def entries(scribes):
        a, b, c, d = scribes
        mixed, deck = MixtureSource((a, b), (0.3, 0.7), "seat"), Deck(c, a, b)
        return {
            "fixed": [a, b, a],
            "mixture": [mixed, c, mixed],
            "source": [deck, deck, d],
            "source in a mixture": [mixed, MixtureSource((deck, d), (0.5, 0.5), "game"), d],
        }[kind]

    def continued(used):
        scribes, games = [Scribe(number) for number in range(1, 5)], Games(num_games=5)
        lineup = OpponentLineup(entries(scribes), games)
        if used:
            strangers = [Scribe(7), Scribe(8)]
            history(lineup, games, [[strangers[0]] * 3, entries(scribes), [scribes[3], *strangers], entries(scribes)])
        lineup.seed(np.random.SeedSequence(5))
        lineup.restart(np.arange(5))
        seen = []
        for game in [0, 3, 1, 1, 4]:
            lineup.restart(np.array([game]))
            seen.append(play(lineup, games).tolist())
        newcomer = Scribe(6)
        lineup.set_opponents([newcomer] * 3)
        assert len(newcomer.seeds) == 1
        return seen, [scribe.seeds[-1] for scribe in scribes if scribe in lineup.opponents], newcomer.seeds

    assert continued(used=True) == continued(used=False)


def test_no_enemy_seats_is_a_line_up_too():
    games = Games(num_learners=4)
    lineup = OpponentLineup([], games)
    lineup.restart(np.array([0]))
    lineup.seed(np.random.SeedSequence(0))
    np.testing.assert_array_equal(play(lineup, games), -7)
    assert lineup.names(0) == ()
