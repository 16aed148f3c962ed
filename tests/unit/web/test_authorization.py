"""Who asks, and whether they may read all that the page shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any

import pytest

from karmada_advisor.web.authorization import SHOWN, Authorization, NamespaceHints
from karmada_advisor.web.request_query import RequestRefusedError
from karmada_advisor.web.viewer import Viewer
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import Reviews, User
from karmada_pyscheduler.http_server.request_guard import RequestRefusal
from karmada_scheduler.api_error import ApiError

AUDIENCE = "karmada-pyscheduler-web"
PEER = "192.0.2.1"


class Plane:
    """The reviews of a control plane on which ``dev`` has a token."""

    def __init__(
        self,
        *,
        forbidden: str = "",
        namespaces: Collection[str] = (),
        failure: ApiError | None = None,
        hints: Sequence[tuple[str, dict[str, str]]] | None = (),
    ) -> None:
        self.hints, self.listed = hints, 0
        self.forbidden, self.namespaces, self.failure = forbidden, namespaces, failure
        self.asked: list[dict[str, Any]] = []

    async def role_bindings(self) -> AsyncGenerator[tuple[list[dict[str, Any]], str], None]:
        self.listed += 1
        if self.hints is None:
            raise ApiError("forbidden", code=403)
        for namespace, subject in self.hints:
            yield [{"metadata": {"namespace": namespace}, "subjects": [subject]}], "1"

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
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
    return Authorization(
        Reviews(plane, audiences=[AUDIENCE]), NamespaceHints(plane.role_bindings), audience=AUDIENCE
    )


async def test_who_may_list_all_that_is_shown_is_let_in() -> None:
    plane = Plane()

    viewer = await authorization_by(plane).viewer({"Authorization": "bearer  good "}, PEER)

    assert isinstance(viewer, Viewer)
    assert viewer.sees_all

    assert len(plane.asked) == len(SHOWN)
    assert all(each["verb"] == "list" and "namespace" not in each for each in plane.asked)


@pytest.mark.parametrize("each", SHOWN)
async def test_who_may_not_list_one_of_them_learns_which(each: Permission) -> None:
    viewer = await authorization_by(Plane(forbidden=each.resource)).viewer(
        {"Authorization": "Bearer good"}, PEER
    )

    assert isinstance(viewer, Viewer)
    assert viewer.missing == (each,)
    with pytest.raises(RequestRefusedError, match=f"dev may not read all .* Missing: {each}. "):
        viewer.check_all()


async def test_bindings_of_a_namespace_are_for_who_may_list_them_there() -> None:
    plane = Plane(forbidden="clusters", namespaces={"shop"})
    viewer = await authorization_by(plane).viewer({"Authorization": "Bearer good"}, PEER)
    assert isinstance(viewer, Viewer)

    await viewer.check_namespace("shop")
    for namespace in ("pay", "", "SHOP"):
        with pytest.raises(RequestRefusedError):
            await viewer.check_namespace(namespace)


def _subject(kind: str, name: str, **more: str) -> dict[str, str]:
    return {"kind": kind, "name": name, **more}


async def _namespaces(plane: Plane, existing: Sequence[str] = ()) -> list[str]:
    viewer = await authorization_by(plane).viewer({"Authorization": "Bearer good"}, PEER)
    assert isinstance(viewer, Viewer)
    return await viewer.namespaces(existing)


async def test_the_namespaces_of_somebody_are_those_of_their_role_bindings_if_they_may_list_bindings_there() -> (
    None
):
    plane = Plane(
        forbidden="resourcebindings",
        namespaces={"shop", "pay", "ops"},
        hints=[
            ("shop", _subject("User", "dev")),
            ("pay", _subject("Group", "shop")),
            ("ops", _subject("User", "other")),
            ("ops", _subject("ServiceAccount", "dev", namespace="ops")),
            ("not-allowed", _subject("User", "dev")),
        ],
    )

    assert await _namespaces(plane) == ["pay", "shop"]
    assert {each["namespace"] for each in plane.asked if "namespace" in each} == {
        "shop",
        "pay",
        "not-allowed",
    }


async def test_who_may_list_bindings_everywhere_sees_the_namespaces_that_have_some() -> None:
    plane = Plane(forbidden="clusters", hints=[("shop", _subject("User", "dev"))])

    assert await _namespaces(plane, ["a", "b"]) == ["a", "b"]


async def test_without_the_right_to_list_role_bindings_nothing_is_suggested() -> None:
    assert await _namespaces(Plane(forbidden="resourcebindings", namespaces={"shop"}, hints=None)) == []


async def test_role_bindings_are_listed_once_a_minute_however_many_ask() -> None:
    plane, now = Plane(hints=[("shop", _subject("User", "dev"))]), 0.0
    hints = NamespaceHints(plane.role_bindings, clock=lambda: now)

    found = await asyncio.gather(*(hints.of(User(name)) for name in ("dev", "dev", "other")))
    assert found == [{"shop"}, {"shop"}, set()]
    assert plane.listed == 1

    now, plane.hints = 61.0, None
    assert await hints.of(User("dev")) == {"shop"}  # a hint may be old


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer other"])
async def test_others_learn_how_to_get_a_token(header: str) -> None:
    refused = await authorization_by(Plane()).viewer({"Authorization": header}, PEER)

    assert isinstance(refused, RequestRefusal)
    assert (refused.status, refused.headers) == (401, {"WWW-Authenticate": "Bearer"})
    assert f"kubectl create token NAME -n NAMESPACE --audience={AUDIENCE}" in refused.whole_text


async def test_while_the_api_server_is_away_nobody_is_let_in() -> None:
    plane = Plane(failure=ApiError("connection refused"))

    refused = await authorization_by(plane).viewer({"Authorization": "Bearer good"}, PEER)

    assert isinstance(refused, RequestRefusal)
    assert (refused.status, refused.headers) == (503, {"Retry-After": "2"})
    assert "connection refused" in refused.text
    assert "good" not in refused.text
