"""What a change would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.plan.model import Effect, Plan
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.plan_markdown import plan_markdown
from karmada_advisor.web.answers import AskedChange
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes
from karmada_advisor.web.job import TooLongError
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.request_query import RequestRefusedError, change_of
from karmada_scheduler.http_server.messages import Document, HttpRequest

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
            "/plan": page(self._plan_page),
            "/v1/plan": data(self._plan_data),
        }

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
            is_plan=True,
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
            "suggested": self._responder.completed_names(),
        }
        data = f"/v1{request.target}" if plan is not None and not request.form else ""
        return self._responder.rendered("plan.html", request, values, data=data)

    async def _plan_data(self, request: HttpRequest) -> Mapping[str, Any]:
        plan = await self._plan(request)
        if plan is None:
            raise RequestRefusedError(400, "name a change: policy, without, cordon, uncordon or scale")
        return document_fields(plan)
