"""What a scheduler has stored and not reported: conditions and affinity terms."""

from __future__ import annotations

import pytest

from karmada_scheduler.config.features import RULES
from karmada_scheduler.core.classify import classify
from karmada_scheduler.core.unreported import is_undecided_result, is_unreported, unreported_term
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import BindingBuilder, binding, cluster, gates, snapshot

CLUSTERS = snapshot(
    cluster("m1").labels(zone="a"),
    cluster("m2").labels(zone="b"),
    cluster("m3").labels(zone="b").zones("z", "y"),
)
NEW_YEAR = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("reason", ["NoClusterFit", "Unschedulable", "QuotaExceeded", "SchedulerError"])
def test_a_failure_of_a_binding_with_clusters_that_needs_no_scheduling_is_over(reason: str) -> None:
    failed = binding("w").last_scheduled(NEW_YEAR).condition(type="Scheduled", status="False", reason=reason)
    assert is_unreported(failed.on(m1=2).build())
    assert not is_unreported(failed.on().build())


@pytest.mark.parametrize(
    ("condition", "unreported"),
    [
        ({"status": "True", "reason": "Success"}, False),
        ({"status": "False", "reason": "NotOurs"}, False),
        ({"status": "Unknown", "reason": "SchedulerError"}, False),
        ({"type": "FullyApplied", "status": "False", "reason": "SchedulerError"}, True),
    ],
)
def test_only_a_failure_of_a_scheduler_or_no_report_at_all_is_unreported(
    condition: dict[str, str], *, unreported: bool
) -> None:
    found = binding("w").on(m1=2).condition(**({"type": "Scheduled"} | condition))
    assert is_unreported(found.build()) == unreported
    assert not is_unreported(binding("w").on(m1=2).last_scheduled(NEW_YEAR).build())


def test_a_binding_without_clusters_was_decided_if_it_has_an_applied_placement_and_no_condition() -> None:
    assert is_undecided_result(binding("w").applied().build())
    assert not is_undecided_result(binding("w").build())
    assert not is_undecided_result(binding("w").applied().on(m1=1).build())
    failed = binding("w").applied().condition(type="Scheduled", status="False", reason="NoClusterFit")
    assert not is_undecided_result(failed.build())


def in_terms(*, observing: str = "", generation: int = 5, observed: int = 4) -> BindingBuilder:
    """Return a binding on m2, whose terms are first (m1), second (m2) and third (m2 and m3)."""
    found = binding("w").replicas(2).dynamic_weight().on(m2=2).observing(observing)
    found.term("first", "m1").term("second", "m2").term("third", "m2", "m3")
    return found.applied().generation(generation).observed_generation(observed)


def term_of(found: BindingBuilder, of: Snapshot = CLUSTERS, decisions_of: str = "1.18") -> str:
    built = found.build()
    classification = classify(built, is_gone=of.is_gone, gates=gates())
    return unreported_term(built, classification, of, RULES[decisions_of])


@pytest.mark.parametrize(
    ("found", "term"),
    [
        pytest.param(in_terms(), "second", id="the-status-has-none"),
        pytest.param(in_terms(observing="first"), "second", id="the-status-has-the-one-before"),
        pytest.param(in_terms(observing="removed"), "second", id="the-status-has-one-that-is-gone"),
        pytest.param(in_terms(observing="second"), "", id="the-status-has-it"),
        pytest.param(in_terms(observing="third"), "", id="the-status-has-another-one-that-selects-it"),
        pytest.param(in_terms(observing="first").on(m2=1, m3=1), "third", id="all-clusters-count"),
        pytest.param(in_terms(observing="second").on(m1=2), "first", id="an-earlier-one"),
        pytest.param(in_terms(observing="first").on(m1=1, m3=1), "", id="none-selects-all"),
        pytest.param(in_terms(observing="first").on(m9=2), "", id="a-cluster-does-not-exist"),
        pytest.param(in_terms(observing="first").on(), "", id="it-has-no-clusters"),
        pytest.param(in_terms(observing="first", observed=5), "", id="the-generation-is-observed"),
        pytest.param(in_terms(observing="first").duplicated().applied(), "second", id="duplicated"),
        pytest.param(in_terms(observing="first").replicas(3), "", id="scaled-since-it-was-observed"),
        pytest.param(
            in_terms(observing="first", observed=3).replicas(3), "second", id="scaled-since-the-result"
        ),
        pytest.param(
            in_terms(observing="first", observed=1).last_scheduled(NEW_YEAR).reschedule_triggered("2026-01-02T00:00:00Z"), "",
            id="a-reschedule-is-requested",
        ),
        pytest.param(in_terms(observing="first", observed=1).aggregated(), "", id="the-placement-is-edited"),
        pytest.param(
            in_terms(observing="first", observed=1).applied("not JSON"), "", id="the-annotation-is-broken"
        ),
        pytest.param(
            binding("w").replicas(2).names("m2").on(m2=2).applied().generation(2), "", id="no-terms"
        ),
    ],
)  # fmt: skip
def test_the_term_of_a_result_is_the_first_one_that_selects_all_clusters(
    found: BindingBuilder, term: str
) -> None:
    assert term_of(found) == term


def test_an_overflow_affinity_counts_for_workloads() -> None:
    found = binding("w").term("first", "m1", overflow=[["m2"]]).term("second", "m2")
    workload = found.on(m1=1, m2=1).replicas(2).dynamic_weight().applied().generation(2)
    assert term_of(workload) == "first"
    plain = binding("w").term("first", "m1", overflow=[["m2"]]).term("second", "m2").on("m2")
    assert term_of(plain.applied().generation(2)) == "second"


def test_clusters_are_selected_by_the_rules_of_the_version() -> None:
    terms = [
        {
            "affinityName": "one",
            "fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]},
        },
        {"affinityName": "all"},
    ]
    found = binding("w").placement({"clusterAffinities": terms}).on("m3").applied().generation(2)
    assert [term_of(found, decisions_of=version) for version in ("1.18", "1.17")] == ["one", "all"]
