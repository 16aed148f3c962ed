"""Karmada's resources in the API: their paths, lists in pages, and the two patches that a scheduler writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from karmada_pyscheduler.client.connection import JSON, MERGE_PATCH, Connection
from karmada_pyscheduler.client.http_connection import list_page
from karmada_pyscheduler.client.paths import group_path, path_of
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct

LIST_PAGE: Final = 250
"""Objects per page; a page of bindings takes some 4 MB decoded, and the next one is there meanwhile."""


async def list_pages(
    connection: Connection, path: str, *, accept: str = JSON
) -> AsyncGenerator[tuple[list[dict[str, Any]], str], None]:
    """Yield the items of a list page by page, each with the list's resourceVersion.

    Items that cannot be read, or have no name, are placeholders (``json_body.unreadable``).

    Raises:
        ApiError: As ``request``, and for an object that is not a list; 410 when the list took longer than the
            server keeps it.
    """
    next_page: asyncio.Task[Any] | None = _request_page(connection, path, accept)
    token = ""
    try:
        while next_page is not None:
            items, version, continued = list_page(await next_page, f"GET {path}")
            if continued and continued == token:
                raise ApiError(f"GET {path}: the list has a page that refers to itself as the next one")
            token = continued
            # The server prepares the next page while this one is processed.
            next_page = _request_page(connection, path, accept, token) if token else None
            yield [json_body.checked(item) for item in items], version
    finally:
        if next_page is not None:
            next_page.cancel()


async def served_resources(connection: Connection, api_version: str) -> list[dict[str, Any]]:
    """Return the resources that the API server serves of a version, as discovery has them; none if it is not served."""
    try:
        path = group_path(api_version)
        response = await connection.request("GET", path, timeout=10.0)
    except ApiError as error:
        if error.is_not_found:
            return []
        raise
    entries = response.get("resources")
    if not isinstance(entries, list):
        raise ApiError(f"GET {path}: expected an APIResourceList, it has no resources")
    return [entry for entry in entries if isinstance(entry, dict)]


def _request_page(connection: Connection, path: str, accept: str, token: str = "") -> asyncio.Task[Any]:
    query = {"limit": str(LIST_PAGE), "continue": token} if token else {"limit": str(LIST_PAGE)}
    request = connection.request("GET", path, query=query, timeout=120.0, accept=accept)
    return asyncio.create_task(request, name=f"list {path}")


class Resource(Struct, frozen=True, order=True):
    """A watched kind."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """The group and version, as in manifests."""
        return f"{self.group}/{self.version}"

    @property
    def path(self) -> str:
        """The path that lists all objects, of all namespaces."""
        return path_of(self.api_version, self.plural)

    def typed(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object with its apiVersion and kind, which the API server leaves out of the items of a list."""
        return {**item, "apiVersion": self.api_version, "kind": self.kind}


_of_work: Final = partial(Resource, "work.karmada.io", "v1alpha2")
_of_policies: Final = partial(Resource, "policy.karmada.io", "v1alpha1")
RESOURCE_BINDINGS: Final = _of_work("resourcebindings", RESOURCE_BINDING)
CLUSTER_RESOURCE_BINDINGS: Final = _of_work("clusterresourcebindings", CLUSTER_RESOURCE_BINDING)
PROPAGATION_POLICIES: Final = _of_policies("propagationpolicies", "PropagationPolicy")
CLUSTER_PROPAGATION_POLICIES: Final = _of_policies("clusterpropagationpolicies", "ClusterPropagationPolicy")
FEDERATED_RESOURCE_QUOTAS: Final = _of_policies("federatedresourcequotas", "FederatedResourceQuota")
CLUSTERS: Final = Resource("cluster.karmada.io", "v1alpha1", "clusters", "Cluster")

WATCHED: Final = (
    CLUSTERS,
    PROPAGATION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    CLUSTER_RESOURCE_BINDINGS,
)


def not_served(server: str, resource: Resource) -> ApiError:
    """Return the error about a kind that a server does not serve, with what to do."""
    what = f"{server} does not serve {resource.plural}.{resource.group}/{resource.version}"
    install = "its CRDs are missing: kubectl apply --server-side -R -f charts/karmada/_crds/bases of Karmada's repository"
    if resource == CLUSTERS:
        install = (
            "karmada-aggregated-apiserver, which serves them, is not installed: karmadactl init does that"
        )
    hint = f"is this the Karmada API server? (kubeconfig, context) If it is, {install}"
    return ApiError(f"{what}: {hint}", code=404)


def _path(key: BindingKey, subresource: str = "") -> str:
    resource = RESOURCE_BINDINGS if key.kind == RESOURCE_BINDING else CLUSTER_RESOURCE_BINDINGS
    return path_of(
        resource.api_version, resource.plural, key.name, namespace=key.namespace, subresource=subresource
    )


class KarmadaClient:
    """Reads and writes Karmada's objects; every write has the resourceVersion of its base."""

    def __init__(self, connection: Connection) -> None:
        """Use a connection, which its owner closes."""
        self._connection = connection

    async def list(
        self, resource: Resource, *, namespace: str = ""
    ) -> AsyncGenerator[tuple[list[dict[str, Any]], str], None]:
        """Yield all objects of a kind, of all namespaces or of one, a page at a time, with the list's resourceVersion."""
        path = path_of(resource.api_version, resource.plural, namespace=namespace)
        try:
            async for page in list_pages(self._connection, path):
                yield page
        except ApiError as error:
            if error.is_not_found:
                raise not_served(self._connection.server, resource) from error
            raise

    async def newest_version(self, resource: Resource) -> str:
        """Return the resourceVersion that a list of a kind has now."""
        return (await self.count(resource))[1]

    async def count(self, resource: Resource) -> tuple[int, str]:
        """Return the number of objects of a kind now, and the resourceVersion of their list."""
        response = await self._connection.request("GET", resource.path, query={"limit": "1"}, timeout=10.0)
        try:
            metadata = response["metadata"]
            rest = metadata.get("remainingItemCount") or 0
            return len(response.get("items") or ()) + int(rest), str(metadata["resourceVersion"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ApiError(f"the response to GET {resource.path} is not a list: {error!r}") from error

    async def require_served(self, resource: Resource) -> None:
        """Raise ApiError unless the API server serves a kind."""
        entries = await served_resources(self._connection, resource.api_version)
        if not any(entry.get("name") == resource.plural for entry in entries):
            raise not_served(self._connection.server, resource)

    async def get_service(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Read a Service of the Karmada API server, None if there is none."""
        try:
            path = path_of("v1", "services", name, namespace=namespace)
            return await self._connection.request("GET", path, timeout=10.0)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def get_cluster(self, name: str) -> dict[str, Any] | None:
        """Read a Cluster, None if there is none of this name; ApiError if the API server does not say so."""
        try:
            path = path_of(CLUSTERS.api_version, CLUSTERS.plural, name)
            response = await self._connection.request("GET", path, timeout=10.0)
        except ApiError as error:
            if error.is_object_not_found(name):
                return None
            raise
        found = json_body.checked(response)
        if json_body.unreadable(found) is None and found["metadata"]["name"] != name:
            raise ApiError(f"the response to GET {path} is another object: {found['metadata']['name']}")
        return found

    async def get_binding(self, key: BindingKey) -> dict[str, Any]:
        """Read a binding from the API server."""
        return _checked(key, await self._connection.request("GET", _path(key)))

    def patch_result(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        annotations: Mapping[str, str | None],
        clusters: Sequence[Mapping[str, Any]] | None,
        tasks: Sequence[Mapping[str, Any]] | None = None,
        before_send: Callable[[], None] = lambda: None,
    ) -> Awaitable[dict[str, Any]]:
        """Write a scheduling result: annotations and ``spec.clusters`` in one merge patch.

        Args:
            key: The binding.
            resource_version: The version that was scheduled; the server refuses the patch if the binding is newer.
            annotations: Annotations to set; None removes one, others stay.
            clusters: The complete new list; an empty one removes the field, None leaves it as it is.
            tasks: The graceful eviction tasks, in the same way.
            before_send: As for ``Connection.request``.

        Returns:
            The binding as stored.
        """
        metadata: dict[str, Any] = {"resourceVersion": resource_version}
        if annotations:
            metadata["annotations"] = dict(annotations)
        lists = {"clusters": clusters, "gracefulEvictionTasks": tasks}
        spec = {name: list(items) or None for name, items in lists.items() if items is not None}
        return self._patch(key, {"metadata": metadata} | ({"spec": spec} if spec else {}), before_send)

    def patch_spec(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        spec: Mapping[str, Any],
        before_send: Callable[[], None] = lambda: None,
    ) -> Awaitable[dict[str, Any]]:
        """Merge fields into a binding's spec, as ``patch_result``; None removes one. Return the binding as stored."""
        body = {"metadata": {"resourceVersion": resource_version}, "spec": dict(spec)}
        return self._patch(key, body, before_send)

    def patch_status(
        self,
        key: BindingKey,
        *,
        resource_version: str,
        status: Mapping[str, Any],
        before_send: Callable[[], None] = lambda: None,
    ) -> Awaitable[dict[str, Any]]:
        """Merge fields into a binding's status, as ``patch_result``; lists are replaced. Return the binding as stored."""
        body = {"metadata": {"resourceVersion": resource_version}, "status": dict(status)}
        return self._patch(key, body, before_send, "status")

    async def _patch(
        self, key: BindingKey, body: Any, before_send: Callable[[], None], subresource: str = ""
    ) -> dict[str, Any]:
        path = _path(key, subresource)
        response = await self._connection.request(
            "PATCH", path, body=body, content_type=MERGE_PATCH, before_send=before_send
        )
        return _checked(key, response)


def _checked(key: BindingKey, response: dict[str, Any]) -> dict[str, Any]:
    """Return the response if it is the binding; ApiError for any other object."""
    found = json_body.checked(response)
    if problem := json_body.unreadable(found):
        raise ApiError(f"the response is not {key.display}: {problem}")
    metadata = found["metadata"]
    if metadata["name"] != key.name or (metadata.get("namespace") or "") != key.namespace:
        raise ApiError(
            f"the response is not {key.display}, but {metadata.get('namespace') or ''}/{metadata['name']}"
        )
    if not metadata.get("resourceVersion"):
        raise ApiError(f"the response is not {key.display}: metadata.resourceVersion: is missing")
    return found
