"""A process set up to learn on a CPU has one torch thread and keeps the memory it has freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import torch
from adapters.tuning import tune_process

def faults():
    made = torch.ones(1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        made = (made * 2).relu() - made.sigmoid().exp()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(2)
plain = faults()
tune_process()
faults()
print(torch.get_num_threads(), plain, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc's malloc is told to keep memory")
def test_it_keeps_freed_memory_and_has_one_thread() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    threads, plain, tuned = map(int, done.stdout.split())
    assert threads == 1
    assert plain > 10_000  # of 4 kB each: 4 MB for every one of some tensors
    assert tuned < plain / 20
