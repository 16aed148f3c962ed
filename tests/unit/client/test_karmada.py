"""Responses are Karmada's objects or errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from karmada_pyscheduler.client.karmada import CLUSTERS, KarmadaClient
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api_error import ApiError
from tests.unit.client.fakes import FakeConnection

KEY = BindingKey("ResourceBinding", "demo", "web")
GOOD = {"metadata": {"namespace": "demo", "name": "web", "resourceVersion": "7"}}


def _client(answer: Any) -> KarmadaClient:
    return KarmadaClient(FakeConnection(answer))  # type: ignore[arg-type]


async def _all(client: KarmadaClient) -> list[Any]:
    return [
        await client.get_binding(KEY),
        await client.patch_result(KEY, resource_version="6", annotations={}, clusters=[]),
        await client.patch_status(KEY, resource_version="6", status={}),
    ]


async def test_a_response_that_is_the_binding_is_returned() -> None:
    assert await _all(_client(GOOD)) == [GOOD] * 3


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"kind": "Status", "metadata": {}}, {"metadata": {**GOOD["metadata"], "name": "other"}},
        {"metadata": {**GOOD["metadata"], "namespace": "other"}}, {"metadata": {"namespace": "demo", "name": "web"}},
        {"metadata": {**GOOD["metadata"], "resourceVersion": ""}}, {"metadata": {**GOOD["metadata"], "uid": 7}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("request_number", [0, 1, 2])
async def test_a_response_that_is_not_the_binding_is_a_transient_error(
    answer: Any, request_number: int
) -> None:
    client = _client(answer)
    requests = (
        lambda: client.get_binding(KEY),
        lambda: client.patch_result(KEY, resource_version="6", annotations={}, clusters=None),
        lambda: client.patch_status(KEY, resource_version="6", status={}),
    )
    with pytest.raises(ApiError, match=r"the response is not ResourceBinding\(demo/web\)") as caught:
        await requests[request_number]()
    assert caught.value.is_transient


async def test_a_patch_is_checked_before_it_is_sent() -> None:
    connection, checks = FakeConnection(GOOD), list[None]()
    client = KarmadaClient(connection)  # type: ignore[arg-type]
    check = partial(checks.append, None)
    await client.patch_result(KEY, resource_version="6", annotations={}, clusters=[], before_send=check)
    await client.patch_status(KEY, resource_version="6", status={}, before_send=check)
    assert [request.before_send for request in connection.requests] == [check, check]


@pytest.mark.parametrize(("code", "text"), [(404, r"does not serve clusters\.cluster"), (403, "^no$")])
async def test_a_list_that_does_not_exist_names_the_kind_that_is_not_served(code: int, text: str) -> None:
    with pytest.raises(ApiError, match=text) as caught:
        [page async for page in _client(ApiError("no", code=code)).list(CLUSTERS)]
    assert caught.value.code == code


async def test_a_resource_list_with_invalid_entries_is_read() -> None:
    with pytest.raises(ApiError, match=r"does not serve clusters\.cluster\.karmada\.io/v1alpha1: "):
        await _client({"resources": [7, None, {"name": 5}]}).require_served(CLUSTERS)
    await _client({"resources": [7, {"name": "clusters"}]}).require_served(CLUSTERS)
    with pytest.raises(ApiError, match="expected an APIResourceList"):
        await _client({"resources": {}}).require_served(CLUSTERS)
