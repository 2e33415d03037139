"""What loads quickly: importing the packages, and showing the help."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adapters.command import main
from snake_pz.bots import BOTS
from snake_pz.bots.kernels import KERNELS

HEAVY = {"numba", "torch", "stable_baselines3", "pygame", "matplotlib"}


def loaded(code: str) -> set[str]:
    """Which modules a new process has loaded after this code."""
    code = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize(
    "code",
    [
        "import snake_pz",
        "from snake_pz import BOTS, RewardWeights, Rules",
        "import adapters",
        "from adapters.opponents import OpponentPool, frozen, mixture",
        "from adapters.opponents.parse import parse; parse('greedy'); parse('searcher:2ms'); parse('some.zip')",
    ],
)
def test_imports_load_nothing_heavy(code: str) -> None:
    assert not loaded(code) & HEAVY


def test_bots_are_served_without_torch() -> None:
    code = (
        "import adapters.serving.battlesnake_server; from adapters import MoveMaker; from snake_pz import Rules; "
        "MoveMaker('greedy').prepare(Rules.battlesnake())"
    )
    assert not loaded(code) & (HEAVY - {"numba"})


def test_help_loads_neither_the_game_nor_numpy() -> None:
    code = "sys.argv = ['snake-pz', '--help']; from adapters.command.main import app; app()"
    assert not loaded(code) & (HEAVY | {"snake_pz", "pettingzoo", "numpy"})


def test_the_names_of_bots_are_those_that_there_are() -> None:
    assert (*KERNELS, "searcher") == BOTS
    assert f"({', '.join(BOTS)})" in main.WHO
