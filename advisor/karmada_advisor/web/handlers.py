"""The requests: each path has a page and the same as JSON below ``/v1``."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import orjson

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import API_VERSION, Explanation, PolicyRef
from karmada_advisor.explain.names import unknown
from karmada_advisor.plan.model import Effect, Plan
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.state.model import StateName
from karmada_advisor.survive.domains import CLUSTER, kind_order
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import LossRemedy
from karmada_advisor.views.fields import (
    document_fields,
    fields_of,
)
from karmada_advisor.views.plan_markdown import plan_markdown
from karmada_advisor.views.survive_document import heat_map
from karmada_advisor.views.survive_words import (
    capacity_of,
    fleet_remedies,
    groups,
    remedies_of,
    remedy_words,
)
from karmada_advisor.web import charts
from karmada_advisor.web.answers import Answers, AskedChange, Question, summary
from karmada_advisor.web.computing import BusyError, Computer, TooLongError
from karmada_advisor.web.decisions import SHOWN, DecisionRow
from karmada_advisor.web.fleet import (
    SORTS,
    ClusterFilter,
    ClusterShown,
    cluster_shown,
    clusters_of,
    fleet_of,
    sorted_clusters,
)
from karmada_advisor.web.index import Filter, IndexedBinding
from karmada_advisor.web.pages import Pages, domain_path
from karmada_advisor.web.paging import (
    ROWS,
    CursorError,
    CursorPage,
    bindings_page,
    clusters_page,
)
from karmada_advisor.web.request_query import (
    RequestRefusedError,
    change_of,
    is_wanted,
    loss_of,
    number_of,
    page_of,
)
from karmada_advisor.web.state import PageState
from karmada_advisor.web.survival import LossView
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.http_server.messages import AsyncHandler, Document, Handler, HttpRequest, HttpResponse

_COMPLETED_NAMES: Final = 300
"""Clusters whose names a box completes; in larger fleets the list would be most of the page."""

_OVERVIEW_NAMES: Final = 10
"""Bindings of a group that the overview names; the list of bindings has all."""

_NEAREST_OF: Final = 2_000
"""Names among which the nearest one is looked for; among more it would take seconds."""

_RETRY_SECONDS: Final = 2
"""When a request that was refused because of others is sent again."""

_STREAM_SECONDS: Final = 300
_KEEPALIVE: Final = 15

Page = Callable[[HttpRequest], Awaitable[Document]]
T = TypeVar("T")


class Handlers:
    """All paths."""

    def __init__(self, answers: Answers, computer: Computer, pages: Pages) -> None:
        """Answer requests from ``answers``; ``computer`` runs the functions that take decisions."""
        self._answers = answers
        self._computer = computer
        self._pages = pages

    def routes(self) -> Mapping[str, Handler | AsyncHandler]:
        """Return the handlers by path."""
        page, data = self._page, self._data
        routes: dict[str, Handler | AsyncHandler] = {
            "/": page(self._fleet_page),
            "/clusters": page(self._clusters_page),
            "/clusters/{cluster}": page(self._cluster_page),
            "/clusters/{cluster}/why-not": page(self._why_not_cluster_page),
            "/bindings": page(self._bindings_page),
            "/decisions": page(self._decisions_page),
            "/survive": page(self._survive_page),
            "/survive/{kind}/{name}": page(self._lost_page),
            "/v1/survive": data(self._survive_data),
            "/plan": page(self._plan_page),
            "/v1/plan": data(self._plan_data),
            "/v1/fleet": data(self._fleet_data),
            "/v1/clusters": data(self._clusters_data),
            "/v1/clusters/{cluster}": data(self._cluster_data),
            "/v1/clusters/{cluster}/why-not": data(_fields(self._why_not_cluster)),
            "/v1/overview": data(self._overview_data),
            "/v1/bindings": data(self._bindings_data),
            "/v1/decisions": data(self._decisions_data),
            "/v1/events": self._events,
            "/healthz": _healthy,
            "/readyz": self._ready,
            "/metrics": self._metrics,
        }
        for name in ("{name}", "{namespace}/{name}"):
            routes[f"/b/{name}"] = page(self._binding_page)
            routes[f"/why-not/{name}"] = page(self._why_not_page)
            routes[f"/v1/explain/{name}"] = data(_fields(self._explanation))
            routes[f"/v1/why-not/{name}"] = data(_fields(self._why_not))
        for file, (content, type_) in self._pages.static.items():
            routes[f"{self._pages.static_path}/{file}"] = partial(_static, content, type_)
        icon, type_ = self._pages.static["icon.svg"]
        routes["/favicon.ico"] = partial(_static, icon, type_)
        return routes

    def posts(self) -> Mapping[str, AsyncHandler]:
        """Return the handlers of questions that are too long for an address, by path."""
        return {"/plan": self._page(self._plan_page), "/v1/plan": self._data(self._plan_data)}

    async def _ready(self, _: HttpRequest) -> Document:
        failure = self._answers.progress or self._answers.state.failure
        return Document((failure or "ok").encode(), 503 if failure else 200, "text/plain")

    async def _metrics(self, _: HttpRequest) -> Document:
        return Document(self._answers.metrics, content_type="text/plain; version=0.0.4")

    def problem_page(self, status: int, text: str) -> bytes:
        """Return the page of a refusal."""
        return self._pages.render(
            "problem.html", self._common(HttpRequest()) | {"status": status, "text": text}
        )

    def _page(self, handler: Page) -> AsyncHandler:
        async def handle(request: HttpRequest) -> Document:
            self._answers.seen()
            try:
                self._check_progress()
                return await handler(request)
            except _PROBLEMS as problem:
                status = _status_of(problem)
                values = self._common(request) | {"status": status, "text": str(problem)}
                return _problem(_html(self._pages.render("problem.html", values), status), request)

        return handle

    def _data(self, handler: Callable[[HttpRequest], Awaitable[Mapping[str, Any]]]) -> AsyncHandler:
        async def handle(request: HttpRequest) -> Document:
            self._answers.seen()
            try:
                self._check_progress()
                return _json(await handler(request))
            except _PROBLEMS as problem:
                found = _json({"error": {"message": str(problem)}}, _status_of(problem))
                return _problem(found, request)

        return handle

    def _check_progress(self) -> None:
        """Refuse a request until the objects are complete: a part of them would be a wrong answer."""
        if progress := self._answers.progress:
            raise BusyError(f"The page is starting: {progress}. It appears by itself.")

    def _common(self, request: HttpRequest, *, data: str = "") -> dict[str, Any]:
        """Return what every page shows.

        Args:
            request: The request.
            data: The path of the same as JSON; "" if there is none.
        """
        state = self._answers.state
        scope = request.query.get("namespace", "") if request.target.startswith("/bindings") else ""
        return {
            "path": request.target.partition("?")[0],
            "given": {**request.query, **request.form},
            "data": data,
            "source": state.source,
            "read_at": state.read_at,
            "problems": [*filter(None, (state.failure,)), *state.problems, *self._answers.problems],
            "state_number": state.number,
            "stamp": self._stamp(scope),
            "scope": scope,
        }

    def _stamp(self, namespace: str = "") -> str:
        """Return what differs after every change of the objects, causes and problems, for those who wait for one.

        Args:
            namespace: For those who wait for a change in a namespace only; "" for all changes.
        """
        state = self._answers.state
        if namespace:
            problems = (state.failure, tuple(state.problems), self._answers.problems)
            return f"{state.contents.index.stamp(namespace):x}-{hash(problems) & 0xFFFFFFFF:x}"
        made = self._answers.survival.made_at
        shown = (self._answers.causes, state.failure, tuple(state.problems), self._answers.problems, made)
        return f"{state.number}-{hash(shown) & 0xFFFFFFFF:x}"

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
        return self._rendered("fleet.html", request, values, data="/v1/fleet")

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
            self._answers.state, self._answers.causes, most_groups=ROWS, most_names=_OVERVIEW_NAMES
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
        return self._rendered("clusters.html", request, values, data=f"/v1{request.target}")

    async def _clusters_data(self, request: HttpRequest) -> Mapping[str, Any]:
        _, _, shown = self._wanted_clusters(request)
        return _list_fields("FleetClusterList", clusters_page(shown, page_of(request)), _cluster_fields)

    async def _cluster_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        cluster = self._cluster_of(state, request)
        paging = bindings_page(state.contents.index.on(cluster.name), page_of(request))
        values = {
            "cluster": cluster,
            "rows": [state.contents.row(each) for each in paging.rows],
            "paging": paging,
            "labels": self._labels(cluster.name),
        }
        values["lost"] = self._answers.survival.domain(CLUSTER, cluster.name)
        return self._rendered("cluster.html", request, values, data=f"/v1{request.target.partition('?')[0]}")

    def _labels(self, name: str) -> Mapping[str, str]:
        return self._answers.state.contents.cluster_by_name[name].labels

    async def _cluster_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        shown = self._cluster_of(state, request)
        paging = bindings_page(state.contents.index.on(shown.name), page_of(request))
        return {
            "apiVersion": API_VERSION,
            "kind": "FleetCluster",
            **_cluster_fields(shown),
            "labels": dict(self._labels(shown.name)),
            "holds": [str(each.key) for each in paging.rows],
            "after": paging.after,
        }

    def _cluster_of(self, state: PageState, request: HttpRequest) -> ClusterShown:
        name = request.path["cluster"]
        found = state.contents.cluster_by_name.get(name)
        if found is None:
            raise RequestRefusedError(404, unknown(f"cluster {name}", name, state.contents.cluster_by_name))
        return cluster_shown(state.contents, found)

    async def _survive_page(self, request: HttpRequest) -> Document:
        survival, loss = self._answers.survival, loss_of(request)
        view = survival.views.get(loss)
        values: dict[str, Any] = {"survival": survival, "loss": loss}
        if view is not None:
            report = view.report
            values |= {
                "report": report,
                "heat_map": heat_map(report, partial(domain_path, loss=loss)),
                "kinds": sorted({each.kind for each in report.domains}, key=kind_order),
                "settings": _words(fleet_remedies(report)),
            }
        return self._rendered("survive.html", request, values, data=f"/v1/survive{_query_of(loss)}")

    async def _survive_data(self, request: HttpRequest) -> Mapping[str, Any]:
        return document_fields(self._losses(request).report)

    def _losses(self, request: HttpRequest) -> LossView:
        """Return the last report about losses in a world.

        Raises:
            BusyError: There is none yet.
            RequestRefusedError: There is no such world.
        """
        survival = self._answers.survival
        view = survival.views.get(loss_of(request))
        if view is None:
            raise BusyError(survival.problem or "the losses are being decided; try again in a moment")
        return view

    async def _lost_page(self, request: HttpRequest) -> Document:
        view, loss = self._losses(request), loss_of(request)
        kind, name = request.path["kind"], request.path["name"]
        found = view.domain(kind, name)
        if found is None:
            known = [each.name for each in view.report.domains if each.kind == kind]
            raise RequestRefusedError(404, unknown(f"{kind} {name}", name, known))
        number, domain = found
        shown = groups(view.in_domain(number), view.report.settings)
        values = {
            "survival": self._answers.survival,
            "loss": loss,
            "domain": domain,
            "groups": [(each, _words(remedies_of(view.report, number, each))) for each in shown],
            "capacity": domain.overcommitted[:ROWS],
            "more_capacity": _words(capacity_of(view.report, number)),
        }
        return self._rendered("survive_domain.html", request, values, data=f"/v1/survive{_query_of(loss)}")

    async def _why_not_cluster(self, request: HttpRequest) -> WhyNotCluster:
        state = self._answers.state
        cluster = self._cluster_of(state, request).name
        return await self._computer.answer(
            (state.number, "why-not cluster", cluster),
            lambda: self._answers.why_not_cluster(state, cluster),
            requester=request.requester,
        )

    async def _why_not_cluster_page(self, request: HttpRequest) -> Document:
        found = await self._why_not_cluster(request)
        values = {"found": found, "largest": max((each.count for each in found.groups), default=0)}
        return self._rendered(
            "why_not_cluster.html", request, values, data=f"/v1{request.target.partition('?')[0]}"
        )

    def _filtered(self, request: HttpRequest, state: PageState) -> tuple[Filter, CursorPage[IndexedBinding]]:
        wanted = Filter(
            text=request.query.get("q", "").strip(),
            namespace=request.query.get("namespace", ""),
            policy=request.query.get("policy", "").strip(),
            state=request.query.get("state", ""),
            reason=request.query.get("reason", ""),
            cluster=request.query.get("cluster", "").strip(),
        )
        return wanted, bindings_page(state.contents.index.select(wanted), page_of(request))

    async def _bindings_page(self, request: HttpRequest) -> Document:
        state = self._answers.state
        wanted, paging = self._filtered(request, state)
        counts = state.contents.index.counts(wanted.namespace)
        values = {
            "wanted": wanted,
            "rows": [state.contents.row(each) for each in paging.rows],
            "paging": paging,
            "all": counts.total(),
            "namespaces": state.contents.index.namespaces,
            "states": [each.value for each in StateName],
            "counts": counts,
        }
        return self._rendered("bindings.html", request, values, data=f"/v1{request.target}")

    async def _bindings_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = self._answers.state
        _, paging = self._filtered(request, state)
        return _list_fields("BindingList", paging, lambda row: fields_of(state.contents.row(row)))

    async def _decisions_page(self, request: HttpRequest) -> Document:
        decisions = await self._answers.decisions(self._answers.state)
        rows = self._wanted(decisions.rows, request)
        values = {
            "decisions": decisions,
            "rows": rows,
            "namespaces": sorted({row.namespace for row in decisions.rows if row.namespace}),
            "reasons": sorted({row.reason for row in decisions.rows if row.reason}),
        }
        return self._rendered("decisions.html", request, values, data=f"/v1{request.target}")

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

    async def _explanation(self, request: HttpRequest) -> Explanation:
        state = self._answers.state
        key = self._key_of(state, request)
        view = await self._answers.process_view(key)
        return await self._computer.answer(
            (state.number, "explain", key, _fingerprint(view)),
            lambda: self._answers.explain(state, key, view),
            requester=request.requester,
        )

    def _key_of(self, state: PageState, request: HttpRequest) -> BindingKey:
        namespace, name = request.path.get("namespace", ""), request.path["name"]
        key = BindingKey(RESOURCE_BINDING if namespace else CLUSTER_RESOURCE_BINDING, namespace, name)
        index = state.contents.index
        if index.get(key) is None:
            rows = index.of_namespace(namespace) or index.rows
            names = (str(each.key) for each in rows) if len(rows) <= _NEAREST_OF else ()
            raise RequestRefusedError(404, unknown(key.display, str(key), names))
        return key

    async def _binding_page(self, request: HttpRequest) -> Document:
        explanation = await self._explanation(request)
        rows = explanation.clusters
        shown = rows if request.query.get("rows") == "all" else _first_rows(rows)
        plugins = sorted({cell.plugin for row in rows for cell in row.refusals if cell.plugin})
        scores = list({cell.plugin: cell.weight for row in rows for cell in row.scores}.items())
        values = {
            "explanation": explanation,
            "binding": explanation.binding,
            "funnel": charts.funnel(explanation),
            "bars": charts.capacity_bars(shown),
            "rows": shown,
            "hidden": len(rows) - len(shown),
            "filters": plugins,
            "scores": scores,
            "suggested": self._suggested(explanation),
            "lost_with": self._answers.survival.of_binding(self._key_of(self._answers.state, request)),
        }
        return self._rendered("binding.html", request, values, data=_data_path(request, "/b", "/v1/explain"))

    def _suggested(self, explanation: Explanation) -> list[str]:
        """Return the names that the box for why-not completes: clusters without replicas, the nearest to get some first."""
        names = [row.name for row in explanation.clusters if not row.is_target]
        return names[:_COMPLETED_NAMES]

    async def _why_not(self, request: HttpRequest) -> WhyNot:
        state = self._answers.state
        key = self._key_of(state, request)
        cluster = request.query.get("cluster", "").strip()
        clusters = state.contents.cluster_by_name
        if cluster and cluster not in clusters:
            raise RequestRefusedError(404, unknown(f"cluster {cluster}", cluster, clusters))
        question = Question(
            cluster,
            number_of(request, "replicas", 1),
            off=bool(cluster) and request.query.get("goal") == "off",
            as_new=request.query.get("as-new") == "true",
        )
        return await self._computer.answer(
            (state.number, "why-not", key, question),
            lambda: self._answers.why_not(state, key, question),
            requester=request.requester,
        )

    async def _why_not_page(self, request: HttpRequest) -> Document:
        found = await self._why_not(request)
        here = [
            each
            for each in found.remedies
            if each.uses_cluster or not found.cluster or found.goal.type.value != "onCluster"
        ]
        others = [each for each in found.remedies if each not in here]
        values = {
            "found": found,
            "groups": [(here, True), (others, False)],
            "suggested": sorted(self._answers.state.contents.cluster_by_name)[:_COMPLETED_NAMES],
            "policy": self._policy_of(request),
        }
        return self._rendered(
            "why_not.html", request, values, data=_data_path(request, "/why-not", "/v1/why-not")
        )

    def _policy_of(self, request: HttpRequest) -> PolicyRef | None:
        state = self._answers.state
        found = state.contents.index.get(self._key_of(state, request))
        return None if found is None else policy_of(found.binding.annotations)

    async def _plan(self, request: HttpRequest) -> Plan | None:
        """Return the plan that is asked for, None without a question."""
        change = change_of(request)
        if change == AskedChange():
            return None
        state = self._answers.state
        return await self._computer.answer(
            (state.number, "plan", change),
            lambda: self._answers.plan(state, change),
            requester=request.requester,
        )

    async def _plan_page(self, request: HttpRequest) -> Document:
        problem, plan = "", None
        try:
            plan = await self._plan(request)
        except (NoAnswerError, TooLongError) as error:
            problem = str(error)
        classes = [(each, plan.of(each)) for each in _SHOWN_FIRST] if plan is not None else []
        loads = plan.capacity[0].clusters if plan is not None and plan.capacity else ()
        values = {
            "plan": plan,
            "problem": problem,
            "classes": [(effect, found) for effect, found in classes if found],
            "loads": loads[:ROWS],
            "most": max((max(each.before, each.after) for each in loads), default=0),
            "markdown": "" if plan is None else plan_markdown(plan),
            "suggested": sorted(self._answers.state.contents.cluster_by_name)[:_COMPLETED_NAMES],
        }
        data = f"/v1{request.target}" if plan is not None and not request.form else ""
        return self._rendered("plan.html", request, values, data=data)

    async def _plan_data(self, request: HttpRequest) -> Mapping[str, Any]:
        plan = await self._plan(request)
        if plan is None:
            raise RequestRefusedError(400, "name a change: policy, without, cordon, uncordon or scale")
        return document_fields(plan)

    def _rendered(self, name: str, request: HttpRequest, values: Mapping[str, Any], *, data: str) -> Document:
        return _html(self._pages.render(name, {**self._common(request, data=data), **values}))

    def _events(self, request: HttpRequest) -> HttpResponse:
        """Return a stream with an event whenever the objects or the decisions changed, once a second at most.

        ``since`` is the stamp of the page that is shown; another one now is a change. With ``namespace``, changes of
        other namespaces cause no event.
        """
        parts = self._event_parts(request.query.get("since", ""), request.query.get("namespace", ""))
        return HttpResponse(parts, content_type="text/event-stream", is_stream=True)

    async def _event_parts(self, since: str, namespace: str) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        seen = await self._shown(namespace)
        seen = (since or seen[0], *seen[1:])
        quiet = 0
        for _ in range(_STREAM_SECONDS):
            self._answers.seen()
            now = await self._shown(namespace)
            if now != seen:
                yield b"id: %s\nevent: changed\ndata: changed\n\n" % now[0].encode()
                seen, quiet = now, 0
            elif quiet == _KEEPALIVE:
                quiet = 0
                yield b":\n\n"
            quiet += 1
            await asyncio.sleep(1)

    async def _shown(self, namespace: str) -> tuple[str, object, object]:
        """Return what a stream compares: the stamp, and without a namespace the last decision and the scheduler."""
        if namespace:
            return self._stamp(namespace), None, None
        decisions = await self._answers.decisions(self._answers.state)
        return self._stamp(), decisions.rows[:1], decisions.process


_SHOWN_FIRST: Final = (
    Effect.STUCK,
    Effect.UNPLACED,
    Effect.UNDECIDED,
    Effect.MOVED,
    Effect.PLACED,
    Effect.HELD,
    Effect.LATENT,
    Effect.DEFERRED,
    Effect.DELETED,
)


def _fields(
    answer: Callable[[HttpRequest], Awaitable[Explanation | WhyNot | WhyNotCluster]],
) -> Callable[[HttpRequest], Awaitable[Mapping[str, Any]]]:
    """Return a handler of the answer as data."""

    async def fields(request: HttpRequest) -> Mapping[str, Any]:
        return document_fields(await answer(request))

    return fields


def _query_of(loss: Loss) -> str:
    return "" if loss is Loss.GONE else f"?loss={loss.value}"


def _words(remedies: Iterable[LossRemedy]) -> list[str]:
    return [remedy_words(each) for each in remedies]


def _data_path(request: HttpRequest, before: str, after: str) -> str:
    """Return the target of a request with another beginning."""
    return after + request.target.removeprefix(before)


def _fingerprint(view: Any) -> str:
    """Return what makes two answers of the running scheduler different, apart from the time until the next decision."""
    return "" if view is None else repr((view.record, view.queue_state, view.problem))


def _first_rows(rows: Any) -> Any:
    """Return the rows that are shown at first: targets and candidates, then others."""
    if len(rows) <= ROWS:
        return rows
    targets = [row for row in rows if row.is_target][:ROWS]
    others = [row for row in rows if not row.is_target][: ROWS - len(targets)]
    kept = {row.name for row in (*targets, *others)}
    return [row for row in rows if row.name in kept]


def _list_fields(kind: str, paging: CursorPage[T], fields: Callable[[T], Any]) -> Mapping[str, Any]:
    """Return a part of a list as data, with the cursor of the next part; "" at the end."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "count": paging.all,
        "after": paging.after,
        "items": [fields(each) for each in paging.rows],
    }


def _cluster_fields(shown: ClusterShown) -> dict[str, Any]:
    return {**fields_of(shown), "state": shown.state.value}


_PROBLEMS: Final = (RequestRefusedError, CursorError, BusyError, NoAnswerError, TooLongError)


def _status_of(problem: Exception) -> int:
    if isinstance(problem, RequestRefusedError):
        return problem.status
    if isinstance(problem, CursorError):
        return 400
    return 503 if isinstance(problem, BusyError) else 422


def _problem(document: Document, request: HttpRequest) -> Document:
    """Return the document of a problem: the browser asks again by itself where the answer comes later."""
    if document.status != 503:
        return document
    again = {"Retry-After": str(_RETRY_SECONDS)}
    refresh = {"Refresh": str(_RETRY_SECONDS)} if request.method == "GET" else {}
    return replace(document, headers=again | refresh)


def _html(body: bytes, status: int = 200) -> Document:
    return Document(body, status, "text/html")


def _json(fields: Mapping[str, Any], status: int = 200) -> Document:
    return Document(orjson.dumps(fields, option=orjson.OPT_INDENT_2) + b"\n", status)


async def _healthy(_: HttpRequest) -> Document:
    return Document(b"ok", content_type="text/plain")


async def _static(content: bytes, type_: str, _: HttpRequest) -> Document:
    return Document(
        content, content_type=type_, headers={"Cache-Control": "private, max-age=31536000, immutable"}
    )
