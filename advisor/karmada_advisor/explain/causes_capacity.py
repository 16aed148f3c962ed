"""Causes in the capacity that a decision counted on: who counted it, what was not counted, and what no model has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from karmada_advisor.explain.amounts import at, counted, request_of, shown
from karmada_advisor.explain.inputs import Manifest
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.quota import not_sure, quantity_text
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.api.quantity import ZERO, Quantity
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT
from karmada_scheduler.structs import Struct

GATE: Final = "SchedulingOvercommitProtection"
_BURST: Final = timedelta(seconds=10)
"""How often clusters report by default (--cluster-status-update-frequency): decisions within it see the same summary."""
_NANO: Final = 9
_NAMED: Final = 5


class _Overcommit(Struct, frozen=True):
    """A resource of a cluster of which more is requested than there is; amounts are billionths of the unit.

    Attributes:
        own: What the replicas of the binding request there.
        free: What was left for ``bindings``.
        asked: What all of ``bindings`` request there.
        bindings: The binding, and those that were scheduled within the same seconds.
        is_burst: Whether each of ``bindings`` fits alone.
    """

    cluster: str
    resource: str
    capacity: Quantity
    own: int
    free: int
    asked: int
    bindings: Sequence[Binding]
    is_burst: bool

    def shown(self, nanos: int) -> str:
        """Return an amount as people write it."""
        return shown(self.resource, Quantity(nanos, -_NANO, self.capacity.format, slow=True))


def may_be_overcommitted(binding: Binding, clusters: Sequence[Cluster]) -> bool:
    """Return whether a cluster of the binding reports more requests than it has capacity.

    If so, the other bindings tell whether several decisions counted on the same capacity.
    """
    names = {target.name for target in binding.spec.clusters}
    return any(
        _nanos(cluster.resource_summary.left(resource)) < 0
        for cluster in clusters
        if cluster.name in names and cluster.resource_summary is not None
        for resource in request_of(binding.spec)
    )


def burst(situation: Situation) -> Iterator[Cause]:
    """Yield that several decisions within seconds counted on the same capacity, and together need more."""
    found = next((found for found in _overcommitted(situation) if found.is_burst), None)
    if found is None or situation.inputs.algorithm.gates.enabled(GATE):
        return
    names, seconds = [str(binding.key) for binding in found.bindings], int(_BURST.total_seconds())
    evidence = _evidence(found) | {"bindings": len(names), "names": names[:_NAMED], "withinSeconds": seconds}
    text = (
        f"{len(names)} bindings were scheduled on {found.cluster} within {seconds} s, and each decision "
        f"saw the same capacity: together they request {evidence['asked']} {found.resource}, and {evidence['free']} were "
        f"free; the gate {GATE} counts decisions that clusters have not reported yet"
    )
    yield Cause("BurstOvercommit", Stage.CAPACITY, evidence | {"gate": GATE}, text)


def own_replicas(situation: Situation) -> Iterator[Cause]:
    """Yield that placed replicas count as capacity, although they do not fit with what they request now."""
    found = next((found for found in _overcommitted(situation) if not found.is_burst), None)
    if found is None:
        return
    replicas, asked = situation.present[found.cluster], found.shown(found.own)
    request = shown(found.resource, request_of(situation.spec)[found.resource])
    evidence = _evidence(found) | {"replicas": replicas, "request": request, "asked": asked}
    text = (
        f"{replicas} placed replicas count as capacity of {found.cluster} whatever they request now: they need "
        f"{asked} {found.resource}, and {evidence['free']} are free without them; a WorkloadRebalancer counts "
        "them in the same way"
    )
    yield Cause("OwnReplicasCount", Stage.CAPACITY, evidence, text)


def _overcommitted(situation: Situation) -> Iterator[_Overcommit]:
    """Yield the resources of present clusters that do not suffice, although decisions counted on it."""
    divide = situation.shown.divide
    if divide is None or divide.strategy not in {DYNAMIC_WEIGHT, AGGREGATED}:
        return  # the others do not count capacity
    for name in situation.present:
        cluster = situation.snapshot.get(name)
        for resource in request_of(situation.spec) if cluster is not None else ():
            if cluster is not None and (found := _overcommit(situation, cluster, resource)) is not None:
                yield found


def _overcommit(situation: Situation, cluster: Cluster, resource: str) -> _Overcommit | None:
    """Return the overcommitment of one resource of a cluster, None if its capacity suffices.

    What a cluster reports includes the requests of its pending Pods, so a negative rest is certain. Before a report that
    includes the bindings, it is certain if they request more than the whole capacity, or if the report is older.
    """
    binding, summary = situation.binding, cluster.resource_summary
    capacity = summary.allocatable.get(resource) if summary is not None else None
    if summary is None or capacity is None:
        return None
    together = [binding, *_scheduled_with(binding, situation.inputs.others, cluster.name)]
    own = _requested(binding, cluster.name, resource)
    asked = sum(_requested(each, cluster.name, resource) for each in together)
    left, whole = _nanos(summary.left(resource)), _nanos(capacity)
    if not own:
        return None
    if left < 0:
        free = left + asked
    elif own > whole:
        free = whole
    elif asked > whole or (
        asked > left and _is_older(situation.inputs.cluster_manifest(cluster.name), together)
    ):
        free = left
    else:
        return None
    is_burst = len(together) > 1 and own <= (free if left < 0 else whole)
    return _Overcommit(cluster.name, resource, capacity, own, free, asked, together, is_burst)


def _is_older(manifest: Manifest, bindings: Sequence[Binding]) -> bool:
    """Return whether the status of a cluster changed last before all of the bindings were scheduled.

    The API server notes this time in ``metadata.managedFields``; False if it is unknown.
    """
    fields = (manifest.get("metadata") or {}).get("managedFields") or ()
    times = [entry.get("time") for entry in fields if entry.get("subresource") == "status"]
    scheduled = [binding.status.last_scheduled_time for binding in bindings]
    return bool(times) and all(
        moment is not None and str(time) < at(moment) for time in times for moment in scheduled
    )


def _scheduled_with(binding: Binding, others: Sequence[Binding], cluster: str) -> list[Binding]:
    """Return the other bindings on a cluster that were scheduled within the same seconds."""
    moment = binding.status.last_scheduled_time
    if moment is None:
        return []
    return [
        other
        for other in others
        if other.key != binding.key
        and other.status.last_scheduled_time is not None
        and abs(other.status.last_scheduled_time - moment) <= _BURST
        and any(target.name == cluster for target in other.spec.clusters)
    ]


def _requested(binding: Binding, cluster: str, resource: str) -> int:
    replicas = sum(target.replicas for target in binding.spec.clusters if target.name == cluster)
    return replicas * _nanos(request_of(binding.spec).get(resource, ZERO))


def _nanos(amount: Quantity) -> int:
    return int(amount.unscaled * 10 ** (amount.exponent + _NANO))


def _evidence(found: _Overcommit) -> dict[str, Any]:
    nanos = {"asked": found.asked, "free": found.free, "capacity": _nanos(found.capacity)}
    amounts = {name: found.shown(amount) for name, amount in nanos.items()}
    return {"cluster": found.cluster, "resource": found.resource, **amounts}


def estimators_failed(situation: Situation) -> Iterator[Cause]:
    """Yield that resource summaries counted instead of estimators in the recorded decision."""
    record = situation.inputs.process.record if situation.inputs.process is not None else None
    if record is None or not record.get("fallbacks"):
        return
    failed, capacity = list(record["fallbacks"]), record.get("capacity") or {}
    counting = int((capacity.get("accurate") or {}).get("clusters") or 0)
    oldest = (capacity.get("general") or {}).get("oldestSeconds")
    count = sum(int(group["count"]) for group in failed)
    names = [name for group in failed for name in group["names"]]
    shown_ = ", ".join(names[:_NAMED]) + (f" and {count - _NAMED} more" if count > _NAMED else "")
    evidence: dict[str, Any] = {"failed": [dict(group) for group in failed]}
    summaries = "resource summaries (general estimator)"
    evidence |= {"countedInstead": summaries, "estimatorsThatCounted": counting}
    evidence |= {"oldestSummarySeconds": oldest, "decidedAt": str(record.get("at") or "")}
    others = f"; the estimators of {counted(counting, 'other cluster')} counted" if counting else ""
    age = "" if oldest is None else f", the oldest {oldest:g} s old"
    whose = f"the estimator{'s' if count > 1 else ''} of {shown_}"
    text = f"{whose} failed ({failed[0]['why']}), so resource summaries counted there{age}{others}"
    yield Cause("EstimatorFailed", Stage.CAPACITY, evidence, text)


def over_quota(situation: Situation) -> Iterator[Cause]:
    """Yield the quota that refuses what the next decision gives."""
    if situation.over_quota is None:
        return
    excess, text = situation.over_quota
    name, unsure = excess.resource, not_sure(situation.inputs.quotas or {})
    evidence = {"quota": str(excess.quota), "resource": name, "wanted": quantity_text(name, excess.wanted)}
    evidence |= {"limit": quantity_text(name, excess.limit), "used": quantity_text(name, excess.used)}
    yield Cause("QuotaLimits", Stage.CAPACITY, evidence, f"{text}; {unsure}" if unsure else text)


_PODS: Final = "pods"


def uses_models(cluster: Cluster, gates: FeatureGates) -> bool:
    """Return whether the resource models of a cluster count, and not the sums of its summary."""
    summary = cluster.resource_summary
    has_models = summary is not None and summary.modelings and cluster.resource_models
    return bool(has_models and gates.enabled("CustomizedClusterResourceModeling"))


def without_model(cluster: Cluster, request: Iterable[str], gates: FeatureGates) -> list[str]:
    """Return the requested resources that are in no resource model of a cluster; none if its models do not count."""
    if not uses_models(cluster, gates) or gates.rules.model_estimate != "simulate":
        return []
    known = {name for model in cluster.resource_models for name in model.minimums}
    return [name for name in request if name not in known]


def not_in_models(situation: Situation) -> Iterator[Cause]:
    """Yield the requested resources that are in no resource model of clusters, with these clusters.

    Until 1.17 Karmada used the resource summary for such a request. Its default models have cpu and memory only.

    Source: karmada v1.18.2 pkg/estimator/client/general.go.
    """
    request, found = request_of(situation.spec), dict[str, list[str]]()
    for candidate in situation.now.attempt.candidates:
        for name in without_model(candidate.cluster, request, situation.inputs.algorithm.gates):
            if name != _PODS:
                found.setdefault(name, []).append(candidate.name)
    for name, clusters in found.items():
        more = f" and {len(clusters) - _NAMED} more" if len(clusters) > _NAMED else ""
        text = (
            f"the requested resource {name} is in no resource model of {', '.join(clusters[:_NAMED])}{more}, so it counts "
            f"as 0 there (since Karmada 1.18): add {name} to spec.resourceModels of the Cluster, in a grade whose minimum is as "
            "large as the request, turn the feature gate CustomizedClusterResourceModeling off, or start the scheduler with "
            "--decisions-of=1.17"
        )
        yield Cause("ResourceNotInModels", Stage.CAPACITY, {"resource": name, "clusters": clusters}, text)
