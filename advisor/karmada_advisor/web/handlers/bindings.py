"""Bindings: their lists, why one is where it is, what would bring it elsewhere, and the quotas of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.state.model import API_VERSION, StateName
from karmada_advisor.views.explanation_tables import first_rows
from karmada_advisor.views.fields import document_fields, fields_of
from karmada_advisor.web import charts
from karmada_advisor.web.handlers.responder import (
    COMPLETED_NAMES,
    HandlerGroup,
    Routes,
    completed_names,
    fields_by,
    list_fields,
)
from karmada_advisor.web.history import History
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding
from karmada_advisor.web.pages import path_of, query
from karmada_advisor.web.request_query import (
    ROWS,
    CursorPage,
    RequestRefusedError,
    bindings_page,
    filter_of,
    number_of,
    page_of,
)
from karmada_advisor.web.state import BindingRow, PageState
from karmada_advisor.web.viewer import LIST_QUOTAS
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.clusters import WhyNotClusters, clusters_with
from karmada_advisor.whynot.model import WhyNot
from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.api.names import unknown

_NEAREST_OF: Final = 2_000
"""Names among which the nearest one is looked for; among more it would take seconds."""


class BindingHandlers(HandlerGroup):
    """Lists of bindings, questions about one, and the quotas that the page of a namespace shows."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        routes = {
            "/bindings": page(self._bindings_page, is_scoped=True),
            "/n/{namespace}": page(self._bindings_page, is_scoped=True),
            "/w/{namespace}/{kind}/{name}": page(self._of_workload, is_scoped=True),
            "/v1/bindings": data(self._bindings_data, is_scoped=True),
            "/v1/quotas/{namespace}": data(self._quotas_data, is_scoped=True),
        }
        for name in ("{name}", "{namespace}/{name}"):
            routes |= {
                f"/b/{name}": page(self._binding_page, is_scoped=True),
                f"/why-not/{name}": page(self._why_not_page, is_scoped=True),
                f"/v1/explain/{name}": data(fields_by(self._explained), is_scoped=True),
                f"/v1/why-not/{name}": data(fields_by(self._answered), is_scoped=True),
                f"/v1/history/{name}": data(self._history_data, is_scoped=True),
            }
        return routes

    async def _filtered(self, request: HttpRequest) -> tuple[PageState, Filter, CursorPage[IndexedBinding]]:
        namespace = request.path.get("namespace") or request.query.get("namespace", "")
        state = await self._responder.state(request, namespace)
        wanted = filter_of(Filter, request, namespace=namespace)
        return state, wanted, bindings_page(state.contents.index.select(wanted), page_of(request))

    async def _bindings_page(self, request: HttpRequest) -> Document:
        state, wanted, paging = await self._filtered(request)
        counts = state.contents.index.counts(wanted.namespace)
        viewer, namespaces = self._responder.viewer(request), self._answers.state.contents.index.namespaces
        if not viewer.sees_all:
            namespaces = sorted({*await viewer.namespaces(namespaces), wanted.namespace})
        values = {
            "wanted": wanted,
            "rows": self._responder.binding_rows(
                state, paging.rows, of_namespace="namespace" in request.path
            ),
            "paging": paging,
            "all": counts.total(),
            "namespaces": namespaces,
            "states": [name.value for name in StateName],
            "counts": counts,
            "home": "namespace" in request.path,
            "quotas": await self._responder.readable_quotas(viewer, wanted.namespace),
        }
        data = f"/v1/bindings{query({**request.query, 'namespace': wanted.namespace})}".rstrip("?")
        return self._responder.rendered("bindings.html", request, state, values, data=data)

    async def _of_workload(self, request: HttpRequest) -> Document:
        """Return where the page of a workload's binding is; alerts and people know the workload."""
        namespace, kind, name = (request.path[part] for part in ("namespace", "kind", "name"))
        state = await self._responder.state(request, namespace)
        unreadable = BindingKey(RESOURCE_BINDING, namespace, f"{name}-{kind}".lower())
        found = [unreadable.name] if unreadable in state.contents.objects.unreadable else []
        for row in state.contents.index.of_namespace(namespace):
            resource = row.binding.spec.resource
            if resource.kind.lower() == kind.lower() and resource.name == name:
                found.append(row.name)
        if found:
            return Document(b"", 302, "text/plain", {"Location": path_of(namespace, found[0])})
        text = f"{kind} {name} in the namespace {namespace} has no binding: no policy has selected it, or it does not exist"
        raise RequestRefusedError(404, text)

    async def _bindings_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, _, paging = await self._filtered(request)
        return list_fields("BindingList", state, paging, lambda row: fields_of(state.contents.row(row)))

    async def _quotas_data(self, request: HttpRequest) -> Mapping[str, Any]:
        viewer, namespace = self._responder.viewer(request), request.path["namespace"]
        await viewer.check_namespace(namespace)
        found = await self._responder.readable_quotas(viewer, namespace)
        if found is None:
            raise RequestRefusedError(
                403, f"{viewer.name} may not {LIST_QUOTAS} in the namespace {namespace}"
            )
        fields = fields_of(found)
        fields.pop("manifests", None)
        return {"apiVersion": API_VERSION, "kind": "QuotaList", "items": fields.pop("rows"), **fields}

    async def _state_and_key(self, request: HttpRequest) -> tuple[PageState, BindingKey]:
        """Return objects with the binding of a path, and its key. Raises RequestRefusedError: it does not exist."""
        namespace = request.path.get("namespace", "")
        state = await self._responder.state(request, namespace)
        key = self._key_of(state, request)
        if key not in state.contents.objects.manifests:  # it is new
            await self._answers.reader.refresh()
            state = await self._responder.state(request, namespace)
        return state, key

    async def _explained(self, request: HttpRequest) -> tuple[Explanation, PageState]:
        """Return why a binding is where it is, and what was read for that."""
        state, key = await self._state_and_key(request)
        state = await self._responder.with_quotas(request, state, [key.namespace])
        is_recorded = state.scope is None or state.scope.is_trusted
        view = await self._answers.process_view(key) if is_recorded else None
        found = await self._worker.answer(
            (state.number, state.scope, "explain", key, _fingerprint(view), state.quotas),
            lambda: self._answers.explain(state, key, view),
            requester=request.requester,
        )
        return found, state

    def _stored(self, state: PageState, request: HttpRequest) -> BindingRow:
        """Return the binding of a path as it is stored. Raises RequestRefusedError: it does not exist."""
        found = state.contents.index.get(self._key_of(state, request))
        if found is None:  # it has gone in the meantime
            raise RequestRefusedError(404, "the binding does not exist any more")
        return state.contents.row(found)

    async def _binding_page(self, request: HttpRequest) -> Document:
        explanation, state = await self._explained(request)
        rows = explanation.clusters
        is_all = request.query.get("rows") == "all" or len(rows) <= ROWS
        shown = rows if is_all else first_rows(rows, ROWS)
        plugins = sorted({cell.plugin for row in rows for cell in row.refusals if cell.plugin})
        scores = list({cell.plugin: cell.weight for row in rows for cell in row.scores}.items())
        lost = self._answers.background.survival.gone
        values = {
            "row": self._stored(state, request),
            "history": await self._history(request, state),
            "explanation": explanation,
            "binding": explanation.binding,
            "funnel": charts.funnel(explanation),
            "bars": charts.capacity_bars(shown),
            "rows": shown,
            "hidden": len(rows) - len(shown),
            "filters": plugins,
            "scores": scores,
            "suggested": [
                *[row.name for row in rows if not row.is_target][:COMPLETED_NAMES],
                *state.contents.places,
            ],
            "lost_with": lost.of_binding(self._key_of(state, request))
            if lost and state.scope is None
            else [],
        }
        return self._responder.rendered(
            "binding.html", request, state, values, data=_data_path(request, "/b", "/v1/explain")
        )

    async def _history(self, request: HttpRequest, state: PageState) -> History:
        """Return what has happened to a binding that the viewer may see, with its Events if they may list these."""
        viewer = self._responder.viewer(request)
        key = self._key_of(state, request)
        found = await self._answers.history(state, key, with_events=await viewer.sees_events(key.namespace))
        if viewer.sees_all or not found.problem:
            return found
        return History(found.entries, found.has_events, "Events cannot be read at the moment")

    async def _history_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = await self._responder.state(request, request.path.get("namespace", ""))
        return document_fields(await self._history(request, state))

    async def _answered(self, request: HttpRequest) -> tuple[WhyNot | WhyNotClusters, PageState]:
        """Return the answer to a question about a binding, and what was read for that."""
        state, key = await self._state_and_key(request)
        self._responder.check_clusters(state)
        state = await self._responder.with_quotas(request, state, [key.namespace])
        cluster, off = request.query.get("cluster", "").strip(), request.query.get("goal") == "off"
        replicas, several = number_of(request, "replicas", 1), list[str]()
        if cluster and cluster not in state.contents.cluster_by_name:
            try:
                several = clusters_with(cluster, state.contents.objects.clusters, key.name)
            except NoAnswerError as unknown_:
                raise RequestRefusedError(404, str(unknown_)) from None
            if off or replicas > 1:
                raise RequestRefusedError(
                    400, f"none, and more than one, are about one cluster, not {cluster}"
                )
        question = WhyNotQuestion.of(cluster, placed=not cluster, off=off, replicas=replicas)
        as_new = request.query.get("as-new") == "true"
        found = await self._worker.answer(
            (state.number, state.scope, "why-not", key, question, as_new, state.quotas),
            lambda: self._answers.why_not(state, key, question, as_new=as_new, several=several),
            requester=request.requester,
        )
        return found, state

    async def _why_not_page(self, request: HttpRequest) -> Document:
        answer, state = await self._answered(request)
        several = answer if isinstance(answer, WhyNotClusters) else None
        found = answer.answer if isinstance(answer, WhyNotClusters) else answer
        values = {
            "found": found,
            "several": several,
            "suggested": [*completed_names(state), *state.contents.places],
            "policy": self._stored(state, request).policy,
        }
        return self._responder.rendered(
            "why_not.html", request, state, values, data=_data_path(request, "/why-not", "/v1/why-not")
        )

    def _key_of(self, state: PageState, request: HttpRequest) -> BindingKey:
        """Return the binding of a path. Raises RequestRefusedError: it does not exist."""
        namespace, name = request.path.get("namespace", ""), request.path["name"]
        key = BindingKey(RESOURCE_BINDING if namespace else CLUSTER_RESOURCE_BINDING, namespace, name)
        index = state.contents.index
        if index.get(key) is None:
            if problem := state.contents.objects.unreadable.get(key):
                raise RequestRefusedError(422, f"{key.display} cannot be read: {problem}")
            rows = index.of_namespace(namespace)
            if not rows and self._responder.viewer(request).sees_all:
                rows = index.rows
            names = (str(row.key) for row in rows) if len(rows) <= _NEAREST_OF else ()
            raise RequestRefusedError(404, unknown(key.display, str(key), names))
        return key


def _data_path(request: HttpRequest, before: str, after: str) -> str:
    """Return the target of a request with another beginning."""
    return after + request.target.removeprefix(before)


def _fingerprint(view: Any) -> str:
    """Return what makes two answers of the running scheduler different, apart from the time until the next decision."""
    return "" if view is None else repr((view.record, view.queue_state, view.problem))
