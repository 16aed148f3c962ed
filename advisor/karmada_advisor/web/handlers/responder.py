"""Makes the responses of all requests: a page, or the same as JSON, and what refuses a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import orjson

from karmada_advisor.explain.model import API_VERSION
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.views.fields import document_fields
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.computing import Computer
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.jobs import BusyError, TooLongError
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.paging import CursorError, CursorPage
from karmada_advisor.web.request_query import NO_TOKEN, RETRY_SECONDS, RequestRefusedError
from karmada_advisor.web.seen import SeesCluster, clusters_named_by
from karmada_advisor.web.viewer import EVERYBODY, NOBODY, Viewer
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.client.reviews import ReviewUnavailableError
from karmada_scheduler.http_server.messages import AsyncHandler, Document, HttpRequest, HttpResponse
from karmada_scheduler.http_server.request_guard import RequestRefusal
from karmada_scheduler.structs import Struct, replace

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
COMPLETED_NAMES: Final = 300
"""Clusters whose names a box completes; in larger fleets the list would be most of the page."""

Routes = dict[str, AsyncHandler]
Page = Callable[[HttpRequest], Awaitable[Document]]
Data = Callable[[HttpRequest], Awaitable[Mapping[str, Any]]]
T = TypeVar("T")


class Responder:
    """What handlers have in common."""

    def __init__(
        self, answers: Answers, computer: Computer, pages: Pages, *, is_open: bool, audience: str = ""
    ) -> None:
        """Answer requests.

        Args:
            answers: The answers.
            computer: Runs the functions that take decisions.
            pages: Renders the pages.
            is_open: Whether everybody who sends a request may see everything.
            audience: Of tokens with which people sign in; "" without sessions.
        """
        self._audience = audience
        self.has_sessions = bool(audience)
        self._anonymous = EVERYBODY if is_open else NOBODY
        self.answers = answers
        self.computer = computer
        self._pages = pages

    def viewer(self, request: HttpRequest) -> Viewer:
        """Return who sends a request."""
        return request.viewer if isinstance(request.viewer, Viewer) else self._anonymous

    def sees_clusters_of(self, request: HttpRequest, key: BindingKey) -> SeesCluster:
        """Return which clusters a viewer may see with a binding that they may see."""
        if self.viewer(request).sees_clusters:
            return lambda _: True
        contents = self.answers.state.contents
        found = contents.index.get(key)
        named = frozenset() if found is None else clusters_named_by(found.binding, contents.row(found).state)
        return named.__contains__

    def checked(self, handler: AsyncHandler) -> AsyncHandler:
        """Return a handler that checks itself what the viewer may see; its problems are JSON."""

        async def handle(request: HttpRequest) -> HttpResponse | Document:
            try:
                return await handler(request)
            except _PROBLEMS as problem:
                return _refused(problem, request)

        return handle

    def page(self, handler: Page, *, is_scoped: bool = False) -> AsyncHandler:
        """Return a handler whose problems are pages.

        Args:
            handler: Makes the page.
            is_scoped: Whether it checks itself what the viewer may see; else they have to be allowed to see everything.
        """

        async def handle(request: HttpRequest) -> Document:
            self.answers.seen()
            try:
                self._check(request, is_scoped=is_scoped)
                return await handler(request)
            except _PROBLEMS as problem:
                status = _status_of(problem)
                values = self._common(request) | {"status": status, "text": str(problem)}
                return _problem(_html(self._pages.render("problem.html", values), status), request)

        return handle

    def data(self, handler: Data, *, is_scoped: bool = False) -> AsyncHandler:
        """Return a handler whose fields and problems are JSON; ``is_scoped`` as of ``page``."""

        async def handle(request: HttpRequest) -> Document:
            self.answers.seen()
            try:
                self._check(request, is_scoped=is_scoped)
                return _json(await handler(request))
            except _PROBLEMS as problem:
                return _refused(problem, request)

        return handle

    def rendered(self, name: str, request: HttpRequest, values: Mapping[str, Any], *, data: str) -> Document:
        """Return a page.

        Args:
            name: The template.
            request: The request.
            values: The values of the template.
            data: The path of the same as JSON; "" if there is none.
        """
        common = self._common(request, data=data, own=request.path.get("namespace", ""))
        return _html(self._pages.render(name, {**common, **values}))

    def binding_rows(
        self, found: Iterable[IndexedBinding], *, here: str = "", of_namespace: bool = False
    ) -> list[str]:
        """Return the rows of a list of bindings as HTML; see ``Pages.binding_rows``."""
        contents = self.answers.state.contents
        return self._pages.binding_rows(contents, found, here=here, of_namespace=of_namespace)

    def problem_page(self, refused: RequestRefusal, target: str) -> bytes:
        """Return the page of a refusal: who is not known may sign in, where there are sessions, and goes on to ``target``."""
        if refused.status == 401 and self.has_sessions and "Refresh" not in refused.headers:
            return self.sign_in_page("" if refused.text == NO_TOKEN else refused.text, target)
        values = {"status": refused.status, "text": refused.whole_text}
        return self._pages.render("problem.html", self._common(HttpRequest()) | values)

    def sign_in_page(self, problem: str, target: str) -> bytes:
        """Return the page on which people sign in; nothing that was typed is in it."""
        values = {"problem": problem, "target": target, "audience": self._audience}
        return self._pages.render("sign_in.html", self._common(HttpRequest()) | values)

    def stamp(self, namespace: str = "", *, sees_all: bool = True) -> str:
        """Return what differs after every change of the objects, causes and problems, for those who wait for one.

        Args:
            namespace: For those who wait for a change in a namespace only; "" for all changes.
            sees_all: Whether they see problems; others learn nothing but changes in the namespace.
        """
        state, problems = self.answers.state, self.answers.problems
        if not sees_all:
            return f"{state.contents.index.stamp(namespace):x}" if namespace else ""
        if namespace:
            shown: tuple[object, ...] = (state.failure, tuple(state.problems), problems)
            return f"{state.contents.index.stamp(namespace):x}-{hash(shown) & 0xFFFFFFFF:x}"
        made = self.answers.survival.made_at
        shown = (self.answers.causes, state.failure, tuple(state.problems), problems, made)
        return f"{state.number}-{hash(shown) & 0xFFFFFFFF:x}"

    def completed_names(self) -> list[str]:
        """Return the names of clusters that a box completes."""
        return sorted(self.answers.state.contents.cluster_by_name)[:COMPLETED_NAMES]

    def _check(self, request: HttpRequest, *, is_scoped: bool) -> None:
        """Refuse a request of somebody who may not see everything, and each until the objects are complete."""
        if not is_scoped:
            self.viewer(request).check_all()
        if progress := self.answers.progress:
            raise BusyError(f"The page is starting: {progress}. It appears by itself.")

    def _common(self, request: HttpRequest, *, data: str = "", own: str | None = None) -> dict[str, Any]:
        """Return what every page shows.

        Args:
            request: The request.
            data: As in ``rendered``.
            own: The namespace of the path, which the viewer may see; None for a refusal, which tells nothing about a namespace.
        """
        state, sees_all = self.answers.state, self.viewer(request).sees_all
        scope = request.query.get("namespace", "") if request.target.startswith("/bindings") else ""
        if request.target.startswith("/n/"):
            scope = own or ""
        if not sees_all:
            scope = "" if own is None else scope or own
        problems = [*filter(None, (state.failure,)), *state.problems, *self.answers.problems]
        return {
            "sees_all": sees_all,
            "sees_clusters": self.viewer(request).sees_clusters,
            "home": self.viewer(request).home,
            "user": self.viewer(request).name,
            "has_session": self.viewer(request).has_session,
            "path": request.target.partition("?")[0],
            "given": {**request.query, **request.form},
            "data": data,
            "source": state.source if sees_all else "the Karmada API server",
            "read_at": state.read_at,
            "problems": problems if sees_all else [],
            "state_number": state.number,
            "stamp": self.stamp(scope, sees_all=sees_all),
            "scope": scope,
        }


class HandlerGroup:
    """The handlers of one topic."""

    def __init__(self, responder: Responder) -> None:
        """Answer by ``responder``."""
        self._responder = responder
        self._answers = responder.answers
        self._computer = responder.computer


def fields_by(answer: Callable[[HttpRequest], Awaitable[Struct]]) -> Data:
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


_LATER: Final = (BusyError, ReviewUnavailableError)
_PROBLEMS: Final = (RequestRefusedError, CursorError, NoAnswerError, TooLongError, *_LATER)


def _status_of(problem: Exception) -> int:
    if isinstance(problem, RequestRefusedError):
        return problem.status
    if isinstance(problem, CursorError):
        return 400
    return 503 if isinstance(problem, _LATER) else 422


def _problem(document: Document, request: HttpRequest) -> Document:
    """Return the document of a problem: the browser asks again by itself where the answer comes later."""
    if document.status != 503:
        return document
    again = {"Retry-After": str(RETRY_SECONDS)}
    refresh = {"Refresh": str(RETRY_SECONDS)} if request.method == "GET" else {}
    return replace(document, headers=again | refresh)


def _refused(problem: Exception, request: HttpRequest) -> Document:
    """Return a problem as JSON."""
    return _problem(_json({"error": {"message": str(problem)}}, _status_of(problem)), request)


def _html(body: bytes, status: int = 200) -> Document:
    return Document(body, status, "text/html")


def _json(fields: Mapping[str, Any], status: int = 200) -> Document:
    return Document(orjson.dumps(fields, option=orjson.OPT_INDENT_2) + b"\n", status)
