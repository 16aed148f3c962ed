"""The fleet, or the namespaces of those who may not see all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from karmada_advisor.state.model import API_VERSION, StateName
from karmada_advisor.views.fields import document_fields, fields_of
from karmada_advisor.web.answers import summary
from karmada_advisor.web.fleet import fleet_of
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, judged
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.state import PageState
from karmada_advisor.web.viewer import MOST_NAMESPACES
from karmada_pyscheduler.http_server.messages import Document, HttpRequest
from karmada_scheduler.structs import replace

_OVERVIEW_NAMES: Final = 10
"""Bindings of a group that the overview names; the list of bindings has all."""


class NamespaceRow(NamedTuple):
    """A namespace, with how many bindings of it are in each state."""

    name: str
    counts: Counter[StateName]


class FleetHandlers(HandlerGroup):
    """The first page."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/": page(self._first_page, is_scoped=True),
            "/v1/namespaces": data(self._namespaces_data, is_scoped=True),
            "/v1/fleet": data(self._fleet_data),
            "/v1/overview": data(self._overview_data),
        }

    async def _first_page(self, request: HttpRequest) -> Document:
        if self._responder.viewer(request).sees_all:
            return await self._fleet_page(request)
        state, rows = await self._namespaces(request)
        values = {"namespaces": rows, "most": MOST_NAMESPACES}
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
            }
            for row in rows
        ]
        return judged({"apiVersion": API_VERSION, "kind": "NamespaceList", "items": items}, state)

    async def _fleet_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        fleet = fleet_of(state)
        decisions = await self._answers.decisions(state)
        values = {
            "fleet": fleet,
            "summary": summary(state, self._answers.background.causes),
            "causes": self._answers.background.causes,
            "process": decisions.process,
            "survival": self._answers.background.survival,
        }
        return self._responder.rendered("fleet.html", request, state, values, data="/v1/fleet")

    async def _fleet_data(self, _: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        decisions = await self._answers.decisions(state)
        fleet = fleet_of(state)
        fields = document_fields(replace(fleet, clusters=()))
        fields["kind"] = "Fleet"
        fields["clusters"] = len(fleet.clusters)  # the list of clusters has them, in pages
        return {**fields, "process": fields_of(decisions.process)}

    async def _overview_data(self, _: HttpRequest) -> Mapping[str, Any]:
        found = summary(
            self._answers.state,
            self._answers.background.causes,
            most_groups=ROWS,
            most_names=_OVERVIEW_NAMES,
        )
        return document_fields(found)
