"""Edits of the affinities, affinity terms and spread constraints of a placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER
from karmada_scheduler.framework import Edit, EditContext, Harm, Path
from karmada_scheduler_plugins.selector_edits import selector_edits


def select(context: EditContext, path: Path, found: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of one affinity, or of what it selects by."""
    name = context.name
    excluded = found.get("exclude") or []
    if name in excluded:
        yield context.on_policy.remove(
            "removeExclude", (*path, "exclude", excluded.index(name)), f"remove {name} from exclude",
            harm=Harm.WIDENS,
        )  # fmt: skip
    names = found.get("clusterNames") or []
    if names and name not in names:
        yield from _names(context, path, names)
    for name in ("labelSelector", "fieldSelector"):
        if isinstance(selector := found.get(name), dict):
            yield from selector_edits(context, (*path, name), selector)


def _names(context: EditContext, path: Path, names: list[str]) -> Iterator[Edit]:
    name = context.name
    for index, cluster in enumerate(names):
        near = "" if context.cycle.snapshot.get(cluster) else context.values.cluster(cluster)
        if near and near not in names:
            yield context.on_policy.set(
                "correctClusterName", (*path, "clusterNames", index), near,
                f"write {near} instead of {cluster}, which does not exist", extra=-0.2,
            )  # fmt: skip
    # A policy that names clusters which exist means them: what refuses them comes first.
    is_meant = any(context.cycle.snapshot.get(cluster) is not None for cluster in names)
    yield context.on_policy.append(
        "addClusterName", (*path, "clusterNames"), name, f"add {name} to clusterNames",
        extra=0.5 if is_meant and not context.is_wanted else 0.0,
    )  # fmt: skip


def overflow(context: EditContext, index: int, term: str) -> Edit:
    """Return the edit that lets a term overflow to the cluster."""
    return context.on_policy.append(
        "addOverflow", ("clusterAffinities", index, "overflowAffinities"),
        {"affinityName": f"{term}-{context.name}"[:63], "clusterNames": [context.name]},
        f"overflow of affinity term {term}: {context.name}", extra=0.5,
    )  # fmt: skip


def drop_term(context: EditContext, index: int, name: str, *, extra: float) -> Edit:
    """Return the edit that removes an affinity term, so that the next one is used."""
    return context.on_policy.remove(
        "dropTerm", ("clusterAffinities", index), f"drop affinity term {name}", extra=extra, harm=Harm.WIDENS
    )


def drop_constraint(context: EditContext, index: int, name: Any) -> Edit:
    """Return the edit that removes a spread constraint; without that of clusters, sets of components are not counted."""
    ends_check = name == SPREAD_BY_CLUSTER and context.counts_sets
    return context.on_policy.remove(
        "dropConstraint", ("spreadConstraints", index), f"drop the {name} constraint", extra=0.5,
        harm=Harm.UNCHECKED if ends_check else Harm.WIDENS, caution=""
        if ends_check
        else f"It gives up the spread by {name} that the owner of the policy asked for.",
    )  # fmt: skip


def drop_constraints(context: EditContext) -> Iterator[Edit]:
    """Yield the edit that removes all spread constraints, if there are several."""
    if len(context.placement_items("spreadConstraints")) > 1:
        yield context.on_policy.remove(
            "dropConstraints", ("spreadConstraints",), "drop all spread constraints", extra=1.0,
            harm=Harm.UNCHECKED if context.counts_sets else Harm.WIDENS,
            caution="" if context.counts_sets else "It gives up every spread that the owner of the policy asked for.",
        )  # fmt: skip
