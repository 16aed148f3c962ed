"""The log lines of a decision at --v=4."""

import pytest

from karmada_pyscheduler.scheduler import decision_log
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.testing import binding, cluster, decide


def test_every_step_of_a_decision_is_logged_with_upstreams_text() -> None:
    decision = decide(
        binding("web").replicas(4, cpu="1").names("m1", "m2").dynamic_weight(),
        cluster("m1").capacity(cpu="6"),
        cluster("m2").capacity(cpu="2"),
        cluster("m3").capacity(cpu="9"),
    )
    assert list(decision_log.lines(decision)) == [
        'Cluster "m3" is not fit, reason: cluster(s) did not match the placement cluster affinity constraint',
        "Feasible clusters found: [m1, m2]",
        "Feasible clusters scores: [m1:0 (available: 6), m2:0 (available: 2)]",
        "Selected clusters: [m1, m2]",
        "Assigned Replicas: [m1:3, m2:1]",
    ]


def test_each_pass_over_the_own_result_has_a_heading() -> None:
    logged = list(decision_log.lines(decide(binding("web").names("m1").duplicated(), cluster("m1"))))
    assert logged.count("Assigned Replicas: [m1:0]") == 2
    assert logged[logged.index("Assigned Replicas: [m1:0]") + 1] == (
        "Pass 2, as if the result of the one before were written:"
    )
    assert "Pass 3" not in " ".join(logged)


def test_the_error_that_ended_an_attempt_is_logged() -> None:
    decision = decide(binding("web").replicas(9, cpu="1").dynamic_weight(), cluster("m1").capacity(cpu="2"))
    assert list(decision_log.lines(decision))[-1] == (
        "Failed: failed to assign replicas: failed to scale up: "
        "Clusters available replicas 2 are not enough to schedule."
    )


def test_each_affinity_term_has_a_heading() -> None:
    decision = decide(binding("web").term("first", "gone").term("second", "m1"), cluster("m1"))
    logged = list(decision_log.lines(decision))
    assert logged.index('Affinity term "first"') < logged.index('Affinity term "second"')


@pytest.mark.parametrize(
    ("names", "text"), [("a", "a (gone)"), ("ba", "a and 1 more (gone)"), ("bca", "a and 2 more (gone)")]
)
def test_clusters_without_an_estimate_are_shortened_to_the_first(names: str, text: str) -> None:
    key = BindingKey("ResourceBinding", "demo", "web")
    decision = Decision(key, fallbacks=dict.fromkeys(names, "gone"))
    assert decision_log.fallbacks(decision) == text
