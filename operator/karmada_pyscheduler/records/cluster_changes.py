"""When each cluster last changed, as this process has seen it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from karmada_scheduler.api.cluster import Cluster


class ClusterChangeTimes:
    """The times of the last changes by cluster; two numbers per cluster.

    Called for every change of a cluster in the main thread; ``times`` may be called from any thread.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Start without clusters; ``now`` returns seconds since 1970."""
        self._now = now
        self._times: dict[str, tuple[float, float]] = {}

    def on_cluster(self, old: Cluster | None, new: Cluster | None) -> None:
        """Note a change: of labels, spec or deletion, and of the resource summary."""
        if new is None:
            if old is not None:
                self._times.pop(old.name, None)
            return
        now = self._now()
        before = self._times.get(new.name)
        if old is None or before is None:
            self._times[new.name] = now, now
            return
        spec, summary = before
        if old.generation != new.generation or old.labels != new.labels or old.deleting != new.deleting:
            spec = now
        if old.resource_summary != new.resource_summary:
            summary = now
        self._times[new.name] = spec, summary

    def oldest_summary(self, names: Iterable[str]) -> float | None:
        """Return the earliest time at which the summary of one of some clusters changed; None if none is known."""
        times = self._times
        return min((times[name][1] for name in names if name in times), default=None)

    def times(self) -> Mapping[str, tuple[float, float]]:
        """Return by cluster when its spec, labels or deletion, and its summary changed, in seconds since 1970."""
        return self._times.copy()
