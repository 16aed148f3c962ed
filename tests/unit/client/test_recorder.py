"""Events: their fields, their counting, and their wait for an empty queue."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karmada_pyscheduler.client import recorder as module
from karmada_pyscheduler.client.recorder import NORMAL, EventRecorder
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api_error import ApiError
from tests import manifests

START = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)


class RecorderHarness:
    """A recorder, an API server and the time of day."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.failures: list[Exception] = []
        self.results: list[str] = []
        self.seconds = 0
        self.leads = True
        self.queue_is_empty = asyncio.Event()
        self.queue_is_empty.set()
        self.recorder = EventRecorder(
            self,  # type: ignore[arg-type]
            now=lambda: START + timedelta(seconds=self.seconds),
            clock=lambda: float(self.seconds),
            idle=self._idle,
            may_post=lambda: self.leads,
            on_result=self.results.append,
        )

    async def _idle(self) -> None:
        await self.queue_is_empty.wait()

    async def request(self, method: str, path: str, *, body: Any, content_type: str = "") -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.requests.append((method, path, body))

    async def post(self, about: Binding) -> None:
        """Record an event about a binding, and post what there is."""
        self.recorder.record(about, NORMAL, "Reason", "message")
        await self.post_all()

    async def post_all(self) -> None:
        async with self.recorder.posting(flush_seconds=5):
            pass


@pytest.fixture
def binding() -> Binding:
    return Binding.from_manifest(manifests.binding(version=5))


async def test_an_event_is_posted_about_the_binding_and_about_its_template(binding: Binding) -> None:
    harness = RecorderHarness()
    await harness.post(binding)
    (method, path, body), (_, _, template) = harness.requests
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
    assert harness.results == ["posted", "posted"]


async def test_an_event_is_one_line_of_the_log(binding: Binding, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    RecorderHarness().recorder.record(binding, NORMAL, "Reason", "message")
    [record] = caplog.records
    fields = ("object", "kind", "type", "reason", "note")
    assert [getattr(record, field) for field in fields] == [
        "demo/web-deployment",
        "ResourceBinding",
        NORMAL,
        "Reason",
        "message",
    ]


async def test_an_event_about_a_cluster_scoped_binding_goes_to_the_default_namespace() -> None:
    manifest = manifests.binding()
    manifest["kind"] = "ClusterResourceBinding"
    manifest["spec"]["resource"] = {"apiVersion": "v1", "kind": "Namespace", "name": "web"}
    harness = RecorderHarness()
    harness.recorder.record(Binding.from_manifest(manifest), NORMAL, "Reason", "message")
    await harness.post_all()
    assert {path for _, path, _ in harness.requests} == {"/api/v1/namespaces/default/events"}


async def test_an_invalid_name_of_an_event_is_replaced(binding: Binding) -> None:
    manifest = manifests.binding("system:web")
    harness = RecorderHarness()
    harness.recorder.record(Binding.from_manifest(manifest), NORMAL, "Reason", "message")
    await harness.post_all()
    assert ":" not in harness.requests[0][2]["metadata"]["name"]


async def test_an_equal_event_increases_the_count_of_the_first(binding: Binding) -> None:
    harness = RecorderHarness()
    harness.recorder.record(binding, NORMAL, "Reason", "message")
    harness.seconds = 60
    newer = Binding.from_manifest(manifests.binding(version=6))
    harness.recorder.record(newer, NORMAL, "Reason", "message")
    await harness.post_all()
    name = harness.requests[0][2]["metadata"]["name"]
    assert harness.requests[2] == (
        "PATCH",
        f"/api/v1/namespaces/demo/events/{name}",
        {"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z", "message": "message"},
    )


async def test_an_event_that_expired_on_the_server_is_posted_again(binding: Binding) -> None:
    harness = RecorderHarness()
    await harness.post(binding)
    harness.requests.clear()
    harness.failures = [ApiError("gone", code=404, reason="NotFound")]
    await harness.post(binding)
    assert harness.requests[0][0] == "POST"


async def test_events_wait_until_the_queue_is_empty(binding: Binding) -> None:
    harness = RecorderHarness()
    harness.queue_is_empty.clear()
    harness.recorder.record(binding, NORMAL, "Reason", "message")
    async with harness.recorder.posting(flush_seconds=5):
        for _ in range(20):
            await asyncio.sleep(0)
        assert harness.requests == []
        harness.queue_is_empty.set()
    assert len(harness.requests) == 2


async def test_a_process_that_does_not_lead_any_more_posts_nothing(binding: Binding) -> None:
    harness = RecorderHarness()
    harness.recorder.record(binding, NORMAL, "Reason", "message")
    harness.leads = False
    await harness.post_all()
    assert harness.requests == []
    assert harness.results == ["dropped", "dropped"]


async def test_a_process_that_does_not_lead_any_more_does_not_retry(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    harness = RecorderHarness()

    harness.failures = [ApiError("cannot reach it")]
    harness.recorder.record(binding, NORMAL, "Reason", "message")
    post = harness.request

    async def request(*args: Any, **rest: Any) -> None:
        harness.leads = False
        await post(*args, **rest)

    monkeypatch.setattr(harness, "request", request)
    await harness.post_all()
    assert harness.requests == []
    assert harness.results == ["dropped", "dropped"]


async def test_events_that_a_full_queue_drops_are_counted(
    binding: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUE_SIZE", 3)
    harness = RecorderHarness()
    for _ in range(2):
        harness.recorder.record(binding, NORMAL, "Reason", "message")
    assert harness.results == ["dropped"]


@pytest.mark.parametrize(
    ("failure", "first"),
    [
        pytest.param(ApiError("namespace is terminating", code=403), "failed", id="refused"),
        pytest.param(TypeError("unexpected"), "failed", id="invalid response"),
        pytest.param(ApiError("cannot reach it"), "posted", id="no response, sent again"),
    ],
)
async def test_a_failure_loses_one_event_only_and_none_if_there_was_no_response(
    failure: Exception,
    first: str,
    binding: Binding,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    harness = RecorderHarness()
    harness.failures = [failure]
    await harness.post(binding)
    assert harness.results == [first, "posted"]
    assert ("unexpected" in caplog.text) == isinstance(failure, TypeError)


async def test_remaining_events_are_posted_after_a_cancellation(binding: Binding) -> None:
    harness = RecorderHarness()
    harness.queue_is_empty.clear()

    async def work() -> None:
        async with harness.recorder.posting(flush_seconds=5):
            try:
                await asyncio.Event().wait()
            finally:
                harness.recorder.record(binding, NORMAL, "Later", "recorded while it stops")
                harness.queue_is_empty.set()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    harness.recorder.record(binding, NORMAL, "Reason", "message")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert harness.results == ["posted"] * 4


async def test_events_that_cannot_be_posted_do_not_delay_a_stop(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    harness = RecorderHarness()
    harness.queue_is_empty.clear()
    async with harness.recorder.posting(flush_seconds=0.01):
        harness.recorder.record(binding, NORMAL, "Reason", "message")
    assert harness.requests == []
    assert "Events were not posted before the stop" in caplog.text


async def test_a_long_message_is_stored_only_as_far_as_it_is_posted(
    binding: Binding, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    harness = RecorderHarness()
    message = ", ".join(f"member-{number}:1" for number in range(5000))
    harness.recorder.record(binding, NORMAL, "Reason", message)
    assert {len(event.message) for event in harness.recorder._queue._queue} == {1024}  # type: ignore[attr-defined]
    assert {len(record.note) for record in caplog.records} == {1024}  # type: ignore[attr-defined]
    await harness.post_all()
    assert [body["message"] for _, _, body in harness.requests] == [message[:1024]] * 2
