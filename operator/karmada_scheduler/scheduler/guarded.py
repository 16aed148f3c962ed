"""Counts the answers of Guard plugins, the bindings that they keep or move gracefully, and those with unreadable records.

The states are read from the stored bindings, so they survive a restart and a change of leader.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.own_annotations import unreadable_annotation
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.binding_cycle.conditions import was_kept_by_guard
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Guarded
from karmada_scheduler.framework.diagnosis import KeptError
from karmada_scheduler.metrics.plugins import PluginMetrics

log = logging.getLogger(__name__)

KEPT: Final = "kept"
HELD: Final = "held"
GRACEFUL: Final = "graceful"
CANCELLED: Final = "cancelled"
LEAVING: Final = "leaving"
UNREADABLE: Final = "unreadable"


def count_answer(guarded: Guarded, error: Exception | None, metrics: PluginMetrics) -> None:
    """Count what Guard plugins made of a decision."""
    if guarded.refused_by:
        answer = KEPT if isinstance(error, KeptError) else HELD
        metrics.guard_answers.labels(answer).inc()
    elif guarded.cancelled:
        metrics.guard_answers.labels(CANCELLED).inc()
    elif guarded.tasks:
        metrics.guard_answers.labels(GRACEFUL).inc()


class GuardedBindings:
    """The bindings that Guard plugins keep or move gracefully, and those with an annotation of ours that cannot be read.

    Updated by the changes of the cache.
    """

    def __init__(self, scheduler_names: Container[str]) -> None:
        """Start with none; bindings of other schedulers do not count."""
        self._names = scheduler_names
        self._by_state: dict[str, set[BindingKey]] = {
            state: set() for state in (KEPT, HELD, LEAVING, UNREADABLE)
        }

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Update the counts after a change of one binding; ``old`` or ``new`` is None if it was added or deleted."""
        before = _states(old, self._names) if old is not None else ()
        after = _states(new, self._names) if new is not None else ()
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
        return {state: len(keys) for state, keys in self._by_state.items()}


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
