"""What kernels are made with: the functions that numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsInt, TypeVar, cast

import numpy as np
from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

int64 = cast("Callable[[SupportsInt], int]", np.int64)
"""An element of an array as the `int` that kernels compute with, so that a helper is compiled for one type only."""


def kernel(function: Function) -> Function:
    """Compile a function at its first call for each set of argument types; it runs without the interpreter's lock."""
    return cast("Function", njit(cache=True, nogil=True)(function))
