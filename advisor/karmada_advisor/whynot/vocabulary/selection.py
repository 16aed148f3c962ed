"""Edits of spread constraints and of cluster affinities, for a cluster that is not selected, or that is to be left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary.context import NEAREST, Context
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION
from karmada_scheduler.framework.edits import Edit, Harm, Path
from karmada_scheduler_plugins.placement_edits import drop_constraint, drop_constraints, overflow, select
from karmada_scheduler_plugins.selector_edits import matches


def proposals(context: Context) -> Iterator[Edit]:
    """Yield other limits, and none at all."""
    constraints = context.placement_items("spreadConstraints")
    candidates = context.attempt.candidates if context.attempt is not None else ()
    regions = {candidate.cluster.region for candidate in candidates} - {""}
    most = {SPREAD_BY_CLUSTER: len(candidates), SPREAD_BY_REGION: len(regions)}
    for index, constraint in enumerate(constraints):
        name = str(constraint.get("spreadByField") or constraint.get("spreadByLabel") or "")
        yield from _limits(context, index, constraint, name, most.get(name, 1))
        yield drop_constraint(context, index, name)
    yield from drop_constraints(context)


def fewer_competitors(context: Context) -> Iterator[Edit]:
    """Yield smaller maxima: fewer clusters are selected, so that each gets more."""
    for index, constraint in enumerate(context.placement_items("spreadConstraints")):
        name = str(constraint.get("spreadByField") or "")
        yield from _limits(context, index, constraint, name, 0)


def _limits(context: Context, index: int, constraint: dict[str, Any], name: str, most: int) -> Iterator[Edit]:
    # Several limits may have to change together: the next one comes before other edits.
    edited = context.outcome.edits
    joint = -2.0 if edited and all(each.op == "setGroups" for each in edited) else 0.0
    for field in ("maxGroups", "minGroups"):
        base = constraint.get(field) or 0
        amounts = [most] if most > base else list(dict.fromkeys((max(1, most), 1))) if base > 1 else []
        if field == "minGroups" and base > 1 and most > base:
            amounts.append(1)
        if not most and field == "minGroups":
            continue
        harm = Harm.UNCHECKED if name == SPREAD_BY_CLUSTER and context.counts_sets else Harm.NONE

        def build(
            amount: int, field: str = field, base: int = base, harm: Harm = harm, joint: float = joint
        ) -> Edit:
            return context.on_policy.set(
                "setGroups", ("spreadConstraints", index, field), amount, f"{name} {field} {amount} ({base} now)",
                harm=harm, extra=joint,
            )  # fmt: skip

        yield from amounts_of(build, base=base, amounts=amounts)


def only(context: Context) -> Iterator[Edit]:
    """Yield the affinity that selects nothing else by name."""
    for path, found in context.affinity_paths():
        names = found.get("clusterNames") if isinstance(found, dict) else None
        if names != [context.name]:
            yield context.on_policy.set(
                "selectOnly", (*path, "clusterNames"), [context.name], f"clusterNames: [{context.name}]", extra=2.5,
                harm=Harm.NARROWS, caution="It takes every other cluster out of the policy.",
            )  # fmt: skip
        return


def competitors(context: Context) -> Iterator[Edit]:
    """Yield edits that take selected clusters, or their regions, out of the affinity."""
    regions: dict[str, None] = {}
    for number, each in enumerate(context.competitors()):
        if number >= NEAREST:
            break
        yield from exclude(context, each.name, extra=0.1 * number)
        region = each.cluster.region
        if region and region != context.cluster.region:
            regions[region] = None
    for region in regions:
        for path, _ in context.affinity_paths():
            caution = f"It takes all clusters of {region} out of the policy."
            yield exclude_region(context, path, region, harm=Harm.NARROWS, caution=caution)
            break


def exclude_region(context: Context, path: Path, region: str, **rest: Any) -> Edit:
    """Return that an affinity no longer selects the clusters of a region."""
    return context.on_policy.append(
        "excludeRegion", (*path, "fieldSelector", "matchExpressions"),
        {"key": "region", "operator": "NotIn", "values": [region]}, f"region NotIn [{region}]", extra=0.5, **rest,
    )  # fmt: skip


def exclude(context: Context, name: str, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield the edit that takes one cluster out of the affinity; harmless if another one is asked for, or this one is left."""
    harm = Harm.NONE if context.is_wanted or name == context.name else Harm.NARROWS
    caution = "" if name == context.name else f"It takes {name}, which the policy allows, out of it."
    for path, found in context.affinity_paths():
        names = (found.get("clusterNames") or ()) if isinstance(found, dict) else ()
        if name in names and len(names) > 1:
            yield context.on_policy.remove(
                "removeClusterName", (*path, "clusterNames", names.index(name)), f"remove {name} from clusterNames",
                extra=extra, harm=harm, caution=caution,
            )  # fmt: skip
        else:
            yield context.on_policy.append(
                "excludeCluster", (*path, "exclude"), name, f"exclude {name}", extra=extra, harm=harm,
                caution=caution,
            )  # fmt: skip


def tiers(context: Context) -> Iterator[Edit]:
    """Yield edits of the tiers: the cluster in the main affinity of its term, or as overflow of another term."""
    candidate = context.blocker.candidate
    if candidate is not None and candidate.tier > 0:
        for path, found in context.affinity_paths():
            if isinstance(found, dict):
                yield from select(context, path, found)
            break
    if context.cycle.placement.cluster_affinity is None and context.binding.spec.is_workload:
        for index, term in enumerate(context.placement_items("clusterAffinities")):
            if isinstance(term, dict) and not matches(term, context.cluster):
                yield overflow(context, index, str(term.get("affinityName")))
