"""``explain --from``: the record and the queue of a running scheduler."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.fleet import process_http
from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder
from tests.commands import run
from tests.unit.explain.fleet import billing, checkout, fleet, placed_checkout

URL = "http://localhost:10353"
RECORD = {
    "v": 1,
    "key": "shop/checkout-deployment",
    "generation": 7,
    "at": "2026-11-22T14:02:11.482Z",
    "process": "karmada-pyscheduler-7d9f-x2x",
    "trigger": {"event": "BindingAdd", "class": "First"},
    "attempts": [{"term": None, "stages": {"all": 8, "filtered": 5, "selected": 3, "placed": 3}}],
    "targets": {"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8},
    "error": None,
    "ending": "written",
}


class Process:
    """A scheduler: what it responds by path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gates: dict[str, bool] = {}
        self.decisions_of = ""
        self.names: list[str] = []
        self.responses: dict[str, tuple[int, Mapping[str, Any]]] = {}
        monkeypatch.setattr(process_http, "get", self._get)

    def _get(self, address: process_http.ProcessAddress, path: str) -> tuple[int, Mapping[str, Any]]:
        assert str(address) == URL
        if path == "/v1/state":
            profiles = [{"schedulerName": name} for name in self.names]
            configuration = {"featureGates": self.gates, "profiles": profiles}
            return 200, {"configuration": {**configuration, "decisionsOf": self.decisions_of}}
        if path not in self.responses:
            raise OSError("connection refused")
        return self.responses[path]


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    objects: dict[str, Sequence[BindingBuilder | ClusterBuilder]] = {
        "clusters": fleet(),
        "bindings": [placed_checkout(), billing()],
    }
    for kind, builders in objects.items():
        (tmp_path / f"{kind}.yaml").write_text(
            "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)
        )
    return [f"--{kind}={tmp_path / kind}.yaml" for kind in objects]


def undecided(tmp_path: Path) -> None:
    """Let the binding be one that has just been created."""
    (tmp_path / "bindings.yaml").write_text(yaml.safe_dump(checkout().manifest()))


def explain(name: str, namespace: str, files: list[str], *flags: str) -> int:
    return command.main(["explain", name, "-n", namespace, *files, "--from", URL, *flags])


def test_the_third_line_has_time_and_process_of_the_recorded_decision(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.responses["/v1/decisions/shop/checkout-deployment"] = 200, {"record": RECORD, "queue": {}}

    assert explain("checkout-deployment", "shop", files, "--width", "240") == 0

    line = " ".join(capsys.readouterr().out.splitlines()[2:5])
    assert line.startswith(
        "recorded 2026-11-22T14:02:11.482Z by karmada-pyscheduler-7d9f-x2x, First, BindingAdd"
    )
    assert "with the same result" in line


def test_a_record_with_some_of_many_targets_is_compared_with_its_count(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/v1/decisions/shop/checkout-deployment"
    for count, agrees in ((3, True), (4, False)):
        record = RECORD | {"targets": {"ap-south-1": 4}, "targetCount": count}
        scheduler.responses[path] = 200, {"record": record, "queue": {}}
        explain("checkout-deployment", "shop", files, "-o", "json")
        assert json.loads(capsys.readouterr().out)["provenance"]["record"]["agrees"] is agrees


@pytest.mark.parametrize(("name", "state"), [("my-scheduler", "placed"), ("another", None)])
def test_the_names_of_the_process_decide_whose_a_binding_is(
    scheduler: Process,
    tmp_path: Path,
    files: list[str],
    capsys: pytest.CaptureFixture[str],
    name: str,
    state: str | None,
) -> None:
    scheduler.names = ["default-scheduler", name]
    manifest = checkout().manifest()
    manifest["spec"]["schedulerName"] = "my-scheduler"
    (tmp_path / "bindings.yaml").write_text(yaml.safe_dump(manifest))
    explain("checkout-deployment", "shop", files, "-o", "json")
    would_be = json.loads(capsys.readouterr().out)["wouldBe"]
    assert (None if would_be is None else would_be["outcome"]) == state


def test_another_result_than_the_recorded_one_is_named(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    record = RECORD | {"targets": {"us-east-1": 24}}
    scheduler.responses["/v1/decisions/shop/checkout-deployment"] = 200, {"record": record, "queue": {}}

    explain("checkout-deployment", "shop", files, "-o", "json")

    found = json.loads(capsys.readouterr().out)["provenance"]["record"]
    assert found["agrees"] is False
    assert found["placement"] == [{"name": "us-east-1", "replicas": 24}]
    assert found["stages"] == {"all": 8, "filtered": 5, "selected": 3, "placed": 3}


def test_the_queue_has_the_time_of_the_next_decision(
    scheduler: Process, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    undecided(tmp_path)
    queue = {"state": "backoff", "dueInSeconds": 34.0}
    scheduler.responses["/v1/decisions/shop/checkout-deployment"] = (
        404,
        {
            "error": {"code": "NoRecord", "message": "no record of it"},
            "queue": queue,
            "process": "pod-a",
        },
    )

    explain("checkout-deployment", "shop", files, "-o", "json")

    fields = json.loads(capsys.readouterr().out)
    assert fields["causes"][0]["code"] == "BackingOff"
    assert fields["causes"][0]["evidence"]["dueInSeconds"] == 34.0
    assert fields["provenance"]["noRecord"] == "no record of it"
    assert fields["provenance"]["queueState"] == "backoff"


def test_a_binding_that_waits_for_others_says_so(
    scheduler: Process, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    undecided(tmp_path)
    scheduler.responses["/v1/decisions/shop/checkout-deployment"] = (
        404,
        {
            "queue": {"state": "active", "dueInSeconds": None},
            "process": "pod-a",
        },
    )

    explain("checkout-deployment", "shop", files, "-o", "json")

    assert json.loads(capsys.readouterr().out)["causes"][0]["code"] == "WaitingInQueue"


def test_a_process_that_cannot_be_reached_does_not_prevent_the_answer(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain("checkout-deployment", "shop", files, "--width", "240") == 0
    assert "no record (http://localhost:10353 cannot be read: connection refused)" in capsys.readouterr().out
    assert scheduler.responses == {}


def test_gates_come_from_the_process_and_a_difference_is_refused(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.gates = {"WorkloadAffinity": True}

    assert explain("checkout-deployment", "shop", files, "--feature-gates=WorkloadAffinity=false") == 2
    assert "it is on in the process" in capsys.readouterr().err
    assert explain("checkout-deployment", "shop", files, "--feature-gates=WorkloadAffinity=true") == 0


def test_whose_decisions_are_made_comes_from_the_process_and_a_difference_is_refused(
    scheduler: Process, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.decisions_of = "1.17"

    assert explain("checkout-deployment", "shop", files, "--decisions-of=1.18") == 2
    assert "--decisions-of=1.18, but it is 1.17 in the process" in capsys.readouterr().err
    assert explain("checkout-deployment", "shop", files, "--decisions-of=1.17") == 0
    scheduler.decisions_of = "1.20"
    assert explain("checkout-deployment", "shop", files) == 2
    assert "makes the decisions of 1.20, known here are 1.18, 1.19, 1.17" in capsys.readouterr().err


def test_only_urls_are_accepted(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    assert command.main(["explain", "web", *files, "--from", "localhost"]) == 2
    assert "--from: expected a URL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--from=localhost:10353"], "--from: expected a URL like http://localhost:10353"),
        (["--from=https://localhost:port"], "--from: expected a URL like http://localhost:10353"),
        (
            [f"--from={URL}", "--from-token-file=token"],
            f"--from-token-file is for https, and --from is {URL}",
        ),
        (
            ["--from=https://localhost:1", "--from-token-file=missing"],
            "--from-token-file: missing cannot be read",
        ),
        (["--from=https://localhost:1", "--from-token-file=empty"], "--from-token-file: empty has no token"),
        (
            ["--from=https://localhost:1", "--from-ca-file=empty"],
            "--from-ca-file: empty has no certificates in PEM",
        ),
    ],
)
def test_flags_of_a_process_that_cannot_be_used_end_the_command(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").write_text("")
    found = run("explain", "shop/checkout-deployment", *files, *flags)
    assert (found.status, says in found.err) == (2, True), found.err


@pytest.mark.parametrize(
    ("plugins", "named"),
    [
        ({"queueSort": {"enabled": [{"name": "Thrift"}], "disabled": [{"name": "*"}]}}, ["Thrift"]),
        ({"select": {"enabled": [{"name": "Pick"}], "disabled": [{"name": "*"}]}}, ["Pick"]),
        (
            {"multiPoint": {"enabled": [{"name": "Thrift"}], "disabled": [{"name": "PrioritySort"}]}},
            ["Thrift"],
        ),
    ],
)
def test_without_the_code_of_a_plugin_that_a_profile_needs_the_record_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: list[str],
    plugins: Mapping[str, Any],
    named: list[str],
) -> None:
    profile = {"schedulerName": "default-scheduler", "plugins": {"filter": named}}
    file = {
        "apiVersion": "pyscheduler.karmada.io/v1alpha1",
        "kind": "KarmadaSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    configuration = {"profiles": [profile], "file": file, "pluginDirs": ["/plugins"]}
    answers: dict[str, Mapping[str, Any]] = {
        "/v1/state": {"process": "p", "configuration": configuration},
        "/v1/decisions/resourcebinding/shop/checkout-deployment": RECORD,
    }

    def get(_: process_http.ProcessAddress, path: str) -> tuple[int, Mapping[str, Any]]:
        return (200, answers[path]) if path in answers else (404, {"error": "none"})

    monkeypatch.setattr(process_http, "get", get)
    flags = ["-n", "shop", "deploy/checkout", f"--from={URL}", "-o", "json", *files]
    assert command.main(["explain", *flags]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert "PluginCodeMissing" in [cause["code"] for cause in found["causes"]]
    assert found["wouldBe"] is None
