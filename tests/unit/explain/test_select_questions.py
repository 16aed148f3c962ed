"""Selection."""

import pytest

from karmada_advisor.explain.model import NextState
from karmada_advisor.views.explanation_tables import clusters_wanted
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.explain.asking import causes, codes, explained, outcome, placement, primary
from tests.unit.explain.fleet import CORDON, checkout, fleet

SCHEDULED = "2026-11-22T10:00:00Z"


def with_cpu(**free: float) -> list[ClusterBuilder]:
    """Return clusters with this much free cpu."""
    return [cluster(name).capacity(cpu=amount) for name, amount in free.items()]


def three_clusters() -> list[ClusterBuilder]:
    """Return two clusters in one region, and one in another."""
    eu, us = with_cpu(m1=4, m2=4), with_cpu(m3=4)
    return [*(each.region("eu") for each in eu), *(each.region("us") for each in us)]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (binding("web").replicas(2).duplicated().spread("cluster", 1), "no clusters available to schedule"),
        (binding("web").replicas(2).dynamic_weight().spread("cluster", 1), "when selecting 0 clusters"),
    ],
)
def test_a_maximum_that_is_not_set_means_zero(asked: BindingBuilder, error: str) -> None:
    """karmada-io/karmada#4617"""
    explanation = explained(asked, *with_cpu(m1=4, m2=4))

    assert outcome(explanation) is NextState.NOT_PLACED
    assert explanation.causes[0].code == "MaxGroupsZero"
    assert error in str(explanation.causes[0].evidence["error"])


def test_too_few_feasible_clusters_name_the_one_that_is_refused() -> None:
    """karmada-io/karmada#1045"""
    asked = binding("web").replicas(2).duplicated().spread("cluster", 2, 2)

    found = causes(asked, cluster("m1"), cluster("m2").taint(CORDON))

    assert codes(found) == ["MinGroupsUnmet", "UntoleratedTaint"]
    assert (found[0].evidence["feasible"], found[0].evidence["required"]) == (1, 2)
    assert found[1].evidence["clusters"] == ["m2"]


def test_too_few_regions_list_those_that_were_found() -> None:
    """karmada-io/karmada#2689"""
    asked = binding("web").replicas(2).duplicated().spread("region", 2, 2)

    found = primary(asked, cluster("m1").region("eu"), cluster("m2").region("eu"))

    assert found.code == "MinRegionsUnmet"
    assert found.evidence["regions"] == {"eu": ["m1", "m2"]}
    assert found.evidence["required"] == 2


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ([("region", 3, 3), ("cluster", 1)], ["MinRegionsUnmet"]),
        ([("region", 1, 1), ("cluster", 3)], ["MinGroupsUnmet"]),
        ([("region", 2), ("cluster", 1)], ["MaxGroupsZero"]),
        ([("cluster", 4)], ["MinGroupsUnmet", "MaxGroupsZero"]),
    ],
)
@pytest.mark.parametrize("strategy", ["duplicated", "dynamic_weight", "aggregated"])
def test_the_step_that_failed_names_the_cause(
    strategy: str, spread: list[tuple[str, int]], expected: list[str]
) -> None:
    asked = getattr(binding("web").replicas(2), strategy)()
    for each in spread:
        asked = asked.spread(*each)
    assert codes(causes(asked, *three_clusters())) == expected


def test_without_a_maximum_of_clusters_each_region_gets_one() -> None:
    asked = binding("web").replicas(2).duplicated().spread("region", 2, 2).spread("cluster", 1)

    explanation = explained(asked, *three_clusters())

    assert placement(explanation) == {"m1": 2, "m3": 2}
    assert codes(explanation.causes) == ["RegionOneCluster"]
    assert explanation.selection is not None
    assert clusters_wanted(explanation.selection) == ", at least 1 cluster, one in each region"


def test_static_weights_switch_spread_constraints_off() -> None:
    """karmada-io/karmada#1045, #3184"""
    asked = binding("web").replicas(10).static_weights(m1=2, m2=8).spread("cluster", 1, 1)

    explanation = explained(asked, cluster("m1"), cluster("m2"))

    assert placement(explanation) == {"m1": 2, "m2": 8}
    assert explanation.causes[0].code == "SpreadIgnored"
    assert explanation.causes[0].evidence["ignored"] == ["cluster"]


def test_only_cluster_and_region_are_supported() -> None:
    """karmada-io/karmada#5355, #3187"""
    asked = binding("web").replicas(2).duplicated()
    asked.manifest()["spec"]["placement"]["spreadConstraints"] = [
        {"spreadByLabel": "rack", "minGroups": 1, "maxGroups": 2}
    ]

    found = primary(asked, cluster("m1"))

    assert found.code == "SpreadUnsupported"
    assert found.evidence["unsupported"] == ["label rack"]


def test_each_region_gets_a_cluster_even_beyond_the_cluster_maximum() -> None:
    """karmada-io/karmada#3231"""
    asked = binding("web").replicas(6, cpu=1).dynamic_weight().spread("region", 3, 3).spread("cluster", 2, 2)
    regions = [cluster(f"{name}-1").region(name) for name in ("ap", "eu", "us")]

    explanation = explained(asked, *regions)

    assert len(placement(explanation)) == 3
    assert explanation.causes[0].code == "RegionsFirst"
    assert explanation.causes[0].evidence == {"regions": 3, "maxClusters": 2, "selected": 3}


def test_the_cluster_with_the_most_capacity_loses_a_tie_of_regions_by_name() -> None:
    """karmada-io/karmada#5129"""
    found = primary(checkout(), *fleet(), why_not="us-east-1")

    assert found.code == "RegionTie"
    assert found.evidence["criterion"] == "name"
    assert found.evidence["wonBy"] == ["ap-south", "eu-west"]
    assert found.evidence["lost"] == ["eu-west", "us-east"]
    assert (found.evidence["weight"], found.evidence["lostWeight"]) == (24000, 24000)
    assert (found.evidence["clusters"], found.evidence["lostClusters"]) == (3, 3)
    explanation = explained(checkout(), *fleet())
    assert placement(explanation) == {"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}
    assert explanation.causes[0].code == "RegionTie"
    assert [stage.name for stage in explanation.funnel if stage.decisive] == ["SELECT"]


def test_the_lost_tie_of_regions_stays_the_answer_once_the_binding_is_placed() -> None:
    """karmada-io/karmada#5129"""
    asked = checkout().on(**{"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}).applied()
    asked.last_scheduled(SCHEDULED)

    found = causes(asked, *fleet(), why_not="us-east-1")

    assert codes(found) == ["RegionTie", "NothingAsks"]


def test_the_smallest_set_of_regions_that_suffices_is_taken() -> None:
    """karmada-io/karmada#1045"""
    asked = checkout()
    asked.manifest()["spec"]["placement"]["spreadConstraints"][0]["maxGroups"] = 3

    explanation = explained(asked, *fleet())

    assert placement(explanation) == {"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}
    found = causes(asked, *fleet(), why_not="us-east-1")
    assert codes(found) == ["SetSuffices", "RegionTie"]


def test_a_duplicated_binding_with_one_cluster_takes_the_one_with_the_most_capacity() -> None:
    asked = binding("web").replicas(2, cpu=1).duplicated().spread("cluster", 1, 1)

    more, same = with_cpu(m1=4, m2=8), with_cpu(m1=4, m2=4)

    assert placement(explained(asked, *more)) == {"m2": 2}
    assert primary(asked, *more, why_not="m1").code == "LessRoom"
    assert placement(explained(asked, *same)) == {"m1": 2}
    assert primary(asked, *same, why_not="m2").code == "NameTie"


def test_present_clusters_keep_a_new_one_out_even_after_a_rebalance() -> None:
    """karmada-io/karmada#2261"""

    def asked(most: int) -> BindingBuilder:
        made = binding("web").replicas(30, cpu=1).dynamic_weight().spread("cluster", 1, most)
        made.on(m1=6, m2=9, m3=6, m4=9).applied()
        return made.last_scheduled(SCHEDULED)

    clusters = with_cpu(m1=6, m2=9, m3=6, m4=9, m5=90)

    found = causes(asked(4), *clusters, why_not="m5")

    assert codes(found) == ["LocalityKeeps", "NothingAsks"]
    assert found[0].evidence["present"] == ["m2", "m4", "m1", "m3"]
    assert primary(asked(4), *clusters).code == "LocalityKeeps"
    assert codes(causes(asked(5), *clusters, why_not="m5"))[0] in {"SteadyKeeps", "NothingAsks"}


def test_aggregated_division_over_one_cluster_takes_the_one_with_the_most_capacity() -> None:
    """karmada-io/karmada#1010"""
    asked = binding("web").replicas(10, cpu=1).aggregated().spread("cluster", 1, 1)

    explanation = explained(asked, *with_cpu(a=12, b=8))

    assert placement(explanation) == {"a": 10}
    assert primary(asked, *with_cpu(a=12, b=8), why_not="b").code == "AggregatedFewest"
    assert explanation.causes[0].code == "AggregatedFewest"


def test_the_best_clusters_within_the_maximum_hold_too_little() -> None:
    asked = binding("web").replicas(120, cpu=1).dynamic_weight().spread("cluster", 1, 3)

    found = primary(asked, *with_cpu(m1=44, m2=36, m3=28, m4=22))

    assert found.code == "TooLittleSelected"
    assert found.evidence["best"] == {"m1": 44, "m2": 36, "m3": 28}
    assert (found.evidence["holds"], found.evidence["replicas"]) == (108, 120)
    assert "when selecting 3 clusters" in found.evidence["error"]
