"""The least that a scheduler in Python costs: a program that reads one watch and makes a scheduler's four requests.

    python -m tools.bench.empty_program KUBECONFIG NAMESPACE SCHEDULER PLACEMENT CLUSTERS [POLL_MS]

It decides nothing, and has no queue, cache, kopf, metrics, log or Lease: each new binding of the scheduler gets a fixed
result. It uses uvloop, orjson and the scheduler's own HTTP client. With POLL_MS it uses asyncio's own loop, which then
waits up to so many milliseconds before it looks for ready sockets, so that one wake-up serves all of them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import selectors
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from karmada_scheduler.client.http import HttpConnections
from tools.bench import scenarios
from tools.bench.bare_client import JSON, MERGE_PATCH
from tools.bench.plane_http import BINDINGS, session, trust

EVENTS = "/api/v1/namespaces/{namespace}/events"
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """What to watch and what to write.

    Attributes:
        kubeconfig: The user and the server.
        namespace: Where the bindings are.
        scheduler: Their spec.schedulerName.
        placement: One of scenarios.PLACEMENTS.
        clusters: Number of clusters to place on.
        poll_ms: Milliseconds between two looks at the sockets; 0 for none.
    """

    kubeconfig: str
    namespace: str
    scheduler: str
    placement: str
    clusters: int
    poll_ms: float = 0.0

    def argv(self) -> list[str]:
        """Return the command that carries it out."""
        words = (self.kubeconfig, self.namespace, self.scheduler, self.placement, self.clusters, self.poll_ms)
        return [sys.executable, "-m", "tools.bench.empty_program", *map(str, words)]


class PollingSelector(selectors.EpollSelector):
    """A selector that lets sockets become ready for some time before it returns them."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._next = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait as usual, but at least until the end of the interval that began with the last return."""
        if timeout == 0:  # callbacks are due
            return super().select(0)
        if (early := self._next - time.monotonic()) > 0:
            time.sleep(early if timeout is None else min(early, timeout))
            timeout = None if timeout is None else max(0.0, timeout - early)
        ready = super().select(timeout)
        self._next = time.monotonic() + self._seconds
        return ready


class Program:
    """Watches bindings and places the new ones."""

    def __init__(self, job: Job, http: HttpConnections) -> None:
        self._job = job
        self._http = http
        self._bindings = BINDINGS.format(namespace=job.namespace)
        self._events = EVENTS.format(namespace=job.namespace)
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def watch(self, watching: aiohttp.ClientSession) -> None:
        """Place every binding that the watch shows for the first time."""
        parameters = {"watch": "true", "timeoutSeconds": "3600"}
        async with watching.get(self._bindings, params=parameters) as answer:
            answer.raise_for_status()
            print("watching", flush=True)
            async for line in answer.content:
                event = orjson.loads(line)
                binding = event["object"]
                if event["type"] == "ADDED" and not binding["spec"].get("clusters"):
                    task = asyncio.create_task(self._place(binding, self._number))
                    self._number += 1
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _place(self, binding: Mapping[str, Any], number: int) -> None:
        job, name = self._job, binding["metadata"]["name"]
        patch = scenarios.result_patch(number, job.placement, job.clusters)
        patch["metadata"]["resourceVersion"] = binding["metadata"]["resourceVersion"]
        answer = await self._send("PATCH", f"{self._bindings}/{name}", patch, MERGE_PATCH)
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        generation: int = orjson.loads(answer)["metadata"]["generation"]
        status = scenarios.status_patch(generation, now)
        await self._send("PATCH", f"{self._bindings}/{name}/status", status, MERGE_PATCH)
        for about in (binding, None):
            await self._send("POST", self._events, self._event(name, about, number, now), JSON)

    def _event(self, name: str, about: Mapping[str, Any] | None, number: int, now: str) -> dict[str, Any]:
        """Return an Event about the binding, or about its template if there is no binding."""
        kind, version = (
            ("Deployment", "apps/v1") if about is None else ("ResourceBinding", "work.karmada.io/v1alpha2")
        )
        involved = {"kind": kind, "apiVersion": version, "namespace": self._job.namespace, "name": name}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{name}.{number:x}.{kind.lower()}",
                "namespace": self._job.namespace,
            },
            "involvedObject": involved,
            "type": "Normal",
            "reason": "ScheduleBindingSucceed",
            "message": "Binding has been scheduled successfully.",
            "source": {"component": self._job.scheduler},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> bytes:
        response = await self._http.request(
            method, path, headers=headers, body=orjson.dumps(body), timeout=_TIMEOUT
        )
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {response.body[:500]!r}")
        return response.body


async def run(job: Job) -> None:
    """Carry out the job until the watch ends."""
    kubeconfig = Path(job.kubeconfig)
    config = json.loads(kubeconfig.read_text())  # noqa: ASYNC240  before anything is measured
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    http = HttpConnections(cluster["server"], tls=trust(cluster, user), tls_name=None, agent="empty-program")
    async with session(kubeconfig, connections=1) as watching:
        await Program(job, http).watch(watching)


def main() -> None:
    """Carry out the job of the command line."""
    kubeconfig, namespace, scheduler, placement, clusters, *more = sys.argv[1:]
    job = Job(kubeconfig, namespace, scheduler, placement, int(clusters), float(more[0]) if more else 0.0)
    if not job.poll_ms:
        uvloop.run(run(job))
        return
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(PollingSelector(job.poll_ms / 1e3))
    ) as runner:
        runner.run(run(job))


if __name__ == "__main__":
    main()
