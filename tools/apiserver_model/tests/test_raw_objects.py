"""Objects that no decoder here accepts."""

from __future__ import annotations

import orjson
import pytest

from tools.apiserver_model import ApiServerModel, request_of
from tools.apiserver_model.tests.client import ALL_BINDINGS, WEB, Watcher, binding, new_model

DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000
LARGE = b"1e20000"


@pytest.fixture(params=[DEEP, LARGE], ids=["deep", "large"])
def model(request: pytest.FixtureRequest) -> ApiServerModel:
    """A model with a binding that has 3,000 levels, or a number of 20,000 digits."""
    model = new_model()
    text = orjson.dumps({**binding(), "status": "@"}).replace(b'"@"', request.param)
    model.put_raw(text)
    return model


def test_it_is_listed_read_and_watched_as_it_is(model: ApiServerModel) -> None:
    found = model.handle(request_of("GET", WEB, {}))
    assert b'"uid":"uid-1","resourceVersion":"101"' in found.body
    assert found.body in model.handle(request_of("GET", ALL_BINDINGS, {})).body
    lines: list[bytes | None] = []
    model.watch(request_of("GET", f"{ALL_BINDINGS}?watch=true", {}), lines.append)
    assert lines == [b'{"type":"ADDED","object":' + found.body + b"}\n"]


def test_its_clusters_can_be_patched_with_its_version_only(model: ApiServerModel) -> None:
    patch = {"metadata": {"resourceVersion": "7"}, "spec": {"clusters": [{"name": "m1"}]}}
    assert model.handle(request_of("PATCH", WEB, {}, orjson.dumps(patch))).status == 409
    patch["metadata"] = {"resourceVersion": "101"}
    found = model.handle(request_of("PATCH", WEB, {}, orjson.dumps(patch)))
    assert found.status == 200
    assert b'"resourceVersion":"102"' in found.body
    assert b'"spec":{"clusters":[{"name":"m1"}],"replicas":1}' in found.body


def test_it_can_be_deleted_and_replaced(model: ApiServerModel) -> None:
    assert model.put(binding(replicas=3))["metadata"]["uid"] == "uid-1"
    text = orjson.dumps({**binding("other"), "status": "@"}).replace(b'"@"', DEEP)
    model.put_raw(text)
    lines: list[bytes | None] = []
    model.watch(request_of("GET", f"{ALL_BINDINGS}?watch=true&resourceVersion=103", {}), lines.append)
    response = model.handle(request_of("DELETE", f"{WEB[:-3]}other", {}))
    assert response.status == 200
    assert lines[0] is not None
    assert lines[0].startswith(b'{"type":"DELETED"')
    assert b'"resourceVersion":"104"' in lines[0]


def test_a_text_without_metadata_is_refused() -> None:
    with pytest.raises(ValueError, match="metadata"):
        new_model().put_raw(b'{"kind":"ResourceBinding"}')


def test_readable_objects_are_served_as_well(model: ApiServerModel) -> None:
    watcher = Watcher(model, since=101)
    model.put(binding("other"))
    assert watcher.seen == ["ADDED other 102"]


def test_an_object_can_be_corrupted_without_a_write(model: ApiServerModel) -> None:
    model.put(binding("other"))
    watcher = Watcher(model, since=102)
    model.corrupt("ResourceBinding", "default", "other", b'"just a word"')
    assert send_text(model, f"{WEB[:-3]}other") == b'"just a word"'
    assert b'"just a word"' in send_text(model, ALL_BINDINGS)
    assert (watcher.events, model.revision) == ([], 102)
    model.put(binding("other", replicas=2))
    assert b'"replicas":2' in send_text(model, f"{WEB[:-3]}other")


def send_text(model: ApiServerModel, target: str) -> bytes:
    """Return the body of a GET."""
    return model.handle(request_of("GET", target, {})).body
