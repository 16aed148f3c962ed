"""Small readers of stored fields, which expect any value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION

Manifest = Mapping[str, Any]

_MESSAGE: Final = 300
"""Characters of a stored message in a sentence."""


class Stored(NamedTuple):
    """The condition Scheduled of a binding; empty texts without one."""

    status: str
    reason: str
    message: str
    since: str


def condition_of(binding: Binding) -> Stored:
    """Return the condition Scheduled of a binding."""
    found = binding.status.condition(SCHEDULED_CONDITION) or {}
    status, reason, message, since = (
        str(found.get(name) or "") for name in ("status", "reason", "message", "lastTransitionTime")
    )
    return Stored(status, reason, message, since)


def short(message: str) -> str:
    """Return a message in one line without a final full stop, cut if it is long."""
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) <= _MESSAGE else f"{text[: _MESSAGE - 3]}..."


def duration(seconds: int) -> str:
    """Return a duration for people."""
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60)} min"


def age(seconds: float) -> str:
    """Return how long ago something was, for people, in the largest unit of which it has two."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping, an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list, none for any other value."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [each for each in value if isinstance(each, Mapping)]


def texts(value: object) -> list[str]:
    """Return the texts in a list, none for any other value."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def value_at(manifest: Mapping[str, Any] | None, *path: str) -> Any:
    """Return the value at a path of a manifest, None if there is none."""
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
