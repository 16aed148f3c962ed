"""``status``: which schedulers the bindings name, whether they decide, and what they have placed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.cli.status import waited
from karmada_advisor.explain.fleet_status import FleetStatus, SchedulerUse, uses_of
from karmada_advisor.fleet import plane_access, process_http
from karmada_advisor.fleet.errors import LiveError
from karmada_advisor.fleet.plane_access import Expiry, PlaneAccess
from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.state.model import (
    BindingState,
    Placed,
    ReplicaCounts,
    SchedulerShown,
    SchedulerStatus,
    StateName,
    Target,
)
from karmada_advisor.state.schedulers import Schedulers, schedulers_of
from karmada_advisor.views.status_text import status_text
from karmada_advisor.views.text import Style
from karmada_scheduler import command
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.structs import replace
from tests.commands import run
from tests.document_schema import document_schema
from tests.fake_apiserver import Answer, FakeApiServer, binding, cluster
from tests.fake_apiserver import status as refused
from tests.fake_apiserver.process import write_kubeconfig
from tests.unit.cli.test_explain_all import put
from tests.unit.explain.fleet import failed_billing, placed_checkout
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "fleetstatus.v1alpha1.json"
PLACED = BindingState(StateName.PLACED, Placed.ALL, (Target("m1", 4),), 4)


def scheduler(name: str, status: SchedulerStatus) -> SchedulerShown:
    return SchedulerShown(name, status, "its Lease", "2026-11-22T10:00:00Z" if status.name == "DOWN" else "")


def status(*uses: SchedulerUse, not_read: dict[str, str] | None = None) -> FleetStatus:
    return FleetStatus("files", "2026-11-22T10:00:00Z", 3, ("m2",), uses, not_read or {})


def test_schedulers_are_counted_by_the_bindings_that_name_them_and_those_with_a_lease_are_listed() -> None:
    known = Schedulers(
        {each: scheduler(each, SchedulerStatus.RUNNING) for each in ("default-scheduler", "idle")}, problem=""
    )
    failed = BindingState(StateName.NOT_PLACED, wanted=3)
    states = [("default-scheduler", PLACED), ("default-scheduler", failed), ("nobody", PLACED)]

    stock, idle, nobody = uses_of(states, known)

    assert (stock.bindings, stock.replicas) == ({"not placed": 1, "placed": 1}, ReplicaCounts(7, 4, 0, 4))
    assert (idle.scheduler.name, idle.bindings, idle.replicas) == ("idle", {}, ReplicaCounts())
    assert (nobody.scheduler.status, nobody.bindings) == (SchedulerStatus.MISSING, {"placed": 1})


@pytest.mark.parametrize("standing", SchedulerStatus)
def test_only_schedulers_that_are_known_to_decide_are_good_and_those_that_nobody_names_do_not_count(
    standing: SchedulerStatus,
) -> None:
    shown = scheduler("my-scheduler", standing)

    assert status(SchedulerUse(shown, {"placed": 1}, ReplicaCounts())).is_good is (standing.name == "RUNNING")
    assert status(SchedulerUse(shown, {}, ReplicaCounts())).is_good


def test_the_text_has_a_row_for_each_scheduler_and_what_was_not_read() -> None:
    uses = (
        SchedulerUse(
            scheduler("a", SchedulerStatus.RUNNING), {"stuck": 1, "placed": 1200}, ReplicaCounts(9, 8, 5, 1)
        ),
        SchedulerUse(scheduler("b", SchedulerStatus.DOWN), {"placed": 1}, ReplicaCounts()),
    )

    shown = status_text(status(*uses, not_read={"Lease": "forbidden"}), Style(width=140)).splitlines()

    assert shown[0] == "3 clusters, 1 not ready: m2; as stored at files"
    assert shown[2].split() == [
        "SCHEDULER",
        "STATUS",
        "BINDINGS",
        "WANTED",
        "PLACED",
        "RUNNING",
        "NOT",
        "REPORTED",
        "STATES",
    ]
    assert shown[3].split()[:7] == ["a", "running", "1,201", "9", "8", "5", "1"]
    assert shown[3].endswith("1 stuck, 1,200 placed")
    assert shown[4].startswith("b          down since 2026-11-22T10:00:00Z")
    assert shown[-2:] == ["Not read:", "- Lease: forbidden"]
    assert "Queue, records and ages of watches: not known (--from asks a running scheduler)" in shown
    assert "NOT REPORTED" in status_text(status(*uses), Style(width=60))


def test_where_not_all_bindings_were_read_numbers_are_at_least_that_and_nothing_is_good() -> None:
    use = SchedulerUse(scheduler("a", SchedulerStatus.RUNNING), {}, ReplicaCounts())
    found = status(use, not_read={"ClusterResourceBinding": "forbidden"})

    shown = status_text(found, Style(width=140)).splitlines()
    assert shown[3].split() == ["a", "running", *5 * ["0+"]]
    assert shown[4] == "+: at least, because not all bindings were read"
    assert (found.is_good, status(use).is_good) == (False, True)


@pytest.mark.parametrize("not_read", [{}, {"ResourceBinding": "forbidden"}])
def test_a_control_plane_of_which_no_scheduler_is_known_is_no_health(not_read: dict[str, str]) -> None:
    found = status(not_read=not_read)

    assert not found.is_good
    shown = status_text(found, Style(width=140)).splitlines()
    assert shown[2] == "No scheduler is known: no Lease and no binding that was read names one"


def test_of_files_without_leases_it_is_not_known_who_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = put(tmp_path, [placed_checkout(), failed_billing()])

    assert command.main(["status", *files, "-o", "json"]) == 1

    fields = json.loads(capsys.readouterr().out)
    assert (fields["kind"], fields["clusters"], fields["notReady"]) == ("FleetStatus", 8, [])
    [use] = fields["schedulers"]
    assert (use["scheduler"]["name"], use["scheduler"]["status"]) == ("default-scheduler", "not known")
    assert use["replicas"] == {"wanted": 30, "placed": 24, "running": 24, "unknown": 0}
    assert "Leases of schedulers" in fields["notRead"]
    assert use["setup"] == {
        **dict.fromkeys(("version", "versionSource", "rules", "rulesSource"), ""),
        "plugins": [],
        "featureGates": {},
    }
    assert (fields["access"], fields["process"]) == (None, None)
    assert list(problems(fields, document_schema(FleetStatus), document_schema(FleetStatus))) == []
    assert json.loads(SCHEMA.read_text()) == document_schema(FleetStatus)


def lease(name: str, holder: str, **annotations: str) -> dict[str, Any]:
    written = {f"pyscheduler.karmada.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    spec = {"holderIdentity": holder, "renewTime": "2026-11-22T10:00:00Z"}
    return {"metadata": {"name": name, "annotations": written}, "spec": spec}


@pytest.mark.parametrize(("holder", "version"), [("pod-b", "0.2.0"), ("pod-a", ""), ("", "")])
def test_a_lease_tells_version_and_rules_of_its_holder_and_not_those_of_a_predecessor(
    holder: str, version: str
) -> None:
    ours = lease(
        "ours", holder, scheduler_names="ours,own", default_profiles="ours", version="0.2.0 of pod-b"
    )
    stock = lease("karmada-scheduler", "other")
    known = schedulers_of([ours, stock], now=datetime(2026, 11, 22, 10, tzinfo=UTC))
    found = {use.scheduler.name: use.setup for use in uses_of([], known)}

    assert {name: setup.version for name, setup in found.items()} == {
        "default-scheduler": "",
        "ours": version,
        "own": version,
    }
    assert found["ours"].version_source == ("its Lease" if version else "")
    assert found["ours"].rules == ("default plugins and gates" if version else "")
    assert found["own"].rules == found["default-scheduler"].rules == ""


def test_a_process_tells_its_version_its_rules_its_queue_and_the_ages_of_its_watches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = {
        "featureGates": {"WorkloadAffinity": True},
        "plugins": ["*", "-TaintToleration"],
        "file": None,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {"Filter": ["APIEnablement"]}}],
    }
    state = {
        "process": "pod-a",
        "version": "0.3.0",
        "leading": True,
        "configuration": configuration,
        "queue": {"due": 3, "delayed": 1},
        "records": {"bindings": 7},
        "watchAgesSeconds": {"Cluster": 200.4},
    }
    monkeypatch.setattr(process_http, "get", lambda *_: (200, state))
    files = put(tmp_path, [placed_checkout()])

    assert command.main(["status", *files, "--from=http://localhost:1", "--width=200"]) == 0
    shown = capsys.readouterr().out

    assert "default-scheduler  0.3.0 (the process pod-a)  " in shown
    assert "--plugins=*,-TaintToleration --feature-gates=WorkloadAffinity=true (the process pod-a)" in shown
    assert "The process pod-a leads." in shown
    assert "- bindings: 3 due, 1 delayed, 0 gated, 0 waiting; 7 with a record" in shown
    assert "- since its watches have said something: Cluster 3 min" in shown

    def nobody(*_: object) -> tuple[int, dict[str, Any]]:
        raise OSError("connection refused")

    monkeypatch.setattr(process_http, "get", nobody)
    assert command.main(["status", *files, "--from=http://localhost:1", "--width=200"]) == 1
    shown = capsys.readouterr().out
    assert "- the scheduler of --from: http://localhost:1 cannot be read: connection refused" in shown
    assert "default-scheduler  not known  not known" in shown


def test_the_deployment_of_a_scheduler_tells_its_version_and_its_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = "registry:5000/karmada/karmada-scheduler:v1.18.2@sha256:0"
    container = {"image": image, "command": ["karmada-scheduler", "--feature-gates=Failover=true"]}
    pods = {"template": {"spec": {"containers": [container]}}}
    manifest = yaml.safe_dump({"kind": "Deployment", "metadata": {"name": "a"}, "spec": pods})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(manifest.encode())))
    files = put(tmp_path, [placed_checkout()])

    command.main(["status", *files, "--scheduler-manifest=-", "-o", "json"])

    [use] = json.loads(capsys.readouterr().out)["schedulers"]
    assert use["setup"] == {
        "version": "v1.18.2",
        "versionSource": "the tag of its image",
        "rules": "--feature-gates=Failover=true",
        "plugins": ["*"],
        "featureGates": {"Failover": True},
        "rulesSource": "its flags",
    }


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=2))
        yield server


def of_plane(server: FakeApiServer, tmp_path: Path, *flags: str) -> Any:
    return run("status", f"--kubeconfig={write_kubeconfig(server, tmp_path / 'config')}", *flags)


def test_what_a_reader_may_not_list_is_named_and_not_counted(server: FakeApiServer, tmp_path: Path) -> None:
    paths = {"clusters": "Cluster", "bindings": "Binding"}
    for path in paths:
        server.fault(
            method="LIST", path=f"/(resource)?{path}$", answer=refused(403, "Forbidden", f"no {path}")
        )

    ran = of_plane(server, tmp_path, "-o", "json")
    assert (ran.status, ran.fields["clusters"], ran.fields["schedulers"]) == (1, None, [])
    assert ran.fields["notRead"].keys() == {"Cluster", "ResourceBinding"}
    shown = of_plane(server, tmp_path).out
    assert shown.startswith("clusters were not read; as stored at http")
    assert "- ResourceBinding: no bindings" in shown
    assert "Which lists you may not read is not known:" in shown

    server.heal()
    server.fault(method="LIST", path="/clusters$", answer=refused(503, "Unavailable", "no endpoints"))
    held = {"holderIdentity": "x", "leaseDurationSeconds": 3600, "renewTime": format_time(datetime.now(UTC))}
    named = {"namespace": "karmada-system", "name": "my-scheduler"}
    server.put({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": named, "spec": held})
    done = {"schedulerObservedGeneration": 2, "conditions": [{"type": "Scheduled", "status": "True"}]}
    server.put(binding("web", replicas=2, clusters={"m1": 2}, status=done))
    ran = of_plane(server, tmp_path, "-o", "json")
    [use] = ran.fields["schedulers"]
    assert (ran.fields["clusters"], use["bindings"]) == (None, {"placed": 1})  # and no cluster is missing
    assert use["replicas"] == {"wanted": 2, "placed": 2, "running": 0, "unknown": 2}


def test_an_api_server_that_hangs_at_reviews_costs_the_rights_only(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(_: object) -> None:
        raise LiveError("it has not answered")

    monkeypatch.setattr(plane_access, "read_access", hangs)
    fields = of_plane(server, tmp_path, "-o", "json").fields

    assert (fields["clusters"], fields["access"]) == (1, None)
    assert fields["notRead"]["rights and certificates"] == "it has not answered"


def test_without_karmada_s_apis_the_answer_is_how_they_are_installed(
    server: FakeApiServer, tmp_path: Path
) -> None:
    for path, install in (("resourcebindings", "_crds/bases"), ("clusters", "karmada-aggregated-apiserver")):
        server.fault(method="LIST", path=f"/{path}$", answer=refused(404, "NotFound"))
        ran = of_plane(server, tmp_path)
        assert (ran.status, ran.out) == (2, "")
        assert "is this the Karmada API server? (kubeconfig, context) If it is, " in ran.err
        assert install in ran.err


@pytest.mark.parametrize(
    "absent", [("propagationpolicies", "clusterpropagationpolicies"), ("clusterpropagationpolicies",)]
)
def test_policies_that_are_not_served_are_named_with_how_they_are_installed(
    absent: tuple[str, ...], server: FakeApiServer, tmp_path: Path
) -> None:
    """As of an API server without the CRD, which has no Status for it."""
    for plural in absent:
        server.fault(path=f"/{plural}$", answer=Answer(404, b"404 page not found\n", "text/plain"))
    not_read = of_plane(server, tmp_path, "-o", "json").fields["notRead"]
    named = [text.partition(": ")[0].split()[-1] for text in not_read.values()]

    assert named == [f"{plural}.policy.karmada.io/v1alpha1" for plural in absent]
    assert all("its CRDs are missing: kubectl apply" in text for text in not_read.values())

    explained = run("explain", "-A", f"--kubeconfig={tmp_path / 'config'}")
    for text in not_read.values():
        assert f"{text}; what the policies say beyond the binding is not known" in explained.err


def test_the_text_has_what_the_connection_tells() -> None:
    access = PlaneAccess(
        "alice",
        ("events",),
        ("kubectl create clusterrole a --verb=get,list --resource=events", "kubectl create b"),
        expiries=(
            Expiry("the token", ""),
            Expiry("the old one", "2026-11-22T09:00:00Z"),
            Expiry("the new one", "2026-11-25T10:00:00Z"),
        ),
        served="1.18",
    )
    shown = status_text(replace(status(), access=access), Style(width=60)).splitlines()

    assert shown[0] == "3 clusters, 1 not ready: m2; as stored at files; its"
    assert "- the token: not known" in shown
    assert "- the old one: 2026-11-22T09:00:00Z, 60 min AGO" in shown
    assert "- the new one: 2026-11-25T10:00:00Z, in 3 d" in shown
    assert "alice may not list, in all namespaces: events. It is granted" in shown
    assert shown[-2:] == [f"  {each}" for each in access.grant]


def test_what_the_text_shows_of_a_process_that_does_not_lead() -> None:
    process = ProcessState("pod-a", leader="pod-b")
    shown = status_text(replace(status(), process=process), Style())
    assert "The process pod-a does not lead; pod-b does." in shown
    assert "- since its watches have said something: not known" in shown


def test_it_waits_until_every_scheduler_decides_or_the_time_is_over() -> None:
    good = status(SchedulerUse(scheduler("a", SchedulerStatus.RUNNING), {"placed": 1}, ReplicaCounts()))
    bad = status(SchedulerUse(scheduler("a", SchedulerStatus.MISSING), {"placed": 1}, ReplicaCounts()))
    now, answers = 0.0, [bad, bad, good]

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def read() -> tuple[FleetStatus, list[str]]:
        return (answers.pop(0) if answers else bad), []

    assert waited(read, seconds=60, clock=lambda: now, sleep=sleep) == (good, [])
    assert now == 4
    assert waited(read, seconds=5, clock=lambda: now, sleep=sleep) == (bad, [])
    assert now == 9
    assert waited(read, seconds=0, clock=lambda: now, sleep=sleep) == (bad, [])
    assert now == 9
