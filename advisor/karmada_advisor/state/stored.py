"""Readers of stored fields, which expect any value; the condition Scheduled, and the refusals in its message."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION

Manifest = Mapping[str, Any]

_MESSAGE: Final = 300
"""Characters of a stored message in a sentence."""


def event_time(event: Manifest) -> str:
    """Return when something was reported for the last time, in the format of the API; "" if the Event does not say it."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


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


def content_of(value: object) -> bytes:
    """Return a part of a manifest as JSON with sorted keys, for comparisons."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers beyond 64 bits
        return json.dumps(value, sort_keys=True, default=str).encode()


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping, an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list, none for any other value."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [each for each in value if isinstance(each, Mapping)]


def command_line(container: Mapping[str, Any]) -> list[str]:
    """Return the command and the arguments of a container."""
    lists = [container.get(name) for name in ("command", "args")]
    return [str(word) for each in lists if isinstance(each, list) for word in each]


def texts(value: object) -> list[str]:
    """Return the texts in a list, none for any other value."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def value_at(manifest: Mapping[str, Any] | None, *path: str) -> Any:
    """Return the value at a path of a manifest, None if there is none."""
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


_IN_TREE: Final = (
    "cluster(s) did not have",
    "cluster(s) did not match",
    "cluster(s) had untolerated taint",
    "cluster(s) is in the process of eviction",
    "cluster(s) did not satisfy",
)
"""How the reasons of Karmada's own filters begin; the taints and properties follow."""

_REFUSALS: Final = re.compile(r"clusters are available: (?P<refusals>.*)", re.DOTALL)
_REFUSAL: Final = re.compile(r",\s+(?=\d+ )")


class Refused(NamedTuple):
    """The clusters that were refused for one reason."""

    number: str
    reason: str

    def __str__(self) -> str:
        """Return the text of the condition: ``2 cluster(s) had no contract``."""
        return f"{self.number} {self.reason}"


def foreign_refusals(message: str) -> list[Refused]:
    """Return the refusals that no filter of Karmada's own gives; none for the message of another error."""
    found = _REFUSALS.search(message)
    parts = _REFUSAL.split(found["refusals"]) if found is not None else ()
    refused = [Refused(*each.strip().rstrip(".").partition(" ")[::2]) for each in parts]
    return [each for each in refused if each.number.isdecimal() and not each.reason.startswith(_IN_TREE)]
