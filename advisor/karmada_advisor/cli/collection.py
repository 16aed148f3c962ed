"""Garbage collection, which traverses every module and every object of a large fleet again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
