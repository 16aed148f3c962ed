"""Plans of objects that builders describe, without the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from karmada_advisor.state.model import Target
from karmada_advisor.state.quota import read_quota
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.lint_selectors import TemplatesKnown
from karmada_advisor.whatif.plan.model import BindingPlan, Effect, Plan
from karmada_advisor.whatif.plan.objects import PlanObjects
from karmada_advisor.whatif.plan.question import PlanInputs
from karmada_advisor.whatif.plan.result import make_plan
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects, Workloads
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, framework

Change = Callable[[Draft], object]
Manifest = Mapping[str, Any]

NOW = "2026-11-22T14:20:07Z"


def objects_of(manifests: Iterable[Manifest], *, has_policies: bool = True) -> PlanObjects:
    """Return objects from manifests of any kind; of two with one name, the first counts."""
    found = PlanObjects(policies={} if has_policies else None)
    for each in manifests:
        found.add(each)
    return found


def rules(gates: FeatureGates | None = None) -> DryRun:
    """Return a configuration with the in-tree plugins."""
    gates = gates or FeatureGates()
    return DryRun(gates, ShownObjects(Workloads(None)), Frameworks.only(framework(gates=gates, timeout=None)))


def gate(name: str, value: bool = True) -> FeatureGates:
    """Return the default gates with one changed."""
    return FeatureGates({name: value})


def plan_of(
    clusters: Iterable[ClusterBuilder | Manifest],
    bindings: Iterable[BindingBuilder | Manifest],
    *changes: Change,
    policies: Iterable[Manifest] | None = None,
    templates: Iterable[Manifest] = (),
    gates: FeatureGates | None = None,
    gates_after: FeatureGates | None = None,
    evicts: bool = False,
    with_drift: bool = True,
    schedulers: Schedulers | None = None,
    quotas: Iterable[Manifest] | None = None,
    templates_known: TemplatesKnown | None = None,
    time_left: Callable[[], float] = lambda: 1.0,
) -> Plan:
    """Return the plan of some changes, applied in their order."""
    manifests = [
        each if isinstance(each, Mapping) else each.manifest()
        for each in (*clusters, *bindings, *(policies or ()), *templates)
    ]
    before = objects_of(manifests, has_policies=policies is not None)
    draft = Draft(before)
    for change in changes:
        change(draft)
    first = rules(gates)
    after = gates_after or gates or FeatureGates()
    value = not after.enabled("SchedulingOvercommitProtection")
    other = FeatureGates({**after.settings, "SchedulingOvercommitProtection": value})
    return make_plan(
        PlanInputs(
            before,
            draft,
            first,
            first if gates_after is None else rules(gates_after),
            other_mode=lambda: rules(other),
            evicts=evicts,
            with_drift=with_drift,
            schedulers=schedulers or Schedulers(),
            quotas=None if quotas is None else [read_quota(each) for each in quotas],
            templates_known=templates_known or TemplatesKnown(),
            source="files",
            at=NOW,
            time_left=time_left,
        )
    )


def only(plan: Plan) -> BindingPlan:
    """Return the only binding that does not stay as it is."""
    [found] = plan.bindings
    return found


def effects(plan: Plan) -> dict[str, Effect]:
    """Return the class of each binding that does not stay as it is, by the name of its workload."""
    return {each.name.removesuffix("-deployment"): each.effect for each in plan.bindings}


def placement(targets: Iterable[Target]) -> dict[str, int]:
    """Return replicas by cluster."""
    return {each.name: each.replicas for each in targets}
