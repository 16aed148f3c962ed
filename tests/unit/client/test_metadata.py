"""Requests for the metadata of objects of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from karmada_pyscheduler.client.metadata import KindName, MetadataClient, NotServedError, ServedResource
from karmada_scheduler.api_error import ApiError
from tests.unit.client.fakes import FakeConnection

VERBS = ["get", "list", "watch"]
DEPLOYMENT = KindName("apps/v1", "Deployment")
DEPLOYMENTS = ServedResource("apps/v1", "deployments", namespaced=True)
APPS = [
    7,
    {"name": "deployments/status", "kind": "Deployment", "namespaced": True, "verbs": VERBS},
    {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "verbs": ["get"]},
    {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": VERBS},
    {"name": "secrets", "kind": "Hidden", "namespaced": True, "verbs": ["create"]},
    {"name": "odd", "kind": "Odd", "verbs": 5},
]


def client(answer: Any = None, *, lines: Sequence[Any] = ()) -> tuple[MetadataClient, FakeConnection]:
    connection = FakeConnection(answer, lines=lines)
    return MetadataClient(connection), connection  # type: ignore[arg-type]


def gone(name: str) -> ApiError:
    return ApiError(f'deployments.apps "{name}" not found', code=404, reason="NotFound", name=name)


async def test_a_kind_is_found_in_the_resource_list_of_its_group() -> None:
    metadata, connection = client({"resources": APPS})
    assert await metadata.discover(DEPLOYMENT) == DEPLOYMENTS
    assert [each.path for each in connection.requests] == ["/apis/apps/v1"]
    assert str(DEPLOYMENTS) == "deployments.apps"


async def test_the_core_group_has_a_path_of_its_own() -> None:
    entry = {"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": VERBS}
    metadata, connection = client({"resources": [entry]})
    found = await metadata.discover(KindName("v1", "Namespace"))
    assert connection.requests[0].path == "/api/v1"
    assert (found.path, found.path_of("", "x"), str(found)) == (
        "/api/v1/namespaces",
        "/api/v1/namespaces/x",
        "namespaces",
    )


@pytest.mark.parametrize("kind", ["Foo", "Hidden", "Odd"])
async def test_a_kind_that_does_not_exist_or_cannot_be_watched_is_not_served(kind: str) -> None:
    with pytest.raises(NotServedError, match=kind):
        await client({"resources": APPS})[0].discover(KindName("apps/v1", kind))


async def test_a_missing_group_is_not_served_and_another_error_is_raised() -> None:
    missing = ApiError("404 page not found", code=404)
    with pytest.raises(NotServedError, match=r"serves no Foo \(example.com/v1\)"):
        await client(missing)[0].discover(KindName("example.com/v1", "Foo"))
    for answer in (ApiError("no", code=503), {"resources": "none"}):
        with pytest.raises(ApiError) as caught:
            await client(answer)[0].discover(DEPLOYMENT)
        assert not isinstance(caught.value, NotServedError)


async def test_names_in_bindings_are_escaped_in_paths() -> None:
    metadata, connection = client(ApiError("404 page not found", code=404))
    with pytest.raises(NotServedError):
        await metadata.discover(KindName("apps/v1?x=1\r\nHost: other", "Deployment"))
    assert connection.requests[0].path == "/apis/apps/v1%3Fx%3D1%0D%0AHost%3A%20other"
    assert DEPLOYMENTS.path_of("a b", "c?d").endswith("/namespaces/a%20b/deployments/c%3Fd")


@pytest.mark.parametrize(
    ("namespace", "name"), [("a/b", "web"), ("a", "web/status"), ("a", ".."), ("%2e", "web")]
)
async def test_an_object_with_a_name_that_none_can_have_does_not_exist(namespace: str, name: str) -> None:
    metadata, connection = client()
    assert await metadata.get(DEPLOYMENTS, namespace, name) is None
    assert connection.requests == []


@pytest.mark.parametrize("api_version", ["", "apps/v1/deployments", "/v1", "..", "apps/"])
async def test_an_api_that_cannot_exist_is_not_served(api_version: str) -> None:
    metadata, connection = client()
    with pytest.raises(NotServedError):
        await metadata.discover(KindName(api_version, "Deployment"))
    assert connection.requests == []


async def test_a_single_object_is_returned_or_does_not_exist() -> None:
    found = {"metadata": {"namespace": "a", "name": "web", "resourceVersion": "7"}}
    metadata, connection = client(found)
    assert await metadata.get(DEPLOYMENTS, "a", "web") == found
    [request] = connection.requests
    assert request.path == "/apis/apps/v1/namespaces/a/deployments/web"
    assert "as=PartialObjectMetadata;g=meta.k8s.io;v=v1" in request.accept
    assert await client(gone("web"))[0].get(DEPLOYMENTS, "a", "web") is None


@pytest.mark.parametrize(
    "answer",
    [
        gone("other"), ApiError("404 page not found", code=404), ApiError("no", code=403), {}, {"metadata": {"name": 7}},
        {"metadata": {"namespace": "a", "name": "other", "resourceVersion": "7"}},
    ],
)  # fmt: skip
async def test_any_other_response_is_an_error(answer: Any) -> None:
    with pytest.raises(ApiError):
        await client(answer)[0].get(DEPLOYMENTS, "a", "web")


async def test_a_watch_yields_events_until_an_error() -> None:
    event = {"type": "ADDED", "object": {"metadata": {"name": "web", "resourceVersion": "8"}}}
    error = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
    metadata, connection = client(lines=[event, error])
    stream = metadata.watch(DEPLOYMENTS, "7", lambda: None)
    assert (await anext(stream))["object"]["metadata"]["name"] == "web"
    with pytest.raises(ApiError, match="too old") as caught:
        await anext(stream)
    assert caught.value.code == 410
    [request] = connection.requests
    assert request.path.startswith(
        "/apis/apps/v1/deployments?watch=true&allowWatchBookmarks=true&resourceVersion=7&"
    )
    assert "as=PartialObjectMetadata;" in request.accept


async def test_a_line_that_is_not_an_event_is_an_error() -> None:
    with pytest.raises(ApiError, match="/apis/apps/v1/deployments"):
        await anext(client(lines=[b"<html>"])[0].watch(DEPLOYMENTS, "7", lambda: None))
