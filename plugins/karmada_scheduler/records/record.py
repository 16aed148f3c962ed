"""The compact record of a decision: one JSON object of about 1 kB.

It holds what was seen at the time of the decision and cannot be computed again later: the number of clusters at each
stage, the refusals by reason, the best candidates with their available replicas, and the result. Lists are cut, with
their full length next to them, so that the size does not depend on the number of clusters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.core import condition
from karmada_scheduler.core.decision import Decision, TermAttempt, deciding_attempts
from karmada_scheduler.records.refusals import RefusalGroups
from karmada_scheduler.structs import Struct, field

VERSION: Final = 1
"""The version of the format. Within a version, fields are only added."""

MAX_BYTES: Final = 2048
"""A larger record is made again with the next smaller limits."""

WRITTEN: Final = "written"
"""The ending of an attempt whose result was written."""
UNCHANGED: Final = "unchanged"
"""The ending of an attempt whose result was there already."""

_PROBLEM: Final = 100
"""The length of the text of a problem in characters."""
_REST_BYTES: Final = 200
"""The usual length of the parts that follow the head, in bytes."""


def encode(value: object) -> bytes:
    """Return a value as JSON in UTF-8, without spaces."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a text of a plugin that is not Unicode, a score of more than 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


class RecordLimits(Struct, frozen=True):
    """The longest lists and texts of a record.

    Attributes:
        top: Candidates, the best first.
        selected: Names of selected clusters.
        targets: Targets.
        names: Names of clusters for each reason.
        reasons: Reasons of refusals for each attempt.
        attempts: Affinity terms.
        text: Characters of a message.
    """

    top: int
    selected: int
    targets: int
    names: int
    reasons: int
    attempts: int
    text: int


_LIMITS: Final = (
    RecordLimits(top=8, selected=32, targets=64, names=5, reasons=8, attempts=4, text=300),
    RecordLimits(top=4, selected=8, targets=32, names=3, reasons=5, attempts=2, text=200),
    RecordLimits(top=2, selected=2, targets=8, names=1, reasons=2, attempts=1, text=100),
)


class Decided(Struct):
    """A decision that is to be recorded.

    Attributes:
        binding: As it was when it was decided.
        decision: The decision about it.
        schedule_class: The kind of scheduling, as ``core.classify`` names it.
        event: The event that enqueued the binding, "" if it is unknown.
        at: When it was decided, in seconds since 1970.
        seconds: How long the attempt took until then.
        seq: The number of the record in this process, from 1.
        ending: How the attempt ended; None as long as it has not.
        ended: When it ended, in seconds since 1970.
        problem: Why nothing was written, "" if it was or did not have to be.
    """

    binding: Binding
    decision: Decision
    schedule_class: str
    event: str
    at: float
    seconds: float
    seq: int
    ending: str | None = None
    ended: float | None = None
    problem: str = ""


def process_name(identity: str) -> str:
    """Return the name of the Pod, or of the machine, from an identity in the Lease: the name of a process in its records."""
    return identity.rpartition("_")[0] or identity


class Process(Struct):
    """The parts that all records of a process share.

    Attributes:
        name: The name of the process.
        config: Returns a hash over gates, plugins and their arguments.
        oldest_summary: Returns when the oldest of the resource summaries of some clusters changed, in seconds since 1970;
            None if none is known.
        uses_estimators: Whether the estimators in the member clusters are called.
        refusals: Groups refusals.
    """

    name: str = ""
    config: Callable[[], str] = lambda: ""
    oldest_summary: Callable[[Iterable[str]], float | None] = lambda _: None
    uses_estimators: bool = False
    refusals: RefusalGroups = field(default_factory=RefusalGroups)


def head(decided: Decided, process: Process) -> bytes:
    """Return the record as JSON without a line break, up to the end of the attempt (``ending``) and the last brace."""
    for limits in _LIMITS:
        text = encode(_fields(decided, process, limits))[:-1]
        if len(text) <= MAX_BYTES - _REST_BYTES:
            break
    return text


def ending(decided: Decided) -> bytes:
    """Return the part about the end of the attempt, which follows the head."""
    written = timestamp(decided.ended) if decided.ended is not None and decided.ending == WRITTEN else None
    problem = decided.problem[:_PROBLEM] or None
    return b"," + encode({"ending": decided.ending, "written": written, "problem": problem})[1:-1]


def repetition(decided: Decided, count: int) -> bytes:
    """Return the part about later decisions with the same result; the last of ``count`` is given."""
    attempts = decided.decision.attempts
    last = {
        "count": count,
        "at": timestamp(decided.at),
        "event": decided.event or None,
        "fleet": _fleet(attempts),
    }
    return b"," + encode({"repeated": last})[1:-1]


def result_of(decided: Decided) -> int:
    """Return a number that is equal for decisions with the same targets about the same binding."""
    return hash((decided.binding.uid, decided.decision.targets))


def timestamp(seconds: float) -> str:
    """Return a time in seconds since 1970 as RFC 3339 text in UTC, with milliseconds."""
    millis = int(seconds * 1000)
    return f"{_to_the_second(millis // 1000)}.{millis % 1000:03}Z"


@lru_cache(maxsize=4)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def _fields(decided: Decided, process: Process, limits: RecordLimits) -> dict[str, Any]:
    binding, decision = decided.binding, decided.decision
    attempts, passes = deciding_attempts(decision)
    fields: dict[str, Any] = {
        "v": VERSION,
        "seq": decided.seq,
        "kind": binding.key.kind,
        "key": str(binding.key),
        "uid": binding.uid,
        "generation": binding.generation,
        "resourceVersion": binding.resource_version,
        "at": timestamp(decided.at),
        "tookMicros": round(decided.seconds * 1e6),
        "passes": passes,
        "process": process.name,
        "trigger": {"event": decided.event or None, "class": decided.schedule_class},
        "fleet": _fleet(attempts),
        "config": process.config(),
        "replicas": binding.spec.replicas,
    }
    if binding.spec.clusters and binding.spec.clusters != decision.targets:
        fields |= _targets("before", binding.spec.clusters, limits)
    fields["attempts"] = [_attempt(each, decision, process, limits) for each in attempts[: limits.attempts]]
    if len(attempts) > limits.attempts:
        fields["attemptCount"] = len(attempts)
    fields |= _targets("targets", decision.targets, limits)
    capacity = _capacity(attempts, decided, process)
    if capacity:
        fields["capacity"] = capacity
    if decision.fallbacks:
        fields["fallbacks"] = _fallbacks(decision.fallbacks, limits)
    fields["error"] = _error(decision, limits)
    return fields


def _fleet(attempts: Sequence[TermAttempt]) -> int | None:
    cycle = attempts[-1].cycle if attempts else None
    return None if cycle is None else cycle.snapshot.generation


def _attempt(
    attempt: TermAttempt, decision: Decision, process: Process, limits: RecordLimits
) -> dict[str, Any]:
    placed = attempt.targets or ()
    count = len(attempt.cycle.snapshot) if attempt.cycle is not None else 0
    groups = process.refusals.of(attempt.diagnosis.result_by_cluster)
    fields: dict[str, Any] = {
        "term": attempt.affinity_name or None,
        "stages": {
            "all": count,
            "filtered": len(attempt.candidates),
            "selected": len(attempt.selected),
            "placed": len(placed),
        },
        "refused": [
            {"by": group.plugin, **_counted(group.reason, group.clusters, limits)}
            for group in groups[: limits.reasons]
        ],
    }
    if len(groups) > limits.reasons:
        fields["reasonCount"] = len(groups)
    top = attempt.candidates[: limits.top]
    if top:
        fields["top"] = [[each.cluster.name, each.score, each.allocatable] for each in top]
    if len(attempt.selected) not in (len(placed), len(attempt.candidates)):
        fields["selected"] = [candidate.cluster.name for candidate in attempt.selected[: limits.selected]]
    if attempt.error is not None and attempt.error is not decision.error:
        fields["error"] = str(attempt.error)[: limits.text]
    return fields


def _targets(name: str, targets: Sequence[TargetCluster] | None, limits: RecordLimits) -> dict[str, Any]:
    if targets is None:
        return {name: None}
    fields: dict[str, Any] = {name: {target.name: target.replicas for target in targets[: limits.targets]}}
    if len(targets) > limits.targets:
        fields[f"{name.removesuffix('s')}Count"] = len(targets)
    return fields


def _capacity(attempts: Sequence[TermAttempt], decided: Decided, process: Process) -> dict[str, Any] | None:
    """Return whose estimates counted, for how many clusters, and the age of the oldest summary of a chosen one."""
    spec = decided.binding.spec
    last = attempts[-1] if attempts else None
    if last is None or not last.candidates or not (spec.replicas or spec.components):
        return None
    chosen = [target.name for target in (decided.decision.targets or ())[: _LIMITS[0].targets]]
    oldest = process.oldest_summary(chosen)
    general: dict[str, Any] = {"clusters": len(last.candidates)}
    if oldest is not None:
        general["oldestSeconds"] = round(max(0.0, decided.at - oldest), 1)
    found: dict[str, Any] = {"general": general}
    if process.uses_estimators and spec.is_workload:
        found["accurate"] = {"clusters": len(last.candidates) - len(decided.decision.fallbacks)}
    return found


def _fallbacks(fallbacks: Mapping[str, str], limits: RecordLimits) -> list[dict[str, Any]]:
    """Return the clusters whose estimator did not count, by reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in fallbacks.items():
        by_reason.setdefault(reason, []).append(name)
    ordered = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return [_counted(reason, names, limits) for reason, names in ordered[: limits.reasons]]


def _counted(reason: str, names: Sequence[str], limits: RecordLimits) -> dict[str, Any]:
    return {"why": reason[: limits.text], "count": len(names), "names": names[: limits.names]}


def _error(decision: Decision, limits: RecordLimits) -> dict[str, str] | None:
    if decision.error is None:
        return None
    found = condition.condition_of(decision)
    return {"reason": found.reason, "message": found.message[: limits.text]}
