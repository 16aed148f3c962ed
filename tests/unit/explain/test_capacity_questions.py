"""Estimators that failed, bursts of decisions, and replicas that count as their own capacity."""

from __future__ import annotations

import pytest

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.causes_capacity import may_be_overcommitted
from karmada_advisor.explain.situation import Situation
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.views.explanation_tables import limited_by
from karmada_scheduler.api.binding import footprint
from karmada_scheduler.framework import ReplicaEstimate
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, gates
from tests.unit.explain.asking import causes, codes, explained, inputs_of, placement, primary
from tests.unit.explain.test_select_questions import with_cpu

SCHEDULED = "2026-11-22T10:00:00Z"


def test_a_recorded_decision_has_the_estimators_that_failed_and_the_age_of_the_summaries() -> None:
    record = {
        "at": SCHEDULED,
        "targets": {"m1": 2},
        "capacity": {"general": {"clusters": 5, "oldestSeconds": 6.2}, "accurate": {"clusters": 4}},
        "fallbacks": [{"why": "no answer within 3s", "count": 1, "names": ["m2"]}],
    }
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().on(m1=2).applied().last_scheduled(SCHEDULED)
    inputs = replace(inputs_of(asked, *with_cpu(m1=9)), process=ProcessView(record=record))

    [found] = causes_of_binding(Situation(inputs))

    assert found.code == "EstimatorFailed"
    assert found.evidence["oldestSummarySeconds"] == 6.2
    assert found.evidence["estimatorsThatCounted"] == 4
    assert found.evidence["decidedAt"] == SCHEDULED
    assert "the estimator of m2 failed (no answer within 3s)" in found.text
    assert "the oldest 6.2 s old" in found.text


def burst(count: int, *, seconds: int = 0) -> list[BindingBuilder]:
    """Return bindings of 4 cpu each that were scheduled on m1 within some seconds."""
    return [
        binding(f"web-{index}")
        .replicas(4, cpu=1)
        .dynamic_weight()
        .on(m1=4)
        .applied()
        .last_scheduled(f"2026-11-22T10:00:{index * seconds // count:02}Z")
        for index in range(count)
    ]


def reported(*, cpu: int, used: int = 0, pending: int = 0) -> ClusterBuilder:
    """Return m1 with a summary."""
    made = cluster("m1").capacity(cpu=cpu, pods=1000)
    return made.allocated({"cpu": used}).allocating({"cpu": pending})


def test_a_burst_of_decisions_counts_on_the_same_capacity() -> None:
    """karmada-io/karmada#1385, #6783"""
    first, *others = burst(8, seconds=6)

    explanation = explained(first, reported(cpu=10), cluster("m2").capacity(cpu=4), others=others)

    found = explanation.causes[0]
    assert found.code == "BurstOvercommit"
    assert (found.evidence["cluster"], found.evidence["resource"]) == ("m1", "cpu")
    assert (found.evidence["asked"], found.evidence["free"]) == ("32", "10")
    assert found.evidence["bindings"] == 8
    assert found.evidence["gate"] == "SchedulingOvercommitProtection"


def test_the_gate_counts_the_decisions_of_a_burst() -> None:
    """karmada-io/karmada#1385, #6783"""
    asked = binding("web-7").replicas(4, cpu=1).dynamic_weight()
    others = [footprint(each, each.spec.clusters[0]) for each in (one.build() for one in burst(2))]
    fleet = [reported(cpu=10), cluster("m2").capacity(cpu=9)]

    without = explained(asked, *fleet)
    protected = explained(
        asked, *fleet, gates=gates(SchedulingOvercommitProtection=True), assumed={"m1": others}
    )

    assert placement(without) == {"m1": 2, "m2": 2}
    assert placement(protected) == {"m1": 1, "m2": 3}


def test_pending_pods_show_the_burst_after_the_report() -> None:
    """karmada-io/karmada#1385, #6783"""
    first, *others = burst(3)

    found = primary(first, reported(cpu=10, used=8, pending=4), others=others)

    assert found.code == "BurstOvercommit"
    assert (found.evidence["asked"], found.evidence["free"]) == ("12", "10")


def test_a_report_that_is_older_than_the_burst_does_not_have_it() -> None:
    """karmada-io/karmada#1385, #6783"""
    first, *others = burst(3)
    fields = {"manager": "karmada-agent", "subresource": "status", "time": "2026-11-22T09:59:55Z"}
    older, newer = reported(cpu=20, used=10), reported(cpu=20, used=10)
    older.manifest()["metadata"]["managedFields"] = [fields]
    newer.manifest()["metadata"]["managedFields"] = [fields | {"time": "2026-11-22T10:00:05Z"}]

    assert primary(first, older, others=others).code == "BurstOvercommit"
    assert causes(first, newer, others=others) == []


@pytest.mark.parametrize(
    ("others", "gate"),
    [(burst(3)[1:], True), ([], False), ([burst(2)[1].last_scheduled("2026-11-22T09:00:00Z")], False)],
    ids=["the gate", "alone", "an hour before"],
)
def test_decisions_that_saw_each_other_are_no_burst(others: list[BindingBuilder], gate: bool) -> None:
    found = causes(
        burst(3)[0], reported(cpu=10), others=others, gates=gates(SchedulingOvercommitProtection=gate)
    )

    assert codes(found) == []


def test_placed_replicas_count_as_capacity_whatever_they_request_now() -> None:
    """karmada-io/karmada#6771"""
    # They were placed with 500m, and each of them requests 2 cpu now.
    asked = binding("web").replicas(4, cpu=2).dynamic_weight().on(m1=4).applied().last_scheduled(SCHEDULED)

    explanation = explained(asked, reported(cpu=4, used=2))

    assert placement(explanation) == {"m1": 4}
    [found] = explanation.causes
    assert found.code == "OwnReplicasCount"
    assert (found.evidence["replicas"], found.evidence["request"]) == (4, "2")
    assert (found.evidence["asked"], found.evidence["free"]) == ("8", "4")
    assert explanation.trigger is not None
    assert [(each.name, each.replicas) for each in explanation.trigger.on_rebalance or ()] == [("m1", 4)]
    [row] = explanation.clusters
    assert row.capacity is not None
    assert (row.capacity.available, row.capacity.own, row.capacity.allocatable) == (5, 4, 1)


def test_pods_that_are_pending_after_the_change_show_it() -> None:
    """karmada-io/karmada#6771"""
    asked = binding("web").replicas(4, cpu=2).dynamic_weight().on(m1=4).applied().last_scheduled(SCHEDULED)

    found = primary(asked, reported(cpu=10, used=9, pending=2))

    assert found.code == "OwnReplicasCount"
    assert (found.evidence["asked"], found.evidence["free"]) == ("8", "7")


def test_replicas_that_fit_are_no_cause() -> None:
    asked = binding("web").replicas(4, cpu=2).dynamic_weight().on(m1=4).applied().last_scheduled(SCHEDULED)

    assert causes(asked, reported(cpu=10, used=8)) == []


def test_duplicated_replicas_are_not_counted_at_all() -> None:
    asked = binding("web").replicas(4, cpu=2).duplicated().on(m1=4).applied().last_scheduled(SCHEDULED)

    assert causes(asked, reported(cpu=4, used=2)) == []


def test_other_bindings_matter_if_a_cluster_reports_too_many_requests() -> None:
    asked = burst(1)[0].build()

    assert may_be_overcommitted(asked, [reported(cpu=10, used=8, pending=4).build()])
    assert not may_be_overcommitted(asked, [reported(cpu=10, used=8).build()])
    assert not may_be_overcommitted(
        binding("api").replicas(1, cpu=1).build(), [reported(cpu=1, used=2).build()]
    )


def graded(*, nodes: int) -> ClusterBuilder:
    """Return a cluster with 12 cpu on nodes of 1 cpu."""
    return cluster("m1").capacity(cpu=12, pods=100).grade(0, nodes=nodes, cpu=1).grade(1, nodes=0, cpu=4)


@pytest.mark.parametrize(
    ("found", "bound", "shown"),
    [
        (
            graded(nodes=12),
            "resource models: no node above grade 0",
            "resource models: no node above grade 0",
        ),
        (graded(nodes=0), "resource models: no free node", "resource models: no free node"),
        (cluster("m1").capacity(cpu=1, pods=100), "resource summary", "cpu 1 free"),
    ],
)
def test_capacity_has_the_source_that_bounded_it(found: ClusterBuilder, bound: str, shown: str) -> None:
    asked = binding("web").replicas(2, cpu=2).dynamic_weight()
    enabled = gates(CustomizedClusterResourceModeling=True)

    explanation = explained(asked, found, gates=enabled)

    [row] = explanation.clusters
    assert row.capacity is not None
    assert (row.capacity.available, row.capacity.bounded_by, limited_by(row)) == (0, bound, shown)
    assert explanation.causes[0].evidence["clusters"]["m1"]["boundedBy"] == bound


def test_capacity_that_assumed_workloads_take_says_so() -> None:
    asked = binding("web").replicas(4, cpu=1).dynamic_weight()
    enabled = gates(SchedulingOvercommitProtection=True)
    taken = binding("other").replicas(3, cpu=1).on(m1=3).build()
    other = footprint(taken, taken.spec.clusters[0])
    inputs = replace(inputs_of(asked, *with_cpu(m1=5), gates=enabled), assumed={"m1": [other]})

    cell = Situation(inputs).now.capacity["m1"]

    assert (cell.available, cell.bounded_by) == (2, "assumed workloads")


class Holds:
    """Holds most of m1 for another binding."""

    name = "Holds"

    def estimate_replicas(self, _context: object, /) -> ReplicaEstimate:
        return ReplicaEstimate(less={"m1": 7}, most={"m2": 100}, reason="held for prod/train-9")


def test_capacity_that_a_plugin_holds_has_its_name_and_reason() -> None:
    asked = binding("web").replicas(6, cpu=1).dynamic_weight()
    found = explained(asked, *with_cpu(m1=9, m2=9), plugins=[Holds])
    rows = {row.name: row for row in found.clusters}
    held, plain = rows["m1"].capacity, rows["m2"].capacity
    assert held is not None
    assert plain is not None
    assert (held.allocatable, held.source, held.bounded_by) == (2, "Holds", "EstimateReplicas of Holds")
    assert limited_by(rows["m1"]) == "held for prod/train-9"
    assert [(each.estimator, each.replicas) for each in held.estimates] == [
        ("general-estimator", 9),
        ("Holds", 2),
    ]
    assert (plain.allocatable, plain.source) == (9, "general-estimator")
    assert "Holds, general estimator" in found.capacity_note


def test_a_binding_that_fits_nowhere_because_of_a_plugin_says_so() -> None:
    asked = binding("web").replicas(12, cpu=1).dynamic_weight()
    cause = primary(asked, *with_cpu(m1=9, m2=9), plugins=[Holds])
    assert cause.code == "NotEnoughRoom"
    assert cause.evidence["clusters"]["m1"]["limitedBy"] == "held for prod/train-9"
    assert cause.evidence["clusters"]["m1"]["boundedBy"] == "EstimateReplicas of Holds"
