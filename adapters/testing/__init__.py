"""The contract of a curried VecEnv as a test, and the reference implementation it compares with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from adapters.testing.contract import curried_env_test

__all__ = ["curried_env_test"]

__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"contract": ["curried_env_test"]})
