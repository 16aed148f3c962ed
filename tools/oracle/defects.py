"""Defects of upstream that are not copied, recognized by the value that causes them.

Upstream then decides about the same scenario without that value, and our core about the scenario as it is. The results have
to be equal, so nothing is skipped. docs/differences-from-upstream.md has the reasons. PANIC and MINUTES are exceptions: there is
no result, because upstream's process ends, or is ended by the fuzzer after a minute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from karmada_scheduler.api import quantity
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core.assign_replicas import divides_by_tiers
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.estimator.resources import amounts

Manifest = dict[str, Any]

PANIC = "a cpu request that overflows to 0 milli-units: upstream divides by it and dies"
NEGATIVE_MINIMUM = "a model minimum that is negative in Go's arithmetic: upstream counts pods for ever"
UNREADABLE_ANNOTATION = "an applied placement that cannot be read: upstream takes it for unchanged"
EMPTY_LIST = "an explicit empty list in a placement: upstream takes it for a change, at every turn"
NO_TERMS = "an empty list of affinity terms: upstream schedules nothing and reports success"

RESTLESS = "a binding whose own footprint drives it off its cluster: upstream moves it to and fro for ever"
MINUTES = (
    "a tier with negative available replicas: upstream divides the difference one replica after the other"
)

NO_CLUSTER = [{"affinityName": "nobody", "clusterNames": ["no such cluster"]}]

APPLIED = "policy.karmada.io/applied-placement"


def sanitized_clusters(clusters: list[Manifest]) -> tuple[list[Manifest], bool]:
    """Return clusters without values that lead to a defect, and whether any cluster was changed."""
    sanitized = [_with_real_minima(cluster) for cluster in clusters]
    return sanitized, any(new is not old for new, old in zip(sanitized, clusters, strict=True))


def _with_real_minima(cluster: Manifest) -> Manifest:
    if "resourceModels" not in cluster["spec"]:
        return cluster
    bad = {
        (grade, name)
        for grade, model in enumerate(Cluster.from_manifest(cluster).resource_models)
        for name, amount in amounts(model.minimums).items()
        if amount < 0
    }
    if not bad:
        return cluster
    models = [
        {
            **model,
            "ranges": [
                {**each, "min": "0"} if (number, each["name"]) in bad else each for each in model["ranges"]
            ],
        }
        for number, model in enumerate(cluster["spec"]["resourceModels"])
    ]
    return {**cluster, "spec": {**cluster["spec"], "resourceModels": models}}


def sanitized_binding(binding: Manifest) -> tuple[Manifest, set[str]]:
    """Return a binding without values that lead to a defect, and the defects."""
    found: set[str] = set()
    placement: Manifest | None = binding["spec"].get("placement")
    annotations: Mapping[str, str] = binding["metadata"].get("annotations", {})
    applied = annotations.get(APPLIED, "")
    if placement is not None:
        if placement.get("clusterAffinities") == []:
            found.add(NO_TERMS)
            placement = {key: item for key, item in placement.items() if key != "clusterAffinities"}
        if (plain := _without_empty_lists(placement)) != placement:
            found.add(EMPTY_LIST)
            placement = plain
    if applied:
        try:
            Placement.from_json(applied)
        except ManifestError:
            found.add(UNREADABLE_ANNOTATION)
            applied = ""
        else:
            document = json.loads(applied)
            if (plain := _without_empty_lists(document)) != document:
                if NO_TERMS not in found or document.get("clusterAffinities") != []:
                    found.add(EMPTY_LIST)
                applied = json.dumps(plain)
    if not found:
        return binding, found
    sanitized = {**binding, "spec": {**binding["spec"]}, "metadata": {**binding["metadata"]}}
    if placement is not None:
        sanitized["spec"]["placement"] = placement
    if annotations:
        sanitized["metadata"]["annotations"] = {**annotations, APPLIED: applied}
    return sanitized, found


def _without_empty_lists(value: Any) -> Any:
    """Drop fields that hold an empty list, or an empty map of labels, as Go's encoder does.

    An empty list of overflow affinities makes both divide by tiers. So it is replaced by one that no cluster
    matches.
    """
    if isinstance(value, dict):
        return {
            key: NO_CLUSTER if key == "overflowAffinities" and item == [] else _without_empty_lists(item)
            for key, item in value.items()
            if (item != [] or key == "overflowAffinities") and not (key == "matchLabels" and item == {})
        }
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    return value


def without_placeholder(placement: Manifest) -> Manifest:
    """Return a placement without the overflow affinity that stands for an empty list of them."""
    if "clusterAffinities" not in placement:
        return placement
    terms = [
        {key: item for key, item in term.items() if item != NO_CLUSTER}
        for term in placement["clusterAffinities"]
    ]
    return {**placement, "clusterAffinities": terms}


def takes_minutes(decision: Decision | None) -> bool:
    """Return whether upstream divides up to 2**31 replicas, for which it takes some 0.1 s per million.

    The available replicas of a cluster with absurd capacities (``cpu: 1Ei``) are negative in Go's arithmetic.
    """
    return any(
        each.cycle is not None
        and divides_by_tiers(each.cycle)
        and any(one.available < 0 for one in each.candidates)
        for each in (decision.attempts if decision is not None else ())
    )


def is_expected_panic(binding: Manifest, text: str) -> bool:
    """Return whether a panic of upstream is the known division by zero."""
    request = (binding["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
    if text != "runtime error: integer divide by zero" or "cpu" not in request:
        return False
    cpu = quantity.parse(request["cpu"])
    return cpu.value > 0 and cpu.milli_value == 0
