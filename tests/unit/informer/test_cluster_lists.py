"""A list without clusters counts when a later one agrees; until then no binding loses a cluster."""

from __future__ import annotations

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.informer.cluster_lists import CONFIRM_SECONDS, ClusterLists
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster


class Lists:
    """The lists of one cache; ``requested`` has the delays of the lists that were requested."""

    def __init__(self, *names: str, are_in_use: bool = True) -> None:
        self.now = 1000.0
        self.requested: list[float] = []
        self.clusters = ClusterCache()
        self.lists = ClusterLists(
            self.clusters,
            [binding("web").on("m").build()] if are_in_use else [],
            clock=lambda: self.now,
            request_list=self.requested.append,
        )
        for name in names:
            self.add(name)

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


def test_a_list_is_requested_for_a_cluster_that_was_never_seen() -> None:
    made = Lists("m1")
    targets = [TargetCluster("m1", 1), TargetCluster("m9", 1)]
    made.lists.check_targets(targets)
    assert made.requested == [0.0]
    assert list(made.clusters.unreadable) == ["m9"]


def test_a_cluster_that_the_api_server_does_not_have_counts_as_deleted_only_if_it_was_not_seen() -> None:
    made = Lists("m1")
    made.lists.absent("m1", 5)
    assert made.clusters.get("m1") is not None
    made.lists.absent("m9", 5)
    made.lists.check_targets([TargetCluster("m9", 1)])
    assert made.requested == []
