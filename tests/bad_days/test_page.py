"""The page under hostile requests and files: it stays, it says what is wrong, or its process ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bad_days.page_process import PageProcess, start_page
from tests.fake_apiserver import wait_for

EXPLAIN = "/v1/explain/shop/checkout-deployment"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageProcess]:
    with start_page(tmp_path) as page:
        yield page


def aliases(values: int = 900, selectors: int = 550, targets: int = 550) -> str:
    """Return a policy of some kB whose aliases stand for the product of the numbers."""
    return (
        f"x: &v [{'x,' * values}]\ny: &m {{key: a,operator: In,values: *v}}\nz: &e [{'*m,' * selectors}]\n"
        "w: &t {apiVersion: apps/v1,kind: Deployment,labelSelector: {matchExpressions: *e}}\n"
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\n"
        f"spec: {{resourceSelectors: [{'*t,' * targets}],placement: {{clusterAffinity: {{clusterNames: [m2]}}}}}}"
    )


def test_a_hostile_policy_is_refused_with_its_place_and_costs_nothing(page: PageProcess) -> None:
    before = page.memory
    for text in (aliases(), "[" * 50_000, "a: !!bool foo", "a: " + "1" * 5000, "a: !!timestamp 2020-99-99"):
        found = page.post("/v1/plan", {"policy": text}, timeout=10)
        assert found.status_code == 422
        assert "the policy: document 1: line " in found.json()["error"]["message"]
        assert page.get(EXPLAIN, timeout=10).status_code == 200
    assert page.memory - before < 100


def test_what_another_site_sends_is_not_computed(page: PageProcess) -> None:
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    form = {"without": "eu-west-1"}
    assert page.get("/v1/plan?without=eu-west-1", headers=image).status_code == 403
    assert page.post("/plan", form, headers=link).status_code == 403
    assert page.post("/plan", form, headers={"Origin": "http://evil.example"}).status_code == 403
    assert page.get("/plan?without=eu-west-1", headers=link).status_code == 200
    assert page.post("/plan", form, headers=own).status_code == 200


def test_many_questions_at_once_are_answered_or_refused_and_the_page_stays(page: PageProcess) -> None:
    def ask(number: int) -> tuple[int, str]:
        found = page.post(
            "/v1/plan", {"scale": f"shop/checkout={number + 1}"}, headers={"X-Forwarded-For": str(number)}
        )
        return found.status_code, found.headers.get("Retry-After", "")

    with ThreadPoolExecutor(24) as pool:
        asked = pool.map(ask, range(24))
        assert page.get("/", timeout=30).status_code == 200
        answers = list(asked)
    assert {status for status, _ in answers} <= {200, 503}
    assert (200, "") in answers
    assert all(bool(after) is (status == 503) for status, after in answers)
    assert page.get(EXPLAIN).status_code == 200


def test_files_that_cannot_be_read_again_leave_the_last_state_and_a_word(page: PageProcess) -> None:
    def is_failing() -> bool:
        page.get("/")  # somebody looks
        return page.get("/readyz").status_code == 503

    for spoil in (_hostile_yaml, _directory, _noise, _away):
        spoil(page.clusters)
        wait_for(is_failing, f"a failure after {spoil.__name__}", timeout=30)
        assert "The objects could not be read again: " in page.get("/readyz").text
        assert "The objects could not be read again: " in page.get("/", headers={"Accept": "text/html"}).text
        assert page.get(EXPLAIN).status_code == 200
        assert page.get("/healthz").text == "ok"
        if page.clusters.is_dir():
            page.clusters.rmdir()
        page.write()
        wait_for(lambda: page.get("/").ok and page.get("/readyz").text == "ok", "a good reading", timeout=30)
    assert page.popen.poll() is None


def _hostile_yaml(path: Path) -> None:
    path.write_text("a: !!bool foo")


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _noise(path: Path) -> None:
    path.write_bytes(os.urandom(1000))


def _away(path: Path) -> None:
    path.unlink()


_FAILING = """
from karmada_scheduler.cli.web.reading import Reader
read, Reader.count = Reader.read, 0
def failing(self):
    Reader.count += 1
    if Reader.count == 2:
        raise {error}
    read(self)
Reader.read = failing
"""


def test_an_error_of_the_page_itself_while_reading_is_said_and_logged(tmp_path: Path) -> None:
    with start_page(tmp_path, first=_FAILING.format(error="ZeroDivisionError('planted')")) as page:
        wait_for(lambda: page.get("/").ok and "planted" in page.log, "the log line", timeout=30)
        wait_for(lambda: page.get("/").ok and page.get("/readyz").text == "ok", "a good reading", timeout=30)


def test_the_process_ends_with_its_server(tmp_path: Path) -> None:
    with start_page(tmp_path, first=_FAILING.format(error="SystemExit('planted')")) as page:
        page.get("/")
        assert page.popen.wait(30) == 1
    assert "The server of the page has ended" in page.log
    assert "planted" in page.log


def test_an_error_in_idle_moments_is_said_and_the_page_stays(tmp_path: Path) -> None:
    first = """
from karmada_scheduler.cli.web import answers
def failing(*_): raise KeyError("planted")
answers.causes_of_binding = failing
"""
    with start_page(tmp_path, first=first) as page:
        wait_for(lambda: "planted" in page.get("/").text, "the problem on the page", timeout=30)
        assert "Cannot find why ResourceBinding" in page.log
        assert page.get(EXPLAIN).status_code == 200


def test_it_ends_in_order_after_a_signal(page: PageProcess) -> None:
    page.popen.send_signal(signal.SIGTERM)
    assert page.popen.wait(30) == 0
    assert "Traceback" not in page.log
