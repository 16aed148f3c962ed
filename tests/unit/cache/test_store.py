"""The versioned store: the newest version of each object wins, from a watch, a list or a write."""

from dataclasses import dataclass

import pytest

from karmada_pyscheduler.cache.store import Change, Store


@dataclass(frozen=True)
class FakeObject:
    name: str
    resource_version: str
    uid: str = "1"


@pytest.fixture
def store() -> Store[str, FakeObject]:
    return Store(lambda stored_object: stored_object.name)


def test_an_object_that_is_new_is_stored(store: Store[str, FakeObject]) -> None:
    stored_object = FakeObject("a", "5")
    change = store.put(stored_object)
    assert change == Change(None, stored_object)
    assert not change.is_rollback
    assert store.get("a") is stored_object


def test_a_newer_version_replaces_an_older_one_and_both_are_returned(store: Store[str, FakeObject]) -> None:
    old, new = FakeObject("a", "9"), FakeObject("a", "10")
    store.put(old)
    change = store.put(new)
    assert change == Change(old, new)
    assert not change.is_rollback


@pytest.mark.parametrize("version", ["9", "10"], ids=["older", "known"])
def test_a_version_that_is_not_newer_is_no_change(store: Store[str, FakeObject], version: str) -> None:
    stored = FakeObject("a", "10")
    store.put(stored)
    assert store.put(FakeObject("a", version)) is None
    assert store.get("a") is stored


def test_a_deleted_object_is_not_brought_back_by_an_older_list(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "5"))
    store.remove("a", 8)
    assert store.put(FakeObject("a", "7")) is None
    assert store.get("a") is None


def test_an_object_that_is_created_again_is_stored(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "5"))
    store.remove("a", 8)
    again = FakeObject("a", "9", uid="2")
    assert store.put(again) == Change(None, again)


def test_an_old_deletion_does_not_remove_a_newer_incarnation(store: Store[str, FakeObject]) -> None:
    again = FakeObject("a", "9", uid="2")
    store.put(again)
    assert store.remove("a", 8) is None
    assert store.get("a") is again


def test_a_deletion_may_have_the_version_that_is_stored(store: Store[str, FakeObject]) -> None:
    stored_object = FakeObject("a", "8")
    store.put(stored_object)
    assert store.remove("a", 8) == Change(stored_object, None)


def test_the_answer_to_a_write_is_stored_if_the_object_still_exists(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "5"))
    store.put_written(FakeObject("a", "6"))
    assert store.get("a") == FakeObject("a", "6")


def test_the_answer_to_a_write_does_not_restore_an_object_deleted_meanwhile(
    store: Store[str, FakeObject],
) -> None:
    store.put(FakeObject("a", "5"))
    store.remove("a", 7)
    store.put_written(FakeObject("a", "6"))
    assert store.get("a") is None


def test_the_answer_to_a_write_does_not_replace_another_incarnation(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "5", uid="2"))
    store.put_written(FakeObject("a", "6", uid="1"))
    assert store.get("a") == FakeObject("a", "5", uid="2")


def test_objects_that_are_not_in_a_list_are_missing_unless_they_are_newer(
    store: Store[str, FakeObject],
) -> None:
    for name, version in (("listed", "1"), ("gone", "2"), ("changed-last", "20"), ("created-since", "21")):
        store.put(FakeObject(name, version))
    assert store.missing_from(["listed"], 20) == ["gone", "changed-last"]


def test_a_discarded_object_counts_as_new_when_it_is_seen_again(store: Store[str, FakeObject]) -> None:
    stored_object = FakeObject("a", "5")
    store.put(stored_object)
    assert store.discard("a") == Change(stored_object, None)
    assert store.put(stored_object) == Change(None, stored_object)


def test_a_discarded_object_has_no_earlier_deletion_either(store: Store[str, FakeObject]) -> None:
    store.remove("a", 8)
    store.put(FakeObject("a", "9", uid="2"))
    store.discard("a")
    assert store.put(FakeObject("a", "7")) is not None


def test_deletions_beyond_a_bound_are_forgotten_the_oldest_first(
    store: Store[str, FakeObject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada_pyscheduler.cache.store._TOMBSTONES", 2)
    store.remove("a", 8)
    store.remove("b", 8)
    assert store.is_known("a", 8)
    store.remove("c", 8)
    assert [key for key in "abc" if store.is_known(key, 8)] == ["b", "c"]


@pytest.mark.parametrize("as_of", [990, 1000])
def test_a_list_replaces_versions_that_are_not_newer_than_the_list(
    store: Store[str, FakeObject], as_of: int
) -> None:
    """After a restore of etcd a list has older versions than the store."""
    before, restored = FakeObject("a", "990"), FakeObject("a", "750")
    store.put(before)
    assert store.put(restored) is None
    change = store.put(restored, as_of=as_of)
    assert change == Change(before, restored)
    assert change.is_rollback
    assert store.get("a") is restored


def test_a_list_does_not_replace_newer_versions(store: Store[str, FakeObject]) -> None:
    newer = FakeObject("a", "1001")
    store.put(newer)
    assert store.put(FakeObject("a", "750"), as_of=1000) is None
    assert store.get("a") is newer


def test_a_list_with_known_versions_changes_nothing(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "750"))
    assert store.put(FakeObject("a", "750"), as_of=1000) is None


def test_a_list_restores_an_object_that_was_deleted_before_it(store: Store[str, FakeObject]) -> None:
    store.put(FakeObject("a", "750"))
    store.remove("a", 900)
    assert store.put(FakeObject("a", "750"), as_of=899) is None
    assert store.put(FakeObject("a", "750"), as_of=1000) == Change(None, FakeObject("a", "750"))


def test_every_version_is_new_after_the_known_ones_were_forgotten(store: Store[str, FakeObject]) -> None:
    for name, version in (("a", "990"), ("same", "700"), ("other kind", "990")):
        store.put(FakeObject(name, version))
    store.put(FakeObject("gone", "980"))
    store.remove("gone", 985)
    assert store.newest_version(lambda key: key != "other kind") == 990
    store.forget_versions(lambda key: key != "other kind")
    assert store.newest_version(lambda key: key != "other kind") == -1
    assert store.get("a") == FakeObject("a", "990")
    assert store.put(FakeObject("a", "800")) == Change(FakeObject("a", "990"), FakeObject("a", "800"))
    assert store.put(FakeObject("gone", "600")) == Change(None, FakeObject("gone", "600"))
    same = store.put(FakeObject("same", "700"))
    assert same is not None
    assert same.is_same_version
    assert store.put(FakeObject("other kind", "800")) is None
    assert store.missing_from(["a", "gone", "same", "other kind"], 801) == []


def test_another_content_of_a_version_replaces_an_object_if_contents_are_compared(
    store: Store[str, FakeObject],
) -> None:
    before, after = FakeObject("a", "990", uid="1"), FakeObject("a", "990", uid="2")
    store.put(before)
    assert store.put(after, as_of=1000) is None
    assert store.put(before, as_of=1000, by_content=True) is None
    change = store.put(after, as_of=980, by_content=True)
    assert change == Change(before, after)
    assert not change.is_rollback
    assert store.put(FakeObject("a", "985", uid="3"), as_of=986, by_content=True) is None


def test_objects_that_are_not_in_a_list_are_missing_after_versions_were_forgotten(
    store: Store[str, FakeObject],
) -> None:
    store.put(FakeObject("a", "990"))
    store.forget_versions(lambda _: True)
    assert store.missing_from([], 800) == ["a"]
