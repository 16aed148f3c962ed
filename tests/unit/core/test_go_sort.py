from __future__ import annotations

import random
from itertools import pairwise

import pytest

from karmada_scheduler.core.algorithms.go_sort import _Sorter, sort_descending


def test_ties_are_in_gos_order() -> None:
    # The order that sort.Slice of Go 1.26 gives; a stable sort would keep a to n in place among equals.
    keys = dict(zip("abcdefghijklmn", (5, 10, 10, 10, 7, 10, 10, 3, 10, 10, 10, 10, 10, 10), strict=True))
    assert sort_descending(keys, keys.__getitem__) == list("gkcdnfimbjleah")


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([1, 2, 1, 2], [1, 3, 0, 2], id="short-lists-are-stable"),
        pytest.param([3] * 40, list(range(40)), id="equal-keys-stay"),
        pytest.param([9, 9, *range(8, -30, -1)], list(range(40)), id="ordered-lists-stay"),
    ],
)
def test_ties_keep_the_order_that_go_gives_them(keys: list[int], order: list[int]) -> None:
    assert sort_descending(range(len(keys)), keys.__getitem__) == order


@pytest.mark.parametrize("length", [13, 30, 49, 50, 51, 120, 300, 1000])
@pytest.mark.parametrize("kinds", [2, 5, 1000])
@pytest.mark.parametrize("shape", ["random", "ascending", "sawtooth", "almost-descending"])
def test_any_list_is_sorted_completely(length: int, kinds: int, shape: str) -> None:
    random_ = random.Random(length * kinds)
    keys = [random_.randrange(kinds) for _ in range(length)]
    match shape:
        case "ascending":
            keys.sort()
        case "sawtooth":
            keys = [index % kinds for index in range(length)]
        case "almost-descending":
            keys.sort(reverse=True)
            keys[length // 2], keys[length // 3] = keys[length // 3], keys[length // 2]
    ordered = sort_descending(range(length), keys.__getitem__)
    assert sorted(ordered) == list(range(length))
    assert all(keys[one] >= keys[other] for one, other in pairwise(ordered))


def test_a_heap_sort_takes_over_when_partitions_stay_bad() -> None:
    random_ = random.Random(1)
    items = [(random_.randrange(40), index) for index in range(200)]
    sorter = _Sorter(list(items))
    sorter.sort(0, len(items), 0)
    assert sorted(sorter.items) == sorted(items)
    assert [key for key, _ in sorter.items] == sorted(key for key, _ in items)
