"""Selection of regions, compared with upstream's enumeration."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

import pytest

from karmada_scheduler.core.algorithms.select_groups import (
    Limits,
    RegionGroup,
    TooManyCellsError,
    select_groups,
)


def groups(text: str) -> list[RegionGroup]:
    """Read ``name:clusters:weight`` triples."""
    parts = [each.split(":") for each in text.split()]
    return [RegionGroup(name, int(clusters), int(weight)) for name, clusters, weight in parts]


SIX = "R1:1:80 R2:4:40 R3:1:30 R4:3:30 R5:3:20 R6:5:10"


@pytest.mark.parametrize(
    ("given", "limits", "chosen"),
    [
        pytest.param("", Limits(2, 3, 1), "", id="no-groups"),
        pytest.param("R1:1:80", Limits(2, 3, 1), "", id="too-few"),
        pytest.param("R1:1:80", Limits(10**9, 10**9, 1), "", id="far-too-few"),
        pytest.param("R1:1:80 R2:2:30", Limits(2, 3, 4), "", id="too-few-clusters"),
        pytest.param("R1:1:80", Limits(1, 3, 1), "R1", id="the-only-one"),
        pytest.param(
            "R1:1:80 R3:1:80 R2:1:60 R5:2:60 R4:5:50 R6:3:50",
            Limits(1, 3, 10),
            "R5 R4 R6",
            id="highest-weight-with-enough-clusters",
        ),
        pytest.param(SIX, Limits(2, 6, 5), "R1 R2", id="the-shortest-part-of-the-best"),
        pytest.param(
            "R1:1:60 R2:1:50 R3:1:40 R4:3:30 R5:3:20 R6:3:10",
            Limits(1, 3, 6),
            "R1 R4 R5",
            id="highest-weight-of-exactly-sufficient-sets",
        ),
        pytest.param("R1:1:60 R2:2:50 R3:3:40 R4:4:30", Limits(1, 2, 5), "R1 R4", id="ties-to-the-first"),
        pytest.param("R4:1:60 R3:3:50 R1:3:40 R2:4:30", Limits(1, 2, 5), "R3 R1", id="ties-to-more-clusters"),
        pytest.param("RA:1:4100 RB:2:10000 RC:2:10000", Limits(1, 2, 2), "RB", id="part-of-the-best-pair"),
        pytest.param("RA:1:4100 RB:2:5000 RC:2:5000", Limits(2, 2, 2), "RB RC", id="exactly-two"),
        pytest.param("R1:1:80", Limits(1, 0, 1), "", id="no-maximum-is-a-maximum-of-none"),
        pytest.param("R1:1:80", Limits(0, 1, 0), "", id="nothing-wanted-nothing-found"),
        pytest.param("R1:1:80", Limits(0, 1, 1), "R1", id="no-minimum"),
    ],
)
def test_the_best_regions_are_chosen(given: str, limits: Limits, chosen: str) -> None:
    assert [group.name for group in select_groups(groups(given), limits)] == chosen.split()


def enumerate_paths(ordered: Sequence[RegionGroup], limits: Limits) -> Iterator[tuple[RegionGroup, ...]]:
    """Return the sets that upstream records, in its order."""

    def extend(path: tuple[RegionGroup, ...], start: int) -> Iterator[tuple[RegionGroup, ...]]:
        if limits.suffice(len(path), sum(group.clusters for group in path)):
            yield path
        elif len(path) < limits.max_groups:
            for index in range(start, len(ordered)):
                yield from extend((*path, ordered[index]), index + 1)

    return extend((), 0)


def by_enumeration(given: Sequence[RegionGroup], limits: Limits) -> list[str]:
    ordered = sorted(given, key=lambda group: (group.clusters, -group.weight, group.name))
    recorded = [
        (
            -sum(group.weight for group in path),
            -sum(group.clusters for group in path),
            number,
            [group.name for group in sorted(path, key=lambda group: (-group.weight, group.name))],
        )
        for number, path in enumerate(enumerate_paths(ordered, limits))
    ]
    if not recorded:
        return []
    best, *others = (names for *_, names in sorted(recorded))
    for other in others:
        if len(other) < len(best) and best[: len(other)] == other:
            best = other
    return best


def test_seven_clusters_in_two_of_four_groups_have_five_ways() -> None:
    ordered = groups("a:2:0 b:3:0 c:6:0 d:7:0")
    found = [tuple(group.clusters for group in path) for path in enumerate_paths(ordered, Limits(2, 2, 7))]
    assert found == [(2, 6), (2, 7), (3, 6), (3, 7), (6, 7)]


def test_the_search_agrees_with_the_enumeration() -> None:
    random_ = random.Random(3)
    for _ in range(4000):
        count = random_.randint(0, 8)
        lowest = random_.choice([0, 0, 0, -60])
        given = [
            RegionGroup(f"R{i}", random_.randint(1, 6), random_.randint(lowest, 60) // 10 * 10)
            for i in range(count)
        ]
        limits = Limits(random_.randint(0, 4), random_.randint(0, 6), random_.randint(0, 15))
        assert [group.name for group in select_groups(given, limits)] == by_enumeration(given, limits), (
            given,
            limits,
        )


def test_many_regions_are_selected_fast() -> None:
    given = [RegionGroup(f"R{i:03}", 1 + i % 7, 1000 + i * 37 % 101) for i in range(120)]
    chosen = select_groups(given, Limits(3, 12, 40))
    assert 3 <= len(chosen) <= 12
    assert sum(group.clusters for group in chosen) >= 40


@pytest.mark.parametrize("weight", [1, 10**17, 2**62])
def test_the_search_agrees_with_the_enumeration_for_extreme_weights(weight: int) -> None:
    random_ = random.Random(4)
    for _ in range(300):
        given = [
            RegionGroup(f"R{i}", random_.randint(1, 9), weight * random_.randint(-3, 6))
            for i in range(random_.randint(0, 9))
        ]
        limits = Limits(random_.randint(0, 4), random_.choice([2, 4, 50]), random_.randint(0, 25))
        assert [group.name for group in select_groups(given, limits)] == by_enumeration(given, limits)


@pytest.mark.parametrize(
    ("regions", "limits"),
    [
        pytest.param(100, Limits(1, 100, 3000), id="no-maximum"),
        pytest.param(100, Limits(50, 100, 5000), id="large-minimum"),
        pytest.param(100, Limits(1, 60, 2500), id="maximum"),
    ],
)
def test_a_large_minimum_of_clusters_takes_less_than_two_seconds(regions: int, limits: Limits) -> None:
    given = [RegionGroup(f"R{i:03}", 50 + i % 9, 1000 + i * 37 % 101) for i in range(regions)]
    begin = time.process_time()
    chosen = select_groups(given, limits)
    assert time.process_time() - begin < 1.5
    assert limits.suffice(len(chosen), sum(group.clusters for group in chosen))


def test_a_selection_that_would_take_seconds_is_refused() -> None:
    given = [RegionGroup(f"R{i:04}", 10, i) for i in range(500)]
    with pytest.raises(
        TooManyCellsError, match=r"^spec\.placement\.spreadConstraints: 500 regions, .* are supported$"
    ):
        select_groups(given, Limits(1, 400, 4500))
