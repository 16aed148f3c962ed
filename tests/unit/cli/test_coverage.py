"""What was not read is in no count, no promise and no exit status 0; what cannot be read is named in the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.fleet import capture
from karmada_scheduler.api.well_known import POLICY_ID_LABEL
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.commands import Ran, run

Manifest = dict[str, Any]

EVERY_BINDING = ("survive", "--no-remedies"), ("plan", "--without", "m1"), ("rebalance", "--max-moves", "9")
QUOTA: Manifest = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "FederatedResourceQuota",
    "metadata": {"name": "team", "namespace": "shop"},
    "spec": {"overall": {"cpu": "9"}, "staticAssignments": [{"clusterName": "m2", "hard": {"cpu": "1"}}]},
    "status": {"overallUsed": {}},
}


def web() -> BindingBuilder:
    made = binding("web", namespace="shop").replicas(4, cpu=1).dynamic_weight().on(m1=2, m2=2).applied()
    made = made.last_scheduled("2026-11-02T00:00:00Z").observed_generation(1)
    return made.condition(type="Scheduled", status="True", reason="Success", message="")


def two() -> list[ClusterBuilder]:
    return [cluster(name).capacity(cpu=20) for name in ("m1", "m2")]


class Asking:
    """Asks commands about files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.flags: list[str] = []

    def put(self, **objects: Sequence[Manifest]) -> Asking:
        default = {
            "clusters": [each.manifest() for each in two()],
            "bindings": [web().manifest()],
        }
        for kind, manifests in {**default, **objects}.items():
            path = self._folder / f"{kind}.yaml"
            path.write_text("\n".join(f"---\n{json.dumps(each)}" for each in manifests))
            self.flags.append(f"--{kind}={path}")
        return self

    def __call__(self, *arguments: str) -> Ran:
        return run(*arguments, *self.flags)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


@pytest.fixture
def captured(asking: Asking, tmp_path: Path) -> Path:
    path = tmp_path / "capture.json"
    assert asking.put()("explain", "-A", "--capture", str(path)).status == 0
    return path


@pytest.mark.parametrize("command", [("explain", "-A"), *EVERY_BINDING], ids=lambda each: each[0])
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"whole": ["Cluster"]}, "--replay: not all ResourceBindings were captured"),
        ({"refused": {"ClusterResourceBinding": "they may not be listed"}}, "they may not be listed"),
    ],
)
def test_a_capture_without_all_bindings_answers_nothing_about_all(
    captured: Path, changed: Manifest, problem: str, command: Sequence[str]
) -> None:
    assert run(*command, "--replay", str(captured)).status in {0, 1}
    captured.write_text(json.dumps({**capture.read(str(captured)), **changed}))

    ran = run(*command, "--replay", str(captured))

    assert (ran.status, ran.out) == (2, "")
    assert problem in ran.err


def test_a_capture_of_one_binding_still_answers_about_it(captured: Path) -> None:
    captured.write_text(json.dumps({**capture.read(str(captured)), "whole": ["Cluster"]}))

    assert run("explain", "-n", "shop", "web-deployment", "--replay", str(captured)).status == 0
    ran = run("why-not", "-n", "shop", "web-deployment", "m1", "--replay", str(captured), "-o", "json")
    assert ran.fields["notes"] == [
        "Not all bindings were read, so it is not known how many others the changes concern."
    ]


@pytest.mark.parametrize("command", EVERY_BINDING, ids=lambda each: each[0])
@pytest.mark.parametrize("kind", ["clusters", "bindings"])
def test_an_answer_names_what_cannot_be_read(asking: Asking, command: Sequence[str], kind: str) -> None:
    broken = cluster("m3") if kind == "clusters" else binding("api", namespace="shop")
    manifest: Manifest = broken.manifest()
    manifest["spec"] |= {"taints": "none"} if kind == "clusters" else {"clusters": "m1"}
    whole = [each.manifest() for each in two()] if kind == "clusters" else [web().manifest()]

    ran = asking.put(**{kind: [*whole, manifest]})(*command, "-o", "json")

    assert ran.status == 2
    [note] = [each for each in ran.fields["notes"] if each.startswith("not judged, as it cannot be read: ")]
    assert f"{manifest['kind']} " in note


def test_a_binding_that_cannot_be_read_is_counted_as_unknown(asking: Asking) -> None:
    broken = binding("api", namespace="shop").manifest()
    broken["spec"]["clusters"] = "m1"

    ran = asking.put(bindings=[web().manifest(), broken])("explain", "-A", "-o", "json")

    assert (ran.status, ran.fields["counts"]) == (2, {"unknown": 1, "placed": 1})


@pytest.mark.parametrize(
    ("kind", "manifest", "field"),
    [
        (
            "policies",
            {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": "PropagationPolicy",
                "metadata": {"name": "api", "namespace": "shop"},
                "spec": {"resourceSelectors": "all"},
            },
            "spec.resourceSelectors",
        ),
        ("quotas", {**QUOTA, "spec": {"overall": {"cpu": "two"}}}, "spec.overall.cpu"),
    ],
)
def test_a_policy_or_quota_of_a_file_that_cannot_be_read_is_a_problem(
    asking: Asking, kind: str, manifest: Manifest, field: str
) -> None:
    ran = asking.put(**{kind: [manifest]})("explain", "-n", "shop", "web-deployment")

    assert (ran.status, field in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("explain", "--policy", "shop/other"), "no binding is of the policy shop/other, and policies were not read"),
        (("survive", "--policy", "other"), "no binding is of the policy other, and policies were not read"),
        (("survive", "-n", "shopp"), "namespace shopp does not exist. Nearest: shop"),
        (("rebalance", "--max-moves", "9", "-n", "shopp"), "namespace shopp does not exist. Nearest: shop"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_has_is_no_empty_answer(
    asking: Asking, command: Sequence[str], error: str
) -> None:
    ran = asking.put()(*command)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {error}")


def test_a_policy_that_was_read_may_have_no_bindings(asking: Asking) -> None:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "other", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}},
    }
    ran = asking.put(policies=[policy])("survive", "--policy", "shop/other", "--no-remedies")

    assert ran.status == 0
    assert ran.out.startswith("Survive: no binding that was asked about is placed")


def test_a_claimed_template_of_any_kind_without_a_binding_is_in_the_overview(asking: Asking) -> None:
    def template(name: str, **labels: str) -> Manifest:
        metadata = {"name": name, "namespace": "shop", "labels": labels}
        return {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata}

    claimed = template("claimed", **{POLICY_ID_LABEL: "gold"})
    ran = asking.put(workloads=[claimed, template("other")])("explain", "-A", "-o", "json")

    [group] = ran.fields["groups"]
    assert (ran.status, [each["name"] for each in group["bindings"]]) == (1, ["claimed"])


def test_no_change_helps_a_binding_that_no_policy_claims(asking: Asking) -> None:
    released = (
        binding("web", namespace="shop").replicas(4, cpu=1).names("m1").dynamic_weight().on(m1=4).applied()
    )
    manifest = released.manifest()
    manifest["metadata"]["labels"] = {}

    ran = asking.put(bindings=[manifest])("why-not", "-n", "shop", "web-deployment", "m2", "-o", "json")

    assert (ran.status, ran.fields["remedies"]) == (1, [])
    assert ran.fields["causes"][0]["code"] == "Released"


def test_what_a_cluster_without_a_resource_summary_needs_is_no_node(asking: Asking) -> None:
    asked = binding("api", namespace="shop").replicas(2, cpu=1).names("m1").dynamic_weight()
    clusters = [cluster("m1").without_summary().manifest(), two()[1].manifest()]

    asking.put(clusters=clusters, bindings=[asked.manifest()])
    ran = asking("why-not", "-n", "shop", "api-deployment", "m1", "-o", "json")

    [edit] = [
        each for remedy in ran.fields["remedies"] for each in remedy["edits"] if each["op"] == "addCapacity"
    ]
    assert edit["instead"].startswith("m1 has no status.resourceSummary, which counts as none free")


def test_amounts_that_a_quota_assigns_to_members_are_not_judged_where_replicas_start(asking: Asking) -> None:
    asking.put(quotas=[QUOTA])

    plan = asking("plan", "--without", "m1", "-o", "json").fields
    assert any("static assignments of the quota shop/team" in each for each in plan["notes"])
    found = asking("why-not", "-n", "shop", "web-deployment", "m2", "--replicas", "3", "-o", "json").fields
    assert "Not judged: the quota team assigns amounts to m2, which members enforce." in found["notes"]


def test_whether_a_customization_counts_replicas_of_another_kind_is_not_known_from_files(
    asking: Asking, tmp_path: Path
) -> None:
    changed = tmp_path / "widget.yaml"
    metadata = {"name": "w", "namespace": "shop"}
    changed.write_text(json.dumps({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": metadata}))
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "w", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Widget"}], "placement": {}},
    }

    ran = asking.put(policies=[policy])("plan", "-f", str(changed), "-o", "json")

    text = "whether a ResourceInterpreterCustomization counts replicas of Widget was not read"
    assert text in ran.fields["notes"]


def test_an_eviction_from_a_cluster_that_is_gone_is_no_copy_that_survives(asking: Asking) -> None:
    manifest = web().manifest()
    tasks = [{"fromCluster": name, "reason": "TaintUntolerated"} for name in ("gone", "m2")]
    manifest["spec"] |= {"clusters": [{"name": "m1", "replicas": 4}], "gracefulEvictionTasks": tasks}

    ran = asking.put(bindings=[manifest])("survive", "--no-remedies", "-o", "json")

    [note] = [each for each in ran.fields["notes"] if "until an eviction ends" in each]
    assert note.endswith("shop/web-deployment on m2")


def test_a_cluster_in_two_zones_that_no_other_cluster_has_is_named(asking: Asking) -> None:
    zones = {"m1": ["z1"], "m2": ["z2"], "m3": ["z3", "z4"]}
    clusters = [cluster(name).capacity(cpu=9).zones(*each).manifest() for name, each in zones.items()]

    ran = asking.put(clusters=clusters)("survive", "--domain", "zone", "--no-remedies", "-o", "json")

    assert "1 cluster in several zones, lost with none of them (--spanning lost): m3" in ran.fields["notes"]


def test_what_follows_others_is_not_called_suspended_by_a_rebalance(asking: Asking) -> None:
    follower = binding("settings", namespace="shop").placement(None).manifest()
    follower["metadata"]["labels"] = {}

    ran = asking.put(bindings=[follower])("rebalance", "--max-moves", "9")

    assert "1 without a placement of their own" in ran.out


@pytest.mark.parametrize(("ready", "is_there"), [("False", True), ("True", False)])
def test_what_a_cluster_reported_before_it_was_lost_is_not_counted_as_running(
    asking: Asking, ready: str, is_there: bool
) -> None:
    manifest = web().manifest()
    status = {
        "replicas": 2,
        "readyReplicas": 2,
        "updatedReplicas": 2,
        "observedGeneration": 1,
        "generation": 1,
    }
    manifest["status"]["aggregatedStatus"] = [
        {"clusterName": name, "applied": True, "health": "Healthy", "status": status} for name in ("m1", "m2")
    ]
    clusters = [two()[0], *([two()[1].condition("Ready", ready)] if is_there else [])]

    asking.put(clusters=[each.manifest() for each in clusters], bindings=[manifest])
    ran = asking("explain", "-A", "-o", "json")

    assert ran.fields["replicas"] == {"wanted": 4, "placed": 4, "running": 2, "unknown": 2}
