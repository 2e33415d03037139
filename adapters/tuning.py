"""How a process that learns on a CPU is set up: one torch thread, and memory that is kept."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h, see mallopt(3)
_LARGEST_BLOCK = 1 << 25  # bytes; glibc takes no larger threshold
_NEVER = (1 << 31) - 1  # bytes; the largest int


def tune_process() -> None:
    """Make networks as small as those of `adapters.networks` quick on a CPU; call it once, before learning.

    Torch gets one thread: more cost more than they bring at such sizes, and far more where cores are shared. And on Linux with
    glibc freed memory stays with the process: an update's tensors, some megabytes each, would else be handed back to the system
    after every operation and fetched anew, page by page, which takes a quarter of the time of PPO's updates. The process then
    keeps as much memory as it ever needed at a time.
    """
    import torch

    torch.set_num_threads(1)
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)
