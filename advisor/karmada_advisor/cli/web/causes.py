"""Looks for the causes of states in idle moments: for one binding of each group, as long as there is time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause
from karmada_advisor.explain.overview import causes_of_state
from karmada_advisor.explain.situation import Situation
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.web.answers import CauseScan, FoundCause, summary
from karmada_advisor.web.jobs import BusyError
from karmada_advisor.web.state import PageState
from karmada_scheduler.api.binding import BindingKey

log = logging.getLogger(__name__)

_SCAN_SECONDS: Final = 1.0
"""CPU time for the causes of states, per reading of the objects."""


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
