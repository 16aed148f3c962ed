"""The FederatedResourceQuotas of a namespace, as they are stored: what is allowed, and what Karmada has counted as used."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from karmada_advisor.state.quota import read_quota
from karmada_advisor.state.stored import mapping, mappings, value_at
from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.client.karmada import FEDERATED_RESOURCE_QUOTAS
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct, Struct, field

MOST_ROWS: Final = 50
_MOST_QUOTAS: Final = 20
_SECONDS: Final = 1.0
"""How long they may take; a page waits for them."""
_KEPT_SECONDS: Final = 10.0
_KEPT: Final = 200
"""Namespaces whose quotas are kept."""
_LARGEST_SHARE: Final = 10
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Anything else, such as "..", would lead to another path of the API server."""


class QuotaRow(Struct, frozen=True):
    """A resource that a quota limits.

    Attributes:
        quota: The name of the quota.
        resource: For example ``cpu``.
        used: ``status.overallUsed`` as it is stored; "" if Karmada has not counted it.
        limit: ``spec.overall`` as it is stored.
        share: Which part of the limit is used, above 1 if more; ten at most. None if it is not counted.
        is_exceeded: Whether more is used than the limit.
    """

    quota: str
    resource: str
    used: str
    limit: str
    share: float | None
    is_exceeded: bool


class NamespaceQuotas(Struct, frozen=True):
    """What is known of the quotas of a namespace.

    Attributes:
        rows: By quota and resource.
        has_more: Whether there are more than are read.
        manifests: The quotas as they were read; None if not all of them were.
        problem: Why they are not known; "" without a problem. It may name anything.
    """

    rows: tuple[QuotaRow, ...] = ()
    has_more: bool = False
    problem: str = ""
    manifests: Sequence[Mapping[str, Any]] | None = None


class QuotaReader(IdentityStruct):
    """Reads quotas on demand, and keeps them for a moment. Whatever fails is reported in them, and raises nothing.

    ``clock`` returns seconds.
    """

    connection: ApiConnection
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[str, tuple[float, asyncio.Task[NamespaceQuotas]]] = field(default_factory=OrderedDict)

    async def of(self, namespace: str) -> NamespaceQuotas:
        """Return the quotas of a namespace; who asks meanwhile waits for the same ones."""
        if not _NAMESPACE.fullmatch(namespace):
            return NamespaceQuotas()
        until, reading = self._kept.get(namespace, (0.0, None))
        if reading is None or self.clock() >= until:
            reading = asyncio.create_task(self._read(namespace), name="quotas")
            self._kept[namespace] = (self.clock() + _KEPT_SECONDS, reading)
            self._kept.move_to_end(namespace)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return await asyncio.shield(reading)

    async def _read(self, namespace: str) -> NamespaceQuotas:
        resource = FEDERATED_RESOURCE_QUOTAS
        try:
            path = path_of(resource.api_version, resource.plural, namespace=namespace)
            async with asyncio.timeout(_SECONDS):
                found = await self.connection.request("GET", f"{path}?limit={_MOST_QUOTAS}", timeout=_SECONDS)
            return quotas_of(namespace, found)
        except TimeoutError:
            return NamespaceQuotas(problem=f"no quotas within {_SECONDS:g} s")
        except (ApiError, ManifestError) as error:
            is_unknown = isinstance(error, ApiError) and error.is_not_found  # a Karmada without quotas
            return NamespaceQuotas(problem="" if is_unknown else f"quotas cannot be read: {error}")


def quotas_of(namespace: str, listed: Mapping[str, Any]) -> NamespaceQuotas:
    """Return the quotas of a namespace in a list.

    Raises:
        ManifestError: A field of one has the wrong type.
    """
    own = [
        each for each in mappings(listed.get("items")) if value_at(each, "metadata", "namespace") == namespace
    ]
    rows = sorted((row for quota in own for row in _rows(quota)), key=lambda row: (row.quota, row.resource))
    are_all = not value_at(listed, "metadata", "continue")
    manifests = [FEDERATED_RESOURCE_QUOTAS.typed(quota) for quota in own] if are_all else None
    has_more = not are_all or len(rows) > MOST_ROWS
    return NamespaceQuotas(tuple(rows[:MOST_ROWS]), has_more, manifests=manifests)


def _rows(manifest: Mapping[str, Any]) -> Iterator[QuotaRow]:
    quota = read_quota(FEDERATED_RESOURCE_QUOTAS.typed(manifest))
    limits, used = (
        mapping(value_at(manifest, *path)) for path in (("spec", "overall"), ("status", "overallUsed"))
    )
    for resource, limit in quota.limits.items():
        amount = quota.used.get(resource)
        yield QuotaRow(
            quota.name,
            resource,
            "" if amount is None else str(used[resource]),
            str(limits[resource]),
            None if amount is None else _share(amount, limit),
            is_exceeded=amount is not None and amount > limit,
        )


def _share(used: Fraction, limit: Fraction) -> float:
    if limit <= 0:
        return 1.0 if used > 0 else 0.0
    return float(min(max(used / limit, Fraction()), Fraction(_LARGEST_SHARE)))
