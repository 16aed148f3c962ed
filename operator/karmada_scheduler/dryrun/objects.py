"""The objects that plugins see in a dry run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.dryrun.state import SimulatedBindings, SimulatedHandle
from karmada_scheduler.dryrun.workloads import StoredWorkloads, Workloads
from karmada_scheduler.framework.snapshot import Snapshot


class ShownObjects:
    """The objects that plugins see through their handles, until others are shown.

    Attributes:
        snapshot: The clusters.
        bindings: The bindings, with the decisions so far.
        workloads: The workloads of all bindings.
        stored_workloads: Those that plugins of a profile may read.
    """

    def __init__(self, workloads: Workloads, *, clock: Callable[[], float] = time.time) -> None:
        """Show no clusters and no bindings; ``clock`` is that of the handles, in seconds since 1970."""
        self.snapshot = Snapshot()
        self.bindings = SimulatedBindings(())
        self.workloads = workloads
        self.stored_workloads = StoredWorkloads(workloads, self.bindings.get)
        self._clock = clock

    def show(self, snapshot: Snapshot, bindings: Iterable[Binding]) -> None:
        """Show other clusters and bindings; no binding waits at Permit."""
        self.snapshot = snapshot
        self.bindings.replace(bindings)

    def handle_for(self, profile: str) -> SimulatedHandle:
        """Return the handle of the plugins of a profile."""
        return SimulatedHandle(
            profile, lambda: self.snapshot, self.bindings, self._clock, self.stored_workloads.for_profile
        )
