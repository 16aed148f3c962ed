"""Requests about bindings: limited by the write limiter, sent only while leading, counted.

Every patch names the resourceVersion that it was computed from. An answer therefore holds the version that was known
before with our own change, and enters the cache without enqueueing the binding.

An API server applies a patch to the object in its watch cache. Before the cache has the previous write, the server
computes the patch in vain: it detects the conflict, reads the object from etcd, and computes the patch again. The
status patch of a binding follows its spec patch at once, and three of ten came too early. A watch is fed by the same
cache, so a patch that follows after the watch event is computed once.

Source: kubernetes 1.35 staging/src/k8s.io/apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go
(GuaranteedUpdate). docs/decisions/0005-writes.md has the measurement.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from karmada_pyscheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import NotLeadingError
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.structs import Struct

WAIT_SECONDS: Final = 0.1
"""How long a write waits for the watch event of the previous one. The event only saves work, and a watch may be down."""


class OwnWrites:
    """The newest version that the watch has delivered of each binding that this process writes."""

    def __init__(self, *, seconds: float = WAIT_SECONDS) -> None:
        """Track nothing; ``seconds`` limits ``wait_observed``, 0 disables it."""
        self._seconds = seconds
        self._observed: dict[BindingKey, int] = {}
        self._conditions: dict[BindingKey, Sequence[Mapping[str, Any]]] = {}
        self._waiting: dict[BindingKey, tuple[int, asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._observed)

    def expect(self, key: BindingKey) -> None:
        """Track a binding from now on; its watch event may arrive before the answer to the write."""
        self._observed[key] = 0

    def forget(self, key: BindingKey) -> None:
        """Stop tracking a binding."""
        self._observed.pop(key, None)

    def begin_status(self, key: BindingKey, conditions: Sequence[Mapping[str, Any]]) -> None:
        """Note the conditions that a status has, before it is written: its watch event may arrive before the answer."""
        self._conditions[key] = conditions

    def end_status(self, key: BindingKey) -> None:
        """Forget the conditions of a binding, whose status is in the cache now."""
        self._conditions.pop(key, None)

    def has_conditions_of(self, binding: Binding) -> bool:
        """Return whether a binding has the conditions that this process is writing."""
        return list(self._conditions.get(binding.key, ())) == list(binding.status.conditions)

    def observe(self, key: BindingKey, version: int) -> None:
        """Record a version that the watch has delivered, if the binding is tracked."""
        if version <= self._observed.get(key, version):
            return
        self._observed[key] = version
        wanted, delivered = self._waiting.get(key, (0, None))
        if delivered is not None and version >= wanted and not delivered.done():
            delivered.set_result(None)

    async def wait_observed(self, key: BindingKey, version: int) -> None:
        """Wait until the watch has delivered this version of a tracked binding, or a newer one, or the time is up."""
        if not self._seconds or self._observed.get(key, version) >= version:
            return
        delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[key] = version, delivered
        try:
            async with asyncio.timeout(self._seconds):
                await delivered
        except TimeoutError:
            pass
        finally:
            del self._waiting[key]


_RESOURCE_VERSION: Final = re.compile(r"[1-9][0-9]*")


def compare_resource_versions(one: str, other: str) -> int:
    """Compare two resourceVersions: -1, 0 or 1; ValueError if one is no number.

    Source: k8s.io/apimachinery v0.35.3 pkg/util/resourceversion.
    """
    for version in (one, other):
        if _RESOURCE_VERSION.fullmatch(version) is None:
            raise ValueError(f"resource version is not well formed: {version}")
    left, right = int(one), int(other)
    return (left > right) - (left < right)


class BindingWriter(Struct, frozen=True):
    """Patches bindings and their statuses, and reads them again.

    Attributes:
        bindings: The newest known version of each binding.
        is_leading: Returns False once another process may be the leader.
        client: Sends the requests.
        bindings: Gets the answers to patches, so that the next decision is based on them.
        limiter: Limits the number of writes at a time.
        is_leading: Called before every write, and again just before it is sent; returns False once the Lease may have expired.
        is_gone: Called before a result is written; returns whether a cluster is being deleted or does not exist.
        on_read: Gets each manifest that is read, as a watch event: kind, ``MODIFIED``, manifest.
        on_rollback: Called when a binding that is read has a lower resourceVersion than the cached one.
        metrics: Counts writes.
    """

    client: KarmadaClient
    bindings: BindingCache
    limiter: WriteLimiter
    is_leading: Callable[[], bool]
    is_gone: Callable[[str], bool]
    on_read: Callable[[str, str, Mapping[str, Any]], None]
    metrics: Metrics
    on_rollback: Callable[[], None] = lambda: None

    def ensure_leading(self) -> None:
        """Raise NotLeadingError once another process may be the leader."""
        if not self.is_leading():
            raise NotLeadingError("not leading any more, nothing is written")

    async def patch_result(
        self,
        binding: Binding,
        annotations: Mapping[str, str | None],
        clusters: list[dict[str, Any]] | None,
        tasks: list[dict[str, Any]] | None = None,
    ) -> Binding:
        """Patch annotations and ``spec.clusters`` of a binding; return the binding as stored.

        Args:
            binding: The version that the patch is based on.
            annotations: The annotations to set; None removes one.
            clusters: ``spec.clusters`` as JSON; None leaves them as they are.
            tasks: ``spec.gracefulEvictionTasks`` as JSON; None leaves them as they are.

        Raises:
            ApiError: The API server refused the patch, or did not answer.
            NotLeadingError: Another process may be the leader; nothing was sent.
            AbandonedError: A cluster is gone since the decision; nothing was sent.
        """
        async with self._slot(low_priority=False):
            if gone := next((each["name"] for each in clusters or () if self.is_gone(each["name"])), None):
                raise AbandonedError(
                    f"cluster {gone} was deleted before the result was sent", reschedule=True
                )
            with self._counted("spec"):
                manifest = await self.client.patch_result(
                    binding.key,
                    resource_version=binding.resource_version,
                    annotations=annotations,
                    clusters=clusters,
                    tasks=tasks,
                    before_send=self.ensure_leading,
                )
            stored = _parsed(Binding.from_manifest, manifest)
        self.bindings.put_written(stored)
        return stored

    async def resync(self, binding: Binding) -> Binding:
        """Raise the generation of a binding without a change that any program sees; return the binding as stored.

        An empty list of eviction tasks means the same as none. Raises as ``patch_result`` does; a conflict if the binding
        has eviction tasks by now, or other clusters.
        """
        async with self._slot(low_priority=True):
            manifest = await self.read_manifest(binding.key)
            newest = _parsed(Binding.from_manifest, manifest)
            if (
                newest.spec != binding.spec
                or newest.uid != binding.uid
                or newest.spec.graceful_eviction_tasks
            ):
                raise ApiError(f"{binding.key.display} has changed", code=409, reason="Conflict")
            tasks: list[Any] | None = None if "gracefulEvictionTasks" in manifest["spec"] else []
            with self._counted("resync"):
                manifest = await self.client.patch_spec(
                    binding.key,
                    resource_version=newest.resource_version,
                    spec={"gracefulEvictionTasks": tasks},
                    before_send=self.ensure_leading,
                )
            stored = _parsed(Binding.from_manifest, manifest)
        self.bindings.put_written(stored)
        return stored

    async def patch_status(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, low_priority: bool
    ) -> None:
        """Patch the status with the fields that ``fields_for`` returns, unless it returns none.

        ``fields_for`` gets the newest known version of the binding once the write may be sent: other controllers write
        statuses while this one waits. Raises as ``patch_result`` does.
        """
        async with self._slot(low_priority=low_priority):
            base = self._newest(binding)
            fields = fields_for(base)
            if not fields:
                return
            with self._counted("status"):
                manifest = await self.client.patch_status(
                    base.key,
                    resource_version=base.resource_version,
                    status=fields,
                    before_send=self.ensure_leading,
                )
            stored = _parsed(base.with_status, manifest)
        self.bindings.put_written(stored)

    async def read(self, key: BindingKey) -> Binding:
        """Read a binding again. A change by another client enqueues it, as a watch event does. Raises ApiError."""
        return _parsed(Binding.from_manifest, await self.read_manifest(key))

    async def read_manifest(self, key: BindingKey) -> Manifest:
        """Read a binding as ``read`` does, without parsing it."""
        known = self.bindings.version_of(key)
        manifest = await self.client.get_binding(key)
        self.on_read(key.kind, "MODIFIED", manifest)
        if int(manifest["metadata"]["resourceVersion"]) < known:
            self.on_rollback()
        return manifest

    def _newest(self, binding: Binding) -> Binding:
        known = self.bindings.get(binding.key)
        if known is None or known.uid != binding.uid:
            return binding
        newer = compare_resource_versions(known.resource_version, binding.resource_version) > 0
        return known if newer else binding

    @asynccontextmanager
    async def _slot(self, *, low_priority: bool) -> AsyncIterator[None]:
        """Wait until a write may be sent; NotLeadingError if another process may be the leader then."""
        async with self.limiter.slot(low_priority=low_priority):
            self.ensure_leading()
            yield

    @contextmanager
    def _counted(self, target: str) -> Iterator[None]:
        """Count the response to the request in the block."""
        try:
            yield
        except ApiError as error:
            self.metrics.api_server.writes.labels(target, str(error.code or "no answer")).inc()
            raise
        self.metrics.api_server.writes.labels(target, "200").inc()


def _parsed(parse: Callable[[Manifest], Binding], answer: Manifest) -> Binding:
    """Return the parsed answer; raise ApiError if it cannot be parsed, as after an invalid change by another client."""
    try:
        return parse(answer)
    except ValueError as problem:
        raise ApiError(f"the answer cannot be read: {problem}") from problem
