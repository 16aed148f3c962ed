"""FreshFirst: schedule what has no place yet before what is decided again. Off by default."""

from __future__ import annotations

from karmada_scheduler.framework import Handle, QueuedBinding
from karmada_scheduler.structs import Struct


class FreshFirst:
    """Order the queue by priority, then unplaced bindings first, then by time."""

    name = "FreshFirst"

    class Args(Struct, frozen=True):
        """The args.

        Attributes:
            delay_seconds: 1 to 3,600. A placed binding is queued as if it had come this much later, so that it is
                overtaken by the unplaced ones of that time and never waits behind others.
        """

        delay_seconds: int = 60

        def __post_init__(self) -> None:
            """Check the range."""
            if not 1 <= self.delay_seconds <= 3600:
                raise ValueError(f"delaySeconds must be 1 to 3600, got {self.delay_seconds}")

    def __init__(self, args: Args, handle: Handle) -> None:  # noqa: ARG002 (plugins with args get both)
        """Take the args of the profile."""
        self._delay = args.delay_seconds

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        """Return whether ``a`` has a higher priority, or the same one and an earlier time with the delay counted."""
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, queued: QueuedBinding, /) -> tuple[int, float]:
        """Return the priority, highest first, and the time with the delay."""
        is_fresh = queued.binding is not None and not queued.binding.spec.clusters
        return -queued.priority, queued.since + (0 if is_fresh else self._delay)
