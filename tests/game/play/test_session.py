"""People at the keyboard: real events of pygame in a window that nobody sees, and a clock that the tests turn."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import gymnasium
import numpy as np
import pytest

from adapters.command.human_seats import seat_humans
from adapters.opponents.parse import frozen, mixture
from adapters.opponents.pool import OpponentPool
from snake_pz import BOTS, Rules, SnakeEngine, make_bot, snake_v0
from snake_pz.core.actions import action_space
from snake_pz.core.encodings import observation_space
from snake_pz.core.state import NO_HEADING, SnakeState
from snake_pz.drawing import sprites
from snake_pz.play import keyboard, screens
from snake_pz.play.keyboard import KEYS, Person, Steering, heading_on_board
from snake_pz.play.local_match import LocalMatch
from snake_pz.play.session import COUNTDOWN, SPEEDS, Session, describe
from snake_pz.presets import preset
from snake_pz.replay import Replay
from snake_pz.replay.recording import distinct_names

UP, RIGHT, DOWN, LEFT = range(4)
ARROWS = dict(zip(("up", "right", "down", "left"), KEYS["arrows"], strict=True))
WASD = dict(zip(("up", "right", "down", "left"), KEYS["WASD"], strict=True))
DIRECTIONS = ("up", "right", "down", "left")
SOLO = Rules(num_snakes=1)
FPS = 4


class Desk:
    """A session, its clock and its keyboard."""

    def __init__(self, players, rules, **options) -> None:
        self.now = 0.0
        self.session = Session(
            LocalMatch(rules, players), fps=FPS, seed=options.pop("seed", 5), clock=lambda: self.now, **options
        )
        self.settle()
        self.frame()

    @property
    def state(self) -> SnakeState:
        return self.session.match.engine.state

    def heading(self, snake: int = 0) -> int:
        return int(self.state.heading[0, snake])

    def turns(self) -> int:
        return int(self.state.turn[0])

    def settle(self) -> None:
        """Wait for those who think."""
        while self.session._thinking.busy:
            time.sleep(0.0005)

    def frame(self, seconds: float = 0.0) -> bool:
        self.now += seconds
        return self.session.frame()

    def post(self, kind: str, **fields: object) -> None:
        import pygame

        pygame.event.post(pygame.event.Event(getattr(pygame, kind), **fields))

    def press(self, *names: str) -> None:
        """Keys by pygame's names, all before the next frame."""
        import pygame

        for name in names:
            self.post("KEYDOWN", key=getattr(pygame, name))
            self.post("KEYUP", key=getattr(pygame, name))
        self.frame()

    def begin(self) -> Desk:
        """To where the game runs."""
        self.press("K_SPACE")
        self.wait(COUNTDOWN)
        return self

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds * FPS)):
            self.settle()
            self.frame(1 / FPS)

    def turn(self, count: int = 1) -> None:
        self.wait(count / FPS)

    def picture(self) -> np.ndarray:
        import pygame

        return pygame.surfarray.array3d(pygame.display.get_surface())


@pytest.fixture
def sit(monkeypatch) -> Iterator[Callable[..., Desk]]:
    """Makes desks, and clears them away."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    sprites.load_pygame()
    import pygame

    desks: list[Desk] = []

    def make(players=None, rules=SOLO, **options) -> Desk:
        desks.append(Desk(players or [Person("you", rules)], rules, **options))
        return desks[-1]

    yield make
    for desk in desks:
        desk.session.close()
    pygame.quit()


def turning(desk: Desk, snake: int = 0, keys: dict[str, str] = ARROWS) -> tuple[int, int, str, str]:
    """Two turns the same way, towards the middle of the board: the directions and the keys for them."""
    heading, cell = desk.heading(snake), int(desk.state.body[0, snake, desk.state.head[0, snake]])
    width, height = desk.session.match.rules.width, desk.session.match.rules.height
    x, y = cell % width, cell // width
    across = RIGHT if x < width // 2 else LEFT
    first = across if heading in (UP, DOWN) else DOWN if y < height // 2 else UP
    second = (heading + 2) % 4
    return first, second, keys[DIRECTIONS[first]], keys[DIRECTIONS[second]]


# ----------------------------------------------------------------------------------------------------------------- keys


def test_the_key_map_names_keys_of_pygame_and_none_steers_and_commands():
    import pygame

    for names in KEYS.values():
        assert all(isinstance(getattr(pygame, name), int) for name in names)
    steering = [*KEYS["arrows"], *KEYS["WASD"]]
    commands = [name for what, names in KEYS.items() if what not in ("arrows", "WASD") for name in names]
    assert len(set(steering)) == 8
    assert not set(steering) & set(commands)
    assert set(keyboard.CAPS) == {"arrows", "WASD"}


def test_two_turns_within_a_tick_are_made_on_successive_turns(sit):
    desk = sit().begin()
    first, second, key, other_key = turning(desk)
    desk.press(key, other_key)
    assert desk.turns() == 0
    desk.turn()
    assert desk.heading() == first
    desk.turn()
    assert desk.heading() == second
    desk.turn()
    assert desk.heading() == second, "straight on"
    assert desk.turns() == 3


def test_a_reversal_is_judged_against_the_direction_last_executed(sit):
    desk = sit().begin()
    start = desk.heading()
    first, _, key, back_key = turning(desk)
    desk.press(back_key)
    desk.turn()
    assert desk.heading() == start, "no turning back on the spot"
    desk.press(key, ARROWS[DIRECTIONS[(first + 2) % 4]])
    desk.turn(2)
    assert desk.heading() == first, "the second key turned back on what the first one had done"
    desk.press(ARROWS[DIRECTIONS[start]], back_key)
    desk.turn(2)
    assert desk.heading() == start, "the second is a reversal only because the first was executed"


def test_keys_for_what_it_does_anyway_cost_no_turn():
    steering = Steering()
    for direction in (UP, LEFT, LEFT, DOWN):
        steering.press(direction)
    assert [steering.next(UP), steering.next(LEFT), steering.next(DOWN)] == [LEFT, DOWN, None]
    for direction in (LEFT, UP, RIGHT, DOWN, LEFT, UP):
        steering.press(direction)
    assert [steering.next(NO_HEADING) for _ in range(5)] == [LEFT, UP, RIGHT, DOWN, None], "four ahead at most"
    steering.press(UP)
    steering.clear()
    assert steering.next(LEFT) is None


@pytest.mark.parametrize("rules", [Rules(num_snakes=1, reverse="dies"), Rules.battlesnake("solo"), Rules.hungry_geese()])
def test_back_is_no_move_of_a_person_whatever_the_rules_make_of_it(sit, rules):
    people = [Person(f"p{snake}", rules) for snake in range(rules.num_snakes)]
    desk = sit(people, rules).begin()
    desk.turn()
    for person in people:
        person.press(keyboard.key_codes("arrows")[(desk.heading(people.index(person)) + 2) % 4])
    before = desk.state.heading[0].copy()
    desk.turn()
    assert (desk.state.heading[0] == before).all()
    assert not np.isin(desk.state.cause[0], (2, 7)).any()


def test_a_curled_up_snake_goes_where_its_key_says_or_where_it_is_safe():
    rules = Rules.battlesnake("solo")
    match = LocalMatch(rules, [Person("you", rules)])
    for seed in range(8):
        match.start(seed)
        assert match.engine.state.heading[0, 0] == NO_HEADING
        match.decide([0])
        match.turn()
        assert match.engine.state.alive[0, 0]


@pytest.mark.parametrize(
    "rules", [Rules(), Rules(edge="wrap", width=5, height=9, num_snakes=1), Rules.hungry_geese(), Rules(start_length=1)]
)
def test_the_heading_is_read_off_the_board(rules):
    engine, rng = SnakeEngine(rules, 1), np.random.default_rng(0)
    engine.reset(seeds=[1])
    for _ in range(30):
        for snake in np.flatnonzero(engine.state.alive[0]):
            seen = heading_on_board(engine.observe("board")[0, snake], rules)
            longer_than_one = len(set(engine.state.body[0, snake, engine.state.head[0, snake] - np.arange(2)].tolist())) == 2
            if engine.state.length[0, snake] > 1 and longer_than_one:
                assert seen == engine.state.heading[0, snake]
        safe = engine.action_masks("absolute")[0]
        engine.step(np.array([[rng.choice(np.flatnonzero(row)) for row in safe]]))


def test_two_people_play_at_one_keyboard(sit):
    rules = Rules(num_snakes=2)
    desk = sit(seat_humans(rules, 2), rules).begin()
    one, two = turning(desk), turning(desk, 1, WASD)
    desk.press(two[2], one[2], one[3], two[3])
    desk.turn()
    assert [desk.heading(0), desk.heading(1)] == [one[0], two[0]]
    desk.turn()
    assert [desk.heading(0), desk.heading(1)] == [one[1], two[1]]


def test_one_person_has_both_sets_of_keys(sit):
    desk = sit(seat_humans(SOLO, 1)).begin()
    _, second, key, _ = turning(desk)
    desk.press(key, WASD[DIRECTIONS[second]])
    desk.turn(2)
    assert desk.heading() == second


# -------------------------------------------------------------------------------------------------------- pause and time


def test_it_waits_at_the_start_and_counts_down(sit):
    desk = sit()
    desk.wait(5)
    assert (desk.session.phase, desk.turns()) == ("start", 0)
    desk.press("K_UP")
    assert desk.session.phase == "start"
    desk.press("K_RETURN")
    assert desk.session.phase == "countdown"
    desk.wait(COUNTDOWN - 1 / FPS)
    assert desk.session.phase == "countdown"
    desk.wait(1 / FPS)
    assert (desk.session.phase, desk.turns()) == ("playing", 0)


def test_what_is_pressed_while_it_counts_down_is_not_lost(sit):
    desk = sit()
    first, second, key, other_key = turning(desk)
    desk.press("K_SPACE")
    desk.press(key, other_key)
    desk.wait(COUNTDOWN)
    desk.turn(2)
    assert desk.heading() == second
    assert first != second


def test_pause_stops_the_clock_and_loses_no_key(sit):
    desk = sit().begin()
    first, second, key, other_key = turning(desk)
    desk.press(key, "K_SPACE")
    assert desk.session.paused
    desk.wait(3)
    desk.press(other_key)
    desk.wait(3)
    assert desk.turns() == 0
    desk.press("K_SPACE")
    desk.turn()
    assert (desk.turns(), desk.heading()) == (1, first)
    desk.turn()
    assert desk.heading() == second


def test_the_countdown_can_be_paused(sit):
    desk = sit()
    desk.press("K_SPACE")
    desk.press("K_SPACE")
    desk.wait(2 * COUNTDOWN)
    assert desk.session.phase == "countdown"
    desk.press("K_PERIOD")
    desk.press("K_SPACE")
    desk.wait(COUNTDOWN)
    assert (desk.session.phase, desk.turns()) == ("playing", 0)


def test_single_turns_while_paused(sit):
    desk = sit().begin()
    first, second, key, other_key = turning(desk)
    desk.press("K_PERIOD")
    desk.frame()
    assert desk.turns() == 0, "only while paused"
    desk.press("K_SPACE", key, other_key, "K_PERIOD")
    assert (desk.turns(), desk.heading()) == (1, first)
    desk.wait(2)
    assert desk.turns() == 1
    desk.press("K_PERIOD", "K_PERIOD")
    desk.settle()
    desk.frame()
    assert (desk.turns(), desk.heading()) == (3, second), "both, one after the other"
    desk.press("K_SPACE")
    desk.turn()
    assert desk.turns() == 4


def test_losing_the_focus_pauses_and_loses_no_key(sit):
    desk = sit()
    desk.post("WINDOWFOCUSLOST")
    desk.frame()
    assert not desk.session.paused, "nothing runs yet"
    desk.begin()
    first, _, key, _ = turning(desk)
    desk.press(key)
    desk.post("WINDOWFOCUSLOST")
    desk.wait(2)
    assert desk.session.paused
    assert desk.turns() == 0
    desk.post("WINDOWFOCUSGAINED")
    desk.wait(1)
    assert desk.turns() == 0, "until its people say so"
    desk.press("K_SPACE")
    desk.turn()
    assert desk.heading() == first


def test_plus_and_minus_change_the_speed(sit):
    desk = sit().begin()
    desk.press("K_PLUS")
    assert desk.session.fps == 5
    desk.press("K_EQUALS", "K_KP_PLUS")
    assert desk.session.fps == 7
    desk.press(*["K_MINUS"] * 5, "K_KP_MINUS")
    assert desk.session.fps == 1
    desk.press("K_MINUS")
    assert desk.session.fps == SPEEDS[0]
    desk.wait(0.75)
    assert desk.turns() == 0
    desk.wait(0.25)
    assert desk.turns() == 1
    desk.press(*["K_PLUS"] * 30)
    assert desk.session.fps == SPEEDS[-1]


def test_a_long_frame_is_one_turn_not_many(sit):
    desk = sit()
    desk.press("K_SPACE")
    desk.frame(30)
    assert desk.session.phase == "countdown"
    desk.wait(COUNTDOWN)
    before = desk.turns()
    desk.frame(30)
    assert desk.turns() == before + 1
    desk.frame()
    assert desk.turns() == before + 1


# ------------------------------------------------------------------------------------------------------- games and files


def test_restart_begins_another_game(sit):
    desk = sit(rules=Rules(num_snakes=2), players=seat_humans(Rules(num_snakes=2), 1, ["greedy"])).begin()
    desk.turn(2)
    seed = int(desk.state.seed[0])
    assert seed == 5
    _, _, key, other_key = turning(desk)
    desk.press(key, other_key, "K_r")
    desk.settle()
    desk.frame()
    assert (desk.session.phase, desk.turns()) == ("countdown", 0)
    assert int(desk.state.seed[0]) != seed
    heading = desk.heading()
    desk.wait(COUNTDOWN)
    desk.turn()
    assert desk.heading() == heading, "keys of the last game are gone"


def run_into_the_wall(desk: Desk) -> None:
    for _ in range(60):
        if desk.session.phase == "over":
            return
        desk.turn()
    raise AssertionError("it never died")


def test_at_the_end_there_is_a_result_and_another_game(sit):
    desk = sit().begin()
    run_into_the_wall(desk)
    before = desk.picture()
    desk.press("K_UP", "K_SPACE")
    assert desk.session.phase == "over", "a key that is still pressed does not throw it away"
    desk.wait(2)
    assert not np.array_equal(desk.picture(), before), "the result covers the board"
    desk.press("K_RETURN")
    desk.settle()
    desk.frame()
    assert (desk.session.phase, desk.turns()) == ("countdown", 0)


def test_a_recording_is_the_game_that_was_played(sit, tmp_path):
    rules = Rules(num_snakes=3)
    desk = sit(seat_humans(rules, 1, ["survivor", "random"]), rules, record=tmp_path / "game.jsonl").begin()
    _, _, key, other_key = turning(desk)
    desk.press(key, other_key)
    desk.turn(4)
    played = desk.session.match.engine.save()
    assert desk.turns() == 4
    desk.press("K_ESCAPE")
    desk.session.close()
    assert desk.session.recordings == [tmp_path / "game.jsonl"]
    replay = Replay.load(tmp_path / "game.jsonl")
    assert (replay.seed, replay.names, len(replay.actions)) == (5, ("you", "survivor", "random"), 4)
    *_, last = replay.states()
    for own, other in zip(played.arrays(), last.arrays(), strict=True):
        assert np.array_equal(own, other)


def test_every_game_with_a_turn_is_recorded_once(sit, tmp_path):
    desk = sit(record=tmp_path / "game.jsonl").begin()
    desk.press("K_r")
    desk.frame()
    desk.wait(COUNTDOWN)
    run_into_the_wall(desk)
    desk.wait(2)
    desk.press("K_r")
    desk.frame()
    desk.wait(COUNTDOWN)
    desk.turn(2)
    desk.session.close()
    desk.session.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["game-2.jsonl", "game.jsonl"]
    assert [len(Replay.load(path).actions) for path in desk.session.recordings][1] == 2


def test_the_same_seed_and_keys_give_the_same_game(sit):
    def game():
        rules = Rules(num_snakes=4)
        match = LocalMatch(rules, seat_humans(rules, 1, ["random", "greedy", "survivor"]))
        for seed in (3, 7):
            match.start(seed)
            for _ in range(12):
                match.decide(range(4))
                match.turn()
            yield match.recorder.replay()

    assert list(game()) == list(game())


# ---------------------------------------------------------------------------------------------------------------- window


@pytest.mark.parametrize("kind", ["QUIT", "WINDOWCLOSE"])
def test_a_closed_window_ends_it_cleanly(sit, kind):
    import pygame

    desk = sit().begin()
    desk.post(kind)
    desk.session.run()
    assert not pygame.display.get_init()
    desk.session.close()
    assert not any(thread.name == "players" and thread.is_alive() for thread in threading.enumerate())


def test_escape_quits_in_every_phase(sit):
    for phase in ("start", "countdown", "playing", "over"):
        desk = sit()
        if phase != "start":
            desk.press("K_SPACE")
        if phase in ("playing", "over"):
            desk.wait(COUNTDOWN)
        if phase == "over":
            run_into_the_wall(desk)
        assert desk.session.phase == phase
        desk.press("K_ESCAPE")
        assert not desk.frame()
        desk.session.close()


@pytest.mark.parametrize("size", [(1300, 400), (420, 900), (160, 90)])
def test_it_fills_a_resized_window(sit, size):
    import pygame

    desk = sit(seat_humans(Rules(), 1, ["greedy"]), Rules())
    pictures = []
    for phase in ("start", "countdown", "playing"):
        pygame.display.set_mode(size, pygame.RESIZABLE)
        desk.post("VIDEORESIZE", size=size, w=size[0], h=size[1])
        desk.frame()
        assert desk.session.phase == phase
        pictures.append(desk.picture())
        assert pictures[-1].shape[:2] == size
        desk.press("K_SPACE")
        desk.wait(COUNTDOWN if phase == "countdown" else 0)
        if phase == "countdown":
            desk.press("K_SPACE")
            desk.wait(COUNTDOWN)
    assert len({picture.tobytes() for picture in pictures}) == 3


def test_snakes_slide_between_turns(sit):
    desk = sit().begin()
    desk.turn()
    pictures = []
    for _ in range(4):
        pictures.append(desk.picture().tobytes())
        desk.frame(1 / FPS / 5)
    assert desk.turns() == 1
    assert len(set(pictures)) == 4


class Stub:
    """A player of any encoding that does what a function says."""

    name = "models/stub.zip"

    def __init__(self, rules, observation, actions, act) -> None:
        self.observation_space: gymnasium.Space = observation_space(rules, observation)
        self.action_space: gymnasium.Space = action_space(actions)
        self.act = act

    def reset(self, slots) -> None:
        pass

    def seed(self, seed) -> None:
        pass


def test_the_window_answers_while_a_player_thinks(sit):
    import pygame

    rules, go = Rules(num_snakes=2), threading.Event()
    go.set()

    def think(observations, slots, masks):
        go.wait(30)
        return np.ones(len(slots), int)

    desk = sit([Person("you", rules), Stub(rules, "egocentric", "relative", think)], rules).begin()
    desk.settle()
    go.clear()
    desk.turn()
    assert desk.turns() == 1
    first, second, key, other_key = turning(desk)
    for _ in range(20):
        assert desk.frame(0.1)
    assert desk.turns() == 1
    pygame.display.set_mode((700, 400), pygame.RESIZABLE)
    desk.press(key, other_key, "K_SPACE")
    assert desk.session.paused
    assert desk.picture().shape[:2] == (700, 400)
    desk.press("K_SPACE")
    go.set()
    desk.settle()
    desk.frame()
    assert (desk.turns(), desk.heading()) == (2, first), "it is made up as soon as it can be"
    desk.turn()
    assert desk.heading() == second
    go.clear()
    desk.turn()
    desk.press("K_r")
    assert desk.turns() > 0, "the new game waits for who still thinks about this one"
    desk.press("K_ESCAPE")
    assert not desk.frame()
    go.set()


def test_what_a_player_raises_ends_the_game_with_it(sit):
    rules = Rules(num_snakes=2)

    def fail(observations, slots, masks):
        raise LookupError("nothing comes to mind")

    desk_players = [Person("you", rules), Stub(rules, "board", "absolute", fail)]
    session = Session(LocalMatch(rules, desk_players), fps=FPS, seed=0)
    import pygame

    with pytest.raises(LookupError, match="nothing comes to mind"):
        session.run()
    assert not pygame.display.get_init()


def test_cards_say_who_plays_and_how_it_ended(sit):
    rules = Rules(num_snakes=12, width=19, height=19)
    players = seat_humans(rules, 2, ["random"])
    match = LocalMatch(rules, players)
    for seed in itertools.count():
        match.start(seed)
        while not match.engine.state.over[0]:
            match.decide(range(12))
            match.turn()
        if (match.engine.state.rank[0, :2] > 9).any():
            break
    texts: list[str] = []

    def text_line(text, size, colour, room, real=sprites.text_line):
        texts.append(text)
        return real(text, size, colour, room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sprites, "text_line", text_line)
        screens.line.cache_clear()
        screens.card.cache_clear()
        screens.start_card(match, describe(rules, 6), (1200, 900))
        assert {"19 x 19, walls, 12 snakes, 6 turns a second", "player 1", "W", "random 7", "and 3 more"} <= set(texts)
        texts.clear()
        screens.line.cache_clear()
        screens.result_card(match, (1200, 900))
        winners = np.flatnonzero(match.engine.state.rank[0] == 1)
        assert ("A draw" if len(winners) > 1 else f"{match.names[winners[0]]} wins") in texts
        assert {"player 1", "player 2", "and 3 more", f"after {match.engine.state.turn[0]} turns"} <= set(texts)
    assert describe(Rules.hungry_geese(num_snakes=1), 2.5) == "11 x 7, wraps around, 1 snake, 2.5 turns a second"


# ----------------------------------------------------------------------------------------------------------------- match


def test_players_of_any_encoding_share_a_table():
    rules = Rules(num_snakes=4)
    seen = []

    def left(observations, slots, masks):
        seen.append((observations.shape, slots.tolist(), masks))
        return np.zeros(len(slots), int)

    stub = Stub(rules, "egocentric", "relative", left)
    match = LocalMatch(rules, [stub, make_bot("greedy", rules), stub, Person("you", rules)])
    match.start(0)
    before = match.engine.state.heading[0].copy()
    match.decide(range(4))
    match.turn()
    assert seen == [((2, *stub.observation_space.shape), [0, 2], None)]
    for snake in (0, 2):
        assert match.engine.state.heading[0, snake] == (before[snake] - 1) % 4
    assert match.names == ["stub 1", "greedy", "stub 2", "you"]


@pytest.mark.parametrize("name", BOTS[1:-1])
def test_bots_at_a_table_are_told_what_kills(name):
    rules = Rules.hungry_geese()
    bot = make_bot(name, rules)
    match = LocalMatch(rules, [bot] * rules.num_snakes)
    against, turns, act = 0, 0, bot.act

    def watched(observations, slots, masks):
        nonlocal against
        assert np.array_equal(masks, match.engine.action_masks("absolute")[0, slots])
        moves = act(observations, slots, masks)
        against += int((masks[np.arange(len(moves)), moves] == 0).sum())
        return moves

    bot.act = watched
    for seed in range(10):
        match.start(seed)
        while not match.engine.state.over[0]:
            match.decide(range(rules.num_snakes))
            match.turn()
            turns += 1
    assert against == 0
    assert turns > 500


def test_names_are_short_and_different():
    assert distinct_names(["a", "runs/x/snake_5.zip", "a", "b"]) == ["a 1", "snake_5", "a 2", "b"]


def test_who_does_not_fit_is_told():
    with pytest.raises(ValueError, match="expected a player for each of 4 snakes, got 1"):
        LocalMatch(Rules(), [Person("you", Rules())])
    with pytest.raises(ValueError, match=r"'you' cannot play in these games: .* cannot play on a 11x11 board"):
        LocalMatch(SOLO, [Person("you", Rules(width=9, height=9))])
    with pytest.raises(ValueError, match="a person plays one snake, 'you' got 2"):
        Person("you", SOLO).act(np.zeros((2, 7, 11, 11), np.uint8), np.arange(2), None)


def test_opponents_get_a_seat_or_are_refused(tmp_path):
    assert [player.name for player in seat_humans(Rules(), 2)] == ["player 1", "player 2", "greedy", "greedy"]
    assert [player.name for player in seat_humans(SOLO, 1)] == [player.name for player in seat_humans(SOLO, 1, [])] == ["you"]
    for rules, humans, words in ((SOLO, 1, ["nope"]), (Rules(num_snakes=2), 2, ["greedy"])):
        with pytest.raises(
            ValueError, match=rf"opponents have no seat where people .*, {humans} of {humans}, got '{words[0]}': le"
        ):
            seat_humans(rules, humans, words)
    pool = OpponentPool(tmp_path / "pool")
    pool.add_bot("greedy")
    for word in (pool.folder, str(pool.folder), pool, frozen(pool), mixture({"greedy": 1})):
        with pytest.raises(ValueError, match=r"a pool or mixture is not one player, got .*: name the file of one of its"):
            seat_humans(Rules(), 1, ["greedy", word, "greedy"])


def test_refused_opponents_are_one_sentence_of_the_command(tmp_path):
    from typer.testing import CliRunner

    from adapters.command.main import app

    OpponentPool(tmp_path / "pool").add_bot("greedy")
    for arguments, words in (
        (["--opponent", str(tmp_path / "pool")], "is not one player"),
        (["--snakes", "1", "--opponent", "nope"], "opponents have no seat"),
        (["--humans", "2", "--snakes", "2", "--opponent", "nope"], "opponents have no seat"),
    ):
        result = CliRunner().invoke(app, ["play", *arguments])
        assert (result.exit_code, result.output.count("\n")) == (2, 1), result.output
        assert words in result.output


def test_modes_of_battlesnake_have_names():
    assert preset("battlesnake:wrapped", width=7) == Rules.battlesnake("wrapped", width=7)
    assert preset("battlesnake") == preset("battlesnake:standard")


def test_bad_options(sit):
    match = LocalMatch(SOLO, [Person("you", SOLO)])
    with pytest.raises(ValueError, match=r"fps must be between 0\.1 and 60 turns per second, got 0"):
        Session(match, fps=0)
    with pytest.raises(ValueError, match="seed must be between 0 and"):
        Session(match, seed=-1)
    with pytest.raises(
        ValueError,
        match=r"rules must be one of 'classic', 'battlesnake', 'battlesnake:standard', .*, 'hungry_geese', got 'chess'",
    ):
        preset("chess")
    with pytest.raises(ValueError, match=r"'champion' cannot play in these games: .* cannot play on a 7x7 board"):
        LocalMatch(Rules(width=7, height=7), seat_humans(Rules(width=7, height=7), 1, ["champion"]))
    with pytest.raises(ValueError, match="humans must be 1 or 2, got 0"):
        seat_humans(Rules(), 0, ["greedy"])
    with pytest.raises(ValueError, match="2 people need as many snakes, got 1"):
        seat_humans(SOLO, 2, ["greedy"])
    with pytest.raises(ValueError, match="a list of opponents must have 3 entries"):
        seat_humans(Rules(), 1, ["greedy", "greedy"])
    assert preset("battlesnake", width=19, height=None) == Rules.battlesnake(width=19)


def test_no_display_is_one_sentence_of_the_command():
    clean = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    code = "from adapters.command.main import app; app(prog_name='snake-pz')"
    ran = subprocess.run(
        [sys.executable, "-c", code, "play"], env=clean | {"SDL_VIDEODRIVER": "x11"}, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("snake-pz: cannot open a window, there is no display (")
    assert ran.stderr.count("\n") == 1
    assert not ran.stdout
    assert "Traceback" not in ran.stderr


def test_the_command_plays(monkeypatch, tmp_path, sit):
    import pygame
    from typer.testing import CliRunner

    from adapters.command import main

    frames = itertools.count()

    def frame(self, real=Session.frame):
        if next(frames) == 3:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        return real(self)

    monkeypatch.setattr(Session, "frame", frame)
    result = CliRunner().invoke(main.app, ["play", "--snakes", "2", "--opponent", "survivor", "--record", str(tmp_path / "g")])
    assert result.exit_code == 0, result.output
    assert result.output == "", "no turn was played, so there is no recording"


# --------------------------------------------------------------------------------------------------------- manual policy


@pytest.mark.parametrize("actions", ["absolute", "relative"])
@pytest.mark.parametrize("api", ["parallel", "aec"])
def test_manual_policy(sit, actions, api):
    import pygame

    sit()  # a window whose events it gets
    rules = {"num_snakes": 2, "actions": actions}
    env = snake_v0.parallel_env(**rules) if api == "parallel" else snake_v0.env(**rules)
    env.reset(seed=3)
    policy = snake_v0.ManualPolicy(env, agent_id=1)
    assert (policy.agent, policy.available_agents) == ("snake_1", {"snake_0": 0, "snake_1": 1})
    straight = lambda agent: env.unwrapped.get_state().heading[0, int(agent[-1])] if actions == "absolute" else 1  # noqa: E731

    def step():
        if api == "parallel":
            env.step({agent: policy(None, agent) if agent == policy.agent else straight(agent) for agent in env.agents})
            return
        for agent in env.agents[:]:
            env.step(policy(None, agent) if agent == policy.agent else int(straight(agent)))

    headings = []
    start = int(env.unwrapped.get_state().heading[0, 1])
    inwards = (start + 1) % 4
    for direction in (inwards, (inwards + 1) % 4):
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=keyboard.key_codes("arrows")[direction]))
    for _ in range(3):
        step()
        headings.append(int(env.unwrapped.get_state().heading[0, 1]))
    assert headings == [inwards, (inwards + 1) % 4, (inwards + 1) % 4]
    with pytest.raises(ValueError, match="agent must be 'snake_1', which this manual policy steers, got 'snake_0'"):
        policy(None, "snake_0")


def test_manual_policy_leaves_other_events_and_can_reset_and_close(sit, capsys):
    import pygame

    sit()
    env = snake_v0.parallel_env(num_snakes=1)
    env.reset(seed=3)
    env.step({"snake_0": int(env.get_state().heading[0, 0])})
    policy = snake_v0.ManualPolicy(env, show_obs=True)
    pygame.event.clear()
    for event in (pygame.event.Event(pygame.KEYDOWN, key=pygame.K_BACKSPACE), pygame.event.Event(pygame.WINDOWFOCUSLOST)):
        pygame.event.post(event)
    policy("seen", "snake_0")
    assert env.get_state().turn[0] == 0
    assert capsys.readouterr().out == "seen\n"
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))
    policy("seen", "snake_0")
    assert [event.type for event in pygame.event.get()] == [pygame.WINDOWFOCUSLOST, pygame.QUIT], "the window closes on it"
    pygame.display.quit()
    assert policy("seen", "snake_0") == env.get_state().heading[0, 0], "without a window it goes straight on"
    assert snake_v0.parallel_env.metadata["has_manual_policy"]
