"""The extension point Guard: a decision that is about to change the clusters of a binding, before anything is reserved.

Guard plugins see every decision that changes ``spec.clusters``, and also the one that no cluster fits, which would clear
them. A refusal keeps the placement. A plugin may also add graceful eviction tasks and annotations to the patch of the
decision.

Karmada's graceful-eviction controller ends the tasks. Source: karmada v1.18.2
pkg/apis/work/v1alpha2/binding_types.go (GracefulEvictionTask) and pkg/controllers/gracefuleviction/evictiontask.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import FitError
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.reconsider_point import Proposal
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.workload import WorkloadAccess
from karmada_scheduler.structs import Struct, field

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
        clusters = {each.name: self.cycle.snapshot.get(each.name) for each in self.binding.spec.clusters}
        return frozenset(name for name, found in clusters.items() if found is None or found.deleting)

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The names of current clusters that exist and that the decision takes the binding off entirely."""
        kept = {each.name for each in self.targets or ()}
        return self.binding.spec.target_names - kept - self.gone


class GuardAnswer(Struct, frozen=True):
    """A result with additions to the patch of the decision.

    Attributes:
        result: SUCCESS, or a refusal or an error as in ``GuardPlugin.guard``.
        tasks: Eviction tasks for leaving clusters; not written after a refusal. A cluster with a task gets no second one.
        annotations: Annotations to set, also after a refusal; None as a value removes one.
        cancel: If no cluster fits: clusters with an eviction task of this scheduler that may take the workload back. The
            decision is repeated without these tasks, and they are removed if it puts the workload there.
    """

    result: Result = SUCCESS
    tasks: Sequence[EvictionTask] = ()
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    cancel: Collection[str] = ()


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
        SchedulerError. ``explain`` and ``simulate`` call the plugin as well.
        """
        ...


@runtime_checkable
class GuardObservationPlugin(Plugin, Protocol):
    """An addition to Guard: decides when Karmada may end the eviction tasks of this scheduler by health."""

    def guard_observation(self, binding: Binding, /) -> Result:
        """Return SUCCESS if the generation of a binding may be observed, or a refusal to wait.

        It is called for a binding that needs no scheduling, has an eviction task of this scheduler, and whose
        ``status.schedulerObservedGeneration`` is not its generation. As long as they differ, Karmada ends a task by its
        grace period only. The plugin is called again when the status of the workload on a cluster changes.
        """
        ...
