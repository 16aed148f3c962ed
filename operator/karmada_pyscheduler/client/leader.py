"""Leader election on a Lease, compatible with client-go's: only one candidate of either kind leads.

A Lease is never compared with this machine's clock. A candidate measures how long it has *observed* the same record,
and takes over when that exceeds the duration in the record. A leader counts the time from the start of its last
successful renewal, and stops leading when the renew deadline has passed, even without a connection. It never leads
again: the process has to end.

An elector runs in one event loop, which ``supervisor`` keeps free of other work; ``is_leader`` may be called from any
thread.

docs/decisions/0016-supervisor.md has the reason for not using the elector of ``kubernetes``.

Source: k8s.io/client-go 0.35.3 tools/leaderelection/leaderelection.go.
Differs: a clean stop releases the Lease, so that the next leader need not wait until it expires.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler import __version__
from karmada_scheduler.api.manifest import format_time, parse_time
from karmada_scheduler.api.well_known import (
    DEFAULT_PROFILES_ANNOTATION,
    SCHEDULER_NAMES_ANNOTATION,
    VERSION_ANNOTATION,
)
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.options import LeaderElection
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
        metadata = {"name": self.name, "namespace": self.namespace, "annotations": self.annotations}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        stored = await self.connection.request("POST", self._collection, body=body, timeout=timeout)
        return _stored(stored, spec)

    async def update(self, lease: dict[str, Any], spec: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        """Replace fields of the spec of the Lease, if it is still ``lease``, and return it as stored."""
        metadata = lease["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **self.annotations}
        metadata = {**metadata, "annotations": annotations}
        body = {**lease, "metadata": metadata, "spec": {**spec_of(lease), **spec}}
        return _stored(await self.connection.request("PUT", self._path, body=body, timeout=timeout), spec)


def _stored(lease: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a write; ApiError if it is not the Lease that was written."""
    if spec_of(lease).get("holderIdentity") != spec["holderIdentity"]:
        raise ApiError(f"the response is another Lease than the one that was written: {str(lease)[:100]}")
    return lease


log = logging.getLogger(__name__)

_JITTER: Final = 1.2

UNREADABLE_SECONDS: Final = 300.0
"""Time without a response about the Lease after which a candidate is not ready: it could not take over."""


class Elector(IdentityStruct):
    """One candidate for one Lease.

    ``acquire`` returns when this candidate leads. ``renew`` then renews the Lease and returns when it is lost.
    ``is_leader`` may be called at any time, from any thread; it returns False if leadership is uncertain.

    The clock should run while the machine is suspended, because the Lease expires meanwhile. ``scheduler_names`` are
    written onto the Lease, so that readers know who decides about which bindings; ``default_profiles`` are those of them
    that decide as karmada-scheduler does by default.
    """

    connection: Connection
    settings: LeaderElection
    identity: str
    clock: Callable[[], float]
    now: Callable[[], datetime]
    random: Random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    scheduler_names: Sequence[str] = ()
    default_profiles: Sequence[str] = ()
    _observed: dict[str, Any] | None = None
    _renewed_at: float | None = None
    _lost: bool = False
    _unreadable_since: float | None = None
    _last_error: str = ""

    def __post_init__(self) -> None:
        self._lock = LeaseLock(
            self.connection,
            namespace=self.settings.namespace,
            name=self.settings.name,
            annotations={
                SCHEDULER_NAMES_ANNOTATION: ",".join(self.scheduler_names),
                DEFAULT_PROFILES_ANNOTATION: ",".join(self.default_profiles),
                VERSION_ANNOTATION: f"{__version__} of {self.identity}",
            }
            if self.scheduler_names
            else {},
        )
        self._observed_at = self.clock()

    @property
    def lease(self) -> str:
        """The Lease as ``namespace/name``."""
        return f"{self.settings.namespace}/{self.settings.name}"

    def is_leader(self) -> bool:
        """Return whether a write may start now."""
        return self.seconds_left() > 0

    def seconds_left(self) -> float:
        """Return the seconds that this leader has without another renewal; 0 when it does not lead."""
        renewed_at = self._renewed_at
        if self._lost or renewed_at is None:
            return 0.0
        left = renewed_at + self.settings.renew_deadline - self.clock()
        if left <= 0:
            # A late response to a renewal must not make it the leader again: writers may have stopped.
            self._lost = True
        return max(0.0, left)

    @property
    def problem(self) -> str | None:
        """Why the Lease could not be read for some minutes, None if it could."""
        since = self._unreadable_since
        if since is None or (seconds := self.clock() - since) < UNREADABLE_SECONDS:
            return None
        return f"the lease {self.lease} could not be read or written for {seconds:.0f}s: {self._last_error}"

    async def acquire(self) -> None:
        """Wait until this candidate leads. Errors of the API server are logged, and attempts continue."""
        log.info("Attempting to acquire leader lease...", extra={"object": self.lease})
        logged = ""
        while True:
            try:
                timeout = self.settings.renew_deadline / 2
                # A step may take two requests and longer than the deadline; then the next one renews.
                if await self._step(timeout=timeout, within=2 * timeout) and self.is_leader():
                    self._unreadable_since = None
                    log.info("Successfully acquired lease", extra={"object": self.lease})
                    return
                self._renewed_at, self._lost = None, False  # no writer has used this leadership
                self._unreadable_since = None
                logged = self._log_holder(logged)
            except ApiError as error:
                if self._unreadable_since is None:
                    self._unreadable_since = self.clock()
                self._last_error = str(error)
                if str(error) != logged:
                    log.warning(
                        "Cannot read or write the lease", extra={"object": self.lease, "error": error}
                    )
                logged = str(error)
            await self.sleep(self.settings.retry_period * self.random.uniform(1.0, 1.0 + _JITTER))

    async def renew(self) -> str:
        """Renew until the Lease is lost; return why. The candidate never leads again."""
        while True:
            await self.sleep(min(self.settings.retry_period, self.seconds_left()))
            left = self.seconds_left()
            if left <= 0:
                return f"the lease could not be renewed for {self.settings.renew_deadline:g}s"
            try:
                # Half the deadline at most, as client-go: a request that hangs must leave time for another.
                timeout = min(left, self.settings.renew_deadline / 2)
                if not await self._step(timeout=timeout, within=left):
                    self._lost = True
                    return f"the lease is held by {self.holder or 'nobody'}"
            except ApiError as error:
                log.warning("Cannot renew the lease", extra={"object": self.lease, "error": error})

    async def release(self) -> None:
        """Release the Lease, if this candidate holds it, so that another one can acquire it at once."""
        held, self._lost = self._observed, True
        if held is None or self.holder != self.identity:
            return
        now = micro_time(self.now())
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": now,
            "acquireTime": now,
            "leaseTransitions": count_of(spec_of(held).get("leaseTransitions")),
        }
        try:
            self._observe(await self._written(held, spec))
        except ApiError as error:
            log.warning("Cannot release the lease", extra={"object": self.lease, "error": error})

    async def _written(self, held: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        """Write the spec of the Lease that this candidate holds; return the Lease. Raises ApiError."""
        try:
            return await self._lock.update(held, spec, timeout=5.0)
        except ApiError as error:
            if not error.is_conflict:
                raise
            # The last renewal may have been written although the stop did not wait for its response.
            newest = await self._lock.get(timeout=5.0)
            if spec_of(newest).get("holderIdentity") != self.identity:
                raise
            return await self._lock.update(newest, spec, timeout=5.0)

    @property
    def holder(self) -> str:
        """The identity of the process that holds the Lease, "" if none is known."""
        return "" if self._observed is None else str(spec_of(self._observed).get("holderIdentity") or "")

    def _log_holder(self, logged: str) -> str:
        """Log the holder of the Lease, unless it was ``logged`` last; return the logged state."""
        holder, acquired = self.holder, self._acquired()
        state = f"held by {holder}" if holder else "changing hands"
        lasting = ""
        if holder and acquired is not None:
            state += f" since {format_time(acquired)}"
            # Measured with this machine's clock, which may be behind the holder's.
            lasting = f" ({timedelta(seconds=max(0, int((self.now() - acquired).total_seconds())))})"
        if state != logged:
            log.info("The lease is %s%s, waiting for it", state, lasting, extra={"object": self.lease})
        return state

    def _acquired(self) -> datetime | None:
        """Return the ``acquireTime`` of the Lease, None if it is missing or cannot be read."""
        text = None if self._observed is None else spec_of(self._observed).get("acquireTime")
        try:
            return parse_time(text) if isinstance(text, str) else None
        except ValueError:
            return None

    async def _step(self, *, timeout: float, within: float) -> bool:
        """Make one attempt; each request may take ``timeout`` and all together ``within``. Return whether the Lease is held."""
        try:
            async with asyncio.timeout(within):
                return await self._try_acquire_or_renew(timeout=timeout)
        except TimeoutError:
            raise ApiError(f"no response within {within:.1f}s") from None

    async def _try_acquire_or_renew(self, *, timeout: float) -> bool:
        started = self.clock()
        now = micro_time(self.now())
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.settings.lease_seconds,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if await self._renew_without_read(spec, started, timeout=timeout):
            return True
        try:
            lease = await self._lock.get(timeout=timeout)
        except ApiError as error:
            if not error.is_not_found:
                raise
            return self._held(await self._lock.create(spec, timeout=timeout), started)
        self._observe(lease)
        held = spec_of(lease)
        holder = held.get("holderIdentity") or ""
        transitions = count_of(held.get("leaseTransitions"))
        if holder == self.identity:
            spec["acquireTime"] = held.get("acquireTime") or now
            spec["leaseTransitions"] = transitions
        else:
            duration = seconds_of(held.get("leaseDurationSeconds"), self.settings.lease_duration)
            expires = self._observed_at + duration
            if holder and self.clock() < expires:
                return False
            spec["leaseTransitions"] = transitions + 1
        try:
            return self._held(await self._lock.update(lease, spec, timeout=timeout), started)
        except ApiError as error:
            if error.is_conflict and holder != self.identity:
                return False
            raise

    async def _renew_without_read(self, spec: dict[str, Any], started: float, *, timeout: float) -> bool:
        """Renew without a read, client-go's fast path; a write by another client in between causes a conflict.

        Return whether the Lease was renewed.
        """
        if self._observed is None or self.holder != self.identity or not self.is_leader():
            return False
        held = spec_of(self._observed)
        transitions = count_of(held.get("leaseTransitions"))
        kept = {"acquireTime": held.get("acquireTime"), "leaseTransitions": transitions}
        try:
            lease = await self._lock.update(self._observed, {**spec, **kept}, timeout=timeout)
            return self._held(lease, started)
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                return False
            raise

    def _held(self, lease: dict[str, Any], started: float) -> bool:
        """Note that this candidate holds a Lease by a request that began at ``started``; return True."""
        self._observe(lease)
        self._renewed_at = started
        return True

    def _observe(self, lease: dict[str, Any]) -> None:
        spec = spec_of(lease)
        if self._observed is None or spec_of(self._observed) != spec:
            self._observed_at = self.clock()
        self._observed = lease
