"""Signing in with a token, and out."""

from __future__ import annotations

from karmada_advisor.web.authorization import Authorization
from karmada_advisor.web.handlers.responder import SIGN_IN, SIGN_OUT, Responder, Routes
from karmada_advisor.web.sessions import ended
from karmada_pyscheduler.http_server.messages import Document, HttpRequest
from karmada_pyscheduler.http_server.request_guard import RequestRefusal


class SessionHandlers:
    """The handlers of sessions. They are open to everybody, and read nothing of a control plane."""

    def __init__(self, responder: Responder, authorization: Authorization) -> None:
        """Let people in by ``authorization``."""
        self._responder = responder
        self._authorization = authorization

    def routes(self) -> Routes:
        """Return the handler of the page."""
        return {SIGN_IN: self._page}

    def posts(self) -> Routes:
        """Return the handlers of forms."""
        return {SIGN_IN: self._sign_in, SIGN_OUT: self._sign_out}

    async def _page(self, request: HttpRequest) -> Document:
        return self._shown("", local_path(request.query.get("to", "/")), 200)

    async def _sign_in(self, request: HttpRequest) -> Document:
        target = local_path(request.form.get("to", "/"))
        found = await self._authorization.sign_in(request.form.get("token", "").strip(), request.requester)
        if isinstance(found, RequestRefusal):
            return self._shown(found.text, target, found.status)
        return Document(b"", 303, "text/plain", {"Location": target}, found)

    async def _sign_out(self, _: HttpRequest) -> Document:
        headers = {"Location": SIGN_IN, "Clear-Site-Data": '"cache"'}
        return Document(b"", 303, "text/plain", headers, ended())

    def _shown(self, problem: str, target: str, status: int) -> Document:
        return Document(self._responder.sign_in_page(problem, target), status, "text/html")


def local_path(text: str) -> str:
    """Return a path of this page to go to; ``/`` for what may lead elsewhere."""
    is_plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if is_plain and text.startswith("/") and not text.startswith("//") else "/"
