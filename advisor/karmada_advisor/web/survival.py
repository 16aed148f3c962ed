"""What the page knows about losses: the last reports, and their age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property

from karmada_advisor.views.survive_words import by_domain
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import BindingLoss, BindingLosses, DomainLoss, SurvivalReport
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import Struct, field


class LossView(Struct, frozen=True, dict=True):
    """The report about losses in one world, with what pages look up in it."""

    report: SurvivalReport

    @cached_property
    def _losses(self) -> Mapping[BindingKey, BindingLosses]:
        return {BindingKey(each.kind, each.namespace, each.name): each for each in self.report.bindings}

    @cached_property
    def _of_domain(self) -> Mapping[int, Sequence[tuple[BindingLosses, BindingLoss]]]:
        return by_domain(self.report)

    def of_binding(self, key: BindingKey) -> list[tuple[DomainLoss, BindingLoss]]:
        """Return the losses that a binding does not survive unharmed, the worst first."""
        found = self._losses.get(key)
        if found is None:
            return []
        pairs = [(self.report.domains[number], each) for each in found.losses for number in each.domains]
        return sorted(pairs, key=lambda pair: (not pair[1].dark, -pair[1].missing))

    def domain(self, kind: str, name: str) -> tuple[int, DomainLoss] | None:
        """Return a domain and its number; None if the report has none such."""
        found = (
            (number, each)
            for number, each in enumerate(self.report.domains)
            if (each.kind, each.name) == (kind, name)
        )
        return next(found, None)

    def in_domain(self, number: int) -> Sequence[tuple[BindingLosses, BindingLoss]]:
        """Return the bindings to which the loss of a domain does something."""
        return self._of_domain.get(number, ())


class Survival(Struct, frozen=True):
    """The last reports about losses.

    Attributes:
        views: By world; none before the first reports.
        made_at: When they were made.
        seconds: The CPU time of making them.
        number: Of the objects that they are about (``PageState.number``).
        problem: Why there are none; "" if nothing went wrong.
    """

    views: Mapping[Loss, LossView] = field(default_factory=dict)
    made_at: datetime | None = None
    seconds: float = 0.0
    number: int = 0
    problem: str = ""

    @property
    def gone(self) -> LossView | None:
        """The view of lost clusters from which bindings are evicted."""
        return self.views.get(Loss.GONE)

    @property
    def report(self) -> SurvivalReport | None:
        """Its report."""
        return None if self.gone is None else self.gone.report
