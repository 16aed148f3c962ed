"""Counts unplaced bindings, those that no policy claims, and those that Guard plugins keep; warns about missing placements.

The counts follow the changes of the binding cache, which include the answers to our own writes. Decisions are read from
the stored condition ``Scheduled``, which survives a restart.

A binding is unplaced if its last attempt failed, with or without the clusters of an earlier decision, or if it has no
clusters and was never scheduled. It is not unplaced if its scheduling is suspended, if it is assigned to another
scheduler, if no policy claims it, if it is being deleted, if it has no placement, or if it was scheduled with no
clusters as its result.

What Guard plugins keep is read from the stored bindings, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.plugins import PluginMetrics
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.own_annotations import unreadable_annotation
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.decision import Guarded
from karmada_scheduler.framework.diagnosis import AT_GUARD, KeptError
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import IdentityStruct, Struct, field

log = logging.getLogger(__name__)


GATED: Final = "gated"
"""A PreEnqueue plugin keeps the binding out of the queue."""
WAITING: Final = "waiting"
"""The binding is decided and waits at Permit."""
PENDING: Final = "pending"
"""The binding was not scheduled yet."""
OTHER: Final = "other"
"""The condition has a reason that this scheduler does not write."""

_OWN_REASONS: Final = frozenset(
    {outcome.NO_CLUSTER_FIT, outcome.UNSCHEDULABLE, outcome.SCHEDULER_ERROR, outcome.QUOTA_EXCEEDED}
)
REASONS: Final = (*sorted(_OWN_REASONS), GATED, OTHER, PENDING, WAITING)


class Unplaced(NamedTuple):
    """The reason why a binding is unplaced, and the time since when, in seconds since 1970.

    The time is the ``lastTransitionTime`` of its condition, which changes when a success becomes a failure and not when
    the reason changes. For a binding without such a condition, it is the creation if the binding is new to this process,
    else the time at which this process first found it unplaced.
    """

    reason: str
    since: float


class UnplacedBindings(Struct):
    """The unplaced bindings. Updated in the main thread; ``report`` may be called from any thread.

    Attributes:
        scheduler_names: The scheduler names of this process.
        waiting: The bindings that wait at Permit.
        gated: The keys that PreEnqueue plugins keep out; read at every report.
        now: Returns seconds since 1970.
    """

    scheduler_names: Container[str]
    waiting: WaitingBindings
    gated: AbstractSet[BindingKey]
    now: Callable[[], float] = time.time
    _unplaced: dict[BindingKey, Unplaced] = field(default_factory=dict)
    _unclaimed: set[BindingKey] = field(default_factory=set)

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Update the counts after a change of one binding; ``old`` or ``new`` is None if it was added or deleted."""
        present = new or old
        assert present is not None  # a change has at least one side
        key = present.key
        if new is None or not self._is_counted(new):
            self._unplaced.pop(key, None)
            self._unclaimed.discard(key)
        elif requeue_rules.is_claimed(new):
            self._unclaimed.discard(key)
            self._update_unplaced(old, new)
        else:
            self._unplaced.pop(key, None)
            self._add_unclaimed(new)

    def report(self) -> Mapping[str, tuple[int, float]]:
        """Return by reason the number of bindings, and the age of the oldest in seconds (0 if there are none)."""
        now = self.now()
        held = dict.fromkeys(frozenset(self.gated), GATED)
        held.update({wait.binding.key: WAITING for wait in self.waiting.all()})
        times: dict[str, list[float]] = {reason: [] for reason in REASONS}
        for key, (reason, since) in self._unplaced.copy().items():
            times[held.get(key, reason) if held else reason].append(since)
        return {
            reason: (len(found), max(0.0, now - min(found, default=now))) for reason, found in times.items()
        }

    def unclaimed(self) -> int:
        """Return the number of bindings that are assigned to this scheduler and that no policy claims."""
        return len(self._unclaimed)

    def _is_counted(self, binding: Binding) -> bool:
        return (
            binding.spec.placement is not None
            and not binding.deleting
            and requeue_rules.is_assigned_to(binding, self.scheduler_names)
        )

    def _update_unplaced(self, old: Binding | None, new: Binding) -> None:
        condition = new.status.condition(SCHEDULED_CONDITION)
        reason = _reason(new, condition)
        if reason is None:
            self._unplaced.pop(new.key, None)
            return
        since = None if condition is None or reason == PENDING else _transition(condition)
        if since is None:
            since = self._first_seen(old, new, is_decided=condition is not None)
        self._unplaced[new.key] = Unplaced(reason, since)

    def _first_seen(self, old: Binding | None, new: Binding, *, is_decided: bool) -> float:
        """Return the time since when a binding is unplaced whose condition does not record it."""
        is_new = old is None or old.uid != new.uid
        known = self._unplaced.get(new.key)
        if known is not None and not is_new:
            return known.since
        if is_new and not is_decided and new.creation_timestamp is not None:
            return new.creation_timestamp.timestamp()
        return self.now()

    def _add_unclaimed(self, binding: Binding) -> None:
        if binding.key in self._unclaimed:
            return
        self._unclaimed.add(binding.key)
        log.log(
            logs.V2,
            "%s is left alone: no policy claims it, as none of its labels has a policy's permanent-id",
            binding.key.display,
            extra={"binding": str(binding.key)},
        )


def _reason(binding: Binding, condition: Mapping[str, Any] | None) -> str | None:
    """Return the reason why a binding is unplaced by its stored state, None if it is not."""
    if condition is not None and condition.get("status") != "True":
        reason = condition.get("reason")
        return reason if isinstance(reason, str) and reason in _OWN_REASONS else OTHER
    if binding.spec.clusters:
        return None
    is_scheduled = (
        condition is not None and binding.status.scheduler_observed_generation == binding.generation
    )
    return None if is_scheduled else PENDING


def _transition(condition: Mapping[str, Any]) -> float | None:
    """Return the last transition of a condition in seconds since 1970, None if it is missing or invalid."""
    text = condition.get("lastTransitionTime")
    try:
        return parse_time(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


class MissingPlacements:
    """The bindings that were warned about, by key and uid."""

    def __init__(self, bindings: BindingCache) -> None:
        self._bindings = bindings
        self._warned: dict[BindingKey, str] = {}

    def __len__(self) -> int:
        return len(self._warned)

    def warn_once(self, binding: Binding) -> None:
        """Log that a claimed binding has no placement; an update enqueues it again."""
        key = binding.key
        if self._warned.get(key) == binding.uid:
            return
        if len(self._warned) > len(self._bindings):
            cached = ((key, uid, self._bindings.get(key)) for key, uid in self._warned.items())
            self._warned = {key: uid for key, uid, binding in cached if binding and binding.uid == uid}
        self._warned[key] = binding.uid
        log.warning("failed to get placement from %s%s(%s)", key.kind[0].lower(), key.kind[1:], key)

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that was deleted."""
        self._warned.pop(key, None)


KEPT: Final = "kept"
HELD: Final = "held"
STAYS: Final = "stays"
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
        answer = KEPT if isinstance(error, KeptError) else HELD if error is not None else STAYS
        metrics.guard_answers.labels(answer).inc()
    elif guarded.cancelled:
        metrics.guard_answers.labels(CANCELLED).inc()
    elif guarded.tasks:
        metrics.guard_answers.labels(GRACEFUL).inc()
    elif guarded.warning:
        metrics.guard_answers.labels(WARNED).inc()


class GuardedBindings(IdentityStruct):
    """The bindings that Guard plugins keep or move gracefully, and those with an annotation of ours that cannot be read.

    Bindings with eviction tasks that nobody stamps count as well: Karmada's controller for them does not run.

    Updated by the changes of the cache.
    """

    scheduler_names: Container[str]
    clock: Callable[[], float] = time.monotonic
    _unstamped: dict[BindingKey, float] = field(default_factory=dict)
    _by_state: dict[str, set[BindingKey]] = field(
        default_factory=lambda: {state: set() for state in (KEPT, HELD, STAYS, LEAVING, UNREADABLE)}
    )

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Update the counts after a change of one binding; ``old`` or ``new`` is None if it was added or deleted."""
        self._note_stamps(old, new)
        after = _states(new, self.scheduler_names) if new is not None else ()
        present = new or old
        assert present is not None  # a change has at least one side
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
            if any(task.producer in self.scheduler_names and not task.creation_timestamp for task in tasks):
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
    condition = binding.status.condition(SCHEDULED_CONDITION) or {}
    if AT_GUARD in str(condition.get("message")):
        is_kept = condition.get("reason") == outcome.NO_CLUSTER_FIT
        found = (*found, STAYS if condition.get("status") == "True" else KEPT if is_kept else HELD)
    if unreadable_annotation(binding.annotations) is not None:
        found = (*found, UNREADABLE)
    return found
