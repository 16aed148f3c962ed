"""The answers of a running scheduler: those of its fields that are shown, with the types that they have to have.

An answer comes from whatever listens at the URL of ``--from``, or from a capture that somebody has sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.explain.inputs import ProcessView
from karmada_scheduler.api.manifest import (
    ManifestError,
    read_boolean,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_texts,
    wrong_type,
)
from karmada_scheduler.structs import Struct

Fields = Mapping[str, Any]

_MAX_SECONDS: Final = 1e10


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


def view_of(found: Fields, *, has_record: bool) -> ProcessView:
    """Return the answer about a binding.

    Args:
        found: ``record``, ``queue``, ``process`` and ``error``.
        has_record: Whether the record counts, if there is one.

    Raises:
        ManifestError: A field has another type.
    """
    queue = read_mapping(found, "queue", "")
    record = read_optional_mapping(found, "record", "") if has_record else None
    return ProcessView(
        record=None if record is None else record_of(record),
        queue_state=read_text(queue, "state", "queue"),
        due_in=_number(queue, "dueInSeconds", "queue"),
        before=_count(queue, "before", "queue"),
        waited=_number(queue, "waitedSeconds", "queue"),
        priority=_count(queue, "priority", "queue"),
        proposal=_proposal(read_optional_mapping(queue, "proposal", "queue"), "queue.proposal"),
        process=read_text(found, "process", ""),
        problem=read_text(read_mapping(found, "error", ""), "message", "error"),
    )


def captured_view(found: Fields) -> ProcessView:
    """Return the answer about a binding that a capture has.

    Raises:
        ManifestError: A field has another type.
    """
    record = read_optional_mapping(found, "record", "process")
    return ProcessView(
        record=None if record is None else record_of(record),
        queue_state=read_text(found, "queue_state", "process"),
        due_in=_number(found, "due_in", "process"),
        before=_count(found, "before", "process"),
        waited=_number(found, "waited", "process"),
        priority=_count(found, "priority", "process"),
        proposal=_proposal(read_optional_mapping(found, "proposal", "process"), "process.proposal"),
        process=read_text(found, "process", "process"),
        problem=read_text(found, "problem", "process"),
    )


def record_of(found: Fields) -> Fields:
    """Return a record of a decision; of its attempts, the last one.

    Raises:
        ManifestError: A field has another type.
    """
    trigger = read_mapping(found, "trigger", "record")
    error = read_optional_mapping(found, "error", "record")
    capacity = read_mapping(found, "capacity", "record")
    accurate = read_mapping(capacity, "accurate", "record.capacity")
    general = read_mapping(capacity, "general", "record.capacity")
    return {
        **{name: read_text(found, name, "record") for name in ("key", "kind", "at", "process", "ending")},
        **{name: read_integer(found, name, "record") for name in ("generation", "tookMicros")},
        "trigger": {name: read_text(trigger, name, "record.trigger") for name in ("class", "event")},
        "error": error and {name: read_text(error, name, "record.error") for name in ("reason", "message")},
        "attempts": [_attempt(each) for each in read_mappings(found, "attempts", "record")[-1:]],
        "before": _counts(found, "before", "record") or {},
        "targets": _counts(found, "targets", "record"),
        "targetCount": _count(found, "targetCount", "record"),
        "fallbacks": [_fallback(each) for each in read_mappings(found, "fallbacks", "record")],
        "capacity": {
            "accurate": {"clusters": read_integer(accurate, "clusters", "record.capacity.accurate")},
            "general": {"oldestSeconds": _number(general, "oldestSeconds", "record.capacity.general")},
        },
    }


def state_of(found: Fields) -> ProcessState:
    """Return the state of a process from the response of its ``/v1/state``.

    Raises:
        ManifestError: A field has another type.
    """

    def count(name: str, field: str) -> int:
        return read_integer(read_mapping(found, name, ""), field, name)

    return ProcessState(
        name=read_text(found, "process", ""),
        version=read_text(found, "version", ""),
        leader=read_text(found, "leader", ""),
        is_leading=read_boolean(found, "leading", ""),
        due=count("queue", "due"),
        delayed=count("queue", "delayed"),
        processing=count("queue", "processing"),
        gated=count("gated", "count"),
        waiting=count("waitingAtPermit", "count"),
        assumed=count("assumedPlacements", "bindings"),
        records=count("records", "bindings"),
    )


def _attempt(found: Fields) -> Fields:
    refused, path = read_mappings(found, "refused", "record.attempts[]"), "record.attempts[].refused[]"
    return {
        "stages": _counts(found, "stages", "record.attempts[]") or {},
        "refused": [
            {
                "by": read_text(each, "by", path),
                "count": read_integer(each, "count", path),
                "why": read_text(each, "why", path),
            }
            for each in refused
        ],
    }


def _fallback(found: Fields) -> Fields:
    path = "record.fallbacks[]"
    return {
        "why": read_text(found, "why", path),
        "count": read_integer(found, "count", path),
        "names": list(read_texts(found, "names", path)),
    }


def _proposal(found: Fields | None, path: str) -> Fields | None:
    if found is None:
        return None
    texts = {name: read_text(found, name, path) for name in ("plugin", "reason")}
    return texts | {"dueInSeconds": _number(found, "dueInSeconds", path)}


def _counts(parent: Fields, key: str, path: str) -> dict[str, int] | None:
    found = read_optional_mapping(parent, key, path)
    return None if found is None else {name: read_integer(found, name, f"{path}.{key}") for name in found}


def _count(parent: Fields, key: str, path: str) -> int | None:
    return None if parent.get(key) is None else read_integer(parent, key, path)


def _number(parent: Fields, key: str, path: str) -> float | None:
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(value, f"{path}.{key}", "a number")
    if not math.isfinite(value) or abs(value) > _MAX_SECONDS:
        raise ManifestError(f"{path}.{key}", "is no number of seconds")
    return value
