"""Next to karmada-scheduler alone, with the rights of manifests/reader.yaml: the commands answer, nothing is refused or written."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from karmada_advisor.fleet.plane_access import LISTED
from tests.commands import run
from tests.e2e.workload import DYNAMIC, WORK, Workload, condition, is_settled, labelled, named
from tools import manifests
from tools.controlplane import ControlPlane, Object

ROLE = yaml.safe_load((Path(__file__).parents[2] / "manifests" / "reader.yaml").read_text())
USER = "reader-of-the-role"


@pytest.fixture
def kubeconfig(controlplane: ControlPlane) -> Path:
    return controlplane.kubeconfig_with_rules(USER, ROLE["rules"])


def has_failed(binding: Object) -> bool:
    """Return whether the last decision about a binding has failed."""
    return condition(binding).get("status") == "False"


MANY: Final = 16


def create_many(plane: ControlPlane, namespace: str) -> None:
    """Create Deployments of one policy, and wait until karmada-scheduler has placed them."""
    many = {"many": "yes"}
    for number in range(MANY):
        name = f"many-{number}"
        plane.client.create(manifests.deployment(namespace, name, 2, cpu="1m", labels=many))
    placement, selector = named("sim-b1", "sim-b2"), {"labelSelector": {"matchLabels": many}}
    plane.client.create(manifests.policy(namespace, "many", placement, selector=selector))
    plane.wait_for(
        lambda: plane.client.list(f"{WORK}/namespaces/{namespace}/resourcebindings"),
        "many bindings to be placed",
        until=lambda found: sum(map(is_settled, found)) >= MANY,
    )


@pytest.fixture
def workloads(controlplane: ControlPlane, namespace: str) -> list[Workload]:
    """Workloads of karmada-scheduler: placed, without a cluster that fits, too large, and of a scheduler that is not there."""
    found = {
        name: Workload(controlplane, namespace, name) for name in ("placed", "nowhere", "large", "other")
    }
    found["placed"].create(labelled("sim", replicaScheduling=DYNAMIC), scheduler=None)
    found["nowhere"].create(named("sim-zz"), scheduler=None)
    found["large"].create(labelled("sim", replicaScheduling=DYNAMIC), replicas=100_000, scheduler=None)
    found["other"].create(named("sim-a1"), scheduler="my-schedler")
    found["placed"].wait_settled(replicas=4)
    for name in ("nowhere", "large"):
        found[name].wait(has_failed, "a failure")
    controlplane.wait_for(
        lambda: controlplane.client.find(found["other"].binding_path), "the binding of no scheduler"
    )
    return list(found.values())


def test_the_role_of_the_reader_suffices_and_nothing_is_written(
    controlplane: ControlPlane, kubeconfig: Path, namespace: str, workloads: list[Workload], tmp_path: Path
) -> None:
    create_many(controlplane, namespace)
    manifest = tmp_path / "scheduler.yaml"
    manifest.write_text(
        json.dumps(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "karmada-scheduler"},
                "spec": {
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "karmada-scheduler",
                                    "image": "karmada-scheduler:v1.18.2",
                                    "command": ["karmada-scheduler", "--feature-gates=Failover=true"],
                                }
                            ]
                        }
                    }
                },
            }
        )
    )
    at = f"--kubeconfig={kubeconfig}"
    policy = tmp_path / "policy.yaml"
    selector = {"labelSelector": {"matchLabels": {"a": "b"}}}
    policy.write_text(yaml.safe_dump(manifests.policy(namespace, "new", named("sim-a1"), selector=selector)))
    for words, status in (
        (("explain", "-A", f"--capture={tmp_path / 'plane.json.gz'}"), 1),
        (("status",), 1),
        (("explain", "-n", namespace), 1),
        (("explain", f"{namespace}/placed-deployment"), 0),
        (("explain", "deployment", "placed", "-n", namespace, f"--scheduler-manifest={manifest}"), 0),
        (("explain", f"{namespace}/nowhere-deployment"), 1),
        (("explain", f"{namespace}/large-deployment"), 1),
        (("explain", f"{namespace}/other-deployment"), 1),
        (("why-not", "deployment/placed", "sim-a2", "-n", namespace), None),
        (("why-not", "deployment/nowhere", "--placed", "-n", namespace), None),
        (("why-not", "--cluster", "sim-a2", "-n", namespace), None),
        (("plan", "--without=sim-a1", "--fail-on=none"), 0),
        (("plan", "-f", str(policy), "--fail-on=none"), 0),
        (("rebalance", "--max-moves=10"), 0),
        (("survive", "--fail-on=none"), 0),
    ):
        found = run(*words, at)
        assert found.status in ({0, 1} if status is None else {status}), (words, found.out, found.err)
        assert "forbidden" not in (found.out + found.err).lower(), words
        if words == ("explain", "-n", namespace):
            assert f"{MANY + 4} bindings" in found.out

    asked = controlplane.requests(USER)
    reviews = [each for each in asked if "/selfsubject" in each["requestURI"]]
    assert {each["verb"] for each in reviews} == {"create"}  # nothing is stored
    assert {each["verb"] for each in asked if each not in reviews} == {"get", "list"}
    assert not [
        each["requestURI"] for each in asked if re.search("/(secrets|configmaps)", each["requestURI"])
    ]
    refused = [each["requestURI"] for each in asked if (each.get("responseStatus") or {}).get("code") == 403]
    assert refused == []
    captured = run("explain", "-A", f"--replay={tmp_path / 'plane.json.gz'}", "-o", "json")
    assert captured.fields["total"] >= MANY + 4
    assert captured.fields["knowsTemplates"]


def test_a_binding_that_fits_now_and_that_nobody_decides_again_differs_from_one_that_does_not_fit(
    controlplane: ControlPlane, kubeconfig: Path, namespace: str
) -> None:
    path = "/apis/cluster.karmada.io/v1alpha1/clusters/sim-c2"
    served = controlplane.client.get(path)["status"]["apiEnablements"]
    others = [each for each in served if each["groupVersion"] != "apps/v1"]
    controlplane.client.patch(f"{path}/status", {"status": {"apiEnablements": others}})
    late = Workload(controlplane, namespace, "late").create(named("sim-c2"), scheduler=None)
    late.wait(has_failed, "a failure")
    asked = ("explain", f"{namespace}/late-deployment", "--width=300", f"--kubeconfig={kubeconfig}")
    before = run(*asked)
    controlplane.client.patch(f"{path}/status", {"status": {"apiEnablements": served}})
    after = run(*asked)

    assert "NOT PLACED" in before.out
    assert "A decision now fails as well" in before.out
    assert "NOT PLACED" in after.out
    assert "(NoClusterFit)" in after.out
    assert "Would be: sim-c2 4 (a decision now)." in after.out
    assert "NotRetried" in after.out
    assert (before.status, after.status) == (1, 1)


def test_a_control_plane_becomes_placement_tests_which_pass(
    kubeconfig: Path, namespace: str, workloads: list[Workload], tmp_path: Path
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    for each in workloads:
        stored = each.plane.client.get(each.policy_path)
        kept = {name: stored[name] for name in ("apiVersion", "kind", "spec")}
        metadata = {"name": each.name, "namespace": namespace}
        (policies / f"{each.name}.yaml").write_text(yaml.safe_dump({**kept, "metadata": metadata}))
    flags = (f"--policies={policies}", "-n", namespace, f"--kubeconfig={kubeconfig}")
    for name in ("one", "two"):
        found = run("test", "--init", str(tmp_path / name), *flags)
        assert found.status == 0, (found.out, found.err)
        assert "4 workloads, 4 cases" in found.out
    ran = run("test", str(tmp_path / "one"), "-v")
    assert ran.status == 0, ran.out
    assert (tmp_path / "one/placements_test.yaml").read_text() == (
        tmp_path / "two/placements_test.yaml"
    ).read_text()
    assert "OtherScheduler" in (tmp_path / "one/placements_test.yaml").read_text()


def test_status_names_what_a_reader_may_not_list_and_its_commands_grant_that(
    controlplane: ControlPlane,
) -> None:
    user = "reader-of-little"
    rules = [{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": ["get", "list"]}]
    at = f"--kubeconfig={controlplane.kubeconfig_with_rules(user, rules)}"
    before = run("status", at, "-o", "json")
    access = before.fields["access"]
    assert (before.status, access["reader"], access["served"]) == (1, user, "1.18")
    assert access["refused"] == [each for each in LISTED if each != "clusters.cluster.karmada.io"]
    assert before.fields["clusters"]
    assert {"ResourceBinding", "Leases of schedulers"} <= before.fields["notRead"].keys()
    assert all(each["ends"] for each in access["expiries"])

    kubectl = [str(controlplane.binaries.path("kubectl")), f"--kubeconfig={controlplane.kubeconfig}"]
    for command in access["grant"]:
        subprocess.run([*kubectl, *shlex.split(command)[1:]], check=True, timeout=60)
    try:
        controlplane.wait_for(
            lambda: run("status", at, "-o", "json").fields["access"]["refused"],
            "the rights",
            until=lambda refused: not refused,
        )
        text = run("status", at).out
        assert "its bindings are those of Karmada 1.18" in text
        assert "may not list" not in text
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            subprocess.run([*kubectl, "delete", kind, "pyscheduler-more"], check=True, timeout=60)
