"""Division, affinity terms, and capacity."""

from karmada_advisor.explain.model import NextState
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster, gates
from tests.unit.explain.asking import causes, codes, explained, outcome, placement, primary
from tests.unit.explain.test_select_questions import with_cpu

SCHEDULED = "2026-11-22T10:00:00Z"


def test_a_seat_that_is_rounded_away() -> None:
    """karmada-io/karmada#6424"""
    asked = binding("web").replicas(2).static_weights(m1=2, m2=1)

    explanation = explained(asked, cluster("m1"), cluster("m2"))

    assert placement(explanation) == {"m1": 1, "m2": 1}
    assert explanation.causes[0].code == "RoundedAway"
    assert explanation.causes[0].evidence["exact"] == {"m1": 1.33, "m2": 0.67}
    assert explanation.division is not None
    assert {row.name: round(row.next_at, 3) for row in explanation.division.rows} == {
        "m1": 0.667,
        "m2": 0.333,
    }
    assert explanation.division.last_quotient == 1.0


def test_a_weight_that_is_too_small_for_a_replica() -> None:
    """karmada-io/karmada#6511"""

    def asked(replicas: int) -> BindingBuilder:
        return binding("web").replicas(replicas).static_weights(m1=10, m2=1)

    fleet = [cluster("m1"), cluster("m2")]

    found = primary(asked(4), *fleet, why_not="m2")

    assert placement(explained(asked(4), *fleet)) == {"m1": 4}
    assert found.code == "ZeroSeats"
    assert (found.evidence["lastQuotient"], found.evidence["nextAt"]) == (1.429, 1.0)
    assert primary(asked(4), *fleet).code == "ZeroSeats"
    assert placement(explained(asked(6), *fleet)) == {"m1": 5, "m2": 1}


def test_the_parity_of_the_uid_breaks_a_tie() -> None:
    """karmada-io/karmada#4700, #4220"""

    def asked(uid: str) -> BindingBuilder:
        return binding("web").uid(uid).replicas(1).static_weights(m1=1, m2=1)

    results = {}
    for uid in ("a", "b"):
        [used] = placement(explained(asked(uid), cluster("m1"), cluster("m2")))
        other = ({"m1", "m2"} - {used}).pop()
        found = primary(asked(uid), cluster("m1"), cluster("m2"), why_not=other)
        assert found.code == "TieByUid"
        assert found.evidence["tied"] == [used, other]
        results[used] = found.evidence["order"]

    assert results == {"m1": "ascending names", "m2": "descending names"}


def test_a_cluster_that_no_weight_names_gets_nothing() -> None:
    """karmada-io/karmada#4700"""
    asked = binding("web").replicas(4).static_weights(m1=1, m2=1)
    fleet = [cluster("m1"), cluster("m2"), cluster("m3")]

    found = primary(asked, *fleet, why_not="m3")

    assert found.code == "WeightMissing"
    assert found.evidence["weights"] == {"m1": 1, "m2": 1}
    assert primary(asked, *fleet).evidence["clusters"] == ["m3"]


def test_aggregated_division_uses_the_fewest_clusters() -> None:
    asked = binding("web").replicas(12, cpu=1).aggregated()
    fleet = with_cpu(a=8, b=12, c=18)

    assert placement(explained(asked, *fleet)) == {"c": 12}
    assert primary(asked, *fleet).code == "AggregatedFewest"
    assert primary(asked, *fleet, why_not="a").evidence["used"] == {"c": 18}


def test_placed_replicas_stay_when_the_workload_grows() -> None:
    """karmada-io/karmada#4805, #1189"""
    asked = binding("web").replicas(12, cpu=1).dynamic_weight().on(m1=8).applied().last_scheduled(SCHEDULED)
    fleet = with_cpu(m1=20, m2=100)

    explanation = explained(asked, *fleet)

    assert placement(explanation) == {"m1": 9, "m2": 3}
    assert explanation.causes[0].code == "SteadyKeeps"
    assert explanation.causes[0].evidence["divided"] == 4
    assert explanation.division is not None
    assert explanation.division.mode == "up"
    assert [(row.name, row.weight, row.kept, row.seats) for row in explanation.division.rows] == [
        ("m1", 20, 8, 1),
        ("m2", 100, 0, 3),
    ]


def test_replicas_are_removed_in_proportion_to_what_is_there() -> None:
    """karmada-io/karmada#6735"""
    asked = binding("web").replicas(6, cpu=1).dynamic_weight().on(m1=2, m2=4, m3=6).applied()
    fleet = with_cpu(m1=100, m2=1, m3=1)

    explanation = explained(asked.last_scheduled(SCHEDULED), *fleet)

    assert placement(explanation) == {"m1": 1, "m2": 2, "m3": 3}
    assert explanation.causes[0].code == "SteadyShrinks"
    assert explanation.causes[0].evidence["before"] == {"m1": 2, "m2": 4, "m3": 6}


def test_a_duplicated_binding_that_becomes_divided_keeps_what_is_there() -> None:
    """karmada-io/karmada#2188"""
    asked = binding("web").replicas(3, cpu=1).duplicated().on(m1=3, m2=3).applied()
    asked.dynamic_weight().last_scheduled(SCHEDULED)
    fleet = with_cpu(m1=1, m2=9)

    explanation = explained(asked, *fleet)

    assert sorted(placement(explanation).values()) == [1, 2]
    assert explanation.causes[0].code == "SteadyKeeps"
    assert explanation.causes[0].evidence["class"] == "Reconcile"


def test_a_workload_with_zero_replicas_has_an_empty_result() -> None:
    """karmada-io/karmada#6361"""
    asked = binding("web").replicas(0, cpu=1).dynamic_weight().on(m1=2).applied()

    explanation = explained(asked, cluster("m1"))

    assert outcome(explanation) is NextState.NO_REPLICAS
    assert codes(explanation.causes) == ["ZeroReplicas"]
    assert explanation.causes[0].evidence["flag"] == "--enable-empty-workload-propagation"


def test_too_little_capacity_names_the_limiting_resource_and_what_is_missing() -> None:
    """karmada-io/karmada#4216, #6333"""
    asked = binding("web").replicas(8, cpu="500m", memory="1Gi").dynamic_weight()
    fleet = [cluster("m1").capacity(cpu="700m", memory="9Gi"), cluster("m2").capacity(cpu=4, memory="2Gi")]

    explanation = explained(asked, *fleet)

    assert outcome(explanation) is NextState.NOT_PLACED
    found = explanation.causes[0]
    assert found.code == "NotEnoughRoom"
    assert (found.evidence["available"], found.evidence["wanted"], found.evidence["missing"]) == (3, 8, 5)
    assert found.evidence["clusters"]["m1"]["limitedBy"] == "cpu"
    assert found.evidence["clusters"]["m2"]["limitedBy"] == "memory"
    assert found.evidence["missingAmounts"] == {"cpu": "2.5", "memory": "5Gi"}


def test_the_only_replica_goes_to_the_larger_weight_which_is_capacity() -> None:
    """karmada-io/karmada#4708"""
    asked = binding("web").replicas(1, cpu=1).dynamic_weight()
    fleet = with_cpu(m1=4, m2=7)

    assert placement(explained(asked, *fleet)) == {"m2": 1}
    found = primary(asked, *fleet, why_not="m1")
    assert found.code == "Seats"
    assert found.evidence["weights"] == {"m1": 4, "m2": 7}


def test_a_duplicated_binding_stays_in_a_full_term() -> None:
    """karmada-io/karmada#4569, #4694"""

    def asked() -> BindingBuilder:
        return binding("web").replicas(5, cpu=1).term("first", "m1").term("second", "m2")

    fleet = with_cpu(m1=1, m2=50)

    found = primary(asked().duplicated(), *fleet, why_not="m2")

    assert placement(explained(asked().duplicated(), *fleet)) == {"m1": 5}
    assert found.code == "NoCapacityCheck"
    assert found.evidence["full"] == {"m1": 1}
    assert primary(asked().duplicated(), *fleet).code == "NoCapacityCheck"
    assert placement(explained(asked().dynamic_weight(), *fleet)) == {"m2": 5}


def test_affinity_terms_do_not_add_up() -> None:
    """karmada-io/karmada#5997"""
    asked = binding("web").replicas(5, cpu=1).dynamic_weight().term("first", "m1").term("second", "m2")

    explanation = explained(asked, *with_cpu(m1=3, m2=2))

    assert outcome(explanation) is NextState.NOT_PLACED
    assert explanation.causes[0].code == "TermsDoNotAdd"
    assert explanation.causes[0].evidence["terms"] == {"first": 3, "second": 2}
    assert [(row.name, row.outcome) for row in explanation.terms] == [
        ("first", "failed"),
        ("second", "failed"),
    ]
    overflow = binding("web").replicas(6, cpu=1).dynamic_weight().term("first", "m1", overflow=[["m2"]])
    assert placement(explained(overflow, *with_cpu(m1=4, m2=8))) == {"m1": 4, "m2": 2}


def test_a_binding_does_not_return_to_a_term_that_it_has_left() -> None:
    """karmada-io/karmada#4990, #7717, #5070, #5172"""
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().term("first", "m1").term("second", "m2")
    asked.on(m2=2).observing("second").applied().last_scheduled(SCHEDULED)
    fleet = with_cpu(m1=10, m2=10)

    found = primary(asked, *fleet, why_not="m1")

    assert found.code == "TermBehind"
    assert (found.evidence["term"], found.evidence["inUse"]) == ("first", "second")
    assert primary(asked, *fleet).code == "TermBehind"
    explanation = explained(asked, *fleet)
    assert [(row.name, row.outcome) for row in explanation.terms] == [("first", "left"), ("second", "used")]


def test_a_sum_over_nodes_hides_that_no_node_takes_a_replica() -> None:
    """karmada-io/karmada#521, #2843"""
    asked = binding("web").replicas(2, cpu=2).dynamic_weight()
    small = cluster("m1").capacity(cpu=4)
    small.manifest()["status"]["nodeSummary"] = {"totalNum": 4, "readyNum": 4}

    explanation = explained(asked, small)

    assert placement(explanation) == {"m1": 2}
    assert explanation.causes[0].code == "SummaryCounts"
    assert explanation.causes[0].evidence == {
        "cluster": "m1",
        "resource": "cpu",
        "nodes": 4,
        "averageNode": "1",
        "requested": "2",
        "available": 2,
    }


def test_without_requests_only_pods_count() -> None:
    """karmada-io/karmada#4708"""
    asked = binding("web").replicas(4).dynamic_weight()

    explanation = explained(asked, cluster("m1"), cluster("m2"))

    assert placement(explanation) == {"m1": 2, "m2": 2}
    assert codes(explanation.causes) == ["OnlyPodsCount"]
    assert explanation.clusters[0].capacity is not None
    assert explanation.clusters[0].capacity.limited_by == "pods"


def test_a_set_of_components_that_fits_nowhere() -> None:
    """karmada-io/karmada#7550"""
    asked = binding("job").component("a", 1, cpu=2).component("b", 2, cpu=4).spread("cluster", 1, 1)
    asked.dynamic_weight()

    found = primary(asked, *with_cpu(m1=9), gates=gates(MultiplePodTemplatesScheduling=True))

    assert found.code == "ComponentSets"


def test_a_quota_that_refused_the_write() -> None:
    """karmada-io/karmada#6937, #6467, #7069, #5011"""
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    asked.condition(type="Scheduled", status="False", reason="QuotaExceeded", message="exceeded quota: q")

    found = primary(asked, *with_cpu(m1=9))

    assert found.code == "QuotaRefused"
    assert found.evidence["message"] == "exceeded quota: q"


def test_a_cluster_that_is_down_evicts_nothing_by_itself() -> None:
    """karmada-io/karmada#6951, #6925, #744"""
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().on(m1=2).applied().last_scheduled(SCHEDULED)
    down = cluster("m1").condition("Ready", "False").taint("cluster.karmada.io/not-ready:NoSchedule")

    first, second, *_ = causes(asked, down, cluster("m2"))

    assert first.code == "ClusterNotReady"
    assert second.code == "NoEviction"
    assert second.evidence["cluster"] == "m1"


def test_a_work_that_is_not_applied_is_not_a_matter_of_scheduling() -> None:
    """karmada-io/karmada#4325"""
    asked = binding("web").replicas(2).duplicated().on(m1=2, m2=2).applied().last_scheduled(SCHEDULED)
    asked.manifest()["status"]["aggregatedStatus"] = [
        {"clusterName": "m1", "applied": True},
        {"clusterName": "m2", "applied": False},
    ]

    found = primary(asked, cluster("m1"), cluster("m2"))

    assert found.code == "NotOurs"
    assert found.evidence["works"] == ["karmada-es-m2"]


def test_a_policy_edit_that_makes_the_decision_fail_keeps_the_placement() -> None:
    """karmada-io/karmada#900, #7455"""

    def region(name: str) -> ClusterBuilder:
        return cluster(f"{name}-1").region(name)

    asked = binding("web").replicas(4, cpu=1).dynamic_weight().spread("region", 1, 2)
    asked.on(**{"ap-1": 2, "eu-1": 2}).applied().last_scheduled(SCHEDULED)
    asked.manifest()["spec"]["placement"]["spreadConstraints"][0] |= {"minGroups": 2}
    asked.names("ap-1")

    explanation = explained(asked, region("ap"), region("eu"))

    assert outcome(explanation) is NextState.STUCK
    assert placement(explanation) == {"ap-1": 2, "eu-1": 2}
    assert codes(explanation.causes)[:2] == ["KeptOnFailure", "MinRegionsUnmet"]


def test_causes_of_a_cluster_that_has_replicas_are_none() -> None:
    assert causes(binding("web").replicas(2).duplicated(), cluster("m1"), why_not="m1") == []


def test_static_weights_that_match_no_selected_cluster_count_as_equal() -> None:
    asked = binding("web").replicas(4).static_weights(m8=1, m9=3)

    explanation = explained(asked, cluster("m1"), cluster("m2"))

    assert placement(explanation) == {"m1": 2, "m2": 2}
    assert explanation.warnings == tuple(
        f"a static weight is for {name}: no such cluster exists" for name in ("m8", "m9")
    )
    [found] = [each for each in explanation.causes if each.code == "WeightMissing"]
    assert (
        found.text == "no rule of the static weights selects a selected cluster, so all have the same weight"
    )
