"""The page over a real control plane, in a real browser: every view, without faults, for everybody."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urljoin

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page

from tests.e2e.browser import Visitor, started
from tests.e2e.conftest import new_controlplane, running
from tests.e2e.token_page import asked
from tests.e2e.workload import DYNAMIC, WORK, Workload, is_settled, labelled, named
from tools import manifests
from tools.controlplane import ControlPlane, Object
from tools.controlplane.ours import start_scheduler, start_web
from tools.controlplane.processes import free_port

Visit = Callable[..., Visitor]
COUNT: Final = 120
"""More than a page shows, which is 100."""
SCHEDULER: Final = "web-scheduler"
HOSTILE: Final = "<img src=x onerror=alert(1)>"
SECONDS: Final = 120


@dataclass(frozen=True)
class Site:
    """A page, and the namespace whose workloads it shows."""

    url: str
    namespace: str


@pytest.fixture(scope="module")
def controlplane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of its own: the shared one has thousands of bindings of other tests, which the page shows."""
    with new_controlplane(request, tmp_path_factory) as plane:
        yield plane


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def site(chromium: Browser, controlplane: ControlPlane) -> Iterator[Site]:
    """A page over a scheduler with records, and workloads: many that are placed, and one that is not."""
    namespace = "a-page"
    controlplane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    records = f"127.0.0.1:{free_port()}"
    scheduler = start_scheduler(
        controlplane, f"--explain-bind-address={records}", name=SCHEDULER, started=running.append
    )
    web, lost = (Workload(controlplane, namespace, name) for name in ("web", "lost"))
    lost.create(named("sim-z9", replicaScheduling=DYNAMIC), replicas=2, scheduler=SCHEDULER)
    web.create(labelled("sim", replicaScheduling=DYNAMIC), replicas=6, scheduler=SCHEDULER)
    _create_many(controlplane, namespace)
    lost.wait(_is_reported_unplaced, "reported as not placed", timeout=SECONDS)
    controlplane.wait_for(
        lambda: sum(
            map(is_settled, controlplane.client.list(f"{WORK}/namespaces/{namespace}/resourcebindings"))
        ),
        f"{COUNT + 1} bindings to be scheduled",
        until=lambda count: count == COUNT + 1,
        timeout=SECONDS,
    )
    page, url = start_web(controlplane, f"--from=http://{records}", "--refresh=1s")
    yield Site(url.rstrip("/"), namespace)
    for process in (page, scheduler.process):
        process.stop()
        controlplane.forget(process)
    running.remove(scheduler)
    controlplane.client.delete(f"/api/v1/namespaces/{namespace}")


def _is_reported_unplaced(binding: Object) -> bool:
    return any(each["status"] == "False" for each in binding.get("status", {}).get("conditions", ()))


def _create_many(plane: ControlPlane, namespace: str) -> None:
    """Create the workloads ``many-000`` and following, with one policy for all."""
    many = {"many": "yes"}
    plane.client.create(
        manifests.policy(
            namespace,
            "many",
            labelled("sim", replicaScheduling=DYNAMIC),
            scheduler=SCHEDULER,
            selector={"labelSelector": {"matchLabels": many}},
        )
    )

    def create(number: int) -> Any:
        name = f"many-{number:03}"
        return plane.client.create(manifests.deployment(namespace, name, 2, cpu="1m", labels=many))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(COUNT)))


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Iterator[Visit]:
    """Open a tab; at the end, nothing must have gone wrong in any."""
    visitors: list[Visitor] = []

    def open_tab(**options: object) -> Visitor:
        visitors.append(Visitor(chromium, site.url, **options))  # type: ignore[arg-type]
        return visitors[-1]

    yield open_tab
    faults = [fault for each in visitors for fault in each.faults]
    for each in visitors:
        each.close()
    assert faults == []


def _views(namespace: str) -> dict[str, int]:
    """Return the paths of all views, and the status of each."""
    return {
        "/": 200,
        "/clusters": 200,
        "/bindings?q=-00": 200,
        "/decisions?q=-00": 200,
        "/clusters/sim-a1": 200,
        "/clusters/sim-a1/why-not": 200,
        f"/b/{namespace}/web-deployment": 200,
        f"/b/{namespace}/lost-deployment": 200,
        f"/why-not/{namespace}/lost-deployment": 200,
        f"/why-not/{namespace}/web-deployment?cluster=real1": 200,
        f"/b/{namespace}/nothing-deployment": 404,
        "/plan": 200,
        "/plan?without=sim-a1": 200,
    }


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (320, "dark")])
def test_every_view_is_without_errors_and_without_serious_findings_of_axe(
    visit: Visit, site: Site, width: int, scheme: str
) -> None:
    visitor = visit(width=width, scheme=scheme)
    findings = {}
    for path, status in _views(site.namespace).items():
        page = visitor.visit(path, status=status)
        findings[path] = visitor.serious()
        if page.locator("h1").count() != 1:
            findings[path].append("not one h1")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            findings[path].append("scrolls sideways")
    assert {path: found for path, found in findings.items() if found} == {}


def test_a_phone_shows_whole_tables_and_the_filters_that_matter(visit: Visit, site: Site) -> None:
    visitor = visit(width=390)
    for name in ("web", "lost"):
        page = visitor.visit(f"/b/{site.namespace}/{name}-deployment")
        wider = (
            "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth)"
        )
        assert (
            page.evaluate(f"{wider}.filter((each) => each.offsetParent).map((each) => each.ariaLabel)") == []
        )
    phone, desk = (one.visit("/bindings") for one in (visitor, visit(width=1280)))
    assert [page.get_by_label("Policy").is_visible() for page in (phone, desk)] == [False, True]
    assert [page.get_by_text("More filters").is_visible() for page in (phone, desk)] == [True, False]
    phone.get_by_text("More filters").click()
    assert phone.get_by_label("Policy").is_visible()


def test_a_history_says_how_long_ago_and_shows_only_what_went_wrong(visit: Visit, site: Site) -> None:
    page = visit().visit(f"/b/{site.namespace}/lost-deployment")
    assert page.locator(".ago").first.inner_text().endswith(" ago")
    page.get_by_label("only what went wrong").check()
    entries = page.locator(".history li")
    shown = [each for each in entries.all() if each.is_visible()]
    assert 0 < len(shown) < entries.count()
    assert all(each.locator(".state.bad").count() for each in shown)


def test_a_region_is_asked_about_on_the_page_of_a_binding(visit: Visit, site: Site) -> None:
    page = visit(javascript=False).visit(f"/b/{site.namespace}/lost-deployment")
    page.get_by_label("Why not on cluster").fill("region=ra")
    page.get_by_role("button", name="Ask").click()
    assert page.locator("h1").inner_text().startswith("0 of 2 clusters with region=ra have replicas of")
    assert "Changes that put replicas on sim-a" in page.locator("main").inner_text()


def test_every_view_works_without_javascript(visit: Visit, site: Site) -> None:
    visitor = visit(javascript=False)
    for path, status in _views(site.namespace).items():
        assert visitor.visit(path, status=status).locator("h1").inner_text()
    page = visitor.visit(f"/b/{site.namespace}/web-deployment")
    page.get_by_label("Why not on cluster").fill("real1")
    page.get_by_role("button", name="Ask").click()
    assert "real1 has none of the 6 replicas" in page.locator("h1").inner_text()


def test_a_pasted_policy_is_planned_and_not_applied(
    visit: Visit, site: Site, controlplane: ControlPlane
) -> None:
    web = Workload(controlplane, site.namespace, "web")
    before = controlplane.client.get(web.policy_path)
    edited = {
        "apiVersion": before["apiVersion"],
        "kind": before["kind"],
        "metadata": {"name": "web", "namespace": site.namespace},
        "spec": {**before["spec"], "placement": named("sim-z9", replicaScheduling=DYNAMIC)},
    }
    page = visit(javascript=False).visit("/plan")
    page.get_by_label("A policy as YAML").fill(yaml.safe_dump(edited))
    page.get_by_role("button", name="Plan").click()
    assert "1 unplaced" in page.locator("h1").inner_text()
    text = page.locator("main").inner_text()
    assert "web-deployment" in text
    assert "Not read" not in text
    assert controlplane.client.get(web.policy_path)["spec"] == before["spec"]


def _press_until_focused(page: Page, target: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if target.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached with Tab")


def test_a_question_is_asked_with_the_keyboard_alone(visit: Visit, site: Site) -> None:
    page = visit().visit("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("searchbox", name="Find a binding").focus()
    page.keyboard.type(f"{site.namespace}/lost")
    page.keyboard.press("Enter")
    page.wait_for_url("**/bindings?**")
    _press_until_focused(page, page.get_by_role("link", name="lost-deployment"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/b/**")
    assert page.locator("h1").inner_text() == "lost-deployment"
    assert "sim-z9" in page.locator("main").inner_text()
    box = page.get_by_label("Why not on cluster")
    _press_until_focused(page, box)
    page.keyboard.type("real1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/why-not/**")
    assert "real1" in page.locator("h1").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (320, "dark")])
def test_the_losses_in_each_world_are_read_with_the_keyboard_alone(
    visit: Visit, width: int, scheme: str
) -> None:
    visitor = visit(width=width, scheme=scheme)
    page = visitor.visit("/survive")
    page.get_by_text("Made at").wait_for()
    page.get_by_role("link", name="By itself").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/survive?loss=itself")
    chosen = page.get_by_role("navigation", name="After the loss").locator("[aria-current=page]")
    assert chosen.inner_text() == "By itself"
    assert visitor.serious() == []
    page.get_by_role("link", name="sim-a1", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("heading", level=1).inner_text() == "If sim-a1 is lost"
    assert visitor.serious() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_workload_that_no_policy_selects_is_on_the_first_page_until_one_does(
    visit: Visit, site: Site, controlplane: ControlPlane
) -> None:
    orphan = manifests.deployment(site.namespace, "orphan", 1, cpu="1m")
    controlplane.client.create(orphan)
    page = visit().visit("/")
    row = page.get_by_role("row").filter(has_text=f"Deployment {site.namespace}/orphan")
    row.wait_for()
    assert "No policy matches it" in row.inner_text()
    controlplane.client.create(
        manifests.policy(site.namespace, "orphan", named("sim-a1"), scheduler=SCHEDULER)
    )
    row.wait_for(state="detached")


def test_a_new_binding_appears_without_a_reload(visit: Visit, site: Site, controlplane: ControlPlane) -> None:
    page = visit().visit(f"/bindings?namespace={site.namespace}")
    assert page.get_by_role("link", name="later-deployment").count() == 0
    later = Workload(controlplane, site.namespace, "later")
    later.create(labelled("sim", replicaScheduling=DYNAMIC), replicas=2, scheduler=SCHEDULER)
    page.get_by_role("link", name="later-deployment").wait_for(timeout=1000 * SECONDS)
    page = visit().visit("/decisions")
    page.get_by_role("link", name="later-deployment").wait_for(timeout=1000 * SECONDS)
    assert "From the records of" in page.locator("main").inner_text()


def test_a_list_is_filtered_while_somebody_types(visit: Visit, site: Site) -> None:
    page = visit().visit(f"/bindings?namespace={site.namespace}")
    entries = page.evaluate("history.length")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("many-007")
    page.wait_for_url(lambda url: url.endswith(f"?q=many-007&namespace={site.namespace}"))
    page.get_by_role("link", name="many-006-deployment").wait_for(state="detached")
    assert page.get_by_role("link", name="many-007-deployment").count() == 1
    assert page.locator("#said").inner_text() == page.locator("h1").inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="many-006-deployment").wait_for()
    assert page.evaluate("document.activeElement.value") == ""
    assert page.evaluate("history.length") == entries


def test_a_command_of_a_fix_is_copied_and_places_the_binding(
    visit: Visit, site: Site, controlplane: ControlPlane
) -> None:
    visitor = visit()
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.visit(f"/b/{site.namespace}/lost-deployment")
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == page.locator("pre").first.inner_text()
    words = shlex.split(command)
    assert words[:3] == ["kubectl", "patch", "propagationpolicy.policy.karmada.io"]
    patch = json.loads(words[-1].removeprefix("--patch="))
    lost = Workload(controlplane, site.namespace, words[3])
    policy = controlplane.client.get(lost.policy_path)
    controlplane.client.request(
        "PATCH", lost.policy_path, body=patch, content_type="application/json-patch+json"
    )
    lost.wait(lambda binding: bool(binding["spec"].get("clusters")), "placed", timeout=SECONDS)
    page.locator(".title .state", has_text="placed").wait_for()
    assert policy["metadata"]["name"] == words[3]


def test_the_answer_is_that_of_the_scheduler_that_decided(
    visit: Visit, site: Site, controlplane: ControlPlane
) -> None:
    page = visit().visit(f"/b/{site.namespace}/web-deployment")
    page.locator("summary", has_text="Where this answer comes from").click()
    text = page.locator("main").inner_text()
    assert page.locator(".title .state").inner_text() == "placed"
    assert "Recorded" in text
    assert "with the same result" in text
    for name, replicas in Workload(controlplane, site.namespace, "web").placed().items():
        assert name in text
        assert str(replicas) in text


def test_hostile_texts_of_objects_are_shown_and_do_nothing(
    visit: Visit, site: Site, controlplane: ControlPlane
) -> None:
    controlplane.client.create(
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": "hostile",
                "namespace": site.namespace,
                "annotations": {"propagationpolicy.karmada.io/name": HOSTILE},
            },
            "spec": {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": HOSTILE},
                "schedulerName": "nobody",
                "placement": labelled("sim"),
            },
        }
    )
    visitor = visit()
    page = visitor.visit(f"/bindings?namespace={site.namespace}&q=hostile")
    page.get_by_role("link", name="hostile").wait_for()
    controlplane.wait_for(
        lambda: _status(site, f"/b/{site.namespace}/hostile"),
        "the new binding to be known to those who decide",
        until=lambda status: status == 200,
    )
    page = visitor.visit(f"/b/{site.namespace}/hostile")
    page.get_by_text(HOSTILE).first.wait_for()
    assert page.locator("img[onerror]").count() == 0
    for path, status in (("/bindings?q=", 200), ("/b/", 404), ("/clusters/", 404), ("/plan?scale=", 200)):
        page = visitor.visit(path + quote(HOSTILE), status=status)
        assert page.locator("img[onerror]").count() == 0
        assert HOSTILE in page.locator("main").inner_text() + page.content().replace("&lt;", "<").replace(
            "&gt;", ">"
        )


def _status(site: Site, path: str) -> int:
    """Return the status of a page; 503 while its binding is only in the lists."""
    return asked(urljoin(site.url, path))[0]


def test_the_explanations_of_the_tests_before_are_counted(site: Site) -> None:
    _, text = asked(urljoin(site.url, "/metrics"))
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert float(samples["karmada_scheduler_explanations_total"]) > 0


def test_the_page_has_only_read(site: Site, controlplane: ControlPlane) -> None:
    """By the audit log of the API server, of all tests before this one."""
    requests = controlplane.requests("system:karmada:web")
    verbs = {entry["verb"] for entry in requests}
    assert "list" in verbs
    assert verbs <= {"get", "list", "watch"}
    forbidden = {entry["requestURI"] for entry in requests if entry["responseStatus"]["code"] == 403}
    assert all(uri.startswith("/apis/apps/v1/deployments?") for uri in forbidden)  # of a plan, which says so
