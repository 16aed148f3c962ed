"""What a change would do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Any, Final

from karmada_advisor.plan.model import Effect, Plan
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.plan_markdown import plan_markdown
from karmada_advisor.web.answers import AskedChange
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes
from karmada_advisor.web.jobs import TooLongError
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.plan_rights import (
    MOST_PARTS,
    ChangePart,
    creations,
    part_of_scale,
    parts_of_clusters,
    parts_of_policies,
    policies_of,
    scale_of,
    with_scale,
)
from karmada_advisor.web.request_query import RequestRefusedError, change_of
from karmada_advisor.web.seen_plan import SeenPlan, seen_plan
from karmada_scheduler.api.policy import PolicyKey
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


_NO_PLAN: Final = (
    "it changes nothing, it cannot be applied, or it takes too long; an operator of the page sees which"
)
"""Texts of errors may name anything."""


class PlanHandlers(HandlerGroup):
    """Plans of changes."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/plan": page(self._plan_page, is_scoped=True),
            "/v1/plan": data(self._plan_data, is_scoped=True),
        }

    async def _answered(self, request: HttpRequest) -> Plan | SeenPlan | None:
        """Return the plan that is asked for, as far as the viewer may see it; None without a question."""
        viewer = self._responder.viewer(request)
        viewer.check_known()
        change = change_of(request)
        if change == AskedChange():
            return None
        return await (self._plan(request, change) if viewer.sees_all else self._seen(request, change))

    async def _plan(self, request: HttpRequest, change: AskedChange) -> Plan:
        state = self._answers.state
        return await self._computer.answer(
            (state.number, "plan", change),
            lambda: self._answers.plan(state, change),
            requester=request.requester,
            is_plan=True,
        )

    async def _seen(self, request: HttpRequest, change: AskedChange) -> SeenPlan:
        """Return the plan of somebody who may do what is planned: first may they, then does it exist, then what of it."""
        viewer = self._responder.viewer(request)
        parts, change = await self._allowed(request, change)
        for each in parts:
            if each.cluster and each.cluster not in self._answers.state.contents.cluster_by_name:
                raise NoAnswerError(f"cluster {each.cluster} does not exist")
        try:
            plan = await self._plan(request, change)
        except (NoAnswerError, TooLongError):
            raise NoAnswerError(_NO_PLAN) from None
        await viewer.check_may(creations(plan, parts))
        existing = sorted({each.namespace for each in plan.bindings} - {""})
        own = {*await viewer.namespaces(existing)}
        own |= {each.namespace for each in parts if each.namespace and await viewer.may_list(each.namespace)}
        return seen_plan(
            plan,
            parts,
            is_own=lambda namespace: viewer.sees_bindings or namespace in own,
            sees=lambda key: self._responder.sees_clusters_of(request, key),
            sees_clusters=viewer.sees_clusters,
        )

    async def _allowed(
        self, request: HttpRequest, change: AskedChange
    ) -> tuple[list[ChangePart], AskedChange]:
        """Return the parts of a change, each of which the viewer may do, and the change that does them and nothing else."""
        viewer = self._responder.viewer(request)
        policies: tuple[PolicyKey, ...] = ()
        if change.text:
            policies = await self._computer.answer(
                ("policies", change.text), lambda: policies_of(change.text), requester=request.requester
            )
        parts = [*islice(chain(parts_of_policies(policies), parts_of_clusters(change)), MOST_PARTS + 1)]
        if len(parts) > MOST_PARTS:
            raise RequestRefusedError(
                403, f"a change of more than {MOST_PARTS} objects is for those who may list everything"
            )
        await viewer.check_may((each.permission, each.namespace) for each in parts)
        asked = scale_of(change)
        if asked is not None:
            await viewer.check_namespace(asked.namespace)
            bindings = self._answers.state.contents.index.of_namespace(asked.namespace)
            scaled = part_of_scale(asked, bindings)
            await viewer.check_may([(scaled.permission, scaled.namespace)])
            parts, change = [*parts, scaled], with_scale(change, scaled, asked)
        if not parts:
            raise NoAnswerError("there is no change")
        return parts, change

    async def _plan_page(self, request: HttpRequest) -> Document:
        problem, found = "", None
        try:
            found = await self._answered(request)
        except (NoAnswerError, TooLongError) as error:
            problem = str(error)
        viewer = self._responder.viewer(request)
        # Others have rows of what stays and is claimed by another policy; the operator's page has a section of claims.
        shown = (*_SHOWN_FIRST, Effect.UNCHANGED) if isinstance(found, SeenPlan) else _SHOWN_FIRST
        values: dict[str, Any] = {
            "problem": problem,
            "plan": found,
            "classes": [] if found is None else [(each, rows) for each in shown if (rows := found.of(each))],
            "suggested": self._responder.completed_names() if viewer.sees_clusters else [],
        }
        if isinstance(found, Plan):
            loads = found.capacity[0].clusters if found.capacity else ()
            values |= {
                "loads": loads[:ROWS],
                "most": max((max(each.before, each.after) for each in loads), default=0),
                "markdown": plan_markdown(found),
            }
        data = f"/v1{request.target}" if found is not None and not request.form else ""
        name = "plan.html" if viewer.sees_all else "seen_plan.html"
        return self._responder.rendered(name, request, values, data=data)

    async def _plan_data(self, request: HttpRequest) -> Mapping[str, Any]:
        found = await self._answered(request)
        if found is None:
            raise RequestRefusedError(400, "name a change: policy, without, cordon, uncordon or scale")
        return document_fields(found)
