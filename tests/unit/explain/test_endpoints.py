"""The endpoints: what they return, and which parameters they refuse."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest, HttpResponse
from karmada_pyscheduler.records import endpoints as module
from karmada_pyscheduler.records.endpoints import Endpoints
from karmada_pyscheduler.records.recorder import StoredRecord
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.testing import binding, cluster
from tests.unit.explain.recorded import AT, RecorderHarness, decided


class Harness(RecorderHarness):
    """The endpoints of a recorder."""

    def __init__(self) -> None:
        super().__init__(max_bytes=8 * 2**20, max_records=1000)
        self.leader: str | None = None
        self.times: Mapping[str, tuple[float, float]] = {}
        self.routes = Endpoints(
            process="pod-a",
            started=AT,
            store=self.store,
            leader=lambda: self.leader,
            state=lambda: {"queue": {"due": 3}},
            queue_state=lambda key: {"state": "backoff" if key.name == "late" else None},
            cluster_times=lambda: self.times,
        ).routes()

    async def get(self, path: str, *, query: Mapping[str, str] | None = None, **names: str) -> dict[str, Any]:
        response = await self.routes[path](HttpRequest(names, query or {}))
        found: dict[str, Any] = json.loads(await _body(response)) | {"status": response.status}
        return found

    async def list_seqs(self, **query: str) -> list[int]:
        return [each["seq"] for each in (await self.get("/v1/decisions", query=query))["items"]]


async def _body(response: HttpResponse | Document) -> bytes:
    if isinstance(response, Document):
        return response.body
    return b"".join([part async for part in response.body])


async def test_records_are_listed_after_a_number() -> None:
    harness = Harness()
    for number in range(1, 6):
        harness.decide(f"w{number}")
    harness.make()
    assert await harness.list_seqs() == [1, 2, 3, 4, 5]
    assert await harness.list_seqs(limit="2") == [4, 5]
    assert await harness.list_seqs(since="1", limit="2") == [2, 3]
    found = await harness.get("/v1/decisions", query={"since": "1", "limit": "2"})
    assert (found["next"], found["last"], found["process"]) == (3, 5, "pod-a")
    at_end = await harness.get("/v1/decisions", query={"since": "5"})
    assert (at_end["items"], at_end["next"]) == ([], 5)


async def test_many_records_are_returned_in_parts() -> None:
    harness = Harness()
    for number in range(500):
        key = BindingKey("ResourceBinding", "default", f"w{number}")
        harness.store.put(
            key, StoredRecord(number + 1, b'{"seq":%d,"x":"%b"' % (number + 1, b"y" * 900), b"")
        )
    response = await harness.routes["/v1/decisions"](HttpRequest({}, {"limit": "500"}))
    assert isinstance(response, HttpResponse)
    parts = [part async for part in response.body]
    assert max(map(len, parts)) < 20_000
    assert len(json.loads(b"".join(parts))["items"]) == 500


async def test_a_binding_has_its_record() -> None:
    harness = Harness()
    harness.recorder._make(decided(binding("web"), cluster("m1"), seq=7))
    found = await harness.get("/v1/decisions/{namespace}/{name}", namespace="default", name="web-deployment")
    assert (found["record"]["seq"], found["process"]) == (7, "pod-a")


async def test_a_binding_without_a_record_has_its_place_in_the_queue() -> None:
    found = await Harness().get("/v1/decisions/{namespace}/{name}", namespace="a", name="late")
    assert found["status"] == 404
    assert found["error"]["code"] == "NoRecord"
    assert found["queue"] == {"state": "backoff"}
    assert found["process"]
    cluster_wide = await Harness().get("/v1/decisions/{name}", name="x")
    assert "ClusterResourceBinding x" in cluster_wide["error"]["message"]


@pytest.mark.parametrize(
    ("path", "query", "problem"),
    [
        ("/v1/decisions", {"limit": "501"}, "limit must be a number from 1 to 500"),
        ("/v1/decisions", {"limit": "0"}, "limit must be"),
        ("/v1/decisions", {"since": "-1"}, "since must be"),
        ("/v1/decisions", {"since": "9" * 5000}, "since must be"),
        ("/v1/decisions", {"since": "²"}, "since must be"),
        ("/v1/decisions", {"namespace": "x"}, "unknown parameter 'namespace'; known: since, limit"),
        ("/v1/events", {"since": "1"}, "known: none"),
        ("/v1/state", {"clusters": "yes"}, "clusters must be true or false"),
    ],
)
async def test_wrong_parameters_are_refused_with_their_names(
    path: str, query: dict[str, str], problem: str
) -> None:
    found = await Harness().get(path, query=query)
    assert found["status"] == 400
    assert problem in found["error"]["message"]


async def test_a_process_that_does_not_lead_names_the_one_that_does() -> None:
    harness = Harness()
    harness.leader = "pod-b"
    for path in ("/v1/decisions", "/v1/decisions/{name}", "/v1/events"):
        found = await harness.get(path, name="x")
        assert found["status"] == 503
        assert (found["error"]["code"], found["error"]["leader"]) == ("NotLeading", "pod-b")
    state = await harness.get("/v1/state")
    assert (state["leading"], state["leader"], state["queue"]) == (False, "pod-b", {"due": 3})


async def test_the_state_has_the_times_of_clusters_on_request() -> None:
    harness = Harness()
    harness.times = {f"m{number}": (AT, AT + number) for number in range(1200)}
    assert "clusterChanges" not in await harness.get("/v1/state")
    found = await harness.get("/v1/state", query={"clusters": "true"})
    assert len(found["clusterChanges"]) == 1200
    assert found["clusterChanges"]["m1"] == {
        "spec": "2026-11-18T11:06:40.000Z",
        "summary": "2026-11-18T11:06:41.000Z",
    }
    harness.times = {}
    assert "clusterChanges" not in await harness.get("/v1/state", query={"clusters": "true"})


async def test_events_have_no_content_and_end_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EVENT_SECONDS", 0.001)
    monkeypatch.setattr(module, "_STREAM_SECONDS", 0.04)
    harness = Harness()
    response = await harness.routes["/v1/events"](HttpRequest())
    assert isinstance(response, HttpResponse)
    assert (response.is_stream, response.content_type) == (True, "text/event-stream")
    parts = []
    async for part in response.body:
        parts.append(part)
        if len(parts) == 2:
            harness.decide("web")
            harness.make()
    assert parts[:3] == [
        b"retry: 2000\n\n",
        b"id: 0\nevent: decisions\ndata: changed\n\n",
        b"id: 1\nevent: decisions\ndata: changed\n\n",
    ]
    assert set(parts[3:]) == {b":\n\n"}
