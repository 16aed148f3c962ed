"""Makes the responses of all requests: a page, or the same as JSON, and what refuses a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

import orjson

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.state.model import API_VERSION
from karmada_advisor.views.fields import document_fields
from karmada_advisor.web.answer_worker import AnswerWorker, BusyError, TooLongError
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.background import CauseScan
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.quotas import NamespaceQuotas
from karmada_advisor.web.request_query import (
    NO_TOKEN,
    RETRY_SECONDS,
    CursorError,
    CursorPage,
    RequestRefusedError,
)
from karmada_advisor.web.scoped_fleet import SOURCE, ScopedFleets
from karmada_advisor.web.state import PageState, Reveal
from karmada_advisor.web.viewer import EVERYBODY, LIST_CLUSTERS, NOBODY, Viewer
from karmada_pyscheduler.client.reviews import ReviewUnavailableError
from karmada_pyscheduler.http_server.request_guard import (
    AsyncHandler,
    Document,
    HttpRequest,
    HttpResponse,
    RequestRefusal,
)
from karmada_scheduler.structs import IdentityStruct, Struct, field, replace

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
COMPLETED_NAMES: Final = 300
"""Clusters whose names a box completes; in larger fleets the list would be most of the page."""

Routes = dict[str, AsyncHandler]
Page = Callable[[HttpRequest], Awaitable[Document]]
Data = Callable[[HttpRequest], Awaitable[Mapping[str, Any]]]
T = TypeVar("T")


class Responder(IdentityStruct):
    """What handlers have in common.

    Attributes:
        answers: The answers.
        worker: Computes answers that need decisions.
        pages: Renders the pages.
        is_open: Whether everybody who sends a request may see everything.
        audience: Of tokens with which people sign in; "" without sessions.
        reveal: What answers to viewers are computed from.
    """

    answers: Answers
    worker: AnswerWorker
    pages: Pages
    is_open: bool
    audience: str = ""
    reveal: Reveal = Reveal.OWN
    _scoped: ScopedFleets = field(default_factory=ScopedFleets)

    def viewer(self, request: HttpRequest) -> Viewer:
        """Return who sends a request."""
        return request.viewer if isinstance(request.viewer, Viewer) else EVERYBODY if self.is_open else NOBODY

    async def state(self, request: HttpRequest, namespace: str | None = None) -> PageState:
        """Return the objects from which an answer is computed: what the viewer may read.

        Args:
            request: The request.
            namespace: The one that it is about, "" for all; None if it is about those of the viewer.

        Raises:
            RequestRefusedError: They may not list the bindings there.
        """
        viewer, whole = self.viewer(request), self.answers.state
        if viewer.sees_all:
            return whole
        if namespace is not None:
            await viewer.check_namespace(namespace)
        scope = await viewer.scope(self.reveal, namespace or "", whole.contents.index.namespaces)
        return await self._scoped.state(whole, scope)

    async def with_clusters(self, request: HttpRequest) -> PageState:
        """Return what the viewer may read. Raises RequestRefusedError: they may not list Clusters."""
        state = await self.state(request)
        self.check_clusters(state)
        return state

    async def readable_quotas(self, viewer: Viewer, namespace: str) -> NamespaceQuotas | None:
        """Return the quotas of a namespace whose bindings the viewer may list; None if they may not list quotas there."""
        if not namespace or not await viewer.sees_quotas(namespace):
            return None
        found = await self.answers.quotas(namespace)
        return _UNREAD if found.problem and not viewer.sees_all else found

    async def with_quotas(
        self, request: HttpRequest, state: PageState, namespaces: Collection[str]
    ) -> PageState:
        """Return objects with the quotas of some namespaces; as they are if these cannot be read, or nothing is decided."""
        viewer, asked = self.viewer(request), sorted(namespaces) if state.has_clusters else ()
        found = [await self.readable_quotas(viewer, namespace) for namespace in asked]
        if not found or any(answer is None or answer.manifests is None for answer in found):
            return state
        quotas = [manifest for answer in found if answer is not None for manifest in answer.manifests or ()]
        objects = replace(state.contents.objects, quotas=quotas)
        return replace(state, contents=replace(state.contents, objects=objects))

    async def later(self, before: PageState) -> PageState:
        """Return the objects now, as far as objects of before have them."""
        whole = self.answers.state
        return whole if before.scope is None else await self._scoped.state(whole, before.scope)

    def check_clusters(self, state: PageState) -> None:
        """Check that clusters were read, before one is looked up.

        Raises:
            RequestRefusedError: They were not.
        """
        if not state.has_clusters:
            text = f"nothing is judged without clusters: you may not {LIST_CLUSTERS}"
            raise RequestRefusedError(403, text, (LIST_CLUSTERS, ""))

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

        def refused(problem: Exception, request: HttpRequest) -> Document:
            status = _status_of(problem)
            missing = getattr(problem, "missing", None)
            values = self._common(request) | {"status": status, "text": str(problem), "missing": missing}
            return _problem(_html(self.pages.render("problem.html", values), status), request)

        return self._answering(handler, lambda found: found, refused, is_scoped=is_scoped)

    def data(self, handler: Data, *, is_scoped: bool = False) -> AsyncHandler:
        """Return a handler whose fields and problems are JSON; ``is_scoped`` as of ``page``."""
        return self._answering(handler, _json, _refused, is_scoped=is_scoped)

    def _answering(
        self,
        handler: Callable[[HttpRequest], Awaitable[T]],
        answer: Callable[[T], Document],
        refused: Callable[[Exception, HttpRequest], Document],
        *,
        is_scoped: bool,
    ) -> AsyncHandler:
        async def handle(request: HttpRequest) -> Document:
            self.answers.reader.note_request()
            try:
                if not is_scoped:
                    self.viewer(request).check_all()
                if progress := self.answers.reader.progress:
                    raise BusyError(f"Loading: {progress}; this page refreshes automatically.")
                return answer(await handler(request))
            except _PROBLEMS as problem:
                return refused(problem, request)

        return handle

    def rendered(
        self,
        name: str,
        request: HttpRequest,
        state: PageState,
        values: Mapping[str, Any],
        *,
        data: str | None = None,
    ) -> Document:
        """Return a page.

        Args:
            name: The template.
            request: The request.
            state: What it was made of.
            values: The values of the template.
            data: The path of the same as JSON; "" if there is none, None for that of the page below ``/v1``.
        """
        common = self._common(request, state, data=f"/v1{request.target}" if data is None else data)
        return _html(self.pages.render(name, {**common, **values}))

    def binding_rows(self, state: PageState, found: Iterable[IndexedBinding], **options: Any) -> list[str]:
        """Return the rows of a list, as ``Pages`` makes them by options; of the whole fleet with the causes that are known."""
        known = self.answers.background.causes if state.scope is None else CauseScan()
        return self.pages.binding_rows(state.contents, found, cause_of=known.text_of, **options)

    def problem_page(self, refused: RequestRefusal, target: str) -> bytes:
        """Return the page of a refusal: who is not known may sign in, where there are sessions, and goes on to ``target``."""
        if refused.status == 401 and self.audience and "Refresh" not in refused.headers:
            return self.sign_in_page("" if refused.text == NO_TOKEN else refused.text, target)
        values = {"status": refused.status, "text": refused.whole_text, "missing": None}
        return self.pages.render("problem.html", self._common(HttpRequest()) | values)

    def sign_in_page(self, problem: str, target: str) -> bytes:
        """Return the page on which people sign in; nothing that was typed is in it."""
        values = {"problem": problem, "target": target, "audience": self.audience}
        return self.pages.render("sign_in.html", self._common(HttpRequest()) | values)

    def stamp(self, state: PageState, namespace: str = "") -> str:
        """Return what differs after every change of the objects, causes and problems, for those who wait for one.

        Args:
            state: The objects; of a part, changes in a namespace are all that can be waited for.
            namespace: For those who wait for a change in a namespace only; "" for all changes.
        """
        if state.scope is not None:
            return f"{state.contents.index.stamp(namespace):x}" if namespace else ""
        problems = self.answers.background.causes.problems
        if namespace:
            shown: tuple[object, ...] = (state.failure, tuple(state.problems), problems)
            return f"{state.contents.index.stamp(namespace):x}-{hash(shown) & 0xFFFFFFFF:x}"
        made = self.answers.background.survival.made_at
        shown = (self.answers.background.causes, state.failure, tuple(state.problems), problems, made)
        return f"{state.number}-{hash(shown) & 0xFFFFFFFF:x}"

    def _common(
        self, request: HttpRequest, state: PageState | None = None, *, data: str = ""
    ) -> dict[str, Any]:
        """Return what every page shows.

        Args:
            request: The request.
            state: What the page was made of; None for a refusal, which tells nothing about a namespace.
            data: As in ``rendered``.
        """
        viewer, whole = self.viewer(request), self.answers.state
        if state is None and viewer.sees_all:
            state = whole
        scope = request.query.get("namespace", "") if request.target.startswith("/bindings") else ""
        if request.target.startswith("/n/"):
            scope = request.path.get("namespace", "")
        if not viewer.sees_all:
            scope = "" if state is None else scope or request.path.get("namespace", "")
        problems: list[str] = []
        if state is not None and state.scope is None:
            problems = [
                *filter(None, (state.failure,)),
                *state.problems,
                *self.answers.background.causes.problems,
            ]
        return {
            "sees_all": viewer.sees_all,
            "sees_clusters": self.reveal is Reveal.FLEET or LIST_CLUSTERS not in viewer.missing,
            "home": viewer.home,
            "user": viewer.name,
            "has_session": viewer.has_session,
            "path": request.target.partition("?")[0],
            "given": {**request.query, **request.form},
            "data": data,
            "source": SOURCE if state is None else state.source,
            "read_at": whole.read_at,
            "problems": problems,
            "not_judged": () if state is None else state.not_judged,
            "state_number": whole.number,
            "stamp": "" if state is None else self.stamp(state, scope),
            "scope": scope,
        }


def completed_names(state: PageState) -> list[str]:
    """Return the names of clusters that a box completes."""
    return sorted(state.contents.cluster_by_name)[:COMPLETED_NAMES]


def judged(fields: Mapping[str, Any], state: PageState) -> Mapping[str, Any]:
    """Return the fields of an answer, with what is not judged if it was made of a part of the fleet."""
    return fields if state.scope is None else {**fields, "notJudged": list(state.not_judged)}


class HandlerGroup:
    """The handlers of one topic."""

    def __init__(self, responder: Responder) -> None:
        """Answer by ``responder``."""
        self._responder = responder
        self._answers = responder.answers
        self._worker = responder.worker


def fields_by(answer: Callable[[HttpRequest], Awaitable[tuple[Struct, PageState]]]) -> Data:
    """Return a handler of the answer as data; ``answer`` returns also what it was made of."""

    async def fields(request: HttpRequest) -> Mapping[str, Any]:
        found, state = await answer(request)
        return judged(document_fields(found), state)

    return fields


def list_fields(
    kind: str, state: PageState, paging: CursorPage[T], fields: Callable[[T], Any]
) -> Mapping[str, Any]:
    """Return a part of a list as data, with the cursor of the next part; "" at the end."""
    found = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "count": paging.all,
        "after": paging.after,
        "items": [fields(row) for row in paging.rows],
    }
    return judged(found, state)


_UNREAD: Final = NamespaceQuotas(problem="quotas cannot be read at the moment")
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
