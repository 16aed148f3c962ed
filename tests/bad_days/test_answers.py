"""Invalid responses of the API server, or of a proxy in front of it, end no scheduler and lose no binding."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tests.fake_apiserver import (
    Answer,
    FakeApiServer,
    Fault,
    SchedulerProcess,
    binding,
    cluster,
    html,
    manifest_text,
    nested,
    start_scheduler,
    wait_for,
)


def _deep(name: str, depth: int) -> bytes:
    """A binding whose workload has a status that is so many levels deep."""
    status = {"aggregatedStatus": [{"clusterName": "m1", "status": "@deep"}]}
    return manifest_text(binding(name, status=status), deep=nested(depth))


def _is_placed(server: FakeApiServer, name: str) -> bool:
    """Return whether the stored binding has its placement, without decoding a deep status."""
    return b'"clusters":[{"name":"m1"' in server.text("ResourceBinding", name)


def test_a_status_that_is_too_deep_for_the_decoder_delays_no_binding(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("first"))
        server.put_raw(_deep("deep-at-the-start", 1_100))
        server.put_raw(_deep("deeper-at-the-start", 5_000))
        with start_scheduler(server, tmp_path) as scheduler:
            for name in ("first", "deep-at-the-start", "deeper-at-the-start"):
                wait_for(partial(_is_placed, server, name), f"{name} to be placed", scheduler)
            server.put_raw(_deep("deep-by-watch", 1_100))
            server.put_raw(_deep("deeper-by-watch", 5_000))
            server.put(binding("last"))
            for name in ("deep-by-watch", "deeper-by-watch", "last"):
                wait_for(partial(_is_placed, server, name), f"{name} to be placed", scheduler)
            assert scheduler.answers("/readyz") == 200
            wait_for(lambda: server.patches("deeper-by-watch") >= 2, "the status patch", scheduler)
            time.sleep(0.3)
            assert server.patches("deeper-by-watch") == 2
            assert "Traceback" not in scheduler.log


NONSENSE = (
    html(),
    Answer(200, b""),
    Answer(200, b'{"metadata":{}}'),
    Answer(200, b'{"metadata":{"resourceVersion":""},"items":[]}'),
    Answer(404, b"404 page not found\n", "text/plain"),
)


def test_invalid_responses_to_lists_end_nothing(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, "--resync-period=100ms") as scheduler:
            for answer in NONSENSE:
                fault = server.fault(method="LIST", answer=answer)
                _wait_for_hits(fault, 6, scheduler)
                server.heal()
            server.put(binding("a"))
            wait_for(lambda: server.targets("a") == {"m1": 1}, "a to be placed", scheduler)
            assert (
                "resourcebindings: expected a JSON object, got HTTP 200, text/html: '<html>" in scheduler.log
            )
            assert "resourcebindings: expected a list with a resourceVersion, got: {" in scheduler.log
            assert scheduler.exit_status is None
            assert "Traceback" not in scheduler.log


def test_invalid_responses_to_watches_are_retried(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path) as scheduler:
            page = server.fault(method="WATCH", path="/resourcebindings", answer=html(), times=3)
            proxy = server.fault(method="WATCH", path="/clusters", answer=NONSENSE[-1], times=2)
            server.end_watches("ResourceBinding")
            server.end_watches("Cluster")
            _wait_for_hits(page, 3, scheduler)
            _wait_for_hits(proxy, 2, scheduler)
            server.put(cluster("m2"))
            again = "The watch works again path=/apis/cluster.karmada.io"
            wait_for(lambda: again in scheduler.log, "the watch of clusters", scheduler)
            server.put(binding("a", replicas=2))
            wait_for(lambda: server.targets("a") == {"m1": 1, "m2": 1}, "a to be placed", scheduler)
            assert scheduler.log.count("kopf failed") == 0
            assert "<html>" in scheduler.log


def test_unreadable_lines_of_a_watch_are_skipped(tmp_path: Path) -> None:
    huge = b"9" * 5000
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.watching("ResourceBinding"), "the watch", scheduler)
            for line in (
                b"<html>",
                b"7",
                b'{"type":"MODIFIED"}',
                b'{"type":7,"object":[]}',
                b'{"type":"ADDED","object":{"metadata":{"name":"bad","namespace":"default","labels":NaN}}}',
                b'{"type":"ADDED","object":{"metadata":{"name":"odd","uid":{},"resourceVersion":"7"}}}',
                b'{"type":"MODIFIED","object":{"metadata":null}}',
                b'{"type":"DELETED","object":{"metadata":{"name":"x","resourceVersion":"one"}}}',
                b'{"type":"BOOKMARK","object":{}}',
                b'{"type":"ADDED","object":{"metadata":{"name":"big"},"spec":{"replicas":' + huge + b"}}}",
                b'{"type":"ADDED","object":{"metadata":{"name":"\\ud800","resourceVersion":"\xff"}}}',
            ):
                server.send("ResourceBinding", line)
            server.put(binding("a"))
            wait_for(lambda: server.targets("a") == {"m1": 1}, "a to be placed", scheduler)
            assert scheduler.log.count("kopf failed") == 0
            assert "Traceback" not in scheduler.log
            assert "default/bad" in scheduler.log
            assert scheduler.metric('karmada_scheduler_malformed_objects_total{kind="ResourceBinding"}') >= 5


def test_invalid_responses_to_lease_requests_and_patches_lose_no_binding(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, "--leader-elect-retry-period=100ms") as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the lease", scheduler)
            holder = server.lease()["holderIdentity"]
            for number, answer in enumerate(NONSENSE[:4]):
                lease = server.fault(path="leases", times=3, answer=answer)
                patch = server.fault(
                    method="PATCH", path=f"/b{number}", times=2, answer=answer, carried_out=number % 2 == 0
                )
                server.put(binding(f"b{number}"))
                _wait_for_hits(lease, 3, scheduler)
                _wait_for_hits(patch, 2, scheduler)
            for number in range(4):
                wait_for(partial(_is_done, server, f"b{number}"), f"b{number} to be placed", scheduler)
            assert scheduler.exit_status is None
            assert server.lease()["holderIdentity"] == holder
            assert "Traceback" not in scheduler.log


def test_an_unreadable_object_of_a_list_is_logged_and_the_others_are_placed(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        for name in ("a", "z"):
            server.put(binding(name))
        bad = server.text("ResourceBinding", "z").replace(b'"z"', b'"m"')
        server.corrupt("ResourceBinding", "m", bad.replace(b'"replicas":1', b'"replicas":NaN'))
        server.corrupt("ResourceBinding", "n", b'"just a word"')
        with start_scheduler(server, tmp_path, "--resync-period=100ms") as scheduler:
            for name in ("a", "z"):
                wait_for(partial(_is_done, server, name), f"{name} to be placed", scheduler)
            wait_for(lambda: server.count("LIST", "/resourcebindings") > 3, "some comparisons", scheduler)
            assert scheduler.log.count("object=default/m ") == 1
            assert scheduler.metric('karmada_scheduler_malformed_objects_total{kind="ResourceBinding"}') >= 2


def _is_done(server: FakeApiServer, name: str) -> bool:
    return server.targets(name) == {"m1": 1} and server.condition(name).get("status") == "True"


def _wait_for_hits(fault: Fault, hits: int, scheduler: SchedulerProcess) -> None:
    wait_for(lambda: fault.hits >= hits, f"{hits} requests with {fault}", scheduler)
