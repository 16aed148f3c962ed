"""The requests: each path has a page and the same as JSON below ``/v1``."""

from __future__ import annotations

from functools import partial
from typing import Final

from karmada_advisor.web.answer_worker import AnswerWorker
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.authorization import Authorization
from karmada_advisor.web.handlers.bindings import BindingHandlers
from karmada_advisor.web.handlers.changes import WhatIfHandlers
from karmada_advisor.web.handlers.decisions import DecisionHandlers
from karmada_advisor.web.handlers.fleet import FleetHandlers
from karmada_advisor.web.handlers.responder import SIGN_IN, SIGN_OUT, Responder, Routes
from karmada_advisor.web.metrics import CONTENT_TYPE
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.sessions import ended
from karmada_advisor.web.state import Reveal
from karmada_pyscheduler.http_server.request_guard import Document, HttpRequest, RequestRefusal
from karmada_scheduler.structs import IdentityStruct

PROBES: Final = frozenset({"/healthz", "/readyz"})
_ICON: Final = "/favicon.ico"


class Handlers(IdentityStruct):
    """All paths.

    Attributes:
        answers: The answers.
        worker: Computes answers that need decisions.
        pages: Renders the pages.
        is_open: Whether everybody who sends a request may see everything, and why the page is not ready.
        has_probes: Whether probes are answered here, not on another address.
        has_metrics: Whether metrics are answered here; without ``is_open`` they never are.
        sessions: With whom people sign in; None where they cannot.
        reveal: What answers to viewers who may not see everything are computed from.
    """

    answers: Answers
    worker: AnswerWorker
    pages: Pages
    is_open: bool = True
    has_probes: bool = True
    has_metrics: bool = True
    sessions: Authorization | None = None
    reveal: Reveal = Reveal.OWN

    def __post_init__(self) -> None:
        audience = "" if self.sessions is None else self.sessions.audience
        responder = Responder(self.answers, self.worker, self.pages, self.is_open, audience, self.reveal)
        self._sessions = None if self.sessions is None else SessionHandlers(responder, self.sessions)
        self._changes = WhatIfHandlers(responder)
        parts = FleetHandlers(responder), BindingHandlers(responder), DecisionHandlers(responder)
        self._parts = (*parts, self._changes)
        self.problem_page = responder.problem_page

    def routes(self) -> Routes:
        """Return the handlers by path."""
        routes: Routes = {}
        if self.has_probes:
            routes |= {"/healthz": _healthy, "/readyz": self._ready}
        if self.has_metrics and self.is_open:
            routes["/metrics"] = self._metrics
        for part in self._parts:
            routes |= part.routes()
        if self._sessions is not None:
            routes |= self._sessions.routes()
        for file, (content, type_) in self.pages.static.items():
            routes[f"{self.pages.static_path}/{file}"] = partial(_static, content, type_)
        icon, type_ = self.pages.static["icon.svg"]
        routes[_ICON] = partial(_static, icon, type_)
        return routes

    def is_silent(self, route: str) -> bool:
        """Return whether a path tells nothing about a control plane, so that the audit log leaves it out."""
        return route in PROBES or route == _ICON or route.startswith(f"{self.pages.static_path}/")

    def posts(self) -> Routes:
        """Return the handlers of questions that are too long for an address, by path."""
        return self._changes.posts() | ({} if self._sessions is None else self._sessions.posts())

    def is_for_everybody(self, path: str) -> bool:
        """Return whether a path is for everybody: files of the page, and where people sign in and out."""
        is_session = self._sessions is not None and path in {SIGN_IN, SIGN_OUT}
        return is_session or (path not in PROBES and self.is_silent(path))

    def not_ready(self) -> str | None:
        """Return why the page is not ready, as far as everybody may know; None if it is."""
        failure = self.answers.reader.progress or self.answers.state.failure
        return (failure if self.is_open else "not ready") if failure else None

    async def _ready(self, _: HttpRequest) -> Document:
        problem = self.not_ready()
        return Document((problem or "ok").encode(), 503 if problem else 200, "text/plain")

    async def _metrics(self, _: HttpRequest) -> Document:
        return Document(self.answers.metrics, content_type=CONTENT_TYPE)


async def _healthy(_: HttpRequest) -> Document:
    return Document(b"ok", content_type="text/plain")


async def _static(content: bytes, type_: str, _: HttpRequest) -> Document:
    return Document(
        content, content_type=type_, headers={"Cache-Control": "private, max-age=31536000, immutable"}
    )


class SessionHandlers(IdentityStruct):
    """The handlers of sessions. They are open to everybody, and read nothing of a control plane."""

    responder: Responder
    authorization: Authorization

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
        found = await self.authorization.sign_in(request.form.get("token", "").strip(), request.requester)
        if isinstance(found, RequestRefusal):
            return self._shown(found.text, target, found.status)
        return Document(b"", 303, "text/plain", {"Location": target}, found)

    async def _sign_out(self, _: HttpRequest) -> Document:
        headers = {"Location": SIGN_IN, "Clear-Site-Data": '"cache"'}
        return Document(b"", 303, "text/plain", headers, ended())

    def _shown(self, problem: str, target: str, status: int) -> Document:
        return Document(self.responder.sign_in_page(problem, target), status, "text/html")


def local_path(text: str) -> str:
    """Return a path of this page to go to; ``/`` for what may lead elsewhere."""
    is_plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if is_plain and text.startswith("/") and not text.startswith("//") else "/"
