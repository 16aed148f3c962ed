"""The handle of plugins in a running scheduler; implements ``framework.handle.Handle``."""

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
    """The shared part of the handles of all profiles."""

    def __init__(
        self,
        *,
        bindings: BindingCache,
        clusters: ClusterCache,
        waiting: WaitingBindings,
        now: Callable[[], float],
        stored_workload: Callable[[str, BindingKey], Workload | None] = lambda _profile, _key: None,
    ) -> None:
        """Take what handles show; ``activate`` and ``record`` do nothing before ``lead``.

        Args:
            bindings: All bindings.
            clusters: All clusters.
            waiting: The bindings that wait at Permit.
            now: Returns the seconds since 1970.
            stored_workload: Returns the workload of a binding for the plugins of a profile, by its scheduler name.
        """
        self.bindings: Final = bindings
        self.clusters: Final = clusters
        self.waiting: Final = waiting
        self.now: Final = now
        self.stored_workload: Final = stored_workload
        self.activate: Callable[[BindingKey], None] = _do_not_activate
        self.record: Record = _do_not_record

    def lead(self, activate: Callable[[BindingKey], None], record: Record) -> None:
        """Let plugins activate bindings and record Events from now on: this process leads."""
        self.activate, self.record = activate, record


class PluginHandle:
    """The handle for the plugins of one profile."""

    def __init__(self, profile: str, backend: HandleBackend) -> None:
        """Take the scheduler name of the profile."""
        self._profile = profile
        self._backend = backend

    @property
    def profile(self) -> str:
        """The scheduler name of the profile."""
        return self._profile

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._backend.now()

    def snapshot(self) -> Snapshot:
        """Return the current snapshot of all clusters."""
        return self._backend.clusters.snapshot()

    def bindings(self) -> Iterable[Binding]:
        """Return all bindings of both kinds."""
        return iter(self._backend.bindings)

    def binding(self, key: BindingKey) -> Binding | None:
        """Return a binding, None if it is unknown."""
        return self._backend.bindings.get(key)

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the metadata of the workload of a binding; UndeclaredWorkloadError if no plugin needs it."""
        return self._backend.stored_workload(self._profile, key)

    def activate(self, key: BindingKey) -> None:
        """Enqueue a binding at once."""
        self._backend.activate(key)

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the bindings that wait at Permit."""
        return tuple(WaitingBindingView(each, self.workload) for each in self._backend.waiting.all())

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record an Event on a binding and on its template; dropped while this process does not lead."""
        self._backend.record(binding, warning, reason, text)


def _do_not_activate(key: BindingKey) -> None:
    """Do nothing, because this process does not lead."""


def _do_not_record(binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001
    """Do nothing, because this process does not lead."""
