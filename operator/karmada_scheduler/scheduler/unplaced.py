"""Bindings that have no place now: why, and since when; and those that no policy claims.

Kept from the changes of the binding cache, so that answers to our own writes count as well as what a watch or a list
brings. What was decided is read from the stored condition ``Scheduled``, which a restart does not lose.

A binding is unplaced if the last decision about it failed, whether it keeps the clusters that it had or has none, and
if it has no clusters and nothing was decided yet. It is not unplaced if scheduling is suspended, another scheduler is
responsible, no policy claims it, it is being deleted, has no placement, or was scheduled with nothing to place.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer import requeue_rules

log = logging.getLogger(__name__)

GATED: Final = "gated"
"""A PreEnqueue plugin keeps it out of the queue."""
WAITING: Final = "waiting"
"""It is decided and waits at Permit."""
PENDING: Final = "pending"
"""Nothing was decided about it yet."""
OTHER: Final = "other"
"""The condition has a reason that this scheduler does not write."""

_WRITTEN: Final = frozenset(
    {outcome.NO_CLUSTER_FIT, outcome.UNSCHEDULABLE, outcome.SCHEDULER_ERROR, outcome.QUOTA_EXCEEDED}
)
REASONS: Final = (*sorted(_WRITTEN), GATED, OTHER, PENDING, WAITING)


class Unplaced(NamedTuple):
    """Why a binding has no place, and since when, in seconds since 1970.

    That is the ``lastTransitionTime`` of a condition that says so, which moves when a success becomes a failure and not
    when the reason changes. A binding without that condition counts from its creation if it is new to this process,
    else from when this process saw that it had no place.
    """

    reason: str
    since: float


class UnplacedBindings:
    """Counts bindings without a place. Changed in the main thread; ``report`` may be asked from any."""

    def __init__(
        self,
        scheduler_names: Container[str],
        *,
        waiting: WaitingBindings,
        gated: AbstractSet[BindingKey],
        now: Callable[[], float] = time.time,
    ) -> None:
        """Start with none.

        Args:
            scheduler_names: Those of this process.
            waiting: What waits at Permit.
            gated: What PreEnqueue plugins keep out; read at every report.
            now: Seconds since 1970.
        """
        self._scheduler_names = scheduler_names
        self._waiting = waiting
        self._gated = gated
        self._now = now
        self._unplaced: dict[BindingKey, Unplaced] = {}
        self._unclaimed: set[BindingKey] = set()

    def changed(self, old: Binding | None, new: Binding | None) -> None:
        """Take in a change of one binding: as it was and as it is, None where there is nothing."""
        present = new or old
        assert present is not None  # a change has at least one side
        key = present.key
        if new is None or not self._concerns_us(new):
            self._unplaced.pop(key, None)
            self._unclaimed.discard(key)
        elif requeue_rules.is_claimed(new):
            self._unclaimed.discard(key)
            self._note_place(old, new)
        else:
            self._unplaced.pop(key, None)
            self._note_unclaimed(new)

    def report(self) -> Mapping[str, tuple[int, float]]:
        """Return by reason how many there are, and for how many seconds the oldest has had no place (0 for none)."""
        now = self._now()
        held = dict.fromkeys(frozenset(self._gated), GATED)
        held.update({each.binding.key: WAITING for each in self._waiting.all()})
        times: dict[str, list[float]] = {reason: [] for reason in REASONS}
        for key, (reason, since) in self._unplaced.copy().items():
            times[held.get(key, reason) if held else reason].append(since)
        return {
            reason: (len(found), max(0.0, now - min(found, default=now))) for reason, found in times.items()
        }

    def unclaimed(self) -> int:
        """Return how many bindings are ours by their scheduler's name, and no policy claims them."""
        return len(self._unclaimed)

    def _concerns_us(self, binding: Binding) -> bool:
        return (
            binding.spec.placement is not None
            and not binding.deleting
            and requeue_rules.is_assigned_to(binding, self._scheduler_names)
        )

    def _note_place(self, old: Binding | None, new: Binding) -> None:
        condition = new.status.condition(SCHEDULED_CONDITION)
        reason = _reason(new, condition)
        if reason is None:
            self._unplaced.pop(new.key, None)
            return
        told = None if condition is None or reason == PENDING else _transition(condition)
        since = self._first_seen(old, new, is_decided=condition is not None) if told is None else told
        self._unplaced[new.key] = Unplaced(reason, since)

    def _first_seen(self, old: Binding | None, new: Binding, *, is_decided: bool) -> float:
        """Return since when a binding has no place whose condition does not say it."""
        is_new = old is None or old.uid != new.uid
        known = self._unplaced.get(new.key)
        if known is not None and not is_new:
            return known.since
        if is_new and not is_decided and new.creation_timestamp is not None:
            return new.creation_timestamp.timestamp()
        return self._now()

    def _note_unclaimed(self, binding: Binding) -> None:
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
    """Return why a binding has no place as far as the API server knows, None if it has one or needs none."""
    if condition is not None and condition.get("status") != "True":
        reason = condition.get("reason")
        return reason if isinstance(reason, str) and reason in _WRITTEN else OTHER
    if binding.spec.clusters:
        return None
    is_settled = condition is not None and binding.status.scheduler_observed_generation == binding.generation
    return None if is_settled else PENDING


def _transition(condition: Mapping[str, Any]) -> float | None:
    """Return when a condition came to be what it is, None if it does not say so."""
    text = condition.get("lastTransitionTime")
    try:
        return parse_time(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
