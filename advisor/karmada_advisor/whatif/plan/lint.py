"""What is suspicious about a change: fields, selectors, schedulers, override policies, and names of deleted clusters.

Only policies that the change creates or edits are looked at, and those that name a cluster which it deletes: what was wrong
before is not the change's fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from karmada_advisor.claims.policy import ClaimingPolicy, read_policy
from karmada_advisor.claims.shapes import PolicySpec
from karmada_advisor.fleet.files import OVERRIDES
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import mapping, mappings, part, policy_key, text_of
from karmada_advisor.whatif.plan.deletions import deleted_clusters
from karmada_advisor.whatif.plan.lint_placement import (
    did_you_mean,
    lint_affinity,
    lint_names,
    lint_placement,
    named_clusters,
)
from karmada_advisor.whatif.plan.lint_selectors import Templates
from karmada_advisor.whatif.plan.lint_upgrade import lint_for_1_19, lint_upgrade
from karmada_advisor.whatif.plan.model import PlanWarning
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_advisor.whatif.plan.question import PlanInputs
from karmada_advisor.whatif.plan.what_if import WhatIf
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.names import FleetValues, nearest
from karmada_scheduler.api.object_fields import Keys, keys_of
from karmada_scheduler.api.policy import PolicyKey


def lint(
    inputs: PlanInputs, clusters: Iterable[Cluster], what_if: WhatIf | None = None
) -> Iterator[PlanWarning]:
    """Yield the warnings of a change.

    Args:
        inputs: What the plan reads.
        clusters: The clusters after the change.
        what_if: What the change does; None if Karmada would refuse it.
    """
    after = inputs.draft.after
    overrides = [manifest for manifest in inputs.draft.written if text_of(manifest, "kind") in OVERRIDES]
    for manifest in inputs.draft.written:
        if manifest not in overrides:
            yield from lint_written(manifest)
    old, new = inputs.before.policies or {}, after.policies or {}
    changed = [key for key in new if old.get(key) is not new[key]]
    if changed or overrides:
        values = FleetValues(cluster for cluster in clusters if not cluster.deleting)
        templates = Templates(after, inputs.templates_known)
    for key in changed:
        policy, name = read_policy(new[key]), f"{key.kind}/{key}"
        yield from lint_for_1_19(new[key], inputs.detector)
        yield from lint_clusters(policy, values)
        yield from _scheduler(name, policy, inputs.schedulers)
        if what_if is not None:
            yield from templates.lint(name, policy, what_if.derived, old.get(key))
    if what_if is not None:
        for manifest in overrides:
            yield from lint_overrides(manifest, templates, values, what_if.after.bindings)
        yield from lint_upgrade(what_if)
        yield from _naming_deleted(new, changed, deleted_clusters(what_if.changed_clusters))


def lint_written(manifest: Manifest) -> Iterator[PlanWarning]:
    """Yield the fields of a policy, as its user wrote it, that Karmada does not know, and values that it does not take."""
    key = policy_key(manifest)
    name = f"{key.kind}/{key}"
    version = manifest.get("apiVersion")
    if version != _API_VERSION:
        yield PlanWarning(
            "ApiVersionUnknown", name, "apiVersion", f"it is {version}, and Karmada serves {_API_VERSION}"
        )
    yield from _unknown(name, "", manifest, _TOP)
    yield from _of_shape(name, "spec", part(manifest, "spec"), _SPEC)


def lint_clusters(policy: ClaimingPolicy, known: FleetValues) -> Iterator[PlanWarning]:
    """Yield what a policy says about clusters and no cluster fits."""
    name = f"{policy.key.kind}/{policy.key}"
    yield from lint_placement(name, policy.placement, known)
    suspended = part(policy.spec, "suspension", "dispatchingOnClusters").get("clusterNames")
    yield from lint_names(name, "spec.suspension.dispatchingOnClusters.clusterNames", suspended, known)


def _naming_deleted(
    policies: Mapping[PolicyKey, Manifest], changed: Collection[PolicyKey], deleted: Collection[str]
) -> Iterator[PlanWarning]:
    """Yield the policies that name a cluster which the change deletes."""
    if not deleted:
        return
    for key, manifest in policies.items():
        if key in changed:
            continue
        for path, names in named_clusters(part(manifest, "spec", "placement")):
            for gone in sorted({*deleted} & {*names}):
                text = f"it names {gone}, which this change deletes"
                yield PlanWarning("ClusterDeleted", f"{key.kind}/{key}", path, text)


def _scheduler(name: str, policy: ClaimingPolicy, schedulers: Schedulers) -> Iterator[PlanWarning]:
    found = schedulers.of(policy.scheduler_name)
    if not found.decides:
        code = "SchedulerUnknown" if found.status is SchedulerStatus.MISSING else "SchedulerDown"
        text = f"nobody decides about its workloads: {found}"
        yield PlanWarning(code, name, "spec.schedulerName", text, found.nearest)


_INDEX: Final = re.compile(r"\[\d+\]")
_TOP: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_API_VERSION: Final = "policy.karmada.io/v1alpha1"

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "spec.activationPreference": ("Lazy",),
    "spec.conflictResolution": ("Abort", "Overwrite"),
    "spec.preemption": ("Always", "Never"),
    "spec.failover.application.purgeMode": ("Directly", "Gracefully", "Never", "Immediately", "Graciously"),
    "spec.failover.cluster.purgeMode": ("Directly", "Gracefully"),
    "spec.placement.replicaScheduling.replicaDivisionPreference": ("Aggregated", "Weighted"),
    "spec.placement.replicaScheduling.replicaSchedulingType": ("Duplicated", "Divided"),
    "spec.placement.replicaScheduling.weightPreference.dynamicWeight": ("AvailableReplicas",),
    "spec.placement.spreadConstraints[].spreadByField": ("cluster", "region", "zone", "provider"),
    "spec.schedulePriority.priorityClassSource": ("KubePriorityClass",),
}
"""The values that the API server takes.

Source: karmada v1.18.2 charts/karmada/_crds/bases/policy/policy.karmada.io_propagationpolicies.yaml.
"""


def _unknown(name: str, path: str, value: Manifest, fields: Iterable[str]) -> Iterator[PlanWarning]:
    known = list(fields)
    for field in value:
        if field not in known:
            elsewhere = [other for other in _PATHS if other.rpartition(".")[2] == field]
            near = min(elsewhere, key=len) if elsewhere else nearest(str(field), known)
            where = f"{path}.{field}".lstrip(".")
            text = did_you_mean("Karmada 1.18 has no such field, and the API server drops it", near)
            yield PlanWarning("FieldUnknown", name, where, text, near)


def _paths(path: str, fields: Keys) -> Iterator[str]:
    """Yield the paths of all fields of a policy; those of the objects of a list without their places."""
    for field, inner in fields.items():
        yield f"{path}.{field}"
        yield from _paths(f"{path}.{field}", inner)


_SPEC: Final = keys_of(PolicySpec)
_PATHS: Final = tuple(_paths("spec", _SPEC))


def _of_shape(name: str, path: str, value: Manifest, fields: Keys) -> Iterator[PlanWarning]:
    yield from _unknown(name, path, value, fields)
    for field, inner in fields.items():
        found, place = value.get(field), f"{path}.{field}"
        if not inner:
            yield from _value(name, place, found)
        elif isinstance(found, Mapping):
            yield from _of_shape(name, place, found, inner)
        for index, entry in enumerate(found if inner and isinstance(found, list) else ()):
            if isinstance(entry, Mapping):
                yield from _of_shape(name, f"{place}[{index}]", entry, inner)


def _value(name: str, path: str, value: Any) -> Iterator[PlanWarning]:
    taken = _VALUES.get(_INDEX.sub("[]", path))
    if taken is None or not value or value in taken:
        return
    near = nearest(str(value).capitalize(), taken)
    text = f"it is {value}, and the API server takes {', '.join(taken)} only"
    yield PlanWarning("ValueUnknown", name, path, text, near)


_REPLICAS: Final = ("/spec/replicas", "/spec/parallelism")


def lint_overrides(
    manifest: Manifest, templates: Templates, known: FleetValues, bindings: Mapping[BindingKey, Binding]
) -> Iterator[PlanWarning]:
    """Yield what is wrong with an override policy.

    Args:
        manifest: An OverridePolicy or ClusterOverridePolicy.
        templates: Those after the change.
        known: What clusters have.
        bindings: Those after the change.
    """
    key, spec = policy_key(manifest), part(manifest, "spec")
    name = f"{key.kind}/{key}"
    selecting = {"resourceSelectors": spec.get("resourceSelectors")}
    policy = read_policy({**manifest, "kind": key.kind.replace("Override", "Propagation"), "spec": selecting})
    yield from templates.lint_selectors(name, policy, [])
    divided = sorted(
        str(template)
        for template in templates.selected(policy)
        if (found := bindings.get(template.binding)) is not None
        and found.spec.placement is not None
        and not found.spec.placement.is_duplicated
    )
    for index, rule in enumerate(mappings(spec.get("overrideRules"))):
        path = f"spec.overrideRules[{index}]"
        yield from lint_affinity(name, f"{path}.targetCluster", mapping(rule.get("targetCluster")), known)
        for number, entry in enumerate(mappings(part(rule, "overriders").get("plaintext"))):
            if divided and text_of(entry, "path") in _REPLICAS:
                text = f"it changes the replicas of {', '.join(divided)}, which the scheduler divides"
                yield PlanWarning("ReplicasOverridden", name, f"{path}.overriders.plaintext[{number}]", text)
