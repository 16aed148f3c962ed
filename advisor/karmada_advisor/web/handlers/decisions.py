"""The last decisions, and the stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from karmada_advisor.state.model import API_VERSION
from karmada_advisor.views.fields import fields_of
from karmada_advisor.web.decisions import SHOWN, DecisionRow
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes
from karmada_advisor.web.indexed_binding import Filter
from karmada_advisor.web.request_query import is_wanted
from karmada_advisor.web.state import PageState
from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest, HttpResponse
from karmada_scheduler.api.binding import BindingKey

_STREAM_SECONDS: Final = 300
_KEEPALIVE: Final = 15


class DecisionHandlers(HandlerGroup):
    """Decisions, and the stream of changes."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/decisions": page(self._decisions_page),
            "/v1/decisions": data(self._decisions_data),
            "/v1/events": self._responder.checked(self._events),
        }

    async def _decisions_page(self, request: HttpRequest) -> Document:
        decisions = await self._answers.decisions(self._answers.state)
        rows = self._wanted(decisions.rows, request)
        values = {
            "decisions": decisions,
            "rows": rows,
            "namespaces": sorted({row.namespace for row in decisions.rows if row.namespace}),
            "reasons": sorted({row.reason for row in decisions.rows if row.reason}),
        }
        return self._responder.rendered("decisions.html", request, self._answers.state, values)

    def _wanted(self, rows: Iterable[DecisionRow], request: HttpRequest) -> list[DecisionRow]:
        """Return the rows to show; the policy of a binding is that of now, because records have none."""
        found = [row for row in rows if is_wanted(row, request)]
        if policy := request.query.get("policy", "").strip():
            wanted, index = Filter(policy=policy), self._answers.state.contents.index
            bindings = (index.get(BindingKey(row.kind, row.namespace, row.name)) for row in found)
            found = [
                row
                for row, binding in zip(found, bindings, strict=True)
                if binding is not None and wanted.holds(binding)
            ]
        return found[:SHOWN]

    async def _decisions_data(self, request: HttpRequest) -> Mapping[str, Any]:
        decisions = await self._answers.decisions(self._answers.state)
        rows = self._wanted(decisions.rows, request)
        return {
            "apiVersion": API_VERSION,
            "kind": "DecisionList",
            "source": decisions.source,
            "problem": decisions.problem,
            "items": fields_of(rows),
        }

    async def _events(self, request: HttpRequest) -> HttpResponse:
        """Return a stream with an event whenever the objects or the decisions changed, once a second at most.

        ``since`` is the stamp of the page that is shown; another one now is a change. With ``namespace``, changes of
        other namespaces cause no event.
        """
        namespace = request.query.get("namespace", "")
        state = await self._responder.state(request, namespace)
        parts = self._event_parts(request.query.get("since", ""), namespace, state)
        return HttpResponse(parts, content_type="text/event-stream", is_stream=True)

    async def _event_parts(self, since: str, namespace: str, state: PageState) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        shown = await self._shown(namespace, state)
        shown = (since or shown[0], *shown[1:])
        quiet = 0
        for _ in range(_STREAM_SECONDS):
            self._answers.reader.note_request()
            state = await self._responder.later(state)
            now = await self._shown(namespace, state)
            if now != shown:
                yield b"id: %s\nevent: changed\ndata: changed\n\n" % now[0].encode()
                shown, quiet = now, 0
            elif quiet == _KEEPALIVE:
                quiet = 0
                yield b":\n\n"
            quiet += 1
            await asyncio.sleep(1)

    async def _shown(self, namespace: str, state: PageState) -> tuple[str, object, object]:
        """Return what a stream compares: the stamp, and without a namespace the last decision and the scheduler."""
        if namespace:
            return self._responder.stamp(state, namespace), None, None
        decisions = await self._answers.decisions(state)
        return self._responder.stamp(state), decisions.rows[:1], decisions.process
