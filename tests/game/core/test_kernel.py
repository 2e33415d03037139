"""What is compiled, when, and where it is kept."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snake_pz
from snake_pz.core import kernel as module
from snake_pz.core.kernel import digest_of, kernel

PACKAGE = Path(snake_pz.__file__).parent


def run(code: str, tree: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a process that imports the package from this tree and caches in this folder."""
    variables = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], env=variables, cwd=tree, capture_output=True, text=True, check=True)


SHUFFLE = """
import numpy as np
from snake_pz.core.starts import _shuffle
items = np.arange(50)
_shuffle(items, 0, 50, np.uint64(1))
print(len(_shuffle.stats.cache_hits), *items)
"""


def test_an_edit_in_another_file_is_noticed_and_versions_keep_their_own(tmp_path: Path) -> None:
    """`_shuffle` in starts.py contains `draw` of randomness.py."""
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    shutil.copytree(PACKAGE, tree / "snake_pz", ignore=shutil.ignore_patterns("__pycache__"))
    first = run(SHUFFLE, tree, cache)
    assert (first.stdout[0], first.stderr) == ("0", "")
    source = tree / "snake_pz" / "core" / "randomness.py"
    text, times = source.read_text(), source.stat()
    source.write_text(text.replace("0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5B7"))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    edited = run(SHUFFLE, tree, cache)
    assert edited.stdout[0] == "0", "what was compiled of other sources was used"
    assert edited.stdout != first.stdout
    source.write_text(text)
    assert run(SHUFFLE, tree, cache).stdout == "1" + first.stdout[1:], "what was compiled of these sources is lost"


def test_the_digest_is_of_every_source_and_its_place(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text("x")
    (tmp_path / "b.py").write_text("")
    digests = [digest_of(tmp_path, None), digest_of(tmp_path, 1)]
    (tmp_path / "core" / "a.py").write_text("y")
    digests.append(digest_of(tmp_path, None))
    (tmp_path / "core" / "a.py").rename(tmp_path / "core" / "c.py")
    digests.append(digest_of(tmp_path, None))
    (tmp_path / "core" / "c.py").rename(tmp_path / "c.py")
    digests.append(digest_of(tmp_path, None))
    (tmp_path / "new.py").write_text("")
    digests.append(digest_of(tmp_path, None))
    assert len(set(digests)) == len(digests)
    (tmp_path / "notes.txt").write_text("")
    assert digest_of(tmp_path, None) == digests[-1]


NOTHING_WRITABLE = """
import numba.core.caching as caching
def refuse(self): raise PermissionError("read-only")
caching._CacheLocator.ensure_cache_path = refuse
import numpy as np
from snake_pz.core.randomness import draw, mix
print(mix(np.uint64(1)), draw(np.uint64(1), 1))
"""


def test_where_nothing_can_be_written_kernels_run_and_one_line_says_so(tmp_path: Path) -> None:
    done = run(NOTHING_WRITABLE, PACKAGE.parent, tmp_path)
    assert done.stdout.split()[0] == "6238072747940578789"
    assert done.stderr == module._NOT_CACHED + "\n"
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert not list(tmp_path.iterdir())


def test_nothing_is_said_where_nothing_is_compiled(tmp_path: Path) -> None:
    code = NOTHING_WRITABLE.replace("print", "0 and print")
    assert run(code, PACKAGE.parent, tmp_path).stderr == ""


@pytest.fixture(autouse=True)
def fresh_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice that has said nothing."""
    monkeypatch.setattr(module._notice, "cached", True)
    monkeypatch.setattr(module._notice, "_said", False)


def standard_error(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> io.StringIO:
    """A stream in the place of standard error. Not a fixture: pytest puts its own there before a test runs."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def compiled(number: int) -> int:
    """The number, from kernels compiled now."""

    @kernel
    def inner(x: int) -> int:
        return x

    @kernel
    def outer(x: int) -> int:
        return inner(x)

    assert outer(number) == number
    return number


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of tests are compiled anew."""
    monkeypatch.setattr(module._Cache, "load_overload", lambda *_: None)
    monkeypatch.setattr(module._Cache, "save_overload", lambda *_: None)


@pytest.mark.usefixtures("no_cache")
def test_a_terminal_shows_a_line_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = standard_error(monkeypatch, terminal=True)
    compiled(1)
    before, shown, erased, after = terminal.getvalue().split("\r")
    assert shown == module._COMPILING
    assert (before, erased.strip(" "), after) == ("", "", "")
    assert len(shown) == len(erased) < 80


@pytest.mark.usefixtures("no_cache")
def test_a_file_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    file = standard_error(monkeypatch, terminal=False)
    compiled(1)
    assert file.getvalue() == ""


@pytest.mark.usefixtures("no_cache")
@pytest.mark.parametrize("stream", [None, "closed", "full"])
def test_standard_error_may_be_missing(stream: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = standard_error(monkeypatch, terminal=True)

    def full(_: str) -> int:
        raise OSError(28, "No space left on device")

    if stream is None:
        monkeypatch.setattr(sys, "stderr", None)
    elif stream == "closed":
        terminal.close()
    else:
        monkeypatch.setattr(terminal, "write", full)
    assert compiled(1) == 1


def test_a_cache_that_cannot_be_written_any_more_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, or somebody deleted the folder: known only when code is saved."""

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.FunctionCache, "load_overload", fail)
    monkeypatch.setattr(module.FunctionCache, "save_overload", fail)
    file = standard_error(monkeypatch, terminal=False)
    compiled(1)
    compiled(2)
    assert file.getvalue() == module._NOT_CACHED + "\n"


def test_old_code_of_other_versions_is_deleted(tmp_path: Path) -> None:
    names = ["a.py311.nbi", "a.py311-0123456789abcdef.1.nbc", f"a.py311-{module._VERSION}.1.nbc", "a.txt"]
    for name in [*names, "recent.nbi"]:
        (tmp_path / name).touch()
        if name != "recent.nbi":
            os.utime(tmp_path / name, (time.time() - 31 * 24 * 3600,) * 2)
    module._sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[2:], "recent.nbi"])


def test_kernels_are_compiled_for_one_type_of_number() -> None:
    assert isinstance(module.int64(np.int16(3)), np.int64)
