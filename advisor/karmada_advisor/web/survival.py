"""What the page knows about losses: the last report, its age, and how far the next one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from karmada_advisor.survive.model import BindingLoss, BindingLosses, DomainLoss, SurvivalReport
from karmada_advisor.views.survive_words import by_domain
from karmada_scheduler.api.binding import BindingKey


@dataclass(frozen=True)
class Survival:
    """The last report about losses.

    Attributes:
        report: None before the first one.
        made_at: When it was made.
        number: Of the objects that it is about (``PageState.number``).
        done: Bindings that are decided of the next report; 0 if none is being made.
        of: All bindings of the next report.
        problem: Why there is no report; "" if nothing went wrong.
    """

    report: SurvivalReport | None = None
    made_at: datetime | None = None
    number: int = 0
    done: int = 0
    of: int = 0
    problem: str = ""

    @cached_property
    def _losses(self) -> Mapping[BindingKey, BindingLosses]:
        bindings = () if self.report is None else self.report.bindings
        return {BindingKey(each.kind, each.namespace, each.name): each for each in bindings}

    @cached_property
    def _of_domain(self) -> Mapping[int, Sequence[tuple[BindingLosses, BindingLoss]]]:
        return {} if self.report is None else by_domain(self.report)

    def of_binding(self, key: BindingKey) -> list[tuple[DomainLoss, BindingLoss]]:
        """Return the losses that a binding does not survive unharmed, the worst first; nothing without a report."""
        found = self._losses.get(key)
        if found is None or self.report is None:
            return []
        pairs = [(self.report.domains[number], each) for each in found.losses for number in each.domains]
        return sorted(pairs, key=lambda pair: (not pair[1].dark, -pair[1].missing))

    def domain(self, kind: str, name: str) -> tuple[int, DomainLoss] | None:
        """Return a domain and its number; None if the report has none such."""
        domains = () if self.report is None else self.report.domains
        found = (
            (number, each) for number, each in enumerate(domains) if (each.kind, each.name) == (kind, name)
        )
        return next(found, None)

    def in_domain(self, number: int) -> Sequence[tuple[BindingLosses, BindingLoss]]:
        """Return the bindings to which the loss of a domain does something."""
        return self._of_domain.get(number, ())
