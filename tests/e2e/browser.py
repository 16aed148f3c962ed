"""A real Chromium that notes everything a page must not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request

from tools.web_page.screenshots import browser, chromium

_SERIOUS = {"serious", "critical"}
_MILLISECONDS = 120_000
"""A busy machine is slow, and not wrong."""

_WATCH = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI}`);
});
"""


@contextmanager
def started() -> Iterator[Browser]:
    """Start the browser; skip where there is none."""
    if not chromium():
        pytest.skip("there is no Chromium: `make chromium` installs Debian's")
    with browser() as found:
        yield found


class Visitor:
    """A reader in a tab of their own."""

    def __init__(
        self,
        started: Browser,
        base: str,
        *,
        javascript: bool = True,
        width: int = 1200,
        scheme: Literal["light", "dark"] = "light",
        trusts_all: bool = False,
    ) -> None:
        """Open a tab; with ``trusts_all``, the certificate of the page may be of an unknown authority."""
        self._base = base.rstrip("/")
        self._context = started.new_context(
            java_script_enabled=javascript,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            ignore_https_errors=trusts_all,
        )
        self._context.set_default_timeout(_MILLISECONDS)
        self._refused: set[str] = set()
        self.page: Page = self._context.new_page()
        self.faults: list[str] = []
        if javascript:
            self.page.add_init_script(_WATCH)
        self.page.on("console", self._said)
        self.page.on("pageerror", self._failed)
        self.page.on("request", self._requested)

    def _said(self, message: ConsoleMessage) -> None:
        is_expected = message.location["url"] in self._refused
        if message.type in {"error", "warning"} and not is_expected:
            self.faults.append(message.text)

    def _failed(self, error: Error) -> None:
        self.faults.append(str(error))

    def _requested(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self._base).netloc:
            self.faults.append(f"a foreign request: {request.url}")

    def visit(self, path: str, *, status: int = 200) -> Page:
        """Open a path, which has to be answered with this status."""
        url = self._base + path
        if status >= 400:
            self._refused.add(url)
        answer = self.page.goto(url)
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status} {self.page.locator('main').inner_text()}"
        return self.page

    def serious(self) -> list[str]:
        """Return what axe calls serious on this page, and where."""
        found = Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        return [
            f"{each['id']}: {[node['target'] for node in each['nodes']][:3]}"
            for each in found
            if each["impact"] in _SERIOUS
        ]

    def close(self) -> None:
        """Close the tab."""
        self._context.close()
