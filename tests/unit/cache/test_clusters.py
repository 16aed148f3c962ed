"""Snapshots of the clusters, and what changed between two of them."""

from __future__ import annotations

import pytest

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.framework import Snapshot, snapshot
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster


class CacheHarness:
    """A cache of clusters."""

    def __init__(self, *names: str) -> None:
        self.cache = ClusterCache()
        self.version = 0
        for name in names:
            self.report(name)

    def report(self, name: str, *, deleting: bool = False) -> None:
        self.version += 1
        new = replace(cluster(name).build(), resource_version=str(self.version), deleting=deleting)
        self.cache.put(new)

    def leave(self, name: str) -> None:
        self.version += 1
        self.cache.remove(name, self.version)

    def snapshot(self) -> Snapshot:
        return self.cache.snapshot()


def names(of: Snapshot) -> list[str]:
    return [each.name for each in of]


def gone(of: Snapshot | ClusterCache) -> set[str]:
    return set(filter(of.is_gone, ("m1", "m2", "m3")))


def test_without_a_change_there_is_one_snapshot() -> None:
    harness = CacheHarness("m2", "m1")
    assert harness.snapshot() is harness.snapshot()
    assert names(harness.snapshot()) == ["m1", "m2"]


def test_a_changed_status_is_in_the_next_snapshot_and_not_in_the_previous_one() -> None:
    harness = CacheHarness("m1", "m2")
    before = harness.snapshot()
    harness.report("m2")
    after = harness.snapshot()
    assert after.generation > before.generation
    assert [each.resource_version for each in before] == ["1", "2"]
    assert [each.resource_version for each in after] == ["1", "3"]
    assert after.get("m2") is after.clusters[1]
    assert after.not_terminating == after.clusters
    assert after.changed_since(before) == {"m2"}
    assert after.changed_since(after) == set()


def test_added_and_removed_clusters_are_in_the_change_log() -> None:
    harness = CacheHarness("m1", "m2")
    before = harness.snapshot()
    harness.leave("m1")
    harness.report("m3")
    after = harness.snapshot()
    assert names(after) == ["m2", "m3"]
    assert after.get("m1") is None
    assert after.changed_since(before) == {"m1", "m3"}


def test_a_cluster_is_gone_from_the_start_of_its_deletion_until_it_is_added_again() -> None:
    harness = CacheHarness("m1", "m2", "m3")
    assert gone(harness.cache) == set()
    harness.report("m1", deleting=True)
    assert gone(harness.cache) == {"m1"}
    harness.report("m2", deleting=True)
    assert gone(harness.cache) == {"m1", "m2"}
    harness.leave("m1")
    assert gone(harness.cache) == {"m1", "m2"}
    harness.report("m1")
    assert gone(harness.cache) == {"m2"}


def test_a_cluster_that_may_exist_is_not_gone() -> None:
    harness = CacheHarness("m1")
    assert gone(harness.cache) == {"m2", "m3"}
    harness.cache.refuse("m2", 5, "it cannot be read")
    assert gone(harness.cache) == {"m3"}
    harness.cache.set_incomplete(True)
    assert gone(harness.cache) == set()
    harness.cache.set_incomplete(False)
    harness.cache.remove("m2", 6)
    assert gone(harness.cache) == {"m2", "m3"}
    harness.leave("m1")
    assert gone(harness.cache) == set(), "no cluster is known"


def test_a_cluster_with_a_deletion_timestamp_is_terminating() -> None:
    harness = CacheHarness("m1", "m2")
    before = harness.snapshot()
    harness.report("m1", deleting=True)
    going = harness.snapshot()
    assert (names(going), [each.name for each in going.not_terminating]) == (["m1", "m2"], ["m2"])
    harness.report("m2")
    assert names(harness.snapshot()) == ["m1", "m2"]
    assert [each.name for each in harness.snapshot().not_terminating] == ["m2"]
    harness.leave("m1")
    assert harness.snapshot().not_terminating == harness.snapshot().clusters
    assert harness.snapshot().changed_since(before) == {"m1", "m2"}


def test_an_unreadable_version_that_is_being_deleted_makes_the_cluster_terminating() -> None:
    harness = CacheHarness("m1")
    for name, version in (("m1", 7), ("m2", 8)):
        assert harness.cache.put_deleting(name, version) is not None
        stored = harness.cache.get(name)
        assert stored is not None
        assert (stored.deleting, stored.resource_version) == (True, str(version))
    assert harness.snapshot().not_terminating == ()
    assert harness.cache.put_deleting("m1", 6) is None


def test_clusters_that_come_and_go_between_snapshots_leave_nothing() -> None:
    """A standby takes no snapshots."""
    harness = CacheHarness("m1")
    before = harness.snapshot()
    for number in range(3):
        harness.report(f"new{number}")
        harness.leave(f"new{number}")
    assert not harness.cache._changed
    assert harness.snapshot() is before
    harness.leave("m1")
    assert names(harness.snapshot()) == []


def test_changes_between_snapshots_of_different_origin_are_unknown() -> None:
    one, other = CacheHarness("m1"), CacheHarness("m1")
    assert one.snapshot().changed_since(other.snapshot()) is None
    assert one.snapshot().changed_since(Snapshot.of(one.snapshot())) is None


def test_changes_beyond_the_log_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_KEPT_CHANGES", 3)
    harness = CacheHarness("m1", "m2")
    first = harness.snapshot()
    for _ in range(5):
        harness.report("m2")
    assert harness.snapshot().changed_since(first) is None
    later = harness.snapshot()
    harness.report("m1")
    assert harness.snapshot().changed_since(later) == {"m1"}


def test_an_unreadable_cluster_is_kept_by_name_until_it_is_readable_or_gone() -> None:
    harness = CacheHarness("m1")
    assert harness.cache.refuse("m2", 5, "spec.taints: is wrong")
    assert harness.cache.refuse("m3", 6, "spec.taints: is wrong")
    assert harness.snapshot().unknown.unreadable == {
        "m2": "spec.taints: is wrong",
        "m3": "spec.taints: is wrong",
    }
    assert names(harness.snapshot()) == ["m1"]
    assert harness.cache.missing_from({"m1", "m2", "m3"}, 9) == []
    assert harness.cache.missing_from({"m1", "m3"}, 9) == ["m2"]
    harness.report("m3")
    harness.leave("m2")
    assert not harness.snapshot().unknown
    assert names(harness.snapshot()) == ["m1", "m3"]
    assert not harness.cache.refuse("m2", 2, "an older version than that which was deleted")


def test_a_readable_cluster_keeps_its_version_when_a_new_one_is_refused() -> None:
    harness = CacheHarness("m1")
    before = harness.snapshot()
    assert not harness.cache.refuse("m1", 5, "spec.taints: is wrong")
    assert harness.snapshot() is before


def test_unknown_clusters_are_in_later_snapshots() -> None:
    harness = CacheHarness("m1", "m2")
    before = harness.snapshot()
    harness.cache.set_incomplete(True)
    incomplete = harness.snapshot()
    assert incomplete.unknown.incomplete
    assert incomplete.generation > before.generation
    assert harness.snapshot() is incomplete
    harness.report("m1")
    assert harness.snapshot().unknown.incomplete
    harness.report("m3")
    assert harness.snapshot().unknown.incomplete
    assert not before.unknown.incomplete
    assert harness.snapshot().changed_since(before) == {"m1", "m3"}
    harness.cache.set_incomplete(False)
    assert not harness.snapshot().unknown
