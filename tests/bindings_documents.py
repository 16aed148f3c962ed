"""OpenAPI documents of bindings, as those of Karmada's versions differ."""

from __future__ import annotations

from typing import Any

OF_1_16: dict[str, Any] = {"replicas": {"type": "integer"}, "components": {"type": "array"}}
OF_1_17 = OF_1_16 | {"workloadAffinityGroups": {"type": "object"}}


def _listed(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"properties": properties}}


OF_1_18 = OF_1_17 | {
    "placement": {"properties": {"clusterAffinities": _listed(overflowAffinities={"type": "array"})}}
}
OF_1_19 = OF_1_18 | {"clusters": _listed(name={"type": "string"}, components={"type": "array"})}


def document(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a version; ``components`` is also a field of every version's spec."""
    binding = {"properties": {"spec": {"properties": spec}}}
    return {"components": {"schemas": {"io.karmada.work.v1alpha2.ResourceBinding": binding, "other": {}}}}
