"""The bindings of a page, ordered and counted: kept up to date by one object at a time, never made again per request.

Lists are sorted by state, namespace and name, so that a page of one is a slice, and a cursor is found by bisection.
Where a row is found in more than one way, all lists hold the same object.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from karmada_advisor.explain.overview import GroupKey
from karmada_advisor.state.model import WORST_FIRST, ReplicaCounts, StateName
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding
from karmada_scheduler.api.binding import BindingKey

StateAndReason = tuple[StateName, str]


class BindingIndex:
    """Bindings in lists by state and name, in all, by namespace, by cluster and by group; all lists are sorted."""

    def __init__(self, rows: Iterable[IndexedBinding] = ()) -> None:
        """Hold some bindings from the beginning, of which no two have the same key."""
        self.version = 0
        self._by_key: dict[BindingKey, IndexedBinding] = {}
        self.rows: list[IndexedBinding] = []
        """All bindings, the worst first; not changed by readers."""
        self._by_namespace: dict[str, list[IndexedBinding]] = {}
        self._by_cluster: dict[str, list[IndexedBinding]] = {}
        self._by_group: dict[GroupKey, list[IndexedBinding]] = {}
        self._by_time: list[tuple[str, IndexedBinding]] = []
        self._counts: dict[str, Counter[StateName]] = {}
        self._replicas: Counter[str] = Counter()
        self._totals: dict[str, ReplicaCounts] = {}
        self._by_scheduler: dict[str, tuple[Counter[StateAndReason], ReplicaCounts]] = {}
        self._stamps: dict[str, int] = {}
        for row in rows:
            self._by_key[row.key] = row
            for found in self._lists_of(row):
                found.append(row)
            self._by_time += _timed(row)
            self._count(row, 1)
        for found in (
            self.rows,
            *self._by_namespace.values(),
            *self._by_cluster.values(),
            *self._by_group.values(),
        ):
            found.sort()
        self._by_time.sort()

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, row: IndexedBinding) -> None:
        """Take a binding instead of the one of the same key, if there is one."""
        before = self._by_key.get(row.key)
        if before is not None and _place_of(before) == _place_of(row):
            self._replace(before, row)
            return
        self.remove(row.key)
        self._by_key[row.key] = row
        for found in self._lists_of(row):
            insort(found, row)
        for timed in _timed(row):
            insort(self._by_time, timed)
        self._count(row, 1)

    def _replace(self, before: IndexedBinding, row: IndexedBinding) -> None:
        """Put a row into the places of the one before, which moves no other rows: all lists may be long."""
        self._by_key[row.key] = row
        for found in self._lists_of(row):
            found[bisect_left(found, before)] = row
        for timed in _timed(row):
            self._by_time[bisect_left(self._by_time, (row.last_scheduled, before))] = timed
        self._count(before, -1)
        self._count(row, 1)

    def remove(self, key: BindingKey) -> None:
        """Forget a binding, if it is known."""
        row = self._by_key.pop(key, None)
        if row is None:
            return
        for found in self._lists_of(row):
            del found[bisect_left(found, row)]
        for timed in _timed(row):
            del self._by_time[bisect_left(self._by_time, timed)]
        self._count(row, -1)
        self._drop_empty(row)

    def _lists_of(self, row: IndexedBinding) -> list[list[IndexedBinding]]:
        found = [self.rows, self._by_namespace.setdefault(row.namespace, [])]
        found += [self._by_cluster.setdefault(name, []) for name in row.clusters]
        if row.group is not None:
            found.append(self._by_group.setdefault(row.group, []))
        return found

    def _count(self, row: IndexedBinding, by: int) -> None:
        self.version += 1
        change = row.replicas if by > 0 else -row.replicas
        scheduler = row.binding.spec.responsible_scheduler
        states, replicas = self._by_scheduler.get(scheduler, (Counter(), ReplicaCounts()))
        state = row.state, "" if row.state.is_good else row.reason
        states[state] += by
        if not states[state]:
            del states[state]  # anybody may write reasons
        self._by_scheduler[scheduler] = states, replicas + change
        if not states:
            del self._by_scheduler[scheduler]
        for scope in dict.fromkeys(("", row.namespace)):
            self._counts.setdefault(scope, Counter())[row.state] += by
            self._stamps[scope] = self._stamps.get(scope, 0) ^ row.stamp
            self._totals[scope] = self.replicas(scope) + change
        for target in row.binding.spec.clusters:
            self._replicas[target.name] += by * target.replicas

    def _drop_empty(self, row: IndexedBinding) -> None:
        """Drop what is left of namespaces, clusters and groups without a binding."""
        if not self._by_namespace[row.namespace]:
            del self._by_namespace[row.namespace]
            if row.namespace:
                del self._counts[row.namespace], self._stamps[row.namespace], self._totals[row.namespace]
        for name in row.clusters:
            if not self._by_cluster[name]:
                del self._by_cluster[name], self._replicas[name]
        if row.group is not None and not self._by_group[row.group]:
            del self._by_group[row.group]

    def get(self, key: BindingKey) -> IndexedBinding | None:
        """Return a binding; None if there is none of this key."""
        return self._by_key.get(key)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have bindings, sorted."""
        return sorted(filter(None, list(self._by_namespace)))

    @property
    def groups(self) -> Mapping[GroupKey, Sequence[IndexedBinding]]:
        """The bindings in no good state by what they have in common; later changes do not change it."""
        copied = {key: list(rows) for key, rows in list(self._by_group.items())}
        return {key: rows for key, rows in copied.items() if rows}

    def counts(self, namespace: str = "") -> Counter[StateName]:
        """Return how many bindings are in each state, of a namespace or of all."""
        return self._counts.get(namespace, Counter())

    def replicas(self, namespace: str = "") -> ReplicaCounts:
        """Return what the bindings of a namespace, or all, want, have and run."""
        return self._totals.get(namespace, ReplicaCounts())

    @property
    def by_scheduler(self) -> Mapping[str, tuple[Counter[StateAndReason], ReplicaCounts]]:
        """The bindings by state, and their replicas, by the scheduler that is responsible; the one with most bindings first.

        Of a good state, the reason is "".
        """
        found = self._by_scheduler.copy()
        return dict(sorted(found.items(), key=lambda item: (-item[1][0].total(), item[0])))

    def stamp(self, namespace: str = "") -> int:
        """Return a number that changes with every binding of a namespace, or of all, and says nothing about others."""
        return self._stamps.get(namespace, 0)

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
        return [row for _, row in reversed(self._by_time[-count:])]

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


def _timed(row: IndexedBinding) -> list[tuple[str, IndexedBinding]]:
    return [(row.last_scheduled, row)] if row.last_scheduled else []


def _in_state(rows: Sequence[IndexedBinding], state: str) -> Sequence[IndexedBinding]:
    try:
        rank = 2 * WORST_FIRST[StateName(state)]
    except ValueError:
        return []
    first, end = (bisect_left(rows, (each,)) for each in (rank, rank + 2))
    return rows[first:end]
