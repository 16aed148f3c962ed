"""The order of candidates, and the scores of groups."""

from __future__ import annotations

import pytest

from karmada_scheduler.api.placement import Placement, SpreadConstraint
from karmada_scheduler.core.cluster_groups import (
    divided_score,
    duplicated_score,
    group_by_region,
    last_constraint,
    preferred_first,
    tier_of,
)
from karmada_scheduler.core.ordering.candidates import candidate_list
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.testing import binding, cluster
from tests.unit.core.helpers import candidate, cycle, names


def members(scores: list[int], available: list[int]) -> list[Candidate]:
    return [
        candidate(f"m{index}", score=score, available=amount)
        for index, (score, amount) in enumerate(zip(scores, available, strict=True))
    ]


@pytest.mark.parametrize(
    ("candidates", "order"),
    [
        pytest.param(
            [
                candidate(f"m{i}", score=score, available=100)
                for i, score in ((1, 20), (2, 40), (3, 30), (4, 60))
            ],
            ["m4", "m2", "m3", "m1"],
            id="by-score",
        ),
        pytest.param([candidate("b"), candidate("a")], ["a", "b"], id="by-name"),
        pytest.param(
            [candidate("a", available=5), candidate("b", available=10)], ["b", "a"], id="by-capacity"
        ),
        pytest.param(
            [candidate("a", score=100, available=9, tier=1), candidate("b")],
            ["b", "a"],
            id="tier-beats-everything",
        ),
    ],
)
def test_candidates_are_ordered_by_preference(candidates: list[Candidate], order: list[str]) -> None:
    assert names(preferred_first(candidates)) == order


HALF = [30, 30, 30, 10, 10]
TWO_HUNDRED = [100, 100, 0, 0, 0]


@pytest.mark.parametrize(
    ("replicas", "scores", "available", "expected"),
    [
        pytest.param(20, TWO_HUNDRED, [30] * 5, 5040, id="five-valid"),
        pytest.param(20, [100] * 5, HALF, 3100, id="three-valid"),
        pytest.param(20, TWO_HUNDRED, HALF, 3066, id="average-of-the-valid-ones"),
        pytest.param(50, [100] * 5, [60, 70, 40, 30, 10], 2100, id="two-valid"),
        pytest.param(50, [0] * 4, [60] * 4, 4000, id="no-scores"),
        pytest.param(10, [], [], 0, id="no-clusters"),
        pytest.param(10, [50, 50], [5, 5], 0, id="none-valid"),
        pytest.param(0, [100, 0], [2**31 - 1] * 2, 2050, id="without-replicas-all-are-valid"),
    ],
)
def test_a_duplicated_group_scores_by_the_clusters_that_hold_it(
    replicas: int, scores: list[int], available: list[int], expected: int
) -> None:
    assert duplicated_score(replicas, candidate_list(members(scores, available))) == expected


@pytest.mark.parametrize(
    ("scores", "available", "expected"),
    [
        pytest.param(TWO_HUNDRED, HALF, 50_100, id="enough-in-the-best-two"),
        pytest.param([100] * 5, [10, 10, 10, 5, 5], 40_100, id="too-little"),
        pytest.param(TWO_HUNDRED, [10, 10, 10, 10, 5], 45_040, id="too-little-averages-over-all"),
        pytest.param(TWO_HUNDRED, [10, 10, 10, 5, 5], 40_040, id="too-little-and-less-preferred"),
        pytest.param([0] * 5, [100] * 5, 50_000, id="surplus-capacity-does-not-count"),
        pytest.param([100] * 5, [50] * 5, 50_100, id="enough"),
        pytest.param([100] * 5, [10, 10, 10, 10, 5], 45_100, id="too-little-but-preferred"),
        pytest.param([0] * 4, [40, 30, 10, 10], 50_000, id="just-enough"),
        pytest.param([100] * 5, [40, 40, 10, 10, 5], 50_100, id="stops-at-the-second"),
    ],
)
def test_a_divided_group_scores_by_its_part_of_the_replicas(
    scores: list[int], available: list[int], expected: int
) -> None:
    assert divided_score(100, members(scores, available), min_groups=2, min_clusters=1) == expected


def test_without_replicas_a_divided_group_scores_by_its_first_clusters() -> None:
    group = members([100, 0, 0], [5, 5, 5])
    assert divided_score(0, group, min_groups=1, min_clusters=2) == 50


def test_a_minimum_of_zero_scores_as_go_does_on_amd64() -> None:
    group = members([100, 0], [5, 5])
    assert divided_score(10, group, min_groups=0, min_clusters=0) == 100
    assert divided_score(0, group, min_groups=0, min_clusters=2) == 50


def test_regions_hold_their_clusters_in_the_order_of_preference() -> None:
    placement = Placement(spread_constraints=(SpreadConstraint("region", min_groups=1, max_groups=2),))
    ordered = [
        candidate("m4", score=9, region="R2"),
        candidate("m2", region="R1"),
        candidate("m1", region="R1"),
        candidate("m3"),
    ]
    regions = group_by_region(placement, 0, ordered)
    assert [(region.name, names(region.candidates), region.score) for region in regions] == [
        ("R1", ["m2", "m1"], 2000),
        ("R2", ["m4"], 1009),
    ]


def test_the_last_of_several_constraints_on_a_field_counts() -> None:
    first, last = SpreadConstraint("region", min_groups=1), SpreadConstraint("region", min_groups=2)
    placement = Placement(spread_constraints=(first, SpreadConstraint("cluster"), last))
    assert last_constraint(placement, "region") == last
    assert last_constraint(placement, "zone") is None


@pytest.mark.parametrize(
    ("observing", "tiers"),
    [
        pytest.param("a", [0, 1, 2, 1000], id="first-match-counts"),
        pytest.param("gone", [1000] * 4, id="no-such-term"),
    ],
)
def test_tiers_are_the_overflow_affinities_in_order(observing: str, tiers: list[int]) -> None:
    builder = binding("web").replicas(1).term("a", "m1", overflow=[["m2", "m1"], ["m3"]]).observing(observing)
    assert [tier_of(cycle(builder), cluster(f"m{index}").build()) for index in (1, 2, 3, 4)] == tiers


def test_a_single_affinity_has_one_tier() -> None:
    assert tier_of(cycle(binding("web").names("m1")), cluster("m2").build()) == 0
    assert tier_of(cycle(binding("web")), cluster("m2").build()) == 0
