"""Which clusters are lost, so that nothing that runs there is harmed by a move.

A cluster that is not Ready may only have been slow to report. It counts as lost if Karmada has tainted it, or if it has
not been Ready for some time.
"""

from __future__ import annotations

from typing import Final

from karmada_scheduler.api.cluster import READY
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.well_known import KARMADA_TAINTS
from karmada_scheduler.framework import Cluster, Handle, Snapshot

LOST_SECONDS: Final = 60.0
"""After this time a cluster that is not Ready is lost. Karmada taints one some 30 seconds after its last report."""


def is_ready(cluster: Cluster | None) -> bool:
    """Return whether a cluster exists, is not being deleted, and does not report that it is not Ready."""
    if cluster is None or cluster.deleting:
        return False
    condition = cluster.condition(READY)
    return condition is None or condition.status == "True"


class ClusterOutages:
    """Since when clusters are not Ready."""

    def __init__(self, handle: Handle) -> None:
        """Start with none."""
        self._handle = handle
        self._since: dict[str, float] = {}

    def changed(self, old: Cluster | None, new: Cluster | None) -> None:
        """Follow a change of a cluster; what is seen to happen counts, not the time that the cluster has for it."""
        if new is not None and not is_ready(new):
            if is_ready(old):
                self._since[new.name] = self._handle.now()
        elif old is not None:
            self._since.pop(old.name, None)

    def is_lost(self, name: str, snapshot: Snapshot) -> bool:
        """Return whether a cluster does not exist, is being deleted, or is tainted by Karmada or not Ready for long enough."""
        cluster = snapshot.get(name)
        if cluster is None or cluster.deleting:
            return True
        if any(taint.key in KARMADA_TAINTS for taint in cluster.taints):
            return True
        if is_ready(cluster):
            return False
        now = self._handle.now()
        since = self._since.setdefault(name, min(now, _transition(cluster, now)))
        if since > now:  # the clock was set back
            since = self._since[name] = now
        return now - since >= LOST_SECONDS


def _transition(cluster: Cluster, now: float) -> float:
    """Return when the condition Ready of a cluster changed, in seconds since 1970; ``now`` if it does not say."""
    condition = cluster.condition(READY)
    try:
        return parse_time("" if condition is None else condition.last_transition_time).timestamp()
    except ValueError:
        return now
