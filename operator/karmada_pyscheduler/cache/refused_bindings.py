"""The bindings that plugins with events of their own have refused, by the events that may end that.

Source: kubernetes v1.35 pkg/scheduler/backend/queue UnschedulablePlugins, for the idea.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.evidence import RequeueEvent

Declared = Mapping[str, frozenset[RequeueEvent]]
"""Events by plugin."""
_NONE: Final[frozenset[RequeueEvent]] = frozenset()


class RefusedBindings:
    """What the last attempt to schedule a binding leaves to wait for; empty if no plugin declares events of its own.

    Attributes:
        waiting: The bindings, with the events for which they wait.
        events: The number of bindings that wait for an event, for each of which there are some.
    """

    def __init__(self) -> None:
        """Start with none."""
        self.waiting: Final[dict[BindingKey, frozenset[RequeueEvent]]] = {}
        self.events: Final[Counter[RequeueEvent]] = Counter()

    def begin(self, key: BindingKey, declared: Declared) -> None:
        """Let a binding wait for all events that plugins declare while it is decided: a change may be newer than its snapshot."""
        if declared:
            self._put(key, _NONE.union(*declared.values()))

    def decided(self, key: BindingKey, diagnoses: Iterable[Diagnosis], declared: Declared) -> None:
        """Let a binding wait for the events of the plugins that have refused a cluster; without ``diagnoses`` for none."""
        if declared or key in self.waiting:
            plugins = {result.plugin for each in diagnoses for result in each.result_by_cluster.values()}
            self._put(key, _NONE.union(*(declared[name] for name in plugins & declared.keys())))

    def on_binding_change(self, old: Binding | None, new: Binding | None) -> None:
        """Forget a binding that was deleted."""
        if new is None and old is not None:
            self._put(old.key, _NONE)

    def _put(self, key: BindingKey, events: frozenset[RequeueEvent]) -> None:
        for event in self.waiting.pop(key, _NONE):
            self.events[event] -= 1
            if not self.events[event]:
                del self.events[event]
        if events:
            self.waiting[key] = events
            self.events.update(events)
