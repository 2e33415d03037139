"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows open where nobody has to look
os.environ.setdefault("OMP_NUM_THREADS", "1")  # networks this small are slower on more threads

# A shell that starts tests in the background has them ignore SIGINT, and so would every script that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Numba compiles on first use, so examples have no deadline; the same examples on every run, so that a red one stays red.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A `tests.support.toys.Trained`: small models of every algorithm and their checkpoints."""
    from tests.support.toys import Trained  # which loads torch

    return Trained(tmp_path_factory.mktemp("checkpoints"))
