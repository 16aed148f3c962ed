"""Which schedulers exist: from their Leases, from Events and conditions that they have left, and from a process.

A Lease does not say which scheduler holds it. Ours writes the names of its profiles into an annotation of its Lease;
``karmada-scheduler`` is that of Karmada's own scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final

from karmada_advisor.state.model import SchedulerShown, SchedulerStatus
from karmada_advisor.state.stored import Manifest, age, event_time, mapping
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION, SCHEDULER_NAMES_ANNOTATION
from karmada_scheduler.structs import Struct, field

STOCK_LEASE: Final = "karmada-scheduler"
"""The Lease of karmada-scheduler.

Source: karmada v1.18.2 cmd/scheduler/app/options/options.go (--leader-elect-resource-name).
"""

_SHOWN: Final = 5
_DEFAULT_SECONDS: Final = 15.0
_MAX_SECONDS: Final = 86_400.0
_LIKE: Final = 0.6


class Schedulers(Struct, frozen=True):
    """What is known about schedulers.

    Attributes:
        by_name: Schedulers with a Lease or a process.
        leases: Those whose name is only that of a Lease; it counts if a binding names it.
        seen: Name to where and when a scheduler left something, for those without a Lease.
        problem: Why the Leases are not known; "" if they are.
    """

    by_name: Mapping[str, SchedulerShown] = field(default_factory=dict)
    leases: Mapping[str, SchedulerShown] = field(default_factory=dict)
    seen: Mapping[str, SchedulerShown] = field(default_factory=dict)
    problem: str = "they were not read"

    def of(self, name: str) -> SchedulerShown:
        """Return what is known about the scheduler with a name."""
        for known in (self.by_name, self.leases, self.seen):
            if name in known:
                return known[name]
        if self.problem:
            return SchedulerShown(name)
        near = get_close_matches(name, sorted({*self.by_name, *self.seen}), n=1, cutoff=_LIKE)
        existing = ", ".join([*self.by_name][:_SHOWN])
        source = f"there is {existing}" if existing else "there is none with a Lease"
        return SchedulerShown(name, SchedulerStatus.MISSING, source, nearest=near[0] if near else "")

    def with_seen(self, found: Iterable[SchedulerShown]) -> Schedulers:
        """Return them with schedulers that have left something."""
        return Schedulers(
            self.by_name, self.leases, {**self.seen, **{each.name: each for each in found}}, self.problem
        )


def schedulers_of(
    leases: Iterable[Manifest] | None,
    *,
    now: datetime,
    process: Mapping[str, str] | None = None,
    problem: str = "",
) -> Schedulers:
    """Return the schedulers that Leases and a process tell of.

    Args:
        leases: The Leases of Karmada's system namespace; None if they could not be read.
        now: The present.
        process: Names of the profiles of a process that has answered, to its name or address.
        problem: Why the Leases could not be read.
    """
    by_name: dict[str, SchedulerShown] = {}
    by_lease: dict[str, SchedulerShown] = {}
    for lease in leases or ():
        metadata = mapping(lease.get("metadata"))
        name = str(metadata.get("name") or "")
        annotations = mapping(metadata.get("annotations"))
        written = str(annotations.get(SCHEDULER_NAMES_ANNOTATION) or "")
        names = [each.strip() for each in written.split(",") if each.strip()]
        if not names and name == STOCK_LEASE:
            names = [DEFAULT_SCHEDULER_NAME]
        for each in names:
            shown = _of_lease(each, lease, now)
            if each not in by_name or not by_name[each].decides:
                by_name[each] = shown
        by_lease[name] = _of_lease(name, lease, now)
    for each, address in (process or {}).items():
        by_name[each] = SchedulerShown(each, SchedulerStatus.RUNNING, f"the process {address}")
    missing = problem or ("" if leases is not None else "they were not read")
    return Schedulers(by_name, by_lease, {}, missing)


def _of_lease(name: str, lease: Manifest, now: datetime) -> SchedulerShown:
    """Return a scheduler by its Lease. One that cannot be read tells nothing."""
    metadata, spec = mapping(lease.get("metadata")), mapping(lease.get("spec"))
    where = f"Lease {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    try:
        renewed = parse_time(str(spec.get("renewTime")))
    except ValueError:
        return SchedulerShown(name, SchedulerStatus.NOT_KNOWN, f"{where} has no time of renewal")
    seconds = spec.get("leaseDurationSeconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _MAX_SECONDS:
        seconds = _DEFAULT_SECONDS
    if renewed + timedelta(seconds=seconds) >= now:
        return SchedulerShown(name, SchedulerStatus.RUNNING, where)
    ended = "was released" if not spec.get("holderIdentity") else "was renewed for the last time"
    source = f"its {where} {ended} {age((now - renewed).total_seconds())} ago"
    return SchedulerShown(name, SchedulerStatus.DOWN, source, format_time(renewed))


def seen_in_bindings(bindings: Iterable[Binding]) -> list[SchedulerShown]:
    """Return the schedulers that have left a condition on bindings, with the time of the last one."""
    last: dict[str, str] = {}
    for each in bindings:
        condition = each.status.condition(SCHEDULED_CONDITION)
        if condition is not None:
            at = str(condition.get("lastTransitionTime") or "")
            name = each.spec.responsible_scheduler
            last[name] = max(last.get(name, ""), at)
    return [
        SchedulerShown(name, SchedulerStatus.SEEN, "it has decided about another binding", at)
        for name, at in last.items()
    ]


def seen_in_event(name: str, event: Manifest) -> SchedulerShown:
    """Return the scheduler that is the source of an Event."""
    at = event_time(event)
    reason = str(event.get("reason") or "")
    return SchedulerShown(name, SchedulerStatus.SEEN, f"it has written an Event {reason}".rstrip(), at)
