"""What runs on the clusters of a binding: applied, ready, healthy, and whose message says why not."""

from __future__ import annotations

from typing import Any

from karmada_advisor.state.model import Applied, ClusterStatus, StateName
from karmada_advisor.state.reading import Facts, state_of
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
    assert [each.reason for each in found] == ["", "NotApplied", ""]
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


def test_clusters_that_were_not_read_are_not_missing() -> None:
    made = placed(m1=4)

    assert state_of(made.build(), made.manifest(), Facts()).name is StateName.PLACED
