"""What a set of edits has to reach."""

from __future__ import annotations

from dataclasses import dataclass

from karmada_advisor.state.stored import condition_of
from karmada_advisor.whynot.objects import NOBODY_DECIDES, ScheduledObjects
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import QUOTA_EXCEEDED, SUCCESS


def has_replicas(binding: Binding) -> bool:
    """Return whether the scheduler divides replicas; otherwise a cluster is a target or not."""
    spec = binding.spec
    return (spec.replicas > 0 or spec.replica_requirements is not None) and len(spec.components) <= 1


def on_cluster(outcome: ScheduledObjects, cluster: str) -> int:
    """Return the replicas on a cluster; 1 for a target of a workload without replicas."""
    replicas = outcome.replicas
    if cluster not in replicas:
        return 0
    return replicas[cluster] if has_replicas(outcome.binding) else 1


def is_placed(outcome: ScheduledObjects) -> bool:
    """Return whether the binding has clusters and its last decision did not fail.

    A placement that nothing may change, because scheduling is suspended or nobody decides, has to have all replicas.
    """
    if not outcome.scheduled.targets:
        return False
    if outcome.scheduled.type is ScheduleType.AVOID:
        if outcome.edits and condition_of(outcome.binding).reason == QUOTA_EXCEEDED:
            return False  # without a decision, the condition stays
        is_kept = outcome.binding.spec.scheduling_suspended or outcome.scheduled.code == NOBODY_DECIDES
        return not is_kept or _has_all_replicas(outcome.binding)
    return outcome.scheduled.code == SUCCESS


def _has_all_replicas(binding: Binding) -> bool:
    spec = binding.spec
    if not has_replicas(binding) or spec.placement is None:
        return True
    present = [each.replicas for each in spec.clusters]
    if spec.placement.is_duplicated:
        return all(each == spec.replicas for each in present)
    return sum(present) == spec.replicas


@dataclass(frozen=True)
class OnCluster:
    """A cluster has at least some replicas.

    Edits that make the decision fail, so that the placement stays as it is, do not reach it.
    """

    cluster: str
    replicas: int = 1

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        if outcome.edits and not is_placed(outcome):
            return False
        return on_cluster(outcome, self.cluster) >= self.replicas


@dataclass(frozen=True)
class OffCluster:
    """A cluster has none of the replicas, and the binding is placed."""

    cluster: str

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        return is_placed(outcome) and self.cluster not in outcome.replicas


@dataclass(frozen=True)
class IsPlaced:
    """The binding is placed at all; without a cluster, if ``without`` is not empty."""

    without: str = ""

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        return is_placed(outcome) and (not self.without or self.without not in outcome.replicas)


@dataclass(frozen=True)
class IsDecided:
    """The binding is placed, and later changes are decided: scheduling is not suspended, and a scheduler has its name."""

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        held = outcome.scheduled.code in {NOBODY_DECIDES, "OtherScheduler", "Gated", "Waiting"}
        return is_placed(outcome) and not outcome.binding.spec.scheduling_suspended and not held


Goal = OnCluster | OffCluster | IsPlaced | IsDecided
