"""Snapshots of the clusters, and what changed between two of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.framework import Snapshot, snapshot
from karmada_scheduler.testing import cluster


class World:
    """A cache that is written to."""

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


def test_without_a_change_there_is_one_snapshot() -> None:
    world = World("m2", "m1")
    assert world.snapshot() is world.snapshot()
    assert names(world.snapshot()) == ["m1", "m2"]


def test_a_report_shows_in_the_next_snapshot_and_not_in_the_one_before() -> None:
    world = World("m1", "m2")
    before = world.snapshot()
    world.report("m2")
    after = world.snapshot()
    assert after.generation > before.generation
    assert [each.resource_version for each in before] == ["1", "2"]
    assert [each.resource_version for each in after] == ["1", "3"]
    assert after.get("m2") is after.clusters[1]
    assert after.not_terminating == after.clusters
    assert after.changed_since(before) == {"m2"}
    assert after.changed_since(after) == set()


def test_who_comes_and_goes_is_in_what_changed() -> None:
    world = World("m1", "m2")
    before = world.snapshot()
    world.leave("m1")
    world.report("m3")
    after = world.snapshot()
    assert names(after) == ["m2", "m3"]
    assert after.get("m1") is None
    assert after.changed_since(before) == {"m1", "m3"}


def test_a_cluster_that_begins_to_be_deleted_lives_no_more() -> None:
    world = World("m1", "m2")
    before = world.snapshot()
    world.report("m1", deleting=True)
    going = world.snapshot()
    assert (names(going), [each.name for each in going.not_terminating]) == (["m1", "m2"], ["m2"])
    assert going.terminating == {"m1"}
    world.report("m2")
    assert world.snapshot().terminating == {"m1"}
    world.leave("m1")
    assert (world.snapshot().terminating, names(world.snapshot())) == (frozenset(), ["m2"])
    assert world.snapshot().changed_since(before) == {"m1", "m2"}


def test_what_changed_between_snapshots_of_different_origin_is_not_known() -> None:
    one, other = World("m1"), World("m1")
    assert one.snapshot().changed_since(other.snapshot()) is None
    assert one.snapshot().changed_since(Snapshot.of(one.snapshot())) is None


def test_changes_that_are_too_long_ago_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_KEPT_CHANGES", 3)
    world = World("m1", "m2")
    first = world.snapshot()
    for _ in range(5):
        world.report("m2")
    assert world.snapshot().changed_since(first) is None
    later = world.snapshot()
    world.report("m1")
    assert world.snapshot().changed_since(later) == {"m1"}


def test_a_cluster_that_cannot_be_read_is_known_by_its_name_until_it_can_or_is_gone() -> None:
    world = World("m1")
    assert world.cache.refuse("m2", 5, "spec.taints: is wrong")
    assert world.cache.refuse("m3", 6, "spec.taints: is wrong")
    assert world.snapshot().unknown.unreadable == {
        "m2": "spec.taints: is wrong",
        "m3": "spec.taints: is wrong",
    }
    assert names(world.snapshot()) == ["m1"]
    assert world.cache.missing_from({"m1", "m2", "m3"}, 9) == []
    assert world.cache.missing_from({"m1", "m3"}, 9) == ["m2"]
    world.report("m3")
    world.leave("m2")
    assert not world.snapshot().unknown
    assert names(world.snapshot()) == ["m1", "m3"]
    assert not world.cache.refuse("m2", 2, "an older version than that which was deleted")


def test_a_cluster_that_was_understood_stays_as_it_was() -> None:
    world = World("m1")
    before = world.snapshot()
    assert not world.cache.refuse("m1", 5, "spec.taints: is wrong")
    assert world.snapshot() is before


def test_what_is_unknown_is_in_the_snapshots_after_it() -> None:
    world = World("m1", "m2")
    before = world.snapshot()
    world.cache.set_incomplete(True)
    assert world.snapshot().unknown.incomplete
    world.report("m1")
    assert world.snapshot().unknown.incomplete
    world.report("m3")
    assert world.snapshot().unknown.incomplete
    assert not before.unknown.incomplete
    assert world.snapshot().changed_since(before) == {"m1", "m3"}
    world.cache.set_incomplete(False)
    assert not world.snapshot().unknown
