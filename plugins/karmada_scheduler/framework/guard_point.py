"""The extension points Guard and Reconsider: a decision before it is reserved, and a later one that no event requires.

Guard plugins see every decision that changes ``spec.clusters``, and also the one that no cluster fits, which would clear
them. A refusal keeps the placement. A plugin may also add graceful eviction tasks and annotations to the patch of the
decision.

Karmada's graceful-eviction controller ends the tasks. Source: karmada v1.18.2
pkg/apis/work/v1alpha2/binding_types.go (GracefulEvictionTask) and pkg/controllers/gracefuleviction/evictiontask.go.

A binding that is scheduled stays where it is until an event requires another decision. A Reconsider plugin proposes one,
for example with an affinity term that the binding has left. The scheduler tries the proposal with all plugins and
estimators, and shows the outcome to the plugin, which then lets it be written or not. Nothing is written of a proposal
that fails, that a Guard plugin refuses, or that its plugin declines. PostFilter plugins are not called for proposals: nobody
gives way for a decision that is not needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import FitError, HeldError, SchedulingError
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.workload import WorkloadAccess
from karmada_scheduler.structs import Struct, field

RECONSIDER_SECONDS: Final = 30.0
"""The default of ``reconsider_seconds``."""


class Terms(Enum):
    """The affinity terms that a proposed decision may use."""

    EARLIER = "earlier"
    """Those before the one in force, the first of them first."""
    IN_FORCE = "in force"
    """The one in force only, as an ordinary decision about the binding."""


class Proposal(Struct, frozen=True):
    """A decision that a plugin proposes.

    Attributes:
        reason: For eviction tasks and Events, 1 to 32 letters and digits, a letter first: ``FailedBack``.
        terms: The affinity terms that the decision may use.
        kept: How many replicas stay on each current cluster; the others are divided again, as after a scale-up. A cluster that
            is not named, or keeps 0, counts as one that the binding is not on. None if all stay.
    """

    reason: str
    terms: Terms = Terms.EARLIER
    kept: Mapping[str, int] | None = None


class ReconsiderContext(Struct, frozen=True):
    """A proposed decision that was tried.

    Attributes:
        binding: The binding as stored; ``binding.spec.clusters`` are its current clusters.
        proposal: What the plugin proposed.
        targets: The clusters and replicas of the decision; None after an error, except after a refusal at Guard.
        affinity_name: The affinity term of the decision; "" after an error and with a single affinity.
        cycle: The last attempt, with the snapshot; None if there was none.
        error: Why nothing can be written: no cluster fits, a Guard plugin refuses (``held``), or a plugin failed.
    """

    binding: Binding
    proposal: Proposal
    targets: Sequence[TargetCluster] | None
    affinity_name: str
    cycle: Cycle | None
    error: SchedulingError | None = None

    @property
    def held(self) -> bool:
        """Whether the decision succeeds and a Guard plugin does not let it through now."""
        return isinstance(self.error, HeldError)


@runtime_checkable
class ReconsiderPlugin(Plugin, Protocol):
    """Proposes later decisions about bindings that are scheduled.

    A plugin may have ``reconsider_seconds``, the interval of its proposals, at least 1; 30 without it. Between them the
    scheduler asks when a cluster changes that an affinity of the binding matches.
    """

    def propose(self, binding: Binding, /) -> Proposal | None:
        """Return the decision to try, None for none. Must be cheap: it is called for all bindings of the profile.

        It is also called when a binding is taken from the queue, so that the plugin sees a binding that is not
        ``is_settled`` any more. The scheduler tries proposals about settled bindings only. The first plugin that proposes
        one counts. An error counts as None.
        """

    def reconsider(self, context: ReconsiderContext, /) -> Result:
        """Return SUCCESS to have the decision written, or a refusal. Must be cheap; it may have side effects.

        It is called by the scheduler that leads, and not by ``explain`` and ``simulate``. After an error
        (``context.error``) nothing is written whatever it returns. After a refusal nothing is written either, and the
        condition stays as it is.
        """


@runtime_checkable
class StartTermPlugin(Plugin, Protocol):
    """An addition to Reconsider: determines the affinity term with which the next decision about a binding begins."""

    def start_term(self, binding: Binding, /) -> str:
        """Return the affinity term to begin with, "" for the one in the status of the binding.

        It is called for each binding with affinity terms that is taken from the queue without a proposal. A binding for which
        it returns another term than the status has is decided with it even if it needs no scheduling, and the status gets
        the term of the decision. Clusters are written before the name of their term: if a scheduler ends in between, this corrects
        the name. A name that is no affinity term of the binding counts as "". Must be cheap.
        """


GRACEFULLY: Final = "Gracefully"
DIRECTLY: Final = "Directly"


class EvictionTask(Struct, frozen=True):
    """A graceful eviction task that is written together with the new clusters of a binding.

    Karmada keeps the workload on the cluster until it is healthy on all new clusters, or until the grace period is over.
    The producer is the scheduler name of the profile.

    Attributes:
        from_cluster: A current cluster that is not among the new ones.
        reason: 1 to 32 characters: letters, digits, ``_``, ``,`` and ``:``, a letter first, no punctuation last.
        message: For people, at most 1,024 characters.
        grace_period_seconds: From 1 to 2,147,483,647.
        purge_mode: ``Gracefully``, or ``Directly``: delete the workload on this cluster before the new ones get it.
        replicas: The replicas that the cluster had; 0 for a workload without replicas. Karmada does not read it.
    """

    from_cluster: str
    reason: str = "Rescheduled"
    message: str = ""
    grace_period_seconds: int = 600
    purge_mode: str = GRACEFULLY
    replicas: int = 0


class GuardContext(Struct, WorkloadAccess, frozen=True, dict=True):
    """A decision that would change the clusters of a binding.

    Attributes:
        binding: The binding as stored; ``binding.spec.clusters`` are its current clusters.
        targets: The clusters and replicas of the decision; None if no cluster fits.
        cycle: The last attempt, with the snapshot and its cycle state.
        error: Why no cluster fits, with the diagnosis; None if one does.
        proposal: What a Reconsider plugin proposed; None for a decision that an event requires. A proposal that is
            refused is not reported in the condition, its annotations are not written, and it is not retried: the plugin
            proposes again.
    """

    binding: Binding
    targets: Sequence[TargetCluster] | None
    cycle: Cycle
    error: FitError | None = None
    proposal: Proposal | None = None

    @cached_property
    def gone(self) -> frozenset[str]:
        """The names of current clusters that are being deleted or do not exist. They leave the placement in any case."""
        return frozenset(filter(self.cycle.snapshot.is_gone, self.binding.spec.target_names))

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The names of current clusters that exist and that the decision takes the binding off entirely."""
        kept = {target.name for target in self.targets or ()}
        return self.binding.spec.target_names - kept - self.gone


class GuardAnswer(Struct, frozen=True):
    """A result with additions to the patch of the decision.

    Attributes:
        result: SUCCESS, or a refusal or an error as in ``GuardPlugin.guard``.
        tasks: Eviction tasks for leaving clusters; not written after a refusal. A cluster with a task gets no second one.
        annotations: Annotations to set, also after a refusal; None as a value removes one.
        cancel: If no cluster fits: clusters with an eviction task of this scheduler that may take the workload back. The
            decision is repeated without these tasks, and they are removed if it puts the workload there.
        line: Of a refusal with ``retry_after``: a name for what the decision waits for, such as a budget. Of the decisions
            of a profile with the same line only the first one is repeated after its ``retry_after``, by priority and then
            by the time of the first refusal, and the next one when it was let through. "" for no line.
        stays: Of a refusal of targets: the placement is good as it is, for example because a move saves too little. The
            binding counts as scheduled, with the plugin and its reason in the condition, and is decided again at its next
            event only. No effect if a cluster is gone, or if replicas are missing or too many; then it is a refusal.
        warning: What people should know about a decision that is let through; reported in an Event and by ``explain``.
    """

    result: Result = SUCCESS
    tasks: Sequence[EvictionTask] = ()
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    cancel: Collection[str] = ()
    line: str = ""
    warning: str = ""
    stays: bool = False


@runtime_checkable
class GuardPlugin(Plugin, Protocol):
    """Lets a decision through, keeps the placement as it is, or makes a move graceful."""

    def guard(self, context: GuardContext, /) -> Result | GuardAnswer:
        """Return SUCCESS, or a refusal to keep the placement. Must be cheap and free of side effects.

        Plugins are called in the order of the profile until one refuses; tasks and annotations of all of them are
        written, and for the same cluster or annotation the first plugin counts. After a refusal of targets the binding
        is Unschedulable. After a refusal of the error that no cluster fits, it keeps its clusters without those that are
        gone, and the condition stays NoClusterFit. In both cases it is decided again at its next event, and after
        ``retry_after`` seconds or the backoff of the queue. An error keeps the placement and is reported as
        SchedulerError. ``explain`` and ``simulate`` call the plugin as well. Refused decisions are repeated after all other
        bindings.
        """


@runtime_checkable
class GuardObservationPlugin(Plugin, Protocol):
    """An addition to Guard: decides when Karmada may end the eviction tasks of this scheduler by health."""

    def guard_observation(self, binding: Binding, /) -> Result:
        """Return SUCCESS if the generation of a binding may be observed, or a refusal to wait.

        It is called for a binding that needs no scheduling, has an eviction task of this scheduler, and whose
        ``status.schedulerObservedGeneration`` is not its generation. As long as they differ, Karmada ends a task by its
        grace period only. The plugin is called again when the status of the workload on a cluster changes.
        """
