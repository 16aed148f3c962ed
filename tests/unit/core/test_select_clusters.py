"""Selection of clusters by spread constraints."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from karmada_scheduler.api.placement import Placement, SpreadConstraint
from karmada_scheduler.core import select_clusters as select_clusters_module
from karmada_scheduler.core.ordering.candidates import Region
from karmada_scheduler.core.select_clusters import (
    ignores_spread,
    select_by_cluster,
    select_by_region,
    select_clusters,
)
from karmada_scheduler.framework import SchedulingError
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.diagnosis import OverBudgetError
from karmada_scheduler.testing import BindingBuilder, binding, cluster, decide, placed
from tests.unit.core.helpers import candidate, names, shared_order

ORDERED = [
    candidate("m4", score=60, available=50),
    candidate("m2", score=40, available=60),
    candidate("m3", score=30, available=80),
    candidate("m1", score=20, available=40),
]


def placement(builder: BindingBuilder) -> Placement:
    found = builder.build().spec.placement
    assert found is not None
    return found


def divided(preference: str = "") -> dict[str, object]:
    return {
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference}
    }


@pytest.mark.parametrize(
    ("builder", "needed", "chosen"),
    [
        pytest.param(
            binding("w").spread("cluster", 1, 2), 100, ["m4", "m2"], id="no-strategy-ignores-capacity"
        ),
        pytest.param(binding("w").duplicated().spread("cluster", 1, 2), 120, ["m4", "m2"], id="duplicated"),
        pytest.param(
            binding("w").static_weights(m1=2).spread("cluster", 1, 2),
            120,
            ["m4", "m2", "m3", "m1"],
            id="fixed-weights-ignore-the-constraint",
        ),
        pytest.param(
            binding("w").placement(divided()).spread("cluster", 1, 2),
            120,
            ["m4", "m3"],
            id="replaced-for-capacity",
        ),
        pytest.param(binding("w"), 10**6, ["m4", "m2", "m3", "m1"], id="no-constraint"),
        pytest.param(
            binding("w").duplicated().spread("cluster", 1, 9).spread("zone", 1, 1),
            5,
            ["m4", "m2", "m3", "m1"],
            id="zones-are-only-filtered-on",
        ),
        pytest.param(binding("w").duplicated().spread("cluster", 1), 5, [], id="no-maximum-selects-nothing"),
    ],
)
def test_clusters_are_selected_by_constraint(builder: BindingBuilder, needed: int, chosen: list[str]) -> None:
    found = select_clusters(placement(builder), ORDERED, replicas=needed, needed=needed)
    assert names(found) == chosen


@pytest.mark.parametrize(
    ("builder", "needed", "message"),
    [
        pytest.param(
            binding("w").placement(divided()).spread("cluster", 1, 2),
            200,
            "no enough resource when selecting 2 clusters",
            id="no-capacity",
        ),
        pytest.param(
            binding("w").placement(divided()).spread("cluster", 7, 7),
            30,
            "the number of feasible clusters is less than spreadConstraint.MinGroups",
            id="too-few",
        ),
        pytest.param(
            binding("w").placement(divided()).spread("cluster", 1),
            30,
            "no enough resource when selecting 0 clusters",
            id="no-maximum",
        ),
        pytest.param(
            binding("w").spread("zone", 1, 1),
            30,
            "just support cluster and region spread constraint",
            id="zone-alone",
        ),
        pytest.param(
            binding("w").placement({"spreadConstraints": [{"spreadByLabel": "l", "maxGroups": 1}]}),
            30,
            "just support cluster and region spread constraint",
            id="label-alone",
        ),
    ],
)
def test_an_impossible_selection_has_upstreams_error(
    builder: BindingBuilder, needed: int, message: str
) -> None:
    with pytest.raises(SchedulingError) as caught:
        select_clusters(placement(builder), ORDERED, replicas=needed, needed=needed)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("builder", "ignored"),
    [
        pytest.param(binding("w"), False, id="no-strategy"),
        pytest.param(binding("w").duplicated(), False, id="duplicated"),
        pytest.param(binding("w").aggregated(), False, id="aggregated"),
        pytest.param(binding("w").dynamic_weight(), False, id="dynamic"),
        pytest.param(binding("w").static_weights(), True, id="equal-weights"),
        pytest.param(binding("w").static_weights(m1=1), True, id="fixed-weights"),
        pytest.param(
            binding("w").placement(
                {
                    "replicaScheduling": {
                        "replicaSchedulingType": "Divided",
                        "replicaDivisionPreference": "Weighted",
                        "weightPreference": {},
                    }
                }
            ),
            False,
            id="weights-present-but-empty",
        ),
    ],
)
def test_static_weights_ignore_spread_constraints(builder: BindingBuilder, ignored: bool) -> None:
    assert ignores_spread(placement(builder)) is ignored


@pytest.mark.parametrize(
    ("needed", "chosen"),
    [
        pytest.param(15, ["m1", "m2"], id="enough"),
        pytest.param(20, ["m1", "m3"], id="last-replaced"),
        pytest.param(55, ["m4", "m3"], id="both-replaced-and-not-sorted-again"),
        pytest.param(81, None, id="never-enough"),
    ],
)
def test_the_least_preferred_clusters_are_replaced_by_those_with_the_most_capacity(
    needed: int, chosen: list[str] | None
) -> None:
    ordered = [
        candidate("m1", score=100, available=10),
        candidate("m2", score=100, available=5),
        candidate("m3", available=40),
        candidate("m4", available=40),
        candidate("m5", available=8),
    ]
    constraint = SpreadConstraint("cluster", max_groups=2)
    if chosen is None:
        with pytest.raises(SchedulingError, match="no enough resource when selecting 2 clusters"):
            select_by_cluster(ordered, constraint, needed)
    else:
        assert names(select_by_cluster(ordered, constraint, needed)) == chosen


def region(name: str, score: int, *members: Candidate) -> Region:
    return Region.of(name, score, members)


def several(*members: str) -> list[Candidate]:
    return [candidate(name, score=100 - index) for index, name in enumerate(members)]


B1 = [
    region("R1", 100, candidate("m1", score=100, available=40), candidate("m2", score=80, available=40)),
    region(
        "R2",
        80,
        candidate("m3", score=80, available=40),
        candidate("m4", score=80, available=40),
        candidate("m5", score=60, available=40),
    ),
]
B3 = [
    region("R1", 90, candidate("m1", score=90)),
    region("R2", 70, candidate("m2", score=70), candidate("m3", score=60), candidate("m4", score=30)),
    region("R3", 80, candidate("m5", score=80), candidate("m6", score=50, available=60)),
    region("R4", 50, *several("m7", "m8", "m9", "m10")),
]
B4 = [
    region("R1", 70, candidate("m1", score=70)),
    region("R2", 40, candidate("m2", score=40), candidate("m3", score=35), candidate("m4", score=30)),
    region("R3", 60, candidate("m5", score=60), candidate("m6", score=50, available=60)),
    region("R4", 70, candidate("m7", score=65)),
    region("R5", 50, candidate("m8", score=50)),
]


@pytest.mark.parametrize(
    ("regions", "by_region", "by_cluster", "chosen"),
    [
        pytest.param(B1, (1, 1), (2, 2), ["m1", "m2"], id="the-best-region"),
        pytest.param(B1, (1, 1), (3, 3), ["m3", "m4", "m5"], id="the-only-one-large-enough"),
        pytest.param(B3, (2, 2), (4, 5), ["m1", "m2", "m3", "m4"], id="best-sufficient-pair"),
        pytest.param(
            B4, (1, 3), (6, 8), ["m1", "m5", "m2", "m6", "m3", "m4"], id="one-of-each-then-the-best"
        ),
        pytest.param(B1, (1, 1), (0, 0), ["m1"], id="no-maximum-is-one-per-region"),
        pytest.param(B1, (2, 2), (1, 1), ["m1", "m3"], id="more-regions-than-clusters-allowed"),
    ],
)
def test_regions_are_selected_before_their_clusters(
    regions: Sequence[Region], by_region: tuple[int, int], by_cluster: tuple[int, int], chosen: list[str]
) -> None:
    regional = SpreadConstraint("region", min_groups=by_region[0], max_groups=by_region[1])
    clusterwise = SpreadConstraint("cluster", min_groups=by_cluster[0], max_groups=by_cluster[1])
    assert names(select_by_region(regions, regional, clusterwise)) == chosen


TWO = [region("R1", 9, *several("m1", "m2")), region("R2", 8, *several("m3", "m4", "m5"))]
TOO_FEW_REGIONS = "the number of feasible region is less than spreadConstraint.MinGroups"
TOO_FEW_CLUSTERS = "the number of clusters is less than the cluster spreadConstraint.MinGroups"


@pytest.mark.parametrize(
    ("regions", "by_region", "by_cluster", "message"),
    [
        pytest.param(TWO, (3, 3), (1, 9), TOO_FEW_REGIONS, id="regions"),
        pytest.param(TWO, (1, 1), (4, 4), TOO_FEW_CLUSTERS, id="no-region-large-enough"),
        pytest.param(TWO[:1], (1, 1), (3, 4), TOO_FEW_CLUSTERS, id="the-only-region-too-small"),
        pytest.param(TWO, (1, 0), (1, 4), TOO_FEW_CLUSTERS, id="no-maximum-of-regions"),
    ],
)
def test_insufficient_regions_are_an_error(
    regions: Sequence[Region], by_region: tuple[int, int], by_cluster: tuple[int, int], message: str
) -> None:
    regional = SpreadConstraint("region", min_groups=by_region[0], max_groups=by_region[1])
    clusterwise = SpreadConstraint("cluster", min_groups=by_cluster[0], max_groups=by_cluster[1])
    with pytest.raises(SchedulingError) as caught:
        select_by_region(regions, regional, clusterwise)
    assert str(caught.value) == message


def test_a_selection_of_regions_that_would_take_seconds_is_over_budget() -> None:
    regions = [region(f"R{n:03}", n, *several(*(f"m{n}-{m}" for m in range(10)))) for n in range(500)]
    with pytest.raises(
        OverBudgetError, match=r"^spec\.placement\.spreadConstraints: 500 regions, .* supported$"
    ):
        select_by_region(
            regions, SpreadConstraint("region", "", 400, 1), SpreadConstraint("cluster", "", 0, 4500)
        )


@pytest.mark.parametrize(
    ("builder", "chosen"),
    [
        pytest.param(binding("w"), ["m1", "m2"], id="no-constraint-takes-all"),
        pytest.param(binding("w").replicas(1).spread("cluster", 0, 1), ["m2"], id="the-most-available-one"),
        pytest.param(binding("w").names("m1", "m2"), ["m1", "m2"], id="named"),
        pytest.param(
            binding("w")
            .replicas(5)
            .dynamic_weight()
            .spread("cluster", 1, 1)
            .term("a", "m1", overflow=[["m2"]]),
            ["m1"],
            id="a-preferred-cluster-beats-one-with-more-capacity",
        ),
    ],
)
def test_selection_in_a_whole_decision(builder: BindingBuilder, chosen: list[str]) -> None:
    clusters = [cluster("m1").capacity(pods=10), cluster("m2").capacity(pods=20)]
    assert list(placed(decide(builder, *clusters))) == chosen


def test_both_regions_or_one_by_the_range_of_regions() -> None:
    clusters = [
        cluster("a1").region("RA").capacity(pods=4),
        cluster("b1").region("RB").capacity(pods=12),
        cluster("b2").region("RB").capacity(pods=6),
        cluster("c1").region("RC").capacity(pods=20),
        cluster("c2").region("RC").capacity(pods=1),
    ]

    def builder(at_least: int) -> BindingBuilder:
        return binding("w").replicas(10).aggregated().spread("region", at_least, 2).spread("cluster", 2, 2)

    selected = [
        {each.name for each in decide(builder(at_least), *clusters).attempts[-1].selected}
        for at_least in (1, 2)
    ]
    assert selected == [{"b1", "b2"}, {"b1", "c1"}]


def test_bindings_with_a_shared_order_and_equal_constraints_share_the_selection() -> None:
    ordered = shared_order(
        [
            candidate("a1", region="RA", score=100, available=9),
            candidate("b1", region="RB", available=8),
            candidate("b2", region="RB", available=7),
        ]
    )

    def chosen(placed: Placement, replicas: int) -> Sequence[Candidate]:
        return select_clusters(placed, ordered, replicas=replicas, needed=replicas)

    one = binding("w").aggregated().spread("region", 1, 1)
    few = placement(one.spread("cluster", 1, 2))
    first = chosen(few, 5)
    assert names(first) == ["a1"]
    assert chosen(few, 5) is first
    assert names(chosen(few, 15)) == ["b1", "b2"]
    assert names(chosen(placement(binding("w").aggregated().spread("region", 2, 2)), 5)) == ["a1", "b1"]
    assert names(chosen(placement(binding("w").duplicated().spread("region", 1, 1)), 5)) == ["b1"]
    for replicas in range(100, 200):
        chosen(few, replicas)
    assert chosen(few, 5) is not first
    assert chosen(few, 5) == first


def test_replacing_clusters_by_a_heap_equals_replacing_one_by_one() -> None:
    random_ = random.Random(6)
    for _ in range(500):
        ordered = [candidate(f"m{n}", available=random_.randint(0, 6)) for n in range(random_.randint(1, 12))]
        most, needed = random_.randint(1, 12), random_.randint(0, 40)
        try:
            found = select_by_cluster(ordered, SpreadConstraint(max_groups=most), needed)
        except SchedulingError:
            found = []
        assert found == _replaced_one_by_one(ordered, min(most, len(ordered)), needed)


def _replaced_one_by_one(ordered: list[Candidate], count: int, needed: int) -> list[Candidate]:
    chosen, rest = ordered[:count], ordered[count:]
    for slot in range(count - 1, -1, -1):
        if sum(each.available for each in chosen) >= needed:
            break
        best = max(range(len(rest)), key=lambda index: rest[index].available, default=-1)
        if best >= 0 and rest[best].available > chosen[slot].available:
            chosen[slot], rest[best] = rest[best], chosen[slot]
    return chosen if sum(each.available for each in chosen) >= needed else []


def test_the_cache_of_selected_regions_counts_the_regions_of_its_keys() -> None:
    one_region = SpreadConstraint(spread_by_field="region", min_groups=1, max_groups=1)
    one_cluster = SpreadConstraint(spread_by_field="cluster", max_groups=1)
    for score in range(300):
        regions = [region(f"r{number}", score, candidate(f"m{number}")) for number in range(100)]
        assert len(select_by_region(regions, one_region, one_cluster)) == 1
    keys: Any = select_clusters_module._selected_groups._values
    assert sum(len(groups) for groups, _ in keys) <= select_clusters_module._MAX_GROUPS
