"""Renames everything in a capture that a user has named, so that decisions and their reasons stay the same.

All names get numbers in their order, because the order of names breaks ties. Equal names get equal numbers, whatever they
name, because selectors compare them. What the API defines (kinds, conditions, effects), amounts, times and uids stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_KEPT: Final = frozenset(
    {
        "activationPreference", "allocatable", "allocated", "allocating", "apiEnablements", "apiVersion", "at", "class",
        "conflictResolution", "creationTimestamp", "decisionsOf", "decisions_of", "due_in", "dynamicWeight", "effect", "ending", "event",
        "featureGates", "feature_gates", "kind", "lastScheduledTime", "lastTransitionTime", "lastUpdateTime",
        "managedFields", "nodeSummary", "operator", "plugins", "preemption", "purgeMode", "queue_state", "reason",
        "remedySystem", "replicaDivisionPreference", "replicaSchedulingType", "reschedule", "rescheduleTriggeredAt",
        "resourceModels", "resourceRequest", "resourceSummary", "resourceVersion", "schedulerName", "schedulerNames",
        "scheduler_name", "spreadByField", "status", "syncMode", "time", "timeAdded", "trigger", "type", "uid", "by",
        "written", "producer", "priorityClassSource",
    }
)  # fmt: skip
"""Fields whose values (and what is below them) are defined by the API, or are amounts and times."""
_TEXTS: Final = frozenset({"message", "why", "error", "problem", "source"})
"""Fields with sentences: the names in them are replaced."""
_NAMED_KEYS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "targets", "before"})
"""Maps whose keys are names."""
_KEY_FIELDS: Final = frozenset({"key"})
_OF_THE_API: Final = re.compile(r"(?:^|[./])(?:kubernetes|k8s|karmada)\.io(?:/|$)|^(?:region|zone|provider)$")
_CLUSTER_SPEC: Final = ("syncMode", "provider", "region", "zone", "zones", "taints", "resourceModels")
_ANNOTATIONS: Final = re.compile(r"karmada\.io/")
_TOKEN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z0-9]")


def anonymous(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a capture with other names."""
    rules = {**fields["rules"], "plugin_dirs": []}
    asked = fields["asked"]
    other = {name: each for name, each in fields.items() if name not in {"rules", "asked"}}
    renamed, number = with_other_names({**other, "source": ""})
    kind, _, name = asked["name"].rpartition("/")
    new = number.get(name, name)
    return {
        **renamed,
        "rules": rules,
        "asked": {"name": f"{kind}/{new}" if kind else new, "namespace": number.get(asked["namespace"], "")},
    }


def with_other_names(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return fields with other names, and the new name of each.

    Args:
        fields: ``clusters`` and ``bindings``, ``policies`` and ``workloads``, which may be None, and others.
    """
    needed = {
        **fields,
        "clusters": [_cluster(each) for each in fields["clusters"]],
        "bindings": [_object(each) for each in fields["bindings"]],
        "policies": None if fields["policies"] is None else [_object(each) for each in fields["policies"]],
        "workloads": None if fields["workloads"] is None else [_object(each) for each in fields["workloads"]],
    }
    names = sorted(set(_names(needed, "")))
    number = {name: f"n{index:05}" for index, name in enumerate(names)}
    renamed: dict[str, Any] = _renamed(needed, "", number)
    return renamed, number


def _cluster(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = manifest.get("spec") or {}
    return {**_object(manifest), "spec": {name: spec[name] for name in _CLUSTER_SPEC if name in spec}}


def _object(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object without foreign annotations, and with those in JSON as values."""
    metadata = dict(manifest.get("metadata") or {})
    metadata["annotations"] = {
        name: _decoded(value)
        for name, value in (metadata.get("annotations") or {}).items()
        if _ANNOTATIONS.search(name)
    }
    metadata.pop("ownerReferences", None)
    return {**manifest, "metadata": metadata}


def _decoded(value: Any) -> Any:
    """Return the object that an annotation has as JSON, other values as they are."""
    try:
        found = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
    return _Json(found) if isinstance(found, dict) else value


class _Json(dict[str, Any]):
    """A value that an annotation has as JSON."""


def _is_kept(value: Any, field: str) -> bool:
    """Return whether a value stays; ``status`` is that of a condition, or a part of the object."""
    return field in _KEPT and not (field == "status" and isinstance(value, Mapping))


def _names(value: Any, field: str) -> Iterator[str]:
    """Yield every name in a value."""
    if _is_kept(value, field) or field in _TEXTS:
        return
    if isinstance(value, Mapping):
        for key, each in value.items():
            if field in _NAMED_KEYS and not _OF_THE_API.search(key):
                yield key
            yield from _names(each, key)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _names(each, field)
    elif isinstance(value, str) and value and not (field in _KEY_FIELDS and _OF_THE_API.search(value)):
        yield value


def _renamed(value: Any, field: str, number: Mapping[str, str]) -> Any:
    if _is_kept(value, field):
        return value
    if isinstance(value, str):
        return _in_text(value, number) if field in _TEXTS else number.get(value, value)
    if isinstance(value, Mapping):
        found = {
            number.get(key, key) if field in _NAMED_KEYS else key: _renamed(each, key, number)
            for key, each in value.items()
        }
        return json.dumps(found, separators=(",", ":")) if isinstance(value, _Json) else found
    if isinstance(value, list | tuple):
        return [_renamed(each, field, number) for each in value]
    return value


def _in_text(text: str, number: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda found: number.get(found[0], found[0]), text)
