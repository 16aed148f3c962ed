"""Pages of lists: rows after or before a cursor, so that a page begins where another has ended whatever has changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from karmada_advisor.web.fleet import ClusterShown
from karmada_advisor.web.indexed_binding import IndexedBinding, RowCursor
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
        at = next((number for number, each in enumerate(found) if each.name == name), None)
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
