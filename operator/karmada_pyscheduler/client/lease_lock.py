"""Reads and writes the Lease on which leader election is based.

Source: k8s.io/client-go 0.35.3 tools/leaderelection/resourcelock/leaselock.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct


def micro_time(moment: datetime) -> str:
    """Return a time as Kubernetes writes a MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def spec_of(lease: Any) -> dict[str, Any]:
    """Return the spec of a Lease; ApiError if the object is not a Lease."""
    spec = lease.get("spec") if isinstance(lease, dict) and isinstance(lease.get("metadata"), dict) else None
    if not isinstance(spec, dict):
        raise ApiError(f"the response is not a Lease: {str(lease)[:100]}")
    return spec


def seconds_of(value: Any, otherwise: float) -> float:
    """Return a duration of a Lease in seconds, or ``otherwise`` if it is missing or not positive."""
    return float(value) if isinstance(value, int | float) and value > 0 else otherwise


def count_of(value: Any) -> int:
    """Return a number of a Lease, 0 if it is missing."""
    return value if isinstance(value, int) else 0


class LeaseLock(IdentityStruct):
    """One Lease. Each method raises ApiError without a response that is a Lease.

    Attributes:
        connection: To the API server.
        namespace: Of the Lease.
        name: Of the Lease.
        annotations: What a holder writes onto the Lease; others stay.
    """

    connection: Connection
    namespace: str
    name: str
    annotations: Mapping[str, str]

    def __post_init__(self) -> None:
        self._collection = path_of("coordination.k8s.io/v1", "leases", namespace=self.namespace)
        self._path = path_of("coordination.k8s.io/v1", "leases", self.name, namespace=self.namespace)

    async def get(self, *, timeout: float) -> dict[str, Any]:
        """Read the Lease."""
        return await self.connection.request("GET", self._path, timeout=timeout)

    async def create(self, spec: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        """Create the Lease with a spec, and return it as stored."""
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "annotations": self.annotations,
            },
            "spec": spec,
        }
        return _stored(
            await self.connection.request("POST", self._collection, body=body, timeout=timeout), spec
        )

    async def update(self, lease: dict[str, Any], spec: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        """Replace fields of the spec of the Lease, if it is still ``lease``, and return it as stored."""
        metadata = lease["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **self.annotations}
        body = {
            **lease,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**spec_of(lease), **spec},
        }
        return _stored(await self.connection.request("PUT", self._path, body=body, timeout=timeout), spec)


def _stored(lease: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a write; ApiError if it is not the Lease that was written."""
    if spec_of(lease).get("holderIdentity") != spec["holderIdentity"]:
        raise ApiError(f"the response is another Lease than the one that was written: {str(lease)[:100]}")
    return lease
