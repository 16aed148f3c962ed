"""Makes the reports about losses in idle moments, those of one fleet after those of another."""

from __future__ import annotations

import argparse
import io
import logging
import time
from collections.abc import Generator, Sequence
from contextlib import redirect_stderr
from datetime import UTC, datetime
from typing import Final

from karmada_advisor.cli.flags import survive as survive_flags
from karmada_advisor.cli.survive_report import report_steps
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import SurvivalReport
from karmada_advisor.web.state import PageState
from karmada_advisor.web.survival import LossView, Survival
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.2
"""CPU time of one slice, for which a request may have to wait."""
_GIVEN_UP_SECONDS: Final = 1800.0
"""How long a report is not begun again after a step of it took too long."""
_TOO_LARGE: Final = "the fleet is too large for a report on the page; karmada-pyscheduler survive makes one"
_SHARE: Final = 10
"""After a report, this many times its CPU time pass before the next one is begun: fleets change all the time."""


class SurvivalScan:
    """The report about losses in the making.

    Attributes:
        survival: The last reports, and how far the next ones are.
    """

    def __init__(self, arguments: argparse.Namespace, own: Sequence[Registration]) -> None:
        """Take the flags of the page."""
        self._given, self._own = arguments, own
        self._steps: Generator[None, None, Sequence[SurvivalReport]] | None = None
        self._number = 0
        self._seconds = 0.0
        self._next = 0.0
        self._has_remedies = True
        self._was_ended = False
        self.survival = Survival()

    def advance(self, state: PageState) -> bool:
        """Do one slice of work; return whether there is more to do."""
        if self._steps is None:
            if self._number == state.number or not state.contents.clusters or time.monotonic() < self._next:
                return False
            self._number, self._seconds = state.number, 0.0
            self._steps = report_steps(
                self._arguments(),
                state.contents.objects,
                self._own,
                taint_policies=state.contents.taint_policies,
                others=[each for each in Loss if each is not Loss.GONE],
                progress=self._progress,
            )
        steps, began = self._steps, time.thread_time()
        self._steps = None  # until the slice has ended: one that fails, or takes too long, is dropped
        try:
            with redirect_stderr(io.StringIO()):
                while time.thread_time() - began < _SLICE_SECONDS:
                    next(steps)
        except StopIteration as end:
            self._seconds += time.thread_time() - began
            self._next = time.monotonic() + _SHARE * self._seconds
            views = {each.settings.loss: LossView(each) for each in end.value}
            self.survival = Survival(views, datetime.now(UTC), self._seconds, self._number)
            self._has_remedies = True
            return False
        except KeyboardInterrupt:
            self._was_ended = True
            raise
        except NoAnswerError as problem:
            self.survival = Survival(problem=str(problem))
            return False
        except Exception as error:
            log.exception("Cannot make the report about losses")
            self.survival = Survival(problem=f"{type(error).__name__}: {error}")
            return False
        self._seconds += time.thread_time() - began
        self._steps = steps
        return True

    def start_again(self) -> None:
        """Drop what was ended half-way. What was ended because a step took too long is begun again without remedies."""
        if self._steps is not None or (self.survival.of and self._has_remedies):
            self._has_remedies = self._steps is not None
            self._number = 0
        elif self._was_ended:
            self._next = time.monotonic() + _GIVEN_UP_SECONDS
            self.survival = replace(self.survival, problem=_TOO_LARGE)
        self._was_ended = False
        self._steps = None
        self.survival = replace(self.survival, done=0, of=0)

    def _progress(self, done: int, total: int) -> None:
        self.survival = replace(self.survival, done=done, of=total)

    def _arguments(self) -> argparse.Namespace:
        """Return the flags of ``survive`` with the rules of the page."""
        given = self._given
        made = survive_flags.make_parser().parse_args(
            ["--timeout=3600s", *([] if self._has_remedies else ["--no-remedies"])]
        )
        shared = set(vars(made)) & set(vars(given)) - {"timeout", "output"}
        return argparse.Namespace(**{**vars(made), **{name: getattr(given, name) for name in shared}})
