"""What a change would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.plan_text import plan_markdown
from karmada_advisor.web.answer_worker import TooLongError
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes, completed_names, judged
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.request_query import AskedChange, RequestRefusedError, change_of
from karmada_advisor.web.state import PageState
from karmada_advisor.whatif.plan.model import Effect, Plan
from karmada_pyscheduler.http_server.messages import Document, HttpRequest

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


class PlanHandlers(HandlerGroup):
    """Plans of changes."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/plan": page(self._plan_page, is_scoped=True),
            "/v1/plan": data(self._plan_data, is_scoped=True),
        }

    async def _state(self, request: HttpRequest) -> PageState:
        """Return what the viewer may read, with clusters."""
        state = await self._responder.state(request)
        self._responder.check_clusters(state)
        return state

    async def _answered(self, request: HttpRequest, state: PageState) -> Plan | None:
        """Return the plan that is asked for; None without a question."""
        change = change_of(request)
        if change == AskedChange():
            return None
        return await self._worker.answer(
            (state.number, state.scope, "plan", change),
            lambda: self._answers.plan(state, change),
            requester=request.requester,
        )

    async def _plan_page(self, request: HttpRequest) -> Document:
        problem, found, state = "", None, await self._state(request)
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
        state = await self._state(request)
        found = await self._answered(request, state)
        if found is None:
            raise RequestRefusedError(400, "name a change: policy, without, cordon, uncordon or scale")
        return judged(document_fields(found), state)
