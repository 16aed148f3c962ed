"""Requests about bindings: in turn, only while this process leads, counted; answers enter the cache.

Every patch names the resourceVersion that it was computed from, so an answer never holds anything but what was known
before plus our own change, and can enter the cache without waking the binding.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.versions import compare_resource_versions
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient
from karmada_scheduler.metrics.metrics import Metrics


class NotLeadingError(Exception):
    """A write was not begun because this process may not be the leader any more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a binding, and so of its key.

    Attributes:
        error: What went wrong, None when nothing did.
        retry: Whether to try again after a pause.
        again: Whether to decide again, because the binding changed under the decision: at once, but from the second
            time in a row on after a pause.
        pause: The seconds to wait before a retry, when the API server or a plugin asked for it.
        later: After how many seconds to ask again whether the binding may be decided; 0 for not at all.
    """

    error: Exception | None = None
    retry: bool = False
    again: bool = False
    pause: float = 0.0
    later: float = 0.0


DONE: Final = Outcome()


class BindingWriter:
    """Patches bindings and their statuses, and reads them anew."""

    def __init__(
        self,
        client: KarmadaClient,
        bindings: BindingCache,
        *,
        seen: Callable[[str, str, Mapping[str, Any]], None],
        may_write: Callable[[], bool],
        pace: WriteLimiter,
        metrics: Metrics,
        went_back: Callable[[], None],
    ) -> None:
        """Take what writing needs; ``BindingCycle`` says what is what."""
        self._client = client
        self._bindings = bindings
        self._seen = seen
        self._may_write = may_write
        self._pace = pace
        self._metrics = metrics
        self._went_back = went_back

    async def result(
        self, binding: Binding, annotations: Mapping[str, str], clusters: list[dict[str, Any]] | None
    ) -> Binding:
        """Patch where a binding is to go, and return it as it is stored then.

        Raises:
            ApiError: It was refused, or there was no answer.
            NotLeadingError: It was not begun.
        """

        async def patch() -> Binding:
            request = self._client.patch_result(
                binding.key,
                resource_version=binding.resource_version,
                annotations=annotations,
                clusters=clusters,
            )
            return _read(Binding.from_manifest, await self._counted("spec", request))

        return await self._written(patch, patient=False)

    async def status(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, patient: bool
    ) -> None:
        """Patch the status with what ``fields_for`` makes of the newest version that is known by then, {} for nothing.

        Others write statuses, too, while ours waits for its turn, which is later for a ``patient`` one. Raises as
        ``result`` does.
        """

        async def patch() -> Binding:
            base = self._newest(binding)
            fields = fields_for(base)
            if not fields:
                return base
            request = self._client.patch_status(
                base.key, resource_version=base.resource_version, status=fields
            )
            return _read(base.with_status, await self._counted("status", request))

        await self._written(patch, patient=patient)

    async def fresh(self, key: BindingKey) -> Binding:
        """Read a binding again; whatever somebody else changed wakes it as any event would. ApiError if it cannot be."""
        return _read(Binding.from_manifest, await self.read(key))

    async def read(self, key: BindingKey) -> Manifest:
        """Read a manifest as ``fresh`` does; tell if it is older than what was known before it was asked for."""
        known = self._bindings.version_of(key)
        manifest = await self._client.get_binding(key)
        self._seen(key.kind, "MODIFIED", manifest)
        if int(manifest["metadata"]["resourceVersion"]) < known:
            self._went_back()
        return manifest

    def _newest(self, binding: Binding) -> Binding:
        known = self._bindings.get(binding.key)
        if known is None or known.uid != binding.uid:
            return binding
        newer = compare_resource_versions(known.resource_version, binding.resource_version) > 0
        return known if newer else binding

    async def _written(self, write: Callable[[], Awaitable[Binding]], *, patient: bool) -> Binding:
        async with self._pace.turn(patient=patient):
            if not self._may_write():
                raise NotLeadingError("not leading any more, nothing is written")
            answer = await write()
        self._bindings.put_written(answer)
        return answer

    async def _counted(self, target: str, request: Awaitable[Manifest]) -> Manifest:
        try:
            manifest = await request
        except ApiError as error:
            self._metrics.api_writes.labels(target, str(error.code or "no answer")).inc()
            raise
        self._metrics.api_writes.labels(target, "200").inc()
        return manifest


def _read(parse: Callable[[Manifest], Binding], answer: Manifest) -> Binding:
    """Parse an answer; ApiError if somebody else has made of the binding what cannot be read."""
    try:
        return parse(answer)
    except ValueError as problem:
        raise ApiError(f"the answer cannot be read: {problem}") from problem
