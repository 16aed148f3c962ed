"""The order of preference, remembered for bindings that differ in nothing that it depends on.

It is that of a binding that is on no cluster yet, in columns of one row per cluster that passes the filters. What is
remembered is what has to be asked for: plugins and estimators are asked about clusters that have changed. To sort all
rows anew costs less than to move some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.ordering.columnar import FeasibleClusters, Merit, SharedOrder
from karmada_scheduler.framework.runtime.filter_cache import Cursor, FilterResults


class ScoreCache:
    """The merit of every cluster that passes a set of filters; it does not depend on what a replica asks for.

    Attributes:
        field: The clusters with their merits; never changed, but replaced.
    """

    def __init__(self) -> None:
        """Start empty, as of no version."""
        self._followed = Cursor()
        self.field = _field((), {}, ())

    def refresh(self, verdicts: FilterResults, rate: Callable[[Sequence[Cluster]], Iterable[Merit]]) -> None:
        """Rate the clusters that have changed since the last time."""
        names = self._followed.news(verdicts)
        if names is not None and not names:
            return
        field, clusters = self.field, verdicts.feasible
        rows = range(len(clusters)) if names is None else verdicts.rows_of(names)
        rated = dict(zip(rows, rate([clusters[row] for row in rows]), strict=True)) if rows else {}
        stays = names is not None and field.rows is verdicts.rows
        if stays and all(_stands_as_before(field, row, clusters[row], merit) for row, merit in rated.items()):
            self.field = replace(field, clusters=clusters)
        else:
            merits = [
                rated[row] if row in rated else field.merits[field.rows[cluster.name]]
                for row, cluster in enumerate(clusters)
            ]
            self.field = _field(clusters, verdicts.rows, merits)
        self._followed.caught_up(verdicts)


def _stands_as_before(field: FeasibleClusters, row: int, cluster: Cluster, merit: Merit) -> bool:
    return field.merits[row] == merit and field.clusters[row].region == cluster.region


def _field(clusters: Sequence[Cluster], rows: Mapping[str, int], merits: Sequence[Merit]) -> FeasibleClusters:
    numbers: dict[str, int] = {}
    regions = [numbers.setdefault(cluster.region, len(numbers)) for cluster in clusters]
    different = sorted(set(merits), key=lambda merit: (merit[0], -merit[1]))
    places = {merit: place for place, merit in enumerate(different)}
    ranks = columns.column([places[merit] for merit in merits]) if len(different) > 1 else None
    return FeasibleClusters(clusters, rows, merits, ranks, list(numbers), columns.column(regions))


class OrderCache:
    """The order of preference of the clusters that pass a set of filters, for one request."""

    def __init__(self) -> None:
        """Start empty, as of no version."""
        self._followed = Cursor()
        self._rows: Mapping[str, int] = {}
        self._room = columns.column(())
        self._has_unknown = False
        self._ranked: SharedOrder | None = None
        self._stand_in = MAX_INT32

    def refresh(self, verdicts: FilterResults, room_of: Callable[[Column], Column]) -> None:
        """Ask about the clusters that have changed since the last time.

        Args:
            verdicts: Which clusters pass.
            room_of: Counts the replicas that the clusters in some rows could take, MAX_INT32 where nobody knows.
        """
        names = self._followed.news(verdicts)
        if names is not None and not names:
            return
        if names is None:
            self._room = room_of(columns.rows_of(len(verdicts.rows)))
        else:
            room = self._room
            if self._rows is not verdicts.rows:
                room = columns.carried_over(room, [self._rows.get(name, -1) for name in verdicts.rows])
            rows = columns.column(verdicts.rows_of(names))
            self._room = columns.with_values(room, rows, room_of(rows)) if len(rows) else room
        self._has_unknown = columns.greatest(self._room) == MAX_INT32
        self._ranked = None
        self._rows = verdicts.rows
        self._followed.caught_up(verdicts)

    def ranked(self, field: FeasibleClusters, unknown: int) -> SharedOrder:
        """Return all candidates, the most preferred first.

        Args:
            field: The clusters as of the same version.
            unknown: What stands for room that nobody knows.
        """
        ranked, stand_in = self._ranked, unknown if self._has_unknown else MAX_INT32
        if ranked is None or ranked.field is not field or self._stand_in != stand_in:
            room = columns.with_stand_in(self._room, MAX_INT32, stand_in) if self._has_unknown else self._room
            ranked = SharedOrder(field, room, columns.preferred_first(field.ranks, room))
            self._ranked, self._stand_in = ranked, stand_in
        return ranked
