"""A member cluster: the fields that decisions read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Final, NamedTuple, TypeVar

import orjson

from karmada_scheduler.api import quantity
from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    integer_at,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_required_text,
    read_text,
    read_text_map,
    read_texts,
)
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.object_fields import ApiField, read_objects
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.api.well_known import Condition
from karmada_scheduler.structs import Struct, field

API_VERSION: Final = "cluster.karmada.io/v1alpha1"
KIND: Final = "Cluster"

READY: Final = "Ready"

ApiKinds = frozenset[tuple[str, str]]
"""Pairs of group version and kind."""

Read = TypeVar("Read")

_CACHED: Final = 512


class ResourceModel(NamedTuple):
    """One grade of nodes.

    Attributes:
        grade: Its number.
        minimums: Resource name to the least amount of such a node.
    """

    grade: int
    minimums: Mapping[str, Quantity]


class GradeCount(NamedTuple):
    """Number of free nodes of a grade.

    Attributes:
        grade: The number of the grade.
        nodes: Number of nodes.
    """

    grade: int
    nodes: Annotated[int, ApiField("count")]


class ResourceSummary(Struct, frozen=True):
    """Resources of a cluster: allocatable, allocated, and allocating.

    Attributes:
        allocatable: Resource name (``cpu``, ``memory``, ``pods``) to amount.
        allocated: Requests of running pods.
        allocating: Requests of pods that wait for a node.
        modelings: Free nodes by grade, if resource modeling is used.
    """

    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    allocated: Mapping[str, Quantity] = field(default_factory=dict)
    allocating: Mapping[str, Quantity] = field(default_factory=dict)
    modelings: tuple[GradeCount, ...] = ()

    @property
    def available(self) -> Mapping[str, Quantity]:
        """Amount of each allocatable resource that is neither allocated nor allocating."""
        return {name: self.left(name) for name in self.allocatable}

    def left(self, name: str) -> Quantity:
        """Return the amount that is left of a resource; negative if the cluster is over-allocated, 0 without the resource."""
        amount = self.allocatable.get(name)
        if amount is None:
            return quantity.ZERO
        for used in (self.allocated.get(name), self.allocating.get(name)):
            if used is not None:
                amount = amount - used
        return amount


class ClusterCondition(Condition, frozen=True):
    """One entry of ``status.conditions`` of a cluster; ``last_transition_time`` as it is stored, "" without one."""

    last_transition_time: str = ""


class Cluster(Struct, frozen=True):
    """A member cluster.

    Attributes:
        labels: Labels of the Cluster object; its annotations are not kept.
        deleting: Whether it has a deletion timestamp.
        provider: ``spec.provider``; empty if it is not set, like region and zones.
        zones: All zones with nodes of the cluster.
        sync_mode: ``Push`` or ``Pull``.
        taints: Taints; bindings that do not tolerate them are refused.
        resource_models: Grades of nodes, by size, if resource modeling is used.
        api_kinds: The kinds that it serves, as pairs: ``("apps/v1", "Deployment")``.
        conditions: ``condition("Ready")`` finds one.
        resource_summary: None until the cluster's status collector has reported.
        ready_nodes: ``status.nodeSummary.readyNum``; None if it is not known.
        unreadable_fields: Errors of quantities in the summary. A resource with an unreadable quantity counts as one
            that the cluster does not have.
    """

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    sync_mode: str = ""
    taints: tuple[Taint, ...] = ()
    resource_models: tuple[ResourceModel, ...] = ()
    api_kinds: ApiKinds = frozenset()
    conditions: tuple[ClusterCondition, ...] = ()
    resource_summary: ResourceSummary | None = None
    ready_nodes: int | None = None
    unreadable_fields: tuple[str, ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Cluster:
        """Read a Cluster of cluster.karmada.io/v1alpha1.

        Raises:
            ManifestError: A field is missing or of the wrong type.
        """
        metadata = read_mapping(manifest, "metadata", "")
        spec = read_mapping(manifest, "spec", "")
        status = read_mapping(manifest, "status", "")
        nodes = status.get("nodeSummary")
        resource_summary, unreadable_fields = _resource_summary(status)
        return cls(
            name=read_required_text(metadata, "name", "metadata"),
            uid=read_text(metadata, "uid", "metadata"),
            resource_version=read_text(metadata, "resourceVersion", "metadata"),
            generation=read_integer(metadata, "generation", "metadata"),
            labels=read_text_map(metadata, "labels", "metadata"),
            deleting=metadata.get("deletionTimestamp") is not None,
            provider=read_text(spec, "provider", "spec"),
            region=read_text(spec, "region", "spec"),
            zones=read_texts(spec, "zones", "spec"),
            sync_mode=read_text(spec, "syncMode", "spec"),
            taints=read_objects(Taint, spec, "taints", "spec"),
            resource_models=_resource_models(spec.get("resourceModels")),
            api_kinds=_api_kinds(status.get("apiEnablements")),
            conditions=read_objects(ClusterCondition, status, "conditions", "status"),
            resource_summary=resource_summary,
            ready_nodes=integer_at(nodes, "readyNum") if isinstance(nodes, Mapping) else None,
            unreadable_fields=unreadable_fields,
        )

    def condition(self, type_: str) -> ClusterCondition | None:
        """Return the condition of a type, None without one."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


def _once_per_content(read: Callable[[object], Read]) -> Callable[[object], Read]:
    """Cache a reader by content: many clusters have equal contents, and status reports do not change them."""

    @cached_by_content(entries=_CACHED, short=4096, long_bytes=8 * MEBI)
    def read_json(content: bytes) -> Read:
        return read(orjson.loads(content))

    def read_once(found: object) -> Read:
        try:
            content = orjson.dumps(found)
        except TypeError:
            return read(found)
        return read_json(content)

    return read_once


@_once_per_content
def _resource_models(found: object) -> tuple[ResourceModel, ...]:
    models = []
    for index, model in enumerate(read_mappings({"resourceModels": found}, "resourceModels", "spec")):
        path = f"spec.resourceModels[{index}]"
        minimums = {}
        for number, limits in enumerate(read_mappings(model, "ranges", path)):
            place = f"{path}.ranges[{number}]"
            minimums[read_text(limits, "name", place)] = quantity.read(limits.get("min"), f"{place}.min")
        models.append(ResourceModel(read_integer(model, "grade", path), minimums))
    return tuple(models)


@_once_per_content
def _api_kinds(found: object) -> ApiKinds:
    pairs = []
    for index, group in enumerate(read_mappings({"apiEnablements": found}, "apiEnablements", "status")):
        path = f"status.apiEnablements[{index}]"
        version = read_text(group, "groupVersion", path)
        pairs += [
            (version, read_text(kind, "kind", f"{path}.resources"))
            for kind in read_mappings(group, "resources", path)
        ]
    return frozenset(pairs)


def _resource_summary(status: Manifest) -> tuple[ResourceSummary | None, tuple[str, ...]]:
    """Return the summary, and the errors of unreadable quantities.

    An allocatable amount beyond our limits, such as ``1e20000``, counts as 0 or less in Go as well: the amount that is
    left is computed modulo 2**64.
    """
    summary = read_optional_mapping(status, "resourceSummary", "status")
    if summary is None:
        return None, ()
    path = "status.resourceSummary"
    found = {name: read_mapping(summary, name, path) for name in ("allocatable", "allocated", "allocating")}
    problems: dict[str, str] = {}
    try:
        lists = {name: quantity.read_list(amounts, f"{path}.{name}") for name, amounts in found.items()}
    except ManifestError:
        for name, amounts in found.items():
            problems |= _unreadable_quantities(amounts, f"{path}.{name}")
        lists = {
            name: quantity.read_list(
                {resource: amount for resource, amount in amounts.items() if resource not in problems},
                f"{path}.{name}",
            )
            for name, amounts in found.items()
        }
    modelings = read_objects(GradeCount, summary, "allocatableModelings", path)
    return ResourceSummary(modelings=modelings, **lists), tuple(problems.values())


def _unreadable_quantities(amounts: Manifest, path: str) -> dict[str, str]:
    """Return the error of each unreadable quantity, by resource name."""
    problems = {}
    for resource, amount in amounts.items():
        try:
            quantity.read(amount, f"{path}.{resource}")
        except ManifestError as problem:
            problems[resource] = str(problem)
    return problems
