"""Leader election on a Lease, interoperable with client-go's: the two exclude each other on one name.

A Lease is never compared with this machine's clock: a candidate measures how long it has *seen* the same
record, and takes over when that exceeds the duration that the record itself states. A leader counts the
time from the beginning of its last successful renewal, and is no leader any more when the renew deadline
has passed, whether or not it could tell anybody.

``kubernetes`` ships an elector; docs/decisions/0004-leader-election.md says why it is not used.

Source: k8s.io/client-go 0.35.3 tools/leaderelection/leaderelection.go and resourcelock/leaselock.go.
Differs: a clean stop gives the Lease back, so that the next leader need not wait for it to run out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from karmada_scheduler.client.connection import ApiError, Connection
from karmada_scheduler.config.options import LeaderElection

log = logging.getLogger(__name__)

_JITTER: Final = 1.2


def _micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Elector:
    """One candidate for one Lease.

    ``acquire`` returns when this candidate leads; ``renew`` then keeps it leading and returns when it
    does not any more. ``is_leader`` may be asked at any time and errs on the safe side.
    """

    def __init__(
        self,
        connection: Connection,
        settings: LeaderElection,
        *,
        identity: str,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``clock`` measures durations in seconds; ``now`` is the time of day written into the Lease."""
        self._connection = connection
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._path = f"{self._collection}/{settings.name}"
        self._observed: dict[str, Any] | None = None
        self._observed_at = clock()
        self._renewed_at: float | None = None

    @property
    def lease(self) -> str:
        """The Lease as ``namespace/name``."""
        return f"{self._settings.namespace}/{self._settings.name}"

    def is_leader(self) -> bool:
        """Tell whether a write may be begun now."""
        return (
            self._renewed_at is not None and self._clock() < self._renewed_at + self._settings.renew_deadline
        )

    def seconds_left(self) -> float:
        """Return how long this leader may go on without another renewal; 0 when it does not lead."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self._settings.renew_deadline - self._clock())

    async def acquire(self) -> None:
        """Wait until this candidate leads. The API server's errors are logged and waited out."""
        log.info("Attempting to acquire leader lease...", extra={"object": self.lease})
        told = ""
        while True:
            try:
                if await self._try_acquire_or_renew(timeout=self._settings.renew_deadline / 2):
                    log.info("Successfully acquired lease", extra={"object": self.lease})
                    return
                told = ""
            except ApiError as error:
                if str(error) != told:
                    log.warning(
                        "Cannot read or write the lease", extra={"object": self.lease, "error": error}
                    )
                    told = str(error)
            await self._sleep(self._settings.retry_period * random.uniform(1.0, 1.0 + _JITTER))  # noqa: S311

    async def renew(self) -> str:
        """Renew until that is impossible; return why this candidate does not lead any more."""
        while True:
            await self._sleep(min(self._settings.retry_period, self.seconds_left()))
            left = self.seconds_left()
            if left <= 0:
                return f"the lease could not be renewed for {self._settings.renew_deadline:g}s"
            try:
                # Half the deadline at most, as client-go: a request that hangs must leave time for another.
                if not await self._try_acquire_or_renew(timeout=min(left, self._settings.renew_deadline / 2)):
                    self._renewed_at = None
                    return f"the lease is held by {self._holder() or 'nobody'}"
            except ApiError as error:
                log.warning("Cannot renew the lease", extra={"object": self.lease, "error": error})

    async def release(self) -> None:
        """Give the Lease back, if it is ours, so that another candidate can take it at once."""
        if not self.is_leader() or self._observed is None:
            self._renewed_at = None
            return
        self._renewed_at = None
        now = _micro_time(self._now())
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": now,
            "acquireTime": now,
            "leaseTransitions": self._observed["spec"].get("leaseTransitions") or 0,
        }
        try:
            await self._put(self._observed, spec, timeout=5.0)
        except ApiError as error:
            log.warning("Cannot release the lease", extra={"object": self.lease, "error": error})

    def _holder(self) -> str:
        return str((self._observed or {}).get("spec", {}).get("holderIdentity") or "")

    async def _try_acquire_or_renew(self, *, timeout: float) -> bool:
        """Do one step; True when the Lease is ours afterwards."""
        begun = self._clock()
        now = _micro_time(self._now())
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._settings.lease_duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if await self._renewed_blindly(spec, begun, timeout=timeout):
            return True
        try:
            lease = await self._connection.request("GET", self._path, timeout=timeout)
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self._create(spec, timeout=timeout)
            self._renewed_at = begun
            return True
        self._observe(lease)
        held = lease.get("spec") or {}
        holder = held.get("holderIdentity") or ""
        transitions = held.get("leaseTransitions") or 0
        if holder == self._identity:
            spec["acquireTime"] = held.get("acquireTime") or now
            spec["leaseTransitions"] = transitions
        else:
            expires = self._observed_at + float(
                held.get("leaseDurationSeconds") or self._settings.lease_duration
            )
            if holder and self._clock() < expires:
                return False
            spec["leaseTransitions"] = transitions + 1
        try:
            await self._put(lease, spec, timeout=timeout)
        except ApiError as error:
            if error.is_conflict and holder != self._identity:
                return False
            raise
        self._renewed_at = begun
        return True

    async def _renewed_blindly(self, spec: dict[str, Any], begun: float, *, timeout: float) -> bool:
        """As the leader, write without reading first; if somebody else wrote meanwhile, the server says so."""
        if self._observed is None or self._holder() != self._identity or not self.is_leader():
            return False
        held = self._observed["spec"]
        kept = {
            "acquireTime": held.get("acquireTime"),
            "leaseTransitions": held.get("leaseTransitions") or 0,
        }
        try:
            await self._put(self._observed, {**spec, **kept}, timeout=timeout)
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                return False
            raise
        self._renewed_at = begun
        return True

    def _observe(self, lease: dict[str, Any]) -> None:
        if self._observed is None or self._observed.get("spec") != lease.get("spec"):
            self._observed_at = self._clock()
        self._observed = lease

    async def _create(self, spec: dict[str, Any], *, timeout: float) -> None:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._settings.name, "namespace": self._settings.namespace},
            "spec": spec,
        }
        self._observe(await self._connection.request("POST", self._collection, body=body, timeout=timeout))

    async def _put(self, lease: dict[str, Any], spec: dict[str, Any], *, timeout: float) -> None:
        body = {**lease, "spec": {**(lease.get("spec") or {}), **spec}}
        self._observe(await self._connection.request("PUT", self._path, body=body, timeout=timeout))
