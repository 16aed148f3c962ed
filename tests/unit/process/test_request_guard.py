"""Requests of pages of other sites are refused; those of people, programs and the page itself are not."""

from dataclasses import dataclass

import pytest

from karmada_scheduler.http_server.request_guard import (
    MAX_BODY,
    Access,
    RequestGuard,
    RequestLimits,
    is_cross_site,
)


@dataclass
class Somebody:
    name: str


OPENED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", {}, False),
        ("POST", {}, False),
        ("GET", {"Sec-Fetch-Site": "none", **OPENED}, False),
        ("GET", {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"}, False),
        ("POST", {"Sec-Fetch-Site": "same-origin", **OPENED, "Origin": "null"}, False),
        ("POST", {"Sec-Fetch-Site": "same-origin", "Origin": "null", "Cookie": "a=b"}, True),
        ("POST", {"Cookie": "a=b"}, True),
        ("POST", {"Origin": "http://["}, True),
        ("GET", {"Cookie": "a=b"}, False),
        ("GET", {"Sec-Fetch-Site": "cross-site", **OPENED}, False),
        ("GET", {"Sec-Fetch-Site": "same-site", **OPENED}, False),
        ("POST", {"Sec-Fetch-Site": "cross-site", **OPENED}, True),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, True),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, True),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, True),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, True),
        ("GET", {"Sec-Fetch-Site": "nonsense"}, True),
        ("POST", {"Origin": "http://localhost:10354", "Host": "localhost:10354"}, False),
        ("POST", {"Origin": "http://localhost:8080", "Host": "localhost:10354"}, True),
        ("POST", {"Origin": "http://evil.example", "Host": "localhost:10354"}, True),
        ("POST", {"Origin": "null", "Host": "localhost:10354"}, True),
    ],
)  # fmt: skip
def test_a_request_of_another_site_is_known_by_what_browsers_say(
    method: str, headers: dict[str, str], expected: bool
) -> None:
    assert is_cross_site(method, headers) is expected


def test_the_head_of_a_request_decides_in_the_order_of_name_site_size_and_rate() -> None:
    time = [0.0]
    guard = RequestGuard(Access(flag="--flag"), RequestLimits(rate=1, burst=2), lambda: time[0])

    def status(method: str = "GET", *, has_body: bool = False, length: int = 0, **headers: str) -> int:
        found = guard.refusal(
            method, {"Host": "localhost", **headers}, has_body=has_body, content_length=length
        )
        return 200 if found is None else found.status

    assert status(Host="evil.example", has_body=True, length=2**40) == 421
    assert status(Origin="http://evil.example", has_body=True, length=2**40) == 403
    assert status(has_body=True, length=1) == 413
    assert status("POST", has_body=True, length=MAX_BODY + 1) == 413
    assert [status("POST", has_body=True, length=MAX_BODY), status(), status()] == [200, 200, 429]
    time[0] = 1.0
    assert [status(), status()] == [200, 429]


def test_any_name_is_answered_where_readers_have_tokens() -> None:
    guard = RequestGuard(Access(hosts=None), RequestLimits(), lambda: 0.0)

    def status(**headers: str) -> int:
        found = guard.refusal("GET", headers, has_body=False, content_length=0)
        return 200 if found is None else found.status

    assert [status(Host="10.1.2.3:8080"), status()] == [200, 200]
    assert status(Host="10.1.2.3:8080", Origin="http://evil.example") == 403


def test_one_user_s_requests_do_not_use_up_those_of_others() -> None:
    time = [0.0]
    guard = RequestGuard(Access(), RequestLimits(user_rate=1, user_burst=2), lambda: time[0])

    def status(name: str) -> int:
        found = guard.refusal_of_user(Somebody(name))
        return 200 if found is None else found.status

    assert [status("hog") for _ in range(4)] == [200, 200, 429, 429]
    assert [status("other") for _ in range(3)] == [200, 200, 429]
    time[0] = 1.0
    assert [status("hog"), status("hog")] == [200, 429]


def test_the_rates_of_no_more_than_ten_thousand_users_are_kept() -> None:
    guard = RequestGuard(Access(), RequestLimits(user_rate=0, user_burst=1), lambda: 0.0)
    for number in range(10_001):
        assert guard.refusal_of_user(Somebody(str(number))) is None
    assert guard.refusal_of_user(Somebody("10000")) is not None  # known
    assert guard.refusal_of_user(Somebody("0")) is None  # forgotten
