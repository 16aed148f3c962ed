"""The page for holders of tokens, over a real control plane: its API server says who they are and what they may read."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import Visitor, started
from tests.e2e.identity_provider import AUTHENTICATION, PREFIX, IdentityProvider, write_authentication
from tests.e2e.token_page import (
    AUDIENCE,
    BAKERY,
    CACHE_SECONDS,
    IS_DEVELOPER,
    OF_API_SERVER,
    RBAC,
    SHOP,
    Page,
    bind,
    of_platform,
    served,
    sign_in,
)
from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane
from tools.controlplane.ours import start_web


@pytest.fixture(scope="module")
def page(controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with served(controlplane, tmp_path_factory) as found:
        yield found


def test_who_may_read_all_is_answered_and_others_learn_why_not(page: Page) -> None:
    assert page.get(page.token("operator"))[0] == 200

    status, text = page.get(page.token("stranger"), "v1/fleet")
    assert status == 403
    assert f"system:serviceaccount:{SHOP}:stranger may not read all that this view shows" in text
    assert "list clusters.cluster.karmada.io" in text

    for path in ("", "v1/bindings", "v1/events", "metrics", "bindings?q=a", "b/no/such"):
        status, text = page.get(path=path)
        assert status == 401
        assert f"--audience={AUDIENCE}" in text


def test_probes_and_metrics_are_answered_on_addresses_of_their_own_and_not_on_the_page(page: Page) -> None:
    operator = page.token("operator")
    assert [page.get(operator)[0] for _ in range(2)] == [200, 200]
    for path in ("healthz", "readyz", "metrics"):
        assert page.get(operator, path)[0] == 404

    for path in ("healthz", "readyz"):
        assert of_platform(page.probes, path) == (200, "ok")
    status, text = of_platform(page.metrics, "metrics")
    assert status == 200
    assert re.search(r'web_requests_total\{route="/v1/bindings",status="200"\} [1-9]', text)
    assert re.search(r'web_reviews_total\{kind="TokenReview",result="success",source="asked"\} [1-9]', text)
    kept = r'web_reviews_total\{kind="SubjectAccessReview",result="allowed",source="kept"\} [1-9]'
    assert re.search(kept, text)
    ages = dict(re.findall(r'web_watch_age_seconds\{kind="(\w+)"\} (\S+)', text))
    assert {"Cluster", "ResourceBinding", "PropagationPolicy"} <= set(ages)
    assert all(0 <= float(age) < 100 for age in ages.values())
    [ends_at] = re.findall(r"(?m)^karmada_scheduler_web_certificate_expiry_seconds (\S+)", text)
    assert float(ends_at) > time.time()
    for unknown in ("v1/bindings", "", "b/a/b"):
        assert {of_platform(address, unknown)[0] for address in (page.probes, page.metrics)} == {404}


def test_a_token_of_the_page_opens_nothing_else_and_one_of_the_api_server_does_not_open_the_page(
    page: Page,
) -> None:
    ours, of_api_server = page.token("operator"), page.token("operator", audience="")

    status, text = page.get(of_api_server)
    assert status == 401
    assert f"The token is for {OF_API_SERVER}; expected {AUDIENCE}" in text

    who = page.plane.kubectl("config", "view", "--raw", "--minify", "-o", "json")
    cluster = json.loads(who)["clusters"][0]["cluster"]
    request = urllib.request.Request(
        f"{cluster['server']}/apis/cluster.karmada.io/v1alpha1/clusters",
        headers={"Authorization": f"Bearer {ours}"},
    )
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10, context=ssl.create_default_context(cadata=authority))
    with refused.value as error:
        assert error.code == 401


def test_a_developer_sees_the_bindings_of_their_namespace_and_no_others(page: Page) -> None:
    workload = Workload(page.plane, SHOP)
    workload.create(named("sim-a1"), replicas=2, scheduler="default-scheduler").wait_placed({"sim-a1": 2})
    name = workload.binding()["metadata"]["name"]
    page.plane.wait_for(
        lambda: page.get(page.token("developer"), f"b/{SHOP}/{name}", Accept="text/html"),
        "the page of the binding",
        until=lambda it: it[0] == 200 and "sim-a1" in it[1],
        timeout=30,
    )
    developer, stranger = page.token("developer"), page.token("stranger")

    items = json.loads(page.get(developer, f"v1/bindings?namespace={SHOP}")[1])["items"]
    assert [each["name"] for each in items] == [name]

    status, text = page.get(developer, f"v1/explain/{SHOP}/{name}")
    assert (status, json.loads(text)["kind"]) == (200, "Explanation")
    assert set(re.findall(r"sim-\w+", text)) == {"sim-a1"}
    assert "you may not list clusters.cluster.karmada.io" in json.loads(text)["notJudged"][0]
    status, text = page.get(page.token("sre"), f"v1/explain/{SHOP}/{name}")
    assert (status, {"sim-a1", "sim-b1"} <= set(re.findall(r"sim-\w+", text))) == (200, True)
    found = json.loads(page.get(developer, "v1/namespaces")[1])["items"]
    assert [(each["name"], sum(each["bindings"].values())) for each in found] == [(SHOP, 1), (BAKERY, 0)]
    assert json.loads(page.get(stranger, "v1/namespaces")[1])["items"] == []

    for token, path in (
        (developer, "v1/bindings?namespace=default"),
        (developer, "v1/bindings"),
        (developer, f"b/default/{name}"),
        (developer, f"v1/explain/default/{name}"),
        (developer, f"v1/why-not/{SHOP}/{name}?cluster=sim-b1"),
        (developer, "v1/clusters"),
        (stranger, f"v1/bindings?namespace={SHOP}"),
        (stranger, f"b/{SHOP}/{name}"),
    ):
        status, text = page.get(token, path)
        assert status == 403, path
        assert "sim-" not in text


def test_trusted_tenants_get_the_whole_answer_about_their_bindings_and_none_of_others(
    page: Page, other_page: Page
) -> None:
    workload = Workload(page.plane, SHOP, "trusted")
    workload.create(named("sim-a1"), replicas=1, scheduler="default-scheduler").wait_placed({"sim-a1": 1})
    name, developer = workload.binding()["metadata"]["name"], page.token("developer")
    _, text = other_page.plane.wait_for(
        lambda: other_page.get(developer, f"v1/explain/{SHOP}/{name}"),
        "the reasons",
        until=lambda it: it[0] == 200 and "sim-b1" in it[1],
        timeout=30,
    )
    found = json.loads(text)
    assert [line.partition(" (")[0] for line in found["notJudged"]] == [
        f"bindings outside of the namespace {SHOP}",
        "ClusterResourceBindings",
    ]
    assert other_page.get(developer, "v1/clusters")[0] == 200
    held = json.loads(other_page.get(developer, "v1/clusters/sim-a1")[1])["holds"]
    assert held
    assert all(one.startswith(f"{SHOP}/") for one in held)
    assert (
        other_page.get(developer, "v1/fleet")[0] == other_page.get(developer, f"b/default/{name}")[0] == 403
    )


@pytest.mark.parametrize("changed", ["signature", "garbage", "none", "huge", "control characters"])
def test_what_the_api_server_has_not_signed_is_refused(page: Page, changed: str) -> None:
    head, body, signature = page.token("operator").split(".")
    token = {
        "signature": f"{head}.{body}.{signature[:-6]}AAAAAA",
        "garbage": "x",
        "none": f"eyJhbGciOiJub25lIn0.{body}.",
        "huge": "x" * 7_000,
        "control characters": "a\tb",
    }[changed]

    assert page.get(token)[0] == 401


def test_a_right_or_an_account_that_is_removed_ends_the_reading(page: Page) -> None:
    token = page.token("leaver")
    assert page.get(token)[0] == 200

    page.plane.client.delete(f"/apis/{RBAC}/v1/clusterrolebindings/token-leaver")
    page.wait(token, 403, "the removed right to be noticed")
    bind(page.plane, "leaver")
    page.wait(token, 200, "the right that is back to be noticed")
    page.plane.client.delete(f"/api/v1/namespaces/{SHOP}/serviceaccounts/leaver")
    page.wait(token, 401, "the removed account to be noticed")


def test_without_the_api_server_nobody_is_answered_and_afterwards_all_are(page: Page) -> None:
    token = page.token("operator")
    assert page.get(token)[0] == 200

    page.plane.kill_apiserver()
    try:
        page.wait(token, 503, "the page to refuse")
        assert "resourcebindings" not in page.get(token)[1]
        page.plane.wait_for(
            lambda: of_platform(page.probes, "readyz"),
            "probes to learn that it is not ready, and no more",
            until=lambda it: it == (503, "not ready\n"),
            timeout=60,
        )
    finally:
        page.plane.restart_apiserver()

    page.plane.wait_for(lambda: page.get(token)[0], "answers again", until=lambda it: it == 200, timeout=30)


@pytest.fixture
def provider(page: Page) -> Iterator[IdentityProvider]:
    """An issuer that the API server trusts."""
    config = page.plane.folder.parent / AUTHENTICATION
    with IdentityProvider(page.authority) as found:
        write_authentication(config, found.trusted_for("placements"))
        yield found
        write_authentication(config)


@pytest.fixture
def other_page(page: Page) -> Iterator[Page]:
    """A second page with the same keys of sessions, for tokens of the API server's own audience, too, and trusted tenants."""
    process, url = start_web(
        page.plane,
        "--auth=token",
        f"--auth-cache={CACHE_SECONDS}s",
        f"--audience={AUDIENCE}",
        f"--audience={OF_API_SERVER}",
        "--reveal=fleet",
        f"--session-keys-file={page.session_keys}",
        f"--tls-cert-file={page.certificate}",
        f"--tls-key-file={page.key}",
        authority=page.authority.certificate,
        name="web-other",
    )
    yield replace(page, url=url, log=process.log)
    process.stop()


def test_a_group_of_an_identity_provider_sees_its_namespace_and_a_session_counts_on_each_replica(
    page: Page, provider: IdentityProvider, other_page: Page, chromium: Browser
) -> None:
    token = provider.token("alice", client="placements", groups=["bakers"])
    page.plane.client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "bakers", "namespace": BAKERY},
            "roleRef": IS_DEVELOPER["roleRef"],
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": f"{PREFIX}bakers"}],
        }
    )

    page.plane.wait_for(
        lambda: other_page.get(token, f"v1/bindings?namespace={BAKERY}"),
        "the API server to trust the issuer",
        until=lambda it: it[0] == 200,
        timeout=90,
    )
    assert other_page.get(token, f"v1/bindings?namespace={SHOP}")[0] == 403
    assert [each["name"] for each in json.loads(other_page.get(token, "v1/namespaces")[1])["items"]] == [
        BAKERY
    ]
    assert page.get(token)[0] == 401  # this page does not ask for the audience of the API server

    ended = provider.token("alice", client="placements", seconds=-60)
    with IdentityProvider(page.authority) as unknown:
        foreign = unknown.token("alice", client="placements")
    for refused, why in ((ended, "The token has expired"), (foreign, "needs --oidc-issuer-url there")):
        status, text = other_page.get(refused)
        assert (status, why in text) == (401, True)

    visitor = Visitor(chromium, other_page.url, trusts_all=True)
    visitor.visit("/", status=401)
    sign_in(visitor, page.token("developer"))
    visitor.page.get_by_role("button", name="Sign out").wait_for()
    answer = visitor.page.goto(f"{page.url}bindings?namespace={SHOP}")
    assert answer is not None
    assert answer.status == 200
    visitor.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture
def visitor(chromium: Browser, page: Page) -> Iterator[Visitor]:
    """A reader; the certificate is of an authority that a browser does not know."""
    found = Visitor(chromium, page.url, width=390, trusts_all=True)
    yield found
    found.close()


def test_a_developer_signs_in_sees_their_namespaces_and_signs_out(page: Page, visitor: Visitor) -> None:
    shown = visitor.visit(f"/bindings?namespace={SHOP}", status=401)
    assert not visitor.serious()
    sign_in(visitor, page.token("developer")[:-6] + "AAAAAA")
    shown.get_by_role("alert").wait_for()
    assert "The Karmada API server does not know this token" in shown.inner_text("main")
    sign_in(visitor, page.token("developer"))
    shown.wait_for_url(f"**/bindings?namespace={SHOP}")

    visitor.visit("/")
    assert SHOP in shown.inner_text("main")
    assert not visitor.serious()
    cookies = shown.context.cookies()
    assert {(each["secure"], each["httpOnly"], each["sameSite"]) for each in cookies} == {
        (True, True, "Strict")
    }
    assert all(each["name"].startswith("__Host-") for each in cookies)

    shown.get_by_role("button", name="Sign out").click()
    shown.get_by_label("Token of the Karmada API server").wait_for()
    assert not shown.context.cookies()
    shown.go_back()
    assert SHOP not in shown.inner_text("main")


def test_the_quota_of_a_namespace_is_for_those_who_may_list_quotas_there(
    page: Page, chromium: Browser
) -> None:
    client, group = page.plane.client, "policy.karmada.io"
    for namespace in (SHOP, BAKERY):
        client.apply(
            {
                "apiVersion": f"{group}/v1alpha1",
                "kind": "FederatedResourceQuota",
                "metadata": {"name": f"of-{namespace}", "namespace": namespace},
                "spec": {"overall": {"cpu": "96"}},
            }
        )
    developer, operator = page.token("developer"), page.token("operator")

    def status(namespace: str = SHOP) -> int:
        return page.get(developer, f"v1/quotas/{namespace}")[0]

    assert (status(), status(BAKERY), status("default")) == (403, 403, 403)
    assert f"of-{SHOP}" not in page.get(developer, f"n/{SHOP}", Accept="text/html")[1]
    for namespace in (SHOP, BAKERY):
        [found] = json.loads(page.get(operator, f"v1/quotas/{namespace}")[1])["items"]
        assert (found["quota"], found["resource"], found["limit"]) == (f"of-{namespace}", "cpu", "96")

    listing = {"apiGroups": [group], "resources": ["federatedresourcequotas"], "verbs": ["list"]}
    named_role = {"name": "quotas", "namespace": SHOP}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": named_role, "rules": [listing]}
    role_ref = {"apiGroup": RBAC, "kind": "Role", "name": "quotas"}
    client.apply(role)
    client.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": named_role,
            "roleRef": role_ref,
            "subjects": IS_DEVELOPER["subjects"],
        }
    )
    page.plane.wait_for(status, "the quota", until=lambda it: it == 200, timeout=CACHE_SECONDS + 2)
    text = page.get(developer, f"n/{SHOP}", Accept="text/html")[1]
    assert f"of-{SHOP}" in text
    assert BAKERY not in page.get(developer, f"v1/quotas/{SHOP}")[1]
    assert status(BAKERY) == 403
    visitor = Visitor(chromium, page.url, width=320, trusts_all=True)
    visitor.page.context.set_extra_http_headers({"Authorization": f"Bearer {developer}"})
    shown = visitor.visit(f"/n/{SHOP}")
    assert f"of-{SHOP} cpu" in shown.inner_text("#quotas")
    assert visitor.serious() == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320
    visitor.close()

    client.delete(f"/apis/{RBAC}/v1/namespaces/{SHOP}/rolebindings/quotas")
    page.plane.wait_for(status, "the end", until=lambda it: it == 403, timeout=CACHE_SECONDS + 2)
    for namespace in (SHOP, BAKERY):
        client.delete(f"/apis/{group}/v1alpha1/namespaces/{namespace}/federatedresourcequotas/of-{namespace}")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_every_view_of_somebody_who_may_list_clusters_is_without_serious_findings_of_axe(
    page: Page, chromium: Browser, width: int, scheme: Literal["light", "dark"]
) -> None:
    workload = Workload(page.plane, SHOP, f"seen-{width}")
    workload.create(named("sim-a1"), replicas=1, scheduler="default-scheduler").wait_placed({"sim-a1": 1})
    name, token = workload.binding()["metadata"]["name"], page.token("sre")
    page.plane.wait_for(
        lambda: json.loads(page.get(token, "v1/clusters/sim-a1")[1]).get("holds", ()),
        "the binding on the cluster",
        until=lambda it: f"{SHOP}/{name}" in it,
        timeout=30,
    )
    assert all(
        each.startswith(SHOP) for each in json.loads(page.get(token, "v1/clusters/sim-a1")[1])["holds"]
    )
    visitor = Visitor(chromium, page.url, width=width, scheme=scheme, trusts_all=True)
    visitor.page.context.set_extra_http_headers({"Authorization": f"Bearer {token}"})
    for path in (
        "/",
        f"/n/{SHOP}",
        f"/b/{SHOP}/{name}",
        f"/why-not/{SHOP}/{name}?cluster=sim-b1",
        "/clusters",
        "/clusters/sim-a1",
        "/plan",
    ):
        shown = visitor.visit(path)
        assert visitor.serious() == [], path
        assert shown.evaluate("document.documentElement.scrollWidth") <= width, path
    visitor.visit(f"/w/{SHOP}/Deployment/seen-{width}")
    assert visitor.page.url.endswith(f"/b/{SHOP}/{name}")
    visitor.close()


def test_a_link_on_another_site_leads_to_the_page_although_its_cookies_are_strict(
    page: Page, visitor: Visitor, elsewhere: str
) -> None:
    visitor.visit("/", status=401)
    sign_in(visitor, page.token("developer"))
    shown = visitor.page
    shown.get_by_role("button", name="Sign out").wait_for()

    shown.goto(elsewhere)
    shown.get_by_role("link").click()
    shown.wait_for_url(f"{page.url}bindings?namespace={SHOP}")
    shown.get_by_role("button", name="Sign out").wait_for()

    shown.goto(elsewhere)
    shown.get_by_role("button").click()
    shown.wait_for_url(f"{page.url}sign-in")
    assert "another site" in shown.inner_text("body")


@pytest.fixture
def elsewhere(page: Page) -> Iterator[str]:
    """A page of another site, with a link to the page and a form that would sign somebody in as another one."""
    body = (
        f'<a href="{page.url}bindings?namespace={SHOP}">see</a>'
        f'<form action="{page.url}sign-in" method="post"><input type="hidden" name="token" value="{page.token("stranger")}">'
        "<button>win</button></form>"
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()
