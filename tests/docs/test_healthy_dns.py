"""HealthyDNS: a filter that the rest of the repository does not know has a cause, evidence, a remedy and an event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, schedule
from tests import fake_apiserver as fake
from tests.docs.conftest import PLUGINS, Example

CONDITION = "ServiceDomainNameResolutionReady"
FLAGS = (f"--plugin-dir={PLUGINS}", f"--config={PLUGINS / 'healthy_dns.yaml'}")


def bad(name: str) -> ClusterBuilder:
    return cluster(name).condition(CONDITION, "False").capacity(cpu=8)


def web() -> BindingBuilder:
    return binding("web").scheduler("healthy-dns").replicas(2)


def test_a_cluster_without_dns_gets_no_new_workload(example: Example) -> None:
    members = [bad("m1"), cluster("m2").condition(CONDITION), cluster("m3")]
    run = schedule(web().duplicated(), *members, plugins=example("healthy_dns"))
    assert run.placed == {"m2": 2, "m3": 2}
    assert run.refused == {"m1": "cluster(s) could not resolve Services"}
    assert "m1" in schedule(web().duplicated().on("m1"), *members, plugins=example("healthy_dns")).placed


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what a command prints about the binding and two clusters without DNS, and its exit status."""
    files = []
    for kind, found in (("bindings", [web()]), ("clusters", [bad("m1"), bad("m2")])):
        path = tmp_path / f"{kind}.yaml"
        path.write_text(yaml.safe_dump_all(each.manifest() for each in found))
        files += [f"--{kind}", str(path)]

    def ask(*words: str) -> tuple[dict[str, Any], int]:
        status = command.main([*words, *files, *FLAGS, "-o", "json"])
        return json.loads(capsys.readouterr().out), status

    return ask


def test_explain_has_its_cause_and_its_evidence(asked: Any) -> None:
    found, _ = asked("explain", "rb/web-deployment", "--no-remedies")
    [cause] = [each for each in found["causes"] if each.get("primary")]
    assert cause["code"] == "DNSFails"
    assert cause["evidence"]["clusters"] == ["m1", "m2"]
    assert cause["evidence"]["clause"] == "DNS fails"
    assert "2 of 2 clusters are refused: it cannot resolve Services since " in cause["text"]
    assert found["funnel"][0]["text"] == "refused: m1 (DNS fails), m2 (DNS fails)"
    assert {row["cause"] for row in found["clusters"]} == {"DNSFails"}
    needed = f"of a cluster's spec or labels, of {CONDITION} in the conditions of a cluster, or a new API is needed"
    assert needed in found["wouldBe"]["text"]


@pytest.mark.parametrize("target", ["m2", "--placed"])
def test_why_not_has_its_remedy_verified(asked: Any, target: str) -> None:
    found, status = asked("why-not", "rb/web-deployment", target, "--timeout=30s")
    assert status == 0
    remedy = found["remedies"][0]
    assert [edit["op"] for edit in remedy["edits"]] == ["repairDNS"]
    name = remedy["edits"][0]["object"]["name"]
    assert remedy["edits"][0]["instead"] == f"Repair the DNS of {name}; the detector then reports it."
    assert remedy["result"] == [{"name": name, "replicas": 2}]


def conditions(dns: str, disk: str) -> dict[str, Any]:
    found = [{"type": CONDITION, "status": dns}, {"type": "Disk", "status": disk}]
    return {"conditions": [*fake.cluster("m1")["status"]["conditions"], *found]}


def test_a_binding_that_it_refused_is_scheduled_when_its_condition_changes(tmp_path: Path) -> None:
    with fake.FakeApiServer() as server:
        server.put(fake.cluster("m1", **conditions("False", "Good")))
        server.put(fake.binding("web", replicas=2, scheduler="healthy-dns"))
        with fake.start_scheduler(server, tmp_path, *FLAGS, "--v=4", name="healthy-dns") as scheduler:
            fake.wait_for(lambda: server.condition("web"), "the refusal", scheduler)
            assert server.condition("web")["reason"] == "NoClusterFit"
            server.put(fake.cluster("m1", **conditions("False", "Full")))
            server.put(fake.binding("other", replicas=1, scheduler="healthy-dns"))
            fake.wait_for(lambda: server.condition("other"), "a later binding", scheduler)
            assert "PluginEvent" not in scheduler.log, "another condition is not its event"
            server.put(fake.cluster("m1", **conditions("True", "Full")))
            placed = {"web": {"m1": 2}, "other": {"m1": 1}}
            fake.wait_for(
                lambda: {name: server.targets(name) for name in placed} == placed,
                "both to be placed",
                scheduler,
            )
            assert "Requeue ResourceBinding(default/web) due to event(PluginEvent)." in scheduler.log
