"""The fleet as data: clusters with their shares of resources, and bindings counted by state."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Final

from karmada_advisor.explain.amounts import shown, units
from karmada_advisor.state.model import StateName
from karmada_advisor.state.propagation import cluster_problem
from karmada_advisor.web.state import PageContents, PageState
from karmada_scheduler.api.cluster import READY, Cluster
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.structs import Struct, replace

RESOURCES: Final = ("cpu", "memory", "pods")
"""The resources whose shares are shown; the largest share is the dominant one."""

NO_REGION: Final = ""


class ClusterState(Enum):
    """The states of a cluster, the worst first."""

    NOT_READY = "not ready"
    """Its condition Ready is another one than True."""
    BEING_DELETED = "being deleted"
    TAINTED = "tainted"
    NOT_REPORTED = "not reported"
    """It has no condition Ready."""
    READY = "ready"

    @property
    def colour(self) -> str:
        """``green``, ``yellow`` or ``red``."""
        return {"not ready": "red", "ready": "green"}.get(self.value, "yellow")


class ResourceShare(Struct, frozen=True):
    """How much of a resource of a cluster is taken.

    Attributes:
        share: Allocated and allocating by allocatable; above 1 if the cluster is over-allocated.
        taken: Allocated and allocating, as Kubernetes writes quantities; ``free`` and ``allocatable`` likewise.
    """

    name: str
    share: float
    taken: str
    free: str
    allocatable: str


class ClusterShown(Struct, frozen=True):
    """A cluster.

    Attributes:
        ready: The status of the condition Ready: "True", "False", "Unknown", or "" without it.
        ready_reason: The reason of that condition.
        problem: Since when it is not ready, and why; "" if it is.
        message: The text of the condition of a cluster that is not ready; "" without one.
        taints: ``key=value:effect``.
        share: The dominant share; None without a resource summary.
        dominant: The resource of the dominant share.
        replicas: Replicas of all bindings that are on it.
        bindings: The number of bindings that are on it.
    """

    name: str
    region: str
    provider: str
    zones: tuple[str, ...]
    ready: str
    ready_reason: str
    problem: str
    message: str
    taints: tuple[str, ...]
    deleting: bool
    share: float | None
    dominant: str
    resources: tuple[ResourceShare, ...]
    replicas: int
    bindings: int

    @property
    def is_ready(self) -> bool:
        """Whether nothing says that it is not ready."""
        return self.ready in {"True", ""}

    @property
    def state(self) -> ClusterState:
        """Its state; the worst one if there are several."""
        if not self.is_ready:
            return ClusterState.NOT_READY
        if self.deleting:
            return ClusterState.BEING_DELETED
        if self.taints:
            return ClusterState.TAINTED
        return ClusterState.READY if self.ready else ClusterState.NOT_REPORTED

    @property
    def level(self) -> int:
        """The step of the colour scale, 0 to 9; -1 without a resource summary."""
        return -1 if self.share is None else max(0, min(9, int(self.share * 10)))

    def resource(self, name: str) -> ResourceShare | None:
        """Return the share of a resource, None if the cluster does not report it."""
        return next((resource for resource in self.resources if resource.name == name), None)


class StateCount(Struct, frozen=True):
    """The number of bindings in a state."""

    state: StateName
    count: int


class FleetOverview(Struct, frozen=True):
    """The whole fleet.

    Attributes:
        source: Where it was read.
        at: When, in the format of the API.
        not_ready: Clusters that are not ready.
        tainted: Clusters with a taint.
        bindings: The number of bindings.
        states: How many bindings are in each state that occurs, the worst first.
        problems: What could not be read.
    """

    source: str
    at: str
    clusters: tuple[ClusterShown, ...]
    not_ready: int
    tainted: int
    bindings: int
    states: tuple[StateCount, ...]
    problems: tuple[str, ...] = ()


def fleet_of(state: PageState) -> FleetOverview:
    """Return the fleet."""
    clusters = clusters_of(state.contents)
    index = state.contents.index
    counts = index.counts()
    return FleetOverview(
        source=state.source,
        at=format_time(state.read_at),
        clusters=clusters,
        not_ready=sum(1 for cluster in clusters if not cluster.is_ready),
        tainted=sum(1 for cluster in clusters if cluster.taints),
        bindings=len(index),
        states=tuple(StateCount(name, counts[name]) for name in StateName if counts[name]),
        problems=tuple(state.problems),
    )


@lru_cache(maxsize=4)
def clusters_of(contents: PageContents) -> tuple[ClusterShown, ...]:
    """Return all clusters, in the order in which they were read."""
    return tuple(cluster_shown(contents, cluster) for cluster in contents.objects.clusters)


def cluster_shown(contents: PageContents, cluster: Cluster) -> ClusterShown:
    """Return one cluster."""
    index, found = contents.index, contents.shown_clusters.get(cluster.name)
    if found is None:
        found = contents.shown_clusters[cluster.name] = _shown(contents, cluster)
    on_it = len(index.on(cluster.name))
    return replace(found, replicas=index.replicas_on(cluster.name), bindings=on_it)


def _shown(contents: PageContents, cluster: Cluster) -> ClusterShown:
    """Return a cluster without what is on it."""
    resources = tuple(_shares(cluster))
    dominant = max(resources, key=lambda each: each.share, default=None)
    ready = cluster.condition(READY)
    _, problem, message = cluster_problem(cluster.name, contents.objects.manifests.get(cluster.name, {}))
    return ClusterShown(
        name=cluster.name,
        region=cluster.region,
        provider=cluster.provider,
        zones=cluster.zones,
        ready="" if ready is None else ready.status,
        ready_reason="" if ready is None else ready.reason,
        problem=problem,
        message=message,
        taints=tuple(map(str, cluster.taints)),
        deleting=cluster.deleting,
        share=None if dominant is None else dominant.share,
        dominant="" if dominant is None else dominant.name,
        resources=resources,
        replicas=0,
        bindings=0,
    )


def _shares(cluster: Cluster) -> Iterable[ResourceShare]:
    summary = cluster.resource_summary
    if summary is None:
        return
    for name in RESOURCES:
        allocatable = summary.allocatable.get(name)
        if allocatable is None:
            continue
        free = summary.left(name)
        taken = allocatable - free
        whole = units(name, allocatable)
        if whole > 0:
            yield ResourceShare(
                name,
                round(units(name, taken) / whole, 4),
                shown(name, taken),
                shown(name, free),
                shown(name, allocatable),
            )


class ClusterFilter(Struct, frozen=True):
    """Which clusters to show; "" is any.

    Attributes:
        text: A part of the name, the region or the provider.
    """

    text: str = ""
    region: str = ""
    state: str = ""

    def holds(self, shown: ClusterShown) -> bool:
        """Return whether a cluster is shown."""
        words = f"{shown.name} {shown.region} {shown.provider}".lower()
        return (
            (not self.text or self.text.lower() in words)
            and (not self.region or shown.region == self.region)
            and (not self.state or shown.state.value == self.state)
        )


SORTS: Final = ("state", "name", "region", "share", "cpu", "memory", "pods", "replicas", "bindings")
_WORST_FIRST: Final = {state: number for number, state in enumerate(ClusterState)}


def sorted_clusters(clusters: Iterable[ClusterShown], by: str) -> list[ClusterShown]:
    """Return clusters in the order of a column; numbers the largest first, clusters without one last."""

    def key(shown: ClusterShown) -> tuple[object, ...]:
        match by:
            case "name":
                return (shown.name,)
            case "state":
                return (_WORST_FIRST[shown.state], shown.name)
            case "region":
                return (shown.region == NO_REGION, shown.region, shown.name)
            case "replicas" | "bindings":
                return (-getattr(shown, by), shown.name)
        found = shown if by == "share" else shown.resource(by)
        share = None if found is None else found.share
        return (1.0 if share is None else -share, shown.name)

    return sorted(clusters, key=key)
