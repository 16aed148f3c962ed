"""``explain --watch``: the state again whenever it changes, until the binding is placed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.state import headline

PAUSE_SECONDS: Final = 2.0
"""Time between two readings; each lists the clusters."""


def watched(
    read: Callable[[], Explanation],
    show: Callable[[str], object],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Read until the state is good, and show each state that differs from the one before.

    Args:
        read: Returns the explanation of the binding as it is.
        show: Gets one line for each change.
        seconds: After this time the watching ends, too.
        clock: For this time.
        now: For the lines.
        sleep: Waits between two readings.
    """
    end = clock() + seconds
    shown = ""
    while True:
        found = read()
        line = headline(found.state)
        if line != shown:
            show(f"{now().strftime('%H:%M:%S')}  {line}")
            shown = line
        if found.is_good or clock() >= end:
            return
        sleep(min(PAUSE_SECONDS, max(0.0, end - clock())))
