"""Whether the objects of a live control plane can be listed and watched, and about how many they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from karmada_advisor.fleet.live_reading import FORBIDDEN, LiveReading, read
from karmada_advisor.fleet.source import ControlPlane
from karmada_pyscheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.api_error import ApiError

_WATCH_SECONDS: Final = 5.0
"""How long the API server may take to accept or refuse a watch."""


class KindsFound(NamedTuple):
    """What ``count_objects`` finds out.

    Attributes:
        server: The URL of the API server.
        totals: About how many objects there are, by kind; 0 where the API server does not say.
        unwatched: Why one of the kinds may not be watched; "" if all may.
    """

    server: str
    totals: dict[str, int]
    unwatched: str


def count_objects(plane: ControlPlane, resources: Sequence[Resource]) -> KindsFound:
    """Find out whether kinds can be listed and watched, and about how many objects they have.

    Args:
        plane: The control plane.
        resources: The kinds.

    Raises:
        LiveError: A kind cannot be listed.
    """

    async def work(reading: LiveReading) -> KindsFound:
        counts = {each.kind: await _count(reading, each) for each in resources}
        refusals = [
            await _refusal_to_watch(reading, each, version)
            for each, (_, version) in zip(resources, counts.values(), strict=True)
        ]
        totals = {kind: count for kind, (count, _) in counts.items()}
        return KindsFound(reading.connection.server, totals, next(filter(None, refusals), ""))

    return read(plane, work)


async def _count(reading: LiveReading, resource: Resource) -> tuple[int, str]:
    """Return about how many objects of a kind there are, and the version of their list."""
    reading.subject = resource.plural
    try:
        return await KarmadaClient(reading.connection).count(resource)
    except ApiError as error:
        reading.raise_if_not_served(resource, error)
        raise


async def _refusal_to_watch(reading: LiveReading, resource: Resource, version: str) -> str:
    """Return why a kind may not be watched, "" if the API server accepts the request or gives no clear answer."""
    accepted = asyncio.Event()
    target = f"{resource.path}?watch=true&timeoutSeconds=1&resourceVersion={version}"

    async def follow() -> None:
        async with aclosing(reading.connection.watch(target, accepted.set)) as lines:
            async for _ in lines:
                return

    tasks = [asyncio.create_task(follow()), asyncio.create_task(accepted.wait())]
    try:
        await asyncio.wait(tasks, timeout=_WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        [result, _] = await asyncio.gather(*tasks, return_exceptions=True)
    is_forbidden = isinstance(result, ApiError) and result.code == FORBIDDEN
    return f"{resource.plural}: {result}" if is_forbidden else ""
