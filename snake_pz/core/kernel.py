"""The decorator of kernels, the functions that numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsInt, TypeVar, cast

import numpy as np
from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

int64 = cast("Callable[[SupportsInt], int]", np.int64)
"""Convert an array element to the int64 that kernels compute with, so that helpers are compiled for one type only."""


def kernel(function: Function) -> Function:
    """Compile a function on its first call with each set of argument types, cached on disk. It runs without the GIL."""
    return cast("Function", njit(cache=True, nogil=True)(function))
