"""People sign in with a token, which their browser keeps in sealed cookies."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from karmada_advisor.web.authorization import Authorization, NamespaceHints
from karmada_advisor.web.handlers import local_path
from karmada_advisor.web.sessions import LONGEST_TOKEN, SessionKeysError, Sessions, ended
from karmada_pyscheduler.client.reviews import Reviews
from karmada_pyscheduler.http_server.request_guard import AnsweredRequest
from karmada_scheduler.api_error import ApiError
from tests.unit.web.site import Answer, Site
from tests.unit.web.test_authorization import AUDIENCE, Plane

HOUR = 3600
ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict"


class Keys:
    """A file of keys."""

    def __init__(self, folder: Path, count: int = 1) -> None:
        self.path = folder / "session-keys"
        self.keys = [Fernet.generate_key() for _ in range(count)]
        self.write()

    def write(self) -> None:
        self.path.write_bytes(b"\n".join(self.keys) + b"\n")

    def sessions(self, clock: Callable[[], float] = lambda: 0.0) -> Sessions:
        return Sessions(self.path, seconds=HOUR, clock=clock)


def cookie_of(set_cookies: tuple[str, ...]) -> str:
    """Return the Cookie header of a browser that was sent these, apart from those that it deletes."""
    return "; ".join(each.partition(";")[0] for each in set_cookies if "Max-Age=0" not in each)


@pytest.mark.parametrize("length", [1, 600, LONGEST_TOKEN])
def test_a_sealed_token_is_opened_again_and_fits_into_cookies(tmp_path: Path, length: int) -> None:
    sessions, token = Keys(tmp_path).sessions(), "x" * length

    cookies = sessions.sealed(token)

    assert sessions.opened(f"theme=dark; {cookie_of(cookies)}") == token
    assert len(cookies) == 2
    assert all(each.startswith("__Host-pyscheduler-") and each.endswith(ATTRIBUTES) for each in cookies)
    assert max(map(len, cookies)) < 4096
    assert len(cookie_of(cookies)) < 8000
    assert "x" * 12 not in "".join(cookies)


def test_no_session_and_one_that_has_ended_differ(tmp_path: Path) -> None:
    now = 0.0
    sessions = Keys(tmp_path).sessions(lambda: now)
    cookie = cookie_of(sessions.sealed("token"))

    assert sessions.opened("") is None
    assert sessions.opened("theme=dark") is None
    assert sessions.opened(cookie[:-4] + "AAAA") == ""
    assert sessions.opened("__Host-pyscheduler-1=") is None
    assert sessions.opened("__Host-pyscheduler-0=\xff\n") == ""
    now = HOUR + 1.0
    assert sessions.opened(cookie) == ""


def test_cookies_of_two_people_do_not_make_a_third_session(tmp_path: Path) -> None:
    sessions = Keys(tmp_path).sessions()
    mine, other = (cookie_of(sessions.sealed(each * 4000)).split("; ") for each in "ab")

    assert sessions.opened(f"{mine[0]}; {other[1]}") == ""


def test_a_key_is_replaced_without_signing_people_out_and_removed_to_do_so(tmp_path: Path) -> None:
    now, keys = 0.0, Keys(tmp_path)
    sessions = keys.sessions(lambda: now)
    before = cookie_of(sessions.sealed("token"))

    keys.keys.insert(0, Fernet.generate_key())
    keys.write()
    now = 11.0
    assert sessions.opened(before) == "token"
    after = cookie_of(sessions.sealed("token"))

    del keys.keys[1]
    keys.write()
    now = 22.0
    assert sessions.opened(before) == ""
    assert sessions.opened(after) == "token"

    keys.keys[0] = Fernet.generate_key()
    keys.write()
    now = 0.0  # the clock is set back
    assert sessions.opened(after) == ""


@pytest.mark.parametrize("text", ["", "\n", "too short", f"{'A' * 43}=\nnot a key"])
def test_a_file_without_usable_keys_is_refused_without_a_word_of_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)

    with pytest.raises(SessionKeysError, match="openssl rand -base64 32") as refused:
        Sessions(path, seconds=HOUR)
    assert "short" not in str(refused.value)
    assert "A" * 10 not in str(refused.value)


def test_keys_that_cannot_be_read_any_more_leave_those_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now, keys = 0.0, Keys(tmp_path)
    sessions = keys.sessions(lambda: now)
    cookie = cookie_of(sessions.sealed("token"))

    keys.path.write_text("broken")
    with caplog.at_level(logging.ERROR):
        for now in (11.0, 22.0):  # noqa: B007 (read by the clock)
            assert sessions.opened(cookie) == "token"

    assert caplog.text.count("stay those before") == 1


def test_the_command_in_the_flag_makes_a_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(base64.b64encode(os.urandom(32)).replace(b"+", b"-").replace(b"/", b"_"))

    assert Sessions(path, seconds=HOUR).opened("") is None


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/b/shop/web?a=b", "/b/shop/web?a=b"),
        ("", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/a\r\nSet-Cookie: b", "/"),
        ("javascript:1", "/"),
    ],
)
def test_after_signing_in_people_go_to_a_path_of_the_page(given: str, path: str) -> None:
    assert local_path(given) == path


class SignIn:
    """A page on which the holder of the token ``good`` signs in."""

    def __init__(self, folder: Path, plane: Plane | None = None, *, keys: Keys | None = None) -> None:
        self.keys = keys or Keys(folder)
        self.plane = plane or Plane(forbidden="clusters", namespaces={"shop"})
        self.answered: list[AnsweredRequest] = []
        authorization = Authorization(
            Reviews(self.plane, audiences=[AUDIENCE]),
            NamespaceHints(self.plane.role_bindings),
            audience=AUDIENCE,
            sessions=self.keys.sessions(lambda: 100.0),
        )
        self.site = Site(folder, sessions=authorization, on_response=self.answered.append)

    async def post(self, token: str, to: str = "/bindings?namespace=shop", **headers: str) -> Answer:
        return await self.site.get("/sign-in", "POST", form={"token": token, "to": to}, **headers)


async def test_who_signs_in_goes_on_to_where_they_wanted_and_is_known_there(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site as site:
        first = await site.get("/bindings?namespace=shop")
        signed_in = await page.post("good", first.page.attributes("input", "value")[0])
        cookie = cookie_of(signed_in.cookies)
        listed = await site.get("/bindings?namespace=shop", Cookie=cookie)
        other = await site.get("/bindings?namespace=pay", Cookie=cookie)
        out = await site.get("/sign-out", "POST", form={})

    assert (first.status, "Sign in" in first.page.text) == (401, True)
    assert (signed_in.status, signed_in.headers["Location"]) == (303, "/bindings?namespace=shop")
    assert (listed.status, other.status) == (200, 403)
    assert "Sign out" in listed.page.text
    assert (out.cookies, out.headers["Clear-Site-Data"]) == (ended(), '"cache"')


async def test_a_token_is_in_no_page_and_nothing_that_is_noted(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site as site:
        shown = [await page.post("secret-token"), await page.post("good", "/?good")]
        shown.append(await site.get("/", Cookie=cookie_of(shown[1].cookies)))

    assert [each.status for each in shown] == [401, 303, 200]
    assert "secret-token" not in "".join(each.text + str(each.headers) for each in shown)
    assert "Not signed in" in shown[0].page.text
    assert "secret" not in str(page.answered)
    assert "good" not in str(page.answered)


async def test_a_header_counts_before_a_session(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site as site:
        cookie = cookie_of((await page.post("good")).cookies)
        answer = await site.get("/", Cookie=cookie, Authorization="Bearer bad")

    assert answer.status == 401


async def test_a_first_click_on_another_site_reloads_once_because_cookies_are_strict(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    click = partial(page.site.get, "/b/shop/checkout", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")
    async with page.site:
        first, again = await click(Sec_Fetch_Site="cross-site"), await click(Sec_Fetch_Site="same-origin")

    assert first.headers["Refresh"] == "0"
    assert "checkout" not in first.text
    assert "Refresh" not in again.headers
    assert again.page.attributes("form", "action")[-1] == "/sign-in"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "same-site", "Origin": "https://other.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Cookie": "a=b"},
        {"Cookie": "a=b", "Origin": "null", "Sec_Fetch_Site": "same-origin"},
    ],
)
async def test_a_form_of_another_site_signs_nobody_in(tmp_path: Path, headers: dict[str, str]) -> None:
    page = SignIn(tmp_path)
    async with page.site:
        answer = await page.post("good", **headers)

    assert (answer.status, answer.cookies, page.plane.asked) == (403, (), [])


async def test_attempts_that_fail_are_bounded_and_the_api_server_is_asked_no_more(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site:
        answers = [await page.post(f"bad-{number}") for number in range(12)]
        good = await page.post("good")

    assert [each.status for each in answers] == [401] * 10 + [429] * 2
    assert good.status == 429


async def test_who_is_signed_in_goes_on_where_others_guess_and_so_does_another_page(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site as site:
        cookie = cookie_of((await page.post("good")).cookies)
        for number in range(12):
            await site.get("/", Authorization=f"Bearer bad-{number}")
        assert (await site.get("/", Cookie=cookie)).status == 200
    fresh = SignIn(tmp_path, keys=page.keys)  # after a restart, or the other replica: it knows no token
    async with fresh.site as site:
        found = [await site.get("/", Authorization=f"Bearer bad-{number}") for number in range(12)]
        assert [each.status for each in found] == [401] * 10 + [429] * 2
        assert (await site.get("/", Cookie=cookie)).status == 200


async def test_a_token_that_is_too_long_for_cookies_needs_a_proxy(tmp_path: Path) -> None:
    page = SignIn(tmp_path)
    async with page.site:
        answer = await page.post("x" * (LONGEST_TOKEN + 1))

    assert answer.status == 401
    assert "use a proxy" in answer.page.text


async def test_while_the_api_server_is_away_nobody_signs_in(tmp_path: Path) -> None:
    page = SignIn(tmp_path, Plane(failure=ApiError("connection refused")))
    async with page.site:
        answer = await page.post("good")

    assert (answer.status, answer.cookies) == (503, ())


async def test_without_a_session_only_the_sign_in_view_and_the_files_of_the_page_are_open(
    tmp_path: Path,
) -> None:
    page = SignIn(tmp_path)
    async with page.site as site:
        found = {
            route: (
                await site.get(route.format(namespace="shop", name="a", kind="cluster", cluster="eu-1"))
            ).status
            for route in site.routes
        }

    opened = {route for route, status in found.items() if status != 401}
    assert {each for each in opened if "static" not in each} == {
        "/sign-in",
        "/favicon.ico",
    }
