"""An attempt to schedule a binding: the part of the contexts that all extension points share.

``CycleState`` has the data that plugins share during it, usually written once, in PreFilter or PreScore, and read for each
cluster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from karmada_scheduler.api.binding import AssumedWorkload, Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import ClusterAffinity, ClusterAffinityTerm, Placement
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.framework.workload import problem_in, workload_in
from karmada_scheduler.structs import Struct, field, replace

T = TypeVar("T")


class Peers(Protocol):
    """The other ResourceBindings by affinity and anti-affinity group."""

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, in all namespaces, those of other schedulers included."""

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """Return all bindings of a group, in all namespaces, those of other schedulers included."""


def no_workload(key: BindingKey) -> Workload | None:  # noqa: ARG001
    """Return None; for cycles without workloads."""
    return None


class StateKey(Struct, Generic[T], frozen=True):
    """The key of an entry, with the type of its value; a constant in the module of the plugin that writes it."""

    name: str


class CycleState:
    """The entries of one attempt, dropped when it ends."""

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        """Store a value; it replaces an earlier one of the same key."""
        self._entries[key.name] = value

    def read(self, key: StateKey[T]) -> T:
        """Return a value.

        Raises:
            KeyError: There is no such entry; the text names the key and those that exist.
        """
        if key.name not in self._entries:
            known = ", ".join(sorted(self._entries)) or "none"
            raise KeyError(f"no plugin wrote {key.name!r} in this cycle; written: {known}")
        return cast("T", self._entries[key.name])

    def delete(self, key: StateKey[Any]) -> None:
        """Remove an entry, if there is one."""
        self._entries.pop(key.name, None)

    def clone(self) -> CycleState:
        """Return a deep copy."""
        twin = CycleState()
        twin._entries = copy.deepcopy(self._entries)
        return twin

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key.name in self._entries


class Cycle(Struct, frozen=True, dict=True):
    """An attempt to schedule a binding with one affinity term.

    Attributes:
        binding: The binding before this attempt.
        placement: The placement of the binding.
        affinity_name: The name of the affinity term in ``clusterAffinities``, "" with a single affinity.
        snapshot: All clusters.
        state: Data that plugins share during the attempt.
        peers: The bindings in affinity groups; None without the feature gate WorkloadAffinity.
        workload_answer: The workload, or why it is unknown; None if no plugin of the profile has ``needs_workload``.
        stored_workload: Returns the workload of a binding, None if it is unknown; plugins call ``handle.workload``.
        kept: What the steps worked with; None unless an explanation asked for it.
    """

    binding: Binding
    placement: Placement
    affinity_name: str = ""
    snapshot: Snapshot = field(default_factory=Snapshot)
    state: CycleState = field(default_factory=CycleState)
    peers: Peers | None = None
    workload_answer: WorkloadAnswer | None = None
    stored_workload: Callable[[BindingKey], Workload | None] = no_workload
    kept: KeptSteps | None = None

    @property
    def workload(self) -> Workload | None:
        """The metadata of the workload as it was when the attempt began, for plugins with ``needs_workload = True``.

        None if it is unknown; ``workload_problem`` has the reason.

        Raises:
            UndeclaredWorkloadError: No plugin of the profile declares that it needs the workload.
        """
        return workload_in(self.workload_answer)

    @property
    def workload_problem(self) -> str:
        """Why ``workload`` is None: not permitted, deleted, not read in time; "" if it is not None."""
        return problem_in(self.workload_answer)

    @cached_property
    def current_clusters(self) -> frozenset[str]:
        """The names of the clusters in ``binding.spec.clusters``; ``BindContext.targets`` are those of the decision."""
        return self.binding.spec.target_names

    @cached_property
    def evicted(self) -> frozenset[str]:
        """The names of the clusters from which the binding is being evicted gracefully."""
        return frozenset(task.from_cluster for task in self.binding.spec.graceful_eviction_tasks)

    @cached_property
    def unplaced(self) -> Cycle:
        """The cycle of the same binding without clusters and evictions."""
        spec = replace(self.binding.spec, clusters=(), graceful_eviction_tasks=())
        return replace(self, binding=replace(self.binding, spec=spec))

    @cached_property
    def term(self) -> ClusterAffinityTerm | None:
        """The affinity term of this attempt; None with a single affinity, or if no term has that name."""
        if self.placement.cluster_affinity is not None:
            return None
        return self.placement.affinity_term(self.affinity_name)

    @cached_property
    def affinities(self) -> tuple[ClusterAffinity, ...]:
        """The affinities of the term in order of preference; a cluster must match one of them.

        Overflow affinities are included for workloads only.
        """
        if self.placement.cluster_affinity is not None:
            return (self.placement.cluster_affinity,)
        if self.term is None:
            return ()
        overflow = self.term.overflow_affinities if self.binding.spec.is_workload else ()
        return (self.term.affinity, *(term.affinity for term in overflow))


class InFlight(NamedTuple):
    """A binding that is decided and not yet written.

    Attributes:
        stored: The binding in the cache; None if it is unknown.
        planned: The binding with the clusters of the decision.
    """

    stored: Binding | None
    planned: Binding


class Candidate(NamedTuple):
    """A cluster that passed the filters.

    Attributes:
        score: The sum of the weighted scores of all plugins.
        tier: 0 for the affinity of the term, then one per overflow affinity.
        available: Replicas that the cluster can hold, including those that the binding already has there.
        allocatable: Replicas that can be added.
    """

    cluster: Cluster
    score: int = 0
    tier: int = 0
    available: int = 0
    allocatable: int = 0

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.name


class ReplicaEstimate(Struct, frozen=True):
    """What a plugin changes of the replicas that can be added to clusters. Other clusters keep their numbers.

    Numbers are replicas, or sets of components, from 0 to 2^31 - 1, by cluster name; the clusters must exist. Those that
    were refused have no effect. Of several plugins ``less`` adds up, the largest ``at_least`` counts, and then the smallest
    ``most``.

    Attributes:
        most: At most so many more fit on the cluster, besides those that the binding has there.
        less: So many are subtracted from what the estimators say.
        at_least: So many more fit, whatever the estimators say: places that are being vacated.
        reason: For ``explain``: ``held for prod/train-9``.
    """

    most: Mapping[str, int] = field(default_factory=dict)
    less: Mapping[str, int] = field(default_factory=dict)
    at_least: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def clusters(self) -> frozenset[str]:
        """The names of the clusters whose numbers change."""
        return frozenset((*self.most, *self.less, *self.at_least))


class KeptRegion(NamedTuple):
    """A region with its score, and its candidates in the order of preference."""

    name: str
    score: int
    candidates: Sequence[Candidate]


class KeptDivision(Struct):
    """The division of replicas over the selected clusters, or over those of one tier.

    Attributes:
        strategy: The name of the strategy; ``none`` without replicas to divide.
        members: The clusters.
        replicas: Replicas to have in all.
        step: The kind of a division by available replicas, as errors name it; "" for any other.
        divided: Replicas to divide; the others are kept.
        scheduled: The clusters with replicas that are kept.
        available: The sum of the available replicas.
        votes: The weights by which they are divided; None if they are not.
        seats: What each cluster gets besides what it keeps.
    """

    strategy: str
    members: Sequence[Candidate]
    replicas: int
    step: str = ""
    divided: int = 0
    scheduled: Sequence[TargetCluster] = ()
    available: int = 0
    votes: Sequence[tuple[str, int]] | None = None
    seats: Sequence[TargetCluster] = ()


class KeptSteps(Struct):
    """What the steps of one attempt worked with; each step fills in its part.

    Attributes:
        assumed: The placements that counted as taken, by cluster.
        raw_scores: By Score plugin: what it returned before ``normalize_score``, in the order of the names of clusters.
        answered: By extension point: the plugin that was asked last, and so decided, at Select and Assign.
        estimates: What EstimateReplicas plugins changed, with the name of each.
        regions: The regions in the order of names; None if it was not the core that selected.
        divisions: The divisions, by tier; None if it was not the core that divided.
    """

    assumed: Mapping[str, Sequence[AssumedWorkload]]
    raw_scores: dict[str, Sequence[int]] = field(default_factory=dict)
    answered: dict[Point, str] = field(default_factory=dict)
    estimates: Sequence[tuple[str, ReplicaEstimate]] = ()
    regions: Sequence[KeptRegion] | None = None
    divisions: list[KeptDivision] | None = None
