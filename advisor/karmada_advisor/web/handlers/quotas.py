"""The quotas of a namespace, for those who may list them there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.explain.model import API_VERSION
from karmada_advisor.views.fields import fields_of
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes
from karmada_advisor.web.quotas import NamespaceQuotas
from karmada_advisor.web.request_query import RequestRefusedError
from karmada_advisor.web.viewer import LIST_QUOTAS, Viewer
from karmada_scheduler.http_server.messages import HttpRequest

_UNREAD: Final = NamespaceQuotas(problem="quotas cannot be read at the moment")


class QuotaHandlers(HandlerGroup):
    """The quotas as data; the page of the namespace shows them."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        return {"/v1/quotas/{namespace}": self._responder.data(self._data, is_scoped=True)}

    async def _data(self, request: HttpRequest) -> Mapping[str, Any]:
        viewer, namespace = self._responder.viewer(request), request.path["namespace"]
        await viewer.check_namespace(namespace)
        found = await seen_quotas(self._answers, viewer, namespace)
        if found is None:
            raise RequestRefusedError(
                403, f"{viewer.name} may not {LIST_QUOTAS} in the namespace {namespace}"
            )
        fields = fields_of(found)
        return {"apiVersion": API_VERSION, "kind": "QuotaList", "items": fields.pop("rows"), **fields}


async def seen_quotas(answers: Answers, viewer: Viewer, namespace: str) -> NamespaceQuotas | None:
    """Return the quotas of a namespace whose bindings the viewer may list; None if they may not list quotas there."""
    if not namespace or not await viewer.sees_quotas(namespace):
        return None
    found = await answers.quotas(namespace)
    return _UNREAD if found.problem and not viewer.sees_all else found
