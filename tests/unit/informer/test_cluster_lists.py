"""A list without clusters counts when a later one agrees; until then no binding loses a cluster."""

from __future__ import annotations

import pytest

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.informer.cluster_lists import CONFIRM_SECONDS, ClusterLists
from karmada_pyscheduler.informer.cluster_reads import ClusterReads
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster

IMPOSSIBLE_NAMES = [
    "",
    "a/b",
    "m1/status",
    "../x",
    ".",
    "..",
    "a?b",
    "a%2Fb",
    "A",
    "a b",
    "-a",
    "a..b",
    "ä",
    "a" * 254,
]


class Lists:
    """The lists of one cache; ``requested`` has the delays of the lists that were requested."""

    def __init__(self, *names: str, are_in_use: bool = True, is_assigned: bool = True) -> None:
        self.now = 1000.0
        self.requested: list[float] = []
        self.clusters = ClusterCache()
        self.reads = ClusterReads(on_found=lambda *_: None, on_absent=lambda *_: None, clock=lambda: self.now)
        self.bindings = [binding("web").on("m").build()] if are_in_use else []
        self.lists = ClusterLists(
            self.clusters,
            self.bindings,
            is_assigned=lambda _: is_assigned,
            clock=lambda: self.now,
            request_list=self.requested.append,
            reads=self.reads,
        )
        for name in names:
            self.add(name)

    @property
    def read(self) -> list[str]:
        """The names of the clusters that are to be read."""
        return [*self.reads._reads]

    def is_incomplete(self) -> bool:
        return self.clusters.is_incomplete

    def add(self, name: str) -> None:
        self.clusters.put(replace(cluster(name).build(), resource_version="1"))
        self.lists.added()


def test_an_empty_list_removes_nothing_until_another_one_confirms_it() -> None:
    made = Lists("m1")
    assert not made.lists.removes_others([])
    assert made.requested == [CONFIRM_SECONDS]
    made.now += CONFIRM_SECONDS - 1
    assert not made.lists.removes_others([])
    assert made.requested == [CONFIRM_SECONDS]
    made.now += 1
    assert made.lists.removes_others([])
    assert not made.lists.removes_others([]), "the next empty list needs a confirmation of its own"


def test_a_list_with_clusters_counts_at_once_and_ends_the_wait_for_a_confirmation() -> None:
    made = Lists("m1")
    assert not made.lists.removes_others([])
    assert made.lists.removes_others(["m2"])
    made.now += CONFIRM_SECONDS
    assert not made.lists.removes_others([])


def test_an_added_cluster_ends_the_wait_for_a_confirmation() -> None:
    made = Lists("m1")
    assert not made.lists.removes_others([])
    made.add("m2")
    made.now += CONFIRM_SECONDS
    assert not made.lists.removes_others([])


def test_an_empty_list_of_an_empty_cache_needs_no_confirmation() -> None:
    assert Lists().lists.removes_others([])


def test_an_empty_cache_is_incomplete_if_bindings_have_clusters() -> None:
    made = Lists()
    assert not made.lists.finished([])
    assert made.is_incomplete()
    unused = Lists(are_in_use=False)
    assert not unused.lists.finished([])
    assert not unused.is_incomplete()


def test_the_clusters_are_complete_again_after_a_list_and_a_time_without_a_new_one() -> None:
    made = Lists()
    made.lists.check_empty()
    made.add("m1")
    assert not made.lists.finished(["m1"]), "another one was added just now"
    made.now += CONFIRM_SECONDS
    assert not made.lists.finished([]), "an empty list shows nothing"
    assert made.is_incomplete()
    assert made.lists.finished(["m1"])
    assert not made.is_incomplete()
    assert not made.lists.finished(["m1"]), "it was complete before"


def test_a_cluster_that_was_never_seen_is_read() -> None:
    made = Lists("m1")
    targets = [TargetCluster("m1", 1), TargetCluster("m9", 1), TargetCluster("m8", 1)]
    made.lists.check_targets(targets)
    assert (made.read, made.requested) == (["m8", "m9"], [])
    assert sorted(made.clusters.unreadable) == ["m8", "m9"]


@pytest.mark.parametrize("name", IMPOSSIBLE_NAMES)
def test_a_name_that_no_cluster_can_have_exists_nowhere(name: str) -> None:
    made = Lists("m1")
    made.lists.check_targets([TargetCluster(name, 1)])
    made.bindings.append(binding("odd").on(name).build())
    assert (made.read, [*made.clusters.unreadable]) == ([], [])
    assert made.lists.unknown_targets() == ["m"]


def test_clusters_of_bindings_of_other_schedulers_are_not_read() -> None:
    made = Lists("m1", is_assigned=False)
    assert made.lists.unknown_targets() == []


def test_a_deleted_cluster_that_a_binding_gets_is_read_because_it_may_have_been_created_again() -> None:
    made = Lists("m1")
    made.clusters.remove("m", 5)
    made.lists.check_targets([TargetCluster("m", 1), TargetCluster("m1", 1)])
    assert (made.read, [*made.clusters.unreadable]) == (["m"], ["m"])
    assert not made.clusters.is_gone("m")


def test_a_cluster_that_a_binding_had_before_is_not_read_again() -> None:
    made = Lists("m1")
    made.clusters.remove("m", 5)
    made.lists.check_targets([TargetCluster("m", 2)], before=[TargetCluster("m", 1)])
    assert (made.read, made.clusters.is_gone("m")) == ([], True)
