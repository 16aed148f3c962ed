"""Who asks, and whether they may read all that the page shows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from karmada_advisor.web.authorization import SHOWN, Authorization
from karmada_advisor.web.request_query import RequestRefusedError
from karmada_advisor.web.viewer import Viewer
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.permissions import Permission
from karmada_scheduler.client.reviews import Reviews
from karmada_scheduler.http_server.request_guard import RequestRefusal

AUDIENCE = "karmada-pyscheduler-web"


class Plane:
    """The reviews of a control plane on which ``dev`` has a token."""

    def __init__(
        self,
        *,
        forbidden: str = "",
        namespaces: Collection[str] = (),
        failure: ApiError | None = None,
    ) -> None:
        self.forbidden, self.namespaces, self.failure = forbidden, namespaces, failure
        self.asked: list[dict[str, Any]] = []

    async def request(self, method: str, path: str, *, body: Any, timeout: float) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        if path.endswith("tokenreviews"):
            is_known = body["spec"]["token"] == "good"
            user = {"username": "dev", "groups": ["shop"]}
            return {"status": {"authenticated": is_known, "audiences": [AUDIENCE], "user": user}}
        attributes = body["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        if "namespace" in attributes:
            return {"status": {"allowed": attributes["namespace"] in self.namespaces}}
        return {"status": {"allowed": attributes["resource"] != self.forbidden}}


def authorization_by(plane: Plane) -> Authorization:
    return Authorization(Reviews(plane, audiences=[AUDIENCE]), audience=AUDIENCE)


async def test_who_may_list_all_that_is_shown_is_let_in() -> None:
    plane = Plane()

    viewer = await authorization_by(plane).viewer({"Authorization": "bearer  good "})

    assert isinstance(viewer, Viewer)
    assert viewer.sees_all

    assert len(plane.asked) == len(SHOWN)
    assert all(each["verb"] == "list" and "namespace" not in each for each in plane.asked)


@pytest.mark.parametrize("each", SHOWN)
async def test_who_may_not_list_one_of_them_learns_which(each: Permission) -> None:
    viewer = await authorization_by(Plane(forbidden=each.resource)).viewer({"Authorization": "Bearer good"})

    assert isinstance(viewer, Viewer)
    assert viewer.missing == (each,)
    with pytest.raises(RequestRefusedError, match=f"dev may not read all .* Missing: {each}. "):
        viewer.check_all()


async def test_bindings_of_a_namespace_are_for_who_may_list_them_there() -> None:
    plane = Plane(forbidden="clusters", namespaces={"shop"})
    viewer = await authorization_by(plane).viewer({"Authorization": "Bearer good"})
    assert isinstance(viewer, Viewer)

    await viewer.check_namespace("shop")
    for namespace in ("pay", "", "SHOP"):
        with pytest.raises(RequestRefusedError):
            await viewer.check_namespace(namespace)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer other"])
async def test_others_learn_how_to_get_a_token(header: str) -> None:
    refused = await authorization_by(Plane()).viewer({"Authorization": header})

    assert isinstance(refused, RequestRefusal)
    assert (refused.status, refused.headers) == (401, {"WWW-Authenticate": "Bearer"})
    assert f"kubectl create token NAME -n NAMESPACE --audience={AUDIENCE}" in refused.text


async def test_while_the_api_server_is_away_nobody_is_let_in() -> None:
    plane = Plane(failure=ApiError("connection refused"))

    refused = await authorization_by(plane).viewer({"Authorization": "Bearer good"})

    assert isinstance(refused, RequestRefusal)
    assert (refused.status, refused.headers) == (503, {"Retry-After": "2"})
    assert "connection refused" in refused.text
    assert "good" not in refused.text
