"""Reads fields of manifests, with errors that name the field, RFC 3339 times, and durations as Go reads them: ``1m30s``.

A manifest is an object of the API server, decoded from JSON. The readers accept what Go's decoder accepts: a missing
key and an explicit null are the zero value, unknown keys are ignored, a value of another type is an error.

Source of durations: go 1.26 src/time/format.go ParseDuration, which metav1.Duration uses.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from datetime import MINYEAR, UTC, datetime, timedelta
from typing import Any, Final

import orjson

Manifest = Mapping[str, Any]

_EMPTY: Final[Manifest] = {}
_SHORT: Final = reprlib.Repr()
"""Shows the start of a value, which may have a million entries."""
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 80
FIRST_MOMENT: Final = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT: Final = datetime.max.replace(microsecond=0, tzinfo=UTC)

_SECOND: Final = timedelta(seconds=1)
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART: Final = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_SECONDS)})")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63 / 1e9


class ManifestError(ValueError):
    """A manifest does not have the shape of its kind.

    Attributes:
        path: The field, as in ``spec.clusters[1].replicas``.
        problem: The value, and what is expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        path = path.removeprefix(".")  # a field of the manifest itself
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem

    def below(self, parent: str) -> ManifestError:
        """Return the same error seen from an enclosing object."""
        return ManifestError(f"{parent}.{self.path}" if self.path else parent, self.problem)


def wrong_type(value: object, path: str, expected: str) -> ManifestError:
    """Build the error for a value of another type than the field has."""
    try:
        shown = _SHORT.repr(value)
    except ValueError:  # a number of too many digits
        shown = "of absurd size"
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return ManifestError(path, f"expected {expected}, got {type(value).__name__} {shown}")


def read_mapping(parent: Manifest, key: str, path: str) -> Manifest:
    """Read an object; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return _EMPTY
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise wrong_type(value, f"{path}.{key}", "an object")


def read_optional_mapping(parent: Manifest, key: str, path: str) -> Manifest | None:
    """Read an object whose absence differs from its being empty."""
    value = parent.get(key)
    if value is None or type(value) is dict or isinstance(value, Mapping):
        return value
    raise wrong_type(value, f"{path}.{key}", "an object")


def read_sequence(parent: Manifest, key: str, path: str) -> Sequence[Any]:
    """Read a list; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise wrong_type(value, f"{path}.{key}", "a list")


def read_mappings(parent: Manifest, key: str, path: str) -> list[Manifest]:
    """Read a list of objects; a null entry is an empty object, as in Go."""
    found: list[Manifest] = []
    for index, value in enumerate(read_sequence(parent, key, path)):
        if value is None:
            found.append(_EMPTY)
        elif type(value) is dict or isinstance(value, Mapping):
            found.append(value)
        else:
            raise wrong_type(value, f"{path}.{key}[{index}]", "an object")
    return found


def read_text(parent: Manifest, key: str, path: str) -> str:
    """Read a string; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise wrong_type(value, f"{path}.{key}", "a string")


def read_required_text(parent: Manifest, key: str, path: str) -> str:
    """Read a string that every such object has."""
    value = read_text(parent, key, path)
    if not value:
        raise ManifestError(f"{path}.{key}", "is missing")
    return value


def read_texts(parent: Manifest, key: str, path: str) -> tuple[str, ...]:
    """Read a list of strings; a null entry is an empty string, as in Go."""
    values = parent.get(key)
    if not values and (values is None or isinstance(values, list | tuple)):
        return ()
    found: list[str] = []
    for index, value in enumerate(read_sequence(parent, key, path)):
        if value is not None and not isinstance(value, str):
            raise wrong_type(value, f"{path}.{key}[{index}]", "a string")
        found.append(value or "")
    return tuple(found)


def read_text_map(parent: Manifest, key: str, path: str) -> Mapping[str, str]:
    """Read a map of strings; a null value is an empty string, as in Go."""
    found = read_mapping(parent, key, path)
    for value in found.values():
        if not isinstance(value, str):
            return _repaired_text_map(found, f"{path}.{key}")
    return found


def _repaired_text_map(found: Manifest, path: str) -> Mapping[str, str]:
    repaired: dict[str, str] = {}
    for name, value in found.items():
        if value is not None and not isinstance(value, str):
            raise wrong_type(value, f"{path}.{name}", "a string")
        repaired[name] = value or ""
    return repaired


def read_integer(parent: Manifest, key: str, path: str, *, bits: int = 64) -> int:
    """Read a signed integer with this number of bits; an absent one is 0."""
    value = parent.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return value
        raise ManifestError(f"{path}.{key}", f"{value} does not fit into {bits} bits")
    raise wrong_type(value, f"{path}.{key}", "an integer")


def integer_at(parent: Mapping[str, Any], key: str) -> int | None:
    """Return an integer, None if it is missing or something else."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_boolean(parent: Manifest, key: str, path: str) -> bool:
    """Read a truth value; an absent one is false."""
    value = parent.get(key)
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    raise wrong_type(value, f"{path}.{key}", "true or false")


def read_time(parent: Manifest, key: str, path: str) -> datetime | None:
    """Read an RFC 3339 time."""
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, datetime):  # PyYAML reads an unquoted time as one
        return _in_utc(value if value.tzinfo else value.replace(tzinfo=UTC))
    if not isinstance(value, str):
        raise wrong_type(value, f"{path}.{key}", "an RFC 3339 time")
    try:
        return parse_time(value)
    except ValueError as problem:
        raise ManifestError(f"{path}.{key}", str(problem)) from None


def parse_time(value: str) -> datetime:
    """Read an RFC 3339 time, in UTC; ValueError for anything else.

    The offset of a time in the first or the last day that there is can lead out of the years 1 to 9999; it is the first or
    the last moment then.
    """
    if _RFC3339.fullmatch(value) is None:
        raise ValueError(f"expected an RFC 3339 time like 2026-01-31T13:00:00Z, got {value!r}")
    return _in_utc(datetime.fromisoformat(value))


def format_time(moment: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds."""
    return _in_utc(moment).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def second_after(moment: datetime) -> datetime:
    """Return the time one second later, in UTC; the last moment that there is has none."""
    moment = _in_utc(moment)
    return LAST_MOMENT if moment > LAST_MOMENT - _SECOND else moment + _SECOND


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return LAST_MOMENT if moment.year > MINYEAR else FIRST_MOMENT


def content_of(value: object) -> bytes:
    """Return a part of a manifest as JSON with sorted keys, for comparisons."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers beyond 64 bits
        return json.dumps(value, sort_keys=True, default=str).encode()


def duration_seconds(text: str) -> float:
    """Return a duration in seconds; ValueError if it is none, or longer than 292 years."""
    total = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text))
    if not _DURATION.fullmatch(text) or total >= _LONGEST:
        raise ValueError(f"expected a duration such as 5s or 1m30s, got {text!r:.60}")
    return -total if text.startswith("-") else total
