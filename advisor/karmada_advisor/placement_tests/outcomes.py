"""What became of a workload in the last step."""

from __future__ import annotations

from typing import Final

from karmada_advisor.placement_tests.case_state import PlacedWorkload
from karmada_advisor.plan.model import Effect, PlanHeldBy
from karmada_advisor.state.stored import condition_of
from karmada_scheduler.core.classify import ScheduleType

NOT_CLAIMED: Final = "NotClaimed"
OTHER_SCHEDULER: Final = "OtherScheduler"
NO_POLICY: Final = "none"


def is_placed(found: PlacedWorkload) -> bool:
    """Return whether a workload has clusters."""
    return found.binding is not None and bool(found.binding.spec.clusters)


def clusters_of(found: PlacedWorkload) -> dict[str, int]:
    """Return the replicas of a workload by cluster, in the order of names."""
    targets = found.binding.spec.clusters if found.binding is not None else ()
    return {each.name: each.replicas for each in sorted(targets)}


def reason_of(found: PlacedWorkload) -> str:
    """Return why a workload is not placed; "" if nothing says so."""
    binding, comparison = found.binding, found.comparison
    if binding is None or comparison is None:
        return NOT_CLAIMED
    if comparison.hold is not None:
        return OTHER_SCHEDULER if comparison.hold.by is PlanHeldBy.SCHEDULER else comparison.hold.reason
    if not found.state.scenario.rules.may_decide(binding):
        return OTHER_SCHEDULER
    if comparison.decided is not None and comparison.decided.error:
        return comparison.decided.reason
    condition = condition_of(binding)
    return condition.reason if condition.status == "False" else ""


def why_not_placed(found: PlacedWorkload) -> str:
    """Return the reason and the message for people."""
    reason, comparison = reason_of(found), found.comparison
    if reason == NOT_CLAIMED:
        return f"{reason}: {found.explanation.causes[0].text}"
    if comparison is not None and comparison.hold is not None:
        return f"{reason}: {comparison.hold.text}"
    if not reason:
        return "nothing asks for clusters"
    if comparison is not None and comparison.decided is not None and comparison.decided.error:
        return f"{reason}: {comparison.decided.error}"
    return f"{reason}: {condition_of(found.binding).message}" if found.binding is not None else reason


def policy_of(found: PlacedWorkload) -> str:
    """Return the policy that claims a workload, as ``KIND/[NS/]NAME``, or ``none``."""
    policy = found.plan.policy if found.plan is not None and found.binding is not None else None
    if policy is None:
        return NO_POLICY
    return "/".join(each for each in (policy.kind, policy.namespace, policy.name) if each)


def type_of(found: PlacedWorkload) -> str:
    """Return why a workload was decided about in the last step."""
    decided = found.comparison.decided if found.comparison is not None else None
    return ScheduleType.AVOID.value if decided is None else decided.type.value


def effect_of(found: PlacedWorkload) -> str:
    """Return what the last step did to a workload."""
    return Effect.UNCHANGED.value if found.plan is None else found.plan.effect.value
