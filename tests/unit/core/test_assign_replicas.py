"""Division of replicas: static weights, steady and fresh division by available replicas, tiers."""

from __future__ import annotations

import pytest

from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.core.assign_replicas import (
    assign_replicas,
    attach_empty,
    divides_by_tiers,
    strategy_of,
)
from karmada_scheduler.framework import SchedulingError, UnschedulableError
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster, decide, placed
from tests.unit.core.helpers import candidate, cycle, shown

LATER, EARLIER = "2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z"


def members(available: tuple[int, ...], held: tuple[int, ...] = ()) -> list[Candidate]:
    """Candidates m1, m2, ... that can add so many replicas to what they hold."""
    held += (0,) * (len(available) - len(held))
    return [
        candidate(f"m{index}", available=amount + present, allocatable=amount)
        for index, (amount, present) in enumerate(zip(available, held, strict=True), 1)
    ]


def on(builder: BindingBuilder, held: tuple[int, ...]) -> BindingBuilder:
    return builder.on(**{f"m{index}": count for index, count in enumerate(held, 1) if count})


def assigned(builder: BindingBuilder, candidates: list[Candidate]) -> list[tuple[str, int]]:
    return shown(assign_replicas(cycle(builder), candidates))


def failure(builder: BindingBuilder, candidates: list[Candidate]) -> SchedulingError:
    with pytest.raises(SchedulingError) as caught:
        assign_replicas(cycle(builder), candidates)
    return caught.value


# --- static weight ---


@pytest.mark.parametrize(
    ("replicas", "weights", "expected"),
    [
        (12, (3, 2, 1), (6, 4, 2)),
        (13, (3, 2, 1), (7, 4, 2)),
        (14, (3, 2, 1), (7, 5, 2)),
        (9, (1, 3), (2, 7)),
        (3, (1, 1), (2, 1)),
        (3, (1, 1, 1), (1, 1, 1)),
        (5, (1, 1, 1), (2, 2, 1)),
        (7, (2, 1, 1, 1), (3, 2, 1, 1)),
        (8, (2, 1, 1, 1), (3, 2, 2, 1)),
        (9, (2, 1, 1, 1), (3, 2, 2, 2)),
        (6, (1, 1, 1, 1), (2, 2, 1, 1)),
        (6, (2, 1, 1, 1), (3, 1, 1, 1)),
        (5, (1, 1, 1, 1), (2, 1, 1, 1)),
        (6, (1, 1, 1), (2, 2, 2)),
    ],
)
def test_static_weights_divide_in_proportion(
    replicas: int, weights: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    rules = {f"m{index}": weight for index, weight in enumerate(weights, 1)}
    builder = binding("w").replicas(replicas).static_weights(**rules)
    assert assigned(builder, members((0,) * len(weights))) == [
        (f"m{index}", count) for index, count in enumerate(expected, 1)
    ]


def rules(*weights: tuple[str, int]) -> dict[str, object]:
    listed = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights]
    preference = {"staticWeightList": listed}
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": preference,
        }
    }


@pytest.mark.parametrize(
    ("builder", "count", "expected"),
    [
        pytest.param(
            binding("w").replicas(12).static_weights(), 3, [4, 4, 4], id="no-weights-are-equal-weights"
        ),
        pytest.param(binding("w").replicas(3).static_weights(), 1, [3], id="alone"),
        pytest.param(
            binding("w").replicas(0, cpu=1).static_weights(m1=1, m2=1), 2, [], id="nothing-to-divide"
        ),
        pytest.param(binding("w").replicas(2).static_weights(m1=1), 2, [2], id="no-weight-no-replicas"),
        pytest.param(
            binding("w").replicas(3).placement(rules(("m1", 1), ("m2", 1), ("m1", 2))),
            2,
            [2, 1],
            id="largest-rule",
        ),
        pytest.param(
            binding("w").replicas(4).placement(rules(("m9", 1))), 2, [2, 2], id="no-rule-matches-any-cluster"
        ),
        pytest.param(binding("w").replicas(4).placement(rules()), 2, [2, 2], id="empty-list"),
        pytest.param(
            binding("w").replicas(4).static_weights(m1=1, m2=1).on(m1=4),
            2,
            [2, 2],
            id="current-clusters-do-not-count",
        ),
    ],
)
def test_static_weights_ignore_capacity_and_current_clusters(
    builder: BindingBuilder, count: int, expected: list[int]
) -> None:
    assert assigned(builder, members((0,) * count)) == [
        (f"m{index}", replicas) for index, replicas in enumerate(expected, 1)
    ]


# --- by capacity, steady ---

SHORT = "Clusters available replicas {} are not enough to schedule."


@pytest.mark.parametrize(
    ("strategy", "available", "held", "replicas", "expected"),
    [
        pytest.param("dynamic", (1, 1, 1), (2, 4, 6), 6, (1, 2, 3), id="down-by-what-each-holds"),
        pytest.param("dynamic", (10, 10, 10), (2, 4, 6), 24, (6, 8, 10), id="up-by-capacity"),
        pytest.param("dynamic", (1, 1, 1), (2, 4, 6), 24, 3, id="up-without-capacity"),
        pytest.param("aggregated", (1, 1, 1), (4, 8), 6, (0, 6, 0), id="down-to-the-largest"),
        pytest.param("aggregated", (100, 100), (4, 8), 8, (0, 8), id="down-in-spite-of-free-capacity"),
        pytest.param("aggregated", (4, 6, 8), (4, 8), 24, (7, 12, 5), id="up-over-all"),
        pytest.param("aggregated", (6, 6, 20), (4, 8), 24, (10, 14, 0), id="up-on-those-in-use-first"),
        pytest.param("aggregated", (1, 1, 1), (4, 8), 24, 3, id="up-without-capacity"),
        pytest.param("dynamic", (6, 8, 10), (), 12, (3, 4, 5), id="first"),
        pytest.param("dynamic", (8, 8, 10), (), 12, (4, 4, 4), id="first-almost-even"),
        pytest.param("dynamic", (3, 3, 3), (), 12, 9, id="first-without-capacity"),
        pytest.param("aggregated", (6, 8, 10), (), 12, (0, 5, 7), id="fewest-clusters-in-proportion"),
        pytest.param("aggregated", (12, 8, 10), (), 12, (12, 0, 0), id="one-is-enough"),
        pytest.param("aggregated", (3, 3, 3), (), 12, 9, id="not-even-all"),
        pytest.param("dynamic", (18, 12, 6), (), 12, (6, 4, 2), id="18:12:6"),
        pytest.param("dynamic", (20, 12, 6), (), 12, (6, 4, 2), id="20:12:6"),
        pytest.param("dynamic", (6, 12, 6), (), 12, (3, 6, 3), id="6:12:6"),
        pytest.param("aggregated", (6, 12, 6), (), 12, (0, 12, 0), id="aggregated-on-one"),
        pytest.param("aggregated", (6, 6, 6), (), 12, (6, 6, 0), id="aggregated-on-two"),
        pytest.param("dynamic", (3,), (), 10, 3, id="one-cluster"),
        pytest.param("dynamic", (1, 5, 9), (11, 1), 12, (11, 1, 0), id="enough-is-enough"),
        pytest.param("dynamic", (1, 5, 9), (11, 1), 15, (11, 2, 2), id="three-more-by-capacity"),
    ],
)
def test_replicas_are_divided_by_capacity_and_current_clusters(
    strategy: str,
    available: tuple[int, ...],
    held: tuple[int, ...],
    replicas: int,
    expected: tuple[int, ...] | int,
) -> None:
    builder = on(binding("w").replicas(replicas), held)
    builder = builder.dynamic_weight() if strategy == "dynamic" else builder.aggregated()
    candidates = members(available, held)
    if isinstance(expected, int):
        error = failure(builder, candidates)
        assert isinstance(error, UnschedulableError)
        assert str(error) == f"failed to scale up: {SHORT.format(expected)}"
    else:
        assert assigned(builder, candidates) == [
            (f"m{index}", count) for index, count in enumerate(expected, 1) if count
        ]


def test_replicas_of_a_cluster_that_is_no_longer_a_candidate_go_to_the_others() -> None:
    gone = binding("w").replicas(12).dynamic_weight().on(m1=6, m3=6)
    assert assigned(gone, members((3, 3), (6,))) == [("m1", 9), ("m2", 3)]
    gone = binding("w").replicas(24).aggregated().on(m1=4, m2=8)
    rest = [
        candidate("m1", available=8, allocatable=4),
        candidate("m3", available=8),
        candidate("m4", available=12),
    ]
    assert assigned(gone, rest) == [("m1", 7), ("m3", 7), ("m4", 10)]


def test_placed_clusters_without_new_replicas_follow_in_the_order_of_names() -> None:
    builder = binding("w").replicas(20).aggregated().on(m3=4, m1=5, m2=3)
    candidates = [
        candidate("m1", available=14, allocatable=9),
        candidate("m2", available=3, allocatable=0),
        candidate("m3", available=4, allocatable=0),
        candidate("m4", available=30),
    ]
    assert assigned(builder, candidates) == [("m1", 13), ("m2", 3), ("m3", 4)]


def test_a_steady_division_with_the_right_sum_changes_nothing() -> None:
    builder = binding("w").replicas(12).aggregated().on(m2=1, m1=11)
    assert assigned(builder, members((0, 100), (11, 1))) == [("m2", 1), ("m1", 11)]


# --- fresh ---


def fresh(builder: BindingBuilder) -> BindingBuilder:
    return builder.reschedule_triggered(LATER).last_scheduled(EARLIER)


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        pytest.param(binding("w").dynamic_weight(), [("m1", 5), ("m2", 3), ("m3", 4)], id="dynamic"),
        pytest.param(binding("w").aggregated(), [("m1", 12)], id="aggregated"),
    ],
)
def test_fresh_division_ignores_the_current_division(
    builder: BindingBuilder, expected: list[tuple[str, int]]
) -> None:
    builder = fresh(builder.replicas(12).on(m1=11, m2=1))
    assert assigned(builder, members((1, 5, 9), (11, 1))) == expected


def test_fresh_division_adds_up_a_cluster_that_is_listed_twice() -> None:
    builder = fresh(binding("w").replicas(4).dynamic_weight())
    builder.manifest()["spec"]["clusters"] = [{"name": "m1", "replicas": 2}, {"name": "m1", "replicas": 2}]
    assert assigned(builder, members((0,), (2,))) == [("m1", 4)]


def test_fresh_division_without_capacity_is_unschedulable() -> None:
    error = failure(fresh(binding("w").replicas(9).dynamic_weight()), members((4, 4)))
    assert isinstance(error, UnschedulableError)
    assert str(error) == f"failed to do fresh scale: {SHORT.format(8)}"


MAX = 2**31 - 1


def test_fresh_division_of_zero_replicas_overflows_as_upstream_does() -> None:
    builder = fresh(binding("w").replicas(0, cpu=1).dynamic_weight())
    assert str(failure(builder, members((MAX, MAX)))) == f"failed to do fresh scale: {SHORT.format(-2)}"
    assert assigned(builder, members((MAX,) * 3)) == []
    held = fresh(binding("w").replicas(0, cpu=1).dynamic_weight().on(m1=5))
    assert (
        str(failure(held, members((MAX,), (5,)))) == f"failed to do fresh scale: {SHORT.format(-2147483644)}"
    )


# --- duplicated, and workloads without replicas ---


def test_duplicated_gives_all_replicas_to_every_cluster() -> None:
    assert assigned(binding("w").replicas(2).duplicated(), members((0, 0))) == [("m1", 2), ("m2", 2)]
    assert assigned(binding("w").replicas(2), members((0, 0))) == [("m1", 2), ("m2", 2)]
    assert assigned(binding("w").replicas(0, cpu=1).duplicated(), members((0, 0))) == []


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(binding("w").replicas(0), id="no-replicas-no-requirements"),
        pytest.param(binding("w").replicas(0).dynamic_weight(), id="divided-all-the-same"),
        pytest.param(binding("w").replicas(0).component("a", 1), id="one-component"),
        pytest.param(binding("w").replicas(3).component("a", 1).component("b", 1), id="two-components"),
    ],
)
def test_workloads_without_divisible_replicas_go_to_all_candidates_in_order(builder: BindingBuilder) -> None:
    assert assigned(builder, list(reversed(members((5, 9))))) == [("m2", 0), ("m1", 0)]


def test_replicas_of_a_workload_with_one_component_are_divided() -> None:
    builder = binding("w").replicas(3).component("a", 1).dynamic_weight()
    assert assigned(builder, members((1, 2))) == [("m1", 1), ("m2", 2)]


def test_no_candidates_are_an_error() -> None:
    assert str(failure(binding("w").replicas(1), [])) == "no clusters available to schedule"


def test_an_unknown_strategy_is_named() -> None:
    strategy = {
        "replicaSchedulingType": "UnsupportedType",
        "replicaDivisionPreference": "UnsupportedPreference",
    }
    error = failure(binding("w").replicas(3).placement({"replicaScheduling": strategy}), members((1,)))
    assert not isinstance(error, UnschedulableError)
    assert str(error) == (
        "unsupported replica scheduling strategy, replicaSchedulingType: UnsupportedType, "
        "replicaDivisionPreference: UnsupportedPreference, please try another scheduling strategy"
    )


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (None, "Duplicated"),
        ({"replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Aggregated"}, "Duplicated"),
        ({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}, "Aggregated"),
        ({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}, "StaticWeight"),
        (
            {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
                "weightPreference": {"dynamicWeight": "anything"},
            },
            "DynamicWeight",
        ),
    ],
)
def test_a_placement_names_one_strategy(strategy: dict[str, object] | None, name: str) -> None:
    placement = binding("w").placement({"replicaScheduling": strategy}).build().spec.placement
    assert placement is not None
    assert strategy_of(placement) == name


def test_selected_clusters_without_replicas_can_be_attached() -> None:
    builder = binding("w").replicas(3).static_weights(m1=1, m2=2)
    candidates = members((0, 0, 0))
    targets = attach_empty(assign_replicas(cycle(builder), candidates), candidates)
    assert shown(targets) == [("m1", 1), ("m2", 2), ("m3", 0)]


# --- overflow ---


def overflowing(replicas: int, **held: int) -> BindingBuilder:
    builder = (
        binding("w").replicas(replicas).dynamic_weight().term("a", "m1", overflow=[["m2"]]).observing("a")
    )
    return builder.on(**held) if held else builder


def tiers(first: tuple[int, int], second: tuple[int, int]) -> list[Candidate]:
    """Return one candidate in each of two tiers, from its allocatable and its current replicas."""
    return [
        candidate(f"m{tier + 1}", tier=tier, available=allocatable + held, allocatable=allocatable)
        for tier, (allocatable, held) in enumerate((first, second))
    ]


@pytest.mark.parametrize(
    ("builder", "candidates", "expected"),
    [
        pytest.param(overflowing(5), tiers((10, 0), (10, 0)), [("m1", 5)], id="the-first-tier-is-enough"),
        pytest.param(overflowing(5), tiers((2, 0), (10, 0)), [("m1", 2), ("m2", 3)], id="the-rest-overflows"),
        pytest.param(
            overflowing(8, m1=3),
            tiers((2, 3), (10, 0)),
            [("m1", 5), ("m2", 3)],
            id="what-is-placed-counts",
        ),
        pytest.param(overflowing(5, m1=2, m2=3), tiers((5, 2), (0, 3)), [("m1", 5)], id="replicas-flow-back"),
        pytest.param(overflowing(3), tiers((0, 0), (5, 0)), [("m2", 3)], id="an-empty-tier-gets-nothing"),
        pytest.param(overflowing(5), tiers((-(2**31), 0), (10, 0)), [], id="the-rest-has-32-bits"),
    ],
)
def test_tiers_are_filled_in_order(
    builder: BindingBuilder, candidates: list[Candidate], expected: list[tuple[str, int]]
) -> None:
    assert assigned(builder, candidates) == expected


def test_tiers_without_capacity_are_unschedulable_without_a_number() -> None:
    error = failure(overflowing(10), tiers((2, 0), (2, 0)))
    assert isinstance(error, UnschedulableError)
    assert str(error) == "Clusters available replicas are not enough to schedule."


def test_an_explicit_empty_overflow_list_divides_by_tiers_too() -> None:
    builder = binding("w").replicas(10).dynamic_weight().term("a", "m1", overflow=[]).observing("a")
    assert str(failure(builder, members((2,)))) == "Clusters available replicas are not enough to schedule."
    without = binding("w").replicas(10).dynamic_weight().term("a", "m1").observing("a")
    assert str(failure(without, members((2,)))) == f"failed to scale up: {SHORT.format(2)}"


def test_only_the_term_in_force_and_no_single_affinity_is_divided_by_tiers() -> None:
    terms = binding("w").replicas(5).dynamic_weight().term("", "m1", overflow=[["m2"]]).term("b", "m3")
    candidates = tiers((2, 0), (10, 0))
    assert assigned(terms, candidates) == [("m1", 1), ("m2", 4)]
    assert assigned(terms.observing("b"), candidates) == [("m1", 1), ("m2", 4)]
    twice = (
        binding("w")
        .replicas(5)
        .dynamic_weight()
        .term("a", "m1")
        .term("a", "m1", overflow=[["m2"]])
        .observing("a")
    )
    assert assigned(twice, candidates) == [("m1", 2), ("m2", 3)]


def test_overflow_in_a_whole_decision() -> None:
    clusters = [cluster("m1").capacity(pods=2), cluster("m2").capacity(pods=10)]
    builder = binding("w").replicas(5).dynamic_weight().term("a", "m1", overflow=[["m2"]])
    decision = decide(builder, *clusters)
    assert placed(decision) == {"m1": 2, "m2": 3}
    assert decision.affinity_name == "a"


# --- many equal clusters ---


def test_more_than_twelve_equal_clusters_are_cut_where_go_cuts_them() -> None:
    # The candidates are not in descending order of capacity, so Go sorts them, and not stably: see test_go_sort.
    available = (5, 10, 10, 10, 7, 10, 10, 3, 10, 10, 10, 10, 10, 10)
    candidates = [
        candidate(name, available=amount) for name, amount in zip("abcdefghijklmn", available, strict=True)
    ]
    targets = assigned(binding("w").replicas(30).aggregated(), candidates)
    assert targets == [("c", 10), ("g", 10), ("k", 10)]


def test_static_weights_by_name_equal_matching_every_rule() -> None:
    rules = [
        {"targetCluster": {"clusterNames": ["a", "b"]}, "weight": 1},
        {"targetCluster": {"clusterNames": ["b"]}, "weight": 3},
        {"targetCluster": {"clusterNames": ["a"], "exclude": ["a"]}, "weight": 9},
        {"targetCluster": {"clusterNames": ["c"], "labelSelector": {}}, "weight": 2},
        {"targetCluster": {"clusterNames": ["c"]}, "weight": -5},
    ]
    placement = {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": rules},
        }
    }
    made = cycle(binding("w").replicas(12).placement(placement))
    assert dict(shown(assign_replicas(made, [candidate(name) for name in "abcd"]))) == {
        "a": 2,
        "b": 6,
        "c": 4,
    }


def test_a_cluster_affinity_together_with_terms_excludes_tiers() -> None:
    builder = binding("w").replicas(5).dynamic_weight().term("a", "m1", overflow=[["m2"]]).observing("a")
    both = cycle(builder)
    both = replace(both, placement=replace(both.placement, cluster_affinity=ClusterAffinity()))
    assert divides_by_tiers(cycle(builder))
    assert not divides_by_tiers(both)
