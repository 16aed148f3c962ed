"""The answers of a running scheduler: those of its fields that are shown, with the types that they have to have.

An answer comes from whatever listens at the URL of ``--from``, or from a capture that somebody has sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

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
from karmada_scheduler.structs import Struct, field, replace

Fields = Mapping[str, Any]

_MAX_SECONDS: Final = 1e10


class ProcessView(Struct, frozen=True):
    """The answer of a process that records decisions.

    Attributes:
        record: The last record of the binding, None without one.
        queue_state: ``active``, ``backoff``, ``unschedulable``, ``processing``, ``gated``, ``waiting``, or "" if it is in
            no queue.
        due_in: Seconds until the next decision, None if none is due by timer.
        before: How many bindings come first if it is active; None if that is not known.
        waited: For how many seconds it has been active; None if it is not.
        priority: Its priority; None in a queue without.
        proposal: The last refused proposal of a Reconsider plugin: ``plugin``, ``reason``, and ``dueInSeconds`` until it
            is accepted if nothing changes; None without one.
        process: The name of the process.
        problem: Why there is no record; "" if there is one.
    """

    record: Mapping[str, Any] | None = None
    queue_state: str = ""
    due_in: float | None = None
    before: int | None = None
    waited: float | None = None
    priority: int | None = None
    proposal: Mapping[str, Any] | None = None
    process: str = ""
    problem: str = ""

    @property
    def waits_for(self) -> str:
        """Why the last proposal was refused, and until when; "" without one."""
        if self.proposal is None:
            return ""
        due_in = self.proposal.get("dueInSeconds")
        left = "" if due_in is None else f", in {due_in:.0f} s if nothing changes"
        return f"{self.proposal.get('reason') or ''}{left}"


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
        watch_ages: Seconds since each watch has said something, by kind; empty if the process does not say it.
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
    watch_ages: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


def view_of(found: Fields, *, has_record: bool) -> ProcessView:
    """Return the answer about a binding.

    Args:
        found: ``record``, ``queue``, ``process`` and ``error``.
        has_record: Whether the record counts, if there is one.

    Raises:
        ManifestError: A field has another type.
    """
    record = read_optional_mapping(found, "record", "") if has_record else None
    names = "state", "dueInSeconds", "waitedSeconds"
    problem = read_text(read_mapping(found, "error", ""), "message", "error")
    view = _view(record, read_mapping(found, "queue", ""), "queue", names)
    return replace(view, process=read_text(found, "process", ""), problem=problem)


def captured_view(found: Fields) -> ProcessView:
    """Return the answer about a binding that a capture has.

    Raises:
        ManifestError: A field has another type.
    """
    path, names = "process", ("queue_state", "due_in", "waited")
    view = _view(read_optional_mapping(found, "record", path), found, path, names)
    return replace(view, process=read_text(found, "process", path), problem=read_text(found, "problem", path))


def _view(record: Fields | None, queue: Fields, path: str, names: tuple[str, str, str]) -> ProcessView:
    """Return an answer; ``names`` are those of the state, the time until the next decision, and the time in the queue."""
    state, due_in, waited = names
    return ProcessView(
        None if record is None else record_of(record),
        read_text(queue, state, path),
        _number(queue, due_in, path),
        _count(queue, "before", path),
        _number(queue, waited, path),
        _count(queue, "priority", path),
        _optional(_PROPOSAL, queue, "proposal", path),
    )


def record_of(found: Fields) -> Fields:
    """Return a record of a decision; of its attempts, the last one.

    Raises:
        ManifestError: A field has another type.
    """
    return _fields(found, "record", _RECORD)


def state_of(found: Fields) -> ProcessState:
    """Return the state of a process from the response of its ``/v1/state``.

    Raises:
        ManifestError: A field has another type.
    """

    def count(name: str, field: str) -> int:
        return read_integer(read_mapping(found, name, ""), field, name)

    ages = read_mapping(found, "watchAgesSeconds", "")
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
        watch_ages={name: _number(ages, name, "watchAgesSeconds") or 0.0 for name in ages},
    )


Readers = Mapping[str, Callable[[Fields, str, str], Any]]
"""By name of a field, what reads it from its parent, as ``read_text`` does."""


def _fields(found: Fields, path: str, readers: Readers) -> Fields:
    return {name: read(found, name, path) for name, read in readers.items()}


def _optional(readers: Readers, parent: Fields, key: str, path: str) -> Fields | None:
    """Return the fields of an object; None without one, or if it is empty."""
    found = read_optional_mapping(parent, key, path)
    return _fields(found, f"{path}.{key}", readers) if found else None


def _within(readers: Readers, parent: Fields, key: str, path: str) -> Fields:
    """Return the fields of an object that is empty if it is missing."""
    return _fields(read_mapping(parent, key, path), f"{path}.{key}", readers)


def _listed(readers: Readers, parent: Fields, key: str, path: str) -> list[Fields]:
    """Return the fields of the objects of a list."""
    return [_fields(found, f"{path}.{key}[]", readers) for found in read_mappings(parent, key, path)]


def _last(readers: Readers, parent: Fields, key: str, path: str) -> list[Fields]:
    """Return the fields of the last object of a list; none without one."""
    return [_fields(found, f"{path}.{key}[]", readers) for found in read_mappings(parent, key, path)[-1:]]


def _counts(parent: Fields, key: str, path: str) -> dict[str, int] | None:
    found = read_optional_mapping(parent, key, path)
    return None if found is None else {name: read_integer(found, name, f"{path}.{key}") for name in found}


def _some_counts(parent: Fields, key: str, path: str) -> dict[str, int]:
    return _counts(parent, key, path) or {}


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


_PROPOSAL: Final[Readers] = {"plugin": read_text, "reason": read_text, "dueInSeconds": _number}
_REFUSED: Final[Readers] = {"by": read_text, "count": read_integer, "why": read_text}
_RECORD: Final[Readers] = {
    **dict.fromkeys(("key", "kind", "at", "process", "ending"), read_text),
    **dict.fromkeys(("generation", "tookMicros"), read_integer),
    "trigger": partial(_within, {"class": read_text, "event": read_text}),
    "error": partial(_optional, {"reason": read_text, "message": read_text}),
    "attempts": partial(_last, {"stages": _some_counts, "refused": partial(_listed, _REFUSED)}),
    "before": _some_counts,
    "targets": _counts,
    "targetCount": _count,
    "fallbacks": partial(_listed, {"why": read_text, "count": read_integer, "names": read_texts}),
    "capacity": partial(
        _within,
        {
            "accurate": partial(_within, {"clusters": read_integer}),
            "general": partial(_within, {"oldestSeconds": _number}),
        },
    ),
}
