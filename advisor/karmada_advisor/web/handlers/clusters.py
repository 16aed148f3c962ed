"""The clusters, and which bindings a cluster does not have.

Who may list Clusters sees all that Cluster objects have; of bindings on them, those of namespaces in which they may list bindings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from karmada_advisor.explain.model import API_VERSION
from karmada_advisor.explain.names import unknown
from karmada_advisor.survive.domains import CLUSTER
from karmada_advisor.views.fields import fields_of
from karmada_advisor.web.fleet import (
    SORTS,
    ClusterFilter,
    ClusterShown,
    cluster_shown,
    clusters_of,
    sorted_clusters,
)
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, fields_by, list_fields
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.paging import CursorPage, bindings_page, clusters_page
from karmada_advisor.web.request_query import RequestRefusedError, page_of
from karmada_advisor.web.state import PageState
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.http_server.messages import Document, HttpRequest
from karmada_scheduler.structs import replace


class ClusterHandlers(HandlerGroup):
    """The clusters."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/clusters": page(self._clusters_page, is_scoped=True),
            "/v1/clusters": data(self._clusters_data, is_scoped=True),
            "/clusters/{cluster}": page(self._cluster_page, is_scoped=True),
            "/v1/clusters/{cluster}": data(self._cluster_data, is_scoped=True),
            "/clusters/{cluster}/why-not": page(self._why_not_page),
            "/v1/clusters/{cluster}/why-not": data(fields_by(self._why_not)),
        }

    async def _held(self, request: HttpRequest) -> BindingIndex:
        """Return the bindings that the viewer may see on clusters.

        Raises:
            RequestRefusedError: They may not list Clusters.
        """
        viewer = self._responder.viewer(request)
        viewer.check_clusters()
        index = self._answers.state.contents.index
        if viewer.sees_bindings:
            return index
        namespaces = await viewer.namespaces(index.namespaces)
        return BindingIndex(row for each in namespaces for row in index.of_namespace(each))

    async def _wanted_clusters(
        self, request: HttpRequest
    ) -> tuple[ClusterFilter, str, list[ClusterShown], list[ClusterShown]]:
        """Return filter and order, all clusters, and those that are wanted in their order."""
        held = await self._held(request)
        clusters = [_with(each, held) for each in clusters_of(self._answers.state.contents)]
        by = request.query.get("sort", "state")
        if by not in SORTS:
            raise RequestRefusedError(400, f"sort must be one of {', '.join(SORTS)}")
        wanted = ClusterFilter(
            text=request.query.get("q", "").strip(),
            region=request.query.get("region", ""),
            state=request.query.get("state", ""),
        )
        shown = [each for each in clusters if wanted.holds(each)]
        return wanted, by, clusters, sorted_clusters(shown, by)

    async def _clusters_page(self, request: HttpRequest) -> Document:
        wanted, by, clusters, shown = await self._wanted_clusters(request)
        paging = clusters_page(shown, page_of(request))
        values = {
            "wanted": wanted,
            "clusters": shown,
            "rows": paging.rows,
            "paging": paging,
            "sort": by,
            "all": len(clusters),
            "of_region": sorted({each.region for each in clusters if each.region}),
            "counts": Counter(each.state for each in clusters),
        }
        return self._responder.rendered("clusters.html", request, values, data=f"/v1{request.target}")

    async def _clusters_data(self, request: HttpRequest) -> Mapping[str, Any]:
        *_, shown = await self._wanted_clusters(request)
        return list_fields("FleetClusterList", clusters_page(shown, page_of(request)), _cluster_fields)

    async def _cluster(self, request: HttpRequest) -> tuple[ClusterShown, CursorPage[IndexedBinding]]:
        """Return the cluster of a path, with the bindings on it that the viewer may see."""
        held = await self._held(request)
        cluster = _with(_cluster_of(self._answers.state, request), held)
        return cluster, bindings_page(held.on(cluster.name), page_of(request))

    async def _cluster_page(self, request: HttpRequest) -> Document:
        cluster, paging = await self._cluster(request)
        values = {
            "cluster": cluster,
            "rows": self._responder.binding_rows(paging.rows, here=cluster.name),
            "paging": paging,
            "labels": self._labels(cluster.name),
            "lost": None,
        }
        if self._responder.viewer(request).sees_all:
            values["lost"] = self._answers.survival.domain(CLUSTER, cluster.name)
        return self._responder.rendered(
            "cluster.html", request, values, data=f"/v1{request.target.partition('?')[0]}"
        )

    def _labels(self, name: str) -> Mapping[str, str]:
        return self._answers.state.contents.cluster_by_name[name].labels

    async def _cluster_data(self, request: HttpRequest) -> Mapping[str, Any]:
        shown, paging = await self._cluster(request)
        return {
            "apiVersion": API_VERSION,
            "kind": "FleetCluster",
            **_cluster_fields(shown),
            "labels": dict(self._labels(shown.name)),
            "holds": [str(each.key) for each in paging.rows],
            "after": paging.after,
        }

    async def _why_not(self, request: HttpRequest) -> WhyNotCluster:
        state = self._answers.state
        cluster = _cluster_of(state, request).name
        return await self._computer.answer(
            (state.number, "why-not cluster", cluster),
            lambda: self._answers.why_not_cluster(state, cluster),
            requester=request.requester,
        )

    async def _why_not_page(self, request: HttpRequest) -> Document:
        found = await self._why_not(request)
        values = {"found": found, "largest": max((each.count for each in found.groups), default=0)}
        return self._responder.rendered(
            "why_not_cluster.html", request, values, data=f"/v1{request.target.partition('?')[0]}"
        )


def _with(cluster: ClusterShown, held: BindingIndex) -> ClusterShown:
    """Return a cluster with the bindings on it that may be seen; all else is of the Cluster object."""
    return replace(cluster, replicas=held.replicas_on(cluster.name), bindings=len(held.on(cluster.name)))


def _cluster_fields(shown: ClusterShown) -> dict[str, Any]:
    return {**fields_of(shown), "state": shown.state.value}


def _cluster_of(state: PageState, request: HttpRequest) -> ClusterShown:
    """Return the cluster of a path. Raises RequestRefusedError: it does not exist."""
    name = request.path["cluster"]
    found = state.contents.cluster_by_name.get(name)
    if found is None:
        raise RequestRefusedError(404, unknown(f"cluster {name}", name, state.contents.cluster_by_name))
    return cluster_shown(state.contents, found)
