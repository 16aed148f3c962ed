"""What the page computes in idle moments, a slice at a time: the causes of states, and the reports about losses."""

from __future__ import annotations

import argparse
import io
import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import redirect_stderr
from datetime import UTC, datetime
from typing import Final

from karmada_advisor.cli.flags import survive as survive_flags
from karmada_advisor.cli.survive_report import report_steps
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause
from karmada_advisor.explain.overview import causes_of_state
from karmada_advisor.explain.situation import Situation
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import SurvivalReport
from karmada_advisor.web.answers import CauseScan, FoundCause, summary
from karmada_advisor.web.jobs import BusyError
from karmada_advisor.web.state import PageState
from karmada_advisor.web.survival import LossView, Survival
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

_SCAN_SECONDS: Final = 1.0
"""CPU time for the causes of states, per reading of the objects."""
_SLICE_SECONDS: Final = 0.2
"""CPU time of one slice, for which a request may have to wait."""
_GIVEN_UP_SECONDS: Final = 1800.0
"""How long a report is not begun again after a step of it took too long."""
_TOO_LARGE: Final = "the fleet is too large for a report on the page; karmada-pyscheduler survive makes one"
_SHARE: Final = 10
"""After a report, this many times its CPU time pass before the next one is begun: fleets change all the time."""


class CauseSearch:
    """The causes of the states of bindings.

    Attributes:
        result: What was found about the last objects; about those before until something is found about the last.
    """

    def __init__(
        self,
        inputs_of: Callable[[PageState, BindingKey], ExplainInputs],
        rules_of: Callable[[PageState], str],
    ) -> None:
        """Start without a cause.

        Args:
            inputs_of: Returns what explains a binding.
            rules_of: Returns by which rules, for people.
        """
        self._inputs_of = inputs_of
        self._rules_of = rules_of
        self._number = 0
        self._keys: Sequence[BindingKey] = ()
        self._taken = 0
        self._seconds = 0.0
        self._rules = ""
        self._found: list[FoundCause] = []
        self._unexplained: dict[BindingKey, str] = {}
        self.result = CauseScan()

    @property
    def problems(self) -> tuple[str, ...]:
        """Bindings of the last objects whose causes could not be found because of an error."""
        return tuple(
            f"{key.display}: the cause of its state could not be found: {problem}"
            for key, problem in list(self._unexplained.items())
        )

    def advance(self, state: PageState) -> bool:
        """Look at one more group, in the main thread; return whether there are more."""
        if self._number != state.number:
            self._begin(state)
        if not self._left:
            self.result = self._now
            return False
        key = self._keys[self._taken]
        self._taken += 1
        began = time.thread_time()
        cause: Cause | None = None
        try:
            cause = next(iter(causes_of_state(Situation(self._inputs_of(state, key)))), None)
        except (NoAnswerError, BusyError):
            pass  # the page about the binding says it, or the next objects have it
        except Exception as error:
            log.exception("Cannot find the cause of the state of %s", key.display)
            self._unexplained[key] = f"{type(error).__name__}: {error}"
        finally:
            self._seconds += time.thread_time() - began
        if cause is not None:
            self._found.append(FoundCause(key, cause))
        if not self._left or not self.result.found:
            self.result = self._now
        return self._left

    def _begin(self, state: PageState) -> None:
        groups = summary(state, CauseScan()).groups
        firsts = (each.bindings[0] for each in groups)
        keys = [BindingKey(each.kind, each.namespace, each.name) for each in firsts]
        self._rules = self._rules_of(state)
        self._number, self._keys, self._taken, self._seconds = state.number, keys, 0, 0.0
        self._found, self._unexplained = [], {}

    @property
    def _left(self) -> bool:
        """Whether groups are left, and time."""
        return self._seconds < _SCAN_SECONDS and self._taken < len(self._keys)

    @property
    def _now(self) -> CauseScan:
        return CauseScan(self._taken, len(self._keys), tuple(self._found), self._rules)


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
