"""Causes in what objects say beyond the inputs of a decision: conditions, policies, and the status of clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.api.cluster import READY
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core.condition import NO_CLUSTER_FIT, QUOTA_EXCEEDED
from karmada_scheduler.explain.inputs import Manifest
from karmada_scheduler.explain.model import Cause, Stage
from karmada_scheduler.explain.situation import Situation

_API_REASON: Final = "did not have the API resource"
_NO_EXECUTE: Final = "NoExecute"


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that come before those of the decision."""
    yield from _quota(situation)
    yield from _not_tried_again(situation)
    yield from lazy_policy(situation)
    yield from _term_behind(situation)
    yield from _no_eviction(situation)


def claims(situation: Situation, policy: Manifest) -> bool:
    """Return whether a policy claims the binding."""
    label = ID_LABELS.get(str(policy.get("kind")), "")
    value = (_at(policy, "metadata", "labels") or {}).get(label)
    return bool(value) and value == situation.inputs.binding.labels.get(label)


def name_of(policy: Manifest) -> str:
    """Return kind, namespace and name of a policy."""
    metadata = _at(policy, "metadata") or {}
    name = "/".join(part for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{policy.get('kind')} {name}"


def _quota(situation: Situation) -> Iterator[Cause]:
    condition = situation.inputs.binding.status.condition(SCHEDULED_CONDITION)
    if condition is not None and condition.get("reason") == QUOTA_EXCEEDED:
        message = str(condition.get("message") or "")
        text = f"a decision was not written, because a quota refused it: {message}"
        yield Cause("QuotaRefused", Stage.WRITE, {"message": message}, text)


def _not_tried_again(situation: Situation) -> Iterator[Cause]:
    """Yield why a binding that would be placed now has the condition of a failed decision."""
    condition = situation.inputs.binding.status.condition(SCHEDULED_CONDITION)
    if condition is None or condition.get("status") != "False" or situation.present or not situation.asks:
        return
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    evidence = {
        "condition": reason,
        "message": message,
        "since": str(condition.get("lastTransitionTime") or ""),
    }
    if reason == NO_CLUSTER_FIT:
        if _API_REASON in message:
            text = (
                "it would be placed now; NoClusterFit has no timer, and a list of APIs is status, whose changes "
                "enqueue nothing in karmada-scheduler"
            )
            yield Cause("NotRetried", Stage.TRIGGER, evidence, text)
        return
    if reason == QUOTA_EXCEEDED:
        return
    text = f"it would be placed now; the last decision failed ({reason}), and the next one is made by timer"
    yield Cause("BackingOff", Stage.TRIGGER, evidence, text)


def lazy_policy(situation: Situation) -> Iterator[Cause]:
    """Yield that the policy was edited and waits for the next change of the template."""
    placement = situation.inputs.binding.spec.placement
    for policy in situation.inputs.policies:
        if not claims(situation, policy) or _at(policy, "spec", "activationPreference") != "Lazy":
            continue
        try:
            wanted = Placement.from_manifest(_at(policy, "spec", "placement") or {})
        except ManifestError:
            continue
        if wanted != placement:
            text = f"{name_of(policy)} is Lazy: its edit waits for the next change of the template"
            yield Cause("PolicyLazy", Stage.POLICY, {"policy": name_of(policy)}, text)


def _term_behind(situation: Situation) -> Iterator[Cause]:
    """Yield that an affinity term before the one in use would work again."""
    binding = situation.inputs.binding
    placement = binding.spec.placement
    if placement is None or placement.cluster_affinity is not None:
        return
    names = [each.affinity_name for each in placement.cluster_affinities]
    used = binding.status.scheduler_observing_affinity_name
    if used not in names[1:] or situation.first.decision.error is not None:
        return
    works = situation.first.decision.affinity_name
    if works is not None and names.index(works) < names.index(used):
        text = (
            f"the term {works} works again, but the term {used} is in use, and a binding never returns to a term that "
            "it has left, not even with a WorkloadRebalancer"
        )
        yield Cause("TermBehind", Stage.POLICY, {"term": works, "inUse": used}, text)


def _no_eviction(situation: Situation) -> Iterator[Cause]:
    """Yield that a cluster of the binding is not ready, and nothing evicts the binding."""
    if situation.asks:
        return
    leaving = {each.from_cluster for each in situation.inputs.binding.spec.graceful_eviction_tasks}
    for name in situation.present:
        cluster = situation.inputs.snapshot.get(name)
        ready = cluster.condition(READY) if cluster is not None else None
        if cluster is None or ready is None or ready.status == "True" or name in leaving:
            continue
        if any(taint.effect == _NO_EXECUTE for taint in cluster.taints):
            continue
        evidence = {
            "cluster": name,
            "ready": ready.status,
            "taints": [str(each) for each in cluster.taints],
            "needs": ["ClusterTaintPolicy with NoExecute", "feature gate Failover"],
        }
        text = (
            f"{name} is not ready, which adds NoSchedule taints only; NoExecute comes from a ClusterTaintPolicy, and "
            "the gate Failover of the controller manager evicts"
        )
        yield Cause("NoEviction", Stage.TRIGGER, evidence, text)
        return


def propagation(situation: Situation) -> Iterator[Cause]:
    """Yield that the binding is placed on a cluster where its Work is not applied."""
    manifest = situation.inputs.binding_manifest or {}
    reported = _at(manifest, "status", "aggregatedStatus")
    if not isinstance(reported, Sequence) or not reported:
        return
    applied = {str(each.get("clusterName")): bool(each.get("applied")) for each in reported}
    missing = [name for name in situation.present if not applied.get(name, False)]
    if missing:
        names = ", ".join(missing)
        evidence = {"clusters": missing, "works": [f"karmada-es-{name}" for name in missing]}
        text = (
            f"scheduling is done: {names} has the binding, but its Work is not applied there (namespace "
            f"karmada-es-{missing[0]}); an override may also set 0 replicas"
        )
        yield Cause("NotOurs", Stage.PROPAGATE, evidence, text)


def _at(manifest: Manifest, *path: str) -> Any:
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
