"""Who may not read the page, over a real control plane: foreign tokens, foreign sites, foreign names, slow readers."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from karmada_advisor.web.sessions import Sessions
from tests.e2e.browser import Visitor, started
from tests.e2e.token_page import (
    SHOP,
    Page,
    asked,
    of_platform,
    served,
    sign_in,
    signed_elsewhere,
)
from tests.e2e.workload import Workload, named
from tests.unit.web.site import Site
from tools.controlplane import ControlPlane

HALF_OPEN: Final = 500
ANSWERED_SECONDS: Final = 1.0


@pytest.fixture(scope="module")
def page(controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with served(controlplane, tmp_path_factory) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as found:
        yield found


def _asked(
    page: Page, path: str, headers: Mapping[str, str], *, form: bytes | None = None
) -> tuple[int, str]:
    return asked(page.url + path, authority=page.authority, headers=headers, form=form)


def _cookies(page: Page, token: str) -> list[tuple[str, str]]:
    """Return names and values of the cookies of a session with a token, sealed with the page's own key."""
    sealed = Sessions(page.session_keys, seconds=3600).sealed(token)
    found = [each.partition(";")[0].partition("=")[::2] for each in sealed]
    return [each for each in found if each[1]]


def _header(cookies: list[tuple[str, str]]) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies)}


def test_a_token_of_the_wrong_plane_is_refused_with_the_sentence_about_the_host(page: Page) -> None:
    status, text = page.get(signed_elsewhere(page.token("operator")))
    assert status == 401
    assert "Is it one of the cluster that hosts Karmada" in text


def test_a_session_whose_token_has_expired_gets_the_sign_in_view_and_keeps_the_wanted_address(
    page: Page, chromium: Browser
) -> None:
    ended = signed_elsewhere(page.token("developer"), exp=int(time.time()) - 60)
    visitor = Visitor(chromium, page.url, trusts_all=True)
    visitor.page.context.add_cookies(
        [
            {"name": name, "value": value, "url": page.url, "secure": True}
            for name, value in _cookies(page, ended)
        ]
    )

    visitor.visit(f"/n/{SHOP}?q=a", status=401)
    assert "The token has expired" in visitor.page.inner_text("main")
    sign_in(visitor, page.token("developer"))

    visitor.page.wait_for_url(f"**/n/{SHOP}?q=a")
    visitor.close()


def test_csrf_a_post_with_a_session_needs_the_origin_of_the_page_and_foreign_pages_load_nothing(
    page: Page,
) -> None:
    cookies = _header(_cookies(page, page.token("operator")))
    own = page.url.rstrip("/")
    for path, form in (("sign-out", b"x=y"), ("sign-in", b"token=x"), ("plan", b"without=sim-a1")):
        for origin in ({"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {}):
            assert _asked(page, path, {**cookies, **origin}, form=form)[0] == 403, (path, origin)
        assert _asked(page, path, {**cookies, "Origin": own}, form=form)[0] != 403
    for mode, destination in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")):
        of_fetch = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
        assert _asked(page, "v1/bindings", {**cookies, **of_fetch})[0] == 403
    assert _asked(page, "v1/bindings", cookies)[0] == 200


def test_a_plan_needs_clusters_and_has_bindings_of_its_reader_only(page: Page, chromium: Browser) -> None:
    workloads = [Workload(page.plane, namespace, "planned") for namespace in (SHOP, "default")]
    for workload in workloads:
        workload.create(named("sim-a1"), replicas=2, scheduler="default-scheduler").wait_placed({"sim-a1": 2})

    def plan(account: str) -> tuple[int, str]:
        bearer = {"Authorization": f"Bearer {page.token(account)}"}
        return _asked(page, "v1/plan", bearer, form=b"without=sim-a1")

    status, text = plan("developer")
    assert (status, "you may not list clusters.cluster.karmada.io" in text) == (403, True)
    assert "sim-" not in text
    _, text = page.plane.wait_for(
        lambda: plan("sre"),
        "the plan with the binding",
        until=lambda it: it[0] == 200 and "planned-deployment" in it[1],
        timeout=40,
    )
    found = json.loads(text)
    assert {row["namespace"] for row in found["bindings"]} == {SHOP}
    assert any("bindings outside of" in line for line in found["notJudged"])

    visitor = Visitor(chromium, page.url, width=320, scheme="dark", trusts_all=True)
    visitor.page.context.set_extra_http_headers({"Authorization": f"Bearer {page.token('sre')}"})
    shown = visitor.visit(f"/plan?scale={SHOP}/planned=3")
    assert "Not judged: " in shown.inner_text("#not-judged")
    assert visitor.serious() == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320
    visitor.close()
    for workload in workloads:  # The namespaces are shared with other tests of this process.
        workload.delete()


def test_rebinding_a_foreign_host_is_refused_on_every_route(page: Page, tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {page.token('operator')}"}
    routes = [re.sub(r"\{\w+\}", "x", each) for each in Site(tmp_path).routes]
    assert len(routes) > 30
    for path in routes:
        for host in ("attacker.example", "attacker.example:443"):
            status, _ = _asked(page, path.lstrip("/"), {**bearer, "Host": host})
            assert status == 421, path
    assert _asked(page, "v1/bindings", {**bearer, "X-Forwarded-Host": "attacker.example"})[0] == 200


def test_slow_readers_with_half_sent_requests_keep_nobody_from_reading(page: Page) -> None:
    address = urlsplit(page.url)
    context = ssl.create_default_context(cafile=str(page.authority.certificate))
    token = page.token("operator")
    with ExitStack() as stack:
        for _ in range(HALF_OPEN):
            plain = socket.create_connection((address.hostname, address.port), 10)
            half = stack.enter_context(context.wrap_socket(plain, server_hostname=address.hostname))
            half.sendall(b"GET / HTTP/1.1\r\nHost:")
        for _ in range(3):
            began = time.monotonic()
            assert page.get(token, "v1/namespaces")[0] == 200
            took = time.monotonic() - began
        assert took < ANSWERED_SECONDS


def test_no_secrets_no_part_of_a_token_or_cookie_is_in_a_log_metric_or_command_line(page: Page) -> None:
    good, bad = page.token("operator"), signed_elsewhere(page.token("operator"))
    cookies = _cookies(page, good)
    page.get(good)
    page.get(bad)
    _asked(page, "v1/bindings", _header(cookies))
    status, metrics = of_platform(page.metrics, "metrics")
    assert status == 200

    commands = [_read(each / "cmdline") for each in Path("/proc").glob("[0-9]*")]
    written = "\n".join([page.log.read_text(), page.audit.read_text(), metrics, *commands])

    users = [json.loads(line)["user"] for line in page.audit.read_text().splitlines()]
    assert f"system:serviceaccount:{SHOP}:operator" in users
    for secret in (*good.split(".")[1:], *bad.split(".")[1:], *(value for _, value in cookies)):
        for start in range(0, len(secret) - 24, 24):
            assert secret[start : start + 24] not in written


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # the process has ended
        return ""
