"""The objects that plugins see in a dry run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.dryrun.frameworks import Frameworks
from karmada_scheduler.dryrun.state import SimulatedBindings
from karmada_scheduler.dryrun.workloads import Workloads
from karmada_scheduler.framework.handle import DetachedHandle
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.framework.workload import UndeclaredWorkloadError


class ShownObjects:
    """The objects that plugins see through their handles, until others are shown.

    Attributes:
        snapshot: The clusters.
        bindings: The bindings, with the decisions so far.
        workloads: The workloads of all bindings.
    """

    def __init__(self, workloads: Workloads, *, clock: Callable[[], float] = time.time) -> None:
        """Show no clusters and no bindings; ``clock`` is that of the handles, in seconds since 1970."""
        self.snapshot = Snapshot()
        self.bindings = SimulatedBindings((), clock)
        self.workloads = workloads
        self._clock = clock
        self._frameworks: Frameworks | None = None

    def show(self, snapshot: Snapshot, bindings: Iterable[Binding]) -> None:
        """Show other clusters and bindings; no binding waits at Permit."""
        self.snapshot = snapshot
        self.bindings.replace(bindings)

    def handle_for(self, profile: str) -> DetachedHandle:
        """Return the handle of the plugins of a profile."""
        return DetachedHandle(
            profile,
            lambda: self.snapshot,
            self.bindings,
            self._clock,
            self._workload_for,
            self.bindings.at_permit,
        )

    def show_workloads_to(self, frameworks: Frameworks) -> None:
        """Show the workloads of bindings to the plugins that need them; before, as these are built, there are none."""
        self._frameworks = frameworks

    def stored_workload(self, key: BindingKey) -> Workload | None:
        """Return the workload of a binding whose profile needs it; None if the files do not have it."""
        binding = self.bindings.get(key)
        if binding is None or binding.spec.placement is None or self._frameworks is None:
            return None
        framework = self._frameworks.of(binding)
        if framework is None or not framework.needs_workload:
            return None
        return self.workloads.of(binding).workload

    def _workload_for(self, profile: str, key: BindingKey) -> Workload | None:
        """Return the workload of a binding for the plugins of a profile.

        Raises:
            UndeclaredWorkloadError: The profile does not declare that it needs workloads.
        """
        if self._frameworks is not None and not self._frameworks.declaring.get(profile, True):
            raise UndeclaredWorkloadError
        return self.stored_workload(key)
