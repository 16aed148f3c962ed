"""What a search has to reach, and what stands in the way."""

from __future__ import annotations

from enum import IntEnum

from karmada_advisor.state.stored import condition_of
from karmada_advisor.whynot.objects import NOBODY_DECIDES, ScheduledObjects
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import QUOTA_EXCEEDED, SUCCESS
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.core.ordering.candidates import candidate_list
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.structs import Struct


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
    present = [target.replicas for target in spec.clusters]
    if spec.placement.is_duplicated:
        return all(count == spec.replicas for count in present)
    return sum(present) == spec.replicas


class OnCluster(Struct, frozen=True):
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


class OffCluster(Struct, frozen=True):
    """A cluster has none of the replicas, and the binding is placed."""

    cluster: str

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        return is_placed(outcome) and self.cluster not in outcome.replicas


class IsPlaced(Struct, frozen=True):
    """The binding is placed at all; without a cluster, if ``without`` is not empty."""

    without: str = ""

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        return is_placed(outcome) and (not self.without or self.without not in outcome.replicas)


class IsDecided(Struct, frozen=True):
    """The binding is placed, and later changes are decided: scheduling is not suspended, and a scheduler has its name."""

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        held = outcome.scheduled.code in {NOBODY_DECIDES, "OtherScheduler", "Gated", "Waiting"}
        return is_placed(outcome) and not outcome.binding.spec.scheduling_suspended and not held


class RunsAll(Struct, frozen=True):
    """Enough replicas, or copies of what has no number of them, are on clusters that are not lost, and no decision fails."""

    wanted: int
    lost: frozenset[str] = frozenset()

    def holds(self, outcome: ScheduledObjects) -> bool:
        """Return whether it is reached."""
        if not is_placed(outcome):
            return False
        left = [name for name in outcome.replicas if name not in self.lost]
        return sum(on_cluster(outcome, name) for name in left) >= self.wanted


Goal = OnCluster | OffCluster | IsPlaced | IsDecided | RunsAll


class BlockedStep(IntEnum):
    """The steps of a decision, in their order."""

    TRIGGER = 0
    FILTER = 1
    SELECT = 2
    DIVIDE = 3
    WRITE = 4
    DONE = 5


class GoalBlocker(Struct, frozen=True):
    """Where a cluster drops out.

    Attributes:
        step: The step.
        code: A code in words of this package: the plugin of a refusal, or ``NothingAsks``.
        reasons: The texts of a refusal or an error.
        attempt: The run of the algorithm in which the cluster came farthest; None without one.
        candidate: The cluster in it; None if it was refused.
    """

    step: BlockedStep
    code: str
    reasons: tuple[str, ...] = ()
    attempt: TermAttempt | None = None
    candidate: Candidate | None = None


def blocker_of(outcome: ScheduledObjects, cluster: str) -> GoalBlocker:
    """Return where a cluster drops out of an outcome; DONE if it has replicas."""
    scheduled = outcome.scheduled
    if scheduled.code in {"OtherScheduler", "Gated", "Waiting", NOBODY_DECIDES}:
        return GoalBlocker(BlockedStep.TRIGGER, scheduled.code, (scheduled.problem,))
    if outcome.binding.spec.scheduling_suspended:
        return GoalBlocker(BlockedStep.TRIGGER, "Suspended")
    if scheduled.refused is not None:
        return GoalBlocker(BlockedStep.WRITE, "QuotaExceeded", (scheduled.problem,), last_attempt(outcome))
    if on_cluster(outcome, cluster):
        return GoalBlocker(BlockedStep.DONE, "TooFew", attempt=last_attempt(outcome))
    if scheduled.decision is None:
        return GoalBlocker(BlockedStep.TRIGGER, _untriggered(outcome))
    attempts = scheduled.decision.attempts
    if not attempts:
        return GoalBlocker(BlockedStep.TRIGGER, "SchedulerError", (scheduled.problem,))
    last = last_attempt(outcome)
    found = [_in_attempt(attempt, cluster) for attempt in ((last,) if last else attempts)]
    return max(found, key=lambda each: each.step)


def _untriggered(outcome: ScheduledObjects) -> str:
    binding = outcome.binding
    if binding.deleting:
        return "BeingDeleted"
    if binding.spec.placement is None:
        return "NoPlacement"
    return "NothingAsks" if outcome.scheduled.type is ScheduleType.AVOID else "NotScheduled"


def last_attempt(outcome: ScheduledObjects) -> TermAttempt | None:
    """Return the run whose result counts; None if all failed."""
    decision = outcome.scheduled.decision
    if decision is None or decision.error is not None:
        return None
    return next((attempt for attempt in reversed(decision.attempts) if attempt.error is None), None)


def _in_attempt(attempt: TermAttempt, cluster: str) -> GoalBlocker:
    refusal = attempt.diagnosis.result_by_cluster.get(cluster)
    if refusal is not None:
        return GoalBlocker(BlockedStep.FILTER, refusal.plugin, refusal.reasons, attempt)
    candidate = candidate_list(attempt.candidates).find(cluster)
    error = () if attempt.error is None else (str(attempt.error),)
    if candidate is None:
        # Deleting clusters have no refusal; without candidates the attempt ended before there were any.
        return GoalBlocker(BlockedStep.FILTER, "NoCandidate", error, attempt)
    if candidate_list(attempt.selected).find(cluster) is None:
        return GoalBlocker(BlockedStep.SELECT, "NotSelected", error, attempt, candidate)
    return GoalBlocker(BlockedStep.DIVIDE, "NoReplicas", error, attempt, candidate)


def signature(outcome: ScheduledObjects, blocker: GoalBlocker) -> tuple[object, ...]:
    """Return what an edit has to change to be of any effect on a cluster after the filters."""
    attempt, mine = blocker.attempt, blocker.candidate
    selected: object = ()
    if attempt is not None:
        # Without limits all candidates are selected; reading a thousand of them costs as much as a decision.
        is_all = attempt.selected is attempt.candidates
        selected = len(attempt.selected) if is_all else tuple(each.name for each in attempt.selected)
    rank: object = None
    if attempt is not None and mine is not None:
        rank = (mine.score, mine.available, mine.allocatable, mine.tier, mine.cluster.region)
    targets, term = outcome.scheduled.targets, attempt.affinity_name if attempt else ""
    return blocker.step, blocker.code, blocker.reasons, targets, selected, rank, term
