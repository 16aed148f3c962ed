"""Extenders in memory: what they decide when they are healthy, and how they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from karmada_pyscheduler.extenders.transport import ExtenderResponse, NewExtenderTransport
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.extenders import ExtenderConfig
from tools.simulation.faults import Faults
from tools.simulation.plugin_kit import number_of

EXTENDER_FAULTS: Final = (
    "extender_silent",
    "extender_refused",
    "extender_status",
    "extender_body",
    "extender_slow",
)
"""Faults of requests to extenders; the kind of a request is ``extender filter``.

``extender_status`` answers the status ``value``, ``extender_body`` one of ``BODIES``, and ``extender_slow`` takes
``value`` seconds.
"""

_KINDS: Final = frozenset(EXTENDER_FAULTS)
_SECONDS: Final = 0.002

BODIES: Final[Mapping[str, bytes]] = {
    "object": b"{}",
    "null": b"null",
    "list": b"[]",
    "empty": b"",
    "html": b"<html>",
    "torn": b'{"ClusterNames":["m',
    "null lists": b'{"Clusters":null,"ClusterNames":null}',
    "error": b'{"Error":"injected"}',
    "unknown": b'{"ClusterNames":["nowhere"],"Clusters":{"items":[{"metadata":{"name":"nowhere"}}]}}',
    "wrong types": b'{"ClusterNames":"m0","Clusters":7,"FailedClusters":[]}',
    "one failed": b'{"FailedClusters":{"nowhere":"injected"}}',
    "scores": b'[{"Host":"nowhere","Score":5}]',
    "huge score": b'[{"Host":"m0","Score":1e300}]',
}
"""The values of ``extender_body``. None of them is a result, so no decision may follow from one."""


def respond(path: str, request: Any) -> Any:
    """Return what a healthy extender responds: it refuses one cluster in five, another one for each binding."""
    number = number_of(request["Binding"]["metadata"]["name"])
    listed = request.get("Clusters")
    names = (
        request["ClusterNames"] if listed is None else [each["metadata"]["name"] for each in listed["items"]]
    )
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": (3 * number + 7 * number_of(name)) % 11} for name in names]
    kept = [name for name in names if (number + number_of(name)) % 5 != 3]
    failed = {name: "refused by the extender" for name in names if name not in kept}
    if listed is None:
        return {"ClusterNames": kept, "FailedClusters": failed}
    return {"Clusters": {"items": [{"metadata": {"name": name}} for name in kept]}, "FailedClusters": failed}


class HealthyTransport:
    """A transport to an extender without faults, for the judge."""

    def __init__(self, config: ExtenderConfig) -> None:
        del config

    async def post(self, url: str, body: bytes, *, limit: int) -> ExtenderResponse:
        """Return the response at once."""
        del limit
        return ExtenderResponse(200, orjson.dumps(respond(url, orjson.loads(body))))

    async def close(self) -> None:
        """Do nothing."""


def transport_for(process: int, faults: Faults, clock: Callable[[], float]) -> NewExtenderTransport:
    """Return what makes the transports of a process."""
    return lambda config: _FaultyTransport(config, process, faults, clock)


class _FaultyTransport(HealthyTransport):
    def __init__(
        self, config: ExtenderConfig, process: int, faults: Faults, clock: Callable[[], float]
    ) -> None:
        super().__init__(config)
        self._timeout = config.http_timeout
        self._process = process
        self._faults = faults
        self._clock = clock

    async def post(self, url: str, body: bytes, *, limit: int) -> ExtenderResponse:
        kind = f"extender {url.rpartition('/')[2]}"
        async with asyncio.timeout(self._timeout):
            await asyncio.sleep(_SECONDS)
            for fault, _ in self._faults.drawn(_KINDS, self._process, kind, self._clock()):
                match fault.kind:
                    case "extender_silent":
                        await asyncio.get_running_loop().create_future()
                    case "extender_refused":
                        raise ConnectionRefusedError("injected")
                    case "extender_status":
                        return ExtenderResponse(int(fault.value), b"injected")
                    case "extender_body":
                        return ExtenderResponse(200, BODIES[fault.value])
                    case _:
                        await asyncio.sleep(float(fault.value))
            return await super().post(url, body, limit=limit)


class NamedManifests:
    """Objects with nothing but their names, for the judge's requests."""

    def binding(self, key: BindingKey) -> bytes | None:
        """Return a binding."""
        return orjson.dumps({"metadata": {"name": key.name}})

    def cluster(self, name: str) -> bytes | None:
        """Return a cluster."""
        return orjson.dumps({"metadata": {"name": name}})
