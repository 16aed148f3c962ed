"""The bindings of a page, ordered and counted: kept up to date by one object at a time, never made again per request.

Lists are sorted by state, namespace and name, so that a page of one is a slice, and a cursor is found by bisection.
Where a row is found in more than one way, all lists hold the same object.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from karmada_advisor.explain.overview import GroupKey
from karmada_advisor.state.model import WORST_FIRST, ReplicaCounts, StateName
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import Struct, field


class _Totals(Struct):
    """What some bindings are together; the stamp changes with each of them, and says nothing about others.

    Attributes:
        counts: By state, and for a scheduler by state and reason.
        replicas: What they want, have and run.
        stamp: Of all of them.
    """

    counts: Counter[Any] = field(default_factory=Counter)
    replicas: ReplicaCounts = ReplicaCounts()
    stamp: int = 0


_Lists = dict[Any, list[Any]]
"""Sorted lists, none of them empty, by what their items have in common."""
StateAndReason = tuple[StateName, str]


class BindingIndex:
    """Bindings in lists by state and name, in all, by namespace, by cluster and by group; all lists are sorted."""

    def __init__(self, rows: Iterable[IndexedBinding] = ()) -> None:
        """Hold some bindings from the beginning, of which no two have the same key."""
        self.by_key: dict[BindingKey, IndexedBinding] = {}
        self._all: _Lists = {}
        self._by_namespace: _Lists = {}
        self._by_cluster: _Lists = {}
        self._by_group: _Lists = {}
        self._by_time: _Lists = {}
        self._replicas: Counter[str] = Counter()
        self._totals: dict[str, _Totals] = {}
        self._by_scheduler: dict[str, _Totals] = {}
        for row in rows:
            self.by_key[row.key] = row
            for lists, key, item in self._items_of(row):
                lists.setdefault(key, []).append(item)
            self._count(row, 1)
        for lists in (self._all, self._by_namespace, self._by_cluster, self._by_group, self._by_time):
            for found in lists.values():
                found.sort()

    def __len__(self) -> int:
        return len(self.by_key)

    def put(self, row: IndexedBinding) -> None:
        """Take a binding instead of the one of the same key, if there is one."""
        before = self.by_key.get(row.key)
        if before is not None and _place_of(before) == _place_of(
            row
        ):  # no other rows move: lists may be long
            for (lists, key, old), (_, _, new) in zip(
                self._items_of(before), self._items_of(row), strict=True
            ):
                lists[key][bisect_left(lists[key], old)] = new
            self._count(before, -1)
        else:
            self.remove(row.key)
            for lists, key, item in self._items_of(row):
                insort(lists.setdefault(key, []), item)
        self.by_key[row.key] = row
        self._count(row, 1)

    def remove(self, key: BindingKey) -> None:
        """Forget a binding, if it is known."""
        row = self.by_key.pop(key, None)
        if row is None:
            return
        for lists, name, item in self._items_of(row):
            del lists[name][bisect_left(lists[name], item)]
            if not lists[name]:
                del lists[name]
        self._count(row, -1)

    def _items_of(self, row: IndexedBinding) -> Iterator[tuple[_Lists, Any, Any]]:
        """Yield the lists with a row, each with the key of one, and its item in that."""
        yield self._all, "", row
        yield self._by_namespace, row.namespace, row
        yield from ((self._by_cluster, name, row) for name in row.clusters)
        if row.group is not None:
            yield self._by_group, row.group, row
        if row.last_scheduled:
            yield self._by_time, "", (row.last_scheduled, row)

    def _count(self, row: IndexedBinding, by: int) -> None:
        scheduler = row.binding.spec.responsible_scheduler
        state_and_reason = row.state, "" if row.state.is_good else row.reason
        scopes = ((self._totals, scope, row.state) for scope in dict.fromkeys(("", row.namespace)))
        for totals, name, counted in ((self._by_scheduler, scheduler, state_and_reason), *scopes):
            found = totals.setdefault(name, _Totals())
            found.counts[counted] += by
            if not found.counts[counted]:
                del found.counts[counted]  # anybody may write reasons
            found.replicas = found.replicas.plus(row.replicas, by)
            found.stamp ^= row.stamp
            if not found.counts:
                del totals[name]
        for target in row.binding.spec.clusters:
            self._replicas[target.name] += by * target.replicas

    def get(self, key: BindingKey) -> IndexedBinding | None:
        """Return a binding; None if there is none of this key."""
        return self.by_key.get(key)

    @property
    def rows(self) -> Sequence[IndexedBinding]:
        """All bindings, the worst first."""
        return self._all.get("", [])

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have bindings, sorted."""
        return sorted(filter(None, list(self._by_namespace)))

    @property
    def groups(self) -> Mapping[GroupKey, Sequence[BindingKey]]:
        """The bindings in no good state by what they have in common; later changes do not change it."""
        return {key: [row.key for row in rows] for key, rows in list(self._by_group.items())}

    def counts(self, namespace: str = "") -> Counter[StateName]:
        """Return how many bindings are in each state, of a namespace or of all."""
        return self._totals.get(namespace, _Totals()).counts

    def replicas(self, namespace: str = "") -> ReplicaCounts:
        """Return what the bindings of a namespace, or all, want, have and run."""
        return self._totals.get(namespace, _Totals()).replicas

    @property
    def by_scheduler(self) -> Mapping[str, tuple[Counter[StateAndReason], ReplicaCounts]]:
        """The bindings by state, and their replicas, by the scheduler that is responsible; the one with most bindings first.

        Of a good state, the reason is "".
        """
        found = {name: (totals.counts, totals.replicas) for name, totals in list(self._by_scheduler.items())}
        return dict(sorted(found.items(), key=lambda item: (-item[1][0].total(), item[0])))

    def stamp(self, namespace: str = "") -> int:
        """Return a number that changes with every binding of a namespace, or of all, and says nothing about others."""
        return self._totals.get(namespace, _Totals()).stamp

    def of_namespace(self, namespace: str) -> Sequence[IndexedBinding]:
        """Return the bindings of a namespace, the worst first; those of "" are ClusterResourceBindings."""
        return self._by_namespace.get(namespace, [])

    def on(self, cluster: str) -> Sequence[IndexedBinding]:
        """Return the bindings that are on a cluster, the worst first."""
        return self._by_cluster.get(cluster, [])

    def replicas_on(self, cluster: str) -> int:
        """Return the replicas of all bindings that are on a cluster."""
        return self._replicas[cluster]

    def newest(self, count: int) -> list[IndexedBinding]:
        """Return the bindings that were scheduled last, the newest first."""
        return [row for _, row in reversed(self._by_time.get("", [])[-count:])]

    def select(self, wanted: Filter) -> Sequence[IndexedBinding]:
        """Return the bindings that are shown, the worst first: by one list as far as it goes, then one by one."""
        rest = [wanted.reason, wanted.policy]
        if wanted.cluster:
            found = self.on(wanted.cluster)
            rest.append(wanted.namespace)
        else:
            found = self.of_namespace(wanted.namespace) if wanted.namespace else self.rows
        if wanted.state:
            found = _in_state(found, wanted.state)
        if text := wanted.text.lower():
            found = [row for row in found if text in row.text]
        return [row for row in found if wanted.holds(row)] if any(rest) else found


def _place_of(row: IndexedBinding) -> tuple[object, ...]:
    """Return what decides in which lists a row is, and where."""
    return (*row[:4], row.group, row.last_scheduled, *row.clusters)


def _in_state(rows: Sequence[IndexedBinding], state: str) -> Sequence[IndexedBinding]:
    try:
        rank = 2 * WORST_FIRST[StateName(state)]
    except ValueError:
        return []
    first, end = (bisect_left(rows, (bound,)) for bound in (rank, rank + 2))
    return rows[first:end]
