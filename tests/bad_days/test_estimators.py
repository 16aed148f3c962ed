"""Estimators that hang, are slow, or respond again, and the real scheduler: what waits for them, and what does not."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.fake_apiserver import (
    FakeApiServer,
    SchedulerProcess,
    binding,
    cluster,
    start_scheduler,
    wait_for,
)
from tests.fake_apiserver.objects import DYNAMIC
from tests.unit.estimator.fault_server import FaultServer, in_thread, serving
from tools.controlplane import karmada

COUNT = 5
SLOTS = 2
WAITING = "karmada_scheduler_decisions_waiting_for_estimators"
ALL_RESPONDED = {"m0": 1, "m1": 10, "m2": 10, "m3": 10, "m4": 10}
"""41 replicas if the estimators of all clusters respond."""

_amounts = itertools.count(10)


class Estimators:
    """One per cluster, in a thread; that of m0 has capacity for 1 replica, the others for 10."""

    def __init__(self, loop: asyncio.AbstractEventLoop, servers: Sequence[FaultServer]) -> None:
        self._loop = loop
        self._servers = servers
        servers[0].answer = 1
        for server in servers[1:]:
            server.answer = 10

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self._servers]

    def hang(self, count: int) -> None:
        """Have the first ones not respond."""
        for server in self._servers[:count]:
            server.hangs = True

    def respond(self) -> None:
        """Have all respond again, also to the requests that they have."""
        for server in self._servers:
            self._loop.call_soon_threadsafe(server.let_go)


@contextlib.asynccontextmanager
async def _servers() -> AsyncIterator[list[FaultServer]]:
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serving()) for _ in range(COUNT)]


@contextlib.contextmanager
def fleet() -> Iterator[tuple[FakeApiServer, Estimators]]:
    """Serve five clusters and their estimators."""
    with in_thread(_servers()) as (servers, loop), FakeApiServer() as server:
        estimators = Estimators(loop, servers)
        for number, port in enumerate(estimators.ports):
            server.put(cluster(f"m{number}"))
            ports = [{"port": karmada.ESTIMATOR_PORT, "targetPort": port}]
            server.put(karmada.external_service(f"karmada-scheduler-estimator-m{number}", ports))
        yield server, estimators


@contextlib.contextmanager
def scheduler_on(
    server: FakeApiServer, folder: Path, *, timeout: str, policy: str = "partial"
) -> Iterator[SchedulerProcess]:
    with start_scheduler(
        server,
        folder,
        "--enable-scheduler-estimator=true",
        f"--scheduler-estimator-timeout={timeout}",
        f"--estimator-failure-policy={policy}",
        f"--max-in-flight={SLOTS}",
    ) as scheduler:
        yield scheduler


def put_everywhere(server: FakeApiServer, *names: str) -> None:
    """Put bindings for all clusters, each with a request of its own."""
    for name in names:
        server.put(binding(name, replicas=41, requests={"cpu": f"{next(_amounts)}m"}))


def put_on(server: FakeApiServer, name: str, only: str) -> None:
    """Put a binding for one cluster."""
    placement = {"clusterAffinity": {"clusterNames": [only]}, "replicaScheduling": DYNAMIC}
    server.put(binding(name, replicas=3, placement=placement))


def wait_until_placed(server: FakeApiServer, scheduler: SchedulerProcess, *names: str) -> None:
    wait_for(lambda: all(server.targets(name) for name in names), f"{names} to be placed", scheduler)


NAMES = [f"wide-{number}" for number in range(4 * SLOTS)]


@pytest.mark.parametrize(
    ("hanging", "policy"), [(1, "partial"), (2, "upstream")], ids=["one slow", "two slow, upstream's policy"]
)
def test_other_bindings_are_placed_while_many_wait_for_slow_estimators(
    tmp_path: Path, hanging: int, policy: str
) -> None:
    with (
        fleet() as (server, estimators),
        scheduler_on(server, tmp_path, timeout="60s", policy=policy) as scheduler,
    ):
        put_everywhere(server, "first")
        wait_until_placed(server, scheduler, "first")
        estimators.hang(hanging)
        put_everywhere(server, *NAMES)
        for number in range(3):
            put_on(server, f"narrow-{number}", "m4")
        wait_until_placed(server, scheduler, *(f"narrow-{number}" for number in range(3)))
        wait_for(lambda: scheduler.metric(WAITING) == len(NAMES), "all others to wait", scheduler)
        assert not any(server.targets(name) for name in NAMES)
        estimators.respond()
        wait_until_placed(server, scheduler, *NAMES)
        assert [server.targets(name) for name in ("first", *NAMES)] == [ALL_RESPONDED] * (1 + len(NAMES))
        assert "fell back to the resource summary" not in scheduler.log
        assert scheduler.metric(WAITING) == 0


def test_a_missed_deadline_releases_all_that_wait_and_a_response_ends_the_fallback(tmp_path: Path) -> None:
    with fleet() as (server, estimators), scheduler_on(server, tmp_path, timeout="2s") as scheduler:
        put_everywhere(server, "first")
        wait_until_placed(server, scheduler, "first")
        estimators.hang(1)
        put_everywhere(server, *NAMES)
        wait_until_placed(server, scheduler, *NAMES)
        for name in NAMES:
            targets = server.targets(name) or {}
            assert targets["m0"] > 30, targets  # of its resource summary, next to 10 of each estimator
        assert scheduler.log.count("fell back to the resource summary of clusters: m0") == len(NAMES)
        assert scheduler.log.count("The estimator of a cluster does not respond") == 1
        estimators.respond()
        wait_for(lambda: "The estimator of a cluster responds again" in scheduler.log, "a probe", scheduler)
        put_everywhere(server, "last")
        wait_until_placed(server, scheduler, "last")
        assert server.targets("last") == ALL_RESPONDED


def test_resource_summaries_count_after_one_deadline_if_all_estimators_hang(tmp_path: Path) -> None:
    with fleet() as (server, estimators), scheduler_on(server, tmp_path, timeout="2s") as scheduler:
        estimators.hang(COUNT)
        put_everywhere(server, *NAMES)
        wait_until_placed(server, scheduler, *NAMES)
        assert scheduler.log.count("fell back to the resource summary of clusters: m0 and 4 more") == len(
            NAMES
        )
        assert scheduler.log.count("The estimator of a cluster does not respond") == COUNT


def test_bindings_that_waited_for_an_estimator_are_placed_after_a_restart(tmp_path: Path) -> None:
    with fleet() as (server, estimators):
        with scheduler_on(server, tmp_path, timeout="60s") as scheduler:
            put_everywhere(server, "first")
            wait_until_placed(server, scheduler, "first")
            estimators.hang(1)
            put_everywhere(server, *NAMES)
            wait_for(lambda: scheduler.metric(WAITING) == len(NAMES), "all to wait", scheduler)
            scheduler.kill()
        assert not any(server.targets(name) for name in NAMES)
        estimators.respond()
        server.delete("Lease", "my-scheduler", "karmada-system")
        with scheduler_on(server, tmp_path, timeout="60s") as scheduler:
            wait_until_placed(server, scheduler, *NAMES)
            assert [server.targets(name) for name in NAMES] == [ALL_RESPONDED] * len(NAMES)
