"""Whether Karmada's graceful-eviction controller is at work, which ends the eviction tasks of graceful moves.

It stamps a new task within seconds. If it does not run, tasks stay for ever, and so do the old copies. It leaves alone
bindings that are being deleted, so their tasks say nothing.

Source: karmada v1.18.2 pkg/controllers/gracefuleviction/rb_graceful_eviction_controller.go and evictiontask.go.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import KeysView, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Final

from karmada_scheduler.api.binding import BindingKey, GracefulEvictionTask

log = logging.getLogger(__name__)

UNSTAMPED_SECONDS: Final = 60.0
"""A task that is not stamped after this time counts as one that nobody stamps."""
UNSTAMPED_BINDINGS: Final = 2
"""So many bindings with such tasks show that the controller does not run. One of them alone may have a problem of its own."""
PROBE_SECONDS: Final = 600.0
"""After this time a task is written all the same, to see whether it is stamped; the pause doubles with each such task."""
MOST_PROBE_SECONDS: Final = 86_400.0


class TaskStamps:
    """The tasks of a profile that are not stamped, and when the last stamp was seen."""

    def __init__(self, profile: str) -> None:
        """Start without tasks; ``profile`` is the scheduler name, for messages."""
        self._profile = profile
        self._since: dict[BindingKey, float] = {}
        self._unstamped: list[tuple[float, BindingKey]] = []
        self._last_stamp = -math.inf
        self._last_written = -math.inf
        self._pause = PROBE_SECONDS
        self._was_off = False
        self._late = 0

    def clear(self) -> None:
        """Forget all tasks."""
        self._since.clear()
        self._unstamped.clear()
        self._last_stamp = self._last_written = -math.inf

    def known(self) -> KeysView[BindingKey]:
        """Return a live view of the bindings with tasks that are not stamped."""
        return self._since.keys()

    def update(
        self, key: BindingKey, tasks: Sequence[GracefulEvictionTask], *, since: float, now: float
    ) -> None:
        """Replace the tasks of a binding.

        Args:
            key: The binding.
            tasks: Those that this profile has written; none for a binding that is being deleted.
            since: Since when a task counts as not stamped that was not known before, in seconds since 1970.
            now: In seconds since 1970.
        """
        before = self._since.pop(key, None)
        if before is not None:
            del self._unstamped[bisect_left(self._unstamped, (before, key))]
        stamps = [_seconds_of(task.creation_timestamp) for task in tasks if task.creation_timestamp]
        # A stamp from the future, beyond what clocks differ, says nothing.
        known = [min(stamp, now) for stamp in stamps if stamp <= now + UNSTAMPED_SECONDS]
        self._last_stamp = max([self._last_stamp, *known])
        if len(stamps) < len(tasks):
            self._since[key] = since if before is None else before
            insort(self._unstamped, (self._since[key], key))

    def is_off(self, now: float) -> bool:
        """Return whether several tasks were not stamped in time, and none that was written later is stamped."""
        first, last = self._last_stamp - UNSTAMPED_SECONDS, now - UNSTAMPED_SECONDS
        at = itemgetter(0)
        self._late = bisect_left(self._unstamped, last, key=at) - bisect_right(self._unstamped, first, key=at)
        is_off = self._late >= UNSTAMPED_BINDINGS
        if is_off and self._last_written == -math.inf:
            self._last_written = now  # by a former leader, at the latest
        if is_off != self._was_off:
            self._was_off, self._pause = is_off, PROBE_SECONDS
            if is_off:
                log.warning("%s; moves of the profile %s are not graceful", self.reason(), self._profile)
            else:
                log.info(
                    "Eviction tasks are stamped again; moves of the profile %s are graceful", self._profile
                )
        return is_off

    def may_probe(self, now: float) -> bool:
        """Return whether a task is written although the controller is off, to see whether it is stamped."""
        return now >= self._last_written + self._pause

    def reason(self) -> str:
        """Return why tasks are not written."""
        return (
            f"graceful moves are off: Karmada's controller gracefulEviction has not stamped the eviction tasks of "
            f"{self._late} bindings for {UNSTAMPED_SECONDS:g}s"
        )

    def written(self, now: float) -> None:
        """Note that a task is being written."""
        if self._was_off:
            self._pause = min(2 * self._pause, MOST_PROBE_SECONDS)
        self._last_written = now


def _seconds_of(timestamp: str) -> float:
    """Return a time in the API's format in seconds since 1970; infinity for one that cannot be read."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return math.inf
