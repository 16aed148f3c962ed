"""Events: their fields, their counting, and that they wait for their turn."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.client import recorder as module
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.recorder import NORMAL, EventRecorder
from tests import manifests

START = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)


class World:
    """A recorder, an API server and the time of day."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.failures: list[Exception] = []
        self.results: list[str] = []
        self.seconds = 0
        self.leads = True
        self.turn = asyncio.Event()
        self.turn.set()
        self.recorder = EventRecorder(
            self,  # type: ignore[arg-type]
            now=lambda: START + timedelta(seconds=self.seconds),
            clock=lambda: float(self.seconds),
            idle=self._idle,
            may_post=lambda: self.leads,
            on_result=self.results.append,
        )

    async def _idle(self) -> None:
        await self.turn.wait()

    async def request(self, method: str, path: str, *, body: Any, content_type: str = "") -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.requests.append((method, path, body))

    async def post_all(self) -> None:
        async with self.recorder.posting(flush_seconds=5):
            pass


@pytest.fixture
def binding() -> Binding:
    return Binding.from_manifest(manifests.binding(version=5))


async def test_an_event_is_posted_about_the_binding_and_about_its_template(binding: Binding) -> None:
    world = World()
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    (method, path, body), (_, _, template) = world.requests
    assert (method, path) == ("POST", "/api/v1/namespaces/demo/events")
    assert body["involvedObject"] == {
        "kind": "ResourceBinding",
        "apiVersion": "work.karmada.io/v1alpha2",
        "namespace": "demo",
        "name": "web-deployment",
        "uid": "uid-web-deployment",
        "resourceVersion": "5",
    }
    assert template["involvedObject"] == {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "namespace": "demo",
        "name": "web",
    }
    assert body["source"] == {"component": "ours"}
    assert body["reportingComponent"] == "ours"
    assert (body["type"], body["reason"], body["message"], body["count"]) == (NORMAL, "Reason", "message", 1)
    assert body["metadata"]["name"] == f"web-deployment.{int(START.timestamp() * 1e9):x}"
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert world.results == ["posted", "posted"]


async def test_an_event_about_something_cluster_scoped_goes_to_the_default_namespace() -> None:
    manifest = manifests.binding()
    manifest["kind"] = "ClusterResourceBinding"
    manifest["spec"]["resource"] = {"apiVersion": "v1", "kind": "Namespace", "name": "web"}
    world = World()
    world.recorder.record(Binding.from_manifest(manifest), NORMAL, "Reason", "message")
    await world.post_all()
    assert {path for _, path, _ in world.requests} == {"/api/v1/namespaces/default/events"}


async def test_a_name_that_no_event_can_have_is_replaced(binding: Binding) -> None:
    manifest = manifests.binding("system:web")
    world = World()
    world.recorder.record(Binding.from_manifest(manifest), NORMAL, "Reason", "message")
    await world.post_all()
    assert ":" not in world.requests[0][2]["metadata"]["name"]


async def test_the_same_event_again_raises_the_count_of_the_first(binding: Binding) -> None:
    world = World()
    world.recorder.record(binding, NORMAL, "Reason", "message")
    world.seconds = 60
    newer = Binding.from_manifest(manifests.binding(version=6))
    world.recorder.record(newer, NORMAL, "Reason", "message")
    await world.post_all()
    name = world.requests[0][2]["metadata"]["name"]
    assert world.requests[2] == (
        "PATCH",
        f"/api/v1/namespaces/demo/events/{name}",
        {"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z", "message": "message"},
    )


async def test_an_event_that_expired_on_the_server_is_posted_anew(binding: Binding) -> None:
    world = World()
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    world.requests.clear()
    world.failures = [ApiError("gone", code=404, reason="NotFound")]
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    assert world.requests[0][0] == "POST"


async def test_events_wait_until_there_is_a_spare_moment(binding: Binding) -> None:
    world = World()
    world.turn.clear()
    world.recorder.record(binding, NORMAL, "Reason", "message")
    async with world.recorder.posting(flush_seconds=5):
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.requests == []
        world.turn.set()
    assert len(world.requests) == 2


async def test_a_process_that_may_not_lead_any_more_posts_nothing(binding: Binding) -> None:
    world = World()
    world.recorder.record(binding, NORMAL, "Reason", "message")
    world.leads = False
    await world.post_all()
    assert world.requests == []
    assert world.results == ["dropped", "dropped"]


async def test_a_process_that_may_not_lead_any_more_does_not_try_again(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    world = World()

    world.failures = [ApiError("cannot reach it")]
    world.recorder.record(binding, NORMAL, "Reason", "message")
    post = world.request

    async def request(*args: Any, **rest: Any) -> None:
        world.leads = False
        await post(*args, **rest)

    monkeypatch.setattr(world, "request", request)
    await world.post_all()
    assert world.requests == []
    assert world.results == ["dropped", "dropped"]


async def test_what_a_full_queue_has_to_drop_is_counted(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUE_SIZE", 3)
    world = World()
    for _ in range(2):
        world.recorder.record(binding, NORMAL, "Reason", "message")
    assert world.results == ["dropped"]


async def test_an_event_that_the_server_refuses_is_given_up_and_the_next_is_posted(binding: Binding) -> None:
    world = World()
    world.failures = [ApiError("namespace is terminating", code=403)]
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    assert world.results == ["failed", "posted"]


async def test_an_event_without_an_answer_is_sent_again(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    world = World()
    world.failures = [ApiError("cannot reach it")]
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    assert world.results == ["posted", "posted"]


async def test_what_is_left_when_the_work_is_cancelled_is_posted_all_the_same(binding: Binding) -> None:
    world = World()
    world.turn.clear()

    async def work() -> None:
        async with world.recorder.posting(flush_seconds=5):
            try:
                await asyncio.Event().wait()
            finally:
                world.recorder.record(binding, NORMAL, "Later", "recorded while it stops")
                world.turn.set()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    world.recorder.record(binding, NORMAL, "Reason", "message")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert world.results == ["posted"] * 4


async def test_events_that_nobody_takes_do_not_hold_up_a_stop(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.turn.clear()
    async with world.recorder.posting(flush_seconds=0.01):
        world.recorder.record(binding, NORMAL, "Reason", "message")
    assert world.requests == []
    assert "Events were not posted before the stop" in caplog.text


async def test_an_answer_that_makes_no_sense_costs_one_event_and_no_other(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.failures = [TypeError("what is this?")]
    world.recorder.record(binding, NORMAL, "Reason", "message")
    await world.post_all()
    assert world.results == ["failed", "posted"]
    assert "what is this?" in caplog.text


async def test_of_a_message_that_names_all_clusters_nothing_keeps_more_than_is_posted(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = World()
    message = ", ".join(f"member-{number}:1" for number in range(5000))
    world.recorder.record(binding, NORMAL, "Reason", message)
    assert {len(event.message) for event in world.recorder._queue._queue} == {1024}  # type: ignore[attr-defined]
    assert {len(record.note) for record in caplog.records} == {1024}  # type: ignore[attr-defined]
    await world.post_all()
    assert [body["message"] for _, _, body in world.requests] == [message[:1024]] * 2
