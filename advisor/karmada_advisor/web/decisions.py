"""The last decisions as rows: records of a running scheduler, or what the bindings themselves say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from karmada_advisor.explain.model import Target
from karmada_advisor.state.model import StateName
from karmada_advisor.state.stored import condition_of
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_scheduler.structs import Struct

SHOWN: Final = 200

RECORDS: Final = "records of the scheduler"
OBJECTS: Final = "the bindings"


class DecisionRow(Struct, frozen=True):
    """One decision.

    Attributes:
        at: When, in the format of the API.
        schedule_class: First, Reconcile, Scale or Failover; "" if it is not known.
        event: What enqueued the binding; "" for a timer, or if it is not known.
        stages: The number of clusters after each step; empty if it is not known.
        before: What the binding had, if that was something else.
        placement: The result; None if the placement was kept.
        reason: The reason of the condition; "Success" for a success.
        message: The message of an error; "" without one.
        ending: How the attempt ended: ``written``, ``unchanged``, ``conflict``; "" if it is not known.
        micros: How long the decision took; 0 if it is not known.
        refused_by: The plugins that refused clusters, with the number of clusters.
    """

    at: str
    kind: str
    namespace: str
    name: str
    schedule_class: str
    event: str
    stages: Mapping[str, int]
    before: tuple[Target, ...]
    placement: tuple[Target, ...] | None
    reason: str
    message: str
    ending: str
    micros: int
    refused_by: Mapping[str, int]

    def __str__(self) -> str:
        """``namespace/name``, or the name without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_good(self) -> bool:
        """Whether it placed the binding, or had nothing to place."""
        return self.reason == "Success"


class ProcessState(Struct, frozen=True):
    """The state of a running scheduler that the API server does not know.

    Attributes:
        name: Of the process.
        is_leading: Whether it decides; another process does otherwise.
        leader: The process that decides, "" if it is this one or not known.
        due: Bindings that are due.
        delayed: Bindings that are retried later.
        processing: Bindings that are being scheduled.
        gated: Bindings that PreEnqueue plugins hold back.
        waiting: Bindings that wait at Permit.
        assumed: Assumed placements.
        records: Bindings with a record.
        problem: Why nothing else is known; "" otherwise.
    """

    name: str = ""
    version: str = ""
    is_leading: bool = False
    leader: str = ""
    due: int = 0
    delayed: int = 0
    processing: int = 0
    gated: int = 0
    waiting: int = 0
    assumed: int = 0
    records: int = 0
    problem: str = ""


class Decisions(Struct, frozen=True):
    """The last decisions, the newest first.

    Attributes:
        source: Where they come from.
        problem: Why the records of the scheduler are not shown; "" if they are, or none was asked for.
        process: The state of the scheduler; None if none was asked for.
    """

    source: str
    rows: tuple[DecisionRow, ...]
    problem: str = ""
    process: ProcessState | None = None


def of_records(records: Iterable[Mapping[str, Any]]) -> tuple[DecisionRow, ...]:
    """Return rows of records, the newest first; records that cannot be read are left out."""
    rows = []
    for record in records:
        try:
            rows.append(_of_record(record))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # of another version of the scheduler
    return tuple(reversed(rows))


def _of_record(record: Mapping[str, Any]) -> DecisionRow:
    namespace, _, name = str(record["key"]).rpartition("/")
    trigger, error = record.get("trigger") or {}, record.get("error") or {}
    attempts = record.get("attempts") or ()
    last = attempts[-1] if attempts else {}
    targets = record.get("targets")
    return DecisionRow(
        at=str(record["at"]),
        kind=str(record["kind"]),
        namespace=namespace,
        name=name,
        schedule_class=str(trigger.get("class") or ""),
        event=str(trigger.get("event") or ""),
        stages={str(key): int(count) for key, count in (last.get("stages") or {}).items()},
        before=_targets(record.get("before") or {}),
        placement=None if targets is None else _targets(targets),
        reason=str(error.get("reason") or "Success"),
        message=str(error.get("message") or ""),
        ending=str(record.get("ending") or ""),
        micros=int(record.get("tookMicros") or 0),
        refused_by={str(each["by"]): int(each["count"]) for each in last.get("refused") or ()},
    )


def _targets(found: Mapping[str, int]) -> tuple[Target, ...]:
    return tuple(Target(str(name), int(count)) for name, count in found.items())


def of_objects(rows: Iterable[IndexedBinding]) -> tuple[DecisionRow, ...]:
    """Return what bindings say about their last decision."""
    return tuple(
        DecisionRow(
            at=row.last_scheduled,
            kind=row.kind,
            namespace=row.namespace,
            name=row.name,
            schedule_class="",
            event="",
            stages={},
            before=(),
            placement=_stored(row) if row.state is not StateName.STUCK else None,
            reason=row.condition,
            message=condition_of(row.binding).message if row.condition != "Success" else "",
            ending="",
            micros=0,
            refused_by={},
        )
        for row in rows
    )


def _stored(row: IndexedBinding) -> tuple[Target, ...]:
    return tuple(Target(each.name, each.replicas) for each in sorted(row.binding.spec.clusters))


def process_state(found: Mapping[str, Any]) -> ProcessState:
    """Return the state of a process from the response of its ``/v1/state``."""
    queue = found.get("queue") or {}

    def count(name: str, field: str) -> int:
        return int((found.get(name) or {}).get(field) or 0)

    return ProcessState(
        name=str(found.get("process") or ""),
        version=str(found.get("version") or ""),
        is_leading=bool(found.get("leading")),
        leader=str(found.get("leader") or ""),
        due=int(queue.get("due") or 0),
        delayed=int(queue.get("delayed") or 0),
        processing=int(queue.get("processing") or 0),
        gated=count("gated", "count"),
        waiting=count("waitingAtPermit", "count"),
        assumed=count("assumedPlacements", "bindings"),
        records=count("records", "bindings"),
    )
