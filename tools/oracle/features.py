"""Features that a case exercises, so that a number of cases shows what was covered.

tools/oracle/tests/test_generator.py fails if a run of reasonable length does not meet every feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.oracle.program import UpstreamResult

Scenario = Mapping[str, Any]
Manifest = Mapping[str, Any]


def of_scenario(scenario: Scenario) -> Iterator[str]:
    """Name what the settings and clusters of a scenario exercise."""
    for gate, on in scenario["gates"].items():
        yield f"gate {gate} {'on' if on else 'off'}"
    if scenario["plugins"] != ["*"]:
        yield "plugins switched off"
    if scenario["emptyWorkloadPropagation"]:
        yield "empty-workload propagation"
    count = len(scenario["clusters"])
    yield "clusters: " + (
        "1" if count == 1 else "2-12" if count <= 12 else "13-60" if count <= 60 else "61-500"
    )
    if scenario.get("peers"):
        yield "peers in groups"
    if scenario.get("assigning"):
        yield "peers written but not yet seen"
    if scenario.get("assumed"):
        yield "assumed workloads"
    if "accurate" in scenario:
        yield "accurate estimator fails" if "error" in scenario["accurate"] else "accurate estimator"
    for cluster in scenario["clusters"]:
        yield from _of_cluster(cluster)


def _of_cluster(cluster: Manifest) -> Iterator[str]:
    spec, status = cluster["spec"], cluster["status"]
    if "deletionTimestamp" in cluster["metadata"]:
        yield "cluster being deleted"
    for key in ("provider", "region", "zones", "taints", "resourceModels"):
        yield f"cluster {'with' if key in spec else 'without'} {key}"
    summary = status.get("resourceSummary")
    if summary is None:
        yield "cluster without resource summary"
        return
    for key in ("allocatable", "allocated", "allocating", "allocatableModelings"):
        if key in summary:
            yield f"summary with {key}"
    if any(each["count"] < 0 for each in summary.get("allocatableModelings", ())):
        yield "negative node count"
    for amounts in (summary.get("allocatable", {}), summary.get("allocated", {})):
        for text in amounts.values():
            yield f"quantity {_notation(text)}"


def _notation(text: str) -> str:
    if text.startswith("-"):
        return "negative"
    if text[-1:] == "i":
        return "binary suffix, fraction" if "." in text else "binary suffix"
    if text[-1:] in "nu":
        return "nano or micro"
    if text[-1:] in "mkMGTPE":
        return "decimal suffix"
    if "e" in text.lower():
        return "exponent"
    if "." in text:
        return "fraction"
    return "integer over 18 digits" if len(text) > 18 else "integer"


def of_case(binding: Manifest) -> Iterator[str]:
    """Name what a binding exercises."""
    spec, status = binding["spec"], binding["status"]
    yield str(binding["kind"])
    yield "replicas " + ("missing" if "replicas" not in spec else "zero" if not spec["replicas"] else "given")
    if (requirements := spec.get("replicaRequirements")) is not None:
        yield "requirements"
        if not requirements.get("resourceRequest"):
            yield "requirements without request"
        for text in requirements.get("resourceRequest", {}).values():
            yield f"request {_notation(text)}"
    if (components := spec.get("components")) is not None:
        yield f"components: {min(len(components), 2)}" + ("+" if len(components) > 1 else "")
    targets = [target["name"] for target in spec.get("clusters", ())]
    yield "previous assignment" if targets else "first assignment"
    if len(set(targets)) < len(targets):
        yield "a cluster assigned twice"
    if "gone" in targets:
        yield "assigned to an unknown cluster"
    if "gracefulEvictionTasks" in spec:
        yield "eviction"
    if "workloadAffinityGroups" in spec:
        yield "workload groups"
    if "deletionTimestamp" in binding["metadata"]:
        yield "binding being deleted"
    if "uid" in spec["resource"]:
        yield "uid " + ("odd" if _is_odd(spec["resource"]["uid"]) else "even")
    else:
        yield "uid missing"
    requested, done = spec.get("rescheduleTriggeredAt"), status.get("lastScheduledTime")
    if requested and done:
        yield (
            "trigger "
            + ("after" if requested > done else "at" if requested == done else "before")
            + " last schedule"
        )
    annotations = binding["metadata"].get("annotations")
    yield "applied placement" if annotations else "no applied placement"
    if (placement := spec.get("placement")) is None:
        yield "no placement"
    else:
        yield from _of_placement(placement, status.get("schedulerObservingAffinityName"))


def _is_odd(uid: str) -> bool:
    """Return whether ties go to the last name: the lowest bit of FNV-1a is that of 1 and all bytes."""
    bits = 1
    for byte in uid.encode():
        bits ^= byte
    return bits & 1 == 1


def _of_placement(placement: Manifest, observed: str | None) -> Iterator[str]:
    if "clusterAffinity" in placement:
        yield "single affinity"
    terms = placement.get("clusterAffinities")
    if terms is not None:
        yield "affinity terms"
        names = [term["affinityName"] for term in terms]
        if observed is not None:
            yield "observed term " + (
                "first" if [observed] == names[:1] else "known" if observed in names else "unknown"
            )
        if any(term.get("overflowAffinities") for term in terms):
            yield "overflow affinities"
        if any(term.get("overflowAffinities") == [] for term in terms):
            yield "empty overflow affinities"
    for key in ("clusterTolerations",):
        if key in placement:
            yield key
    constraints = placement.get("spreadConstraints", ())
    for constraint in constraints:
        yield f"spread by {constraint.get('spreadByField', 'label')}"
        if not constraint.get("maxGroups"):
            yield "spread without maxGroups"
        if not constraint.get("minGroups"):
            yield "spread without minGroups"
    strategy = placement.get("replicaScheduling")
    if strategy is None:
        yield "strategy missing"
        return
    preference = strategy.get("weightPreference")
    kind = (
        f"{strategy.get('replicaSchedulingType', '')} {strategy.get('replicaDivisionPreference', '')}".strip()
    )
    if kind == "Divided Weighted":
        dynamic = preference is not None and "dynamicWeight" in preference
        kind += " dynamic" if dynamic else " static" if preference else " without weights"
    yield f"strategy {kind or 'empty'}"
    for rule in (preference or {}).get("staticWeightList", ()):
        if set(rule["targetCluster"]) - {"clusterNames"}:
            yield "static weight with selector"
        if rule["weight"] == 0 or rule["weight"] > 2**32:
            yield "static weight zero or huge"


def of_result(upstream: UpstreamResult) -> Iterator[str]:
    """Name the features of upstream's result."""
    passes = upstream.get("passes", ())
    yield f"passes: {len(passes) if len(passes) < 3 else '3+'}"
    for number, each in enumerate(passes):
        if number == 0:
            for rule in each["rules"] or ["none"]:
                yield f"rule {rule}"
            if not each["scheduled"]:
                yield "nothing to schedule"
        terms = each.get("terms", ())
        if len(terms) > 1:
            yield "several terms tried"
        for term in terms:
            yield f"outcome {term['class']}"
            if term["class"] in {"error", "unschedulable"}:
                yield "error " + "".join("N" if c.isdigit() else c for c in _family(term["error"]))
            elif term["class"] == "ok":
                chosen = len(term["clusters"])
                yield "outcome clusters: " + (
                    str(chosen) if chosen < 2 else "2-12" if chosen <= 12 else "13+"
                )


def _family(text: str) -> str:
    """Return the kind of an error."""
    if "unsupported replica scheduling strategy" in text:
        return "unsupported replica scheduling strategy"
    words = text.split("available replicas ")
    if len(words) == 2 and words[1][:1] in "-0123456789":
        return words[0] + "available replicas N"
    return text
