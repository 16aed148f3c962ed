"""Templates without a binding, and why: no policy claims them, or Karmada cannot make the binding. They run nowhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from karmada_advisor.claims.shapes import OLD_PURGE_MODES, Match
from karmada_advisor.claims.template import Template, is_skipped_namespace
from karmada_advisor.explain.causes_state import reported_by
from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.explain.model import BindingHead, Cause, Explanation, Provenance, Stage, Tense
from karmada_advisor.explain.policies import (
    holder_of,
    match_of,
    matching,
    misses,
    priority_class_of,
    template_named,
)
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import as_workload
from karmada_advisor.fleet.fleet import Fleet, parsed, reference_of
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.model import BindingState, StateName
from karmada_advisor.state.stored import value_at
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.names import nearest
from karmada_scheduler.api.policy import ID_LABELS, claims, policy_name
from karmada_scheduler.api.workload import Workload


def explain_unclaimed(
    template: Template,
    policies: Sequence[Manifest] | None,
    *,
    source: str = "files",
    priority_classes: Collection[str] | None = None,
    events: Sequence[Manifest] = (),
) -> Explanation:
    """Return why a template has no binding.

    Args:
        template: The template.
        policies: All policies; None if they were not read.
        source: Where they come from, for people.
        priority_classes: The names of the PriorityClasses that exist; None if that is not known.
        events: The Warning Events of the template, the newest first.
    """
    are_read, policies = policies is not None, policies or ()
    found = matching(policies, template)
    holder = holder_of(policies, template.labels)
    missed = misses(policies, template)
    near, names = {miss.name: miss.reason for miss in missed}, [policy.name for policy in found]
    key, is_reserved = template.key, is_skipped_namespace(template.key.namespace)
    evidence: dict[str, Any] = {"template": f"{key.api_version} {key.kind}", "nearest": near}
    evidence |= {"matching": names, "reserved": is_reserved}
    if is_reserved:
        text = f"templates of the namespace {key.namespace} are never propagated"
    elif not are_read:
        text = "it has no binding; why is not known, because the policies were not read"
    elif holder is not None:
        text = f"{policy_name(holder)} claims it, and {_why_no_binding(holder, template)}"
    elif found:
        text = f"{found[0].name} matches, and {_why_no_binding(found[0].policy, template)}"
    elif missed:
        it = "its" if missed[0].index >= 0 else "it"
        text = f"no policy matches it; nearest: {missed[0].name}, but {it} {missed[0].reason}"
    else:
        text = "there is no policy"
    cause = Cause("NotClaimed", Stage.POLICY, evidence, text, primary=True)
    if not is_reserved:
        refused = _with_old_purge_mode(found[0].policy, events) if found and holder is None else None
        cause = _without_priority_class(policies, template, priority_classes) or refused or cause
    head = BindingHead(key.kind, key.namespace, key.name, 0, 0, {})
    provenance = Provenance(Tense.RECOMPUTED, source)
    state = BindingState(StateName.NOT_CLAIMED, text=cause.text, reason="NotClaimed")
    return Explanation(head, state, provenance, causes=(cause, *reported_by(events)))


def _with_old_purge_mode(policy: Manifest, events: Sequence[Manifest]) -> Cause | None:
    """Return that the API server refuses the purge mode of a policy, as an Event of the detector says; None if it does not."""
    mode = value_at(policy, "spec", "failover", "application", "purgeMode")
    if mode not in OLD_PURGE_MODES or not any("purgeMode" in str(event.get("message")) for event in events):
        return None
    name, path = policy_name(policy), "spec.failover.application.purgeMode"
    text = f"{name} matches, but Karmada 1.19 refuses the binding: {path} is {mode}; edit it to {OLD_PURGE_MODES[mode]}"
    evidence = {"policy": name, "purgeMode": mode, "purgeModeSince1.19": OLD_PURGE_MODES[mode]}
    return Cause("PurgeModeRefused", Stage.POLICY, evidence, text, primary=True)


def _why_no_binding(policy: Manifest, template: Template) -> str:
    """Return why a template has no binding although a policy matches or claims it."""
    if match_of(policy, template) is Match.NONE:
        return "no longer matches it: the claim stays until one of both is edited"
    if template.has_long_name:
        return (
            f"it has no binding: the name {template.key.binding.name} would be longer than Kubernetes allows"
        )
    made = "Karmada makes its binding at the next change of the template, such as a new annotation"
    if value_at(policy, "spec", "activationPreference") == "Lazy":
        return f"is Lazy: {made}"
    if claims(policy, template.labels or {}):
        return f"it has no binding, as after a deletion of the binding: {made}, or when karmada-controller-manager restarts"
    return "Karmada's detector has not made a binding yet"


def _without_priority_class(
    policies: Sequence[Manifest], template: Template, known: Collection[str] | None
) -> Cause | None:
    """Return that the PriorityClass of a policy does not exist; None if it does, or if that is not known.

    Source: karmada v1.18.2 pkg/detector/detector.go, which looks it up with the gate PriorityBasedScheduling only.
    """
    wanted = priority_class_of(policies, template)
    if wanted is None or known is None or wanted[1] in known:
        return None
    policy, name = wanted
    near = nearest(name, known)
    text = f"{policy} matches, but its spec.schedulePriority names PriorityClass {name}, which does not exist"
    if near:
        text += f"; nearest: {near}"
    evidence = {"policy": policy, "priorityClass": name, "nearest": near}
    return Cause("PriorityClassMissing", Stage.POLICY, evidence, text, primary=True)


def unclaimed_template(fleet: Fleet) -> tuple[Template, Explanation] | None:
    """Return the wanted workload and why it has no binding; None if it has one, or was not read.

    Raises:
        NoAnswerError: The policies cannot be read.
    """
    workload = fleet.unclaimed_template()
    return None if workload is None else why_unclaimed(fleet, workload)


def why_unclaimed(fleet: Fleet, workload: Workload) -> tuple[Template, Explanation]:
    """Return a workload without a binding, and why it has none."""
    template = template_named(workload, workload.labels)
    return template, explain_unclaimed(
        template,
        fleet.policies,
        source=fleet.source,
        priority_classes=fleet.priority_classes,
        events=fleet.warning_events(),
    )


def explain_template(fleet: Fleet, template: Workload) -> tuple[BindingKey, Explanation]:
    """Return a template without a binding by its own kind, and why it has none."""
    return BindingKey(template.kind, template.namespace, template.name), why_unclaimed(fleet, template)[1]


TEMPLATES: Final = "templates"
"""In ``Coverage.refused``: those that run Pods."""

_RUNNING: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Pod"),
)
"""The built-in kinds that run Pods; without a binding, others such as a ConfigMap are no workload that runs nowhere."""


def running_kinds(fleet: Fleet) -> list[tuple[str, str]]:
    """Return apiVersion and kind of templates that run Pods: the built-in ones, and those of bindings with replicas."""
    references = (binding.spec.resource for binding in fleet.bindings if binding.spec.is_workload)
    others = {(each.api_version, each.kind) for each in references if "." in reference_of(each)[0]}
    return [*_RUNNING, *sorted(others)]


def lacks_binding(fleet: Fleet) -> Callable[[Workload], bool]:
    """Return whether a template that runs Pods, or that a policy has claimed, has no binding.

    Those that belong to another object, are being deleted, or are in a namespace that is never propagated do not count.
    """
    bound = {reference_of(binding.spec.resource) for binding in fleet.bindings}
    unreadable = {(key.namespace, key.name) for key in fleet.unreadable}
    kinds = {(version.rpartition("/")[0], kind) for version, kind in running_kinds(fleet)}
    return lambda each: (
        (reference_of(each)[:2] in kinds or any(each.labels.get(label) for label in ID_LABELS.values()))
        and reference_of(each) not in bound
        and (each.namespace, f"{each.name}-{each.kind}".lower()) not in unreadable
        and not (each.deleting or each.owner_references or is_skipped_namespace(each.namespace))
    )


def without_binding(fleet: Fleet, templates: Iterable[Workload]) -> list[Workload]:
    """Return the templates of ``lacks_binding``, in the order of names."""
    return sorted(
        filter(lacks_binding(fleet), templates), key=lambda each: (each.kind, each.namespace, each.name)
    )


def list_templates(plane: ControlPlane, fleet: Fleet, *, only_unbound: bool = False) -> list[Workload]:
    """Return the metadata of the templates of a control plane that run Pods; ``fleet.coverage`` and warnings say what is not known.

    Args:
        plane: The control plane.
        fleet: What was read of it: all bindings.
        only_unbound: Whether to keep those only that have no binding.
    """
    from karmada_advisor.fleet import live
    from karmada_pyscheduler.client.metadata import KindName

    lacks = lacks_binding(fleet)

    def is_kept(template: Manifest) -> bool:
        try:
            return not only_unbound or lacks(as_workload(template))
        except ManifestError:  # a warning below
            return True

    try:
        read = live.read_templates(plane, [KindName(*kind) for kind in running_kinds(fleet)], is_kept=is_kept)
    except NoAnswerError as error:
        fleet.coverage.refused[TEMPLATES] = str(error)
        fleet.warnings.append(f"templates without a binding are not known: {error}")
        return []
    if read.refused:
        fleet.coverage.refused[TEMPLATES] = "; ".join(read.refused)
    fleet.warnings += [f"{refusal}; whether some have no binding is not known" for refusal in read.refused]
    return [workload for workload, _ in parsed(read.objects, as_workload, fleet.warnings)]
