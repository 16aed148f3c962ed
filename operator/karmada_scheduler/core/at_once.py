"""Runs a coroutine that waits for nothing, without an event loop.

Deciding is written as a coroutine, because extenders, estimators and some plugins are asked over the
network. Where there are none it never waits, and costs what a function costs.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class WaitsError(RuntimeError):
    """A coroutine waits for something, so it needs an event loop; it has been closed."""


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns.

    Raises:
        WaitsError: It waits for something, so it needs an event loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise WaitsError(f"{coroutine!r} waits for something and needs an event loop")
