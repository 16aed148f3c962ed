"""What all objects share: errors that name a field, readers of manifest fields, times, well-known keys.

A manifest is what the API server sends, decoded from JSON. The readers accept what Go's decoder accepts:
a missing key and an explicit null are the zero value, unknown keys are ignored, a wrong type is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from karmada_scheduler.api.content_cache import MEBI, remembered

Manifest = Mapping[str, Any]

APPLIED_PLACEMENT_ANNOTATION: Final = "policy.karmada.io/applied-placement"
POLICY_ID_LABEL: Final = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_ID_LABEL: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
MANAGED_BY_LABEL: Final = "binding.karmada.io/managed-by"

SCHEDULED_CONDITION: Final = "Scheduled"
FULLY_APPLIED_CONDITION: Final = "FullyApplied"

_SHARED_TEXTS: Final = 1 << 16
_SHORT_TEXT: Final = 256
"""Names and label values are no longer."""
_SHARED_MAPS: Final = 1 << 13
_SHORT_VALUE: Final = 4096
"""A value that is longer is shared by itself, not as a part of its map."""
_EMPTY: Final[Manifest] = {}
_RESOURCE_VERSION: Final = re.compile(r"[1-9][0-9]*")
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class ManifestError(ValueError):
    """A manifest does not have the shape of its kind.

    Attributes:
        path: The field, as in ``spec.clusters[1].replicas``.
        problem: What was found there and what was expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        path = path.removeprefix(".")  # a field of the manifest itself
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem

    def below(self, parent: str) -> ManifestError:
        """Return the same error seen from an enclosing object."""
        return ManifestError(f"{parent}.{self.path}" if self.path else parent, self.problem)


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of ``status.conditions`` as far as it is decided by the scheduler."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


def wrong_type(value: object, path: str, expected: str) -> ManifestError:
    """Build the error for a value of another type than the field has."""
    try:
        shown = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        shown = "of absurd size"
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return ManifestError(path, f"expected {expected}, got {type(value).__name__} {shown}")


def mapping(parent: Manifest, key: str, path: str) -> Manifest:
    """Read an object; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return _EMPTY
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise wrong_type(value, f"{path}.{key}", "an object")


def optional_mapping(parent: Manifest, key: str, path: str) -> Manifest | None:
    """Read an object whose absence differs from its being empty."""
    value = parent.get(key)
    if value is None or type(value) is dict or isinstance(value, Mapping):
        return value
    raise wrong_type(value, f"{path}.{key}", "an object")


def sequence(parent: Manifest, key: str, path: str) -> Sequence[Any]:
    """Read a list; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise wrong_type(value, f"{path}.{key}", "a list")


def mappings(parent: Manifest, key: str, path: str) -> list[Manifest]:
    """Read a list of objects; a null entry is an empty object, as in Go."""
    found: list[Manifest] = []
    for index, value in enumerate(sequence(parent, key, path)):
        if value is None:
            found.append(_EMPTY)
        elif type(value) is dict or isinstance(value, Mapping):
            found.append(value)
        else:
            raise wrong_type(value, f"{path}.{key}[{index}]", "an object")
    return found


@remembered(entries=_SHARED_TEXTS, short=_SHORT_TEXT, long_bytes=4 * MEBI)
def shared(value: str) -> str:
    """Return the same object for equal strings that many objects hold, such as names of namespaces and clusters."""
    return value


def shared_map(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same mapping for equal items in the same order; it is not to be changed."""
    if sum(map(len, found.values())) > _SHORT_VALUE:
        return {shared(name): shared(value) for name, value in found.items()}
    return _shared_map(tuple(found.items()))


@lru_cache(maxsize=_SHARED_MAPS)
def _shared_map(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {shared(name): shared(value) for name, value in items}


def text(parent: Manifest, key: str, path: str) -> str:
    """Read a string; an absent one is empty."""
    value = parent.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise wrong_type(value, f"{path}.{key}", "a string")


def required_text(parent: Manifest, key: str, path: str) -> str:
    """Read a string that every such object has."""
    value = text(parent, key, path)
    if not value:
        raise ManifestError(f"{path}.{key}", "is missing")
    return value


def texts(parent: Manifest, key: str, path: str) -> tuple[str, ...]:
    """Read a list of strings; a null entry is an empty string, as in Go."""
    values = parent.get(key)
    if not values and (values is None or isinstance(values, list | tuple)):
        return ()
    found: list[str] = []
    for index, value in enumerate(sequence(parent, key, path)):
        if value is not None and not isinstance(value, str):
            raise wrong_type(value, f"{path}.{key}[{index}]", "a string")
        found.append(value or "")
    return tuple(found)


def text_map(parent: Manifest, key: str, path: str) -> Mapping[str, str]:
    """Read a map of strings; a null value is an empty string, as in Go."""
    found = mapping(parent, key, path)
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


def integer(parent: Manifest, key: str, path: str, *, bits: int = 64) -> int:
    """Read a signed integer of so many bits; an absent one is 0."""
    value = parent.get(key)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return value
        raise ManifestError(f"{path}.{key}", f"{value} does not fit into {bits} bits")
    raise wrong_type(value, f"{path}.{key}", "an integer")


def boolean(parent: Manifest, key: str, path: str) -> bool:
    """Read a truth value; an absent one is false."""
    value = parent.get(key)
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    raise wrong_type(value, f"{path}.{key}", "true or false")


def time(parent: Manifest, key: str, path: str) -> datetime | None:
    """Read an RFC 3339 time."""
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, datetime):  # PyYAML reads an unquoted time as one
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if not isinstance(value, str):
        raise wrong_type(value, f"{path}.{key}", "an RFC 3339 time")
    try:
        return parse_time(value)
    except ValueError as problem:
        raise ManifestError(f"{path}.{key}", str(problem)) from None


def parse_time(value: str) -> datetime:
    """Read an RFC 3339 time; ValueError for anything else."""
    if _RFC3339.fullmatch(value) is None:
        raise ValueError(f"expected an RFC 3339 time like 2026-01-31T13:00:00Z, got {value!r}")
    return datetime.fromisoformat(value)


def compare_resource_versions(one: str, other: str) -> int:
    """Return -1, 0 or 1: which of two resourceVersions is newer; ValueError for what is not a number.

    Source: k8s.io/apimachinery v0.35.3 pkg/util/resourceversion.
    """
    for version in (one, other):
        if _RESOURCE_VERSION.fullmatch(version) is None:
            raise ValueError(f"resource version is not well formed: {version}")
    left, right = int(one), int(other)
    return (left > right) - (left < right)


def format_time(moment: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
