"""The garbage collector, which traverses every module and every object of a large fleet again and again; free memory."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    import ctypes  # commands start without it

    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found


@contextmanager
def paused_collection() -> Iterator[None]:
    """Run a block, such as the initial lists, without collections, then ``freeze_objects``."""
    with no_collection():
        yield
    freeze_objects()


def freeze_objects() -> None:
    """Exclude all present objects from later collections, and collect new ones rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


@contextmanager
def no_collection() -> Iterator[None]:
    """Do not collect garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def collection_of_new_objects() -> Iterator[None]:
    """Collect only what is made in the block: it may run for long, and what was read before it stays."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
