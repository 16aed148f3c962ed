"""A client of the model for its tests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from tools.apiserver_model import ApiServerModel, FrontEnd, Object, Response, Watch, request_of

BINDINGS: Final = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings"
ALL_BINDINGS: Final = "/apis/work.karmada.io/v1alpha2/resourcebindings"
WEB: Final = f"{BINDINGS}/web"
CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS: Final = "/api/v1/namespaces/default/events"
NOW: Final = datetime(2026, 5, 4, 3, 2, 1, 999_000, tzinfo=UTC)
METADATA: Final = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
METADATA_LIST: Final = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


def new_model(**options: Any) -> ApiServerModel:
    """Return an empty model at revision 100, whose uids are uid-1, uid-2, ..."""
    numbers = itertools.count(1)
    return ApiServerModel(lambda: NOW, lambda: f"uid-{next(numbers)}", **{"revision": 100, **options})


def binding(name: str = "web", *, replicas: int = 1, **metadata: Any) -> Object:
    """Return a ResourceBinding of the namespace ``default``."""
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"replicas": replicas},
    }


def cluster(name: str) -> Object:
    """Return a Cluster."""
    api_version = "cluster.karmada.io/v1alpha1"
    return {"apiVersion": api_version, "kind": "Cluster", "metadata": {"name": name}, "spec": {"id": name}}


def send(
    server: ApiServerModel | FrontEnd,
    method: str,
    target: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    user: str = "me",
) -> tuple[int, Any]:
    """Send a request; return the status and the decoded body."""
    content = b"" if body is None else orjson.dumps(body)
    response = server.handle(request_of(method, target, headers or {}, content, user=user))
    return response.status, orjson.loads(response.body)


def stored(server: ApiServerModel | FrontEnd, target: str = WEB) -> Object:
    """Return an object."""
    status, found = send(server, "GET", target)
    assert status == 200
    assert isinstance(found, dict)
    return found


def version(server: ApiServerModel | FrontEnd, target: str = WEB) -> str:
    """Return the resourceVersion of an object."""
    return str(stored(server, target)["metadata"]["resourceVersion"])


def names(found: Object) -> list[str]:
    """Return the names of the items of a list."""
    return [item["metadata"]["name"] for item in found["items"]]


class Watcher:
    """A watch and what it got."""

    def __init__(
        self,
        server: ApiServerModel | FrontEnd,
        target: str = ALL_BINDINGS,
        since: int | str = "",
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Open a watch that has to be accepted."""
        self.events: list[Object] = []
        self.lines: list[bytes] = []
        self.is_ended = False
        request = request_of("GET", f"{target}?watch=true&resourceVersion={since}{query}", headers or {})
        watch = server.watch(request, self._take)
        assert isinstance(watch, Watch), watch
        self.watch = watch

    @property
    def seen(self) -> list[str]:
        """What happened: type, name and revision of each event."""
        return [
            f"{event['type']} {event['object']['metadata'].get('name', '')} "
            f"{event['object']['metadata']['resourceVersion']}"
            for event in self.events
        ]

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self.is_ended = True
        else:
            self.lines.append(line)
            self.events.append(orjson.loads(line))


def refused_watch(server: ApiServerModel | FrontEnd, target: str) -> Response:
    """Return the response to a watch that has to be refused."""
    found = server.watch(request_of("GET", target, {}), lambda _: None)
    assert isinstance(found, Response)
    return found
