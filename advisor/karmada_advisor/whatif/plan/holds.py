"""Why a decision about a binding would not take effect: nobody makes it, its rules are not known, or something refuses it.

A quota is computed, if the quotas are known; a Guard plugin decides, if the configuration has one. Otherwise the condition
that the running scheduler has left tells of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from karmada_advisor.claims.binding_spec import replicas_of
from karmada_advisor.claims.model import DetectorOptions
from karmada_advisor.claims.template import read_template
from karmada_advisor.explain.amounts import quota_refusal
from karmada_advisor.fleet.rules import not_known
from karmada_advisor.state.quota import Ledger, Quota, Usage, usage
from karmada_advisor.state.reading import TEMPLATE_DIFFERS, other_replicas
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import condition_of, foreign_refusals
from karmada_advisor.whatif.plan.effects import Comparison, Hold, replicas
from karmada_advisor.whatif.plan.model import PlanHeldBy
from karmada_advisor.whatif.plan.objects import PlanObjects, resource_key
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.core.condition import NO_CLUSTER_FIT, QUOTA_EXCEEDED
from karmada_scheduler.dryrun.objects import Frameworks
from karmada_scheduler.framework.diagnosis import AT_GUARD
from karmada_scheduler.structs import replace

REPLICAS_NOT_KNOWN: Final = Hold(
    PlanHeldBy.REPLICAS,
    "ReplicasNotKnown",
    "its replicas are not known: its template was not read as a whole, an interpreter counts them, or an autoscaler sets them",
)
HoldOf = Callable[[Binding], Hold | None]


def nothing_holds(_: Binding) -> Hold | None:
    """Return None: every decision takes effect."""
    return None


def stored_holds(
    schedulers: Schedulers,
    frameworks: Frameworks,
    *,
    knows_quotas: bool = False,
    knows_rules: Callable[[Binding], bool] = lambda _: True,
) -> HoldOf:
    """Return what finds the hold of a binding in stored objects, or that nobody here knows what its scheduler decides.

    Args:
        schedulers: Which schedulers exist.
        frameworks: The plugins that decide here.
        knows_quotas: Whether the quotas are known, so that a stored refusal need not count.
        knows_rules: Whether the rules of the scheduler of a binding are known.
    """
    has_own_plugins = frameworks.has_own_plugins and not frameworks.missing

    def hold_of(binding: Binding) -> Hold | None:
        if binding.spec.scheduling_suspended:
            return Hold(
                PlanHeldBy.SUSPENSION, "SchedulingSuspended", "scheduling is suspended (spec.suspension)"
            )
        scheduler = schedulers.of(binding.spec.responsible_scheduler)
        if not scheduler.decides:
            return Hold(PlanHeldBy.SCHEDULER, f"Scheduler{scheduler.status.value.title()}", str(scheduler))
        if (refusal := refusal_of(binding)) is not None:
            return refusal
        if binding.spec.placement is None or binding.deleting or knows_rules(binding):
            return None
        return Hold(PlanHeldBy.RULES, "RulesNotKnown", not_known(scheduler.name))

    def refusal_of(binding: Binding) -> Hold | None:
        status, reason, message, _ = condition_of(binding)
        if status != "False":
            return None
        if reason == QUOTA_EXCEEDED and not knows_quotas:
            return Hold(PlanHeldBy.QUOTA, reason, f"a quota refused the last decision: {message}")
        if AT_GUARD in message and not frameworks.has_guards:
            return Hold(PlanHeldBy.GUARD, reason, f"held by {message.partition(AT_GUARD)[2]}")
        if reason == NO_CLUSTER_FIT and not has_own_plugins and (refusals := foreign_refusals(message)):
            text = (
                f"a plugin that the plan does not have refused it last: {refusals[0]} (--current-plugin-dir)"
            )
            return Hold(PlanHeldBy.PLUGIN, reason, text)
        return None

    return hold_of


def template_hold(before: PlanObjects, binding: Binding, options: DetectorOptions) -> Hold | None:
    """Return that Karmada's detector has not taken over the replicas of a template.

    None if it has, and for a template that was not read, or whose replicas are not known.

    Args:
        before: The objects before the change.
        binding: A binding of them.
        options: How the detector counts replicas; sizes that a test gives are those after the change.
    """
    template, stored = resource_key(before.bindings[binding.key]), binding.spec.replicas
    if template in before.metadata_only or template not in before.templates:
        return None
    try:
        read = read_template(before.templates[template])
        wanted = replicas_of(read, replace(options, sizes={})).replicas
    except ManifestError:
        return None
    if wanted in {0, stored}:
        return None
    return Hold(PlanHeldBy.DETECTOR, TEMPLATE_DIFFERS, other_replicas(wanted, stored))


def class_missing(name: str) -> Hold:
    """Return that Karmada's detector does not update a binding, because its policy names a PriorityClass that does not exist."""
    text = f"Karmada does not update it: its policy names PriorityClass {name}, which does not exist"
    return Hold(PlanHeldBy.DETECTOR, "PriorityClassMissing", text)


def charge(every: Iterable[Comparison], quotas: Sequence[Quota]) -> None:
    """Let the quotas refuse what is written on both sides of the change: first what frees something, then in order.

    Two writes are charged, as in Karmada: that of the detector, which changes requests, and that of the scheduler.
    """
    comparisons = list(every)
    before = Ledger(quotas)
    for comparison in sorted(comparisons, key=_grows_before):
        old, found = comparison.old, comparison.unchanged_side
        if old is not None and found is not None and comparison.hold_before is None:
            comparison.hold_before = _charge(before, old, usage(old.spec), usage(old.spec, found.targets))
    after = Ledger(quotas)
    for comparison in sorted(comparisons, key=_grows_after):
        if comparison.new is None:
            assert comparison.old is not None
            after.charge(comparison.old.key.namespace, usage(comparison.old.spec), {})
        elif comparison.hold is None:
            comparison.hold = _refused_after(comparison, comparison.new, after)


def _refused_after(each: Comparison, new: Binding, ledger: Ledger) -> Hold | None:
    stored, present = usage(each.old.spec) if each.old is not None else {}, usage(new.spec)
    if present != stored and (hold := _charge(ledger, new, stored, present)):
        each.keeps_spec = True
        return hold
    if each.decided is None or each.decided.error:
        return None
    return _charge(ledger, new, present, usage(new.spec, each.decided.targets))


def _grows_before(each: Comparison) -> bool:
    found = each.unchanged_side
    return each.old is not None and found is not None and replicas(found.targets) > replicas(each.before)


def _grows_after(each: Comparison) -> bool:
    if each.new is None:
        return False
    targets = each.new.spec.clusters if each.decided is None else each.decided.targets
    return replicas(targets) > replicas(each.before)


def _charge(ledger: Ledger, binding: Binding, stored: Usage, wanted: Usage) -> Hold | None:
    """Charge the quotas with a write of a binding; return the hold if one refuses it."""
    excess = ledger.charge(binding.key.namespace, stored, wanted)
    if excess is None:
        return None
    text = quota_refusal(excess, ledger, binding.key.namespace, binding.spec)
    return Hold(PlanHeldBy.QUOTA, QUOTA_EXCEEDED, text)
