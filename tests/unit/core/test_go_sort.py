from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from itertools import pairwise, product

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


@pytest.mark.parametrize("place", [0, 1, 2, 30, 57])
@pytest.mark.parametrize("late", [1, 2, 3])
def test_one_element_that_is_late_is_moved_to_its_place(place: int, late: int) -> None:
    keys = [62, 60, *range(60, 0, -1)]
    keys.insert(place + late, keys.pop(place))
    ordered = [keys[index] for index in sort_descending(range(62), keys.__getitem__)]
    assert ordered == sorted(keys, reverse=True)


def test_a_heap_sort_takes_over_when_partitions_stay_bad() -> None:
    random_ = random.Random(1)
    items = [(random_.randrange(40), index) for index in range(200)]
    sorter = _Sorter(list(items))
    sorter.sort(0, len(items), 0)
    assert sorted(sorter.items) == sorted(items)
    assert [key for key, _ in sorter.items] == sorted(key for key, _ in items)


def ordered_by(keys: Sequence[int], limit: int) -> list[int]:
    """Return how the indexes of keys are ordered if so many bad partitions are allowed; -1 for as many as in a sort."""
    sorter = _Sorter([(-key, index) for index, key in enumerate(keys)])
    sorter.sort(0, len(keys), len(keys).bit_length() if limit < 0 else limit)
    return [index for _, index in sorter.items]


def keys_of(shape: str, length: int, kinds: int) -> list[int]:
    state, keys = 1000 * length + kinds, []
    for _ in range(length):
        state = (1103515245 * state + 12345) % 2**31
        keys.append((state >> 8) % kinds)
    match shape:
        case "ascending":
            keys.sort()
        case "sawtooth":
            keys = [index % kinds for index in range(length)]
        case "pipe":
            keys = [min(index, length - index) * kinds // length for index in range(length)]
        case "almost-descending":
            keys.sort(reverse=True)
            for one, other in ((length // 2, length // 3), (length // 5, length // 7)):
                keys[one], keys[other] = keys[other], keys[one]
        case "skewed":
            keys = [kinds - 1 if key else 0 for key in keys]
    return keys


_GO_ORDERS = {
    "random": "87ca42c71deabdc1 d1d1f47372ff9594 d5d718709d0947c7 000fa3832aef27b2",
    "ascending": "8ddce68d7e2750ab aaf509906d6f9f75 023b26ac702040ac ae6526d1cd594528",
    "sawtooth": "ce12a4e599efa16e 0ac5b483486154d3 16a03ff6530aae62 624ecb152d7e3bd4",
    "pipe": "ee8d3de2736df517 14df121be5e1b2bf ee8d3de2736df517 ee8d3de2736df517",
    "almost-descending": "dfafdcdd1fd566e9 419f3986a2c2f5b0 402bb2e21987181a 9f787e7c70c95b46",
    "skewed": "c49beb2b98d803ad 7032b79c501b49ad 6a3191d28d75d964 3fe7907cc8dcce4e",
}
"""Digests of the orders that ``pdqsort_func`` of Go 1.26.8 gives, with the limits -1, 0, 1 and 2 of bad partitions."""


@pytest.mark.parametrize("shape", _GO_ORDERS)
def test_every_order_is_the_one_that_go_gives(shape: str) -> None:
    found = []
    for limit in (-1, 0, 1, 2):
        sizes = product((13, 24, 49, 50, 51, 64, 120, 300), (2, 5, 40))
        orders = [ordered_by(keys_of(shape, length, kinds), limit) for length, kinds in sizes]
        found.append(hashlib.sha256(json.dumps(orders).encode()).hexdigest()[:16])
    assert " ".join(found) == _GO_ORDERS[shape]
