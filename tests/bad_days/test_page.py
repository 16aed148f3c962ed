"""The page under hostile requests and files: it stays, it says what is wrong, or its process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from karmada_scheduler.testing import binding, cluster
from tests.bad_days.page_process import PageProcess, start_page
from tests.bad_days.reviewing_apiserver import STRANGER_ADDRESS, Client
from tests.fake_apiserver import wait_for
from tests.unit.cli.test_hostile_process import serving, slow_body

EXPLAIN = "/v1/explain/shop/checkout-deployment"
PROXIED = "--behind-proxy=127.0.0.1"
OTHER = {"X-Forwarded-For": "192.0.2.1"}


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
    for text in (aliases(), "[" * 201, "a: !!bool foo", "a: !!timestamp 2020-99-99"):
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


def test_many_questions_at_once_are_answered_or_refused_and_the_page_stays(tmp_path: Path) -> None:
    with start_page(tmp_path, PROXIED) as page, ThreadPoolExecutor(24) as pool:

        def ask(number: int) -> tuple[int, str]:
            found = page.post(
                "/v1/plan",
                {"scale": f"shop/checkout={number + 1}"},
                headers={"X-Forwarded-For": f"192.0.2.{number}"},
            )
            return found.status_code, found.headers.get("Retry-After", "")

        asked = pool.map(ask, range(24))
        assert page.get("/", timeout=30).status_code == 200
        answers = list(asked)
        assert {status for status, _ in answers} <= {200, 503}
        assert (200, "") in answers
        assert all(bool(after) is (status == 503) for status, after in answers)
        assert page.get(EXPLAIN).status_code == 200


def test_a_hog_that_asks_for_999_terms_and_5000_clusters_is_ended_while_others_are_answered(
    tmp_path: Path,
) -> None:
    hog = binding("hog", namespace="shop").replicas(3)
    for number in range(999):
        hog.term(f"term-{number}", f"none-{number}")
    clusters = [cluster(f"member-{number}").capacity(cpu=100) for number in range(5000)]
    others = [binding(f"web-{number}", namespace="pay").replicas(3).dynamic_weight() for number in range(200)]
    answered = list[int]()

    with (
        start_page(tmp_path, PROXIED, clusters=clusters, bindings=[hog, *others]) as page,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(page.get, "/v1/explain/shop/hog-deployment", timeout=60)
        while not asked.done():
            other = page.get(f"/v1/explain/pay/web-{len(answered)}-deployment", headers=OTHER)
            answered.append(other.status_code)
        assert asked.result().status_code == 422
        assert "more than 30 s" in asked.result().text
    assert answered[:3] == [200] * 3
    assert set(answered) == {200}


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
from karmada_advisor.web.reading import Reader
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
        with contextlib.suppress(requests.ConnectionError):  # the server may end before it answers
            page.get("/")
        assert page.popen.wait(30) == 1
    assert "The server of the page has ended" in page.log
    assert "planted" in page.log


def test_an_error_in_the_background_is_said_and_the_page_stays(tmp_path: Path) -> None:
    first = """
from karmada_advisor.web import background
def failing(*_): raise KeyError("planted")
background.causes_of_state = failing
"""
    with start_page(tmp_path, first=first) as page:
        wait_for(lambda: "planted" in page.get("/").text, "the problem on the page", timeout=30)
        assert "Cannot find the cause of the state of " in page.log
        assert page.get(EXPLAIN).status_code == 200


def test_it_ends_in_order_after_a_signal(page: PageProcess) -> None:
    page.popen.send_signal(signal.SIGTERM)
    assert page.popen.wait(30) == 0
    assert "Traceback" not in page.log


_REBOUND = (
    "Host: evil.example",
    "Host: evil.example:{port}",
    "Host: localhost.evil.example:{port}",
    "Host: localhost.:{port}",
    "Host: evil.example\r\nX-Forwarded-Host: localhost",
    "Host: localhost@evil.example",
    "X: y",
)
"""What a browser sends for a name whose address has become 127.0.0.1, and some more."""


def test_a_name_that_was_rebound_to_this_machine_reads_nothing(page: PageProcess) -> None:
    for head in _REBOUND:
        for path in ("/", "/v1/fleet", "/healthz", "/metrics"):
            found = page.raw(f"GET {path} HTTP/1.1\r\n{head.format(port=page.port)}\r\n\r\n")
            assert found.split()[1] in {b"421", b"400"}, (path, head, found[:100])
            assert b"checkout" not in found


def test_readers_that_take_nothing_are_dropped_and_others_are_answered_again(page: PageProcess) -> None:
    links = []
    for number in range(40):
        link = socket.create_connection(("127.0.0.1", page.port))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        path = "/v1/events" if number % 2 else "/"
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)
        links.append(link)
    assert page.get("/healthz", timeout=5).text == "ok"
    wait_for(lambda: page.get("/v1/fleet").status_code == 200, "an answer for another reader", timeout=60)
    for link in links:
        link.close()


def test_a_page_without_file_descriptors_answers_as_connections_give_way(tmp_path: Path) -> None:
    first = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))"
    with start_page(tmp_path, first=first) as page, Client(page.port, STRANGER_ADDRESS).idle(200):
        for _ in range(3):
            assert page.get(EXPLAIN, timeout=20).status_code == 200


def test_a_page_that_was_suspended_goes_on(page: PageProcess) -> None:
    page.get("/")
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(socket.create_connection(("127.0.0.1", page.port)))
        stream.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        page.popen.send_signal(signal.SIGSTOP)
        stack.callback(page.popen.send_signal, signal.SIGCONT)
        with pytest.raises(requests.RequestException):
            page.get(EXPLAIN, timeout=3)
    page.clusters.write_text("a: [")
    wait_for(lambda: page.get("/").ok and page.get("/readyz").status_code == 503, "a reading", timeout=60)
    page.write()
    wait_for(lambda: page.get("/").ok and page.get("/readyz").text == "ok", "a good reading", timeout=60)
    assert page.get(EXPLAIN).status_code == 200


_JUMPING = """
import pathlib, time
now, monotonic = time.time, time.monotonic
time.time = lambda: now() + float(pathlib.Path({file!r}).read_text())
"""


def test_a_clock_that_jumps_changes_nothing_of_the_page(tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    with start_page(tmp_path, first=_JUMPING.format(file=str(offset))) as page:
        for jump in (-10 * 365 * 86_400, 10 * 365 * 86_400, 0):
            offset.write_text(str(jump))
            page.write()
            assert page.get("/").status_code == 200
            assert page.get(EXPLAIN).status_code == 200
            assert page.get("/readyz").text == "ok"


def test_a_scheduler_that_answers_nonsense_slowly_costs_the_page_its_records_only(tmp_path: Path) -> None:
    with serving(slow_body) as url, start_page(tmp_path, f"--from={url}") as page:
        text = page.get("/decisions", headers={"Accept": "text/html"}).text
        assert "No records: " in text
        assert "no complete answer within 10 s" in text
        began = time.monotonic()
        for path in ("/", "/decisions", "/v1/fleet", EXPLAIN):
            assert page.get(path, timeout=30).status_code == 200
        assert time.monotonic() - began < 35  # they do not each wait 10 s for it
