"""The interface of the scheduler for plugins: the second argument of their factories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Protocol

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field

__timeout_shield__ = True

BindingFollower = Callable[[Binding | None, Binding | None], None]
"""Takes a binding before and after a change; None where it does not exist, twice if all bindings were replaced."""
ClusterFollower = Callable[[Cluster | None, Cluster | None], None]
"""Takes a cluster before and after a change, None where it does not exist."""


class WaitingBinding(Protocol):
    """A binding that waits at Permit.

    Attributes:
        binding: The binding as it was when it was scheduled.
        pending: The names of the plugins that returned WAIT and have not allowed it yet.
        workload: The metadata of its workload, as ``Handle.workload``.
    """

    @property
    def binding(self) -> Binding: ...

    @property
    def pending(self) -> Sequence[str]: ...

    @property
    def workload(self) -> Workload | None: ...

    def allow(self, plugin: str) -> None:
        """Allow the binding on behalf of a plugin. It continues when no plugin is ``pending``."""

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse the binding on behalf of a plugin."""


class Handle(Protocol):
    """The scheduler for plugins. Methods are cheap and may be called at any extension point."""

    @property
    def profile(self) -> str:
        """The scheduler name of the plugin's profile."""

    @property
    def shared(self) -> MutableMapping[str, object]:
        """What the plugins of all profiles have in common, by the name of the plugin: for counts of the whole process."""

    @property
    def is_dry_run(self) -> bool:
        """Whether a command asks, which follows no changes: nothing is known of what this plugin did in the scheduler."""

    def now(self) -> float:
        """Return the time in seconds since 1970. Tests can set it."""

    def snapshot(self) -> Snapshot:
        """Return the current snapshot of all clusters."""

    def bindings(self) -> Iterable[Binding]:
        """Return all ResourceBindings and ClusterResourceBindings, those of other schedulers included.

        They are as the API server has them. A placement that is decided and not yet written is passed to
        ``add_binding`` (``PreFilterExtensions``).
        """

    def binding(self, key: BindingKey) -> Binding | None:
        """Return a binding, None if it is unknown."""

    def follow_bindings(self, follower: BindingFollower) -> None:
        """Call a method of the plugin, or of a part of it, after every change of a binding, until its object is gone.

        So an index over all bindings costs no call of the plugin any time. The method is called on the event loop, outside of
        the plugin's timeout, for bindings of all schedulers. It must return within microseconds, and not raise.
        """

    def follow_clusters(self, follower: ClusterFollower) -> None:
        """Call a method after every change of a cluster, as ``follow_bindings`` does."""

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the metadata of the workload of a binding as it is now, for plugins with ``needs_workload = True``.

        Known are the workloads of bindings with ``spec.placement`` whose profile has a plugin with ``needs_workload``.
        The result is None for other bindings, and for a workload that was deleted or cannot be read.
        At extension points all workloads have been read that existed when the scheduler or the plugin started, unless
        the API server did not return them within 5 seconds. ``run`` and ``__init__`` may be called earlier.

        Raises:
            UndeclaredWorkloadError: No plugin of this profile declares that it needs the workload.
        """

    def activate(self, key: BindingKey) -> None:
        """Enqueue a binding at once, also if it is gated or waits for a retry."""

    def enqueue(self, key: BindingKey) -> None:
        """Enqueue a binding at once if it waits for a retry; PreEnqueue plugins are asked, those that gate it included."""

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the bindings that wait at Permit."""

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record an Event on a binding and on its template."""


class KnownBindings(Protocol):
    """Bindings by key, as a mapping has them."""

    def get(self, key: BindingKey, /) -> Binding | None: ...

    def values(self) -> Iterable[Binding]: ...


def _do_nothing(*_: object) -> None:
    """Follow, activate and record nothing: there is no scheduler."""


class PluginHandle(Struct, frozen=True):
    """The handle of the plugins of a profile: of a scheduler, of a dry run, or of a command, which give what it shows."""

    profile: str = DEFAULT_SCHEDULER_NAME
    snapshot: Callable[[], Snapshot] = Snapshot
    known: KnownBindings = field(default_factory=dict[BindingKey, Binding])
    now: Callable[[], float] = lambda: 0.0
    stored_workload: Callable[[str, BindingKey], Workload | None] = lambda _profile, _key: None
    at_permit: Callable[[], Iterable[WaitingBinding]] = tuple
    follow_bindings: Callable[[BindingFollower], None] = _do_nothing
    follow_clusters: Callable[[ClusterFollower], None] = _do_nothing
    activate: Callable[[BindingKey], None] = _do_nothing
    record: Callable[[Binding, bool, str, str], None] = _do_nothing
    enqueue: Callable[[BindingKey], None] = _do_nothing
    shared: MutableMapping[str, object] = field(default_factory=dict[str, object])

    @property
    def is_dry_run(self) -> bool:
        """Whether nobody enqueues what plugins enqueue."""
        return self.enqueue is _do_nothing

    def bindings(self) -> Iterable[Binding]:
        """Return the given bindings."""
        return iter(self.known.values())

    def binding(self, key: BindingKey) -> Binding | None:
        """Return one of the given bindings, None if there is none with this key."""
        return self.known.get(key)

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the given workload of a binding; UndeclaredWorkloadError if no plugin needs it."""
        return self.stored_workload(self.profile, key)

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the given bindings that wait at Permit."""
        return tuple(self.at_permit())

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record an Event on a binding and on its template, if there is a scheduler and it leads."""
        self.record(binding, warning, reason, text)
