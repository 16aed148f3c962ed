"""The lists of bindings, and the quotas of a namespace for those who may list them there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.state.model import API_VERSION, StateName
from karmada_advisor.views.fields import fields_of
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, list_fields
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding
from karmada_advisor.web.pages import path_of, query
from karmada_advisor.web.paging import CursorPage, bindings_page
from karmada_advisor.web.quotas import NamespaceQuotas
from karmada_advisor.web.request_query import RequestRefusedError, filter_of, page_of
from karmada_advisor.web.state import PageState
from karmada_advisor.web.viewer import LIST_QUOTAS, Viewer
from karmada_pyscheduler.http_server.messages import Document, HttpRequest

_UNREAD: Final = NamespaceQuotas(problem="quotas cannot be read at the moment")


class BindingListHandlers(HandlerGroup):
    """The lists of bindings, the way from a workload to its binding, and the quotas that the page of a namespace shows."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/bindings": page(self._bindings_page, is_scoped=True),
            "/n/{namespace}": page(self._bindings_page, is_scoped=True),
            "/w/{namespace}/{kind}/{name}": page(self._of_workload, is_scoped=True),
            "/v1/bindings": data(self._bindings_data, is_scoped=True),
            "/v1/quotas/{namespace}": data(self._quotas_data, is_scoped=True),
        }

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
            "states": [each.value for each in StateName],
            "counts": counts,
            "home": "namespace" in request.path,
            "quotas": await readable_quotas(self._answers, viewer, wanted.namespace),
        }
        data = f"/v1/bindings{query({**request.query, 'namespace': wanted.namespace})}".rstrip("?")
        return self._responder.rendered("bindings.html", request, state, values, data=data)

    async def _of_workload(self, request: HttpRequest) -> Document:
        """Return where the page of a workload's binding is; alerts and people know the workload."""
        namespace, kind, name = (request.path[part] for part in ("namespace", "kind", "name"))
        state = await self._responder.state(request, namespace)
        for row in state.contents.index.of_namespace(namespace):
            resource = row.binding.spec.resource
            if resource.kind.lower() == kind.lower() and resource.name == name:
                return Document(b"", 302, "text/plain", {"Location": path_of(namespace, row.name)})
        text = f"{kind} {name} in the namespace {namespace} has no binding: no policy has selected it, or it does not exist"
        raise RequestRefusedError(404, text)

    async def _bindings_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state, _, paging = await self._filtered(request)
        return list_fields("BindingList", state, paging, lambda row: fields_of(state.contents.row(row)))

    async def _quotas_data(self, request: HttpRequest) -> Mapping[str, Any]:
        viewer, namespace = self._responder.viewer(request), request.path["namespace"]
        await viewer.check_namespace(namespace)
        found = await readable_quotas(self._answers, viewer, namespace)
        if found is None:
            raise RequestRefusedError(
                403, f"{viewer.name} may not {LIST_QUOTAS} in the namespace {namespace}"
            )
        fields = fields_of(found)
        return {"apiVersion": API_VERSION, "kind": "QuotaList", "items": fields.pop("rows"), **fields}


async def readable_quotas(answers: Answers, viewer: Viewer, namespace: str) -> NamespaceQuotas | None:
    """Return the quotas of a namespace whose bindings the viewer may list; None if they may not list quotas there."""
    if not namespace or not await viewer.sees_quotas(namespace):
        return None
    found = await answers.quotas(namespace)
    return _UNREAD if found.problem and not viewer.sees_all else found
