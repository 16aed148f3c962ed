"""What a change would do, and the loss of a cluster, zone or region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.plan_text import plan_markdown
from karmada_advisor.views.survive_document import heat_map
from karmada_advisor.views.survive_text import capacity_of, fleet_remedies, groups, remedies_of, remedy_words
from karmada_advisor.web.answer_worker import BusyError, TooLongError
from karmada_advisor.web.background import LossView
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, completed_names, judged
from karmada_advisor.web.pages import domain_path
from karmada_advisor.web.request_query import ROWS, AskedChange, RequestRefusedError, change_of, loss_of
from karmada_advisor.web.state import PageState
from karmada_advisor.whatif.plan.model import Effect, Plan
from karmada_advisor.whatif.survive.domains import kind_order
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossRemedy
from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest
from karmada_scheduler.api.names import unknown

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


_QUOTAS_OF: Final = 20
"""Namespaces of a viewer whose quotas are read for a plan; with more, it says that they were not read."""


class WhatIfHandlers(HandlerGroup):
    """Plans of changes, and the losses of the fleet."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page = self._responder.page
        return self.posts() | {
            "/survive": page(self._survive_page),
            "/v1/survive": self._responder.data(self._survive_data),
            "/survive/{kind}/{name}": page(self._lost_page),
        }

    def posts(self) -> Routes:
        """Return the handlers of plans, whose changes may be too long for an address, by path."""
        return {
            "/plan": self._responder.page(self._plan_page, is_scoped=True),
            "/v1/plan": self._responder.data(self._plan_data, is_scoped=True),
        }

    async def _survive_page(self, request: HttpRequest) -> Document:
        survival, loss = self._answers.background.survival, loss_of(request)
        view = survival.views.get(loss)
        values: dict[str, Any] = {"survival": survival, "loss": loss}
        if view is not None:
            report = view.report
            values |= {
                "report": report,
                "heat_map": heat_map(report, partial(domain_path, loss=loss)),
                "kinds": sorted({domain.kind for domain in report.domains}, key=kind_order),
                "settings": _words(fleet_remedies(report)),
            }
        return self._responder.rendered(
            "survive.html", request, self._answers.state, values, data=f"/v1/survive{_query_of(loss)}"
        )

    async def _survive_data(self, request: HttpRequest) -> Mapping[str, Any]:
        return document_fields(self._losses(request).report)

    def _losses(self, request: HttpRequest) -> LossView:
        """Return the last report about losses in a world.

        Raises:
            BusyError: There is none yet.
            RequestRefusedError: There is no such world.
        """
        survival = self._answers.background.survival
        view = survival.views.get(loss_of(request))
        if view is None:
            raise BusyError(survival.problem or "the losses are being decided; try again in a moment")
        return view

    async def _lost_page(self, request: HttpRequest) -> Document:
        view, loss = self._losses(request), loss_of(request)
        kind, name = request.path["kind"], request.path["name"]
        found = view.domain(kind, name)
        if found is None:
            known = [lost.name for lost in view.report.domains if lost.kind == kind]
            raise RequestRefusedError(404, unknown(f"{kind} {name}", name, known))
        number, domain = found
        shown = groups(view.in_domain(number), view.report.settings)
        values = {
            "survival": self._answers.background.survival,
            "loss": loss,
            "domain": domain,
            "groups": [(policy, _words(remedies_of(view.report, number, policy))) for policy in shown],
            "capacity": domain.overcommitted[:ROWS],
            "more_capacity": _words(capacity_of(view.report, number)),
        }
        return self._responder.rendered(
            "survive_domain.html", request, self._answers.state, values, data=f"/v1/survive{_query_of(loss)}"
        )

    async def _answered(self, request: HttpRequest, state: PageState) -> Plan | None:
        """Return the plan that is asked for; None without a question."""
        change = change_of(request)
        if change == AskedChange():
            return None
        if state.scope is not None and len(own := state.scope.namespaces - {""}) <= _QUOTAS_OF:
            state = await self._responder.with_quotas(request, state, own)
        return await self._worker.answer(
            (state.number, state.scope, "plan", change, state.quotas),
            lambda: self._answers.plan(state, change),
            requester=request.requester,
        )

    async def _plan_page(self, request: HttpRequest) -> Document:
        problem, found, state = "", None, await self._responder.with_clusters(request)
        try:
            found = await self._answered(request, state)
        except (NoAnswerError, TooLongError) as error:
            problem = str(error)
        values: dict[str, Any] = {
            "problem": problem,
            "plan": found,
            "suggested": completed_names(state),
        }
        if found is not None:
            loads = found.capacity[0].clusters if found.capacity else ()
            values |= {
                "classes": [(effect, rows) for effect in _SHOWN_FIRST if (rows := found.of(effect))],
                "loads": loads[:ROWS],
                "most": max((max(load.before, load.after) for load in loads), default=0),
                "markdown": plan_markdown(found),
            }
        data = f"/v1{request.target}" if found is not None and not request.form else ""
        return self._responder.rendered("plan.html", request, state, values, data=data)

    async def _plan_data(self, request: HttpRequest) -> Mapping[str, Any]:
        state = await self._responder.with_clusters(request)
        found = await self._answered(request, state)
        if found is None:
            raise RequestRefusedError(400, "name a change: policy, without, cordon, uncordon or scale")
        return judged(document_fields(found), state)


def _query_of(loss: Loss) -> str:
    return "" if loss is Loss.GONE else f"?loss={loss.value}"


def _words(remedies: Iterable[LossRemedy]) -> list[str]:
    return [remedy_words(remedy) for remedy in remedies]
