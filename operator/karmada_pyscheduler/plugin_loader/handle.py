"""The handles of plugins in a running scheduler."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings, WaitingBindingView
from karmada_scheduler.structs import Struct, field

__timeout_shield__ = True

Changed = TypeVar("Changed")

Record = Callable[[Binding, bool, str, str], None]
"""Takes a binding, whether it is a warning, the reason and the text."""


class HandleBackend(Struct, kw_only=True):
    """The shared part of the handles of all profiles; ``activate``, ``enqueue`` and ``record`` do nothing before ``lead``.

    Attributes:
        bindings: All bindings.
        clusters: All clusters.
        waiting: The bindings that wait at Permit.
        now: Returns the seconds since 1970.
        stored_workload: Returns the workload of a binding for the plugins of a profile, by its scheduler name.
        shared: What the plugins of all profiles have in common.
    """

    bindings: BindingCache
    clusters: ClusterCache
    waiting: WaitingBindings
    now: Callable[[], float]
    stored_workload: Callable[[str, BindingKey], Workload | None] = lambda _profile, _key: None
    activate: Callable[[BindingKey], None] = lambda _key: None
    enqueue: Callable[[BindingKey], None] = lambda _key: None
    record: Record = lambda *_: None
    shared: dict[str, object] = field(default_factory=dict)

    def lead(
        self,
        activate: Callable[[BindingKey], None],
        record: Record,
        enqueue: Callable[[BindingKey], None],
    ) -> None:
        """Let plugins activate and enqueue bindings and record Events from now on: this process leads."""
        self.activate, self.record, self.enqueue = activate, record, enqueue

    def handle_for(self, profile: str) -> PluginHandle:
        """Return the handle for the plugins of a profile. Followers are bound methods, called until their object is gone."""
        return PluginHandle(
            profile,
            self.clusters.snapshot,
            self.bindings,
            self.now,
            self.stored_workload,
            lambda: (
                WaitingBindingView(wait, lambda key: self.stored_workload(profile, key))
                for wait in self.waiting.all()
            ),
            lambda follower: self.bindings.add_listener(_while_alive(follower)),
            lambda follower: self.clusters.add_listener(_while_alive(follower)),
            lambda key: self.activate(key),  # noqa: PLW0108 (lead sets it later)
            lambda *event: self.record(*event),  # noqa: PLW0108 (lead sets it later)
            lambda key: self.enqueue(key),  # noqa: PLW0108 (lead sets it later)
            self.shared,
        )


def _while_alive(method: Callable[[Changed, Changed], None]) -> Callable[[Changed, Changed], None]:
    """Return a function that calls a bound method until its object is gone: that of a plugin that was replaced."""
    found = weakref.WeakMethod(method)

    def call(old: Changed, new: Changed) -> None:
        alive = found()
        if alive is not None:
            alive(old, new)

    return call
