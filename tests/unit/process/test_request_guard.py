"""Requests of pages of other sites are refused, and those above a bound; those of people, programs and the page itself are not."""

from contextlib import ExitStack

import pytest

from karmada_pyscheduler.http_server.request_guard import (
    MAX_BODY,
    Access,
    RequestGuard,
    RequestLimits,
    is_cross_site,
)

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
    guard = RequestGuard(Access(flag="--flag"), RequestLimits(rate=2, burst=4), lambda: time[0])

    def status(method: str = "GET", *, has_body: bool = False, length: int = 0, **headers: str) -> int:
        found = guard.refusal(
            method,
            {"Host": "localhost", **headers},
            "192.0.2.1",
            has_body=has_body,
            content_length=length,
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
        found = guard.refusal("GET", headers, "192.0.2.1", has_body=False, content_length=0)
        return 200 if found is None else found.status

    assert [status(Host="10.1.2.3:8080"), status()] == [200, 200]
    assert status(Host="10.1.2.3:8080", Origin="http://evil.example") == 403


def test_the_bounds_of_one_come_before_those_of_all() -> None:
    time = [0.0]
    limits = RequestLimits(rate=2, burst=8, user_rate=1, user_burst=2)
    guard = RequestGuard(Access(), limits, lambda: time[0])

    def of_user(name: str) -> int:
        found = guard.refusal_of(name)
        return 200 if found is None else found.status

    def of_address(address: str) -> int:
        found = guard.refusal("GET", {"Host": "localhost"}, address, has_body=False, content_length=0)
        return 200 if found is None else found.status

    assert [of_user("hog") for _ in range(20)] == [200] * 2 + [429] * 18
    assert [of_user("other") for _ in range(3)] == [200, 200, 429]
    assert [of_address("192.0.2.1") for _ in range(20)] == [200] * 4 + [429] * 16
    assert [of_address("192.0.2.2") for _ in range(5)] == [200] * 4 + [429]
    assert [of_user("") for _ in range(20)] == [200] * 8 + [429] * 12
    assert of_user("third") == 200  # nobody's requests are not counted as users'
    time[0] = 1.0
    assert [of_user("hog"), of_user("hog")] == [200, 429]


def test_an_ipv6_network_counts_as_one_address() -> None:
    guard = RequestGuard(Access(), RequestLimits(rate=0, burst=4), lambda: 0.0)
    found = [
        guard.refusal("GET", {"Host": "localhost"}, f"2001:db8::{number}", has_body=False, content_length=0)
        for number in range(3)
    ]
    assert [each is None for each in found] == [True, True, False]


def test_streams_are_bounded_for_a_user_an_address_and_in_all() -> None:
    guard = RequestGuard(Access(), RequestLimits(streams=8, user_streams=2), lambda: 0.0)
    with ExitStack() as stack:

        def opened(user: str, address: str) -> str:
            refused = stack.enter_context(guard.stream(user, address))
            return "" if refused is None else refused.text

        assert [opened("hog", f"192.0.2.{number}") for number in range(3)] == [
            "",
            "",
            "too many event streams of hog",
        ]
        assert [opened(f"{number}", "192.0.2.9") for number in range(5)] == [
            *[""] * 4,
            "too many event streams of 192.0.2.9",
        ]
        assert [opened("", f"192.0.2.{number}") for number in (10, 11, 12)] == [
            "",
            "",
            "too many event streams",
        ]
    with guard.stream("hog", "192.0.2.1") as refused:
        assert refused is None


def test_streams_of_an_ipv6_network_are_bounded_together() -> None:
    guard = RequestGuard(Access(), RequestLimits(streams=4), lambda: 0.0)
    addresses = ("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1")
    with ExitStack() as stack:
        found = [stack.enter_context(guard.stream("", address)) for address in addresses]
    assert [refused is None for refused in found] == [True, True, False, True]
