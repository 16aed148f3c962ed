"""Signing in with a token, and out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from karmada_advisor.web.authorization import Authorization
from karmada_advisor.web.handlers.responder import SIGN_IN, SIGN_OUT, Responder, Routes
from karmada_advisor.web.sessions import ended
from karmada_scheduler.http_server.messages import Document, HttpRequest
from karmada_scheduler.http_server.request_guard import RequestRates, RequestRefusal
from karmada_scheduler.rate_limit import TokenBucket

_MINUTE: Final = 60.0
_FAILED: Final = 60
"""Attempts to sign in that fail, in a minute, of all together; the API server is asked no more then."""
_FAILED_OF_ONE: Final = 10


class SessionHandlers:
    """The handlers of sessions. They are open to everybody, and read nothing of a control plane."""

    def __init__(
        self,
        responder: Responder,
        authorization: Authorization,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let people in by ``authorization``; ``clock`` returns seconds."""
        self._responder = responder
        self._authorization = authorization
        self._clock = clock
        self._failed = TokenBucket(_FAILED / _MINUTE, _FAILED, clock())
        self._failed_of = RequestRates(_FAILED_OF_ONE / _MINUTE, _FAILED_OF_ONE)

    def routes(self) -> Routes:
        """Return the handler of the page."""
        return {SIGN_IN: self._page}

    def posts(self) -> Routes:
        """Return the handlers of forms."""
        return {SIGN_IN: self._sign_in, SIGN_OUT: self._sign_out}

    async def _page(self, request: HttpRequest) -> Document:
        return self._shown("", local_path(request.query.get("to", "/")), 200)

    async def _sign_in(self, request: HttpRequest) -> Document:
        target, requester = local_path(request.form.get("to", "/")), request.requester
        if not self._may_try(requester):
            return self._shown("Too many attempts have failed. Try again in a minute.", target, 429)
        found = await self._authorization.sign_in(request.form.get("token", "").strip())
        if isinstance(found, RequestRefusal):
            if found.status == 401:
                self._has_failed(requester)
            return self._shown(found.text, target, found.status)
        return Document(b"", 303, "text/plain", {"Location": target}, found)

    async def _sign_out(self, _: HttpRequest) -> Document:
        headers = {"Location": SIGN_IN, "Clear-Site-Data": '"cache"'}
        return Document(b"", 303, "text/plain", headers, ended())

    def _shown(self, problem: str, target: str, status: int) -> Document:
        return Document(self._responder.sign_in_page(problem, target), status, "text/html")

    def _may_try(self, requester: str) -> bool:
        now = self._clock()
        return self._failed.allows(now) and self._failed_of.allows(requester, now)

    def _has_failed(self, requester: str) -> None:
        now = self._clock()
        self._failed.take(now)
        self._failed_of.take(requester, now)


def local_path(text: str) -> str:
    """Return a path of this page to go to; ``/`` for what may lead elsewhere."""
    is_plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if is_plain and text.startswith("/") and not text.startswith("//") else "/"
