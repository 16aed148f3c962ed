"""List and compare: filling, waiting, repairing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from karmada_scheduler import resync as module
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import CLUSTERS, RESOURCE_BINDINGS, Resource
from karmada_scheduler.resync import Resync


class Client:
    """An API server that serves what a test says."""

    def __init__(self) -> None:
        self.served: set[str] = {"clusters", "resourcebindings"}
        self.failures: list[ApiError] = []
        self.lists: list[str] = []

    async def is_served(self, resource: Resource) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        return resource.plural in self.served

    async def list(self, resource: Resource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        if self.failures:
            raise self.failures.pop(0)
        self.lists.append(resource.kind)
        yield [{"page": 1}], "7"
        yield [{"page": 2}], "7"


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
        self.intake = Intake()
        self.resync = Resync(
            self.client,  # type: ignore[arg-type]
            self.intake,  # type: ignore[arg-type]
            [CLUSTERS, RESOURCE_BINDINGS],
            period=3600,
            clock=asyncio.get_running_loop().time,
        )


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", (0.0,))
    monkeypatch.setattr(module, "_SETTLE_SECONDS", 0.0)


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


async def test_a_comparison_that_is_asked_for_is_made_soon_and_only_of_that_kind() -> None:
    world = World()
    running = asyncio.create_task(world.resync.run())
    await asyncio.sleep(0)
    world.resync.request("ResourceBinding")
    world.resync.request("ResourceBinding")
    async with asyncio.timeout(5):
        while not world.intake.taken:
            await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.client.lists == ["ResourceBinding"]
    running.cancel()


async def test_a_long_list_of_kopf_is_followed_by_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLE_SECONDS", 2.0)
    now = 0.0
    world = World()
    world.resync._clock = lambda: now
    running = asyncio.create_task(world.resync.run())
    for _ in range(100):
        world.resync.request("ResourceBinding")
        for _ in range(3):
            await asyncio.sleep(0)
        now += 1.0
    assert world.client.lists == []
    now += 1.0
    world.resync._wake.set()  # as any other request would
    async with asyncio.timeout(5):
        while not world.intake.taken:
            await asyncio.sleep(0)
    assert world.client.lists == ["ResourceBinding"]
    running.cancel()


async def test_a_comparison_that_fails_is_logged_and_the_next_one_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    running = asyncio.create_task(world.resync.run())
    world.client.failures = [ApiError("cannot reach it")]
    world.resync.request("Cluster")
    async with asyncio.timeout(5):
        while not caplog.records:
            await asyncio.sleep(0)
    world.resync.request("Cluster")
    async with asyncio.timeout(5):
        while not world.intake.taken:
            await asyncio.sleep(0)
    running.cancel()
