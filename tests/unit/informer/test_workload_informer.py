"""The metadata of the workloads of bindings, from a fake API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from karmada_pyscheduler.client.metadata import KindName, NotServedError, ServedResource
from karmada_pyscheduler.informer.workloads import NotSynced, WorkloadInformer
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.testing import BindingBuilder, binding

DEPLOYMENT = KindName("apps/v1", "Deployment")
STATEFUL_SET = KindName("apps/v1", "StatefulSet")
FORBIDDEN = ApiError("deployments.apps is forbidden", code=403, reason="Forbidden")
BROKEN = ApiError("cannot reach the server")


def manifest(name: str, version: int, *, uid: str = "", **annotations: str) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": str(version),
            "annotations": annotations,
        },
    }


class FakeApiServer:
    """A fake API server; a test can replace each response by an error, or hold it."""

    def __init__(self) -> None:
        self.version = 10
        self.objects: dict[str, dict[str, Any]] = {}
        self.fails: dict[str, ApiError] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.requests: list[str] = []
        self.lists_stateful_sets = asyncio.Event()
        self.watches: list[asyncio.Queue[dict[str, Any] | ApiError | None]] = []

    def store(self, name: str, *, quietly: bool = False, uid: str = "", **annotations: str) -> None:
        self.version += 1
        event = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = manifest(name, self.version, uid=uid, **annotations)
        if not quietly:
            self.send({"type": event, "object": self.objects[name]})

    def delete(self, name: str) -> None:
        self.version += 1
        found = self.objects.pop(name)
        found["metadata"]["resourceVersion"] = str(self.version)
        self.send({"type": "DELETED", "object": found})

    def send(self, what: dict[str, Any] | ApiError | None) -> None:
        for queue in self.watches:
            queue.put_nowait(what)

    async def _request(self, verb: str) -> None:
        self.requests.append(verb)
        if verb in self.held:
            await self.held[verb].wait()
        if verb in self.fails:
            raise self.fails[verb]

    async def discover(self, kind: KindName) -> ServedResource:
        await self._request("discover")
        if kind == STATEFUL_SET:
            await self.lists_stateful_sets.wait()
        elif kind != DEPLOYMENT:
            raise NotServedError(f"the API server serves no {kind}", code=404)
        return ServedResource("apps/v1", "deployments", namespaced=True)

    async def list(self, resource: ServedResource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        await self._request("list")
        yield list(self.objects.values()), str(self.version)

    async def get(self, resource: ServedResource, namespace: str, name: str) -> Mapping[str, Any] | None:
        await self._request("get")
        return self.objects.get(name)

    async def watch(
        self, resource: ServedResource, version: str, accepted: Callable[[], None]
    ) -> AsyncGenerator[dict[str, Any], None]:
        await self._request("watch")
        accepted()
        queue: asyncio.Queue[dict[str, Any] | ApiError | None] = asyncio.Queue()
        self.watches.append(queue)
        try:
            while (event := await queue.get()) is not None:
                if isinstance(event, ApiError):
                    raise event
                yield event
        finally:
            self.watches.remove(queue)


class InformerHarness:
    """An informer, its server and a clock; pauses of the informer take one millisecond."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.now = 100.0
        self.changed: list[str] = []
        self.synced: list[str] = []
        self.informer = WorkloadInformer(
            self.server,  # type: ignore[arg-type]
            is_needed=lambda binding: not binding.spec.scheduling_suspended,
            on_change=lambda key: self.changed.append(key.name.removesuffix("-deployment")),
            on_synced=lambda key: self.synced.append(key.name.removesuffix("-deployment")),
            clock=lambda: self.now,
            sleep=self._sleep,
            patience=5.0,
        )
        self.paused: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.paused.append(seconds)
        await asyncio.sleep(0.001)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.001)

    async def follow(self, found: list[Binding]) -> None:
        self.informer.follow_all(found)
        await self.until(lambda: self.server.watches)

    async def known(self, found: Binding) -> Workload:
        await self.until(lambda: isinstance(self.informer.look_up(found), WorkloadAnswer))
        answer = self.informer.look_up(found)
        assert isinstance(answer, WorkloadAnswer)
        assert answer.workload is not None, answer.problem
        return answer.workload

    async def problem(self, found: Binding) -> str:
        await self.until(lambda: isinstance(self.informer.look_up(found), WorkloadAnswer))
        answer = self.informer.look_up(found)
        assert isinstance(answer, WorkloadAnswer)
        assert answer.workload is None
        return answer.problem


@asynccontextmanager
async def running_informer() -> AsyncIterator[InformerHarness]:
    made = InformerHarness()
    try:
        yield made
    finally:
        made.informer.close()


def of(name: str, *, uid: str = "") -> Binding:
    return builder(name, uid=uid).build()


def builder(name: str, *, uid: str = "") -> BindingBuilder:
    return binding(name).uid(uid or f"uid-of-{name}")


async def test_the_workload_of_a_binding_is_known_after_the_list_of_its_kind() -> None:
    async with running_informer() as harness:
        harness.server.store("web", type="space")
        web = of("web")
        assert isinstance(harness.informer.look_up(web), NotSynced)
        await harness.until(lambda: harness.synced == ["web"])
        assert (await harness.known(web)).annotations == {"type": "space"}
        assert harness.server.requests == ["discover", "list", "watch"]
        assert harness.changed == []


async def test_nothing_is_requested_without_a_binding() -> None:
    async with running_informer() as harness:
        harness.informer.follow_all([])
        harness.informer.on_binding_change(of("x"), None)
        await asyncio.sleep(0.01)
        assert (harness.server.requests, harness.informer.kinds, len(harness.informer)) == ([], [], 0)


async def test_the_watch_of_a_kind_ends_with_its_last_binding_and_all_end_when_no_plugin_needs_them() -> None:
    async with running_informer() as harness:
        web, db = of("web"), of("db")
        harness.server.store("web")
        harness.server.store("db")
        harness.informer.follow_all([web, db])
        await harness.until(lambda: len(harness.server.watches) == 1)
        harness.informer.on_binding_change(web, None)
        assert (harness.informer.kinds, len(harness.informer)) == ([DEPLOYMENT], 1)
        harness.informer.on_binding_change(db, builder("db").suspended().build())
        await harness.until(lambda: not harness.server.watches)
        assert (harness.informer.kinds, len(harness.informer)) == ([], 0)
        harness.informer.follow_all([web])
        await harness.until(lambda: len(harness.server.watches) == 1)
        harness.informer.follow_all([])
        await harness.until(lambda: not harness.server.watches)


async def test_changed_metadata_enqueues_the_bindings_that_name_the_workload_and_no_others() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        harness.server.store("db")
        await harness.follow([of("web"), of("db")])
        harness.server.store("web", type="space")
        await harness.until(lambda: harness.changed == ["web"])
        harness.server.store("web", type="space")  # only another field than metadata has changed
        harness.server.store("db")
        harness.server.store("db", last="one")
        await harness.until(lambda: "db" in harness.changed)
        assert harness.changed == ["web", "db"]


async def test_a_workload_that_the_watch_has_not_delivered_yet_is_read_singly() -> None:
    async with running_informer() as harness:
        await harness.follow([of("other")])
        harness.server.store("web", quietly=True, type="space")
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        assert (await harness.known(of("web"))).annotations == {"type": "space"}
        assert harness.server.requests.count("get") == 1
        assert harness.synced == ["web"]


async def test_a_workload_that_was_just_delivered_is_not_read_singly() -> None:
    async with running_informer() as harness:
        await harness.follow([of("other")])
        harness.server.store("web")
        await harness.until(lambda: len(harness.informer) == 1)
        assert isinstance(harness.informer.look_up(of("web")), WorkloadAnswer)
        assert "get" not in harness.server.requests


async def test_thousands_of_unrelated_workloads_are_not_kept() -> None:
    async with running_informer() as harness:
        for number in range(20_000):
            harness.server.store(f"other{number}", quietly=True)
        harness.server.store("web")
        await harness.follow([of("web")])
        for number in range(2_000):
            harness.server.store(f"another{number}")
        await harness.until(harness.server.watches[0].empty)
        assert len(harness.informer) == 1 + 1000


async def test_a_missing_workload_is_reported_and_enqueues_its_binding_when_it_is_created() -> None:
    async with running_informer() as harness:
        harness.informer.follow_all([of("web")])
        assert await harness.problem(of("web")) == "Deployment default/web does not exist"
        harness.server.store("web")
        await harness.until(lambda: harness.changed == ["web"])
        await harness.known(of("web"))


async def test_a_deleted_workload_is_reported_and_enqueues_nothing() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        await harness.follow([of("web")])
        harness.server.delete("web")
        await harness.until(harness.server.watches[0].empty)
        assert await harness.problem(of("web")) == "Deployment default/web was deleted"
        assert harness.changed == []


async def test_a_workload_that_was_created_again_is_reported_until_the_binding_names_it() -> None:
    async with running_informer() as harness:
        harness.server.store("web", uid="new")
        harness.informer.follow_all([of("web", uid="old")])
        assert "has the uid new, the binding names old" in await harness.problem(of("web", uid="old"))
        harness.informer.on_binding_change(of("web"), of("web", uid="new"))
        assert (await harness.known(of("web", uid="new"))).uid == "new"


async def test_a_binding_with_the_new_uid_does_not_get_the_old_metadata() -> None:
    async with running_informer() as harness:
        harness.server.store("web", uid="old", type="space")
        harness.informer.follow_all([of("web", uid="old")])
        await harness.known(of("web", uid="old"))
        harness.server.store("web", quietly=True, uid="new", type="ground")
        assert isinstance(harness.informer.look_up(of("web", uid="new")), NotSynced)
        assert (await harness.known(of("web", uid="new"))).annotations == {"type": "ground"}


@pytest.mark.parametrize("verb", ["discover", "list", "watch"])
async def test_a_forbidden_kind_is_logged_once_and_requested_again(
    verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_informer() as harness:
        harness.server.fails[verb] = FORBIDDEN
        harness.informer.follow_all([of("web")])
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        await harness.until(lambda: harness.server.requests.count(verb) > 9)
        problem = await harness.problem(of("web"))
        if verb != "watch":  # after the list it is missing
            assert "workloadMetadata of the chart's side=karmada grants" in problem
            assert "deployments.apps is forbidden" in problem
        assert harness.informer.unavailable() == [DEPLOYMENT]
        warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(warnings) == 1
        assert harness.paused[:7] == [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0]
        harness.server.store("web", quietly=True)
        del harness.server.fails[verb]
        await harness.until(lambda: harness.server.watches)
        await harness.known(of("web"))
        assert harness.informer.unavailable() == []
        assert harness.changed == ["web"]


async def test_a_forbidden_single_read_is_reported_at_once() -> None:
    async with running_informer() as harness:
        harness.server.fails["get"] = FORBIDDEN
        await harness.follow([of("other")])
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        await harness.until(lambda: harness.synced == ["web"])
        assert "may not get deployments.apps" in await harness.problem(of("web"))
        harness.server.store("web")
        await harness.until(lambda: harness.changed == ["web"])


async def test_a_kind_that_is_not_served_is_reported() -> None:
    async with running_informer() as harness:
        web = binding("web").resource("example.com/v1", "Foo", uid="u").build()
        assert await harness.problem(web) == "the API server serves no Foo (example.com/v1)"


@pytest.mark.parametrize("verb", ["discover", "list"])
async def test_a_hanging_list_delays_bindings_no_longer_than_the_limit(verb: str) -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        harness.server.held[verb] = asyncio.Event()
        found = harness.informer.look_up(of("web"))
        assert isinstance(found, NotSynced)
        assert 5 <= found.retry_after < 5.1
        harness.now += 5.1
        assert (
            await harness.problem(of("web")) == "the metadata of Deployment (apps/v1) was not read within 5s"
        )
        late = of("late")
        assert isinstance(harness.informer.look_up(late), WorkloadAnswer)  # the wait for lists is over
        harness.server.held[verb].set()
        await harness.until(lambda: harness.changed)
        assert sorted(harness.changed) == ["late", "web"]
        await harness.known(of("web"))


async def test_a_failing_read_is_repeated_and_delays_bindings_no_longer_than_the_limit() -> None:
    async with running_informer() as harness:
        await harness.follow([of("other")])
        harness.server.fails["get"] = BROKEN
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        await harness.until(lambda: harness.server.requests.count("get") > 1)
        harness.now += 5.1
        assert (await harness.problem(of("web"))).endswith("was not read within 5s: cannot reach the server")
        harness.server.store("web", quietly=True)
        del harness.server.fails["get"]
        await harness.until(lambda: harness.changed == ["web"])
        await harness.known(of("web"))


@pytest.mark.parametrize("end", [ApiError("too old", code=410), BROKEN, None])
async def test_after_a_gap_the_kind_is_listed_again_and_missed_changes_enqueue(end: ApiError | None) -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        await harness.follow([of("web")])
        harness.server.store("web", quietly=True, type="space")
        harness.server.send(end)
        await harness.until(lambda: harness.changed == ["web"])
        assert harness.server.requests.count("list") == 2


async def test_a_watch_with_events_continues_where_it_ended() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        await harness.follow([of("web")])
        harness.server.store("web", type="space")
        harness.server.send(None)
        await harness.until(lambda: harness.server.requests.count("watch") == 2)
        assert harness.server.requests.count("list") == 1


async def test_metadata_stays_stored_while_the_api_server_is_down() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        await harness.follow([of("web")])
        harness.server.fails = dict.fromkeys(("list", "watch", "get", "discover"), BROKEN)
        harness.server.send(BROKEN)
        await harness.until(lambda: harness.server.requests.count("list") > 3)
        await harness.known(of("web"))
        assert harness.changed == []


async def test_unreadable_metadata_is_logged_and_the_rest_is_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        harness.server.store("odd")
        harness.server.objects["odd"]["metadata"]["labels"] = {"a": 1}
        harness.informer.follow_all([of("web"), of("odd")])
        await harness.known(of("web"))
        assert isinstance(harness.informer.look_up(of("odd")), NotSynced)
        harness.now += 5.1
        await harness.until(lambda: harness.server.requests.count("get") > 1)
        assert (await harness.problem(of("odd"))).endswith(
            "was not read within 5s: its metadata cannot be read"
        )
        warnings = {getattr(each, "error", "") for each in caplog.records}
        assert "metadata.labels.a: expected a string, got int 1" in warnings


async def test_the_end_of_a_watch_that_lasted_long_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        harness.informer.follow_all([of("web")])
        for lists in (2, 3, 4):
            await harness.until(lambda: harness.server.watches)
            harness.now += 1000
            harness.server.send(BROKEN)
            await harness.until(lambda: harness.server.requests.count("list") == lists)  # noqa: B023
        assert caplog.records == []


# --- the workloads of other bindings ---


async def test_the_workload_of_a_followed_binding_is_stored_and_no_other_is() -> None:
    async with running_informer() as harness:
        harness.server.store("web", type="space")
        harness.server.store("db")
        harness.informer.follow_all([of("web"), builder("db").suspended().build()])
        assert harness.informer.stored(of("web").key) is None
        await harness.known(of("web"))
        found = harness.informer.stored(of("web").key)
        assert found is not None
        assert found.annotations == {"type": "space"}
        assert harness.informer.stored(of("db").key) is None
        harness.server.delete("web")
        await harness.until(lambda: harness.informer.stored(of("web").key) is None)


async def test_no_binding_is_decided_before_the_first_lists_of_all_kinds_are_complete() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        db = builder("db").resource("apps/v1", "StatefulSet", uid="uid-of-db").build()
        harness.informer.follow_all([of("web"), db])
        await harness.until(lambda: harness.informer.stored(of("web").key))
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        harness.server.lists_stateful_sets.set()
        await harness.until(lambda: harness.synced[-1:] == ["web"])
        await harness.known(of("web"))


async def test_first_lists_that_hang_delay_bindings_for_five_seconds_and_new_kinds_do_not() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        db = builder("db").resource("apps/v1", "StatefulSet", uid="uid-of-db").build()
        harness.informer.follow_all([of("web"), db])
        await harness.until(lambda: harness.informer.stored(of("web").key))
        waits = harness.informer.look_up(of("web"))
        assert isinstance(waits, NotSynced)
        assert waits.retry_after == pytest.approx(5.01)
        harness.now += 5.01
        await harness.known(of("web"))
    async with running_informer() as harness:
        harness.server.store("web")
        harness.informer.follow_all([of("web")])
        await harness.known(of("web"))
        harness.informer.on_binding_change(None, db)
        assert isinstance(harness.informer.look_up(db), NotSynced)
        assert isinstance(harness.informer.look_up(of("web")), WorkloadAnswer)


async def test_kinds_that_cannot_be_listed_delay_no_binding() -> None:
    async with running_informer() as harness:
        harness.server.store("web")
        foo = builder("foo").resource("example.com/v1", "Foo").build()
        harness.informer.follow_all([of("web"), foo])
        await harness.known(of("web"))


async def test_a_followed_workload_that_the_watch_has_not_delivered_is_read_before_the_decision() -> None:
    async with running_informer() as harness:
        await harness.follow([of("other")])
        harness.server.store("web", quietly=True)
        harness.informer.on_binding_change(None, of("web"))
        await harness.until(lambda: harness.informer.stored(of("web").key))


async def test_the_workloads_of_a_profile_that_needs_them_from_now_on_are_listed() -> None:
    async with running_informer() as harness:
        for name in ("web", "db"):
            harness.server.store(name)
        for number in range(1001):  # more than are stored without a binding
            harness.server.store(f"other{number}")
        harness.informer.follow_all([of("web")])
        await harness.known(of("web"))
        harness.informer.follow_all([of("web"), of("db")])
        assert isinstance(harness.informer.look_up(of("web")), NotSynced)
        await harness.known(of("web"))
        assert harness.informer.stored(of("db").key)
        assert "get" not in harness.server.requests
