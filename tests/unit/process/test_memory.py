"""Free memory goes back to the operating system."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path

import pytest

from karmada_scheduler.process.memory import release_free

_BLOCK = 100_000  # below the threshold of mmap, so that blocks are in the heap
_BLOCKS = 300


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_the_free_part_of_the_heap_is_returned() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    blocks = [libc.malloc(_BLOCK) for _ in range(_BLOCKS)]
    for block in blocks:
        libc.memset(block, 1, _BLOCK)
    last = blocks.pop()  # keeps the heap from shrinking by itself
    for block in blocks:
        libc.free(block)
    before = _resident()
    release_free()
    for thread in threading.enumerate():
        if thread.name == "release-memory":
            thread.join(5)
    assert before - _resident() > _BLOCK * _BLOCKS / 2
    libc.free(last)
