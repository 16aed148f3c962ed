"""Call one function for many items at once, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_parallel(act: Callable[[T], object], items: Sequence[T], *, workers: int = 8) -> None:
    """Call act for every item, several at a time; the first failure is raised when all have ended."""
    if items:
        with ThreadPoolExecutor(max_workers=min(workers, len(items))) as pool:
            list(pool.map(act, items))
