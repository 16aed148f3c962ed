"""Capacity by resource summaries and by resource models, with overflowing arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import ResourceSummary
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator import general
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.diagnosis import OverBudgetError
from karmada_scheduler.testing import ClusterBuilder, cluster, gates

DEDUCTING = gates(SchedulingOvercommitProtection=True)
WITHOUT_MODELS = gates(CustomizedClusterResourceModeling=False)


def requiring(**request: object) -> ReplicaRequirements:
    return wants({name.replace("_", "-"): amount for name, amount in request.items()})


def wants(request: dict[str, object]) -> ReplicaRequirements:
    return ReplicaRequirements({name: quantity.parse(str(amount)) for name, amount in request.items()})


def component(replicas: int, **request: object) -> Component:
    return Component("c", replicas, requiring(**request) if request else None)


def replicas(
    builder: ClusterBuilder,
    requirements: ReplicaRequirements | None,
    *assumed: Component,
    on: FeatureGates | None = None,
) -> int:
    built = builder.build()
    workloads = {built.name: [AssumedWorkload("ns", (each,)) for each in assumed]}
    (answer,) = GeneralEstimator(on or DEDUCTING).max_available_replicas([built], requirements, workloads)
    return answer


def sets(
    builder: ClusterBuilder,
    *components: Component,
    assumed: tuple[Component, ...] = (),
    on: FeatureGates | None = None,
) -> int:
    built = builder.build()
    workloads = {built.name: [AssumedWorkload("ns", assumed)]} if assumed else {}
    (answer,) = GeneralEstimator(on or DEDUCTING).max_available_component_sets(
        [built], components, "ns", workloads
    )
    return answer


def small() -> ClusterBuilder:
    return (
        cluster("m1")
        .capacity(cpu=4, memory="8Gi", pods=100)
        .allocated({"cpu": 1, "memory": "2Gi", "pods": 20})
    )


# --- by summary ---


@pytest.mark.parametrize(
    ("builder", "requirements", "expected"),
    [
        pytest.param(small(), requiring(cpu="500m", memory="1Gi"), 6, id="the-scarcest"),
        pytest.param(cluster("m1").without_summary(), requiring(cpu=1), 0, id="no-summary"),
        pytest.param(
            cluster("m1").capacity(pods=10).allocated({"pods": 10}), requiring(cpu="1m"), 0, id="no-pods"
        ),
        pytest.param(cluster("m1").capacity(pods=10), None, 10, id="no-requirements"),
        pytest.param(cluster("m1").capacity(pods=10), wants({}), 10, id="empty-request"),
        pytest.param(
            cluster("m1").capacity(pods=100).allocated({"pods": 40}).allocating({"pods": 10}),
            None,
            50,
            id="pods",
        ),
        pytest.param(cluster("m1").allocatable({}), None, 0, id="nothing-allocatable"),
        pytest.param(
            cluster("m1").capacity(pods=100).allocated({"pods": 90}).allocating({"pods": 20}),
            None,
            0,
            id="overdone",
        ),
        pytest.param(
            cluster("m1").capacity(memory="2Gi").allocated({"memory": "1.5Gi"}),
            requiring(memory="1Gi"),
            0,
            id="too-little",
        ),
        pytest.param(small(), wants({"nvidia.com/gpu": 1}), 0, id="unknown-resource"),
        pytest.param(small(), wants({"nvidia.com/gpu": 0}), 80, id="nothing-of-an-unknown-resource"),
        pytest.param(small(), requiring(cpu="1m"), 80, id="the-least-request-counts"),
        pytest.param(small(), requiring(cpu="-1"), 80, id="negative-requests-do-not"),
        pytest.param(small().allocating({"cpu": "500m"}), requiring(cpu=1), 2, id="about-to-be-allocated"),
        pytest.param(small().allocated({"cpu": 9}), requiring(cpu=1), 0, id="over-allocated"),
        pytest.param(
            cluster("m1")
            .capacity(memory="10Gi")
            .allocated({"memory": "1.5Gi"})
            .allocating({"memory": "20Gi"}),
            requiring(memory="1Gi"),
            5,
            id="garbage-of-big-decimals",
        ),
    ],
)
def test_capacity_is_estimated_by_the_resource_summary(
    builder: ClusterBuilder, requirements: ReplicaRequirements | None, expected: int
) -> None:
    assert replicas(builder, requirements) == expected


@pytest.mark.parametrize(
    ("assumed", "expected"),
    [
        pytest.param([], 6, id="none"),
        pytest.param([component(2, cpu="500m", memory="1Gi")], 4, id="two"),
        pytest.param([component(0, cpu="500m", memory="1Gi")], 6, id="no-replicas"),
        pytest.param([component(1, cpu="500m"), component(2, cpu="500m")], 3, id="several"),
        pytest.param([component(77)], 3, id="pods-only"),
        pytest.param([component(10_000, memory="1Ti")], 0, id="much"),
    ],
)
def test_assumed_workloads_reduce_the_capacity_of_a_cluster(assumed: list[Component], expected: int) -> None:
    assert replicas(small(), requiring(cpu="500m", memory="1Gi"), *assumed) == expected


def test_assumed_workloads_count_as_allocating() -> None:
    builder = cluster("m1").capacity(cpu=2, pods=20).allocating({"cpu": "400m", "pods": 5})
    assert replicas(builder, requiring(cpu="700m"), component(2, cpu="100m")) == 2
    assert replicas(builder, None, component(2, cpu="100m")) == 13
    builder = cluster("m1").capacity(cpu=2, memory="10Gi", pods=20)
    assert replicas(builder, requiring(memory="1Gi"), component(3, memory="1Gi")) == 7


def test_an_assumed_zero_has_the_thousandths_in_which_an_overflow_is_wrapped() -> None:
    """`make fuzz SEED=5312`, scenario 652: karmada-scheduler counts no available replicas on such a cluster."""
    builder = cluster("m1").capacity(cpu=6, pods=110).allocated({"cpu": "1e19"})
    assert replicas(builder, requiring(cpu=1), component(5, cpu=0)) == 0


def test_each_assumed_workload_is_added_once_although_decisions_follow_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decision is repeated with its own footprint, before the next one finds it among the assumed workloads."""
    added: list[int] = []
    add_all = general._with_assumed

    def counted(summary: ResourceSummary, assumed: Sequence[AssumedWorkload]) -> ResourceSummary:
        added.append(len(assumed))
        return add_all(summary, assumed)

    monkeypatch.setattr(general, "_with_assumed", counted)
    built, estimator = small().build(), GeneralEstimator(DEDUCTING)
    assumed: list[AssumedWorkload] = []
    for _ in range(70):
        for listed in (assumed, [*assumed, AssumedWorkload("ns", (component(1),))]):
            estimator.max_available_replicas([built], None, {"m1": listed})
        assumed = [*assumed, AssumedWorkload("ns", (component(1),))]
    assert sum(added) <= 2 * 70


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "drop", "report", "repeat"]), st.integers(0, 5)), max_size=30
    )
)
def test_what_was_added_before_changes_no_number(steps: list[tuple[str, int]]) -> None:
    estimator, built = GeneralEstimator(DEDUCTING), small().build()
    assumed: list[AssumedWorkload] = []
    for step, number in steps:
        if step == "add":
            assumed = [*assumed, AssumedWorkload("ns", (component(number, cpu="100m"),))]
        elif step == "drop":
            assumed = assumed[:number] + assumed[number + 1 :]
        elif step == "report":
            built = small().allocated({"cpu": number}).build()
        wanted, listed = requiring(cpu="100m"), {"m1": assumed}
        fresh = GeneralEstimator(DEDUCTING).max_available_replicas([built], wanted, listed)
        assert estimator.max_available_replicas([built], wanted, listed) == fresh


def test_without_the_gate_assumed_workloads_do_not_count() -> None:
    assert replicas(small(), requiring(cpu="500m"), component(2, cpu="500m"), on=FeatureGates()) == 6


# --- by models ---


def three_grades(**amounts: tuple[object, object, object]) -> ClusterBuilder:
    builder = cluster("m1")
    for grade in range(3):
        builder.grade(grade, nodes=1, **{name: values[grade] for name, values in amounts.items()})
    return builder


@pytest.mark.parametrize(
    ("builder", "requirements", "expected"),
    [
        pytest.param(three_grades(cpu=(0, 1, 2)), requiring(cpu="1.5"), 1, id="on-the-largest"),
        pytest.param(three_grades(cpu=(0, 1, 2)), requiring(cpu=3), 0, id="on-none"),
        pytest.param(
            three_grades(cpu=(0, 1, 2), memory=(0, "1Gi", "2Gi")),
            requiring(cpu=1, memory="1.5Gi"),
            1,
            id="both-resources",
        ),
        pytest.param(
            three_grades(cpu=(0, 1, 2), memory=(0, "1Gi", "2Gi")),
            requiring(cpu=1, memory="2.5Gi"),
            0,
            id="too-much",
        ),
        pytest.param(cluster("m1").grade(1, nodes=3, cpu=1), requiring(cpu="500m"), 6, id="several-nodes"),
        pytest.param(
            cluster("m1").capacity(pods=4).grade(1, nodes=3, cpu=1),
            requiring(cpu="500m"),
            4,
            id="pods-still-bound",
        ),
        pytest.param(
            cluster("m1").capacity(cpu=0).grade(1, nodes=3, cpu=1),
            requiring(cpu=1),
            3,
            id="summary-not-consulted",
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=1, cpu=1), wants({"nvidia.com/gpu": 1}), 0, id="not-in-the-models"
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=1, cpu=1), requiring(foo=1, cpu=1), 1, id="unknown-names-are-ignored"
        ),
        pytest.param(cluster("m1").grade(1, nodes=2, cpu=1), wants({}), 220, id="pods-per-node"),
        pytest.param(
            cluster("m1").grade(1, nodes=2, cpu=1, pods=5),
            wants({}),
            220,
            id="without-a-request-models-do-not-count",
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=1, cpu=1).grade(1, nodes=None, cpu=4),
            requiring(cpu=1),
            4,
            id="last-grade-counts",
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=1, cpu=1).nodes(1, 2).nodes(7, 9),
            requiring(cpu=1),
            3,
            id="counts-are-added-up",
        ),
        # Without a number of the models, the summary counts.
        pytest.param(cluster("m1").capacity(cpu=7).nodes(1, 2), requiring(cpu=1), 7, id="no-models"),
        pytest.param(
            cluster("m1").capacity(cpu=7).grade(1, nodes=-1, cpu=1), requiring(cpu=1), 7, id="negative-count"
        ),
        pytest.param(
            cluster("m1").capacity(cpu=7).grade(1, nodes=None, cpu=1), requiring(cpu=1), 7, id="no-counts"
        ),
    ],
)
def test_capacity_is_estimated_by_resource_models(
    builder: ClusterBuilder, requirements: ReplicaRequirements, expected: int
) -> None:
    assert replicas(builder, requirements) == expected


def test_models_count_only_if_the_gate_is_on() -> None:
    assert (
        replicas(cluster("m1").capacity(cpu=9).grade(1, nodes=1, cpu=1), requiring(cpu=1), on=WITHOUT_MODELS)
        == 9
    )


@pytest.mark.parametrize(
    ("builder", "requirements", "assumed", "expected"),
    [
        pytest.param(
            cluster("m1").grade(1, nodes=3, cpu=1),
            requiring(cpu="500m"),
            [component(4, cpu="500m")],
            2,
            id="first-fit",
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=1, cpu=2).grade(2, nodes=1, cpu=3),
            requiring(cpu=2),
            [component(1, cpu=3), component(1, cpu=2)],
            0,
            id="both-fit",
        ),
        pytest.param(
            cluster("m1").grade(1, nodes=2, cpu=2),
            requiring(cpu=2),
            [component(1, cpu=3)],
            2,
            id="what-fits-nowhere-takes-nothing",
        ),
    ],
)
def test_assumed_workloads_take_virtual_nodes(
    builder: ClusterBuilder, requirements: ReplicaRequirements, assumed: list[Component], expected: int
) -> None:
    assert replicas(builder, requirements, *assumed) == expected


# --- sets of components ---


@pytest.mark.parametrize(
    ("builder", "components", "expected"),
    [
        pytest.param(cluster("m1").capacity(pods=10), [], 10, id="no-components"),
        pytest.param(
            cluster("m1").capacity(cpu=10), [component(1, cpu=1), component(2, cpu="1.5")], 2, id="cpu"
        ),
        pytest.param(
            cluster("m1").capacity(cpu=10, memory="8Gi", pods=100).allocated({"memory": "2Gi", "pods": 20}),
            [component(1, cpu=1, memory="2Gi"), component(2, cpu=2, memory="2Gi")],
            1,
            id="memory",
        ),
        pytest.param(cluster("m1").capacity(pods=3), [component(3)], 1, id="pods"),
        pytest.param(
            cluster("m1").allocatable({"cpu": 40, "memory": "64Gi", "nvidia.com/gpu": 8, "pods": 100}),
            [Component("c", 2, wants({"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 1}))],
            4,
            id="gpu",
        ),
        pytest.param(cluster("m1").without_summary(), [component(1)], 0, id="no-summary"),
        pytest.param(cluster("m1").capacity(pods=0), [component(1)], 0, id="no-pods"),
        pytest.param(
            cluster("m1").capacity(cpu=4), [Component("c", 1, wants({"x.io/y": 1}))], 0, id="unknown-resource"
        ),
        pytest.param(cluster("m1").capacity(pods=7), [component(0, cpu=1)], 7, id="no-replicas"),
        pytest.param(
            cluster("m1").capacity(memory="64Gi"), [component(1, memory="1G")], 0, id="units-are-mixed-up"
        ),
        pytest.param(
            cluster("m1").capacity(memory="64G"), [component(1, memory="1Gi")], 1000, id="units-the-other-way"
        ),
        pytest.param(
            cluster("m1").capacity(memory=2**30), [component(1, memory="0.0005Ki")], 1000, id="decimal-both"
        ),
        pytest.param(
            cluster("m1").capacity(memory=2**40),
            [component(1, memory="0.0005Ki")],
            0,
            id="bits-of-a-quotient",
        ),
        pytest.param(cluster("m1").capacity(pods=2**40), [component(1)], 0, id="bits-of-pods"),
        pytest.param(
            cluster("m1").capacity(memory="1000Gi"),
            [component(2, memory="8Ei")],
            500,
            id="overflow-is-no-demand",
        ),
    ],
)
def test_sets_are_estimated_by_the_resource_summary(
    builder: ClusterBuilder, components: list[Component], expected: int
) -> None:
    assert sets(builder, *components) == expected


FOUR_CPU_IN_THREE_PODS = (component(1, cpu=1), component(2, cpu="1.5"))


@pytest.mark.parametrize(
    ("builder", "assumed", "expected"),
    [
        pytest.param(cluster("m1").capacity(cpu=10), (), 2, id="none"),
        pytest.param(cluster("m1").capacity(cpu=10), FOUR_CPU_IN_THREE_PODS, 1, id="one-set"),
        pytest.param(cluster("m1").capacity(cpu=8), (component(4, cpu=2),), 0, id="all-cpu"),
        pytest.param(cluster("m1").capacity(cpu=8, pods=3), (component(3),), 0, id="all-pods"),
        pytest.param(
            cluster("m1").capacity(cpu=12), (component(1, cpu=1), component(1, cpu=3)), 2, id="part"
        ),
        pytest.param(cluster("m1").capacity(cpu=10), (component(3),), 2, id="pods-without-request"),
    ],
)
def test_assumed_workloads_reduce_the_number_of_sets(
    builder: ClusterBuilder, assumed: tuple[Component, ...], expected: int
) -> None:
    assert sets(builder, *FOUR_CPU_IN_THREE_PODS, assumed=assumed) == expected


def graded(*nodes: tuple[int, dict[str, object]]) -> ClusterBuilder:
    builder = cluster("m1").allocatable(
        {"cpu": 10**6, "memory": "999Ti", "nvidia.com/gpu": 10**6, "pods": 10**6}
    )
    for grade, (count, amounts) in enumerate(nodes):
        builder.grade(grade, nodes=count, **amounts)
    return builder


def node(cpu: object, memory: object = "999Gi", gpu: int = 0) -> dict[str, object]:
    return {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpu}


@pytest.mark.parametrize(
    ("builder", "components", "assumed", "expected"),
    [
        pytest.param(graded((2, node(2))), [component(1, cpu=1)], (), 4, id="two-nodes"),
        pytest.param(
            graded((2, node(2))), [component(1, cpu=1)], (component(2, cpu=1),), 2, id="besides-assumed"
        ),
        pytest.param(
            graded((5, node("500m")), (0, node(1)), (10, node(2))),
            [component(1, cpu="1.5")],
            (),
            10,
            id="one",
        ),
        pytest.param(
            graded((4, node(1, "2Gi", 0)), (3, node(2, "4Gi", 1)), (2, node(4, "8Gi", 2))),
            [Component("c", 2, wants({"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": 1}))],
            (),
            3,
            id="gpu",
        ),
        pytest.param(graded((10, node(1)), (10, node(2))), [component(1, cpu=3)], (), 0, id="none"),
        pytest.param(
            graded((2, node(1, "2Gi")), (6, node(3, "10Gi")), (3, node(4, "12Gi"))),
            [component(1, cpu=1, memory="2Gi"), component(3, cpu=3, memory="10Gi")],
            (),
            3,
            id="two-components",
        ),
        pytest.param(graded((2, node(2))), [component(3, cpu=1)], (), 1, id="over-two-nodes"),
        pytest.param(graded((1, node(0))), [component(1, cpu=1)], (), 0, id="nothing"),
        pytest.param(graded((4, node(1))), [component(1, cpu=2)], (), 0, id="no-node-is-large-enough"),
        pytest.param(
            graded((1, node(8, "16Gi"))),
            [component(2, cpu=1, memory="2Gi"), component(1, cpu=2, memory="4Gi")],
            (),
            2,
            id="two-sets-on-one-node",
        ),
        pytest.param(
            graded((1, node(1, "2Gi")), (1, node(4, "8Gi")), (1, node(8, "16Gi"))),
            [component(2, cpu="500m", memory="1Gi"), component(1, cpu=2, memory="4Gi")],
            (),
            4,
            id="different-nodes",
        ),
        pytest.param(cluster("m1").capacity(cpu=7).nodes(1, 3), [component(1, cpu=1)], (), 7, id="no-models"),
    ],
)
def test_sets_are_estimated_by_resource_models(
    builder: ClusterBuilder, components: list[Component], assumed: tuple[Component, ...], expected: int
) -> None:
    assert sets(builder, *components, assumed=assumed) == expected


def test_models_limit_sets_only_if_the_gate_is_on() -> None:
    builder = graded((1, node(1)))
    assert sets(builder, component(1, cpu=1)) == 1
    assert sets(builder, component(1, cpu=1), on=WITHOUT_MODELS) == 10**6


def test_assumed_workloads_belong_to_their_cluster() -> None:
    clusters = [cluster(name).capacity(cpu=8).build() for name in ("a", "b")]
    assumed = {"a": [AssumedWorkload("ns", (component(1, cpu=4),))]}
    estimator = GeneralEstimator(DEDUCTING)
    assert estimator.max_available_component_sets(clusters, [component(1, cpu=4)], "ns", assumed) == [1, 2]
    assert estimator.max_available_replicas(clusters, requiring(cpu=4), assumed) == [1, 2]


def test_the_capacity_of_a_cluster_is_computed_once_for_each_version() -> None:
    estimator = GeneralEstimator(gates())
    first, second = (cluster("m1").capacity(cpu=4).build() for _ in range(2))
    capacity = estimator._cached_capacity(first)
    assert estimator._cached_capacity(first) is capacity
    assert estimator._cached_capacity(second) is not capacity


def test_sets_that_take_too_long_to_count_name_their_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada_scheduler.estimator.nodes._MAX_VISITED", 1)
    with pytest.raises(OverBudgetError, match=r"^cluster m1: the nodes of its resource models differ"):
        sets(graded((2, node(3))), component(1, cpu=1), component(1, cpu=2))


@pytest.mark.parametrize("counts_sets", [True, False])
def test_capacities_of_clusters_that_were_removed_are_dropped(*, counts_sets: bool) -> None:
    estimator = GeneralEstimator(gates())
    for number in range(100):
        clusters = [cluster(f"m{number}-{each}").capacity(pods=3).build() for each in range(5)]
        if counts_sets:
            estimator.max_available_component_sets(clusters, [component(1)], "ns", {})
        else:
            estimator.max_available_replicas(clusters, None, {})
        assert len(estimator._capacities) <= 120
