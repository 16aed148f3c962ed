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
from karmada_advisor.state.stored import Manifest, age, event_time, mapping, text_of
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.api.well_known import (
    DEFAULT_PROFILES_ANNOTATION,
    SCHEDULED_CONDITION,
    SCHEDULER_NAMES_ANNOTATION,
    VERSION_ANNOTATION,
)
from karmada_scheduler.structs import Struct, field, replace

STOCK_LEASE: Final = "karmada-scheduler"
"""The Lease of karmada-scheduler.

Source: karmada v1.18.2 cmd/scheduler/app/options/options.go (--leader-elect-resource-name).
"""

_SHOWN: Final = 5
_DEFAULT_SECONDS: Final = 15.0
_MAX_SECONDS: Final = 86_400.0


class Schedulers(Struct, frozen=True):
    """What is known about schedulers.

    Attributes:
        by_name: Schedulers with a Lease or a process.
        leases: Those whose name is only that of a Lease; it counts if a binding names it.
        seen: Name to where and when a scheduler left something, for those without a Lease.
        problem: Why the Leases are not known; "" if they are.
        profiles: The profiles of this project whose plugins may be any, as Leases say.
        lease_of: The Lease of each of ``by_name`` and ``leases`` that has one.
    """

    by_name: Mapping[str, SchedulerShown] = field(default_factory=dict)
    leases: Mapping[str, SchedulerShown] = field(default_factory=dict)
    seen: Mapping[str, SchedulerShown] = field(default_factory=dict)
    problem: str = "they were not read"
    profiles: frozenset[str] = frozenset()
    lease_of: Mapping[str, Manifest] = field(default_factory=dict)

    def of(self, name: str) -> SchedulerShown:
        """Return what is known about the scheduler with a name."""
        for known in (self.by_name, self.leases, self.seen):
            if name in known:
                return known[name]
        if self.problem:
            return SchedulerShown(name)
        near = get_close_matches(name, sorted({*self.by_name, *self.seen}), n=1)
        existing = ", ".join([*self.by_name][:_SHOWN])
        source = f"there is {existing}" if existing else "there is none with a Lease"
        return SchedulerShown(name, SchedulerStatus.MISSING, source, nearest=near[0] if near else "")

    def with_seen(self, found: Iterable[SchedulerShown]) -> Schedulers:
        """Return them with schedulers that have left something."""
        return replace(self, seen={**self.seen, **{scheduler.name: scheduler for scheduler in found}})


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
    profiles: dict[str, bool] = {}
    held: dict[str, Manifest] = {}
    for lease in leases or ():
        metadata = mapping(lease.get("metadata"))
        name = str(metadata.get("name") or "")
        written = _names(metadata, SCHEDULER_NAMES_ANNOTATION)
        for scheduler in written or ([DEFAULT_SCHEDULER_NAME] if name == STOCK_LEASE else []):
            if scheduler not in by_name or not by_name[scheduler].decides:
                by_name[scheduler], held[scheduler] = _of_lease(scheduler, lease, now), lease
                profiles[scheduler] = scheduler in written and not decides_by_default(scheduler, lease)
        by_lease[name] = _of_lease(name, lease, now)
        held.setdefault(name, lease)
    for name, address in (process or {}).items():
        known = by_name.get(name) or by_lease.get(name)
        if known is None or known.status is SchedulerStatus.NOT_KNOWN:
            by_name[name] = SchedulerShown(name, SchedulerStatus.RUNNING, f"the process {address}")
    missing = problem or ("" if leases is not None else "they were not read")
    others = frozenset(name for name, is_other in profiles.items() if is_other)
    return Schedulers(by_name, by_lease, {}, missing, others, held)


def decides_by_default(scheduler: str, lease: Manifest) -> bool:
    """Return whether a Lease says that a profile has the plugins and gates that karmada-scheduler has by default."""
    return scheduler in _names(mapping(lease.get("metadata")), DEFAULT_PROFILES_ANNOTATION)


def version_on(lease: Manifest) -> str:
    """Return the version of the process that holds a Lease; "" if it, or its predecessor, has not written one."""
    version, _, holder = text_of(lease, "metadata", "annotations", VERSION_ANNOTATION).partition(" of ")
    return version if holder and holder == text_of(lease, "spec", "holderIdentity") else ""


def _names(metadata: Manifest, annotation: str) -> list[str]:
    """Return the names that an annotation of a Lease lists."""
    written = str(mapping(metadata.get("annotations")).get(annotation) or "")
    return [name.strip() for name in written.split(",") if name.strip()]


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
    is_released = spec.get("holderIdentity") == ""
    if not is_released and renewed + timedelta(seconds=seconds) >= now:
        return SchedulerShown(name, SchedulerStatus.RUNNING, where)
    ended = "was released" if is_released else "was renewed for the last time"
    source = f"its {where} {ended} {age((now - renewed).total_seconds())} ago"
    return SchedulerShown(name, SchedulerStatus.DOWN, source, format_time(renewed))


def seen_in_bindings(bindings: Iterable[Binding]) -> list[SchedulerShown]:
    """Return the schedulers that have left a condition on bindings, with the time of the last one.

    A condition about an earlier generation may be that of another scheduler: a change of the name is a new generation.
    """
    last: dict[str, str] = {}
    for binding in bindings:
        condition = binding.status.condition(SCHEDULED_CONDITION)
        if condition is not None and binding.status.scheduler_observed_generation in (0, binding.generation):
            at = str(condition.get("lastTransitionTime") or "")
            name = binding.spec.responsible_scheduler
            last[name] = max(last.get(name, ""), at)
    where, seen = "it has decided about another binding", SchedulerStatus.SEEN
    return [SchedulerShown(name, seen, where, at) for name, at in last.items()]


def seen_in_event(name: str, event: Manifest) -> SchedulerShown:
    """Return the scheduler that is the source of an Event."""
    at = event_time(event)
    reason = str(event.get("reason") or "")
    return SchedulerShown(name, SchedulerStatus.SEEN, f"it has written an Event {reason}".rstrip(), at)
