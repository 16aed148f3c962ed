"""``explain --capture`` and ``--replay``: the same answer from one file, without an API server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.fleet import capture, live, process_http
from karmada_advisor.fleet.fleet import Coverage, Fleet
from karmada_advisor.fleet.named_binding import NamedBinding
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.model import SchedulerShown, SchedulerStatus
from karmada_advisor.whatif.survive.question import taint_policies_of
from karmada_scheduler import command
from karmada_scheduler.api.binding import KINDS
from tests.commands import run
from tests.fake_apiserver import FakeApiServer, binding, cluster, policy
from tests.fake_apiserver import status as refused
from tests.fake_apiserver.process import write_kubeconfig
from tests.unit.cli.stored_objects import StoredObjects
from tests.unit.explain.fleet import billing, checkout, fleet

LONG = "--timeout=5m"


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> StoredObjects:
    """A control plane that can be read once; then it is away."""
    contents = StoredObjects(
        "https://karmada.example:5443",
        clusters=[each.manifest() for each in fleet()],
        bindings=[billing().manifest(), checkout().manifest()],
        policies=[
            {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": "PropagationPolicy",
                "metadata": {"namespace": "pay", "name": "billing"},
                "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "billing"}]},
            }
        ],
    )  # fmt: skip
    reads: list[ControlPlane] = []

    def read(plane: ControlPlane, asked: NamedBinding | None = None, **_: Any) -> Fleet:
        assert not reads, "the control plane was read again"
        reads.append(plane)
        return contents.read(asked)

    monkeypatch.setattr(live, "read_live", read)
    return contents


class Command:
    """Runs ``explain``."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = command.main(["explain", *arguments])
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def fields(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*arguments, "-o", "json", LONG)[1])
        return found


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def without_provenance(fields: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in fields.items() if name != "provenance"}
    rest["remedySearch"] = {**(rest["remedySearch"] or {}), "seconds": 0}
    return rest


@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize("name", ["capture.json", "capture.json.gz"])
@pytest.mark.parametrize(
    ("asked", "namespace"), [("billing-deployment", "pay"), ("deployment/checkout", "shop")]
)
def test_a_capture_gives_the_same_answer_without_the_control_plane(
    explain: Command, tmp_path: Path, name: str, asked: str, namespace: str
) -> None:
    file = str(tmp_path / name)

    live = explain.fields(asked, "-n", namespace, "--capture", file)
    again = explain.fields("--replay", file)

    assert without_provenance(again) == without_provenance(live)
    assert again["provenance"]["tense"] == "replayed"
    assert again["provenance"]["fleet"] == live["provenance"]["fleet"]
    assert again["provenance"]["at"] == live["provenance"]["at"]
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")


def test_the_priority_classes_and_the_events_of_a_workload_without_a_binding_are_captured(
    plane: StoredObjects, explain: Command, tmp_path: Path
) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment"}
    plane.templates = [{**deployment, "metadata": {"namespace": "pay", "name": "ledger", "uid": "u"}}]
    plane.policies[0]["spec"] = {
        "resourceSelectors": [{**deployment, "name": "ledger"}],
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "hgh"},
    }
    plane.priority_classes = ["high"]
    plane.events = [{"type": "Warning", "reason": "ApplyPolicyFailed", "message": '"hgh" not found'}]
    file = str(tmp_path / "capture.json")

    live = explain.fields("deployment/ledger", "-n", "pay", "--capture", file)
    again = explain.fields("--replay", file)

    for found in (live, again):
        assert [each["code"] for each in found["causes"]] == ["PriorityClassMissing", "Reported"]


@pytest.mark.usefixtures("plane")
def test_the_third_line_says_that_it_is_a_replay(explain: Command, tmp_path: Path) -> None:
    file = str(tmp_path / "capture.json")
    status, _, err = explain("billing-deployment", "-n", "pay", "--capture", file)
    replayed, out, _ = explain("--replay", file)

    assert (status, replayed) == (1, 1)
    assert err == f"wrote 8 clusters and 2 bindings to {file}\n"
    at = json.loads(Path(file).read_text())["at"][:19] + "Z"
    assert f"replayed from a capture of {at} by the rules of karmada-scheduler" in out
    assert " now from " not in out


def test_rules_are_captured_and_flags_try_others(
    plane: StoredObjects, explain: Command, tmp_path: Path
) -> None:
    file, config = str(tmp_path / "capture.json"), tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "default-scheduler", "plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}],
            }
        )
    )  # fmt: skip
    flags = ["--config", str(config), "--feature-gates=SchedulingOvercommitProtection=true"]
    live = explain.fields("billing-deployment", "-n", "pay", "--capture", file, *flags)
    config.unlink()

    again = explain.fields("--replay", file)
    other = explain.fields("--replay", file, "--plugins=*,-ClusterAffinity")

    assert live["wouldBe"]["outcome"] == "placed"
    assert without_provenance(again) == without_provenance(live)
    assert other["wouldBe"]["outcome"] == "placed"
    assert json.loads(Path(file).read_text())["rules"]["feature_gates"] == [
        "SchedulingOvercommitProtection=true"
    ]


def test_the_record_of_a_process_is_captured(
    plane: StoredObjects, explain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(_: str, path: str) -> tuple[int, Mapping[str, Any]]:
        if path == "/v1/state":
            return 200, {"configuration": {"featureGates": {}, "profiles": [{"schedulerName": "mine"}]}}
        record = {
            "at": "2026-11-22T14:02:11.482Z",
            "process": "pod-a",
            "targets": {},
            "trigger": {"class": "First"},
        }
        return 200, {"record": record, "queue": {"state": "unschedulable", "dueInSeconds": None}}

    monkeypatch.setattr(process_http, "get", get)
    plane.bindings[0]["spec"]["schedulerName"] = "mine"
    file = str(tmp_path / "capture.json")
    live = explain.fields(
        "billing-deployment", "-n", "pay", "--capture", file, "--from", "http://localhost:1"
    )
    monkeypatch.undo()

    again = explain.fields("--replay", file)

    assert again["provenance"]["record"] == live["provenance"]["record"]
    assert again["provenance"]["record"]["process"] == "pod-a"
    assert again["state"] == live["state"]
    assert live["state"]["scheduler"]["status"] == "running"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is no capture"),
        (b"[1, 2]", "is no capture of explain --capture"),
        (b"\x1f\x8bnot gzip", "cannot be read: "),
        (
            b'{"apiVersion": "explain.pyscheduler.karmada.io/v1alpha1", "kind": "Capture"}',
            "clusters is missing",
        ),
        (b"[" * 100_000, "is no capture"),
        (
            b"""{"apiVersion": "explain.pyscheduler.karmada.io/v1alpha1", "kind": "Capture", "clusters": [],
                "bindings": [], "asked": {"name": "web"}, "rules": {"decisions_of": "9.9"}}""",
            "rules.decisions_of: expected 1.18 or 1.19 or 1.17, got 9.9",
        ),
        (None, "cannot be read: No such file"),
    ],
    ids=["empty", "a list", "gzip", "without clusters", "nested", "later version", "away"],
)
def test_a_file_that_is_no_capture_is_refused(
    explain: Command, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "capture.json"
    if content is not None:
        file.write_bytes(content)

    status, out, err = explain("--replay", str(file))

    assert (status, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("plane")
def test_unreadable_objects_of_a_capture_are_reported_and_the_rest_is_explained(
    explain: Command, tmp_path: Path
) -> None:
    file = tmp_path / "capture.json.gz"
    explain("billing-deployment", "-n", "pay", "--capture", str(file))
    fields = json.loads(gzip.decompress(file.read_bytes()))
    fields["clusters"][0]["spec"]["taints"] = 5
    file.write_bytes(json.dumps(fields).encode())

    status, out, err = explain("--replay", str(file))

    assert status == 2
    assert err.startswith("Cluster ap-south-1: spec.taints")
    assert "NOT PLACED" in out


@pytest.mark.parametrize("flag", ["--kubeconfig=k", "--clusters=c", "--from=http://localhost:1"])
def test_a_replay_has_its_objects_already(explain: Command, tmp_path: Path, flag: str) -> None:
    (tmp_path / "c").write_text(
        '{"apiVersion": "explain.pyscheduler.karmada.io/v1alpha1", "kind": "Capture", "clusters": [], "bindings": [],'
        ' "rules": {}, "asked": {"name": "web", "namespace": "default"}, "at": "2026-11-22T10:00:00Z"}'
    )
    status, _, err = explain("--replay", str(tmp_path / "c"), flag)
    assert status == 2
    assert "--replay has the objects already: leave out --" in err


@pytest.mark.usefixtures("plane")
def test_a_capture_that_cannot_be_written_ends_the_command(explain: Command, tmp_path: Path) -> None:
    status, out, err = explain("billing-deployment", "-n", "pay", "--capture", str(tmp_path / "no" / "file"))
    assert (status, out) == (2, "")
    assert "cannot be written: No such file or directory" in err


def test_without_a_replay_a_binding_is_named(explain: Command) -> None:
    assert explain()[::2] == (2, "Error: name a binding\n")


@pytest.mark.usefixtures("plane")
def test_why_not_searches_in_a_capture(
    explain: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "capture.json")
    explain("billing-deployment", "-n", "pay", "--capture", file, "--plugins=*,-TaintToleration")

    status = command.main(["why-not", "--replay", file, "--placed", "-o", "json", LONG])
    with_taints = command.main(["why-not", "--replay", file, "--placed", "-o", "json", LONG, "--plugins=*"])

    first, second = capsys.readouterr().out.split("}\n{")
    assert (status, with_taints) == (1, 0)  # the decision that is due places it, so no change is needed
    assert '"nextHolds": true' in first
    assert '"nextHolds": false' in second


def test_a_capture_of_all_bindings_answers_every_command_again_and_has_no_copies_of_manifests(
    tmp_path: Path,
) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"}
    managers = [{"manager": "kubectl", "operation": "Update", "time": "2026-11-22T10:00:00Z"}]
    file = str(tmp_path / "plane.json.gz")
    with FakeApiServer() as server:
        secret = {"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "token"}
        for made in (cluster("m1"), cluster("m2"), policy("p"), binding("web", replicas=2), binding("token")):
            made["metadata"] |= {"annotations": applied, "managedFields": managers}
            if made["metadata"]["name"] == "token":
                made["spec"] |= {"resource": secret, "replicas": 0}
            server.put(made)
        at = f"--kubeconfig={write_kubeconfig(server, tmp_path / 'config')}"
        live = run("explain", "-A", at, "--capture", file, "-o", "json")
        status = run("status", at, "-o", "json").fields
        paths = {request.path for request in server.requests}
    written = gzip.decompress(Path(file).read_bytes()).decode()

    assert live.err == f"wrote 2 clusters and 2 bindings to {file}\n"
    assert not [each for each in paths if "secrets" in each or "configmaps" in each]
    assert not [text for text in ("c2VjcmV0", "last-applied", '"manager"') if text in written]
    again = run("explain", "-A", "--replay", file, "-o", "json")
    assert (again.status, again.fields["groups"]) == (live.status, live.fields["groups"])
    assert run("explain", "--replay", file, "-o", "json").fields["groups"] == live.fields["groups"]
    assert run("status", "--replay", file, "-o", "json").fields["schedulers"] == status["schedulers"]
    for command_ in (
        ("explain", "rb/web"),
        ("why-not", "rb/web", "m2"),
        ("plan", "--without=m1", "--fail-on=none"),
        ("survive", "--fail-on=none"),
        ("rebalance", "--max-moves=10"),
    ):
        assert run(*command_, "--replay", file).status in {0, 1}, command_


def test_a_capture_of_all_bindings_says_which_kinds_were_not_read(tmp_path: Path) -> None:
    file = str(tmp_path / "plane.json")
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=2))
        for path in ("leases", "propagationpolicies", "federatedresourcequotas", "clustertaintpolicies"):
            server.fault(method="GET", path=f"/{path}$", answer=refused(403, "Forbidden", f"no {path}"))
        at = f"--kubeconfig={write_kubeconfig(server, tmp_path / 'config')}"
        run("explain", "-A", at, "--capture", file)

    found = json.loads(Path(file).read_text())
    assert [found[name] for name in ("leases", "policies", "quotas", "taintPolicies")] == [None] * 4
    shown = run("status", "--replay", file, "-o", "json").fields
    assert shown["notRead"] == {
        "PropagationPolicy": "no propagationpolicies",
        "Leases of schedulers": "no leases",
    }
    assert shown["schedulers"][0]["scheduler"]["status"] == "not known"


def test_what_else_was_read_and_what_was_not_comes_back_from_a_capture(tmp_path: Path) -> None:
    seen, at = SchedulerShown("a", SchedulerStatus.SEEN, "an Event", "2026-11-22T10:00:00Z"), "2026-11-22"
    known = Fleet(
        "x",
        seen=[seen, SchedulerShown("b", source="forbidden")],
        quotas=[{"kind": "FederatedResourceQuota", "metadata": {"name": "q"}}],
        taint_policies=[{"kind": "ClusterTaintPolicy", "metadata": {"name": "t"}}],
        coverage=Coverage({"Cluster", *KINDS}, {"PropagationPolicy": "forbidden"}),
    )
    path = str(tmp_path / "capture.json")
    capture.write(path, known, Rules(), None, datetime.fromisoformat(f"{at}T00:00:00Z"))
    found = capture.fleet_of_capture(path)

    for name in ("seen", "quotas", "taint_policies", "coverage"):
        assert getattr(found, name) == getattr(known, name), name
    assert taint_policies_of((), ControlPlane(), found) == (known.taint_policies, "")


def test_a_capture_is_of_one_binding_or_of_all(explain: Command, tmp_path: Path) -> None:
    status, _, err = explain("-n", "shop", "--capture", str(tmp_path / "x"))
    assert (status, err) == (2, "Error: --capture is about one binding, or with -A about all\n")
