"""The text of ``status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.fleet_status import FleetStatus, SchedulerUse
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.stored import age
from karmada_advisor.views.document import Line, Section, Table
from karmada_advisor.views.text import Style, text
from karmada_scheduler.api.manifest import parse_time

_HEADING: Final = ("SCHEDULER", "STATUS", "BINDINGS", "WANTED", "PLACED", "RUNNING", "NOT REPORTED", "STATES")
_SETUP: Final = ("SCHEDULER", "VERSION", "PLUGINS AND GATES")
_NOT_KNOWN: Final = "not known"
_NOBODY: Final = "No scheduler is known: no Lease and no binding that was read names one"


def status_text(found: FleetStatus, style: Style) -> str:
    """Return the text."""
    return text(_sections(found), style)


def _sections(found: FleetStatus) -> Iterator[Section]:
    clusters = "clusters were not read" if found.clusters is None else counted(found.clusters, "cluster")
    not_ready = f", {len(found.not_ready)} not ready: {', '.join(found.not_ready)}" if found.not_ready else ""
    access = found.access
    served = f"; its bindings are those of Karmada {access.served}" if access and access.served else ""
    yield [f"{clusters}{not_ready}; as stored at {found.source}{served}"]
    more = "" if found.has_all_bindings else "+"
    rows = [_row(use, more) for use in found.schedulers]
    yield [
        Table(_HEADING, rows, align="<<>>>>><", optional=(7,)) if rows else _NOBODY,
        *(["+: at least, because not all bindings were read"] if more and rows else []),
    ]
    if found.schedulers:
        yield [Table(_SETUP, [_setup(use) for use in found.schedulers])]
    yield _process(found)
    if access:
        ends = ((expiry.what, _end(expiry.ends, found.at)) for expiry in access.expiries)
        yield ["Ends:", *(f"- {what}: {end}" for what, end in ends)]
    if found.not_read:
        yield ["Not read:", *(f"- {kind}: {why}" for kind, why in found.not_read.items())]
    if access and access.not_known:
        yield [f"Which lists you may not read is not known: {access.not_known}"]
    elif access and access.refused:
        yield [
            f"{access.reader or 'You'} may not list, in all namespaces: {', '.join(access.refused)}. It is granted by:",
            *(Line(f"  {line}", breaks=False) for line in access.grant),
        ]


def _row(use: SchedulerUse, more: str) -> list[str]:
    shown, replicas = use.scheduler, use.replicas
    preposition = "at" if shown.status is SchedulerStatus.SEEN else "since"
    status = shown.status.value + (f" {preposition} {shown.since}" if shown.since else "")
    named = sum(use.bindings.values())
    numbers = (named, replicas.wanted, replicas.placed, replicas.running, replicas.unknown)
    states = ", ".join(f"{count:,} {state}" for state, count in use.bindings.items())
    return [shown.name, status, *(f"{number:,}{more}" for number in numbers), states]


def _setup(use: SchedulerUse) -> list[str]:
    found = use.setup
    said = ((found.version, found.version_source), (found.rules, found.rules_source))
    words = (f"{what} ({source})" if what else _NOT_KNOWN for what, source in said)
    return [use.scheduler.name, *words]


def _process(status: FleetStatus) -> Section:
    if (found := status.process) is None:
        return ["Queue, records and ages of watches: not known (--from asks a running scheduler)"]
    leads = "leads" if found.is_leading else f"does not lead; {found.leader or 'no process'} does"
    queue = ", ".join(f"{getattr(found, name):,} {name}" for name in ("due", "delayed", "gated", "waiting"))
    silent = ", ".join(f"{kind} {age(seconds)}" for kind, seconds in found.watch_ages.items())
    return [
        f"The process {found.name} {leads}.",
        f"- bindings: {queue}; {found.records:,} with a record",
        f"- since its watches have said something: {silent or _NOT_KNOWN}",
    ]


def _end(ends: str, now: str) -> str:
    if not ends:
        return _NOT_KNOWN
    left = (parse_time(ends) - parse_time(now)).total_seconds()
    return f"{ends}, {f'in {age(left)}' if left > 0 else f'{age(-left)} AGO'}"
