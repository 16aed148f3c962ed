"""Metrics of the page: reviews, sessions, and answers that wait or were ended. No user is in them."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from karmada_advisor.cli.web.access import end_of
from karmada_advisor.web.authorization import Authorization
from karmada_advisor.web.computing import Computer
from karmada_advisor.web.jobs import BusyError, TooLongError
from karmada_advisor.web.metrics import WebMetrics
from karmada_advisor.web.namespaces import NamespaceHints
from karmada_advisor.web.sessions import Sessions
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.reviews import Reviews
from tests.unit.web.site import Site
from tests.unit.web.test_authorization import AUDIENCE, Plane
from tests.unit.web.test_computing import during, spin
from tests.unit.web.test_sessions import HOUR, Keys, cookie_of
from tools.controlplane.pki import Authority


def samples(metrics: WebMetrics, name: str) -> dict[str, float]:
    """Return the samples of a family that are not 0, by the values of their labels."""
    found = {}
    for line in metrics.text({}).decode().splitlines():
        if match := re.fullmatch(rf"karmada_scheduler_web_{name}(?:\{{(.*)\}})? (\S+)", line):
            found["/".join(re.findall(r'="([^"]*)"', match[1] or ""))] = float(match[2])
    return {labels: value for labels, value in found.items() if value}


class Counted:
    """A page on which people sign in, whose reviews and sessions are counted."""

    def __init__(self, folder: Path) -> None:
        self.metrics, self.plane, self.keys = WebMetrics(), Plane(namespaces={"shop"}), Keys(folder)
        self.now = 100.0
        sessions = Sessions(
            self.keys.path,
            seconds=HOUR,
            clock=lambda: self.now,
            on_refused=self.metrics.session_refused,
        )
        self.authorization = Authorization(
            Reviews(self.plane, audiences=[AUDIENCE], on_review=self.metrics.reviewed),
            NamespaceHints(self.plane.role_bindings),
            audience=AUDIENCE,
            sessions=sessions,
        )
        self.site = Site(folder, sessions=self.authorization, on_response=self.metrics.answered)

    async def look(self, cookies: tuple[str, ...]) -> int:
        return (await self.site.get("/v1/namespaces", Cookie=cookie_of(cookies))).status


async def test_reviews_are_counted_by_result_and_by_whether_they_were_asked_for_kept_or_failed() -> None:
    metrics, plane = WebMetrics(), Plane(forbidden="events")
    reviews = Reviews(plane, audiences=[AUDIENCE], on_review=metrics.reviewed)
    page = Authorization(reviews, NamespaceHints(plane.role_bindings), audience=AUDIENCE)
    good, bad = ({"Authorization": f"Bearer {token}"} for token in ("good", "bad"))

    await asyncio.gather(page.viewer(good), page.viewer(good))
    await page.viewer(bad)
    plane.failure = ApiError("away")
    await page.viewer({"Authorization": "Bearer another"})

    asked = len(plane.asked)
    assert samples(metrics, "reviews_total") == {
        "TokenReview/success/asked": 1,
        "TokenReview/success/kept": 1,
        "TokenReview/failure/asked": 1,
        "TokenReview/error/failed": 1,
        "SubjectAccessReview/allowed/asked": asked - 1,
        "SubjectAccessReview/allowed/kept": asked - 1,
        "SubjectAccessReview/denied/asked": 1,
        "SubjectAccessReview/denied/kept": 1,
    }


async def test_attempts_to_sign_in_are_counted_by_result_and_readers_of_the_form_are_not(
    tmp_path: Path,
) -> None:
    page = Counted(tmp_path)
    async with page.site as site:
        await site.get("/sign-in")
        for token in ("good", *("bad",) * 11):
            await site.get("/sign-in", "POST", form={"token": token})
        await site.get("/sign-in", "POST", form={"token": "good"}, Origin="https://elsewhere.example")

    assert samples(page.metrics, "sign_ins_total") == {"success": 1, "failure": 10, "limited": 1}


async def test_sessions_that_are_refused_are_counted_by_reason(tmp_path: Path) -> None:
    page = Counted(tmp_path)
    async with page.site as site:
        signed_in = (await site.get("/sign-in", "POST", form={"token": "good"})).cookies
        of_another = page.authorization._sessions
        assert of_another is not None
        deleted = of_another.sealed("bad")
        assert [await page.look(each) for each in (signed_in, deleted)] == [200, 401]
        page.now += HOUR + 1
        assert await page.look(signed_in) == 401
        page.keys.keys = [Fernet.generate_key()]
        page.keys.write()
        page.now += 60
        assert await page.look(signed_in) == 401

    found = samples(page.metrics, "refused_sessions_total")
    assert found == {"expired": 1, "unreadable": 1, "token_refused": 1}


async def test_no_metric_names_who_asks_or_what_they_ask_for(tmp_path: Path) -> None:
    page = Counted(tmp_path)
    async with page.site as site:
        cookies = (await site.get("/sign-in", "POST", form={"token": "good"})).cookies
        for path in ("/n/shop", "/b/shop/checkout-deployment", "/n/bakery", "/dev", "/v1/quotas/shop"):
            await site.get(path, Cookie=cookie_of(cookies))

    text = page.metrics.text({"Cluster": 1.5}).decode()
    assert 'route="/n/{namespace}"' in text
    for name in ("dev", "good", "shop", "checkout", "bakery"):
        assert not re.search(rf"\b{name}\b", text), name


def counting(metrics: WebMetrics, **named: Any) -> Computer:
    computer = Computer(on_ended=metrics.answer_ended, on_process=metrics.process_begun, **named)
    metrics.expose_pending(lambda: computer.waiting)
    return computer


def test_answers_that_are_ended_by_a_limit_are_counted_once_with_the_processes_that_have_begun() -> None:
    metrics = WebMetrics()
    computer = counting(metrics, share=0.05, cpu_seconds=0.2)

    async def ask() -> None:
        with pytest.raises(TooLongError):
            await computer.answer("key", spin)
        assert await computer.answer("other", lambda: 5) == 5

    during(computer, ask)

    assert samples(metrics, "ended_answers_total") == {"cpu": 1}
    assert samples(metrics, "answer_processes_total") == {"": 1}


def test_an_answer_that_is_ended_in_the_main_thread_or_by_its_memory_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = WebMetrics()
    computer = counting(metrics, cpu_seconds=0.1)
    monkeypatch.setattr("karmada_advisor.web.forked_job.MAX_MIB", 0)

    def grow() -> None:
        kept = [bytes(range(256)) * 4096 for _ in range(64)]
        threading.Event().wait(20)
        kept.clear()

    async def ask() -> None:
        with pytest.raises(TooLongError, match="CPU time"):
            await computer.answer("key", spin)
        with pytest.raises(TooLongError, match="memory"):
            await computer.answer("plan", grow, is_plan=True)

    during(computer, ask)

    assert samples(metrics, "ended_answers_total") == {"cpu": 1, "memory": 1}


def test_an_answer_for_which_nobody_waits_any_more_is_counted_wherever_it_is_computed() -> None:
    metrics = WebMetrics()
    computer = counting(metrics, seconds=0.3)

    async def until(count: int) -> None:
        async with asyncio.timeout(10):
            while samples(metrics, "ended_answers_total").get("abandoned", 0) < count:
                await asyncio.sleep(0.02)

    async def ask() -> None:
        for number, is_plan in enumerate((False, True), 1):
            with pytest.raises(BusyError):
                await computer.answer(number, spin, is_plan=is_plan)
            await until(number)

    during(computer, ask)

    assert samples(metrics, "ended_answers_total") == {"abandoned": 2}
    assert samples(metrics, "answer_processes_total") == {"": 1}


def test_answers_that_wait_are_counted_and_work_in_idle_moments_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("karmada_advisor.web.computing._IDLE_CPU_SECONDS", 0.1)
    metrics = WebMetrics()
    computer = counting(metrics)
    begun, go_on = threading.Event(), threading.Event()
    waiting: list[Any] = []

    def first() -> int:
        begun.set()
        go_on.wait(10)
        return 1

    def idle() -> bool:
        spin()
        return False

    async def ask() -> None:
        asked = [asyncio.create_task(computer.answer("first", first, requester="a"))]
        await asyncio.to_thread(begun.wait)
        asked += [
            asyncio.create_task(computer.answer(number, lambda: 2, requester=str(number)))
            for number in range(3)
        ]
        await asyncio.sleep(0)
        waiting.append(samples(metrics, "pending_answers"))
        go_on.set()
        await asyncio.gather(*asked)

    during(computer, ask, idle=idle)

    assert waiting == [{"": 3}]
    assert samples(metrics, "pending_answers") == {}
    assert samples(metrics, "ended_answers_total") == {}


def test_the_certificate_that_is_served_says_when_it_ends(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("web", server=True)
    metrics = WebMetrics()
    chain = issued.certificate.read_bytes()
    metrics.expose_certificate(lambda: end_of(chain))

    [ends_at] = samples(metrics, "certificate_expiry_seconds").values()
    assert ends_at > dt.datetime.now(dt.UTC).timestamp() + HOUR

    chain = b"not a certificate"
    assert str(samples(metrics, "certificate_expiry_seconds")[""]) == "nan"


def test_the_age_of_each_watch_is_exposed() -> None:
    text = WebMetrics().text({"Cluster": 1.5, "ResourceBinding": 70.0}).decode()

    assert 'karmada_scheduler_web_watch_age_seconds{kind="Cluster"} 1.5' in text
    assert 'karmada_scheduler_web_watch_age_seconds{kind="ResourceBinding"} 70.0' in text
