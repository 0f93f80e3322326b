"""Threads share one heap, so that one can use the memory that another has freed."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from tests.support.deadlines import HANG_TIMEOUT_S

_THREADS = """
import ctypes, sys, threading
from deskwire.program.process import share_one_heap

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "one":
    share_one_heap()
together = threading.Barrier(3)

def take():
    together.wait()
    libc.malloc(1000)
    together.wait()

threads = [threading.Thread(target=take) for _ in range(2)]
for thread in threads:
    thread.start()
together.wait()
together.wait()
for thread in threads:
    thread.join()
libc.malloc_stats()
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="the C library is not glibc")
def test_threads_take_memory_from_one_heap() -> None:
    heaps = {}
    for wanted in ("one", "many"):
        command = [sys.executable, "-c", _THREADS, wanted]
        told = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=HANG_TIMEOUT_S
        ).stderr
        heaps[wanted] = told.count("Arena ")
    assert heaps["one"] == 1
    assert heaps["many"] > 1, "else this tests nothing"
