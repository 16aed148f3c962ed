"""Makes the responses of all requests: a page, or the same as JSON, and what refuses a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from karmada_advisor.explain.model import API_VERSION, Explanation
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.computing import BusyError, Computer, TooLongError
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.paging import CursorError, CursorPage
from karmada_advisor.web.request_query import RequestRefusedError
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.http_server.messages import AsyncHandler, Document, HttpRequest

COMPLETED_NAMES: Final = 300
"""Clusters whose names a box completes; in larger fleets the list would be most of the page."""

_RETRY_SECONDS: Final = 2
"""When a request that was refused because of others is sent again."""

Routes = dict[str, AsyncHandler]
Page = Callable[[HttpRequest], Awaitable[Document]]
Data = Callable[[HttpRequest], Awaitable[Mapping[str, Any]]]
T = TypeVar("T")


class Responder:
    """What handlers have in common."""

    def __init__(self, answers: Answers, computer: Computer, pages: Pages) -> None:
        """Answer requests from ``answers``; ``computer`` runs the functions that take decisions."""
        self.answers = answers
        self.computer = computer
        self._pages = pages

    def page(self, handler: Page) -> AsyncHandler:
        """Return a handler whose problems are pages."""

        async def handle(request: HttpRequest) -> Document:
            self.answers.seen()
            try:
                self._check_progress()
                return await handler(request)
            except _PROBLEMS as problem:
                status = _status_of(problem)
                values = self._common(request) | {"status": status, "text": str(problem)}
                return _problem(_html(self._pages.render("problem.html", values), status), request)

        return handle

    def data(self, handler: Data) -> AsyncHandler:
        """Return a handler whose fields and problems are JSON."""

        async def handle(request: HttpRequest) -> Document:
            self.answers.seen()
            try:
                self._check_progress()
                return _json(await handler(request))
            except _PROBLEMS as problem:
                found = _json({"error": {"message": str(problem)}}, _status_of(problem))
                return _problem(found, request)

        return handle

    def rendered(self, name: str, request: HttpRequest, values: Mapping[str, Any], *, data: str) -> Document:
        """Return a page.

        Args:
            name: The template.
            request: The request.
            values: The values of the template.
            data: The path of the same as JSON; "" if there is none.
        """
        return _html(self._pages.render(name, {**self._common(request, data=data), **values}))

    def problem_page(self, status: int, text: str) -> bytes:
        """Return the page of a refusal."""
        return self._pages.render(
            "problem.html", self._common(HttpRequest()) | {"status": status, "text": text}
        )

    def stamp(self, namespace: str = "") -> str:
        """Return what differs after every change of the objects, causes and problems, for those who wait for one.

        Args:
            namespace: For those who wait for a change in a namespace only; "" for all changes.
        """
        state, problems = self.answers.state, self.answers.problems
        if namespace:
            shown: tuple[object, ...] = (state.failure, tuple(state.problems), problems)
            return f"{state.contents.index.stamp(namespace):x}-{hash(shown) & 0xFFFFFFFF:x}"
        made = self.answers.survival.made_at
        shown = (self.answers.causes, state.failure, tuple(state.problems), problems, made)
        return f"{state.number}-{hash(shown) & 0xFFFFFFFF:x}"

    def completed_names(self) -> list[str]:
        """Return the names of clusters that a box completes."""
        return sorted(self.answers.state.contents.cluster_by_name)[:COMPLETED_NAMES]

    def _check_progress(self) -> None:
        """Refuse a request until the objects are complete: a part of them would be a wrong answer."""
        if progress := self.answers.progress:
            raise BusyError(f"The page is starting: {progress}. It appears by itself.")

    def _common(self, request: HttpRequest, *, data: str = "") -> dict[str, Any]:
        """Return what every page shows; ``data`` as in ``rendered``."""
        state = self.answers.state
        scope = request.query.get("namespace", "") if request.target.startswith("/bindings") else ""
        return {
            "path": request.target.partition("?")[0],
            "given": {**request.query, **request.form},
            "data": data,
            "source": state.source,
            "read_at": state.read_at,
            "problems": [*filter(None, (state.failure,)), *state.problems, *self.answers.problems],
            "state_number": state.number,
            "stamp": self.stamp(scope),
            "scope": scope,
        }


def fields_by(answer: Callable[[HttpRequest], Awaitable[Explanation | WhyNot | WhyNotCluster]]) -> Data:
    """Return a handler of the answer as data."""

    async def fields(request: HttpRequest) -> Mapping[str, Any]:
        return document_fields(await answer(request))

    return fields


def list_fields(kind: str, paging: CursorPage[T], fields: Callable[[T], Any]) -> Mapping[str, Any]:
    """Return a part of a list as data, with the cursor of the next part; "" at the end."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "count": paging.all,
        "after": paging.after,
        "items": [fields(each) for each in paging.rows],
    }


_PROBLEMS: Final = (RequestRefusedError, CursorError, BusyError, NoAnswerError, TooLongError)


def _status_of(problem: Exception) -> int:
    if isinstance(problem, RequestRefusedError):
        return problem.status
    if isinstance(problem, CursorError):
        return 400
    return 503 if isinstance(problem, BusyError) else 422


def _problem(document: Document, request: HttpRequest) -> Document:
    """Return the document of a problem: the browser asks again by itself where the answer comes later."""
    if document.status != 503:
        return document
    again = {"Retry-After": str(_RETRY_SECONDS)}
    refresh = {"Refresh": str(_RETRY_SECONDS)} if request.method == "GET" else {}
    return replace(document, headers=again | refresh)


def _html(body: bytes, status: int = 200) -> Document:
    return Document(body, status, "text/html")


def _json(fields: Mapping[str, Any], status: int = 200) -> Document:
    return Document(orjson.dumps(fields, option=orjson.OPT_INDENT_2) + b"\n", status)
