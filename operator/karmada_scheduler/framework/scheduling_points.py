"""The extension points of a decision, one after the other: PreFilter to Assign.

A plugin is an object with a ``name`` and one method for each point that it takes part in. Every point has
one context object, so that a point can learn something new without a new signature. Plugins do not change
what they are handed. PreFilter, PreScore, Select and Assign may be coroutines, for what has to be asked
elsewhere; Filter and Score, called once per cluster, are plain functions and read what PreFilter and
PreScore noted in the cycle state.

All run once per affinity term. A plugin that raises, takes longer than its time budget, or answers what
its point does not allow, fails the attempt with an error that names it; the binding keeps its placement
and is tried again. A plugin that took too long is not called for a while (``framework.breaker``).
``karmada_scheduler.framework.binding`` has the points before and after.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework.cycle import Candidate, Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.workload import SeesWorkload, UndeclaredWorkloadError

MIN_CLUSTER_SCORE = 0
MAX_CLUSTER_SCORE = 100


@runtime_checkable
class Plugin(Protocol):
    """What every plugin has.

    A plugin may also have ``timeout``, the seconds that one of its coroutines may take; None for no limit. One with
    ``needs_workload = True`` gets the metadata of the workload as ``context.workload`` at every point: its labels,
    annotations and owners. It is watched only where an enabled plugin declares that, and all plugins of that profile see
    it.

    Attributes:
        name: As in metrics and error texts; the name under which it is registered.
    """

    name: str


@dataclass(frozen=True, slots=True)
class PreFilterContext(SeesWorkload):
    """What is known before any cluster is judged.

    Attributes:
        clusters: Those that are not being deleted, in the order of names.
    """

    cycle: Cycle
    clusters: Sequence[Cluster]


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the binding and all clusters before they are judged one by one."""

    def pre_filter(self, context: PreFilterContext, /) -> PreFilterAnswer | Awaitable[PreFilterAnswer]:
        """Compute what the clusters have in common, and note it in ``context.cycle.state``.

        Returns:
            SUCCESS to go on. A set of names to go on with these clusters only; what several plugins name
            is intersected, and the others are refused with upstream-like text. SKIP to leave this plugin's
            ``filter`` out of the cycle. Unschedulable: all clusters are refused with its reasons, after
            the other PreFilter plugins have run; UnschedulableAndUnresolvable: the same, at once. Both
            clear the placement, as no fitting cluster does; a gate that must keep it belongs to Permit.
            Error: the attempt fails and the placement stays.
        """
        ...


PreFilterAnswer = Result | AbstractSet[str]


@dataclass(frozen=True, slots=True)
class PeerContext:
    """Another binding that is to be thought of as being on a cluster, or as gone from it.

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
    """Keeps the notes of PreFilter true while other bindings come and go in thought.

    Called between PreFilter and Filter for bindings that were decided and are not yet written: first
    ``remove_binding`` as they are stored, which is how ``handle.bindings()`` shows them, then ``add_binding``
    as they will be. Called for the what-ifs of PostFilter, too, on a copy of the notes.
    """

    def add_binding(self, context: PeerContext, /) -> Result:
        """Count ``context.peer`` in on ``context.cluster``. What is not SUCCESS fails the attempt."""
        ...

    def remove_binding(self, context: PeerContext, /) -> Result:
        """Leave ``context.peer`` out on ``context.cluster``. What is not SUCCESS fails the attempt."""
        ...


class FilterContext(NamedTuple):
    """Whether one cluster can take the binding."""

    cycle: Cycle
    cluster: Cluster

    @property
    def workload(self) -> Workload | None:
        """As ``Cycle.workload``."""
        return self.cycle.workload

    @property
    def workload_problem(self) -> str:
        """As ``Cycle.workload_problem``."""
        return self.cycle.workload_problem


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says which clusters can take a binding."""

    def filter(self, context: FilterContext, /) -> Result:
        """Judge one cluster.

        Called for every cluster that is not being deleted, until one plugin refuses it: that result is
        kept as the reason and no further plugin is asked. Unschedulable, UnschedulableAndUnresolvable and Pending
        refuse the cluster; where all are refused, the placement is cleared. Error says that it could not be found
        out: the attempt fails and the placement stays.

        A plugin may also have ``filter_key(cycle)``: a hashable value that says what of the cycle its answers
        depend on, for clusters that the binding is neither on (``cycle.current_clusters``) nor being moved off
        (``cycle.evicted``); None if that cannot be said this time. If all Filter plugins of a profile have it, they
        are asked about such clusters once per key and version of the cluster. It must not depend on anything
        that changes by itself, such as the time. What counts of the workload's metadata belongs into the key:
        ``cycle.workload``.
        """
        ...


@dataclass(frozen=True, slots=True)
class PostFilterContext(SeesWorkload):
    """No cluster can take the binding.

    Attributes:
        diagnosis: What kept each of them out.
        fits_without: Answers what-ifs: whether a cluster would pass all filters if the bindings named were
            not on it.
    """

    cycle: Cycle
    diagnosis: Diagnosis
    fits_without: Callable[[Cluster, Sequence[Binding]], Result]


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Looks for a way to make room when no cluster passes."""

    def post_filter(self, context: PostFilterContext, /) -> Result:
        """Do something about it, or say that nothing can be done.

        Plugins are asked in order until one returns SUCCESS, Error or UnschedulableAndUnresolvable.
        SUCCESS means that it may work next time: the binding is tried again after a pause instead of
        waiting for an event. The attempt itself has failed in every case, with the filters' reasons; what
        goes wrong here is in the log.
        """
        ...


@dataclass(frozen=True, slots=True)
class PreScoreContext(SeesWorkload):
    """The clusters that can take the binding, in the order of names; at least one."""

    cycle: Cycle
    clusters: Sequence[Cluster]


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares scoring."""

    def pre_score(self, context: PreScoreContext, /) -> Result | Awaitable[Result]:
        """Compute what all scores have in common, and note it in ``context.cycle.state``.

        SKIP leaves this plugin's ``score`` out of the cycle; what is neither that nor SUCCESS fails the
        attempt.
        """
        ...


class ScoreContext(NamedTuple):
    """How good one cluster is, of those that can take the binding."""

    cycle: Cycle
    cluster: Cluster

    @property
    def workload(self) -> Workload | None:
        """As ``Cycle.workload``."""
        return self.cycle.workload

    @property
    def workload_problem(self) -> str:
        """As ``Cycle.workload_problem``."""
        return self.cycle.workload_problem


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Says how good a cluster is."""

    def score(self, context: ScoreContext, /) -> int:
        """Rate one cluster: 0 to 100 once normalized. Scores times weights are added up over all plugins.

        A plugin that does not normalize may also have ``score_key(cycle)``, with the same meaning as
        ``filter_key`` of a Filter plugin.
        """
        ...


@dataclass(frozen=True, slots=True)
class NormalizeScoreContext(SeesWorkload):
    """What one plugin said of all clusters.

    Attributes:
        clusters: Those that can take the binding, in the order of names.
        scores: The plugin's own scores, one per cluster.
    """

    cycle: Cycle
    clusters: Sequence[Cluster]
    scores: Sequence[int]


@runtime_checkable
class NormalizeScorePlugin(ScorePlugin, Protocol):
    """A score plugin that wants to see all its scores at once before they count."""

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        """Return the final scores, one per cluster, in the same order, each 0 to 100."""
        ...


@dataclass(frozen=True, slots=True)
class SelectContext(SeesWorkload):
    """The clusters to choose from.

    Attributes:
        candidates: All that passed, in the order of preference: tier, score, room, name.
        needed: What the chosen clusters should have room for together: replicas, or 1 set of components.
    """

    cycle: Cycle
    candidates: Sequence[Candidate]
    needed: int


@runtime_checkable
class SelectPlugin(Plugin, Protocol):
    """Chooses the clusters to use; DefaultSelector does what the spread constraints say."""

    def select(self, context: SelectContext, /) -> SelectAnswer | Awaitable[SelectAnswer]:
        """Return the chosen of ``context.candidates`` in the order of preference, or SKIP.

        The first plugin that does not SKIP decides. A refusal keeps the placement and is reported as
        Unschedulable, an Error as SchedulerError.
        """
        ...


SelectAnswer = Sequence[Candidate] | Result


@dataclass(frozen=True, slots=True)
class AssignContext(SeesWorkload):
    """The clusters to divide the replicas over.

    Attributes:
        selected: As Select chose them.
    """

    cycle: Cycle
    selected: Sequence[Candidate]


@runtime_checkable
class AssignPlugin(Plugin, Protocol):
    """Divides the replicas; DefaultAssigner does what the replica scheduling strategy says."""

    def assign(self, context: AssignContext, /) -> AssignAnswer | Awaitable[AssignAnswer]:
        """Return replicas by cluster name (or targets), or SKIP.

        The first plugin that does not SKIP decides. Names must be among ``context.selected``, replicas not
        negative; where the placement divides replicas (type Divided) they must add up to the binding's.
        A refusal keeps the placement and is reported as Unschedulable, an Error as SchedulerError.
        """
        ...


AssignAnswer = Mapping[str, int] | Sequence[TargetCluster] | Result
