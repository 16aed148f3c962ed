"""PrioritySort: order the queue by priority, then by time."""

from __future__ import annotations

from karmada_scheduler.framework import QueuedBinding


class PrioritySort:
    """Sort as upstream's queue does under the gate PriorityBasedScheduling."""

    name = "PrioritySort"

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        """Return whether ``a`` has a higher priority, or the same priority and an earlier time."""
        return a.default_rank < b.default_rank

    def sort_key(self, queued: QueuedBinding, /) -> tuple[int, float]:
        """Return the key of that order."""
        return queued.default_rank
