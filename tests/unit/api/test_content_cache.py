"""The content cache has a limit in bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karmada_scheduler.api.binding import ReplicaRequirements
from karmada_scheduler.api.content_cache import cached_by_content, interned_map
from karmada_scheduler.api.manifest import ManifestError, read_text
from karmada_scheduler.api.quantity import parse


class Reader:
    """Records the texts that it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, text: str) -> list[str]:
        self.read.append(text)
        return [text]


@pytest.fixture
def reader() -> Reader:
    return Reader()


def _remembering(reader: Reader, *, long_bytes: int = 100) -> Callable[[str], list[str]]:
    @cached_by_content(entries=2, short=5, long_bytes=long_bytes)
    def read(text: str) -> list[str]:
        return reader(text)

    return read


def test_equal_texts_of_any_length_are_read_once(reader: Reader) -> None:
    read = _remembering(reader)
    for text in ("short", "a long text"):
        assert read(text) is read(str(text.encode(), "ascii"))
    assert reader.read == ["short", "a long text"]


def test_least_recently_used_long_texts_are_evicted(
    reader: Reader,
) -> None:
    read = _remembering(reader)
    first, second, third = "a" * 40, "b" * 40, "c" * 40
    for text in (first, second, first, third, first, second):
        read(text)
    assert reader.read == [first, second, third, second]


def test_a_text_larger_than_the_cache_evicts_nothing(reader: Reader) -> None:
    read = _remembering(reader)
    for text in ("a" * 40, "b" * 101, "b" * 101, "a" * 40):
        read(text)
    assert reader.read == ["a" * 40, "b" * 101, "b" * 101]


def test_errors_are_not_cached(reader: Reader) -> None:
    @cached_by_content(entries=2, short=5, long_bytes=100)
    def read(text: str) -> str:
        reader(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="long text"):
            read("long text")
    assert len(reader.read) == 2


def test_annotations_with_a_long_value_share_the_value_and_not_the_map() -> None:
    long = "x" * 5000
    one, other = ({"a": str(long.encode(), "ascii"), "b": "c"} for _ in range(2))
    assert interned_map(one) == one
    assert interned_map(one) is not interned_map(other)
    assert interned_map(one)["a"] is interned_map(other)["a"]
    assert interned_map({"b": "c"}) is interned_map({"b": "c"})


def test_the_key_of_a_request_is_short_and_distinguishes_requests() -> None:
    huge = ReplicaRequirements({f"example.com/r{number}": parse("1") for number in range(10_000)})
    assert len(huge.key) == 32
    written = [{"cpu": "1"}, {"cpu": "1000m"}, {"cpu": "2"}, {"memory": "1"}, {"cpu": "1", "memory": "1"}]
    keys = {
        ReplicaRequirements({name: parse(amount) for name, amount in each.items()}).key for each in written
    }
    assert len(keys) == len(written)
    amounts = {"cpu": parse("1"), "memory": parse("1Gi")}
    turned = dict(reversed(amounts.items()))
    assert ReplicaRequirements(amounts).key == ReplicaRequirements(turned).key


def test_the_error_for_a_wrong_type_is_short_for_any_value() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    for value in (deep, 10**5000, ["x"] * 10**6):
        with pytest.raises(ManifestError, match=r"^a\.b: expected a string, got (list|int) .{,60}$"):
            read_text({"b": value}, "b", "a")
