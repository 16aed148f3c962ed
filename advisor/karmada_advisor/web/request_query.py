"""What a request asks for: its query, the form of a plan, and pages of lists.

A page begins after or before a cursor, so where another has ended whatever has changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from karmada_advisor.web.decisions import DecisionRow
from karmada_advisor.web.fleet import ClusterFilter, ClusterShown
from karmada_advisor.web.indexed_binding import Filter, IndexedBinding, RowCursor
from karmada_advisor.whatif.survive.loss import Loss
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.http_server.request_guard import HttpRequest
from karmada_scheduler.structs import Struct

ROWS: Final = 100
"""Rows of a table on one page."""

MAX_LIMIT: Final = 500
"""Items of a list as JSON at once."""

_LAST_KIND: Final = "\U0010ffff"

T = TypeVar("T")


class CursorError(ValueError):
    """A cursor that cannot be used; the text says why."""


class CursorPage(Struct, Generic[T], frozen=True):
    """Some rows of a list.

    Attributes:
        rows: At most as many as were asked for.
        first: The number of the first one in the list, from 1; 0 without any.
        last: The number of the last one.
        all: How many the list has.
        before: The cursor of the page before this one; "" if there is none.
        after: The cursor of the page after it; "" if there is none.
    """

    rows: Sequence[T]
    first: int
    last: int
    all: int
    before: str
    after: str


class AskedPage(Struct, frozen=True):
    """Which rows of a list.

    Attributes:
        after: The cursor of the last row of the page before; "" for the first page.
        before: The cursor of the first row of the page after, if rows are asked for backwards; else "".
        limit: How many.
    """

    after: str = ""
    before: str = ""
    limit: int = ROWS


def bindings_page(found: Sequence[IndexedBinding], asked: AskedPage) -> CursorPage[IndexedBinding]:
    """Return a page of bindings in the order of lists. Raises CursorError."""
    start = 0
    try:
        if asked.after:
            start = bisect_right(found, (*RowCursor.parse(asked.after), _LAST_KIND))
        elif asked.before:
            start = bisect_left(found, RowCursor.parse(asked.before)) - asked.limit
    except ValueError as error:
        raise CursorError(str(error)) from error
    return _page(found, start, asked.limit, lambda row: str(row.cursor))


def clusters_page(found: Sequence[ClusterShown], asked: AskedPage) -> CursorPage[ClusterShown]:
    """Return a page of clusters in any order; cursors are names. Raises CursorError."""
    start, name = 0, asked.after or asked.before
    if name:
        at = next((number for number, cluster in enumerate(found) if cluster.name == name), None)
        if at is None:
            raise CursorError(f"cluster {name}, at which the page begins, is not in the list any more")
        start = at + 1 if asked.after else at - asked.limit
    return _page(found, start, asked.limit, lambda row: row.name)


def _page(found: Sequence[T], start: int, limit: int, cursor_of: Callable[[T], str]) -> CursorPage[T]:
    if start >= len(found):  # what came after the cursor is gone
        start = len(found) - limit
    start = max(0, start)
    rows = found[start : start + limit]
    last = start + len(rows)
    return CursorPage(
        rows,
        min(start + 1, last),
        last,
        len(found),
        cursor_of(rows[0]) if start else "",
        cursor_of(rows[-1]) if last < len(found) else "",
    )


F = TypeVar("F", Filter, ClusterFilter)

RETRY_SECONDS: Final = 2
"""When a request that was refused for a moment is sent again."""

NO_TOKEN: Final = "The page needs a token of the Karmada API server."  # noqa: S105 (a sentence)

_CHANGES: Final = ("without", "cordon", "uncordon", "scale")


class AskedChange(Struct, frozen=True):
    """A change to plan.

    Attributes:
        text: Policies or other objects, as YAML; "" for none.
        flags: Further parts, as the command has them: ``--without=eu-west-3``.
    """

    text: str = ""
    flags: tuple[str, ...] = ()


class RequestRefusedError(Exception):
    """A request that cannot be answered; the text says why."""

    def __init__(self, status: int, text: str, missing: tuple[Permission, str] | None = None) -> None:
        """Take the HTTP status and a sentence, and the permission that is missing in a namespace, "" for all."""
        super().__init__(text)
        self.status, self.missing = status, missing


def loss_of(request: HttpRequest) -> Loss:
    """Return the world that a request asks about.

    Raises:
        RequestRefusedError: There is no such world.
    """
    asked = request.query.get("loss", Loss.GONE.value)
    try:
        return Loss(asked)
    except ValueError:
        words = ", ".join(loss.value for loss in Loss)
        raise RequestRefusedError(400, f"loss must be one of {words}") from None


def change_of(request: HttpRequest) -> AskedChange:
    """Return the change of a request: the text of a policy, and flags as the command has them."""
    if "policy" in request.query:
        text = (
            "send a policy in the body of a POST request, so that no history and no log has it in an address"
        )
        raise RequestRefusedError(400, text)
    given = {**request.query, **request.form}
    flags = [f"--{name}={value}" for name in _CHANGES if (value := given.get(name, "").strip())]
    return AskedChange(request.form.get("policy", "").replace("\r", "").strip(), tuple(flags))


def page_of(request: HttpRequest) -> AskedPage:
    """Return which rows of a list a request asks for."""
    return AskedPage(
        request.query.get("after", ""),
        request.query.get("before", ""),
        number_of(request, "limit", ROWS, most=MAX_LIMIT),
    )


def filter_of(kind: type[F], request: HttpRequest, **known: str) -> F:
    """Return a filter with the fields of the query; ``q`` is its text, and ``known`` are fields that the query does not say."""
    names = {name: "q" if name == "text" else name for name in kind.__struct_fields__}
    given = {name: request.query.get(parameter, "").strip() for name, parameter in names.items()}
    return kind(**given | known)


def is_wanted(row: DecisionRow, request: HttpRequest) -> bool:
    """Return whether a request asks for a decision."""
    text = request.query.get("q", "").strip().lower()
    namespace, reason = request.query.get("namespace", ""), request.query.get("reason", "")
    cluster = request.query.get("cluster", "").strip()
    return (
        (not text or text in str(row).lower())
        and (not namespace or row.namespace == namespace)
        and (not reason or row.reason == reason)
        and (not cluster or any(target.name == cluster for target in row.placement or ()))
    )


def number_of(request: HttpRequest, name: str, default: int, *, most: int = 9_999_999) -> int:
    """Return a number of the query. Raises RequestRefusedError."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 8 and 0 < int(text) <= most):
        raise RequestRefusedError(400, f"{name} must be a number from 1 to {most}")
    return int(text)
