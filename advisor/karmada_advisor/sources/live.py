"""Reads manifests from a live control plane, with the verbs get and list only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from karmada_advisor.explain.policies import TemplateHead, priority_class_of
from karmada_advisor.sources.bindings import NamedBinding, NoSuchBindingError, WorkloadName, workload_of
from karmada_advisor.sources.control_plane import ControlPlane
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.find_binding import find_binding, names_of
from karmada_advisor.state.model import SchedulerShown, SchedulerStatus
from karmada_advisor.state.schedulers import schedulers_of, seen_in_bindings, seen_in_event
from karmada_advisor.state.stored import mapping, mappings
from karmada_scheduler.api.binding import Binding, ObjectReference
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.bindings_schema import DOCUMENTS, BindingsSchema
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.identity import ConnectionConfigError
from karmada_scheduler.client.karmada import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    Resource,
    list_pages,
)
from karmada_scheduler.client.metadata import KindName, MetadataClient, NotServedError, ServedResource
from karmada_scheduler.core.condition import QUOTA_EXCEEDED

TIMEOUT_SECONDS: Final = 60.0

_BINDINGS: Final = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)
_TAINT_POLICIES: Final = Resource(
    "policy.karmada.io", "v1alpha1", "clustertaintpolicies", "ClusterTaintPolicy"
)
_PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
_POLICIES: Final = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
_FORBIDDEN: Final = 403
LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
_LOOKED_AT: Final = 500
"""Objects of a list of which one page is enough."""
_ITEMS_SECONDS: Final = 10.0
_ONE_BY_ONE: Final = 10
"""Workloads that are read one by one; more are listed by kind."""
_WATCH_SECONDS: Final = 5.0
"""How long the API server may take to accept or refuse a watch."""
_HINT: Final = "is this the Karmada API server? (--kubeconfig, --context)"

Manifest = dict[str, Any]
T = TypeVar("T")


class LiveError(NoAnswerError):
    """The control plane gives no answer; the text says why, and what to do."""


@dataclass(slots=True)
class LiveContents:
    """What was read.

    Attributes:
        server: The URL of the API server.
        asked: What names the wanted binding without doubt; None if none is wanted.
        templates: The metadata of the wanted workload, if it has no binding.
        quotas: The FederatedResourceQuotas of the wanted binding's namespace if a quota has refused it; None if they were
            not read.
        priority_classes: The names of the PriorityClasses if the wanted workload has no binding, and the policy that claims
            it names one; None if they were not read.
        problems: What could not be read without ending the command: single objects, and policies.
        unlisted: Why bindings other than the wanted one could not be listed, one line per kind.
        leases: Of Karmada's system namespace; None if they could not be read.
        no_leases: Why not; "" if they were read.
        at: When they were read; None if they were not.
        seen: The schedulers without a Lease that have left something.
        events: Of the wanted binding and its template.
        no_events: Why there are none; "" if they were read.
    """

    server: str
    asked: NamedBinding | None = None
    clusters: list[Manifest] = field(default_factory=list)
    bindings: list[Manifest] = field(default_factory=list)
    templates: list[Manifest] = field(default_factory=list)
    policies: list[Manifest] = field(default_factory=list)
    quotas: list[Manifest] | None = None
    priority_classes: list[str] | None = None
    problems: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    leases: list[Manifest] | None = None
    no_leases: str = ""
    at: datetime | None = None
    seen: list[SchedulerShown] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    no_events: str = ""


def read_live(
    plane: ControlPlane,
    asked: NamedBinding | None = None,
    *,
    all_bindings: bool = False,
    timeout: float = TIMEOUT_SECONDS,
) -> LiveContents:
    """Read the clusters, the policies, and bindings.

    Other bindings than the wanted one may be forbidden; then the contents say so.

    Args:
        plane: The control plane.
        asked: The wanted binding. If it names a workload that has no binding, the workload's metadata is read instead.
        all_bindings: Whether to list the bindings of all namespaces as well; then the wanted one comes first.
        timeout: Seconds for everything.

    Raises:
        LiveError: The control plane cannot be read.
        NoSuchBindingError: There is no such binding, and no such workload; or the name means two.
    """

    async def work(reading: _Reading) -> LiveContents:
        if asked is not None:
            await reading.wanted(asked)
        await reading.clusters()
        await reading.policies()
        await reading.quotas()
        await reading.priority_classes()
        if all_bindings:
            await reading.other_bindings()
        await reading.schedulers(list(_readable(reading.found.bindings)))
        if asked is not None:
            await reading.events()
        return reading.found

    return _read(plane, timeout, work)


def read_bindings(plane: ControlPlane, *, timeout: float = TIMEOUT_SECONDS) -> LiveContents:
    """Read all bindings.

    Raises:
        LiveError: They cannot be read.
    """

    async def work(reading: _Reading) -> LiveContents:
        await reading.other_bindings()
        return reading.found

    return _read(plane, timeout, work)


def read_schedulers(
    plane: ControlPlane, bindings: Sequence[Binding], *, timeout: float = TIMEOUT_SECONDS
) -> LiveContents:
    """Read which schedulers exist, and nothing else.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: _Reading) -> LiveContents:
        reading.subject = "leases"
        await reading.schedulers(bindings)
        return reading.found

    return _read(plane, timeout, work)


class KindsFound(NamedTuple):
    """What ``count_objects`` finds out.

    Attributes:
        server: The URL of the API server.
        totals: About how many objects there are, by kind; 0 where the API server does not say.
        unwatched: Why one of the kinds may not be watched; "" if all may.
    """

    server: str
    totals: dict[str, int]
    unwatched: str


def count_objects(
    plane: ControlPlane, resources: Sequence[Resource], *, timeout: float = TIMEOUT_SECONDS
) -> KindsFound:
    """Find out whether kinds can be listed and watched, and about how many objects they have.

    Args:
        plane: The control plane.
        resources: The kinds.
        timeout: Seconds for everything.

    Raises:
        LiveError: A kind cannot be listed.
    """

    async def work(reading: _Reading) -> KindsFound:
        counts = {each.kind: await reading.count(each) for each in resources}
        refusals = [
            await reading.refusal_to_watch(each, version)
            for each, (_, version) in zip(resources, counts.values(), strict=True)
        ]
        totals = {kind: count for kind, (count, _) in counts.items()}
        return KindsFound(reading.connection.server, totals, next(filter(None, refusals), ""))

    return _read(plane, timeout, work)


@dataclass(slots=True)
class TemplatesRead:
    """The metadata of resource templates.

    Attributes:
        objects: With apiVersion, kind and metadata.
        kinds: Of which all templates were read.
        not_served: That the API server does not serve.
        problems: What could not be read.
    """

    objects: list[Manifest] = field(default_factory=list)
    kinds: list[KindName] = field(default_factory=list)
    not_served: list[KindName] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_templates(
    plane: ControlPlane, kinds: Iterable[KindName], *, timeout: float = TIMEOUT_SECONDS
) -> TemplatesRead:
    """Read the metadata of all objects of some kinds.

    Args:
        plane: The control plane.
        kinds: Of resource templates.
        timeout: Seconds for everything.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: _Reading) -> TemplatesRead:
        found = TemplatesRead()
        for kind in kinds:
            try:
                resource = await reading.metadata.discover(kind)
                async for page, _ in reading.metadata.list(resource):
                    found.objects += [_with_type(each, kind) for each in page]
                found.kinds.append(kind)
            except ApiError as error:
                if isinstance(error, NotServedError) and error.is_not_found:
                    found.not_served.append(kind)
                found.problems.append(f"templates of kind {kind.kind}: {error}")
        return found

    return _read(plane, timeout, work, names_subject=False)


def read_workloads(
    plane: ControlPlane, resources: Sequence[ObjectReference], *, timeout: float = TIMEOUT_SECONDS
) -> tuple[list[Manifest], list[str]]:
    """Read the metadata of workloads: a few one by one, and many as lists of their kinds.

    Args:
        plane: The control plane.
        resources: The workloads.
        timeout: Seconds for everything.

    Returns:
        Objects with apiVersion, kind and metadata, and what could not be read.

    Raises:
        LiveError: The control plane cannot be read.
    """
    if len(resources) > _ONE_BY_ONE:
        kinds = dict.fromkeys(KindName(each.api_version, each.kind) for each in resources)
        read = read_templates(plane, kinds, timeout=timeout)
        return read.objects, read.problems

    async def work(reading: _Reading) -> tuple[list[Manifest], list[str]]:
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

    return _read(plane, timeout, work, names_subject=False)


def read_taint_policies(plane: ControlPlane, *, timeout: float = TIMEOUT_SECONDS) -> list[Manifest]:
    """Read all ClusterTaintPolicies.

    Raises:
        LiveError: They cannot be read.
    """

    async def work(reading: _Reading) -> list[Manifest]:
        return await reading.all_of(_TAINT_POLICIES)

    return _read(plane, timeout, work, names_subject=True)


def read_bindings_version(plane: ControlPlane, *, timeout: float = TIMEOUT_SECONDS) -> str:
    """Return the version of Karmada whose bindings are served, such as 1.18; "unknown" if there is no document of bindings.

    Raises:
        LiveError: The documents cannot be read.
    """

    async def work(reading: _Reading) -> str:
        reading.subject = DOCUMENTS
        return await BindingsSchema(reading.connection).version()

    return _read(plane, timeout, work)


def read_names(plane: ControlPlane, resource: Resource, *, timeout: float) -> dict[str, list[str]]:
    """Read the names of all objects of a kind, by namespace; "" for objects without one.

    Args:
        plane: The control plane.
        resource: The kind.
        timeout: Seconds for everything.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: _Reading) -> dict[str, list[str]]:
        reading.subject = resource.plural
        found: dict[str, list[str]] = {}
        for namespace, name in await names_of(reading.connection, resource):
            found.setdefault(namespace, []).append(name)
        return found

    return _read(plane, timeout, work)


def read_quotas(
    plane: ControlPlane, *, timeout: float = TIMEOUT_SECONDS
) -> tuple[list[Manifest] | None, list[str]]:
    """Read the FederatedResourceQuotas of all namespaces.

    Args:
        plane: The control plane.
        timeout: Seconds for everything.

    Returns:
        The quotas, None if they may not be read; and what could not be read.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def work(reading: _Reading) -> tuple[list[Manifest] | None, list[str]]:
        try:
            return await reading.all_of(FEDERATED_RESOURCE_QUOTAS), reading.found.problems
        except ApiError as error:
            return ([], []) if error.is_not_found else (None, [str(error)])

    return _read(plane, timeout, work, names_subject=False)


def _with_type(item: Manifest, kind: KindName) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": item.get("metadata") or {}}


def _read(
    plane: ControlPlane,
    timeout: float,
    work: Callable[[_Reading], Awaitable[T]],
    *,
    names_subject: bool = True,
) -> T:
    """Return what is read over one connection.

    Args:
        plane: The control plane.
        timeout: Seconds for everything.
        work: Reads it.
        names_subject: Whether the message about a timeout says what was being read.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def read() -> T:
        from karmada_scheduler.client.connect import connect  # a quarter of a second, which files do not need

        try:
            connection = await connect(kubeconfig=plane.kubeconfig, overrides=plane.overrides, master="")
        except ConnectionConfigError as error:
            raise LiveError(str(error)) from error
        reading = _Reading(connection)
        try:
            async with asyncio.timeout(timeout):
                return await work(reading)
        except TimeoutError:
            what = f" (reading {reading.subject})" if names_subject else ""
            raise LiveError(f"{connection.server} has not answered within {timeout:g} s{what}") from None
        except ApiError as error:
            raise LiveError(f"{reading.subject}: {error}") from error
        finally:
            await connection.close()

    return asyncio.run(read())


class _Reading:
    """The contents as far as they have been read.

    Attributes:
        subject: What is being read, for messages.
        connection: To the control plane.
        metadata: Reads the metadata of objects.
    """

    def __init__(self, connection: Connection) -> None:
        self.found = LiveContents(connection.server)
        self.subject = "the binding"
        self.metadata = MetadataClient(connection)
        self.connection = connection

    async def wanted(self, asked: NamedBinding) -> None:
        """Read the wanted binding, or the metadata of its workload."""
        self.found.asked = asked
        workload = workload_of(asked)
        try:
            self.found.asked, manifest = await find_binding(self.connection, asked)
            self.found.bindings.append(manifest)
        except ApiError as error:
            self._raise_if_not_served(RESOURCE_BINDINGS, error)
            raise
        except NoSuchBindingError as unknown:
            if workload is None:
                raise
            try:
                template = await self._template(workload)
            except ApiError as error:
                text = f"{unknown}. Whether a policy matches the workload is not known, because it cannot be read: {error}"
                raise NoSuchBindingError(text) from error
            if template is None:
                raise
            self.found.templates.append(template)

    async def _template(self, workload: WorkloadName) -> Manifest | None:
        resource = ServedResource(workload.api_version, workload.plural, namespaced=True)
        found = await self.metadata.get(resource, workload.namespace, workload.name)
        if found is None:
            return None
        return {**found, "apiVersion": workload.api_version, "kind": workload.kind}

    async def clusters(self) -> None:
        try:
            self.found.clusters += await self.all_of(CLUSTERS)
        except ApiError as error:
            self._raise_if_not_served(CLUSTERS, error)
            raise

    def _raise_if_not_served(self, resource: Resource, error: ApiError) -> None:
        if error.is_not_found:
            text = f"{self.connection.server} does not serve {resource.group}/{resource.version}: {_HINT}"
            raise LiveError(text) from error

    async def policies(self) -> None:
        """Read the policies. An explanation without them is still right, so an error is only a problem."""
        for resource in _POLICIES:
            try:
                self.found.policies += await self.all_of(resource)
            except ApiError as error:
                unknown = "what the policies say beyond the binding is not known"
                self.found.problems.append(f"{resource.plural}: {error}; {unknown}")

    async def quotas(self) -> None:
        """Read the quotas that concern the wanted binding, if one has refused it. An answer without them is still right."""
        refused = [each for each in self.found.bindings if _is_refused_by_quota(each)]
        for each in refused[:1]:
            try:
                self.found.quotas = await self.all_of(
                    FEDERATED_RESOURCE_QUOTAS, namespace=str(each["metadata"].get("namespace") or "")
                )
            except ApiError as error:
                self.found.problems.append(f"{FEDERATED_RESOURCE_QUOTAS.plural}: {error}")

    async def priority_classes(self) -> None:
        """Read which PriorityClasses exist if a missing one may be why the wanted workload has no binding."""
        templates = map(_template_head, self.found.templates)
        if not any(priority_class_of(self.found.policies, each) for each in templates):
            return
        try:
            found = await self.all_of(_PRIORITY_CLASSES)
        except ApiError as error:
            unknown = "whether those that policies name exist is not known"
            self.found.problems.append(f"{_PRIORITY_CLASSES.plural}: {error}; {unknown}")
        else:
            self.found.priority_classes = [str(mapping(each.get("metadata")).get("name")) for each in found]

    async def other_bindings(self) -> None:
        known = {_identity(each) for each in self.found.bindings}
        for resource in _BINDINGS:
            try:
                listed = await self.all_of(resource)
            except ApiError as error:
                self._raise_if_not_served(resource, error)
                if not known or error.code != _FORBIDDEN:
                    raise
                self.found.unlisted.append(str(error))
                continue
            self.found.bindings += [each for each in listed if _identity(each) not in known]

    async def schedulers(self, bindings: Sequence[Binding]) -> None:
        """Read which schedulers exist, and of missing ones that bindings name what they have left.

        An answer without that says so.
        """
        try:
            pages = list_pages(self.connection, LEASES_PATH)
            self.found.leases = [each async for page, _ in pages for each in page]
            self.found.at = datetime.now(UTC)
        except ApiError as error:
            self.found.no_leases = str(error)
            return
        known = schedulers_of(self.found.leases, now=self.found.at)
        known = known.with_seen(seen_in_bindings(bindings))
        self.found.seen += known.seen.values()
        for name in dict.fromkeys(each.spec.responsible_scheduler for each in bindings):
            if known.of(name).status is SchedulerStatus.MISSING:
                self.found.seen += await self._seen(name)

    async def _seen(self, name: str) -> list[SchedulerShown]:
        """Return a scheduler without a Lease if it has left an Event, or a condition on a binding."""
        try:
            query = {"fieldSelector": f"source={name}", "limit": "1"}
            found = await self._items("/api/v1/events", query)
            if found:
                return [seen_in_event(name, found[0])]
            for resource in _BINDINGS:
                items = await self._items(resource.path, {"limit": str(_LOOKED_AT)})
                typed = [
                    {**each, "apiVersion": f"{resource.group}/{resource.version}", "kind": resource.kind}
                    for each in items
                ]
                if seen := [each for each in seen_in_bindings(_readable(typed)) if each.name == name]:
                    return seen
        except ApiError as error:
            return [SchedulerShown(name, source=f"whether it has decided is not known: {error}")]
        return []

    async def events(self) -> None:
        """Read the Events of the wanted binding and of its template. An answer without them is still right."""
        for wanted in (*self.found.bindings, *self.found.templates)[:1]:
            resource = mapping(mapping(wanted.get("spec")).get("resource"))
            metadata = mapping(wanted.get("metadata"))
            for uid in (metadata.get("uid"), resource.get("uid")):
                if not uid:
                    continue
                namespace = metadata.get("namespace") or "default"
                query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(_LOOKED_AT)}
                try:
                    self.found.events += await self._items(f"/api/v1/namespaces/{namespace}/events", query)
                except ApiError as error:
                    self.found.no_events = "" if error.is_not_found else str(error)
                    return

    async def _items(self, path: str, query: dict[str, str]) -> list[Manifest]:
        found = await self.connection.request("GET", path, query=query, timeout=_ITEMS_SECONDS)
        return [dict(each) for each in mappings(mapping(found).get("items"))]

    async def count(self, resource: Resource) -> tuple[int, str]:
        """Return about how many objects of a kind there are, and the version of their list."""
        self.subject = resource.plural
        try:
            found = mapping(await self.connection.request("GET", resource.path, query={"limit": "1"}))
        except ApiError as error:
            self._raise_if_not_served(resource, error)
            raise
        metadata = mapping(found.get("metadata"))
        rest = metadata.get("remainingItemCount")
        count = len(mappings(found.get("items"))) + (rest if isinstance(rest, int) else 0)
        return count, str(metadata.get("resourceVersion") or "")

    async def refusal_to_watch(self, resource: Resource, version: str) -> str:
        """Return why a kind may not be watched, "" if the API server accepts the request or gives no clear answer."""
        accepted = asyncio.Event()
        target = f"{resource.path}?watch=true&timeoutSeconds=1&resourceVersion={version}"

        async def follow() -> None:
            async with aclosing(self.connection.watch(target, accepted.set)) as lines:
                async for _ in lines:
                    return

        tasks = [asyncio.create_task(follow()), asyncio.create_task(accepted.wait())]
        try:
            await asyncio.wait(tasks, timeout=_WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in tasks:
                each.cancel()
            [result, _] = await asyncio.gather(*tasks, return_exceptions=True)
        is_forbidden = isinstance(result, ApiError) and result.code == _FORBIDDEN
        return f"{resource.plural}: {result}" if is_forbidden else ""

    async def all_of(self, resource: Resource, *, namespace: str = "") -> list[Manifest]:
        """Return all objects of a kind, of all namespaces or of one.

        Raises:
            ApiError: They cannot be read.
        """
        self.subject = resource.plural
        path = (
            resource.path
            if not namespace
            else f"{resource.group_path}/namespaces/{namespace}/{resource.plural}"
        )
        manifests: list[Manifest] = []
        api_version = f"{resource.group}/{resource.version}"
        async for page, _ in list_pages(self.connection, path):
            for item in page:
                if problem := json_body.unreadable(item):
                    name = item.get("metadata", {}).get("name", "")
                    self.found.problems.append(f"{resource.kind} {name}: {problem}")
                else:
                    # The API server leaves both out of the items of a list.
                    manifests.append({**item, "apiVersion": api_version, "kind": resource.kind})
        return manifests


def _template_head(manifest: Manifest) -> TemplateHead:
    metadata = mapping(manifest.get("metadata"))
    namespace, name = (str(metadata.get(field) or "") for field in ("namespace", "name"))
    labels = mapping(metadata.get("labels"))
    return TemplateHead(manifest["apiVersion"], manifest["kind"], namespace, name, labels)


def _readable(manifests: Iterable[Manifest]) -> Iterator[Binding]:
    for each in manifests:
        try:
            yield Binding.from_manifest(each)
        except ManifestError:
            continue  # reported where the binding is used


def _is_refused_by_quota(manifest: Manifest) -> bool:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return any(
        each.get("type") == SCHEDULED_CONDITION and each.get("reason") == QUOTA_EXCEEDED
        for each in conditions
    )


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace") or "", metadata["name"]
