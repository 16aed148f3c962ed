"""Discovery in a replay: the API groups, and the kinds of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aiohttp import web

from karmada_scheduler.client.karmada import Resource
from tools.bench.recording import Object
from tools.bench.replay_responses import failure, json_response


class Discovery:
    """Answers requests for API groups and kinds."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Describe the kinds that are listed and watched."""
        self._served: dict[str, list[Object]] = {}
        for resource in resources:
            self._served.setdefault(resource.group_path, []).extend(_served(resource.kind, resource.plural))

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of discovery."""
        return [
            web.get("/api", self._core),
            web.get("/api/{version}", self._resources),
            web.get("/apis", self._groups),
            web.get("/apis/{group}/{version}", self._resources),
        ]

    async def _core(self, _: web.Request) -> web.Response:
        return json_response({"kind": "APIVersions", "versions": ["v1"]})

    async def _groups(self, _: web.Request) -> web.Response:
        groups = dict(
            path.split("/")[2:4] for path in (*self._served, *_UNWATCHED) if path.startswith("/apis")
        )
        return json_response({
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": group,
                    "versions": [{"groupVersion": f"{group}/{version}", "version": version}],
                    "preferredVersion": {"groupVersion": f"{group}/{version}", "version": version},
                }
                for group, version in groups.items()
            ],
        })  # fmt: skip

    async def _resources(self, request: web.Request) -> web.Response:
        found = self._served.get(request.path) or _UNWATCHED.get(request.path)
        if found is None:
            return failure(404, "NotFound")
        version = request.path.split("/", 2)[2]
        return json_response({"kind": "APIResourceList", "groupVersion": version, "resources": found})


def _served(kind: str, plural: str) -> list[Object]:
    """Describe a kind and its status as discovery does."""
    entry: Object = {
        "kind": kind,
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": kind in ("ResourceBinding", "PropagationPolicy"),
        "verbs": ["get", "list", "patch", "update", "watch"],
    }
    return [entry, {**entry, "name": f"{plural}/status", "verbs": ["get", "patch"]}]


_UNWATCHED: Final = {
    "/api/v1": _served("Namespace", "namespaces"),
    "/apis/apiextensions.k8s.io/v1": _served("CustomResourceDefinition", "customresourcedefinitions"),
}
"""Kinds that kopf discovers before it starts, and does not list."""
