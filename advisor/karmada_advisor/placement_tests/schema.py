"""The JSON schema of a file of placement tests; editors show its descriptions, and the reader takes its keys from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.placement_tests.model import API_VERSION, KIND
from karmada_advisor.plan.model import Effect
from karmada_scheduler.config import features
from karmada_scheduler.config.decision_rules import RULES
from karmada_scheduler.core.classify import ScheduleType

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_GATES: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {name: {"type": "boolean"} for name in features.KNOWN},
}
_REFUSED: Final = ("undecided",)
"""A class of ``plan`` that a test calls ``notPlaced: OtherScheduler``."""


def _described(description: str, schema: Mapping[str, Any]) -> Schema:
    return {"description": description, **schema}


def _object(properties: Mapping[str, Schema], *required: str, **more: Any) -> Schema:
    found: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return {**found, **({"required": list(required)} if required else {}), **more}


def _map(of: Mapping[str, Any]) -> Schema:
    return {"type": "object", "additionalProperties": dict(of)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


_ONE_OR_MORE: Final[Schema] = {"oneOf": [_TEXT, _TEXTS]}
_OF_CLUSTER: Final[Schema] = _map(_ONE_OR_MORE)

_CHANGES: Final[Mapping[str, Schema]] = {
    "apply": _described(
        "Files, or manifests in place, as kubectl apply takes them.",
        {"type": "array", "items": {"oneOf": [_TEXT, {"type": "object"}]}},
    ),
    "edit": _described("By KIND/[NS/]NAME, a merge patch.", _map({"type": "object"})),
    "delete": _described("Objects to delete, as KIND/[NS/]NAME.", _ONE_OR_MORE),
    "add": _described("By new name, the cluster that a new and empty one is like.", _map(_TEXT)),
    "without": _described("Clusters to delete, as karmadactl unjoin.", _ONE_OR_MORE),
    "cordon": _described("Clusters to cordon.", _ONE_OR_MORE),
    "uncordon": _described("Clusters to uncordon.", _ONE_OR_MORE),
    "ready": _described("By cluster, whether it is ready.", _map({"type": "boolean"})),
    "taint": _described("By cluster, key=value:Effect, or key- to remove it.", _OF_CLUSTER),
    "label": _described("By cluster, key=value, or key- to remove it.", _OF_CLUSTER),
    "room": _described("By cluster, what changes of what is free: cpu=+20,memory=-64Gi.", _OF_CLUSTER),
    "scale": _described("By workload, its replicas.", _map({"type": "integer", "minimum": 0})),
    "rebalance": _described("Workloads that a WorkloadRebalancer names; only in then.", _ONE_OR_MORE),
    "at": _described("The time that plugins see, as 2026-11-26T12:00:00Z.", _TEXT),
}

_EXPECTATION: Final[Mapping[str, Schema]] = {
    "placed": _described("Whether it has clusters.", {"type": "boolean"}),
    "clusters": _described(
        "Exactly these clusters with these replicas, or exactly these clusters.",
        {"oneOf": [_map({"type": "integer", "minimum": 0}), {**_TEXTS, "uniqueItems": True}]},
    ),
    "replicas": _described("The sum of the replicas of its clusters.", {"type": "integer", "minimum": 0}),
    "policy": _described("The policy that claims it, as KIND/[NS/]NAME, or none.", _TEXT),
    "notPlaced": _described(
        "It has no cluster, for this reason: NoClusterFit, Unschedulable, OtherScheduler, NotClaimed, ...",
        {"oneOf": [{"const": True}, _TEXT]},
    ),
    "causes": _described("explain names all of these causes; others may be there.", _TEXTS),
    "warnings": _described(
        "What explain warns of: none, or a part of the text of each warning.",
        {"oneOf": [{"const": "none"}, _TEXTS]},
    ),
    "type": _described("Why it was decided.", {"enum": [each.value for each in ScheduleType]}),
    "effect": _described(
        "What the step does to it, as plan calls it; only in then.",
        {"enum": [each.value for each in Effect if each.value not in _REFUSED]},
    ),
    "stops": _described("Replicas that stop on a cluster; only in then.", {"type": "integer", "minimum": 0}),
    "that": _described(
        "CEL expressions that are true. Variables: placed, clusters, before, result, workload.", _ONE_OR_MORE
    ),
}

_FLEET_CLUSTER: Final[Mapping[str, Schema]] = {
    "region": _described("spec.region.", _TEXT),
    "provider": _described("spec.provider.", _TEXT),
    "zones": _described("spec.zones.", _TEXTS),
    "labels": _described("Labels.", _map(_TEXT)),
    "taints": _described("Taints, as key=value:Effect.", _TEXTS),
    "ready": _described("Whether it is ready (default true).", {"type": "boolean"}),
    "room": _described(
        "What is free; without it, as much as anybody asks for.", _map({"type": ["string", "number"]})
    ),
    "apis": _described(
        "What it serves, as apps/v1/Deployment; without it, every kind of the workloads of the file.", _TEXTS
    ),
}

_DEFINITIONS: Final[Mapping[str, Schema]] = {
    "Fleet": _object(
        {
            "files": _described("Clusters as kubectl get clusters -o yaml writes them.", _TEXTS),
            "clusters": _described("Clusters by name, in short.", _map(_ref("FleetCluster"))),
        }
    ),
    "FleetCluster": _object(_FLEET_CLUSTER),
    "Size": _object(
        {"replicas": _described("How many.", {"type": "integer", "minimum": 0})},
        "replicas",
        additionalProperties={"type": ["string", "number"]},
    ),
    "Scheduler": _object(
        {
            "featureGates": _described("As --feature-gates.", _GATES),
            "decisionsOf": _described("As --decisions-of.", {"enum": list(RULES)}),
            "plugins": _described("As --plugins.", _TEXTS),
            "config": _described("As --config.", _TEXT),
            "pluginDirs": _described("As --plugin-dir. Their code runs.", _TEXTS),
            "names": _described("The schedulers that exist (default default-scheduler).", _TEXTS),
        }
    ),
    "ControllerManager": _object(
        {
            "noExecuteTaintEviction": _described(
                "As --enable-no-execute-taint-eviction.", {"type": "boolean"}
            ),
            "featureGates": _described(
                "Gates of karmada-controller-manager; those that are not here are as in scheduler.", _GATES
            ),
        }
    ),
    "Changes": _object(_CHANGES),
    "Expectation": _object(_EXPECTATION, minProperties=1),
    "Expectations": _described(
        "By workload: NS/NAME, NAME if it is cluster-scoped, NS/KIND/NAME if several have the name.",
        _map(_ref("Expectation")),
    ),
    "Step": _object({**_CHANGES, "expect": _ref("Expectations")}),
    "Case": _object(
        {
            "name": _described("Unique in the file.", {"type": "string", "minLength": 1}),
            "skip": _described("Why it is skipped.", _TEXT),
            "given": _described(
                "Changes of the state before the first decision.",
                {"oneOf": [_ref("Changes"), {"type": "array", "items": _ref("Changes")}]},
            ),
            "expect": _ref("Expectations"),
            "then": _described(
                "Events; each starts from the state that the one before leaves.",
                {"type": "array", "items": _ref("Step")},
            ),
        },
        "name",
        anyOf=[{"required": ["expect"]}, {"required": ["then"]}],
    ),
}

_FILE: Final[Mapping[str, Schema]] = {
    "apiVersion": {"const": API_VERSION},
    "kind": {"const": KIND},
    "name": _described("For reports (default: the path).", _TEXT),
    "fleet": _described("The clusters.", _ref("Fleet")),
    "policies": _described("Files and directories, relative to this file.", _TEXTS),
    "workloads": _described(
        "Files, directories, or manifests in place.",
        {"type": "array", "items": {"oneOf": [_TEXT, {"type": "object"}]}},
    ),
    "sizes": _described(
        "Replicas and requests of workloads whose kind needs Karmada's interpreter.", _map(_ref("Size"))
    ),
    "bindings": _described("Files with bindings that exist at the start.", _TEXTS),
    "scheduler": _described("The scheduler.", _ref("Scheduler")),
    "controllerManager": _described(
        "Flags of karmada-controller-manager that placements depend on.", _ref("ControllerManager")
    ),
    "cases": _described("The cases.", {"type": "array", "minItems": 1, "items": _ref("Case")}),
}

SCHEMA: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": KIND,
    **_object(_FILE, "apiVersion", "kind", "fleet", "cases"),
    "$defs": dict(_DEFINITIONS),
}


def keys_of(definition: str) -> tuple[str, ...]:
    """Return the keys of a definition, "" for those of a file."""
    found = SCHEMA if not definition else SCHEMA["$defs"][definition]
    return tuple(found["properties"])


WORDS: Final = tuple(_CHANGES)
"""The words of ``given`` and ``then``."""
