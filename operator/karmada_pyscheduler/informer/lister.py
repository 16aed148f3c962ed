"""Lists of watched kinds with retries, and whether a watch can continue; for the scheduler's caches and for the page.

After an outage, the API server's etcd may have been restored from a backup: what was listed before it is listed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from karmada_pyscheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.api_error import ApiError

T = TypeVar("T")

_RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
_OUTAGE_SECONDS: Final = 10.0
"""After an outage of this length every kind is listed. Shorter ones are restarts of an API server, which would get a
list of everything at its busiest moment."""


class Lister(ABC):
    """The lists of some kinds for their reflectors. A subclass sets ``_client`` before the first list."""

    _client: KarmadaClient

    def __init__(
        self,
        resources: Iterable[Resource],
        *,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        """Take the kinds in the order of their first lists; ``clock`` is in seconds, never running backwards."""
        self._resources = {resource.kind: resource for resource in resources}
        self._sleep = sleep
        self._clock = clock
        self._start_versions: dict[str, str] = {}
        """The versions of lists after which no watch has begun yet, by kind."""
        self._compared_by_content: set[str] = set()
        """The kinds of whose objects the same version may have two contents, because etcd may have been restored."""

    @abstractmethod
    async def _list(self, resource: Resource) -> str:
        """Take in a complete list of a kind; return its version."""

    @abstractmethod
    def _note(self, what: str, resource: Resource, error: Exception | None, *, tries: int) -> None:
        """Note an attempt, ``what`` says of what; after an error another one follows.

        Args:
            what: Such as "Listing clusters".
            resource: The kind.
            error: Why it failed; None if it succeeded.
            tries: How many attempts failed before.
        """

    async def list_first(self, resource: Resource) -> None:
        """List a kind, with retries; its watch starts where the list ends."""
        self._start_versions[resource.kind] = await self._list_again(resource)

    async def list_and_start_version(self, kind: str, /) -> str:
        """Return the version at which a watch of a kind is to start; what is kept is complete up to it.

        The first watch starts where the first list ended. There was a gap before any other watch, so the kind is
        listed first, with retries.
        """
        if (version := self._start_versions.pop(kind, None)) is not None:
            return version
        return await self._list_again(self._resources[kind])

    async def must_relist(self, kind: str, version: str, /) -> bool:
        """Return whether a watch cannot continue at a version, because etcd was or may have been restored.

        Returns once the API server has answered. A version ahead of the newest one proves a restore. After a long
        outage other clients may have written so much that the newest version is ahead again. After a shorter one, which
        may seem short because this process did not run, the next comparison compares contents.
        """
        resource = self._resources[kind]
        begin, requests = self._clock(), 0

        async def request() -> int:
            nonlocal requests
            requests += 1
            return number(await self._client.newest_version(resource))

        newest = await self._retry(f"Reading the version of {resource.plural}", resource, request)
        is_ahead = not _is_number(version) or newest < int(version)
        may_be_restored = is_ahead or self._clock() - begin >= _OUTAGE_SECONDS
        if may_be_restored or requests > 1:
            self._compared_by_content.add(kind)
        return may_be_restored

    async def _list_again(self, resource: Resource) -> str:
        return await self._retry(f"Listing {resource.plural}", resource, partial(self._list, resource))

    async def _retry(self, what: str, resource: Resource, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an attempt that succeeds."""
        begin, tries = self._clock(), 0
        while True:
            try:
                found = await attempt()
            except Exception as error:  # noqa: BLE001 (reported, and tried again)
                self._note(what, resource, error, tries=tries)
                await self._sleep(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
                tries += 1
            else:
                self._note(what, resource, None, tries=tries)
                if tries and self._clock() - begin >= _OUTAGE_SECONDS:
                    self._start_versions.clear()
                return found


def number(version: str) -> int:
    """Return a resourceVersion as a number; ApiError if it is not one."""
    if not _is_number(version):
        raise ApiError(f"the API server gave {version!r} for a resourceVersion")
    return int(version)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
