"""The clusters, and which bindings a cluster does not have.

Who may list Clusters sees all that Cluster objects have; of bindings on them, those that they may list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from karmada_advisor.fleet.names import unknown
from karmada_advisor.state.model import API_VERSION
from karmada_advisor.views.fields import fields_of
from karmada_advisor.web.fleet import (
    SORTS,
    ClusterFilter,
    ClusterShown,
    cluster_shown,
    clusters_of,
    sorted_clusters,
)
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, fields_by, judged, list_fields
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.paging import CursorPage, bindings_page, clusters_page
from karmada_advisor.web.request_query import RequestRefusedError, filter_of, page_of
from karmada_advisor.web.state import PageState
from karmada_advisor.whatif.survive.domains import CLUSTER
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_pyscheduler.http_server.messages import Document, HttpRequest


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

    async def _state(self, request: HttpRequest) -> PageState:
        """Return what the viewer may read. Raises RequestRefusedError: they may not list Clusters."""
        state = await self._responder.state(request)
        self._responder.check_clusters(state)
        return state

    async def _wanted_clusters(
        self, request: HttpRequest
    ) -> tuple[PageState, ClusterFilter, str, list[ClusterShown]]:
        """Return what the viewer may read, filter and order, and the clusters that are wanted in their order."""
        state = await self._state(request)
        by = request.query.get("sort", "state")
        if by not in SORTS:
            raise RequestRefusedError(400, f"sort must be one of {', '.join(SORTS)}")
        wanted = filter_of(ClusterFilter, request)
        shown = [cluster for cluster in clusters_of(state.contents) if wanted.holds(cluster)]
        return state, wanted, by, sorted_clusters(shown, by)

    async def _clusters_page(self, request: HttpRequest) -> Document:
        state, wanted, by, shown = await self._wanted_clusters(request)
        clusters = clusters_of(state.contents)
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
        return self._responder.rendered("clusters.html", request, state, values)

    async def _clusters_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, *_, shown = await self._wanted_clusters(request)
        return list_fields("FleetClusterList", state, clusters_page(shown, page_of(request)), _cluster_fields)

    async def _cluster(
        self, request: HttpRequest
    ) -> tuple[PageState, ClusterShown, CursorPage[IndexedBinding]]:
        """Return what the viewer may read, and the cluster of a path with the bindings on it."""
        state = await self._state(request)
        cluster = _cluster_of(state, request)
        return state, cluster, bindings_page(state.contents.index.on(cluster.name), page_of(request))

    async def _cluster_page(self, request: HttpRequest) -> Document:
        state, cluster, paging = await self._cluster(request)
        values = {
            "cluster": cluster,
            "rows": self._responder.binding_rows(state, paging.rows, here=cluster.name),
            "paging": paging,
            "labels": state.contents.cluster_by_name[cluster.name].labels,
            "lost": None,
        }
        if self._responder.viewer(request).sees_all and (view := self._answers.background.survival.gone):
            values["lost"] = view.domain(CLUSTER, cluster.name)
        return self._responder.rendered("cluster.html", request, state, values)

    async def _cluster_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, shown, paging = await self._cluster(request)
        found = {
            "apiVersion": API_VERSION,
            "kind": "FleetCluster",
            **_cluster_fields(shown),
            "labels": dict(state.contents.cluster_by_name[shown.name].labels),
            "holds": [str(each.key) for each in paging.rows],
            "after": paging.after,
        }
        return judged(found, state)

    async def _why_not(self, request: HttpRequest) -> tuple[WhyNotCluster, PageState]:
        state = self._answers.state
        cluster = _cluster_of(state, request).name
        found = await self._worker.answer(
            (state.number, "why-not cluster", cluster),
            lambda: self._answers.why_not_cluster(state, cluster),
            requester=request.requester,
        )
        return found, state

    async def _why_not_page(self, request: HttpRequest) -> Document:
        found, state = await self._why_not(request)
        values = {"found": found, "largest": max((each.count for each in found.groups), default=0)}
        return self._responder.rendered("why_not_cluster.html", request, state, values)


def _cluster_fields(shown: ClusterShown) -> dict[str, Any]:
    return {**fields_of(shown), "state": shown.state.value}


def _cluster_of(state: PageState, request: HttpRequest) -> ClusterShown:
    """Return the cluster of a path. Raises RequestRefusedError: it does not exist."""
    name = request.path["cluster"]
    found = state.contents.cluster_by_name.get(name)
    if found is None:
        raise RequestRefusedError(404, unknown(f"cluster {name}", name, state.contents.cluster_by_name))
    return cluster_shown(state.contents, found)
