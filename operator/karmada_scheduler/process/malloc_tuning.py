"""Makes glibc return freed memory to the kernel.

glibc raises the threshold from which a block is mapped alone, and the size of the free end of the heap that it keeps,
whenever a mapped block is freed. After one list of bindings, blocks of up to 32 MiB come from the heap, and up to 64 MiB
of it stay when they are free.

docs/decisions/0036-malloc.md has the measurements.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_TRIM_THRESHOLD: Final = 1 << 20
"""Bytes of the free end of the heap. With any fixed value glibc leaves the other threshold at its 128 KiB, too."""

_OWN_SETTINGS: Final = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Environment variables with which whoever starts the process sets the thresholds."""


def return_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Fix both thresholds; return whether that was done.

    Nothing is done if the environment has settings of malloc, or if the C library is not glibc.
    """
    if any(name in environment for name in _OWN_SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return bool(mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD))
