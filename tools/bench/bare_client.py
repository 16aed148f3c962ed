"""The API server's limit: a client that watches nothing and writes what a scheduler writes. It creates, too.

    python -m tools.bench.bare_client JOB

JOB is a ``Job`` as JSON. When it is done it prints one line of JSON: per binding created, when the request was sent
and when it was answered (``time.monotonic``, which all processes of a machine share), and how late the latest
request was sent.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import orjson
import uvloop

from tools.bench import scenarios
from tools.bench.plane_http import BINDINGS, session

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Job:
    """What to write.

    Attributes:
        kubeconfig: The user and the server.
        namespace: Where the bindings are.
        scheduler: Their spec.schedulerName.
        placement: One of scenarios.PLACEMENTS.
        clusters: Number of clusters to place on.
        count: How many bindings.
        prefix: Their names are ``<prefix>-<number>``.
        create: Whether to create them.
        place: Whether to write the two patches.
        in_flight: How many bindings are worked on at once.
        rate: Bindings per second, begun whether or not the ones before are done; None for as fast as it goes.
        linger: Whether to stay after the work until SIGTERM, so that its CPU time can be read.
    """

    kubeconfig: str
    namespace: str
    scheduler: str
    placement: str
    clusters: int
    count: int
    prefix: str = "work"
    create: bool = True
    place: bool = False
    in_flight: int = 32
    rate: float | None = None
    linger: bool = False

    def argv(self) -> list[str]:
        """Return the command that carries it out."""
        return [sys.executable, "-m", "tools.bench.bare_client", json.dumps(asdict(self))]


class Writer:
    """Carries out a job over one session."""

    def __init__(self, job: Job, http: aiohttp.ClientSession) -> None:
        self._job = job
        self._http = http
        self._path = BINDINGS.format(namespace=job.namespace)
        self.created: dict[str, tuple[float, float]] = {}

    async def handle(self, number: int) -> None:
        """Do one binding."""
        job, name = self._job, f"{self._job.prefix}-{number}"
        if job.create:
            manifest = scenarios.binding(job.namespace, name, number, job.placement, job.scheduler)
            sent = time.monotonic()
            await self._send("POST", self._path, manifest, JSON)
            self.created[name] = (sent, time.monotonic())
        if job.place:
            path = f"{self._path}/{name}"
            patch = scenarios.result_patch(number, job.placement, job.clusters)
            answer = await self._send("PATCH", path, patch, MERGE_PATCH)
            now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            generation: int = orjson.loads(answer)["metadata"]["generation"]
            await self._send("PATCH", f"{path}/status", scenarios.status_patch(generation, now), MERGE_PATCH)

    async def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> bytes:
        async with self._http.request(method, path, data=orjson.dumps(body), headers=headers) as answer:
            content = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]!r}")
            return content


async def at_once(count: int, in_flight: int, handle: Callable[[int], Awaitable[None]]) -> None:
    """Handle ``count`` numbers, ``in_flight`` of them at any time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await handle(number)

    async with asyncio.TaskGroup() as workers:
        for _ in range(in_flight):
            workers.create_task(worker())


async def at_a_rate(
    count: int,
    rate: float,
    handle: Callable[[int], Awaitable[None]],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> float:
    """Begin ``count`` numbers, one each 1/rate seconds, and return by how many seconds the latest was late."""
    begin, worst = clock(), 0.0
    async with asyncio.TaskGroup() as tasks:
        async for number in _ticks(count, begin, rate, clock, sleep):
            worst = max(worst, clock() - begin - number / rate)
            tasks.create_task(_as_coroutine(handle, number))
    return worst


async def _as_coroutine(handle: Callable[[int], Awaitable[None]], number: int) -> None:
    await handle(number)


async def _ticks(
    count: int,
    begin: float,
    rate: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[int]:
    for number in range(count):
        if (pause := begin + number / rate - clock()) > 0:
            await sleep(pause)
        yield number


async def carry_out(job: Job) -> dict[str, object]:
    """Carry out the job, and return the results to print."""
    late = 0.0
    connections = job.in_flight if job.rate is None else 200
    async with session(Path(job.kubeconfig), connections=connections) as http:
        writer = Writer(job, http)
        if job.rate is None:
            await at_once(job.count, job.in_flight, writer.handle)
        else:
            late = await at_a_rate(job.count, job.rate, writer.handle)
    return {"created": writer.created, "late": late}


def main() -> None:
    """Carry out the job of the command line."""
    job = Job(**json.loads(sys.argv[1]))
    print(orjson.dumps(uvloop.run(carry_out(job))).decode(), flush=True)
    if job.linger:
        signal.pause()


if __name__ == "__main__":
    main()
