"""Lists: the initial one, and those that repair the cache."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.client.karmada import CLUSTERS, RESOURCE_BINDINGS, Resource, not_served
from karmada_pyscheduler.informer.cluster_lists import ClusterLists
from karmada_pyscheduler.informer.cluster_reads import SOON_SECONDS, ClusterReads
from karmada_pyscheduler.informer.list_requests import ListRequests
from karmada_pyscheduler.informer.relist import _REQUEST_PAUSES, Relister
from karmada_scheduler.api_error import ApiError


class FakeClient:
    """A fake API server with the objects that a test gives it."""

    def __init__(self) -> None:
        self.served: set[str] = {"clusters", "resourcebindings"}
        self.failures: list[Exception] = []
        self.lists: list[str] = []
        self.version = "7"
        self.versions: list[str] = []
        """Versions of the next lists; then ``version``."""
        self.clusters: dict[str, Any] = {}
        """The responses to reading clusters by name: an object, None, an error, or an Event for none."""
        self.read: list[str] = []
        self.on_read: Callable[[], None] = lambda: None

    async def require_served(self, resource: Resource) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if resource.plural not in self.served:
            raise not_served("https://karmada", resource)

    async def list(self, resource: Resource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        if self.failures:
            raise self.failures.pop(0)
        self.lists.append(resource.kind)
        version = self.versions.pop(0) if self.versions else self.version
        yield [{"page": 1}], version
        yield [{"page": 2}], version

    async def get_cluster(self, name: str) -> dict[str, Any] | None:
        self.read.append(name)
        self.on_read()
        found: Any = self.clusters[name]
        if isinstance(found, asyncio.Event):
            await found.wait()
        if isinstance(found, Exception):
            self.clusters[name] = None
            raise found
        return cast("dict[str, Any] | None", found)

    async def newest_version(self, resource: Resource) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return self.versions.pop(0) if self.versions else self.version


class FakeClusterLists(ClusterLists, kw_only=True):
    """Lacks the clusters that a test gives it."""

    handlers: "FakeHandlers"

    def unlisted(self, diff: object, version: int) -> list[str]:
        return [*self.handlers.unlisted]

    def check_empty(self) -> None:
        self.handlers.checked_after.append(len(self.handlers.taken))

    def unknown_targets(self) -> list[str]:
        return self.handlers.unknown


class FakeHandlers:
    """Records the events that it gets."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.requeuer = SimpleNamespace(deferring_placed=nullcontext)
        self.cluster_reads = ClusterReads(
            on_found=lambda found, as_of: self.found.append((found, as_of)),
            on_absent=self.clusters_absent,
            clock=clock,
        )
        self.cluster_lists = FakeClusterLists(
            ClusterCache(),
            (),
            is_assigned=lambda _: True,
            clock=clock,
            request_list=lambda _: None,
            reads=self.cluster_reads,
            handlers=self,
        )
        self.absent: list[tuple[str, int]] = []
        self.found: list[tuple[Any, int]] = []
        self.taken: list[tuple[str, list[Any], str]] = []
        self.newest = {"Cluster": 0, "ResourceBinding": 0}
        self.older = 0
        self.forgotten: list[str] = []
        self.rollbacks: list[tuple[str, int]] = []
        self.unlisted: list[str] = []
        self.unknown: list[str] = []
        self.kept: list[str] = []
        self.versions: list[int | None] = []
        """The versions of the lists that pages were added for."""
        self.by_content: list[str] = []
        """The kinds whose objects were compared by content."""
        self.checked_after: list[int] = []
        """How many lists were complete when it was checked whether there are no clusters."""

    def newest_version(self, kind: str) -> int:
        return self.newest[kind]

    def forget_versions(self, kind: str) -> None:
        self.forgotten.append(kind)
        self.newest[kind] = 0

    def on_version_rollback(self, kind: str, count: int) -> None:
        self.rollbacks.append((kind, count))

    def clusters_absent(self, names: Iterable[str], as_of: int) -> None:
        self.absent += [(name, as_of) for name in sorted(names)]

    def relist_diff(self, kind: str, *, by_content: bool = False) -> "FakeDiff":
        if by_content:
            self.by_content.append(kind)
        return FakeDiff(self, kind)


class FakeDiff:
    def __init__(self, handlers: FakeHandlers, kind: str) -> None:
        self.handlers = handlers
        self.kind = kind
        self.manifests: list[Any] = []
        self.older = handlers.older

    def add_page(self, manifests: list[Any], *, as_of: int | None = None) -> None:
        self.manifests += manifests
        self.handlers.versions.append(as_of)

    def keep(self, key: str) -> None:
        self.handlers.kept.append(key)

    def finish(self, resource_version: str) -> int:
        self.handlers.taken.append((self.kind, self.manifests, resource_version))
        return 0


class RelisterHarness:
    def __init__(self) -> None:
        self.client = FakeClient()
        self.pauses: list[float] = []
        self.now = 0.0
        self.replaced: list[str] = []
        self.released: list[int] = []
        self.handlers = FakeHandlers(lambda: self.now)
        self.requests = ListRequests()
        self.relister = Relister(
            self.client,  # type: ignore[arg-type]
            self.handlers,  # type: ignore[arg-type]
            [CLUSTERS, RESOURCE_BINDINGS],
            self.requests,
            period=3600,
            sleep=self._sleep,
            clock=lambda: self.now,
            after_list=lambda: self.released.append(len(self.handlers.taken)),
        )
        self.period = asyncio.Event()
        self.period.set()

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
        if seconds == 3600:
            await self.period.wait()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.relister.read_clusters())
        try:
            yield
        finally:
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not reached():
                await asyncio.sleep(0)

    async def run_until(self, reached: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.relister.run(self.replaced.append))
        async with asyncio.timeout(5):
            while not reached():
                await asyncio.sleep(0)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_initial_list_reads_all_pages_of_every_kind() -> None:
    harness = RelisterHarness()
    await harness.relister.initial_list()
    pages = [{"page": 1}, {"page": 2}]
    assert harness.handlers.taken == [("Cluster", pages, "7"), ("ResourceBinding", pages, "7")]
    assert harness.handlers.checked_after == [2]


async def test_memory_is_released_after_each_list() -> None:
    harness = RelisterHarness()
    await harness.relister.initial_list()
    assert harness.released == [1, 2]


async def test_the_initial_list_is_retried_and_each_error_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RelisterHarness()
    harness.client.failures = [
        ApiError("cannot reach it"),
        ApiError("cannot reach it"),
        ApiError("forbidden", code=403),
    ]
    await harness.relister.initial_list()
    assert len(harness.handlers.taken) == 2
    assert [record.__dict__["error"] for record in caplog.records] == ["cannot reach it", "forbidden"]


async def test_a_kind_that_is_not_served_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    harness = RelisterHarness()
    harness.client.served.discard("clusters")
    waiting = asyncio.create_task(harness.relister.wait_until_served())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert [record.__dict__["error"] for record in caplog.records] == [
        str(not_served("https://karmada", CLUSTERS))
    ]
    harness.client.served.add("clusters")
    await waiting


async def test_the_first_watch_starts_at_the_version_of_the_initial_list() -> None:
    harness = RelisterHarness()
    await harness.relister.initial_list()
    assert await harness.relister.list_and_start_version("Cluster") == "7"
    assert harness.client.lists == ["Cluster", "ResourceBinding"]


async def test_a_watch_after_a_gap_starts_after_a_successful_comparison() -> None:
    harness = RelisterHarness()
    await harness.relister.initial_list()
    await harness.relister.list_and_start_version("Cluster")
    harness.client.failures = [ApiError("cannot reach it"), ApiError("cannot reach it")]
    harness.client.version = "9"
    assert await harness.relister.list_and_start_version("Cluster") == "9"
    assert harness.client.lists == ["Cluster", "ResourceBinding", "Cluster"]
    assert [(kind, version) for kind, _, version in harness.handlers.taken][-1] == ("Cluster", "9")


async def test_every_kind_is_compared_every_period_and_a_failure_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RelisterHarness()
    harness.client.failures = [ApiError("cannot reach it")]
    await harness.run_until(lambda: len(harness.client.lists) >= 3)
    assert harness.client.lists[:3] == ["ResourceBinding", "Cluster", "ResourceBinding"]
    assert harness.pauses[:2] == [3600, 3600]
    assert [record.message for record in caplog.records] == ["Cannot compare the cache with a list"]


async def test_no_failure_of_any_kind_ends_the_comparisons(caplog: pytest.LogCaptureFixture) -> None:
    harness = RelisterHarness()
    harness.client.failures = [ValueError("nonsense"), TypeError("more of it")]
    await harness.run_until(lambda: len(harness.client.lists) >= 2)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


async def test_a_lasting_error_is_logged_again_every_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RelisterHarness()
    harness.client.failures = [ApiError("cannot reach it")] * 100
    await harness.relister.list_and_start_version("Cluster")
    logged = [record for record in caplog.records if record.__dict__["error"] == "cannot reach it"]
    assert 60 <= sum(harness.pauses) / len(logged) <= 75


@pytest.mark.parametrize("known_from", ["a list", "objects"])
async def test_an_older_list_replaces_the_cache_when_another_one_confirms_it(
    known_from: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness = RelisterHarness()
    if known_from == "a list":
        harness.client.version = "1000"
        await harness.relister.initial_list()
    else:
        harness.handlers.newest = dict.fromkeys(harness.handlers.newest, 1000)
    harness.client.version = "800"
    harness.client.lists.clear()
    harness.handlers.taken.clear()
    await harness.run_until(lambda: len(harness.replaced) == 2)
    assert harness.client.lists[:2] == ["Cluster", "Cluster"]
    assert harness.handlers.forgotten[:1] == ["Cluster"]
    assert harness.handlers.taken[0] == ("Cluster", [{"page": 1}, {"page": 2}], "800")
    assert harness.handlers.rollbacks[0] == ("Cluster", 0)
    assert "A list of version 800 is older than 1000" in caplog.records[0].message
    # The watch has to start at the version of the list that replaced the cache.
    assert await harness.relister.list_and_start_version("Cluster") == "800"


async def test_an_unconfirmed_older_list_replaces_nothing() -> None:
    harness = RelisterHarness()
    harness.handlers.newest["Cluster"] = 1000
    harness.client.versions, harness.client.version = ["800"], "1001"
    assert await harness.relister.list_and_start_version("Cluster") == "1001"
    assert [version for _, _, version in harness.handlers.taken] == ["1001"]
    assert (harness.handlers.forgotten, harness.handlers.rollbacks, harness.replaced) == ([], [], [])


async def test_after_a_replacement_growing_versions_below_the_old_ones_need_no_confirmation() -> None:
    harness = RelisterHarness()
    harness.handlers.newest["Cluster"] = 1000
    assert await harness.relister.list_and_start_version("Cluster") == "7"
    harness.client.version = "8"
    assert await harness.relister.list_and_start_version("Cluster") == "8"
    assert harness.handlers.forgotten == ["Cluster"]
    assert harness.client.lists == ["Cluster"] * 3


async def test_older_objects_in_a_newer_list_enqueue_all_bindings() -> None:
    """etcd may be restored with a revision that is far ahead; objects still have their old versions."""
    harness = RelisterHarness()
    harness.handlers.older = 3
    await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.rollbacks == [("Cluster", 3)]
    assert harness.handlers.forgotten == []


async def test_a_requested_comparison_runs_at_once_and_further_ones_wait_longer() -> None:
    harness = RelisterHarness()
    harness.period.clear()
    running = asyncio.create_task(harness.relister.run(harness.replaced.append))
    for count in range(1, len(_REQUEST_PAUSES) + 2):
        harness.relister.relist_soon()
        async with asyncio.timeout(5):
            while len(harness.client.lists) < 2 * count or len(harness.pauses) < 2 * count:
                await asyncio.sleep(0)
    running.cancel()
    pauses = [pause for pause in harness.pauses if pause != 3600]
    assert pauses == [*_REQUEST_PAUSES, _REQUEST_PAUSES[-1]]
    assert harness.client.lists == ["Cluster", "ResourceBinding"] * len(pauses)


async def test_a_comparison_may_be_requested_for_later() -> None:
    harness = RelisterHarness()
    harness.period.clear()
    harness.requests.after(0.02, ["Cluster"])
    await asyncio.sleep(0)
    assert not harness.requests._requested.is_set()
    await harness.run_until(lambda: bool(harness.client.lists))
    assert harness.client.lists == ["Cluster"]


async def test_a_requested_comparison_is_repeated_until_it_succeeds() -> None:
    harness = RelisterHarness()
    harness.period.clear()
    harness.client.failures = [ApiError("cannot reach it")] * 3
    harness.relister.relist_soon()
    await harness.run_until(lambda: "ResourceBinding" in harness.client.lists)
    assert {*harness.handlers.by_content} == {"Cluster", "ResourceBinding"}


async def test_a_watch_that_finds_its_kind_restored_requests_comparisons_of_the_others() -> None:
    harness = RelisterHarness()
    harness.period.clear()
    harness.handlers.newest = dict.fromkeys(harness.handlers.newest, 1000)
    await harness.relister.list_and_start_version("Cluster")
    await harness.run_until(lambda: "ResourceBinding" in harness.replaced)


@pytest.mark.parametrize(("watched", "ahead"), [("8", True), ("7", False), ("6", False)])
async def test_a_watch_starts_from_scratch_when_its_version_is_ahead_of_a_list(
    watched: str, ahead: bool
) -> None:
    harness = RelisterHarness()
    harness.client.failures = [ApiError("cannot reach it")]
    assert await harness.relister.must_relist("Cluster", watched) is ahead
    assert harness.client.lists == []
    for _ in range(2):
        await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.by_content == ["Cluster"], "until a list is complete"


@pytest.mark.parametrize(("watched", "compared"), [("7", []), ("8", ["Cluster"])])
async def test_if_the_api_server_responds_at_once_only_a_version_ahead_lets_contents_be_compared(
    watched: str, compared: list[str]
) -> None:
    harness = RelisterHarness()
    assert await harness.relister.must_relist("Cluster", watched) is bool(compared)
    await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.by_content == compared


async def test_an_invalid_version_of_a_list_is_read_again() -> None:
    harness = RelisterHarness()
    harness.client.versions = ["", "soon", "9"]
    assert await harness.relister.must_relist("Cluster", "8") is False
    assert harness.client.versions == []


@pytest.mark.parametrize(("failures", "relisted"), [(4, False), (5, True)])
async def test_a_watch_starts_from_scratch_after_ten_seconds_without_an_api_server(
    failures: int, relisted: bool
) -> None:
    harness = RelisterHarness()
    harness.client.failures = [ApiError("cannot reach it")] * failures
    assert await harness.relister.must_relist("Cluster", "7") is relisted
    await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.by_content == ["Cluster"]


async def test_a_cluster_that_a_list_lacks_stays_if_it_can_be_read() -> None:
    """It also replaces a deletion before this list, which was of an earlier cluster, or of a lost storage."""
    harness = RelisterHarness()
    harness.handlers.unlisted = ["m1"]
    harness.client.clusters = {"m1": {"name": "m1"}}
    async with harness.reading():
        await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.found == [({"name": "m1"}, 7)]
    assert harness.handlers.kept == ["m1"]


async def test_a_cluster_that_becomes_known_while_others_are_read_stays() -> None:
    """A binding that has it may appear between the list and its end."""
    harness = RelisterHarness()
    harness.handlers.unlisted = ["m1"]
    harness.client.clusters = {"m1": None}
    harness.client.on_read = lambda: harness.handlers.unlisted.append("m2")
    async with harness.reading():
        await harness.relister.list_and_start_version("Cluster")
    assert harness.handlers.kept == ["m2"]


async def test_a_cluster_that_a_list_lacks_is_gone_if_the_api_server_reports_so() -> None:
    harness = RelisterHarness()
    harness.handlers.unlisted = ["m1"]
    harness.client.clusters = {"m1": None}
    async with harness.reading():
        await harness.relister.list_and_start_version("Cluster")
    assert (harness.client.read, harness.handlers.kept) == (["m1"], [])


async def test_a_cluster_that_a_list_lacks_stays_until_it_can_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RelisterHarness()
    harness.handlers.unlisted = ["m1"]
    harness.client.clusters = {"m1": ApiError("forbidden", code=403)}
    async with harness.reading():
        await harness.relister.list_and_start_version("Cluster")
        assert (harness.handlers.kept, harness.handlers.absent) == (["m1"], [])
        await harness.until(lambda: bool(harness.handlers.absent))
    assert harness.handlers.absent == [("m1", 7)]
    assert "Lists lack Clusters that cannot be read" in caplog.text


async def test_the_initial_list_reads_the_clusters_of_bindings_that_it_lacks() -> None:
    harness = RelisterHarness()
    harness.handlers.unknown = ["m1", "m2"]
    harness.client.clusters = {"m1": {"name": "m1"}, "m2": None}
    async with harness.reading():
        await harness.relister.initial_list()
    assert harness.client.read == ["m1", "m2"]
    assert harness.handlers.found == [({"name": "m1"}, 7)]
    assert harness.handlers.absent == [("m2", 7)]


@pytest.mark.parametrize("answer", [ApiError("no response"), ApiError("forbidden", code=403), None])
async def test_the_initial_list_waits_for_no_single_cluster(answer: ApiError | None) -> None:
    """None: the API server does not answer."""
    harness = RelisterHarness()
    harness.handlers.unknown = ["m1", "m2"]
    harness.client.clusters = {"m1": answer or asyncio.Event(), "m2": None}
    async with harness.reading():
        await harness.relister.initial_list()
    assert harness.now <= SOON_SECONDS + 1.0, "each sleep of the harness adds to its time"
    assert harness.handlers.absent == [("m2", 7)]
