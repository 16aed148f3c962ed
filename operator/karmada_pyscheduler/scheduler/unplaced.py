"""Counts unplaced bindings by reason and age, and bindings that no policy claims; warns about those without a placement.

The counts follow the changes of the binding cache, which include the answers to our own writes. Decisions are read from
the stored condition ``Scheduled``, which survives a restart.

A binding is unplaced if its last attempt failed, with or without the clusters of an earlier decision, or if it has no
clusters and was never scheduled. It is not unplaced if its scheduling is suspended, if it is assigned to another
scheduler, if no policy claims it, if it is being deleted, if it has no placement, or if it was scheduled with no
clusters as its result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import Struct, field

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
        held.update({each.binding.key: WAITING for each in self.waiting.all()})
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
