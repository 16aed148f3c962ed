"""What runs on the clusters of a binding: applied, ready, healthy, and whose message says why not."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.state.model import Applied, BindingState, ClusterStatus, StateName
from karmada_advisor.state.reading import Facts, state_of
from karmada_scheduler.testing import BindingBuilder, binding
from tests.unit.state.test_reading import DONE, placed, ready


def rows(*items: dict[str, Any], **clusters: int) -> tuple[ClusterStatus, ...]:
    made = placed(4, condition=DONE, **(clusters or {"m1": 4}))
    made.manifest()["status"]["aggregatedStatus"] = list(items)
    return state_of(made.build(), made.manifest(), Facts(cluster_of=ready)).rows


def test_a_work_is_applied_refused_or_not_reported() -> None:
    found = rows(
        {"clusterName": "m1", "applied": True, "health": "Healthy", "status": {"readyReplicas": 2, "replicas": 2}},
        {"clusterName": "m2", "applied": False, "appliedMessage": 'denied by policy "no-latest"'},
        {"clusterName": "m3", "applied": False},
        m1=2, m2=1, m3=1,
    )  # fmt: skip

    assert [each.applied for each in found] == [Applied.YES, Applied.NO, Applied.NOT_REPORTED]
    assert [each.reason for each in found] == ["", "NotApplied", "NotOurs"]
    assert (found[0].ready, found[1].message) == (2, 'denied by policy "no-latest"')


def test_a_refusal_reads_the_same_with_and_without_the_prefix_of_a_retry() -> None:
    refused = "the server could not find the requested resource"
    found = [
        rows({"clusterName": "m1", "applied": False, "appliedMessage": text})[0].message
        for text in (refused, f"Failed to apply all manifests (0/1): {refused}")
    ]
    assert found == [refused, refused]


def test_an_unhealthy_workload_says_how_many_are_ready() -> None:
    [row] = rows(
        {"clusterName": "m1", "applied": True, "health": "Unhealthy", "status": {"unavailableReplicas": 4}}
    )

    assert (row.reason, row.ready, row.problem) == ("Unhealthy", 0, "applied, 0 of 4 ready on m1")


def test_an_unhealthy_workload_without_counts_is_unhealthy() -> None:
    [row] = rows({"clusterName": "m1", "applied": True, "health": "Unhealthy", "status": {"active": 1}})

    assert row.problem == "applied, but unhealthy on m1"


def test_a_cluster_that_is_not_ready_or_gone_is_named_first() -> None:
    made = placed(m1=2, m2=2)
    down = {"type": "Ready", "status": "False", "reason": "ClusterNotReachable", "message": "cluster is not reachable",
            "lastTransitionTime": "2026-11-24T09:30:00Z"}  # fmt: skip
    clusters = {"m1": {"status": {"conditions": [down]}}}

    found = state_of(made.build(), made.manifest(), Facts(cluster_of=clusters.get))

    assert found.name is StateName.NOT_RUNNING
    assert [each.reason for each in found.rows] == ["ClusterNotReady", "ClusterMissing"]
    assert found.text == (
        "cluster m1 is not ready since 2026-11-24T09:30:00Z (ClusterNotReachable): cluster is not reachable; "
        "cluster m2 does not exist"
    )


def reported(name: str, **status: Any) -> dict[str, Any]:
    return {"clusterName": name, "applied": True, "health": "Healthy", "status": status}


@pytest.mark.parametrize(
    ("status", "reason", "problem"),
    [
        ({"replicas": 2, "readyReplicas": 2}, "OtherNumber", "m1 runs 2 instead of 4 replicas"),
        ({"replicas": 7, "updatedReplicas": 7}, "OtherNumber", "m1 runs 7 instead of 4 replicas"),
        ({"observedGeneration": 3}, "OtherNumber", "m1 runs 0 instead of 4 replicas"),
        (
            {"replicas": 5, "updatedReplicas": 3},
            "RollingOut",
            "m1 runs 5 instead of 4 replicas: a roll-out has not ended, 3 of 5 are updated",
        ),
        (
            {"replicas": 2, "updatedReplicas": 2, "generation": 4, "observedGeneration": 3},
            "RollingOut",
            "m1 runs 2 instead of 4 replicas: its controller has not seen generation 4",
        ),
        ({"replicas": 4, "readyReplicas": 4}, "", ""),
        ({"readyReplicas": 4}, "", ""),
        ({}, "", ""),
    ],
)
def test_another_number_than_assigned_is_a_standstill_unless_a_roll_out_has_not_ended(
    status: dict[str, Any], reason: str, problem: str
) -> None:
    [row] = rows(reported("m1", **status))

    assert (row.reason, row.problem) == (reason, problem)


def test_a_copy_of_an_older_template_is_named() -> None:
    behind, current = (
        reported(name, replicas=count, resourceTemplateGeneration=generation)
        for name, count, generation in (("m1", 2, 1), ("m2", 5, 7))
    )

    found = rows(behind, current, m1=5, m2=5)

    assert [row.problem for row in found] == [
        "m1 runs 2 instead of 5 replicas, by generation 1 of the template; others have 7", "",
    ]  # fmt: skip


def test_a_cluster_with_the_assigned_number_of_an_older_template_has_not_ended_its_roll_out() -> None:
    behind, current = (
        reported(name, replicas=5, updatedReplicas=5, readyReplicas=5, resourceTemplateGeneration=generation)
        for name, generation in (("m1", 3), ("m2", 7))
    )

    found = rows(behind, current, m1=5, m2=5)

    assert [(row.reason, row.problem) for row in found] == [
        ("RollingOut", "m1 runs generation 3 of the template; others have 7"), ("", ""),
    ]  # fmt: skip


def state(
    made: BindingBuilder, *items: dict[str, Any], applied: str = "", kind: str = "Deployment"
) -> BindingState:
    manifest = made.manifest()
    manifest["spec"]["resource"] |= {"kind": kind, "apiVersion": "apps/v1"}
    manifest["status"]["aggregatedStatus"] = list(items)
    if applied:
        manifest["status"]["conditions"].append({"type": "FullyApplied", "status": applied})
    return state_of(made.build(), manifest, Facts(cluster_of=ready))


@pytest.mark.parametrize("kind", ["DaemonSet", "ConfigMap", "Rollout"])
def test_kinds_whose_replicas_nobody_assigns_are_not_accused_of_another_number(kind: str) -> None:
    made = binding("web").duplicated().on("m1").applied().condition(**DONE).observed_generation(1)

    assert state(made, reported("m1", replicas=3), kind=kind).name is StateName.PLACED


def test_a_cluster_without_a_report_is_not_running_if_others_have_reported_or_karmada_says_so() -> None:
    silent = state(placed(4, m1=2, m2=2), reported("m2", replicas=2))
    failed = state(placed(4, m1=2, m2=2), applied="False")

    assert [(found.name, found.reason) for found in (silent, failed)] == [
        (StateName.NOT_RUNNING, "NotOurs")
    ] * 2
    assert state(placed(4, m1=2, m2=2)).name is StateName.PLACED


def test_fully_applied_false_is_not_running_although_all_clusters_have_reported() -> None:
    assert state(placed(), reported("m1", replicas=4), applied="False").name is StateName.NOT_RUNNING


def test_a_job_that_has_failed_is_not_running_and_one_that_is_complete_is() -> None:
    def job(type_: str) -> BindingState:
        return state(
            placed(),
            reported("m1", conditions=[{"type": type_, "status": "True", "reason": "Why"}]),
            kind="Job",
        )

    assert [job(each).text for each in ("Failed", "Complete")] == ["failed on m1: Why", ""]


def test_a_kind_that_karmada_does_not_divide_runs_as_a_whole_in_every_cluster() -> None:
    found = state(placed(3, m1=2, m2=1), reported("m1"), reported("m2"), kind="FlinkDeployment")

    assert found.name is StateName.NOT_RUNNING
    assert "m1 runs all: 2 of 3 are assigned, and every cluster runs the whole of it" in found.text


def test_a_number_in_a_cluster_in_pull_mode_depends_on_its_agent() -> None:
    made = placed()
    made.manifest()["status"]["aggregatedStatus"] = [reported("m1", replicas=1)]
    pull = {"m1": {"spec": {"syncMode": "Pull"}}}

    found = state_of(made.build(), made.manifest(), Facts(cluster_of=pull.get))

    assert found.text.endswith("m1 is in Pull mode: nothing arrives without a karmada-agent there")


def test_a_suspended_cluster_has_its_number_and_one_that_is_not_ready_may_have_changed() -> None:
    made = placed()
    made.manifest()["spec"]["suspension"] = {"dispatching": True}
    down = {"m1": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}}
    [row] = state(made, reported("m1", replicas=1)).rows
    [old] = state_of(made.build(), made.manifest(), Facts(cluster_of=down.get)).rows

    assert row.problem == "dispatching to m1 is suspended; m1 runs 1 instead of 4 replicas"
    assert old.problem == "cluster m1 is not ready (False); what it has reported may be old"


def test_an_eviction_from_a_cluster_that_is_gone_leaves_nothing_running_there() -> None:
    gone, here = (state(placed().evicted_from(name)) for name in ("north", "m2"))

    assert (gone.name, [row.name for row in gone.rows]) == (StateName.PLACED, ["m1"])
    assert (here.name, [row.name for row in here.rows]) == (StateName.MOVING, ["m1", "m2"])


def test_clusters_that_were_not_read_are_not_missing() -> None:
    made = placed(m1=4)

    assert state_of(made.build(), made.manifest(), Facts()).name is StateName.PLACED
