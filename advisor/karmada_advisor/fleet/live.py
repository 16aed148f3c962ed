"""Reads manifests from a live control plane, with the verbs get and list only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from karmada_advisor.fleet.find_binding import names_of
from karmada_advisor.fleet.fleet import Fleet, NamesPriorityClass, no_priority_class
from karmada_advisor.fleet.live_reading import LiveReading, Manifest, read
from karmada_advisor.fleet.named_binding import NamedBinding
from karmada_advisor.fleet.source import ControlPlane
from karmada_pyscheduler.client.bindings_schema import DOCUMENTS, BindingsSchema
from karmada_pyscheduler.client.karmada import Resource
from karmada_pyscheduler.client.metadata import KindName, NotServedError, ServedResource
from karmada_scheduler.api.binding import Binding, ObjectReference
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct, field

INTERPRETER_CUSTOMIZATIONS: Final = Resource(
    "config.karmada.io", "v1alpha1", "resourceinterpretercustomizations", "ResourceInterpreterCustomization"
)
TAINT_POLICIES: Final = Resource(
    "policy.karmada.io", "v1alpha1", "clustertaintpolicies", "ClusterTaintPolicy"
)
MOST_WHOLE: Final = 50
"""Templates that a plan reads as a whole, because it needs their replicas."""
_ONE_BY_ONE: Final = 10
"""Workloads that are read one by one; more are listed by kind."""


def read_live(
    plane: ControlPlane,
    asked: NamedBinding | None = None,
    *,
    all_bindings: bool = False,
    may_lack: bool = False,
    names_priority_class: NamesPriorityClass = no_priority_class,
) -> Fleet:
    """Read the clusters, the policies, and bindings.

    Other bindings than the wanted one may be forbidden; then the objects say so.

    Args:
        plane: The control plane.
        asked: The wanted binding. If it names a workload that has no binding, the workload's metadata is read instead.
        all_bindings: Whether to list the bindings of all namespaces as well; then the wanted one comes first.
        may_lack: Whether clusters and bindings may stay unread, where the reader may not list them.
        names_priority_class: Whether a missing PriorityClass may be why a workload has no binding.

    Raises:
        LiveError: The control plane cannot be read.
        NoSuchBindingError: There is no such binding, and no such workload; or the name means two.
    """

    async def work(reading: LiveReading) -> Fleet:
        if asked is not None:
            await reading.wanted(asked)
        await reading.clusters(may_lack=may_lack)
        await reading.policies()
        await reading.quotas(of_settled=all_bindings)
        await reading.priority_classes(names_priority_class)
        if all_bindings:
            await reading.other_bindings(may_lack=may_lack)
        await reading.schedulers(reading.found.bindings)
        if asked is not None:
            await reading.events()
        return reading.found

    return read(plane, work)


def read_bindings(plane: ControlPlane) -> Fleet:
    """Read all bindings.

    Raises:
        LiveError: They cannot be read.
    """
    return read(plane, lambda reading: reading.other_bindings())


def read_schedulers(plane: ControlPlane, bindings: Sequence[Binding]) -> Fleet:
    """Read which schedulers exist, and nothing else.

    Raises:
        LiveError: The control plane cannot be read.
    """
    return read(plane, lambda reading: reading.schedulers(bindings), subject="leases")


class TemplatesRead(Struct):
    """The metadata of resource templates.

    Attributes:
        objects: With apiVersion, kind and metadata.
        kinds: Of which all templates were read.
        not_served: That the API server does not serve.
        problems: What could not be read.
        refused: Those of ``problems`` about kinds that are served.
    """

    objects: list[Manifest] = field(default_factory=list)
    kinds: list[KindName] = field(default_factory=list)
    not_served: list[KindName] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def read_templates(
    plane: ControlPlane,
    kinds: Iterable[KindName],
    *,
    is_whole: Callable[[Manifest], bool] = lambda _: False,
    is_kept: Callable[[Manifest], bool] = lambda _: True,
) -> TemplatesRead:
    """Read the metadata of all objects of some kinds, and a few objects as a whole.

    Args:
        plane: The control plane.
        kinds: Of resource templates.
        is_whole: Whether to read an object as a whole, by its metadata; at most ``MOST_WHOLE``.
        is_kept: Whether an object is returned, by its metadata.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: LiveReading) -> TemplatesRead:
        found, reads = TemplatesRead(), 0
        for kind in kinds:
            try:
                resource = await reading.metadata.discover(kind)
                async for page, _ in reading.metadata.list(resource):
                    for item in page:
                        template = _with_type(item, kind)
                        if reads < MOST_WHOLE and is_whole(template):
                            template, reads = await reading.whole(resource, template), reads + 1
                        if is_kept(template):
                            found.objects.append(template)
                found.kinds.append(kind)
            except ApiError as error:
                text = f"templates of kind {kind.kind}: {error}"
                found.problems.append(text)
                if isinstance(error, NotServedError) and error.is_not_found:
                    found.not_served.append(kind)
                else:
                    found.refused.append(text)
        return found

    return read(plane, work, names_subject=False)


def read_workloads(
    plane: ControlPlane, resources: Sequence[ObjectReference]
) -> tuple[list[Manifest], list[str]]:
    """Read the metadata of workloads: a few one by one, and many as lists of their kinds.

    Args:
        plane: The control plane.
        resources: The workloads.

    Returns:
        Fleet with apiVersion, kind and metadata, and what could not be read.

    Raises:
        LiveError: The control plane cannot be read.
    """
    if len(resources) > _ONE_BY_ONE:
        kinds = dict.fromkeys(KindName(resource.api_version, resource.kind) for resource in resources)
        templates = read_templates(plane, kinds)
        return templates.objects, templates.problems

    async def work(reading: LiveReading) -> tuple[list[Manifest], list[str]]:
        found: list[Manifest] = []
        for each in resources:
            kind = KindName(each.api_version, each.kind)
            try:
                served = await reading.metadata.discover(kind)
                item = await reading.metadata.get(served, each.namespace, each.name)
            except ApiError as error:
                reading.found.problems.append(f"{each.kind} {each.name}: {error}")
            else:
                found += [] if item is None else [_with_type(dict(item), kind)]
        return found, reading.found.problems

    return read(plane, work, names_subject=False)


def read_taint_policies(plane: ControlPlane) -> list[Manifest]:
    """Read all ClusterTaintPolicies.

    Raises:
        LiveError: They cannot be read.
    """
    return read(plane, lambda reading: reading.all_of(TAINT_POLICIES))


def read_bindings_version(plane: ControlPlane) -> str:
    """Return the version of Karmada whose bindings are served, such as 1.18; "unknown" if there is no document of bindings.

    Raises:
        LiveError: The documents cannot be read.
    """
    return read(plane, lambda reading: BindingsSchema(reading.connection).version(), subject=DOCUMENTS)


def read_names(plane: ControlPlane, resource: Resource) -> dict[str, list[str]]:
    """Read the names of all objects of a kind, by namespace; "" for objects without one.

    Args:
        plane: The control plane.
        resource: The kind.

    Raises:
        LiveError: The control plane cannot be read.
    """
    names = read(plane, lambda reading: names_of(reading.connection, resource), subject=resource.plural)
    found: dict[str, list[str]] = {}
    for namespace, name in names:
        found.setdefault(namespace, []).append(name)
    return found


def has_namespace(plane: ControlPlane, name: str) -> bool:
    """Return whether a namespace exists.

    Raises:
        LiveError: That cannot be read.
    """
    resource = ServedResource("v1", "namespaces", namespaced=False)
    found = read(plane, lambda reading: reading.metadata.get(resource, "", name), subject="namespaces")
    return found is not None


def read_all(plane: ControlPlane, resource: Resource) -> tuple[list[Manifest] | None, list[str]]:
    """Read all objects of a kind, of all namespaces.

    Args:
        plane: The control plane.
        resource: The kind.

    Returns:
        The objects, None if they may not be read; and what could not be read. Without the kind there is none.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: LiveReading) -> tuple[list[Manifest] | None, list[str]]:
        try:
            return await reading.all_of(resource), reading.found.problems
        except ApiError as error:
            return ([], []) if error.is_not_found else (None, [str(error)])

    return read(plane, work, names_subject=False)


def _with_type(item: Manifest, kind: KindName) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": item.get("metadata") or {}}
