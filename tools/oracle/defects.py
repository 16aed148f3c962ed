"""Defects of upstream that are not copied, recognized by the value that causes them.

Upstream then decides about the same scenario without that value, and our core about the scenario as it is. The results have
to be equal, so nothing is skipped. docs/differences-from-upstream.md has the reasons. RESTLESS has a comparison of its own. ENDED
has no result: it is counted by the end of upstream's process alone, whatever the case is. INVALID_EXPRESSION: ours ends with an
error where upstream goes on, and all runs before that are equal. RESCHEDULE_REMOVES, under the rules of 1.19: the first pass is
equal, and ours ends with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core.decision import TermFailure
from karmada_scheduler.framework.diagnosis import FitError

Manifest = dict[str, Any]

ENDED = "upstream's process ended, or did not respond in time"
UNREADABLE_ANNOTATION = "an applied placement that cannot be read: upstream takes it for unchanged"
EMPTY_LIST = "an explicit empty list in a placement: upstream takes it for a change, at every turn"

GONE_TARGET = "a target that does not exist: upstream leaves a divided binding there"
INVALID_EXPRESSION = "an expression that is not known: for upstream it selects nothing"
LISTED_TWICE = "a cluster that is listed twice: upstream may keep both entries"
RESCHEDULE_REMOVES = (
    "a reschedule whose first term does not fit: upstream 1.19 removes what runs in a later one"
)

RESTLESS = "a binding whose own footprint drives it off its cluster: upstream moves it to and fro for ever"

NO_CLUSTER = [{"affinityName": "nobody", "clusterNames": ["no such cluster"]}]

APPLIED = "policy.karmada.io/applied-placement"


def with_gone_targets(clusters: list[Manifest], bindings: Iterable[Manifest]) -> list[Manifest]:
    """Return clusters and, as being deleted, those that bindings have and that do not exist."""
    names = {each["metadata"]["name"] for each in clusters}
    gone = {target["name"] for binding in bindings for target in binding["spec"].get("clusters", ())} - names
    deleted = [
        {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {
                "name": name,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["test/hold"],
            },
            "spec": {},
            "status": {},
        }
        for name in sorted(gone)
    ]
    return [*clusters, *deleted]


def has_target_in(clusters: Iterable[Manifest], binding: Manifest) -> bool:
    """Return whether a binding has one of these clusters as a target."""
    names = {each["metadata"]["name"] for each in clusters}
    return any(target["name"] in names for target in binding["spec"].get("clusters", ()))


def sanitized_binding(binding: Manifest) -> tuple[Manifest, set[str]]:
    """Return a binding without values that lead to a defect, and the defects."""
    found: set[str] = set()
    placement: Manifest | None = binding["spec"].get("placement")
    annotations: Mapping[str, str] = binding["metadata"].get("annotations", {})
    applied = annotations.get(APPLIED, "")
    if placement is not None and (plain := _without_empty_lists(placement)) != placement:
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


def is_removed_by_reschedule(binding: Binding, failures: Sequence[TermFailure]) -> bool:
    """Return whether a reschedule fails to fit in the first term, and in the later one in use for another reason."""
    name, placement = binding.status.scheduler_observing_affinity_name, binding.spec.placement
    names = [term.affinity_name for term in placement.cluster_affinities] if placement is not None else []
    if not (binding.reschedule_triggered and binding.spec.clusters and name in names[1:]):
        return False
    errors = {each.index: each.error for each in failures}
    in_use = errors.get(names.index(name))
    return isinstance(errors.get(0), FitError) and in_use is not None and not isinstance(in_use, FitError)


def without_placeholder(placement: Manifest) -> Manifest:
    """Return a placement without the overflow affinity that stands for an empty list of them."""
    if "clusterAffinities" not in placement:
        return placement
    terms = [
        {key: item for key, item in term.items() if item != NO_CLUSTER}
        for term in placement["clusterAffinities"]
    ]
    return {**placement, "clusterAffinities": terms}


_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""Whether the operators of selectors have values."""


def has_invalid_expression(placement: Any) -> bool:
    """Return whether an expression in a placement is one that upstream cannot read, or a part that it does not know."""
    if isinstance(placement, list):
        return any(map(has_invalid_expression, placement))
    if not isinstance(placement, dict):
        return False
    return any(_invalid_parts(placement)) or any(map(has_invalid_expression, placement.values()))


def _invalid_parts(part: Manifest) -> Iterator[bool]:
    for each in part.get("clusterTolerations", ()):
        yield each.get("operator", "") not in ("", "Equal", "Exists")
        yield each.get("effect", "") not in ("", "NoSchedule", "NoExecute", "PreferNoSchedule")
    labels = part.get("labelSelector") or {}
    for key, value in labels.get("matchLabels", {}).items():
        yield not _is_key(key) or not _are_values([value])
    for each in labels.get("matchExpressions", ()):
        yield not _is_requirement(each)
    for each in (part.get("fieldSelector") or {}).get("matchExpressions", ()):
        if each["key"] == "zone":
            yield each["operator"] not in _OPERATORS
        else:
            yield each["key"] not in ("provider", "region") or not (_is_requirement(each) or _is_bound(each))


def _is_requirement(expression: Manifest) -> bool:
    values = expression.get("values", [])
    takes_values = _OPERATORS.get(expression["operator"])
    return takes_values is bool(values) and _is_key(expression["key"]) and _are_values(values)


def _is_bound(expression: Manifest) -> bool:
    values = expression.get("values", [])
    is_number = len(values) == 1 and re.fullmatch(r"[+-]?[0-9]{1,18}", values[0]) is not None
    return expression["operator"] in ("Gt", "Lt") and is_number and _are_values(values)


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def _are_values(values: Iterable[str]) -> bool:
    return all(not each or _NAME.fullmatch(each) for each in values)
