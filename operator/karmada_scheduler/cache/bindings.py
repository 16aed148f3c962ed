"""The bindings of both kinds, found by key, by the policy that claims them, or by a workload group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.cache.store import Store

_POLICY: Final = "policy"
_AFFINITY: Final = "affinity group"
_ANTI_AFFINITY: Final = "anti-affinity group"


class BindingCache(Store[BindingKey, Binding]):
    """Bindings by key, with three indexes; conforms to ``framework.interface.Peers``.

    Attributes:
        on_change: Called with every binding as it was and as it is, None where there is nothing; must not raise.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda binding: binding.key)
        self._index: dict[tuple[str, str], set[BindingKey]] = {}
        self._counts: Counter[str] = Counter()
        self.on_change: Callable[[Binding | None, Binding | None], None] = lambda *_: None

    def count(self, kind: str) -> int:
        """Return how many there are of a kind."""
        return self._counts[kind]

    def keys(self) -> list[BindingKey]:
        """Return the keys of all bindings as they are now."""
        return list(self._objects)

    def claimed_by(self, policy_id: str) -> Collection[BindingKey]:
        """Return the bindings that carry a policy's permanent id."""
        return self._index.get((_POLICY, policy_id), frozenset())

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, in all namespaces, whoever schedules them."""
        return self._members(_AFFINITY, group)

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, in all namespaces, whoever schedules them."""
        return self._members(_ANTI_AFFINITY, group)

    def _members(self, index: str, group: str) -> list[Binding]:
        return [self._objects[key] for key in sorted(self._index.get((index, group), ()))]

    def _stored(self, old: Binding | None, new: Binding | None) -> None:
        if old is None and new is not None:
            self._counts[new.key.kind] += 1
        elif old is not None and new is None:
            self._counts[old.key.kind] -= 1
        before, after = _entries(old), _entries(new)
        for entry in before - after:
            keys = self._index[entry]
            keys.discard(old.key)  # type: ignore[union-attr]
            if not keys:
                del self._index[entry]
        for entry in after - before:
            self._index.setdefault(entry, set()).add(new.key)  # type: ignore[union-attr]
        self.on_change(old, new)


def _entries(binding: Binding | None) -> set[tuple[str, str]]:
    """Return where a binding stands in the indexes."""
    if binding is None:
        return set()
    labels, groups = binding.labels, binding.spec.workload_affinity_groups
    entries = {(_POLICY, labels.get(label, "")) for label in (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL)}
    if groups is not None:
        entries |= {(_AFFINITY, groups.affinity_group), (_ANTI_AFFINITY, groups.anti_affinity_group)}
    return {entry for entry in entries if entry[1]}
