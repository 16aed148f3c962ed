"""The contract between the scheduler and a plugin, one extension point after the other.

A plugin is an object with a ``name`` and one method for each point that it takes part in. Every point has
one context object, so that a point can learn something new without a new signature. Plugins do not
change what they are handed, and what they compute depends on nothing else.

A plugin that raises fails the attempt with an error that names it; the binding keeps its placement and is
tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import ClusterAffinity, ClusterAffinityTerm, Placement
from karmada_scheduler.framework.cycle_state import CycleState
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.snapshot import Snapshot

MIN_CLUSTER_SCORE = 0
MAX_CLUSTER_SCORE = 100


class Peers(Protocol):
    """The other ResourceBindings, by the groups in which workloads attract or repel each other."""

    def in_affinity_group(self, group: str) -> Iterable[Binding]:
        """All bindings of a group, in all namespaces, whoever schedules them."""
        ...

    def in_anti_affinity_group(self, group: str) -> Iterable[Binding]:
        """All bindings of a group, in all namespaces, whoever schedules them."""
        ...

    def assigning(self, key: BindingKey) -> Binding | None:
        """What our own last write of a binding answered, as long as the watch may not have shown it."""
        ...


@dataclass(frozen=True)
class Cycle:
    """One attempt to place a binding, with one affinity term; what all points have in common.

    Attributes:
        binding: The binding as it is, before this attempt.
        placement: Its placement; a binding without one is never attempted.
        affinity_name: The term of ``clusterAffinities`` under trial.
        snapshot: All clusters.
        state: Notes that plugins leave for each other.
        peers: None where nothing keeps track of groups.
    """

    binding: Binding
    placement: Placement
    affinity_name: str = ""
    snapshot: Snapshot = field(default_factory=Snapshot)
    state: CycleState = field(default_factory=CycleState)
    peers: Peers | None = None

    @cached_property
    def targets(self) -> frozenset[str]:
        """The clusters that the binding is on now, whatever the replicas."""
        return self.binding.spec.target_names

    @cached_property
    def evicted(self) -> frozenset[str]:
        """The clusters that it is being moved off."""
        return frozenset(task.from_cluster for task in self.binding.spec.graceful_eviction_tasks)

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


class FilterContext(NamedTuple):
    """Whether one cluster can take the binding."""

    cycle: Cycle
    cluster: Cluster


class ScoreContext(NamedTuple):
    """How good one cluster is, of those that can take the binding."""

    cycle: Cycle
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class NormalizeScoreContext:
    """What one plugin said of all clusters.

    Attributes:
        clusters: Those that can take the binding, in the order of names.
        scores: The plugin's own scores, one per cluster.
    """

    cycle: Cycle
    clusters: Sequence[Cluster]
    scores: Sequence[int]


@runtime_checkable
class Plugin(Protocol):
    """What every plugin has.

    Attributes:
        name: As in metrics and error texts; usually the name under which it is registered.
    """

    name: str


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says which clusters can take a binding."""

    def filter(self, context: FilterContext, /) -> Result:
        """Judge one cluster.

        Called for every cluster that is not being deleted, until one plugin refuses it: that result is
        kept as the reason and no further plugin is asked. Any code other than SUCCESS refuses the cluster.
        """
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Says how good a cluster is."""

    def score(self, context: ScoreContext, /) -> int:
        """Rate one cluster, best in 0..100. The scores of all plugins are added up."""
        ...


@runtime_checkable
class NormalizeScorePlugin(ScorePlugin, Protocol):
    """A score plugin that wants to see all its scores at once before they count."""

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        """Return the final scores, one per cluster, in the same order. Called for an empty list, too."""
        ...
