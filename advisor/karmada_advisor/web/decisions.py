"""The last decisions as rows: records of a running scheduler, or what the bindings themselves say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.state.model import BindingEntry, StateName, Target
from karmada_advisor.state.stored import condition_of
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_scheduler.structs import Struct, field

SHOWN: Final = 200

RECORDS: Final = "records of the scheduler"
OBJECTS: Final = "the bindings"


class DecisionRow(BindingEntry, frozen=True, kw_only=True):
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
    schedule_class: str = ""
    event: str = ""
    stages: Mapping[str, int] = field(default_factory=dict)
    before: tuple[Target, ...] = ()
    placement: tuple[Target, ...] | None
    reason: str
    message: str
    ending: str = ""
    micros: int = 0
    refused_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether it placed the binding, or had nothing to place."""
        return self.reason == "Success"


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


def of_records(records: Sequence[Mapping[str, Any]]) -> tuple[DecisionRow, ...]:
    """Return rows of records, as ``fleet.process_answers.record_of`` returns them, the newest first."""
    return tuple(map(_of_record, reversed(records)))


def _of_record(record: Mapping[str, Any]) -> DecisionRow:
    namespace, _, name = record["key"].rpartition("/")
    error, targets, attempts = record["error"] or {}, record["targets"], record["attempts"]
    last = attempts[-1] if attempts else {"stages": {}, "refused": ()}
    return DecisionRow(
        at=record["at"],
        kind=record["kind"],
        namespace=namespace,
        name=name,
        schedule_class=record["trigger"]["class"],
        event=record["trigger"]["event"],
        stages=last["stages"],
        before=_targets(record["before"]),
        placement=None if targets is None else _targets(targets),
        reason=error.get("reason") or "Success",
        message=error.get("message") or "",
        ending=record["ending"],
        micros=record["tookMicros"],
        refused_by={refusal["by"]: refusal["count"] for refusal in last["refused"]},
    )


def _targets(found: Mapping[str, int]) -> tuple[Target, ...]:
    return tuple(Target(name, count) for name, count in found.items())


def of_objects(rows: Iterable[IndexedBinding]) -> tuple[DecisionRow, ...]:
    """Return what bindings say about their last decision."""
    return tuple(
        DecisionRow(
            at=row.last_scheduled,
            kind=row.kind,
            namespace=row.namespace,
            name=row.name,
            placement=_stored(row) if row.state is not StateName.STUCK else None,
            reason=row.condition,
            message=condition_of(row.binding).message if row.condition != "Success" else "",
        )
        for row in rows
    )


def _stored(row: IndexedBinding) -> tuple[Target, ...]:
    return tuple(Target(target.name, target.replicas) for target in sorted(row.binding.spec.clusters))
