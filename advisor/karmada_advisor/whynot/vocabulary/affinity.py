"""Edits of the cluster affinities, and of what they select a cluster by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_advisor.whynot.edits import Edit, Harm, PatchAction, Path
from karmada_advisor.whynot.vocabulary.context import NEAREST, PLACEMENT, Context
from karmada_advisor.whynot.vocabulary.selectors import field_selector, label_selector, matches


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for a cluster that the affinity does not select."""
    for path, found in context.affinity_paths():
        if isinstance(found, dict):
            yield from _select(context, path, found)
    if context.placement.cluster_affinity is not None:
        yield context.policy(
            "dropAffinity", PatchAction.REMOVE, ("clusterAffinity",), "drop clusterAffinity", extra=1.5,
            harm=Harm.WIDENS,
        )  # fmt: skip
    elif context.placement.cluster_affinities:
        yield from _terms(context)


def only(context: Context) -> Iterator[Edit]:
    """Yield the affinity that selects nothing else by name."""
    for path, found in context.affinity_paths():
        names = found.get("clusterNames") if isinstance(found, dict) else None
        if names != [context.name]:
            yield context.policy(
                "selectOnly",
                PatchAction.SET,
                (*path, "clusterNames"),
                f"clusterNames: [{context.name}]",
                value=[context.name],
                extra=2.5,
                harm=Harm.NARROWS,
                caution="It takes every other cluster out of the policy.",
            )
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
    return context.policy(
        "excludeRegion",
        PatchAction.APPEND,
        (*path, "fieldSelector", "matchExpressions"),
        f"region NotIn [{region}]",
        value={"key": "region", "operator": "NotIn", "values": [region]},
        extra=0.5,
        **rest,
    )


def exclude(context: Context, name: str, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield the edit that takes one cluster out of the affinity; harmless if another one is asked for, or this one is left."""
    harm = Harm.NONE if context.is_wanted or name == context.name else Harm.NARROWS
    caution = "" if name == context.name else f"It takes {name}, which the policy allows, out of it."
    for path, found in context.affinity_paths():
        names = (found.get("clusterNames") or ()) if isinstance(found, dict) else ()
        if name in names and len(names) > 1:
            yield context.policy(
                "removeClusterName", PatchAction.REMOVE, (*path, "clusterNames", names.index(name)),
                f"remove {name} from clusterNames", extra=extra, harm=harm, caution=caution,
            )  # fmt: skip
        else:
            yield context.policy(
                "excludeCluster",
                PatchAction.APPEND,
                (*path, "exclude"),
                f"exclude {name}",
                value=name,
                extra=extra,
                harm=harm,
                caution=caution,
            )


def tiers(context: Context) -> Iterator[Edit]:
    """Yield edits of the tiers: the cluster in the main affinity of its term, or as overflow of another term."""
    candidate = context.blocker.candidate
    if candidate is not None and candidate.tier > 0:
        for path, found in context.affinity_paths():
            if isinstance(found, dict):
                yield from _select(context, path, found)
            break
    if context.placement.cluster_affinity is None and context.binding.spec.is_workload:
        for index, term in enumerate(context.items(*PLACEMENT, "clusterAffinities")):
            if isinstance(term, dict) and not matches(term, context.cluster):
                yield _overflow(context, index, str(term.get("affinityName")))


def _overflow(context: Context, index: int, term: str) -> Edit:
    """Return the edit that lets a term overflow to the cluster."""
    return context.policy(
        "addOverflow",
        PatchAction.APPEND,
        ("clusterAffinities", index, "overflowAffinities"),
        f"overflow of affinity term {term}: {context.name}",
        value={"affinityName": f"{term}-{context.name}"[:63], "clusterNames": [context.name]},
        extra=0.5,
    )


def _terms(context: Context) -> Iterator[Edit]:
    """Yield edits of the affinity terms: overflow to the cluster, and terms that no longer come first."""
    name = context.attempt.affinity_name if context.attempt is not None else ""
    listed = context.items(*PLACEMENT, "clusterAffinities")
    for index, term in enumerate(listed):
        if not isinstance(term, dict):
            continue
        if term.get("affinityName") == name:
            if context.binding.spec.is_workload:
                yield _overflow(context, index, name)
            if len(listed) > 1:
                yield drop_term(context, index, name, extra=0.5)
        elif matches(term, context.cluster):
            others = [each for each in listed if each is not term]
            yield context.policy(
                "termFirst",
                PatchAction.SET,
                ("clusterAffinities",),
                f"affinity term {term.get('affinityName')} first, with another name",
                value=[{**term, "affinityName": f"{term.get('affinityName')}-first"[:63]}, *others],
                extra=0.5,
            )
    yield context.policy(
        "dropTerms", PatchAction.REMOVE, ("clusterAffinities",), "drop clusterAffinities", extra=1.5,
        harm=Harm.WIDENS,
    )  # fmt: skip


def drop_term(context: Context, index: int, name: str, *, extra: float) -> Edit:
    """Return the edit that removes an affinity term, so that the next one is used."""
    return context.policy(
        "dropTerm",
        PatchAction.REMOVE,
        ("clusterAffinities", index),
        f"drop affinity term {name}",
        extra=extra,
        harm=Harm.WIDENS,
    )


def _select(context: Context, path: Path, found: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of one affinity, or of what it selects by."""
    name = context.name
    excluded = found.get("exclude") or []
    if name in excluded:
        yield context.policy(
            "removeExclude",
            PatchAction.REMOVE,
            (*path, "exclude", excluded.index(name)),
            f"remove {name} from exclude",
            harm=Harm.WIDENS,
        )
    names = found.get("clusterNames") or []
    if names and name not in names:
        yield from _names(context, path, names)
    labels = found.get("labelSelector")
    if isinstance(labels, dict):
        yield from label_selector(context, (*path, "labelSelector"), labels)
    fields = found.get("fieldSelector")
    if isinstance(fields, dict):
        yield from field_selector(context, (*path, "fieldSelector"), fields)


def _names(context: Context, path: Path, names: list[str]) -> Iterator[Edit]:
    name = context.name
    for index, each in enumerate(names):
        near = "" if context.outcome.snapshot.get(each) else context.objects.nearest_cluster(each)
        if near and near not in names:
            yield context.policy(
                "correctClusterName", PatchAction.SET, (*path, "clusterNames", index),
                f"write {near} instead of {each}, which does not exist", value=near, extra=-0.2,
            )  # fmt: skip
    # A policy that names clusters which exist means them: what refuses them comes first.
    is_meant = any(context.outcome.snapshot.get(each) is not None for each in names)
    yield context.policy(
        "addClusterName", PatchAction.APPEND, (*path, "clusterNames"), f"add {name} to clusterNames", value=name,
        extra=0.5 if is_meant and not context.is_wanted else 0.0,
    )  # fmt: skip
