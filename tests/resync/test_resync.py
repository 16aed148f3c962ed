"""List and compare: filling, waiting, repairing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import CLUSTERS, RESOURCE_BINDINGS, Resource
from karmada_scheduler.resync import Resync


class Client:
    """An API server that serves what a test says."""

    def __init__(self) -> None:
        self.served: set[str] = {"clusters", "resourcebindings"}
        self.failures: list[ApiError] = []
        self.lists: list[str] = []
        self.version = "7"

    async def is_served(self, resource: Resource) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        return resource.plural in self.served

    async def list(self, resource: Resource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        if self.failures:
            raise self.failures.pop(0)
        self.lists.append(resource.kind)
        yield [{"page": 1}], self.version
        yield [{"page": 2}], self.version


class Intake:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[Any], str]] = []

    def filling(self) -> AbstractContextManager[None]:
        return nullcontext()

    def listing(self, kind: str) -> "Listing":
        return Listing(self, kind)


class Listing:
    def __init__(self, intake: Intake, kind: str) -> None:
        self.intake = intake
        self.kind = kind
        self.manifests: list[Any] = []

    def take(self, manifests: list[Any]) -> None:
        self.manifests += manifests

    def end(self, resource_version: str) -> int:
        self.intake.taken.append((self.kind, self.manifests, resource_version))
        return 0


class World:
    def __init__(self) -> None:
        self.client = Client()
        self.pauses: list[float] = []
        self.intake = Intake()
        self.resync = Resync(
            self.client,  # type: ignore[arg-type]
            self.intake,  # type: ignore[arg-type]
            [CLUSTERS, RESOURCE_BINDINGS],
            period=3600,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


async def test_filling_lists_every_kind_with_all_its_pages() -> None:
    world = World()
    await world.resync.fill()
    pages = [{"page": 1}, {"page": 2}]
    assert world.intake.taken == [("Cluster", pages, "7"), ("ResourceBinding", pages, "7")]


async def test_filling_goes_on_after_errors_and_says_each_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.client.failures = [
        ApiError("cannot reach it"),
        ApiError("cannot reach it"),
        ApiError("forbidden", code=403),
    ]
    await world.resync.fill()
    assert len(world.intake.taken) == 2
    assert [record.__dict__["error"] for record in caplog.records] == ["cannot reach it", "forbidden"]


async def test_waiting_names_the_kind_that_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.client.served.discard("clusters")
    waiting = asyncio.create_task(world.resync.wait_until_served())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert [record.__dict__["error"] for record in caplog.records] == [
        "clusters.cluster.karmada.io/v1alpha1 is not served"
    ]
    world.client.served.add("clusters")
    await waiting


async def test_the_first_watch_begins_where_the_filling_ended() -> None:
    world = World()
    await world.resync.fill()
    assert await world.resync.begin("Cluster") == "7"
    assert world.client.lists == ["Cluster", "ResourceBinding"]


async def test_a_watch_after_a_gap_begins_with_a_comparison_that_has_worked() -> None:
    world = World()
    await world.resync.fill()
    await world.resync.begin("Cluster")
    world.client.failures = [ApiError("cannot reach it"), ApiError("cannot reach it")]
    world.client.version = "9"
    assert await world.resync.begin("Cluster") == "9"
    assert world.client.lists == ["Cluster", "ResourceBinding", "Cluster"]
    assert [(kind, version) for kind, _, version in world.intake.taken][-1] == ("Cluster", "9")


async def test_every_kind_is_compared_every_period_and_a_failure_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.client.failures = [ApiError("cannot reach it")]
    running = asyncio.create_task(world.resync.run())
    async with asyncio.timeout(5):
        while len(world.client.lists) < 3:
            await asyncio.sleep(0)
    running.cancel()
    assert world.client.lists[:3] == ["ResourceBinding", "Cluster", "ResourceBinding"]
    assert world.pauses[:2] == [3600, 3600]
    assert [record.message for record in caplog.records] == ["Cannot compare the cache with a list"]
