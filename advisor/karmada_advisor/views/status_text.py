"""The text of ``status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.fleet_status import FleetStatus, SchedulerUse
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.views.document import Section, Table
from karmada_advisor.views.text import Style, text

_HEADING: Final = ("SCHEDULER", "STATUS", "BINDINGS", "WANTED", "PLACED", "RUNNING", "NOT REPORTED", "STATES")


def status_text(found: FleetStatus, style: Style) -> str:
    """Return the text."""
    return text(_sections(found), style)


def _sections(found: FleetStatus) -> Iterator[Section]:
    clusters = counted(found.clusters, "cluster")
    not_ready = f", {len(found.not_ready)} not ready: {', '.join(found.not_ready)}" if found.not_ready else ""
    yield [f"{clusters}{not_ready}; as stored at {found.source}"]
    yield [Table(_HEADING, [_row(use) for use in found.schedulers], align="<<>>>>><", optional=(7,))]
    if found.not_read:
        yield ["Not read:", *(f"- {kind}: {why}" for kind, why in found.not_read.items())]


def _row(use: SchedulerUse) -> list[str]:
    shown, replicas = use.scheduler, use.replicas
    preposition = "at" if shown.status is SchedulerStatus.SEEN else "since"
    status = shown.status.value + (f" {preposition} {shown.since}" if shown.since else "")
    numbers = (replicas.wanted, replicas.placed, replicas.running, replicas.unknown)
    states = ", ".join(f"{count:,} {state}" for state, count in use.bindings.items())
    return [shown.name, status, f"{sum(use.bindings.values()):,}", *(f"{each:,}" for each in numbers), states]
