"""The recorded objects that a large installation multiplies, and how many there are of each kind.

``recorded.json`` holds a binding, a Cluster and a policy as a control plane of ``tools/controlplane`` stored them, with
managedFields and the status that Karmada's controllers wrote.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

Object = dict[str, Any]

NEW_EVERY: Final = 100
"""Every hundredth binding was never scheduled."""
REGIONS: Final = 20
ALIKE: Final = 8
"""Every eighth Cluster has the same capacity; among equals the order of names decides, so settled bindings stay so."""


@cache
def recorded() -> Mapping[str, Object]:
    """Return the objects of the recording by ``binding``, ``cluster`` and ``policy``."""
    content: dict[str, Object] = orjson.loads(Path(__file__).with_name("recorded.json").read_bytes())
    return content


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the installation is."""

    bindings: int
    clusters: int

    @property
    def new(self) -> int:
        """How many bindings wait for their first decision."""
        return len(range(NEW_EVERY // 2, self.bindings, NEW_EVERY))


def is_new(number: int) -> bool:
    """Return whether a binding is one of those that were never scheduled."""
    return number % NEW_EVERY == NEW_EVERY // 2


def cluster_name(number: int) -> str:
    """Return the name of the nth Cluster."""
    return f"member-{number:04d}"


def uid(what: str, number: int) -> str:
    """Return the uid of the nth object of a sort."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{what}/{number}"))
