"""A fake Handle for plugins under test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Self

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework import Result, Snapshot, UndeclaredWorkloadError, WaitingBinding
from karmada_scheduler.framework.handle import BindingFollower, ClusterFollower
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit, WaitingBindingView
from karmada_scheduler.testing.bindings import BindingBuilder


class Recorded(NamedTuple):
    """An Event that a plugin recorded."""

    binding: BindingKey
    warning: bool
    reason: str
    text: str


class FakeHandle:
    """A handle whose bindings, clusters and time are set by the test; it records the calls of plugins.

    ``schedule`` puts its clusters here, and stores its writes here.

    Attributes:
        profile: The scheduler name of the profile.
        clusters: The snapshot that ``snapshot`` returns.
        time: The time that ``now`` returns, in seconds since 1970.
        activated: The keys that plugins activated, in order.
        enqueued: The keys that plugins enqueued, in order.
        events: The Events that plugins recorded, in order.
        shared: What the plugins of all profiles have in common.
        is_dry_run: Whether a command asks.
    """

    def __init__(self, *bindings: BindingBuilder, profile: str = DEFAULT_SCHEDULER_NAME) -> None:
        """Start with these bindings and without clusters."""
        self.clusters = Snapshot()
        self.time = 0.0
        self.activated: list[BindingKey] = []
        self.enqueued: list[BindingKey] = []
        self.events: list[Recorded] = []
        self.shared: dict[str, object] = {}
        self.is_dry_run = False
        self.profile: Final = profile
        self._bindings = {binding.key: binding for binding in (builder.build() for builder in bindings)}
        self._workloads = {builder.build().key: builder.workload_answer.workload for builder in bindings}
        self._declares_workload = True
        self._waiting: dict[BindingKey, PendingPermit] = {}
        self._followers: list[BindingFollower] = []
        self._cluster_followers: list[ClusterFollower] = []

    def at(self, moment: datetime) -> Self:
        """Set the time."""
        self.time = moment.timestamp()
        return self

    def put(self, binding: Binding) -> None:
        """Add or replace a binding."""
        old = self._bindings.get(binding.key)
        self._bindings[binding.key] = binding
        for follower in self._followers:
            follower(old, binding)

    def show(self, clusters: Snapshot) -> None:
        """Replace all clusters, and tell followers about those that differ."""
        before, self.clusters = self.clusters, clusters
        for name in sorted({cluster.name for cluster in (*before, *clusters)}):
            if (old := before.get(name)) != (new := clusters.get(name)):
                for follower in self._cluster_followers:
                    follower(old, new)

    def put_workload(self, key: BindingKey, workload: Workload | None) -> None:
        """Set the workload of a binding; None for an unknown one."""
        self._workloads[key] = workload

    def declare_workload(self, *, needed: bool) -> None:
        """Set whether a plugin of the profile has ``needs_workload``; True until ``schedule`` sets it."""
        self._declares_workload = needed

    def now(self) -> float:
        """Return the time that was set."""
        return self.time

    def snapshot(self) -> Snapshot:
        """Return the clusters."""
        return self.clusters

    def bindings(self) -> Iterable[Binding]:
        """Return the bindings."""
        return tuple(self._bindings.values())

    def binding(self, key: BindingKey) -> Binding | None:
        """Return a binding."""
        return self._bindings.get(key)

    def follow_bindings(self, follower: BindingFollower) -> None:
        """Call a function for each binding that ``put`` adds or replaces."""
        self._followers.append(follower)

    def follow_clusters(self, follower: ClusterFollower) -> None:
        """Call a function for each cluster that ``show`` adds, replaces or removes."""
        self._cluster_followers.append(follower)

    def workload(self, key: BindingKey) -> Workload | None:
        """Return the workload that ``BindingBuilder.workload`` or ``put_workload`` set.

        Raises:
            UndeclaredWorkloadError: No plugin that ``schedule`` was given has ``needs_workload``.
        """
        if not self._declares_workload:
            raise UndeclaredWorkloadError
        return self._workloads.get(key)

    def activate(self, key: BindingKey) -> None:
        """Record the key."""
        self.activated.append(key)

    def enqueue(self, key: BindingKey) -> None:
        """Record the key."""
        self.enqueued.append(key)

    def waiting(self) -> Sequence[WaitingBinding]:
        """Return the bindings that wait at Permit."""
        return tuple(WaitingBindingView(wait, self.workload) for wait in self._waiting.values())

    def record_event(self, binding: Binding, *, warning: bool, reason: str, text: str) -> None:
        """Record the Event."""
        self.events.append(Recorded(binding.key, warning, reason, text))

    def wait(
        self,
        binding: Binding,
        timeouts: Mapping[str, float],
        then: Callable[[WaitingBinding], None],
        reasons: Mapping[str, str] | None = None,
    ) -> Awaitable[Result]:
        """Let a binding wait at Permit; ``then`` is called when it waits. ``reasons`` has messages by plugin name."""
        waiting = self._waiting[binding.key] = PendingPermit(binding, frozenset(), timeouts, reasons)

        async def answered() -> Result:
            try:
                then(WaitingBindingView(waiting, self.workload))
                return await waiting.wait()
            finally:
                del self._waiting[binding.key]

        return answered()
