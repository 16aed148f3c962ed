"""Who somebody is and what they may read: a fresh yes of the API server, or none."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import (
    LONGEST_TOKEN,
    Reviews,
    ReviewUnavailableError,
    TokenRefusedError,
    TooManyRefusedError,
    User,
)
from karmada_scheduler.api_error import ApiError
from tests.unit.client.fakes import FakeConnection

AUDIENCE = "karmada-pyscheduler-web"
PEER = "192.0.2.1"
LIST = Permission("list", "work.karmada.io", "resourcebindings")
DEV = User("dev", "1", ("shop",), (("scopes", ("a",)),))
YES: dict[str, Any] = {
    "status": {
        "authenticated": True,
        "audiences": [AUDIENCE],
        "user": {"username": "dev", "uid": "1", "groups": ["shop"], "extra": {"scopes": ["a"]}},
    }
}


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Setup:
    def __init__(self, answer: Any = YES) -> None:
        self.connection = FakeConnection(answer)
        self.time = Time()
        self.reviews = Reviews(self.connection, audiences=[AUDIENCE], kept_seconds=30.0, clock=self.time)

    @property
    def asked(self) -> int:
        return len(self.connection.requests)


def token_of(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2ln"


async def test_the_holder_of_a_token_has_name_uid_groups_and_further_attributes() -> None:
    setup = Setup()

    assert await setup.reviews.user_of("t", PEER) == DEV

    assert setup.connection.requests[0].body == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "t", "audiences": [AUDIENCE]},
    }


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": False, "user": {"username": "dev"}},
        {"authenticated": "true", "user": {"username": "dev"}, "audiences": [AUDIENCE]},
        {"authenticated": True, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": ""}, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": "dev", "groups": "all"}, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": "d" * 70_000}, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": "dev"}, "audiences": ["another"]},
        {"authenticated": True, "user": {"username": "dev"}},
    ],
    ids=["empty", "no", "text", "nobody", "no name", "groups", "huge", "another audience", "no audience"],
)
async def test_a_response_that_is_no_full_yes_is_a_no(status: dict[str, object]) -> None:
    setup = Setup({"status": status})

    with pytest.raises(TokenRefusedError):
        await setup.reviews.user_of("t", PEER)


@pytest.mark.parametrize(
    ("token", "hint"),
    [
        ("abc", "This is no token of the Karmada API server. The API server says: invalid bearer token."),
        (token_of(exp=1_700_000_000), "The token has expired at 2023-11-14 22:13:20Z."),
        (
            token_of(aud=["api"], sub="system:serviceaccount:shop:dev"),
            f"The token is for api; expected {AUDIENCE}.",
        ),
        (
            token_of(aud="client", sub="alice"),
            "A token of an identity provider needs --oidc-issuer-url there",
        ),
        (token_of(aud=AUDIENCE), "Is it one of the cluster that hosts Karmada"),
        ("a.!.c", "This is no token of the Karmada API server."),
        (token_of(exp=10**400, aud=[AUDIENCE]), "This is no token"),
    ],
    ids=["text", "expired", "audience", "issuer", "plane", "base64", "huge number"],
)
async def test_a_refusal_says_what_to_do(token: str, hint: str) -> None:
    setup = Setup({"status": {"error": "invalid bearer token"}})

    with pytest.raises(TokenRefusedError) as refused:
        await setup.reviews.user_of(token, PEER)

    assert hint in str(refused.value)


@pytest.mark.parametrize("token", ["", "x" * (LONGEST_TOKEN + 1), "a\nb", "a\0b", "\u00e4"])
async def test_what_can_be_no_token_is_not_sent(token: str) -> None:
    setup = Setup()

    with pytest.raises(TokenRefusedError):
        await setup.reviews.user_of(token, PEER)

    assert setup.asked == 0


async def test_a_yes_counts_for_the_time_that_is_set_and_a_no_for_ten_seconds() -> None:
    setup = Setup()
    await setup.reviews.user_of("t", PEER)
    setup.time.now += 29.9
    await setup.reviews.user_of("t", PEER)
    assert setup.asked == 1

    setup.time.now += 0.2
    setup.connection.answer = {"status": {}}
    with pytest.raises(TokenRefusedError):
        await setup.reviews.user_of("t", PEER)
    setup.time.now += 9.9
    with pytest.raises(TokenRefusedError):
        await setup.reviews.user_of("t", PEER)
    assert setup.asked == 2

    setup.time.now += 0.2
    setup.connection.answer = YES
    assert await setup.reviews.user_of("t", PEER) == DEV


async def test_an_answer_is_as_old_as_its_question() -> None:
    setup = Setup()
    request = setup.connection.request

    async def slow(*given: Any, **named: Any) -> Any:
        setup.time.now += 2.5
        return await request(*given, **named)

    setup.connection.request = slow  # type: ignore[method-assign]
    for asked in (1, 2):
        await setup.reviews.user_of("t", PEER)
        assert setup.asked == asked
        setup.time.now += 27.5


@pytest.mark.parametrize("code", [0, 401, 403, 500])
async def test_without_a_fresh_answer_an_old_yes_does_not_count(code: int) -> None:
    setup = Setup()
    await setup.reviews.user_of("t", PEER)
    setup.time.now += 31
    setup.connection.answer = ApiError("away", code=code)

    with pytest.raises(ReviewUnavailableError, match="away"):
        await setup.reviews.user_of("t", PEER)

    setup.connection.answer = YES
    assert await setup.reviews.user_of("t", PEER) == DEV  # an error is not kept


async def test_questions_for_the_same_answer_are_asked_once_and_survive_who_asked_first() -> None:
    setup = Setup()
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(*_: object, **__: object) -> dict[str, Any]:
        arrived.set()
        await go_on.wait()
        return YES

    setup.connection.request = slow  # type: ignore[method-assign]
    first = asyncio.create_task(setup.reviews.user_of("t", PEER))
    others = [asyncio.create_task(setup.reviews.user_of("t", PEER)) for _ in range(5)]
    await arrived.wait()
    first.cancel()
    go_on.set()

    assert await asyncio.gather(*others) == [DEV] * 5


class Guesser:
    """Somebody who sends invented tokens to reviews that know the token ``good``."""

    def __init__(self) -> None:
        self.setup = Setup()
        self.noted: list[tuple[str, str]] = []
        self.setup.reviews = Reviews(
            self.setup.connection,
            kept_seconds=30.0,
            clock=self.setup.time,
            on_review=lambda _, result, source: self.noted.append((result, source)),
        )
        self.setup.connection.request = self._answer  # type: ignore[assignment, method-assign]
        self.reviewed: list[str] = []

    async def _answer(self, *_: object, body: Any, **__: object) -> dict[str, Any]:
        self.reviewed.append(body["spec"]["token"])
        await asyncio.sleep(0)
        return YES if body["spec"]["token"].startswith("good") else {"status": {}}

    async def ask(self, token: str, address: str | None = PEER) -> str:
        try:
            await self.setup.reviews.user_of(token, address)
        except (TokenRefusedError, TooManyRefusedError) as error:
            return type(error).__name__
        return "yes"

    async def guess(self, number: int, address: str | None = PEER) -> list[str]:
        return [
            await self.ask(f"invented-{address}-{each}-{self.setup.time.now}", address)
            for each in range(number)
        ]


async def test_after_some_refused_tokens_of_an_address_the_api_server_is_not_asked_about_its_unknown_ones() -> (
    None
):
    guesser = Guesser()
    assert await guesser.ask("good") == "yes"

    assert await guesser.guess(300) == ["TokenRefusedError"] * 10 + ["TooManyRefusedError"] * 290
    assert len(guesser.reviewed) == 11
    assert guesser.noted[-1] == ("failure", "limited")

    assert await guesser.ask("good-unknown") == "TooManyRefusedError"
    assert await guesser.ask("good-unknown", "192.0.2.2") == "yes"
    guesser.setup.time.now += 31
    assert await guesser.ask("good") == "yes"  # it was known, and is asked about again
    assert guesser.reviewed[-1] == "good"
    assert await guesser.guess(300) == ["TokenRefusedError"] * 5 + ["TooManyRefusedError"] * 295


async def test_a_token_that_was_good_and_is_no_more_is_a_guess_from_then_on() -> None:
    guesser = Guesser()
    assert await guesser.ask("good") == "yes"
    await guesser.guess(11)
    guesser.setup.time.now += 31
    guesser.setup.connection.request = FakeConnection({"status": {}}).request  # type: ignore[method-assign]
    await guesser.guess(11)
    assert await guesser.ask("good") == "TokenRefusedError"
    guesser.setup.time.now += 11
    await guesser.guess(11)
    assert await guesser.ask("good") == "TooManyRefusedError"


async def test_many_addresses_have_a_bound_together_that_sealed_and_known_tokens_pass() -> None:
    guesser = Guesser()
    assert await guesser.ask("good") == "yes"
    found = [each for network in range(40) for each in await guesser.guess(10, f"2001:db8:0:{network:x}::1")]
    assert found == ["TokenRefusedError"] * 300 + ["TooManyRefusedError"] * 100
    assert await guesser.ask("good-unknown", "192.0.2.9") == "TooManyRefusedError"
    assert await guesser.ask("good-sealed", None) == "yes"
    guesser.setup.time.now += 1
    assert await guesser.ask("good-unknown", "192.0.2.9") == "yes"


async def test_tokens_of_one_ipv6_network_count_together() -> None:
    guesser = Guesser()
    found = [await guesser.ask(f"invented-{number}", f"2001:db8::{number:x}") for number in range(20)]
    assert found == ["TokenRefusedError"] * 10 + ["TooManyRefusedError"] * 10


async def test_guesses_at_once_are_bounded_by_the_reviews_at_once() -> None:
    guesser = Guesser()
    await asyncio.gather(*(guesser.ask(f"invented-{number}") for number in range(300)))
    assert len(guesser.reviewed) <= 32 + 10


async def test_the_whole_user_is_part_of_the_question_what_they_may_read() -> None:
    setup = Setup({"status": {"allowed": True}})

    assert await setup.reviews.is_allowed(DEV, LIST, namespace="shop")

    assert setup.connection.requests[0].body["spec"] == {
        "user": "dev",
        "uid": "1",
        "groups": ["shop"],
        "extra": {"scopes": ["a"]},
        "resourceAttributes": {
            "verb": "list",
            "group": "work.karmada.io",
            "resource": "resourcebindings",
            "namespace": "shop",
        },
    }
    await setup.reviews.is_allowed(User("dev", "2", ("shop",)), LIST, namespace="shop")
    await setup.reviews.is_allowed(DEV, LIST)
    await setup.reviews.is_allowed(DEV, LIST)
    assert setup.asked == 3


@pytest.mark.parametrize(
    "status", [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}]
)
async def test_what_is_not_allowed_in_so_many_words_is_forbidden(status: dict[str, object]) -> None:
    assert not await Setup({"status": status}).reviews.is_allowed(DEV, LIST)
