"""Requests to watch: where a watch begins, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tools.apiserver_model import lists, messages, watches
from tools.apiserver_model.kinds import Target
from tools.apiserver_model.requests import MetadataForm, Request, metadata_form
from tools.apiserver_model.store import State, Write, ordered
from tools.apiserver_model.watches import OnLine, Watch, Watches

_TRUE: Final = ("true", "1")


@dataclass(slots=True)
class WatchRules:
    """How a server processes watches from unknown revisions, in which servers differ.

    Attributes:
        refuses_future: Whether a watch from a revision that is not there yet is refused with 504. Else it is accepted, and
            silent until later revisions come, as of kube-apiserver.
        refuses_expired: Whether a watch from an expired revision is refused with the status 410. Else it is accepted, gets
            an ERROR and ends, as of kube-apiserver.
    """

    refuses_future: bool = False
    refuses_expired: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """What a server knows about a kind.

    Attributes:
        revision: The revision of its state.
        oldest: The oldest revision that a watch can begin at.
        state: The objects.
        after: Returns the writes after a revision that is not below ``oldest``; those above ``revision`` are ignored.
    """

    revision: int
    oldest: int
    state: State
    after: Callable[[int], Iterable[Write]]


def open_watch(
    request: Request, target: Target, on_line: OnLine, hub: Watches, source: Source, rules: WatchRules
) -> Watch:
    """Open a watch in a hub that has delivered the writes up to the source's revision, and send the past ones."""
    lists.refuse_selectors(request)
    form = metadata_form(request)
    asked = request.query.get("resourceVersion") or "0"
    since = lists.version_number(asked)
    is_expired = 0 < since < source.oldest
    if is_expired and rules.refuses_expired:
        raise messages.expired_version(since, source.oldest)
    if since > source.revision and rules.refuses_future:
        raise messages.too_large_version(since, source.revision)
    watch = hub.open(
        target.kind,
        target.namespace,
        on_line,
        user=request.user,
        revision=since or source.revision,
        as_metadata=form is not MetadataForm.NONE,
        bookmarks=request.query.get("allowWatchBookmarks") in _TRUE,
    )
    if form is MetadataForm.LIST:
        watch.end()  # an event is no list
    elif is_expired:
        watch.fail(410, "Expired", messages.too_old(since, source.oldest))
    elif not since:
        keys = ordered(key for key in source.state if not target.namespace or key[0] == target.namespace)
        watches.show(watch, [source.state[key] for key in keys])
    else:
        watches.replay(watch, (each for each in source.after(since) if each.revision <= source.revision))
    return watch
