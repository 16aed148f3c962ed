"""What ``--decisions-of=1.17`` changes: the estimate by resource models, and In on zones. No other decision differs."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.testing import (
    BindingBuilder,
    ClusterBuilder,
    binding,
    cluster,
    decide,
    framework,
    snapshot,
)
from karmada_scheduler.testing.decisions import placed
from tests.unit.explain.asking import causes

OF_1_17 = FeatureGates(rules=RULES["1.17"])
OF_1_18 = FeatureGates()
TWO_ZONES = {"key": "zone", "operator": "In", "values": ["a"]}


def with_default_models(name: str, **allocatable: object) -> ClusterBuilder:
    """Return a cluster whose one node of 16 cpu and 64 Gi is of the fifth of Karmada's default grades."""
    made = cluster(name).allocatable({"cpu": 16, "memory": "64Gi", "pods": 110, **allocatable})
    for grade in range(9):
        cpu = 0 if grade == 0 else 2 ** (grade - 1)
        made.grade(grade, nodes=int(grade == 5), cpu=cpu, memory=f"{4 * cpu}Gi")
    return made


def both(asked: BindingBuilder, *clusters: ClusterBuilder) -> tuple[Decision, Decision]:
    return decide(asked, *clusters, gates=OF_1_17), decide(asked, *clusters, gates=OF_1_18)


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "ephemeral-storage"])
def test_gpu_in_no_model(name: str) -> None:
    clusters = [with_default_models(each, **{name: "16Gi"}) for each in ("m1", "m2")]
    asked = binding("train").replicas(2).request({"cpu": 1, name: 1}).dynamic_weight()

    of_1_17, of_1_18 = both(asked, *clusters)

    assert placed(of_1_17) == {"m1": 1, "m2": 1}
    assert of_1_18.targets is None
    (first, *_) = causes(asked, *clusters, gates=OF_1_18)
    assert (first.code, first.evidence["resource"]) == ("ResourceNotInModels", name)
    assert "--decisions-of=1.17" in first.text
    assert "ResourceNotInModels" not in {
        each.code for each in causes(asked.replicas(10**6), *clusters, gates=OF_1_17)
    }


@pytest.mark.parametrize(
    ("request_", "by_grade", "simulated"),
    [
        pytest.param({"cpu": 3}, 5, 5, id="the-same"),
        pytest.param({"cpu": 16}, 1, 1, id="the-minimum-of-the-grade"),
        pytest.param({"cpu": 17}, 0, 0, id="no-node-of-a-larger-grade"),
        pytest.param({"cpu": 1000}, 0, 0, id="more-than-every-grade"),
        pytest.param({}, 110, 110, id="nothing"),
        pytest.param({"cpu": 1, "nvidia.com/gpu": 1}, 2, 0, id="summary-of-what-is-in-no-model"),
        pytest.param({"cpu": 0, "gpu": 0}, 110, 110, id="zeros-are-no-requests"),
    ],
)
def test_replicas_by_grade(request_: dict[str, object], by_grade: int, simulated: int) -> None:
    built = with_default_models("m1", **{"nvidia.com/gpu": 2}).build()
    asked = binding("w").replicas(1).request(request_).build().spec.replica_requirements

    assert GeneralEstimator(OF_1_17).max_available_replicas([built], asked, {}) == [by_grade]
    assert GeneralEstimator(OF_1_18).max_available_replicas([built], asked, {}) == [simulated]


def test_at_least_one_replica_fits_on_a_node_whose_grade_suffices_in_position() -> None:
    """Grades are found by position: what a shorter list of counts, or of minimums, lacks has no node."""
    made = cluster("m1").allocatable({"cpu": 100, "memory": "1Ti", "pods": 110})
    made.grade(0, nodes=2, cpu=2, memory="1Gi").grade(1, nodes=2, cpu=4).grade(2, nodes=None, cpu=8)
    asked = binding("w").replicas(1)

    def replicas(request: dict[str, object]) -> list[int]:
        wanted = asked.request(request).build().spec.replica_requirements
        return list(GeneralEstimator(OF_1_17).max_available_replicas([made.build()], wanted, {}))

    assert replicas({"cpu": 1}) == [2 * 2 + 2 * 4]
    assert replicas({"cpu": 1, "memory": "1Gi"}) == [2]
    assert replicas({"cpu": 3, "memory": "1Gi"}) == [0]


def test_at_least_one_replica_fits_on_a_node_of_a_later_grade_that_is_smaller() -> None:
    made = cluster("m1").allocatable({"cpu": 100, "pods": 110})
    made.grade(0, nodes=1, cpu=4).grade(1, nodes=1, cpu=1)
    asked = binding("w").replicas(1).request({"cpu": 2}).build().spec.replica_requirements
    assert GeneralEstimator(OF_1_17).max_available_replicas([made.build()], asked, {}) == [2 + 1]


def test_models_of_which_no_nodes_were_reported_do_not_count() -> None:
    made = cluster("m1").allocatable({"cpu": 6, "pods": 110}).grade(0, nodes=None, cpu=4)
    asked = binding("w").replicas(1).request({"cpu": 2}).build().spec.replica_requirements
    assert GeneralEstimator(OF_1_17).max_available_replicas([made.build()], asked, {}) == [3]


def test_the_numbers_of_nodes_without_a_request_overflow_as_in_go() -> None:
    """Each node counts for the largest int64, so two of them for -2; the webhook of Karmada lets requests be empty."""
    made = cluster("m1").allocatable({"pods": 110}).grade(0, nodes=2, cpu=0)
    asked = binding("w").replicas(1).request({}).build().spec.replica_requirements

    assert GeneralEstimator(OF_1_17).max_available_replicas([made.build()], asked, {}) == [-2]


def zones(*names: str) -> list[ClusterBuilder]:
    return [
        cluster(name).zones(*each).capacity(cpu=10) for name, each in zip(names, ("a", "ab"), strict=True)
    ]


def in_zone_a(**more: Any) -> dict[str, Any]:
    return {"fieldSelector": {"matchExpressions": [TWO_ZONES]}, **more}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(binding("w").replicas(4, cpu=1).affinity(**in_zone_a()), id="affinity"),
        pytest.param(
            binding("w")
            .replicas(4, cpu=1)
            .placement({"clusterAffinities": [{"affinityName": "t", **in_zone_a()}]}),
            id="term",
        ),
    ],
)
def test_in_has_to_list_all_zones_of_a_cluster(asked: BindingBuilder) -> None:
    of_1_17, of_1_18 = both(asked.duplicated(), *zones("m1", "m2"))

    assert placed(of_1_17) == {"m1": 4}
    assert placed(of_1_18) == {"m1": 4, "m2": 4}
    assert of_1_17.applied_placement == of_1_18.applied_placement


def test_static_weights_select_clusters_by_the_same_rule() -> None:
    preference = {"staticWeightList": [{"targetCluster": in_zone_a(), "weight": 1}]}
    asked = (
        binding("w")
        .replicas(4, cpu=1)
        .placement(
            {
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": preference,
                }
            }
        )
    )

    of_1_17, of_1_18 = both(asked, *zones("m1", "m2"))

    assert placed(of_1_17) == {"m1": 4}
    assert placed(of_1_18) == {"m1": 2, "m2": 2}


def test_caches_of_filters_do_not_mix_the_rules() -> None:
    """One framework and one placement under both rules: the affinities of the two are different keys."""
    asked, fleet, shared = (
        binding("w").replicas(4, cpu=1).affinity(**in_zone_a()),
        zones("m1", "m2"),
        framework(),
    )
    asked.duplicated()
    found = []
    for gates in (OF_1_18, OF_1_17, OF_1_18, OF_1_17):
        algorithm = SchedulingAlgorithm(gates, [GeneralEstimator(gates)])
        found.append(placed(run_sync(algorithm.decide(asked.build(), snapshot(*fleet), shared))))

    assert [len(each) for each in found] == [2, 1, 2, 1]


def test_a_placement_for_matching_is_made_once_and_differs_from_the_one_that_is_written() -> None:
    placement = Placement.from_manifest({"clusterAffinity": in_zone_a()})

    matching = RULES["1.17"].placement(placement)

    assert matching is RULES["1.17"].placement(placement)
    assert matching != placement
    assert RULES["1.18"].placement(placement) is placement
