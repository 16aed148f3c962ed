"""Errors of extenders: timeouts, connections, statuses, invalid responses."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.extenders import http_extender
from karmada_pyscheduler.extenders.http_extender import HttpExtender
from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.framework.runtime.extenders import ExtenderError
from tests.connections import listening
from tests.unit.extenders.conftest import ExtenderFactory
from tests.unit.extenders.fake import FakeExtender, Scene

VERBS: dict[str, Callable[[HttpExtender, Scene], Awaitable[object]]] = {
    "filter": lambda extender, scene: extender.filter(scene.cycle, scene.clusters),
    "prioritize": lambda extender, scene: extender.prioritize(scene.cycle, scene.clusters),
    "bind": lambda extender, scene: extender.bind(scene.cycle, [TargetCluster("m1", 1)]),
}


@pytest.fixture
def scene() -> Scene:
    return Scene("m1", "m2")


async def failure(verb: str, extender: HttpExtender, scene: Scene) -> str:
    with pytest.raises(ExtenderError) as caught:
        await VERBS[verb](extender, scene)
    return str(caught.value)


# --- timeouts and connections ---


@pytest.mark.parametrize("verb", VERBS)
async def test_a_response_that_is_late_is_an_error(
    verb: str, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.hold.clear()
    text = await failure(verb, make(fake.url, scene.manifests, http_timeout=0.05), scene)
    assert text == f"failed {verb} with extender at URL {fake.url}/{verb}, no answer within 0.05 s"
    assert make.seen == [(fake.url, verb, "timeout")]


async def test_a_response_that_stops_half_way_is_an_error(make: ExtenderFactory, scene: Scene) -> None:
    begin = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    async with speaking(begin, hang_up=False) as url:
        text = await failure("filter", make(url, scene.manifests, http_timeout=0.05), scene)
    assert text == f"failed filter with extender at URL {url}/filter, no answer within 0.05 s"


async def test_a_cancelled_request_closes_its_connection(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.hold.clear()
    extender = make(fake.url, scene.manifests)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(extender.filter(scene.cycle, scene.clusters), 0.05)
    assert make.seen == [(fake.url, "filter", "cancelled")]
    fake.hold.set()
    fake.answers("filter", {"ClusterNames": ["m1"]})
    assert (await extender.filter(scene.cycle, scene.clusters)).kept == {"m1"}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_refused_connection_is_an_error(verb: str, make: ExtenderFactory, scene: Scene) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        text = await failure(verb, make(f"http://127.0.0.1:{port}", scene.manifests), scene)
    assert text.startswith(f"failed {verb} with extender at URL http://127.0.0.1:{port}/{verb}, ")
    assert "127.0.0.1" in text.partition(", ")[2]
    assert "ssl:" not in text
    assert [outcome for _, _, outcome in make.seen] == ["connection"]


@pytest.mark.parametrize("verb", VERBS)
async def test_status_500_is_an_error(
    verb: str, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.replies[verb] = lambda _: web.Response(status=500, text="Traceback:\n\n  nothing works")
    extender = make(fake.url, scene.manifests)
    expected = f"failed {verb} with extender at URL {fake.url}/{verb}, code 500: Traceback: nothing works"
    for _ in range(5):
        assert await failure(verb, extender, scene) == expected
    assert len(fake.requests) == 5, "one request each"
    assert len(fake.peers) == 1, "and the connection is kept"


@pytest.mark.parametrize("status", [201, 204, 302, 404])
async def test_a_status_other_than_200_is_an_error(
    status: int, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.replies["filter"] = lambda _: web.Response(status=status, headers={"Location": "/elsewhere"})
    text = await failure("filter", make(fake.url, scene.manifests), scene)
    assert text == f"failed filter with extender at URL {fake.url}/filter, code {status}"
    assert len(fake.requests) == 1


@asynccontextmanager
async def speaking(words: bytes, *, hang_up: bool = True) -> AsyncIterator[str]:
    """Listen, and send the same bytes to each client, which need not be HTTP."""

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(words)
        if not hang_up:
            await asyncio.Event().wait()

    async with listening(reply) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "words",
    [
        b"", b"SSH-2.0-OpenSSH_9.2p1\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
    ids=["silence", "ssh", "bad length", "half an answer", "endless header", "not gzip", "bad chunk"],
)  # fmt: skip
async def test_a_response_that_is_not_http_is_a_connection_error(
    words: bytes, make: ExtenderFactory, scene: Scene
) -> None:
    async with speaking(words) as url:
        text = await failure("filter", make(url, scene.manifests), scene)
    assert text.startswith(f"failed filter with extender at URL {url}/filter, ")
    assert len(text) < 1000
    assert [outcome for _, _, outcome in make.seen] == ["connection"]


async def test_a_response_has_a_size_limit(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_extender, "MAX_RESPONSE_BYTES", 50_000)
    fake.answers("bind", b"[" + b"1," * 100_000 + b"1]")
    text = await failure("bind", make(fake.url, scene.manifests), scene)
    assert text == (
        f"failed bind with extender at URL {fake.url}/bind, the answer is larger than 50000 bytes"
    )  # fmt: skip


async def test_a_response_may_be_twice_as_large_as_its_request(
    fake: FakeExtender, make: ExtenderFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_extender, "MAX_RESPONSE_BYTES", 10)
    fleet = Scene(*(f"m{number}" for number in range(500)))
    fake.replies["filter"] = lambda request: {"Clusters": request["Clusters"]}
    result = await make(fake.url, fleet.manifests).filter(fleet.cycle, fleet.clusters)
    assert len(result.kept) == 500


# --- invalid responses ---


@pytest.mark.parametrize(
    ("verb", "answer", "found"),
    [
        ("filter", b"", "not JSON: "),
        ("filter", b"<html>\n <h1>Welcome to nginx!</h1>", "got '<html> <h1>Welcome to nginx!</h1>'"),
        ("filter", b'{"ClusterNames": ["m1"', "not JSON: "),
        ("filter", b'{"Error": "\xff\xfe"}', "not JSON: "),
        ("filter", b"[" * 5000, "not JSON: "),
        ("filter", ["m1"], 'expected an object, got list ["m1"]'),
        ("filter", None, "expected an object, got null"),
        ("filter", {}, "expected a list in ClusterNames, or Clusters with items; it has no keys"),
        ("filter", {"status": "ok", "nodenames": []}, "with items; its keys are status, nodenames"),
        ("filter", {"ClusterNames": None, "Clusters": None}, "; its keys are ClusterNames, Clusters"),
        ("filter", {"FailedClusters": {"m1": "full"}}, "; its keys are FailedClusters"),
        ("filter", {"ClusterNames": "m1"}, "ClusterNames: expected a list, got str 'm1'"),
        ("filter", {"ClusterNames": ["m1", 2]}, "ClusterNames[1]: expected a string, got int 2"),
        ("filter", {"Clusters": ["m1"]}, "Clusters: expected an object, got list ['m1']"),
        ("filter", {"Clusters": {"items": ["m1"]}}, "Clusters.items[0]: expected an object, got str 'm1'"),
        ("filter", {"Clusters": {"items": [{}]}}, "Clusters.items[0].metadata.name: is missing"),
        ("filter", {"failedClusters": {"m1": 7}}, "FailedClusters.m1: expected a string, got int 7"),
        ("filter", {"Error": 7}, "Error: expected a string, got int 7"),
        ("prioritize", {"m1": 7}, 'expected a list, got dict {"m1":7}'),
        (
            "prioritize",
            b'{"a":' * 300 + b"1" + b"}" * 300,
            'expected a list, got dict {"a":{"a":{"a":null}}}',
        ),
        ("filter", b"[" * 300 + b"]" * 300, "expected an object, got list [[[null]]]"),
        ("prioritize", ["m1"], "[0]: expected an object, got str 'm1'"),
        ("prioritize", [{"Score": 7}], "[0].Cluster: is missing"),
        ("prioritize", [{"Host": "m1", "Score": 11}], "[0].Score: 11 for m1 is not within 0 to 10"),
        ("prioritize", [{"Host": "m1", "Score": -1}], "[0].Score: -1 for m1 is not within 0 to 10"),
        ("prioritize", [{"Host": "m1", "Score": 7.5}], "[0].Score: expected an integer, got float 7.5"),
        ("prioritize", [{"Host": "m1", "Score": "7"}], "[0].Score: expected an integer, got str '7'"),
        ("prioritize", [{"Host": "m1", "Score": True}], "[0].Score: expected an integer, got bool True"),
        ("prioritize", [{"Host": "m1"}, {"Cluster": "m1"}], "[1]: m1 has been scored before"),
        ("bind", "done", 'expected an object, got str "done"'),
        ("bind", {"error": ["no"]}, "Error: expected a string, got list ['no']"),
    ],
)
async def test_an_invalid_response_is_an_error(
    verb: str, answer: Any, found: str, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.answers(verb, answer)
    text = await failure(verb, make(fake.url, scene.manifests), scene)
    assert text.startswith(
        f"failed {verb} with extender at URL {fake.url}/{verb}, the answer cannot be used: "
    )
    assert found in text
    assert len(text) < 600
    assert make.seen == [(fake.url, verb, "answer")]


@pytest.mark.parametrize("capable", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        {"ClusterNames": ["m1", "m9"]}, {"Clusters": {"items": [{"metadata": {"name": "m9"}}]}},
        {"clusternames": ["m9"], "Error": ""},
    ],
    ids=["names", "objects", "lower case"],
)  # fmt: skip
async def test_a_cluster_that_was_not_in_the_request_is_an_error(
    answer: Any, capable: bool, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.answers("filter", answer)
    extender = make(fake.url, scene.manifests, node_cache_capable=capable)
    assert await failure("filter", extender, scene) == (
        f'extender "{fake.url}" claims a filtered cluster "m9" which is not found in the input cluster list'
    )
    assert make.seen == [(fake.url, "filter", "answer")]


async def test_a_score_of_a_cluster_that_was_not_in_the_request_is_an_error(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.answers("prioritize", [{"Host": "m1", "Score": 1}, {"Host": "m9", "Score": 1}])
    assert await failure("prioritize", make(fake.url, scene.manifests), scene) == (
        f'extender "{fake.url}" claims a prioritized cluster "m9" which is not found in the input cluster list'
    )


@pytest.mark.parametrize("verb", ["filter", "bind"])
async def test_the_error_of_the_extender_is_reported(
    verb: str, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.answers(verb, {"error": "no licence", "ClusterNames": ["m1"]})
    text = await failure(verb, make(fake.url, scene.manifests), scene)
    assert text == f"failed {verb} with extender at URL {fake.url}/{verb}, it returned the error: no licence"
    assert make.seen == [(fake.url, verb, "error")]


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        (BindingKey("ResourceBinding", "default", "web-deployment"),
         "ResourceBinding(default/web-deployment)"),
        ("m2", "cluster m2"),
    ],
    ids=["binding", "cluster"],
)  # fmt: skip
async def test_an_object_that_was_deleted_meanwhile_is_an_error(
    gone: object, what: str, fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    scene.manifests.forgotten(gone)
    text = await failure("filter", make(fake.url, scene.manifests), scene)
    assert text == f"failed filter with extender at URL {fake.url}/filter, {what} is not known any more"
    assert fake.requests == []


async def test_a_bind_request_needs_no_manifest(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    fake.answers("bind", {})
    nothing = ManifestCache(is_needed=lambda _: False, clusters=False)
    await make(fake.url, nothing).bind(scene.cycle, [])
    assert len(fake.requests) == 1


# --- log lines ---


def _logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.__dict__["verb"], record.__dict__["error"]) for record in caplog.records]


async def test_a_failure_of_prioritize_is_logged_once_per_cause_in_five_minutes(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    extender = make(fake.url, scene.manifests)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            fake.answers("prioritize", b"nonsense")
            await failure("prioritize", extender, scene)
            fake.replies["prioritize"] = lambda _: web.Response(status=503)
            text = await failure("prioritize", extender, scene)
        assert [verb for verb, _ in _logged(caplog)] == ["prioritize"] * 2
        assert _logged(caplog)[1] == ("prioritize", text)
        make.now += 300
        await failure("prioritize", extender, scene)
        assert len(_logged(caplog)) == 3
    assert [outcome for _, _, outcome in make.seen] == ["answer", "status"] * 3 + ["status"]


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize("verb", ["filter", "bind"])
async def test_a_failure_is_raised_and_logged_if_the_extender_is_ignorable(
    verb: str,
    ignorable: bool,
    fake: FakeExtender,
    make: ExtenderFactory,
    scene: Scene,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake.answers(verb, {"Error": "no"})
    extender = make(fake.url, scene.manifests, ignorable=ignorable)
    with caplog.at_level(logging.WARNING):
        text = await failure(verb, extender, scene)
    assert _logged(caplog) == ([(verb, text)] if ignorable else [])


async def test_the_duration_of_a_request_is_observed(
    fake: FakeExtender, make: ExtenderFactory, scene: Scene
) -> None:
    def answer(_: Any) -> Any:
        make.now += 2.5
        return {"ClusterNames": []}

    fake.replies["filter"] = answer
    await make(fake.url, scene.manifests).filter(scene.cycle, scene.clusters)
    assert make.seconds == [2.5]
