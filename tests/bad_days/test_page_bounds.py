"""Nobody takes the page from others: not by connections, streams, requests, or tokens that the API server does not know."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.bad_days.reviewing_apiserver import (
    DEVELOPER,
    OPERATOR,
    STRANGER_ADDRESS,
    Client,
    ReviewingApiServer,
    bearer,
)
from tests.bad_days.test_page_watch import WatchingPage
from tests.fake_apiserver import objects, wait_for
from tools.controlplane.processes import free_port

LIST: Final = "/v1/bindings"


@dataclass(frozen=True)
class Site:
    """A page for holders of tokens, an operator at one address and somebody else at another."""

    server: ReviewingApiServer
    page: WatchingPage
    metrics: Client
    audit: Path

    def client(self, address: str = "127.0.0.1") -> Client:
        return Client(self.page.port, address)

    @property
    def stranger(self) -> Client:
        return self.client(STRANGER_ADDRESS)

    def sign_in(self, client: Client, token: str, **headers: str) -> int:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.ask("/sign-in", given, form={"token": token, "to": "/"})


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[Site]:
    keys, audit, metrics = folder / "keys", folder / "audit.log", free_port()
    keys.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    with ReviewingApiServer() as server:
        server.put(objects.cluster("m1"))
        server.put(objects.settled("web", {"m1": 1}))
        page = WatchingPage(
            server, folder, "--auth=token", f"--session-keys-file={keys}", f"--audit-log={audit}",
            f"--metrics-bind-address=127.0.0.1:{metrics}", *flags,
        )  # fmt: skip
        try:
            page.wait(lambda: page.ready() == "ok", "the page")
            yield Site(server, page, Client(metrics), audit)
        finally:
            page.popen.kill()
            page.popen.wait()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(tmp_path) as found:
        yield found


def test_connections_that_send_nothing_take_the_page_from_nobody(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        for address in (STRANGER_ADDRESS, "127.0.0.3", "127.0.0.1"):
            stack.enter_context(site.client(address).idle(400))
            assert [site.client().ask(LIST, bearer(OPERATOR)) for _ in range(3)] == [200] * 3
        assert site.client().ask("/healthz") == 200


def test_the_event_streams_of_one_user_leave_those_of_others(site: Site) -> None:
    path = "/v1/events?namespace=default"
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(40):
            connection = stack.enter_context(contextlib.closing(site.stranger.connection()))
            connection.request("GET", path, headers=bearer(DEVELOPER))
            opened.append(connection.getresponse().status)
        assert opened == [200] * 20 + [429] * 20
        other = stack.enter_context(contextlib.closing(site.client().connection()))
        other.request("GET", path, headers=bearer(OPERATOR))
        assert other.getresponse().status == 200
        assert site.stranger.ask(LIST + "?namespace=default", bearer(DEVELOPER)) == 200


def test_wrong_sign_ins_with_invented_headers_let_others_sign_in(site: Site) -> None:
    for attempt in range(3):
        found = [
            site.sign_in(
                site.stranger, f"invented-{attempt}-{number}", X_Forwarded_For=f"198.51.100.{number}"
            )
            for number in range(30)
        ]
        assert set(found) <= {401, 429}
    assert len(site.server.reviewed) <= 12
    assert site.sign_in(site.stranger, "token-of-operator") == 429
    assert site.sign_in(site.client(), "token-of-operator") == 303


def test_invented_tokens_cost_the_api_server_nothing_after_the_first(site: Site) -> None:
    assert site.stranger.ask(LIST, bearer(OPERATOR)) == 200  # known before at the same address
    known = len(site.server.reviewed)
    found = []
    for number in range(300):
        found.append(site.stranger.ask(LIST, {"Authorization": f"Bearer invented-{number}"}))
        if not number % 60:
            assert site.client().ask(LIST, bearer(OPERATOR)) == 200
    assert found[:10] == [401] * 10
    assert set(found[20:]) == {429}
    assert len(site.server.reviewed) - known <= 15
    assert [each.ask(LIST, bearer(OPERATOR)) for each in (site.client(), site.stranger)] == [200, 200]


def test_behind_a_named_proxy_the_last_entry_of_its_header_says_who_asks(tmp_path: Path) -> None:
    with running(tmp_path, "--behind-proxy=127.0.0.1") as site:
        for number in range(15):
            site.sign_in(
                site.client(), f"invented-{number}", X_Forwarded_For=f"203.0.113.{number}, 198.51.100.7"
            )
        for number in range(15):  # who is no proxy writes what they want
            site.sign_in(site.stranger, f"other-{number}", X_Forwarded_For="198.51.100.8")
        good = "token-of-operator"
        assert site.sign_in(site.client(), good, X_Forwarded_For="198.51.100.8, 198.51.100.7") == 429
        assert site.sign_in(site.client(), good, X_Forwarded_For="198.51.100.7, 198.51.100.8") == 303
        assert site.sign_in(site.stranger, "token-of-somebody") == 429
        lines = _lines(site, 33)
    assert {each["address"] for each in lines if each["route"] == "/sign-in"} == {
        "198.51.100.7",
        "198.51.100.8",
        STRANGER_ADDRESS,
    }


def test_the_audit_log_has_the_address_of_who_is_refused(site: Site) -> None:
    site.stranger.ask(LIST)
    site.stranger.ask("/v1/fleet", bearer(DEVELOPER))
    site.stranger.ask(LIST, {"Host": "elsewhere.example"})
    site.sign_in(site.stranger, "invented")
    lines = [each for each in _lines(site, 4) if each["route"] != "/readyz"]
    assert [(each["address"], each["user"], each["status"]) for each in lines] == [
        (STRANGER_ADDRESS, "", 401),
        (STRANGER_ADDRESS, DEVELOPER, 403),
        (STRANGER_ADDRESS, "", 421),
        (STRANGER_ADDRESS, "", 401),
    ]


def _lines(site: Site, number: int) -> list[dict[str, object]]:
    """Return the lines of the audit log when there are some at least."""

    def read() -> list[dict[str, object]]:
        found = [json.loads(line) for line in site.audit.read_text().splitlines()]
        return found if len(found) >= number else []

    return wait_for(read, "lines of the audit log")


def test_the_metrics_answer_while_others_hold_every_other_connection(site: Site) -> None:
    with site.metrics.idle(100):
        assert [site.metrics.ask("/metrics") for _ in range(3)] == [200] * 3


def test_requests_of_one_address_leave_the_rate_of_others(site: Site) -> None:
    with site.stranger.idle(1) as [link]:
        link.sendall(f"GET {LIST} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 1000)
        wait_for(lambda: b"HTTP/1.1 429 " in link.recv(2**16), "a refused request")
        assert site.client().ask(LIST, bearer(OPERATOR)) == 200
