"""Who may read the page: people who may read all that it shows."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.web.authorization import SHOWN, Authorization
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.reviews import Reviews

AUDIENCE = "karmada-pyscheduler-web"


class Plane:
    """The reviews of a control plane on which ``dev`` has a token."""

    def __init__(self, *, forbidden: str = "", failure: ApiError | None = None) -> None:
        self.forbidden, self.failure = forbidden, failure
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
        return {"status": {"allowed": attributes["resource"] != self.forbidden}}


def authorization_by(plane: Plane) -> Authorization:
    return Authorization(Reviews(plane, audiences=[AUDIENCE]), audience=AUDIENCE)


async def test_who_may_list_all_that_is_shown_is_let_in() -> None:
    plane = Plane()

    assert await authorization_by(plane).refusal({"Authorization": "bearer  good "}) is None

    assert len(plane.asked) == len(SHOWN)
    assert all(each["verb"] == "list" and "namespace" not in each for each in plane.asked)


@pytest.mark.parametrize("each", [each.resource for each in SHOWN])
async def test_who_may_not_list_one_of_them_learns_which(each: str) -> None:
    refused = await authorization_by(Plane(forbidden=each)).refusal({"Authorization": "Bearer good"})

    assert refused is not None
    assert refused.status == 403
    assert f"dev may not read all that the page shows. Missing: list {each}" in refused.text


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer other"])
async def test_others_learn_how_to_get_a_token(header: str) -> None:
    refused = await authorization_by(Plane()).refusal({"Authorization": header})

    assert refused is not None
    assert (refused.status, refused.headers) == (401, {"WWW-Authenticate": "Bearer"})
    assert f"kubectl create token NAME -n NAMESPACE --audience={AUDIENCE}" in refused.text


async def test_while_the_api_server_is_away_nobody_is_let_in() -> None:
    plane = Plane(failure=ApiError("connection refused"))

    refused = await authorization_by(plane).refusal({"Authorization": "Bearer good"})

    assert refused is not None
    assert (refused.status, refused.headers) == (503, {"Retry-After": "2"})
    assert "connection refused" in refused.text
    assert "good" not in refused.text
