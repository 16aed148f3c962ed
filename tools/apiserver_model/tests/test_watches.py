"""Watches: where they begin, what they get, how they end."""

from __future__ import annotations

import orjson
import pytest

from tools.apiserver_model import ApiServerModel, WatchRules
from tools.apiserver_model.tests.client import (
    ALL_BINDINGS,
    BINDINGS,
    METADATA,
    METADATA_LIST,
    WEB,
    Watcher,
    binding,
    cluster,
    new_model,
    refused_watch,
)


@pytest.fixture
def model() -> ApiServerModel:
    """A model with the bindings ``web`` of revision 102 and ``db`` of 101."""
    model = new_model()
    model.put(binding("db"))
    model.put(binding())
    return model


class TestBegin:
    def test_an_expired_version_can_be_refused_with_410(self, model: ApiServerModel) -> None:
        model.watch_rules = WatchRules(refuses_expired=True)
        model.compact(102)
        response = refused_watch(model, f"{ALL_BINDINGS}?watch=true&resourceVersion=101")
        assert (response.status, orjson.loads(response.body)["reason"]) == (410, "Expired")

    def test_from_a_future_version_it_is_silent_until_then(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=103)
        model.put(binding(replicas=2))
        model.put(binding(replicas=3))
        assert watcher.seen == ["MODIFIED web 104"]

    def test_a_future_version_can_be_refused_with_504(self, model: ApiServerModel) -> None:
        model.watch_rules = WatchRules(refuses_future=True)
        assert refused_watch(model, f"{ALL_BINDINGS}?watch=true&resourceVersion=103").status == 504

    @pytest.mark.parametrize(
        ("target", "status"),
        [(f"{ALL_BINDINGS}?resourceVersion=abc", 500), ("/apis/nothing/v1/nothing", 404), (WEB, 404)],
    )
    def test_what_cannot_be_watched_is_refused(self, model: ApiServerModel, target: str, status: int) -> None:
        assert refused_watch(model, target).status == status


class TestLines:
    def test_other_kinds_and_namespaces_are_not_shown(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, BINDINGS, since=102)
        elsewhere = binding("other")
        elsewhere["metadata"]["namespace"] = "elsewhere"
        model.put(elsewhere)
        model.put(cluster("m1"))
        model.put(binding("here"))
        assert watcher.seen == ["ADDED here 105"]

    def test_metadata_can_be_watched_alone(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, headers=METADATA)
        model.put(binding(replicas=2))
        assert {event["object"]["kind"] for event in watcher.events} == {"PartialObjectMetadata"}
        assert all(event["object"].keys() == {"apiVersion", "kind", "metadata"} for event in watcher.events)

    def test_events_as_lists_end_at_once(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, headers=METADATA_LIST)
        assert watcher.is_ended
        assert watcher.events == []

    def test_each_watch_gets_lines_in_the_order_of_revisions_if_a_line_causes_a_write(
        self, model: ApiServerModel
    ) -> None:
        first = Watcher(model, since=102)
        original = first.watch._on_line

        def write_once(line: bytes | None) -> None:
            original(line)
            if model.revision == 103:
                model.put(binding(replicas=3))

        first.watch._on_line = write_once
        second = Watcher(model, since=102)
        model.put(binding(replicas=2))
        assert first.seen == second.seen == ["MODIFIED web 103", "MODIFIED web 104"]


class TestBookmarks:
    def test_a_bookmark_has_the_newest_revision_of_all_kinds(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=102, query="&allowWatchBookmarks=true")
        model.put(cluster("m1"))
        assert watcher.watch.bookmark()
        assert watcher.seen == ["BOOKMARK  103"]
        assert watcher.events[0]["object"]["kind"] == "ResourceBinding"

    def test_only_clients_that_ask_for_bookmarks_get_them(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=102)
        assert not watcher.watch.bookmark()
        assert watcher.events == []

    def test_no_bookmark_comes_before_a_line_that_is_older(self, model: ApiServerModel) -> None:
        writer = Watcher(model, since=102)
        watcher = Watcher(model, since=102, query="&allowWatchBookmarks=true")
        writer.watch._on_line = lambda _: sent.append(watcher.watch.bookmark())
        sent: list[bool] = []
        model.put(binding(replicas=2))
        assert sent == [False]
        assert watcher.seen == ["MODIFIED web 103"]


class TestEnd:
    def test_a_closed_watch_gets_nothing_more(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=102)
        watcher.watch.close()
        model.put(binding(replicas=2))
        assert watcher.events == []
        assert not watcher.is_ended
        assert model.watches.of() == []

    def test_an_ended_watch_gets_the_end_and_nothing_more(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=102)
        watcher.watch.end()
        watcher.watch.end()
        model.put(binding(replicas=2))
        assert watcher.is_ended
        assert watcher.events == []

    def test_a_failed_watch_gets_an_error_and_the_end(self, model: ApiServerModel) -> None:
        watcher = Watcher(model, since=102)
        watcher.watch.fail(500, "InternalError", "etcd is away")
        assert [event["type"] for event in watcher.events] == ["ERROR"]
        assert watcher.events[0]["object"]["message"] == "etcd is away"
        assert watcher.is_ended
