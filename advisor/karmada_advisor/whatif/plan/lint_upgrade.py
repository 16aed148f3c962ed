"""What Karmada 1.19 refuses, or loses: of the objects that a change writes, and of all before an upgrade.

Source: karmada master of 2026-08-21 (f8fdd02df) pkg/detector/detector.go, pkg/util/validation/validation.go,
pkg/scheduler/scheduler.go, and the CRDs of policies and bindings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.claims.model import DetectorOptions
from karmada_advisor.claims.shapes import OLD_PURGE_MODES
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.state.stored import mappings, policy_key, text_of, value_at
from karmada_advisor.whatif.plan.model import PlanWarning
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_advisor.whatif.plan.question import PlanInputs
from karmada_advisor.whatif.plan.what_if import WhatIf
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.names import nearest
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.guard import targets_text
from karmada_scheduler.core.schedule_terms import may_return

_MODE: Final = ("spec", "failover", "application", "purgeMode")
_CONSEQUENCES: Final = {
    "Graciously": "refuses every edit that leaves it, never ends a deletion of the policy, and makes no binding for new workloads",
    "Immediately": "makes no binding for new workloads",
}
_SHOWN: Final = 3


def is_upgrade(inputs: PlanInputs) -> bool:
    """Return whether a plan is about an upgrade to Karmada 1.19."""
    before, after = (rules.gates.rules for rules in (inputs.rules, inputs.rules_after))
    return after.refuses_old_purge_modes and not before.refuses_old_purge_modes


def lint_for_1_19(policy: Manifest, detector: DetectorOptions) -> Iterator[PlanWarning]:
    """Yield what Karmada 1.19 refuses of a policy, by the options of its detector."""
    key = policy_key(policy)
    name, mode = f"{key.kind}/{key}", value_at(policy, *_MODE)
    if detector.gates.rules.refuses_old_purge_modes and mode in OLD_PURGE_MODES:
        text = f"it is {mode}, and Karmada 1.19 {_CONSEQUENCES[mode]}"
        yield PlanWarning("PurgeModeRefused", name, ".".join(_MODE), text, OLD_PURGE_MODES[mode])
    if missing := detector.missing_class(policy):
        text = f"PriorityClass {missing} does not exist: Karmada makes no bindings for the policy, and updates none"
        path = "spec.schedulePriority.priorityClassName"
        yield PlanWarning(
            "PriorityClassMissing", name, path, text, nearest(missing, detector.priority_classes or ())
        )


def lint_upgrade(what_if: WhatIf) -> Iterator[PlanWarning]:
    """Yield the policies and bindings that suffer from an upgrade, and the bindings that a reschedule would clear."""
    inputs = what_if.inputs
    upgrades, before = is_upgrade(inputs), inputs.before.policies or {}
    for key, policy in (inputs.draft.after.policies or {}).items() if upgrades else ():
        if before.get(key) is policy:  # others are looked at as a part of the change
            yield from lint_for_1_19(policy, inputs.detector)
    for comparison in what_if.comparisons.values():
        if comparison.new is not None and upgrades:
            yield from _of_binding(comparison.new, what_if.manifest_of(comparison.new.key))
        if comparison.new is not None and (upgrades or comparison.is_spec_changed):
            yield from _removed(comparison.new, what_if)


def _of_binding(binding: Binding, manifest: Manifest) -> Iterator[PlanWarning]:
    """Yield the old purge modes of a binding, whose policy may have another one by now."""
    name, mode = f"{binding.key.kind}/{binding.key}", value_at(manifest, *_MODE)
    if mode in OLD_PURGE_MODES:
        text = f"it is {mode}: Karmada 1.19 refuses the task of its application failover"
        yield PlanWarning("PurgeModeRefused", name, ".".join(_MODE), text, OLD_PURGE_MODES[mode])
    for number, task in enumerate(mappings(value_at(manifest, "spec", "gracefulEvictionTasks"))):
        mode = text_of(task, "purgeMode")
        if mode in OLD_PURGE_MODES:
            path = f"spec.gracefulEvictionTasks[{number}].purgeMode"
            text = f"it is {mode}: Karmada 1.19 refuses any further task until this one has ended"
            yield PlanWarning("PurgeModeRefused", name, path, text, OLD_PURGE_MODES[mode])


def _removed(binding: Binding, what_if: WhatIf) -> Iterator[PlanWarning]:
    """Yield that karmada-scheduler 1.19 would remove all replicas of a binding after a requested reschedule."""
    side = what_if.sides[0]
    if not (binding.spec.clusters and may_return(binding, side.rules.gates.rules)):
        return
    if not side.is_assigned(binding):
        return
    _, decision = side.decide(rebalanced(binding), ScheduleType.RECONCILE)
    if decision is not None and decision.is_kept_reschedule:
        first = decision.failed_terms[0].name
        text = (
            f"a WorkloadRebalancer would let karmada-scheduler 1.19 remove {targets_text(binding.spec.clusters)}, because the "
            f"first term {first} does not fit; this scheduler keeps it"
        )
        name, path = f"{binding.key.kind}/{binding.key}", "spec.placement.clusterAffinities"
        yield PlanWarning("RescheduleRemoves", name, path, text)


def upgrade_notes(what_if: WhatIf) -> Iterator[str]:
    """Yield which bindings an upgrade returns to their first affinity term, because a reschedule is pending."""
    if not is_upgrade(what_if.inputs):
        return
    rules = what_if.inputs.rules_after.gates.rules
    every = (comparison.new for comparison in what_if.comparisons.values() if comparison.new is not None)
    names = [str(each.key) for each in every if each.reschedule_triggered and may_return(each, rules)]
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield (
            f"{counted(len(names), 'binding')} with a pending reschedule in a later affinity term: the next decision begins "
            f"with the first one: {', '.join(names[:_SHOWN])}{more}"
        )
