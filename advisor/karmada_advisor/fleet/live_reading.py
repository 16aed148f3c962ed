"""One reading of a live control plane, over one connection, with the verbs get and list only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from karmada_advisor.fleet.errors import LiveError
from karmada_advisor.fleet.files import as_binding, as_cluster, as_workload
from karmada_advisor.fleet.find_binding import BINDINGS, find_binding
from karmada_advisor.fleet.fleet import Fleet, NamesPriorityClass, parsed
from karmada_advisor.fleet.named_binding import NamedBinding, NoSuchBindingError, WorkloadName, workload_of
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.model import SchedulerShown, SchedulerStatus
from karmada_advisor.state.schedulers import schedulers_of, seen_in_bindings, seen_in_event
from karmada_advisor.state.stored import binding_key, condition_of, mapping, mappings, value_at
from karmada_pyscheduler.client import karmada
from karmada_pyscheduler.client.bindings_schema import DOCUMENTS
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.client.metadata import MetadataClient, ServedResource
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import KINDS, Binding
from karmada_scheduler.api_error import ApiError

PRIORITY_CLASSES: Final = karmada.Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
_POLICIES: Final = (karmada.PROPAGATION_POLICIES, karmada.CLUSTER_PROPAGATION_POLICIES)
FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500
LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
_LOOKED_AT: Final = 500
"""Objects of a list of which one page is enough."""
_ITEMS_SECONDS: Final = 10.0
_RIGHTS: Final = " (`status` shows the missing rights; a page with --auth=token answers who may list bindings of a namespace)"

Manifest = dict[str, Any]
T = TypeVar("T")


def read(
    plane: ControlPlane,
    work: Callable[[LiveReading], Awaitable[T]],
    *,
    subject: str = "the binding",
    names_subject: bool = True,
) -> T:
    """Return what is read over one connection.

    Args:
        plane: The control plane.
        work: Reads it.
        subject: What is read first, for messages.
        names_subject: Whether the message about a timeout says what was being read.

    Raises:
        LiveError: The control plane cannot be read.
    """

    async def read() -> T:
        # A quarter of a second, which files do not need.
        from karmada_pyscheduler.client.connection import connect

        try:
            connection = await connect(kubeconfig=plane.kubeconfig, overrides=plane.overrides, master="")
        except ConnectionConfigError as error:
            raise LiveError(str(error)) from error
        reading = LiveReading(connection, subject)
        try:
            async with asyncio.timeout(plane.timeout):
                return await work(reading)
        except TimeoutError:
            what = f" (reading {reading.subject})" if names_subject else ""
            text = f"{connection.server} has not answered within {plane.timeout:g} s{what}"
            raise LiveError(text) from None
        except ApiError as error:
            needs_right = error.code == FORBIDDEN and reading.subject != DOCUMENTS
            raise LiveError(f"{reading.subject}: {error}{_RIGHTS if needs_right else ''}") from error
        finally:
            await connection.close()

    return asyncio.run(read())


class LiveReading:
    """The objects as far as they have been read.

    Attributes:
        found: The objects.
        subject: What is being read, for messages.
        connection: To the control plane.
        metadata: Reads the metadata of objects.
    """

    def __init__(self, connection: Connection, subject: str) -> None:
        self.found = Fleet(connection.server, is_live=True)
        self.subject = subject
        self.metadata = MetadataClient(connection)
        self.connection = connection
        self._wanted: Mapping[str, Any] = {}
        self._first_warnings = 0

    def _warn_first(self, text: str) -> None:
        """Warn about Leases or Events: before the warnings about other objects."""
        self.found.warnings.insert(self._first_warnings, text)
        self._first_warnings += 1

    async def wanted(self, asked: NamedBinding) -> None:
        """Read the wanted binding, or the metadata of its workload."""
        self.found.asked = asked
        workload = workload_of(asked)
        try:
            self.found.asked, self._wanted = await find_binding(self.connection, asked)
            self._add_bindings([self._wanted])
        except ApiError as error:
            self.raise_if_not_served(karmada.RESOURCE_BINDINGS, error)
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
            self._wanted = template
            found = parsed([template], as_workload, self.found.problems)
            self.found.workloads = [manifest for manifest, _ in found]

    def _add_bindings(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        found = self.found
        found.add_bindings(parsed(manifests, as_binding, found.problems, found.unreadable))

    async def _template(self, workload: WorkloadName) -> Manifest | None:
        resource = ServedResource(workload.api_version, workload.plural, namespaced=True)
        found = await self.metadata.get(resource, workload.namespace, workload.name)
        if found is None:
            return None
        return {**found, "apiVersion": workload.api_version, "kind": workload.kind}

    async def clusters(self, *, may_lack: bool = False) -> None:
        """Read the clusters. With ``may_lack``, a refusal and a failure of the API server leave them unread."""
        try:
            manifests = await self.all_of(karmada.CLUSTERS)
        except ApiError as error:
            if may_lack and _leaves_others(error):
                return
            raise
        self.found.add_clusters(parsed(manifests, as_cluster, self.found.problems))

    def raise_if_not_served(self, resource: karmada.Resource, error: ApiError) -> None:
        if error.is_not_found:
            raise LiveError(str(karmada.not_served(self.connection.server, resource))) from error

    async def policies(self) -> None:
        """Read the policies. An explanation without them is still right, so an error is only a warning."""
        unknown = "; what the policies say beyond the binding is not known"
        found = [await self._all_or_warning(resource, unknown) for resource in _POLICIES]
        if None not in found:
            self.found.policies = [policy for policies in found for policy in policies or ()]

    async def quotas(self, *, of_settled: bool) -> None:
        """Read the quotas of the namespace of the wanted binding. An answer without them says so.

        Args:
            of_settled: Also if the last decision about the binding has succeeded, and nothing has changed since.
        """
        for binding in self.found.bindings:
            namespace, seen = binding.key.namespace, binding.status.scheduler_observed_generation
            is_settled = condition_of(binding).status == "True" and seen == binding.generation
            if namespace and (of_settled or not is_settled):
                found = await self._all_or_warning(karmada.FEDERATED_RESOURCE_QUOTAS, namespace=namespace)
                self.found.quotas = None if found is None else [*found]

    async def priority_classes(self, names_one: NamesPriorityClass) -> None:
        """Read which PriorityClasses exist if a missing one may be why the wanted workload has no binding."""
        has_binding = self.found.workloads is None
        if has_binding or not names_one(self.found.policies or (), self._wanted):
            return
        unknown = "; whether those that policies name exist is not known"
        found = await self._all_or_warning(PRIORITY_CLASSES, unknown)
        if found is not None:
            self.found.priority_classes = [str(mapping(each.get("metadata")).get("name")) for each in found]

    async def _all_or_warning(
        self, resource: karmada.Resource, unknown: str = "", *, namespace: str = ""
    ) -> list[Manifest] | None:
        """Return all objects of a kind; None, after a warning that ends with ``unknown``, if they cannot be read."""
        try:
            return await self.all_of(resource, namespace=namespace)
        except ApiError as error:
            self.found.warnings.append(f"{resource.plural}: {error}{unknown}")
            return None

    async def other_bindings(self, *, may_lack: bool = False) -> Fleet:
        """Read the bindings besides the wanted one, and return what was read; ``may_lack`` as for clusters."""
        known = {*(binding.key for binding in self.found.bindings), *self.found.unreadable}
        for resource in BINDINGS:
            try:
                listed = await self.all_of(resource)
            except ApiError as error:
                if (may_lack and _leaves_others(error)) or (known and error.code == FORBIDDEN):
                    continue
                raise
            self._add_bindings(manifest for manifest in listed if binding_key(manifest) not in known)
        return self.found

    async def schedulers(self, bindings: Sequence[Binding]) -> Fleet:
        """Read which schedulers exist, and of missing ones that bindings name what they have left; return what was read.

        An answer without that says so.
        """
        try:
            pages = karmada.list_pages(self.connection, LEASES_PATH)
            self.found.leases = [manifest async for page, _ in pages for manifest in page]
            self.found.at = datetime.now(UTC)
        except ApiError as error:
            self.found.no_leases = str(error)
            self._warn_first(f"leases: which schedulers exist is not known: {error}")
            return self.found
        known = schedulers_of(self.found.leases, now=self.found.at)
        known = known.with_seen(seen_in_bindings(bindings))
        seen = [*known.seen.values()]
        for name in dict.fromkeys(binding.spec.responsible_scheduler for binding in bindings):
            if known.of(name).status is SchedulerStatus.MISSING:
                seen += await self._seen(name)
        self.found.seen = seen
        return self.found

    async def _seen(self, name: str) -> list[SchedulerShown]:
        """Return a scheduler without a Lease if it has left an Event, or a condition on a binding."""
        try:
            query = {"fieldSelector": f"source={name}", "limit": "1"}
            if found := await self._items("/api/v1/events", query):
                return [seen_in_event(name, found[0])]
            for resource in BINDINGS:
                items = await self._items(resource.path, {"limit": str(_LOOKED_AT)})
                # Objects that cannot be read are reported where the binding is used.
                typed = map(resource.typed, items)
                bindings = [found for found, _ in parsed(typed, Binding.from_manifest, [])]
                if seen := [scheduler for scheduler in seen_in_bindings(bindings) if scheduler.name == name]:
                    return seen
        except ApiError as error:
            return [SchedulerShown(name, source=f"whether it has decided is not known: {error}")]
        return []

    async def events(self) -> None:
        """Read the Events of the wanted binding and of its template. An answer without them is still right."""
        metadata = mapping(self._wanted.get("metadata"))
        namespace, found = metadata.get("namespace") or "default", list[Mapping[str, Any]]()
        for uid in (metadata.get("uid"), value_at(self._wanted, "spec", "resource", "uid")):
            if not uid:
                continue
            query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(_LOOKED_AT)}
            try:
                found += await self._items(path_of("v1", "events", namespace=namespace), query)
            except ApiError as error:
                if not error.is_not_found:
                    self._warn_first(f"events: what controllers have reported is not known: {error}")
                break
        self.found.events = found

    async def whole(self, resource: ServedResource, template: Manifest) -> Manifest:
        """Return an object as a whole, or its metadata if it cannot be read; then there is a problem."""
        metadata = mapping(template.get("metadata"))
        namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
        try:
            path = resource.path_of(namespace, name)
            found = await self.connection.request("GET", path, timeout=_ITEMS_SECONDS)
        except ApiError as error:
            self.found.problems.append(f"{template.get('kind')} {namespace}/{name}: {error}")
            return template
        return {**template, **found}

    async def _items(self, path: str, query: dict[str, str]) -> list[Manifest]:
        found = await self.connection.request("GET", path, query=query, timeout=_ITEMS_SECONDS)
        return [dict(entry) for entry in mappings(mapping(found).get("items"))]

    async def all_of(self, resource: karmada.Resource, *, namespace: str = "") -> list[Manifest]:
        """Return all objects of a kind, of all namespaces or of one.

        Raises:
            ApiError: They cannot be read.
        """
        self.subject = resource.plural
        manifests: list[Manifest] = []
        try:
            async for page, _ in karmada.KarmadaClient(self.connection).list(resource, namespace=namespace):
                for item in page:
                    if problem := json_body.unreadable(item):
                        name = item.get("metadata", {}).get("name", "")
                        self.found.problems.append(f"{resource.kind} {name}: {problem}")
                        if resource.kind in KINDS:
                            self.found.unreadable[binding_key(resource.typed(item))] = problem
                    else:
                        manifests.append(resource.typed(item))
        except ApiError as error:
            self.found.coverage.refused[resource.kind] = str(error)
            raise
        if not namespace:
            self.found.coverage.whole.add(resource.kind)
        return manifests


def _leaves_others(error: ApiError) -> bool:
    """Return whether other kinds can be read after an error: it is a refusal, or a part of the API server is down."""
    return error.code == FORBIDDEN or error.code >= _SERVER_ERROR
