"""The event handlers: what is enqueued, repaired and ignored."""

import logging
from typing import Any

import pytest

from karmada_pyscheduler.cache.bindings import BindingCache, RefusedBindings
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.requeue import BindingListener, Listeners
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler import json_body, logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.options import RetryLimits
from tests import manifests

RB = "ResourceBinding"
WEB = BindingKey(RB, "demo", "web-deployment")


class HandlersHarness:
    """Event handlers with the caches and the queue that they fill."""

    def __init__(self, *, stored: ManifestCache | None = None) -> None:
        self.bindings = BindingCache()
        self.clusters = ClusterCache()
        self.queue: WorkQueue[BindingKey] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0)
        self.metrics = Metrics()
        self.requests: list[float] = []
        """Seconds after which a list of clusters was requested, each."""
        self.handlers = EventHandlers(
            bindings=self.bindings,
            clusters=self.clusters,
            queue=self.queue,
            scheduler_names=["ours"],
            metrics=self.metrics,
            clock=lambda: self.now,
            refused=RefusedBindings(),
            manifests=stored,
            listeners=Listeners(
                bindings=[self._binding_changed],
                versions=[lambda _, version: self.observed.append(version)],
            ),
            on_empty_list=self.requests.append,
        )
        self.observed: list[int] = []
        self.binding_listener: BindingListener = lambda *_: None
        self.now = 0.0

    def _binding_changed(self, old: Binding | None, new: Binding | None) -> None:
        self.binding_listener(old, new)

    def listed(self, kind: str, found: list[dict[str, Any]], version: str) -> int:
        """Apply a list of one page."""
        diff = self.handlers.relist_diff(kind)
        diff.add_page(found)
        return diff.finish(version)

    def known(self, kind: str, event: str, manifest: dict[str, Any]) -> None:
        """Apply an event, and empty the queue."""
        self.handlers.on_event(kind, event, manifest)
        self.enqueued()

    def enqueued(self) -> list[str]:
        """Empty the queue and return the names of the bindings that were in it."""
        names = []
        while self.handlers._reconciler.step():
            pass
        while (item := self.queue.pop()) is not None:
            names.append(item[0].name)
            self.queue.done(item[0])
        return names

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karmada_scheduler_{name}", labels) or 0.0


@pytest.fixture
def harness() -> HandlersHarness:
    return HandlersHarness()


def test_a_new_binding_is_cached_and_enqueued(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    assert harness.enqueued() == ["web-deployment"]
    assert WEB in {binding.key for binding in harness.bindings}
    assert harness.sample("queue_incoming_bindings_total", event="BindingAdd") == 1


@pytest.mark.parametrize("generation", [3, 1])
def test_a_binding_with_another_generation_is_enqueued(harness: HandlersHarness, generation: int) -> None:
    """After a restore of etcd it may be a lower one, in a version that is higher again."""
    harness.known(RB, "ADDED", manifests.binding(generation=2))
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding(version=2, generation=generation))
    assert harness.enqueued() == ["web-deployment"]
    assert harness.sample("queue_incoming_bindings_total", event="BindingUpdate") == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"version": 2}, id="status-only"),
        pytest.param({"version": 1, "generation": 2}, id="a-version-that-is-known"),
    ],
)
def test_a_binding_is_not_enqueued_by_a_known_version_or_a_changed_status(
    harness: HandlersHarness, change: dict[str, Any]
) -> None:
    harness.known(RB, "ADDED", manifests.binding())
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding(**change))
    assert harness.enqueued() == []


def test_each_change_that_the_watch_missed_is_counted_once(harness: HandlersHarness) -> None:
    diff = harness.handlers.relist_diff(RB)
    for number in (1, 2, 3):
        diff.add_page([manifests.binding(f"b{number}", version=number)])
    assert diff.finish("9") == 3
    assert harness.sample("cache_repairs_total", kind=RB, repair="missed") == 3


def test_counters_with_alerts_start_at_0(harness: HandlersHarness) -> None:
    for kind in (RB, "Cluster", "PropagationPolicy"):
        for name, labels in (("cache_repairs", {"repair": "older"}), ("malformed_objects", {})):
            sample = f"karmada_scheduler_{name}_total"
            assert harness.metrics.registry.get_sample_value(sample, {"kind": kind, **labels}) == 0


def test_the_manifest_of_an_own_write_is_stored_when_its_event_arrives() -> None:
    stored = ManifestCache(is_needed=lambda _: True, clusters=False)
    harness = HandlersHarness(stored=stored)
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    written = manifests.binding(version=2, replicas=7)
    harness.bindings.put_written(Binding.from_manifest(written))
    harness.handlers.on_event(RB, "MODIFIED", written)
    assert b'"replicas":7' in (stored.binding(WEB) or b"")
    harness.handlers.on_event(RB, "DELETED", manifests.binding(version=3))
    assert len(stored) == 0


def test_the_queue_of_a_standby_drops_deleted_bindings(harness: HandlersHarness) -> None:
    """Nobody takes keys from it, and names may never come back."""
    harness.handlers.on_event(RB, "ADDED", manifests.binding("stays"))
    for number in range(1000):
        gone = manifests.binding(f"b{number}", version=2 * number + 2)
        harness.handlers.on_event(RB, "ADDED", gone)
        gone["metadata"]["resourceVersion"] = str(2 * number + 3)
        harness.handlers.on_event(RB, "DELETED", gone)
    assert len(harness.queue) < 40
    assert harness.enqueued()[0] == "stays"


@pytest.mark.parametrize(
    "not_ours",
    [
        pytest.param({"schedulerName": "default-scheduler"}, id="another-scheduler"),
        pytest.param({"schedulerName": ""}, id="no-name-is-the-default-scheduler"),
        pytest.param({"suspension": {"scheduling": True}}, id="suspended"),
    ],
)
def test_a_binding_is_ignored_until_it_is_assigned_to_this_scheduler(
    harness: HandlersHarness, not_ours: dict[str, Any]
) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding(**not_ours))
    assert harness.enqueued() == []
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding(version=2, generation=2))
    assert harness.enqueued() == ["web-deployment"]
    assert harness.sample("queue_incoming_bindings_total", event="BindingAdd") == 1


def test_an_unclaimed_binding_is_not_enqueued(harness: HandlersHarness) -> None:
    manifest = manifests.binding()
    manifest["metadata"]["labels"] = {manifests.POLICY_LABEL: ""}
    harness.handlers.on_event(RB, "ADDED", manifest)
    assert harness.enqueued() == []


def test_a_cluster_with_a_changed_spec_enqueues_the_bindings_that_name_it(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.known("Cluster", "ADDED", manifests.cluster("m3"))
    harness.known(RB, "ADDED", manifests.binding())
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m3", version=2, generation=2))
    assert harness.enqueued() == []
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=2, generation=2))
    assert harness.enqueued() == ["web-deployment"]
    assert harness.sample("queue_incoming_bindings_total", event="ClusterChanged") == 1


def test_another_cluster_of_the_same_name_enqueues_the_bindings_that_name_it(
    harness: HandlersHarness,
) -> None:
    leaving = manifests.cluster("m1", uid="one", deletionTimestamp="2026-01-02T03:04:05Z")
    harness.handlers.on_event("Cluster", "ADDED", leaving)
    harness.known(RB, "ADDED", manifests.binding())
    harness.listed("Cluster", [manifests.cluster("m1", version=5, uid="two")], "5")
    assert harness.enqueued() == ["web-deployment"]


def test_a_changed_cluster_enqueues_a_binding_that_is_not_claimed_any_more(harness: HandlersHarness) -> None:
    manifest = manifests.binding()
    del manifest["metadata"]["labels"]
    harness.known("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event(RB, "ADDED", manifest)
    deleting = manifests.cluster("m1", version=2, deletionTimestamp="2026-01-02T03:04:05Z")
    assert harness.enqueued() == []
    harness.handlers.on_event("Cluster", "MODIFIED", deleting)
    assert harness.enqueued() == ["web-deployment"]


def test_a_changed_status_of_a_cluster_enqueues_nothing(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.known(RB, "ADDED", manifests.binding())
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=2))
    assert harness.enqueued() == []


def test_a_removed_label_enqueues_the_bindings_that_it_selected(harness: HandlersHarness) -> None:
    selects = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", labels={"tier": "gold"}))
    harness.known(RB, "ADDED", manifests.binding(placement=selects))
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=2, labels={}))
    assert harness.enqueued() == ["web-deployment"]


def test_a_cluster_with_a_deletion_timestamp_enqueues_its_bindings_and_is_terminating(
    harness: HandlersHarness,
) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.known(RB, "ADDED", manifests.binding())
    deleting = manifests.cluster("m1", version=2, deletionTimestamp="2026-01-02T03:04:05Z")
    harness.handlers.on_event("Cluster", "MODIFIED", deleting)
    assert harness.enqueued() == ["web-deployment"]
    assert harness.clusters.is_gone("m1")
    harness.handlers.on_event(
        "Cluster", "DELETED", {**deleting, "metadata": {**deleting["metadata"], "resourceVersion": "3"}}
    )
    assert harness.clusters.get("m1") is None


def test_a_changed_policy_enqueues_the_bindings_that_carry_its_id(harness: HandlersHarness) -> None:
    harness.handlers.on_event("PropagationPolicy", "ADDED", manifests.policy())
    harness.known(RB, "ADDED", manifests.binding())
    harness.handlers.on_event("PropagationPolicy", "MODIFIED", manifests.policy(version=2, generation=2))
    assert harness.enqueued() == ["web-deployment"]
    harness.handlers.on_event("PropagationPolicy", "MODIFIED", manifests.policy(version=3, generation=2))
    assert harness.enqueued() == []


def test_a_list_removes_what_the_watch_did_not_report_as_deleted(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("ghost", version=2))
    harness.handlers.on_event(RB, "ADDED", manifests.binding("gone", version=3))
    assert harness.listed("Cluster", [manifests.cluster("m1")], "9") == 1
    assert [cluster.name for cluster in harness.clusters.snapshot()] == ["m1"]
    removed: list[Binding | None] = []
    harness.binding_listener = lambda old, new: removed.append(old if new is None else None)
    assert harness.listed(RB, [], "9") == 1
    assert len(harness.bindings) == 0
    assert [each.key.name for each in removed if each] == ["gone"]
    assert harness.sample("cache_repairs_total", kind="Cluster", repair="gone") == 1


def test_a_list_of_one_kind_of_binding_does_not_remove_the_other_kind(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    harness.listed("ClusterResourceBinding", [], "9")
    assert len(harness.bindings) == 1


def test_a_list_keeps_objects_that_are_newer_than_the_list(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("new", version=12))
    assert harness.listed("Cluster", [], "9") == 0
    assert len(harness.clusters) == 1


def test_a_list_adds_bindings_that_the_watch_missed_and_enqueues_them(harness: HandlersHarness) -> None:
    assert harness.listed(RB, [manifests.binding()], "9") == 1
    assert harness.enqueued() == ["web-deployment"]


def test_objects_that_are_listed_again_are_not_parsed(
    harness: HandlersHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [manifests.binding(f"b{number}", version=number + 1) for number in range(20)]
    assert harness.listed(RB, found, "30") == 20
    parsed: list[object] = []
    monkeypatch.setattr(harness.handlers._kinds[RB], "parse", parsed.append)
    assert harness.listed(RB, found, "30") == 0
    for manifest in found:
        harness.handlers.on_event(RB, "ADDED", manifest)
    assert parsed == []
    assert len(harness.bindings) == 20


def test_a_list_may_come_in_pages_with_events_in_between(harness: HandlersHarness) -> None:
    diff = harness.handlers.relist_diff(RB)
    diff.add_page([manifests.binding("a"), manifests.binding("b", version=2)])
    harness.handlers.on_event(RB, "DELETED", manifests.binding("c", version=12))
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding("b", version=11, generation=2))
    harness.handlers.on_event(RB, "ADDED", manifests.binding("new", version=13))
    diff.add_page([manifests.binding("c", version=3)])
    assert diff.finish("10") == 2
    assert {binding.key.name: binding.resource_version for binding in harness.bindings} == {
        "a": "1", "b": "11", "new": "13",
    }  # fmt: skip


def test_at_the_start_unplaced_bindings_are_enqueued_before_placed_ones(harness: HandlersHarness) -> None:
    placed = [manifests.binding(f"placed{number}", version=number + 1) for number in range(3)]
    for manifest in placed:
        manifest["spec"]["clusters"] = [{"name": "m1", "replicas": 1}]
    with harness.handlers.requeuer.deferring_placed():
        harness.listed(RB, [*placed, manifests.binding("new", version=9)], "10")
    assert harness.enqueued() == ["new", "placed0", "placed1", "placed2"]
    assert harness.sample("queue_incoming_bindings_total", event="BindingAdd") == 4


def test_items_of_a_list_need_no_kind(harness: HandlersHarness) -> None:
    manifest = manifests.binding()
    del manifest["kind"]
    harness.listed(RB, [manifest], "9")
    assert harness.enqueued() == ["web-deployment"]


def test_a_deleted_binding_is_removed_from_the_cache_and_its_indexes(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    harness.handlers.on_event(RB, "DELETED", manifests.binding(version=4))
    assert harness.bindings.get(WEB) is None
    assert harness.bindings.claimed_by("p1") == frozenset()


def test_an_unreadable_binding_is_logged_once_and_not_scheduled(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.known(RB, "ADDED", manifests.binding())
    with caplog.at_level(logging.WARNING):
        for version in (2, 3):
            harness.handlers.on_event(
                RB, "MODIFIED", manifests.binding(version=version, generation=2, replicas="two")
            )
    assert [record.__dict__["error"] for record in caplog.records] == [
        "spec.replicas: expected an integer, got str 'two'"
    ]
    assert harness.enqueued() == []
    assert harness.bindings.get(WEB) is None
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding(version=4, generation=3))
    assert harness.enqueued() == ["web-deployment"]


def test_an_unreadable_cluster_keeps_its_last_readable_version(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", labels={"a": "b"}))
    broken = manifests.cluster("m1", version=2, generation=2)
    broken["spec"]["taints"] = "none"
    harness.handlers.on_event("Cluster", "MODIFIED", broken)
    assert [cluster.labels for cluster in harness.clusters.snapshot()] == [{"a": "b"}]


def test_the_cached_objects_are_counted_by_kind(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    assert harness.sample("cached_objects", kind="Cluster") == 1
    assert harness.sample("cached_objects", kind=RB) == 1
    assert harness.sample("cached_objects", kind="ClusterResourceBinding") == 0


def test_a_version_is_known_when_the_cache_has_it() -> None:
    harness = HandlersHarness()
    harness.handlers.on_event(RB, "ADDED", manifests.binding(version=7))
    known = [harness.handlers.is_known(RB, manifests.binding(version=version)) for version in (7, 8)]
    assert known == [True, False]
    assert harness.observed == []


def test_listeners_get_each_version_of_a_binding_whether_or_not_the_cache_has_it() -> None:
    harness = HandlersHarness()
    harness.handlers.on_event(RB, "ADDED", manifests.binding(version=7))
    for version in (7, 8):
        harness.handlers.observe(RB, manifests.binding(version=version))
    harness.handlers.observe("Cluster", manifests.cluster("m1"))
    assert harness.observed == [7, 8]
    assert harness.handlers.is_known(RB, manifests.binding(version=7))
    assert not harness.handlers.is_known(RB, manifests.binding(version=8))


def lists_clusters(harness: HandlersHarness, version: int, *found: dict[str, Any]) -> list[str]:
    """Apply a list of clusters; return the names in the cache after it."""
    harness.listed("Cluster", list(found), str(version))
    return [cluster.name for cluster in harness.clusters.snapshot()]


def test_a_list_without_clusters_counts_when_another_one_confirms_it_half_a_minute_later(
    harness: HandlersHarness,
) -> None:
    assert lists_clusters(harness, 2, manifests.cluster("m1"), manifests.cluster("m2")) == ["m1", "m2"]
    harness.handlers.on_event(RB, "ADDED", _placed_binding())
    assert lists_clusters(harness, 3) == ["m1", "m2"]
    assert harness.requests == [30.0]
    harness.now = 29.0
    assert lists_clusters(harness, 3) == ["m1", "m2"]
    harness.now = 30.0
    assert lists_clusters(harness, 3) == []
    assert harness.clusters.snapshot().unknown.incomplete


@pytest.mark.parametrize("by", ["list", "event"])
def test_a_cluster_seen_in_between_refutes_the_list_without_clusters(
    harness: HandlersHarness, by: str
) -> None:
    known = lists_clusters(harness, 2, manifests.cluster("m1"))
    assert lists_clusters(harness, 3) == known
    harness.now = 20.0
    if by == "list":
        lists_clusters(harness, 4, manifests.cluster("m1"))
    else:
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m2", version=4))
    harness.now = 40.0
    assert "m1" in lists_clusters(harness, 5)


def test_the_last_cluster_may_be_deleted(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event("Cluster", "DELETED", manifests.cluster("m1", version=2))
    assert len(harness.clusters) == 0
    assert not harness.clusters.snapshot().unknown


def _placed_binding() -> dict[str, Any]:
    found = manifests.binding("placed")
    found["spec"]["clusters"] = [{"name": "m1", "replicas": 1}]
    return found


def test_a_start_without_clusters_and_without_placements_is_complete(harness: HandlersHarness) -> None:
    with harness.handlers.requeuer.deferring_placed():
        lists_clusters(harness, 1)
        harness.listed(RB, [manifests.binding()], "1")
        harness.handlers.cluster_lists.check_empty()
    assert not harness.clusters.snapshot().unknown


def test_after_a_start_without_clusters_the_cache_is_incomplete_for_a_while(harness: HandlersHarness) -> None:
    with harness.handlers.requeuer.deferring_placed():
        lists_clusters(harness, 1)
        harness.listed(RB, [_placed_binding()], "1")
        harness.handlers.cluster_lists.check_empty()
    harness.now = 100.0
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", version=2))
    assert lists_clusters(harness, 3, manifests.cluster("m1", version=2)) == ["m1"]
    assert harness.clusters.snapshot().unknown.incomplete
    harness.known(RB, "ADDED", manifests.binding(version=4))
    harness.now = 130.0
    lists_clusters(harness, 5, manifests.cluster("m1", version=2))
    assert not harness.clusters.snapshot().unknown.incomplete
    assert harness.enqueued() == ["placed", "web-deployment"]


def test_a_cluster_of_a_binding_that_no_list_had_is_unknown_until_a_list_shows_that_it_is_gone(
    harness: HandlersHarness,
) -> None:
    harness.listed("Cluster", [manifests.cluster("m2")], "2")
    harness.known(RB, "ADDED", placed_on("web", "m1", "m2", version=3))
    assert list(harness.clusters.snapshot().unknown.unreadable) == ["m1"]
    harness.listed("Cluster", [manifests.cluster("m2")], "4")
    assert not harness.clusters.snapshot().unknown
    assert harness.enqueued() == ["web"]
    harness.handlers.on_event(RB, "MODIFIED", placed_on("web", "m1", version=5))
    assert not harness.clusters.snapshot().unknown, "it is known to be gone"


def test_a_divided_binding_keeps_a_cluster_that_was_created_again_and_whose_event_is_late(
    harness: HandlersHarness,
) -> None:
    for name in ("m1", "m2"):
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster(name))
    harness.handlers.on_event("Cluster", "DELETED", manifests.cluster("m1", version=2))
    harness.handlers.on_event(RB, "ADDED", placed_on("web", "m2", version=3))
    harness.known(RB, "MODIFIED", placed_on("web", "m1", version=5))
    assert not harness.clusters.is_gone("m1"), "it is unknown until it was read"
    harness.handlers.cluster_reads.on_found(manifests.cluster("m1", version=4), 1)
    assert [cluster.name for cluster in harness.clusters] == ["m2", "m1"]
    assert harness.enqueued() == ["web"]


def test_a_divided_binding_leaves_a_deleted_cluster_that_it_gets_once_that_was_read(
    harness: HandlersHarness,
) -> None:
    for name in ("m1", "m2"):
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster(name))
    harness.handlers.on_event("Cluster", "DELETED", manifests.cluster("m1", version=2))
    harness.known(RB, "ADDED", placed_on("web", "m1", version=3))
    harness.handlers.clusters_absent(["m1"], 1)
    assert harness.clusters.is_gone("m1")
    assert harness.enqueued() == ["web"]


@pytest.mark.parametrize("how", ["absent at the start", "of another scheduler"])
def test_a_cluster_of_a_binding_is_not_unknown_if_it_is(harness: HandlersHarness, how: str) -> None:
    found = placed_on("web", "m1", version=3)
    if how == "absent at the start":
        with harness.handlers.requeuer.deferring_placed():
            harness.listed(RB, [placed_on("web", "m1", version=1)], "1")
            harness.handlers.clusters_absent(harness.handlers.cluster_lists.unknown_targets(), 1)
    else:
        found["spec"]["schedulerName"] = "theirs"
    harness.handlers.on_event(RB, "MODIFIED", found)
    assert harness.clusters.unreadable == {}.keys()


@pytest.mark.parametrize("before", ["of another scheduler", "suspended", "unclaimed"])
def test_a_cluster_of_a_binding_that_becomes_due_is_unknown_if_no_list_had_it(
    harness: HandlersHarness, before: str
) -> None:
    """The binding would leave the cluster, as if that did not exist."""
    found = placed_on("web", "m1", version=3)
    if before == "of another scheduler":
        found["spec"]["schedulerName"] = "theirs"
    elif before == "suspended":
        found["spec"]["suspension"] = {"scheduling": True}
    else:
        del found["metadata"]["labels"]
    harness.handlers.on_event(RB, "ADDED", found)
    harness.handlers.on_event(RB, "MODIFIED", placed_on("web", "m1", version=4))
    assert list(harness.clusters.unreadable) == ["m1"]


@pytest.mark.parametrize(("kind", "is_incomplete"), [("Cluster", True), ("PropagationPolicy", False)])
def test_the_clusters_are_incomplete_if_one_has_no_name(
    harness: HandlersHarness, kind: str, *, is_incomplete: bool
) -> None:
    harness.handlers.on_event(kind, "ADDED", {"kind": kind, "metadata": {"resourceVersion": "1"}, "spec": {}})
    assert harness.clusters.is_incomplete == is_incomplete


def unreadable(name: str = "m1", *, version: int = 1, **metadata: Any) -> dict[str, Any]:
    manifest = manifests.cluster(name, version=version, **metadata)
    manifest["spec"]["taints"] = "none"
    return manifest


def placed_on(name: str, *clusters: str, version: int = 1, status: str = "True") -> dict[str, Any]:
    manifest = manifests.binding(name, version=version)
    manifest["spec"]["clusters"] = [{"name": each, "replicas": 1} for each in clusters]
    manifest["status"] = {"conditions": [{"type": "Scheduled", "status": status}]}
    return manifest


def test_a_cluster_without_a_readable_version_is_kept_by_name_and_logged_once(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert lists_clusters(harness, 2, unreadable("m1"), manifests.cluster("m2")) == ["m2"]
        lists_clusters(harness, 2, unreadable("m1"), manifests.cluster("m2"))
    assert [record.getMessage() for record in caplog.records] == [
        "Cannot read a Cluster, the bindings on it stay as they are"
    ]
    assert list(harness.clusters.unreadable) == ["m1"]
    assert harness.sample("malformed_objects_total", kind="Cluster") == 2


@pytest.mark.parametrize("how", ["readable", "deleted", "not listed", "leaving"])
def test_bindings_on_an_unreadable_cluster_are_enqueued_when_it_is_readable_or_gone(
    harness: HandlersHarness, how: str
) -> None:
    lists_clusters(harness, 2, unreadable("m1"), manifests.cluster("m2"))
    harness.handlers.on_event(RB, "ADDED", placed_on("on-it", "m1", "m2"))
    harness.known(RB, "ADDED", placed_on("may-go-there", "m2", version=2))
    if how == "readable":
        harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=3))
    elif how == "deleted":
        harness.handlers.on_event("Cluster", "DELETED", unreadable("m1", version=3))
    elif how == "leaving":
        leaving = unreadable("m1", version=3, deletionTimestamp="2026-01-02T03:04:05Z")
        harness.handlers.on_event("Cluster", "MODIFIED", leaving)
        assert harness.clusters.is_gone("m1")
    else:
        lists_clusters(harness, 4, manifests.cluster("m2"))
    assert list(harness.clusters.unreadable) == []
    # A readable cluster enqueues every binding that may be placed on it.
    assert harness.enqueued() == (["on-it", "may-go-there"] if how == "readable" else ["on-it"])


def test_the_deletion_of_an_unreadable_cluster_is_noticed(
    harness: HandlersHarness,
) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", labels={"a": "b"}))
    leaving = unreadable("m1", version=3, deletionTimestamp="2026-01-02T03:04:05Z")
    harness.handlers.on_event("Cluster", "MODIFIED", leaving)
    (known,) = harness.clusters.snapshot()
    assert (known.deleting, known.labels) == (True, {"a": "b"})


def test_unreadable_quantities_are_logged_once_and_the_cluster_is_stored(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = manifests.cluster("m1")
    manifest["status"] = {"resourceSummary": {"allocatable": {"example.com/gpu": "1e20000", "cpu": "3"}}}
    with caplog.at_level(logging.WARNING):
        for version in ("1", "2"):
            manifest["metadata"]["resourceVersion"] = version
            harness.handlers.on_event("Cluster", "MODIFIED", manifest)
    (record,) = caplog.records
    assert record.__dict__["error"].startswith("status.resourceSummary.allocatable.example.com/gpu: ")
    assert [cluster.name for cluster in harness.clusters.snapshot()] == ["m1"]
    assert harness.sample("malformed_objects_total", kind="Cluster") == 2


def selecting(name: str, *clusters: str, status: str, version: int = 1, **spec: Any) -> dict[str, Any]:
    manifest = manifests.binding(name, version=version, **spec)
    manifest["spec"].setdefault("placement", {})["clusterAffinity"] = {"clusterNames": list(clusters)}
    manifest["status"] = {"conditions": [{"type": "Scheduled", "status": status}]}
    return manifest


def test_an_added_cluster_enqueues_the_bindings_that_may_be_placed_on_it(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", selecting("fits", "m1", status="False"))
    harness.handlers.on_event(RB, "ADDED", selecting("elsewhere", "m2", status="False", version=2))
    harness.known(RB, "ADDED", selecting("placed", "m1", status="True", version=3))
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", version=4))
    assert harness.enqueued() == ["fits", "placed"]


@pytest.mark.parametrize(
    "term",
    [
        {"affinityName": "b", "clusterNames": ["m1"]},
        {
            "affinityName": "b",
            "clusterNames": ["x"],
            "overflowAffinities": [{"affinityName": "o", "clusterNames": ["m1"]}],
        },
    ],
)
@pytest.mark.parametrize("event", ["added", "changed"])
def test_any_affinity_of_an_unplaced_binding_counts(
    harness: HandlersHarness, term: dict[str, Any], event: str
) -> None:
    if event == "changed":
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    manifest = manifests.binding(
        placement={"clusterAffinities": [{"affinityName": "a", "clusterNames": ["m2"]}, term]}
    )
    manifest["status"] = {
        "schedulerObservedGeneration": 1,
        "conditions": [{"type": "Scheduled", "status": "False"}],
    }
    harness.known(RB, "ADDED", manifest)
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=2, generation=2))
    assert harness.enqueued() == ["web-deployment"]


def serving(*kinds: str, version: int = 1) -> dict[str, Any]:
    manifest = manifests.cluster("m1", version=version)
    resources = [{"kind": kind, "name": kind.lower()} for kind in kinds]
    manifest["status"] = {"apiEnablements": [{"groupVersion": "apps/v1", "resources": resources}]}
    return manifest


def test_a_newly_served_api_enqueues_the_unplaced_bindings_that_need_it(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", serving("StatefulSet"))
    harness.handlers.on_event(RB, "ADDED", selecting("waits", "m1", status="False"))
    harness.handlers.on_event(RB, "ADDED", selecting("placed", "m1", status="True", version=2))
    other = {"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "demo", "name": "x"}
    harness.known(RB, "ADDED", selecting("other", "m1", status="False", version=3, resource=other))
    harness.handlers.on_event("Cluster", "MODIFIED", serving("StatefulSet", "Deployment", version=2))
    assert harness.enqueued() == ["waits"]
    harness.handlers.on_event("Cluster", "MODIFIED", serving("Deployment", version=3))
    assert harness.enqueued() == []


def test_clusters_of_the_initial_list_enqueue_nothing(harness: HandlersHarness) -> None:
    with harness.handlers.requeuer.deferring_placed():
        harness.listed("Cluster", [manifests.cluster("m1")], "9")
        harness.listed(RB, [selecting("new", "m1", status="False", version=3)], "9")
    assert harness.enqueued() == ["new"]
    assert harness.sample("queue_incoming_bindings_total", event="ClusterChanged") == 0


def test_older_objects_of_a_list_are_stored_and_all_bindings_enqueued(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding(version=990, generation=3, replicas=5))
    harness.handlers.on_event(RB, "ADDED", manifests.binding("other", version=10))
    harness.known("Cluster", "ADDED", manifests.cluster("m1", version=5))
    diff = harness.handlers.relist_diff(RB)
    # It has the same generation as the lost version, and another change.
    diff.add_page([manifests.binding(version=750, generation=3, replicas=7)], as_of=1000)
    diff.add_page([manifests.binding("other", version=10)], as_of=1000)
    assert diff.finish("1000") == 1
    assert diff.older == 1
    assert harness.enqueued() == []
    harness.handlers.on_version_rollback(RB, diff.older)
    assert sorted(harness.enqueued()) == ["other", "web-deployment"]
    found = harness.bindings.get(WEB)
    assert found is not None
    assert found.spec.replicas == 7
    assert harness.sample("cache_repairs_total", kind=RB, repair="older") == 1
    harness.handlers.on_version_rollback("PropagationPolicy", 1)
    assert harness.enqueued() == []
    harness.handlers.on_version_rollback("Cluster", 0)
    assert len(harness.enqueued()) == 2


def test_another_content_of_the_same_version_is_stored_after_a_restore(harness: HandlersHarness) -> None:
    """Before the restore this version had a deletion timestamp, so bindings would leave the cluster."""
    deleting = manifests.cluster("m1", version=9)
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    harness.handlers.on_event("Cluster", "ADDED", deleting)
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m2", version=8))
    assert [each.name for each in harness.clusters if harness.clusters.is_gone(each.name)] == ["m1"]
    page = [manifests.cluster("m1", version=9), manifests.cluster("m2", version=8)]
    diff = harness.handlers.relist_diff("Cluster", by_content=True)
    diff.add_page(page, as_of=20)
    assert not any(harness.clusters.is_gone(each.name) for each in harness.clusters)
    assert diff.older == 1


def test_versions_are_forgotten_by_kind(harness: HandlersHarness) -> None:
    cluster_wide = {**manifests.binding("wide", version=990), "kind": "ClusterResourceBinding"}
    harness.handlers.on_event(RB, "ADDED", manifests.binding(version=980))
    harness.handlers.on_event("ClusterResourceBinding", "ADDED", cluster_wide)
    assert harness.handlers.newest_version(RB) == 980
    harness.handlers.forget_versions(RB)
    assert not harness.handlers.is_known(RB, manifests.binding(version=700))
    assert harness.handlers.is_known(
        "ClusterResourceBinding",
        {**cluster_wide, "metadata": {**cluster_wide["metadata"], "resourceVersion": "700"}},
    )
    assert harness.handlers.newest_version("ClusterResourceBinding") == 990


def test_a_malformed_object_that_is_no_longer_listed_is_dropped(harness: HandlersHarness) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding(replicas="many"))
    harness.handlers.on_event("Cluster", "ADDED", {"metadata": {"name": "m1", "resourceVersion": "x"}})
    assert len(harness.handlers._malformed) == 2
    harness.listed(RB, [manifests.binding(replicas="many")], "9")
    assert len(harness.handlers._malformed) == 2
    harness.listed(RB, [], "9")
    assert len(harness.handlers._malformed) == 1


def test_an_ignored_update_is_logged_only_for_bindings_of_this_scheduler(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    foreign, unclaimed = manifests.binding("foreign"), manifests.binding("unclaimed")
    foreign["spec"]["schedulerName"] = "volcano"
    unclaimed["metadata"]["labels"] = {}
    bindings = [manifests.binding(), foreign, unclaimed]
    with caplog.at_level(logs.V4, logger="karmada_pyscheduler"):
        for each in bindings:
            harness.handlers.on_event(RB, "ADDED", each)
            updated = {**each["metadata"], "resourceVersion": "2"}
            harness.handlers.on_event(
                RB, "MODIFIED", {**each, "metadata": updated, "status": {"lastScheduledTime": None}}
            )
    assert [record.getMessage() for record in caplog.records if record.levelno == logs.V4] == [
        "Ignore update event of resourceBinding demo/web-deployment as specification no change"
    ]


def test_a_failing_listener_ends_no_list_and_loses_no_binding(
    harness: HandlersHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a defect")

    harness.binding_listener = fails
    assert harness.listed(RB, [manifests.binding(), manifests.binding("other")], "9") == 2
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding(version=10, generation=2))
    harness.handlers.on_event(RB, "DELETED", manifests.binding("other", version=11))
    assert harness.enqueued() == ["web-deployment", "other"]
    assert all(record.exc_info for record in caplog.records)
    assert len(caplog.records) == 4


def test_an_object_that_cannot_be_parsed_is_logged_and_the_others_of_its_page_are_stored(
    harness: HandlersHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parse = harness.handlers._kinds[RB].parse

    def breaks(manifest: dict[str, Any]) -> Any:
        if manifest["metadata"]["name"] == "deep":
            raise RecursionError("too deep")
        return parse(manifest)

    monkeypatch.setattr(harness.handlers._kinds[RB], "parse", breaks)
    harness.listed(RB, [manifests.binding("deep"), manifests.binding()], "9")
    harness.handlers.on_event(RB, "MODIFIED", manifests.binding("deep", version=2))
    assert harness.enqueued() == ["web-deployment"]
    [record] = caplog.records
    assert record.__dict__["object"] == BindingKey(RB, "demo", "deep")
    assert record.__dict__["error"] == "RecursionError: too deep"
    assert record.exc_info


def _placeholder(problem: str = "no JSON", **metadata: str) -> dict[str, Any]:
    return {json_body.UNREADABLE: problem, "metadata": metadata}


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED", "DELETED"])
def test_an_object_that_cannot_be_decoded_is_logged_once_and_counted(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture, event: str
) -> None:
    harness.handlers.on_event(RB, "ADDED", manifests.binding())
    for _ in range(3):
        harness.handlers.on_event(RB, event, _placeholder(name="web-deployment", namespace="demo"))
    assert WEB not in {binding.key for binding in harness.bindings}
    [record] = caplog.records
    assert (record.__dict__["kind"], str(record.__dict__["object"])) == (RB, "demo/web-deployment")
    assert str(record.__dict__["error"]) == "no JSON"
    assert harness.sample("malformed_objects_total", kind=RB) == 3


def test_an_object_that_was_readable_in_between_is_logged_again(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    for version in (1, 3):
        harness.handlers.on_event("Cluster", "MODIFIED", unreadable("m1", version=version))
        harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=version + 1))
    assert len(caplog.records) == 2


def test_a_policy_without_a_name_says_nothing_about_clusters(harness: HandlersHarness) -> None:
    harness.handlers.on_event("ClusterPropagationPolicy", "ADDED", _placeholder())
    assert harness.sample("malformed_objects_total", kind="ClusterPropagationPolicy") == 1
    assert not harness.clusters.is_incomplete


def test_a_cluster_without_a_version_is_not_known_as_being_deleted(harness: HandlersHarness) -> None:
    """It would count as newer than each later version."""
    leaving = unreadable("m1", deletionTimestamp="2026-01-02T03:04:05Z")
    del leaving["metadata"]["resourceVersion"]
    harness.handlers.on_event("Cluster", "ADDED", leaving)
    assert list(harness.clusters.unreadable) == ["m1"]
    harness.handlers.on_event("Cluster", "MODIFIED", manifests.cluster("m1", version=3))
    assert [cluster.name for cluster in harness.clusters] == ["m1"]


def test_clusters_of_bindings_that_a_list_lacks_are_asked_for(harness: HandlersHarness) -> None:
    for name in ("m1", "m2"):
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster(name))
    harness.handlers.on_event("Cluster", "ADDED", unreadable("m3"))
    for version, name in enumerate(("m2", "m3", "m4"), start=1):
        harness.bindings.put(Binding.from_manifest(placed_on(name, name, version=version)))
    assert harness.handlers.cluster_lists.unknown_targets() == ["m4"]
    assert sorted(harness.clusters.unreadable) == ["m3", "m4"]
    diff = harness.handlers.relist_diff("Cluster")
    diff.add_page([manifests.cluster("m2")])
    assert harness.handlers.cluster_lists.unlisted(diff, 9) == ["m1", "m3", "m4"]


def test_a_cluster_that_is_absent_is_not_stored_in_an_older_version(harness: HandlersHarness) -> None:
    harness.handlers.clusters_absent(["m1"], 9)
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1", version=8))
    assert len(harness.clusters) == 0


def test_a_cluster_that_a_list_lacked_and_that_does_not_exist_is_removed(harness: HandlersHarness) -> None:
    for version in (1, 10):
        harness.handlers.on_event("Cluster", "ADDED", manifests.cluster(f"m{version}", version=version))
    harness.handlers.on_event("Cluster", "ADDED", unreadable("m3"))
    harness.known(RB, "ADDED", placed_on("web", "m3", version=4))
    harness.handlers.clusters_absent(["m1", "m10", "m3"], 9)
    assert [cluster.name for cluster in harness.clusters] == ["m10"], "m10 is newer than the list"
    assert harness.clusters.unreadable == {}.keys()
    assert harness.sample("cache_repairs_total", kind="Cluster", repair="gone") == 1
    assert harness.enqueued() == ["web"]


def test_no_cluster_is_removed_while_a_list_without_clusters_is_not_confirmed(
    harness: HandlersHarness,
) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    lists_clusters(harness, 5)
    harness.handlers.clusters_absent(["m1"], 5)
    assert [cluster.name for cluster in harness.clusters] == ["m1"]


def test_a_list_does_not_enqueue_unplaced_bindings_while_all_clusters_are_known(
    harness: HandlersHarness,
) -> None:
    harness.now = 100.0
    lists_clusters(harness, 1, manifests.cluster("m1"))
    harness.known(RB, "ADDED", manifests.binding(version=2))
    harness.now = 200.0
    lists_clusters(harness, 3, manifests.cluster("m1"))
    assert harness.enqueued() == []


@pytest.mark.parametrize("listed", [[], ["m1"]])
def test_a_list_without_clusters_does_not_complete_them(harness: HandlersHarness, listed: list[str]) -> None:
    lists_clusters(harness, 1, manifests.cluster("m1"))
    harness.clusters.set_incomplete(True)
    harness.now = 100.0
    lists_clusters(harness, 3, *(manifests.cluster(name) for name in listed))
    assert harness.clusters.is_incomplete is not bool(listed)


def test_a_list_with_an_unreadable_cluster_only_is_complete(harness: HandlersHarness) -> None:
    harness.clusters.set_incomplete(True)
    harness.now = 100.0
    lists_clusters(harness, 3, unreadable("m1"))
    assert not harness.clusters.is_incomplete


def test_a_listed_cluster_that_cannot_be_decoded_keeps_its_last_version(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m2"))
    harness.listed("Cluster", [_placeholder(name="m1")], "9")
    assert [cluster.name for cluster in harness.clusters] == ["m1"]


def test_a_list_with_an_object_without_a_name_removes_nothing(harness: HandlersHarness) -> None:
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.listed("Cluster", [_placeholder()], "9")
    assert [cluster.name for cluster in harness.clusters] == ["m1"]
    assert harness.clusters.is_incomplete
    assert harness.sample("malformed_objects_total", kind="Cluster") == 1
    harness.listed("Cluster", [manifests.cluster("m2")], "9")
    assert [cluster.name for cluster in harness.clusters] == ["m2"]


def test_a_defect_in_parsing_one_object_is_logged_and_the_others_are_stored(
    harness: HandlersHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parse = harness.handlers._kinds["Cluster"].parse

    def failing(manifest: Any) -> Any:
        if manifest["metadata"]["name"] == "m1":
            raise TypeError("a defect")
        return parse(manifest)

    monkeypatch.setattr(harness.handlers._kinds["Cluster"], "parse", failing)
    harness.listed("Cluster", [manifests.cluster("m1"), manifests.cluster("m2")], "9")
    assert [cluster.name for cluster in harness.clusters] == ["m2"]
    assert caplog.records[0].__dict__["error"] == "TypeError: a defect"


def test_changes_of_clusters_are_logged_with_their_names(
    harness: HandlersHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logs.V3)
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    harness.handlers.on_event("Cluster", "DELETED", manifests.cluster("m1"))
    texts = [each.getMessage() for each in caplog.records if "event for cluster" in each.getMessage()]
    assert texts == ["Add event for cluster m1", "Delete event for cluster m1"]


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_a_cluster_that_is_deleted_requeues_the_bindings_on_it_that_do_not_select_it(
    harness: HandlersHarness, event: str
) -> None:
    elsewhere = {"clusterAffinity": {"clusterNames": ["m9"]}}
    harness.handlers.on_event("Cluster", "ADDED", manifests.cluster("m1"))
    on_it = manifests.binding("on-it", placement=elsewhere, clusters=[{"name": "m1", "replicas": 1}])
    for manifest in (on_it, manifests.binding("other", placement=elsewhere)):
        harness.handlers.on_event(RB, "ADDED", manifest)
    harness.enqueued()
    changed = manifests.cluster("m1", version=2, deletionTimestamp="2026-01-02T03:04:05Z")
    harness.handlers.on_event("Cluster", event, changed)
    assert harness.enqueued() == ["on-it"]
