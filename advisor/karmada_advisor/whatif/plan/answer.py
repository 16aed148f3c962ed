"""The answer to a question of ``plan``: what it reads besides the fleet, and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, Final

from karmada_advisor.claims.model import DetectorOptions
from karmada_advisor.claims.policy import read_policy
from karmada_advisor.claims.shapes import Match
from karmada_advisor.claims.template import read_template
from karmada_advisor.explain.amounts import at
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import as_workload, read
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.read import SYSTEM_PRIORITY_CLASSES
from karmada_advisor.fleet.rules import Rules, print_warning
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.quota import Quota, read_quota
from karmada_advisor.state.stored import text_of, value_at
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.derive import changed_kinds, changed_policies, selected_kinds
from karmada_advisor.whatif.plan.fleet_rules import (
    as_manifests,
    now,
    progress_of_phases,
    served_version,
)
from karmada_advisor.whatif.plan.lint_selectors import TemplatesKnown
from karmada_advisor.whatif.plan.model import Plan
from karmada_advisor.whatif.plan.objects import ChangeShown, Manifest, PlanObjects, template_key
from karmada_advisor.whatif.plan.question import Known, PlanInputs, PlanQuestion
from karmada_advisor.whatif.plan.result import make_plan
from karmada_scheduler.api.manifest import ManifestError, integer_at
from karmada_scheduler.config import features
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.structs import replace

_OVERCOMMIT: Final = "SchedulingOvercommitProtection"


def plan_of_fleet(question: PlanQuestion, fleet: Fleet) -> tuple[Plan, Sequence[str]]:
    """Return the plan of a change, and which templates could not be read.

    Args:
        question: The change.
        fleet: What was read.

    Raises:
        NoAnswerError: There is no answer.
        ChangeError: The change cannot be applied.
    """
    source, before = question.source, as_manifests(fleet)
    if source.workloads and "-" not in source.workloads:
        templates = read(source.workloads, lambda manifest: (as_workload(manifest), manifest)[1])
        before.templates = {template_key(template): template for template in templates.objects}
    unread: Sequence[str] = ()
    known = TemplatesKnown(all=bool(source.workloads))
    draft = Draft(before)
    question.apply(draft)
    if fleet.source.startswith(("http://", "https://")) and not source.workloads:
        known, unread = _read_templates(source.plane, draft, before)
    quotas, no_quotas = _quotas(source.plane, fleet)
    customized, interpreters = _customized(source.plane, fleet, before, draft.after)
    schedulers = fleet.schedulers(question.rules.running)
    with ExitStack() as stack:
        warn_once = cache(print_warning)

        def dry_run(rules: Rules) -> DryRun:
            shown = ShownObjects(Workloads(fleet.workloads))
            return stack.enter_context(rules.dry_run(shown, schedulers, say=warn_once))

        changed = changed_rules(question.rules, question.rule_change)
        rule_changes = _rule_changes(question.rules, changed)
        if not draft.shown and not draft.written and not rule_changes:
            raise NoAnswerError("; ".join(draft.notes) or _no_change(question.rule_change))
        rules = dry_run(question.rules)
        served, notes = served_version(source.plane, fleet, question.rules)
        gates = _of_detector(changed.gates, served)
        classes, no_classes = _priority_classes(source.plane, fleet, draft, gates)
        plan = make_plan(
            PlanInputs(
                before,
                draft,
                rules,
                dry_run(changed) if rule_changes else rules,
                other_mode=lambda: dry_run(_in_other_mode(changed)),
                rules_text=question.rules.fingerprint,
                rule_changes=rule_changes,
                detector=DetectorOptions(gates, classes, customized=customized),
                evicts=question.evicts,
                with_drift=question.with_drift,
                schedulers=schedulers,
                quotas=quotas,
                no_quotas=no_quotas,
                is_live=fleet.is_live,
                templates_known=known,
                more_notes=(*notes, *fleet.unread_notes, *no_classes, *interpreters),
                source=fleet.source,
                at=at(now()),
                known=Known(
                    {cluster.name: cluster for cluster in fleet.clusters},
                    {binding.key: binding for binding in fleet.bindings},
                ),
                progress=progress_of_phases(),
                time_left=question.time_left,
            )
        )
    return plan, unread


def _of_detector(gates: FeatureGates, served: str) -> FeatureGates:
    """Return the feature gates of karmada-controller-manager, which is of the version that is served, or upgraded to."""
    known = [version for version in (served, gates.rules.decisions_of) if version in RULES]
    return FeatureGates(gates.settings, RULES[max(known)])


def _priority_classes(
    plane: ControlPlane, fleet: Fleet, draft: Draft, gates: FeatureGates
) -> tuple[Mapping[str, int] | None, Sequence[str]]:
    """Return the values of the PriorityClasses if the detector looks one up, and why they are not known, if they are not.

    Raises:
        NoAnswerError: The control plane does not answer any more.
    """
    named = ("spec", "schedulePriority", "priorityClassName")
    policies = (draft.after.policies or {}).values()
    if not gates.enabled("PriorityBasedScheduling") or not any(value_at(each, *named) for each in policies):
        return None, ()
    found: Sequence[Manifest] | None
    if fleet.is_live:
        from karmada_advisor.fleet import live, live_reading

        found, problems = live.read_all(plane, live_reading.PRIORITY_CLASSES)
    else:
        templates = draft.after.templates.items()
        found = [manifest for key, manifest in templates if key.kind == "PriorityClass"] or None
        problems = ["no --workloads have any"]
    if found is None:
        return None, (f"whether the PriorityClasses that policies name exist is not known: {problems[0]}",)
    values = {text_of(manifest, "metadata", "name"): integer_at(manifest, "value") or 0 for manifest in found}
    return SYSTEM_PRIORITY_CLASSES | values, ()


def _quotas(plane: ControlPlane, fleet: Fleet) -> tuple[list[Quota] | None, str]:
    """Return the quotas, and why they are not known; None if they are not.

    Raises:
        NoAnswerError: The control plane does not answer any more.
    """
    manifests: Sequence[Mapping[str, Any]] | None = fleet.quotas
    problems = ["they were not read (--quotas)"]
    if manifests is None and fleet.is_live:
        from karmada_advisor.fleet import live  # the client, which files do not need
        from karmada_pyscheduler.client.karmada import FEDERATED_RESOURCE_QUOTAS

        manifests, problems = live.read_all(plane, FEDERATED_RESOURCE_QUOTAS)
    if manifests is None:
        return None, "; ".join(problems)
    quotas = []
    for manifest in manifests:
        try:
            quotas.append(read_quota(manifest))
        except ManifestError as problem:
            name = (manifest.get("metadata") or {}).get("name", "")
            return None, f"{manifest.get('kind')} {name}: {problem}"
    return quotas, ""


def _read_templates(
    plane: ControlPlane, draft: Draft, before: PlanObjects
) -> tuple[TemplatesKnown, Sequence[str]]:
    """Read the metadata of the templates that changed policies select; return what could not be read, too."""
    from karmada_advisor.fleet import live
    from karmada_pyscheduler.client.metadata import KindName

    kinds = [KindName(*kind) for kind in selected_kinds(before, draft.after)]
    if not kinds:
        return TemplatesKnown(), ()
    policies = draft.after.policies or {}
    changed = [read_policy(policies[key]) for key in changed_policies(before, draft.after) if key in policies]

    def lacks_binding(manifest: Mapping[str, Any]) -> bool:
        """Whether only the template tells the replicas of the binding that a changed policy makes."""
        template = read_template(manifest, metadata_only=True)
        return template.key.binding not in before.bindings and any(
            policy.match(template) is not Match.NONE for policy in changed
        )

    found = live.read_templates(plane, kinds, is_whole=lacks_binding)
    for manifest in found.objects:
        key = template_key(manifest)
        for objects in (before, draft.after):
            if objects.templates.setdefault(key, manifest) is manifest and "spec" not in manifest:
                objects.metadata_only.add(key)
    return TemplatesKnown(kinds=found.kinds, not_served=found.not_served), found.problems


def _customized(
    plane: ControlPlane, fleet: Fleet, before: PlanObjects, after: PlanObjects
) -> tuple[frozenset[tuple[str, str]], Sequence[str]]:
    """Return the changed kinds whose replicas a ResourceInterpreterCustomization reads, and what is not judged for it."""
    changed = changed_kinds(before, after)
    if not fleet.is_live or not changed:
        own = sorted(kind for version, kind in changed if "." in version and ".k8s.io/" not in version)
        text = f"whether a ResourceInterpreterCustomization counts replicas of {', '.join(own)} was not read"
        return frozenset(), (text,) if own else ()
    from karmada_advisor.fleet import live

    found, problems = live.read_all(plane, live.INTERPRETER_CUSTOMIZATIONS)
    if found is None:
        text = f"whether a ResourceInterpreterCustomization counts replicas otherwise is not known: {problems[0]}"
        return frozenset(), (text,)
    names: dict[tuple[str, str], str] = {}
    for manifest in found:
        target, rules = (value_at(manifest, "spec", name) or {} for name in ("target", "customizations"))
        kind = str(target.get("apiVersion") or ""), str(target.get("kind") or "")
        if kind in changed and {"replicaResource", "componentResource"} & rules.keys():
            names.setdefault(kind, text_of(manifest, "metadata", "name"))
    notes = [
        f"ResourceInterpreterCustomization {name} counts the replicas and requests of each {kind}: those that a change "
        "of such a template gives its binding are not judged"
        for (_, kind), name in names.items()
    ]
    return frozenset(names), notes


def _no_change(rule_change: Rules) -> str:
    """Return that there is no change, and what would be one."""
    if rule_change.decisions_of is None:
        return "there is no change: use -f, --delete, --without, --cordon, ... (see --help)"
    return (
        f"there is no change: the decisions are those of {rule_change.decisions_of} already; say what they are now: "
        "--from, --scheduler-manifest or --current-decisions-of"
    )


def changed_rules(before: Rules, change: Rules) -> Rules:
    """Return the rules after a change that names some of them."""
    return replace(
        before,
        feature_gates=(*before.feature_gates, *change.feature_gates),
        decisions_of=change.decisions_of or before.decisions_of,
        plugins=change.plugins or before.plugins,
        config=change.config or before.config,
        plugin_dirs=(*before.plugin_dirs, *change.plugin_dirs),
        process=None if change.plugins or change.config else before.process,  # not those of --from
    )


def _in_other_mode(rules: Rules) -> Rules:
    """Return rules with the other value of SchedulingOvercommitProtection."""
    value = str(not rules.gates.enabled(_OVERCOMMIT)).lower()
    return replace(rules, feature_gates=[*rules.feature_gates, f"{_OVERCOMMIT}={value}"])


def _rule_changes(before: Rules, after: Rules) -> tuple[ChangeShown, ...]:
    """Return how the change of the rules is shown; empty if nothing changes."""
    old, new = before.gates, after.gates
    values: list[tuple[str, object, object]] = [
        ("--decisions-of", old.rules.decisions_of, new.rules.decisions_of),
        ("--plugins", before.plugins, after.plugins),
        ("--config", before.config, after.config),
        ("--plugin-dir", before.plugin_dirs, after.plugin_dirs),
    ]
    gates = [(f"feature gate {name}", old.enabled(name), new.enabled(name)) for name in features.KNOWN]
    texts = ((what, _text(one), _text(other)) for what, one, other in (*gates, *values))
    return tuple(ChangeShown("~", what, f"{one} -> {other}") for what, one, other in texts if one != other)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return shown or "default"
