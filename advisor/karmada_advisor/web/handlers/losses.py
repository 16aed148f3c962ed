"""What the loss of a cluster, zone or region would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from karmada_advisor.fleet.names import unknown
from karmada_advisor.views.fields import document_fields
from karmada_advisor.views.survive_document import heat_map
from karmada_advisor.views.survive_words import capacity_of, fleet_remedies, groups, remedies_of, remedy_words
from karmada_advisor.web.answer_worker import BusyError
from karmada_advisor.web.handlers.responder import HandlerGroup, Routes
from karmada_advisor.web.pages import domain_path
from karmada_advisor.web.paging import ROWS
from karmada_advisor.web.request_query import RequestRefusedError, loss_of
from karmada_advisor.web.survival import LossView
from karmada_advisor.whatif.survive.domains import kind_order
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossRemedy
from karmada_pyscheduler.http_server.messages import Document, HttpRequest


class LossHandlers(HandlerGroup):
    """The losses of the fleet."""

    def routes(self) -> Routes:
        """Return the handlers by path."""
        page, data = self._responder.page, self._responder.data
        return {
            "/survive": page(self._survive_page),
            "/v1/survive": data(self._survive_data),
            "/survive/{kind}/{name}": page(self._lost_page),
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
                "kinds": sorted({each.kind for each in report.domains}, key=kind_order),
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
            known = [each.name for each in view.report.domains if each.kind == kind]
            raise RequestRefusedError(404, unknown(f"{kind} {name}", name, known))
        number, domain = found
        shown = groups(view.in_domain(number), view.report.settings)
        values = {
            "survival": self._answers.background.survival,
            "loss": loss,
            "domain": domain,
            "groups": [(each, _words(remedies_of(view.report, number, each))) for each in shown],
            "capacity": domain.overcommitted[:ROWS],
            "more_capacity": _words(capacity_of(view.report, number)),
        }
        return self._responder.rendered(
            "survive_domain.html", request, self._answers.state, values, data=f"/v1/survive{_query_of(loss)}"
        )


def _query_of(loss: Loss) -> str:
    return "" if loss is Loss.GONE else f"?loss={loss.value}"


def _words(remedies: Iterable[LossRemedy]) -> list[str]:
    return [remedy_words(each) for each in remedies]
