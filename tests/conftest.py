"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# Numba compiles on first use, so examples have no deadline; the same examples on every run, so that a red one stays red.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")
