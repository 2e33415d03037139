"""The page that plays a game: what it is told of the game, and what a real browser makes of it."""

from __future__ import annotations

import base64
import html
import io
import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import markupsafe
import numpy as np
import pytest
from PIL import Image

from snake_pz import Rules
from snake_pz.core.state import SnakeState, body_cells
from snake_pz.drawing.picture import default_cell, describe, make_layout
from snake_pz.drawing.render import rgb_array
from snake_pz.drawing.sprites import PALETTE
from snake_pz.replay import Replay
from snake_pz.replay.page import game_data, page, runs
from tests.support.recordings import long_game, recorded

RULES = {
    "classic": Rules.classic(),
    "wrapped": Rules.battlesnake("wrapped"),
    "constrictor": Rules.battlesnake("constrictor"),
    "royale": Rules.battlesnake("royale", shrink_every=5),
    "geese": Rules.hungry_geese(),
    "wide": Rules.classic(width=20, height=8, num_snakes=9),
}
every_rules = pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())


# ------------------------------------------------------------------------------------------------------------- the data


def _series(packed: list[int], length: int) -> list[int]:
    values: list[int] = []
    stretches = [packed[k : k + 3] for k in range(0, len(packed), 3)]
    for (start, value, slope), end in zip(stretches, [*(s[0] for s in stretches[1:]), length], strict=True):
        values += [value + slope * k for k in range(end - start)]
    return values


@pytest.mark.parametrize("values", [[5], [5, 6], [1, 1, 1], [100, 99, 98, 100, 99], [0, 1, 0, 1, 5, 5, 5, 4, 3]])
def test_runs_are_the_numbers_again(values: list[int]) -> None:
    assert _series(runs(values), len(values)) == values


def test_runs_of_even_numbers_are_short() -> None:
    assert runs([100 - k for k in range(100)]) == [0, 100, -1]


@every_rules
def test_the_data_is_the_game(rules: Rules) -> None:
    replay = recorded(rules)
    states = list(replay.states())
    data = game_data(states, rules, replay.names)
    turns = len(states) - 1
    assert (data["turns"], data["over"], data["names"]) == (turns, bool(states[-1].over[0]), list(replay.names))
    for snake, packed in enumerate(data["snakes"]):
        path, length, health, blunt = (_series(packed[name], turns + 1) for name in ("path", "length", "health", "blunt"))
        trail = list(packed["start"])
        for turn, state in enumerate(states):
            if turn and state.alive[0, snake]:
                y, x = divmod(trail[-1], rules.width)
                dx, dy = ((0, -1), (1, 0), (0, 1), (-1, 0))[int(packed["moves"][turn - 1])]
                trail.append((y + dy) % rules.height * rules.width + (x + dx) % rules.width)
            assert length[turn] == state.length[0, snake]
            assert health[turn] == state.health[0, snake]
            fates = [text for since, text in zip(packed["fates"][::2], packed["fates"][1::2], strict=True) if since <= turn]
            assert fates[-1] == describe(state, snake, replay.names)
            if not state.alive[0, snake]:
                assert path[turn] == 0
                assert packed["died"] == state.died[0, snake]
                continue
            cells = body_cells(state, 0, snake).tolist()
            assert trail[len(trail) - path[turn] :][::-1] == [cell for cell, _ in itertools.groupby(cells)]
            assert blunt[turn] == (len(cells) > 1 and cells[-1] == cells[-2])
    for name, step, array in (("food", 2, "food"), ("hazards", 3, "hazard")):
        board: dict[int, int] = {}
        events = [data[name][k : k + step] for k in range(0, len(data[name]), step)]
        for turn, state in enumerate(states):
            for _, cell, *times in (event for event in events if event[0] == turn):
                board[cell] = times[0] if times else 1 - board.get(cell, 0)
            shown = sorted(cell for cell, there in board.items() if there)
            assert shown == np.flatnonzero(getattr(state, array)[0]).tolist()


def test_a_game_needs_a_start() -> None:
    with pytest.raises(ValueError, match="at least its start"):
        game_data([], Rules(), ["a"] * 4)


def test_names_cannot_leave_their_place() -> None:
    replay = recorded(RULES["classic"])
    evil = "</script><script>alert(1)</script>&\"'"
    document = page(replay.states(), replay.rules, [evil, *replay.names[1:]])
    assert document.count("<script") == 2
    assert str(markupsafe.escape(evil)) in document


def test_the_page_asks_for_nothing() -> None:
    document = recorded(RULES["classic"]).html()
    assert not re.search(r"https?:|url\(|@import|\bsrc=|fetch\(|XMLHttpRequest|WebSocket", document)
    assert "default-src 'none'" in document


def test_a_long_game_is_small(tmp_path: Path) -> None:
    replay = long_game()
    assert len(replay.actions) == 500
    replay.save(tmp_path / "game.jsonl")
    assert (tmp_path / "game.jsonl").stat().st_size < 10_000
    assert len(replay.html().encode()) < 150_000
    again = Replay.load(tmp_path / "game.jsonl")
    assert again.hashes[-1] == replay.hashes[-1]
    assert again.html() == replay.html()


def test_a_notebook_gets_the_page_in_a_frame_of_its_own() -> None:
    replay = recorded(RULES["classic"])
    shown = replay._repr_html_()
    assert re.fullmatch(r'<iframe srcdoc="[^"]*" sandbox="allow-scripts"[^>]*></iframe>', shown)
    assert html.unescape(shown.split('"')[1]) == replay.html()


# ---------------------------------------------------------------------------------------------------------- the browser

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("the page is tested in Chromium, which is not installed: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium: install the extra dev")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Page:
    """A page in the browser."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light", ratio: int = 1) -> None:
        self.browser = browser
        size = {"width": width, "height": 800, "deviceScaleFactor": ratio, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(path.as_uri())

    def do(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    @property
    def turn(self) -> int:
        return int(self.do("return document.body.dataset.turn"))

    def text(self, selector: str) -> str:
        return str(self.do("return document.querySelector(arguments[0]).innerText", selector))

    def scrub(self, turn: int) -> None:
        self.do("const s = document.getElementById('scrub'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", turn)

    def cells(self, rules: Rules) -> np.ndarray:
        """(H, W, 3) colours in the middle of each cell."""
        url, cell, margin = self.do(
            "const c = document.getElementById('canvas'); return [c.toDataURL(), +c.dataset.cell, +c.dataset.margin]"
        )
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")).astype(int)
        middle = margin + np.arange(max(rules.width, rules.height)) * cell + cell // 2
        return picture[middle[: rules.height]][:, middle[: rules.width]]

    def wait(self, condition: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 30, 0.05).until(lambda browser: browser.execute_script(f"return {condition}"))

    def check_no_errors(self) -> None:
        assert self.browser.get_log("browser") == []
        assert self.do("return performance.getEntriesByType('resource').map(entry => entry.name)") == []


def _write(replay: Replay, folder: Path) -> Path:
    path = folder / "game.html"
    path.write_text(replay.html(), encoding="utf-8")
    return path


def _picture_cells(state: SnakeState, replay: Replay) -> np.ndarray:
    """(H, W, 3) colours in the middle of each cell of the picture."""
    rules = replay.rules
    layout = make_layout(rules, default_cell(rules))
    picture = rgb_array(state, rules, names=replay.names)
    middle = np.arange(max(rules.width, rules.height)) * layout.cell + layout.cell // 2
    return picture[layout.top + middle[: rules.height]][:, layout.left + middle[: rules.width]].astype(int)


@every_rules
def test_it_draws_what_pictures_show(rules: Rules, browser: Any, tmp_path: Path) -> None:
    replay = recorded(rules)
    shown = Page(browser, _write(replay, tmp_path), 1000)
    states = list(replay.states())
    for turn in {0, 1, len(states) // 2, len(states) - 1}:
        if states[turn].just_died[0].any():
            turn -= 1  # a mark lies between cells
        shown.scrub(turn)
        difference = np.abs(shown.cells(rules) - _picture_cells(states[turn], replay)).max(axis=2)
        assert np.mean(difference > 8) <= 0.02, f"turn {turn}: {np.argwhere(difference > 8).tolist()}"
    shown.check_no_errors()


@pytest.mark.parametrize(("width", "ratio"), [(1280, 1), (400, 1), (400, 3)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_shows_every_snake(width: int, ratio: int, scheme: str, browser: Any, tmp_path: Path) -> None:
    replay = recorded(RULES["classic"])
    shown = Page(browser, _write(replay, tmp_path), width, scheme, ratio)
    start = next(replay.states())
    colours = shown.cells(replay.rules).reshape(-1, 3)
    for snake in range(4):
        middle = int(body_cells(start, 0, snake)[1])
        assert np.abs(colours[middle] - PALETTE[snake]).max() <= 2
    assert shown.do("return document.documentElement.scrollWidth") <= width
    assert shown.do("return document.getElementById('canvas').clientWidth") > 0.4 * width
    paper = shown.do("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(16, 20, 27)")
    panel = shown.text("#panel")
    assert all(name in panel for name in replay.names)
    shown.check_no_errors()


def test_it_scrubs_steps_plays_and_ends_on_the_right_turn(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    replay = recorded(RULES["classic"])
    last = len(replay.actions)
    shown = Page(browser, _write(replay, tmp_path))
    assert shown.turn == 0
    shown.scrub(17)
    assert (shown.turn, shown.text("#turn")) == (17, "Turn 17")
    shown.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert shown.turn == 18
    for button, turn in (("step", 19), ("back", 18), ("last", last), ("step", last), ("first", 0), ("back", 0)):
        browser.find_element("id", button).click()
        assert shown.turn == turn
    shown.press(Keys.END)
    assert (shown.turn, shown.text("#over")) == (last, "game over")
    *_, end = replay.states()
    fates = shown.do("return [...document.querySelectorAll('.second')].map(row => row.innerText)")
    assert fates == [describe(end, snake, replay.names) for snake in range(4)]
    shown.press(Keys.HOME)
    assert shown.turn == 0
    shown.press("+", "+", "+", "+", " ")
    shown.wait("document.body.dataset.turn > 3")
    shown.press(" ")
    paused = shown.turn
    assert 3 < paused < last
    shown.press(" ")
    shown.wait(f"document.body.dataset.turn == {last} && document.getElementById('play').ariaLabel == 'play'")
    assert browser.find_element("id", "scrub").get_attribute("value") == str(last)
    browser.find_element("id", "canvas").click()  # again from the start
    shown.wait(f"document.body.dataset.turn < {last}")
    shown.check_no_errors()


def test_games_side_by_side_leave_each_other_alone(browser: Any, tmp_path: Path) -> None:
    first, second = recorded(RULES["classic"]), recorded(RULES["geese"])
    path = tmp_path / "notebook.html"
    frames = first._repr_html_() + second._repr_html_()
    path.write_text(f"<!doctype html><link rel=icon href='data:,'>{frames}", encoding="utf-8")
    shown = Page(browser, path)
    turns = []
    for number, replay in enumerate((first, second)):
        browser.switch_to.frame(number)
        if number == 0:
            shown.scrub(9)
        turns.append(shown.turn)
        assert replay.names[0] in shown.text("#panel")
        browser.switch_to.default_content()
    assert turns == [9, 0]
    assert browser.get_log("browser") == []
