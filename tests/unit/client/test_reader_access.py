"""Who reads what a server shows: whom an API server lets, and nobody while it does not answer."""

from __future__ import annotations

import logging
import ssl
from typing import Any, cast

import pytest

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.reader_access import ReaderAccess
from karmada_pyscheduler.client.reviews import HOST, User
from karmada_pyscheduler.http_server.listener import ServerCertificate
from karmada_pyscheduler.http_server.request_guard import RequestRefusal
from karmada_scheduler.api_error import ApiError
from tests.unit.client.fakes import FakeConnection

PATH = "/metrics"
SCRAPER = "system:serviceaccount:monitoring:prometheus"


class FakeCertificate:
    """A certificate that stays as it is."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    async def keep_fresh(self) -> None:
        """Do nothing."""


class FakeHost(FakeConnection):
    """An API server that knows one token; ``failure`` is raised instead of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = True
        self.failure: ApiError | None = None
        self.closed = False

    async def request(self, method: str, path: str, *, body: Any = None, **more: Any) -> Any:
        await super().request(method, path, body=body, **more)
        if self.failure is not None:
            raise self.failure
        if path.endswith("tokenreviews"):
            known = body["spec"]["token"] == "good"
            return {"status": {"authenticated": known, "user": {"username": SCRAPER}}}
        return {"status": {"allowed": self.allowed}}

    async def close(self) -> None:
        self.closed = True


class Setup:
    def __init__(self, audiences: tuple[str, ...] = ()) -> None:
        self.host = FakeHost()
        self.access = ReaderAccess(
            cast("ServerCertificate", FakeCertificate()),
            self._connect,
            what="metrics",
            path=PATH,
            audiences=audiences,
            reviewer=HOST,
        )

    async def _connect(self) -> Connection:
        return cast("Connection", self.host)

    async def ask(self, token: str = "") -> User | RequestRefusal:
        return await self.access.reader({"Authorization": f"Bearer {token}"} if token else {}, "192.0.2.1")

    async def refusal(self, token: str = "") -> RequestRefusal:
        found = await self.ask(token)
        assert isinstance(found, RequestRefusal)
        return found


@pytest.fixture
async def setup() -> Setup:
    made = Setup()
    await made.access.open()
    return made


async def test_who_may_get_the_path_is_let_in(setup: Setup) -> None:
    assert await setup.ask("good") == User(SCRAPER)
    tokens, access = setup.host.requests
    assert "audiences" not in tokens.body["spec"]
    assert access.body["spec"]["nonResourceAttributes"] == {"path": PATH, "verb": "get"}

    await setup.access.close()
    assert setup.host.closed


async def test_without_a_token_the_api_server_is_not_asked(setup: Setup) -> None:
    found = await setup.refusal()

    assert (found.status, found.text) == (
        401,
        "a reader of metrics needs a bearer token of the API server of the host",
    )
    assert found.headers == {"WWW-Authenticate": "Bearer"}
    assert setup.host.requests == []

    other = Setup(("a", "b"))
    await other.access.open()
    assert (await other.refusal()).text.endswith("needs a bearer token for the audience a or b")


async def test_a_token_of_another_control_plane_is_refused_with_whose_it_may_be(setup: Setup) -> None:
    found = await setup.refusal("e30.eyJzdWIiOiJhIn0.c2ln")

    assert found.status == 401
    assert found.text.startswith("The API server of the host does not know this token. Is it one of Karmada,")
    assert found.text.endswith("needs --oidc-issuer-url there.")


async def test_who_lacks_the_right_is_named(setup: Setup) -> None:
    setup.host.allowed = False
    found = await setup.refusal("good")

    assert (found.status, found.text) == (
        403,
        f"{SCRAPER} may not get /metrics at the API server of the host",
    )


async def test_without_an_answer_nobody_is_let_in_and_the_log_says_so_once(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.host.failure = ApiError("cannot reach https://host", code=0)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            found = await setup.refusal("good")
            assert (found.status, found.headers) == (503, {"Retry-After": "5"})
        setup.host.failure = None
        assert isinstance(await setup.ask("good"), User)
        setup.host.failure = ApiError("cannot reach https://host", code=0)
        await setup.refusal("other")

    lines = [each.getMessage() for each in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("Nobody can read metrics: no TokenReview: cannot reach https://host")
    assert "good" not in caplog.text


async def test_an_account_that_may_not_ask_is_no_yes_and_the_text_says_what_it_lacks(setup: Setup) -> None:
    setup.host.failure = ApiError("forbidden", code=403)

    found = await setup.refusal("good")

    assert (found.status, "needs the verb create on tokenreviews" in found.text) == (503, True)
