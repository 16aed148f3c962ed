"""Questions about one binding: why it is where it is, and what would bring it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.names import unknown
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.text_tables import first_rows
from karmada_advisor.web import charts
from karmada_advisor.web.handlers.responder import COMPLETED_NAMES, HandlerGroup, Routes, fields_by
from karmada_advisor.web.history import History
from karmada_advisor.web.jobs import BusyError, TooLongError
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.request_query import RequestRefusedError, number_of
from karmada_advisor.web.seen import SeenExplanation, SeenWhyNot, seen_explanation, seen_why_not
from karmada_advisor.web.state import BindingRow, PageState
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.model import WhyNot
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.http_server.messages import Document, HttpRequest

_CLUSTER_REFUSED: Final = (
    "You may ask about the clusters on which the binding is and those that its placement names. "
    "Others are for those who may list clusters.cluster.karmada.io"
)
_NEAREST_OF: Final = 2_000
"""Names among which the nearest one is looked for; among more it would take seconds."""


class BindingHandlers(HandlerGroup):
    """Questions about one binding."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        routes: Routes = {}
        for name in ("{name}", "{namespace}/{name}"):
            routes |= {
                f"/b/{name}": page(self._binding_page, is_scoped=True),
                f"/why-not/{name}": page(self._why_not_page, is_scoped=True),
                f"/v1/explain/{name}": data(fields_by(self._explained), is_scoped=True),
                f"/v1/why-not/{name}": data(fields_by(self._answered), is_scoped=True),
                f"/v1/history/{name}": data(self._history_data, is_scoped=True),
            }
        return routes

    async def _explanation(self, request: HttpRequest) -> Explanation:
        state, key = await self._state_and_key(request)
        view = await self._answers.process_view(key)
        return await self._computer.answer(
            (state.number, "explain", key, _fingerprint(view)),
            lambda: self._answers.explain(state, key, view),
            requester=request.requester,
        )

    async def _state_and_key(self, request: HttpRequest) -> tuple[PageState, BindingKey]:
        """Return objects with the binding of a path, and its key. Raises RequestRefusedError: it does not exist."""
        state = self._answers.state
        key = self._key_of(state, request)
        is_new = key not in state.contents.manifests
        return (await self._answers.refresh() if is_new else state), key

    async def _check(self, request: HttpRequest) -> None:
        await self._responder.viewer(request).check_namespace(request.path.get("namespace", ""))

    async def _explained(self, request: HttpRequest) -> Explanation | SeenExplanation:
        """Return why a binding is where it is, as far as the viewer may see it."""
        await self._check(request)
        if self._responder.viewer(request).sees_all:
            return await self._explanation(request)
        sees = self._responder.sees_clusters_of(request, self._stored(request).key)
        with _without_details():
            return seen_explanation(await self._explanation(request), sees)

    def _stored(self, request: HttpRequest) -> BindingRow:
        """Return the binding of a path as it is stored. Raises RequestRefusedError: it does not exist."""
        state = self._answers.state
        found = state.contents.index.get(self._key_of(state, request))
        if found is None:  # it has gone in the meantime
            raise RequestRefusedError(404, "the binding does not exist any more")
        return state.contents.row(found)

    async def _stored_page(self, request: HttpRequest) -> Document:
        """Return what is stored in a binding, and why, for those who may not see all that it is decided by."""
        await self._check(request)
        row = self._stored(request)
        history = await self._history(request)
        values: dict[str, Any] = {"row": row, "history": history, "seen": None, "problem": ""}
        try:
            values["seen"] = await self._explained(request)
        except (BusyError, NoAnswerError) as problem:  # what is stored is shown all the same
            values["problem"] = str(problem)
        return self._responder.rendered(
            "stored.html", request, values, data=_data_path(request, "/b", "/v1/explain")
        )

    async def _binding_page(self, request: HttpRequest) -> Document:
        if not self._responder.viewer(request).sees_all:
            return await self._stored_page(request)
        explanation = await self._explanation(request)
        rows = explanation.clusters
        is_all = request.query.get("rows") == "all" or len(rows) <= ROWS
        shown = rows if is_all else first_rows(rows, ROWS)
        plugins = sorted({cell.plugin for row in rows for cell in row.refusals if cell.plugin})
        scores = list({cell.plugin: cell.weight for row in rows for cell in row.scores}.items())
        values = {
            "row": self._stored(request),
            "history": await self._history(request),
            "explanation": explanation,
            "binding": explanation.binding,
            "funnel": charts.funnel(explanation),
            "bars": charts.capacity_bars(shown),
            "rows": shown,
            "hidden": len(rows) - len(shown),
            "filters": plugins,
            "scores": scores,
            "suggested": [row.name for row in rows if not row.is_target][:COMPLETED_NAMES],
            "lost_with": self._answers.survival.of_binding(self._key_of(self._answers.state, request)),
        }
        return self._responder.rendered(
            "binding.html", request, values, data=_data_path(request, "/b", "/v1/explain")
        )

    async def _history(self, request: HttpRequest) -> History:
        """Return what has happened to a binding that the viewer may see, with its Events if they may list these."""
        state, viewer = self._answers.state, self._responder.viewer(request)
        key = self._key_of(state, request)
        found = await self._answers.history(state, key, with_events=await viewer.sees_events(key.namespace))
        if viewer.sees_all or not found.problem:
            return found
        return History(found.entries, found.has_events, "Events cannot be read at the moment")

    async def _history_data(self, request: HttpRequest) -> Mapping[str, Any]:
        await self._check(request)
        return document_fields(await self._history(request))

    async def _why_not(self, request: HttpRequest) -> WhyNot:
        state, key = await self._state_and_key(request)
        cluster = request.query.get("cluster", "").strip()
        clusters = state.contents.cluster_by_name
        if cluster and cluster not in clusters:
            raise RequestRefusedError(404, unknown(f"cluster {cluster}", cluster, clusters))
        question = WhyNotQuestion.of(
            cluster,
            placed=not cluster,
            off=request.query.get("goal") == "off",
            replicas=number_of(request, "replicas", 1),
        )
        as_new = request.query.get("as-new") == "true"
        return await self._computer.answer(
            (state.number, "why-not", key, question, as_new),
            lambda: self._answers.why_not(state, key, question, as_new=as_new),
            requester=request.requester,
        )

    async def _answered(self, request: HttpRequest) -> WhyNot | SeenWhyNot:
        """Return the answer to a question about a binding, as far as the viewer may see it.

        Only questions about clusters that they may see are answered, and none with an amount: whether it fits would tell,
        question by question, how much is free on a cluster.
        """
        await self._check(request)
        if self._responder.viewer(request).sees_all:
            return await self._why_not(request)
        sees = self._responder.sees_clusters_of(request, self._stored(request).key)
        cluster = request.query.get("cluster", "").strip()
        if cluster and not sees(cluster):
            raise RequestRefusedError(403, _CLUSTER_REFUSED)
        if request.query.get("replicas", "1") not in {"", "1"} or "as-new" in request.query:
            raise RequestRefusedError(403, "replicas and as-new are for those who may list everything")
        if cluster and cluster not in self._answers.state.contents.cluster_by_name:
            raise RequestRefusedError(404, f"cluster {cluster} does not exist")
        with _without_details():
            return seen_why_not(await self._why_not(request), sees)

    async def _why_not_page(self, request: HttpRequest) -> Document:
        found = await self._answered(request)
        if isinstance(found, SeenWhyNot):
            values: dict[str, object] = {"found": found, "row": self._stored(request)}
            return self._responder.rendered(
                "seen_why_not.html", request, values, data=_data_path(request, "/why-not", "/v1/why-not")
            )
        here = [
            each
            for each in found.remedies
            if each.uses_cluster or not found.cluster or found.goal.type.value != "onCluster"
        ]
        others = [each for each in found.remedies if each not in here]
        values = {
            "found": found,
            "groups": [(here, True), (others, False)],
            "suggested": self._responder.completed_names(),
            "policy": self._stored(request).policy,
        }
        return self._responder.rendered(
            "why_not.html", request, values, data=_data_path(request, "/why-not", "/v1/why-not")
        )

    def _key_of(self, state: PageState, request: HttpRequest) -> BindingKey:
        """Return the binding of a path. Raises RequestRefusedError: it does not exist."""
        namespace, name = request.path.get("namespace", ""), request.path["name"]
        key = BindingKey(RESOURCE_BINDING if namespace else CLUSTER_RESOURCE_BINDING, namespace, name)
        index = state.contents.index
        if index.get(key) is None:
            rows = index.of_namespace(namespace)
            if not rows and self._responder.viewer(request).sees_all:
                rows = index.rows
            names = (str(each.key) for each in rows) if len(rows) <= _NEAREST_OF else ()
            raise RequestRefusedError(404, unknown(key.display, str(key), names))
        return key


@contextmanager
def _without_details() -> Iterator[None]:
    """Let no text out that says why there is no answer: it may name anything."""
    try:
        yield
    except (NoAnswerError, TooLongError):
        raise NoAnswerError(
            "No reasons can be given at the moment; an operator of the page sees why"
        ) from None


def _data_path(request: HttpRequest, before: str, after: str) -> str:
    """Return the target of a request with another beginning."""
    return after + request.target.removeprefix(before)


def _fingerprint(view: Any) -> str:
    """Return what makes two answers of the running scheduler different, apart from the time until the next decision."""
    return "" if view is None else repr((view.record, view.queue_state, view.problem))
