"""Records of decisions: what the process serves and logs, and readers and disks that do not behave."""

import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from karmada_scheduler import __version__
from tests.bad_days.reviewing_apiserver import OPERATOR, STRANGER_ADDRESS, Client, ReviewingApiServer, bearer
from tests.commands import run
from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, status, wait_for
from tests.fake_apiserver.process import SchedulerProcess, write_kubeconfig
from tools.controlplane.pki import Authority
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
            found = Running(server, scheduler, port)
            wait_for(lambda: found.get("/v1/state").json()["leading"], "the Lease")
            yield found


def test_status_has_the_version_of_the_holder_from_the_lease_and_the_ages_of_its_watches_from_the_process(
    running: Running, tmp_path: Path
) -> None:
    at = f"--kubeconfig={write_kubeconfig(running.server, tmp_path / 'reader')}"
    lease = running.server.get("Lease", "my-scheduler", "karmada-system") or {}
    found = lease["metadata"]["annotations"]["pyscheduler.karmada.io/version"]
    assert found == f"{__version__} of {lease['spec']['holderIdentity']}"
    [use] = run("status", at, "-o", "json").fields["schedulers"]
    assert (use["setup"]["version"], use["setup"]["versionSource"]) == (__version__, "its Lease")

    asked = run("status", at, f"--from=http://127.0.0.1:{running.port}", "-o", "json").fields
    assert asked["process"]["isLeading"]
    assert {"Cluster", "ResourceBinding"} <= asked["process"]["watchAges"].keys()
    assert all(seconds < 100 for seconds in asked["process"]["watchAges"].values())
    assert "TaintToleration" in asked["schedulers"][0]["setup"]["plugins"]
    assert asked["schedulers"][0]["setup"]["rules"] == "default plugins and gates"


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
    assert [name for name, *_ in record["attempts"][0]["top"]] == ["m1", "m2"]
    listed = running.get("/v1/decisions").json()
    assert [each["key"] for each in listed["items"]] == ["default/web"]
    assert running.get(f"/v1/decisions?since={listed['next']}").json()["items"] == []


def test_a_failure_is_kept_with_its_reasons(running: Running) -> None:
    running.server.put(binding("web", placement={"clusterAffinity": {"clusterNames": ["m-1"]}}))
    record = running.record("web")
    assert record["error"]["reason"] == "NoClusterFit"
    [refused] = record["attempts"][0]["refused"]
    assert (refused["by"], refused["count"], refused["names"]) == ("ClusterAffinity", 2, ["m1", "m2"])


def test_a_conflict_is_recorded_and_the_next_decision_names_it(running: Running) -> None:
    fault = running.server.fault(method="PATCH", path="/web$", answer=status(409, "Conflict"), times=1)
    running.server.put(binding("web"))
    wait_for(lambda: running.server.targets("web"), "a binding to be placed", running.scheduler)
    running.server.heal(fault)
    running.record("web")
    found = wait_for(
        lambda: [
            each for each in running.get("/v1/decisions").json()["items"] if each["ending"] == "written"
        ],
        "a written record",
        running.scheduler,
    )
    assert found[0]["trigger"]["event"] == "ScheduleConflict"


def test_another_host_and_another_method_are_refused(running: Running) -> None:
    assert running.get("/v1/state", Host="evil.example").status_code == 421
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
    ):
        assert running.get("/v1/state", **headers).status_code == 403
    for method in ("POST", "PUT", "DELETE", "HEAD"):
        assert running.get("/v1/state", method).status_code == 405
    assert running.get("/v1/state?x=1").status_code == 400
    assert running.get("/metrics").status_code == 404


def test_a_standby_names_the_leader(running: Running, tmp_path: Path) -> None:
    port = free_port()
    flag = f"--explain-bind-address=127.0.0.1:{port}"
    with start_scheduler(running.server, tmp_path, flag) as standby:
        second = Running(running.server, standby, port)
        leader = running.get("/v1/state").json()
        assert (leader["leading"], leader["leader"]) == (True, None)
        refused = wait_for(
            lambda: [
                found
                for found in [second.get("/v1/decisions").json()["error"]]
                if found["leader"] is not None
            ],
            "the name of the leader",
            standby,
        )[0]
        assert (refused["code"], refused["leader"]) == ("NotLeading", leader["process"])
        assert second.get("/v1/state").json()["leading"] is False


def test_readers_that_read_nothing_delay_no_decision(running: Running) -> None:
    for number in range(60):
        running.server.put(binding(f"before-{number}"))
    wait_for(lambda: running.server.targets("before-59"), "bindings to be placed", running.scheduler)
    links = []
    for number in range(40):
        link = socket.create_connection(("127.0.0.1", running.port))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        path = "/v1/events" if number % 2 else "/v1/decisions?limit=500"
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)
        links.append(link)
    running.server.put(binding("web"))
    wait_for(lambda: running.server.targets("web"), "a binding to be placed", running.scheduler)
    assert running.scheduler.answers("/healthz") == 200
    for link in links:
        link.close()
    assert wait_for(
        lambda: running.get("/v1/decisions/default/web").ok, "a response to another reader", running.scheduler
    )


def test_connections_that_send_nothing_take_records_metrics_and_probes_from_nobody(running: Running) -> None:
    records, scheduler = Client(running.port), running.scheduler
    ports = {
        "/v1/state": running.port,
        "/metrics": _port_of(scheduler.metrics),
        "/healthz": _port_of(scheduler.health),
    }
    for path, port in ports.items():
        for holders in (Client(port, STRANGER_ADDRESS), Client(port)):
            with holders.idle(100):
                assert [Client(port).ask(path) for _ in range(3)] == [200] * 3, path
    assert records.ask("/v1/state") == 200


def test_secure_metrics_answer_prometheus_while_others_guess_and_hold_every_other_connection(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path / "pki")
    issued = authority.issue("localhost", server=True)
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    with FakeApiServer() as server, ReviewingApiServer() as host:
        server.put(cluster("m1"))
        flags = (
            f"--metrics-tls-cert-file={issued.certificate}",
            f"--metrics-tls-key-file={issued.key}",
            f"--metrics-kubeconfig={write_kubeconfig(host, tmp_path / 'host')}",
        )
        with start_scheduler(server, tmp_path, *flags) as scheduler:
            port = _port_of(scheduler.metrics)
            prometheus = Client(port, tls=trusting)
            stranger = Client(port, STRANGER_ADDRESS, tls=trusting)
            guessed = [
                stranger.ask("/metrics", {"Authorization": f"Bearer invented-{number}"})
                for number in range(40)
            ]
            assert guessed[:10] == [401] * 10
            assert set(guessed[10:]) <= {401, 429}
            assert len(host.reviewed) <= 15
            with Client(port, STRANGER_ADDRESS).idle(100), ExitStack() as stack:
                for _ in range(40):  # the handshake of these is over
                    connection = stack.enter_context(closing(stranger.connection()))
                    connection.connect()
                assert [prometheus.ask("/metrics", bearer(OPERATOR)) for _ in range(3)] == [200] * 3


def test_an_event_follows_a_decision(running: Running) -> None:
    with requests.Session() as session:
        session.trust_env = False
        url = f"http://127.0.0.1:{running.port}/v1/events"
        with session.get(url, stream=True, timeout=10) as stream:
            lines = stream.iter_lines()
            assert next(lines) == b"retry: 2000"
            assert _next_id(lines) == 0
            running.server.put(binding("web"))
            assert _next_id(lines) >= 1


def _port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def _next_id(lines: Iterator[bytes]) -> int:
    return next(int(line.split(b":")[1]) for line in lines if line.startswith(b"id:"))


def test_the_decision_log_has_a_line_per_decision_across_a_rotation(tmp_path: Path) -> None:
    path, old = tmp_path / "decisions.log", tmp_path / "decisions.log.1"
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, f"--decision-log={path}") as scheduler:
            server.put(binding("web"))
            wait_for(lambda: _keys(path) == ["default/web"], "a line", scheduler)
            path.rename(old)
            time.sleep(1.1)  # the path is checked once a second
            server.put(binding("api"))
            wait_for(lambda: _keys(path) == ["default/api"], "a line in the new file", scheduler)
            server.put(binding("last"))
            wait_for(lambda: server.targets("last"), "a binding to be placed", scheduler)
            scheduler.stop()
            assert _keys(path) == ["default/api", "default/last"]
    assert _keys(old) == ["default/web"]
    assert path.stat().st_mode & 0o777 == 0o600


def _keys(path: Path) -> list[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["key"] for line in lines]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_decision_log_on_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, "--decision-log=/dev/full") as scheduler:
            for name in ("web", "api"):
                server.put(binding(name))
                wait_for(lambda name=name: server.targets(name), "a binding to be placed", scheduler)  # type: ignore[misc]
            lost = 'karmada_scheduler_explain_records_lost_total{reason="unlogged"}'
            wait_for(lambda: scheduler.metric(lost) >= 1, "a lost line to be counted", scheduler)
            assert scheduler.answers("/healthz") == 200
            assert scheduler.log.count("Cannot write the decision log /dev/full") == 1


def test_a_pipe_without_a_reader_does_not_delay_the_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, f"--decision-log={pipe}") as scheduler:
            server.put(binding("web"))
            wait_for(lambda: server.targets("web"), "a binding to be placed", scheduler)
            assert scheduler.stop(timeout=15) == 0


def test_records_cost_no_write(tmp_path: Path) -> None:
    writes = []
    for flags in ((), (f"--explain-bind-address=127.0.0.1:{free_port()}",)):
        with FakeApiServer() as server:
            server.put(cluster("m1"))
            with start_scheduler(server, tmp_path, *flags) as scheduler:
                for number in range(10):
                    server.put(binding(f"web-{number}"))
                wait_for(lambda server=server: server.count("POST", "/events") == 20, "all Events", scheduler)  # type: ignore[misc]
                wait_for(
                    lambda server=server: server.count("PATCH", "/status") == 10,  # type: ignore[misc]
                    "all statuses",
                    scheduler,
                )
                time.sleep(3)  # records are made meanwhile
                made = scheduler.metric("karmada_scheduler_explain_records_total")
                assert made == (10 if flags else 0)
                writes.append(
                    {
                        (verb, path): server.count(verb, path)
                        for verb in ("POST", "PATCH", "PUT", "DELETE")
                        for path in ("/events", "/resourcebindings", "/clusters", "/configmaps")
                    }
                )
    assert writes[0] == writes[1]


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--explain-bind-address=0.0.0.0:10353", "is not a loopback address"),
        ("--explain-bind-address=:10353", "is not a loopback address"),
        ("--explain-memory=10", "--explain-memory must be at least 1Mi"),
    ],
)
def test_flags_that_cannot_be_used_end_the_start(tmp_path: Path, flag: str, problem: str) -> None:
    with FakeApiServer() as server, start_scheduler(server, tmp_path, flag, wait_ready=False) as scheduler:
        assert scheduler.wait(30) == 1
        assert problem in scheduler.log
