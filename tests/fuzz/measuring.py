"""The budget of examples, and the CPU time of the code that reads an input."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from hypothesis import HealthCheck, Phase, settings

EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""Examples per test of a long run, 0 for the fixed examples of CI."""

LIMIT: Final = 0.1
"""Seconds that the event loop may be blocked by one input."""
ALLOWANCE: Final = 5.0
"""Factor of the limit for slow machines."""
_HANG_SECONDS: Final = 10.0

slowest: dict[str, tuple[float, str]] = {}
"""By area: the CPU time of its slowest input, and the start of that input."""
counts: dict[str, int] = {}
"""By area: the number of inputs."""


class HangError(BaseException):
    """The input has taken seconds of CPU time."""


def fuzzed(examples: int) -> Callable[[Any], Any]:
    """Return the settings of a test with so many fixed examples, or with ``EXAMPLES`` random ones."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def measured(area: str, given: object, limit: float = LIMIT) -> Iterator[None]:
    """Fail if the body takes more CPU time of this thread than the limit in seconds, and interrupt a hang."""

    def hang(number: int, frame: FrameType | None) -> None:
        raise HangError(f"{area}: more than {_HANG_SECONDS:g} s for {_shown(given)}")

    before = signal.signal(signal.SIGVTALRM, hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANG_SECONDS)
    gc.disable()  # the heap is that of the tests
    start = time.thread_time()
    try:
        yield
    finally:
        seconds = time.thread_time() - start
        gc.enable()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        counts[area] = counts.get(area, 0) + 1
        if seconds > slowest.get(area, (0.0, ""))[0]:
            slowest[area] = (seconds, _shown(given))
    assert seconds < limit * ALLOWANCE, f"{area}: {seconds * 1000:.0f} ms for {_shown(given)}"


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 300 else f"{text[:297]}..."
