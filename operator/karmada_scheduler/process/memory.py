"""Returns free memory to the operating system."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache


def release_free() -> None:
    """Return the free pages of malloc's heap, which keeps up to 64 MiB otherwise; without glibc, do nothing.

    It takes some milliseconds in a thread of its own, without the GIL.
    """
    trim = _malloc_trim()
    if trim is not None:
        threading.Thread(target=trim, args=(0,), name="release-memory", daemon=True).start()


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
