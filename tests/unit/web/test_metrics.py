"""Metrics of the page: reviews, sessions, and answers that wait or were ended. No user is in them."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from pathlib import Path

from cryptography.fernet import Fernet

from karmada_advisor.state.model import ReplicaCounts, StateName
from karmada_advisor.web.access import end_of
from karmada_advisor.web.answer_worker import AnswerWorker, TooLongError
from karmada_advisor.web.authorization import Authorization, NamespaceHints
from karmada_advisor.web.metrics import BindingsByScheduler, WebMetrics
from karmada_advisor.web.sessions import Sessions
from karmada_pyscheduler.client.reviews import Reviews
from karmada_pyscheduler.http_server.listener import ServerCertificate
from karmada_scheduler.api_error import ApiError
from tests.unit.web.site import Site
from tests.unit.web.test_answer_worker import spin
from tests.unit.web.test_authorization import AUDIENCE, PEER, Plane
from tests.unit.web.test_sessions import HOUR, Keys, cookie_of
from tools.controlplane.pki import Authority


def samples(metrics: WebMetrics, name: str) -> dict[str, float]:
    """Return the samples of a family that are not 0, by the values of their labels."""
    found = {}
    for line in metrics.text({}, {}).decode().splitlines():
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

    await asyncio.gather(page.viewer(good, PEER), page.viewer(good, PEER))
    await page.viewer(bad, PEER)
    plane.failure = ApiError("away")
    await page.viewer({"Authorization": "Bearer another"}, PEER)

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
        for token in ("good", *(f"bad-{number}" for number in range(11))):
            await site.get("/sign-in", "POST", form={"token": token})
        await site.get("/sign-in", "POST", form={"token": "good"}, Origin="https://elsewhere.example")

    assert samples(page.metrics, "sign_ins_total") == {"success": 1, "failure": 10, "limited": 1}


async def test_sessions_that_are_refused_are_counted_by_reason(tmp_path: Path) -> None:
    page = Counted(tmp_path)
    async with page.site as site:
        signed_in = (await site.get("/sign-in", "POST", form={"token": "good"})).cookies
        of_another = page.authorization.sessions
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

    text = page.metrics.text({"Cluster": 1.5}, {}).decode()
    assert 'route="/n/{namespace}"' in text
    for name in ("dev", "good", "shop", "checkout", "bakery"):
        assert not re.search(rf"\b{name}\b", text), name


async def test_ended_answers_begun_processes_and_waiting_questions_are_counted() -> None:
    metrics = WebMetrics()
    worker = AnswerWorker(on_ended=metrics.answer_ended, on_process=metrics.processes.inc, seconds=0.2)
    metrics.pending.set_function(lambda: worker.waiting)
    asked = [asyncio.create_task(worker.answer(number, spin, requester=str(number))) for number in range(3)]
    while not worker.waiting:
        await asyncio.sleep(0)
    waiting = samples(metrics, "pending_answers")
    assert [type(error) for error in await asyncio.gather(*asked, return_exceptions=True)] == 3 * [
        TooLongError
    ]
    assert await worker.answer("other", lambda: 5) == 5

    assert waiting == {"": 1}
    assert samples(metrics, "pending_answers") == {}
    assert samples(metrics, "ended_answers_total") == {"time": 3}
    assert samples(metrics, "answer_processes_total") == {"": 4}


def test_the_certificate_that_is_served_says_when_it_ends(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("web", server=True)
    metrics = WebMetrics()
    certificate = ServerCertificate(issued.certificate, issued.key)
    metrics.expose_certificate(lambda: end_of(certificate))

    [ends_at] = samples(metrics, "certificate_expiry_seconds").values()
    assert ends_at > dt.datetime.now(dt.UTC).timestamp() + HOUR

    certificate._loaded = (b"not a certificate",)
    assert str(samples(metrics, "certificate_expiry_seconds")[""]) == "nan"


def test_the_age_of_each_watch_is_exposed() -> None:
    text = WebMetrics().text({"Cluster": 1.5, "ResourceBinding": 70.0}, {}).decode()

    assert 'karmada_scheduler_web_watch_age_seconds{kind="Cluster"} 1.5' in text
    assert 'karmada_scheduler_web_watch_age_seconds{kind="ResourceBinding"} 70.0' in text


def test_bindings_and_replicas_are_exposed_by_the_scheduler_that_is_responsible() -> None:
    metrics = WebMetrics()
    placed = {(StateName.PLACED, ""): 3, (StateName.STUCK, "Unschedulable"): 1}
    metrics.text({}, {"default-scheduler": (placed, ReplicaCounts(9, 8, 5, 1))})
    many = {f"s{number}": ({(StateName.PLACED, ""): 1}, ReplicaCounts(2, 2, 2)) for number in range(25)}

    def exposed(name: str, bindings: BindingsByScheduler) -> dict[str, float]:
        lines = metrics.text({}, bindings).decode().splitlines()
        found = [re.fullmatch(rf"karmada_scheduler_web_{name}{{(.*)}} (\S+)", line) for line in lines]
        return {"/".join(re.findall(r'="([^"]*)"', each[1])): float(each[2]) for each in found if each}

    one = {"default-scheduler": (placed, ReplicaCounts(9, 8, 5, 1))}
    assert exposed("bindings", one) == {
        "/default-scheduler/placed": 3,
        "Unschedulable/default-scheduler/stuck": 1,
    }
    assert exposed("replicas", one) == {
        "default-scheduler/wanted": 9,
        "default-scheduler/placed": 8,
        "default-scheduler/running": 5,
        "default-scheduler/unknown": 1,
    }
    assert exposed("bindings", many) == {f"/s{number}/placed": 1 for number in range(20)} | {
        "/others/placed": 5
    }
    odd = {(StateName.NOT_PLACED, f"Reason{number}"): 1 for number in range(9)}
    assert exposed("bindings", {"s": (odd, ReplicaCounts())}) == {"other/s/not placed": 9}
    assert exposed("replicas", {}) == {}
