"""The fleet, or the namespaces of those who may not see all of it; its clusters, and which bindings a cluster does not have.

Who may list Clusters sees all that Cluster objects have; of bindings on them, those that they may list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from karmada_advisor.fleet.fleet import reference_of
from karmada_advisor.state.model import API_VERSION, StateName
from karmada_advisor.views.fields import document_fields, fields_of
from karmada_advisor.web.answers import summary
from karmada_advisor.web.background import CauseScan
from karmada_advisor.web.fleet import (
    SORTS,
    ClusterFilter,
    ClusterShown,
    cluster_shown,
    clusters_of,
    fleet_of,
    sorted_clusters,
)
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, fields_by, judged, list_fields
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.request_query import (
    ROWS,
    CursorPage,
    RequestRefusedError,
    bindings_page,
    clusters_page,
    filter_of,
    page_of,
)
from karmada_advisor.web.state import PageState
from karmada_advisor.web.viewer import LIST_BINDINGS, MOST_NAMESPACES
from karmada_advisor.whatif.survive.domains import CLUSTER
from karmada_advisor.whynot.clusters import WhyNotCluster
from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest
from karmada_scheduler.api.names import unknown
from karmada_scheduler.structs import replace

_OVERVIEW_NAMES: Final = 10
"""Bindings of a group that the overview names; the list of bindings has all."""


class NamespaceRow(NamedTuple):
    """A namespace, with how many bindings of it are in each state."""

    name: str
    counts: Counter[StateName]


class FleetHandlers(HandlerGroup):
    """The first page, and the clusters."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/": page(self._first_page, is_scoped=True),
            "/v1/namespaces": data(self._namespaces_data, is_scoped=True),
            "/v1/fleet": data(self._fleet_data),
            "/v1/overview": data(self._overview_data),
            "/clusters": page(self._clusters_page, is_scoped=True),
            "/v1/clusters": data(self._clusters_data, is_scoped=True),
            "/clusters/{cluster}": page(self._cluster_page, is_scoped=True),
            "/v1/clusters/{cluster}": data(self._cluster_data, is_scoped=True),
            "/clusters/{cluster}/why-not": page(self._why_not_page),
            "/v1/clusters/{cluster}/why-not": data(fields_by(self._why_not)),
        }

    async def _first_page(self, request: HttpRequest) -> Document:
        if self._responder.viewer(request).sees_all:
            return await self._fleet_page(request)
        state, rows = await self._namespaces(request)
        values = {"namespaces": rows, "most": MOST_NAMESPACES, "wanted": LIST_BINDINGS}
        return self._responder.rendered("namespaces.html", request, state, values, data="/v1/namespaces")

    async def _namespaces(self, request: HttpRequest) -> tuple[PageState, list[NamespaceRow]]:
        """Return what the viewer may read, and their namespaces with the numbers of bindings."""
        state = await self._responder.state(request)
        existing = self._answers.state.contents.index.namespaces
        names = await self._responder.viewer(request).namespaces(existing)
        return state, [NamespaceRow(name, state.contents.index.counts(name)) for name in names]

    async def _namespaces_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, rows = await self._namespaces(request)
        items = [
            {
                "name": row.name,
                "bindings": {state.value: count for state, count in row.counts.items() if count},
                "replicas": fields_of(state.contents.index.replicas(row.name)),
            }
            for row in rows
        ]
        return judged({"apiVersion": API_VERSION, "kind": "NamespaceList", "items": items}, state)

    async def _fleet_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        fleet = fleet_of(state)
        decisions = await self._answers.decisions(state)
        causes, unread = await self._scan(request, state)
        values = {
            "fleet": fleet,
            "summary": summary(state, causes, unread),
            "causes": causes,
            "process": decisions.process,
            "survival": self._answers.background.survival,
            "unread_templates": unread,
        }
        return self._responder.rendered("fleet.html", request, state, values, data="/v1/fleet")

    async def _scan(self, request: HttpRequest, state: PageState) -> tuple[CauseScan, str]:
        """Return causes, and why templates without a binding are not among them; "" if those that the page has read are."""
        scan, contents = self._answers.background.causes, state.contents
        groups = (reference_of(template)[0] for template in contents.templates)
        if await self._responder.viewer(request).sees_templates(groups):
            return scan, contents.unread_templates
        return replace(scan, templates={}), "you may not list the templates of all namespaces"

    async def _fleet_data(self, _: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        decisions = await self._answers.decisions(state)
        fleet = fleet_of(state)
        fields = document_fields(replace(fleet, clusters=()))
        fields["kind"] = "Fleet"
        fields["clusters"] = len(fleet.clusters)  # the list of clusters has them, in pages
        return {**fields, "process": fields_of(decisions.process)}

    async def _overview_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        found = summary(
            state,
            *await self._scan(request, state),
            most_groups=ROWS,
            most_names=_OVERVIEW_NAMES,
        )
        return document_fields(found)

    async def _wanted_clusters(
        self, request: HttpRequest
    ) -> tuple[PageState, ClusterFilter, str, list[ClusterShown]]:
        """Return what the viewer may read, filter and order, and the clusters that are wanted in their order."""
        state = await self._responder.with_clusters(request)
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
            "of_region": sorted({cluster.region for cluster in clusters if cluster.region}),
            "counts": Counter(cluster.state for cluster in clusters),
        }
        return self._responder.rendered("clusters.html", request, state, values)

    async def _clusters_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, *_, shown = await self._wanted_clusters(request)
        return list_fields("FleetClusterList", state, clusters_page(shown, page_of(request)), _cluster_fields)

    async def _cluster(
        self, request: HttpRequest
    ) -> tuple[PageState, ClusterShown, CursorPage[IndexedBinding]]:
        """Return what the viewer may read, and the cluster of a path with the bindings on it."""
        state = await self._responder.with_clusters(request)
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
            "holds": [str(row.key) for row in paging.rows],
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
        values = {"found": found, "largest": max((group.count for group in found.groups), default=0)}
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
