"""List and compare: filling, waiting, repairing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import CLUSTERS, RESOURCE_BINDINGS, Resource
from karmada_scheduler.informer.relist import Relister


class Client:
    """An API server that serves what a test says."""

    def __init__(self) -> None:
        self.served: set[str] = {"clusters", "resourcebindings"}
        self.failures: list[Exception] = []
        self.lists: list[str] = []
        self.version = "7"
        self.versions: list[str] = []
        """Of the next lists; ``version`` when there are none left."""

    async def is_served(self, resource: Resource) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        return resource.plural in self.served

    async def list(self, resource: Resource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        if self.failures:
            raise self.failures.pop(0)
        self.lists.append(resource.kind)
        version = self.versions.pop(0) if self.versions else self.version
        yield [{"page": 1}], version
        yield [{"page": 2}], version

    async def newest_version(self, resource: Resource) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return self.version


class Intake:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[Any], str]] = []
        self.newest = {"Cluster": 0, "ResourceBinding": 0}
        self.older = 0
        self.forgotten: list[str] = []
        self.looked_again: list[tuple[str, int]] = []

    def newest_version(self, kind: str) -> int:
        return self.newest[kind]

    def forget_versions(self, kind: str) -> None:
        self.forgotten.append(kind)
        self.newest[kind] = 0

    def versions_went_back(self, kind: str, count: int) -> None:
        self.looked_again.append((kind, count))

    def filling(self) -> AbstractContextManager[None]:
        return nullcontext()

    def listing(self, kind: str) -> "Listing":
        return Listing(self, kind)


class Listing:
    def __init__(self, intake: Intake, kind: str) -> None:
        self.intake = intake
        self.kind = kind
        self.manifests: list[Any] = []
        self.older = intake.older

    def take(self, manifests: list[Any], *, as_of: int) -> None:
        self.manifests += manifests

    def end(self, resource_version: str) -> int:
        self.intake.taken.append((self.kind, self.manifests, resource_version))
        return 0


class World:
    def __init__(self) -> None:
        self.client = Client()
        self.pauses: list[float] = []
        self.replaced: list[str] = []
        self.intake = Intake()
        self.resync = Relister(
            self.client,  # type: ignore[arg-type]
            self.intake,  # type: ignore[arg-type]
            [CLUSTERS, RESOURCE_BINDINGS],
            period=3600,
            sleep=self._sleep,
        )
        self.resync.on_replaced = self.replaced.append
        self.period = asyncio.Event()
        self.period.set()

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)
        if seconds == 3600:
            await self.period.wait()

    async def run_until(self, reached: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.resync.run())
        async with asyncio.timeout(5):
            while not reached():
                await asyncio.sleep(0)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


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
    await world.run_until(lambda: len(world.client.lists) >= 3)
    assert world.client.lists[:3] == ["ResourceBinding", "Cluster", "ResourceBinding"]
    assert world.pauses[:2] == [3600, 3600]
    assert [record.message for record in caplog.records] == ["Cannot compare the cache with a list"]


async def test_no_failure_of_any_kind_ends_the_comparisons(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.client.failures = [ValueError("nonsense"), TypeError("more of it")]
    await world.run_until(lambda: len(world.client.lists) >= 2)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


async def test_an_error_that_lasts_is_told_of_again_every_few_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.client.failures = [ApiError("cannot reach it")] * 100
    await world.resync.begin("Cluster")
    told = [record for record in caplog.records if record.__dict__["error"] == "cannot reach it"]
    assert len(told) == 100 / 16 + 0.75
    assert sum(world.pauses) / len(told) < 300


@pytest.mark.parametrize("known_from", ["a list", "objects"])
async def test_a_list_that_is_older_than_what_was_seen_replaces_the_cache_when_another_one_agrees(
    known_from: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    if known_from == "a list":
        world.client.version = "1000"
        await world.resync.fill()
    else:
        world.intake.newest = dict.fromkeys(world.intake.newest, 1000)
    world.client.version = "800"
    world.client.lists.clear()
    world.intake.taken.clear()
    await world.run_until(lambda: len(world.replaced) == 2)
    assert world.client.lists[:2] == ["Cluster", "Cluster"]
    assert world.intake.forgotten[:1] == ["Cluster"]
    assert world.intake.taken[0] == ("Cluster", [{"page": 1}, {"page": 2}], "800")
    assert world.intake.looked_again[0] == ("Cluster", 0)
    assert "A list of version 800 is older than 1000" in caplog.records[0].message
    # The watch has to begin where the list ended that has replaced the cache.
    assert await world.resync.begin("Cluster") == "800"


async def test_a_list_that_no_other_one_confirms_replaces_nothing() -> None:
    world = World()
    world.intake.newest["Cluster"] = 1000
    world.client.versions, world.client.version = ["800"], "1001"
    assert await world.resync.begin("Cluster") == "1001"
    assert [version for _, _, version in world.intake.taken] == ["1001"]
    assert (world.intake.forgotten, world.intake.looked_again, world.replaced) == ([], [], [])


async def test_versions_that_grow_below_what_was_known_before_a_replacement_raise_no_doubt() -> None:
    world = World()
    world.intake.newest["Cluster"] = 1000
    assert await world.resync.begin("Cluster") == "7"
    world.client.version = "8"
    assert await world.resync.begin("Cluster") == "8"
    assert world.intake.forgotten == ["Cluster"]
    assert world.client.lists == ["Cluster"] * 3


async def test_objects_that_went_back_in_a_list_that_is_not_older_have_all_bindings_looked_at_again() -> None:
    """etcd is best restored with a revision that is far ahead; the objects have their old versions all the same."""
    world = World()
    world.intake.older = 3
    await world.resync.begin("Cluster")
    assert world.intake.looked_again == [("Cluster", 3)]
    assert world.intake.forgotten == []


async def test_doubt_is_a_comparison_at_once_and_further_doubt_waits_longer_and_longer() -> None:
    world = World()
    world.period.clear()
    running = asyncio.create_task(world.resync.run())
    for count in range(1, 4):
        world.resync.doubt()
        async with asyncio.timeout(5):
            while len(world.client.lists) < 2 * count or len(world.pauses) < 2 * count:
                await asyncio.sleep(0)
    running.cancel()
    assert [pause for pause in world.pauses if pause != 3600] == [1.0, 2.0, 5.0]
    assert world.client.lists == ["Cluster", "ResourceBinding"] * 3


async def test_doubt_lasts_until_a_comparison_has_worked() -> None:
    world = World()
    world.period.clear()
    world.client.failures = [ApiError("cannot reach it")] * 3
    world.resync.doubt()
    await world.run_until(lambda: "Cluster" in world.client.lists)


async def test_a_watch_that_finds_its_kind_restored_has_the_other_kinds_compared() -> None:
    world = World()
    world.period.clear()
    world.intake.newest = dict.fromkeys(world.intake.newest, 1000)
    await world.resync.begin("Cluster")
    await world.run_until(lambda: "ResourceBinding" in world.replaced)


@pytest.mark.parametrize(("watched", "ahead"), [("8", True), ("7", False), ("6", False)])
async def test_a_watch_is_ahead_when_its_version_is_newer_than_that_of_a_list(
    watched: str, ahead: bool
) -> None:
    world = World()
    world.client.failures = [ApiError("cannot reach it")]
    assert await world.resync.is_ahead("Cluster", watched) is ahead
    assert world.client.lists == []
