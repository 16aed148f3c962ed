"""The versioned store: three writers, one truth."""

from dataclasses import dataclass

import pytest

from karmada_scheduler.cache.store import Change, Store


@dataclass(frozen=True)
class Thing:
    name: str
    resource_version: str
    uid: str = "1"


@pytest.fixture
def store() -> Store[str, Thing]:
    return Store(lambda thing: thing.name)


def test_an_object_that_is_new_is_stored(store: Store[str, Thing]) -> None:
    thing = Thing("a", "5")
    assert store.put(thing) == Change(None, thing)
    assert store.get("a") is thing


def test_a_newer_version_replaces_an_older_one_and_both_are_told(store: Store[str, Thing]) -> None:
    old, new = Thing("a", "9"), Thing("a", "10")
    store.put(old)
    assert store.put(new) == Change(old, new)


@pytest.mark.parametrize("version", ["9", "10"], ids=["older", "known"])
def test_a_version_that_is_not_newer_is_no_news(store: Store[str, Thing], version: str) -> None:
    stored = Thing("a", "10")
    store.put(stored)
    assert store.put(Thing("a", version)) is None
    assert store.get("a") is stored


def test_a_deleted_object_is_not_brought_back_by_an_older_list(store: Store[str, Thing]) -> None:
    store.put(Thing("a", "5"))
    store.remove("a", 8)
    assert store.put(Thing("a", "7")) is None
    assert store.get("a") is None


def test_an_object_that_is_created_again_is_stored(store: Store[str, Thing]) -> None:
    store.put(Thing("a", "5"))
    store.remove("a", 8)
    again = Thing("a", "9", uid="2")
    assert store.put(again) == Change(None, again)


def test_an_old_deletion_does_not_remove_a_newer_incarnation(store: Store[str, Thing]) -> None:
    again = Thing("a", "9", uid="2")
    store.put(again)
    assert store.remove("a", 8) is None
    assert store.get("a") is again


def test_the_answer_to_a_write_is_stored_if_the_object_still_exists(store: Store[str, Thing]) -> None:
    store.put(Thing("a", "5"))
    store.put_written(Thing("a", "6"))
    assert store.get("a") == Thing("a", "6")


def test_the_answer_to_a_write_does_not_bring_back_what_was_deleted_meanwhile(
    store: Store[str, Thing],
) -> None:
    store.put(Thing("a", "5"))
    store.remove("a", 7)
    store.put_written(Thing("a", "6"))
    assert store.get("a") is None


def test_the_answer_to_a_write_does_not_replace_another_incarnation(store: Store[str, Thing]) -> None:
    store.put(Thing("a", "5", uid="2"))
    store.put_written(Thing("a", "6", uid="1"))
    assert store.get("a") == Thing("a", "5", uid="2")


def test_what_a_list_lacks_is_missing_unless_it_is_newer_than_the_list(store: Store[str, Thing]) -> None:
    for name, version in (("listed", "1"), ("gone", "2"), ("created-since", "30")):
        store.put(Thing(name, version))
    assert store.missing_from(["listed"], 20) == ["gone"]


def test_a_discarded_object_counts_as_new_when_it_is_seen_again(store: Store[str, Thing]) -> None:
    thing = Thing("a", "5")
    store.put(thing)
    assert store.discard("a") == Change(thing, None)
    assert store.put(thing) == Change(None, thing)
