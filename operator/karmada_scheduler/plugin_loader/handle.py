"""What plugins may ask of a running scheduler; conforms to ``framework.handle.Handle``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.framework.handle import WaitingBinding
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings, WaitingBindingView
from karmada_scheduler.framework.snapshot import Snapshot

__timeout_shield__ = True

Record = Callable[[Binding, bool, str, str], None]
"""Takes a binding, whether it is a warning, the reason and the text."""


class HandleBackend:
    """What the handles of all profiles share; the app connects what exists only while it leads."""

    def __init__(
        self,
        *,
        bindings: BindingCache,
        clusters: ClusterCache,
        waiting: WaitingBindings,
        now: Callable[[], float],
    ) -> None:
        """Start with nobody listening to Events and activations."""
        self.bindings: Final = bindings
        self.clusters: Final = clusters
        self.waiting: Final = waiting
        self.now: Final = now
        self.activate: Callable[[BindingKey], None] = _nobody_activates
        self.record: Record = _nobody_records
        self.stored_workload: Callable[[str, BindingKey], Workload | None] = _no_workload


class PluginHandle:
    """The scheduler as one profile's plugins see it."""

    def __init__(self, profile: str, switchboard: HandleBackend) -> None:
        """Answer for a profile."""
        self._profile = profile
        self._switchboard = switchboard

    @property
    def profile(self) -> str:
        """The profile's scheduler name."""
        return self._profile

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._switchboard.now()

    def snapshot(self) -> Snapshot:
        """Return all clusters as they are now."""
        return self._switchboard.clusters.snapshot()

    def bindings(self) -> Iterable[Binding]:
        """Return all bindings of both kinds."""
        return iter(self._switchboard.bindings)

    def binding(self, key: BindingKey) -> Binding | None:
        """Find a binding."""
        return self._switchboard.bindings.get(key)

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the metadata of the workload of a binding; UndeclaredWorkloadError where no plugin needs it."""
        return self._switchboard.stored_workload(self._profile, key)

    def activate(self, key: BindingKey) -> None:
        """Make a binding due at once."""
        self._switchboard.activate(key)

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the bindings that wait at Permit."""
        return tuple(WaitingBindingView(each, self.workload) for each in self._switchboard.waiting.all())

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record an Event on a binding and on its template; dropped while this process does not lead."""
        self._switchboard.record(binding, warning, reason, text)


def _no_workload(profile: str, key: BindingKey) -> Workload | None:  # noqa: ARG001
    """Return None: nothing is read before the caches are filled."""
    return None


def _nobody_activates(key: BindingKey) -> None:
    """Drop an activation: this process does not schedule."""


def _nobody_records(binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001
    """Drop an Event: this process does not schedule."""
