"""The fleet, its clusters, and which bindings a cluster does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from karmada_advisor.explain.model import API_VERSION
from karmada_advisor.explain.names import unknown
from karmada_advisor.state.model import StateName
from karmada_advisor.survive.domains import CLUSTER
from karmada_advisor.views.fields import document_fields, fields_of
from karmada_advisor.web.answers import summary
from karmada_advisor.web.fleet import (
    SORTS,
    ClusterFilter,
    ClusterShown,
    cluster_shown,
    clusters_of,
    fleet_of,
    sorted_clusters,
)
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, fields_by, list_fields
from karmada_advisor.web.paging import ROWS, bindings_page, clusters_page
from karmada_advisor.web.request_query import RequestRefusedError, page_of
from karmada_advisor.web.state import PageState
from karmada_advisor.web.viewer import MOST_NAMESPACES
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.http_server.messages import Document, HttpRequest

_OVERVIEW_NAMES: Final = 10
"""Bindings of a group that the overview names; the list of bindings has all."""


class NamespaceRow(NamedTuple):
    """A namespace, with how many bindings of it are in each state."""

    name: str
    counts: Counter[StateName]


class FleetHandlers(HandlerGroup):
    """The overview of the fleet, and the clusters."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/": page(self._first_page, is_scoped=True),
            "/v1/namespaces": data(self._namespaces_data, is_scoped=True),
            "/v1/fleet": data(self._fleet_data),
            "/v1/overview": data(self._overview_data),
            "/clusters": page(self._clusters_page),
            "/v1/clusters": data(self._clusters_data),
            "/clusters/{cluster}": page(self._cluster_page),
            "/v1/clusters/{cluster}": data(self._cluster_data),
            "/clusters/{cluster}/why-not": page(self._why_not_page),
            "/v1/clusters/{cluster}/why-not": data(fields_by(self._why_not)),
        }

    async def _first_page(self, request: HttpRequest) -> Document:
        if self._responder.viewer(request).sees_all:
            return await self._fleet_page(request)
        values = {"namespaces": await self._namespaces(request), "most": MOST_NAMESPACES}
        return self._responder.rendered("namespaces.html", request, values, data="/v1/namespaces")

    async def _namespaces(self, request: HttpRequest) -> list[NamespaceRow]:
        """Return the namespaces of the viewer, with the numbers of their bindings."""
        index = self._answers.state.contents.index
        names = await self._responder.viewer(request).namespaces(index.namespaces)
        return [NamespaceRow(name, index.counts(name)) for name in names]

    async def _namespaces_data(self, request: HttpRequest) -> Mapping[str, Any]:
        rows = await self._namespaces(request)
        items = [
            {
                "name": row.name,
                "bindings": {state.value: count for state, count in row.counts.items() if count},
            }
            for row in rows
        ]
        return {"apiVersion": API_VERSION, "kind": "NamespaceList", "items": items}

    async def _fleet_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        fleet = fleet_of(state)
        decisions = await self._answers.decisions(state)
        values = {
            "fleet": fleet,
            "summary": summary(state, self._answers.causes),
            "causes": self._answers.causes,
            "process": decisions.process,
            "survival": self._answers.survival,
        }
        return self._responder.rendered("fleet.html", request, values, data="/v1/fleet")

    async def _fleet_data(self, _: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        decisions = await self._answers.decisions(state)
        fleet = fleet_of(state)
        counted = {"clusters": len(fleet.clusters)}  # the list of clusters has them, in pages
        fields = {
            "apiVersion": API_VERSION,
            "kind": "Fleet",
            **fields_of(replace(fleet, clusters=())),
            **counted,
        }
        fields["process"] = fields_of(decisions.process)
        return fields

    async def _overview_data(self, _: HttpRequest) -> Mapping[str, Any]:
        found = summary(
            self._answers.state,
            self._answers.causes,
            most_groups=ROWS,
            most_names=_OVERVIEW_NAMES,
        )
        return document_fields(found)

    def _wanted_clusters(self, request: HttpRequest) -> tuple[ClusterFilter, str, list[ClusterShown]]:
        by = request.query.get("sort", "state")
        if by not in SORTS:
            raise RequestRefusedError(400, f"sort must be one of {', '.join(SORTS)}")
        wanted = ClusterFilter(
            text=request.query.get("q", "").strip(),
            region=request.query.get("region", ""),
            state=request.query.get("state", ""),
        )
        shown = [each for each in clusters_of(self._answers.state.contents) if wanted.holds(each)]
        return wanted, by, sorted_clusters(shown, by)

    async def _clusters_page(self, request: HttpRequest) -> Document:
        wanted, by, shown = self._wanted_clusters(request)
        paging = clusters_page(shown, page_of(request))
        clusters = clusters_of(self._answers.state.contents)
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
        _, _, shown = self._wanted_clusters(request)
        return list_fields("FleetClusterList", clusters_page(shown, page_of(request)), _cluster_fields)

    async def _cluster_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        cluster = _cluster_of(state, request)
        paging = bindings_page(state.contents.index.on(cluster.name), page_of(request))
        values = {
            "cluster": cluster,
            "rows": [state.contents.row(each) for each in paging.rows],
            "paging": paging,
            "labels": self._labels(cluster.name),
        }
        values["lost"] = self._answers.survival.domain(CLUSTER, cluster.name)
        return self._responder.rendered(
            "cluster.html", request, values, data=f"/v1{request.target.partition('?')[0]}"
        )

    def _labels(self, name: str) -> Mapping[str, str]:
        return self._answers.state.contents.cluster_by_name[name].labels

    async def _cluster_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        shown = _cluster_of(state, request)
        paging = bindings_page(state.contents.index.on(shown.name), page_of(request))
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


def _cluster_fields(shown: ClusterShown) -> dict[str, Any]:
    return {**fields_of(shown), "state": shown.state.value}


def _cluster_of(state: PageState, request: HttpRequest) -> ClusterShown:
    """Return the cluster of a path. Raises RequestRefusedError: it does not exist."""
    name = request.path["cluster"]
    found = state.contents.cluster_by_name.get(name)
    if found is None:
        raise RequestRefusedError(404, unknown(f"cluster {name}", name, state.contents.cluster_by_name))
    return cluster_shown(state.contents, found)
