"""The page over a control plane that hangs, goes away, forgets, and says things twice: it is right again by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import fork_server
from tests.fake_apiserver import FakeApiServer, objects, wait_for
from tests.fake_apiserver.faults import Gate, status
from tests.fake_apiserver.process import write_kubeconfig
from tools.controlplane.processes import free_port

SECONDS = 60


class WatchingPage:
    """A running page over an API server."""

    def __init__(self, server: FakeApiServer, folder: Path, *flags: str, refresh: str = "1s") -> None:
        self.port = free_port()
        self.log = folder / "page.log"
        command = [
            "web", f"--bind-address=127.0.0.1:{self.port}", f"--refresh={refresh}",
            f"--kubeconfig={write_kubeconfig(server, folder / 'kubeconfig')}", "--request-timeout=10s",
            *flags,
        ]  # fmt: skip
        with self.log.open("wb") as output:
            self.popen = fork_server.start(
                [sys.executable, "-m", fork_server.MODULE, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ),
            )

    def get(self, path: str) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(f"http://127.0.0.1:{self.port}{path}", timeout=30)

    def ready(self) -> str:
        try:
            return self.get("/readyz").text
        except requests.ConnectionError:
            return "does not listen"

    def listed(self) -> dict[str, str]:
        """Return the states of the listed bindings by name."""
        items = self.get("/v1/bindings").json()["items"]
        return {each["name"]: each["state"]["name"] for each in items}

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        wait_for(holds, f"{what}; {self.log.read_text()[-1000:]}", timeout=SECONDS)


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        server.put(objects.cluster("m1"))
        server.put(objects.cluster("m2"))
        server.put(_placed("web"))
        yield server


@pytest.mark.parametrize(
    ("code", "times", "says"),
    [(500, 2, ""), (403, None, "what the policies say beyond the binding is not known")],
)
def test_policies_that_cannot_be_listed_at_the_start_are_read_later_unless_they_are_forbidden(
    server: FakeApiServer, tmp_path: Path, code: int, times: int | None, says: str
) -> None:
    server.fault(path="/propagationpolicies", answer=status(code, "Planted"), times=times)
    page = WatchingPage(server, tmp_path)
    try:
        page.wait(lambda: page.ready() == "ok", "the page")
        problems = "; ".join(page.get("/v1/fleet").json()["problems"])
        assert problems == (f"propagationpolicies: Planted; {says}" if says else "")
        assert page.listed() == {"web": "placed"}
    finally:
        page.popen.kill()
        page.popen.wait()


@pytest.fixture
def page(server: FakeApiServer, tmp_path: Path) -> Iterator[WatchingPage]:
    page = WatchingPage(server, tmp_path)
    try:
        page.wait(lambda: page.ready() == "ok", "the page")
        yield page
    finally:
        page.popen.kill()
        page.popen.wait()


def _placed(name: str, cluster: str = "m1") -> dict[str, Any]:
    return objects.settled(name, {cluster: 1})


def _fail(binding: dict[str, Any]) -> None:
    binding["spec"]["clusters"] = []
    [condition] = binding["status"]["conditions"]
    condition.update(status="False", reason="NoClusterFit", message="nothing fits")


def test_changes_deletions_and_clusters_arrive_by_the_watch(
    server: FakeApiServer, page: WatchingPage
) -> None:
    assert page.listed() == {"web": "placed"}
    page.wait(
        lambda: server.count("WATCH", "/resourcebindings") > 0, "the watch, before which the version is read"
    )
    lists = _lists_of_bindings(server)
    server.put(_placed("new", "m2"))
    page.wait(lambda: page.listed() == {"web": "placed", "new": "placed"}, "the new binding")
    server.change("ResourceBinding", "web", _fail)
    page.wait(lambda: page.listed() == {"web": "not placed", "new": "placed"}, "the failure")
    server.delete("Cluster", "m2")
    page.wait(lambda: page.listed()["new"] == "not running", "the state of what was on the lost cluster")
    server.delete("ResourceBinding", "web")
    page.wait(lambda: page.listed() == {"new": "not running"}, "the deletion")
    assert page.get("/v1/fleet").json()["bindings"] == 1
    assert _lists_of_bindings(server) == lists


@pytest.mark.parametrize("path", ["/v1/explain/default/new", "/v1/why-not/default/new?cluster=m1"])
def test_a_question_about_a_binding_that_was_created_since_the_last_look_is_answered(
    server: FakeApiServer, tmp_path: Path, path: str
) -> None:
    page = WatchingPage(server, tmp_path, refresh="3600s")
    try:
        page.wait(lambda: page.ready() == "ok", "the page")
        server.put(_placed("new", "m2"))
        page.wait(lambda: "new" in page.listed(), "the new binding")
        found = page.get(path)
        assert (found.status_code, "new" in found.text) == (200, True), found.text
    finally:
        page.popen.kill()
        page.popen.wait()


def _lists_of_bindings(server: FakeApiServer) -> int:
    """Return the number of lists; a look, which asks for one object, is none."""
    with server.lock:
        return sum(
            each.verb == "LIST" and "/resourcebindings" in each.path and each.query.get("limit") != "1"
            for each in server.requests
        )


def test_a_binding_that_is_deleted_and_created_again_is_the_new_one(
    server: FakeApiServer, page: WatchingPage
) -> None:
    old = server.get("ResourceBinding", "web")
    server.delete("ResourceBinding", "web")
    again = _placed("web")
    _fail(again)
    server.put(again)
    page.wait(lambda: page.listed() == {"web": "not placed"}, "the new binding")
    for type_ in ("MODIFIED", "DELETED", "ADDED"):  # the watch repeats what is over
        server.send("ResourceBinding", json.dumps({"type": type_, "object": old}).encode())
    server.put(_placed("last"))
    page.wait(lambda: "last" in page.listed(), "what came after the repetitions")
    assert page.listed()["web"] == "not placed"


def test_a_version_that_is_gone_is_followed_by_a_list(server: FakeApiServer, page: WatchingPage) -> None:
    gone = server.fault(method="WATCH", path="resourcebindings", answer=status(410, "Expired"))
    server.end_watches("ResourceBinding")
    server.delete("ResourceBinding", "web")
    server.put(_placed("other"))
    page.wait(lambda: gone.hits > 0, "the refusal")
    server.heal(gone)
    page.wait(lambda: page.listed() == {"other": "placed"}, "the state after the gap")


def test_an_api_server_that_hangs_is_named_and_the_objects_of_before_stay(
    server: FakeApiServer, page: WatchingPage
) -> None:
    gate = Gate()
    hanging = server.fault(gate=gate)

    def says_so() -> bool:
        page.get("/")  # somebody looks
        return "The objects could not be read again: " in page.ready()

    page.wait(says_so, "the failure")
    assert page.listed() == {"web": "placed"}
    gate.open()
    server.heal(hanging)
    server.put(_placed("after"))
    page.wait(lambda: "after" in page.listed(), "the state after the pause")
    page.wait(lambda: page.get("/").ok and page.ready() == "ok", "a good reading")


def test_an_api_server_that_goes_away_and_comes_back_is_read_again(
    server: FakeApiServer, page: WatchingPage
) -> None:
    away = server.fault(drop=True)
    server.end_watches()
    server.delete("ResourceBinding", "web")
    server.put(_placed("other"))
    page.wait(lambda: page.get("/").ok and page.ready() != "ok", "the failure")
    assert page.listed() == {"web": "placed"}
    server.heal(away)
    page.wait(lambda: page.listed() == {"other": "placed"}, "the state after the outage")
    page.wait(lambda: page.get("/").ok and page.ready() == "ok", "a good reading")


def test_where_watches_are_forbidden_everything_is_listed_again(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.fault(method="WATCH", path="/resourcebindings", answer=status(403, "Forbidden: no watch"))
    page = WatchingPage(server, tmp_path)
    try:
        page.wait(lambda: page.ready() == "ok", "the page")
        assert page.listed() == {"web": "placed"}
        server.put(_placed("later", "m2"))
        page.wait(lambda: page.listed() == {"web": "placed", "later": "placed"}, "the new binding")
        assert "Everything is listed again every 1 s instead" in page.log.read_text()
    finally:
        page.popen.kill()
        page.popen.wait()
