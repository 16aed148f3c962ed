"""One attempt to place a binding: what all extension points have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import ClusterAffinity, ClusterAffinityTerm, Placement
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.cycle_state import CycleState
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.framework.workload import problem_in, workload_in


class Peers(Protocol):
    """The other ResourceBindings, by the groups in which workloads attract or repel each other."""

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """All bindings of a group, in all namespaces, whoever schedules them."""
        ...

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """All bindings of a group, in all namespaces, whoever schedules them."""
        ...


def no_workload(key: BindingKey) -> Workload | None:  # noqa: ARG001
    """Return None: no workload is known."""
    return None


@dataclass(frozen=True)
class Cycle:
    """One attempt to place a binding, with one affinity term.

    Attributes:
        binding: The binding as it is, before this attempt.
        placement: Its placement; a binding without one is never attempted.
        affinity_name: The term of ``clusterAffinities`` under trial.
        snapshot: All clusters.
        state: Notes that plugins leave for each other.
        peers: None where nothing keeps track of groups.
        workload_answer: What is known of the workload; None where no plugin of the profile has ``needs_workload``.
        stored_workload: Returns the workload of a binding, None if it is not known; plugins call ``handle.workload``.
    """

    binding: Binding
    placement: Placement
    affinity_name: str = ""
    snapshot: Snapshot = field(default_factory=Snapshot)
    state: CycleState = field(default_factory=CycleState)
    peers: Peers | None = None
    workload_answer: WorkloadAnswer | None = field(default=None, repr=False)
    stored_workload: Callable[[BindingKey], Workload | None] = field(default=no_workload, repr=False)

    @property
    def workload(self) -> Workload | None:
        """The metadata of the workload as it was when the attempt began, for plugins with ``needs_workload = True``.

        None if it is not known; ``workload_problem`` says why. UndeclaredWorkloadError where no plugin of the profile
        declares that it needs it.
        """
        return workload_in(self.workload_answer)

    @property
    def workload_problem(self) -> str:
        """Why ``workload`` is None, for people: not permitted, not there, not read in time; "" if it is not None."""
        return problem_in(self.workload_answer)

    @cached_property
    def current_clusters(self) -> frozenset[str]:
        """The names of the clusters that the binding has now, whatever the replicas; ``BindContext.targets`` are those
        that it will have.
        """
        return self.binding.spec.target_names

    @cached_property
    def evicted(self) -> frozenset[str]:
        """The clusters that it is being moved off."""
        return frozenset(task.from_cluster for task in self.binding.spec.graceful_eviction_tasks)

    @cached_property
    def unplaced(self) -> Cycle:
        """The cycle of the same binding, were it on no cluster and not being moved off any."""
        spec = replace(self.binding.spec, clusters=(), graceful_eviction_tasks=())
        return replace(self, binding=replace(self.binding, spec=spec))

    @cached_property
    def term(self) -> ClusterAffinityTerm | None:
        """The affinity term under trial; None with a single affinity, or where no term has that name."""
        if self.placement.cluster_affinity is not None:
            return None
        return self.placement.affinity_term(self.affinity_name)

    @cached_property
    def affinities(self) -> tuple[ClusterAffinity, ...]:
        """The affinities in force, the preferred one first; one of them has to match.

        Overflow affinities count for workloads only.
        """
        if self.placement.cluster_affinity is not None:
            return (self.placement.cluster_affinity,)
        if self.term is None:
            return ()
        overflow = self.term.overflow_affinities if self.binding.spec.is_workload else ()
        return (self.term.affinity, *(each.affinity for each in overflow))


class InFlight(NamedTuple):
    """A binding that is decided and may not be written yet.

    Attributes:
        stored: As the cache has it; None if it is not known (any more).
        planned: The same with the clusters that it will have.
    """

    stored: Binding | None
    planned: Binding


class Candidate(NamedTuple):
    """A cluster that passed the filters.

    Attributes:
        score: The sum over all score plugins, times their weights.
        tier: 0 for the preferred affinity, then one per overflow affinity.
        available: Replicas that it could hold, those that it already has included.
        allocatable: Replicas that could be added.
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
