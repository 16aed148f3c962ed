"""The bindings of both kinds by key, policy and workload group, and those that plugins with events of their own have refused.

Source of the latter: kubernetes v1.35 pkg/scheduler/backend/queue UnschedulablePlugins, for the idea.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from karmada_pyscheduler.cache.store import Store
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.evidence import RequeueEvent

_POLICY: Final = "policy"
_AFFINITY: Final = "affinity group"
_ANTI_AFFINITY: Final = "anti-affinity group"


class BindingCache(Store[BindingKey, Binding]):
    """Bindings by key, with three indexes; implements ``framework.cycle.Peers``."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda binding: binding.key)
        self._index: dict[tuple[str, str], dict[BindingKey, None]] = {}
        self._counts: Counter[str] = Counter()

    def count(self, kind: str) -> int:
        """Return the number of bindings of a kind."""
        return self._counts[kind]

    def keys(self) -> list[BindingKey]:
        """Return the keys of all bindings."""
        return list(self._objects)

    def claimed_by(self, policy_id: str) -> Collection[BindingKey]:
        """Return the keys of the bindings that carry a policy's permanent id, in the order in which they got it."""
        return self._index.get((_POLICY, policy_id), {}).keys()

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, of all namespaces and schedulers."""
        return self._members(_AFFINITY, group)

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, of all namespaces and schedulers."""
        return self._members(_ANTI_AFFINITY, group)

    def _members(self, index: str, group: str) -> list[Binding]:
        return [self._objects[key] for key in sorted(self._index.get((index, group), ()))]

    def _stored(self, old: Binding | None, new: Binding | None) -> None:
        for binding, number in ((old, -1), (new, 1)):
            if binding is not None:
                self._counts[binding.key.kind] += number
        before, after = _entries(old), _entries(new)
        for entry in before - after:
            keys = self._index[entry]
            del keys[old.key]  # type: ignore[union-attr]
            if not keys:
                del self._index[entry]
        for entry in after - before:
            self._index.setdefault(entry, {})[new.key] = None  # type: ignore[union-attr]
        super()._stored(old, new)


def _entries(binding: Binding | None) -> set[tuple[str, str]]:
    """Return the index entries of a binding."""
    if binding is None:
        return set()
    labels, groups = binding.labels, binding.spec.workload_affinity_groups
    entries = {(_POLICY, labels.get(label, "")) for label in (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL)}
    if groups is not None:
        entries |= {(_AFFINITY, groups.affinity_group), (_ANTI_AFFINITY, groups.anti_affinity_group)}
    return {entry for entry in entries if entry[1]}


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
