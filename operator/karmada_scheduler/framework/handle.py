"""What a plugin may ask of the scheduler; handed to its factory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.snapshot import Snapshot


class WaitingBinding(Protocol):
    """A binding that waits at Permit.

    Attributes:
        binding: As it was when it was decided.
        pending: The plugins that made it wait and have not allowed it yet.
        workload: The metadata of its workload, as ``Handle.workload``.
    """

    @property
    def binding(self) -> Binding: ...

    @property
    def pending(self) -> Sequence[str]: ...

    @property
    def workload(self) -> Workload | None: ...

    def allow(self, plugin: str) -> None:
        """Let it go on as far as one plugin is concerned; it goes on when that was the last one."""
        ...

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse it, in the name of a plugin."""
        ...


class Handle(Protocol):
    """The scheduler, as plugins see it. Methods are cheap and may be called from any point."""

    @property
    def profile(self) -> str:
        """The scheduler name of the profile that the plugin was made for."""
        ...

    def now(self) -> float:
        """Return the time in seconds since 1970; tests set it."""
        ...

    def snapshot(self) -> Snapshot:
        """Return all clusters as they are now."""
        ...

    def bindings(self) -> Iterable[Binding]:
        """Return all ResourceBindings and ClusterResourceBindings, whoever schedules them.

        They are as the API server has them: a placement that is decided and not yet written shows in ``add_binding``
        (``PreFilterExtensions``).
        """
        ...

    def binding(self, key: BindingKey) -> Binding | None:
        """Find a binding."""
        ...

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the metadata of the workload of a binding as it is now, for plugins with ``needs_workload = True``.

        Known are the workloads of bindings with ``spec.placement`` whose profile has a plugin with ``needs_workload``.
        None for other bindings, and for a workload that was deleted or cannot be read.
        At the extension points, all that existed when the scheduler or the plugin started has been read, unless the
        API server did not return it within 5 seconds; ``run`` and ``__init__`` may come earlier.

        Raises:
            UndeclaredWorkloadError: No plugin of this profile declares that it needs the workload.
        """
        ...

    def activate(self, key: BindingKey) -> None:
        """Make a binding due at once, wherever it is parked."""
        ...

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the bindings that wait at Permit."""
        ...

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record an Event on a binding and on its template."""
        ...


@dataclass(frozen=True, slots=True)
class DetachedHandle:
    """The handle of plugins that run without a scheduler: in tests and in ``simulate``."""

    profile: str = DEFAULT_SCHEDULER_NAME
    snapshot_source: Callable[[], Snapshot] = Snapshot
    known: Mapping[BindingKey, Binding] = field(default_factory=dict)
    clock: Callable[[], float] = lambda: 0.0
    stored_workload: Callable[[str, BindingKey], Workload | None] = lambda _profile, _key: None

    def now(self) -> float:
        """Return the time of the injected clock."""
        return self.clock()

    def snapshot(self) -> Snapshot:
        """Return the given clusters."""
        return self.snapshot_source()

    def bindings(self) -> Iterable[Binding]:
        """Return the given bindings."""
        return tuple(self.known.values())

    def binding(self, key: BindingKey) -> Binding | None:
        """Find one of the given bindings."""
        return self.known.get(key)

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the given workload of a binding."""
        return self.stored_workload(self.profile, key)

    def activate(self, key: BindingKey) -> None:
        """Do nothing: there is no queue."""

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return nothing: nobody waits."""
        return ()

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Drop the Event: nobody reads it."""
