"""Files appear whole or not at all, and are on the disk before they have their name."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.command.main import app
from snake_pz.files import ABANDONED, check_writable, locked, replacing, sweep, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on POSIX only")
def test_a_child_that_leaves_a_lock_takes_it_from_nobody(tmp_path: Path) -> None:
    lock = locked(tmp_path)
    lock.__enter__()
    if (child := os.fork()) == 0:
        lock.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(BlockingIOError, match="another process has locked the folder"), locked(tmp_path):
        pass
    lock.__exit__(None, None, None)
    with locked(tmp_path):
        pass


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("before")
    check_writable(path)
    check_writable(tmp_path / "new" / "new" / "file.txt")
    assert path.read_text() == "before"
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["file.txt"]
    with pytest.raises(IsADirectoryError, match="expected the name of a file to write, got the folder"):
        check_writable(tmp_path)


def test_calls_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for _ in range(20):
            write_text(path, f"{number}" * 1000)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert len(set(path.read_text())) == 1
    assert names(tmp_path) == ["file.txt"]


def test_what_a_killed_writer_left_is_swept_away_and_nothing_else(tmp_path: Path) -> None:
    def leave() -> None:
        with replacing(tmp_path / "file.txt") as temporary:
            temporary.write_text("half")
            os.rename(temporary, tmp_path / "aside")  # what a kill leaves, an exception does not
            left.append(temporary)
            raise RuntimeError("killed")

    left: list[Path] = []
    with pytest.raises(RuntimeError, match="killed"):
        leave()
    (tmp_path / "aside").rename(left[0])
    own = [".hidden.txt", ".file.part.txt", "file.0123456789abcdef.part.txt"]
    for name in own:
        (tmp_path / name).touch()
    write_text(tmp_path / "other.txt", "")
    assert left[0].exists()  # somebody may be writing it
    os.utime(left[0], (0, time.time() - 2 * ABANDONED))
    write_text(tmp_path / "other.txt", "")
    assert names(tmp_path) == sorted([*own, "other.txt"])
    left[0].touch()
    sweep(tmp_path)
    assert names(tmp_path) == sorted([*own, "other.txt"])


@pytest.mark.skipif(os.name != "posix", reason="Windows lets few people make links")
def test_links_stay_and_what_they_lead_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    for name, aim in (("link.txt", "target/file.txt"), ("chain.txt", "link.txt"), ("dangling.txt", "target/new.txt")):
        (tmp_path / name).symlink_to(aim)
    (tmp_path / "target" / "file.txt").write_text("before")
    for name in ("chain.txt", "dangling.txt"):
        check_writable(tmp_path / name)
        with replacing(tmp_path / name) as temporary:
            assert temporary.parent == tmp_path / "target"  # from where it can be renamed
            temporary.write_text(name)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == name
    assert names(tmp_path / "target") == ["file.txt", "new.txt"]
    (tmp_path / "circle.txt").symlink_to("circle.txt")
    for write in (check_writable, lambda path: write_text(path, "")):
        with pytest.raises(OSError, match="symbolic links"):
            write(tmp_path / "circle.txt")


@pytest.mark.skipif(os.name != "posix", reason="pipes have names on POSIX only")
def test_pipes_and_devices_stay_and_get_the_content(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)  # does not wait for a reader
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through" * 100_000)
    reader.join()
    assert read == ["through" * 100_000]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]

    null = Path(os.devnull)
    number = null.stat().st_rdev
    check_writable(null)
    write_text(null, "gone")
    assert null.is_char_device()
    assert null.stat().st_rdev == number


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_device_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_text(Path("/dev/full"), "lost")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="a name of POSIX")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_what_goes_to_an_open_file_goes_on_where_that_is(name: str, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from snake_pz.files import check_writable, write_text
check_writable(Path({name!r}))
print("before")
write_text(Path({name!r}), "text\\n")
print("after")
"""
    with (tmp_path / "out.txt").open("w") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "before\ntext\nafter\n"


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("before")
    path.chmod(0o600)
    mode = path.stat().st_mode
    write_text(path, "after")
    assert path.stat().st_mode == mode


def test_text_is_the_same_everywhere(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "± 蛇\n")
    assert (tmp_path / "file.txt").read_bytes() == "± 蛇\n".encode()
    write_text(tmp_path / "file.txt", "± 蛇 \udce8\n")
    assert (tmp_path / "file.txt").read_bytes() == "± 蛇 \\udce8\n".encode()


def test_errors_name_the_file_that_the_user_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for write in (check_writable, lambda path: write_text(path, "")):
        with pytest.raises(OSError) as caught:  # noqa: PT011 its kind depends on the system
            write(tmp_path / "file" / "file.txt")
        assert caught.value.filename == str(tmp_path / "file" / "file.txt")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011
        write_text(tmp_path / "folder", "")
    assert caught.value.filename == str(tmp_path / "folder")
    assert names(tmp_path) == ["file", "folder"]


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
