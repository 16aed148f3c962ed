"""Front ends whose watch caches are behind."""

from __future__ import annotations

import pytest

from tools.apiserver_model import ApiServerModel, FrontEnd
from tools.apiserver_model.tests.client import (
    ALL_BINDINGS,
    BINDINGS,
    CLUSTERS,
    WEB,
    Watcher,
    binding,
    cluster,
    names,
    new_model,
    send,
    stored,
)


@pytest.fixture
def model() -> ApiServerModel:
    """A model with the binding ``web`` of revision 101."""
    model = new_model()
    model.put(binding())
    return model


@pytest.fixture
def front(model: ApiServerModel) -> FrontEnd:
    """A front end that has seen revision 101; then ``web`` got two replicas and ``db`` came."""
    front = FrontEnd(model)
    model.put(binding(replicas=2))
    model.put(binding("db"))
    return front


class TestReads:
    def test_reads_at_version_0_are_of_the_cache_and_others_of_etcd(self, front: FrontEnd) -> None:
        assert stored(front, f"{WEB}?resourceVersion=0")["spec"] == {"replicas": 1}
        assert stored(front)["spec"] == {"replicas": 2}
        _, cached = send(front, "GET", f"{BINDINGS}?resourceVersion=0&limit=1")
        assert names(cached) == ["web"]
        assert cached["metadata"] == {"resourceVersion": "101"}
        assert names(send(front, "GET", BINDINGS)[1]) == ["db", "web"]

    def test_an_object_that_the_cache_lacks_is_not_found_at_version_0(self, front: FrontEnd) -> None:
        assert send(front, "GET", f"{BINDINGS}/db?resourceVersion=0")[0] == 404
        assert send(front, "GET", f"{BINDINGS}/db")[0] == 200

    def test_a_read_at_a_version_waits_for_the_cache(self, front: FrontEnd) -> None:
        _, found = send(front, "GET", f"{BINDINGS}?resourceVersion=102")
        assert names(found) == ["web"]
        assert found["metadata"] == {"resourceVersion": "102"}
        assert front.revision("ResourceBinding") == 102
        assert send(front, "GET", f"{BINDINGS}?resourceVersion=999")[0] == 504

    def test_writes_go_to_etcd(self, front: FrontEnd, model: ApiServerModel) -> None:
        send(front, "PATCH", WEB, {"spec": {"replicas": 9}})
        assert stored(model)["spec"] == {"replicas": 9}
        assert stored(front, f"{WEB}?resourceVersion=0")["spec"] == {"replicas": 1}


class TestWatches:
    def test_a_watch_gets_what_the_cache_has_seen(self, front: FrontEnd) -> None:
        watcher = Watcher(front, since=101)
        assert watcher.events == []
        front.advance_to(102)
        assert watcher.seen == ["MODIFIED web 102"]
        front.advance_to(999)
        assert watcher.seen[1:] == ["ADDED db 103"]
        assert front.revision("Cluster") == 103

    def test_a_new_watch_gets_the_state_of_the_cache(self, front: FrontEnd) -> None:
        watcher = Watcher(front)
        assert watcher.seen == ["ADDED web 101"]
        front.advance_to(103)
        assert watcher.seen[1:] == ["MODIFIED web 102", "ADDED db 103"]

    def test_a_watch_from_what_another_front_end_has_seen_waits(self, front: FrontEnd) -> None:
        watcher = Watcher(front, since=102)
        front.advance_to(103)
        assert watcher.seen == ["ADDED db 103"]

    def test_kinds_advance_on_their_own(self, front: FrontEnd, model: ApiServerModel) -> None:
        model.put(cluster("m1"))
        bindings, clusters = Watcher(front, since=101), Watcher(front, CLUSTERS, since=101)
        front.advance_to(104, "Cluster")
        assert clusters.seen == ["ADDED m1 104"]
        assert bindings.events == []

    def test_a_bookmark_has_the_revision_of_the_cache(self, front: FrontEnd) -> None:
        watcher = Watcher(front, since=101, query="&allowWatchBookmarks=true")
        assert watcher.watch.bookmark()
        assert watcher.seen == ["BOOKMARK  101"]

    def test_a_full_cache_forgets_old_versions(self, front: FrontEnd) -> None:
        front.advance_to(103)
        front.forget(102, "ResourceBinding")
        assert Watcher(front, since=101).events[0]["type"] == "ERROR"
        assert Watcher(front, since=102).seen == ["ADDED db 103"]

    def test_compaction_of_etcd_does_not_shorten_the_cache(
        self, front: FrontEnd, model: ApiServerModel
    ) -> None:
        model.compact(103)
        front.advance_to(103)
        assert Watcher(front, since=101).seen == ["MODIFIED web 102", "ADDED db 103"]


class TestRestart:
    def test_watches_end_and_older_versions_have_expired(self, front: FrontEnd) -> None:
        watcher = Watcher(front, since=101)
        front.restart()
        assert watcher.is_ended
        assert watcher.events == []
        assert Watcher(front, since=102).events[0]["type"] == "ERROR"
        assert names(send(front, "GET", f"{BINDINGS}?resourceVersion=0")[1]) == ["db", "web"]

    def test_a_restore_of_etcd_restarts_front_ends(self, front: FrontEnd, model: ApiServerModel) -> None:
        backup = model.backup()
        model.put(binding("later"))
        front.advance_to(104)
        model.restore(backup)
        assert front.revision("ResourceBinding") == 103
        assert names(send(front, "GET", f"{ALL_BINDINGS}?resourceVersion=0")[1]) == ["db", "web"]

    def test_a_cache_whose_next_write_is_not_kept_starts_again(self) -> None:
        model = new_model(kept_writes=5)
        front = FrontEnd(model)
        watcher = Watcher(front, since=100)
        for number in range(20):
            model.put(binding(replicas=number))
        front.advance_to(model.revision)
        assert watcher.is_ended
        assert stored(front, f"{WEB}?resourceVersion=0")["spec"] == {"replicas": 19}
