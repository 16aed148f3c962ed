"""The extension points of a decision in running order, PreFilter to Assign.

A plugin is an object with a ``name`` and one method for each of its extension points. Every method has one context
object, so that contexts can get new fields. Plugins must not change objects that they receive. PreFilter, PreScore,
Select and Assign may be coroutine functions, for I/O. Filter and Score are called once per cluster and are plain
functions; they read what PreFilter and PreScore have written to the cycle state.

All of them run once per affinity term. If a plugin raises, exceeds its timeout or returns a value that its extension
point does not allow, the attempt fails with an error that names the plugin. The binding keeps its placement and is tried
again. After a timeout a plugin is not called for a while (``framework.runtime.circuit_breaker``).
``framework.binding_points`` has the extension points before and after a decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.cycle import Candidate, Cycle, ReplicaEstimate
from karmada_scheduler.framework.diagnosis import Diagnosis, SchedulingError
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.workload import UndeclaredWorkloadError, WorkloadAccess
from karmada_scheduler.structs import Struct

MIN_CLUSTER_SCORE = 0
MAX_CLUSTER_SCORE = 100


class PreFilterContext(Struct, WorkloadAccess, frozen=True):
    """The context before the filters.

    Attributes:
        clusters: The clusters that are not being deleted, in the order of names.
    """

    cycle: Cycle
    clusters: Sequence[Cluster]


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Runs once before the filters."""

    def pre_filter(self, context: PreFilterContext, /) -> PreFilterAnswer | Awaitable[PreFilterAnswer]:
        """Compute data for all clusters, and write it to ``context.cycle.state``.

        Returns:
            SUCCESS: The attempt continues. A set of names: It continues with these clusters only; the sets of several
            plugins are intersected, and the other clusters are refused. SKIP: The plugin's ``filter`` is not called.
            Unschedulable: All clusters are refused, after the other PreFilter plugins have run.
            UnschedulableAndUnresolvable: All clusters are refused at once. Both clear the placement; to keep it, refuse
            at Permit. Error: The attempt fails and the placement stays.
        """


PreFilterAnswer = Result | AbstractSet[str]


class PeerContext(Struct, frozen=True):
    """Another binding, and a cluster to which it is added or from which it is removed.

    Attributes:
        cycle: The attempt; ``cycle.workload`` is the workload of the binding that is being scheduled.
    """

    cycle: Cycle
    peer: Binding
    cluster: Cluster

    @property
    def workload(self) -> Workload | None:
        """The metadata of the workload of ``peer``, as ``Handle.workload``."""
        if self.cycle.workload_answer is None:
            raise UndeclaredWorkloadError
        return self.cycle.stored_workload(self.peer.key)


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Updates the cycle state of PreFilter for other bindings.

    Called between PreFilter and Filter for bindings that are decided and not yet written: first ``remove_binding`` with
    the binding as it is stored, which is what ``handle.bindings()`` returns, then ``add_binding`` with the binding as
    decided. PostFilter calls ``remove_binding`` with a copy of the cycle state (``PostFilterContext.fits_without``).
    """

    def add_binding(self, context: PeerContext, /) -> Result:
        """Add ``context.peer`` on ``context.cluster``. A result other than SUCCESS makes the attempt fail."""

    def remove_binding(self, context: PeerContext, /) -> Result:
        """Remove ``context.peer`` from ``context.cluster``. A result other than SUCCESS makes the attempt fail."""


class FilterContext(Struct, WorkloadAccess, frozen=True):
    """A cluster to be filtered; it can be unpacked into its cycle and its cluster."""

    cycle: Cycle
    cluster: Cluster

    def __iter__(self) -> Iterator[Any]:
        return iter((self.cycle, self.cluster))


class FilterClustersContext(Struct, WorkloadAccess, frozen=True):
    """The clusters to be filtered: those that passed the plugins before, at least one."""

    cycle: Cycle
    clusters: Sequence[Cluster]


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Decides which clusters can take a binding."""

    def filter(self, context: FilterContext, /) -> Result:
        """Return whether a cluster can take the binding.

        Called for every cluster that is not being deleted, until one plugin refuses it; the first refusal is the reason.
        Unschedulable, UnschedulableAndUnresolvable and Pending refuse the cluster. If all clusters are refused, the
        placement is cleared. Error means that the result could not be determined: the attempt fails and the placement
        stays.

        A plugin may have ``filter_key(cycle)``. It returns a hashable value that contains everything in the cycle on
        which the results depend, for clusters that the binding is neither on (``cycle.current_clusters``) nor being
        evicted from (``cycle.evicted``); None if the results cannot be cached for this binding. The Filter plugins of a
        profile before the first one without it are called for such clusters once per key and version of the cluster;
        the others are called at each decision, for the clusters that these let pass. A plugin with ``pre_filter``
        counts as one without a key. Results must not depend on anything else that changes, such as the time. What the
        filter reads from ``cycle.workload`` belongs in the key. With ``filter_key_covers_current = True`` the key is also good for the other clusters: results then depend
        on it, on the cluster, and on whether the binding is on the cluster or evicted from it.
        """


class Shortage(Struct, frozen=True):
    """Clusters pass, and cannot take what is needed.

    Attributes:
        needed: Replicas, or 1 set of components.
        candidates: The clusters that pass, in the order of preference, with the replicas that they can take.
        error: Why the affinity term failed, as without the plugin.
    """

    needed: int
    candidates: Sequence[Candidate]
    error: SchedulingError


class PostFilterContext(Struct, WorkloadAccess, frozen=True):
    """The context after all clusters were refused, or after too little capacity was found.

    Attributes:
        diagnosis: Why each cluster was refused.
        fits_without: Returns whether a cluster would pass all filters without some bindings.
        shortage: What is missing, if clusters pass; None if all were refused.
        decide: With a shortage: ``await context.decide(estimate)`` selects and divides again, as if an EstimateReplicas plugin had
            changed the numbers, and returns the targets, or the error. Limits of such plugins (``most``) stay.
    """

    cycle: Cycle
    diagnosis: Diagnosis
    fits_without: Callable[[Cluster, Sequence[Binding]], Result]
    shortage: Shortage | None = None
    decide: Callable[[ReplicaEstimate], Awaitable[Sequence[TargetCluster] | SchedulingError]] | None = None


@runtime_checkable
class FilterClustersPlugin(Plugin, Protocol):
    """A Filter plugin that is asked about several clusters at once, instead of ``filter``; a class has one of the two."""

    def filter_clusters(self, context: FilterClustersContext, /) -> Sequence[Result]:
        """Return one result per cluster, in the order of ``context.clusters``, each as ``filter`` would.

        A result must not depend on which other clusters are asked about: with ``filter_key`` these are the changed ones, and
        ``explain`` asks about single ones.
        """


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Runs when no cluster passes the filters.

    With ``post_filter_for = {"capacity"}`` it runs instead when clusters pass and cannot take the replicas, with
    ``{"filter", "capacity"}`` in both cases.
    """

    def post_filter(self, context: PostFilterContext, /) -> Result | Awaitable[Result]:
        """Free capacity, and return whether the next attempt may succeed.

        Plugins are called in order until one returns SUCCESS, Error or UnschedulableAndUnresolvable. After SUCCESS the
        binding is tried again after a delay, and does not wait for an event. The attempt fails in every case, with the
        reasons of the filters, or of Select and Assign. Errors of PostFilter are only logged.

        For lack of capacity it runs once all affinity terms have failed, for each of them in order that lacks capacity, until one of
        the plugins has such a result, and not for proposals. ``retry_after`` of the result is the delay of the next attempt.
        """


class PreScoreContext(Struct, WorkloadAccess, frozen=True):
    """The context before scores: the clusters that passed the filters, in the order of names; at least one."""

    cycle: Cycle
    clusters: Sequence[Cluster]


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Runs once before the scores."""

    def pre_score(self, context: PreScoreContext, /) -> Result | Awaitable[Result]:
        """Compute data for all clusters, and write it to ``context.cycle.state``.

        After SKIP the plugin's ``score`` is not called. Any other result than SKIP and SUCCESS makes the attempt fail.
        """


class ScoreContext(Struct, WorkloadAccess, frozen=True):
    """A cluster to be scored; it can be unpacked into its cycle and its cluster."""

    cycle: Cycle
    cluster: Cluster

    def __iter__(self) -> Iterator[Any]:
        return iter((self.cycle, self.cluster))


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores clusters."""

    def score(self, context: ScoreContext, /) -> int:
        """Return the score of a cluster, 0 to 100 after ``normalize_score``. Weighted scores of all plugins are added.

        A plugin without ``normalize_score`` may have ``score_key(cycle)``, which has the meaning of ``filter_key``.
        """


class NormalizeScoreContext(Struct, WorkloadAccess, frozen=True):
    """The scores of one plugin.

    Attributes:
        clusters: The clusters that passed the filters, in the order of names.
        scores: The scores of the plugin, one per cluster.
    """

    cycle: Cycle
    clusters: Sequence[Cluster]
    scores: Sequence[int]


@runtime_checkable
class NormalizeScorePlugin(ScorePlugin, Protocol):
    """A Score plugin that converts its scores to 0 to 100."""

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        """Return the final scores in the same order, each 0 to 100."""


class EstimateContext(Struct, WorkloadAccess, frozen=True):
    """The context after the estimators: how many replicas can be added to each cluster is counted.

    Attributes:
        needed: What the chosen clusters should be able to take together: replicas, or 1 set of components.
    """

    cycle: Cycle
    needed: int


@runtime_checkable
class EstimateReplicasPlugin(Plugin, Protocol):
    """Changes how many replicas clusters can take: a cap, capacity that is held for others, places that become free."""

    def estimate_replicas(self, context: EstimateContext, /) -> ReplicaEstimate | Result:
        """Return the changes for some clusters; ``ReplicaEstimate()`` for none. Must be cheap.

        Called after the filters, scores and estimators, for bindings that need replicas. Scale-ups, fresh divisions,
        Aggregated and dynamic weights, cluster constraints, and the order of clusters with equal scores follow the numbers;
        Duplicated and static weights do not. Replicas that are on a cluster stay there. A binding that does not fit any
        more is reported as without the plugin. ``Result.error`` means that the numbers are not known: the attempt fails and
        the placement stays. Decisions that are not written yet are not in ``handle.bindings()``; count them in ``reserve``.

        While the attribute ``estimates_nothing`` of all such plugins is True, none is called: a call costs 10 µs.
        """


class SelectContext(Struct, WorkloadAccess, frozen=True):
    """The clusters to choose from.

    Attributes:
        candidates: The clusters that passed, ordered by tier, score, available replicas and name.
        needed: What the chosen clusters should be able to take together: replicas, or 1 set of components.
    """

    cycle: Cycle
    candidates: Sequence[Candidate]
    needed: int


@runtime_checkable
class SelectPlugin(Plugin, Protocol):
    """Chooses clusters; DefaultSelector follows the spread constraints."""

    def select(self, context: SelectContext, /) -> SelectAnswer | Awaitable[SelectAnswer]:
        """Return the chosen ``context.candidates`` in the order of preference, at least one, or SKIP.

        The first plugin that does not return SKIP decides. A refusal keeps the placement and is reported as
        Unschedulable, an Error as SchedulerError.
        """


SelectAnswer = Sequence[Candidate] | Result


class AssignContext(Struct, WorkloadAccess, frozen=True):
    """The clusters among which the replicas are divided.

    Attributes:
        selected: The result of Select.
    """

    cycle: Cycle
    selected: Sequence[Candidate]


@runtime_checkable
class AssignPlugin(Plugin, Protocol):
    """Divides the replicas; DefaultAssigner follows the replica scheduling strategy."""

    def assign(self, context: AssignContext, /) -> AssignAnswer | Awaitable[AssignAnswer]:
        """Return replicas by cluster name, targets, or SKIP; at least one cluster, unless there are no replicas to divide.

        The first plugin that does not return SKIP decides. Names must be among ``context.selected``, and replicas must
        not be negative. If the placement divides replicas (type Divided), their sum must be the binding's replicas.
        A refusal keeps the placement and is reported as Unschedulable, an Error as SchedulerError.
        """


AssignAnswer = Mapping[str, int] | Sequence[TargetCluster] | Result
