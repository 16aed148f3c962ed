"""What is known of requests that a cluster does not start: how it adds up, and when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import cluster
from karmada_scheduler_plugins._start_evidence import LONGEST_PAUSE, MOST_SHAPES, StartEvidence, without_node

PAUSE = 300.0
NAME = "m1"


def shape(**request: Any) -> ReplicaRequirements:
    return ReplicaRequirements({name: quantity.parse(str(amount)) for name, amount in request.items()})


def member(*, nodes: int | None = None, **allocated: Any) -> Cluster:
    made = cluster(NAME).capacity(cpu=100, memory="400Gi").allocated(allocated)
    return (made if nodes is None else made.ready_nodes(nodes)).build()


def limit(evidence: StartEvidence, wanted: ReplicaRequirements, now: float, **amounts: Any) -> int | None:
    """Return how many replicas more the cluster may take, None without evidence."""
    return evidence.limits(wanted, Snapshot.of([member(**amounts)]), now).get(NAME)


def learned(*shapes: ReplicaRequirements, **allocated: Any) -> StartEvidence:
    evidence = StartEvidence(PAUSE)
    for each in shapes:
        evidence.learn(member(**allocated), each, 0)
    return evidence


def test_evidence_about_a_smaller_request_replaces_that_about_larger_ones() -> None:
    evidence = learned(shape(cpu=4, memory="8Gi"), shape(cpu=8, memory="8Gi"), shape(cpu=2))
    assert len(evidence.known.get(NAME, ())) == 1
    assert limit(evidence, shape(cpu=2), 0) == 0
    assert limit(evidence, shape(cpu="1999m", memory="99Gi"), 0) is None


def test_evidence_without_requests_holds_for_all() -> None:
    evidence = learned(shape())
    assert limit(evidence, shape(cpu=1), 0) == 0
    assert limit(learned(shape(cpu=1)), shape(), 0) is None


def test_so_many_requests_that_do_not_cover_each_other_are_kept_of_a_cluster() -> None:
    sizes = [(cpu, 100 - cpu) for cpu in range(1, 2 * MOST_SHAPES)]
    evidence = learned(*(shape(cpu=cpu, memory=f"{memory}Gi") for cpu, memory in sizes))
    assert len(evidence.known.get(NAME, ())) == MOST_SHAPES
    assert limit(evidence, shape(cpu=sizes[0][0], memory=f"{sizes[0][1]}Gi"), 0) is None
    assert limit(evidence, shape(cpu=sizes[-1][0], memory=f"{sizes[-1][1]}Gi"), 0) == 0


@pytest.mark.parametrize(("started", "known"), [(2, 1), (4, 0), (8, 0)])
def test_a_start_ends_the_evidence_about_requests_that_are_not_larger(started: int, known: int) -> None:
    evidence = learned(shape(cpu=4))
    evidence.started(NAME, shape(cpu=started))
    assert len(evidence.known.get(NAME, ())) == known


def test_a_trial_is_due_after_a_pause_that_is_doubled_up_to_an_hour() -> None:
    evidence, now, pause = learned(shape(cpu=4)), 0.0, PAUSE
    for _ in range(8):
        assert limit(evidence, shape(cpu=4), now + pause - 1) == 0
        assert limit(evidence, shape(cpu=8), now + pause) == 1
        now += pause
        evidence.tried(NAME, shape(cpu=8), now)
        assert limit(evidence, shape(cpu=4), now) == 0
        pause = min(2 * pause, LONGEST_PAUSE)
    assert pause == LONGEST_PAUSE


def test_a_replica_that_is_smaller_or_comes_too_early_is_no_trial() -> None:
    evidence = learned(shape(cpu=4))
    evidence.tried(NAME, shape(cpu=4), PAUSE - 1)
    evidence.tried(NAME, shape(cpu=2), PAUSE)
    assert limit(evidence, shape(cpu=4), PAUSE) == 1


def test_while_replicas_wait_no_trial_is_due_and_the_pause_stays_as_long() -> None:
    evidence = learned(shape(cpu=4))
    evidence.tried(NAME, shape(cpu=4), PAUSE)
    evidence.learn(member(), shape(cpu=4), 2 * PAUSE)
    assert limit(evidence, shape(cpu=4), 4 * PAUSE - 1) == 0
    assert limit(evidence, shape(cpu=4), 4 * PAUSE) == 1


def test_evidence_that_nobody_tries_limits_nothing_after_two_pauses_and_the_next_pause_is_longer() -> None:
    evidence = learned(shape(cpu=4))
    assert limit(evidence, shape(cpu=4), 2 * PAUSE - 1) == 1
    assert limit(evidence, shape(cpu=4), 2 * PAUSE) == quantity.MAX_INT32
    evidence.learn(member(), shape(cpu=4), 2 * PAUSE)
    assert limit(evidence, shape(cpu=4), 4 * PAUSE - 1) == 0
    assert limit(evidence, shape(cpu=4), 4 * PAUSE) == 1


def test_evidence_ends_if_the_clock_is_set_back() -> None:
    assert limit(learned(shape(cpu=4)), shape(cpu=4), -1) is None


@pytest.mark.parametrize(
    ("allocated", "number"),
    [
        pytest.param({"cpu": 50}, 0, id="as then"),
        pytest.param({"cpu": 60}, 0, id="more"),
        pytest.param({"cpu": 47}, 0, id="too little"),
        pytest.param({"cpu": 41}, 2, id="two"),
        pytest.param({"cpu": 50, "memory": "0"}, 4, id="another resource"),
    ],
)
def test_what_has_become_free_since_may_be_used(allocated: dict[str, Any], number: int) -> None:
    evidence = learned(shape(cpu=4, memory="8Gi"), cpu=50, memory="32Gi")
    assert limit(evidence, shape(cpu=4, memory="8Gi"), 1, **{"memory": "32Gi", **allocated}) == number


@pytest.mark.parametrize(("nodes", "number"), [(8, 2), (7, 2), (6, 0), (None, 0)])
def test_nothing_has_become_free_if_fewer_nodes_are_ready_than_then(nodes: int | None, number: int) -> None:
    evidence = learned(shape(cpu=4), nodes=7, cpu=50)
    assert limit(evidence, shape(cpu=4), 1, nodes=nodes, cpu=42) == number
    assert evidence.has_freed(member(nodes=nodes, cpu=42)) == (number > 0)


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        pytest.param({"cpu": "300m", "memory": "415Mi"}, 0, id="the same"),
        pytest.param({"cpu": "400m", "memory": "267Mi"}, 0, id="more of one and less of the other"),
        pytest.param({"cpu": "75m", "memory": "104Mi"}, 0, id="a quarter"),
        pytest.param({"cpu": "74m", "memory": "415Mi"}, None, id="less than a quarter of one"),
        pytest.param({"cpu": "400m"}, None, id="none of one"),
    ],
)
def test_with_care_requests_of_at_least_a_quarter_count(wanted: dict[str, Any], number: int | None) -> None:
    evidence = learned(shape(cpu="300m", memory="415Mi"))
    snapshot = Snapshot.of([member()])
    assert evidence.limits(shape(**wanted), snapshot, PAUSE - 1, careful=True).get(NAME) == number
    larger = wanted == {"cpu": "300m", "memory": "415Mi"}
    assert (NAME in evidence.limits(shape(**wanted), snapshot, PAUSE - 1)) == larger
    assert (NAME in evidence.limits(shape(**wanted), snapshot, PAUSE, careful=True)) == larger


def test_without_requests_places_among_the_pods_are_counted() -> None:
    evidence = learned(shape(cpu=0), pods=10)
    assert limit(evidence, shape(), 1, pods=7) == 3


def test_a_cluster_that_does_not_exist_has_no_limit() -> None:
    evidence = learned(shape(cpu=4))
    assert evidence.limits(shape(cpu=4), Snapshot.of([cluster("m2").build()]), 0) == {}
    evidence.known.pop(NAME)
    assert len(evidence.known.get(NAME, ())) == 0


@pytest.mark.parametrize(
    ("allocating", "count"),
    [
        ({"cpu": 9, "pods": 9, "memory": "99Gi"}, 2),
        ({"cpu": 9, "pods": 1, "memory": "99Gi"}, 1),
        ({"cpu": 9, "pods": 9}, 0),
        ({"cpu": 3, "pods": 9, "memory": "99Gi"}, 0),
        ({}, 0),
    ],
)
def test_no_more_pods_wait_for_a_node_than_the_cluster_reports(
    allocating: dict[str, Any], count: int
) -> None:
    found = cluster(NAME).allocating(allocating).build()
    assert without_node(found, shape(cpu=4, memory="8Gi")) == count


def test_without_a_summary_no_pod_is_known_to_wait() -> None:
    assert without_node(cluster(NAME).without_summary().build(), shape(cpu=1)) == 0
