"""Counts the answers of Guard plugins, the bindings that they keep or move gracefully, and those with unreadable records.

The states are read from the stored bindings, so they survive a restart and a change of leader.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Mapping
from typing import Final

from karmada_pyscheduler.binding_cycle.conditions import was_kept_by_guard
from karmada_pyscheduler.metrics.plugins import PluginMetrics
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import unreadable_annotation
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Guarded
from karmada_scheduler.framework.diagnosis import KeptError
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

KEPT: Final = "kept"
HELD: Final = "held"
GRACEFUL: Final = "graceful"
CANCELLED: Final = "cancelled"
LEAVING: Final = "leaving"
UNREADABLE: Final = "unreadable"
UNSTAMPED: Final = "unstamped"
WARNED: Final = "warned"

UNSTAMPED_SECONDS: Final = 60.0
"""Karmada's graceful-eviction controller stamps an eviction task within seconds."""


def count_answer(guarded: Guarded, error: Exception | None, metrics: PluginMetrics) -> None:
    """Count what Guard plugins made of a decision."""
    if guarded.refused_by:
        answer = KEPT if isinstance(error, KeptError) else HELD
        metrics.guard_answers.labels(answer).inc()
    elif guarded.cancelled:
        metrics.guard_answers.labels(CANCELLED).inc()
    elif guarded.tasks:
        metrics.guard_answers.labels(GRACEFUL).inc()
    elif guarded.warning:
        metrics.guard_answers.labels(WARNED).inc()


class GuardedBindings(Struct):
    """The bindings that Guard plugins keep or move gracefully, and those with an annotation of ours that cannot be read.

    Bindings with eviction tasks that nobody stamps count as well: Karmada's controller for them does not run.

    Updated by the changes of the cache.
    """

    scheduler_names: Container[str]
    clock: Callable[[], float] = time.monotonic
    _unstamped: dict[BindingKey, float] = field(default_factory=dict)
    _by_state: dict[str, set[BindingKey]] = field(
        default_factory=lambda: {state: set() for state in (KEPT, HELD, LEAVING, UNREADABLE)}
    )

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Update the counts after a change of one binding; ``old`` or ``new`` is None if it was added or deleted."""
        self._note_stamps(old, new)
        before = _states(old, self.scheduler_names) if old is not None else ()
        after = _states(new, self.scheduler_names) if new is not None else ()
        if not before and not after:
            return
        present = new or old
        assert present is not None  # one of them has a state
        if UNREADABLE in after and present.key not in self._by_state[UNREADABLE]:
            name, why = unreadable_annotation(present.annotations) or ("", "")
            log.warning(
                "The annotation %s of %s cannot be read: %s. Remove it, or correct it",
                name,
                present.key.display,
                why,
                extra={"binding": str(present.key)},
            )
        for state, keys in self._by_state.items():
            if state in after:
                keys.add(present.key)
            else:
                keys.discard(present.key)

    def counts(self) -> Mapping[str, int]:
        """Return the number of bindings by state; may be called from any thread."""
        late = self.clock() - UNSTAMPED_SECONDS
        unstamped = sum(since < late for since in list(self._unstamped.values()))
        return {state: len(keys) for state, keys in self._by_state.items()} | {UNSTAMPED: unstamped}

    def _note_stamps(self, old: Binding | None, new: Binding | None) -> None:
        """Note whether a binding has an eviction task without a stamp. Nobody stamps one that is being deleted."""
        if new is not None and not new.deleting and new.spec.graceful_eviction_tasks:
            tasks = new.spec.graceful_eviction_tasks
            if any(each.producer in self.scheduler_names and not each.creation_timestamp for each in tasks):
                self._unstamped.setdefault(new.key, self.clock())
                return
        present = new or old
        if present is not None:
            self._unstamped.pop(present.key, None)


def _states(binding: Binding, names: Container[str]) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if any(task.producer in names for task in binding.spec.graceful_eviction_tasks):
        found = (LEAVING,)
    if binding.spec.responsible_scheduler not in names:
        return found
    if was_kept_by_guard(binding):
        condition = binding.status.condition(SCHEDULED_CONDITION) or {}
        is_kept = condition.get("reason") == outcome.NO_CLUSTER_FIT
        found = (*found, KEPT if is_kept else HELD)
    if unreadable_annotation(binding.annotations) is not None:
        found = (*found, UNREADABLE)
    return found
