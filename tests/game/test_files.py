"""Files appear whole or not at all, and are on the disk before they have their name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.command.main import app
from snake_pz.files import check_writable, locked, replacing


def test_a_file_appears_whole_in_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        assert temporary.suffix == path.suffix  # some libraries go by it
        temporary.write_text("whole")
    assert [(one.name, one.read_text()) for one in path.parent.iterdir()] == [("file.txt", "whole")]


def test_what_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("before")

    def fail_half_way() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file.txt", "before")]


def test_the_disk_has_the_content_before_the_name_and_then_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = tmp_path / "file.txt", []
    flush, rename = os.fsync, os.replace

    def flushed(handle: int) -> None:
        flush(handle)
        done.append(("flushed", os.fstat(handle).st_ino))

    def renamed(source: Any, target: Any) -> None:
        done.append(("renamed", os.stat(source).st_ino))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    with replacing(path) as temporary:
        temporary.write_text("whole")
    content = path.stat().st_ino
    expected = [("flushed", content), ("renamed", content)]
    assert done == ([*expected, ("flushed", tmp_path.stat().st_ino)] if os.name == "posix" else expected)


@pytest.mark.skipif(os.name != "posix", reason="folders are flushed on POSIX only")
def test_a_file_system_that_flushes_no_folders_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def fsync(handle: int) -> None:
        if os.fstat(handle).st_ino == tmp_path.stat().st_ino:
            raise OSError("Invalid argument")
        flush(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with replacing(tmp_path / "file.txt") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "file.txt").read_text() == "whole"


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_a_child_that_leaves_a_lock_takes_it_from_nobody(tmp_path: Path) -> None:
    lock = locked(tmp_path)
    lock.__enter__()
    if (child := os.fork()) == 0:
        lock.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(BlockingIOError), locked(tmp_path):
        pass
    lock.__exit__(None, None, None)
    with locked(tmp_path):
        pass


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("before")
    check_writable(path)
    check_writable(tmp_path / "new" / "file.txt")
    assert path.read_text() == "before"
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["file.txt", "new"]
    with pytest.raises(IsADirectoryError, match="expected the name of a file to write, got the folder"):
        check_writable(tmp_path)


@pytest.mark.parametrize("option", ["--plot", "--csv", "--json"])
def test_a_tournament_whose_result_cannot_be_written_is_not_played(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.evaluation.tournament.tournament", lambda *args, **kwargs: pytest.fail("played"))
    (tmp_path / "file").touch()
    for path, text in ((tmp_path, "got the folder"), (tmp_path / "file" / "plot.png", "file")):
        done = CliRunner().invoke(app, ["tournament", "greedy", "random", option, str(path)])
        assert (done.exit_code, text in done.output) == (2, True), done.output


@pytest.mark.parametrize("option", ["--record", "--html", "--gif"])
def test_a_game_whose_film_cannot_be_written_is_not_played(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.evaluation.evaluate.record_game", lambda *args, **kwargs: pytest.fail("played"))
    done = CliRunner().invoke(app, ["watch", "--players", "greedy", "random", option, str(tmp_path)])
    assert (done.exit_code, "got the folder" in " ".join(done.output.split())) == (2, True), done.output
