"""What the command says, and what becomes of errors, whatever standard output is."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from adapters.command.main import app
from adapters.command.terminal import Terminal, command, complain
from adapters.opponents.pool import PoolInUseError
from snake_pz import __version__

TOURNAMENT = ["tournament", "greedy", "random", "--games", "2"]


class Screen(io.StringIO):
    """A terminal 40 columns wide."""

    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A stream that cannot be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def open_screen(monkeypatch: pytest.MonkeyPatch, stream: str = "stdout") -> Screen:
    """Let a stream be a terminal."""
    screen = Screen()
    monkeypatch.setattr(sys, stream, screen)  # not in a fixture: pytest sets it anew for the test
    monkeypatch.setenv("COLUMNS", "40")
    return screen


def ended(run: Callable[[Terminal], Any]) -> int:
    """The exit code of a command that does this."""
    try:
        with command() as out:
            run(out)
    except typer.Exit as exit_:
        return exit_.exit_code
    return 0


def test_lines_break_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    Terminal().say("128 steps: wins 0.50 against random, 0.25 against greedy (chance is 0.25)")
    assert screen.getvalue() == "128 steps: wins 0.50 against random,\n0.25 against greedy (chance is 0.25)\n"


def test_a_path_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    path = "/a/path-of/more-than/forty/characters/to-a/model.zip"
    Terminal().say(f"go on with --resume {path}")
    assert screen.getvalue() == f"go on with --resume\n{path}\n"


def test_lines_in_a_file_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", written := io.StringIO())
    monkeypatch.setenv("COLUMNS", "40")
    Terminal().say("word " * 20 + "[end]")
    assert written.getvalue() == "word " * 20 + "[end]\n"


def test_what_an_encoding_has_not_is_written_as_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    table = Table("rating")
    table.add_row("25.0 ± 1.0")
    out = Terminal()
    out.say("蛇")
    out.show(table)
    text = written.getvalue().decode("ascii")
    assert text.startswith("\\u86c7\n")
    assert "25.0 \\xb1 1.0" in text
    assert not out.failed


def test_escapes_in_a_table_move_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    table = Table("player", "rating", "wins")
    table.add_row(Text("蛇"), "25.0 ± 1.0", "5", end_section=True)
    table.add_row(Text("greedy"), "-", "3")
    Terminal().show(table)
    lines = written.getvalue().decode("ascii").splitlines()
    assert len(lines) == 7
    assert len(set(map(len, lines))) == 1, "\n".join(lines)
    assert "\\u86c7" in lines[3]
    assert "25.0 \\xb1 1.0" in lines[3]
    assert [column.header for column in table.columns] == ["player", "rating", "wins"]
    assert list(table.columns[1].cells) == ["25.0 ± 1.0", "-"], "the table itself stays as it is"


def test_a_full_disk_below_standard_output_is_said_once_and_ends_no_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def work(out: Terminal) -> None:
        for part in range(3):
            out.say("a line")
            done.append(part)

    monkeypatch.setattr(sys, "stdout", Full(FULL))
    assert ended(work) == 1
    assert done == [0, 1, 2]
    assert capsys.readouterr().err == "snake-pz: standard output cannot be written: No space left on device\n"


def test_a_reader_who_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", Full(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    assert ended(lambda out: out.say("a line")) == 1
    assert capsys.readouterr().err == ""


def test_standard_output_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert ended(lambda out: out.say("a line")) == 0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("games must be >= 1, got 0"), "games must be >= 1, got 0"),
        (PermissionError(13, "Permission denied", "a.csv"), "[Errno 13] Permission denied: 'a.csv'"),
        (ModuleNotFoundError("No module named 'pygame'"), "No module named 'pygame': install what is missing"),
        (MemoryError("Unable to allocate 3 TiB"), "there is not enough memory for so much at once (Unable to allocate 3 TiB)"),
        (PoolInUseError("another process is writing"), "another process is writing"),
        (ValueError("a name \x1b]0;PWNED\x07\nin two lines"), "a name \\x1b]0;PWNED\\x07\nin two lines"),
    ],
)
def test_what_a_user_can_mend_is_a_sentence_on_standard_error(
    error: Exception, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(out: Terminal) -> None:
        raise error

    assert ended(work) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"snake-pz: {text}")


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, AssertionError])
def test_a_fault_of_the_program_keeps_its_traceback(kind: type[Exception]) -> None:
    def work(out: Terminal) -> None:
        raise kind("a bug")

    with pytest.raises(kind, match="a bug"):
        ended(work)


def test_complaints_break_between_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch, "stderr")
    complain("expected the name of a file to write, got the folder here")
    text = "snake-pz: expected the name of a file to\nwrite, got the folder here"
    assert screen.getvalue() == f"{typer.style(text, fg='red')}\n"


@pytest.mark.parametrize("stream", [Full(FULL), Full(BrokenPipeError(errno.EPIPE, "Broken pipe"))])
def test_a_tournament_is_on_disk_whatever_becomes_of_standard_output(
    stream: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    files = {name: tmp_path / name for name in ("a.csv", "a.json", "a.png")}
    code = app(
        [*TOURNAMENT, "--csv", str(files["a.csv"]), "--json", str(files["a.json"]), "--plot", str(files["a.png"])],
        standalone_mode=False,
    )
    assert code == 1
    assert all(path.stat().st_size > 100 for path in files.values())


def test_a_tournament_whose_files_fail_at_the_end_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise FULL

    monkeypatch.setattr("adapters.evaluation.standings.Standings.write_csv", full)
    done = CliRunner().invoke(app, [*TOURNAMENT, "--csv", str(tmp_path / "a.csv")])
    assert done.exit_code == 2
    assert "2 games" in done.stdout
    assert "No space left" in done.stderr


def test_nothing_is_made_for_what_is_then_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "a.csv")
    assert CliRunner().invoke(app, ["tournament", "greedy", "nobody", "--csv", path]).exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_film_goes_through_a_pipe_and_nothing_is_said_of_its_size(tmp_path: Path) -> None:
    replay, pipe = tmp_path / "game.jsonl", tmp_path / "pipe"
    assert CliRunner().invoke(app, ["watch", "--players", "greedy", "random", "--record", str(replay)]).exit_code == 0
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        done = CliRunner().invoke(app, ["watch", str(replay), "--record", str(pipe)])
        text, _ = reader.communicate()
    assert (done.exit_code, done.output) == (0, "")
    assert text == replay.read_bytes()


def test_the_version_by_the_script_and_by_the_module() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"snake-pz {__version__}\n"
    done = subprocess.run([sys.executable, "-m", "snake_pz", "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"snake-pz {__version__}\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
def test_a_terminal_that_is_full_is_left_alone_when_python_ends() -> None:
    code = "from adapters.command.terminal import Terminal; Terminal().say('a line')"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "snake-pz: standard output cannot be written: No space left on device\n")
