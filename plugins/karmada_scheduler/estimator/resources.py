"""Amounts of resources as the scheduler adds and divides them: int64 per name, cpu in thousandths.

Source: karmada v1.18.2 pkg/util/resource.go, pkg/util/lifted/scheduler_resource.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from karmada_scheduler.api.content_cache import cached_by_content
from karmada_scheduler.api.matching import is_label_key
from karmada_scheduler.api.quantity import MAX_INT64, Quantity

CPU: Final = "cpu"
PODS: Final = "pods"

Amounts = dict[str, int]

PLAIN: Final = frozenset({CPU, "memory", "ephemeral-storage"})
"""Resources that every node has, with an amount of at least 0."""


@cached_by_content(entries=4096, short=320, long_bytes=0)
def is_counted(name: str) -> bool:
    """Return whether nodes are checked for a resource; requests for other names are ignored there."""
    return (
        name in PLAIN
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or ("/" in name and not name.startswith("requests.") and is_label_key(f"requests.{name}"))
    )


def amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    """Return quantities as amounts; names that nodes are not checked for are dropped."""
    return {
        name: quantity.milli_value if name == CPU else quantity.value
        for name, quantity in quantities.items()
        if is_counted(name)
    }


def fits(have: Mapping[str, int], request: Mapping[str, int], *, pods: int) -> int:
    """Return how many times a request fits, at most ``pods`` times."""
    most = MAX_INT64
    for name, amount in request.items():
        if amount > 0:
            most = min(most, have.get(name, 0) // amount)
    return min(most, pods)
