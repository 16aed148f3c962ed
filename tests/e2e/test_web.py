"""The page over a real control plane, in a real browser: every view, without faults, for everybody."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import Visitor, started
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, Workload, labelled, named
from tools.controlplane import ControlPlane
from tools.controlplane.ours import start_web
from tools.controlplane.processes import free_port

Visit = Callable[..., Visitor]
COUNT = 200
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture
def site(
    controlplane: ControlPlane,
    namespace: str,
    start_scheduler: StartScheduler,
    chromium: Browser,
) -> Iterator[tuple[str, str]]:
    """A page over a scheduler with records, and a namespace with workloads: placed ones, and one that is not."""
    records = f"127.0.0.1:{free_port()}"
    start_scheduler(f"--explain-bind-address={records}")
    web = Workload(controlplane, namespace, "web")
    web.create(labelled("sim", replicaScheduling=DYNAMIC), replicas=6)
    lost = Workload(controlplane, namespace, "lost")
    lost.create(named("sim-z9", replicaScheduling=DYNAMIC), replicas=2)
    web.wait_settled(replicas=6, timeout=60)
    lost.wait(
        lambda found: [
            each for each in found.get("status", {}).get("conditions", ()) if each["status"] == "False"
        ],
        "to be reported as not placed",
        timeout=60,
    )
    process, url = start_web(controlplane, f"--from=http://{records}", "--refresh=1s")
    yield url, namespace
    process.stop()
    controlplane.forget(process)


@pytest.fixture
def visit(chromium: Browser, site: tuple[str, str]) -> Iterator[Visit]:
    """Open a tab; at the end, nothing must have gone wrong in any."""
    visitors: list[Visitor] = []

    def open_tab(**options: object) -> Visitor:
        visitors.append(Visitor(chromium, site[0], **options))  # type: ignore[arg-type]
        return visitors[-1]

    yield open_tab
    faults = [fault for each in visitors for fault in each.faults]
    for each in visitors:
        each.close()
    assert faults == []


def _views(namespace: str) -> list[str]:
    return [
        "/",
        "/bindings",
        "/decisions",
        "/clusters/sim-a1",
        "/clusters/sim-a1/why-not",
        f"/b/{namespace}/web-deployment",
        f"/b/{namespace}/lost-deployment",
        f"/why-not/{namespace}/lost-deployment",
        f"/why-not/{namespace}/web-deployment?cluster=real1",
        f"/b/{namespace}/nothing-deployment",
    ]


def test_every_view_is_without_errors_and_without_serious_findings_of_axe(
    visit: Visit, site: tuple[str, str]
) -> None:
    for width in (1200, 320):
        visitor = visit(width=width)
        for path in _views(site[1]):
            page = visitor.visit(path)
            assert page.locator("h1").count() == 1, path
            assert visitor.serious() == [], (path, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_every_view_works_without_javascript(visit: Visit, site: tuple[str, str]) -> None:
    visitor = visit(javascript=False)
    for path in _views(site[1]):
        assert visitor.visit(path).locator("h1").inner_text()
    page = visitor.visit(f"/b/{site[1]}/web-deployment")
    page.get_by_label("Why not on cluster").fill("real1")
    page.get_by_role("button", name="Ask").click()
    assert "real1 has none of the 6 replicas" in page.locator("h1").inner_text()


def test_a_question_is_asked_with_the_keyboard_alone(visit: Visit, site: tuple[str, str]) -> None:
    page = visit().visit("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("searchbox", name="Find a binding").focus()
    page.keyboard.type(f"{site[1]}/lost")
    page.keyboard.press("Enter")
    page.wait_for_url("**/bindings?**")
    link = page.get_by_role("link", name="lost-deployment")
    for _ in range(60):
        if link.evaluate("each => each === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/b/**")
    assert page.locator("h1").inner_text() == "lost-deployment"
    assert "sim-z9" in page.locator("main").inner_text()


def test_a_new_binding_appears_without_a_reload(
    visit: Visit, site: tuple[str, str], controlplane: ControlPlane
) -> None:
    page = visit().visit(f"/bindings?namespace={site[1]}")
    assert page.get_by_role("link", name="later-deployment").count() == 0
    Workload(controlplane, site[1], "later").create(labelled("sim", replicaScheduling=DYNAMIC), replicas=2)
    page.get_by_role("link", name="later-deployment").wait_for(timeout=60_000)
    page = visit().visit("/decisions")
    page.get_by_role("link", name="later-deployment").wait_for(timeout=60_000)
    assert "From the records of" in page.locator("main").inner_text()


def test_the_answer_is_that_of_the_scheduler_that_decided(
    visit: Visit, site: tuple[str, str], controlplane: ControlPlane
) -> None:
    text = visit().visit(f"/b/{site[1]}/web-deployment").locator("main").inner_text()
    assert "placed" in text
    assert "Recorded" in text
    assert "with the same result" in text
    for name, replicas in Workload(controlplane, site[1], "web").placed().items():
        assert name in text
        assert str(replicas) in text


def test_hostile_texts_of_objects_are_shown_and_do_nothing(
    visit: Visit, site: tuple[str, str], controlplane: ControlPlane
) -> None:
    annotations = {"propagationpolicy.karmada.io/name": HOSTILE}
    path = f"/apis/work.karmada.io/v1alpha2/namespaces/{site[1]}/resourcebindings/lost-deployment"
    controlplane.client.patch(path, {"metadata": {"annotations": annotations}})
    visitor = visit()
    for target in ("/bindings", f"/b/{site[1]}/lost-deployment", f"/bindings?q={HOSTILE}", f"/b/{HOSTILE}/x"):
        page = visitor.visit(target)
        assert page.locator("img[onerror]").count() == 0
        assert page.locator("main").inner_text()


def test_nothing_but_this_machine_s_names_are_answered(site: tuple[str, str]) -> None:
    request = urllib.request.Request(urljoin(site[0], "/v1/fleet"), headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 403
