"""Records of decisions: what the process serves and logs, and readers and disks that do not behave."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for
from tests.fake_apiserver.process import SchedulerProcess
from tools.controlplane.processes import free_port


class Running(NamedTuple):
    server: FakeApiServer
    scheduler: SchedulerProcess
    port: int

    def get(self, path: str, method: str = "GET", **headers: str) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, f"http://127.0.0.1:{self.port}{path}", headers=headers, timeout=5)

    def record(self, name: str) -> dict[str, Any]:
        """Return the record of a binding of the namespace default, as soon as its attempt has ended."""

        def find() -> dict[str, Any]:
            response = self.get(f"/v1/decisions/default/{name}")
            found: dict[str, Any] = response.json()["record"] if response.ok else {}
            return found if found.get("ending") else {}

        return wait_for(find, f"a record of {name}", self.scheduler)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    port = free_port()
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2"))
        with start_scheduler(server, tmp_path, f"--explain-bind-address=127.0.0.1:{port}") as scheduler:
            yield Running(server, scheduler, port)


def test_a_decision_is_served_with_its_trigger_and_its_write(running: Running) -> None:
    running.server.put(binding("web"))
    targets = wait_for(lambda: running.server.targets("web"), "a binding to be placed", running.scheduler)
    record = running.record("web")
    assert record["key"] == "default/web"
    assert record["trigger"] == {"event": "BindingAdd", "class": "First"}
    assert record["ending"] == "written"
    assert record["written"] >= record["at"]
    assert record["targets"] == targets
    assert record["attempts"][0]["stages"]["all"] == 2
    full = running.get("/v1/decisions/default/web").json()["full"]
    assert full["seq"] == record["seq"]
    assert [row[0] for row in full["attempts"][0]["candidates"]] == ["m1", "m2"]
    listed = running.get("/v1/decisions").json()
    assert [each["key"] for each in listed["items"]] == ["default/web"]
    assert running.get(f"/v1/decisions?since={listed['next']}").json()["items"] == []
