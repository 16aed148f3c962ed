"""Edits of the capacity of clusters, of what a replica requests, and of quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain import amounts
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.causes_capacity import uses_models, without_model
from karmada_advisor.state.quota import KIND as QUOTA
from karmada_advisor.state.quota import quantity_text
from karmada_advisor.whynot.found_edits import available
from karmada_advisor.whynot.goals import has_replicas
from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding_spec import BindingSpec, Component
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework.edits import Edit, Harm, ObjectRef, Side

_SUMMARY: Final = ("status", "resourceSummary")
_MI: Final = 1 << 20


def proposals(context: Context) -> Iterator[Edit]:
    """Yield more available replicas on the cluster, fewer on its competitors, and a smaller request."""
    if not has_replicas(context.binding) and not context.binding.spec.components:
        return
    yield from _capacity(context, context.cluster, Side.CLUSTER)
    yield from requests(context)
    for number, other in enumerate(context.competitors()):
        yield from less(context, other.cluster, Side.COMPETITOR, extra=0.1 * number)


def needed(context: Context) -> dict[str, int]:
    """Return what one replica needs: cpu in thousandths, other resources in whole units."""
    total: dict[str, int] = {}
    spec = context.binding.spec
    if context.counts_sets:
        for component in spec.components:
            for name, amount in _needs(component).items():
                total[name] = total.get(name, 0) + component.replicas * amount
        return total
    return _needs(spec)


def _needs(spec: BindingSpec | Component) -> dict[str, int]:
    units = {name: amounts.units(name, amount) for name, amount in amounts.request_of(spec).items()}
    return {name: wanted for name, wanted in units.items() if wanted > 0}


def _capacity(context: Context, cluster: Cluster, side: Side) -> Iterator[Edit]:
    """Yield a resource summary with which a number of replicas fits."""
    base = available(context.binding, cluster, context.objects.gates)
    others = context.available
    wanted = 1 if context.counts_sets else max(1, context.binding.spec.replicas)
    one, units = ("set of Pods", "sets of Pods") if context.counts_sets else ("replica", "replicas")
    amounts = [base + wanted, base + wanted + max(0, min(others, MAX_INT32 // 4))]
    ref = ObjectRef(CLUSTER, "", cluster.name)
    manifest, per_replica = context.manifest_of(ref), needed(context)
    if missing := without_model(cluster, per_replica, context.objects.gates):
        # The sums of the summary count then, and if they do not suffice, more capacity is another part of the change.
        listed, gate = ", ".join(missing), "CustomizedClusterResourceModeling"
        yield context.on(side, ref).set(
            "addToModels", (*_SUMMARY, "allocatableModelings"), [],
            f"a grade with {listed} in spec.resourceModels that takes a replica (or the gate {gate} off)", extra=-0.8,
            instead=f"Add {listed} to every grade of spec.resourceModels of {cluster.name}; the minimum of a grade has to be "
            f"as large as the request. Or start the scheduler with --feature-gates={gate}=false.",
        )  # fmt: skip
        return

    instead = f"Add nodes to {cluster.name}, or free what runs there; Karmada then updates its capacity."
    if cluster.resource_summary is None:
        instead = f"{cluster.name} has no status.resourceSummary, which counts as none free: find out why it is not reported."

    def build(amount: int) -> Edit:
        path, value, text = _with_capacity(manifest, cluster, per_replica, amount, context)
        return context.on(side, ref).set(
            "addCapacity", (*_SUMMARY, *path), value,
            f"{text}: {counted(amount, one + ' fits', units + ' fit')} ({base} now)", extra=0.5 if base > 0 else -0.8,
            instead=instead,
        )  # fmt: skip

    yield from amounts_of(build, base=base, amounts=[amount for amount in amounts if amount > base])


def _with_capacity(
    manifest: Mapping[str, Any],
    cluster: Cluster,
    per_replica: Mapping[str, int],
    amount: int,
    context: Context,
) -> tuple[tuple[str, ...], Any, str]:
    """Return path, value and text of the change after which a number of replicas fits."""
    summary = (manifest.get("status") or {}).get("resourceSummary") or {}
    allocatable = dict(summary.get("allocatable") or {})
    used = cluster.resource_summary
    changed: dict[str, str] = {}
    shown = []
    pods = sum(each.replicas for each in context.binding.spec.components) if context.counts_sets else 1
    for name, units in {**per_replica, "pods": max(1, pods)}.items():
        left = used.left(name) if used is not None else quantity.ZERO
        have = amounts.units(name, left)
        missing = units * amount - have
        if missing <= 0:
            continue
        total = used.allocatable.get(name, quantity.ZERO) if used is not None else quantity.ZERO
        whole = amounts.units(name, total) + missing
        changed[name] = f"{whole}m" if name == "cpu" else str(whole)
        shown.append(f"{_units(name, missing)} {name}")
    text = f"{' and '.join(shown) or 'more'} free"
    counts_models = uses_models(cluster, context.objects.gates)
    models = _with_nodes(summary, cluster, per_replica, amount) if counts_models else None
    if models is None and len(changed) == 1 and used is not None:
        [(name, written)] = changed.items()
        return ("allocatable", name), written, text
    allocatable.update(changed)
    if models is None and used is not None:
        return ("allocatable",), allocatable, text
    value = {**summary, "allocatable": allocatable}
    if models is not None:
        value["allocatableModelings"] = models
        lacking = "nodes for them" if models else "a grade in spec.resourceModels that takes one"
        text = f"{text}, and {lacking}"
    return (), value, text


def _with_nodes(
    summary: Mapping[str, Any], cluster: Cluster, per_replica: Mapping[str, int], amount: int
) -> list[dict[str, Any]]:
    """Return the free nodes by grade with one more node per replica, of the smallest grade that takes one.

    No grade may take one; without any count, the sums of the summary are used instead.
    """
    for model in sorted(cluster.resource_models, key=lambda each: each.grade):
        known = {name: units for name, units in per_replica.items() if name in model.minimums}
        fits = [amounts.units(name, model.minimums[name]) >= units for name, units in known.items()]
        if len(fits) == len(per_replica) and all(fits):
            listed = [dict(entry) for entry in summary.get("allocatableModelings") or []]
            for entry in listed:
                if (entry.get("grade") or 0) == model.grade:
                    entry["count"] = (entry.get("count") or 0) + amount
                    return listed
            return [*listed, {"grade": model.grade, "count": amount}]
    return []


def _units(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount / 1000:g}"
    if amount >= _MI:
        return f"{-(-amount // _MI)}Mi"
    return str(amount)


def less(context: Context, cluster: Cluster, side: Side, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield fewer pods for which a cluster has capacity."""
    summary = cluster.resource_summary
    if summary is None or "pods" not in summary.allocatable:
        return
    base = available(context.binding, cluster, context.objects.gates)
    if base <= 0:
        return
    used = summary.allocatable["pods"].value - summary.left("pods").value

    def build(amount: int) -> Edit:
        return context.on(side, ObjectRef(CLUSTER, "", cluster.name)).set(
            "removeCapacity", (*_SUMMARY, "allocatable", "pods"), str(used + amount),
            f"{counted(amount, 'free pod')} ({counted(base, 'replica fits', 'replicas fit')} now)", extra=extra,
            harm=Harm.NARROWS, caution=f"It takes capacity of {cluster.name} from all workloads.",
        )  # fmt: skip

    yield from amounts_of(build, base=base, amounts=[0])


def requests(context: Context) -> Iterator[Edit]:
    """Yield smaller requests of a replica."""
    if context.binding.spec.components:
        return
    path = ("spec", "replicaRequirements", "resourceRequest")
    listed = context.mine(*path)
    for name, written in (listed if isinstance(listed, dict) else {}).items():
        try:
            amount = quantity.read(written, name)
        except ManifestError:
            continue
        yield from _request(context, (*path, name), name, str(written), amount)
        if amount.value > 0 and name not in {"cpu", "memory"}:
            text = f"no request of {name}"
            yield context.on_workload.remove(
                "dropRequest", (*path, name), text, extra=0.6, harm=Harm.UNCHECKED
            )
    if needed(context):
        yield context.on_workload.remove("dropRequests", path, "no requests", extra=1.2, harm=Harm.UNCHECKED)


def _request(
    context: Context, path: tuple[str, ...], name: str, written: str, amount: quantity.Quantity
) -> Iterator[Edit]:
    scale, suffix = (1, "m") if name == "cpu" else (_MI, "Mi") if amount.value >= _MI else (1, "")
    base = -(-amounts.units(name, amount) // scale)
    if base <= 0:
        return

    def build(least: int) -> Edit:
        text = f"request {least}{suffix} {name} instead of {written}"
        return context.on_workload.set("setRequest", path, f"{least}{suffix}", text, extra=0.2)

    yield from amounts_of(build, base=base, amounts=[each for each in (base // 2, 1) if each], unit=suffix)


def of_quotas(context: Context) -> Iterator[Edit]:
    """Yield for a placement that a quota refuses as many replicas as it allows, a higher limit, and smaller requests."""
    yield from _fewer_replicas(context)
    refused = context.outcome.scheduled.refused
    if refused is not None:
        limit, wanted = (quantity_text(refused.resource, each) for each in (refused.limit, refused.wanted))
        ref = ObjectRef(QUOTA, refused.quota.namespace, refused.quota.name)
        yield context.on(Side.QUOTA, ref).set(
            "raiseQuota", ("spec", "overall", refused.resource), wanted,
            f"raise {refused.resource} of the quota {refused.quota.name} to {wanted} ({limit} now)", extra=-0.5,
        )  # fmt: skip
    yield from requests(context)


def _fewer_replicas(context: Context) -> Iterator[Edit]:
    binding, objects = context.binding, context.objects
    base = binding.spec.replicas
    if base < 2:
        return
    ledger = objects.ledger(context.outcome.patched.manifests)
    most = ledger.most_replicas(objects.key.namespace, binding.spec, objects.usage)

    def build(amount: int) -> Edit:
        text = f"{counted(amount, 'replica')} ({base} now)"
        return context.on_workload.set("setReplicas", ("spec", "replicas"), amount, text, extra=-0.5)

    present = sum(target.replicas for target in binding.spec.clusters)
    amounts = [most] if most is not None and present < most < base else []  # no replica that runs is stopped
    yield from amounts_of(build, base=base, amounts=amounts)
