"""What the tests of plugins share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_callbacks_of_the_garbage_collector() -> Iterator[None]:
    """Take out the callback of hypothesis: an alarm in it is an error that Python ignores, and pytest reports."""
    before = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = before
