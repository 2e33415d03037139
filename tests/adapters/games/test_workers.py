"""Worker processes: the same games as in one process, errors with their cause, and no process left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pettingzoo
import pytest

from adapters.games import worker_process
from adapters.games import workers as parent_side
from adapters.games.supersuit import SuperSuitGameBatch, env_factory
from adapters.games.workers import WorkerTraceback
from snake_pz.env import SnakeParallelEnv
from tests.support.scripted_env import NUM_ACTIONS, SCRIPTS, DictEnv, ScriptedEnv

ROOT = Path(__file__).resolve().parents[3]
ZEROS = np.zeros((4, 4), dtype=np.int64)
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")


def make(factory: Any = ScriptedEnv, games: int = 4, workers: int = 2, **kwargs: Any) -> SuperSuitGameBatch:
    return SuperSuitGameBatch([env_factory(factory, kwargs)] * games, num_workers=workers)


def begin(game_batch: SuperSuitGameBatch) -> Any:
    return game_batch.reset([11, 12, 13, 14][: game_batch.num_games], [{}] * game_batch.num_games)


def processes(game_batch: SuperSuitGameBatch) -> list[subprocess.Popen[bytes]]:
    return [worker.process for worker in game_batch._games._workers]


def all_ended(started: list[subprocess.Popen[bytes]]) -> bool:
    return all(process.returncode is not None for process in started)


# The same games


@pytest.mark.parametrize(
    ("factory", "kwargs"),
    [
        (ScriptedEnv, {"scripts": SCRIPTS["mixed games"]}),
        (ScriptedEnv, {"scripts": SCRIPTS["both flags"], "masks": "observation"}),
        (ScriptedEnv, {"scripts": SCRIPTS["one by one"], "masks": "info"}),
        (ScriptedEnv, {"box_actions": True}),
        (DictEnv, {"scripts": SCRIPTS["one by one"]}),
    ],
)
def test_turns_are_the_same_with_any_number_of_workers(factory: Any, kwargs: dict[str, Any]) -> None:
    played = []
    for workers in (0, 1, 2, 3):
        game_batch = make(factory, workers=workers, **kwargs)
        turns = [begin(game_batch)]
        rng = np.random.default_rng(1)
        for _ in range(20):
            actions = rng.uniform(-1, 1, (4, 4, 2)) if kwargs.get("box_actions") else rng.integers(NUM_ACTIONS, size=(4, 4))
            turns.append(game_batch.step(actions))
        turns.append(game_batch.reset([None] * 4, [{}] * 4))
        played.append((turns, [game_batch.agents(game) for game in range(4)]))
        game_batch.close()
    for other in played[1:]:
        np.testing.assert_equal(other, played[0])


def test_turns_never_change_afterwards() -> None:
    game_batch = make(DictEnv)
    first = begin(game_batch)
    kept = {key: array.copy() for key, array in first.observations.items()}
    for _ in range(3):
        game_batch.step(ZEROS)
    np.testing.assert_equal(first.observations, kept)
    game_batch.close()


def test_unseeded_games_differ_within_and_across_workers() -> None:
    game_batch = make()
    seeds = [info["game_seed"] for _ in range(3) for info in game_batch.reset([None] * 4, [{}] * 4).reset_infos.values()]
    assert len(set(seeds)) == 12
    drawn = [game_batch.get_attr("rng", [game])[0].random() for game in range(4)]
    assert len(set(drawn)) == 4
    game_batch.close()


def test_what_the_parent_answers_is_the_environment_s() -> None:
    game_batch, here = (make(workers=workers, masks="observation", render_mode="rgb_array") for workers in (2, 0))
    for name in ("num_games", "seats", "num_learners", "observation_space", "action_space", "render_mode"):
        assert getattr(game_batch, name) == getattr(here, name)
    assert game_batch.agents(3) == here.agents(3)
    game_batch.close()


# The attribute calls


def test_attribute_calls_reach_the_games_meant_in_the_order_meant() -> None:
    game_batch = make(games=5, workers=3, render_mode="rgb_array")
    for game in range(5):
        game_batch.set_attr("difficulty", game * 10, [game])
    assert game_batch.get_attr("difficulty", [4, 0, 3, 0]) == [40, 0, 30, 0]
    assert game_batch.env_method("describe", [3, 1], "a", times=2) == ["a-30 a-30", "a-10 a-10"]
    game_batch.reset([None] * 5, [{"map": 1}, {}, {}, {"map": 3}, {}])
    assert game_batch.get_attr("last_options", range(5)) == [{"map": 1}, None, None, {"map": 3}, None]
    game_batch.step(np.zeros((5, 4), dtype=np.int64))
    assert [picture[0, 0, 0] for picture in game_batch.render([4, 2])] == [1, 1]
    assert game_batch.get_attr("difficulty", []) == []
    with pytest.raises(AttributeError, match="colour"):
        game_batch.get_attr("colour", [0])
    game_batch.close()


def test_what_is_defined_here_alone_goes_to_workers_and_back() -> None:
    class Weather:
        def __init__(self, wind: int) -> None:
            self.wind = wind

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Weather) and self.wind == other.wind

    game_batch = make()
    game_batch.set_attr("difficulty", Weather(3), [1, 2])
    assert game_batch.get_attr("difficulty", [1, 2]) == [Weather(3)] * 2
    game_batch.set_attr("difficulty", lambda: 5, [0])
    assert game_batch.get_attr("difficulty", [0])[0]() == 5
    game_batch.close()


def test_what_cannot_be_pickled_is_an_error_and_the_workers_play_on() -> None:
    class Locked(ScriptedEnv):
        @property
        def lock(self) -> Any:
            return threading.Lock()

    game_batch = make(Locked)
    begin(game_batch)
    with pytest.raises(TypeError, match="pickle") as caught:
        game_batch.get_attr("lock", [3])
    assert "num_workers=0" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="pickle"):
        game_batch.set_attr("difficulty", threading.Lock(), [0, 3])
    game_batch.step(ZEROS)
    game_batch.close()


# Errors


class Odd(Exception):
    def __init__(self, code: int, text: str) -> None:  # cannot be unpickled: its args are not those of __init__
        super().__init__(f"{code}: {text}")


class Failing(ScriptedEnv):
    """Fails in the way that `fails` says, once; set it to arm."""

    fails: Callable[[], Any] | None = None

    def step(self, actions: Any) -> Any:
        if self.fails is not None:
            fails, self.fails = self.fails, None
            fails()
        return super().step(actions)


def divide() -> None:
    raise ZeroDivisionError("no such number")


def odd() -> None:
    raise Odd(7, "odd")


def test_an_exception_comes_back_as_it_is_with_the_worker_s_traceback() -> None:
    game_batch = make(Failing)
    begin(game_batch)
    game_batch.set_attr("fails", divide, [2])
    with pytest.raises(ZeroDivisionError, match="no such number") as caught:
        game_batch.step(ZEROS)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert re.search(
        r"in worker 1 \(games 2 to 3\)[\s\S]*in step[\s\S]*in divide[\s\S]*no such number", str(caught.value.__cause__)
    )
    again, here = begin(game_batch), make(workers=0)
    np.testing.assert_equal(again.observations[..., 3:], begin(here).observations[..., 3:])
    assert game_batch.step(ZEROS).rewards.all(), "the workers live on"
    game_batch.close()


def test_the_vec_env_can_be_reset_and_closed_after_an_exception() -> None:
    from adapters import make_sb3_env

    venv = make_sb3_env("random", env=Failing, num_games=4, num_workers=2)
    venv.reset()
    venv.set_attr("fails", divide, indices=1)
    with pytest.raises(ZeroDivisionError):
        venv.step(np.zeros(4, dtype=np.int64))
    assert not venv.has_attr("no_such_attribute")
    venv.reset()
    venv.step(np.zeros(4, dtype=np.int64))
    started = processes(venv.game_batch)
    started[0].kill()
    with pytest.raises(RuntimeError, match="was killed by signal 9"):
        venv.step(np.zeros(4, dtype=np.int64))
    with pytest.raises(RuntimeError, match="make a new environment"):
        venv.reset()
    venv.close()
    assert all_ended(started)


def test_an_exception_that_cannot_be_pickled_is_named() -> None:
    game_batch = make(Failing)
    begin(game_batch)
    game_batch.set_attr("fails", odd, [0])
    with pytest.raises(RuntimeError, match=r"worker 0 \(games 0 to 1\): Odd: 7: odd") as caught:
        game_batch.step(ZEROS)
    assert "in odd" in str(caught.value.__cause__)
    game_batch.close()


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"worker 1 \(games 2 to 3\) was killed by signal 9"),
        (lambda: sys.exit(3), r"worker 1 \(games 2 to 3\) ended with exit code 3"),
        (lambda: os._exit(0), r"worker 1 \(games 2 to 3\) ended with exit code 0"),
    ],
)
def test_a_worker_that_ends_is_one_clear_error(ending: Any, message: str) -> None:
    game_batch = make(Failing)
    begin(game_batch)
    started = processes(game_batch)
    game_batch.set_attr("fails", ending, [3])
    with pytest.raises(RuntimeError, match=message):
        game_batch.step(ZEROS)
    assert all_ended(started)
    for call in (lambda: game_batch.step(ZEROS), lambda: game_batch.get_attr("difficulty", [0])):
        with pytest.raises(RuntimeError, match="have been stopped: make a new environment"):
            call()
    game_batch.close()


def test_a_worker_killed_between_steps_is_one_clear_error() -> None:
    game_batch = make()
    begin(game_batch)
    processes(game_batch)[0].kill()
    with pytest.raises(RuntimeError, match=r"worker 0 \(games 0 to 1\) was killed by signal 9"):
        game_batch.step(ZEROS)
    assert all_ended(processes(game_batch))


def test_what_a_factory_raises_is_raised_here_and_the_other_workers_end(tmp_path: Path) -> None:
    def factory() -> Any:
        try:
            (tmp_path / "one").touch(exist_ok=False)
        except FileExistsError:
            raise LookupError("no second one") from None
        return ScriptedEnv()

    with pytest.raises(LookupError, match="no second one"):
        make(factory, games=2)
    with pytest.raises(ValueError, match="limti"):
        make(limti=3)


def test_a_factory_that_cannot_be_pickled_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"cannot be pickled \(TypeError.*lock.*inside the function.*num_workers=0"):
        make(lambda: ScriptedEnv(limit=lock))


def test_more_workers_than_games_are_refused() -> None:
    with pytest.raises(ValueError, match="num_workers must be <= num_games, got 5 workers for 4 games"):
        make(workers=5)


def test_games_that_differ_between_workers_are_refused() -> None:
    factories = [ScriptedEnv, lambda: ScriptedEnv(num_agents=3)]
    with pytest.raises(ValueError, match=r"must be alike, but worker 1 \(games 1 to 1\)"):
        SuperSuitGameBatch(factories, num_workers=2)


class Alarm(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="interrupts by a timer")
def test_an_interrupted_step_leaves_the_workers_usable() -> None:
    def ring(*_: Any) -> None:
        raise Alarm

    game_batch = make(Failing)
    begin(game_batch)
    game_batch.set_attr("fails", lambda: time.sleep(0.6), [0, 2])
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            game_batch.step(ZEROS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert game_batch.env_method("describe", [3, 0], "x") == ["x-1", "x-1"]
    assert begin(game_batch).restarted.all()
    assert game_batch.step(ZEROS).rewards.all()
    game_batch.close()


# What a worker is


def test_a_worker_inherits_path_directory_and_registered_environments(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "my_game.py").write_text(
        "from tests.support.scripted_env import ScriptedEnv\n\n"
        "class MyEnv(ScriptedEnv):\n    def where(self):\n        import os\n"
        "        return os.getcwd(), __file__\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pettingzoo.env_registry.registration, "parallel_registry", {})
    pettingzoo.register("parallel", "my_game_v0", entry_point="my_game:MyEnv")
    game_batch = make("my_game_v0")
    assert game_batch.env_method("where", [3]) == [(str(tmp_path), str(tmp_path / "my_game.py"))]
    game_batch.close()


def test_what_environments_print_and_ask_disturbs_nothing(capfd: Any) -> None:
    class Talks(ScriptedEnv):
        def step(self, actions: Any) -> Any:
            print("from python")
            os.system("echo from a program")
            try:
                input()
            except EOFError:
                print("nobody answers")
            return super().step(actions)

    game_batch = make(Talks, games=2)
    game_batch.reset([1, 2], [{}] * 2)
    game_batch.step(ZEROS[:2])
    game_batch.close()
    out, err = capfd.readouterr()
    assert out == ""
    assert [err.count(text) for text in ("from python", "from a program", "nobody answers")] == [2, 2, 2]


def test_shared_memory_leaves_no_file_and_does_without_dev_shm(tmp_path: Path, monkeypatch: Any) -> None:
    real, used = worker_process._map_new_file, []

    def full(directory: str, size: int) -> Any:
        used.append(directory)
        if directory == "/dev/shm":
            raise OSError(28, "No space left on device")
        return real(directory, size)

    monkeypatch.setattr(worker_process, "_map_new_file", full)
    monkeypatch.setattr(worker_process.tempfile, "tempdir", str(tmp_path))
    game_batch = make(DictEnv)
    assert used == ["/dev/shm", str(tmp_path)]
    assert list(tmp_path.iterdir()) == []
    assert (begin(game_batch).observations["numbers"][:, 0, 1] == 0).all()
    game_batch.close()


# The end


class Marks(ScriptedEnv):
    """Leaves a file when it is closed."""

    def close(self) -> None:
        super().close()
        Path(os.environ["MARKS"], f"{os.getpid()}-{id(self)}-{self.closed}").touch()


@pytest.mark.parametrize("how", ["close", "collected"])
def test_close_reaches_every_environment_once_and_ends_the_processes(how: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MARKS", str(tmp_path))
    game_batch = make(Marks, workers=3)
    started = processes(game_batch)
    begin(game_batch)
    if how == "close":
        game_batch.close()
        game_batch.close()
    else:
        del game_batch
        gc.collect()
    assert all_ended(started)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 4
    assert all(mark.name.endswith("-1") for mark in tmp_path.iterdir())


def test_close_raises_what_an_environment_raises_and_ends_the_processes_all_the_same() -> None:
    class Fails(ScriptedEnv):
        def close(self) -> None:
            raise OSError("display lost")

    game_batch = make(Fails)
    with pytest.raises(OSError, match="display lost"):
        game_batch.close()
    assert all_ended(processes(game_batch))
    game_batch.close()


def sleep() -> None:
    time.sleep(3600)


def fork_and_sleep() -> None:
    os.fork()
    sleep()


@needs_proc
@pytest.mark.parametrize("how", ["hangs", "hangs in a fork, too", "is stopped", "is stopped and takes no more"])
def test_close_ends_a_worker_that_does_not_answer(how: str, tmp_path: Path, monkeypatch: Any) -> None:
    class Env(Failing, Marks):
        pass

    def ring(*_: Any) -> None:
        raise Alarm

    monkeypatch.setenv("MARKS", str(tmp_path))
    monkeypatch.setattr(parent_side, "PATIENCE", 1.5)
    game_batch = make(Env, workers=2)
    begin(game_batch)
    started = processes(game_batch)
    before = signal.signal(signal.SIGALRM, ring)
    if "stopped" in how:
        os.kill(started[0].pid, signal.SIGSTOP)
    else:
        game_batch.set_attr("fails", fork_and_sleep if "fork" in how else sleep, [1])
    if how != "is stopped":
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Alarm):
                game_batch.set_attr("difficulty", bytes(10**7), [0]) if "takes" in how else game_batch.step(ZEROS)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    with pytest.warns(
        UserWarning, match=r"worker 0 \(games 0 to 1\) was killed by signal 9 .* without closing its environments"
    ):
        game_batch.close()
    game_batch.close()
    assert [process.returncode for process in started] == [-9, 0]
    assert len(list(tmp_path.iterdir())) == 2, "the other worker closed its own"
    deadline = time.monotonic() + 5.0
    while marked(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked(str(tmp_path)) == []


SCRIPT = """
import os, signal, sys, threading, time, warnings
import numpy as np
from adapters.games.supersuit import SuperSuitGameBatch
from tests.support.scripted_env import ScriptedEnv

print("the script runs", flush=True)

class Env(ScriptedEnv):
    def step(self, actions):
        if self.difficulty == 99:
            time.sleep(3600)
        return super().step(actions)

    def close(self):
        open(os.path.join(os.environ["MARKS"], f"{os.getpid()}-{id(self)}"), "x").close()

def make():
    return Env()

game_batch = SuperSuitGameBatch([make] * 4, num_workers=2)
game_batch.reset([None] * 4, [{}] * 4)
game_batch.step(np.zeros((4, 4), int))
"""

ENDINGS = {
    "never closed": ("", 0, ""),
    "closed twice": ("game_batch.close(); game_batch.close()", 0, ""),
    "unhandled exception": ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
    "sys.exit in a thread's midst": ("threading.Thread(target=time.sleep, args=(0.2,)).start(); sys.exit(4)", 4, ""),
    "os._exit": ("os._exit(5)", 5, ""),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
    "terminated": ("os.kill(os.getpid(), signal.SIGTERM)", -15, ""),
    "interrupted": ("os.killpg(0, signal.SIGINT); time.sleep(9)", -2, "KeyboardInterrupt"),
    "interrupted with its workers": (
        "[os.kill(worker.process.pid, 2) for worker in game_batch._games._workers]; os.kill(os.getpid(), 2); time.sleep(9)",
        -2,
        "KeyboardInterrupt",
    ),
    "a fork that lives on": ("os.fork() or (time.sleep(2), os._exit(0)); game_batch.close()", 0, ""),
    "a fork that ends first": (  # and would say of each worker that it still runs, which is not its to know
        "pid = os.fork(); pid or (warnings.simplefilter('ignore'), sys.exit()); os.wait(); game_batch.step(np.zeros((4, 4), int))",  # noqa: E501
        0,
        "",
    ),
    "killed in a step that never ends": (
        "game_batch.set_attr('difficulty', 99, [1]); threading.Timer(0.5, os.kill, (os.getpid(), 9)).start();"
        "game_batch.step(np.zeros((4, 4), int))",
        -9,
        "",
    ),
}


def marked(token: str) -> list[int]:
    """Processes that have this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and token.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@needs_proc
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_ending_of_a_script_leaves_a_process(ending: str, tmp_path: Path) -> None:
    code, expected, says = ENDINGS[ending]
    (tmp_path / "script.py").write_text(SCRIPT + code)
    (tmp_path / "marks").mkdir()
    env = {**os.environ, "MARKS": str(tmp_path / "marks"), "PYTHONPATH": str(ROOT)}
    begun = time.monotonic()
    with open(tmp_path / "out", "w+") as out, open(tmp_path / "err", "w+") as err:
        command = [sys.executable, "-W", "error", str(tmp_path / "script.py")]
        run = subprocess.Popen(command, env=env, stdout=out, stderr=err, start_new_session=True)
        assert run.wait(timeout=30) == expected
        patience = worker_process.PATIENCE * ("never ends" in ending) + 3.0
        deadline = time.monotonic() + patience
        while marked(str(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert marked(str(tmp_path)) == []
        assert time.monotonic() - begun < 20
        out.seek(0)
        err.seek(0)
        printed, complaints = out.read(), err.read()
    assert printed == "the script runs\n", "once, and not by a worker"
    assert says in complaints if says else complaints == ""
    assert complaints.count("Traceback") == bool(says)
    assert len(list((tmp_path / "marks").iterdir())) == (2 if "never ends" in ending else 4)


@needs_proc
def test_a_worker_has_no_torch_and_is_small_even_under_sb3(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import stable_baselines3\nimport sys\nfrom adapters import make_sb3_env\nfrom snake_pz.env import SnakeParallelEnv\n"
        "class Env(SnakeParallelEnv):\n    def look(self):\n        status = open('/proc/self/status').read()\n"
        "        return int(status.split('VmRSS:')[1].split()[0]) // 1024, sorted(sys.modules)\n"
        "venv = make_sb3_env('random', env=Env, num_games=4, num_workers=2)\nvenv.reset()\n"
        "for _ in range(50): venv.step(__import__('numpy').zeros(4, int))\n"
        "for megabytes, modules in venv.env_method('look'):\n    print(megabytes, *modules)\n"
    )
    warm = make(SnakeParallelEnv, games=1, workers=0)  # compiling, once for all, takes more memory
    begin(warm)
    warm.step(ZEROS[:1])
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "script.py")]
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    for line in result.stdout.splitlines():
        megabytes, *modules = line.split()
        assert int(megabytes) <= 200
        assert not {"torch", "stable_baselines3", "pandas", "matplotlib", "pygame"} & set(modules)
    assert len(result.stdout.splitlines()) == 4
