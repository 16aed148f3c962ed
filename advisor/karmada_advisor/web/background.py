"""What the page computes before anybody asks, after each change of the objects: the causes of states, and reports about losses."""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stderr
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from karmada_advisor.cli.flags.what_if import REMEDIES, SURVIVE_FAIL_ON
from karmada_advisor.cli.survive import fail_on_of, settings_of
from karmada_advisor.explain.inputs import Explaining
from karmada_advisor.explain.model import Cause
from karmada_advisor.explain.overview import Causes, causes_of_state, find_causes
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.unclaimed import explain_template, without_binding
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.model import BindingState, StateName
from karmada_advisor.views.survive_text import by_domain
from karmada_advisor.web.answer_worker import AnswerWorker, BusyError, TooLongError
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.state import PageState
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import BindingLoss, BindingLosses, DomainLoss, SurvivalReport
from karmada_advisor.whatif.survive.question import SurviveQuestion
from karmada_advisor.whatif.survive.reports import survival_reports
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import IdentityStruct, Struct, field

log = logging.getLogger(__name__)


_LOOK_SECONDS: Final = 0.5
"""Until it is looked again whether objects have changed."""
_SCAN_SECONDS: Final = 1.0
"""CPU time for the causes of states."""
_MOST_SCAN_SECONDS: Final = 10.0
"""After which a scan is ended."""
_REPORT_SECONDS: Final = 300.0
"""After which reports about losses are made of what is decided."""
_MOST_REPORT_SECONDS: Final = 600.0
"""After which they are ended."""
_GIVEN_UP_SECONDS: Final = 1800.0
"""How long reports are not begun again after they took too long."""
_TOO_LARGE: Final = "the fleet is too large for a report on the page; karmada-pyscheduler survive makes one"
_SHARE: Final = 10
"""After a report, this many times its CPU time pass before the next one is begun: fleets change all the time."""


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
        pairs = [(self.report.domains[number], loss) for loss in found.losses for number in loss.domains]
        return sorted(pairs, key=lambda pair: (not pair[1].dark, -pair[1].missing))

    def domain(self, kind: str, name: str) -> tuple[int, DomainLoss] | None:
        """Return a domain and its number; None if the report has none such."""
        found = (
            (number, domain)
            for number, domain in enumerate(self.report.domains)
            if (domain.kind, domain.name) == (kind, name)
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


class CauseScan(Struct, frozen=True):
    """The causes of the bindings in no good state.

    Attributes:
        found: As far as there was time.
        stamps: Of the bindings as they were then.
        rules: By which rules it was decided again, for people.
        problems: Bindings whose cause could not be found because of an error, one line each.
        templates: The states of templates without a binding, by their own kinds.
    """

    found: Causes = field(default_factory=dict)
    stamps: Mapping[BindingKey, int] = field(default_factory=dict)
    rules: str = ""
    problems: tuple[str, ...] = ()
    templates: Mapping[BindingKey, BindingState] = field(default_factory=dict)

    def text_of(self, row: IndexedBinding) -> str:
        """Return the cause of the state of a binding; "" if none is known of it as it is."""
        cause = self.found.get(row.key) if self.stamps.get(row.key) == row.stamp else None
        return "" if cause is None else cause.text

    def __hash__(self) -> int:
        codes = ((key, cause and cause.code) for key, cause in self.found.items())
        return hash((*codes, self.rules, self.problems, *self.templates))


class Background(IdentityStruct):
    """The last causes and reports, made again one after the other.

    Attributes:
        controller_manager: How the fleet reacts to losses, as ``--controller-manager`` has it.
        rules: By which decisions are made.
        session: Provides the rules for objects.
        causes: Of the states of bindings.
        survival: The last reports about losses.
    """

    controller_manager: str
    rules: Rules
    session: Callable[[PageState], AbstractContextManager[Explaining]]
    causes: CauseScan = CauseScan()
    survival: Survival = Survival()
    _causes_of: int = 0
    _losses_of: int = 0
    _next_losses: float = 0.0

    async def keep_fresh(self, worker: AnswerWorker, state: Callable[[], PageState | None]) -> None:
        """Compute again after changes, until cancelled.

        Args:
            worker: Computes in a process of its own.
            state: Returns the objects; None as long as they are not complete.
        """
        while True:
            found = state()
            if found is not None:
                await self.refresh(worker, found)
            await asyncio.sleep(_LOOK_SECONDS)

    async def refresh(self, worker: AnswerWorker, state: PageState) -> None:
        """Compute what is not known about some objects."""
        if self._causes_of != state.number:
            self._causes_of = state.number
            try:
                self.causes = await worker.run(lambda: self._find_causes(state), _MOST_SCAN_SECONDS)
            except Exception as error:  # noqa: BLE001 (it is said, and logged)
                text = _said("Cannot find the causes of states", error)
                self.causes = CauseScan(problems=(f"the causes of states are not known: {text}",))
        is_due = self._losses_of != state.number and time.monotonic() >= self._next_losses
        if is_due and state.contents.objects.clusters:
            self._losses_of = state.number
            await self._report(worker, state)

    def _find_causes(self, state: PageState) -> CauseScan:
        """Return the causes of states, as far as there is time; runs in a process of its own."""
        problems: list[str] = []
        with self.session(state) as using:
            rows = state.contents.index.by_key

            def cause_of(key: BindingKey) -> Cause | None:
                try:
                    is_published = key in state.contents.objects.manifests
                    situation = Situation(using.inputs_of(rows[key].binding))
                    return next(iter(causes_of_state(situation)), None) if is_published else None
                except Exception as error:
                    log.exception("Cannot find the cause of the state of %s", key.display)
                    text = f"{key.display}: the cause of its state could not be found"
                    problems.append(f"{text}: {type(error).__name__}: {error}")
                    return None

            causes = find_causes(state.contents.index.groups, cause_of, seconds=_SCAN_SECONDS)
            stamps = {key: rows[key].stamp for key in causes}
            states, of_templates = _templates_of(state)
            return CauseScan({**causes, **of_templates}, stamps, str(using.rules), tuple(problems), states)

    async def _report(self, worker: AnswerWorker, state: PageState) -> None:
        try:
            reports, seconds = await worker.run(lambda: self._make_reports(state), _MOST_REPORT_SECONDS)
        except TooLongError:
            self._next_losses = time.monotonic() + _GIVEN_UP_SECONDS
            self.survival = Survival(problem=_TOO_LARGE)
        except Exception as error:  # noqa: BLE001 (it is said, and logged)
            self.survival = Survival(problem=_said("Cannot make the report about losses", error))
        else:
            self._next_losses = time.monotonic() + _SHARE * seconds
            views = {report.settings.loss: LossView(report) for report in reports}
            self.survival = Survival(views, datetime.now(UTC), seconds, state.number)

    def _make_reports(self, state: PageState) -> tuple[Sequence[SurvivalReport], float]:
        """Return the reports, and the CPU time of making them; runs in a process of its own."""
        with redirect_stderr(io.StringIO()):  # no warnings, which were printed at the start, and no progress
            reports = survival_reports(
                self._question(),
                state.contents.objects,
                taint_policies=state.contents.taint_policies,
                others=[loss for loss in Loss if loss is not Loss.GONE],
            )
        return reports, time.process_time()

    def _question(self) -> SurviveQuestion:
        return SurviveQuestion(
            rules=self.rules,
            settings=settings_of(self.controller_manager, Loss.GONE),
            fail_on=fail_on_of(SURVIVE_FAIL_ON),
            remedies=REMEDIES,
            seconds=_REPORT_SECONDS,
        )


def _templates_of(state: PageState) -> tuple[Mapping[BindingKey, BindingState], Causes]:
    """Return states and causes of the templates that have no binding, as far as there is time."""
    objects = state.contents.objects
    states, causes = dict[BindingKey, BindingState](), dict[BindingKey, Cause | None]()
    began = time.thread_time()
    for template in without_binding(objects, state.contents.templates) if state.contents.templates else ():
        if time.thread_time() - began < _SCAN_SECONDS:
            key, explanation = explain_template(objects, template)
            states[key], causes[key] = explanation.state, next(iter(explanation.causes), None)
        else:
            text = "it has no binding; why was not looked for, because there was no time"
            key = BindingKey(template.kind, template.namespace, template.name)
            states[key] = BindingState(StateName.NOT_CLAIMED, text=text, reason="NotClaimed")
            causes[key] = None
    return states, causes


def _said(what: str, error: Exception) -> str:
    """Return an error for people; one that nobody expects is logged, too."""
    if isinstance(error, NoAnswerError | TooLongError | BusyError):
        return str(error)
    log.error(what, exc_info=error)
    return f"{type(error).__name__}: {error}"
